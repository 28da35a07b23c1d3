/* tokenizer.c: the public tokenizer, a thin cover of text/vocab over a vocabulary that came out of a GGUF file or a
 * tokenizer.json. */
#include <string.h>

#include "base/arena.h"
#include "engine/engine_int.h"
#include "engine/options.h"
#include "engine/tokenizer.h"
#include "engine/vocab_gguf.h"

/* data NULL: name is the path of a file, or of a folder with a tokenizer.json. */
static cera_status fill(const char *name, const void *data, size_t size_bytes, const cera_tokenizer_options *o,
                        cera_tokenizer *t, cera_error *e) {
    const cera_gguf_options options = {.overrides = o->overrides, .n_overrides = (int)o->n_overrides};
    cera_gguf *g = NULL;
    if (!data && cera_vocab_path_is_json(name)) return cera_vocab_from_folder(name, &t->vocab, e);
    CERA_TRY(data ? cera_gguf_open_memory(name, data, size_bytes, &options, &g, e) : cera_gguf_open(name, &options, &g, e));
    const cera_status status = cera_vocab_from_gguf(g, o->allow_unknown, &t->vocab, e);
    cera_gguf_close(g);
    if (status != CERA_OK) cera_fail_prefix(e, name);
    return status;
}

static cera_status open_any(const char *name, const void *data, size_t size_bytes, const cera_tokenizer_options *options,
                            cera_tokenizer **out, cera_error *e) {
    cera_tokenizer_options o;
    CERA_TRY(cera_options_take("cera_tokenizer_options", options, &o, sizeof o, e));
    cera_tokenizer *t = cera_alloc(1, sizeof *t);
    if (!t) return cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", name);
    const cera_status status = fill(name, data, size_bytes, &o, t, e);
    if (status != CERA_OK) {
        cera_tokenizer_close(t);
        return status;
    }
    *out = t;
    return CERA_OK;
}

cera_status cera_tokenizer_open(const char *path, const cera_tokenizer_options *options, cera_tokenizer **out, cera_error *e) {
    if (!path || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_tokenizer_open: path and out must not be NULL");
    return open_any(path, NULL, 0, options, out, e);
}

cera_status cera_tokenizer_open_memory(const char *name, const void *data, size_t size_bytes,
                                       const cera_tokenizer_options *options, cera_tokenizer **out, cera_error *e) {
    if (!name || !data || !out)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_tokenizer_open_memory: name, data and out must not be NULL");
    return open_any(name, data, size_bytes, options, out, e);
}

void cera_tokenizer_close(cera_tokenizer *t) {
    if (!t) return;
    cera_vocab_destroy(t->vocab);
    cera_free(t);
}

cera_status cera_tokenizer_encode(const cera_tokenizer *t, const char *text, size_t size, unsigned flags, int32_t **ids,
                                  size_t *n_ids, cera_error *e) {
    if (!t || (!text && size > 0) || !ids || !n_ids)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_tokenizer_encode: tokenizer, text, ids and n_ids must not be NULL");
    unsigned f = 0;
    if (flags & CERA_ENCODE_BOS) f |= CERA_TOKENIZE_BOS;
    if (flags & CERA_ENCODE_SPECIAL) f |= CERA_TOKENIZE_SPECIAL;
    if (flags & CERA_ENCODE_CONTINUES) f |= CERA_TOKENIZE_NO_SPACE_PREFIX;
    return cera_vocab_tokenize(t->vocab, text ? text : "", size, f, ids, n_ids, e);
}

cera_status cera_tokenizer_decode(const cera_tokenizer *t, const int32_t *ids, size_t n_ids, unsigned flags, char **text,
                                  size_t *size, cera_error *e) {
    if (!t || (!ids && n_ids > 0) || !text || !size)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_tokenizer_decode: tokenizer, ids, text and size must not be NULL");
    const bool special = (flags & CERA_DECODE_SPECIAL) != 0, first = (flags & CERA_DECODE_CONTINUES) == 0;
    return cera_vocab_detokenize(t->vocab, ids, n_ids, special, first, text, size, e);
}

const cera_vocab *cera_tokenizer_vocab(const cera_tokenizer *t) { return t ? t->vocab : NULL; }

static bool in_range(const cera_tokenizer *t, int32_t id) { return t && id >= 0 && id < cera_vocab_size(t->vocab); }

const char *cera_tokenizer_piece(const cera_tokenizer *t, int32_t id, bool special, size_t *size) {
    if (size) *size = 0;
    if (!in_range(t, id)) return NULL;
    const cera_text_view v = cera_vocab_token_bytes(t->vocab, id, special);
    if (size) *size = v.size;
    return v.text ? v.text : "";
}

int32_t cera_tokenizer_size(const cera_tokenizer *t) { return t ? cera_vocab_size(t->vocab) : 0; }
int32_t cera_tokenizer_bos(const cera_tokenizer *t) { return t ? cera_vocab_bos(t->vocab) : -1; }
int32_t cera_tokenizer_eos(const cera_tokenizer *t) { return t ? cera_vocab_eos(t->vocab) : -1; }
bool cera_tokenizer_adds_bos(const cera_tokenizer *t) { return t && cera_vocab_adds_bos(t->vocab); }
bool cera_tokenizer_is_eog(const cera_tokenizer *t, int32_t id) { return in_range(t, id) && cera_vocab_is_eog(t->vocab, id); }
int32_t cera_tokenizer_find(const cera_tokenizer *t, const char *text) {
    return t && text ? cera_vocab_find(t->vocab, text, strlen(text)) : -1;
}
