/* attend_avx2.c: attention's scores and values on AVX2, for all three page types, in f32 products.
 * Numbers and tiles: attend_tmpl.h; equal to ref/attend.c to the bit. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 12 accumulators, 2 vectors of K or V, one multiplier: 15 of 16 registers. */
enum { VF = 8, ATTEND_NQ = 6, ATTEND_ACC = 12 };

typedef __m256 vf;

static inline vf vf_zero(void) { return _mm256_setzero_ps(); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vf_load(const char *p) { return _mm256_loadu_ps((const float *)(const void *)p); }
static inline vf vf_load_f16(const char *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
static inline vf vf_load_bf16(const char *p) {
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}
/* The first n elements; head sizes that are no multiple of 8 are rare, and the copy is on the stack. */
static inline vf vf_load_n(const char *p, int n) {
    char part[32] = {0};
    memcpy(part, p, (size_t)n * 4);
    return vf_load(part);
}
static inline vf vf_load_f16_n(const char *p, int n) {
    char part[16] = {0};
    memcpy(part, p, (size_t)n * 2);
    return vf_load_f16(part);
}
static inline vf vf_load_bf16_n(const char *p, int n) {
    char part[16] = {0};
    memcpy(part, p, (size_t)n * 2);
    return vf_load_bf16(part);
}
static inline void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
static inline void vf_store_n(float *p, vf x, int n) {
    float part[8];
    vf_store(part, x);
    memcpy(p, part, (size_t)n * sizeof *p);
}
static inline vf vf_spread(const float *p) { return _mm256_broadcast_ss(p); }
static inline vf vf_spread_pair(const float *p) {
    double pair;
    memcpy(&pair, p, sizeof pair);
    return _mm256_castpd_ps(_mm256_set1_pd(pair));
}
/* Into the second level, because a page ahead need not fit in the first. Decode over keys in memory, one core: 15 GB/s without,
 * 20 with it (the first level: the same). */
/* gcc drops calls of a function that only prefetches, unless it is inlined before that is noticed. */
static inline __attribute__((always_inline)) void vf_prefetch(const char *p) { _mm_prefetch(p, _MM_HINT_T1); }
/* a[0] + a[1], a[2] + a[3], ... then those of b. */
static inline vf vf_pair_sums(vf a, vf b) {
    __m256 mixed = _mm256_hadd_ps(a, b); /* a's first two sums, b's first two, a's last two, b's last two */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}

#define ATTEND_TIER(name) name##_avx2
#include "kernels/attend_tmpl.h"
