/* matmul_avxvnni.c: the quantized types' matmuls on AVX-VNNI, 256 bits (the loops and the numeric plan: matmul_tmpl.h).
 *
 * Cost. 8 rows x 32 elements x 1 column: 8 vpdpbusd + mul + fma; 8 registers hold a sub-block of 8 rows, 4 the sums of four
 * columns. */
#define VEC_DPBUSD 1
#include "kernels/x86/quant_vec256.h"
#define TIER avxvnni
#include "kernels/x86/matmul_tmpl.h"

void cera_kernels_matmul_avxvnni(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, avxvnni); }
