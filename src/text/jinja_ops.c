/* jinja_ops.c: operators of the template language with Python's meaning, and access to attributes, items and slices with the
 * sandbox's rules. Integers are 64 bits; what does not fit is an error. */
#include <math.h>
#include <string.h>
#include "text/jinja_int.h"

static const char *const op_texts[] = {"+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

static bool overflow(cera_jrender *r) { return cera_jinja_raise(r, "OverflowError", "integers are limited to 64 bits"); }

static bool unsupported(cera_jrender *r, cera_jop op, const cera_jval *a, const cera_jval *b) {
    if (op == OP_ADD && a->kind == J_STR)
        return cera_jinja_raise(r, "TypeError", "can only concatenate str (not \"%s\") to str", cera_jinja_type_name(b));
    if (op == OP_ADD && (a->kind == J_LIST || a->kind == J_TUPLE))
        return cera_jinja_raise(r, "TypeError", "can only concatenate %s (not \"%s\") to %s", cera_jinja_type_name(a),
                                cera_jinja_type_name(b), cera_jinja_type_name(a));
    return cera_jinja_raise(r, "TypeError", "unsupported operand type(s) for %s: '%s' and '%s'",
                            op == OP_POW ? "** or pow()" : op_texts[op], cera_jinja_type_name(a), cera_jinja_type_name(b));
}

static bool int_pow(cera_jrender *r, int64_t base, int64_t exponent, cera_jval *out) {
    if (exponent < 0) {
        if (base == 0) return cera_jinja_raise(r, "ZeroDivisionError", "0.0 cannot be raised to a negative power");
        return *out = cera_jinja_float(pow((double)base, (double)exponent)), true;
    }
    int64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1 && __builtin_mul_overflow(result, base, &result)) return overflow(r);
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return overflow(r);
    }
    return *out = cera_jinja_int(result), true;
}

static bool int_divide(cera_jrender *r, cera_jop op, int64_t x, int64_t y, cera_jval *out) {
    if (y == 0)
        return cera_jinja_raise(r, "ZeroDivisionError",
                                op == OP_DIV ? "division by zero" : "integer division or modulo by zero");
    if (op == OP_DIV) return *out = cera_jinja_float((double)x / (double)y), true;
    if (x == INT64_MIN && y == -1) return op == OP_MOD ? (*out = cera_jinja_int(0), true) : overflow(r);
    int64_t q = x / y, m = x % y;
    if (m != 0 && (m < 0) != (y < 0)) {
        m += y;
        q--;
    }
    *out = cera_jinja_int(op == OP_MOD ? m : q);
    return true;
}

static bool int_binary(cera_jrender *r, cera_jop op, int64_t x, int64_t y, cera_jval *out) {
    int64_t z = 0;
    switch (op) {
    case OP_ADD:
        if (__builtin_add_overflow(x, y, &z)) return overflow(r);
        break;
    case OP_SUB:
        if (__builtin_sub_overflow(x, y, &z)) return overflow(r);
        break;
    case OP_MUL:
        if (__builtin_mul_overflow(x, y, &z)) return overflow(r);
        break;
    case OP_POW: return int_pow(r, x, y, out);
    default: return int_divide(r, op, x, y, out);
    }
    *out = cera_jinja_int(z);
    return true;
}

static bool float_mod(cera_jrender *r, cera_jop op, double x, double y, cera_jval *out) {
    if (y == 0)
        return cera_jinja_raise(r, "ZeroDivisionError",
                                op == OP_DIV   ? "float division by zero"
                                : op == OP_MOD ? "float modulo"
                                               : "float floor division by zero");
    if (op == OP_DIV) return *out = cera_jinja_float(x / y), true;
    double m = fmod(x, y), q = (x - m) / y;
    if (m != 0) {
        if ((y < 0) != (m < 0)) {
            m += y;
            q -= 1;
        }
    } else {
        m = copysign(0, y);
    }
    if (op == OP_MOD) return *out = cera_jinja_float(m), true;
    double whole = q != 0 ? floor(q) : copysign(0, x / y);
    if (q != 0 && q - whole > 0.5) whole += 1;
    return *out = cera_jinja_float(whole), true;
}

static bool float_binary(cera_jrender *r, cera_jop op, double x, double y, cera_jval *out) {
    switch (op) {
    case OP_ADD: *out = cera_jinja_float(x + y); return true;
    case OP_SUB: *out = cera_jinja_float(x - y); return true;
    case OP_MUL: *out = cera_jinja_float(x * y); return true;
    case OP_POW:
        if (x == 0 && y < 0) return cera_jinja_raise(r, "ZeroDivisionError", "0.0 cannot be raised to a negative power");
        if (x < 0 && y != floor(y)) return cera_jinja_raise(r, "TypeError", "complex numbers are not supported");
        *out = cera_jinja_float(pow(x, y));
        if (isinf(out->u.f) && !isinf(x) && !isinf(y))
            return cera_jinja_raise(r, "OverflowError", "Numerical result out of range");
        return true;
    default: return float_mod(r, op, x, y, out);
    }
}

static bool repeat(cera_jrender *r, const cera_jval *v, int64_t count, cera_jval *out) {
    if (count < 0) count = 0;
    if (v->kind == J_STR) {
        cera_jval text = *v;
        if (v->n && (uint64_t)count > r->max_bytes / v->n)
            return cera_jinja_limit(r, "a string grew beyond %zu bytes", r->max_bytes);
        cera_jbuf *b = cera_jinja_buf_new(r);
        if (!b || !cera_jinja_buf_reserve(r, b, (size_t)count * v->n)) return false;
        for (int64_t i = 0; i < count; i++)
            if (!cera_jinja_charge(r, 1) || !cera_jinja_buf_add_str(r, b, &text)) return false;
        *out = cera_jinja_buf_value(b);
        out->flags = text.flags;
        return true;
    }
    const cera_jlist *from = v->u.list;
    uint8_t kind = v->kind;
    cera_jlist *l = cera_jinja_list_new(r, 0);
    for (int64_t i = 0; l && i < count; i++) {
        if (!cera_jinja_charge(r, 1)) return false;
        for (uint32_t k = 0; k < from->n; k++)
            if (!cera_jinja_list_add(r, l, &from->items[k])) return false;
    }
    if (!l) return false;
    *out = cera_jinja_list_value(l, kind);
    return true;
}

static bool is_sequence(const cera_jval *v) { return v->kind == J_STR || v->kind == J_LIST || v->kind == J_TUPLE; }

static bool add_lists(cera_jrender *r, const cera_jval *a, const cera_jval *b, cera_jval *out) {
    uint8_t kind = a->kind;
    cera_jlist *l = cera_jinja_list_new(r, a->u.list->n + b->u.list->n);
    for (uint32_t i = 0; l && i < a->u.list->n; i++)
        if (!cera_jinja_list_add(r, l, &a->u.list->items[i])) return false;
    for (uint32_t i = 0; l && i < b->u.list->n; i++)
        if (!cera_jinja_list_add(r, l, &b->u.list->items[i])) return false;
    if (!l) return false;
    *out = cera_jinja_list_value(l, kind);
    return true;
}

bool cera_jinja_binary(cera_jrender *r, cera_jop op, const cera_jval *a, const cera_jval *b, cera_jval *out) {
    int64_t x, y;
    double f, g;
    if (a->kind == J_STR && op == OP_MOD) return cera_jinja_percent(r, a, b, out);
    if (a->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, a);
    if (b->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, b);
    if (cera_jinja_as_int(a, &x) && cera_jinja_as_int(b, &y)) return int_binary(r, op, x, y, out);
    if (a->kind == J_BIGINT || b->kind == J_BIGINT) return overflow(r);
    if (cera_jinja_number(a, &f) && cera_jinja_number(b, &g)) return float_binary(r, op, f, g, out);
    if (op == OP_ADD && a->kind == b->kind) {
        if (a->kind == J_STR) return cera_jinja_concat(r, a, b, out);
        if (a->kind == J_LIST || a->kind == J_TUPLE) return add_lists(r, a, b, out);
    }
    if (op == OP_MUL && is_sequence(a) && cera_jinja_as_int(b, &y)) return repeat(r, a, y, out);
    if (op == OP_MUL && is_sequence(b) && cera_jinja_as_int(a, &x)) return repeat(r, b, x, out);
    return unsupported(r, op, a, b);
}

bool cera_jinja_compare(cera_jrender *r, cera_jop op, const cera_jval *a, const cera_jval *b, bool *out) {
    int order;
    switch (op) {
    case OP_EQ:
    case OP_NE:
        if (!cera_jinja_equal(r, a, b, out)) return false;
        *out = *out == (op == OP_EQ);
        return true;
    case OP_IN:
    case OP_NOTIN:
        if (!cera_jinja_contains(r, a, b, out)) return false;
        *out = *out == (op == OP_IN);
        return true;
    default:
        if (!cera_jinja_order(r, op_texts[op], a, b, &order)) return false;
        *out = op == OP_LT   ? order == -1
               : op == OP_GT ? order == 1
               : op == OP_LE ? order == -1 || order == 0
                             : order == 1 || order == 0;
        return true;
    }
}

/* ---- attributes and items --------------------------------------------------------------------------------------- */

static bool unsafe(cera_jrender *r, const cera_jval *v, const cera_jval *name, cera_jval *out) {
    if (!cera_jinja_undefined(r, v, name, out)) return false;
    out->u.undef->unsafe = true;
    return true;
}

static bool macro_attribute(cera_jrender *r, const cera_jmacro *m, const cera_jval *name, cera_jval *out, bool *found) {
    *found = true;
    if (cera_jinja_str_is(name, "name")) return *out = m->name.kind == J_STR ? m->name : cera_jinja_none(), true;
    if (cera_jinja_str_is(name, "caller")) return *out = cera_jinja_bool(m->node->caller_slot != 0), true;
    if (cera_jinja_str_is(name, "catch_kwargs")) return *out = cera_jinja_bool(m->node->kwargs_slot != 0), true;
    if (cera_jinja_str_is(name, "catch_varargs")) return *out = cera_jinja_bool(m->node->varargs_slot != 0), true;
    *found = cera_jinja_str_is(name, "arguments");
    if (!*found) return true;
    cera_jlist *l = cera_jinja_list_new(r, m->node->n);
    for (uint32_t i = 0; l && i < m->node->n; i++)
        if (!cera_jinja_list_add(r, l, &m->node->kids[i]->value)) return false;
    if (!l) return false;
    *out = cera_jinja_list_value(l, J_TUPLE);
    return true;
}

/* What Python's getattr finds (methods and properties, not items). */
static bool own_attribute(cera_jrender *r, const cera_jval *v, const cera_jval *name, cera_jval *out, bool *found) {
    *found = true;
    if (cera_jinja_unsafe_attr(v, cera_jinja_chars(name), name->n)) return unsafe(r, v, name, out);
    const cera_jbuiltin *method = cera_jinja_method(v, cera_jinja_chars(name), name->n);
    if (method) {
        cera_jmethod *m = cera_jinja_alloc(&r->mem, 1, sizeof *m);
        if (!m) return cera_jinja_no_memory(r);
        *m = (cera_jmethod){*v, method};
        *out = (cera_jval){.kind = J_METHOD, .u.method = m};
        return true;
    }
    if (v->kind == J_NAMESPACE) {
        const cera_jval *value = cera_jinja_dict_get_text(v->u.dict, cera_jinja_chars(name), name->n);
        *found = value != NULL;
        if (value) *out = *value;
        return true;
    }
    if (v->kind == J_LOOP) return cera_jinja_loop_attr(r, v->u.loop, name, out, found);
    if (v->kind == J_MACRO) return macro_attribute(r, v->u.macro, name, out, found);
    if (v->kind == J_CYCLER && cera_jinja_str_is(name, "current"))
        return *out = v->u.cycler->items.items[v->u.cycler->at], true;
    if ((v->kind == J_TUPLE && v->flags) && (cera_jinja_str_is(name, "grouper") || cera_jinja_str_is(name, "list")))
        return *out = v->u.list->items[name->n == 4], true;
    *found = false;
    return true;
}

static bool list_index(const cera_jval *v, const cera_jval *key, int64_t n, int64_t *at) {
    (void)v;
    if (!cera_jinja_as_int(key, at)) return false;
    if (*at < 0) *at += n;
    return *at >= 0 && *at < n;
}

/* obj[key]; found false: Python would raise TypeError or LookupError. */
static bool own_item(cera_jrender *r, const cera_jval *v, const cera_jval *key, cera_jval *out, bool *found) {
    int64_t at;
    *found = false;
    switch (v->kind) {
    case J_DICT: {
        cera_jval *value;
        if (key->kind == J_LIST || key->kind == J_DICT) return true;
        if (!cera_jinja_dict_find(r, v->u.dict, key, &value)) return false;
        *found = value != NULL;
        if (value) *out = *value;
        return true;
    }
    case J_LIST:
    case J_TUPLE:
        *found = list_index(v, key, v->u.list->n, &at);
        if (*found) *out = v->u.list->items[at];
        return true;
    case J_STR: {
        *found = list_index(v, key, cera_jinja_str_chars(v), &at);
        if (!*found) return true;
        uint32_t from = cera_jinja_char_offset(v, (uint32_t)at), size;
        cera_jinja_char_at(v, from, &size);
        *out = cera_jinja_sub(v, from, from + size);
        return cera_jinja_charge(r, v->u.buf->ascii ? 0 : from / 32);
    }
    case J_RANGE:
        *found = list_index(v, key, v->u.range->n, &at);
        if (*found) *out = cera_jinja_int(v->u.range->start + at * v->u.range->step);
        return true;
    default: return true;
    }
}

bool cera_jinja_getattr(cera_jrender *r, const cera_jval *v, const cera_jval *name, cera_jval *out) {
    bool found;
    if (v->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, v);
    if (!own_attribute(r, v, name, out, &found)) return false;
    if (found) return true;
    if (!own_item(r, v, name, out, &found)) return false;
    return found || cera_jinja_undefined(r, v, name, out);
}

bool cera_jinja_getitem(cera_jrender *r, const cera_jval *v, const cera_jval *key, cera_jval *out) {
    bool found;
    if (v->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, v);
    if (!own_item(r, v, key, out, &found)) return false;
    if (!found && key->kind == J_STR && !own_attribute(r, v, key, out, &found)) return false;
    return found || cera_jinja_undefined(r, v, key, out);
}

/* ---- slices ----------------------------------------------------------------------------------------------------- */

static bool slice_bound(cera_jrender *r, const cera_jval *v, int64_t n, int64_t step, int64_t fallback, int64_t *out) {
    if (v->kind == J_MISSING || v->kind == J_NONE) return *out = fallback, true;
    if (!cera_jinja_as_int(v, out))
        return cera_jinja_raise(r, "TypeError", "slice indices must be integers or None or have an __index__ method");
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (*out < 0) *out = *out < -n ? low : *out + n;
    if (*out > high) *out = high;
    if (*out < low) *out = low;
    return true;
}

static bool slice_string(cera_jrender *r, const cera_jval *v, int64_t start, int64_t count, int64_t step, cera_jval *out) {
    if (!cera_jinja_charge(r, v->n / 32)) return false;
    if (count == 0) return *out = cera_jinja_sub(v, 0, 0), true;
    if (step == 1) {
        uint32_t from = cera_jinja_char_offset(v, (uint32_t)start);
        cera_jval rest = cera_jinja_sub(v, from, v->n);
        *out = cera_jinja_sub(&rest, 0, cera_jinja_char_offset(&rest, (uint32_t)count));
        return true;
    }
    cera_jval text = *v;
    uint32_t *offsets = cera_jinja_alloc(&r->mem, (size_t)text.n + 1, sizeof *offsets), n = 0;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!offsets || !b) return cera_jinja_no_memory(r);
    for (uint32_t i = 0, size; i < text.n; i += size) {
        offsets[n++] = i;
        cera_jinja_char_at(&text, i, &size);
    }
    offsets[n] = text.n;
    for (int64_t k = 0, i = start; k < count; k++, i += step) {
        cera_jval one = cera_jinja_sub(&text, offsets[i], offsets[i + 1]);
        if (!cera_jinja_buf_add_str(r, b, &one)) return false;
    }
    *out = cera_jinja_buf_value(b);
    out->flags = text.flags;
    return true;
}

static bool slice_list(cera_jrender *r, const cera_jval *v, int64_t start, int64_t count, int64_t step, cera_jval *out) {
    const cera_jlist *from = v->u.list;
    uint8_t kind = v->kind;
    cera_jlist *l = cera_jinja_list_new(r, (uint32_t)count);
    for (int64_t k = 0, i = start; l && k < count; k++, i += step)
        if (!cera_jinja_list_add(r, l, &from->items[i])) return false;
    if (!l) return false;
    *out = cera_jinja_list_value(l, kind);
    return true;
}

bool cera_jinja_slice(cera_jrender *r, const cera_jval *v, const cera_jval bounds[3], cera_jval *out) {
    int64_t n, start, stop, step = 1;
    if (v->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, v);
    if (!is_sequence(v) && v->kind != J_RANGE)
        return v->kind == J_DICT
                   ? cera_jinja_raise(r, "TypeError", "unhashable type: 'slice'")
                   : cera_jinja_raise(r, "TypeError", "'%s' object is not subscriptable", cera_jinja_type_name(v));
    if (!cera_jinja_len(r, v, &n)) return false;
    if (bounds[2].kind != J_MISSING && bounds[2].kind != J_NONE && !cera_jinja_as_int(&bounds[2], &step))
        return cera_jinja_raise(r, "TypeError", "slice indices must be integers or None or have an __index__ method");
    if (step == 0) return cera_jinja_raise(r, "ValueError", "slice step cannot be zero");
    if (step < -INT64_MAX) step = -INT64_MAX;
    if (!slice_bound(r, &bounds[0], n, step, step < 0 ? n - 1 : 0, &start) ||
        !slice_bound(r, &bounds[1], n, step, step < 0 ? -1 : n, &stop))
        return false;
    int64_t distance = step > 0 ? stop - start : start - stop, width = step > 0 ? step : -step;
    int64_t count = distance > 0 ? (distance - 1) / width + 1 : 0;
    if (v->kind == J_STR) return slice_string(r, v, start, count, step, out);
    if (v->kind != J_RANGE) return slice_list(r, v, start, count, step, out);
    cera_jrange *g = cera_jinja_alloc(&r->mem, 1, sizeof *g);
    if (!g) return cera_jinja_no_memory(r);
    const cera_jrange *old = v->u.range;
    int64_t first = old->start + start * old->step;
    *g = (cera_jrange){first, old->start + stop * old->step, old->step * step, count};
    *out = (cera_jval){.kind = J_RANGE, .u.range = g};
    return true;
}
