/* number.h: decimal text to numbers, whatever the process's locale says a decimal point is. */
#ifndef CERA_BASE_NUMBER_H
#define CERA_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All n bytes are an optional '-', digits without leading zeros, an optional fraction and an optional exponent (RFC 8259, 6).
 */
bool cera_number_valid(const char *text, size_t n);
/* The nearest double; false when the text is no such number or its value is not finite. */
bool cera_number_f64(const char *text, size_t n, double *out);
/* The same grammar; false unless the value is a whole number that fits. 1.0 and 1e2 are whole. */
bool cera_number_i64(const char *text, size_t n, int64_t *out);

/* Whether two valid numbers have the same value, without rounding: 1, 1.0 and 10e-1 have. */
bool cera_number_equal(const char *a, size_t n_a, const char *b, size_t n_b);

#endif
