/* jinja_print.c: values as text: Python's str() and repr(), floats as Python prints them, and JSON as json.dumps writes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/jinja_int.h"

/* ---- floats ----------------------------------------------------------------------------------------------------- */

/* Shortest digits that read back as f, and the exponent of the first. The decimal point may be any byte (locales). */
static int shortest_digits(double f, char digits[20], int *exponent) {
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, f);
        if (strtod(text, NULL) == f) break;
    }
    int n = 0;
    char *e = strchr(text, 'e');
    for (char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0') n--;
    *exponent = (int)strtol(e + 1, NULL, 10);
    return n;
}

int cera_jinja_float_text(double f, char out[CERA_JINJA_FLOAT_TEXT]) {
    if (isnan(f) || isinf(f)) return snprintf(out, CERA_JINJA_FLOAT_TEXT, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    char digits[20];
    int exponent, n = shortest_digits(fabs(f), digits, &exponent), k = 0;
    if (signbit(f)) out[k++] = '-';
    if (exponent < -4 || exponent >= 16) {
        out[k++] = digits[0];
        if (n > 1) out[k++] = '.';
        for (int i = 1; i < n; i++) out[k++] = digits[i];
        return k + snprintf(out + k, (size_t)(CERA_JINJA_FLOAT_TEXT - k), "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    }
    if (exponent < 0) {
        out[k++] = '0';
        out[k++] = '.';
        for (int i = -1; i > exponent; i--) out[k++] = '0';
        for (int i = 0; i < n; i++) out[k++] = digits[i];
    } else {
        for (int i = 0; i < n || i <= exponent + 1; i++) {
            if (i == exponent + 1) out[k++] = '.';
            out[k++] = i < n ? digits[i] : '0';
        }
    }
    out[k] = 0;
    return k;
}

/* ---- repr ------------------------------------------------------------------------------------------------------- */

static bool add_escaped(cera_jrender *r, cera_jbuf *b, uint32_t code, bool user) {
    char text[16];
    if (code == '\n' || code == '\r' || code == '\t')
        snprintf(text, sizeof text, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    else
        snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code);
    return cera_jinja_buf_add(r, b, text, strlen(text), user);
}

static bool repr_string(cera_jrender *r, cera_jbuf *b, const cera_jval *s) {
    const char *p = cera_jinja_chars(s);
    char quote = s->n && memchr(p, '\'', s->n) && !memchr(p, '"', s->n) ? '"' : '\'';
    if (s->flags & J_MARKUP && !cera_jinja_buf_text(r, b, "Markup(")) return false;
    if (!cera_jinja_buf_add(r, b, &quote, 1, false)) return false;
    uint32_t from = 0;
    for (uint32_t i = 0, size; i < s->n; i += size) {
        uint32_t code = cera_jinja_char_at(s, i, &size);
        bool slash = code == (unsigned char)quote || code == '\\';
        if (!slash && ((code >= ' ' && code < 0x7f) || (code > 0x7f && cera_jinja_char_class(code) & JC_PRINTABLE))) continue;
        cera_jval part = cera_jinja_sub(s, from, i);
        bool user = cera_jinja_user_at(s, i);
        char text[2] = {'\\', (char)code};
        if (!cera_jinja_buf_add_str(r, b, &part) ||
            !(slash ? cera_jinja_buf_add(r, b, text, 2, user) : add_escaped(r, b, code, user)))
            return false;
        from = i + size;
    }
    cera_jval part = cera_jinja_sub(s, from, s->n);
    if (!cera_jinja_buf_add_str(r, b, &part) || !cera_jinja_buf_add(r, b, &quote, 1, false)) return false;
    return !(s->flags & J_MARKUP) || cera_jinja_buf_text(r, b, ")");
}

static bool repr_list(cera_jrender *r, cera_jbuf *b, const cera_jval *v) {
    const cera_jlist *l = v->u.list;
    bool tuple = v->kind == J_TUPLE;
    if (!cera_jinja_buf_text(r, b, tuple ? "(" : "[")) return false;
    for (uint32_t i = 0; i < l->n; i++)
        if ((i && !cera_jinja_buf_text(r, b, ", ")) || !cera_jinja_repr(r, b, &l->items[i])) return false;
    return cera_jinja_buf_text(r, b, tuple ? (l->n == 1 ? ",)" : ")") : "]");
}

static bool repr_dict(cera_jrender *r, cera_jbuf *b, const cera_jdict *d) {
    if (!cera_jinja_buf_text(r, b, "{")) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        if (i && !cera_jinja_buf_text(r, b, ", ")) return false;
        if (!cera_jinja_repr(r, b, &d->keys[i]) || !cera_jinja_buf_text(r, b, ": ") || !cera_jinja_repr(r, b, &d->values[i]))
            return false;
    }
    return cera_jinja_buf_text(r, b, "}");
}

static bool repr_view(cera_jrender *r, cera_jbuf *b, const cera_jval *v) {
    cera_jlist *l;
    if (!cera_jinja_to_list(r, v, &l)) return false;
    cera_jval list = cera_jinja_list_value(l, J_LIST);
    return cera_jinja_buf_text(r, b, cera_jinja_type_name(v)) && cera_jinja_buf_text(r, b, "(") && repr_list(r, b, &list) &&
           cera_jinja_buf_text(r, b, ")");
}

/* Some of the global functions are classes in Python. */
static const char *builtin_text(const cera_jbuiltin *b) {
    static const char *const texts[][2] = {{"dict", "<class 'dict'>"},
                                           {"namespace", "<class 'jinja2.utils.Namespace'>"},
                                           {"cycler", "<class 'jinja2.utils.Cycler'>"},
                                           {"joiner", "<class 'jinja2.utils.Joiner'>"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!strcmp(texts[i][0], b->name)) return texts[i][1];
    return "<function>";
}

static bool repr_other(cera_jrender *r, cera_jbuf *b, const cera_jval *v) {
    char text[160];
    switch (v->kind) {
    case J_RANGE: {
        const cera_jrange *g = v->u.range;
        if (g->step == 1)
            snprintf(text, sizeof text, "range(%lld, %lld)", (long long)g->start, (long long)g->stop);
        else
            snprintf(text, sizeof text, "range(%lld, %lld, %lld)", (long long)g->start, (long long)g->stop, (long long)g->step);
        break;
    }
    case J_NAMESPACE:
        return cera_jinja_buf_text(r, b, "<Namespace ") && repr_dict(r, b, v->u.dict) && cera_jinja_buf_text(r, b, ">");
    case J_MACRO:
        if (v->u.macro->name.kind != J_STR) return cera_jinja_buf_text(r, b, "<Macro anonymous>");
        return cera_jinja_buf_text(r, b, "<Macro ") && repr_string(r, b, &v->u.macro->name) && cera_jinja_buf_text(r, b, ">");
    case J_LOOP: {
        int64_t n;
        if (!cera_jinja_loop_length(r, v->u.loop, &n)) return false;
        snprintf(text, sizeof text, "<LoopContext %lld/%lld>", (long long)v->u.loop->index0 + 1, (long long)n);
        break;
    }
    case J_BUILTIN: return cera_jinja_buf_text(r, b, builtin_text(v->u.builtin));
    case J_METHOD:
        snprintf(text, sizeof text, "<built-in method %s of %s object>", v->u.method->builtin->name,
                 cera_jinja_type_name(&v->u.method->self));
        break;
    default: snprintf(text, sizeof text, "<%s object>", cera_jinja_type_name(v)); break;
    }
    return cera_jinja_buf_text(r, b, text);
}

static bool repr_inner(cera_jrender *r, cera_jbuf *b, const cera_jval *v) {
    char text[CERA_JINJA_FLOAT_TEXT];
    switch (v->kind) {
    case J_MISSING:
    case J_UNDEFINED: return cera_jinja_buf_text(r, b, "Undefined");
    case J_NONE: return cera_jinja_buf_text(r, b, "None");
    case J_BOOL: return cera_jinja_buf_text(r, b, v->u.b ? "True" : "False");
    case J_INT: snprintf(text, sizeof text, "%lld", (long long)v->u.i); return cera_jinja_buf_text(r, b, text);
    case J_FLOAT: cera_jinja_float_text(v->u.f, text); return cera_jinja_buf_text(r, b, text);
    case J_BIGINT: return cera_jinja_buf_add_str(r, b, v);
    case J_STR: return repr_string(r, b, v);
    case J_LIST:
    case J_TUPLE: return repr_list(r, b, v);
    case J_DICT: return repr_dict(r, b, v->u.dict);
    case J_VIEW: return repr_view(r, b, v);
    default: return repr_other(r, b, v);
    }
}

bool cera_jinja_repr(cera_jrender *r, cera_jbuf *b, const cera_jval *v) {
    if (!cera_jinja_enter(r)) return false;
    bool ok = repr_inner(r, b, v);
    r->depth--;
    return ok;
}

bool cera_jinja_print(cera_jrender *r, cera_jbuf *b, const cera_jval *v) {
    if (v->kind == J_STR) return cera_jinja_buf_add_str(r, b, v);
    if (v->kind == J_UNDEFINED || v->kind == J_MISSING) return true;
    return cera_jinja_repr(r, b, v);
}

bool cera_jinja_to_str(cera_jrender *r, const cera_jval *v, cera_jval *out) {
    if (v->kind == J_STR) return *out = *v, true;
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_print(r, b, v)) return false;
    *out = cera_jinja_buf_value(b);
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

typedef struct json_style {
    bool ascii, sorted, pretty;
    cera_jval indent, item_separator, key_separator;
} json_style;

static bool json_value(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jval *v, uint32_t level);

static bool json_escape(cera_jrender *r, cera_jbuf *b, uint32_t code, bool user) {
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char text[16];
    const char *known = code && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (known)
        snprintf(text, sizeof text, "\\%c", to[known - from]);
    else if (code < 0x10000)
        snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    else
        snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((code - 0x10000) >> 10)),
                 (unsigned)(0xDC00 + ((code - 0x10000) & 0x3FF)));
    return cera_jinja_buf_add(r, b, text, strlen(text), user);
}

static bool json_string(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jval *s) {
    uint32_t from = 0;
    if (!cera_jinja_buf_text(r, b, "\"")) return false;
    for (uint32_t i = 0, size; i < s->n; i += size) {
        uint32_t code = (unsigned char)cera_jinja_chars(s)[i];
        size = 1;
        if (code >= 0x80) {
            if (!style->ascii) continue;
            code = cera_jinja_char_at(s, i, &size);
        } else if (code >= ' ' && code != '"' && code != '\\' && !(code == 0x7f && style->ascii)) {
            continue;
        }
        cera_jval part = cera_jinja_sub(s, from, i);
        if (!cera_jinja_buf_add_str(r, b, &part) || !json_escape(r, b, code, cera_jinja_user_at(s, i))) return false;
        from = i + size;
    }
    cera_jval part = cera_jinja_sub(s, from, s->n);
    return cera_jinja_buf_add_str(r, b, &part) && cera_jinja_buf_text(r, b, "\"");
}

static bool json_newline(cera_jrender *r, cera_jbuf *b, const json_style *style, uint32_t level) {
    if (!style->pretty) return true;
    if (!cera_jinja_buf_text(r, b, "\n")) return false;
    for (uint32_t i = 0; i < level; i++)
        if (!cera_jinja_buf_add_str(r, b, &style->indent)) return false;
    return true;
}

static bool json_array(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jlist *l, uint32_t level) {
    if (l->n == 0) return cera_jinja_buf_text(r, b, "[]");
    if (!cera_jinja_buf_text(r, b, "[")) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (i && !cera_jinja_buf_add_str(r, b, &style->item_separator)) return false;
        if (!json_newline(r, b, style, level + 1) || !json_value(r, b, style, &l->items[i], level + 1)) return false;
    }
    return json_newline(r, b, style, level) && cera_jinja_buf_text(r, b, "]");
}

static bool json_float(cera_jrender *r, cera_jbuf *b, double f) {
    char text[CERA_JINJA_FLOAT_TEXT];
    if (isnan(f) || isinf(f)) return cera_jinja_buf_text(r, b, isnan(f) ? "NaN" : f < 0 ? "-Infinity" : "Infinity");
    cera_jinja_float_text(f, text);
    return cera_jinja_buf_text(r, b, text);
}

static bool json_key(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jval *key) {
    switch (key->kind) {
    case J_STR: return json_string(r, b, style, key);
    case J_NONE:
    case J_BOOL:
    case J_INT:
    case J_BIGINT:
    case J_FLOAT: return cera_jinja_buf_text(r, b, "\"") && json_value(r, b, style, key, 0) && cera_jinja_buf_text(r, b, "\"");
    default:
        return cera_jinja_raise(r, "TypeError", "keys must be str, int, float, bool or None, not %s",
                                cera_jinja_type_name(key));
    }
}

/* The members in the order they are written. */
static bool json_members(cera_jrender *r, const cera_jdict *d, bool sorted, const cera_jval **keys, const cera_jval **values) {
    *keys = d->keys;
    *values = d->values;
    if (!sorted || d->n < 2) return true;
    cera_jval *k = cera_jinja_alloc(&r->mem, d->n, sizeof *k), *v = cera_jinja_alloc(&r->mem, d->n, sizeof *v);
    if (!k || !v) return cera_jinja_no_memory(r);
    memcpy(k, d->keys, d->n * sizeof *k);
    memcpy(v, d->values, d->n * sizeof *v);
    *keys = k;
    *values = v;
    return cera_jinja_sort(r, v, k, d->n, false);
}

static bool json_object(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jdict *d, uint32_t level) {
    const cera_jval *keys, *values;
    if (d->n == 0) return cera_jinja_buf_text(r, b, "{}");
    if (!json_members(r, d, style->sorted, &keys, &values) || !cera_jinja_buf_text(r, b, "{")) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        if (i && !cera_jinja_buf_add_str(r, b, &style->item_separator)) return false;
        if (!json_newline(r, b, style, level + 1) || !json_key(r, b, style, &keys[i]) ||
            !cera_jinja_buf_add_str(r, b, &style->key_separator))
            return false;
        if (!json_value(r, b, style, &values[i], level + 1)) return false;
    }
    return json_newline(r, b, style, level) && cera_jinja_buf_text(r, b, "}");
}

static bool json_inner(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jval *v, uint32_t level) {
    switch (v->kind) {
    case J_NONE: return cera_jinja_buf_text(r, b, "null");
    case J_BOOL: return cera_jinja_buf_text(r, b, v->u.b ? "true" : "false");
    case J_INT:
    case J_BIGINT: return cera_jinja_repr(r, b, v);
    case J_FLOAT: return json_float(r, b, v->u.f);
    case J_STR: return json_string(r, b, style, v);
    case J_LIST:
    case J_TUPLE: return json_array(r, b, style, v->u.list, level);
    case J_DICT: return json_object(r, b, style, v->u.dict, level);
    default: return cera_jinja_raise(r, "TypeError", "Object of type %s is not JSON serializable", cera_jinja_type_name(v));
    }
}

static bool json_value(cera_jrender *r, cera_jbuf *b, const json_style *style, const cera_jval *v, uint32_t level) {
    if (!cera_jinja_enter(r)) return false;
    bool ok = json_inner(r, b, style, v, level);
    r->depth--;
    return ok;
}

static bool json_separators(cera_jrender *r, json_style *style, const cera_jval *v) {
    if (v->kind == J_MISSING || v->kind == J_NONE)
        return cera_jinja_text_value(r, style->pretty ? "," : ", ", &style->item_separator) &&
               cera_jinja_text_value(r, ": ", &style->key_separator);
    cera_jlist *l;
    if (!cera_jinja_to_list(r, v, &l)) return false;
    if (l->n != 2 || l->items[0].kind != J_STR || l->items[1].kind != J_STR)
        return cera_jinja_raise(r, "TypeError", "separators must be two strings");
    style->item_separator = l->items[0];
    style->key_separator = l->items[1];
    return true;
}

static bool json_indent(cera_jrender *r, json_style *style, const cera_jval *v) {
    int64_t n;
    style->pretty = v->kind != J_MISSING && v->kind != J_NONE;
    if (!style->pretty || v->kind == J_STR) return style->indent = *v, true;
    if (!cera_jinja_as_int(v, &n))
        return cera_jinja_raise(r, "TypeError", "indent must be an integer or a string, not %s", cera_jinja_type_name(v));
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b) return false;
    for (int64_t i = 0; i < n; i++)
        if (!cera_jinja_buf_text(r, b, " ")) return false;
    style->indent = cera_jinja_buf_value(b);
    return true;
}

bool cera_jinja_json(cera_jrender *r, const cera_jval *v, const cera_jval *p, cera_jval *out) {
    json_style style = {.ascii = cera_jinja_truth(&p[0]), .sorted = cera_jinja_truth(&p[3])};
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !json_indent(r, &style, &p[1]) || !json_separators(r, &style, &p[2])) return false;
    if (!json_value(r, b, &style, v, 0)) return false;
    *out = cera_jinja_buf_value(b);
    return true;
}
