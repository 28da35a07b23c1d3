/* trie.c: builds the tries and bitmaps of a vocabulary. */
#include "sample/trie.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/utf8.h"
#include "sample/automaton_int.h"

enum { MAX_TOKENS = 1 << 24, MAX_TOKEN_BYTES = 60000 };

typedef struct entry {
    const char *text;
    uint32_t size;
    int32_t id;
    uint8_t slice, run;
} entry;

static int by_bytes(const void *x, const void *y) {
    const entry *p = x, *q = y;
    if (p->slice != q->slice) return p->slice < q->slice ? -1 : 1;
    uint32_t n = p->size < q->size ? p->size : q->size;
    int c = memcmp(p->text, q->text, n);
    if (c) return c;
    if (p->size != q->size) return p->size < q->size ? -1 : 1;
    return p->id < q->id ? -1 : p->id > q->id;
}

static bool in_slice(int slice, uint32_t code) {
    uint32_t n;
    const uint32_t(*r)[2] = cera_slice_ranges(slice, &n);
    for (uint32_t i = 0; i < n; i++)
        if (code >= r[i][0] && code <= r[i][1]) return true;
    return false;
}

/* The first slice that holds every character, or CERA_TRIE_SLICES. */
static void classify(entry *t) {
    uint32_t fits = (1u << CERA_TRIE_SLICES) - 1, chars = 0;
    for (size_t i = 0; i < t->size && fits; chars++) {
        uint32_t code;
        int size = cera_utf8_decode(t->text + i, t->size - i, &code);
        for (int slice = 0; slice < CERA_TRIE_SLICES; slice++)
            if (!size || !in_slice(slice, code)) fits &= ~(1u << slice);
        i += (size_t)(size ? size : 1);
    }
    if (chars > CERA_TRIE_RUN) fits = 0;
    t->slice = CERA_TRIE_SLICES;
    for (int slice = CERA_TRIE_SLICES; slice-- > 0;)
        if (fits >> slice & 1) t->slice = (uint8_t)slice;
    t->run = (uint8_t)(fits ? chars : 0);
}

static uint32_t common(const entry *x, const entry *y) {
    uint32_t n = 0;
    while (n < x->size && n < y->size && x->text[n] == y->text[n]) n++;
    return n;
}

/* Nodes of one slice's sorted entries; with nodes NULL only counts. open[d] is the node at depth d of the path so far. */
static uint32_t add_nodes(const entry *list, uint32_t n, uint32_t first, cera_trie_node *nodes, uint32_t *open) {
    uint32_t count = 0, depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t shared = i ? common(&list[i - 1], &list[i]) : 0;
        for (; nodes && depth > shared; depth--) nodes[open[depth]].skip = count;
        depth = shared;
        for (; depth < list[i].size; count++) {
            if (nodes)
                nodes[count] = (cera_trie_node){
                    .byte = (uint8_t)list[i].text[depth], .depth = (uint16_t)(depth + 1), .first_token = first + i};
            depth++;
            if (nodes) open[depth] = count;
        }
        if (nodes) nodes[open[depth]].n_tokens++;
    }
    for (; nodes && depth > 0; depth--) nodes[open[depth]].skip = count;
    return count;
}

static void set_bit(uint32_t *bits, int32_t id) { bits[id >> 5] |= 1u << (id & 31); }

static bool fill_runs(cera_grammar_tokens *t, int slice, const entry *list, uint32_t n) {
    uint32_t *runs = t->runs[slice] = cera_alloc((size_t)(CERA_TRIE_RUN + 1) * t->n_words, sizeof *runs);
    if (!runs) return false;
    for (uint32_t i = 0; i < n; i++) set_bit(runs + (size_t)list[i].run * t->n_words, list[i].id);
    for (uint32_t k = 1; k <= CERA_TRIE_RUN; k++)
        for (uint32_t w = 0; w < t->n_words; w++) runs[k * t->n_words + w] |= runs[(k - 1) * t->n_words + w];
    return true;
}

static bool build(cera_grammar_tokens *t, entry *list, uint32_t n) {
    uint32_t *open = cera_alloc((size_t)t->max_size + 1, sizeof *open), at = 0;
    bool ok = open != NULL;
    qsort(list, n, sizeof *list, by_bytes);
    for (uint32_t i = 0; i < n; i++) t->ids[i] = list[i].id;
    for (int s = 0; s <= CERA_TRIE_SLICES && ok; s++) {
        uint32_t end = at;
        while (end < n && list[end].slice == s) end++;
        cera_trie *trie = &t->tries[s];
        trie->n = add_nodes(list + at, end - at, at, NULL, NULL);
        trie->nodes = cera_alloc(trie->n, sizeof *trie->nodes);
        ok = trie->nodes && (s == CERA_TRIE_SLICES || fill_runs(t, s, list + at, end - at));
        if (ok) add_nodes(list + at, end - at, at, trie->nodes, open);
        at = end;
    }
    cera_free(open);
    return ok;
}

static bool copy_bytes(cera_grammar_tokens *t, const cera_text_view *bytes, entry *list, uint32_t *n) {
    size_t total = 0, at = 0;
    for (int32_t i = 0; i < t->n_tokens; i++) total += bytes[i].size;
    if (!(t->text = cera_alloc(total + 1, 1))) return false;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        if (bytes[i].size) memcpy(t->text + at, bytes[i].text, bytes[i].size);
        t->bytes[i] = (cera_text_view){t->text + at, bytes[i].size};
        at += bytes[i].size;
        if (!bytes[i].size || bytes[i].size > MAX_TOKEN_BYTES) continue;
        entry *x = &list[(*n)++];
        *x = (entry){.text = t->bytes[i].text, .size = (uint32_t)bytes[i].size, .id = i};
        classify(x);
        if (x->size > t->max_size) t->max_size = x->size;
    }
    return true;
}

cera_status cera_trie_create(const cera_text_view *bytes, const bool *eog, size_t n_tokens, cera_grammar_tokens **out,
                             cera_error *e) {
    static _Atomic uint64_t made; /* numbers indices, so that a cached mask is never taken for another vocabulary's */
    *out = NULL;
    if (n_tokens == 0 || n_tokens > MAX_TOKENS)
        return cera_fail(e, CERA_ERR_ARGUMENT, "grammar: a vocabulary has 1 to %d tokens, not %zu", MAX_TOKENS, n_tokens);
    cera_grammar_tokens *t = cera_alloc(1, sizeof *t);
    entry *list = cera_alloc(n_tokens, sizeof *list);
    uint32_t n = 0;
    bool ok = t && list;
    if (ok) {
        t->n_tokens = (int32_t)n_tokens;
        t->n_words = (uint32_t)((n_tokens + 31) / 32);
        t->number = atomic_fetch_add(&made, 1) + 1;
        t->bytes = cera_alloc(n_tokens, sizeof *t->bytes);
        t->ids = cera_alloc(n_tokens, sizeof *t->ids);
        t->eog = cera_alloc(t->n_words, sizeof *t->eog);
        ok = t->bytes && t->ids && t->eog && copy_bytes(t, bytes, list, &n) && build(t, list, n);
    }
    for (size_t i = 0; ok && i < n_tokens; i++)
        if (eog[i]) set_bit(t->eog, (int32_t)i);
    cera_free(list);
    if (!ok) {
        cera_trie_destroy(t);
        return cera_fail(e, CERA_ERR_MEMORY, "grammar: no memory for the index of %zu tokens", n_tokens);
    }
    *out = t;
    return CERA_OK;
}

void cera_trie_destroy(cera_grammar_tokens *t) {
    if (!t) return;
    for (int s = 0; s <= CERA_TRIE_SLICES; s++) cera_free(t->tries[s].nodes);
    for (int s = 0; s < CERA_TRIE_SLICES; s++) cera_free(t->runs[s]);
    cera_free(t->bytes);
    cera_free(t->text);
    cera_free(t->ids);
    cera_free(t->eog);
    cera_free(t);
}
