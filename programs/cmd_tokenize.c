/* cmd_tokenize.c: `cera tokenize`: text on stdin to ids on one line, or with --decode ids to bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"

typedef struct {
    cera_model_args model;
    const char *folder, *prompt, *file;
    bool special, bos, decode;
    cera_tokenizer *tokenizer;
} tokenize_command;

static int parse(tokenize_command *c, int argc, char **argv) {
    const cera_arg rows[] = {
        {"--tokenizer", "FOLDER", "a tokenizer.json, or the folder that holds it, in place of a model", CERA_ARG_TEXT,
         (void *)&c->folder, 0, 0, NULL},
        {"-p --prompt", "TEXT", "the text; default: stdin", CERA_ARG_TEXT, (void *)&c->prompt, 0, 0, NULL},
        {"-f --file", "FILE", "read the text from a file", CERA_ARG_TEXT, (void *)&c->file, 0, 0, NULL},
        {"--special", NULL, "control tokens in the text become their ids; with --decode they give their text", CERA_ARG_BOOL,
         &c->special, 0, 0, NULL},
        {"--bos", NULL, "add BOS (and EOS) where the vocabulary says so", CERA_ARG_BOOL, &c->bos, 0, 0, NULL},
        {"--decode", NULL, "ids to bytes", CERA_ARG_BOOL, &c->decode, 0, 0, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "tokens"}, cera_model_args_table(&c->model), {0}};
    const cera_command_line line = {
        .command = "tokenize",
        .usage = "cera tokenize (-m MODEL | --tokenizer FOLDER) [--special] [--bos] [--decode] < TEXT",
        .summary = "Writes the ids of a text on one line, or the bytes of ids.",
        .tables = tables,
    };
    const int status = cera_args_parse(&line, argc, argv);
    if (status < 0 && c->prompt && c->file) return cera_args_usage_error("-p and -f: give one of them");
    if (status < 0 && c->model.path && c->folder) return cera_args_usage_error("-m and --tokenizer: give one of them");
    return status;
}

static int encode(const tokenize_command *c, const char *text, size_t size) {
    cera_error e = {0};
    int32_t *ids;
    size_t n;
    const unsigned flags = (c->special ? CERA_ENCODE_SPECIAL : 0) | (c->bos ? CERA_ENCODE_BOS : 0);
    if (cera_tokenizer_encode(c->tokenizer, text, size, flags, &ids, &n, &e) != CERA_OK) return cera_report(&e);
    for (size_t i = 0; i < n; i++) printf(i > 0 ? " %d" : "%d", (int)ids[i]);
    putchar('\n');
    cera_release(ids);
    return CERA_EXIT_OK;
}

static int decode(const tokenize_command *c, const char *text, size_t size) {
    int *ids;
    size_t n;
    const int status = cera_input_ids("stdin", text, size, &ids, &n);
    if (status >= 0) return status;
    cera_error e = {0};
    char *bytes;
    size_t n_bytes;
    const cera_status decoded =
        cera_tokenizer_decode(c->tokenizer, ids, n, c->special ? CERA_DECODE_SPECIAL : 0, &bytes, &n_bytes, &e);
    free(ids);
    if (decoded != CERA_OK) return cera_report(&e);
    cera_output_write(bytes, n_bytes);
    cera_release(bytes);
    return CERA_EXIT_OK;
}

int cera_cmd_tokenize(int argc, char **argv) {
    static tokenize_command c;
    int status = parse(&c, argc, argv);
    if (status >= 0) return status;
    if (c.folder) c.model.path = c.folder;
    status = cera_model_args_open_tokenizer(&c.model, &c.tokenizer);
    if (status >= 0) return status;
    char *text;
    size_t size;
    status = cera_input_read(c.prompt, c.file, &text, &size);
    if (status < 0) {
        status = c.decode ? decode(&c, text, size) : encode(&c, text, size);
        free(text);
    }
    cera_tokenizer_close(c.tokenizer);
    return status;
}
