/* plan.h: the language between models and backends. A family's builder writes a flat array of logical operations once, at load;
 * a backend compiles it. No arithmetic here, no buffers, no tiles, no types of activations.
 *
 * A value (cera_ref) is a matrix [rows of the step][width] f32. Operations run in order; each is run once a step, whatever the
 * number of sequences in it. */
#ifndef CERA_PLAN_PLAN_H
#define CERA_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "base/arena.h"
#include "format/dtype.h"

typedef int32_t cera_ref;        /* index into plan->values; CERA_NO_REF: none */
typedef int32_t cera_weight_ref; /* index into plan->weights; CERA_NO_REF: none */
enum { CERA_NO_REF = -1 };

/* A weight as the backend sees it: a matrix of n rows of k elements in a file's type, perhaps one of `count` (experts, heads).
 */
typedef struct cera_weight {
    const char *name; /* tensor it came from */
    cera_dtype dtype;
    int64_t k, n;  /* elements of a row, rows */
    int64_t count; /* matrices: experts or heads; 1 otherwise */
    const uint8_t *data;
    uint64_t row_bytes, matrix_bytes;
} cera_weight;

typedef enum cera_op_kind {
    CERA_OP_EMBED,     /* out0 = rows of w0 by token id, or the step's embedding rows; times scale */
    CERA_OP_NORM,      /* out0 = norm(in0) * w0 (+ w1) (+ in1) */
    CERA_OP_MATMUL,    /* out_i = w_i in0 (+ bias_i), i < n_out <= 3; then out0 = in1 + scale * rowscale(in2) * act(out0) */
    CERA_OP_GLU,       /* out0 = act(w0 in0 + bias0) * (w1 in0 + bias1) */
    CERA_OP_ROPE_KV,   /* q = in0, k = in1, v = in2 (v may be none): out0 = q normalised and rotated; k, v into the pages of the
                          layer */
    CERA_OP_ATTEND,    /* out0 = attention of q = in0 over the layer's pages; w0: sinks [n_head] */
    CERA_OP_HEADS,     /* out0[h] = w0[h] in0[h] for each head: MLA's per-head matrices; in/out strides by head */
    CERA_OP_SHORTCONV, /* out0 = gated short convolution of in0 [3h] with w0 [h][l], state of the layer */
    CERA_OP_ROUTE, /* out0 = chosen experts' ids and weights (width 2 * n_used) from logits w0 in0 (+ bias0); w1: selection bias
                    */
    CERA_OP_EXPERTS, /* out0 = in2 + sum over chosen of weight * down(glu(gate, up)(in0)); in1: routes; w0..2 gate up down,
                        biases 0..2 */
    CERA_OP_GATE,    /* out0 (width 1) = sigmoid(w0 . in0) */
    CERA_OP_LOGITS,  /* rows that want logits: w0 in0, times scale, soft cap; in0 is the final normalised state */
    CERA_OP_COUNT
} cera_op_kind;

const char *cera_op_name(cera_op_kind k); /* "ROPE_KV" */

typedef enum { CERA_NORM_RMS, CERA_NORM_LAYER } cera_norm_kind;
typedef enum {
    CERA_GLU_SILU,
    CERA_GLU_GELU,
    CERA_GLU_GELU_ERF,
    CERA_GLU_RELU_SQ,
    CERA_GLU_OAI,
    CERA_GLU_NONE
} cera_glu_kind; /* order of cera_activation */

/* One rotary setting; several layers share it. */
typedef struct cera_rope {
    int n_rot;              /* elements rotated, even; 0: no rotation */
    int rot_first;          /* first rotated element of a head */
    bool neox;              /* pairs (i, i + n_rot/2), else (2i, 2i + 1) */
    const double *inv_freq; /* [n_rot/2], scaling and factors already in it */
    double scale;           /* of cos and sin (YaRN's attention factor) */
} cera_rope;

/* Layers whose keys and values are kept in the same pages: same span and entry size. */
typedef struct cera_kv_group {
    int n_layers;
    int n_head_kv, d_k, d_v;
    bool v_is_k; /* V is the first d_v elements of K (MLA): there is no V to compute; a backend may keep it beside K */
    int window;  /* a query sees the keys with index > its own - window; 0: all */
} cera_kv_group;

typedef struct cera_op {
    cera_op_kind kind;
    int layer; /* model layer, -1 outside */
    cera_ref in[3], out[3];
    int n_out;
    cera_weight_ref w[3], bias[3];
    union {
        struct {
            float scale;
        } embed;
        struct {
            cera_norm_kind kind;
            float eps;
            int groups; /* parts of the row normalised apart (heads) */
            int n;      /* leading elements that are normalised, the rest is copied; 0: all */
        } norm;
        struct {
            float scale;
            cera_glu_kind act;
        } matmul; /* act CERA_GLU_NONE: none */
        struct {
            cera_glu_kind act;
        } glu;
        struct {
            int group, group_layer; /* KV group and the layer's place in it */
            int n_head, rope;       /* rope: index into plan->ropes, or -1 */
            float eps;              /* of the head norms w0 (q) and w1 (k), when given */
            float temp_scale;
            int temp_floor; /* mistral3: q *= 1 + temp_scale * ln(1 + floor(pos / temp_floor)); 0: off */
        } rope_kv;
        struct {
            int group, group_layer, n_head;
            float scale, softcap;
        } attend;
        struct {
            int n_head;
            int in_stride, in_first, out_stride, out_first;
            bool pass_rest;
        } heads;
        struct {
            int state_layer, l;
        } shortconv; /* place among the layers that have state */
        struct {
            int n_experts, n_used, n_groups, n_groups_used;
            int gating; /* 1 softmax, 2 sigmoid, 3 softmax over the chosen */
            bool normalise;
            float scale;
            float norm_min;
        } route;
        struct {
            int n_used;
            cera_glu_kind act;
            float scale;
        } experts;
        struct {
            float scale, softcap;
        } logits;
    } p;
} cera_op;

typedef struct cera_plan {
    int n_ctx_train;
    int n_embd, n_vocab, n_layer;
    int n_ops, n_values, n_weights, n_ropes, n_groups;
    cera_op *ops;
    int *value_width; /* [n_values] */
    cera_weight *weights;
    cera_rope *ropes;
    cera_kv_group *groups;
    int state_layers, state_width; /* recurrent state: f32 [state_layers][state_width] a sequence; 0: none */
    bool causal;
} cera_plan;

#endif
