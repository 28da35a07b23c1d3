/* utf8.c: UTF-8 after table 3-7 of the Unicode Standard (well-formed byte sequences): the second byte's range depends on the
 * first, which is what excludes overlong forms, surrogates and everything above U+10FFFF. Does not own any property of
 * characters. */
#include "base/utf8.h"

#include <string.h>

/* Length that a first byte announces, 0 when it cannot begin a character; low and high bound the second byte. */
static int sequence_length(uint8_t first, uint8_t *low, uint8_t *high) {
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0;
    if (first < 0xe0) return 2;
    if (first < 0xf0) {
        if (first == 0xe0) *low = 0xa0;
        if (first == 0xed) *high = 0x9f;
        return 3;
    }
    if (first > 0xf4) return 0;
    if (first == 0xf0) *low = 0x90;
    if (first == 0xf4) *high = 0x8f;
    return 4;
}

int cera_utf8_decode(const char *text, size_t n, uint32_t *code) {
    const uint8_t *b = (const uint8_t *)text;
    if (b[0] < 0x80) {
        *code = b[0];
        return 1;
    }
    uint8_t low, high;
    int length = sequence_length(b[0], &low, &high);
    if (length == 0 || (size_t)length > n || b[1] < low || b[1] > high) return 0;
    uint32_t c = b[0] & (0xffu >> (length + 1));
    c = c << 6 | (b[1] & 0x3fu);
    for (int i = 2; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (b[i] & 0x3fu);
    }
    *code = c;
    return length;
}

int cera_utf8_encode(uint32_t code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
    int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00u >> length) | code);
    return length;
}

bool cera_utf8_valid(const char *text, size_t n) {
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        if (n - i >= 8) {
            memcpy(&eight, text + i, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        uint32_t code;
        int length = cera_utf8_decode(text + i, n - i, &code);
        if (length == 0) return false;
        i += (size_t)length;
    }
    return true;
}

size_t cera_utf8_incomplete_tail(const char *text, size_t n) {
    const uint8_t *b = (const uint8_t *)text;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t first = b[n - back], low, high;
        if ((first & 0xc0) == 0x80) continue; /* look further for the first byte */
        int length = sequence_length(first, &low, &high);
        if ((size_t)length <= back) return 0;
        if (back > 1 && (b[n - back + 1] < low || b[n - back + 1] > high)) return 0;
        return back;
    }
    return 0;
}
