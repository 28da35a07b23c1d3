/* output.h: results on stdout. A write that fails is an error of the command: with a message, except when the reader has gone
 * away (EPIPE), which says nothing a user wants to read. Also: JSON strings, and bytes of unknown origin for a terminal. */
#ifndef CERA_PROGRAMS_OUTPUT_H
#define CERA_PROGRAMS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes and flushes; false when it failed. */
bool cera_output_write(const char *text, size_t n);
/* Flushes stdout. Returns status, or CERA_EXIT_FAILED when anything written to it was lost. */
int cera_output_end(int status);

/* "..." with escapes; bytes that are not UTF-8 become U+FFFD. */
void cera_output_json_string(FILE *out, const char *text, size_t n);
/* Control bytes and bytes that are not UTF-8 as \xHH, line feeds and tabs as \n and \t; at most max bytes of text, then "...".
 */
void cera_output_printable(FILE *out, const char *text, size_t n, size_t max);

#endif
