/* unicode_test.c: properties and normal forms. Known values; and where Debian's unicode-data and bzcat are installed, every row
 * of Unicode's own NormalizationTest.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"
#include "unit/cmocka_all.h"

static void properties(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        uint8_t category;
    } known[] = {{'a', CERA_CAT_LL},       {'A', CERA_CAT_LU},    {'0', CERA_CAT_ND},     {' ', CERA_CAT_ZS},
                 {'\n', CERA_CAT_CC},      {'_', CERA_CAT_PC},    {'-', CERA_CAT_PD},     {'$', CERA_CAT_SC},
                 {0x301, CERA_CAT_MN},     {0x1c5, CERA_CAT_LT},  {0x2b0, CERA_CAT_LM},   {0x4e2d, CERA_CAT_LO},
                 {0xac00, CERA_CAT_LO},    {0x2160, CERA_CAT_NL}, {0xb2, CERA_CAT_NO},    {0x200d, CERA_CAT_CF},
                 {0xe000, CERA_CAT_CO},    {0xd800, CERA_CAT_CS}, {0x378, CERA_CAT_CN},   {0x1f600, CERA_CAT_SO},
                 {0x2028, CERA_CAT_ZL},    {0x3400, CERA_CAT_LO}, {0x2a6df, CERA_CAT_LO}, {0x10ffff, CERA_CAT_CN},
                 {0xffffffff, CERA_CAT_CN}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(cera_unicode_properties(known[i].code) & CERA_UNICODE_CATEGORY, known[i].category);
    }
    unsigned spaces = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t p = cera_unicode_properties(c);
        bool z = CERA_CATS_Z >> (p & CERA_UNICODE_CATEGORY) & 1;
        assert_int_equal((p & CERA_UNICODE_WHITE_SPACE) != 0, z || (c >= 9 && c <= 13) || c == 0x85); /* the regexes' \s */
        spaces += (p & CERA_UNICODE_WHITE_SPACE) != 0;
    }
    assert_int_equal(spaces, 25);
    assert_true(cera_unicode_properties(0x4e2d) & CERA_UNICODE_HAN);
    assert_false(cera_unicode_properties(0x3042) & CERA_UNICODE_HAN);
    assert_int_equal(cera_unicode_lowercase('Z'), 'z');
    assert_int_equal(cera_unicode_lowercase(0xc9), 0xe9);
    assert_int_equal(cera_unicode_lowercase(0x10400), 0x10428);
    assert_int_equal(cera_unicode_lowercase(0x4e2d), 0x4e2d);
    assert_int_equal(cera_unicode_combining_class(0x301), 230);
    assert_int_equal(cera_unicode_combining_class('a'), 0);
}

static void expect_form(void (*form)(const char *, size_t, cera_buffer *), const char *text, size_t n, const char *wanted,
                        size_t n_wanted) {
    cera_buffer b = {0};
    form(text, n, &b);
    assert_false(b.failed);
    assert_int_equal(b.size, n_wanted);
    if (n_wanted) assert_memory_equal(b.data, wanted, n_wanted);
    cera_buffer_deinit(&b);
}

static void normal_forms(void **state) {
    (void)state;
    expect_form(cera_unicode_nfc, "", 0, "", 0);
    expect_form(cera_unicode_nfc, "plain", 5, "plain", 5);
    expect_form(cera_unicode_nfc, "e\u0301", 3, "\u00e9", 2);
    expect_form(cera_unicode_nfd, "\u00e9", 2, "e\u0301", 3);
    expect_form(cera_unicode_nfc, "a\u0323\u0307", 5, "\u1ea1\u0307", 5);
    expect_form(cera_unicode_nfc, "a\u0307\u0323", 5, "\u1ea1\u0307", 5); /* marks in canonical order */
    expect_form(cera_unicode_nfc, "\u1112\u1161\u11ab", 9, "\ud55c", 3);
    expect_form(cera_unicode_nfd, "\ud55c", 3, "\u1112\u1161\u11ab", 9);
    expect_form(cera_unicode_nfc, "abcde\u0301x\u0301", 10, "abcd\u00e9x\u0301", 9);
    expect_form(cera_unicode_nfc, "e\xff\u0301", 4, "e\xff\u0301", 4); /* what is no character ends a sequence */
    char marks[2 * 5000 + 1] = "e";
    for (size_t i = 1; i < sizeof marks; i += 2) memcpy(marks + i, "\u0301", 2);
    cera_buffer b = {0};
    cera_unicode_nfc(marks, sizeof marks, &b);
    assert_int_equal(b.size, sizeof marks - 1); /* the first mark composes, the rest stays */
    cera_buffer_deinit(&b);
}

/* "0041 0301;" to UTF-8; returns what follows the semicolon. */
static const char *read_column(const char *at, char *out, size_t *n) {
    for (*n = 0; *at && *at != ';';) {
        char *end;
        *n += (size_t)cera_utf8_encode((uint32_t)strtoul(at, &end, 16), out + *n);
        at = *end == ' ' ? end + 1 : end;
    }
    return at + 1;
}

static void normalization_test_file(void **state) {
    (void)state;
    FILE *f = popen("bzcat /usr/share/unicode/NormalizationTest.txt.bz2 2>/dev/null", "r");
    char line[4096], columns[5][512];
    size_t n[5], rows = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (line[0] == '#' || line[0] == '@') continue;
        const char *at = line;
        for (int i = 0; i < 5; i++) at = read_column(at, columns[i], &n[i]);
        for (int i = 0; i < 3; i++) { /* source, NFC, NFD all have the same forms */
            expect_form(cera_unicode_nfc, columns[i], n[i], columns[1], n[1]);
            expect_form(cera_unicode_nfd, columns[i], n[i], columns[2], n[2]);
        }
        rows++;
    }
    if (f) pclose(f);
    if (rows == 0) {
        print_message("NormalizationTest.txt is not here\n");
        skip();
    }
    assert_true(rows > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(properties), cmocka_unit_test(normal_forms),
                                       cmocka_unit_test(normalization_test_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
