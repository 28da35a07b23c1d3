/* matmul_neon.c: the quantized types' matmuls on plain NEON (the loops and the numeric plan: matmul_arm_tmpl.h).
 *
 * 16 products: two widening multiplications into int16 (2 * 128 * 127 = 32512, it cannot overflow), one pairwise widening add.
 */
#include <arm_neon.h>
static inline __attribute__((always_inline)) int32x4_t dot16(int8x16_t w, int8x16_t a) {
    int16x8_t pairs = vmlal_s8(vmull_s8(vget_low_s8(w), vget_low_s8(a)), vget_high_s8(w), vget_high_s8(a));
    return vpaddlq_s16(pairs);
}
#define MATMUL_I8MM 0
#define TIER neon
#include "kernels/arm/matmul_arm_tmpl.h"

void cera_kernels_matmul_neon(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, neon); }
