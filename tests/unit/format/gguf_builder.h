/* gguf_builder.h: writes GGUF bytes for tests, right or wrong as the test wants: nothing here checks anything.
 * A second implementation on purpose: the reader is not tested against a writer that shares its mistakes. */
#ifndef CERA_TESTS_GGUF_BUILDER_H
#define CERA_TESTS_GGUF_BUILDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct builder {
    uint8_t *data;
    size_t size, capacity;
} builder;

static inline void build_bytes(builder *b, const void *bytes, size_t n) {
    if (b->capacity - b->size < n || !b->data) {
        b->capacity = 2 * b->capacity + n + 256;
        b->data = realloc(b->data, b->capacity);
        if (!b->data) abort();
    }
    if (n) memcpy(b->data + b->size, bytes, n);
    b->size += n;
}

static inline void build_le(builder *b, uint64_t v, int n) {
    uint8_t bytes[8];
    for (int i = 0; i < n; i++) bytes[i] = (uint8_t)(v >> 8 * i);
    build_bytes(b, bytes, (size_t)n);
}

static inline void build_u32(builder *b, uint32_t v) { build_le(b, v, 4); }
static inline void build_u64(builder *b, uint64_t v) { build_le(b, v, 8); }

static inline void build_text_n(builder *b, const char *text, size_t n) {
    build_u64(b, n);
    build_bytes(b, text, n);
}
static inline void build_text(builder *b, const char *text) { build_text_n(b, text, strlen(text)); }

static inline void build_header(builder *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys) {
    build_bytes(b, "GGUF", 4);
    build_u32(b, version);
    build_u64(b, n_tensors);
    build_u64(b, n_keys);
}

/* Name and type of a scalar; its value follows by build_le or build_text. */
static inline void build_key(builder *b, const char *name, uint32_t type) {
    build_text(b, name);
    build_u32(b, type);
}

/* Name, element type and count of an array; its elements follow. */
static inline void build_array(builder *b, const char *name, uint32_t type, uint64_t n) {
    build_key(b, name, 9);
    build_u32(b, type);
    build_u64(b, n);
}

static inline void build_arch(builder *b) {
    build_key(b, "general.architecture", 8);
    build_text(b, "llama");
}

static inline void build_tensor(builder *b, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t type,
                                uint64_t offset) {
    build_text(b, name);
    build_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) build_u64(b, dims[i]);
    build_u32(b, type);
    build_u64(b, offset);
}

static inline void build_padding(builder *b, size_t alignment) {
    while (b->size % alignment != 0) build_bytes(b, "", 1);
}

static inline void build_zeros(builder *b, size_t n) {
    for (size_t i = 0; i < n; i++) build_bytes(b, "", 1);
}

static inline void build_free(builder *b) {
    free(b->data);
    *b = (builder){0};
}

#endif
