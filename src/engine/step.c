/* step.c: cera_engine_step, the only way forward: checks a batch, makes pages and states ready, runs it on the backend, and
 * commits all of it or nothing. Whatever can fail for want of memory does so before the backend starts; nothing allocates
 * during a step. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "engine/engine_int.h"
#include "engine/options.h"

/* ---- checking ---- */

static cera_status check_batch(const cera_engine *g, const cera_batch *b, cera_error *e) {
    if (b->n_rows < 1 || b->n_rows > g->ubatch)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch: n_rows is %d; it must be between 1 and %d", (int)b->n_rows,
                         (int)g->ubatch);
    if (b->n_sessions < 1 || b->n_sessions > b->n_rows)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch: n_sessions is %d; it must be between 1 and n_rows (%d)",
                         (int)b->n_sessions, (int)b->n_rows);
    if (!b->rows || !b->sessions) return cera_fail(e, CERA_ERR_ARGUMENT, "batch: rows and sessions must not be NULL");
    for (int i = 0; i < b->n_sessions; i++)
        if (!b->sessions[i] || b->sessions[i]->engine != g)
            return cera_fail(e, CERA_ERR_ARGUMENT, "batch: session %d is %s", i, b->sessions[i] ? "of another engine" : "NULL");
    return CERA_OK;
}

/* Gives each session its slot. Slots are -1 outside a step, so a session that stands twice is seen; end_slots always follows.
 */
static cera_status begin_slots(const cera_batch *b, cera_error *e) {
    for (int i = 0; i < b->n_sessions; i++) {
        cera_session *s = b->sessions[i];
        if (s->step_slot >= 0)
            return cera_fail(e, CERA_ERR_ARGUMENT, "batch: sessions %d and %d are the same", s->step_slot, i);
        s->step_slot = i;
        s->step_rows = 0;
    }
    return CERA_OK;
}

static void end_slots(const cera_batch *b) {
    for (int i = 0; i < b->n_sessions; i++) b->sessions[i]->step_slot = -1;
}

static cera_status check_source(const cera_engine *g, const cera_batch_row *r, int i, cera_error *e) {
    const int sources = (r->token >= 0) + (r->embedding != NULL) + (r->ticket >= 0);
    if (sources != 1)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: exactly one of token, embedding and ticket must be set; %d are",
                         i, sources);
    if (r->token >= g->plan->n_vocab)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: token %d is out of range (0 to %d)", i, (int)r->token,
                         g->plan->n_vocab - 1);
    if (r->ticket >= 0 && r->ticket_row < 0)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: ticket_row is %d", i, (int)r->ticket_row);
    if (r->adapter != -1)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: adapter set %d does not exist", i, (int)r->adapter);
    for (int p = 0; p < 4; p++)
        if (r->position[p] < 0)
            return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: position %d is negative", i, (int)r->position[p]);
    return CERA_OK;
}

static cera_status check_place(const cera_batch *b, const cera_batch_row *r, int i, cera_error *e) {
    if (r->session < 0 || r->session >= b->n_sessions)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: session %d is out of range (0 to %d)", i, (int)r->session,
                         b->n_sessions - 1);
    cera_session *s = b->sessions[r->session];
    const int32_t index = s->n + s->step_rows;
    if (index >= s->n_ctx)
        return cera_fail(e, CERA_ERR_LIMIT, "batch row %d: the context of %d tokens is full", i, (int)s->n_ctx);
    if (r->index != index)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: index is %d; the session's next one is %d", i, (int)r->index,
                         (int)index);
    if ((r->want & CERA_ROW_LOGITS) && !b->on_logits)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d wants logits, but on_logits is NULL", i);
    if ((r->want & CERA_ROW_HIDDEN) && !b->on_hidden)
        return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d wants its hidden state, but on_hidden is NULL", i);
    s->step_rows++;
    return CERA_OK;
}

/* Keys that a row sees must be there when the step ends. Needs the rows of every session counted. */
static cera_status check_visible(const cera_batch *b, cera_error *e) {
    for (int i = 0; i < b->n_rows; i++) {
        const cera_batch_row *r = &b->rows[i];
        const cera_session *s = b->sessions[r->session];
        if (r->visible_end <= r->index || r->visible_end > s->n + s->step_rows)
            return cera_fail(e, CERA_ERR_ARGUMENT, "batch row %d: visible_end is %d; it must be between %d and %d", i,
                             (int)r->visible_end, (int)r->index + 1, (int)(s->n + s->step_rows));
    }
    for (int i = 0; i < b->n_sessions; i++)
        if (b->sessions[i]->step_rows == 0) return cera_fail(e, CERA_ERR_ARGUMENT, "batch: session %d has no row", i);
    return CERA_OK;
}

static cera_status check_rows(const cera_engine *g, const cera_batch *b, cera_error *e) {
    for (int i = 0; i < b->n_rows; i++) {
        CERA_TRY(check_source(g, &b->rows[i], i, e));
        CERA_TRY(check_place(b, &b->rows[i], i, e));
    }
    return check_visible(b, e);
}

/* ---- what the backend gets ---- */

static cera_status grow_views(cera_engine *g, int n, cera_error *e) {
    if (n <= g->n_views) return CERA_OK;
    cera_sequence_view *views = cera_alloc_grow(g->views, (size_t)g->n_views, (size_t)n, sizeof *views);
    if (!views) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for %d sessions in a step", n);
    g->views = views;
    g->n_views = n;
    return CERA_OK;
}

static cera_row to_row(const cera_batch_row *r) {
    cera_row row = {
        .token = r->token,
        .embedding = r->embedding,
        .ticket = r->ticket,
        .ticket_row = r->ticket_row,
        .index = r->index,
        .visible_end = r->visible_end,
        .sequence = r->session,
        .adapter = r->adapter,
        .want = r->want,
    };
    memcpy(row.position, r->position, sizeof row.position);
    return row;
}

static cera_sequence_view view_of(const cera_session *s) {
    const int now = s->current;
    return (cera_sequence_view){
        .pages = s->page_tables,
        .state_in = s->n > 0 ? s->state[now] : NULL,
        .state_out = s->state[1 - now],
    };
}

/* ---- running ---- */

/* What the callbacks of a running step need: the caller's, and whether a row came out without one finite number. */
typedef struct {
    const cera_batch *batch;
    int n_vocab;
    int32_t bad_row; /* -1: none */
} running;

/* Stops at the first finite one: a sound row costs one comparison. */
static bool any_finite(const float *logits, int n) {
    for (int i = 0; i < n; i++)
        if (isfinite(logits[i])) return true;
    return false;
}

static void on_logits(void *ctx, const int32_t *rows, int n, const float *logits) {
    running *r = ctx;
    for (int i = 0; i < n && r->bad_row < 0; i++)
        if (!any_finite(logits + (size_t)i * (size_t)r->n_vocab, r->n_vocab)) r->bad_row = rows[i];
    if (r->bad_row >= 0) return;
    cera_alloc_guard_leave(); /* the backend's; the caller's code may allocate */
    r->batch->on_logits(r->batch->ctx, rows, n, logits);
    cera_alloc_guard_enter();
}

static void on_hidden(void *ctx, const int32_t *rows, int n, const float *hidden) {
    running *r = ctx;
    cera_alloc_guard_leave();
    r->batch->on_hidden(r->batch->ctx, rows, n, hidden);
    cera_alloc_guard_enter();
}

static cera_status submit(cera_engine *g, const cera_batch *b, int64_t *ticket, cera_error *e) {
    running r = {.batch = b, .n_vocab = g->plan->n_vocab, .bad_row = -1};
    const cera_step step = {
        .rows = g->rows,
        .n_rows = b->n_rows,
        .sequences = g->views,
        .n_sequences = b->n_sessions,
        .cancel = b->cancel_on ? &b->cancel_on->cancel : NULL,
        .on_logits = b->on_logits ? on_logits : NULL,
        .on_hidden = b->on_hidden ? on_hidden : NULL,
        .ctx = &r,
    };
    cera_status status = cera_program_submit(g->program, &step, ticket, e); /* guards its own allocations */
    if (status == CERA_OK) status = cera_program_wait(g->program, *ticket, e);
    if (status == CERA_OK && r.bad_row >= 0) {
        const cera_batch_row *row = &b->rows[r.bad_row];
        status = cera_fail(e, CERA_ERR_NUMERIC, "the token at position %d: none of its %d logits is finite", (int)row->index,
                           g->plan->n_vocab);
    }
    return status;
}

static cera_status run_locked(cera_engine *g, const cera_batch *b, int64_t *ticket, cera_error *e) {
    CERA_TRY(check_rows(g, b, e));
    CERA_TRY(grow_views(g, b->n_sessions, e));
    for (int i = 0; i < b->n_sessions; i++) {
        const cera_status status = cera_session_prepare(b->sessions[i], b->sessions[i]->step_rows, e);
        if (status != CERA_OK) {
            for (int j = 0; j <= i; j++) cera_session_rollback(b->sessions[j]);
            return status;
        }
        g->views[i] = view_of(b->sessions[i]);
    }
    for (int i = 0; i < b->n_rows; i++) g->rows[i] = to_row(&b->rows[i]);
    const cera_status status = submit(g, b, ticket, e);
    for (int i = 0; i < b->n_sessions && status != CERA_OK; i++) cera_session_rollback(b->sessions[i]);
    if (status != CERA_OK) return status;
    for (int i = 0; i < b->n_sessions; i++) b->sessions[i]->n_tokens = b->sessions[i]->n;
    for (int i = 0; i < b->n_rows; i++) {
        cera_session *s = b->sessions[b->rows[i].session];
        s->tokens[s->n_tokens++] = b->rows[i].token;
    }
    for (int i = 0; i < b->n_sessions; i++) cera_session_commit(b->sessions[i]);
    return CERA_OK;
}

cera_status cera_engine_step(cera_engine *g, const cera_batch *batch, int64_t *ticket, cera_error *e) {
    if (!g || !batch) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_step: engine and batch must not be NULL");
    cera_batch b;
    CERA_TRY(cera_options_take("cera_batch", batch, &b, sizeof b, e));
    CERA_TRY(check_batch(g, &b, e));
    if (b.cancel_on && atomic_exchange(&b.cancel_on->cancel, 0)) return cera_fail(e, CERA_ERR_CANCELLED, "cancelled");
    int64_t own_ticket = -1;
    pthread_mutex_lock(&g->step_lock);
    cera_status status = begin_slots(&b, e);
    if (status == CERA_OK) status = run_locked(g, &b, &own_ticket, e);
    end_slots(&b);
    pthread_mutex_unlock(&g->step_lock);
    if (status == CERA_ERR_CANCELLED && b.cancel_on) atomic_store(&b.cancel_on->cancel, 0);
    if (status == CERA_OK && ticket) *ticket = own_ticket;
    return status;
}
