/* pretokenize_int.h: a compiled stage, shared by the compiler (pretokenize_compile.c) and the matcher (pretokenize.c).
 *
 * A stage is a graph of nodes without cycles: every node names its continuation, so alternatives that share a tail share its
 * nodes. Repetition of one class is a single node; repetition of a group is an atomic loop. Recursion in the matcher is
 * therefore bounded by the pattern, never by the text. */
#ifndef CERA_TEXT_PRETOKENIZE_INT_H
#define CERA_TEXT_PRETOKENIZE_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "text/pretokenize.h"

enum {
    PRETOK_MAX_CLASSES = 64,
    PRETOK_MAX_RANGES = 512,
    PRETOK_MAX_NODES = 512,
    PRETOK_MAX_ALTS = 512,
    PRETOK_MAX_TOP = 32,
    PRETOK_MAX_DEPTH = 16
};
enum { PRETOK_MANY = 0xffff }; /* no upper bound */

typedef enum pretok_op { PRETOK_ACCEPT, PRETOK_RUN, PRETOK_ALT, PRETOK_LOOP, PRETOK_LOOK, PRETOK_END } pretok_op;

/* Members: a category in the mask, or Han when asked, or a range; then negated; then without the members of class minus. */
typedef struct pretok_class {
    uint32_t categories;
    uint32_t range, n_ranges; /* in stage->ranges */
    uint32_t range_max;       /* largest code point of the ranges, 0 when there are none */
    int16_t minus;            /* class, -1: none */
    bool han, negated;
} pretok_class;

typedef struct pretok_node {
    uint8_t op;
    uint8_t cls;       /* RUN */
    bool negative;     /* LOOK */
    bool possessive;   /* RUN: no giving back */
    uint16_t min, max; /* RUN, LOOP */
    uint16_t next;
    uint16_t body; /* LOOP, LOOK; ALT: first entry of stage->alts */
    uint16_t n_alts;
    uint16_t memo; /* RUN without an upper bound: index of its memo */
} pretok_node;

/* What a stage does. The digit rules are regexes with look-ahead over the whole rest of a number, which cost quadratic time
 * when run as written; each is done in one pass instead. */
typedef enum pretok_kind {
    PRETOK_REGEX,
    PRETOK_DIGITS_BOUNDARY, /* \d{1,3}(?=(?:\d{3})*\b): groups of three from the right, in numbers that end at a word boundary
                             */
    PRETOK_DIGITS_SPLIT,    /* (?=(\d{3})+(?!\d)): a cut before every third digit from the right */
    PRETOK_NUMBERS_RIGHT    /* numbers (\p{N}) cut in groups of three from the right */
} pretok_kind;

typedef struct pretok_stage {
    pretok_kind kind;
    uint64_t ascii[128];                 /* bit k: the character is in class k */
    uint32_t first_ascii[128];           /* bit k: top alternative k may begin with the character */
    uint32_t first_category[32];         /* the same for characters above ASCII, by category */
    uint16_t top[PRETOK_MAX_TOP], n_top; /* nodes of the top alternatives */
    uint16_t n_classes, n_nodes, n_alts, n_memos;
    uint32_t n_ranges;
    pretok_class classes[PRETOK_MAX_CLASSES];
    uint32_t ranges[PRETOK_MAX_RANGES][2];
    pretok_node nodes[PRETOK_MAX_NODES];
    uint16_t alts[PRETOK_MAX_ALTS];
} pretok_stage;

struct cera_pretok {
    size_t n_stages;
    pretok_stage stages[];
};

/* Whether code, with these properties (unicode.h), is in class k. */
bool cera_pretok_has(const pretok_stage *s, unsigned k, uint32_t code, uint8_t properties);
cera_status cera_pretok_compile(const char *pattern, pretok_stage *s, cera_error *e);

#endif
