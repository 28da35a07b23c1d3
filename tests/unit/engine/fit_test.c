/* fit_test.c: what fits, on plans made by hand whose sizes are counted here. */
#include "unit/cmocka_all.h"

#include <string.h>

#include "engine/fit.h"

enum { KIB = 1024, MIB = 1 << 20 };

/* One full group of 2 layers: 2 * 4 * (8 + 8) * 2 bytes = 256 a token with f16, 16 KiB a page. */
static cera_kv_group full = {.n_layers = 2, .n_head_kv = 4, .d_k = 8, .d_v = 8};
static int widths[] = {64, 256};

static cera_plan plan_of(cera_kv_group *groups, int n_groups) {
    return (cera_plan){.n_ctx_train = 4096,
                       .n_embd = 64,
                       .n_vocab = 100,
                       .n_values = 2,
                       .value_width = widths,
                       .n_groups = n_groups,
                       .groups = groups,
                       .causal = true};
}

/* Work of a step: 8 * 256 values * 4 bytes * 64 rows = 512 KiB. */
static cera_fit_request ask(uint64_t weights, uint64_t available, int32_t n_ctx) {
    return (cera_fit_request){.path = "m.gguf",
                              .weight_bytes = weights,
                              .available_bytes = available,
                              .k_bytes = 2,
                              .v_bytes = 2,
                              .n_ctx = n_ctx,
                              .ubatch = 64};
}

static void test_cache_bytes(void **state) {
    (void)state;
    cera_plan p = plan_of(&full, 1);
    assert_int_equal(cera_fit_cache_bytes(&p, 2, 2, 64, 0), 0);
    assert_int_equal(cera_fit_cache_bytes(&p, 2, 2, 64, 1), 16 * KIB);
    assert_int_equal(cera_fit_cache_bytes(&p, 2, 2, 64, 64), 16 * KIB);
    assert_int_equal(cera_fit_cache_bytes(&p, 2, 2, 64, 65), 32 * KIB);
    assert_int_equal(cera_fit_cache_bytes(&p, 4, 2, 64, 64), 24 * KIB);
    assert_int_equal(cera_fit_bytes_per_1k(&p, 2, 2), 256000);
    cera_kv_group mla = full;
    mla.v_is_k = true;
    p = plan_of(&mla, 1);
    assert_int_equal(cera_fit_bytes_per_1k(&p, 2, 2), 256000); /* the backend keeps V in its own layout */
    cera_kv_group window = full;
    window.window = 100; /* 100 + 64 rows + 128 of slack: 5 pages, however long */
    p = plan_of(&window, 1);
    assert_int_equal(cera_fit_cache_bytes(&p, 2, 2, 64, 1 << 20), 5 * 16 * KIB);
    p.state_layers = 3, p.state_width = 10;
    assert_int_equal(cera_fit_cache_bytes(&p, 2, 2, 64, 0), 3 * 10 * 4 * 2);
}

static void test_sizes_saturate(void **state) {
    (void)state;
    cera_kv_group huge = {.n_layers = 1 << 30, .n_head_kv = 1 << 30, .d_k = 1 << 30, .d_v = 1 << 30};
    cera_plan p = plan_of(&huge, 1);
    assert_true(cera_fit_cache_bytes(&p, 4, 4, 64, INT32_MAX) == UINT64_MAX);
    cera_fit fit;
    cera_error e = {0};
    const cera_fit_request r = ask(1, (uint64_t)1 << 40, 100);
    assert_int_equal(cera_fit_context(&p, &r, &fit, &e), CERA_ERR_MEMORY);
}

static void test_all_of_it_fits(void **state) {
    (void)state;
    cera_plan p = plan_of(&full, 1);
    cera_fit fit;
    cera_fit_request r = ask(10 * MIB, 100 * MIB, 0);
    assert_int_equal(cera_fit_context(&p, &r, &fit, NULL), CERA_OK);
    assert_int_equal(fit.n_ctx, 4096);
    assert_int_equal(fit.cache_bytes, 100 * MIB - 10 * MIB - 512 * KIB);
    r.n_ctx = 100000; /* longer than the model's own, if asked for */
    assert_int_equal(cera_fit_context(&p, &r, &fit, NULL), CERA_OK);
    assert_int_equal(fit.n_ctx, 100000);
    r.available_bytes = 0; /* unknown */
    assert_int_equal(cera_fit_context(&p, &r, &fit, NULL), CERA_OK);
    assert_int_equal(fit.cache_bytes, 0);
}

static void test_as_much_as_fits(void **state) {
    (void)state;
    cera_plan p = plan_of(&full, 1);
    cera_fit fit;
    cera_fit_request r = ask(10 * MIB, 10 * MIB + 512 * KIB + 20 * 16 * KIB + 5, 0); /* 20 pages and a bit */
    assert_int_equal(cera_fit_context(&p, &r, &fit, NULL), CERA_OK);
    assert_int_equal(fit.n_ctx, 20 * 64);
    cera_error e = {0};
    r.n_ctx = 20 * 64 + 1;
    assert_int_equal(cera_fit_context(&p, &r, &fit, &e), CERA_ERR_MEMORY);
    assert_non_null(strstr(e.message, "m.gguf: does not fit: 10.0 MiB of weights"));
    assert_non_null(strstr(e.message, "336.0 KiB of cache for 1281 tokens (250.0 KiB per 1,000)"));
    assert_non_null(strstr(e.message, "a context of 1280 tokens would fit"));
    r.n_ctx = 20 * 64;
    assert_int_equal(cera_fit_context(&p, &r, &fit, NULL), CERA_OK);
}

static void test_weights_do_not_fit(void **state) {
    (void)state;
    cera_plan p = plan_of(&full, 1);
    cera_fit fit;
    cera_error e = {0};
    const cera_fit_request r = ask((uint64_t)8 << 30, (uint64_t)4 << 30, 0);
    assert_int_equal(cera_fit_context(&p, &r, &fit, &e), CERA_ERR_MEMORY);
    assert_non_null(strstr(e.message, "8.0 GiB of weights"));
    assert_non_null(strstr(e.message, "4.0 GiB are available"));
    assert_non_null(strstr(e.message, "a file with at most 4.0 GiB of weights would fit"));
}

/* A model whose own context is short needs no more than that. */
static void test_short_contexts(void **state) {
    (void)state;
    cera_plan p = plan_of(&full, 1);
    p.n_ctx_train = 64;
    cera_fit fit;
    const cera_fit_request r = ask(MIB, MIB + 512 * KIB + 16 * KIB, 0);
    assert_int_equal(cera_fit_context(&p, &r, &fit, NULL), CERA_OK);
    assert_int_equal(fit.n_ctx, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_bytes),        cmocka_unit_test(test_sizes_saturate),
        cmocka_unit_test(test_all_of_it_fits),     cmocka_unit_test(test_as_much_as_fits),
        cmocka_unit_test(test_weights_do_not_fit), cmocka_unit_test(test_short_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
