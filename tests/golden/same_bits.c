/* same_bits.c: one model, one tier: do a token's logits have the same bits however it was computed? The reference is a prompt
 * in chunks of 64 by one thread. Against it, every token of every run: other chunk sizes, other numbers of threads, other
 * sequences in the same steps, of which one joins midway. Uses the public interface only; the default configuration unless
 * flags say otherwise.
 *
 *   same_bits MODEL --name NAME [--tier TIER] [--tokens N] [--few]
 *
 * Prints a line for what was compared, and for the first difference of each run "same_bits/NAME: token T differs between A and
 * B (sequence S)". Exit status 0: all the same, 1: not, 2: it could not run. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cera.h"

enum { MAX_TOKENS = 8192, REFERENCE_CHUNK = 64, MAX_ROWS = 513, SEQUENCES = 3 };

typedef struct {
    const char *model, *name, *tier;
    int n_tokens;
    bool few;
    int32_t n_vocab;
    uint64_t reference[SEQUENCES][MAX_TOKENS]; /* hash of each token's logits */
    int failures, runs;
} test;

static test t;

static void stop(const cera_error *e) {
    fprintf(stderr, "same_bits/%s: %s\n", t.name, e->message);
    exit(2);
}

/* FNV-1a over the bytes of a row. */
static uint64_t hash_row(const float *row) {
    const unsigned char *bytes = (const unsigned char *)row;
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < (size_t)t.n_vocab * sizeof *row; i++) h = (h ^ bytes[i]) * 0x100000001B3u;
    return h;
}

static int32_t token_of(int sequence, int i) {
    uint64_t x = ((uint64_t)sequence << 32) + (uint64_t)i + 1;
    x *= 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
    return (int32_t)((x >> 33) % (uint64_t)t.n_vocab);
}

static cera_engine *open_engine(int threads) {
    cera_engine *g = NULL;
    cera_error e = {0};
    const cera_engine_options o = {
        .size = sizeof o, .threads = threads, .tier = t.tier, .ubatch = MAX_ROWS, .allow_unknown_tokenizer = true};
    if (cera_engine_open(t.model, &o, &g, &e) != CERA_OK) stop(&e);
    cera_model_info info = {.size = sizeof info};
    if (cera_engine_info(g, &info, &e) != CERA_OK) stop(&e);
    t.n_vocab = info.n_vocab;
    if (t.n_tokens > info.n_ctx) t.n_tokens = info.n_ctx;
    return g;
}

/* ---- one step of several sequences ---- */

/* A run of a sequence: its session, where it is, and where its hashes go. */
typedef struct {
    cera_session *session;
    int sequence, chunk;
    uint64_t hash[MAX_TOKENS];
} run;

typedef struct {
    run *runs[SEQUENCES];
    cera_batch_row rows[SEQUENCES * MAX_ROWS];
} stepper;

static void on_logits(void *ctx, const int32_t *rows, int32_t n, const float *logits) {
    stepper *s = ctx;
    for (int32_t i = 0; i < n; i++) {
        const cera_batch_row *r = &s->rows[rows[i]];
        s->runs[r->session]->hash[r->index] = hash_row(logits + (size_t)i * (size_t)t.n_vocab);
    }
}

/* Adds the run's next chunk to a batch of at most MAX_ROWS rows; false when it has reached its end. */
static bool add_rows(stepper *s, run *r, int slot, int *n_rows) {
    const int at = cera_session_position(r->session), left = t.n_tokens - at;
    int n = r->chunk < left ? r->chunk : left;
    if (n > MAX_ROWS - *n_rows) n = MAX_ROWS - *n_rows;
    for (int i = 0; i < n; i++) {
        const int32_t index = at + i;
        s->rows[(*n_rows)++] = (cera_batch_row){
            .token = token_of(r->sequence, index),
            .ticket = -1,
            .position = {index, index, index, index},
            .index = index,
            .visible_end = index + 1,
            .session = slot,
            .adapter = -1,
            .want = CERA_ROW_LOGITS,
        };
    }
    if (n > 0) s->runs[slot] = r;
    return n > 0;
}

/* Runs until all have ended. A run with chunk 0 waits until the first has half its tokens, then goes on in chunks of 3. */
static void run_all(cera_engine *g, run *runs, int n_runs) {
    static stepper s;
    for (;;) {
        cera_session *sessions[SEQUENCES];
        int n_sessions = 0, n_rows = 0;
        for (int i = 0; i < n_runs; i++) {
            if (runs[i].chunk == 0 && cera_session_position(runs[0].session) >= t.n_tokens / 2) runs[i].chunk = 3;
            if (runs[i].chunk > 0 && add_rows(&s, &runs[i], n_sessions, &n_rows)) sessions[n_sessions++] = runs[i].session;
        }
        if (n_sessions == 0) return;
        const cera_batch batch = {.size = sizeof batch,
                                  .rows = s.rows,
                                  .n_rows = n_rows,
                                  .sessions = sessions,
                                  .n_sessions = n_sessions,
                                  .on_logits = on_logits,
                                  .ctx = &s};
        cera_error e = {0};
        if (cera_engine_step(g, &batch, NULL, &e) != CERA_OK) stop(&e);
    }
}

static void begin(cera_engine *g, run *r, int sequence, int chunk) {
    cera_error e = {0};
    *r = (run){.sequence = sequence, .chunk = chunk};
    if (cera_session_create(g, NULL, &r->session, &e) != CERA_OK) stop(&e);
}

static void compare(run *r, const char *what) {
    t.runs++;
    for (int i = 0; i < t.n_tokens; i++)
        if (r->hash[i] != t.reference[r->sequence][i]) {
            printf("same_bits/%s: token %d differs between %s and chunk %d (sequence %d)\n", t.name, i, what, REFERENCE_CHUNK,
                   r->sequence);
            t.failures++;
            break;
        }
    cera_session_destroy(r->session);
}

/* ---- the runs ---- */

static void make_reference(void) {
    static run r;
    cera_engine *g = open_engine(1);
    for (int s = 0; s < SEQUENCES; s++) {
        begin(g, &r, s, REFERENCE_CHUNK);
        run_all(g, &r, 1);
        memcpy(t.reference[s], r.hash, sizeof r.hash);
        cera_session_destroy(r.session);
    }
    cera_engine_close(g);
    for (int i = 1; i < t.n_tokens; i++) /* a model whose output does not depend on its input would pass everything */
        if (t.reference[0][i] != t.reference[0][0]) return;
    printf("same_bits/%s: all tokens have the same logits: this model tests nothing\n", t.name);
    exit(2);
}

static void chunks(void) {
    static run r;
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 63, 65, 513};
    cera_engine *g = open_engine(2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (t.few && sizes[i] > 2 && sizes[i] < 16 && sizes[i] != 7) continue;
        char what[32];
        snprintf(what, sizeof what, "chunk %d", sizes[i]);
        begin(g, &r, 0, sizes[i]);
        run_all(g, &r, 1);
        compare(&r, what);
    }
    cera_engine_close(g);
}

static void threads(void) {
    static run r;
    for (int n = 1; n <= 8; n++) {
        if (t.few && n != 1 && n != 3 && n != 8) continue;
        char what[32];
        snprintf(what, sizeof what, "%d threads in chunk 9", n);
        cera_engine *g = open_engine(n);
        begin(g, &r, 0, 9);
        run_all(g, &r, 1);
        compare(&r, what);
        cera_engine_close(g);
    }
}

/* Three sequences in one step: one in chunks, one token by token, one that joins midway. */
static void mates(void) {
    static run runs[SEQUENCES];
    static const int chunk[][2] = {{1, 1}, {7, 1}, {100, 5}};
    cera_engine *g = open_engine(2);
    for (size_t i = 0; i < sizeof chunk / sizeof *chunk; i++) {
        char what[64];
        snprintf(what, sizeof what, "a batch of three (chunks %d, %d and one that joins midway)", chunk[i][0], chunk[i][1]);
        begin(g, &runs[0], 0, chunk[i][0]);
        begin(g, &runs[1], 1, chunk[i][1]);
        begin(g, &runs[2], 2, 0);
        run_all(g, runs, SEQUENCES);
        for (int s = 0; s < SEQUENCES; s++) compare(&runs[s], what);
    }
    cera_engine_close(g);
}

int main(int argc, char **argv) {
    t.n_tokens = 1500;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--few") == 0)
            t.few = true;
        else if (i + 1 < argc && strcmp(argv[i], "--name") == 0)
            t.name = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--tier") == 0)
            t.tier = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--tokens") == 0)
            t.n_tokens = atoi(argv[++i]);
        else
            t.model = argv[i];
    }
    if (!t.model || t.n_tokens < 2 || t.n_tokens > MAX_TOKENS) {
        fprintf(stderr, "usage: same_bits MODEL --name NAME [--tier TIER] [--tokens 2..%d] [--few]\n", MAX_TOKENS);
        return 2;
    }
    if (!t.name) t.name = t.model;
    make_reference();
    chunks();
    threads();
    mates();
    printf("same_bits/%s: %d runs of %d tokens, %d differ\n", t.name, t.runs, t.n_tokens, t.failures);
    return t.failures > 0;
}
