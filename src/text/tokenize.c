/* tokenize.c: cera_vocab_tokenize. Cuts special tokens out of the text, hands the fragments between them to the vocabulary's
 * kind of tokenizer, and adds BOS, EOS and SEP. Owns what lasts for one call: the growing ids, the words met before, scratch
 * texts. */
#include "text/vocab_int.h"

#include "base/json.h"
#include "text/unicode.h"

typedef struct scratch_block {
    struct scratch_block *next;
    char bytes[];
} scratch_block;

cera_status cera_encoder_memory(encoder *x) {
    return cera_fail(x->e, CERA_ERR_MEMORY, "tokenizer: out of memory after %zu tokens", x->n_ids);
}

cera_status cera_encoder_push(encoder *x, int32_t id) {
    if (x->n_ids == x->capacity) {
        size_t capacity = x->capacity ? x->capacity * 2 : 64;
        int32_t *ids = cera_alloc_grow(x->ids, x->capacity, capacity, sizeof *ids);
        if (!ids) return cera_encoder_memory(x);
        x->ids = ids;
        x->capacity = capacity;
    }
    x->ids[x->n_ids++] = id;
    x->last_unk = false;
    return CERA_OK;
}

cera_status cera_encoder_unknown(encoder *x, uint8_t byte) {
    if (x->v->unk < 0) {
        return cera_fail(x->e, CERA_ERR_UNSUPPORTED,
                         "tokenizer: the vocabulary has no token for byte 0x%02X and no unknown token", byte);
    }
    if (x->last_unk && x->v->fuse_unk) return CERA_OK;
    CERA_TRY(cera_encoder_push(x, x->v->unk));
    x->last_unk = true;
    return CERA_OK;
}

char *cera_encoder_scratch(encoder *x, size_t n) {
    if (n > SIZE_MAX - sizeof(scratch_block)) return NULL;
    scratch_block *block = cera_alloc(sizeof *block + n, 1);
    if (!block) return NULL;
    block->next = x->scratch;
    x->scratch = block;
    return block->bytes;
}

static void encoder_deinit(encoder *x) {
    while (x->scratch) {
        scratch_block *next = x->scratch->next;
        cera_free(x->scratch);
        x->scratch = next;
    }
    cera_free(x->words);
    cera_free(x->work);
}

/* Words are worth keeping once a text is long enough to repeat them. */
static cera_status encoder_init(encoder *x, size_t n) {
    size_t size = 64;
    if (n < 256 || x->v->kind == VOCAB_WORDPIECE || x->v->kind == VOCAB_UNIGRAM) return CERA_OK;
    while (size < n / 8 && size < 16384) size *= 2;
    x->words = cera_alloc(size, sizeof *x->words);
    if (!x->words) return cera_encoder_memory(x);
    x->word_mask = size - 1;
    return CERA_OK;
}

/* ---- fragments ------------------------------------------------------------------------------------------------------ */

static cera_status normalize(encoder *x, const char **text, size_t *n) {
    cera_buffer b = {0};
    cera_unicode_nfc(*text, *n, &b);
    char *copy = b.failed ? NULL : cera_encoder_scratch(x, b.size + 1);
    if (copy && b.size) memcpy(copy, b.data, b.size);
    *n = b.size;
    cera_buffer_deinit(&b);
    if (!copy) return cera_encoder_memory(x);
    *text = copy;
    return CERA_OK;
}

static cera_status encode_fragment(encoder *x, const char *text, size_t n, bool prefix) {
    const cera_vocab *v = x->v;
    if (n == 0) return CERA_OK;
    if (v->nfc) CERA_TRY(normalize(x, &text, &n));
    if (v->kind == VOCAB_WORDPIECE) return cera_encode_wordpiece(x, text, n);
    if (v->kind == VOCAB_UNIGRAM) return cera_encode_unigram(x, text, n);
    if (v->kind == VOCAB_BPE && !v->raw) return cera_encode_bpe(x, text, n);
    bool escaped = v->escapes_spaces && n >= 3 && memmem(text, n, "\u2581", 3);
    if (v->prefix_unless_space && (text[0] == ' ' || (n >= 3 && memcmp(text, "\u2581", 3) == 0))) prefix = false;
    if (!prefix && !escaped) return cera_encode_sentences(x, text, n);
    char *copy = cera_encoder_scratch(x, n + 1); /* the space prefix before it, and U+2581 as the space that it means */
    if (!copy) return cera_encoder_memory(x);
    size_t at = 0;
    if (prefix) copy[at++] = ' ';
    at += cera_vocab_spell(v, text, n, copy + at);
    return cera_encode_sentences(x, copy, at);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next special token at or behind text[at]: its place, or n when there is none. */
static size_t find_special(const cera_vocab *v, const char *text, size_t at, size_t n, bool special, int32_t *id) {
    for (; at < n; at++) {
        uint8_t byte = (uint8_t)text[at];
        if (!(special ? v->begins_special[byte] : v->begins_user[byte])) continue;
        *id = cera_vocab_match_special(v, text + at, n - at, special);
        if (*id >= 0) return at;
    }
    *id = -1;
    return n;
}

static cera_status encode_text(encoder *x, const char *text, size_t n, unsigned flags) {
    const cera_vocab *v = x->v;
    bool special = flags & CERA_TOKENIZE_SPECIAL, prefix = v->add_space_prefix && !(flags & CERA_TOKENIZE_NO_SPACE_PREFIX);
    for (size_t at = 0; at < n;) {
        int32_t id;
        size_t found = find_special(v, text, at, n, special, &id), end = found;
        if (id >= 0 && (v->flags[id] & TOKEN_LSTRIP)) {
            while (end > at && is_space(text[end - 1])) end--;
        }
        if (end > at) {
            CERA_TRY(encode_fragment(x, text + at, end - at, prefix));
            prefix = false;
        }
        if (id < 0) break;
        CERA_TRY(cera_encoder_push(x, id));
        prefix = v->add_space_prefix && !v->prefix_first_only;
        at = found + (v->text_at[id + 1] - v->text_at[id]);
        if (v->flags[id] & TOKEN_RSTRIP) {
            while (at < n && is_space(text[at])) at++;
        }
    }
    return CERA_OK;
}

static cera_status encode_all(encoder *x, const char *text, size_t n, unsigned flags) {
    const cera_vocab *v = x->v;
    bool add = flags & CERA_TOKENIZE_BOS;
    CERA_TRY(encoder_init(x, n));
    if (add && cera_vocab_adds_bos(v)) CERA_TRY(cera_encoder_push(x, v->bos));
    CERA_TRY(encode_text(x, text, n, flags));
    if (add && cera_vocab_adds_eos(v)) CERA_TRY(cera_encoder_push(x, v->eos));
    if (add && v->add_sep && v->sep >= 0) CERA_TRY(cera_encoder_push(x, v->sep));
    return CERA_OK;
}

cera_status cera_vocab_tokenize(const cera_vocab *v, const char *text, size_t n, unsigned flags, int32_t **ids, size_t *n_ids,
                                cera_error *e) {
    encoder x = {.v = v, .e = e};
    *ids = NULL;
    *n_ids = 0;
    if (n >= UINT32_MAX / 2)
        return cera_fail(e, CERA_ERR_LIMIT, "tokenizer: a text of %zu bytes; at most %u are taken", n, UINT32_MAX / 2);
    cera_status status = encode_all(&x, text, n, flags);
    encoder_deinit(&x);
    if (status != CERA_OK) {
        cera_free(x.ids);
        return status;
    }
    *ids = x.ids;
    *n_ids = x.n_ids;
    return CERA_OK;
}
