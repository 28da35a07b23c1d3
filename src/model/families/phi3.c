/* phi3: llama's block with q, k, v in one matrix and gate, up in another, NEOX rotation of perhaps a part of the head, and two
 * sets of frequency divisors, one for contexts beyond the original (LongRoPE). Sources: "Phi-3 Technical Report" (2024),
 * section 2; Ding et al. 2024, "LongRoPE". */
#include "model/families_int.h"

static cera_status phi3_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_window(h, 0, e));
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule phi3_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),        GLOBAL(rope_factors_long, OPTIONAL, N_ROT_HALF),
    GLOBAL(rope_factors_short, OPTIONAL, N_ROT_HALF), LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_qkv, REQUIRED, N_EMBD, QKV_WIDTH),     LAYER_BIAS(attn_qkv, OPTIONAL, QKV_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER(ffn_up, REQUIRED, N_EMBD, TWO_FF),          LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
};

static void phi3_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        int q = h->n_head[layer] * h->head_k, k = h->n_head_kv[layer] * h->head_k, v = h->n_head_kv[layer] * h->head_v;
        cera_wb qkv = W(attn_qkv), up = W(ffn_up);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, rows_of(b, qkv, 0, q), rows_of(b, qkv, q, k), rows_of(b, qkv, q + k, v));
        a = rope_kv(b, a, NO_W, NO_W, b->rope);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        u = norm(b, x, W(ffn_norm));
        u = glu(b, u, rows_of(b, up, 0, h->n_ff[layer]), rows_of(b, up, h->n_ff[layer], h->n_ff[layer]), CERA_GLU_SILU);
        x = matmul_add(b, u, W(ffn_down), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_phi3 = FAMILY("phi3", phi3_keys, phi3_tensors, phi3_build);
