/* mask.c: the tokens that may come next. A token is allowed when its bytes lead the automaton on. Three things make that cheap:
 * tokens of common characters are taken by whole bitmaps where the state allows every run of such characters (the inside of
 * most strings); the others are walked as a trie, in which a dead prefix ends a subtree and one table look-up is a step; and
 * whole masks are kept by position. Does not own: the automaton, the tries. */
#include "sample/mask_int.h"

#include <string.h>
#include "base/arena.h"
#include "base/hash.h"

enum { RUN_ALL = 32767, RUN_UNKNOWN = -2 };

typedef struct run {
    int32_t n;
    bool exact;
} run; /* every text of up to n characters of the slice leads on; exact: and no longer one */

/* Whether x accepts every character of the slice, by itself. */
static bool takes_any(const cera_automaton *a, cera_expr x, int slice) {
    const cera_node *n = &a->nodes[x];
    if (n->kind == CERA_K_CHAR) return a->cnodes[n->a].slices >> slice & 1;
    for (uint32_t i = 0; n->kind == CERA_K_OR && i < n->b; i++)
        if (takes_any(a, a->lists[n->a + i], slice)) return true;
    return false;
}

static run loop_run(const cera_automaton *a, cera_expr loop, cera_expr rest, int slice) {
    const cera_node *r = &a->nodes[loop];
    if (r->kind != CERA_K_REP || !takes_any(a, r->a, slice)) return (run){0, false};
    if (r->m >= RUN_ALL) return (run){RUN_ALL, true};
    const cera_node *y = &a->nodes[rest];
    bool stops = y->kind == CERA_K_LIT && a->text[y->a] == '"'; /* no slice has a quote */
    if (y->kind == CERA_K_CAT) stops = a->nodes[y->a].kind == CERA_K_LIT && a->text[a->nodes[y->a].a] == '"';
    return (run){(int32_t)r->m, stops && a->nodes[r->a].kind == CERA_K_CHAR};
}

/* An infinite or long loop less finitely many texts: none of them can be all that is left before the loop's last character. */
static run difference_run(const cera_automaton *a, const cera_node *n, cera_expr rest, int slice) {
    run best = {0, false};
    uint32_t positive = 0, removed = 0;
    for (uint32_t i = 0; i < n->b; i++) {
        cera_expr child = a->lists[n->a + i];
        const cera_node *c = &a->nodes[child];
        if (c->kind == CERA_K_NOT) {
            if (a->nodes[c->a].card == UINT32_MAX) return (run){0, false};
            removed += a->nodes[c->a].card;
        } else if (positive++)
            return (run){0, false};
        else
            best = loop_run(a, child, rest, slice);
    }
    if (best.n == RUN_ALL || best.n == 0) return best;
    return (run){removed < 20 ? best.n - 1 : 0, false}; /* the smallest slice has 26 characters */
}

static run shape_run(const cera_automaton *a, cera_expr x, cera_expr rest, int slice) {
    const cera_node *n = &a->nodes[x];
    if (n->kind == CERA_K_CAT && rest == CERA_EXPR_EPS) {
        if (a->nodes[n->a].kind != CERA_K_CHAR || !takes_any(a, n->a, slice)) return shape_run(a, n->a, n->b, slice);
        run r = shape_run(a, n->b, CERA_EXPR_EPS, slice); /* one character, then the rest */
        return (run){r.n == RUN_ALL ? RUN_ALL : r.n + 1, r.n == RUN_ALL};
    }
    if (n->kind == CERA_K_REP) return loop_run(a, x, rest, slice);
    if (n->kind == CERA_K_AND) return difference_run(a, n, rest, slice);
    if (n->kind != CERA_K_OR) return (run){0, false};
    run best = {0, true};
    for (uint32_t i = 0; i < n->b; i++) {
        run r = shape_run(a, a->lists[n->a + i], rest, slice);
        if (r.n > best.n) best.n = r.n;
        best.exact = best.exact && r.exact;
    }
    if (best.n == RUN_ALL) best.exact = true;
    return best;
}

/* Whether no character of the slice can begin here. */
static bool shuns(cera_automaton *a, uint32_t state, int slice) {
    static const uint8_t lead[3][8] = {{'a', 'z'}, {'-', '-', '0', '9', 'A', 'Z', 'a', 'z'}, {0x20, 0xF4}}; /* and '_' below */
    for (int i = 0; i < 8 && lead[slice][i]; i += 2)
        for (int b = lead[slice][i]; b <= lead[slice][i + 1]; b++) {
            if (b == '"' || b == '\\' || (b >= 0x7F && b < 0xC2)) continue;
            if (cera_automaton_next(a, state, (uint8_t)b)) return false;
        }
    return slice != 1 || !cera_automaton_next(a, state, '_');
}

static run state_run(cera_automaton *a, uint32_t state, int slice) {
    const cera_pstate *s = &a->states[state];
    if (s->run[slice] == RUN_UNKNOWN) {
        run r = shape_run(a, s->expr, CERA_EXPR_EPS, slice);
        if (r.n == 0 && !r.exact) r.exact = shuns(a, state, slice);
        cera_pstate *w = &a->states[state];
        w->run[slice] = (int16_t)r.n;
        w->run_exact |= (uint8_t)(r.exact << slice);
    }
    s = &a->states[state];
    return (run){s->run[slice], s->run_exact >> slice & 1};
}

/* The state a mask starts from: counters that no token can use up are cut short, which lets positions share masks. */
static uint32_t clamped(cera_automaton *a, uint32_t state, const cera_grammar_tokens *t) {
    cera_expr x = a->states[state].expr;
    if (!(a->nodes[x].flags & CERA_X_BIG) || t->max_size >= CERA_CLAMP) return state;
    if (!a->states[state].clamped) {
        uint32_t to = cera_automaton_state(a, cera_expr_clamp(a, x));
        if (a->failed) return state;
        a->states[state].clamped = to + 1;
    }
    return a->states[state].clamped - 1;
}

static bool prepare(cera_masker *m, cera_automaton *a, const cera_configs *at, const cera_grammar_tokens *t) {
    m->start.n = 0;
    for (uint32_t i = 0; i < at->n; i++)
        if (!cera_configs_push(a, &m->start, clamped(a, at->at[i].state, t), at->at[i].cell)) return false;
    m->start.complete = at->complete;
    return !a->failed;
}

static void slices(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, uint32_t *bits) {
    for (int slice = 0; slice < CERA_TRIE_SLICES && !a->failed; slice++) {
        run best = {0, true};
        for (uint32_t i = 0; i < m->start.n; i++) {
            run r = state_run(a, m->start.at[i].state, slice);
            if (r.n > best.n) best.n = r.n;
            best.exact = best.exact && r.exact;
        }
        uint32_t n = best.n < CERA_TRIE_RUN ? (uint32_t)best.n : CERA_TRIE_RUN;
        if (n) {
            const uint32_t *run_bits = t->runs[slice] + (size_t)n * t->n_words;
            for (uint32_t w = 0; w < t->n_words; w++) bits[w] |= run_bits[w];
        }
        if (!best.exact && n < CERA_TRIE_RUN) cera_mask_walk(m, a, t, &t->tries[slice], bits);
    }
}

/* Token literals of the grammar. */
static void literal_tokens(const cera_masker *m, const cera_automaton *a, const cera_grammar_tokens *t, uint32_t *bits) {
    for (uint32_t i = 0; i < m->start.n; i++) {
        const cera_pstate *s = &a->states[m->start.at[i].state];
        for (uint32_t k = 0; k < s->n_edges && (s->flags & CERA_S_TOKENS); k++) {
            const cera_edge *e = &a->edges[s->edge + k];
            if (e->kind == CERA_EDGE_TOKEN && e->id < (uint32_t)t->n_tokens) bits[e->id >> 5] |= 1u << (e->id & 31);
            for (uint32_t id = 0; e->kind == CERA_EDGE_NOT_TOKEN && id < (uint32_t)t->n_tokens; id++)
                if (id != e->id && !(t->eog[id >> 5] >> (id & 31) & 1)) bits[id >> 5] |= 1u << (id & 31);
        }
    }
}

static cera_mask_entry *cache_slot(cera_masker *m, const cera_grammar_tokens *t) {
    if (m->start.n > CERA_MASK_KEY) return NULL;
    uint64_t h = cera_hash64(m->start.at, m->start.n * sizeof *m->start.at, t->number + m->start.complete);
    return &m->cache[h % CERA_MASK_CACHE];
}

static bool cache_has(const cera_masker *m, const cera_mask_entry *c, const cera_grammar_tokens *t) {
    return c && c->tokens == t->number && c->n == m->start.n && c->complete == m->start.complete &&
           !memcmp(c->key, m->start.at, c->n * sizeof *c->key);
}

static void cache_put(const cera_masker *m, cera_mask_entry *c, const cera_grammar_tokens *t, const uint32_t *bits) {
    if (!c) return;
    c->tokens = 0;
    if (c->n_words != t->n_words) {
        cera_free(c->bits);
        c->bits = cera_alloc(t->n_words, sizeof *c->bits);
        c->n_words = c->bits ? t->n_words : 0;
    }
    if (!c->bits) return; /* without memory there is no cache */
    memcpy(c->bits, bits, t->n_words * sizeof *bits);
    memcpy(c->key, m->start.at, m->start.n * sizeof *c->key);
    c->n = m->start.n;
    c->complete = m->start.complete;
    c->tokens = t->number;
}

bool cera_mask_compute(cera_masker *m, cera_automaton *a, const cera_configs *at, const cera_grammar_tokens *t,
                       uint32_t *bits) {
    if (a->failed || !prepare(m, a, at, t)) return false;
    cera_mask_entry *slot = cache_slot(m, t);
    if (cache_has(m, slot, t)) {
        m->hits++;
        memcpy(bits, slot->bits, t->n_words * sizeof *bits);
        return true;
    }
    m->misses++;
    memset(bits, 0, t->n_words * sizeof *bits);
    if (!cera_mask_begin(m, a, t->max_size)) return false;
    slices(m, a, t, bits);
    cera_mask_walk(m, a, t, &t->tries[CERA_TRIE_SLICES], bits);
    literal_tokens(m, a, t, bits);
    for (uint32_t w = 0; m->start.complete && w < t->n_words; w++) bits[w] |= t->eog[w];
    if (a->failed) return false;
    cache_put(m, slot, t, bits);
    return true;
}

void cera_masker_deinit(cera_masker *m) {
    for (int i = 0; i < CERA_MASK_CACHE; i++) cera_free(m->cache[i].bits);
    cera_free(m->frames);
    cera_free(m->pool);
    cera_free(m->sets);
    cera_free(m->rows);
    cera_free(m->crossings);
    cera_configs_deinit(&m->start);
    cera_configs_deinit(&m->step);
}
