/* vocab_trie.c: builds tries over bytes: first with lists of siblings, which take strings in any order, then packed
 * (vocab_int.h), so that a step costs the same however many children a node has. */
#include "text/vocab_int.h"

typedef struct loose_node {
    uint32_t child, sibling; /* 0: none */
    int32_t id;
    uint8_t byte;
} loose_node;

struct trie_builder {
    uint32_t n;
    uint32_t root[256]; /* the first level is wide */
    loose_node nodes[];
};

cera_status cera_trie_begin(size_t max_bytes, trie_builder **out, cera_error *e) {
    trie_builder *b = cera_alloc(1, sizeof *b + (max_bytes + 1) * sizeof *b->nodes);
    *out = b;
    if (!b) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for a trie of %zu bytes", max_bytes);
    b->n = 1; /* 0 means none */
    return CERA_OK;
}

void cera_trie_add(trie_builder *b, cera_text_view text, int32_t id) {
    uint32_t *link = &b->root[(uint8_t)text.text[0]];
    for (size_t i = 0;; i++) {
        uint8_t byte = (uint8_t)text.text[i];
        while (*link && b->nodes[*link].byte != byte) link = &b->nodes[*link].sibling;
        if (*link == 0) {
            *link = b->n++;
            b->nodes[*link] = (loose_node){0, 0, -1, byte};
        }
        if (i + 1 == text.size) {
            if (b->nodes[*link].id < 0) b->nodes[*link].id = id;
            return;
        }
        link = &b->nodes[*link].child;
    }
}

/* Gives the children of packed node at their places, from next on; loose[k] is the loose node of packed node k. */
static void pack_children(const trie_builder *b, trie_node *nodes, uint32_t *loose, uint32_t at, uint32_t child,
                          uint32_t *next) {
    trie_node *n = &nodes[at];
    n->first = *next;
    for (uint32_t c = child; c; c = b->nodes[c].sibling)
        n->has[b->nodes[c].byte >> 6] |= (uint64_t)1 << (b->nodes[c].byte & 63);
    for (int w = 1; w < 4; w++) n->before[w] = (uint8_t)(n->before[w - 1] + __builtin_popcountll(n->has[w - 1]));
    for (uint32_t c = child; c; c = b->nodes[c].sibling) {
        uint32_t place = trie_child(nodes, at, b->nodes[c].byte);
        nodes[place].id = b->nodes[c].id;
        loose[place] = c;
        ++*next;
    }
}

cera_status cera_trie_finish(trie_builder *b, cera_arena *arena, trie_node **out, cera_error *e) {
    trie_node *nodes = cera_arena_alloc(arena, b->n, sizeof *nodes);
    uint32_t *loose = cera_alloc(b->n, sizeof *loose), next = 1, top = 0;
    *out = nodes;
    if (nodes && loose) {
        for (unsigned byte = 0; byte < 256; byte++) { /* the roots become siblings */
            if (b->root[byte] == 0) continue;
            b->nodes[b->root[byte]].sibling = top;
            top = b->root[byte];
        }
        nodes[0].id = -1;
        pack_children(b, nodes, loose, 0, top, &next);
        for (uint32_t at = 1; at < b->n; at++) pack_children(b, nodes, loose, at, b->nodes[loose[at]].child, &next);
    }
    bool failed = !nodes || !loose;
    cera_free(loose);
    cera_free(b);
    return failed ? cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for a trie") : CERA_OK;
}
