/* check_nn.h: what the check_nn*.c files share: random vectors, comparison of bits, distances in ulp, and their cases. */
#ifndef CERA_CHECK_NN_H
#define CERA_CHECK_NN_H

#include "check.h"

enum { CHECK_NN_SEGMENT = CERA_SEGMENT_TOKENS, CHECK_NN_PAGE = CERA_PAGE_TOKENS };

/* [n] f32, normally distributed with this standard deviation, ending at a guard page. */
float *cera_check_nn_normals(cera_check *c, size_t n, float size);
/* A copy ending at a guard page. */
float *cera_check_nn_copy(cera_check *c, const float *x, size_t n);
/* Fails when any of the n bits patterns differ (NaN equals NaN). */
void cera_check_nn_same(cera_check *c, const char *what, const float *got, const float *want, size_t n);
/* |got - want| in units of the last place of `want` as an f32 (of the smallest denormal at least). Equal infinities: 0. */
double cera_check_nn_ulps(float got, double want);
float cera_check_nn_f16(uint16_t h);
float cera_check_nn_bf16(uint16_t h);
/* Any f32: all exponents, signs, denormals, infinities and NaN are likely. */
float cera_check_nn_any_float(cera_check *c);

/* check_nn_math.c */
void cera_check_nn_f32_to_bf16(cera_check *c);
void cera_check_nn_f32_to_f16(cera_check *c);
void cera_check_nn_activate(cera_check *c);
void cera_check_nn_glu(cera_check *c);
void cera_check_nn_sigmoid(cera_check *c);
void cera_check_nn_softcap(cera_check *c);
void cera_check_nn_softmax(cera_check *c);
void cera_check_nn_glu_bench(cera_check *c);
void cera_check_nn_softmax_bench(cera_check *c);

/* check_nn_rope.c */
void cera_check_nn_rope_table(cera_check *c);
void cera_check_nn_rope_kv(cera_check *c);
void cera_check_nn_rope_kv_edges(cera_check *c);
void cera_check_nn_rope_kv_threads(cera_check *c);
void cera_check_nn_rope_kv_bench(cera_check *c);

/* check_nn_attend.c */
void cera_check_nn_scores(cera_check *c);
void cera_check_nn_values(cera_check *c);
void cera_check_nn_scores_alone(cera_check *c);
void cera_check_nn_values_alone(cera_check *c);
void cera_check_nn_attend_softmax(cera_check *c);
void cera_check_nn_attend_merge(cera_check *c);
void cera_check_nn_scores_bench(cera_check *c);
void cera_check_nn_values_bench(cera_check *c);

#endif
