/* encode_avx512.c: activations to int8 in groups of 32, on AVX-512. Numbers: ref/encode.c, bit for bit; the conversion rounds
 * to nearest even as rintf does. Cost: two registers a group, about 30 instructions. */
#include <immintrin.h>
#include "kernels/kernels.h"
#include "kernels/x86/matmul_x86.h"

static void encode_q8_avx512(const float *x, int k, const cera_acts *out, int column) {
    __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    for (int b = 0; b < k / 32; b++, x += 32) {
        size_t at = (size_t)b * (size_t)out->n + (size_t)column;
        __m512 lo = _mm512_loadu_ps(x), hi = _mm512_loadu_ps(x + 16);
        __m512i bits = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(lo), magnitude),
                                        _mm512_and_si512(_mm512_castps_si512(hi), magnitude));
        uint32_t most = _mm512_reduce_max_epu32(bits);
        float amax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)most))), d = 0;
        __m512i q_lo = _mm512_setzero_si512(), q_hi = q_lo;
        if (most >= 0x7f800000) {
            d = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(0x7fc00000)));
        } else if (amax >= 0x1p-118f) {
            __m512 inverse = _mm512_set1_ps(127 / amax);
            d = amax / 127;
            q_lo = _mm512_cvtps_epi32(_mm512_mul_ps(lo, inverse));
            q_hi = _mm512_cvtps_epi32(_mm512_mul_ps(hi, inverse));
        }
        _mm_storeu_si128((void *)(out->q + at * 32), _mm512_cvtepi32_epi8(q_lo));
        _mm_storeu_si128((void *)(out->q + at * 32 + 16), _mm512_cvtepi32_epi8(q_hi));
        int sum0 = _mm512_reduce_add_epi32(q_lo), sum1 = _mm512_reduce_add_epi32(q_hi);
        out->d[at] = d;
        out->s[at] = d * (float)(sum0 + sum1);
        out->sum[at] = sum0 + sum1;
        out->sum16[at * 2] = (int16_t)sum0;
        out->sum16[at * 2 + 1] = (int16_t)sum1;
        out->s16[at * 2] = d * (float)sum0;
        out->s16[at * 2 + 1] = d * (float)sum1;
    }
}

void cera_kernels_encode_avx512(cera_kernels *k) { k->encode_q8 = encode_q8_avx512; }
