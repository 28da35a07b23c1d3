/* automaton_derive.c: what is left of an expression after one byte, where bytes differ for it, and whether an intersection has
 * any text at all (a search over derivatives that stops at the first text). Does not own: constructors, states. */
#include "sample/automaton_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"

enum { SEARCH_LIMIT = 6000 };

cera_expr cera_expr_expand(cera_automaton *a, cera_expr macro) {
    if (a->nodes[macro].b) return a->nodes[macro].b - 1;
    cera_expr x = a->macro_body ? a->macro_body(a->owner, a->nodes[macro].a) : CERA_EXPR_EMPTY;
    if (!a->failed) a->nodes[macro].b = x + 1;
    return x;
}

static cera_expr derive_char(cera_automaton *a, const cera_node *n, uint8_t byte) {
    const cera_cnode *c = &a->cnodes[n->a];
    const cera_crange *r = a->cranges + c->first;
    for (uint32_t i = 0; i < c->n && r[i].lo <= byte; i++) {
        if (byte > r[i].hi) continue;
        if (r[i].target == 0) return CERA_EXPR_EPS;
        return cera_expr_node(a, (cera_node){.kind = CERA_K_CHAR, .a = r[i].target});
    }
    return CERA_EXPR_EMPTY;
}

static cera_expr literal_rest(cera_automaton *a, const cera_node *n, uint32_t from) {
    if (from >= n->b) return CERA_EXPR_EPS;
    return cera_expr_node(a, (cera_node){.kind = CERA_K_LIT, .a = from, .b = n->b, .n = n->n});
}

static cera_expr derive_literal(cera_automaton *a, const cera_node *n, uint8_t byte) {
    uint8_t c = (uint8_t)a->text[n->a];
    bool start = n->n && (c & 0xC0) != 0x80, raw = !start || (c >= 0x20 && c != '"' && c != '\\');
    if (raw && byte == c) return literal_rest(a, n, n->a + 1);
    if (!start || byte != '\\' || (raw && a->escapes == CERA_ESC_NEEDED)) return CERA_EXPR_EMPTY;
    uint32_t code;
    int size = cera_utf8_decode(a->text + n->a, n->b - n->a, &code);
    if (!size) return CERA_EXPR_EMPTY;
    cera_expr rest = literal_rest(a, n, n->a + (uint32_t)size);
    return cera_expr_cat(a, cera_expr_escape_of(a, code), rest);
}

/* Derives every child into the scratch list and joins them. */
static cera_expr derive_list(cera_automaton *a, const cera_node *n, uint8_t byte) {
    uint32_t base = a->n_tmp;
    bool is_or = n->kind == CERA_K_OR;
    for (uint32_t i = 0; i < n->b; i++) {
        cera_expr d = cera_expr_derive(a, a->lists[n->a + i], byte);
        if (d == CERA_EXPR_EMPTY && is_or) continue;
        if (d == CERA_EXPR_EMPTY || !cera_automaton_grow(a, (void **)&a->tmp, a->n_tmp, 1, &a->cap_tmp, sizeof *a->tmp))
            return a->n_tmp = base, CERA_EXPR_EMPTY;
        a->tmp[a->n_tmp++] = d;
    }
    uint32_t count = a->n_tmp - base;
    if (count == 0) return CERA_EXPR_EMPTY;
    if (count == 1) return a->n_tmp = base, a->tmp[base];
    cera_expr *copy = cera_alloc(count, sizeof *copy); /* the constructors use the scratch list themselves */
    if (!copy) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), a->n_tmp = base, CERA_EXPR_EMPTY;
    memcpy(copy, a->tmp + base, count * sizeof *copy);
    a->n_tmp = base;
    cera_expr x = is_or ? cera_expr_or(a, copy, count) : cera_expr_and(a, copy, count);
    cera_free(copy);
    return x;
}

cera_expr cera_expr_derive(cera_automaton *a, cera_expr x, uint8_t byte) {
    if (++a->work > a->max_work && a->max_work)
        return cera_automaton_fail(a, CERA_ERR_LIMIT, "too much work for one token"), CERA_EXPR_EMPTY;
    cera_node n = a->nodes[x]; /* a copy: the array may move */
    switch (n.kind) {
    case CERA_K_ANY: return x;
    case CERA_K_CHAR: return derive_char(a, &n, byte);
    case CERA_K_LIT: return derive_literal(a, &n, byte);
    case CERA_K_CAT: {
        cera_expr d = cera_expr_cat(a, cera_expr_derive(a, n.a, byte), n.b);
        return cera_expr_nullable(a, n.a) ? cera_expr_or2(a, d, cera_expr_derive(a, n.b, byte)) : d;
    }
    case CERA_K_OR:
    case CERA_K_AND: return derive_list(a, &n, byte);
    case CERA_K_NOT: return cera_expr_not(a, cera_expr_derive(a, n.a, byte));
    case CERA_K_REP: {
        cera_expr d = cera_expr_derive(a, n.a, byte);
        if (d == CERA_EXPR_EMPTY) return d;
        uint32_t m = n.m == CERA_REP_INF ? n.m : n.m - 1;
        return cera_expr_cat(a, d, cera_expr_rep(a, n.a, n.n ? n.n - 1 : 0, m));
    }
    case CERA_K_MACRO: return cera_expr_derive(a, cera_expr_expand(a, x), byte);
    case CERA_K_MULT: return cera_mult_derive(a, x, byte);
    default: return CERA_EXPR_EMPTY;
    }
}

static void set_bound(uint64_t out[4], uint32_t b) {
    if (b < 256) out[b >> 6] |= 1ull << (b & 63);
}

void cera_expr_bounds(cera_automaton *a, cera_expr x, uint64_t out[4]) {
    cera_node n = a->nodes[x];
    switch (n.kind) {
    case CERA_K_CHAR:
        for (uint32_t i = 0; i < a->cnodes[n.a].n; i++) {
            const cera_crange *r = &a->cranges[a->cnodes[n.a].first + i];
            set_bound(out, r->lo);
            set_bound(out, r->hi + 1u);
        }
        break;
    case CERA_K_LIT:
        set_bound(out, (uint8_t)a->text[n.a]);
        set_bound(out, (uint8_t)a->text[n.a] + 1u);
        if (n.n) set_bound(out, '\\'), set_bound(out, '\\' + 1);
        break;
    case CERA_K_CAT:
        cera_expr_bounds(a, n.a, out);
        if (cera_expr_nullable(a, n.a)) cera_expr_bounds(a, n.b, out);
        break;
    case CERA_K_OR:
    case CERA_K_AND:
        for (uint32_t i = 0; i < n.b; i++) cera_expr_bounds(a, a->lists[n.a + i], out);
        break;
    case CERA_K_NOT:
    case CERA_K_REP: cera_expr_bounds(a, n.a, out); break;
    case CERA_K_MACRO: cera_expr_bounds(a, cera_expr_expand(a, x), out); break;
    case CERA_K_MULT: cera_mult_bounds(out); break;
    default: break;
    }
}

/* An infinite positive part less finitely many texts: the common "any other key". */
static bool trivially_live(const cera_automaton *a, cera_expr x) {
    const cera_node *n = &a->nodes[x];
    uint32_t positive = 0;
    for (uint32_t i = 0; i < n->b; i++) {
        const cera_node *c = &a->nodes[a->lists[n->a + i]];
        if (c->kind == CERA_K_NOT) {
            if (a->nodes[c->a].card == UINT32_MAX) return false;
        } else if (positive++ || (c->flags & CERA_X_IMPURE) || !(c->flags & CERA_X_INFINITE))
            return false;
    }
    return positive == 1;
}

typedef struct visit {
    cera_expr x;
    uint32_t parent, width;
} visit; /* parent: 1 + index in seen of what led here */

typedef struct search {
    visit *seen, *open;
    uint32_t n_seen, cap_seen, n_open, cap_open;
} search;

/* The next byte from *at on at which the expression behaves differently, -1 at the end. */
static int next_class(const uint64_t bounds[4], int *at) {
    while (*at < 256) {
        int b = (*at)++;
        if (bounds[b >> 6] >> (b & 63) & 1) return b;
    }
    return -1;
}

/* Nodes of the head of x, down to what no derivative touches next. */
static uint32_t width(const cera_automaton *a, cera_expr x) {
    const cera_node *n = &a->nodes[x];
    uint32_t sum = 1;
    if (n->kind == CERA_K_CAT) return width(a, n->a) + (cera_expr_nullable(a, n->a) ? width(a, n->b) : 0);
    if (n->kind == CERA_K_NOT) return 1 + width(a, n->a);
    for (uint32_t i = 0; (n->kind == CERA_K_OR || n->kind == CERA_K_AND) && i < n->b; i++) sum += width(a, a->lists[n->a + i]);
    return sum;
}

static bool surely_live(const cera_automaton *a, cera_expr x) {
    return cera_expr_nullable(a, x) || (a->nodes[x].flags & CERA_X_LIVE) || !(a->nodes[x].flags & CERA_X_IMPURE);
}

/* Looks at all derivatives of one expression; true when one of them is known to be live. The narrowest of the others is on top
 * of the open ones afterwards: conditions that are met fall away, so the way to a text mostly leads there. */
static bool expand(cera_automaton *a, search *s, visit v) {
    uint64_t bounds[4] = {1, 0, 0, 0};
    uint32_t first = s->n_open;
    if (!cera_automaton_grow(a, (void **)&s->seen, s->n_seen, 1, &s->cap_seen, sizeof *s->seen)) return false;
    a->nodes[v.x].mark = a->search;
    s->seen[s->n_seen++] = v;
    uint32_t parent = s->n_seen;
    cera_expr_bounds(a, v.x, bounds);
    for (int at = 0, b; (b = next_class(bounds, &at)) >= 0 && !a->failed;) {
        cera_expr d = cera_expr_derive(a, v.x, (uint8_t)b);
        if (d == CERA_EXPR_EMPTY || a->nodes[d].mark == a->search || (a->nodes[d].flags & CERA_X_DEAD)) continue;
        if (surely_live(a, d)) return true;
        if (!cera_automaton_grow(a, (void **)&s->open, s->n_open, 1, &s->cap_open, sizeof *s->open)) return false;
        visit next = {d, parent, width(a, d)};
        uint32_t i = s->n_open++;
        for (; i > first && s->open[i - 1].width < next.width; i--) s->open[i] = s->open[i - 1];
        s->open[i] = next;
    }
    return false;
}

static bool search_run(cera_automaton *a, search *s, cera_expr x) {
    if (expand(a, s, (visit){.x = x})) return true;
    while (s->n_open && !a->failed) {
        visit v = s->open[--s->n_open];
        if (a->nodes[v.x].mark == a->search) continue;
        if (expand(a, s, v)) return true;
        if (s->n_seen > SEARCH_LIMIT) return a->undecided = true;
    }
    return false;
}

bool cera_expr_live(cera_automaton *a, cera_expr x) {
    uint8_t flags = a->nodes[x].flags;
    if (flags & CERA_X_DEAD) return false;
    if (flags & (CERA_X_LIVE | CERA_X_NULLABLE) || !(flags & CERA_X_IMPURE)) return x != CERA_EXPR_EMPTY;
    if (a->nodes[x].kind == CERA_K_AND && trivially_live(a, x)) return a->nodes[x].flags |= CERA_X_LIVE, true;
    search s = {0};
    bool outer = a->searching;
    a->searching = true;
    a->search++;
    bool found = search_run(a, &s, x);
    a->searching = outer;
    for (uint32_t i = s.n_seen; found && i; i = s.seen[i - 1].parent)
        a->nodes[s.seen[i - 1].x].flags |= CERA_X_LIVE; /* the way here */
    for (uint32_t i = 0; !found && !a->failed && i < s.n_seen; i++) a->nodes[s.seen[i].x].flags |= CERA_X_DEAD;
    free(s.seen);
    free(s.open);
    return found;
}

/* Counters above the longest token, brought down to where a mask cannot tell them apart. */
cera_expr cera_expr_clamp(cera_automaton *a, cera_expr x) {
    cera_node n = a->nodes[x];
    if (!(n.flags & CERA_X_BIG)) return x;
    uint32_t cap = CERA_CLAMP;
    if (n.kind == CERA_K_CAT) return cera_expr_cat(a, cera_expr_clamp(a, n.a), n.b);
    if (n.kind == CERA_K_NOT) return cera_expr_not(a, cera_expr_clamp(a, n.a));
    if (n.kind == CERA_K_REP)
        return cera_expr_rep(a, n.a, n.n < cap ? n.n : cap,
                             n.m == CERA_REP_INF || n.m < cap ? n.m
                             : n.n >= cap                     ? cap + 1
                                                              : cap);
    if (n.kind != CERA_K_OR && n.kind != CERA_K_AND) return x;
    cera_expr *list = cera_alloc(n.b, sizeof *list);
    if (!list) return x;
    for (uint32_t i = 0; i < n.b; i++) list[i] = cera_expr_clamp(a, a->lists[n.a + i]);
    cera_expr y = n.kind == CERA_K_OR ? cera_expr_or(a, list, n.b) : cera_expr_and(a, list, n.b);
    cera_free(list);
    return y;
}

static void add_length(uint32_t *sum, uint32_t x) { *sum = *sum > CERA_REP_INF - x ? CERA_REP_INF : *sum + x; }

bool cera_expr_length(const cera_automaton *a, cera_expr x, uint32_t *least, uint32_t *most) {
    const cera_node *n = &a->nodes[x];
    uint32_t lo, hi;
    *least = *most = 0;
    switch (n->kind) {
    case CERA_K_EPS: return true;
    case CERA_K_CHAR: return *least = *most = 1, a->cnodes[n->a].card != UINT32_MAX; /* whole characters only */
    case CERA_K_REP:
        if (!cera_expr_length(a, n->a, &lo, &hi)) return false;
        *least = (uint64_t)lo * n->n > CERA_REP_INF ? CERA_REP_INF : lo * n->n;
        *most = n->m == CERA_REP_INF || (uint64_t)hi * n->m >= CERA_REP_INF ? CERA_REP_INF : hi * n->m;
        return true;
    case CERA_K_CAT:
        for (; n->kind == CERA_K_CAT; x = n->b, n = &a->nodes[x]) {
            if (!cera_expr_length(a, n->a, &lo, &hi)) return false;
            add_length(least, lo);
            add_length(most, hi);
        }
        if (!cera_expr_length(a, x, &lo, &hi)) return false;
        add_length(least, lo);
        add_length(most, hi);
        return true;
    case CERA_K_OR:
        *least = CERA_REP_INF;
        for (uint32_t i = 0; i < n->b; i++) {
            if (!cera_expr_length(a, a->lists[n->a + i], &lo, &hi)) return false;
            if (lo < *least) *least = lo;
            if (hi > *most) *most = hi;
        }
        return true;
    default: return false;
    }
}

bool cera_expr_tame(cera_automaton *a, cera_expr x) {
    enum { STEPS = 80, MAX_GROWN = 100 };
    if (!(a->nodes[x].flags & CERA_X_NESTED)) return true;
    uint32_t start = width(a, x);
    for (int step = 0; step < STEPS && x != CERA_EXPR_EMPTY && !a->failed; step++) {
        uint64_t bounds[4] = {1, 0, 0, 0};
        cera_expr best = CERA_EXPR_EMPTY;
        uint32_t most = 0;
        cera_expr_bounds(a, x, bounds);
        for (int at = 0, b; (b = next_class(bounds, &at)) >= 0;) {
            cera_expr d = cera_expr_derive(a, x, (uint8_t)b);
            uint32_t w = d == CERA_EXPR_EMPTY ? 0 : width(a, d);
            if (w > most) most = w, best = d;
        }
        if (most > start + MAX_GROWN) return false;
        x = best;
    }
    return true;
}

bool cera_expr_matches(cera_automaton *a, cera_expr x, const char *text, size_t n) {
    for (size_t i = 0; i < n && x != CERA_EXPR_EMPTY; i++) x = cera_expr_derive(a, x, (uint8_t)text[i]);
    return !a->failed && cera_expr_nullable(a, x);
}
