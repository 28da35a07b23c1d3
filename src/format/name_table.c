/* name_table.c: names of keys and tensors to their indices in O(1), and the proof that no name occurs twice. The hash is not
 * keyed, so a file may bring names that collide on purpose; the bound on probes turns that into an error instead of a quadratic
 * load (512 probes of 262,144 names are 0.2 s at the very worst). */
#include "format/gguf_int.h"

#include <string.h>
#include "base/hash.h"

static const char *name_at(const cera_name_table *t, size_t index) {
    const char *name;
    memcpy(&name, t->entries + index * t->stride, sizeof name);
    return name;
}

bool cera_name_table_init(cera_name_table *t, cera_arena *arena, const void *entries, size_t stride, size_t capacity) {
    size_t n_slots = 8;
    while (n_slots < 2 * capacity) n_slots *= 2; /* capacity is bounded by CERA_GGUF_MAX_TENSORS and the like */
    *t = (cera_name_table){.entries = entries, .stride = stride, .n_slots = n_slots};
    t->slots = cera_arena_alloc(arena, n_slots, sizeof *t->slots);
    return t->slots != NULL;
}

/* The slot that holds the name, or the free one where it belongs; n_slots when the run is too long. */
static size_t probe(const cera_name_table *t, const char *name) {
    size_t slot = (size_t)cera_hash64(name, strlen(name), 0) & (t->n_slots - 1);
    for (int i = 0; i < CERA_NAME_TABLE_MAX_PROBES; i++, slot = (slot + 1) & (t->n_slots - 1))
        if (t->slots[slot] == 0 || strcmp(name_at(t, t->slots[slot] - 1), name) == 0) return slot;
    return t->n_slots;
}

cera_name_insert cera_name_table_insert(cera_name_table *t, size_t index) {
    size_t slot = probe(t, name_at(t, index));
    if (slot == t->n_slots) return CERA_NAME_CROWDED;
    if (t->slots[slot] != 0) return CERA_NAME_TAKEN;
    t->slots[slot] = (uint32_t)index + 1;
    return CERA_NAME_NEW;
}

size_t cera_name_table_find(const cera_name_table *t, const char *name) {
    if (t->n_slots == 0) return SIZE_MAX;
    size_t slot = probe(t, name);
    return slot == t->n_slots || t->slots[slot] == 0 ? SIZE_MAX : t->slots[slot] - 1;
}
