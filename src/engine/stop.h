/* stop.h: stop strings in a stream of bytes. Bytes that may be the beginning of a stop string are held back until it is clear
 * whether they are; nothing of a stop string comes out, and everything else does, once and in order.
 *
 * The first stop string to be complete ends the stream; of those that are complete at the same byte, the longest. What is held
 * when the stream ends otherwise was a false start and is text. Borders between pushes do not matter. */
#ifndef CERA_ENGINE_STOP_H
#define CERA_ENGINE_STOP_H

#include <stdbool.h>

#include "base/json.h"
#include "base/status.h"

typedef struct cera_stop_pattern {
    const char *text;
    size_t size, matched; /* bytes of text that the stream ends with */
    size_t *border;       /* [size] longest proper prefix of text[0..i] that is its suffix too */
} cera_stop_pattern;

typedef struct cera_stop {
    cera_stop_pattern *patterns; /* [n] */
    size_t n;
    size_t held; /* bytes at the end of buffer that are not out yet */
    cera_buffer buffer;
    int hit; /* the stop string that ended the stream, -1 */
} cera_stop;

/* texts stay the caller's and must live as long as s. An empty text is an error. deinit also after a failure. */
cera_status cera_stop_init(cera_stop *s, const char *const *texts, size_t n, cera_error *e);
void cera_stop_deinit(cera_stop *s);

/* Takes n bytes; *text [*size] may go out now, valid until the next call. last: nothing follows, all comes out. *stopped: a
 * stop string is complete; bytes after it are dropped, in this call and in later ones. */
cera_status cera_stop_push(cera_stop *s, const char *bytes, size_t n, bool last, const char **text, size_t *size, bool *stopped,
                           cera_error *e);

#endif
