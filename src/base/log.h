/* log.h: notes for the user that are no errors (a doubtful key, a fallback taken). Silent until the program sets a callback. */
#ifndef CERA_BASE_LOG_H
#define CERA_BASE_LOG_H

#include "base/status.h"

typedef enum cera_log_level { CERA_LOG_DEBUG, CERA_LOG_INFO, CERA_LOG_WARN } cera_log_level;

/* text: one printable line without a newline, escaped as error messages are; valid during the call. Any thread may call it. */
typedef void (*cera_log_fn)(void *ctx, cera_log_level level, const char *text);

/* Set before other threads use the library; fn NULL: silent. */
void cera_log_set(cera_log_fn fn, void *ctx);
void cera_log(cera_log_level level, const char *format, ...) CERA_PRINTF(2, 3);

#endif
