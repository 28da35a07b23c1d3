/* op_rows.c: operations that work row by row and cost little: EMBED, NORM, GATE, ROPE_KV, SHORTCONV. */
#include <math.h>
#include <string.h>
#include "backend/cpu/cpu_int.h"

typedef struct rows_task {
    cera_program *p;
    cera_cpu_op *op;
    void (*row)(cera_program *p, cera_cpu_op *op, int row, cera_cpu_scratch *s);
    int rows_each;
} rows_task;

static void rows_tasks(void *ctx, int task, int worker) {
    rows_task *t = ctx;
    int end = (task + 1) * t->rows_each;
    if (end > t->p->n_rows) end = t->p->n_rows;
    for (int r = task * t->rows_each; r < end; r++) t->row(t->p, t->op, r, &t->p->scratch[worker]);
}

/* Chunks of 8 rows: neighbouring columns of an encoding share cache lines. */
static void each_row(cera_program *p, cera_cpu_op *op, void (*row)(cera_program *, cera_cpu_op *, int, cera_cpu_scratch *)) {
    rows_task t = {p, op, row, 8};
    cera_cpu_parallel(p, (p->n_rows + t.rows_each - 1) / t.rows_each, rows_tasks, &t);
}

static void embed_row(cera_program *p, cera_cpu_op *o, int row, cera_cpu_scratch *s) {
    (void)s;
    const cera_op *op = o->op;
    const cera_weight *w = &p->plan->weights[op->w[0]];
    const cera_row *r = &p->step->rows[row];
    cera_cpu_value *out = &p->values[op->out[0]];
    float *x = cera_cpu_row(out, row);
    if (r->embedding) {
        memcpy(x, r->embedding, (size_t)out->width * sizeof *x);
    } else {
        cera_cpu_k(p)->dequantize[w->dtype](w->data + (size_t)r->token * w->row_bytes, out->width, x);
        if (op->p.embed.scale != 1)
            for (int i = 0; i < out->width; i++) x[i] *= op->p.embed.scale;
    }
    cera_cpu_emit(p, out, row, 0, out->width, x);
}

void cera_cpu_run_embed(cera_program *p, cera_cpu_op *op) {
    each_row(p, op, embed_row);
    op->bytes += (double)p->plan->weights[op->op->w[0]].row_bytes * p->n_rows;
}

static void norm_row(cera_program *p, cera_cpu_op *o, int row, cera_cpu_scratch *s) {
    const cera_op *op = o->op;
    const cera_kernels *k = cera_cpu_k(p);
    cera_cpu_value *out = &p->values[op->out[0]];
    const float *x = cera_cpu_row(&p->values[op->in[0]], row);
    const float *residual = op->in[1] >= 0 ? cera_cpu_row(&p->values[op->in[1]], row) : NULL;
    float *y = out->want_f32 ? cera_cpu_row(out, row) : s->row;
    int all = op->p.norm.n ? op->p.norm.n : out->width, groups = op->p.norm.groups, n = all / groups;
    int step =
        p->plan->weights[op->w[0]].k * p->plan->weights[op->w[0]].n == all ? n : 0; /* a weight a group, or one for all */
    for (int g = 0; g < groups; g++) {
        const float *r = residual ? residual + g * n : NULL, *w = o->vec[0] + g * step,
                    *bias = o->vec[1] ? o->vec[1] + g * step : NULL;
        if (op->p.norm.kind == CERA_NORM_RMS)
            k->rms_norm(x + g * n, w, n, op->p.norm.eps, r, y + g * n);
        else
            k->layer_norm(x + g * n, w, bias, n, op->p.norm.eps, r, y + g * n);
    }
    for (int i = all; i < out->width; i++) y[i] = x[i];
    cera_cpu_emit(p, out, row, 0, out->width, y);
}

void cera_cpu_run_norm(cera_program *p, cera_cpu_op *op) { each_row(p, op, norm_row); }

static void gate_row(cera_program *p, cera_cpu_op *o, int row, cera_cpu_scratch *s) {
    const cera_weight *w = &p->plan->weights[o->op->w[0]];
    const cera_acts *x = &p->values[o->op->in[0]].acts[cera_kernels_encoding(w->dtype)];
    o->fn[0](w->data, w->row_bytes, 1, (int)w->k, x, row, 1, s->tile[0]);
    cera_cpu_k(p)->sigmoid(s->tile[0], 1);
    p->values[o->op->out[0]].f32[row] = s->tile[0][0];
}

void cera_cpu_run_gate(cera_program *p, cera_cpu_op *op) { each_row(p, op, gate_row); }

static void rope_table_row(cera_program *p, cera_cpu_op *o, int row, cera_cpu_scratch *s) {
    (void)o, (void)s;
    for (int i = 0; i < p->plan->n_ropes; i++) {
        const cera_rope *r = &p->plan->ropes[i];
        float *cs = p->cos_sin + ((size_t)i * (size_t)p->max_rows + (size_t)row) * 2 * (size_t)p->most_pairs;
        if (r->n_rot)
            cera_cpu_k(p)->rope_table(r->inv_freq, r->n_rot / 2, p->step->rows[row].position[0], r->scale, cs,
                                      cs + p->most_pairs);
    }
}

void cera_cpu_rope_tables(cera_program *p) { each_row(p, NULL, rope_table_row); }

static void rope_kv_row(cera_program *p, cera_cpu_op *o, int row, cera_cpu_scratch *s) {
    (void)s;
    const cera_op *op = o->op;
    const cera_row *r = &p->step->rows[row];
    int group = op->p.rope_kv.group;
    const cera_kv_group *g = &p->plan->groups[group];
    const cera_cpu_group *c = &p->groups[group];
    cera_page *page = p->step->sequences[r->sequence].pages[group][r->index / CERA_PAGE_TOKENS];
    uint8_t *layer = page->memory + (size_t)op->p.rope_kv.group_layer * c->layer_bytes;
    cera_rope_kv_args a = {
        .q = cera_cpu_row(&p->values[op->in[0]], row),
        .k = cera_cpu_row(&p->values[op->in[1]], row),
        .v = cera_cpu_row(&p->values[op->in[g->v_is_k ? 1 : 2]], row), /* a V that is part of K is kept in V's own layout too */
        .q_stride = (size_t)g->d_k,
        .k_stride = (size_t)g->d_k,
        .v_stride = (size_t)g->d_v,
        .n_head = op->p.rope_kv.n_head,
        .n_head_kv = g->n_head_kv,
        .d_k = g->d_k,
        .d_v = g->d_v,
        .q_norm = o->vec[0],
        .k_norm = o->vec[1],
        .eps = op->p.rope_kv.eps,
        .q_scale = 1,
        .k_type = p->k_type,
        .v_type = p->v_type,
        .k_page = layer,
        .v_page = layer + (size_t)g->n_head_kv * c->k_head_bytes,
        .slot = r->index % CERA_PAGE_TOKENS};
    if (op->p.rope_kv.rope >= 0 && p->plan->ropes[op->p.rope_kv.rope].n_rot) {
        const cera_rope *rope = &p->plan->ropes[op->p.rope_kv.rope];
        a.cos = p->cos_sin + ((size_t)op->p.rope_kv.rope * (size_t)p->max_rows + (size_t)row) * 2 * (size_t)p->most_pairs;
        a.sin = a.cos + p->most_pairs;
        a.n_rot = rope->n_rot;
        a.rot_first = rope->rot_first;
        a.pairs = rope->neox ? CERA_ROPE_NEOX : CERA_ROPE_INTERLEAVED;
    }
    if (op->p.rope_kv.temp_scale != 0)
        a.q_scale = 1 + op->p.rope_kv.temp_scale * logf(1 + (float)(r->position[0] / op->p.rope_kv.temp_floor));
    cera_cpu_k(p)->rope_kv(&a);
}

void cera_cpu_run_rope_kv(cera_program *p, cera_cpu_op *op) {
    const cera_cpu_group *c = &p->groups[op->op->p.rope_kv.group];
    each_row(p, op, rope_kv_row);
    op->bytes += (double)c->layer_bytes / CERA_PAGE_TOKENS * p->n_rows;
}

/* Token by token within a sequence; sequences are spread over threads. */
static void shortconv_run(void *ctx, int task, int worker) {
    rows_task *t = ctx;
    (void)worker;
    cera_program *p = t->p;
    const cera_op *op = t->op->op;
    const cera_cpu_run *run = &p->runs[task];
    cera_cpu_value *out = &p->values[op->out[0]];
    float *state = p->step->sequences[run->sequence].state_out->memory +
                   (size_t)op->p.shortconv.state_layer * (size_t)p->plan->state_width;
    for (int r = run->first; r < run->first + run->n; r++)
        cera_cpu_k(p)->shortconv(cera_cpu_row(&p->values[op->in[0]], r), t->op->vec[0], out->width, op->p.shortconv.l, state,
                                 state, cera_cpu_row(out, r));
}

void cera_cpu_run_shortconv(cera_program *p, cera_cpu_op *op) {
    rows_task t = {.p = p, .op = op};
    cera_cpu_parallel(p, p->n_runs, shortconv_run, &t);
    cera_cpu_encode_rows(p, &p->values[op->op->out[0]]);
}
