/* utf8.h: decoding and checking of UTF-8 (Unicode 15: no surrogates, no overlong forms, at most U+10FFFF). */
#ifndef CERA_BASE_UTF8_H
#define CERA_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at text[0], n >= 1. Returns its length 1..4, or 0 when the bytes are not a whole valid character. */
int cera_utf8_decode(const char *text, size_t n, uint32_t *code);
/* Writes 1..4 bytes; returns how many, 0 when code is no scalar value. */
int cera_utf8_encode(uint32_t code, char out[4]);
bool cera_utf8_valid(const char *text, size_t n);
/* How many bytes at the end of text form the beginning of a character that is not complete yet (0..3): a stream holds these
 * back. */
size_t cera_utf8_incomplete_tail(const char *text, size_t n);

#endif
