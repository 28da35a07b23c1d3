/* nn_arm.c: which ARM tiers serve the slots of norms, rope, attention and activations, weakest first. */
#include "kernels/nn_int.h"

void cera_kernels_nn_arm(cera_kernels *k, cera_cpu_tier tier) {
    (void)k;
    (void)tier;
}
