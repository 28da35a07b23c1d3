/* arm_init.c: the ARM tiers' matmuls and encoders, weakest first. */
#include "kernels/arm/matmul_arm.h"
#include "kernels/kernels_init.h"

void cera_kernels_init_arm(cera_kernels *k, cera_cpu_tier tier) {
    if (cera_kernels_includes(tier, CERA_TIER_NEON)) {
        cera_kernels_matmul_neon(k);
        cera_kernels_matmul_float_neon(k);
        cera_kernels_encode_neon(k);
    }
    if (cera_kernels_includes(tier, CERA_TIER_DOTPROD)) cera_kernels_matmul_dotprod(k);
    if (cera_kernels_includes(tier, CERA_TIER_I8MM)) cera_kernels_matmul_i8mm(k);
}
