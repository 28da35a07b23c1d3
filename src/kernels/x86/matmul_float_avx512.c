/* matmul_float_avx512.c: F32, F16 and BF16 weights on AVX-512 (the loops: matmul_float_tmpl.h).
 *
 * Numbers. As ref/matmul.c: the 16 lanes are one register, one fma an element; F16 and BF16 are widened exactly. Bit-equal to
 * C. Cost. A tile of 4 rows x 6 columns: 24 fma for 10 loads, four of them converting for F16: measured 86 % of the f32 peak at
 * 128 columns and k = 2048 (Zen 5). A tile of 2 x 12 lost: its chunks of k must be short to stay in L1. */
#include <immintrin.h>
#include "kernels/x86/matmul_x86.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES_K 16
#define TILE_COLS 6
#define TILES(X) X(6, 4) X(4, 4) X(2, 8) X(1, 8)
#define K_CHUNK 2048
#define ONE_ROWS 8
typedef __m512 lanes;

INLINE lanes lanes_zero(void) { return _mm512_setzero_ps(); }
/* Keeps a loaded register loaded: compilers would load it again for each row, and loads are the second limit. */
INLINE lanes lanes_hold(lanes v) {
    __asm__("" : "+v"(v));
    return v;
}
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
/* The same trees, sixteen at a time: each stage adds the halves of two accumulators at once. */
INLINE lanes fold8(lanes a, lanes b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}
INLINE lanes fold4(lanes a, lanes b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}
INLINE lanes fold2(lanes a, lanes b) { return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee)); }
INLINE lanes fold1(lanes a, lanes b) { return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd)); }
INLINE void tree_sum16(const lanes *acc, int step, float *out) {
    lanes four[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++, acc += 4 * step) four[i] = fold4(fold8(acc[0], acc[step]), fold8(acc[2 * step], acc[3 * step]));
    /* 128-bit lane j of four[i] is accumulator 4 i + j: after the last stage its sums are rows j, 4 + j, 8 + j, 12 + j. */
    lanes sums = fold1(fold2(four[0], four[1]), fold2(four[2], four[3]));
    __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_ps(out, _mm512_permutexvar_ps(order, sums));
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
