/* rng_test.c: Philox 4x32-10 against the known answers that its authors publish (Random123, kat_vectors), and uniform numbers.
 */
#include "unit/cmocka_all.h"

#include <string.h>
#include "base/rng.h"

static void known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t seed, stream, position;
        uint32_t out[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        cera_rng_block(known[i].seed, known[i].stream, known[i].position, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* 100,000 draws: the mean of uniform numbers has a standard deviation of 1 / sqrt(12 n) = 0.0009; 5 of them are allowed. */
static void uniform_is_uniform(void **state) {
    (void)state;
    double sum = 0;
    int bins[10] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        double u = cera_rng_uniform(7, 3, i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        bins[(int)(u * 10)]++;
    }
    assert_true(sum / 100000 > 0.5 - 0.0046 && sum / 100000 < 0.5 + 0.0046);
    for (int i = 0; i < 10; i++) assert_in_range(bins[i], 10000 - 475, 10000 + 475); /* 5 sigma of sqrt(n p (1 - p)) = 95 */
    assert_true(cera_rng_uniform(7, 3, 5) == cera_rng_uniform(7, 3, 5));
    assert_true(cera_rng_uniform(7, 3, 5) != cera_rng_uniform(7, 4, 5) &&
                cera_rng_uniform(7, 3, 5) != cera_rng_uniform(8, 3, 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(uniform_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
