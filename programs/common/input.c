/* input.c: see input.h. */
#include "common/input.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"

static int failed(const char *name, const char *why) {
    fprintf(stderr, "cera: %s: %s\n", name, why);
    return CERA_EXIT_FAILED;
}

static int read_stream(FILE *f, const char *name, char **out, size_t *size) {
    size_t capacity = 1 << 16, n = 0;
    char *data = malloc(capacity + 1);
    while (data) {
        n += fread(data + n, 1, capacity - n, f);
        if (n < capacity) break;
        char *more = capacity < (size_t)CERA_INPUT_MAX_MIB << 20 ? realloc(data, 2 * capacity + 1) : NULL;
        if (!more) {
            free(data);
            return failed(name, "larger than 1 GiB, or out of memory");
        }
        data = more;
        capacity *= 2;
    }
    if (!data) return failed(name, "out of memory");
    if (ferror(f)) {
        free(data);
        return failed(name, strerror(errno));
    }
    data[n] = 0;
    *out = data;
    *size = n;
    return -1;
}

int cera_input_read(const char *text, const char *path, char **out, size_t *size) {
    if (text) {
        *size = strlen(text);
        *out = malloc(*size + 1);
        if (!*out) return failed("prompt", "out of memory");
        memcpy(*out, text, *size + 1);
        return -1;
    }
    if (!path || strcmp(path, "-") == 0) return read_stream(stdin, "stdin", out, size);
    FILE *f = fopen(path, "rb");
    if (!f) return failed(path, strerror(errno));
    const int status = read_stream(f, path, out, size);
    fclose(f);
    return status;
}

static int bad_id(const char *what, const char *at) {
    return cera_args_usage_error("%s: \"%.*s\" is no token id; give whole numbers, separated by commas or blanks", what,
                                 (int)strcspn(at, ", \t\r\n"), at);
}

int cera_input_ids(const char *what, const char *text, size_t size, int **ids, size_t *n) {
    int *list = malloc((size / 2 + 1) * sizeof *list); /* a number and a separator each */
    if (!list) return failed(what, "out of memory");
    size_t count = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const size_t blanks = strspn(at, ", \t\r\n");
        at += blanks;
        if (at >= end) break;
        char *after;
        errno = 0;
        const long v = strtol(at, &after, 10);
        if (after == at || errno != 0 || v < 0 || v > INT_MAX || (after < end && !strchr(", \t\r\n", *after))) {
            free(list);
            return bad_id(what, at);
        }
        list[count++] = (int)v;
        at = after;
    }
    *ids = list;
    *n = count;
    return -1;
}
