/* json_fuzz.c: fuzzes the JSON reader and writer. Whatever comes in: no crash; what parses is written as JSON that parses again
 * and compares equal, written again gives the same bytes, and every number and string survives the other conversions. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

static void read_scalar(const cera_json *v) {
    int64_t i;
    double f;
    if (v->kind == CERA_JSON_NUMBER && cera_json_i64(v, &i)) require(cera_json_f64(v, &f));
    if (v->kind != CERA_JSON_STRING) return;
    cera_buffer b = {0};
    require(cera_utf8_valid(v->text.text, v->text.size) && v->text.text[v->text.size] == 0);
    cera_json_write_string(&b, v->text.text, v->text.size, true);
    for (size_t k = 0; k < b.size; k++) require(b.data[k] >= 0x20 && b.data[k] < 0x7f);
    cera_buffer_deinit(&b);
}

static void walk(const cera_json *v) {
    read_scalar(v);
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->kind == CERA_JSON_OBJECT) require(cera_json_get_view(v, v->keys[i].text, v->keys[i].size) != NULL);
        walk(&v->items[i]);
    }
}

static void round_trip(const cera_json *v, cera_arena *arena) {
    const cera_json *again = NULL;
    cera_buffer first = {0}, second = {0};
    cera_json_write(&first, v);
    require(!first.failed && cera_json_parse(first.data, first.size, arena, &again, NULL) == CERA_OK);
    require(cera_json_equal(v, again) && cera_json_equal(again, v));
    cera_json_write(&second, again);
    require(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    cera_buffer_deinit(&first);
    cera_buffer_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cera_arena *arena;
    const cera_json *v = NULL;
    cera_error e = {0};
    if (cera_arena_create(64 << 20, &arena, NULL) != CERA_OK) return 0;
    if (cera_json_parse((const char *)data, size, arena, &v, &e) == CERA_OK) {
        walk(v);
        round_trip(v, arena);
    } else {
        require(v == NULL && e.code != CERA_OK && e.message[0]);
    }
    /* The bytes as they are, valid UTF-8 or not: the writer must give a string that reads back. */
    cera_buffer b = {0};
    cera_json_write_string(&b, (const char *)data, size, size % 2 == 0);
    require(!b.failed && cera_json_parse(b.data, b.size, arena, &v, NULL) == CERA_OK && v->kind == CERA_JSON_STRING);
    if (cera_utf8_valid((const char *)data, size))
        require(v->text.size == size && (size == 0 || memcmp(v->text.text, data, size) == 0));
    cera_buffer_deinit(&b);
    cera_arena_destroy(arena);
    return 0;
}
