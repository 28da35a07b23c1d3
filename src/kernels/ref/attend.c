/* attend.c: attention over one segment of 256 keys: scores, softmax, values, and the merge of segments.
 *
 * Numbers. f32 pages: one f32 chain of fma a score (d ascending) and an output (keys ascending). 16-bit pages: elements are
 * taken in pairs, the even ones in one f32 chain and the odd ones in another, which are added at the end; f16 elements are
 * widened to f32 and meet f32 queries; for bf16 pages queries and probabilities are rounded to bf16 first, so that a tier with
 * bf16 products multiplies the same operands (that tier's order within a pair is its own: bf16 is equal within a tier, not
 * between tiers). Everything else is equal on every tier. A key that a query does not see has probability 0 and adds an exact
 * zero, so an output does not depend on how far [first, end) goes; the last addition of +0 makes a zero's sign independent of
 * it too. Pages hold finite numbers only (ref/rope.c). */
#include "kernels/nn_int.h"
#include "kernels/ref/nn_ref.h"

enum { SEGMENT = CERA_SEGMENT_TOKENS, PAGE = CERA_PAGE_TOKENS };

static inline float widen(cera_kv_type t, const void *page, size_t i) {
    if (t == CERA_KV_F32) return ((const float *)page)[i];
    uint16_t h = ((const uint16_t *)page)[i];
    return t == CERA_KV_F16 ? ref_from_f16(h) : ref_from_bf16(h);
}

static inline float operand(cera_kv_type t, float x) { return t == CERA_KV_BF16 ? ref_from_bf16(ref_to_bf16(x)) : x; }

/* Position of element i of key j (0..63) in a page of keys of d elements. */
static inline size_t k_index(cera_kv_type t, int d, int j, int i) {
    if (t == CERA_KV_F32) return ((size_t)(j / 16) * d + i) * 16 + j % 16;
    return (((size_t)(j / 16) * (d / 2) + i / 2) * 16 + j % 16) * 2 + i % 2;
}

static inline size_t v_index(cera_kv_type t, int d, int j, int i) {
    if (t == CERA_KV_F32) return (size_t)j * d + i;
    return ((size_t)(j / 2) * d + i) * 2 + j % 2;
}

static void scores(cera_kv_type t, const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4], int first,
                   int end, float *out) {
    for (int i = 0; i < n_q; i++)
        for (int key = first; key < end; key++) {
            float acc[2] = {0.0f, 0.0f};
            for (int d = 0; d < d_k; d++) {
                float *a = &acc[t == CERA_KV_F32 ? 0 : d % 2];
                float k = widen(t, k_pages[key / PAGE], k_index(t, d_k, key % PAGE, d));
                *a = fmaf(operand(t, q[(size_t)i * q_stride + d]), k, *a);
            }
            out[(size_t)i * SEGMENT + key] = t == CERA_KV_F32 ? acc[0] : acc[0] + acc[1];
        }
}

static void values(cera_kv_type t, const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end, float *o,
                   size_t o_stride) {
    if (t != CERA_KV_F32) {
        first &= ~1;
        end = (end + 1) & ~1;
    }
    for (int i = 0; i < n_q; i++)
        for (int d = 0; d < d_v; d++) {
            float acc[2] = {0.0f, 0.0f};
            for (int key = first; key < end; key++) {
                float *a = &acc[t == CERA_KV_F32 ? 0 : key % 2];
                float v = widen(t, v_pages[key / PAGE], v_index(t, d_v, key % PAGE, d));
                *a = fmaf(operand(t, p[(size_t)i * SEGMENT + key]), v, *a);
            }
            o[(size_t)i * o_stride + d] = (acc[0] + acc[1]) + 0.0f;
        }
}

static void attend_scores_f32_ref(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4], int first,
                                  int end, float *out) {
    scores(CERA_KV_F32, q, q_stride, n_q, d_k, k_pages, first, end, out);
}

static void attend_scores_f16_ref(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4], int first,
                                  int end, float *out) {
    scores(CERA_KV_F16, q, q_stride, n_q, d_k, k_pages, first, end, out);
}

static void attend_scores_bf16_ref(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4], int first,
                                   int end, float *out) {
    scores(CERA_KV_BF16, q, q_stride, n_q, d_k, k_pages, first, end, out);
}

static void attend_values_f32_ref(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end, float *o,
                                  size_t o_stride) {
    values(CERA_KV_F32, p, n_q, d_v, v_pages, first, end, o, o_stride);
}

static void attend_values_f16_ref(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end, float *o,
                                  size_t o_stride) {
    values(CERA_KV_F16, p, n_q, d_v, v_pages, first, end, o, o_stride);
}

static void attend_values_bf16_ref(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end, float *o,
                                   size_t o_stride) {
    values(CERA_KV_BF16, p, n_q, d_v, v_pages, first, end, o, o_stride);
}

static void attend_softmax_ref(float *s, int lo, int hi, float softcap, float *max_out, float *sum_out) {
    float max = -INFINITY, lanes[16] = {0};
    for (int i = lo; i < hi; i++) {
        if (softcap != 0.0f) s[i] = softcap * ref_tanh(s[i] / softcap);
        max = s[i] > max ? s[i] : max;
    }
    for (int i = 0; i < SEGMENT; i++) {
        s[i] = i >= lo && i < hi ? ref_exp(s[i] - max) : 0.0f;
        lanes[i % 16] += s[i];
    }
    *max_out = max;
    *sum_out = ref_tree16(lanes);
}

static void attend_merge_ref(float *m, float *l, float *o, float m2, float l2, const float *o2, int d_v) {
    float max = m2 > *m ? m2 : *m, scale = ref_exp(*m - max), scale2 = ref_exp(m2 - max);
    *m = max;
    *l = fmaf(*l, scale, l2 * scale2);
    for (int d = 0; d < d_v; d++) o[d] = fmaf(o[d], scale, o2[d] * scale2);
}

void cera_kernels_attend_ref(cera_kernels *k) {
    k->attend_scores_f32 = attend_scores_f32_ref;
    k->attend_scores_f16 = attend_scores_f16_ref;
    k->attend_scores_bf16 = attend_scores_bf16_ref;
    k->attend_values_f32 = attend_values_f32_ref;
    k->attend_values_f16 = attend_values_f16_ref;
    k->attend_values_bf16 = attend_values_bf16_ref;
    k->attend_softmax = attend_softmax_ref;
    k->attend_merge = attend_merge_ref;
}
