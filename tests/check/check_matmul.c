/* check_matmul.c: every weight type's matmul against the C reference: bit for bit for the quantized types, within a bound that
 * is derived in double for the float types, and for both the independence of a column from its neighbours. The C reference
 * itself is checked against a double sum of the dequantized weights. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "kernels/ref/quant_block.h"

typedef void (*any_function)(void);
typedef enum weight_mode { W_PLAIN, W_EDGE, W_SPECIAL, W_MODES } weight_mode; /* random; largest integers; odd scales */
typedef enum acts_mode { A_PLAIN, A_EDGE, A_SPECIAL, A_MODES } acts_mode;

static cera_dtype type_of(const char *slot) {
    cera_dtype t = CERA_F32;
    cera_dtype_parse(slot + strlen("matmul_"), &t);
    return t;
}
static any_function matmul_function(const cera_kernels *k, const char *slot) { return (any_function)k->matmul[type_of(slot)]; }

/* Where a block's f16 scales lie. */
static int scale_offsets(cera_dtype t, int at[2]) {
    at[0] = 0, at[1] = 2;
    switch (t) {
    case CERA_Q4_1:
    case CERA_Q5_1:
    case CERA_Q4_K:
    case CERA_Q5_K: return 2;
    case CERA_Q2_K: at[0] = 80, at[1] = 82; return 2;
    case CERA_Q3_K: at[0] = 108; return 1;
    case CERA_Q6_K: at[0] = 208; return 1;
    case CERA_MXFP4: return 0;
    default: return 1;
    }
}

static uint16_t random_scale(cera_check *c, weight_mode mode) {
    static const uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3c00};
    if (mode == W_SPECIAL && cera_check_int(c, 0, 3) == 0) return special[cera_check_int(c, 0, 9)];
    return (uint16_t)(cera_check_int(c, 0, 1) << 15 | cera_check_int(c, 0x1400, 0x2c00)); /* 2^-10 .. 2^-4 */
}

static void fill_quant_block(cera_check *c, cera_dtype t, weight_mode mode, uint8_t *p) {
    int size = cera_dtype_get(t)->block_bytes, at[2], n = scale_offsets(t, at);
    int edge = cera_check_int(c, 0, 3); /* 0x00, 0xff, 0x80, 0x7f bytes: the extreme integers of every layout */
    static const uint8_t edges[] = {0x00, 0xff, 0x80, 0x7f};
    for (int i = 0; i < size; i++) p[i] = mode == W_EDGE ? edges[edge] : (uint8_t)cera_check_random(c);
    for (int i = 0; i < n; i++) {
        uint16_t d = random_scale(c, mode);
        memcpy(p + at[i], &d, 2);
    }
    if (t == CERA_MXFP4) p[0] = mode == W_SPECIAL ? (uint8_t)cera_check_random(c) : (uint8_t)cera_check_int(c, 110, 130);
}

static void fill_float(cera_check *c, cera_dtype t, uint8_t *p, int k) {
    for (int i = 0; i < k; i++) {
        float f = cera_check_normal(c);
        uint32_t bits;
        memcpy(&bits, &f, 4);
        uint16_t h = (uint16_t)(bits >> 16);
        if (t == CERA_F16) h = (uint16_t)(cera_check_int(c, 0, 1) << 15 | cera_check_int(c, 0, 0x4000));
        if (t == CERA_F32)
            memcpy(p + 4 * i, &f, 4);
        else
            memcpy(p + 2 * i, &h, 2);
    }
}

static size_t row_size(cera_dtype t, int k) {
    const cera_dtype_info *info = cera_dtype_get(t);
    return (size_t)(k / info->block_elements) * (size_t)info->block_bytes;
}

/* n_rows rows, row_bytes apart, that end at an inaccessible page. */
static const uint8_t *make_weights(cera_check *c, cera_dtype t, weight_mode mode, int n_rows, int k, size_t row_bytes) {
    const cera_dtype_info *info = cera_dtype_get(t);
    uint8_t *w = cera_check_alloc(c, (size_t)(n_rows - 1) * row_bytes + row_size(t, k));
    for (int r = 0; r < n_rows; r++) {
        uint8_t *row = w + (size_t)r * row_bytes;
        if (cera_kernels_encoding(t) != CERA_ENC_Q8) fill_float(c, t, row, k);
        for (int b = 0; cera_kernels_encoding(t) == CERA_ENC_Q8 && b < k / info->block_elements; b++)
            fill_quant_block(c, t, mode, row + (size_t)b * (size_t)info->block_bytes);
    }
    return w;
}

static float special_scale(cera_check *c) {
    static const float special[] = {0, 0x1p-149f, 0x1p-126f, 3e38f, 1, 0x1p-60f};
    int i = cera_check_int(c, 0, 7);
    return i == 6 ? INFINITY : i == 7 ? NAN : special[i];
}

static void fill_group(cera_check *c, acts_mode mode, const cera_acts *a, size_t at) {
    int sums[2] = {0, 0}, sign = cera_check_int(c, 0, 2);
    for (int i = 0; i < 32; i++) {
        int q = mode == A_EDGE ? (sign == 0 ? 127 : sign == 1 ? -127 : i & 1 ? 127 : -127) : cera_check_int(c, -127, 127);
        a->q[at * 32 + (size_t)i] = (int8_t)q;
        sums[i / 16] += q;
    }
    float d = mode == A_SPECIAL && cera_check_int(c, 0, 3) == 0 ? special_scale(c) : cera_check_float(c, 1e-3f, 2e-2f);
    a->d[at] = d;
    a->s[at] = d * (float)(sums[0] + sums[1]);
    a->sum[at] = sums[0] + sums[1];
    for (size_t h = 0; h < 2; h++) {
        a->sum16[at * 2 + h] = (int16_t)sums[h];
        a->s16[at * 2 + h] = d * (float)sums[h];
    }
}

static cera_acts make_acts(cera_check *c, cera_encoding enc, acts_mode mode, int k, int n) {
    cera_acts a = {.k = k, .n = n};
    size_t groups = (size_t)(k / 32) * (size_t)n, elements = (size_t)k * (size_t)n;
    if (enc == CERA_ENC_Q8) {
        a.q = cera_check_alloc(c, groups * 32);
        a.d = cera_check_alloc(c, groups * 4);
        a.s = cera_check_alloc(c, groups * 4);
        a.sum = cera_check_alloc(c, groups * 4);
        a.sum16 = cera_check_alloc(c, groups * 4);
        a.s16 = cera_check_alloc(c, groups * 8);
        for (size_t at = 0; at < groups; at++) fill_group(c, mode, &a, at);
    } else if (enc == CERA_ENC_BF16) {
        a.bf16 = cera_check_alloc(c, elements * 2);
        for (int i = 0; i < n; i++) fill_float(c, CERA_BF16, (uint8_t *)(a.bf16 + (size_t)i * (size_t)k), k);
    } else {
        float *x = cera_check_alloc(c, elements * 4);
        for (int i = 0; i < n; i++) fill_float(c, CERA_F32, (uint8_t *)(x + (size_t)i * (size_t)k), k);
        a.f32 = x;
        a.f32_stride = (size_t)k;
    }
    return a;
}

static float *make_tile(cera_check *c, int n_cols) {
    float *tile = cera_check_alloc(c, (size_t)n_cols * CERA_PANEL_ROWS * sizeof *tile);
    memset(tile, 0xff, (size_t)n_cols * CERA_PANEL_ROWS * sizeof *tile);
    return tile;
}

typedef struct problem {
    cera_dtype t;
    int n_rows, k, n, c0, n_cols;
    size_t row_bytes;
    const uint8_t *w;
    cera_acts x;
} problem;

static void make_problem(cera_check *c, problem *p, weight_mode wm, acts_mode am) {
    size_t padding = cera_check_int(c, 0, 2) ? 0 : (size_t)cera_check_int(c, 1, 70);
    p->row_bytes = row_size(p->t, p->k) + padding;
    p->w = make_weights(c, p->t, wm, p->n_rows, p->k, p->row_bytes);
    p->x = make_acts(c, cera_kernels_encoding(p->t), am, p->k, p->n);
}

static void run_tile(const cera_kernels *k, const problem *p, int c0, int n_cols, float *tile) {
    k->matmul[p->t](p->w, p->row_bytes, p->n_rows, p->k, &p->x, c0, n_cols, tile);
}

/* Bound of a float type's result: k/16 + 4 roundings on the longest path, each at most 2^-24 of the sum of magnitudes (twice
 * that for a bf16 dot product, which rounds its pair too and flushes denormals), and half of that again for the reference. */
static double float_bound(const problem *p, const cera_kernels *ref, int r, int column, double *exact) {
    float row[4096];
    double sum = 0, magnitude = 0;
    ref->dequantize[p->t](p->w + (size_t)r * p->row_bytes, p->k, row);
    for (int i = 0; i < p->k; i++) {
        size_t at = (size_t)column * (size_t)p->k + (size_t)i;
        double v = (double)row[i] * (p->t == CERA_BF16 ? cera_quant_bf16(p->x.bf16[at]) : p->x.f32[at]);
        sum += v;
        magnitude += fabs(v);
    }
    *exact = sum;
    return magnitude * 0x1p-24 * 1.01 * (p->k / 16 + 5) * (p->t == CERA_BF16 ? 2 : 1) + p->k * 0x1p-120;
}

static void compare(cera_check *c, const problem *p, const float *want, const float *got) {
    bool exact_type = cera_kernels_encoding(p->t) == CERA_ENC_Q8;
    for (int col = 0; col < p->n_cols; col++) {
        for (int r = 0; r < p->n_rows; r++) {
            float a = want[col * CERA_PANEL_ROWS + r], b = got[col * CERA_PANEL_ROWS + r];
            double truth, bound;
            if (exact_type ? cera_check_same(a, b)
                           : (bound = float_bound(p, c->ref, r, p->c0 + col, &truth), fabs(b - truth) <= bound))
                continue;
            cera_check_fail(c, "row %d of %d, column %d of %d (first %d of %d), k %d: %.9g, should be %.9g", r, p->n_rows, col,
                            p->n_cols, p->c0, p->n, p->k, b, a);
        }
    }
}

/* Column by column, and in two uneven pieces, the bits are those of the wide call. */
static void check_columns(cera_check *c, const problem *p, const float *wide) {
    float *one = make_tile(c, 1), *rest = make_tile(c, p->n_cols);
    for (int col = 0; col < p->n_cols; col++) {
        run_tile(c->k, p, p->c0 + col, 1, one);
        for (int r = 0; r < p->n_rows; r++) {
            if (!cera_check_same(one[r], wide[col * CERA_PANEL_ROWS + r]))
                cera_check_fail(c, "row %d, column %d of %d alone: %.9g, in the call %.9g", r, col, p->n_cols, one[r],
                                wide[col * CERA_PANEL_ROWS + r]);
        }
    }
    int part = 1 + p->n_cols / 3;
    if (part >= p->n_cols) return;
    run_tile(c->k, p, p->c0 + part, p->n_cols - part, rest);
    for (int col = part; col < p->n_cols; col++) {
        for (int r = 0; r < p->n_rows; r++) {
            if (!cera_check_same(rest[(col - part) * CERA_PANEL_ROWS + r], wide[col * CERA_PANEL_ROWS + r]))
                cera_check_fail(c, "row %d, column %d of %d differs in a call of %d", r, col, p->n_cols, p->n_cols - part);
        }
    }
}

static void run_problem(cera_check *c, problem *p, weight_mode wm, acts_mode am) {
    make_problem(c, p, wm, am);
    float *want = make_tile(c, p->n_cols), *got = make_tile(c, p->n_cols);
    run_tile(c->ref, p, p->c0, p->n_cols, want);
    run_tile(c->k, p, p->c0, p->n_cols, got);
    compare(c, p, want, got);
    check_columns(c, p, got);
    cera_check_free_all(c);
}

/* The reference against a double sum over the dequantized weights and decoded activations: the recipe means what it should. */
static void check_reference(cera_check *c, cera_dtype t) {
    problem p = {.t = t, .n_rows = 5, .k = 512, .n = 3, .n_cols = 3};
    make_problem(c, &p, W_PLAIN, A_PLAIN);
    float *tile = make_tile(c, 3), row[512];
    run_tile(c->ref, &p, 0, 3, tile);
    for (int r = 0; r < p.n_rows; r++) {
        c->ref->dequantize[t](p.w + (size_t)r * p.row_bytes, p.k, row);
        for (int col = 0; col < 3; col++) {
            double sum = 0, magnitude = 0, bound;
            for (int i = 0; i < p.k; i++) {
                size_t at = (size_t)(i / 32) * 3 + (size_t)col;
                double v = (double)row[i] * p.x.q[at * 32 + (size_t)(i % 32)] * p.x.d[at];
                sum += v;
                magnitude += fabs(v);
            }
            /* Each of the two halves' terms, three roundings a term (product, fma, s) over at most 4 terms a sub-block; the min
             * term may cancel against the products, hence the sizes of both count: at most 64 times the sum's. */
            bound = (magnitude * 64 + 1) * 0x1p-24 * (p.k / 32 * 4 + 4);
            if (!(fabs(tile[col * CERA_PANEL_ROWS + r] - sum) <= bound))
                cera_check_fail(c, "reference: row %d, column %d: %.9g, should be %.9g", r, col,
                                tile[col * CERA_PANEL_ROWS + r], sum);
        }
    }
    cera_check_free_all(c);
}

static void run_matmul(cera_check *c) {
    cera_dtype t = type_of(c->slot);
    bool quantized = cera_kernels_encoding(t) == CERA_ENC_Q8;
    int unit = cera_dtype_get(t)->block_elements == 1 ? 1 : cera_dtype_get(t)->block_elements;
    if (quantized) check_reference(c, t);
    /* Every number of rows, every small number of columns, short and longer k, each mixture of modes. */
    for (int i = 0; i < 96; i++) {
        problem p = {.t = t, .n_rows = 1 + i % 32};
        int longest = unit == 256 ? 4 : unit == 1 ? 300 : 21;
        p.k = unit * cera_check_int(c, 1, longest);
        p.n_cols = i % 24 == 23 ? 64 : 1 + i % 19;
        p.c0 = cera_check_int(c, 0, 3);
        p.n = p.c0 + p.n_cols + cera_check_int(c, 0, 3);
        run_problem(c, &p, (weight_mode)(i % W_MODES), (acts_mode)(i / W_MODES % A_MODES));
    }
    /* Decode: whole panels, a column that is alone in its acts and one that is not. */
    for (int i = 0; i < 12; i++) {
        problem one = {
            .t = t, .n_rows = 32, .k = unit * cera_check_int(c, 1, unit == 256 ? 4 : 21), .n = 1 + i / 6, .n_cols = 1};
        one.c0 = one.n - 1;
        run_problem(c, &one, (weight_mode)(i % W_MODES), (acts_mode)(i / 2 % A_MODES));
    }
    problem wide = {.t = t, .n_rows = 32, .k = unit == 1 ? 1000 : 768, .n = 130, .c0 = 1, .n_cols = 128};
    run_problem(c, &wide, W_PLAIN, A_PLAIN);
    problem deep = {.t = t, .n_rows = 32, .k = unit == 1 ? 4001 : 4096, .n = 2, .n_cols = 2};
    run_problem(c, &deep, W_PLAIN, A_PLAIN);
}

/* Speed: many panels, more than the caches hold for one column (decode); one panel in cache for many (prefill). */
typedef struct job {
    const cera_kernels *k;
    problem p;
    int panels;
    float *tile;
} job;

static void job_once(void *ctx) {
    const job *j = ctx;
    for (int i = 0; i < j->panels; i++) {
        const uint8_t *w = j->p.w + (size_t)i * 32 * j->p.row_bytes;
        j->k->matmul[j->p.t](w, j->p.row_bytes, 32, j->p.k, &j->p.x, 0, j->p.n_cols, j->tile);
    }
}

static void bench_line(cera_check *c, job *j, double seconds_c, const char *where) {
    double s = cera_check_time(job_once, j, 0.2), macs = (double)j->panels * 32 * j->p.k * j->p.n_cols;
    size_t bytes = (size_t)j->panels * 32 * j->p.row_bytes;
    cera_encoding enc = cera_kernels_encoding(j->p.t);
    double peak = enc == CERA_ENC_Q8    ? cera_check_peak_int8(c->k->tier)
                  : enc == CERA_ENC_F32 ? cera_check_peak_f32(c->k->tier)
                                        : cera_check_peak_bf16(c->k->tier);
    printf("%-14s %-12s %3d columns %10.0f ns %7.1f GMAC/s %5.1f %% of peak %7.2f GB/s", c->slot, c->tier, j->p.n_cols, s * 1e9,
           macs / s * 1e-9, peak > 0 ? 100 * macs / s / peak : 0.0, (double)bytes / s * 1e-9);
    if (!strcmp(where, "memory"))
        printf(" %5.1f %% of a read loop", 100 * (double)bytes / s / cera_check_read_speed(j->p.w, bytes));
    printf(" (%s) %6.1f x C\n", where, seconds_c / (s / macs));
}

static void bench_matmul(cera_check *c) {
    enum { K = 2048, PANELS = 1024 };
    static const int widths[] = {128, 16, 8, 4, 2, 1};
    job j = {.k = c->ref, .panels = 1};
    j.p = (problem){.t = type_of(c->slot), .n_rows = 32 * PANELS, .k = K, .n = 128, .n_cols = 4};
    j.p.row_bytes = row_size(j.p.t, K);
    /* About 100 MB at least: beyond every cache. */
    while ((size_t)j.p.n_rows * j.p.row_bytes < (size_t)100 << 20) j.p.n_rows *= 2;
    j.p.w = make_weights(c, j.p.t, W_PLAIN, 32, K, j.p.row_bytes);
    uint8_t *all = cera_check_alloc(c, (size_t)j.p.n_rows * j.p.row_bytes);
    for (int r = 0; r < j.p.n_rows; r += 32) memcpy(all + (size_t)r * j.p.row_bytes, j.p.w, 32 * j.p.row_bytes);
    j.p.w = all;
    j.p.x = make_acts(c, cera_kernels_encoding(j.p.t), A_PLAIN, K, 128);
    j.tile = make_tile(c, 128);
    double plain = cera_check_time(job_once, &j, 0.02) / (32.0 * K * 4);
    j.k = c->k;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        j.p.n_cols = widths[i];
        if (widths[i] == 1) j.p.x = make_acts(c, cera_kernels_encoding(j.p.t), A_PLAIN, K, 1);
        j.panels = 4;
        bench_line(c, &j, plain, "cache");
    }
    j.panels = j.p.n_rows / 32;
    bench_line(c, &j, plain, "memory");
}

#define CASE(name) \
    { "matmul_" name, matmul_function, run_matmul, bench_matmul }
const cera_check_case cera_check_matmul_cases[] = {
    CASE("f32"),
    CASE("f16"),
    CASE("bf16"),
    CASE("q4_0"),
    CASE("q4_1"),
    CASE("q5_0"),
    CASE("q5_1"),
    CASE("q8_0"),
    CASE("q2_k"),
    CASE("q3_k"),
    CASE("q4_k"),
    CASE("q5_k"),
    CASE("q6_k"),
    CASE("iq4_nl"),
    CASE("iq4_xs"),
    CASE("mxfp4"),
    {NULL, NULL, NULL, NULL},
};
