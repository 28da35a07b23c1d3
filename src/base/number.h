/* number.h: decimal text to numbers, whatever the process's locale says a decimal point is. */
#ifndef CERA_BASE_NUMBER_H
#define CERA_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All n bytes must be an optional '-', digits, an optional fraction and exponent (JSON's grammar). The nearest double; false
 * when the text is no such number or its value is not finite. */
bool cera_number_f64(const char *text, size_t n, double *out);
/* The same grammar; false unless the value is a whole number that fits. 1.0 and 1e2 are whole. */
bool cera_number_i64(const char *text, size_t n, int64_t *out);

#endif
