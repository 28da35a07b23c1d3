/* nn_math.h: the coefficients of our own exp, tanh, erfc, sin and cos, shared by the C reference (ref/nn_ref.h) and the tiers
 * (nn_tmpl.h), which evaluate them with the same operations in the same order, so that every tier gives the same bits.
 *
 * Numbers (the largest errors found over every 37th float; tests/check/check_nn_math.c keeps to these bounds).
 *   exp     n = rint(x log2 e); r = x - n ln 2 in two fused steps; 1 + (r + r^2 E(r)), E of degree 4 (minimax, 0.05 ulp); times
 *           2^n exactly. Below EXP_LO: 0 (no denormal results); from EXP_HI on: infinity. 1.0 ulp.
 *   tanh    |x| < 0.625: x + x u T(u), u = x^2; else 1 - 2 / (exp(2|x|) + 1) with the sign of x. 1.3 ulp.
 *   sigmoid 1 / (1 + exp(-x)). 2.4 ulp; 0 below -88.7. silu: x / (1 + exp(-x)), the same.
 *   gelu    (tanh form) x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3): the same function as x/2 (1 + tanh u), without
 *           its cancellation for negative x. 2.2 times 2^-24 |x|.
 *   gelu    (erf form) x Phi(x): g = exp(-a^2) Q(t), a = |x| / sqrt 2, t = 1 / (1 + 0.4 a), Q a fit of exp(a^2) erfc(a) / 2;
 *           Phi = 1 - g for positive x, else g. 4 times 2^-24 |x|.
 *   sin,cos in double: n = rint(p 2/pi), r = fma(-n, P1, p) is exact for |n| < 2^31, then the second part of pi/2 and the
 * rounding error of position * frequency are taken off; Taylor-like polynomials on [-pi/4, pi/4]; absolute error below 1e-15
 *           before the one rounding to f32. Cody, Waite, "Software Manual for the Elementary Functions" (1980), chapter 8. */
#ifndef CERA_KERNELS_NN_MATH_H
#define CERA_KERNELS_NN_MATH_H

#define NN_EXP_HI 0x1.62e43p+6f /* exp is infinite from here on: the first float above ln(FLT_MAX) */
#define NN_EXP_LO -0x1.5d58p+6f /* exp is 0 below: a little above ln(2^-126), so that 2^n times p is never denormal */
#define NN_LOG2E 0x1.715476p+0f
#define NN_MAGIC 0x1.8p+23f /* adding it rounds to an integer, which then sits in the low bits */
#define NN_LN2_HI 0x1.62e43p-1f
#define NN_LN2_LO -0x1.05c61p-29f
#define NN_E0 0x1.fffffcp-2f
#define NN_E1 0x1.55549p-3f
#define NN_E2 0x1.5558f8p-5f
#define NN_E3 0x1.123b02p-7f
#define NN_E4 0x1.6a2252p-10f

#define NN_TANH_SMALL 0.625f
#define NN_T0 -0x1.555532p-2f
#define NN_T1 0x1.110726p-3f
#define NN_T2 -0x1.b83c58p-5f
#define NN_T3 0x1.522694p-6f
#define NN_T4 -0x1.75e1aep-8f

#define NN_GELU_SCALE 0x1.988454p-1f /* sqrt(2/pi) */
#define NN_GELU_CUBE 0.044715f

#define NN_SQRT_HALF 0x1.6a09e6p-1f
#define NN_ERFC_T 0.4f
#define NN_Q0 0x1.13f352p-16f
#define NN_Q1 0x1.ccb50ep-4f
#define NN_Q2 0x1.dc061p-4f
#define NN_Q3 0x1.60e1b4p-4f
#define NN_Q4 0x1.22776ap-3f
#define NN_Q5 -0x1.8d4dfep-5f
#define NN_Q6 0x1.3df57p-3f
#define NN_Q7 -0x1.711954p-5f
#define NN_Q8 -0x1.037b1ap-5f
#define NN_Q9 0x1.b34b92p-7f

#define NN_OAI_LIMIT 7.0f
#define NN_OAI_ALPHA 1.702f

#define NN_2_PI 0x1.45f306dc9c883p-1
#define NN_PI2_1 0x1.921fb54442d18p+0 /* pi/2 = the sum of the two */
#define NN_PI2_2 0x1.1a62633145c07p-54
#define NN_ANGLE_MAX 0x1p+50 /* larger angles (and infinities) give NaN */
#define NN_S0 -0x1.5555555555549p-3
#define NN_S1 0x1.111111110f842p-7
#define NN_S2 -0x1.a01a019c0a28cp-13
#define NN_S3 0x1.71de3570fd56fp-19
#define NN_S4 -0x1.ae5e60c477cfdp-26
#define NN_S5 0x1.5d915e093c83bp-33
#define NN_C0 0x1.555555555554cp-5
#define NN_C1 -0x1.6c16c16c1514p-10
#define NN_C2 0x1.a01a019cab73fp-16
#define NN_C3 -0x1.27e4f80533a13p-22
#define NN_C4 0x1.1ee9e890abbfap-29
#define NN_C5 -0x1.8facd1541cd3ep-37

/* Largest finite values of the page types: what is stored in a page is always finite. */
#define NN_MAX_F16 65504.0f
#define NN_MAX_BF16 0x1.fep+127f
#define NN_MAX_F32 0x1.fffffep+127f

#endif
