/* sampler_dry.c: the DRY stage ("don't repeat yourself"): a token that would extend a repetition of the history's end loses
 * more the longer the repetition is already. Breakers are tokens: which text makes a breaker is the caller's business. */
#include "sample/sampler.h"

#include <float.h>
#include <math.h>

#include "base/arena.h"

/* Tokens of the history that are looked at; 0: the stage is off. */
static size_t window(const cera_sampler *s) {
    const cera_sampler_options *o = &s->options;
    if (o->dry_multiplier == 0.0f || o->dry_base < 1.0f) return 0;
    return o->dry_last_n > 0 && (size_t)o->dry_last_n < s->n_history ? (size_t)o->dry_last_n : s->n_history;
}

bool cera_sampler_dry_reserve(cera_sampler *s) {
    const size_t n = window(s);
    if (n <= s->run_capacity) return true;
    int32_t *run = cera_alloc_grow(s->run, s->run_capacity, n + n / 2, sizeof *run);
    if (!run) return false;
    s->run = run;
    s->run_capacity = n + n / 2;
    return true;
}

static bool is_breaker(const cera_sampler *s, int32_t token) {
    const int32_t *ids = s->options.dry_breakers; /* sorted */
    size_t low = 0, high = s->options.n_dry_breakers;
    while (low < high) {
        const size_t at = low + (high - low) / 2;
        if (ids[at] == token) return true;
        if (ids[at] < token)
            low = at + 1;
        else
            high = at;
    }
    return false;
}

/* run[i], i >= 1: how many tokens before and with end[-1 - i] equal those before and with the last one, end[-1]. The Z
 * algorithm on the reversed history: linear, however repetitive it is. */
static void fill_runs(int32_t *run, const int32_t *end, int32_t n) {
    int32_t left = 0, right = 0; /* the match that reaches farthest: [left, right) equals [0, right - left) */
    for (int32_t i = 1; i < n; i++) {
        int32_t k = 0;
        if (i < right) k = run[i - left] < right - i ? run[i - left] : right - i;
        while (i + k < n && end[-1 - k] == end[-1 - i - k]) k++;
        run[i] = k;
        if (i + k > right) left = i, right = i + k;
    }
}

static float lowered(const cera_sampler_options *o, float logit, int32_t length) {
    const double log_base = cera_sampler_log((double)o->dry_base);
    double exponent = (double)(length - o->dry_allowed_length) * log_base;
    if (exponent > 88.7) exponent = 88.7; /* the largest power that f32 holds */
    const double v = (double)logit - (double)o->dry_multiplier * cera_sampler_exp_f64(exponent);
    return v < -(double)FLT_MAX ? -FLT_MAX : v > (double)FLT_MAX ? FLT_MAX : (float)v;
}

void cera_sampler_dry(cera_sampler *s, cera_candidates *c) {
    const cera_sampler_options *o = &s->options;
    const size_t size = window(s);
    if (size > INT32_MAX || (int32_t)size <= o->dry_allowed_length) return;
    const int32_t n = (int32_t)size, *end = s->history + s->n_history;
    int32_t limit = 0; /* a repetition does not reach over a breaker */
    while (limit < n && !is_breaker(s, end[-1 - limit])) limit++;
    if (limit < o->dry_allowed_length) return;
    fill_runs(s->run, end, n);
    for (int32_t i = 1; i < n; i++) { /* the longest repetition that each token would extend */
        const int32_t length = s->run[i] < limit ? s->run[i] : limit, next = end[-i];
        if (length < o->dry_allowed_length || next < 0 || next >= s->n_vocab) continue;
        if (length > s->counts[next]) s->counts[next] = length;
    }
    for (int i = 0; !c->identity && i < c->n; i++) {
        const int32_t t = c->id[i];
        if (s->counts[t] > 0 && c->logit[i] != -INFINITY && !is_breaker(s, t))
            c->logit[i] = lowered(o, c->logit[i], s->counts[t]);
    }
    for (int32_t i = 1; i < n; i++) {
        const int32_t t = end[-i];
        if (t < 0 || t >= s->n_vocab || s->counts[t] == 0) continue;
        if (c->identity && c->logit[t] != -INFINITY && !is_breaker(s, t)) c->logit[t] = lowered(o, c->logit[t], s->counts[t]);
        s->counts[t] = 0;
    }
    c->sorted = false;
}
