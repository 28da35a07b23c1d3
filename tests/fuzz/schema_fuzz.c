/* schema_fuzz.c: fuzzes JSON Schema: input is a schema, a NUL, and a text. No crash and no hang; what compiles gives verdicts
 * that do not depend on the pieces of the text; what the ordered form accepts the free order accepts too; a conjunction with
 * true changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "sample/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

/* 1 accepted, 0 rejected, -1 no verdict. */
static int verdict(const char *schema, size_t n, bool any_order, const char *text, size_t n_text) {
    cera_grammar_options o = {.size = sizeof o, .any_order = any_order, .any_space = true, .memory_bytes = 32 << 20};
    cera_error e = {0};
    cera_grammar *g;
    cera_grammar_state *s;
    int v = -1;
    if (cera_grammar_compile_with(CERA_GRAMMAR_SCHEMA, schema, n, &o, NULL, &g, &e) != CERA_OK) {
        require(e.code != CERA_OK && e.message[0]);
        return -1;
    }
    require(cera_grammar_state_create(g, NULL, &s, NULL) == CERA_OK);
    cera_status status = CERA_OK;
    for (size_t i = 0; i < n_text && status == CERA_OK; i++) status = cera_grammar_accept_text(s, text + i, 1, NULL, NULL);
    if (status == CERA_OK || status == CERA_ERR_ARGUMENT) v = status == CERA_OK && cera_grammar_is_complete(s);
    if (v == 1) { /* what is accepted is JSON */
        cera_arena *arena;
        const cera_json *value;
        require(cera_arena_create(0, &arena, NULL) == CERA_OK);
        require(cera_json_parse(text, n_text, arena, &value, NULL) == CERA_OK);
        cera_arena_destroy(arena);
    }
    cera_grammar_state_destroy(s);
    cera_grammar_close(g);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char head[] = "{\"allOf\":[true,", tail[] = "]}";
    if (size > 1000) return 0;
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    size_t n = cut ? (size_t)(cut - data) : size, n_text = cut ? size - n - 1 : 0;
    char *schema = malloc(n + 1), *text = malloc(n_text + 1), *wrapped = malloc(n + sizeof head + sizeof tail);
    if (!schema || !text || !wrapped) abort();
    memcpy(schema, data, n);
    if (n_text) memcpy(text, cut + 1, n_text);
    int ordered = verdict(schema, n, false, text, n_text), any = verdict(schema, n, true, text, n_text);
    if (ordered == 1 && any >= 0) require(any == 1);
    if (any >= 0 && !memchr(schema, '$', n)) { /* references would point elsewhere */
        memcpy(wrapped, head, sizeof head - 1);
        memcpy(wrapped + sizeof head - 1, schema, n);
        memcpy(wrapped + sizeof head - 1 + n, tail, sizeof tail - 1);
        int same = verdict(wrapped, n + sizeof head + sizeof tail - 2, true, text, n_text);
        require(same < 0 || same == any);
    }
    free(schema);
    free(text);
    free(wrapped);
    return 0;
}
