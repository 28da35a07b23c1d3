/* cpu_compile.c: from a plan to a program. For every value: who reads it and in which encoding, how long it lives, and a buffer
 * that it shares with values that live at other times. For every operation: its kernels and f32 copies of its vectors. Nothing
 * is allocated after this but pages and states. */
#include <stdlib.h>
#include <string.h>
#include "backend/cpu/cpu_int.h"

static void (*const runners[CERA_OP_COUNT])(cera_program *, cera_cpu_op *) = {
    [CERA_OP_EMBED] = cera_cpu_run_embed,     [CERA_OP_NORM] = cera_cpu_run_norm,
    [CERA_OP_MATMUL] = cera_cpu_run_matmul,   [CERA_OP_GLU] = cera_cpu_run_glu,
    [CERA_OP_ROPE_KV] = cera_cpu_run_rope_kv, [CERA_OP_ATTEND] = cera_cpu_run_attend,
    [CERA_OP_HEADS] = cera_cpu_run_heads,     [CERA_OP_SHORTCONV] = cera_cpu_run_shortconv,
    [CERA_OP_ROUTE] = cera_cpu_run_route,     [CERA_OP_EXPERTS] = cera_cpu_run_experts,
    [CERA_OP_GATE] = cera_cpu_run_gate,       [CERA_OP_LOGITS] = cera_cpu_run_logits};

/* Which weights of an operation are matrices for a matmul kernel; the others are vectors, used as f32. */
static int n_matrices(const cera_op *op) {
    switch (op->kind) {
    case CERA_OP_MATMUL: return op->n_out;
    case CERA_OP_GLU: return 2;
    case CERA_OP_EXPERTS: return 3;
    case CERA_OP_ROUTE:
    case CERA_OP_GATE:
    case CERA_OP_HEADS:
    case CERA_OP_LOGITS: return 1;
    default: return 0;
    }
}

/* Inputs that feed a matmul kernel (always in[0]); the others are read as f32 rows. LOGITS encodes the rows it gathers itself,
 * HEADS slices of rows. */
static bool reads_encoded(const cera_op *op, int input) {
    return input == 0 && n_matrices(op) > 0 && op->kind != CERA_OP_LOGITS && op->kind != CERA_OP_HEADS;
}

static void note_readers(cera_program *p) {
    for (int i = 0; i < p->plan->n_ops; i++) {
        const cera_op *op = &p->plan->ops[i];
        for (int in = 0; in < 3; in++) {
            if (op->in[in] < 0) continue;
            cera_cpu_value *v = &p->values[op->in[in]];
            if (!reads_encoded(op, in)) v->want_f32 = true;
            for (int w = 0; reads_encoded(op, in) && w < n_matrices(op); w++) {
                if (op->kind == CERA_OP_EXPERTS && w == 2) continue; /* down reads what the experts made */
                v->want[cera_kernels_encoding(p->plan->weights[op->w[w]].dtype)] = true;
            }
        }
        /* These write f32 rows and encode afterwards, or rewrite a value in place. */
        bool rows = op->kind == CERA_OP_EMBED || op->kind == CERA_OP_ATTEND || op->kind == CERA_OP_SHORTCONV ||
                    op->kind == CERA_OP_HEADS || op->kind == CERA_OP_ROPE_KV || op->kind == CERA_OP_ROUTE ||
                    op->kind == CERA_OP_GATE;
        for (int o = 0; o < op->n_out; o++)
            if (rows) p->values[op->out[o]].want_f32 = true;
    }
    for (int i = 0; i < p->plan->n_values; i++) {
        cera_cpu_value *v = &p->values[i];
        if (v->want[CERA_ENC_F32]) v->want_f32 = true;
        if (v->want_f32) v->want[CERA_ENC_F32] = true;
        /* A value that is encoded and whose width is no multiple of 32 could not be emitted in pieces; none is: its readers'
         * rows are blocks. */
    }
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static int last_read(const cera_plan *plan, int value) {
    int last = -1;
    for (int i = 0; i < plan->n_ops; i++)
        for (int in = 0; in < 3; in++)
            if (plan->ops[i].in[in] == value) last = i;
    return last;
}

/* A free buffer of about the size, else a new one. */
static int take_buffer(cera_program *p, size_t size, int free_after) {
    int best = -1;
    for (int i = 0; i < p->n_buffers; i++) {
        const cera_cpu_buffer *b = &p->buffers[i];
        if (b->free_after >= 0) continue;
        if (best < 0 || labs((long)b->size - (long)size) < labs((long)p->buffers[best].size - (long)size)) best = i;
    }
    if (best < 0) best = p->n_buffers++;
    cera_cpu_buffer *b = &p->buffers[best];
    if (b->size < size) b->size = size;
    b->free_after = free_after;
    return best;
}

/* Operations whose output may take the place of an input: element by element, or row by row from the same row. */
static cera_ref replaceable(const cera_op *op) {
    switch (op->kind) {
    case CERA_OP_ROPE_KV: return op->in[0]; /* always in place */
    case CERA_OP_MATMUL:
    case CERA_OP_NORM: return op->in[1];
    case CERA_OP_EXPERTS: return op->in[2];
    default: return CERA_NO_REF;
    }
}

static void place_output(cera_program *p, int at, const cera_op *op, int which) {
    cera_cpu_value *v = &p->values[op->out[which]];
    int last = last_read(p->plan, op->out[which]);
    if (last < at) last = at; /* nobody reads it */
    cera_ref in = which == 0 ? replaceable(op) : CERA_NO_REF;
    v->f32_buffer = v->enc_buffer[CERA_ENC_Q8] = v->enc_buffer[CERA_ENC_BF16] = -1;
    if (v->want_f32) {
        const cera_cpu_value *from = in >= 0 ? &p->values[in] : NULL;
        if (from && from->width == v->width && from->f32_buffer >= 0 && last_read(p->plan, in) == at) {
            v->f32_buffer = from->f32_buffer;
            p->buffers[v->f32_buffer].free_after = last;
        } else {
            v->f32_buffer = take_buffer(p, (size_t)p->max_rows * (size_t)v->width * sizeof(float), last);
        }
    }
    for (int enc = 0; enc < CERA_ENC_COUNT; enc++)
        if (enc != CERA_ENC_F32 && v->want[enc])
            v->enc_buffer[enc] =
                take_buffer(p, cera_acts_layout((cera_encoding)enc, v->width, p->max_rows, NULL, &v->acts[enc]), last);
}

static cera_status place_values(cera_program *p, cera_error *e) {
    for (int i = 0; i < p->plan->n_ops; i++) {
        const cera_op *op = &p->plan->ops[i];
        for (int o = 0; o < op->n_out; o++) place_output(p, i, op, o);
        for (int b = 0; b < p->n_buffers; b++)
            if (p->buffers[b].free_after == i) p->buffers[b].free_after = -1;
    }
    for (int b = 0; b < p->n_buffers; b++) {
        p->buffers[b].memory = cera_arena_alloc(p->arena, p->buffers[b].size, 1);
        if (!p->buffers[b].memory)
            return cera_fail(e, CERA_ERR_MEMORY, "out of memory for %zu bytes of work space; try a smaller batch",
                             p->buffers[b].size);
    }
    for (int i = 0; i < p->plan->n_values; i++)
        if (p->values[i].f32_buffer >= 0) p->values[i].f32 = (float *)(void *)p->buffers[p->values[i].f32_buffer].memory;
    return CERA_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* A vector as aligned f32: the file's own memory where it is that already. */
static const float *as_vector(cera_program *p, cera_weight_ref ref, cera_status *status, cera_error *e) {
    if (ref < 0) return NULL;
    const cera_weight *w = &p->plan->weights[ref];
    if (w->dtype == CERA_F32 && (uintptr_t)w->data % 4 == 0) return (const float *)(const void *)w->data;
    float *copy = cera_arena_alloc(p->arena, (size_t)w->k * (size_t)w->n * (size_t)w->count, sizeof *copy);
    if (!copy) {
        *status = cera_fail(e, CERA_ERR_MEMORY, "out of memory for tensor %s", w->name);
        return NULL;
    }
    for (int64_t r = 0; r < w->n * w->count; r++)
        cera_cpu_k(p)->dequantize[w->dtype](w->data + (size_t)r * w->row_bytes, (int)w->k, copy + (size_t)r * (size_t)w->k);
    return copy;
}

static cera_status bind_op(cera_program *p, cera_cpu_op *o, const cera_op *op, cera_error *e) {
    o->op = op;
    o->run = runners[op->kind];
    int matrices = n_matrices(op);
    cera_status status = CERA_OK;
    for (int i = 0; i < 3; i++) {
        if (op->w[i] >= 0 && i < matrices) {
            const cera_weight *w = &p->plan->weights[op->w[i]];
            o->fn[i] = cera_cpu_k(p)->matmul[w->dtype];
            if (!o->fn[i])
                return cera_fail(e, CERA_ERR_UNSUPPORTED, "tensor %s: no kernel for type %s", w->name,
                                 cera_dtype_get(w->dtype)->name);
        } else if (op->w[i] >= 0 && op->kind != CERA_OP_EMBED) {
            o->vec[i] = as_vector(p, op->w[i], &status, e);
        }
        o->vec[3 + i] = as_vector(p, op->bias[i], &status, e);
    }
    return status;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static void survey_plan(cera_program *p) {
    for (int i = 0; i < p->plan->n_values; i++) {
        p->values[i].width = p->plan->value_width[i];
        if (p->values[i].width > p->widest) p->widest = p->values[i].width;
    }
    for (int i = 0; i < p->plan->n_groups; i++) {
        const cera_kv_group *g = &p->plan->groups[i];
        cera_cpu_group *c = &p->groups[i];
        c->k_head_bytes = CERA_PAGE_TOKENS * (size_t)g->d_k * cera_kv_type_bytes(p->k_type);
        c->v_head_bytes = CERA_PAGE_TOKENS * (size_t)g->d_v * cera_kv_type_bytes(p->v_type);
        c->layer_bytes = (size_t)g->n_head_kv * (c->k_head_bytes + c->v_head_bytes);
        c->page_bytes = c->layer_bytes * (size_t)g->n_layers;
        if (g->d_k > p->widest_k) p->widest_k = g->d_k;
        if (g->d_v > p->widest_v) p->widest_v = g->d_v;
    }
    for (int i = 0; i < p->plan->n_ropes; i++)
        if (p->plan->ropes[i].n_rot / 2 > p->most_pairs) p->most_pairs = p->plan->ropes[i].n_rot / 2;
    for (int i = 0; i < p->plan->n_ops; i++) {
        const cera_op *op = &p->plan->ops[i];
        if (op->kind == CERA_OP_ATTEND && op->p.attend.n_head > p->most_heads) p->most_heads = op->p.attend.n_head;
    }
    p->most_pairs = (p->most_pairs + 15) / 16 * 16; /* rows of the tables stay aligned */
}

static cera_status check_heads(const cera_program *p, cera_error *e) {
    for (int i = 0; i < p->plan->n_ops; i++) {
        const cera_op *op = &p->plan->ops[i];
        if (op->kind != CERA_OP_ATTEND) continue;
        const cera_kv_group *g = &p->plan->groups[op->p.attend.group];
        if (op->p.attend.n_head / g->n_head_kv > CERA_ATTEND_MAX_Q)
            return cera_fail(e, CERA_ERR_UNSUPPORTED, "layer %d: %d query heads share a KV head; at most %d", op->layer,
                             op->p.attend.n_head / g->n_head_kv, CERA_ATTEND_MAX_Q);
        if (g->d_k > CERA_MAX_HEAD_DIM || g->d_v > CERA_MAX_HEAD_DIM || g->d_k % 2)
            return cera_fail(e, CERA_ERR_UNSUPPORTED, "head size %d (values %d); it must be even and at most %d", g->d_k,
                             g->d_v, CERA_MAX_HEAD_DIM);
    }
    return CERA_OK;
}

enum { PARTIAL_BYTES = 4 << 20, LOGITS_BYTES = 8 << 20 };

static cera_status work_memory(cera_program *p, cera_error *e) {
    int threads = cera_pool_size(p->backend->pool);
    bool ok = (p->scratch = cera_arena_alloc(p->arena, (size_t)threads, sizeof *p->scratch)) != NULL;
    for (int i = 0; i < threads && ok; i++) {
        cera_cpu_scratch *s = &p->scratch[i];
        ok = (s->tile[0] = cera_arena_alloc(p->arena, CERA_MATMUL_COLUMNS * CERA_PANEL_ROWS, sizeof(float))) &&
             (s->tile[1] = cera_arena_alloc(p->arena, CERA_MATMUL_COLUMNS * CERA_PANEL_ROWS, sizeof(float))) &&
             (s->row = cera_arena_alloc(p->arena, (size_t)p->widest, sizeof(float))) &&
             (s->scores = cera_arena_alloc(p->arena, CERA_ATTEND_MAX_Q * CERA_SEGMENT_TOKENS, sizeof(float))) &&
             (s->q = cera_arena_alloc(p->arena, CERA_ATTEND_MAX_Q * (size_t)(p->widest_k + 16), sizeof(float))) &&
             (s->o = cera_arena_alloc(p->arena, 2 * CERA_ATTEND_MAX_Q * (size_t)(p->widest_v + 16), sizeof(float)));
    }
    size_t one = (size_t)p->most_heads * (size_t)(p->widest_v + 2) * sizeof(float);
    p->partial_slots = one ? PARTIAL_BYTES / one : 1;
    if (p->partial_slots < 1) p->partial_slots = 1;
    if (p->partial_slots > 256) p->partial_slots = 256;
    ok = ok && (p->zeros = cera_arena_alloc(p->arena, (size_t)p->widest_v + 16, sizeof *p->zeros)) &&
         (p->partials = cera_arena_alloc(p->arena, p->partial_slots + 1, one)) &&
         (p->cos_sin = cera_arena_alloc(p->arena, (size_t)p->plan->n_ropes * (size_t)p->max_rows,
                                        2 * (size_t)p->most_pairs * sizeof(float))) &&
         (p->runs = cera_arena_alloc(p->arena, (size_t)p->max_rows, sizeof *p->runs)) &&
         (p->output_rows = cera_arena_alloc(p->arena, (size_t)p->max_rows, sizeof *p->output_rows)) &&
         (p->logits = cera_arena_alloc(p->arena, (size_t)p->max_outputs * (size_t)p->plan->n_vocab, sizeof(float)));
    size_t outputs = 0;
    for (int enc = 0; enc < CERA_ENC_COUNT; enc++) {
        cera_acts probe;
        size_t n = cera_acts_layout((cera_encoding)enc, p->plan->n_embd, p->max_outputs, NULL, &probe);
        if (n > outputs) outputs = n;
    }
    ok = ok && (p->output_memory = cera_arena_alloc(p->arena, outputs, 1));
    return ok ? CERA_OK
              : cera_fail(e, CERA_ERR_MEMORY, "out of memory for the work space of %d rows; try a smaller batch", p->max_rows);
}

static cera_kv_type page_type(const cera_backend *b, cera_cache_type t) {
    if (t != CERA_CACHE_AUTO) return (cera_kv_type)t;
    return b->k.tier == CERA_TIER_AVX512BF16 || b->k.tier == CERA_TIER_AMX ? CERA_KV_BF16 : CERA_KV_F16;
}

static cera_status compile(cera_program *p, const cera_compile_options *o, cera_error *e) {
    const cera_plan *plan = p->plan;
    p->k_type = page_type(p->backend, o->k_type);
    p->v_type = page_type(p->backend, o->v_type);
    p->max_rows = o->max_rows > 0 ? o->max_rows : 512;
    p->max_outputs = o->max_outputs > 0 ? o->max_outputs : (int)(LOGITS_BYTES / ((int64_t)plan->n_vocab * 4));
    if (p->max_outputs > p->max_rows) p->max_outputs = p->max_rows;
    if (p->max_outputs > CERA_MATMUL_COLUMNS) p->max_outputs = CERA_MATMUL_COLUMNS;
    if (p->max_outputs < 1) p->max_outputs = 1;
    p->groups = cera_arena_alloc(p->arena, (size_t)plan->n_groups, sizeof *p->groups);
    p->values = cera_arena_alloc(p->arena, (size_t)plan->n_values, sizeof *p->values);
    p->buffers = cera_arena_alloc(p->arena, (size_t)plan->n_values * 3, sizeof *p->buffers);
    p->ops = cera_arena_alloc(p->arena, (size_t)plan->n_ops, sizeof *p->ops);
    if (!p->groups || !p->values || !p->buffers || !p->ops)
        return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the program");
    survey_plan(p);
    CERA_TRY(check_heads(p, e));
    note_readers(p);
    CERA_TRY(place_values(p, e));
    for (int i = 0; i < plan->n_ops; i++) CERA_TRY(bind_op(p, &p->ops[i], &plan->ops[i], e));
    CERA_TRY(work_memory(p, e));
    return cera_cpu_moe_prepare(p, e);
}

cera_status cera_program_compile(cera_backend *b, const cera_plan *plan, const cera_compile_options *o, cera_program **out,
                                 cera_error *e) {
    cera_arena *arena;
    CERA_TRY(cera_arena_create(0, &arena, e));
    cera_program *p = cera_arena_alloc(arena, 1, sizeof *p);
    if (!p) {
        cera_arena_destroy(arena);
        return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the program");
    }
    p->backend = b;
    p->plan = plan;
    p->arena = arena;
    cera_status status = compile(p, o, e);
    if (status != CERA_OK) {
        cera_arena_destroy(arena);
        return status;
    }
    p->work_bytes = cera_arena_used(arena);
    *out = p;
    return CERA_OK;
}

void cera_program_destroy(cera_program *p) {
    if (p) cera_arena_destroy(p->arena);
}

uint64_t cera_program_bytes(const cera_program *p) { return p->work_bytes; }
cera_cache_type cera_program_k_type(const cera_program *p) { return (cera_cache_type)p->k_type; }
cera_cache_type cera_program_v_type(const cera_program *p) { return (cera_cache_type)p->v_type; }
