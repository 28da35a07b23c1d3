/* jinja_filter.c: filters on text and single values, the tests (`is ...`) and the global functions. Filters on sequences are in
 * jinja_filter_seq.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "text/jinja_int.h"

#define FILTER(name) \
    static bool name(cera_jrender *r, const cera_jval *self, const cera_jargs *args, const cera_jval *p, cera_jval *out)
#define UNUSED (void)self, (void)args, (void)p, (void)r
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool given(const cera_jval *v) { return v->kind != J_MISSING && v->kind != J_NONE; }

/* str(v), without markup. */
static bool plain(cera_jrender *r, const cera_jval *v, cera_jval *out) {
    if (!cera_jinja_to_str(r, v, out)) return false;
    out->flags = 0;
    return true;
}

static bool int_arg(cera_jrender *r, const cera_jval *v, int64_t fallback, int64_t *out) {
    if (!given(v)) return *out = fallback, true;
    if (cera_jinja_as_int(v, out)) return true;
    return cera_jinja_raise(r, "TypeError", "an integer is required, not %s", cera_jinja_type_name(v));
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static bool cased(cera_jrender *r, const cera_jval *self, char which, cera_jval *out) {
    cera_jval text;
    return cera_jinja_to_str(r, self, &text) && cera_jinja_case(r, &text, which, out);
}

FILTER(f_upper) { return UNUSED, cased(r, self, 'u', out); }
FILTER(f_lower) { return UNUSED, cased(r, self, 'l', out); }
FILTER(f_capitalize) { return UNUSED, cased(r, self, 'c', out); }

FILTER(f_title) { /* a word starts after white space and any of -({[<, not after other signs as in str.title */
    cera_jval text;
    UNUSED;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_to_str(r, self, &text)) return false;
    uint32_t from = 0, size;
    for (uint32_t i = 0; i <= text.n; i += size) {
        uint32_t code = i < text.n ? cera_jinja_char_at(&text, i, &size) : ' ';
        if (i == text.n) size = 1;
        bool breaks = cera_jinja_is_space(code) || (code < 0x80 && code && strchr("-({[<", (int)code));
        if (!breaks) continue;
        if (i > from) {
            uint32_t first;
            cera_jinja_char_at(&text, from, &first);
            cera_jval head = cera_jinja_sub(&text, from, from + first), tail = cera_jinja_sub(&text, from + first, i);
            if (!cera_jinja_case(r, &head, 'u', &head) || !cera_jinja_case(r, &tail, 'l', &tail)) return false;
            if (!cera_jinja_buf_add_str(r, b, &head) || !cera_jinja_buf_add_str(r, b, &tail)) return false;
        }
        cera_jval sign = cera_jinja_sub(&text, i < text.n ? i : text.n, i < text.n ? i + size : text.n);
        if (!cera_jinja_buf_add_str(r, b, &sign)) return false;
        from = i + size;
    }
    return *out = cera_jinja_buf_value(b), true;
}

FILTER(f_trim) {
    cera_jval text;
    return UNUSED, cera_jinja_to_str(r, self, &text) && cera_jinja_strip(r, &text, &p[0], 3, out);
}

FILTER(f_string) { return UNUSED, cera_jinja_to_str(r, self, out); }

FILTER(f_safe) {
    UNUSED;
    if (!cera_jinja_to_str(r, self, out)) return false;
    out->flags |= J_MARKUP;
    return true;
}

FILTER(f_escape) {
    cera_jval text;
    return UNUSED, cera_jinja_to_str(r, self, &text) && cera_jinja_escape(r, &text, out);
}

FILTER(f_forceescape) {
    cera_jval text;
    return UNUSED, plain(r, self, &text) && cera_jinja_escape(r, &text, out);
}

FILTER(f_striptags) {
    cera_jval text;
    UNUSED;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !plain(r, self, &text)) return false;
    const char *s = cera_jinja_chars(&text);
    bool space = false;
    for (uint32_t i = 0, size; i < text.n; i += size) {
        const char *end = s[i] == '<' ? memchr(s + i, '>', text.n - i) : NULL;
        const bool comment = end && text.n - i >= 4 && !memcmp(s + i, "<!--", 4);
        if (comment) end = memmem(s + i, text.n - i, "-->", 3) ? (const char *)memmem(s + i, text.n - i, "-->", 3) + 2 : NULL;
        uint32_t code = cera_jinja_char_at(&text, i, &size);
        if (end) size = (uint32_t)(end - (s + i)) + 1;
        if (end) continue;
        if (cera_jinja_is_space(code)) {
            space = b->used > 0;
            continue;
        }
        cera_jval one = cera_jinja_sub(&text, i, i + size);
        if ((space && !cera_jinja_buf_text(r, b, " ")) || !cera_jinja_buf_add_str(r, b, &one)) return false;
        space = false;
    }
    return *out = cera_jinja_buf_value(b), true;
}

FILTER(f_replace) {
    cera_jval text, old, new;
    int64_t count;
    UNUSED;
    return plain(r, self, &text) && plain(r, &p[0], &old) && plain(r, &p[1], &new) && int_arg(r, &p[2], -1, &count) &&
           cera_jinja_replace(r, &text, &old, &new, count, out);
}

FILTER(f_center) {
    cera_jval text, width = given(&p[0]) ? p[0] : cera_jinja_int(80);
    UNUSED;
    if (!cera_jinja_to_str(r, self, &text)) return false;
    return cera_jinja_call_builtin(r, cera_jinja_str_method("center", 6), &text, &(cera_jargs){.pos = &width, .n_pos = 1}, out);
}

FILTER(f_format) {
    cera_jval text, values;
    UNUSED;
    if (args->n_pos && args->n_names)
        return cera_jinja_raise(r, "FilterArgumentError", "can't handle positional and keyword arguments at the same time");
    if (!cera_jinja_to_str(r, self, &text)) return false;
    if (args->n_names) {
        cera_jdict *d = cera_jinja_dict_new(r, args->n_names);
        for (uint32_t i = 0; d && i < args->n_names; i++)
            if (!cera_jinja_dict_set(r, d, &args->names[i], &args->values[i])) return false;
        values = (cera_jval){.kind = J_DICT, .u.dict = d};
        return d && cera_jinja_percent(r, &text, &values, out);
    }
    cera_jlist *l = cera_jinja_list_new(r, args->n_pos);
    for (uint32_t i = 0; l && i < args->n_pos; i++)
        if (!cera_jinja_list_add(r, l, &args->pos[i])) return false;
    values = cera_jinja_list_value(l, J_TUPLE);
    return l && cera_jinja_percent(r, &text, &values, out);
}

FILTER(f_indent) {
    UNUSED;
    cera_jval text, indent, newline;
    cera_jlist *lines;
    cera_jbuf *b = cera_jinja_buf_new(r), *spaces = cera_jinja_buf_new(r);
    int64_t width = 4;
    if (!b || !spaces || !cera_jinja_text_value(r, "\n", &newline)) return false;
    if (self->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, self);
    if (self->kind != J_STR)
        return cera_jinja_raise(r, "TypeError", "unsupported operand type(s) for +=: '%s' and 'str'",
                                cera_jinja_type_name(self));
    if (p[0].kind == J_STR) {
        indent = p[0];
    } else {
        if (!int_arg(r, &p[0], 4, &width)) return false;
        for (int64_t i = 0; i < width; i++)
            if (!cera_jinja_buf_text(r, spaces, " ")) return false;
        indent = cera_jinja_buf_value(spaces);
    }
    bool first = cera_jinja_truth(&p[1]), blank = cera_jinja_truth(&p[2]);
    if (!cera_jinja_concat(r, self, &newline, &text) || !cera_jinja_splitlines(r, &text, false, &lines)) return false;
    for (uint32_t i = 0; i < lines->n; i++) {
        if (i && !cera_jinja_buf_text(r, b, "\n")) return false;
        bool indented = i == 0 ? first : blank || lines->items[i].n > 0;
        if ((indented && !cera_jinja_buf_add_str(r, b, &indent)) || !cera_jinja_buf_add_str(r, b, &lines->items[i]))
            return false;
    }
    *out = cera_jinja_buf_value(b);
    out->flags = self->flags;
    return true;
}

FILTER(f_truncate) {
    UNUSED;
    int64_t length, leeway, n;
    cera_jval end = p[2];
    if (!int_arg(r, &p[0], 255, &length) || !int_arg(r, &p[3], 5, &leeway) || !cera_jinja_len(r, self, &n)) return false;
    if (!given(&end) && !cera_jinja_text_value(r, "...", &end)) return false;
    if (end.kind != J_STR) return cera_jinja_raise(r, "TypeError", "truncate: end must be a string");
    int64_t end_chars = cera_jinja_str_chars(&end);
    if (length < end_chars || leeway < 0)
        return cera_jinja_raise(r, "AssertionError", "truncate: expected length >= %lld", (long long)end_chars);
    if (n <= length + leeway) return *out = *self, true;
    if (self->kind != J_STR)
        return cera_jinja_raise(r, "TypeError", "truncate needs a string, not %s", cera_jinja_type_name(self));
    cera_jval head = cera_jinja_sub(self, 0, cera_jinja_char_offset(self, (uint32_t)(length - end_chars))), space;
    if (!cera_jinja_truth(&p[1])) {
        if (!cera_jinja_text_value(r, " ", &space)) return false;
        int64_t at = cera_jinja_rfind(&head, &space);
        if (at >= 0) head = cera_jinja_sub(&head, 0, (uint32_t)at);
    }
    return cera_jinja_concat(r, &head, &end, out);
}

FILTER(f_wordcount) {
    cera_jval text;
    int64_t n = 0;
    bool in_word = false;
    UNUSED;
    if (!cera_jinja_to_str(r, self, &text) || !cera_jinja_charge(r, text.n / 8)) return false;
    for (uint32_t i = 0, size; i < text.n; i += size) {
        uint32_t code = cera_jinja_char_at(&text, i, &size);
        bool word = code == '_' || cera_jinja_char_class(code) & (JC_ALPHA | JC_DECIMAL | JC_DIGIT | JC_NUMERIC);
        n += word && !in_word;
        in_word = word;
    }
    return *out = cera_jinja_int(n), true;
}

static bool quote(cera_jrender *r, cera_jbuf *b, const cera_jval *v, bool for_query) {
    cera_jval text;
    if (!plain(r, v, &text)) return false;
    for (uint32_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)cera_jinja_chars(&text)[i];
        char code[4] = {(char)c, 0};
        bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_.-~", c)) ||
                    (c == '/' && !for_query);
        if (for_query && c == ' ')
            code[0] = '+';
        else if (!keep)
            snprintf(code, sizeof code, "%%%02X", c);
        if (!cera_jinja_buf_add(r, b, code, strlen(code), cera_jinja_user_at(&text, i))) return false;
    }
    return true;
}

FILTER(f_urlencode) {
    UNUSED;
    cera_jbuf *b = cera_jinja_buf_new(r);
    cera_jlist *l;
    cera_jval over = *self;
    if (!b) return false;
    if (self->kind == J_DICT) over = (cera_jval){.kind = J_VIEW, .sub = J_VIEW_ITEMS, .u.dict = self->u.dict};
    if (self->kind <= J_STR || self->kind >= J_MACRO || self->kind == J_NAMESPACE) {
        if (!quote(r, b, self, false)) return false;
        return *out = cera_jinja_buf_value(b), true;
    }
    if (!cera_jinja_to_list(r, &over, &l)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        cera_jlist *pair;
        if (!cera_jinja_to_list(r, &l->items[i], &pair)) return false;
        if (pair->n != 2) return cera_jinja_raise(r, "ValueError", "urlencode needs pairs");
        if ((i && !cera_jinja_buf_text(r, b, "&")) || !quote(r, b, &pair->items[0], true) || !cera_jinja_buf_text(r, b, "=") ||
            !quote(r, b, &pair->items[1], true))
            return false;
    }
    return *out = cera_jinja_buf_value(b), true;
}

FILTER(f_tojson) { return UNUSED, cera_jinja_json(r, self, p, out); }

FILTER(f_pprint) { /* of what fits a line and holds no dictionary, which pprint would sort */
    enum { LINE = 80 };
    UNUSED;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_repr(r, b, self)) return false;
    if (b->used > LINE || (self->kind >= J_LIST && memchr(b->data, '{', b->used)))
        return cera_jinja_raise(r, "TemplateRuntimeError", "pprint of a mapping or of more than one line is not supported");
    return *out = cera_jinja_buf_value(b), true;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

FILTER(f_abs) {
    int64_t i;
    UNUSED;
    if (self->kind == J_UNDEFINED) return cera_jinja_raise(r, "TypeError", "bad operand type for abs(): 'Undefined'");
    if (self->kind == J_FLOAT) return *out = cera_jinja_float(fabs(self->u.f)), true;
    if (!cera_jinja_as_int(self, &i) || i == INT64_MIN)
        return cera_jinja_raise(r, "TypeError", "bad operand type for abs(): '%s'", cera_jinja_type_name(self));
    return *out = cera_jinja_int(i < 0 ? -i : i), true;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

/* int(text, base) as Python reads it; false: not a number. */
static bool text_to_int(const cera_jval *s, int64_t base, int64_t *out) {
    const char *p = cera_jinja_chars(s), *end = p + s->n;
    bool negative = false;
    uint64_t value = 0;
    if (p < end && (*p == '+' || *p == '-')) negative = *p++ == '-';
    if (end - p > 2 && *p == '0' && (base == 0 || base == 16 || base == 8 || base == 2)) {
        int prefix = p[1] == 'x' || p[1] == 'X' ? 16 : p[1] == 'o' || p[1] == 'O' ? 8 : p[1] == 'b' || p[1] == 'B' ? 2 : 0;
        if (prefix && (base == 0 || base == prefix)) p += 2, base = prefix;
    }
    if (base == 0) base = 10;
    if (p == end) return false;
    for (const char *q = p; q < end; q++) {
        if (*q == '_' && q > p && q + 1 < end && q[-1] != '_') continue;
        int d = digit_of(*q);
        if (d >= base || value > (INT64_MAX - (uint64_t)d) / (uint64_t)base) return false;
        value = value * (uint64_t)base + (uint64_t)d;
    }
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* float(text) as Python reads it. */
static bool text_to_float(const cera_jval *s, double *out) {
    char text[400];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n && n < sizeof text - 1; i++) {
        char c = cera_jinja_chars(s)[i];
        if (c == 'x' || c == 'X' || c == '(') return false; /* strtod reads more than Python does */
        if (c != '_') text[n++] = c;
    }
    text[n] = 0;
    char *end;
    *out = strtod(text, &end);
    return n > 0 && *end == 0 && (unsigned char)text[0] > ' ';
}

static bool to_float(cera_jrender *r, const cera_jval *v, double *out, bool *ok) {
    cera_jval text;
    *ok = cera_jinja_number(v, out);
    if (*ok || v->kind != J_STR) return true;
    if (!cera_jinja_strip(r, v, NULL, 3, &text)) return false;
    *ok = text_to_float(&text, out);
    return true;
}

FILTER(f_int) {
    UNUSED;
    int64_t base, i = 0;
    cera_jval text;
    double f = 0;
    bool ok;
    if (!int_arg(r, &p[1], 10, &base)) return false;
    if (self->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, self);
    *out = p[0].kind == J_MISSING ? cera_jinja_int(0) : p[0];
    if (self->kind == J_BIGINT) return *out = *self, true;
    if (cera_jinja_as_int(self, &i)) return *out = cera_jinja_int(i), true;
    if (self->kind == J_STR) {
        if (!cera_jinja_strip(r, self, NULL, 3, &text)) return false;
        if (text_to_int(&text, base, &i)) return *out = cera_jinja_int(i), true;
    }
    if (!to_float(r, self, &f, &ok)) return false;
    if (self->kind == J_FLOAT && isinf(f))
        return cera_jinja_raise(r, "OverflowError", "cannot convert float infinity to integer");
    if (ok && fabs(f) < 9.2e18) *out = cera_jinja_int((int64_t)f);
    return true;
}

FILTER(f_float) {
    UNUSED;
    double f = 0;
    bool ok;
    if (self->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, self);
    if (!to_float(r, self, &f, &ok)) return false;
    *out = ok ? cera_jinja_float(f) : p[0].kind == J_MISSING ? cera_jinja_float(0) : p[0];
    return true;
}

/* Python's round(): to even for halves, decided on the decimal digits of the exact value. */
static double round_common(double value, int64_t precision) {
    char text[400];
    if (precision > 300 || isnan(value) || isinf(value)) return value;
    if (precision < 0) {
        double scale = pow(10, (double)-precision);
        return isinf(scale) ? 0 * value : nearbyint(value / scale) * scale;
    }
    if (fabs(value) > 1e15) return value;
    snprintf(text, sizeof text, "%.*f", (int)precision, value);
    return strtod(text, NULL);
}

FILTER(f_round) {
    UNUSED;
    int64_t precision, i;
    double value = 0;
    if (!int_arg(r, &p[0], 0, &precision)) return false;
    if (self->kind == J_UNDEFINED) return cera_jinja_raise(r, "TypeError", "type Undefined doesn't define __round__ method");
    if (!cera_jinja_number(self, &value))
        return cera_jinja_raise(r, "TypeError", "type %s doesn't define __round__ method", cera_jinja_type_name(self));
    bool common = p[1].kind == J_MISSING || cera_jinja_str_is(&p[1], "common"), up = cera_jinja_str_is(&p[1], "ceil");
    if (!common && !up && !cera_jinja_str_is(&p[1], "floor"))
        return cera_jinja_raise(r, "FilterArgumentError", "method must be common, ceil or floor");
    if (common && cera_jinja_as_int(self, &i)) {
        *out = cera_jinja_int(precision >= 0 ? i : (int64_t)round_common((double)i, precision));
        return true;
    }
    if (common) return *out = cera_jinja_float(round_common(value, precision)), true;
    double scale = pow(10, (double)precision), scaled = up ? ceil(value * scale) : floor(value * scale);
    return *out = cera_jinja_float((scaled + 0.0) / scale), true;
}

FILTER(f_filesizeformat) {
    UNUSED;
    static const char *const units[2][8] = {{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"},
                                            {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}};
    bool binary = cera_jinja_truth(&p[0]), ok;
    double bytes = 0, base = binary ? 1024 : 1000, unit = base * base;
    char text[64];
    if (!to_float(r, self, &bytes, &ok)) return false;
    if (!ok) return cera_jinja_raise(r, "ValueError", "could not convert to float");
    if (bytes == 1) return cera_jinja_text_value(r, "1 Byte", out);
    if (bytes < base) return snprintf(text, sizeof text, "%.0f Bytes", trunc(bytes) + 0.0), cera_jinja_text_value(r, text, out);
    int i = 0;
    for (; i < 7 && bytes >= unit; i++) unit *= base;
    snprintf(text, sizeof text, "%.1f %s", base * bytes / unit, units[binary][i]);
    return cera_jinja_text_value(r, text, out);
}

/* ---- any value -------------------------------------------------------------------------------------------------- */

FILTER(f_default) {
    UNUSED;
    bool use = self->kind == J_UNDEFINED || (cera_jinja_truth(&p[1]) && !cera_jinja_truth(self));
    if (!use) return *out = *self, true;
    return p[0].kind == J_MISSING ? cera_jinja_text_value(r, "", out) : (*out = p[0], true);
}

FILTER(f_length) {
    int64_t n;
    return UNUSED, cera_jinja_len(r, self, &n) && (*out = cera_jinja_int(n), true);
}

FILTER(f_attr) {
    UNUSED;
    cera_jval name;
    if (!plain(r, &p[0], &name)) return false;
    if (self->kind == J_UNDEFINED) return cera_jinja_undefined_error(r, self);
    if (self->kind == J_DICT && !cera_jinja_method(self, cera_jinja_chars(&name), name.n) &&
        !cera_jinja_unsafe_attr(self, cera_jinja_chars(&name), name.n))
        return cera_jinja_undefined(r, self, &name, out); /* attributes only, not items */
    return cera_jinja_getattr(r, self, &name, out);
}

FILTER(f_xmlattr) {
    UNUSED;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || self->kind != J_DICT)
        return cera_jinja_raise(r, "AttributeError", "'%s' object has no attribute 'items'", cera_jinja_type_name(self));
    for (uint32_t i = 0; i < self->u.dict->n; i++) {
        const cera_jval *key = &self->u.dict->keys[i], *value = &self->u.dict->values[i];
        cera_jval text;
        if (value->kind == J_NONE || value->kind == J_UNDEFINED) continue;
        if (key->kind != J_STR) return cera_jinja_raise(r, "TypeError", "expected string or bytes-like object");
        for (uint32_t k = 0; k < key->n; k++)
            if (strchr(" \t\n\r\f\v/>=", cera_jinja_chars(key)[k]))
                return cera_jinja_raise(r, "ValueError", "Invalid character in attribute name");
        bool space = b->used || p[0].kind == J_MISSING || cera_jinja_truth(&p[0]);
        if ((space && !cera_jinja_buf_text(r, b, " ")) || !cera_jinja_escape(r, key, &text) ||
            !cera_jinja_buf_add_str(r, b, &text) || !cera_jinja_buf_text(r, b, "=\""))
            return false;
        if (!cera_jinja_to_str(r, value, &text) || !cera_jinja_escape(r, &text, &text) ||
            !cera_jinja_buf_add_str(r, b, &text) || !cera_jinja_buf_text(r, b, "\""))
            return false;
    }
    return *out = cera_jinja_buf_value(b), true;
}

FILTER(f_unsupported) { return UNUSED, (void)out, cera_jinja_raise(r, "TemplateRuntimeError", "this filter is not supported"); }

static const cera_jbuiltin filters[] = {{"upper", f_upper, ""},
                                        {"lower", f_lower, ""},
                                        {"capitalize", f_capitalize, ""},
                                        {"title", f_title, ""},
                                        {"trim", f_trim, "chars"},
                                        {"string", f_string, ""},
                                        {"safe", f_safe, ""},
                                        {"escape", f_escape, ""},
                                        {"e", f_escape, ""},
                                        {"forceescape", f_forceescape, ""},
                                        {"striptags", f_striptags, ""},
                                        {"replace", f_replace, "!old,!new,count"},
                                        {"center", f_center, "width"},
                                        {"format", f_format, NULL},
                                        {"indent", f_indent, "width,first,blank"},
                                        {"truncate", f_truncate, "length,killwords,end,leeway"},
                                        {"wordcount", f_wordcount, ""},
                                        {"urlencode", f_urlencode, ""},
                                        {"tojson", f_tojson, "ensure_ascii,indent,separators,sort_keys"},
                                        {"pprint", f_pprint, ""},
                                        {"abs", f_abs, ""},
                                        {"int", f_int, "default,base"},
                                        {"float", f_float, "default"},
                                        {"round", f_round, "precision,method"},
                                        {"filesizeformat", f_filesizeformat, "binary"},
                                        {"default", f_default, "default_value,boolean"},
                                        {"d", f_default, "default_value,boolean"},
                                        {"length", f_length, ""},
                                        {"count", f_length, ""},
                                        {"attr", f_attr, "!name"},
                                        {"xmlattr", f_xmlattr, "autospace"},
                                        {"urlize", f_unsupported, NULL},
                                        {"wordwrap", f_unsupported, NULL},
                                        {"random", f_unsupported, NULL}};

const cera_jbuiltin *cera_jinja_filter(const char *name, size_t n) {
    const cera_jbuiltin *b = cera_jinja_lookup(filters, COUNT(filters), name, n);
    return b ? b : cera_jinja_lookup(cera_jinja_seq_filters, cera_jinja_n_seq_filters, name, n);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static bool answer(bool yes, cera_jval *out) { return *out = cera_jinja_bool(yes), true; }

FILTER(t_defined) { return UNUSED, answer(self->kind != J_UNDEFINED, out); }
FILTER(t_undefined) { return UNUSED, answer(self->kind == J_UNDEFINED, out); }
FILTER(t_none) { return UNUSED, answer(self->kind == J_NONE, out); }
FILTER(t_boolean) { return UNUSED, answer(self->kind == J_BOOL, out); }
FILTER(t_true) { return UNUSED, answer(self->kind == J_BOOL && self->u.b, out); }
FILTER(t_false) { return UNUSED, answer(self->kind == J_BOOL && !self->u.b, out); }
FILTER(t_integer) { return UNUSED, answer(self->kind == J_INT || self->kind == J_BIGINT, out); }
FILTER(t_float) { return UNUSED, answer(self->kind == J_FLOAT, out); }
FILTER(t_number) { return UNUSED, answer(self->kind >= J_BOOL && self->kind <= J_FLOAT, out); }
FILTER(t_string) { return UNUSED, answer(self->kind == J_STR, out); }
FILTER(t_mapping) { return UNUSED, answer(self->kind == J_DICT, out); }
FILTER(t_escaped) { return UNUSED, answer(self->kind == J_STR && self->flags & J_MARKUP, out); }

FILTER(t_iterable) {
    UNUSED;
    return answer(self->kind == J_UNDEFINED || (self->kind >= J_STR && self->kind <= J_ITER) || self->kind == J_LOOP, out);
}

FILTER(t_sequence) {
    UNUSED;
    return answer(self->kind == J_UNDEFINED || (self->kind >= J_STR && self->kind <= J_DICT) || self->kind == J_RANGE, out);
}

FILTER(t_callable) {
    UNUSED;
    return answer(self->kind == J_UNDEFINED || self->kind == J_MACRO || self->kind == J_BUILTIN || self->kind == J_METHOD ||
                      self->kind == J_LOOP || self->kind == J_JOINER,
                  out);
}

static bool remainder_of(cera_jrender *r, const cera_jval *self, const cera_jval *by, int64_t wanted, cera_jval *out) {
    cera_jval rest, goal = cera_jinja_int(wanted);
    bool same;
    if (!cera_jinja_binary(r, OP_MOD, self, by, &rest) || !cera_jinja_equal(r, &rest, &goal, &same)) return false;
    return answer(same, out);
}

FILTER(t_even) {
    cera_jval two = cera_jinja_int(2);
    return UNUSED, remainder_of(r, self, &two, 0, out);
}
FILTER(t_odd) {
    cera_jval two = cera_jinja_int(2);
    return UNUSED, remainder_of(r, self, &two, 1, out);
}
FILTER(t_divisibleby) { return UNUSED, remainder_of(r, self, &p[0], 0, out); }

static bool cased_test(cera_jrender *r, const cera_jval *self, const char *method, cera_jval *out) {
    cera_jval text;
    return cera_jinja_to_str(r, self, &text) &&
           cera_jinja_call_builtin(r, cera_jinja_str_method(method, strlen(method)), &text, &(cera_jargs){0}, out);
}

FILTER(t_lower) { return UNUSED, cased_test(r, self, "islower", out); }
FILTER(t_upper) { return UNUSED, cased_test(r, self, "isupper", out); }

FILTER(t_sameas) {
    UNUSED;
    bool same = self->kind == p[0].kind;
    if (same && (self->kind == J_NONE || self->kind == J_BOOL || self->kind == J_INT || self->kind == J_STR)) {
        if (!cera_jinja_equal(r, self, &p[0], &same)) return false;
    } else if (same) {
        same = self->u.list == p[0].u.list;
    }
    return answer(same, out);
}

FILTER(t_filter) { return UNUSED, answer(self->kind == J_STR && cera_jinja_filter(cera_jinja_chars(self), self->n), out); }
FILTER(t_test) { return UNUSED, answer(self->kind == J_STR && cera_jinja_test(cera_jinja_chars(self), self->n), out); }

static bool compare_test(cera_jrender *r, cera_jop op, const cera_jval *self, const cera_jval *p, cera_jval *out) {
    bool yes;
    return cera_jinja_compare(r, op, self, &p[0], &yes) && answer(yes, out);
}

FILTER(t_eq) { return UNUSED, compare_test(r, OP_EQ, self, p, out); }
FILTER(t_ne) { return UNUSED, compare_test(r, OP_NE, self, p, out); }
FILTER(t_lt) { return UNUSED, compare_test(r, OP_LT, self, p, out); }
FILTER(t_le) { return UNUSED, compare_test(r, OP_LE, self, p, out); }
FILTER(t_gt) { return UNUSED, compare_test(r, OP_GT, self, p, out); }
FILTER(t_ge) { return UNUSED, compare_test(r, OP_GE, self, p, out); }
FILTER(t_in) { return UNUSED, compare_test(r, OP_IN, self, p, out); }

static const cera_jbuiltin tests[] = {{"defined", t_defined, ""},
                                      {"undefined", t_undefined, ""},
                                      {"none", t_none, ""},
                                      {"boolean", t_boolean, ""},
                                      {"true", t_true, ""},
                                      {"false", t_false, ""},
                                      {"integer", t_integer, ""},
                                      {"float", t_float, ""},
                                      {"number", t_number, ""},
                                      {"string", t_string, ""},
                                      {"mapping", t_mapping, ""},
                                      {"escaped", t_escaped, ""},
                                      {"iterable", t_iterable, ""},
                                      {"sequence", t_sequence, ""},
                                      {"callable", t_callable, ""},
                                      {"even", t_even, ""},
                                      {"odd", t_odd, ""},
                                      {"divisibleby", t_divisibleby, "!num"},
                                      {"lower", t_lower, ""},
                                      {"upper", t_upper, ""},
                                      {"sameas", t_sameas, "!other"},
                                      {"filter", t_filter, ""},
                                      {"test", t_test, ""},
                                      {"eq", t_eq, "!other"},
                                      {"equalto", t_eq, "!other"},
                                      {"==", t_eq, "!other"},
                                      {"ne", t_ne, "!other"},
                                      {"!=", t_ne, "!other"},
                                      {"lt", t_lt, "!other"},
                                      {"lessthan", t_lt, "!other"},
                                      {"<", t_lt, "!other"},
                                      {"le", t_le, "!other"},
                                      {"<=", t_le, "!other"},
                                      {"gt", t_gt, "!other"},
                                      {"greaterthan", t_gt, "!other"},
                                      {">", t_gt, "!other"},
                                      {"ge", t_ge, "!other"},
                                      {">=", t_ge, "!other"},
                                      {"in", t_in, "!seq"}};

const cera_jbuiltin *cera_jinja_test(const char *name, size_t n) { return cera_jinja_lookup(tests, COUNT(tests), name, n); }

/* ---- globals ---------------------------------------------------------------------------------------------------- */

FILTER(g_range) {
    UNUSED;
    enum { MAX_RANGE = 100000 }; /* the sandbox's */
    int64_t v[3] = {0, 0, 1};
    if (args->n_names || args->n_pos == 0 || args->n_pos > 3)
        return cera_jinja_raise(r, "TypeError", "range expected 1 to 3 arguments, got %u", args->n_pos);
    for (uint32_t i = 0; i < args->n_pos; i++)
        if (!cera_jinja_as_int(&args->pos[i], &v[args->n_pos == 1 ? 1 : i]))
            return cera_jinja_raise(r, "TypeError", "'%s' object cannot be interpreted as an integer",
                                    cera_jinja_type_name(&args->pos[i]));
    if (v[2] == 0) return cera_jinja_raise(r, "ValueError", "range() arg 3 must not be zero");
    if (v[2] == INT64_MIN) v[2] = -INT64_MAX;
    uint64_t width = v[2] > 0 ? (uint64_t)v[2] : (uint64_t)-v[2];
    uint64_t span = v[2] > 0      ? (v[1] > v[0] ? (uint64_t)v[1] - (uint64_t)v[0] : 0)
                    : v[0] > v[1] ? (uint64_t)v[0] - (uint64_t)v[1]
                                  : 0;
    uint64_t n = span ? (span - 1) / width + 1 : 0;
    if (n > MAX_RANGE)
        return cera_jinja_raise(r, "OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                                MAX_RANGE);
    cera_jrange *g = cera_jinja_alloc(&r->mem, 1, sizeof *g);
    if (!g) return cera_jinja_no_memory(r);
    *g = (cera_jrange){v[0], v[1], v[2], (int64_t)n};
    return *out = (cera_jval){.kind = J_RANGE, .u.range = g}, true;
}

/* dict(mapping or pairs, **members) */
static bool make_dict(cera_jrender *r, const char *name, const cera_jargs *args, cera_jdict **out) {
    cera_jdict *d = *out = cera_jinja_dict_new(r, 0);
    cera_jlist *l;
    if (!d) return false;
    if (args->n_pos > 1) return cera_jinja_raise(r, "TypeError", "%s expected at most 1 argument, got %u", name, args->n_pos);
    cera_jval over = args->n_pos ? args->pos[0] : (cera_jval){0};
    if (over.kind == J_DICT) over = (cera_jval){.kind = J_VIEW, .sub = J_VIEW_ITEMS, .u.dict = over.u.dict};
    if (args->n_pos) {
        if (!cera_jinja_to_list(r, &over, &l)) return false;
        for (uint32_t i = 0; i < l->n; i++) {
            cera_jlist *pair;
            if (!cera_jinja_to_list(r, &l->items[i], &pair)) return false;
            if (pair->n != 2)
                return cera_jinja_raise(r, "ValueError", "dictionary update sequence element #%u has length %u; 2 is required",
                                        i, pair->n);
            if (!cera_jinja_dict_set(r, d, &pair->items[0], &pair->items[1])) return false;
        }
    }
    for (uint32_t i = 0; i < args->n_names; i++)
        if (!cera_jinja_dict_set(r, d, &args->names[i], &args->values[i])) return false;
    return true;
}

FILTER(g_dict) {
    cera_jdict *d;
    UNUSED;
    return make_dict(r, "dict", args, &d) && (*out = (cera_jval){.kind = J_DICT, .u.dict = d}, true);
}

FILTER(g_namespace) {
    cera_jdict *d;
    UNUSED;
    return make_dict(r, "namespace", args, &d) && (*out = (cera_jval){.kind = J_NAMESPACE, .u.dict = d}, true);
}

FILTER(g_cycler) {
    UNUSED;
    cera_jcycler *c = cera_jinja_alloc(&r->mem, 1, sizeof *c);
    if (!c) return cera_jinja_no_memory(r);
    if (args->n_pos == 0 || args->n_names) return cera_jinja_raise(r, "RuntimeError", "at least one item has to be provided");
    for (uint32_t i = 0; i < args->n_pos; i++)
        if (!cera_jinja_list_add(r, &c->items, &args->pos[i])) return false;
    return *out = (cera_jval){.kind = J_CYCLER, .u.cycler = c}, true;
}

FILTER(g_joiner) {
    UNUSED;
    cera_jcycler *c = cera_jinja_alloc(&r->mem, 1, sizeof *c);
    if (!c) return cera_jinja_no_memory(r);
    if (p[0].kind == J_MISSING ? !cera_jinja_text_value(r, ", ", &c->separator) : !(c->separator = p[0], true)) return false;
    return *out = (cera_jval){.kind = J_JOINER, .u.cycler = c}, true;
}

FILTER(g_raise_exception) {
    UNUSED;
    cera_jval text;
    (void)out;
    if (!cera_jinja_to_str(r, &p[0], &text)) return false;
    return cera_jinja_raise(r, "TemplateError", "%.*s", (int)(text.n < 700 ? text.n : 700),
                            text.n ? cera_jinja_chars(&text) : "");
}

FILTER(g_strftime_now) {
    UNUSED;
    struct tm local;
    const struct tm *now = r->options ? r->options->now : NULL;
    if (p[0].kind != J_STR)
        return cera_jinja_raise(r, "TypeError", "strftime() argument 1 must be str, not %s", cera_jinja_type_name(&p[0]));
    if (!now) {
        time_t seconds = time(NULL);
        now = localtime_r(&seconds, &local);
        if (!now) return cera_jinja_raise(r, "OSError", "the local time is not known");
    }
    return cera_jinja_strftime(r, now, &p[0], out);
}

FILTER(g_unsupported) {
    return UNUSED, (void)out, cera_jinja_raise(r, "TemplateRuntimeError", "this function is not supported");
}

static const cera_jbuiltin globals[] = {{"range", g_range, NULL},
                                        {"dict", g_dict, NULL},
                                        {"namespace", g_namespace, NULL},
                                        {"cycler", g_cycler, NULL},
                                        {"joiner", g_joiner, "sep"},
                                        {"raise_exception", g_raise_exception, "!message"},
                                        {"strftime_now", g_strftime_now, "!format"},
                                        {"lipsum", g_unsupported, NULL}};

const cera_jbuiltin *cera_jinja_global(const char *name, size_t n) {
    return cera_jinja_lookup(globals, COUNT(globals), name, n);
}
