/* cursor_test.c: bounded reads: values, the exact end, failure that stays, lengths near SIZE_MAX. */
#include "unit/cmocka_all.h"

#include "base/cursor.h"

static const uint8_t bytes[15] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void reads_little_endian(void **state) {
    (void)state;
    cera_cursor c = {.data = bytes, .size = 15};
    uint8_t a = 0;
    uint16_t b = 0;
    uint32_t d = 0;
    uint64_t q = 0;
    assert_true(cera_cursor_u8(&c, &a) && cera_cursor_u16(&c, &b) && cera_cursor_u32(&c, &d) && cera_cursor_u64(&c, &q));
    assert_int_equal(a, 1);
    assert_int_equal(b, 0x0302);
    assert_int_equal(d, 0x07060504);
    assert_true(q == 0x0f0e0d0c0b0a0908u);
    assert_int_equal(cera_cursor_left(&c), 0);
    assert_false(c.failed);
}

static void end_fails_and_stays_failed(void **state) {
    (void)state;
    for (size_t size = 0; size < 8; size++) {
        cera_cursor c = {.data = bytes, .size = size};
        uint64_t q = 77;
        uint8_t a = 77;
        assert_false(cera_cursor_u64(&c, &q));
        assert_true(c.failed && c.at == 0 && q == 77);
        assert_false(cera_cursor_u8(&c, &a)); /* even though a byte would be there */
        assert_int_equal(a, 77);
    }
}

static void huge_lengths_do_not_wrap(void **state) {
    (void)state;
    const uint8_t *p = NULL;
    for (size_t back = 0; back < 20; back++) {
        cera_cursor c = {.data = bytes, .size = 15, .at = 10};
        assert_false(cera_cursor_bytes(&c, SIZE_MAX - back, &p));
        assert_null(p);
    }
    cera_cursor c = {.data = bytes, .size = 15, .at = 10};
    assert_true(cera_cursor_bytes(&c, 5, &p) && p == bytes + 10);
    assert_true(cera_cursor_bytes(&c, 0, &p) && p == bytes + 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_little_endian),
        cmocka_unit_test(end_fails_and_stays_failed),
        cmocka_unit_test(huge_lengths_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
