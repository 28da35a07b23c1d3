/* command-r, cohere2: attention and feed-forward side by side on one LayerNorm without bias, logits scaled, tied output.
 * command-r+ has a LayerNorm a head on queries and keys. cohere2 slides in three layers of four, and rotates only there.
 * Source: the Command R and Command R7B model cards (Cohere, 2024). */
#include "model/families_int.h"

static cera_status command_r_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    return cera_key_f32_or(h, "logit_scale", 1e-6, 1e6, 1, &h->logit_scale, e);
}

static cera_status cohere2_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(command_r_keys(h, e));
    int window;
    CERA_TRY(cera_key_int(h, "attention.sliding_window", 1, CERA_MAX_CONTEXT, &window, e));
    CERA_TRY(cera_hparams_window(h, 4, e));
    h->no_rope_every = 4;
    return CERA_OK;
}

static const cera_tensor_rule command_r_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER(attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER(attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER(attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER(attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_BIAS(attn_q, OPTIONAL, Q_WIDTH),
    LAYER_BIAS(attn_k, OPTIONAL, K_WIDTH),
    LAYER_BIAS(attn_v, OPTIONAL, V_WIDTH),
    LAYER_BIAS(attn_output, OPTIONAL, N_EMBD),
    LAYER(attn_q_norm, OPTIONAL, HEAD_K, N_HEAD),
    LAYER(attn_k_norm, OPTIONAL, HEAD_K, N_HEAD_KV),
    LAYER(ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER(ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER(ffn_down, REQUIRED, N_FF, N_EMBD),
};

static void command_r_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        bool rotates = !h->no_rope_every || (layer + 1) % h->no_rope_every;
        cera_ref u = layer_norm(b, x, W(attn_norm));
        cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
        if (W(attn_q_norm).w >= 0) a.q = norm_heads(b, CERA_NORM_LAYER, a.q, W(attn_q_norm), h->n_head[layer]);
        if (W(attn_k_norm).w >= 0) a.k = norm_heads(b, CERA_NORM_LAYER, a.k, W(attn_k_norm), h->n_head_kv[layer]);
        a = rope_kv(b, a, NO_W, NO_W, rotates ? b->rope : -1);
        x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        x = matmul_add(b, glu(b, u, W(ffn_gate), W(ffn_up), CERA_GLU_SILU), W(ffn_down), x);
    }
    logits(b, layer_norm(b, x, G(output_norm)), G(token_embd));
}

const cera_family cera_family_command_r = FAMILY("command-r", command_r_keys, command_r_tensors, command_r_build);
const cera_family cera_family_cohere2 = FAMILY("cohere2", cohere2_keys, command_r_tensors, command_r_build);
