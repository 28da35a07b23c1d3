/* jinja_char.c: classes and case forms of characters as Python's str methods see them. The tables are generated; the
 * tokenizer's own tables (for pre-tokenizers) follow other rules and are elsewhere. */
#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct case_run {
    uint32_t first, last, step;
    int32_t delta;
} case_run;

typedef struct case_special {
    uint32_t code;
    char to;
    uint32_t form[3];
} case_special;

#include "text/jinja_char_tables.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

unsigned cera_jinja_char_class(uint32_t code) {
    size_t low = 0, high = COUNT(char_classes);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (char_classes[middle] >> 8 <= code)
            low = middle;
        else
            high = middle;
    }
    return char_classes[low] & 0xFF;
}

bool cera_jinja_is_space(uint32_t code) {
    if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 28 && code <= 32);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool cera_jinja_is_line_break(uint32_t code) {
    return (code >= 10 && code <= 13) || (code >= 28 && code <= 30) || code == 0x85 || code == 0x2028 || code == 0x2029;
}

static uint32_t simple(const case_run *runs, size_t count, uint32_t code) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (runs[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count || runs[low].first > code) return code;
    if (runs[low].step > 1 && (code - runs[low].first) % runs[low].step) return code;
    return (uint32_t)((int32_t)code + runs[low].delta);
}

int cera_jinja_char_case(uint32_t code, char to, uint32_t out[3]) {
    if (code < 0x80) {
        bool lower = code >= 'a' && code <= 'z', upper = code >= 'A' && code <= 'Z';
        out[0] = to == 'l' || to == 'f' ? (upper ? code + 32 : code) : lower ? code - 32 : code;
        return 1;
    }
    const case_special *upper = NULL;
    size_t low = 0, high = COUNT(case_specials);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (case_specials[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < COUNT(case_specials) && case_specials[low].code == code; low++) {
        const case_special *s = &case_specials[low];
        if (s->to == 'u') upper = s;
        if (s->to != to) continue;
        int n = 0;
        while (n < 3 && s->form[n]) out[n] = s->form[n], n++;
        return n;
    }
    if (to == 't' && upper) {
        int n = 0;
        while (n < 3 && upper->form[n]) out[n] = upper->form[n], n++;
        return n;
    }
    if (to == 'f') return cera_jinja_char_case(code, 'l', out);
    out[0] = to == 'l' ? simple(lower_runs, COUNT(lower_runs), code) : simple(upper_runs, COUNT(upper_runs), code);
    return 1;
}
