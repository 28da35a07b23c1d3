/* arm_init.c: the ARM tiers' matmuls and encoders, weakest first. */
#include "kernels/kernels_init.h"

void cera_kernels_init_arm(cera_kernels *k, cera_cpu_tier tier) {
    (void)k;
    (void)tier;
}
