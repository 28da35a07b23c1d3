/* matmul_avx512vnni.c: the quantized types' matmuls on AVX-512 VNNI (the loops and the numeric plan: matmul_tmpl.h).
 *
 * Cost. 16 rows x 32 elements x 1 column: 8 vpdpbusd + mul + fma on the same two pipes, 80 % of the int8 peak at best; a min
 * term makes it 8 + 3 (73 %), two sub-blocks of 16 or two min terms 8 + 4 (67 %). 16 registers hold a sub-block of 32 rows, 8
 * the sums of four columns. (With K innermost and accumulators in registers: 59 % of peak.) */
#include "kernels/x86/quant_vec512.h"
#define TIER avx512vnni
#define MATMUL_ONE_Q8_0 cera_matmul_one_q8_0_avx512vnni
#include "kernels/x86/matmul_tmpl.h"

void cera_kernels_matmul_avx512vnni(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, avx512vnni); }
