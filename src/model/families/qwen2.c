/* qwen2: llama's block with biases on q, k and v and NEOX rotation.
 * Source: "Qwen2 Technical Report" (2024), section 2.2. */
#include "model/families_int.h"

static cera_status qwen2_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule qwen2_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB), GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),     LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),      LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),      LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_q, OPTIONAL, Q_WIDTH),         LAYER_BIAS(attn_k, OPTIONAL, K_WIDTH),
    LAYER_BIAS(attn_v, OPTIONAL, V_WIDTH),         LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER(ffn_gate, REQUIRED, N_EMBD, N_FF),       LAYER(ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
};

static void qwen2_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, NO_W, NO_W, b->rope);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        u = norm(b, x, W(ffn_norm));
        x = matmul_add(b, glu(b, u, W(ffn_gate), W(ffn_up), CERA_GLU_SILU), W(ffn_down), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_qwen2 = FAMILY("qwen2", qwen2_keys, qwen2_tensors, qwen2_build);
