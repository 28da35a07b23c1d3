/* jinja_parse.c: the statements of a template ({% ... %}, {{ ... }}, text) to a syntax tree, and compiling as a whole.
 * Expressions are in jinja_expr.c; what names mean is settled afterwards in jinja_scope.c. Inheritance (block, extends,
 * include, import) is refused: a chat template is one file. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "text/jinja_int.h"

void *cera_jinja_parse_fail(cera_jparser *p, uint32_t line, const char *format, ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!p->failed) p->status = cera_fail(p->e, CERA_ERR_FORMAT, "template line %u: %s", line, message);
    p->failed = true;
    return NULL;
}

cera_jtoken *cera_jinja_tok(cera_jparser *p) { return &p->tokens.items[p->at]; }

cera_jtoken *cera_jinja_next(cera_jparser *p) {
    cera_jtoken *t = cera_jinja_tok(p);
    if (t->type != T_EOF) p->at++;
    return t;
}

bool cera_jinja_str_is(const cera_jval *s, const char *text) {
    size_t n = strlen(text);
    return s->kind == J_STR && s->n == n && !memcmp(cera_jinja_chars(s), text, n);
}

bool cera_jinja_is_name(cera_jparser *p, const char *name) {
    const cera_jtoken *t = cera_jinja_tok(p);
    return t->type == T_NAME && cera_jinja_str_is(&t->value, name);
}

bool cera_jinja_skip_name(cera_jparser *p, const char *name) {
    if (!cera_jinja_is_name(p, name)) return false;
    p->at++;
    return true;
}

bool cera_jinja_skip(cera_jparser *p, uint8_t type) {
    if (cera_jinja_tok(p)->type != type) return false;
    cera_jinja_next(p);
    return true;
}

cera_jtoken *cera_jinja_expect(cera_jparser *p, uint8_t type) {
    cera_jtoken *t = cera_jinja_tok(p);
    if (t->type == type) return cera_jinja_next(p);
    if (t->type == T_NAME)
        return cera_jinja_parse_fail(p, t->line, "expected token '%s', got '%.*s'", cera_jinja_token_text(type),
                                     (int)t->value.n, cera_jinja_chars(&t->value));
    return cera_jinja_parse_fail(p, t->line, "expected token '%s', got '%s'", cera_jinja_token_text(type),
                                 cera_jinja_token_text(t->type));
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

static bool can_assign(cera_jparser *p, const cera_jnode *n) {
    static const char *const what[] = {"const", "name", "nsref", "tuple", "list", "dict"};
    if (n->type == N_NAME || n->type == N_NSREF) return true;
    if (n->type != N_TUPLE) {
        cera_jinja_parse_fail(p, n->line, "can't assign to '%s'", n->type <= N_DICT ? what[n->type] : "expression");
        return false;
    }
    for (uint32_t i = 0; i < n->n; i++)
        if (!can_assign(p, n->kids[i])) return false;
    return true;
}

static cera_jnode *parse_target(cera_jparser *p, bool with_namespace, const char *end_name) {
    cera_jnode *n = cera_jinja_parse_tuple(p, true, true, end_name, false);
    if (!n || !can_assign(p, n)) return NULL;
    if (!with_namespace && n->type == N_NSREF)
        return cera_jinja_parse_fail(p, n->line, "expected a name, got a namespace's attribute");
    return n;
}

static cera_jnode *parse_name_target(cera_jparser *p) {
    cera_jtoken *t = cera_jinja_expect(p, T_NAME);
    if (!t) return NULL;
    static const char *const constants[] = {"true", "false", "none", "True", "False", "None"};
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (cera_jinja_str_is(&t->value, constants[i]))
            return cera_jinja_parse_fail(p, t->line, "can't assign to '%s'", constants[i]);
    cera_jnode *n = cera_jinja_node(p, N_NAME, t->line);
    if (n) n->value = t->value;
    return n;
}

/* ---- statements ------------------------------------------------------------------------------------------------- */

/* [:] %} body, up to one of the two tags; the current token is then the tag's name. */
static cera_jnode *parse_until(cera_jparser *p, const char *end, const char *end2, const char *end3) {
    cera_jinja_skip(p, T_COLON);
    if (!cera_jinja_expect(p, T_BLOCK_END)) return NULL;
    if (++p->block_depth > CERA_JINJA_MAX_BLOCK_DEPTH)
        return cera_jinja_parse_fail(p, cera_jinja_tok(p)->line, "statements are nested too deep (limit %d)",
                                     CERA_JINJA_MAX_BLOCK_DEPTH);
    uint32_t line = cera_jinja_tok(p)->line;
    cera_jnode *body = cera_jinja_parse_body(p);
    p->block_depth--;
    if (!body) return NULL;
    if (cera_jinja_is_name(p, end) || (end2 && cera_jinja_is_name(p, end2)) || (end3 && cera_jinja_is_name(p, end3)))
        return body;
    const cera_jtoken *t = cera_jinja_tok(p);
    if (t->type == T_EOF) return cera_jinja_parse_fail(p, line, "unexpected end of template; expected '%s'", end);
    if (t->type != T_NAME) return cera_jinja_parse_fail(p, t->line, "tag name expected");
    return cera_jinja_parse_fail(p, t->line, "unknown tag '%.*s'; expected '%s'", (int)t->value.n, cera_jinja_chars(&t->value),
                                 end);
}

static cera_jnode *parse_to_end(cera_jparser *p, const char *end) {
    cera_jnode *body = parse_until(p, end, NULL, NULL);
    if (body) cera_jinja_next(p);
    return body;
}

/* kids: test, body, test, body, ...; c: else or NULL. */
static cera_jnode *parse_if(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_IF, line);
    while (n) {
        if (!cera_jinja_add_kid(p, n, cera_jinja_parse_tuple(p, false, false, NULL, false))) return NULL;
        if (!cera_jinja_add_kid(p, n, parse_until(p, "elif", "else", "endif"))) return NULL;
        if (cera_jinja_skip_name(p, "elif")) continue;
        if (cera_jinja_skip_name(p, "else")) return (n->c = parse_to_end(p, "endif")) ? n : NULL;
        cera_jinja_next(p);
        break;
    }
    return n;
}

/* a: target, b: what it runs over, c: filter or NULL; kids: body and else; flag: recursive. */
static cera_jnode *parse_for(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_FOR, line);
    if (!n || !(n->a = parse_target(p, false, "in"))) return NULL;
    if (!cera_jinja_skip_name(p, "in")) return cera_jinja_parse_fail(p, line, "expected token 'in'");
    if (!(n->b = cera_jinja_parse_tuple(p, false, false, "recursive", false))) return NULL;
    if (cera_jinja_skip_name(p, "if") && !(n->c = cera_jinja_parse_expr(p, true))) return NULL;
    n->flag = cera_jinja_skip_name(p, "recursive");
    if (!cera_jinja_add_kid(p, n, parse_until(p, "endfor", "else", NULL))) return NULL;
    if (cera_jinja_skip_name(p, "endfor")) return n;
    cera_jinja_next(p);
    return cera_jinja_add_kid(p, n, parse_to_end(p, "endfor")) ? n : NULL;
}

/* kids: parameters; b: a tuple of defaults, for the last ones. */
static bool parse_signature(cera_jparser *p, cera_jnode *n) {
    if (!cera_jinja_expect(p, T_LPAREN)) return false;
    while (cera_jinja_tok(p)->type != T_RPAREN) {
        if (n->n && !cera_jinja_expect(p, T_COMMA)) return false;
        cera_jnode *name = parse_name_target(p);
        if (!cera_jinja_add_kid(p, n, name)) return false;
        for (uint32_t i = 0; i + 1 < n->n; i++)
            if (n->kids[i]->value.n == name->value.n &&
                !memcmp(cera_jinja_chars(&n->kids[i]->value), cera_jinja_chars(&name->value), name->value.n))
                return cera_jinja_parse_fail(p, name->line, "duplicate argument '%.*s'", (int)name->value.n,
                                             cera_jinja_chars(&name->value)),
                       false;
        if (cera_jinja_skip(p, T_ASSIGN)) {
            if (!cera_jinja_add_kid(p, n->b, cera_jinja_parse_expr(p, true))) return false;
        } else if (n->b->n) {
            return cera_jinja_parse_fail(p, name->line, "non-default argument follows default argument"), false;
        }
    }
    return cera_jinja_expect(p, T_RPAREN) != NULL;
}

/* value: name, a: body. */
static cera_jnode *parse_macro(cera_jparser *p, uint32_t line) {
    cera_jnode *name = parse_name_target(p), *n = name ? cera_jinja_node(p, N_MACRO, line) : NULL;
    if (!n || !(n->b = cera_jinja_node(p, N_TUPLE, line)) || !parse_signature(p, n)) return NULL;
    n->value = name->value;
    return (n->a = parse_to_end(p, "endmacro")) ? n : NULL;
}

/* c: the call, a: body. */
static cera_jnode *parse_call_block(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_CALLBLOCK, line);
    if (!n || !(n->b = cera_jinja_node(p, N_TUPLE, line))) return NULL;
    if (cera_jinja_tok(p)->type == T_LPAREN && !parse_signature(p, n)) return NULL;
    if (!(n->c = cera_jinja_parse_expr(p, true))) return NULL;
    if (n->c->type != N_CALL) return cera_jinja_parse_fail(p, line, "expected call");
    return (n->a = parse_to_end(p, "endcall")) ? n : NULL;
}

/* {% generation %}: a call block whose caller is called at once. */
static cera_jnode *parse_generation(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_CALLBLOCK, line);
    if (!n || !(n->b = cera_jinja_node(p, N_TUPLE, line))) return NULL;
    return (n->a = parse_to_end(p, "endgeneration")) ? n : NULL;
}

/* a: target, b: value; or, for a block, b: filters or NULL, c: body. */
static cera_jnode *parse_set(cera_jparser *p, uint32_t line) {
    cera_jnode *target = parse_target(p, true, NULL), *n;
    if (!target) return NULL;
    if (cera_jinja_skip(p, T_ASSIGN)) {
        n = cera_jinja_node(p, N_SET, line);
        if (!n) return NULL;
        n->a = target;
        return (n->b = cera_jinja_parse_tuple(p, false, true, NULL, false)) ? n : NULL;
    }
    n = cera_jinja_node(p, N_SETBLOCK, line);
    if (!n) return NULL;
    n->a = target;
    if (cera_jinja_tok(p)->type == T_PIPE && !(n->b = cera_jinja_parse_filters(p, NULL, false))) return NULL;
    return (n->c = parse_to_end(p, "endset")) ? n : NULL;
}

/* a: filters, b: body. */
static cera_jnode *parse_filter_block(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_FILTERBLOCK, line);
    if (!n || !(n->a = cera_jinja_parse_filters(p, NULL, true))) return NULL;
    return (n->b = parse_to_end(p, "endfilter")) ? n : NULL;
}

/* kids: target, value, target, value, ...; a: body. */
static cera_jnode *parse_with(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_WITH, line);
    while (n && cera_jinja_tok(p)->type != T_BLOCK_END) {
        if (n->n && !cera_jinja_expect(p, T_COMMA)) return NULL;
        if (!cera_jinja_add_kid(p, n, parse_target(p, false, NULL)) || !cera_jinja_expect(p, T_ASSIGN)) return NULL;
        if (!cera_jinja_add_kid(p, n, cera_jinja_parse_expr(p, true))) return NULL;
    }
    return n && (n->a = parse_to_end(p, "endwith")) ? n : NULL;
}

static cera_jnode *parse_autoescape(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_SCOPE, line), *on = n ? cera_jinja_parse_expr(p, true) : NULL;
    if (!on) return NULL;
    if (on->type != N_CONST || on->value.kind != J_BOOL || on->value.u.b)
        return cera_jinja_parse_fail(p, line, "autoescape is not supported");
    return (n->a = parse_to_end(p, "endautoescape")) ? n : NULL;
}

/* kids: what is printed. */
static cera_jnode *parse_print(cera_jparser *p, uint32_t line) {
    cera_jnode *n = cera_jinja_node(p, N_BODY, line);
    while (n && cera_jinja_tok(p)->type != T_BLOCK_END) {
        if (n->n && !cera_jinja_expect(p, T_COMMA)) return NULL;
        cera_jnode *print = cera_jinja_node(p, N_PRINT, line);
        if (!print || !(print->a = cera_jinja_parse_expr(p, true)) || !cera_jinja_add_kid(p, n, print)) return NULL;
    }
    return n;
}

static cera_jnode *parse_break(cera_jparser *p, uint32_t line) { return cera_jinja_node(p, N_BREAK, line); }
static cera_jnode *parse_continue(cera_jparser *p, uint32_t line) { return cera_jinja_node(p, N_CONTINUE, line); }

static cera_jnode *parse_statement(cera_jparser *p) {
    static const struct {
        const char *name;
        cera_jnode *(*parse)(cera_jparser *p, uint32_t line);
    } tags[] = {{"if", parse_if},
                {"for", parse_for},
                {"set", parse_set},
                {"macro", parse_macro},
                {"call", parse_call_block},
                {"filter", parse_filter_block},
                {"with", parse_with},
                {"print", parse_print},
                {"break", parse_break},
                {"continue", parse_continue},
                {"generation", parse_generation},
                {"autoescape", parse_autoescape}};
    static const char *const refused[] = {"block", "extends", "include", "import", "from"};
    cera_jtoken *t = cera_jinja_tok(p);
    if (t->type != T_NAME) return cera_jinja_parse_fail(p, t->line, "tag name expected");
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        if (cera_jinja_skip_name(p, tags[i].name)) return tags[i].parse(p, t->line);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (cera_jinja_is_name(p, refused[i]))
            return cera_jinja_parse_fail(p, t->line, "the tag '%s' is not supported: a chat template is one file", refused[i]);
    return cera_jinja_parse_fail(p, t->line, "unknown tag '%.*s'", (int)t->value.n, cera_jinja_chars(&t->value));
}

/* Tags that only end or continue what is open: parse_body leaves them to the statement that waits for them. */
static bool at_end_tag(cera_jparser *p) {
    static const char *const ends[] = {"elif",    "else",      "endif",   "endfor",        "endset",       "endmacro",
                                       "endcall", "endfilter", "endwith", "endgeneration", "endautoescape"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (cera_jinja_is_name(p, ends[i])) return true;
    return false;
}

/* One piece of a body; false at an end tag, the end of the template, or an error. */
static bool parse_piece(cera_jparser *p, cera_jnode *body) {
    cera_jtoken *t = cera_jinja_next(p);
    cera_jnode *n = NULL;
    if (t->type == T_DATA) {
        n = cera_jinja_node(p, N_DATA, t->line);
        if (n) n->value = t->value;
    } else if (t->type == T_VAR_BEGIN) {
        n = cera_jinja_node(p, N_PRINT, t->line);
        if (!n || !(n->a = cera_jinja_parse_tuple(p, false, true, NULL, false)) || !cera_jinja_expect(p, T_VAR_END))
            return false;
    } else if (t->type == T_BLOCK_BEGIN) {
        if (at_end_tag(p)) return false;
        n = parse_statement(p);
        if (!n || !cera_jinja_expect(p, T_BLOCK_END)) return false;
    } else {
        return false;
    }
    return cera_jinja_add_kid(p, body, n);
}

cera_jnode *cera_jinja_parse_body(cera_jparser *p) {
    cera_jnode *body = cera_jinja_node(p, N_BODY, cera_jinja_tok(p)->line);
    while (body && parse_piece(p, body)) {}
    return p->failed ? NULL : body;
}

static cera_status compile(cera_jinja *t, cera_error *e) {
    cera_jparser p = {.t = t, .e = e};
    if (!cera_utf8_valid(t->text, t->size)) return cera_fail(e, CERA_ERR_FORMAT, "template: not valid UTF-8");
    if (memchr(t->text, 0, t->size)) return cera_fail(e, CERA_ERR_FORMAT, "template: a NUL byte");
    CERA_TRY(cera_jinja_lex(t, &p.tokens, e));
    t->root = cera_jinja_parse_body(&p);
    if (!t->root) return p.status;
    const cera_jtoken *end = cera_jinja_tok(&p);
    if (end->type == T_NAME) {
        cera_jinja_parse_fail(&p, end->line, "unknown tag '%.*s'", (int)end->value.n, cera_jinja_chars(&end->value));
        return p.status;
    }
    return cera_jinja_resolve(t, e);
}

cera_status cera_jinja_compile(const char *text, size_t n, cera_jinja **out, cera_error *e) {
    *out = NULL;
    if (n > CERA_JINJA_MAX_TEXT)
        return cera_fail(e, CERA_ERR_LIMIT, "template: %zu bytes; at most %d are allowed", n, CERA_JINJA_MAX_TEXT);
    cera_arena *arena = NULL;
    CERA_TRY(cera_arena_create((size_t)256 << 20, &arena, e));
    cera_jmem mem = {.arena = arena};
    cera_jinja *t = cera_jinja_alloc(&mem, 1, sizeof *t);
    cera_status status = t ? CERA_OK : cera_fail(e, CERA_ERR_MEMORY, "template: out of memory");
    if (t) {
        t->mem = mem;
        t->text = text;
        t->size = n;
        status = compile(t, e);
    }
    if (status == CERA_OK)
        *out = t;
    else
        cera_arena_destroy(arena);
    return status;
}

void cera_jinja_destroy(cera_jinja *t) {
    if (t) cera_arena_destroy(t->mem.arena);
}

bool cera_jinja_mentions(const cera_jinja *t, const char *text) { return memmem(t->text, t->size, text, strlen(text)) != NULL; }

bool cera_jinja_uses_name(const cera_jinja *t, const char *name) {
    for (uint32_t i = 0; i < t->n_names; i++)
        if (cera_jinja_str_is(&t->names[i], name)) return true;
    return false;
}
