/* gbnf_int.h: llama.cpp's GBNF dialect to rules of the automaton. */
#ifndef CERA_SAMPLE_GBNF_INT_H
#define CERA_SAMPLE_GBNF_INT_H

#include "sample/automaton_int.h"

/* The id of the token with this text, -1 when there is none. */
typedef int32_t (*cera_gbnf_token)(void *context, const char *text, size_t n);

typedef struct cera_gbnf {
    cera_expr *bodies;
    uint32_t n_rules, root;
} cera_gbnf; /* bodies of the rules, by number */

/* Errors name line and rule: syntax, undefined rules, left recursion, nesting. token may be NULL: then <text> is refused. */
cera_status cera_gbnf_compile(cera_automaton *a, const char *text, size_t n, cera_gbnf_token token, void *context,
                              cera_gbnf *out, cera_error *e);
void cera_gbnf_deinit(cera_gbnf *g);

/* gbnf_parse.c: the syntax tree. */
typedef enum cera_gbnf_kind { CERA_G_EXPR, CERA_G_REF, CERA_G_SEQ, CERA_G_ALT, CERA_G_REP } cera_gbnf_kind;
typedef struct cera_gbnf_item {
    cera_gbnf_kind kind;
    uint32_t child, sibling; /* SEQ and ALT: child is 0 and sibling the first link; a link has the item as child. REP: child */
    uint32_t n, m;           /* REP */
    uint32_t value;          /* EXPR: expression; REF: rule */
} cera_gbnf_item;
typedef struct cera_gbnf_rule {
    const char *name;
    uint32_t name_size, line, body, next; /* body 0: not defined; next: hash chain */
    uint32_t n_refs, done, left;          /* of the analysis: references to open rules, compiled, left edges */
    bool nullable;
    cera_expr expr;
} cera_gbnf_rule;

typedef struct cera_gbnf_parser {
    cera_automaton *a;
    const char *text;
    size_t n, at;
    cera_gbnf_token token;
    void *context;
    cera_gbnf_item *items;
    uint32_t n_items, cap_items;
    cera_gbnf_rule *rules;
    uint32_t n_rules, cap_rules;
    uint32_t buckets[1024]; /* 1 + first rule */
    int depth;
    cera_error *e;
    cera_status status;
} cera_gbnf_parser;

cera_status cera_gbnf_parse(cera_gbnf_parser *p);
void cera_gbnf_fail(cera_gbnf_parser *p, cera_status s, const char *what, const char *name, size_t n);
uint32_t cera_gbnf_find(cera_gbnf_parser *p, const char *name, size_t n, bool create); /* UINT32_MAX: none */

#endif
