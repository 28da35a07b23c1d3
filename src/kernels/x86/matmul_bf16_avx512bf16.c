/* matmul_bf16_avx512bf16.c: BF16 weights times bf16 activations with vdpbf16ps (the loops: matmul_float_tmpl.h).
 *
 * Numbers. This tier's own order: lane l takes the pairs (2l, 2l + 1) of each 32 elements ascending; vdpbf16ps adds the odd
 * element's product, then the even one's, each rounded to nearest even, denormals as zero. Then the tree of ref/matmul.c.
 * The order does not depend on the number of columns, so a tier's results are its own but the same in every batch.
 * Cost. A tile of 4 rows x 6 columns: 24 vdpbf16ps for 10 loads and 32 elements of k; measured 80 % of the bf16 peak at 128
 * columns and k = 2048 (Zen 5); the rest is waiting for weights from L2. */
#include <immintrin.h>
#include "kernels/x86/matmul_x86.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES_K 32
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
INLINE lanes load_weights(cera_dtype t, const uint8_t *p) { return (void)t, _mm512_loadu_ps(p); }
INLINE lanes load_acts(cera_dtype t, const uint8_t *p) { return (void)t, _mm512_loadu_ps(p); }
INLINE lanes multiply_add(lanes w, lanes x, lanes acc) {
    return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_castps_si512(w), (__m512bh)_mm512_castps_si512(x));
}
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

static void matmul_bf16_avx512bf16(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                                   float *tile) {
    matmul(CERA_BF16, w, row_bytes, n_rows, k, x, c0, n_cols, tile);
}

void cera_kernels_matmul_bf16_avx512bf16(cera_kernels *k) { CERA_MATMUL_SET(k, CERA_BF16, bf16, avx512bf16); }
