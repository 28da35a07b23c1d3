/* cpu_step.c: runs a compiled program for one step, operation after operation, and the helpers that operations share for
 * spreading work and storing values. */
#include <assert.h>
#include <string.h>
#include <time.h>
#include "backend/cpu/cpu_int.h"

void cera_cpu_parallel(cera_program *p, int n_tasks, cera_pool_fn fn, void *ctx) {
    if (n_tasks == 1)
        fn(ctx, 0, 0);
    else
        cera_pool_run(p->backend->pool, n_tasks, fn, ctx);
}

static void encode(const cera_program *p, cera_cpu_value *v, int row, int first, int n, const float *data) {
    const cera_kernels *k = cera_cpu_k(p);
    if (v->want[CERA_ENC_Q8]) {
        cera_acts part = cera_acts_from(CERA_ENC_Q8, &v->acts[CERA_ENC_Q8], first);
        k->encode_q8(data, n, &part, row);
    }
    if (v->want[CERA_ENC_BF16]) k->f32_to_bf16(data, n, v->acts[CERA_ENC_BF16].bf16 + (size_t)row * (size_t)v->width + first);
}

void cera_cpu_emit(cera_program *p, cera_cpu_value *v, int row, int first, int n, const float *data) {
    if (v->want_f32) {
        float *to = cera_cpu_row(v, row) + first;
        if (to != data) memcpy(to, data, (size_t)n * sizeof *to);
    }
    encode(p, v, row, first, n, data);
}

typedef struct encode_task {
    cera_program *p;
    cera_cpu_value *v;
    int rows_each;
} encode_task;

static void encode_rows(void *ctx, int task, int worker) {
    encode_task *t = ctx;
    (void)worker;
    int end = (task + 1) * t->rows_each;
    if (end > t->p->n_rows) end = t->p->n_rows;
    for (int r = task * t->rows_each; r < end; r++) encode(t->p, t->v, r, 0, t->v->width, cera_cpu_row(t->v, r));
}

void cera_cpu_encode_rows(cera_program *p, cera_cpu_value *v) {
    if (!v->want[CERA_ENC_Q8] && !v->want[CERA_ENC_BF16]) return;
    encode_task t = {p, v, 8};
    cera_cpu_parallel(p, (p->n_rows + t.rows_each - 1) / t.rows_each, encode_rows, &t);
}

static cera_status check_step(const cera_program *p, const cera_step *s, cera_error *e) {
    const cera_plan *plan = p->plan;
    if (s->n_rows < 1 || s->n_rows > p->max_rows)
        return cera_fail(e, CERA_ERR_ARGUMENT, "a step of %d rows; this program takes 1 to %d", s->n_rows, p->max_rows);
    for (int i = 0; i < s->n_rows; i++) {
        const cera_row *r = &s->rows[i];
        if (r->ticket >= 0)
            return cera_fail(e, CERA_ERR_UNSUPPORTED, "row %d: rows of earlier tickets are not fed back on the CPU", i);
        if (r->adapter >= 0) return cera_fail(e, CERA_ERR_UNSUPPORTED, "row %d: no adapters are loaded", i);
        if (!r->embedding && (r->token < 0 || r->token >= plan->n_vocab))
            return cera_fail(e, CERA_ERR_ARGUMENT, "row %d: token %d; the vocabulary has %d", i, r->token, plan->n_vocab);
        if (r->sequence < 0 || r->sequence >= s->n_sequences)
            return cera_fail(e, CERA_ERR_ARGUMENT, "row %d: sequence %d of %d", i, r->sequence, s->n_sequences);
        if (r->index < 0 || r->visible_end <= r->index || r->position[0] < 0)
            return cera_fail(e, CERA_ERR_ARGUMENT, "row %d: index %d, visible end %d, position %d", i, r->index, r->visible_end,
                             r->position[0]);
        const cera_row *before = i ? &s->rows[i - 1] : NULL;
        if (before && before->sequence == r->sequence && before->index + 1 != r->index)
            return cera_fail(e, CERA_ERR_ARGUMENT, "row %d: index %d does not follow %d of its sequence", i, r->index,
                             before->index);
    }
    return CERA_OK;
}

/* Rows of a sequence stand together; a sequence appears once. */
static cera_status find_runs(cera_program *p, const cera_step *s, cera_error *e) {
    p->n_runs = 0;
    for (int i = 0; i < s->n_rows; i++) {
        cera_cpu_run *last = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;
        if (last && last->sequence == s->rows[i].sequence) {
            last->n++;
            continue;
        }
        for (int j = 0; j < p->n_runs; j++)
            if (p->runs[j].sequence == s->rows[i].sequence)
                return cera_fail(e, CERA_ERR_ARGUMENT, "row %d: the rows of sequence %d do not stand together", i,
                                 s->rows[i].sequence);
        p->runs[p->n_runs++] = (cera_cpu_run){i, 1, s->rows[i].sequence};
    }
    return CERA_OK;
}

/* Lays the encodings of every value out for this many rows. */
static void lay_out(cera_program *p) {
    for (int i = 0; i < p->plan->n_values; i++) {
        cera_cpu_value *v = &p->values[i];
        for (int enc = 0; enc < CERA_ENC_COUNT; enc++)
            if (v->want[enc] && enc != CERA_ENC_F32)
                cera_acts_layout((cera_encoding)enc, v->width, p->n_rows, p->buffers[v->enc_buffer[enc]].memory, &v->acts[enc]);
        if (v->want_f32)
            v->acts[CERA_ENC_F32] = (cera_acts){.k = v->width, .n = p->n_rows, .f32 = v->f32, .f32_stride = (size_t)v->width};
    }
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sequences whose state does not change (no layer has state) need no copy; others start state_out from state_in. */
static void start_states(cera_program *p) {
    size_t bytes = (size_t)p->plan->state_layers * (size_t)p->plan->state_width * sizeof(float);
    if (!bytes) return;
    for (int i = 0; i < p->n_runs; i++) {
        const cera_sequence_view *s = &p->step->sequences[p->runs[i].sequence];
        if (s->state_in)
            memcpy(s->state_out->memory, s->state_in->memory, bytes);
        else
            memset(s->state_out->memory, 0, bytes);
    }
}

cera_status cera_program_submit(cera_program *p, const cera_step *step, int64_t *ticket, cera_error *e) {
    CERA_TRY(check_step(p, step, e));
    CERA_TRY(find_runs(p, step, e));
    p->step = step;
    p->n_rows = step->n_rows;
    cera_alloc_guard_enter();
    lay_out(p);
    start_states(p);
    cera_cpu_rope_tables(p);
    cera_status status = CERA_OK;
    for (int i = 0; i < p->plan->n_ops && status == CERA_OK; i++) {
        if (step->cancel && atomic_load_explicit(step->cancel, memory_order_relaxed))
            status = CERA_ERR_CANCELLED;
        else {
            double start = p->profiling ? now_s() : 0;
            p->ops[i].run(p, &p->ops[i]);
            p->ops[i].runs++;
            if (p->profiling) p->ops[i].seconds += now_s() - start;
        }
    }
    cera_alloc_guard_leave();
    p->step = NULL;
    if (status != CERA_OK) return cera_fail(e, status, "cancelled; the state is as before the step");
    if (ticket) *ticket = p->ticket;
    p->ticket++;
    return CERA_OK;
}

cera_status cera_program_poll(cera_program *p, int64_t ticket, bool *done, cera_error *e) {
    if (ticket < 0 || ticket >= p->ticket) return cera_fail(e, CERA_ERR_ARGUMENT, "no step has ticket %lld", (long long)ticket);
    *done = true;
    return CERA_OK;
}

cera_status cera_program_wait(cera_program *p, int64_t ticket, cera_error *e) {
    bool done;
    return cera_program_poll(p, ticket, &done, e);
}
