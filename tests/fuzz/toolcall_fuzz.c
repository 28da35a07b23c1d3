/* toolcall_fuzz.c: fuzzes the parsers of a model's output. Byte 0 chooses the template's markers (and so the syntax), byte 1
 * the size of pieces and whether a thought is open; the rest is the output. However the output is cut, the result is the same;
 * what the events said joins to it; arguments are JSON objects; and an output without any call or marker is its own content. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "text/tool_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const templates[] = {"<tool_call> <think>",
                                        "<tool_call> <function= </think>",
                                        "<tool_call> <arg_key>",
                                        "<|python_tag|>",
                                        "<|tool_list_start|> </think>",
                                        "[TOOL_CALLS] [ARGS] [THINK]",
                                        "[TOOL_CALLS]",
                                        "<|tool_call>call: <|channel>",
                                        "<|channel|> <|message|>",
                                        ">>>",
                                        "<function=",
                                        "DSML </think>",
                                        "<minimax:tool_call>",
                                        "<|tool_calls_section_begin|>",
                                        "<｜tool▁calls▁begin｜> ```json",
                                        "<｜tool▁calls▁begin｜>",
                                        "<seed:tool_call> <seed:think>",
                                        "<tool_calls>",
                                        "<|START_ACTION|> <|START_THINKING|>",
                                        "<|tools_prefix|> <|inner_prefix|>",
                                        "<|function_call|>",
                                        "<|tool_call|> <think>",
                                        "functools",
                                        "<start_function_call>",
                                        "nothing"};
enum { N_TEMPLATES = sizeof templates / sizeof templates[0], MAX_CALLS = 64 };

static const char tools_text[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
                                 "\"properties\":{\"q\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},"
                                 "\"m\":{\"type\":[\"string\",\"null\"]},\"o\":{\"anyOf\":[{\"type\":\"object\"},{\"enum\":[1,"
                                 "\"a\"]}]},\"x\":{}}}}},{\"name\":\"now\"}]";

typedef struct heard {
    cera_buffer content, reasoning, name[MAX_CALLS], arguments[MAX_CALLS];
    size_t n, ended;
} heard;

static void require(bool condition) {
    if (!condition) abort();
}

static void on_content(void *ctx, const char *text, size_t n) { cera_buffer_add(&((heard *)ctx)->content, text, n); }
static void on_reasoning(void *ctx, const char *text, size_t n) { cera_buffer_add(&((heard *)ctx)->reasoning, text, n); }

static void on_call(void *ctx, size_t index, const char *name, size_t n) {
    heard *h = ctx;
    require(index == h->n && n > 0);
    h->n++;
    if (index >= MAX_CALLS) return;
    h->name[index].size = h->arguments[index].size = 0;
    cera_buffer_add(&h->name[index], name, n);
    cera_buffer_add(&h->arguments[index], "", 0);
}

static void on_arguments(void *ctx, size_t index, const char *text, size_t n) {
    heard *h = ctx;
    require(index + 1 == h->n && n > 0);
    if (index < MAX_CALLS) cera_buffer_add(&h->arguments[index], text, n);
}

static void on_call_end(void *ctx, size_t index) {
    heard *h = ctx;
    require(index + 1 == h->n && h->ended == index);
    h->ended++;
}

static void on_call_malformed(void *ctx, size_t index) {
    heard *h = ctx;
    require(index + 1 == h->n && h->ended == index); /* a call that has ended is never taken back */
    h->n--;
}

static cera_tool_parser *parse(const cera_tool_format *format, const cera_json *tools, const char *prompt, const char *text,
                               size_t size, size_t step, heard *h) {
    const cera_tool_events events = {h, on_content, on_reasoning, on_call, on_arguments, on_call_end, on_call_malformed};
    cera_tool_parser *p = NULL;
    require(cera_tool_parser_create(format, tools, prompt, strlen(prompt), &events, &p, NULL) == CERA_OK);
    for (size_t at = 0; at < size; at += step)
        require(cera_tool_parser_feed(p, text + at, size - at < step ? size - at : step, NULL) == CERA_OK);
    require(cera_tool_parser_finish(p, NULL) == CERA_OK);
    return p;
}

static void require_same(cera_text_view a, const char *text, size_t n) {
    require(a.size == n && (n == 0 || memcmp(a.text, text, n) == 0));
}

static void check(const cera_tool_parser *p, const heard *h) {
    require_same(cera_tool_parser_content(p), h->content.data, h->content.size);
    require_same(cera_tool_parser_reasoning(p), h->reasoning.data, h->reasoning.size);
    require(cera_tool_parser_n_calls(p) == h->n && h->ended == h->n);
    for (size_t i = 0; i < h->n && i < MAX_CALLS; i++) {
        cera_tool_call c = cera_tool_parser_call(p, i);
        cera_arena *arena;
        const cera_json *v = NULL;
        require_same((cera_text_view){c.name, c.name_size}, h->name[i].data, h->name[i].size);
        require_same((cera_text_view){c.arguments, c.arguments_size}, h->arguments[i].data, h->arguments[i].size);
        if (cera_arena_create(0, &arena, NULL) != CERA_OK) return;
        require(cera_json_parse(c.arguments, c.arguments_size, arena, &v, NULL) == CERA_OK && v->kind == CERA_JSON_OBJECT);
        cera_arena_destroy(arena);
    }
}

static void compare(const cera_tool_parser *a, const cera_tool_parser *b) {
    cera_text_view content = cera_tool_parser_content(b), reasoning = cera_tool_parser_reasoning(b);
    require_same(cera_tool_parser_content(a), content.text, content.size);
    require_same(cera_tool_parser_reasoning(a), reasoning.text, reasoning.size);
    require(cera_tool_parser_n_calls(a) == cera_tool_parser_n_calls(b) &&
            cera_tool_parser_complete(a) == cera_tool_parser_complete(b));
    for (size_t i = 0; i < cera_tool_parser_n_calls(a); i++) {
        cera_tool_call x = cera_tool_parser_call(a, i), y = cera_tool_parser_call(b, i);
        require_same((cera_text_view){x.name, x.name_size}, y.name, y.name_size);
        require_same((cera_text_view){x.arguments, x.arguments_size}, y.arguments, y.arguments_size);
    }
}

static void release(cera_tool_parser *p, heard *h) {
    cera_tool_parser_destroy(p);
    cera_buffer_deinit(&h->content);
    cera_buffer_deinit(&h->reasoning);
    for (size_t i = 0; i < MAX_CALLS; i++) {
        cera_buffer_deinit(&h->name[i]);
        cera_buffer_deinit(&h->arguments[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static heard whole, pieces;
    cera_tool_format format;
    cera_arena *arena;
    const cera_json *tools;
    if (size < 2 || size > 1 << 14 || cera_arena_create(0, &arena, NULL) != CERA_OK) return 0;
    const char *template = templates[data[0] % N_TEMPLATES], *output = (const char *)data + 2;
    cera_tool_format_find(template, strlen(template), &format);
    require(cera_json_parse(tools_text, sizeof tools_text - 1, arena, &tools, NULL) == CERA_OK);
    const char *prompt = !(data[1] & 64)                       ? ""
                         : format.think_open                   ? format.think_open
                         : format.syntax == CERA_TOOLS_HARMONY ? "<|start|>assistant"
                                                               : ">>>";
    size_t n = size - 2, step = 1 + data[1] % 16;
    memset(&whole, 0, sizeof whole);
    memset(&pieces, 0, sizeof pieces);
    cera_tool_parser *a = parse(&format, data[1] & 128 ? NULL : tools, prompt, output, n, n ? n : 1, &whole);
    cera_tool_parser *b = parse(&format, data[1] & 128 ? NULL : tools, prompt, output, n, step, &pieces);
    check(a, &whole);
    check(b, &pieces);
    compare(a, b);
    if (format.syntax == CERA_TOOLS_NONE) require_same(cera_tool_parser_content(a), output, n);
    release(a, &whole);
    release(b, &pieces);
    cera_arena_destroy(arena);
    return 0;
}
