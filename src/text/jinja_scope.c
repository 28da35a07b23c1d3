/* jinja_scope.c: which variable a name means. jinja2 compiles a template to Python functions and decides at compile time, scope
 * by scope, whether a name is read from the context, from an outer scope, or starts undefined; templates depend on the details
 * (a `set` in a loop does not leave it, one in an `if` does). This file makes the same decisions: every name becomes a place in
 * the variables of some enclosing function. It agrees with jinja2 3.1's symbol tracking by test (tests/golden/jinja_test.py).
 */
#include <string.h>
#include "text/jinja_int.h"

typedef struct symbol {
    cera_jval name;
    cera_jentry entry;
    bool stored;
} symbol;

/* The names of one scope. Scopes of one function share its slots by (level, name), as Python's locals do. */
typedef struct symbols {
    struct symbols *parent;
    struct function *func;
    uint32_t level;
    symbol *items;
    uint32_t n, capacity;
} symbols;

typedef struct slot_key {
    uint32_t level;
    cera_jval name;
} slot_key;

typedef struct function {
    cera_jfunc *out;
    struct function *outer;
    slot_key *slots;
    uint32_t capacity;
} function;

typedef struct resolver {
    cera_jinja *t;
    cera_error *e;
    cera_status status;
} resolver;

static bool no_memory(resolver *z) {
    if (z->status == CERA_OK) z->status = cera_fail(z->e, CERA_ERR_MEMORY, "template: out of memory");
    return false;
}

static bool same(const cera_jval *a, const cera_jval *b) {
    return a->n == b->n &&
           (cera_jinja_chars(a) == cera_jinja_chars(b) || !memcmp(cera_jinja_chars(a), cera_jinja_chars(b), a->n));
}

static bool slot_of(resolver *z, function *f, uint32_t level, const cera_jval *name, uint32_t *slot) {
    for (uint32_t i = 0; i < f->out->n_slots; i++)
        if (f->slots[i].level == level && same(&f->slots[i].name, name)) return *slot = i, true;
    if (f->out->n_slots == f->capacity) {
        uint32_t capacity = f->capacity ? 2 * f->capacity : 16;
        slot_key *slots = cera_jinja_alloc(&z->t->mem, capacity, sizeof *slots);
        if (!slots) return no_memory(z);
        if (f->capacity) memcpy(slots, f->slots, f->capacity * sizeof *slots);
        f->slots = slots;
        f->capacity = capacity;
    }
    f->slots[f->out->n_slots] = (slot_key){level, *name};
    *slot = f->out->n_slots++;
    return true;
}

static symbol *own(symbols *s, const cera_jval *name) {
    for (uint32_t i = 0; i < s->n; i++)
        if (same(&s->items[i].name, name)) return &s->items[i];
    return NULL;
}

static symbol *find(symbols *s, const cera_jval *name, symbols **where) {
    for (; s; s = s->parent) {
        symbol *x = own(s, name);
        if (!x) continue;
        *where = s;
        return x;
    }
    return NULL;
}

static uint32_t hops(const function *from, const function *to) {
    uint32_t n = 0;
    for (; from != to; from = from->outer) n++;
    return n;
}

static symbol *define(resolver *z, symbols *s, const cera_jval *name, cera_jload load) {
    symbol *x = own(s, name);
    if (!x) {
        if (s->n == s->capacity) {
            uint32_t capacity = s->capacity ? 2 * s->capacity : 8;
            symbol *items = cera_jinja_alloc(&z->t->mem, capacity, sizeof *items);
            if (!items) return no_memory(z), NULL;
            if (s->n) memcpy(items, s->items, s->n * sizeof *items);
            s->items = items;
            s->capacity = capacity;
        }
        x = &s->items[s->n++];
        *x = (symbol){.name = *name};
    }
    x->entry.load = load;
    x->entry.name = *name;
    return slot_of(z, s->func, s->level, name, &x->entry.slot) ? x : NULL;
}

/* The variable comes from an outer scope when there is one, else from the context or nowhere. */
static void set_origin(symbols *s, symbol *x, cera_jload otherwise) {
    symbols *where;
    symbol *outer = s->parent ? find(s->parent, &x->name, &where) : NULL;
    x->entry.load = outer ? LOAD_ALIAS : otherwise;
    if (outer) {
        x->entry.from_depth = hops(s->func, where->func);
        x->entry.from_slot = outer->entry.slot;
    }
}

static bool see_load(resolver *z, symbols *s, const cera_jval *name) {
    symbols *where;
    return find(s, name, &where) || define(z, s, name, LOAD_RESOLVE);
}

static bool see_store(resolver *z, symbols *s, const cera_jval *name) {
    symbol *x = own(s, name);
    if (!x) {
        x = define(z, s, name, LOAD_UNDEFINED);
        if (!x) return false;
        set_origin(s, x, LOAD_UNDEFINED);
    }
    x->stored = true;
    return true;
}

static bool see_parameter(resolver *z, symbols *s, const cera_jval *name, uint32_t *slot) {
    symbol *x = define(z, s, name, LOAD_PARAMETER);
    if (!x) return false;
    x->stored = true;
    if (slot) *slot = x->entry.slot + 1;
    return true;
}

static bool copy_symbols(resolver *z, const symbols *s, symbols *out) {
    *out = *s;
    out->capacity = s->n + 8;
    out->items = cera_jinja_alloc(&z->t->mem, out->capacity, sizeof *out->items);
    if (!out->items) return no_memory(z);
    if (s->n) memcpy(out->items, s->items, s->n * sizeof *out->items);
    return true;
}

/* After an `if`: what a branch defined is known; what it newly stored starts as what it is outside. */
static bool merge_branches(resolver *z, symbols *s, symbols *branches, int n_branches) {
    for (int b = 0; b < n_branches; b++) {
        for (uint32_t i = 0; i < branches[b].n; i++) {
            const symbol *x = &branches[b].items[i];
            symbol *mine = own(s, &x->name);
            if (mine && mine->stored) continue;
            if (!mine && !(mine = define(z, s, &x->name, x->entry.load))) return false;
            mine->entry = x->entry;
            if (!x->stored) continue;
            set_origin(s, mine, LOAD_RESOLVE);
            mine->stored = true;
        }
    }
    return true;
}

/* ---- what a scope sees: its own statements, not the inside of inner scopes --------------------------------------- */

static bool see(resolver *z, symbols *s, const cera_jnode *n);

static bool see_all(resolver *z, symbols *s, cera_jnode *const *kids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!see(z, s, kids[i])) return false;
    return true;
}

static bool see_target(resolver *z, symbols *s, const cera_jnode *n, bool parameter) {
    if (n->type == N_NAME) return parameter ? see_parameter(z, s, &n->value, NULL) : see_store(z, s, &n->value);
    if (n->type == N_NSREF) return see_load(z, s, &n->a->value);
    for (uint32_t i = 0; i < n->n; i++)
        if (!see_target(z, s, n->kids[i], parameter)) return false;
    return true;
}

static bool see_if(resolver *z, symbols *s, const cera_jnode *n) {
    symbols branches[3];
    if (!see(z, s, n->kids[0])) return false;
    for (int b = 0; b < 3; b++)
        if (!copy_symbols(z, s, &branches[b])) return false;
    if (!see(z, &branches[0], n->kids[1])) return false;
    for (uint32_t i = 2; i < n->n; i += 2) {
        symbols inner;
        if (!see(z, &branches[1], n->kids[i]) || !copy_symbols(z, &branches[1], &inner)) return false;
        if (!see(z, &inner, n->kids[i + 1]) || !merge_branches(z, &branches[1], &inner, 1)) return false;
    }
    if (n->c && !see(z, &branches[2], n->c)) return false;
    return merge_branches(z, s, branches, 3);
}

static bool see(resolver *z, symbols *s, const cera_jnode *n) {
    if (!n) return true;
    switch (n->type) {
    case N_NAME: return see_load(z, s, &n->value);
    case N_IF: return see_if(z, s, n);
    case N_FOR: return see(z, s, n->b);
    case N_MACRO: return see_store(z, s, &n->value);
    case N_CALLBLOCK: return see(z, s, n->c);
    case N_FILTERBLOCK: return see(z, s, n->a);
    case N_SET: return see(z, s, n->b) && see_target(z, s, n->a, false);
    case N_SETBLOCK: return see_target(z, s, n->a, false);
    case N_SCOPE: return true;
    case N_WITH:
        for (uint32_t i = 1; i < n->n; i += 2)
            if (!see(z, s, n->kids[i])) return false;
        return true;
    default:
        return see_all(z, s, n->kids, n->n) && see(z, s, n->a) && see(z, s, n->b) && see(z, s, n->c) && see(z, s, n->star) &&
               see(z, s, n->starstar);
    }
}

/* True when the name is read in these statements (also inside inner scopes) before anything assigns it. */
static int reads_name(const cera_jnode *n, const char *name) { /* 1 read, -1 assigned first, 0 neither */
    if (!n) return 0;
    if (n->type == N_NAME) return cera_jinja_str_is(&n->value, name);
    const cera_jnode *first = n->type == N_SET ? n->b : n->a, *second = n->type == N_SET ? n->a : n->b;
    if (n->type == N_SET || n->type == N_SETBLOCK || n->type == N_FOR) {
        if (n->a->type == N_NAME && cera_jinja_str_is(&n->a->value, name))
            return n->type == N_SET && reads_name(n->b, name) == 1 ? 1 : -1;
    }
    if (n->type == N_MACRO || n->type == N_CALLBLOCK)
        for (uint32_t i = 0; i < n->n; i++)
            if (cera_jinja_str_is(&n->kids[i]->value, name)) return -1;
    const cera_jnode *const parts[] = {first, second, n->c, n->star, n->starstar};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int found = reads_name(parts[i], name);
        if (found) return found;
    }
    for (uint32_t i = 0; i < n->n; i++) {
        int found = reads_name(n->kids[i], name);
        if (found) return found;
    }
    return 0;
}

/* ---- walking: scopes are made, names get their places ------------------------------------------------------------ */

static bool walk(resolver *z, symbols *s, cera_jnode *n, bool soft, bool in_loop);

static bool walk_all(resolver *z, symbols *s, cera_jnode **kids, uint32_t n, bool soft, bool in_loop) {
    for (uint32_t i = 0; i < n; i++)
        if (!walk(z, s, kids[i], soft, in_loop)) return false;
    return true;
}

static symbols inner_scope(symbols *s, function *f) { return (symbols){.parent = s, .func = f, .level = s->level + 1}; }

static bool keep_scope(resolver *z, const symbols *s, cera_jscope *out) {
    out->n = s->n;
    out->entries = cera_jinja_alloc(&z->t->mem, s->n, sizeof *out->entries);
    if (!out->entries) return no_memory(z);
    for (uint32_t i = 0; i < s->n; i++) out->entries[i] = s->items[i].entry;
    return true;
}

static bool new_function(resolver *z, function *outer, function *f, cera_jfunc **out) {
    *f = (function){.outer = outer};
    f->out = *out = cera_jinja_alloc(&z->t->mem, 1, sizeof **out);
    return f->out ? true : no_memory(z);
}

static bool refuse_loop_target(resolver *z, const cera_jnode *n) {
    if (n->type == N_NAME && cera_jinja_str_is(&n->value, "loop")) {
        z->status = cera_fail(z->e, CERA_ERR_FORMAT,
                              "template line %u: Can't assign to special loop variable in for-loop target", n->line);
        return false;
    }
    for (uint32_t i = 0; n->type == N_TUPLE && i < n->n; i++)
        if (!refuse_loop_target(z, n->kids[i])) return false;
    return true;
}

static cera_jnode *copy_target(resolver *z, const cera_jnode *n) {
    cera_jnode *copy = cera_jinja_alloc(&z->t->mem, 1, sizeof *copy);
    if (!copy) return no_memory(z), NULL;
    *copy = *n;
    if (n->n) copy->kids = cera_jinja_alloc(&z->t->mem, n->n, sizeof *copy->kids);
    if (n->n && !copy->kids) return no_memory(z), NULL;
    for (uint32_t i = 0; i < n->n; i++)
        if (!(copy->kids[i] = copy_target(z, n->kids[i]))) return NULL;
    return copy;
}

static bool walk_loop_filter(resolver *z, symbols *s, cera_jnode *n) {
    function f;
    if (!new_function(z, s->func, &f, &n->test_func)) return false;
    symbols test = inner_scope(s, &f);
    n->test_target = copy_target(z, n->a);
    return n->test_target && see_target(z, &test, n->a, true) && see(z, &test, n->c) && keep_scope(z, &test, &n->scope3) &&
           walk(z, &test, n->test_target, false, false) && walk(z, &test, n->c, false, false);
}

static bool walk_for(resolver *z, symbols *s, cera_jnode *n, bool soft, bool in_loop) {
    static const char loop_text[] = "loop";
    function f, *in = s->func;
    if (!refuse_loop_target(z, n->a)) return false;
    if (n->flag) {
        if (!new_function(z, s->func, &f, &n->func)) return false;
        in = &f;
    }
    symbols body = inner_scope(s, in), otherwise = inner_scope(s, in);
    if (n->flag || reads_name(n->kids[0], loop_text) == 1) {
        cera_jbuf *b = cera_jinja_alloc(&z->t->mem, 1, sizeof *b);
        if (!b) return no_memory(z);
        *b = (cera_jbuf){.data = (char *)loop_text, .used = 4, .ascii = true};
        cera_jval loop = {.kind = J_STR, .n = 4, .u.buf = b};
        if (!see_parameter(z, &body, &loop, &n->loop_slot)) return false;
    }
    if (!see_target(z, &body, n->a, true) || !see(z, &body, n->kids[0]) || !keep_scope(z, &body, &n->scope)) return false;
    if (n->n > 1 && (!see(z, &otherwise, n->kids[1]) || !keep_scope(z, &otherwise, &n->scope2))) return false;
    if (n->c && !walk_loop_filter(z, s, n)) return false;
    if (!walk(z, s, n->b, soft, false) || !walk(z, &body, n->a, false, false) || !walk(z, &body, n->kids[0], false, true))
        return false;
    return n->n < 2 || walk(z, &otherwise, n->kids[1], false, in_loop && !n->flag);
}

static bool special_parameter(resolver *z, symbols *s, const cera_jnode *n, const char *name, uint32_t *slot) {
    for (uint32_t i = 0; i < n->n; i++)
        if (cera_jinja_str_is(&n->kids[i]->value, name)) return true;
    if (reads_name(n->a, name) != 1) return true;
    cera_jbuf *b = cera_jinja_alloc(&z->t->mem, 1, sizeof *b);
    if (!b) return no_memory(z);
    *b = (cera_jbuf){.data = (char *)name, .used = (uint32_t)strlen(name), .ascii = true};
    cera_jval v = {.kind = J_STR, .n = b->used, .u.buf = b};
    return see_parameter(z, s, &v, slot);
}

/* A macro's or call block's own function. */
static bool walk_macro(resolver *z, symbols *s, cera_jnode *n) {
    function f;
    if (!new_function(z, s->func, &f, &n->func)) return false;
    symbols body = inner_scope(s, &f);
    for (uint32_t i = 0; i < n->n; i++)
        if (!see_parameter(z, &body, &n->kids[i]->value, NULL)) return false;
    if (!special_parameter(z, &body, n, "caller", &n->caller_slot) ||
        !special_parameter(z, &body, n, "kwargs", &n->kwargs_slot) ||
        !special_parameter(z, &body, n, "varargs", &n->varargs_slot))
        return false;
    if (!see(z, &body, n->b) || !see(z, &body, n->a) || !keep_scope(z, &body, &n->scope)) return false;
    return walk_all(z, &body, n->kids, n->n, false, false) && walk(z, &body, n->b, false, false) &&
           walk(z, &body, n->a, false, false);
}

static bool walk_macro_statement(resolver *z, symbols *s, cera_jnode *n, bool soft) {
    if (!walk_macro(z, s, n)) return false;
    if (n->type == N_CALLBLOCK) return walk(z, s, n->c, soft, false);
    n->slot = own(s, &n->value)->entry.slot; /* stored by see(), in this very scope */
    return true;
}

static bool walk_with(resolver *z, symbols *s, cera_jnode *n, bool in_loop) {
    symbols body = inner_scope(s, s->func);
    for (uint32_t i = 0; i < n->n; i += 2)
        if (!see_target(z, &body, n->kids[i], true) || !walk(z, s, n->kids[i + 1], false, false)) return false;
    if (!see(z, &body, n->a) || !keep_scope(z, &body, &n->scope)) return false;
    for (uint32_t i = 0; i < n->n; i += 2)
        if (!walk(z, &body, n->kids[i], false, false)) return false;
    return walk(z, &body, n->a, false, in_loop);
}

static bool walk_capture(resolver *z, symbols *s, cera_jnode *n, bool in_loop) {
    symbols body = inner_scope(s, s->func);
    cera_jnode *inside = n->type == N_SETBLOCK ? n->c : n->type == N_FILTERBLOCK ? n->b : n->a;
    cera_jnode *filter = n->type == N_SETBLOCK ? n->b : n->type == N_FILTERBLOCK ? n->a : NULL;
    if (!see(z, &body, inside) || !see(z, &body, filter) || !keep_scope(z, &body, &n->scope)) return false;
    if (n->type == N_SETBLOCK && !walk(z, s, n->a, false, false)) return false;
    return walk(z, &body, inside, false, in_loop) && walk(z, &body, filter, false, false);
}

static bool walk_name(resolver *z, symbols *s, cera_jnode *n) {
    symbols *where = NULL;
    const symbol *x = find(s, &n->value, &where);
    if (!x) { /* every scope saw its names before: not reached */
        z->status = cera_fail(z->e, CERA_ERR_FORMAT, "template line %u: a name has no scope", n->line);
        return false;
    }
    n->depth = hops(s->func, where->func);
    n->slot = x->entry.slot;
    return true;
}

static bool unknown_function(resolver *z, const cera_jnode *n) {
    z->status = cera_fail(z->e, CERA_ERR_FORMAT, "template line %u: No %s named '%.*s'.", n->line,
                          n->type == N_FILTER ? "filter" : "test", (int)n->value.n, cera_jinja_chars(&n->value));
    return false;
}

/* soft: inside an `if`, where jinja2 lets an unknown filter pass until it is used. */
static bool walk(resolver *z, symbols *s, cera_jnode *n, bool soft, bool in_loop) {
    if (!n) return true;
    switch (n->type) {
    case N_NAME: return walk_name(z, s, n);
    case N_NSREF: return walk_name(z, s, n->a);
    case N_FOR: return walk_for(z, s, n, soft, in_loop);
    case N_MACRO:
    case N_CALLBLOCK: return walk_macro_statement(z, s, n, soft);
    case N_WITH: return walk_with(z, s, n, in_loop);
    case N_SETBLOCK:
    case N_FILTERBLOCK:
    case N_SCOPE: return walk_capture(z, s, n, in_loop);
    case N_IF: return walk_all(z, s, n->kids, n->n, true, in_loop) && walk(z, s, n->c, true, in_loop);
    case N_BREAK:
    case N_CONTINUE:
        if (in_loop) return true;
        z->status = cera_fail(z->e, CERA_ERR_FORMAT, "template line %u: '%s' outside loop", n->line,
                              n->type == N_BREAK ? "break" : "continue");
        return false;
    case N_COND: return walk(z, s, n->a, true, false) && walk(z, s, n->b, true, false) && walk(z, s, n->c, true, false);
    case N_FILTER:
    case N_TEST:
        if (!n->builtin && !soft) return unknown_function(z, n);
        break;
    case N_BODY: return walk_all(z, s, n->kids, n->n, soft, in_loop);
    default: break;
    }
    return walk_all(z, s, n->kids, n->n, soft, false) && walk(z, s, n->a, soft, false) && walk(z, s, n->b, soft, false) &&
           walk(z, s, n->c, soft, false) && walk(z, s, n->star, soft, false) && walk(z, s, n->starstar, soft, false);
}

cera_status cera_jinja_resolve(cera_jinja *t, cera_error *e) {
    resolver z = {.t = t, .e = e};
    function f = {.out = &t->func};
    symbols top = {.func = &f};
    /* Every scope keeps what it does on entry; the root's is kept in the root body's node. */
    if (!see(&z, &top, t->root) || !keep_scope(&z, &top, &t->root->scope) || !walk(&z, &top, t->root, false, false))
        return z.status;
    return CERA_OK;
}
