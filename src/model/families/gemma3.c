/* gemma3: gemma2's block with norms on query and key heads instead of the score cap, five sliding layers to a full one, and
 * another RoPE base for the sliding ones. Source: "Gemma 3 Technical Report" (2025), section 2. */
#include <math.h>
#include "model/families_int.h"

static cera_status gemma3_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_window(h, 6, e));
    CERA_TRY(cera_key_f32_or(h, "final_logit_softcapping", 0, 1e6, 0, &h->final_softcap, e));
    CERA_TRY(cera_key_f64_or(h, "rope.freq_base_swa", 1, 1e12, 10000, &h->rope_swa.base, e));
    h->rope_swa.scaling = CERA_SCALING_NONE; /* only full layers are stretched */
    h->rope_swa.factor = 1;
    h->embedding_scale = sqrtf((float)h->n_embd);
    /* The 27B model (62 layers) scales queries by width / heads, not by the head size; no key says so. */
    if (h->n_layer == 62) h->attention_scale = 1 / sqrtf((float)(h->n_embd / h->n_head[0]));
    h->rope.neox = true;
    return CERA_OK;
}

static const cera_tensor_rule gemma3_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB), GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),     LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),      LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),      LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER(attn_q_norm, REQUIRED, HEAD_K),          LAYER(attn_k_norm, REQUIRED, HEAD_K),
    LAYER(post_attention_norm, REQUIRED, N_EMBD),  LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER(post_ffw_norm, REQUIRED, N_EMBD),        LAYER(ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER(ffn_up, REQUIRED, N_EMBD, N_FF),         LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
};

static void gemma3_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, W(attn_q_norm), W(attn_k_norm), h->slides[layer] ? b->rope_swa : b->rope);
        x = norm_add(b, matmul(b, attend(b, a, NO_W), W(attn_output)), W(post_attention_norm), x);
        u = glu(b, norm(b, x, W(ffn_norm)), W(ffn_gate), W(ffn_up), CERA_GLU_GELU);
        x = norm_add(b, matmul(b, u, W(ffn_down)), W(post_ffw_norm), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_gemma3 = FAMILY("gemma3", gemma3_keys, gemma3_tensors, gemma3_build);
