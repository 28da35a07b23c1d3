/* check_nn_rope.c: rotary tables against libm in double, and ROPE_KV (head norm, rotation, write into the pages) against double
 * precision over {norm} x {pairs} x {factors} x {head size} x {GQA} x {position} x {stride} x {partial} x {page type}; edges
 * (nothing to do, infinities, NaN); two threads that write neighbouring slots of one page. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check_nn.h"

/* cos and sin of position * f: the product's rounding error e is put back by the addition theorem, so that libm sees the angle.
 */
static void sin_cos_double(double position, double f, double *s, double *c) {
    double p = position * f, e = fma(position, f, -p);
    *s = sin(p) + e * cos(p);
    *c = cos(p) - e * sin(p);
}

/* The one rounding to f32, and 1e-13 for everything before it. */
static double half_ulp(double x) {
    int e;
    frexp(x, &e);
    return ldexp(1, e - 25) + 1e-13;
}

static void table_case(cera_check *c, int n_pairs, double position, double base, double scale) {
    size_t n = (size_t)n_pairs;
    double *f = cera_check_alloc(c, n * sizeof *f);
    float *cosine = cera_check_alloc(c, n * 4), *sine = cera_check_alloc(c, n * 4);
    float *want_cos = cera_check_alloc(c, n * 4), *want_sin = cera_check_alloc(c, n * 4);
    for (size_t i = 0; i < n; i++) f[i] = pow(base, -(double)i / (double)n) / (i % 3 == 2 ? 7.3 : 1);
    c->k->rope_table(f, n_pairs, position, scale, cosine, sine);
    c->ref->rope_table(f, n_pairs, position, scale, want_cos, want_sin);
    cera_check_nn_same(c, "cos against C", cosine, want_cos, n);
    cera_check_nn_same(c, "sin against C", sine, want_sin, n);
    for (size_t i = 0; i < n; i++) {
        double s, co;
        sin_cos_double(position, f[i], &s, &co);
        if (!(fabs(cosine[i] - co * scale) <= half_ulp(co * scale)) || !(fabs(sine[i] - s * scale) <= half_ulp(s * scale)))
            cera_check_fail(c, "position %.0f pair %zu: cos %.9g, not %.9g; sin %.9g, not %.9g", position, i, (double)cosine[i],
                            co * scale, (double)sine[i], s * scale);
    }
    cera_check_free_all(c);
}

void cera_check_nn_rope_table(cera_check *c) {
    static const double positions[] = {0, 1, 5, 4095, 131071, 1048575, 1073741824, 2147483647, -1, -4096};
    for (int p = 0; p < 10; p++) {
        for (int n = 1; n <= 40; n++) table_case(c, n, positions[p], n & 1 ? 10000 : 1e6, n % 5 ? 1 : 1.2);
        table_case(c, 128, positions[p], 500000, 1);
    }
    for (int i = 0; i < 200; i++) table_case(c, 64, cera_check_int(c, 0, 2147483647), 10000, 1);
    double bad[3] = {1e300, INFINITY, NAN};
    float cosine[3], sine[3];
    c->k->rope_table(bad, 3, 1, 1, cosine, sine);
    for (int i = 0; i < 3; i++) {
        if (!isnan(cosine[i]) || !isnan(sine[i])) cera_check_fail(c, "frequency %g gives %g", bad[i], (double)cosine[i]);
    }
}

/* One head in double: norm, rotation, scale. */
static void head_double(const cera_rope_kv_args *a, const float *x, const float *w, const double *s, const double *c,
                        double scale, double *y) {
    double sum = 0;
    for (int i = 0; i < a->d_k; i++) sum += (double)x[i] * x[i];
    for (int i = 0; i < a->d_k; i++) y[i] = w ? x[i] * w[i] / sqrt(sum / a->d_k + a->eps) : x[i];
    for (int i = 0; a->cos && i < a->n_rot / 2; i++) {
        int p = a->rot_first + (a->pairs == CERA_ROPE_NEOX ? i : 2 * i),
            q = a->rot_first + (a->pairs == CERA_ROPE_NEOX ? i + a->n_rot / 2 : 2 * i + 1);
        double x0 = y[p], x1 = y[q];
        y[p] = x0 * c[i] - x1 * s[i];
        y[q] = x0 * s[i] + x1 * c[i];
    }
    for (int i = 0; i < a->d_k; i++) y[i] *= scale;
}

static double norm_double(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

/* Element i of key or value j, by the layout that kernels.h states. */
static double page_element(cera_kv_type t, const void *page, int d, int j, int i, bool value) {
    size_t at16 = value
                      ? ((size_t)(j / 2) * (size_t)d + (size_t)i) * 2 + (size_t)(j % 2)
                      : (((size_t)(j / 16) * (size_t)(d / 2) + (size_t)(i / 2)) * 16 + (size_t)(j % 16)) * 2 + (size_t)(i % 2);
    size_t at32 =
        value ? (size_t)j * (size_t)d + (size_t)i : ((size_t)(j / 16) * (size_t)d + (size_t)i) * 16 + (size_t)(j % 16);
    if (t == CERA_KV_F32) return ((const float *)page)[at32];
    uint16_t h = ((const uint16_t *)page)[at16];
    return t == CERA_KV_F16 ? cera_check_nn_f16(h) : cera_check_nn_bf16(h);
}

/* One step of the page type at x: 8 bits of bf16, 11 of f16 (from 2^-24 on), and what f32 arithmetic before it may be off by.
 */
static double page_step(cera_kv_type t, double x) {
    int e;
    frexp(x, &e);
    return t == CERA_KV_F32 ? 0 : t == CERA_KV_F16 ? fmax(ldexp(1, e - 11), 0x1p-24) : ldexp(1, e - 8);
}

typedef struct rope_setup {
    cera_rope_kv_args a;
    double s[512], c[512];
    float *q, *k, *v; /* as they were */
    size_t q_floats, k_floats, v_floats, k_bytes, v_bytes;
    double position;
} rope_setup;

enum { NORM = 1, NEOX = 2, FACTORS = 4, PADDED = 8, PARTIAL = 16 };

static void make_tables(cera_check *c, rope_setup *r, int flags, double position) {
    size_t n = (size_t)(r->a.n_rot / 2);
    double f[512];
    float *cosine = cera_check_alloc(c, n * 4), *sine = cera_check_alloc(c, n * 4);
    for (size_t i = 0; i < n; i++) {
        f[i] = pow(10000, -(double)i / (double)n) / (flags & FACTORS ? 1 + 0.37 * (double)(i % 9) : 1);
        sin_cos_double(position, f[i], &r->s[i], &r->c[i]);
    }
    c->k->rope_table(f, (int)n, position, 1, cosine, sine);
    r->a.cos = cosine;
    r->a.sin = sine;
    r->position = position;
}

static void make_rope(cera_check *c, rope_setup *r, int flags, int d, int gqa, double position, cera_kv_type type) {
    cera_rope_kv_args *a = &r->a;
    memset(r, 0, sizeof *r);
    a->n_head_kv = gqa == 1 ? 3 : 2;
    a->n_head = a->n_head_kv * gqa;
    a->d_k = d;
    a->d_v = flags & PADDED ? d - 6 : d;
    a->q_stride = (size_t)d + (flags & PADDED ? 5 : 0);
    a->k_stride = (size_t)d + (flags & PADDED ? 3 : 0);
    a->v_stride = (size_t)a->d_v + (flags & PADDED ? 9 : 0);
    a->n_rot = flags & PARTIAL ? d / 2 - d / 2 % 2 : d;
    a->rot_first = flags & PARTIAL ? (d - a->n_rot) / 2 : 0;
    a->pairs = flags & NEOX ? CERA_ROPE_NEOX : CERA_ROPE_INTERLEAVED;
    a->eps = 1e-6f;
    a->q_scale = 1 / sqrtf((float)d);
    a->k_type = type;
    a->v_type = flags & FACTORS ? type : (cera_kv_type)((type + 1) % CERA_KV_TYPE_COUNT);
    a->slot = cera_check_int(c, 0, 63);
    if (flags & NORM) {
        a->q_norm = cera_check_nn_normals(c, (size_t)d, 1);
        a->k_norm = cera_check_nn_normals(c, (size_t)d, 1);
    }
    make_tables(c, r, flags, position);
    r->q_floats = (size_t)(a->n_head - 1) * a->q_stride + (size_t)d;
    r->k_floats = (size_t)(a->n_head_kv - 1) * a->k_stride + (size_t)d;
    r->v_floats = (size_t)(a->n_head_kv - 1) * a->v_stride + (size_t)a->d_v;
    r->q = cera_check_nn_normals(c, r->q_floats, 3);
    r->k = cera_check_nn_normals(c, r->k_floats, 3);
    r->v = cera_check_nn_normals(c, r->v_floats, 3);
    r->k_bytes = (size_t)a->n_head_kv * 64 * (size_t)d * cera_kv_type_bytes(a->k_type);
    r->v_bytes = (size_t)a->n_head_kv * 64 * (size_t)a->d_v * cera_kv_type_bytes(a->v_type);
}

/* Runs the slot of a table on fresh copies; the arguments then hold the results. */
static cera_rope_kv_args run_rope(cera_check *c, const cera_kernels *k, const rope_setup *r) {
    cera_rope_kv_args a = r->a;
    a.q = cera_check_nn_copy(c, r->q, r->q_floats);
    a.k = cera_check_nn_copy(c, r->k, r->k_floats);
    a.v = cera_check_nn_copy(c, r->v, r->v_floats);
    a.k_page = cera_check_alloc(c, r->k_bytes);
    a.v_page = cera_check_alloc(c, r->v_bytes);
    k->rope_kv(&a);
    return a;
}

static void check_queries(cera_check *c, const rope_setup *r, const cera_rope_kv_args *a) {
    double y[1024];
    for (int h = 0; h < a->n_head; h++) {
        head_double(a, r->q + (size_t)h * a->q_stride, a->q_norm, r->s, r->c, a->q_scale, y);
        double bound = 1e-5 * norm_double(y, a->d_k);
        for (int i = 0; i < a->d_k; i++) {
            double got = a->q[(size_t)h * a->q_stride + (size_t)i];
            if (!(fabs(got - y[i]) <= bound))
                cera_check_fail(c, "d %d: q head %d element %d is %g, not %g", a->d_k, h, i, got, y[i]);
        }
    }
}

static void check_pages(cera_check *c, const rope_setup *r, const cera_rope_kv_args *a) {
    double y[1024];
    for (int h = 0; h < a->n_head_kv; h++) {
        const char *k_page = (const char *)a->k_page + (size_t)h * 64 * (size_t)a->d_k * cera_kv_type_bytes(a->k_type);
        const char *v_page = (const char *)a->v_page + (size_t)h * 64 * (size_t)a->d_v * cera_kv_type_bytes(a->v_type);
        head_double(a, r->k + (size_t)h * a->k_stride, a->k_norm, r->s, r->c, 1, y);
        double length = norm_double(y, a->d_k), f32_error = 0x1p-24 * ((a->d_k / 16 + 5) / 2.0 + 8) * length;
        for (int i = 0; i < a->d_k; i++) {
            double got = page_element(a->k_type, k_page, a->d_k, a->slot, i, false);
            /* A 16-bit page: half a step for its rounding, and what f32 may be off by before it, which can tip one more step.
             */
            double bound = a->k_type == CERA_KV_F32 ? 1e-5 * length : 0.5 * page_step(a->k_type, y[i]) + f32_error;
            if (!(fabs(got - y[i]) <= bound))
                cera_check_fail(c, "d %d: key head %d element %d is %g, not %g", a->d_k, h, i, got, y[i]);
        }
        for (int i = 0; i < a->d_v; i++) {
            double got = page_element(a->v_type, v_page, a->d_v, a->slot, i, true),
                   want = r->v[(size_t)h * a->v_stride + (size_t)i];
            if (!(fabs(got - want) <= 0.5 * page_step(a->v_type, want)))
                cera_check_fail(c, "value head %d element %d is %g, not %g", h, i, got, want);
        }
    }
}

/* Against C to the bit, the whole pages and the gaps between rows included: nothing but the slot may be touched. */
static void check_against_c(cera_check *c, const rope_setup *r, const cera_rope_kv_args *a) {
    cera_rope_kv_args b = run_rope(c, c->ref, r);
    if (memcmp(a->q, b.q, r->q_floats * 4)) cera_check_fail(c, "d %d: q differs from C", a->d_k);
    if (memcmp(a->k_page, b.k_page, r->k_bytes)) cera_check_fail(c, "d %d: K page differs from C", a->d_k);
    if (memcmp(a->v_page, b.v_page, r->v_bytes)) cera_check_fail(c, "d %d: V page differs from C", a->d_k);
}

/* What is not the slot's own element keeps the fill byte. */
static void check_untouched(cera_check *c, const void *page, size_t bytes, size_t written, int d) {
    size_t touched = 0;
    for (size_t i = 0; i < bytes; i++) touched += ((const unsigned char *)page)[i] != 0xa5;
    if (touched > written)
        cera_check_fail(c, "d %d: %zu bytes of the page changed, at most %zu are the slot's", d, touched, written);
}

void cera_check_nn_rope_kv(cera_check *c) {
    static const int sizes[] = {64, 80, 96, 128, 256, 512}, gqas[] = {1, 4, 8};
    static const double positions[] = {0, 5, 4095, 131071};
    rope_setup r;
    for (int flags = 0; flags < 32; flags++) {
        for (int at = 0; at < 6 * 3 * 4 * CERA_KV_TYPE_COUNT; at++) {
            int d = sizes[at % 6], gqa = gqas[at / 6 % 3];
            make_rope(c, &r, flags, d, gqa, positions[at / 18 % 4], (cera_kv_type)(at / 72));
            cera_rope_kv_args a = run_rope(c, c->k, &r);
            check_queries(c, &r, &a);
            check_pages(c, &r, &a);
            check_untouched(c, a.k_page, r.k_bytes, r.k_bytes / 64, d);
            check_untouched(c, a.v_page, r.v_bytes, r.v_bytes / 64, d);
            check_against_c(c, &r, &a);
            cera_check_free_all(c);
        }
    }
}

static void odd_shapes(cera_check *c) {
    static const int sizes[] = {8, 10, 18, 34, 66, 72, 100, 192, 576, 1024};
    rope_setup r;
    for (int s = 0; s < 10; s++) {
        for (int at = 0; at < 32 * CERA_KV_TYPE_COUNT; at++) {
            make_rope(c, &r, at % 32, sizes[s], 1, 77, (cera_kv_type)(at / 32));
            if (at & 1 && sizes[s] > 8) r.a.d_v -= cera_check_int(c, 0, 3);
            if (at % 5 == 0) r.a.cos = r.a.sin = NULL;
            cera_rope_kv_args a = run_rope(c, c->k, &r);
            check_queries(c, &r, &a);
            check_pages(c, &r, &a);
            check_against_c(c, &r, &a);
            cera_check_free_all(c);
        }
    }
}

/* Pages hold finite numbers whatever comes: too large is the largest, a NaN value 0; a NaN key stays. */
static void check_not_finite(cera_check *c, cera_kv_type type) {
    static const float bad[] = {INFINITY, -INFINITY, NAN, 3.4e38f, -1e6f, 65519.0f, 3.4028235e38f, -NAN};
    static const double largest[] = {0x1.fffffep+127, 65504, 0x1.fep+127};
    rope_setup r;
    make_rope(c, &r, FACTORS, 64, 1, 0, type); /* FACTORS: V of the same type */
    r.a.cos = r.a.sin = NULL;
    for (int i = 0; i < 40; i++) r.k[i] = r.v[i] = bad[i % 8];
    cera_rope_kv_args a = run_rope(c, c->k, &r);
    for (int i = 0; i < 40; i++) {
        double x = bad[i % 8], most = largest[type], want = fmax(fmin(x, most), -most);
        double k = page_element(type, a.k_page, 64, a.slot, i, false), v = page_element(type, a.v_page, 64, a.slot, i, true);
        if (isnan(x) ? !isnan(k) : !(fabs(k - want) <= 0.5 * page_step(type, want)))
            cera_check_fail(c, "type %d: key %g stored as %g", type, x, k);
        if (isnan(x) ? v != 0 : !(fabs(v - want) <= 0.5 * page_step(type, want)))
            cera_check_fail(c, "type %d: value %g stored as %g", type, x, v);
    }
    check_against_c(c, &r, &a);
    cera_check_free_all(c);
}

/* Parts may be absent: no queries, no keys (then nothing is stored), no values. */
static void check_absent(cera_check *c) {
    rope_setup r;
    make_rope(c, &r, NORM | NEOX, 64, 4, 9, CERA_KV_F16);
    cera_rope_kv_args full = run_rope(c, c->k, &r), a = r.a;
    a.q = NULL;
    a.k = cera_check_nn_copy(c, r.k, r.k_floats);
    a.k_page = cera_check_alloc(c, r.k_bytes);
    c->k->rope_kv(&a);
    if (memcmp(a.k_page, full.k_page, r.k_bytes)) cera_check_fail(c, "keys alone differ");
    a = r.a;
    a.n_head = 0;
    a.q = cera_check_nn_copy(c, r.q, r.q_floats);
    c->k->rope_kv(&a);
    if (memcmp(a.q, r.q, r.q_floats * 4)) cera_check_fail(c, "no heads, but q changed");
    a.n_head = r.a.n_head;
    c->k->rope_kv(&a);
    if (memcmp(a.q, full.q, r.q_floats * 4)) cera_check_fail(c, "queries alone differ");
    cera_check_free_all(c);
}

void cera_check_nn_rope_kv_edges(cera_check *c) {
    odd_shapes(c);
    for (int t = 0; t < CERA_KV_TYPE_COUNT; t++) check_not_finite(c, (cera_kv_type)t);
    check_absent(c);
}

typedef struct rope_thread {
    const cera_kernels *k;
    cera_rope_kv_args a;
    const float *keys, *values;
    int rounds, lost;
} rope_thread;

static void *write_slot(void *arg) {
    rope_thread *t = arg;
    for (int i = 0; i < t->rounds; i++) {
        float k[64], v[64];
        for (int j = 0; j < 64; j++) {
            k[j] = (float)((i + j) % 100);
            v[j] = (float)((i + 2 * j) % 100);
        }
        t->a.k = k;
        t->a.v = v;
        t->k->rope_kv(&t->a);
        for (int j = 0; j < 64; j++) {
            t->lost += page_element(t->a.k_type, t->a.k_page, 64, t->a.slot, j, false) != k[j];
            t->lost += page_element(t->a.v_type, t->a.v_page, 64, t->a.slot, j, true) != v[j];
        }
    }
    return NULL;
}

/* Rows of a batch go to several threads: one may write slot 6 while another writes slot 7, whose elements share words and
 * lines. A store that reads and rewrites the neighbour would now and then bring back the neighbour's old value. */
void cera_check_nn_rope_kv_threads(cera_check *c) {
    for (int type = 0; type < CERA_KV_TYPE_COUNT; type++) {
        rope_thread threads[2];
        pthread_t other;
        cera_rope_kv_args a = {.k_stride = 64, .v_stride = 64, .n_head_kv = 1, .d_k = 64, .d_v = 64, .q_scale = 1, .slot = 6};
        a.k_type = a.v_type = (cera_kv_type)type;
        a.k_page = cera_check_alloc(c, 64 * 64 * 4);
        a.v_page = cera_check_alloc(c, 64 * 64 * 4);
        for (int i = 0; i < 2; i++) {
            threads[i] = (rope_thread){.k = c->k, .a = a, .rounds = 20000};
            threads[i].a.slot += i;
        }
        if (pthread_create(&other, NULL, write_slot, &threads[1])) {
            cera_check_fail(c, "no thread");
            return;
        }
        write_slot(&threads[0]);
        pthread_join(other, NULL);
        int lost = threads[0].lost + threads[1].lost;
        if (lost) cera_check_fail(c, "type %d: %d elements lost to the neighbouring slot's thread", type, lost);
        cera_check_free_all(c);
    }
}

typedef struct rope_job {
    const cera_check *c;
    cera_rope_kv_args a;
    double f[64];
    float cosine[64], sine[64];
} rope_job;

static void rope_once(void *ctx) {
    rope_job *j = ctx;
    j->c->k->rope_kv(&j->a);
}
static void table_once(void *ctx) {
    rope_job *j = ctx;
    j->c->k->rope_table(j->f, 32, 4095, 1, j->cosine, j->sine);
}

/* llama-1b: 32 query heads, 8 KV heads of 64. */
void cera_check_nn_rope_kv_bench(cera_check *c) {
    static const char *const names[] = {"f32", "f16", "bf16"};
    for (int norm = 0; norm < 2; norm++) {
        for (int type = 0; type < CERA_KV_TYPE_COUNT; type++) {
            rope_job j = {.c = c};
            j.a = (cera_rope_kv_args){
                .q_stride = 64, .k_stride = 64, .v_stride = 64, .n_head = 32, .n_head_kv = 8, .d_k = 64, .d_v = 64};
            for (int i = 0; i < 32; i++) j.f[i] = pow(10000, -i / 32.0);
            table_once(&j);
            j.a.q = cera_check_nn_normals(c, 32 * 64, 1);
            j.a.k = cera_check_nn_normals(c, 8 * 64, 1);
            j.a.v = cera_check_nn_normals(c, 8 * 64, 1);
            if (norm) j.a.q_norm = j.a.k_norm = cera_check_nn_normals(c, 64, 1);
            j.a.cos = j.cosine, j.a.sin = j.sine, j.a.n_rot = 64, j.a.q_scale = 1;
            j.a.k_type = j.a.v_type = (cera_kv_type)type;
            j.a.k_page = cera_check_alloc(c, 8 * 64 * 64 * 4);
            j.a.v_page = cera_check_alloc(c, 8 * 64 * 64 * 4);
            printf("rope_kv/%s: 32 + 8 heads of 64, norm %d, %s pages: %.0f ns; table of 32: %.0f ns\n", c->tier, norm,
                   names[type], 1e9 * cera_check_time(rope_once, &j, 0.03), 1e9 * cera_check_time(table_once, &j, 0.02));
            cera_check_free_all(c);
        }
    }
}
