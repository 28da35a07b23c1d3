/* jinja.h: Jinja templates as Hugging Face chat templates use them: Python's jinja2 in its immutable sandbox with trim_blocks,
 * lstrip_blocks, loop controls and the tag {% generation %}, byte for byte. Compile once, render often: a compiled template is
 * immutable and may be rendered by any number of threads. A render sees its JSON context and nothing else. Every render has
 * budgets (steps, bytes, nesting, time), so that a hostile template ends in an error.
 *
 * The result is text in segments: bytes that the template wrote, and bytes that came from strings of the context ("user"), kept
 * apart through concatenation, slicing, methods and filters, so that a tokenizer never reads user text as control tokens. */
#ifndef CERA_TEXT_JINJA_H
#define CERA_TEXT_JINJA_H

#include <time.h>
#include "base/json.h"
#include "base/status.h"

enum {
    CERA_JINJA_MAX_TEXT = 4 << 20,     /* bytes of a template */
    CERA_JINJA_MAX_EXPR_DEPTH = 200,   /* nested parentheses, brackets, unary operators */
    CERA_JINJA_MAX_CHAIN = 400,        /* height of one expression's tree: a + b + c + ... */
    CERA_JINJA_MAX_BLOCK_DEPTH = 100,  /* nested statements */
    CERA_JINJA_MAX_RENDER_DEPTH = 1000 /* nested evaluations in a render: bounds the C stack */
};

typedef struct cera_jinja cera_jinja;

/* n bytes of UTF-8. Errors name the line. */
cera_status cera_jinja_compile(const char *text, size_t n, cera_jinja **out, cera_error *e);
void cera_jinja_destroy(cera_jinja *t); /* NULL is fine */

/* True when the template's constant strings or text hold these bytes. */
bool cera_jinja_mentions(const cera_jinja *t, const char *text);
/* True when an expression of the template reads this variable or attribute. */
bool cera_jinja_uses_name(const cera_jinja *t, const char *name);

/* Says whether a string of the context is the caller's own and may form control tokens (roles, BOS text). top is the name of
 * the context's member the string is below, key the nearest member name above it ("" in the top level). NULL: none is. */
typedef bool (*cera_jinja_trust)(void *ctx, cera_text_view top, cera_text_view key, cera_text_view text);

typedef struct cera_jinja_options {
    int64_t max_steps;    /* 0: 20,000,000 */
    size_t max_bytes;     /* output and every single string; 0: 64 MiB */
    size_t max_memory;    /* values of one render; 0: 128 MiB */
    int max_ms;           /* 0: 400 ms */
    const struct tm *now; /* what strftime_now sees; NULL: local time */
    cera_jinja_trust trust;
    void *trust_ctx;
} cera_jinja_options;

typedef struct cera_jinja_segment {
    size_t start, end; /* bytes of the text */
    bool user;
} cera_jinja_segment;

/* Zero it to start; cera_jinja_text_deinit releases. */
typedef struct cera_jinja_text {
    char *text; /* NUL-terminated */
    size_t size;
    cera_jinja_segment *segments; /* [n_segments], adjacent, covering the text; neighbours differ in user */
    size_t n_segments;
} cera_jinja_text;
void cera_jinja_text_deinit(cera_jinja_text *t);

/* context: an object whose members are the template's variables; options may be NULL. Errors name the line and the cause: of
 * the template (CERA_ERR_FORMAT) or a budget (CERA_ERR_LIMIT). */
cera_status cera_jinja_render(const cera_jinja *t, const cera_json *context, const cera_jinja_options *options,
                              cera_jinja_text *out, cera_error *e);

#endif
