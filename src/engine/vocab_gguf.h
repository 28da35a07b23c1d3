/* vocab_gguf.h: a vocabulary from the tokenizer.ggml.* keys of a GGUF. */
#ifndef CERA_ENGINE_VOCAB_GGUF_H
#define CERA_ENGINE_VOCAB_GGUF_H

#include "format/gguf.h"
#include "text/vocab.h"

/* The vocabulary copies what it needs: g may be closed. allow_unknown_pre: an unknown tokenizer.ggml.pre splits as "default"
 * does. Errors name the key. */
cera_status cera_vocab_from_gguf(const cera_gguf *g, bool allow_unknown_pre, cera_vocab **out, cera_error *e);

#endif
