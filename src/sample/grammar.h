/* grammar.h: structured output as the engine sees it: a grammar compiled from GBNF, JSON Schema or a regular expression, and
 * places in a text under it. Public functions: cera.h. Here is only what needs a vocabulary, which cera.h hides in
 * cera_tokenizer.
 *
 * A grammar is immutable to its users; the automaton inside grows as it is used, under a lock of its own. A state is a pure
 * function of the text that it accepted. */
#ifndef CERA_SAMPLE_GRAMMAR_H
#define CERA_SAMPLE_GRAMMAR_H

#include "base/status.h"
#include "text/vocab.h"

/* cera_grammar_compile with the vocabulary in place of options->tokenizer. */
cera_status cera_grammar_compile_with(cera_grammar_kind kind, const char *text, size_t size,
                                      const cera_grammar_options *options, const cera_vocab *vocab, cera_grammar **out,
                                      cera_error *e);
cera_status cera_grammar_tokens_of(const cera_vocab *vocab, cera_grammar_tokens **out, cera_error *e);

#endif
