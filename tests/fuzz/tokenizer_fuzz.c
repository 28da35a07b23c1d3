/* tokenizer_fuzz.c: fuzzes vocabularies and texts. The first byte says what follows: a tokenizer.json, a regex of a
 * pre-tokenizer, or the tokens of a vocabulary of one of the four kinds; behind it, parted by NULs, the text. Whatever comes
 * in: no crash, ids in range, pieces that cover the text, and the bytes back where the vocabulary knows all of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "text/pretokenize.h"
#include "text/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TOKENS = 64, MAX_TEXT = 4096 };

static void require(bool condition) {
    if (!condition) abort();
}

typedef struct input {
    const char *at, *end;
} input;

/* The bytes up to the next NUL, and past it. */
static cera_text_view take(input *in) {
    const char *begin = in->at, *nul = begin < in->end ? memchr(begin, 0, (size_t)(in->end - begin)) : NULL;
    const char *stop = nul ? nul : in->end;
    in->at = nul ? nul + 1 : in->end;
    return (cera_text_view){begin, (size_t)(stop - begin)};
}

static uint8_t take_byte(input *in) { return in->at < in->end ? (uint8_t)*in->at++ : 0; }

static cera_text_view rest(input *in) {
    size_t n = (size_t)(in->end - in->at);
    return (cera_text_view){in->at, n < MAX_TEXT ? n : MAX_TEXT};
}

static void use(const cera_vocab *v, cera_text_view text, unsigned flags, bool whole) {
    int32_t *ids;
    size_t n;
    cera_error e = {0};
    if (cera_vocab_tokenize(v, text.text, text.size, flags, &ids, &n, &e) != CERA_OK) {
        require(ids == NULL && n == 0 && e.message[0]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        require(ids[i] >= 0 && ids[i] < cera_vocab_size(v));
        cera_vocab_is_eog(v, ids[i]);
        cera_text_view t = cera_vocab_token_text(v, ids[i]);
        if (t.size) require(cera_vocab_find(v, t.text, t.size) >= -1);
    }
    char *back;
    size_t size;
    require(cera_vocab_detokenize(v, ids, n, true, true, &back, &size, NULL) == CERA_OK);
    if (whole) require(size == text.size && (size == 0 || memcmp(back, text.text, size) == 0));
    cera_free(back);
    cera_free(ids);
}

/* ---- tokenizer.json ---------------------------------------------------------------------------------------------------- */

static void fuzz_json(input *in) {
    cera_text_view json = take(in), config = take(in);
    cera_vocab *v;
    cera_error e = {0};
    if (cera_vocab_from_tokenizer_json(json.text, json.size, config.size ? config.text : NULL, config.size, &v, &e) !=
        CERA_OK) {
        require(v == NULL && e.message[0]);
        return;
    }
    use(v, rest(in), CERA_TOKENIZE_BOS | CERA_TOKENIZE_SPECIAL, false);
    use(v, rest(in), 0, false);
    cera_vocab_destroy(v);
}

/* ---- a regex ------------------------------------------------------------------------------------------------------------- */

typedef struct cover {
    const char *at;
} cover;

static cera_status check_piece(void *ctx, const char *piece, size_t n) {
    cover *c = ctx;
    require(piece == c->at && n > 0);
    c->at += n;
    return CERA_OK;
}

static void split(const char *const *stages, size_t n, cera_text_view text) {
    cera_pretok *p;
    cera_error e = {0};
    if (cera_pretok_create(stages, n, &p, &e) != CERA_OK) {
        require(p == NULL && e.message[0]);
        return;
    }
    cover c = {text.text};
    cera_status status = cera_pretok_split(p, text.text, text.size, check_piece, &c, NULL);
    require(status == CERA_ERR_LIMIT || (status == CERA_OK && c.at == text.text + text.size));
    cera_pretok_destroy(p);
}

static void fuzz_regex(input *in) {
    char pattern[512];
    cera_text_view t = take(in);
    size_t n = t.size < sizeof pattern - 1 ? t.size : sizeof pattern - 1;
    memcpy(pattern, t.text, n);
    pattern[n] = 0;
    const char *stage = pattern;
    split(&stage, 1, rest(in));
}

/* ---- a vocabulary ----------------------------------------------------------------------------------------------------------
 */

typedef struct tokens {
    cera_text_view texts[MAX_TOKENS + 256], merges[MAX_TOKENS];
    int64_t types[MAX_TOKENS + 256];
    float scores[MAX_TOKENS + 256];
    char bytes[256][8];
} tokens;

/* All 256 bytes as each kind spells them, so that nothing is unknown. */
static void add_bytes(tokens *t, cera_vocab_desc *d, bool alphabet) {
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; b++) {
        char *s = t->bytes[b];
        bool prints = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        unsigned code = prints ? b : next++;
        if (!alphabet)
            memcpy(s, (char[]){'<', '0', 'x', "0123456789ABCDEF"[b >> 4], "0123456789ABCDEF"[b & 15], '>', 0}, 7);
        else if (code < 128)
            s[0] = (char)code;
        else
            s[0] = (char)(0xc0 | code >> 6), s[1] = (char)(0x80 | (code & 63));
        t->texts[d->n_tokens] = (cera_text_view){s, strlen(s)};
        t->types[d->n_tokens++] = alphabet ? CERA_TOKEN_NORMAL : CERA_TOKEN_BYTE;
    }
}

/* Each token: type and score in one byte, then its text; up to an empty text. */
static void read_tokens(input *in, tokens *t, cera_vocab_desc *d) {
    for (int i = 0; i < MAX_TOKENS; i++) {
        uint8_t byte = take_byte(in);
        cera_text_view text = take(in);
        if (text.size == 0) break;
        if (memchr(text.text, ' ', text.size) && (byte & 7) == 7) {
            t->merges[d->n_merges++] = text;
            continue;
        }
        t->texts[d->n_tokens] = text;
        t->types[d->n_tokens] = 1 + (byte & 7) % 6;
        t->scores[d->n_tokens++] = -(float)(byte >> 3);
    }
}

static void fuzz_vocab(input *in, const char *model) {
    static tokens t;
    cera_vocab_desc d = {
        .model = model, .arch = "", .tokens = t.texts, .types = t.types, .scores = t.scores, .merges = t.merges};
    uint8_t options = take_byte(in), role = take_byte(in);
    const cera_pretok_info *info = cera_pretok_at(role % 80);
    memset(&t, 0, sizeof t);
    d.pre = info ? info->name : "default";
    d.bos = d.eos = d.eot = d.eom = d.unk = d.sep = d.pad = d.mask = -1;
    d.fim_pre = d.fim_suf = d.fim_mid = d.fim_pad = d.fim_rep = d.fim_sep = -1;
    d.add_bos = d.add_eos = d.add_sep = -1;
    d.add_space_prefix = options & 1;
    d.remove_extra_whitespaces = options >> 1 & 1;
    d.escape_whitespaces = d.ignore_merges = d.lowercase = d.strip_accents = -1;
    bool bytes = options & 4, raw = info && info->raw;
    if (bytes) add_bytes(&t, &d, strcmp(model, "gpt2") == 0 && !raw);
    read_tokens(in, &t, &d);
    d.unk = options & 8 ? role : -1;
    cera_vocab *v;
    cera_error e = {0};
    if (cera_vocab_create(&d, &v, &e) != CERA_OK) {
        require(v == NULL && e.message[0]);
        return;
    }
    /* Byte-level BPE gives all bytes back; user-defined tokens may be spelled like others. */
    use(v, rest(in), options >> 4, bytes && strcmp(model, "gpt2") == 0 && !raw && !(options >> 4 & CERA_TOKENIZE_BOS));
    cera_vocab_destroy(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const models[] = {"gpt2", "llama", "t5", "bert"};
    input in = {(const char *)data, (const char *)data + size};
    uint8_t kind = take_byte(&in) % 8;
    if (kind == 0)
        fuzz_json(&in);
    else if (kind == 1)
        fuzz_regex(&in);
    else
        fuzz_vocab(&in, models[(kind - 2) % 4]);
    return 0;
}
