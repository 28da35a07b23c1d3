/* arena_test.c: arenas and aligned blocks: alignment, zeroes, limits, overflow, stability; and the allocation guard when built
 * in. */
#include "unit/cmocka_all.h"

#include <string.h>
#include "base/arena.h"
#include "base/pool.h"

static void blocks_are_aligned_and_zeroed(void **state) {
    (void)state;
    cera_arena *a;
    assert_int_equal(cera_arena_create(0, &a, NULL), CERA_OK);
    unsigned char *blocks[300];
    for (int i = 0; i < 300; i++) {
        size_t n = (size_t)(1 + i * 37 % 5000);
        blocks[i] = cera_arena_alloc(a, n, 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        for (size_t k = 0; k < n; k++) assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], i + 1, n);
    }
    for (int i = 0; i < 300; i++) /* nothing moved, nothing overlaps */
        for (int k = 0; k < 1 + i * 37 % 5000; k++) assert_int_equal(blocks[i][k], (unsigned char)(i + 1));
    cera_arena_destroy(a);
    cera_arena_destroy(NULL);
}

static void limit_counts_what_is_handed_out(void **state) {
    (void)state;
    cera_arena *a;
    cera_arena_create(1000, &a, NULL);
    assert_non_null(cera_arena_alloc(a, 10, 60));
    assert_int_equal(cera_arena_used(a), 600);
    assert_null(cera_arena_alloc(a, 401, 1));
    assert_int_equal(cera_arena_used(a), 600);
    assert_non_null(cera_arena_alloc(a, 400, 1));
    assert_null(cera_arena_alloc(a, 1, 1));
    assert_null(cera_arena_text(a, "", 0));
    cera_arena_destroy(a);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    cera_arena *a;
    cera_arena_create(0, &a, NULL);
    assert_null(cera_arena_alloc(a, SIZE_MAX / 2 + 1, 2));
    assert_null(cera_arena_alloc(a, SIZE_MAX, 1));
    assert_null(cera_arena_alloc(a, SIZE_MAX - 64, 1));
    assert_null(cera_alloc(SIZE_MAX / 4 + 1, 4));
    assert_null(cera_alloc(SIZE_MAX, 1));
    assert_null(cera_alloc(SIZE_MAX - 70, 1));
    assert_non_null(cera_arena_alloc(a, 0, 8));
    cera_arena_destroy(a);
}

static void texts_are_copied(void **state) {
    (void)state;
    cera_arena *a;
    cera_arena_create(0, &a, NULL);
    char text[] = "hello";
    char *copy = cera_arena_text(a, text, 4), *empty = cera_arena_text(a, NULL, 0);
    text[0] = 'j';
    assert_string_equal(copy, "hell");
    assert_string_equal(empty, "");
    cera_arena_destroy(a);
}

static void large_blocks_do_not_waste_the_chunk(void **state) {
    (void)state;
    cera_arena *a;
    cera_arena_create(0, &a, NULL);
    char *before = cera_arena_alloc(a, 64, 1), *large = cera_arena_alloc(a, 1 << 22, 1), *after = cera_arena_alloc(a, 64, 1);
    assert_non_null(large);
    assert_ptr_equal(after, before + 64);
    cera_arena_destroy(a);
}

static void heap_blocks_grow(void **state) {
    (void)state;
    uint32_t *p = cera_alloc(10, sizeof *p);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (uint32_t i = 0; i < 10; i++) p[i] = i;
    assert_null(cera_alloc_grow(p, 10, SIZE_MAX / 2, sizeof *p));
    p = cera_alloc_grow(p, 10, 1000, sizeof *p);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (uint32_t i = 0; i < 1000; i++) assert_int_equal(p[i], i < 10 ? i : 0);
    p = cera_alloc_grow(p, 1000, 5, sizeof *p);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(p[i], i);
    cera_free(p);
    p = cera_alloc_grow(NULL, 0, 3, sizeof *p);
    assert_int_equal(p[2], 0);
    cera_free(p);
    cera_free(NULL);
    void *nothing = cera_alloc(0, 8);
    assert_non_null(nothing);
    cera_free(nothing);
}

#ifdef CERA_ALLOC_GUARD
static void allocate_in_task(void *ctx, int task, int worker) {
    (void)ctx, (void)worker;
    if (task % 2 == 0) cera_free(cera_alloc(1, 1));
}
#endif

/* Without CERA_ALLOC_GUARD the calls exist and count nothing. */
static void guard_counts_allocations_of_a_step(void **state) {
    (void)state;
    size_t before = cera_alloc_guard_violations();
    cera_free(cera_alloc(1, 1));
    assert_int_equal(cera_alloc_guard_violations(), before);
    cera_alloc_guard_enter();
    cera_free(cera_alloc(1, 1));
    cera_alloc_guard_leave();
    cera_free(cera_alloc(1, 1));
#ifdef CERA_ALLOC_GUARD
    assert_int_equal(cera_alloc_guard_violations(), before + 1);
    cera_pool *p; /* workers count for the thread that runs them */
    assert_int_equal(cera_pool_create(3, &p, NULL), CERA_OK);
    cera_pool_run(p, 100, allocate_in_task, NULL);
    assert_int_equal(cera_alloc_guard_violations(), before + 1);
    cera_alloc_guard_enter();
    cera_pool_run(p, 100, allocate_in_task, NULL);
    cera_alloc_guard_leave();
    assert_int_equal(cera_alloc_guard_violations(), before + 51);
    cera_pool_run(p, 100, allocate_in_task, NULL);
    cera_pool_destroy(p);
    assert_int_equal(cera_alloc_guard_violations(), before + 51);
#else
    assert_int_equal(cera_alloc_guard_violations(), before);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_zeroed),       cmocka_unit_test(limit_counts_what_is_handed_out),
        cmocka_unit_test(sizes_that_overflow_are_refused),     cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(large_blocks_do_not_waste_the_chunk), cmocka_unit_test(heap_blocks_grow),
        cmocka_unit_test(guard_counts_allocations_of_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
