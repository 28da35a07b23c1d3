/* mask_walk.c: one pass over a trie of tokens. Within a lexeme a step is one look-up in the automaton's own table; where rules
 * are called or end, sets of configurations are kept by number, and their transitions are remembered, from mask to mask. Does
 * not own: which tries are walked (mask.c). */
#include "sample/mask_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/hash.h"

enum { BUCKETS = 4096, MAX_SETS = 20000, MAX_CROSSINGS = 100000 };

static bool grow(cera_automaton *a, void **array, uint32_t n, uint32_t more, uint32_t *capacity, size_t size) {
    if (n + more <= *capacity) return true;
    uint32_t want = *capacity * 2 > n + more ? *capacity * 2 : n + more + 64;
    void *p = realloc(*array, (size_t)want * size); /* moves by page tables when large */
    if (!p) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), false;
    *array = p;
    *capacity = want;
    return true;
}

static bool is_dead(cera_place p) { return p.set == UINT32_MAX; }
static bool is_unknown(cera_place p) { return p.state == UINT32_MAX; }

/* The place of m->step's configurations. */
static cera_place place_of(cera_masker *m, cera_automaton *a) {
    const cera_configs *c = &m->step;
    if (!c->n && !c->complete) return CERA_PLACE_DEAD;
    uint64_t h = c->n ? cera_hash64(c->at, c->n * sizeof *c->at, c->complete) : c->complete;
    uint32_t *bucket = &m->set_buckets[h & (BUCKETS - 1)], at = *bucket;
    for (; at; at = m->sets[at - 1].next) {
        const cera_mask_set *s = &m->sets[at - 1];
        if (s->n == c->n && s->complete == c->complete && (!c->n || !memcmp(m->pool + s->first, c->at, c->n * sizeof *c->at)))
            break;
    }
    if (!at) {
        if (!grow(a, (void **)&m->sets, m->n_sets, 1, &m->cap_sets, sizeof *m->sets) ||
            !grow(a, (void **)&m->pool, m->n_pool, c->n, &m->cap_pool, sizeof *m->pool))
            return CERA_PLACE_DEAD;
        if (c->n) memcpy(m->pool + m->n_pool, c->at, c->n * sizeof *c->at);
        m->sets[m->n_sets] = (cera_mask_set){.first = m->n_pool, .n = c->n, .complete = c->complete, .next = *bucket};
        m->n_pool += c->n;
        *bucket = at = ++m->n_sets;
    }
    uint32_t state = c->n ? c->at[0].state : 0;
    for (uint32_t i = 1; i < c->n; i++)
        if (c->at[i].state != state) state = 0;
    return (cera_place){state, at - 1};
}

/* Into a state where rules are called or end, with the stacks of a set. */
static cera_place cross(cera_masker *m, cera_automaton *a, uint32_t state, uint32_t set) {
    uint32_t *bucket = &m->crossing_buckets[cera_hash_mix(state, set) & (BUCKETS - 1)];
    for (uint32_t at = *bucket; at; at = m->crossings[at - 1].next)
        if (m->crossings[at - 1].state == state && m->crossings[at - 1].set == set) return m->crossings[at - 1].to;
    m->step.n = 0;
    m->step.complete = false;
    for (uint32_t i = 0; i < m->sets[set].n; i++) cera_configs_push(a, &m->step, state, m->pool[m->sets[set].first + i].cell);
    cera_configs_close(a, &m->step, 0);
    cera_place to = place_of(m, a);
    if (a->failed || !grow(a, (void **)&m->crossings, m->n_crossings, 1, &m->cap_crossings, sizeof *m->crossings))
        return CERA_PLACE_DEAD;
    m->crossings[m->n_crossings] = (cera_crossing){state, set, *bucket, to};
    *bucket = ++m->n_crossings;
    return to;
}

static cera_place step_set(cera_masker *m, cera_automaton *a, uint32_t set, uint8_t byte) {
    cera_mask_set s = m->sets[set];
    m->step.n = 0;
    m->step.complete = false;
    for (uint32_t i = 0; i < s.n; i++) {
        cera_config c = m->pool[s.first + i];
        uint32_t to = cera_automaton_next(a, c.state, byte);
        if (to) cera_configs_push(a, &m->step, to, c.cell);
    }
    if (m->step.n) cera_configs_close(a, &m->step, 0);
    return place_of(m, a);
}

static cera_place next_of_set(cera_masker *m, cera_automaton *a, uint32_t set, uint8_t byte) {
    if (!m->sets[set].row) {
        if (!grow(a, (void **)&m->rows, m->n_rows * 256, 256, &m->cap_rows, sizeof *m->rows)) return CERA_PLACE_DEAD;
        memset(m->rows + (size_t)m->n_rows * 256, 0xFF, 256 * sizeof *m->rows); /* unknown */
        m->sets[set].row = ++m->n_rows;
    }
    size_t at = (size_t)(m->sets[set].row - 1) * 256 + byte;
    if (is_unknown(m->rows[at])) {
        cera_place to = step_set(m, a, set, byte);
        m->rows[at] = to;
    }
    return m->rows[at];
}

bool cera_mask_begin(cera_masker *m, cera_automaton *a, uint32_t max_depth) {
    if (m->n_sets > MAX_SETS || m->n_crossings > MAX_CROSSINGS) { /* between masks nobody holds a place */
        m->n_sets = m->n_pool = m->n_rows = m->n_crossings = 0;
        memset(m->set_buckets, 0, sizeof m->set_buckets);
        memset(m->crossing_buckets, 0, sizeof m->crossing_buckets);
    }
    if (!grow(a, (void **)&m->frames, 0, max_depth + 1, &m->cap_frames, sizeof *m->frames)) return false;
    if (!cera_configs_copy(&m->step, &m->start)) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), false;
    m->frames[0] = place_of(m, a);
    return !a->failed;
}

static void set_bits(uint32_t *bits, const int32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) bits[ids[i] >> 5] |= 1u << (ids[i] & 31);
}

/* Nodes first .. last - 1, whose parents' places are in m->frames. */
static void walk(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, const cera_trie_node *nodes, uint32_t first,
                 uint32_t last, uint32_t *bits) {
    cera_place *frames = m->frames;
    for (uint32_t i = first; i < last && !a->failed;) {
        const cera_trie_node *node = &nodes[i];
        cera_place from = frames[node->depth - 1], to = CERA_PLACE_DEAD;
        if (from.state) {
            uint32_t s = cera_automaton_next(a, from.state, node->byte);
            if (s) to = a->states[s].flags & CERA_S_BOUNDARY ? cross(m, a, s, from.set) : (cera_place){s, from.set};
        } else
            to = next_of_set(m, a, from.set, node->byte);
        if (is_dead(to)) {
            i = node->skip;
            continue;
        }
        if (node->n_tokens) set_bits(bits, t->ids + node->first_token, node->n_tokens);
        frames[node->depth] = to;
        i = to.state || m->sets[to.set].n ? i + 1 : node->skip;
    }
}

void cera_mask_walk(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, const cera_trie *trie, uint32_t *bits) {
    if (!is_dead(m->frames[0])) walk(m, a, t, trie->nodes, 0, trie->n, bits);
}

void cera_mask_walk_lexeme(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, int trie, cera_lexeme *x) {
    const cera_trie_node *nodes = t->tries[trie].nodes;
    cera_place *frames = m->frames;
    for (uint32_t i = 0; i < t->tries[trie].n && !a->failed;) {
        const cera_trie_node *node = &nodes[i];
        uint32_t s = cera_automaton_next(a, frames[node->depth - 1].state, node->byte);
        bool boundary = s && (a->states[s].flags & CERA_S_BOUNDARY);
        if (boundary && grow(a, (void **)&x->exits, x->n_exits, 1, &x->cap_exits, sizeof *x->exits))
            x->exits[x->n_exits++] = (cera_exit){i, s, (uint8_t)trie};
        if (!s || boundary) {
            i = node->skip;
            continue;
        }
        if (node->n_tokens) set_bits(x->bits, t->ids + node->first_token, node->n_tokens);
        frames[node->depth] = (cera_place){s, frames[0].set};
        i++;
    }
}

void cera_mask_walk_exits(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, const cera_lexeme *x,
                          uint32_t *bits) {
    uint32_t last = 0;
    cera_place to = CERA_PLACE_DEAD;
    for (uint32_t i = 0; i < x->n_exits && !a->failed; i++) {
        const cera_exit *exit = &x->exits[i];
        const cera_trie_node *nodes = t->tries[exit->trie].nodes, *node = &nodes[exit->node];
        if (exit->state != last) to = cross(m, a, exit->state, m->frames[0].set), last = exit->state;
        if (is_dead(to)) continue;
        if (node->n_tokens) set_bits(bits, t->ids + node->first_token, node->n_tokens);
        m->frames[node->depth] = to;
        if (to.state || m->sets[to.set].n) walk(m, a, t, nodes, exit->node + 1, node->skip, bits);
    }
}
