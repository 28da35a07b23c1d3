/* kernels_init.c: fills the table: the C references first, then the tiers of this processor family, each over the one before.
 * Owns the order; which function serves a slot is known by the files that define it. */
#include <string.h>
#include "kernels/kernels_init.h"
#include "kernels/ref/matmul_ref.h"

void cera_kernels_init(cera_kernels *k, cera_cpu_tier tier) {
    memset(k, 0, sizeof *k);
    k->tier = tier;
    cera_kernels_matmul_ref(k);
    cera_kernels_dequantize_ref(k);
    cera_kernels_encode_ref(k);
    cera_kernels_nn_ref(k);
#if defined(__x86_64__)
    cera_kernels_init_x86(k, tier);
    cera_kernels_nn_x86(k, tier);
#elif defined(__aarch64__)
    cera_kernels_init_arm(k, tier);
    cera_kernels_nn_arm(k, tier);
#endif
}

const char *cera_kernels_matmul_name(const cera_kernels *k, cera_dtype t) {
    return t >= 0 && t < CERA_DTYPE_COUNT && k->matmul_name[t] ? k->matmul_name[t] : "";
}
