/* gguf_int.h: what the files of the GGUF reader share: the name table, one parsed part, the value readers. Only for format/. */
#ifndef CERA_FORMAT_GGUF_INT_H
#define CERA_FORMAT_GGUF_INT_H

#include "base/arena.h"
#include "format/gguf.h"

/* Looks names up in an array of structs whose first member is `const char *name`. Open addressing, at most half full. */
typedef struct cera_name_table {
    const char *entries; /* borrowed: [n] structs of stride bytes */
    size_t stride;
    uint32_t *slots; /* [n_slots] index + 1, 0: free */
    size_t n_slots;  /* power of two */
} cera_name_table;

/* A run of used slots this long does not happen by chance at half load: the file was made to make lookups slow. */
enum { CERA_NAME_TABLE_MAX_PROBES = 512 };

typedef enum cera_name_insert { CERA_NAME_NEW, CERA_NAME_TAKEN, CERA_NAME_CROWDED } cera_name_insert;

bool cera_name_table_init(cera_name_table *t, cera_arena *arena, const void *entries, size_t stride, size_t capacity);
/* Adds entries[index]. TAKEN: an entry of this name is there already. CROWDED: see CERA_NAME_TABLE_MAX_PROBES. */
cera_name_insert cera_name_table_insert(cera_name_table *t, size_t index);
/* Index of the entry, or SIZE_MAX. */
size_t cera_name_table_find(const cera_name_table *t, const char *name);

/* One file of the set, parsed. Everything but the file itself lives in the arena. */
typedef struct cera_gguf_part {
    cera_file *file;
    uint32_t version;
    size_t n_keys, n_tensors;
    cera_gguf_value *keys; /* [n_keys + spare_keys] */
    cera_gguf_tensor *tensors;
    cera_name_table key_table;
    uint64_t alignment;
} cera_gguf_part;

/* Parses and checks part->file. Room for spare_keys more keys is kept. Messages do not name the file. */
cera_status cera_gguf_part_parse(cera_gguf_part *part, cera_arena *arena, size_t spare_keys, cera_error *e);
const cera_gguf_value *cera_gguf_part_find(const cera_gguf_part *part, const char *key);

/* Sets or adds the keys of options->overrides ("key=type:value"). */
cera_status cera_gguf_part_override(cera_gguf_part *part, cera_arena *arena, const char *const *overrides, int n,
                                    cera_error *e);

/* A key or tensor name for a message: quoted, NULs and bad UTF-8 as \xHH, cut after about 60 bytes. */
typedef struct cera_gguf_quote {
    char text[288];
} cera_gguf_quote;
const char *cera_gguf_quote_name(cera_gguf_quote *q, const uint8_t *name, size_t n);

/* Bytes of an element, 0 for strings, arrays and unknown types. */
size_t cera_gguf_type_size(uint32_t type);
const char *cera_gguf_type_name(uint32_t type);
/* Element 0 <= i < v->n of a value that holds no strings, as an integer in [min, max]. */
cera_status cera_gguf_value_u64(const cera_gguf_value *v, uint64_t i, uint64_t min, uint64_t max, uint64_t *out, cera_error *e);

#endif
