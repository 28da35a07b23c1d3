/* tokenizer.h: the vocabulary behind a public tokenizer, for the interface's other parts (templates, grammars). */
#ifndef CERA_ENGINE_TOKENIZER_H
#define CERA_ENGINE_TOKENIZER_H

#include "text/vocab.h"

const cera_vocab *cera_tokenizer_vocab(const cera_tokenizer *t); /* NULL for NULL; lives as long as the tokenizer */

#endif
