/* mistral3: llama's block with YaRN and queries that grow with position ("temperature") beyond the original context; with
 * experts in some files. Source: the Ministral 3 model cards (Mistral AI, 2025); the temperature is Llama 4's (Meta, 2025). */
#include "model/families_int.h"

static cera_status mistral3_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    CERA_TRY(cera_key_f32_or(h, "attention.temperature_scale", 0, 1e3, 0, &h->temp_scale, e));
    CERA_TRY(
        cera_key_int_or(h, "attention.temperature_length", 1, CERA_MAX_CONTEXT, h->rope.original_context, &h->temp_floor, e));
    h->expert_gating = 1;
    h->expert_normalise = true;
    return CERA_OK;
}

static const cera_tensor_rule mistral3_tensors[] = {
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
    LAYER_IF(cera_layer_is_dense, ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_down, REQUIRED, N_FF, N_EMBD),
    LAYER_IF(cera_layer_is_expert, ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
};

static void mistral3_build(cera_builder *b, const cera_hparams *h) {
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
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_mistral3 = FAMILY("mistral3", mistral3_keys, mistral3_tensors, mistral3_build);
