/* schema_keywords.c: one schema to its normal form: the constraints of its own keywords, then the boolean combinations of
 * others. Keywords that no draft asserts are annotations and say nothing; asserted ones that cannot be enforced are refused
 * here. Does not own: objects' keywords (schema_object.c), references (schema_ref.c), formats (schema_format.c). */
#include "sample/schema_int.h"

#include <string.h>
#include "sample/regex_int.h"

enum { MAX_SCHEMA_DEPTH = 400 };

static const cera_json *get(const cera_json *node, const char *keyword) { return cera_json_get(node, keyword); }

bool cera_schema_count(cera_schema *s, const cera_json *node, const char *keyword, uint64_t *out) {
    const cera_json *v = get(node, keyword);
    int64_t i;
    if (!v) return false;
    if (!cera_json_i64(v, &i) || i < 0)
        return cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "must be a whole number, zero or above"), false;
    *out = (uint64_t)i;
    return true;
}

/* ---- types, numbers, strings
 * --------------------------------------------------------------------------------------------------- */

static void allow_type(cera_schema *s, const cera_json *node, const cera_json *name, const cera_nf *base, cera_nf *out) {
    if (cera_json_is_text(name, "null"))
        out->null = base->null;
    else if (cera_json_is_text(name, "boolean"))
        out->bools = base->bools;
    else if (cera_json_is_text(name, "string"))
        out->str = base->str;
    else if (cera_json_is_text(name, "array"))
        out->arr = base->arr, out->n_arr = base->n_arr;
    else if (cera_json_is_text(name, "object"))
        out->obj = base->obj, out->n_obj = base->n_obj;
    else if (cera_json_is_text(name, "number"))
        out->num = base->num, out->n_num = base->n_num;
    else if (cera_json_is_text(name, "integer")) {
        if (out->n_num) return; /* number says as much and more */
        cera_num *n = cera_schema_alloc(s, base->n_num, sizeof *n);
        if (!n) return;
        memcpy(n, base->num, base->n_num * sizeof *n);
        for (uint32_t i = 0; i < base->n_num; i++) n[i].integer = 1;
        out->num = n;
        out->n_num = base->n_num;
    } else
        cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, "type", "no JSON type of this name");
}

static void keep_types(cera_schema *s, const cera_json *node, cera_nf *r) {
    const cera_json *type = get(node, "type");
    cera_nf out = {0};
    if (!type) return;
    if (type->kind == CERA_JSON_STRING)
        allow_type(s, node, type, r, &out);
    else if (type->kind != CERA_JSON_ARRAY)
        cera_schema_fail(s, CERA_ERR_FORMAT, node, "type", "must be a string or an array");
    else {
        for (uint32_t i = 0; i < type->n; i++) /* number before integer, which adds nothing to it */
            if (cera_json_is_text(&type->items[i], "number")) allow_type(s, node, &type->items[i], r, &out);
        for (uint32_t i = 0; i < type->n; i++) allow_type(s, node, &type->items[i], r, &out);
    }
    *r = out;
}

static bool number_at(cera_schema *s, const cera_json *node, const char *keyword, cera_decimal *out) {
    const cera_json *v = get(node, keyword);
    if (!v) return false;
    if (v->kind != CERA_JSON_NUMBER) return cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "must be a number"), false;
    return cera_decimal_parse(s, v->text, out);
}

static void bound_at(cera_schema *s, const cera_json *node, bool low, cera_num *n) {
    const char *plain = low ? "minimum" : "maximum", *open = low ? "exclusiveMinimum" : "exclusiveMaximum";
    const cera_json *x = get(node, open);
    cera_decimal d;
    bool has = false, is_open = false,
         flag = x && (x->kind == CERA_JSON_TRUE || x->kind == CERA_JSON_FALSE); /* draft 4's form */
    if (number_at(s, node, plain, &d)) has = true, is_open = flag && x->kind == CERA_JSON_TRUE;
    cera_decimal o;
    if (x && !flag && number_at(s, node, open, &o)) {
        int c = has ? cera_decimal_compare(&o, &d) : 0;
        if (!has || (low ? c >= 0 : c <= 0)) d = o, is_open = true;
        has = true;
    }
    if (!has) return;
    if (low)
        n->has_lo = true, n->lo = d, n->lo_open = is_open;
    else
        n->has_hi = true, n->hi = d, n->hi_open = is_open;
}

static void multiple_at(cera_schema *s, const cera_json *node, cera_num *n) {
    cera_decimal d;
    if (!number_at(s, node, "multipleOf", &d)) return;
    uint64_t divisor = 0;
    int64_t scale = (int64_t)d.n - d.exp;
    for (uint32_t i = 0; i < d.n && divisor < UINT32_MAX; i++) divisor = divisor * 10 + (uint64_t)(d.digits[i] - '0');
    for (; scale < 0 && divisor < UINT32_MAX && divisor; scale++) divisor *= 10;
    if (!d.n || d.negative)
        cera_schema_fail(s, CERA_ERR_FORMAT, node, "multipleOf", "must be above zero");
    else if (divisor >= UINT32_MAX / 10 || scale > 30)
        cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, "multipleOf", "has too many digits to be enforced");
    if (s->status) return;
    cera_mult *m = cera_schema_alloc(s, 1, sizeof *m);
    if (!m) return;
    *m = (cera_mult){.divisor = (uint32_t)divisor, .scale = (uint32_t)scale};
    n->mults = m;
    n->n_mults = 1;
}

static void read_number(cera_schema *s, const cera_json *node, cera_nf *r) {
    cera_num n = {0};
    bound_at(s, node, true, &n);
    bound_at(s, node, false, &n);
    multiple_at(s, node, &n);
    if (!n.has_lo && !n.has_hi && !n.n_mults) return;
    cera_num *p = cera_schema_alloc(s, 1, sizeof *p);
    if (!p) return;
    *p = n;
    r->num = p;
    r->n_num = 1;
    if (n.has_lo && n.has_hi && cera_decimal_compare(&n.lo, &n.hi) > 0) r->n_num = 0;
}

static cera_expr pattern_at(cera_schema *s, const cera_json *node, const cera_json *v) {
    cera_expr x = CERA_EXPR_EMPTY;
    cera_error e = {0};
    if (v->kind != CERA_JSON_STRING)
        cera_schema_fail(s, CERA_ERR_FORMAT, node, "pattern", "must be a string");
    else if (cera_regex_compile(s->a, v->text.text, v->text.size, false, &x, &e) != CERA_OK)
        cera_schema_fail(s, e.code, node, "pattern", e.message);
    return x;
}

static void read_string(cera_schema *s, const cera_json *node, cera_nf *r) {
    uint64_t lo = 0, hi = CERA_REP_INF;
    const cera_json *pattern = get(node, "pattern"), *format = get(node, "format");
    bool bounded = cera_schema_count(s, node, "minLength", &lo);
    bounded = cera_schema_count(s, node, "maxLength", &hi) || bounded;
    if (lo >= CERA_REP_INF) cera_schema_fail(s, CERA_ERR_LIMIT, node, "minLength", "is above 2^32");
    if (hi > CERA_REP_INF) hi = CERA_REP_INF;
    if (bounded) r->str = lo > hi ? CERA_EXPR_EMPTY : cera_expr_rep(s->a, cera_expr_any_char(s->a), (uint32_t)lo, (uint32_t)hi);
    if (pattern) {
        cera_expr x = pattern_at(s, node, pattern);
        uint32_t least, most;
        bool implied = cera_expr_length(s->a, x, &least, &most) && least >= lo && most <= hi; /* the pattern says as much */
        r->str = r->str == s->all_text || (implied && !s->status) ? x : cera_expr_and2(s->a, r->str, x);
    }
    if (!format || format->kind != CERA_JSON_STRING) return;
    bool known = false, supported = false;
    cera_expr x = cera_schema_format(s, format->text, &known, &supported);
    if (!known) return;
    if (!supported)
        cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, "format", "this format cannot be enforced");
    else
        r->str = r->str == s->all_text ? x : cera_expr_and2(s->a, r->str, x);
}

/* ---- arrays
 * ----------------------------------------------------------------------------------------------------------------------- */

static void read_prefix(cera_schema *s, const cera_json *node, const char *keyword, const cera_json *list, cera_arr *x) {
    if (list->kind != CERA_JSON_ARRAY) {
        cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "must be an array");
        return;
    }
    cera_goal *g = cera_schema_alloc(s, list->n, sizeof *g);
    if (!g) return;
    for (uint32_t i = 0; i < list->n; i++) g[i] = cera_goal_schema(s, &list->items[i]);
    x->prefix = g;
    x->n_prefix = list->n;
}

static void read_items(cera_schema *s, const cera_json *node, cera_arr *x) {
    const cera_json *items = get(node, "items"), *prefix = get(node, "prefixItems"), *more = get(node, "additionalItems");
    bool old = s->draft && s->draft <= CERA_DRAFT_2019;
    if (prefix && !old) read_prefix(s, node, "prefixItems", prefix, x);
    if (!items) return;
    if (items->kind != CERA_JSON_ARRAY) {
        x->rest = cera_goal_schema(s, items);
        return;
    }
    if (s->draft == CERA_DRAFT_2020) cera_schema_fail(s, CERA_ERR_FORMAT, node, "items", "must be a schema in draft 2020-12");
    if (x->n_prefix) cera_schema_fail(s, CERA_ERR_FORMAT, node, "items", "is an array beside prefixItems");
    read_prefix(s, node, "items", items, x);
    if (more) x->rest = cera_goal_schema(s, more);
}

static void read_contains(cera_schema *s, const cera_json *node, cera_arr *x) {
    const cera_json *contains = get(node, "contains");
    if (!contains || s->draft == CERA_DRAFT_4) return;
    cera_contains *c = cera_schema_alloc(s, 1, sizeof *c);
    if (!c) return;
    *c = (cera_contains){.goal = cera_goal_schema(s, contains), .min = 1, .max = CERA_NO_MAX};
    if (!s->draft || s->draft >= CERA_DRAFT_2019) {
        cera_schema_count(s, node, "minContains", &c->min);
        cera_schema_count(s, node, "maxContains", &c->max);
    }
    if (c->min == 0 && c->max == CERA_NO_MAX) return;
    if (c->min > UINT32_MAX / 2 || (c->max != CERA_NO_MAX && c->max > UINT32_MAX / 2))
        cera_schema_fail(s, CERA_ERR_LIMIT, node, "contains", "counts above 2^31");
    x->contains = c;
    x->n_contains = 1;
}

static void read_array(cera_schema *s, const cera_json *node, cera_nf *r) {
    cera_arr x = {.rest = CERA_GOAL_TRUE, .max = CERA_NO_MAX};
    const cera_json *unique = get(node, "uniqueItems");
    read_items(s, node, &x);
    read_contains(s, node, &x);
    cera_schema_count(s, node, "minItems", &x.min);
    cera_schema_count(s, node, "maxItems", &x.max);
    x.unique = unique && unique->kind == CERA_JSON_TRUE;
    if (!x.n_prefix && !x.n_contains && x.rest == CERA_GOAL_TRUE && !x.min && x.max == CERA_NO_MAX && !x.unique) return;
    cera_arr *p = cera_schema_alloc(s, 1, sizeof *p);
    const cera_arr **list = cera_schema_alloc(s, 1, sizeof *list);
    if (!p || !list) return;
    *p = x;
    list[0] = p;
    r->arr = list;
    r->n_arr = x.min <= x.max;
}

/* ---- constants
 * ------------------------------------------------------------------------------------------------------------------- */

static cera_nf const_array(cera_schema *s, const cera_json *v) {
    cera_nf r = s->no;
    cera_goal *g = cera_schema_alloc(s, v->n, sizeof *g);
    cera_arr *x = cera_schema_alloc(s, 1, sizeof *x);
    const cera_arr **list = cera_schema_alloc(s, 1, sizeof *list);
    if (!g || !x || !list) return r;
    for (uint32_t i = 0; i < v->n; i++) g[i] = cera_goal_const(s, &v->items[i]);
    *x = (cera_arr){.n_prefix = v->n, .prefix = g, .rest = CERA_GOAL_FALSE, .min = v->n, .max = v->n};
    list[0] = x;
    r.arr = list;
    r.n_arr = 1;
    return r;
}

static cera_nf const_object(cera_schema *s, const cera_json *v) {
    cera_nf r = s->no;
    cera_prop *p = cera_schema_alloc(s, v->n, sizeof *p);
    cera_rule_for *others = cera_schema_alloc(s, 1, sizeof *others);
    if (!p || !others) return r;
    uint32_t n = 0;
    cera_text_view *names = cera_schema_alloc(s, v->n, sizeof *names);
    for (uint32_t i = 0; names && i < v->n; i++) {
        const cera_json *last = cera_json_get_view(v, v->keys[i].text, v->keys[i].size);
        if (last != &v->items[i]) continue; /* a name that comes again */
        names[n] = v->keys[i];
        p[n++] = (cera_prop){v->keys[i], cera_goal_const(s, &v->items[i])};
    }
    *others = (cera_rule_for){{.others = true, .names = names, .n_names = n}, CERA_GOAL_FALSE};
    cera_nf o = cera_nf_object(
        s, (cera_obj){
               .props = p, .n_props = n, .required = names, .n_required = n, .pats = others, .n_pats = 1, .max = CERA_NO_MAX});
    r.obj = o.obj;
    r.n_obj = o.n_obj;
    return r;
}

static bool const_number(cera_schema *s, const cera_json *v, cera_num *n) {
    *n = (cera_num){.has_lo = true, .has_hi = true};
    if (!cera_decimal_parse(s, v->text, &n->lo)) return false;
    n->hi = n->lo;
    return true;
}

const cera_nf *cera_const_nf(cera_schema *s, const cera_json *v) {
    cera_nf r = s->no;
    switch (v->kind) {
    case CERA_JSON_NULL: r.null = true; break;
    case CERA_JSON_FALSE: r.bools = 1; break;
    case CERA_JSON_TRUE: r.bools = 2; break;
    case CERA_JSON_NUMBER: {
        cera_num *n = cera_schema_alloc(s, 1, sizeof *n);
        if (n && const_number(s, v, n)) r.num = n, r.n_num = 1;
        break;
    }
    case CERA_JSON_STRING: r.str = cera_expr_literal(s->a, v->text.text, v->text.size); break;
    case CERA_JSON_ARRAY: r = const_array(s, v); break;
    case CERA_JSON_OBJECT: r = const_object(s, v); break;
    }
    return cera_nf_keep(s, r);
}

/* Strings and numbers of an enum are joined at once: there may be thousands. */
static cera_nf enum_nf(cera_schema *s, const cera_json *list) {
    cera_nf r = s->no;
    cera_expr *str = cera_schema_alloc(s, list->n, sizeof *str);
    cera_num *num = cera_schema_alloc(s, list->n, sizeof *num);
    uint32_t n_str = 0, n_num = 0;
    if (!str || !num) return r;
    for (uint32_t i = 0; i < list->n && !s->status; i++) {
        const cera_json *v = &list->items[i];
        if (v->kind == CERA_JSON_STRING)
            str[n_str++] = cera_expr_literal(s->a, v->text.text, v->text.size);
        else if (v->kind == CERA_JSON_NUMBER)
            n_num += const_number(s, v, &num[n_num]);
        else
            r = cera_nf_or(s, &r, cera_const_nf(s, v));
    }
    r.str = cera_expr_or(s->a, str, n_str);
    r.num = num;
    r.n_num = n_num;
    return r;
}

/* ---- combinations
 * -------------------------------------------------------------------------------------------------------------------- */

static const cera_nf *sub(cera_schema *s, const cera_json *node) {
    const cera_nf *r = cera_goal_nf(s, cera_goal_schema(s, node));
    return r ? r : &s->no;
}

static const cera_json *list_at(cera_schema *s, const cera_json *node, const char *keyword) {
    const cera_json *v = get(node, keyword);
    if (v && (v->kind != CERA_JSON_ARRAY || !v->n))
        cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "must be an array with an element");
    return s->status ? NULL : v;
}

/* Exactly one: x1 without x2.. or x2 without x1, x3.. ; what a branch does not share with another need not be taken away. */
static cera_nf one_of(cera_schema *s, const cera_json *list) {
    cera_nf r = s->no;
    for (uint32_t i = 0; i < list->n && !s->status; i++) {
        cera_nf x = *sub(s, &list->items[i]);
        for (uint32_t j = 0; j < list->n && !s->status; j++) {
            if (i == j) continue;
            const cera_nf *y = sub(s, &list->items[j]);
            s->probes++;
            cera_nf both = cera_nf_and(s, &x, y);
            bool apart = !s->status && cera_nf_is_empty(s, &both);
            if (!apart && !s->status) {
                cera_nf not_y = cera_nf_not(s, y);
                x = cera_nf_and(s, &x, &not_y);
            }
            s->probes--;
        }
        r = cera_nf_or(s, &r, &x);
    }
    return r;
}

static void combine(cera_schema *s, const cera_json *node, cera_nf *r) {
    const cera_json *all = list_at(s, node, "allOf"), *any = list_at(s, node, "anyOf"), *one = list_at(s, node, "oneOf"),
                    *no = get(node, "not");
    for (uint32_t i = 0; all && i < all->n && !s->status; i++) *r = cera_nf_and(s, r, sub(s, &all->items[i]));
    if (any) {
        cera_nf x = s->no;
        for (uint32_t i = 0; i < any->n && !s->status; i++) x = cera_nf_or(s, &x, sub(s, &any->items[i]));
        *r = cera_nf_and(s, r, &x);
    }
    if (one) {
        cera_nf x = one_of(s, one);
        *r = cera_nf_and(s, r, &x);
    }
    if (no) {
        cera_nf x = cera_nf_not(s, sub(s, no));
        *r = cera_nf_and(s, r, &x);
    }
}

static void condition(cera_schema *s, const cera_json *node, cera_nf *r) {
    const cera_json *test = get(node, "if"), *then = get(node, "then"), *other = get(node, "else");
    if (!test || (!then && !other) || (s->draft && s->draft < CERA_DRAFT_7)) return;
    const cera_nf *x = sub(s, test);
    cera_nf not_x = cera_nf_not(s, x);
    cera_nf yes = then ? cera_nf_and(s, x, sub(s, then)) : *x;
    cera_nf no = other ? cera_nf_and(s, &not_x, sub(s, other)) : not_x;
    cera_nf both = cera_nf_or(s, &yes, &no);
    *r = cera_nf_and(s, r, &both);
}

static void refuse(cera_schema *s, const cera_json *node) {
    static const char *const never[] = {"$recursiveRef", "extends", "disallow", "divisibleBy"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (get(node, never[i]) && (i == 0 || !s->draft))
            cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, never[i], "this keyword cannot be enforced");
    static const char *const unevaluated[] = {"unevaluatedProperties", "unevaluatedItems"};
    bool asserted = !s->draft || s->draft >= CERA_DRAFT_2019;
    for (size_t i = 0; i < 2 && asserted; i++) {
        const cera_json *v = get(node, unevaluated[i]);
        if (v && v->kind != CERA_JSON_TRUE && !(v->kind == CERA_JSON_OBJECT && !v->n))
            cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, unevaluated[i], "this keyword cannot be enforced");
    }
}

/* The keywords of this schema alone. */
static cera_nf own_keywords(cera_schema *s, const cera_json *node) {
    cera_nf r = s->yes;
    refuse(s, node);
    read_number(s, node, &r);
    read_string(s, node, &r);
    read_array(s, node, &r);
    cera_obj o = cera_schema_object(s, node);
    if (o.n_props || o.n_pats || o.n_required || o.n_exists || o.min || o.max != CERA_NO_MAX) {
        cera_nf x = cera_nf_object(s, o);
        r.obj = x.obj;
        r.n_obj = x.n_obj;
    }
    keep_types(s, node, &r);
    const cera_json *list = get(node, "enum"), *value = s->draft == CERA_DRAFT_4 ? NULL : get(node, "const");
    if (list && list->kind != CERA_JSON_ARRAY)
        cera_schema_fail(s, CERA_ERR_FORMAT, node, "enum", "must be an array");
    else if (list) {
        cera_nf x = enum_nf(s, list);
        r = cera_nf_and(s, &r, &x);
    }
    if (value) r = cera_nf_and(s, &r, cera_const_nf(s, value));
    return r;
}

/* A member that is there asks for others, or for a schema of the whole object. */
static void depend(cera_schema *s, const cera_json *node, const char *keyword, cera_nf *r) {
    const cera_json *map = get(node, keyword);
    for (uint32_t i = 0; map && map->kind == CERA_JSON_OBJECT && i < map->n && !s->status; i++) {
        const cera_json *v = &map->items[i];
        cera_prop *gone = cera_schema_alloc(s, 1, sizeof *gone);
        cera_text_view *names = cera_schema_alloc(s, v->kind == CERA_JSON_ARRAY ? v->n + 1 : 1, sizeof *names);
        if (!gone || !names) return;
        uint32_t n = 0;
        *gone = (cera_prop){map->keys[i], CERA_GOAL_FALSE};
        names[n++] = map->keys[i];
        for (uint32_t k = 0; v->kind == CERA_JSON_ARRAY && k < v->n; k++) {
            if (v->items[k].kind != CERA_JSON_STRING)
                cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "names must be strings");
            names[n++] = v->items[k].text;
        }
        cera_nf absent = cera_nf_object(s, (cera_obj){.props = gone, .n_props = 1, .max = CERA_NO_MAX});
        cera_nf with = s->no, present = cera_nf_object(s, (cera_obj){.required = names, .n_required = n, .max = CERA_NO_MAX});
        with.obj = present.obj;
        with.n_obj = present.n_obj;
        if (v->kind != CERA_JSON_ARRAY) with = cera_nf_and(s, &with, sub(s, v));
        cera_nf both = cera_nf_or(s, &absent, &with);
        *r = cera_nf_and(s, r, &both);
    }
}

static bool asserts_beside_ref(const cera_json *node) {
    static const char *const quiet[] = {"$ref",        "$id",       "id",         "$schema",     "$comment", "title",
                                        "description", "default",   "examples",   "definitions", "$defs",    "$anchor",
                                        "readOnly",    "writeOnly", "deprecated", "example"};
    for (uint32_t i = 0; i < node->n; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof quiet / sizeof *quiet && !known; k++)
            known = strlen(quiet[k]) == node->keys[i].size && !memcmp(quiet[k], node->keys[i].text, node->keys[i].size);
        if (!known && node->keys[i].size && node->keys[i].text[0] != 'x') return true;
    }
    return false;
}

static bool follow(cera_schema *s, const cera_json *node, const char *keyword, cera_nf *r) {
    const cera_json *ref = get(node, keyword);
    if (!ref) return false;
    const cera_json *target = cera_schema_resolve(s, node, ref, keyword);
    if (target) *r = cera_nf_and(s, r, sub(s, target));
    return true;
}

static cera_nf read_schema(cera_schema *s, const cera_json *node) {
    cera_nf r = s->yes;
    const cera_json *ref = get(node, "$ref");
    bool old = s->draft && s->draft <= CERA_DRAFT_7;
    if (ref && (old || (!s->draft && !asserts_beside_ref(node)))) return follow(s, node, "$ref", &r), r;
    if (ref && !s->draft)
        return cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, "$ref", "drafts differ on keywords beside $ref: state $schema"),
               r;
    if (!old) follow(s, node, "$ref", &r);
    if (!old) follow(s, node, "$dynamicRef", &r);
    cera_nf own = own_keywords(s, node);
    r = cera_nf_and(s, &r, &own);
    combine(s, node, &r);
    condition(s, node, &r);
    if (s->draft != CERA_DRAFT_2020) depend(s, node, "dependencies", &r);
    if (!old) depend(s, node, "dependentRequired", &r);
    if (!old) depend(s, node, "dependentSchemas", &r);
    return r;
}

const cera_nf *cera_schema_nf(cera_schema *s, const cera_json *node) {
    const cera_json *outer = s->here;
    cera_nf r = s->no;
    if (node->kind == CERA_JSON_TRUE) return &s->yes;
    if (node->kind == CERA_JSON_FALSE) return &s->no;
    if (node->kind != CERA_JSON_OBJECT)
        return cera_schema_fail(s, CERA_ERR_FORMAT, node, NULL, "a schema must be an object or a boolean"), &s->no;
    if (node->n == 0) return &s->yes;
    s->here = node;
    if (++s->depth > MAX_SCHEMA_DEPTH)
        cera_schema_fail(s, CERA_ERR_LIMIT, node, NULL, "schemas refer to each other too deeply");
    else
        r = read_schema(s, node);
    s->depth--;
    s->here = outer;
    return cera_nf_keep(s, r);
}
