/* tools_test.c: tool calls and thoughts through the parser's header: the order of events, pieces of every size, what is certain
 * when, and finding the format. Which syntaxes give which calls is tests/golden/tool_call_test.py's. */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include "text/tool_calls.h"

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"q\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"}}}}}]";
static cera_arena *arena;
static const cera_json *tools;

/* Events as text: c(content) r(reasoning) [name (pieces of arguments) ] and ! for a call taken back. */
typedef struct journal {
    char text[4096];
    size_t size;
} journal;

static void note(journal *j, const char *before, const char *text, size_t n, const char *after) {
    j->size += (size_t)snprintf(j->text + j->size, sizeof j->text - j->size, "%s%.*s%s", before, (int)n, text, after);
    assert_true(j->size < sizeof j->text);
}

static void on_content(void *ctx, const char *text, size_t n) { note(ctx, "c(", text, n, ")"); }
static void on_reasoning(void *ctx, const char *text, size_t n) { note(ctx, "r(", text, n, ")"); }
static void on_call(void *ctx, size_t index, const char *name, size_t n) { (void)index, note(ctx, "[", name, n, " "); }
static void on_arguments(void *ctx, size_t index, const char *text, size_t n) { (void)index, note(ctx, "(", text, n, ")"); }
static void on_call_end(void *ctx, size_t index) { (void)index, note(ctx, "]", "", 0, ""); }
static void on_call_malformed(void *ctx, size_t index) { (void)index, note(ctx, "!", "", 0, ""); }

static cera_tool_parser *start(const char *template, const char *prompt, journal *j) {
    cera_tool_format format;
    cera_tool_parser *p = NULL;
    const cera_tool_events events = {j, on_content, on_reasoning, on_call, on_arguments, on_call_end, on_call_malformed};
    *j = (journal){.size = 0};
    cera_tool_format_find(template, strlen(template), &format);
    assert_int_equal(cera_tool_parser_create(&format, tools, prompt, strlen(prompt), &events, &p, NULL), CERA_OK);
    return p;
}

static void feed(cera_tool_parser *p, const char *text) {
    assert_int_equal(cera_tool_parser_feed(p, text, strlen(text), NULL), CERA_OK);
}

static void expect(journal *j, const char *want) {
    if (strcmp(j->text, want) != 0) fail_msg("events %s, not %s", j->text, want);
    *j = (journal){.size = 0};
}

static void events_come_as_soon_as_they_are_certain(void **state) {
    (void)state;
    journal j;
    cera_tool_parser *p = start("<tool_call> <think>", "", &j);
    feed(p, "Hi ");
    expect(&j, "c(Hi)");
    feed(p, "<thi");
    expect(&j, ""); /* the space too waits: a marker may follow */
    feed(p, "s");
    expect(&j, "c( )c(<this)");
    feed(p, "<think> a");
    expect(&j, "r(a)");
    feed(p, " b\n</think>\n\n");
    expect(&j, "r( b)");
    feed(p, "<tool_call>{\"name\": \"f\", \"argum");
    expect(&j, "[f ");
    feed(p, "ents\": {\"q\"");
    expect(&j, "({\"q\")");
    feed(p, ": 1}");
    expect(&j, "(: 1})");
    feed(p, "}");
    expect(&j, "]");
    feed(p, "</tool_call> end ");
    expect(&j, "c(end)");
    assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
    expect(&j, "c( )");
    assert_int_equal(cera_tool_parser_n_calls(p), 1);
    assert_string_equal(cera_tool_parser_call(p, 0).arguments, "{\"q\": 1}");
    assert_true(cera_tool_parser_complete(p));
    assert_int_equal(cera_tool_parser_feed(p, "x", 1, NULL), CERA_ERR_ARGUMENT);
    cera_tool_parser_destroy(p);
    cera_tool_parser_destroy(NULL);
}

static void a_malformed_call_is_taken_back(void **state) {
    (void)state;
    journal j;
    cera_tool_parser *p = start("<tool_call>", "", &j);
    feed(p, "a<tool_call>{\"name\": \"f\", \"arguments\": {\"q\": x");
    expect(&j, "c(a)[f ({\"q\": x)");
    feed(p, "}}</tool_call>b");
    expect(&j, "(})!c(<tool_call>{\"name\": \"f\", \"arguments\": {\"q\": x}}</tool_call>b)");
    assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
    assert_false(cera_tool_parser_complete(p));
    assert_int_equal(cera_tool_parser_n_calls(p), 0);
    cera_tool_parser_destroy(p);
}

static void parameters_stream_one_by_one(void **state) {
    (void)state;
    journal j;
    cera_tool_parser *p = start("<tool_call> <function=", "", &j);
    feed(p, "<tool_call>\n<function=f>\n<parameter=q>\n007\n</parameter>\n");
    expect(&j, "[f ({)"); /* what follows the closing tag decides */
    feed(p, "<parameter=n>\n8\n</parameter>\n</function>");
    expect(&j, "(\"q\": \"007\")(, \"n\": 8)(})]");
    feed(p, "\n</tool_call>");
    assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
    expect(&j, "");
    cera_tool_parser_destroy(p);
}

static void a_prompt_may_open_a_thought(void **state) {
    (void)state;
    journal j;
    cera_tool_parser *p = start("</think>", "...<|assistant|><think>\n", &j);
    feed(p, "hm</think>yes");
    assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
    expect(&j, "r(hm)c(yes)");
    cera_tool_parser_destroy(p);
    p = start("</think>", "...<|assistant|><think></think>", &j);
    feed(p, "yes");
    assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
    expect(&j, "c(yes)");
    cera_tool_parser_destroy(p);
}

static void every_piece_size_gives_the_same(void **state) {
    (void)state;
    static const struct {
        const char *template, *output, *arguments;
    } cases[] = {
        {"<tool_call>", "x <tool_call>\n{\"name\": \"f\", \"arguments\": {\"q\": \"}</tool_call>\"}}\n</tool_call>",
         "{\"q\": \"}</tool_call>\"}"},
        {"<tool_call> <function=", "<tool_call><function=f><parameter=q>\n a\n\n</parameter></function></tool_call>",
         "{\"q\": \" a\\n\"}"},
        {"<tool_call> <arg_key>", "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", "{\"n\": 3}"},
        {"[TOOL_CALLS] [ARGS]", "[TOOL_CALLS]f[ARGS]{\"q\": \"x\"}", "{\"q\": \"x\"}"},
        {"<|tool_list_start|>", "<|tool_call_start|>[f(q='it\\'s', n=-1)]<|tool_call_end|>", "{\"q\": \"it's\", \"n\": -1}"},
        {"<|tool_call>call:", "<|tool_call>call:f{n:2,q:<|\"|>a}b<|\"|>}<tool_call|>", "{\"n\": 2, \"q\": \"a}b\"}"},
        {"<|channel|> <|message|>", "<|channel|>commentary to=functions.f<|message|>{\"q\": 1}<|call|>", "{\"q\": 1}"},
        {"<|python_tag|>", " {\"name\": \"f\", \"parameters\": {\"q\": \"x\"}}", "{\"q\": \"x\"}"},
        {"DSML",
         "<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"q\" string=\"true\">1</｜DSML｜parameter>\n</｜DSML｜invoke>",
         "{\"q\": \"1\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = strlen(cases[i].output);
        for (size_t step = 1; step <= n; step++) {
            journal j;
            cera_tool_parser *p = start(cases[i].template, "", &j);
            for (size_t at = 0; at < n; at += step)
                assert_int_equal(cera_tool_parser_feed(p, cases[i].output + at, n - at < step ? n - at : step, NULL), CERA_OK);
            assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
            if (cera_tool_parser_n_calls(p) != 1 || strcmp(cera_tool_parser_call(p, 0).arguments, cases[i].arguments) != 0)
                fail_msg("%s in pieces of %zu: %s", cases[i].output, step, j.text);
            assert_string_equal(cera_tool_parser_call(p, 0).name, "f");
            assert_true(cera_tool_parser_complete(p));
            cera_tool_parser_destroy(p);
        }
    }
}

static void a_long_answer_is_linear(void **state) {
    (void)state;
    enum { SIZE = 400000 }; /* a byte at a time: quadratic work would take minutes */
    journal j;
    cera_tool_parser *p = start("<tool_call> <think>", "", &j);
    static const char head[] = "<tool_call>{\"name\": \"f\", \"arguments\": {\"q\": \"";
    cera_tool_events silent = {0};
    cera_tool_format format;
    cera_tool_parser_destroy(p);
    cera_tool_format_find("<tool_call>", 11, &format);
    assert_int_equal(cera_tool_parser_create(&format, tools, NULL, 0, &silent, &p, NULL), CERA_OK);
    feed(p, head);
    for (int i = 0; i < SIZE; i++) feed(p, i % 7 ? "<" : "\\\"");
    feed(p, "\"}}</tool_call>");
    for (int i = 0; i < SIZE; i++) feed(p, "<");
    assert_int_equal(cera_tool_parser_finish(p, NULL), CERA_OK);
    assert_int_equal(cera_tool_parser_n_calls(p), 1);
    assert_int_equal(cera_tool_parser_content(p).size, SIZE);
    cera_tool_parser_destroy(p);
}

static void formats_are_found_in_templates(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"<tool_call>", "tool_call"},
                                           {"[TOOL_CALLS] [ARGS]", "mistral"},
                                           {"[TOOL_CALLS]", "mistral-nemo"},
                                           {"<|python_tag|>", "llama3"},
                                           {"<|tool_list_start|>", "lfm2"},
                                           {"<|channel|><|message|>", "harmony"},
                                           {"<|tool_call|>", "granite"},
                                           {"<｜tool▁calls▁begin｜>", "deepseek-v3.1"},
                                           {"<|tool_calls_section_begin|>", "kimi"},
                                           {"<|tool_call>call:", "gemma4"},
                                           {"{{ messages }}", "none"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cera_tool_format f;
        cera_tool_format_find(cases[i][0], strlen(cases[i][0]), &f);
        assert_string_equal(f.name, cases[i][1]);
    }
}

static int open_tools(void **state) {
    (void)state;
    return cera_arena_create(0, &arena, NULL) != CERA_OK ||
           cera_json_parse(tools_text, sizeof tools_text - 1, arena, &tools, NULL) != CERA_OK;
}

static int close_tools(void **state) {
    (void)state;
    cera_arena_destroy(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_as_soon_as_they_are_certain),
        cmocka_unit_test(a_malformed_call_is_taken_back),
        cmocka_unit_test(parameters_stream_one_by_one),
        cmocka_unit_test(a_prompt_may_open_a_thought),
        cmocka_unit_test(every_piece_size_gives_the_same),
        cmocka_unit_test(a_long_answer_is_linear),
        cmocka_unit_test(formats_are_found_in_templates),
    };
    return cmocka_run_group_tests(tests, open_tools, close_tools);
}
