/* nn_arm.c: which ARM tiers serve the slots of norms, rope, attention and activations, weakest first. */
#include "kernels/nn_int.h"

void cera_kernels_nn_arm(cera_kernels *k, cera_cpu_tier tier) {
    if (!cera_kernels_includes(tier, CERA_TIER_NEON)) return;
    cera_kernels_nn_neon(k);
    cera_kernels_attend_neon(k);
}
