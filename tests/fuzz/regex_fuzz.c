/* regex_fuzz.c: fuzzes the compiler of regular expressions and the derivatives: input is a pattern, a NUL, and a text. Whatever
 * comes in: no crash, a verdict or a reason; the anchored form accepts no more than the unanchored one; a text and its copy in
 * two pieces agree. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "sample/grammar.h"
#include "sample/regex_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

static int run(const char *pattern, size_t n, const char *text, size_t n_text, bool whole) {
    cera_automaton a;
    cera_error e = {0};
    cera_expr x;
    int verdict = -1;
    require(cera_automaton_init(&a, whole ? CERA_ESC_NONE : CERA_ESC_ALL, 16 << 20) == CERA_OK);
    a.max_work = 300000;
    if (cera_regex_compile(&a, pattern, n, whole, &x, &e) == CERA_OK)
        verdict = cera_expr_matches(&a, x, text, n_text);
    else
        require(e.code != CERA_OK && e.message[0]);
    if (a.failed) verdict = -1;
    cera_automaton_deinit(&a);
    return verdict;
}

static int through_grammar(const char *pattern, size_t n, const char *text, size_t n_text) {
    cera_grammar_options o = {.size = sizeof o, .memory_bytes = 16 << 20};
    cera_grammar *g;
    cera_grammar_state *s, *pieces;
    int verdict = -1;
    if (cera_grammar_compile_with(CERA_GRAMMAR_REGEX, pattern, n, &o, NULL, &g, NULL) != CERA_OK) return -1;
    if (cera_grammar_state_create(g, NULL, &s, NULL) != CERA_OK || cera_grammar_state_create(g, NULL, &pieces, NULL) != CERA_OK)
        abort();
    cera_status status = cera_grammar_accept_text(s, text, n_text, NULL, NULL);
    if (status == CERA_OK || status == CERA_ERR_ARGUMENT) verdict = status == CERA_OK && cera_grammar_is_complete(s);
    bool ok = true;
    for (size_t i = 0; i < n_text && ok; i++) ok = cera_grammar_accept_text(pieces, text + i, 1, NULL, NULL) == CERA_OK;
    if (status == CERA_OK) require(ok && cera_grammar_is_complete(pieces) == cera_grammar_is_complete(s));
    cera_grammar_state_destroy(s);
    cera_grammar_state_destroy(pieces);
    cera_grammar_close(g);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 300) return 0;
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    size_t n = cut ? (size_t)(cut - data) : size, n_text = cut ? size - n - 1 : 0;
    char *pattern = malloc(n + 1), *text = malloc(n_text + 1); /* exact sizes: sanitizers see a read past the end */
    if (!pattern || !text) abort();
    memcpy(pattern, data, n);
    if (n_text) memcpy(text, cut + 1, n_text);
    int whole = run(pattern, n, text, n_text, true), anywhere = through_grammar(pattern, n, text, n_text);
    if (whole == 1 && anywhere >= 0) require(anywhere == 1);
    run(pattern, n, text, n_text, false);
    free(pattern);
    free(text);
    return 0;
}
