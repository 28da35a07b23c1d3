/* mask_run.c: how far a state allows every text of a slice's characters, so that the slice's tokens can be taken by bitmaps:
 * read off the expression where it is a loop over characters, else found by walking the few states that such texts reach. An
 * answer that is too small costs time, never correctness. Does not own: slices (trie.h), masks (mask.c). */
#include "sample/mask_int.h"

#include <string.h>

enum { RUN_UNKNOWN = -2, MAX_PAIRS = 400 };

/* Whether x accepts every character of the slice, by itself. */
static bool takes_any(const cera_automaton *a, cera_expr x, int slice) {
    const cera_node *n = &a->nodes[x];
    if (n->kind == CERA_K_CHAR) return a->cnodes[n->a].slices >> slice & 1;
    for (uint32_t i = 0; n->kind == CERA_K_OR && i < n->b; i++)
        if (takes_any(a, a->lists[n->a + i], slice)) return true;
    return false;
}

static cera_run loop_run(const cera_automaton *a, cera_expr loop, cera_expr rest, int slice) {
    const cera_node *r = &a->nodes[loop];
    if (r->kind != CERA_K_REP || !takes_any(a, r->a, slice)) return (cera_run){0, false};
    if (r->m >= CERA_RUN_ALL) return (cera_run){CERA_RUN_ALL, true};
    const cera_node *y = &a->nodes[rest];
    bool stops = y->kind == CERA_K_LIT && a->text[y->a] == '"'; /* no slice has a quote */
    if (y->kind == CERA_K_CAT) stops = a->nodes[y->a].kind == CERA_K_LIT && a->text[a->nodes[y->a].a] == '"';
    return (cera_run){(int32_t)r->m, stops && a->nodes[r->a].kind == CERA_K_CHAR};
}

/* Whether every text of the slice's characters is in x itself: what is left of such an x after one of them is such an x again.
 */
static bool holds_all(const cera_automaton *a, cera_expr x, int slice) {
    const cera_node *n = &a->nodes[x];
    if (n->kind == CERA_K_REP) return n->n == 0 && n->m == CERA_REP_INF && takes_any(a, n->a, slice);
    if (n->kind == CERA_K_CAT) return cera_expr_nullable(a, n->a) && holds_all(a, n->b, slice);
    for (uint32_t i = 0; n->kind == CERA_K_OR && i < n->b; i++)
        if (holds_all(a, a->lists[n->a + i], slice)) return true;
    return false;
}

/* A loop, and expressions that hold everything, less finitely many texts: none of these can be all that is left before the
 * loop's last character. */
static cera_run difference_run(const cera_automaton *a, const cera_node *n, cera_expr rest, int slice) {
    cera_run best = {CERA_RUN_ALL, true};
    uint32_t removed = 0;
    for (uint32_t i = 0; i < n->b; i++) {
        cera_expr child = a->lists[n->a + i];
        const cera_node *c = &a->nodes[child];
        if (c->kind == CERA_K_NOT) {
            if (a->nodes[c->a].card == UINT32_MAX) return (cera_run){0, false};
            removed += a->nodes[c->a].card;
            continue;
        }
        if (holds_all(a, child, slice)) continue;
        cera_run r = loop_run(a, child, rest, slice);
        if (best.n != CERA_RUN_ALL || !r.n || !(c->kind == CERA_K_REP && a->nodes[c->a].kind == CERA_K_CHAR))
            return (cera_run){0, false};
        best = r;
    }
    if (best.n == CERA_RUN_ALL || !removed) return best;
    return (cera_run){removed < 20 ? best.n - 1 : 0, false}; /* the smallest slice has 26 characters */
}

static cera_run shape_run(const cera_automaton *a, cera_expr x, cera_expr rest, int slice) {
    const cera_node *n = &a->nodes[x];
    if (n->kind == CERA_K_CAT && rest == CERA_EXPR_EPS) {
        if (a->nodes[n->a].kind != CERA_K_CHAR || !takes_any(a, n->a, slice)) {
            cera_run r = shape_run(a, n->a, n->b, slice);
            if (r.n == CERA_RUN_ALL || !cera_expr_nullable(a, n->a)) return r;
            cera_run skipped = shape_run(a, n->b, CERA_EXPR_EPS, slice);
            return skipped.n > r.n ? (cera_run){skipped.n, skipped.n == CERA_RUN_ALL} : r;
        }
        cera_run r = shape_run(a, n->b, CERA_EXPR_EPS, slice); /* one character, then the rest */
        return (cera_run){r.n == CERA_RUN_ALL ? CERA_RUN_ALL : r.n + 1, r.n == CERA_RUN_ALL};
    }
    if (n->kind == CERA_K_REP) return loop_run(a, x, rest, slice);
    if (n->kind == CERA_K_AND) return difference_run(a, n, rest, slice);
    if (n->kind != CERA_K_OR) return (cera_run){0, false};
    cera_run best = {0, true};
    for (uint32_t i = 0; i < n->b; i++) {
        cera_run r = shape_run(a, a->lists[n->a + i], rest, slice);
        if (r.n > best.n) best.n = r.n;
        best.exact = best.exact && r.exact;
    }
    if (best.n == CERA_RUN_ALL) best.exact = true;
    return best;
}

/* Whether one of the bytes lo..hi leads on. */
static bool any_leads(cera_automaton *a, uint32_t state, uint32_t lo, uint32_t hi) {
    for (uint32_t b = lo, before = UINT32_MAX; b <= hi; b++) {
        uint32_t cls = a->parts[a->states[state].part].map[b];
        if (cls != before && cera_automaton_next(a, state, (uint8_t)b)) return true;
        before = cls;
    }
    return false;
}

/* Whether no character of the slice can begin here. */
static bool shuns(cera_automaton *a, uint32_t state, int slice) {
    uint32_t n;
    const uint32_t(*r)[2] = cera_slice_ranges(slice, &n);
    for (uint32_t i = 0; i < n && r[i][0] < 0x80; i++)
        if (any_leads(a, state, r[i][0], r[i][1] < 0x7F ? r[i][1] : 0x7F)) return false;
    return r[n - 1][1] < 0x80 || !any_leads(a, state, 0xC2, 0xF4);
}

typedef struct pair {
    uint32_t state, node;
} pair; /* node: of the slice's character automaton */
typedef struct pairs {
    pair at[MAX_PAIRS];
    uint32_t n;
    bool dead;
} pairs;

static void add_pair(pairs *p, uint32_t state, uint32_t node) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->at[i].state == state && p->at[i].node == node) return;
    if (p->n == MAX_PAIRS)
        p->dead = true; /* too many to tell */
    else
        p->at[p->n++] = (pair){state, node};
}

/* Every byte of one range, a class of the state at a time. */
static void follow_range(cera_automaton *a, pairs *p, uint32_t state, cera_crange r, uint32_t start) {
    for (uint32_t b = r.lo; b <= r.hi && !p->dead;) {
        const cera_part *part = &a->parts[a->states[state].part];
        uint32_t cls = part->map[b], end = b + 1;
        while (end <= r.hi && part->map[end] == cls) end++;
        uint32_t to = cera_automaton_next(a, state, (uint8_t)b);
        if (!to)
            p->dead = true;
        else
            add_pair(p, to, r.target ? r.target : start);
        b = end;
    }
}

/* Every text of the slice's characters, of any length: walks the states that such texts reach; false when one is dead. */
static bool reach(cera_automaton *a, pairs *p, uint32_t state, int slice) {
    uint32_t start = cera_slice_node(a, slice);
    *p = (pairs){.dead = start == 0};
    add_pair(p, state, start);
    for (uint32_t i = 0; i < p->n && !p->dead && !a->failed; i++) {
        pair at = p->at[i];
        for (uint32_t k = 0; k < a->cnodes[at.node].n && !p->dead; k++)
            follow_range(a, p, at.state, a->cranges[a->cnodes[at.node].first + k], start);
    }
    return !p->dead && !a->failed;
}

static bool all_live(cera_automaton *a, uint32_t state, int slice) {
    pairs p;
    if (!reach(a, &p, state, slice)) return false;
    for (uint32_t i = 0; i < p.n; i++) { /* what was reached can do no less */
        if (p.at[i].node != p.at[0].node) continue;
        cera_pstate *s = &a->states[p.at[i].state];
        s->run[slice] = CERA_RUN_ALL;
        s->run_exact |= (uint8_t)(1 << slice);
    }
    return true;
}

/* Whether one byte at most ends the text. */
static bool ends_soon(cera_automaton *a, uint32_t state) {
    if (a->states[state].flags & CERA_S_NULLABLE) return true;
    for (uint32_t c = 0; c < a->parts[a->states[state].part].n; c++) {
        uint32_t to = cera_automaton_next(a, state, a->parts[a->states[state].part].first[c]);
        if (to && (a->states[to].flags & CERA_S_NULLABLE)) return true;
    }
    return false;
}

/* A bound on the length beside something that every text leads on in, and that at most one more character completes: before the
 * bound's last character nothing is dead. */
static int32_t bounded_run(cera_automaton *a, cera_expr x, int slice) {
    if (a->nodes[x].kind == CERA_K_CAT) x = a->nodes[x].a;
    cera_node n = a->nodes[x];
    cera_expr others = CERA_EXPR_ANY;
    uint32_t most = 0;
    for (uint32_t i = 0; n.kind == CERA_K_AND && i < n.b; i++) {
        cera_expr child = a->lists[n.a + i];
        cera_node c = a->nodes[child];
        bool loop = c.kind == CERA_K_REP && a->nodes[c.a].kind == CERA_K_CHAR && a->cnodes[a->nodes[c.a].a].is_any;
        if (loop) most = c.m < CERA_RUN_ALL ? c.m : 0;
        if (loop) child = cera_expr_rep(a, c.a, 0, CERA_REP_INF); /* keeps complements within text */
        others = cera_expr_and2(a, others, child);
    }
    pairs p;
    if (most < 2 || !reach(a, &p, cera_automaton_state(a, others), slice)) return 0;
    for (uint32_t i = 0; i < p.n; i++)
        if (p.at[i].node == p.at[0].node && !ends_soon(a, p.at[i].state)) return 0;
    return a->failed ? 0 : (int32_t)most - 1;
}

cera_run cera_mask_run(cera_automaton *a, uint32_t state, int slice) {
    const cera_pstate *s = &a->states[state];
    if (s->run[slice] == RUN_UNKNOWN) {
        cera_run r = shape_run(a, s->expr, CERA_EXPR_EPS, slice);
        if (r.n == 0 && !r.exact) r.exact = shuns(a, state, slice);
        if (r.n != CERA_RUN_ALL && !r.exact && all_live(a, state, slice)) r = (cera_run){CERA_RUN_ALL, true};
        if (r.n == 0 && !r.exact) r.n = bounded_run(a, a->states[state].expr, slice);
        cera_pstate *w = &a->states[state];
        w->run[slice] = (int16_t)r.n;
        w->run_exact |= (uint8_t)(r.exact << slice);
    }
    s = &a->states[state];
    return (cera_run){s->run[slice], s->run_exact >> slice & 1};
}
