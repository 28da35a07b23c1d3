/* chat_template.c: the text of the chat template that a model's file brings. What a template does is text/ and api/. */
#include "engine/engine_int.h"

const char *cera_engine_chat_template(const cera_engine *engine, size_t *size) {
    cera_text_view text;
    if (size) *size = 0;
    if (!engine || cera_gguf_get_text(engine->gguf, "tokenizer.chat_template", &text, NULL) != CERA_OK) return NULL;
    if (text.size == 0) return NULL;
    if (size) *size = text.size;
    return text.text;
}
