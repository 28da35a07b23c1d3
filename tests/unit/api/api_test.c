/* api_test.c: what is in front of the engine: model files to look at, the machine, tokenizers from bytes, and NULL where
 * something is needed. Model: tests/unit/engine/tiny_model.h, written to a file. */
#include "unit/cmocka_all.h"

#include <string.h>
#include <unistd.h>

#include "cera.h"
#include "unit/engine/tiny_model.h"

static char path[] = "/tmp/cera-api-test-XXXXXX";
static tiny_model model;

static int set_up(void **state) {
    (void)state;
    model = tiny_make(TINY_LLAMA, 5, NULL);
    const int fd = mkstemp(path);
    const ssize_t written = fd >= 0 ? write(fd, model.data, model.size) : -1;
    if (fd >= 0) close(fd);
    return written == (ssize_t)model.size ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    free(model.data);
    return unlink(path);
}

static cera_model_file *open_file(void) {
    cera_model_file *f = NULL;
    cera_error e = {0};
    if (cera_model_file_open(path, NULL, &f, &e) != CERA_OK) fail_msg("%s", e.message);
    return f;
}

static size_t find_key(const cera_model_file *f, const char *name, cera_model_key *k) {
    for (size_t i = 0; i < cera_model_file_n_keys(f); i++) {
        k->size = sizeof *k;
        assert_int_equal(cera_model_file_key(f, i, k, NULL), CERA_OK);
        if (strcmp(k->name, name) == 0) return i;
    }
    fail_msg("no key %s", name);
    return 0;
}

static void value_is(const cera_model_file *f, const char *key, uint64_t element, const char *want) {
    cera_model_key k;
    char text[64];
    size_t size = 0;
    const size_t i = find_key(f, key, &k);
    assert_int_equal(cera_model_file_value(f, i, element, text, sizeof text, &size, NULL), CERA_OK);
    assert_string_equal(text, want);
    assert_int_equal(size, strlen(want));
}

static void test_keys(void **state) {
    (void)state;
    cera_model_file *f = open_file();
    assert_int_equal(cera_model_file_version(f), 3);
    assert_int_equal(cera_model_file_bytes(f), model.size);
    value_is(f, "general.architecture", 0, "llama");
    value_is(f, "llama.block_count", 0, "2");
    value_is(f, "llama.rope.freq_base", 0, "10000");
    value_is(f, "tokenizer.ggml.add_bos_token", 0, "true");
    value_is(f, "tokenizer.ggml.tokens", 2, "</s>");
    value_is(f, "tokenizer.ggml.tokens", TINY_VOCAB - 1, "w319");
    value_is(f, "tokenizer.ggml.scores", 7, "-7");
    cera_model_key k;
    const size_t i = find_key(f, "tokenizer.ggml.tokens", &k);
    assert_true(k.is_array && k.is_text && k.n == TINY_VOCAB);
    assert_string_equal(k.type, "string");
    char text[4];
    size_t size = 0;
    assert_int_equal(cera_model_file_value(f, i, 0, text, sizeof text, &size, NULL),
                     CERA_OK); /* cut, and its whole length said */
    assert_string_equal(text, "<un");
    assert_int_equal(size, 5);
    assert_int_equal(cera_model_file_value(f, i, 0, NULL, 0, &size, NULL), CERA_OK);
    cera_error e = {0};
    assert_int_equal(cera_model_file_value(f, i, TINY_VOCAB, text, sizeof text, NULL, &e), CERA_ERR_ARGUMENT);
    assert_non_null(strstr(e.message, "tokenizer.ggml.tokens"));
    assert_int_equal(cera_model_file_key(f, 9999, &k, NULL), CERA_ERR_ARGUMENT);
    cera_model_file_close(f);
}

static void test_tensors(void **state) {
    (void)state;
    cera_model_file *f = open_file();
    assert_int_equal(cera_model_file_n_tensors(f), model.n_tensors);
    bool seen = false;
    for (size_t i = 0; i < cera_model_file_n_tensors(f); i++) {
        cera_model_tensor t = {.size = sizeof t};
        assert_int_equal(cera_model_file_tensor(f, i, &t, NULL), CERA_OK);
        if (strcmp(t.name, "blk.1.ffn_down.weight") != 0) continue;
        seen = true;
        assert_true(t.n_dims == 2 && t.shape[0] == TINY_FF && t.shape[1] == TINY_EMBD && t.shape[2] == 1);
        assert_int_equal(t.bytes, 4 * TINY_FF * TINY_EMBD);
        assert_string_equal(t.type, "f32");
        assert_true(t.computes);
    }
    assert_true(seen);
    cera_model_file_close(f);
}

static void test_machine(void **state) {
    (void)state;
    cera_machine m = {.size = sizeof m};
    assert_int_equal(cera_machine_get(&m, NULL), CERA_OK);
    assert_true(m.threads >= 1);
    assert_non_null(strstr(m.tiers, m.best_tier));
    assert_int_equal(strncmp(m.tiers, "c", 1), 0);
    bool llama = false;
    for (const char *const *a = cera_architectures(); *a; a++) llama = llama || strcmp(*a, "llama") == 0;
    assert_true(llama);
    assert_true(strlen(cera_version()) >= 5);
}

/* Engine from a file and from bytes say the same; an engine lists its mapped file for a SIGBUS handler. */
static void test_engine_from_file(void **state) {
    (void)state;
    cera_engine *g = NULL;
    cera_error e = {0};
    if (cera_engine_open(path, NULL, &g, &e) != CERA_OK) fail_msg("%s", e.message);
    cera_model_info i = {.size = sizeof i};
    assert_int_equal(cera_engine_info(g, &i, NULL), CERA_OK);
    assert_string_equal(i.arch, "llama");
    assert_string_equal(i.name, "tiny");
    assert_string_equal(i.path, path);
    assert_true(i.n_vocab == TINY_VOCAB && i.n_embd == TINY_EMBD && i.n_layer == 2 && i.n_ctx_train == TINY_CONTEXT &&
                i.causal);
    assert_int_equal(i.file_bytes, model.size);
    assert_true(i.kv_k == CERA_KV_DTYPE_F16 || i.kv_k == CERA_KV_DTYPE_BF16);
    assert_int_equal(i.kv_bytes_per_1k, 1000 * 2 * 2 * TINY_KV * TINY_HEAD * 2);
    char whole[256], cut[5];
    const int32_t n = cera_engine_describe_op(g, 0, whole, sizeof whole);
    assert_true(n > 4 && (size_t)n == strlen(whole));
    assert_int_equal(cera_engine_describe_op(g, 0, cut, sizeof cut), n);
    assert_int_equal(strlen(cut), 4);
    assert_int_equal(cera_engine_describe_op(g, cera_engine_n_ops(g), whole, sizeof whole), -1);
    cera_engine_close(g);
    const cera_engine_options o = {.size = sizeof o, .no_mmap = true, .threads = 1};
    if (cera_engine_open(path, &o, &g, &e) != CERA_OK) fail_msg("%s", e.message);
    assert_null(cera_mapped_path_at(whole));
    cera_engine_close(g);
}

static bool refuse(void *ctx, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    ++*(int *)ctx;
    return false;
}

static void test_progress_can_stop_a_load(void **state) {
    (void)state;
    int calls = 0;
    cera_engine *g = NULL;
    const cera_engine_options o = {.size = sizeof o, .no_mmap = true, .progress = refuse, .progress_ctx = &calls};
    assert_int_equal(cera_engine_open(path, &o, &g, NULL), CERA_ERR_CANCELLED);
    assert_int_equal(calls, 1);
    assert_null(g);
}

static void expect_options_refused(cera_engine_options o, cera_status status, const char *word) {
    cera_engine *g = NULL;
    cera_error e = {0};
    assert_int_equal(cera_engine_open(path, &o, &g, &e), status);
    if (!strstr(e.message, word)) fail_msg("\"%s\" does not say %s", e.message, word);
    assert_null(g);
}

static void test_engine_options(void **state) {
    (void)state;
    cera_engine_options o = {.size = sizeof o};
    o.threads = -1, expect_options_refused(o, CERA_ERR_ARGUMENT, "threads"), o.threads = 0;
    o.context = -5, expect_options_refused(o, CERA_ERR_ARGUMENT, "context"), o.context = 0;
    o.ubatch = 1 << 30, expect_options_refused(o, CERA_ERR_ARGUMENT, "ubatch"), o.ubatch = 0;
    o.kv_k = (cera_kv_dtype)9, expect_options_refused(o, CERA_ERR_ARGUMENT, "kv_k"), o.kv_k = CERA_KV_DTYPE_AUTO;
    o.n_overrides = 1, expect_options_refused(o, CERA_ERR_ARGUMENT, "overrides"), o.n_overrides = 0;
    o.tier = "none", expect_options_refused(o, CERA_ERR_UNSUPPORTED, "these do: c"), o.tier = NULL;
    o.size = 3, expect_options_refused(o, CERA_ERR_ARGUMENT, "size");
    cera_kv_dtype t;
    assert_true(cera_kv_dtype_parse("bf16", &t) && t == CERA_KV_DTYPE_BF16);
    assert_false(cera_kv_dtype_parse("q4_0", &t));
    assert_string_equal(cera_kv_dtype_name(CERA_KV_DTYPE_AUTO), "auto");
}

static void test_tokenizer(void **state) {
    (void)state;
    cera_tokenizer *t = NULL;
    cera_error e = {0};
    if (cera_tokenizer_open_memory("bytes", model.data, model.size, NULL, &t, &e) != CERA_OK) fail_msg("%s", e.message);
    int32_t *ids = NULL;
    size_t n = 0;
    assert_int_equal(cera_tokenizer_encode(t, "ab\xFF", 3, CERA_ENCODE_BOS | CERA_ENCODE_CONTINUES, &ids, &n, NULL), CERA_OK);
    const int32_t want[] = {TINY_BOS, TINY_BYTE0 + 'a', TINY_BYTE0 + 'b', TINY_BYTE0 + 0xFF};
    assert_int_equal(n, 4);
    assert_memory_equal(ids, want, sizeof want);
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(cera_tokenizer_decode(t, ids, n, 0, &text, &size, NULL), CERA_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(text, "ab\xFF", 4); /* with its NUL */
    cera_release(text);
    cera_release(ids);
    assert_int_equal(cera_tokenizer_size(t), TINY_VOCAB);
    assert_true(cera_tokenizer_is_eog(t, TINY_EOS) && !cera_tokenizer_is_eog(t, TINY_BOS) && !cera_tokenizer_is_eog(t, -1));
    assert_int_equal(cera_tokenizer_find(t, "w300"), 300);
    assert_int_equal(cera_tokenizer_bos(t), TINY_BOS);
    assert_null(cera_tokenizer_piece(t, TINY_VOCAB, true, &size));
    const int32_t bad = TINY_VOCAB;
    assert_int_equal(cera_tokenizer_decode(t, &bad, 1, 0, &text, &size, NULL), CERA_ERR_ARGUMENT);
    cera_tokenizer_close(t);
}

static void test_null_is_an_argument_error(void **state) {
    (void)state;
    cera_engine *g = NULL;
    assert_int_equal(cera_engine_open(NULL, NULL, &g, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_engine_open(path, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_engine_open_memory("x", NULL, 5, NULL, &g, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_engine_info(NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_session_create(NULL, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_session_append(NULL, NULL, 0, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_session_generate(NULL, NULL, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_session_rewind(NULL, 0, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_session_fork(NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_tokenizer_open(NULL, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_tokenizer_encode(NULL, "x", 1, 0, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_model_file_open(NULL, NULL, NULL, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_machine_get(NULL, NULL), CERA_ERR_ARGUMENT);
    assert_null(cera_engine_tokenizer(NULL));
    assert_null(cera_session_logits(NULL));
    assert_int_equal(cera_engine_n_ops(NULL), 0);
    cera_session_cancel(NULL);
    cera_session_reset(NULL);
    cera_release(NULL);
    cera_model_file_close(NULL);
    cera_tokenizer_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_engine_from_file),
        cmocka_unit_test(test_progress_can_stop_a_load),
        cmocka_unit_test(test_engine_options),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_null_is_an_argument_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
