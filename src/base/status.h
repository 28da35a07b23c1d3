/* status.h: errors as values. The first error wins: once a cera_error holds a code it is not overwritten.
 * Functions return cera_status (cera.h) and pass the cera_error * of the caller down; it may be NULL. */
#ifndef CERA_BASE_STATUS_H
#define CERA_BASE_STATUS_H

#include "cera.h"

#if defined(__GNUC__)
#    define CERA_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#    define CERA_PRINTF(f, a)
#endif

/* Fills e (unless it already holds an error) and returns code. Control bytes and broken UTF-8 in the formatted text are
 * escaped as \xHH, so that a message can be printed to a terminal whatever the file held; too long a text is cut. */
cera_status cera_fail(cera_error *e, cera_status code, const char *format, ...) CERA_PRINTF(3, 4);

/* Puts "prefix: " before the message of an error that was raised further down (to add a file name). Returns e->code. */
cera_status cera_fail_prefix(cera_error *e, const char *prefix);

/* True when text is UTF-8 and holds nothing that cera_fail would escape. */
bool cera_text_printable(const char *text, size_t n);

const char *cera_status_text(cera_status s);

/* Passes a failure up; use only where nothing has to be released. */
#define CERA_TRY(call)                                  \
    do {                                                \
        cera_status try_status_ = (call);               \
        if (try_status_ != CERA_OK) return try_status_; \
    } while (0)

#endif
