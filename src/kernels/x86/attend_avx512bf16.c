/* attend_avx512bf16.c: attention's scores and values for bf16 pages with vdpbf16ps, twice the products an instruction.
 *
 * Numbers. Queries and probabilities are rounded to bf16; vdpbf16ps adds a pair's two products to an f32 lane in its own fixed
 * order, rounding to nearest even after each and taking denormal operands and results for zero, whatever MXCSR says. Products
 * of two bf16 are exact in f32. One chain a result, pairs ascending. Equal within this tier, not to others (ref/attend.c). */
#include "kernels/x86/attend_vec_avx512.h"

static inline vf vf_dot(vf a, vf b, vf c) {
    return _mm512_dpbf16_ps(c, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b));
}

/* n f32, n even, to n / 2 pairs of bf16. */
static inline void vf_pack_bf16(const float *x, int n, float *out) {
    for (int i = 0; i < n; i += 16) {
        __m256i pairs = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(vf_mask(n - i), x + i));
        _mm256_mask_storeu_epi32(out + i / 2, (__mmask8)vf_mask((n - i) / 2), pairs);
    }
}

#define ATTEND_DOT
#define ATTEND_TIER(name) name##_avx512bf16
#include "kernels/attend_tmpl.h"
