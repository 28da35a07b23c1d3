/* json.h: a strict JSON reader (RFC 8259) into a tree in one arena, and a writer. For tokenizer.json, schemas, safetensors and
 * requests: bytes from outside, so depth, size and node counts have limits. Numbers keep their text. */
#ifndef CERA_BASE_JSON_H
#define CERA_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/view.h"

typedef enum cera_json_kind {
    CERA_JSON_NULL,
    CERA_JSON_FALSE,
    CERA_JSON_TRUE,
    CERA_JSON_NUMBER,
    CERA_JSON_STRING,
    CERA_JSON_ARRAY,
    CERA_JSON_OBJECT
} cera_json_kind;

typedef struct cera_json {
    cera_json_kind kind;
    uint32_t n;                    /* elements or members */
    cera_text_view text;           /* string: unescaped UTF-8 (may hold NULs); number: as written */
    const struct cera_json *items; /* [n] array elements or member values */
    const cera_text_view *keys;    /* [n] member names, in the order of the file */
    uint32_t offset;               /* byte where the value starts, for messages */
} cera_json;

enum {
    CERA_JSON_MAX_DEPTH = 256,     /* arrays and objects inside each other */
    CERA_JSON_MAX_NODES = 1 << 22, /* values in one text; gemma's tokenizer.json has 2 million */
};

/* Parses exactly one value (white space around it). Duplicate names are kept (the last one wins in cera_json_get). Lone
 * surrogates in \u escapes become U+FFFD; invalid UTF-8 is an error. A byte order mark at the start is passed over. The tree is
 * a copy: text may go. Strings are NUL-terminated, the NUL not counted. At most 4 GiB. Memory is up to about 100 times a
 * hostile text: give the arena a limit when the text is a request's; work memory stays below four times it. Not recursive.
 * Errors name line, column and what was expected. */
cera_status cera_json_parse(const char *text, size_t n, cera_arena *arena, const cera_json **out, cera_error *e);

const cera_json *cera_json_get(const cera_json *object, const char *name); /* NULL when absent or not an object */
const cera_json *cera_json_get_view(const cera_json *object, const char *name, size_t size);
bool cera_json_is_text(const cera_json *v, const char *text);
/* Exact conversions; false when v is no number or does not fit. 1.0 and 1e2 count as integers. */
bool cera_json_i64(const cera_json *v, int64_t *out);
bool cera_json_f64(const cera_json *v, double *out);
/* Deep equality as JSON Schema means it: 1 == 1.0, order of members does not matter. */
bool cera_json_equal(const cera_json *a, const cera_json *b);

/* A growing text. Set failed on out of memory; later appends do nothing. Zero it to start; cera_buffer_deinit frees. */
typedef struct cera_buffer {
    char *data;
    size_t size, capacity;
    size_t limit; /* 0: none */
    bool failed;
} cera_buffer;
void cera_buffer_add(cera_buffer *b, const char *data, size_t n);
void cera_buffer_add_text(cera_buffer *b, const char *text);
void cera_buffer_printf(cera_buffer *b, const char *format, ...) CERA_PRINTF(2, 3);
void cera_buffer_deinit(cera_buffer *b);
/* "..." with escapes; ascii: everything above U+007E as \u escapes. Invalid UTF-8 becomes U+FFFD. */
void cera_json_write_string(cera_buffer *b, const char *text, size_t n, bool ascii);
/* The tree as compact JSON; numbers as they were written. */
void cera_json_write(cera_buffer *b, const cera_json *v);

#endif
