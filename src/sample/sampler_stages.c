/* sampler_stages.c: the stages of the chain, one function each. A stage reads its options and the history from the sampler and
 * narrows or changes the list; at its neutral value it leaves the list as it is. Order and defaults are sampler.c's. */
#include "sample/sampler.h"

#include <float.h>
#include <math.h>

/* Runs first: the list is still the whole vocabulary in order. */
void cera_sampler_bias(cera_sampler *s, cera_candidates *c) {
    for (size_t i = 0; i < s->options.n_logit_bias; i++) {
        const cera_logit_bias b = s->options.logit_bias[i];
        const float sum = c->logit[b.token] + b.bias;
        c->logit[b.token] = sum < FLT_MAX ? sum : FLT_MAX;
    }
}

/* Penalises one logit that occurred `count` times. The repeat penalty is that of CTRL (Keskar et al. 2019, section 4.1) with
 * the sign rule everybody uses since: a negative logit is multiplied. Frequency and presence penalties are OpenAI's. */
static float penalised(const cera_sampler_options *o, float logit, int32_t count) {
    if (count == 0) return logit;
    logit = logit > 0.0f ? logit / o->repeat_penalty : logit * o->repeat_penalty;
    logit -= (float)count * o->frequency_penalty + o->presence_penalty;
    return logit < FLT_MAX ? logit : FLT_MAX; /* a tiny penalty on a huge logit must not make it infinite */
}

void cera_sampler_penalties(cera_sampler *s, cera_candidates *c) {
    const cera_sampler_options *o = &s->options;
    if (o->repeat_penalty == 1.0f && o->frequency_penalty == 0.0f && o->presence_penalty == 0.0f) return;
    size_t n = s->n_history;
    if (o->penalty_last_n >= 0 && (size_t)o->penalty_last_n < n) n = (size_t)o->penalty_last_n;
    const int32_t *window = s->history + (s->n_history - n);
    for (size_t i = 0; i < n; i++)
        if (window[i] >= 0 && window[i] < s->n_vocab) s->counts[window[i]]++;
    if (!c->identity)
        for (int i = 0; i < c->n; i++) c->logit[i] = penalised(o, c->logit[i], s->counts[c->id[i]]);
    for (size_t i = 0; i < n; i++) { /* a token's first visit takes its count away, so that it is penalised once */
        const int32_t t = window[i];
        if (t < 0 || t >= s->n_vocab) continue;
        if (c->identity) c->logit[t] = penalised(o, c->logit[t], s->counts[t]);
        s->counts[t] = 0;
    }
    c->sorted = false;
}

void cera_sampler_top_k(cera_sampler *s, cera_candidates *c) {
    if (s->options.top_k > 0) cera_sampler_keep_largest(s, c, s->options.top_k);
}

/* How many of n sorted logits it takes until their weights sum to the target; n + 1 when they do not reach it. */
static int count_to(const float *logit, int n, float max, double target) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += (double)cera_sampler_exp(logit[i] - max);
        if (sum >= target) return i + 1;
    }
    return n + 1;
}

/* Nucleus sampling (Holtzman et al. 2020): the shortest run of the most probable candidates whose probabilities sum to at least
 * p; never fewer than one. */
void cera_sampler_top_p(cera_sampler *s, cera_candidates *c) {
    const float p = s->options.top_p;
    if (p >= 1.0f || c->n <= 1) return;
    if (!c->sorted) {
        cera_sampler_keep_reaching(s, c, p);
        return;
    }
    const float max = cera_sampler_max(c);
    const double target = (double)p * cera_sampler_weights(c, max, s->weight);
    const int n = count_to(c->logit, c->n, max, target);
    if (n < c->n) c->n = n;
}

/* min-p (Nguyen et al. 2024): candidates at least p times as probable as the best one. */
void cera_sampler_min_p(cera_sampler *s, cera_candidates *c) {
    const float p = s->options.min_p;
    if (p <= 0.0f || c->n <= 1) return;
    cera_sampler_keep_from(s, c, cera_sampler_max(c) + (float)cera_sampler_log((double)p));
}

/* Top-n-sigma (Tang et al. 2024): logits within n standard deviations of the largest. */
void cera_sampler_top_n_sigma(cera_sampler *s, cera_candidates *c) {
    const float n_sigma = s->options.top_n_sigma;
    if (n_sigma <= 0.0f || c->n <= 1) return;
    double sum = 0.0, squares = 0.0;
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        if (c->logit[i] == -INFINITY) continue;
        sum += (double)c->logit[i];
        n++;
    }
    const double mean = sum / (n > 0 ? n : 1);
    for (int i = 0; i < c->n; i++)
        if (c->logit[i] != -INFINITY) squares += ((double)c->logit[i] - mean) * ((double)c->logit[i] - mean);
    const double sigma = sqrt(squares / (n > 0 ? n : 1));
    cera_sampler_keep_from(s, c, (float)((double)cera_sampler_max(c) - (double)n_sigma * sigma));
}

void cera_sampler_temperature(cera_sampler *s, cera_candidates *c) {
    float t = s->options.temperature;
    if (s->options.dynatemp_range > 0.0f) t = (float)cera_sampler_dynamic_temperature(s, c);
    if (t < CERA_SAMPLER_GREEDY_BELOW) {
        cera_sampler_keep_largest(s, c, 1);
        return;
    }
    if (t == 1.0f) return;
    const float max = cera_sampler_max(c);
    for (int i = 0; i < c->n; i++) c->logit[i] = (c->logit[i] - max) / t;
}
