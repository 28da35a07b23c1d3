/* regex.c: parses a pattern to a small tree and turns it into an expression. Anchors and look-ahead depend on what follows, so
 * parts that hold them are compiled together with their continuation: `$` is "the continuation may be empty", (?=x) an
 * intersection with it. Does not own: classes and escapes (regex_class.c). */
#include "sample/regex_int.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_ITEMS = 100000 };

typedef enum item_kind { I_EXPR, I_SEQ, I_ALT, I_REP, I_BOL, I_EOL, I_LOOK } item_kind;
typedef struct item {
    item_kind kind;
    cera_expr expr;          /* I_EXPR */
    uint32_t child, sibling; /* 0: none */
    uint32_t n, m;           /* I_REP; I_LOOK: n is 1 when negative */
    bool anchors;            /* holds an anchor or a look-ahead */
} item;

typedef struct parser {
    cera_regex_in in;
    cera_automaton *a;
    item *items;
    uint32_t n_items, cap_items;
    int depth;
} parser;

static uint32_t add(parser *p, item i) {
    if (p->n_items >= MAX_ITEMS) return cera_regex_fail(&p->in, CERA_ERR_LIMIT, "too long"), 0;
    if (!cera_automaton_grow(p->a, (void **)&p->items, p->n_items, 2, &p->cap_items, sizeof *p->items)) return 0;
    if (!p->n_items) p->n_items = 1;
    p->items[p->n_items] = i;
    return p->n_items++;
}

static char peek(const parser *p) { return p->in.at < p->in.n ? p->in.text[p->in.at] : 0; }
static bool at_end(const parser *p) { return p->in.at >= p->in.n; }
static bool eat(parser *p, const char *word) {
    size_t n = strlen(word);
    if (p->in.n - p->in.at < n || memcmp(p->in.text + p->in.at, word, n)) return false;
    p->in.at += n;
    return true;
}

static uint32_t parse_alternatives(parser *p);

static uint32_t class_item(parser *p, cera_class *c) {
    cera_expr x = p->in.status ? CERA_EXPR_EMPTY : cera_expr_class(p->a, c);
    cera_class_deinit(c);
    return add(p, (item){.kind = I_EXPR, .expr = x});
}

/* After '('. */
static uint32_t parse_group(parser *p) {
    bool look = false, negative = false;
    if (eat(p, "?="))
        look = true;
    else if (eat(p, "?!"))
        look = negative = true;
    else if (eat(p, "?<=") || eat(p, "?<!"))
        return cera_regex_fail(&p->in, CERA_ERR_UNSUPPORTED, "look-behind cannot be enforced"), 0;
    else if (eat(p, "?<")) {
        while (!at_end(p) && peek(p) != '>') p->in.at++;
        if (!eat(p, ">")) return cera_regex_fail(&p->in, CERA_ERR_FORMAT, "group name is not closed"), 0;
    } else if (!eat(p, "?:") && peek(p) == '?')
        return cera_regex_fail(&p->in, CERA_ERR_UNSUPPORTED, "unknown kind of group"), 0;
    if (++p->depth > MAX_DEPTH) return cera_regex_fail(&p->in, CERA_ERR_LIMIT, "nested too deeply"), 0;
    uint32_t x = parse_alternatives(p);
    p->depth--;
    if (!eat(p, ")")) return cera_regex_fail(&p->in, CERA_ERR_FORMAT, "'(' is not closed"), 0;
    return look ? add(p, (item){.kind = I_LOOK, .child = x, .n = negative, .anchors = true}) : x;
}

static uint32_t parse_atom(parser *p) {
    cera_class c = {0};
    uint32_t single;
    char l = peek(p);
    if (l == '\\') {
        p->in.at++;
        cera_regex_escape(&p->in, &c, false, &single);
        return class_item(p, &c);
    }
    if (eat(p, "(")) return parse_group(p);
    if (eat(p, "[")) return cera_regex_class(&p->in, &c), class_item(p, &c);
    if (eat(p, ".")) return cera_regex_add_dot(&c), class_item(p, &c);
    if (eat(p, "^")) return add(p, (item){.kind = I_BOL, .anchors = true});
    if (eat(p, "$")) return add(p, (item){.kind = I_EOL, .anchors = true});
    if (l == '*' || l == '+' || l == '?') return cera_regex_fail(&p->in, CERA_ERR_FORMAT, "nothing to repeat"), 0;
    uint32_t code = cera_regex_code(&p->in);
    cera_class_add(&c, code, code);
    return class_item(p, &c);
}

/* {n}, {n,}, {n,m}; anything else leaves the brace to stand for itself. */
static bool parse_bounds(parser *p, uint32_t *n, uint32_t *m) {
    size_t back = p->in.at++;
    uint64_t v[2] = {0, 0};
    int given = 0;
    for (int i = 0; i < 2; i++) {
        size_t start = p->in.at;
        while (peek(p) >= '0' && peek(p) <= '9') {
            if (v[i] < UINT32_MAX) v[i] = v[i] * 10 + (uint64_t)(peek(p) - '0');
            p->in.at++;
        }
        if (p->in.at > start) given |= 1 << i;
        if (i == 0 && !eat(p, ",")) {
            v[1] = v[0];
            given |= 2;
            break;
        }
    }
    if (!(given & 1) || !eat(p, "}")) return p->in.at = back, false;
    if (v[0] >= CERA_REP_INF || ((given & 2) && v[1] >= CERA_REP_INF))
        return cera_regex_fail(&p->in, CERA_ERR_LIMIT, "repetition above 2^32"), false;
    if ((given & 2) && v[0] > v[1]) return cera_regex_fail(&p->in, CERA_ERR_FORMAT, "repetition out of order"), false;
    *n = (uint32_t)v[0];
    *m = given & 2 ? (uint32_t)v[1] : CERA_REP_INF;
    return true;
}

static uint32_t parse_repeated(parser *p) {
    uint32_t x = parse_atom(p), n, m;
    if (p->in.status || p->a->failed) return 0;
    if (eat(p, "*"))
        n = 0, m = CERA_REP_INF;
    else if (eat(p, "+"))
        n = 1, m = CERA_REP_INF;
    else if (eat(p, "?"))
        n = 0, m = 1;
    else if (peek(p) != '{' || !parse_bounds(p, &n, &m))
        return x;
    eat(p, "?"); /* lazy: the same language */
    char l = peek(p);
    if (l == '*' || l == '+' || l == '?') return cera_regex_fail(&p->in, CERA_ERR_FORMAT, "nothing to repeat"), 0;
    return add(p, (item){.kind = I_REP, .child = x, .n = n, .m = m, .anchors = p->items[x].anchors});
}

static uint32_t parse_sequence(parser *p) {
    uint32_t first = 0, last = 0;
    bool anchors = false;
    while (!at_end(p) && peek(p) != '|' && peek(p) != ')') {
        uint32_t x = parse_repeated(p);
        if (p->in.status || p->a->failed) return 0;
        /* An item stands in one list only: a group's tree is wrapped. */
        uint32_t link = add(p, (item){.kind = I_SEQ, .child = x, .anchors = p->items[x].anchors});
        if (!link) return 0;
        anchors = anchors || p->items[x].anchors;
        if (last)
            p->items[last].sibling = link;
        else
            first = link;
        last = link;
    }
    if (!first) return add(p, (item){.kind = I_EXPR, .expr = CERA_EXPR_EPS});
    return add(p, (item){.kind = I_SEQ, .child = 0, .sibling = first, .anchors = anchors});
}

/* I_SEQ as a whole: child 0, sibling = first link. A link: child = item, sibling = next link. */
static uint32_t parse_alternatives(parser *p) {
    uint32_t x = parse_sequence(p);
    if (p->in.status || p->a->failed || peek(p) != '|') return x;
    bool anchors = p->items[x].anchors;
    uint32_t first = add(p, (item){.kind = I_ALT, .child = x}), last = first;
    while (eat(p, "|")) {
        x = parse_sequence(p);
        if (p->in.status || p->a->failed) return 0;
        uint32_t link = add(p, (item){.kind = I_ALT, .child = x});
        if (!link) return 0;
        anchors = anchors || p->items[x].anchors;
        p->items[last].sibling = link;
        last = link;
    }
    return add(p, (item){.kind = I_ALT, .child = 0, .sibling = first, .anchors = anchors});
}

/* An item without anchors. */
static cera_expr plain(parser *p, uint32_t x) {
    item i = p->items[x];
    switch (i.kind) {
    case I_EXPR: return i.expr;
    case I_REP: return cera_expr_rep(p->a, plain(p, i.child), i.n, i.m);
    case I_ALT: {
        cera_expr r = CERA_EXPR_EMPTY;
        for (uint32_t l = i.sibling; l; l = p->items[l].sibling) r = cera_expr_or2(p->a, r, plain(p, p->items[l].child));
        return r;
    }
    default: {
        cera_expr list[64], r = CERA_EXPR_EPS; /* from the right, a piece at a time, so that long sequences stay linear */
        uint32_t l = i.sibling, n = 0;
        while (l) {
            for (n = 0; l && n < 63; l = p->items[l].sibling) list[n++] = plain(p, p->items[l].child);
            cera_expr tail = CERA_EXPR_EPS;
            while (n) tail = cera_expr_cat(p->a, list[--n], tail);
            r = cera_expr_cat(p->a, r, tail);
        }
        return r;
    }
    }
}

/* What follows an item: the rest of its sequence, then `next`; memo for "at the start of the text" and not. */
typedef struct cont {
    uint32_t link;
    struct cont *next;
    cera_expr final, memo[2];
    bool known[2];
} cont;

static cera_expr compile(parser *p, uint32_t x, bool start, cont *k);

static cera_expr follow(parser *p, cont *k, bool start) {
    if (!k->next) return k->final;
    if (k->known[start]) return k->memo[start];
    cera_expr r;
    if (!k->link)
        r = follow(p, k->next, start);
    else {
        cont rest = {.link = p->items[k->link].sibling, .next = k->next};
        r = compile(p, p->items[k->link].child, start, &rest);
    }
    k->known[start] = true;
    return k->memo[start] = r;
}

static cera_expr all_chars(parser *p, uint32_t from) {
    return cera_expr_rep(p->a, cera_expr_any_char(p->a), from, CERA_REP_INF);
}

static cera_expr compile_look(parser *p, item i, bool start, cont *k) {
    cont all = {.final = all_chars(p, 0)};
    cera_expr x = compile(p, i.child, start, &all);
    if (i.n) x = cera_expr_not(p->a, x);
    return cera_expr_and2(p->a, x, follow(p, k, start));
}

static cera_expr compile(parser *p, uint32_t x, bool start, cont *k) {
    item i = p->items[x];
    if (p->a->failed || p->in.status) return CERA_EXPR_EMPTY;
    if (!i.anchors) {
        cera_expr e = plain(p, x), r = cera_expr_cat(p->a, e, follow(p, k, false));
        return start && cera_expr_nullable(p->a, e) ? cera_expr_or2(p->a, r, follow(p, k, true)) : r;
    }
    switch (i.kind) {
    case I_BOL: return start ? follow(p, k, true) : CERA_EXPR_EMPTY;
    case I_EOL: return cera_expr_nullable(p->a, follow(p, k, start)) ? CERA_EXPR_EPS : CERA_EXPR_EMPTY;
    case I_LOOK: return compile_look(p, i, start, k);
    case I_REP: {
        if (i.m > 1)
            return cera_regex_fail(&p->in, CERA_ERR_UNSUPPORTED,
                                   "an anchor or look-ahead inside a repetition cannot be enforced"),
                   CERA_EXPR_EMPTY;
        cera_expr r = i.m ? compile(p, i.child, start, k) : CERA_EXPR_EMPTY;
        return i.n ? r : cera_expr_or2(p->a, r, follow(p, k, start));
    }
    case I_ALT: {
        cera_expr r = CERA_EXPR_EMPTY;
        for (uint32_t l = i.sibling; l; l = p->items[l].sibling)
            r = cera_expr_or2(p->a, r, compile(p, p->items[l].child, start, k));
        return r;
    }
    default: {
        cont rest = {.link = i.sibling, .next = k};
        return follow(p, &rest, start);
    }
    }
}

cera_status cera_regex_compile(cera_automaton *a, const char *text, size_t n, bool whole, cera_expr *out, cera_error *e) {
    parser p = {.in = {.text = text, .n = n, .e = e}, .a = a};
    uint32_t root = parse_alternatives(&p);
    if (!p.in.status && !a->failed && !at_end(&p)) cera_regex_fail(&p.in, CERA_ERR_FORMAT, "')' without '('");
    *out = CERA_EXPR_EMPTY;
    if (!p.in.status && !a->failed) {
        bool anchors = p.items[root].anchors;
        cont end = {.final = whole ? CERA_EXPR_EPS : all_chars(&p, 0)};
        if (whole || anchors) *out = compile(&p, root, true, &end);
        if (!whole && !anchors) *out = cera_expr_cat(a, all_chars(&p, 0), compile(&p, root, false, &end));
        if (!whole && anchors)
            *out = cera_expr_or2(a, *out, cera_expr_cat(a, all_chars(&p, 1), compile(&p, root, false, &end)));
    }
    free(p.items);
    if (p.in.status) return p.in.status;
    if (!a->failed && !cera_expr_tame(a, *out))
        return cera_fail(e, CERA_ERR_LIMIT, "pattern: its counted repetitions are too ambiguous to follow");
    if (a->undecided) return cera_fail(e, CERA_ERR_LIMIT, "pattern: it is too complex to decide whether anything matches");
    return a->failed ? cera_fail(e, a->failed, "pattern: %s", a->reason) : CERA_OK;
}
