/* unigram.c: the unigram tokenizer of SentencePiece (T5, XLM-R): the normalisation map, then the split of the text with the
 * largest sum of log probabilities (Viterbi; Kudo 2018, "Subword Regularization"). Linear in the text: each place tries the
 * tokens that begin there.
 *
 * The map ("precompiled_charsmap") is a double array after Darts-clone: units of 32 bits, the transitions from a node by base
 * XOR byte; a leaf's value is the offset of the replacement. It comes from a file, so every index is checked; a broken one
 * matches nothing. */
#include "text/vocab_int.h"

#include <float.h>
#include "base/json.h"
#include "base/utf8.h"

static const float unknown_penalty = 10.0f; /* SentencePiece's kUnkPenalty */

/* ---- creation ------------------------------------------------------------------------------------------------------- */

static cera_status read_charsmap(cera_vocab *v, cera_text_view m, cera_error *e) {
    if (m.size == 0) return CERA_OK;
    const char *key = "tokenizer.ggml.precompiled_charsmap";
    uint8_t head[4] = {0};
    if (m.size >= 4) memcpy(head, m.text, 4);
    uint32_t size = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
    if (m.size < 4 || size % 4 != 0 || size >= m.size - 4) {
        return cera_fail(e, CERA_ERR_FORMAT, "%s: %zu bytes cannot hold an array of %u bytes and its replacements", key, m.size,
                         size);
    }
    if (m.text[m.size - 1] != 0) return cera_fail(e, CERA_ERR_FORMAT, "%s: the last replacement does not end", key);
    uint32_t *units = cera_arena_alloc(v->arena, size / 4, 4);
    v->replacements = cera_arena_text(v->arena, m.text + 4 + size, m.size - 4 - size);
    if (!units || !v->replacements) return cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", key);
    for (uint32_t i = 0; i < size / 4; i++) {
        const uint8_t *b = (const uint8_t *)m.text + 4 + (size_t)i * 4;
        units[i] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    v->charsmap = units;
    v->n_charsmap = size / 4;
    v->n_replacements = m.size - 4 - size;
    return CERA_OK;
}

static bool is_piece(const cera_vocab *v, uint32_t id) {
    uint8_t type = v->types[id];
    return (type == CERA_TOKEN_NORMAL || type == CERA_TOKEN_USER || type == CERA_TOKEN_UNUSED) &&
           v->bytes_at[id + 1] > v->bytes_at[id];
}

cera_status cera_unigram_create(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    size_t total = 0;
    float lowest = FLT_MAX;
    trie_builder *b;
    CERA_TRY(read_charsmap(v, d->charsmap, e));
    for (uint32_t id = 0; id < (uint32_t)v->n_tokens; id++) {
        total += is_piece(v, id) ? v->bytes_at[id + 1] - v->bytes_at[id] : 0;
        if (v->types[id] == CERA_TOKEN_NORMAL && v->scores[id] < lowest) lowest = v->scores[id];
    }
    v->unknown_score = (lowest == FLT_MAX ? 0.0f : lowest) - unknown_penalty;
    CERA_TRY(cera_trie_begin(total, &b, e));
    for (uint32_t id = 0; id < (uint32_t)v->n_tokens; id++) {
        if (is_piece(v, id)) cera_trie_add(b, vocab_bytes(v, id), (int32_t)id);
    }
    return cera_trie_finish(b, v->arena, &v->pieces, e);
}

/* ---- normalisation ---------------------------------------------------------------------------------------------------- */

static uint32_t unit_at(const cera_vocab *v, uint32_t i) { return i < v->n_charsmap ? v->charsmap[i] : 0; }

/* Base of a node: 21 bits, or 13 bits times 256. */
static uint32_t base_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

/* The longest prefix of text that the map replaces: its length, 0 when there is none. */
static size_t find_replacement(const cera_vocab *v, const char *text, size_t n, cera_text_view *out) {
    size_t found = 0;
    uint32_t node = v->n_charsmap ? base_of(v->charsmap[0]) : 0;
    for (size_t i = 0; v->n_charsmap && i < n; i++) {
        uint8_t byte = (uint8_t)text[i];
        node ^= byte;
        uint32_t unit = unit_at(v, node);
        if (byte == 0 || (unit & 0x800000ffu) != byte) break;
        node ^= base_of(unit);
        if (unit >> 8 & 1) { /* a key ends here; the value is the offset of its replacement */
            uint32_t at = unit_at(v, node) & 0x7fffffffu;
            if (at >= v->n_replacements) break;
            *out = (cera_text_view){v->replacements + at, strlen(v->replacements + at)};
            found = i + 1;
        }
    }
    return found;
}

/* The normal form of the next character or characters; returns how many bytes of text it takes. */
static size_t normalize_next(const cera_vocab *v, const char *text, size_t n, cera_text_view *out) {
    uint32_t code;
    size_t length = find_replacement(v, text, n, out);
    if (length) return length;
    length = (size_t)cera_utf8_decode(text, n, &code);
    *out = length ? (cera_text_view){text, length} : (cera_text_view){"\ufffd", 3};
    return length ? length : 1;
}

/* Spaces as SentencePiece has them: one before the text where the vocabulary says so; runs joined into one before each word,
 * and none at the end, where it removes extra white space. */
static void normalize_text(const cera_vocab *v, const char *text, size_t n, cera_buffer *b) {
    bool merge = v->remove_extra_whitespaces, prefix = v->add_space_prefix, in_word = false;
    for (size_t i = 0; i < n;) {
        cera_text_view t;
        i += normalize_next(v, text + i, n - i, &t);
        for (size_t k = 0; k < t.size; k++) {
            if (t.text[k] == ' ') {
                in_word = false;
                if (!merge) cera_buffer_add(b, " ", 1);
                continue;
            }
            if (!in_word && (prefix || merge)) {
                cera_buffer_add(b, " ", 1);
                prefix = false;
            }
            in_word = true;
            cera_buffer_add(b, t.text + k, 1);
        }
    }
}

/* ---- Viterbi ---------------------------------------------------------------------------------------------------------- */

/* The best split of the text before a place: its last token and where that begins. */
typedef struct best {
    double score;
    int32_t id; /* -1: one unknown character */
    uint32_t begin;
} best;

static void challenge(best *place, double score, int32_t id, size_t begin) {
    if (score > place->score) *place = (best){score, id, (uint32_t)begin};
}

static void find_best(const cera_vocab *v, const char *text, size_t n, best *places) {
    for (size_t i = 1; i <= n; i++) places[i].score = -DBL_MAX;
    places[0] = (best){0, -1, 0};
    for (size_t begin = 0; begin < n;) {
        uint32_t code, node = 0;
        size_t length = (size_t)cera_utf8_decode(text + begin, n - begin, &code);
        bool whole = false; /* some token is exactly this character */
        if (length == 0) length = 1;
        for (size_t end = begin + 1; end <= n; end++) {
            node = trie_child(v->pieces, node, (uint8_t)text[end - 1]);
            if (node == 0) break;
            int32_t id = v->pieces[node].id;
            if (id < 0) continue;
            if (end - begin == length) whole = true;
            double score = v->types[id] == CERA_TOKEN_USER ? 0.0 : (double)v->scores[id];
            challenge(&places[end], places[begin].score + score, id, begin);
        }
        if (!whole) challenge(&places[begin + length], places[begin].score + v->unknown_score, -1, begin);
        begin += length;
    }
}

static bool has_bytes(const cera_vocab *v, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (v->byte_ids[(uint8_t)text[i]] < 0) return false;
    }
    return true;
}

static cera_status push_bytes(encoder *x, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) CERA_TRY(cera_encoder_push(x, x->v->byte_ids[(uint8_t)text[i]]));
    return CERA_OK;
}

/* Walks back from the end, then hands the ids out forwards; neighbouring unknown characters are one unknown token, or their
 * bytes where the vocabulary has tokens for bytes. */
static cera_status push_best(encoder *x, const char *text, size_t n, best *places) {
    size_t count = 0;
    for (size_t at = n; at > 0; at = places[at].begin) count++;
    uint32_t *ends = cera_alloc(count, sizeof *ends);
    if (!ends) return cera_encoder_memory(x);
    size_t i = count;
    for (size_t at = n; at > 0; at = places[at].begin) ends[--i] = (uint32_t)at;
    cera_status status = CERA_OK;
    bool unknown = false;
    for (i = 0; i < count && status == CERA_OK; i++) {
        const best *p = &places[ends[i]];
        if (p->id >= 0)
            status = cera_encoder_push(x, p->id);
        else if (has_bytes(x->v, text + p->begin, ends[i] - p->begin))
            status = push_bytes(x, text + p->begin, ends[i] - p->begin);
        else if (!unknown)
            status = cera_encoder_unknown(x, (uint8_t)text[p->begin]);
        unknown = p->id < 0;
    }
    cera_free(ends);
    return status;
}

cera_status cera_encode_unigram(encoder *x, const char *text, size_t n) {
    cera_buffer b = {0};
    normalize_text(x->v, text, n, &b);
    cera_status status = CERA_OK;
    best *places = b.failed || b.size >= UINT32_MAX ? NULL : cera_alloc(b.size + 1, sizeof *places);
    if (!places) status = cera_encoder_memory(x);
    if (status == CERA_OK && b.size) {
        find_best(x->v, b.data, b.size, places);
        status = push_best(x, b.data, b.size, places);
    }
    cera_free(places);
    cera_buffer_deinit(&b);
    return status;
}
