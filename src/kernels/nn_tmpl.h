/* nn_tmpl.h: norms, activations, softmax, rope and the small slots, over sixteen f32 lanes; included once a tier, after the
 * header that defines v16 for it (x86/nn_vec_avx512.h, x86/nn_vec_avx2.h, arm/nn_vec_neon.h). Attention products are in
 * attend_tmpl.h.
 *
 * Numbers. The same operations in the same order as the C references in ref/, lane by lane: sums run in 16 lanes and end in
 * v16_tree; recipes and errors of exp, tanh, ... are in nn_math.h. Tails are loaded with zeros in the missing lanes, which add
 * nothing to a sum. So every slot here gives the bits of the C reference (checked by tests/check/check_nn*.c). */
#include <math.h>
#include <string.h>
#include "kernels/nn_int.h"
#include "kernels/nn_math.h"

static inline v16 v16_poly4(v16 x, float c4, float c3, float c2, float c1, float c0) {
    v16 p = v16_fma(v16_set(c4), x, v16_set(c3));
    p = v16_fma(p, x, v16_set(c2));
    p = v16_fma(p, x, v16_set(c1));
    return v16_fma(p, x, v16_set(c0));
}

/* p and z: exp(x) = p times 2^n, n in the low bits of z. */
static inline v16 v16_exp_parts(v16 x, v16 *z) {
    *z = v16_fma(x, v16_set(NN_LOG2E), v16_set(NN_MAGIC));
    v16 n = v16_sub(*z, v16_set(NN_MAGIC)), r = v16_fnma(n, v16_set(NN_LN2_LO), v16_fnma(n, v16_set(NN_LN2_HI), x));
    v16 p = v16_poly4(r, NN_E4, NN_E3, NN_E2, NN_E1, NN_E0);
    return v16_add(v16_set(1.0f), v16_fma(p, v16_mul(r, r), r));
}

#ifndef NN_OWN_EXP
/* For x <= 0 or NaN, as after the subtraction of a maximum: needs no limit above. */
static inline v16 v16_exp_of_negative(v16 x) {
    v16 z, p = v16_exp_parts(x, &z);
    return v16_if_nan(x, x, v16_if_less(x, v16_set(NN_EXP_LO), v16_set(0.0f), v16_times_2n(p, z)));
}

static inline v16 v16_exp(v16 x) {
    v16 z, p = v16_exp_parts(x, &z), y = v16_if_less(x, v16_set(NN_EXP_HI), v16_times_2n(p, z), v16_set(INFINITY));
    return v16_if_nan(x, x, v16_if_less(x, v16_set(NN_EXP_LO), v16_set(0.0f), y));
}
#else
static inline v16 v16_exp(v16 x) {
    v16 z, p = v16_exp_parts(x, &z);
    return v16_exp_scale(x, p, v16_sub(z, v16_set(NN_MAGIC)));
}
static inline v16 v16_exp_of_negative(v16 x) { return v16_exp(x); }
#endif

static inline v16 v16_tanh(v16 x) {
    v16 a = v16_abs(x), u = v16_mul(x, x), one = v16_set(1.0f);
    v16 small = v16_fma(v16_mul(x, u), v16_poly4(u, NN_T4, NN_T3, NN_T2, NN_T1, NN_T0), x);
    v16 large = v16_sub(one, v16_div(v16_set(2.0f), v16_add(v16_exp(v16_add(a, a)), one)));
    return v16_if_less(a, v16_set(NN_TANH_SMALL), small, v16_copysign(large, x));
}

static inline v16 v16_negate(v16 x) { return v16_mul(x, v16_set(-1.0f)); }

/* x / (1 + exp(-y)) */
static inline v16 v16_gated(v16 x, v16 y) { return v16_div(x, v16_add(v16_set(1.0f), v16_exp(v16_negate(y)))); }

static inline v16 v16_gelu(v16 x) {
    v16 inner = v16_mul(v16_fma(v16_mul(x, x), v16_set(NN_GELU_CUBE), v16_set(1.0f)), x);
    return v16_gated(x, v16_mul(inner, v16_set(2.0f * NN_GELU_SCALE)));
}

static inline v16 v16_gelu_erf(v16 x) {
    v16 a = v16_mul(v16_abs(x), v16_set(NN_SQRT_HALF)), one = v16_set(1.0f);
    v16 t = v16_div(one, v16_fma(a, v16_set(NN_ERFC_T), one));
    v16 q = v16_poly4(t, NN_Q9, NN_Q8, NN_Q7, NN_Q6, NN_Q5);
    q = v16_fma(v16_fma(q, t, v16_set(NN_Q4)), t, v16_set(NN_Q3));
    q = v16_fma(v16_fma(v16_fma(q, t, v16_set(NN_Q2)), t, v16_set(NN_Q1)), t, v16_set(NN_Q0));
    v16 g = v16_mul(v16_exp(v16_negate(v16_mul(a, a))), q);
    return v16_mul(x, v16_if_less(v16_set(0.0f), x, v16_sub(one, g), g));
}

static inline v16 v16_activate(cera_activation act, v16 x) {
    const v16 limit = v16_set(NN_OAI_LIMIT), zero = v16_set(0.0f);
    switch (act) {
    case CERA_ACT_SILU: return v16_gated(x, x);
    case CERA_ACT_GELU: return v16_gelu(x);
    case CERA_ACT_GELU_ERF: return v16_gelu_erf(x);
    case CERA_ACT_RELU_SQ: return v16_if_less(x, zero, zero, v16_mul(x, x));
    default: /* CERA_ACT_SWIGLU_OAI: the gate's half */
        x = v16_if_less(limit, x, limit, x);
        return v16_gated(x, v16_mul(x, v16_set(NN_OAI_ALPHA)));
    }
}

static inline v16 v16_up(cera_activation act, v16 u) {
    const v16 limit = v16_set(NN_OAI_LIMIT), low = v16_set(-NN_OAI_LIMIT);
    if (act != CERA_ACT_SWIGLU_OAI) return u;
    u = v16_if_less(limit, u, limit, v16_if_less(u, low, low, u));
    return v16_add(u, v16_set(1.0f));
}

static inline void activate_row(cera_activation act, const float *x, int n, float *out) {
    int i = 0;
    for (; i + 16 <= n; i += 16) v16_store(out + i, v16_activate(act, v16_load(x + i)));
    if (i < n) v16_store_n(out + i, v16_activate(act, v16_load_n(x + i, n - i)), n - i);
}

static inline void glu_row(cera_activation act, const float *gate, const float *up, int n, float *out) {
    int i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store(out + i, v16_mul(v16_activate(act, v16_load(gate + i)), v16_up(act, v16_load(up + i))));
    if (i == n) return;
    v16 u = v16_up(act, v16_load_n(up + i, n - i));
    v16_store_n(out + i, v16_mul(v16_activate(act, v16_load_n(gate + i, n - i)), u), n - i);
}

/* One loop an activation: the choice is made outside it. */
static void NN_TIER(activate)(cera_activation act, const float *x, int n, float *out) {
    switch (act) {
    case CERA_ACT_SILU: activate_row(CERA_ACT_SILU, x, n, out); return;
    case CERA_ACT_GELU: activate_row(CERA_ACT_GELU, x, n, out); return;
    case CERA_ACT_GELU_ERF: activate_row(CERA_ACT_GELU_ERF, x, n, out); return;
    case CERA_ACT_RELU_SQ: activate_row(CERA_ACT_RELU_SQ, x, n, out); return;
    default: activate_row(CERA_ACT_SWIGLU_OAI, x, n, out); return;
    }
}

static void NN_TIER(glu)(cera_activation act, const float *gate, const float *up, int n, float *out) {
    switch (act) {
    case CERA_ACT_SILU: glu_row(CERA_ACT_SILU, gate, up, n, out); return;
    case CERA_ACT_GELU: glu_row(CERA_ACT_GELU, gate, up, n, out); return;
    case CERA_ACT_GELU_ERF: glu_row(CERA_ACT_GELU_ERF, gate, up, n, out); return;
    case CERA_ACT_RELU_SQ: glu_row(CERA_ACT_RELU_SQ, gate, up, n, out); return;
    default: glu_row(CERA_ACT_SWIGLU_OAI, gate, up, n, out); return;
    }
}

static void NN_TIER(sigmoid)(float *x, int n) {
    const v16 one = v16_set(1.0f);
    int i = 0;
    for (; i + 16 <= n; i += 16) v16_store(x + i, v16_gated(one, v16_load(x + i)));
    if (i < n) v16_store_n(x + i, v16_gated(one, v16_load_n(x + i, n - i)), n - i);
}

static inline v16 v16_softcap(v16 x, v16 c) { return v16_mul(c, v16_tanh(v16_div(x, c))); }

static void NN_TIER(softcap)(float *x, int n, float c) {
    const v16 cap = v16_set(c);
    int i = 0;
    for (; i + 16 <= n; i += 16) v16_store(x + i, v16_softcap(v16_load(x + i), cap));
    if (i < n) v16_store_n(x + i, v16_softcap(v16_load_n(x + i, n - i), cap), n - i);
}

/* Four maxima side by side: the order of a maximum does not matter. */
static inline float row_max(const float *x, int n) {
    v16 m[4] = {v16_set(-INFINITY), v16_set(-INFINITY), v16_set(-INFINITY), v16_set(-INFINITY)};
    int i = 0;
    for (; i + 64 <= n; i += 64) {
        for (int j = 0; j < 4; j++) m[j] = v16_larger(v16_load(x + i + 16 * j), m[j]);
    }
    for (; i + 16 <= n; i += 16) m[0] = v16_larger(v16_load(x + i), m[0]);
    float max = v16_largest(v16_larger(v16_larger(m[0], m[1]), v16_larger(m[2], m[3])));
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

/* x[n], n a multiple of 16, becomes exp(x - max); returns the lanes' sums. */
static inline v16 exp_row(float *x, int n, v16 max) {
    v16 sum = v16_set(0.0f);
    for (int i = 0; i < n; i += 16) {
        v16 e = v16_exp_of_negative(v16_sub(v16_load(x + i), max));
        v16_store(x + i, e);
        sum = v16_add(sum, e);
    }
    return sum;
}

static void NN_TIER(softmax)(float *x, int n) {
    const v16 max = v16_set(row_max(x, n));
    const int tail = n % 16, whole = n - tail;
    v16 sum = exp_row(x, whole, max);
    if (tail) {
        v16_store_n(x + whole, v16_exp_of_negative(v16_sub(v16_load_n(x + whole, tail), max)), tail);
        sum = v16_add(sum, v16_load_n(x + whole, tail));
    }
    const v16 total = v16_set(v16_tree(sum));
    for (int i = 0; i < whole; i += 16) v16_store(x + i, v16_div(v16_load(x + i), total));
    if (tail) v16_store_n(x + whole, v16_div(v16_load_n(x + whole, tail), total), tail);
}

/* Blocks of 16 keys outside [lo, hi) are zeroed and cost nothing more. Within the first and the last block the keys that are
 * not seen count as -infinity: their exp is 0, unless the maximum itself is -infinity; so they are zeroed and summed again. */
static void NN_TIER(attend_softmax)(float *s, int lo, int hi, float softcap, float *max_out, float *sum_out) {
    const int from = lo & ~15, to = (hi + 15) & ~15;
    if (softcap != 0.0f) {
        const v16 cap = v16_set(softcap);
        for (int i = from; i < to; i += 16) v16_store(s + i, v16_softcap(v16_load(s + i), cap));
    }
    for (int i = from; i < lo; i++) s[i] = -INFINITY;
    for (int i = hi; i < to; i++) s[i] = -INFINITY;
    const float max = row_max(s + from, to - from);
    v16 sum = exp_row(s + from, to - from, v16_set(max));
    if (lo > 0) memset(s, 0, (size_t)lo * sizeof *s);
    if (hi < CERA_SEGMENT_TOKENS) memset(s + hi, 0, (size_t)(CERA_SEGMENT_TOKENS - hi) * sizeof *s);
    if (max == -INFINITY) {
        sum = v16_set(0.0f);
        for (int i = from; i < to; i += 16) sum = v16_add(sum, v16_load(s + i));
    }
    *max_out = max;
    *sum_out = v16_tree(sum);
}

static void NN_TIER(attend_merge)(float *m, float *l, float *o, float m2, float l2, const float *o2, int d_v) {
    const float max = m2 > *m ? m2 : *m;
    const v16 scale = v16_exp_of_negative(v16_set(*m - max)), scale2 = v16_exp_of_negative(v16_set(m2 - max));
    *m = max;
    *l = fmaf(*l, v16_first(scale), l2 * v16_first(scale2));
    int i = 0, tail = d_v % 16;
    for (; i + 16 <= d_v; i += 16) v16_store(o + i, v16_fma(v16_load(o + i), scale, v16_mul(v16_load(o2 + i), scale2)));
    if (tail) v16_store_n(o + i, v16_fma(v16_load_n(o + i, tail), scale, v16_mul(v16_load_n(o2 + i, tail), scale2)), tail);
}

static inline float sum_of_squares(const float *x, int n) {
    v16 sum = v16_set(0.0f);
    int i = 0;
    for (; i + 16 <= n; i += 16) sum = v16_fma(v16_load(x + i), v16_load(x + i), sum);
    if (i < n) {
        v16 v = v16_load_n(x + i, n - i);
        sum = v16_fma(v, v, sum);
    }
    return v16_tree(sum);
}

static inline v16 rms_part(v16 x, v16 factor, int weighted, v16 w, int added, v16 residual) {
    v16 v = v16_mul(x, factor);
    if (weighted && added) return v16_fma(v, w, residual);
    if (weighted) return v16_mul(v, w);
    return added ? v16_add(v, residual) : v;
}

static inline void rms_row(const float *x, const float *w, int n, float eps, const float *residual, float *y, int weighted,
                           int added) {
    const v16 factor = v16_set(1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps)), none = v16_set(0.0f);
    int i = 0, tail = n % 16;
    for (; i + 16 <= n; i += 16) {
        v16 wv = weighted ? v16_load(w + i) : none, rv = added ? v16_load(residual + i) : none;
        v16_store(y + i, rms_part(v16_load(x + i), factor, weighted, wv, added, rv));
    }
    if (tail) {
        v16 wv = weighted ? v16_load_n(w + i, tail) : none, rv = added ? v16_load_n(residual + i, tail) : none;
        v16_store_n(y + i, rms_part(v16_load_n(x + i, tail), factor, weighted, wv, added, rv), tail);
    }
}

static void NN_TIER(rms_norm)(const float *x, const float *w, int n, float eps, const float *residual, float *y) {
    if (w && !residual)
        rms_row(x, w, n, eps, residual, y, 1, 0);
    else if (w)
        rms_row(x, w, n, eps, residual, y, 1, 1);
    else if (residual)
        rms_row(x, w, n, eps, residual, y, 0, 1);
    else
        rms_row(x, w, n, eps, residual, y, 0, 0);
}

static inline float row_mean(const float *x, int n) {
    v16 sum = v16_set(0.0f);
    int i = 0;
    for (; i + 16 <= n; i += 16) sum = v16_add(sum, v16_load(x + i));
    if (i < n) sum = v16_add(sum, v16_load_n(x + i, n - i));
    return v16_tree(sum) / (float)n;
}

static inline float sum_of_deviations(const float *x, int n, float mean) {
    const v16 m = v16_set(mean);
    v16 sum = v16_set(0.0f);
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 d = v16_sub(v16_load(x + i), m);
        sum = v16_fma(d, d, sum);
    }
    if (i < n) { /* missing lanes must differ by 0, not by the mean */
        float part[16] = {0};
        v16_store_n(part, v16_sub(v16_load_n(x + i, n - i), m), n - i);
        v16 d = v16_load(part);
        sum = v16_fma(d, d, sum);
    }
    return v16_tree(sum);
}

static void NN_TIER(layer_norm)(const float *x, const float *w, const float *b, int n, float eps, const float *residual,
                                float *y) {
    const float mean = row_mean(x, n);
    const v16 m = v16_set(mean), factor = v16_set(1.0f / sqrtf(sum_of_deviations(x, n, mean) / (float)n + eps));
    const v16 one = v16_set(1.0f), zero = v16_set(0.0f);
    for (int i = 0; i < n; i += 16) {
        int k = n - i < 16 ? n - i : 16, full = k == 16;
        v16 v = v16_mul(v16_sub(full ? v16_load(x + i) : v16_load_n(x + i, k), m), factor);
        v16 wv = !w ? one : full ? v16_load(w + i) : v16_load_n(w + i, k);
        v16 bv = !b ? zero : full ? v16_load(b + i) : v16_load_n(b + i, k);
        v = v16_fma(v, wv, bv);
        if (residual) v = v16_add(v, full ? v16_load(residual + i) : v16_load_n(residual + i, k));
        if (full)
            v16_store(y + i, v);
        else
            v16_store_n(y + i, v, k);
    }
}

static void NN_TIER(f32_to_bf16)(const float *x, int n, uint16_t *out) {
    int i = 0;
    uint16_t part[16];
    for (; i + 16 <= n; i += 16) v16_store_bf16(out + i, v16_load(x + i));
    if (i == n) return;
    v16_store_bf16(part, v16_load_n(x + i, n - i));
    memcpy(out + i, part, (size_t)(n - i) * sizeof *out);
}

static void NN_TIER(f32_to_f16)(const float *x, int n, uint16_t *out) {
    int i = 0;
    uint16_t part[16];
    for (; i + 16 <= n; i += 16) v16_store_f16(out + i, v16_load(x + i));
    if (i == n) return;
    v16_store_f16(part, v16_load_n(x + i, n - i));
    memcpy(out + i, part, (size_t)(n - i) * sizeof *out);
}

static inline void conv_channels(const float *bcx, const float *w, int h, int l, const float *state, float *state_out,
                                 float *out, int c) {
    v16 b = v16_mul(v16_load(bcx + c), v16_load(bcx + 2 * (size_t)h + c)), y = v16_set(0.0f);
    const float *taps = w + (size_t)c * l;
    for (int j = 0; j < l - 1; j++) {
        v16 s = v16_load(state + (size_t)j * h + c);
        y = v16_fma(s, v16_gather(taps + j, l), y);
        if (j > 0) v16_store(state_out + (size_t)(j - 1) * h + c, s);
    }
    if (l > 1) v16_store(state_out + (size_t)(l - 2) * h + c, b);
    v16_store(out + c, v16_mul(v16_load(bcx + (size_t)h + c), v16_fma(b, v16_gather(taps + l - 1, l), y)));
}

static void NN_TIER(shortconv)(const float *bcx, const float *w, int h, int l, const float *state, float *state_out,
                               float *out) {
    int c = 0;
    for (; c + 16 <= h; c += 16) conv_channels(bcx, w, h, l, state, state_out, out, c);
    for (; c < h; c++) {
        float b = bcx[c] * bcx[2 * (size_t)h + c], y = 0.0f;
        for (int j = 0; j < l - 1; j++) {
            float s = state[(size_t)j * h + c];
            y = fmaf(s, w[(size_t)c * l + j], y);
            if (j > 0) state_out[(size_t)(j - 1) * h + c] = s;
        }
        if (l > 1) state_out[(size_t)(l - 2) * h + c] = b;
        out[c] = bcx[(size_t)h + c] * fmaf(b, w[(size_t)c * l + l - 1], y);
    }
}

static void NN_TIER(add_scaled)(const float *x, float scale, int n, float *y) {
    const v16 s = v16_set(scale);
    int i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_fma(v16_load(x + i), s, v16_load(y + i)));
    if (i < n) v16_store_n(y + i, v16_fma(v16_load_n(x + i, n - i), s, v16_load_n(y + i, n - i)), n - i);
}

/* Two passes: the largest (NaN never compares larger), then the first element that equals it. Only x < infinity is sound. */
static int NN_TIER(argmax)(const float *x, int n, int *finite) {
    const v16 infinite = v16_set(INFINITY), one = v16_set(1.0f);
    v16 m = v16_set(-INFINITY), bad = v16_set(0.0f);
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 v = v16_load(x + i);
        m = v16_larger(v, m);
        bad = v16_if_less(v, infinite, bad, one);
    }
    float max = v16_largest(m);
    int sound = v16_largest(bad) == 0.0f;
    for (; i < n; i++) {
        max = x[i] > max ? x[i] : max;
        sound = sound && x[i] < INFINITY;
    }
    *finite = sound;
    const v16 top = v16_set(max);
    for (i = 0; i + 16 <= n && !v16_any_equal(v16_load(x + i), top);) i += 16;
    for (; i < n; i++) {
        if (x[i] == max) return i;
    }
    return 0;
}

/* As sin_cos in ref/rope.c, without branches, so that the compiler can take several pairs at once. */
static void NN_TIER(rope_table)(const double *inv_freq, int n_pairs, double position, double scale, float *cos_out,
                                float *sin_out) {
    for (int i = 0; i < n_pairs; i++) {
        double p = position * inv_freq[i], low = fma(position, inv_freq[i], -p),
               valid = fabs(p) <= NN_ANGLE_MAX ? 1.0 : (double)NAN;
        double n = rint((fabs(p) <= NN_ANGLE_MAX ? p : 0.0) * NN_2_PI);
        double r = fma(-n, NN_PI2_2, fma(-n, NN_PI2_1, p)) + low, u = r * r;
        double ps = fma(fma(fma(fma(fma(NN_S5, u, NN_S4), u, NN_S3), u, NN_S2), u, NN_S1), u, NN_S0);
        double pc = fma(fma(fma(fma(fma(NN_C5, u, NN_C4), u, NN_C3), u, NN_C2), u, NN_C1), u, NN_C0);
        double sine = fma(r * u, ps, r), cosine = fma(u * u, pc, fma(u, -0.5, 1.0));
        int64_t quadrant = (int64_t)n & 3;
        double s = quadrant & 1 ? cosine : sine, c = quadrant & 1 ? sine : cosine;
        s = quadrant & 2 ? -s : s;
        c = (quadrant + 1) & 2 ? -c : c;
        cos_out[i] = (float)(c * valid * scale);
        sin_out[i] = (float)(s * valid * scale);
    }
}

/* y = x times factor times weight; y may be x. */
static inline void norm_head(const float *x, const float *w, int d, float eps, float *y) {
    const float factor = 1.0f / sqrtf(sum_of_squares(x, d) / (float)d + eps);
    const v16 f = v16_set(factor);
    int i = 0;
    for (; i + 16 <= d; i += 16) v16_store(y + i, v16_mul(v16_mul(v16_load(x + i), f), v16_load(w + i)));
    for (; i < d; i++) y[i] = x[i] * factor * w[i];
}

static inline void rotate_neox(float *x, const float *cosine, const float *sine, int pairs) {
    float *y = x + pairs;
    int i = 0;
    for (; i + 16 <= pairs; i += 16) {
        v16 c = v16_load(cosine + i), s = v16_load(sine + i), x0 = v16_load(x + i), x1 = v16_load(y + i);
        v16_store(x + i, v16_fma(x0, c, v16_negate(v16_mul(x1, s))));
        v16_store(y + i, v16_fma(x1, c, v16_mul(x0, s)));
    }
    for (; i < pairs; i++) {
        float x0 = x[i], x1 = y[i];
        x[i] = fmaf(x0, cosine[i], -(x1 * sine[i]));
        y[i] = fmaf(x1, cosine[i], x0 * sine[i]);
    }
}

static inline void rotate_interleaved(float *x, const float *cosine, const float *sine, int pairs) {
    int i = 0;
    for (; i + 8 <= pairs; i += 8) {
        v16 c = v16_load_twice(cosine + i), s = v16_negate_even(v16_load_twice(sine + i)), v = v16_load(x + 2 * i);
        v16_store(x + 2 * i, v16_fma(v, c, v16_mul(v16_swap_pairs(v), s)));
    }
    for (; i < pairs; i++) {
        float x0 = x[2 * i], x1 = x[2 * i + 1];
        x[2 * i] = fmaf(x0, cosine[i], -(x1 * sine[i]));
        x[2 * i + 1] = fmaf(x1, cosine[i], x0 * sine[i]);
    }
}

static inline void rotate_head(float *x, const cera_rope_kv_args *a) {
    if (!a->cos) return;
    if (a->pairs == CERA_ROPE_NEOX)
        rotate_neox(x + a->rot_first, a->cos, a->sin, a->n_rot / 2);
    else
        rotate_interleaved(x + a->rot_first, a->cos, a->sin, a->n_rot / 2);
}

/* x held to the largest finite number of the page type; NaN becomes 0 in values, stays in keys. */
static inline v16 hold(v16 x, float max, int value) {
    x = v16_if_less(v16_set(max), x, v16_set(max), x);
    x = v16_if_less(x, v16_set(-max), v16_set(-max), x);
    return value ? v16_if_nan(x, v16_set(0.0f), x) : x;
}

/* x[d] (readable up to a multiple of 16) to 16 bits. */
static inline void round_head(cera_kv_type t, const float *x, int d, int value, uint16_t *out) {
    for (int i = 0; i < d; i += 16) {
        if (t == CERA_KV_F16)
            v16_store_f16(out + i, hold(v16_load(x + i), NN_MAX_F16, value));
        else
            v16_store_bf16(out + i, hold(v16_load(x + i), NN_MAX_BF16, value));
    }
}

enum { NN_HEAD = CERA_MAX_HEAD_DIM + 16 };

static inline void store_key(const cera_rope_kv_args *a, int head, float *x) {
    const int d = a->d_k, j = a->slot;
    char *page = (char *)a->k_page + (size_t)head * CERA_PAGE_TOKENS * (size_t)d * cera_kv_type_bytes(a->k_type);
    if (a->k_type == CERA_KV_F32) {
        float *to = (float *)page + (size_t)(j / 16) * (size_t)d * 16 + j % 16;
        for (int i = 0; i < d; i += 16) v16_store(x + i, hold(v16_load(x + i), NN_MAX_F32, 0));
        for (int i = 0; i < d; i++) to[(size_t)i * 16] = x[i];
        return;
    }
    uint16_t bits[NN_HEAD];
    uint32_t *to = (uint32_t *)(void *)page + (size_t)(j / 16) * (size_t)(d / 2) * 16 + j % 16;
    round_head(a->k_type, x, d, 0, bits);
    for (int i = 0; i < d / 2; i++) memcpy(to + (size_t)i * 16, bits + 2 * i, sizeof *to);
}

static inline void store_value(const cera_rope_kv_args *a, int head, float *x) {
    const int d = a->d_v, j = a->slot;
    char *page = (char *)a->v_page + (size_t)head * CERA_PAGE_TOKENS * (size_t)d * cera_kv_type_bytes(a->v_type);
    if (a->v_type == CERA_KV_F32) {
        for (int i = 0; i < d; i += 16) v16_store(x + i, hold(v16_load(x + i), NN_MAX_F32, 1));
        memcpy((float *)page + (size_t)j * (size_t)d, x, (size_t)d * sizeof *x);
        return;
    }
    uint16_t bits[NN_HEAD];
    round_head(a->v_type, x, d, 1, bits);
    nn_store_every_second((uint16_t *)page + (size_t)(j / 2) * (size_t)d * 2, j & 1, bits, d);
}

static inline void rope_queries(const cera_rope_kv_args *a) {
    const v16 scale = v16_set(a->q_scale);
    for (int h = 0; h < a->n_head; h++) {
        float *q = a->q + (size_t)h * a->q_stride;
        if (a->q_norm) norm_head(q, a->q_norm, a->d_k, a->eps, q);
        rotate_head(q, a);
        if (a->q_scale == 1.0f) continue;
        int i = 0;
        for (; i + 16 <= a->d_k; i += 16) v16_store(q + i, v16_mul(v16_load(q + i), scale));
        for (; i < a->d_k; i++) q[i] *= a->q_scale;
    }
}

/* A head is worked on in this buffer, in L1, and leaves it once, rounded, for its page. */
static void NN_TIER(rope_kv)(const cera_rope_kv_args *a) {
    float x[NN_HEAD];
    if (a->q) rope_queries(a);
    if (!a->k) return;
    memset(x, 0, sizeof x);
    for (int h = 0; h < a->n_head_kv; h++) {
        const float *k = a->k + (size_t)h * a->k_stride;
        if (a->k_norm)
            norm_head(k, a->k_norm, a->d_k, a->eps, x);
        else
            memcpy(x, k, (size_t)a->d_k * sizeof *x);
        rotate_head(x, a);
        store_key(a, h, x);
    }
    for (int h = 0; a->v && h < a->n_head_kv; h++) {
        memcpy(x, a->v + (size_t)h * a->v_stride, (size_t)a->d_v * sizeof *x);
        store_value(a, h, x);
    }
}

void NN_TIER(cera_kernels_nn)(cera_kernels *k) {
    k->f32_to_bf16 = NN_TIER(f32_to_bf16);
    k->f32_to_f16 = NN_TIER(f32_to_f16);
    k->rms_norm = NN_TIER(rms_norm);
    k->layer_norm = NN_TIER(layer_norm);
    k->rope_table = NN_TIER(rope_table);
    k->rope_kv = NN_TIER(rope_kv);
    k->attend_softmax = NN_TIER(attend_softmax);
    k->attend_merge = NN_TIER(attend_merge);
    k->glu = NN_TIER(glu);
    k->activate = NN_TIER(activate);
    k->softmax = NN_TIER(softmax);
    k->sigmoid = NN_TIER(sigmoid);
    k->softcap = NN_TIER(softcap);
    k->shortconv = NN_TIER(shortconv);
    k->add_scaled = NN_TIER(add_scaled);
    k->argmax = NN_TIER(argmax);
}
