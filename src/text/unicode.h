/* unicode.h: properties of characters and the canonical normal forms, over generated tables (unicode_tables.c). Owns no text
 * decoding beyond walking UTF-8: base/utf8.h does that. Pure functions, no state. */
#ifndef CERA_TEXT_UNICODE_H
#define CERA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/json.h"

/* General categories; the order is the generator's. Unassigned code points, and what is no code point at all, are CERA_CAT_CN.
 */
enum {
    CERA_CAT_CN,
    CERA_CAT_CC,
    CERA_CAT_CF,
    CERA_CAT_CO,
    CERA_CAT_CS,
    CERA_CAT_LL,
    CERA_CAT_LM,
    CERA_CAT_LO,
    CERA_CAT_LT,
    CERA_CAT_LU,
    CERA_CAT_MC,
    CERA_CAT_ME,
    CERA_CAT_MN,
    CERA_CAT_ND,
    CERA_CAT_NL,
    CERA_CAT_NO,
    CERA_CAT_PC,
    CERA_CAT_PD,
    CERA_CAT_PE,
    CERA_CAT_PF,
    CERA_CAT_PI,
    CERA_CAT_PO,
    CERA_CAT_PS,
    CERA_CAT_SC,
    CERA_CAT_SK,
    CERA_CAT_SM,
    CERA_CAT_SO,
    CERA_CAT_ZL,
    CERA_CAT_ZP,
    CERA_CAT_ZS,
    CERA_CAT_COUNT
};

#define CERA_CATS_L (0x1fu << CERA_CAT_LL)
#define CERA_CATS_M (0x7u << CERA_CAT_MC)
#define CERA_CATS_N (0x7u << CERA_CAT_ND)
#define CERA_CATS_P (0x7fu << CERA_CAT_PC)
#define CERA_CATS_S (0xfu << CERA_CAT_SC)
#define CERA_CATS_Z (0x7u << CERA_CAT_ZL)
#define CERA_CATS_C 0x1fu

enum { CERA_UNICODE_CATEGORY = 31, CERA_UNICODE_WHITE_SPACE = 32, CERA_UNICODE_HAN = 64 };

/* Category in the low five bits, then the flags above. Any 32-bit value is fine. */
uint8_t cera_unicode_properties(uint32_t code);
uint32_t cera_unicode_lowercase(uint32_t code); /* simple mapping: one code point to one */
uint8_t cera_unicode_combining_class(uint32_t code);

/* Appends the canonical normal form of text to out. Bytes that are not UTF-8 are copied and end a combining sequence. A run of
 * more than CERA_UNICODE_MAX_MARKS combining marks is normalised in pieces of that length (Unicode's stream-safe format has
 * 30). */
enum { CERA_UNICODE_MAX_MARKS = 256 };
void cera_unicode_nfd(const char *text, size_t n, cera_buffer *out);
void cera_unicode_nfc(const char *text, size_t n, cera_buffer *out);

#endif
