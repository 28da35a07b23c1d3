/* schema_write.c: goals as expressions. A value is a rule; an object or array in progress is a macro over its shape and what
 * has been seen of it (which members, how many, which conditions are met), written out when the automaton first stands there.
 * Does not own: shapes (schema_shape.c). */
#include "sample/schema_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"

static cera_expr cat(cera_schema *s, cera_expr x, cera_expr y) { return cera_expr_cat(s->a, x, y); }
static cera_expr text(cera_schema *s, const char *t) { return cera_expr_text(s->a, t); }

static uint64_t macro_hash(const cera_schema *s, const cera_macro *m) {
    uint64_t h = cera_hash_mix((uint64_t)m->kind << 32 | m->shape, (uint64_t)m->position << 32 | m->exists);
    h = cera_hash_mix(h, m->count);
    h = cera_hash64(m->counts, sizeof m->counts, h);
    return m->n_words ? cera_hash64(s->words + m->words, m->n_words * sizeof *s->words, h) : h;
}

static bool macro_same(const cera_schema *s, const cera_macro *x, const cera_macro *y) {
    return x->kind == y->kind && x->shape == y->shape && x->position == y->position && x->exists == y->exists &&
           x->count == y->count && !memcmp(x->counts, y->counts, sizeof x->counts) && x->n_words == y->n_words &&
           (!x->n_words || !memcmp(s->words + x->words, s->words + y->words, x->n_words * sizeof *s->words));
}

/* m's words, when it has any, are the last of the pool: they are given back when an equal macro is there. */
static cera_expr intern(cera_schema *s, cera_macro m) {
    uint32_t *bucket = &s->macro_buckets[macro_hash(s, &m) & 1023];
    for (uint32_t i = *bucket; i; i = s->macros[i - 1].next)
        if (macro_same(s, &s->macros[i - 1], &m)) {
            s->n_words -= m.n_words;
            return cera_expr_macro(s->a, i - 1);
        }
    if (!cera_automaton_grow(s->a, (void **)&s->macros, s->n_macros, 1, &s->cap_macros, sizeof *s->macros))
        return CERA_EXPR_EMPTY;
    m.next = *bucket;
    s->macros[s->n_macros] = m;
    *bucket = ++s->n_macros;
    return cera_expr_macro(s->a, s->n_macros - 1);
}

static bool seen(const cera_schema *s, const cera_macro *m, uint32_t i) { return s->words[m->words + i / 64] >> (i & 63) & 1; }

/* A copy of m's words at the pool's end with bit i set (UINT32_MAX: none). */
static bool copy_words(cera_schema *s, const cera_macro *m, uint32_t n_words, uint32_t i, cera_macro *to) {
    to->n_words = n_words;
    if (!n_words) return true;
    if (!cera_automaton_grow(s->a, (void **)&s->words, s->n_words, n_words, &s->cap_words, sizeof *s->words)) return false;
    if (m)
        memcpy(s->words + s->n_words, s->words + m->words, n_words * sizeof *s->words);
    else
        memset(s->words + s->n_words, 0, n_words * sizeof *s->words);
    to->words = s->n_words;
    s->n_words += n_words;
    if (i != UINT32_MAX) s->words[to->words + i / 64] |= 1ull << (i & 63);
    return true;
}

/* ---- objects
 * ------------------------------------------------------------------------------------------------------------------------- */

typedef struct options {
    cera_expr *at;
    uint32_t n, capacity;
} options;

static void add_option(cera_schema *s, options *o, cera_expr x) {
    if (x != CERA_EXPR_EMPTY && cera_automaton_grow(s->a, (void **)&o->at, o->n, 1, &o->capacity, sizeof *o->at))
        o->at[o->n++] = x;
}

static bool key_open(const cera_schema *s, const cera_shape *o, const cera_macro *m, uint32_t i) {
    if (o->keys[i].goal == CERA_GOAL_FALSE) return false;
    return s->any_order ? !seen(s, m, i) : i >= m->position;
}

typedef struct left {
    uint64_t required, available;
} left; /* members that must, and may, still come */

static left members_left(const cera_schema *s, const cera_shape *o, const cera_macro *m) {
    left l = {0};
    for (uint32_t i = 0; i < o->n_keys; i++) {
        if (!key_open(s, o, m, i)) continue;
        l.available++;
        l.required += o->keys[i].required;
    }
    if (o->n_rest) l.available = CERA_NO_MAX;
    return l;
}

static bool counted(const cera_shape *o) { return o->min || o->max != CERA_NO_MAX; }

/* key UINT32_MAX: one of the others. */
static cera_macro after_member(cera_schema *s, const cera_shape *o, const cera_macro *m, uint32_t key, uint32_t exists) {
    cera_macro to = {.kind = CERA_M_NEXT, .shape = m->shape, .exists = m->exists | exists};
    if (counted(o)) to.count = o->max == CERA_NO_MAX && m->count >= o->min ? o->min : m->count + 1;
    if (s->any_order)
        copy_words(s, m, m->n_words, key, &to);
    else
        to.position = key == UINT32_MAX ? o->n_keys : key + 1;
    return to;
}

/* Whether each condition that is not met yet could be met by some member that may still come. */
static bool conditions_open(cera_schema *s, const cera_shape *o, const cera_macro *m) {
    for (uint32_t e = 0; e < o->n_exists; e++) {
        bool open = m->exists >> e & 1;
        for (uint32_t i = 0; i < o->n_keys + o->n_rest && !open; i++) {
            cera_goal g = i < o->n_keys ? o->keys[i].goal : o->rest[i - o->n_keys].goal;
            uint32_t exists = i < o->n_keys ? o->keys[i].exists : o->rest[i - o->n_keys].exists;
            if (!(exists >> e & 1) || (i < o->n_keys && !key_open(s, o, m, i))) continue;
            g = cera_goal_and(s, g, o->exists[e].goal);
            open = g != CERA_GOAL_FALSE && s->goals[g].productive;
        }
        if (!open) return false;
    }
    return o->max == CERA_NO_MAX || m->count < o->max || m->exists == (1u << o->n_exists) - 1;
}

/* From the start, for the search for shapes that have instances. */
bool cera_object_can_finish(cera_schema *s, const cera_shape *o) {
    cera_macro m = {0};
    if (!o->n_exists) return true;
    if (s->any_order && !copy_words(s, NULL, (o->n_keys + 63) / 64, UINT32_MAX, &m)) return false;
    bool open = conditions_open(s, o, &m);
    s->n_words -= m.n_words;
    return open;
}

/* The member's name is at `head`, written once; its value may meet any of the conditions in `exists` that are open, or none. */
static void add_member(cera_schema *s, const cera_shape *o, const cera_macro *m, options *list, cera_expr head, uint32_t key,
                       cera_goal goal, uint32_t exists) {
    options values = {0};
    exists &= ~m->exists;
    for (uint32_t set = exists;; set = (set - 1) & exists) {
        cera_goal g = goal;
        for (uint32_t i = 0; i < o->n_exists; i++)
            if (set >> i & 1) g = cera_goal_and(s, g, o->exists[i].goal);
        if (g != CERA_GOAL_FALSE && s->goals[g].productive) {
            cera_macro next = after_member(s, o, m, key, set);
            if (conditions_open(s, o, &next))
                add_option(s, &values, cat(s, cera_expr_call(s->a, g + 1), intern(s, next)));
            else
                s->n_words -= next.n_words;
        }
        if (!set) break;
    }
    add_option(s, list, cat(s, head, cera_expr_or(s->a, values.at, values.n)));
    free(values.at);
}

static cera_expr name_end(cera_schema *s) { return cat(s, text(s, "\""), cat(s, s->ws, cat(s, text(s, ":"), s->ws_after))); }

static cera_expr members(cera_schema *s, const cera_shape *o, const cera_macro *m, left l) {
    options list = {0};
    bool free_place = o->max == CERA_NO_MAX || l.required < o->max - m->count, blocked = false;
    if (counted(o) && m->count >= o->max && o->max != CERA_NO_MAX) return CERA_EXPR_EMPTY;
    for (uint32_t i = 0; i < o->n_keys && !blocked && cera_schema_ok(s); i++) {
        cera_shape_key *k = &o->keys[i];
        if (!key_open(s, o, m, i)) continue;
        blocked = !s->any_order && k->required;
        if (!free_place && !k->required) continue;
        if (!o->n_rest && !s->any_order && counted(o)) { /* what is skipped cannot come again */
            cera_macro after = {.position = i + 1};
            if (members_left(s, o, &after).available + 1 + m->count < o->min) break;
        }
        if (!k->head) k->head = cat(s, cera_expr_literal(s->a, k->name.text, k->name.size), name_end(s));
        add_member(s, o, m, &list, k->head, i, k->goal, k->exists);
    }
    for (uint32_t i = 0; i < o->n_rest && !blocked && free_place && cera_schema_ok(s); i++) {
        cera_shape_rest *r = &o->rest[i];
        if (!r->head) r->head = cat(s, r->name, name_end(s));
        add_member(s, o, m, &list, r->head, UINT32_MAX, r->goal, r->exists);
    }
    cera_expr x = cat(s, text(s, "\""), cera_expr_or(s->a, list.at, list.n));
    free(list.at);
    return x;
}

static cera_expr close_or(cera_schema *s, const cera_macro *m, bool can_close, const char *end, cera_expr more) {
    cera_expr x = m->kind == CERA_M_FIRST ? more : cat(s, text(s, ","), cat(s, s->ws_after, more));
    return cat(s, s->ws, cera_expr_or2(s->a, x, can_close ? text(s, end) : CERA_EXPR_EMPTY));
}

static cera_expr write_object(cera_schema *s, const cera_macro *m) {
    cera_shape o = s->shapes[m->shape];
    left l = members_left(s, &o, m);
    bool can_close = !l.required && m->count >= o.min && m->exists == (1u << o.n_exists) - 1;
    return close_or(s, m, can_close, "}", members(s, &o, m, l));
}

/* ---- arrays
 * -------------------------------------------------------------------------------------------------------------------------- */

static cera_goal element_at(const cera_arr *x, uint64_t index) { return index < x->n_prefix ? x->prefix[index] : x->rest; }

/* From here on indices need not be told apart. */
static uint64_t last_index(const cera_arr *x) {
    uint64_t cap = x->n_prefix > x->min ? x->n_prefix : x->min;
    for (uint32_t i = 0; i < x->n_contains; i++)
        if (x->contains[i].from > cap) cap = x->contains[i].from;
    return x->max != CERA_NO_MAX ? x->max : cap;
}

static cera_macro after_element(const cera_shape *shape, const cera_macro *m, uint32_t mask) {
    const cera_arr *x = shape->arr;
    cera_macro to = {.kind = CERA_M_NEXT, .shape = m->shape, .position = m->position};
    if (to.position < last_index(x)) to.position++;
    for (uint32_t i = 0; i < x->n_contains; i++) {
        const cera_contains *c = &x->contains[i];
        uint64_t most = c->max == CERA_NO_MAX ? c->min : c->max + 1;
        to.counts[i] = m->counts[i];
        if ((mask >> i & 1) && to.counts[i] < most) to.counts[i]++;
    }
    return to;
}

/* The goal of an element that meets exactly the conditions in mask (those with an upper bound are otherwise excluded). */
cera_goal cera_schema_element(cera_schema *s, const cera_arr *x, uint64_t index, uint32_t mask) {
    cera_goal g = element_at(x, index);
    for (uint32_t i = 0; i < x->n_contains; i++) {
        const cera_contains *c = &x->contains[i];
        if (index < c->from) continue;
        if (mask >> i & 1)
            g = cera_goal_and(s, g, c->goal);
        else if (c->max != CERA_NO_MAX)
            g = cera_goal_and(s, g, cera_goal_not(s, c->goal));
    }
    return g;
}

enum { MAX_REACH = 400 };
typedef struct place {
    uint64_t position;
    uint32_t counts[4];
} place;
typedef struct places {
    place at[MAX_REACH];
    uint32_t n;
} places;

static bool array_may_close(const cera_shape *shape, const cera_macro *m);

static bool add_place(places *p, const cera_macro *m) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->at[i].position == m->position && !memcmp(p->at[i].counts, m->counts, sizeof m->counts)) return true;
    if (p->n == MAX_REACH) return false;
    place *to = &p->at[p->n++];
    to->position = m->position;
    memcpy(to->counts, m->counts, sizeof m->counts);
    return true;
}

/* The macro after an element that meets the conditions in set, when there can be such an element. */
static bool element_after(cera_schema *s, const cera_shape *shape, const cera_macro *m, uint32_t set, cera_goal *goal,
                          cera_macro *next) {
    const cera_arr *x = shape->arr;
    for (uint32_t i = 0; i < x->n_contains; i++)
        if ((set >> i & 1) && m->counts[i] >= x->contains[i].max) return false;
    *goal = cera_schema_element(s, x, m->position, set);
    *next = after_element(shape, m, set);
    return *goal != CERA_GOAL_FALSE && s->goals[*goal].productive;
}

static uint32_t active_conditions(const cera_arr *x, const cera_macro *m) {
    uint32_t active = 0;
    for (uint32_t i = 0; i < x->n_contains; i++) {
        bool needed = x->contains[i].max != CERA_NO_MAX || m->counts[i] < x->contains[i].min;
        if (m->position >= x->contains[i].from && needed) active |= 1u << i;
    }
    return active;
}

/* A walk over positions and counts; true when it would be too long to tell. */
bool cera_array_can_finish(cera_schema *s, const cera_shape *shape, const cera_macro *from) {
    places p = {.n = 0};
    add_place(&p, from);
    for (uint32_t i = 0; i < p.n && cera_schema_ok(s); i++) {
        cera_macro m = {.shape = from->shape, .position = (uint32_t)p.at[i].position}, next;
        memcpy(m.counts, p.at[i].counts, sizeof m.counts);
        if (array_may_close(shape, &m)) return true;
        if (m.position >= shape->limit || m.position >= shape->arr->max) continue; /* no limit is the largest number */
        uint32_t active = active_conditions(shape->arr, &m);
        for (uint32_t set = active;; set = (set - 1) & active) {
            cera_goal g;
            if (element_after(s, shape, &m, set, &g, &next) && !add_place(&p, &next)) return true;
            if (!set) break;
        }
    }
    return false;
}

static void counted_elements(cera_schema *s, const cera_shape *shape, const cera_macro *m, options *list) {
    uint32_t active = active_conditions(shape->arr, m);
    for (uint32_t set = active;; set = (set - 1) & active) {
        cera_goal g;
        cera_macro next;
        if (element_after(s, shape, m, set, &g, &next) && cera_array_can_finish(s, shape, &next))
            add_option(s, list, cat(s, cera_expr_call(s->a, g + 1), intern(s, next)));
        if (!set) return;
    }
}

static void unique_elements(cera_schema *s, const cera_shape *shape, const cera_macro *m, options *list) {
    for (uint32_t i = 0; i < shape->n_universe && cera_schema_ok(s); i++) {
        if (seen(s, m, i)) continue;
        cera_goal g = cera_goal_and(s, element_at(shape->arr, m->position), shape->universe[i]);
        if (g == CERA_GOAL_FALSE || !s->goals[g].productive) continue;
        cera_macro next = after_element(shape, m, 0);
        if (!copy_words(s, m, m->n_words, i, &next)) return;
        add_option(s, list, cat(s, cera_expr_call(s->a, g + 1), intern(s, next)));
    }
}

/* The rest of an array whose elements are all alike: a counted loop. */
static cera_expr plain_tail(cera_schema *s, const cera_shape *shape, const cera_macro *m) {
    const cera_arr *x = shape->arr;
    uint64_t lo = x->min > m->position ? x->min - m->position : 0,
             hi = shape->limit == CERA_NO_MAX ? shape->limit : shape->limit - m->position;
    cera_expr element = cat(s, cat(s, s->ws, cat(s, text(s, ","), s->ws_after)), cera_expr_call(s->a, x->rest + 1));
    cera_expr loop = cera_expr_rep(s->a, element, (uint32_t)lo, hi >= CERA_REP_INF ? CERA_REP_INF : (uint32_t)hi);
    return cat(s, loop, cat(s, s->ws, text(s, "]")));
}

static bool array_may_close(const cera_shape *shape, const cera_macro *m) {
    const cera_arr *x = shape->arr;
    if (m->position < x->min) return false;
    for (uint32_t i = 0; i < x->n_contains; i++)
        if (m->counts[i] < x->contains[i].min || m->counts[i] > x->contains[i].max) return false;
    return true;
}

static cera_expr write_array(cera_schema *s, const cera_macro *m) {
    cera_shape shape = s->shapes[m->shape];
    const cera_arr *x = shape.arr;
    bool plain = !x->n_contains && !shape.n_universe;
    options list = {0};
    if (plain && m->kind == CERA_M_NEXT && m->position >= x->n_prefix) return plain_tail(s, &shape, m);
    if (m->position < shape.limit || shape.limit == CERA_NO_MAX) {
        if (plain) {
            cera_macro next = after_element(&shape, m, 0);
            next.position = m->position + 1;
            add_option(s, &list, cat(s, cera_expr_call(s->a, element_at(x, m->position) + 1), intern(s, next)));
        } else if (shape.n_universe)
            unique_elements(s, &shape, m, &list);
        else
            counted_elements(s, &shape, m, &list);
    }
    cera_expr more = cera_expr_or(s->a, list.at, list.n);
    free(list.at);
    return close_or(s, m, array_may_close(&shape, m), "]", more);
}

/* ---- values
 * -------------------------------------------------------------------------------------------------------------------------- */

cera_expr cera_schema_macro(void *owner, uint32_t payload) {
    cera_schema *s = owner;
    cera_macro m = s->macros[payload]; /* a copy: new macros move the array */
    cera_expr x = s->shapes[m.shape].is_object ? write_object(s, &m) : write_array(s, &m);
    if (s->status) cera_automaton_fail(s->a, s->status, "the schema's combinations grow too large");
    return x;
}

static cera_expr write_shape(cera_schema *s, uint32_t i) {
    const cera_shape *shape = &s->shapes[i];
    if (shape->dead) return CERA_EXPR_EMPTY;
    cera_macro m = {.kind = CERA_M_FIRST, .shape = i};
    uint32_t bits = shape->is_object ? (s->any_order ? shape->n_keys : 0) : shape->n_universe;
    bool is_object = shape->is_object;
    if (!copy_words(s, NULL, (bits + 63) / 64, UINT32_MAX, &m)) return CERA_EXPR_EMPTY;
    return cat(s, text(s, is_object ? "{" : "["), intern(s, m));
}

cera_expr cera_schema_rule(void *owner, uint32_t rule) {
    cera_schema *s = owner;
    if (rule == 0)
        return s->goals[s->root_goal].productive ? cat(s, s->ws, cat(s, cera_expr_call(s->a, s->root_goal + 1), s->ws))
                                                 : CERA_EXPR_EMPTY;
    cera_goal_info g = s->goals[rule - 1];
    const cera_nf *nf = g.nf;
    options list = {0};
    if (!g.productive || !nf) return CERA_EXPR_EMPTY;
    if (nf->null) add_option(s, &list, text(s, "null"));
    if (nf->bools & 1) add_option(s, &list, text(s, "false"));
    if (nf->bools & 2) add_option(s, &list, text(s, "true"));
    if (nf->n_num) add_option(s, &list, g.number != UINT32_MAX ? g.number : cera_number_expr(s, nf->num, nf->n_num));
    if (nf->str != CERA_EXPR_EMPTY) add_option(s, &list, cat(s, text(s, "\""), cat(s, nf->str, text(s, "\""))));
    for (uint32_t i = 0; i < g.n_shapes; i++) add_option(s, &list, write_shape(s, g.first_shape + i));
    cera_expr x = cera_expr_or(s->a, list.at, list.n);
    free(list.at);
    return x;
}
