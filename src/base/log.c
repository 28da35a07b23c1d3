/* log.c: the log callback, one of the few mutable globals. Formatting goes through cera_fail, so that log lines obey the same
 * rules as error messages: one line, printable whatever a file held. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static cera_log_fn log_fn;
static void *log_ctx;

void cera_log_set(cera_log_fn fn, void *ctx) {
    log_fn = fn;
    log_ctx = ctx;
}

void cera_log(cera_log_level level, const char *format, ...) {
    if (!log_fn) return;
    char text[CERA_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cera_error line = {0};
    cera_fail(&line, CERA_ERR_ARGUMENT, "%s", text);
    log_fn(log_ctx, level, line.message);
}
