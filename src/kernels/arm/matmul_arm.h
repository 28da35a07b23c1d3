/* matmul_arm.h: one function a tier that puts its matmuls into the table. */
#ifndef CERA_KERNELS_ARM_MATMUL_ARM_H
#define CERA_KERNELS_ARM_MATMUL_ARM_H

#include "kernels/kernels.h"

void cera_kernels_matmul_neon(cera_kernels *k);
void cera_kernels_matmul_float_neon(cera_kernels *k);
void cera_kernels_matmul_dotprod(cera_kernels *k);
void cera_kernels_matmul_i8mm(cera_kernels *k);
void cera_kernels_encode_neon(cera_kernels *k);

#endif
