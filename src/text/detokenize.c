/* detokenize.c: ids back to the bytes they stand for. No tidying of spaces before punctuation: what was tokenized comes back.
 */
#include "text/vocab_int.h"

#include "base/json.h"

/* Takes the space off that the tokenizer had put before the text: only the first visible token can hold it. */
static cera_text_view without_prefix(cera_text_view t) {
    if (t.size > 0 && t.text[0] == ' ') return (cera_text_view){t.text + 1, t.size - 1};
    return t;
}

cera_status cera_vocab_detokenize(const cera_vocab *v, const int32_t *ids, size_t n_ids, bool special, bool first, char **text,
                                  size_t *size, cera_error *e) {
    cera_buffer b = {0};
    bool strip = first && (v->add_space_prefix || v->kind == VOCAB_WORDPIECE);
    *text = NULL;
    *size = 0;
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= v->n_tokens) {
            cera_buffer_deinit(&b);
            return cera_fail(e, CERA_ERR_ARGUMENT, "token id %d at place %zu; the vocabulary has ids 0 to %d", ids[i], i,
                             v->n_tokens - 1);
        }
        cera_text_view t = cera_vocab_token_bytes(v, ids[i], special);
        if (strip && t.size > 0) {
            if (v->types[ids[i]] == CERA_TOKEN_NORMAL) t = without_prefix(t);
            strip = v->types[ids[i]] == CERA_TOKEN_CONTROL && v->add_space_prefix && !v->prefix_first_only;
        }
        cera_buffer_add(&b, t.text, t.size);
    }
    char *out = b.failed ? NULL : cera_alloc(b.size + 1, 1);
    if (out && b.size) memcpy(out, b.data, b.size);
    *size = out ? b.size : 0;
    cera_buffer_deinit(&b);
    if (!out) return cera_fail(e, CERA_ERR_MEMORY, "detokenizer: out of memory after %zu tokens", n_ids);
    *text = out;
    return CERA_OK;
}
