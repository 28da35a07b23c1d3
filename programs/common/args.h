/* args.h: command-line flags from tables. A command states its flags once: name, kind, where the value goes, what it means;
 * parsing, checking, --help and "did you mean" come from the table. Messages go to stderr, help to stdout. */
#ifndef CERA_PROGRAMS_ARGS_H
#define CERA_PROGRAMS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CERA_EXIT_OK = 0, CERA_EXIT_FAILED = 1, CERA_EXIT_USAGE = 2, CERA_EXIT_INTERRUPTED = 130 };

typedef enum cera_arg_kind {
    CERA_ARG_BOOL, /* bool: present or not */
    CERA_ARG_TEXT, /* const char * */
    CERA_ARG_LIST, /* cera_arg_list: may be given several times */
    CERA_ARG_I32,  /* int32_t in [min, max] */
    CERA_ARG_I64,
    CERA_ARG_U64, /* any 64-bit number */
    CERA_ARG_F32, /* float in [min, max] */
    CERA_ARG_KV   /* cera_kv_dtype */
} cera_arg_kind;

typedef struct cera_arg_list {
    const char *items[256];
    size_t n;
} cera_arg_list;

typedef struct cera_arg {
    const char *names; /* "-t --threads": any of them, separated by blanks; the last is the one that messages use */
    const char *value; /* "N" in the help; NULL for CERA_ARG_BOOL */
    const char *help;
    cera_arg_kind kind;
    void *out;
    double min, max;
    bool *given; /* set when the flag is there; may be NULL */
} cera_arg;

typedef struct cera_arg_table {
    const cera_arg *rows; /* up to a row without names */
    const char *title;    /* in the help */
} cera_arg_table;

typedef struct cera_command_line {
    const char *command; /* "run" */
    const char *usage;   /* "cera run -m MODEL -p TEXT [flags]" */
    const char *summary;
    const cera_arg_table *tables; /* up to one without rows */
    const char *positional;       /* name of what may stand without a flag; NULL: nothing may */
    const char **positional_out;
} cera_command_line;

/* argv[0] is the command. Returns -1 to go on, else the exit status (help shown: 0, an error: 2). */
int cera_args_parse(const cera_command_line *c, int argc, char **argv);

/* Prints "cera: ..." and returns CERA_EXIT_USAGE. */
int cera_args_usage_error(const char *format, ...);

/* The name in a NULL-terminated list that is nearest to text, or NULL when none is near. */
const char *cera_args_nearest(const char *text, const char *const *names);

#endif
