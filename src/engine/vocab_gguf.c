/* vocab_gguf.c: reads the tokenizer.ggml.* keys into a description and makes the vocabulary. Checks the lengths of arrays
 * against the tokens; cera_vocab_create checks what they hold. Owns the names of the keys. */
#include "engine/vocab_gguf.h"

#include <string.h>
#include "base/arena.h"

#define KEY(name) "tokenizer.ggml." name

typedef struct reader {
    const cera_gguf *g;
    cera_arena *arena;
    cera_error *e;
} reader;

/* A text as a C string; an absent key gives fallback. */
static cera_status read_text(reader *r, const char *key, const char *fallback, const char **out) {
    cera_text_view t;
    *out = fallback;
    if (!cera_gguf_find(r->g, key)) return CERA_OK;
    CERA_TRY(cera_gguf_get_text(r->g, key, &t, r->e));
    *out = cera_arena_text(r->arena, t.text, t.size);
    return *out ? CERA_OK : cera_fail(r->e, CERA_ERR_MEMORY, "%s: out of memory", key);
}

/* An array of exactly n elements, or of any length when n is 0; absent: *out is NULL. */
static cera_status array_length(reader *r, const char *key, size_t n, bool *present, size_t *length) {
    const cera_gguf_value *v = cera_gguf_find(r->g, key);
    *present = v != NULL;
    *length = v ? (size_t)v->n : 0;
    if (!v) return CERA_OK;
    if (!v->is_array) return cera_fail(r->e, CERA_ERR_FORMAT, "key %s is a single value; it must be an array", key);
    if (n && v->n != n) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "key %s has %llu entries; " KEY("tokens") " has %zu", key,
                         (unsigned long long)v->n, n);
    }
    return CERA_OK;
}

static cera_status read_texts(reader *r, const char *key, bool needed, const cera_text_view **out, size_t *n) {
    bool present;
    *out = NULL;
    CERA_TRY(array_length(r, key, 0, &present, n));
    if (!present) return needed ? cera_fail(r->e, CERA_ERR_NOT_FOUND, "key %s is missing", key) : CERA_OK;
    cera_text_view *texts = cera_arena_alloc(r->arena, *n, sizeof *texts);
    if (!texts) return cera_fail(r->e, CERA_ERR_MEMORY, "%s: out of memory for %zu entries", key, *n);
    *out = texts;
    return cera_gguf_get_texts(r->g, key, *n, texts, r->e);
}

static cera_status read_scores_and_types(reader *r, cera_vocab_desc *d) {
    bool present;
    size_t n;
    CERA_TRY(array_length(r, KEY("scores"), d->n_tokens, &present, &n));
    if (present) {
        float *scores = cera_arena_alloc(r->arena, n, sizeof *scores);
        if (!scores) return cera_fail(r->e, CERA_ERR_MEMORY, KEY("scores") ": out of memory");
        CERA_TRY(cera_gguf_get_f32s(r->g, KEY("scores"), n, scores, r->e));
        d->scores = scores;
    }
    CERA_TRY(array_length(r, KEY("token_type"), d->n_tokens, &present, &n));
    if (present) {
        int64_t *types = cera_arena_alloc(r->arena, n, sizeof *types);
        if (!types) return cera_fail(r->e, CERA_ERR_MEMORY, KEY("token_type") ": out of memory");
        CERA_TRY(cera_gguf_get_i64s(r->g, KEY("token_type"), n, types, r->e));
        d->types = types;
    }
    return CERA_OK;
}

/* An id. Some writers put 2^32 - 1 for "none"; for roles that tokenizing and stopping do not use that is taken so (none_ok). */
static cera_status read_id(reader *r, const cera_vocab_desc *d, const char *key, bool none_ok, int64_t *out) {
    uint64_t id = 0;
    if (!cera_gguf_find(r->g, key)) return CERA_OK;
    CERA_TRY(cera_gguf_get_u64(r->g, key, 0, UINT32_MAX, &id, r->e));
    if (id == UINT32_MAX && none_ok) return CERA_OK;
    if (id >= d->n_tokens) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "key %s is %llu; it must be below %zu, the number of " KEY("tokens"), key,
                         (unsigned long long)id, d->n_tokens);
    }
    *out = (int64_t)id;
    return CERA_OK;
}

static cera_status read_ids(reader *r, cera_vocab_desc *d) {
    const struct {
        const char *key;
        bool none_ok;
        int64_t *out;
    } ids[] = {
        {KEY("cls_token_id"), true, &d->bos}, /* BERT's start, where the file names no other */
        {KEY("bos_token_id"), false, &d->bos},        {KEY("eos_token_id"), false, &d->eos},
        {KEY("eot_token_id"), false, &d->eot},        {KEY("eom_token_id"), false, &d->eom},
        {KEY("unknown_token_id"), false, &d->unk},    {KEY("seperator_token_id"), true, &d->sep}, /* the format spells it so */
        {KEY("padding_token_id"), true, &d->pad},     {KEY("mask_token_id"), true, &d->mask},
        {KEY("prefix_token_id"), true, &d->fim_pre}, /* the older names of the next three */
        {KEY("suffix_token_id"), true, &d->fim_suf},  {KEY("middle_token_id"), true, &d->fim_mid},
        {KEY("fim_pre_token_id"), true, &d->fim_pre}, {KEY("fim_suf_token_id"), true, &d->fim_suf},
        {KEY("fim_mid_token_id"), true, &d->fim_mid}, {KEY("fim_pad_token_id"), true, &d->fim_pad},
        {KEY("fim_rep_token_id"), true, &d->fim_rep}, {KEY("fim_sep_token_id"), true, &d->fim_sep}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) *ids[i].out = -1;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) CERA_TRY(read_id(r, d, ids[i].key, ids[i].none_ok, ids[i].out));
    return CERA_OK;
}

static cera_status read_flags(reader *r, cera_vocab_desc *d) {
    const struct {
        const char *key;
        int *out;
    } flags[] = {{KEY("add_bos_token"), &d->add_bos},
                 {KEY("add_eos_token"), &d->add_eos},
                 {KEY("add_sep_token"), &d->add_sep},
                 {KEY("add_space_prefix"), &d->add_space_prefix},
                 {KEY("remove_extra_whitespaces"), &d->remove_extra_whitespaces},
                 {KEY("normalizer.lowercase"), &d->lowercase},
                 {KEY("normalizer.strip_accents"), &d->strip_accents}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool value = false;
        *flags[i].out = -1;
        if (!cera_gguf_find(r->g, flags[i].key)) continue;
        CERA_TRY(cera_gguf_get_bool(r->g, flags[i].key, &value, r->e));
        *flags[i].out = value;
    }
    d->ignore_merges = d->escape_whitespaces = -1;
    return CERA_OK;
}

static cera_status read_charsmap(reader *r, cera_vocab_desc *d) {
    const cera_gguf_value *v = cera_gguf_find(r->g, KEY("precompiled_charsmap"));
    if (!v) return CERA_OK;
    if (!v->is_array || (v->type != CERA_GGUF_U8 && v->type != CERA_GGUF_I8)) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "key %s must be an array of bytes", v->key);
    }
    d->charsmap = (cera_text_view){(const char *)v->data, (size_t)v->n};
    return CERA_OK;
}

static cera_status read_all(reader *r, cera_vocab_desc *d) {
    CERA_TRY(read_text(r, KEY("model"), NULL, &d->model));
    CERA_TRY(read_text(r, KEY("pre"), NULL, &d->pre));
    CERA_TRY(read_text(r, "general.architecture", "", &d->arch));
    if (!d->model) return cera_fail(r->e, CERA_ERR_NOT_FOUND, "key " KEY("model") " is missing");
    CERA_TRY(read_texts(r, KEY("tokens"), true, &d->tokens, &d->n_tokens));
    if (d->n_tokens == 0) return cera_fail(r->e, CERA_ERR_FORMAT, "key " KEY("tokens") " is empty");
    CERA_TRY(read_scores_and_types(r, d));
    bool merges = strcmp(d->model, "gpt2") == 0 || strcmp(d->model, "gemma4") == 0;
    if (merges) CERA_TRY(read_texts(r, KEY("merges"), true, &d->merges, &d->n_merges));
    CERA_TRY(read_ids(r, d));
    CERA_TRY(read_flags(r, d));
    return read_charsmap(r, d);
}

cera_status cera_vocab_from_gguf(const cera_gguf *g, bool allow_unknown_pre, cera_vocab **out, cera_error *e) {
    reader r = {.g = g, .e = e};
    cera_vocab_desc d = {.allow_unknown_pre = allow_unknown_pre};
    *out = NULL;
    CERA_TRY(cera_arena_create(0, &r.arena, e));
    cera_status status = read_all(&r, &d);
    if (status == CERA_OK) status = cera_vocab_create(&d, out, e);
    cera_arena_destroy(r.arena);
    return status;
}
