/* jinja_expr.c: expressions of a template to a syntax tree, in jinja2's precedence. Owns expressions only; statements are
 * jinja_parse.c, the meaning of names jinja_scope.c. Depth is bounded, so hostile nesting is an error and not a stack overflow.
 */
#include <string.h>
#include "text/jinja_int.h"

static cera_jnode *parse_unary(cera_jparser *p, bool with_filter);

cera_jnode *cera_jinja_node(cera_jparser *p, uint8_t type, uint32_t line) {
    cera_jnode *n = cera_jinja_alloc(&p->t->mem, 1, sizeof *n);
    if (!n) {
        p->status = cera_fail(p->e, CERA_ERR_MEMORY, "template: out of memory");
        p->failed = true;
        return NULL;
    }
    n->type = type;
    n->line = line;
    n->height = 1;
    return n;
}

static bool raise_height(cera_jparser *p, cera_jnode *n, const cera_jnode *kid) {
    if (kid && kid->height >= n->height) n->height = (uint16_t)(kid->height + 1);
    if (n->height > CERA_JINJA_MAX_CHAIN) {
        cera_jinja_parse_fail(p, n->line, "an expression is nested too deep (limit %d)", CERA_JINJA_MAX_CHAIN);
        return false;
    }
    return true;
}

bool cera_jinja_add_kid(cera_jparser *p, cera_jnode *n, cera_jnode *kid) {
    if (!kid) return false;
    if ((n->n & (n->n - 1)) == 0) { /* room doubles at every power of two */
        cera_jnode **kids = cera_jinja_alloc(&p->t->mem, n->n ? 2 * (size_t)n->n : 1, sizeof *kids);
        if (!kids) {
            p->status = cera_fail(p->e, CERA_ERR_MEMORY, "template: out of memory");
            p->failed = true;
            return false;
        }
        if (n->n) memcpy(kids, n->kids, n->n * sizeof *kids);
        n->kids = kids;
    }
    n->kids[n->n++] = kid;
    return raise_height(p, n, kid);
}

static cera_jnode *node2(cera_jparser *p, uint8_t type, uint32_t line, cera_jnode *a, cera_jnode *b) {
    cera_jnode *n = a && b ? cera_jinja_node(p, type, line) : NULL;
    if (!n) return NULL;
    n->a = a;
    n->b = b;
    return raise_height(p, n, a) && raise_height(p, n, b) ? n : NULL;
}

static cera_jnode *node1(cera_jparser *p, uint8_t type, uint32_t line, cera_jnode *a) {
    cera_jnode *n = a ? cera_jinja_node(p, type, line) : NULL;
    if (!n) return NULL;
    n->a = a;
    return raise_height(p, n, a) ? n : NULL;
}

static cera_jnode *constant(cera_jparser *p, uint32_t line, cera_jval v) {
    cera_jnode *n = cera_jinja_node(p, N_CONST, line);
    if (n) n->value = v;
    return n;
}

static uint8_t here(cera_jparser *p) { return cera_jinja_tok(p)->type; }

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static bool add_keyword(cera_jparser *p, cera_jnode *n) {
    cera_jtoken *name = cera_jinja_next(p);
    cera_jinja_next(p);
    if ((n->n2 & (n->n2 - 1)) == 0) {
        cera_jval *names = cera_jinja_alloc(&p->t->mem, n->n2 ? 2 * (size_t)n->n2 : 1, sizeof *names);
        if (!names) return cera_jinja_parse_fail(p, name->line, "out of memory"), false;
        if (n->n2) memcpy(names, n->names, n->n2 * sizeof *names);
        n->names = names;
    }
    for (uint32_t i = 0; i < n->n2; i++)
        if (n->names[i].n == name->value.n &&
            !memcmp(cera_jinja_chars(&n->names[i]), cera_jinja_chars(&name->value), name->value.n))
            return cera_jinja_parse_fail(p, name->line, "keyword argument repeated: %.*s", (int)name->value.n,
                                         cera_jinja_chars(&name->value)),
                   false;
    n->names[n->n2++] = name->value;
    return cera_jinja_add_kid(p, n, cera_jinja_parse_expr(p, true));
}

static bool star_argument(cera_jparser *p, cera_jnode *n, uint32_t line) {
    bool two = here(p) == T_POW;
    if (n->starstar || (!two && n->star))
        return cera_jinja_parse_fail(p, line, "invalid syntax for function call expression"), false;
    cera_jinja_next(p);
    cera_jnode *x = cera_jinja_parse_expr(p, true);
    if (!x) return false;
    if (two)
        n->starstar = x;
    else
        n->star = x;
    return raise_height(p, n, x);
}

/* ( arguments ) into n: kids are the positional ones, then the n2 keywords'. */
static bool parse_arguments(cera_jparser *p, cera_jnode *n) {
    cera_jtoken *open = cera_jinja_expect(p, T_LPAREN);
    if (!open) return false;
    for (bool first = true; here(p) != T_RPAREN; first = false) {
        if (!first) {
            if (!cera_jinja_expect(p, T_COMMA)) return false;
            if (here(p) == T_RPAREN) break;
        }
        if (here(p) == T_MUL || here(p) == T_POW) {
            if (!star_argument(p, n, open->line)) return false;
        } else if (here(p) == T_NAME && p->tokens.items[p->at + 1].type == T_ASSIGN) {
            if (n->starstar) return cera_jinja_parse_fail(p, open->line, "invalid syntax for function call expression"), false;
            if (!add_keyword(p, n)) return false;
        } else {
            if (n->star || n->starstar || n->n2)
                return cera_jinja_parse_fail(p, open->line, "invalid syntax for function call expression"), false;
            if (!cera_jinja_add_kid(p, n, cera_jinja_parse_expr(p, true))) return false;
        }
    }
    return cera_jinja_expect(p, T_RPAREN) != NULL;
}

static cera_jnode *parse_call(cera_jparser *p, cera_jnode *function) {
    cera_jnode *n = node1(p, N_CALL, cera_jinja_tok(p)->line, function);
    return n && parse_arguments(p, n) ? n : NULL;
}

/* name or name.name: how filters and tests are called. */
static cera_jtoken *dotted_name(cera_jparser *p, cera_jval *out) {
    cera_jtoken *name = cera_jinja_expect(p, T_NAME);
    if (!name) return NULL;
    *out = name->value;
    while (here(p) == T_DOT) {
        cera_jinja_next(p);
        cera_jtoken *more = cera_jinja_expect(p, T_NAME);
        if (!more) return NULL;
        *out = more->value; /* no filter has a dot in its name: any such name is unknown */
        return cera_jinja_parse_fail(p, name->line, "no filter or test has a dot in its name"), NULL;
    }
    return name;
}

cera_jnode *cera_jinja_parse_filters(cera_jparser *p, cera_jnode *node, bool start_inline) {
    while (here(p) == T_PIPE || start_inline) {
        if (!start_inline) cera_jinja_next(p);
        start_inline = false;
        cera_jval name;
        cera_jtoken *token = dotted_name(p, &name);
        cera_jnode *n = token ? cera_jinja_node(p, N_FILTER, token->line) : NULL;
        if (!n) return NULL;
        n->a = node;
        n->value = name;
        n->builtin = cera_jinja_filter(cera_jinja_chars(&name), name.n);
        if (!raise_height(p, n, node)) return NULL;
        if (here(p) == T_LPAREN && !parse_arguments(p, n)) return NULL;
        node = n;
    }
    return node;
}

static cera_jnode *parse_primary(cera_jparser *p, bool targets);
static cera_jnode *parse_postfix(cera_jparser *p, cera_jnode *n);

static cera_jnode *parse_test(cera_jparser *p, cera_jnode *node) {
    cera_jtoken *is = cera_jinja_next(p);
    bool negated = cera_jinja_skip_name(p, "not");
    cera_jval name;
    if (!dotted_name(p, &name)) return NULL;
    cera_jnode *n = node1(p, N_TEST, is->line, node);
    if (!n) return NULL;
    n->value = name;
    n->builtin = cera_jinja_test(cera_jinja_chars(&name), name.n);
    uint8_t type = here(p);
    if (type == T_LPAREN) {
        if (!parse_arguments(p, n)) return NULL;
    } else if (type == T_NAME || type == T_STRING || type == T_INTEGER || type == T_FLOAT || type == T_LBRACKET ||
               type == T_LBRACE) {
        if (cera_jinja_is_name(p, "is")) return cera_jinja_parse_fail(p, is->line, "You cannot chain multiple tests with is");
        if (!cera_jinja_is_name(p, "else") && !cera_jinja_is_name(p, "or") && !cera_jinja_is_name(p, "and")) {
            cera_jnode *argument = parse_primary(p, false);
            argument = argument ? parse_postfix(p, argument) : NULL;
            if (!cera_jinja_add_kid(p, n, argument)) return NULL;
        }
    }
    return negated ? node1(p, N_NOT, is->line, n) : n;
}

/* ---- subscripts ------------------------------------------------------------------------------------------------- */

static cera_jnode *parse_subscribed(cera_jparser *p) {
    uint32_t line = cera_jinja_tok(p)->line;
    cera_jnode *first = NULL;
    if (here(p) != T_COLON) {
        first = cera_jinja_parse_expr(p, true);
        if (!first || here(p) != T_COLON) return first;
    }
    cera_jinja_next(p);
    cera_jnode *n = cera_jinja_node(p, N_SLICE, line);
    if (!n) return NULL;
    n->a = first;
    if (here(p) != T_COLON && here(p) != T_RBRACKET && here(p) != T_COMMA && !(n->b = cera_jinja_parse_expr(p, true)))
        return NULL;
    if (cera_jinja_skip(p, T_COLON) && here(p) != T_RBRACKET && here(p) != T_COMMA && !(n->c = cera_jinja_parse_expr(p, true)))
        return NULL;
    return raise_height(p, n, n->a) && raise_height(p, n, n->b) && raise_height(p, n, n->c) ? n : NULL;
}

static cera_jnode *parse_subscript(cera_jparser *p, cera_jnode *node) {
    cera_jtoken *token = cera_jinja_next(p);
    if (token->type == T_DOT) {
        cera_jtoken *attribute = cera_jinja_next(p);
        if (attribute->type == T_NAME) {
            cera_jnode *n = node1(p, N_GETATTR, token->line, node);
            if (n) n->value = attribute->value;
            return n;
        }
        if (attribute->type != T_INTEGER) return cera_jinja_parse_fail(p, attribute->line, "expected name or number");
        return node2(p, N_GETITEM, token->line, node, constant(p, attribute->line, attribute->value));
    }
    cera_jnode *tuple = cera_jinja_node(p, N_TUPLE, token->line);
    if (!tuple) return NULL;
    while (here(p) != T_RBRACKET) {
        if (tuple->n && !cera_jinja_expect(p, T_COMMA)) return NULL;
        if (!cera_jinja_add_kid(p, tuple, parse_subscribed(p))) return NULL;
    }
    cera_jinja_next(p);
    for (uint32_t i = 0; i < tuple->n && tuple->n > 1; i++)
        if (tuple->kids[i]->type == N_SLICE)
            return cera_jinja_parse_fail(p, token->line, "a slice among several subscripts is not supported");
    return node2(p, N_GETITEM, token->line, node, tuple->n == 1 ? tuple->kids[0] : tuple);
}

static cera_jnode *parse_postfix(cera_jparser *p, cera_jnode *n) {
    while (n) {
        if (here(p) == T_DOT || here(p) == T_LBRACKET)
            n = parse_subscript(p, n);
        else if (here(p) == T_LPAREN)
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

static cera_jnode *parse_filter_expr(cera_jparser *p, cera_jnode *n) {
    while (n) {
        if (here(p) == T_PIPE)
            n = cera_jinja_parse_filters(p, n, false);
        else if (cera_jinja_is_name(p, "is"))
            n = parse_test(p, n);
        else if (here(p) == T_LPAREN)
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* ---- primaries -------------------------------------------------------------------------------------------------- */

static cera_jnode *parse_list(cera_jparser *p) {
    cera_jnode *n = cera_jinja_node(p, N_LIST, cera_jinja_next(p)->line);
    while (n && here(p) != T_RBRACKET) {
        if (n->n && !cera_jinja_expect(p, T_COMMA)) return NULL;
        if (here(p) == T_RBRACKET) break;
        if (!cera_jinja_add_kid(p, n, cera_jinja_parse_expr(p, true))) return NULL;
    }
    if (n) cera_jinja_next(p);
    return n;
}

/* kids: key, value, key, value, ... */
static cera_jnode *parse_dict(cera_jparser *p) {
    cera_jnode *n = cera_jinja_node(p, N_DICT, cera_jinja_next(p)->line);
    while (n && here(p) != T_RBRACE) {
        if (n->n && !cera_jinja_expect(p, T_COMMA)) return NULL;
        if (here(p) == T_RBRACE) break;
        if (!cera_jinja_add_kid(p, n, cera_jinja_parse_expr(p, true)) || !cera_jinja_expect(p, T_COLON)) return NULL;
        if (!cera_jinja_add_kid(p, n, cera_jinja_parse_expr(p, true))) return NULL;
    }
    if (n) cera_jinja_next(p);
    return n;
}

static cera_jnode *parse_strings(cera_jparser *p) {
    cera_jtoken *first = cera_jinja_next(p);
    if (here(p) != T_STRING) return constant(p, first->line, first->value);
    size_t size = first->value.n;
    for (uint32_t i = p->at; p->tokens.items[i].type == T_STRING; i++) size += p->tokens.items[i].value.n;
    cera_jbuf *b = cera_jinja_alloc(&p->t->mem, 1, sizeof *b);
    char *text = cera_jinja_alloc(&p->t->mem, size + 1, 1);
    if (!b || !text) return cera_jinja_parse_fail(p, first->line, "out of memory");
    b->data = text;
    b->ascii = true;
    for (cera_jtoken *t = first;; t = cera_jinja_next(p)) {
        memcpy(text + b->used, cera_jinja_chars(&t->value), t->value.n);
        b->used += t->value.n;
        b->ascii = b->ascii && t->value.u.buf->ascii;
        if (here(p) != T_STRING) break;
    }
    return constant(p, first->line, (cera_jval){.kind = J_STR, .n = b->used, .u.buf = b});
}

static cera_jnode *parse_name(cera_jparser *p, bool targets) {
    cera_jtoken *token = cera_jinja_next(p);
    const cera_jval *name = &token->value;
    if (cera_jinja_str_is(name, "true") || cera_jinja_str_is(name, "True"))
        return constant(p, token->line, cera_jinja_bool(true));
    if (cera_jinja_str_is(name, "false") || cera_jinja_str_is(name, "False"))
        return constant(p, token->line, cera_jinja_bool(false));
    if (cera_jinja_str_is(name, "none") || cera_jinja_str_is(name, "None")) return constant(p, token->line, cera_jinja_none());
    cera_jnode *n = cera_jinja_node(p, N_NAME, token->line);
    if (!n) return NULL;
    n->value = *name;
    if (targets && here(p) == T_DOT) { /* namespace.attribute = ... */
        cera_jinja_next(p);
        cera_jtoken *attribute = cera_jinja_expect(p, T_NAME);
        cera_jnode *ref = attribute ? node1(p, N_NSREF, token->line, n) : NULL;
        if (ref) ref->value = attribute->value;
        return ref;
    }
    return n;
}

static cera_jnode *parse_primary(cera_jparser *p, bool targets) {
    cera_jtoken *token = cera_jinja_tok(p);
    switch (token->type) {
    case T_NAME: return parse_name(p, targets);
    case T_STRING: return parse_strings(p);
    case T_INTEGER:
    case T_FLOAT: cera_jinja_next(p); return constant(p, token->line, token->value);
    case T_LBRACKET: return parse_list(p);
    case T_LBRACE: return parse_dict(p);
    case T_LPAREN: {
        cera_jinja_next(p);
        cera_jnode *n = cera_jinja_parse_tuple(p, false, true, NULL, true);
        return n && cera_jinja_expect(p, T_RPAREN) ? n : NULL;
    }
    default: return cera_jinja_parse_fail(p, token->line, "unexpected '%s'", cera_jinja_token_text(token->type));
    }
}

/* ---- operators, loosest last ------------------------------------------------------------------------------------ */

static cera_jnode *parse_unary_inner(cera_jparser *p, bool with_filter) {
    cera_jtoken *token = cera_jinja_tok(p);
    cera_jnode *n;
    if (token->type == T_SUB || token->type == T_ADD) {
        cera_jinja_next(p);
        n = node1(p, token->type == T_SUB ? N_NEG : N_POS, token->line, parse_unary(p, false));
    } else {
        n = parse_primary(p, false);
    }
    n = n ? parse_postfix(p, n) : NULL;
    return n && with_filter ? parse_filter_expr(p, n) : n;
}

static cera_jnode *parse_unary(cera_jparser *p, bool with_filter) {
    if (++p->expr_depth > CERA_JINJA_MAX_EXPR_DEPTH)
        return cera_jinja_parse_fail(p, cera_jinja_tok(p)->line, "an expression is nested too deep (limit %d)",
                                     CERA_JINJA_MAX_EXPR_DEPTH);
    cera_jnode *n = parse_unary_inner(p, with_filter);
    p->expr_depth--;
    return n;
}

static const struct {
    uint8_t token, level, op;
} binaries[] = {{T_ADD, 0, OP_ADD}, {T_SUB, 0, OP_SUB},           {T_MUL, 2, OP_MUL}, {T_DIV, 2, OP_DIV},
                {T_MOD, 2, OP_MOD}, {T_FLOORDIV, 2, OP_FLOORDIV}, {T_POW, 3, OP_POW}};

static cera_jnode *parse_concat(cera_jparser *p);

/* level 0: + -, operands are concatenations; 2: * / // %; 3: ** (left associative, as in jinja2). */
static cera_jnode *parse_binary(cera_jparser *p, int level) {
    cera_jnode *left = level == 0 ? parse_concat(p) : level == 2 ? parse_binary(p, 3) : parse_unary(p, true);
    while (left) {
        size_t i = 0, n = sizeof binaries / sizeof binaries[0];
        while (i < n && !(binaries[i].token == here(p) && binaries[i].level == level)) i++;
        if (i == n) break;
        uint32_t line = cera_jinja_next(p)->line;
        cera_jnode *right = level == 0 ? parse_concat(p) : level == 2 ? parse_binary(p, 3) : parse_unary(p, true);
        left = node2(p, N_BINARY, line, left, right);
        if (left) left->op = binaries[i].op;
    }
    return left;
}

static cera_jnode *parse_concat(cera_jparser *p) {
    uint32_t line = cera_jinja_tok(p)->line;
    cera_jnode *first = parse_binary(p, 2);
    if (!first || here(p) != T_TILDE) return first;
    cera_jnode *n = cera_jinja_node(p, N_CONCAT, line);
    if (!n || !cera_jinja_add_kid(p, n, first)) return NULL;
    while (cera_jinja_skip(p, T_TILDE))
        if (!cera_jinja_add_kid(p, n, parse_binary(p, 2))) return NULL;
    return n;
}

static bool compare_op(cera_jparser *p, uint8_t *op) {
    static const uint8_t tokens[] = {T_EQ, T_NE, T_LT, T_LTEQ, T_GT, T_GTEQ};
    for (size_t i = 0; i < sizeof tokens; i++) {
        if (here(p) != tokens[i]) continue;
        cera_jinja_next(p);
        *op = (uint8_t)(OP_EQ + i);
        return true;
    }
    if (cera_jinja_skip_name(p, "in")) return *op = OP_IN, true;
    const cera_jtoken *next = &p->tokens.items[p->at + (here(p) != T_EOF)];
    if (cera_jinja_is_name(p, "not") && next->type == T_NAME && cera_jinja_str_is(&next->value, "in")) {
        p->at += 2;
        return *op = OP_NOTIN, true;
    }
    return false;
}

/* kids: the first operand, then a node each comparison with its op and operand a. */
static cera_jnode *parse_compare(cera_jparser *p) {
    uint32_t line = cera_jinja_tok(p)->line;
    cera_jnode *first = parse_binary(p, 0), *n = NULL;
    uint8_t op;
    while (first && compare_op(p, &op)) {
        if (!n) {
            n = cera_jinja_node(p, N_COMPARE, line);
            if (!n || !cera_jinja_add_kid(p, n, first)) return NULL;
        }
        cera_jnode *operand = node1(p, N_COMPARE, line, parse_binary(p, 0));
        if (!operand) return NULL;
        operand->op = op;
        if (!cera_jinja_add_kid(p, n, operand)) return NULL;
    }
    return n ? n : first;
}

static cera_jnode *parse_not(cera_jparser *p) {
    if (!cera_jinja_is_name(p, "not")) return parse_compare(p);
    uint32_t line = cera_jinja_next(p)->line;
    if (++p->expr_depth > CERA_JINJA_MAX_EXPR_DEPTH)
        return cera_jinja_parse_fail(p, line, "an expression is nested too deep (limit %d)", CERA_JINJA_MAX_EXPR_DEPTH);
    cera_jnode *n = node1(p, N_NOT, line, parse_not(p));
    p->expr_depth--;
    return n;
}

static cera_jnode *parse_and(cera_jparser *p) {
    cera_jnode *left = parse_not(p);
    while (left && cera_jinja_is_name(p, "and")) {
        uint32_t line = cera_jinja_next(p)->line;
        left = node2(p, N_AND, line, left, parse_not(p));
    }
    return left;
}

static cera_jnode *parse_or(cera_jparser *p) {
    cera_jnode *left = parse_and(p);
    while (left && cera_jinja_is_name(p, "or")) {
        uint32_t line = cera_jinja_next(p)->line;
        left = node2(p, N_OR, line, left, parse_and(p));
    }
    return left;
}

/* a: condition, b: value, c: other value or NULL. */
static cera_jnode *parse_cond(cera_jparser *p) {
    cera_jnode *value = parse_or(p);
    while (value && cera_jinja_is_name(p, "if")) {
        uint32_t line = cera_jinja_next(p)->line;
        cera_jnode *n = node2(p, N_COND, line, parse_or(p), value);
        if (!n) return NULL;
        if (cera_jinja_skip_name(p, "else")) {
            if (++p->expr_depth > CERA_JINJA_MAX_EXPR_DEPTH)
                return cera_jinja_parse_fail(p, line, "an expression is nested too deep (limit %d)", CERA_JINJA_MAX_EXPR_DEPTH);
            n->c = parse_cond(p);
            p->expr_depth--;
            if (!n->c || !raise_height(p, n, n->c)) return NULL;
        }
        value = n;
    }
    return value;
}

cera_jnode *cera_jinja_parse_expr(cera_jparser *p, bool with_cond) { return with_cond ? parse_cond(p) : parse_or(p); }

static bool at_tuple_end(cera_jparser *p, const char *end_name) {
    uint8_t type = here(p);
    return type == T_VAR_END || type == T_BLOCK_END || type == T_RPAREN || (end_name && cera_jinja_is_name(p, end_name));
}

cera_jnode *cera_jinja_parse_tuple(cera_jparser *p, bool targets, bool with_cond, const char *end_name, bool parenthesised) {
    cera_jnode *tuple = cera_jinja_node(p, N_TUPLE, cera_jinja_tok(p)->line);
    bool is_tuple = false;
    while (tuple) {
        if (tuple->n && !cera_jinja_expect(p, T_COMMA)) return NULL;
        if (at_tuple_end(p, end_name)) break;
        cera_jnode *item = targets ? parse_primary(p, true) : cera_jinja_parse_expr(p, with_cond);
        if (!cera_jinja_add_kid(p, tuple, item)) return NULL;
        if (here(p) != T_COMMA) break;
        is_tuple = true;
    }
    if (!tuple || is_tuple) return tuple;
    if (tuple->n) return tuple->kids[0];
    if (!parenthesised)
        return cera_jinja_parse_fail(p, cera_jinja_tok(p)->line, "Expected an expression, got '%s'",
                                     cera_jinja_token_text(here(p)));
    return tuple;
}
