/* matmul_avx512vnni.c: the quantized types' matmuls on AVX-512 VNNI (the loops and the numeric plan: matmul_tmpl.h).
 *
 * Cost. 16 rows x 32 elements x 1 column: 8 vpdpbusd + mul + fma on the same two pipes, 80 % of the int8 peak at best; a min
 * term makes it 8 + 3 (73 %), two sub-blocks of 16 or two min terms 8 + 4 (67 %). 16 registers hold a sub-block of 32 rows, 8
 * the sums of four columns: 148 instructions for 4 columns, none of them a spill, 41 cycles where the pipes allow 40. The rest
 * is unpacking, 40 to 80 cycles a sub-block. (With K innermost and accumulators in registers: 59 % of peak.)
 *
 * Measured (`make check BENCH=matmul`, Zen 5, one thread, k = 2048, 2026-12-01; other work ran beside it). 128 columns, share
 * of the int8 peak: 70 to 73 % (q4_0, q5_0, q8_0, iq4, mxfp4, q3_k), 65 to 68 % (q4_1, q5_1, q4_k, q5_k), 61 % (q2_k, q6_k).
 * One column, weights in L2: q4_0 49, q4_k 58, q5_k 55, q8_0 55, iq4_xs 49, q5_0 45, q6_k 43, q3_k 37, q2_k 31 GB/s. */
#include "kernels/x86/quant_vec512.h"
#define TIER avx512vnni
#define MATMUL_ONE_Q8_0 cera_matmul_one_q8_0_avx512vnni
#include "kernels/x86/matmul_tmpl.h"

void cera_kernels_matmul_avx512vnni(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, avx512vnni); }
