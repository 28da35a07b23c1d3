/* qwen2moe: qwen2 with experts, and a shared expert behind a sigmoid gate of its own. The experts' weights are a softmax over
 * all experts, not renormalised over the chosen. Source: "Qwen2 Technical Report" (2024), section 2.2.2. */
#include "model/families_int.h"

static cera_status qwen2moe_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    if (!h->n_ff_shared) h->n_ff_shared = h->n_ff[0];
    h->expert_gating = 1;
    h->expert_normalise = false;
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule qwen2moe_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_q, OPTIONAL, Q_WIDTH),
    LAYER_BIAS(attn_k, OPTIONAL, K_WIDTH),
    LAYER_BIAS(attn_v, OPTIONAL, V_WIDTH),
    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER(ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER(ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER(ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER(ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
    LAYER(ffn_gate_inp_shexp, REQUIRED, N_EMBD),
    LAYER(ffn_gate_shexp, REQUIRED, N_EMBD, FF_SHARED),
    LAYER(ffn_up_shexp, REQUIRED, N_EMBD, FF_SHARED),
    LAYER(ffn_down_shexp, REQUIRED, FF_SHARED, N_EMBD),
};

static void qwen2moe_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, NO_W, NO_W, b->rope);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        u = norm(b, x, W(ffn_norm));
        x = experts(b, u, CERA_GLU_SILU, x);
        cera_ref open = gate(b, u, W(ffn_gate_inp_shexp));
        cera_ref shared = glu(b, u, W(ffn_gate_shexp), W(ffn_up_shexp), CERA_GLU_SILU);
        x = matmul_gated_add(b, shared, W(ffn_down_shexp), open, x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_qwen2moe = FAMILY("qwen2moe", qwen2moe_keys, qwen2moe_tensors, qwen2moe_build);
