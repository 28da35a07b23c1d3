/* tokenizer_json_int.h: what the two files that read a tokenizer.json share. */
#ifndef CERA_TEXT_TOKENIZER_JSON_INT_H
#define CERA_TEXT_TOKENIZER_JSON_INT_H

#include "base/json.h"
#include "text/vocab_int.h"

typedef struct tokjson {
    cera_arena *arena;
    cera_error *e;
    const cera_json *model;
    cera_vocab_desc d;
    vocab_rules rules;
    cera_text_view *tokens; /* by id */
    int64_t *types;
    float *scores;
    uint8_t *flags;
    size_t n_entries; /* in the file: bounds the ids */
    char *merge_texts;
    size_t merge_at;
    const char *stages[CERA_PRETOK_MAX_STAGES]; /* rules.n_stages of them */
    bool byte_level;
} tokjson;

const cera_json *cera_tokjson_get(const cera_json *object,
                                  const char *name); /* a null member counts as absent; object may be NULL */
bool cera_tokjson_true(const cera_json *object, const char *name, bool fallback);
cera_text_view cera_tokjson_text(const cera_json *object, const char *name); /* "" when absent or no text */
bool cera_tokjson_is(cera_text_view t, const char *text);
cera_status cera_tokjson_refuse(tokjson *r, const char *field, cera_text_view what);
void *cera_tokjson_alloc(tokjson *r, size_t n, size_t size);
int64_t cera_tokjson_find(const tokjson *r, cera_text_view text); /* id of a token's text, -1: none */

/* tokenizer_json_parts.c; v may be NULL. */
cera_status cera_tokjson_normalizer(tokjson *r, const cera_json *v, unsigned depth);
cera_status cera_tokjson_pre_tokenizer(tokjson *r, const cera_json *v, unsigned depth);

#endif
