/* automaton_int.h: the byte-level pushdown automaton that GBNF, JSON Schema and regular expressions compile to.
 *
 * Expressions are hash-consed regular expressions over bytes, with intersection, complement and counted repetition, plus three
 * symbols that reach beyond regular languages: CALL (another rule, by a push on the stack), TOKEN (a vocabulary id) and MACRO
 * (an expression that its owner writes out when it is first needed: the rest of an object after the keys seen so far).
 * A state of the automaton is an expression, a transition its Brzozowski derivative (Brzozowski 1964; Owens, Reppy, Turon
 * 2009), so a bound {n,m} is a counter that is decremented, never unrolled. States and transitions are made when they are first
 * taken.
 *
 * Owns: expressions, states, stack cells, configurations. Does not own: the source languages (regex, gbnf, schema),
 * vocabularies and masks (trie, mask), locking (grammar.c). */
#ifndef CERA_SAMPLE_AUTOMATON_INT_H
#define CERA_SAMPLE_AUTOMATON_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/status.h"

typedef uint32_t cera_expr;

enum {
    CERA_EXPR_EMPTY = 0, /* no text at all */
    CERA_EXPR_EPS = 1,   /* the empty text */
    CERA_EXPR_ANY = 2
}; /* every run of bytes */
#define CERA_REP_INF UINT32_MAX

typedef enum cera_expr_kind {
    CERA_K_EMPTY,
    CERA_K_EPS,
    CERA_K_ANY,
    CERA_K_CHAR,  /* a: node of the character automaton */
    CERA_K_LIT,   /* a..b: bytes in the text pool; n: 1 when each character may also be written as a JSON escape */
    CERA_K_CAT,   /* a then b; never a CAT on the left */
    CERA_K_OR,    /* a: first of b children in the list pool, ascending */
    CERA_K_AND,   /* the same */
    CERA_K_NOT,   /* a */
    CERA_K_REP,   /* a, n to m times */
    CERA_K_CALL,  /* a: rule */
    CERA_K_TOKEN, /* a: vocabulary id; n: 1 for every other token */
    CERA_K_MACRO, /* a: payload of the owner; b: 1 + the expression once written out */
    CERA_K_MULT   /* a, b, n, m: decimal text whose value is a multiple of a number (automaton_mult.c) */
} cera_expr_kind;

enum {
    CERA_X_NULLABLE = 1,
    CERA_X_INFINITE = 2,
    CERA_X_EDGES = 4,
    CERA_X_IMPURE = 8,
    CERA_X_LIVE = 16,
    CERA_X_DEAD = 32,
    CERA_X_BIG = 64,    /* holds a counter above CERA_CLAMP */
    CERA_X_NESTED = 128 /* a counted repetition of a counted repetition */
};

/* Counters above this are all alike to a mask: no token is that long. */
enum { CERA_CLAMP = 300, CERA_MAX_HEIGHT = 2000, CERA_MAX_WIDTH = 4000, CERA_N_SLICES = 7 };

typedef struct cera_node {
    uint8_t kind, flags;
    uint16_t height;
    uint32_t a, b, n, m;
    uint32_t card;       /* upper bound of the number of texts, saturating */
    uint32_t state;      /* 1 + state, 0: none yet */
    uint32_t mark;       /* last search that saw it */
    uint32_t hash, next; /* hash chain */
} cera_node;

/* Character automaton: what one character looks like in bytes. Target 0 is "whole". */
typedef struct cera_crange {
    uint8_t lo, hi;
    uint32_t target;
} cera_crange;
typedef struct cera_cnode {
    uint32_t first, n;
    uint32_t card;
    uint8_t slices; /* bit i: accepts every character of slice i (trie.h) */
    bool is_any;    /* every character that the mode allows */
} cera_cnode;

typedef struct cera_part {
    uint64_t bounds[4];
    uint8_t map[256];
    uint8_t first[256];
    uint32_t n;
} cera_part;

typedef enum cera_edge_kind { CERA_EDGE_CALL, CERA_EDGE_TOKEN, CERA_EDGE_NOT_TOKEN } cera_edge_kind;
typedef struct cera_edge {
    cera_edge_kind kind;
    uint32_t id;
    cera_expr rest;
} cera_edge;

enum {
    CERA_S_NULLABLE = 1,
    CERA_S_CALLS = 2,
    CERA_S_TOKENS = 4,
    CERA_S_BYTES = 8,
    CERA_S_BOUNDARY = CERA_S_NULLABLE | CERA_S_CALLS | CERA_S_TOKENS
};
#define CERA_ROW_UNKNOWN UINT32_MAX

typedef struct cera_pstate {
    cera_expr expr;
    uint32_t part, row; /* row: first of part.n entries in rows */
    uint32_t edge, n_edges;
    uint32_t clamped;           /* 1 + the state that a mask starts from */
    int16_t run[CERA_N_SLICES]; /* -2 unknown; see mask.c */
    uint8_t run_exact;          /* bit i */
    uint8_t flags;
} cera_pstate;

typedef struct cera_cell {
    uint32_t state, parent, next;
} cera_cell; /* stack cells, hash-consed; 0 is the empty stack */
typedef struct cera_config {
    uint32_t state, cell;
} cera_config;

typedef struct cera_configs {
    cera_config *at;
    uint32_t n, capacity;
    bool complete; /* the text so far is a whole member of the language */
} cera_configs;

typedef enum cera_escapes {
    CERA_ESC_NONE,   /* plain UTF-8 */
    CERA_ESC_NEEDED, /* JSON text, escapes only where JSON asks for them */
    CERA_ESC_ALL
} cera_escapes;

typedef struct cera_automaton cera_automaton;
typedef cera_expr (*cera_rule_body)(void *owner, uint32_t rule);
typedef cera_expr (*cera_macro_body)(void *owner, uint32_t payload);

struct cera_automaton {
    cera_node *nodes;
    uint32_t n_nodes, cap_nodes;
    uint32_t *buckets;
    uint32_t n_buckets, cap_buckets;
    uint32_t *lists;
    uint32_t n_lists, cap_lists;
    char *text;
    uint32_t n_text, cap_text;
    cera_crange *cranges;
    uint32_t n_cranges, cap_cranges;
    cera_cnode *cnodes;
    uint32_t n_cnodes, cap_cnodes;
    cera_part *parts;
    uint32_t n_parts, cap_parts;
    cera_pstate *states;
    uint32_t n_states, cap_states;
    uint32_t *rows;
    uint32_t n_rows, cap_rows;
    cera_edge *edges;
    uint32_t n_edges, cap_edges;
    cera_cell *cells;
    uint32_t n_cells, cap_cells;
    uint32_t *cell_buckets;
    uint32_t n_cell_buckets;
    uint32_t *rule_state;
    uint32_t n_rules, cap_rules; /* 1 + start state of each rule */
    cera_expr *tmp;
    uint32_t n_tmp, cap_tmp; /* scratch lists of running derivatives */
    cera_escapes escapes;    /* how characters and literals are written in the text that is matched */
    cera_rule_body rule_body;
    cera_macro_body macro_body;
    void *owner;
    uint32_t search; /* number of the last liveness search; searching: one runs now */
    bool searching, undecided;
    uint32_t slice_nodes[CERA_N_SLICES]; /* 0: not built */
    cera_expr any_char_cache;            /* every character; 0: not built */
    size_t bytes, max_bytes;
    uint64_t work, max_work; /* derivatives taken since the caller set work to 0, and how many it allows (0: any number) */
    cera_status failed;      /* sticky: memory or a limit; constructors then give EMPTY */
    const char *reason;
};

cera_status cera_automaton_init(cera_automaton *a, cera_escapes escapes, size_t max_bytes);
void cera_automaton_deinit(cera_automaton *a);
void cera_automaton_fail(cera_automaton *a, cera_status s, const char *reason);
/* Memory from here is released with free, not cera_free: large arrays must move by page tables (realloc), for a mask may not
 * wait for a copy. Makes room for one more element (n of capacity) of size bytes; false when the automaton failed. */
bool cera_automaton_grow(cera_automaton *a, void **array, uint32_t n, uint32_t more, uint32_t *capacity, size_t size);

/* automaton_expr.c: constructors; all simplify and share. */
cera_expr cera_expr_cat(cera_automaton *a, cera_expr x, cera_expr y);
cera_expr cera_expr_or(cera_automaton *a, const cera_expr *list, uint32_t n);
cera_expr cera_expr_or2(cera_automaton *a, cera_expr x, cera_expr y);
cera_expr cera_expr_and(cera_automaton *a, const cera_expr *list, uint32_t n);
cera_expr cera_expr_and2(cera_automaton *a, cera_expr x, cera_expr y);
cera_expr cera_expr_not(cera_automaton *a, cera_expr x);
cera_expr cera_expr_rep(cera_automaton *a, cera_expr x, uint32_t n, uint32_t m);
cera_expr cera_expr_call(cera_automaton *a, uint32_t rule);
cera_expr cera_expr_token(cera_automaton *a, uint32_t id, bool negated);
cera_expr cera_expr_macro(cera_automaton *a, uint32_t payload);
/* Bytes as they are. */
cera_expr cera_expr_raw(cera_automaton *a, const char *text, size_t n);
cera_expr cera_expr_text(cera_automaton *a, const char *text);
/* Content of a string (UTF-8), written in the automaton's mode. */
cera_expr cera_expr_literal(cera_automaton *a, const char *text, size_t n);
cera_expr cera_expr_node(cera_automaton *a, cera_node key);
bool cera_expr_nullable(const cera_automaton *a, cera_expr x);

/* automaton_char.c: sets of characters. */
typedef struct cera_class {
    uint32_t (*r)[2];
    uint32_t n, capacity;
    bool failed;
} cera_class; /* inclusive ranges of code points */
void cera_class_add(cera_class *c, uint32_t lo, uint32_t hi);
void cera_class_normalize(cera_class *c); /* sorts and joins */
void cera_class_negate(cera_class *c);
void cera_class_deinit(cera_class *c);
cera_expr cera_expr_class(cera_automaton *a, cera_class *c); /* normalizes c */
cera_expr cera_expr_any_char(cera_automaton *a);
cera_expr cera_expr_byte_range(cera_automaton *a, uint8_t lo, uint8_t hi);
cera_expr cera_expr_escape_of(cera_automaton *a, uint32_t code); /* what may follow a backslash to mean this character */
/* The characters of slice i; ascending ranges. */
const uint32_t (*cera_slice_ranges(int slice, uint32_t *n))[2];

uint32_t cera_slice_node(cera_automaton *a, int slice); /* of the character automaton */

/* automaton_mult.c */
cera_expr cera_expr_multiple(cera_automaton *a, uint32_t divisor, uint32_t scale);
cera_expr cera_mult_derive(cera_automaton *a, cera_expr x, uint8_t byte);
void cera_mult_bounds(uint64_t out[4]);
bool cera_mult_nullable(const cera_node *n);

/* automaton_derive.c */
cera_expr cera_expr_derive(cera_automaton *a, cera_expr x, uint8_t byte);
void cera_expr_bounds(cera_automaton *a, cera_expr x, uint64_t out[4]);
cera_expr cera_expr_clamp(cera_automaton *a, cera_expr x);
/* Characters of the texts of x, least and most (CERA_REP_INF: no bound); false when that is not plain to see. */
bool cera_expr_length(const cera_automaton *a, cera_expr x, uint32_t *least, uint32_t *most);
bool cera_expr_live(cera_automaton *a, cera_expr x); /* whether an expression with AND has any text */
/* Follows the bytes that make x grow most; false when it grows too wide to be followed quickly. Only nested counters are looked
 * at. */
bool cera_expr_tame(cera_automaton *a, cera_expr x);
bool cera_expr_matches(cera_automaton *a, cera_expr x, const char *text, size_t n); /* raw bytes; expressions without calls */
cera_expr cera_expr_expand(cera_automaton *a, cera_expr macro);

/* automaton.c: states, stacks, configurations. */
uint32_t cera_automaton_state(cera_automaton *a, cera_expr x);
uint32_t cera_automaton_fill(cera_automaton *a, uint32_t state, uint32_t cls);
static inline uint32_t cera_automaton_next(cera_automaton *a, uint32_t state, uint8_t byte) {
    const cera_pstate *s = &a->states[state];
    uint32_t cls = a->parts[s->part].map[byte];
    uint32_t to = a->rows[s->row + cls];
    return to != CERA_ROW_UNKNOWN ? to : cera_automaton_fill(a, state, cls);
}
void cera_configs_deinit(cera_configs *c);
bool cera_configs_push(cera_automaton *a, cera_configs *c, uint32_t state, uint32_t cell);
bool cera_configs_copy(cera_configs *to, const cera_configs *from);
/* Follows calls and returns from the first unclosed configuration on, drops those that read no byte. */
void cera_configs_close(cera_automaton *a, cera_configs *c, uint32_t from);
void cera_configs_start(cera_automaton *a, cera_configs *c, uint32_t rule);
/* One byte; false when nothing is left. `to` is overwritten. */
bool cera_configs_step(cera_automaton *a, const cera_configs *from, uint8_t byte, cera_configs *to);
uint32_t cera_automaton_cell(cera_automaton *a, uint32_t state, uint32_t parent);

#endif
