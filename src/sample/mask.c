/* mask.c: the tokens that may come next. A token is allowed when its bytes lead the automaton on. Three things make that cheap:
 * tokens of common characters are taken by whole bitmaps where the state allows every run of such characters (the inside of
 * most strings); the others are walked as a trie, in which a dead prefix ends a subtree and one table look-up is a step; and
 * whole masks are kept by position. Does not own: the automaton, the tries. */
#include "sample/mask_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/hash.h"

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

/* Takes the runs of the slices into bits; what they leave open is the set of tries to walk (bit i: tries[i]). */
static uint32_t take_slices(const cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, uint32_t *bits) {
    uint32_t open = 1u << CERA_TRIE_SLICES;
    for (int slice = 0; slice < CERA_TRIE_SLICES && !a->failed; slice++) {
        cera_run best = {0, true};
        for (uint32_t i = 0; i < m->start.n; i++) {
            cera_run r = cera_mask_run(a, m->start.at[i].state, slice);
            if (r.n > best.n) best.n = r.n;
            best.exact = best.exact && r.exact;
        }
        uint32_t n = best.n < CERA_TRIE_RUN ? (uint32_t)best.n : CERA_TRIE_RUN;
        if (n) {
            const uint32_t *run_bits = t->runs[slice] + (size_t)n * t->n_words;
            for (uint32_t w = 0; w < t->n_words; w++) bits[w] |= run_bits[w];
        }
        if (!best.exact && n < CERA_TRIE_RUN) open |= 1u << slice;
    }
    return open;
}

/* The record of the one state that all configurations share; made when it is not there. NULL: no memory for it. */
static const cera_lexeme *lexeme_of(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, uint32_t state) {
    cera_lexeme *x = &m->lexemes[cera_hash_mix(state, t->number) % CERA_MASK_LEXEMES];
    if (x->tokens == t->number && x->state == state) return x;
    x->tokens = 0;
    x->n_exits = 0;
    if (x->n_words != t->n_words) {
        cera_free(x->bits);
        x->bits = cera_alloc(t->n_words, sizeof *x->bits);
        x->n_words = x->bits ? t->n_words : 0;
        if (!x->bits) return NULL;
    }
    memset(x->bits, 0, t->n_words * sizeof *x->bits);
    uint32_t open = take_slices(m, a, t, x->bits);
    for (int i = 0; i <= CERA_TRIE_SLICES; i++)
        if (open >> i & 1) cera_mask_walk_lexeme(m, a, t, i, x);
    x->state = state;
    if (!a->failed) x->tokens = t->number;
    return x;
}

static void by_bytes(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, uint32_t *bits) {
    const cera_lexeme *x = m->frames[0].state ? lexeme_of(m, a, t, m->frames[0].state) : NULL;
    if (x) {
        memcpy(bits, x->bits, t->n_words * sizeof *bits);
        cera_mask_walk_exits(m, a, t, x, bits);
        return;
    }
    memset(bits, 0, t->n_words * sizeof *bits);
    uint32_t open = take_slices(m, a, t, bits);
    for (int i = 0; i <= CERA_TRIE_SLICES; i++)
        if (open >> i & 1) cera_mask_walk(m, a, t, &t->tries[i], bits);
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
    uint64_t seed = t->number * 2 + m->start.complete;
    uint64_t h = m->start.n ? cera_hash64(m->start.at, m->start.n * sizeof *m->start.at, seed) : seed;
    return &m->cache[h % CERA_MASK_CACHE];
}

static bool cache_has(const cera_masker *m, const cera_mask_entry *c, const cera_grammar_tokens *t) {
    return c && c->tokens == t->number && c->n == m->start.n && c->complete == m->start.complete &&
           (!c->n || !memcmp(c->key, m->start.at, c->n * sizeof *c->key));
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
    if (m->start.n) memcpy(c->key, m->start.at, m->start.n * sizeof *c->key);
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
    if (!cera_mask_begin(m, a, t->max_size)) return false;
    by_bytes(m, a, t, bits);
    literal_tokens(m, a, t, bits);
    for (uint32_t w = 0; m->start.complete && w < t->n_words; w++) bits[w] |= t->eog[w];
    if (a->failed) return false;
    cache_put(m, slot, t, bits);
    return true;
}

void cera_masker_deinit(cera_masker *m) {
    for (int i = 0; i < CERA_MASK_CACHE; i++) cera_free(m->cache[i].bits);
    for (int i = 0; i < CERA_MASK_LEXEMES; i++) cera_free(m->lexemes[i].bits), free(m->lexemes[i].exits);
    free(m->frames);
    free(m->pool);
    free(m->sets);
    free(m->rows);
    free(m->crossings);
    cera_configs_deinit(&m->start);
    cera_configs_deinit(&m->step);
}
