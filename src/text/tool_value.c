/* tool_value.c: argument values as models write them, to JSON: by schema, Python's literals, Gemma's braces. Also finding
 * schemas in the list of tools and finding where a JSON value ends in a stream. Does not know where in the output values stand.
 */
#include <string.h>
#include "text/tool_int.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t cera_tool_skip_space(const char *text, size_t n, size_t at) {
    while (at < n && is_space(text[at])) at++;
    return at;
}

/* ---- JSON in a stream ------------------------------------------------------------------------------------------- */

void cera_tool_scan_json(cera_tool_scan *s, const char *text, size_t n, size_t *at) {
    for (; *at < n && !s->done; ++*at) {
        char c = text[*at];
        if (s->in_string) {
            if (s->escaped)
                s->escaped = false;
            else if (c == '\\')
                s->escaped = true;
            else if (c == '"')
                s->in_string = false, s->done = s->depth == 0;
            continue;
        }
        if (!s->started && is_space(c)) continue;
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']', ends = closes || c == ',' || is_space(c);
        if (s->scalar && ends) {
            s->done = true;
            return;
        }
        if (!s->started) s->scalar = !opens && c != '"';
        s->started = true;
        if (c == '"') s->in_string = true;
        if (opens) s->depth++;
        if (closes && s->depth > 0) s->done = --s->depth == 0;
    }
}

void cera_tool_scan_python(cera_tool_scan *s, const char *text, size_t n, size_t *at) {
    for (; *at < n && !s->done; ++*at) {
        char c = text[*at];
        if (s->quote) {
            if (s->escaped)
                s->escaped = false;
            else if (c == '\\')
                s->escaped = true;
            else if (c == s->quote)
                s->quote = 0;
        } else if (c == '"' || c == '\'') {
            s->quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
            s->depth++;
        } else if (c == ')' || c == ']' || c == '}') {
            s->done = --s->depth == 0;
        }
    }
}

bool cera_tool_is_json(const char *text, size_t n, bool object_only) {
    cera_arena *arena = NULL;
    const cera_json *v = NULL;
    enum { MAX_TREE_BYTES = 1 << 30 };
    if (cera_arena_create(MAX_TREE_BYTES, &arena, NULL) != CERA_OK) return false;
    bool ok = cera_json_parse(text, n, arena, &v, NULL) == CERA_OK && (!object_only || v->kind == CERA_JSON_OBJECT);
    cera_arena_destroy(arena);
    return ok;
}

/* ---- schemas ---------------------------------------------------------------------------------------------------- */

static const cera_json *tool_named(const cera_json *tools, const char *name, size_t n) {
    for (uint32_t i = 0; tools && tools->kind == CERA_JSON_ARRAY && i < tools->n; i++) {
        const cera_json *function = cera_json_get(&tools->items[i], "function"), *tool = function ? function : &tools->items[i];
        const cera_json *its_name = cera_json_get(tool, "name");
        if (its_name && its_name->kind == CERA_JSON_STRING && its_name->text.size == n && !memcmp(its_name->text.text, name, n))
            return tool;
    }
    return NULL;
}

bool cera_tool_is_known(const cera_json *tools, const char *name, size_t n) { return tool_named(tools, name, n) != NULL; }

const cera_json *cera_tool_schema(const cera_json *tools, const char *name, size_t n) {
    const cera_json *tool = tool_named(tools, name, n);
    const cera_json *schema = tool ? cera_json_get(tool, "parameters") : NULL;
    if (!schema && tool) schema = cera_json_get(tool, "input_schema");
    return schema;
}

const cera_json *cera_tool_property(const cera_json *schema, const char *name, size_t n) {
    const cera_json *properties = schema ? cera_json_get(schema, "properties") : NULL;
    return properties ? cera_json_get_view(properties, name, n) : NULL;
}

const cera_text_view *cera_tool_property_name(const cera_json *schema, uint32_t index) {
    const cera_json *properties = schema ? cera_json_get(schema, "properties") : NULL;
    return properties && properties->kind == CERA_JSON_OBJECT && index < properties->n ? &properties->keys[index] : NULL;
}

enum { MAY_STRING = 1, MAY_NULL = 2, MAY_OTHER = 4 };

static unsigned kind_of_type(const cera_json *type) {
    if (cera_json_is_text(type, "string")) return MAY_STRING;
    return cera_json_is_text(type, "null") ? MAY_NULL : MAY_OTHER;
}

static unsigned kind_of_value(const cera_json *v) {
    return v->kind == CERA_JSON_STRING ? MAY_STRING : v->kind == CERA_JSON_NULL ? MAY_NULL : MAY_OTHER;
}

/* What a schema lets a value be, 0 when it does not say. */
static unsigned kinds(const cera_json *schema, int depth) {
    static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
    unsigned result = 0;
    if (!schema || schema->kind != CERA_JSON_OBJECT || depth > 8) return 0;
    const cera_json *type = cera_json_get(schema, "type"), *values = cera_json_get(schema, "enum"),
                    *value = cera_json_get(schema, "const");
    if (type && type->kind == CERA_JSON_STRING) return kind_of_type(type);
    for (uint32_t i = 0; type && type->kind == CERA_JSON_ARRAY && i < type->n; i++) result |= kind_of_type(&type->items[i]);
    for (uint32_t i = 0; !result && values && values->kind == CERA_JSON_ARRAY && i < values->n; i++)
        result |= kind_of_value(&values->items[i]);
    if (!result && value) result = kind_of_value(value);
    for (size_t c = 0; !result && c < sizeof choices / sizeof choices[0]; c++) {
        const cera_json *list = cera_json_get(schema, choices[c]);
        for (uint32_t i = 0; list && list->kind == CERA_JSON_ARRAY && i < list->n; i++)
            result |= kinds(&list->items[i], depth + 1);
    }
    return result;
}

static bool is_word(const char *text, size_t n, const char *word) { return strlen(word) == n && !memcmp(text, word, n); }

/* JSON or Python's notation; leaves the buffer as it was when it is neither. */
static bool add_literal(cera_buffer *b, const char *text, size_t n) {
    size_t from = cera_tool_skip_space(text, n, 0), before = b->size, at = from;
    while (n > from && is_space(text[n - 1])) n--;
    if (n > from && cera_tool_is_json(text + from, n - from, false)) {
        cera_buffer_add(b, text + from, n - from);
        return true;
    }
    if (n > from && cera_tool_add_python(b, text, n, &at, 0) && at == n) return true;
    b->size = before;
    return false;
}

void cera_tool_add_value(cera_buffer *b, const char *text, size_t n, const cera_json *schema) {
    unsigned may = kinds(schema, 0);
    bool null = may & MAY_NULL && (is_word(text, n, "null") || is_word(text, n, "None"));
    size_t before = b->size;
    if (null) {
        cera_buffer_add_text(b, "null");
        return;
    }
    if (!(may & MAY_STRING && !(may & MAY_OTHER)) && add_literal(b, text, n)) {
        /* a quoted text where the schema allows text and other things was meant without its quotes only if the schema is silent
         */
        if (may != 0 || b->data[before] != '"') return;
        b->size = before;
    }
    cera_json_write_string(b, text, n, false);
}

/* ---- Python's literals ------------------------------------------------------------------------------------------ */

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void add_utf8(cera_buffer *b, uint32_t code) {
    char text[4];
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--, code >>= 6) text[i] = (char)(0x80 | (code & 0x3F));
    text[0] = (char)(lead[n] | code);
    cera_buffer_add(b, text, (size_t)n);
}

/* An escape after the backslash at text[*at]. */
static void python_escape(cera_buffer *b, const char *text, size_t n, size_t *at) {
    static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    char c = text[(*at)++];
    const char *known = c ? strchr(letters, c) : NULL;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, k = 0;
    uint32_t code = 0;
    if (known) {
        cera_buffer_add(b, &values[known - letters], 1);
        return;
    }
    while (k < digits && *at + (size_t)k < n && hex_digit(text[*at + (size_t)k]) >= 0)
        code = code * 16 + (uint32_t)hex_digit(text[*at + (size_t)k++]);
    if (c == '\n') return;
    if (digits == 0 || k < digits || code > 0x10FFFF) {
        cera_buffer_add(b, "\\", 1);
        cera_buffer_add(b, &c, 1);
        return;
    }
    *at += (size_t)digits;
    if (code >= 0xD800 && code < 0xDC00 && *at + 6 <= n && text[*at] == '\\' &&
        text[*at + 1] == 'u') { /* a pair, as JSON writes it */
        uint32_t low = 0;
        for (int i = 2; i < 6; i++)
            low = hex_digit(text[*at + (size_t)i]) < 0 ? 0x1000000 : low * 16 + (uint32_t)hex_digit(text[*at + (size_t)i]);
        if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            *at += 6;
        }
    }
    add_utf8(b, code);
}

static bool python_string(cera_buffer *b, const char *text, size_t n, size_t *at) {
    cera_buffer plain = {0};
    char quote = text[(*at)++];
    bool triple = *at + 1 < n && text[*at] == quote && text[*at + 1] == quote, closed = false;
    if (triple) *at += 2;
    while (*at < n && !closed) {
        char c = text[*at];
        closed = c == quote && (!triple || (*at + 2 < n && text[*at + 1] == quote && text[*at + 2] == quote));
        if (closed) break;
        ++*at;
        if (c == '\\' && *at < n)
            python_escape(&plain, text, n, at);
        else
            cera_buffer_add(&plain, &c, 1);
    }
    if (closed) {
        *at += triple ? 3 : 1;
        cera_json_write_string(b, plain.data ? plain.data : "", plain.size, false);
    }
    cera_buffer_deinit(&plain);
    return closed;
}

static bool python_sequence(cera_buffer *b, const char *text, size_t n, size_t *at, int depth) {
    char close = text[(*at)++] == '[' ? ']' : ')';
    cera_buffer_add_text(b, "[");
    for (bool first = true;; first = false) {
        *at = cera_tool_skip_space(text, n, *at);
        if (*at < n && text[*at] == close) break;
        if (!first) cera_buffer_add_text(b, ", ");
        if (*at >= n || !cera_tool_add_python(b, text, n, at, depth + 1)) return false;
        *at = cera_tool_skip_space(text, n, *at);
        if (*at < n && text[*at] == ',')
            ++*at;
        else if (*at >= n || text[*at] != close)
            return false;
    }
    ++*at;
    cera_buffer_add_text(b, "]");
    return true;
}

static bool python_dict(cera_buffer *b, const char *text, size_t n, size_t *at, int depth) {
    ++*at;
    cera_buffer_add_text(b, "{");
    for (bool first = true;; first = false) {
        *at = cera_tool_skip_space(text, n, *at);
        if (*at < n && text[*at] == '}') break;
        if (!first) cera_buffer_add_text(b, ", ");
        if (*at >= n || (text[*at] != '"' && text[*at] != '\'') || !python_string(b, text, n, at)) return false;
        *at = cera_tool_skip_space(text, n, *at);
        if (*at >= n || text[(*at)++] != ':') return false;
        cera_buffer_add_text(b, ": ");
        *at = cera_tool_skip_space(text, n, *at);
        if (*at >= n || !cera_tool_add_python(b, text, n, at, depth + 1)) return false;
        *at = cera_tool_skip_space(text, n, *at);
        if (*at < n && text[*at] == ',')
            ++*at;
        else if (*at >= n || text[*at] != '}')
            return false;
    }
    ++*at;
    cera_buffer_add_text(b, "}");
    return true;
}

bool cera_tool_add_python(cera_buffer *b, const char *text, size_t n, size_t *at, int depth) {
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"},
                                           {"true", "true"}, {"false", "false"}, {"null", "null"}};
    if (depth > CERA_TOOL_MAX_VALUE_DEPTH || *at >= n) return false;
    char c = text[*at];
    if (c == '"' || c == '\'') return python_string(b, text, n, at);
    if (c == '[' || c == '(') return python_sequence(b, text, n, at, depth);
    if (c == '{') return python_dict(b, text, n, at, depth);
    size_t end = *at;
    while (end < n && !is_space(text[end]) && !strchr(",)]}:", text[end])) end++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is_word(text + *at, end - *at, words[i][0])) {
            cera_buffer_add_text(b, words[i][1]);
            return *at = end, true;
        }
    size_t from = *at + (c == '+');
    if (end == from || !cera_tool_is_json(text + from, end - from, false)) return false; /* what is left are numbers */
    cera_buffer_add(b, text + from, end - from);
    return *at = end, true;
}

/* ---- braces ----------------------------------------------------------------------------------------------------- */

static bool starts(const char *text, size_t n, size_t at, const char *word) {
    size_t size = strlen(word);
    return size <= n - at && !memcmp(text + at, word, size);
}

static bool braces_string(cera_buffer *b, const char *text, size_t n, size_t *at, const char *quote) {
    size_t size = strlen(quote);
    *at += size;
    const char *end = memmem(text + *at, n - *at, quote, size);
    if (!end) return false;
    cera_json_write_string(b, text + *at, (size_t)(end - (text + *at)), false);
    *at = (size_t)(end - text) + size;
    return true;
}

/* { key : value , ... } or [ value , ... ] */
static bool braces_items(cera_buffer *b, const char *text, size_t n, size_t *at, const char *quote, const cera_json *schema,
                         int depth) {
    bool object = text[(*at)++] == '{';
    char close = object ? '}' : ']';
    cera_buffer_add_text(b, object ? "{" : "[");
    for (bool first = true;; first = false) {
        const cera_json *inner = object ? NULL : schema ? cera_json_get(schema, "items") : NULL;
        *at = cera_tool_skip_space(text, n, *at);
        if (*at < n && text[*at] == close) break;
        if (!first) cera_buffer_add_text(b, ", ");
        if (object && *at < n && starts(text, n, *at, quote)) {
            if (!braces_string(b, text, n, at, quote) || *at >= n || text[*at] != ':') return false;
        } else if (object) {
            size_t key = *at;
            while (*at < n && text[*at] != ':' && text[*at] != close) ++*at;
            if (*at >= n || text[*at] != ':') return false;
            inner = cera_tool_property(schema, text + key, *at - key);
            cera_json_write_string(b, text + key, *at - key, false);
        }
        if (object) {
            ++*at;
            cera_buffer_add_text(b, ": ");
        }
        if (!cera_tool_add_braces(b, text, n, at, quote, inner, depth + 1)) return false;
        *at = cera_tool_skip_space(text, n, *at);
        if (*at < n && text[*at] == ',')
            ++*at;
        else if (*at >= n || text[*at] != close)
            return false;
    }
    ++*at;
    cera_buffer_add_text(b, object ? "}" : "]");
    return true;
}

bool cera_tool_add_braces(cera_buffer *b, const char *text, size_t n, size_t *at, const char *quote, const cera_json *schema,
                          int depth) {
    *at = cera_tool_skip_space(text, n, *at);
    if (depth > CERA_TOOL_MAX_VALUE_DEPTH || *at >= n) return false;
    if (starts(text, n, *at, quote)) return braces_string(b, text, n, at, quote);
    if (text[*at] == '{' || text[*at] == '[') return braces_items(b, text, n, at, quote, schema, depth);
    size_t from = *at;
    if (text[*at] == '"') { /* a JSON string, which some write instead of their own marks */
        cera_tool_scan scan = {0};
        cera_tool_scan_json(&scan, text, n, at);
        if (!scan.done || !cera_tool_is_json(text + from, *at - from, false)) return false;
        cera_buffer_add(b, text + from, *at - from);
        return true;
    }
    while (*at < n && !strchr(",}]", text[*at])) ++*at;
    cera_tool_add_value(b, text + from, *at - from, schema);
    return true;
}
