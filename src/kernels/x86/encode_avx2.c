/* encode_avx2.c: activations to int8 in groups of 32, on AVX2. Numbers: ref/encode.c, bit for bit; the conversion rounds to
 * nearest even as rintf does. Cost: four registers a group, about 50 instructions. */
#include <immintrin.h>
#include "kernels/kernels.h"
#include "kernels/x86/matmul_x86.h"

static uint32_t largest_magnitude(const float *x) {
    __m256i magnitude = _mm256_set1_epi32(0x7fffffff), most = _mm256_setzero_si256();
    for (int i = 0; i < 32; i += 8)
        most = _mm256_max_epu32(most, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), magnitude));
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* 16 values to bytes; returns their sum. */
static int quantize16(const float *x, __m256 inverse, int8_t *q) {
    __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
    __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), inverse));
    __m256i h = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm_storeu_si128((void *)q, _mm_packs_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
    __m256i sum = _mm256_add_epi32(a, b);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

static void encode_q8_avx2(const float *x, int k, const cera_acts *out, int column) {
    for (int b = 0; b < k / 32; b++, x += 32) {
        size_t at = (size_t)b * (size_t)out->n + (size_t)column;
        uint32_t most = largest_magnitude(x);
        float amax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)most))), d = 0;
        int sum0 = 0, sum1 = 0;
        if (most < 0x7f800000 && amax >= 0x1p-118f) {
            __m256 inverse = _mm256_set1_ps(127 / amax);
            d = amax / 127;
            sum0 = quantize16(x, inverse, out->q + at * 32);
            sum1 = quantize16(x + 16, inverse, out->q + at * 32 + 16);
        } else {
            if (most >= 0x7f800000) d = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(0x7fc00000)));
            _mm256_storeu_si256((void *)(out->q + at * 32), _mm256_setzero_si256());
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

void cera_kernels_encode_avx2(cera_kernels *k) { k->encode_q8 = encode_q8_avx2; }
