/* matmul_ref.h: how this folder's files put their functions into the table, and how a tier puts in its matmuls (each file
 * defines static matmul_<type>_<tier>; the name is kept for profiles). */
#ifndef CERA_KERNELS_REF_MATMUL_REF_H
#define CERA_KERNELS_REF_MATMUL_REF_H

#include "kernels/kernels.h"

#define CERA_MATMUL_SET(k, dtype, name, tier) \
    ((k)->matmul[dtype] = matmul_##name##_##tier, (k)->matmul_name[dtype] = "matmul_" #name "_" #tier)

#define CERA_MATMUL_SET_QUANTIZED(k, tier)                                                         \
    (CERA_MATMUL_SET(k, CERA_Q4_0, q4_0, tier), CERA_MATMUL_SET(k, CERA_Q4_1, q4_1, tier),         \
     CERA_MATMUL_SET(k, CERA_Q5_0, q5_0, tier), CERA_MATMUL_SET(k, CERA_Q5_1, q5_1, tier),         \
     CERA_MATMUL_SET(k, CERA_Q8_0, q8_0, tier), CERA_MATMUL_SET(k, CERA_Q2_K, q2_k, tier),         \
     CERA_MATMUL_SET(k, CERA_Q3_K, q3_k, tier), CERA_MATMUL_SET(k, CERA_Q4_K, q4_k, tier),         \
     CERA_MATMUL_SET(k, CERA_Q5_K, q5_k, tier), CERA_MATMUL_SET(k, CERA_Q6_K, q6_k, tier),         \
     CERA_MATMUL_SET(k, CERA_IQ4_NL, iq4_nl, tier), CERA_MATMUL_SET(k, CERA_IQ4_XS, iq4_xs, tier), \
     CERA_MATMUL_SET(k, CERA_MXFP4, mxfp4, tier))

void cera_kernels_matmul_ref(cera_kernels *k);
void cera_kernels_dequantize_ref(cera_kernels *k);
void cera_kernels_encode_ref(cera_kernels *k);

#endif
