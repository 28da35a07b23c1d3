/* jinja_fuzz.c: fuzzes templates: lexer, parser, scopes and evaluation, with small budgets. Whatever comes in: no crash, an
 * error with its line or a text of valid UTF-8 whose segments cover it, and the same again when rendered again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char context_text[] = "{\"s\":\"Hello <b>\",\"u\":\"Z\\u00fcrich "
                                   "\\ud83e\\udd99\",\"i\":7,\"f\":-2.5,\"t\":true,\"z\":null,\"l\":[3,\"b\",[1,null],2.5],"
                                   "\"d\":{\"b\":1,\"a\":{\"x\":[true]}},\"big\":123456789012345678901234567890,\"messages\":[{"
                                   "\"role\":\"user\",\"content\":\"hi\\r\\nyou\"},"
                                   "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":\"f\",\"arguments\":{"
                                   "\"k\":1}}]}],\"bos_token\":\"<s>\"}";

static void require(bool condition) {
    if (!condition) abort();
}

static void check_text(const cera_jinja_text *t) {
    size_t at = 0;
    require(cera_utf8_valid(t->text, t->size) && t->text[t->size] == 0);
    for (size_t i = 0; i < t->n_segments; i++) {
        require(t->segments[i].start == at && t->segments[i].end > at);
        require(i == 0 || t->segments[i].user != t->segments[i - 1].user);
        at = t->segments[i].end;
    }
    require(at == t->size);
}

static bool trust(void *ctx, cera_text_view top, cera_text_view key, cera_text_view text) {
    (void)ctx;
    (void)text;
    return key.size == 0 && top.size == 9;
}

static void render(const cera_jinja *t, const cera_json *context) {
    static const struct tm now = {.tm_year = 126, .tm_mon = 6, .tm_mday = 26, .tm_hour = 13, .tm_yday = 206};
    /* time is left to the fuzzer's own limit: a render must end by its steps */
    const cera_jinja_options options = {
        .max_steps = 20000, .max_bytes = 1 << 16, .max_memory = 16 << 20, .max_ms = 5000, .now = &now, .trust = trust};
    cera_jinja_text first, second;
    cera_error e = {0}, again = {0};
    cera_status status = cera_jinja_render(t, context, &options, &first, &e);
    require(cera_jinja_render(t, context, &options, &second, &again) == status);
    if (status == CERA_OK) {
        check_text(&first);
        require(first.size == second.size && memcmp(first.text, second.text, first.size) == 0 &&
                first.n_segments == second.n_segments);
    } else {
        require(first.text == NULL && strncmp(e.message, "template", 8) == 0 && strcmp(e.message, again.message) == 0);
    }
    cera_jinja_text_deinit(&first);
    cera_jinja_text_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cera_arena *arena;
    const cera_json *context;
    cera_jinja *t;
    cera_error e = {0};
    if (size > 1 << 14 || cera_arena_create(0, &arena, NULL) != CERA_OK) return 0;
    require(cera_json_parse(context_text, sizeof context_text - 1, arena, &context, NULL) == CERA_OK);
    if (cera_jinja_compile((const char *)data, size, &t, &e) == CERA_OK)
        render(t, context);
    else
        require(t == NULL && strncmp(e.message, "template", 8) == 0);
    cera_jinja_destroy(t);
    cera_arena_destroy(arena);
    return 0;
}
