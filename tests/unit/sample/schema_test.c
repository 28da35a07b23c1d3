/* schema_test.c: JSON Schema: acceptance by keyword, order of members, numbers by value, combinations, references, refusals
 * with their pointer, and what is written in the compact mode. The whole suite of the standard is
 * tests/golden/schema_suite_test.py. */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sample/grammar.h"

enum { ANY_ORDER = 1, COMPACT = 2 };

static cera_grammar *compile(const char *schema, int flags, cera_error *e) {
    cera_grammar *g = NULL;
    cera_grammar_options o = {.size = sizeof o, .any_order = flags & ANY_ORDER, .any_space = !(flags & COMPACT)};
    cera_grammar_compile_with(CERA_GRAMMAR_SCHEMA, schema, strlen(schema), &o, NULL, &g, e);
    return g;
}

static bool accepts(cera_grammar *g, const char *text) {
    cera_grammar_state *s;
    cera_error e = {0};
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    cera_status status = cera_grammar_accept_text(s, text, strlen(text), NULL, &e);
    if (status != CERA_OK && status != CERA_ERR_ARGUMENT) fail_msg("%s: %s", text, e.message);
    bool ok = status == CERA_OK && cera_grammar_is_complete(s);
    cera_grammar_state_destroy(s);
    return ok;
}

static void check(const char *schema, int flags, const char *const *yes, const char *const *no) {
    cera_error e = {0};
    cera_grammar *g = compile(schema, flags, &e);
    if (!g) fail_msg("%s: %s", schema, e.message);
    for (; *yes; yes++)
        if (!accepts(g, *yes)) fail_msg("%s should accept %s", schema, *yes);
    for (; *no; no++)
        if (accepts(g, *no)) fail_msg("%s should reject %s", schema, *no);
    cera_grammar_close(g);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void order_of_members(void **state) {
    (void)state;
    const char *s = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},\"c\":{}},"
                    "\"required\":[\"b\"]}";
    check(s, 0, LIST("{\"b\":true}", "{\"a\":1,\"b\":false,\"c\":[]}", "{\"a\":1,\"b\":true,\"x\":null}"),
          LIST("{}", "{\"b\":true,\"a\":1}", "{\"x\":1,\"b\":true}", "{\"a\":1}", "{\"a\":\"1\",\"b\":true}",
               "{\"b\":true,\"b\":true}"));
    check(s, ANY_ORDER, LIST("{\"b\":true,\"a\":1}", "{\"x\":1,\"c\":2,\"b\":true}"),
          LIST("{}", "{\"a\":1}", "{\"a\":1,\"a\":1,\"b\":true}"));
    check("{\"type\":\"object\",\"properties\":{}}", 0, LIST("{}", "{\"a\":1}"), LIST("[]", "1")); /* R04 */
}

static void other_members(void **state) { /* R11, R09 */
    (void)state;
    const char *none = "{\"properties\":{\"a\":{}},\"additionalProperties\":false,\"type\":\"object\"}";
    check(none, ANY_ORDER, LIST("{}", "{\"a\":1}", "{\"\\u0061\":1}"), LIST("{\"b\":1}", "{\"aa\":1}", "{\"\":1}"));
    const char *typed =
        "{\"properties\":{\"ab\":{\"type\":\"string\"}},\"additionalProperties\":{\"type\":\"integer\"},\"type\":\"object\"}";
    check(typed, ANY_ORDER, LIST("{\"a\":1,\"abc\":2,\"ab\":\"x\"}", "{\"\":0}"), LIST("{\"ab\":1}", "{\"a\":\"x\"}"));
    const char *pattern = "{\"patternProperties\":{\"^x\":{\"type\":\"integer\"},\"y$\":{\"minimum\":5}},"
                          "\"additionalProperties\":{\"type\":\"null\"}}";
    check(pattern, ANY_ORDER, LIST("{\"x\":1}", "{\"ay\":7}", "{\"xy\":5}", "{\"q\":null}"),
          LIST("{\"x\":\"s\"}", "{\"ay\":4}", "{\"xy\":4}", "{\"xy\":5.5}", "{\"q\":1}"));
    check("{\"propertyNames\":{\"pattern\":\"^[a-z]+$\",\"maxLength\":2},\"maxProperties\":2,\"minProperties\":1}", ANY_ORDER,
          LIST("{\"a\":1}", "{\"a\":1,\"bc\":2}", "3"), LIST("{}", "{\"abc\":1}", "{\"A\":1}", "{\"a\":1,\"b\":2,\"c\":3}"));
}

static void numbers_by_value(void **state) {
    (void)state;
    check("{\"type\":\"integer\"}", 0, LIST("0", "-1", "1.0", "1e2", "1.5e1", "1e+300", "-0.0"),
          LIST("1.5", "1e-1", "01", "+1", "1.", "\"1\"", "true"));
    check("{\"minimum\":-5,\"exclusiveMaximum\":10.5}", 0, LIST("-5", "-5.0", "0", "10.49", "1.04e1", "-5e0", "1e-9"),
          LIST("-5.01", "10.5", "11", "1.05e1", "1e2", "-6", "-1e1"));
    check("{\"type\":\"integer\",\"minimum\":17,\"maximum\":1204}", 0, LIST("17", "99", "100", "999", "1000", "1199", "1204"),
          LIST("16", "1205", "9", "2000", "-17", "1e4"));
    check("{\"multipleOf\":7,\"type\":\"integer\"}", 0, LIST("0", "7", "-14", "700", "21.0"), LIST("1", "8", "-13", "7.5"));
    check("{\"multipleOf\":0.01}", 0, LIST("4.02", "3", "0.10", "1.230"), LIST("4.025", "0.001"));
    check("{\"const\":1}", 0, LIST("1", "1.0", "1e0"), LIST("2", "10", "true", "\"1\""));
    check("{\"enum\":[0,-2.50,\"a\\n\",null]}", 0, LIST("0", "-0", "-2.5", "-2.500", "\"a\\n\"", "\"\\u0061\\n\"", "null"),
          LIST("2.5", "\"a\"", "false"));
    check("{\"not\":{\"minimum\":3}}", 0, LIST("2", "2.9"), LIST("3", "3.1", "\"x\"", "null"));
}

static void strings(void **state) {
    (void)state;
    check("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", 0,
          LIST("\"ab\"", "\"a\\n\\u00e9\"", "\"\xf0\x9f\x98\x80\xc3\xa9\"", "\"\\ud83d\\ude00x\""),
          LIST("\"a\"", "\"abcd\"", "\"\xf0\x9f\x98\x80\"", "\"\\ud83dx\"", "\"a\nb\"", "\"\xff\xff\""));
    check("{\"type\":\"string\",\"pattern\":\"^[a-c]*$\",\"maxLength\":3}", 0, LIST("\"\"", "\"abc\""),
          LIST("\"abca\"", "\"d\""));
    check("{\"type\":\"string\",\"format\":\"date\"}", 0, LIST("\"2024-02-29\"", "\"1999-12-31\""),
          LIST("\"2023-02-29\"", "\"2024-13-01\"", "\"1900-02-29\""));
    check("{\"type\":\"string\",\"format\":\"ipv4\"}", 0, LIST("\"0.0.0.0\"", "\"255.1.2.3\""),
          LIST("\"256.1.1.1\"", "\"01.1.1.1\"", "\"1.1.1\""));
    check("{\"type\":\"string\",\"format\":\"ipv6\"}", 0,
          LIST("\"::\"", "\"1::\"", "\"fe80::1\"", "\"1:2:3:4:5:6:7:8\"", "\"::ffff:1.2.3.4\""),
          LIST("\"1::2::3\"", "\"12345::\"", "\":\""));
    check("{\"format\":\"no-such-format\"}", 0, LIST("\"anything\"", "1"), LIST("x"));
}

/* R03: every length compiles at once, and is enforced. */
static void long_strings(void **state) {
    (void)state;
    static const int lengths[] = {1999, 2000, 2001, 65536};
    for (int i = 0; i < 4; i++) {
        char schema[100];
        snprintf(schema, sizeof schema, "{\"type\":\"string\",\"maxLength\":%d}", lengths[i]);
        size_t n = (size_t)lengths[i];
        char *text = malloc(n + 4);
        memset(text, 'a', n + 3);
        text[0] = text[n + 1] = '"';
        text[n + 2] = 0;
        cera_grammar *g = compile(schema, 0, NULL);
        assert_non_null(g);
        assert_true(accepts(g, text));
        text[n + 1] = 'a';
        text[n + 2] = '"';
        text[n + 3] = 0;
        assert_false(accepts(g, text));
        cera_grammar_close(g);
        free(text);
    }
}

static void arrays(void **state) {
    (void)state;
    check("{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":2,\"maxItems\":4}", 0,
          LIST("[1,2]", "[ 1 , 2 , 3 , 4 ]"), LIST("[]", "[1]", "[1,2,3,4,5]", "[1,\"2\"]", "[1,2,]"));
    check("{\"prefixItems\":[{\"type\":\"null\"},{\"type\":\"boolean\"}],\"items\":false}", 0,
          LIST("[]", "[null]", "[null,true]"), LIST("[true]", "[null,true,1]"));
    check("{\"items\":[{\"type\":\"null\"}],\"additionalItems\":{\"type\":\"integer\"}}", 0, LIST("[null,1,2]"),
          LIST("[null,\"x\"]", "[1]"));
    check("{\"contains\":{\"minimum\":5},\"minContains\":2,\"maxContains\":3}", 0, LIST("[5,6]", "[1,7,2,8,9]", "{}"),
          LIST("[5]", "[]", "[5,6,7,8]"));
    check("{\"uniqueItems\":true,\"items\":{\"enum\":[1,\"a\",[2]]}}", 0, LIST("[]", "[1,\"a\",[2]]", "[[2],1]"),
          LIST("[1,1]", "[1,1.0]", "[[2],[2]]"));
}

static void combinations(void **state) {
    (void)state;
    check("{\"oneOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", 0, LIST("2", "3", "9", "-4"), LIST("6", "0", "1", "\"x\""));
    check("{\"anyOf\":[{\"type\":\"string\",\"maxLength\":2},{\"type\":\"integer\"}]}", 0, LIST("\"ab\"", "7"),
          LIST("\"abc\"", "null"));
    check("{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":2}},\"required\":[\"a\"]},{\"properties\":{\"a\":{\"maximum\":3}}}],"
          "\"type\":\"object\"}",
          ANY_ORDER, LIST("{\"a\":2}", "{\"z\":0,\"a\":3}"), LIST("{\"a\":1}", "{\"a\":4}", "{}"));
    check("{\"if\":{\"properties\":{\"k\":{\"const\":1}},\"required\":[\"k\"]},\"then\":{\"required\":[\"x\"]},\"else\":{"
          "\"required\":[\"y\"]}}",
          ANY_ORDER, LIST("{\"k\":1,\"x\":0}", "{\"k\":2,\"y\":0}", "{\"y\":1}", "5"),
          LIST("{\"k\":1}", "{\"k\":2,\"x\":0}", "{}"));
    check("{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"type\":\"object\"}", ANY_ORDER,
          LIST("{\"a\":1}", "{\"b\":1,\"c\":2}"), LIST("{}", "{\"a\":1,\"b\":2}"));
    check("{\"not\":{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":\"string\"}}}}", ANY_ORDER,
          LIST("{}", "{\"a\":1}", "1"), LIST("{\"a\":\"x\"}", "{\"b\":1,\"a\":\"\"}"));
    check("{\"dependentRequired\":{\"a\":[\"b\"]}}", ANY_ORDER, LIST("{}", "{\"b\":1}", "{\"a\":1,\"b\":2}", "[]"),
          LIST("{\"a\":1}"));
    check("{\"not\":{\"items\":{\"type\":\"string\"}}}", 0, LIST("[1]", "[\"a\",null]"), LIST("[]", "[\"a\"]", "1"));
}

static void references(void **state) { /* R08 */
    (void)state;
    check("{\"$ref\":\"#/$defs/"
          "node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"kids\":{\"type\":\"array\",\"items\":{\"$ref\":\"#"
          "/$defs/node\"}}},\"additionalProperties\":false}}}",
          0, LIST("{}", "{\"kids\":[{},{\"kids\":[]}]}"), LIST("{\"kids\":[1]}", "{\"kids\":[{\"x\":1}]}"));
    check("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"http://x/"
          "a.json\",\"$defs\":{\"b\":{\"$id\":\"b.json\",\"$anchor\":\"t\",\"type\":\"null\"}},\"items\":{\"$ref\":\"b.json#"
          "t\"}}",
          0, LIST("[null]", "1"), LIST("[1]"));
    check("{\"properties\":{\"a/b~c\":{\"type\":\"null\"},\"q\":{\"$ref\":\"#/properties/a~1b~0c\"}}}", ANY_ORDER,
          LIST("{\"q\":null}"), LIST("{\"q\":1}"));
    check("{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", 0, LIST(NULL),
          LIST("{}", "{\"a\":{}}", "{\"a\":1}")); /* no finite value */
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *schema, *message;
    } rows[] = {
        {"{\"$defs\":{\"A\":{\"$ref\":\"#/$defs/A\"}},\"$ref\":\"#/$defs/A\"}", "refers to itself"},
        {"{\"allOf\":[{\"$ref\":\"#\"}]}", "refers to itself"},
        {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/missing\"}}}", "/properties/a/$ref: points to nothing"},
        {"{\"$ref\":\"http://example.com/x.json\"}", "nothing is fetched"},
        {"{\"properties\":{\"x\":{\"pattern\":\"(a)\\\\1\"}}}", "/properties/x/pattern"},
        {"{\"items\":{\"uniqueItems\":true}}", "/items/uniqueItems"},
        {"{\"unevaluatedProperties\":false}", "/unevaluatedProperties"},
        {"{\"$recursiveRef\":\"#\"}", "$recursiveRef"},
        {"{\"format\":\"regex\"}", "/format"},
        {"{\"type\":\"text\"}", "/type"},
        {"{\"multipleOf\":0}", "/multipleOf"},
        {"{\"required\":true}", "/required"},
        {"{\"properties\":[]}", "/properties"},
        {"{\"minLength\":-1}", "/minLength"},
        {"{\"anyOf\":[]}", "/anyOf"},
        {"{\"enum\":{}}", "/enum"},
        {"{\"items\":5}", "/items"},
        {"5", "must be an object or a boolean"},
        {"{\"$schema\":\"http://json-schema.org/draft-03/schema#\"}", "/$schema"},
        {"{\"a\":", "schema"},
        {"{\"patternProperties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{},\"e\":{},\"f\":{},\"g\":{}}}", "more than 6 patterns"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cera_error e = {0};
        cera_grammar *g = compile(rows[i].schema, 0, &e);
        if (g) fail_msg("%s compiled", rows[i].schema);
        if (!strstr(e.message, rows[i].message)) fail_msg("%s: %s", rows[i].schema, e.message);
    }
}

static void compact_form(void **state) {
    (void)state;
    const char *s = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":0},\"q\\\"\":{\"type\":"
                    "\"array\",\"items\":{\"type\":\"string\"}}},\"additionalProperties\":false}";
    check(s, COMPACT, LIST("{\"a\":1,\"q\\\"\":[\"x\"]}", "{\"a\": 10, \"q\\\"\": [\"x\", \"\xc3\xa9\"]}"),
          LIST("{ \"a\":1}", "{\"a\" :1}", "{\"a\":  1}", "{\"a\":1.0}", "{\"a\":-0}", "{\"\\u0061\":1}", "\n{}"));
}

/* The compact mode writes one spelling of many; what a schema excludes is excluded in all of them. */
static void complements_in_compact_form(void **state) {
    (void)state;
    check("{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}", COMPACT, LIST("0.5"), LIST("1", "0.0", "2.00"));
    check("{\"type\":\"string\",\"not\":{\"pattern\":\"^.{2}$\"}}", COMPACT, LIST("\"a\"", "\"abc\"", "\"a\\n\""),
          LIST("\"ab\"", "\"a\\/\"", "\"a\\u0062\""));
    check("{\"type\":\"string\",\"not\":{\"const\":\"\\n\"}}", COMPACT, LIST("\"\\t\""),
          LIST("\"\\n\"", "\"\\u000a\"", "\"\\u000A\""));
}

static void empty_schemas(void **state) {
    (void)state;
    cera_grammar *g = compile("false", 0, NULL);
    assert_true(cera_grammar_is_empty(g) && !accepts(g, "1"));
    cera_grammar_close(g);
    g = compile("{\"minItems\":3,\"type\":\"array\",\"items\":false}", 0, NULL);
    assert_true(cera_grammar_is_empty(g));
    cera_grammar_close(g);
    g = compile("{\"type\":\"string\",\"pattern\":\"^a{5}$\",\"maxLength\":4}", 0, NULL);
    assert_true(cera_grammar_is_empty(g));
    cera_grammar_close(g);
}

/* A prefix is accepted only when something valid begins so. */
static void prefixes_can_be_finished(void **state) {
    (void)state;
    static const struct {
        const char *schema, *bad;
    } rows[] = {{"{\"type\":\"integer\",\"minimum\":100,\"maximum\":150}", "16"},
                {"{\"type\":\"string\",\"pattern\":\"^ab|^cd\",\"maxLength\":3}", "\"b"},
                {"{\"type\":\"object\",\"properties\":{\"ab\":{}},\"additionalProperties\":false}", "{\"b"},
                {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":false}}", "{\"b\""},
                {"{\"type\":\"string\",\"enum\":[\"red\",\"green\"]}", "\"re\""},
                {"{\"not\":{\"const\":\"a\"},\"type\":\"string\",\"maxLength\":1}", "\"a"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cera_grammar *g = compile(rows[i].schema, COMPACT, NULL);
        cera_grammar_state *s;
        size_t accepted = 0, n = strlen(rows[i].bad);
        assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
        assert_int_equal(cera_grammar_accept_text(s, rows[i].bad, n, &accepted, NULL), CERA_ERR_ARGUMENT);
        assert_int_equal(accepted, n - 1);
        cera_grammar_state_destroy(s);
        cera_grammar_close(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(order_of_members),
                                       cmocka_unit_test(other_members),
                                       cmocka_unit_test(numbers_by_value),
                                       cmocka_unit_test(strings),
                                       cmocka_unit_test(long_strings),
                                       cmocka_unit_test(arrays),
                                       cmocka_unit_test(combinations),
                                       cmocka_unit_test(references),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(compact_form),
                                       cmocka_unit_test(empty_schemas),
                                       cmocka_unit_test(complements_in_compact_form),
                                       cmocka_unit_test(prefixes_can_be_finished)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
