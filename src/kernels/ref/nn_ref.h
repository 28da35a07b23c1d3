/* nn_ref.h: scalar math of the C references: exp, tanh, sigmoid, activations, 16-bit floats, and the fixed tree over 16 lanes.
 * The recipes and their errors are described in nn_math.h; nothing here is optimised. */
#ifndef CERA_KERNELS_NN_REF_H
#define CERA_KERNELS_NN_REF_H

#include <math.h>
#include <string.h>
#include "kernels/kernels.h"
#include "kernels/nn_math.h"

static inline uint32_t ref_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float ref_float(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static inline float ref_exp(float x) {
    if (x != x) return x;
    if (x >= NN_EXP_HI) return INFINITY;
    if (x < NN_EXP_LO) return 0.0f;
    float z = fmaf(x, NN_LOG2E, NN_MAGIC), n = z - NN_MAGIC;
    float r = fmaf(-n, NN_LN2_LO, fmaf(-n, NN_LN2_HI, x));
    float p = fmaf(fmaf(fmaf(fmaf(NN_E4, r, NN_E3), r, NN_E2), r, NN_E1), r, NN_E0);
    p = 1.0f + fmaf(p, r * r, r);
    return ref_float(ref_bits(p) + (ref_bits(z) << 23)); /* times 2^n; stays normal by the two limits */
}

static inline float ref_tanh(float x) {
    float a = fabsf(x), u = x * x;
    float t = fmaf(fmaf(fmaf(fmaf(NN_T4, u, NN_T3), u, NN_T2), u, NN_T1), u, NN_T0);
    float small = fmaf(x * u, t, x);
    float large = copysignf(1.0f - 2.0f / (ref_exp(a + a) + 1.0f), x);
    return a < NN_TANH_SMALL ? small : large;
}

/* x / (1 + exp(-y)): sigmoid is y = x with x = 1 above the line. */
static inline float ref_gated(float x, float y) { return x / (1.0f + ref_exp(-y)); }
static inline float ref_sigmoid(float x) { return ref_gated(1.0f, x); }

static inline float ref_gelu(float x) {
    float inner = fmaf(x * x, NN_GELU_CUBE, 1.0f) * x;
    return ref_gated(x, inner * (2.0f * NN_GELU_SCALE));
}

static inline float ref_gelu_erf(float x) {
    float a = fabsf(x) * NN_SQRT_HALF, t = 1.0f / fmaf(a, NN_ERFC_T, 1.0f);
    float q = fmaf(fmaf(fmaf(fmaf(NN_Q9, t, NN_Q8), t, NN_Q7), t, NN_Q6), t, NN_Q5);
    q = fmaf(fmaf(fmaf(fmaf(fmaf(q, t, NN_Q4), t, NN_Q3), t, NN_Q2), t, NN_Q1), t, NN_Q0);
    float g = ref_exp(-(a * a)) * q;
    return x * (x > 0.0f ? 1.0f - g : g);
}

static inline float ref_activate(cera_activation act, float x) {
    switch (act) {
    case CERA_ACT_SILU: return ref_gated(x, x);
    case CERA_ACT_GELU: return ref_gelu(x);
    case CERA_ACT_GELU_ERF: return ref_gelu_erf(x);
    case CERA_ACT_RELU_SQ: return x < 0.0f ? 0.0f : x * x;
    default: /* CERA_ACT_SWIGLU_OAI: the gate's half */
        x = x > NN_OAI_LIMIT ? NN_OAI_LIMIT : x;
        return ref_gated(x, x * NN_OAI_ALPHA);
    }
}

/* Round to nearest even; NaN stays NaN (made quiet, payload cut). */
static inline uint16_t ref_to_bf16(float x) {
    uint32_t u = ref_bits(x);
    if (x != x) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float ref_from_bf16(uint16_t h) { return ref_float((uint32_t)h << 16); }

static inline uint16_t ref_to_f16(float x) {
    uint32_t u = ref_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
    if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and above round to infinity */
    if (a < 0x38800000) {                                  /* below 2^-14: a multiple of 2^-24; the addition rounds */
        float m = ref_float(a) + 0.5f;
        return (uint16_t)(sign | (ref_bits(m) - 0x3f000000));
    }
    return (uint16_t)(sign | ((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13));
}

static inline float ref_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 31) return ref_float(sign | 0x7f800000 | m << 13);
    if (e) return ref_float(sign | (e + 112) << 23 | m << 13);
    return ref_float(sign | ref_bits((float)m * 0x1p-24f));
}

/* 8 + 8, 4 + 4, 2 + 2, 1 + 1: the sum of 16 lanes in the one order that every tier uses. */
static inline float ref_tree16(float s[16]) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    return s[0];
}

#endif
