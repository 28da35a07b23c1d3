/* encode_neon.c: activations to int8 in groups of 32, on NEON. Numbers: ref/encode.c, bit for bit; vcvtnq rounds to nearest
 * even. */
#include <arm_neon.h>
#include "kernels/arm/matmul_arm.h"
#include "kernels/ref/quant_block.h"

/* 16 values to bytes; returns their sum. */
static int quantize16(const float *x, float inverse, int8_t *q) {
    int32x4_t v[4];
    for (int i = 0; i < 4; i++) v[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), inverse));
    int16x8_t a = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1])), b = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
    vst1q_s8(q, vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
    return vaddvq_s16(vaddq_s16(a, b));
}

static void encode_q8_neon(const float *x, int k, const cera_acts *out, int column) {
    for (int b = 0; b < k / 32; b++, x += 32) {
        size_t at = (size_t)b * (size_t)out->n + (size_t)column;
        uint32x4_t most4 = vdupq_n_u32(0);
        for (int i = 0; i < 32; i += 4)
            most4 = vmaxq_u32(most4, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), vdupq_n_u32(0x7fffffff)));
        uint32_t most = vmaxvq_u32(most4);
        float amax = cera_quant_f32(most), d = 0;
        int sum0 = 0, sum1 = 0;
        if (most < 0x7f800000 && amax >= 0x1p-118f) {
            d = amax / 127;
            sum0 = quantize16(x, 127 / amax, out->q + at * 32);
            sum1 = quantize16(x + 16, 127 / amax, out->q + at * 32 + 16);
        } else {
            if (most >= 0x7f800000) d = cera_quant_f32(0x7fc00000);
            memset(out->q + at * 32, 0, 32);
        }
        out->d[at] = d;
        out->s[at] = d * (float)(sum0 + sum1);
        out->sum[at] = sum0 + sum1;
        out->sum16[at * 2] = (int16_t)sum0;
        out->sum16[at * 2 + 1] = (int16_t)sum1;
        out->s16[at * 2] = d * (float)sum0;
        out->s16[at * 2 + 1] = d * (float)sum1;
    }
}

void cera_kernels_encode_neon(cera_kernels *k) { k->encode_q8 = encode_q8_neon; }
