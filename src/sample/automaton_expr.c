/* automaton_expr.c: construction of expressions. Equal expressions have equal numbers, and the laws used here (associative,
 * commutative and idempotent alternation and intersection, neutral elements, nested repetition) keep the number of derivatives
 * finite and small. Does not own: derivatives (automaton_derive.c), characters (automaton_char.c). */
#include "sample/automaton_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"

static uint32_t sat_add(uint32_t x, uint32_t y) { return x > UINT32_MAX - y ? UINT32_MAX : x + y; }
static uint32_t sat_mul(uint32_t x, uint32_t y) {
    uint64_t p = (uint64_t)x * y;
    if (!x || !y) return 0;
    return x == UINT32_MAX || y == UINT32_MAX || p > UINT32_MAX ? UINT32_MAX : (uint32_t)p;
}

static uint64_t node_hash(const cera_automaton *a, const cera_node *k) {
    uint64_t h = cera_hash_mix(k->kind, (uint64_t)k->n << 32 | k->m);
    if (k->kind == CERA_K_OR || k->kind == CERA_K_AND) return cera_hash64(a->lists + k->a, k->b * sizeof *a->lists, h);
    if (k->kind == CERA_K_LIT) return cera_hash64(a->text + k->a, k->b - k->a, h);
    return cera_hash_mix(h, (uint64_t)k->a << 32 | (k->kind == CERA_K_MACRO ? 0 : k->b));
}

static bool node_same(const cera_automaton *a, const cera_node *x, const cera_node *y) {
    if (x->kind != y->kind || x->n != y->n || x->m != y->m) return false;
    if (x->kind == CERA_K_MACRO) return x->a == y->a;
    if (x->kind == CERA_K_LIT) return x->b - x->a == y->b - y->a && !memcmp(a->text + x->a, a->text + y->a, x->b - x->a);
    if (x->b != y->b) return false;
    if (x->kind != CERA_K_OR && x->kind != CERA_K_AND) return x->a == y->a;
    return !memcmp(a->lists + x->a, a->lists + y->a, x->b * sizeof *a->lists);
}

/* Linear hashing (Litwin 1980): the table grows by one bucket a node, so that no insertion waits for all others. */
static uint32_t bucket_of(const cera_automaton *a, uint32_t hash) {
    uint32_t level = 1u << (31 - __builtin_clz(a->n_buckets)), at = hash & (2 * level - 1);
    return at < a->n_buckets ? at : hash & (level - 1);
}

static bool add_bucket(cera_automaton *a) {
    if (!cera_automaton_grow(a, (void **)&a->buckets, a->n_buckets, 1, &a->cap_buckets, sizeof *a->buckets)) return false;
    uint32_t added = a->n_buckets++;
    a->buckets[added] = 0;
    if (added == 0) return true;
    uint32_t from = added & ~(1u << (31 - __builtin_clz(added))), i = a->buckets[from];
    a->buckets[from] = 0;
    while (i) {
        uint32_t next = a->nodes[i - 1].next, at = bucket_of(a, a->nodes[i - 1].hash);
        a->nodes[i - 1].next = a->buckets[at];
        a->buckets[at] = i;
        i = next;
    }
    return true;
}

static void max_height(cera_automaton *a, cera_node *k, cera_expr child, uint32_t *h) {
    const cera_node *c = &a->nodes[child];
    if (c->height + 1u > *h) *h = c->height + 1u;
    k->flags |= c->flags & (CERA_X_EDGES | CERA_X_IMPURE | CERA_X_BIG | CERA_X_NESTED);
}

static void list_attributes(cera_automaton *a, cera_node *k, uint32_t *h) {
    bool is_or = k->kind == CERA_K_OR, nullable = !is_or;
    uint32_t card = is_or ? 0 : UINT32_MAX;
    for (uint32_t i = 0; i < k->b; i++) {
        cera_expr child = a->lists[k->a + i];
        const cera_node *c = &a->nodes[child];
        max_height(a, k, child, h);
        nullable = is_or ? nullable || (c->flags & CERA_X_NULLABLE) : nullable && (c->flags & CERA_X_NULLABLE);
        if (is_or) k->flags |= c->flags & CERA_X_INFINITE;
        card = is_or ? sat_add(card, c->card) : card < c->card ? card : c->card;
    }
    if (nullable) k->flags |= CERA_X_NULLABLE;
    if (!is_or) k->flags |= CERA_X_IMPURE;
    k->card = card;
}

/* Whether a bounded repetition stands in x; deep down it does not matter. */
static bool counts(const cera_automaton *a, cera_expr x, int depth) {
    const cera_node *n = &a->nodes[x];
    if (depth > 12) return false;
    switch (n->kind) {
    case CERA_K_REP: return (n->m > 4 && n->m != CERA_REP_INF) || n->n > 4 || counts(a, n->a, depth + 1);
    case CERA_K_CAT: return counts(a, n->a, depth + 1) || counts(a, n->b, depth + 1);
    case CERA_K_OR:
    case CERA_K_AND:
        for (uint32_t i = 0; i < n->b && i < 64; i++)
            if (counts(a, a->lists[n->a + i], depth + 1)) return true;
        return false;
    case CERA_K_NOT: return counts(a, n->a, depth + 1);
    default: return false;
    }
}

static void rep_attributes(const cera_automaton *a, cera_node *k) {
    const cera_node *c = &a->nodes[k->a];
    if (k->n == 0 || (c->flags & CERA_X_NULLABLE)) k->flags |= CERA_X_NULLABLE;
    if (k->m == CERA_REP_INF || (c->flags & CERA_X_INFINITE)) k->flags |= CERA_X_INFINITE;
    if (k->n > CERA_CLAMP || (k->m != CERA_REP_INF && k->m > CERA_CLAMP)) k->flags |= CERA_X_BIG;
    if (k->m > 4 && counts(a, k->a, 0)) k->flags |= CERA_X_NESTED;
    k->card = UINT32_MAX;
    if (k->m > 8) return;
    uint32_t card = 1;
    for (uint32_t i = 0; i < k->m; i++) card = sat_mul(card, sat_add(c->card, 1));
    k->card = card;
}

static void attributes(cera_automaton *a, cera_node *k) {
    uint32_t h = 1;
    k->card = UINT32_MAX;
    switch (k->kind) {
    case CERA_K_EMPTY: k->card = 0; break;
    case CERA_K_EPS: k->card = 1, k->flags |= CERA_X_NULLABLE; break;
    case CERA_K_ANY: k->flags |= CERA_X_NULLABLE | CERA_X_INFINITE; break;
    case CERA_K_CHAR: k->card = a->cnodes[k->a].card; break;
    case CERA_K_LIT: k->card = 1; break;
    case CERA_K_CAT: {
        max_height(a, k, k->a, &h);
        max_height(a, k, k->b, &h);
        uint8_t fx = a->nodes[k->a].flags, fy = a->nodes[k->b].flags;
        k->flags |= (fx & fy & CERA_X_NULLABLE) | ((fx | fy) & CERA_X_INFINITE);
        k->card = sat_mul(a->nodes[k->a].card, a->nodes[k->b].card);
        break;
    }
    case CERA_K_OR:
    case CERA_K_AND: list_attributes(a, k, &h); break;
    case CERA_K_NOT:
        max_height(a, k, k->a, &h);
        k->flags |= CERA_X_IMPURE;
        if (!(a->nodes[k->a].flags & CERA_X_NULLABLE)) k->flags |= CERA_X_NULLABLE;
        break;
    case CERA_K_REP:
        max_height(a, k, k->a, &h);
        rep_attributes(a, k);
        break;
    case CERA_K_MULT:
        if (cera_mult_nullable(k)) k->flags |= CERA_X_NULLABLE;
        break;
    default: k->flags |= CERA_X_EDGES; break;
    }
    if (h > CERA_MAX_HEIGHT) cera_automaton_fail(a, CERA_ERR_LIMIT, "nested too deeply"), h = CERA_MAX_HEIGHT;
    k->height = (uint16_t)h;
}

cera_expr cera_expr_node(cera_automaton *a, cera_node key) {
    if (a->failed) return CERA_EXPR_EMPTY;
    if (a->n_nodes >= a->n_buckets && !add_bucket(a)) return CERA_EXPR_EMPTY;
    uint64_t h = node_hash(a, &key);
    key.hash = (uint32_t)(h ^ h >> 32);
    uint32_t at = bucket_of(a, key.hash);
    for (uint32_t i = a->buckets[at]; i; i = a->nodes[i - 1].next)
        if (a->nodes[i - 1].hash == key.hash && node_same(a, &a->nodes[i - 1], &key)) return i - 1;
    if (!cera_automaton_grow(a, (void **)&a->nodes, a->n_nodes, 1, &a->cap_nodes, sizeof *a->nodes)) return CERA_EXPR_EMPTY;
    attributes(a, &key);
    key.next = a->buckets[at];
    a->nodes[a->n_nodes] = key;
    a->buckets[at] = ++a->n_nodes;
    return a->n_nodes - 1;
}

bool cera_expr_nullable(const cera_automaton *a, cera_expr x) { return a->nodes[x].flags & CERA_X_NULLABLE; }

cera_expr cera_expr_cat(cera_automaton *a, cera_expr x, cera_expr y) {
    if (x == CERA_EXPR_EMPTY || y == CERA_EXPR_EMPTY) return CERA_EXPR_EMPTY;
    if (x == CERA_EXPR_EPS) return y;
    if (y == CERA_EXPR_EPS) return x;
    if (a->nodes[x].kind ==
        CERA_K_CAT) { /* to the right: (p q) y = p (q y); the left spine is short, so this does not recurse deeply */
        cera_expr head = a->nodes[x].a;
        return cera_expr_cat(a, head, cera_expr_cat(a, a->nodes[x].b, y));
    }
    return cera_expr_node(a, (cera_node){.kind = CERA_K_CAT, .a = x, .b = y});
}

static int by_number(const void *x, const void *y) {
    uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
    return p < q ? -1 : p > q;
}

/* Appends child to the scratch list, taking apart a child of the same kind. */
static bool flatten(cera_automaton *a, cera_expr child, cera_expr_kind kind) {
    bool same = a->nodes[child].kind == kind;
    uint32_t n = same ? a->nodes[child].b : 1;
    if (!cera_automaton_grow(a, (void **)&a->tmp, a->n_tmp, n, &a->cap_tmp, sizeof *a->tmp)) return false;
    for (uint32_t i = 0; i < n; i++) a->tmp[a->n_tmp++] = same ? a->lists[a->nodes[child].a + i] : child;
    return true;
}

/* Sorts tmp[base..] and drops equal ones; returns how many are left. */
static uint32_t sort_unique(cera_automaton *a, uint32_t base) {
    uint32_t n = a->n_tmp - base, kept = 0;
    if (n == 0) return 0; /* tmp may not have been made yet */
    cera_expr *t = a->tmp + base;
    if (n > 16)
        qsort(t, n, sizeof *t, by_number);
    else
        for (uint32_t i = 1; i < n; i++) {
            cera_expr v = t[i];
            uint32_t j = i;
            for (; j > 0 && t[j - 1] > v; j--) t[j] = t[j - 1];
            t[j] = v;
        }
    for (uint32_t i = 0; i < n; i++)
        if (!kept || t[kept - 1] != t[i]) t[kept++] = t[i];
    return kept;
}

/* The node for the n children at tmp[base..]; the list pool keeps them only when the node is new. */
static cera_expr list_node(cera_automaton *a, cera_expr_kind kind, uint32_t base, uint32_t n) {
    if (n > CERA_MAX_WIDTH) return cera_automaton_fail(a, CERA_ERR_LIMIT, "too ambiguous"), CERA_EXPR_EMPTY;
    if (!cera_automaton_grow(a, (void **)&a->lists, a->n_lists, n, &a->cap_lists, sizeof *a->lists)) return CERA_EXPR_EMPTY;
    memcpy(a->lists + a->n_lists, a->tmp + base, n * sizeof *a->lists);
    uint32_t before = a->n_nodes;
    a->n_lists += n; /* the node's attributes read the list */
    cera_expr x = cera_expr_node(a, (cera_node){.kind = (uint8_t)kind, .a = a->n_lists - n, .b = n});
    if (a->n_nodes == before) a->n_lists -= n;
    return x;
}

cera_expr cera_expr_or(cera_automaton *a, const cera_expr *list, uint32_t n) {
    uint32_t base = a->n_tmp;
    cera_expr x = CERA_EXPR_EMPTY;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] == CERA_EXPR_ANY) return a->n_tmp = base, CERA_EXPR_ANY;
        if (list[i] != CERA_EXPR_EMPTY && !flatten(a, list[i], CERA_K_OR)) return a->n_tmp = base, CERA_EXPR_EMPTY;
    }
    uint32_t kept = sort_unique(a, base);
    if (kept == 1)
        x = a->tmp[base];
    else if (kept)
        x = list_node(a, CERA_K_OR, base, kept);
    a->n_tmp = base;
    return x;
}

cera_expr cera_expr_or2(cera_automaton *a, cera_expr x, cera_expr y) {
    if (x == y || y == CERA_EXPR_EMPTY) return x;
    if (x == CERA_EXPR_EMPTY) return y;
    return cera_expr_or(a, (cera_expr[]){x, y}, 2);
}

/* A repetition of one whole character, the form that intersects without derivatives. */
static bool char_loop(const cera_automaton *a, cera_expr x, const cera_node **out) {
    const cera_node *r = &a->nodes[x];
    *out = r;
    return r->kind == CERA_K_REP && a->nodes[r->a].kind == CERA_K_CHAR;
}
static bool any_loop(const cera_automaton *a, cera_expr x, const cera_node **out) {
    return char_loop(a, x, out) && a->cnodes[a->nodes[(*out)->a].a].is_any;
}

/* c{n,m} & .{p,q} = c{max,min}; replaces the pair by its result at tmp[i], tmp[j]. */
static bool merge_loops(cera_automaton *a, uint32_t i, uint32_t j) {
    const cera_node *x, *y;
    if (!char_loop(a, a->tmp[i], &x) || !any_loop(a, a->tmp[j], &y)) return false;
    uint32_t lo = x->n > y->n ? x->n : y->n, hi = x->m < y->m ? x->m : y->m;
    cera_expr both = lo > hi ? CERA_EXPR_EMPTY : cera_expr_rep(a, x->a, lo, hi);
    a->tmp[i] = both;
    a->tmp[j] = CERA_EXPR_ANY;
    return true;
}

/* Joins loops, drops ANY and what a loop over any character already says; false: nothing is left of the intersection. */
static bool simplify_and(cera_automaton *a, uint32_t base) {
    uint32_t n = a->n_tmp - base, positive = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (i != j && a->tmp[base + i] != CERA_EXPR_ANY && a->tmp[base + j] != CERA_EXPR_ANY)
                merge_loops(a, base + i, base + j);
    for (uint32_t i = 0; i < n; i++) {
        cera_expr x = a->tmp[base + i];
        if (x == CERA_EXPR_EMPTY) return false;
        if (x != CERA_EXPR_ANY && a->nodes[x].kind != CERA_K_NOT) positive++;
    }
    for (uint32_t i = 0; i < n && positive > 1; i++) { /* every positive expression is text of the mode already */
        const cera_node *r;
        if (any_loop(a, a->tmp[base + i], &r) && r->n == 0 && r->m == CERA_REP_INF)
            a->tmp[base + i] = CERA_EXPR_ANY, positive--;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const cera_node *y = &a->nodes[a->tmp[base + j]];
            if (y->kind == CERA_K_NOT && y->a == a->tmp[base + i]) return false;
        }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (a->tmp[base + i] != CERA_EXPR_ANY) a->tmp[base + kept++] = a->tmp[base + i];
    a->n_tmp = base + kept;
    return true;
}

cera_expr cera_expr_and(cera_automaton *a, const cera_expr *list, uint32_t n) {
    uint32_t base = a->n_tmp;
    bool all_nullable = true, eps = false;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] == CERA_EXPR_EMPTY) return a->n_tmp = base, CERA_EXPR_EMPTY;
        all_nullable = all_nullable && cera_expr_nullable(a, list[i]);
        eps = eps || list[i] == CERA_EXPR_EPS;
        if (!flatten(a, list[i], CERA_K_AND)) return a->n_tmp = base, CERA_EXPR_EMPTY;
    }
    if (eps) return a->n_tmp = base, all_nullable ? CERA_EXPR_EPS : CERA_EXPR_EMPTY;
    if (!simplify_and(a, base)) return a->n_tmp = base, CERA_EXPR_EMPTY;
    uint32_t kept = sort_unique(a, base);
    cera_expr x = kept ? a->tmp[base] : CERA_EXPR_ANY;
    if (kept > 1) x = list_node(a, CERA_K_AND, base, kept);
    a->n_tmp = base;
    if (kept > 1 && !a->searching && !cera_expr_live(a, x)) return CERA_EXPR_EMPTY;
    return x;
}

cera_expr cera_expr_and2(cera_automaton *a, cera_expr x, cera_expr y) {
    if (x == y || y == CERA_EXPR_ANY) return x;
    if (x == CERA_EXPR_ANY) return y;
    return cera_expr_and(a, (cera_expr[]){x, y}, 2);
}

cera_expr cera_expr_not(cera_automaton *a, cera_expr x) {
    if (x == CERA_EXPR_EMPTY) return CERA_EXPR_ANY;
    if (x == CERA_EXPR_ANY) return CERA_EXPR_EMPTY;
    if (a->nodes[x].kind == CERA_K_NOT) return a->nodes[x].a;
    return cera_expr_node(a, (cera_node){.kind = CERA_K_NOT, .a = x});
}

static uint32_t times(uint32_t x, uint32_t y) {
    if (!x || !y) return 0;
    uint64_t p = (uint64_t)x * y;
    return x == CERA_REP_INF || y == CERA_REP_INF || p >= CERA_REP_INF ? CERA_REP_INF : (uint32_t)p;
}

/* (r{p,q}){n,m} = r{pn,qm} when no count between is left out. */
static bool joins(uint32_t p, uint32_t q, uint32_t n, uint32_t m) {
    if (q == CERA_REP_INF) return n > 0 || p <= 1; /* (r{2,}){0,m} lacks r{1} */
    if (n == m) return true;
    uint64_t lo = n ? n : 1;
    if (n == 0 && p > 1) return false;
    return (lo + 1) * p <= lo * q + 1;
}

cera_expr cera_expr_rep(cera_automaton *a, cera_expr x, uint32_t n, uint32_t m) {
    if (m == 0 || x == CERA_EXPR_EPS) return CERA_EXPR_EPS;
    if (x == CERA_EXPR_EMPTY) return n ? CERA_EXPR_EMPTY : CERA_EXPR_EPS;
    if (n == 1 && m == 1) return x;
    if (x == CERA_EXPR_ANY) return CERA_EXPR_ANY;
    cera_node r = a->nodes[x];
    if (r.kind == CERA_K_REP && joins(r.n, r.m, n, m)) {
        uint32_t lo = times(r.n, n);
        if (lo == CERA_REP_INF) return cera_automaton_fail(a, CERA_ERR_LIMIT, "repetition above 2^32"), CERA_EXPR_EMPTY;
        return cera_expr_rep(a, r.a, lo, times(r.m, m));
    }
    if (r.flags & CERA_X_NULLABLE) n = 0;
    return cera_expr_node(a, (cera_node){.kind = CERA_K_REP, .a = x, .n = n, .m = m});
}

cera_expr cera_expr_call(cera_automaton *a, uint32_t rule) {
    return cera_expr_node(a, (cera_node){.kind = CERA_K_CALL, .a = rule});
}
cera_expr cera_expr_token(cera_automaton *a, uint32_t id, bool negated) {
    return cera_expr_node(a, (cera_node){.kind = CERA_K_TOKEN, .a = id, .n = negated});
}
cera_expr cera_expr_macro(cera_automaton *a, uint32_t payload) {
    return cera_expr_node(a, (cera_node){.kind = CERA_K_MACRO, .a = payload});
}

static cera_expr text_node(cera_automaton *a, const char *text, size_t n, uint32_t escaped) {
    if (n == 0) return CERA_EXPR_EPS;
    if (n > (UINT32_MAX >> 2)) return cera_automaton_fail(a, CERA_ERR_LIMIT, "literal too long"), CERA_EXPR_EMPTY;
    if (!cera_automaton_grow(a, (void **)&a->text, a->n_text, (uint32_t)n, &a->cap_text, 1)) return CERA_EXPR_EMPTY;
    memcpy(a->text + a->n_text, text, n);
    uint32_t start = a->n_text, before = a->n_nodes;
    cera_expr x = cera_expr_node(a, (cera_node){.kind = CERA_K_LIT, .a = start, .b = start + (uint32_t)n, .n = escaped});
    if (a->n_nodes != before) a->n_text += (uint32_t)n; /* else an equal literal was there */
    return x;
}

cera_expr cera_expr_raw(cera_automaton *a, const char *text, size_t n) { return text_node(a, text, n, 0); }
cera_expr cera_expr_text(cera_automaton *a, const char *text) { return text_node(a, text, strlen(text), 0); }

cera_expr cera_expr_literal(cera_automaton *a, const char *text, size_t n) {
    bool plain = true;
    for (size_t i = 0; i < n; i++) plain = plain && (uint8_t)text[i] >= 0x20 && text[i] != '"' && text[i] != '\\';
    return text_node(a, text, n, a->escapes == CERA_ESC_ALL || (a->escapes == CERA_ESC_NEEDED && !plain));
}
