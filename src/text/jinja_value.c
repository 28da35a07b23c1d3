/* jinja_value.c: values as Python has them: truth, equality, order, hashing, lists, dictionaries, iteration, and making them
 * from JSON. Also raising errors and the render's budgets. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/hash.h"
#include "base/utf8.h"
#include "text/jinja_int.h"

/* ---- errors and budgets ----------------------------------------------------------------------------------------- */

bool cera_jinja_raise(cera_jrender *r, const char *type, const char *format, ...) {
    char message[768];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (r->status == CERA_OK) r->status = cera_fail(r->e, CERA_ERR_FORMAT, "template line %u: %s: %s", r->line, type, message);
    return false;
}

bool cera_jinja_limit(cera_jrender *r, const char *format, ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (r->status == CERA_OK) r->status = cera_fail(r->e, CERA_ERR_LIMIT, "template line %u: limit: %s", r->line, message);
    return false;
}

bool cera_jinja_no_memory(cera_jrender *r) { return cera_jinja_limit(r, "the render's memory is used up"); }

bool cera_jinja_charge(cera_jrender *r, uint64_t steps) {
    if (steps >= (uint64_t)r->steps_left) return cera_jinja_limit(r, "the render's steps are used up");
    r->steps_left -= (int64_t)steps;
    if (r->steps_left >= r->next_clock_check) return true;
    enum { STEPS_BETWEEN_CHECKS = 2000 };
    r->next_clock_check = r->steps_left - STEPS_BETWEEN_CHECKS;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < r->deadline.tv_sec || (now.tv_sec == r->deadline.tv_sec && now.tv_nsec < r->deadline.tv_nsec)) return true;
    return cera_jinja_limit(r, "the render's time is used up");
}

bool cera_jinja_enter(cera_jrender *r) {
    if (r->depth >= CERA_JINJA_MAX_RENDER_DEPTH)
        return cera_jinja_limit(r, "maximum recursion depth %d exceeded", CERA_JINJA_MAX_RENDER_DEPTH);
    r->depth++;
    return cera_jinja_charge(r, 1);
}

/* ---- undefined -------------------------------------------------------------------------------------------------- */

static bool make_undefined(cera_jrender *r, cera_jundef u, cera_jval *out) {
    cera_jundef *p = cera_jinja_alloc(&r->mem, 1, sizeof *p);
    if (!p) return cera_jinja_no_memory(r);
    *p = u;
    *out = (cera_jval){.kind = J_UNDEFINED, .u.undef = p};
    return true;
}

bool cera_jinja_undefined(cera_jrender *r, const cera_jval *object, const cera_jval *name, cera_jval *out) {
    return make_undefined(r, (cera_jundef){.name = *name, .object = object ? cera_jinja_type_name(object) : NULL}, out);
}

bool cera_jinja_undefined_hint(cera_jrender *r, const char *hint, cera_jval *out) {
    return make_undefined(r, (cera_jundef){.hint = hint}, out);
}

bool cera_jinja_undefined_error(cera_jrender *r, const cera_jval *v) {
    const cera_jundef *u = v->u.undef;
    const cera_jval *name = &u->name;
    bool is_text = name->kind == J_STR;
    int size = is_text ? (int)(name->n < 200 ? name->n : 200) : 0;
    const char *text = is_text ? cera_jinja_chars(name) : "";
    static const char type[] = "UndefinedError";
    if (u->hint) return cera_jinja_raise(r, type, "%s", u->hint);
    if (u->unsafe)
        return cera_jinja_raise(r, "SecurityError", "access to attribute '%.*s' of '%s' object is unsafe.", size, text,
                                u->object);
    if (!u->object) return cera_jinja_raise(r, type, "'%.*s' is undefined", size, text);
    bool none = !strcmp(u->object, "NoneType");
    if (is_text)
        return cera_jinja_raise(r, type, none ? "'None%s' has no attribute '%.*s'" : "'%s object' has no attribute '%.*s'",
                                none ? "" : u->object, size, text);
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_repr(r, b, name)) return false;
    return cera_jinja_raise(r, type, "%s%s has no element %.*s", none ? "None" : u->object, none ? "" : " object",
                            (int)(b->used < 200 ? b->used : 200), b->used ? b->data : "");
}

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

const char *cera_jinja_type_name(const cera_jval *v) {
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    switch (v->kind) {
    case J_NONE: return "NoneType";
    case J_BOOL: return "bool";
    case J_INT:
    case J_BIGINT: return "int";
    case J_FLOAT: return "float";
    case J_STR: return v->flags & J_MARKUP ? "Markup" : "str";
    case J_LIST: return "list";
    case J_TUPLE: return "tuple";
    case J_DICT: return "dict";
    case J_VIEW: return views[v->sub];
    case J_RANGE: return "range";
    case J_ITER: return "generator";
    case J_NAMESPACE: return "Namespace";
    case J_LOOP: return "LoopContext";
    case J_MACRO: return "Macro";
    case J_BUILTIN: return "function";
    case J_METHOD: return "builtin_function_or_method";
    case J_CYCLER: return "Cycler";
    case J_JOINER: return "Joiner";
    default: return "Undefined";
    }
}

bool cera_jinja_truth(const cera_jval *v) {
    switch (v->kind) {
    case J_MISSING:
    case J_UNDEFINED:
    case J_NONE: return false;
    case J_BOOL: return v->u.b;
    case J_INT: return v->u.i != 0;
    case J_FLOAT: return v->u.f != 0;
    case J_STR: return v->n != 0;
    case J_LIST:
    case J_TUPLE: return v->u.list->n != 0;
    case J_DICT:
    case J_VIEW: return v->u.dict->n != 0;
    case J_RANGE: return v->u.range->n != 0;
    default: return true;
    }
}

bool cera_jinja_number(const cera_jval *v, double *out) {
    if (v->kind == J_BOOL) return *out = v->u.b, true;
    if (v->kind == J_INT) return *out = (double)v->u.i, true;
    if (v->kind == J_FLOAT) return *out = v->u.f, true;
    if (v->kind == J_BIGINT) { /* digits, perhaps after a sign */
        char text[400];
        size_t n = v->n < sizeof text - 1 ? v->n : sizeof text - 1;
        memcpy(text, cera_jinja_chars(v), n);
        text[n] = 0;
        return *out = strtod(text, NULL), true;
    }
    return false;
}

bool cera_jinja_as_int(const cera_jval *v, int64_t *out) {
    if (v->kind == J_BOOL) return *out = v->u.b, true;
    if (v->kind == J_INT) return *out = v->u.i, true;
    return false;
}

/* ---- equality and order ----------------------------------------------------------------------------------------- */

static bool is_number(const cera_jval *v) {
    return v->kind == J_BOOL || v->kind == J_INT || v->kind == J_FLOAT || v->kind == J_BIGINT;
}

static bool equal_numbers(const cera_jval *a, const cera_jval *b) {
    int64_t x, y;
    if (cera_jinja_as_int(a, &x) && cera_jinja_as_int(b, &y)) return x == y;
    if (a->kind == J_BIGINT && b->kind == J_BIGINT)
        return a->n == b->n && !memcmp(cera_jinja_chars(a), cera_jinja_chars(b), a->n);
    double f = 0, g = 0;
    cera_jinja_number(a, &f);
    cera_jinja_number(b, &g);
    return f == g;
}

static bool equal_lists(cera_jrender *r, const cera_jlist *a, const cera_jlist *b, bool *out) {
    *out = a->n == b->n;
    for (uint32_t i = 0; *out && i < a->n; i++)
        if (!cera_jinja_equal(r, &a->items[i], &b->items[i], out)) return false;
    return true;
}

static bool equal_dicts(cera_jrender *r, const cera_jdict *a, const cera_jdict *b, bool *out) {
    *out = a->n == b->n;
    for (uint32_t i = 0; *out && i < a->n; i++) {
        cera_jval *other;
        if (!cera_jinja_dict_find(r, b, &a->keys[i], &other)) return false;
        *out = other != NULL;
        if (other && !cera_jinja_equal(r, &a->values[i], other, out)) return false;
    }
    return true;
}

static bool equal_inner(cera_jrender *r, const cera_jval *a, const cera_jval *b, bool *out) {
    if (is_number(a) && is_number(b)) return *out = equal_numbers(a, b), true;
    if (a->kind != b->kind) return *out = false, true;
    switch (a->kind) {
    case J_NONE:
    case J_UNDEFINED: return *out = true, true;
    case J_STR:
        *out = a->n == b->n && !memcmp(cera_jinja_chars(a), cera_jinja_chars(b), a->n);
        return cera_jinja_charge(r, a->n / 64);
    case J_LIST:
    case J_TUPLE: return equal_lists(r, a->u.list, b->u.list, out);
    case J_DICT: return equal_dicts(r, a->u.dict, b->u.dict, out);
    case J_RANGE: {
        const cera_jrange *x = a->u.range, *y = b->u.range;
        *out = x->n == y->n && (x->n == 0 || (x->start == y->start && (x->n == 1 || x->step == y->step)));
        return true;
    }
    case J_METHOD: return *out = a->u.method->builtin == b->u.method->builtin && a->u.method == b->u.method, true;
    default: return *out = a->u.list == b->u.list, true;
    }
}

bool cera_jinja_equal(cera_jrender *r, const cera_jval *a, const cera_jval *b, bool *out) {
    if (!cera_jinja_enter(r)) return false;
    bool ok = equal_inner(r, a, b, out);
    r->depth--;
    return ok;
}

static int order_bytes(const cera_jval *a, const cera_jval *b) {
    int k = memcmp(cera_jinja_chars(a), cera_jinja_chars(b), a->n < b->n ? a->n : b->n);
    return k ? (k < 0 ? -1 : 1) : a->n < b->n ? -1 : a->n > b->n;
}

static bool order_lists(cera_jrender *r, const char *op, const cera_jlist *a, const cera_jlist *b, int *out) {
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        if (!cera_jinja_equal(r, &a->items[i], &b->items[i], &same)) return false;
        if (!same) return cera_jinja_order(r, op, &a->items[i], &b->items[i], out);
    }
    *out = a->n < b->n ? -1 : a->n > b->n;
    return true;
}

static bool order_inner(cera_jrender *r, const char *op, const cera_jval *a, const cera_jval *b, int *out) {
    int64_t x, y;
    double f, g;
    if (a->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, a);
    if (b->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, b);
    if (cera_jinja_as_int(a, &x) && cera_jinja_as_int(b, &y)) return *out = x < y ? -1 : x > y, true;
    if (cera_jinja_number(a, &f) && cera_jinja_number(b, &g)) return *out = f < g ? -1 : f > g ? 1 : f == g ? 0 : 2, true;
    if (a->kind == J_STR && b->kind == J_STR) return *out = order_bytes(a, b), cera_jinja_charge(r, a->n / 64);
    if (a->kind == b->kind && (a->kind == J_LIST || a->kind == J_TUPLE)) return order_lists(r, op, a->u.list, b->u.list, out);
    return cera_jinja_raise(r, "TypeError", "'%s' not supported between instances of '%s' and '%s'", op,
                            cera_jinja_type_name(a), cera_jinja_type_name(b));
}

bool cera_jinja_order(cera_jrender *r, const char *op, const cera_jval *a, const cera_jval *b, int *out) {
    if (!cera_jinja_enter(r)) return false;
    bool ok = order_inner(r, op, a, b, out);
    r->depth--;
    return ok;
}

static bool range_contains(const cera_jrange *g, const cera_jval *item) {
    int64_t x;
    if (item->kind == J_FLOAT && item->u.f == floor(item->u.f) && fabs(item->u.f) < 1e15)
        x = (int64_t)item->u.f;
    else if (!cera_jinja_as_int(item, &x))
        return false;
    if (g->n == 0) return false;
    int64_t last = g->start + (g->n - 1) * g->step;
    return (g->step > 0 ? x >= g->start && x <= last : x <= g->start && x >= last) && (x - g->start) % g->step == 0;
}

bool cera_jinja_contains(cera_jrender *r, const cera_jval *item, const cera_jval *in, bool *out) {
    *out = false;
    switch (in->kind) {
    case J_STR:
        if (item->kind != J_STR)
            return cera_jinja_raise(r, "TypeError", "'in <string>' requires string as left operand, not %s",
                                    cera_jinja_type_name(item));
        *out = cera_jinja_find(in, item, 0) >= 0;
        return cera_jinja_charge(r, in->n / 32);
    case J_RANGE: return *out = range_contains(in->u.range, item), true;
    case J_DICT:
    case J_VIEW: {
        cera_jval *found;
        if (in->kind == J_VIEW && in->sub != J_VIEW_KEYS) break;
        if (!cera_jinja_dict_find(r, in->u.dict, item, &found)) return false;
        return *out = found != NULL, true;
    }
    default: break;
    }
    cera_jiter it;
    if (in->kind == J_NONE || in->kind == J_BOOL || is_number(in) || in->kind == J_NAMESPACE || in->kind >= J_MACRO)
        return cera_jinja_raise(r, "TypeError", "argument of type '%s' is not iterable", cera_jinja_type_name(in));
    if (!cera_jinja_iter(r, in, &it)) return false;
    for (bool more = true; !*out;) {
        cera_jval v;
        if (!cera_jinja_iter_next(r, &it, &v, &more)) return false;
        if (!more) break;
        if (!cera_jinja_equal(r, item, &v, out)) return false;
    }
    return true;
}

bool cera_jinja_len(cera_jrender *r, const cera_jval *v, int64_t *out) {
    switch (v->kind) {
    case J_UNDEFINED: return *out = 0, true;
    case J_STR: return *out = cera_jinja_str_chars(v), cera_jinja_charge(r, v->n / 64);
    case J_LIST:
    case J_TUPLE: return *out = v->u.list->n, true;
    case J_DICT:
    case J_VIEW: return *out = v->u.dict->n, true;
    case J_RANGE: return *out = v->u.range->n, true;
    case J_LOOP: return cera_jinja_loop_length(r, v->u.loop, out);
    default: return cera_jinja_raise(r, "TypeError", "object of type '%s' has no len()", cera_jinja_type_name(v));
    }
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

cera_jlist *cera_jinja_list_new(cera_jrender *r, uint32_t capacity) {
    cera_jlist *l = cera_jinja_alloc(&r->mem, 1, sizeof *l);
    if (l && capacity) l->items = cera_jinja_alloc(&r->mem, capacity, sizeof *l->items);
    if (!l || (capacity && !l->items)) return cera_jinja_no_memory(r), NULL;
    l->capacity = capacity;
    return l;
}

bool cera_jinja_list_add(cera_jrender *r, cera_jlist *l, const cera_jval *v) {
    if (l->n == l->capacity) {
        uint32_t capacity = l->capacity < 4 ? 4 : 2 * l->capacity;
        cera_jval *items = capacity > l->capacity ? cera_jinja_alloc(&r->mem, capacity, sizeof *items) : NULL;
        if (!items) return cera_jinja_no_memory(r);
        if (l->n) memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->n++] = *v;
    return cera_jinja_charge(r, 1);
}

cera_jval cera_jinja_list_value(cera_jlist *l, uint8_t kind) { return (cera_jval){.kind = kind, .u.list = l}; }

bool cera_jinja_pair(cera_jrender *r, const cera_jval *a, const cera_jval *b, cera_jval *out) {
    cera_jlist *l = cera_jinja_list_new(r, 2);
    if (!l || !cera_jinja_list_add(r, l, a) || !cera_jinja_list_add(r, l, b)) return false;
    *out = cera_jinja_list_value(l, J_TUPLE);
    return true;
}

/* ---- dictionaries ----------------------------------------------------------------------------------------------- */

enum { INDEX_FROM = 9, INITIAL_DICT = 8 };

static bool hash_value(cera_jrender *r, const cera_jval *v, uint64_t *out) {
    double f;
    if (v->kind == J_STR) {
        *out = cera_hash64(cera_jinja_chars(v), v->n, 1);
        return cera_jinja_charge(r, v->n / 64);
    }
    if (cera_jinja_number(v, &f)) {
        f += 0.0; /* -0.0 and 0 are one key */
        *out = cera_hash64(&f, sizeof f, 2);
        return true;
    }
    if (v->kind == J_TUPLE) {
        *out = 3;
        if (!cera_jinja_enter(r)) return false;
        for (uint32_t i = 0; i < v->u.list->n; i++) {
            uint64_t h;
            if (!hash_value(r, &v->u.list->items[i], &h)) return false;
            *out = cera_hash_mix(*out, h);
        }
        r->depth--;
        return true;
    }
    if (v->kind == J_LIST || v->kind == J_DICT || (v->kind == J_VIEW && v->sub != J_VIEW_VALUES))
        return cera_jinja_raise(r, "TypeError", "unhashable type: '%s'", cera_jinja_type_name(v));
    *out = cera_hash_mix(4, v->kind == J_NONE || v->kind == J_UNDEFINED ? v->kind : (uint64_t)(uintptr_t)v->u.list);
    return true;
}

cera_jdict *cera_jinja_dict_new(cera_jrender *r, uint32_t capacity) {
    cera_jdict *d = cera_jinja_alloc(&r->mem, 1, sizeof *d);
    if (!d) return cera_jinja_no_memory(r), NULL;
    if (capacity) {
        d->keys = cera_jinja_alloc(&r->mem, capacity, sizeof *d->keys);
        d->values = cera_jinja_alloc(&r->mem, capacity, sizeof *d->values);
        if (!d->keys || !d->values) return cera_jinja_no_memory(r), NULL;
        d->capacity = capacity;
    }
    return d;
}

static void index_put(cera_jdict *d, uint64_t hash, uint32_t entry) {
    uint32_t i = (uint32_t)hash & (d->index_size - 1);
    while (d->index[i]) i = (i + 1) & (d->index_size - 1);
    d->index[i] = entry + 1;
}

static bool rebuild_index(cera_jrender *r, cera_jdict *d) {
    uint32_t size = 32;
    while (size < 2 * d->capacity) size *= 2;
    d->index = cera_jinja_alloc(&r->mem, size, sizeof *d->index);
    if (!d->index) return cera_jinja_no_memory(r);
    d->index_size = size;
    for (uint32_t i = 0; i < d->n; i++) {
        uint64_t h;
        if (!hash_value(r, &d->keys[i], &h)) return false;
        index_put(d, h, i);
    }
    return true;
}

bool cera_jinja_dict_find(cera_jrender *r, const cera_jdict *d, const cera_jval *key, cera_jval **out) {
    *out = NULL;
    uint64_t hash = 0;
    if ((d->index || key->kind == J_LIST || key->kind == J_DICT || key->kind == J_VIEW || key->kind == J_TUPLE) &&
        !hash_value(r, key, &hash))
        return false;
    if (!d->index) {
        for (uint32_t i = 0; i < d->n; i++) {
            bool same;
            if (key->kind == J_STR && d->keys[i].kind == J_STR)
                same = key->n == d->keys[i].n && !memcmp(cera_jinja_chars(key), cera_jinja_chars(&d->keys[i]), key->n);
            else if (!cera_jinja_equal(r, &d->keys[i], key, &same))
                return false;
            if (same) return *out = &d->values[i], true;
        }
        return true;
    }
    for (uint32_t i = (uint32_t)hash & (d->index_size - 1); d->index[i]; i = (i + 1) & (d->index_size - 1)) {
        uint32_t entry = d->index[i] - 1;
        bool same;
        if (!cera_jinja_charge(r, 1) || !cera_jinja_equal(r, &d->keys[entry], key, &same)) return false;
        if (same) return *out = &d->values[entry], true;
    }
    return true;
}

cera_jval *cera_jinja_dict_get_text(const cera_jdict *d, const char *name, size_t n) {
    for (uint32_t i = 0; i < d->n; i++)
        if (d->keys[i].kind == J_STR && d->keys[i].n == n && !memcmp(cera_jinja_chars(&d->keys[i]), name, n))
            return &d->values[i];
    return NULL;
}

bool cera_jinja_dict_set(cera_jrender *r, cera_jdict *d, const cera_jval *key, const cera_jval *value) {
    cera_jval *old;
    uint64_t hash = 0;
    if (!hash_value(r, key, &hash) || !cera_jinja_dict_find(r, d, key, &old)) return false;
    if (old) return *old = *value, true;
    if (d->n == d->capacity) {
        uint32_t capacity = d->capacity ? 2 * d->capacity : INITIAL_DICT;
        cera_jval *keys = cera_jinja_alloc(&r->mem, capacity, sizeof *keys),
                  *values = cera_jinja_alloc(&r->mem, capacity, sizeof *values);
        if (!keys || !values || capacity < d->capacity) return cera_jinja_no_memory(r);
        if (d->n) {
            memcpy(keys, d->keys, d->n * sizeof *keys);
            memcpy(values, d->values, d->n * sizeof *values);
        }
        d->keys = keys;
        d->values = values;
        d->capacity = capacity;
        if (d->index && !rebuild_index(r, d)) return false;
    }
    d->keys[d->n] = *key;
    d->values[d->n++] = *value;
    if (d->index)
        index_put(d, hash, d->n - 1);
    else if (d->n == INDEX_FROM && !rebuild_index(r, d))
        return false;
    return cera_jinja_charge(r, 1);
}

/* ---- iteration -------------------------------------------------------------------------------------------------- */

bool cera_jinja_iter(cera_jrender *r, const cera_jval *over, cera_jiter *out) {
    *out = (cera_jiter){.over = *over};
    switch (over->kind) {
    case J_UNDEFINED:
    case J_STR:
    case J_LIST:
    case J_TUPLE:
    case J_DICT:
    case J_VIEW:
    case J_RANGE:
    case J_ITER:
    case J_LOOP: return true;
    default: return cera_jinja_raise(r, "TypeError", "'%s' object is not iterable", cera_jinja_type_name(over));
    }
}

static bool next_of_dict(cera_jrender *r, cera_jiter *it, cera_jval *out, bool *more) {
    const cera_jdict *d = it->over.u.dict;
    *more = it->at < d->n;
    if (!*more) return true;
    uint32_t i = it->at++;
    if (it->over.kind == J_VIEW && it->over.sub == J_VIEW_ITEMS) return cera_jinja_pair(r, &d->keys[i], &d->values[i], out);
    *out = it->over.kind == J_VIEW && it->over.sub == J_VIEW_VALUES ? d->values[i] : d->keys[i];
    return true;
}

static bool next_of_loop(cera_jrender *r, cera_jloop *l, cera_jval *out, bool *more) {
    cera_jval self = {.kind = J_LOOP, .u.loop = l};
    if (l->after.kind == J_MISSING && !cera_jinja_loop_peek(r, l)) return false;
    *more = l->after.kind != J_MISSING;
    if (!*more) return true;
    l->index0++;
    l->before = l->current;
    l->current = l->after;
    l->after = (cera_jval){0};
    return cera_jinja_pair(r, &l->current, &self, out);
}

static bool next_item(cera_jrender *r, cera_jiter *it, cera_jval *out, bool *more) {
    switch (it->over.kind) {
    case J_STR: {
        *more = it->byte < it->over.n;
        if (!*more) return true;
        uint32_t size;
        cera_jinja_char_at(&it->over, it->byte, &size);
        *out = cera_jinja_sub(&it->over, it->byte, it->byte + size);
        it->byte += size;
        return true;
    }
    case J_LIST:
    case J_TUPLE:
        *more = it->at < it->over.u.list->n;
        if (*more) *out = it->over.u.list->items[it->at++];
        return true;
    case J_DICT:
    case J_VIEW: return next_of_dict(r, it, out, more);
    case J_RANGE:
        *more = it->at < it->over.u.range->n;
        if (*more) *out = cera_jinja_int(it->over.u.range->start + (int64_t)it->at++ * it->over.u.range->step);
        return true;
    case J_ITER: return cera_jinja_iter_next(r, it->over.u.iter, out, more);
    case J_NONE: return cera_jinja_raise(r, "TypeError", "Can only get item pairs from a mapping.");
    case J_LOOP: return next_of_loop(r, it->over.u.loop, out, more);
    default: *more = false; return true;
    }
}

bool cera_jinja_iter_next(cera_jrender *r, cera_jiter *it, cera_jval *out, bool *more) {
    for (;;) {
        bool keep = true;
        if (!cera_jinja_charge(r, 1) || !next_item(r, it, out, more)) return false;
        if (!*more || !it->filter_for) return true;
        if (!cera_jinja_filter_item(r, it, out, &keep)) return false;
        if (keep) return true;
    }
}

bool cera_jinja_to_list(cera_jrender *r, const cera_jval *v, cera_jlist **out) {
    cera_jiter it;
    *out = cera_jinja_list_new(r, v->kind == J_LIST || v->kind == J_TUPLE ? v->u.list->n : 0);
    if (!*out || !cera_jinja_iter(r, v, &it)) return false;
    for (bool more = true;;) {
        cera_jval item;
        if (!cera_jinja_iter_next(r, &it, &item, &more)) return false;
        if (!more) return true;
        if (!cera_jinja_list_add(r, *out, &item)) return false;
    }
}

/* Merge sort from below: stable, and comparisons may fail. Equal keys keep their order also when reversed, as in Python. */
bool cera_jinja_sort(cera_jrender *r, cera_jval *items, cera_jval *keys, uint32_t n, bool reverse) {
    cera_jval *spare = cera_jinja_alloc(&r->mem, n ? n : 1, 2 * sizeof *spare);
    if (!spare) return cera_jinja_no_memory(r);
    cera_jval *to_items = spare, *to_keys = spare + n;
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t from = 0; from < n; from += 2 * width) {
            uint32_t middle = n - from < width ? n : from + width, end = n - from < 2 * width ? n : from + 2 * width;
            uint32_t a = from, b = middle;
            for (uint32_t k = from; k < end; k++) {
                int order = 0;
                if (a < middle && b < end &&
                    !(reverse ? cera_jinja_order(r, "<", &keys[a], &keys[b], &order)
                              : cera_jinja_order(r, "<", &keys[b], &keys[a], &order)))
                    return false;
                bool second = a == middle || (b < end && order == -1);
                uint32_t i = second ? b++ : a++;
                to_items[k] = items[i];
                to_keys[k] = keys[i];
            }
        }
        memcpy(items, to_items, n * sizeof *items);
        memcpy(keys, to_keys, n * sizeof *keys);
    }
    return true;
}

/* ---- from JSON -------------------------------------------------------------------------------------------------- */

static bool from_text(cera_jrender *r, cera_text_view text, bool user, cera_jval *out) {
    if (text.size > r->max_bytes) return cera_jinja_limit(r, "a string of the context has more than %zu bytes", r->max_bytes);
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b) return false;
    b->data = (char *)text.text; /* capacity 0: never written; the JSON outlives the render */
    b->used = (uint32_t)text.size;
    for (size_t i = 0; i < text.size && b->ascii; i++) b->ascii = (unsigned char)text.text[i] < 0x80;
    if (user && text.size) {
        b->n_marks = 1;
        b->first = (cera_jmark){0, b->used};
    }
    *out = cera_jinja_buf_value(b);
    return true;
}

static bool from_number(cera_jrender *r, const cera_json *v, cera_jval *out) {
    bool is_float = false;
    for (size_t i = 0; i < v->text.size; i++) is_float = is_float || strchr(".eE", v->text.text[i]);
    int64_t i;
    double f = 0;
    if (!is_float && cera_json_i64(v, &i)) return *out = cera_jinja_int(i), true;
    if (!is_float) {
        if (!from_text(r, v->text, false, out)) return false;
        out->kind = J_BIGINT;
        return true;
    }
    if (!cera_json_f64(v, &f)) f = v->text.text[0] == '-' ? -INFINITY : INFINITY;
    *out = cera_jinja_float(f);
    return true;
}

static bool from_array(cera_jrender *r, const cera_json *v, cera_text_view top, cera_text_view key, cera_jval *out) {
    cera_jlist *l = cera_jinja_list_new(r, v->n);
    if (!l) return false;
    for (uint32_t i = 0; i < v->n; i++) {
        cera_jval item;
        if (!cera_jinja_from_json(r, &v->items[i], top, key, &item) || !cera_jinja_list_add(r, l, &item)) return false;
    }
    *out = cera_jinja_list_value(l, J_LIST);
    return true;
}

static bool from_object(cera_jrender *r, const cera_json *v, cera_text_view top, cera_jval *out) {
    cera_jdict *d = cera_jinja_dict_new(r, v->n);
    if (!d) return false;
    for (uint32_t i = 0; i < v->n; i++) {
        cera_jval name, value;
        cera_text_view above = top.text ? top : v->keys[i];
        if (!from_text(r, v->keys[i], true, &name) ||
            !cera_jinja_from_json(r, &v->items[i], above, top.text ? v->keys[i] : (cera_text_view){"", 0}, &value))
            return false;
        if (!cera_jinja_dict_set(r, d, &name, &value)) return false;
    }
    *out = (cera_jval){.kind = J_DICT, .u.dict = d};
    return true;
}

bool cera_jinja_from_json(cera_jrender *r, const cera_json *v, cera_text_view top, cera_text_view key, cera_jval *out) {
    const cera_jinja_options *o = r->options;
    if (!cera_jinja_enter(r)) return false;
    bool ok = true;
    switch (v->kind) {
    case CERA_JSON_NULL: *out = cera_jinja_none(); break;
    case CERA_JSON_FALSE:
    case CERA_JSON_TRUE: *out = cera_jinja_bool(v->kind == CERA_JSON_TRUE); break;
    case CERA_JSON_NUMBER: ok = from_number(r, v, out); break;
    case CERA_JSON_STRING:
        ok = from_text(r, v->text, !(o && o->trust && top.text && o->trust(o->trust_ctx, top, key, v->text)), out);
        break;
    case CERA_JSON_ARRAY: ok = from_array(r, v, top, key, out); break;
    case CERA_JSON_OBJECT: ok = from_object(r, v, top, out); break;
    }
    r->depth--;
    return ok;
}
