/* pool.c: runs tasks on worker threads. Owns claiming, waiting and waking; knows nothing of what the tasks do.
 *
 * Claiming. `ticket` counts the tasks that nobody has begun, plus IDLE: taking one away tells in the same atomic operation
 * whether there was one. Only who has claimed a task reads the run's description (fn, ctx, n_tasks), and a run cannot end
 * before every claimed task is reported in `done`; so a worker that was descheduled anywhere else is never waited for, and when
 * it wakes up late it either finds nothing or claims a task of the run of that moment, whose description it then reads. Failed
 * claims push the count below IDLE; 2^31 of them fit, and each run's store starts afresh.
 *
 * Waiting. Workers spin for SPIN_NS after the last work, then sleep on `wake`. A sleeper first counts itself in `sleepers`,
 * then looks at the ticket once more; the caller first stores the ticket, then looks at `sleepers` (both sequentially
 * consistent), so one of the two sees the other. The caller waits for `done` the same way with `caller_sleeps`.
 *
 * Cost of a run of two empty tasks on two hot workers: below a microsecond on two cores of Zen 5 (pool_test prints it). */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "base/arena.h"
#include "base/arena_int.h"
#include "base/cpu.h"

#if defined(__linux__) && !defined(CERA_POOL_NO_FUTEX)
#    define USE_FUTEX 1
#    include <linux/futex.h>
#    include <sys/syscall.h>
#    include <unistd.h>
#else
#    define USE_FUTEX 0
#endif

enum { LINE = 64, SPIN_NS = 40000 };
static const uint32_t IDLE = 1u << 31;

typedef struct worker {
    cera_pool *pool;
    pthread_t thread;
    int index;
} worker;

/* What different threads write stands on different cache lines. */
struct cera_pool {
    _Alignas(LINE) atomic_uint ticket;
    _Alignas(LINE) atomic_uint done; /* tasks of this run that have finished */
    atomic_uint caller_sleeps;
    _Alignas(LINE) atomic_uint wake; /* the word that workers sleep on */
    atomic_uint sleepers;
    atomic_bool stop;
    /* The run's description: written by the caller while no task is claimed, read by who has claimed one. */
    _Alignas(LINE) cera_pool_fn fn;
    void *ctx;
    uint32_t n_tasks;
    int guard_depth;
    /* Fixed at creation. */
    _Alignas(LINE) int n_threads;
    unsigned spins;  /* pauses in about SPIN_NS */
    worker *workers; /* [n_threads - 1] */
    int n_started;
#if !USE_FUTEX
    pthread_mutex_t mutex;
    pthread_cond_t changed;
#endif
};

static void pause_core(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* yield is a no-op on most cores; isb waits about as long as x86's pause */
#endif
}

/* Sleeps while *word is expected; may return early. */
static void sleep_on(cera_pool *p, atomic_uint *word, unsigned expected) {
#if USE_FUTEX
    (void)p;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
#else
    pthread_mutex_lock(&p->mutex);
    if (atomic_load(word) == expected) pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
#endif
}

static void wake_sleepers(cera_pool *p, atomic_uint *word, int n) {
#if USE_FUTEX
    (void)p;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
#else
    (void)word;
    (void)n;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
#endif
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A pause takes from 5 to 140 cycles, depending on the core. The least of three tries: a try may have been interrupted. */
static unsigned measure_spins(void) {
    enum { PAUSES = 256 };
    uint64_t least = UINT64_MAX;
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t start = now_ns();
        for (int i = 0; i < PAUSES; i++) pause_core();
        uint64_t took = now_ns() - start;
        if (took < least) least = took;
    }
    return (unsigned)((uint64_t)SPIN_NS * PAUSES / (least ? least : 1)) + 1;
}

/* Works on the present run until nothing is left to claim. */
static void work(cera_pool *p, int index) {
    uint32_t finished = 0, n_tasks = 0;
    for (;;) {
        uint32_t before = atomic_fetch_sub_explicit(&p->ticket, 1, memory_order_acq_rel);
        if (before <= IDLE) break;
        n_tasks = p->n_tasks;
        cera_alloc_guard_set_depth(p->guard_depth);
        p->fn(p->ctx, (int)(n_tasks - (before - IDLE)), index);
        finished++;
    }
    if (finished == 0) return;
    if (index > 0) cera_alloc_guard_set_depth(0);
    /* One report for all: between two claims of one run the run cannot end, so none of them belongs to another run. */
    uint32_t total = atomic_fetch_add(&p->done, finished) + finished;
    if (index > 0 && total == n_tasks && atomic_load(&p->caller_sleeps)) wake_sleepers(p, &p->done, 1);
}

static bool has_work(cera_pool *p) { return atomic_load_explicit(&p->ticket, memory_order_relaxed) > IDLE; }

/* Returns when there may be work, or when the pool ends. */
static void wait_for_work(cera_pool *p) {
    for (unsigned i = 0; i < p->spins; i++) {
        if (has_work(p) || atomic_load_explicit(&p->stop, memory_order_relaxed)) return;
        pause_core();
    }
    atomic_fetch_add(&p->sleepers, 1);
    for (;;) {
        unsigned seen = atomic_load(&p->wake);
        if (atomic_load(&p->ticket) > IDLE || atomic_load(&p->stop)) break;
        sleep_on(p, &p->wake, seen);
    }
    atomic_fetch_sub(&p->sleepers, 1);
}

static void *worker_main(void *arg) {
    worker *w = arg;
    while (!atomic_load_explicit(&w->pool->stop, memory_order_acquire)) {
        if (has_work(w->pool))
            work(w->pool, w->index);
        else
            wait_for_work(w->pool);
    }
    return NULL;
}

static void wait_until_done(cera_pool *p, uint32_t n_tasks) {
    for (unsigned i = 0; i < p->spins; i++) {
        if (atomic_load_explicit(&p->done, memory_order_acquire) == n_tasks) return;
        pause_core();
    }
    atomic_store(&p->caller_sleeps, 1);
    for (;;) {
        uint32_t seen = atomic_load(&p->done);
        if (seen == n_tasks) break;
        sleep_on(p, &p->done, seen);
    }
    atomic_store(&p->caller_sleeps, 0);
}

void cera_pool_run(cera_pool *p, int n_tasks, cera_pool_fn fn, void *ctx) {
    if (n_tasks <= 0) return;
    if (n_tasks == 1 || p->n_threads == 1) {
        for (int task = 0; task < n_tasks; task++) fn(ctx, task, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n_tasks = (uint32_t)n_tasks;
    p->guard_depth = cera_alloc_guard_depth();
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store(&p->ticket, IDLE + (uint32_t)n_tasks);
    unsigned asleep = atomic_load(&p->sleepers);
    if (asleep > 0) {
        atomic_fetch_add(&p->wake, 1);
        wake_sleepers(p, &p->wake, n_tasks - 1 < p->n_threads - 1 ? n_tasks - 1 : p->n_threads - 1);
    }
    work(p, 0);
    wait_until_done(p, (uint32_t)n_tasks);
}

/* Signals that a program handles belong to its own threads; faults must stay with the thread that raised them. */
static void block_signals(sigset_t *old) {
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_BLOCK, &all, old);
}

static cera_status start_workers(cera_pool *p, cera_error *e) {
    sigset_t old;
    int failed = 0;
    block_signals(&old);
    for (int i = 0; i < p->n_threads - 1 && !failed; i++) {
        p->workers[i] = (worker){.pool = p, .index = i + 1};
        failed = pthread_create(&p->workers[i].thread, NULL, worker_main, &p->workers[i]);
        if (!failed) p->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed) return CERA_OK;
    return cera_fail(e, CERA_ERR_MEMORY, "thread %d of %d could not be started: %s", p->n_started + 2, p->n_threads,
                     strerror(failed));
}

cera_status cera_pool_create(int n_threads, cera_pool **out, cera_error *e) {
    *out = NULL;
    if (n_threads < 1 || n_threads > CERA_POOL_MAX_THREADS)
        return cera_fail(e, CERA_ERR_ARGUMENT, "%d threads; the number must be between 1 and %d", n_threads,
                         CERA_POOL_MAX_THREADS);
    cera_cpu_features_raw(); /* the kernel must be asked for tiles before threads start */
    cera_pool *p = cera_alloc(1, sizeof *p);
    worker *workers = cera_alloc((size_t)n_threads, sizeof *workers);
    if (!p || !workers) {
        cera_free(p);
        cera_free(workers);
        return cera_fail(e, CERA_ERR_MEMORY, "no memory for a pool of %d threads", n_threads);
    }
    p->n_threads = n_threads;
    p->workers = workers;
    p->spins = measure_spins();
    atomic_init(&p->ticket, IDLE);
#if !USE_FUTEX
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
#endif
    cera_status status = start_workers(p, e);
    if (status != CERA_OK) {
        cera_pool_destroy(p);
        return status;
    }
    *out = p;
    return CERA_OK;
}

void cera_pool_destroy(cera_pool *p) {
    if (!p) return;
    atomic_store(&p->stop, true);
    atomic_fetch_add(&p->wake, 1);
    wake_sleepers(p, &p->wake, CERA_POOL_MAX_THREADS);
    for (int i = 0; i < p->n_started; i++) pthread_join(p->workers[i].thread, NULL);
#if !USE_FUTEX
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
#endif
    cera_free(p->workers);
    cera_free(p);
}

int cera_pool_size(const cera_pool *p) { return p->n_threads; }
