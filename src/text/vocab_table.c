/* vocab_table.c: the hash tables of a vocabulary: strings to symbols, pairs of symbols to merges. Lookups are inline in
 * vocab_int.h. A vocabulary is a file from outside, so a probe that gets long (texts made to collide) is an error, not a slow
 * load. */
#include "text/vocab_int.h"

enum { MAX_PROBES = 4096 };

static size_t table_size(size_t n) {
    size_t size = 16;
    while (size < n + n / 2) size *= 2; /* two thirds full at most */
    return size;
}

cera_status cera_string_table_init(string_table *t, cera_arena *a, size_t n, cera_error *e) {
    size_t size = table_size(n);
    t->slots = cera_arena_alloc(a, size, sizeof *t->slots);
    if (!t->slots) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for a table of %zu tokens", n);
    t->mask = size - 1;
    return CERA_OK;
}

/* The slot where a string is, or the empty one where it belongs. */
static cera_status find_slot(const string_table *t, const char *p, size_t n, string_slot **slot, cera_error *e) {
    uint64_t head = string_head(p, n);
    size_t i = vocab_hash(p, n) & t->mask;
    for (size_t probes = 0; t->slots[i].id && !slot_holds(t, &t->slots[i], head, p, n); probes++, i = (i + 1) & t->mask) {
        if (probes == MAX_PROBES)
            return cera_fail(e, CERA_ERR_FORMAT, "vocabulary: the hashes of %d tokens collide", MAX_PROBES);
    }
    *slot = &t->slots[i];
    return CERA_OK;
}

static cera_status grow_table(string_table *t, cera_arena *a, cera_error *e) {
    string_table bigger = *t;
    CERA_TRY(cera_string_table_init(&bigger, a, t->mask + 1, e));
    for (size_t i = 0; i <= t->mask; i++) {
        const string_slot *old = &t->slots[i];
        string_slot *slot = NULL;
        if (old->id == 0) continue;
        CERA_TRY(find_slot(&bigger, t->blob + t->at[old->id - 1], old->size, &slot, e));
        *slot = *old;
    }
    *t = bigger;
    return CERA_OK;
}

cera_status cera_string_table_add(string_table *t, cera_arena *a, uint32_t id, cera_error *e) {
    if (t->n + t->n / 2 > t->mask) CERA_TRY(grow_table(t, a, e));
    const char *p = t->blob + t->at[id];
    size_t n = t->at[id + 1] - t->at[id];
    string_slot *slot = NULL;
    CERA_TRY(find_slot(t, p, n, &slot, e));
    if (slot->id) return CERA_OK;
    *slot = (string_slot){string_head(p, n), (uint32_t)n, id + 1};
    t->n++;
    return CERA_OK;
}

/* ---- merges --------------------------------------------------------------------------------------------------------- */

/* Room for one more symbol of n bytes behind the others. */
static cera_status reserve_symbol(cera_vocab *v, size_t n, cera_error *e) {
    size_t used = v->bytes_at[v->n_symbols];
    if (n > CERA_VOCAB_MAX_BYTES - used)
        return cera_fail(e, CERA_ERR_LIMIT, "tokenizer.ggml.merges: texts exceed %d bytes", CERA_VOCAB_MAX_BYTES);
    if (used + n > v->bytes_capacity) {
        size_t capacity = (used + n) * 2;
        char *bytes = cera_alloc_grow(v->bytes, v->bytes_capacity, capacity, 1);
        if (!bytes) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for %zu bytes of merges", capacity);
        v->bytes = bytes;
        v->bytes_capacity = capacity;
    }
    if (v->n_symbols + 2 > v->symbol_capacity) {
        size_t capacity = v->symbol_capacity * 2;
        uint32_t *at = cera_alloc_grow(v->bytes_at, v->symbol_capacity, capacity, sizeof *at);
        if (!at) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for %zu symbols", capacity);
        v->bytes_at = at;
        v->symbol_capacity = capacity;
    }
    v->by_bytes.blob = v->bytes;
    v->by_bytes.at = v->bytes_at;
    return CERA_OK;
}

static cera_status symbol_of(cera_vocab *v, const char *p, size_t n, uint32_t *out, cera_error *e) {
    int32_t id = string_table_find(&v->by_bytes, p, n);
    if (id < 0) {
        CERA_TRY(reserve_symbol(v, n, e));
        uint32_t at = v->bytes_at[v->n_symbols];
        memcpy(v->bytes + at, p, n);
        id = (int32_t)v->n_symbols++;
        v->bytes_at[v->n_symbols] = at + (uint32_t)n;
        CERA_TRY(cera_string_table_add(&v->by_bytes, v->arena, (uint32_t)id, e));
    }
    *out = (uint32_t)id;
    return CERA_OK;
}

static cera_status add_pair(cera_vocab *v, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged, cera_error *e) {
    size_t i = pair_hash(left, right) & v->pair_mask;
    for (size_t probes = 0; v->pairs[i].left; probes++, i = (i + 1) & v->pair_mask) {
        if (v->pairs[i].left == left + 1 && v->pairs[i].right == right) return CERA_OK; /* the first rank counts */
        if (probes == MAX_PROBES)
            return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.merges: entry %u collides with %d others", rank, MAX_PROBES);
    }
    v->pairs[i] = (pair_slot){left + 1, right, rank, merged};
    return CERA_OK;
}

/* Merges are read a batch at a time, so that the lookups of one batch wait for memory together: a table of a few megabytes
 * costs a cache miss a lookup, and there are four a merge. */
enum { MERGE_BATCH = 16 };

typedef struct merge_batch {
    struct {
        const char *text;       /* both sides' bytes, one behind the other, so that their join needs no copy */
        size_t n_left, n_right; /* either 0: a side that stands for no bytes can never match */
        uint32_t left, right, merged;
    } row[MERGE_BATCH];
    size_t n;
} merge_batch;

/* "left right": the space that separates is the first one after the first byte. */
static cera_status spell_merges(cera_vocab *v, const cera_text_view *merges, uint32_t first, merge_batch *b, char *text,
                                cera_error *e) {
    for (size_t i = 0; i < b->n; i++) {
        cera_text_view m = merges[i];
        const char *space = m.size > 1 ? memchr(m.text + 1, ' ', m.size - 1) : NULL;
        if (!space || space + 1 == m.text + m.size) {
            return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.merges: entry %u is not \"left right\"", first + (uint32_t)i);
        }
        size_t n = cera_vocab_spell(v, m.text, (size_t)(space - m.text), text);
        size_t n_right = cera_vocab_spell(v, space + 1, (size_t)(m.text + m.size - space - 1), text + n);
        b->row[i].text = text;
        b->row[i].n_left = n;
        b->row[i].n_right = n_right;
        string_table_prefetch(&v->by_bytes, text, n);
        string_table_prefetch(&v->by_bytes, text + n, n_right);
        string_table_prefetch(&v->by_bytes, text, n + n_right);
        text += n + n_right;
    }
    return CERA_OK;
}

static cera_status read_merges(cera_vocab *v, const cera_text_view *merges, uint32_t first, merge_batch *b, char *text,
                               cera_error *e) {
    CERA_TRY(spell_merges(v, merges, first, b, text, e));
    for (size_t i = 0; i < b->n; i++) {
        size_t n = b->row[i].n_left, n_right = b->row[i].n_right;
        const char *p = b->row[i].text;
        if (n == 0 || n_right == 0) continue;
        CERA_TRY(symbol_of(v, p, n, &b->row[i].left, e));
        CERA_TRY(symbol_of(v, p + n, n_right, &b->row[i].right, e));
        CERA_TRY(symbol_of(v, p, n + n_right, &b->row[i].merged, e));
        __builtin_prefetch(&v->pairs[pair_hash(b->row[i].left, b->row[i].right) & v->pair_mask], 1);
    }
    for (size_t i = 0; i < b->n; i++) {
        if (b->row[i].n_left == 0 || b->row[i].n_right == 0) continue;
        CERA_TRY(add_pair(v, b->row[i].left, b->row[i].right, first + (uint32_t)i, b->row[i].merged, e));
    }
    return CERA_OK;
}

/* The bytes of the batch that has most. */
static size_t longest_batch(const cera_vocab_desc *d) {
    size_t longest = 0, sum = 0;
    for (size_t i = 0; i < d->n_merges; i++) {
        sum = i % MERGE_BATCH ? sum + d->merges[i].size : d->merges[i].size;
        longest = sum > longest ? sum : longest;
    }
    return longest;
}

cera_status cera_pairs_build(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    size_t size = table_size(d->n_merges);
    v->pairs = cera_arena_alloc(v->arena, size, sizeof *v->pairs);
    char *text = cera_alloc(longest_batch(d), 1);
    if (!v->pairs || !text) {
        cera_free(text);
        return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for %zu merges", d->n_merges);
    }
    v->pair_mask = size - 1;
    cera_status status = CERA_OK;
    for (size_t i = 0; i < d->n_merges && status == CERA_OK; i += MERGE_BATCH) {
        merge_batch b = {.n = d->n_merges - i < MERGE_BATCH ? d->n_merges - i : MERGE_BATCH};
        status = read_merges(v, d->merges + i, (uint32_t)i, &b, text, e);
    }
    cera_free(text);
    return status;
}
