/* arena_int.h: how the pool lends the caller's allocation guard to its workers, and packed blocks for the JSON reader, whose
 * nodes are many and small. Only for base/. */
#ifndef CERA_BASE_ARENA_INT_H
#define CERA_BASE_ARENA_INT_H

#include "base/arena.h"

/* As cera_arena_alloc, aligned to 8 instead of 64. */
void *cera_arena_alloc_packed(cera_arena *a, size_t count, size_t size);

/* Bytes that may still be handed out: SIZE_MAX without a limit. */
size_t cera_arena_left(const cera_arena *a);

int cera_alloc_guard_depth(void); /* of this thread: enters minus leaves; 0 in builds without CERA_ALLOC_GUARD */
void cera_alloc_guard_set_depth(int depth);

#endif
