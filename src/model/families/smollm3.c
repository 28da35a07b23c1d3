/* smollm3: llama's block; every fourth layer is not rotated ("NoPE").
 * Source: "SmolLM3: smol, multilingual, long-context reasoner" (Hugging Face, 2025); Yang et al. 2025, "Rope to Nope and Back
 * Again". */
#include "model/families_int.h"

enum { NO_ROPE_EVERY = 4 };

static cera_status smollm3_keys(cera_hparams *h, cera_error *e) { return cera_hparams_common(h, e); }

static const cera_tensor_rule smollm3_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB), GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),     LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),      LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),      LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_q, OPTIONAL, Q_WIDTH),         LAYER_BIAS(attn_k, OPTIONAL, K_WIDTH),
    LAYER_BIAS(attn_v, OPTIONAL, V_WIDTH),         LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER(ffn_gate, REQUIRED, N_EMBD, N_FF),       LAYER(ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
};

static void smollm3_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        a = rope_kv(b, a, NO_W, NO_W, (layer + 1) % NO_ROPE_EVERY ? b->rope : -1);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        u = norm(b, x, W(ffn_norm));
        x = matmul_add(b, glu(b, u, W(ffn_gate), W(ffn_up), CERA_GLU_SILU), W(ffn_down), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_smollm3 = FAMILY("smollm3", smollm3_keys, smollm3_tensors, smollm3_build);
