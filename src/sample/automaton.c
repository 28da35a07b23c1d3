/* automaton.c: the automaton's memory, its lazily made states and transitions, its stack cells, and the set of configurations
 * (state, stack) that a text leads to. The set is all there is to a position: it is a function of the text and can be copied.
 * Does not own: expressions (automaton_expr.c, automaton_derive.c). */
#include "sample/automaton_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"

enum { MAX_CONFIGS = 2000 };

void cera_automaton_fail(cera_automaton *a, cera_status s, const char *reason) {
    if (a->failed) return;
    a->failed = s;
    a->reason = reason;
}

bool cera_automaton_grow(cera_automaton *a, void **array, uint32_t n, uint32_t more, uint32_t *capacity, size_t size) {
    if (a->failed) return false;
    if (more <= *capacity - n && *array) return true;
    uint64_t want = *capacity < 16 ? 32 : (uint64_t)*capacity * 2;
    if (want < (uint64_t)n + more) want = (uint64_t)n + more;
    size_t added = (size_t)(want - *capacity) * size;
    if (want > UINT32_MAX / 2 || a->bytes + added > a->max_bytes)
        return cera_automaton_fail(a, CERA_ERR_LIMIT, "the automaton grows beyond its memory limit"), false;
    void *p = realloc(*array, (size_t)want *
                                  size); /* large arrays move by page tables, not by copying: a mask must not wait for that */
    if (!p) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), false;
    a->bytes += added;
    *array = p;
    *capacity = (uint32_t)want;
    return true;
}

cera_status cera_automaton_init(cera_automaton *a, cera_escapes escapes, size_t max_bytes) {
    *a = (cera_automaton){.escapes = escapes, .max_bytes = max_bytes};
    cera_expr_node(a, (cera_node){.kind = CERA_K_EMPTY});
    cera_expr_node(a, (cera_node){.kind = CERA_K_EPS});
    cera_expr_node(a, (cera_node){.kind = CERA_K_ANY});
    cera_automaton_state(a, CERA_EXPR_EMPTY); /* state 0 is dead */
    if (cera_automaton_grow(a, (void **)&a->cells, 0, 1, &a->cap_cells, sizeof *a->cells)) a->n_cells = 1;
    return a->failed;
}

void cera_automaton_deinit(cera_automaton *a) {
    free(a->nodes);
    free(a->buckets);
    free(a->lists);
    free(a->text);
    free(a->cranges);
    free(a->cnodes);
    free(a->parts);
    free(a->states);
    free(a->rows);
    free(a->edges);
    free(a->cells);
    cera_free(a->cell_buckets);
    free(a->rule_state);
    free(a->tmp);
    *a = (cera_automaton){0};
}

/* The partition of the 256 bytes that these bounds make; few are in use, and a new state mostly has a recent one. */
static uint32_t partition(cera_automaton *a, const uint64_t bounds[4]) {
    for (uint32_t i = a->n_parts; i-- > 0;)
        if (!memcmp(a->parts[i].bounds, bounds, sizeof a->parts[i].bounds)) return i;
    if (!cera_automaton_grow(a, (void **)&a->parts, a->n_parts, 1, &a->cap_parts, sizeof *a->parts)) return 0;
    cera_part *p = &a->parts[a->n_parts];
    memcpy(p->bounds, bounds, sizeof p->bounds);
    p->n = 0;
    for (int b = 0; b < 256; b++) {
        if (b == 0 || (bounds[b >> 6] >> (b & 63) & 1)) p->first[p->n++] = (uint8_t)b;
        p->map[b] = (uint8_t)(p->n - 1);
    }
    return a->n_parts++;
}

static bool add_edge(cera_automaton *a, cera_edge e) {
    if (!cera_automaton_grow(a, (void **)&a->edges, a->n_edges, 1, &a->cap_edges, sizeof *a->edges)) return false;
    a->edges[a->n_edges++] = e;
    return true;
}

/* The symbols that x may begin with, each with what follows it. */
static void find_edges(cera_automaton *a, cera_expr x) {
    cera_node n = a->nodes[x];
    if (!(n.flags & CERA_X_EDGES)) return;
    uint32_t first = a->n_edges;
    switch (n.kind) {
    case CERA_K_CALL: add_edge(a, (cera_edge){CERA_EDGE_CALL, n.a, CERA_EXPR_EPS}); break;
    case CERA_K_TOKEN: add_edge(a, (cera_edge){n.n ? CERA_EDGE_NOT_TOKEN : CERA_EDGE_TOKEN, n.a, CERA_EXPR_EPS}); break;
    case CERA_K_CAT:
        find_edges(a, n.a);
        for (uint32_t i = first; i < a->n_edges; i++) {
            cera_expr rest = cera_expr_cat(a, a->edges[i].rest, n.b);
            a->edges[i].rest = rest;
        }
        if (cera_expr_nullable(a, n.a)) find_edges(a, n.b);
        break;
    case CERA_K_OR:
        for (uint32_t i = 0; i < n.b; i++) find_edges(a, a->lists[n.a + i]);
        break;
    case CERA_K_REP:
        find_edges(a, n.a);
        for (uint32_t i = first; i < a->n_edges; i++) {
            cera_expr again = cera_expr_rep(a, n.a, n.n ? n.n - 1 : 0, n.m == CERA_REP_INF ? n.m : n.m - 1);
            cera_expr rest = cera_expr_cat(a, a->edges[i].rest, again);
            a->edges[i].rest = rest;
        }
        break;
    case CERA_K_MACRO: find_edges(a, cera_expr_expand(a, x)); break;
    default: break;
    }
}

static uint8_t state_flags(const cera_automaton *a, const cera_pstate *s) {
    uint8_t f = cera_expr_nullable(a, s->expr) ? CERA_S_NULLABLE : 0;
    for (uint32_t i = 0; i < s->n_edges; i++) f |= a->edges[s->edge + i].kind == CERA_EDGE_CALL ? CERA_S_CALLS : CERA_S_TOKENS;
    if (a->parts[s->part].n > 1 || s->expr == CERA_EXPR_ANY || (a->nodes[s->expr].flags & CERA_X_IMPURE)) f |= CERA_S_BYTES;
    return f;
}

uint32_t cera_automaton_state(cera_automaton *a, cera_expr x) {
    if (a->failed) return 0;
    if (a->nodes[x].state) return a->nodes[x].state - 1;
    uint64_t bounds[4] = {0};
    cera_expr_bounds(a, x, bounds);
    bounds[0] &= ~1ull;
    cera_pstate s = {.expr = x, .part = partition(a, bounds), .edge = a->n_edges, .run = {-2, -2, -2, -2, -2, -2, -2}};
    find_edges(a, x);
    s.n_edges = a->n_edges - s.edge;
    if (a->failed) return 0;
    uint32_t n = a->parts[s.part].n;
    if (!cera_automaton_grow(a, (void **)&a->rows, a->n_rows, n, &a->cap_rows, sizeof *a->rows) ||
        !cera_automaton_grow(a, (void **)&a->states, a->n_states, 1, &a->cap_states, sizeof *a->states))
        return 0;
    s.row = a->n_rows;
    memset(a->rows + s.row, 0xFF, n * sizeof *a->rows);
    a->n_rows += n;
    s.flags = state_flags(a, &s);
    a->states[a->n_states] = s;
    a->nodes[x].state = ++a->n_states;
    return a->n_states - 1;
}

uint32_t cera_automaton_fill(cera_automaton *a, uint32_t state, uint32_t cls) {
    const cera_pstate *s = &a->states[state];
    cera_expr d = cera_expr_derive(a, s->expr, a->parts[s->part].first[cls]);
    uint32_t to = cera_automaton_state(a, d);
    if (a->failed) return 0;
    if (!a->states[to].flags) to = 0; /* a macro that turned out to be nothing */
    a->rows[a->states[state].row + cls] = to;
    return to;
}

static bool rehash_cells(cera_automaton *a) {
    uint32_t n = a->n_cell_buckets ? a->n_cell_buckets * 2 : 4096;
    uint32_t *b = cera_alloc(n, sizeof *b);
    if (!b) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), false;
    for (uint32_t i = 1; i < a->n_cells; i++) {
        uint32_t at = (uint32_t)cera_hash_mix(a->cells[i].state, a->cells[i].parent) & (n - 1);
        a->cells[i].next = b[at];
        b[at] = i;
    }
    cera_free(a->cell_buckets);
    a->cell_buckets = b;
    a->n_cell_buckets = n;
    return true;
}

uint32_t cera_automaton_cell(cera_automaton *a, uint32_t state, uint32_t parent) {
    if (a->failed || (a->n_cells >= a->n_cell_buckets && !rehash_cells(a))) return 0;
    uint32_t at = (uint32_t)cera_hash_mix(state, parent) & (a->n_cell_buckets - 1);
    for (uint32_t i = a->cell_buckets[at]; i; i = a->cells[i].next)
        if (a->cells[i].state == state && a->cells[i].parent == parent) return i;
    if (!cera_automaton_grow(a, (void **)&a->cells, a->n_cells, 1, &a->cap_cells, sizeof *a->cells)) return 0;
    a->cells[a->n_cells] = (cera_cell){state, parent, a->cell_buckets[at]};
    a->cell_buckets[at] = a->n_cells;
    return a->n_cells++;
}

static uint32_t start_of(cera_automaton *a, uint32_t rule) {
    if (rule >= a->cap_rules) {
        uint32_t before = a->cap_rules;
        if (!cera_automaton_grow(a, (void **)&a->rule_state, before, rule + 1 - before, &a->cap_rules, sizeof *a->rule_state))
            return 0;
        memset(a->rule_state + before, 0, (a->cap_rules - before) * sizeof *a->rule_state);
    }
    if (!a->rule_state[rule]) {
        uint32_t s = cera_automaton_state(a, a->rule_body(a->owner, rule));
        if (a->failed) return 0;
        a->rule_state[rule] = s + 1;
    }
    return a->rule_state[rule] - 1;
}

void cera_configs_deinit(cera_configs *c) {
    cera_free(c->at);
    *c = (cera_configs){0};
}

/* A configuration is kept once. The sets are small but for ambiguous grammars. */
bool cera_configs_push(cera_automaton *a, cera_configs *c, uint32_t state, uint32_t cell) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].state == state && c->at[i].cell == cell) return true;
    if (c->n == MAX_CONFIGS) return cera_automaton_fail(a, CERA_ERR_LIMIT, "too ambiguous: too many parses at once"), false;
    if (c->n == c->capacity) {
        uint32_t n = c->capacity ? c->capacity * 2 : 8;
        cera_config *p = cera_alloc_grow(c->at, c->n, n, sizeof *p);
        if (!p) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), false;
        c->at = p;
        c->capacity = n;
    }
    c->at[c->n++] = (cera_config){state, cell};
    return true;
}

bool cera_configs_copy(cera_configs *to, const cera_configs *from) {
    if (to->capacity < from->n) {
        cera_config *p = cera_alloc(from->n, sizeof *p);
        if (!p) return false;
        cera_free(to->at);
        to->at = p;
        to->capacity = from->n;
    }
    if (from->n) memcpy(to->at, from->at, from->n * sizeof *to->at);
    to->n = from->n;
    to->complete = from->complete;
    return true;
}

static void close_one(cera_automaton *a, cera_configs *c, cera_config at) {
    cera_pstate s = a->states[at.state];
    if (s.flags & CERA_S_NULLABLE) {
        if (at.cell == 0)
            c->complete = true;
        else
            cera_configs_push(a, c, a->cells[at.cell].state, a->cells[at.cell].parent);
    }
    if (!(s.flags & CERA_S_CALLS)) return;
    for (uint32_t i = 0; i < s.n_edges; i++) {
        cera_edge e = a->edges[s.edge + i];
        if (e.kind != CERA_EDGE_CALL) continue;
        uint32_t cell = at.cell; /* a call in tail position returns where its caller would */
        if (e.rest != CERA_EXPR_EPS) cell = cera_automaton_cell(a, cera_automaton_state(a, e.rest), at.cell);
        uint32_t start = start_of(a, e.id);
        if (!a->failed) cera_configs_push(a, c, start, cell);
    }
}

void cera_configs_close(cera_automaton *a, cera_configs *c, uint32_t from) {
    for (uint32_t i = from; i < c->n && !a->failed; i++) close_one(a, c, c->at[i]);
    uint32_t kept = from;
    for (uint32_t i = from; i < c->n; i++)
        if (a->states[c->at[i].state].flags & (CERA_S_BYTES | CERA_S_TOKENS)) c->at[kept++] = c->at[i];
    c->n = kept;
}

void cera_configs_start(cera_automaton *a, cera_configs *c, uint32_t rule) {
    c->n = 0;
    c->complete = false;
    uint32_t start = start_of(a, rule);
    if (a->failed) return;
    cera_configs_push(a, c, start, 0);
    cera_configs_close(a, c, 0);
}

bool cera_configs_step(cera_automaton *a, const cera_configs *from, uint8_t byte, cera_configs *to) {
    to->n = 0;
    to->complete = false;
    for (uint32_t i = 0; i < from->n && !a->failed; i++) {
        uint32_t s = cera_automaton_next(a, from->at[i].state, byte);
        if (s) cera_configs_push(a, to, s, from->at[i].cell);
    }
    cera_configs_close(a, to, 0);
    return !a->failed && (to->n || to->complete);
}
