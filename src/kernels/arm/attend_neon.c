/* attend_neon.c: attention's scores and values on NEON, for all three page types, in f32 products.
 * Numbers and tiles: attend_tmpl.h; equal to ref/attend.c to the bit. */
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 24 accumulators, at most 4 vectors of K or V or as many multipliers: 29 of 32 registers. */
enum { VF = 4, ATTEND_NQ = 8, ATTEND_ACC = 24 };

typedef float32x4_t vf;

static inline vf vf_zero(void) { return vdupq_n_f32(0.0f); }
static inline vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline vf vf_load(const char *p) { return vld1q_f32((const float *)(const void *)p); }
static inline vf vf_load_f16(const char *p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(const void *)p)));
}
static inline vf vf_load_bf16(const char *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *)(const void *)p), 16));
}
/* The first n elements; head sizes that are no multiple of 4 are rare, and the copy is on the stack. */
static inline vf vf_load_n(const char *p, int n) {
    float part[4] = {0};
    memcpy(part, p, (size_t)n * 4);
    return vld1q_f32(part);
}
static inline vf vf_load_f16_n(const char *p, int n) {
    uint16_t part[4] = {0};
    memcpy(part, p, (size_t)n * 2);
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(part)));
}
static inline vf vf_load_bf16_n(const char *p, int n) {
    uint16_t part[4] = {0};
    memcpy(part, p, (size_t)n * 2);
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(part), 16));
}
static inline void vf_store(float *p, vf x) { vst1q_f32(p, x); }
static inline void vf_store_n(float *p, vf x, int n) {
    float part[4];
    vf_store(part, x);
    memcpy(p, part, (size_t)n * sizeof *p);
}
static inline vf vf_spread(const float *p) { return vld1q_dup_f32(p); }
static inline vf vf_spread_pair(const float *p) {
    uint64_t pair;
    memcpy(&pair, p, sizeof pair);
    return vreinterpretq_f32_u64(vdupq_n_u64(pair));
}
/* gcc drops calls of a function that only prefetches, unless it is inlined before that is noticed. */
static inline __attribute__((always_inline)) void vf_prefetch(const char *p) { __builtin_prefetch(p, 0, 2); }
/* a[0] + a[1], a[2] + a[3], then those of b. */
static inline vf vf_pair_sums(vf a, vf b) { return vpaddq_f32(a, b); }

#define ATTEND_TIER(name) name##_neon
#include "kernels/attend_tmpl.h"
