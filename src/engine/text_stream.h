/* text_stream.h: bytes of tokens in, whole UTF-8 characters out. Tokens end within characters and models produce bytes that are
 * no characters at all, but what a program prints or sends as JSON must be valid UTF-8.
 *
 * The rule, which depends on the bytes alone and not on how they were cut: each longest run of bytes that begins a character
 * but cannot be completed, and each byte that begins none, becomes one U+FFFD (the replacement that Unicode 15, section 3.9,
 * calls "maximal subparts"). A beginning at the very end is held back while more may come and becomes one U+FFFD when the
 * stream ends. */
#ifndef CERA_ENGINE_TEXT_STREAM_H
#define CERA_ENGINE_TEXT_STREAM_H

#include <stddef.h>

#include "base/json.h"
#include "base/status.h"

typedef struct cera_text_stream {
    char held[4]; /* the beginning of a character */
    size_t n_held;
    cera_buffer out;
} cera_text_stream;

/* Takes n bytes; *text [*size] is what can go out now, valid until the next call. last: nothing follows. */
cera_status cera_text_stream_push(cera_text_stream *s, const char *bytes, size_t n, bool last, const char **text, size_t *size,
                                  cera_error *e);
void cera_text_stream_deinit(cera_text_stream *s);

#endif
