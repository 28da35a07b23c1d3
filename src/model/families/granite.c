/* granite, granitemoe: llama's block with four scales (embedding, residual, attention, logits); with experts, softmax routing
 * renormalised over the chosen, and a shared expert in some files.
 * Source: "Granite 3.0 Language Models" (IBM, 2024), section 3; Yang et al. 2022, "Tensor Programs V", for the scales. */
#include "model/families_int.h"

static cera_status granite_keys(cera_hparams *h, cera_error *e) {
    float divisor;
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    CERA_TRY(cera_key_f32_or(h, "embedding_scale", 1e-4, 1e4, 1, &h->embedding_scale, e));
    CERA_TRY(cera_key_f32_or(h, "residual_scale", 1e-4, 1e4, 1, &h->residual_scale, e));
    CERA_TRY(cera_key_f32_or(h, "attention.scale", 0, 1e4, 0, &h->attention_scale, e));
    CERA_TRY(cera_key_f32_or(h, "logit_scale", 1e-4, 1e4, 1, &divisor, e));
    h->logit_scale = 1 / divisor;
    h->expert_gating = 1;
    h->expert_normalise = true;
    return CERA_OK;
}

static bool has_shared(const cera_hparams *h, int layer) { return cera_layer_is_expert(h, layer) && h->n_ff_shared > 0; }

static const cera_tensor_rule granite_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    GLOBAL(rope_freqs, OPTIONAL, N_ROT_HALF),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_q, OPTIONAL, Q_WIDTH),
    LAYER_BIAS(attn_k, OPTIONAL, K_WIDTH),
    LAYER_BIAS(attn_v, OPTIONAL, V_WIDTH),
    LAYER_BIAS(attn_output, OPTIONAL, N_EMBD),
    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER_IF(cera_layer_is_dense, ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_down, REQUIRED, N_FF, N_EMBD),
    LAYER_IF(cera_layer_is_expert, ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
    LAYER_IF(has_shared, ffn_gate_shexp, REQUIRED, N_EMBD, FF_SHARED),
    LAYER_IF(has_shared, ffn_up_shexp, REQUIRED, N_EMBD, FF_SHARED),
    LAYER_IF(has_shared, ffn_down_shexp, REQUIRED, FF_SHARED, N_EMBD),
};

static void granite_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, NO_W, NO_W, b->rope);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        u = norm(b, x, W(ffn_norm));
        if (cera_layer_is_expert(h, layer))
            x = experts(b, u, CERA_GLU_SILU, x);
        else
            x = matmul_add(b, glu(b, u, W(ffn_gate), W(ffn_up), CERA_GLU_SILU), W(ffn_down), x);
        if (has_shared(h, layer))
            x = matmul_add(b, glu(b, u, W(ffn_gate_shexp), W(ffn_up_shexp), CERA_GLU_SILU), W(ffn_down_shexp), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_granite = FAMILY("granite", granite_keys, granite_tensors, granite_build);
const cera_family cera_family_granitemoe = FAMILY("granitemoe", granite_keys, granite_tensors, granite_build);
