/* bpe.c: byte-pair merging, for byte-level BPE (ranks of merges) and SentencePiece BPE (scores of tokens).
 *
 * Both join the neighbours of the best rank first, the leftmost among equals, until no neighbours join. Short pieces look for
 * the best by scanning; long ones keep candidates in a heap over a linked list, O(n log n). Candidates that a later join made
 * stale are told by the sizes of their halves. A piece that was met before in the same call is copied from where its ids lie.
 *
 * SentencePiece text has no pre-tokenizer: the whole text is one piece. It is cut all the same wherever two neighbouring
 * characters stand next to each other in no token of the vocabulary: no join can cross such a place, so the result is the same,
 * and words are short. */
#include "text/vocab_int.h"

#include "base/utf8.h"

enum { SHORT_PIECE = 32, NO_RANK = -1 };

/* A run of bytes of the piece. */
typedef struct part {
    uint32_t begin, size;
    int32_t symbol; /* byte-level: index into the vocabulary's symbols; SentencePiece: token, -1 for a character that is none */
} part;

typedef struct candidate {
    uint32_t rank; /* smaller is better */
    int32_t symbol;
} candidate;

/* How two neighbours join; false: they do not. */
typedef bool (*join_fn)(const cera_vocab *v, const char *piece, const part *left, const part *right, candidate *out);

static inline bool join_pair(const cera_vocab *v, const char *piece, const part *left, const part *right, candidate *out) {
    (void)piece;
    if (left->symbol < 0 || right->symbol < 0) return false;
    const pair_slot *s = pair_find(v, (uint32_t)left->symbol, (uint32_t)right->symbol);
    if (!s) return false;
    *out = (candidate){s->rank, (int32_t)s->merged};
    return true;
}

/* Floats in an order that unsigned integers have too, best (largest) score first; -0 and 0 are one score. */
static uint32_t score_rank(float score) {
    uint32_t bits;
    float s = score + 0.0f;
    memcpy(&bits, &s, 4);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

static inline bool join_score(const cera_vocab *v, const char *piece, const part *left, const part *right, candidate *out) {
    size_t n = (size_t)left->size + right->size;
    if (n > v->max_bytes) return false;
    int32_t id = string_table_find(&v->by_bytes, piece + left->begin, n);
    if (id < 0) return false;
    *out = (candidate){score_rank(v->scores[id]), id};
    return true;
}

/* ---- short pieces --------------------------------------------------------------------------------------------------- */

static inline size_t merge_short(const cera_vocab *v, const char *piece, part *parts, size_t n, join_fn join) {
    candidate next[SHORT_PIECE]; /* next[i] joins parts i and i + 1 */
    bool can[SHORT_PIECE];
    for (size_t i = 0; i + 1 < n; i++) can[i] = join(v, piece, &parts[i], &parts[i + 1], &next[i]);
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++) {
            if (can[i] && (best == n || next[i].rank < next[best].rank)) best = i;
        }
        if (best == n) return n;
        parts[best].size += parts[best + 1].size;
        parts[best].symbol = next[best].symbol;
        n--;
        for (size_t i = best + 1; i < n; i++) {
            parts[i] = parts[i + 1];
            next[i - 1] = next[i];
            can[i - 1] = can[i];
        }
        if (best > 0) can[best - 1] = join(v, piece, &parts[best - 1], &parts[best], &next[best - 1]);
        if (best + 1 < n) can[best] = join(v, piece, &parts[best], &parts[best + 1], &next[best]);
    }
}

/* ---- long pieces ---------------------------------------------------------------------------------------------------- */

typedef struct heap_entry {
    uint64_t key; /* rank, then place */
    uint32_t left_size, right_size;
    int32_t symbol;
} heap_entry;

typedef struct merge_list {
    part *parts;
    uint32_t *previous, *following; /* UINT32_MAX: none; a part of size 0 is gone */
    heap_entry *heap;
    size_t n_heap;
} merge_list;

static void heap_push(merge_list *m, heap_entry x) {
    size_t i = m->n_heap++;
    for (; i > 0 && m->heap[(i - 1) / 2].key > x.key; i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = x;
}

static heap_entry heap_pop(merge_list *m) {
    heap_entry top = m->heap[0], x = m->heap[--m->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->n_heap) break;
        if (child + 1 < m->n_heap && m->heap[child + 1].key < m->heap[child].key) child++;
        if (m->heap[child].key >= x.key) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = x;
    return top;
}

static void offer(merge_list *m, const cera_vocab *v, const char *piece, uint32_t left, join_fn join) {
    candidate c;
    if (left == UINT32_MAX) return;
    uint32_t right = m->following[left];
    if (right == UINT32_MAX || !join(v, piece, &m->parts[left], &m->parts[right], &c)) return;
    heap_push(m, (heap_entry){(uint64_t)c.rank << 32 | left, m->parts[left].size, m->parts[right].size, c.symbol});
}

/* At most n - 1 candidates at the start and two for each of n - 1 joins, of which each took one off: 2n entries hold them. */
static cera_status merge_work(encoder *x, size_t n, merge_list *m) {
    size_t each = sizeof(heap_entry) * 2 + 2 * sizeof(uint32_t), bytes = n * each;
    if (bytes > x->work_bytes) {
        cera_free(x->work);
        x->work = cera_alloc(n, each);
        x->work_bytes = x->work ? bytes : 0;
        if (!x->work) return cera_encoder_memory(x);
    }
    m->heap = x->work;
    m->previous = (uint32_t *)(m->heap + 2 * n);
    m->following = m->previous + n;
    m->n_heap = 0;
    return CERA_OK;
}

static cera_status merge_long(encoder *x, const char *piece, part *parts, size_t *n, join_fn join) {
    const cera_vocab *v = x->v;
    merge_list m = {.parts = parts};
    CERA_TRY(merge_work(x, *n, &m));
    for (uint32_t i = 0; i < *n; i++) {
        m.previous[i] = i ? i - 1 : UINT32_MAX;
        m.following[i] = i + 1 < *n ? i + 1 : UINT32_MAX;
    }
    for (uint32_t i = 0; i + 1 < *n; i++) offer(&m, v, piece, i, join);
    while (m.n_heap) {
        heap_entry c = heap_pop(&m);
        uint32_t left = (uint32_t)c.key, right = m.following[left];
        if (parts[left].size != c.left_size || right == UINT32_MAX || parts[right].size != c.right_size) continue;
        parts[left].size += parts[right].size;
        parts[left].symbol = c.symbol;
        parts[right].size = 0;
        m.following[left] = m.following[right];
        if (m.following[right] != UINT32_MAX) m.previous[m.following[right]] = left;
        offer(&m, v, piece, m.previous[left], join);
        offer(&m, v, piece, left, join);
    }
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (parts[i].size) parts[kept++] = parts[i];
    }
    *n = kept;
    return CERA_OK;
}

/* ---- ids ------------------------------------------------------------------------------------------------------------ */

/* A part that is no token falls to its bytes. */
static cera_status push_part(encoder *x, const char *piece, const part *p) {
    const cera_vocab *v = x->v;
    if (p->symbol >= 0 && p->symbol < v->n_tokens) return cera_encoder_push(x, p->symbol);
    const char *bytes = piece + p->begin;
    bool whole = v->kind == VOCAB_BPE && !v->raw; /* else a character whose bytes have not all a token is one unknown */
    for (uint32_t i = 0; !whole && i < p->size; i++) {
        if (v->byte_ids[(uint8_t)bytes[i]] < 0) return cera_encoder_unknown(x, (uint8_t)bytes[i]);
    }
    for (uint32_t i = 0; i < p->size; i++) {
        int32_t id = v->byte_ids[(uint8_t)bytes[i]];
        if (id >= 0)
            CERA_TRY(cera_encoder_push(x, id));
        else
            CERA_TRY(cera_encoder_unknown(x, (uint8_t)bytes[i]));
    }
    return CERA_OK;
}

/* The parts that merging starts from: bytes, or characters (a byte that begins no character is a part of its own). */
static size_t first_parts(const cera_vocab *v, const char *piece, size_t n, part *parts) {
    size_t count = 0;
    if (v->kind == VOCAB_BPE && !v->raw) {
        for (; count < n; count++) parts[count] = (part){(uint32_t)count, 1, (int32_t)v->byte_symbols[(uint8_t)piece[count]]};
        return count;
    }
    for (size_t i = 0; i < n;) {
        uint32_t code;
        int length = cera_utf8_decode(piece + i, n - i, &code);
        if (length == 0) length = 1;
        parts[count++] = (part){(uint32_t)i, (uint32_t)length, string_table_find(&v->by_bytes, piece + i, (size_t)length)};
        i += (size_t)length;
    }
    return count;
}

static cera_status merge_piece(encoder *x, const char *piece, size_t n) {
    const cera_vocab *v = x->v;
    part few[SHORT_PIECE], *parts = n <= SHORT_PIECE ? few : cera_alloc(n, sizeof *parts);
    if (!parts) return cera_encoder_memory(x);
    size_t count = first_parts(v, piece, n, parts);
    cera_status status = CERA_OK;
    bool scores = v->kind == VOCAB_SPM;
    if (count <= SHORT_PIECE)
        count = scores ? merge_short(v, piece, parts, count, join_score) : merge_short(v, piece, parts, count, join_pair);
    else
        status = merge_long(x, piece, parts, &count, scores ? join_score : join_pair);
    for (size_t i = 0; i < count && status == CERA_OK; i++) status = push_part(x, piece, &parts[i]);
    if (parts != few) cera_free(parts);
    return status;
}

/* Copies the ids of a piece met before. The array may move as it grows, so they are taken by index. */
static cera_status repeat_word(encoder *x, const word_entry *w) {
    for (uint32_t i = 0; i < w->n_ids; i++) CERA_TRY(cera_encoder_push(x, x->ids[w->ids_at + i]));
    return CERA_OK;
}

static cera_status encode_piece(void *ctx, const char *piece, size_t n) {
    encoder *x = ctx;
    const cera_vocab *v = x->v;
    if (v->ignore_merges) {
        int32_t id = string_table_find(&v->by_bytes, piece, n);
        if (id >= 0 && id < v->n_tokens) return cera_encoder_push(x, id);
    }
    if (!x->words || n > 64) return merge_piece(x, piece, n);
    uint32_t hash = vocab_hash(piece, n);
    word_entry *w = &x->words[hash & x->word_mask];
    if (w->text && w->hash == hash && w->size == n && memcmp(w->text, piece, n) == 0) return repeat_word(x, w);
    size_t at = x->n_ids;
    bool joined = x->last_unk && v->fuse_unk; /* what came before may swallow the piece's first id */
    CERA_TRY(merge_piece(x, piece, n));
    if (!joined && !x->last_unk && x->n_ids <= UINT32_MAX)
        *w = (word_entry){piece, hash, (uint32_t)n, (uint32_t)at, (uint32_t)(x->n_ids - at)};
    return CERA_OK;
}

cera_status cera_encode_bpe(encoder *x, const char *text, size_t n) {
    if (!x->v->pretok) return encode_piece(x, text, n);
    return cera_pretok_split(x->v->pretok, text, n, encode_piece, x, x->e);
}

/* ---- cutting SentencePiece text ---------------------------------------------------------------------------------------- */

static size_t code_pair(uint32_t a, uint32_t b) {
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 40) % CODE_PAIR_BITS;
}

/* A character; a byte that begins none counts as itself, above all code points. */
static inline size_t next_code(const char *p, size_t n, uint32_t *code) {
    *code = (uint8_t)*p;
    if (*code < 128) return 1;
    int length = cera_utf8_decode(p, n, code);
    if (length) return (size_t)length;
    *code = 0x110000u + (uint8_t)*p;
    return 1;
}

static void mark_pairs(cera_vocab *v, cera_text_view t) {
    uint32_t last = 0, code;
    for (size_t i = 0; i < t.size; last = code) {
        size_t length = next_code(t.text + i, t.size - i, &code);
        if (i > 0 && last < 128 && code < 128)
            v->ascii_pairs[last][code] = true;
        else if (i > 0)
            v->code_pairs[code_pair(last, code) / 64] |= (uint64_t)1 << code_pair(last, code) % 64;
        i += length;
    }
}

void cera_pairs_of_tokens(cera_vocab *v) {
    for (uint32_t id = 0; id < v->n_symbols; id++) mark_pairs(v, vocab_bytes(v, id));
}

static inline bool may_join(const cera_vocab *v, uint32_t a, uint32_t b) {
    if (a < 128 && b < 128) return v->ascii_pairs[a][b];
    size_t bit = code_pair(a, b);
    return v->code_pairs[bit / 64] >> bit % 64 & 1;
}

static cera_status cut_sentence(void *ctx, const char *text, size_t n) {
    encoder *x = ctx;
    const cera_vocab *v = x->v;
    if (v->raw && v->pretok &&
        text[0] == '\n') { /* Gemma 4: a run of newlines that is a token becomes it, whatever the merges say */
        int32_t id = string_table_find(&v->by_bytes, text, n);
        if (id >= 0 && id < v->n_tokens) return cera_encoder_push(x, id);
    }
    size_t begin = 0, at = 0;
    uint32_t last = 0, code;
    for (; at < n; last = code) {
        size_t length = next_code(text + at, n - at, &code);
        if (at > begin && !may_join(v, last, code)) {
            CERA_TRY(encode_piece(x, text + begin, at - begin));
            begin = at;
        }
        at += length;
    }
    return encode_piece(x, text + begin, n - begin);
}

cera_status cera_encode_sentences(encoder *x, const char *text, size_t n) {
    if (!x->v->pretok) return cut_sentence(x, text, n);
    return cera_pretok_split(x->v->pretok, text, n, cut_sentence, x, x->e);
}
