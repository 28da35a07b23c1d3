/* gbnf_parse.c: GBNF text to a syntax tree: rules, alternatives, repetition, character classes and token literals.
 * Does not own: the meaning of rules (gbnf.c). */
#include "sample/gbnf_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/utf8.h"

enum { MAX_DEPTH = 200, MAX_ITEMS = 2000000, MAX_RULES = 100000 };

static uint32_t line_of(const cera_gbnf_parser *p) {
    uint32_t line = 1;
    for (size_t i = 0; i < p->at && i < p->n; i++) line += p->text[i] == '\n';
    return line;
}

void cera_gbnf_fail(cera_gbnf_parser *p, cera_status s, const char *what, const char *name, size_t n) {
    if (p->status) return;
    p->status = cera_fail(p->e, s, "grammar, line %u: %s%s%.*s", line_of(p), what, n ? " " : "", (int)(n < 100 ? n : 100),
                          n ? name : "");
}
static void *fail(cera_gbnf_parser *p, const char *what) { return cera_gbnf_fail(p, CERA_ERR_FORMAT, what, NULL, 0), NULL; }

static char peek(const cera_gbnf_parser *p) { return p->at < p->n ? p->text[p->at] : 0; }
static bool ok(const cera_gbnf_parser *p) { return !p->status && !p->a->failed; }

static uint32_t add(cera_gbnf_parser *p, cera_gbnf_item i) {
    if (p->n_items >= MAX_ITEMS) return cera_gbnf_fail(p, CERA_ERR_LIMIT, "the grammar is too long", NULL, 0), 0;
    if (!cera_automaton_grow(p->a, (void **)&p->items, p->n_items, 2, &p->cap_items, sizeof *p->items)) return 0;
    if (!p->n_items) p->n_items = 1;
    p->items[p->n_items] = i;
    return p->n_items++;
}

uint32_t cera_gbnf_find(cera_gbnf_parser *p, const char *name, size_t n, bool create) {
    uint32_t *bucket = &p->buckets[cera_hash64(name, n, 0) & 1023];
    for (uint32_t i = *bucket; i; i = p->rules[i - 1].next)
        if (p->rules[i - 1].name_size == n && !memcmp(p->rules[i - 1].name, name, n)) return i - 1;
    if (!create) return UINT32_MAX;
    if (p->n_rules >= MAX_RULES) return cera_gbnf_fail(p, CERA_ERR_LIMIT, "too many rules", NULL, 0), UINT32_MAX;
    if (!cera_automaton_grow(p->a, (void **)&p->rules, p->n_rules, 1, &p->cap_rules, sizeof *p->rules)) return UINT32_MAX;
    p->rules[p->n_rules] = (cera_gbnf_rule){.name = name, .name_size = (uint32_t)n, .line = line_of(p), .next = *bucket};
    *bucket = ++p->n_rules;
    return p->n_rules - 1;
}

/* White space and comments; line ends only where a rule may go on. */
static void skip_space(cera_gbnf_parser *p, bool lines) {
    for (; p->at < p->n; p->at++) {
        char c = p->text[p->at];
        if (c == '#') {
            while (p->at + 1 < p->n && p->text[p->at + 1] != '\n' && p->text[p->at + 1] != '\r') p->at++;
        } else if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r')))
            return;
    }
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t word(cera_gbnf_parser *p) {
    size_t start = p->at;
    while (is_word(peek(p))) p->at++;
    return p->at - start;
}

static uint32_t hex(cera_gbnf_parser *p, int digits) {
    uint32_t v = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        char c = peek(p), l = (char)(c | 0x20);
        int d = c >= '0' && c <= '9' ? c - '0' : l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
        if (d < 0) return fail(p, "hexadecimal digits expected"), 0;
        v = v << 4 | (uint32_t)d;
    }
    if (v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF)) return fail(p, "an escape is no character"), 0;
    return v;
}

/* One character of a string or class, escapes resolved. */
static uint32_t character(cera_gbnf_parser *p) {
    uint32_t code = 0;
    if (p->at >= p->n) return fail(p, "unexpected end"), 0;
    if (peek(p) != '\\') {
        int size = cera_utf8_decode(p->text + p->at, p->n - p->at, &code);
        if (!size) return fail(p, "invalid UTF-8"), 0;
        p->at += (size_t)size;
        return code;
    }
    char c = p->at + 1 < p->n ? p->text[p->at + 1] : 0;
    p->at += 2;
    switch (c) {
    case 'x': return hex(p, 2);
    case 'u': return hex(p, 4);
    case 'U': return hex(p, 8);
    case 't': return '\t';
    case 'r': return '\r';
    case 'n': return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-': return (uint32_t)c;
    default: return fail(p, "unknown escape"), 0;
    }
}

static uint32_t parse_string(cera_gbnf_parser *p) {
    char *bytes = NULL;
    uint32_t n = 0, capacity = 0;
    p->at++;
    while (ok(p) && p->at < p->n && peek(p) != '"') {
        char out[4];
        int size = cera_utf8_encode(character(p), out);
        if (!ok(p) || !cera_automaton_grow(p->a, (void **)&bytes, n, 4, &capacity, 1)) break;
        memcpy(bytes + n, out, (size_t)size);
        n += (uint32_t)size;
    }
    if (ok(p) && p->at >= p->n) fail(p, "a string is not closed");
    p->at++;
    cera_expr x = ok(p) ? cera_expr_raw(p->a, bytes, n) : CERA_EXPR_EMPTY;
    free(bytes);
    return ok(p) ? add(p, (cera_gbnf_item){.kind = CERA_G_EXPR, .value = x}) : 0;
}

static uint32_t class_item(cera_gbnf_parser *p, cera_class *c) {
    cera_expr x = ok(p) ? cera_expr_class(p->a, c) : CERA_EXPR_EMPTY;
    cera_class_deinit(c);
    return ok(p) ? add(p, (cera_gbnf_item){.kind = CERA_G_EXPR, .value = x}) : 0;
}

static uint32_t parse_class(cera_gbnf_parser *p) {
    cera_class c = {0};
    p->at++;
    bool negated = peek(p) == '^';
    if (negated) p->at++;
    while (ok(p) && p->at < p->n && peek(p) != ']') {
        uint32_t lo = character(p), hi = lo;
        if (peek(p) == '-' && p->at + 1 < p->n && p->text[p->at + 1] != ']') p->at++, hi = character(p);
        if (lo > hi) fail(p, "a character range is out of order");
        cera_class_add(&c, lo, hi);
    }
    if (ok(p) && p->at >= p->n) fail(p, "a character class is not closed");
    p->at++;
    if (negated) cera_class_negate(&c);
    return class_item(p, &c);
}

/* <[1234]>, <text>, and ! before either. */
static uint32_t parse_token(cera_gbnf_parser *p) {
    bool negated = peek(p) == '!';
    if (negated) p->at++;
    if (peek(p) != '<') return fail(p, "'<' expected after '!'"), 0;
    const char *start = p->text + p->at, *end = memchr(start, '>', p->n - p->at);
    if (!end) return fail(p, "a token is not closed"), 0;
    int64_t id = 0;
    if (start[1] == '[') {
        const char *d = start + 2;
        for (; d < end && *d >= '0' && *d <= '9' && id <= INT32_MAX; d++) id = id * 10 + (*d - '0');
        if (d == start + 2 || *d != ']' || d + 1 != end || id > INT32_MAX) return fail(p, "a token id is written <[1234]>"), 0;
    } else {
        id = p->token ? p->token(p->context, start, (size_t)(end + 1 - start)) : -1;
        if (id < 0)
            return cera_gbnf_fail(p, CERA_ERR_NOT_FOUND,
                                  p->token ? "the vocabulary has no token" : "no vocabulary to look up token", start,
                                  (size_t)(end + 1 - start)),
                   0;
    }
    p->at += (size_t)(end + 1 - start);
    return add(p, (cera_gbnf_item){.kind = CERA_G_EXPR, .value = cera_expr_token(p->a, (uint32_t)id, negated)});
}

static uint32_t parse_alternatives(cera_gbnf_parser *p, bool nested);

static uint32_t parse_atom(cera_gbnf_parser *p) {
    char c = peek(p);
    if (c == '"') return parse_string(p);
    if (c == '[') return parse_class(p);
    if (c == '<' || c == '!') return parse_token(p);
    if (c == '.') return p->at++, add(p, (cera_gbnf_item){.kind = CERA_G_EXPR, .value = cera_expr_any_char(p->a)});
    if (c == '(') {
        p->at++;
        if (++p->depth > MAX_DEPTH) return cera_gbnf_fail(p, CERA_ERR_LIMIT, "nesting too deep", NULL, 0), 0;
        uint32_t x = parse_alternatives(p, true);
        p->depth--;
        if (ok(p) && peek(p) != ')') fail(p, "')' expected");
        p->at++;
        return x;
    }
    const char *name = p->text + p->at;
    size_t size = word(p);
    uint32_t rule = cera_gbnf_find(p, name, size, true);
    return rule == UINT32_MAX ? 0 : add(p, (cera_gbnf_item){.kind = CERA_G_REF, .value = rule});
}

static bool number(cera_gbnf_parser *p, uint32_t *out) {
    uint64_t v = 0;
    size_t start = p->at;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++)
        if (v < UINT32_MAX) v = v * 10 + (uint64_t)(peek(p) - '0');
    if (v >= UINT32_MAX) return fail(p, "repetition above 2^32"), false;
    *out = (uint32_t)v;
    return p->at > start;
}

static bool parse_bounds(cera_gbnf_parser *p, uint32_t *n, uint32_t *m) {
    p->at++;
    skip_space(p, true);
    bool low = number(p, n);
    if (!low) *n = 0;
    skip_space(p, true);
    *m = *n;
    if (peek(p) == ',') {
        p->at++;
        skip_space(p, true);
        if (!number(p, m)) *m = CERA_REP_INF;
        skip_space(p, true);
    } else if (!low)
        fail(p, "a number is expected after '{'");
    if (ok(p) && peek(p) != '}') fail(p, "'}' expected");
    if (ok(p) && *n > *m) fail(p, "repetition out of order");
    p->at++;
    return ok(p);
}

static uint32_t parse_repeated(cera_gbnf_parser *p, bool nested) {
    uint32_t x = parse_atom(p);
    for (int i = 0; ok(p); i++) {
        skip_space(p, nested);
        uint32_t n = 0, m = CERA_REP_INF;
        char c = peek(p);
        if (c == '+')
            n = 1;
        else if (c == '?')
            m = 1;
        else if (c == '{') {
            if (!parse_bounds(p, &n, &m)) return 0;
        } else if (c != '*')
            return x;
        if (c != '{') p->at++;
        if (i > MAX_DEPTH) return cera_gbnf_fail(p, CERA_ERR_LIMIT, "nesting too deep", NULL, 0), 0;
        x = add(p, (cera_gbnf_item){.kind = CERA_G_REP, .child = x, .n = n, .m = m});
    }
    return 0;
}

/* A list of links under one head item. */
static void append(cera_gbnf_parser *p, cera_gbnf_kind kind, uint32_t x, uint32_t *first, uint32_t *last) {
    uint32_t link = ok(p) ? add(p, (cera_gbnf_item){.kind = kind, .child = x}) : 0;
    if (!link) return;
    if (*last)
        p->items[*last].sibling = link;
    else
        *first = link;
    *last = link;
}

static uint32_t parse_sequence(cera_gbnf_parser *p, bool nested) {
    uint32_t first = 0, last = 0;
    while (ok(p)) {
        char c = peek(p);
        if (c != '"' && c != '[' && c != '<' && c != '!' && c != '.' && c != '(' && !is_word(c)) break;
        append(p, CERA_G_SEQ, parse_repeated(p, nested), &first, &last);
        skip_space(p, nested);
    }
    return ok(p) ? add(p, (cera_gbnf_item){.kind = CERA_G_SEQ, .sibling = first}) : 0;
}

static uint32_t parse_alternatives(cera_gbnf_parser *p, bool nested) {
    uint32_t first = 0, last = 0;
    skip_space(p, true);
    append(p, CERA_G_ALT, parse_sequence(p, nested), &first, &last);
    while (ok(p) && peek(p) == '|') {
        p->at++;
        skip_space(p, true);
        append(p, CERA_G_ALT, parse_sequence(p, nested), &first, &last);
    }
    return ok(p) ? add(p, (cera_gbnf_item){.kind = CERA_G_ALT, .sibling = first}) : 0;
}

static void parse_rule(cera_gbnf_parser *p) {
    const char *name = p->text + p->at;
    size_t size = word(p);
    if (!size) {
        fail(p, "a rule's name is expected");
        return;
    }
    skip_space(p, false);
    if (p->n - p->at < 3 || memcmp(p->text + p->at, "::=", 3)) {
        cera_gbnf_fail(p, CERA_ERR_FORMAT, "'::=' expected after", name, size);
        return;
    }
    p->at += 3;
    uint32_t rule = cera_gbnf_find(p, name, size, true);
    if (rule == UINT32_MAX) return;
    if (p->rules[rule].body) {
        cera_gbnf_fail(p, CERA_ERR_FORMAT, "a second definition of rule", name, size);
        return;
    }
    uint32_t body = parse_alternatives(p, false);
    if (!ok(p)) return;
    p->rules[rule].body = body;
    if (p->at < p->n && peek(p) != '\n' && peek(p) != '\r') fail(p, "the rule's end is expected");
}

cera_status cera_gbnf_parse(cera_gbnf_parser *p) {
    skip_space(p, true);
    if (p->at >= p->n) fail(p, "the grammar is empty");
    while (ok(p) && p->at < p->n) {
        parse_rule(p);
        skip_space(p, true);
    }
    if (!p->status && p->a->failed) p->status = cera_fail(p->e, p->a->failed, "grammar: %s", p->a->reason);
    return p->status;
}
