/* jinja_filter_seq.c: filters on sequences and mappings: join, map, select, sort, groupby and their like. What jinja2 gives as
 * a generator (map, select, unique, ...) is evaluated at once here and handed out once; a generator's other traits are kept. */
#include <stdlib.h>
#include <string.h>
#include "text/jinja_int.h"

#define FILTER(name) \
    static bool name(cera_jrender *r, const cera_jval *self, const cera_jargs *args, const cera_jval *p, cera_jval *out)
#define UNUSED (void)self, (void)args, (void)p, (void)r

static bool given(const cera_jval *v) { return v->kind != J_MISSING && v->kind != J_NONE; }

static bool generator(cera_jrender *r, cera_jlist *l, cera_jval *out) {
    cera_jiter *it = cera_jinja_alloc(&r->mem, 1, sizeof *it);
    if (!it) return cera_jinja_no_memory(r);
    it->over = cera_jinja_list_value(l, J_LIST);
    return *out = (cera_jval){.kind = J_ITER, .u.iter = it}, true;
}

/* ---- attributes by path ----------------------------------------------------------------------------------------- */

static bool all_digits(const cera_jval *s) {
    for (uint32_t i = 0; i < s->n; i++)
        if (cera_jinja_chars(s)[i] < '0' || cera_jinja_chars(s)[i] > '9') return false;
    return s->n > 0 && s->n < 10;
}

/* item's attribute "a.b.0"; fallback (or NULL) stands in for what is undefined. */
static bool get_path(cera_jrender *r, const cera_jval *item, const cera_jval *path, const cera_jval *fallback, cera_jval *out) {
    *out = *item;
    if (!given(path)) return true;
    if (path->kind != J_STR) {
        if (!cera_jinja_getitem(r, out, path, out)) return false;
        if (fallback && given(fallback) && out->kind == J_UNDEFINED) *out = *fallback;
        return true;
    }
    for (uint32_t from = 0; from <= path->n;) {
        const char *dot = memchr(cera_jinja_chars(path) + from, '.', path->n - from);
        uint32_t to = dot ? (uint32_t)(dot - cera_jinja_chars(path)) : path->n;
        cera_jval part = cera_jinja_sub(path, from, to);
        if (all_digits(&part)) {
            char digits[12];
            memcpy(digits, cera_jinja_chars(&part), part.n);
            digits[part.n] = 0;
            part = cera_jinja_int(strtol(digits, NULL, 10));
        }
        if (!cera_jinja_getitem(r, out, &part, out)) return false;
        if (fallback && given(fallback) && out->kind == J_UNDEFINED) *out = *fallback;
        from = to + 1;
    }
    return true;
}

static bool fold(cera_jrender *r, cera_jval *v, bool case_sensitive) {
    if (case_sensitive || v->kind != J_STR) return true;
    return cera_jinja_case(r, v, 'l', v);
}

/* A sort key: the value at the path, or the list of values when the path names several ("a,b"). */
static bool sort_key(cera_jrender *r, const cera_jval *item, const cera_jval *path, bool case_sensitive, cera_jval *out) {
    cera_jlist *l = cera_jinja_list_new(r, 1);
    bool is_text = path->kind == J_STR;
    for (uint32_t from = 0; l && (from == 0 || from <= path->n);) {
        const char *comma = is_text && from < path->n ? memchr(cera_jinja_chars(path) + from, ',', path->n - from) : NULL;
        uint32_t to = comma ? (uint32_t)(comma - cera_jinja_chars(path)) : is_text ? path->n : 0;
        cera_jval part = is_text ? cera_jinja_sub(path, from, to) : *path, key;
        if (!get_path(r, item, &part, NULL, &key) || !fold(r, &key, case_sensitive) || !cera_jinja_list_add(r, l, &key))
            return false;
        if (!comma) break;
        from = to + 1;
    }
    if (!l) return false;
    return *out = cera_jinja_list_value(l, J_LIST), true;
}

/* ---- simple ones ------------------------------------------------------------------------------------------------ */

FILTER(f_join) {
    UNUSED;
    cera_jiter it;
    cera_jval separator = p[0], item;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || (separator.kind == J_MISSING && !cera_jinja_text_value(r, "", &separator))) return false;
    if (!cera_jinja_to_str(r, &separator, &separator) || !cera_jinja_iter(r, self, &it)) return false;
    bool more = true;
    for (uint32_t i = 0;; i++) {
        if (!cera_jinja_iter_next(r, &it, &item, &more)) return false;
        if (!more) break;
        if (i && !cera_jinja_buf_add_str(r, b, &separator)) return false;
        if (!get_path(r, &item, &p[1], NULL, &item) || !cera_jinja_print(r, b, &item)) return false;
    }
    return *out = cera_jinja_buf_value(b), true;
}

FILTER(f_list) {
    cera_jlist *l;
    return UNUSED, cera_jinja_to_list(r, self, &l) && (*out = cera_jinja_list_value(l, J_LIST), true);
}

FILTER(f_first) {
    UNUSED;
    cera_jiter it;
    bool more;
    if (!cera_jinja_iter(r, self, &it) || !cera_jinja_iter_next(r, &it, out, &more)) return false;
    return more || cera_jinja_undefined_hint(r, "No first item, sequence was empty.", out);
}

FILTER(f_last) {
    UNUSED;
    cera_jlist *l;
    if (self->kind == J_ITER) return cera_jinja_raise(r, "TypeError", "'generator' object is not reversible");
    if (!cera_jinja_to_list(r, self, &l)) return false;
    if (l->n == 0) return cera_jinja_undefined_hint(r, "No last item, sequence was empty.", out);
    return *out = l->items[l->n - 1], true;
}

FILTER(f_reverse) {
    UNUSED;
    cera_jlist *l;
    if (self->kind == J_STR) {
        cera_jval bounds[3] = {{0}, {0}, cera_jinja_int(-1)};
        return cera_jinja_slice(r, self, bounds, out);
    }
    if (self->kind != J_UNDEFINED && (self->kind < J_STR || self->kind > J_LOOP || self->kind == J_NAMESPACE))
        return cera_jinja_raise(r, "FilterArgumentError", "argument must be iterable");
    if (!cera_jinja_to_list(r, self, &l)) return false;
    for (uint32_t i = 0; i < l->n / 2; i++) {
        cera_jval x = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = x;
    }
    return generator(r, l, out);
}

FILTER(f_items) {
    UNUSED;
    cera_jlist *l = cera_jinja_list_new(r, 0);
    if (!l) return false;
    if (self->kind == J_UNDEFINED) return generator(r, l, out);
    if (self->kind != J_DICT) { /* a generator that fails when it is run */
        if (!generator(r, l, out)) return false;
        return out->u.iter->over = cera_jinja_none(), true;
    }
    cera_jval view = {.kind = J_VIEW, .sub = J_VIEW_ITEMS, .u.dict = self->u.dict};
    return cera_jinja_to_list(r, &view, &l) && generator(r, l, out);
}

FILTER(f_dictsort) {
    UNUSED;
    bool by_value = cera_jinja_str_is(&p[1], "value"), case_sensitive = cera_jinja_truth(&p[0]);
    cera_jlist *l;
    if (p[1].kind != J_MISSING && !by_value && !cera_jinja_str_is(&p[1], "key"))
        return cera_jinja_raise(r, "FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
    if (self->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, self);
    if (self->kind != J_DICT)
        return cera_jinja_raise(r, "AttributeError", "'%s' object has no attribute 'items'", cera_jinja_type_name(self));
    cera_jval view = {.kind = J_VIEW, .sub = J_VIEW_ITEMS, .u.dict = self->u.dict};
    if (!cera_jinja_to_list(r, &view, &l)) return false;
    cera_jval *keys = cera_jinja_alloc(&r->mem, l->n ? l->n : 1, sizeof *keys);
    if (!keys) return cera_jinja_no_memory(r);
    for (uint32_t i = 0; i < l->n; i++) {
        keys[i] = l->items[i].u.list->items[by_value];
        if (!fold(r, &keys[i], case_sensitive)) return false;
    }
    return cera_jinja_sort(r, l->items, keys, l->n, cera_jinja_truth(&p[2])) && (*out = cera_jinja_list_value(l, J_LIST), true);
}

FILTER(f_sort) {
    UNUSED;
    cera_jlist *l;
    if (!cera_jinja_to_list(r, self, &l)) return false;
    cera_jval *keys = cera_jinja_alloc(&r->mem, l->n ? l->n : 1, sizeof *keys);
    if (!keys) return cera_jinja_no_memory(r);
    for (uint32_t i = 0; i < l->n; i++)
        if (!sort_key(r, &l->items[i], &p[2], cera_jinja_truth(&p[1]), &keys[i])) return false;
    return cera_jinja_sort(r, l->items, keys, l->n, cera_jinja_truth(&p[0])) && (*out = cera_jinja_list_value(l, J_LIST), true);
}

FILTER(f_unique) {
    UNUSED;
    cera_jlist *l, *kept = cera_jinja_list_new(r, 0);
    cera_jdict *seen = cera_jinja_dict_new(r, 0);
    if (!kept || !seen || !cera_jinja_to_list(r, self, &l)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jval key, *old;
        if (!get_path(r, &l->items[i], &p[1], NULL, &key) || !fold(r, &key, cera_jinja_truth(&p[0])) ||
            !cera_jinja_dict_find(r, seen, &key, &old))
            return false;
        if (old) continue;
        if (!cera_jinja_dict_set(r, seen, &key, &key) || !cera_jinja_list_add(r, kept, &l->items[i])) return false;
    }
    return generator(r, kept, out);
}

static bool extreme(cera_jrender *r, const cera_jval *self, const cera_jval *p, bool largest, cera_jval *out) {
    cera_jlist *l;
    cera_jval best_key = {0};
    if (!cera_jinja_to_list(r, self, &l)) return false;
    if (l->n == 0) return cera_jinja_undefined_hint(r, "No aggregated item, sequence was empty.", out);
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jval key;
        int order = 0;
        if (!get_path(r, &l->items[i], &p[1], NULL, &key) || !fold(r, &key, cera_jinja_truth(&p[0]))) return false;
        if (i && !cera_jinja_order(r, largest ? ">" : "<", &key, &best_key, &order)) return false;
        if (i && order != (largest ? 1 : -1)) continue;
        best_key = key;
        *out = l->items[i];
    }
    return true;
}

FILTER(f_min) { return UNUSED, extreme(r, self, p, false, out); }
FILTER(f_max) { return UNUSED, extreme(r, self, p, true, out); }

FILTER(f_sum) {
    UNUSED;
    cera_jlist *l;
    *out = p[1].kind == J_MISSING ? cera_jinja_int(0) : p[1];
    if (out->kind == J_STR) return cera_jinja_raise(r, "TypeError", "sum() can't sum strings [use ''.join(seq) instead]");
    if (!cera_jinja_to_list(r, self, &l)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jval v;
        if (!get_path(r, &l->items[i], &p[0], NULL, &v) || !cera_jinja_binary(r, OP_ADD, out, &v, out)) return false;
    }
    return true;
}

FILTER(f_groupby) {
    UNUSED;
    cera_jlist *l, *groups = cera_jinja_list_new(r, 0);
    bool case_sensitive = cera_jinja_truth(&p[2]);
    if (!groups || !cera_jinja_to_list(r, self, &l)) return false;
    cera_jval *keys = cera_jinja_alloc(&r->mem, l->n ? l->n : 1, sizeof *keys);
    if (!keys) return cera_jinja_no_memory(r);
    for (uint32_t i = 0; i < l->n; i++)
        if (!get_path(r, &l->items[i], &p[0], &p[1], &keys[i]) || !fold(r, &keys[i], case_sensitive)) return false;
    if (!cera_jinja_sort(r, l->items, keys, l->n, false)) return false;
    for (uint32_t i = 0; i < l->n;) {
        cera_jlist *members = cera_jinja_list_new(r, 0);
        cera_jval name, list, pair;
        uint32_t first = i;
        for (bool same = true; members && i < l->n; i++) {
            if (!cera_jinja_equal(r, &keys[first], &keys[i], &same)) return false;
            if (!same) break;
            if (!cera_jinja_list_add(r, members, &l->items[i])) return false;
        }
        if (!members || !get_path(r, &l->items[first], &p[0], &p[1], &name)) return false;
        list = cera_jinja_list_value(members, J_LIST);
        if (!cera_jinja_pair(r, &name, &list, &pair)) return false;
        pair.flags = 1; /* a named tuple: .grouper and .list */
        if (!cera_jinja_list_add(r, groups, &pair)) return false;
    }
    return *out = cera_jinja_list_value(groups, J_LIST), true;
}

static bool int_arg(cera_jrender *r, const cera_jval *v, int64_t *out) {
    if (cera_jinja_as_int(v, out)) return true;
    return cera_jinja_raise(r, "TypeError", "'%s' object cannot be interpreted as an integer", cera_jinja_type_name(v));
}

FILTER(f_batch) {
    UNUSED;
    int64_t size;
    cera_jlist *l, *rows = cera_jinja_list_new(r, 0), *row = NULL;
    if (!rows || !int_arg(r, &p[0], &size) || !cera_jinja_to_list(r, self, &l)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!row || row->n == size) {
            row = cera_jinja_list_new(r, 0);
            cera_jval v = cera_jinja_list_value(row, J_LIST);
            if (!row || !cera_jinja_list_add(r, rows, &v)) return false;
        }
        if (!cera_jinja_list_add(r, row, &l->items[i])) return false;
    }
    while (row && given(&p[1]) && row->n < size)
        if (!cera_jinja_list_add(r, row, &p[1])) return false;
    return generator(r, rows, out);
}

FILTER(f_slice) {
    UNUSED;
    int64_t slices;
    cera_jlist *l, *rows = cera_jinja_list_new(r, 0);
    if (!rows || !int_arg(r, &p[0], &slices) || !cera_jinja_to_list(r, self, &l)) return false;
    if (slices == 0) return cera_jinja_raise(r, "ZeroDivisionError", "integer division or modulo by zero");
    int64_t each = slices > 0 ? l->n / slices : 0, extra = slices > 0 ? l->n % slices : 0, at = 0;
    for (int64_t k = 0; k < slices; k++) {
        cera_jlist *row = cera_jinja_list_new(r, 0);
        for (int64_t i = 0; row && i < each + (k < extra); i++, at++)
            if (!cera_jinja_list_add(r, row, &l->items[at])) return false;
        if (!row || (given(&p[1]) && k >= extra && !cera_jinja_list_add(r, row, &p[1]))) return false;
        cera_jval v = cera_jinja_list_value(row, J_LIST);
        if (!cera_jinja_list_add(r, rows, &v)) return false;
    }
    return generator(r, rows, out);
}

/* ---- map, select ------------------------------------------------------------------------------------------------ */

static bool map_attribute(cera_jrender *r, const cera_jval *self, const cera_jargs *args, cera_jlist *kept) {
    const cera_jval *path = NULL, *fallback = NULL;
    cera_jlist *l;
    for (uint32_t i = 0; i < args->n_names; i++) {
        if (cera_jinja_str_is(&args->names[i], "attribute"))
            path = &args->values[i];
        else if (cera_jinja_str_is(&args->names[i], "default"))
            fallback = &args->values[i];
        else
            return cera_jinja_raise(r, "FilterArgumentError", "Unexpected keyword argument '%.*s'", (int)args->names[i].n,
                                    cera_jinja_chars(&args->names[i]));
    }
    if (!path) return cera_jinja_raise(r, "FilterArgumentError", "map requires a filter argument");
    if (!cera_jinja_to_list(r, self, &l)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jval v;
        if (!get_path(r, &l->items[i], path, fallback, &v) || !cera_jinja_list_add(r, kept, &v)) return false;
    }
    return true;
}

FILTER(f_map) {
    UNUSED;
    cera_jlist *l, *kept = cera_jinja_list_new(r, 0);
    if (!kept) return false;
    if (!cera_jinja_truth(self)) return generator(r, kept, out);
    if (args->n_pos == 0) return map_attribute(r, self, args, kept) && generator(r, kept, out);
    const cera_jval *name = &args->pos[0];
    const cera_jbuiltin *filter = name->kind == J_STR ? cera_jinja_filter(cera_jinja_chars(name), name->n) : NULL;
    if (!cera_jinja_to_list(r, self, &l)) return false;
    if (!filter && l->n)
        return cera_jinja_raise(r, "TemplateRuntimeError", "No filter named '%.*s'.", name->kind == J_STR ? (int)name->n : 0,
                                name->kind == J_STR ? cera_jinja_chars(name) : "");
    cera_jargs rest = *args;
    rest.pos++;
    rest.n_pos--;
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jval v;
        if (!cera_jinja_call_builtin(r, filter, &l->items[i], &rest, &v) || !cera_jinja_list_add(r, kept, &v)) return false;
    }
    return generator(r, kept, out);
}

static bool select_items(cera_jrender *r, const cera_jval *self, const cera_jargs *args, bool attribute, bool wanted,
                         cera_jval *out) {
    cera_jlist *l, *kept = cera_jinja_list_new(r, 0);
    cera_jargs rest = *args;
    const cera_jbuiltin *test = NULL;
    if (!kept) return false;
    if (!cera_jinja_truth(self)) return generator(r, kept, out);
    if (attribute && args->n_pos == 0)
        return cera_jinja_raise(r, "FilterArgumentError", "Missing parameter for attribute name");
    uint32_t first = attribute;
    bool has_test = args->n_pos > first;
    if (!cera_jinja_to_list(r, self, &l)) return false;
    if (has_test) {
        const cera_jval *name = &args->pos[first];
        test = name->kind == J_STR ? cera_jinja_test(cera_jinja_chars(name), name->n) : NULL;
        if (!test && l->n)
            return cera_jinja_raise(r, "TemplateRuntimeError", "No test named '%.*s'.", name->kind == J_STR ? (int)name->n : 0,
                                    name->kind == J_STR ? cera_jinja_chars(name) : "");
        rest.pos += first + 1;
        rest.n_pos -= first + 1;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jval v = l->items[i];
        if (attribute && !get_path(r, &v, &args->pos[0], NULL, &v)) return false;
        if (test && !cera_jinja_call_builtin(r, test, &v, &rest, &v)) return false;
        if (cera_jinja_truth(&v) == wanted && !cera_jinja_list_add(r, kept, &l->items[i])) return false;
    }
    return generator(r, kept, out);
}

FILTER(f_select) { return UNUSED, select_items(r, self, args, false, true, out); }
FILTER(f_reject) { return UNUSED, select_items(r, self, args, false, false, out); }
FILTER(f_selectattr) { return UNUSED, select_items(r, self, args, true, true, out); }
FILTER(f_rejectattr) { return UNUSED, select_items(r, self, args, true, false, out); }

const cera_jbuiltin cera_jinja_seq_filters[] = {{"join", f_join, "d,attribute"},
                                                {"list", f_list, ""},
                                                {"first", f_first, ""},
                                                {"last", f_last, ""},
                                                {"reverse", f_reverse, ""},
                                                {"items", f_items, ""},
                                                {"dictsort", f_dictsort, "case_sensitive,by,reverse"},
                                                {"sort", f_sort, "reverse,case_sensitive,attribute"},
                                                {"unique", f_unique, "case_sensitive,attribute"},
                                                {"min", f_min, "case_sensitive,attribute"},
                                                {"max", f_max, "case_sensitive,attribute"},
                                                {"sum", f_sum, "attribute,start"},
                                                {"groupby", f_groupby, "!attribute,default,case_sensitive"},
                                                {"batch", f_batch, "!linecount,fill_with"},
                                                {"slice", f_slice, "!slices,fill_with"},
                                                {"map", f_map, NULL},
                                                {"select", f_select, NULL},
                                                {"reject", f_reject, NULL},
                                                {"selectattr", f_selectattr, NULL},
                                                {"rejectattr", f_rejectattr, NULL}};
const size_t cera_jinja_n_seq_filters = sizeof cera_jinja_seq_filters / sizeof cera_jinja_seq_filters[0];
