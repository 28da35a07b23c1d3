/* args.c: see args.h. */
#include "common/args.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cera.h"

enum { MAX_NAME = 48, MAX_FLAGS = 128 };

int cera_args_usage_error(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("cera: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return CERA_EXIT_USAGE;
}

/* ---- names ---- */

/* Calls of next_name walk the blank-separated names of a row. */
static bool next_name(const char **at, char name[MAX_NAME]) {
    while (**at == ' ') ++*at;
    size_t n = strcspn(*at, " ");
    if (n == 0) return false;
    if (n >= MAX_NAME) n = MAX_NAME - 1;
    memcpy(name, *at, n);
    name[n] = 0;
    *at += n;
    return true;
}

static bool has_name(const cera_arg *a, const char *text, size_t n) {
    char name[MAX_NAME];
    for (const char *at = a->names; next_name(&at, name);)
        if (strlen(name) == n && memcmp(name, text, n) == 0) return true;
    return false;
}

static const char *last_name(const cera_arg *a) {
    const char *blank = strrchr(a->names, ' ');
    return blank ? blank + 1 : a->names;
}

static const cera_arg *find(const cera_command_line *c, const char *text, size_t n) {
    for (const cera_arg_table *t = c->tables; t->rows; t++)
        for (const cera_arg *a = t->rows; a->names; a++)
            if (has_name(a, text, n)) return a;
    return NULL;
}

/* ---- nearest name ---- */

static int least(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment: insertions, deletions, substitutions, and swaps of neighbours cost one each. */
static int distance(const char *a, const char *b) {
    int rows[3][MAX_NAME + 1];
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n >= MAX_NAME || m >= MAX_NAME) return MAX_NAME;
    for (int j = 0; j <= m; j++) rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = least(least(before[j] + 1, now[j - 1] + 1), before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *cera_args_nearest(const char *text, const char *const *names) {
    const char *best = NULL;
    int best_distance = (int)strlen(text) / 3 + 1; /* farther than that is another word */
    for (; *names; names++) {
        const int d = distance(text, *names);
        if (d <= best_distance && (!best || d < best_distance)) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

static int no_such_flag(const cera_command_line *c, const char *text, size_t n) {
    static char store[MAX_FLAGS][MAX_NAME];
    const char *names[MAX_FLAGS + 1];
    int n_names = 0;
    for (const cera_arg_table *t = c->tables; t->rows; t++)
        for (const cera_arg *a = t->rows; a->names; a++)
            for (const char *at = a->names; n_names < MAX_FLAGS && next_name(&at, store[n_names]);) {
                names[n_names] = store[n_names];
                n_names++;
            }
    names[n_names] = NULL;
    char flag[MAX_NAME];
    snprintf(flag, sizeof flag, "%.*s", (int)n, text);
    const char *nearest = cera_args_nearest(flag, names);
    if (nearest) return cera_args_usage_error("%.*s: no such flag; did you mean %s?", (int)n, text, nearest);
    return cera_args_usage_error("%.*s: no such flag; cera %s --help lists them", (int)n, text, c->command);
}

/* ---- values ---- */

static bool parse_whole(const char *text, long long *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == 0;
}

static int set_whole(const cera_arg *a, const char *text) {
    long long v;
    if (!parse_whole(text, &v) || (double)v < a->min || (double)v > a->max)
        return cera_args_usage_error("%s: \"%s\" is not a whole number between %.0f and %.0f", last_name(a), text, a->min,
                                     a->max);
    if (a->kind == CERA_ARG_I32)
        *(int32_t *)a->out = (int32_t)v;
    else
        *(int64_t *)a->out = (int64_t)v;
    return -1;
}

static int set_u64(const cera_arg *a, const char *text) {
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != 0 || text[0] == '-')
        return cera_args_usage_error("%s: \"%s\" is not a whole number of at most 64 bits", last_name(a), text);
    *(uint64_t *)a->out = (uint64_t)v;
    return -1;
}

static int set_f32(const cera_arg *a, const char *text) {
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(v) || v < a->min || v > a->max)
        return cera_args_usage_error("%s: \"%s\" is not a number between %g and %g", last_name(a), text, a->min, a->max);
    *(float *)a->out = (float)v;
    return -1;
}

static int set_list(const cera_arg *a, const char *text) {
    cera_arg_list *list = a->out;
    if (list->n == sizeof list->items / sizeof *list->items)
        return cera_args_usage_error("%s: given more than %zu times", last_name(a), list->n);
    list->items[list->n++] = text;
    return -1;
}

static int set_value(const cera_arg *a, const char *text) {
    switch (a->kind) {
    case CERA_ARG_TEXT: *(const char **)a->out = text; return -1;
    case CERA_ARG_LIST: return set_list(a, text);
    case CERA_ARG_U64: return set_u64(a, text);
    case CERA_ARG_F32: return set_f32(a, text);
    case CERA_ARG_KV:
        if (cera_kv_dtype_parse(text, a->out)) return -1;
        return cera_args_usage_error("%s: \"%s\" is no cache type; auto, f32, f16 and bf16 are", last_name(a), text);
    default: return set_whole(a, text);
    }
}

/* ---- help ---- */

static void print_help(const cera_command_line *c) {
    printf("usage: %s\n\n%s\n", c->usage, c->summary);
    for (const cera_arg_table *t = c->tables; t->rows; t++) {
        printf("\n%s\n", t->title);
        for (const cera_arg *a = t->rows; a->names; a++) {
            char left[96];
            const int n = snprintf(left, sizeof left, "  %s%s%s", a->names, a->value ? " " : "", a->value ? a->value : "");
            if (n > 28) /* too wide for the column: the text goes below */
                printf("%s\n%-30s%s\n", left, "", a->help);
            else
                printf("%-30s%s\n", left, a->help);
        }
    }
    printf("\n  --help                      this text\n");
}

/* ---- parsing ---- */

static int parse_flag(const cera_command_line *c, int argc, char **argv, int *i) {
    const char *text = argv[*i];
    const bool is_long = text[0] == '-' && text[1] == '-';
    const size_t n = is_long ? strcspn(text, "=") : strlen(text);
    const char *value = text[n] == '=' ? text + n + 1 : NULL;
    const cera_arg *a = find(c, text, n);
    if (!a) return no_such_flag(c, text, n);
    if (a->given) *a->given = true;
    if (a->kind == CERA_ARG_BOOL) {
        if (value) return cera_args_usage_error("%s takes no value", last_name(a));
        *(bool *)a->out = true;
        return -1;
    }
    if (!value && *i + 1 >= argc) return cera_args_usage_error("%.*s needs a value (%s)", (int)n, text, a->value);
    return set_value(a, value ? value : argv[++*i]);
}

static int parse_positional(const cera_command_line *c, const char *text) {
    if (!c->positional)
        return cera_args_usage_error("\"%s\": cera %s takes flags only; see cera %s --help", text, c->command, c->command);
    if (*c->positional_out) return cera_args_usage_error("\"%s\": more than one %s given", text, c->positional);
    *c->positional_out = text;
    return -1;
}

int cera_args_parse(const cera_command_line *c, int argc, char **argv) {
    bool flags = true;
    for (int i = 1; i < argc; i++) {
        int status;
        if (flags && strcmp(argv[i], "--") == 0) {
            flags = false;
            continue;
        }
        if (flags && (strcmp(argv[i], "--help") == 0 || (strcmp(argv[i], "-h") == 0 && !find(c, "-h", 2)))) {
            print_help(c);
            return CERA_EXIT_OK;
        }
        if (flags && argv[i][0] == '-' && argv[i][1] != 0)
            status = parse_flag(c, argc, argv, &i);
        else
            status = parse_positional(c, argv[i]);
        if (status >= 0) return status;
    }
    return -1;
}
