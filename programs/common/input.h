/* input.h: text from a flag, a file or stdin, whole, with a limit. */
#ifndef CERA_PROGRAMS_INPUT_H
#define CERA_PROGRAMS_INPUT_H

#include <stddef.h>

enum { CERA_INPUT_MAX_MIB = 1024 };

/* Exactly one source: text if not NULL, else the file at path ("-": stdin), else stdin. Returns -1 and heap memory (free) with
 * a final NUL that size does not count, or an exit status after a message. */
int cera_input_read(const char *text, const char *path, char **out, size_t *size);

/* Parses ids separated by commas or white space; heap memory (free). Returns -1, or an exit status after a message. what: the
 * flag's name, for the message. */
int cera_input_ids(const char *what, const char *text, size_t size, int **ids, size_t *n);

#endif
