/* template_test.c: the public functions on chat templates: arguments, sizes of structs, times, prompts in parts, answers with
 * events. What templates and parsers do in detail is tested in tests/unit/text. */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include "cera.h"

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
                            "\"properties\":{\"q\":{\"type\":\"string\"}}}}}]";

static cera_template *open_text(const char *text) {
    cera_template *t = NULL;
    cera_error e = {0};
    if (cera_template_open(text, strlen(text), &t, &e) != CERA_OK) fail_msg("%s: %s", text, e.message);
    return t;
}

static void null_arguments_are_errors(void **state) {
    (void)state;
    cera_template *t = open_text("x");
    cera_prompt *p = NULL;
    cera_answer *a = NULL;
    cera_error e = {0};
    int32_t *ids;
    size_t n;
    assert_int_equal(cera_template_open(NULL, 0, &t, &e), CERA_ERR_ARGUMENT);
    assert_non_null(strstr(e.message, "cera_template_open"));
    assert_int_equal(cera_template_open_named(NULL, &t, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_template_render(t, NULL, 0, NULL, &p, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_template_chat(t, NULL, &p, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_template_info_get(t, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_prompt_encode(NULL, NULL, &ids, &n, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_answer_create(NULL, NULL, NULL, NULL, &a, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_answer_feed(NULL, "x", 1, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_answer_finish(NULL, NULL), CERA_ERR_ARGUMENT);
    assert_string_equal(cera_prompt_text(NULL, &n), "");
    assert_false(cera_prompt_part(NULL, 0, NULL, NULL, NULL));
    cera_prompt_close(NULL);
    cera_answer_destroy(NULL);
    cera_template_close(NULL);
    cera_template_close(t);
}

static void templates_and_what_they_can(void **state) {
    (void)state;
    cera_template *t = NULL;
    cera_error e = {0};
    assert_int_equal(cera_template_open("{{", 2, &t, &e), CERA_ERR_FORMAT);
    assert_non_null(strstr(e.message, "line 1"));
    e = (cera_error){0};
    assert_int_equal(cera_template_open_named("nope", &t, &e), CERA_ERR_NOT_FOUND);
    assert_non_null(strstr(e.message, "chatml"));
    for (const char *const *name = cera_template_names(); *name; name++) {
        assert_int_equal(cera_template_open_named(*name, &t, NULL), CERA_OK);
        cera_template_close(t);
    }
    t = open_text("{{ tools }}{{ enable_thinking }}<tool_call>");
    cera_template_info info = {.size = sizeof info};
    assert_int_equal(cera_template_info_get(t, &info, NULL), CERA_OK);
    assert_true(info.takes_tools && info.has_thinking);
    assert_string_equal(info.tool_format, "tool_call");
    cera_template_close(t);
}

static void times_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *now, *text; /* NULL: an error */
    } cases[] = {{"2026-07-26T13:05:09", "Sunday 26 July 2026 207"},
                 {"2024-02-29 00:00:00", "Thursday 29 February 2024 060"},
                 {"1999-12-31T23:59:59", "Friday 31 December 1999 365"},
                 {"2025-02-29T00:00:00", NULL},
                 {"2026-13-01T00:00:00", NULL},
                 {"2026-07-26", NULL},
                 {"2026-07-26T13:05:09Z", NULL},
                 {"2026-07-26T24:00:00", NULL},
                 {"", NULL}};
    cera_template *t = open_text("{{ strftime_now('%A %d %B %Y %j') }}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cera_prompt *p = NULL;
        cera_status status = cera_template_render(t, "{}", 2, cases[i].now, &p, NULL);
        assert_int_equal(status, cases[i].text ? CERA_OK : CERA_ERR_ARGUMENT);
        if (cases[i].text) assert_string_equal(cera_prompt_text(p, NULL), cases[i].text);
        cera_prompt_close(p);
    }
    cera_template_close(t);
}

static void a_chat_becomes_a_prompt_in_parts(void **state) {
    (void)state;
    cera_template *t = NULL;
    cera_prompt *p = NULL;
    cera_error e = {0};
    size_t size, start, end;
    bool user;
    assert_int_equal(cera_template_open_named("chatml", &t, NULL), CERA_OK);
    cera_chat chat = {.size = sizeof chat, .messages = "[{\"role\":\"user\",\"content\":\"hi\"}]", .tools = "null"};
    assert_int_equal(cera_template_chat(t, &chat, &p, &e), CERA_OK);
    const char *text = cera_prompt_text(p, &size);
    assert_string_equal(text, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(size, strlen(text));
    assert_true(cera_prompt_part(p, 1, &start, &end, &user) && user && end - start == 2 && memcmp(text + start, "hi", 2) == 0);
    assert_true(cera_prompt_part(p, 2, NULL, &end, &user) && !user && end == size);
    assert_false(cera_prompt_part(p, 3, NULL, NULL, NULL));
    cera_prompt_close(p);
    chat.no_generation_prompt = true;
    assert_int_equal(cera_template_chat(t, &chat, &p, &e), CERA_OK);
    assert_string_equal(cera_prompt_text(p, NULL), "<|im_start|>user\nhi<|im_end|>\n");
    cera_prompt_close(p);
    chat.messages = "{\"role\":1}";
    assert_int_equal(cera_template_chat(t, &chat, &p, &e), CERA_ERR_FORMAT);
    assert_non_null(strstr(e.message, "messages"));
    e = (cera_error){0};
    chat.messages = "[";
    assert_int_equal(cera_template_chat(t, &chat, &p, &e), CERA_ERR_FORMAT);
    chat.messages = NULL;
    assert_int_equal(cera_template_chat(t, &chat, &p, NULL), CERA_ERR_ARGUMENT);
    cera_template_close(t);
}

typedef struct heard {
    char text[512];
    size_t size;
} heard;

static void hear(void *ctx, const char *text, size_t n) {
    heard *h = ctx;
    h->size += (size_t)snprintf(h->text + h->size, sizeof h->text - h->size, "%.*s|", (int)n, text);
}

static void hear_call(void *ctx, size_t index, const char *text, size_t n) {
    assert_int_equal(index, 0);
    hear(ctx, text, n);
}

static void an_answer_is_taken_apart(void **state) {
    (void)state;
    cera_template *t = open_text("{# <tool_call> </think> #}<think>\n");
    cera_prompt *p = NULL;
    cera_answer *a = NULL;
    cera_error e = {0};
    heard h = {.size = 0};
    size_t size;
    const cera_answer_events events = {.size = sizeof events,
                                       .ctx = &h,
                                       .on_content = hear,
                                       .on_reasoning = hear,
                                       .on_call = hear_call,
                                       .on_arguments = hear_call};
    static const char output[] = "hm</think>yes<tool_call>{\"name\": \"f\", \"arguments\": {\"q\": \"x\"}}</tool_call>";
    assert_int_equal(cera_template_render(t, "{}", 2, NULL, &p, NULL), CERA_OK);
    assert_int_equal(cera_answer_create(t, tools, p, &events, &a, &e), CERA_OK);
    assert_int_equal(cera_answer_feed(a, output, sizeof output - 1, &e), CERA_OK);
    assert_int_equal(cera_answer_finish(a, &e), CERA_OK);
    assert_string_equal(h.text, "hm|yes|f|{\"q\": \"x\"}|");
    assert_string_equal(cera_answer_content(a, &size), "yes");
    assert_int_equal(size, 3);
    assert_string_equal(cera_answer_reasoning(a, NULL), "hm");
    assert_int_equal(cera_answer_n_calls(a), 1);
    assert_string_equal(cera_answer_call_name(a, 0, NULL), "f");
    assert_string_equal(cera_answer_call_arguments(a, 0, NULL), "{\"q\": \"x\"}");
    assert_string_equal(cera_answer_call_name(a, 1, NULL), "");
    assert_true(cera_answer_complete(a));
    cera_answer_destroy(a);
    assert_int_equal(cera_answer_create(t, "7", p, NULL, &a, &e), CERA_ERR_FORMAT);
    cera_prompt_close(p);
    cera_template_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_arguments_are_errors), cmocka_unit_test(templates_and_what_they_can),
        cmocka_unit_test(times_are_checked),         cmocka_unit_test(a_chat_becomes_a_prompt_in_parts),
        cmocka_unit_test(an_answer_is_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
