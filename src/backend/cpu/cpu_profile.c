/* cpu_profile.c: what a program is made of and what it spent, in words and numbers. */
#include <stdarg.h>
#include <stdio.h>
#include "backend/cpu/cpu_int.h"

void cera_program_profile(cera_program *p, bool on) {
    p->profiling = on;
    for (int i = 0; i < p->plan->n_ops; i++) p->ops[i].runs = 0, p->ops[i].seconds = p->ops[i].bytes = p->ops[i].macs = 0;
}

int cera_program_n_profiles(const cera_program *p) { return p->plan->n_ops; }

static const char *kernel_of(const cera_program *p, const cera_op *op) {
    switch (op->kind) {
    case CERA_OP_MATMUL:
    case CERA_OP_GLU:
    case CERA_OP_ROUTE:
    case CERA_OP_EXPERTS:
    case CERA_OP_GATE:
    case CERA_OP_HEADS:
    case CERA_OP_LOGITS: return cera_kernels_matmul_name(cera_cpu_k(p), p->plan->weights[op->w[0]].dtype);
    default: return cera_cpu_tier_name(cera_cpu_k(p)->tier);
    }
}

void cera_program_profile_at(const cera_program *p, int i, cera_op_profile *out) {
    const cera_cpu_op *o = &p->ops[i];
    *out = (cera_op_profile){.op = o->op,
                             .what = cera_op_name(o->op->kind),
                             .kernel = kernel_of(p, o->op),
                             .runs = o->runs,
                             .seconds = o->seconds,
                             .bytes = o->bytes,
                             .macs = o->macs};
}

typedef struct text {
    char *at;
    int size, used;
} text;

static void add(text *t, const char *format, ...) CERA_PRINTF(2, 3);

static void add(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int room = t->size - t->used, n = vsnprintf(room > 0 ? t->at + t->used : NULL, room > 0 ? (size_t)room : 0, format, args);
    va_end(args);
    if (n > 0) t->used += n;
}

static void add_weights(text *t, const cera_program *p, const cera_op *op) {
    for (int i = 0; i < 3; i++) {
        if (op->w[i] >= 0) {
            const cera_weight *w = &p->plan->weights[op->w[i]];
            add(t, "  %s %s [%lld, %lld", w->name, cera_dtype_get(w->dtype)->name, (long long)w->k, (long long)w->n);
            if (w->count > 1) add(t, ", %lld", (long long)w->count);
            add(t, "]");
        }
        if (op->bias[i] >= 0) add(t, " + %s", p->plan->weights[op->bias[i]].name);
    }
}

static void add_encodings(text *t, const cera_cpu_value *v) {
    const char *between = " (";
    static const char *const names[CERA_ENC_COUNT] = {"f32", "bf16", "q8"};
    for (int enc = 0; enc < CERA_ENC_COUNT; enc++)
        if (v->want[enc]) add(t, "%s%s", between, names[enc]), between = ", ";
    add(t, ")");
}

int cera_program_describe(const cera_program *p, int index, char *out, int size) {
    const cera_op *op = &p->plan->ops[index];
    text t = {out, size, 0};
    if (op->layer >= 0)
        add(&t, "%3d  ", op->layer);
    else
        add(&t, "     ");
    add(&t, "%-9s", cera_op_name(op->kind));
    for (int i = 0; i < 3; i++)
        if (op->in[i] >= 0) add(&t, " v%d", op->in[i]);
    if (op->n_out) add(&t, " ->");
    for (int i = 0; i < op->n_out; i++) {
        add(&t, " v%d[%d]", op->out[i], p->plan->value_width[op->out[i]]);
        add_encodings(&t, &p->values[op->out[i]]);
    }
    add_weights(&t, p, op);
    if (op->kind == CERA_OP_ROPE_KV) {
        const cera_kv_group *g = &p->plan->groups[op->p.rope_kv.group];
        add(&t, "  group %d layer %d", op->p.rope_kv.group, op->p.rope_kv.group_layer);
        if (op->p.rope_kv.rope >= 0) {
            const cera_rope *r = &p->plan->ropes[op->p.rope_kv.rope];
            add(&t, ", rotates %d of %d %s", r->n_rot, g->d_k, r->neox ? "neox" : "interleaved");
        }
    }
    if (op->kind == CERA_OP_ATTEND) {
        const cera_kv_group *g = &p->plan->groups[op->p.attend.group];
        add(&t, "  group %d layer %d, %d heads over %d x %d", op->p.attend.group, op->p.attend.group_layer, op->p.attend.n_head,
            g->n_head_kv, g->d_k);
        if (g->window) add(&t, ", window %d", g->window);
    }
    return t.used;
}
