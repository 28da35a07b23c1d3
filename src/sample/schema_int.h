/* schema_int.h: JSON Schema to the automaton, in three steps.
 * 1. A schema, or a conjunction of schemas (a goal), is brought to a normal form: for each JSON type, what values of that type
 * may be. Booleans of schemas (allOf, anyOf, oneOf, not, if) are exact operations on normal forms; children are goals by
 * number, not yet looked at.
 * 2. All goals that can be reached are normalised (so that what is unsupported is refused at compile time), and those without
 * any instance are found.
 * 3. Every goal is a rule of the automaton; objects and arrays in progress are macros that are written out when first reached.
 */
#ifndef CERA_SAMPLE_SCHEMA_INT_H
#define CERA_SAMPLE_SCHEMA_INT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/view.h"
#include "sample/automaton_int.h"

typedef uint32_t cera_goal;
enum { CERA_GOAL_TRUE = 0, CERA_GOAL_FALSE = 1 };
#define CERA_NO_MAX UINT64_MAX

/* A decimal number: 0.d1 d2 ... dn * 10^exp with d1 and dn not zero; zero has no digits. */
typedef struct cera_decimal {
    bool negative;
    const char *digits;
    uint32_t n;
    int64_t exp;
} cera_decimal;

typedef struct cera_mult {
    uint32_t divisor, scale;
    bool negated;
} cera_mult; /* multiple of divisor / 10^scale */
typedef struct cera_num {
    bool has_lo, lo_open, has_hi, hi_open;
    int8_t integer; /* 1: integers, -1: no integers, 0: either */
    cera_decimal lo, hi;
    uint32_t n_mults;
    const cera_mult *mults;
} cera_num;

typedef struct cera_contains {
    cera_goal goal;
    uint64_t from, min, max;
} cera_contains;
typedef struct cera_arr {
    uint32_t n_prefix, n_contains;
    const cera_goal *prefix;
    cera_goal rest;
    uint64_t min, max;
    const cera_contains *contains;
    bool unique;
} cera_arr;

/* A set of member names: those that match a pattern, or the others of a set of names and patterns. */
typedef struct cera_keyset {
    bool others;
    uint32_t n_names, n_patterns;
    const cera_text_view *names; /* others: these are not in the set */
    const cera_expr *patterns;   /* others: nor what matches these; else patterns[0] alone */
} cera_keyset;
typedef struct cera_prop {
    cera_text_view name;
    cera_goal goal;
} cera_prop;
typedef struct cera_rule_for {
    cera_keyset set;
    cera_goal goal;
} cera_rule_for; /* all (or, in exists, some) members in the set */
typedef struct cera_obj {
    uint32_t n_props, n_pats, n_required, n_exists;
    const cera_prop *props;
    const cera_rule_for *pats, *exists;
    const cera_text_view *required;
    uint64_t min, max;
} cera_obj;

typedef struct cera_nf {
    bool null;
    uint8_t bools; /* 1: false, 2: true */
    uint32_t n_num, n_arr, n_obj;
    cera_expr str; /* content of strings, between the quotes */
    const cera_num *num;
    const cera_arr *const *arr;
    const cera_obj *const *obj;
} cera_nf;

typedef enum cera_lit_kind { CERA_LIT_FALSE, CERA_LIT_SCHEMA, CERA_LIT_CONST, CERA_LIT_NOT_GOAL } cera_lit_kind;
typedef struct cera_lit {
    cera_lit_kind kind;
    uint32_t goal, next;   /* of NOT_GOAL; hash chain */
    const cera_json *node; /* of SCHEMA and CONST */
    const cera_nf *nf;
    bool busy;
} cera_lit;

struct cera_shape;
typedef struct cera_goal_info {
    const uint32_t *lits; /* ascending */
    uint32_t n_lits, next;
    const cera_nf *nf;
    bool busy, explored, productive;
    cera_expr number;               /* of step 2 */
    uint32_t first_shape, n_shapes; /* arrays and objects, in shapes */
    uint8_t empty;                  /* probe: 0 unknown, 1 busy, 2 empty, 3 not */
} cera_goal_info;

typedef struct cera_resource {
    const char *uri;
    const cera_json *root;
} cera_resource;
typedef struct cera_anchor {
    cera_text_view name;
    uint32_t resource;
    const cera_json *node;
    bool dynamic;
} cera_anchor;
typedef struct cera_node_base {
    const cera_json *node;
    uint32_t resource;
} cera_node_base;

typedef enum cera_draft {
    CERA_DRAFT_NONE,
    CERA_DRAFT_4,
    CERA_DRAFT_6,
    CERA_DRAFT_7,
    CERA_DRAFT_2019,
    CERA_DRAFT_2020
} cera_draft;

typedef struct cera_shape_key {
    cera_text_view name;
    cera_goal goal;
    bool required;
    uint32_t exists;
    cera_expr head;
} cera_shape_key;
typedef struct cera_shape_rest {
    cera_expr name;
    cera_goal goal;
    uint32_t exists;
    cera_expr head;
} cera_shape_rest;
typedef struct cera_shape { /* an array or object whose children are known */
    bool is_object, dead;
    uint64_t min, max;
    uint32_t n_keys, n_rest, n_exists, n_required; /* object */
    cera_shape_key *keys;
    cera_shape_rest *rest;
    const cera_rule_for *exists;
    const cera_arr *arr; /* array */
    uint64_t limit;      /* no element at or after this index can exist */
    uint32_t n_universe; /* unique: the values, as goals */
    cera_goal *universe;
} cera_shape;

typedef enum cera_macro_kind { CERA_M_FIRST, CERA_M_NEXT } cera_macro_kind;
typedef struct cera_macro {
    cera_macro_kind kind;
    uint32_t shape, next;
    uint32_t position;       /* ordered objects: first key that may still come; arrays: index, no further than it matters */
    uint64_t count;          /* objects with bounds: members so far */
    uint32_t exists;         /* bit i: satisfied; arrays: unused */
    uint32_t counts[4];      /* arrays: matches of contains i so far */
    uint32_t n_words, words; /* seen keys or values, in the words pool */
} cera_macro;

typedef struct cera_schema {
    cera_automaton *a;
    cera_arena *arena;
    const cera_json *root;
    bool any_order, compact;
    cera_draft draft;
    cera_lit *lits;
    uint32_t n_lits, cap_lits;
    cera_goal_info *goals;
    uint32_t n_goals, cap_goals;
    cera_shape *shapes;
    uint32_t n_shapes, cap_shapes;
    cera_macro *macros;
    uint32_t n_macros, cap_macros;
    uint64_t *words;
    uint32_t n_words, cap_words;
    cera_resource *resources;
    uint32_t n_resources, cap_resources;
    cera_anchor *anchors;
    uint32_t n_anchors, cap_anchors;
    cera_node_base *bases;
    uint32_t n_bases, cap_bases;
    uint32_t lit_buckets[1024], goal_buckets[1024], macro_buckets[1024];
    cera_nf yes, no;
    cera_expr all_text, ws, ws_after, integer;
    cera_goal root_goal;
    const cera_json *here; /* the schema that is being read, for messages */
    int depth, probes;
    cera_error *e;
    cera_status status;
} cera_schema;

/* schema.c: compile, goals, exploration. Rule 0 of the automaton is the document, rule 1 + g goal g. */
cera_status cera_schema_compile(cera_automaton *a, const cera_json *root, bool any_order, bool compact, cera_schema **out,
                                cera_error *e);
void cera_schema_destroy(cera_schema *s);
bool cera_schema_is_empty(const cera_schema *s);
cera_status cera_schema_fail(cera_schema *s, cera_status status, const cera_json *node, const char *keyword,
                             const char *reason);
bool cera_schema_ok(cera_schema *s);
void *cera_schema_alloc(cera_schema *s, size_t n, size_t size);
uint32_t cera_schema_lit(cera_schema *s, cera_lit_kind kind, const cera_json *node, cera_goal goal);
cera_goal cera_goal_of(cera_schema *s, uint32_t lit);
cera_goal cera_goal_schema(cera_schema *s, const cera_json *node);
cera_goal cera_goal_const(cera_schema *s, const cera_json *node);
cera_goal cera_goal_and(cera_schema *s, cera_goal x, cera_goal y);
cera_goal cera_goal_not(cera_schema *s, cera_goal x);
const cera_nf *cera_goal_nf(cera_schema *s, cera_goal g);
bool cera_goal_surely_empty(cera_schema *s, cera_goal g); /* a probe of bounded depth: false may mean "do not know" */
const cera_json *cera_goal_universe(cera_schema *s, cera_goal g,
                                    bool *is_const); /* the enum or const that its members come from */

/* schema_nf.c */
cera_nf cera_nf_and(cera_schema *s, const cera_nf *x, const cera_nf *y);
cera_nf cera_nf_or(cera_schema *s, const cera_nf *x, const cera_nf *y);
cera_nf cera_nf_not(cera_schema *s, const cera_nf *x);
bool cera_nf_is_empty(cera_schema *s, const cera_nf *x);
const cera_nf *cera_nf_keep(cera_schema *s, cera_nf x);
bool cera_keyset_has(cera_schema *s, const cera_keyset *set, cera_text_view name);

/* schema_keywords.c, schema_object.c: one schema's or constant's normal form. */
const cera_nf *cera_schema_nf(cera_schema *s, const cera_json *node);
const cera_nf *cera_const_nf(cera_schema *s, const cera_json *value);
cera_obj cera_schema_object(cera_schema *s, const cera_json *node);
bool cera_schema_count(cera_schema *s, const cera_json *node, const char *keyword, uint64_t *out); /* false: absent */
cera_nf cera_nf_object(cera_schema *s, cera_obj o); /* this for objects, anything else for other types */

/* schema_number.c */
bool cera_decimal_parse(cera_schema *s, cera_text_view text, cera_decimal *out);
int cera_decimal_compare(const cera_decimal *x, const cera_decimal *y);
bool cera_decimal_is_integer(const cera_decimal *x);
cera_expr cera_number_expr(cera_schema *s, const cera_num *list, uint32_t n);

/* schema_ref.c */
void cera_schema_index(cera_schema *s);
const cera_json *cera_schema_resolve(cera_schema *s, const cera_json *node, const cera_json *ref,
                                     const char *keyword); /* NULL: failed */

/* schema_format.c: the content of strings in this format; EMPTY when the name is none that is asserted. */
cera_expr cera_schema_format(cera_schema *s, cera_text_view name, bool *known, bool *supported);

/* schema_shape.c, schema_write.c */
void cera_shape_object(cera_schema *s, const cera_obj *o);
void cera_shape_array(cera_schema *s, const cera_arr *arr);
bool cera_shape_productive(cera_schema *s, const cera_shape *shape);
void cera_shape_prune(cera_schema *s, cera_shape *shape);
/* Whether an array with contains that stands at m can still be finished. */
bool cera_array_can_finish(cera_schema *s, const cera_shape *shape, const cera_macro *m);
bool cera_object_can_finish(cera_schema *s, const cera_shape *o);
cera_goal cera_schema_element(cera_schema *s, const cera_arr *x, uint64_t index, uint32_t mask);
cera_expr cera_schema_rule(void *owner, uint32_t rule);
cera_expr cera_schema_macro(void *owner, uint32_t payload);

#endif
