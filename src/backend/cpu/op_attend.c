/* op_attend.c: ATTEND. A query's keys are taken in segments of 256 cache indices, aligned to index 0; each segment gives a
 * partial (max, sum, weighted values) and partials are joined in ascending order. That order is the same whether one thread
 * walks all segments of a query or many threads take a segment each, so the two ways below give the same bits ("Same bits",
 * docs/DESIGN.md).
 *
 * A unit of work is a KV head and a tile of rows of one sequence: every query head of the group, for every row of the tile,
 * shares each load of K and V. Wide: a task is a unit and walks its segments. Deep (few units, many segments): a task is a unit
 * and a segment; the partials of a wave of segments are stored and joined, wave after wave. */
#include <math.h>
#include "backend/cpu/cpu_int.h"

typedef struct attend_job {
    cera_program *p;
    cera_cpu_op *op;
    const cera_kv_group *group;
    const cera_cpu_group *layout;
    int heads_each, tile_rows; /* query heads of a KV head, rows of a tile */
    int n_units;
    int wave_first, wave_count; /* deep: segments of this wave */
} attend_job;

/* The queries of one unit: rows [first, first + n) of a sequence, KV head kv. */
typedef struct attend_unit {
    const cera_sequence_view *sequence;
    int first, n, kv;
} attend_unit;

static int tiles_of(const attend_job *j, const cera_cpu_run *run) { return (run->n + j->tile_rows - 1) / j->tile_rows; }

static attend_unit find_unit(const attend_job *j, int unit) {
    int tile = unit / j->group->n_head_kv;
    const cera_cpu_run *run = j->p->runs;
    while (tile >= tiles_of(j, run)) tile -= tiles_of(j, run++);
    int first = run->first + tile * j->tile_rows, left = run->first + run->n - first;
    return (attend_unit){&j->p->step->sequences[run->sequence], first, left < j->tile_rows ? left : j->tile_rows,
                         unit % j->group->n_head_kv};
}

/* Keys that row sees: [*lo, *hi). */
static void visible(const attend_job *j, int row, int *lo, int *hi) {
    const cera_row *r = &j->p->step->rows[row];
    *hi = r->visible_end;
    *lo = j->group->window && r->index + 1 > j->group->window ? r->index + 1 - j->group->window : 0;
}

static void span_of_unit(const attend_job *j, const attend_unit *u, int *lo, int *hi) {
    *lo = INT32_MAX, *hi = 0;
    for (int r = u->first; r < u->first + u->n; r++) {
        int a, b;
        visible(j, r, &a, &b);
        if (a < *lo) *lo = a;
        if (b > *hi) *hi = b;
    }
}

/* Queries of the unit, scaled, [row][head of the group][d_k]. */
static void load_queries(const attend_job *j, const attend_unit *u, float *q) {
    int d = j->group->d_k;
    float scale = j->op->op->p.attend.scale;
    for (int r = 0; r < u->n; r++) {
        const float *from =
            cera_cpu_row(&j->p->values[j->op->op->in[0]], u->first + r) + (size_t)u->kv * (size_t)j->heads_each * (size_t)d;
        for (int i = 0; i < j->heads_each * d; i++)
            q[(size_t)r * (size_t)j->heads_each * (size_t)d + (size_t)i] = from[i] * scale;
    }
}

typedef void (*scores_fn)(const float *, size_t, int, int, const void *const[4], int, int, float *);
typedef void (*values_fn)(const float *, int, int, const void *const[4], int, int, float *, size_t);

static scores_fn scores_of(const cera_kernels *k, cera_kv_type t) {
    return t == CERA_KV_F32 ? k->attend_scores_f32 : t == CERA_KV_F16 ? k->attend_scores_f16 : k->attend_scores_bf16;
}
static values_fn values_of(const cera_kernels *k, cera_kv_type t) {
    return t == CERA_KV_F32 ? k->attend_values_f32 : t == CERA_KV_F16 ? k->attend_values_f16 : k->attend_values_bf16;
}

/* One segment for all queries of a unit: m and l [queries], o [queries][o_stride]. A query that sees none of it gets m = -inf,
 * l = 0. */
static void segment_partial(const attend_job *j, const attend_unit *u, int segment, cera_cpu_scratch *s, float *m, float *l,
                            float *o, size_t o_stride) {
    cera_program *p = j->p;
    const cera_kernels *k = cera_cpu_k(p);
    int base = segment * CERA_SEGMENT_TOKENS, first, end, d_v = j->group->d_v, n_q = u->n * j->heads_each;
    span_of_unit(j, u, &first, &end);
    first = first > base ? first - base : 0;
    end = end - base < CERA_SEGMENT_TOKENS ? end - base : CERA_SEGMENT_TOKENS;
    const void *keys[4] = {0}, *values[4] = {0};
    size_t layer = (size_t)j->op->op->p.attend.group_layer * j->layout->layer_bytes;
    size_t v_at = (size_t)j->group->n_head_kv * j->layout->k_head_bytes + (size_t)u->kv * j->layout->v_head_bytes;
    for (int i = first / CERA_PAGE_TOKENS; i <= (end - 1) / CERA_PAGE_TOKENS; i++) {
        const cera_page *page = u->sequence->pages[j->op->op->p.attend.group][base / CERA_PAGE_TOKENS + i];
        keys[i] = page->memory + layer + (size_t)u->kv * j->layout->k_head_bytes;
        values[i] = page->memory + layer + v_at;
    }
    scores_of(k, p->k_type)(s->q, (size_t)j->group->d_k, n_q, j->group->d_k, keys, first, end, s->scores);
    for (int i = 0; i < n_q; i++) {
        int lo, hi;
        visible(j, u->first + i / j->heads_each, &lo, &hi);
        lo = lo > base ? lo - base : 0;
        hi = hi - base < CERA_SEGMENT_TOKENS ? hi - base : CERA_SEGMENT_TOKENS;
        float *row = s->scores + (size_t)i * CERA_SEGMENT_TOKENS;
        if (lo < hi) {
            k->attend_softmax(row, lo, hi, j->op->op->p.attend.softcap, &m[i], &l[i]);
        } else {
            m[i] = -INFINITY, l[i] = 0;
            for (int x = 0; x < CERA_SEGMENT_TOKENS; x++) row[x] = 0;
        }
    }
    values_of(k, p->v_type)(s->scores, n_q, d_v, values, first, end, o, o_stride);
}

/* Joins a partial; a query that saw nothing yet takes it as it is, one that sees nothing in it keeps what it has. */
static void join(const attend_job *j, float *m, float *l, float *o, float m2, float l2, const float *o2) {
    int d_v = j->group->d_v;
    if (l2 == 0 && m2 == -INFINITY) return;
    if (*m == -INFINITY && *l == 0) {
        *m = m2, *l = l2;
        for (int i = 0; i < d_v; i++) o[i] = o2[i];
    } else {
        cera_cpu_k(j->p)->attend_merge(m, l, o, m2, l2, o2, d_v);
    }
}

/* o / l of one query into the output row; a sink is one more key without a value. */
static void finish(const attend_job *j, const attend_unit *u, int query, float m, float l, float *o) {
    int d_v = j->group->d_v, head = u->kv * j->heads_each + query % j->heads_each;
    if (j->op->vec[0]) cera_cpu_k(j->p)->attend_merge(&m, &l, o, j->op->vec[0][head], 1, j->p->zeros, d_v);
    float *out = cera_cpu_row(&j->p->values[j->op->op->out[0]], u->first + query / j->heads_each) + (size_t)head * (size_t)d_v;
    for (int i = 0; i < d_v; i++) out[i] = o[i] / l;
}

static void wide_task(void *ctx, int task, int worker) {
    attend_job *j = ctx;
    attend_unit u = find_unit(j, task);
    cera_cpu_scratch *s = &j->p->scratch[worker];
    int lo, hi, n_q = u.n * j->heads_each;
    size_t stride = (size_t)j->group->d_v;
    float m[CERA_ATTEND_MAX_Q], l[CERA_ATTEND_MAX_Q], m2[CERA_ATTEND_MAX_Q], l2[CERA_ATTEND_MAX_Q];
    float *o = s->o, *o2 = s->o + CERA_ATTEND_MAX_Q * stride;
    load_queries(j, &u, s->q);
    span_of_unit(j, &u, &lo, &hi);
    for (int i = 0; i < n_q; i++) m[i] = -INFINITY, l[i] = 0;
    for (int segment = lo / CERA_SEGMENT_TOKENS; segment * CERA_SEGMENT_TOKENS < hi; segment++) {
        segment_partial(j, &u, segment, s, m2, l2, o2, stride);
        for (int i = 0; i < n_q; i++) join(j, &m[i], &l[i], o + (size_t)i * stride, m2[i], l2[i], o2 + (size_t)i * stride);
    }
    for (int i = 0; i < n_q; i++) finish(j, &u, i, m[i], l[i], o + (size_t)i * stride);
}

/* Deep: where the partial of (unit, segment of the wave) is: [queries of the unit] of (m, l, o[d_v]). */
static float *partial_at(const attend_job *j, int unit, int segment) {
    size_t queries = (size_t)j->tile_rows * (size_t)j->heads_each, one = (size_t)j->group->d_v + 2;
    return j->p->partials + ((size_t)segment * (size_t)j->n_units + (size_t)unit) * queries * one;
}

static void deep_segment(void *ctx, int task, int worker) {
    attend_job *j = ctx;
    int unit = task % j->n_units, in_wave = task / j->n_units, segment = j->wave_first + in_wave, lo, hi;
    attend_unit u = find_unit(j, unit);
    cera_cpu_scratch *s = &j->p->scratch[worker];
    span_of_unit(j, &u, &lo, &hi);
    float *out = partial_at(j, unit, in_wave);
    int n_q = u.n * j->heads_each;
    size_t one = (size_t)j->group->d_v + 2;
    float m[CERA_ATTEND_MAX_Q], l[CERA_ATTEND_MAX_Q];
    bool seen = segment * CERA_SEGMENT_TOKENS < hi && (segment + 1) * CERA_SEGMENT_TOKENS > lo;
    if (seen) {
        load_queries(j, &u, s->q);
        segment_partial(j, &u, segment, s, m, l, out + 2, one);
    }
    for (int i = 0; i < n_q; i++) out[(size_t)i * one] = seen ? m[i] : -INFINITY, out[(size_t)i * one + 1] = seen ? l[i] : 0;
}

/* The running result of a unit lives in the slot after the wave's. */
static void deep_join(void *ctx, int unit, int worker) {
    attend_job *j = ctx;
    (void)worker;
    attend_unit u = find_unit(j, unit);
    size_t one = (size_t)j->group->d_v + 2;
    float *sum = partial_at(j, unit, (int)j->p->partial_slots);
    for (int i = 0; i < u.n * j->heads_each; i++) {
        float *to = sum + (size_t)i * one;
        if (j->wave_first == 0) to[0] = -INFINITY, to[1] = 0;
        for (int w = 0; w < j->wave_count; w++) {
            const float *from = partial_at(j, unit, w) + (size_t)i * one;
            join(j, &to[0], &to[1], to + 2, from[0], from[1], from + 2);
        }
    }
}

static void deep_finish(void *ctx, int unit, int worker) {
    attend_job *j = ctx;
    (void)worker;
    attend_unit u = find_unit(j, unit);
    size_t one = (size_t)j->group->d_v + 2;
    float *sum = partial_at(j, unit, (int)j->p->partial_slots);
    for (int i = 0; i < u.n * j->heads_each; i++)
        finish(j, &u, i, sum[(size_t)i * one], sum[(size_t)i * one + 1], sum + (size_t)i * one + 2);
}

/* Keys read in all, for the profile, and the furthest segment. */
static int64_t survey(const attend_job *j, int *segments) {
    int64_t keys = 0;
    *segments = 0;
    for (int unit = 0; unit < j->n_units; unit++) {
        attend_unit u = find_unit(j, unit);
        int lo, hi;
        span_of_unit(j, &u, &lo, &hi);
        keys += hi - lo;
        int n = (hi + CERA_SEGMENT_TOKENS - 1) / CERA_SEGMENT_TOKENS;
        if (n > *segments) *segments = n;
    }
    return keys;
}

void cera_cpu_run_attend(cera_program *p, cera_cpu_op *op) {
    const cera_op *o = op->op;
    attend_job j = {.p = p, .op = op, .group = &p->plan->groups[o->p.attend.group], .layout = &p->groups[o->p.attend.group]};
    j.heads_each = o->p.attend.n_head / j.group->n_head_kv;
    j.tile_rows = CERA_ATTEND_MAX_Q / j.heads_each;
    int tiles = 0, segments, threads = cera_pool_size(p->backend->pool);
    bool single = true; /* one row a sequence: units of one row */
    for (int i = 0; i < p->n_runs; i++) single = single && p->runs[i].n == 1;
    if (single) j.tile_rows = 1;
    for (int i = 0; i < p->n_runs; i++) tiles += tiles_of(&j, &p->runs[i]);
    j.n_units = tiles * j.group->n_head_kv;
    int64_t keys = survey(&j, &segments);
    bool deep = single && p->n_runs == 1 && threads > 1 && segments > 1 && j.n_units < 4 * threads;
    if (!deep) {
        cera_cpu_parallel(p, j.n_units, wide_task, &j);
    } else {
        for (j.wave_first = 0; j.wave_first < segments; j.wave_first += (int)p->partial_slots) {
            j.wave_count = segments - j.wave_first < (int)p->partial_slots ? segments - j.wave_first : (int)p->partial_slots;
            cera_cpu_parallel(p, j.n_units * j.wave_count, deep_segment, &j);
            cera_cpu_parallel(p, j.n_units, deep_join, &j);
        }
        cera_cpu_parallel(p, j.n_units, deep_finish, &j);
    }
    op->bytes += (double)keys * (double)(j.layout->k_head_bytes + j.layout->v_head_bytes) / CERA_PAGE_TOKENS;
    for (int r = 0; r < p->n_rows; r++) {
        int lo, hi;
        visible(&j, r, &lo, &hi);
        op->macs += (double)(hi - lo) * o->p.attend.n_head * (j.group->d_k + j.group->d_v);
    }
    cera_cpu_encode_rows(p, &p->values[o->out[0]]);
}
