/* nn_vec_neon.h: sixteen f32 lanes as four registers, for nn_tmpl.h. Needs what every AArch64 processor has.
 * Every operation rounds once, as IEEE says; no reciprocal or square root estimates. Comparisons choose explicitly, because the
 * minimum and maximum instructions treat NaN in another way than the other processors' do. */
#ifndef CERA_KERNELS_NN_VEC_NEON_H
#define CERA_KERNELS_NN_VEC_NEON_H

#include <arm_neon.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NN_TIER(name) name##_neon

typedef struct v16 {
    float32x4_t a, b, c, d; /* lanes 0..3, 4..7, 8..11, 12..15 */
} v16;

static inline v16 v16_make(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) { return (v16){a, b, c, d}; }
static inline v16 v16_set(float x) { return v16_make(vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x)); }
static inline v16 v16_load(const float *p) {
    return v16_make(vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12));
}
static inline void v16_store(float *p, v16 x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}
static inline v16 v16_load_n(const float *p, int n) {
    float all[16] = {0};
    memcpy(all, p, (size_t)n * sizeof *p);
    return v16_load(all);
}
static inline void v16_store_n(float *p, v16 x, int n) {
    float all[16];
    v16_store(all, x);
    memcpy(p, all, (size_t)n * sizeof *p);
}
static inline v16 v16_add(v16 x, v16 y) {
    return v16_make(vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d));
}
static inline v16 v16_sub(v16 x, v16 y) {
    return v16_make(vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d));
}
static inline v16 v16_mul(v16 x, v16 y) {
    return v16_make(vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d));
}
static inline v16 v16_div(v16 x, v16 y) {
    return v16_make(vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d));
}
static inline v16 v16_fma(v16 x, v16 y, v16 z) {
    return v16_make(vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d));
}
static inline v16 v16_fnma(v16 x, v16 y, v16 z) { /* z - x y */
    return v16_make(vfmsq_f32(z.a, x.a, y.a), vfmsq_f32(z.b, x.b, y.b), vfmsq_f32(z.c, x.c, y.c), vfmsq_f32(z.d, x.d, y.d));
}
static inline v16 v16_abs(v16 x) { return v16_make(vabsq_f32(x.a), vabsq_f32(x.b), vabsq_f32(x.c), vabsq_f32(x.d)); }
static inline v16 v16_copysign(v16 x, v16 s) {
    const uint32x4_t sign = vdupq_n_u32(0x80000000);
    return v16_make(vbslq_f32(sign, s.a, x.a), vbslq_f32(sign, s.b, x.b), vbslq_f32(sign, s.c, x.c), vbslq_f32(sign, s.d, x.d));
}
/* a < b ? x : y, false when either is NaN. */
static inline v16 v16_if_less(v16 a, v16 b, v16 x, v16 y) {
    return v16_make(vbslq_f32(vcltq_f32(a.a, b.a), x.a, y.a), vbslq_f32(vcltq_f32(a.b, b.b), x.b, y.b),
                    vbslq_f32(vcltq_f32(a.c, b.c), x.c, y.c), vbslq_f32(vcltq_f32(a.d, b.d), x.d, y.d));
}
static inline v16 v16_if_nan(v16 a, v16 x, v16 y) {
    return v16_make(vbslq_f32(vceqq_f32(a.a, a.a), y.a, x.a), vbslq_f32(vceqq_f32(a.b, a.b), y.b, x.b),
                    vbslq_f32(vceqq_f32(a.c, a.c), y.c, x.c), vbslq_f32(vceqq_f32(a.d, a.d), y.d, x.d));
}
/* x > m ? x : m */
static inline v16 v16_larger(v16 x, v16 m) { return v16_if_less(m, x, x, m); }
static inline int v16_any_equal(v16 x, v16 y) {
    uint32x4_t low = vorrq_u32(vceqq_f32(x.a, y.a), vceqq_f32(x.b, y.b));
    uint32x4_t high = vorrq_u32(vceqq_f32(x.c, y.c), vceqq_f32(x.d, y.d));
    return vmaxvq_u32(vorrq_u32(low, high)) != 0;
}
static inline float32x4_t nn_times_2n(float32x4_t p, float32x4_t z) {
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), vshlq_n_u32(vreinterpretq_u32_f32(z), 23)));
}
/* p times 2^n where the low bits of z hold n. */
static inline v16 v16_times_2n(v16 p, v16 z) {
    return v16_make(nn_times_2n(p.a, z.a), nn_times_2n(p.b, z.b), nn_times_2n(p.c, z.c), nn_times_2n(p.d, z.d));
}
static inline float v16_first(v16 x) { return vgetq_lane_f32(x.a, 0); }
static inline float v16_tree(v16 x) {
    float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
static inline float v16_largest(v16 x) { /* no NaN among them */
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d)));
}

/* p[0], p[0], p[1], p[1], ... p[7], p[7] */
static inline v16 v16_load_twice(const float *p) {
    float32x4_t x = vld1q_f32(p), y = vld1q_f32(p + 4);
    return v16_make(vzip1q_f32(x, x), vzip2q_f32(x, x), vzip1q_f32(y, y), vzip2q_f32(y, y));
}
static inline v16 v16_swap_pairs(v16 x) {
    return v16_make(vrev64q_f32(x.a), vrev64q_f32(x.b), vrev64q_f32(x.c), vrev64q_f32(x.d));
}
static inline float32x4_t nn_negate_even(float32x4_t x) {
    const uint32x4_t sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000));
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(x), sign));
}
static inline v16 v16_negate_even(v16 x) {
    return v16_make(nn_negate_even(x.a), nn_negate_even(x.b), nn_negate_even(x.c), nn_negate_even(x.d));
}
static inline v16 v16_gather(const float *p, int stride) {
    float all[16];
    for (int i = 0; i < 16; i++) all[i] = p[(ptrdiff_t)i * stride];
    return v16_load(all);
}

static inline uint16x4_t nn_bits_bf16(float32x4_t x) {
    uint32x4_t u = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd), quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}
static inline void v16_store_bf16(uint16_t *p, v16 x) {
    vst1_u16(p, nn_bits_bf16(x.a));
    vst1_u16(p + 4, nn_bits_bf16(x.b));
    vst1_u16(p + 8, nn_bits_bf16(x.c));
    vst1_u16(p + 12, nn_bits_bf16(x.d));
}
static inline uint16x4_t nn_bits_f16(float32x4_t x) { return vreinterpret_u16_f16(vcvt_f16_f32(x)); }
static inline void v16_store_f16(uint16_t *p, v16 x) {
    vst1_u16(p, nn_bits_f16(x.a));
    vst1_u16(p + 4, nn_bits_f16(x.b));
    vst1_u16(p + 8, nn_bits_f16(x.c));
    vst1_u16(p + 12, nn_bits_f16(x.d));
}

/* p[2 i + odd] = x[i] for i < n. The other half of each pair may belong to another thread at this moment and is not touched. */
static inline void nn_store_every_second(uint16_t *p, int odd, const uint16_t *x, int n) {
    for (int i = 0; i < n; i++) p[2 * (size_t)i + (size_t)odd] = x[i];
}

#endif
