/* json_test.c: the reader against RFC 8259 (a list of our own, and the JSONTestSuite when ../shared or CERA_SHARED has it), its
 * limits and messages; looking up, comparing, writing. */
#include "unit/cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"

static cera_arena *arena;

static int make_arena(void **state) {
    (void)state;
    return cera_arena_create(0, &arena, NULL);
}

static int drop_arena(void **state) {
    (void)state;
    cera_arena_destroy(arena);
    return 0;
}

/* Parses a copy of exactly n bytes, so that sanitizers see a read past the end; the copy is gone before the tree is used. */
static const cera_json *parse_bytes(const char *text, size_t n, cera_error *e) {
    char *copy = malloc(n ? n : 1);
    if (n) memcpy(copy, text, n);
    const cera_json *v = NULL;
    cera_status status = cera_json_parse(copy, n, arena, &v, e);
    assert_int_equal(status == CERA_OK, v != NULL);
    free(copy);
    return v;
}

static const cera_json *parse(const char *text) { return parse_bytes(text, strlen(text), NULL); }

static void values_of_every_kind(void **state) {
    (void)state;
    const cera_json *v = parse(" {\"a\":[1,-2.5e3,true,false,null,\"x\"],\"b\":{},\"c\":[]}\r\n");
    assert_non_null(v);
    assert_int_equal(v->kind, CERA_JSON_OBJECT);
    assert_int_equal(v->n, 3);
    const cera_json *a = cera_json_get(v, "a");
    static const cera_json_kind kinds[] = {CERA_JSON_NUMBER, CERA_JSON_NUMBER, CERA_JSON_TRUE,
                                           CERA_JSON_FALSE,  CERA_JSON_NULL,   CERA_JSON_STRING};
    assert_int_equal(a->n, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(a->items[i].kind, kinds[i]);
    assert_string_equal(a->items[1].text.text, "-2.5e3");
    assert_int_equal(a->offset, 6);
    assert_int_equal(a->items[5].offset, 32);
    assert_true(cera_json_is_text(&a->items[5], "x"));
    assert_false(cera_json_is_text(&a->items[5], "xy") || cera_json_is_text(NULL, "x") || cera_json_is_text(a, "x"));
    assert_int_equal(cera_json_get(v, "b")->n, 0);
    assert_int_equal(cera_json_get(v, "c")->kind, CERA_JSON_ARRAY);
    assert_null(cera_json_get(v, "d"));
    assert_null(cera_json_get(a, "a"));
    assert_null(cera_json_get(NULL, "a"));
    assert_int_equal(parse("7")->kind, CERA_JSON_NUMBER);
}

static void the_last_of_equal_names_wins(void **state) {
    (void)state;
    const cera_json *v = parse("{\"a\":1,\"b\":2,\"a\":3}");
    int64_t n = 0;
    assert_int_equal(v->n, 3);
    assert_true(cera_json_i64(cera_json_get(v, "a"), &n) && n == 3);
    v = parse("{\"a\\u0000b\":1}");
    assert_null(cera_json_get(v, "a"));
    assert_non_null(cera_json_get_view(v, "a\0b", 3));
}

static void strings_are_unescaped(void **state) {
    (void)state;
    static const struct {
        const char *json, *text;
        size_t n;
    } cases[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\ud800\"", "\xef\xbf\xbd", 3},
        {"\"\\udc00x\"", "\xef\xbf\xbdx", 4},
        {"\"\\ud800\\ud800\\udc00\"", "\xef\xbf\xbd\xf0\x90\x80\x80", 7},
        {"\"\\ud800\\n\"", "\xef\xbf\xbd\n", 4},
        {"\"\"", "", 0},
        {"\"\x7f\xc3\xa9\"", "\x7f\xc3\xa9", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cera_json *v = parse(cases[i].json);
        if (!v || v->text.size != cases[i].n || memcmp(v->text.text, cases[i].text, cases[i].n) != 0)
            fail_msg("%s came out wrong", cases[i].json);
        assert_int_equal(v->text.text[v->text.size], 0);
    }
}

static void malformed_texts_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",           " ",
        "{",          "[",
        "}",          "]",
        "[1",         "[1,",
        "[1,]",       "[,1]",
        "[1 2]",      "{\"a\"}",
        "{\"a\":}",   "{\"a\":1,}",
        "{a:1}",      "{'a':1}",
        "{\"a\" 1}",  "{\"a\":1 \"b\":2}",
        "[1}",        "{\"a\":1]",
        "nul",        "nulll",
        "True",       "NaN",
        "Infinity",   "-",
        "01",         "1.",
        ".1",         "+1",
        "1e",         "0x1",
        "1 2",        "\"",
        "\"\\\"",     "\"\\x\"",
        "\"\\u12\"",  "\"\\u12G4\"",
        "\"a\nb\"",   "\"\t\"",
        "\"\x1f\"",   "\"\xff\"",
        "\"\xc3\"",   "\"\xed\xa0\x80\"",
        "[\"\\",      "[\"\\u",
        "//x\n1",     "/*x*/1",
        "1//x",       "[1]]",
        "{}{}",       "\xef\xbb\xbf",
        "\xef\xbb",   "[\v1]",
        "[\xc2\xa0]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cera_error e = {0};
        if (parse_bytes(bad[i], strlen(bad[i]), &e)) fail_msg("accepted: %s", bad[i]);
        assert_memory_equal(e.message, "line ", 5);
    }
    assert_null(parse_bytes("1\0", 2, NULL));
    assert_null(parse_bytes("\0", 1, NULL));
    assert_null(parse_bytes("\"\0\"", 3, NULL));
    assert_non_null(parse("\xef\xbb\xbf[1]"));
}

static void messages_name_the_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\n \"\xc3\xa9\": x}", "line 2, column 7: found 'x' where a value was expected"},
        {"[1, 2", "line 1, column 6: the text ends where ',' or ']' was expected"},
        {"{\"a\":1 2}", "line 1, column 8: found '2' where ',' or '}' was expected"},
        {"[1] x", "line 1, column 5: found 'x' where the end of the text was expected"},
        {"\n\n  \"abc", "line 3, column 3: this string has no end"},
        {"[01]", "line 1, column 2: malformed number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cera_error e = {0};
        assert_null(parse_bytes(cases[i].text, strlen(cases[i].text), &e));
        assert_int_equal(e.code, CERA_ERR_FORMAT);
        assert_string_equal(e.message, cases[i].message);
    }
}

static char *repeat(const char *unit, size_t n, size_t *size) {
    size_t one = strlen(unit);
    char *text = malloc(one * n + 1);
    for (size_t i = 0; i < n; i++) memcpy(text + i * one, unit, one);
    text[one * n] = 0;
    *size = one * n;
    return text;
}

static void depth_has_a_limit(void **state) {
    (void)state;
    for (int depth = CERA_JSON_MAX_DEPTH; depth <= CERA_JSON_MAX_DEPTH + 1; depth++) {
        size_t n, m;
        char *open = repeat("[", (size_t)depth, &n), *close = repeat("]", (size_t)depth, &m);
        char *text = malloc(n + m);
        memcpy(text, open, n);
        memcpy(text + n, close, m);
        cera_error e = {0};
        const cera_json *v = parse_bytes(text, n + m, &e);
        assert_int_equal(v != NULL, depth <= CERA_JSON_MAX_DEPTH);
        if (!v) assert_int_equal(e.code, CERA_ERR_LIMIT);
        if (v) assert_true(cera_json_equal(v, v));
        free(open), free(close), free(text);
    }
    size_t n;
    char *deep = repeat("[{\"a\":", 100000, &n);
    assert_null(parse_bytes(deep, n, NULL));
    free(deep);
}

static void the_arenas_limit_is_kept(void **state) {
    (void)state;
    cera_buffer text = {0};
    cera_buffer_add_text(&text, "[0");
    for (int i = 0; i < 20000; i++) cera_buffer_add_text(&text, ",[]");
    cera_buffer_add_text(&text, "]");
    cera_arena *small;
    cera_arena_create(100000, &small, NULL);
    const cera_json *v;
    cera_error e = {0};
    assert_int_equal(cera_json_parse(text.data, text.size, small, &v, &e), CERA_ERR_MEMORY);
    assert_null(v);
    assert_true(cera_arena_used(small) <= 100000);
    cera_arena_destroy(small);
    assert_non_null(parse_bytes(text.data, text.size, NULL));
    cera_buffer_deinit(&text);
}

static void numbers_convert_exactly(void **state) {
    (void)state;
    int64_t i = 0;
    double f = 0;
    assert_true(cera_json_i64(parse("1e2"), &i) && i == 100);
    assert_false(cera_json_i64(parse("1.5"), &i) || cera_json_i64(parse("\"1\""), &i) || cera_json_i64(NULL, &i));
    assert_true(cera_json_f64(parse("0.1"), &f) && f == 0.1);
    assert_false(cera_json_f64(parse("1e999"), &f) || cera_json_f64(parse("true"), &f) || cera_json_f64(NULL, &f));
}

static bool same(const char *a, const char *b) { return cera_json_equal(parse(a), parse(b)); }

static void equality_is_json_schemas(void **state) {
    (void)state;
    assert_true(same("1", "1.0") && same("{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}") && same("[]", "[]") &&
                same("{}", "{}"));
    assert_true(same("\"\\u0041\"", "\"A\"") && same("{\"a\":1,\"a\":2}", "{\"a\":2}") && same("null", "null"));
    assert_false(same("1", "\"1\"") || same("[1,2]", "[2,1]") || same("{\"a\":1}", "{\"b\":1}") ||
                 same("{\"a\":1}", "{\"a\":1,\"b\":1}"));
    assert_false(same("0", "false") || same("true", "false") || same("[]", "{}") || same("[1]", "[1,1]") ||
                 same("{\"a\":1,\"a\":2}", "{\"a\":1}"));
}

/* 100,000 members in opposite orders: quadratic comparison would take minutes. */
static void large_objects_compare_fast(void **state) {
    (void)state;
    cera_buffer up = {0}, down = {0};
    cera_buffer_add_text(&up, "{");
    cera_buffer_add_text(&down, "{");
    for (int i = 0; i < 100000; i++) {
        cera_buffer_printf(&up, "%s\"k%d\":%d", i ? "," : "", i, i);
        cera_buffer_printf(&down, "%s\"k%d\":%d", i ? "," : "", 99999 - i, 99999 - i);
    }
    cera_buffer_add_text(&up, "}");
    cera_buffer_add_text(&down, "}");
    assert_false(up.failed || down.failed);
    const cera_json *a = parse_bytes(up.data, up.size, NULL), *b = parse_bytes(down.data, down.size, NULL);
    assert_true(cera_json_equal(a, b));
    cera_buffer_deinit(&up);
    cera_buffer_deinit(&down);
}

static void writing(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *plain, *ascii;
    } cases[] = {
        {"a\"\\/\b\f\n\r\t\x01\x7f", 11, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f\"",
         "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\""},
        {"\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\\u00e9\\ud83d\\ude00\""},
        {"x\xffy\xe2\x82z", 6, "\"x\xef\xbf\xbdy\xef\xbf\xbdz\"", "\"x\\ufffdy\\ufffdz\""},
        {"\xf0\x9f\x98", 3, "\"\xef\xbf\xbd\"", "\"\\ufffd\""},
        {"a\0b", 3, "\"a\\u0000b\"", "\"a\\u0000b\""},
        {"", 0, "\"\"", "\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cera_buffer b = {0};
        cera_json_write_string(&b, cases[i].text, cases[i].n, false);
        assert_string_equal(b.data, cases[i].plain);
        cera_buffer_deinit(&b);
        cera_json_write_string(&b, cases[i].text, cases[i].n, true);
        assert_string_equal(b.data, cases[i].ascii);
        cera_buffer_deinit(&b);
    }
    static const char text[] = "{\"b\":[1.50,-0,1e+5],\"a\":{},\"\\u00e9\\n\":[[],null,true,false,\"x\"]}";
    cera_buffer b = {0};
    cera_json_write(&b, parse(text));
    assert_string_equal(b.data, "{\"b\":[1.50,-0,1e+5],\"a\":{},\"\xc3\xa9\\n\":[[],null,true,false,\"x\"]}");
    cera_buffer_deinit(&b);
}

static void buffers_have_limits(void **state) {
    (void)state;
    cera_buffer b = {.limit = 10};
    cera_buffer_add_text(&b, "12345");
    cera_buffer_printf(&b, "%05d", 7);
    assert_false(b.failed);
    assert_string_equal(b.data, "1234500007");
    cera_buffer_add(&b, "x", 1);
    assert_true(b.failed);
    cera_buffer_add(&b, "", 0);
    assert_int_equal(b.size, 10);
    cera_buffer_deinit(&b);
    cera_buffer_add(&b, NULL, 0);
    assert_true(!b.failed && b.size == 0 && b.data[0] == 0);
    cera_buffer_deinit(&b);
}

/* Cut at every byte: an error or a shorter valid text, never a crash. */
static void every_beginning_is_survived(void **state) {
    (void)state;
    static const char text[] = "[{\"k\\u00e9\":[1.5e-3,\"\\ud83d\\ude00\xc3\xa9\",true,null],\"z\":{\"a\":-0}},false]";
    for (size_t n = 0; n < sizeof text - 1; n++) assert_null(parse_bytes(text, n, NULL));
    assert_non_null(parse(text));
}

/* ---- JSONTestSuite ---- */

static char *read_whole(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = malloc(1 << 20);
    *n = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static void check_suite_file(const char *folder, const char *name) {
    char path[1300];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = read_whole(path, &n);
    const cera_json *v = parse_bytes(text, n, NULL);
    if (name[0] == 'y' && !v) fail_msg("%s must be accepted", name);
    if (name[0] == 'n' && v) fail_msg("%s must be refused", name);
    if (v) { /* what was accepted is written as JSON that reads back equal */
        cera_buffer b = {0};
        cera_json_write(&b, v);
        const cera_json *again = parse_bytes(b.data, b.size, NULL);
        if (!again || !cera_json_equal(v, again)) fail_msg("%s does not survive writing and reading", name);
        cera_buffer_deinit(&b);
    }
    free(text);
}

static void json_test_suite(void **state) {
    (void)state;
    char folder[1024];
    const char *shared = getenv("CERA_SHARED");
    snprintf(folder, sizeof folder, "%s/data/json/JSONTestSuite/test_parsing", shared ? shared : "../shared");
    DIR *d = opendir(folder);
    if (!d) skip();
    int n = 0;
    for (struct dirent *entry; (entry = readdir(d));)
        if (strchr("yni", entry->d_name[0]) && entry->d_name[1] == '_') check_suite_file(folder, entry->d_name), n++;
    closedir(d);
    printf("note: %d files of the JSONTestSuite\n", n);
    assert_true(n > 300);
}

#define ARENA_TEST(f) cmocka_unit_test_setup_teardown(f, make_arena, drop_arena)

int main(void) {
    const struct CMUnitTest tests[] = {
        ARENA_TEST(values_of_every_kind),
        ARENA_TEST(the_last_of_equal_names_wins),
        ARENA_TEST(strings_are_unescaped),
        ARENA_TEST(malformed_texts_are_refused),
        ARENA_TEST(messages_name_the_place),
        ARENA_TEST(depth_has_a_limit),
        ARENA_TEST(the_arenas_limit_is_kept),
        ARENA_TEST(numbers_convert_exactly),
        ARENA_TEST(equality_is_json_schemas),
        ARENA_TEST(large_objects_compare_fast),
        ARENA_TEST(writing),
        ARENA_TEST(buffers_have_limits),
        ARENA_TEST(every_beginning_is_survived),
        ARENA_TEST(json_test_suite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
