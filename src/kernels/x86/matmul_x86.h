/* matmul_x86.h: one function a tier that puts its matmuls (and encoders) into the table. */
#ifndef CERA_KERNELS_X86_MATMUL_X86_H
#define CERA_KERNELS_X86_MATMUL_X86_H

#include "kernels/kernels.h"

void cera_kernels_matmul_avx2(cera_kernels *k);
void cera_kernels_matmul_float_avx2(cera_kernels *k);
void cera_kernels_encode_avx2(cera_kernels *k);
void cera_kernels_matmul_avxvnni(cera_kernels *k);
void cera_kernels_matmul_float_avx512(cera_kernels *k);
void cera_kernels_encode_avx512(cera_kernels *k);
void cera_kernels_matmul_avx512vnni(cera_kernels *k);
/* All 32 rows, one column. */
void cera_matmul_one_q8_0_avx512vnni(const uint8_t *w, size_t row_bytes, int k, const cera_acts *x, int column, float *tile);
void cera_kernels_matmul_bf16_avx512bf16(cera_kernels *k);

#endif
