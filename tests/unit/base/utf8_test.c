/* utf8_test.c: every code point there and back; every pair of bytes and the edges of table 3-7 of the Unicode Standard; tails.
 */
#include "unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"

static void every_code_point_round_trips(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x110010; code++) {
        char text[4] = {0};
        uint32_t back = 0;
        int n = cera_utf8_encode(code, text);
        bool scalar = code < 0xd800 || (code > 0xdfff && code < 0x110000);
        if (!scalar) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
        assert_int_equal(cera_utf8_decode(text, (size_t)n, &back), n);
        assert_int_equal(back, code);
        for (int cut = 1; cut < n; cut++) {
            assert_int_equal(cera_utf8_decode(text, (size_t)cut, &back), 0);
            assert_int_equal(cera_utf8_incomplete_tail(text, (size_t)cut), cut);
        }
        assert_int_equal(cera_utf8_incomplete_tail(text, (size_t)n), 0);
    }
    assert_int_equal(cera_utf8_encode(UINT32_MAX, (char[4]){0}), 0);
}

/* Four bytes are a character exactly when encoding what they spell gives them back. */
static void malformed_sequences_are_refused(void **state) {
    (void)state;
    static const unsigned char seconds[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    for (int first = 0x80; first < 0x100; first++)
        for (size_t a = 0; a < sizeof seconds; a++)
            for (size_t b = 0; b < sizeof seconds; b++)
                for (size_t c = 0; c < sizeof seconds; c++) {
                    char text[4] = {(char)first, (char)seconds[a], (char)seconds[b], (char)seconds[c]}, again[4];
                    uint32_t code = 0;
                    int n = cera_utf8_decode(text, 4, &code);
                    if (n == 0) continue;
                    assert_int_equal(cera_utf8_encode(code, again), n);
                    assert_memory_equal(again, text, (size_t)n);
                }
    static const char *const bad[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x80\x80",     "\xe0\x9f\xbf",     "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
        "\xc3(",        "\xe2\x82(",        "\xf0\x9f\x98("};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t code;
        assert_int_equal(cera_utf8_decode(bad[i], strlen(bad[i]), &code), 0);
        assert_false(cera_utf8_valid(bad[i], strlen(bad[i])));
    }
}

static void validity_of_long_texts(void **state) {
    (void)state;
    char text[64];
    for (size_t at = 0; at < sizeof text; at++) {
        memset(text, 'a', sizeof text);
        assert_true(cera_utf8_valid(text, sizeof text));
        text[at] = (char)0xc3;
        assert_false(cera_utf8_valid(text, sizeof text));
        if (at + 1 == sizeof text) break;
        text[at + 1] = (char)0xa9;
        assert_true(cera_utf8_valid(text, sizeof text));
        assert_false(cera_utf8_valid(text, at + 1));
    }
    assert_true(cera_utf8_valid("", 0));
}

/* However a text is cut in pieces, holding back the tail gives whole characters and loses nothing. */
static void stream_holds_back_whole_characters(void **state) {
    (void)state;
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xf0\x9f\x91\x8d\xc3\xa9";
    for (size_t end = 0; end <= strlen(text); end++) {
        size_t tail = cera_utf8_incomplete_tail(text, end);
        assert_true(tail <= 3 && cera_utf8_valid(text, end - tail));
    }
    assert_int_equal(cera_utf8_incomplete_tail("", 0), 0);
    assert_int_equal(cera_utf8_incomplete_tail("\x80\x80\x80\x80", 4), 0); /* cannot become valid: not held back */
    assert_int_equal(cera_utf8_incomplete_tail("\xff", 1), 0);
    assert_int_equal(cera_utf8_incomplete_tail("\xed\xa0", 2), 0);
    assert_int_equal(cera_utf8_incomplete_tail("a\xf0\x9f\x98", 4), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_round_trips),
        cmocka_unit_test(malformed_sequences_are_refused),
        cmocka_unit_test(validity_of_long_texts),
        cmocka_unit_test(stream_holds_back_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
