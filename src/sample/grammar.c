/* grammar.c: grammars and states: compilation from the three languages, acceptance of bytes and tokens, masks, the lock around
 * the automaton. Does not own: the languages, the automaton, triggers (grammar_trigger.c). */
#include "sample/grammar.h"

#include <string.h>
#include "base/json.h"
#include "sample/gbnf_int.h"
#include "sample/grammar_int.h"
#include "sample/regex_int.h"
#include "sample/schema_int.h"

enum { DEFAULT_MEMORY = 256 << 20, MAX_TEXT = 16 << 20, MAX_WORK = 4000000 /* derivatives for one call: about a second */ };

/* ---- compilation
 * --------------------------------------------------------------------------------------------------------------- */

static cera_expr stored_rule(void *owner, uint32_t rule) {
    const cera_grammar *g = owner;
    return rule == 0 ? g->root : g->gbnf.bodies[rule - 1];
}

static int32_t find_token(void *context, const char *text, size_t n) { return cera_vocab_find(context, text, n); }

/* GBNF numbers its rules from 0 in its calls; the automaton asks for them so. */
static cera_expr gbnf_rule(void *owner, uint32_t rule) {
    const cera_grammar *g = owner;
    return g->gbnf.bodies[rule];
}

static cera_status compile_gbnf(cera_grammar *g, const char *text, size_t n, const cera_vocab *vocab, cera_error *e) {
    CERA_TRY(cera_gbnf_compile(&g->a, text, n, vocab ? find_token : NULL, (void *)vocab, &g->gbnf, e));
    g->a.owner = g;
    g->a.rule_body = gbnf_rule;
    g->start_rule = g->gbnf.root;
    return CERA_OK;
}

static cera_status compile_regex(cera_grammar *g, const char *text, size_t n, cera_error *e) {
    CERA_TRY(cera_regex_compile(&g->a, text, n, false, &g->root, e));
    g->a.owner = g;
    g->a.rule_body = stored_rule;
    return CERA_OK;
}

static cera_status compile_schema(cera_grammar *g, const char *text, size_t n, const cera_grammar_options *o, cera_error *e) {
    const cera_json *root;
    CERA_TRY(cera_arena_create(0, &g->json, e));
    if (cera_json_parse(text, n, g->json, &root, e) != CERA_OK) return cera_fail_prefix(e, "schema"), CERA_ERR_FORMAT;
    return cera_schema_compile(&g->a, root, o && o->any_order, !(o && o->any_space), &g->schema, e);
}

static cera_status compile(cera_grammar *g, cera_grammar_kind kind, const char *text, size_t n, const cera_grammar_options *o,
                           const cera_vocab *vocab, cera_error *e) {
    bool json = kind == CERA_GRAMMAR_SCHEMA;
    size_t memory = o && o->memory_bytes ? (size_t)o->memory_bytes : DEFAULT_MEMORY;
    if (cera_automaton_init(&g->a, !json ? CERA_ESC_NONE : o && o->any_space ? CERA_ESC_ALL : CERA_ESC_NEEDED, memory))
        return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    if (kind == CERA_GRAMMAR_GBNF)
        CERA_TRY(compile_gbnf(g, text, n, vocab, e));
    else if (json)
        CERA_TRY(compile_schema(g, text, n, o, e));
    else
        CERA_TRY(compile_regex(g, text, n, e));
    g->a.work = 0;
    g->a.max_work = MAX_WORK;
    cera_configs_start(&g->a, &g->start, g->start_rule);
    return g->a.failed ? cera_fail(e, g->a.failed, "grammar: %s", g->a.reason) : CERA_OK;
}

cera_status cera_grammar_compile_with(cera_grammar_kind kind, const char *text, size_t size,
                                      const cera_grammar_options *options, const cera_vocab *vocab, cera_grammar **out,
                                      cera_error *e) {
    if (!out) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: out is NULL");
    *out = NULL;
    if (!text || kind < CERA_GRAMMAR_GBNF || kind > CERA_GRAMMAR_REGEX)
        return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: no text, or no such kind");
    if (options && options->size < sizeof(cera_grammar_options))
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_grammar_options.size is %zu; set it to sizeof", options->size);
    if (size > MAX_TEXT) return cera_fail(e, CERA_ERR_LIMIT, "grammar: %zu bytes; at most %d are read", size, MAX_TEXT);
    cera_grammar *g = cera_alloc(1, sizeof *g);
    if (!g) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    pthread_mutex_init(&g->lock, NULL);
    atomic_init(&g->refs, 1);
    cera_status status = compile(g, kind, text, size, options, vocab, e);
    if (status) {
        cera_grammar_close(g);
        return status;
    }
    *out = g;
    return CERA_OK;
}

void cera_grammar_close(cera_grammar *g) {
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1) return;
    cera_schema_destroy(g->schema);
    cera_gbnf_deinit(&g->gbnf);
    cera_configs_deinit(&g->start);
    cera_masker_deinit(&g->masker);
    cera_automaton_deinit(&g->a);
    cera_arena_destroy(g->json);
    pthread_mutex_destroy(&g->lock);
    cera_free(g);
}

bool cera_grammar_is_empty(const cera_grammar *g) { return g && g->start.n == 0 && !g->start.complete; }

/* ---- vocabularies
 * ---------------------------------------------------------------------------------------------------------------- */

cera_status cera_grammar_tokens_of(const cera_vocab *vocab, cera_grammar_tokens **out, cera_error *e) {
    if (!vocab || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: no vocabulary");
    int32_t n = cera_vocab_size(vocab);
    cera_text_view *bytes = cera_alloc((size_t)n, sizeof *bytes);
    bool *eog = cera_alloc((size_t)n, sizeof *eog);
    cera_status status = CERA_ERR_MEMORY;
    if (bytes && eog) {
        for (int32_t i = 0; i < n; i++) {
            bytes[i] = cera_vocab_token_bytes(vocab, i, false);
            eog[i] = cera_vocab_is_eog(vocab, i);
        }
        status = cera_trie_create(bytes, eog, (size_t)n, out, e);
    } else
        cera_fail(e, status, "grammar: out of memory");
    cera_free(bytes);
    cera_free(eog);
    return status;
}

void cera_grammar_tokens_destroy(cera_grammar_tokens *tokens) { cera_trie_destroy(tokens); }

/* ---- states
 * ---------------------------------------------------------------------------------------------------------------------- */

cera_status cera_grammar_state_create(cera_grammar *g, const cera_grammar_trigger *trigger, cera_grammar_state **out,
                                      cera_error *e) {
    if (!g || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: grammar or out is NULL");
    *out = NULL;
    cera_grammar_state *s = cera_alloc(1, sizeof *s);
    if (!s) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    s->grammar = g;
    atomic_fetch_add(&g->refs, 1);
    cera_status status = trigger ? cera_trigger_create(trigger, &s->trigger, e) : CERA_OK;
    if (!status) status = cera_grammar_state_reset(s, e);
    if (status) {
        cera_grammar_state_destroy(s);
        return status;
    }
    *out = s;
    return CERA_OK;
}

void cera_grammar_state_destroy(cera_grammar_state *s) {
    if (!s) return;
    cera_trigger_unref(s->trigger);
    cera_configs_deinit(&s->at);
    cera_configs_deinit(&s->next);
    cera_grammar_close(s->grammar);
    cera_free(s);
}

static bool start(cera_grammar_state *s) {
    s->waiting = false;
    return cera_configs_copy(&s->at, &s->grammar->start);
}

cera_status cera_grammar_state_reset(cera_grammar_state *s, cera_error *e) {
    if (!s) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: state is NULL");
    s->n_bytes = 0;
    s->n_tail = 0;
    s->ended = false;
    if (!start(s)) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    s->waiting = s->trigger != NULL;
    return CERA_OK;
}

cera_status cera_grammar_state_restore(cera_grammar_state *to, const cera_grammar_state *from, cera_error *e) {
    if (!to || !from || to->grammar != from->grammar || to->trigger != from->trigger)
        return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: a state goes back only to one of its own grammar and trigger");
    if (!cera_configs_copy(&to->at, &from->at)) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    to->waiting = from->waiting;
    to->ended = from->ended;
    to->n_bytes = from->n_bytes;
    to->n_tail = from->n_tail;
    memcpy(to->tail, from->tail, from->n_tail);
    return CERA_OK;
}

cera_status cera_grammar_state_clone(const cera_grammar_state *s, cera_grammar_state **out, cera_error *e) {
    if (!s || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: state or out is NULL");
    *out = NULL;
    cera_grammar_state *c = cera_alloc(1, sizeof *c);
    if (!c) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    c->grammar = s->grammar;
    atomic_fetch_add(&c->grammar->refs, 1);
    c->trigger = cera_trigger_ref(s->trigger);
    cera_status status = cera_grammar_state_restore(c, s, e);
    if (status) {
        cera_grammar_state_destroy(c);
        return status;
    }
    *out = c;
    return CERA_OK;
}

/* Bytes under constraint, from s->at on; stops at the first that does not fit. With re-arming, a finished text hands the rest
 * back to the wait for the next trigger. */
static size_t constrained(cera_grammar_state *s, const char *text, size_t n) {
    cera_automaton *a = &s->grammar->a;
    size_t i = 0;
    for (; i < n && !s->waiting; i++) {
        if (!cera_configs_step(a, &s->at, (uint8_t)text[i], &s->next)) {
            if (a->failed || !s->at.complete || !s->trigger || !s->trigger->rearm) break;
            s->waiting = true; /* what follows a complete text is free again */
            s->n_tail = 0;
            return i;
        }
        cera_configs t = s->at;
        s->at = s->next;
        s->next = t;
    }
    if (i == n && !s->waiting && s->trigger && s->trigger->rearm && s->at.n == 0 && s->at.complete)
        s->waiting = true, s->n_tail = 0;
    return i;
}

static size_t run(cera_grammar_state *s, const char *text, size_t n) {
    size_t i = 0;
    while (i < n) {
        if (s->waiting) {
            size_t begin = 0;
            i += cera_trigger_scan(s, text + i, n - i, &begin);
            if (s->waiting) return n;
            if (!start(s)) return i;
            size_t size = s->n_tail - begin, fed = constrained(s, s->tail + begin, size);
            if (fed < size && !s->waiting) return i ? i - 1 : 0;
        } else {
            size_t fed = constrained(s, text + i, n - i);
            i += fed;
            if (i < n && !s->waiting) return i;
        }
    }
    return n;
}

static cera_status failed(const cera_grammar *g, cera_error *e) {
    return cera_fail(e, g->a.failed, "grammar: %s", g->a.reason);
}

cera_status cera_grammar_accept_text(cera_grammar_state *s, const char *text, size_t size, size_t *accepted, cera_error *e) {
    if (!s || (!text && size)) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: state or text is NULL");
    cera_grammar *g = s->grammar;
    cera_grammar_state before = {.waiting = s->waiting, .n_tail = s->n_tail};
    memcpy(before.tail, s->tail, s->n_tail);
    if (!cera_configs_copy(&before.at, &s->at)) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    pthread_mutex_lock(&g->lock);
    g->a.work = 0;
    g->a.max_work = MAX_WORK + 100 * (uint64_t)size;
    size_t n = s->ended ? 0 : run(s, text, size);
    cera_status status = g->a.failed ? failed(g, e) : CERA_OK;
    pthread_mutex_unlock(&g->lock);
    if (accepted) *accepted = n;
    if (!status && n < size)
        status = cera_fail(e, CERA_ERR_ARGUMENT, "grammar: byte %llu of the text does not fit",
                           (unsigned long long)(s->n_bytes + n));
    if (status) {
        cera_configs t = s->at;
        s->at = before.at;
        before.at = t;
        s->waiting = before.waiting;
        s->n_tail = before.n_tail;
        memcpy(s->tail, before.tail, before.n_tail);
    } else
        s->n_bytes += size;
    cera_configs_deinit(&before.at);
    return status;
}

/* The grammar's own token literals that this id is. */
static bool step_token(cera_grammar_state *s, int32_t id) {
    cera_automaton *a = &s->grammar->a;
    s->next.n = 0;
    s->next.complete = false;
    for (uint32_t i = 0; i < s->at.n; i++) {
        cera_pstate p = a->states[s->at.at[i].state];
        for (uint32_t k = 0; k < p.n_edges && (p.flags & CERA_S_TOKENS); k++) {
            cera_edge edge = a->edges[p.edge + k];
            bool fits = (edge.kind == CERA_EDGE_TOKEN && edge.id == (uint32_t)id) ||
                        (edge.kind == CERA_EDGE_NOT_TOKEN && edge.id != (uint32_t)id);
            if (fits) cera_configs_push(a, &s->next, cera_automaton_state(a, edge.rest), s->at.at[i].cell);
        }
    }
    bool any = s->next.n > 0;
    if (any) cera_configs_close(a, &s->next, 0);
    return any && !a->failed;
}

static bool is_eog(const cera_grammar_tokens *t, int32_t id) { return t->eog[id >> 5] >> (id & 31) & 1; }

/* A token that the grammar names by number, and perhaps by its bytes as well: both readings are kept. */
static cera_status accept_literal(cera_grammar_state *s, cera_text_view bytes, cera_error *e) {
    cera_grammar *g = s->grammar; /* the lock is not held: failed() reads what only grows */
    cera_configs both = s->next, plain = {0};
    s->next = (cera_configs){0};
    pthread_mutex_lock(&g->lock);
    if (bytes.size && constrained(s, bytes.text, bytes.size) == bytes.size) {
        plain = s->at;
        s->at = (cera_configs){0};
        for (uint32_t i = 0; i < plain.n; i++) cera_configs_push(&g->a, &both, plain.at[i].state, plain.at[i].cell);
        both.complete = both.complete || plain.complete;
    }
    pthread_mutex_unlock(&g->lock);
    cera_configs_deinit(&plain);
    cera_configs_deinit(&s->at);
    s->at = both;
    s->n_bytes += bytes.size;
    return g->a.failed ? failed(g, e) : CERA_OK;
}

cera_status cera_grammar_accept_token(cera_grammar_state *s, const cera_grammar_tokens *t, int32_t id, cera_error *e) {
    if (!s || !t || id < 0 || id >= t->n_tokens)
        return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: token %d is out of range", id);
    cera_grammar *g = s->grammar;
    if (s->ended) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: the text has ended");
    if (is_eog(t, id)) {
        if (!cera_grammar_is_complete(s))
            return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: the text is not complete: token %d cannot end it", id);
        s->ended = true;
        return CERA_OK;
    }
    if (s->waiting && cera_trigger_has_token(s->trigger, id)) {
        if (!start(s)) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
        return CERA_OK;
    }
    pthread_mutex_lock(&g->lock);
    bool literal = !s->waiting && step_token(s, id);
    pthread_mutex_unlock(&g->lock);
    if (literal) return accept_literal(s, t->bytes[id], e);
    if (!t->bytes[id].size && !s->waiting) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: token %d stands for no text", id);
    return cera_grammar_accept_text(s, t->bytes[id].text, t->bytes[id].size, NULL, e);
}

bool cera_grammar_is_complete(const cera_grammar_state *s) { return s && (s->waiting || s->ended || s->at.complete); }
bool cera_grammar_is_finished(const cera_grammar_state *s) {
    return s && !s->waiting && (s->ended || (s->at.complete && s->at.n == 0));
}
bool cera_grammar_is_waiting(const cera_grammar_state *s) { return s && s->waiting; }

cera_status cera_grammar_mask(cera_grammar_state *s, const cera_grammar_tokens *t, uint32_t *bits, cera_error *e) {
    if (!s || !t || !bits) return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: state, tokens or bits is NULL");
    cera_grammar *g = s->grammar;
    bool free_text = s->waiting || (s->at.complete && s->trigger && s->trigger->rearm);
    if (free_text || s->ended) {
        memset(bits, s->ended ? 0 : 0xFF, t->n_words * sizeof *bits);
        if (!s->ended && t->n_tokens & 31) bits[t->n_words - 1] = (1u << (t->n_tokens & 31)) - 1;
        return CERA_OK;
    }
    pthread_mutex_lock(&g->lock);
    g->a.work = 0;
    g->a.max_work = MAX_WORK;
    bool ok = cera_mask_compute(&g->masker, &g->a, &s->at, t, bits);
    cera_status status = ok ? CERA_OK : g->a.failed ? failed(g, e) : cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    pthread_mutex_unlock(&g->lock);
    if (status) return status;
    uint32_t any = 0;
    for (uint32_t w = 0; w < t->n_words && !any; w++) any |= bits[w];
    if (!any && !s->at.complete)
        return cera_fail(e, CERA_ERR_NOT_FOUND,
                         "grammar: dead end: no token of the vocabulary continues the text after byte %llu",
                         (unsigned long long)s->n_bytes);
    return CERA_OK;
}
