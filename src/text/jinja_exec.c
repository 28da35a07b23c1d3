/* jinja_exec.c: runs the statements of a template: output, loops, assignments, captures; and the render as a whole with its
 * budgets and its result in segments. */
#include <limits.h>
#include <string.h>
#include "text/jinja_int.h"

/* ---- loops ------------------------------------------------------------------------------------------------------ */

bool cera_jinja_filter_item(cera_jrender *r, cera_jiter *it, const cera_jval *item, bool *keep) {
    const cera_jnode *n = it->filter_for;
    cera_jval v;
    cera_jact *act = it->act;
    if (!cera_jinja_assign(r, act, n->test_target, item) || !cera_jinja_eval(r, act, n->c, &v)) return false;
    *keep = cera_jinja_truth(&v);
    return true;
}

bool cera_jinja_loop_peek(cera_jrender *r, cera_jloop *l) {
    bool more;
    cera_jval v;
    if (l->after.kind != J_MISSING) return true;
    if (!cera_jinja_iter_next(r, &l->it, &v, &more)) return false;
    if (more) l->after = v;
    return true;
}

bool cera_jinja_loop_length(cera_jrender *r, cera_jloop *l, int64_t *out) {
    if (l->length < 0) {
        bool sized = !l->it.filter_for && l->it.over.kind != J_ITER && l->it.over.kind != J_LOOP;
        if (sized) {
            if (!cera_jinja_len(r, &l->it.over, &l->length)) return false;
        } else { /* take what is left into a list and go on with that */
            cera_jlist *rest = cera_jinja_list_new(r, 0);
            cera_jval v;
            for (bool more = true; rest;) {
                if (!cera_jinja_iter_next(r, &l->it, &v, &more)) return false;
                if (!more) break;
                if (!cera_jinja_list_add(r, rest, &v)) return false;
            }
            if (!rest) return false;
            l->it = (cera_jiter){.over = cera_jinja_list_value(rest, J_LIST)};
            l->length = rest->n + l->index0 + 1 + (l->after.kind != J_MISSING);
        }
    }
    *out = l->length;
    return true;
}

bool cera_jinja_loop_attr(cera_jrender *r, cera_jloop *l, const cera_jval *name, cera_jval *out, bool *found) {
    int64_t n;
    *found = true;
    if (cera_jinja_str_is(name, "index")) return *out = cera_jinja_int(l->index0 + 1), true;
    if (cera_jinja_str_is(name, "index0")) return *out = cera_jinja_int(l->index0), true;
    if (cera_jinja_str_is(name, "first")) return *out = cera_jinja_bool(l->index0 == 0), true;
    if (cera_jinja_str_is(name, "depth")) return *out = cera_jinja_int(l->depth0 + 1), true;
    if (cera_jinja_str_is(name, "depth0")) return *out = cera_jinja_int(l->depth0), true;
    if (cera_jinja_str_is(name, "last")) {
        if (!cera_jinja_loop_peek(r, l)) return false;
        return *out = cera_jinja_bool(l->after.kind == J_MISSING), true;
    }
    if (cera_jinja_str_is(name, "previtem"))
        return l->index0 == 0 ? cera_jinja_undefined_hint(r, "there is no previous item", out) : (*out = l->before, true);
    if (cera_jinja_str_is(name, "nextitem")) {
        if (!cera_jinja_loop_peek(r, l)) return false;
        return l->after.kind == J_MISSING ? cera_jinja_undefined_hint(r, "there is no next item", out)
                                          : (*out = l->after, true);
    }
    bool length = cera_jinja_str_is(name, "length"), rev = cera_jinja_str_is(name, "revindex"),
         rev0 = cera_jinja_str_is(name, "revindex0");
    *found = length || rev || rev0;
    if (!*found) return true;
    if (!cera_jinja_loop_length(r, l, &n)) return false;
    *out = cera_jinja_int(length ? n : n - l->index0 - rev0);
    return true;
}

static bool loop_next(cera_jrender *r, cera_jloop *l, cera_jval *out, bool *more) {
    if (l->after.kind != J_MISSING) {
        *out = l->after;
        l->after = (cera_jval){0};
        *more = true;
    } else if (!cera_jinja_iter_next(r, &l->it, out, more)) {
        return false;
    }
    if (!*more) return true;
    l->index0++;
    l->before = l->current;
    l->current = *out;
    return true;
}

static bool start_loop(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *over, int64_t depth0,
                       cera_jloop *l) {
    *l = (cera_jloop){.index0 = -1, .length = -1, .depth0 = depth0, .recurse = n->flag ? n : NULL, .act = act};
    if (!cera_jinja_iter(r, over, &l->it)) return false;
    if (!n->c) return true;
    l->it.act = cera_jinja_act_new(r, n->test_func, act);
    l->it.filter_for = (cera_jnode *)n;
    return l->it.act && cera_jinja_enter_scope(r, l->it.act, &n->scope3);
}

/* One loop from start to end; act holds its variables. */
static cera_jflow loop_body(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jloop *l) {
    bool none = true, more = true;
    cera_jval item;
    for (;;) {
        if (!loop_next(r, l, &item, &more)) return FLOW_ERROR;
        if (!more) break;
        if (!cera_jinja_assign(r, act, n->a, &item)) return FLOW_ERROR;
        if (n->loop_slot) act->slots[n->loop_slot - 1] = (cera_jval){.kind = J_LOOP, .u.loop = l};
        if (!cera_jinja_enter_scope(r, act, &n->scope)) return FLOW_ERROR;
        cera_jflow flow = cera_jinja_exec(r, act, n->kids[0]);
        if (flow == FLOW_ERROR) return flow;
        if (flow == FLOW_BREAK) break;
        if (flow == FLOW_NEXT) none = false; /* jinja2: an iteration that ends in continue does not count for else */
    }
    if (!none || n->n < 2) return FLOW_NEXT;
    return cera_jinja_enter_scope(r, act, &n->scope2) ? cera_jinja_exec(r, act, n->kids[1]) : FLOW_ERROR;
}

static cera_jflow run_loop(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *over, int64_t depth0) {
    cera_jact *inner = n->flag ? cera_jinja_act_new(r, n->func, act) : act;
    cera_jloop *l = cera_jinja_alloc(&r->mem, 1, sizeof *l);
    if (!inner || !l) return cera_jinja_no_memory(r), FLOW_ERROR;
    if (!start_loop(r, act, n, over, depth0, l)) return FLOW_ERROR;
    return loop_body(r, inner, n, l);
}

bool cera_jinja_run_loop(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *over, int64_t depth0) {
    if (!cera_jinja_enter(r)) return false;
    cera_jflow flow = run_loop(r, act, n, over, depth0);
    r->depth--;
    return flow != FLOW_ERROR;
}

static cera_jflow exec_for(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jval over;
    if (!cera_jinja_eval(r, act, n->b, &over)) return FLOW_ERROR;
    r->line = n->line;
    return run_loop(r, act, n, &over, 0);
}

/* ---- statements ------------------------------------------------------------------------------------------------- */

static cera_jflow next_if(bool ok) { return ok ? FLOW_NEXT : FLOW_ERROR; }

static cera_jflow exec_if(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    for (uint32_t i = 0; i < n->n; i += 2) {
        cera_jval v;
        if (!cera_jinja_eval(r, act, n->kids[i], &v)) return FLOW_ERROR;
        if (cera_jinja_truth(&v)) return cera_jinja_exec(r, act, n->kids[i + 1]);
    }
    return n->c ? cera_jinja_exec(r, act, n->c) : FLOW_NEXT;
}

static bool check_namespaces(cera_jrender *r, cera_jact *act, const cera_jnode *target) {
    if (target->type == N_NSREF) {
        cera_jval v;
        if (!cera_jinja_eval(r, act, target->a, &v)) return false;
        return v.kind == J_NAMESPACE ||
               cera_jinja_raise(r, "TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    }
    for (uint32_t i = 0; target->type == N_TUPLE && i < target->n; i++)
        if (!check_namespaces(r, act, target->kids[i])) return false;
    return true;
}

static cera_jflow exec_set(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jval v;
    if (n->a->type != N_NAME && !check_namespaces(r, act, n->a)) return FLOW_ERROR;
    return next_if(cera_jinja_eval(r, act, n->b, &v) && cera_jinja_assign(r, act, n->a, &v));
}

/* Runs a body into a string. */
static cera_jflow capture(cera_jrender *r, cera_jact *act, const cera_jscope *scope, const cera_jnode *body, cera_jval *out) {
    cera_jbuf *saved = r->out, *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_enter_scope(r, act, scope)) return FLOW_ERROR;
    r->out = b;
    cera_jflow flow = cera_jinja_exec(r, act, body);
    r->out = saved;
    *out = cera_jinja_buf_value(b);
    return flow;
}

static cera_jflow exec_set_block(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jval v;
    cera_jflow flow = capture(r, act, &n->scope, n->c, &v);
    if (flow != FLOW_NEXT) return flow;
    if (n->b && !cera_jinja_apply_filter(r, act, n->b, &v, &v)) return FLOW_ERROR;
    return next_if(cera_jinja_assign(r, act, n->a, &v));
}

static cera_jflow exec_filter_block(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jval v;
    cera_jflow flow = capture(r, act, &n->scope, n->b, &v);
    if (flow != FLOW_NEXT) return flow;
    return next_if(cera_jinja_apply_filter(r, act, n->a, &v, &v) && cera_jinja_print(r, r->out, &v));
}

static cera_jflow exec_with(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    if (!cera_jinja_enter_scope(r, act, &n->scope)) return FLOW_ERROR;
    for (uint32_t i = 0; i < n->n; i += 2) {
        cera_jval v;
        if (!cera_jinja_eval(r, act, n->kids[i + 1], &v) || !cera_jinja_assign(r, act, n->kids[i], &v)) return FLOW_ERROR;
    }
    return cera_jinja_exec(r, act, n->a);
}

static cera_jflow exec_macro(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jmacro *m = cera_jinja_alloc(&r->mem, 1, sizeof *m);
    if (!m) return cera_jinja_no_memory(r), FLOW_ERROR;
    *m = (cera_jmacro){.node = n, .act = act, .name = n->value};
    act->slots[n->slot] = (cera_jval){.kind = J_MACRO, .u.macro = m};
    return FLOW_NEXT;
}

static cera_jflow exec_print(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jval v;
    return next_if(cera_jinja_eval(r, act, n->a, &v) && cera_jinja_print(r, r->out, &v));
}

static cera_jflow exec_body(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    for (uint32_t i = 0; i < n->n; i++) {
        cera_jflow flow = cera_jinja_exec(r, act, n->kids[i]);
        if (flow != FLOW_NEXT) return flow;
    }
    return FLOW_NEXT;
}

static cera_jflow exec_inner(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    cera_jval v;
    switch (n->type) {
    case N_DATA: return next_if(cera_jinja_buf_add_str(r, r->out, &n->value));
    case N_PRINT: return exec_print(r, act, n);
    case N_IF: return exec_if(r, act, n);
    case N_FOR: return exec_for(r, act, n);
    case N_MACRO: return exec_macro(r, act, n);
    case N_CALLBLOCK: return next_if(cera_jinja_call_block(r, act, n, &v) && cera_jinja_print(r, r->out, &v));
    case N_FILTERBLOCK: return exec_filter_block(r, act, n);
    case N_SET: return exec_set(r, act, n);
    case N_SETBLOCK: return exec_set_block(r, act, n);
    case N_WITH: return exec_with(r, act, n);
    case N_SCOPE: return cera_jinja_enter_scope(r, act, &n->scope) ? cera_jinja_exec(r, act, n->a) : FLOW_ERROR;
    case N_BREAK: return FLOW_BREAK;
    case N_CONTINUE: return FLOW_CONTINUE;
    default: return exec_body(r, act, n);
    }
}

cera_jflow cera_jinja_exec(cera_jrender *r, cera_jact *act, const cera_jnode *n) {
    if (!cera_jinja_enter(r)) return FLOW_ERROR;
    if (n->type != N_BODY) r->line = n->line;
    cera_jflow flow = exec_inner(r, act, n);
    r->depth--;
    return flow;
}

/* ---- render ----------------------------------------------------------------------------------------------------- */

static bool add_segment(cera_jinja_text *out, size_t start, size_t end, bool user) {
    if (start < end) out->segments[out->n_segments++] = (cera_jinja_segment){start, end, user};
    return true;
}

static cera_status take_result(const cera_jbuf *b, cera_jinja_text *out, cera_error *e) {
    out->text = cera_alloc((size_t)b->used + 1, 1);
    out->segments = cera_alloc(2 * (size_t)b->n_marks + 1, sizeof *out->segments);
    if (!out->text || !out->segments) {
        cera_jinja_text_deinit(out);
        return cera_fail(e, CERA_ERR_MEMORY, "template: out of memory");
    }
    if (b->used) memcpy(out->text, b->data, b->used);
    out->size = b->used;
    size_t at = 0;
    for (uint32_t i = 0; i < b->n_marks; i++) {
        add_segment(out, at, b->marks[i].start, false);
        add_segment(out, b->marks[i].start, b->marks[i].end, true);
        at = b->marks[i].end;
    }
    add_segment(out, at, b->used, false);
    return CERA_OK;
}

void cera_jinja_text_deinit(cera_jinja_text *t) {
    cera_free(t->text);
    cera_free(t->segments);
    *t = (cera_jinja_text){0};
}

static void set_budgets(cera_jrender *r, const cera_jinja_options *o) {
    enum { DEFAULT_STEPS = 20000000, DEFAULT_MS = 400 };
    int ms = o && o->max_ms > 0 ? o->max_ms : DEFAULT_MS;
    r->steps_left = o && o->max_steps > 0 ? o->max_steps : DEFAULT_STEPS;
    r->max_bytes = o && o->max_bytes ? o->max_bytes : (size_t)64 << 20;
    if (r->max_bytes > UINT32_MAX / 4) r->max_bytes = UINT32_MAX / 4;
    r->next_clock_check = r->steps_left;
    clock_gettime(CLOCK_MONOTONIC, &r->deadline);
    r->deadline.tv_sec += ms / 1000;
    r->deadline.tv_nsec += (long)(ms % 1000) * 1000000;
    if (r->deadline.tv_nsec >= 1000000000) {
        r->deadline.tv_sec++;
        r->deadline.tv_nsec -= 1000000000;
    }
}

static bool render(cera_jrender *r, const cera_json *context) {
    cera_jval variables;
    if (!cera_jinja_from_json(r, context, (cera_text_view){NULL, 0}, (cera_text_view){"", 0}, &variables)) return false;
    r->context = variables.u.dict;
    cera_jact *act = cera_jinja_act_new(r, &r->t->func, NULL);
    r->out = cera_jinja_buf_new(r);
    if (!act || !r->out || !cera_jinja_enter_scope(r, act, &r->t->root->scope)) return false;
    return cera_jinja_exec(r, act, r->t->root) != FLOW_ERROR;
}

cera_status cera_jinja_render(const cera_jinja *t, const cera_json *context, const cera_jinja_options *options,
                              cera_jinja_text *out, cera_error *e) {
    *out = (cera_jinja_text){0};
    if (!context || context->kind != CERA_JSON_OBJECT)
        return cera_fail(e, CERA_ERR_ARGUMENT, "template: the context must be a JSON object");
    cera_jrender r = {.t = t, .options = options, .e = e, .line = 1};
    set_budgets(&r, options);
    CERA_TRY(cera_arena_create(options && options->max_memory ? options->max_memory : (size_t)128 << 20, &r.mem.arena, e));
    cera_status status = render(&r, context) ? take_result(r.out, out, e) : r.status;
    cera_arena_destroy(r.mem.arena);
    return status;
}
