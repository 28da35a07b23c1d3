/* jinja_int.h: what the files of the Jinja interpreter share: values, strings with provenance, syntax tree, render state.
 *
 * A string is a view of a buffer. A buffer knows which of its bytes came from the context's strings (marks), so slicing keeps
 * provenance for nothing, and s + t appends in place when s ends its buffer, so that building a prompt in a loop is linear.
 * Values live in the render's memory (or the template's, for constants) and are never freed one by one. */
#ifndef CERA_TEXT_JINJA_INT_H
#define CERA_TEXT_JINJA_INT_H

#include "base/arena.h"
#include "text/jinja.h"

typedef struct cera_jmem {
    cera_arena *arena;
    char *at;
    size_t left;
} cera_jmem;

void *cera_jinja_alloc(cera_jmem *m, size_t count, size_t size); /* zeroed, aligned to 16; NULL when out of memory */

typedef struct cera_jmark {
    uint32_t start, end;
} cera_jmark;

typedef struct cera_jbuf {
    char *data;
    uint32_t used, capacity; /* capacity 0: not ours to grow */
    cera_jmark *marks;       /* [n_marks] sorted, disjoint, not adjacent: bytes that came from the user */
    uint32_t n_marks, cap_marks;
    cera_jmark first; /* storage of the first mark: most buffers have at most one */
    bool ascii;       /* no byte above 0x7f */
} cera_jbuf;

typedef enum cera_jkind {
    J_MISSING,
    J_UNDEFINED,
    J_NONE,
    J_BOOL,
    J_INT,
    J_BIGINT, /* beyond 64 bits: text only */
    J_FLOAT,
    J_STR,
    J_LIST,
    J_TUPLE,
    J_DICT,
    J_VIEW, /* dict.keys() and its like; sub says which */
    J_RANGE,
    J_ITER, /* what map, select, items give: passed through once */
    J_NAMESPACE,
    J_LOOP,
    J_MACRO,
    J_BUILTIN,
    J_METHOD,
    J_CYCLER,
    J_JOINER
} cera_jkind;

enum { J_VIEW_KEYS, J_VIEW_VALUES, J_VIEW_ITEMS };
enum { J_MARKUP = 1 }; /* flag of a string: made by |safe or |escape */

typedef struct cera_jval {
    uint8_t kind, flags;
    uint16_t sub;
    uint32_t off, n; /* string: bytes [off, off + n) of the buffer */
    union {
        bool b;
        int64_t i;
        double f;
        cera_jbuf *buf;
        struct cera_jlist *list;
        struct cera_jdict *dict;
        struct cera_jundef *undef;
        struct cera_jrange *range;
        struct cera_jiter *iter;
        struct cera_jloop *loop;
        struct cera_jmacro *macro;
        struct cera_jmethod *method;
        struct cera_jcycler *cycler;
        const struct cera_jbuiltin *builtin;
    } u;
} cera_jval;

typedef struct cera_jlist {
    cera_jval *items;
    uint32_t n, capacity;
} cera_jlist;

typedef struct cera_jdict {
    cera_jval *keys, *values;
    uint32_t n, capacity;
    uint32_t *index; /* [index_size] entry + 1, open addressing; NULL while small */
    uint32_t index_size;
} cera_jdict;

typedef struct cera_jundef {
    const char *hint; /* a whole message, or NULL */
    bool unsafe;      /* an attribute the sandbox forbids */
    cera_jval name;
    const char *object; /* type of the object that lacks it, NULL for a variable */
} cera_jundef;

typedef struct cera_jrange {
    int64_t start, stop, step, n;
} cera_jrange;

/* Iteration over any iterable. */
typedef struct cera_jiter {
    cera_jval over;
    uint32_t at, byte;
    struct cera_jnode *filter_for; /* the loop whose `if` filters the items, or NULL */
    struct cera_jact *act;
} cera_jiter;

typedef struct cera_jmethod {
    cera_jval self;
    const struct cera_jbuiltin *builtin;
} cera_jmethod;

typedef struct cera_jcycler {
    cera_jlist items;
    uint32_t at;
    cera_jval separator; /* joiner */
    bool used;
} cera_jcycler;

typedef struct cera_jloop {
    cera_jiter it;
    cera_jval current, before, after, changed; /* J_MISSING when there is none */
    int64_t index0, length;                    /* length -1: not known yet */
    int64_t depth0;
    const struct cera_jnode *recurse; /* the loop's node when it is recursive */
    struct cera_jact *act;
} cera_jloop;

typedef struct cera_jmacro {
    const struct cera_jnode *node;
    struct cera_jact *act; /* where it was defined */
    cera_jval name;
} cera_jmacro;

/* ---- syntax tree ------------------------------------------------------------------------------------------------ */

typedef enum cera_jtype {
    N_CONST,
    N_NAME,
    N_NSREF,
    N_TUPLE,
    N_LIST,
    N_DICT,
    N_COND,
    N_AND,
    N_OR,
    N_NOT,
    N_COMPARE,
    N_BINARY,
    N_CONCAT,
    N_NEG,
    N_POS,
    N_GETATTR,
    N_GETITEM,
    N_SLICE,
    N_CALL,
    N_FILTER,
    N_TEST,
    /* statements */
    N_DATA,
    N_PRINT,
    N_IF,
    N_FOR,
    N_MACRO,
    N_CALLBLOCK,
    N_FILTERBLOCK,
    N_SET,
    N_SETBLOCK,
    N_WITH,
    N_SCOPE,
    N_BREAK,
    N_CONTINUE,
    N_BODY
} cera_jtype;

typedef enum cera_jop {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOTIN
} cera_jop;

typedef enum cera_jload { LOAD_PARAMETER, LOAD_RESOLVE, LOAD_ALIAS, LOAD_UNDEFINED } cera_jload;

/* What a scope does to a variable when it is entered. */
typedef struct cera_jentry {
    cera_jload load;
    uint32_t slot;
    uint32_t from_depth, from_slot; /* LOAD_ALIAS */
    cera_jval name;                 /* LOAD_RESOLVE */
} cera_jentry;

typedef struct cera_jscope {
    cera_jentry *entries;
    uint32_t n;
} cera_jscope;

typedef struct cera_jfunc {
    uint32_t n_slots;
} cera_jfunc;

/* Which fields a node uses is said beside its case in the parser. */
typedef struct cera_jnode {
    uint8_t type, op;
    bool flag;
    uint16_t height; /* of the expression's tree */
    uint32_t line;
    uint32_t n, n2; /* kids; the last n2 of a call's kids are keywords */
    struct cera_jnode **kids;
    struct cera_jnode *a, *b, *c;
    struct cera_jnode *star, *starstar; /* call: *args, **kwargs */
    struct cera_jnode *test_target;     /* loop with a filter: the target, with places in the filter's own variables */
    cera_jval value;                    /* constant, or name */
    cera_jval *names;                   /* keywords of a call, [n2] */
    uint32_t depth, slot;               /* variable: functions outwards, place there */
    const struct cera_jbuiltin *builtin;
    cera_jfunc *func;                                           /* macro, call block, recursive loop: its own activation */
    cera_jfunc *test_func;                                      /* loop with a filter */
    cera_jscope scope, scope2, scope3;                          /* body, else, loop filter */
    uint32_t loop_slot, caller_slot, kwargs_slot, varargs_slot; /* slot + 1, or 0 */
} cera_jnode;

struct cera_jinja {
    cera_jmem mem;
    cera_jnode *root;
    cera_jfunc func;
    cera_jval *names; /* every identifier and constant string, [n_names] */
    uint32_t n_names, cap_names;
    const char *text;
    size_t size;
};

/* ---- lexer ------------------------------------------------------------------------------------------------------ */

typedef enum cera_jtok {
    T_EOF,
    T_DATA,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_VAR_BEGIN,
    T_VAR_END,
    T_NAME,
    T_STRING,
    T_INTEGER,
    T_FLOAT,
    T_ADD,
    T_SUB,
    T_DIV,
    T_FLOORDIV,
    T_MUL,
    T_MOD,
    T_POW,
    T_TILDE,
    T_LBRACKET,
    T_RBRACKET,
    T_LPAREN,
    T_RPAREN,
    T_LBRACE,
    T_RBRACE,
    T_EQ,
    T_NE,
    T_GT,
    T_GTEQ,
    T_LT,
    T_LTEQ,
    T_ASSIGN,
    T_DOT,
    T_COLON,
    T_PIPE,
    T_COMMA,
    T_SEMICOLON
} cera_jtok;

typedef struct cera_jtoken {
    uint8_t type;
    uint32_t line;
    cera_jval value; /* data, name, string, number */
} cera_jtoken;

typedef struct cera_jtokens {
    cera_jtoken *items;
    uint32_t n, capacity;
} cera_jtokens;

cera_status cera_jinja_lex(cera_jinja *t, cera_jtokens *out, cera_error *e);
const char *cera_jinja_token_text(uint8_t type);

/* ---- parser ----------------------------------------------------------------------------------------------------- */

typedef struct cera_jparser {
    cera_jinja *t;
    cera_jtokens tokens;
    uint32_t at;
    uint32_t expr_depth, block_depth;
    cera_error *e;
    bool failed;
    cera_status status;
} cera_jparser;

/* NULL after an error (which is in p->e). */
void *cera_jinja_parse_fail(cera_jparser *p, uint32_t line, const char *format, ...) CERA_PRINTF(3, 4);
cera_jtoken *cera_jinja_tok(cera_jparser *p);
cera_jtoken *cera_jinja_next(cera_jparser *p);
bool cera_jinja_is_name(cera_jparser *p, const char *name);
bool cera_jinja_skip_name(cera_jparser *p, const char *name);
bool cera_jinja_skip(cera_jparser *p, uint8_t type);
cera_jtoken *cera_jinja_expect(cera_jparser *p, uint8_t type);
cera_jnode *cera_jinja_node(cera_jparser *p, uint8_t type, uint32_t line);
bool cera_jinja_add_kid(cera_jparser *p, cera_jnode *n, cera_jnode *kid);
cera_jnode *cera_jinja_parse_expr(cera_jparser *p, bool with_cond);
/* end_name: a name that ends the tuple, or NULL. */
cera_jnode *cera_jinja_parse_tuple(cera_jparser *p, bool targets, bool with_cond, const char *end_name, bool parenthesised);
cera_jnode *cera_jinja_parse_filters(cera_jparser *p, cera_jnode *node, bool start_inline);
cera_jnode *cera_jinja_parse_body(cera_jparser *p);
bool cera_jinja_is_statement_end(cera_jparser *p);
cera_status cera_jinja_resolve(cera_jinja *t, cera_error *e);

/* ---- render ----------------------------------------------------------------------------------------------------- */

/* Variables of one running function; outer is where the function was defined. */
typedef struct cera_jact {
    struct cera_jact *outer;
    cera_jval *slots;
} cera_jact;

typedef struct cera_jrender {
    const cera_jinja *t;
    cera_jmem mem;
    const cera_jinja_options *options;
    size_t max_bytes;
    int64_t steps_left, next_clock_check;
    struct timespec deadline;
    uint32_t depth, line;
    cera_jbuf *out;
    cera_jdict *context;
    cera_error *e;
    cera_status status; /* CERA_OK until an error is raised */
} cera_jrender;

typedef struct cera_jargs {
    const cera_jval *pos;
    uint32_t n_pos;
    const cera_jval *names, *values; /* keywords */
    uint32_t n_names;
} cera_jargs;

enum { J_MAX_PARAMS = 8 };

/* A function, method, filter or test written in C. params: names of its parameters separated by commas, '!' before a required
 * one; NULL: it takes the arguments as they are. p: [J_MAX_PARAMS] values by place, J_MISSING where not given. */
typedef struct cera_jbuiltin {
    const char *name;
    bool (*call)(cera_jrender *r, const cera_jval *self, const cera_jargs *args, const cera_jval *p, cera_jval *out);
    const char *params;
} cera_jbuiltin;

/* All of these return false after raising an error. */
bool cera_jinja_raise(cera_jrender *r, const char *type, const char *format, ...) CERA_PRINTF(3, 4);
bool cera_jinja_limit(cera_jrender *r, const char *format, ...) CERA_PRINTF(2, 3);
bool cera_jinja_no_memory(cera_jrender *r);
bool cera_jinja_charge(cera_jrender *r, uint64_t steps);
bool cera_jinja_enter(cera_jrender *r); /* one level deeper; pair with r->depth-- */
bool cera_jinja_undefined_error(cera_jrender *r, const cera_jval *v);

/* Buffers and strings (jinja_str.c). */
bool cera_jinja_buf_reserve(cera_jrender *r, cera_jbuf *b, size_t more);
bool cera_jinja_buf_add(cera_jrender *r, cera_jbuf *b, const char *text, size_t n, bool user);
bool cera_jinja_buf_text(cera_jrender *r, cera_jbuf *b, const char *text);
bool cera_jinja_buf_add_str(cera_jrender *r, cera_jbuf *b, const cera_jval *s);
cera_jbuf *cera_jinja_buf_new(cera_jrender *r);
cera_jval cera_jinja_buf_value(cera_jbuf *b);                                  /* the whole buffer as a string */
bool cera_jinja_user_at(const cera_jval *s, uint32_t byte);                    /* byte counts from the view's start */
bool cera_jinja_text_value(cera_jrender *r, const char *text, cera_jval *out); /* copies */
cera_jval cera_jinja_sub(const cera_jval *s, uint32_t from, uint32_t to);      /* bytes of the view */
uint32_t cera_jinja_str_chars(const cera_jval *s);
uint32_t cera_jinja_char_offset(const cera_jval *s, uint32_t index); /* byte of a character, n past the end */
bool cera_jinja_concat(cera_jrender *r, const cera_jval *a, const cera_jval *b, cera_jval *out);
bool cera_jinja_escape(cera_jrender *r, const cera_jval *s, cera_jval *out); /* HTML, to markup */
/* First place of needle at or after from (bytes), or -1. */
int64_t cera_jinja_find(const cera_jval *s, const cera_jval *needle, uint32_t from);
int64_t cera_jinja_rfind(const cera_jval *s, const cera_jval *needle);
static inline const char *cera_jinja_chars(const cera_jval *s) { return s->u.buf->data + s->off; }
bool cera_jinja_str_is(const cera_jval *s, const char *text);

/* Values (jinja_value.c). */
static inline cera_jval cera_jinja_int(int64_t i) { return (cera_jval){.kind = J_INT, .u.i = i}; }
static inline cera_jval cera_jinja_bool(bool b) { return (cera_jval){.kind = J_BOOL, .u.b = b}; }
static inline cera_jval cera_jinja_float(double f) { return (cera_jval){.kind = J_FLOAT, .u.f = f}; }
static inline cera_jval cera_jinja_none(void) { return (cera_jval){.kind = J_NONE}; }
const char *cera_jinja_type_name(const cera_jval *v);
bool cera_jinja_truth(const cera_jval *v);
bool cera_jinja_equal(cera_jrender *r, const cera_jval *a, const cera_jval *b, bool *out);
bool cera_jinja_order(cera_jrender *r, const char *op, const cera_jval *a, const cera_jval *b, int *out); /* -1 0 1, 2: NaN */
bool cera_jinja_contains(cera_jrender *r, const cera_jval *item, const cera_jval *in, bool *out);
bool cera_jinja_len(cera_jrender *r, const cera_jval *v, int64_t *out);
bool cera_jinja_number(const cera_jval *v, double *out);  /* bool, int, float */
bool cera_jinja_as_int(const cera_jval *v, int64_t *out); /* bool, int */
cera_jlist *cera_jinja_list_new(cera_jrender *r, uint32_t capacity);
bool cera_jinja_list_add(cera_jrender *r, cera_jlist *l, const cera_jval *v);
cera_jval cera_jinja_list_value(cera_jlist *l, uint8_t kind);
bool cera_jinja_pair(cera_jrender *r, const cera_jval *a, const cera_jval *b, cera_jval *out); /* a tuple of two */
cera_jdict *cera_jinja_dict_new(cera_jrender *r, uint32_t capacity);
bool cera_jinja_dict_set(cera_jrender *r, cera_jdict *d, const cera_jval *key, const cera_jval *value);
bool cera_jinja_dict_find(cera_jrender *r, const cera_jdict *d, const cera_jval *key, cera_jval **out); /* *out NULL: absent */
cera_jval *cera_jinja_dict_get_text(const cera_jdict *d, const char *name, size_t n);
bool cera_jinja_undefined(cera_jrender *r, const cera_jval *object, const cera_jval *name, cera_jval *out);
bool cera_jinja_undefined_hint(cera_jrender *r, const char *hint, cera_jval *out); /* keeps hint */
bool cera_jinja_iter(cera_jrender *r, const cera_jval *over, cera_jiter *out);
bool cera_jinja_iter_next(cera_jrender *r, cera_jiter *it, cera_jval *out, bool *more);
bool cera_jinja_to_list(cera_jrender *r, const cera_jval *v, cera_jlist **out);                     /* a fresh list */
bool cera_jinja_sort(cera_jrender *r, cera_jval *items, cera_jval *keys, uint32_t n, bool reverse); /* stable, by keys */
bool cera_jinja_from_json(cera_jrender *r, const cera_json *v, cera_text_view top, cera_text_view key, cera_jval *out);

/* Printing (jinja_print.c). */
bool cera_jinja_print(cera_jrender *r, cera_jbuf *b, const cera_jval *v); /* str(v) */
bool cera_jinja_repr(cera_jrender *r, cera_jbuf *b, const cera_jval *v);
bool cera_jinja_to_str(cera_jrender *r, const cera_jval *v, cera_jval *out); /* str(v); markup stays markup (soft_str) */
bool cera_jinja_json(cera_jrender *r, const cera_jval *v, const cera_jval *p,
                     cera_jval *out); /* p: ensure_ascii, indent, separators, sort_keys */
enum { CERA_JINJA_FLOAT_TEXT = 40 };
int cera_jinja_float_text(double f, char out[CERA_JINJA_FLOAT_TEXT]); /* as Python's repr */

/* Formatting (jinja_format.c). */
bool cera_jinja_percent(cera_jrender *r, const cera_jval *format, const cera_jval *args, cera_jval *out);
bool cera_jinja_str_format(cera_jrender *r, const cera_jval *format, const cera_jargs *args, cera_jval *out);
bool cera_jinja_strftime(cera_jrender *r, const struct tm *now, const cera_jval *format, cera_jval *out);

/* Evaluation (jinja_eval.c, jinja_exec.c, jinja_call.c, jinja_ops.c). */
bool cera_jinja_eval(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out);
typedef enum cera_jflow { FLOW_ERROR, FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE } cera_jflow;
cera_jflow cera_jinja_exec(cera_jrender *r, cera_jact *act, const cera_jnode *n);
bool cera_jinja_enter_scope(cera_jrender *r, cera_jact *act, const cera_jscope *s);
cera_jact *cera_jinja_act_new(cera_jrender *r, const cera_jfunc *f, cera_jact *outer);
bool cera_jinja_assign(cera_jrender *r, cera_jact *act, const cera_jnode *target, const cera_jval *v);
bool cera_jinja_run_loop(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *over, int64_t depth0);
bool cera_jinja_filter_item(cera_jrender *r, cera_jiter *it, const cera_jval *item, bool *keep);
bool cera_jinja_binary(cera_jrender *r, cera_jop op, const cera_jval *a, const cera_jval *b, cera_jval *out);
bool cera_jinja_compare(cera_jrender *r, cera_jop op, const cera_jval *a, const cera_jval *b, bool *out);
bool cera_jinja_getattr(cera_jrender *r, const cera_jval *v, const cera_jval *name, cera_jval *out);
bool cera_jinja_getitem(cera_jrender *r, const cera_jval *v, const cera_jval *key, cera_jval *out);
bool cera_jinja_slice(cera_jrender *r, const cera_jval *v, const cera_jval bounds[3], cera_jval *out);
bool cera_jinja_call(cera_jrender *r, const cera_jval *f, const cera_jargs *args, cera_jval *out);
/* n: a call block or {% generation %}; its output. */
bool cera_jinja_call_block(cera_jrender *r, cera_jact *act, const cera_jnode *n, cera_jval *out);
/* n: a filter; body: what the first of a chain of filters gets, NULL when its node says it. */
bool cera_jinja_apply_filter(cera_jrender *r, cera_jact *act, const cera_jnode *n, const cera_jval *body, cera_jval *out);
bool cera_jinja_call_macro(cera_jrender *r, const cera_jmacro *m, const cera_jargs *args, cera_jval *out);
bool cera_jinja_call_builtin(cera_jrender *r, const cera_jbuiltin *b, const cera_jval *self, const cera_jargs *args,
                             cera_jval *out);
bool cera_jinja_loop_attr(cera_jrender *r, cera_jloop *l, const cera_jval *name, cera_jval *out, bool *found);
bool cera_jinja_loop_peek(cera_jrender *r, cera_jloop *l);
bool cera_jinja_loop_length(cera_jrender *r, cera_jloop *l, int64_t *out);

/* Names of functions in C; NULL when there is none. */
const cera_jbuiltin *cera_jinja_filter(const char *name, size_t n);
const cera_jbuiltin *cera_jinja_test(const char *name, size_t n);
const cera_jbuiltin *cera_jinja_global(const char *name, size_t n);
const cera_jbuiltin *cera_jinja_method(const cera_jval *self, const char *name, size_t n);
const cera_jbuiltin *cera_jinja_str_method(const char *name, size_t n);
const cera_jbuiltin *cera_jinja_lookup(const cera_jbuiltin *table, size_t count, const char *name, size_t n);
bool cera_jinja_unsafe_attr(const cera_jval *self, const char *name, size_t n);
/* The filters of sequences. */
extern const cera_jbuiltin cera_jinja_seq_filters[];
extern const size_t cera_jinja_n_seq_filters;
bool cera_jinja_strip(cera_jrender *r, const cera_jval *s, const cera_jval *chars, int sides,
                      cera_jval *out); /* 1 left, 2 right */
bool cera_jinja_replace(cera_jrender *r, const cera_jval *s, const cera_jval *from, const cera_jval *to, int64_t count,
                        cera_jval *out);
bool cera_jinja_splitlines(cera_jrender *r, const cera_jval *s, bool keep, cera_jlist **out);
/* which: 'u' upper, 'l' lower, 't' title, 'c' capitalize, 's' swapcase, 'f' casefold */
bool cera_jinja_case(cera_jrender *r, const cera_jval *s, char which, cera_jval *out);

/* Characters (jinja_char.c), as Python's str methods see them. */
enum {
    JC_ALPHA = 1,
    JC_DECIMAL = 2,
    JC_DIGIT = 4,
    JC_NUMERIC = 8,
    JC_UPPER = 16,
    JC_LOWER = 32,
    JC_TITLE = 64,
    JC_PRINTABLE = 128
};
unsigned cera_jinja_char_class(uint32_t code);
bool cera_jinja_is_space(uint32_t code);
bool cera_jinja_is_line_break(uint32_t code);
/* to: 'u', 'l', 't' or 'f'. Writes 1..3 characters, returns how many. */
int cera_jinja_char_case(uint32_t code, char to, uint32_t out[3]);
/* The character at byte `at` of a string that is valid UTF-8; *size gets its length. */
uint32_t cera_jinja_char_at(const cera_jval *s, uint32_t at, uint32_t *size);

#endif
