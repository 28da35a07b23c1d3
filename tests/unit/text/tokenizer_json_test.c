/* tokenizer_json_test.c: small tokenizer.json files: each kind of model, the parts that are translated, and the ones refused by
 * name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "text/vocab.h"
#include "unit/cmocka_all.h"

#define SPLIT "{\"type\":\"Split\",\"pattern\":{\"Regex\":\" ?\\\\p{L}+|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define BPE_VOCAB                                                                                                          \
    "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,\"\\u0120ab\":4,\"\\u00c3\":5,\"\\u00a9\":6,\"e\":7,\"\\u00cc\":8," \
    "\"\\u0123\":9}"
#define ADDED                                                                                                                  \
    "\"added_tokens\":[{\"id\":10,\"content\":\"<|end|>\",\"special\":true},{\"id\":12,\"content\":\"<t>\",\"special\":false," \
    "\"rstrip\":true}]"

static cera_vocab *read(const char *text, const char *config) {
    cera_error e = {0};
    cera_vocab *v;
    if (cera_vocab_from_tokenizer_json(text, strlen(text), config, config ? strlen(config) : 0, &v, &e) != CERA_OK)
        fail_msg("%s", e.message);
    return v;
}

static void refused(const char *text, const char *part) {
    cera_error e = {0};
    cera_vocab *v;
    assert_int_not_equal(cera_vocab_from_tokenizer_json(text, strlen(text), NULL, 0, &v, &e), CERA_OK);
    assert_null(v);
    if (!strstr(e.message, part) || !strstr(e.message, "tokenizer.json")) fail_msg("\"%s\" does not name %s", e.message, part);
    assert_int_not_equal(cera_vocab_from_tokenizer_json(text, strlen(text), NULL, 0, &v, NULL), CERA_OK);
}

static void expect(const cera_vocab *v, const char *text, unsigned flags, const char *wanted) {
    int32_t *ids;
    size_t n;
    cera_error e = {0};
    char got[400] = "";
    if (cera_vocab_tokenize(v, text, strlen(text), flags, &ids, &n, &e) != CERA_OK) fail_msg("%s", e.message);
    for (size_t i = 0; i < n; i++) sprintf(got + strlen(got), i ? " %d" : "%d", ids[i]);
    assert_string_equal(got, wanted);
    cera_free(ids);
}

static void byte_level_bpe(void **state) {
    (void)state;
    cera_vocab *v = read("{" ADDED ",\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT
                         "," BYTE_LEVEL "]},"
                         "\"model\":{\"type\":\"BPE\"," BPE_VOCAB ",\"merges\":[\"a b\",[\"\\u0120\",\"ab\"]]}}",
                         "{\"bos_token\":{\"content\":\"<t>\"},\"eos_token\":\"<|end|>\",\"add_bos_token\":true}");
    assert_int_equal(cera_vocab_size(v), 13); /* id 11 is a gap */
    assert_int_equal(cera_vocab_bos(v), 12);
    assert_int_equal(cera_vocab_eos(v), 10);
    assert_true(cera_vocab_is_eog(v, 10));
    expect(v, "ab ab", CERA_TOKENIZE_BOS, "12 2 4");
    expect(v, "ab<|end|>", CERA_TOKENIZE_SPECIAL, "2 10");
    expect(v, "a<t>  b", 0, "0 12 1"); /* rstrip swallows the spaces */
    expect(v, "e\u0301", 0, "7 8 9");
    cera_vocab_destroy(v);
    v = read("{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":{" BPE_VOCAB ",\"merges\":[]}}",
             NULL);
    expect(v, "e\u0301", 0, "5 6"); /* composed first; a file without types is BPE when it has merges */
    cera_vocab_destroy(v);
}

static void bpe_on_utf8(void **state) {
    (void)state;
    const char *model = "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,"
                        "\"vocab\":{\"<unk>\":0,\"\\u2581\":1,\"a\":2,\"\\u2581a\":3,"
                        "\"<0xC3>\":4,\"<0xA9>\":5},\"merges\":[\"\\u2581 a\"]}";
    char text[2000];
    sprintf(text,
            "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"},{\"type\":"
            "\"Replace\",\"pattern\":{\"String\":\" \"},"
            "\"content\":\"\\u2581\"}]},\"pre_tokenizer\":null,\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
            "{\"SpecialToken\":{\"id\":\"<unk>\"}},"
            "{\"Sequence\":{\"id\":\"A\"}}]},%s}",
            model);
    cera_vocab *v = read(text, NULL);
    expect(v, "a a", CERA_TOKENIZE_BOS, "0 3 3");
    expect(v, "\u00e9xyz", 0, "1 4 5 0"); /* bytes where there are tokens for all of them; unknown neighbours are one */
    cera_vocab_destroy(v);
    sprintf(text,
            "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\",\"split\":"
            "false},%s}",
            model);
    v = read(text, NULL);
    expect(v, "aa", 0, "3 2");
    expect(v, " a", 0, "3"); /* no second space */
    cera_vocab_destroy(v);
}

static void word_piece(void **state) {
    (void)state;
    cera_vocab *v = read("{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true},{\"id\":1,\"content\":\"[CLS]\","
                         "\"special\":true},{\"id\":2,\"content\":\"[SEP]\",\"special\":true}],"
                         "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":null},\"pre_"
                         "tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                         "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],\"cls\":[\"[CLS]\",1]},"
                         "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_"
                         "input_chars_per_word\":6,"
                         "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"un\":3,\"##do\":4,\"do\":5,\".\":6}}}",
                         NULL);
    expect(v, "Undo do. x", CERA_TOKENIZE_BOS, "1 3 4 5 6 0 2");
    expect(v, "undodo undododo", 0, "3 4 4 0"); /* the second word is too long */
    cera_vocab_destroy(v);
}

static void unigram(void **state) {
    (void)state;
    cera_vocab *v = read("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"},"
                         "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"add_prefix_space\":true},"
                         "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],[\"a\",-3],["
                         "\"\\u2581a\",-4.5]]}}",
                         NULL);
    expect(v, "a  aa", 0, "3 3 2");
    expect(v, "xx", 0, "1 0");
    cera_vocab_destroy(v);
}

static void refusals(void **state) {
    (void)state;
    refused("", "line 1");
    refused("{}", "model");
    refused("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", "WordLevel");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "merges");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "vocab");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":16000000},\"merges\":[]}}", "vocab");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"x\"},\"merges\":[]}}", "vocab");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "merges");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[3]}}", "merges");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"</w>\"}}",
            "end_of_word_suffix");
    refused("{\"normalizer\":{\"type\":\"Lowercase\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
            "Lowercase");
    refused("{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
            "Whitespace");
    refused("{\"post_processor\":{\"type\":\"Foo\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}", "Foo");
    refused("{\"added_tokens\":[{\"id\":1}],\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}", "added_tokens");
    refused("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "vocab");
    refused("{\"model\":{\"type\":\"Unigram\",\"unk_id\":7000000,\"vocab\":[[\"a\",1]]}}", "unk_id");
    cera_error e = {0};
    cera_vocab *v;
    assert_int_not_equal(cera_vocab_from_folder("no/such/folder", &v, &e), CERA_OK);
    assert_non_null(strstr(e.message, "tokenizer.json"));
    assert_int_not_equal(cera_vocab_from_folder("no/such/folder", &v, NULL), CERA_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(byte_level_bpe), cmocka_unit_test(bpe_on_utf8),
                                       cmocka_unit_test(word_piece), cmocka_unit_test(unigram), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
