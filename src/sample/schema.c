/* schema.c: compilation of a JSON Schema: goals and their interning, the walk over all goals that can be reached, the least
 * fixed point that tells which have an instance. Does not own: keywords, normal forms, shapes, text. */
#include "sample/schema_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"

enum { MAX_GOALS = 30000, MAX_PROBE_DEPTH = 4, MAX_REF_STEPS = 16, ARENA_LIMIT = 256 << 20 };

/* ---- messages
 * ------------------------------------------------------------------------------------------------------------------------ */

typedef struct path {
    char text[400];
    size_t n;
} path;

static void path_add(path *p, const char *text, size_t n) {
    for (size_t i = 0; i < n && p->n + 3 < sizeof p->text; i++) {
        char c = text[i];
        if (c == '~' || c == '/') p->text[p->n++] = '~', c = c == '~' ? '0' : '1';
        p->text[p->n++] = c;
    }
}

/* Finds node below `at` and writes its pointer. */
static bool path_to(const cera_json *at, const cera_json *node, path *p, int depth) {
    if (at == node) return true;
    if (depth > CERA_JSON_MAX_DEPTH || (at->kind != CERA_JSON_ARRAY && at->kind != CERA_JSON_OBJECT)) return false;
    for (uint32_t i = 0; i < at->n; i++) {
        size_t back = p->n;
        char number[16];
        if (p->n + 1 < sizeof p->text) p->text[p->n++] = '/';
        if (at->kind == CERA_JSON_OBJECT)
            path_add(p, at->keys[i].text, at->keys[i].size);
        else
            path_add(p, number, (size_t)snprintf(number, sizeof number, "%u", i));
        if (path_to(&at->items[i], node, p, depth + 1)) return true;
        p->n = back;
    }
    return false;
}

cera_status cera_schema_fail(cera_schema *s, cera_status status, const cera_json *node, const char *keyword,
                             const char *reason) {
    path p = {0};
    if (s->status) return s->status;
    if (!node) node = s->here;
    if (node) path_to(s->root, node, &p, 0);
    s->status = cera_fail(s->e, status, "schema: %.*s%s%s: %s", (int)p.n, p.text, keyword || !p.n ? "/" : "",
                          keyword ? keyword : "", reason);
    return s->status;
}

bool cera_schema_ok(cera_schema *s) { return !s->status && !s->a->failed; }

void *cera_schema_alloc(cera_schema *s, size_t n, size_t size) {
    void *p = cera_arena_alloc(s->arena, n ? n : 1, size);
    if (!p) cera_schema_fail(s, CERA_ERR_MEMORY, NULL, NULL, "the schema needs too much memory");
    return p;
}

/* ---- literals and goals
 * --------------------------------------------------------------------------------------------------------------- */

uint32_t cera_schema_lit(cera_schema *s, cera_lit_kind kind, const cera_json *node, cera_goal goal) {
    uint32_t *bucket = &s->lit_buckets[cera_hash_mix((uintptr_t)node, (uint64_t)kind << 32 | goal) & 1023];
    for (uint32_t i = *bucket; i; i = s->lits[i - 1].next) {
        const cera_lit *l = &s->lits[i - 1];
        if (l->kind == kind && l->node == node && l->goal == goal) return i - 1;
    }
    if (!cera_automaton_grow(s->a, (void **)&s->lits, s->n_lits, 1, &s->cap_lits, sizeof *s->lits)) return 0;
    s->lits[s->n_lits] = (cera_lit){.kind = kind, .node = node, .goal = goal, .next = *bucket};
    *bucket = ++s->n_lits;
    return s->n_lits - 1;
}

static cera_goal intern_goal(cera_schema *s, const uint32_t *lits, uint32_t n) {
    uint32_t *bucket = &s->goal_buckets[cera_hash64(lits, n * sizeof *lits, 0) & 1023];
    for (uint32_t i = *bucket; i; i = s->goals[i - 1].next) {
        const cera_goal_info *g = &s->goals[i - 1];
        if (g->n_lits == n && (n == 0 || !memcmp(g->lits, lits, n * sizeof *lits))) return i - 1;
    }
    if (s->n_goals >= MAX_GOALS)
        return cera_schema_fail(s, CERA_ERR_LIMIT, NULL, NULL, "combinations of schemas grow without bound"), CERA_GOAL_FALSE;
    uint32_t *copy = cera_schema_alloc(s, n, sizeof *copy);
    if (!copy || !cera_automaton_grow(s->a, (void **)&s->goals, s->n_goals, 1, &s->cap_goals, sizeof *s->goals))
        return CERA_GOAL_FALSE;
    if (n) memcpy(copy, lits, n * sizeof *lits);
    s->goals[s->n_goals] = (cera_goal_info){.lits = copy, .n_lits = n, .next = *bucket, .number = UINT32_MAX};
    *bucket = ++s->n_goals;
    return s->n_goals - 1;
}

cera_goal cera_goal_of(cera_schema *s, uint32_t lit) { return intern_goal(s, &lit, 1); }

cera_goal cera_goal_schema(cera_schema *s, const cera_json *node) {
    if (node->kind == CERA_JSON_TRUE || (node->kind == CERA_JSON_OBJECT && node->n == 0)) return CERA_GOAL_TRUE;
    if (node->kind == CERA_JSON_FALSE) return CERA_GOAL_FALSE;
    return cera_goal_of(s, cera_schema_lit(s, CERA_LIT_SCHEMA, node, 0));
}

cera_goal cera_goal_const(cera_schema *s, const cera_json *node) {
    return cera_goal_of(s, cera_schema_lit(s, CERA_LIT_CONST, node, 0));
}

cera_goal cera_goal_and(cera_schema *s, cera_goal x, cera_goal y) {
    if (x == y || y == CERA_GOAL_TRUE || x == CERA_GOAL_FALSE) return x;
    if (x == CERA_GOAL_TRUE || y == CERA_GOAL_FALSE) return y;
    const cera_goal_info *p = &s->goals[x], *q = &s->goals[y];
    uint32_t n = 0, i = 0, j = 0, *lits = cera_schema_alloc(s, (size_t)p->n_lits + q->n_lits, sizeof *lits);
    if (!lits) return CERA_GOAL_FALSE;
    while (i < p->n_lits || j < q->n_lits) {
        bool left = j == q->n_lits || (i < p->n_lits && p->lits[i] <= q->lits[j]);
        uint32_t l = left ? p->lits[i] : q->lits[j];
        if (i < p->n_lits && p->lits[i] == l) i++;
        if (j < q->n_lits && q->lits[j] == l) j++;
        lits[n++] = l;
    }
    return intern_goal(s, lits, n);
}

cera_goal cera_goal_not(cera_schema *s, cera_goal x) {
    if (x == CERA_GOAL_TRUE) return CERA_GOAL_FALSE;
    if (x == CERA_GOAL_FALSE) return CERA_GOAL_TRUE;
    const cera_goal_info *g = &s->goals[x];
    if (g->n_lits == 1 && s->lits[g->lits[0]].kind == CERA_LIT_NOT_GOAL) return s->lits[g->lits[0]].goal;
    return cera_goal_of(s, cera_schema_lit(s, CERA_LIT_NOT_GOAL, NULL, x));
}

static const cera_nf *lit_nf(cera_schema *s, uint32_t l) {
    cera_lit lit = s->lits[l];
    if (lit.nf) return lit.nf;
    if (lit.busy) {
        if (!s->probes)
            cera_schema_fail(s, CERA_ERR_UNSUPPORTED, lit.node, NULL,
                             "refers to itself without taking anything from the value");
        return NULL;
    }
    s->lits[l].busy = true;
    const cera_nf *nf = NULL;
    if (lit.kind == CERA_LIT_SCHEMA)
        nf = cera_schema_nf(s, lit.node);
    else if (lit.kind == CERA_LIT_CONST)
        nf = cera_const_nf(s, lit.node);
    else if (lit.kind == CERA_LIT_NOT_GOAL) {
        const cera_nf *inner = cera_goal_nf(s, lit.goal);
        if (inner) nf = cera_nf_keep(s, cera_nf_not(s, inner));
    } else
        nf = &s->no;
    s->lits[l].busy = false;
    if (cera_schema_ok(s)) s->lits[l].nf = nf;
    return nf;
}

const cera_nf *cera_goal_nf(cera_schema *s, cera_goal g) {
    if (s->goals[g].nf) return s->goals[g].nf;
    const uint32_t *lits = s->goals[g].lits;
    uint32_t n = s->goals[g].n_lits;
    const cera_nf *nf = &s->yes;
    for (uint32_t i = 0; i < n; i++) {
        const cera_nf *x = lit_nf(s, lits[i]);
        if (!x || !cera_schema_ok(s)) return NULL;
        nf = nf == &s->yes ? x : cera_nf_keep(s, cera_nf_and(s, nf, x));
    }
    if (!cera_schema_ok(s)) return NULL;
    return s->goals[g].nf = nf;
}

bool cera_goal_surely_empty(cera_schema *s, cera_goal g) {
    if (g <= CERA_GOAL_FALSE || s->goals[g].empty)
        return g == CERA_GOAL_FALSE || (g > CERA_GOAL_FALSE && s->goals[g].empty == 2);
    if (s->probes > MAX_PROBE_DEPTH || !cera_schema_ok(s)) return false;
    for (uint32_t i = 0; i < s->goals[g].n_lits; i++)
        if (s->lits[s->goals[g].lits[i]].busy) return false;
    s->goals[g].empty = 1;
    s->probes++;
    const cera_nf *nf = cera_goal_nf(s, g);
    bool empty = nf && cera_nf_is_empty(s, nf);
    s->probes--;
    s->goals[g].empty = empty ? 2 : nf ? 3 : 0;
    return empty;
}

/* A schema's enum or const, or that of the schema it refers to. */
static const cera_json *schema_universe(cera_schema *s, const cera_json *node, bool *is_const) {
    for (int i = 0; i < MAX_REF_STEPS && node && node->kind == CERA_JSON_OBJECT; i++) {
        const cera_json *list = cera_json_get(node, "enum"), *value = cera_json_get(node, "const"),
                        *ref = cera_json_get(node, "$ref");
        if (ref && !(s->draft >= CERA_DRAFT_2019 && (list || value))) {
            node = cera_schema_resolve(s, node, ref, "$ref");
            continue;
        }
        if (!list && !value) return NULL;
        *is_const = !list;
        return list ? list : value;
    }
    return NULL;
}

const cera_json *cera_goal_universe(cera_schema *s, cera_goal g, bool *is_const) {
    for (uint32_t i = 0; i < s->goals[g].n_lits; i++) {
        const cera_lit *l = &s->lits[s->goals[g].lits[i]];
        if (l->kind == CERA_LIT_CONST) return *is_const = true, l->node;
        const cera_json *u = l->kind == CERA_LIT_SCHEMA ? schema_universe(s, l->node, is_const) : NULL;
        if (u) return u;
    }
    return NULL;
}

/* ---- the walk
 * ------------------------------------------------------------------------------------------------------------------------- */

typedef struct queue {
    cera_goal *at;
    uint32_t n, capacity;
} queue;

static void visit(cera_schema *s, queue *q, cera_goal g) {
    if (!cera_schema_ok(s) || s->goals[g].explored) return;
    s->goals[g].explored = true;
    if (cera_automaton_grow(s->a, (void **)&q->at, q->n, 1, &q->capacity, sizeof *q->at)) q->at[q->n++] = g;
}

static void visit_array(cera_schema *s, queue *q, const cera_shape *shape) {
    const cera_arr *x = shape->arr;
    for (uint64_t i = 0; i <= x->n_prefix && i < x->max; i++) {
        visit(s, q, i < x->n_prefix ? x->prefix[i] : x->rest);
        for (uint32_t u = 0; u < shape->n_universe; u++)
            visit(s, q, cera_goal_and(s, i < x->n_prefix ? x->prefix[i] : x->rest, shape->universe[u]));
    }
    for (uint32_t k = 0; k <= x->n_contains && x->n_contains; k++) {
        uint64_t from = k < x->n_contains ? x->contains[k].from : x->n_prefix;
        for (uint64_t i = k < x->n_contains ? from : 0; i <= (from > x->n_prefix ? from : x->n_prefix); i++)
            for (uint32_t mask = 0; mask < 1u << x->n_contains; mask++) visit(s, q, cera_schema_element(s, x, i, mask));
    }
    for (uint32_t k = 0; k < x->n_contains; k++) visit(s, q, x->contains[k].goal);
}

static void visit_object(cera_schema *s, queue *q, const cera_shape *o) {
    for (uint32_t i = 0; i < o->n_keys + o->n_rest && cera_schema_ok(s); i++) {
        cera_goal g = i < o->n_keys ? o->keys[i].goal : o->rest[i - o->n_keys].goal;
        uint32_t exists = i < o->n_keys ? o->keys[i].exists : o->rest[i - o->n_keys].exists;
        visit(s, q, g);
        for (uint32_t set = exists; set; set = (set - 1) & exists) {
            cera_goal both = g;
            for (uint32_t k = 0; k < o->n_exists; k++)
                if (set >> k & 1) both = cera_goal_and(s, both, o->exists[k].goal);
            visit(s, q, both);
        }
    }
    for (uint32_t k = 0; k < o->n_exists; k++) visit(s, q, o->exists[k].goal);
}

/* Bounds on one side always leave numbers; what is more is looked at. */
static bool plainly_some(const cera_nf *nf) {
    for (uint32_t i = 0; i < nf->n_num; i++)
        if (!nf->num[i].n_mults && nf->num[i].integer >= 0 && !(nf->num[i].has_lo && nf->num[i].has_hi)) return true;
    return nf->n_num == 0;
}

static void explore(cera_schema *s, queue *q, cera_goal g) {
    const cera_goal_info *info = &s->goals[g];
    const cera_json *node = NULL;
    for (uint32_t i = 0; i < info->n_lits && !node; i++)
        if (s->lits[info->lits[i]].kind == CERA_LIT_SCHEMA) node = s->lits[info->lits[i]].node;
    s->here = node ? node : s->root;
    const cera_nf *nf = cera_goal_nf(s, g);
    if (!nf) return;
    uint32_t first = s->n_shapes;
    if (!plainly_some(nf)) {
        cera_expr x = cera_number_expr(s, nf->num, nf->n_num);
        s->goals[g].number = x;
    }
    for (uint32_t i = 0; i < nf->n_arr && cera_schema_ok(s); i++) cera_shape_array(s, nf->arr[i]);
    for (uint32_t i = 0; i < nf->n_obj && cera_schema_ok(s); i++) cera_shape_object(s, nf->obj[i]);
    s->goals[g].first_shape = first;
    s->goals[g].n_shapes = s->n_shapes - first;
    for (uint32_t i = first; i < s->n_shapes && cera_schema_ok(s); i++) {
        cera_shape shape = s->shapes[i];
        if (shape.is_object)
            visit_object(s, q, &shape);
        else
            visit_array(s, q, &shape);
    }
}

static bool has_instance(cera_schema *s, const cera_goal_info *g) {
    const cera_nf *nf = g->nf;
    if (nf->null || nf->bools || nf->str != CERA_EXPR_EMPTY || (nf->n_num && g->number != CERA_EXPR_EMPTY)) return true;
    for (uint32_t i = 0; i < g->n_shapes; i++)
        if (cera_shape_productive(s, &s->shapes[g->first_shape + i])) return true;
    return false;
}

static void find_productive(cera_schema *s, const queue *q) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = q->n; i-- > 0;) {
            cera_goal_info *g = &s->goals[q->at[i]];
            if (!g->productive && has_instance(s, g)) g->productive = changed = true;
        }
    }
    for (uint32_t i = 0; i < s->n_shapes; i++) cera_shape_prune(s, &s->shapes[i]);
}

/* ---- compile
 * ----------------------------------------------------------------------------------------------------------------------------
 */

static cera_draft draft_of(cera_schema *s) {
    static const char *const names[] = {"draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"};
    const cera_json *v = cera_json_get(s->root, "$schema");
    if (!v || v->kind != CERA_JSON_STRING) return CERA_DRAFT_NONE;
    for (int i = 0; i < 5; i++) {
        size_t n = strlen(names[i]);
        for (size_t at = 0; at + n <= v->text.size; at++)
            if (!memcmp(v->text.text + at, names[i], n)) return (cera_draft)(CERA_DRAFT_4 + i);
    }
    static const char latest[] = "json-schema.org/schema"; /* no draft named */
    for (size_t at = 0; at + sizeof latest - 1 <= v->text.size; at++)
        if (!memcmp(v->text.text + at, latest, sizeof latest - 1)) return CERA_DRAFT_NONE;
    cera_schema_fail(s, CERA_ERR_UNSUPPORTED, s->root, "$schema", "no draft that is supported (4, 6, 7, 2019-09, 2020-12)");
    return CERA_DRAFT_NONE;
}

static void prepare(cera_schema *s) {
    cera_class c = {0};
    cera_class_add(&c, ' ', ' ');
    cera_class_add(&c, '\t', '\n');
    cera_class_add(&c, '\r', '\r');
    if (s->compact) {
        s->ws = CERA_EXPR_EPS;
        s->ws_after = cera_expr_rep(s->a, cera_expr_byte_range(s->a, ' ', ' '), 0, 1);
    } else {
        cera_expr one = CERA_EXPR_EMPTY;
        for (uint32_t i = 0; i < c.n; i++) /* as bytes: nothing is escaped here */
            one = cera_expr_or2(s->a, one, cera_expr_byte_range(s->a, (uint8_t)c.r[i][0], (uint8_t)c.r[i][1]));
        s->ws = s->ws_after = cera_expr_rep(s->a, one, 0, CERA_REP_INF);
    }
    cera_class_deinit(&c);
    s->all_text = cera_expr_rep(s->a, cera_expr_any_char(s->a), 0, CERA_REP_INF);
    cera_num *n = cera_schema_alloc(s, 1, sizeof *n);
    cera_arr *x = cera_schema_alloc(s, 1, sizeof *x);
    cera_obj *o = cera_schema_alloc(s, 1, sizeof *o);
    const void **lists = cera_schema_alloc(s, 2, sizeof *lists);
    if (!n || !x || !o || !lists) return;
    x->max = o->max = CERA_NO_MAX;
    lists[0] = x;
    lists[1] = o;
    s->no = (cera_nf){.str = CERA_EXPR_EMPTY};
    s->yes = (cera_nf){.null = true,
                       .bools = 3,
                       .str = s->all_text,
                       .num = n,
                       .n_num = 1,
                       .arr = (const cera_arr *const *)lists,
                       .n_arr = 1,
                       .obj = (const cera_obj *const *)(lists + 1),
                       .n_obj = 1};
    intern_goal(s, NULL, 0);                                      /* CERA_GOAL_TRUE */
    cera_goal_of(s, cera_schema_lit(s, CERA_LIT_FALSE, NULL, 0)); /* CERA_GOAL_FALSE */
}

static void compile(cera_schema *s) {
    queue q = {0};
    s->draft = draft_of(s);
    prepare(s);
    if (cera_schema_ok(s)) cera_schema_index(s);
    if (cera_schema_ok(s)) s->root_goal = cera_goal_schema(s, s->root);
    if (cera_schema_ok(s)) visit(s, &q, s->root_goal);
    for (uint32_t i = 0; i < q.n && cera_schema_ok(s); i++) explore(s, &q, q.at[i]);
    if (cera_schema_ok(s)) find_productive(s, &q);
    free(q.at);
    s->here = NULL;
    if (s->status) return;
    if (s->a->undecided)
        cera_schema_fail(s, CERA_ERR_LIMIT, NULL, NULL, "it is too complex to decide whether anything is valid");
    if (s->a->failed) cera_schema_fail(s, s->a->failed, NULL, NULL, s->a->reason);
}

cera_status cera_schema_compile(cera_automaton *a, const cera_json *root, bool any_order, bool compact, cera_schema **out,
                                cera_error *e) {
    *out = NULL;
    cera_schema *s = cera_alloc(1, sizeof *s);
    if (!s) return cera_fail(e, CERA_ERR_MEMORY, "schema: out of memory");
    *s = (cera_schema){.a = a, .root = root, .any_order = any_order, .compact = compact, .e = e};
    s->status = cera_arena_create(ARENA_LIMIT, &s->arena, e);
    if (!s->status) compile(s);
    cera_status status = s->status;
    if (status) {
        cera_schema_destroy(s);
        return status;
    }
    s->e = NULL; /* what is found later goes through the automaton */
    a->owner = s;
    a->rule_body = cera_schema_rule;
    a->macro_body = cera_schema_macro;
    *out = s;
    return CERA_OK;
}

bool cera_schema_is_empty(const cera_schema *s) { return !s->goals[s->root_goal].productive; }

void cera_schema_destroy(cera_schema *s) {
    if (!s) return;
    cera_arena_destroy(s->arena);
    free(s->lits);
    free(s->goals);
    free(s->shapes);
    free(s->macros);
    free(s->words);
    free(s->resources);
    free(s->anchors);
    free(s->bases);
    cera_free(s);
}
