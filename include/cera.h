/* cera.h: the public interface of libcera. Everything a program may call is declared here; nothing else is exported.
 *
 * Conventions. Functions that can fail return cera_status and fill a cera_error (may be NULL) with a message that names
 * the file, key, tensor, field or byte at fault. Results go through out-pointers, placed last before the error.
 */
#ifndef CERA_H
#define CERA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#    define CERA_API
#elif defined(__GNUC__)
#    define CERA_API __attribute__((visibility("default")))
#else
#    define CERA_API
#endif

/* ---- status and errors ------------------------------------------------------------------------------------------ */

typedef enum cera_status {
    CERA_OK = 0,
    CERA_ERR_ARGUMENT,    /* the caller passed something that cannot be used */
    CERA_ERR_IO,          /* a file could not be opened or read */
    CERA_ERR_FORMAT,      /* bytes from outside break the rules of their format */
    CERA_ERR_UNSUPPORTED, /* well-formed, but not something this build can do */
    CERA_ERR_NOT_FOUND,   /* a key, tensor or name that is needed is absent */
    CERA_ERR_MEMORY,      /* an allocation failed, or would not fit */
    CERA_ERR_LIMIT,       /* a stated limit was reached (context full, budget spent) */
    CERA_ERR_CANCELLED,   /* cancelled by the caller; state is as before the operation */
    CERA_ERR_NUMERIC      /* the model produced numbers that are not finite */
} cera_status;

enum { CERA_ERROR_TEXT = 1024 };

typedef struct cera_error {
    cera_status code;
    char message[CERA_ERROR_TEXT]; /* one line, no final newline, printable (control bytes escaped) */
} cera_error;

#ifdef __cplusplus
}
#endif
#endif
