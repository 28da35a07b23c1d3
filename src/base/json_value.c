/* json_value.c: looking into a JSON tree: members, numbers, equality. Does not own parsing (json.c) or writing (json_write.c).
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include "base/number.h"

static bool same_text(cera_text_view a, cera_text_view b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

const cera_json *cera_json_get_view(const cera_json *object, const char *name, size_t size) {
    if (!object || object->kind != CERA_JSON_OBJECT) return NULL;
    cera_text_view wanted = {name, size};
    for (uint32_t i = object->n; i > 0; i--)
        if (same_text(object->keys[i - 1], wanted)) return &object->items[i - 1];
    return NULL;
}

const cera_json *cera_json_get(const cera_json *object, const char *name) {
    return cera_json_get_view(object, name, strlen(name));
}

bool cera_json_is_text(const cera_json *v, const char *text) {
    return v && v->kind == CERA_JSON_STRING && same_text(v->text, (cera_text_view){text, strlen(text)});
}

bool cera_json_i64(const cera_json *v, int64_t *out) {
    return v && v->kind == CERA_JSON_NUMBER && cera_number_i64(v->text.text, v->text.size, out);
}

bool cera_json_f64(const cera_json *v, double *out) {
    return v && v->kind == CERA_JSON_NUMBER && cera_number_f64(v->text.text, v->text.size, out);
}

/* ---- equality ---- */

typedef struct member {
    cera_text_view name;
    const cera_json *value;
} member;

/* By name, and of one name the later member first. */
static int by_name(const void *a, const void *b) {
    const member *x = a, *y = b;
    size_t n = x->name.size < y->name.size ? x->name.size : y->name.size;
    int order = n ? memcmp(x->name.text, y->name.text, n) : 0;
    if (order != 0) return order;
    if (x->name.size != y->name.size) return x->name.size < y->name.size ? -1 : 1;
    return x->value > y->value ? -1 : x->value < y->value;
}

/* The members that count (of one name the last), sorted by name; NULL: out of memory. */
static member *sorted_members(const cera_json *object, size_t *n) {
    member *m = cera_alloc(object->n, sizeof *m);
    if (!m) return NULL;
    for (uint32_t i = 0; i < object->n; i++) m[i] = (member){object->keys[i], &object->items[i]};
    qsort(m, object->n, sizeof *m, by_name);
    size_t kept = 0;
    for (uint32_t i = 0; i < object->n; i++)
        if (kept == 0 || !same_text(m[kept - 1].name, m[i].name)) m[kept++] = m[i];
    *n = kept;
    return m;
}

static bool equal(const cera_json *a, const cera_json *b, int depth);

static bool equal_arrays(const cera_json *a, const cera_json *b, int depth) {
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) same = equal(&a->items[i], &b->items[i], depth + 1);
    return same;
}

static bool equal_objects(const cera_json *a, const cera_json *b, int depth) {
    size_t n_a = 0, n_b = 0;
    member *x = sorted_members(a, &n_a), *y = sorted_members(b, &n_b);
    bool same = x && y && n_a == n_b;
    for (size_t i = 0; same && i < n_a; i++) same = same_text(x[i].name, y[i].name) && equal(x[i].value, y[i].value, depth + 1);
    cera_free(x);
    cera_free(y);
    return same;
}

/* Recursive, as deep as the parser lets a tree become. */
static bool equal(const cera_json *a, const cera_json *b, int depth) {
    if (a->kind != b->kind || depth > CERA_JSON_MAX_DEPTH) return false;
    switch (a->kind) {
    case CERA_JSON_NUMBER: return cera_number_equal(a->text.text, a->text.size, b->text.text, b->text.size);
    case CERA_JSON_STRING: return same_text(a->text, b->text);
    case CERA_JSON_ARRAY: return equal_arrays(a, b, depth);
    case CERA_JSON_OBJECT: return equal_objects(a, b, depth);
    default: return true; /* null, true, false */
    }
}

bool cera_json_equal(const cera_json *a, const cera_json *b) { return equal(a, b, 0); }
