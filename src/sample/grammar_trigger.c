/* grammar_trigger.c: texts and tokens that start a lazy constraint. What a state has to remember is the last bytes of its text,
 * so it stays a function of the history whatever the borders of tokens were. */
#include "sample/grammar_int.h"

#include <string.h>

cera_trigger *cera_trigger_ref(cera_trigger *t) {
    if (t) atomic_fetch_add(&t->refs, 1);
    return t;
}

void cera_trigger_unref(cera_trigger *t) {
    if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
    for (size_t i = 0; t->texts && i < t->n_texts; i++) cera_free(t->texts[i]);
    cera_free(t->texts);
    cera_free(t->sizes);
    cera_free(t->ids);
    cera_free(t);
}

static bool copy(cera_trigger *t, const cera_grammar_trigger *from) {
    t->texts = cera_alloc(from->n_texts, sizeof *t->texts);
    t->sizes = cera_alloc(from->n_texts, sizeof *t->sizes);
    t->ids = cera_alloc(from->n_token_ids, sizeof *t->ids);
    if (!t->texts || !t->sizes || !t->ids) return false;
    t->n_texts = from->n_texts;
    t->n_ids = from->n_token_ids;
    if (t->n_ids) memcpy(t->ids, from->token_ids, t->n_ids * sizeof *t->ids);
    for (size_t i = 0; i < t->n_texts; i++) {
        t->sizes[i] = strlen(from->texts[i]);
        if (!(t->texts[i] = cera_alloc(t->sizes[i] + 1, 1))) return false;
        memcpy(t->texts[i], from->texts[i], t->sizes[i]);
        if (t->sizes[i] > t->longest) t->longest = t->sizes[i];
    }
    return true;
}

cera_status cera_trigger_create(const cera_grammar_trigger *from, cera_trigger **out, cera_error *e) {
    *out = NULL;
    if (from->size < sizeof *from)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_grammar_trigger.size is %zu; set it to sizeof", from->size);
    if ((from->n_texts && !from->texts) || (from->n_token_ids && !from->token_ids) || !(from->n_texts + from->n_token_ids))
        return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: a trigger needs a text or a token");
    for (size_t i = 0; i < from->n_texts; i++)
        if (!from->texts[i] || !from->texts[i][0] || strlen(from->texts[i]) >= CERA_TRIGGER_MAX)
            return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: a trigger's text has 1 to %d bytes", CERA_TRIGGER_MAX - 1);
    cera_trigger *t = cera_alloc(1, sizeof *t);
    if (!t) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    atomic_init(&t->refs, 1);
    t->includes_text = from->includes_text;
    t->rearm = from->rearm;
    if (!copy(t, from)) {
        cera_trigger_unref(t);
        return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    }
    *out = t;
    return CERA_OK;
}

bool cera_trigger_has_token(const cera_trigger *t, int32_t id) {
    for (size_t i = 0; t && i < t->n_ids; i++)
        if (t->ids[i] == id) return true;
    return false;
}

/* The longest trigger that the tail ends in; 0: none. */
static size_t ends_in(const cera_trigger *t, const char *tail, size_t n) {
    size_t best = 0;
    for (size_t i = 0; i < t->n_texts; i++)
        if (t->sizes[i] <= n && t->sizes[i] > best && !memcmp(tail + n - t->sizes[i], t->texts[i], t->sizes[i]))
            best = t->sizes[i];
    return best;
}

size_t cera_trigger_scan(struct cera_grammar_state *s, const char *text, size_t n, size_t *begin) {
    const cera_trigger *t = s->trigger;
    for (size_t i = 0; i < n; i++) {
        if (s->n_tail && s->n_tail >= t->longest) memmove(s->tail, s->tail + 1, --s->n_tail);
        if (t->longest) s->tail[s->n_tail++] = text[i];
        size_t found = ends_in(t, s->tail, s->n_tail);
        if (!found) continue;
        s->waiting = false;
        *begin = t->includes_text ? s->n_tail - found : s->n_tail;
        return i + 1;
    }
    return n;
}
