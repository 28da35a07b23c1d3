/* nn_x86.c: which x86 tiers serve the slots of norms, rope, attention and activations, weakest first. */
#include "kernels/nn_int.h"

void cera_kernels_nn_x86(cera_kernels *k, cera_cpu_tier tier) {
    if (cera_kernels_includes(tier, CERA_TIER_AVX2)) {
        cera_kernels_nn_avx2(k);
        cera_kernels_attend_avx2(k);
    }
    if (cera_kernels_includes(tier, CERA_TIER_AVX512)) {
        cera_kernels_nn_avx512(k);
        cera_kernels_attend_avx512(k);
    }
    if (cera_kernels_includes(tier, CERA_TIER_AVX512BF16)) cera_kernels_attend_avx512bf16(k);
}
