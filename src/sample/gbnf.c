/* gbnf.c: from GBNF's syntax tree to expressions. Rules that no recursion reaches are written into their users, in the order
 * that needs no recursion here; the others stay rules that are called. Left recursion would never read a byte and is an error.
 * Does not own: the syntax (gbnf_parse.c). */
#include "sample/gbnf_int.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_INLINE_HEIGHT = 100, MAX_WORK = 50000000 };

typedef struct ref {
    uint32_t from, to, next;
} ref; /* rule `from` mentions rule `to`; next by `to` */

typedef struct analysis {
    cera_gbnf_parser *p;
    ref *refs;
    uint32_t n_refs, cap_refs;
    uint32_t *users; /* [n_rules] 1 + first ref by `to` */
    uint32_t *queue; /* [n_rules] */
    uint64_t work;
} analysis;

static bool ok(const analysis *s) { return !s->p->status && !s->p->a->failed; }

static void add_ref(analysis *s, uint32_t from, uint32_t to) {
    if (!cera_automaton_grow(s->p->a, (void **)&s->refs, s->n_refs, 1, &s->cap_refs, sizeof *s->refs)) return;
    s->refs[s->n_refs] = (ref){from, to, s->users[to]};
    s->users[to] = ++s->n_refs;
}

static void collect(analysis *s, uint32_t rule, uint32_t item) {
    const cera_gbnf_item *i = &s->p->items[item];
    if (i->kind == CERA_G_REF) {
        add_ref(s, rule, i->value);
        s->p->rules[rule].n_refs++;
    } else if (i->kind == CERA_G_REP)
        collect(s, rule, i->child);
    else if (i->kind != CERA_G_EXPR)
        for (uint32_t l = i->sibling; l; l = s->p->items[l].sibling) collect(s, rule, s->p->items[l].child);
}

static cera_expr compile(analysis *s, uint32_t item) {
    cera_automaton *a = s->p->a;
    cera_gbnf_item i = s->p->items[item];
    switch (i.kind) {
    case CERA_G_EXPR: return i.value;
    case CERA_G_REF: {
        const cera_gbnf_rule *r = &s->p->rules[i.value];
        return r->done && a->nodes[r->expr].height < MAX_INLINE_HEIGHT ? r->expr : cera_expr_call(a, i.value);
    }
    case CERA_G_REP: return cera_expr_rep(a, compile(s, i.child), i.n, i.m);
    default: break;
    }
    uint32_t n = 0, at = 0;
    for (uint32_t l = i.sibling; l; l = s->p->items[l].sibling) n++;
    cera_expr *list = cera_alloc(n, sizeof *list), x = i.kind == CERA_G_SEQ ? CERA_EXPR_EPS : CERA_EXPR_EMPTY;
    if (!list) return cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory"), x;
    for (uint32_t l = i.sibling; l; l = s->p->items[l].sibling) list[at++] = compile(s, s->p->items[l].child);
    if (i.kind == CERA_G_ALT)
        x = cera_expr_or(a, list, n);
    else
        while (n) x = cera_expr_cat(a, list[--n], x);
    cera_free(list);
    return x;
}

/* Whether the item may be empty, rules as far as known. */
static bool nullable(analysis *s, uint32_t item) {
    const cera_gbnf_item *i = &s->p->items[item];
    s->work++;
    if (i->kind == CERA_G_EXPR) return cera_expr_nullable(s->p->a, i->value);
    if (i->kind == CERA_G_REF) return s->p->rules[i->value].nullable;
    if (i->kind == CERA_G_REP) return i->n == 0 || nullable(s, i->child);
    for (uint32_t l = i->sibling; l; l = s->p->items[l].sibling) {
        bool one = nullable(s, s->p->items[l].child);
        if (one != (i->kind == CERA_G_SEQ)) return one;
    }
    return i->kind == CERA_G_SEQ;
}

/* Adds the open rules that the item may begin with. */
static void collect_left(analysis *s, uint32_t rule, uint32_t item) {
    const cera_gbnf_item *i = &s->p->items[item];
    s->work++;
    if (i->kind == CERA_G_REF) {
        if (s->p->rules[i->value].done) return;
        add_ref(s, rule, i->value);
        s->p->rules[rule].left++;
    } else if (i->kind == CERA_G_REP)
        collect_left(s, rule, i->child);
    else if (i->kind != CERA_G_EXPR)
        for (uint32_t l = i->sibling; l; l = s->p->items[l].sibling) {
            collect_left(s, rule, s->p->items[l].child);
            if (i->kind == CERA_G_SEQ && !nullable(s, s->p->items[l].child)) break;
        }
}

/* Compiles every rule whose references are all compiled, leaves first. */
static void compile_leaves(analysis *s) {
    cera_gbnf_rule *r = s->p->rules;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->p->n_rules; i++)
        if (r[i].n_refs == 0) s->queue[n++] = i;
    for (uint32_t at = 0; at < n && ok(s); at++) {
        uint32_t i = s->queue[at];
        r[i].expr = compile(s, r[i].body);
        r[i].nullable = nullable(s, r[i].body);
        r[i].done = 1;
        for (uint32_t k = s->users[i]; k; k = s->refs[k - 1].next)
            if (--r[s->refs[k - 1].from].n_refs == 0) s->queue[n++] = s->refs[k - 1].from;
    }
}

static void find_nullable(analysis *s) {
    cera_gbnf_rule *r = s->p->rules;
    for (bool changed = true; changed && ok(s);) {
        changed = false;
        for (uint32_t i = s->p->n_rules; i-- > 0;) {
            if (r[i].done || r[i].nullable || !nullable(s, r[i].body)) continue;
            r[i].nullable = changed = true;
        }
        if (s->work > MAX_WORK) cera_gbnf_fail(s->p, CERA_ERR_LIMIT, "the rules are too entangled", NULL, 0);
    }
}

/* Takes away rules that begin with no open rule until only cycles, and what leads to them, are left. */
static void refuse_left_recursion(analysis *s) {
    cera_gbnf_rule *r = s->p->rules;
    uint32_t n = 0, open = 0;
    memset(s->users, 0, s->p->n_rules * sizeof *s->users);
    s->n_refs = 0;
    for (uint32_t i = 0; i < s->p->n_rules && ok(s); i++)
        if (!r[i].done) collect_left(s, i, r[i].body), open++;
    for (uint32_t i = 0; i < s->p->n_rules; i++)
        if (!r[i].done && r[i].left == 0) s->queue[n++] = i;
    for (uint32_t at = 0; at < n; at++)
        for (uint32_t k = s->users[s->queue[at]]; k; k = s->refs[k - 1].next)
            if (--r[s->refs[k - 1].from].left == 0) s->queue[n++] = s->refs[k - 1].from;
    if (n == open || !ok(s)) return;
    uint32_t bad = 0;
    while (r[bad].done || !r[bad].left) bad++;
    s->p->at = 0;
    s->p->status = cera_fail(s->p->e, CERA_ERR_UNSUPPORTED, "grammar, line %u: left recursion through rule %.*s", r[bad].line,
                             (int)(r[bad].name_size < 100 ? r[bad].name_size : 100), r[bad].name);
}

static void analyse(analysis *s, cera_gbnf *out) {
    cera_gbnf_parser *p = s->p;
    for (uint32_t i = 0; i < p->n_rules && ok(s); i++) {
        p->at = 0;
        if (!p->rules[i].body)
            cera_gbnf_fail(p, CERA_ERR_NOT_FOUND, "undefined rule", p->rules[i].name, p->rules[i].name_size);
        else
            collect(s, i, p->rules[i].body);
    }
    if (!ok(s)) return;
    compile_leaves(s);
    find_nullable(s);
    if (ok(s)) refuse_left_recursion(s);
    for (uint32_t i = 0; i < p->n_rules && ok(s); i++)
        if (!p->rules[i].done) p->rules[i].expr = compile(s, p->rules[i].body);
    for (uint32_t i = 0; i < p->n_rules && ok(s); i++)
        if (!cera_expr_tame(p->a, p->rules[i].expr))
            cera_gbnf_fail(p, CERA_ERR_LIMIT, "the counted repetitions are too ambiguous to follow in rule", p->rules[i].name,
                           p->rules[i].name_size);
    out->bodies = cera_alloc(p->n_rules, sizeof *out->bodies);
    if (!out->bodies)
        cera_automaton_fail(p->a, CERA_ERR_MEMORY, "out of memory");
    else
        for (uint32_t i = 0; i < p->n_rules; i++) out->bodies[i] = p->rules[i].expr;
    out->n_rules = p->n_rules;
    out->root = cera_gbnf_find(p, "root", 4, false);
    if (out->root == UINT32_MAX) cera_gbnf_fail(p, CERA_ERR_NOT_FOUND, "there is no rule named root", NULL, 0);
}

cera_status cera_gbnf_compile(cera_automaton *a, const char *text, size_t n, cera_gbnf_token token, void *context,
                              cera_gbnf *out, cera_error *e) {
    *out = (cera_gbnf){0};
    cera_gbnf_parser *p = cera_alloc(1, sizeof *p);
    if (!p) return cera_fail(e, CERA_ERR_MEMORY, "grammar: out of memory");
    *p = (cera_gbnf_parser){.a = a, .text = text, .n = n, .token = token, .context = context, .e = e};
    analysis s = {.p = p};
    if (cera_gbnf_parse(p) == CERA_OK) {
        s.users = cera_alloc(p->n_rules, sizeof *s.users);
        s.queue = cera_alloc(p->n_rules, sizeof *s.queue);
        if (!s.users || !s.queue)
            cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory");
        else
            analyse(&s, out);
    }
    cera_status status = p->status;
    if (!status && a->failed) status = cera_fail(e, a->failed, "grammar: %s", a->reason);
    free(s.refs);
    cera_free(s.users);
    cera_free(s.queue);
    free(p->items);
    free(p->rules);
    cera_free(p);
    if (status) cera_gbnf_deinit(out);
    return status;
}

void cera_gbnf_deinit(cera_gbnf *g) {
    cera_free(g->bodies);
    *g = (cera_gbnf){0};
}
