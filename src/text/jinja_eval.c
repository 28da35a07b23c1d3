/* jinja_eval.c: the values of expressions, and calls of macros, methods and functions. Statements are in jinja_exec.c. */
#include <string.h>
#include "text/jinja_int.h"

cera_jact *cera_jinja_act_new(cera_jrender *r, const cera_jfunc *f, cera_jact *outer) {
    cera_jact *a = cera_jinja_alloc(&r->mem, 1, sizeof *a);
    if (a) a->slots = cera_jinja_alloc(&r->mem, f->n_slots, sizeof *a->slots);
    if (!a || !a->slots) return cera_jinja_no_memory(r), NULL;
    a->outer = outer;
    return a;
}

static cera_jval *place(cera_jact *act, uint32_t depth, uint32_t slot) {
    for (; depth; depth--) act = act->outer;
    return &act->slots[slot];
}

static bool resolve(cera_jrender *r, const cera_jval *name, cera_jval *out) {
    const char *text = cera_jinja_chars(name);
    cera_jval *value;
    if (!cera_jinja_dict_find(r, r->context, name, &value)) return false;
    if (value) return *out = *value, true;
    const cera_jbuiltin *global = cera_jinja_global(text, name->n);
    *out = global ? (cera_jval){.kind = J_BUILTIN, .u.builtin = global} : (cera_jval){0};
    return true;
}

bool cera_jinja_enter_scope(cera_jrender *r, cera_jact *act, const cera_jscope *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const cera_jentry *x = &s->entries[i];
        cera_jval *slot = &act->slots[x->slot];
        switch (x->load) {
        case LOAD_PARAMETER: break;
        case LOAD_UNDEFINED: *slot = (cera_jval){0}; break;
        case LOAD_ALIAS: *slot = *place(act, x->from_depth, x->from_slot); break;
        case LOAD_RESOLVE:
            if (!resolve(r, &x->name, slot)) return false;
            break;
        }
    }
    return true;
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

static bool assign_tuple(cera_jrender *r, cera_jact *act, const cera_jnode *target, const cera_jval *v) {
    cera_jiter it;
    cera_jlist *items = cera_jinja_list_new(r, target->n + 1);
    if (!items) return false;
    if (v->kind != J_UNDEFINED && v->kind != J_STR && v->kind < J_LIST)
        return cera_jinja_raise(r, "TypeError", "cannot unpack non-iterable %s object", cera_jinja_type_name(v));
    if (!cera_jinja_iter(r, v, &it)) return false;
    for (bool more = true; items->n <= target->n;) {
        cera_jval item;
        if (!cera_jinja_iter_next(r, &it, &item, &more)) return false;
        if (!more) break;
        if (!cera_jinja_list_add(r, items, &item)) return false;
    }
    if (items->n > target->n) return cera_jinja_raise(r, "ValueError", "too many values to unpack (expected %u)", target->n);
    if (items->n < target->n)
        return cera_jinja_raise(r, "ValueError", "not enough values to unpack (expected %u, got %u)", target->n, items->n);
    for (uint32_t i = 0; i < target->n; i++)
        if (!cera_jinja_assign(r, act, target->kids[i], &items->items[i])) return false;
    return true;
}

bool cera_jinja_assign(cera_jrender *r, cera_jact *act, const cera_jnode *target, const cera_jval *v) {
    if (target->type == N_TUPLE) return assign_tuple(r, act, target, v);
    if (target->type == N_NAME) {
        *place(act, target->depth, target->slot) = *v;
        return true;
    }
    const cera_jval *ns = place(act, target->a->depth, target->a->slot);
    if (ns->kind != J_NAMESPACE)
        return cera_jinja_raise(r, "TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    return cera_jinja_dict_set(r, ns->u.dict, &target->value, v);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

typedef struct arguments {
    cera_jlist pos, names, values;
} arguments;

static bool add_keyword(cera_jrender *r, arguments *a, const cera_jval *name, const cera_jval *value) {
    for (uint32_t i = 0; i < a->names.n; i++)
        if (a->names.items[i].n == name->n && !memcmp(cera_jinja_chars(&a->names.items[i]), cera_jinja_chars(name), name->n))
            return cera_jinja_raise(r, "TypeError", "got multiple values for keyword argument '%.*s'", (int)name->n,
                                    cera_jinja_chars(name));
    return cera_jinja_list_add(r, &a->names, name) && cera_jinja_list_add(r, &a->values, value);
}

static bool add_starred(cera_jrender *r, cera_jact *act, const cera_jnode *n, arguments *a) {
    cera_jval v;
    if (n->star) {
        cera_jlist *l;
        if (!cera_jinja_eval(r, act, n->star, &v) || !cera_jinja_to_list(r, &v, &l)) return false;
        for (uint32_t i = 0; i < l->n; i++)
            if (!cera_jinja_list_add(r, &a->pos, &l->items[i])) return false;
    }
    if (n->starstar) {
        if (!cera_jinja_eval(r, act, n->starstar, &v)) return false;
        if (v.kind != J_DICT)
            return cera_jinja_raise(r, "TypeError", "argument after ** must be a mapping, not %s", cera_jinja_type_name(&v));
        for (uint32_t i = 0; i < v.u.dict->n; i++) {
            if (v.u.dict->keys[i].kind != J_STR) return cera_jinja_raise(r, "TypeError", "keywords must be strings");
            if (!add_keyword(r, a, &v.u.dict->keys[i], &v.u.dict->values[i])) return false;
        }
    }
    return true;
}

/* The arguments of a call, filter or test node. */
static bool eval_arguments(cera_jrender *r, cera_jact *act, const cera_jnode *n, arguments *a) {
    uint32_t n_pos = n->n - n->n2;
    *a = (arguments){0};
    for (uint32_t i = 0; i < n->n; i++) {
        cera_jval v;
        if (!cera_jinja_eval(r, act, n->kids[i], &v)) return false;
        if (i < n_pos ? !cera_jinja_list_add(r, &a->pos, &v) : !add_keyword(r, a, &n->names[i - n_pos], &v)) return false;
    }
    return (!n->star && !n->starstar) || add_starred(r, act, n, a);
}

static cera_jargs as_args(const arguments *a) {
    return (cera_jargs){
        .pos = a->pos.items, .n_pos = a->pos.n, .names = a->names.items, .values = a->values.items, .n_names = a->names.n};
}

static int param_index(const char *params, const cera_jval *name) {
    int index = 0;
    for (const char *p = params; *p; index++) {
        if (*p == '!') p++;
        size_t n = strcspn(p, ",");
        if (n == name->n && !memcmp(p, cera_jinja_chars(name), n)) return index;
        p += n + (p[n] == ',');
    }
    return -1;
}

/* Arguments to p by their names; errors as Python words them. */
static bool bind(cera_jrender *r, const cera_jbuiltin *b, const cera_jargs *args, cera_jval p[J_MAX_PARAMS]) {
    uint32_t n_params = 0, n_required = 0;
    for (const char *c = b->params; *c; n_params++) {
        n_required += *c == '!';
        c += strcspn(c, ",");
        c += *c == ',';
    }
    memset(p, 0, J_MAX_PARAMS * sizeof *p);
    if (args->n_pos > n_params)
        return cera_jinja_raise(r, "TypeError", "%s() takes at most %u arguments (%u given)", b->name, n_params, args->n_pos);
    for (uint32_t i = 0; i < args->n_pos; i++) p[i] = args->pos[i];
    for (uint32_t i = 0; i < args->n_names; i++) {
        int at = param_index(b->params, &args->names[i]);
        if (at < 0)
            return cera_jinja_raise(r, "TypeError", "%s() got an unexpected keyword argument '%.*s'", b->name,
                                    (int)args->names[i].n, cera_jinja_chars(&args->names[i]));
        if (p[at].kind != J_MISSING)
            return cera_jinja_raise(r, "TypeError", "%s() got multiple values for argument '%.*s'", b->name,
                                    (int)args->names[i].n, cera_jinja_chars(&args->names[i]));
        p[at] = args->values[i];
    }
    for (uint32_t i = 0; i < n_required; i++)
        if (p[i].kind == J_MISSING)
            return cera_jinja_raise(r, "TypeError", "%s() missing %u required positional argument(s)", b->name, n_required);
    return true;
}

bool cera_jinja_call_builtin(cera_jrender *r, const cera_jbuiltin *b, const cera_jval *self, const cera_jargs *args,
                             cera_jval *out) {
    cera_jval p[J_MAX_PARAMS];
    if (!b->params) return b->call(r, self, args, NULL, out);
    return bind(r, b, args, p) && b->call(r, self, args, p, out);
}

static bool is_keyword_used(const cera_jargs *args, const bool *used, const char *name, uint32_t *at) {
    for (uint32_t i = 0; i < args->n_names; i++)
        if (!used[i] && cera_jinja_str_is(&args->names[i], name)) return *at = i, true;
    return false;
}

/* What keywords are left go to kwargs, or are an error. */
static bool macro_kwargs(cera_jrender *r, const cera_jmacro *m, const cera_jargs *args, const bool *used, cera_jact *act) {
    int size = m->name.kind == J_STR ? (int)m->name.n : 4;
    const char *name = m->name.kind == J_STR ? cera_jinja_chars(&m->name) : "None";
    cera_jdict *rest = cera_jinja_dict_new(r, 0);
    for (uint32_t i = 0; rest && i < args->n_names; i++) {
        if (used[i]) continue;
        if (!m->node->kwargs_slot) {
            if (cera_jinja_str_is(&args->names[i], "caller"))
                return cera_jinja_raise(
                    r, "TypeError",
                    "macro '%.*s' was invoked with two values for the special caller argument. This is most likely a bug.",
                    size, name);
            return cera_jinja_raise(r, "TypeError", "macro '%.*s' takes no keyword argument '%.*s'", size, name,
                                    (int)args->names[i].n, cera_jinja_chars(&args->names[i]));
        }
        if (!cera_jinja_dict_set(r, rest, &args->names[i], &args->values[i])) return false;
    }
    if (!rest) return false;
    if (m->node->kwargs_slot) act->slots[m->node->kwargs_slot - 1] = (cera_jval){.kind = J_DICT, .u.dict = rest};
    return true;
}

static bool macro_varargs(cera_jrender *r, const cera_jmacro *m, const cera_jargs *args, cera_jact *act) {
    uint32_t n_params = m->node->n;
    if (!m->node->varargs_slot) {
        if (args->n_pos <= n_params) return true;
        return cera_jinja_raise(r, "TypeError", "macro '%.*s' takes not more than %u argument(s)",
                                m->name.kind == J_STR ? (int)m->name.n : 4,
                                m->name.kind == J_STR ? cera_jinja_chars(&m->name) : "None", n_params);
    }
    cera_jlist *rest = cera_jinja_list_new(r, 0);
    for (uint32_t i = n_params; rest && i < args->n_pos; i++)
        if (!cera_jinja_list_add(r, rest, &args->pos[i])) return false;
    if (!rest) return false;
    act->slots[m->node->varargs_slot - 1] = cera_jinja_list_value(rest, J_TUPLE);
    return true;
}

/* Parameters that were given get their values; the others stay missing until defaults are evaluated. */
static bool macro_arguments(cera_jrender *r, const cera_jmacro *m, const cera_jargs *args, cera_jact *act) {
    const cera_jnode *n = m->node;
    enum { MAX_KEYWORDS = 256 };
    bool used[MAX_KEYWORDS] = {0}, found_caller = false;
    uint32_t at;
    if (args->n_names > MAX_KEYWORDS) return cera_jinja_limit(r, "more than %d keyword arguments", MAX_KEYWORDS);
    for (uint32_t i = 0; i < n->n; i++) {
        cera_jval *slot = &act->slots[n->kids[i]->slot];
        char name[128];
        *slot = (cera_jval){0};
        if (i < args->n_pos) {
            *slot = args->pos[i];
        } else if (n->kids[i]->value.n < sizeof name) {
            memcpy(name, cera_jinja_chars(&n->kids[i]->value), n->kids[i]->value.n);
            name[n->kids[i]->value.n] = 0;
            if (is_keyword_used(args, used, name, &at)) {
                *slot = args->values[at];
                used[at] = true;
            }
        }
        found_caller = found_caller || cera_jinja_str_is(&n->kids[i]->value, "caller");
    }
    if (n->caller_slot && !found_caller) {
        cera_jval *slot = &act->slots[n->caller_slot - 1];
        if (is_keyword_used(args, used, "caller", &at)) {
            *slot = args->values[at];
            used[at] = true;
        } else if (!cera_jinja_undefined_hint(r, "No caller defined", slot)) {
            return false;
        }
    }
    return macro_kwargs(r, m, args, used, act) && macro_varargs(r, m, args, act);
}

static bool macro_defaults(cera_jrender *r, const cera_jnode *n, cera_jact *act) {
    uint32_t first_default = n->n - n->b->n;
    for (uint32_t i = 0; i < n->n; i++) {
        cera_jval *slot = &act->slots[n->kids[i]->slot], v;
        if (slot->kind != J_MISSING) continue;
        if (i >= first_default) {
            if (!cera_jinja_eval(r, act, n->b->kids[i - first_default], &v)) return false;
        } else if (!cera_jinja_undefined(r, NULL, &n->kids[i]->value, &v)) {
            return false;
        }
        act->slots[n->kids[i]->slot] = v;
    }
    return true;
}

static bool run_macro(cera_jrender *r, const cera_jmacro *m, const cera_jargs *args, cera_jval *out) {
    const cera_jnode *n = m->node;
    cera_jact *act = cera_jinja_act_new(r, n->func, m->act);
    cera_jbuf *saved = r->out, *b = cera_jinja_buf_new(r);
    uint32_t line = r->line;
    if (!act || !b || !macro_arguments(r, m, args, act) || !cera_jinja_enter_scope(r, act, &n->scope) ||
        !macro_defaults(r, n, act))
        return false;
    r->out = b;
    bool ok = cera_jinja_exec(r, act, n->a) != FLOW_ERROR;
    r->out = saved;
    if (ok) r->line = line;
    *out = cera_jinja_buf_value(b);
    return ok;
}

bool cera_jinja_call_macro(cera_jrender *r, const cera_jmacro *m, const cera_jargs *args, cera_jval *out) {
    if (!cera_jinja_enter(r)) return false;
    bool ok = run_macro(r, m, args, out);
    r->depth--;
    return ok;
}

static bool call_loop(cera_jrender *r, cera_jloop *l, const cera_jargs *args, cera_jval *out) {
    if (args->n_pos != 1 || args->n_names) return cera_jinja_raise(r, "TypeError", "loop() takes one argument");
    if (!l->recurse)
        return cera_jinja_raise(r, "TypeError", "The loop must have the 'recursive' marker to be called recursively.");
    cera_jbuf *saved = r->out, *b = cera_jinja_buf_new(r);
    if (!b) return false;
    r->out = b;
    bool ok = cera_jinja_run_loop(r, l->act, l->recurse, &args->pos[0], l->depth0 + 1);
    r->out = saved;
    *out = cera_jinja_buf_value(b);
    return ok;
}

static bool call_joiner(cera_jrender *r, cera_jcycler *j, cera_jval *out) {
    bool first = !j->used;
    j->used = true;
    return first ? cera_jinja_text_value(r, "", out) : (*out = j->separator, true);
}

bool cera_jinja_call(cera_jrender *r, const cera_jval *f, const cera_jargs *args, cera_jval *out) {
    switch (f->kind) {
    case J_UNDEFINED: return cera_jinja_undefined_error(r, f);
    case J_MACRO: return cera_jinja_call_macro(r, f->u.macro, args, out);
    case J_BUILTIN: return cera_jinja_call_builtin(r, f->u.builtin, NULL, args, out);
    case J_METHOD: {
        cera_jmethod m = *f->u.method;
        return cera_jinja_call_builtin(r, m.builtin, &m.self, args, out);
    }
    case J_LOOP: return call_loop(r, f->u.loop, args, out);
    case J_JOINER: return call_joiner(r, f->u.cycler, out);
    default: return cera_jinja_raise(r, "TypeError", "'%s' object is not callable", cera_jinja_type_name(f));
    }
}

static bool eval_call(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    arguments a;
    cera_jval f;
    if (!cera_jinja_eval(r, act, n->a, &f) || !eval_arguments(r, act, n, &a)) return false;
    r->line = n->line;
    cera_jargs args = as_args(&a);
    return cera_jinja_call(r, &f, &args, out);
}

/* A call with the call block's body as its caller. */
static bool eval_call_with(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *caller, cera_jval *out) {
    static const cera_jbuf caller_buf = {.data = "caller", .used = 6, .ascii = true};
    cera_jval f, name = {.kind = J_STR, .n = 6, .u.buf = (cera_jbuf *)&caller_buf}; /* capacity 0: never written */
    arguments a;
    if (!cera_jinja_eval(r, act, n->a, &f) || !eval_arguments(r, act, n, &a)) return false;
    for (uint32_t i = 0; i < a.names.n; i++)
        if (cera_jinja_str_is(&a.names.items[i], "caller"))
            return cera_jinja_raise(r, "TypeError", "got multiple values for keyword argument 'caller'");
    if (!add_keyword(r, &a, &name, caller)) return false;
    cera_jargs args = as_args(&a);
    return cera_jinja_call(r, &f, &args, out);
}

bool cera_jinja_call_block(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jmacro *m = cera_jinja_alloc(&r->mem, 1, sizeof *m);
    if (!m) return cera_jinja_no_memory(r);
    *m = (cera_jmacro){.node = n, .act = act};
    if (!n->c) return cera_jinja_call_macro(r, m, &(cera_jargs){0}, out); /* {% generation %} */
    cera_jval caller = {.kind = J_MACRO, .u.macro = m};
    return eval_call_with(r, act, n->c, &caller, out);
}

static bool filter_input(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *body, cera_jval *out) {
    if (!n->a) return *out = *body, true;
    return body ? cera_jinja_apply_filter(r, act, n->a, body, out) : cera_jinja_eval(r, act, n->a, out);
}

bool cera_jinja_apply_filter(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *body, cera_jval *out) {
    cera_jval self;
    arguments a;
    if (!filter_input(r, act, n, body, &self) || !eval_arguments(r, act, n, &a)) return false;
    r->line = n->line;
    if (!n->builtin)
        return cera_jinja_raise(r, "TemplateRuntimeError", "No filter named '%.*s' found.", (int)n->value.n,
                                cera_jinja_chars(&n->value));
    cera_jargs args = as_args(&a);
    return cera_jinja_call_builtin(r, n->builtin, &self, &args, out);
}

static bool eval_test(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval self;
    arguments a;
    if (!cera_jinja_eval(r, act, n->a, &self) || !eval_arguments(r, act, n, &a)) return false;
    r->line = n->line;
    if (!n->builtin)
        return cera_jinja_raise(r, "TemplateRuntimeError", "No test named '%.*s' found.", (int)n->value.n,
                                cera_jinja_chars(&n->value));
    cera_jargs args = as_args(&a);
    return cera_jinja_call_builtin(r, n->builtin, &self, &args, out);
}

/* ---- other expressions ------------------------------------------------------------------------------------------ */

static bool eval_items(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jlist *l = cera_jinja_list_new(r, n->n);
    for (uint32_t i = 0; l && i < n->n; i++) {
        cera_jval v;
        if (!cera_jinja_eval(r, act, n->kids[i], &v) || !cera_jinja_list_add(r, l, &v)) return false;
    }
    if (!l) return false;
    *out = cera_jinja_list_value(l, n->type == N_LIST ? J_LIST : J_TUPLE);
    return true;
}

static bool eval_dict(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jdict *d = cera_jinja_dict_new(r, n->n / 2);
    for (uint32_t i = 0; d && i < n->n; i += 2) {
        cera_jval key, value;
        if (!cera_jinja_eval(r, act, n->kids[i], &key) || !cera_jinja_eval(r, act, n->kids[i + 1], &value) ||
            !cera_jinja_dict_set(r, d, &key, &value))
            return false;
    }
    if (!d) return false;
    *out = (cera_jval){.kind = J_DICT, .u.dict = d};
    return true;
}

static bool eval_compare(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval left, right;
    bool result = true;
    if (!cera_jinja_eval(r, act, n->kids[0], &left)) return false;
    for (uint32_t i = 1; result && i < n->n; i++) {
        if (!cera_jinja_eval(r, act, n->kids[i]->a, &right)) return false;
        r->line = n->line;
        if (!cera_jinja_compare(r, (cera_jop)n->kids[i]->op, &left, &right, &result)) return false;
        left = right;
    }
    *out = cera_jinja_bool(result);
    return true;
}

static bool eval_concat(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jlist *parts = cera_jinja_list_new(r, n->n);
    for (uint32_t i = 0; parts && i < n->n; i++) {
        cera_jval v;
        if (!cera_jinja_eval(r, act, n->kids[i], &v) || !cera_jinja_to_str(r, &v, &v)) return false;
        v.flags = 0;
        if (!cera_jinja_list_add(r, parts, &v)) return false;
    }
    if (!parts) return false;
    *out = parts->items[0];
    for (uint32_t i = 1; i < n->n; i++)
        if (!cera_jinja_concat(r, out, &parts->items[i], out)) return false;
    return true;
}

static bool eval_sign(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval v;
    int64_t i;
    if (!cera_jinja_eval(r, act, n->a, &v)) return false;
    r->line = n->line;
    if (v.kind == J_UNDEFINED) return cera_jinja_undefined_error(r, &v);
    if (v.kind == J_FLOAT) return *out = cera_jinja_float(n->type == N_NEG ? -v.u.f : v.u.f), true;
    if (!cera_jinja_as_int(&v, &i))
        return cera_jinja_raise(r, "TypeError", "bad operand type for unary %s: '%s'", n->type == N_NEG ? "-" : "+",
                                cera_jinja_type_name(&v));
    if (i == INT64_MIN) return cera_jinja_raise(r, "OverflowError", "integers are limited to 64 bits");
    return *out = cera_jinja_int(n->type == N_NEG ? -i : i), true;
}

static bool eval_item(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval v, key, bounds[3] = {{0}};
    if (!cera_jinja_eval(r, act, n->a, &v)) return false;
    if (n->b->type != N_SLICE) {
        if (!cera_jinja_eval(r, act, n->b, &key)) return false;
        r->line = n->line;
        return cera_jinja_getitem(r, &v, &key, out);
    }
    const cera_jnode *const parts[3] = {n->b->a, n->b->b, n->b->c};
    for (int i = 0; i < 3; i++)
        if (parts[i] && !cera_jinja_eval(r, act, parts[i], &bounds[i])) return false;
    r->line = n->line;
    return cera_jinja_slice(r, &v, bounds, out);
}

static bool eval_cond(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval v;
    if (!cera_jinja_eval(r, act, n->a, &v)) return false;
    if (cera_jinja_truth(&v)) return cera_jinja_eval(r, act, n->b, out);
    if (n->c) return cera_jinja_eval(r, act, n->c, out);
    return cera_jinja_undefined_hint(r, "the inline if-expression evaluated to false and no else section was defined.", out);
}

/* Numbers and what operators make of them: jinja2 evaluates these when it compiles. */
static bool is_constant(const cera_jnode *n) {
    if (n->type == N_BINARY) return is_constant(n->a) && is_constant(n->b);
    return n->type == N_CONST || ((n->type == N_NEG || n->type == N_POS) && is_constant(n->a));
}

/* A constant that is negative stands in jinja2's Python source without parentheses, so that -2 ** x is -(2 ** x) there. */
static bool folded_power(cera_jrender *r, const cera_jval *base, const cera_jval *exponent, cera_jval *out) {
    cera_jval minus = cera_jinja_int(-1), v;
    return cera_jinja_binary(r, OP_MUL, base, &minus, &v) && cera_jinja_binary(r, OP_POW, &v, exponent, &v) &&
           cera_jinja_binary(r, OP_MUL, &v, &minus, out);
}

static bool eval_binary(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval a, b;
    double base = 0;
    if (!cera_jinja_eval(r, act, n->a, &a) || !cera_jinja_eval(r, act, n->b, &b)) return false;
    r->line = n->line;
    if (n->op == OP_POW && cera_jinja_number(&a, &base) && base < 0 && is_constant(n->a) && !is_constant(n->b))
        return folded_power(r, &a, &b, out);
    return cera_jinja_binary(r, (cera_jop)n->op, &a, &b, out);
}

static bool eval_attr(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    cera_jval v;
    if (!cera_jinja_eval(r, act, n->a, &v)) return false;
    r->line = n->line;
    return cera_jinja_getattr(r, &v, &n->value, out);
}

static bool eval_inner(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    switch (n->type) {
    case N_CONST: *out = n->value; return true;
    case N_NAME: {
        const cera_jval *v = place(act, n->depth, n->slot);
        if (v->kind == J_MISSING) return cera_jinja_undefined(r, NULL, &n->value, out);
        *out = *v;
        return true;
    }
    case N_LIST:
    case N_TUPLE: return eval_items(r, act, n, out);
    case N_DICT: return eval_dict(r, act, n, out);
    case N_COND: return eval_cond(r, act, n, out);
    case N_AND:
    case N_OR:
        if (!cera_jinja_eval(r, act, n->a, out)) return false;
        return cera_jinja_truth(out) == (n->type == N_OR) || cera_jinja_eval(r, act, n->b, out);
    case N_NOT:
        if (!cera_jinja_eval(r, act, n->a, out)) return false;
        *out = cera_jinja_bool(!cera_jinja_truth(out));
        return true;
    case N_COMPARE: return eval_compare(r, act, n, out);
    case N_BINARY: return eval_binary(r, act, n, out);
    case N_CONCAT: return eval_concat(r, act, n, out);
    case N_NEG:
    case N_POS: return eval_sign(r, act, n, out);
    case N_GETATTR: return eval_attr(r, act, n, out);
    case N_GETITEM: return eval_item(r, act, n, out);
    case N_CALL: return eval_call(r, act, n, out);
    case N_FILTER: return cera_jinja_apply_filter(r, act, n, NULL, out);
    case N_TEST: return eval_test(r, act, n, out);
    default: return cera_jinja_raise(r, "TemplateRuntimeError", "an expression of an unknown kind");
    }
}

bool cera_jinja_eval(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out) {
    if (!cera_jinja_enter(r)) return false;
    bool ok = eval_inner(r, act, n, out);
    r->depth--;
    return ok;
}
