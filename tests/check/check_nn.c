/* check_nn.c: the list of checks of the slots that are neither matmul, dequantize nor encode; and here norms, the short
 * convolution, add_scaled, arg max. The others are in check_nn_math.c, check_nn_rope.c, check_nn_attend.c.
 *
 * Two questions are asked of each slot: is it right (against double precision, with a bound derived from the terms), and are
 * its bits those of the C reference (all slots but the bf16 products)? */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "check_nn.h"

float *cera_check_nn_normals(cera_check *c, size_t n, float size) {
    float *x = cera_check_alloc(c, n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = cera_check_normal(c) * size;
    return x;
}

float *cera_check_nn_copy(cera_check *c, const float *x, size_t n) {
    float *y = cera_check_alloc(c, n * sizeof *y);
    memcpy(y, x, n * sizeof *y);
    return y;
}

void cera_check_nn_same(cera_check *c, const char *what, const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (cera_check_same(got[i], want[i])) continue;
        cera_check_fail(c, "%s: element %zu of %zu is %.9g (%a), not %.9g (%a)", what, i, n, (double)got[i], (double)got[i],
                        (double)want[i], (double)want[i]);
        return;
    }
}

double cera_check_nn_ulps(float got, double want) {
    int exponent;
    if (want != want || got != got) return want != want && got != got ? 0 : INFINITY;
    if ((double)got == want || (isinf(got) && isinf((float)want) && signbit(got) == signbit(want))) return 0;
    frexp(want, &exponent);
    return fabs((double)got - want) / fmax(ldexp(1, exponent - 24), 0x1p-149);
}

float cera_check_nn_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

float cera_check_nn_f16(uint16_t h) {
    int e = h >> 10 & 31, m = h & 0x3ff;
    float x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexpf((float)(m + 1024), e - 25) : ldexpf((float)m, -24);
    return h & 0x8000 ? -x : x;
}

float cera_check_nn_any_float(cera_check *c) {
    uint32_t u = (uint32_t)cera_check_random(c);
    int kind = cera_check_int(c, 0, 15);
    float x;
    if (kind == 0) u = (u & 0x80000000) | 0x7f800000;                  /* infinite */
    if (kind == 1) u = (u & 0x80000000);                               /* zero */
    if (kind == 2) u = (u & 0x807fffff);                               /* denormal */
    if (kind == 3) u = (u & 0x807fffff) | 0x7f800000;                  /* NaN */
    if (kind > 8) u = (u & 0x807fffff) | (uint32_t)(107 + kind) << 23; /* near 1 */
    memcpy(&x, &u, 4);
    return x;
}

static const int sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 129, 576, 2048, 4097};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };
static const double U = 0x1p-24; /* relative rounding error of f32 */

/* The sum of squares has n/16 + 4 roundings a term, the factor half of its relative error and 3 more, the products 2. */
static void check_rms_bound(cera_check *c, const float *x, const float *w, int n, float eps, const float *residual,
                            const float *y) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
    double factor = 1 / sqrt(sum / n + eps);
    for (int i = 0; i < n; i++) {
        double v = x[i] * factor * (w ? w[i] : 1), r = residual ? residual[i] : 0;
        double bound = U * (fabs(v) * ((n / 16 + 5) / 2.0 + 6) + fabs(v + r)) + 0x1p-148;
        if (!(fabs(y[i] - (v + r)) <= bound)) {
            cera_check_fail(c, "n %d: element %d is %g, not %g", n, i, (double)y[i], v + r);
            return;
        }
    }
}

static void rms_norm_case(cera_check *c, int n, int flags, float size) {
    float *x = cera_check_nn_normals(c, (size_t)n, size), eps = flags & 8 ? 0.0f : 1e-5f;
    float *w = flags & 1 ? cera_check_nn_normals(c, (size_t)n, 1) : NULL;
    float *residual = flags & 2 ? cera_check_nn_normals(c, (size_t)n, 1) : NULL;
    float *got = flags & 4 ? cera_check_nn_copy(c, x, (size_t)n) : cera_check_alloc(c, (size_t)n * 4);
    float *want = cera_check_alloc(c, (size_t)n * 4);
    c->ref->rms_norm(x, w, n, eps, residual, want);
    c->k->rms_norm(flags & 4 ? got : x, w, n, eps, residual, got);
    cera_check_nn_same(c, "against C", got, want, (size_t)n);
    /* Outside this range squares round to denormals or overflow: then only the bits are compared. */
    if (size > 1e-15f && size < 1e15f) check_rms_bound(c, x, w, n, eps, residual, got);
}

static void check_rms_norm(cera_check *c) {
    static const float magnitudes[] = {1, 1, 1e-3f, 100, 0, 1e-24f, 1e24f, INFINITY};
    for (int s = 0; s < N_SIZES; s++) {
        for (int flags = 0; flags < 16; flags++) {
            rms_norm_case(c, sizes[s], flags, magnitudes[cera_check_int(c, 0, flags & 8 ? 1 : 7)]);
            cera_check_free_all(c);
        }
    }
}

/* em: error of the mean; ed: of a difference; the variance takes 2 |d| ed and its own roundings over. */
static void check_layer_bound(cera_check *c, const float *x, const float *w, const float *b, int n, float eps, const float *r,
                              const float *y) {
    double sum = 0, size = 0, squares = 0, spread = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        size += fabs((double)x[i]);
    }
    double mean = sum / n, em = U * (n / 16 + 6) * size / n;
    for (int i = 0; i < n; i++) {
        double d = x[i] - mean;
        squares += d * d;
        spread += fabs(d);
        largest = fmax(largest, fabs(d));
    }
    double ed = em + U * largest, var = squares / n, ev = U * (n / 16 + 6) * var + 2 * ed * spread / n + ed * ed;
    double factor = 1 / sqrt(var + eps), ef = factor * (0.5 * ev / (var + eps) + 4 * U);
    for (int i = 0; i < n; i++) {
        double d = x[i] - mean, v = d * factor * (w ? w[i] : 1), bias = b ? b[i] : 0, all = v + bias + (r ? r[i] : 0);
        double bound =
            (ed * factor + fabs(d) * ef) * fabs(w ? w[i] : 1) * 1.01 + U * (2 * fabs(v) + fabs(v + bias) + fabs(all)) + 1e-40;
        if (!(fabs(y[i] - all) <= bound)) {
            cera_check_fail(c, "n %d: element %d is %g, not %g (bound %g)", n, i, (double)y[i], all, bound);
            return;
        }
    }
}

static void check_layer_norm(cera_check *c) {
    for (int s = 0; s < N_SIZES; s++) {
        for (int flags = 0; flags < 16; flags++) {
            int n = sizes[s];
            size_t count = (size_t)n;
            float *x = cera_check_nn_normals(c, count, flags & 2 ? 30.0f : 1.0f), *w = cera_check_nn_normals(c, count, 1);
            for (int i = 0; i < n; i++) x[i] += flags & 4 ? 3.0f : 0.0f;
            float *b = flags & 1 ? cera_check_nn_normals(c, count, 1) : NULL,
                  *r = flags & 2 ? cera_check_nn_normals(c, count, 1) : NULL;
            float *want = cera_check_alloc(c, count * 4);
            float *got = flags & 8 ? cera_check_nn_copy(c, x, count) : cera_check_alloc(c, count * 4);
            c->ref->layer_norm(x, w, b, n, 1e-5f, r, want);
            c->k->layer_norm(flags & 8 ? got : x, w, b, n, 1e-5f, r, got);
            cera_check_nn_same(c, "against C", got, want, count);
            check_layer_bound(c, x, w, b, n, 1e-5f, r, got);
            cera_check_free_all(c);
        }
    }
}

static void shortconv_case(cera_check *c, int h, int l, bool in_place) {
    size_t states = (size_t)(l - 1) * (size_t)h, width = (size_t)h;
    float *bcx = cera_check_nn_normals(c, 3 * width, 1), *w = cera_check_nn_normals(c, width * (size_t)l, 1);
    float *state = cera_check_nn_normals(c, states, 1), *old = cera_check_nn_copy(c, state, states);
    float *next = in_place ? state : cera_check_alloc(c, states * 4), *out = cera_check_alloc(c, width * 4);
    c->k->shortconv(bcx, w, h, l, state, next, out);
    for (size_t i = 0; i < width; i++) {
        float b = bcx[i] * bcx[2 * width + i];
        double y = 0, size = 0;
        for (int j = 0; j < l; j++) {
            float s = j == l - 1 ? b : old[(size_t)j * width + i];
            y += (double)s * w[i * (size_t)l + (size_t)j];
            size += fabs((double)s * w[i * (size_t)l + (size_t)j]);
            if (j > 0 && next[(size_t)(j - 1) * width + i] != s)
                cera_check_fail(c, "h %d l %d: state %d of channel %zu", h, l, j, i);
        }
        double bound = U * (l + 2) * size * fabs(bcx[width + i]);
        if (!(fabs(out[i] - y * bcx[width + i]) <= bound))
            cera_check_fail(c, "h %d l %d: channel %zu is %g", h, l, i, (double)out[i]);
    }
    float *want = cera_check_alloc(c, width * 4), *want_state = cera_check_alloc(c, states * 4);
    c->ref->shortconv(bcx, w, h, l, old, want_state, want);
    cera_check_nn_same(c, "against C", out, want, width);
}

static void check_shortconv(cera_check *c) {
    static const int widths[] = {1, 7, 15, 16, 17, 33, 64, 100, 1024};
    for (size_t s = 0; s < sizeof widths / sizeof widths[0]; s++) {
        for (int l = 1; l <= 6; l++) {
            shortconv_case(c, widths[s], l, false);
            shortconv_case(c, widths[s], l, true);
            cera_check_free_all(c);
        }
    }
}

static void check_add_scaled(cera_check *c) {
    for (int n = 0; n < 70; n++) {
        size_t count = (size_t)n;
        float *x = cera_check_nn_normals(c, count, 1), *got = cera_check_nn_normals(c, count, 1), scale = cera_check_normal(c);
        float *want = cera_check_nn_copy(c, got, count);
        for (int i = 0; i < n; i++) want[i] = fmaf(x[i], scale, want[i]);
        c->k->add_scaled(x, scale, n, got);
        cera_check_nn_same(c, "against fma", got, want, count);
        cera_check_free_all(c);
    }
}

static void argmax_one(cera_check *c, const float *x, int n) {
    int best = -1, finite = 1, got_finite = 7, got = c->k->argmax(x, n, &got_finite);
    for (int i = n - 1; i >= 0; i--) {
        finite = finite && !isnan(x[i]) && x[i] != INFINITY;
        if (!isnan(x[i]) && (best < 0 || x[i] >= x[best])) best = i;
    }
    if (best < 0) best = 0;
    if (got != best || !got_finite != !finite)
        cera_check_fail(c, "n %d: index %d finite %d, not %d, %d", n, got, got_finite, best, finite);
}

/* Few values, so that ties are the rule; then all kinds; then each place of the largest; NaN or infinity in each place. */
static void check_argmax(cera_check *c) {
    for (int round = 0; round < 1500; round++) {
        int n = round < 200 ? round % 100 + 1 : cera_check_int(c, 1, 200), kind = cera_check_int(c, 0, 3);
        float *x = cera_check_alloc(c, (size_t)n * 4);
        for (int i = 0; i < n; i++) {
            x[i] = kind == 0 ? (float)cera_check_int(c, -2, 2) : kind == 1 ? cera_check_nn_any_float(c) : cera_check_normal(c);
            if (kind == 2 && cera_check_int(c, 0, 2)) x[i] = -INFINITY;
        }
        argmax_one(c, x, n);
        x[cera_check_int(c, 0, n - 1)] = 100;
        argmax_one(c, x, n);
        x[cera_check_int(c, 0, n - 1)] = round & 1 ? NAN : round & 2 ? INFINITY : -INFINITY;
        argmax_one(c, x, n);
        for (int i = 0; i < n && round % 50 == 0; i++) x[i] = round % 100 ? NAN : -INFINITY;
        argmax_one(c, x, n);
        cera_check_free_all(c);
    }
}

typedef struct norm_job {
    const cera_check *c;
    float *x, *w, *y;
} norm_job;

static void norm_once(void *ctx) {
    norm_job *j = ctx;
    j->c->k->rms_norm(j->x, j->w, 2048, 1e-5f, NULL, j->y);
}
static void argmax_once(void *ctx) {
    norm_job *j = ctx;
    int finite;
    j->c->k->argmax(j->x, 2048, &finite);
}
static void bench_rms_norm(cera_check *c) {
    norm_job j = {c, cera_check_nn_normals(c, 2048, 1), cera_check_nn_normals(c, 2048, 1), cera_check_nn_normals(c, 2048, 1)};
    printf("rms_norm/%s: 2048 elements %.0f ns\n", c->tier, 1e9 * cera_check_time(norm_once, &j, 0.05));
}
static void bench_argmax(cera_check *c) {
    norm_job j = {c, cera_check_nn_normals(c, 2048, 1), NULL, NULL};
    printf("argmax/%s: 2048 elements %.0f ns\n", c->tier, 1e9 * cera_check_time(argmax_once, &j, 0.05));
}

typedef void (*any_function)(void);
static any_function slot_function(const cera_kernels *k, const char *slot) {
#define SLOT(ret, name, args) \
    if (!strcmp(slot, #name)) return (any_function)k->name;
#include "kernels/kernels.def"
#undef SLOT
    return NULL;
}

#define CASE(slot, run, bench) \
    { slot, slot_function, run, bench }
const cera_check_case cera_check_nn_cases[] = {
    CASE("f32_to_bf16", cera_check_nn_f32_to_bf16, NULL),
    CASE("f32_to_f16", cera_check_nn_f32_to_f16, NULL),
    CASE("rms_norm", check_rms_norm, bench_rms_norm),
    CASE("layer_norm", check_layer_norm, NULL),
    CASE("rope_table", cera_check_nn_rope_table, NULL),
    CASE("rope_kv", cera_check_nn_rope_kv, cera_check_nn_rope_kv_bench),
    CASE("rope_kv", cera_check_nn_rope_kv_edges, NULL),
    CASE("rope_kv", cera_check_nn_rope_kv_threads, NULL),
    CASE("attend_scores_f32", cera_check_nn_scores, cera_check_nn_scores_bench),
    CASE("attend_scores_f16", cera_check_nn_scores, cera_check_nn_scores_bench),
    CASE("attend_scores_bf16", cera_check_nn_scores, cera_check_nn_scores_bench),
    CASE("attend_scores_f32", cera_check_nn_scores_alone, NULL),
    CASE("attend_scores_f16", cera_check_nn_scores_alone, NULL),
    CASE("attend_scores_bf16", cera_check_nn_scores_alone, NULL),
    CASE("attend_softmax", cera_check_nn_attend_softmax, cera_check_nn_softmax_bench),
    CASE("attend_values_f32", cera_check_nn_values, cera_check_nn_values_bench),
    CASE("attend_values_f16", cera_check_nn_values, cera_check_nn_values_bench),
    CASE("attend_values_bf16", cera_check_nn_values, cera_check_nn_values_bench),
    CASE("attend_values_f32", cera_check_nn_values_alone, NULL),
    CASE("attend_values_f16", cera_check_nn_values_alone, NULL),
    CASE("attend_values_bf16", cera_check_nn_values_alone, NULL),
    CASE("attend_merge", cera_check_nn_attend_merge, NULL),
    CASE("glu", cera_check_nn_glu, cera_check_nn_glu_bench),
    CASE("activate", cera_check_nn_activate, NULL),
    CASE("softmax", cera_check_nn_softmax, NULL),
    CASE("sigmoid", cera_check_nn_sigmoid, NULL),
    CASE("softcap", cera_check_nn_softcap, NULL),
    CASE("shortconv", check_shortconv, NULL),
    CASE("add_scaled", check_add_scaled, NULL),
    CASE("argmax", check_argmax, bench_argmax),
    {NULL, NULL, NULL, NULL},
};
