/* mask_int.h: which tokens of a vocabulary may come next. */
#ifndef CERA_SAMPLE_MASK_INT_H
#define CERA_SAMPLE_MASK_INT_H

#include "sample/automaton_int.h"
#include "sample/trie.h"

enum { CERA_MASK_CACHE = 64, CERA_MASK_KEY = 8 };

typedef struct cera_mask_entry {
    uint64_t tokens; /* number of the vocabulary's index; 0: empty */
    uint32_t n;
    bool complete;
    cera_config key[CERA_MASK_KEY];
    uint32_t *bits;
    uint32_t n_words;
} cera_mask_entry;

/* Where a prefix of tokens leads. Inside a lexeme all configurations share one state, and only their stacks differ: state is
 * that state, set holds the stacks. Else state is 0 and set holds the configurations. */
typedef struct cera_place {
    uint32_t state, set;
} cera_place;
#define CERA_PLACE_DEAD ((cera_place){0, UINT32_MAX})

typedef struct cera_mask_set {
    uint32_t first, n, row, next;
    bool complete;
} cera_mask_set; /* configurations in pool; row: 1 + row */
typedef struct cera_crossing {
    uint32_t state, set, next;
    cera_place to;
} cera_crossing; /* entering `state`, where a rule is called or ends */

/* What a lexeme's state says of the tokens whatever the stack: those that end inside of the lexeme, and the trie's nodes at
 * which it is left, whose tokens, and those below, depend on the stack. */
typedef struct cera_exit {
    uint32_t node, state;
    uint8_t trie;
} cera_exit;
enum { CERA_MASK_LEXEMES = 64 };
typedef struct cera_lexeme {
    uint64_t tokens; /* number of the vocabulary's index; 0: empty */
    uint32_t state, n_exits, cap_exits, n_words;
    uint32_t *bits;
    cera_exit *exits;
} cera_lexeme;

typedef struct cera_masker { /* scratch and caches of one grammar */
    cera_mask_entry cache[CERA_MASK_CACHE];
    cera_place *frames;
    uint32_t cap_frames; /* [depth] after so many bytes of the path */
    cera_config *pool;
    uint32_t n_pool, cap_pool;
    cera_mask_set *sets;
    uint32_t n_sets, cap_sets;
    cera_place *rows;
    uint32_t n_rows, cap_rows; /* [256] a row */
    cera_crossing *crossings;
    uint32_t n_crossings, cap_crossings;
    uint32_t set_buckets[4096], crossing_buckets[4096];
    cera_lexeme lexemes[CERA_MASK_LEXEMES];
    cera_configs start, step;
    uint64_t hits, misses;
} cera_masker;

/* mask_run.c: every text of up to n characters of the slice leads on from the state; exact: and no longer one does. */
enum { CERA_RUN_ALL = 32767 };
typedef struct cera_run {
    int32_t n;
    bool exact;
} cera_run;
cera_run cera_mask_run(cera_automaton *a, uint32_t state, int slice);

/* mask_walk.c */
bool cera_mask_begin(cera_masker *m, cera_automaton *a, uint32_t max_depth); /* frames[0] is m->start's place */
/* As below, but notes in x where the lexeme is left, and goes no further there. */
void cera_mask_walk_lexeme(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, int trie, cera_lexeme *x);
void cera_mask_walk_exits(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, const cera_lexeme *x,
                          uint32_t *bits);
void cera_mask_walk(cera_masker *m, cera_automaton *a, const cera_grammar_tokens *t, const cera_trie *trie, uint32_t *bits);

/* Sets the bits of the tokens that may follow (end-of-generation ones when the text is complete); false: the automaton failed.
 */
bool cera_mask_compute(cera_masker *m, cera_automaton *a, const cera_configs *at, const cera_grammar_tokens *t, uint32_t *bits);
void cera_masker_deinit(cera_masker *m);

#endif
