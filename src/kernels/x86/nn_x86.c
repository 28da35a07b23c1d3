/* nn_x86.c: which x86 tiers serve the slots of norms, rope, attention and activations, weakest first. */
#include "kernels/nn_int.h"

void cera_kernels_nn_x86(cera_kernels *k, cera_cpu_tier tier) {
    (void)k;
    (void)tier;
}
