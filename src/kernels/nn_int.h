/* nn_int.h: who fills the slots of everything that is neither matmul, dequantization nor encoding: one hook a file for each
 * tier, called by the three cera_kernels_nn_* hooks of kernels_init.h. */
#ifndef CERA_KERNELS_NN_INT_H
#define CERA_KERNELS_NN_INT_H

#include "kernels/kernels_init.h"

void cera_kernels_convert_ref(cera_kernels *k);
void cera_kernels_norm_ref(cera_kernels *k);
void cera_kernels_rope_ref(cera_kernels *k);
void cera_kernels_attend_ref(cera_kernels *k);
void cera_kernels_glu_ref(cera_kernels *k);

void cera_kernels_nn_avx2(cera_kernels *k);
void cera_kernels_nn_avx512(cera_kernels *k);
void cera_kernels_nn_neon(cera_kernels *k);
void cera_kernels_attend_avx2(cera_kernels *k);
void cera_kernels_attend_avx512(cera_kernels *k);
void cera_kernels_attend_avx512bf16(cera_kernels *k);
void cera_kernels_attend_neon(cera_kernels *k);

#endif
