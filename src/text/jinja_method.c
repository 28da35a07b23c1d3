/* jinja_method.c: methods of strings, lists, tuples, dictionaries and numbers, as Python has them and the sandbox lets through.
 * Methods that change a list or a dictionary are not here: reading one of those names gives the sandbox's unsafe undefined. */
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/jinja_int.h"

#define METHOD(name) \
    static bool name(cera_jrender *r, const cera_jval *self, const cera_jargs *args, const cera_jval *p, cera_jval *out)
#define UNUSED (void)self, (void)args, (void)p, (void)r

static bool given(const cera_jval *v) { return v->kind != J_MISSING && v->kind != J_NONE; }

static bool need_str(cera_jrender *r, const char *method, const cera_jval *v) {
    if (v->kind == J_STR) return true;
    if (v->kind == J_UNDEFINED) return cera_jinja_raise(r, "TypeError", "%s() argument must be str, not Undefined", method);
    return cera_jinja_raise(r, "TypeError", "%s() argument must be str, not %s", method, cera_jinja_type_name(v));
}

static bool need_int(cera_jrender *r, const cera_jval *v, int64_t fallback, int64_t *out) {
    if (!given(v)) return *out = fallback, true;
    if (cera_jinja_as_int(v, out)) return true;
    return cera_jinja_raise(r, "TypeError", "'%s' object cannot be interpreted as an integer", cera_jinja_type_name(v));
}

/* ---- strip ------------------------------------------------------------------------------------------------------ */

static bool in_set(const cera_jval *chars, uint32_t code) {
    for (uint32_t i = 0, size; i < chars->n; i += size)
        if (cera_jinja_char_at(chars, i, &size) == code) return true;
    return false;
}

bool cera_jinja_strip(cera_jrender *r, const cera_jval *s, const cera_jval *chars, int sides, cera_jval *out) {
    bool set = chars && given(chars);
    if (set && chars->kind != J_STR) return cera_jinja_raise(r, "TypeError", "strip arg must be None or str");
    uint32_t from = 0, to = s->n, size;
    while (sides & 1 && from < to) {
        uint32_t code = cera_jinja_char_at(s, from, &size);
        if (set ? !in_set(chars, code) : !cera_jinja_is_space(code)) break;
        from += size;
    }
    while (sides & 2 && to > from) {
        uint32_t k = to - 1;
        while (k > from && ((unsigned char)cera_jinja_chars(s)[k] & 0xC0) == 0x80) k--;
        uint32_t code = cera_jinja_char_at(s, k, &size);
        if (set ? !in_set(chars, code) : !cera_jinja_is_space(code)) break;
        to = k;
    }
    *out = cera_jinja_sub(s, from, to);
    return cera_jinja_charge(r, (uint64_t)(s->n - out->n) * (set ? 1 + chars->n : 1) / 16);
}

METHOD(str_strip) { return UNUSED, cera_jinja_strip(r, self, &p[0], 3, out); }
METHOD(str_lstrip) { return UNUSED, cera_jinja_strip(r, self, &p[0], 1, out); }
METHOD(str_rstrip) { return UNUSED, cera_jinja_strip(r, self, &p[0], 2, out); }

/* ---- case ------------------------------------------------------------------------------------------------------- */

static bool add_char(cera_jrender *r, cera_jbuf *b, uint32_t code, bool user) {
    char text[4];
    int n = cera_utf8_encode(code, text);
    return cera_jinja_buf_add(r, b, text, (size_t)n, user);
}

static bool is_cased(uint32_t code) { return cera_jinja_char_class(code) & (JC_UPPER | JC_LOWER | JC_TITLE); }

/* Greek's sigma at the end of a word has its own small letter. */
static bool final_sigma(const cera_jval *s, uint32_t at, bool after_letter) {
    uint32_t size;
    cera_jinja_char_at(s, at, &size);
    if (!after_letter || at + size >= s->n) return after_letter;
    return !is_cased(cera_jinja_char_at(s, at + size, &size));
}

bool cera_jinja_case(cera_jrender *r, const cera_jval *s, char which, cera_jval *out) {
    cera_jval text = *s;
    cera_jbuf *b = cera_jinja_buf_new(r);
    bool in_word = false;
    if (!b || !cera_jinja_buf_reserve(r, b, text.n) || !cera_jinja_charge(r, text.n / 8)) return false;
    for (uint32_t i = 0, size; i < text.n; i += size) {
        uint32_t code = cera_jinja_char_at(&text, i, &size), forms[3] = {0};
        unsigned class = cera_jinja_char_class(code);
        char to = which;
        if (which == 'c') to = i == 0 ? 't' : 'l';
        if (which == 't') to = in_word ? 'l' : 't';
        if (which == 's') to = class & JC_UPPER ? 'l' : class & JC_LOWER ? 'u' : 0;
        int n = to ? cera_jinja_char_case(code, to, forms) : 1;
        if (!to) forms[0] = code;
        if (to == 'l' && code == 0x3A3 && final_sigma(&text, i, in_word)) forms[0] = 0x3C2;
        in_word = is_cased(code);
        for (int k = 0; k < n; k++)
            if (!add_char(r, b, forms[k], cera_jinja_user_at(&text, i))) return false;
    }
    *out = cera_jinja_buf_value(b);
    out->flags = text.flags;
    return true;
}

METHOD(str_upper) { return UNUSED, cera_jinja_case(r, self, 'u', out); }
METHOD(str_lower) { return UNUSED, cera_jinja_case(r, self, 'l', out); }
METHOD(str_title) { return UNUSED, cera_jinja_case(r, self, 't', out); }
METHOD(str_capitalize) { return UNUSED, cera_jinja_case(r, self, 'c', out); }
METHOD(str_casefold) { return UNUSED, cera_jinja_case(r, self, 'f', out); }
METHOD(str_swapcase) { return UNUSED, cera_jinja_case(r, self, 's', out); }

/* ---- search ----------------------------------------------------------------------------------------------------- */

static void clamp_range(int64_t n, int64_t *from, int64_t *to) {
    if (*to > n) *to = n;
    if (*to < 0) *to += n;
    if (*to < 0) *to = 0;
    if (*from < 0) *from += n;
    if (*from < 0) *from = 0;
}

/* The part of the string between the optional arguments p[1] and p[2]; *at gets the character where it starts. */
static bool window(cera_jrender *r, const cera_jval *self, const cera_jval *p, cera_jval *part, int64_t *at) {
    int64_t n = cera_jinja_str_chars(self), from, to;
    if (!need_int(r, &p[1], 0, &from) || !need_int(r, &p[2], n, &to)) return false;
    clamp_range(n, &from, &to);
    *at = from;
    if (from > to) {
        *part = cera_jinja_sub(self, self->n, self->n);
        return *at = -1, true; /* not even the empty string is found */
    }
    *part = cera_jinja_sub(self, cera_jinja_char_offset(self, (uint32_t)from), cera_jinja_char_offset(self, (uint32_t)to));
    return cera_jinja_charge(r, self->n / 32);
}

static bool find(cera_jrender *r, const cera_jval *self, const cera_jval *p, bool last, int64_t *out) {
    cera_jval part;
    int64_t at;
    if (!need_str(r, "find", &p[0]) || !window(r, self, p, &part, &at)) return false;
    int64_t byte = at < 0 ? -1 : last ? cera_jinja_rfind(&part, &p[0]) : cera_jinja_find(&part, &p[0], 0);
    if (last && !cera_jinja_charge(r, part.n / 8)) return false;
    if (byte < 0) return *out = -1, true;
    cera_jval before = cera_jinja_sub(&part, 0, (uint32_t)byte);
    *out = at + cera_jinja_str_chars(&before);
    return true;
}

METHOD(str_find) {
    int64_t at;
    return UNUSED, find(r, self, p, false, &at) && (*out = cera_jinja_int(at), true);
}
METHOD(str_rfind) {
    int64_t at;
    return UNUSED, find(r, self, p, true, &at) && (*out = cera_jinja_int(at), true);
}
METHOD(str_index) {
    int64_t at;
    UNUSED;
    if (!find(r, self, p, false, &at)) return false;
    return at < 0 ? cera_jinja_raise(r, "ValueError", "substring not found") : (*out = cera_jinja_int(at), true);
}
METHOD(str_rindex) {
    int64_t at;
    UNUSED;
    if (!find(r, self, p, true, &at)) return false;
    return at < 0 ? cera_jinja_raise(r, "ValueError", "substring not found") : (*out = cera_jinja_int(at), true);
}

METHOD(str_count) {
    cera_jval part;
    int64_t at, n = 0;
    UNUSED;
    if (!need_str(r, "count", &p[0]) || !window(r, self, p, &part, &at)) return false;
    if (p[0].n == 0) return *out = cera_jinja_int(at < 0 ? 0 : (int64_t)cera_jinja_str_chars(&part) + 1), true;
    for (int64_t i = 0; (i = cera_jinja_find(&part, &p[0], (uint32_t)i)) >= 0; i += p[0].n) n++;
    return *out = cera_jinja_int(n), true;
}

static bool ends(const cera_jval *s, const cera_jval *x, bool at_end) {
    return x->n <= s->n && !memcmp(cera_jinja_chars(s) + (at_end ? s->n - x->n : 0), cera_jinja_chars(x), x->n);
}

static bool starts_or_ends(cera_jrender *r, const cera_jval *self, const cera_jval *p, bool at_end, cera_jval *out) {
    const char *name = at_end ? "endswith" : "startswith";
    cera_jval part;
    int64_t at;
    bool found = false;
    if (p[0].kind != J_STR && p[0].kind != J_TUPLE)
        return cera_jinja_raise(r, "TypeError", "%s first arg must be str or a tuple of str, not %s", name,
                                cera_jinja_type_name(&p[0]));
    if (!window(r, self, p, &part, &at)) return false;
    if (p[0].kind == J_STR) found = ends(&part, &p[0], at_end);
    for (uint32_t i = 0; p[0].kind == J_TUPLE && i < p[0].u.list->n && !found; i++) {
        const cera_jval *x = &p[0].u.list->items[i];
        if (x->kind != J_STR)
            return cera_jinja_raise(r, "TypeError", "tuple for %s must only contain str, not %s", name,
                                    cera_jinja_type_name(x));
        found = ends(&part, x, at_end);
    }
    return *out = cera_jinja_bool(found && at >= 0), true;
}

METHOD(str_startswith) { return UNUSED, starts_or_ends(r, self, p, false, out); }
METHOD(str_endswith) { return UNUSED, starts_or_ends(r, self, p, true, out); }

METHOD(str_removeprefix) {
    UNUSED;
    if (!need_str(r, "removeprefix", &p[0])) return false;
    return *out = ends(self, &p[0], false) ? cera_jinja_sub(self, p[0].n, self->n) : *self, true;
}
METHOD(str_removesuffix) {
    UNUSED;
    if (!need_str(r, "removesuffix", &p[0])) return false;
    return *out = p[0].n && ends(self, &p[0], true) ? cera_jinja_sub(self, 0, self->n - p[0].n) : *self, true;
}

/* ---- replace, split, join --------------------------------------------------------------------------------------- */

bool cera_jinja_replace(cera_jrender *r, const cera_jval *s, const cera_jval *from, const cera_jval *to, int64_t count,
                        cera_jval *out) {
    cera_jval text = *s, old = *from, new = *to;
    uint32_t at = 0;
    if (count < 0) count = INT64_MAX;
    if (old.n && cera_jinja_find(&text, &old, 0) < 0) return *out = text, cera_jinja_charge(r, text.n / 32);
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b) return false;
    for (; count > 0; count--) {
        uint32_t size = 0;
        int64_t next = cera_jinja_find(&text, &old, at);
        if (next < 0 || !cera_jinja_charge(r, 1)) break;
        if (old.n == 0 && at < text.n)
            cera_jinja_char_at(&text, at, &size); /* the empty string is before each character and at the end */
        cera_jval part = cera_jinja_sub(&text, at, (uint32_t)next), one = cera_jinja_sub(&text, at, at + size);
        if (!cera_jinja_buf_add_str(r, b, &part) || !cera_jinja_buf_add_str(r, b, &new)) return false;
        bool last = old.n == 0 && at >= text.n;
        if (old.n == 0 && !last && !cera_jinja_buf_add_str(r, b, &one)) return false;
        at = old.n ? (uint32_t)next + old.n : at + size;
        if (last) break;
    }
    if (r->status != CERA_OK) return false;
    cera_jval rest = cera_jinja_sub(&text, at, text.n);
    if (!cera_jinja_buf_add_str(r, b, &rest)) return false;
    *out = cera_jinja_buf_value(b);
    out->flags = text.flags;
    return true;
}

METHOD(str_replace) {
    int64_t count;
    UNUSED;
    if (!need_str(r, "replace", &p[0]) || !need_str(r, "replace", &p[1]) || !need_int(r, &p[2], -1, &count)) return false;
    return cera_jinja_replace(r, self, &p[0], &p[1], count, out);
}

static bool add_part(cera_jrender *r, cera_jlist *l, const cera_jval *s, uint32_t from, uint32_t to) {
    cera_jval part = cera_jinja_sub(s, from, to);
    return cera_jinja_list_add(r, l, &part);
}

static bool split_spaces(cera_jrender *r, const cera_jval *s, int64_t max, cera_jlist *l) {
    uint32_t at = 0, size;
    while (at < s->n) {
        while (at < s->n && cera_jinja_is_space(cera_jinja_char_at(s, at, &size))) at += size;
        if (at == s->n) break;
        uint32_t from = at;
        if (max-- == 0) {
            cera_jval rest = cera_jinja_sub(s, from, s->n), stripped;
            if (!cera_jinja_strip(r, &rest, NULL, 2, &stripped)) return false;
            return cera_jinja_list_add(r, l, &stripped);
        }
        while (at < s->n && !cera_jinja_is_space(cera_jinja_char_at(s, at, &size))) at += size;
        if (!add_part(r, l, s, from, at)) return false;
    }
    return true;
}

static bool split_text(cera_jrender *r, const cera_jval *s, const cera_jval *separator, int64_t max, cera_jlist *l) {
    uint32_t at = 0;
    for (int64_t next; max-- != 0 && (next = cera_jinja_find(s, separator, at)) >= 0; at = (uint32_t)next + separator->n)
        if (!add_part(r, l, s, at, (uint32_t)next)) return false;
    return add_part(r, l, s, at, s->n);
}

METHOD(str_split) {
    int64_t max;
    UNUSED;
    cera_jlist *l = cera_jinja_list_new(r, 0);
    if (!l || !need_int(r, &p[1], -1, &max) || !cera_jinja_charge(r, self->n / 32)) return false;
    if (given(&p[0]) && p[0].kind != J_STR)
        return cera_jinja_raise(r, "TypeError", "must be str or None, not %s", cera_jinja_type_name(&p[0]));
    if (given(&p[0]) && p[0].n == 0) return cera_jinja_raise(r, "ValueError", "empty separator");
    if (!(given(&p[0]) ? split_text(r, self, &p[0], max, l) : split_spaces(r, self, max, l))) return false;
    return *out = cera_jinja_list_value(l, J_LIST), true;
}

static void reverse(cera_jlist *l) {
    for (uint32_t i = 0; i < l->n / 2; i++) {
        cera_jval x = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = x;
    }
}

static bool rsplit_spaces(cera_jrender *r, cera_jval s, int64_t max, cera_jlist *l) {
    for (;;) {
        if (!cera_jinja_strip(r, &s, NULL, 2, &s)) return false;
        if (s.n == 0) break;
        if (max-- == 0) {
            if (!cera_jinja_strip(r, &s, NULL, 2, &s) || !cera_jinja_list_add(r, l, &s)) return false;
            break;
        }
        uint32_t from = s.n, size;
        while (from > 0) {
            uint32_t k = from - 1;
            while (k > 0 && ((unsigned char)cera_jinja_chars(&s)[k] & 0xC0) == 0x80) k--;
            if (cera_jinja_is_space(cera_jinja_char_at(&s, k, &size))) break;
            from = k;
        }
        if (!add_part(r, l, &s, from, s.n)) return false;
        s.n = from;
    }
    reverse(l);
    return true;
}

METHOD(str_rsplit) {
    int64_t max;
    UNUSED;
    cera_jlist *l = cera_jinja_list_new(r, 0);
    if (!l || !need_int(r, &p[1], -1, &max) || !cera_jinja_charge(r, self->n / 8)) return false;
    if (given(&p[0]) && p[0].kind != J_STR)
        return cera_jinja_raise(r, "TypeError", "must be str or None, not %s", cera_jinja_type_name(&p[0]));
    if (given(&p[0]) && p[0].n == 0) return cera_jinja_raise(r, "ValueError", "empty separator");
    *out = cera_jinja_list_value(l, J_LIST);
    if (!given(&p[0])) return rsplit_spaces(r, *self, max, l);
    cera_jval s = *self;
    for (int64_t at; max-- != 0 && (at = cera_jinja_rfind(&s, &p[0])) >= 0; s.n = (uint32_t)at)
        if (!add_part(r, l, &s, (uint32_t)at + p[0].n, s.n)) return false;
    if (!cera_jinja_list_add(r, l, &s)) return false;
    reverse(l);
    return true;
}

bool cera_jinja_splitlines(cera_jrender *r, const cera_jval *s, bool keep, cera_jlist **out) {
    cera_jlist *l = *out = cera_jinja_list_new(r, 0);
    uint32_t from = 0, size;
    if (!l || !cera_jinja_charge(r, s->n / 16)) return false;
    for (uint32_t i = 0; i < s->n;) {
        uint32_t code = cera_jinja_char_at(s, i, &size), end = i;
        i += size;
        if (!cera_jinja_is_line_break(code)) continue;
        if (code == '\r' && i < s->n && cera_jinja_chars(s)[i] == '\n') i++;
        if (!add_part(r, l, s, from, keep ? i : end)) return false;
        from = i;
    }
    return from == s->n || add_part(r, l, s, from, s->n);
}

METHOD(str_splitlines) {
    cera_jlist *l;
    UNUSED;
    return cera_jinja_splitlines(r, self, cera_jinja_truth(&p[0]), &l) && (*out = cera_jinja_list_value(l, J_LIST), true);
}

static bool partition(cera_jrender *r, const cera_jval *self, const cera_jval *sep, bool last, cera_jval *out) {
    cera_jlist *l = cera_jinja_list_new(r, 3);
    if (!l || !need_str(r, "partition", sep)) return false;
    if (sep->n == 0) return cera_jinja_raise(r, "ValueError", "empty separator");
    int64_t at = last ? cera_jinja_rfind(self, sep) : cera_jinja_find(self, sep, 0);
    uint32_t a = at >= 0 ? (uint32_t)at : last ? 0 : self->n, b = at >= 0 ? a + sep->n : a;
    if (!add_part(r, l, self, 0, a) || !add_part(r, l, self, a, b) || !add_part(r, l, self, b, self->n)) return false;
    return *out = cera_jinja_list_value(l, J_TUPLE), true;
}

METHOD(str_partition) { return UNUSED, partition(r, self, &p[0], false, out); }
METHOD(str_rpartition) { return UNUSED, partition(r, self, &p[0], true, out); }

METHOD(str_join) {
    cera_jlist *l;
    UNUSED;
    cera_jval separator = *self;
    if (p[0].kind < J_STR && p[0].kind != J_UNDEFINED) return cera_jinja_raise(r, "TypeError", "can only join an iterable");
    if (!cera_jinja_to_list(r, &p[0], &l)) return false;
    cera_jbuf *b = cera_jinja_buf_new(r);
    for (uint32_t i = 0; b && i < l->n; i++) {
        if (l->items[i].kind != J_STR)
            return cera_jinja_raise(r, "TypeError", "sequence item %u: expected str instance, %s found", i,
                                    cera_jinja_type_name(&l->items[i]));
        if ((i && !cera_jinja_buf_add_str(r, b, &separator)) || !cera_jinja_buf_add_str(r, b, &l->items[i])) return false;
    }
    return b && (*out = cera_jinja_buf_value(b), true);
}

/* ---- padding ---------------------------------------------------------------------------------------------------- */

static bool pad(cera_jrender *r, const cera_jval *self, const cera_jval *p, char align, cera_jval *out) {
    int64_t width, n = cera_jinja_str_chars(self);
    cera_jval text = *self;
    if (!need_int(r, &p[0], 0, &width)) return false;
    if (given(&p[1]) && (p[1].kind != J_STR || cera_jinja_str_chars(&p[1]) != 1))
        return cera_jinja_raise(r, "TypeError", "The fill character must be exactly one character long");
    if (width <= n) return *out = text, true;
    if ((uint64_t)width > r->max_bytes) return cera_jinja_limit(r, "a string grew beyond %zu bytes", r->max_bytes);
    cera_jbuf *b = cera_jinja_buf_new(r);
    int64_t total = width - n, left = align == '>' ? total : align == '<' ? 0 : total / 2 + (total & width & 1);
    for (int64_t i = 0; b && i <= total; i++) {
        if (i == left && !cera_jinja_buf_add_str(r, b, &text)) return false;
        if (i < total &&
            !(cera_jinja_charge(r, 1) && (given(&p[1]) ? cera_jinja_buf_add_str(r, b, &p[1]) : cera_jinja_buf_text(r, b, " "))))
            return false;
    }
    return b && (*out = cera_jinja_buf_value(b), true);
}

METHOD(str_ljust) { return UNUSED, pad(r, self, p, '<', out); }
METHOD(str_rjust) { return UNUSED, pad(r, self, p, '>', out); }
METHOD(str_center) { return UNUSED, pad(r, self, p, '^', out); }

METHOD(str_zfill) {
    int64_t width, n = cera_jinja_str_chars(self);
    cera_jval text = *self;
    UNUSED;
    if (!need_int(r, &p[0], 0, &width)) return false;
    if (width <= n) return *out = text, true;
    if ((uint64_t)width > r->max_bytes) return cera_jinja_limit(r, "a string grew beyond %zu bytes", r->max_bytes);
    uint32_t sign = text.n && (*cera_jinja_chars(&text) == '-' || *cera_jinja_chars(&text) == '+');
    cera_jval head = cera_jinja_sub(&text, 0, sign), tail = cera_jinja_sub(&text, sign, text.n);
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_buf_add_str(r, b, &head)) return false;
    for (int64_t i = n; i < width; i++)
        if (!cera_jinja_charge(r, 1) || !cera_jinja_buf_text(r, b, "0")) return false;
    return cera_jinja_buf_add_str(r, b, &tail) && (*out = cera_jinja_buf_value(b), true);
}

METHOD(str_expandtabs) {
    int64_t size, column = 0;
    cera_jval text = *self;
    UNUSED;
    if (!need_int(r, &p[0], 8, &size)) return false;
    if (size > 1 << 16) return cera_jinja_limit(r, "a tab size above %d", 1 << 16);
    cera_jbuf *b = cera_jinja_buf_new(r);
    for (uint32_t i = 0, n; b && i < text.n; i += n) {
        uint32_t code = cera_jinja_char_at(&text, i, &n);
        cera_jval one = cera_jinja_sub(&text, i, i + n);
        if (code != '\t' && !cera_jinja_buf_add_str(r, b, &one)) return false;
        if (code == '\t' && size > 0)
            for (int64_t k = size - column % size; k > 0; k--, column++)
                if (!cera_jinja_buf_text(r, b, " ")) return false;
        if (code != '\t') column = code == '\n' || code == '\r' ? 0 : column + 1;
    }
    return b && (*out = cera_jinja_buf_value(b), true);
}

/* ---- what kind of text ------------------------------------------------------------------------------------------ */

static bool all_in(const cera_jval *s, unsigned classes) {
    for (uint32_t i = 0, size; i < s->n; i += size)
        if (!(cera_jinja_char_class(cera_jinja_char_at(s, i, &size)) & classes)) return false;
    return s->n > 0;
}

static bool all_cased(const cera_jval *s, unsigned wanted, unsigned refused) {
    bool any = false;
    for (uint32_t i = 0, size; i < s->n; i += size) {
        unsigned class = cera_jinja_char_class(cera_jinja_char_at(s, i, &size));
        if (class & refused) return false;
        any = any || class & wanted;
    }
    return any;
}

METHOD(str_isalpha) { return UNUSED, *out = cera_jinja_bool(all_in(self, JC_ALPHA)), true; }
METHOD(str_isalnum) {
    return UNUSED, *out = cera_jinja_bool(all_in(self, JC_ALPHA | JC_DECIMAL | JC_DIGIT | JC_NUMERIC)), true;
}
METHOD(str_isdigit) { return UNUSED, *out = cera_jinja_bool(all_in(self, JC_DIGIT)), true; }
METHOD(str_isdecimal) { return UNUSED, *out = cera_jinja_bool(all_in(self, JC_DECIMAL)), true; }
METHOD(str_isnumeric) { return UNUSED, *out = cera_jinja_bool(all_in(self, JC_NUMERIC)), true; }
METHOD(str_isprintable) { return UNUSED, *out = cera_jinja_bool(self->n == 0 || all_in(self, JC_PRINTABLE)), true; }
METHOD(str_islower) { return UNUSED, *out = cera_jinja_bool(all_cased(self, JC_LOWER, JC_UPPER | JC_TITLE)), true; }
METHOD(str_isupper) { return UNUSED, *out = cera_jinja_bool(all_cased(self, JC_UPPER, JC_LOWER | JC_TITLE)), true; }

METHOD(str_isspace) {
    UNUSED;
    for (uint32_t i = 0, size; i < self->n; i += size)
        if (!cera_jinja_is_space(cera_jinja_char_at(self, i, &size))) return *out = cera_jinja_bool(false), true;
    return *out = cera_jinja_bool(self->n > 0), true;
}

METHOD(str_isascii) {
    UNUSED;
    for (uint32_t i = 0; i < self->n; i++)
        if ((unsigned char)cera_jinja_chars(self)[i] >= 0x80) return *out = cera_jinja_bool(false), true;
    return *out = cera_jinja_bool(true), true;
}

METHOD(str_istitle) {
    bool in_word = false, any = false;
    UNUSED;
    for (uint32_t i = 0, size; i < self->n; i += size) {
        unsigned class = cera_jinja_char_class(cera_jinja_char_at(self, i, &size));
        bool upper = class & (JC_UPPER | JC_TITLE), lower = class & JC_LOWER;
        if ((upper && in_word) || (lower && !in_word)) return *out = cera_jinja_bool(false), true;
        in_word = upper || lower;
        any = any || in_word;
    }
    return *out = cera_jinja_bool(any), true;
}

METHOD(str_isidentifier) {
    UNUSED;
    bool ok = self->n > 0;
    for (uint32_t i = 0, size; ok && i < self->n; i += size) {
        uint32_t code = cera_jinja_char_at(self, i, &size);
        ok = code == '_' || cera_jinja_char_class(code) & (i ? JC_ALPHA | JC_DECIMAL : JC_ALPHA);
    }
    return *out = cera_jinja_bool(ok), true;
}

METHOD(str_format) { return UNUSED, cera_jinja_str_format(r, self, args, out); }

METHOD(str_format_map) {
    UNUSED;
    if (p[0].kind != J_DICT) return cera_jinja_raise(r, "TypeError", "format_map() needs a dictionary");
    const cera_jdict *d = p[0].u.dict;
    for (uint32_t i = 0; i < d->n; i++)
        if (d->keys[i].kind != J_STR) return cera_jinja_raise(r, "TypeError", "format_map() needs strings as keys");
    return cera_jinja_str_format(r, self, &(cera_jargs){.names = d->keys, .values = d->values, .n_names = d->n}, out);
}

METHOD(str_unsupported) {
    return UNUSED, (void)out, cera_jinja_raise(r, "TypeError", "this method of str is not supported in templates");
}

/* ---- lists, tuples, dictionaries, numbers ------------------------------------------------------------------------ */

METHOD(list_count) {
    int64_t n = 0;
    UNUSED;
    for (uint32_t i = 0; i < self->u.list->n; i++) {
        bool same;
        if (!cera_jinja_equal(r, &self->u.list->items[i], &p[0], &same)) return false;
        n += same;
    }
    return *out = cera_jinja_int(n), true;
}

METHOD(list_index) {
    int64_t from, to, n = self->u.list->n;
    UNUSED;
    if (!need_int(r, &p[1], 0, &from) || !need_int(r, &p[2], n, &to)) return false;
    clamp_range(n, &from, &to);
    for (int64_t i = from; i < to; i++) {
        bool same;
        if (!cera_jinja_equal(r, &self->u.list->items[i], &p[0], &same)) return false;
        if (same) return *out = cera_jinja_int(i), true;
    }
    return cera_jinja_raise(r, "ValueError", "%s.index(x): x not in %s", cera_jinja_type_name(self),
                            cera_jinja_type_name(self));
}

METHOD(range_index) {
    UNUSED;
    const cera_jrange *g = self->u.range;
    cera_jval at = p[0];
    bool found;
    if (!cera_jinja_contains(r, &p[0], self, &found)) return false;
    if (!found) return cera_jinja_raise(r, "ValueError", "value is not in range");
    if (at.kind == J_FLOAT) at = cera_jinja_int((int64_t)at.u.f);
    int64_t value = 0;
    cera_jinja_as_int(&at, &value);
    return *out = cera_jinja_int((value - g->start) / g->step), true;
}

METHOD(range_count) {
    bool found;
    UNUSED;
    return cera_jinja_contains(r, &p[0], self, &found) && (*out = cera_jinja_int(found), true);
}

METHOD(list_copy) {
    cera_jlist *l;
    UNUSED;
    return cera_jinja_to_list(r, self, &l) && (*out = cera_jinja_list_value(l, J_LIST), true);
}

METHOD(dict_get) {
    cera_jval *value;
    UNUSED;
    if (!cera_jinja_dict_find(r, self->u.dict, &p[0], &value)) return false;
    *out = value ? *value : p[1].kind == J_MISSING ? cera_jinja_none() : p[1];
    return true;
}

static bool view(const cera_jval *self, uint16_t sub, cera_jval *out) {
    *out = (cera_jval){.kind = J_VIEW, .sub = sub, .u.dict = self->u.dict};
    return true;
}

METHOD(dict_keys) { return UNUSED, view(self, J_VIEW_KEYS, out); }
METHOD(dict_values) { return UNUSED, view(self, J_VIEW_VALUES, out); }
METHOD(dict_items) { return UNUSED, view(self, J_VIEW_ITEMS, out); }

METHOD(dict_copy) {
    UNUSED;
    cera_jdict *d = cera_jinja_dict_new(r, self->u.dict->n);
    for (uint32_t i = 0; d && i < self->u.dict->n; i++)
        if (!cera_jinja_dict_set(r, d, &self->u.dict->keys[i], &self->u.dict->values[i])) return false;
    return d && (*out = (cera_jval){.kind = J_DICT, .u.dict = d}, true);
}

METHOD(float_is_integer) { return UNUSED, *out = cera_jinja_bool(self->u.f == (double)(int64_t)self->u.f), true; }

METHOD(int_bit_length) {
    int64_t value = 0, bits = 0;
    UNUSED;
    cera_jinja_as_int(self, &value);
    for (uint64_t m = value < 0 ? 0 - (uint64_t)value : (uint64_t)value; m; m >>= 1) bits++;
    return *out = cera_jinja_int(bits), true;
}

METHOD(loop_cycle) {
    UNUSED;
    if (args->n_pos == 0) return cera_jinja_raise(r, "TypeError", "no items for cycling given");
    return *out = args->pos[self->u.loop->index0 % args->n_pos], true;
}

METHOD(loop_changed) {
    cera_jlist *l = cera_jinja_list_new(r, args->n_pos);
    bool same = false;
    UNUSED;
    for (uint32_t i = 0; l && i < args->n_pos; i++)
        if (!cera_jinja_list_add(r, l, &args->pos[i])) return false;
    if (!l) return false;
    cera_jval now = cera_jinja_list_value(l, J_TUPLE);
    if (self->u.loop->changed.kind != J_MISSING && !cera_jinja_equal(r, &self->u.loop->changed, &now, &same)) return false;
    self->u.loop->changed = now;
    return *out = cera_jinja_bool(!same), true;
}

METHOD(cycler_next) {
    UNUSED;
    cera_jcycler *c = self->u.cycler;
    *out = c->items.items[c->at];
    c->at = (c->at + 1) % c->items.n;
    return true;
}

METHOD(cycler_reset) { return UNUSED, self->u.cycler->at = 0, *out = cera_jinja_none(), true; }

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static const cera_jbuiltin str_methods[] = {{"strip", str_strip, "chars"},
                                            {"lstrip", str_lstrip, "chars"},
                                            {"rstrip", str_rstrip, "chars"},
                                            {"split", str_split, "sep,maxsplit"},
                                            {"rsplit", str_rsplit, "sep,maxsplit"},
                                            {"replace", str_replace, "!old,!new,count"},
                                            {"startswith", str_startswith, "!prefix,start,end"},
                                            {"endswith", str_endswith, "!suffix,start,end"},
                                            {"upper", str_upper, ""},
                                            {"lower", str_lower, ""},
                                            {"title", str_title, ""},
                                            {"capitalize", str_capitalize, ""},
                                            {"swapcase", str_swapcase, ""},
                                            {"casefold", str_casefold, ""},
                                            {"find", str_find, "!sub,start,end"},
                                            {"rfind", str_rfind, "!sub,start,end"},
                                            {"index", str_index, "!sub,start,end"},
                                            {"rindex", str_rindex, "!sub,start,end"},
                                            {"count", str_count, "!sub,start,end"},
                                            {"removeprefix", str_removeprefix, "!prefix"},
                                            {"removesuffix", str_removesuffix, "!suffix"},
                                            {"splitlines", str_splitlines, "keepends"},
                                            {"partition", str_partition, "!sep"},
                                            {"rpartition", str_rpartition, "!sep"},
                                            {"join", str_join, "!iterable"},
                                            {"ljust", str_ljust, "!width,fillchar"},
                                            {"rjust", str_rjust, "!width,fillchar"},
                                            {"center", str_center, "!width,fillchar"},
                                            {"zfill", str_zfill, "!width"},
                                            {"expandtabs", str_expandtabs, "tabsize"},
                                            {"format", str_format, NULL},
                                            {"format_map", str_format_map, "!mapping"},
                                            {"isalpha", str_isalpha, ""},
                                            {"isalnum", str_isalnum, ""},
                                            {"isdigit", str_isdigit, ""},
                                            {"isdecimal", str_isdecimal, ""},
                                            {"isnumeric", str_isnumeric, ""},
                                            {"isspace", str_isspace, ""},
                                            {"isascii", str_isascii, ""},
                                            {"islower", str_islower, ""},
                                            {"isupper", str_isupper, ""},
                                            {"istitle", str_istitle, ""},
                                            {"isprintable", str_isprintable, ""},
                                            {"isidentifier", str_isidentifier, ""},
                                            {"encode", str_unsupported, NULL},
                                            {"translate", str_unsupported, NULL},
                                            {"maketrans", str_unsupported, NULL}};
static const cera_jbuiltin list_methods[] = {
    {"count", list_count, "!value"}, {"index", list_index, "!value,start,stop"}, {"copy", list_copy, ""}};
static const cera_jbuiltin dict_methods[] = {{"get", dict_get, "!key,default"},
                                             {"keys", dict_keys, ""},
                                             {"values", dict_values, ""},
                                             {"items", dict_items, ""},
                                             {"copy", dict_copy, ""}};
static const cera_jbuiltin range_methods[] = {{"count", range_count, "!value"}, {"index", range_index, "!value"}};
static const cera_jbuiltin int_methods[] = {{"bit_length", int_bit_length, ""}};
static const cera_jbuiltin float_methods[] = {{"is_integer", float_is_integer, ""}};
static const cera_jbuiltin loop_methods[] = {{"cycle", loop_cycle, NULL}, {"changed", loop_changed, NULL}};
static const cera_jbuiltin cycler_methods[] = {{"next", cycler_next, ""}, {"reset", cycler_reset, ""}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const cera_jbuiltin *cera_jinja_lookup(const cera_jbuiltin *table, size_t count, const char *name, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (!strncmp(table[i].name, name, n) && !table[i].name[n]) return &table[i];
    return NULL;
}

const cera_jbuiltin *cera_jinja_str_method(const char *name, size_t n) {
    return cera_jinja_lookup(str_methods, COUNT(str_methods), name, n);
}

const cera_jbuiltin *cera_jinja_method(const cera_jval *self, const char *name, size_t n) {
    switch (self->kind) {
    case J_STR: return cera_jinja_str_method(name, n);
    case J_LIST: return cera_jinja_lookup(list_methods, COUNT(list_methods), name, n);
    case J_TUPLE: return cera_jinja_lookup(list_methods, 2, name, n);
    case J_DICT: return cera_jinja_lookup(dict_methods, COUNT(dict_methods), name, n);
    case J_BOOL:
    case J_INT: return cera_jinja_lookup(int_methods, COUNT(int_methods), name, n);
    case J_RANGE: return cera_jinja_lookup(range_methods, COUNT(range_methods), name, n);
    case J_FLOAT: return cera_jinja_lookup(float_methods, COUNT(float_methods), name, n);
    case J_LOOP: return cera_jinja_lookup(loop_methods, COUNT(loop_methods), name, n);
    case J_CYCLER: return cera_jinja_lookup(cycler_methods, COUNT(cycler_methods), name, n);
    default: return NULL;
    }
}

static bool among(const char *const *names, size_t count, const char *name, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], name, n)) return true;
    return false;
}

/* Attributes that Python's object has and the sandbox keeps away: underscores, and what would change a list or dictionary. */
bool cera_jinja_unsafe_attr(const cera_jval *self, const char *name, size_t n) {
    static const char *const inner[] = {
        "__class__",  "__doc__",       "__dict__",    "__init__",    "__module__",  "__getattribute__", "__subclasshook__",
        "__reduce__", "__reduce_ex__", "__new__",     "__repr__",    "__str__",     "__eq__",           "__hash__",
        "__dir__",    "__format__",    "__sizeof__",  "__globals__", "__call__",    "__func__",         "__self__",
        "__code__",   "__len__",       "__getitem__", "__iter__",    "__contains__"};
    static const char *const list[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
    static const char *const dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
    if (self->kind == J_NAMESPACE) return n == 9 && !memcmp(name, "__class__", 9);
    if (n && name[0] == '_') return among(inner, COUNT(inner), name, n);
    if (self->kind == J_LIST) return among(list, COUNT(list), name, n);
    return self->kind == J_DICT && among(dict, COUNT(dict), name, n);
}
