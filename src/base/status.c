/* status.c: formats error values. Owns the rule that a message is one printable line: whatever bytes a file put into a name,
 * nothing of it can move a terminal's cursor, start a new line or turn the text around.
 * Does not own what the messages say: each caller names its file, key, tensor or byte. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

/* C0, DEL, C1, line and paragraph separators, and the characters that change the direction of text. */
static bool printable(uint32_t code) {
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    if (code == 0x200e || code == 0x200f) return false;
    return !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069);
}

bool cera_text_printable(const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        int length = cera_utf8_decode(text + i, n - i, &code);
        if (length == 0 || !printable(code)) return false;
        i += (size_t)length;
    }
    return true;
}

/* Copies n bytes of in to out (capacity bytes, NUL included), escaping what is not printable; "..." at the end when it was cut.
 */
static void copy_printable(char *out, size_t capacity, const char *in, size_t n, bool cut) {
    const size_t room = capacity - 4; /* for "..." and the NUL */
    size_t at = 0, i = 0;
    while (i < n) {
        uint32_t code = 0;
        int length = cera_utf8_decode(in + i, n - i, &code);
        bool plain = length > 0 && printable(code);
        size_t raw = length > 0 ? (size_t)length : 1, need = plain ? raw : 4 * raw;
        if (at + need > room) break;
        for (size_t k = 0; k < raw; k++) {
            if (plain)
                out[at++] = in[i + k];
            else
                at += (size_t)snprintf(out + at, 5, "\\x%02X", (unsigned)(unsigned char)in[i + k]);
        }
        i += raw;
    }
    if (cut || i < n) {
        memcpy(out + at, "...", 3);
        at += 3;
    }
    out[at] = 0;
}

cera_status cera_fail(cera_error *e, cera_status code, const char *format, ...) {
    if (!e || e->code != CERA_OK) return code;
    char text[CERA_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t n = strnlen(text, sizeof text - 1);
    bool cut = wrote < 0 || (size_t)wrote >= sizeof text;
    if (cut) n -= cera_utf8_incomplete_tail(text, n);
    copy_printable(e->message, sizeof e->message, text, n, cut);
    e->code = code;
    return code;
}

cera_status cera_fail_prefix(cera_error *e, const char *prefix) {
    if (!e) return CERA_OK;
    char head[CERA_ERROR_TEXT / 2], text[CERA_ERROR_TEXT];
    copy_printable(head, sizeof head, prefix, strlen(prefix), false);
    size_t n_head = strlen(head), n = strlen(e->message);
    memcpy(text, head, n_head);
    memcpy(text + n_head, ": ", 2);
    n_head += 2;
    bool cut = n > sizeof text - 4 - n_head;
    if (cut) {
        n = sizeof text - 4 - n_head;
        n -= cera_utf8_incomplete_tail(e->message, n);
    }
    memcpy(text + n_head, e->message, n);
    memcpy(e->message, text, n_head + n);
    strcpy(e->message + n_head + n, cut ? "..." : "");
    return e->code;
}

const char *cera_status_text(cera_status s) {
    switch (s) {
    case CERA_OK: return "ok";
    case CERA_ERR_ARGUMENT: return "unusable argument";
    case CERA_ERR_IO: return "input or output failed";
    case CERA_ERR_FORMAT: return "malformed data";
    case CERA_ERR_UNSUPPORTED: return "not supported";
    case CERA_ERR_NOT_FOUND: return "not found";
    case CERA_ERR_MEMORY: return "out of memory";
    case CERA_ERR_LIMIT: return "limit reached";
    case CERA_ERR_CANCELLED: return "cancelled";
    case CERA_ERR_NUMERIC: return "numbers are not finite";
    }
    return "unknown status";
}
