/* grammar_test.c: states: snapshot and restore, refusal without a change, triggers by text and token and re-arming, token
 * literals, dead ends, limits, arguments, two threads on one grammar. */
#include "unit/cmocka_all.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "sample/grammar.h"
#include "sample/grammar_int.h"

static cera_grammar *compile(cera_grammar_kind kind, const char *text) {
    cera_grammar *g = NULL;
    cera_error e = {0};
    if (cera_grammar_compile_with(kind, text, strlen(text), NULL, NULL, &g, &e) != CERA_OK) fail_msg("%s: %s", text, e.message);
    return g;
}

static cera_grammar_state *start(cera_grammar *g, const cera_grammar_trigger *t) {
    cera_grammar_state *s = NULL;
    assert_int_equal(cera_grammar_state_create(g, t, &s, NULL), CERA_OK);
    return s;
}

static cera_status feed(cera_grammar_state *s, const char *text) {
    return cera_grammar_accept_text(s, text, strlen(text), NULL, NULL);
}

/* Tokens: 0 "a", 1 "b", 2 "ab", 3 "<tool>", 4 end, 5 no text, 6 "x<to", 7 "ol>a". */
static cera_grammar_tokens *vocabulary(void) {
    static const char *const text[] = {"a", "b", "ab", "<tool>", "", "", "x<to", "ol>a"};
    cera_text_view views[8];
    bool eog[8] = {[4] = true};
    cera_grammar_tokens *t = NULL;
    for (int i = 0; i < 8; i++) views[i] = (cera_text_view){text[i], strlen(text[i])};
    assert_int_equal(cera_trie_create(views, eog, 8, &t, NULL), CERA_OK);
    return t;
}

static uint32_t mask(cera_grammar_state *s, const cera_grammar_tokens *t) {
    uint32_t bits = 0;
    cera_error e = {0};
    if (cera_grammar_mask(s, t, &bits, &e) != CERA_OK) fail_msg("%s", e.message);
    return bits;
}

static void snapshots(void **state) {
    (void)state;
    cera_grammar *g = compile(CERA_GRAMMAR_GBNF, "root ::= \"(\" root \")\" | \"x\"");
    cera_grammar_state *s = start(g, NULL), *copy;
    cera_grammar_close(g); /* states keep it */
    assert_int_equal(feed(s, "(("), CERA_OK);
    assert_int_equal(cera_grammar_state_clone(s, &copy, NULL), CERA_OK);
    size_t accepted = 99;
    assert_int_equal(cera_grammar_accept_text(s, "x)y", 3, &accepted, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(accepted, 2);
    assert_int_equal(feed(s, "x))"), CERA_OK); /* the failure had changed nothing */
    assert_true(cera_grammar_is_finished(s));
    assert_false(cera_grammar_is_complete(copy));
    assert_int_equal(cera_grammar_state_restore(s, copy, NULL), CERA_OK);
    assert_false(cera_grammar_is_complete(s));
    assert_int_equal(feed(s, "(x)))"), CERA_OK);
    assert_true(cera_grammar_is_complete(s));
    assert_int_equal(cera_grammar_state_reset(s, NULL), CERA_OK);
    assert_int_equal(feed(s, "x"), CERA_OK);
    cera_grammar_state_destroy(copy);
    cera_grammar_state_destroy(s);
}

/* The same text in any pieces leads to the same configurations. */
static void a_function_of_the_text(void **state) {
    (void)state;
    cera_grammar *g =
        compile(CERA_GRAMMAR_SCHEMA,
                "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\",\"maxLength\":3},{\"type\":\"number\"}]}}");
    const char *text = "[\"a\xc3\xa9\", 12.5, \"";
    cera_grammar_state *whole = start(g, NULL), *pieces = start(g, NULL);
    assert_int_equal(feed(whole, text), CERA_OK);
    for (const char *p = text; *p; p++) assert_int_equal(cera_grammar_accept_text(pieces, p, 1, NULL, NULL), CERA_OK);
    assert_int_equal(whole->at.n, pieces->at.n);
    assert_memory_equal(whole->at.at, pieces->at.at, whole->at.n * sizeof *whole->at.at);
    cera_grammar_state_destroy(whole);
    cera_grammar_state_destroy(pieces);
    cera_grammar_close(g);
}

static void tokens_and_the_end(void **state) {
    (void)state;
    cera_grammar *g = compile(CERA_GRAMMAR_REGEX, "^(ab)+$");
    cera_grammar_tokens *t = vocabulary();
    cera_grammar_state *s = start(g, NULL);
    assert_int_equal(mask(s, t), 1 << 0 | 1 << 2);
    assert_int_equal(cera_grammar_accept_token(s, t, 1, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_accept_token(s, t, 4, NULL), CERA_ERR_ARGUMENT); /* not complete */
    assert_int_equal(cera_grammar_accept_token(s, t, 5, NULL), CERA_ERR_ARGUMENT); /* no text */
    assert_int_equal(cera_grammar_accept_token(s, t, 8, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_accept_token(s, t, -1, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_accept_token(s, t, 2, NULL), CERA_OK);
    assert_int_equal(mask(s, t), 1 << 0 | 1 << 2 | 1 << 4);
    assert_int_equal(cera_grammar_accept_token(s, t, 4, NULL), CERA_OK);
    assert_true(cera_grammar_is_finished(s));
    assert_int_equal(mask(s, t), 0);
    assert_int_equal(cera_grammar_accept_token(s, t, 0, NULL), CERA_ERR_ARGUMENT);
    cera_grammar_state_destroy(s);
    cera_grammar_tokens_destroy(t);
    cera_grammar_close(g);
}

static void token_literals(void **state) {
    (void)state;
    cera_grammar *g = compile(CERA_GRAMMAR_GBNF, "root ::= <[5]> \"a\" | !<[0]> \"b\" | \"ab\"");
    cera_grammar_tokens *t = vocabulary();
    cera_grammar_state *s = start(g, NULL);
    assert_int_equal(mask(s, t), 0xEF); /* all but the end: 0 by its bytes, the others as "not 0" */
    assert_int_equal(cera_grammar_accept_token(s, t, 5, NULL), CERA_OK); /* both <[5]> and !<[0]> */
    assert_int_equal(mask(s, t), 1 << 0 | 1 << 1);
    assert_int_equal(cera_grammar_state_reset(s, NULL), CERA_OK);
    assert_int_equal(cera_grammar_accept_token(s, t, 0, NULL), CERA_OK);
    assert_int_equal(mask(s, t), 1 << 1);
    assert_int_equal(cera_grammar_state_reset(s, NULL), CERA_OK);
    assert_int_equal(cera_grammar_accept_token(s, t, 2, NULL), CERA_OK); /* "ab", or not 0 */
    assert_true(cera_grammar_is_complete(s));
    assert_int_equal(mask(s, t), 1 << 1 | 1 << 4);
    cera_grammar_state_destroy(s);
    cera_grammar_tokens_destroy(t);
    cera_grammar_close(g);
}

static void triggers(void **state) {
    (void)state;
    const char *texts[] = {"<tool>", "<other>"};
    cera_grammar *g = compile(CERA_GRAMMAR_REGEX, "^ab$");
    cera_grammar_tokens *t = vocabulary();
    cera_grammar_trigger trigger = {.size = sizeof trigger, .texts = texts, .n_texts = 2, .rearm = true};
    cera_grammar_state *s = start(g, &trigger), *copy;
    assert_true(cera_grammar_is_waiting(s) && cera_grammar_is_complete(s) && !cera_grammar_is_finished(s));
    assert_int_equal(mask(s, t), 0xFF);
    assert_int_equal(cera_grammar_accept_token(s, t, 6, NULL), CERA_OK); /* x<to */
    assert_int_equal(cera_grammar_state_clone(s, &copy, NULL), CERA_OK);
    assert_int_equal(cera_grammar_accept_token(s, t, 7, NULL), CERA_OK); /* ol>a: the constraint starts within the token */
    assert_false(cera_grammar_is_waiting(s));
    assert_int_equal(mask(s, t), 1 << 1);
    assert_int_equal(cera_grammar_accept_token(s, t, 0, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_accept_token(s, t, 1, NULL), CERA_OK);
    assert_true(cera_grammar_is_waiting(s)); /* complete: armed again */
    assert_int_equal(feed(s, "free <<other>a"), CERA_OK);
    assert_int_equal(mask(s, t), 1 << 1);
    assert_int_equal(feed(s, "b and <tool>ab and <tool"), CERA_OK); /* twice in one piece */
    assert_true(cera_grammar_is_waiting(s));
    assert_int_equal(feed(s, ">b"), CERA_ERR_ARGUMENT);
    assert_true(cera_grammar_is_waiting(s));
    assert_int_equal(cera_grammar_accept_token(copy, t, 0, NULL), CERA_OK); /* x<toa: no trigger */
    assert_true(cera_grammar_is_waiting(copy));
    cera_grammar_state_destroy(copy);
    cera_grammar_state_destroy(s);
    cera_grammar_tokens_destroy(t);
    cera_grammar_close(g);
}

static void triggers_by_token_and_with_text(void **state) {
    (void)state;
    const int32_t ids[] = {5};
    const char *texts[] = {"a{"};
    cera_grammar *g = compile(CERA_GRAMMAR_REGEX, "^a\\{b+$");
    cera_grammar_tokens *t = vocabulary();
    cera_grammar_trigger trigger = {
        .size = sizeof trigger, .texts = texts, .n_texts = 1, .token_ids = ids, .n_token_ids = 1, .includes_text = true};
    cera_grammar_state *s = start(g, &trigger);
    assert_int_equal(feed(s, "xa{b"), CERA_OK);
    assert_true(cera_grammar_is_complete(s) && !cera_grammar_is_waiting(s));
    assert_int_equal(mask(s, t), 1 << 1 | 1 << 4); /* not re-armed */
    cera_grammar_state_destroy(s);
    s = start(g, &trigger);
    assert_int_equal(cera_grammar_accept_token(s, t, 5, NULL), CERA_OK);
    assert_false(cera_grammar_is_waiting(s));
    assert_int_equal(mask(s, t), 1 << 0);
    cera_grammar_state_destroy(s);
    cera_grammar_trigger bad = {.size = sizeof bad};
    assert_int_equal(cera_grammar_state_create(g, &bad, &s, NULL), CERA_ERR_ARGUMENT);
    cera_grammar_tokens_destroy(t);
    cera_grammar_close(g);
}

static void dead_ends(void **state) {
    (void)state;
    cera_grammar *g = compile(CERA_GRAMMAR_REGEX, "^az$"); /* the vocabulary has no z */
    cera_grammar_tokens *t = vocabulary();
    cera_grammar_state *s = start(g, NULL);
    cera_error e = {0};
    uint32_t bits;
    assert_int_equal(cera_grammar_accept_token(s, t, 0, NULL), CERA_OK);
    assert_int_equal(cera_grammar_mask(s, t, &bits, &e), CERA_ERR_NOT_FOUND);
    assert_non_null(strstr(e.message, "dead end"));
    cera_grammar_state_destroy(s);
    cera_grammar_tokens_destroy(t);
    cera_grammar_close(g);
}

static void limits(void **state) {
    (void)state;
    cera_grammar *g;
    cera_grammar_state *s;
    cera_error e = {0};
    cera_grammar_options o = {.size = sizeof o, .memory_bytes = 300000};
    assert_int_equal(cera_grammar_compile_with(CERA_GRAMMAR_GBNF, "root ::= \"a\" root \"b\" | \"c\"", 27, &o, NULL, &g, &e),
                     CERA_OK);
    assert_int_equal(cera_grammar_state_create(g, NULL, &s, NULL), CERA_OK);
    cera_status status = CERA_OK;
    for (int i = 0; i < 100000 && status == CERA_OK; i++) status = cera_grammar_accept_text(s, "a", 1, NULL, &e);
    assert_int_equal(status, CERA_ERR_LIMIT); /* the stack has no other bound than memory */
    assert_non_null(strstr(e.message, "memory limit"));
    cera_grammar_state_destroy(s);
    cera_grammar_close(g);
}

static void arguments(void **state) {
    (void)state;
    cera_grammar *g;
    cera_grammar_state *s;
    cera_grammar_options old = {.size = 4};
    assert_int_equal(cera_grammar_compile_with(CERA_GRAMMAR_REGEX, NULL, 0, NULL, NULL, &g, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_compile_with((cera_grammar_kind)9, "a", 1, NULL, NULL, &g, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_compile_with(CERA_GRAMMAR_REGEX, "a", 1, &old, NULL, &g, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_compile_with(CERA_GRAMMAR_REGEX, "a", 1, NULL, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_state_create(NULL, NULL, &s, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_grammar_accept_text(NULL, "a", 1, NULL, NULL), CERA_ERR_ARGUMENT);
    cera_grammar_close(NULL);
    cera_grammar_state_destroy(NULL);
    cera_grammar_tokens_destroy(NULL);
}

typedef struct {
    cera_grammar *grammar;
    cera_grammar_tokens *tokens;
    bool ok;
} job;

static void *work(void *arg) {
    job *j = arg;
    j->ok = true;
    for (int round = 0; round < 50; round++) {
        cera_grammar_state *s = NULL;
        uint32_t bits;
        j->ok = j->ok && cera_grammar_state_create(j->grammar, NULL, &s, NULL) == CERA_OK;
        for (int i = 0; i < 40 && j->ok; i++) {
            j->ok = cera_grammar_mask(s, j->tokens, &bits, NULL) == CERA_OK && (bits & 1) &&
                    cera_grammar_accept_token(s, j->tokens, 0, NULL) == CERA_OK;
        }
        cera_grammar_state_destroy(s);
    }
    return NULL;
}

static void two_threads(void **state) {
    (void)state;
    job j[2] = {{.grammar = compile(CERA_GRAMMAR_GBNF, "root ::= \"a\" root \"b\" | \"ab\"{0,50}"), .tokens = vocabulary()}};
    j[1] = j[0];
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, work, &j[1]), 0);
    work(&j[0]);
    pthread_join(other, NULL);
    assert_true(j[0].ok && j[1].ok);
    cera_grammar_tokens_destroy(j[0].tokens);
    cera_grammar_close(j[0].grammar);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(snapshots),          cmocka_unit_test(a_function_of_the_text),
                                       cmocka_unit_test(tokens_and_the_end), cmocka_unit_test(token_literals),
                                       cmocka_unit_test(triggers),           cmocka_unit_test(triggers_by_token_and_with_text),
                                       cmocka_unit_test(dead_ends),          cmocka_unit_test(limits),
                                       cmocka_unit_test(arguments),          cmocka_unit_test(two_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
