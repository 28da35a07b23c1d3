/* deepseek2: DeepSeek-V2, V3, R1, Kimi-K2: attention over one latent vector a token (MLA) whose leading part is also the value,
 * and experts in groups with a shared expert beside them, after some dense layers. Sources: "DeepSeek-V2" (2024), section 2.1;
 * "DeepSeek-V3 Technical Report" (2024), sections 2.1.1 and 2.1.2. The up-projections of keys and values are absorbed into the
 * query (attn_k_b) and the output (attn_v_b), as llama.cpp's converter stores them. */
#include <math.h>
#include "model/families_int.h"

static cera_status deepseek2_keys(cera_hparams *h, cera_error *e) {
    int n_shared;
    CERA_TRY(cera_hparams_common(h, e));
    CERA_TRY(cera_hparams_experts(h, e));
    CERA_TRY(cera_key_int_or(h, "attention.q_lora_rank", 1, CERA_MAX_WIDTH, 0, &h->q_rank, e));
    CERA_TRY(cera_key_int(h, "attention.kv_lora_rank", 1, 1024, &h->kv_rank, e));
    CERA_TRY(cera_key_int(h, "attention.key_length_mla", h->rope.n_rot + 1, 1024, &h->head_k_mla, e));
    CERA_TRY(cera_key_int(h, "attention.value_length_mla", 1, 1024, &h->head_v_mla, e));
    CERA_TRY(cera_key_int_or(h, "expert_shared_count", 0, 64, 0, &n_shared, e));
    h->n_ff_shared = n_shared * h->n_ff_expert;
    if (!h->expert_gating) h->expert_gating = 1; /* V2 does not say: softmax */
    /* The file's multiplier holds a factor 0.1 that the formula has too. The scores are scaled by the square of YaRN's factor
     * instead of cos and sin, which stay as they are. */
    double log_multiplier = h->rope.log_multiplier / 0.1, m = 1;
    if (h->rope.scaling == CERA_SCALING_YARN && h->rope.factor > 1) m = 1 + 0.1 * log_multiplier * log(h->rope.factor);
    h->rope.log_multiplier = 1;
    h->attention_scale = (float)(m * m / sqrt((double)h->head_k_mla));
    h->rope.rot_first = h->kv_rank; /* [latent, rotated] */
    return CERA_OK;
}

static bool compresses_q(const cera_hparams *h, int layer) { return (void)layer, h->q_rank > 0; }
static bool plain_q(const cera_hparams *h, int layer) { return !compresses_q(h, layer); }
static bool has_shared(const cera_hparams *h, int layer) { return cera_layer_is_expert(h, layer) && h->n_ff_shared > 0; }

static const cera_tensor_rule deepseek2_tensors[] = {
    GLOBAL(token_embd, REQUIRED, N_EMBD, N_VOCAB),
    GLOBAL(output_norm, REQUIRED, N_EMBD),
    GLOBAL(output, OPTIONAL, N_EMBD, N_VOCAB),
    LAYER(attn_norm, REQUIRED, N_EMBD),
    LAYER_IF(compresses_q, attn_q_a, REQUIRED, N_EMBD, Q_RANK),
    LAYER_IF(compresses_q, attn_q_a_norm, REQUIRED, Q_RANK),
    LAYER_IF(compresses_q, attn_q_b, REQUIRED, Q_RANK, Q_MLA_WIDTH),
    LAYER_IF(plain_q, attn_q, REQUIRED, N_EMBD, Q_MLA_WIDTH),
    LAYER(attn_kv_a_mqa, REQUIRED, N_EMBD, KV_A_WIDTH),
    LAYER(attn_kv_a_norm, REQUIRED, KV_RANK),
    LAYER(attn_k_b, REQUIRED, NOPE, KV_RANK, N_HEAD),
    LAYER(attn_v_b, REQUIRED, KV_RANK, HEAD_V_MLA, N_HEAD),
    LAYER(attn_output, REQUIRED, O_MLA_WIDTH, N_EMBD),
    LAYER(ffn_norm, REQUIRED, N_EMBD),
    LAYER_IF(cera_layer_is_dense, ffn_gate, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_up, REQUIRED, N_EMBD, N_FF),
    LAYER_IF(cera_layer_is_dense, ffn_down, REQUIRED, N_FF, N_EMBD),
    LAYER_IF(cera_layer_is_expert, ffn_gate_inp, REQUIRED, N_EMBD, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_gate_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_up_exps, REQUIRED, N_EMBD, FF_EXPERT, N_EXPERT),
    LAYER_IF(cera_layer_is_expert, ffn_down_exps, REQUIRED, FF_EXPERT, N_EMBD, N_EXPERT),
    LAYER_BIAS_IF(cera_layer_is_expert, exp_probs_b, OPTIONAL, N_EXPERT),
    LAYER_IF(has_shared, ffn_gate_shexp, REQUIRED, N_EMBD, FF_SHARED),
    LAYER_IF(has_shared, ffn_up_shexp, REQUIRED, N_EMBD, FF_SHARED),
    LAYER_IF(has_shared, ffn_down_shexp, REQUIRED, FF_SHARED, N_EMBD),
};

static cera_ref latent_attention(cera_builder *b, const cera_hparams *h, cera_ref u) {
    int n_head = h->n_head[b->layer], d_k = h->kv_rank + h->rope.n_rot;
    cera_qkv a = {.v = CERA_NO_REF};
    a.q = compresses_q(h, b->layer) ? matmul(b, norm(b, matmul(b, u, W(attn_q_a)), W(attn_q_a_norm)), W(attn_q_b))
                                    : matmul(b, u, W(attn_q));
    a.q = heads(b, a.q, W(attn_k_b), n_head, h->head_k_mla, d_k, true);
    a.k = norm_first(b, matmul(b, u, W(attn_kv_a_mqa)), W(attn_kv_a_norm), h->kv_rank);
    cera_ref o = attend_latent(b, a, d_k, h->kv_rank, b->rope, h->attention_scale);
    return heads(b, o, W(attn_v_b), n_head, h->kv_rank, h->head_v_mla, false);
}

static void deepseek2_build(cera_builder *b, const cera_hparams *h) {
    cera_ref x = embed(b, G(token_embd));
    for (int layer = 0; layer < h->n_layer; layer++) {
        at_layer(b, layer);
        x = matmul_add(b, latent_attention(b, h, norm(b, x, W(attn_norm))), W(attn_output), x);
        cera_ref u = norm(b, x, W(ffn_norm));
        if (cera_layer_is_expert(h, layer))
            x = experts(b, u, CERA_GLU_SILU, x);
        else
            x = matmul_add(b, glu(b, u, W(ffn_gate), W(ffn_up), CERA_GLU_SILU), W(ffn_down), x);
        if (has_shared(h, layer))
            x = matmul_add(b, glu(b, u, W(ffn_gate_shexp), W(ffn_up_shexp), CERA_GLU_SILU), W(ffn_down_shexp), x);
    }
    logits(b, norm(b, x, G(output_norm)), output_or_embedding(b));
}

const cera_family cera_family_deepseek2 = FAMILY("deepseek2", deepseek2_keys, deepseek2_tensors, deepseek2_build);
