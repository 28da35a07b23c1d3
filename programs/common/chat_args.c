/* chat_args.c: see chat_args.h. */
#include "common/chat_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"

cera_arg_table cera_chat_args_table(cera_chat_args *c) {
    const cera_arg rows[] = {
        {"--system", "TEXT", "the system message", CERA_ARG_TEXT, (void *)&c->system, 0, 0, NULL},
        {"--chat-template", "NAME|FILE", "a built-in template (cera template --list) or a file, in place of the model's",
         CERA_ARG_TEXT, (void *)&c->source, 0, 0, NULL},
        {"--template-arg", "KEY=VALUE", "a variable for the template: JSON, or else a text; may be repeated", CERA_ARG_LIST,
         &c->variables, 0, 0, NULL},
        {"--think", NULL, "enable_thinking on, for templates that read it", CERA_ARG_BOOL, &c->think, 0, 0, NULL},
        {"--no-think", NULL, "enable_thinking off", CERA_ARG_BOOL, &c->no_think, 0, 0, NULL},
        {"--reasoning-effort", "WORD", "low, medium or high, for templates that read it", CERA_ARG_TEXT, (void *)&c->effort, 0,
         0, NULL},
    };
    memset(c->rows, 0, sizeof c->rows);
    memcpy(c->rows, rows, sizeof rows);
    return (cera_arg_table){c->rows, "chat template"};
}

/* ---- which template ---- */

static int open_file(const char *path, cera_template **out) {
    cera_error e = {0};
    char *text = NULL;
    size_t size = 0;
    int status = cera_input_read(NULL, path, &text, &size);
    if (status < 0 && cera_template_open(text, size, out, &e) != CERA_OK) status = cera_report(&e);
    free(text);
    return status;
}

int cera_chat_args_open(const cera_chat_args *c, const cera_engine *engine, cera_template **out) {
    cera_error e = {0};
    *out = NULL;
    if (c->source) {
        for (const char *const *name = cera_template_names(); *name; name++)
            if (strcmp(*name, c->source) == 0)
                return cera_template_open_named(c->source, out, &e) == CERA_OK ? -1 : cera_report(&e);
        return open_file(c->source, out);
    }
    size_t size = 0;
    const char *text = cera_engine_chat_template(engine, &size);
    if (!text) return -1;
    return cera_template_open(text, size, out, &e) == CERA_OK ? -1 : cera_report(&e);
}

/* ---- rendering ---- */

static bool is_json(const char *value) {
    char *end;
    if (value[0] != 0 && strchr("{[\"", value[0])) return true;
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0 || strcmp(value, "null") == 0) return true;
    if (value[0] == 0 || strspn(value, "-0123456789.eE+") != strlen(value)) return false;
    strtod(value, &end);
    return *end == 0;
}

/* The variables as a JSON object; heap memory (free), NULL when memory ran out. */
static char *variables_json(const cera_chat_args *c) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputc('{', out);
    for (size_t i = 0; i < c->variables.n; i++) {
        const char *item = c->variables.items[i], *value = strchr(item, '=');
        const size_t n = value ? (size_t)(value - item) : strlen(item);
        value = value ? value + 1 : "true";
        if (i > 0) fputc(',', out);
        cera_output_json_string(out, item, n);
        fputc(':', out);
        if (is_json(value))
            fputs(value, out);
        else
            cera_output_json_string(out, value, strlen(value));
    }
    fputc('}', out);
    return fclose(out) == 0 ? text : NULL;
}

/* The text of a control token as a C string; heap memory (free), NULL for none. */
static char *token_text(const cera_tokenizer *t, int32_t id) {
    size_t n = 0;
    const char *piece = id >= 0 ? cera_tokenizer_piece(t, id, true, &n) : NULL;
    char *text = piece ? malloc(n + 1) : NULL;
    if (!text) return NULL;
    memcpy(text, piece, n);
    text[n] = 0;
    return text;
}

int cera_chat_args_render(const cera_chat_args *c, const cera_engine *engine, const cera_template *t, const char *messages,
                          cera_prompt **out) {
    const cera_tokenizer *tokenizer = cera_engine_tokenizer(engine);
    char *bos = token_text(tokenizer, cera_tokenizer_bos(tokenizer)),
         *eos = token_text(tokenizer, cera_tokenizer_eos(tokenizer));
    char *variables = variables_json(c);
    const cera_chat chat = {
        .size = sizeof chat,
        .messages = messages,
        .variables = variables,
        .thinking = c->no_think ? -1
                    : c->think  ? 1
                                : 0,
        .bos_token = bos,
        .eos_token = eos,
        .reasoning_effort = c->effort,
    };
    cera_error e = {0};
    const cera_status status = cera_template_chat(t, &chat, out, &e);
    free(variables);
    free(bos);
    free(eos);
    return status == CERA_OK ? -1 : cera_report(&e);
}
