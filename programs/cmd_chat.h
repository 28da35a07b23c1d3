/* cmd_chat.h: what the files of `cera chat` share: lines from a person, and the turns of a conversation. */
#ifndef CERA_PROGRAMS_CMD_CHAT_H
#define CERA_PROGRAMS_CMD_CHAT_H

#include <stdbool.h>
#include <stddef.h>

/* cmd_chat_line.c: a line from the terminal with editing and history (libedit, where the build has it) or from stdin, without
 * its line feed. NULL at the end. Heap memory (free). */
char *cera_chat_read_line(const char *prompt);
void cera_chat_close_lines(void);

/* cmd_chat_turns.c */
typedef struct cera_chat_turn {
    char *role, *text;
    size_t size; /* of text */
} cera_chat_turn;

typedef struct cera_chat_turns {
    cera_chat_turn *items;
    size_t n, capacity;
} cera_chat_turns;

bool cera_chat_turns_add(cera_chat_turns *t, const char *role, const char *text, size_t size); /* false: out of memory */
void cera_chat_turns_drop(cera_chat_turns *t, size_t n);                                       /* keeps the first n */
void cera_chat_turns_deinit(cera_chat_turns *t);
/* The turns as a JSON array of messages; heap memory (free), NULL when memory ran out. */
char *cera_chat_turns_json(const cera_chat_turns *t);
/* Reads such an array; false, and t as it was, when the text is none. */
bool cera_chat_turns_parse(cera_chat_turns *t, const char *text);

#endif
