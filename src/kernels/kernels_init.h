/* kernels_init.h: the functions that fill the kernel table, called by cera_kernels_init in this order: C, then the processor
 * family's, which apply the tiers that `tier` includes from the weakest to the strongest. */
#ifndef CERA_KERNELS_KERNELS_INIT_H
#define CERA_KERNELS_KERNELS_INIT_H

#include "kernels/kernels.h"

/* Everything but matmul, dequantize and encode (norms, rope, attention, activations, ...). */
void cera_kernels_nn_ref(cera_kernels *k);
void cera_kernels_nn_x86(cera_kernels *k, cera_cpu_tier tier);
void cera_kernels_nn_arm(cera_kernels *k, cera_cpu_tier tier);

void cera_kernels_init_x86(cera_kernels *k, cera_cpu_tier tier);
void cera_kernels_init_arm(cera_kernels *k, cera_cpu_tier tier);

/* Does `tier` include `part`? avxvnni is no part of the avx512 tiers, nor is any x86 tier of an ARM one. */
static inline int cera_kernels_includes(cera_cpu_tier tier, cera_cpu_tier part) {
    if (part == CERA_TIER_AVXVNNI) return tier == CERA_TIER_AVXVNNI;
    int arm = tier >= CERA_TIER_NEON;
    return tier >= part && arm == (part >= CERA_TIER_NEON);
}

#endif
