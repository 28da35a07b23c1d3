/* gguf.c: opens a model: one file, or a split set from its first part, and makes one list of keys and tensors of it.
 * Owns the files and the arena that everything parsed lives in. Parsing one file is gguf_parse.c, reading values gguf_get.c.
 *
 * Split sets (llama.cpp's gguf-split): NAME-00001-of-0000N.gguf ...; keys split.no, split.count in every part. The keys of the
 * model are the first part's; of the others only the split keys are looked at. Names of tensors are unique in the whole set. */
#include "format/gguf_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct cera_gguf {
    cera_arena *arena;
    cera_gguf_part *parts; /* [n_parts]; parts[0] holds the keys */
    size_t n_parts;
    cera_gguf_tensor *tensors; /* [n_tensors] of all parts, in the order of the files */
    size_t n_tensors;
    cera_name_table tensor_table;
    uint64_t file_bytes;
};

static const cera_gguf_options no_options;

void cera_gguf_close(cera_gguf *g) {
    if (!g) return;
    for (size_t i = 0; i < g->n_parts; i++) cera_file_close(g->parts[i].file);
    cera_arena_destroy(g->arena); /* g itself lives in it */
}

static cera_status gguf_create(cera_gguf **out, cera_error *e) {
    cera_arena *arena;
    CERA_TRY(cera_arena_create(0, &arena, e));
    cera_gguf *g = cera_arena_alloc(arena, 1, sizeof *g);
    cera_gguf_part *first = cera_arena_alloc(arena, 1, sizeof *first);
    if (!g || !first) {
        cera_arena_destroy(arena);
        return cera_fail(e, CERA_ERR_MEMORY, "out of memory");
    }
    g->arena = arena;
    g->parts = first;
    g->n_parts = 1;
    *out = g;
    return CERA_OK;
}

/* Opens and parses one file; messages name it. */
static cera_status open_part(cera_gguf_part *part, cera_arena *arena, const char *path, const cera_gguf_options *o,
                             size_t spare, cera_error *e) {
    CERA_TRY(cera_file_open(path, o->file_flags, o->progress, o->progress_ctx, &part->file, e));
    cera_status status = cera_gguf_part_parse(part, arena, spare, e);
    if (status != CERA_OK) cera_fail_prefix(e, path);
    return status;
}

/* ---- split sets ---- */

/* The integer key of a part, or fallback when it has none. */
static cera_status part_number(const cera_gguf_part *part, const char *key, uint64_t max, uint64_t fallback, uint64_t *out,
                               cera_error *e) {
    const cera_gguf_value *v = cera_gguf_part_find(part, key);
    *out = fallback;
    if (!v) return CERA_OK;
    if (v->n != 1) return cera_fail(e, CERA_ERR_FORMAT, "key %s must be one integer", key);
    return cera_gguf_value_u64(v, 0, 0, max, out, e);
}

/* Length of the path in front of "-00001-of-0000N.gguf"; 0 when the path does not end so. */
static size_t split_stem(const char *path, uint64_t n_parts) {
    char suffix[48];
    size_t n = strlen(path), n_suffix = (size_t)snprintf(suffix, sizeof suffix, "-00001-of-%05" PRIu64 ".gguf", n_parts);
    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0 ? n - n_suffix : 0;
}

static cera_status check_split_keys(const cera_gguf_part *part, uint64_t index, uint64_t n_parts, cera_error *e) {
    uint64_t no, count;
    CERA_TRY(part_number(part, "split.no", UINT16_MAX, UINT64_MAX, &no, e));
    CERA_TRY(part_number(part, "split.count", UINT16_MAX, UINT64_MAX, &count, e));
    if (no == UINT64_MAX || count == UINT64_MAX)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s is missing: this file is no part of a split set",
                         no == UINT64_MAX ? "split.no" : "split.count");
    if (no != index)
        return cera_fail(e, CERA_ERR_FORMAT, "key split.no is %" PRIu64 "; this part must have %" PRIu64, no, index);
    if (count != n_parts)
        return cera_fail(e, CERA_ERR_FORMAT, "key split.count is %" PRIu64 "; the first part says %" PRIu64, count, n_parts);
    return CERA_OK;
}

static cera_status open_later_part(cera_gguf *g, size_t index, uint64_t n_parts, const char *path, const cera_gguf_options *o,
                                   cera_error *e) {
    cera_gguf_part *part = &g->parts[index];
    g->n_parts = index + 1; /* close() looks at it even when it is half open */
    CERA_TRY(open_part(part, g->arena, path, o, 0, e));
    cera_status status = check_split_keys(part, index, n_parts, e);
    if (status != CERA_OK) cera_fail_prefix(e, path);
    return status;
}

static cera_status open_later_parts(cera_gguf *g, uint64_t n_parts, const cera_gguf_options *o, cera_error *e) {
    const char *first = cera_gguf_path(g);
    size_t stem = split_stem(first, n_parts), size = stem + 48;
    if (stem == 0)
        return cera_fail(e, CERA_ERR_FORMAT, "%s: part 1 of %" PRIu64 ", so its name must end in -00001-of-%05" PRIu64 ".gguf",
                         first, n_parts, n_parts);
    cera_gguf_part *parts = cera_arena_alloc(g->arena, (size_t)n_parts, sizeof *parts);
    char *path = cera_arena_alloc(g->arena, size, 1);
    if (!parts || !path) return cera_fail(e, CERA_ERR_MEMORY, "%s: no memory for %" PRIu64 " parts", first, n_parts);
    parts[0] = g->parts[0];
    g->parts = parts;
    for (size_t i = 1; i < n_parts; i++) {
        snprintf(path, size, "%.*s-%05zu-of-%05" PRIu64 ".gguf", (int)stem, first, i + 1, n_parts);
        CERA_TRY(open_later_part(g, i, n_parts, path, o, e));
    }
    return CERA_OK;
}

/* n_parts: 1 for a file that is whole. */
static cera_status split_count(const cera_gguf_part *first, uint64_t *n_parts, cera_error *e) {
    uint64_t no;
    CERA_TRY(part_number(first, "split.count", CERA_GGUF_MAX_SPLITS, 1, n_parts, e));
    if (*n_parts <= 1) {
        *n_parts = 1;
        return CERA_OK;
    }
    CERA_TRY(part_number(first, "split.no", UINT16_MAX, 0, &no, e));
    if (no != 0)
        return cera_fail(e, CERA_ERR_FORMAT,
                         "key split.no: this is part %" PRIu64 " of %" PRIu64 "; open the first part instead", no + 1,
                         *n_parts);
    return CERA_OK;
}

/* ---- the merged list ---- */

static cera_status gather_tensors(cera_gguf *g, cera_error *e) {
    size_t at = 0;
    for (size_t i = 0; i < g->n_parts; i++) {
        g->n_tensors += g->parts[i].n_tensors;
        g->file_bytes += cera_file_size(g->parts[i].file);
    }
    if (g->n_tensors > CERA_GGUF_MAX_TENSORS)
        return cera_fail(e, CERA_ERR_LIMIT, "the parts hold %zu tensors; the limit is %d", g->n_tensors, CERA_GGUF_MAX_TENSORS);
    g->tensors = g->parts[0].tensors;
    if (g->n_parts == 1) return CERA_OK;
    g->tensors = cera_arena_alloc(g->arena, g->n_tensors, sizeof *g->tensors);
    if (!g->tensors) return cera_fail(e, CERA_ERR_MEMORY, "no memory for %zu tensors", g->n_tensors);
    for (size_t i = 0; i < g->n_parts; i++) {
        size_t n = g->parts[i].n_tensors;
        if (n > 0) memcpy(g->tensors + at, g->parts[i].tensors, n * sizeof *g->tensors);
        at += n;
    }
    return CERA_OK;
}

static cera_status check_split_tensors(const cera_gguf *g, cera_error *e) {
    uint64_t promised;
    CERA_TRY(part_number(&g->parts[0], "split.tensors.count", UINT64_MAX, g->n_tensors, &promised, e));
    if (promised == g->n_tensors) return CERA_OK;
    return cera_fail(e, CERA_ERR_FORMAT, "key split.tensors.count is %" PRIu64 "; the %zu parts hold %zu tensors", promised,
                     g->n_parts, g->n_tensors);
}

static cera_status index_tensors(cera_gguf *g, cera_error *e) {
    if (!cera_name_table_init(&g->tensor_table, g->arena, g->tensors, sizeof *g->tensors, g->n_tensors))
        return cera_fail(e, CERA_ERR_MEMORY, "no memory for %zu tensor names", g->n_tensors);
    for (size_t i = 0; i < g->n_tensors; i++) {
        cera_name_insert result = cera_name_table_insert(&g->tensor_table, i);
        if (result == CERA_NAME_TAKEN) return cera_fail(e, CERA_ERR_FORMAT, "tensor %s occurs twice", g->tensors[i].name);
        if (result == CERA_NAME_CROWDED)
            return cera_fail(e, CERA_ERR_LIMIT, "tensor %s: more than %d names share a hash", g->tensors[i].name,
                             CERA_NAME_TABLE_MAX_PROBES);
    }
    return CERA_OK;
}

/* What follows when all parts are parsed; messages do not name the file. */
static cera_status finish(cera_gguf *g, const cera_gguf_options *o, cera_error *e) {
    CERA_TRY(gather_tensors(g, e));
    CERA_TRY(check_split_tensors(g, e));
    CERA_TRY(index_tensors(g, e));
    return cera_gguf_part_override(&g->parts[0], g->arena, o->overrides, o->n_overrides, e);
}

static cera_status open_all(cera_gguf *g, const char *path, const cera_gguf_options *o, cera_error *e) {
    uint64_t n_parts;
    CERA_TRY(open_part(&g->parts[0], g->arena, path, o, (size_t)o->n_overrides, e));
    cera_status status = split_count(&g->parts[0], &n_parts, e);
    if (status == CERA_OK && n_parts > 1) CERA_TRY(open_later_parts(g, n_parts, o, e));
    if (status == CERA_OK) status = finish(g, o, e);
    if (status != CERA_OK) cera_fail_prefix(e, path);
    return status;
}

static cera_status open_view(cera_gguf *g, const char *name, const void *data, size_t size, const cera_gguf_options *o,
                             cera_error *e) {
    uint64_t n_parts;
    CERA_TRY(cera_file_view(name, data, size, &g->parts[0].file, e));
    cera_status status = cera_gguf_part_parse(&g->parts[0], g->arena, (size_t)o->n_overrides, e);
    if (status == CERA_OK) status = split_count(&g->parts[0], &n_parts, e);
    if (status == CERA_OK && n_parts > 1)
        status =
            cera_fail(e, CERA_ERR_UNSUPPORTED, "part 1 of %" PRIu64 "; a split set can be opened from files only", n_parts);
    if (status == CERA_OK) status = finish(g, o, e);
    if (status != CERA_OK) cera_fail_prefix(e, name);
    return status;
}

static cera_status check_options(const cera_gguf_options *o, cera_error *e) {
    if (o->n_overrides < 0 || o->n_overrides > CERA_GGUF_MAX_KEYS || (o->n_overrides > 0 && !o->overrides))
        return cera_fail(e, CERA_ERR_ARGUMENT, "%d overrides; there may be up to %d", o->n_overrides, CERA_GGUF_MAX_KEYS);
    return CERA_OK;
}

/* Shared by both ways of opening: data NULL means the file of that path. */
static cera_status open_any(const char *path, const void *data, size_t size, const cera_gguf_options *o, cera_gguf **out,
                            cera_error *e) {
    *out = NULL;
    if (!o) o = &no_options;
    CERA_TRY(check_options(o, e));
    cera_gguf *g = NULL;
    CERA_TRY(gguf_create(&g, e));
    cera_status status = data ? open_view(g, path, data, size, o, e) : open_all(g, path, o, e);
    if (status != CERA_OK) {
        cera_gguf_close(g);
        return status;
    }
    *out = g;
    return CERA_OK;
}

cera_status cera_gguf_open(const char *path, const cera_gguf_options *options, cera_gguf **out, cera_error *e) {
    return open_any(path, NULL, 0, options, out, e);
}

cera_status cera_gguf_open_memory(const char *name, const void *data, size_t size_bytes, const cera_gguf_options *options,
                                  cera_gguf **out, cera_error *e) {
    return open_any(name, data ? data : "", data ? size_bytes : 0, options, out, e);
}

const char *cera_gguf_path(const cera_gguf *g) { return cera_file_path(g->parts[0].file); }
uint32_t cera_gguf_version(const cera_gguf *g) { return g->parts[0].version; }
uint64_t cera_gguf_file_bytes(const cera_gguf *g) { return g->file_bytes; }

size_t cera_gguf_n_keys(const cera_gguf *g) { return g->parts[0].n_keys; }
const cera_gguf_value *cera_gguf_key(const cera_gguf *g, size_t index) { return &g->parts[0].keys[index]; }
const cera_gguf_value *cera_gguf_find(const cera_gguf *g, const char *key) { return cera_gguf_part_find(&g->parts[0], key); }

size_t cera_gguf_n_tensors(const cera_gguf *g) { return g->n_tensors; }
const cera_gguf_tensor *cera_gguf_tensor_at(const cera_gguf *g, size_t index) { return &g->tensors[index]; }
const cera_gguf_tensor *cera_gguf_tensor_find(const cera_gguf *g, const char *name) {
    size_t index = cera_name_table_find(&g->tensor_table, name);
    return index == SIZE_MAX ? NULL : &g->tensors[index];
}
