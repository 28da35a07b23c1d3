/* regex_int.h: regular expressions of JSON Schema's `pattern` (an ECMA-262 subset) to expressions of the automaton. */
#ifndef CERA_SAMPLE_REGEX_INT_H
#define CERA_SAMPLE_REGEX_INT_H

#include "sample/automaton_int.h"

/* The texts in which the pattern matches somewhere, or, when whole is true, those that it matches from end to end.
 * What is outside of the subset (back references, look-behind, \b, flags) is CERA_ERR_UNSUPPORTED with its byte. */
cera_status cera_regex_compile(cera_automaton *a, const char *text, size_t n, bool whole, cera_expr *out, cera_error *e);

/* regex_class.c: one class or escape. */
typedef struct cera_regex_in {
    const char *text;
    size_t n, at;
    cera_error *e;
    cera_status status;
} cera_regex_in;
void cera_regex_fail(cera_regex_in *in, cera_status s, const char *what);
/* After a backslash: adds the set of characters that it names; *single is its one code point, or UINT32_MAX for a class. */
bool cera_regex_escape(cera_regex_in *in, cera_class *c, bool in_class, uint32_t *single);
/* After '[' up to and with ']'. */
bool cera_regex_class(cera_regex_in *in, cera_class *c);
void cera_regex_add_dot(cera_class *c);
uint32_t cera_regex_code(cera_regex_in *in); /* the next character */

#endif
