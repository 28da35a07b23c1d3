/* schema_object.c: the keywords of objects. Does not own: dependencies (schema_keywords.c), what objects look like
 * (schema_shape.c). */
#include "sample/schema_int.h"

#include <string.h>
#include "sample/regex_int.h"

cera_nf cera_nf_object(cera_schema *s, cera_obj o) {
    cera_nf r = s->yes;
    cera_obj *p = cera_schema_alloc(s, 1, sizeof *p);
    const cera_obj **list = cera_schema_alloc(s, 1, sizeof *list);
    if (!p || !list) return r;
    *p = o;
    list[0] = p;
    r.obj = list;
    r.n_obj = o.min <= o.max;
    return r;
}

static const cera_json *map_at(cera_schema *s, const cera_json *node, const char *keyword) {
    const cera_json *v = cera_json_get(node, keyword);
    if (v && v->kind != CERA_JSON_OBJECT) cera_schema_fail(s, CERA_ERR_FORMAT, node, keyword, "must be an object");
    return s->status || !v ? NULL : v;
}

static void read_properties(cera_schema *s, const cera_json *map, cera_obj *o) {
    cera_prop *p = cera_schema_alloc(s, map->n, sizeof *p);
    if (!p) return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < map->n; i++) {
        if (cera_json_get_view(map, map->keys[i].text, map->keys[i].size) != &map->items[i]) continue;
        p[n++] = (cera_prop){map->keys[i], cera_goal_schema(s, &map->items[i])};
    }
    o->props = p;
    o->n_props = n;
}

static void read_required(cera_schema *s, const cera_json *node, cera_obj *o) {
    const cera_json *v = cera_json_get(node, "required");
    if (!v) return;
    if (v->kind != CERA_JSON_ARRAY) {
        cera_schema_fail(s, CERA_ERR_FORMAT, node, "required", "must be an array of names");
        return;
    }
    cera_text_view *r = cera_schema_alloc(s, v->n, sizeof *r);
    for (uint32_t i = 0; r && i < v->n; i++) {
        if (v->items[i].kind != CERA_JSON_STRING) {
            cera_schema_fail(s, CERA_ERR_FORMAT, node, "required", "must be an array of names");
            return;
        }
        uint32_t k = 0;
        cera_text_view name = v->items[i].text;
        while (k < o->n_required && !(r[k].size == name.size && !memcmp(r[k].text, name.text, name.size))) k++;
        if (k == o->n_required) r[o->n_required++] = name;
    }
    o->required = r;
}

static cera_expr pattern_of(cera_schema *s, const cera_json *node, cera_text_view text) {
    cera_expr x = CERA_EXPR_EMPTY;
    cera_error e = {0};
    if (cera_regex_compile(s->a, text.text, text.size, false, &x, &e) != CERA_OK)
        cera_schema_fail(s, e.code, node, "patternProperties", e.message);
    return x;
}

/* patternProperties, and additionalProperties as "the others", and propertyNames as "what does not match may not be". */
static void read_patterns(cera_schema *s, const cera_json *node, cera_obj *o) {
    const cera_json *map = map_at(s, node, "patternProperties"), *more = cera_json_get(node, "additionalProperties");
    const cera_json *names = s->draft == CERA_DRAFT_4 ? NULL : cera_json_get(node, "propertyNames");
    uint32_t n_map = map ? map->n : 0, n = 0;
    if (!map && !more && !names) return;
    cera_rule_for *p = cera_schema_alloc(s, n_map + 2, sizeof *p);
    cera_expr *x = cera_schema_alloc(s, n_map + 1, sizeof *x);
    if (!p || !x) return;
    for (uint32_t i = 0; i < n_map; i++) {
        x[i] = pattern_of(s, node, map->keys[i]);
        p[n++] = (cera_rule_for){{.patterns = &x[i], .n_patterns = 1}, cera_goal_schema(s, &map->items[i])};
    }
    if (more) {
        cera_text_view *known = cera_schema_alloc(s, o->n_props, sizeof *known);
        if (!known) return;
        for (uint32_t i = 0; i < o->n_props; i++) known[i] = o->props[i].name;
        p[n++] = (cera_rule_for){{.others = true, .names = known, .n_names = o->n_props, .patterns = x, .n_patterns = n_map},
                                 cera_goal_schema(s, more)};
    }
    if (names) {
        const cera_nf *nf = cera_goal_nf(s, cera_goal_schema(s, names));
        if (!nf) return;
        x[n_map] = nf->str;
        if (nf->str != s->all_text)
            p[n++] = (cera_rule_for){{.others = true, .patterns = &x[n_map], .n_patterns = 1}, CERA_GOAL_FALSE};
    }
    o->pats = p;
    o->n_pats = n;
}

cera_obj cera_schema_object(cera_schema *s, const cera_json *node) {
    cera_obj o = {.max = CERA_NO_MAX};
    const cera_json *map = map_at(s, node, "properties");
    if (map) read_properties(s, map, &o);
    read_required(s, node, &o);
    read_patterns(s, node, &o);
    cera_schema_count(s, node, "minProperties", &o.min);
    cera_schema_count(s, node, "maxProperties", &o.max);
    return o;
}
