/* pool.h: worker threads that run tasks 0..n-1 of a function. The caller is worker 0. Waiting spins briefly, then sleeps on a
 * futex (POSIX condition variables elsewhere), so that an idle or oversubscribed pool costs nothing. */
#ifndef CERA_BASE_POOL_H
#define CERA_BASE_POOL_H

#include "base/status.h"

typedef struct cera_pool cera_pool;
typedef void (*cera_pool_fn)(void *ctx, int task, int worker);

enum { CERA_POOL_MAX_THREADS = 512 };

/* n_threads >= 1, exact. Threads inherit the caller's affinity; none is pinned. */
cera_status cera_pool_create(int n_threads, cera_pool **out, cera_error *e);
void cera_pool_destroy(cera_pool *p);
int cera_pool_size(const cera_pool *p);

/* Runs fn(ctx, task, worker) for every task in [0, n_tasks), each once, on whichever worker is free (a slow or descheduled
 * worker must not hold up the rest beyond the task it has begun), and returns when all have finished; their writes are then
 * visible to the caller. 0 <= worker < size. Not reentrant: one run at a time per pool. No allocation. */
void cera_pool_run(cera_pool *p, int n_tasks, cera_pool_fn fn, void *ctx);

#endif
