/* matmul_bf16_avx512bf16.c: BF16 weights times bf16 activations with vdpbf16ps (the loops: matmul_float_tmpl.h).
 *
 * Numbers. This tier's own order: lane l takes the pairs (2l, 2l + 1) of each 32 elements ascending; vdpbf16ps adds the odd
 * element's product, then the even one's, each rounded to nearest even, denormals as zero. Then the tree of ref/matmul.c.
 * The order does not depend on the number of columns, so a tier's results are its own but the same in every batch.
 * Cost. 24 vdpbf16ps for 10 loads and 32 elements of k: the dot product pipes are the limit. */
#include <immintrin.h>
#include "kernels/x86/matmul_x86.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES_K 32
#define TILE_ROWS 4
#define TILE_COLS 6
typedef __m512 lanes;

INLINE lanes lanes_zero(void) { return _mm512_setzero_ps(); }
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

#include "kernels/matmul_float_tmpl.h"

static void matmul_bf16_avx512bf16(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                                   float *tile) {
    matmul(CERA_BF16, w, row_bytes, n_rows, k, x, c0, n_cols, tile);
}

void cera_kernels_matmul_bf16_avx512bf16(cera_kernels *k) { CERA_MATMUL_SET(k, CERA_BF16, bf16, avx512bf16); }
