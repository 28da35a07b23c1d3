/* trie.h: a vocabulary as the masks see it: the tokens' bytes in tries that are walked in one pass, and bitmaps of the tokens
 * that consist of common characters only. Built once for a vocabulary, immutable, shared by all grammars and threads. Does not
 * own: which tokens are allowed (mask.c). */
#ifndef CERA_SAMPLE_TRIE_H
#define CERA_SAMPLE_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "base/view.h"

enum { CERA_TRIE_SLICES = 7, CERA_TRIE_RUN = 32 }; /* characters of a token in a slice, at most */

/* Nodes in depth-first order, so that the next node is the first child, and skip leads past the subtree. */
typedef struct cera_trie_node {
    uint32_t skip, first_token;
    uint16_t depth, n_tokens;
    uint8_t byte;
} cera_trie_node;

typedef struct cera_trie {
    cera_trie_node *nodes;
    uint32_t n;
} cera_trie;

struct cera_grammar_tokens {
    int32_t n_tokens;
    uint32_t n_words;      /* 32-bit words of a mask */
    uint32_t max_size;     /* bytes of the longest token */
    cera_text_view *bytes; /* [n_tokens] */
    char *text;
    int32_t *ids;                          /* tokens in the order of the tries' nodes */
    cera_trie tries[CERA_TRIE_SLICES + 1]; /* the last: tokens in no slice */
    uint32_t *runs[CERA_TRIE_SLICES];      /* [CERA_TRIE_RUN + 1][n_words]: tokens of the slice of at most so many characters */
    uint32_t *eog;                         /* [n_words] end-of-generation tokens */
    uint64_t number;                       /* different for every index made: the key of cached masks */
};

typedef struct cera_grammar_tokens cera_grammar_tokens;

/* bytes: what each token stands for, empty for those that stand for no text (never allowed by their bytes). eog: a flag for
 * each. */
cera_status cera_trie_create(const cera_text_view *bytes, const bool *eog, size_t n_tokens, cera_grammar_tokens **out,
                             cera_error *e);
void cera_trie_destroy(cera_grammar_tokens *t);

#endif
