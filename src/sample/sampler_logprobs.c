/* sampler_logprobs.c: logarithms of the probabilities that a model's logits mean, before any sampling. */
#include "sample/sampler.h"

#include <math.h>

static bool finite_f32(float x) { return fabsf(x) <= 3.402823466e38f; }

/* Insertion into a short list that stays sorted: best first, ties by lowest id. */
static void insert(cera_logprob *top, size_t *n, size_t capacity, int32_t token, float logit) {
    if (*n == capacity && !(logit > top[*n - 1].logprob)) return;
    size_t at = *n < capacity ? (*n)++ : *n - 1;
    for (; at > 0 && top[at - 1].logprob < logit; at--) top[at] = top[at - 1];
    top[at] = (cera_logprob){token, logit};
}

cera_status cera_logprobs(const float *logits, int32_t n_vocab, int32_t token, float *chosen, cera_logprob *top, size_t n_top,
                          cera_error *e) {
    if (!logits || (n_top > 0 && !top))
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_logprobs: logits and top must not be NULL");
    if (n_vocab < 1 || n_top > (size_t)n_vocab || (chosen && (token < 0 || token >= n_vocab)))
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_logprobs: token %d or %zu tokens of a vocabulary of %d", (int)token, n_top,
                         (int)n_vocab);
    float max = -INFINITY;
    for (int32_t i = 0; i < n_vocab; i++) max = finite_f32(logits[i]) && logits[i] > max ? logits[i] : max;
    if (max == -INFINITY) return cera_fail(e, CERA_ERR_NUMERIC, "cera_logprobs: none of the %d logits is finite", (int)n_vocab);
    double sum = 0.0;
    size_t n = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (!finite_f32(logits[i])) continue;
        sum += (double)cera_sampler_exp(logits[i] - max);
        if (n_top > 0) insert(top, &n, n_top, i, logits[i]);
    }
    const double log_sum = cera_sampler_log(sum);
    for (size_t i = 0; i < n; i++) top[i].logprob = (float)((double)(top[i].logprob - max) - log_sum);
    for (; n < n_top; n++) top[n] = (cera_logprob){-1, -INFINITY};
    if (chosen) *chosen = finite_f32(logits[token]) ? (float)((double)(logits[token] - max) - log_sum) : -INFINITY;
    return CERA_OK;
}
