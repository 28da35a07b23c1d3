/* check_acts.c: encoding of activations (encode_q8: exact on every tier) and the copying of columns (cera_acts_gather). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "kernels/ref/quant_block.h"

typedef void (*any_function)(void);
static any_function encode_function(const cera_kernels *k, const char *slot) {
    (void)slot;
    return (any_function)k->encode_q8;
}

static cera_acts make_acts(cera_check *c, int k, int n) {
    cera_acts a;
    cera_acts_layout(CERA_ENC_Q8, k, n, NULL, &a);
    size_t groups = (size_t)(k / 32) * (size_t)n;
    a.q = cera_check_alloc(c, groups * 32);
    a.d = cera_check_alloc(c, groups * 4);
    a.s = cera_check_alloc(c, groups * 4);
    a.sum = cera_check_alloc(c, groups * 4);
    a.sum16 = cera_check_alloc(c, groups * 4);
    a.s16 = cera_check_alloc(c, groups * 8);
    return a;
}

/* A group of one kind: plain, zero, tiny, huge, one outlier, ties at half, infinite, NaN. */
static void fill_group(cera_check *c, float *x) {
    int kind = cera_check_int(c, 0, 11), at = cera_check_int(c, 0, 31);
    float size = kind == 1 ? 0 : kind == 2 ? 0x1p-140f : kind == 3 ? 0x1p-118f : kind == 4 ? 0x1p120f : 1;
    for (int i = 0; i < 32; i++) x[i] = cera_check_normal(c) * size;
    if (kind == 5) x[at] = -1e4f;
    if (kind == 6) x[at] = INFINITY;
    if (kind == 7) x[at] = -NAN;
    if (kind == 8) x[at] = 3.4e38f;
    for (int i = 0; kind == 9 && i < 32; i++) x[i] = (float)cera_check_int(c, -254, 254) / 2;
    if (kind == 9) x[at] = 127;
    for (int i = 0; kind == 10 && i < 32; i++) x[i] = i & 1 ? -0.0f : 0.0f;
}

static void compare_group(cera_check *c, const cera_acts *a, const cera_acts *b, size_t at, const char *what) {
    bool same = !memcmp(a->q + at * 32, b->q + at * 32, 32) && a->sum[at] == b->sum[at] &&
                cera_check_same(a->d[at], b->d[at]) && cera_check_same(a->s[at], b->s[at]);
    for (size_t h = 0; h < 2; h++) {
        same = same && a->sum16[at * 2 + h] == b->sum16[at * 2 + h] && cera_check_same(a->s16[at * 2 + h], b->s16[at * 2 + h]);
    }
    if (!same)
        cera_check_fail(c, "%s: group %zu differs (d %g, %g; sum %d, %d)", what, at, a->d[at], b->d[at], a->sum[at],
                        b->sum[at]);
}

/* The group's values within half a step (and a rounding) of what was encoded. */
static void check_close(cera_check *c, const float *x, const cera_acts *a, size_t at) {
    int sum = 0;
    for (int i = 0; i < 32; i++) {
        int q = a->q[at * 32 + (size_t)i];
        double step = a->d[at], error = fabs((double)x[i] - step * q);
        sum += q;
        if (error > step * (0.5 + 1e-4) + 0x1p-118) cera_check_fail(c, "element %d: %g became %g", i, x[i], step * q);
    }
    if (sum != a->sum[at]) cera_check_fail(c, "sum is %d, not %d", a->sum[at], sum);
}

static void run_encode(cera_check *c) {
    for (int round = 0; round < 60; round++) {
        int k = 32 * cera_check_int(c, 1, 24), n = cera_check_int(c, 1, 5), column = cera_check_int(c, 0, n - 1);
        cera_acts want = make_acts(c, k, n), got = make_acts(c, k, n);
        float *x = cera_check_alloc(c, (size_t)k * 4);
        for (int b = 0; b < k / 32; b++) fill_group(c, x + 32 * b);
        c->ref->encode_q8(x, k, &want, column);
        c->k->encode_q8(x, k, &got, column);
        for (int at = 0; at < k / 32 * n; at++) compare_group(c, &want, &got, (size_t)at, "encode");
        for (int b = 0; b < k / 32; b++) {
            size_t at = (size_t)(b * n + column);
            if (isfinite(got.d[at])) check_close(c, x + 32 * b, &got, at);
        }
        cera_check_free_all(c);
    }
}

/* Column i of the copy equals column columns[i] of the source, in every encoding. */
static void run_gather(cera_check *c) {
    for (int round = 0; round < 20; round++) {
        int k = 32 * cera_check_int(c, 1, 6), n = cera_check_int(c, 1, 9), m = cera_check_int(c, 1, 12);
        int32_t columns[12];
        for (int i = 0; i < m; i++) columns[i] = cera_check_int(c, 0, n - 1);
        for (int enc = 0; enc < CERA_ENC_COUNT; enc++) {
            cera_acts from, to;
            size_t size_from = cera_acts_layout((cera_encoding)enc, k, n, NULL, NULL);
            size_t size_to = cera_acts_layout((cera_encoding)enc, k, m, NULL, NULL);
            uint8_t *memory = cera_check_alloc(c, size_from);
            for (size_t i = 0; i < size_from; i++) memory[i] = (uint8_t)cera_check_random(c);
            cera_acts_layout((cera_encoding)enc, k, n, memory, &from);
            cera_acts_layout((cera_encoding)enc, k, m, cera_check_alloc(c, size_to), &to);
            cera_acts_gather((cera_encoding)enc, &from, columns, m, &to);
            for (int i = 0; i < m; i++) {
                size_t f = (size_t)columns[i], t = (size_t)i, kk = (size_t)k;
                if (enc == CERA_ENC_F32 && memcmp(from.f32 + f * kk, to.f32 + t * kk, kk * 4))
                    cera_check_fail(c, "f32 column %d", i);
                if (enc == CERA_ENC_BF16 && memcmp(from.bf16 + f * kk, to.bf16 + t * kk, kk * 2))
                    cera_check_fail(c, "bf16 column %d", i);
                for (size_t b = 0; enc == CERA_ENC_Q8 && b < kk / 32; b++) {
                    size_t x = b * (size_t)n + f, y = b * (size_t)m + t;
                    if (memcmp(from.q + x * 32, to.q + y * 32, 32) || memcmp(from.d + x, to.d + y, 4) ||
                        memcmp(from.s + x, to.s + y, 4) || from.sum[x] != to.sum[y] ||
                        memcmp(from.sum16 + 2 * x, to.sum16 + 2 * y, 4) || memcmp(from.s16 + 2 * x, to.s16 + 2 * y, 8))
                        cera_check_fail(c, "q8 column %d, group %zu", i, b);
                }
            }
            cera_check_free_all(c);
        }
    }
}

typedef struct encode_job {
    const cera_kernels *k;
    const float *x;
    const cera_acts *out;
} encode_job;
static void encode_once(void *ctx) {
    const encode_job *j = ctx;
    j->k->encode_q8(j->x, j->out->k, j->out, 0);
}

static void bench_encode(cera_check *c) {
    enum { K = 4096 };
    cera_acts out = make_acts(c, K, 1);
    float *x = cera_check_alloc(c, K * 4);
    for (int i = 0; i < K; i++) x[i] = cera_check_normal(c);
    encode_job job = {c->k, x, &out}, plain = {c->ref, x, &out};
    double t = cera_check_time(encode_once, &job, 0.05), t_c = cera_check_time(encode_once, &plain, 0.05);
    printf("%-20s %-12s %8.0f ns for %d elements, %5.1f GB/s, %5.1f x C\n", c->slot, c->tier, t * 1e9, K, K * 4 / t * 1e-9,
           t_c / t);
}

static any_function gather_function(const cera_kernels *k, const char *slot) {
    (void)k;
    (void)slot;
    return (any_function)cera_acts_gather;
}

const cera_check_case cera_check_acts_cases[] = {
    {"encode_q8", encode_function, run_encode, bench_encode},
    {"acts_gather", gather_function, run_gather, NULL},
    {NULL, NULL, NULL, NULL},
};
