/* vocab.h: the vocabulary of a model and its tokenizer: text to ids and ids to bytes. Knows no file format: the engine fills a
 * cera_vocab_desc from a GGUF's metadata (engine/vocab_gguf.c), tokenizer_json.c fills one from a tokenizer.json.
 * Immutable after creation: any number of threads may use one. */
#ifndef CERA_TEXT_VOCAB_H
#define CERA_TEXT_VOCAB_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "base/view.h"

/* Values are GGUF's tokenizer.ggml.token_type. */
typedef enum cera_token_type {
    CERA_TOKEN_NORMAL = 1,
    CERA_TOKEN_UNKNOWN,
    CERA_TOKEN_CONTROL,
    CERA_TOKEN_USER,
    CERA_TOKEN_UNUSED,
    CERA_TOKEN_BYTE
} cera_token_type;

typedef struct cera_vocab_desc {
    const char *model; /* "llama" SentencePiece BPE, "gpt2" byte-level BPE, "bert" WordPiece, "t5" unigram */
    const char *pre;   /* pre-tokenizer's name ("llama-bpe"), or NULL */
    const char *arch;  /* general.architecture, or "" */
    size_t n_tokens;
    const cera_text_view *tokens; /* [n_tokens] */
    const float *scores;          /* [n_tokens] or NULL */
    const int64_t *types;         /* [n_tokens] cera_token_type, or NULL: all normal */
    size_t n_merges;
    const cera_text_view *merges;                    /* "left right" by rank */
    cera_text_view charsmap;                         /* precompiled normalisation map of unigram models, or empty */
    int64_t bos, eos, eot, eom, unk, sep, pad, mask; /* ids, -1 where the file has none */
    int64_t fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep; /* -1 where absent */
    const int64_t *eog;
    size_t n_eog;                  /* more end-of-generation ids that the file names; may be NULL */
    int add_bos, add_eos, add_sep; /* 1, 0, or -1: as its kind of tokenizer does */
    int add_space_prefix;          /* 1, 0, or -1: the kind's default */
    int remove_extra_whitespaces, ignore_merges, escape_whitespaces; /* 1, 0, -1: default */
    int lowercase, strip_accents;                                    /* WordPiece's normaliser: 1, 0, -1: default (both) */
    bool allow_unknown_pre; /* an unknown pre-tokenizer name falls back to "default" instead of failing */
} cera_vocab_desc;

typedef struct cera_vocab cera_vocab;

enum { CERA_VOCAB_MAX_TOKENS = 1 << 24, CERA_VOCAB_MAX_BYTES = 1 << 30 /* all tokens' texts */ };

/* Copies what it needs. Checks every id, length and merge; messages name the key ("tokenizer.ggml.scores has 10 entries; tokens
 * has 512"). */
cera_status cera_vocab_create(const cera_vocab_desc *desc, cera_vocab **out, cera_error *e);
void cera_vocab_destroy(cera_vocab *v);
/* From a Hugging Face tokenizer.json (text), with what a tokenizer_config.json beside it adds (config; may be NULL). Both are
 * borrowed during the call. What is not supported is an error that names the field. */
cera_status cera_vocab_from_tokenizer_json(const char *text, size_t n, const char *config, size_t config_size, cera_vocab **out,
                                           cera_error *e);
/* The same from a folder with a tokenizer.json and perhaps a tokenizer_config.json, or from the .json file itself. */
/* Whether path is one of those: a name that ends in .json, or a folder with a tokenizer.json. */
bool cera_vocab_path_is_json(const char *path);
cera_status cera_vocab_from_folder(const char *path, cera_vocab **out, cera_error *e);

int32_t cera_vocab_size(const cera_vocab *v);
int32_t cera_vocab_bos(const cera_vocab *v); /* -1: none */
int32_t cera_vocab_eos(const cera_vocab *v);
bool cera_vocab_adds_bos(const cera_vocab *v);
bool cera_vocab_adds_eos(const cera_vocab *v);
/* True for every end-of-generation token: eos, eot, eom, fill-in-the-middle padding, repository and file, and the tokens whose
 * text is one of the known end markers; those count as control tokens whatever type the file gives them (docs/tokenizer.md). */
bool cera_vocab_is_eog(const cera_vocab *v, int32_t id);
cera_token_type cera_vocab_token_type(const cera_vocab *v, int32_t id);
/* The token's text as the vocabulary spells it ("Ġthe"). */
cera_text_view cera_vocab_token_text(const cera_vocab *v, int32_t id);
/* The bytes a token stands for in text (" the"). Control tokens give nothing unless special is true (then their text).
 * Borrowed. */
cera_text_view cera_vocab_token_bytes(const cera_vocab *v, int32_t id, bool special);
/* Id of the token with exactly this text, -1 when there is none. */
int32_t cera_vocab_find(const cera_vocab *v, const char *text, size_t size);

enum {
    CERA_TOKENIZE_BOS = 1,     /* add BOS (and EOS, SEP) where the vocabulary says so */
    CERA_TOKENIZE_SPECIAL = 2, /* control tokens written in the text become their ids */
    CERA_TOKENIZE_NO_SPACE_PREFIX = 4
}; /* text continues earlier text */

/* Ids of n bytes of text. *ids is heap memory of the caller's (cera_free), NULL when *n_ids is 0. Any bytes: invalid UTF-8 has
 * a stated result (docs/tokenizer.md). O(n log n). */
cera_status cera_vocab_tokenize(const cera_vocab *v, const char *text, size_t n, unsigned flags, int32_t **ids, size_t *n_ids,
                                cera_error *e);
/* Bytes of ids into a heap block (cera_free), with a final NUL not counted. A leading space that the tokenizer itself had added
 * is taken off when first is true. Ids out of range: CERA_ERR_ARGUMENT. */
cera_status cera_vocab_detokenize(const cera_vocab *v, const int32_t *ids, size_t n_ids, bool special, bool first, char **text,
                                  size_t *size, cera_error *e);

#endif
