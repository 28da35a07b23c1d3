/* jinja_str.c: strings of a render: growing buffers that know which bytes came from the user, views of them, and what counts in
 * characters. Owns provenance: every string a render makes is built with the functions here. */
#include <string.h>
#include "base/utf8.h"
#include "text/jinja_int.h"

cera_jbuf *cera_jinja_buf_new(cera_jrender *r) {
    cera_jbuf *b = cera_jinja_alloc(&r->mem, 1, sizeof *b);
    if (!b) return cera_jinja_no_memory(r), NULL;
    b->ascii = true;
    b->data = (char *)""; /* capacity 0: never written */
    b->marks = &b->first;
    b->cap_marks = 1;
    return b;
}

cera_jval cera_jinja_buf_value(cera_jbuf *b) { return (cera_jval){.kind = J_STR, .n = b->used, .u.buf = b}; }

/* Room for `more` bytes after the used ones. */
bool cera_jinja_buf_reserve(cera_jrender *r, cera_jbuf *b, size_t more) {
    if (more <= b->capacity && b->used <= b->capacity - more) return true;
    if (more > r->max_bytes || b->used > r->max_bytes - more)
        return cera_jinja_limit(r, "a string grew beyond %zu bytes", r->max_bytes);
    size_t need = b->used + more, capacity = b->capacity < 32 ? 64 : 2 * (size_t)b->capacity;
    if (capacity < need) capacity = need;
    if (capacity > r->max_bytes) capacity = r->max_bytes;
    char *data = cera_jinja_alloc(&r->mem, capacity, 1);
    if (!data) return cera_jinja_no_memory(r);
    if (b->used) memcpy(data, b->data, b->used);
    b->data = data;
    b->capacity = (uint32_t)capacity;
    return true;
}

static bool add_mark(cera_jrender *r, cera_jbuf *b, uint32_t start, uint32_t end) {
    if (b->n_marks && b->marks[b->n_marks - 1].end == start) {
        b->marks[b->n_marks - 1].end = end;
        return true;
    }
    if (b->n_marks == b->cap_marks) {
        uint32_t capacity = 2 * b->cap_marks + 2;
        cera_jmark *marks = cera_jinja_alloc(&r->mem, capacity, sizeof *marks);
        if (!marks) return cera_jinja_no_memory(r);
        if (b->n_marks) memcpy(marks, b->marks, b->n_marks * sizeof *marks);
        b->marks = marks;
        b->cap_marks = capacity;
    }
    b->marks[b->n_marks++] = (cera_jmark){start, end};
    return true;
}

bool cera_jinja_buf_add(cera_jrender *r, cera_jbuf *b, const char *text, size_t n, bool user) {
    if (n == 0) return true;
    if (!cera_jinja_buf_reserve(r, b, n) || !cera_jinja_charge(r, 1 + n / 32)) return false;
    memcpy(b->data + b->used, text, n);
    for (size_t i = 0; i < n && b->ascii; i++) b->ascii = (unsigned char)text[i] < 0x80;
    uint32_t start = b->used;
    b->used += (uint32_t)n;
    return !user || add_mark(r, b, start, b->used);
}

bool cera_jinja_buf_text(cera_jrender *r, cera_jbuf *b, const char *text) {
    return cera_jinja_buf_add(r, b, text, strlen(text), false);
}

/* The first mark that ends after this byte of the buffer. */
static uint32_t first_mark(const cera_jbuf *b, uint32_t at) {
    uint32_t low = 0, high = b->n_marks;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (b->marks[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool cera_jinja_buf_add_str(cera_jrender *r, cera_jbuf *b, const cera_jval *s) {
    if (s->n == 0) return true;
    const cera_jbuf *from = s->u.buf;
    uint32_t at = b->used, end = s->off + s->n, k = first_mark(from, s->off);
    if (!cera_jinja_buf_reserve(r, b, s->n) || !cera_jinja_charge(r, 1 + s->n / 32)) return false;
    memcpy(b->data + at, from->data + s->off, s->n);
    for (uint32_t i = 0; i < s->n && b->ascii && !from->ascii; i++) b->ascii = (unsigned char)from->data[s->off + i] < 0x80;
    b->used += s->n;
    /* `from` may be `b` itself: its marks before `at` are read, later ones are only added */
    for (; k < from->n_marks && from->marks[k].start < end; k++) {
        uint32_t start = from->marks[k].start < s->off ? s->off : from->marks[k].start;
        uint32_t stop = from->marks[k].end > end ? end : from->marks[k].end;
        if (!add_mark(r, b, at + (start - s->off), at + (stop - s->off))) return false;
    }
    return true;
}

bool cera_jinja_user_at(const cera_jval *s, uint32_t byte) {
    uint32_t k = first_mark(s->u.buf, s->off + byte);
    return k < s->u.buf->n_marks && s->u.buf->marks[k].start <= s->off + byte;
}

bool cera_jinja_text_value(cera_jrender *r, const char *text, cera_jval *out) {
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b || !cera_jinja_buf_text(r, b, text)) return false;
    *out = cera_jinja_buf_value(b);
    return true;
}

cera_jval cera_jinja_sub(const cera_jval *s, uint32_t from, uint32_t to) {
    cera_jval v = *s;
    v.off += from;
    v.n = to - from;
    return v;
}

uint32_t cera_jinja_str_chars(const cera_jval *s) {
    if (s->u.buf->ascii) return s->n;
    uint32_t n = 0;
    const char *p = cera_jinja_chars(s);
    for (uint32_t i = 0; i < s->n; i++) n += ((unsigned char)p[i] & 0xC0) != 0x80;
    return n;
}

uint32_t cera_jinja_char_offset(const cera_jval *s, uint32_t index) {
    if (s->u.buf->ascii) return index < s->n ? index : s->n;
    const char *p = cera_jinja_chars(s);
    uint32_t i = 0;
    while (i < s->n) {
        if (((unsigned char)p[i] & 0xC0) != 0x80 && index-- == 0) break;
        i++;
    }
    return i;
}

uint32_t cera_jinja_char_at(const cera_jval *s, uint32_t at, uint32_t *size) {
    uint32_t code = 0;
    int n = cera_utf8_decode(cera_jinja_chars(s) + at, s->n - at, &code);
    *size = n > 0 ? (uint32_t)n : 1;
    return n > 0 ? code : (unsigned char)cera_jinja_chars(s)[at];
}

bool cera_jinja_concat(cera_jrender *r, const cera_jval *a, const cera_jval *b, cera_jval *out) {
    cera_jval left = *a, right = *b;
    if ((left.flags ^ right.flags) & J_MARKUP) { /* markup + text escapes the text */
        cera_jval *plain = left.flags & J_MARKUP ? &right : &left;
        if (!cera_jinja_escape(r, plain, plain)) return false;
    }
    cera_jbuf *buf = left.u.buf;
    if (!buf->capacity || left.off + left.n != buf->used || left.n == 0) {
        buf = cera_jinja_buf_new(r);
        if (!buf || !cera_jinja_buf_reserve(r, buf, (size_t)left.n + right.n) || !cera_jinja_buf_add_str(r, buf, &left))
            return false;
        left = (cera_jval){.kind = J_STR, .flags = left.flags, .n = left.n, .u.buf = buf};
    }
    if (!cera_jinja_buf_add_str(r, buf, &right)) return false;
    *out = left;
    out->n = left.n + right.n;
    return true;
}

bool cera_jinja_escape(cera_jrender *r, const cera_jval *s, cera_jval *out) {
    cera_jval copy = *s;
    if (copy.flags & J_MARKUP) {
        *out = copy;
        return true;
    }
    cera_jbuf *b = cera_jinja_buf_new(r);
    if (!b) return false;
    const char *p = cera_jinja_chars(&copy);
    uint32_t from = 0;
    for (uint32_t i = 0; i < copy.n; i++) {
        const char *entity = p[i] == '&'    ? "&amp;"
                             : p[i] == '<'  ? "&lt;"
                             : p[i] == '>'  ? "&gt;"
                             : p[i] == '\'' ? "&#39;"
                             : p[i] == '"'  ? "&#34;"
                                            : NULL;
        if (!entity) continue;
        cera_jval part = cera_jinja_sub(&copy, from, i);
        if (!cera_jinja_buf_add_str(r, b, &part) ||
            !cera_jinja_buf_add(r, b, entity, strlen(entity), cera_jinja_user_at(&copy, i)))
            return false;
        from = i + 1;
    }
    cera_jval part = cera_jinja_sub(&copy, from, copy.n);
    if (!cera_jinja_buf_add_str(r, b, &part)) return false;
    *out = cera_jinja_buf_value(b);
    out->flags = J_MARKUP;
    return true;
}

int64_t cera_jinja_find(const cera_jval *s, const cera_jval *needle, uint32_t from) {
    if (from > s->n || needle->n > s->n - from) return -1;
    if (needle->n == 0) return from;
    const char *p = cera_jinja_chars(s), *at = memmem(p + from, s->n - from, cera_jinja_chars(needle), needle->n);
    return at ? at - p : -1;
}

int64_t cera_jinja_rfind(const cera_jval *s, const cera_jval *needle) {
    if (needle->n > s->n) return -1;
    const char *p = cera_jinja_chars(s), *what = cera_jinja_chars(needle);
    for (int64_t i = (int64_t)s->n - needle->n; i >= 0; i--)
        if (!memcmp(p + i, what, needle->n)) return i;
    return -1;
}
