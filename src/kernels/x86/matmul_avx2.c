/* matmul_avx2.c: the quantized types' matmuls on AVX2 (the loops and the numeric plan: matmul_tmpl.h).
 *
 * Cost. 8 rows x 32 elements x 1 column: 8 vpmaddubsw, up to 7 additions in int16, 1 to 8 vpmaddwd; q3_k and q2_k multiply by
 * their sub-scales in vpmaddwd, for nothing. q8_0 and iq4 pay for the sign form: vpmaddubsw saturates above 128. */
#define VEC_DPBUSD 0
#include "kernels/x86/quant_vec256.h"
#define TIER avx2
#include "kernels/x86/matmul_tmpl.h"

void cera_kernels_matmul_avx2(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, avx2); }
