/* vocab.c: makes a vocabulary from a description, and answers what it holds. Owns the meaning of texts and types; the tables
 * are vocab_table.c's, special tokens vocab_special.c's, the tokenizers tokenize.c's and its like. */
#include "text/vocab_int.h"

#include <math.h>
#include "base/utf8.h"

/* ---- texts and bytes ------------------------------------------------------------------------------------------------ */

/* GPT-2 spells bytes as printable characters: those of Latin-1 that print as themselves, the rest from U+0100 on. */
static bool prints(unsigned byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }

int cera_alphabet_byte(uint32_t code) {
    if (code < 0x100) return prints(code) ? (int)code : -1;
    if (code > 0x143) return -1;
    unsigned index = code - 0x100; /* 0..32, 33..66 are 0x7f..0xa0, the last is 0xad */
    return index < 33 ? (int)index : index < 67 ? (int)(0x7f + index - 33) : 0xad;
}

static size_t spell_alphabet(const char *text, size_t n, char *out) {
    size_t at = 0;
    for (size_t i = 0; i < n; at++) {
        uint8_t c = (uint8_t)text[i];
        if (c >= 0x21 && c <= 0x7e) { /* nearly all */
            out[at] = text[i++];
            continue;
        }
        uint32_t code = c;
        int length = c < 128 ? 1 : cera_utf8_decode(text + i, n - i, &code);
        int byte = length ? cera_alphabet_byte(code) : -1;
        if (byte < 0) return 0;
        out[at] = (char)byte;
        i += (size_t)length;
    }
    return at;
}

static size_t spell_spaces(const char *text, size_t n, char *out) {
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        bool space = n - i >= 3 && memcmp(text + i, "\u2581", 3) == 0;
        out[at++] = space ? ' ' : text[i];
        i += space ? 3 : 1;
    }
    return at;
}

size_t cera_vocab_spell(const cera_vocab *v, const char *text, size_t n, char *out) {
    if (v->kind == VOCAB_BPE && !v->raw) return spell_alphabet(text, n, out);
    if (v->escapes_spaces) return spell_spaces(text, n, out);
    memcpy(out, text, n);
    return n;
}

/* "<0x0A>": the byte, else -1. */
static int byte_token(cera_text_view t) {
    static const char digits[] = "0123456789ABCDEF";
    if (t.size != 6 || memcmp(t.text, "<0x", 3) != 0 || t.text[5] != '>') return -1;
    const char *high = memchr(digits, t.text[3], 16), *low = memchr(digits, t.text[4], 16);
    return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

/* Whether text may become this token by merging or matching: never a control token, however it is written. The token of a byte
 * stands for no text. A user-defined token is cut out of the text where it stands, but in SentencePiece vocabularies merges
 * pass through it. */
static bool ordinary(const cera_vocab *v, uint32_t id) {
    switch (v->types[id]) {
    case CERA_TOKEN_NORMAL:
    case CERA_TOKEN_UNUSED: return true;
    case CERA_TOKEN_BYTE: return byte_token(vocab_text(v, id)) < 0;
    case CERA_TOKEN_USER: return v->kind == VOCAB_SPM || v->raw;
    default: return false;
    }
}

static size_t token_bytes(const cera_vocab *v, uint32_t id, char *out, bool *from_text) {
    cera_text_view t = vocab_text(v, id);
    int byte = v->types[id] == CERA_TOKEN_BYTE ? byte_token(t) : -1;
    *from_text = false;
    if (byte >= 0) {
        *out = (char)byte;
        return 1;
    }
    if (ordinary(v, id)) {
        size_t n = cera_vocab_spell(v, t.text, t.size, out);
        /* A space in the spelling of a SentencePiece token is not the space of the text, which is spelled U+2581. */
        *from_text = n > 0 && !(v->escapes_spaces && memchr(t.text, ' ', t.size));
        if (n > 0 || t.size == 0) return n;
    }
    if (v->types[id] == CERA_TOKEN_USER && v->escapes_spaces) return spell_spaces(t.text, t.size, out);
    memcpy(out, t.text, t.size);
    return t.size;
}

/* ---- creation ------------------------------------------------------------------------------------------------------- */

static cera_status copy_texts(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    size_t n = d->n_tokens, total = 0;
    for (size_t i = 0; i < n; i++) {
        if (d->tokens[i].size > CERA_VOCAB_MAX_BYTES - total) {
            return cera_fail(e, CERA_ERR_LIMIT, "tokenizer.ggml.tokens: the texts exceed %d bytes at token %zu",
                             CERA_VOCAB_MAX_BYTES, i);
        }
        total += d->tokens[i].size;
    }
    char *texts = cera_arena_alloc(v->arena, total + 1, 1);
    v->text_at = cera_arena_alloc(v->arena, n + 1, sizeof *v->text_at);
    v->types = cera_arena_alloc(v->arena, n, 1);
    v->flags = cera_arena_alloc(v->arena, n, 1);
    v->scores = cera_arena_alloc(v->arena, n, sizeof *v->scores);
    v->bytes = cera_alloc(total + 16, 1);
    v->bytes_at = cera_alloc(n + 1024, sizeof *v->bytes_at);
    if (!texts || !v->text_at || !v->types || !v->flags || !v->scores || !v->bytes || !v->bytes_at) {
        return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory for %zu tokens", n);
    }
    v->texts = texts;
    v->bytes_capacity = total + 16;
    v->symbol_capacity = n + 1024;
    for (size_t i = 0; i < n; i++) {
        memcpy(texts + v->text_at[i], d->tokens[i].text, d->tokens[i].size);
        v->text_at[i + 1] = v->text_at[i] + (uint32_t)d->tokens[i].size;
    }
    return CERA_OK;
}

static cera_status copy_types(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    for (size_t i = 0; i < d->n_tokens; i++) {
        int64_t type = d->types ? d->types[i] : CERA_TOKEN_NORMAL;
        if (type < 0 || type > CERA_TOKEN_BYTE) {
            return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.token_type: entry %zu is %lld; it must be 0 to %d", i,
                             (long long)type, CERA_TOKEN_BYTE);
        }
        v->types[i] = type == 0 ? CERA_TOKEN_NORMAL : (uint8_t)type;
        v->scores[i] = d->scores ? d->scores[i] : 0.0f;
        if (isnan(v->scores[i])) return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.scores: entry %zu is not a number", i);
    }
    return CERA_OK;
}

static void spell_token(cera_vocab *v, uint32_t id, bool *from_text) {
    char *bytes = v->bytes + v->bytes_at[id];
    size_t size = token_bytes(v, id, bytes, from_text);
    v->bytes_at[id + 1] = v->bytes_at[id] + (uint32_t)size;
    if (*from_text && size > v->max_bytes) v->max_bytes = size;
    if (*from_text) string_table_prefetch(&v->by_bytes, bytes, size);
}

enum { INDEX_BATCH = 16 }; /* tokens whose places in the table are fetched together, as with merges (vocab_table.c) */

/* Bytes of every token, and the two tables. */
static cera_status index_tokens(cera_vocab *v, cera_error *e) {
    size_t n = (size_t)v->n_tokens;
    CERA_TRY(cera_string_table_init(&v->by_bytes, v->arena, n, e));
    CERA_TRY(cera_string_table_init(&v->by_text, v->arena, 0, e));
    v->by_bytes.blob = v->bytes;
    v->by_bytes.at = v->bytes_at;
    v->by_text.blob = v->texts;
    v->by_text.at = v->text_at;
    bool from_text[INDEX_BATCH];
    for (uint32_t first = 0; first < n; first += INDEX_BATCH) {
        uint32_t count = n - first < INDEX_BATCH ? (uint32_t)n - first : INDEX_BATCH;
        for (uint32_t i = 0; i < count; i++) spell_token(v, first + i, &from_text[i]);
        for (uint32_t i = 0; i < count; i++) {
            string_table *table = from_text[i] ? &v->by_bytes : &v->by_text;
            if (v->text_at[first + i + 1] == v->text_at[first + i]) continue; /* an empty token is never met */
            CERA_TRY(cera_string_table_add(table, v->arena, first + i, e));
        }
    }
    v->n_symbols = (uint32_t)n;
    return CERA_OK;
}

/* Tokens of lone bytes: "<0x0A>" where text is UTF-8, the byte's character where it is spelled in GPT-2's alphabet. */
static void index_bytes(cera_vocab *v) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char c = (char)byte, text[8] = {'<', '0', 'x', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15], '>', 0, 0};
        if (v->kind == VOCAB_BPE && !v->raw) {
            v->byte_ids[byte] = string_table_find(&v->by_bytes, &c, 1);
            if (v->byte_ids[byte] >= 0) continue;
            int n = 0;
            for (uint32_t code = 0; code < 0x144 && n == 0; code++)
                n = cera_alphabet_byte(code) == (int)byte ? cera_utf8_encode(code, text) : 0;
            v->byte_ids[byte] = string_table_find(&v->by_text, text, (size_t)n);
        } else {
            v->byte_ids[byte] = string_table_find(&v->by_text, text, 6);
            if (v->byte_ids[byte] < 0) v->byte_ids[byte] = string_table_find(&v->by_bytes, text, 6);
            if (v->byte_ids[byte] < 0 && byte >= 128) v->byte_ids[byte] = string_table_find(&v->by_bytes, &c, 1);
        }
    }
}

/* Byte-level BPE starts from single bytes; one that no token and no merge mentions starts as a symbol of its own. */
static cera_status index_byte_symbols(cera_vocab *v, cera_error *e) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        int32_t id = string_table_find(&v->by_bytes, &c, 1);
        v->byte_symbols[byte] = id >= 0 ? (uint32_t)id : v->n_symbols + byte; /* no pair holds such a number */
    }
    if (v->n_symbols > UINT32_MAX - 512) return cera_fail(e, CERA_ERR_LIMIT, "vocabulary: too many symbols");
    return CERA_OK;
}

static int chosen(int value, bool fallback) { return value < 0 ? fallback : value != 0; }

static cera_status set_kind(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    static const struct {
        const char *model;
        vocab_kind kind;
    } kinds[] = {
        {"llama", VOCAB_SPM}, {"gpt2", VOCAB_BPE}, {"gemma4", VOCAB_BPE}, {"bert", VOCAB_WORDPIECE}, {"t5", VOCAB_UNIGRAM}};
    if (!d->model) return cera_fail(e, CERA_ERR_NOT_FOUND, "tokenizer.ggml.model is missing");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(d->model, kinds[i].model) != 0) continue;
        v->kind = kinds[i].kind;
        return CERA_OK;
    }
    return cera_fail(e, CERA_ERR_UNSUPPORTED,
                     "tokenizer.ggml.model is \"%.64s\"; supported are llama, gpt2, gemma4, bert and t5", d->model);
}

/* The pre-tokenizer of the BPE kinds, and the rules that its name brings. */
static cera_status set_pretokenizer(cera_vocab *v, const cera_vocab_desc *d, const vocab_rules *rules, bool *adds_bos,
                                    cera_error *e) {
    *adds_bos = false;
    if (v->kind != VOCAB_BPE) return CERA_OK;
    if (rules && rules->stages)
        return rules->n_stages ? cera_pretok_create(rules->stages, rules->n_stages, &v->pretok, e) : CERA_OK;
    const char *name = strcmp(d->model, "gemma4") == 0 ? "gemma4" : d->pre && *d->pre ? d->pre : "default";
    const cera_pretok_info *info = cera_pretok_find(name);
    if (!info && d->allow_unknown_pre) info = cera_pretok_find("default");
    if (!info) {
        return cera_fail(e, CERA_ERR_UNSUPPORTED,
                         "tokenizer.ggml.pre is \"%.64s\", which is not known; --allow-unknown-tokenizer splits as \"default\" "
                         "does, with other tokens "
                         "than the model was trained on",
                         name);
    }
    size_t n = 0;
    while (info->stages[n]) n++;
    v->raw = info->raw;
    v->escapes_spaces = info->escapes_spaces;
    v->ignore_merges = info->ignore_merges;
    *adds_bos = info->adds_bos;
    return cera_pretok_create(info->stages, n, &v->pretok, e);
}

static void set_rules(cera_vocab *v, const cera_vocab_desc *d, const vocab_rules *rules, bool adds_bos) {
    bool spm = v->kind == VOCAB_SPM, wordpiece = v->kind == VOCAB_WORDPIECE, unigram = v->kind == VOCAB_UNIGRAM;
    v->add_bos = chosen(d->add_bos, spm || wordpiece || adds_bos);
    v->add_eos = chosen(d->add_eos, unigram);
    v->add_sep = chosen(d->add_sep, wordpiece);
    v->add_space_prefix = chosen(d->add_space_prefix, spm || unigram);
    v->remove_extra_whitespaces = chosen(d->remove_extra_whitespaces, false);
    v->ignore_merges = chosen(d->ignore_merges, v->ignore_merges);
    v->escapes_spaces = chosen(d->escape_whitespaces, v->escapes_spaces || spm || wordpiece || unigram);
    v->lowercase = chosen(d->lowercase, true);
    v->strip_accents = chosen(d->strip_accents, v->lowercase);
    v->fuse_unk = spm;
    if (!rules) return;
    v->raw = rules->raw;
    v->fuse_unk = rules->fuse_unk;
    v->nfc = rules->nfc;
    v->prefix_first_only = rules->prefix_first_only;
    v->prefix_unless_space = rules->prefix_unless_space;
    v->max_word = rules->max_word;
}

/* Where text is bytes or words, no tokenizer puts a space before it, whatever the file says. */
static void settle_prefix(cera_vocab *v) {
    if (v->kind == VOCAB_WORDPIECE || (v->kind == VOCAB_BPE && !v->raw)) v->add_space_prefix = false;
}

static cera_status create(cera_vocab *v, const cera_vocab_desc *d, const vocab_rules *rules, cera_error *e) {
    bool adds_bos;
    CERA_TRY(set_kind(v, d, e));
    CERA_TRY(set_pretokenizer(v, d, rules, &adds_bos, e));
    set_rules(v, d, rules, adds_bos);
    settle_prefix(v);
    v->n_tokens = (int32_t)d->n_tokens;
    CERA_TRY(copy_texts(v, d, e));
    CERA_TRY(copy_types(v, d, e));
    CERA_TRY(cera_vocab_set_ids(v, d, e));
    if (rules && rules->flags) memcpy(v->flags, rules->flags, d->n_tokens);
    cera_vocab_set_eog(v, d);
    CERA_TRY(index_tokens(v, e));
    index_bytes(v);
    if (v->kind == VOCAB_BPE) CERA_TRY(cera_pairs_build(v, d, e));
    if (v->kind == VOCAB_BPE && !v->raw) CERA_TRY(index_byte_symbols(v, e));
    if (v->kind == VOCAB_SPM || v->raw) {
        v->code_pairs = cera_arena_alloc(v->arena, CODE_PAIR_BITS / 64, 8);
        if (!v->code_pairs) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory");
        cera_pairs_of_tokens(v);
    }
    if (v->kind == VOCAB_UNIGRAM) CERA_TRY(cera_unigram_create(v, d, e));
    return cera_vocab_build_special(v, e);
}

cera_status cera_vocab_create_with(const cera_vocab_desc *d, const vocab_rules *rules, cera_vocab **out, cera_error *e) {
    *out = NULL;
    if (d->n_tokens == 0 || d->n_tokens > CERA_VOCAB_MAX_TOKENS) {
        return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.tokens has %zu entries; it must have 1 to %d", d->n_tokens,
                         CERA_VOCAB_MAX_TOKENS);
    }
    cera_vocab *v = cera_alloc(1, sizeof *v);
    if (!v) return cera_fail(e, CERA_ERR_MEMORY, "vocabulary: out of memory");
    cera_status status = cera_arena_create(0, &v->arena, e);
    if (status == CERA_OK) status = create(v, d, rules, e);
    if (status != CERA_OK) {
        cera_vocab_destroy(v);
        return status;
    }
    *out = v;
    return CERA_OK;
}

cera_status cera_vocab_create(const cera_vocab_desc *desc, cera_vocab **out, cera_error *e) {
    return cera_vocab_create_with(desc, NULL, out, e);
}

void cera_vocab_destroy(cera_vocab *v) {
    if (!v) return;
    cera_pretok_destroy(v->pretok);
    cera_free(v->bytes);
    cera_free(v->bytes_at);
    cera_arena_destroy(v->arena);
    cera_free(v);
}

/* ---- questions ------------------------------------------------------------------------------------------------------ */

static bool in_range(const cera_vocab *v, int32_t id) { return id >= 0 && id < v->n_tokens; }

int32_t cera_vocab_size(const cera_vocab *v) { return v->n_tokens; }
int32_t cera_vocab_bos(const cera_vocab *v) { return v->bos; }
int32_t cera_vocab_eos(const cera_vocab *v) { return v->eos; }
bool cera_vocab_adds_bos(const cera_vocab *v) { return v->add_bos && v->bos >= 0; }
bool cera_vocab_adds_eos(const cera_vocab *v) { return v->add_eos && v->eos >= 0; }
bool cera_vocab_is_eog(const cera_vocab *v, int32_t id) { return in_range(v, id) && (v->flags[id] & TOKEN_EOG); }

cera_token_type cera_vocab_token_type(const cera_vocab *v, int32_t id) {
    return in_range(v, id) ? (cera_token_type)v->types[id] : CERA_TOKEN_UNKNOWN;
}

cera_text_view cera_vocab_token_text(const cera_vocab *v, int32_t id) {
    return in_range(v, id) ? vocab_text(v, (uint32_t)id) : (cera_text_view){"", 0};
}

cera_text_view cera_vocab_token_bytes(const cera_vocab *v, int32_t id, bool special) {
    if (!in_range(v, id)) return (cera_text_view){"", 0};
    bool hidden = v->types[id] == CERA_TOKEN_CONTROL || v->types[id] == CERA_TOKEN_UNKNOWN;
    return hidden && !special ? (cera_text_view){"", 0} : vocab_bytes(v, (uint32_t)id);
}

int32_t cera_vocab_find(const cera_vocab *v, const char *text, size_t size) {
    int32_t id = string_table_find(&v->by_text, text, size);
    if (id >= 0 || size == 0 || size > CERA_VOCAB_MAX_BYTES) return id;
    char small[256], *spelled = size <= sizeof small ? small : cera_alloc(size, 1);
    if (!spelled) return VOCAB_NOT_FOUND;
    size_t n = cera_vocab_spell(v, text, size, spelled);
    id = n ? string_table_find(&v->by_bytes, spelled, n) : VOCAB_NOT_FOUND;
    if (spelled != small) cera_free(spelled);
    if (id >= v->n_tokens) return VOCAB_NOT_FOUND; /* a symbol of the merges only */
    if (id < 0) return id;
    cera_text_view found = vocab_text(v, (uint32_t)id);
    return found.size == size && memcmp(found.text, text, size) == 0 ? id : VOCAB_NOT_FOUND;
}
