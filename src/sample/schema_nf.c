/* schema_nf.c: and, or, not on normal forms. They are exact: a type's part never mixes with another's, numbers and strings are
 * closed under the three, and the complement of an object or array constraint is the list of the ways to break it. What could
 * grow without limit is the number of alternatives of arrays and objects: it is bounded and then refused. Does not own: reading
 * keywords. */
#include "sample/schema_int.h"

#include <string.h>

enum { MAX_ALTERNATIVES = 512, MAX_LIST = 20000 };

static void *grow_list(cera_schema *s, const void *old, uint32_t n, uint32_t more, size_t size) {
    char *p = cera_schema_alloc(s, (size_t)n + more, size);
    if (p && n) memcpy(p, old, n * size);
    return p;
}

static bool too_many(cera_schema *s, uint64_t n) {
    if (n <= MAX_ALTERNATIVES) return false;
    cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, NULL, "too many alternatives to tell apart");
    return true;
}

const cera_nf *cera_nf_keep(cera_schema *s, cera_nf x) {
    cera_nf *p = cera_schema_alloc(s, 1, sizeof *p);
    if (!p) return &s->no;
    *p = x;
    return p;
}

/* ---- numbers
 * ------------------------------------------------------------------------------------------------------------------- */

static void raise_lo(cera_num *x, const cera_decimal *lo, bool open) {
    int c = x->has_lo ? cera_decimal_compare(lo, &x->lo) : 1;
    if (c > 0)
        x->lo = *lo, x->lo_open = open;
    else if (c == 0)
        x->lo_open = x->lo_open || open;
    x->has_lo = true;
}
static void lower_hi(cera_num *x, const cera_decimal *hi, bool open) {
    int c = x->has_hi ? cera_decimal_compare(hi, &x->hi) : -1;
    if (c < 0)
        x->hi = *hi, x->hi_open = open;
    else if (c == 0)
        x->hi_open = x->hi_open || open;
    x->has_hi = true;
}

static bool num_is_empty(const cera_num *x) {
    if (x->integer == 2) return true;
    if (!x->has_lo || !x->has_hi) return false;
    int c = cera_decimal_compare(&x->lo, &x->hi);
    return c > 0 || (c == 0 && (x->lo_open || x->hi_open || (x->integer > 0 && !cera_decimal_is_integer(&x->lo))));
}

static cera_num num_and(cera_schema *s, const cera_num *x, const cera_num *y) {
    cera_num r = *x;
    if (y->has_lo) raise_lo(&r, &y->lo, y->lo_open);
    if (y->has_hi) lower_hi(&r, &y->hi, y->hi_open);
    if (y->integer) r.integer = x->integer && x->integer != y->integer ? 2 : y->integer;
    if (y->n_mults) {
        cera_mult *m = grow_list(s, x->mults, x->n_mults, y->n_mults, sizeof *m);
        if (!m) return r;
        memcpy(m + x->n_mults, y->mults, y->n_mults * sizeof *m);
        r.mults = m;
        r.n_mults = x->n_mults + y->n_mults;
    }
    return r;
}

static void nums_and(cera_schema *s, const cera_nf *x, const cera_nf *y, cera_nf *out) {
    bool left = y->num == s->yes.num || (x->num == y->num && x->n_num == y->n_num);
    if (left || x->num == s->yes.num) {
        out->num = left ? x->num : y->num;
        out->n_num = left ? x->n_num : y->n_num;
        return;
    }
    if (too_many(s, (uint64_t)x->n_num * y->n_num / 8)) return;
    cera_num *list = cera_schema_alloc(s, (size_t)x->n_num * y->n_num, sizeof *list);
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < x->n_num; i++)
        for (uint32_t j = 0; j < y->n_num; j++) {
            cera_num r = num_and(s, &x->num[i], &y->num[j]);
            if (!num_is_empty(&r)) list[n++] = r;
        }
    out->num = list;
    out->n_num = list ? n : 0;
}

/* The ways not to be in x, added to list. */
static uint32_t num_break(cera_schema *s, const cera_num *x, cera_num *list) {
    uint32_t n = 0;
    if (x->has_lo) list[n++] = (cera_num){.has_hi = true, .hi = x->lo, .hi_open = !x->lo_open};
    if (x->has_hi) list[n++] = (cera_num){.has_lo = true, .lo = x->hi, .lo_open = !x->hi_open};
    if (x->integer) list[n++] = (cera_num){.integer = (int8_t)-x->integer};
    for (uint32_t i = 0; i < x->n_mults; i++) {
        cera_mult *m = cera_schema_alloc(s, 1, sizeof *m);
        if (!m) return n;
        *m = x->mults[i];
        m->negated = !m->negated;
        list[n++] = (cera_num){.mults = m, .n_mults = 1};
    }
    return n;
}

/* ---- objects and arrays
 * ---------------------------------------------------------------------------------------------------------- */

static bool same_text(cera_text_view x, cera_text_view y) { return x.size == y.size && !memcmp(x.text, y.text, x.size); }

bool cera_keyset_has(cera_schema *s, const cera_keyset *set, cera_text_view name) {
    for (uint32_t i = 0; set->others && i < set->n_names; i++)
        if (same_text(set->names[i], name)) return false;
    if (!set->n_patterns) return set->others;
    cera_buffer b = {0};
    cera_json_write_string(&b, name.text, name.size, false);
    bool match = false;
    for (uint32_t i = 0; !b.failed && i < set->n_patterns && !match; i++)
        match = cera_expr_matches(s->a, set->patterns[i], b.data + 1, b.size - 2);
    cera_buffer_deinit(&b);
    return match != set->others;
}

static void merge_props(cera_schema *s, const cera_obj *x, const cera_obj *y, cera_obj *out) {
    cera_prop *p = grow_list(s, x->props, x->n_props, y->n_props, sizeof *p);
    uint32_t n = x->n_props;
    for (uint32_t j = 0; p && j < y->n_props; j++) {
        uint32_t i = 0;
        while (i < x->n_props && !same_text(p[i].name, y->props[j].name)) i++;
        if (i < x->n_props)
            p[i].goal = cera_goal_and(s, p[i].goal, y->props[j].goal);
        else
            p[n++] = y->props[j];
    }
    out->props = p;
    out->n_props = p ? n : 0;
}

static void merge_required(cera_schema *s, const cera_obj *x, const cera_obj *y, cera_obj *out) {
    cera_text_view *r = grow_list(s, x->required, x->n_required, y->n_required, sizeof *r);
    uint32_t n = x->n_required;
    for (uint32_t j = 0; r && j < y->n_required; j++) {
        uint32_t i = 0;
        while (i < n && !same_text(r[i], y->required[j])) i++;
        if (i == n) r[n++] = y->required[j];
    }
    out->required = r;
    out->n_required = r ? n : 0;
}

static cera_rule_for *join_rules(cera_schema *s, const cera_rule_for *x, uint32_t nx, const cera_rule_for *y, uint32_t ny) {
    cera_rule_for *r = grow_list(s, x, nx, ny, sizeof *r);
    if (r && ny) memcpy(r + nx, y, ny * sizeof *r);
    return r;
}

static const cera_obj *obj_and(cera_schema *s, const cera_obj *x, const cera_obj *y) {
    cera_obj *o = cera_schema_alloc(s, 1, sizeof *o);
    if (!o) return x;
    merge_props(s, x, y, o);
    merge_required(s, x, y, o);
    o->pats = join_rules(s, x->pats, x->n_pats, y->pats, y->n_pats);
    o->n_pats = o->pats ? x->n_pats + y->n_pats : 0;
    o->exists = join_rules(s, x->exists, x->n_exists, y->exists, y->n_exists);
    o->n_exists = o->exists ? x->n_exists + y->n_exists : 0;
    o->min = x->min > y->min ? x->min : y->min;
    o->max = x->max < y->max ? x->max : y->max;
    return o;
}

static cera_goal prefix_goal(const cera_arr *x, uint32_t i) { return i < x->n_prefix ? x->prefix[i] : x->rest; }

static const cera_arr *arr_and(cera_schema *s, const cera_arr *x, const cera_arr *y) {
    cera_arr *r = cera_schema_alloc(s, 1, sizeof *r);
    uint32_t n = x->n_prefix > y->n_prefix ? x->n_prefix : y->n_prefix;
    cera_goal *prefix = cera_schema_alloc(s, n, sizeof *prefix);
    cera_contains *c = grow_list(s, x->contains, x->n_contains, y->n_contains, sizeof *c);
    if (!r || !prefix || !c) return x;
    for (uint32_t i = 0; i < n; i++) prefix[i] = cera_goal_and(s, prefix_goal(x, i), prefix_goal(y, i));
    if (y->n_contains) memcpy(c + x->n_contains, y->contains, y->n_contains * sizeof *c);
    *r = (cera_arr){.n_prefix = n,
                    .prefix = prefix,
                    .rest = cera_goal_and(s, x->rest, y->rest),
                    .n_contains = x->n_contains + y->n_contains,
                    .contains = c,
                    .min = x->min > y->min ? x->min : y->min,
                    .max = x->max < y->max ? x->max : y->max,
                    .unique = x->unique || y->unique};
    return r;
}

/* Whether an object has no instance as far as a short look tells: a required member that nothing can be. */
static bool obj_is_empty(cera_schema *s, const cera_obj *o) {
    if (o->min > o->max || o->n_required > o->max) return true;
    for (uint32_t i = 0; i < o->n_required; i++) {
        cera_goal g = CERA_GOAL_TRUE;
        for (uint32_t j = 0; j < o->n_props; j++)
            if (same_text(o->props[j].name, o->required[i])) g = cera_goal_and(s, g, o->props[j].goal);
        for (uint32_t j = 0; j < o->n_pats; j++)
            if (o->pats[j].goal != CERA_GOAL_TRUE && cera_keyset_has(s, &o->pats[j].set, o->required[i]))
                g = cera_goal_and(s, g, o->pats[j].goal);
        if (cera_goal_surely_empty(s, g)) return true;
    }
    for (uint32_t i = 0; i < o->n_exists; i++)
        if (o->exists[i].goal == CERA_GOAL_FALSE) return true;
    return false;
}

static bool arr_is_empty(cera_schema *s, const cera_arr *x) {
    if (x->min > x->max) return true;
    for (uint64_t i = 0; i < x->min && i <= x->n_prefix; i++)
        if (cera_goal_surely_empty(s, prefix_goal(x, (uint32_t)i))) return true;
    for (uint32_t i = 0; i < x->n_contains; i++) {
        const cera_contains *c = &x->contains[i];
        if (c->min > c->max) return true;
        if (c->min && x->max != CERA_NO_MAX && (c->from >= x->max || x->max - c->from < c->min)) return true;
        if (c->min && c->from >= x->n_prefix && cera_goal_surely_empty(s, cera_goal_and(s, c->goal, x->rest))) return true;
        if (c->min && c->goal == CERA_GOAL_FALSE) return true;
    }
    return false;
}

static bool same_rules(const cera_rule_for *x, const cera_rule_for *y, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const cera_keyset *p = &x[i].set, *q = &y[i].set;
        if (x[i].goal != y[i].goal || p->others != q->others || p->names != q->names || p->n_names != q->n_names ||
            p->patterns != q->patterns)
            return false;
    }
    return true;
}

/* Equal part by part; a miss only costs room. */
static bool same_obj(const cera_obj *x, const cera_obj *y) {
    if (x->min != y->min || x->max != y->max || x->n_props != y->n_props || x->n_required != y->n_required ||
        x->n_pats != y->n_pats || x->n_exists != y->n_exists)
        return false;
    for (uint32_t i = 0; i < x->n_props; i++)
        if (x->props[i].goal != y->props[i].goal || !same_text(x->props[i].name, y->props[i].name)) return false;
    for (uint32_t i = 0; i < x->n_required; i++)
        if (!same_text(x->required[i], y->required[i])) return false;
    return same_rules(x->pats, y->pats, x->n_pats) && same_rules(x->exists, y->exists, x->n_exists);
}

static bool in_list(const cera_obj *const *list, uint32_t n, const cera_obj *o) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == o || same_obj(list[i], o)) return true;
    return false;
}

static void objs_and(cera_schema *s, const cera_nf *x, const cera_nf *y, cera_nf *out) {
    if (too_many(s, (uint64_t)x->n_obj * y->n_obj / 16)) return;
    const cera_obj **list = cera_schema_alloc(s, (size_t)x->n_obj * y->n_obj, sizeof *list);
    bool probe = (uint64_t)x->n_obj * y->n_obj > 1 || s->probes;
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < x->n_obj && cera_schema_ok(s); i++)
        for (uint32_t j = 0; j < y->n_obj; j++) {
            if (x->obj[i] == s->yes.obj[0])
                list[n] = y->obj[j];
            else if (y->obj[j] == s->yes.obj[0] || x->obj[i] == y->obj[j])
                list[n] = x->obj[i];
            else
                list[n] = obj_and(s, x->obj[i], y->obj[j]);
            if (!probe || (!in_list(list, n, list[n]) && !obj_is_empty(s, list[n]))) n++;
        }
    out->obj = list;
    out->n_obj = list ? n : 0;
    too_many(s, n);
}

static void arrs_and(cera_schema *s, const cera_nf *x, const cera_nf *y, cera_nf *out) {
    if (too_many(s, (uint64_t)x->n_arr * y->n_arr / 16)) return;
    const cera_arr **list = cera_schema_alloc(s, (size_t)x->n_arr * y->n_arr, sizeof *list);
    bool probe = (uint64_t)x->n_arr * y->n_arr > 1 || s->probes;
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < x->n_arr && cera_schema_ok(s); i++)
        for (uint32_t j = 0; j < y->n_arr; j++) {
            if (x->arr[i] == s->yes.arr[0])
                list[n] = y->arr[j];
            else if (y->arr[j] == s->yes.arr[0] || x->arr[i] == y->arr[j])
                list[n] = x->arr[i];
            else
                list[n] = arr_and(s, x->arr[i], y->arr[j]);
            if (!probe || !arr_is_empty(s, list[n])) n++;
        }
    out->arr = list;
    out->n_arr = list ? n : 0;
    too_many(s, n);
}

cera_nf cera_nf_and(cera_schema *s, const cera_nf *x, const cera_nf *y) {
    if (x == &s->yes || y == &s->no || x == y) return *y;
    if (y == &s->yes || x == &s->no) return *x;
    cera_nf r = {.null = x->null && y->null, .bools = x->bools & y->bools};
    r.str = x->str == s->all_text ? y->str : y->str == s->all_text ? x->str : cera_expr_and2(s->a, x->str, y->str);
    nums_and(s, x, y, &r);
    objs_and(s, x, y, &r);
    arrs_and(s, x, y, &r);
    return r;
}

static void nums_or(cera_schema *s, const cera_nf *x, const cera_nf *y, cera_nf *out) {
    bool all = x->num == s->yes.num || y->num == s->yes.num;
    if (all || y->n_num == 0 || (x->num == y->num && x->n_num == y->n_num)) {
        out->num = all ? s->yes.num : x->num;
        out->n_num = all ? 1 : x->n_num;
        return;
    }
    cera_num *num = x->n_num + y->n_num > MAX_LIST ? NULL : grow_list(s, x->num, x->n_num, y->n_num, sizeof *num);
    if (!num) {
        cera_schema_fail(s, CERA_ERR_LIMIT, NULL, NULL, "too many numbers");
        return;
    }
    memcpy(num + x->n_num, y->num, y->n_num * sizeof *num);
    out->num = num;
    out->n_num = x->n_num + y->n_num;
}

/* The union of two lists of pointers, each once. */
static const void *const *join_pointers(cera_schema *s, const void *xs, uint32_t n, const void *ys, uint32_t m,
                                        uint32_t *count) {
    const void *const *x = xs, *const *y = ys;
    const void **list = grow_list(s, x, n, m, sizeof *list);
    *count = 0;
    if (!list) return x;
    uint32_t k = n;
    for (uint32_t j = 0; j < m; j++) {
        uint32_t i = 0;
        while (i < n && list[i] != y[j]) i++;
        if (i == n) list[k++] = y[j];
    }
    *count = k;
    return list;
}

cera_nf cera_nf_or(cera_schema *s, const cera_nf *x, const cera_nf *y) {
    if (x == &s->yes || y == &s->no || x == y) return *x;
    if (y == &s->yes || x == &s->no) return *y;
    cera_nf r = {.null = x->null || y->null, .bools = x->bools | y->bools};
    r.str = x->str == s->all_text || y->str == s->all_text ? s->all_text : cera_expr_or2(s->a, x->str, y->str);
    nums_or(s, x, y, &r);
    r.obj = (const cera_obj *const *)join_pointers(s, x->obj, x->n_obj, y->obj, y->n_obj, &r.n_obj);
    r.arr = (const cera_arr *const *)join_pointers(s, x->arr, x->n_arr, y->arr, y->n_arr, &r.n_arr);
    too_many(s, r.n_obj / 4);
    too_many(s, r.n_arr / 4);
    return r;
}

/* ---- complement
 * -------------------------------------------------------------------------------------------------------------------- */

static void push_obj(cera_schema *s, const cera_obj **list, uint32_t *n, cera_obj o) {
    cera_obj *p = cera_schema_alloc(s, 1, sizeof *p);
    if (!p) return;
    *p = o;
    list[(*n)++] = p;
}

/* The ways to be an object and break o. */
static cera_nf obj_break(cera_schema *s, const cera_obj *o) {
    cera_nf r = {0};
    const cera_obj **list =
        cera_schema_alloc(s, (size_t)o->n_required + o->n_props + o->n_pats + o->n_exists + 2, sizeof *list);
    uint32_t n = 0;
    if (!list) return r;
    for (uint32_t i = 0; i < o->n_required; i++) {
        cera_prop *p = cera_schema_alloc(s, 1, sizeof *p);
        if (!p) return r;
        *p = (cera_prop){o->required[i], CERA_GOAL_FALSE};
        push_obj(s, list, &n, (cera_obj){.props = p, .n_props = 1, .max = CERA_NO_MAX});
    }
    for (uint32_t i = 0; i < o->n_props; i++) {
        cera_prop *p = cera_schema_alloc(s, 1, sizeof *p);
        if (!p || o->props[i].goal == CERA_GOAL_TRUE) continue;
        *p = (cera_prop){o->props[i].name, cera_goal_not(s, o->props[i].goal)};
        push_obj(s, list, &n, (cera_obj){.props = p, .n_props = 1, .required = &p->name, .n_required = 1, .max = CERA_NO_MAX});
    }
    if (o->min) push_obj(s, list, &n, (cera_obj){.max = o->min - 1});
    if (o->max != CERA_NO_MAX) push_obj(s, list, &n, (cera_obj){.min = o->max + 1, .max = CERA_NO_MAX});
    for (uint32_t i = 0; i < o->n_pats + o->n_exists; i++) {
        const cera_rule_for *from = i < o->n_pats ? &o->pats[i] : &o->exists[i - o->n_pats];
        cera_rule_for *p = cera_schema_alloc(s, 1, sizeof *p);
        if (!p || (i < o->n_pats && from->goal == CERA_GOAL_TRUE)) continue;
        *p = (cera_rule_for){from->set, cera_goal_not(s, from->goal)};
        if (i < o->n_pats)
            push_obj(s, list, &n, (cera_obj){.exists = p, .n_exists = 1, .max = CERA_NO_MAX});
        else
            push_obj(s, list, &n, (cera_obj){.pats = p, .n_pats = 1, .max = CERA_NO_MAX});
    }
    r.obj = list;
    r.n_obj = n;
    return r;
}

static void push_arr(cera_schema *s, const cera_arr **list, uint32_t *n, cera_arr x) {
    cera_arr *p = cera_schema_alloc(s, 1, sizeof *p);
    if (!p) return;
    *p = x;
    list[(*n)++] = p;
}

static void push_contains(cera_schema *s, const cera_arr **list, uint32_t *n, cera_contains c) {
    cera_contains *p = cera_schema_alloc(s, 1, sizeof *p);
    if (!p) return;
    *p = c;
    push_arr(s, list, n, (cera_arr){.contains = p, .n_contains = 1, .max = CERA_NO_MAX});
}

static cera_nf arr_break(cera_schema *s, const cera_arr *x) {
    cera_nf r = {0};
    const cera_arr **list = cera_schema_alloc(s, (size_t)x->n_prefix + 2 * x->n_contains + 3, sizeof *list);
    uint32_t n = 0;
    if (!list) return r;
    if (x->unique) cera_schema_fail(s, CERA_ERR_UNSUPPORTED, NULL, NULL, "the negation of uniqueItems cannot be enforced");
    if (x->min) push_arr(s, list, &n, (cera_arr){.max = x->min - 1});
    if (x->max != CERA_NO_MAX) push_arr(s, list, &n, (cera_arr){.min = x->max + 1, .max = CERA_NO_MAX});
    for (uint32_t i = 0; i < x->n_prefix; i++) {
        cera_goal *g = cera_schema_alloc(s, i + 1, sizeof *g);
        if (!g || x->prefix[i] == CERA_GOAL_TRUE) continue;
        g[i] = cera_goal_not(s, x->prefix[i]); /* the others are 0, which is TRUE */
        push_arr(s, list, &n, (cera_arr){.prefix = g, .n_prefix = i + 1, .min = i + 1, .max = CERA_NO_MAX});
    }
    if (x->rest != CERA_GOAL_TRUE)
        push_contains(s, list, &n,
                      (cera_contains){.goal = cera_goal_not(s, x->rest), .from = x->n_prefix, .min = 1, .max = CERA_NO_MAX});
    for (uint32_t i = 0; i < x->n_contains; i++) {
        const cera_contains *c = &x->contains[i];
        if (c->min) push_contains(s, list, &n, (cera_contains){.goal = c->goal, .from = c->from, .max = c->min - 1});
        if (c->max != CERA_NO_MAX)
            push_contains(s, list, &n,
                          (cera_contains){.goal = c->goal, .from = c->from, .min = c->max + 1, .max = CERA_NO_MAX});
    }
    r.arr = list;
    r.n_arr = n;
    return r;
}

cera_nf cera_nf_not(cera_schema *s, const cera_nf *x) {
    if (x == &s->yes) return s->no;
    if (x == &s->no) return s->yes;
    cera_nf r = {.null = !x->null, .bools = x->bools ^ 3};
    r.str = x->str == s->all_text ? CERA_EXPR_EMPTY : cera_expr_and2(s->a, s->all_text, cera_expr_not(s->a, x->str));
    r.num = s->yes.num, r.n_num = 1;
    r.obj = s->yes.obj, r.n_obj = 1;
    r.arr = s->yes.arr, r.n_arr = 1;
    for (uint32_t i = 0; i < x->n_num && cera_schema_ok(s); i++) {
        cera_num *list = cera_schema_alloc(s, x->num[i].n_mults + 3, sizeof *list);
        if (!list) break;
        cera_nf part = {.num = list, .n_num = num_break(s, &x->num[i], list)}, before = r;
        nums_and(s, &before, &part, &r);
    }
    for (uint32_t i = 0; i < x->n_obj && cera_schema_ok(s); i++) {
        cera_nf part = obj_break(s, x->obj[i]), before = r;
        objs_and(s, &before, &part, &r);
    }
    for (uint32_t i = 0; i < x->n_arr && cera_schema_ok(s); i++) {
        cera_nf part = arr_break(s, x->arr[i]), before = r;
        arrs_and(s, &before, &part, &r);
    }
    return r;
}

bool cera_nf_is_empty(cera_schema *s, const cera_nf *x) {
    if (x->null || x->bools || x->n_num || x->str != CERA_EXPR_EMPTY) return false;
    for (uint32_t i = 0; i < x->n_obj; i++)
        if (!obj_is_empty(s, x->obj[i])) return false;
    for (uint32_t i = 0; i < x->n_arr; i++)
        if (!arr_is_empty(s, x->arr[i])) return false;
    return true;
}
