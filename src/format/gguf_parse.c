/* gguf_parse.c: one GGUF file: header, keys, tensor infos, and every rule that can be checked without knowing the model.
 * Layout: the GGUF specification (ggml's docs/gguf.md), versions 2 and 3, little endian.
 *
 * Counts and lengths are compared with the bytes left before anything is allocated or skipped, in the form that cannot overflow
 * (n > left / size). Strings and arrays stay in the file: only names are copied, so memory is below five times the header's
 * size. Does not own split sets (gguf.c), conversion of values (gguf_get.c), or what the keys mean. */
#include "format/gguf_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "base/utf8.h"

enum {
    HEADER_BYTES = 24,
    MIN_KEY_BYTES = 8 + 4 + 1,        /* length of the name, type, value; an empty name has its own message */
    MIN_TENSOR_BYTES = 8 + 4 + 4 + 8, /* length of the name, dimensions, type, offset */
    DEFAULT_ALIGNMENT = 32,
    MIN_ALIGNMENT = 8,
    MAX_ALIGNMENT = 1 << 30
};

static const char *const type_names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};

size_t cera_gguf_type_size(uint32_t type) {
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type <= CERA_GGUF_F64 ? sizes[type] : 0;
}

const char *cera_gguf_type_name(uint32_t type) { return type <= CERA_GGUF_F64 ? type_names[type] : "unknown"; }

const char *cera_gguf_quote_name(cera_gguf_quote *q, const uint8_t *name, size_t n) {
    enum { SHOWN = 60 };
    size_t at = 0, i = 0;
    q->text[at++] = '"';
    while (i < n && i < SHOWN) {
        uint32_t code = 0;
        int length = cera_utf8_decode((const char *)name + i, n - i, &code);
        if (length > 0 && code >= 0x20 && code != 0x7f) {
            memcpy(q->text + at, name + i, (size_t)length);
            at += (size_t)length;
            i += (size_t)length;
        } else {
            at += (size_t)snprintf(q->text + at, 5, "\\x%02X", name[i++]);
        }
    }
    snprintf(q->text + at, sizeof q->text - at, "%s", i < n ? "...\"" : "\"");
    return q->text;
}

/* ---- header ---- */

static cera_status check_magic(const uint8_t *data, size_t size, cera_error *e) {
    cera_gguf_quote q;
    if (size == 0) return cera_fail(e, CERA_ERR_FORMAT, "the file is empty");
    if (size >= 8 && memcmp(data, "version ", 8) == 0)
        return cera_fail(e, CERA_ERR_FORMAT, "this is a Git LFS pointer, not the model itself; fetch it with git lfs pull");
    size_t n = size < 4 ? size : 4;
    if (memcmp(data, "GGUF", n) != 0)
        return cera_fail(e, CERA_ERR_FORMAT, "not a GGUF file: it begins with %s, not \"GGUF\"",
                         cera_gguf_quote_name(&q, data, n));
    return CERA_OK;
}

static cera_status check_version(uint32_t version, cera_error *e) {
    if (version == 2 || version == 3) return CERA_OK;
    if (version != 0 && (version & 0xffff) == 0) {
        uint32_t swapped = version >> 24 | (version >> 8 & 0xff00) | (version << 8 & 0xff0000) | version << 24;
        return cera_fail(e, CERA_ERR_UNSUPPORTED,
                         "big-endian GGUF (version %" PRIu32 " with its bytes reversed); only little endian is supported",
                         swapped);
    }
    return cera_fail(e, CERA_ERR_UNSUPPORTED, "GGUF version %" PRIu32 " is not supported; versions 2 and 3 are", version);
}

/* what: "key" or "tensor". */
static cera_status check_count(const char *what, uint64_t count, uint64_t max, size_t left, size_t min_bytes, cera_error *e) {
    if (count > left / min_bytes)
        return cera_fail(e, CERA_ERR_FORMAT,
                         "the header's %s count is %" PRIu64 "; the %zu bytes after the header have room for %zu at most", what,
                         count, left, left / min_bytes);
    if (count > max)
        return cera_fail(e, CERA_ERR_LIMIT, "the header's %s count is %" PRIu64 "; the limit is %" PRIu64, what, count, max);
    return CERA_OK;
}

static cera_status parse_header(cera_gguf_part *part, cera_cursor *c, cera_error *e) {
    const uint8_t *magic;
    uint64_t n_tensors, n_keys;
    CERA_TRY(check_magic(c->data, c->size, e));
    cera_cursor_bytes(c, 4, &magic);
    if (cera_cursor_u32(c, &part->version)) CERA_TRY(check_version(part->version, e));
    cera_cursor_u64(c, &n_tensors);
    if (!cera_cursor_u64(c, &n_keys))
        return cera_fail(e, CERA_ERR_FORMAT, "the header is cut short: it has %d bytes, the file %zu", HEADER_BYTES, c->size);
    size_t left = cera_cursor_left(c);
    CERA_TRY(check_count("key", n_keys, CERA_GGUF_MAX_KEYS, left, MIN_KEY_BYTES, e));
    CERA_TRY(
        check_count("tensor", n_tensors, CERA_GGUF_MAX_TENSORS, left - (size_t)n_keys * MIN_KEY_BYTES, MIN_TENSOR_BYTES, e));
    part->n_keys = (size_t)n_keys;
    part->n_tensors = (size_t)n_tensors;
    return CERA_OK;
}

/* ---- names ---- */

/* Reads a length and a name and copies it. what and index name the entry until its name is known. */
static cera_status parse_name(cera_cursor *c, cera_arena *arena, const char *what, size_t index, const char **out,
                              cera_error *e) {
    uint64_t n;
    const uint8_t *name;
    cera_gguf_quote q;
    size_t start = c->at;
    if (!cera_cursor_u64(c, &n)) return cera_fail(e, CERA_ERR_FORMAT, "the file ends in %s %zu (byte %zu)", what, index, start);
    if (n > cera_cursor_left(c))
        return cera_fail(e, CERA_ERR_FORMAT, "%s %zu (byte %zu): its name has %" PRIu64 " bytes; %zu are left in the file",
                         what, index, start, n, cera_cursor_left(c));
    if (n == 0) return cera_fail(e, CERA_ERR_FORMAT, "%s %zu (byte %zu): its name is empty", what, index, start);
    cera_cursor_bytes(c, (size_t)n, &name);
    if (n > CERA_GGUF_MAX_NAME)
        return cera_fail(e, CERA_ERR_LIMIT, "%s %zu, %s: its name has %" PRIu64 " bytes; the limit is %d", what, index,
                         cera_gguf_quote_name(&q, name, (size_t)n), n, CERA_GGUF_MAX_NAME);
    if (!cera_text_printable((const char *)name, (size_t)n))
        return cera_fail(e, CERA_ERR_FORMAT, "%s %zu, %s: a name must be UTF-8 without control characters", what, index,
                         cera_gguf_quote_name(&q, name, (size_t)n));
    *out = cera_arena_text(arena, (const char *)name, (size_t)n);
    return *out ? CERA_OK : cera_fail(e, CERA_ERR_MEMORY, "no memory for the name of %s %zu", what, index);
}

/* ---- keys ---- */

static cera_status value_cut(const cera_gguf_value *v, cera_error *e) {
    return cera_fail(e, CERA_ERR_FORMAT, "key %s: the file ends inside its value", v->key);
}

/* Skips v->n strings, so that readers may walk them without checks. */
static cera_status walk_strings(cera_cursor *c, const cera_gguf_value *v, cera_error *e) {
    const uint8_t *text;
    for (uint64_t i = 0; i < v->n; i++) {
        uint64_t n;
        if (!cera_cursor_u64(c, &n)) return value_cut(v, e);
        if (n > cera_cursor_left(c))
            return cera_fail(e, CERA_ERR_FORMAT, "key %s: string %" PRIu64 " has %" PRIu64 " bytes; %zu are left in the file",
                             v->key, i, n, cera_cursor_left(c));
        cera_cursor_bytes(c, (size_t)n, &text);
    }
    return CERA_OK;
}

static cera_status check_bools(const cera_gguf_value *v, cera_error *e) {
    for (uint64_t i = 0; i < v->n; i++)
        if (v->data[i] > 1)
            return cera_fail(e, CERA_ERR_FORMAT, "key %s: a bool must be 0 or 1, not %d (element %" PRIu64 ")", v->key,
                             v->data[i], i);
    return CERA_OK;
}

static cera_status parse_elements(cera_cursor *c, cera_gguf_value *v, cera_error *e) {
    size_t start = c->at, size = cera_gguf_type_size(v->type), least = v->type == CERA_GGUF_STRING ? 8 : size;
    if (v->n > cera_cursor_left(c) / least) {
        if (!v->is_array) return value_cut(v, e);
        return cera_fail(e, CERA_ERR_FORMAT,
                         "key %s: %" PRIu64 " elements of type %s do not fit in the %zu bytes left in the file", v->key, v->n,
                         cera_gguf_type_name(v->type), cera_cursor_left(c));
    }
    v->data = c->data + c->at;
    if (v->type == CERA_GGUF_STRING)
        CERA_TRY(walk_strings(c, v, e));
    else
        cera_cursor_bytes(c, (size_t)v->n * size, &v->data);
    v->size_bytes = c->at - start;
    return v->type == CERA_GGUF_BOOL ? check_bools(v, e) : CERA_OK;
}

static cera_status parse_value(cera_cursor *c, cera_gguf_value *v, cera_error *e) {
    uint32_t type;
    v->n = 1;
    if (!cera_cursor_u32(c, &type)) return value_cut(v, e);
    if (type == CERA_GGUF_ARRAY) {
        v->is_array = true;
        if (!cera_cursor_u32(c, &type) || !cera_cursor_u64(c, &v->n)) return value_cut(v, e);
        if (type == CERA_GGUF_ARRAY)
            return cera_fail(e, CERA_ERR_UNSUPPORTED, "key %s: an array of arrays; nesting is not supported", v->key);
    }
    if (type > CERA_GGUF_F64)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s: value type %" PRIu32 " is unknown; types are 0 to %d", v->key, type,
                         CERA_GGUF_F64);
    v->type = (cera_gguf_type)type;
    return parse_elements(c, v, e);
}

/* Puts entry `index` into a table; what: "key" or "tensor". */
static cera_status index_name(cera_name_table *t, size_t index, const char *what, const char *name, cera_error *e) {
    switch (cera_name_table_insert(t, index)) {
    case CERA_NAME_NEW: return CERA_OK;
    case CERA_NAME_TAKEN: return cera_fail(e, CERA_ERR_FORMAT, "%s %s occurs twice", what, name);
    case CERA_NAME_CROWDED: break;
    }
    return cera_fail(e, CERA_ERR_LIMIT, "%s %s: more than %d names share a hash", what, name, CERA_NAME_TABLE_MAX_PROBES);
}

static cera_status parse_keys(cera_gguf_part *part, cera_cursor *c, cera_arena *arena, size_t spare, cera_error *e) {
    part->keys = cera_arena_alloc(arena, part->n_keys + spare, sizeof *part->keys);
    if (!part->keys || !cera_name_table_init(&part->key_table, arena, part->keys, sizeof *part->keys, part->n_keys + spare))
        return cera_fail(e, CERA_ERR_MEMORY, "no memory for %zu keys", part->n_keys);
    for (size_t i = 0; i < part->n_keys; i++) {
        cera_gguf_value *v = &part->keys[i];
        CERA_TRY(parse_name(c, arena, "key", i, &v->key, e));
        CERA_TRY(index_name(&part->key_table, i, "key", v->key, e));
        CERA_TRY(parse_value(c, v, e));
    }
    return CERA_OK;
}

const cera_gguf_value *cera_gguf_part_find(const cera_gguf_part *part, const char *key) {
    size_t index = cera_name_table_find(&part->key_table, key);
    return index == SIZE_MAX ? NULL : &part->keys[index];
}

static cera_status parse_alignment(cera_gguf_part *part, cera_error *e) {
    part->alignment = DEFAULT_ALIGNMENT;
    const cera_gguf_value *v = cera_gguf_part_find(part, "general.alignment");
    if (!v) return CERA_OK;
    if (v->n != 1) return cera_fail(e, CERA_ERR_FORMAT, "key %s must be one number", v->key);
    CERA_TRY(cera_gguf_value_u64(v, 0, 0, UINT64_MAX, &part->alignment, e));
    uint64_t a = part->alignment;
    if (a < MIN_ALIGNMENT || a > MAX_ALIGNMENT || (a & (a - 1)) != 0)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s is %" PRIu64 "; it must be a power of two from %d to %d", v->key, a,
                         MIN_ALIGNMENT, MAX_ALIGNMENT);
    return CERA_OK;
}

/* ---- tensors ---- */

/* Bytes of the tensor's data, every product checked. */
static cera_status tensor_size(cera_gguf_tensor *t, cera_error *e) {
    const cera_dtype_info *info = cera_dtype_get(t->dtype);
    uint64_t block = (uint64_t)info->block_elements, bytes;
    if (t->shape[0] % block != 0)
        return cera_fail(e, CERA_ERR_FORMAT,
                         "tensor %s: its rows have %" PRIu64 " elements, not a multiple of %s's block of %d", t->name,
                         t->shape[0], info->name, info->block_elements);
    bool overflow = __builtin_mul_overflow(t->shape[0] / block, (uint64_t)info->block_bytes, &bytes);
    for (int d = 1; d < t->n_dims; d++) overflow = __builtin_mul_overflow(bytes, t->shape[d], &bytes) || overflow;
    if (overflow)
        return cera_fail(e, CERA_ERR_FORMAT,
                         "tensor %s: the size of its shape [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "] overflows",
                         t->name, t->shape[0], t->shape[1], t->shape[2], t->shape[3]);
    t->size_bytes = bytes;
    return CERA_OK;
}

static cera_status parse_shape(cera_cursor *c, cera_gguf_tensor *t, cera_error *e) {
    uint32_t n_dims = 0;
    if (cera_cursor_u32(c, &n_dims) && (n_dims < 1 || n_dims > CERA_GGUF_MAX_DIMS))
        return cera_fail(e, CERA_ERR_FORMAT, "tensor %s has %" PRIu32 " dimensions; there must be 1 to %d", t->name, n_dims,
                         CERA_GGUF_MAX_DIMS);
    t->n_dims = (int)n_dims;
    for (int d = 0; d < CERA_GGUF_MAX_DIMS; d++) {
        t->shape[d] = 1;
        if (d < t->n_dims && cera_cursor_u64(c, &t->shape[d]) && t->shape[d] == 0)
            return cera_fail(e, CERA_ERR_FORMAT, "tensor %s: dimension %d is 0", t->name, d);
    }
    return CERA_OK;
}

/* offset: from the start of the data section, which is not known before all infos are read. */
static cera_status parse_tensor(cera_cursor *c, cera_arena *arena, size_t index, cera_gguf_tensor *t, uint64_t *offset,
                                cera_error *e) {
    uint32_t type = 0;
    CERA_TRY(parse_name(c, arena, "tensor", index, &t->name, e));
    CERA_TRY(parse_shape(c, t, e));
    cera_cursor_u32(c, &type);
    if (!cera_cursor_u64(c, offset))
        return cera_fail(e, CERA_ERR_FORMAT, "tensor %s: the file ends inside its description", t->name);
    if (!cera_dtype_get(type)->name)
        return cera_fail(e, CERA_ERR_UNSUPPORTED, "tensor %s: type %" PRIu32 " is unknown", t->name, type);
    t->dtype = (cera_dtype)type;
    return tensor_size(t, e);
}

/* The tensor's bytes must lie in the data section, [data_start, size). */
static cera_status place_tensor(const cera_gguf_part *part, cera_gguf_tensor *t, uint64_t offset, size_t data_start,
                                cera_error *e) {
    size_t size = cera_file_size(part->file);
    uint64_t room = size - data_start;
    if (offset % part->alignment != 0)
        return cera_fail(e, CERA_ERR_FORMAT, "tensor %s: offset %" PRIu64 " is not a multiple of the alignment, %" PRIu64,
                         t->name, offset, part->alignment);
    if (offset > room || t->size_bytes > room - offset)
        return cera_fail(e, CERA_ERR_FORMAT,
                         "tensor %s: %" PRIu64 " bytes at offset %" PRIu64
                         " end beyond the file, whose data section has %" PRIu64 " bytes (is it truncated?)",
                         t->name, t->size_bytes, offset, room);
    t->data = cera_file_data(part->file) + data_start + (size_t)offset;
    return CERA_OK;
}

static int by_address(const void *a, const void *b) {
    const cera_gguf_tensor *x = *(const cera_gguf_tensor *const *)a, *y = *(const cera_gguf_tensor *const *)b;
    return x->data < y->data ? -1 : x->data > y->data;
}

/* Rule: no byte belongs to two tensors. Files in the wild store tensors in order, so sorting is the exception. */
static cera_status check_overlap(const cera_gguf_part *part, cera_arena *arena, cera_error *e) {
    size_t n = part->n_tensors;
    const cera_gguf_tensor **order = cera_arena_alloc(arena, n, sizeof *order);
    if (!order) return cera_fail(e, CERA_ERR_MEMORY, "no memory to check %zu tensors", n);
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        order[i] = &part->tensors[i];
        sorted = sorted && (i == 0 || order[i - 1]->data <= order[i]->data);
    }
    if (!sorted) qsort(order, n, sizeof *order, by_address);
    for (size_t i = 1; i < n; i++)
        if ((uint64_t)(order[i]->data - order[i - 1]->data) < order[i - 1]->size_bytes)
            return cera_fail(e, CERA_ERR_FORMAT, "tensor %s overlaps tensor %s: no byte may belong to two tensors",
                             order[i]->name, order[i - 1]->name);
    return CERA_OK;
}

static cera_status parse_tensors(cera_gguf_part *part, cera_cursor *c, cera_arena *arena, cera_error *e) {
    size_t n = part->n_tensors;
    if (n == 0) return CERA_OK;
    part->tensors = cera_arena_alloc(arena, n, sizeof *part->tensors);
    uint64_t *offsets = cera_arena_alloc(arena, n, sizeof *offsets);
    if (!part->tensors || !offsets) return cera_fail(e, CERA_ERR_MEMORY, "no memory for %zu tensors", n);
    for (size_t i = 0; i < n; i++) CERA_TRY(parse_tensor(c, arena, i, &part->tensors[i], &offsets[i], e));
    size_t padding = (size_t)(-(uint64_t)c->at & (part->alignment - 1));
    const uint8_t *unused;
    if (!cera_cursor_bytes(c, padding, &unused))
        return cera_fail(e, CERA_ERR_FORMAT, "the file ends before the data of its first tensor, %s", part->tensors[0].name);
    for (size_t i = 0; i < n; i++) CERA_TRY(place_tensor(part, &part->tensors[i], offsets[i], c->at, e));
    return check_overlap(part, arena, e);
}

cera_status cera_gguf_part_parse(cera_gguf_part *part, cera_arena *arena, size_t spare_keys, cera_error *e) {
    cera_cursor c = {.data = cera_file_data(part->file), .size = cera_file_size(part->file)};
    CERA_TRY(parse_header(part, &c, e));
    CERA_TRY(parse_keys(part, &c, arena, spare_keys, e));
    CERA_TRY(parse_alignment(part, e));
    return parse_tensors(part, &c, arena, e);
}
