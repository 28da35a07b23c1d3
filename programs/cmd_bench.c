/* cmd_bench.c: `cera bench`: prompt and generation speed, load time, memory; with --profile the time of each operation beside
 * the machine's memory bandwidth. Tokens are pseudo-random and the same every time. Runs nothing but steps: no sampling, no
 * text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "commands.h"
#include "common/model_args.h"
#include "common/output.h"
#include "common/roof.h"
#include "common/signals.h"

enum { MAX_RUNS = 1000, MAX_SEQS = 1024 };

typedef struct {
    cera_model_args model;
    int32_t p, n, d, r, seqs;
    bool json, profile;
    cera_engine *engine;
    cera_model_info info;
    cera_session *sessions[MAX_SEQS];
    cera_batch_row *rows; /* [seqs], of a decode step */
    double prompt_tok_s[MAX_RUNS], generate_tok_s[MAX_RUNS];
    double load_ms, first_token_ms, peak_mib, roof;
} bench_command;

static int parse(bench_command *b, int argc, char **argv) {
    const cera_arg rows[] = {
        {"-p --prompt-tokens", "N", "prompt tokens of a run; 0: none; default 512", CERA_ARG_I32, &b->p, 0, 1 << 28, NULL},
        {"-n --gen-tokens", "N", "generated tokens of a run; 0: none; default 128", CERA_ARG_I32, &b->n, 0, 1 << 28, NULL},
        {"-d --depth", "N", "tokens that are in the cache already; default 0", CERA_ARG_I32, &b->d, 0, 1 << 28, NULL},
        {"-r --runs", "N", "runs; the median counts; default 5", CERA_ARG_I32, &b->r, 1, MAX_RUNS, NULL},
        {"--seqs", "N", "sequences that generate in the same step; default 1", CERA_ARG_I32, &b->seqs, 1, MAX_SEQS, NULL},
        {"--profile", NULL, "time of each operation, beside the memory bandwidth", CERA_ARG_BOOL, &b->profile, 0, 0, NULL},
        {"--json", NULL, "one JSON object", CERA_ARG_BOOL, &b->json, 0, 0, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "measurement"}, cera_model_args_table(&b->model), {0}};
    const cera_command_line line = {
        .command = "bench",
        .usage = "cera bench -m MODEL [-p 512] [-n 128] [-d 0] [-t N] [-r 5] [--seqs N] [--profile] [--json]",
        .summary = "Measures evaluation of a prompt of -p tokens and generation of -n tokens, each from a cache of -d tokens.\n"
                   "first_token_ms is the first run's time from the prompt to its logits, with a cold cache.",
        .tables = tables,
    };
    b->p = 512, b->n = 128, b->r = 5, b->seqs = 1;
    const int status = cera_args_parse(&line, argc, argv);
    if (status < 0 && b->p == 0 && b->n == 0) return cera_args_usage_error("-p and -n are both 0: nothing to measure");
    return status;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The i-th token of a sequence: a multiplicative hash, so that no row of the embedding table stays in cache by accident. */
static int32_t token_at(const bench_command *b, int seq, int64_t i) {
    uint64_t x = ((uint64_t)seq << 32) + (uint64_t)i + 1;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return (int32_t)((x >> 33) % (uint64_t)b->info.n_vocab);
}

static cera_status append(bench_command *b, int seq, int32_t n, cera_error *e) {
    int32_t *ids = malloc((size_t)(n > 0 ? n : 1) * sizeof *ids);
    if (!ids) {
        snprintf(e->message, sizeof e->message, "out of memory for %d tokens", (int)n);
        return e->code = CERA_ERR_MEMORY;
    }
    const int32_t at = cera_session_position(b->sessions[seq]);
    for (int32_t i = 0; i < n; i++) ids[i] = token_at(b, seq, at + i);
    const cera_status status = n > 0 ? cera_session_append(b->sessions[seq], ids, (size_t)n, e) : CERA_OK;
    free(ids);
    return status;
}

/* Every session at depth d. A session that cannot go back all the way (a window, a state) evaluates what is missing. */
static cera_status to_depth(bench_command *b, cera_error *e) {
    for (int s = 0; s < b->seqs; s++) {
        int32_t kept = cera_session_position(b->sessions[s]);
        if (kept > b->d && cera_session_rewind(b->sessions[s], b->d, &kept, e) != CERA_OK) return e->code;
        const cera_status status = append(b, s, b->d - kept, e);
        if (status != CERA_OK) return status;
    }
    return CERA_OK;
}

static void ignore_logits(void *ctx, const int32_t *rows, int32_t n, const float *logits) {
    (void)ctx, (void)rows, (void)n, (void)logits;
}

/* One token of every sequence, in one step. */
static cera_status decode(bench_command *b, cera_error *e) {
    for (int s = 0; s < b->seqs; s++) {
        const int32_t at = cera_session_position(b->sessions[s]);
        b->rows[s] = (cera_batch_row){
            .token = token_at(b, s, at),
            .ticket = -1,
            .position = {at, at, at, at},
            .index = at,
            .visible_end = at + 1,
            .session = s,
            .adapter = -1,
            .want = CERA_ROW_LOGITS,
        };
    }
    const cera_batch batch = {
        .size = sizeof batch,
        .rows = b->rows,
        .n_rows = b->seqs,
        .sessions = b->sessions,
        .n_sessions = b->seqs,
        .cancel_on = b->sessions[0],
        .on_logits = ignore_logits,
    };
    return cera_engine_step(b->engine, &batch, NULL, e);
}

static cera_status one_run(bench_command *b, int run, cera_error *e) {
    cera_status status = CERA_OK;
    if (b->p > 0) {
        status = to_depth(b, e);
        const double start = now_s();
        for (int s = 0; s < b->seqs && status == CERA_OK; s++) status = append(b, s, b->p, e);
        const double took = now_s() - start;
        b->prompt_tok_s[run] = (double)b->p * b->seqs / took;
        if (run == 0) b->first_token_ms = took * 1e3 / b->seqs;
    }
    if (b->n > 0 && status == CERA_OK) {
        status = to_depth(b, e);
        const double start = now_s();
        for (int32_t i = 0; i < b->n && status == CERA_OK; i++) status = decode(b, e);
        b->generate_tok_s[run] = (double)b->n * b->seqs / (now_s() - start);
    }
    return status;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* (largest - smallest) / median, of values that median has sorted. */
static double spread(const double *v, int n, double middle) { return middle > 0 ? (v[n - 1] - v[0]) / middle : 0.0; }

static double peak_mib(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss / 1024.0 : 0.0;
}

static void profile_json(const bench_command *b) {
    printf(", \"read_gb_s\": %.2f, \"profile\": [", b->roof / 1e9);
    for (int32_t i = 0; i < cera_engine_n_profile_rows(b->engine); i++) {
        cera_profile_row p = {.size = sizeof p};
        if (cera_engine_profile_row(b->engine, i, &p, NULL) != CERA_OK) continue;
        fputs(i > 0 ? ", {\"what\": " : "{\"what\": ", stdout);
        cera_output_json_string(stdout, p.what, strlen(p.what));
        printf(", \"op\": \"%s\", \"layer\": %d, \"kernel\": ", p.op, (int)p.layer);
        cera_output_json_string(stdout, p.kernel ? p.kernel : "", p.kernel ? strlen(p.kernel) : 0);
        printf(", \"runs\": %llu, \"seconds\": %.9f, \"bytes\": %.0f, \"macs\": %.0f}", (unsigned long long)p.runs, p.seconds,
               p.bytes, p.macs);
    }
    putchar(']');
}

static void profile_text(const bench_command *b) {
    double total = 0.0;
    for (int32_t i = 0; i < cera_engine_n_profile_rows(b->engine); i++) {
        cera_profile_row p = {.size = sizeof p};
        if (cera_engine_profile_row(b->engine, i, &p, NULL) == CERA_OK) total += p.seconds;
    }
    printf("\n%-36s %-28s %8s %10s %6s %8s %8s %9s\n", "operation", "kernel", "runs", "ms", "%", "GB/s", "of roof", "GFLOP/s");
    for (int32_t i = 0; i < cera_engine_n_profile_rows(b->engine); i++) {
        cera_profile_row p = {.size = sizeof p};
        if (cera_engine_profile_row(b->engine, i, &p, NULL) != CERA_OK) continue;
        const double s = p.seconds > 0 ? p.seconds : 1e-12;
        printf("%-36s %-28s %8llu %10.3f %6.2f %8.2f %7.0f%% %9.1f\n", p.what, p.kernel ? p.kernel : "",
               (unsigned long long)p.runs, p.seconds * 1e3, total > 0 ? 100 * p.seconds / total : 0.0, p.bytes / s / 1e9,
               b->roof > 0 ? 100 * p.bytes / s / b->roof : 0.0, 2 * p.macs / s / 1e9);
    }
    printf("memory bandwidth of a plain read loop: %.1f GB/s\n", b->roof / 1e9);
}

static void show(bench_command *b) {
    const double prompt = b->p > 0 ? median(b->prompt_tok_s, b->r) : 0.0,
                 generate = b->n > 0 ? median(b->generate_tok_s, b->r) : 0.0;
    const double prompt_spread = spread(b->prompt_tok_s, b->r, prompt),
                 generate_spread = spread(b->generate_tok_s, b->r, generate);
    const cera_model_info *m = &b->info;
    if (b->json) {
        fputs("{\"model\": ", stdout);
        cera_output_json_string(stdout, m->path, strlen(m->path));
        printf(", \"arch\": \"%s\", \"prompt_tok_s\": %.3f, \"generate_tok_s\": %.3f", m->arch, prompt, generate);
        printf(", \"prompt_spread\": %.4f, \"generate_spread\": %.4f", prompt_spread, generate_spread);
        printf(", \"load_ms\": %.3f, \"first_token_ms\": %.3f, \"rss_mib\": %.1f", b->load_ms, b->first_token_ms, b->peak_mib);
        printf(", \"threads\": %d, \"tier\": \"%s\", \"kv_type_k\": \"%s\", \"kv_type_v\": \"%s\"", (int)m->threads, m->tier,
               cera_kv_dtype_name(m->kv_k), cera_kv_dtype_name(m->kv_v));
        printf(", \"prompt_tokens\": %d, \"generated_tokens\": %d, \"depth\": %d, \"runs\": %d, \"seqs\": %d", (int)b->p,
               (int)b->n, (int)b->d, (int)b->r, (int)b->seqs);
        if (b->profile) profile_json(b);
        fputs("}\n", stdout);
        return;
    }
    printf("%s (%s), %.1f MiB of weights, tier %s, %d threads, cache %s/%s\n", m->name[0] ? m->name : m->path, m->arch,
           (double)m->weight_bytes / (1 << 20), m->tier, (int)m->threads, cera_kv_dtype_name(m->kv_k),
           cera_kv_dtype_name(m->kv_v));
    if (b->p > 0)
        printf("prompt   %5d tokens, depth %d: %10.2f tok/s (spread %.1f %%)\n", (int)b->p, (int)b->d, prompt,
               100 * prompt_spread);
    if (b->n > 0)
        printf("generate %5d tokens, depth %d: %10.2f tok/s (spread %.1f %%), %d sequences\n", (int)b->n, (int)b->d, generate,
               100 * generate_spread, (int)b->seqs);
    printf("load %.1f ms, first token %.1f ms, peak memory %.1f MiB\n", b->load_ms, b->first_token_ms, b->peak_mib);
    if (b->profile) profile_text(b);
}

/* ---- the command ---- */

static int measure(bench_command *b) {
    cera_error e = {0};
    for (int s = 0; s < b->seqs; s++)
        if (cera_session_create(b->engine, NULL, &b->sessions[s], &e) != CERA_OK) return cera_report(&e);
    b->rows = calloc((size_t)b->seqs, sizeof *b->rows);
    if (!b->rows) return CERA_EXIT_FAILED;
    cera_signals_watch(b->sessions[0]);
    cera_status status = CERA_OK;
    for (int r = 0; r < b->r && status == CERA_OK; r++) {
        if (r == 1 || b->r == 1)
            cera_engine_profile(b->engine, b->profile); /* the first run only warms up, if there are more */
        status = one_run(b, r, &e);
    }
    cera_signals_watch(NULL);
    if (status != CERA_OK) return cera_report(&e);
    b->peak_mib = peak_mib(); /* before the roof is measured, which takes a large buffer */
    if (b->profile) b->roof = cera_roof_read_bandwidth(b->info.threads);
    show(b);
    return CERA_EXIT_OK;
}

static int run(bench_command *b) {
    if (b->model.options.ubatch == 0 && b->seqs > 512) b->model.options.ubatch = b->seqs;
    const double start = now_s();
    const int status = cera_model_args_open(&b->model, &b->engine);
    if (status >= 0) return status;
    b->load_ms = (now_s() - start) * 1e3;
    cera_error e = {0};
    b->info.size = sizeof b->info;
    if (cera_engine_info(b->engine, &b->info, &e) != CERA_OK) return cera_report(&e);
    return measure(b);
}

int cera_cmd_bench(int argc, char **argv) {
    static bench_command b; /* large; one a process */
    int status = parse(&b, argc, argv);
    if (status >= 0) return status;
    status = run(&b);
    for (int s = 0; s < b.seqs; s++) cera_session_destroy(b.sessions[s]);
    free(b.rows);
    cera_engine_close(b.engine);
    return status;
}
