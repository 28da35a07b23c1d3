/* op_matmul.c: MATMUL and GLU: products of encoded rows with one to three weight matrices, spread over threads by panels of 32
 * weight rows, with everything that follows a product (bias, activation, gate, residual) done on the tile while it is in L1.
 * The inner product is a kernel (kernels/): no arithmetic on weights here.
 *
 * GEMV is n = 1 of the same loop; no split over K, none that depends on the number of rows or threads. */
#include "backend/cpu/cpu_int.h"

typedef struct matmul_task {
    cera_program *p;
    cera_cpu_op *op;
    int n_panels[3], total, panels_each;
} matmul_task;

static int panels_of(const cera_weight *w) { return (int)((w->n + CERA_PANEL_ROWS - 1) / CERA_PANEL_ROWS); }

static const cera_acts *input_acts(const cera_program *p, cera_ref in, const cera_weight *w) {
    return &p->values[in].acts[cera_kernels_encoding(w->dtype)];
}

/* Panels a task takes: about eight tasks a thread, so that a thread that is held up costs little, but no more. */
static int split(matmul_task *t) {
    int tasks = cera_pool_size(t->p->backend->pool) * 8;
    t->panels_each = (t->total + tasks - 1) / tasks;
    if (t->panels_each < 1) t->panels_each = 1;
    return (t->total + t->panels_each - 1) / t->panels_each;
}

void cera_cpu_tile_bias(float *tile, int n_cols, int n, const float *bias) {
    for (int c = 0; c < n_cols; c++)
        for (int r = 0; r < n; r++) tile[c * CERA_PANEL_ROWS + r] += bias[r];
}

static void panel_of_weight(cera_program *p, const cera_weight *w, cera_matmul_fn fn, const cera_acts *x, int panel, int c0,
                            int n_cols, float *tile) {
    (void)p;
    int64_t row = (int64_t)panel * CERA_PANEL_ROWS;
    int rows = w->n - row < CERA_PANEL_ROWS ? (int)(w->n - row) : CERA_PANEL_ROWS;
    fn(w->data + (size_t)row * w->row_bytes, w->row_bytes, rows, (int)w->k, x, c0, n_cols, tile);
}

/* out0 = in1 + scale * rowscale(in2) * act(product + bias), each part where the operation has it. */
static void finish_columns(cera_program *p, const cera_cpu_op *o, int which, int first, int n, int c0, int n_cols,
                           float *tile) {
    const cera_op *op = o->op;
    const cera_kernels *k = cera_cpu_k(p);
    cera_cpu_value *out = &p->values[op->out[which]];
    if (o->vec[3 + which]) cera_cpu_tile_bias(tile, n_cols, n, o->vec[3 + which] + first);
    for (int c = 0; c < n_cols; c++) {
        float *t = tile + c * CERA_PANEL_ROWS;
        if (which == 0 && op->p.matmul.act != CERA_GLU_NONE) k->activate((cera_activation)op->p.matmul.act, t, n, t);
        if (which == 0 && op->in[2] >= 0) {
            float gate = p->values[op->in[2]].f32[c0 + c];
            for (int r = 0; r < n; r++) t[r] *= gate;
        }
        if (which == 0 && op->in[1] >= 0) {
            const float *x = cera_cpu_row(&p->values[op->in[1]], c0 + c) + first;
            float scale = op->p.matmul.scale;
            for (int r = 0; r < n; r++) t[r] = x[r] + scale * t[r];
        }
        cera_cpu_emit(p, out, c0 + c, first, n, t);
    }
}

static void matmul_panels(void *ctx, int task, int worker) {
    matmul_task *t = ctx;
    cera_program *p = t->p;
    const cera_op *op = t->op->op;
    int end = (task + 1) * t->panels_each;
    if (end > t->total) end = t->total;
    for (int panel = task * t->panels_each; panel < end; panel++) {
        int which = 0, local = panel;
        while (local >= t->n_panels[which]) local -= t->n_panels[which++];
        const cera_weight *w = &p->plan->weights[op->w[which]];
        const cera_acts *x = input_acts(p, op->in[0], w);
        int first = local * CERA_PANEL_ROWS, n = w->n - first < CERA_PANEL_ROWS ? (int)(w->n - first) : CERA_PANEL_ROWS;
        for (int c0 = 0; c0 < p->n_rows; c0 += CERA_MATMUL_COLUMNS) {
            int n_cols = p->n_rows - c0 < CERA_MATMUL_COLUMNS ? p->n_rows - c0 : CERA_MATMUL_COLUMNS;
            panel_of_weight(p, w, t->op->fn[which], x, local, c0, n_cols, p->scratch[worker].tile[0]);
            finish_columns(p, t->op, which, first, n, c0, n_cols, p->scratch[worker].tile[0]);
        }
    }
}

static void count_work(cera_program *p, cera_cpu_op *op, int n_weights) {
    for (int i = 0; i < n_weights; i++) {
        const cera_weight *w = &p->plan->weights[op->op->w[i]];
        op->bytes += (double)w->matrix_bytes;
        op->macs += (double)w->k * (double)w->n * p->n_rows;
    }
}

void cera_cpu_run_matmul(cera_program *p, cera_cpu_op *op) {
    matmul_task t = {.p = p, .op = op};
    for (int i = 0; i < op->op->n_out; i++) t.total += t.n_panels[i] = panels_of(&p->plan->weights[op->op->w[i]]);
    cera_cpu_parallel(p, split(&t), matmul_panels, &t);
    count_work(p, op, op->op->n_out);
}

static void glu_panels(void *ctx, int task, int worker) {
    matmul_task *t = ctx;
    cera_program *p = t->p;
    const cera_op *op = t->op->op;
    const cera_weight *gate = &p->plan->weights[op->w[0]], *up = &p->plan->weights[op->w[1]];
    const cera_acts *xg = input_acts(p, op->in[0], gate), *xu = input_acts(p, op->in[0], up);
    cera_cpu_value *out = &p->values[op->out[0]];
    float *tg = p->scratch[worker].tile[0], *tu = p->scratch[worker].tile[1];
    int end = (task + 1) * t->panels_each;
    if (end > t->total) end = t->total;
    for (int panel = task * t->panels_each; panel < end; panel++) {
        int first = panel * CERA_PANEL_ROWS, n = gate->n - first < CERA_PANEL_ROWS ? (int)(gate->n - first) : CERA_PANEL_ROWS;
        for (int c0 = 0; c0 < p->n_rows; c0 += CERA_MATMUL_COLUMNS) {
            int n_cols = p->n_rows - c0 < CERA_MATMUL_COLUMNS ? p->n_rows - c0 : CERA_MATMUL_COLUMNS;
            panel_of_weight(p, gate, t->op->fn[0], xg, panel, c0, n_cols, tg);
            panel_of_weight(p, up, t->op->fn[1], xu, panel, c0, n_cols, tu);
            if (t->op->vec[3]) cera_cpu_tile_bias(tg, n_cols, n, t->op->vec[3] + first);
            if (t->op->vec[4]) cera_cpu_tile_bias(tu, n_cols, n, t->op->vec[4] + first);
            for (int c = 0; c < n_cols; c++) {
                float *g = tg + c * CERA_PANEL_ROWS;
                cera_cpu_k(p)->glu((cera_activation)op->p.glu.act, g, tu + c * CERA_PANEL_ROWS, n, g);
                cera_cpu_emit(p, out, c0 + c, first, n, g);
            }
        }
    }
}

void cera_cpu_run_glu(cera_program *p, cera_cpu_op *op) {
    matmul_task t = {.p = p, .op = op};
    t.total = panels_of(&p->plan->weights[op->op->w[0]]);
    cera_cpu_parallel(p, split(&t), glu_panels, &t);
    count_work(p, op, 2);
}
