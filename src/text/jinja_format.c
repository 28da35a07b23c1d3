/* jinja_format.c: formatting as Python does it: the % operator, str.format with its format specifications, and strftime in the
 * C locale. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct spec {
    char align, sign, type, fill[4];
    uint32_t fill_size;
    bool alternate, zero, comma;
    char group;           /* ',' or '_' */
    int width, precision; /* precision -1: not given */
} spec;

enum { MAX_WIDTH = 1 << 20, MAX_PRECISION = 400, NUMBER_TEXT = 800 };

/* Writes text padded to the width; numbers carry their sign (n_sign bytes) in front of padding by '='. */
static bool add_padded(cera_jrender *r, cera_jbuf *b, const spec *s, const cera_jval *text, uint32_t n_sign) {
    uint32_t chars = cera_jinja_str_chars(text);
    uint32_t pad = (uint32_t)s->width > chars ? (uint32_t)s->width - chars : 0;
    uint32_t left = s->align == '>' || s->align == '=' ? pad : s->align == '^' ? pad / 2 : 0;
    cera_jval head = cera_jinja_sub(text, 0, s->align == '=' ? n_sign : 0), tail = cera_jinja_sub(text, head.n, text->n);
    if (!cera_jinja_buf_add_str(r, b, &head)) return false;
    for (uint32_t i = 0; i < left; i++)
        if (!cera_jinja_buf_add(r, b, s->fill, s->fill_size, false)) return false;
    if (!cera_jinja_buf_add_str(r, b, &tail)) return false;
    for (uint32_t i = left; i < pad; i++)
        if (!cera_jinja_buf_add(r, b, s->fill, s->fill_size, false)) return false;
    return true;
}

static void put_sign(char *out, bool negative, char sign) {
    out[0] = negative ? '-' : sign == '+' || sign == ' ' ? sign : 0;
    out[1] = 0;
}

static void group_digits(char *digits, size_t size, char mark) {
    char copy[NUMBER_TEXT];
    size_t n = strspn(digits, "0123456789"), k = 0;
    if (n == 0 || strlen(digits) + n / 3 + 1 > size) return;
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) copy[k++] = mark;
        copy[k++] = digits[i];
    }
    strcpy(copy + k, digits + n);
    strcpy(digits, copy);
}

static bool format_int(cera_jrender *r, cera_jbuf *b, const spec *s, int64_t value) {
    char text[NUMBER_TEXT], digits[NUMBER_TEXT];
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char type = s->type ? s->type : 'd';
    const char *prefix = "";
    if (type == 'b') {
        int n = 0;
        for (int bit = 63; bit >= 0; bit--)
            if (n || magnitude >> bit & 1 || bit == 0) digits[n++] = (char)('0' + (magnitude >> bit & 1));
        digits[n] = 0;
        prefix = s->alternate ? "0b" : "";
    } else {
        snprintf(digits, sizeof digits,
                 type == 'x'   ? "%llx"
                 : type == 'X' ? "%llX"
                 : type == 'o' ? "%llo"
                               : "%llu",
                 (unsigned long long)magnitude);
        if (s->alternate) prefix = type == 'x' ? "0x" : type == 'X' ? "0X" : type == 'o' ? "0o" : "";
        if (s->precision > (int)strlen(digits) && s->precision < MAX_PRECISION)
            snprintf(digits, sizeof digits, "%0*llu", s->precision, (unsigned long long)magnitude);
    }
    if (s->group) group_digits(digits, sizeof digits, s->group);
    char sign[2];
    put_sign(sign, value < 0, s->sign);
    snprintf(text, sizeof text, "%s%s%.700s", sign, prefix, digits);
    cera_jval v = {0};
    return cera_jinja_text_value(r, text, &v) && add_padded(r, b, s, &v, (uint32_t)(strlen(sign) + strlen(prefix)));
}

static void use_point(char *text) { /* whatever the locale's decimal mark is */
    for (char *p = text; *p; p++)
        if (*p == ',') *p = '.';
}

static bool format_float(cera_jrender *r, cera_jbuf *b, const spec *s, double value) {
    char text[NUMBER_TEXT], digits[NUMBER_TEXT], format[16], sign[2];
    char type = s->type ? s->type : 'r';
    int precision = s->precision < 0 ? 6 : s->precision;
    double magnitude = fabs(value);
    if (precision > MAX_PRECISION) return cera_jinja_limit(r, "a precision above %d", MAX_PRECISION);
    if (isnan(value) || isinf(value)) {
        snprintf(digits, sizeof digits, "%s", isnan(value) ? "nan" : "inf");
    } else if (type == 'r' && s->precision < 0) {
        cera_jinja_float_text(magnitude, digits);
    } else if (type == '%') {
        snprintf(digits, sizeof digits - 1, "%.*f", precision, magnitude * 100);
        use_point(digits);
        strcat(digits, "%");
    } else {
        snprintf(format, sizeof format, "%%%s.*%c", s->alternate ? "#" : "", type == 'r' || type == 'n' ? 'g' : type);
        snprintf(digits, sizeof digits, format, precision == 0 && strchr("gGrn", type) ? 1 : precision, magnitude);
        use_point(digits);
        if (type == 'r' && !strpbrk(digits, ".e")) strcat(digits, ".0");
    }
    if (s->group) group_digits(digits, sizeof digits, s->group);
    put_sign(sign, signbit(value) && !isnan(value), s->sign);
    snprintf(text, sizeof text, "%s%.790s", sign, digits);
    cera_jval v = {0};
    return cera_jinja_text_value(r, text, &v) && add_padded(r, b, s, &v, (uint32_t)strlen(sign));
}

static bool format_text(cera_jrender *r, cera_jbuf *b, const spec *s, cera_jval text) {
    if (s->precision >= 0) text = cera_jinja_sub(&text, 0, cera_jinja_char_offset(&text, (uint32_t)s->precision));
    return add_padded(r, b, s, &text, 0);
}

/* ---- % ---------------------------------------------------------------------------------------------------------- */

typedef struct percent {
    cera_jrender *r;
    cera_jbuf *b;
    const char *p, *end;
    const cera_jval *args; /* a tuple's items, or the one value */
    uint32_t n_args, at;
    const cera_jval *mapping; /* dict, or NULL */
} percent;

static bool next_arg(percent *f, const cera_jval **out) {
    if (f->at >= f->n_args) return cera_jinja_raise(f->r, "TypeError", "not enough arguments for format string");
    *out = &f->args[f->at++];
    return true;
}

static bool percent_key(percent *f, const cera_jval *format, const cera_jval **out) {
    const char *from = ++f->p;
    int depth = 1;
    for (; f->p < f->end; f->p++) {
        depth += *f->p == '(' ? 1 : *f->p == ')' ? -1 : 0;
        if (depth == 0) break;
    }
    if (f->p >= f->end) return cera_jinja_raise(f->r, "ValueError", "incomplete format key");
    if (!f->mapping) return cera_jinja_raise(f->r, "TypeError", "format requires a mapping");
    uint32_t start = (uint32_t)(from - cera_jinja_chars(format));
    cera_jval key = cera_jinja_sub(format, start, start + (uint32_t)(f->p - from)), *value;
    f->p++;
    if (!cera_jinja_dict_find(f->r, f->mapping->u.dict, &key, &value)) return false;
    if (!value) return cera_jinja_raise(f->r, "KeyError", "'%.*s'", (int)key.n, cera_jinja_chars(&key));
    *out = value;
    return true;
}

static bool percent_number(percent *f, int *out, int limit) {
    const cera_jval *v = NULL;
    int64_t n = 0;
    if (f->p < f->end && *f->p == '*') {
        f->p++;
        if (!next_arg(f, &v)) return false;
        if (!cera_jinja_as_int(v, &n)) return cera_jinja_raise(f->r, "TypeError", "* wants int");
    } else {
        while (f->p < f->end && *f->p >= '0' && *f->p <= '9' && n <= limit) n = n * 10 + (*f->p++ - '0');
    }
    if (n > limit || n < -limit) return cera_jinja_limit(f->r, "a width or precision above %d", limit);
    *out = (int)n;
    return true;
}

static bool percent_value(percent *f, const spec *given, char type, const cera_jval *v) {
    spec s = *given;
    int64_t i;
    double d;
    cera_jval text;
    cera_jbuf *b;
    s.type = type == 'i' || type == 'u' ? 'd' : type;
    switch (type) {
    case 's':
    case 'r':
        b = cera_jinja_buf_new(f->r);
        if (!b || !(type == 's' ? cera_jinja_print(f->r, b, v) : cera_jinja_repr(f->r, b, v))) return false;
        text = cera_jinja_buf_value(b);
        s.fill[0] = ' ';
        if (s.align == '=') s.align = '>';
        return format_text(f->r, f->b, &s, text);
    case 'd':
    case 'i':
    case 'u':
        if (v->kind == J_FLOAT && fabs(v->u.f) < 9e18)
            i = (int64_t)v->u.f;
        else if (!cera_jinja_as_int(v, &i))
            return cera_jinja_raise(f->r, "TypeError", "%%%c format: a real number is required, not %s", type,
                                    cera_jinja_type_name(v));
        return format_int(f->r, f->b, &s, i);
    case 'x':
    case 'X':
    case 'o':
        if (!cera_jinja_as_int(v, &i))
            return cera_jinja_raise(f->r, "TypeError", "%%%c format: an integer is required, not %s", type,
                                    cera_jinja_type_name(v));
        return format_int(f->r, f->b, &s, i);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (!cera_jinja_number(v, &d))
            return cera_jinja_raise(f->r, "TypeError", "must be real number, not %s", cera_jinja_type_name(v));
        return format_float(f->r, f->b, &s, d);
    case 'c':
        if (v->kind == J_STR && cera_jinja_str_chars(v) == 1) return format_text(f->r, f->b, &s, *v);
        if (!cera_jinja_as_int(v, &i)) return cera_jinja_raise(f->r, "TypeError", "%%c requires int or char");
        b = cera_jinja_buf_new(f->r);
        char bytes[4];
        int size = i >= 0 && i < 0x110000 ? cera_utf8_encode((uint32_t)i, bytes) : 0;
        if (size == 0) return cera_jinja_raise(f->r, "OverflowError", "%%c arg not in range(0x110000)");
        if (!b || !cera_jinja_buf_add(f->r, b, bytes, (size_t)size, false)) return false;
        return format_text(f->r, f->b, &s, cera_jinja_buf_value(b));
    default:
        return cera_jinja_raise(f->r, "ValueError", "unsupported format character '%c'",
                                type >= ' ' && type < 127 ? type : '?');
    }
}

static bool percent_one(percent *f, const cera_jval *format) {
    spec s = {.align = '>', .fill = " ", .fill_size = 1, .precision = -1};
    const cera_jval *v = NULL;
    if (f->p < f->end && *f->p == '(' && !percent_key(f, format, &v)) return false;
    for (; f->p < f->end && strchr("-+ #0", *f->p); f->p++) {
        if (*f->p == '-')
            s.align = '<';
        else if (*f->p == '#')
            s.alternate = true;
        else if (*f->p == '0')
            s.zero = true;
        else if (s.sign != '+')
            s.sign = *f->p;
    }
    if (!percent_number(f, &s.width, MAX_WIDTH)) return false;
    if (s.width < 0) {
        s.width = -s.width;
        s.align = '<';
    }
    if (f->p < f->end && *f->p == '.') {
        f->p++;
        if (!percent_number(f, &s.precision, MAX_PRECISION)) return false;
        if (s.precision < 0) s.precision = 0;
    }
    while (f->p < f->end && strchr("hlL", *f->p)) f->p++;
    if (f->p >= f->end) return cera_jinja_raise(f->r, "ValueError", "incomplete format");
    char type = *f->p++;
    if (type == '%') return cera_jinja_buf_text(f->r, f->b, "%");
    if (s.zero && s.align != '<') {
        s.align = '=';
        s.fill[0] = '0';
    }
    if (!v && !next_arg(f, &v)) return false;
    return percent_value(f, &s, type, v);
}

bool cera_jinja_percent(cera_jrender *r, const cera_jval *format, const cera_jval *args, cera_jval *out) {
    cera_jval text = *format, value = *args;
    const char *start = cera_jinja_chars(&text);
    percent f = {.r = r, .b = cera_jinja_buf_new(r), .p = start, .end = start + text.n, .args = &value, .n_args = 1};
    if (!f.b) return false;
    if (value.kind == J_TUPLE) {
        f.args = value.u.list->items;
        f.n_args = value.u.list->n;
    }
    if (value.kind == J_DICT) f.mapping = &value;
    while (f.p < f.end) {
        const char *next = memchr(f.p, '%', (size_t)(f.end - f.p));
        uint32_t from = (uint32_t)(f.p - start), to = next ? (uint32_t)(next - start) : text.n;
        cera_jval part = cera_jinja_sub(&text, from, to);
        if (!cera_jinja_buf_add_str(r, f.b, &part)) return false;
        if (!next) break;
        f.p = next + 1;
        if (!percent_one(&f, &text)) return false;
    }
    bool one_container = value.kind == J_DICT || value.kind == J_LIST;
    if (f.at < f.n_args && !f.mapping && !one_container)
        return cera_jinja_raise(r, "TypeError", "not all arguments converted during string formatting");
    *out = cera_jinja_buf_value(f.b);
    out->flags = text.flags;
    return true;
}

/* ---- str.format ------------------------------------------------------------------------------------------------- */

typedef struct formatter {
    cera_jrender *r;
    const cera_jargs *args;
    cera_jbuf *b;
    uint32_t next;
    int numbering; /* 0 not chosen, 1 automatic, 2 by hand */
} formatter;

static bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

static bool parse_spec(formatter *f, const cera_jval *text, spec *s) {
    const char *p = cera_jinja_chars(text), *end = p + text->n;
    *s = (spec){.fill = " ", .fill_size = 1, .precision = -1};
    uint32_t size = 1;
    if (text->n) cera_jinja_char_at(text, 0, &size);
    if (text->n > size && is_align(p[size])) {
        memcpy(s->fill, p, size);
        s->fill_size = size;
        s->align = p[size];
        p += size + 1;
    } else if (p < end && is_align(*p)) {
        s->align = *p++;
    }
    if (p < end && (*p == '+' || *p == '-' || *p == ' ')) s->sign = *p++;
    if (p < end && *p == '#') s->alternate = true, p++;
    if (p < end && *p == '0') {
        s->zero = true;
        if (!s->align) s->align = '=', s->fill[0] = '0';
        p++;
    }
    for (; p < end && *p >= '0' && *p <= '9' && s->width <= MAX_WIDTH; p++) s->width = s->width * 10 + (*p - '0');
    if (p < end && (*p == ',' || *p == '_')) s->group = *p++;
    if (p < end && *p == '.') {
        s->precision = 0;
        if (++p == end || *p < '0' || *p > '9')
            return cera_jinja_raise(f->r, "ValueError", "Format specifier missing precision");
        for (; p < end && *p >= '0' && *p <= '9' && s->precision <= MAX_PRECISION; p++)
            s->precision = s->precision * 10 + (*p - '0');
    }
    if (p < end) s->type = *p++;
    if (p < end) return cera_jinja_raise(f->r, "ValueError", "Invalid format specifier");
    if (s->width > MAX_WIDTH || s->precision > MAX_PRECISION)
        return cera_jinja_limit(f->r, "a width or precision is too large");
    return true;
}

static bool format_value(formatter *f, const cera_jval *v, const cera_jval *spec_text) {
    spec s;
    int64_t i;
    if (!parse_spec(f, spec_text, &s)) return false;
    if (v->kind == J_STR) {
        if (s.type && s.type != 's')
            return cera_jinja_raise(f->r, "ValueError", "Unknown format code '%c' for object of type 'str'", s.type);
        if (s.sign) return cera_jinja_raise(f->r, "ValueError", "Sign not allowed in string format specifier");
        if (s.alternate)
            return cera_jinja_raise(f->r, "ValueError", "Alternate form (#) not allowed in string format specifier");
        if (s.group) return cera_jinja_raise(f->r, "ValueError", "Cannot specify '%c' with 's'.", s.group);
        if (s.align == '=' && !s.zero)
            return cera_jinja_raise(f->r, "ValueError", "'=' alignment not allowed in string format specifier");
        if (!s.align || s.align == '=') s.align = '<';
        return format_text(f->r, f->b, &s, *v);
    }
    if (v->kind == J_BOOL && spec_text->n == 0) return cera_jinja_print(f->r, f->b, v);
    if (!s.align) s.align = '>';
    if (cera_jinja_as_int(v, &i) && !(s.type && strchr("eEfFgG%", s.type))) {
        if (s.type && !strchr("bdoxXn", s.type))
            return cera_jinja_raise(f->r, "ValueError", "Unknown format code '%c' for object of type 'int'", s.type);
        if (s.precision >= 0) return cera_jinja_raise(f->r, "ValueError", "Precision not allowed in integer format specifier");
        return format_int(f->r, f->b, &s, i);
    }
    double d;
    if (v->kind != J_BIGINT && cera_jinja_number(v, &d)) {
        if (s.type && !strchr("eEfFgGn%", s.type))
            return cera_jinja_raise(f->r, "ValueError", "Unknown format code '%c' for object of type 'float'", s.type);
        return format_float(f->r, f->b, &s, d);
    }
    if (spec_text->n)
        return cera_jinja_raise(f->r, "TypeError", "unsupported format string passed to %s.__format__",
                                cera_jinja_type_name(v));
    return cera_jinja_print(f->r, f->b, v);
}

static bool all_digits(const cera_jval *s) {
    for (uint32_t i = 0; i < s->n; i++)
        if (cera_jinja_chars(s)[i] < '0' || cera_jinja_chars(s)[i] > '9') return false;
    return s->n > 0 && s->n < 10;
}

static bool first_field(formatter *f, const cera_jval *name, cera_jval *out) {
    if (name->n == 0 || all_digits(name)) {
        int numbering = name->n ? 2 : 1;
        if (f->numbering && f->numbering != numbering)
            return cera_jinja_raise(f->r, "ValueError", "cannot mix automatic and manual field numbering");
        f->numbering = numbering;
        uint32_t index = f->next;
        if (name->n == 0)
            f->next++;
        else
            index = (uint32_t)strtoul(cera_jinja_chars(name), NULL, 10);
        if (index >= f->args->n_pos)
            return cera_jinja_raise(f->r, "IndexError", "Replacement index %u out of range for positional args tuple", index);
        return *out = f->args->pos[index], true;
    }
    for (uint32_t i = 0; i < f->args->n_names; i++)
        if (f->args->names[i].n == name->n && !memcmp(cera_jinja_chars(&f->args->names[i]), cera_jinja_chars(name), name->n))
            return *out = f->args->values[i], true;
    return cera_jinja_raise(f->r, "KeyError", "'%.*s'", (int)name->n, cera_jinja_chars(name));
}

/* name, name.attribute, name[item], as often as written. */
static bool get_field(formatter *f, const cera_jval *name, cera_jval *out) {
    const char *p = cera_jinja_chars(name);
    uint32_t at = 0;
    while (at < name->n && p[at] != '.' && p[at] != '[') at++;
    cera_jval first = cera_jinja_sub(name, 0, at);
    if (!first_field(f, &first, out)) return false;
    while (at < name->n) {
        bool item = p[at++] == '[';
        uint32_t from = at;
        while (at < name->n && (item ? p[at] != ']' : p[at] != '.' && p[at] != '[')) at++;
        cera_jval part = cera_jinja_sub(name, from, at);
        if (part.n == 0 || (item && at == name->n))
            return cera_jinja_raise(f->r, "ValueError", "Empty attribute in format string");
        at += item;
        if (item && all_digits(&part)) part = cera_jinja_int(strtol(cera_jinja_chars(&part), NULL, 10));
        if (!(item ? cera_jinja_getitem(f->r, out, &part, out) : cera_jinja_getattr(f->r, out, &part, out))) return false;
    }
    return true;
}

static bool convert(formatter *f, cera_jval *v, char conversion) {
    if (!conversion) return true;
    cera_jbuf *b = cera_jinja_buf_new(f->r);
    if (conversion != 's' && conversion != 'r')
        return cera_jinja_raise(f->r, "ValueError", "Unknown conversion specifier '%c'", conversion);
    if (!b || !(conversion == 's' ? cera_jinja_print(f->r, b, v) : cera_jinja_repr(f->r, b, v))) return false;
    *v = cera_jinja_buf_value(b);
    return true;
}

static bool run_format(formatter *f, const cera_jval *text, int depth);

/* The text between { and }, which starts at byte `from`; *end gets the byte after }. */
static bool replacement(formatter *f, const cera_jval *text, uint32_t from, uint32_t *end, int depth) {
    const char *p = cera_jinja_chars(text);
    uint32_t at = from, nested = 0;
    for (; at < text->n && (p[at] != '}' || nested); at++) nested += p[at] == '{' ? 1 : p[at] == '}' ? -1u : 0;
    if (at >= text->n) return cera_jinja_raise(f->r, "ValueError", "expected '}' before end of string");
    *end = at + 1;
    uint32_t name_end = from;
    while (name_end < at && p[name_end] != '!' && p[name_end] != ':')
        name_end += p[name_end] == '[' && memchr(p + name_end, ']', at - name_end)
                        ? (uint32_t)((const char *)memchr(p + name_end, ']', at - name_end) - (p + name_end))
                        : 1;
    char conversion = 0;
    uint32_t spec_from = name_end;
    if (name_end < at && p[name_end] == '!') {
        if (name_end + 1 >= at)
            return cera_jinja_raise(f->r, "ValueError", "end of string while looking for conversion specifier");
        conversion = p[name_end + 1];
        spec_from = name_end + 2;
        if (spec_from < at && p[spec_from] != ':')
            return cera_jinja_raise(f->r, "ValueError", "expected ':' after conversion specifier");
    }
    cera_jval name = cera_jinja_sub(text, from, name_end), value,
              spec_text = cera_jinja_sub(text, spec_from < at ? spec_from + 1 : at, at);
    if (!get_field(f, &name, &value) || !convert(f, &value, conversion)) return false;
    if (spec_text.n && memchr(cera_jinja_chars(&spec_text), '{', spec_text.n)) {
        cera_jbuf *saved = f->b;
        f->b = cera_jinja_buf_new(f->r);
        if (!f->b || !run_format(f, &spec_text, depth - 1)) return false;
        spec_text = cera_jinja_buf_value(f->b);
        f->b = saved;
    }
    return format_value(f, &value, &spec_text);
}

static bool run_format(formatter *f, const cera_jval *text, int depth) {
    const char *p = cera_jinja_chars(text);
    if (depth < 0) return cera_jinja_raise(f->r, "ValueError", "Max string recursion exceeded");
    uint32_t from = 0;
    for (uint32_t i = 0; i < text->n;) {
        if (p[i] != '{' && p[i] != '}') {
            i++;
            continue;
        }
        bool twice = i + 1 < text->n && p[i + 1] == p[i];
        cera_jval part = cera_jinja_sub(text, from, i + twice);
        if (!cera_jinja_buf_add_str(f->r, f->b, &part)) return false;
        if (!twice && p[i] == '}') return cera_jinja_raise(f->r, "ValueError", "Single '}' encountered in format string");
        if (twice)
            i += 2;
        else if (!replacement(f, text, i + 1, &i, depth))
            return false;
        from = i;
    }
    cera_jval part = cera_jinja_sub(text, from, text->n);
    return cera_jinja_buf_add_str(f->r, f->b, &part);
}

bool cera_jinja_str_format(cera_jrender *r, const cera_jval *format, const cera_jargs *args, cera_jval *out) {
    formatter f = {.r = r, .args = args, .b = cera_jinja_buf_new(r)};
    cera_jval text = *format;
    if (!f.b || !run_format(&f, &text, 2)) return false;
    *out = cera_jinja_buf_value(f.b);
    out->flags = text.flags;
    return true;
}

/* ---- strftime --------------------------------------------------------------------------------------------------- */

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

static int week_of_year(const struct tm *t, int first_day) { return (t->tm_yday + 7 - (t->tm_wday - first_day + 7) % 7) / 7; }

/* ISO 8601 week and its year. */
static int iso_week(const struct tm *t, int *year) {
    int day = (t->tm_wday + 6) % 7, week = (t->tm_yday - day + 10) / 7, y = t->tm_year + 1900;
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0,
         last_leap = ((y - 1) % 4 == 0 && (y - 1) % 100 != 0) || (y - 1) % 400 == 0;
    *year = y;
    if (week < 1) {
        *year = y - 1;
        return (t->tm_yday + (last_leap ? 366 : 365) - day + 10) / 7;
    }
    if (week == 53 && t->tm_yday - day + 3 >= (leap ? 366 : 365)) {
        *year = y + 1;
        return 1;
    }
    return week;
}

static int number(char *out, size_t size, int value, int width, char pad_flag, char pad) {
    if (pad_flag == '-') return snprintf(out, size, "%d", value);
    if (pad_flag == '_') pad = ' ';
    if (pad_flag == '0') pad = '0';
    return pad == '0' ? snprintf(out, size, "%0*d", width, value) : snprintf(out, size, "%*d", width, value);
}

static int time_code(char *o, size_t size, const struct tm *t, char code, char flag) {
    int year = t->tm_year + 1900, iso, hour12 = t->tm_hour % 12 ? t->tm_hour % 12 : 12;
    switch (code) {
    case 'a': return snprintf(o, size, "%.3s", days[t->tm_wday]);
    case 'A': return snprintf(o, size, "%s", days[t->tm_wday]);
    case 'b':
    case 'h': return snprintf(o, size, "%.3s", months[t->tm_mon]);
    case 'B': return snprintf(o, size, "%s", months[t->tm_mon]);
    case 'c':
        return snprintf(o, size, "%.3s %.3s %2d %02d:%02d:%02d %d", days[t->tm_wday], months[t->tm_mon], t->tm_mday, t->tm_hour,
                        t->tm_min, t->tm_sec, year);
    case 'C': return number(o, size, year / 100, 2, flag, '0');
    case 'd': return number(o, size, t->tm_mday, 2, flag, '0');
    case 'D':
    case 'x': return snprintf(o, size, "%02d/%02d/%02d", t->tm_mon + 1, t->tm_mday, year % 100);
    case 'e': return number(o, size, t->tm_mday, 2, flag, ' ');
    case 'f': return snprintf(o, size, "000000");
    case 'F': return snprintf(o, size, "%d-%02d-%02d", year, t->tm_mon + 1, t->tm_mday);
    case 'g': iso_week(t, &iso); return number(o, size, iso % 100, 2, flag, '0');
    case 'G': iso_week(t, &iso); return snprintf(o, size, "%d", iso);
    case 'H': return number(o, size, t->tm_hour, 2, flag, '0');
    case 'I': return number(o, size, hour12, 2, flag, '0');
    case 'j': return number(o, size, t->tm_yday + 1, 3, flag, '0');
    case 'k': return number(o, size, t->tm_hour, 2, flag, ' ');
    case 'l': return number(o, size, hour12, 2, flag, ' ');
    case 'm': return number(o, size, t->tm_mon + 1, 2, flag, '0');
    case 'M': return number(o, size, t->tm_min, 2, flag, '0');
    case 'n': return snprintf(o, size, "\n");
    case 'p': return snprintf(o, size, "%s", t->tm_hour < 12 ? "AM" : "PM");
    case 'P': return snprintf(o, size, "%s", t->tm_hour < 12 ? "am" : "pm");
    case 'r': return snprintf(o, size, "%02d:%02d:%02d %s", hour12, t->tm_min, t->tm_sec, t->tm_hour < 12 ? "AM" : "PM");
    case 'R': return snprintf(o, size, "%02d:%02d", t->tm_hour, t->tm_min);
    case 'S': return number(o, size, t->tm_sec, 2, flag, '0');
    case 't': return snprintf(o, size, "\t");
    case 'T':
    case 'X': return snprintf(o, size, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
    case 'u': return snprintf(o, size, "%d", t->tm_wday ? t->tm_wday : 7);
    case 'U': return number(o, size, week_of_year(t, 0), 2, flag, '0');
    case 'V': return number(o, size, iso_week(t, &iso), 2, flag, '0');
    case 'w': return snprintf(o, size, "%d", t->tm_wday);
    case 'W': return number(o, size, week_of_year(t, 1), 2, flag, '0');
    case 'y': return number(o, size, year % 100, 2, flag, '0');
    case 'Y': return snprintf(o, size, "%d", year);
    case 'z':
    case 'Z': return snprintf(o, size, "%s", ""); /* a time without a zone */
    case '%': return snprintf(o, size, "%%");
    default: return -1;
    }
}

bool cera_jinja_strftime(cera_jrender *r, const struct tm *now, const cera_jval *format, cera_jval *out) {
    cera_jval text = *format;
    const char *p = cera_jinja_chars(&text);
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b) return false;
    for (uint32_t i = 0; i < text.n;) {
        uint32_t from = i;
        char piece[64], flag = 0;
        if (p[i] == '%' && i + 1 < text.n) {
            if (strchr("-_0^#", p[i + 1]) && i + 2 < text.n) flag = p[++i];
            int n = time_code(piece, sizeof piece, now, p[i + 1], flag);
            i += 2;
            if (n >= 0) {
                for (int k = 0; k < n && flag == '^'; k++)
                    piece[k] = (char)(piece[k] >= 'a' && piece[k] <= 'z' ? piece[k] - 32 : piece[k]);
                if (!cera_jinja_buf_add(r, b, piece, (size_t)n, false)) return false;
                continue;
            }
        } else {
            i++;
        }
        cera_jval part = cera_jinja_sub(&text, from, i);
        if (!cera_jinja_buf_add_str(r, b, &part)) return false;
    }
    *out = cera_jinja_buf_value(b);
    return true;
}
