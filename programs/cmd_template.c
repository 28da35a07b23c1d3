/* cmd_template.c: `cera template`: a chat template rendered with a JSON context, or with --parse a model's output on stdin
 * taken apart into content, reasoning and tool calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"

typedef struct {
    cera_model_args model;
    const char *file, *name, *context_file, *now;
    bool parse, segments, list;
    int32_t repeat, piece;
    char *context;
    size_t context_size;
    cera_template *template;
} template_command;

static int parse_args(template_command *c, int argc, char **argv) {
    const cera_arg rows[] = {
        {"--file", "T.jinja", "the template's text, in place of a model's", CERA_ARG_TEXT, (void *)&c->file, 0, 0, NULL},
        {"--name", "NAME", "a built-in template", CERA_ARG_TEXT, (void *)&c->name, 0, 0, NULL},
        {"--list", NULL, "list the built-in templates", CERA_ARG_BOOL, &c->list, 0, 0, NULL},
        {"--context", "C.json", "the template's variables, a JSON object; -: stdin", CERA_ARG_TEXT, (void *)&c->context_file, 0,
         0, NULL},
        {"--now", "TIME", "what strftime_now sees, like 2026-07-26T13:05:09; default: local time", CERA_ARG_TEXT,
         (void *)&c->now, 0, 0, NULL},
        {"--segments", NULL, "as JSON, told apart by who wrote it: the template or the context's strings", CERA_ARG_BOOL,
         &c->segments, 0, 0, NULL},
        {"--parse", NULL, "read a model's output on stdin; one JSON object of content, reasoning, tool calls", CERA_ARG_BOOL,
         &c->parse, 0, 0, NULL},
        {"--piece", "N", "with --parse: feed the output in pieces of N bytes", CERA_ARG_I32, &c->piece, 1, 1e9, NULL},
        {"--repeat", "N", "render N times (to measure)", CERA_ARG_I32, &c->repeat, 1, 1e9, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "template"}, cera_model_args_table(&c->model), {0}};
    const cera_command_line line = {
        .command = "template",
        .usage = "cera template (-m MODEL | --file T.jinja | --name NAME) --context C.json [--now TIME] [--parse < OUTPUT]",
        .summary = "Renders a chat template, or takes a model's output apart by its template's format.",
        .tables = tables,
    };
    const int status = cera_args_parse(&line, argc, argv);
    if (status >= 0 || c->list) return status;
    if ((c->model.path != NULL) + (c->file != NULL) + (c->name != NULL) != 1)
        return cera_args_usage_error("template: give one of -m, --file and --name");
    if (!c->context_file) return cera_args_usage_error("template: --context is missing");
    if (c->parse && strcmp(c->context_file, "-") == 0)
        return cera_args_usage_error("--context: with --parse, stdin is the model's output");
    return -1;
}

/* ---- what a model file says ---- */

/* Key `name` of the file, element `element`; heap memory (free), or NULL. */
static char *model_text(const cera_model_file *f, const char *name, uint64_t element, size_t *size) {
    for (size_t i = 0; i < cera_model_file_n_keys(f); i++) {
        cera_model_key k = {.size = sizeof k};
        if (cera_model_file_key(f, i, &k, NULL) != CERA_OK || strcmp(k.name, name) != 0) continue;
        if (cera_model_file_value(f, i, element, NULL, 0, size, NULL) != CERA_OK) return NULL;
        char *text = malloc(*size + 1);
        if (text && cera_model_file_value(f, i, element, text, *size + 1, size, NULL) == CERA_OK) return text;
        free(text);
        return NULL;
    }
    return NULL;
}

/* "name":"text", of the token whose id is under `key`. */
static void add_token(FILE *out, const cera_model_file *f, const char *key, const char *name) {
    size_t n = 0;
    char *id = model_text(f, key, 0, &n),
         *text = id ? model_text(f, "tokenizer.ggml.tokens", strtoull(id, NULL, 10), &n) : NULL;
    if (text) {
        fprintf(out, "\"%s\":", name);
        cera_output_json_string(out, text, n);
        fputs(",", out);
    }
    free(id);
    free(text);
}

/* The model's bos_token and eos_token go before the context's own members, which win where they say otherwise. */
static int add_tokens(template_command *c, const cera_model_file *f) {
    const size_t start = strspn(c->context, " \t\r\n");
    char *text = NULL;
    size_t size = 0;
    if (c->context[start] != '{') return -1; /* rendering says that it must be an object */
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        fputs("cera: template: out of memory\n", stderr);
        return CERA_EXIT_FAILED;
    }
    fputs("{", out);
    add_token(out, f, "tokenizer.ggml.bos_token_id", "bos_token");
    add_token(out, f, "tokenizer.ggml.eos_token_id", "eos_token");
    const char *rest = c->context + start + 1;
    if (rest[strspn(rest, " \t\r\n")] == '}') fputs("\"messages\":[]", out);
    fputs(rest, out);
    fclose(out);
    free(c->context);
    c->context = text;
    c->context_size = size;
    return -1;
}

static int open_from_model(template_command *c) {
    cera_error e = {0};
    cera_model_file *f = NULL;
    if (cera_model_file_open(c->model.path, &c->model.options, &f, &e) != CERA_OK) return cera_report(&e);
    size_t size = 0;
    char *text = model_text(f, "tokenizer.chat_template", 0, &size);
    int status = -1;
    if (!text) {
        fprintf(stderr,
                "cera: %s: the file has no chat template (key tokenizer.chat_template); give one with --file or --name\n",
                c->model.path);
        status = CERA_EXIT_FAILED;
    } else if (cera_template_open(text, size, &c->template, &e) != CERA_OK) {
        status = cera_report(&e);
    } else {
        status = add_tokens(c, f);
    }
    free(text);
    cera_model_file_close(f);
    return status;
}

static int open_template(template_command *c) {
    cera_error e = {0};
    if (c->model.path) return open_from_model(c);
    if (c->name) return cera_template_open_named(c->name, &c->template, &e) == CERA_OK ? -1 : cera_report(&e);
    char *text = NULL;
    size_t size = 0;
    int status = cera_input_read(NULL, c->file, &text, &size);
    if (status < 0 && cera_template_open(text, size, &c->template, &e) != CERA_OK) status = cera_report(&e);
    free(text);
    return status;
}

/* ---- output ---- */

static void write_segments(const cera_prompt *p) {
    const char *text = cera_prompt_text(p, NULL);
    size_t start, end;
    bool user;
    fputs("[", stdout);
    for (size_t i = 0; cera_prompt_part(p, i, &start, &end, &user); i++) {
        printf("%s{\"user\": %s, \"text\": ", i ? ", " : "", user ? "true" : "false");
        cera_output_json_string(stdout, text + start, end - start);
        fputs("}", stdout);
    }
    fputs("]\n", stdout);
}

static void write_member(const char *name, const char *text, size_t size) {
    printf("\"%s\": ", name);
    cera_output_json_string(stdout, text, size);
}

static void write_answer(const cera_answer *a) {
    size_t size = 0;
    const char *text = cera_answer_content(a, &size);
    fputs("{", stdout);
    write_member("content", text, size);
    text = cera_answer_reasoning(a, &size);
    fputs(", ", stdout);
    write_member("reasoning", text, size);
    fputs(", \"tool_calls\": [", stdout);
    for (size_t i = 0; i < cera_answer_n_calls(a); i++) {
        text = cera_answer_call_name(a, i, &size);
        fputs(i ? ", {" : "{", stdout);
        write_member("name", text, size);
        text = cera_answer_call_arguments(a, i, &size);
        printf(", \"arguments\": %.*s}", (int)size, text);
    }
    printf("], \"complete\": %s}\n", cera_answer_complete(a) ? "true" : "false");
}

static int feed(const template_command *c, cera_answer *a, const char *text, size_t size) {
    cera_error e = {0};
    const size_t step = c->piece > 0 ? (size_t)c->piece : size;
    for (size_t at = 0; at < size; at += step)
        if (cera_answer_feed(a, text + at, size - at < step ? size - at : step, &e) != CERA_OK) return cera_report(&e);
    return cera_answer_finish(a, &e) == CERA_OK ? -1 : cera_report(&e);
}

static int parse_output(const template_command *c, const cera_prompt *p) {
    cera_error e = {0};
    cera_answer *a = NULL;
    char *text = NULL;
    size_t size = 0;
    int status = cera_input_read(NULL, "-", &text, &size);
    if (status < 0 && cera_answer_create(c->template, c->context, p, NULL, &a, &e) != CERA_OK) status = cera_report(&e);
    if (status < 0) status = feed(c, a, text, size);
    if (status < 0) {
        write_answer(a);
        status = CERA_EXIT_OK;
    }
    cera_answer_destroy(a);
    free(text);
    return status;
}

static int render(const template_command *c) {
    cera_error e = {0};
    cera_prompt *p = NULL;
    size_t size = 0;
    for (int32_t i = 0; i < (c->repeat ? c->repeat : 1); i++) {
        cera_prompt_close(p);
        p = NULL;
        if (cera_template_render(c->template, c->context, c->context_size, c->now, &p, &e) != CERA_OK) return cera_report(&e);
    }
    int status = CERA_EXIT_OK;
    const char *text = cera_prompt_text(p, &size);
    if (c->parse)
        status = parse_output(c, p);
    else if (c->segments)
        write_segments(p);
    else
        fwrite(text, 1, size, stdout);
    cera_prompt_close(p);
    return status;
}

static int list_names(void) {
    for (const char *const *n = cera_template_names(); *n; n++) puts(*n);
    return CERA_EXIT_OK;
}

int cera_cmd_template(int argc, char **argv) {
    template_command c = {.file = NULL};
    int status = parse_args(&c, argc, argv);
    if (status >= 0) return status;
    if (c.list) return list_names();
    status = cera_input_read(NULL, c.context_file, &c.context, &c.context_size);
    if (status < 0) status = open_template(&c);
    if (status < 0) status = render(&c);
    cera_template_close(c.template);
    free(c.context);
    return status;
}
