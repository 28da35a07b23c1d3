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

typedef struct cera_masker { /* scratch and cache of one grammar */
    cera_mask_entry cache[CERA_MASK_CACHE];
    cera_config *pool;
    uint32_t cap_pool;
    uint32_t *frames;
    uint32_t cap_frames; /* [depth] start of its configurations in pool; [depth + 1] is their end */
    cera_configs start, step;
    uint64_t hits, misses, nodes; /* for --bench */
} cera_masker;

/* Sets the bits of the tokens that may follow (end-of-generation ones when the text is complete); false: the automaton failed.
 */
bool cera_mask_compute(cera_masker *m, cera_automaton *a, const cera_configs *at, const cera_grammar_tokens *t, uint32_t *bits);
void cera_masker_deinit(cera_masker *m);

#endif
