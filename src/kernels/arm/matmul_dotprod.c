/* matmul_dotprod.c: the quantized types' matmuls with the dot product instructions (loops and numeric plan: matmul_arm_tmpl.h).
 */
#include <arm_neon.h>
static inline __attribute__((always_inline)) int32x4_t dot16(int8x16_t w, int8x16_t a) {
    return vdotq_s32(vdupq_n_s32(0), w, a);
}
#define MATMUL_I8MM 0
#define TIER dotprod
#include "kernels/arm/matmul_arm_tmpl.h"

void cera_kernels_matmul_dotprod(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, dotprod); }
