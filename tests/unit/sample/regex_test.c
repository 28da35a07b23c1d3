/* regex_test.c: regular expressions: what they match, by tables whose answers follow from ECMA-262, what is refused and why,
 * and that look-ahead and anchors are exact. */
#include "unit/cmocka_all.h"

#include <string.h>
#include "sample/regex_int.h"

static bool matches(const char *pattern, const char *text, bool whole) {
    cera_automaton a;
    cera_expr x;
    cera_error e = {0};
    assert_int_equal(cera_automaton_init(&a, CERA_ESC_NONE, 64 << 20), CERA_OK);
    if (cera_regex_compile(&a, pattern, strlen(pattern), whole, &x, &e) != CERA_OK) fail_msg("%s: %s", pattern, e.message);
    bool ok = cera_expr_matches(&a, x, text, strlen(text));
    cera_automaton_deinit(&a);
    return ok;
}

typedef struct {
    const char *pattern, *yes[6], *no[6];
} row;

static void check(const row *rows, size_t n, bool whole) {
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 6 && rows[i].yes[k]; k++)
            if (!matches(rows[i].pattern, rows[i].yes[k], whole))
                fail_msg("%s should match \"%s\"", rows[i].pattern, rows[i].yes[k]);
        for (int k = 0; k < 6 && rows[i].no[k]; k++)
            if (matches(rows[i].pattern, rows[i].no[k], whole))
                fail_msg("%s should not match \"%s\"", rows[i].pattern, rows[i].no[k]);
    }
}

static void unanchored(void **state) {
    (void)state;
    static const row rows[] = {
        {"a+", {"a", "xxaayy", "ba"}, {"", "xyz"}},
        {"^a+$", {"a", "aaa"}, {"", "ba", "ab"}},
        {"^\\d+$", {"0", "123"}, {"", "12a", "\xd9\xa1"}}, /* R07; Arabic digits are none of ECMA's */
        {"^[\\w-]+$", {"a-b_9"}, {"a b", "", "\xc3\xa9"}},
        {"^\\S+$",
         {"abc", "\xc3\xa9!"},
         {"a b",
          "a\xc2\xa0"
          "b",
          "\xe2\x80\xa8"}},
        {"^\\s$", {" ", "\t", "\xc2\xa0", "\xe3\x80\x80"}, {"x", ""}},
        {"^.$", {"x", "\xf0\x9f\x98\x80"}, {"\n", "\xe2\x80\xa8", "xy"}},
        {"^[^x]$", {"a", "\n", "\xf0\x9f\x98\x80"}, {"x", ""}},
        {"^dev|beta$", {"develop", "xbeta", "dev"}, {"xdev", "betax"}},
        {"", {"", "anything"}, {NULL}},
        {"^$", {""}, {"a"}},
        {"a{2,3}", {"aa", "baaa"}, {"a", "aba"}},
        {"^a{2,}$", {"aa", "aaaaaa"}, {"a"}},
        {"^a{,3}$", {"a{,3}"}, {"aa"}}, /* no quantifier: stands for itself */
        {"x{", {"x{"}, {"x"}},
        {"^(?:ab?)+?c*$", {"a", "ababcc"}, {"b", "cab"}},
        {"^\\u0041\\x42\\u{43}\\t$", {"ABC\t"}, {"abc\t"}},
        {"^\\uD83D\\uDE00$", {"\xf0\x9f\x98\x80"}, {"\xf0\x9f\x98\x81"}},
        {"^[\\d\\-.a-c]+$", {"1-.abc"}, {"d", ""}},
        {"^[\\w-.]+$", {"a-.b"}, {"a b"}},
        {"^[]$", {NULL}, {"", "a"}},
        {"^[^]$", {"a", "\n"}, {""}},
        {"^\\p{Lu}\\P{L}$", {"A1", "\xc3\x89-"}, {"a1", "AA"}},
        {"^(?<year>\\d{4})-\\k$", {NULL}, {NULL}},
        {"^a|^b|c$", {"ax", "bx", "xc"}, {"xa", "cx"}},
        {"(^|,)x(,|$)", {"x", "a,x", "x,a", "a,x,b"}, {"ax", "xa"}},
        {"^(a|b$)+", {NULL}, {NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].yes[0] || rows[i].no[0]) check(&rows[i], 1, false);
}

static void whole(void **state) {
    (void)state;
    static const row rows[] = {
        {"a|bc", {"a", "bc"}, {"abc", "xa", ""}},
        {"(a*)*", {"", "aaa"}, {"b"}},
        {"(a|aa){2,4}", {"aa", "aaaaaaaa"}, {"a", "aaaaaaaaa"}},
        {"((a{2}){3}){2}", {"aaaaaaaaaaaa"}, {"aaaaaaaaaaa"}},
        {"(ab){0,2}c", {"c", "ababc"}, {"abababc"}},
        {"[\\u0430-\\u044f]+", {"\xd0\xb0\xd1\x8f"}, {"a", "\xd1\x90"}},
    };
    check(rows, sizeof rows / sizeof *rows, true);
}

static void look_ahead(void **state) {
    (void)state;
    static const row rows[] = {
        {"^(?!.*foo)", {"", "bar", "fo"}, {"foo", "xfooy"}},
        {"^(?=.*\\d)(?=.*[a-z]).{4,}$", {"abc1", "1234x"}, {"abcd", "1234", "a1"}},
        {"a(?=b)", {"ab", "aab"}, {"ac", "a"}},
        {"a(?!b)", {"a", "aba"}, {"ab", "abab"}},
        {"^(?!.*://)(?=.{1,9}$)[a-z:/.]+$", {"a.b", "abcdefghi"}, {"a://b", "abcdefghij"}},
        {"^(?!^lu\\.|mo\\.).*", {"xlu.", "lux"}, {"lu.x", "mo.x"}},
    };
    check(rows, sizeof rows / sizeof *rows, false);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *reason;
    } rows[] = {
        {"(a)\\1", "back references"},
        {"\\bx", "word boundaries"},
        {"(?<=a)b", "look-behind"},
        {"(?i)a", "kind of group"},
        {"a)", "')'"},
        {"(a", "not closed"},
        {"[a", "not closed"},
        {"*a", "nothing to repeat"},
        {"a**", "nothing to repeat"},
        {"[z-a]", "out of order"},
        {"a{3,2}", "out of order"},
        {"\\", "backslash"},
        {"\\Z", "unknown escape"},
        {"(^a)*", "inside a repetition"},
        {"\\u12", "hexadecimal"},
        {"\\p{Greek}", "general categories"},
        {"a{4294967296}", "2^32"},
        {"\xff", "UTF-8"},
        {"^((.{1,63}\\.){1,127}x)$", "too ambiguous"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cera_automaton a;
        cera_expr x;
        cera_error e = {0};
        assert_int_equal(cera_automaton_init(&a, CERA_ESC_NONE, 64 << 20), CERA_OK);
        if (cera_regex_compile(&a, rows[i].pattern, strlen(rows[i].pattern), false, &x, &e) == CERA_OK)
            fail_msg("%s compiled", rows[i].pattern);
        if (!strstr(e.message, rows[i].reason)) fail_msg("%s: %s", rows[i].pattern, e.message);
        cera_automaton_deinit(&a);
    }
}

/* Bounds are counters: memory does not follow them. */
static void bounds_are_not_unrolled(void **state) {
    (void)state;
    cera_automaton a;
    cera_expr x;
    const char *pattern = "^((a{1000}){1000}){1000}b{0,4000000000}$";
    assert_int_equal(cera_automaton_init(&a, CERA_ESC_NONE, 1 << 20), CERA_OK);
    assert_int_equal(cera_regex_compile(&a, pattern, strlen(pattern), false, &x, NULL), CERA_OK);
    assert_true(a.n_nodes < 100);
    assert_false(cera_expr_matches(&a, x, "aaaa", 4));
    cera_automaton_deinit(&a);
}

/* In JSON text a character may be written in several ways: all of them, or only what JSON asks for. */
static void escapes_in_json_text(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool all, needed;
    } rows[] = {{"a\xc3\xa9\\n", true, true},     {"\\u0061\xc3\xa9\\n", true, false}, {"a\\u00E9\\n", true, false},
                {"a\xc3\xa9\\u000a", true, true}, {"a\xc3\xa9\n", false, false},       {"a\xc3\xa9n", false, false},
                {"a\\xe9\\n", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int mode = 0; mode < 2; mode++) {
            cera_automaton a;
            cera_expr x;
            assert_int_equal(cera_automaton_init(&a, mode ? CERA_ESC_ALL : CERA_ESC_NEEDED, 64 << 20), CERA_OK);
            assert_int_equal(cera_regex_compile(&a, "a\\u00e9\\n", 9, true, &x, NULL), CERA_OK);
            if (cera_expr_matches(&a, x, rows[i].text, strlen(rows[i].text)) != (mode ? rows[i].all : rows[i].needed))
                fail_msg("row %zu mode %d", i, mode);
            cera_automaton_deinit(&a);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(unanchored),
                                       cmocka_unit_test(whole),
                                       cmocka_unit_test(look_ahead),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(bounds_are_not_unrolled),
                                       cmocka_unit_test(escapes_in_json_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
