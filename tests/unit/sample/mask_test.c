/* mask_test.c: masks against brute force: at every step of random walks, each token's bit equals what accepting its bytes says,
 * for all three languages, with a vocabulary of pieces of characters, escapes, quotes and long runs. A walk that is told to
 * stop where it may ends in text that the grammar accepts. The walks are seeded. */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "base/utf8.h"
#include "sample/grammar.h"
#include "sample/trie.h"

enum { N_TOKENS = 900, EOG = 898, NO_TEXT = 899, STEPS = 60 };

static char bytes[N_TOKENS][48];
static cera_text_view views[N_TOKENS];
static bool eog[N_TOKENS];
static cera_grammar_tokens *tokens;
static uint64_t seed; /* counts the draws of stream 42 */

static uint32_t random_below(uint32_t n) {
    uint32_t r[4];
    cera_rng_block(42, 0, seed++, r);
    return r[0] % n;
}

static const char *const samples[] = {
    ("{\"name\": \"John Smith\", \"age\": 42, \"tags\": [\"a-b_c\", \"x\\n\\u00e9\"], \"ok\": true, \"none\": null, \"pi\": "
     "-3.14e+10}"),
    "the quick brown fox jumps over the lazy dog 0123456789 ABCDEFG",
    "h\xc3\xa9llo w\xc3\xb6rld \xe2\x82\xac\xf0\x9f\x98\x80 \xd0\xbf\xd1\x80\xd0\xb8",
    "\\\"\\\\\\/\\b\\f\\n\\r\\t\\ud83d\\ude00",
    "2024-02-29T23:59:59Z https://example.com/a?b=c#d 192.168.0.1 550e8400-e29b-41d4-a716-446655440000",
    "\"},{\"\"]],[[\":\"\",\"",
    "((()))+-*/=<>",
    "                                        ",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

static int make_vocabulary(void **state) {
    (void)state;
    for (int i = 0; i < N_TOKENS; i++) {
        size_t n = 1;
        if (i < 256)
            bytes[i][0] = (char)i;
        else {
            const char *s = samples[random_below(sizeof samples / sizeof *samples)];
            size_t all = strlen(s), from = random_below((uint32_t)all);
            n = 1 + random_below(i % 7 == 0 ? 40 : 6);
            if (n > all - from) n = all - from;
            memcpy(bytes[i], s + from, n);
        }
        views[i] = (cera_text_view){bytes[i], i == NO_TEXT || i == EOG ? 0 : n};
        eog[i] = i == EOG;
    }
    return cera_trie_create(views, eog, N_TOKENS, &tokens, NULL);
}

static int drop_vocabulary(void **state) {
    (void)state;
    cera_grammar_tokens_destroy(tokens);
    return 0;
}

static bool bit(const uint32_t *bits, int id) { return bits[id >> 5] >> (id & 31) & 1; }

/* Compares a mask with what accepting each token does; returns how many are allowed. */
static int compare(cera_grammar_state *s, const uint32_t *bits, const char *what, const char *text) {
    cera_grammar_state *copy;
    int allowed = 0;
    assert_int_equal(cera_grammar_state_clone(s, &copy, NULL), CERA_OK);
    for (int id = 0; id < N_TOKENS; id++) {
        cera_error e = {0};
        bool fits = cera_grammar_accept_token(copy, tokens, id, &e) == CERA_OK;
        if (!fits && e.code != CERA_ERR_ARGUMENT) fail_msg("%s: %s", what, e.message);
        if (fits != bit(bits, id))
            fail_msg("%s after \"%s\": token %d \"%s\": mask says %d, its bytes %d", what, text, id, bytes[id], bit(bits, id),
                     fits);
        if (fits) assert_int_equal(cera_grammar_state_restore(copy, s, NULL), CERA_OK);
        allowed += fits;
    }
    cera_grammar_state_destroy(copy);
    return allowed;
}

static int pick(const uint32_t *bits, int allowed, bool stop) {
    if (stop && bit(bits, EOG)) return EOG;
    int k = (int)random_below((uint32_t)allowed);
    for (int id = 0; id < N_TOKENS; id++)
        if (bit(bits, id) && k-- == 0) return id;
    return -1;
}

static void walk(cera_grammar *g, const char *what, int round) {
    uint32_t bits[(N_TOKENS + 31) / 32];
    char text[4096] = {0};
    size_t n = 0;
    cera_grammar_state *s;
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    for (int step = 0; step < STEPS; step++) {
        cera_error e = {0};
        if (cera_grammar_mask(s, tokens, bits, &e) != CERA_OK) fail_msg("%s after \"%s\": %s", what, text, e.message);
        int allowed = compare(s, bits, what, text);
        int id = allowed ? pick(bits, allowed, step > 10 + round * 8) : EOG;
        assert_true(allowed > 0 || cera_grammar_is_complete(s));
        if (id == EOG) {
            if (!cera_grammar_is_complete(s)) fail_msg("%s: \"%s\" is not complete", what, text);
            if (!strstr(what, "!<") && !cera_utf8_valid(text, n)) fail_msg("%s: \"%s\" is not UTF-8", what, text); /* R10 */
            break;
        }
        assert_int_equal(cera_grammar_accept_token(s, tokens, id, &e), CERA_OK);
        memcpy(text + n, views[id].text, views[id].size);
        n += views[id].size;
    }
    cera_grammar_state_destroy(s);
}

typedef struct {
    cera_grammar_kind kind;
    const char *text;
} row;

static const row rows[] = {
    {CERA_GRAMMAR_SCHEMA, "true"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\","
                          "\"minimum\":0,\"maximum\":150},\"ok\":{\"type\":\"boolean\"}},\"required\":[\"name\",\"ok\"]}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":5},\"minItems\":2,\"maxItems\":3}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"string\",\"minLength\":30,\"maxLength\":700}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^[a-z0-9 _-]{3,40}$\"}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^[^a-c/]+/[\\\\w ]*$\",\"maxLength\":33}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"string\",\"pattern\":\"fox|\\u00e9\",\"minLength\":4}"},
    {CERA_GRAMMAR_SCHEMA, "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},{"
                          "\"type\":\"object\",\"properties\":{\"name\":{\"format\":\"date-time\"}},\"required\":[\"name\"],"
                          "\"additionalProperties\":{\"type\":\"null\"}},{\"type\":\"number\",\"multipleOf\":5}]}"},
    {CERA_GRAMMAR_SCHEMA, "{\"patternProperties\":{\"^[a-m]\":{\"type\":\"string\",\"format\":\"uri\"},\"\\\\d\":{\"type\":"
                          "\"string\"}},\"type\":\"object\",\"minProperties\":2}"},
    {CERA_GRAMMAR_SCHEMA, "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#/"
                          "$defs/n\"},{\"enum\":[\"x\",\"xyz\",-3.5]}]}}}}"},
    {CERA_GRAMMAR_SCHEMA, "{\"not\":{\"anyOf\":[{\"type\":\"object\"},{\"const\":\"the\"},{\"minimum\":10}]}}"},
    {CERA_GRAMMAR_SCHEMA, "{\"uniqueItems\":true,\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"ab\"]},\"contains\":{"
                          "\"const\":\"a\"},\"minContains\":0}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"string\",\"not\":{\"pattern\":\"a|^.{2}$\"}}"},
    {CERA_GRAMMAR_SCHEMA, "{\"type\":\"string\",\"not\":{\"pattern\":\"e\"},\"maxLength\":40}"},
    {CERA_GRAMMAR_SCHEMA, "{\"contains\":{\"type\":\"string\"},\"minContains\":2,\"maxItems\":3,\"prefixItems\":[{\"type\":"
                          "\"null\"}],\"type\":\"array\"}"},
    {CERA_GRAMMAR_SCHEMA, "{\"not\":{\"additionalProperties\":{\"type\":\"string\"}},\"maxProperties\":2}"},
    {CERA_GRAMMAR_REGEX, "^(the|quick)? ?[a-z]+\\d{2,4}$"},
    {CERA_GRAMMAR_REGEX, "^(?!.*dog)[a-z ]*$"},
    {CERA_GRAMMAR_REGEX, "\xe2\x82\xac|x.y"},
    {CERA_GRAMMAR_GBNF, "root ::= \"(\" root \")\" root | [a-z]* | \"<\" [^>]{1,9} \">\""},
    {CERA_GRAMMAR_GBNF, "root ::= item (\",\" item)*\nitem ::= [0-9]{1,3} | \"[\" root? \"]\" | \"\\\"\" [^\"\\\\]* \"\\\"\""},
    {CERA_GRAMMAR_GBNF, "root ::= (\"a\" | <[300]> | !<[301]> \"z\")+ | \"xx\" <[302]>"},
    {CERA_GRAMMAR_GBNF, "root ::= ident ws \"=\" ws ident\nident ::= [a-zA-Z_] [a-zA-Z_0-9]*\nws ::= \" \"*"},
    {CERA_GRAMMAR_GBNF, "root ::= .{3,20} | [\\u0430-\\u044f]+"},
};

static void masks_equal_brute_force(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int order = 0; order < 2; order++) {
            cera_error e = {0};
            cera_grammar *g;
            cera_grammar_options o = {.size = sizeof o, .any_order = order, .any_space = order};
            if (cera_grammar_compile_with(rows[i].kind, rows[i].text, strlen(rows[i].text), &o, NULL, &g, &e) != CERA_OK)
                fail_msg("%s: %s", rows[i].text, e.message);
            for (int round = 0; round < 3; round++) walk(g, rows[i].text, round);
            cera_grammar_close(g);
            if (rows[i].kind != CERA_GRAMMAR_SCHEMA) break;
        }
}

/* R05, R03: a long bounded array or string has masks like a short one: states do not pile up. */
static void bounds_do_not_slow_masks(void **state) {
    (void)state;
    cera_grammar *g;
    cera_grammar_state *s;
    uint32_t bits[(N_TOKENS + 31) / 32];
    const char *schema = "{\"items\":{\"type\":\"number\"},\"minItems\":10,\"maxItems\":100000,\"type\":\"array\"}";
    cera_grammar_options o = {.size = sizeof o, .memory_bytes = 8 << 20};
    assert_int_equal(cera_grammar_compile_with(CERA_GRAMMAR_SCHEMA, schema, strlen(schema), &o, NULL, &g, NULL), CERA_OK);
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    assert_int_equal(cera_grammar_accept_text(s, "[1", 2, NULL, NULL), CERA_OK);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(cera_grammar_mask(s, tokens, bits, NULL), CERA_OK);
        assert_int_equal(bit(bits, ']'), i >= 9);
        assert_int_equal(cera_grammar_accept_text(s, ",2", 2, NULL, NULL), CERA_OK);
    }
    cera_grammar_state_destroy(s);
    cera_grammar_close(g);
}

static void one_grammar_with_two_vocabularies(void **state) {
    (void)state;
    cera_text_view few[3] = {{"a", 1}, {"b", 1}, {"ab", 2}};
    bool ends[3] = {false};
    cera_grammar_tokens *other;
    cera_grammar *g;
    cera_grammar_state *s;
    uint32_t bits[(N_TOKENS + 31) / 32], small[1];
    assert_int_equal(cera_trie_create(few, ends, 3, &other, NULL), CERA_OK);
    assert_int_equal(cera_grammar_compile_with(CERA_GRAMMAR_REGEX, "^a+b?$", 6, NULL, NULL, &g, NULL), CERA_OK);
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cera_grammar_mask(s, other, small, NULL), CERA_OK);
        assert_int_equal(small[0], i == 0 ? 5 : 7);
        assert_int_equal(cera_grammar_mask(s, tokens, bits, NULL), CERA_OK);
        assert_true(bit(bits, 'a') && !bit(bits, 'c'));
        assert_int_equal(cera_grammar_accept_token(s, other, 0, NULL), CERA_OK);
    }
    cera_grammar_state_destroy(s);
    cera_grammar_close(g);
    cera_grammar_tokens_destroy(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(masks_equal_brute_force), cmocka_unit_test(bounds_do_not_slow_masks),
                                       cmocka_unit_test(one_grammar_with_two_vocabularies)};
    return cmocka_run_group_tests(tests, make_vocabulary, drop_vocabulary);
}
