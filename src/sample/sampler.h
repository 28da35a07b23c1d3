/* sampler.h: from a row of logits to one token. The chain's stages work on a list of candidates; each is one function of
 * sampler_stages.c, sampler_entropy.c or sampler_dry.c and one line of the table in sampler.c. Public functions: cera.h.
 *
 * Purity: nothing here counts draws. What a stage needs to know of the past it reads from the history, and randomness is
 * f(seed, choice, position). Arithmetic is our own exp and log over plain IEEE operations, so that a seed gives the same tokens
 * on every platform and tier. */
#ifndef CERA_SAMPLE_SAMPLER_H
#define CERA_SAMPLE_SAMPLER_H

#include "base/status.h"

/* The candidates that are left: logits and ids, apart so that loops over logits vectorise. While `identity` holds, id i is i
 * and `id` has not been written: the first stage that drops or reorders candidates writes it. A logit is finite or -infinity.
 */
typedef struct cera_candidates {
    float *logit; /* [n] f32 */
    int32_t *id;  /* [n] */
    int n;
    bool identity; /* all of the vocabulary, in its order */
    bool sorted;   /* largest logit first, ties by lowest id */
} cera_candidates;

/* Temperatures below this are greedy: 1 / temperature must stay far from overflow, and no difference of logits that f32
 * resolves near 1 would leave the runner-up a chance. */
#define CERA_SAMPLER_GREEDY_BELOW 1e-5f

enum { CERA_SAMPLER_BLOCK = 64 }; /* candidates that share one maximum in a selection, one partial sum in a draw */

typedef struct cera_sampler cera_sampler;
typedef void (*cera_sampler_stage)(cera_sampler *s, cera_candidates *c);

enum { CERA_SAMPLER_MAX_STAGES = 16 };

struct cera_sampler {
    cera_sampler_options options; /* with defaults in place; its pointers are ours */
    int n_vocab;
    cera_sampler_stage stages[CERA_SAMPLER_MAX_STAGES];
    int n_stages;
    /* What mirostat and adaptive-p carry on; it stands before next_position. */
    bool carries;
    uint64_t next_position;
    double mu, weighted_sum, total_weight;
    const int32_t *history; /* of the call that runs */
    size_t n_history;
    uint64_t position;
    /* Scratch, all [n_vocab] unless said otherwise. */
    float *logit, *pick_logit, *weight;
    float *pick_weight;
    int32_t *id, *pick_id;
    int32_t *counts;  /* zero between calls */
    float *block_max; /* [n_vocab / CERA_SAMPLER_BLOCK + 1], and as many more to select in */
    int32_t *run;     /* [run_capacity] DRY: lengths of repetitions */
    size_t run_capacity;
};

/* sampler_stages.c */
void cera_sampler_bias(cera_sampler *s, cera_candidates *c);
void cera_sampler_penalties(cera_sampler *s, cera_candidates *c);
void cera_sampler_top_k(cera_sampler *s, cera_candidates *c);
void cera_sampler_top_p(cera_sampler *s, cera_candidates *c);
void cera_sampler_min_p(cera_sampler *s, cera_candidates *c);
void cera_sampler_top_n_sigma(cera_sampler *s, cera_candidates *c);
void cera_sampler_temperature(cera_sampler *s, cera_candidates *c);

/* sampler_dry.c */
bool cera_sampler_dry_reserve(cera_sampler *s); /* room for the history of the call that runs */
void cera_sampler_dry(cera_sampler *s, cera_candidates *c);

/* sampler_entropy.c: stages that look at probabilities and surprise */
void cera_sampler_typical_p(cera_sampler *s, cera_candidates *c);
void cera_sampler_xtc(cera_sampler *s, cera_candidates *c);
double cera_sampler_dynamic_temperature(const cera_sampler *s, const cera_candidates *c);
/* Draws that replace the last one; u in [0, 1). Return the candidate's index. */
int cera_sampler_mirostat(cera_sampler *s, cera_candidates *c, double u);
int cera_sampler_adaptive(cera_sampler *s, cera_candidates *c, double u);

/* sampler_list.c: what stages are made of */
/* Copies n logits, those that are not finite as -infinity; returns the largest. */
float cera_sampler_take_logits(float *out, const float *logits, int n);
float cera_sampler_max(const cera_candidates *c); /* -infinity when c is empty or has no finite logit */
/* Keeps the k largest, sorted. k >= n sorts. */
void cera_sampler_keep_largest(cera_sampler *s, cera_candidates *c, int k);
/* The k largest and perhaps some more, sorted, into pick_logit and pick_id; returns how many. The list is not changed; weight
 * is used as scratch. cera_sampler_take then makes the first n of them the list. */
int cera_sampler_pick_largest(cera_sampler *s, const cera_candidates *c, int k);
void cera_sampler_take(cera_sampler *s, cera_candidates *c, int n);
/* Keeps the fewest largest whose weights reach share p of all, in the order of the list. */
void cera_sampler_keep_reaching(cera_sampler *s, cera_candidates *c, float p);
/* Keeps the candidates for which keep[i] is not negative. */
void cera_sampler_keep_marked(cera_candidates *c, const float *keep);
/* Sorts n pairs, largest key first, ties by lowest id. */
void cera_sampler_sort(float *key, int32_t *id, int n);
/* Keeps the logits >= threshold, in order. */
void cera_sampler_keep_from(cera_sampler *s, cera_candidates *c, float threshold);
/* weight[i] = exp(logit[i] - max), and their sum. */
double cera_sampler_weights(const cera_candidates *c, float max, float *weight);
/* Index of the candidate that holds share u in [0, 1) of the weights, in the order of the list. */
int cera_sampler_draw(cera_sampler *s, const cera_candidates *c, double u);

/* sampler_list.c: exp for x <= 0 (0 below -87), relative error under 2e-7; natural log for x > 0, under 1e-15. */
float cera_sampler_exp(float x);
double cera_sampler_exp_f64(double x); /* any x; relative error under 1e-14 */
double cera_sampler_log(double x);

#endif
