/* nn_vec_avx2.h: sixteen f32 lanes as two registers, for nn_tmpl.h. Needs AVX2, FMA, F16C.
 * Every operation rounds once, as IEEE says; no reciprocal or square root estimates. */
#ifndef CERA_KERNELS_NN_VEC_AVX2_H
#define CERA_KERNELS_NN_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NN_TIER(name) name##_avx2

typedef struct v16 {
    __m256 a, b; /* lanes 0..7, 8..15 */
} v16;

static inline v16 v16_make(__m256 a, __m256 b) { return (v16){a, b}; }
static inline v16 v16_set(float x) { return v16_make(_mm256_set1_ps(x), _mm256_set1_ps(x)); }
static inline v16 v16_load(const float *p) { return v16_make(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
static inline void v16_store(float *p, v16 x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
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
static inline v16 v16_add(v16 x, v16 y) { return v16_make(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)); }
static inline v16 v16_sub(v16 x, v16 y) { return v16_make(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)); }
static inline v16 v16_mul(v16 x, v16 y) { return v16_make(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)); }
static inline v16 v16_div(v16 x, v16 y) { return v16_make(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)); }
static inline v16 v16_fma(v16 x, v16 y, v16 z) {
    return v16_make(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
static inline v16 v16_fnma(v16 x, v16 y, v16 z) { /* z - x y */
    return v16_make(_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b));
}
static inline v16 v16_abs(v16 x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return v16_make(_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b));
}
static inline v16 v16_copysign(v16 x, v16 s) { /* x >= 0 */
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return v16_make(_mm256_or_ps(x.a, _mm256_and_ps(sign, s.a)), _mm256_or_ps(x.b, _mm256_and_ps(sign, s.b)));
}
/* a < b ? x : y, false when either is NaN. */
static inline v16 v16_if_less(v16 a, v16 b, v16 x, v16 y) {
    return v16_make(_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
                    _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ)));
}
static inline v16 v16_if_nan(v16 a, v16 x, v16 y) {
    return v16_make(_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, a.a, _CMP_UNORD_Q)),
                    _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, a.b, _CMP_UNORD_Q)));
}
/* x > m ? x : m: vmaxps returns its second operand when either is NaN. */
static inline v16 v16_larger(v16 x, v16 m) { return v16_make(_mm256_max_ps(x.a, m.a), _mm256_max_ps(x.b, m.b)); }
static inline int v16_any_equal(v16 x, v16 y) {
    __m256 a = _mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), b = _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ);
    return _mm256_movemask_ps(_mm256_or_ps(a, b)) != 0;
}
static inline __m256 nn_times_2n(__m256 p, __m256 z) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(z), 23)));
}
/* p times 2^n where the low bits of z hold n. */
static inline v16 v16_times_2n(v16 p, v16 z) { return v16_make(nn_times_2n(p.a, z.a), nn_times_2n(p.b, z.b)); }
static inline float v16_first(v16 x) { return _mm256_cvtss_f32(x.a); }
static inline float v16_tree(v16 x) {
    __m256 a = _mm256_add_ps(x.a, x.b);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
static inline float v16_largest(v16 x) { /* no NaN among them */
    __m256 a = _mm256_max_ps(x.a, x.b);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

static inline __m256 nn_twice(__m128 x) { return _mm256_set_m128(_mm_unpackhi_ps(x, x), _mm_unpacklo_ps(x, x)); }
/* p[0], p[0], p[1], p[1], ... p[7], p[7] */
static inline v16 v16_load_twice(const float *p) { return v16_make(nn_twice(_mm_loadu_ps(p)), nn_twice(_mm_loadu_ps(p + 4))); }
static inline v16 v16_swap_pairs(v16 x) { return v16_make(_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)); }
static inline v16 v16_negate_even(v16 x) {
    const __m256 sign = _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000));
    return v16_make(_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign));
}
static inline v16 v16_gather(const float *p, int stride) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i at = _mm256_mullo_epi32(lane, _mm256_set1_epi32(stride));
    return v16_make(_mm256_i32gather_ps(p, at, 4), _mm256_i32gather_ps(p + 8 * (ptrdiff_t)stride, at, 4));
}

static inline __m256i nn_bits_bf16(__m256 x) {
    __m256i u = _mm256_castps_si256(x), high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(r, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
static inline void v16_store_bf16(uint16_t *p, v16 x) {
    __m256i packed = _mm256_packus_epi32(nn_bits_bf16(x.a), nn_bits_bf16(x.b));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_permute4x64_epi64(packed, 0xd8));
}
static inline void v16_store_f16(uint16_t *p, v16 x) {
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128((__m128i *)(void *)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* p[2 i + odd] = x[i] for i < n. The other half of each pair may belong to another thread at this moment and is not touched. */
static inline void nn_store_every_second(uint16_t *p, int odd, const uint16_t *x, int n) {
    for (int i = 0; i < n; i++) p[2 * (size_t)i + (size_t)odd] = x[i];
}

#endif
