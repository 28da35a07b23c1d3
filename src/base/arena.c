/* arena.c: arenas, aligned heap blocks, and the guard that counts allocations during a step.
 * Large blocks come from calloc, so that the kernel's zero pages are not touched before they are used.
 * Does not own any policy: limits are the caller's. */
#include "base/arena.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena_int.h"

enum { ALIGNMENT = 64, CHUNK_MIN = 4096, CHUNK_MAX = 1 << 20 };

#ifdef CERA_ALLOC_GUARD
static _Thread_local int guard_depth; /* of this thread; the pool lends it to its workers for the length of a run */
static atomic_size_t guard_violations;

static void guard_check(void) {
    if (guard_depth > 0) atomic_fetch_add_explicit(&guard_violations, 1, memory_order_relaxed);
}
void cera_alloc_guard_enter(void) { guard_depth++; }
void cera_alloc_guard_leave(void) { guard_depth--; }
size_t cera_alloc_guard_violations(void) { return atomic_load_explicit(&guard_violations, memory_order_relaxed); }
int cera_alloc_guard_depth(void) { return guard_depth; }
void cera_alloc_guard_set_depth(int depth) { guard_depth = depth; }
#else
static void guard_check(void) {}
void cera_alloc_guard_enter(void) {}
void cera_alloc_guard_leave(void) {}
size_t cera_alloc_guard_violations(void) { return 0; }
int cera_alloc_guard_depth(void) { return 0; }
void cera_alloc_guard_set_depth(int depth) { (void)depth; }
#endif

/* The pointer that calloc gave stands in the word before the aligned block. */
static void *alloc_zeroed(size_t bytes) {
    if (bytes > SIZE_MAX - ALIGNMENT - sizeof(void *)) return NULL;
    char *raw = calloc(1, bytes + ALIGNMENT + sizeof(void *));
    if (!raw) return NULL;
    uintptr_t start = ((uintptr_t)raw + sizeof(void *) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    char *block = raw + (start - (uintptr_t)raw);
    memcpy(block - sizeof raw, &raw, sizeof raw);
    return block;
}

void *cera_alloc(size_t count, size_t size) {
    guard_check();
    if (size && count > SIZE_MAX / size) return NULL;
    return alloc_zeroed(count * size);
}

void *cera_alloc_grow(void *old, size_t old_count, size_t new_count, size_t size) {
    void *block = cera_alloc(new_count, size);
    if (!block) return NULL;
    size_t keep = old_count < new_count ? old_count : new_count;
    if (old && keep && size) memcpy(block, old, keep * size);
    cera_free(old);
    return block;
}

void cera_free(void *p) {
    if (!p) return;
    void *raw;
    memcpy(&raw, (char *)p - sizeof raw, sizeof raw);
    free(raw);
}

typedef struct chunk {
    struct chunk *next;
    size_t size, used; /* of data */
    char *data;        /* 64-byte aligned */
} chunk;

struct cera_arena {
    chunk *chunks; /* the newest first; only it is filled further */
    size_t limit;  /* 0: none */
    size_t used;   /* handed out */
    size_t next_size;
};

cera_status cera_arena_create(size_t limit_bytes, cera_arena **out, cera_error *e) {
    *out = NULL;
    cera_arena *a = calloc(1, sizeof *a);
    if (!a) return cera_fail(e, CERA_ERR_MEMORY, "no memory for an arena");
    a->limit = limit_bytes;
    a->next_size = CHUNK_MIN;
    *out = a;
    return CERA_OK;
}

void cera_arena_destroy(cera_arena *a) {
    if (!a) return;
    for (chunk *c = a->chunks; c;) {
        chunk *next = c->next;
        cera_free(c);
        c = next;
    }
    free(a);
}

/* The header and its data are one block: the header takes the first aligned unit. */
static chunk *chunk_create(size_t bytes) {
    _Static_assert(sizeof(chunk) <= ALIGNMENT, "the header must fit in front of the data");
    if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
    chunk *c = alloc_zeroed(bytes + ALIGNMENT);
    if (!c) return NULL;
    c->size = bytes;
    c->data = (char *)c + ALIGNMENT;
    return c;
}

/* A chunk with room for bytes from an aligned start. A block that is large for the chunk size gets a chunk of its own behind
 * the current one, so that the rest of the current one is not lost. */
static chunk *chunk_with_room(cera_arena *a, size_t bytes, size_t alignment) {
    chunk *c = a->chunks;
    if (c) {
        size_t start = (c->used + alignment - 1) & ~(alignment - 1);
        if (start <= c->size && bytes <= c->size - start) return c;
    }
    bool own = bytes > a->next_size / 2;
    c = chunk_create(own ? bytes : a->next_size);
    if (!c) return NULL;
    if (own && a->chunks) {
        c->next = a->chunks->next;
        a->chunks->next = c;
        return c;
    }
    if (!own && a->next_size < CHUNK_MAX) a->next_size *= 2;
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

static void *take(cera_arena *a, size_t bytes, size_t alignment) {
    guard_check();
    if (a->limit && bytes > a->limit - a->used) return NULL;
    chunk *c = chunk_with_room(a, bytes, alignment);
    if (!c) return NULL;
    size_t start = (c->used + alignment - 1) & ~(alignment - 1);
    c->used = start + bytes;
    a->used += bytes;
    return c->data + start;
}

static void *take_array(cera_arena *a, size_t count, size_t size, size_t alignment) {
    if (size && count > SIZE_MAX / size) return NULL;
    size_t bytes = count * size;
    return take(a, bytes ? bytes : 1, alignment);
}

void *cera_arena_alloc(cera_arena *a, size_t count, size_t size) { return take_array(a, count, size, ALIGNMENT); }
void *cera_arena_alloc_packed(cera_arena *a, size_t count, size_t size) { return take_array(a, count, size, 8); }

char *cera_arena_text(cera_arena *a, const char *text, size_t n) {
    if (n == SIZE_MAX) return NULL;
    char *copy = take(a, n + 1, 1);
    if (!copy) return NULL;
    if (n) memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

size_t cera_arena_used(const cera_arena *a) { return a->used; }
size_t cera_arena_left(const cera_arena *a) { return a->limit ? a->limit - a->used : SIZE_MAX; }
