/* json.c: parses JSON text (RFC 8259) into a tree. Owns the grammar, the limits and the messages with line and column.
 *
 * One loop with a stack of open containers on the heap, no recursion: depth costs the caller no stack. Values wait on a second
 * stack until their container closes, then go to the arena as one array. Everything is copied; nothing points into the text.
 * Looking things up and comparing is json_value.c, writing json_write.c, the grammar of numbers number.c. */
#include "base/json.h"

#include <string.h>
#include "base/arena_int.h"
#include "base/number.h"
#include "base/utf8.h"

typedef struct frame {
    bool is_object;
    uint32_t first;      /* its first value on the stack of values */
    uint32_t offset;     /* of its bracket */
    cera_text_view name; /* of the value being read, in an object */
} frame;

typedef struct pending {
    cera_json value;
    cera_text_view name; /* of the member, in an object */
} pending;

typedef struct parser {
    const char *text;
    size_t n, at;
    cera_arena *arena;
    cera_error *error;
    pending *values; /* [capacity], n_values used */
    size_t n_values, capacity;
    size_t n_nodes;
    frame frames[CERA_JSON_MAX_DEPTH];
    int depth;
} parser;

/* ---- messages ---- */

/* Lines end with \n; columns count characters, both from 1. */
static void locate(const parser *p, size_t at, size_t *line, size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at && i < p->n; i++) {
        if (p->text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)p->text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static cera_status fail_at(const parser *p, size_t at, const char *what) {
    size_t line, column;
    locate(p, at, &line, &column);
    return cera_fail(p->error, CERA_ERR_FORMAT, "line %zu, column %zu: %s", line, column, what);
}

static cera_status fail_expected(const parser *p, const char *expected) {
    size_t line, column;
    locate(p, p->at, &line, &column);
    if (p->at >= p->n)
        return cera_fail(p->error, CERA_ERR_FORMAT, "line %zu, column %zu: the text ends where %s was expected", line, column,
                         expected);
    uint32_t code;
    int length = cera_utf8_decode(p->text + p->at, p->n - p->at, &code);
    const char *found = p->text[p->at] ? p->text + p->at : "NUL";
    if (!p->text[p->at]) length = 3;
    return cera_fail(p->error, CERA_ERR_FORMAT, "line %zu, column %zu: found '%.*s' where %s was expected", line, column,
                     length > 0 ? length : 1, found, expected);
}

static cera_status fail_memory(const parser *p) {
    return cera_fail(p->error, CERA_ERR_MEMORY, "no memory for a JSON text of %zu bytes", p->n);
}

static cera_status fail_limit(const parser *p, const char *what, int limit) {
    size_t line, column;
    locate(p, p->at, &line, &column);
    return cera_fail(p->error, CERA_ERR_LIMIT, "line %zu, column %zu: more than %d %s", line, column, limit, what);
}

/* ---- scalars ---- */

static void skip_space(parser *p) {
    while (p->at < p->n) {
        char c = p->text[p->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
        p->at++;
    }
}

/* The byte at the cursor; 0 at the end (a NUL in the text is no token either, so both lead to the same errors). */
static char peek(const parser *p) { return p->at < p->n ? p->text[p->at] : 0; }

/* Four hex digits at text[at]; -1 when there are not four. */
static int32_t hex4(const parser *p, size_t at) {
    if (p->n - at < 4) return -1;
    int32_t v = 0;
    for (size_t i = at; i < at + 4; i++) {
        char c = p->text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* The \u escape whose u is at *at; a pair of surrogates is one character. */
static cera_status unescape_unicode(const parser *p, size_t *at, char out[4], int *length) {
    int32_t unit = hex4(p, *at + 1);
    if (unit < 0) return fail_at(p, *at - 1, "\\u needs four hexadecimal digits");
    *at += 5;
    uint32_t code = (uint32_t)unit;
    if (code >= 0xd800 && code < 0xdc00 && p->n - *at >= 6 && p->text[*at] == '\\' && p->text[*at + 1] == 'u') {
        int32_t low = hex4(p, *at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            *at += 6;
        }
    }
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd; /* alone */
    *length = cera_utf8_encode(code, out);
    return CERA_OK;
}

/* Text between quotes, [from, to), with escapes; out has to - from bytes, which is enough for every escape. */
static cera_status unescape(const parser *p, size_t from, size_t to, char *out, size_t *size) {
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    size_t n = 0;
    for (size_t at = from; at < to;) {
        if (p->text[at] != '\\') {
            out[n++] = p->text[at++];
            continue;
        }
        char c = p->text[++at];
        const char *simple = c ? strchr(names, c) : NULL;
        if (simple) {
            out[n++] = bytes[simple - names];
            at++;
        } else if (c == 'u') {
            int length = 0;
            CERA_TRY(unescape_unicode(p, &at, out + n, &length));
            n += (size_t)length;
        } else {
            return fail_at(p, at - 1, "unknown escape; \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX exist");
        }
    }
    *size = n;
    return CERA_OK;
}

/* From the opening quote; finds the closing one. */
static cera_status string_end(const parser *p, size_t *end, bool *escaped) {
    *escaped = false;
    for (size_t i = p->at + 1; i < p->n; i++) {
        unsigned char c = (unsigned char)p->text[i];
        if (c == '"') {
            *end = i;
            return CERA_OK;
        }
        if (c < 0x20) return fail_at(p, i, "a control character in a string must be escaped");
        if (c == '\\') {
            *escaped = true;
            i++;
        }
    }
    return fail_at(p, p->at, "this string has no end");
}

static cera_status parse_string(parser *p, cera_text_view *out) {
    size_t end = 0, size;
    bool escaped;
    CERA_TRY(string_end(p, &end, &escaped));
    const char *start = p->text + p->at + 1;
    size = end - p->at - 1;
    if (!cera_utf8_valid(start, size)) return fail_at(p, p->at, "this string is not valid UTF-8");
    char *copy = cera_arena_text(p->arena, start, size);
    if (!copy) return fail_memory(p);
    if (escaped) {
        CERA_TRY(unescape(p, p->at + 1, end, copy, &size));
        copy[size] = 0;
    }
    *out = (cera_text_view){copy, size};
    p->at = end + 1;
    return CERA_OK;
}

static cera_status parse_number(parser *p, cera_text_view *out) {
    size_t start = p->at, end = start;
    while (end < p->n && p->text[end] && strchr("0123456789+-.eE", p->text[end])) end++;
    if (!cera_number_valid(p->text + start, end - start)) return fail_at(p, start, "malformed number");
    char *copy = cera_arena_text(p->arena, p->text + start, end - start);
    if (!copy) return fail_memory(p);
    *out = (cera_text_view){copy, end - start};
    p->at = end;
    return CERA_OK;
}

static bool parse_word(parser *p, const char *word) {
    size_t n = strlen(word);
    if (p->n - p->at < n || memcmp(p->text + p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static cera_status parse_scalar(parser *p, cera_json *v) {
    char c = peek(p);
    v->offset = (uint32_t)p->at;
    if (c == '"') {
        v->kind = CERA_JSON_STRING;
        return parse_string(p, &v->text);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        v->kind = CERA_JSON_NUMBER;
        return parse_number(p, &v->text);
    }
    if (parse_word(p, "null"))
        v->kind = CERA_JSON_NULL;
    else if (parse_word(p, "true"))
        v->kind = CERA_JSON_TRUE;
    else if (parse_word(p, "false"))
        v->kind = CERA_JSON_FALSE;
    else
        return fail_expected(p, "a value");
    return CERA_OK;
}

/* ---- containers ---- */

static cera_status push_value(parser *p, const cera_json *v) {
    if (p->n_nodes++ >= CERA_JSON_MAX_NODES) return fail_limit(p, "values", CERA_JSON_MAX_NODES);
    if (p->n_values == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 64;
        /* They will have to fit in the arena when their container closes: no need to collect more than that. */
        if (p->n_values > cera_arena_left(p->arena) / sizeof(cera_json)) return fail_memory(p);
        pending *grown = cera_alloc_grow(p->values, p->capacity, capacity, sizeof *grown);
        if (!grown) return fail_memory(p);
        p->values = grown;
        p->capacity = capacity;
    }
    pending *slot = &p->values[p->n_values++];
    slot->value = *v;
    slot->name = p->depth > 0 ? p->frames[p->depth - 1].name : (cera_text_view){0};
    return CERA_OK;
}

/* "name" : with white space around both. */
static cera_status parse_name(parser *p) {
    skip_space(p);
    if (peek(p) != '"') return fail_expected(p, "a member name in double quotes");
    CERA_TRY(parse_string(p, &p->frames[p->depth - 1].name));
    skip_space(p);
    if (peek(p) != ':') return fail_expected(p, "':'");
    p->at++;
    return CERA_OK;
}

static cera_status open_container(parser *p) {
    if (p->depth == CERA_JSON_MAX_DEPTH) return fail_limit(p, "arrays and objects inside each other", CERA_JSON_MAX_DEPTH);
    p->frames[p->depth++] = (frame){.is_object = peek(p) == '{', .first = (uint32_t)p->n_values, .offset = (uint32_t)p->at};
    p->at++;
    return CERA_OK;
}

/* Moves the values of the innermost container to the arena and pushes the container in their place. */
static cera_status close_container(parser *p) {
    const frame *f = &p->frames[--p->depth];
    const pending *from = p->values ? p->values + f->first : NULL;
    size_t n = p->n_values - f->first;
    cera_json v = {.kind = f->is_object ? CERA_JSON_OBJECT : CERA_JSON_ARRAY, .n = (uint32_t)n, .offset = f->offset};
    if (n > 0) {
        cera_json *items = cera_arena_alloc_packed(p->arena, n, sizeof *items);
        cera_text_view *keys = f->is_object ? cera_arena_alloc_packed(p->arena, n, sizeof *keys) : NULL;
        if (!items || (f->is_object && !keys)) return fail_memory(p);
        for (size_t i = 0; i < n; i++) {
            items[i] = from[i].value;
            if (keys) keys[i] = from[i].name;
        }
        v.items = items;
        v.keys = keys;
    }
    p->n_values = f->first;
    p->at++;
    return push_value(p, &v);
}

/* After a value inside a container: closes as many containers as end here; stops before the next value. */
static cera_status parse_separators(parser *p) {
    while (p->depth > 0) {
        bool is_object = p->frames[p->depth - 1].is_object;
        skip_space(p);
        char c = peek(p);
        if (c == ',') {
            p->at++;
            return is_object ? parse_name(p) : CERA_OK;
        }
        if (c != (is_object ? '}' : ']')) return fail_expected(p, is_object ? "',' or '}'" : "',' or ']'");
        CERA_TRY(close_container(p));
    }
    return CERA_OK;
}

/* One value up to its first scalar or empty container; containers that do not end at once stay open. */
static cera_status parse_value(parser *p) {
    for (;;) {
        skip_space(p);
        char c = peek(p);
        if (c != '{' && c != '[') break;
        CERA_TRY(open_container(p));
        skip_space(p);
        if (peek(p) == (c == '{' ? '}' : ']')) return close_container(p);
        if (c == '{') CERA_TRY(parse_name(p));
    }
    cera_json v = {0};
    CERA_TRY(parse_scalar(p, &v));
    return push_value(p, &v);
}

static cera_status parse_document(parser *p) {
    if (p->n >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0) p->at = 3;
    do {
        CERA_TRY(parse_value(p));
        CERA_TRY(parse_separators(p));
    } while (p->depth > 0);
    skip_space(p);
    return p->at == p->n ? CERA_OK : fail_expected(p, "the end of the text");
}

cera_status cera_json_parse(const char *text, size_t n, cera_arena *arena, const cera_json **out, cera_error *e) {
    *out = NULL;
    if (n > UINT32_MAX) return cera_fail(e, CERA_ERR_LIMIT, "a JSON text of %zu bytes; the limit is 4 GiB", n);
    parser *p = cera_alloc(1, sizeof *p); /* 10 KiB: too much for the stack of a small thread */
    if (!p) return cera_fail(e, CERA_ERR_MEMORY, "no memory to parse JSON");
    p->text = text;
    p->n = n;
    p->arena = arena;
    p->error = e;
    cera_status status = parse_document(p);
    if (status == CERA_OK) {
        cera_json *root = cera_arena_alloc_packed(arena, 1, sizeof *root);
        if (root)
            *root = p->values[0].value;
        else
            status = fail_memory(p);
        *out = root;
    }
    cera_free(p->values);
    cera_free(p);
    return status;
}
