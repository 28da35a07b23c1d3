/* matmul_arm_tmpl.h: 32 rows x n columns of every quantized type, activations int8 in groups of 32; included once a tier by
 * matmul_<tier>.c, which sets TIER and MATMUL_I8MM, and defines dot16 where MATMUL_I8MM is 0. Owns the loops; does not own the
 * packed layouts (quant_neon.h).
 *
 * Numbers. The recipe of ref/matmul.c, bit for bit: signed bytes, |sum of a half| <= 16 * 128 * 127 < 2^18; q3_k and q2_k
 * multiply the sum of each half by its sub-scale in int32. One conversion, one product of scales, one fma (and those of the min
 * terms).
 *
 * Order. A sub-block of 32 rows is unpacked into 1 KiB on the stack (L1), then the columns stream past it; four rows' sums
 * become one register by pairwise additions, the f32 accumulators are the tile. */
#include <stdbool.h>
#include "kernels/arm/matmul_arm.h"
#include "kernels/arm/quant_neon.h"
#include "kernels/ref/matmul_ref.h"

/* A sub-block of the panel. bytes: [row][32], or with i8mm [row pair][k/8][2][8]. */
typedef struct panel_block {
    int8_t bytes[CERA_PANEL_ROWS * 32];
    float d[2][CERA_PANEL_ROWS], m[2][CERA_PANEL_ROWS];
    int32_t fold[2][CERA_PANEL_ROWS];
} panel_block;

INLINE void load_panel(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int b, panel_block *p) {
    const cera_dtype_info *info = cera_dtype_get(t);
    int per_block = info->block_elements / 32;
    const uint8_t *block = w + (size_t)(b / per_block) * (size_t)info->block_bytes;
    for (int r = 0; r < n_rows; r++, block += row_bytes) {
        row_scales s = {{0, 0}, {0, 0}, {0, 0}};
        row_bytes32 v = per_block == 1 ? load_small(t, block, &s) : load_super(t, block, b % per_block, &s);
        for (int h = 0; h < 2; h++) {
            p->d[h][r] = s.d[h];
            p->m[h][r] = s.m[h];
            p->fold[h][r] = s.fold[h];
        }
#if MATMUL_I8MM
        int8_t *out = p->bytes + r / 2 * 64 + r % 2 * 8;
        vst1_s8(out, vget_low_s8(v.lo));
        vst1_s8(out + 16, vget_high_s8(v.lo));
        vst1_s8(out + 32, vget_low_s8(v.hi));
        vst1_s8(out + 48, vget_high_s8(v.hi));
#else
        vst1q_s8(p->bytes + r * 32, v.lo);
        vst1q_s8(p->bytes + r * 32 + 16, v.hi);
#endif
    }
}

/* sum[c][h]: the sums of four rows from `row` on over half h, for MATMUL_COLS columns. */
#if MATMUL_I8MM
enum { MATMUL_COLS = 2 };
INLINE void sums4(const panel_block *p, int row, const int8_t *q0, const int8_t *q1, int32x4_t sum[MATMUL_COLS][2]) {
    for (int h = 0; h < 2; h++) {
        int32x4_t pair[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
        for (int i = 2 * h; i < 2 * h + 2; i++) {
            int8x16_t a = vcombine_s8(vld1_s8(q0 + 8 * i), vld1_s8(q1 + 8 * i));
            for (int j = 0; j < 2; j++) pair[j] = vmmlaq_s32(pair[j], vld1q_s8(p->bytes + (row / 2 + j) * 64 + 16 * i), a);
        }
        sum[0][h] = vuzp1q_s32(pair[0], pair[1]);
        sum[1][h] = vuzp2q_s32(pair[0], pair[1]);
    }
}
#else
enum { MATMUL_COLS = 1 };
INLINE void sums4(const panel_block *p, int row, const int8_t *q0, const int8_t *q1, int32x4_t sum[MATMUL_COLS][2]) {
    (void)q1;
    for (int h = 0; h < 2; h++) {
        int8x16_t a = vld1q_s8(q0 + 16 * h);
        int32x4_t r[4];
        for (int j = 0; j < 4; j++) r[j] = dot16(vld1q_s8(p->bytes + (row + j) * 32 + 16 * h), a);
        sum[0][h] = vpaddq_s32(vpaddq_s32(r[0], r[1]), vpaddq_s32(r[2], r[3]));
    }
}
#endif

INLINE float32x4_t update(cera_dtype t, const int32x4_t sum[2], const panel_block *p, int row, const cera_acts *x, size_t at,
                          float32x4_t acc) {
    float32x4_t d = vmulq_n_f32(vld1q_f32(&p->d[0][row]), x->d[at]);
    if (is_split(t)) {
        acc = vfmaq_f32(acc, d, vcvtq_f32_s32(sum[0]));
        acc = vfmaq_f32(acc, vmulq_n_f32(vld1q_f32(&p->d[1][row]), x->d[at]), vcvtq_f32_s32(sum[1]));
    } else if (is_fold(t)) {
        int32x4_t both = vmulq_s32(sum[0], vld1q_s32(&p->fold[0][row]));
        acc = vfmaq_f32(acc, d, vcvtq_f32_s32(vmlaq_s32(both, sum[1], vld1q_s32(&p->fold[1][row]))));
    } else {
        acc = vfmaq_f32(acc, d, vcvtq_f32_s32(vaddq_s32(sum[0], sum[1])));
    }
    if (n_mins(t) == 1) acc = vfmaq_f32(acc, vld1q_f32(&p->m[0][row]), vdupq_n_f32(x->s[at]));
    for (int h = 0; n_mins(t) == 2 && h < 2; h++)
        acc = vfmaq_f32(acc, vld1q_f32(&p->m[h][row]), vdupq_n_f32(x->s16[2 * at + (size_t)h]));
    return acc;
}

INLINE void matmul(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                   float *tile) {
    panel_block p;
    memset(&p, 0, sizeof p); /* rows past the last are zero */
    memset(tile, 0, (size_t)n_cols * CERA_PANEL_ROWS * sizeof *tile);
    for (int b = 0; b < k / 32; b++) {
        load_panel(t, w, row_bytes, n_rows, b, &p);
        for (int c = 0; c < n_cols; c += MATMUL_COLS) {
            size_t at = (size_t)b * (size_t)x->n + (size_t)(c0 + c);
            int n = n_cols - c < MATMUL_COLS ? n_cols - c : MATMUL_COLS;
            const int8_t *q = x->q + 32 * at;
            for (int row = 0; row < n_rows; row += 4) {
                int32x4_t sum[MATMUL_COLS][2];
                sums4(&p, row, q, q + 32 * (n - 1), sum);
                for (int i = 0; i < n; i++) {
                    float *out = tile + (size_t)(c + i) * CERA_PANEL_ROWS + row;
                    vst1q_f32(out, update(t, sum[i], &p, row, x, at + (size_t)i, vld1q_f32(out)));
                }
            }
        }
    }
}

#define MATMUL_(name, type, tier)                                                                                      \
    static void matmul_##name##_##tier(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, \
                                       int n_cols, float *tile) {                                                      \
        matmul(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                    \
    }
#define MATMUL(name, type, tier) MATMUL_(name, type, tier)
MATMUL(q4_0, CERA_Q4_0, TIER)
MATMUL(q4_1, CERA_Q4_1, TIER)
MATMUL(q5_0, CERA_Q5_0, TIER)
MATMUL(q5_1, CERA_Q5_1, TIER)
MATMUL(q8_0, CERA_Q8_0, TIER)
MATMUL(q2_k, CERA_Q2_K, TIER)
MATMUL(q3_k, CERA_Q3_K, TIER)
MATMUL(q4_k, CERA_Q4_K, TIER)
MATMUL(q5_k, CERA_Q5_K, TIER)
MATMUL(q6_k, CERA_Q6_K, TIER)
MATMUL(iq4_nl, CERA_IQ4_NL, TIER)
MATMUL(iq4_xs, CERA_IQ4_XS, TIER)
MATMUL(mxfp4, CERA_MXFP4, TIER)
