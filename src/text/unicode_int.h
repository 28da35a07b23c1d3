/* unicode_int.h: the generated tables, for unicode.c only.
 * Properties are two-stage: props[block[code >> 7] * 128 + (code & 127)]; decompositions are sorted by code point, their full
 * texts lie in decomp_to[decomp_at[i] .. decomp_at[i + 1]); compose holds sorted (first, second, composed); ccc holds sorted
 * (first, last, class). */
#ifndef CERA_TEXT_UNICODE_INT_H
#define CERA_TEXT_UNICODE_INT_H

#include <stddef.h>
#include <stdint.h>

extern const char cera_unicode_version[];
extern const uint16_t cera_unicode_block[];
extern const uint8_t cera_unicode_props[];
extern const uint32_t cera_unicode_lower_from[], cera_unicode_lower_to[];
extern const size_t cera_unicode_n_lower;
extern const uint32_t cera_unicode_decomp_from[], cera_unicode_decomp_to[];
extern const uint16_t cera_unicode_decomp_at[];
extern const size_t cera_unicode_n_decomp;
extern const uint32_t cera_unicode_compose[][3];
extern const size_t cera_unicode_n_compose;
extern const uint32_t cera_unicode_ccc[][3];
extern const size_t cera_unicode_n_ccc;

#endif
