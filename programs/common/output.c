/* output.c: see output.h. */
#include "common/output.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/args.h"

static int write_error; /* errno of the first write that failed */

static void note_error(void) {
    if (write_error == 0) write_error = errno != 0 ? errno : EIO;
}

bool cera_output_write(const char *text, size_t n) {
    if (write_error != 0) return false;
    errno = 0;
    if ((n > 0 && fwrite(text, 1, n, stdout) != n) || fflush(stdout) != 0) note_error();
    return write_error == 0;
}

int cera_output_end(int status) {
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) note_error();
    if (write_error == 0) return status;
    if (write_error != EPIPE) fprintf(stderr, "cera: stdout: %s\n", strerror(write_error));
    return status == CERA_EXIT_OK ? CERA_EXIT_FAILED : status;
}

/* Length of the valid UTF-8 character at text, 0 when there is none (RFC 3629, table in section 4). */
static size_t character(const unsigned char *t, size_t n) {
    if (t[0] < 0x80) return 1;
    const size_t length = t[0] >= 0xF0 ? 4 : t[0] >= 0xE0 ? 3 : 2;
    if (t[0] < 0xC2 || t[0] > 0xF4 || length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((t[i] & 0xC0) != 0x80) return 0;
    const bool bad = (t[0] == 0xE0 && t[1] < 0xA0) || (t[0] == 0xED && t[1] > 0x9F) || (t[0] == 0xF0 && t[1] < 0x90) ||
                     (t[0] == 0xF4 && t[1] > 0x8F);
    return bad ? 0 : length;
}

void cera_output_json_string(FILE *out, const char *text, size_t n) {
    const unsigned char *t = (const unsigned char *)text;
    fputc('"', out);
    for (size_t i = 0; i < n;) {
        const size_t length = character(t + i, n - i);
        if (length == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (t[i] == '"' || t[i] == '\\')
            fprintf(out, "\\%c", t[i]);
        else if (t[i] < 0x20 || t[i] == 0x7F)
            fprintf(out, "\\u%04x", t[i]);
        else
            fwrite(t + i, 1, length, out);
        i += length > 0 ? length : 1;
    }
    fputc('"', out);
}

void cera_output_printable(FILE *out, const char *text, size_t n, size_t max) {
    const unsigned char *t = (const unsigned char *)text;
    size_t i = 0;
    while (i < n && i < max) {
        const size_t length = character(t + i, n - i);
        const bool c1 = length == 2 && t[i] == 0xC2 && t[i + 1] < 0xA0; /* control characters above ASCII */
        if (t[i] == '\n')
            fputs("\\n", out);
        else if (t[i] == '\t')
            fputs("\\t", out);
        else if (length == 0 || t[i] < 0x20 || t[i] == 0x7F || c1)
            for (size_t j = 0; j < (length > 0 ? length : 1); j++) fprintf(out, "\\x%02X", t[i + j]);
        else
            fwrite(t + i, 1, length, out);
        i += length > 0 ? length : 1;
    }
    if (i < n) fputs("...", out);
}
