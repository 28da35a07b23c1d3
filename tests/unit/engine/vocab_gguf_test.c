/* vocab_gguf_test.c: the tokenizer.ggml.* keys of files made in memory: what each says, and the ones refused by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/vocab_gguf.h"
#include "unit/cmocka_all.h"
#include "unit/format/gguf_builder.h"

#define KEY(name) "tokenizer.ggml." name

/* GGUF's numbers of types. */
enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8 };

static const char *const spm_tokens[] = {"<unk>", "<s>", "</s>", "\u2581", "a", "\u2581a", "<0x62>", "<t>"};
enum { N_TOKENS = 8 };

/* A vocabulary of eight tokens; n_more keys follow, written by the caller before finish. */
static builder begin(const char *model, uint64_t n_more) {
    static const int32_t types[N_TOKENS] = {2, 3, 3, 1, 1, 1, 6, 4};
    builder b = {0};
    build_header(&b, 3, 0, 5 + n_more);
    build_arch(&b);
    build_key(&b, KEY("model"), STRING);
    build_text(&b, model);
    build_array(&b, KEY("tokens"), STRING, N_TOKENS);
    for (int i = 0; i < N_TOKENS; i++) build_text(&b, spm_tokens[i]);
    build_array(&b, KEY("scores"), F32, N_TOKENS);
    for (int i = 0; i < N_TOKENS; i++) {
        float score = (float)i;
        build_bytes(&b, &score, 4);
    }
    build_array(&b, KEY("token_type"), I32, N_TOKENS);
    for (int i = 0; i < N_TOKENS; i++) build_u32(&b, (uint32_t)types[i]);
    return b;
}

static void add_u32(builder *b, const char *key, uint32_t value) {
    build_key(b, key, U32);
    build_u32(b, value);
}

static void add_bool(builder *b, const char *key, bool value) {
    build_key(b, key, BOOL);
    build_le(b, value, 1);
}

static cera_status load(builder *b, cera_vocab **out, cera_error *e) {
    cera_gguf *g;
    *out = NULL;
    cera_status status = cera_gguf_open_memory("test.gguf", b->data, b->size, NULL, &g, e);
    if (status == CERA_OK) status = cera_vocab_from_gguf(g, false, out, e);
    if (status != CERA_OK) assert_null(*out);
    cera_gguf_close(g); /* the vocabulary keeps nothing of it */
    build_free(b);
    return status;
}

static cera_vocab *loaded(builder *b) {
    cera_error e = {0};
    cera_vocab *v;
    if (load(b, &v, &e) != CERA_OK) fail_msg("%s", e.message);
    return v;
}

static void refused(builder *b, const char *part) {
    cera_error e = {0};
    cera_vocab *v;
    assert_int_not_equal(load(b, &v, &e), CERA_OK);
    if (!strstr(e.message, part)) fail_msg("\"%s\" does not name %s", e.message, part);
}

static void expect(const cera_vocab *v, const char *text, const int32_t *wanted, size_t n_wanted) {
    int32_t *ids;
    size_t n;
    assert_int_equal(cera_vocab_tokenize(v, text, strlen(text), CERA_TOKENIZE_BOS, &ids, &n, NULL), CERA_OK);
    assert_int_equal(n, n_wanted);
    assert_memory_equal(ids, wanted, n * sizeof *ids);
    cera_free(ids);
}

static void defaults(void **state) {
    (void)state;
    builder b = begin("llama", 2);
    add_u32(&b, KEY("seperator_token_id"), UINT32_MAX); /* none, as some writers have it */
    add_u32(&b, KEY("padding_token_id"), UINT32_MAX);
    cera_vocab *v = loaded(&b);
    assert_int_equal(cera_vocab_size(v), N_TOKENS);
    assert_int_equal(cera_vocab_bos(v), 1);
    assert_int_equal(cera_vocab_eos(v), 2);
    assert_true(cera_vocab_is_eog(v, 2));
    expect(v, "a<t>b", (const int32_t[]){1, 5, 7, 3, 6}, 5);
    cera_vocab_destroy(v);
}

static void keys(void **state) {
    (void)state;
    builder b = begin("llama", 6);
    add_u32(&b, KEY("bos_token_id"), 4);
    add_u32(&b, KEY("eos_token_id"), 5);
    add_u32(&b, KEY("eot_token_id"), 3);
    add_bool(&b, KEY("add_bos_token"), false);
    add_bool(&b, KEY("add_eos_token"), true);
    add_bool(&b, KEY("add_space_prefix"), false);
    cera_vocab *v = loaded(&b);
    assert_int_equal(cera_vocab_bos(v), 4);
    assert_true(cera_vocab_is_eog(v, 5) && cera_vocab_is_eog(v, 3));
    assert_false(cera_vocab_adds_bos(v));
    assert_true(cera_vocab_adds_eos(v));
    expect(v, "a", (const int32_t[]){4, 5}, 2);
    cera_vocab_destroy(v);
}

static void refusals(void **state) {
    (void)state;
    static const char *const ids[] = {KEY("bos_token_id"), KEY("eos_token_id"), KEY("eot_token_id"), KEY("unknown_token_id"),
                                      KEY("mask_token_id")};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        builder b = begin("llama", 1);
        add_u32(&b, ids[i], N_TOKENS); /* one past the end */
        refused(&b, ids[i]);
    }
    builder b = begin("llama", 1);
    add_u32(&b, KEY("eos_token_id"), UINT32_MAX);
    refused(&b, KEY("eos_token_id"));
    b = begin("gpt2", 0);
    refused(&b, KEY("merges"));
    b = begin("gpt2", 1);
    add_u32(&b, KEY("merges"), 1);
    refused(&b, KEY("merges"));
    b = begin("word2vec", 0);
    refused(&b, "word2vec");
    b = begin("gpt2", 2);
    build_array(&b, KEY("merges"), STRING, 1);
    build_text(&b, "a b");
    build_key(&b, KEY("pre"), STRING);
    build_text(&b, "unheard-of");
    refused(&b, "unheard-of");
    b = begin("t5", 1);
    build_array(&b, KEY("precompiled_charsmap"), U32, 1);
    build_u32(&b, 1);
    refused(&b, "precompiled_charsmap");
}

static void lengths(void **state) {
    (void)state;
    static const char *const arrays[] = {KEY("scores"), KEY("token_type")};
    for (size_t i = 0; i < 2; i++) {
        builder b = {0};
        build_header(&b, 3, 0, 4);
        build_arch(&b);
        build_key(&b, KEY("model"), STRING);
        build_text(&b, "llama");
        build_array(&b, KEY("tokens"), STRING, 3);
        for (int k = 0; k < 3; k++) build_text(&b, spm_tokens[k]);
        build_array(&b, arrays[i], i ? I32 : F32, 2);
        build_zeros(&b, 8);
        refused(&b, arrays[i]);
    }
    builder b = {0};
    build_header(&b, 3, 0, 2);
    build_arch(&b);
    build_array(&b, KEY("tokens"), U32, 1);
    build_u32(&b, 1);
    refused(&b, KEY("model"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults), cmocka_unit_test(keys), cmocka_unit_test(refusals),
                                       cmocka_unit_test(lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
