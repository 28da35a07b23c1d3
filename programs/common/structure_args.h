/* structure_args.h: the flags that force a form on the answer: --grammar, --schema, --regex, --json. */
#ifndef CERA_PROGRAMS_STRUCTURE_ARGS_H
#define CERA_PROGRAMS_STRUCTURE_ARGS_H

#include "cera.h"
#include "common/args.h"

enum { CERA_STRUCTURE_ARGS_ROWS = 6 };

typedef struct cera_structure_args {
    const char *grammar, *schema; /* files */
    const char *regex;
    bool json, any_order;
    cera_arg rows[CERA_STRUCTURE_ARGS_ROWS];
    cera_grammar *compiled;
    cera_grammar_tokens *tokens;
    cera_grammar_state *state; /* NULL: no form is asked for */
} cera_structure_args;

cera_arg_table cera_structure_args_table(cera_structure_args *s);
/* Compiles what the flags name for the engine's tokenizer. -1, or an exit status after a message. */
int cera_structure_args_open(cera_structure_args *s, const cera_engine *engine);
void cera_structure_args_close(cera_structure_args *s);

#endif
