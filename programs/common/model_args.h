/* model_args.h: the flags that every command with a model has, and opening what they name. */
#ifndef CERA_PROGRAMS_MODEL_ARGS_H
#define CERA_PROGRAMS_MODEL_ARGS_H

#include "cera.h"
#include "common/args.h"

enum { CERA_MODEL_ARGS_ROWS = 13 };

typedef struct cera_model_args {
    const char *path; /* NULL: the model in the program, if there is one */
    cera_arg_list overrides;
    cera_engine_options options; /* as the flags say */
    cera_arg rows[CERA_MODEL_ARGS_ROWS];
} cera_model_args;

/* Fills the table of flags; m must stay where it is. */
cera_arg_table cera_model_args_table(cera_model_args *m);

/* Opens the engine; prints the error and returns an exit status, or -1 when it is open. Progress goes to stderr. */
int cera_model_args_open(cera_model_args *m, cera_engine **out);
/* The tokenizer alone. */
int cera_model_args_open_tokenizer(cera_model_args *m, cera_tokenizer **out);

/* Prints "cera: message" and returns CERA_EXIT_FAILED, or CERA_EXIT_INTERRUPTED for what Ctrl-C has cancelled. */
int cera_report(const cera_error *e);

#endif
