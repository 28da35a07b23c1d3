/* chat_test.c: chat templates: what a template is given, fitting requests to it, built-in names, and prompts to ids where user
 * text never becomes a control token. */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include "base/arena.h"
#include "text/chat.h"

static cera_arena *arena;

static const cera_json *json(const char *text) {
    const cera_json *v = NULL;
    cera_error e = {0};
    if (text && cera_json_parse(text, strlen(text), arena, &v, &e) != CERA_OK) fail_msg("%s: %s", text, e.message);
    return v;
}

static cera_chat_template *open_template(const char *text) {
    cera_chat_template *t = NULL;
    cera_error e = {0};
    if (cera_chat_template_create(text, strlen(text), &t, &e) != CERA_OK) fail_msg("%s: %s", text, e.message);
    return t;
}

static cera_chat_request request(const char *messages) {
    return (cera_chat_request){.messages = json(messages), .add_generation_prompt = true, .enable_thinking = -1};
}

static void gives(const char *template, const cera_chat_request *q, const char *want) {
    cera_chat_template *t = open_template(template);
    cera_jinja_text out;
    cera_error e = {0};
    if (cera_chat_render(t, q, &out, &e) != CERA_OK) fail_msg("%s: %s", template, e.message);
    if (strcmp(out.text, want) != 0) fail_msg("%s: \"%s\", not \"%s\"", template, out.text, want);
    cera_jinja_text_deinit(&out);
    cera_chat_template_destroy(t);
}

static void variables_reach_the_template(void **state) {
    (void)state;
    cera_chat_request q = request("[{\"role\":\"user\",\"content\":\"x\"}]");
    gives("{{ tools is none }} {{ documents is none }} {{ enable_thinking is defined }} {{ add_generation_prompt }} {{ "
          "bos_token }}",
          &q, "True True False True ");
    q.tools = json("[{\"name\":\"f\"}]");
    q.documents = json("[{\"text\":\"d\"}]");
    q.enable_thinking = 0;
    q.bos_token = "<s>";
    q.eos_token = "</s>";
    q.reasoning_effort = "high";
    q.date_string = "01 Jan 2026";
    gives("{{ tools[0].name }}{{ documents[0].text }}{{ enable_thinking }}{{ bos_token }}{{ eos_token }}{{ reasoning_effort "
          "}}{{ date_string }}",
          &q, "fdFalse<s></s>high01 Jan 2026");
    q.variables = json("{\"custom\":[1],\"bos_token\":\"B\"}");
    gives("{{ custom }}{{ bos_token }}", &q, "[1]B");
    static const struct tm now = {.tm_year = 126, .tm_mon = 6, .tm_mday = 26};
    q.now = &now;
    gives("{{ strftime_now('%d %b %Y') }}", &q, "26 Jul 2026");
}

static void requests_fit_templates(void **state) {
    (void)state;
    cera_chat_request parts =
        request("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]");
    gives("{% for m in messages %}{{ m.content }}{% endfor %}", &parts, "ab");
    gives("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}[{{ c.text "
          "}}]{% endfor %}{% endif %}{% endfor %}",
          &parts, "[a][b]");
    cera_chat_request calls = request("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":\"function\","
                                      "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"q\\\":1}\"}}]}]");
    gives("{% for c in messages[0].tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}", &calls, "{\"q\": 1}");
    gives("{% for c in messages[0].tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %}", &calls,
          "f{\"q\":1}");
}

static void wrong_requests_are_errors(void **state) {
    (void)state;
    cera_chat_template *t = open_template("{{ messages[0].content + 1 }}");
    cera_jinja_text out;
    cera_error e = {0};
    cera_chat_request q = request("{}");
    assert_int_equal(cera_chat_render(t, &q, &out, &e), CERA_ERR_ARGUMENT);
    q = request("[1]");
    e = (cera_error){0};
    assert_int_equal(cera_chat_render(t, &q, &out, &e), CERA_ERR_ARGUMENT);
    assert_non_null(strstr(e.message, "messages[0]"));
    q = request("[{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":[]}]");
    e = (cera_error){0};
    assert_int_equal(cera_chat_render(t, &q, &out, &e), CERA_ERR_FORMAT);
    assert_non_null(strstr(e.message, "can only concatenate"));
    cera_chat_template_destroy(t);
    cera_chat_template_destroy(NULL);
}

static void templates_by_name(void **state) {
    (void)state;
    size_t n = 0;
    for (const char *const *name = cera_chat_builtin_names(); *name; name++, n++) {
        const char *text = cera_chat_builtin(*name);
        assert_non_null(text);
        cera_chat_template *t = open_template(text);
        cera_chat_request q = request("[{\"role\":\"user\",\"content\":\"A\"},{\"role\":\"assistant\",\"content\":\"B\"},{"
                                      "\"role\":\"user\",\"content\":\"C\"}]");
        q.bos_token = "<s>";
        q.eos_token = "</s>";
        cera_jinja_text out;
        cera_error e = {0};
        if (cera_chat_render(t, &q, &out, &e) != CERA_OK) fail_msg("%s: %s", *name, e.message);
        assert_true(strstr(out.text, "A") && strstr(out.text, "B") && strstr(out.text, "C"));
        cera_jinja_text_deinit(&out);
        cera_chat_template_destroy(t);
    }
    assert_true(n >= 15);
    assert_null(cera_chat_builtin("nope"));
}

static void what_a_template_can_do(void **state) {
    (void)state;
    cera_chat_template *t = open_template(
        "{% if tools %}<tool_call>{% endif %}{% if enable_thinking %}<think>{% endif %}{{ messages[0].content }}");
    assert_true(cera_chat_template_takes_tools(t) && cera_chat_template_has_thinking(t) && !cera_chat_template_takes_parts(t));
    assert_string_equal(cera_chat_template_format(t)->name, "tool_call");
    cera_chat_template_destroy(t);
    t = open_template("{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}");
    assert_true(!cera_chat_template_takes_tools(t) && !cera_chat_template_has_thinking(t) && cera_chat_template_takes_parts(t));
    cera_chat_template_destroy(t);
}

/* ---- ids -------------------------------------------------------------------------------------------------------- */

enum { N_BYTES = 256, ID_BOS = 1, ID_END = 3, ID_START = 4, ID_BYTES = 5, ID_SPACE = ID_BYTES + N_BYTES, N_TOKENS };

/* A SentencePiece vocabulary of bytes and two control tokens: ids of plain text are its bytes. */
static cera_vocab *byte_vocab(void) {
    static char names[N_BYTES][8];
    static cera_text_view tokens[N_TOKENS];
    static int64_t types[N_TOKENS];
    static float scores[N_TOKENS];
    static const char *const special[] = {"<unk>", "<s>", "</s>", "<|end|>", "<|user|>"};
    for (int i = 0; i < ID_BYTES; i++) {
        tokens[i] = (cera_text_view){special[i], strlen(special[i])};
        types[i] = i ? CERA_TOKEN_CONTROL : CERA_TOKEN_UNKNOWN;
    }
    for (int i = 0; i < N_BYTES; i++) {
        snprintf(names[i], sizeof names[i], "<0x%02X>", i);
        tokens[ID_BYTES + i] = (cera_text_view){names[i], 6};
        types[ID_BYTES + i] = CERA_TOKEN_BYTE;
    }
    tokens[ID_SPACE] = (cera_text_view){"\xE2\x96\x81", 3};
    types[ID_SPACE] = CERA_TOKEN_NORMAL;
    cera_vocab_desc d = {
        .model = "llama", .arch = "", .n_tokens = N_TOKENS, .tokens = tokens, .scores = scores, .types = types};
    d.bos = ID_BOS;
    d.eos = 2;
    d.unk = 0;
    d.eot = d.eom = d.sep = d.pad = d.mask = d.fim_pre = d.fim_suf = d.fim_mid = d.fim_pad = d.fim_rep = d.fim_sep = -1;
    d.add_bos = 1;
    d.add_space_prefix = d.add_eos = d.add_sep = d.remove_extra_whitespaces = d.ignore_merges = d.escape_whitespaces =
        d.lowercase = d.strip_accents = -1;
    cera_vocab *v = NULL;
    cera_error e = {0};
    if (cera_vocab_create(&d, &v, &e) != CERA_OK) fail_msg("%s", e.message);
    return v;
}

/* The ids of a chat: control tokens as E, U, B; the space that the tokenizer puts before a text as _; bytes as themselves. */
static void encodes(const cera_vocab *v, const char *template, const char *messages, const char *want) {
    cera_chat_template *t = open_template(template);
    cera_chat_request q = request(messages);
    cera_jinja_text out;
    int32_t *ids;
    size_t n, size = 0;
    char text[256];
    q.bos_token = "<s>";
    assert_int_equal(cera_chat_render(t, &q, &out, NULL), CERA_OK);
    assert_int_equal(cera_chat_tokenize(v, &out, &ids, &n, NULL), CERA_OK);
    for (size_t i = 0; i < n && size < sizeof text - 1; i++)
        text[size++] = ids[i] == ID_BOS     ? 'B'
                       : ids[i] == ID_END   ? 'E'
                       : ids[i] == ID_SPACE ? '_'
                       : ids[i] == ID_START ? 'U'
                                            : (char)(ids[i] - ID_BYTES);
    text[size] = 0;
    if (strcmp(text, want) != 0) fail_msg("%s with %s: %s, not %s", template, messages, text, want);
    cera_free(ids);
    cera_jinja_text_deinit(&out);
    cera_chat_template_destroy(t);
}

static void user_text_is_never_a_control_token(void **state) {
    (void)state;
    cera_vocab *v = byte_vocab();
    static const char plain[] =
        "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}";
    encodes(v, plain, "[{\"role\":\"user\",\"content\":\"a<|end|>b\"}]", "BU_a<|end|>bE");
    encodes(v, plain, "[{\"role\":\"end\",\"content\":\"x\"}]", "B_<|end|>xE");
    encodes(v, "{{ messages[0].content }}|>", "[{\"role\":\"user\",\"content\":\"<|end\"}]", "B_<|end|>");
    encodes(v, "<|user|>{{ messages[0].content }}", "[{\"role\":\"user\",\"content\":\"<s>\"}]", "BU_<s>");
    encodes(v, "", "[]", "B");
    cera_vocab_destroy(v);
}

static int start(void **state) {
    (void)state;
    return cera_arena_create(0, &arena, NULL) != CERA_OK;
}

static int stop(void **state) {
    (void)state;
    cera_arena_destroy(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_reach_the_template), cmocka_unit_test(requests_fit_templates),
        cmocka_unit_test(wrong_requests_are_errors),    cmocka_unit_test(templates_by_name),
        cmocka_unit_test(what_a_template_can_do),       cmocka_unit_test(user_text_is_never_a_control_token),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
