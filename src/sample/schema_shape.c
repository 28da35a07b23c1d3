/* schema_shape.c: what an object or array constraint comes to once its children are goals: the members that have names, the
 * classes of other members by the patterns that they match, the elements of an array. Finds which of them can have an instance.
 * Does not own: their text (schema_write.c). */
#include "sample/schema_int.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PATTERNS = 6, MAX_EXISTS = 8, MAX_CONTAINS = 4, MAX_UNIVERSE = 4096 };

static cera_shape *add_shape(cera_schema *s) {
    if (!cera_automaton_grow(s->a, (void **)&s->shapes, s->n_shapes, 1, &s->cap_shapes, sizeof *s->shapes)) return NULL;
    s->shapes[s->n_shapes] = (cera_shape){.max = CERA_NO_MAX, .limit = CERA_NO_MAX};
    return &s->shapes[s->n_shapes++];
}

/* ---- objects
 * --------------------------------------------------------------------------------------------------------------------- */

typedef struct names {
    cera_shape_key *at;
    uint32_t n, capacity;
} names;

static uint32_t find_name(const names *list, cera_text_view name) {
    for (uint32_t i = 0; i < list->n; i++)
        if (list->at[i].name.size == name.size && !memcmp(list->at[i].name.text, name.text, name.size)) return i;
    return UINT32_MAX;
}

static void add_name(names *list, cera_text_view name, cera_goal goal, bool required) {
    uint32_t i = find_name(list, name);
    if (i == UINT32_MAX) list->at[i = list->n++] = (cera_shape_key){.name = name, .goal = goal};
    list->at[i].required = list->at[i].required || required;
}

static uint32_t count_names(const cera_obj *o) {
    uint32_t n = o->n_props + o->n_required;
    for (uint32_t i = 0; i < o->n_pats; i++) n += o->pats[i].set.others ? o->pats[i].set.n_names : 0;
    for (uint32_t i = 0; i < o->n_exists; i++) n += o->exists[i].set.others ? o->exists[i].set.n_names : 0;
    return n;
}

/* Every name that any part mentions: properties in their order, then required ones, then those that "the others" leaves out. */
static void collect_names(cera_schema *s, const cera_obj *o, names *list) {
    list->at = cera_schema_alloc(s, count_names(o), sizeof *list->at);
    if (!list->at) return;
    for (uint32_t i = 0; i < o->n_props; i++) add_name(list, o->props[i].name, o->props[i].goal, false);
    for (uint32_t i = 0; i < o->n_required; i++) add_name(list, o->required[i], CERA_GOAL_TRUE, true);
    for (uint32_t k = 0; k < o->n_pats + o->n_exists; k++) {
        const cera_keyset *set = k < o->n_pats ? &o->pats[k].set : &o->exists[k - o->n_pats].set;
        for (uint32_t i = 0; set->others && i < set->n_names; i++) add_name(list, set->names[i], CERA_GOAL_TRUE, false);
    }
    for (uint32_t i = 0; i < list->n && cera_schema_ok(s); i++) {
        cera_shape_key *key = &list->at[i];
        for (uint32_t k = 0; k < o->n_pats; k++)
            if (o->pats[k].goal != CERA_GOAL_TRUE && cera_keyset_has(s, &o->pats[k].set, key->name))
                key->goal = cera_goal_and(s, key->goal, o->pats[k].goal);
        for (uint32_t k = 0; k < o->n_exists; k++)
            if (cera_keyset_has(s, &o->exists[k].set, key->name)) key->exists |= 1u << k;
    }
}

typedef struct atoms {
    cera_expr at[MAX_PATTERNS];
    uint32_t n;
    bool full;
} atoms;

static void add_atoms(atoms *list, const cera_keyset *set) {
    for (uint32_t i = 0; i < set->n_patterns; i++) {
        uint32_t k = 0;
        while (k < list->n && list->at[k] != set->patterns[i]) k++;
        if (k < list->n) continue;
        if (list->n == MAX_PATTERNS)
            list->full = true;
        else
            list->at[list->n++] = set->patterns[i];
    }
}

/* Whether names that match exactly the atoms in mask (and have no name of their own) are in the set. */
static bool set_holds(const atoms *list, uint32_t mask, const cera_keyset *set) {
    bool match = false;
    for (uint32_t i = 0; i < set->n_patterns; i++)
        for (uint32_t k = 0; k < list->n; k++) match = match || (list->at[k] == set->patterns[i] && (mask >> k & 1));
    return match != set->others;
}

static cera_expr class_names(cera_schema *s, const atoms *list, uint32_t mask) {
    cera_expr x = s->all_text;
    for (uint32_t k = 0; k < list->n; k++)
        x = cera_expr_and2(s->a, x, mask >> k & 1 ? list->at[k] : cera_expr_not(s->a, list->at[k]));
    return x;
}

static void add_rest(cera_schema *s, cera_shape *shape, cera_goal goal, uint32_t exists, cera_expr name) {
    if (name == CERA_EXPR_EMPTY) return;
    for (uint32_t i = 0; i < shape->n_rest; i++) {
        cera_shape_rest *r = &shape->rest[i];
        if (r->goal != goal || r->exists != exists) continue;
        r->name = cera_expr_or2(s->a, r->name, name);
        return;
    }
    shape->rest[shape->n_rest++] = (cera_shape_rest){.name = name, .goal = goal, .exists = exists};
}

static void rest_classes(cera_schema *s, const cera_obj *o, cera_shape *shape) {
    atoms list = {0};
    cera_goal goals[1 << MAX_PATTERNS];
    uint32_t exists[1 << MAX_PATTERNS];
    for (uint32_t k = 0; k < o->n_pats; k++) add_atoms(&list, &o->pats[k].set);
    for (uint32_t k = 0; k < o->n_exists; k++) add_atoms(&list, &o->exists[k].set);
    if (list.full) {
        cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, "patternProperties",
                         "more than 6 patterns for the members of one object");
        return;
    }
    bool same = true;
    for (uint32_t mask = 0; mask < 1u << list.n; mask++) {
        goals[mask] = CERA_GOAL_TRUE;
        exists[mask] = 0;
        for (uint32_t k = 0; k < o->n_pats; k++)
            if (set_holds(&list, mask, &o->pats[k].set)) goals[mask] = cera_goal_and(s, goals[mask], o->pats[k].goal);
        for (uint32_t k = 0; k < o->n_exists; k++)
            if (set_holds(&list, mask, &o->exists[k].set)) exists[mask] |= 1u << k;
        same = same && goals[mask] == goals[0] && exists[mask] == exists[0];
    }
    shape->rest = cera_schema_alloc(s, 1u << list.n, sizeof *shape->rest);
    if (!shape->rest) return;
    for (uint32_t mask = 0; mask < (same ? 1u : 1u << list.n) && cera_schema_ok(s); mask++)
        if (goals[mask] != CERA_GOAL_FALSE)
            add_rest(s, shape, goals[mask], exists[mask], same ? s->all_text : class_names(s, &list, mask));
}

/* Takes the names that have a line of their own out of the classes. */
static void exclude_names(cera_schema *s, cera_shape *shape) {
    cera_expr *lits = cera_schema_alloc(s, shape->n_keys, sizeof *lits);
    if (!lits || !shape->n_rest) return;
    for (uint32_t i = 0; i < shape->n_keys; i++)
        lits[i] = cera_expr_literal(s->a, shape->keys[i].name.text, shape->keys[i].name.size);
    cera_expr other = cera_expr_not(s->a, cera_expr_or(s->a, lits, shape->n_keys));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < shape->n_rest; i++) {
        shape->rest[i].name = cera_expr_and2(s->a, shape->rest[i].name, other);
        if (shape->rest[i].name != CERA_EXPR_EMPTY) shape->rest[kept++] = shape->rest[i];
    }
    shape->n_rest = kept;
}

void cera_shape_object(cera_schema *s, const cera_obj *o) {
    cera_shape *shape = add_shape(s);
    names list = {0};
    if (!shape) return;
    if (o->n_exists > MAX_EXISTS) cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, NULL, "too many members that must exist");
    shape->is_object = true;
    shape->min = o->min;
    shape->max = o->max;
    shape->exists = o->exists;
    shape->n_exists = o->n_exists;
    collect_names(s, o, &list);
    if (!cera_schema_ok(s)) return;
    cera_shape local = *shape; /* the array may move while goals are made */
    uint32_t at = s->n_shapes - 1;
    local.keys = list.at;
    local.n_keys = list.n;
    for (uint32_t i = 0; i < list.n; i++) local.n_required += list.at[i].required;
    rest_classes(s, o, &local);
    if (cera_schema_ok(s)) exclude_names(s, &local);
    s->shapes[at] = local;
}

/* ---- arrays
 * ------------------------------------------------------------------------------------------------------------------------ */

static const cera_json constants[3] = {{.kind = CERA_JSON_NULL}, {.kind = CERA_JSON_FALSE}, {.kind = CERA_JSON_TRUE}};

typedef struct universe {
    const cera_json **at;
    uint32_t n, capacity;
} universe;

static void add_value(cera_schema *s, universe *u, const cera_json *v) {
    for (uint32_t i = 0; i < u->n; i++)
        if (cera_json_equal(u->at[i], v)) return;
    if (u->n == MAX_UNIVERSE)
        cera_schema_fail(s, CERA_ERR_LIMIT, NULL, "uniqueItems", "more than 4096 values");
    else if (cera_automaton_grow(s->a, (void **)&u->at, u->n, 1, &u->capacity, sizeof *u->at))
        u->at[u->n++] = v;
}

static void add_values(cera_schema *s, universe *u, cera_goal g) {
    bool is_const = false;
    const cera_nf *nf = cera_goal_nf(s, g);
    const cera_json *list = cera_goal_universe(s, g, &is_const);
    if (!nf || g == CERA_GOAL_FALSE) return;
    if (list && is_const)
        add_value(s, u, list);
    else if (list)
        for (uint32_t i = 0; i < list->n; i++) add_value(s, u, &list->items[i]);
    else if (!nf->n_num && !nf->n_obj && !nf->n_arr && nf->str == CERA_EXPR_EMPTY) {
        if (nf->null) add_value(s, u, &constants[0]);
        if (nf->bools & 1) add_value(s, u, &constants[1]);
        if (nf->bools & 2) add_value(s, u, &constants[2]);
    } else
        cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, "uniqueItems",
                         "only elements from a finite set (enum, const, boolean) can be kept apart");
}

static void find_universe(cera_schema *s, cera_shape *shape) {
    const cera_arr *x = shape->arr;
    universe u = {0};
    if (!x->unique || x->max <= 1) return;
    if (x->n_contains) cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, "uniqueItems", "cannot be enforced beside contains");
    for (uint32_t i = 0; i < x->n_prefix && i < x->max && cera_schema_ok(s); i++) add_values(s, &u, x->prefix[i]);
    if (x->n_prefix < x->max && cera_schema_ok(s)) add_values(s, &u, x->rest);
    cera_goal *g = cera_schema_alloc(s, u.n, sizeof *g);
    for (uint32_t i = 0; g && i < u.n; i++) g[i] = cera_goal_const(s, u.at[i]);
    shape->universe = g;
    shape->n_universe = u.n;
    free(u.at);
}

void cera_shape_array(cera_schema *s, const cera_arr *arr) {
    cera_shape *shape = add_shape(s);
    if (!shape) return;
    uint32_t at = s->n_shapes - 1;
    if (arr->n_contains > MAX_CONTAINS)
        cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, "contains", "more than 4 of them on one array");
    if (arr->min >= CERA_REP_INF) cera_schema_fail(s, CERA_ERR_LIMIT, NULL, "minItems", "is above 2^32");
    cera_shape local = *shape;
    local.min = arr->min;
    local.max = arr->max;
    local.arr = arr;
    find_universe(s, &local);
    s->shapes[at] = local;
}

/* ---- which have instances
 * ------------------------------------------------------------------------------------------------------------ */

static bool productive(const cera_schema *s, cera_goal g) { return g != CERA_GOAL_FALSE && s->goals[g].productive; }

static bool object_productive(cera_schema *s, const cera_shape *o) {
    uint64_t available = o->n_rest ? CERA_NO_MAX : 0;
    if (o->n_required > o->max || o->min > o->max) return false;
    for (uint32_t i = 0; i < o->n_keys; i++) {
        bool can = productive(s, o->keys[i].goal);
        if (o->keys[i].required && !can) return false;
        if (!o->n_rest) available += can;
    }
    for (uint32_t i = 0; i < o->n_exists; i++)
        if (!productive(s, o->exists[i].goal)) return false;
    return available >= o->min && cera_object_can_finish(s, o);
}

bool cera_shape_productive(cera_schema *s, const cera_shape *shape) {
    if (shape->is_object) return object_productive(s, shape);
    const cera_arr *x = shape->arr;
    if (x->min > x->max || (shape->n_universe && x->min > shape->n_universe)) return false;
    for (uint64_t i = 0; i < x->min && i <= x->n_prefix; i++)
        if (!productive(s, i < x->n_prefix ? x->prefix[i] : x->rest)) return false;
    if (x->n_contains) return cera_array_can_finish(s, shape, &(cera_macro){0});
    return true;
}

/* Forbids what can have no instance. */
void cera_shape_prune(cera_schema *s, cera_shape *shape) {
    shape->dead = !cera_shape_productive(s, shape);
    for (uint32_t i = 0; i < shape->n_keys; i++)
        if (!productive(s, shape->keys[i].goal)) shape->keys[i].goal = CERA_GOAL_FALSE;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < shape->n_rest; i++)
        if (productive(s, shape->rest[i].goal)) shape->rest[kept++] = shape->rest[i];
    shape->n_rest = kept;
    if (shape->is_object) return;
    const cera_arr *x = shape->arr;
    for (uint32_t i = 0; i <= x->n_prefix && shape->limit == CERA_NO_MAX; i++)
        if (!productive(s, i < x->n_prefix ? x->prefix[i] : x->rest)) shape->limit = i;
    if (shape->limit > x->max) shape->limit = x->max;
}
