/* jinja_lex.c: a template's text to tokens, with jinja2's white space rules: trim_blocks, lstrip_blocks, the signs - and + of
 * tags, comments, raw blocks, one newline at the end dropped. Owns the compiled template's memory helpers for constants; does
 * not own the grammar (jinja_parse.c, jinja_expr.c). */
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct lexer {
    cera_jinja *t;
    cera_jtokens *out;
    cera_error *e;
    const char *s;
    size_t n, at;
    uint32_t line;
    bool line_starting;
    cera_status status;
} lexer;

enum { MAX_BALANCE = 1024 };

void *cera_jinja_alloc(cera_jmem *m, size_t count, size_t size) {
    enum { CHUNK = 64 << 10 };
    if (size && count > SIZE_MAX / 2 / size) return NULL;
    size_t bytes = (count * size + 15) & ~(size_t)15;
    if (bytes == 0) bytes = 16;
    if (bytes > CHUNK / 8) return cera_arena_alloc(m->arena, bytes, 1);
    if (bytes > m->left) {
        m->at = cera_arena_alloc(m->arena, CHUNK, 1);
        m->left = m->at ? CHUNK : 0;
        if (!m->at) return NULL;
    }
    void *p = m->at;
    m->at += bytes;
    m->left -= bytes;
    return p;
}

static bool fail(lexer *l, const char *message) {
    l->status = cera_fail(l->e, CERA_ERR_FORMAT, "template line %u: %s", l->line, message);
    return false;
}

static bool no_memory(lexer *l) {
    l->status = cera_fail(l->e, CERA_ERR_MEMORY, "template: out of memory");
    return false;
}

static bool const_text(lexer *l, const char *text, size_t n, cera_jval *out) {
    cera_jbuf *b = cera_jinja_alloc(&l->t->mem, 1, sizeof *b);
    if (!b) return no_memory(l);
    b->data = (char *)text; /* capacity 0: never written */
    b->used = (uint32_t)n;
    b->ascii = true;
    for (size_t i = 0; i < n && b->ascii; i++) b->ascii = (unsigned char)text[i] < 0x80;
    *out = (cera_jval){.kind = J_STR, .n = (uint32_t)n, .u.buf = b};
    return true;
}

static bool keep_name(lexer *l, const cera_jval *v) {
    cera_jinja *t = l->t;
    if (t->n_names == t->cap_names) {
        uint32_t capacity = t->cap_names ? 2 * t->cap_names : 256;
        cera_jval *names = cera_jinja_alloc(&t->mem, capacity, sizeof *names);
        if (!names) return no_memory(l);
        if (t->n_names) memcpy(names, t->names, t->n_names * sizeof *names);
        t->names = names;
        t->cap_names = capacity;
    }
    t->names[t->n_names++] = *v;
    return true;
}

static bool emit(lexer *l, uint8_t type, cera_jval value) {
    cera_jtokens *o = l->out;
    if (o->n == o->capacity) {
        uint32_t capacity = o->capacity ? 2 * o->capacity : 256;
        cera_jtoken *items = cera_jinja_alloc(&l->t->mem, capacity, sizeof *items);
        if (!items) return no_memory(l);
        if (o->n) memcpy(items, o->items, o->n * sizeof *items);
        o->items = items;
        o->capacity = capacity;
    }
    o->items[o->n++] = (cera_jtoken){.type = type, .line = l->line, .value = value};
    return true;
}

/* Length of the white space (as Python's \s) that starts at text[at]. */
static size_t space_at(const lexer *l, size_t at) {
    uint32_t code;
    int size = at < l->n ? cera_utf8_decode(l->s + at, l->n - at, &code) : 0;
    return size > 0 && cera_jinja_is_space(code) ? (size_t)size : 0;
}

static size_t skip_space(const lexer *l, size_t at) {
    for (size_t k; (k = space_at(l, at)) > 0;) at += k;
    return at;
}

/* Where the white space that ends at `end` begins, not before `from`. */
static size_t back_over_space(const lexer *l, size_t from, size_t end) {
    while (end > from) {
        size_t k = end - 1;
        while (k > from && ((unsigned char)l->s[k] & 0xC0) == 0x80) k--;
        if (space_at(l, k) != end - k) break;
        end = k;
    }
    return end;
}

static uint32_t count_lines(const lexer *l, size_t from, size_t to) {
    uint32_t n = 0;
    for (size_t i = from; i < to; i++) n += l->s[i] == '\n';
    return n;
}

static bool has(const lexer *l, size_t at, const char *text) {
    size_t n = strlen(text);
    return n <= l->n - at && !memcmp(l->s + at, text, n);
}

/* The text before a tag, shortened as its sign says ('-', '+' or 0). */
static bool emit_data(lexer *l, size_t from, size_t end, char sign, bool is_variable) {
    size_t stop = end;
    if (sign == '-') {
        stop = back_over_space(l, from, end);
    } else if (sign != '+' && !is_variable) {
        size_t start = end;
        while (start > from && l->s[start - 1] != '\n') start--;
        if ((start > from || l->line_starting) && back_over_space(l, start, end) == start) stop = start;
    }
    if (stop > from) {
        cera_jval v;
        if (!const_text(l, l->s + from, stop - from, &v) || !emit(l, T_DATA, v)) return false;
    }
    l->line += count_lines(l, from, end);
    return true;
}

static void advance(lexer *l, size_t to) {
    l->line += count_lines(l, l->at, to);
    l->line_starting = to > l->at ? l->s[to - 1] == '\n' : l->line_starting;
    l->at = to;
}

/* End of a tag at `at`: +%} -%} %} with what they swallow. Returns where the text goes on, 0 when this is no end. */
static size_t tag_end(const lexer *l, size_t at, const char *close, bool is_block) {
    if (is_block && l->s[at] == '+' && has(l, at + 1, close)) return at + 3;
    if (l->s[at] == '-' && has(l, at + 1, close)) return skip_space(l, at + 3);
    if (!has(l, at, close)) return 0;
    return at + 2 + (is_block && at + 2 < l->n && l->s[at + 2] == '\n');
}

/* The end of {% raw %} when the tag at `at` is one, else 0. */
static size_t raw_begin(const lexer *l, size_t at) {
    if (!has(l, at, "{%")) return 0;
    at += 2;
    if (at < l->n && (l->s[at] == '-' || l->s[at] == '+')) at++;
    at = skip_space(l, at);
    if (!has(l, at, "raw")) return 0;
    at = skip_space(l, at + 3);
    if (has(l, at, "-%}")) return skip_space(l, at + 3);
    return has(l, at, "%}") ? at + 2 : 0;
}

static bool lex_raw(lexer *l) {
    size_t from = l->at;
    for (size_t i = from; i + 1 < l->n; i++) {
        if (!has(l, i, "{%")) continue;
        size_t k = i + 2;
        char sign = 0;
        if (k < l->n && (l->s[k] == '-' || l->s[k] == '+')) sign = l->s[k++];
        k = skip_space(l, k);
        if (!has(l, k, "endraw")) continue;
        k = skip_space(l, k + 6);
        size_t end = k < l->n ? tag_end(l, k, "%}", true) : 0;
        if (!end) continue;
        if (!emit_data(l, from, i, sign, false)) return false;
        l->at = i;
        advance(l, end);
        return true;
    }
    return l->at >= l->n || fail(l, "Missing end of raw directive");
}

static bool lex_comment(lexer *l) {
    for (size_t i = l->at; i < l->n; i++) {
        size_t end = l->s[i] == '#' || l->s[i] == '-' || l->s[i] == '+' ? tag_end(l, i, "#}", true) : 0;
        if (!end) continue;
        advance(l, end);
        return true;
    }
    return l->at >= l->n || fail(l, "Missing end of comment tag"); /* jinja2 lets {# be the last thing of all */
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* \xHH \uHHHH \UHHHHHHHH: the digits at s[i]. */
static bool hex_escape(lexer *l, const char *s, size_t n, size_t *i, int digits, uint32_t *code) {
    *code = 0;
    for (int k = 0; k < digits; k++, (*i)++) {
        int v = *i < n ? hex_value(s[*i]) : -1;
        if (v < 0) return fail(l, "truncated escape in a string");
        *code = *code * 16 + (uint32_t)v;
    }
    return true;
}

static bool escape_code(lexer *l, const char *s, size_t n, size_t *i, uint32_t *code) {
    static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    char c = s[(*i)++];
    const char *known = memchr(letters, c, sizeof letters - 1);
    if (known) {
        *code = (unsigned char)values[known - letters];
    } else if (c >= '0' && c <= '7') {
        *code = (uint32_t)(c - '0');
        for (int k = 0; k < 2 && *i < n && s[*i] >= '0' && s[*i] <= '7'; k++) *code = *code * 8 + (uint32_t)(s[(*i)++] - '0');
    } else {
        int digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        if (!hex_escape(l, s, n, i, digits, code)) return false;
        uint32_t low;
        if (*code >= 0xD800 && *code < 0xDC00 && *i + 1 < n && s[*i] == '\\' && s[*i + 1] == 'u') {
            *i += 2;
            if (!hex_escape(l, s, n, i, 4, &low)) return false;
            if (low >= 0xDC00 && low < 0xE000) *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return true;
}

/* s: what stands between the quotes. Escapes as in Python; an unknown one keeps its backslash. */
static bool unescape(lexer *l, const char *s, size_t n, cera_jval *out) {
    char *text = cera_jinja_alloc(&l->t->mem, n + 1, 1);
    if (!text) return no_memory(l);
    size_t size = 0;
    for (size_t i = 0; i < n;) {
        if (s[i] != '\\' || i + 1 >= n) {
            text[size++] = s[i++];
        } else if (s[i + 1] == '\n') {
            i += 2;
        } else if (s[i + 1] == 'N') {
            return fail(l, "\\N{...} escapes are not supported");
        } else if (!strchr("abfnrtv\\'\"01234567xuU", s[i + 1])) {
            text[size++] = s[i++];
        } else {
            uint32_t code;
            i++;
            if (!escape_code(l, s, n, &i, &code)) return false;
            char bytes[4];
            int k = cera_utf8_encode(code, bytes);
            if (k == 0) return fail(l, "an escape in a string is no character");
            memcpy(text + size, bytes, (size_t)k);
            size += (size_t)k;
        }
    }
    return const_text(l, text, size, out);
}

static bool lex_string(lexer *l) {
    char quote = l->s[l->at];
    size_t i = l->at + 1;
    while (i < l->n && l->s[i] != quote) i += l->s[i] == '\\' ? 2 : 1;
    if (i >= l->n) return fail(l, "a string does not end");
    cera_jval v;
    if (!unescape(l, l->s + l->at + 1, i - l->at - 1, &v) || !keep_name(l, &v) || !emit(l, T_STRING, v)) return false;
    advance(l, i + 1);
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

/* (\d+_)*\d+ at `at`; returns its end. */
static size_t digits_end(const lexer *l, size_t at) {
    while (at < l->n &&
           (is_digit(l->s[at]) || (l->s[at] == '_' && at + 1 < l->n && is_digit(l->s[at + 1]) && is_digit(l->s[at - 1]))))
        at++;
    return at;
}

/* End of a float at `at`, or 0 when there is none. */
static size_t float_end(const lexer *l, size_t at) {
    if (at > 0 && l->s[at - 1] == '.') return 0;
    size_t k = digits_end(l, at), whole = k;
    if (k + 1 < l->n && l->s[k] == '.' && is_digit(l->s[k + 1])) k = digits_end(l, k + 1);
    if (k < l->n && (l->s[k] == 'e' || l->s[k] == 'E')) {
        size_t x = k + 1;
        if (x < l->n && (l->s[x] == '+' || l->s[x] == '-')) x++;
        if (x < l->n && is_digit(l->s[x])) return digits_end(l, x);
    }
    return k > whole ? k : 0;
}

static size_t integer_end(const lexer *l, size_t at, int *base) {
    size_t k = at + 1;
    *base = 10;
    if (l->s[at] == '0' && k < l->n && strchr("bBoOxX", l->s[k])) {
        int b = l->s[k] == 'b' || l->s[k] == 'B' ? 2 : l->s[k] == 'x' || l->s[k] == 'X' ? 16 : 8;
        size_t x = k + 1;
        while (x < l->n) {
            size_t d = x + (l->s[x] == '_');
            int v = d < l->n ? hex_value(l->s[d]) : -1;
            if (v < 0 || v >= b) break;
            x = d + 1;
        }
        if (x > k + 1) {
            *base = b;
            return x;
        }
    }
    while (k < l->n) {
        size_t d = k + (l->s[k] == '_');
        if (d >= l->n || !is_digit(l->s[d]) || (l->s[at] == '0' && l->s[d] != '0')) break;
        k = d + 1;
    }
    return k;
}

static bool lex_number(lexer *l) {
    char text[512];
    size_t end = float_end(l, l->at), size = 0;
    int base = 0;
    bool is_float = end > 0;
    if (!is_float) end = integer_end(l, l->at, &base);
    if (end - l->at >= sizeof text) return fail(l, "a number is too long");
    for (size_t i = l->at + (base == 10 || is_float ? 0 : 2); i < end; i++)
        if (l->s[i] != '_') text[size++] = l->s[i];
    text[size] = 0;
    cera_jval v;
    if (is_float) {
        cera_json number = {.kind = CERA_JSON_NUMBER, .text = {text, size}};
        double f;
        if (!cera_json_f64(&number, &f)) f = strtod(text, NULL);
        v = cera_jinja_float(f);
    } else {
        uint64_t value = 0;
        for (size_t i = 0; i < size; i++) {
            uint64_t digit = (uint64_t)hex_value(text[i]);
            if (value > (INT64_MAX - digit) / (uint64_t)base) return fail(l, "an integer has more than 64 bits");
            value = value * (uint64_t)base + digit;
        }
        v = cera_jinja_int((int64_t)value);
    }
    if (!emit(l, is_float ? T_FLOAT : T_INTEGER, v)) return false;
    advance(l, end);
    return true;
}

static const struct {
    const char *text;
    uint8_t type;
} operators[] = {{"//", T_FLOORDIV}, {"**", T_POW},     {"==", T_EQ},    {"!=", T_NE},    {">=", T_GTEQ},  {"<=", T_LTEQ},
                 {"+", T_ADD},       {"-", T_SUB},      {"/", T_DIV},    {"*", T_MUL},    {"%", T_MOD},    {"~", T_TILDE},
                 {"[", T_LBRACKET},  {"]", T_RBRACKET}, {"(", T_LPAREN}, {")", T_RPAREN}, {"{", T_LBRACE}, {"}", T_RBRACE},
                 {">", T_GT},        {"<", T_LT},       {"=", T_ASSIGN}, {".", T_DOT},    {":", T_COLON},  {"|", T_PIPE},
                 {",", T_COMMA},     {";", T_SEMICOLON}};

const char *cera_jinja_token_text(uint8_t type) {
    static const char *const names[] = {"end of template",
                                        "template data / text",
                                        "begin of statement block",
                                        "end of statement block",
                                        "begin of print statement",
                                        "end of print statement",
                                        "name",
                                        "string",
                                        "integer",
                                        "float"};
    if (type < sizeof names / sizeof names[0]) return names[type];
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].type == type) return operators[i].text;
    return "?";
}

static bool lex_operator(lexer *l, uint8_t *stack, uint32_t *depth) {
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        uint8_t type = operators[i].type;
        if (!has(l, l->at, operators[i].text)) continue;
        if (type == T_LBRACE || type == T_LPAREN || type == T_LBRACKET) {
            if (*depth == MAX_BALANCE) return fail(l, "brackets are nested too deep");
            stack[(*depth)++] = (uint8_t)(type + 1);
        } else if (type == T_RBRACE || type == T_RPAREN || type == T_RBRACKET) {
            if (*depth == 0 || stack[--*depth] != type) return fail(l, "a bracket closes what was not opened");
        }
        if (!emit(l, type, (cera_jval){0})) return false;
        advance(l, l->at + strlen(operators[i].text));
        return true;
    }
    char message[64] = "unexpected character";
    if ((unsigned char)l->s[l->at] > 32 && (unsigned char)l->s[l->at] < 127) {
        strcpy(message, "unexpected char '?'");
        message[17] = l->s[l->at];
    }
    return fail(l, message);
}

static bool lex_name(lexer *l) {
    size_t end = l->at;
    while (end < l->n && is_word(l->s[end])) end++;
    cera_jval v;
    if (!const_text(l, l->s + l->at, end - l->at, &v) || !keep_name(l, &v) || !emit(l, T_NAME, v)) return false;
    advance(l, end);
    return true;
}

/* Inside {{ }} or {% %}, up to and with the end. */
static bool lex_tag(lexer *l, bool is_block) {
    uint8_t stack[MAX_BALANCE];
    uint32_t depth = 0;
    while (l->at < l->n) {
        size_t end = depth ? 0 : tag_end(l, l->at, is_block ? "%}" : "}}", is_block);
        if (end) {
            if (!emit(l, is_block ? T_BLOCK_END : T_VAR_END, (cera_jval){0})) return false;
            advance(l, end);
            return true;
        }
        char c = l->s[l->at];
        size_t space = skip_space(l, l->at);
        if (space > l->at) {
            advance(l, space);
        } else if (is_digit(c)) {
            if (!lex_number(l)) return false;
        } else if (c == '"' || c == '\'') {
            if (!lex_string(l)) return false;
        } else if (is_word(c)) {
            if (!lex_name(l)) return false;
        } else if (!lex_operator(l, stack, &depth)) {
            return false;
        }
    }
    return true; /* the parser reports the missing end */
}

static bool lex_tag_at(lexer *l, size_t from, size_t at) {
    size_t raw = raw_begin(l, at);
    char kind = l->s[at + 1], sign = at + 2 < l->n ? l->s[at + 2] : 0;
    if (sign != '-' && sign != '+') sign = 0;
    if (!emit_data(l, from, at, sign, kind == '{')) return false;
    l->at = at;
    if (raw) {
        advance(l, raw);
        return lex_raw(l);
    }
    if (kind != '#' && !emit(l, kind == '{' ? T_VAR_BEGIN : T_BLOCK_BEGIN, (cera_jval){0})) return false;
    advance(l, at + 2 + (sign != 0));
    return kind == '#' ? lex_comment(l) : lex_tag(l, kind == '%');
}

static bool lex_all(lexer *l) {
    while (l->at < l->n) {
        size_t from = l->at, at = from;
        while (at + 1 < l->n && !(l->s[at] == '{' && (l->s[at + 1] == '{' || l->s[at + 1] == '%' || l->s[at + 1] == '#'))) at++;
        if (at + 1 >= l->n) {
            if (!emit_data(l, from, l->n, '+', true)) return false;
            l->at = l->n;
        } else if (!lex_tag_at(l, from, at)) {
            return false;
        }
    }
    return emit(l, T_EOF, (cera_jval){0});
}

/* \r\n and \r become \n; one newline at the end goes. */
static bool normalise(cera_jinja *t) {
    char *text = cera_jinja_alloc(&t->mem, t->size + 1, 1);
    if (!text) return false;
    size_t n = 0;
    for (size_t i = 0; i < t->size; i++) {
        if (t->text[i] == '\r') {
            text[n++] = '\n';
            if (i + 1 < t->size && t->text[i + 1] == '\n') i++;
        } else {
            text[n++] = t->text[i];
        }
    }
    if (n && text[n - 1] == '\n') n--;
    text[n] = 0;
    t->text = text;
    t->size = n;
    return true;
}

cera_status cera_jinja_lex(cera_jinja *t, cera_jtokens *out, cera_error *e) {
    if (!normalise(t)) return cera_fail(e, CERA_ERR_MEMORY, "template: out of memory");
    lexer l = {.t = t, .out = out, .e = e, .s = t->text, .n = t->size, .line = 1, .line_starting = true};
    return lex_all(&l) ? CERA_OK : l.status;
}
