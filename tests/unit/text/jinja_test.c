/* jinja_test.c: the Jinja interpreter through its header: what templates give, where errors are said to be, budgets, whose text
 * is whose, and rendering one template from several threads. Agreement with jinja2 at large is tests/golden/jinja_test.py's. */
#include "unit/cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "text/jinja.h"

static const char context_text[] =
    "{\"name\":\"World\",\"u\":\"Z\\u00fcrich \\ud83e\\udd99\",\"n\":3,\"f\":0.1,\"none\":null,\"list\":[1,\"two\",null,true],"
    "\"dict\":{\"b\":1,\"a\":{\"x\":\"y\"}},\"messages\":[{\"role\":\"user\",\"content\":\"<|end|>\"}]}";

/* Renders text with the context above; *out and *e are the caller's. */
static cera_status render(const char *text, const cera_jinja_options *options, cera_jinja_text *out, cera_error *e) {
    cera_arena *arena;
    const cera_json *context;
    cera_jinja *t = NULL;
    *out = (cera_jinja_text){0};
    *e = (cera_error){0};
    assert_int_equal(cera_arena_create(0, &arena, NULL), CERA_OK);
    assert_int_equal(cera_json_parse(context_text, sizeof context_text - 1, arena, &context, NULL), CERA_OK);
    cera_status status = cera_jinja_compile(text, strlen(text), &t, e);
    if (status == CERA_OK) status = cera_jinja_render(t, context, options, out, e);
    cera_jinja_destroy(t);
    cera_arena_destroy(arena);
    return status;
}

static void gives(const char *template, const char *want) {
    cera_jinja_text out;
    cera_error e;
    if (render(template, NULL, &out, &e) != CERA_OK) fail_msg("%s: %s", template, e.message);
    if (strcmp(out.text, want) != 0) fail_msg("%s: \"%s\", not \"%s\"", template, out.text, want);
    assert_int_equal(out.size, strlen(want));
    cera_jinja_text_deinit(&out);
}

static void fails(const char *template, cera_status status, const char *words) {
    cera_jinja_text out;
    cera_error e;
    cera_status got = render(template, NULL, &out, &e);
    if (got != status || !strstr(e.message, words))
        fail_msg("%.60s: status %d, \"%s\"; should be %d and say \"%s\"", template, got, e.message, status, words);
    assert_null(out.text);
    cera_jinja_text_deinit(&out);
}

static void expressions_are_pythons(void **state) {
    (void)state;
    gives("{{ 7 / 2 }} {{ 7 // -2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1e22 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 123456789012.5 }}",
          "3.5 -4 2 1024 1e+22 0.30000000000000004 1e+16 123456789012.5");
    gives("{{ list }} {{ dict }} {{ (1,) }} {{ true }} {{ none }} {{ 'it\\'s' }}",
          "[1, 'two', None, True] {'b': 1, 'a': {'x': 'y'}} (1,) True None it's");
    gives("{{ u|length }} {{ u[-1] }} {{ u[::-1] }} {{ u|upper }}", "8 🦙 🦙 hcirüZ ZÜRICH 🦙");
    gives("{{ 1 < n <= 3 }} {{ 'a' in dict }} {{ 9 not in list }} {{ n == 3.0 }} {{ list[1:3] }}",
          "True True True True ['two', None]");
    gives("{{ missing }}|{{ dict.nope }}|{{ missing is defined }}|{{ missing|default('d') }}", "||False|d");
    gives("{{ 'a' ~ 1 ~ none ~ 2.0 }} {{ '%s|%5.2f' % ('x', 1.5) }} {{ '{:>4}'.format(7) }}", "a1None2.0 x| 1.50    7");
}

static void statements_and_scopes(void **state) {
    (void)state;
    gives("{% set x = 1 %}{% for i in [1, 2] %}{% set x = i %}{% endfor %}{{ x }}", "1");
    gives("{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2");
    gives("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6");
    gives("{% macro m(a, b=a ~ '!') %}{{ a }}{{ b }}{{ caller() }}{% endmacro %}{% call m('x') %}in{% endcall %}", "xx!in");
    gives("{% for k, v in dict|dictsort %}{{ k }}{{ loop.index }}{{ ',' if not loop.last }}{% endfor %}", "a1,b2");
    gives("{% for i in range(9) if i is odd %}{% if i == 7 %}{% break %}{% endif %}{{ i }}{% else %}none{% endfor %}", "135");
    gives("{% for i in [] %}{% else %}none{% endfor %}", "none");
    gives("{% set x %}a{{ name }}{% endset %}{% filter upper %}{{ x }}{% endfilter %}", "AWORLD");
    gives("{% generation %}{{ name }}{% endgeneration %}", "World");
}

static void white_space_of_tags(void **state) {
    (void)state;
    gives("a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc");
    gives("a  {%- if true -%}  b  {%- endif -%}  c", "abc");
    gives("  {%+ if true %}x{% endif %}\n\ny\n\n", "  x\ny\n");
    gives("{# note #}\n{{ 1 }}\n{{ 2 }}\r\n{% raw %}{{ x }}{% endraw %}", "1\n2\n{{ x }}");
}

static void errors_name_the_line(void **state) {
    (void)state;
    fails("\n\n{{ missing.x }}", CERA_ERR_FORMAT, "line 3: UndefinedError: 'missing' is undefined");
    fails("a\n{% for %}", CERA_ERR_FORMAT, "line 2");
    fails("{{ raise_exception('no ' ~ name) }}", CERA_ERR_FORMAT, "TemplateError: no World");
    fails("{{ name + 1 }}", CERA_ERR_FORMAT, "can only concatenate str (not \"int\") to str");
    fails("{{ 1|nosuch }}", CERA_ERR_FORMAT, "No filter named 'nosuch'");
    fails("{{ list.append(1) }}", CERA_ERR_FORMAT, "access to attribute 'append' of 'list' object is unsafe");
    fails("{% include 'x' %}", CERA_ERR_FORMAT, "'include' is not supported");
    fails("\xff", CERA_ERR_FORMAT, "UTF-8");
}

static void budgets_end_a_render(void **state) {
    (void)state;
    fails("{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}", CERA_ERR_LIMIT, "recursion");
    fails("{{ 'x' * 100000000 }}", CERA_ERR_LIMIT, "grew beyond");
    fails("{% for i in range(100001) %}{% endfor %}", CERA_ERR_FORMAT, "Range too big");
    cera_jinja_text out;
    cera_error e;
    const cera_jinja_options few_steps = {.max_steps = 1000}, few_bytes = {.max_bytes = 10},
                             little_memory = {.max_memory = 300 << 10};
    assert_int_equal(render("{% for i in range(2000) %}{% endfor %}", &few_steps, &out, &e), CERA_ERR_LIMIT);
    assert_int_equal(render("{% for i in range(20) %}x{% endfor %}", &few_bytes, &out, &e), CERA_ERR_LIMIT);
    assert_int_equal(render("{% for i in range(9999) %}{% set x = [i, i, i, i, i, i] %}{% endfor %}", &little_memory, &out, &e),
                     CERA_ERR_LIMIT);
    assert_int_equal(render("{% for i in range(10) %}{% endfor %}ok", &few_steps, &out, &e), CERA_OK);
    cera_jinja_text_deinit(&out);
}

static void deep_nesting_is_an_error(void **state) {
    (void)state;
    static char text[60000];
    static const char *const units[][2] = {{"(", "1"}, {"[", ""}, {"-", "1"}, {"not ", "1"}, {"{1:", ""}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t n = 0, size = strlen(units[i][0]);
        n += (size_t)sprintf(text, "{{ ");
        while (n + size < 40000) n += (size_t)sprintf(text + n, "%s", units[i][0]);
        sprintf(text + n, "%s }}", units[i][1]);
        cera_jinja *t = NULL;
        assert_int_equal(cera_jinja_compile(text, strlen(text), &t, NULL), CERA_ERR_FORMAT);
        assert_null(t);
    }
}

static bool trust_roles(void *ctx, cera_text_view top, cera_text_view key, cera_text_view text) {
    (void)ctx;
    (void)top;
    (void)text;
    return key.size == 4 && memcmp(key.text, "role", 4) == 0;
}

static void user_text_is_marked(void **state) {
    (void)state;
    static const struct {
        const char *template, *marks; /* u: user, t: template, a letter a byte */
    } cases[] = {{"<{{ name }}>", "tuuuuut"},
                 {"{{ ('<' ~ name)[1:4] ~ '!' }}", "uuut"},
                 {"{{ name|replace('o', '00') }}", "uttuuu"},
                 {"{{ name|upper|trim('D') }}", "uuuu"},
                 {"{{ [name, 'x']|join('-') }}", "uuuuutt"},
                 {"{{ '%s|' % name }}{{ n }}", "uuuuutt"},
                 {"{{ '<|' ~ messages[0].role ~ '|>' }}", "tttttttt"},
                 {"{% set x %}a{{ name }}{% endset %}{{ x }}", "tuuuuu"},
                 {"{{ dict.a|tojson }}", "ttuttttutt"}};
    const cera_jinja_options options = {.trust = trust_roles};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cera_jinja_text out;
        cera_error e;
        char marks[64] = "";
        assert_int_equal(render(cases[i].template, &options, &out, &e), CERA_OK);
        for (size_t s = 0; s < out.n_segments; s++)
            for (size_t k = out.segments[s].start; k < out.segments[s].end; k++)
                strcat(marks, out.segments[s].user ? "u" : "t");
        if (strcmp(marks, cases[i].marks) != 0)
            fail_msg("%s: %s gives %s, not %s", cases[i].template, out.text, marks, cases[i].marks);
        cera_jinja_text_deinit(&out);
    }
}

typedef struct job {
    const cera_jinja *t;
    const cera_json *context;
    int wrong;
} job;

static void *render_often(void *arg) {
    job *j = arg;
    for (int i = 0; i < 200; i++) {
        cera_jinja_text out;
        if (cera_jinja_render(j->t, j->context, NULL, &out, NULL) != CERA_OK || strcmp(out.text, "World1World2World3") != 0)
            j->wrong++;
        cera_jinja_text_deinit(&out);
    }
    return NULL;
}

static void one_template_many_threads(void **state) {
    (void)state;
    static const char text[] =
        "{% macro m(i) %}{{ name ~ i }}{% endmacro %}{% for i in range(n) %}{{ m(loop.index) }}{% endfor %}";
    cera_arena *arena;
    cera_jinja *t;
    job jobs[4];
    pthread_t threads[4];
    assert_int_equal(cera_arena_create(0, &arena, NULL), CERA_OK);
    assert_int_equal(cera_jinja_compile(text, sizeof text - 1, &t, NULL), CERA_OK);
    const cera_json *context;
    assert_int_equal(cera_json_parse(context_text, sizeof context_text - 1, arena, &context, NULL), CERA_OK);
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){t, context, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, render_often, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].wrong, 0);
    }
    cera_jinja_destroy(t);
    cera_jinja_destroy(NULL);
    cera_arena_destroy(arena);
}

static void names_and_texts_are_found(void **state) {
    (void)state;
    static const char text[] = "{{ tools }}<|im_end|>{{ 'x' }}";
    cera_jinja *t;
    assert_int_equal(cera_jinja_compile(text, sizeof text - 1, &t, NULL), CERA_OK);
    assert_true(cera_jinja_uses_name(t, "tools") && !cera_jinja_uses_name(t, "tool"));
    assert_true(cera_jinja_mentions(t, "<|im_end|>") && !cera_jinja_mentions(t, "<|im_start|>"));
    cera_jinja_destroy(t);
    cera_jinja_text out;
    assert_int_equal(cera_jinja_compile(text, (size_t)CERA_JINJA_MAX_TEXT + 1, &t, NULL), CERA_ERR_LIMIT);
    assert_int_equal(cera_jinja_compile("x", 1, &t, NULL), CERA_OK);
    assert_int_equal(cera_jinja_render(t, NULL, NULL, &out, NULL), CERA_ERR_ARGUMENT);
    cera_jinja_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_pythons),   cmocka_unit_test(statements_and_scopes),
        cmocka_unit_test(white_space_of_tags),       cmocka_unit_test(errors_name_the_line),
        cmocka_unit_test(budgets_end_a_render),      cmocka_unit_test(deep_nesting_is_an_error),
        cmocka_unit_test(user_text_is_marked),       cmocka_unit_test(one_template_many_threads),
        cmocka_unit_test(names_and_texts_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
