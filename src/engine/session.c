/* session.c: one sequence of tokens: its history, pages, recurrent state; what a step prepares, commits and rolls back; append,
 * rewind, fork, cancel. The forward pass is step.c's, the loop that samples generate.c's. */
#include <string.h>

#include "base/arena.h"
#include "engine/engine_int.h"
#include "engine/options.h"

/* ---- create, destroy ---- */

static uint64_t state_bytes(const cera_engine *g) { return 2 * cera_state_bytes(g->program); }
static bool has_state(const cera_session *s) { return s->engine->plan->state_layers > 0; }

static cera_status create_states(cera_session *s, cera_error *e) {
    if (!has_state(s)) return CERA_OK;
    CERA_TRY(cera_kv_charge(&s->engine->kv, state_bytes(s->engine), e));
    for (int i = 0; i < 2; i++) s->state[i] = cera_state_create(s->engine->program);
    if (s->state[0] && s->state[1]) return CERA_OK;
    if (!s->state[0] && !s->state[1]) cera_kv_give(&s->engine->kv, state_bytes(s->engine));
    return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the session's recurrent state");
}

static cera_status allocate(cera_session *s, cera_error *e) {
    const cera_plan *plan = s->engine->plan;
    s->tables = cera_alloc((size_t)plan->n_groups, sizeof *s->tables);
    s->page_tables = cera_alloc((size_t)plan->n_groups, sizeof *s->page_tables);
    s->logits = cera_alloc((size_t)plan->n_vocab, sizeof *s->logits);
    s->rows = cera_alloc((size_t)s->ubatch, sizeof *s->rows);
    if (!s->tables || !s->page_tables || !s->logits || !s->rows)
        return cera_fail(e, CERA_ERR_MEMORY, "out of memory for a session");
    return create_states(s, e);
}

static cera_status create(cera_engine *g, int32_t n_ctx, int32_t ubatch, cera_session **out, cera_error *e) {
    cera_session *s = cera_alloc(1, sizeof *s);
    if (!s) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for a session");
    s->engine = g;
    s->n_ctx = n_ctx;
    s->ubatch = ubatch;
    s->step_slot = -1;
    atomic_init(&s->cancel, 0);
    cera_engine_ref(g);
    const cera_status status = allocate(s, e);
    if (status != CERA_OK) {
        cera_session_destroy(s);
        return status;
    }
    *out = s;
    return CERA_OK;
}

cera_status cera_session_create(cera_engine *g, const cera_session_options *options, cera_session **out, cera_error *e) {
    if (!g || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_create: engine and out must not be NULL");
    cera_session_options o;
    CERA_TRY(cera_options_take("cera_session_options", options, &o, sizeof o, e));
    if (o.context < 0 || o.context > g->n_ctx)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_options.context is %d; it must be between 0 and %d",
                         (int)o.context, (int)g->n_ctx);
    if (o.ubatch < 0 || o.ubatch > g->ubatch)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_options.ubatch is %d; it must be between 0 and %d", (int)o.ubatch,
                         (int)g->ubatch);
    return create(g, o.context > 0 ? o.context : g->n_ctx, o.ubatch > 0 ? o.ubatch : g->ubatch, out, e);
}

void cera_session_destroy(cera_session *s) {
    if (!s) return;
    cera_engine *g = s->engine;
    for (int i = 0; s->tables && i < g->plan->n_groups; i++) cera_kv_table_deinit(&g->kv, i, &s->tables[i]);
    if (s->state[0] || s->state[1]) cera_kv_give(&g->kv, state_bytes(g));
    for (int i = 0; i < 2; i++) cera_state_destroy(s->state[i]);
    cera_free(s->tables);
    cera_free(s->page_tables);
    cera_free(s->tokens);
    cera_free(s->logits);
    cera_free(s->rows);
    cera_free(s);
    cera_engine_close(g);
}

/* ---- around a step ---- */

static cera_status grow_tokens(cera_session *s, int32_t n, cera_error *e) {
    if (n <= s->capacity) return CERA_OK;
    const size_t capacity = (size_t)n + (size_t)s->capacity / 2 + 64;
    int32_t *tokens = cera_alloc_grow(s->tokens, (size_t)s->capacity, capacity, sizeof *tokens);
    if (!tokens) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for a history of %d tokens", (int)n);
    s->tokens = tokens;
    s->capacity = (int32_t)capacity;
    return CERA_OK;
}

cera_status cera_session_prepare(cera_session *s, int n_rows, cera_error *e) {
    cera_engine *g = s->engine;
    const int32_t end = s->n + n_rows;
    CERA_TRY(grow_tokens(s, end + 1, e)); /* + 1: a generated token that waits for its turn */
    for (int i = 0; i < g->plan->n_groups; i++) {
        CERA_TRY(cera_kv_table_prepare(&g->kv, i, &s->tables[i], s->n, end, e));
        s->page_tables[i] = s->tables[i].pages;
    }
    s->state_at[1 - s->current] = 0; /* the step writes over it */
    return CERA_OK;
}

void cera_session_commit(cera_session *s) {
    s->n = s->n_tokens;
    s->has_logits = false;
    if (has_state(s)) {
        s->current = 1 - s->current;
        s->state_at[s->current] = s->n;
    }
    for (int i = 0; i < s->engine->plan->n_groups; i++) cera_kv_table_slide(&s->engine->kv, i, &s->tables[i], s->n);
}

void cera_session_rollback(cera_session *s) {
    for (int i = 0; i < s->engine->plan->n_groups; i++) cera_kv_table_trim(&s->engine->kv, i, &s->tables[i], s->n);
}

/* ---- append ---- */

/* What an append hands to the step's callback. */
typedef struct {
    cera_session *session;
    int32_t first; /* history index of row 0 */
    bool last_step;
    int32_t last_row;
    cera_logits_fn on_logits;
    void *ctx;
    bool kept;
} appending;

static void take_logits(void *ctx, const int32_t *rows, int32_t n, const float *logits) {
    appending *a = ctx;
    const size_t n_vocab = (size_t)a->session->engine->plan->n_vocab;
    if (a->last_step && rows[n - 1] == a->last_row) {
        memcpy(a->session->logits, logits + (size_t)(n - 1) * n_vocab, n_vocab * sizeof *logits);
        a->session->has_logits = false; /* until the step is committed */
        a->kept = true;
    }
    if (a->on_logits) a->on_logits(a->ctx, a->first + rows[0], n, logits);
}

/* One step of n tokens; the last one of an append wants logits in any case. */
static cera_status append_step(cera_session *s, const int32_t *tokens, int32_t n, appending *a, cera_error *e) {
    for (int32_t i = 0; i < n; i++) {
        const int32_t index = s->n + i;
        s->rows[i] = (cera_batch_row){
            .token = tokens[i],
            .ticket = -1,
            .position = {index, index, index, index},
            .index = index,
            .visible_end = s->engine->plan->causal ? index + 1 : s->n + n,
            .adapter = -1,
            .want = a->on_logits || (a->last_step && i == n - 1) ? CERA_ROW_LOGITS : 0,
        };
    }
    a->first = s->n;
    a->last_row = n - 1;
    const cera_batch batch = {
        .size = sizeof batch,
        .rows = s->rows,
        .n_rows = n,
        .sessions = &s,
        .n_sessions = 1,
        .cancel_on = s,
        .on_logits = take_logits,
        .ctx = a,
    };
    CERA_TRY(cera_engine_step(s->engine, &batch, NULL, e));
    s->has_logits = a->kept;
    return CERA_OK;
}

static cera_status check_append(const cera_session *s, const int32_t *tokens, size_t n, cera_error *e) {
    if (n > (size_t)(s->n_ctx - s->n_tokens))
        return cera_fail(e, CERA_ERR_LIMIT, "%zu tokens do not fit: the context holds %d and %d are used", n, (int)s->n_ctx,
                         (int)s->n_tokens);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= s->engine->plan->n_vocab)
            return cera_fail(e, CERA_ERR_ARGUMENT, "token %d (number %zu) is out of range (0 to %d)", (int)tokens[i], i,
                             s->engine->plan->n_vocab - 1);
    if (!s->engine->plan->causal && (n > (size_t)s->ubatch || s->n_tokens > 0))
        return cera_fail(e, CERA_ERR_LIMIT, "this model is not causal: it takes a text in one step, of at most %d tokens",
                         (int)s->ubatch);
    return CERA_OK;
}

cera_status cera_session_append_with(cera_session *s, const int32_t *tokens, size_t n, cera_logits_fn on_logits, void *ctx,
                                     cera_error *e) {
    if (!s || (!tokens && n > 0))
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_append: session and tokens must not be NULL");
    CERA_TRY(check_append(s, tokens, n, e));
    appending a = {.session = s, .on_logits = on_logits, .ctx = ctx};
    if (s->n_tokens > s->n) { /* a generated token comes first, in a step of its own: it is rare, and rows stay simple */
        const int32_t waiting = s->tokens[s->n];
        a.last_step = n == 0;
        CERA_TRY(append_step(s, &waiting, 1, &a, e));
    }
    while (n > 0) {
        const int32_t now = n < (size_t)s->ubatch ? (int32_t)n : s->ubatch;
        a.last_step = (size_t)now == n;
        CERA_TRY(append_step(s, tokens, now, &a, e));
        tokens += now;
        n -= (size_t)now;
    }
    return CERA_OK;
}

cera_status cera_session_append(cera_session *s, const int32_t *tokens, size_t n, cera_error *e) {
    return cera_session_append_with(s, tokens, n, NULL, NULL, e);
}

/* ---- what it holds ---- */

int32_t cera_session_position(const cera_session *s) { return s ? s->n : 0; }
int32_t cera_session_context(const cera_session *s) { return s ? s->n_ctx : 0; }
const float *cera_session_logits(const cera_session *s) { return s && s->has_logits ? s->logits : NULL; }

const int32_t *cera_session_tokens(const cera_session *s, int32_t *n) {
    if (n) *n = s ? s->n_tokens : 0;
    return s ? s->tokens : NULL;
}

/* ---- going back, forking, cancelling ---- */

/* The largest length up to n that the session can go back to. Windows and states that cannot reach it leave 0, from where the
 * caller appends again: going part of the way would evaluate tokens whose keys are gone. */
static int32_t reachable(const cera_session *s, int32_t n) {
    if (n == s->n) return n;
    if (has_state(s)) {
        const int32_t at = s->state_at[1 - s->current];
        n = at <= n ? at : 0;
    }
    for (int i = 0; i < s->engine->plan->n_groups; i++)
        if (!cera_kv_table_reaches(&s->engine->kv, i, &s->tables[i], n)) return 0;
    return n;
}

cera_status cera_session_rewind(cera_session *s, int32_t n, int32_t *kept, cera_error *e) {
    if (!s) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_rewind: session must not be NULL");
    if (n < 0 || n > s->n_tokens)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_rewind: n is %d; it must be between 0 and %d", (int)n,
                         (int)s->n_tokens);
    if (n >= s->n) {
        s->n_tokens = n;
        if (kept) *kept = n;
        return CERA_OK;
    }
    n = reachable(s, n);
    if (n > 0 && has_state(s)) s->current = 1 - s->current; /* reachable: the other state stands after token n */
    if (n == 0) s->state_at[0] = s->state_at[1] = 0;
    s->n = s->n_tokens = n;
    s->has_logits = false;
    for (int i = 0; i < s->engine->plan->n_groups; i++) cera_kv_table_trim(&s->engine->kv, i, &s->tables[i], n);
    if (kept) *kept = n;
    return CERA_OK;
}

void cera_session_reset(cera_session *s) {
    if (s) cera_session_rewind(s, 0, NULL, NULL);
}

cera_status cera_session_fork(const cera_session *s, cera_session **out, cera_error *e) {
    if (!s || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_fork: session and out must not be NULL");
    cera_engine *g = s->engine;
    cera_session *f = NULL;
    CERA_TRY(create(g, s->n_ctx, s->ubatch, &f, e));
    cera_status status = grow_tokens(f, s->n_tokens + 1, e);
    for (int i = 0; status == CERA_OK && i < g->plan->n_groups; i++)
        status = cera_kv_table_share(&g->kv, i, &f->tables[i], &s->tables[i], e);
    if (status != CERA_OK) {
        cera_session_destroy(f);
        return status;
    }
    if (s->n_tokens > 0) memcpy(f->tokens, s->tokens, (size_t)s->n_tokens * sizeof *f->tokens);
    f->n = s->n;
    f->n_tokens = s->n_tokens;
    if (has_state(s) && s->n > 0) cera_state_copy(g->program, f->state[0], s->state[s->current]);
    f->state_at[0] = s->n;
    if (s->has_logits) memcpy(f->logits, s->logits, (size_t)g->plan->n_vocab * sizeof *f->logits);
    f->has_logits = s->has_logits;
    *out = f;
    return CERA_OK;
}

void cera_session_cancel(cera_session *s) {
    if (s) atomic_store(&s->cancel, 1);
}
