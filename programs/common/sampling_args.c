/* sampling_args.c: see sampling_args.h. */
#include "common/sampling_args.h"

#include <stdlib.h>
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
        {"--samplers", "A;B;...",
         "order of the stages; those left out do not run; default: penalties;dry;top_n_sigma;top_k;"
         "typical_p;top_p;min_p;xtc;temperature",
         CERA_ARG_TEXT, (void *)&o->samplers, 0, 0, NULL},
        {"--logit-bias", "ID+B | ID-B", "add B to (take it off) a token's logit; ID-inf: never; may be repeated", CERA_ARG_LIST,
         &s->biases, 0, 0, NULL},
        {"--dry-multiplier", "F", "DRY: strength of the penalty on repetitions; 0: off, the default", CERA_ARG_F32,
         &o->dry_multiplier, 0, 1e6, NULL},
        {"--dry-base", "F", "DRY: growth with each repeated token; default 1.75", CERA_ARG_F32, &o->dry_base, 0, 1e6, NULL},
        {"--dry-allowed-length", "N", "DRY: repetitions shorter than this are free; default 2", CERA_ARG_I32,
         &o->dry_allowed_length, 1, INT32_MAX, NULL},
        {"--dry-penalty-last-n", "N", "DRY: tokens that are looked at; -1: all, the default", CERA_ARG_I32, &o->dry_last_n, -1,
         INT32_MAX, NULL},
        {"--dry-sequence-breaker", "TEXT",
         "DRY: tokens that hold TEXT end a repetition; may be repeated; none: no breakers; "
         "default: line feed, colon, quote, asterisk",
         CERA_ARG_LIST, &s->breakers, 0, 0, NULL},
        {"--top-n-sigma", "N", "keep logits within N standard deviations of the best; 0: off, the default", CERA_ARG_F32,
         &o->top_n_sigma, 0, 1e6, NULL},
        {"--typical --typical-p", "P", "keep the most typical that reach probability P; 1: off, the default", CERA_ARG_F32,
         &o->typical_p, 0, 1, NULL},
        {"--xtc-probability", "P", "how often XTC drops the top choices; 0: off, the default", CERA_ARG_F32,
         &o->xtc_probability, 0, 1, NULL},
        {"--xtc-threshold", "P", "XTC: probability that makes a top choice; default 0.1", CERA_ARG_F32, &o->xtc_threshold, 0, 1,
         NULL},
        {"--dynatemp-range", "R", "temperature +- R by entropy; 0: off, the default", CERA_ARG_F32, &o->dynatemp_range, 0, 1e6,
         NULL},
        {"--dynatemp-exp", "X", "exponent of the entropy; default 1", CERA_ARG_F32, &o->dynatemp_exponent, 0, 1e3, NULL},
        {"--mirostat", "N", "1 or 2: mirostat, with temperature and nothing else; 0: off, the default", CERA_ARG_I32,
         &o->mirostat, 0, 2, NULL},
        {"--mirostat-ent", "T", "surprise in bits that mirostat aims at; default 5", CERA_ARG_F32, &o->mirostat_tau, 0, 1e3,
         NULL},
        {"--mirostat-lr", "E", "mirostat's rate of learning; default 0.1", CERA_ARG_F32, &o->mirostat_eta, 0, 1, NULL},
        {"--adaptive-target", "P", "adaptive-p: choose tokens of about this probability; 0: off, the default", CERA_ARG_F32,
         &o->adaptive_target, 0, 1, NULL},
        {"--adaptive-decay", "D", "adaptive-p: weight of the past; default 0.9", CERA_ARG_F32, &o->adaptive_decay, 0, 0.99,
         NULL},
    };
    memset(s->rows, 0, sizeof s->rows);
    memcpy(s->rows, rows, sizeof rows);
    return (cera_arg_table){s->rows, "sampling"};
}

static uint64_t some_seed(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return ((uint64_t)t.tv_nsec * 2654435761u ^ (uint64_t)t.tv_sec << 20 ^ (uint64_t)getpid() << 40) %
           1000000007u; /* short to type again */
}

/* ---- lists ---- */

/* "15+2.5", "15-1", "15-inf". */
static bool parse_bias(const char *text, cera_logit_bias *out) {
    char *end;
    const long id = strtol(text, &end, 10);
    if (end == text || id < 0 || id > INT32_MAX || (*end != '+' && *end != '-')) return false;
    const char *number = end;
    const double bias = strtod(number, &end);
    if (end == number || *end != 0 || !(bias < 1e30)) return false;
    *out = (cera_logit_bias){(int32_t)id, (float)bias};
    return true;
}

static bool holds(const char *text, size_t n, const char *part) {
    const size_t size = strlen(part);
    for (size_t i = 0; size > 0 && i + size <= n; i++)
        if (memcmp(text + i, part, size) == 0) return true;
    return false;
}

/* Tokens whose text holds one of the breakers; heap memory (free). */
static int32_t *breaker_tokens(const cera_arg_list *texts, const cera_tokenizer *t, size_t *n) {
    static const cera_arg_list standard = {{"\n", ":", "\"", "*"}, 4};
    if (texts->n == 0) texts = &standard;
    const int32_t size = cera_tokenizer_size(t);
    int32_t *ids = malloc(((size_t)size + 1) * sizeof *ids);
    *n = 0;
    for (int32_t id = 0; ids && id < size; id++) {
        size_t length = 0;
        const char *piece = cera_tokenizer_piece(t, id, true, &length);
        bool found = false;
        for (size_t i = 0; piece && !found && i < texts->n; i++)
            found = strcmp(texts->items[i], "none") != 0 && holds(piece, length, texts->items[i]);
        if (found) ids[(*n)++] = id;
    }
    return ids;
}

/* ---- the sampler ---- */

/* Options that are off unless a flag says so: nothing but the flags sets them. */
static void take_plain(cera_sampler_options *used, const cera_sampler_options *f) {
    used->samplers = f->samplers;
    used->dry_multiplier = f->dry_multiplier;
    used->dry_base = f->dry_base;
    used->dry_allowed_length = f->dry_allowed_length;
    used->dry_last_n = f->dry_last_n;
    used->top_n_sigma = f->top_n_sigma;
    used->typical_p = f->typical_p;
    used->xtc_probability = f->xtc_probability;
    used->xtc_threshold = f->xtc_threshold;
    used->dynatemp_range = f->dynatemp_range;
    used->dynatemp_exponent = f->dynatemp_exponent;
    used->mirostat = f->mirostat;
    used->mirostat_tau = f->mirostat_tau;
    used->mirostat_eta = f->mirostat_eta;
    used->adaptive_target = f->adaptive_target;
    used->adaptive_decay = f->adaptive_decay;
}

static void take_given(cera_sampler_options *used, const cera_sampling_args *s) {
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
}

int cera_sampling_args_create(const cera_sampling_args *s, const cera_engine *engine, cera_sampler_options *used,
                              cera_sampler **out) {
    cera_error e = {0};
    cera_model_info info = {.size = sizeof info};
    *used = (cera_sampler_options){.size = sizeof *used};
    if (cera_engine_info(engine, &info, &e) != CERA_OK || cera_sampler_defaults(engine, used, &e) != CERA_OK)
        return cera_report(&e);
    take_plain(used, &s->flags);
    take_given(used, s);
    used->choice = s->choice;
    cera_logit_bias biases[CERA_SAMPLING_ARGS_BIASES];
    for (size_t i = 0; i < s->biases.n; i++)
        if (!parse_bias(s->biases.items[i], &biases[i]))
            return cera_args_usage_error("--logit-bias: \"%s\" is not like 15+2.5, 15-1 or 15-inf", s->biases.items[i]);
    used->logit_bias = biases;
    used->n_logit_bias = s->biases.n;
    int32_t *breakers = NULL;
    if (used->dry_multiplier > 0.0f) {
        breakers = breaker_tokens(&s->breakers, cera_engine_tokenizer(engine), &used->n_dry_breakers);
        used->dry_breakers = breakers;
    }
    const cera_status status = cera_sampler_create(used, info.n_vocab, out, &e);
    free(breakers);
    used->logit_bias = NULL; /* the sampler has copies */
    used->dry_breakers = NULL;
    used->n_logit_bias = used->n_dry_breakers = 0;
    return status == CERA_OK ? -1 : cera_report(&e);
}
