/* generate.c: the loop that samples, hands out text and evaluates. A token is part of the history as soon as it is handed out;
 * it is evaluated when the next one is wanted. A token's bytes pass stop.h, which may hold them back, then text_stream.h, which
 * makes whole characters of them. */
#include <string.h>
#include <time.h>

#include "engine/engine_int.h"
#include "engine/options.h"
#include "engine/stop.h"
#include "engine/text_stream.h"

const char *cera_finish_name(cera_finish finish) {
    static const char *const names[] = {"none",      "eog",   "length", "context", "callback",
                                        "cancelled", "error", "stop",   "grammar"};
    return (unsigned)finish < sizeof names / sizeof *names ? names[finish] : "?";
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct {
    cera_session *session;
    cera_sampler *sampler;
    const cera_generate_options *o;
    cera_stop stop;
    cera_text_stream text;
    int32_t n_vocab;
    uint32_t *allowed; /* [n_words] when something restricts the choice, else NULL */
    uint32_t *ends;    /* [n_words] end-of-generation tokens, when they may have to be left out */
    size_t n_words;
    cera_generate_result result;
    double start_ms;
} loop;

/* ---- text ---- */

/* last: nothing follows, what is held back comes out. */
static cera_status pass_on(loop *l, const char *bytes, size_t n, bool last, const char **text, size_t *size, bool *stopped,
                           cera_error *e) {
    CERA_TRY(cera_stop_push(&l->stop, bytes, n, last, &bytes, &n, stopped, e));
    return cera_text_stream_push(&l->text, n > 0 ? bytes : "", n, last, text, size, e);
}

/* Hands out a token's text. */
static cera_status hand_out(loop *l, int32_t token, cera_finish *finish, cera_error *e) {
    size_t n = 0, size = 0;
    bool stopped = false;
    const char *text = "", *bytes = cera_tokenizer_piece(&l->session->engine->tokenizer, token, l->o->special, &n);
    CERA_TRY(pass_on(l, bytes ? bytes : "", bytes ? n : 0, false, &text, &size, &stopped, e));
    const bool go_on = !l->o->on_text || l->o->on_text(l->o->ctx, text ? text : "", size, token);
    if (stopped)
        *finish = CERA_FINISH_STOP;
    else if (!go_on)
        *finish = CERA_FINISH_CALLBACK;
    return CERA_OK;
}

/* What is held back at the end goes out in a call without a token. */
static cera_status flush(loop *l, cera_error *e) {
    size_t size = 0;
    const char *text = "";
    bool stopped;
    CERA_TRY(pass_on(l, "", 0, true, &text, &size, &stopped, e));
    if (size > 0 && l->o->on_text) l->o->on_text(l->o->ctx, text, size, -1);
    return CERA_OK;
}

/* ---- the choice ---- */

/* Room for the bits of allowed tokens, when anything restricts them; else none, and sampling stays as it is. */
static cera_status prepare_choice(loop *l, cera_error *e) {
    const cera_generate_options *o = l->o;
    const cera_tokenizer *t = &l->session->engine->tokenizer;
    const bool no_end = o->ignore_eog || o->min_tokens > 0;
    if (!no_end && !o->grammar) return CERA_OK;
    const int32_t n_tokens = cera_tokenizer_size(t), n = n_tokens > l->n_vocab ? n_tokens : l->n_vocab;
    l->n_words = ((size_t)n + 31) / 32;
    l->allowed = cera_alloc(l->n_words, sizeof *l->allowed);
    if (no_end) l->ends = cera_alloc(l->n_words, sizeof *l->ends);
    if (!l->allowed || (no_end && !l->ends))
        return cera_fail(e, CERA_ERR_MEMORY, "cera_session_generate: out of memory for %d tokens", (int)n);
    for (int32_t id = 0; no_end && id < n_tokens; id++)
        if (cera_tokenizer_is_eog(t, id)) l->ends[id >> 5] |= 1u << (id & 31);
    return CERA_OK;
}

static cera_status choose(loop *l, int32_t *token, cera_error *e) {
    const cera_session *s = l->session;
    const bool no_end = l->o->ignore_eog || l->result.n_tokens < l->o->min_tokens;
    const uint32_t *allowed = l->o->grammar || no_end ? l->allowed : NULL;
    if (l->o->grammar) {
        memset(l->allowed, 0, l->n_words * sizeof *l->allowed);
        CERA_TRY(cera_grammar_mask(l->o->grammar, l->o->grammar_tokens, l->allowed, e));
    } else if (allowed) {
        memset(l->allowed, 0xFF, l->n_words * sizeof *l->allowed);
    }
    for (size_t i = 0; no_end && i < l->n_words; i++) l->allowed[i] &= ~l->ends[i];
    return cera_sampler_sample_allowed(l->sampler, s->logits, allowed, s->tokens, (size_t)s->n_tokens, (uint64_t)s->n_tokens,
                                       token, e);
}

static void tell(const loop *l, int32_t token) {
    if (!l->o->on_token) return;
    const cera_token_event event = {
        .size = sizeof event,
        .token = token,
        .position = l->session->n_tokens,
        .logits = l->session->logits,
        .n_vocab = l->n_vocab,
    };
    l->o->on_token(l->o->ctx, &event);
}

/* ---- the loop ---- */

/* One token; *finish stays NONE while there may be more. */
static cera_status one(loop *l, cera_finish *finish, cera_error *e) {
    cera_session *s = l->session;
    if (s->n_tokens >= s->n_ctx) {
        *finish = CERA_FINISH_CONTEXT;
        return CERA_OK;
    }
    if (l->o->grammar && cera_grammar_is_finished(l->o->grammar)) {
        *finish = CERA_FINISH_GRAMMAR;
        return CERA_OK;
    }
    if (s->n_tokens > s->n) CERA_TRY(cera_session_append(s, NULL, 0, e));
    if (!s->has_logits)
        return cera_fail(e, CERA_ERR_ARGUMENT,
                         "cera_session_generate: the session holds no logits; append at least one token first");
    int32_t token;
    CERA_TRY(choose(l, &token, e));
    if (l->result.first_ms == 0.0) l->result.first_ms = now_ms() - l->start_ms;
    if (cera_tokenizer_is_eog(&s->engine->tokenizer, token)) {
        l->result.eog_token = token;
        *finish = CERA_FINISH_EOG;
        return CERA_OK;
    }
    if (l->o->grammar) CERA_TRY(cera_grammar_accept_token(l->o->grammar, l->o->grammar_tokens, token, e));
    tell(l, token);
    s->tokens[s->n_tokens++] = token; /* prepare left room for it */
    l->result.n_tokens++;
    CERA_TRY(hand_out(l, token, finish, e));
    if (*finish == CERA_FINISH_NONE && l->o->max_tokens > 0 && l->result.n_tokens >= l->o->max_tokens)
        *finish = CERA_FINISH_LENGTH;
    return CERA_OK;
}

static cera_status run(loop *l, cera_error *e) {
    cera_finish finish = CERA_FINISH_NONE;
    cera_status status = cera_stop_init(&l->stop, l->o->stops, l->o->n_stops, e);
    if (status == CERA_OK) status = prepare_choice(l, e);
    while (status == CERA_OK && finish == CERA_FINISH_NONE) status = one(l, &finish, e);
    if (status != CERA_OK) finish = status == CERA_ERR_CANCELLED ? CERA_FINISH_CANCELLED : CERA_FINISH_ERROR;
    const cera_status flushed = flush(l, status == CERA_OK ? e : NULL);
    l->result.finish = finish;
    l->result.stop = finish == CERA_FINISH_STOP ? l->stop.hit : -1;
    l->result.total_ms = now_ms() - l->start_ms;
    return status != CERA_OK ? status : flushed;
}

static cera_status check(const cera_generate_options *o, cera_error *e) {
    if (o->max_tokens < 0 || o->min_tokens < 0)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_generate_options.%s is %lld",
                         o->max_tokens < 0 ? "max_tokens" : "min_tokens",
                         (long long)(o->max_tokens < 0 ? o->max_tokens : o->min_tokens));
    if (o->grammar && !o->grammar_tokens)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_generate_options.grammar needs grammar_tokens");
    return CERA_OK;
}

cera_status cera_session_generate(cera_session *s, cera_sampler *sampler, const cera_generate_options *options,
                                  cera_generate_result *result, cera_error *e) {
    if (!s || !sampler) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_generate: session and sampler must not be NULL");
    cera_generate_options o;
    CERA_TRY(cera_options_take("cera_generate_options", options, &o, sizeof o, e));
    CERA_TRY(check(&o, e));
    loop l = {.session = s, .sampler = sampler, .o = &o, .n_vocab = s->engine->plan->n_vocab, .start_ms = now_ms()};
    l.result = (cera_generate_result){.size = sizeof l.result, .eog_token = -1, .stop = -1};
    const cera_status status = run(&l, e);
    cera_text_stream_deinit(&l.text);
    cera_stop_deinit(&l.stop);
    cera_free(l.allowed);
    cera_free(l.ends);
    if (result)
        CERA_TRY(cera_options_give("cera_generate_result", result, &l.result, sizeof l.result, status == CERA_OK ? e : NULL));
    return status;
}
