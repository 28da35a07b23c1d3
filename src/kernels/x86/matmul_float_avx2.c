/* matmul_float_avx2.c: F32, F16 and BF16 weights on AVX2 with FMA and F16C (the loops: matmul_float_tmpl.h).
 *
 * Numbers. As ref/matmul.c: the 16 lanes are two registers, one fma an element; F16 and BF16 are widened exactly. Bit-equal to
 * C. Cost. A tile of 2 rows x 3 columns: 12 registers of accumulators, 12 fma for 10 loads. */
#include <immintrin.h>
#include "kernels/x86/matmul_x86.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES_K 16
#define TILE_COLS 3
#define TILES(X) X(3, 2) X(2, 2) X(1, 4)
#define K_CHUNK 1024
#define ONE_ROWS 4
typedef struct lanes {
    __m256 lo, hi;
} lanes;

INLINE lanes lanes_hold(lanes v) { return v; }
INLINE lanes lanes_zero(void) { return (lanes){_mm256_setzero_ps(), _mm256_setzero_ps()}; }
INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }
INLINE __m256 widen_bf16(const uint8_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(p)), 16));
}
INLINE lanes load_f32(const uint8_t *p) {
    return (lanes){_mm256_loadu_ps((const float *)(const void *)p), _mm256_loadu_ps((const float *)(const void *)(p + 32))};
}
INLINE lanes load_bf16(const uint8_t *p) { return (lanes){widen_bf16(p), widen_bf16(p + 16)}; }
INLINE lanes load_weights(cera_dtype t, const uint8_t *p) {
    if (t == CERA_F32) return load_f32(p);
    if (t == CERA_F16) return (lanes){_mm256_cvtph_ps(load16(p)), _mm256_cvtph_ps(load16(p + 16))};
    return load_bf16(p);
}
INLINE lanes load_acts(cera_dtype t, const uint8_t *p) { return t == CERA_BF16 ? load_bf16(p) : load_f32(p); }
INLINE lanes multiply_add(lanes w, lanes x, lanes acc) {
    return (lanes){_mm256_fmadd_ps(w.lo, x.lo, acc.lo), _mm256_fmadd_ps(w.hi, x.hi, acc.hi)};
}
INLINE float tree_sum(lanes v) {
    __m256 a = _mm256_add_ps(v.lo, v.hi);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
INLINE void tree_sum16(const lanes *acc, int step, float *out) {
    for (int i = 0; i < 16; i++) out[i] = tree_sum(acc[i * step]);
}

#include "kernels/matmul_float_tmpl.h"

#define MATMUL(name, type)                                                                                           \
    static void matmul_##name##_avx2(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, \
                                     int n_cols, float *tile) {                                                      \
        matmul(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                  \
    }
MATMUL(f32, CERA_F32)
MATMUL(f16, CERA_F16)
MATMUL(bf16, CERA_BF16)

void cera_kernels_matmul_float_avx2(cera_kernels *k) {
    CERA_MATMUL_SET(k, CERA_F32, f32, avx2);
    CERA_MATMUL_SET(k, CERA_F16, f16, avx2);
    CERA_MATMUL_SET(k, CERA_BF16, bf16, avx2);
}
