/* sampling_args.c: see sampling_args.h. */
#include "common/sampling_args.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/model_args.h"

/* Rows in the order of `given`. */
enum { TEMPERATURE, TOP_K, TOP_P, MIN_P, REPEAT, FREQUENCY, PRESENCE, LAST_N, SEED };

cera_arg_table cera_sampling_args_table(cera_sampling_args *s) {
    cera_sampler_options *o = &s->flags;
    bool *g = s->given;
    const cera_arg rows[] = {
        {"--temp --temperature", "T", "0: the most probable token always; default 0.8", CERA_ARG_F32, &o->temperature, 0, 1e6,
         &g[TEMPERATURE]},
        {"--top-k", "N", "keep the N most probable; 0: off; default 40", CERA_ARG_I32, &o->top_k, 0, INT32_MAX, &g[TOP_K]},
        {"--top-p", "P", "keep the fewest that reach probability P; 1: off; default 0.95", CERA_ARG_F32, &o->top_p, 0, 1,
         &g[TOP_P]},
        {"--min-p", "P", "keep those at least P times as probable as the best; 0: off; default 0.05", CERA_ARG_F32, &o->min_p,
         0, 1, &g[MIN_P]},
        {"--repeat-penalty", "R", "divide logits of recent tokens by R; 1: off, the default", CERA_ARG_F32, &o->repeat_penalty,
         1e-3, 1e3, &g[REPEAT]},
        {"--frequency-penalty", "F", "take F times a recent token's count off its logit; default 0", CERA_ARG_F32,
         &o->frequency_penalty, -1e3, 1e3, &g[FREQUENCY]},
        {"--presence-penalty", "F", "take F off the logits of recent tokens; default 0", CERA_ARG_F32, &o->presence_penalty,
         -1e3, 1e3, &g[PRESENCE]},
        {"--repeat-last-n", "N", "tokens that count as recent, prompt included; -1: all; default 64", CERA_ARG_I32,
         &o->penalty_last_n, -1, INT32_MAX, &g[LAST_N]},
        {"-s --seed", "S", "the same seed gives the same text; default: another one each time", CERA_ARG_U64, &o->seed, 0, 0,
         &g[SEED]},
    };
    memset(s->rows, 0, sizeof s->rows);
    memcpy(s->rows, rows, sizeof rows);
    return (cera_arg_table){s->rows, "sampling (penalties, top-k, top-p, min-p, temperature, in this order)"};
}

static uint64_t some_seed(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return ((uint64_t)t.tv_nsec * 2654435761u ^ (uint64_t)t.tv_sec << 20 ^ (uint64_t)getpid() << 40) %
           1000000007u; /* short to type again */
}

int cera_sampling_args_create(const cera_sampling_args *s, const cera_engine *engine, cera_sampler_options *used,
                              cera_sampler **out) {
    cera_error e = {0};
    cera_model_info info = {.size = sizeof info};
    *used = (cera_sampler_options){.size = sizeof *used};
    if (cera_engine_info(engine, &info, &e) != CERA_OK || cera_sampler_defaults(engine, used, &e) != CERA_OK)
        return cera_report(&e);
    const cera_sampler_options *f = &s->flags;
    if (s->given[TEMPERATURE]) used->temperature = f->temperature;
    if (s->given[TOP_K]) used->top_k = f->top_k;
    if (s->given[TOP_P]) used->top_p = f->top_p;
    if (s->given[MIN_P]) used->min_p = f->min_p;
    if (s->given[REPEAT]) used->repeat_penalty = f->repeat_penalty;
    if (s->given[FREQUENCY]) used->frequency_penalty = f->frequency_penalty;
    if (s->given[PRESENCE]) used->presence_penalty = f->presence_penalty;
    if (s->given[LAST_N]) used->penalty_last_n = f->penalty_last_n;
    used->seed = s->given[SEED] ? f->seed : some_seed();
    return cera_sampler_create(used, info.n_vocab, out, &e) == CERA_OK ? -1 : cera_report(&e);
}
