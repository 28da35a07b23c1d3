/* gbnf_test.c: GBNF: llama.cpp's dialect, recursion, what is refused, and bounds that cost nothing (bug-cases R01 to R03). */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sample/grammar.h"

static cera_grammar *compile(const char *text, cera_error *e) {
    cera_grammar *g = NULL;
    cera_status s = cera_grammar_compile_with(CERA_GRAMMAR_GBNF, text, strlen(text), NULL, NULL, &g, e);
    assert_int_equal(s == CERA_OK, g != NULL);
    return g;
}

static bool accepts(cera_grammar *g, const char *text) {
    cera_grammar_state *s;
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    bool ok = cera_grammar_accept_text(s, text, strlen(text), NULL, NULL) == CERA_OK && cera_grammar_is_complete(s);
    cera_grammar_state_destroy(s);
    return ok;
}

static void check(const char *grammar, const char *const *yes, const char *const *no) {
    cera_error e = {0};
    cera_grammar *g = compile(grammar, &e);
    if (!g) fail_msg("%s: %s", grammar, e.message);
    for (; *yes; yes++)
        if (!accepts(g, *yes)) fail_msg("%s should accept \"%s\"", grammar, *yes);
    for (; *no; no++)
        if (accepts(g, *no)) fail_msg("%s should reject \"%s\"", grammar, *no);
    cera_grammar_close(g);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void dialect(void **state) {
    (void)state;
    check("root ::= \"a\" | \"b\" \"c\"", LIST("a", "bc"), LIST("", "b", "abc"));
    check("# comment\nroot  ::= x-1 # more\nx-1 ::= [a-c] |\n  \"z\"\n", LIST("a", "c", "z"), LIST("d", "az"));
    check("root ::= (\n\"a\"\n |\n\"b\" )+ \"!\"?", LIST("a", "abba!"), LIST("", "!"));
    check("root ::= [^\"\\\\\\n] .", LIST("ab", "\xc3\xa9\n"), LIST("\"a", "\\a", "\na", "a"));
    check("root ::= \"\\x41\\u00e9\\U0001F600\\t\\\"\"", LIST("A\xc3\xa9\xf0\x9f\x98\x80\t\""), LIST("A"));
    check("root ::= [\\u3040-\\u309f]{2,3}", LIST("\xe3\x81\x82\xe3\x81\x84", "\xe3\x81\x82\xe3\x81\x82\xe3\x81\x82"),
          LIST("\xe3\x81\x82", "a"));
    check("root ::= [a\\]-]*", LIST("", "]a-"), LIST("b"));
    check("root ::= \"a\"{3} \"b\"{2,} \"c\"{0,1}", LIST("aaabb", "aaabbbbc"), LIST("aabb", "aaab", "aaabbcc"));
    check("root ::= \"\" | \"x\"", LIST("", "x"), LIST("xx"));
}

static void recursion(void **state) {
    (void)state;
    check("root ::= \"(\" root \")\" | \"x\"", LIST("x", "((x))"), LIST("((x)", "()"));
    check("root ::= \"a\" root? \"b\"?", LIST("a", "aab", "aabb"), LIST("abb", "b"));
    check("root ::= item (\",\" item)*\nitem ::= \"[\" root? \"]\" | [0-9]+", LIST("1", "[],[1,[2]]"), LIST("[", "1,", "]"));
    check("root ::= a b\na ::= \"x\" a | \"\"\nb ::= \"x\" b \"y\" | \"\"", LIST("", "xxx", "xxyy"), LIST("y", "xyy"));
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {{"root ::= root \"a\" | \"b\"", "left recursion through rule root"},
                {"root ::= integer | root \"+\" root\ninteger ::= [0-9]+", "left recursion"},
                {"root ::= a\na ::= b? c\nb ::= \"\"\nc ::= a \"x\" | \"y\"", "left recursion"},
                {"root ::= (\"\" | \"x\"{0}) root", "left recursion"},
                {"root ::= x", "undefined rule x"},
                {"a ::= \"b\"", "no rule named root"},
                {"root ::= \"a\nroot2 ::= \"b\"", "line"},
                {"root ::= \"a", "not closed"},
                {"root ::= [a", "not closed"},
                {"root ::= (\"a\"", "')' expected"},
                {"root ::= \"a\" )", "end is expected"},
                {"root = \"a\"", "'::=' expected"},
                {"", "empty"},
                {"root ::= \"\\q\"", "unknown escape"},
                {"root ::= [z-a]", "out of order"},
                {"root ::= \"a\"{3,2}", "out of order"},
                {"root ::= \"a\"{99999999999}", "2^32"},
                {"root ::= \"a\"{x}", "number"},
                {"root ::= \"a\"\nroot ::= \"b\"", "second definition"},
                {"root ::= <[12", "not closed"},
                {"root ::= <think>", "no vocabulary"},
                {"root ::= \"\\ud800\"", "no character"},
                {"root ::= \"\xff\"", "UTF-8"},
                {"root ::= (.{0,100} \"x\"?){0,100}", "too ambiguous"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cera_error e = {0};
        cera_grammar *g = compile(rows[i].text, &e);
        if (g) fail_msg("%s compiled", rows[i].text);
        if (!strstr(e.message, rows[i].reason)) fail_msg("%s: %s", rows[i].text, e.message);
    }
}

/* Builds prefix + n * part + middle + n * end. */
static char *nested(const char *prefix, const char *part, const char *middle, const char *end, size_t n) {
    size_t p = strlen(part), q = strlen(end);
    char *text = malloc(strlen(prefix) + strlen(middle) + n * (p + q) + 1), *at = text;
    at = strcpy(at, prefix) + strlen(prefix);
    for (size_t i = 0; i < n; i++, at += p) memcpy(at, part, p);
    at = strcpy(at, middle) + strlen(middle);
    for (size_t i = 0; i < n; i++, at += q) memcpy(at, end, q);
    *at = 0;
    return text;
}

static void deep_nesting_is_an_error(void **state) {
    (void)state;
    cera_error e = {0};
    char *text = nested("root ::= ", "(", "\"a\"", ")", 60000);
    assert_null(compile(text, &e));
    assert_non_null(strstr(e.message, "too deep"));
    free(text);
}

static void a_chain_of_rules(void **state) {
    (void)state;
    enum { N = 5000 };
    char *text = malloc(N * 40 + 100), *at = text;
    at += sprintf(at, "root ::= r0\n");
    for (int i = 0; i < N; i++) at += sprintf(at, "r%d ::= \"%d\" r%d\n", i, i % 10, i + 1);
    sprintf(at, "r%d ::= \"x\"\n", N);
    cera_error e = {0};
    cera_grammar *g = compile(text, &e);
    assert_non_null(g);
    cera_grammar_state *s;
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    for (int i = 0; i < N; i++) assert_int_equal(cera_grammar_accept_text(s, &"0123456789"[i % 10], 1, NULL, &e), CERA_OK);
    assert_int_equal(cera_grammar_accept_text(s, "x", 1, NULL, NULL), CERA_OK);
    assert_true(cera_grammar_is_finished(s));
    cera_grammar_state_destroy(s);
    cera_grammar_close(g);
    free(text);
}

static void bounds(void **state) {
    (void)state;
    cera_error e = {0};
    cera_grammar *g = compile("root ::= \"a\"{0,1000000}", &e);
    assert_non_null(g);
    assert_true(accepts(g, "") && accepts(g, "aaaa") && !accepts(g, "b"));
    cera_grammar_close(g);
    g = compile("root ::= ((\"a\"{1000}){1000}){1000}", &e);
    assert_non_null(g);
    assert_false(accepts(g, "aaa"));
    cera_grammar_close(g);
    g = compile("root ::= (((\"a\"*)*)+)* \"b\"", &e);
    assert_non_null(g);
    assert_true(accepts(g, "b") && accepts(g, "aaaab"));
    cera_grammar_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dialect),          cmocka_unit_test(recursion),
                                       cmocka_unit_test(refused),          cmocka_unit_test(deep_nesting_is_an_error),
                                       cmocka_unit_test(a_chain_of_rules), cmocka_unit_test(bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
