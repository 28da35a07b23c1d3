/* sampler.c: the sampler object, the order of its chain, and one choice. Stages are sampler_stages.c; which tokens a history
 * holds is the session's business. */
#include "sample/sampler.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* The stated order (cera.h). */
static const cera_sampler_stage chain[] = {
    cera_sampler_penalties, cera_sampler_top_k, cera_sampler_top_p, cera_sampler_min_p, cera_sampler_temperature,
};

/* ---- options ---- */

static cera_status check_f32(const char *name, float value, float min, float max, cera_error *e) {
    if (value >= min && value <= max) return CERA_OK; /* false for NaN */
    return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: %s is %g; it must be between %g and %g", name, (double)value, (double)min,
                     (double)max);
}

static cera_status check_i32(const char *name, int32_t value, int32_t min, cera_error *e) {
    if (value >= min) return CERA_OK;
    return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: %s is %d; it must be at least %d", name, (int)value, (int)min);
}

static cera_status check_options(const cera_sampler_options *o, cera_error *e) {
    CERA_TRY(check_f32("temperature", o->temperature, 0.0f, 1e6f, e));
    CERA_TRY(check_i32("top_k", o->top_k, 0, e));
    CERA_TRY(check_f32("top_p", o->top_p, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("min_p", o->min_p, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("repeat_penalty", o->repeat_penalty, 1e-3f, 1e3f, e));
    CERA_TRY(check_f32("frequency_penalty", o->frequency_penalty, -1e3f, 1e3f, e));
    CERA_TRY(check_f32("presence_penalty", o->presence_penalty, -1e3f, 1e3f, e));
    return check_i32("penalty_last_n", o->penalty_last_n, -1, e);
}

/* A caller's struct that is smaller than ours comes from an older header: what it lacks is neutral. */
static cera_status take_options(const cera_sampler_options *given, cera_sampler_options *o, cera_error *e) {
    if (given->size < offsetof(cera_sampler_options, seed) || given->size > 4096)
        return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: options.size is %zu; set it to sizeof(cera_sampler_options)",
                         given->size);
    *o = (cera_sampler_options){.size = sizeof *o, .top_p = 1.0f, .repeat_penalty = 1.0f};
    memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    return check_options(o, e);
}

/* ---- the object ---- */

void cera_sampler_destroy(cera_sampler *s) {
    if (!s) return;
    cera_free(s->logit);
    cera_free(s->pick_logit);
    cera_free(s->weight);
    cera_free(s->id);
    cera_free(s->pick_id);
    cera_free(s->counts);
    cera_free(s->block_max);
    cera_free(s);
}

static bool allocate_scratch(cera_sampler *s) {
    const size_t n = (size_t)s->n_vocab;
    s->logit = cera_alloc(n, sizeof *s->logit);
    s->pick_logit = cera_alloc(n, sizeof *s->pick_logit);
    s->weight = cera_alloc(n, sizeof *s->weight);
    s->id = cera_alloc(n, sizeof *s->id);
    s->pick_id = cera_alloc(n, sizeof *s->pick_id);
    s->counts = cera_alloc(n, sizeof *s->counts);
    s->block_max = cera_alloc(2 * (n / CERA_SAMPLER_BLOCK + 1), sizeof *s->block_max);
    return s->logit && s->pick_logit && s->weight && s->id && s->pick_id && s->counts && s->block_max;
}

cera_status cera_sampler_create(const cera_sampler_options *options, int32_t n_vocab, cera_sampler **out, cera_error *e) {
    if (!options || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: options and out must not be NULL");
    if (n_vocab < 1) return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: n_vocab is %d; it must be at least 1", (int)n_vocab);
    cera_sampler_options o;
    CERA_TRY(take_options(options, &o, e));
    cera_sampler *s = cera_alloc(1, sizeof *s);
    if (!s) return cera_fail(e, CERA_ERR_MEMORY, "sampler: out of memory");
    s->options = o;
    s->n_vocab = n_vocab;
    if (!allocate_scratch(s)) {
        cera_sampler_destroy(s);
        return cera_fail(e, CERA_ERR_MEMORY, "sampler: out of memory for %d candidates", (int)n_vocab);
    }
    *out = s;
    return CERA_OK;
}

/* ---- one choice ---- */

/* Whatever is not finite becomes -infinity, which has no weight. The comparison is false for NaN. */
static void take_logits(float *out, const float *logits, int n) {
    for (int i = 0; i < n; i++) out[i] = fabsf(logits[i]) <= 3.402823466e38f ? logits[i] : -INFINITY;
}

cera_status cera_sampler_sample(cera_sampler *s, const float *logits, const int32_t *history, size_t n_history,
                                uint64_t position, int32_t *token, cera_error *e) {
    if (!s || !logits || !token || (n_history > 0 && !history))
        return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: sampler, logits, history and token must not be NULL");
    take_logits(s->logit, logits, s->n_vocab);
    cera_candidates c = {.logit = s->logit, .id = s->id, .n = s->n_vocab, .identity = true};
    if (cera_sampler_max(&c) == -INFINITY)
        return cera_fail(e, CERA_ERR_NUMERIC, "position %llu: none of the %d logits is finite", (unsigned long long)position,
                         s->n_vocab);
    s->history = history;
    s->n_history = n_history;
    s->position = position;
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) chain[i](s, &c);
    s->history = NULL;
    const int at = c.n == 1 ? 0 : cera_sampler_draw(s, &c, cera_rng_uniform(s->options.seed, s->options.choice, position));
    *token = c.identity ? at : c.id[at];
    return CERA_OK;
}
