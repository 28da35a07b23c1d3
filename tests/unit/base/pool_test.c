/* pool_test.c: every task once, writes visible after a run, sleeping and waking, a slow worker that holds nobody up, errors.
 * pool_posix_test.c runs the same over condition variables. Meant to be run under TSan too (pool_test is in the TSan stage of
 * CI). */
#include "unit/cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/pool.h"
#include "base/rng.h"

enum { MAX_TASKS = 1000 };

typedef struct tally {
    int runs[MAX_TASKS]; /* not atomic: TSan and the sum prove that no task is run twice at once */
    int n_threads;
    atomic_int worker_runs[64];
    atomic_int bad_worker;
} tally;

static void count_task(void *ctx, int task, int index) {
    tally *t = ctx;
    t->runs[task]++;
    if (index < 0 || index >= t->n_threads)
        atomic_fetch_add(&t->bad_worker, 1);
    else
        atomic_fetch_add(&t->worker_runs[index], 1);
}

static cera_pool *pool_of(int n) {
    cera_pool *p = NULL;
    cera_error e = {0};
    if (cera_pool_create(n, &p, &e) != CERA_OK) fail_msg("%s", e.message);
    assert_int_equal(cera_pool_size(p), n);
    return p;
}

static void every_task_runs_once(void **state) {
    (void)state;
    static const int sizes[] = {1, 2, 3, 8};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        cera_pool *p = pool_of(sizes[s]);
        tally t = {.n_threads = sizes[s]};
        int expected[MAX_TASKS] = {0};
        for (uint64_t run = 0; run < 2000; run++) {
            int n = (int)(cera_rng_uniform(1, s, run) * (run % 10 == 0 ? MAX_TASKS : 12));
            for (int i = 0; i < n; i++) expected[i]++;
            cera_pool_run(p, n, count_task, &t);
        }
        assert_memory_equal(t.runs, expected, sizeof expected);
        assert_int_equal(atomic_load(&t.bad_worker), 0);
        cera_pool_destroy(p);
    }
}

static void no_tasks_no_calls(void **state) {
    (void)state;
    cera_pool *p = pool_of(2);
    tally t = {.n_threads = 2};
    cera_pool_run(p, 0, count_task, &t);
    cera_pool_run(p, -5, count_task, &t);
    for (int i = 0; i < MAX_TASKS; i++) assert_int_equal(t.runs[i], 0);
    cera_pool_destroy(p);
    cera_pool_destroy(NULL);
}

static void sleep_ms(int ms) { nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL); }

static void slow_task(void *ctx, int task, int index) {
    (void)task, (void)index;
    sleep_ms(5);
    atomic_fetch_add((atomic_int *)ctx, 1);
}

/* Pauses longer than the spin let workers fall asleep; tasks longer than the spin let the caller sleep. */
static void sleepers_are_woken(void **state) {
    (void)state;
    cera_pool *p = pool_of(3);
    tally t = {.n_threads = 3};
    atomic_int slow = 0;
    for (int run = 0; run < 20; run++) {
        sleep_ms(1);
        cera_pool_run(p, 50, count_task, &t);
        if (run % 4 == 0) cera_pool_run(p, 3, slow_task, &slow);
    }
    assert_int_equal(atomic_load(&slow), 15);
    for (int i = 0; i < 50; i++) assert_int_equal(t.runs[i], 20);
    cera_pool_destroy(p);
}

/* Task 0 waits until another task has run: this ends only if a sleeping worker is really woken and takes part. */
typedef struct meeting {
    atomic_int arrived;
    int n;
} meeting;

static void meet(void *ctx, int task, int index) {
    (void)task, (void)index;
    meeting *m = ctx;
    atomic_fetch_add(&m->arrived, 1);
    for (int i = 0; i < 10000 && atomic_load(&m->arrived) < m->n; i++) sleep_ms(1);
}

static void all_workers_take_part(void **state) {
    (void)state;
    cera_pool *p = pool_of(4);
    for (int run = 0; run < 5; run++) {
        meeting m = {.n = 4};
        sleep_ms(2);
        cera_pool_run(p, 4, meet, &m);
        assert_int_equal(atomic_load(&m.arrived), 4);
    }
    cera_pool_destroy(p);
}

/* Task 0 ends only when all others have ended (or after 20 s): they must be done by whoever is free, not wait behind it. */
typedef struct uneven {
    atomic_int others;
    int others_at_end_of_slow;
} uneven;

static void uneven_task(void *ctx, int task, int index) {
    (void)index;
    uneven *u = ctx;
    if (task != 0) {
        atomic_fetch_add(&u->others, 1);
        return;
    }
    for (int i = 0; i < 20000 && atomic_load(&u->others) < 199; i++) sleep_ms(1);
    u->others_at_end_of_slow = atomic_load(&u->others);
}

static void a_slow_worker_holds_nobody_up(void **state) {
    (void)state;
    cera_pool *p = pool_of(2);
    for (int run = 0; run < 20; run++) {
        uneven u = {0};
        cera_pool_run(p, 200, uneven_task, &u);
        assert_int_equal(u.others_at_end_of_slow, 199);
    }
    cera_pool_destroy(p);
}

static void *own_pool(void *arg) {
    cera_pool *p = pool_of(2);
    tally *t = arg;
    for (int run = 0; run < 300; run++) cera_pool_run(p, 17, count_task, t);
    cera_pool_destroy(p);
    return NULL;
}

static void pools_do_not_disturb_each_other(void **state) {
    (void)state;
    static tally t[3];
    pthread_t threads[3];
    memset(t, 0, sizeof t);
    for (int i = 0; i < 3; i++) {
        t[i].n_threads = 2;
        assert_int_equal(pthread_create(&threads[i], NULL, own_pool, &t[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 17; k++) assert_int_equal(t[i].runs[k], 300);
}

static void numbers_out_of_range(void **state) {
    (void)state;
    cera_pool *p = (cera_pool *)&p;
    cera_error e = {0};
    assert_int_equal(cera_pool_create(0, &p, &e), CERA_ERR_ARGUMENT);
    assert_null(p);
    assert_non_null(strstr(e.message, "between 1 and 512"));
    assert_int_equal(cera_pool_create(-1, &p, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_pool_create(CERA_POOL_MAX_THREADS + 1, &p, NULL), CERA_ERR_ARGUMENT);
}

static void created_and_destroyed_often(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        cera_pool *p = pool_of(1 + i % 5);
        if (i % 3 == 0) cera_pool_run(p, 9, count_task, &(tally){.n_threads = 5});
        cera_pool_destroy(p);
    }
}

static void nothing(void *ctx, int task, int index) { (void)ctx, (void)task, (void)index; }

/* No limit is asserted: the machine may be busy. */
static void print_cost(void **state) {
    (void)state;
    cera_pool *p = pool_of(2);
    double best = 1e9;
    for (int attempt = 0; attempt < 5; attempt++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 5000; i++) cera_pool_run(p, 2, nothing, NULL);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double us = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 5000 / 1000;
        if (us < best) best = us;
    }
    printf("note: a run of 2 empty tasks on 2 workers takes %.2f us (best of 5)\n", best);
    cera_pool_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(no_tasks_no_calls),
        cmocka_unit_test(sleepers_are_woken),
        cmocka_unit_test(all_workers_take_part),
        cmocka_unit_test(a_slow_worker_holds_nobody_up),
        cmocka_unit_test(pools_do_not_disturb_each_other),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(created_and_destroyed_often),
        cmocka_unit_test(print_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
