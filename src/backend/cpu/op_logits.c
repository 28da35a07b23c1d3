/* op_logits.c: LOGITS. Rows that want logits are gathered and multiplied by the vocabulary matrix a piece at a time, so that
 * the logits of a long prompt are never all in memory; each piece goes to the step's callback. */
#include "backend/cpu/cpu_int.h"

typedef struct logits_task {
    cera_program *p;
    cera_cpu_op *op;
    cera_acts x;
    const int32_t *rows;
    int n, panels, panels_each;
} logits_task;

static void encode_outputs(void *ctx, int task, int worker) {
    logits_task *t = ctx;
    (void)worker;
    const cera_cpu_value *v = &t->p->values[t->op->op->in[0]];
    const float *x = cera_cpu_row(v, t->rows[task]);
    switch (cera_kernels_encoding(t->p->plan->weights[t->op->op->w[0]].dtype)) {
    case CERA_ENC_Q8: cera_cpu_k(t->p)->encode_q8(x, v->width, &t->x, task); break;
    case CERA_ENC_BF16: cera_cpu_k(t->p)->f32_to_bf16(x, v->width, t->x.bf16 + (size_t)task * (size_t)v->width); break;
    default:
        for (int i = 0; i < v->width; i++) ((float *)t->x.f32)[(size_t)task * t->x.f32_stride + (size_t)i] = x[i];
    }
}

static void logits_panels(void *ctx, int task, int worker) {
    logits_task *t = ctx;
    cera_program *p = t->p;
    const cera_op *op = t->op->op;
    const cera_weight *w = &p->plan->weights[op->w[0]];
    float *tile = p->scratch[worker].tile[0];
    int end = (task + 1) * t->panels_each;
    if (end > t->panels) end = t->panels;
    for (int panel = task * t->panels_each; panel < end; panel++) {
        int64_t first = (int64_t)panel * CERA_PANEL_ROWS;
        int n = w->n - first < CERA_PANEL_ROWS ? (int)(w->n - first) : CERA_PANEL_ROWS;
        t->op->fn[0](w->data + (size_t)first * w->row_bytes, w->row_bytes, n, (int)w->k, &t->x, 0, t->n, tile);
        if (t->op->vec[3]) cera_cpu_tile_bias(tile, t->n, n, t->op->vec[3] + first);
        for (int c = 0; c < t->n; c++) {
            float *to = p->logits + (size_t)c * (size_t)p->plan->n_vocab + first;
            for (int r = 0; r < n; r++) to[r] = tile[c * CERA_PANEL_ROWS + r] * op->p.logits.scale;
            if (op->p.logits.softcap != 0) cera_cpu_k(p)->softcap(to, n, op->p.logits.softcap);
        }
    }
}

static void piece(cera_program *p, cera_cpu_op *op, const int32_t *rows, int n) {
    const cera_weight *w = &p->plan->weights[op->op->w[0]];
    logits_task t = {.p = p, .op = op, .rows = rows, .n = n, .panels = (int)((w->n + CERA_PANEL_ROWS - 1) / CERA_PANEL_ROWS)};
    cera_acts_layout(cera_kernels_encoding(w->dtype), (int)w->k, n, p->output_memory, &t.x);
    cera_cpu_parallel(p, n, encode_outputs, &t);
    int tasks = cera_pool_size(p->backend->pool) * 8;
    t.panels_each = (t.panels + tasks - 1) / tasks;
    cera_cpu_parallel(p, (t.panels + t.panels_each - 1) / t.panels_each, logits_panels, &t);
    op->bytes += (double)w->matrix_bytes;
    op->macs += (double)w->k * (double)w->n * n;
    p->step->on_logits(p->step->ctx, rows, n, p->logits);
}

void cera_cpu_run_logits(cera_program *p, cera_cpu_op *op) {
    const cera_step *s = p->step;
    int n = 0;
    for (int i = 0; i < p->n_rows; i++)
        if (s->rows[i].want & CERA_WANT_LOGITS) p->output_rows[n++] = i;
    for (int i = 0; s->on_logits && i < n; i += p->max_outputs)
        piece(p, op, p->output_rows + i, n - i < p->max_outputs ? n - i : p->max_outputs);
    for (int i = 0; s->on_hidden && i < p->n_rows; i++) {
        int32_t row = i;
        if (s->rows[i].want & CERA_WANT_HIDDEN) s->on_hidden(s->ctx, &row, 1, cera_cpu_row(&p->values[op->op->in[0]], i));
    }
}
