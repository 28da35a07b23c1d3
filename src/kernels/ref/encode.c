/* encode.c: f32 activations to int8 in groups of 32 with an f32 scale; the C reference. Exact: every tier gives these bits.
 *
 * Numbers. amax = largest |x| of the group, d = amax / 127, q = round-half-even(x * (127 / amax)): |x * (127 / amax)| is at
 * most 127 * (1 + 2^-23), so q stays in -127..127. Below 2^-118, where 127 / amax would near overflow, the group is zero. A
 * group that holds an infinity or a NaN has d = NaN (bits 7fc00000) and q = 0, so that every output that depends on it is NaN:
 * a broken activation is never turned into a number. s = d * (float)sum(q), s16[h] = d * (float)sum of half h. */
#include <math.h>
#include "kernels/ref/matmul_ref.h"
#include "kernels/ref/quant_block.h"

static uint32_t largest_magnitude(const float *x) {
    uint32_t most = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        bits &= 0x7fffffff;
        if (bits > most) most = bits;
    }
    return most;
}

static void encode_group(const float *x, const cera_acts *out, size_t at) {
    uint32_t most = largest_magnitude(x);
    float amax = cera_quant_f32(most), d = 0, inverse = 0;
    int8_t *q = out->q + at * 32;
    int sum[2] = {0, 0};
    if (most >= 0x7f800000) {
        d = cera_quant_f32(0x7fc00000);
    } else if (amax >= 0x1p-118f) {
        d = amax / 127;
        inverse = 127 / amax;
    }
    for (int i = 0; i < 32; i++) {
        q[i] = inverse != 0 ? (int8_t)rintf(x[i] * inverse) : 0;
        sum[i / 16] += q[i];
    }
    out->d[at] = d;
    out->s[at] = d * (float)(sum[0] + sum[1]);
    out->sum[at] = sum[0] + sum[1];
    for (size_t h = 0; h < 2; h++) {
        out->sum16[at * 2 + h] = (int16_t)sum[h];
        out->s16[at * 2 + h] = d * (float)sum[h];
    }
}

static void encode_q8_c(const float *x, int k, const cera_acts *out, int column) {
    for (int b = 0; b < k / 32; b++) encode_group(x + 32 * (size_t)b, out, (size_t)b * (size_t)out->n + (size_t)column);
}

void cera_kernels_encode_ref(cera_kernels *k) { k->encode_q8 = encode_q8_c; }
