/* olmo2: no norm before a sublayer but one behind it, before the residual is added; RMS norms over the whole query and key
 * rows; NEOX. OLMo 3 ships under the same name: three sliding layers to a full one, and only full layers are stretched by YaRN.
 * Source: "2 OLMo 2 Furious" (2025), section 2. */
#include "model/families_int.h"

static cera_status olmo2_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_window(h, 4, e));
    h->rope_swa.scaling = CERA_SCALING_NONE;
    h->rope_swa.factor = h->rope_swa.attn_factor = 1;
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule olmo2_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB), GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),     LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),      LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD), LAYER(attn_q_norm, REQUIRED, Q_WIDTH),
    LAYER(attn_k_norm, REQUIRED, K_WIDTH),         LAYER(post_attention_norm, REQUIRED, N_EMBD),
    LAYER(post_ffw_norm, REQUIRED, N_EMBD),        LAYER(ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER(ffn_up, REQUIRED, N_EMBD, N_FF),         LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
};

static void olmo2_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_qkv a = matmul3(b, x, W(attn_q), W(attn_k), W(attn_v));
        a.q = norm(b, a.q, W(attn_q_norm));
        a.k = norm(b, a.k, W(attn_k_norm));
        a = rope_kv(b, a, NO_W, NO_W, h->slides[layer] ? b->rope_swa : b->rope);
        x = norm_add(b, matmul(b, attend(b, a, NO_W), W(attn_output)), W(post_attention_norm), x);
        cera_ref u = glu(b, x, W(ffn_gate), W(ffn_up), CERA_GLU_SILU);
        x = norm_add(b, matmul(b, u, W(ffn_down)), W(post_ffw_norm), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_olmo2 = FAMILY("olmo2", olmo2_keys, olmo2_tensors, olmo2_build);
