/* gpt-oss: experts in every layer with biases and a clamped gate, attention with a learned sink a head and biases, every other
 * layer sliding, YaRN, NEOX. The router's weights are a softmax over the chosen only. The norm before the experts is stored as
 * post_attention_norm. Source: "gpt-oss-120b & gpt-oss-20b Model Card" (OpenAI, 2025), section 2. */
#include "model/families_int.h"

static cera_status gpt_oss_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    CERA_TRY(cera_hparams_window(h, 2, e));
    if (!h->n_expert) return cera_fail(e, CERA_ERR_FORMAT, "key gpt-oss.expert_count is missing");
    h->expert_gating = 3;
    h->expert_normalise = false;
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule gpt_oss_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_q, REQUIRED, Q_WIDTH),
    LAYER_BIAS(attn_k, REQUIRED, K_WIDTH),
    LAYER_BIAS(attn_v, REQUIRED, V_WIDTH),
    LAYER_BIAS(attn_output, REQUIRED, N_EMBD),
    LAYER(attn_sinks, REQUIRED, N_HEAD),
    LAYER(post_attention_norm, REQUIRED, N_EMBD),
    LAYER(ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER(ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER(ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER(ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
    LAYER_BIAS(ffn_gate_inp, REQUIRED, N_EXPERT),
    LAYER_BIAS(ffn_gate_exps, REQUIRED, FF_EXPERT, N_EXPERT),
    LAYER_BIAS(ffn_up_exps, REQUIRED, FF_EXPERT, N_EXPERT),
    LAYER_BIAS(ffn_down_exps, REQUIRED, N_EMBD, N_EXPERT),
};

static void gpt_oss_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, NO_W, NO_W, b->rope);
        x = matmul_add(b, attend(b, a, W(attn_sinks)), W(attn_output), x);
        x = experts(b, norm(b, x, W(post_attention_norm)), CERA_GLU_OAI, x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_gpt_oss = FAMILY("gpt-oss", gpt_oss_keys, gpt_oss_tensors, gpt_oss_build);
