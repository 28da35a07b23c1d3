/* gbnf_fuzz.c: fuzzes GBNF: input is a grammar, a NUL, and a text. No crash and no hang; what compiles has masks that agree
 * with the bytes of the tokens, and every allowed token can be taken. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "sample/grammar.h"
#include "sample/trie.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

enum { N_TOKENS = 40 };

static cera_grammar_tokens *vocabulary(void) {
    static cera_grammar_tokens *made;
    static const char *const text[N_TOKENS] = {
        "a",  "b", "ab", "x",   "xy",    "0",      "12",       " ",        "  ",       "\n", "\"", "\",\"",    "{",    "}",
        "[",  "]", ":",  ",",   "\xc3",  "\xa9",   "\xc3\xa9", "\xf0\x9f", "\x98\x80", "(",  ")",  "((",       "true", "-1",
        ".5", "e", "\\", "\\n", "hello", " world", "A",        "Z",        "_",        "",   "",   "abcabcabc"};
    cera_text_view views[N_TOKENS];
    bool eog[N_TOKENS] = {[37] = true};
    if (made) return made;
    for (int i = 0; i < N_TOKENS; i++) views[i] = (cera_text_view){text[i], strlen(text[i])};
    require(cera_trie_create(views, eog, N_TOKENS, &made, NULL) == CERA_OK);
    return made;
}

/* The mask at s against each token. */
static void compare(cera_grammar_state *s) {
    cera_grammar_state *copy;
    uint32_t bits[2];
    cera_status status = cera_grammar_mask(s, vocabulary(), bits, NULL);
    if (status != CERA_OK) { /* a limit, or a dead end */
        require(status == CERA_ERR_LIMIT || status == CERA_ERR_NOT_FOUND);
        return;
    }
    require(cera_grammar_state_clone(s, &copy, NULL) == CERA_OK);
    for (int id = 0; id < N_TOKENS; id++) {
        status = cera_grammar_accept_token(copy, vocabulary(), id, NULL);
        if (status == CERA_ERR_LIMIT) break;
        require((status == CERA_OK) == (bits[id >> 5] >> (id & 31) & 1));
        if (status == CERA_OK) require(cera_grammar_state_restore(copy, s, NULL) == CERA_OK);
    }
    cera_grammar_state_destroy(copy);
}

static void run(cera_grammar *g, const uint8_t *text, size_t n) {
    cera_grammar_state *s;
    require(cera_grammar_state_create(g, NULL, &s, NULL) == CERA_OK);
    compare(s);
    for (size_t i = 0; i < n && i < 64; i++) {
        if (cera_grammar_accept_token(s, vocabulary(), text[i] % N_TOKENS, NULL) != CERA_OK) continue;
        compare(s);
    }
    cera_grammar_state_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 600) return 0;
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    size_t n = cut ? (size_t)(cut - data) : size;
    char *source = malloc(n + 1);
    if (!source) abort();
    memcpy(source, data, n);
    cera_grammar_options o = {.size = sizeof o, .memory_bytes = 16 << 20};
    cera_error e = {0};
    cera_grammar *g;
    if (cera_grammar_compile_with(CERA_GRAMMAR_GBNF, source, n, &o, NULL, &g, &e) == CERA_OK) {
        run(g, cut ? cut + 1 : data, cut ? size - n - 1 : 0);
        cera_grammar_close(g);
    } else
        require(e.code != CERA_OK && e.message[0]);
    free(source);
    return 0;
}
