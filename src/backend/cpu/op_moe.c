/* op_moe.c: ROUTE and EXPERTS. ROUTE chooses experts for each row. EXPERTS groups the rows by expert, so that an expert's
 * weights are read once a step, however many rows chose it; the results of a row are added in the order of its router's rank.
 * HEADS (per-head matrices, MLA) is here too: it is the same grouping with heads for experts. */
#include <math.h>
#include <string.h>
#include "backend/cpu/cpu_int.h"

enum { MAX_EXPERTS = 1024, MAX_USED = 64 };

struct cera_cpu_moe {
    int *count, *first;               /* [n_experts + 1] rows of each expert and where they begin in `slots` */
    int *active;                      /* [n_active] experts that some row chose, ascending */
    int32_t *slot_row;                /* [max_rows * n_used] row of each slot, grouped by expert, rows ascending */
    int32_t *slot_of;                 /* [max_rows][n_used] slot of a row's rank-th choice */
    void *in_memory[CERA_ENC_COUNT];  /* gathered inputs, expert after expert */
    void *mid_memory[CERA_ENC_COUNT]; /* glu outputs as the input of down */
    cera_acts *in[CERA_ENC_COUNT], *mid[CERA_ENC_COUNT]; /* [n_experts] */
    float *mid_f32;                                      /* [slots][widest ff] */
    float *out;                                          /* [slots][n_embd] */
    int n_experts, n_used, n_active;
};

typedef struct route_task {
    cera_program *p;
    cera_cpu_op *op;
} route_task;

/* Ids of the n largest, ties to the lowest id, largest first. */
static void top_n(const float *score, int n_scores, int n, int *ids) {
    int have = 0;
    for (int i = 0; i < n_scores; i++) {
        int at = have < n ? have++ : n;
        if (at == n) {
            if (!(score[i] > score[ids[n - 1]])) continue;
            at = n - 1;
        }
        while (at > 0 && score[i] > score[ids[at - 1]]) ids[at] = ids[at - 1], at--;
        ids[at] = i;
    }
}

/* Groups whose two best scores add up to little are left out (DeepSeek-V3, "DeepSeek-V3 Technical Report", 2.1.2). */
static void drop_groups(const cera_op *op, float *score) {
    int n = op->p.route.n_groups, size = op->p.route.n_experts / n, keep[MAX_USED];
    float best[MAX_EXPERTS];
    for (int g = 0; g < n; g++) {
        int two[2];
        top_n(score + g * size, size, size < 2 ? size : 2, two);
        best[g] = score[g * size + two[0]] + (size < 2 ? 0 : score[g * size + two[1]]);
    }
    top_n(best, n, op->p.route.n_groups_used, keep);
    for (int g = 0; g < n; g++) {
        bool kept = false;
        for (int i = 0; i < op->p.route.n_groups_used; i++) kept = kept || keep[i] == g;
        for (int i = 0; i < size && !kept; i++) score[g * size + i] = -INFINITY;
    }
}

/* Scores of one row -> ids and weights. The selection bias moves the choice, not the weight. */
static void choose(const cera_kernels *k, const cera_op *op, float *logits, const float *selection_bias, int32_t *ids,
                   float *weights) {
    int n = op->p.route.n_experts, used = op->p.route.n_used, chosen[MAX_USED];
    float pick[MAX_EXPERTS];
    if (op->p.route.gating == 1) k->softmax(logits, n);
    if (op->p.route.gating == 2) k->sigmoid(logits, n);
    for (int i = 0; i < n; i++) pick[i] = logits[i] + (selection_bias ? selection_bias[i] : 0);
    if (op->p.route.n_groups > 1) drop_groups(op, pick);
    top_n(pick, n, used, chosen);
    for (int i = 0; i < used; i++) ids[i] = chosen[i], weights[i] = logits[chosen[i]];
    if (op->p.route.gating == 3) k->softmax(weights, used);
    if (op->p.route.normalise) {
        float sum = 0;
        for (int i = 0; i < used; i++) sum += weights[i];
        if (sum < op->p.route.norm_min) sum = op->p.route.norm_min;
        for (int i = 0; i < used; i++) weights[i] /= sum;
    }
    for (int i = 0; i < used; i++) weights[i] *= op->p.route.scale;
}

static void route_row(void *ctx, int row, int worker) {
    route_task *t = ctx;
    cera_program *p = t->p;
    const cera_op *op = t->op->op;
    const cera_weight *w = &p->plan->weights[op->w[0]];
    const cera_acts *x = &p->values[op->in[0]].acts[cera_kernels_encoding(w->dtype)];
    float logits[MAX_EXPERTS], *tile = p->scratch[worker].tile[0];
    for (int first = 0; first < w->n; first += CERA_PANEL_ROWS) {
        int n = w->n - first < CERA_PANEL_ROWS ? (int)w->n - first : CERA_PANEL_ROWS;
        t->op->fn[0](w->data + (size_t)first * w->row_bytes, w->row_bytes, n, (int)w->k, x, row, 1, tile);
        for (int i = 0; i < n; i++) logits[first + i] = tile[i] + (t->op->vec[3] ? t->op->vec[3][first + i] : 0);
    }
    float *out = cera_cpu_row(&p->values[op->out[0]], row);
    int32_t ids[MAX_USED];
    choose(cera_cpu_k(p), op, logits, t->op->vec[1], ids, out + op->p.route.n_used);
    memcpy(out, ids, (size_t)op->p.route.n_used * sizeof *ids);
}

void cera_cpu_run_route(cera_program *p, cera_cpu_op *op) {
    route_task t = {p, op};
    cera_cpu_parallel(p, p->n_rows, route_row, &t);
    op->bytes += (double)p->plan->weights[op->op->w[0]].matrix_bytes;
}

/* ---- experts ----------------------------------------------------------------------------------------------------- */

typedef struct experts_job {
    cera_program *p;
    cera_cpu_op *op;
    struct cera_cpu_moe *m;
    const cera_weight *w[3];
    cera_encoding enc_gate, enc_up, enc_down;
    int panels_ff, panels_out;
} experts_job;

static void group_rows(experts_job *j) {
    cera_program *p = j->p;
    struct cera_cpu_moe *m = j->m;
    const cera_cpu_value *routes = &p->values[j->op->op->in[1]];
    int used = m->n_used;
    memset(m->count, 0, (size_t)(m->n_experts + 1) * sizeof *m->count);
    for (int r = 0; r < p->n_rows; r++) {
        const int32_t *ids = (const int32_t *)(const void *)cera_cpu_row(routes, r);
        for (int i = 0; i < used; i++) m->count[ids[i]]++;
    }
    m->first[0] = 0;
    m->n_active = 0;
    for (int x = 0; x < m->n_experts; x++) {
        if (m->count[x]) m->active[m->n_active++] = x;
        m->first[x + 1] = m->first[x] + m->count[x];
        m->count[x] = 0;
    }
    for (int r = 0; r < p->n_rows; r++) {
        const int32_t *ids = (const int32_t *)(const void *)cera_cpu_row(routes, r);
        for (int i = 0; i < used; i++) {
            int slot = m->first[ids[i]] + m->count[ids[i]]++;
            m->slot_row[slot] = r;
            m->slot_of[r * used + i] = slot;
        }
    }
}

static void lay_out_experts(experts_job *j, cera_encoding enc, int k, void *memory, cera_acts *acts) {
    uint8_t *at = memory;
    for (int x = 0; x < j->m->n_experts; x++)
        if (j->m->count[x]) at += cera_acts_layout(enc, k, j->m->count[x], at, &acts[x]);
}

static void gather_expert(void *ctx, int task, int worker) {
    experts_job *j = ctx;
    (void)worker;
    struct cera_cpu_moe *m = j->m;
    int x = m->active[task];
    const cera_cpu_value *in = &j->p->values[j->op->op->in[0]];
    const int32_t *rows = m->slot_row + m->first[x];
    cera_acts_gather(j->enc_gate, &in->acts[j->enc_gate], rows, m->count[x], &m->in[j->enc_gate][x]);
    if (j->enc_up != j->enc_gate) cera_acts_gather(j->enc_up, &in->acts[j->enc_up], rows, m->count[x], &m->in[j->enc_up][x]);
}

static void panel_product(const cera_weight *w, cera_matmul_fn fn, int expert, int panel, const cera_acts *x, int c0,
                          int n_cols, float *tile) {
    int64_t row = (int64_t)panel * CERA_PANEL_ROWS;
    int rows = w->n - row < CERA_PANEL_ROWS ? (int)(w->n - row) : CERA_PANEL_ROWS;
    fn(w->data + (size_t)expert * w->matrix_bytes + (size_t)row * w->row_bytes, w->row_bytes, rows, (int)w->k, x, c0, n_cols,
       tile);
}

static void store_mid(experts_job *j, int expert, int c, int first, int n, const float *data) {
    cera_acts *mid = &j->m->mid[j->enc_down][expert];
    if (j->enc_down == CERA_ENC_Q8) {
        cera_acts part = cera_acts_from(CERA_ENC_Q8, mid, first);
        cera_cpu_k(j->p)->encode_q8(data, n, &part, c);
    } else if (j->enc_down == CERA_ENC_BF16) {
        cera_cpu_k(j->p)->f32_to_bf16(data, n, mid->bf16 + (size_t)c * (size_t)mid->k + first);
    } else {
        memcpy((float *)mid->f32 + (size_t)c * mid->f32_stride + first, data, (size_t)n * sizeof *data);
    }
}

static void glu_expert(void *ctx, int task, int worker) {
    experts_job *j = ctx;
    int x = j->m->active[task / j->panels_ff], panel = task % j->panels_ff, count = j->m->count[x],
        first = panel * CERA_PANEL_ROWS;
    int n = j->w[0]->n - first < CERA_PANEL_ROWS ? (int)(j->w[0]->n - first) : CERA_PANEL_ROWS;
    float *tg = j->p->scratch[worker].tile[0], *tu = j->p->scratch[worker].tile[1];
    for (int c0 = 0; c0 < count; c0 += CERA_MATMUL_COLUMNS) {
        int n_cols = count - c0 < CERA_MATMUL_COLUMNS ? count - c0 : CERA_MATMUL_COLUMNS;
        panel_product(j->w[0], j->op->fn[0], x, panel, &j->m->in[j->enc_gate][x], c0, n_cols, tg);
        panel_product(j->w[1], j->op->fn[1], x, panel, &j->m->in[j->enc_up][x], c0, n_cols, tu);
        if (j->op->vec[3]) cera_cpu_tile_bias(tg, n_cols, n, j->op->vec[3] + (size_t)x * (size_t)j->w[0]->n + first);
        if (j->op->vec[4]) cera_cpu_tile_bias(tu, n_cols, n, j->op->vec[4] + (size_t)x * (size_t)j->w[1]->n + first);
        for (int c = 0; c < n_cols; c++) {
            float *g = tg + c * CERA_PANEL_ROWS;
            cera_cpu_k(j->p)->glu((cera_activation)j->op->op->p.experts.act, g, tu + c * CERA_PANEL_ROWS, n, g);
            store_mid(j, x, c0 + c, first, n, g);
        }
    }
}

static void down_expert(void *ctx, int task, int worker) {
    experts_job *j = ctx;
    int x = j->m->active[task / j->panels_out], panel = task % j->panels_out, count = j->m->count[x],
        first = panel * CERA_PANEL_ROWS;
    const cera_weight *w = j->w[2];
    int n = w->n - first < CERA_PANEL_ROWS ? (int)(w->n - first) : CERA_PANEL_ROWS;
    float *tile = j->p->scratch[worker].tile[0];
    for (int c0 = 0; c0 < count; c0 += CERA_MATMUL_COLUMNS) {
        int n_cols = count - c0 < CERA_MATMUL_COLUMNS ? count - c0 : CERA_MATMUL_COLUMNS;
        panel_product(w, j->op->fn[2], x, panel, &j->m->mid[j->enc_down][x], c0, n_cols, tile);
        if (j->op->vec[5]) cera_cpu_tile_bias(tile, n_cols, n, j->op->vec[5] + (size_t)x * (size_t)w->n + first);
        for (int c = 0; c < n_cols; c++)
            memcpy(j->m->out + (size_t)(j->m->first[x] + c0 + c) * (size_t)w->n + first, tile + c * CERA_PANEL_ROWS,
                   (size_t)n * sizeof(float));
    }
}

static void add_experts(void *ctx, int row, int worker) {
    experts_job *j = ctx;
    (void)worker;
    cera_program *p = j->p;
    const cera_op *op = j->op->op;
    int used = j->m->n_used, n = (int)j->w[2]->n;
    const float *weights = cera_cpu_row(&p->values[op->in[1]], row) + used;
    float *sum = p->scratch[worker].row;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int i = 0; i < used; i++)
        cera_cpu_k(p)->add_scaled(j->m->out + (size_t)j->m->slot_of[row * used + i] * (size_t)n, weights[i], n, sum);
    if (op->in[2] >= 0) {
        const float *x = cera_cpu_row(&p->values[op->in[2]], row);
        for (int i = 0; i < n; i++) sum[i] = x[i] + op->p.experts.scale * sum[i];
    }
    cera_cpu_emit(p, &p->values[op->out[0]], row, 0, n, sum);
}

void cera_cpu_run_experts(cera_program *p, cera_cpu_op *op) {
    experts_job j = {.p = p, .op = op, .m = p->moe};
    for (int i = 0; i < 3; i++) j.w[i] = &p->plan->weights[op->op->w[i]];
    j.enc_gate = cera_kernels_encoding(j.w[0]->dtype);
    j.enc_up = cera_kernels_encoding(j.w[1]->dtype);
    j.enc_down = cera_kernels_encoding(j.w[2]->dtype);
    j.m->n_experts = (int)j.w[0]->count;
    j.m->n_used = op->op->p.experts.n_used;
    j.panels_ff = (int)((j.w[0]->n + CERA_PANEL_ROWS - 1) / CERA_PANEL_ROWS);
    j.panels_out = (int)((j.w[2]->n + CERA_PANEL_ROWS - 1) / CERA_PANEL_ROWS);
    group_rows(&j);
    lay_out_experts(&j, j.enc_gate, (int)j.w[0]->k, j.m->in_memory[j.enc_gate], j.m->in[j.enc_gate]);
    if (j.enc_up != j.enc_gate) lay_out_experts(&j, j.enc_up, (int)j.w[1]->k, j.m->in_memory[j.enc_up], j.m->in[j.enc_up]);
    lay_out_experts(&j, j.enc_down, (int)j.w[2]->k, j.m->mid_memory[j.enc_down], j.m->mid[j.enc_down]);
    cera_cpu_parallel(p, j.m->n_active, gather_expert, &j);
    cera_cpu_parallel(p, j.m->n_active * j.panels_ff, glu_expert, &j);
    cera_cpu_parallel(p, j.m->n_active * j.panels_out, down_expert, &j);
    cera_cpu_parallel(p, p->n_rows, add_experts, &j);
    for (int i = 0; i < 3; i++) {
        op->bytes += (double)j.w[i]->matrix_bytes * j.m->n_active;
        op->macs += (double)j.w[i]->k * (double)j.w[i]->n * p->n_rows * j.m->n_used;
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Space for the acts of all experts together: what one matrix with all slots takes, and one alignment loss an expert and array.
 */
static size_t grouped_bytes(cera_encoding enc, int k, int slots, int n_experts) {
    cera_acts probe;
    return cera_acts_layout(enc, k, slots, NULL, &probe) + (size_t)n_experts * cera_acts_layout(enc, 32, 1, NULL, &probe) +
           (size_t)n_experts * 512;
}

cera_status cera_cpu_moe_prepare(cera_program *p, cera_error *e) {
    size_t in[CERA_ENC_COUNT] = {0}, mid[CERA_ENC_COUNT] = {0}, slots = 0, out = 0;
    int experts = 0;
    for (int i = 0; i < p->plan->n_ops; i++) {
        const cera_op *op = &p->plan->ops[i];
        if (op->kind == CERA_OP_ROUTE && (op->p.route.n_experts > MAX_EXPERTS || op->p.route.n_used > MAX_USED))
            return cera_fail(e, CERA_ERR_LIMIT, "%d experts, %d used; at most %d and %d", op->p.route.n_experts,
                             op->p.route.n_used, MAX_EXPERTS, MAX_USED);
        if (op->kind != CERA_OP_EXPERTS) continue;
        const cera_weight *gate = &p->plan->weights[op->w[0]], *up = &p->plan->weights[op->w[1]],
                          *down = &p->plan->weights[op->w[2]];
        int n = (int)gate->count, s = p->max_rows * op->p.experts.n_used;
        cera_encoding eg = cera_kernels_encoding(gate->dtype), eu = cera_kernels_encoding(up->dtype),
                      ed = cera_kernels_encoding(down->dtype);
        in[eg] = larger(in[eg], grouped_bytes(eg, (int)gate->k, s, n));
        in[eu] = larger(in[eu], grouped_bytes(eu, (int)up->k, s, n));
        mid[ed] = larger(mid[ed], grouped_bytes(ed, (int)down->k, s, n));
        slots = larger(slots, (size_t)s), out = larger(out, (size_t)s * (size_t)down->n);
        if (n > experts) experts = n;
    }
    if (!slots) return CERA_OK;
    struct cera_cpu_moe *m = p->moe = cera_arena_alloc(p->arena, 1, sizeof *m);
    if (!m) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the experts' work space");
    bool ok = (m->count = cera_arena_alloc(p->arena, (size_t)experts + 1, sizeof *m->count)) &&
              (m->first = cera_arena_alloc(p->arena, (size_t)experts + 1, sizeof *m->first)) &&
              (m->active = cera_arena_alloc(p->arena, (size_t)experts, sizeof *m->active)) &&
              (m->slot_row = cera_arena_alloc(p->arena, slots, sizeof *m->slot_row)) &&
              (m->slot_of = cera_arena_alloc(p->arena, slots, sizeof *m->slot_of)) &&
              (m->out = cera_arena_alloc(p->arena, out, sizeof *m->out));
    for (int enc = 0; enc < CERA_ENC_COUNT && ok; enc++) {
        ok = (m->in[enc] = cera_arena_alloc(p->arena, (size_t)experts, sizeof *m->in[enc])) &&
             (m->mid[enc] = cera_arena_alloc(p->arena, (size_t)experts, sizeof *m->mid[enc])) &&
             (!in[enc] || (m->in_memory[enc] = cera_arena_alloc(p->arena, in[enc], 1))) &&
             (!mid[enc] || (m->mid_memory[enc] = cera_arena_alloc(p->arena, mid[enc], 1)));
    }
    return ok ? CERA_OK : cera_fail(e, CERA_ERR_MEMORY, "out of memory for the experts' work space");
}

/* ---- per-head matrices ------------------------------------------------------------------------------------------- */

typedef struct heads_task {
    cera_program *p;
    cera_cpu_op *op;
} heads_task;

/* One row: every head's slice is encoded, multiplied by the head's matrix, and stored; what is not multiplied is passed on. */
static void heads_row(void *ctx, int row, int worker) {
    heads_task *t = ctx;
    cera_program *p = t->p;
    const cera_op *op = t->op->op;
    const cera_weight *w = &p->plan->weights[op->w[0]];
    const cera_kernels *k = cera_cpu_k(p);
    cera_cpu_scratch *s = &p->scratch[worker];
    const float *in = cera_cpu_row(&p->values[op->in[0]], row);
    float *out = cera_cpu_row(&p->values[op->out[0]], row);
    cera_encoding enc = cera_kernels_encoding(w->dtype);
    for (int h = 0; h < op->p.heads.n_head; h++) {
        const float *x = in + (size_t)h * (size_t)op->p.heads.in_stride + op->p.heads.in_first;
        float *y = out + (size_t)h * (size_t)op->p.heads.out_stride + op->p.heads.out_first;
        cera_acts acts;
        cera_acts_layout(enc, (int)w->k, 1, s->scores, &acts);
        if (enc == CERA_ENC_Q8)
            k->encode_q8(x, (int)w->k, &acts, 0);
        else if (enc == CERA_ENC_BF16)
            k->f32_to_bf16(x, (int)w->k, acts.bf16);
        else
            acts.f32 = x, acts.f32_stride = (size_t)w->k;
        for (int64_t first = 0; first < w->n; first += CERA_PANEL_ROWS) {
            int n = w->n - first < CERA_PANEL_ROWS ? (int)(w->n - first) : CERA_PANEL_ROWS;
            t->op->fn[0](w->data + (size_t)h * w->matrix_bytes + (size_t)first * w->row_bytes, w->row_bytes, n, (int)w->k,
                         &acts, 0, 1, s->tile[0]);
            memcpy(y + first, s->tile[0], (size_t)n * sizeof *y);
        }
        if (op->p.heads.pass_rest) { /* the rest of the input head goes behind (or before) the product */
            int rest = op->p.heads.in_stride - (int)w->k;
            memcpy(out + (size_t)h * (size_t)op->p.heads.out_stride + op->p.heads.out_first + w->n, x + w->k,
                   (size_t)rest * sizeof *y);
        }
    }
}

void cera_cpu_run_heads(cera_program *p, cera_cpu_op *op) {
    heads_task t = {p, op};
    cera_cpu_parallel(p, p->n_rows, heads_row, &t);
    op->bytes += (double)p->plan->weights[op->op->w[0]].matrix_bytes * (double)p->plan->weights[op->op->w[0]].count;
    cera_cpu_encode_rows(p, &p->values[op->op->out[0]]);
}
