/* sampler_entropy.c: stages that look at surprise, -log p, and draws that aim at one: typical-p, XTC, dynamic temperature,
 * mirostat, adaptive-p. Sums are taken in the order of the list, in f64. */
#include "sample/sampler.h"

#include <math.h>

#include "base/rng.h"

static const double ln2 = 0.69314718055994530942;

/* Entropy in nats from the weights exp(logit - max) and their sum: log sum - mean of (logit - max). */
static double entropy(const cera_candidates *c, const float *weight, float max, double sum) {
    double mean = 0.0;
    for (int i = 0; i < c->n; i++)
        if (weight[i] > 0.0f) mean += (double)weight[i] * (double)(c->logit[i] - max);
    return cera_sampler_log(sum) - mean / sum;
}

/* Locally typical sampling (Meister et al. 2022): candidates by the distance of their surprise from the entropy, until their
 * probabilities sum to more than p. */
void cera_sampler_typical_p(cera_sampler *s, cera_candidates *c) {
    const float p = s->options.typical_p;
    if (p <= 0.0f || p >= 1.0f || c->n <= 1) return;
    const float max = cera_sampler_max(c);
    const double sum = cera_sampler_weights(c, max, s->weight), h = entropy(c, s->weight, max, sum),
                 log_sum = cera_sampler_log(sum);
    for (int i = 0; i < c->n; i++) {
        s->pick_logit[i] = (float)-fabs(log_sum - (double)(c->logit[i] - max) - h);
        s->pick_id[i] = i;
    }
    cera_sampler_sort(s->pick_logit, s->pick_id, c->n);
    double reached = 0.0;
    int n = 0;
    while (n < c->n && reached <= (double)p * sum) reached += (double)s->weight[s->pick_id[n++]];
    for (; n < c->n; n++) s->weight[s->pick_id[n]] = -1.0f;
    cera_sampler_keep_marked(c, s->weight);
}

/* Exclude top choices: of the candidates that reach the threshold, only the least probable stays. */
void cera_sampler_xtc(cera_sampler *s, cera_candidates *c) {
    const float threshold = s->options.xtc_threshold;
    if (s->options.xtc_probability <= 0.0f || threshold > 0.5f || c->n < 2) return;
    /* A stream of its own: the draw's number must stay independent of this one. */
    const double chance = cera_rng_uniform(s->options.seed, (uint64_t)s->options.choice | (uint64_t)1 << 32, s->position);
    if (chance >= (double)s->options.xtc_probability) return;
    const double at_least = (double)threshold * cera_sampler_weights(c, cera_sampler_max(c), s->weight);
    int last = -1; /* the lowest id goes first among equals, so the last of them in the list stays */
    for (int i = 0; i < c->n; i++)
        if ((double)s->weight[i] >= at_least && (last < 0 || c->logit[i] <= c->logit[last])) last = i;
    if (last < 0) return;
    for (int i = 0; i < c->n; i++)
        if (i != last && (double)s->weight[i] >= at_least) s->weight[i] = -1.0f;
    cera_sampler_keep_marked(c, s->weight);
}

/* Between temperature - range and temperature + range, by the entropy of what is left over its largest possible value. */
double cera_sampler_dynamic_temperature(const cera_sampler *s, const cera_candidates *c) {
    const cera_sampler_options *o = &s->options;
    const double middle = (double)o->temperature, range = (double)o->dynatemp_range;
    const double low = middle > range ? middle - range : 0.0, high = middle + range;
    if (c->n <= 1) return middle;
    const float max = cera_sampler_max(c);
    const double sum = cera_sampler_weights(c, max, s->weight);
    double share = entropy(c, s->weight, max, sum) / cera_sampler_log((double)c->n);
    share = share < 1e-300 ? 1e-300 : share > 1.0 ? 1.0 : share;
    return low + (high - low) * cera_sampler_exp_f64((double)o->dynatemp_exponent * cera_sampler_log(share));
}

/* ---- mirostat ---- */

/* How many candidates mirostat 1 keeps (Basu et al. 2021, algorithm 1): the exponent of a Zipf law is estimated from the 100
 * most probable, then k such that the expected surprise is mu. */
static int zipf_k(const cera_sampler *s, const cera_candidates *c) {
    double tb = 0.0, tt = 0.0;
    for (int i = 0; i < 99 && i < c->n - 1; i++) {
        if (c->logit[i + 1] == -INFINITY) break;
        const double t = cera_sampler_log((double)(i + 2) / (double)(i + 1)), b = (double)c->logit[i] - (double)c->logit[i + 1];
        tb += t * b;
        tt += t * t;
    }
    if (!(tb > 0.0)) return c->n; /* flat: no law to estimate */
    const double exponent = tb / tt, excess = exponent - 1.0, log_n = cera_sampler_log((double)s->n_vocab);
    const double tail = fabs(excess) < 1e-9 ? 1.0 / log_n : excess / (1.0 - cera_sampler_exp_f64(-excess * log_n));
    const double k = cera_sampler_exp_f64((cera_sampler_log(tail) + s->mu * ln2) / exponent);
    return k < 1.0 ? 1 : k >= (double)c->n ? c->n : (int)k;
}

/* Mirostat 2: candidates whose surprise is at most mu bits. */
static void keep_unsurprising(cera_sampler *s, cera_candidates *c) {
    const float max = cera_sampler_max(c);
    const double least = cera_sampler_log(cera_sampler_weights(c, max, s->weight)) - s->mu * ln2; /* of logit - max */
    if (least > 0.0)
        cera_sampler_keep_largest(s, c, 1);
    else
        cera_sampler_keep_from(s, c, (float)((double)max + least));
}

static void start(cera_sampler *s) {
    if (s->carries && s->next_position == s->position) return;
    const double decay = (double)s->options.adaptive_decay, target = (double)s->options.adaptive_target;
    s->mu = 2.0 * (double)s->options.mirostat_tau;
    s->weighted_sum = target / (1.0 - decay);
    s->total_weight = 1.0 / (1.0 - decay);
}

static void carry_on(cera_sampler *s) {
    s->carries = true;
    s->next_position = s->position + 1;
}

int cera_sampler_mirostat(cera_sampler *s, cera_candidates *c, double u) {
    start(s);
    if (s->options.mirostat == 2) {
        keep_unsurprising(s, c);
    } else if (c->n > 1) {
        cera_sampler_keep_largest(s, c, c->n < s->n_vocab ? c->n : s->n_vocab);
        cera_sampler_keep_largest(s, c, zipf_k(s, c));
    }
    const int at = cera_sampler_draw(s, c, u);
    const float max = cera_sampler_max(c);
    const double log_p = (double)(c->logit[at] - max) - cera_sampler_log(cera_sampler_weights(c, max, s->weight));
    s->mu -= (double)s->options.mirostat_eta * (-log_p / ln2 - (double)s->options.mirostat_tau);
    carry_on(s);
    return at;
}

/* ---- adaptive-p ---- */

/* Logits are replaced by a hill around the probability that is aimed at: 5 at the top, falling with the square of the distance
 * near it and linearly far away, in units of 0.3. The aim moves against the running mean of the probabilities that were chosen.
 */
int cera_sampler_adaptive(cera_sampler *s, cera_candidates *c, double u) {
    start(s);
    const double sum = cera_sampler_weights(c, cera_sampler_max(c), s->weight);
    double aim = 2.0 * (double)s->options.adaptive_target - s->weighted_sum / s->total_weight;
    aim = aim < 0.0 ? 0.0 : aim > 1.0 ? 1.0 : aim;
    for (int i = 0; i < c->n; i++) {
        s->pick_weight[i] = (float)((double)s->weight[i] / sum);
        const double distance = fabs((double)s->pick_weight[i] - aim) / 0.3;
        if (c->logit[i] != -INFINITY) c->logit[i] = (float)(5.0 - 10.0 * distance * distance / (1.0 + distance));
    }
    c->sorted = false;
    const int at = cera_sampler_draw(s, c, u);
    const double decay = (double)s->options.adaptive_decay;
    s->weighted_sum = (double)s->pick_weight[at] + decay * s->weighted_sum;
    s->total_weight = 1.0 + decay * s->total_weight;
    carry_on(s);
    return at;
}
