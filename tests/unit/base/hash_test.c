/* hash_test.c: values of the reference XXH64 (Python package xxhash 3), any alignment, and the mixer's own fixed values. */
#include "unit/cmocka_all.h"

#include <string.h>
#include "base/hash.h"

static const struct {
    size_t n;
    uint64_t seed, hash;
} reference[] = {
    /* of the first n bytes of i * 131 + 7 mod 256 */
    {0, 0u, 0xef46db3751d8e999u},
    {0, 1u, 0xd5afba1336a3be4bu},
    {1, 0u, 0xa96c7f0ce858bbb7u},
    {3, 5u, 0xec71b28f75d61531u},
    {4, 0u, 0xfa212ae44b3bb23du},
    {7, 9u, 0x2de5454bcb5bf877u},
    {8, 0u, 0x994b676b71ce94ddu},
    {15, 18446744073709551615u, 0xf4e3f407fef30b4cu},
    {16, 3u, 0x2ef065853243fcf0u},
    {31, 0u, 0x6711d55e306b5d8fu},
    {32, 0u, 0x07f7b8e3bc5d6e25u},
    {33, 1u, 0x489f1772049e476cu},
    {63, 12345678901234567890u, 0xac0d910086d3a334u},
    {64, 0u, 0x50d4159a0411632eu},
    {100, 42u, 0x42c8b9ebf60e6ba4u},
    {200, 0u, 0x3b8cc7eaa63f107eu},
};

static void agrees_with_the_reference(void **state) {
    (void)state;
    uint8_t text[200], moved[208];
    for (int i = 0; i < 200; i++) text[i] = (uint8_t)(i * 131 + 7);
    for (size_t i = 0; i < sizeof reference / sizeof reference[0]; i++)
        for (size_t shift = 0; shift < 8; shift++) {
            memcpy(moved + shift, text, 200);
            assert_true(cera_hash64(moved + shift, reference[i].n, reference[i].seed) == reference[i].hash);
        }
}

/* These values are in caches on disk: a change here is a change of format. */
static void mixer_is_fixed_and_ordered(void **state) {
    (void)state;
    assert_true(cera_hash_mix(0, 0) == 0x9fce782382be3a56u);
    assert_true(cera_hash_mix(1, 2) == 0x345a9d4446b0081au);
    assert_true(cera_hash_mix(1, 2) != cera_hash_mix(2, 1));
    for (uint64_t bit = 0; bit < 64; bit++) { /* each input bit moves about half of the output bits */
        int left = __builtin_popcountll(cera_hash_mix(12345, 678) ^ cera_hash_mix(12345 ^ 1ull << bit, 678));
        int right = __builtin_popcountll(cera_hash_mix(12345, 678) ^ cera_hash_mix(12345, 678 ^ 1ull << bit));
        assert_in_range(left, 10, 54);
        assert_in_range(right, 10, 54);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_reference),
        cmocka_unit_test(mixer_is_fixed_and_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
