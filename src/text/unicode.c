/* unicode.c: lookups in the generated property tables, and the canonical normal forms (Unicode Standard Annex 15) one combining
 * sequence at a time. Owns no data: unicode_tables.c does. Hangul syllables are computed (section 3.12 of the Standard). */
#include "text/unicode.h"
#include "text/unicode_int.h"

#include <string.h>
#include "base/utf8.h"

enum {
    HANGUL_S = 0xac00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7,
    N_L = 19,
    N_V = 21,
    N_T = 28,
    N_S = N_L * N_V * N_T
};

uint8_t cera_unicode_properties(uint32_t code) {
    if (code > 0x10ffff) return CERA_CAT_CN;
    return cera_unicode_props[(size_t)cera_unicode_block[code >> 7] * 128 + (code & 127)];
}

/* Index of code in a sorted array, n when it is absent. */
static size_t find_code(const uint32_t *codes, size_t n, uint32_t code) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (codes[mid] < code)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && codes[low] == code ? low : n;
}

uint32_t cera_unicode_lowercase(uint32_t code) {
    if (code < 128) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    size_t i = find_code(cera_unicode_lower_from, cera_unicode_n_lower, code);
    return i < cera_unicode_n_lower ? cera_unicode_lower_to[i] : code;
}

uint8_t cera_unicode_combining_class(uint32_t code) {
    if (code < 0x300) return 0;
    size_t low = 0, high = cera_unicode_n_ccc;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (cera_unicode_ccc[mid][1] < code)
            low = mid + 1;
        else
            high = mid;
    }
    return low < cera_unicode_n_ccc && cera_unicode_ccc[low][0] <= code ? (uint8_t)cera_unicode_ccc[low][2] : 0;
}

/* The primary composite of two characters, 0 when they do not compose. */
static uint32_t compose_pair(uint32_t a, uint32_t b) {
    if (a >= HANGUL_L && a < HANGUL_L + N_L && b >= HANGUL_V && b < HANGUL_V + N_V) {
        return HANGUL_S + ((a - HANGUL_L) * N_V + (b - HANGUL_V)) * N_T;
    }
    if (a >= HANGUL_S && a < HANGUL_S + N_S && (a - HANGUL_S) % N_T == 0 && b > HANGUL_T && b < HANGUL_T + N_T) {
        return a + (b - HANGUL_T);
    }
    size_t low = 0, high = cera_unicode_n_compose;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const uint32_t *row = cera_unicode_compose[mid];
        if (row[0] < a || (row[0] == a && row[1] < b))
            low = mid + 1;
        else
            high = mid;
    }
    const uint32_t *row = cera_unicode_compose[low < cera_unicode_n_compose ? low : 0];
    return row[0] == a && row[1] == b ? row[2] : 0;
}

/* One combining sequence: a starter (unless the text begins with marks) and the marks after it, in canonical order. */
typedef struct sequence {
    uint32_t code[CERA_UNICODE_MAX_MARKS + 1];
    uint8_t ccc[CERA_UNICODE_MAX_MARKS + 1];
    size_t n;
    bool compose;
    cera_buffer *out;
} sequence;

/* Joins the marks that compose with the starter: a mark does unless one of its own class or higher stands between. */
static void compose_marks(sequence *s) {
    if (s->n < 2 || s->ccc[0] != 0) return;
    size_t kept = 1;
    uint8_t last_ccc = 0;
    for (size_t i = 1; i < s->n; i++) {
        bool blocked = kept > 1 && last_ccc >= s->ccc[i];
        uint32_t joined = blocked ? 0 : compose_pair(s->code[0], s->code[i]);
        if (joined) {
            s->code[0] = joined;
            continue;
        }
        last_ccc = s->ccc[i];
        s->code[kept] = s->code[i];
        s->ccc[kept++] = s->ccc[i];
    }
    s->n = kept;
}

static void flush_sequence(sequence *s) {
    if (s->compose) compose_marks(s);
    for (size_t i = 0; i < s->n; i++) {
        char bytes[4];
        cera_buffer_add(s->out, bytes, (size_t)cera_utf8_encode(s->code[i], bytes));
    }
    s->n = 0;
}

static void push_code(sequence *s, uint32_t code) {
    uint8_t ccc = cera_unicode_combining_class(code);
    if (ccc == 0 && s->n > 0) {
        if (s->compose) {
            compose_marks(s);
            uint32_t joined = s->n == 1 && s->ccc[0] == 0 ? compose_pair(s->code[0], code) : 0;
            if (joined) {
                s->code[0] = joined;
                return;
            }
        }
        flush_sequence(s);
    }
    if (s->n == CERA_UNICODE_MAX_MARKS + 1) flush_sequence(s);
    size_t at = s->n++;
    for (; ccc != 0 && at > 0 && s->ccc[at - 1] > ccc; at--) { /* stable insertion by class */
        s->code[at] = s->code[at - 1];
        s->ccc[at] = s->ccc[at - 1];
    }
    s->code[at] = code;
    s->ccc[at] = ccc;
}

static void push_decomposed(sequence *s, uint32_t code) {
    if (code >= HANGUL_S && code < HANGUL_S + N_S) {
        uint32_t i = code - HANGUL_S;
        push_code(s, HANGUL_L + i / (N_V * N_T));
        push_code(s, HANGUL_V + i % (N_V * N_T) / N_T);
        if (i % N_T) push_code(s, HANGUL_T + i % N_T);
        return;
    }
    size_t i = code < 0xc0 ? cera_unicode_n_decomp : find_code(cera_unicode_decomp_from, cera_unicode_n_decomp, code);
    if (i == cera_unicode_n_decomp) {
        push_code(s, code);
        return;
    }
    for (size_t j = cera_unicode_decomp_at[i]; j < cera_unicode_decomp_at[i + 1]; j++) push_code(s, cera_unicode_decomp_to[j]);
}

static size_t ascii_run(const char *text, size_t n) {
    size_t i = 0;
    while (i < n && (uint8_t)text[i] < 128) i++;
    return i;
}

static void normalize(const char *text, size_t n, bool compose, cera_buffer *out) {
    sequence s;
    s.n = 0;
    s.compose = compose;
    s.out = out;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t plain = ascii_run(text + i, n - i);
        if (plain > 1) { /* only the last of them may meet a mark */
            flush_sequence(&s);
            cera_buffer_add(out, text + i, plain - 1);
            i += plain - 1;
        }
        int length = cera_utf8_decode(text + i, n - i, &code);
        if (length == 0) {
            flush_sequence(&s);
            cera_buffer_add(out, text + i, 1);
            i++;
            continue;
        }
        push_decomposed(&s, code);
        i += (size_t)length;
    }
    flush_sequence(&s);
}

/* True when every byte is below limit. Below U+00C0 nothing decomposes (lead byte 0xC3), below U+0300 nothing composes (0xCC).
 */
static bool bytes_below(const char *text, size_t n, uint8_t limit) {
    uint8_t most = 0;
    for (size_t i = 0; i < n; i++) most = (uint8_t)text[i] > most ? (uint8_t)text[i] : most;
    return most < limit;
}

void cera_unicode_nfd(const char *text, size_t n, cera_buffer *out) {
    if (bytes_below(text, n, 0xc3))
        cera_buffer_add(out, text, n);
    else
        normalize(text, n, false, out);
}

void cera_unicode_nfc(const char *text, size_t n, cera_buffer *out) {
    if (bytes_below(text, n, 0xcc))
        cera_buffer_add(out, text, n);
    else
        normalize(text, n, true, out);
}
