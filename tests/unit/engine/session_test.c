/* session_test.c: sessions and steps on tiny models made in memory: the same bits however a prompt is cut and whoever shares
 * the step, rewinding, forking, cancelling, limits, budgets, numbers that are not finite, and that a refused or failed call
 * leaves a session as it was. Oracle: a fresh session that is given the same tokens in one piece. */
#include "unit/cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "cera.h"
#include "unit/engine/tiny_model.h"

static const tiny_kind kinds[] = {TINY_LLAMA, TINY_GEMMA3, TINY_LFM2};
static tiny_model models[3];

static cera_engine *open_with(tiny_kind kind, cera_engine_options o) {
    cera_engine *g = NULL;
    cera_error e = {0};
    o.size = sizeof o;
    if (o.threads == 0) o.threads = 2;
    if (o.kv_k == CERA_KV_DTYPE_AUTO) o.kv_k = o.kv_v = CERA_KV_DTYPE_F32;
    if (cera_engine_open_memory("tiny", models[kind].data, models[kind].size, &o, &g, &e) != CERA_OK) fail_msg("%s", e.message);
    return g;
}

static cera_engine *open_kind(tiny_kind kind) { return open_with(kind, (cera_engine_options){0}); }

static cera_session *session_of(cera_engine *g, int32_t context, int32_t ubatch) {
    cera_session *s = NULL;
    cera_error e = {0};
    const cera_session_options o = {.size = sizeof o, .context = context, .ubatch = ubatch};
    if (cera_session_create(g, &o, &s, &e) != CERA_OK) fail_msg("%s", e.message);
    return s;
}

static int32_t token_at(int i) { return 3 + (int32_t)(((uint32_t)i * 2654435761u >> 8) % (TINY_VOCAB - 3)); }

static void append(cera_session *s, int from, int n) {
    int32_t ids[2048];
    cera_error e = {0};
    for (int i = 0; i < n; i++) ids[i] = token_at(from + i);
    if (cera_session_append(s, ids, (size_t)n, &e) != CERA_OK) fail_msg("%s", e.message);
}

/* Logits after tokens [0, n) by a fresh session, in one piece. */
static void fresh(cera_engine *g, int n, float *out) {
    cera_session *s = session_of(g, 0, 0);
    append(s, 0, n);
    memcpy(out, cera_session_logits(s), TINY_VOCAB * sizeof *out);
    cera_session_destroy(s);
}

static void expect_fresh(cera_engine *g, const cera_session *s, int n, const char *what) {
    float want[TINY_VOCAB];
    fresh(g, n, want);
    assert_int_equal(cera_session_position(s), n);
    const float *got = cera_session_logits(s);
    assert_non_null(got);
    if (memcmp(got, want, sizeof want) != 0) fail_msg("%s: logits after token %d differ from a fresh session's", what, n);
}

static uint64_t kv_bytes(const cera_engine *g) {
    cera_model_info info = {.size = sizeof info};
    assert_int_equal(cera_engine_info(g, &info, NULL), CERA_OK);
    return info.kv_bytes;
}

/* ---- same bits ---- */

static void test_pieces_give_the_same_bits(void **state) {
    (void)state;
    static const int piece[] = {1, 3, 17, 63, 64, 65, 100};
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        for (int p = 0; p < 7; p++) {
            cera_session *s = session_of(g, 0, p == 6 ? 33 : 0);
            for (int at = 0; at < 330; at += piece[p]) append(s, at, piece[p] < 330 - at ? piece[p] : 330 - at);
            expect_fresh(g, s, 330, "pieces");
            cera_session_destroy(s);
        }
        cera_engine_close(g);
    }
}

static cera_batch_row row_of(const cera_session *s, int slot, int i, int token) {
    const int32_t index = cera_session_position(s) + i;
    return (cera_batch_row){.token = token_at(token),
                            .ticket = -1,
                            .position = {index, index, index, index},
                            .index = index,
                            .visible_end = index + 1,
                            .session = slot,
                            .adapter = -1,
                            .want = CERA_ROW_LOGITS};
}

typedef struct {
    float rows[64][TINY_VOCAB];
    int seen;
} collected;

static void collect(void *ctx, const int32_t *rows, int32_t n, const float *logits) {
    collected *c = ctx;
    for (int i = 0; i < n; i++) memcpy(c->rows[rows[i]], logits + (size_t)i * TINY_VOCAB, sizeof c->rows[0]);
    c->seen += n;
}

static collected got; /* large */

static cera_status step(cera_engine *g, cera_session *const *sessions, int n_sessions, const cera_batch_row *rows, int n_rows,
                        cera_error *e) {
    const cera_batch batch = {.size = sizeof batch,
                              .rows = rows,
                              .n_rows = n_rows,
                              .sessions = sessions,
                              .n_sessions = n_sessions,
                              .on_logits = collect,
                              .ctx = &got};
    got.seen = 0;
    return cera_engine_step(g, &batch, NULL, e);
}

/* Sessions of different lengths, one with several rows, share a step; another joins in the next one. */
static void test_mates_give_the_same_bits(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *s[3] = {session_of(g, 0, 0), session_of(g, 0, 0), session_of(g, 0, 0)};
        append(s[0], 0, 100);
        append(s[1], 0, 5);
        cera_batch_row rows[8];
        cera_error e = {0};
        for (int i = 0; i < 4; i++) rows[i] = row_of(s[0], 0, i, 100 + i);
        rows[4] = row_of(s[1], 1, 0, 5);
        if (step(g, s, 2, rows, 5, &e) != CERA_OK) fail_msg("%s", e.message);
        assert_int_equal(got.seen, 5);
        assert_null(cera_session_logits(s[0]));
        float want[TINY_VOCAB];
        fresh(g, 103, want);
        assert_memory_equal(got.rows[2], want, sizeof want);
        fresh(g, 6, want);
        assert_memory_equal(got.rows[4], want, sizeof want);

        for (int i = 0; i < 3; i++) rows[i] = row_of(s[2], 2, i, i); /* joins midway */
        rows[3] = row_of(s[1], 1, 0, 6);
        rows[4] = row_of(s[0], 0, 0, 104);
        if (step(g, s, 3, rows, 5, &e) != CERA_OK) fail_msg("%s", e.message);
        fresh(g, 3, want);
        assert_memory_equal(got.rows[2], want, sizeof want);
        fresh(g, 105, want);
        assert_memory_equal(got.rows[4], want, sizeof want);
        for (int i = 0; i < 3; i++) cera_session_destroy(s[i]);
        assert_int_equal(kv_bytes(g), 0);
        cera_engine_close(g);
    }
}

/* A row given as an embedding is the token whose embedding it is. */
static void test_embedding_rows(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 0, 0);
    append(s, 0, 10);
    /* token_embd is the first tensor; the data section starts after the header, on a multiple of 32. */
    const tiny_model *m = &models[TINY_LLAMA];
    uint64_t data_bytes = 0;
    for (uint64_t i = 0; i < m->n_tensors; i++)
        data_bytes += (4 * m->tensors[i].shape[0] * (m->tensors[i].n_dims > 1 ? m->tensors[i].shape[1] : 1) + 31) / 32 * 32;
    float embedding[TINY_EMBD];
    memcpy(embedding, m->data + m->size - data_bytes + (size_t)token_at(10) * sizeof embedding, sizeof embedding);
    cera_batch_row row = row_of(s, 0, 0, 10);
    row.token = -1;
    row.embedding = embedding;
    cera_error e = {0};
    if (step(g, &s, 1, &row, 1, &e) != CERA_OK) fail_msg("%s", e.message);
    float want[TINY_VOCAB];
    fresh(g, 11, want);
    assert_memory_equal(got.rows[0], want, sizeof want);
    int32_t n;
    assert_int_equal(cera_session_tokens(s, &n)[10], -1);
    assert_int_equal(n, 11);
    cera_session_destroy(s);
    cera_engine_close(g);
}

typedef struct {
    float rows[4][TINY_EMBD];
    int seen;
} hidden_rows;

static void collect_hidden(void *ctx, const int32_t *rows, int32_t n, const float *hidden) {
    hidden_rows *h = ctx;
    for (int i = 0; i < n; i++) memcpy(h->rows[rows[i]], hidden + (size_t)i * TINY_EMBD, sizeof h->rows[0]);
    h->seen += n;
}

/* Hidden states are what the output matrix multiplies: times it, in double, they give the logits (within what f32 sums of 64
 * products may lose, 64 * 2^-24 of the sum of magnitudes). Rows that do not want them are left out. */
static void test_hidden_states(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 0, 0);
    cera_batch_row rows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = row_of(s, 0, i, i);
        rows[i].want = i == 1 ? 0 : CERA_ROW_HIDDEN;
    }
    hidden_rows h = {.seen = 0};
    const cera_batch batch = {.size = sizeof batch,
                              .rows = rows,
                              .n_rows = 3,
                              .sessions = &s,
                              .n_sessions = 1,
                              .on_hidden = collect_hidden,
                              .ctx = &h};
    cera_error e = {0};
    if (cera_engine_step(g, &batch, NULL, &e) != CERA_OK) fail_msg("%s", e.message);
    assert_int_equal(h.seen, 2);
    float want[TINY_VOCAB];
    fresh(g, 3, want);
    /* output.weight is the third tensor, behind token_embd and the final norm. */
    const tiny_model *m = &models[TINY_LLAMA];
    uint64_t behind = 0;
    for (uint64_t i = 2; i < m->n_tensors; i++)
        behind += (4 * m->tensors[i].shape[0] * (m->tensors[i].n_dims > 1 ? m->tensors[i].shape[1] : 1) + 31) / 32 * 32;
    for (int t = 0; t < TINY_VOCAB; t++) {
        float w[TINY_EMBD];
        double sum = 0.0, magnitude = 0.0;
        memcpy(w, m->data + m->size - behind + (size_t)t * sizeof w, sizeof w);
        for (int i = 0; i < TINY_EMBD; i++) {
            sum += (double)w[i] * (double)h.rows[2][i];
            magnitude += fabs((double)w[i] * (double)h.rows[2][i]);
        }
        if (fabs(sum - (double)want[t]) > 64 * 6e-8 * magnitude) fail_msg("token %d: %g, logit %g", t, sum, (double)want[t]);
    }
    cera_session_destroy(s);
    cera_engine_close(g);
}

/* ---- rewind, fork ---- */

static int32_t rewind_to(cera_session *s, int32_t n) {
    int32_t kept = -1;
    cera_error e = {0};
    if (cera_session_rewind(s, n, &kept, &e) != CERA_OK) fail_msg("%s", e.message);
    assert_int_equal(cera_session_position(s), kept);
    return kept;
}

static void test_rewind(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *s = session_of(g, 0, 0);
        append(s, 0, 300);
        append(s, 900, 20); /* other tokens, to be forgotten */
        assert_int_equal(rewind_to(s, 320), 320);
        assert_non_null(cera_session_logits(s));
        assert_int_equal(rewind_to(s, 300), 300); /* the last step's start: every kind can */
        assert_null(cera_session_logits(s));
        append(s, 300, 30);
        expect_fresh(g, s, 330, "rewind to the last step");

        const int32_t kept = rewind_to(s, 290);
        assert_int_equal(kept, kinds[k] == TINY_LFM2 ? 0 : 290); /* recurrent state has no way back to the middle of a step */
        append(s, kept, 340 - kept);
        expect_fresh(g, s, 340, "rewind within 64 tokens");

        const int32_t far = rewind_to(s, 100);
        assert_int_equal(far, kinds[k] == TINY_LLAMA ? 100 : 0);
        append(s, far, 120 - far);
        expect_fresh(g, s, 120, "rewind far");
        cera_session_reset(s);
        assert_int_equal(cera_session_position(s), 0);
        append(s, 0, 7);
        expect_fresh(g, s, 7, "reset");
        cera_error e = {0};
        assert_int_equal(cera_session_rewind(s, 8, NULL, &e), CERA_ERR_ARGUMENT);
        assert_int_equal(cera_session_rewind(s, -1, NULL, NULL), CERA_ERR_ARGUMENT);
        assert_int_equal(cera_session_position(s), 7);
        cera_session_destroy(s);
        cera_engine_close(g);
    }
}

/* A state that belongs to tokens of before a reset must not be taken for one of after it. */
static void test_rewind_after_reset_finds_no_old_state(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LFM2);
    cera_session *s = session_of(g, 0, 0);
    append(s, 500, 5);
    append(s, 505, 5);
    cera_session_reset(s);
    append(s, 0, 10); /* the other state still stands after 5 or 10 old tokens */
    assert_int_equal(rewind_to(s, 7), 0);
    append(s, 0, 12);
    expect_fresh(g, s, 12, "reset");
    cera_session_destroy(s);
    cera_engine_close(g);
}

static void test_fork_shares_until_written(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *a = session_of(g, 0, 0), *b = NULL;
        append(a, 0, 200);
        cera_error e = {0};
        const uint64_t alone = kv_bytes(g);
        if (cera_session_fork(a, &b, &e) != CERA_OK) fail_msg("%s", e.message);
        if (kinds[k] == TINY_LLAMA) assert_int_equal(kv_bytes(g), alone);
        expect_fresh(g, b, 200, "fork");
        append(b, 700, 30);
        append(a, 200, 30);
        expect_fresh(g, a, 230, "the forked one");
        assert_int_equal(rewind_to(b, 200), 200);
        append(b, 200, 60);
        expect_fresh(g, b, 260, "the fork");
        cera_session_destroy(a);
        append(b, 260, 1);
        expect_fresh(g, b, 261, "the fork alone");
        cera_session_destroy(b);
        assert_int_equal(kv_bytes(g), 0);
        cera_engine_close(g);
    }
}

/* Sliding layers hold their window and some slack, whatever the length. */
static void test_window_lets_go_of_pages(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_GEMMA3);
    cera_session *s = session_of(g, 0, 64);
    append(s, 0, 512);
    const uint64_t at_512 = kv_bytes(g);
    append(s, 512, 512);
    const uint64_t at_1024 = kv_bytes(g);
    const uint64_t token = 2 * TINY_KV * TINY_HEAD * sizeof(float); /* K and V of one layer */
    /* Only the full layer grows, by 512 tokens (plus what a page's layout adds: under a quarter). */
    assert_true(at_1024 - at_512 >= 512 * token && at_1024 - at_512 <= 640 * token);
    expect_fresh(g, s, 1024, "window");
    cera_session_destroy(s);
    cera_engine_close(g);
}

/* A window as long as the model's own context still hides keys when the caller asks for a longer context. */
static void test_window_in_a_longer_context(void **state) {
    (void)state;
    const char *const short_context[] = {"gemma3.context_length=int:48"}; /* TINY_WINDOW */
    cera_engine *plain = open_with(TINY_GEMMA3, (cera_engine_options){.context = 256});
    cera_engine *longer =
        open_with(TINY_GEMMA3, (cera_engine_options){.context = 256, .overrides = short_context, .n_overrides = 1});
    cera_session *s = session_of(longer, 0, 0);
    append(s, 0, 150);
    expect_fresh(plain, s, 150, "longer context");
    cera_session_destroy(s);
    cera_engine_close(longer);
    cera_engine_close(plain);
}

/* ---- limits and budgets ---- */

static void test_context_is_a_limit(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 40, 0);
    append(s, 0, 30);
    int32_t ids[11] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    cera_error e = {0};
    assert_int_equal(cera_session_append(s, ids, 11, &e), CERA_ERR_LIMIT);
    assert_non_null(strstr(e.message, "40"));
    expect_fresh(g, s, 30, "after a refused append");
    append(s, 30, 10);
    e = (cera_error){0};
    assert_int_equal(cera_session_append(s, ids, 1, &e), CERA_ERR_LIMIT);
    expect_fresh(g, s, 40, "full");
    cera_session_destroy(s);
    cera_session *too_long = NULL;
    const cera_session_options o = {.size = sizeof o, .context = TINY_CONTEXT + 1};
    assert_int_equal(cera_session_create(g, &o, &too_long, NULL), CERA_ERR_ARGUMENT);
    cera_engine_close(g);
}

static void test_tokens_out_of_range(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 0, 0);
    append(s, 0, 3);
    static const int32_t bad[] = {-1, TINY_VOCAB, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        const int32_t ids[2] = {5, bad[i]};
        cera_error e = {0};
        assert_int_equal(cera_session_append(s, ids, 2, &e), CERA_ERR_ARGUMENT);
        assert_non_null(strstr(e.message, "out of range"));
    }
    expect_fresh(g, s, 3, "after refused tokens");
    cera_session_destroy(s);
    cera_engine_close(g);
}

/* memory_bytes bounds all sessions together. What one gives back another may take. */
static void test_budget_is_shared(void **state) {
    (void)state;
    cera_engine *g = open_with(TINY_LLAMA, (cera_engine_options){.memory_bytes = 1100 << 10, .ubatch = 64});
    cera_model_info info = {.size = sizeof info};
    assert_int_equal(cera_engine_info(g, &info, NULL), CERA_OK);
    assert_true(info.n_ctx >= 256 && info.n_ctx < TINY_CONTEXT);
    cera_session *a = session_of(g, 0, 0), *b = session_of(g, 0, 0);
    append(a, 0, info.n_ctx - 64);
    int32_t ids[512];
    for (int i = 0; i < 512; i++) ids[i] = token_at(i);
    cera_error e = {0};
    assert_int_equal(cera_session_append(b, ids, 512 < info.n_ctx ? 512 : (size_t)info.n_ctx, &e), CERA_ERR_MEMORY);
    assert_non_null(strstr(e.message, "KV cache"));
    const int32_t done = cera_session_position(b);
    assert_true(done % 64 == 0 && done < 512); /* finished steps stay */
    assert_true(kv_bytes(g) <= info.memory_bytes);
    cera_session_destroy(a);
    append(b, done, 200 - done > 0 ? 200 - done : 0);
    if (done < 200) expect_fresh(g, b, 200, "after memory came back");
    cera_session_destroy(b);
    assert_int_equal(kv_bytes(g), 0);
    cera_engine_close(g);
}

static void test_what_cannot_fit_says_so(void **state) {
    (void)state;
    cera_engine *g = NULL;
    cera_error e = {0};
    cera_engine_options o = {.size = sizeof o, .memory_bytes = 64 << 10};
    assert_int_equal(cera_engine_open_memory("tiny.gguf", models[0].data, models[0].size, &o, &g, &e), CERA_ERR_MEMORY);
    assert_non_null(strstr(e.message, "tiny.gguf: does not fit"));
    assert_non_null(strstr(e.message, "64.0 KiB are available"));
    o.memory_bytes = 2 << 20, o.ubatch = 64, o.context = 200000;
    e = (cera_error){0};
    assert_int_equal(cera_engine_open_memory("tiny.gguf", models[0].data, models[0].size, &o, &g, &e), CERA_ERR_MEMORY);
    assert_non_null(strstr(e.message, "200000 tokens"));
    assert_non_null(strstr(e.message, "tokens would fit"));
    assert_null(g);
}

/* ---- cancel ---- */

static void test_cancel_before_a_call(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *s = session_of(g, 0, 0);
        append(s, 0, 20);
        cera_session_cancel(s);
        int32_t id = token_at(20);
        cera_error e = {0};
        assert_int_equal(cera_session_append(s, &id, 1, &e), CERA_ERR_CANCELLED);
        expect_fresh(g, s, 20, "after a cancelled append");
        append(s, 20, 5); /* asked for once, it cancels once */
        expect_fresh(g, s, 25, "after going on");
        cera_session_destroy(s);
        cera_engine_close(g);
    }
}

static void cancel_at_40(void *ctx, int32_t first, int32_t n, const float *logits) {
    (void)logits;
    if (first <= 40 && 40 < first + n) cera_session_cancel(ctx);
}

/* The steps that had finished stay; the one that had not leaves nothing. */
static void test_cancel_between_steps_keeps_finished_ones(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *s = session_of(g, 0, 16);
        int32_t ids[200];
        for (int i = 0; i < 200; i++) ids[i] = token_at(i);
        cera_error e = {0};
        assert_int_equal(cera_session_append_with(s, ids, 200, cancel_at_40, s, &e), CERA_ERR_CANCELLED);
        const int32_t at = cera_session_position(s);
        assert_true(at == 32 || at == 48); /* whether the step whose logits were handed out had ended yet */
        append(s, at, 100 - at);
        expect_fresh(g, s, 100, "after a cancelled append");
        cera_session_destroy(s);
        cera_engine_close(g);
    }
}

typedef struct {
    cera_session *session;
    atomic_int go;
} canceller;

static void *cancel_soon(void *ctx) {
    canceller *c = ctx;
    while (!atomic_load(&c->go)) {}
    for (volatile int i = 0; i < 200000; i++) {}
    cera_session_cancel(c->session);
    return NULL;
}

static void test_cancel_from_another_thread(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_GEMMA3);
    cera_session *s = session_of(g, 0, 128);
    canceller c = {.session = s};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &c), 0);
    int32_t ids[2000];
    for (int i = 0; i < 2000; i++) ids[i] = token_at(i);
    cera_error e = {0};
    atomic_store(&c.go, 1);
    const cera_status status = cera_session_append(s, ids, 2000, &e);
    pthread_join(thread, NULL);
    assert_true(status == CERA_ERR_CANCELLED || status == CERA_OK); /* OK on a machine that is faster than the wait */
    const int32_t at = cera_session_position(s);
    assert_true(at % 128 == 0 || at == 2000);
    if (status == CERA_OK) cera_session_append(s, ids, 1, NULL); /* takes the request that came too late */
    if (status == CERA_ERR_CANCELLED) {
        append(s, at, 10);
        expect_fresh(g, s, at + 10, "after a cancel from another thread");
    }
    cera_session_destroy(s);
    cera_engine_close(g);
}

/* ---- what is not finite ---- */

static void test_nan_weights_are_an_error(void **state) {
    (void)state;
    tiny_model bad = tiny_make(TINY_LLAMA, 1, "output.weight");
    cera_engine *g = NULL;
    cera_error e = {0};
    if (cera_engine_open_memory("bad", bad.data, bad.size, NULL, &g, &e) != CERA_OK) fail_msg("%s", e.message);
    cera_session *s = session_of(g, 0, 0);
    int32_t ids[3] = {4, 5, 6};
    assert_int_equal(cera_session_append(s, ids, 3, &e), CERA_ERR_NUMERIC);
    assert_non_null(strstr(e.message, "finite"));
    assert_int_equal(cera_session_position(s), 0);
    assert_null(cera_session_logits(s));
    cera_session_destroy(s);
    cera_engine_close(g);
    free(bad.data);
}

/* ---- batches that are refused ---- */

static void refused(cera_engine *g, cera_session *const *s, int n_sessions, const cera_batch_row *rows, int n_rows,
                    const char *word) {
    cera_error e = {0};
    const cera_status status = step(g, s, n_sessions, rows, n_rows, &e);
    if (status != CERA_ERR_ARGUMENT && status != CERA_ERR_LIMIT)
        fail_msg("status %d where \"%s\" is refused", (int)status, word);
    if (!strstr(e.message, word)) fail_msg("\"%s\" does not say %s", e.message, word);
}

static void test_refused_batches(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA), *other = open_kind(TINY_LLAMA);
    cera_session *s[2] = {session_of(g, 0, 0), session_of(g, 0, 0)};
    append(s[0], 0, 12);
    cera_batch_row r[2] = {row_of(s[0], 0, 0, 12), row_of(s[0], 0, 1, 13)}, good[2] = {r[0], r[1]};
    r[0].index = 5, refused(g, s, 1, r, 2, "index"), r[0] = good[0];
    r[1].index = 14, refused(g, s, 1, r, 2, "index"), r[1] = good[1];
    r[1].visible_end = 13, refused(g, s, 1, r, 2, "visible_end"), r[1] = good[1];
    r[1].visible_end = 15, refused(g, s, 1, r, 2, "visible_end"), r[1] = good[1];
    r[1].token = TINY_VOCAB, refused(g, s, 1, r, 2, "out of range"), r[1] = good[1];
    r[1].token = -1, refused(g, s, 1, r, 2, "exactly one"), r[1] = good[1];
    r[1].ticket = 0, refused(g, s, 1, r, 2, "exactly one"), r[1] = good[1];
    r[1].adapter = 3, refused(g, s, 1, r, 2, "adapter"), r[1] = good[1];
    r[1].position[2] = -4, refused(g, s, 1, r, 2, "position"), r[1] = good[1];
    r[1].session = 1, refused(g, s, 1, r, 2, "session 1"), r[1] = good[1];
    r[1].want = CERA_ROW_HIDDEN, refused(g, s, 1, r, 2, "on_hidden"), r[1] = good[1];
    refused(g, s, 2, r, 2, "session 1 has no row");
    refused(g, s, 1, r, 0, "n_rows");
    refused(g, s, 1, r, 513, "n_rows");
    cera_session *twice[2] = {s[0], s[0]};
    refused(g, twice, 2, r, 2, "the same");
    refused(other, s, 1, r, 2, "another engine");
    expect_fresh(g, s[0], 12, "after refused batches");
    cera_error e = {0};
    assert_int_equal(step(g, s, 1, good, 2, &e), CERA_OK);
    assert_int_equal(cera_session_position(s[0]), 14);
    assert_int_equal(cera_engine_step(g, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    for (int i = 0; i < 2; i++) cera_session_destroy(s[i]);
    cera_engine_close(g);
    cera_engine_close(other);
}

/* ---- generation ---- */

static cera_sampler *sampler_of(float temperature) {
    cera_sampler_options o = {.size = sizeof o};
    cera_sampler *s = NULL;
    assert_int_equal(cera_sampler_defaults(NULL, &o, NULL), CERA_OK);
    o.temperature = temperature;
    o.seed = 7;
    assert_int_equal(cera_sampler_create(&o, TINY_VOCAB, &s, NULL), CERA_OK);
    return s;
}

typedef struct {
    char text[8192];
    size_t size;
    int tokens, stop_after;
} heard;

static bool hear(void *ctx, const char *text, size_t size, int32_t token) {
    heard *h = ctx;
    memcpy(h->text + h->size, text, size);
    h->size += size;
    h->tokens += token >= 0;
    return h->stop_after == 0 || h->tokens < h->stop_after;
}

static cera_status generate(cera_session *s, float temperature, int64_t max, heard *h, cera_generate_result *r, cera_error *e) {
    const cera_generate_options o = {.size = sizeof o, .max_tokens = max, .ignore_eog = true, .on_text = hear, .ctx = h};
    cera_sampler *sampler = sampler_of(temperature);
    r->size = sizeof *r;
    const cera_status status = cera_session_generate(s, sampler, &o, r, e);
    cera_sampler_destroy(sampler);
    return status;
}

/* What was generated is what a loop of append and arg max gives; and what follows is as if all had been a prompt. */
static void test_generate_greedy(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *s = session_of(g, 0, 0), *loop = session_of(g, 0, 0);
        append(s, 0, 9);
        append(loop, 0, 9);
        heard h = {0};
        cera_generate_result r = {0};
        cera_error e = {0};
        if (generate(s, 0.0f, 50, &h, &r, &e) != CERA_OK) fail_msg("%s", e.message);
        assert_int_equal(r.finish, CERA_FINISH_LENGTH);
        assert_int_equal(r.n_tokens, 50);
        assert_int_equal(h.tokens, 50);
        int32_t n = 0;
        const int32_t *tokens = cera_session_tokens(s, &n);
        assert_int_equal(n, 59);
        for (int i = 9; i < 59; i++) {
            const float *l = cera_session_logits(loop);
            int32_t best = 0;
            for (int32_t t = 1; t < TINY_VOCAB; t++) best = l[t] > l[best] ? t : best;
            assert_int_equal(tokens[i], best);
            assert_int_equal(cera_session_append(loop, &best, 1, NULL), CERA_OK);
        }
        /* The 59th token waits; the next append evaluates it first. */
        assert_int_equal(cera_session_position(s), 58);
        append(s, 60, 3);
        append(loop, 60, 3);
        assert_int_equal(cera_session_position(s), 62);
        assert_memory_equal(cera_session_logits(s), cera_session_logits(loop), TINY_VOCAB * sizeof(float));
        cera_session_destroy(s);
        cera_session_destroy(loop);
        cera_engine_close(g);
    }
}

static void test_generate_ends(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 64, 0);
    heard h = {.stop_after = 3};
    cera_generate_result r = {0};
    cera_error e = {0};
    assert_int_equal(generate(s, 1.0f, 5, &h, &r, &e), CERA_ERR_ARGUMENT); /* nothing to continue */
    assert_int_equal(r.finish, CERA_FINISH_ERROR);
    append(s, 0, 50);
    e = (cera_error){0};
    assert_int_equal(generate(s, 1.0f, 0, &h, &r, &e), CERA_OK);
    assert_int_equal(r.finish, CERA_FINISH_CALLBACK);
    assert_int_equal(r.n_tokens, 3);
    h.stop_after = 0;
    assert_int_equal(generate(s, 1.0f, 0, &h, &r, &e), CERA_OK);
    assert_int_equal(r.finish, CERA_FINISH_CONTEXT);
    assert_int_equal(r.n_tokens, 11); /* 64 - 53 */
    assert_int_equal(generate(s, 1.0f, 0, &h, &r, &e), CERA_OK);
    assert_int_equal(r.finish, CERA_FINISH_CONTEXT);
    assert_int_equal(r.n_tokens, 0);
    cera_session_cancel(s);
    rewind_to(s, 20);
    append(s, 20, 0);
    cera_session_destroy(s);
    cera_engine_close(g);
}

static bool cancel_at_third(void *ctx, const char *text, size_t size, int32_t token) {
    static int seen;
    (void)text, (void)size, (void)token;
    if (++seen == 3) cera_session_cancel(ctx);
    return true;
}

static void test_generate_cancelled_keeps_what_there_is(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 0, 0);
    append(s, 0, 5);
    const cera_generate_options o = {.size = sizeof o, .ignore_eog = true, .on_text = cancel_at_third, .ctx = s};
    cera_generate_result r = {.size = sizeof r};
    cera_sampler *sampler = sampler_of(0.7f);
    cera_error e = {0};
    assert_int_equal(cera_session_generate(s, sampler, &o, &r, &e), CERA_ERR_CANCELLED);
    assert_int_equal(r.finish, CERA_FINISH_CANCELLED);
    assert_int_equal(r.n_tokens, 3);
    int32_t n;
    cera_session_tokens(s, &n);
    assert_int_equal(n, 8);
    assert_int_equal(cera_session_append(s, NULL, 0, &e), CERA_OK);
    assert_int_equal(cera_session_position(s), 8);
    cera_sampler_destroy(sampler);
    cera_session_destroy(s);
    cera_engine_close(g);
}

/* The same seed gives the same tokens, also in two halves: the draw depends on the place, not on a count. */
static void test_generate_in_halves(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *whole = session_of(g, 0, 0), *halves = session_of(g, 0, 0);
    append(whole, 0, 11);
    append(halves, 0, 11);
    heard a = {0}, b = {0};
    cera_generate_result r = {0};
    cera_error e = {0};
    assert_int_equal(generate(whole, 0.9f, 40, &a, &r, &e), CERA_OK);
    assert_int_equal(generate(halves, 0.9f, 13, &b, &r, &e), CERA_OK);
    assert_int_equal(generate(halves, 0.9f, 27, &b, &r, &e), CERA_OK);
    int32_t n, m;
    const int32_t *x = cera_session_tokens(whole, &n), *y = cera_session_tokens(halves, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    cera_session_destroy(whole);
    cera_session_destroy(halves);
    cera_engine_close(g);
}

/* ---- lifetimes, threads ---- */

static void test_engine_outlives_its_handle(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    cera_session *s = session_of(g, 0, 0);
    cera_engine_close(g);
    append(s, 0, 5);
    assert_non_null(cera_session_logits(s));
    cera_session_destroy(s);
    cera_session_destroy(NULL);
    cera_engine_close(NULL);
}

typedef struct {
    cera_engine *engine;
    float logits[TINY_VOCAB];
} user;

static void *use_engine(void *ctx) {
    user *u = ctx;
    cera_session *s = NULL;
    int32_t ids[150];
    for (int i = 0; i < 150; i++) ids[i] = token_at(i);
    if (cera_session_create(u->engine, NULL, &s, NULL) != CERA_OK) return NULL;
    for (int i = 0; i < 150; i += 10)
        if (cera_session_append(s, ids + i, 10, NULL) != CERA_OK) return NULL;
    memcpy(u->logits, cera_session_logits(s), sizeof u->logits);
    cera_session_destroy(s);
    return NULL;
}

static void test_sessions_of_several_threads(void **state) {
    (void)state;
    cera_engine *g = open_kind(TINY_LLAMA);
    pthread_t threads[4];
    static user users[4];
    for (int i = 0; i < 4; i++) {
        users[i].engine = g;
        assert_int_equal(pthread_create(&threads[i], NULL, use_engine, &users[i]), 0);
    }
    float want[TINY_VOCAB];
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    fresh(g, 150, want);
    for (int i = 0; i < 4; i++) assert_memory_equal(users[i].logits, want, sizeof want);
    assert_int_equal(kv_bytes(g), 0);
    cera_engine_close(g);
}

#ifdef CERA_ALLOC_GUARD /* elsewhere nothing is counted */
static void allocate_in_callback(void *ctx, int32_t first, int32_t n, const float *logits) {
    (void)first, (void)n, (void)logits;
    cera_free(cera_alloc(1, 64));
    ++*(int *)ctx;
}

static void test_nothing_allocates_during_a_step(void **state) {
    (void)state;
    const size_t before = cera_alloc_guard_violations();
    for (int k = 0; k < 3; k++) {
        cera_engine *g = open_kind(kinds[k]);
        cera_session *s = session_of(g, 0, 0);
        append(s, 0, 200);
        for (int i = 0; i < 70; i++) append(s, 200 + i, 1);
        const int32_t token = token_at(270);
        int calls = 0; /* a caller's callback may allocate */
        assert_int_equal(cera_session_append_with(s, &token, 1, allocate_in_callback, &calls, NULL), CERA_OK);
        assert_int_equal(calls, 1);
        cera_session_destroy(s);
        cera_engine_close(g);
    }
    assert_int_equal(cera_alloc_guard_violations(), before);
}
#endif

static int make_models(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) models[kinds[k]] = tiny_make(kinds[k], 11 + (uint64_t)k, NULL);
    return 0;
}

static int free_models(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) free(models[k].data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_give_the_same_bits),
        cmocka_unit_test(test_mates_give_the_same_bits),
        cmocka_unit_test(test_embedding_rows),
        cmocka_unit_test(test_hidden_states),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_rewind_after_reset_finds_no_old_state),
        cmocka_unit_test(test_fork_shares_until_written),
        cmocka_unit_test(test_window_lets_go_of_pages),
        cmocka_unit_test(test_window_in_a_longer_context),
        cmocka_unit_test(test_context_is_a_limit),
        cmocka_unit_test(test_tokens_out_of_range),
        cmocka_unit_test(test_budget_is_shared),
        cmocka_unit_test(test_what_cannot_fit_says_so),
        cmocka_unit_test(test_cancel_before_a_call),
        cmocka_unit_test(test_cancel_between_steps_keeps_finished_ones),
        cmocka_unit_test(test_cancel_from_another_thread),
        cmocka_unit_test(test_nan_weights_are_an_error),
        cmocka_unit_test(test_refused_batches),
        cmocka_unit_test(test_generate_greedy),
        cmocka_unit_test(test_generate_ends),
        cmocka_unit_test(test_generate_cancelled_keeps_what_there_is),
        cmocka_unit_test(test_generate_in_halves),
        cmocka_unit_test(test_engine_outlives_its_handle),
        cmocka_unit_test(test_sessions_of_several_threads),
#ifdef CERA_ALLOC_GUARD
        cmocka_unit_test(test_nothing_allocates_during_a_step),
#endif
    };
    return cmocka_run_group_tests(tests, make_models, free_models);
}
