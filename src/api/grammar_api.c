/* grammar_api.c: the functions of cera.h's grammar section that need a tokenizer's vocabulary; the others are
 * src/sample/grammar.c. */
#include "sample/grammar.h"

#include "engine/tokenizer.h"

cera_status cera_grammar_compile(cera_grammar_kind kind, const char *text, size_t size, const cera_grammar_options *options,
                                 cera_grammar **out, cera_error *e) {
    const cera_vocab *vocab =
        options && options->size >= sizeof *options && options->tokenizer ? cera_tokenizer_vocab(options->tokenizer) : NULL;
    return cera_grammar_compile_with(kind, text, size, options, vocab, out, e);
}

cera_status cera_grammar_tokens_create(const cera_tokenizer *tokenizer, cera_grammar_tokens **out, cera_error *e) {
    return cera_grammar_tokens_of(cera_tokenizer_vocab(tokenizer), out, e);
}
