/* cmd_logits.c: `cera logits`: the model's output for given tokens, as raw f32 or as a readable list. The cache is f32 unless
 * told, so that what is measured is the model's arithmetic. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"
#include "common/signals.h"

enum { MAX_TOP = 1000 };

typedef struct {
    cera_model_args model;
    const char *token_ids, *raw;
    bool all;
    int32_t top;
    cera_engine *engine;
    cera_session *session;
    int *ids;
    size_t n_ids;
    int32_t n_vocab;
    FILE *out;
    int write_error; /* errno */
} logits_command;

static int parse(logits_command *l, int argc, char **argv) {
    const cera_arg rows[] = {
        {"--token-ids", "LIST", "tokens, separated by commas", CERA_ARG_TEXT, (void *)&l->token_ids, 0, 0, NULL},
        {"--all", NULL, "the rows of all tokens; default: of the last", CERA_ARG_BOOL, &l->all, 0, 0, NULL},
        {"--raw", "OUT", "write f32 [tokens][vocabulary] to a file (-: stdout)", CERA_ARG_TEXT, (void *)&l->raw, 0, 0, NULL},
        {"--top", "N", "without --raw: how many tokens to list; default 10", CERA_ARG_I32, &l->top, 1, MAX_TOP, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "logits"}, cera_model_args_table(&l->model), {0}};
    const cera_command_line line = {
        .command = "logits",
        .usage = "cera logits -m MODEL --token-ids 1,2,3 [--all] [--raw OUT] [flags]",
        .summary = "Evaluates the tokens and gives the model's logits. The cache is f32 unless --kv-type-k and --kv-type-v say "
                   "otherwise.",
        .tables = tables,
    };
    l->top = 10;
    l->model.options.kv_k = l->model.options.kv_v = CERA_KV_DTYPE_F32;
    int status = cera_args_parse(&line, argc, argv);
    if (status >= 0) return status;
    if (!l->token_ids) return cera_args_usage_error("--token-ids is needed");
    status = cera_input_ids("--token-ids", l->token_ids, strlen(l->token_ids), &l->ids, &l->n_ids);
    if (status < 0 && l->n_ids == 0) return cera_args_usage_error("--token-ids is empty");
    return status;
}

/* ---- output ---- */

typedef struct {
    float logit;
    int32_t id;
} entry;

static int by_logit(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static double log_sum(const float *row, int n) {
    double max = -INFINITY, sum = 0.0;
    for (int i = 0; i < n; i++) max = (double)row[i] > max ? (double)row[i] : max;
    for (int i = 0; i < n; i++) sum += exp((double)row[i] - max);
    return max + log(sum);
}

/* "index id -> id logit probability text" lines, best first. */
static void list_row(const logits_command *l, int32_t index, const float *row) {
    entry *t = malloc((size_t)l->n_vocab * sizeof *t);
    if (!t) return;
    for (int32_t i = 0; i < l->n_vocab; i++) t[i] = (entry){row[i], i};
    qsort(t, (size_t)l->n_vocab, sizeof *t, by_logit);
    const double norm = log_sum(row, l->n_vocab);
    printf("token %d: %d\n", (int)index, l->ids[index]);
    for (int32_t i = 0; i < l->top && i < l->n_vocab; i++) {
        size_t n = 0;
        const char *text = cera_tokenizer_piece(cera_engine_tokenizer(l->engine), t[i].id, true, &n);
        printf("  %8d %12.6f %9.6f  ", (int)t[i].id, (double)t[i].logit, exp((double)t[i].logit - norm));
        cera_output_printable(stdout, text ? text : "", n, 40);
        putchar('\n');
    }
    free(t);
}

static void on_logits(void *ctx, int32_t first, int32_t n, const float *logits) {
    logits_command *l = ctx;
    const size_t width = (size_t)l->n_vocab;
    if (!l->all) return;
    if (!l->out)
        for (int32_t i = 0; i < n; i++) list_row(l, first + i, logits + (size_t)i * width);
    else if (l->write_error == 0 && fwrite(logits, sizeof *logits, (size_t)n * width, l->out) != (size_t)n * width)
        l->write_error = errno != 0 ? errno : EIO;
}

static void last_row(logits_command *l) {
    const float *row = cera_session_logits(l->session);
    if (!l->out)
        list_row(l, (int32_t)l->n_ids - 1, row);
    else if (fwrite(row, sizeof *row, (size_t)l->n_vocab, l->out) != (size_t)l->n_vocab)
        l->write_error = errno != 0 ? errno : EIO;
}

static int close_output(logits_command *l) {
    if (!l->out) return CERA_EXIT_OK;
    const int failed = l->out == stdout ? fflush(stdout) : fclose(l->out);
    if (failed && l->write_error == 0) l->write_error = errno;
    if (l->write_error == 0) return CERA_EXIT_OK;
    fprintf(stderr, "cera: %s: %s\n", l->raw, strerror(l->write_error));
    return CERA_EXIT_FAILED;
}

static int evaluate(logits_command *l) {
    cera_error e = {0};
    if (cera_session_create(l->engine, NULL, &l->session, &e) != CERA_OK) return cera_report(&e);
    if (l->raw) l->out = strcmp(l->raw, "-") == 0 ? stdout : fopen(l->raw, "wb");
    if (l->raw && !l->out) {
        fprintf(stderr, "cera: %s: %s\n", l->raw, strerror(errno));
        return CERA_EXIT_FAILED;
    }
    cera_signals_watch(l->session);
    const cera_status status = cera_session_append_with(l->session, l->ids, l->n_ids, l->all ? on_logits : NULL, l, &e);
    cera_signals_watch(NULL);
    if (status == CERA_OK && !l->all) last_row(l);
    const int closed = close_output(l);
    return status == CERA_OK ? closed : cera_report(&e);
}

static int run(logits_command *l) {
    /* The context is what is used: families that choose RoPE factors by it take those for a text of this length. */
    if (l->model.options.context == 0) l->model.options.context = (int32_t)l->n_ids;
    const int status = cera_model_args_open(&l->model, &l->engine);
    if (status >= 0) return status;
    cera_error e = {0};
    cera_model_info info = {.size = sizeof info};
    if (cera_engine_info(l->engine, &info, &e) != CERA_OK) return cera_report(&e);
    l->n_vocab = info.n_vocab;
    return evaluate(l);
}

int cera_cmd_logits(int argc, char **argv) {
    static logits_command l;
    int status = parse(&l, argc, argv);
    if (status < 0) status = run(&l);
    free(l.ids);
    cera_session_destroy(l.session);
    cera_engine_close(l.engine);
    return status;
}
