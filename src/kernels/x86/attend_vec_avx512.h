/* attend_vec_avx512.h: the vector of attend_tmpl.h for AVX-512: sixteen f32. Page elements are read from char pointers: rows of
 * a page need no alignment. */
#ifndef CERA_KERNELS_ATTEND_VEC_AVX512_H
#define CERA_KERNELS_ATTEND_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* 24 accumulators, at most 4 vectors of K or V, one multiplier: 29 of 32 registers. */
enum { VF = 16, ATTEND_NQ = 8, ATTEND_ACC = 24 };

typedef __m512 vf;

static inline __mmask16 vf_mask(int n) { return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1); }
static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_load(const char *p) { return _mm512_loadu_ps(p); }
static inline vf vf_load_n(const char *p, int n) { return _mm512_maskz_loadu_ps(vf_mask(n), p); }
static inline vf vf_load_f16(const char *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
static inline vf vf_load_f16_n(const char *p, int n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vf_mask(n), p)); }
static inline vf vf_widen_bf16(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
static inline vf vf_load_bf16(const char *p) { return vf_widen_bf16(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
static inline vf vf_load_bf16_n(const char *p, int n) { return vf_widen_bf16(_mm256_maskz_loadu_epi16(vf_mask(n), p)); }
static inline void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
static inline void vf_store_n(float *p, vf x, int n) { _mm512_mask_storeu_ps(p, vf_mask(n), x); }
static inline vf vf_spread(const float *p) { return _mm512_set1_ps(*p); }
static inline vf vf_spread_pair(const float *p) {
    return _mm512_castpd_ps(
        _mm512_broadcastsd_pd(_mm_castps_pd(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)p))));
}
/* Into the second level, because a page ahead need not fit in the first. Decode over keys in memory, one core: 15 GB/s without,
 * 20 with it (the first level: the same). */
/* gcc drops calls of a function that only prefetches, unless it is inlined before that is noticed. */
static inline __attribute__((always_inline)) void vf_prefetch(const char *p) { _mm_prefetch(p, _MM_HINT_T1); }
/* a[0] + a[1], a[2] + a[3], ... then those of b. */
static inline vf vf_pair_sums(vf a, vf b) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return _mm512_add_ps(_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b));
}

#endif
