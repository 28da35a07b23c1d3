/* x86_init.c: the x86 tiers' matmuls and encoders, weakest first. */
#include "kernels/kernels_init.h"
#include "kernels/x86/matmul_x86.h"

void cera_kernels_init_x86(cera_kernels *k, cera_cpu_tier tier) {
    if (cera_kernels_includes(tier, CERA_TIER_AVX2)) {
        cera_kernels_matmul_avx2(k);
        cera_kernels_matmul_float_avx2(k);
        cera_kernels_encode_avx2(k);
    }
    if (cera_kernels_includes(tier, CERA_TIER_AVXVNNI)) cera_kernels_matmul_avxvnni(k);
    if (cera_kernels_includes(tier, CERA_TIER_AVX512)) {
        cera_kernels_matmul_float_avx512(k);
        cera_kernels_encode_avx512(k);
    }
    if (cera_kernels_includes(tier, CERA_TIER_AVX512VNNI)) cera_kernels_matmul_avx512vnni(k);
    if (cera_kernels_includes(tier, CERA_TIER_AVX512BF16)) cera_kernels_matmul_bf16_avx512bf16(k);
}
