/* quant_neon.h: one 32-element sub-block of a row to signed bytes and scales, on NEON; every quantized type. Owns the packed
 * layouts in registers; does not own the multiplication or the order of sums (matmul_tmpl.h). The values are those of
 * ref/quant_block.h: integers q[32] and, per half of 16, scale, d and min. */
#ifndef CERA_KERNELS_ARM_QUANT_NEON_H
#define CERA_KERNELS_ARM_QUANT_NEON_H

#include <arm_neon.h>
#include <string.h>
#include "kernels/kernels.h"
#include "kernels/ref/quant_block.h"

#define INLINE static inline __attribute__((always_inline))

/* Scales of one row's sub-block: d and min a half (d holds d * scale, for FOLD types d alone), and the integer sub-scales. */
typedef struct row_scales {
    float d[2], m[2];
    int32_t fold[2];
} row_scales;

typedef struct row_bytes32 {
    int8x16_t lo, hi; /* elements 0..15, 16..31 */
} row_bytes32;

INLINE int is_split(cera_dtype t) { return t == CERA_Q6_K; }
INLINE int is_fold(cera_dtype t) { return t == CERA_Q2_K || t == CERA_Q3_K; }
INLINE int n_mins(cera_dtype t) {
    return t == CERA_Q2_K ? 2 : t == CERA_Q4_1 || t == CERA_Q5_1 || t == CERA_Q4_K || t == CERA_Q5_K ? 1 : 0;
}

INLINE float f16_at(const uint8_t *p) {
    uint16_t h;
    memcpy(&h, p, 2);
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}
INLINE void same_scales(row_scales *s, float d, float m) { s->d[0] = s->d[1] = d, s->m[0] = s->m[1] = m; }

INLINE row_bytes32 nibbles(const uint8_t *p) {
    uint8x16_t v = vld1q_u8(p);
    row_bytes32 b = {vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(v, 4))};
    return b;
}
/* 16 bits, one a byte, to 0 or `value`. */
INLINE int8x16_t bits16(const uint8_t *p, int value) {
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t v = vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1]));
    return vreinterpretq_s8_u8(vandq_u8(vtstq_u8(v, vld1q_u8(bit)), vdupq_n_u8((uint8_t)value)));
}
INLINE row_bytes32 fifth_bits(row_bytes32 b, const uint8_t *qh) {
    b.lo = vorrq_s8(b.lo, bits16(qh, 16));
    b.hi = vorrq_s8(b.hi, bits16(qh + 2, 16));
    return b;
}
INLINE row_bytes32 minus(row_bytes32 b, int offset) {
    b.lo = vsubq_s8(b.lo, vdupq_n_s8((int8_t)offset));
    b.hi = vsubq_s8(b.hi, vdupq_n_s8((int8_t)offset));
    return b;
}
INLINE row_bytes32 look_up(row_bytes32 b, const int8_t *values) {
    int8x16_t table = vld1q_s8(values);
    b.lo = vqtbl1q_s8(table, vreinterpretq_u8_s8(b.lo));
    b.hi = vqtbl1q_s8(table, vreinterpretq_u8_s8(b.hi));
    return b;
}
/* (p[i] >> down) & mask, << up, for 16 bytes; `down` may vary. */
INLINE int8x16_t field(const uint8_t *p, int down, int mask, int up) {
    uint8x16_t v = vandq_u8(vshlq_u8(vld1q_u8(p), vdupq_n_s8((int8_t)-down)), vdupq_n_u8((uint8_t)mask));
    return vreinterpretq_s8_u8(vshlq_u8(v, vdupq_n_s8((int8_t)up)));
}
INLINE row_bytes32 fields(const uint8_t *p, int down, int mask, int up) {
    row_bytes32 b = {field(p, down, mask, up), field(p + 16, down, mask, up)};
    return b;
}
INLINE row_bytes32 either(row_bytes32 a, row_bytes32 b) {
    a.lo = vorrq_s8(a.lo, b.lo);
    a.hi = vorrq_s8(a.hi, b.hi);
    return a;
}

/* Types whose block is the sub-block. */
INLINE row_bytes32 load_small(cera_dtype t, const uint8_t *p, row_scales *s) {
    int has_min = t == CERA_Q4_1 || t == CERA_Q5_1;
    row_bytes32 b;
    same_scales(s, t == CERA_MXFP4 ? cera_quant_e8m0_half(p[0]) : f16_at(p), has_min ? f16_at(p + 2) : 0);
    switch (t) {
    case CERA_Q4_0: return minus(nibbles(p + 2), 8);
    case CERA_Q4_1: return nibbles(p + 4);
    case CERA_Q5_0: return minus(fifth_bits(nibbles(p + 6), p + 2), 16);
    case CERA_Q5_1: return fifth_bits(nibbles(p + 8), p + 4);
    case CERA_Q8_0:
        b.lo = vld1q_s8((const int8_t *)p + 2);
        b.hi = vld1q_s8((const int8_t *)p + 18);
        return b;
    case CERA_MXFP4: return look_up(nibbles(p + 1), cera_quant_mxfp4_values);
    default: return look_up(nibbles(p + 2), cera_quant_iq4_values);
    }
}

INLINE void scales_q45_k(const uint8_t *p, int j, row_scales *s) {
    const uint8_t *q = p + 4;
    int scale = j < 4 ? q[j] & 63 : (q[j + 4] & 15) | (q[j - 4] >> 6) << 4;
    int min = j < 4 ? q[j + 4] & 63 : (q[j + 4] >> 4) | (q[j] >> 6) << 4;
    same_scales(s, f16_at(p) * (float)scale, -(f16_at(p + 2) * (float)min));
}

INLINE int q3_k_scale(const uint8_t *s, int i) {
    return ((s[i % 8] >> (i / 8) * 4 & 15) | (s[8 + i % 4] >> (i / 4) * 2 & 3) << 4) - 32;
}

/* Sub-block j of a superblock at p. */
INLINE row_bytes32 load_super(cera_dtype t, const uint8_t *p, int j, row_scales *s) {
    switch (t) {
    case CERA_Q4_K: scales_q45_k(p, j, s); return fields(p + 16 + j / 2 * 32, j % 2 * 4, 15, 0);
    case CERA_Q5_K:
        scales_q45_k(p, j, s);
        return either(fields(p + 48 + j / 2 * 32, j % 2 * 4, 15, 0), fields(p + 16, j, 1, 4));
    case CERA_Q6_K:
        for (int h = 0; h < 2; h++) s->d[h] = f16_at(p + 208) * (float)(int8_t)p[192 + 2 * j + h];
        return minus(
            either(fields(p + j / 4 * 64 + j % 2 * 32, j % 4 / 2 * 4, 15, 0), fields(p + 128 + j / 4 * 32, j % 4 * 2, 3, 4)),
            32);
    case CERA_Q3_K:
        same_scales(s, f16_at(p + 108), 0);
        for (int h = 0; h < 2; h++) s->fold[h] = q3_k_scale(p + 96, 2 * j + h);
        return minus(either(fields(p + 32 + j / 4 * 32, j % 4 * 2, 3, 0), fields(p, j, 1, 2)), 4);
    case CERA_Q2_K:
        s->d[0] = s->d[1] = f16_at(p + 80);
        for (int h = 0; h < 2; h++) {
            s->fold[h] = p[2 * j + h] & 15;
            s->m[h] = -(f16_at(p + 82) * (float)(p[2 * j + h] >> 4));
        }
        return fields(p + 16 + j / 4 * 32, j % 4 * 2, 3, 0);
    default: { /* IQ4_XS */
        int high = (p[2 + j / 4] >> j % 4 * 2 & 3) << 4, low = p[4 + j / 2] >> j % 2 * 4 & 15;
        same_scales(s, f16_at(p) * (float)((low | high) - 32), 0);
        return look_up(nibbles(p + 8 + 16 * j), cera_quant_iq4_values);
    }
    }
}

#endif
