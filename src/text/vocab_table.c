/* vocab_table.c: the hash tables of a vocabulary: strings to symbols, pairs of symbols to merges. Lookups are inline in
 * vocab_int.h. A vocabulary is a file from outside, so a probe that gets long (texts made to collide) is an error, not a slow
 * load. */
#include "text/vocab_int.h"

enum { MAX_PROBES = 4096 };

static size_t table_size(size_t n) {
    size_t size = 16;
    while (size < n * 2) size *= 2;
    return size;
}

cera_status cera_string_table_init(string_table *t, cera_arena *a, size_t n, cera_error *e) {
    size_t size = table_size(n);
    t->slots = cera_arena_alloc(a, size, sizeof *t->slots);
    if (!t->slots) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for a table of %zu tokens", n);
    t->mask = size - 1;
    return CERA_OK;
}

/* An empty slot for a string with this hash; *found when an equal string is there already. */
static cera_status find_slot(const string_table *t, uint32_t hash, uint32_t id, string_slot **slot, bool *found,
                             cera_error *e) {
    const char *p = t->blob + t->at[id];
    size_t n = t->at[id + 1] - t->at[id], i = hash & t->mask;
    *found = false;
    for (size_t probes = 0; t->slots[i].id; probes++, i = (i + 1) & t->mask) {
        uint32_t other = t->slots[i].id - 1;
        if (t->slots[i].hash == hash && t->at[other + 1] - t->at[other] == n && memcmp(t->blob + t->at[other], p, n) == 0) {
            *found = true;
            return CERA_OK;
        }
        if (probes == MAX_PROBES) {
            return cera_fail(e, CERA_ERR_FORMAT, "vocabulary: token %u and %d others have colliding hashes", id, MAX_PROBES);
        }
    }
    *slot = &t->slots[i];
    return CERA_OK;
}

static cera_status grow_table(string_table *t, cera_arena *a, cera_error *e) {
    string_table bigger = *t;
    CERA_TRY(cera_string_table_init(&bigger, a, t->mask + 1, e));
    for (size_t i = 0; i <= t->mask; i++) {
        string_slot *slot = NULL;
        bool found;
        if (t->slots[i].id == 0) continue;
        CERA_TRY(find_slot(&bigger, t->slots[i].hash, t->slots[i].id - 1, &slot, &found, e));
        if (!found) *slot = t->slots[i];
    }
    *t = bigger;
    return CERA_OK;
}

cera_status cera_string_table_add(string_table *t, cera_arena *a, uint32_t id, cera_error *e) {
    if (t->n * 2 > t->mask) CERA_TRY(grow_table(t, a, e));
    uint32_t hash = vocab_hash(t->blob + t->at[id], t->at[id + 1] - t->at[id]);
    string_slot *slot = NULL;
    bool found;
    CERA_TRY(find_slot(t, hash, id, &slot, &found, e));
    if (found) return CERA_OK;
    *slot = (string_slot){hash, id + 1};
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

/* "left right": the space that separates is the first one after the first byte. Both sides go to bytes, one behind the other,
 * so that their join needs no copy. A side that stands for no bytes can never match; its merge is left out. */
static cera_status read_merge(cera_vocab *v, cera_text_view m, uint32_t rank, char *joined, cera_error *e) {
    const char *space = m.size > 1 ? memchr(m.text + 1, ' ', m.size - 1) : NULL;
    if (!space || space + 1 == m.text + m.size) {
        return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.merges: entry %u is not \"left right\"", rank);
    }
    size_t n = cera_vocab_spell(v, m.text, (size_t)(space - m.text), joined);
    size_t n_right = cera_vocab_spell(v, space + 1, (size_t)(m.text + m.size - space - 1), joined + n);
    if (n == 0 || n_right == 0) return CERA_OK;
    uint32_t left, right, merged;
    CERA_TRY(symbol_of(v, joined, n, &left, e));
    CERA_TRY(symbol_of(v, joined + n, n_right, &right, e));
    CERA_TRY(symbol_of(v, joined, n + n_right, &merged, e));
    return add_pair(v, left, right, rank, merged, e);
}

cera_status cera_pairs_build(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    size_t size = table_size(d->n_merges), longest = 0;
    v->pairs = cera_arena_alloc(v->arena, size, sizeof *v->pairs);
    for (size_t i = 0; i < d->n_merges; i++) longest = d->merges[i].size > longest ? d->merges[i].size : longest;
    char *joined = cera_alloc(longest + 1, 1);
    if (!v->pairs || !joined) {
        cera_free(joined);
        return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for %zu merges", d->n_merges);
    }
    v->pair_mask = size - 1;
    cera_status status = CERA_OK;
    for (size_t i = 0; i < d->n_merges && status == CERA_OK; i++) status = read_merge(v, d->merges[i], (uint32_t)i, joined, e);
    cera_free(joined);
    return status;
}
