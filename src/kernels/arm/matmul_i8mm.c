/* matmul_i8mm.c: the quantized types' matmuls with 8-bit matrix multiplication: 2 rows x 2 columns x 8 elements an instruction
 * (loops and numeric plan: matmul_arm_tmpl.h). A last odd column is computed twice and stored once. */
#define MATMUL_I8MM 1
#define TIER i8mm
#include "kernels/arm/matmul_arm_tmpl.h"

void cera_kernels_matmul_i8mm(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, i8mm); }
