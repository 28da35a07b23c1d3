/* model.c: puts a model together: architecture, keys, tensors, plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "model/registry_int.h"
#include "model/weights_int.h"

struct cera_model {
    cera_arena *arena;
    cera_hparams h;
    cera_plan plan;
    const cera_family *family;
    const char *name;
};

static cera_status find_family(cera_model *m, const cera_gguf *g, cera_error *e) {
    cera_text_view arch;
    CERA_TRY(cera_gguf_get_text(g, "general.architecture", &arch, e));
    m->h.arch = cera_arena_text(m->arena, arch.text, arch.size);
    if (!m->h.arch) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the model");
    m->family = cera_family_find(m->h.arch);
    if (m->family) return CERA_OK;
    char list[CERA_ERROR_TEXT / 2] = "";
    for (const char *const *name = cera_model_families(); *name; name++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", *name);
    }
    return cera_fail(e, CERA_ERR_UNSUPPORTED, "key general.architecture is \"%.64s\", which is not supported; supported: %s",
                     m->h.arch, list);
}

/* Divisors of RoPE frequencies come from a tensor: f32, positive, one a pair. */
static cera_status rope_divisors(cera_builder *b, cera_wb t, cera_rope_spec *spec, cera_error *e) {
    if (t.w < 0) return CERA_OK;
    const cera_weight *w = &b->plan->weights[t.w];
    if (w->dtype != CERA_F32)
        return cera_fail(e, CERA_ERR_FORMAT, "tensor %s is of type %s; it must be f32", w->name,
                         cera_dtype_get((uint32_t)w->dtype)->name);
    float *values = cera_arena_alloc(b->arena, (size_t)w->k, sizeof *values);
    if (!values) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for tensor %s", w->name);
    memcpy(values, w->data, (size_t)w->k * sizeof *values);
    for (int64_t i = 0; i < w->k; i++)
        if (!(values[i] > 0) || !isfinite(values[i]))
            return cera_fail(e, CERA_ERR_FORMAT, "tensor %s: element %lld is %g; it must be positive", w->name, (long long)i,
                             (double)values[i]);
    spec->divisors = values;
    return CERA_OK;
}

static int add_rope(cera_builder *b, const cera_rope_spec *spec) {
    cera_plan *p = b->plan;
    double *inv_freq = cera_arena_alloc(b->arena, (size_t)spec->n_rot / 2 + 1, sizeof *inv_freq);
    if (!inv_freq || p->n_ropes >= b->max_ropes) {
        b->status = CERA_ERR_MEMORY;
        return -1;
    }
    cera_rope *r = &p->ropes[p->n_ropes];
    *r = (cera_rope){.n_rot = spec->n_rot, .rot_first = spec->rot_first, .neox = spec->neox, .inv_freq = inv_freq};
    cera_rope_compute(spec, inv_freq, &r->scale);
    return p->n_ropes++;
}

static bool same_rope(const cera_rope_spec *a, const cera_rope_spec *b) {
    return a->base == b->base && a->n_rot == b->n_rot && a->rot_first == b->rot_first && a->scaling == b->scaling &&
           a->factor == b->factor && a->divisors == b->divisors;
}

static cera_status ropes(cera_builder *b, cera_hparams *h, cera_error *e) {
    bool longer = h->n_ctx > h->rope.original_context;
    cera_wb factors = G(rope_freqs);
    if (factors.w < 0) factors = longer ? G(rope_factors_long) : G(rope_factors_short);
    CERA_TRY(rope_divisors(b, factors, &h->rope, e));
    h->rope_swa.neox = h->rope.neox;
    b->rope = add_rope(b, &h->rope);
    b->rope_swa = same_rope(&h->rope, &h->rope_swa) ? b->rope : add_rope(b, &h->rope_swa);
    return b->status == CERA_OK ? CERA_OK : cera_fail(e, b->status, "out of memory for the model");
}

static cera_status room(cera_builder *b, cera_error *e) {
    cera_plan *p = b->plan;
    int n = b->h->n_layer;
    b->max_ops = 24 * n + 16, b->max_values = 32 * n + 16, b->max_weights = 56 * n + 32, b->max_ropes = 8, b->max_groups = 64;
    p->ops = cera_arena_alloc(b->arena, (size_t)b->max_ops, sizeof *p->ops);
    p->value_width = cera_arena_alloc(b->arena, (size_t)b->max_values, sizeof *p->value_width);
    p->weights = cera_arena_alloc(b->arena, (size_t)b->max_weights, sizeof *p->weights);
    p->ropes = cera_arena_alloc(b->arena, (size_t)b->max_ropes, sizeof *p->ropes);
    p->groups = cera_arena_alloc(b->arena, (size_t)b->max_groups, sizeof *p->groups);
    if (!p->ops || !p->value_width || !p->weights || !p->ropes || !p->groups)
        return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the model");
    return CERA_OK;
}

static cera_status load_weights(cera_builder *b, const cera_family *f, cera_error *e) {
    for (int s = 0; s < CERA_SLOT_COUNT; s++)
        for (int i = 0; i <= CERA_MAX_LAYERS; i++) b->slots[s][i] = NO_W;
    for (int i = 0; i < f->n_tensors; i++)
        if (!f->tensors[i].layer) CERA_TRY(cera_weights_load(b, &f->tensors[i], 0, e));
    for (int layer = 0; layer < b->h->n_layer; layer++)
        for (int i = 0; i < f->n_tensors; i++) {
            const cera_tensor_rule *r = &f->tensors[i];
            if (r->layer && (!r->when || r->when(b->h, layer))) CERA_TRY(cera_weights_load(b, r, layer, e));
        }
    return CERA_OK;
}

static cera_status build(cera_model *m, cera_builder *b, cera_error *e) {
    cera_hparams *h = &m->h;
    CERA_TRY(m->family->keys(h, e));
    CERA_TRY(room(b, e));
    CERA_TRY(load_weights(b, m->family, e));
    m->plan.n_ctx_train = h->n_ctx_train;
    m->plan.n_embd = h->n_embd;
    m->plan.n_vocab = h->n_vocab;
    m->plan.n_layer = h->n_layer;
    m->plan.causal = true;
    CERA_TRY(ropes(b, h, e));
    b->layer = CERA_MAX_LAYERS;
    m->family->build(b, h);
    return b->status == CERA_OK ? CERA_OK
                                : cera_fail(e, b->status, "the plan of %s with %d layers has no room", h->arch, h->n_layer);
}

static cera_status load(cera_model *m, const cera_gguf *g, cera_error *e) {
    m->h.file = g;
    CERA_TRY(find_family(m, g, e));
    cera_text_view name = {"", 0};
    if (cera_gguf_find(g, "general.name")) CERA_TRY(cera_gguf_get_text(g, "general.name", &name, e));
    m->name = cera_arena_text(m->arena, name.text, name.size);
    cera_builder b = {.plan = &m->plan, .arena = m->arena, .h = &m->h};
    b.slots = cera_alloc(CERA_SLOT_COUNT, sizeof *b.slots);
    if (!b.slots || !m->name) {
        cera_free(b.slots);
        return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the model");
    }
    cera_status status = build(m, &b, e);
    cera_free(b.slots);
    return status;
}

cera_status cera_model_load(const cera_gguf *g, int n_ctx, cera_model **out, cera_error *e) {
    cera_arena *arena;
    CERA_TRY(cera_arena_create(0, &arena, e));
    cera_model *m = cera_arena_alloc(arena, 1, sizeof *m);
    cera_status status = m ? CERA_OK : cera_fail(e, CERA_ERR_MEMORY, "out of memory for the model");
    if (m) {
        m->arena = arena;
        m->h.n_ctx = n_ctx;
        status = load(m, g, e);
    }
    if (status != CERA_OK) {
        cera_arena_destroy(arena);
        if (e && e->code != CERA_OK) cera_fail_prefix(e, cera_gguf_path(g));
        return status;
    }
    *out = m;
    return CERA_OK;
}

void cera_model_destroy(cera_model *m) {
    if (m) cera_arena_destroy(m->arena);
}

const cera_plan *cera_model_plan(const cera_model *m) { return &m->plan; }
const char *cera_model_arch(const cera_model *m) { return m->h.arch; }
const char *cera_model_name(const cera_model *m) { return m->name; }

uint64_t cera_model_weight_bytes(const cera_model *m) {
    uint64_t sum = 0;
    for (int i = 0; i < m->plan.n_weights; i++) sum += m->plan.weights[i].matrix_bytes * (uint64_t)m->plan.weights[i].count;
    return sum;
}
