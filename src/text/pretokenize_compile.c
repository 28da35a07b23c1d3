/* pretokenize_compile.c: from a regex's text to a stage (pretokenize_int.h): parser, classes, and the sets of first characters
 * that let the matcher skip alternatives. Owns the syntax; the matcher owns the meaning. Every limit is an error that names the
 * byte. */
#include "text/pretokenize_int.h"

#include <assert.h>
#include <string.h>
#include "base/arena.h"
#include "base/utf8.h"
#include "text/unicode.h"

/* The pattern as a tree, before continuations are known. Children are linked by index; 0 is "none". */
typedef enum tree_kind { TREE_SEQUENCE, TREE_ALTERNATION, TREE_CLASS, TREE_GROUP, TREE_LOOK, TREE_END } tree_kind;

typedef struct tree {
    tree_kind kind;
    uint16_t min, max;
    uint16_t child, sibling;
    uint8_t cls;
    bool possessive, negative;
} tree;

enum { MAX_TREE = 1024 };

typedef struct parser {
    const char *pattern, *at, *end;
    pretok_stage *s;
    cera_error *e;
    uint16_t n_trees;
    bool ignore_case;
    tree trees[MAX_TREE];
} parser;

static cera_status refuse(parser *p, const char *what) {
    return cera_fail(p->e, CERA_ERR_UNSUPPORTED, "pre-tokenizer regex: %s at byte %zu of \"%.200s\"", what,
                     (size_t)(p->at - p->pattern), p->pattern);
}

static cera_status new_tree(parser *p, tree_kind kind, uint16_t *out) {
    if (p->n_trees == MAX_TREE) return refuse(p, "too many parts");
    *out = p->n_trees++;
    p->trees[*out] = (tree){.kind = kind, .min = 1, .max = 1};
    return CERA_OK;
}

/* ---- classes ---------------------------------------------------------------------------------------------------- */

static cera_status add_range(parser *p, pretok_class *c, uint32_t low, uint32_t high) {
    pretok_stage *s = p->s;
    if (low > high) return refuse(p, "range in the wrong order");
    if (s->n_ranges == PRETOK_MAX_RANGES) return refuse(p, "too many ranges");
    assert(c->n_ranges == 0 || c->range + c->n_ranges == s->n_ranges);
    if (c->n_ranges == 0) c->range = s->n_ranges;
    s->ranges[s->n_ranges][0] = low;
    s->ranges[s->n_ranges++][1] = high;
    c->n_ranges++;
    if (high > c->range_max) c->range_max = high;
    return CERA_OK;
}

/* A single character. Under (?i) an ASCII letter also stands for its other case, and s and k for the long s and the Kelvin
 * sign, which Unicode folds to them. */
static cera_status add_code(parser *p, pretok_class *c, uint32_t code) {
    CERA_TRY(add_range(p, c, code, code));
    uint32_t lower = code | 32;
    if (!p->ignore_case || lower < 'a' || lower > 'z' || code > 127) return CERA_OK;
    CERA_TRY(add_range(p, c, code ^ 32, code ^ 32));
    if (lower == 's') return add_range(p, c, 0x17f, 0x17f);
    if (lower == 'k') return add_range(p, c, 0x212a, 0x212a);
    return CERA_OK;
}

static cera_status add_white_space(parser *p, pretok_class *c) {
    c->categories |= CERA_CATS_Z;
    CERA_TRY(add_range(p, c, 9, 13));
    return add_range(p, c, 0x85, 0x85);
}

static cera_status property_mask(parser *p, const char *name, size_t n, uint32_t *mask) {
    static const char names[] = "CnCcCfCoCsLlLmLoLtLuMcMeMnNdNlNoPcPdPePfPiPoPsScSkSmSoZlZpZs";
    static const struct {
        char name;
        uint32_t mask;
    } groups[] = {{'C', CERA_CATS_C}, {'L', CERA_CATS_L}, {'M', CERA_CATS_M}, {'N', CERA_CATS_N},
                  {'P', CERA_CATS_P}, {'S', CERA_CATS_S}, {'Z', CERA_CATS_Z}};
    for (size_t i = 0; n == 1 && i < sizeof groups / sizeof *groups; i++) {
        if (groups[i].name == name[0]) {
            *mask = groups[i].mask;
            return CERA_OK;
        }
    }
    for (unsigned i = 0; n == 2 && i < CERA_CAT_COUNT; i++) {
        if (memcmp(names + 2 * i, name, 2) == 0) {
            *mask = 1u << i;
            return CERA_OK;
        }
    }
    return refuse(p, "unknown property");
}

/* After \p or \P, at the brace. */
static cera_status parse_property(parser *p, pretok_class *c, bool inverse) {
    const char *name = p->at + 1,
               *close = p->at < p->end && *p->at == '{' ? memchr(p->at, '}', (size_t)(p->end - p->at)) : NULL;
    if (!close) return refuse(p, "\\p without {name}");
    size_t n = (size_t)(close - name);
    if (n == 3 && memcmp(name, "Han", 3) == 0) {
        if (inverse) return refuse(p, "\\P{Han}");
        c->han = true;
    } else {
        uint32_t mask = 0;
        CERA_TRY(property_mask(p, name, n, &mask));
        c->categories |= inverse ? ~mask & ((1u << CERA_CAT_COUNT) - 1) : mask;
    }
    p->at = close + 1;
    return CERA_OK;
}

/* A code point written as itself; the pattern is valid UTF-8 (checked at the start). */
static uint32_t take_code(parser *p) {
    uint32_t code = 0;
    p->at += cera_utf8_decode(p->at, (size_t)(p->end - p->at), &code);
    return code;
}

/* After a backslash. Sets *single when the escape is one code point (which may begin a range), else adds to the class. */
static cera_status parse_escape(parser *p, pretok_class *c, bool *single, uint32_t *code) {
    if (p->at == p->end) return refuse(p, "backslash at the end");
    *single = true;
    char x = *p->at;
    switch (x) {
    case 'n': *code = '\n'; break;
    case 'r': *code = '\r'; break;
    case 't': *code = '\t'; break;
    case 'f': *code = '\f'; break;
    case 'v': *code = '\v'; break;
    case 's':
    case 'd':
    case 'p':
    case 'P':
        p->at++;
        *single = false;
        if (x == 's') return add_white_space(p, c);
        if (x == 'd')
            c->categories |= 1u << CERA_CAT_ND;
        else
            return parse_property(p, c, x == 'P');
        return CERA_OK;
    default:
        if ((x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9')) return refuse(p, "unsupported escape");
        *code = take_code(p);
        return CERA_OK;
    }
    p->at++;
    return CERA_OK;
}

static cera_status intern_class(parser *p, const pretok_class *c, uint8_t *out) {
    pretok_stage *s = p->s;
    for (uint16_t k = 0; k < s->n_classes; k++) {
        const pretok_class *o = &s->classes[k];
        if (o->categories == c->categories && o->n_ranges == c->n_ranges && o->minus == c->minus && o->han == c->han &&
            o->negated == c->negated &&
            memcmp(s->ranges[o->range], s->ranges[c->range], c->n_ranges * sizeof *s->ranges) == 0) {
            *out = (uint8_t)k;
            return CERA_OK;
        }
    }
    if (s->n_classes == PRETOK_MAX_CLASSES) return refuse(p, "too many classes");
    *out = (uint8_t)s->n_classes;
    s->classes[s->n_classes++] = *c;
    return CERA_OK;
}

/* One member of a class at p->at: an escape, a character or a range. */
static cera_status parse_class_item(parser *p, pretok_class *c) {
    uint32_t low = 0, high = 0;
    bool single = true;
    if (*p->at == '[') return refuse(p, "a class inside a class");
    if (*p->at == '\\') {
        p->at++;
        CERA_TRY(parse_escape(p, c, &single, &low));
        if (!single) return CERA_OK;
    } else {
        low = take_code(p);
    }
    if (p->end - p->at < 2 || p->at[0] != '-' || p->at[1] == ']') return add_code(p, c, low);
    p->at++;
    if (*p->at == '\\') {
        p->at++;
        CERA_TRY(parse_escape(p, c, &single, &high));
        if (!single) return refuse(p, "a range that ends in a set");
    } else {
        high = take_code(p);
    }
    if (p->ignore_case) return refuse(p, "a range under (?i)");
    return add_range(p, c, low, high);
}

/* After the opening bracket. The part after && must be a negated class: [a&&[^b]] is a without b. */
static cera_status parse_class(parser *p, bool allow_minus, uint8_t *out) {
    pretok_class c = {.minus = -1};
    if (p->at < p->end && *p->at == '^') {
        c.negated = true;
        p->at++;
    }
    for (bool first = true;; first = false) {
        if (p->at == p->end) return refuse(p, "class without ]");
        if (*p->at == ']' && !first) break;
        if (p->end - p->at >= 4 && memcmp(p->at, "&&[^", 4) == 0 && allow_minus) {
            uint8_t minus;
            p->at += 4;
            CERA_TRY(parse_class(p, false, &minus));
            c.minus = minus;
            continue;
        }
        if (c.minus >= 0) return refuse(p, "members after &&");
        CERA_TRY(parse_class_item(p, &c));
    }
    p->at++;
    return intern_class(p, &c, out);
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static cera_status parse_alternation(parser *p, unsigned depth, uint16_t *out);

static bool take(parser *p, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0) return false;
    p->at += n;
    return true;
}

/* After the opening parenthesis. */
static cera_status parse_group(parser *p, unsigned depth, uint16_t *out) {
    if (depth == PRETOK_MAX_DEPTH) return refuse(p, "groups nested too deep");
    bool ignore_case = p->ignore_case, look = false, negative = false;
    if (take(p, "?i:"))
        p->ignore_case = true;
    else if (take(p, "?="))
        look = true;
    else if (take(p, "?!"))
        look = negative = true;
    else if (!take(p, "?:") && p->at < p->end && *p->at == '?')
        return refuse(p, "unsupported group");
    CERA_TRY(new_tree(p, look ? TREE_LOOK : TREE_GROUP, out));
    p->trees[*out].negative = negative;
    uint16_t inner = 0;
    CERA_TRY(parse_alternation(p, depth + 1, &inner));
    p->trees[*out].child = inner;
    if (!take(p, ")")) return refuse(p, "group without )");
    p->ignore_case = ignore_case;
    return CERA_OK;
}

static cera_status parse_atom(parser *p, unsigned depth, uint16_t *out) {
    pretok_class c = {.minus = -1};
    bool single = true;
    uint32_t code = 0;
    if (take(p, "(")) return parse_group(p, depth, out);
    if (take(p, "$")) return new_tree(p, TREE_END, out);
    CERA_TRY(new_tree(p, TREE_CLASS, out));
    uint8_t cls = 0;
    if (take(p, "[")) {
        CERA_TRY(parse_class(p, true, &cls));
    } else {
        if (strchr("*+?{^)", *p->at)) return refuse(p, "unexpected character");
        if (take(p, ".")) {
            c.negated = true;
            code = '\n';
        } else if (take(p, "\\S")) {
            c.negated = true;
            single = false;
            CERA_TRY(add_white_space(p, &c));
        } else if (take(p, "\\")) {
            CERA_TRY(parse_escape(p, &c, &single, &code));
        } else {
            code = take_code(p);
        }
        if (single) CERA_TRY(add_code(p, &c, code));
        CERA_TRY(intern_class(p, &c, &cls));
    }
    p->trees[*out].cls = cls;
    return CERA_OK;
}

static bool take_number(parser *p, unsigned *out) {
    const char *start = p->at;
    for (*out = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9' && *out < 10000; p->at++)
        *out = *out * 10 + (unsigned)(*p->at - '0');
    return p->at > start && *out < 10000;
}

static cera_status parse_quantifier(parser *p, tree *t) {
    unsigned min = 1, max = 1;
    if (take(p, "?"))
        min = 0;
    else if (take(p, "*"))
        min = 0, max = PRETOK_MANY;
    else if (take(p, "+"))
        max = PRETOK_MANY;
    else if (take(p, "{")) {
        if (!take_number(p, &min)) return refuse(p, "bad repetition");
        max = min;
        if (take(p, ",") && !take_number(p, &max)) max = PRETOK_MANY;
        if (!take(p, "}") || max < min || max == 0) return refuse(p, "bad repetition");
    } else {
        return CERA_OK;
    }
    if (t->kind != TREE_CLASS && t->kind != TREE_GROUP) return refuse(p, "repetition of what has no width");
    if (take(p, "?")) return refuse(p, "lazy repetition");
    if (take(p, "+")) t->possessive = true;
    t->min = (uint16_t)min;
    t->max = (uint16_t)max;
    return CERA_OK;
}

static cera_status parse_sequence(parser *p, unsigned depth, uint16_t *out) {
    CERA_TRY(new_tree(p, TREE_SEQUENCE, out));
    uint16_t last = 0;
    while (p->at < p->end && *p->at != '|' && *p->at != ')') {
        uint16_t item = 0;
        CERA_TRY(parse_atom(p, depth, &item));
        CERA_TRY(parse_quantifier(p, &p->trees[item]));
        if (last)
            p->trees[last].sibling = item;
        else
            p->trees[*out].child = item;
        last = item;
    }
    return CERA_OK;
}

static cera_status parse_alternation(parser *p, unsigned depth, uint16_t *out) {
    CERA_TRY(new_tree(p, TREE_ALTERNATION, out));
    uint16_t last = 0;
    do {
        uint16_t sequence = 0;
        CERA_TRY(parse_sequence(p, depth, &sequence));
        if (last)
            p->trees[last].sibling = sequence;
        else
            p->trees[*out].child = sequence;
        last = sequence;
    } while (take(p, "|"));
    return CERA_OK;
}

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

static cera_status new_node(parser *p, pretok_op op, uint16_t next, uint16_t *out) {
    pretok_stage *s = p->s;
    if (s->n_nodes == PRETOK_MAX_NODES) return refuse(p, "too many parts");
    *out = s->n_nodes++;
    s->nodes[*out] = (pretok_node){.op = (uint8_t)op, .next = next};
    return CERA_OK;
}

static cera_status build(parser *p, uint16_t t, uint16_t next, uint16_t *out);

/* A sequence is built from its last item to its first, so that each knows what follows it. Recursion is over siblings: bounded.
 */
static cera_status build_items(parser *p, uint16_t item, uint16_t next, uint16_t *out) {
    *out = next;
    if (item == 0) return CERA_OK;
    uint16_t rest = 0;
    CERA_TRY(build_items(p, p->trees[item].sibling, next, &rest));
    return build(p, item, rest, out);
}

static cera_status add_alt(parser *p, uint16_t node) {
    if (p->s->n_alts == PRETOK_MAX_ALTS) return refuse(p, "too many alternatives");
    p->s->alts[p->s->n_alts++] = node;
    return CERA_OK;
}

/* Alternatives of one node lie side by side, so all are built before the first is listed. */
static cera_status build_alternation(parser *p, uint16_t t, bool optional, uint16_t next, uint16_t *out) {
    uint16_t built[PRETOK_MAX_TOP], n = 0;
    for (uint16_t a = p->trees[t].child; a; a = p->trees[a].sibling) {
        if (n == PRETOK_MAX_TOP) return refuse(p, "too many alternatives");
        CERA_TRY(build_items(p, p->trees[a].child, next, &built[n++]));
    }
    if (n == 1 && !optional) {
        *out = built[0];
        return CERA_OK;
    }
    CERA_TRY(new_node(p, PRETOK_ALT, next, out));
    p->s->nodes[*out].body = p->s->n_alts;
    p->s->nodes[*out].n_alts = (uint16_t)(n + optional);
    for (uint16_t i = 0; i < n; i++) CERA_TRY(add_alt(p, built[i]));
    return optional ? add_alt(p, next) : CERA_OK;
}

static cera_status build_group(parser *p, const tree *t, uint16_t next, uint16_t *out) {
    if (t->max == 1 && !t->possessive) return build_alternation(p, t->child, t->min == 0, next, out);
    if (next != 0 && !t->possessive) return refuse(p, "a repeated group before other parts");
    uint16_t body = 0;
    CERA_TRY(build_alternation(p, t->child, false, 0, &body));
    CERA_TRY(new_node(p, PRETOK_LOOP, next, out));
    p->s->nodes[*out].body = body;
    p->s->nodes[*out].min = t->min;
    p->s->nodes[*out].max = t->max;
    return CERA_OK;
}

static cera_status build(parser *p, uint16_t index, uint16_t next, uint16_t *out) {
    const tree *t = &p->trees[index];
    uint16_t body = 0;
    switch (t->kind) {
    case TREE_GROUP: return build_group(p, t, next, out);
    case TREE_END: return new_node(p, PRETOK_END, next, out);
    case TREE_LOOK:
        CERA_TRY(build_alternation(p, t->child, false, 0, &body));
        CERA_TRY(new_node(p, PRETOK_LOOK, next, out));
        p->s->nodes[*out].body = body;
        p->s->nodes[*out].negative = t->negative;
        return CERA_OK;
    default: break;
    }
    CERA_TRY(new_node(p, PRETOK_RUN, next, out));
    pretok_node *node = &p->s->nodes[*out];
    node->cls = t->cls;
    node->min = t->min;
    node->max = t->max;
    node->possessive = t->possessive;
    node->memo = t->max == PRETOK_MANY ? p->s->n_memos++ : 0;
    return CERA_OK;
}

/* ---- first characters ---------------------------------------------------------------------------------------------- */

/* Whether some character above ASCII of this category may be in the class; errs towards true. */
static bool class_may(const pretok_stage *s, unsigned k, unsigned category) {
    const pretok_class *c = &s->classes[k];
    bool named = c->categories >> category & 1;
    return c->negated ? !named : named || c->han || c->range_max > 127;
}

typedef struct probe {
    bool ascii;
    unsigned value; /* the character, or the category */
    unsigned *left; /* looks left: chains of optional groups would take exponentially many */
} probe;

static bool may_begin(const pretok_stage *s, uint16_t index, probe x) {
    const pretok_node *n = &s->nodes[index];
    if (*x.left == 0) return true;
    --*x.left;
    switch ((pretok_op)n->op) {
    case PRETOK_RUN:
        if (x.ascii ? (s->ascii[x.value] >> n->cls & 1) != 0 : class_may(s, n->cls, x.value)) return true;
        return n->min == 0 && may_begin(s, n->next, x);
    case PRETOK_ALT:
        for (unsigned i = 0; i < n->n_alts; i++) {
            if (may_begin(s, s->alts[n->body + i], x)) return true;
        }
        return false;
    case PRETOK_LOOP: return may_begin(s, n->body, x) || (n->min == 0 && may_begin(s, n->next, x));
    case PRETOK_LOOK: return may_begin(s, n->next, x);
    default: return true;
    }
}

static void fill_first(pretok_stage *s) {
    for (unsigned c = 0; c < 128; c++) {
        for (unsigned k = 0; k < s->n_classes; k++)
            s->ascii[c] |= (uint64_t)cera_pretok_has(s, k, c, cera_unicode_properties(c)) << k;
    }
    for (unsigned a = 0; a < s->n_top; a++) {
        unsigned left = 65536;
        for (unsigned c = 0; c < 128; c++) s->first_ascii[c] |= (uint32_t)may_begin(s, s->top[a], (probe){true, c, &left}) << a;
        for (unsigned c = 0; c < CERA_CAT_COUNT; c++)
            s->first_category[c] |= (uint32_t)may_begin(s, s->top[a], (probe){false, c, &left}) << a;
    }
}

static cera_status compile_regex(parser *p) {
    pretok_stage *s = p->s;
    uint16_t none = 0, root = 0, accept = 0;
    CERA_TRY(new_tree(p, TREE_SEQUENCE, &none)); /* index 0 means "none" */
    CERA_TRY(parse_alternation(p, 0, &root));
    if (p->at != p->end) return refuse(p, "unbalanced )");
    CERA_TRY(new_node(p, PRETOK_ACCEPT, 0, &accept));
    for (uint16_t a = p->trees[root].child; a; a = p->trees[a].sibling) {
        if (s->n_top == PRETOK_MAX_TOP) return refuse(p, "too many alternatives");
        CERA_TRY(build_items(p, p->trees[a].child, accept, &s->top[s->n_top++]));
    }
    fill_first(s);
    return CERA_OK;
}

cera_status cera_pretok_compile(const char *pattern, pretok_stage *s, cera_error *e) {
    static const struct {
        const char *pattern;
        pretok_kind kind;
    } special[] = {{"\\d{1,3}(?=(?:\\d{3})*\\b)", PRETOK_DIGITS_BOUNDARY},
                   {"(?=(\\d{3})+(?!\\d))", PRETOK_DIGITS_SPLIT},
                   {"\\p{AFMoE_digits}", PRETOK_NUMBERS_RIGHT}};
    size_t n = strlen(pattern);
    if (n > CERA_PRETOK_MAX_PATTERN || !cera_utf8_valid(pattern, n)) {
        return cera_fail(e, CERA_ERR_FORMAT, "pre-tokenizer regex: longer than %d bytes or not UTF-8", CERA_PRETOK_MAX_PATTERN);
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (strcmp(pattern, special[i].pattern) == 0) {
            s->kind = special[i].kind;
            return CERA_OK;
        }
    }
    parser *p = cera_alloc(1, sizeof *p);
    if (!p) return cera_fail(e, CERA_ERR_MEMORY, "pre-tokenizer regex: out of memory");
    p->pattern = p->at = pattern;
    p->end = pattern + n;
    p->s = s;
    p->e = e;
    cera_status status = compile_regex(p);
    cera_free(p);
    return status;
}
