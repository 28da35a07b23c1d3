/* schema_ref.c: where a $ref points: JSON pointers, $id and its base addresses, $anchor. Everything must be in the document:
 * nothing is fetched. Does not own: what a reference means (schema_keywords.c). */
#include "sample/schema_int.h"

#include <string.h>
#include "base/hash.h"

enum { MAX_URI = 2048 };

/* ---- addresses (RFC 3986, section 5.2)
 * --------------------------------------------------------------------------------------------- */

static size_t scheme_length(cera_text_view u) {
    size_t i = 0;
    while (i < u.size && ((u.text[i] | 0x20) >= 'a' && (u.text[i] | 0x20) <= 'z')) i++;
    while (i && i < u.size &&
           (((u.text[i] | 0x20) >= 'a' && (u.text[i] | 0x20) <= 'z') || (u.text[i] >= '0' && u.text[i] <= '9') ||
            strchr("+-.", u.text[i])))
        i++;
    return i && i < u.size && u.text[i] == ':' ? i + 1 : 0;
}

/* The end of "scheme://authority". */
static size_t authority_end(cera_text_view u) {
    size_t at = scheme_length(u);
    if (u.size - at < 2 || memcmp(u.text + at, "//", 2)) return at;
    at += 2;
    while (at < u.size && u.text[at] != '/') at++;
    return at;
}

/* Removes "." and ".." segments of the path that starts at `from`, in place; returns the new size. */
static size_t remove_dots(char *u, size_t from, size_t n) {
    size_t out = from, i = from;
    while (i < n) {
        size_t end = i + (u[i] == '/');
        while (end < n && u[end] != '/') end++;
        size_t skip = u[i] == '/', size = end - i - skip;
        const char *segment = u + i + skip;
        bool dot = size == 1 && segment[0] == '.', dots = size == 2 && segment[0] == '.' && segment[1] == '.';
        if (dots)
            while (out > from && u[--out] != '/') {}
        if (dot || dots) {
            if (end == n && skip) u[out++] = '/';
        } else {
            memmove(u + out, u + i, end - i);
            out += end - i;
        }
        i = end;
    }
    return out;
}

/* ref (without fragment) against base; NULL when too long. */
static const char *join(cera_schema *s, const char *base, cera_text_view ref) {
    cera_text_view b = {base, strlen(base)};
    char *u = cera_schema_alloc(s, b.size + ref.size + 2, 1);
    if (!u || b.size + ref.size > MAX_URI) return NULL;
    size_t n = 0;
    if (ref.size == 0)
        n = b.size;
    else if (!scheme_length(ref)) {
        n = authority_end(b);
        if (ref.size > 1 && ref.text[0] == '/' && ref.text[1] == '/')
            n = scheme_length(b);
        else if (ref.text[0] != '/') {
            size_t slash = b.size;
            while (slash > n && b.text[slash - 1] != '/') slash--;
            n = slash;
        }
    }
    memcpy(u, b.text, n);
    memcpy(u + n, ref.text, ref.size);
    n += ref.size;
    size_t path = authority_end((cera_text_view){u, n});
    if (path && memchr(u, '/', n)) n = remove_dots(u, path, n);
    u[n] = 0;
    return u;
}

/* ---- the index
 * ---------------------------------------------------------------------------------------------------------------------- */

static bool is_one_of(cera_text_view key, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == key.size && !memcmp(list[i], key.text, key.size)) return true;
    return false;
}

static void set_base(cera_schema *s, const cera_json *node, uint32_t resource) {
    if (!cera_automaton_grow(s->a, (void **)&s->bases, s->n_bases, 1, &s->cap_bases, sizeof *s->bases)) return;
    s->bases[s->n_bases++] = (cera_node_base){node, resource};
}

static uint32_t base_of(const cera_schema *s, const cera_json *node) {
    uint32_t lo = 0,
             hi = s->n_bases; /* children of one array are adjacent, but arrays are not ordered: the table is sorted below */
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if ((uintptr_t)s->bases[mid].node < (uintptr_t)node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n_bases && s->bases[lo].node == node ? s->bases[lo].resource : 0;
}

static void add_anchor(cera_schema *s, cera_text_view name, uint32_t resource, const cera_json *node, bool dynamic) {
    if (!cera_automaton_grow(s->a, (void **)&s->anchors, s->n_anchors, 1, &s->cap_anchors, sizeof *s->anchors)) return;
    s->anchors[s->n_anchors++] = (cera_anchor){name, resource, node, dynamic};
}

static uint32_t add_resource(cera_schema *s, const char *uri, const cera_json *root) {
    if (!cera_automaton_grow(s->a, (void **)&s->resources, s->n_resources, 1, &s->cap_resources, sizeof *s->resources))
        return 0;
    s->resources[s->n_resources] = (cera_resource){uri, root};
    return s->n_resources++;
}

/* $id: a new resource, or in drafts before 2019-09 "#name", an anchor. */
static uint32_t read_id(cera_schema *s, const cera_json *node, uint32_t resource) {
    const cera_json *id = cera_json_get(node, s->draft == CERA_DRAFT_4 ? "id" : "$id");
    bool old = s->draft <= CERA_DRAFT_7;
    if (!id || id->kind != CERA_JSON_STRING || (old && s->draft && cera_json_get(node, "$ref"))) return resource;
    if (!s->draft && cera_json_get(node, "$ref") && node != s->root) return resource;
    cera_text_view u = id->text;
    const char *hash = memchr(u.text, '#', u.size);
    if (hash == u.text) {
        if (old && u.size > 1) add_anchor(s, (cera_text_view){u.text + 1, u.size - 1}, resource, node, false);
        return resource;
    }
    if (hash) u.size = (size_t)(hash - u.text);
    const char *uri = join(s, s->resources[resource].uri, u);
    if (!uri) return resource;
    if (node == s->root) return s->resources[0].uri = uri, resource;
    return add_resource(s, uri, node);
}

static void index_schema(cera_schema *s, const cera_json *node, uint32_t resource, int depth);

static void index_children(cera_schema *s, const cera_json *map, uint32_t resource, int depth) {
    for (uint32_t i = 0; i < map->n; i++) index_schema(s, &map->items[i], resource, depth + 1);
}

static void index_schema(cera_schema *s, const cera_json *node, uint32_t resource, int depth) {
    static const char *const one[] = {"additionalProperties",
                                      "additionalItems",
                                      "items",
                                      "contains",
                                      "propertyNames",
                                      "not",
                                      "if",
                                      "then",
                                      "else",
                                      "unevaluatedItems",
                                      "unevaluatedProperties",
                                      "contentSchema"};
    static const char *const list[] = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
    static const char *const map[] = {"properties", "patternProperties", "definitions",
                                      "$defs",      "dependencies",      "dependentSchemas"};
    if (node->kind != CERA_JSON_OBJECT || depth > CERA_JSON_MAX_DEPTH) return;
    resource = read_id(s, node, resource);
    set_base(s, node, resource);
    const cera_json *anchor = cera_json_get(node, "$anchor"), *dynamic = cera_json_get(node, "$dynamicAnchor");
    bool anchors = !s->draft || s->draft >= CERA_DRAFT_2019;
    if (anchors && anchor && anchor->kind == CERA_JSON_STRING) add_anchor(s, anchor->text, resource, node, false);
    if (anchors && dynamic && dynamic->kind == CERA_JSON_STRING) add_anchor(s, dynamic->text, resource, node, true);
    for (uint32_t i = 0; i < node->n; i++) {
        const cera_json *v = &node->items[i];
        if (v->kind == CERA_JSON_OBJECT && is_one_of(node->keys[i], one, sizeof one / sizeof *one))
            index_schema(s, v, resource, depth + 1);
        else if (v->kind == CERA_JSON_ARRAY && is_one_of(node->keys[i], list, sizeof list / sizeof *list))
            index_children(s, v, resource, depth);
        else if (v->kind == CERA_JSON_OBJECT && is_one_of(node->keys[i], map, sizeof map / sizeof *map))
            index_children(s, v, resource, depth);
    }
}

static void sift(cera_node_base *b, uint32_t at, uint32_t n) {
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && (uintptr_t)b[child + 1].node > (uintptr_t)b[child].node) child++;
        if ((uintptr_t)b[at].node >= (uintptr_t)b[child].node) return;
        cera_node_base t = b[at];
        b[at] = b[child];
        b[child] = t;
    }
}

static void sort_bases(cera_node_base *b, uint32_t n) {
    for (uint32_t i = n / 2; i-- > 0;) sift(b, i, n);
    for (uint32_t i = n; i-- > 1;) {
        cera_node_base t = b[0];
        b[0] = b[i];
        b[i] = t;
        sift(b, 0, i);
    }
}

void cera_schema_index(cera_schema *s) {
    add_resource(s, "", s->root);
    if (s->a->failed) return;
    index_schema(s, s->root, 0, 0);
    sort_bases(s->bases, s->n_bases);
}

/* ---- resolution
 * ---------------------------------------------------------------------------------------------------------------------- */

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
    return -1;
}

/* One step of a pointer: %xx, then ~1 and ~0 undone. */
static cera_text_view step_text(cera_schema *s, const char *p, size_t n) {
    char *out = cera_schema_alloc(s, n + 1, 1);
    size_t k = 0;
    for (size_t i = 0; out && i < n; i++) {
        char c = p[i];
        if (c == '%' && i + 2 < n && hex_value(p[i + 1]) >= 0 && hex_value(p[i + 2]) >= 0) {
            c = (char)(hex_value(p[i + 1]) * 16 + hex_value(p[i + 2]));
            i += 2;
        }
        if (c == '~' && i + 1 < n && (p[i + 1] == '0' || p[i + 1] == '1')) c = p[++i] == '0' ? '~' : '/';
        out[k++] = c;
    }
    return (cera_text_view){out ? out : "", k};
}

static const cera_json *pointer(cera_schema *s, const cera_json *node, const char *p, size_t n) {
    size_t i = 0;
    while (node && i < n) {
        if (p[i] != '/') return NULL;
        size_t end = ++i;
        while (end < n && p[end] != '/') end++;
        cera_text_view step = step_text(s, p + i, end - i);
        i = end;
        if (node->kind == CERA_JSON_OBJECT)
            node = cera_json_get_view(node, step.text, step.size);
        else if (node->kind == CERA_JSON_ARRAY && step.size && step.size < 8) {
            uint32_t at = 0;
            for (size_t k = 0; k < step.size; k++) at = at * 10 + (uint32_t)(step.text[k] - '0');
            node = at < node->n ? &node->items[at] : NULL;
        } else
            node = NULL;
    }
    return node;
}

static const cera_json *anchor_in(cera_schema *s, uint32_t resource, const char *name, size_t n) {
    for (uint32_t i = 0; i < s->n_anchors; i++) {
        const cera_anchor *a = &s->anchors[i];
        if (a->resource == resource && a->name.size == n && !memcmp(a->name.text, name, n)) return a->node;
    }
    return NULL;
}

/* A dynamic reference is an ordinary one when only one schema could answer it. */
static bool is_dynamic(cera_schema *s, cera_text_view ref) {
    const char *hash = memchr(ref.text, '#', ref.size);
    size_t n = hash ? ref.size - (size_t)(hash + 1 - ref.text) : 0;
    if (!n || hash[1] == '/') return false;
    uint32_t found = 0;
    for (uint32_t i = 0; i < s->n_anchors; i++)
        found += s->anchors[i].dynamic && s->anchors[i].name.size == n && !memcmp(s->anchors[i].name.text, hash + 1, n);
    return found > 1;
}

const cera_json *cera_schema_resolve(cera_schema *s, const cera_json *node, const cera_json *ref, const char *keyword) {
    if (ref->kind != CERA_JSON_STRING) return cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "must be a string"), NULL;
    if (keyword[1] == 'd' && is_dynamic(s, ref->text))
        return cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, keyword, "depends on the way that led here"), NULL;
    const char *hash = memchr(ref->text.text, '#', ref->text.size);
    cera_text_view address = {ref->text.text, hash ? (size_t)(hash - ref->text.text) : ref->text.size};
    const char *fragment = hash ? hash + 1 : "";
    size_t n = hash ? ref->text.size - address.size - 1 : 0;
    uint32_t resource = base_of(s, node);
    if (address.size) {
        const char *uri = join(s, s->resources[resource].uri, address);
        for (resource = 0; uri && resource < s->n_resources && strcmp(s->resources[resource].uri, uri); resource++) {}
        if (!uri || resource == s->n_resources)
            return cera_schema_fail(s, CERA_ERR_UNSUPPORTED, node, keyword,
                                    "points outside of this document, and nothing is fetched"),
                   NULL;
    }
    const cera_json *root = s->resources[resource].root, *target = NULL;
    if (n == 0)
        target = root;
    else if (fragment[0] == '/')
        target = pointer(s, root, fragment, n);
    else
        target = anchor_in(s, resource, fragment, n);
    if (!target) return cera_schema_fail(s, CERA_ERR_NOT_FOUND, node, keyword, "points to nothing"), NULL;
    return target;
}
