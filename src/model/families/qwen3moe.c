/* qwen3moe: qwen3's attention with experts in every layer; softmax routing, renormalised over the chosen.
 * Source: "Qwen3 Technical Report" (2025), section 2. */
#include "model/families_int.h"

static cera_status qwen3moe_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    h->expert_gating = 1;
    h->expert_normalise = true;
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule qwen3moe_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER(attn_q_norm, REQUIRED, HEAD_K),
    LAYER(attn_k_norm, REQUIRED, HEAD_K),
    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER(ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER(ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER(ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER(ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
};

static void qwen3moe_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, W(attn_q_norm), W(attn_k_norm), b->rope);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        x = experts(b, norm(b, x, W(ffn_norm)), CERA_GLU_SILU, x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_qwen3moe = FAMILY("qwen3moe", qwen3moe_keys, qwen3moe_tensors, qwen3moe_build);
