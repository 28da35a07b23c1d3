/* chat_args.h: the flags of a chat template, and messages rendered through it. What is in a chat is the command's. */
#ifndef CERA_PROGRAMS_CHAT_ARGS_H
#define CERA_PROGRAMS_CHAT_ARGS_H

#include "cera.h"
#include "common/args.h"

enum { CERA_CHAT_ARGS_ROWS = 8 };

typedef struct cera_chat_args {
    const char *source; /* --chat-template: a built-in name or a file */
    const char *system, *effort;
    bool think, no_think;
    cera_arg_list variables; /* "k=v" */
    cera_arg rows[CERA_CHAT_ARGS_ROWS];
} cera_chat_args;

cera_arg_table cera_chat_args_table(cera_chat_args *c);
/* Opens the template that the flags name, else the model's own; *out NULL when there is neither. Returns -1, or an exit status
 * after a message. */
int cera_chat_args_open(const cera_chat_args *c, const cera_engine *engine, cera_template **out);
/* Renders messages (a JSON array) with the model's BOS and EOS and the flags' variables. -1, or an exit status. */
int cera_chat_args_render(const cera_chat_args *c, const cera_engine *engine, const cera_template *t, const char *messages,
                          cera_prompt **out);

#endif
