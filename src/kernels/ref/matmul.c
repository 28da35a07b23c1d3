/* matmul.c: the C reference of every weight type's matmul, and with it the definition of the numbers ("Same bits",
 * docs/DESIGN.md): every tier must give these bits for the quantized types, for any number of columns. Never optimised.
 *
 * Quantized types. One f32 accumulator an output, starting at +0, 32-element sub-blocks ascending. With q, scale, d, min of
 * quant_block.h, a the activation's bytes and d_a, s = d_a * sum(a), s16[h] = d_a * sum(a of half h) of cera_acts, in each
 * sub-block: WHOLE  q4_0 q5_0 q8_0 iq4_nl mxfp4 iq4_xs, q4_1 q5_1 q4_k q5_k acc = fma((d * scale) * d_a, (float)sum(q * a),
 * acc) SPLIT  q6_k: the same for each half of 16, first half first FOLD   q3_k q2_k acc = fma(d * d_a, (float)sum(scale[half] *
 * q * a), acc) then   q4_1 q5_1 q4_k q5_k      acc = fma(min, s, acc) q2_k                     acc = fma(min[0], s16[0], acc),
 * acc = fma(min[1], s16[1], acc) d * scale and dmin * m are exact in f32 (11 by 7 bits); d_w * d_a rounds once. The integer
 * sums are exact in int32: at most 32 * 128 * 127 < 2^20, with the offsets of unsigned forms < 2^21; so they are exact as f32,
 * and any way to form them will do. NaN and infinity pass through: where the reference is NaN so must a tier be.
 *
 * Float types. 16 accumulators: lane l takes elements l, l + 16, ... ascending, acc[l] = fma(w, x, acc[l]); then the tree
 * l += l + 8, l += l + 4, l += l + 2, l += l + 1. BF16 weights take bf16 activations, widened; tiers with a bf16 dot product
 * have an order of their own (stated there), so float types are checked against a bound and, within a tier, for equal columns.
 */
#include <math.h>
#include "kernels/ref/matmul_ref.h"
#include "kernels/ref/quant_block.h"

static int32_t dot16(const int8_t *q, const int8_t *a) {
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += q[i] * a[i];
    return sum;
}

static float step(const cera_quant_block *w, cera_quant_scheme scheme, int mins, const cera_acts *x, size_t at, float acc) {
    const int8_t *a = x->q + at * 32;
    float d_a = x->d[at];
    int32_t first = dot16(w->q, a), second = dot16(w->q + 16, a + 16);
    if (scheme == CERA_QUANT_WHOLE) {
        acc = fmaf(w->d * (float)w->scale[0] * d_a, (float)(first + second), acc);
    } else if (scheme == CERA_QUANT_SPLIT) {
        acc = fmaf(w->d * (float)w->scale[0] * d_a, (float)first, acc);
        acc = fmaf(w->d * (float)w->scale[1] * d_a, (float)second, acc);
    } else {
        acc = fmaf(w->d * d_a, (float)(w->scale[0] * first + w->scale[1] * second), acc);
    }
    if (mins == 1) acc = fmaf(w->min[0], x->s[at], acc);
    for (int h = 0; mins == 2 && h < 2; h++) acc = fmaf(w->min[h], x->s16[at * 2 + (size_t)h], acc);
    return acc;
}

static void matmul_quant(cera_dtype t, const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0,
                         int n_cols, float *tile) {
    cera_quant_scheme scheme = cera_quant_scheme_of(t);
    int mins = cera_quant_mins(t);
    for (int r = 0; r < n_rows; r++) {
        for (int c = 0; c < n_cols; c++) tile[c * CERA_PANEL_ROWS + r] = 0;
        for (int b = 0; b < k / 32; b++) {
            cera_quant_block block;
            cera_quant_block_decode(t, (const uint8_t *)w + (size_t)r * row_bytes, b, &block);
            for (int c = 0; c < n_cols; c++) {
                float *acc = &tile[c * CERA_PANEL_ROWS + r];
                *acc = step(&block, scheme, mins, x, (size_t)b * (size_t)x->n + (size_t)(c0 + c), *acc);
            }
        }
    }
}

static float tree16(float *l) {
    for (int width = 8; width; width /= 2) {
        for (int i = 0; i < width; i++) l[i] += l[i + width];
    }
    return l[0];
}

static float load_float(cera_dtype t, const uint8_t *row, int i) {
    uint16_t h;
    float f;
    if (t == CERA_F32) {
        memcpy(&f, row + 4 * (size_t)i, 4);
        return f;
    }
    memcpy(&h, row + 2 * (size_t)i, 2);
    return t == CERA_F16 ? cera_quant_f16(h) : cera_quant_bf16(h);
}

static void matmul_float(cera_dtype t, const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0,
                         int n_cols, float *tile) {
    for (int r = 0; r < n_rows; r++) {
        const uint8_t *row = (const uint8_t *)w + (size_t)r * row_bytes;
        for (int c = 0; c < n_cols; c++) {
            size_t column = (size_t)(c0 + c);
            float lanes[16] = {0};
            for (int i = 0; i < k; i++) {
                float a = t == CERA_BF16 ? cera_quant_bf16(x->bf16[column * (size_t)k + (size_t)i])
                                         : x->f32[column * x->f32_stride + (size_t)i];
                lanes[i % 16] = fmaf(load_float(t, row, i), a, lanes[i % 16]);
            }
            tile[c * CERA_PANEL_ROWS + r] = tree16(lanes);
        }
    }
}

#define MATMUL(name, type, body)                                                                                              \
    static void matmul_##name##_c(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols, \
                                  float *tile) {                                                                              \
        body(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                             \
    }
MATMUL(f32, CERA_F32, matmul_float)
MATMUL(f16, CERA_F16, matmul_float)
MATMUL(bf16, CERA_BF16, matmul_float)
MATMUL(q4_0, CERA_Q4_0, matmul_quant)
MATMUL(q4_1, CERA_Q4_1, matmul_quant)
MATMUL(q5_0, CERA_Q5_0, matmul_quant)
MATMUL(q5_1, CERA_Q5_1, matmul_quant)
MATMUL(q8_0, CERA_Q8_0, matmul_quant)
MATMUL(q2_k, CERA_Q2_K, matmul_quant)
MATMUL(q3_k, CERA_Q3_K, matmul_quant)
MATMUL(q4_k, CERA_Q4_K, matmul_quant)
MATMUL(q5_k, CERA_Q5_K, matmul_quant)
MATMUL(q6_k, CERA_Q6_K, matmul_quant)
MATMUL(iq4_nl, CERA_IQ4_NL, matmul_quant)
MATMUL(iq4_xs, CERA_IQ4_XS, matmul_quant)
MATMUL(mxfp4, CERA_MXFP4, matmul_quant)

void cera_kernels_matmul_ref(cera_kernels *k) {
    CERA_MATMUL_SET(k, CERA_F32, f32, c);
    CERA_MATMUL_SET(k, CERA_F16, f16, c);
    CERA_MATMUL_SET(k, CERA_BF16, bf16, c);
    CERA_MATMUL_SET_QUANTIZED(k, c);
}
