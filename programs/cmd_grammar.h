/* cmd_grammar.h: what the two files of `cera grammar` share. */
#ifndef CERA_PROGRAMS_CMD_GRAMMAR_H
#define CERA_PROGRAMS_CMD_GRAMMAR_H

#include "cera.h"

typedef struct {
    const char *rows; /* path of the JSON lines */
    bool any_order, bench;
    cera_tokenizer *tokenizer; /* bench */
} cera_grammar_rows;

/* Reads every line, a schema with its tests: prints verdicts, or with bench one JSON object of times. Returns an exit status.
 */
int cera_grammar_run_rows(const cera_grammar_rows *r);

#endif
