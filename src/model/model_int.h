/* model_int.h: what a family file works with: hyperparameters read from keys, tensor rules, and the builder that writes the
 * plan. A family is three things: a function that reads its keys, a table of its tensors, and a function that builds its plan.
 */
#ifndef CERA_MODEL_MODEL_INT_H
#define CERA_MODEL_MODEL_INT_H

#include "base/arena.h"
#include "model/model.h"

enum { CERA_MAX_LAYERS = 1024, CERA_MAX_WIDTH = 1 << 20, CERA_MAX_CONTEXT = 1 << 28, CERA_MAX_ROT = 1024 };

typedef enum { CERA_SCALING_NONE, CERA_SCALING_LINEAR, CERA_SCALING_YARN, CERA_SCALING_LONGROPE } cera_rope_scaling;

/* How positions become angles; see rope.c for the formulas. */
typedef struct cera_rope_spec {
    double base;
    int n_rot, rot_first;
    bool neox;
    cera_rope_scaling scaling;
    double factor;                                           /* context is stretched by this; 1: not */
    double attn_factor;                                      /* multiplies cos and sin */
    double ext_factor, beta_fast, beta_slow, log_multiplier; /* YaRN */
    int original_context;
    const float *divisors; /* [n_rot / 2] of each frequency, or NULL */
} cera_rope_spec;

typedef struct cera_hparams {
    const cera_gguf *file;
    const char *arch;
    int n_layer, n_embd, n_vocab, n_ctx_train, n_ctx;
    int n_head[CERA_MAX_LAYERS], n_head_kv[CERA_MAX_LAYERS], n_ff[CERA_MAX_LAYERS];
    int head_k, head_v; /* elements of a query/key head and of a value head */
    float eps;
    cera_rope_spec rope, rope_swa; /* rope_swa: of sliding layers, where they differ */
    int window;                    /* of sliding layers; 0: none slide */
    bool slides[CERA_MAX_LAYERS];
    float embedding_scale, residual_scale, attention_scale, logit_scale, attn_softcap, final_softcap;
    int n_expert, n_expert_used, n_ff_expert, n_ff_shared, n_dense_lead, n_expert_groups, n_expert_groups_used;
    int expert_gating; /* 1 softmax, 2 sigmoid, 3 softmax over the chosen */
    bool expert_normalise;
    float expert_scale, expert_norm_min;
    int conv_l;                                  /* taps of LFM2's short convolution */
    int q_rank, kv_rank, head_k_mla, head_v_mla; /* DeepSeek's latent attention */
    float temp_scale;                            /* Mistral 3: temperature by position */
    int temp_floor;
    int no_rope_every; /* SmolLM3, Cohere2: every n-th layer is not rotated; 0: all are */
} cera_hparams;

/* ---- keys: "<arch>.<name>" -------------------------------------------------------------------------------------- */

cera_status cera_key_int(const cera_hparams *h, const char *name, int min, int max, int *out, cera_error *e); /* needed */
cera_status cera_key_int_or(const cera_hparams *h, const char *name, int min, int max, int fallback, int *out, cera_error *e);
cera_status cera_key_f32_or(const cera_hparams *h, const char *name, double min, double max, float fallback, float *out,
                            cera_error *e);
cera_status cera_key_f64_or(const cera_hparams *h, const char *name, double min, double max, double fallback, double *out,
                            cera_error *e);
cera_status cera_key_bool_or(const cera_hparams *h, const char *name, bool fallback, bool *out, cera_error *e);
bool cera_key_has(const cera_hparams *h, const char *name);

/* What every family has: sizes, heads, layers, context, epsilon, rope base, rotated width and scaling. The fields not read from
 * keys hold neutral values (scales 1, caps 0, no window, no experts). */
cera_status cera_hparams_common(cera_hparams *h, cera_error *e);
/* Experts' keys; count 0 leaves a dense model. */
cera_status cera_hparams_experts(cera_hparams *h, cera_error *e);
/* attention.sliding_window and which layers slide: the pattern key if there is one, else layer i slides when i % period !=
 * period - 1. */
cera_status cera_hparams_window(cera_hparams *h, int period, cera_error *e);

/* Fills inv_freq [n_rot / 2] and the factor of cos and sin. */
void cera_rope_compute(const cera_rope_spec *s, double *inv_freq, double *scale);

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

typedef enum cera_slot {
#define SLOT(name, stem) CERA_SLOT_##name,
#include "model/slots.def"
#undef SLOT
    CERA_SLOT_COUNT
} cera_slot;

/* Sizes in shapes, worked out for each layer. */
typedef enum cera_dim {
    END,
    ONE,
    N_EMBD,
    N_VOCAB,
    Q_WIDTH,
    K_WIDTH,
    V_WIDTH,
    QKV_WIDTH,
    O_WIDTH,
    HEAD_K,
    N_HEAD,
    N_HEAD_KV,
    N_FF,
    TWO_FF,
    N_ROT_HALF,
    N_EXPERT,
    FF_EXPERT,
    FF_SHARED,
    CONV_L,
    CONV_WIDTH,
    Q_RANK,
    KV_RANK,
    KV_A_WIDTH,
    Q_MLA_WIDTH,
    NOPE,
    HEAD_V_MLA,
    O_MLA_WIDTH,
    CERA_DIM_COUNT
} cera_dim;

typedef enum { REQUIRED, OPTIONAL } cera_need;

typedef struct cera_tensor_rule {
    cera_slot slot;
    bool layer, bias;
    cera_need need;
    cera_dim shape[4];                              /* GGUF order, END after the last */
    bool (*when)(const cera_hparams *h, int layer); /* NULL: in every layer */
} cera_tensor_rule;

#define GLOBAL(slot, need, ...) \
    { CERA_SLOT_##slot, false, false, need, {__VA_ARGS__}, NULL }
#define GLOBAL_BIAS(slot, need, ...) \
    { CERA_SLOT_##slot, false, true, need, {__VA_ARGS__}, NULL }
#define LAYER(slot, need, ...) \
    { CERA_SLOT_##slot, true, false, need, {__VA_ARGS__}, NULL }
#define LAYER_BIAS(slot, need, ...) \
    { CERA_SLOT_##slot, true, true, need, {__VA_ARGS__}, NULL }
#define LAYER_IF(when, slot, need, ...) \
    { CERA_SLOT_##slot, true, false, need, {__VA_ARGS__}, when }
#define LAYER_BIAS_IF(when, slot, need, ...) \
    { CERA_SLOT_##slot, true, true, need, {__VA_ARGS__}, when }

bool cera_layer_is_expert(const cera_hparams *h, int layer); /* for rules: layers whose FFN is experts, and the others */
bool cera_layer_is_dense(const cera_hparams *h, int layer);

/* ---- builder ----------------------------------------------------------------------------------------------------- */

/* A matrix or vector and its bias, either may be absent (CERA_NO_REF). */
typedef struct cera_wb {
    cera_weight_ref w, bias;
} cera_wb;

typedef struct cera_builder {
    cera_plan *plan;
    cera_arena *arena;
    const cera_hparams *h;
    cera_wb (*slots)[CERA_MAX_LAYERS + 1]; /* [CERA_SLOT_COUNT]; the last entry is the global one */
    int layer;
    int max_ops, max_values, max_weights, max_ropes, max_groups;
    int rope, rope_swa; /* made by the builder from h->rope and h->rope_swa */
    cera_status status; /* the first failure (out of room); later calls do nothing harmful */
} cera_builder;

typedef struct cera_qkv {
    cera_ref q, k, v;
} cera_qkv;

static inline cera_wb cera_slot_at(const cera_builder *b, cera_slot s) { return b->slots[s][b->layer]; }
static inline cera_wb cera_slot_global(const cera_builder *b, cera_slot s) { return b->slots[s][CERA_MAX_LAYERS]; }
#define W(name) cera_slot_at(b, CERA_SLOT_##name)
#define G(name) cera_slot_global(b, CERA_SLOT_##name)
#define NO_W ((cera_wb){CERA_NO_REF, CERA_NO_REF})

void at_layer(cera_builder *b, int layer);
cera_wb rows_of(cera_builder *b, cera_wb w, int first, int n); /* a slice of a matrix's rows, and of its bias */
cera_ref embed(cera_builder *b, cera_wb w);
cera_ref norm(cera_builder *b, cera_ref x, cera_wb w); /* RMS norm with h->eps */
cera_ref norm_add(cera_builder *b, cera_ref x, cera_wb w, cera_ref residual);
cera_ref layer_norm(cera_builder *b, cera_ref x, cera_wb w);
cera_ref norm_heads(cera_builder *b, cera_norm_kind kind, cera_ref x, cera_wb w,
                    int n_head);                                    /* each head apart; w one head or all */
cera_ref norm_first(cera_builder *b, cera_ref x, cera_wb w, int n); /* the first n elements; the rest passes */
cera_ref matmul(cera_builder *b, cera_ref x, cera_wb w);
cera_ref matmul_act(cera_builder *b, cera_ref x, cera_wb w, cera_glu_kind act);
cera_qkv matmul3(cera_builder *b, cera_ref x, cera_wb wq, cera_wb wk, cera_wb wv);
/* residual + scale * (w a), scale = h->residual_scale. */
cera_ref matmul_add(cera_builder *b, cera_ref a, cera_wb w, cera_ref residual);
/* residual + gate * (w a), gate [rows][1]. */
cera_ref matmul_gated_add(cera_builder *b, cera_ref a, cera_wb w, cera_ref gate, cera_ref residual);
cera_ref glu(cera_builder *b, cera_ref x, cera_wb gate, cera_wb up, cera_glu_kind act);
cera_ref gate(cera_builder *b, cera_ref x, cera_wb w);
/* Norms may be NO_W. Uses the layer's KV heads and window; rope: b->rope, b->rope_swa or -1. */
cera_qkv rope_kv(cera_builder *b, cera_qkv a, cera_wb q_norm, cera_wb k_norm, int rope);
cera_ref attend(cera_builder *b, cera_qkv a, cera_wb sinks);
cera_ref shortconv(cera_builder *b, cera_ref x, cera_wb w);
/* residual + experts(x), routed by ffn_gate_inp (and exp_probs_b) of the layer. */
cera_ref experts(cera_builder *b, cera_ref x, cera_glu_kind act, cera_ref residual);
/* MLA: out[h] = w[h] in[h][first..]; pass_rest appends the rest of the input head. */
cera_ref heads(cera_builder *b, cera_ref x, cera_wb w, int n_head, int in_stride, int out_stride, bool pass_rest);
/* q [n_head][d_k], k [d_k] shared by all heads, V the first d_v of K. */
cera_ref attend_latent(cera_builder *b, cera_qkv a, int d_k, int d_v, int rope, float scale);
void logits(cera_builder *b, cera_ref x, cera_wb w);
cera_wb output_or_embedding(const cera_builder *b); /* the output matrix, or the tied embedding */

/* ---- families ---------------------------------------------------------------------------------------------------- */

typedef struct cera_family {
    const char *arch;
    cera_status (*keys)(cera_hparams *h, cera_error *e);
    const cera_tensor_rule *tensors;
    int n_tensors;
    void (*build)(cera_builder *b, const cera_hparams *h);
} cera_family;

#define FAMILY(name, keys, tensors, build) \
    { name, keys, tensors, (int)(sizeof(tensors) / sizeof(tensors)[0]), build }

#endif
