/* x86_init.c: the x86 tiers' matmuls and encoders, weakest first. */
#include "kernels/kernels_init.h"

void cera_kernels_init_x86(cera_kernels *k, cera_cpu_tier tier) {
    (void)k;
    (void)tier;
}
