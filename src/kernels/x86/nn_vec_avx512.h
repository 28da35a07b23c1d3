/* nn_vec_avx512.h: sixteen f32 lanes as one register, for nn_tmpl.h. Needs AVX-512 F BW DQ VL.
 * Every operation rounds once, as IEEE says; no reciprocal or square root estimates. */
#ifndef CERA_KERNELS_NN_VEC_AVX512_H
#define CERA_KERNELS_NN_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/nn_math.h"

#define NN_TIER(name) name##_avx512

typedef __m512 v16;

static inline __mmask16 v16_mask(int n) { return (__mmask16)((1u << n) - 1); }
static inline v16 v16_set(float x) { return _mm512_set1_ps(x); }
static inline v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
static inline v16 v16_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(v16_mask(n), p); }
static inline void v16_store(float *p, v16 x) { _mm512_storeu_ps(p, x); }
static inline void v16_store_n(float *p, v16 x, int n) { _mm512_mask_storeu_ps(p, v16_mask(n), x); }
static inline v16 v16_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
static inline v16 v16_sub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
static inline v16 v16_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
static inline v16 v16_div(v16 a, v16 b) { return _mm512_div_ps(a, b); }
static inline v16 v16_fma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }
static inline v16 v16_fnma(v16 a, v16 b, v16 c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
static inline v16 v16_abs(v16 x) { return _mm512_abs_ps(x); }
static inline v16 v16_copysign(v16 x, v16 sign) {
    return _mm512_or_ps(x, _mm512_and_ps(sign, _mm512_set1_ps(-0.0f))); /* x >= 0 */
}
/* a < b ? x : y, false when either is NaN. */
static inline v16 v16_if_less(v16 a, v16 b, v16 x, v16 y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
static inline v16 v16_if_nan(v16 a, v16 x, v16 y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), y, x); }
/* x > m ? x : m: vmaxps returns its second operand when either is NaN. */
static inline v16 v16_larger(v16 x, v16 m) { return _mm512_max_ps(x, m); }
static inline int v16_any_equal(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ) != 0; }
/* exp needs fewer steps here: vscalefps multiplies by 2^n exactly and lets NaN pass. Where x is so large that the reduction
 * means nothing any more, p is still positive (a truncated exp series of even degree has no zero) and n large: infinity; and
 * for x = infinity, where p is NaN, the instruction is defined to give infinity as well. */
#define NN_OWN_EXP
static inline v16 v16_exp_scale(v16 x, v16 p, v16 n) {
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(NN_EXP_LO), _CMP_NLT_UQ), p, n);
}
static inline float v16_first(v16 x) { return _mm512_cvtss_f32(x); }
static inline float v16_tree(v16 x) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
static inline float v16_largest(v16 x) { return _mm512_reduce_max_ps(x); } /* no NaN among them */

/* p[0], p[0], p[1], p[1], ... p[7], p[7] */
static inline v16 v16_load_twice(const float *p) {
    const __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
static inline v16 v16_swap_pairs(v16 x) { return _mm512_permute_ps(x, 0xb1); }
static inline v16 v16_negate_even(v16 x) {
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi64(0x80000000)));
}
static inline v16 v16_gather(const float *p, int stride) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_i32gather_ps(_mm512_mullo_epi32(lane, _mm512_set1_epi32(stride)), p, 4);
}

static inline __m256i v16_bits_bf16(v16 x) {
    __m512i u = _mm512_castps_si512(x), high = _mm512_srli_epi32(u, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i r = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
    r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), high, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(r);
}
static inline __m256i v16_bits_f16(v16 x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline void v16_store_bf16(uint16_t *p, v16 x) { _mm256_storeu_si256((__m256i *)(void *)p, v16_bits_bf16(x)); }
static inline void v16_store_f16(uint16_t *p, v16 x) { _mm256_storeu_si256((__m256i *)(void *)p, v16_bits_f16(x)); }

/* p[2 i + odd] = x[i] for i < n. The other half of each pair may belong to another thread at this moment: it is masked, not
 * read and written back. */
static inline void nn_store_every_second(uint16_t *p, int odd, const uint16_t *x, int n) {
    const __mmask32 half = odd ? 0xaaaaaaaau : 0x55555555u;
    const __m128i shift = _mm_cvtsi32_si128(odd ? 16 : 0);
    for (int i = 0; i < n; i += 16) {
        __mmask16 live = n - i >= 16 ? 0xffff : v16_mask(n - i);
        __m512i wide = _mm512_sll_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(live, x + i)), shift);
        __mmask32 pairs = n - i >= 16 ? 0xffffffffu : (1u << 2 * (n - i)) - 1;
        _mm512_mask_storeu_epi16(p + 2 * (size_t)i, pairs & half, wide);
    }
}

#endif
