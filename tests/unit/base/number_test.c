/* number_test.c: decimal text: JSON's grammar, exact integers, nearest doubles under any locale, equality without rounding. */
#include "unit/cmocka_all.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"

static bool i64(const char *text, int64_t *out) { return cera_number_i64(text, strlen(text), out); }
static bool f64(const char *text, double *out) { return cera_number_f64(text, strlen(text), out); }
static bool same(const char *a, const char *b) { return cera_number_equal(a, strlen(a), b, strlen(b)); }

static void grammar(void **state) {
    (void)state;
    static const char *const good[] = {"0",   "-0",  "1",     "10",     "1.5",
                                       "0.5", "1e5", "1E+05", "1.0e-3", "123456789012345678901234567890"};
    static const char *const bad[] = {"",     "-",   "+1",  "01", "-01", "1.",  ".5",  "1e",  "1e+",  "1.e3",
                                      "0x10", "nan", "inf", "1 ", " 1",  "1,5", "--1", "1-2", "1e5.0"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_true(cera_number_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t n;
        double f;
        assert_false(cera_number_valid(bad[i], strlen(bad[i])) || i64(bad[i], &n) || f64(bad[i], &f));
    }
}

static void integers_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"42", 42},
                {"-7", -7},
                {"1.0", 1},
                {"1e2", 100},
                {"1.25e2", 125},
                {"100e-2", 1},
                {"0e999", 0},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"9.223372036854775807e18", INT64_MAX},
                {"0.000e99999999999999999999", 0},
                {"1000000000000000000000e-21", 1}};
    static const char *const bad[] = {"1.5",
                                      "1e-1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "1e19",
                                      "1e999999999999999999999",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "12345e-4",
                                      "1e-999999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t n = 77;
        assert_true(i64(good[i].text, &n));
        assert_true(n == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t n = 77;
        assert_false(i64(bad[i], &n));
        assert_true(n == 77);
    }
}

static void doubles_are_nearest(void **state) {
    (void)state;
    double f = 0;
    assert_true(f64("0.1", &f) && f == 0.1);
    assert_true(f64("-1.5e300", &f) && f == -1.5e300);
    assert_true(f64("9007199254740993", &f) && f == 9007199254740992.0);
    assert_true(f64("1e-400", &f) && f == 0);
    assert_false(f64("1e400", &f));
    char text[200] = "0.";
    memset(text + 2, '3', 190);
    assert_true(f64(text, &f) && f == 1.0 / 3);
}

/* A process may have set a locale whose decimal point is a comma; skipped where none is installed. */
static void locale_does_not_matter(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *set = NULL;
    for (size_t i = 0; !set && i < sizeof names / sizeof names[0]; i++) set = setlocale(LC_ALL, names[i]);
    double f = 0;
    assert_true(f64("1.5", &f) && f == 1.5);
    if (!set) printf("note: no locale with a decimal comma is installed; checked in the C locale only\n");
    setlocale(LC_ALL, "C");
}

static void equality_does_not_round(void **state) {
    (void)state;
    assert_true(same("1", "1.0") && same("1", "10e-1") && same("1", "0.01e2") && same("0", "-0.0e5") &&
                same("-12.50", "-1250e-2"));
    assert_false(same("1", "-1") || same("1", "1.0000000000000000000001") || same("10", "1") || same("0", "1e-400"));
    assert_false(same("9007199254740993", "9007199254740992") || same("1", "x") || same("", ""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grammar),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(doubles_are_nearest),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(equality_does_not_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
