/* cmd_grammar.c: `cera grammar`: whether a text fits a GBNF grammar, a JSON Schema or a regular expression; whether a schema
 * can be enforced; what enforcing costs. Rows of schemas with tests are cmd_grammar_rows.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_grammar.h"
#include "commands.h"
#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"

enum { EXIT_ACCEPTED = 0, EXIT_REJECTED = 1, EXIT_DOES_NOT_COMPILE = 3 };

typedef struct {
    cera_model_args model;
    const char *gbnf, *schema, *regex, *check, *rows, *folder;
    bool any_order, bench;
    cera_tokenizer *tokenizer;
} grammar_command;

static int check_flags(const grammar_command *c) {
    const int languages = (c->gbnf != NULL) + (c->schema != NULL) + (c->regex != NULL);
    if (c->model.path && c->folder) return cera_args_usage_error("-m and --tokenizer: give one of them");
    if (c->rows && (languages || c->check)) return cera_args_usage_error("--rows brings its own schemas and texts");
    if (c->rows && c->bench && !c->model.path && !c->folder)
        return cera_args_usage_error("--bench needs a vocabulary: -m or --tokenizer");
    if (c->bench && !c->rows) return cera_args_usage_error("--bench needs --rows");
    if (!c->rows && languages != 1) return cera_args_usage_error("give one of --gbnf, --schema, --regex and --rows");
    return -1;
}

static int parse(grammar_command *c, int argc, char **argv) {
    const cera_arg rows[] = {
        {"--gbnf", "FILE", "a grammar in llama.cpp's GBNF", CERA_ARG_TEXT, (void *)&c->gbnf, 0, 0, NULL},
        {"--schema", "FILE", "a JSON Schema", CERA_ARG_TEXT, (void *)&c->schema, 0, 0, NULL},
        {"--regex", "PATTERN", "a regular expression, which may match anywhere in the text", CERA_ARG_TEXT, (void *)&c->regex,
         0, 0, NULL},
        {"--check", "FILE", "the text (-: stdin): exit 0 accepted, 1 rejected, 3 the grammar does not compile", CERA_ARG_TEXT,
         (void *)&c->check, 0, 0, NULL},
        {"--any-order", NULL, "members of objects in any order (always so with --rows, unless --bench)", CERA_ARG_BOOL,
         &c->any_order, 0, 0, NULL},
        {"--rows", "FILE",
         "JSON lines {name, schema, tests: [{valid, data}]}: prints name, index, accepted|rejected|refused, reason",
         CERA_ARG_TEXT, (void *)&c->rows, 0, 0, NULL},
        {"--bench", NULL, "times of compilation and masks over --rows, as JSON", CERA_ARG_BOOL, &c->bench, 0, 0, NULL},
        {"--tokenizer", "FOLDER", "a tokenizer.json, or the folder that holds it, in place of a model", CERA_ARG_TEXT,
         (void *)&c->folder, 0, 0, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "grammar"}, cera_model_args_table(&c->model), {0}};
    const cera_command_line line = {
        .command = "grammar",
        .usage = "cera grammar (--gbnf F | --schema F | --regex R) [--check FILE], or --rows FILE [--bench --tokenizer FOLDER]",
        .summary = "Checks texts against a grammar, and measures what enforcing it costs.",
        .tables = tables,
    };
    const int status = cera_args_parse(&line, argc, argv);
    return status < 0 ? check_flags(c) : status;
}

/* 0, 1 or 3, with the reason on stderr. */
static int check(const grammar_command *c, const char *source, size_t size) {
    const cera_grammar_kind kind = c->gbnf ? CERA_GRAMMAR_GBNF : c->schema ? CERA_GRAMMAR_SCHEMA : CERA_GRAMMAR_REGEX;
    const cera_grammar_options options = {
        .size = sizeof options, .any_order = c->any_order, .any_space = true, .tokenizer = c->tokenizer};
    cera_error e = {0};
    cera_grammar *grammar;
    if (cera_grammar_compile(kind, source, size, &options, &grammar, &e) != CERA_OK)
        return cera_report(&e), EXIT_DOES_NOT_COMPILE;
    if (!c->check) return cera_grammar_close(grammar), EXIT_ACCEPTED;
    char *text = NULL;
    cera_grammar_state *state = NULL;
    size_t n = 0, accepted = 0;
    int status = cera_input_read(NULL, c->check, &text, &n);
    if (status < 0) {
        status = EXIT_REJECTED;
        if (cera_grammar_state_create(grammar, NULL, &state, &e) != CERA_OK ||
            cera_grammar_accept_text(state, text, n, &accepted, &e) != CERA_OK)
            cera_report(&e);
        else if (!cera_grammar_is_complete(state))
            fprintf(stderr, "cera: grammar: the text ends too early\n");
        else
            status = EXIT_ACCEPTED;
        if (e.code == CERA_ERR_LIMIT || e.code == CERA_ERR_MEMORY) status = EXIT_DOES_NOT_COMPILE; /* no verdict */
    }
    free(text);
    cera_grammar_state_destroy(state);
    cera_grammar_close(grammar);
    return status;
}

static int run(const grammar_command *c) {
    if (c->rows) return cera_grammar_run_rows(&(cera_grammar_rows){c->rows, c->any_order || !c->bench, c->bench, c->tokenizer});
    char *source = NULL;
    size_t size = 0;
    const char *path = c->gbnf ? c->gbnf : c->schema;
    int status = path ? cera_input_read(NULL, path, &source, &size) : -1;
    if (status >= 0) return status;
    status = check(c, path ? source : c->regex, path ? size : strlen(c->regex));
    free(source);
    return status;
}

int cera_cmd_grammar(int argc, char **argv) {
    static grammar_command c;
    int status = parse(&c, argc, argv);
    if (status >= 0) return status;
    if (c.folder) c.model.path = c.folder;
    if (c.model.path) status = cera_model_args_open_tokenizer(&c.model, &c.tokenizer);
    if (status >= 0) return status;
    status = run(&c);
    cera_tokenizer_close(c.tokenizer);
    return status;
}
