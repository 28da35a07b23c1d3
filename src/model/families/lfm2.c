/* lfm2, lfm2moe: layers of gated short convolution, and some of attention (those with KV heads) with norms on query and key
 * heads; with experts, sigmoid routing where a bias moves the choice but not the weight, after some leading dense layers.
 * Sources: "LFM2 Technical Report" (Liquid AI, 2025), section 2; the GGUF keys and tensor names are llama.cpp's. The final norm
 * is stored as token_embd_norm. */
#include "model/families_int.h"

static cera_status lfm2_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_key_int_or(h, "shortconv.l_cache", 2, 16, 3, &h->conv_l, e));
    CERA_TRY(cera_hparams_window(h, 0, e));
    h->rope.neox = true;
    return CERA_OK;
}

static cera_status lfm2moe_keys(cera_hparams *h, cera_error *e) {
    CERA_TRY(lfm2_keys(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    h->expert_gating = 2;
    h->expert_normalise = true;
    return CERA_OK;
}

static bool is_attention(const cera_hparams *h, int layer) { return h->n_head_kv[layer] > 0; }
static bool is_conv(const cera_hparams *h, int layer) { return !is_attention(h, layer); }

static const cera_tensor_rule lfm2_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(token_embd_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER_IF(is_attention, attn_q, REQUIRED, N_EMBD, Q_WIDTH),
    LAYER_IF(is_attention, attn_k, REQUIRED, N_EMBD, K_WIDTH),
    LAYER_IF(is_attention, attn_v, REQUIRED, N_EMBD, V_WIDTH),
    LAYER_IF(is_attention, attn_output, REQUIRED, O_WIDTH, N_EMBD),
    LAYER_IF(is_attention, attn_q_norm, REQUIRED, HEAD_K),
    LAYER_IF(is_attention, attn_k_norm, REQUIRED, HEAD_K),
    LAYER_IF(is_conv, shortconv_in_proj, REQUIRED, N_EMBD, CONV_WIDTH),
    LAYER_IF(is_conv, shortconv_conv, REQUIRED, CONV_L, N_EMBD),
    LAYER_IF(is_conv, shortconv_out_proj, REQUIRED, N_EMBD, N_EMBD),
    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER_IF(cera_layer_is_dense, ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_down, REQUIRED, N_FF, N_EMBD),
    LAYER_IF(cera_layer_is_expert, ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
    LAYER_BIAS_IF(cera_layer_is_expert, exp_probs_b, OPTIONAL, N_EXPERT),
};

static void lfm2_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        cera_ref u = norm(b, x, W(attn_norm));
        if (is_attention(h, layer)) {
            cera_qkv a = matmul3(b, u, W(attn_q), W(attn_k), W(attn_v));
            a = rope_kv(b, a, W(attn_q_norm), W(attn_k_norm), b->rope);
            x = matmul_add(b, attend(b, a, NO_W), W(attn_output), x);
        } else {
            x = matmul_add(b, shortconv(b, matmul(b, u, W(shortconv_in_proj)), W(shortconv_conv)), W(shortconv_out_proj), x);
        }
        u = norm(b, x, W(ffn_norm));
        if (cera_layer_is_expert(h, layer))
            x = experts(b, u, CERA_GLU_SILU, x);
        else
            x = matmul_add(b, glu(b, u, W(ffn_gate), W(ffn_up), CERA_GLU_SILU), W(ffn_down), x);
    }
    logits(b, norm(b, x, G(token_embd_norm)), output_or_embedding(b));
}

const cera_family cera_family_lfm2 = FAMILY("lfm2", lfm2_keys, lfm2_tensors, lfm2_build);
const cera_family cera_family_lfm2moe = FAMILY("lfm2moe", lfm2moe_keys, lfm2_tensors, lfm2_build);
