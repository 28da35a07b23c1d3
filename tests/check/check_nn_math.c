/* check_nn_math.c: conversions to 16 bits (exact), activations, softmax, sigmoid, soft cap: bits of the C reference, and the
 * errors that nn_math.h states, against libm in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check_nn.h"

static const double U = 0x1p-24;

typedef void (*to_16_fn)(const float *x, int n, uint16_t *out);
typedef float (*from_16_fn)(uint16_t h);

static float from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* Every value of the type, every border between two neighbours (a tie: to the even one) and the floats beside the border. */
static void check_all_borders(cera_check *c, to_16_fn to, from_16_fn from, uint16_t infinity) {
    enum { PER = 8 };
    size_t n = (size_t)infinity * PER;
    float *x = cera_check_alloc(c, n * 4);
    uint16_t *want = malloc(n * 2), *got = cera_check_alloc(c, n * 2);
    for (uint16_t h = 0; h < infinity; h++) {
        float low = from(h);
        /* The largest value's upper neighbour is where infinity would be if the exponent went on. */
        double high = h + 1 == infinity ? 2.0 * (double)low - (double)from((uint16_t)(h - 1)) : (double)from((uint16_t)(h + 1));
        float border = (float)(((double)low + high) / 2);
        float *px = x + (size_t)h * PER;
        uint16_t *pw = want + (size_t)h * PER, up = (uint16_t)(h + 1), even = h & 1 ? up : h;
        px[0] = low, pw[0] = h;
        px[1] = nextafterf(border, 0), pw[1] = h;
        px[2] = border, pw[2] = even;
        px[3] = nextafterf(border, INFINITY), pw[3] = up;
        for (int i = 0; i < 4; i++) {
            px[4 + i] = -px[i];
            pw[4 + i] = pw[i] | 0x8000;
        }
    }
    to(x, (int)n, got);
    for (size_t i = 0; i < n; i++) {
        if (got[i] != want[i]) cera_check_fail(c, "%a became %04x, not %04x", (double)x[i], got[i], want[i]);
    }
    free(want);
}

static void check_to_16(cera_check *c, to_16_fn to, to_16_fn to_ref, from_16_fn from, uint16_t infinity) {
    check_all_borders(c, to, from, infinity);
    cera_check_free_all(c);
    for (int n = 0; n < 80; n++) {
        size_t count = (size_t)n;
        float *x = cera_check_alloc(c, count * 4);
        for (size_t i = 0; i < count; i++) {
            x[i] = i % 3 ? cera_check_nn_any_float(c)
                         : from_bits(0x7f800001u + ((uint32_t)cera_check_random(c) & 0x807ffffeu) / 2);
        }
        uint16_t *got = cera_check_alloc(c, count * 2), want[80];
        to(x, n, got);
        to_ref(x, n, want);
        for (size_t i = 0; i < count; i++) {
            if (got[i] != want[i]) cera_check_fail(c, "n %d: %a became %04x, not %04x", n, (double)x[i], got[i], want[i]);
            if (isnan(x[i]) && !isnan(from(got[i]))) cera_check_fail(c, "NaN became %04x", got[i]);
        }
        cera_check_free_all(c);
    }
}

void cera_check_nn_f32_to_bf16(cera_check *c) {
    check_to_16(c, c->k->f32_to_bf16, c->ref->f32_to_bf16, cera_check_nn_bf16, 0x7f80);
}
void cera_check_nn_f32_to_f16(cera_check *c) {
    check_to_16(c, c->k->f32_to_f16, c->ref->f32_to_f16, cera_check_nn_f16, 0x7c00);
}

static double sigmoid_double(double x) { return 1 / (1 + exp(-x)); }

/* The value in double and what the recipe may be off by. Where exp under- or overflows f32, results below 3e-37 become 0. */
static double activation_double(cera_activation act, double x, double *bound) {
    double y, u, g;
    const double tiny = 3e-37;
    switch (act) {
    case CERA_ACT_SILU:
        y = x * sigmoid_double(x);
        *bound = 2.5 * 2 * U * fabs(y) + tiny;
        return y;
    case CERA_ACT_GELU: /* u carries 5 roundings, which count u sigmoid(-u) times in the result */
        u = 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
        y = x * sigmoid_double(u);
        *bound = U * fabs(y) * (5 + 5 * fabs(u) * sigmoid_double(-u)) + tiny;
        return y;
    case CERA_ACT_GELU_ERF: /* a^2 carries 4 roundings; the fit and its evaluation 8 */
        g = 0.5 * erfc(fabs(x) * sqrt(0.5));
        y = x * (x > 0 ? 1 - g : g);
        *bound = fabs(x) * g * U * (4 * x * x / 2 + 10) + 2 * U * fabs(y) + tiny;
        return y;
    case CERA_ACT_RELU_SQ: *bound = U * x * x + 0x1p-149; return x > 0 ? x * x : 0;
    default:
        x = fmin(x, 7);
        u = 1.702 * x; /* 1.702 as a float is off by up to half an ulp too */
        y = x * sigmoid_double(u);
        *bound = U * fabs(y) * (5 + 2 * fabs(u) * sigmoid_double(-u)) + tiny;
        return y;
    }
}

enum { N_SAMPLES = 20011 };

static float *samples(cera_check *c, size_t n) {
    float *x = cera_check_alloc(c, n * 4);
    for (size_t i = 0; i < n; i++) {
        x[i] = i % 4 == 0 ? cera_check_nn_any_float(c)
                          : cera_check_float(c, -1, 1) * (i % 4 == 1   ? 100.0f
                                                          : i % 4 == 2 ? 10.0f
                                                                       : 1.0f);
    }
    return x;
}

static void check_activation_bound(cera_check *c, cera_activation act, const float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double bound, want;
        if (isnan(x[i]) != isnan(y[i]) && !isinf(x[i]))
            cera_check_fail(c, "act %d: %g gives %g", act, (double)x[i], (double)y[i]);
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        want = activation_double(act, x[i], &bound);
        if (!(fabs(y[i] - want) <= bound)) {
            cera_check_fail(c, "act %d: %.9g gives %.9g, not %.9g", act, (double)x[i], (double)y[i], want);
            return;
        }
    }
}

void cera_check_nn_activate(cera_check *c) {
    for (int act = 0; act < CERA_ACT_COUNT; act++) {
        for (int n = 0; n < 40; n++) {
            size_t count = n < 39 ? (size_t)n : N_SAMPLES;
            float *x = samples(c, count), *got = cera_check_alloc(c, count * 4), *want = cera_check_alloc(c, count * 4);
            c->ref->activate((cera_activation)act, x, (int)count, want);
            c->k->activate((cera_activation)act, x, (int)count, got);
            cera_check_nn_same(c, "against C", got, want, count);
            check_activation_bound(c, (cera_activation)act, x, got, count);
            cera_check_free_all(c);
        }
    }
}

void cera_check_nn_glu(cera_check *c) {
    for (int act = 0; act < CERA_ACT_COUNT; act++) {
        for (int n = 0; n < 40; n++) {
            size_t count = n < 39 ? (size_t)n : 3001;
            float *gate = samples(c, count), *up = samples(c, count);
            float *got = n & 1 ? cera_check_nn_copy(c, gate, count) : cera_check_alloc(c, count * 4),
                  *want = cera_check_alloc(c, count * 4);
            c->ref->activate((cera_activation)act, gate, (int)count, want);
            for (size_t i = 0; i < count; i++) {
                float u = up[i];
                if (act == CERA_ACT_SWIGLU_OAI) u = (u > 7 ? 7 : u < -7 ? -7 : u) + 1;
                want[i] *= u;
            }
            c->k->glu((cera_activation)act, n & 1 ? got : gate, up, (int)count, got);
            cera_check_nn_same(c, "against activate times up", got, want, count);
            cera_check_free_all(c);
        }
    }
}

/* In place; bits of C; at most `ulps` from the true function. Values whose result underflows count from 2^-126. */
static void check_unary(cera_check *c, void (*got_fn)(float *x, int n), void (*want_fn)(float *x, int n), double (*f)(double),
                        double ulps) {
    for (int n = 0; n < 41; n++) {
        size_t count = n < 40 ? (size_t)n : N_SAMPLES;
        float *x = samples(c, count), *got = cera_check_nn_copy(c, x, count), *want = cera_check_nn_copy(c, x, count);
        got_fn(got, (int)count);
        want_fn(want, (int)count);
        cera_check_nn_same(c, "against C", got, want, count);
        for (size_t i = 0; i < count; i++) {
            double y = f(x[i]), off = cera_check_nn_ulps(got[i], y);
            if (fabs(y) < 0x1p-126 && fabsf(got[i]) < 0x1p-126f) continue;
            if (!(off <= ulps)) cera_check_fail(c, "%.9g gives %.9g, not %.9g: %.2f ulp", (double)x[i], (double)got[i], y, off);
        }
        cera_check_free_all(c);
    }
}

void cera_check_nn_sigmoid(cera_check *c) { check_unary(c, c->k->sigmoid, c->ref->sigmoid, sigmoid_double, 2.5); }

/* With a cap of 1 it is tanh; other caps only scale: one division before, one product after. */
void cera_check_nn_softcap(cera_check *c) {
    static const float caps[] = {1, 1, 30, 50, 0.1f};
    for (int n = 0; n < 50; n++) {
        size_t count = n < 40 ? (size_t)n : N_SAMPLES;
        float *x = samples(c, count), *got = cera_check_nn_copy(c, x, count), *want = cera_check_nn_copy(c, x, count),
              cap = caps[n % 5];
        c->k->softcap(got, (int)count, cap);
        c->ref->softcap(want, (int)count, cap);
        cera_check_nn_same(c, "against C", got, want, count);
        for (size_t i = 0; i < count; i++) {
            double y = (double)cap * tanh((double)x[i] / (double)cap), off = cera_check_nn_ulps(got[i], y);
            if (fabs(y) < 0x1p-120) continue; /* a denormal quotient has lost bits */
            if (!(off <= (cap == 1 ? 1.5 : 3.5)))
                cera_check_fail(c, "cap %g: %.9g gives %.9g, not %.9g: %.2f ulp", (double)cap, (double)x[i], (double)got[i], y,
                                off);
        }
        cera_check_free_all(c);
    }
}

/* One row: the largest argument error is the rounding of x - max, then exp (1.0 ulp), the sum's n/16 + 5 roundings, the
 * division. */
static void check_softmax_bound(cera_check *c, const float *x, int n, const float *y) {
    double max = -INFINITY, sum = 0, spread = 0;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++) {
        sum += exp(x[i] - max);
        spread += exp(x[i] - max) * fmin(max - x[i], 1000);
    }
    for (int i = 0; i < n; i++) {
        double want = exp(x[i] - max) / sum,
               bound = want * U * (fmin(max - x[i], 1000) + 2 + spread / sum + 2 + n / 16 + 5 + 2) + 0x1p-125;
        if (!(fabs(y[i] - want) <= bound)) {
            cera_check_fail(c, "n %d: element %d is %g, not %g", n, i, (double)y[i], want);
            return;
        }
    }
}

void cera_check_nn_softmax(cera_check *c) {
    static const float spreads[] = {0, 1, 10, 100, 1e4f, 1e30f};
    for (int n = 1; n < 300; n += n < 70 ? 1 : 37) {
        for (int s = 0; s < 6; s++) {
            size_t count = (size_t)n;
            float *x = cera_check_nn_normals(c, count, spreads[s]), *got, *want;
            if (s == 3 && n > 2) x[cera_check_int(c, 0, n - 1)] = -INFINITY;
            got = cera_check_nn_copy(c, x, count);
            want = cera_check_nn_copy(c, x, count);
            c->k->softmax(got, n);
            c->ref->softmax(want, n);
            cera_check_nn_same(c, "against C", got, want, count);
            check_softmax_bound(c, x, n, got);
            x[cera_check_int(c, 0, n - 1)] = NAN;
            c->k->softmax(x, n);
            for (int i = 0; i < n; i++) {
                if (!isnan(x[i])) cera_check_fail(c, "n %d: a NaN in the row leaves %g", n, (double)x[i]);
            }
            cera_check_free_all(c);
        }
    }
}

static double capped(float s, float softcap) { return softcap != 0 ? softcap * tanh(s / (double)softcap) : s; }

/* The cap's own error (a quotient, 1.5 ulp of tanh, a product) and the rounding of the difference move the argument of exp. */
static void check_segment(cera_check *c, const float *s, int lo, int hi, float softcap, const float *got, float got_sum) {
    double top = -INFINITY, total = 0, slack = 0;
    for (int i = 0; i < 256; i++) {
        if (i >= lo && i < hi)
            top = fmax(top, capped(s[i], softcap));
        else if (got[i] != 0)
            cera_check_fail(c, "[%d, %d): unseen key %d has probability %g", lo, hi, i, (double)got[i]);
    }
    for (int i = lo; i < hi; i++) {
        double x = capped(s[i], softcap) - top, e = exp(x),
               bound = e * U * (fabs(x) + 3 + 12 * fabs((double)softcap)) + 0x1p-125;
        if (!(fabs(got[i] - e) <= bound)) cera_check_fail(c, "[%d, %d): key %d is %g, not %g", lo, hi, i, (double)got[i], e);
        total += e;
        slack += bound;
    }
    if (!(fabs(got_sum - total) <= slack + 21 * U * total))
        cera_check_fail(c, "[%d, %d): sum %g, not %g", lo, hi, (double)got_sum, total);
}

static void softmax_segment(cera_check *c, int lo, int hi, float softcap, float size) {
    float *s = cera_check_nn_normals(c, 256, size), *got, *want, max[2], sum[2];
    for (int i = 0; i < 256; i++) {
        if (i < lo || i >= hi) s[i] = i & 1 ? NAN : 1e30f; /* what is not seen may be anything */
    }
    got = cera_check_nn_copy(c, s, 256);
    want = cera_check_nn_copy(c, s, 256);
    c->k->attend_softmax(got, lo, hi, softcap, &max[0], &sum[0]);
    c->ref->attend_softmax(want, lo, hi, softcap, &max[1], &sum[1]);
    cera_check_nn_same(c, "against C", got, want, 256);
    if (max[0] != max[1] || !cera_check_same(sum[0], sum[1])) cera_check_fail(c, "[%d, %d): max or sum differ from C", lo, hi);
    check_segment(c, s, lo, hi, softcap, got, sum[0]);
    cera_check_free_all(c);
}

void cera_check_nn_attend_softmax(cera_check *c) {
    static const float sizes[] = {1, 10, 0.01f, 60}, caps[] = {0, 0, 50, 30, 1};
    for (int i = 0; i < 256; i++) softmax_segment(c, i, i + 1, 0, 1);
    for (int i = 1; i <= 256; i++) softmax_segment(c, 0, i, 0, 1);
    for (int i = 0; i < 1000; i++) {
        int lo = cera_check_int(c, 0, 255), hi = cera_check_int(c, lo + 1, 256);
        softmax_segment(c, lo, hi, caps[i % 5], sizes[i % 4]);
    }
    for (int i = 0; i < 200; i++) { /* exp by itself: a score of 0 is the maximum, the others lie below it */
        float s[256], x[256], max, sum;
        for (int j = 0; j < 256; j++) x[j] = s[j] = j ? cera_check_float(c, -87.3f, 0) : 0;
        c->k->attend_softmax(s, 0, 256, 0, &max, &sum);
        for (int j = 0; j < 256; j++) {
            double off = cera_check_nn_ulps(s[j], exp(x[j]));
            if (!(off <= 1.0)) cera_check_fail(c, "exp(%.9g) is %.9g: %.2f ulp", (double)x[j], (double)s[j], off);
        }
    }
}

typedef struct glu_job {
    const cera_check *c;
    cera_activation act;
    float *x, *y, *out;
} glu_job;

static void glu_once(void *ctx) {
    glu_job *j = ctx;
    j->c->k->glu(j->act, j->x, j->y, 8192, j->out);
}
static void softmax_once(void *ctx) {
    glu_job *j = ctx;
    float max, sum;
    memcpy(j->y, j->x, 1024);
    j->c->k->attend_softmax(j->y, 0, 256, 0, &max, &sum);
}

void cera_check_nn_glu_bench(cera_check *c) {
    static const char *const names[] = {"silu", "gelu", "gelu_erf", "relu_sq", "swiglu_oai"};
    for (int act = 0; act < CERA_ACT_COUNT; act++) {
        glu_job j = {c, (cera_activation)act, cera_check_nn_normals(c, 8192, 1), cera_check_nn_normals(c, 8192, 1),
                     cera_check_nn_normals(c, 8192, 1)};
        printf("glu/%s: %s, 8192 elements %.2f us\n", c->tier, names[act], 1e6 * cera_check_time(glu_once, &j, 0.03));
    }
}

void cera_check_nn_softmax_bench(cera_check *c) {
    glu_job j = {c, CERA_ACT_SILU, cera_check_nn_normals(c, 256, 1), cera_check_nn_normals(c, 256, 1), NULL};
    printf("attend_softmax/%s: 256 keys %.0f ns\n", c->tier, 1e9 * cera_check_time(softmax_once, &j, 0.05));
}
