/* generate.c: the loop that samples, hands out text and evaluates. A token is part of the history as soon as it is handed out;
 * it is evaluated when the next one is wanted. */
#include <time.h>

#include "engine/engine_int.h"
#include "engine/options.h"
#include "engine/text_stream.h"

const char *cera_finish_name(cera_finish finish) {
    static const char *const names[] = {"none", "eog", "length", "context", "callback", "cancelled", "error"};
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
    cera_text_stream text;
    cera_generate_result result;
    double start_ms;
} loop;

/* Hands out a token's text; false when the callback wants no more. */
static cera_status hand_out(loop *l, int32_t token, bool *go_on, cera_error *e) {
    size_t n = 0, size = 0;
    const char *text = "", *bytes = cera_tokenizer_piece(&l->session->engine->tokenizer, token, l->o->special, &n);
    CERA_TRY(cera_text_stream_push(&l->text, bytes ? bytes : "", n, false, &text, &size, e));
    *go_on = !l->o->on_text || l->o->on_text(l->o->ctx, text ? text : "", size, token);
    return CERA_OK;
}

/* What is held back at the end goes out in a call without a token. */
static cera_status flush(loop *l, cera_error *e) {
    size_t size = 0;
    const char *text = "";
    CERA_TRY(cera_text_stream_push(&l->text, "", 0, true, &text, &size, e));
    if (size > 0 && l->o->on_text) l->o->on_text(l->o->ctx, text, size, -1);
    return CERA_OK;
}

/* One token; *finish stays NONE while there may be more. */
static cera_status one(loop *l, cera_finish *finish, cera_error *e) {
    cera_session *s = l->session;
    if (s->n_tokens >= s->n_ctx) {
        *finish = CERA_FINISH_CONTEXT;
        return CERA_OK;
    }
    if (s->n_tokens > s->n) CERA_TRY(cera_session_append(s, NULL, 0, e));
    if (!s->has_logits)
        return cera_fail(e, CERA_ERR_ARGUMENT,
                         "cera_session_generate: the session holds no logits; append at least one token first");
    int32_t token;
    CERA_TRY(cera_sampler_sample(l->sampler, s->logits, s->tokens, (size_t)s->n_tokens, (uint64_t)s->n_tokens, &token, e));
    if (l->result.first_ms == 0.0) l->result.first_ms = now_ms() - l->start_ms;
    if (!l->o->ignore_eog && cera_tokenizer_is_eog(&s->engine->tokenizer, token)) {
        l->result.eog_token = token;
        *finish = CERA_FINISH_EOG;
        return CERA_OK;
    }
    s->tokens[s->n_tokens++] = token; /* prepare left room for it */
    l->result.n_tokens++;
    bool go_on = true;
    CERA_TRY(hand_out(l, token, &go_on, e));
    if (!go_on)
        *finish = CERA_FINISH_CALLBACK;
    else if (l->o->max_tokens > 0 && l->result.n_tokens >= l->o->max_tokens)
        *finish = CERA_FINISH_LENGTH;
    return CERA_OK;
}

static cera_status run(loop *l, cera_error *e) {
    cera_finish finish = CERA_FINISH_NONE;
    cera_status status = CERA_OK;
    while (status == CERA_OK && finish == CERA_FINISH_NONE) status = one(l, &finish, e);
    if (status != CERA_OK) finish = status == CERA_ERR_CANCELLED ? CERA_FINISH_CANCELLED : CERA_FINISH_ERROR;
    const cera_status flushed = flush(l, status == CERA_OK ? e : NULL);
    l->result.finish = finish;
    l->result.total_ms = now_ms() - l->start_ms;
    return status != CERA_OK ? status : flushed;
}

cera_status cera_session_generate(cera_session *s, cera_sampler *sampler, const cera_generate_options *options,
                                  cera_generate_result *result, cera_error *e) {
    if (!s || !sampler) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_session_generate: session and sampler must not be NULL");
    cera_generate_options o;
    CERA_TRY(cera_options_take("cera_generate_options", options, &o, sizeof o, e));
    if (o.max_tokens < 0)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_generate_options.max_tokens is %lld", (long long)o.max_tokens);
    loop l = {.session = s, .sampler = sampler, .o = &o, .start_ms = now_ms()};
    l.result = (cera_generate_result){.size = sizeof l.result, .eog_token = -1};
    const cera_status status = run(&l, e);
    cera_text_stream_deinit(&l.text);
    if (result)
        CERA_TRY(cera_options_give("cera_generate_result", result, &l.result, sizeof l.result, status == CERA_OK ? e : NULL));
    return status;
}
