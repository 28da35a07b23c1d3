/* arena_int.h: how the pool lends the caller's allocation guard to its workers. Only for base/. */
#ifndef CERA_BASE_ARENA_INT_H
#define CERA_BASE_ARENA_INT_H

int cera_alloc_guard_depth(void); /* of this thread: enters minus leaves; 0 in builds without CERA_ALLOC_GUARD */
void cera_alloc_guard_set_depth(int depth);

#endif
