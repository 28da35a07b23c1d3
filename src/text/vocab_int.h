/* vocab_int.h: the vocabulary as the tokenizers see it. For src/text's vocab_*, tokenize, bpe, unigram, wordpiece and
 * detokenize.
 *
 * Every token has its text (as the file spells it) and its bytes (what it stands for). Merging works on bytes: a piece of the
 * input is looked up as it stands, without spelling it out first. In the SentencePiece kinds U+2581 is a space in the bytes, so
 * the input's spaces need no escaping either. A symbol is a token (ids below n_tokens) or a string that only the merges
 * mention. */
#ifndef CERA_TEXT_VOCAB_INT_H
#define CERA_TEXT_VOCAB_INT_H

#include <string.h>
#include "base/arena.h"
#include "text/pretokenize.h"
#include "text/vocab.h"

typedef enum vocab_kind { VOCAB_SPM, VOCAB_BPE, VOCAB_WORDPIECE, VOCAB_UNIGRAM } vocab_kind;

/* Bits of vocab->flags. */
enum { TOKEN_EOG = 1, TOKEN_LSTRIP = 2, TOKEN_RSTRIP = 4 };

/* What a tokenizer.json says beyond a GGUF. NULL members and zeros are GGUF's rules. */
typedef struct vocab_rules {
    const char *const *stages; /* pre-tokenizer regexes; NULL: by desc->pre */
    size_t n_stages;
    bool raw;                 /* byte-level BPE's merges, but on UTF-8 with byte fallback (SentencePiece vocabularies as BPE) */
    bool fuse_unk;            /* neighbouring unknown characters are one unknown token */
    bool nfc;                 /* the input is normalised first */
    bool prefix_first_only;   /* the space prefix goes to the start of the text only */
    bool prefix_unless_space; /* and only where the text does not begin with a space */
    size_t max_word;          /* WordPiece: longer words, in characters, are unknown; 0: no limit */
    const uint8_t *flags;     /* [n_tokens] TOKEN_LSTRIP, TOKEN_RSTRIP */
} vocab_rules;

/* Open addressing over strings [at[id], at[id + 1]) of blob. Most tokens have at most 8 bytes: those are told by their slot
 * alone, which is what makes reading a few hundred thousand merges quick. */
typedef struct string_slot {
    uint64_t head;     /* the first 8 bytes, zeros behind a shorter string */
    uint32_t size, id; /* id + 1; 0: empty */
} string_slot;

typedef struct string_table {
    string_slot *slots;
    size_t mask, n;
    const char *blob;
    const uint32_t *at;
} string_table;

typedef struct pair_slot {
    uint32_t left, right; /* left + 1; 0: empty */
    uint32_t rank, merged;
} pair_slot;

/* A node of a trie over bytes. Its children lie side by side, in the order of their bytes: the child for a byte is first plus
 * the number of smaller bytes that have one. Node 0 is the root. */
typedef struct trie_node {
    uint64_t has[4];   /* bit b % 64 of word b / 64: there is a child for byte b */
    uint8_t before[4]; /* children in the words before */
    uint32_t first;
    int32_t id; /* of the token that ends here, -1: none */
} trie_node;

struct cera_vocab {
    cera_arena *arena;
    vocab_kind kind;
    int32_t n_tokens;
    uint32_t n_symbols;
    const char *texts;  /* blob */
    uint32_t *text_at;  /* [n_tokens + 1] */
    char *bytes;        /* blob; heap, because the merges may add to it */
    uint32_t *bytes_at; /* [n_symbols + 1], heap */
    size_t bytes_capacity, symbol_capacity;
    uint8_t *types, *flags; /* [n_tokens] */
    float *scores;          /* [n_tokens] */
    size_t max_bytes;       /* longest token that merges can make */
    string_table by_bytes;  /* tokens that ordinary text can become, and the other symbols */
    string_table by_text;   /* the other tokens */
    pair_slot *pairs;
    size_t pair_mask;
    int32_t byte_ids[256];      /* token of a lone byte, -1: none */
    uint32_t byte_symbols[256]; /* byte-level BPE: where merging starts */

    int32_t bos, eos, eot, eom, unk, sep, pad, mask;
    bool add_bos, add_eos, add_sep, add_space_prefix, ignore_merges, remove_extra_whitespaces, escapes_spaces;
    bool raw, fuse_unk, nfc, prefix_first_only, prefix_unless_space, lowercase, strip_accents;
    size_t max_word;
    cera_pretok *pretok; /* NULL: text is not split by regexes */

    trie_node *trie;                            /* special and user-defined tokens by text */
    bool begins_special[256], begins_user[256]; /* bytes that such a token begins with */
    bool ascii_pairs[128][128]; /* neighbours inside some token: where a pair is in none, text can be cut (bpe.c) */
    uint64_t *code_pairs;       /* the same above ASCII, hashed: CODE_PAIR_BITS bits */

    const uint32_t *charsmap; /* unigram: units of the double array */
    size_t n_charsmap;
    const char *replacements;
    size_t n_replacements;
    trie_node *pieces; /* unigram: all tokens by bytes */
    float unknown_score;
};

enum { CODE_PAIR_BITS = 1 << 20, VOCAB_MAX_SPECIAL = 512, VOCAB_NOT_FOUND = -1 };

static inline cera_text_view vocab_text(const cera_vocab *v, uint32_t id) {
    return (cera_text_view){v->texts + v->text_at[id], v->text_at[id + 1] - v->text_at[id]};
}
static inline cera_text_view vocab_bytes(const cera_vocab *v, uint32_t id) {
    return (cera_text_view){v->bytes + v->bytes_at[id], v->bytes_at[id + 1] - v->bytes_at[id]};
}

/* ---- vocab_table.c ------------------------------------------------------------------------------------------------ */

static inline uint64_t string_head(const char *p, size_t n) {
    uint64_t w = 0;
    if (n >= 8) {
        memcpy(&w, p, 8);
    } else if (n >= 4) { /* two words that overlap where they agree */
        uint32_t a, b;
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        w = a | (uint64_t)b << 8 * (n - 4);
    } else if (n > 0) {
        w = (uint64_t)(uint8_t)p[0] | (uint64_t)(uint8_t)p[n / 2] << 8 * (n / 2) | (uint64_t)(uint8_t)p[n - 1] << 8 * (n - 1);
    }
    return w;
}

static inline uint64_t hash_step(uint64_t h, uint64_t w) {
    h = (h ^ w) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static inline uint32_t vocab_hash(const char *p, size_t n) {
    uint64_t h = hash_step(n * 0x9e3779b97f4a7c15u, string_head(p, n)), w;
    for (; n > 16; n -= 8, p += 8) {
        memcpy(&w, p + 8, 8);
        h = hash_step(h, w);
    }
    if (n > 8) { /* the last bytes, which may overlap those before */
        memcpy(&w, p + n - 8, 8);
        h = hash_step(h, w);
    }
    return (uint32_t)(h * 0xc4ceb9fe1a85ec53u >> 32);
}

/* Whether the slot's string, in this table, is the n bytes at p. */
static inline bool slot_holds(const string_table *t, const string_slot *s, uint64_t head, const char *p, size_t n) {
    return s->head == head && s->size == n && (n <= 8 || memcmp(t->blob + t->at[s->id - 1] + 8, p + 8, n - 8) == 0);
}

static inline int32_t string_table_find(const string_table *t, const char *p, size_t n) {
    if (!t->slots) return VOCAB_NOT_FOUND;
    uint64_t head = string_head(p, n);
    for (size_t i = vocab_hash(p, n) & t->mask;; i = (i + 1) & t->mask) {
        const string_slot *s = &t->slots[i];
        if (s->id == 0) return VOCAB_NOT_FOUND;
        if (slot_holds(t, s, head, p, n)) return (int32_t)(s->id - 1);
    }
}

static inline void string_table_prefetch(const string_table *t, const char *p, size_t n) {
    __builtin_prefetch(&t->slots[vocab_hash(p, n) & t->mask]);
}

static inline size_t pair_hash(uint32_t left, uint32_t right) {
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32 ^ h >> 12);
}

static inline const pair_slot *pair_find(const cera_vocab *v, uint32_t left, uint32_t right) {
    for (size_t i = pair_hash(left, right) & v->pair_mask;; i = (i + 1) & v->pair_mask) {
        const pair_slot *s = &v->pairs[i];
        if (s->left == 0) return NULL;
        if (s->left == left + 1 && s->right == right) return s;
    }
}

/* Room for n strings; grows. The table finds in blob and at, which the caller sets before it adds. */
cera_status cera_string_table_init(string_table *t, cera_arena *a, size_t n, cera_error *e);
/* The first of equal strings stays. */
cera_status cera_string_table_add(string_table *t, cera_arena *a, uint32_t id, cera_error *e);
cera_status cera_pairs_build(cera_vocab *v, const cera_vocab_desc *d,
                             cera_error *e); /* also makes the symbols that are no tokens */
/* The bytes that a text of the vocabulary stands for, at most n of them, into out; returns how many, 0 when it stands for none.
 */
size_t cera_vocab_spell(const cera_vocab *v, const char *text, size_t n, char *out);

/* ---- vocab_trie.c -------------------------------------------------------------------------------------------------- */

/* The child of a node for a byte, 0: none. */
static inline uint32_t trie_child(const trie_node *nodes, uint32_t node, uint8_t byte) {
    const trie_node *n = &nodes[node];
    unsigned word = byte >> 6;
    uint64_t bit = (uint64_t)1 << (byte & 63);
    if (!(n->has[word] & bit)) return 0;
    return n->first + n->before[word] + (uint32_t)__builtin_popcountll(n->has[word] & (bit - 1));
}

typedef struct trie_builder trie_builder;
/* max_bytes: of all strings that will be added. */
cera_status cera_trie_begin(size_t max_bytes, trie_builder **out, cera_error *e);
void cera_trie_add(trie_builder *b, cera_text_view text, int32_t id); /* not empty; the first of equal strings stays */
/* Destroys the builder, also when it fails. */
cera_status cera_trie_finish(trie_builder *b, cera_arena *arena, trie_node **out, cera_error *e);

/* ---- the rest ------------------------------------------------------------------------------------------------------ */

cera_status cera_vocab_create_with(const cera_vocab_desc *d, const vocab_rules *rules, cera_vocab **out, cera_error *e);

/* vocab_special.c: default and named ids, end-of-generation tokens, the trie of special tokens. */
cera_status cera_vocab_set_ids(cera_vocab *v, const cera_vocab_desc *d, cera_error *e);
void cera_vocab_set_eog(cera_vocab *v, const cera_vocab_desc *d);
cera_status cera_vocab_build_special(cera_vocab *v, cera_error *e);
/* The longest special token at text, -1: none; control and unknown tokens only when special. */
int32_t cera_vocab_match_special(const cera_vocab *v, const char *text, size_t n, bool special);
/* GPT-2's byte alphabet: the byte that a code point stands for, -1: none. */
int cera_alphabet_byte(uint32_t code);

/* ---- a call of cera_vocab_tokenize ----------------------------------------------------------------------------------- */

typedef struct word_entry {
    const char *text;
    uint32_t hash, size, ids_at, n_ids;
} word_entry;

typedef struct encoder {
    const cera_vocab *v;
    cera_error *e;
    int32_t *ids;
    size_t n_ids, capacity;
    word_entry *words; /* pieces met before in this call, and where their ids are; NULL: not kept */
    size_t word_mask;
    struct scratch_block *scratch; /* texts that live as long as the call */
    void *work;                    /* bpe.c's arrays for long pieces */
    size_t work_bytes;
    bool last_unk; /* the last id stands for unknown text and may be joined with more */
} encoder;

cera_status cera_encoder_push(encoder *x, int32_t id);
cera_status cera_encoder_unknown(encoder *x, uint8_t byte); /* the unknown token, or the error that there is none */
char *cera_encoder_scratch(encoder *x, size_t n);           /* n bytes, NULL: out of memory */
cera_status cera_encoder_memory(encoder *x);                /* the error */

/* Each appends the ids of a text without special tokens. */
cera_status cera_encode_bpe(encoder *x, const char *text, size_t n);       /* byte-level: splits into pieces, merges each */
cera_status cera_encode_sentences(encoder *x, const char *text, size_t n); /* SentencePiece BPE, and BPE on UTF-8 */
cera_status cera_encode_unigram(encoder *x, const char *text, size_t n);
cera_status cera_encode_wordpiece(encoder *x, const char *text, size_t n);
void cera_pairs_of_tokens(cera_vocab *v); /* fills ascii_pairs and code_pairs */
cera_status cera_unigram_create(cera_vocab *v, const cera_vocab_desc *d, cera_error *e);

#endif
