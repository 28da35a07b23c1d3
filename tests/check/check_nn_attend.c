/* check_nn_attend.c: scores and values of one segment against double precision with a derived bound and, where the contract
 * says so, against the bits of C; that a query's result depends neither on the other queries of the call nor on the width of
 * [first, end); the merge of segments. Pages end at guard pages; pages outside [first, end) are NULL. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check_nn.h"

static const double U = 0x1p-24;
enum { SEGMENT = CHECK_NN_SEGMENT, PAGE = CHECK_NN_PAGE };

typedef void (*scores_fn)(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4], int first, int end,
                          float *scores);
typedef void (*values_fn)(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end, float *o,
                          size_t o_stride);

static cera_kv_type type_of(const char *slot) {
    return strstr(slot, "bf16") ? CERA_KV_BF16 : strstr(slot, "f16") ? CERA_KV_F16 : CERA_KV_F32;
}
static scores_fn scores_of(const cera_kernels *k, cera_kv_type t) {
    return t == CERA_KV_F32 ? k->attend_scores_f32 : t == CERA_KV_F16 ? k->attend_scores_f16 : k->attend_scores_bf16;
}
static values_fn values_of(const cera_kernels *k, cera_kv_type t) {
    return t == CERA_KV_F32 ? k->attend_values_f32 : t == CERA_KV_F16 ? k->attend_values_f16 : k->attend_values_bf16;
}
/* Tiers with bf16 products have their own order within a pair. */
static bool exact(const cera_check *c, cera_kv_type t) {
    return t != CERA_KV_BF16 || !(c->k->tier == CERA_TIER_AVX512BF16 || c->k->tier == CERA_TIER_AMX);
}

static uint16_t round_16(const cera_check *c, cera_kv_type t, float x) {
    uint16_t h;
    if (t == CERA_KV_F16)
        c->ref->f32_to_f16(&x, 1, &h);
    else
        c->ref->f32_to_bf16(&x, 1, &h);
    return h;
}
static float widen(cera_kv_type t, uint16_t h) { return t == CERA_KV_F16 ? cera_check_nn_f16(h) : cera_check_nn_bf16(h); }
static double operand(const cera_check *c, cera_kv_type t, float x) {
    return t == CERA_KV_BF16 ? widen(t, round_16(c, t, x)) : x;
}

typedef struct cache {
    const void *pages[4];
    float *x; /* [256][d] what the pages hold */
    int d;
} cache;

static size_t place(cera_kv_type t, int d, int j, int i, bool value) {
    size_t dd = (size_t)d, jj = (size_t)j, ii = (size_t)i;
    if (t == CERA_KV_F32) return value ? jj * dd + ii : (jj / 16 * dd + ii) * 16 + jj % 16;
    return value ? (jj / 2 * dd + ii) * 2 + jj % 2 : ((jj / 16 * (dd / 2) + ii / 2) * 16 + jj % 16) * 2 + ii % 2;
}

/* Four pages in the layout of kernels.h. size: standard deviation; kinds: some elements zero, largest or denormal. */
static cache make_cache(cera_check *c, cera_kv_type t, int d, bool value, float size, bool extremes) {
    cache s = {.d = d, .x = cera_check_alloc(c, (size_t)SEGMENT * (size_t)d * 4)};
    float largest = t == CERA_KV_F16 ? 65504.0f : 1e17f, smallest = t == CERA_KV_F16 ? 0x1p-24f : 0x1p-130f;
    for (int page = 0; page < 4; page++) {
        void *data = cera_check_alloc(c, (size_t)PAGE * (size_t)d * cera_kv_type_bytes(t));
        s.pages[page] = data;
        for (int j = 0; j < PAGE; j++) {
            for (int i = 0; i < d; i++) {
                float x = cera_check_normal(c) * size;
                int kind = extremes ? cera_check_int(c, 0, 9) : 9;
                if (kind < 3) x = kind == 0 ? 0 : kind == 1 ? largest : -smallest;
                size_t at = place(t, d, j, i, value);
                if (t == CERA_KV_F32)
                    ((float *)data)[at] = x;
                else
                    x = widen(t, ((uint16_t *)data)[at] = round_16(c, t, x));
                s.x[(size_t)(page * PAGE + j) * (size_t)d + (size_t)i] = x;
            }
        }
    }
    return s;
}

/* Pages that [first, end) does not touch are NULL. */
static void visible_pages(const cache *s, int first, int end, const void *pages[4]) {
    for (int i = 0; i < 4; i++) pages[i] = first < (i + 1) * PAGE && end > i * PAGE ? s->pages[i] : NULL;
}

/* Each product and sum rounds once: chain + 3 roundings of the sum of magnitudes; a tier with bf16 products may take denormals
 * (operands and results) for zero. */
static double chain_bound(int chain, double magnitude, double largest_q, double largest_k, cera_kv_type t) {
    double flushed = t == CERA_KV_BF16 ? chain * 0x1p-126 * (2 + largest_q + largest_k) : 0;
    return U * (chain + 3) * magnitude + chain * 0x1p-149 + flushed;
}

static void check_scores(cera_check *c, cera_kv_type t, const cache *s, const float *q, size_t stride, int n_q, int first,
                         int end, const float *got) {
    for (int i = 0; i < n_q; i++) {
        for (int key = first; key < end; key++) {
            double sum = 0, size = 0, lq = 0, lk = 0;
            for (int d = 0; d < s->d; d++) {
                double a = operand(c, t, q[(size_t)i * stride + (size_t)d]), k = s->x[(size_t)key * (size_t)s->d + (size_t)d];
                sum += a * k;
                size += fabs(a * k);
                lq = fmax(lq, fabs(a));
                lk = fmax(lk, fabs(k));
            }
            double x = got[(size_t)i * SEGMENT + (size_t)key];
            if (fabs(x - sum) <= chain_bound(s->d, size, lq, lk, t)) continue;
            cera_check_fail(c, "n_q %d d %d [%d, %d): query %d key %d is %g, not %g", n_q, s->d, first, end, i, key, x, sum);
            return;
        }
    }
}

static void scores_case(cera_check *c, cera_kv_type t, int n_q, int d, int first, int end, bool extremes) {
    size_t stride = (size_t)d + (n_q & 1 ? 3 : 0), floats = (size_t)(n_q - 1) * stride + (size_t)d, out = (size_t)n_q * SEGMENT;
    cache s = make_cache(c, t, d, false, 1, extremes);
    float *q = cera_check_nn_normals(c, floats, 1), *got = cera_check_alloc(c, out * 4), *want = cera_check_alloc(c, out * 4);
    const void *pages[4];
    visible_pages(&s, first, end, pages);
    scores_of(c->k, t)(q, stride, n_q, d, pages, first, end, got);
    check_scores(c, t, &s, q, stride, n_q, first, end, got);
    if (exact(c, t)) {
        scores_of(c->ref, t)(q, stride, n_q, d, pages, first, end, want);
        for (int i = 0; i < n_q; i++) {
            size_t at = (size_t)i * SEGMENT + (size_t)first;
            cera_check_nn_same(c, "against C", got + at, want + at, (size_t)(end - first));
        }
    }
    cera_check_free_all(c);
}

static const int head_sizes[] = {2, 10, 64, 80, 96, 128, 192, 256, 512, 576, 1024};

void cera_check_nn_scores(cera_check *c) {
    cera_kv_type t = type_of(c->slot);
    for (int i = 0; i < 11; i++) scores_case(c, t, i % 3 + 1, head_sizes[i], 0, i & 1 ? 256 : cera_check_int(c, 1, 255), false);
    for (int n_q = 1; n_q <= 64; n_q += n_q < 20 ? 1 : 11) {
        int first = cera_check_int(c, 0, 255), end = cera_check_int(c, first + 1, 256);
        scores_case(c, t, n_q, 2 * cera_check_int(c, 1, 33), first, end, false);
    }
    for (int i = 0; i < 6; i++) scores_case(c, t, i + 1, 64, 40 * i, 256, true);
    for (int d = 1; t == CERA_KV_F32 && d < 40; d += 6) scores_case(c, t, 3, d, 0, 100, false);
}

static void check_values(cera_check *c, cera_kv_type t, const cache *s, const float *p, int n_q, int first, int end,
                         const float *o, size_t stride) {
    for (int i = 0; i < n_q; i++) {
        for (int d = 0; d < s->d; d++) {
            double sum = 0, size = 0, lk = 0;
            for (int key = first & ~1; key < ((end + 1) & ~1); key++) {
                double a = operand(c, t, p[(size_t)i * SEGMENT + (size_t)key]),
                       v = s->x[(size_t)key * (size_t)s->d + (size_t)d];
                sum += a * v;
                size += fabs(a * v);
                lk = fmax(lk, fabs(v));
            }
            double x = o[(size_t)i * stride + (size_t)d];
            if (fabs(x - sum) <= chain_bound(end - first + 2, size, 1, lk, t)) continue;
            cera_check_fail(c, "n_q %d d %d [%d, %d): query %d output %d is %g, not %g", n_q, s->d, first, end, i, d, x, sum);
            return;
        }
    }
}

/* Probabilities of a query that sees [lo, hi): 0 elsewhere. */
static void fill_probabilities(cera_check *c, float *p, int lo, int hi) {
    for (int i = 0; i < SEGMENT; i++) p[i] = i >= lo && i < hi ? cera_check_float(c, 0, 1) * (i % 7 ? 1.0f : 1e-6f) : 0.0f;
}

static void values_case(cera_check *c, cera_kv_type t, int n_q, int d, int first, int end, bool extremes) {
    size_t stride = (size_t)d + (n_q & 1 ? 5 : 0), floats = (size_t)(n_q - 1) * stride + (size_t)d;
    cache s = make_cache(c, t, d, true, 1, extremes);
    float *p = cera_check_alloc(c, (size_t)n_q * SEGMENT * 4), *got = cera_check_alloc(c, floats * 4),
          *want = cera_check_alloc(c, floats * 4);
    const void *pages[4];
    for (int i = 0; i < n_q; i++) fill_probabilities(c, p + (size_t)i * SEGMENT, first, end);
    visible_pages(&s, first, end, pages);
    values_of(c->k, t)(p, n_q, d, pages, first, end, got, stride);
    check_values(c, t, &s, p, n_q, first, end, got, stride);
    if (exact(c, t)) {
        values_of(c->ref, t)(p, n_q, d, pages, first, end, want, stride);
        if (memcmp(got, want, floats * 4))
            cera_check_fail(c, "n_q %d d %d [%d, %d): differs from C, or a gap between rows is written", n_q, d, first, end);
    }
    for (int i = 0; i + 1 < n_q; i++) { /* the gap keeps the fill byte */
        for (size_t j = (size_t)d; j < stride; j++) {
            uint32_t u;
            memcpy(&u, &got[(size_t)i * stride + j], 4);
            if (u != 0xa5a5a5a5) cera_check_fail(c, "n_q %d d %d: the gap after row %d is written", n_q, d, i);
        }
    }
    cera_check_free_all(c);
}

void cera_check_nn_values(cera_check *c) {
    cera_kv_type t = type_of(c->slot);
    for (int i = 0; i < 11; i++) values_case(c, t, i % 3 + 1, head_sizes[i], 0, i & 1 ? 256 : cera_check_int(c, 1, 255), false);
    for (int n_q = 1; n_q <= 64; n_q += n_q < 20 ? 1 : 11) {
        int first = cera_check_int(c, 0, 255), end = cera_check_int(c, first + 1, 256);
        values_case(c, t, n_q, 2 * cera_check_int(c, 1, 33), first, end, false);
    }
    for (int i = 0; i < 6; i++) values_case(c, t, i + 1, 64, 40 * i, 256, true);
    for (int d = 1; d < 40; d++) values_case(c, t, 1 + d % 5, d, 30, 131, false);
}

/* The base is 64 queries over the whole segment; then any run of queries over any range must give the base's bits. */
void cera_check_nn_scores_alone(cera_check *c) {
    enum { ROUNDS = 60 };
    static const int sizes[] = {64, 80, 128, 34};
    cera_kv_type t = type_of(c->slot);
    for (int round = 0; round < ROUNDS; round++) {
        int d = sizes[round % 4];
        cache s = make_cache(c, t, d, false, 1, false);
        float *q = cera_check_nn_normals(c, 64 * (size_t)d, 1), *base = cera_check_alloc(c, 64 * SEGMENT * 4);
        scores_of(c->k, t)(q, (size_t)d, 64, d, s.pages, 0, SEGMENT, base);
        for (int i = 0; i < 12; i++) {
            int n_q = cera_check_int(c, 1, i < 6 ? 4 : 20), from = cera_check_int(c, 0, 64 - n_q);
            int first = cera_check_int(c, 0, 255), end = cera_check_int(c, first + 1, 256);
            float *got = cera_check_alloc(c, (size_t)n_q * SEGMENT * 4);
            const void *pages[4];
            visible_pages(&s, first, end, pages);
            scores_of(c->k, t)(q + (size_t)from * (size_t)d, (size_t)d, n_q, d, pages, first, end, got);
            for (int j = 0; j < n_q; j++) {
                size_t row = (size_t)first, n = (size_t)(end - first);
                cera_check_nn_same(c, "alone against together", got + (size_t)j * SEGMENT + row,
                                   base + (size_t)(from + j) * SEGMENT + row, n);
            }
        }
        cera_check_free_all(c);
    }
}

void cera_check_nn_values_alone(cera_check *c) {
    enum { ROUNDS = 60 };
    static const int sizes[] = {64, 80, 128, 34};
    cera_kv_type t = type_of(c->slot);
    for (int round = 0; round < ROUNDS; round++) {
        int d = sizes[round % 4], lo[64], hi[64];
        size_t width = (size_t)d;
        cache s = make_cache(c, t, d, true, round & 4 ? 1e-38f : 1, false); /* tiny values: sums round to -0 and denormals */
        float *p = cera_check_alloc(c, 64 * SEGMENT * 4), *base = cera_check_alloc(c, 64 * width * 4);
        for (int i = 0; i < 64; i++) {
            lo[i] = cera_check_int(c, 0, 255);
            hi[i] = cera_check_int(c, lo[i] + 1, 256);
            fill_probabilities(c, p + (size_t)i * SEGMENT, lo[i], hi[i]);
            for (int j = lo[i]; j < hi[i] && round & 4; j++) p[(size_t)i * SEGMENT + (size_t)j] *= 1e-7f;
        }
        values_of(c->k, t)(p, 64, d, s.pages, 0, SEGMENT, base, width);
        for (int i = 0; i < 12; i++) {
            int n_q = cera_check_int(c, 1, i < 6 ? 4 : 20), from = cera_check_int(c, 0, 64 - n_q), first = SEGMENT, end = 0;
            for (int j = from; j < from + n_q; j++) {
                first = lo[j] < first ? lo[j] : first;
                end = hi[j] > end ? hi[j] : end;
            }
            first = cera_check_int(c, 0, first);
            end = cera_check_int(c, end, SEGMENT);
            float *got = cera_check_alloc(c, (size_t)n_q * width * 4);
            const void *pages[4];
            visible_pages(&s, first, end, pages);
            values_of(c->k, t)(p + (size_t)from * SEGMENT, n_q, d, pages, first, end, got, width);
            if (memcmp(got, base + (size_t)from * width, (size_t)n_q * width * 4))
                cera_check_fail(c, "d %d: queries %d to %d over [%d, %d) differ from all 64 over the segment", d, from,
                                from + n_q, first, end);
        }
        cera_check_free_all(c);
    }
}

/* Against C to the bit, and against double: each side's scale is exp with the rounding of the difference. */
void cera_check_nn_attend_merge(cera_check *c) {
    for (int d = 1; d < 140; d += d < 70 ? 1 : 23) {
        for (int kind = 0; kind < 4; kind++) {
            size_t n = (size_t)d;
            float *o = cera_check_nn_normals(c, n, 1), *o2 = cera_check_nn_normals(c, n, 1), *got = cera_check_nn_copy(c, o, n),
                  *want = cera_check_nn_copy(c, o, n);
            float m = kind == 0 ? -INFINITY : cera_check_normal(c) * 5, l = kind == 0 ? 0 : 3,
                  m2 = kind == 1 ? m : cera_check_normal(c) * 5;
            float gm = m, gl = l, wm = m, wl = l;
            if (kind == 0) memset(got, 0, n * 4), memset(want, 0, n * 4), memset(o, 0, n * 4);
            c->k->attend_merge(&gm, &gl, got, m2, 2, o2, d);
            c->ref->attend_merge(&wm, &wl, want, m2, 2, o2, d);
            cera_check_nn_same(c, "o against C", got, want, n);
            if (gm != wm || gl != wl) cera_check_fail(c, "d %d: m or l differ from C", d);
            double top = fmax(m, m2), a = exp(m - top), b = exp(m2 - top),
                   slack = U * (fabs((double)m - m2) < INFINITY ? fabs((double)m - m2) + 6 : 6);
            for (size_t i = 0; i < n; i++) {
                double y = o[i] * a + o2[i] * b;
                if (!(fabs(got[i] - y) <= slack * (fabs(o[i] * a) + fabs(o2[i] * b))))
                    cera_check_fail(c, "d %d: output %zu is %g, not %g", d, i, (double)got[i], y);
            }
            if (gm != (float)top || !(fabs(gl - (l * a + 2 * b)) <= slack * (l * a + 2 * b)))
                cera_check_fail(c, "d %d: m %g l %g", d, (double)gm, (double)gl);
            cera_check_free_all(c);
        }
    }
}

typedef struct attend_job {
    const cera_check *c;
    cera_kv_type t;
    int n_q, d, n_segments;
    const char *data; /* n_segments * 256 keys */
    float *q, *scores, *o;
} attend_job;

static void segment_pages(const attend_job *j, int segment, const void *pages[4]) {
    size_t bytes = (size_t)PAGE * (size_t)j->d * cera_kv_type_bytes(j->t);
    for (int i = 0; i < 4; i++) pages[i] = j->data + (size_t)(segment * 4 + i) * bytes;
}
static void scores_once(void *ctx) {
    attend_job *j = ctx;
    const void *pages[4];
    for (int s = 0; s < j->n_segments; s++) {
        segment_pages(j, s, pages);
        scores_of(j->c->k, j->t)(j->q, (size_t)j->d, j->n_q, j->d, pages, 0, SEGMENT, j->scores);
    }
}
static void values_once(void *ctx) {
    attend_job *j = ctx;
    const void *pages[4];
    for (int s = 0; s < j->n_segments; s++) {
        segment_pages(j, s, pages);
        values_of(j->c->k, j->t)(j->scores, j->n_q, j->d, pages, 0, SEGMENT, j->o, (size_t)j->d);
    }
}

/* n_q queries over one segment in cache (prefill), and over 64 MiB of segments (decode deep in the context). */
static void bench_attend(cera_check *c, void (*once)(void *)) {
    static const int queries[] = {1, 2, 4, 8, 16, 64}, sizes[] = {64, 128};
    attend_job j = {.c = c, .t = type_of(c->slot)};
    size_t bytes = (size_t)64 << 20;
    char *data = cera_check_alloc(c, bytes);
    memset(data, 0, bytes);
    j.data = data;
    j.q = cera_check_nn_normals(c, 64 * 128, 1);
    j.o = cera_check_alloc(c, 64 * 128 * 4);
    j.scores = cera_check_nn_normals(c, 64 * SEGMENT, 1);
    double read = cera_check_read_speed(data, bytes), peak = j.t == CERA_KV_BF16 ? cera_check_peak_bf16(c->k->tier) : 0;
    if (peak == 0) peak = cera_check_peak_f32(c->k->tier);
    for (int i = 0; i < 12; i++) {
        if (c->k->tier == CERA_TIER_C && i != 2) continue; /* it only serves as the measure: n_q 4, d 64 */
        j.n_q = queries[i % 6], j.d = sizes[i / 6], j.n_segments = 1;
        double macs = (double)j.n_q * j.d * SEGMENT, near = cera_check_time(once, &j, 0.03);
        j.n_segments = (int)(bytes / (SEGMENT * (size_t)j.d * cera_kv_type_bytes(j.t)));
        double far = cera_check_time(once, &j, 0.2);
        printf("%s/%s: d %3d n_q %2d: in cache %6.1f GMAC/s (%2.0f %% of the peak), from memory %5.1f GB/s (%3.0f %% of a read "
               "loop)\n",
               c->slot, c->tier, j.d, j.n_q, 1e-9 * macs / near, peak > 0 ? 100 * macs / near / peak : 0,
               1e-9 * (double)bytes / far, 100 * (double)bytes / far / read);
    }
}

void cera_check_nn_scores_bench(cera_check *c) { bench_attend(c, scores_once); }
void cera_check_nn_values_bench(cera_check *c) { bench_attend(c, values_once); }
