/* arena.h: memory that lives and dies together. Grows in chunks, frees all at once, never moves what it handed out. */
#ifndef CERA_BASE_ARENA_H
#define CERA_BASE_ARENA_H

#include <stddef.h>
#include "base/status.h"

typedef struct cera_arena cera_arena;

/* limit_bytes: total that may be handed out, 0 for no limit. */
cera_status cera_arena_create(size_t limit_bytes, cera_arena **out, cera_error *e);
void cera_arena_destroy(cera_arena *a); /* NULL is fine */

/* count * size bytes, zeroed, aligned to 64. NULL when out of memory, over the limit, or when the product overflows. */
void *cera_arena_alloc(cera_arena *a, size_t count, size_t size);
/* A NUL-terminated copy of n bytes. */
char *cera_arena_text(cera_arena *a, const char *text, size_t n);
size_t cera_arena_used(const cera_arena *a); /* bytes handed out */

/* Aligned heap memory outside arenas: 64-byte aligned and zeroed; size 0 gives a valid pointer. Release with cera_free. */
void *cera_alloc(size_t count, size_t size);
void *cera_alloc_grow(void *old, size_t old_count, size_t new_count, size_t size); /* NULL: old is untouched */
void cera_free(void *p);

/* The guard for "nothing allocates during a step". In builds with CERA_ALLOC_GUARD every cera_alloc and cera_arena_alloc made
 * by a thread between enter and leave (they nest), or by a pool's worker in a run of that thread, is counted as a violation. In
 * other builds the calls do nothing. */
void cera_alloc_guard_enter(void);
void cera_alloc_guard_leave(void);
size_t cera_alloc_guard_violations(void);

#endif
