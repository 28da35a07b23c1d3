/* starcoder2: LayerNorm with biases, biases on every matrix, an ungated GELU feed-forward, NEOX.
 * Source: "StarCoder 2 and The Stack v2: The Next Generation" (2024), section 6. */
#include "model/families_int.h"

static cera_status starcoder2_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule starcoder2_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    GLOBAL_BIAS(output_norm, REQUIRED, N_EMBD),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_norm, REQUIRED, N_EMBD),
    LAYER_BIAS(attn_q, OPTIONAL, Q_WIDTH),
    LAYER_BIAS(attn_k, OPTIONAL, K_WIDTH),
    LAYER_BIAS(attn_v, OPTIONAL, V_WIDTH),
    LAYER_BIAS(attn_output, OPTIONAL, N_EMBD),
    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER_BIAS(ffn_norm, REQUIRED, N_EMBD),
    LAYER(ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER_BIAS(ffn_up, OPTIONAL, N_FF),
    LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
    LAYER_BIAS(ffn_down, OPTIONAL, N_EMBD),
};

static void starcoder2_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = layer_norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, NO_W, NO_W, b->rope);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        u = layer_norm(b, x, W(ffn_norm));
        x = matmul_add(b, matmul_act(b, u, W(ffn_up), CERA_GLU_GELU), W(ffn_down), x);
    }
    logits(b, layer_norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_starcoder2 = FAMILY("starcoder2", starcoder2_keys, starcoder2_tensors, starcoder2_build);
