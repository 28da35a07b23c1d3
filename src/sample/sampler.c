/* sampler.c: the sampler object, the order of its chain, and one choice. Stages are sampler_stages.c; which tokens a history
 * holds is the session's business. */
#include "sample/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* Stages by the names of options.samplers, in the stated order (cera.h). */
static const struct {
    const char *name;
    cera_sampler_stage run;
} stages[] = {
    {"penalties", cera_sampler_penalties},
    {"dry", cera_sampler_dry},
    {"top_n_sigma", cera_sampler_top_n_sigma},
    {"top_k", cera_sampler_top_k},
    {"typical_p", cera_sampler_typical_p},
    {"top_p", cera_sampler_top_p},
    {"min_p", cera_sampler_min_p},
    {"xtc", cera_sampler_xtc},
    {"temperature", cera_sampler_temperature},
    {"typ_p", cera_sampler_typical_p}, /* llama.cpp's name */
};

enum { N_STAGES = 9, N_NAMES = sizeof stages / sizeof *stages };

static cera_sampler_stage find_stage(const char *name, size_t n) {
    for (int i = 0; i < N_NAMES; i++)
        if (strlen(stages[i].name) == n && memcmp(stages[i].name, name, n) == 0) return stages[i].run;
    return NULL;
}

static cera_status set_stages(cera_sampler *s, const char *order, cera_error *e) {
    for (int i = 0; !order && i < N_STAGES; i++) s->stages[s->n_stages++] = stages[i].run;
    while (order && *order) {
        const size_t n = strcspn(order, ";, ");
        cera_sampler_stage stage = find_stage(order, n);
        if (n > 0 && !stage)
            return cera_fail(e, CERA_ERR_ARGUMENT,
                             "sampler: samplers names \"%.*s\"; the stages are penalties, dry, top_n_sigma, top_k, typical_p, "
                             "top_p, min_p, xtc, temperature",
                             (int)n, order);
        if (n > 0 && s->n_stages == CERA_SAMPLER_MAX_STAGES)
            return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: samplers names more than %d stages", CERA_SAMPLER_MAX_STAGES);
        if (n > 0) s->stages[s->n_stages++] = stage;
        order += n + (order[n] != 0);
    }
    return CERA_OK;
}

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

static cera_status check_shaping(const cera_sampler_options *o, cera_error *e) {
    CERA_TRY(check_f32("dry_multiplier", o->dry_multiplier, 0.0f, 1e6f, e));
    CERA_TRY(check_f32("dry_base", o->dry_base, 0.0f, 1e6f, e));
    CERA_TRY(check_i32("dry_allowed_length", o->dry_allowed_length, 0, e));
    CERA_TRY(check_i32("dry_last_n", o->dry_last_n, -1, e));
    CERA_TRY(check_f32("top_n_sigma", o->top_n_sigma, -1.0f, 1e6f, e));
    CERA_TRY(check_f32("typical_p", o->typical_p, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("xtc_probability", o->xtc_probability, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("xtc_threshold", o->xtc_threshold, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("dynatemp_range", o->dynatemp_range, 0.0f, 1e6f, e));
    CERA_TRY(check_f32("dynatemp_exponent", o->dynatemp_exponent, 0.0f, 1e3f, e));
    CERA_TRY(check_f32("mirostat_tau", o->mirostat_tau, 0.0f, 1e3f, e));
    CERA_TRY(check_f32("mirostat_eta", o->mirostat_eta, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("adaptive_target", o->adaptive_target, -1.0f, 1.0f, e));
    CERA_TRY(check_f32("adaptive_decay", o->adaptive_decay, 0.0f, 0.99f, e));
    if (o->mirostat >= 0 && o->mirostat <= 2) return CERA_OK;
    return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: mirostat is %d; it must be 0, 1 or 2", (int)o->mirostat);
}

static cera_status check_lists(const cera_sampler_options *o, int32_t n_vocab, cera_error *e) {
    if ((o->n_logit_bias > 0 && !o->logit_bias) || (o->n_dry_breakers > 0 && !o->dry_breakers))
        return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: %s is NULL", o->n_logit_bias > 0 ? "logit_bias" : "dry_breakers");
    for (size_t i = 0; i < o->n_logit_bias; i++) {
        const cera_logit_bias b = o->logit_bias[i];
        if (b.token < 0 || b.token >= n_vocab)
            return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: logit_bias of token %d, which is out of range (0 to %d)",
                             (int)b.token, (int)n_vocab - 1);
        if (!(b.bias < INFINITY))
            return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: logit_bias of token %d is not a number", (int)b.token);
    }
    return CERA_OK;
}

static cera_status check_options(const cera_sampler_options *o, cera_error *e) {
    CERA_TRY(check_f32("temperature", o->temperature, 0.0f, 1e6f, e));
    CERA_TRY(check_i32("top_k", o->top_k, 0, e));
    CERA_TRY(check_f32("top_p", o->top_p, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("min_p", o->min_p, 0.0f, 1.0f, e));
    CERA_TRY(check_f32("repeat_penalty", o->repeat_penalty, 1e-3f, 1e3f, e));
    CERA_TRY(check_f32("frequency_penalty", o->frequency_penalty, -1e3f, 1e3f, e));
    CERA_TRY(check_f32("presence_penalty", o->presence_penalty, -1e3f, 1e3f, e));
    CERA_TRY(check_i32("penalty_last_n", o->penalty_last_n, -1, e));
    return check_shaping(o, e);
}

static void fill_defaults(cera_sampler_options *o) {
    if (o->dry_base == 0.0f) o->dry_base = 1.75f;
    if (o->dry_allowed_length == 0) o->dry_allowed_length = 2;
    if (o->xtc_threshold == 0.0f) o->xtc_threshold = 0.1f;
    if (o->dynatemp_exponent == 0.0f) o->dynatemp_exponent = 1.0f;
    if (o->mirostat_tau == 0.0f) o->mirostat_tau = 5.0f;
    if (o->mirostat_eta == 0.0f) o->mirostat_eta = 0.1f;
    if (o->adaptive_decay == 0.0f) o->adaptive_decay = 0.9f;
}

/* A caller's struct that is smaller than ours comes from an older header: what it lacks is neutral. */
static cera_status take_options(const cera_sampler_options *given, cera_sampler_options *o, cera_error *e) {
    if (given->size < offsetof(cera_sampler_options, seed) || given->size > 4096)
        return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: options.size is %zu; set it to sizeof(cera_sampler_options)",
                         given->size);
    *o = (cera_sampler_options){.size = sizeof *o, .top_p = 1.0f, .repeat_penalty = 1.0f};
    memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    CERA_TRY(check_options(o, e));
    fill_defaults(o);
    return CERA_OK;
}

/* ---- the object ---- */

void cera_sampler_destroy(cera_sampler *s) {
    if (!s) return;
    cera_free((void *)s->options.logit_bias);
    cera_free((void *)s->options.dry_breakers);
    cera_free(s->logit);
    cera_free(s->pick_logit);
    cera_free(s->pick_weight);
    cera_free(s->weight);
    cera_free(s->id);
    cera_free(s->pick_id);
    cera_free(s->counts);
    cera_free(s->block_max);
    cera_free(s->run);
    cera_free(s);
}

static bool allocate_scratch(cera_sampler *s) {
    const size_t n = (size_t)s->n_vocab;
    s->logit = cera_alloc(n, sizeof *s->logit);
    s->pick_logit = cera_alloc(n, sizeof *s->pick_logit);
    s->pick_weight = cera_alloc(n, sizeof *s->pick_weight);
    s->weight = cera_alloc(n, sizeof *s->weight);
    s->id = cera_alloc(n, sizeof *s->id);
    s->pick_id = cera_alloc(n, sizeof *s->pick_id);
    s->counts = cera_alloc(n, sizeof *s->counts);
    s->block_max = cera_alloc(2 * (n / CERA_SAMPLER_BLOCK + 1), sizeof *s->block_max);
    return s->logit && s->pick_logit && s->pick_weight && s->weight && s->id && s->pick_id && s->counts && s->block_max;
}

static int by_value(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The caller's lists become ours; breakers are sorted for the search. */
static bool copy_lists(cera_sampler *s) {
    cera_sampler_options *o = &s->options;
    cera_logit_bias *bias = cera_alloc(o->n_logit_bias, sizeof *bias);
    int32_t *breakers = cera_alloc(o->n_dry_breakers, sizeof *breakers);
    if (bias && o->n_logit_bias > 0) memcpy(bias, o->logit_bias, o->n_logit_bias * sizeof *bias);
    if (breakers && o->n_dry_breakers > 0) {
        memcpy(breakers, o->dry_breakers, o->n_dry_breakers * sizeof *breakers);
        qsort(breakers, o->n_dry_breakers, sizeof *breakers, by_value);
    }
    o->logit_bias = bias;
    o->dry_breakers = breakers;
    o->samplers = NULL; /* s->stages has it */
    return bias && breakers;
}

cera_status cera_sampler_create(const cera_sampler_options *options, int32_t n_vocab, cera_sampler **out, cera_error *e) {
    if (!options || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: options and out must not be NULL");
    if (n_vocab < 1) return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: n_vocab is %d; it must be at least 1", (int)n_vocab);
    cera_sampler_options o;
    CERA_TRY(take_options(options, &o, e));
    CERA_TRY(check_lists(&o, n_vocab, e));
    cera_sampler *s = cera_alloc(1, sizeof *s);
    if (!s) return cera_fail(e, CERA_ERR_MEMORY, "sampler: out of memory");
    s->options = o;
    s->n_vocab = n_vocab;
    const bool copied = copy_lists(s), room = allocate_scratch(s);
    const cera_status status = set_stages(s, o.samplers, e);
    if (!copied || !room || status != CERA_OK) {
        cera_sampler_destroy(s);
        return status != CERA_OK ? status
                                 : cera_fail(e, CERA_ERR_MEMORY, "sampler: out of memory for %d candidates", (int)n_vocab);
    }
    *out = s;
    return CERA_OK;
}

/* ---- one choice ---- */

/* Words without an allowed token, the rule under a grammar, are filled at once. */
static void mask_logits(float *logit, const uint32_t *allowed, int n) {
    for (int from = 0; from < n; from += 32) {
        const uint32_t bits = allowed[from / 32];
        const int end = from + 32 < n ? from + 32 : n;
        for (int i = from; bits != UINT32_MAX && i < end; i++)
            if (!(bits >> (i - from) & 1)) logit[i] = -INFINITY;
    }
}

static cera_status no_candidate(const cera_sampler *s, const char *which, cera_error *e) {
    return cera_fail(e, CERA_ERR_NUMERIC, "position %llu: none of the %d logits is finite%s", (unsigned long long)s->position,
                     s->n_vocab, which);
}

static int run_chain(cera_sampler *s, cera_candidates *c) {
    const double u = cera_rng_uniform(s->options.seed, s->options.choice, s->position);
    if (s->options.mirostat > 0) {
        cera_sampler_temperature(s, c);
        return cera_sampler_mirostat(s, c, u);
    }
    for (int i = 0; i < s->n_stages; i++) s->stages[i](s, c);
    if (s->options.adaptive_target > 0.0f) return cera_sampler_adaptive(s, c, u);
    return c->n == 1 ? 0 : cera_sampler_draw(s, c, u);
}

cera_status cera_sampler_sample_allowed(cera_sampler *s, const float *logits, const uint32_t *allowed, const int32_t *history,
                                        size_t n_history, uint64_t position, int32_t *token, cera_error *e) {
    if (!s || !logits || !token || (n_history > 0 && !history))
        return cera_fail(e, CERA_ERR_ARGUMENT, "sampler: sampler, logits, history and token must not be NULL");
    s->history = history;
    s->n_history = n_history;
    s->position = position;
    if (!cera_sampler_dry_reserve(s))
        return cera_fail(e, CERA_ERR_MEMORY, "sampler: out of memory for a history of %zu tokens", n_history);
    const float max = cera_sampler_take_logits(s->logit, logits, s->n_vocab);
    cera_candidates c = {.logit = s->logit, .id = s->id, .n = s->n_vocab, .identity = true};
    if (max == -INFINITY) return no_candidate(s, "", e);
    if (allowed) mask_logits(s->logit, allowed, s->n_vocab);
    cera_sampler_bias(s, &c);
    if ((allowed || s->options.n_logit_bias > 0) && cera_sampler_max(&c) == -INFINITY)
        return no_candidate(s, " and allowed", e);
    const int at = run_chain(s, &c);
    s->history = NULL;
    *token = c.identity ? at : c.id[at];
    return CERA_OK;
}

cera_status cera_sampler_sample(cera_sampler *s, const float *logits, const int32_t *history, size_t n_history,
                                uint64_t position, int32_t *token, cera_error *e) {
    return cera_sampler_sample_allowed(s, logits, NULL, history, n_history, position, token, e);
}
