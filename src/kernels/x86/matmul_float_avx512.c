/* matmul_float_avx512.c: F32, F16 and BF16 weights on AVX-512 (the loops: matmul_float_tmpl.h).
 *
 * Numbers. As ref/matmul.c: the 16 lanes are one register, one fma an element; F16 and BF16 are widened exactly. Bit-equal to
 * C. Cost. A tile of 4 rows x 6 columns: 24 fma for 10 loads (4 of them converting), so the two fma pipes are the limit. */
#include <immintrin.h>
#include "kernels/x86/matmul_x86.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES_K 16
#define TILE_ROWS 4
#define TILE_COLS 6
typedef __m512 lanes;

INLINE lanes lanes_zero(void) { return _mm512_setzero_ps(); }
INLINE lanes widen_bf16(const uint8_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)), 16));
}
INLINE lanes load_weights(cera_dtype t, const uint8_t *p) {
    if (t == CERA_F32) return _mm512_loadu_ps(p);
    return t == CERA_F16 ? _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)) : widen_bf16(p);
}
INLINE lanes load_acts(cera_dtype t, const uint8_t *p) { return t == CERA_BF16 ? widen_bf16(p) : _mm512_loadu_ps(p); }
INLINE lanes multiply_add(lanes w, lanes x, lanes acc) { return _mm512_fmadd_ps(w, x, acc); }
INLINE float tree_sum(lanes v) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

#include "kernels/matmul_float_tmpl.h"

#define MATMUL(name, type)                                                                                             \
    static void matmul_##name##_avx512(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, \
                                       int n_cols, float *tile) {                                                      \
        matmul(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                    \
    }
MATMUL(f32, CERA_F32)
MATMUL(f16, CERA_F16)
MATMUL(bf16, CERA_BF16)

void cera_kernels_matmul_float_avx512(cera_kernels *k) {
    CERA_MATMUL_SET(k, CERA_F32, f32, avx512);
    CERA_MATMUL_SET(k, CERA_F16, f16, avx512);
    CERA_MATMUL_SET(k, CERA_BF16, bf16, avx512);
}
