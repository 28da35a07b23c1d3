/* structure_args.c: see structure_args.h. */
#include "common/structure_args.h"

#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/model_args.h"

cera_arg_table cera_structure_args_table(cera_structure_args *s) {
    const cera_arg rows[] = {
        {"--grammar", "FILE", "the answer follows this GBNF grammar", CERA_ARG_TEXT, (void *)&s->grammar, 0, 0, NULL},
        {"--schema", "FILE", "the answer is JSON that this JSON Schema accepts", CERA_ARG_TEXT, (void *)&s->schema, 0, 0, NULL},
        {"--regex", "R", "the answer matches this regular expression (anywhere, unless ^ and $ say so)", CERA_ARG_TEXT,
         (void *)&s->regex, 0, 0, NULL},
        {"--json", NULL, "the answer is a JSON object", CERA_ARG_BOOL, &s->json, 0, 0, NULL},
        {"--any-order", NULL, "with --schema: members in any order", CERA_ARG_BOOL, &s->any_order, 0, 0, NULL},
    };
    memset(s->rows, 0, sizeof s->rows);
    memcpy(s->rows, rows, sizeof rows);
    return (cera_arg_table){s->rows, "form of the answer"};
}

static int compile(cera_structure_args *s, const cera_tokenizer *t, cera_grammar_kind kind, const char *text, size_t size) {
    cera_error e = {0};
    const cera_grammar_options o = {.size = sizeof o, .any_order = s->any_order, .tokenizer = t};
    if (cera_grammar_compile(kind, text, size, &o, &s->compiled, &e) != CERA_OK ||
        cera_grammar_tokens_create(t, &s->tokens, &e) != CERA_OK ||
        cera_grammar_state_create(s->compiled, NULL, &s->state, &e) != CERA_OK)
        return cera_report(&e);
    return -1;
}

int cera_structure_args_open(cera_structure_args *s, const cera_engine *engine) {
    static const char object[] = "{\"type\":\"object\"}";
    const cera_tokenizer *t = cera_engine_tokenizer(engine);
    if ((s->grammar != NULL) + (s->schema != NULL) + (s->regex != NULL) + s->json > 1)
        return cera_args_usage_error("--grammar, --schema, --regex and --json: give one of them");
    if (s->json) return compile(s, t, CERA_GRAMMAR_SCHEMA, object, sizeof object - 1);
    if (s->regex) return compile(s, t, CERA_GRAMMAR_REGEX, s->regex, strlen(s->regex));
    if (!s->grammar && !s->schema) return -1;
    char *text = NULL;
    size_t size = 0;
    int status = cera_input_read(NULL, s->grammar ? s->grammar : s->schema, &text, &size);
    if (status < 0) status = compile(s, t, s->grammar ? CERA_GRAMMAR_GBNF : CERA_GRAMMAR_SCHEMA, text, size);
    free(text);
    return status;
}

void cera_structure_args_close(cera_structure_args *s) {
    cera_grammar_state_destroy(s->state);
    cera_grammar_tokens_destroy(s->tokens);
    cera_grammar_close(s->compiled);
}
