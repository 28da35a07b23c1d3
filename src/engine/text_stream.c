/* text_stream.c: see text_stream.h for the rule. */
#include "engine/text_stream.h"

#include <string.h>

#include "base/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Length of the broken sequence at the start of text, which is no character: the longest prefix that begins one, at least a
 * byte. */
static size_t broken_length(const char *text, size_t n) {
    for (size_t k = n < 3 ? n : 3; k > 1; k--)
        if (cera_utf8_incomplete_tail(text, k) == k) return k;
    return 1;
}

/* Moves what is decided from text to out; returns how many bytes at the end are not: an incomplete character, unless last. */
static size_t drain(cera_buffer *out, const char *text, size_t n, bool last) {
    const size_t held = last ? 0 : cera_utf8_incomplete_tail(text, n);
    const size_t end = n - held;
    size_t good = 0;
    for (size_t i = 0; i < end;) {
        uint32_t code;
        const int length = cera_utf8_decode(text + i, end - i, &code);
        if (length > 0) {
            i += (size_t)length;
            continue;
        }
        cera_buffer_add(out, text + good, i - good);
        cera_buffer_add(out, replacement, sizeof replacement - 1);
        i += broken_length(text + i, end - i);
        good = i;
    }
    if (good < end) cera_buffer_add(out, text + good, end - good);
    return held;
}

cera_status cera_text_stream_push(cera_text_stream *s, const char *bytes, size_t n, bool last, const char **text, size_t *size,
                                  cera_error *e) {
    s->out.size = 0;
    if (s->n_held > 0 && n > 0) { /* the held beginning and the next bytes, until it is decided */
        char joined[8];
        const size_t take = n < 4 ? n : 4, held = s->n_held;
        memcpy(joined, s->held, held);
        memcpy(joined + held, bytes, take);
        /* Only sequences that begin in the held bytes are settled here: the first one, since held bytes are one beginning. */
        uint32_t code;
        const int length = cera_utf8_decode(joined, held + take, &code);
        if (length > 0) {
            cera_buffer_add(&s->out, joined, (size_t)length);
            bytes += (size_t)length - held;
            n -= (size_t)length - held;
            s->n_held = 0;
        } else if (cera_utf8_incomplete_tail(joined, held + take) == held + take) {
            memcpy(s->held + held, bytes, take);
            s->n_held += take;
            bytes += take;
            n -= take;
        } else { /* the broken sequence may reach into the new bytes, but never beyond them */
            const size_t broken = broken_length(joined, held + take);
            cera_buffer_add(&s->out, replacement, sizeof replacement - 1);
            bytes += broken - held;
            n -= broken - held;
            s->n_held = 0;
        }
    }
    if (s->n_held > 0 && last && n == 0) {
        cera_buffer_add(&s->out, replacement, sizeof replacement - 1);
        s->n_held = 0;
    }
    if (n > 0) {
        const size_t held = drain(&s->out, bytes, n, last);
        memcpy(s->held, bytes + n - held, held);
        s->n_held = held;
    }
    if (s->out.failed) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for %zu bytes of text", n);
    *text = s->out.data;
    *size = s->out.size;
    return CERA_OK;
}

void cera_text_stream_deinit(cera_text_stream *s) {
    cera_buffer_deinit(&s->out);
    *s = (cera_text_stream){0};
}
