/* dtype_test.c: the type table against the block structs, and names. Numbers and sizes against the Python gguf package are in
 * tests/golden/malformed_test.py, which asks `cera inspect` about a file with a tensor of every type. */
#include "unit/cmocka_all.h"

#include <string.h>
#include "format/dtype.h"

static void computing_types_match_their_blocks(void **state) {
    (void)state;
    static const struct {
        cera_dtype type;
        int elements;
        size_t bytes;
    } blocks[] = {
        {CERA_F32, 1, 4},
        {CERA_F16, 1, 2},
        {CERA_BF16, 1, 2},
        {CERA_Q4_0, CERA_QK, sizeof(cera_block_q4_0)},
        {CERA_Q4_1, CERA_QK, sizeof(cera_block_q4_1)},
        {CERA_Q5_0, CERA_QK, sizeof(cera_block_q5_0)},
        {CERA_Q5_1, CERA_QK, sizeof(cera_block_q5_1)},
        {CERA_Q8_0, CERA_QK, sizeof(cera_block_q8_0)},
        {CERA_Q2_K, CERA_QK_K, sizeof(cera_block_q2_k)},
        {CERA_Q3_K, CERA_QK_K, sizeof(cera_block_q3_k)},
        {CERA_Q4_K, CERA_QK_K, sizeof(cera_block_q4_k)},
        {CERA_Q5_K, CERA_QK_K, sizeof(cera_block_q5_k)},
        {CERA_Q6_K, CERA_QK_K, sizeof(cera_block_q6_k)},
        {CERA_IQ4_NL, CERA_QK, sizeof(cera_block_iq4_nl)},
        {CERA_IQ4_XS, CERA_QK_K, sizeof(cera_block_iq4_xs)},
        {CERA_MXFP4, CERA_QK, sizeof(cera_block_mxfp4)},
    };
    int computing = 0;
    for (uint32_t t = 0; t < CERA_DTYPE_COUNT; t++) computing += cera_dtype_get(t)->computes;
    assert_int_equal(computing, sizeof blocks / sizeof blocks[0]);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        const cera_dtype_info *info = cera_dtype_get(blocks[i].type);
        assert_true(info->computes);
        assert_int_equal(info->block_elements, blocks[i].elements);
        assert_int_equal(info->block_bytes, blocks[i].bytes);
    }
}

static void names_parse_back(void **state) {
    (void)state;
    int known = 0;
    for (uint32_t t = 0; t < 1000; t++) {
        const cera_dtype_info *info = cera_dtype_get(t);
        assert_non_null(info);
        if (!info->name) {
            assert_false(info->computes);
            continue;
        }
        cera_dtype parsed;
        assert_true(cera_dtype_parse(info->name, &parsed));
        assert_int_equal(parsed, t);
        assert_true(info->block_elements > 0 && info->block_bytes > 0);
        known++;
    }
    assert_int_equal(known, 34);
    assert_null(cera_dtype_get(UINT32_MAX)->name);
    assert_null(cera_dtype_get(4)->name);
    cera_dtype parsed;
    assert_true(cera_dtype_parse("Q4_K", &parsed) && parsed == CERA_Q4_K);
    assert_false(cera_dtype_parse("q4_k_m", &parsed) || cera_dtype_parse("", &parsed));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_types_match_their_blocks),
        cmocka_unit_test(names_parse_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
