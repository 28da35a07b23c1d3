/* wordpiece.c: BERT's tokenizer: clean and fold the text, cut it into words and punctuation, then take the longest tokens from
 * the left of each word. A word that cannot be covered is one unknown token. As in GGUF files a word's first token is spelled
 * with U+2581 (a space in its bytes), the others without. */
#include "text/vocab_int.h"

#include "base/json.h"
#include "base/utf8.h"
#include "text/unicode.h"

/* Ideographs that are words of their own. The last but two begins at 2b920, not at 2b820 where the block does: so it is in the
 * implementation that the vocabularies are used with, and llama.cpp follows it. */
static bool is_ideograph(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* Punctuation as BERT has it: Unicode's, and every printable ASCII character that is no letter or digit. */
static bool is_punctuation(uint32_t c, uint8_t category) {
    if (CERA_CATS_P >> category & 1) return true;
    return c < 127 && (CERA_CATS_S >> category & 1);
}

/* The word with its leading space. Greedy from the left; the word's bytes before the first failure are taken back. */
static cera_status push_word(encoder *x, const char *word, size_t n) {
    const cera_vocab *v = x->v;
    size_t before = x->n_ids, characters = 0;
    for (size_t i = 1; i < n; i++) characters += ((uint8_t)word[i] & 0xc0) != 0x80;
    if (v->max_word && characters > v->max_word) return cera_encoder_unknown(x, (uint8_t)word[1]);
    for (size_t at = 0; at < n;) {
        int32_t id = VOCAB_NOT_FOUND;
        size_t length = n - at < v->max_bytes ? n - at : v->max_bytes;
        for (; length > 0 && id < 0; length--) {
            id = string_table_find(&v->by_bytes, word + at, length);
            if (id >= 0) break;
        }
        if (id < 0) {
            x->n_ids = before;
            return cera_encoder_unknown(x, n > 1 ? (uint8_t)word[1] : 0);
        }
        CERA_TRY(cera_encoder_push(x, id));
        at += length;
    }
    return CERA_OK;
}

static cera_status end_word(encoder *x, cera_buffer *word) {
    if (word->failed) return cera_encoder_memory(x);
    cera_status status = word->size > 1 ? push_word(x, word->data, word->size) : CERA_OK;
    word->size = 0;
    cera_buffer_add(word, " ", 1);
    return status;
}

static cera_status take_character(encoder *x, cera_buffer *word, uint32_t code) {
    const cera_vocab *v = x->v;
    uint8_t properties = cera_unicode_properties(code), category = properties & CERA_UNICODE_CATEGORY;
    bool blank = code == '\t' || code == '\n' || code == '\r';
    if (code == 0 || code == 0xfffd || ((CERA_CATS_C >> category & 1) && !blank)) return CERA_OK;
    if (properties & CERA_UNICODE_WHITE_SPACE) return end_word(x, word);
    if (v->strip_accents && category == CERA_CAT_MN) return CERA_OK;
    char bytes[4];
    size_t length = (size_t)cera_utf8_encode(v->lowercase ? cera_unicode_lowercase(code) : code, bytes);
    bool alone = is_punctuation(code, category) || is_ideograph(code);
    if (alone) CERA_TRY(end_word(x, word));
    cera_buffer_add(word, bytes, length);
    return alone ? end_word(x, word) : CERA_OK;
}

static cera_status encode_words(encoder *x, const char *text, size_t n, cera_buffer *word) {
    cera_buffer_add(word, " ", 1);
    for (size_t i = 0; i < n;) {
        uint32_t code;
        int length = cera_utf8_decode(text + i, n - i, &code);
        if (length)
            CERA_TRY(take_character(x, word, code)); /* a byte that is no character is dropped, as control characters are */
        i += length ? (size_t)length : 1;
    }
    return end_word(x, word);
}

cera_status cera_encode_wordpiece(encoder *x, const char *text, size_t n) {
    cera_buffer folded = {0}, word = {0};
    if (x->v->strip_accents) {
        cera_unicode_nfd(text, n, &folded);
        text = folded.data;
        n = folded.size;
    }
    cera_status status = folded.failed ? cera_encoder_memory(x) : encode_words(x, text, n, &word);
    cera_buffer_deinit(&folded);
    cera_buffer_deinit(&word);
    return status;
}
