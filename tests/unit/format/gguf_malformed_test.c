/* gguf_malformed_test.c: files that break a rule of the format. Each rule by its smallest file and the message it must get;
 * then a good file cut at every byte, with every byte changed, and under random damage: an error that names the file, or a file
 * whose views all lie inside it. Inputs are heap blocks of their exact size, so sanitizers see any read past the end. */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include "base/hash.h"
#include "base/rng.h"
#include "format/gguf_int.h"
#include "unit/format/gguf_builder.h"

/* Touches every byte that an opened file offers. */
static uint64_t walk(const cera_gguf *g) {
    uint64_t sum = 0;
    for (size_t i = 0; i < cera_gguf_n_keys(g); i++) {
        const cera_gguf_value *v = cera_gguf_key(g, i);
        assert_ptr_equal(cera_gguf_find(g, v->key), v);
        assert_true(cera_text_printable(v->key, strlen(v->key)));
        sum += cera_hash64(v->data, v->size_bytes, 0);
        if (v->type != CERA_GGUF_STRING) continue;
        cera_text_view *texts = calloc(v->n ? v->n : 1, sizeof *texts);
        if (v->is_array)
            assert_int_equal(cera_gguf_get_texts(g, v->key, v->n, texts, NULL), CERA_OK);
        else
            assert_int_equal(cera_gguf_get_text(g, v->key, texts, NULL), CERA_OK);
        for (uint64_t k = 0; k < v->n; k++) sum += cera_hash64(texts[k].text, texts[k].size, 0);
        free(texts);
    }
    for (size_t i = 0; i < cera_gguf_n_tensors(g); i++) {
        const cera_gguf_tensor *t = cera_gguf_tensor_at(g, i);
        assert_ptr_equal(cera_gguf_tensor_find(g, t->name), t);
        sum += cera_hash64(t->data, t->size_bytes, 0);
    }
    return sum;
}

/* Opens a copy of exactly size bytes. Returns whether it opened. */
static bool try_bytes(const uint8_t *data, size_t size, cera_error *e) {
    uint8_t *copy = malloc(size ? size : 1);
    if (size) memcpy(copy, data, size);
    cera_gguf *g = (cera_gguf *)copy;
    cera_status status = cera_gguf_open_memory("bad.gguf", copy, size, NULL, &g, e);
    if (status == CERA_OK) {
        volatile uint64_t sum = walk(g);
        (void)sum;
        cera_gguf_close(g);
    } else {
        assert_null(g);
        assert_int_equal(e->code, status);
        assert_memory_equal(e->message, "bad.gguf: ", 10);
    }
    free(copy);
    return status == CERA_OK;
}

static void refuse(builder *b, const char *message) {
    cera_error e = {0};
    if (try_bytes(b->data, b->size, &e)) fail_msg("accepted; \"%s\" was expected", message);
    if (!strstr(e.message, message)) fail_msg("\"%s\" does not hold \"%s\"", e.message, message);
    build_free(b);
}

static void headers(void **state) {
    (void)state;
    builder b = {0};
    build_bytes(&b, "", 0), refuse(&b, "the file is empty");
    build_bytes(&b, "GG", 2), refuse(&b, "cut short: it has 24 bytes, the file 2");
    build_bytes(&b, "GGUF", 4), refuse(&b, "cut short: it has 24 bytes, the file 4");
    build_bytes(&b, "GGML", 4), refuse(&b, "not a GGUF file: it begins with \"GGML\"");
    build_bytes(&b, "\x1b[2J", 4), refuse(&b, "it begins with \"\\x1B[2J\"");
    build_bytes(&b, "version https://git-lfs.github.com/spec/v1\n", 43), refuse(&b, "Git LFS pointer");
    build_header(&b, 0, 0, 0), refuse(&b, "GGUF version 0 is not supported; versions 2 and 3 are");
    build_header(&b, 1, 0, 0), refuse(&b, "GGUF version 1 is not supported");
    build_header(&b, 4, 0, 0), refuse(&b, "GGUF version 4 is not supported");
    build_header(&b, 0x03000000, 0, 0), refuse(&b, "big-endian GGUF (version 3");
    build_header(&b, 3, 0, UINT64_MAX), refuse(&b, "the header's key count is 18446744073709551615");
    build_header(&b, 3, (1ull << 60) + 1, 0), refuse(&b, "the header's tensor count is 1152921504606846977");
    build_header(&b, 3, 0, 2), build_zeros(&b, 25), refuse(&b, "the 25 bytes after the header have room for 1 at most");
    build_header(&b, 3, CERA_GGUF_MAX_TENSORS + 1, 0), build_zeros(&b, 24 * (CERA_GGUF_MAX_TENSORS + 1));
    refuse(&b, "tensor count is 262145; the limit is 262144");
    build_header(&b, 3, 0, CERA_GGUF_MAX_KEYS + 1), build_zeros(&b, 13 * (CERA_GGUF_MAX_KEYS + 1));
    refuse(&b, "key count is 65537; the limit is 65536");
}

static void build_one_key(builder *b) { build_header(b, 3, 0, 1); }

static void keys(void **state) {
    (void)state;
    builder b = {0};
    build_one_key(&b), build_u64(&b, 1ull << 63), build_zeros(&b, 9),
        refuse(&b, "key 0 (byte 24): its name has 9223372036854775808 bytes");
    build_one_key(&b), build_key(&b, "", 0), build_le(&b, 1, 1), refuse(&b, "key 0 (byte 24): its name is empty");
    build_one_key(&b), build_text_n(&b, "a\0b\xff", 4), build_zeros(&b, 5),
        refuse(&b, "key 0, \"a\\x00b\\xFF\": a name must be UTF-8");
    build_one_key(&b), build_key(&b, "a\nb", 0), build_le(&b, 1, 1), refuse(&b, "key 0, \"a\\x0Ab\"");
    char name[CERA_GGUF_MAX_NAME + 2];
    memset(name, 'n', sizeof name);
    name[CERA_GGUF_MAX_NAME + 1] = 0;
    build_one_key(&b), build_key(&b, name, 0), build_le(&b, 1, 1), refuse(&b, "its name has 1025 bytes; the limit is 1024");
    build_one_key(&b), build_key(&b, "a", 13), build_u32(&b, 0), refuse(&b, "key a: value type 13 is unknown");
    build_one_key(&b), build_key(&b, "a", 0x80000000), build_u32(&b, 0), refuse(&b, "key a: value type 2147483648 is unknown");
    build_one_key(&b), build_key(&b, "a", 7), build_le(&b, 2, 1), refuse(&b, "key a: a bool must be 0 or 1, not 2");
    build_one_key(&b), build_array(&b, "a", 7, 3), build_le(&b, 0x020101, 3), refuse(&b, "not 2 (element 2)");
    build_one_key(&b), build_key(&b, "a", 8), build_u64(&b, UINT64_MAX),
        refuse(&b, "key a: string 0 has 18446744073709551615 bytes");
    build_one_key(&b), build_key(&b, "a", 8), build_u32(&b, 1), refuse(&b, "key a: the file ends inside its value");
    build_one_key(&b), build_key(&b, "a", 10), build_u32(&b, 1), refuse(&b, "key a: the file ends inside its value");
    build_one_key(&b), build_key(&b, "aaaaaaaa", 9), build_u32(&b, 4),
        refuse(&b, "key aaaaaaaa: the file ends inside its value");
    build_one_key(&b), build_array(&b, "a", 4, UINT64_MAX),
        refuse(&b, "key a: 18446744073709551615 elements of type u32 do not fit");
    build_one_key(&b), build_array(&b, "a", 4, 1ull << 62), refuse(&b, "key a: 4611686018427387904 elements");
    build_one_key(&b), build_array(&b, "a", 8, 1ull << 61), build_zeros(&b, 64),
        refuse(&b, "key a: 2305843009213693952 elements of type string");
    build_one_key(&b), build_array(&b, "a", 8, 2), build_text(&b, "x"), build_u64(&b, 1),
        refuse(&b, "key a: string 1 has 1 bytes; 0 are left");
    build_one_key(&b), build_array(&b, "a", 9, 1), refuse(&b, "key a: an array of arrays");
    build_one_key(&b), build_array(&b, "a", 14, 1), refuse(&b, "key a: value type 14 is unknown");
    build_header(&b, 3, 0, 2), build_arch(&b), build_arch(&b), refuse(&b, "key general.architecture occurs twice");
    build_header(&b, 3, 0, 2), build_arch(&b), build_u64(&b, 100), build_zeros(&b, 13), refuse(&b, "key 1 (byte");
}

static void alignments(void **state) {
    (void)state;
    static const struct {
        uint64_t value;
        const char *message;
    } bad[] = {{0, "key general.alignment is 0; it must be a power of two from 8"},
               {3, "is 3;"},
               {4, "is 4;"},
               {48, "is 48;"},
               {1ull << 31, "is 2147483648;"},
               {UINT64_MAX, "is 18446744073709551615;"}};
    builder b = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        build_one_key(&b), build_key(&b, "general.alignment", 10), build_u64(&b, bad[i].value);
        refuse(&b, bad[i].message);
    }
    build_one_key(&b), build_key(&b, "general.alignment", 8), build_text(&b, "32");
    refuse(&b, "key general.alignment is a string; it must be an integer");
    build_one_key(&b), build_array(&b, "general.alignment", 4, 2), build_u32(&b, 32), build_u32(&b, 32);
    refuse(&b, "key general.alignment must be one number");
    build_one_key(&b), build_key(&b, "general.alignment", 6), build_u32(&b, 0x7fc00000); /* NaN */
    refuse(&b, "key general.alignment is nan;");
}

/* A file with one tensor over 64 bytes of data. */
static void one_tensor(uint32_t n_dims, const uint64_t *dims, uint32_t type, uint64_t offset, const char *message) {
    builder b = {0};
    build_header(&b, 3, 1, 1);
    build_arch(&b);
    build_tensor(&b, "t", n_dims, dims, type, offset);
    build_padding(&b, 32);
    build_zeros(&b, 64);
    refuse(&b, message);
}

static void tensors(void **state) {
    (void)state;
    uint64_t four[] = {4, 1, 1, 1, 1};
    one_tensor(0, four, 0, 0, "tensor t has 0 dimensions; there must be 1 to 4");
    one_tensor(5, four, 0, 0, "tensor t has 5 dimensions");
    one_tensor(2, (uint64_t[]){4, 0}, 0, 0, "tensor t: dimension 1 is 0");
    one_tensor(1, (uint64_t[]){0}, 0, 0, "tensor t: dimension 0 is 0");
    one_tensor(1, four, 4, 0, "tensor t: type 4 is unknown");
    one_tensor(1, four, 63, 0, "tensor t: type 63 is unknown");
    one_tensor(1, four, UINT32_MAX, 0, "tensor t: type 4294967295 is unknown");
    one_tensor(1, four, 0, 4, "tensor t: offset 4 is not a multiple of the alignment, 32");
    one_tensor(1, four, 0, 96, "tensor t: 16 bytes at offset 96 end beyond the file");
    one_tensor(1, four, 0, 1ull << 63, "tensor t: 16 bytes at offset 9223372036854775808 end beyond the file");
    one_tensor(1, (uint64_t[]){8}, 0, UINT64_MAX - 31, "at offset 18446744073709551584 end beyond the file");
    one_tensor(1, (uint64_t[]){17}, 0, 0, "tensor t: 68 bytes at offset 0 end beyond the file");
    one_tensor(1, (uint64_t[]){9}, 0, 32, "tensor t: 36 bytes at offset 32 end beyond the file");
    one_tensor(1, (uint64_t[]){33}, 2, 0, "tensor t: its rows have 33 elements, not a multiple of q4_0's block of 32");
    one_tensor(2, (uint64_t[]){128, 2}, 12, 0, "tensor t: its rows have 128 elements, not a multiple of q4_k's block of 256");
    one_tensor(2, (uint64_t[]){1ull << 63, 2}, 0, 0,
               "tensor t: the size of its shape [9223372036854775808, 2, 1, 1] overflows");
    one_tensor(2, (uint64_t[]){1ull << 32, 1ull << 32}, 24, 0, "overflows");
    one_tensor(4, (uint64_t[]){1ull << 20, 1ull << 20, 1ull << 20, 16}, 0, 0, "overflows");
    one_tensor(2, (uint64_t[]){1152, (1ull << 42) + 1}, 8, 0, "end beyond the file");
    one_tensor(1, (uint64_t[]){UINT64_MAX}, 0, 0, "overflows");
}

static void build_two_tensors(builder *b, const char *second, uint64_t offset, size_t data_bytes) {
    build_header(b, 3, 2, 0);
    build_tensor(b, "a", 1, (uint64_t[]){16}, 0, 0);
    build_tensor(b, second, 1, (uint64_t[]){16}, 0, offset);
    build_padding(b, 32);
    build_zeros(b, data_bytes);
}

static void tensors_together(void **state) {
    (void)state;
    builder b = {0};
    cera_error e = {0};
    build_two_tensors(&b, "a", 64, 128), refuse(&b, "tensor a occurs twice");
    build_two_tensors(&b, "b", 32, 128), refuse(&b, "tensor b overlaps tensor a");
    build_two_tensors(&b, "b", 0, 128), refuse(&b, "overlaps tensor");
    build_two_tensors(&b, "b", 64, 128), assert_true(try_bytes(b.data, b.size, &e)), build_free(&b);
    build_header(&b, 3, 3, 0); /* in another order than they are stored */
    build_tensor(&b, "a", 1, (uint64_t[]){16}, 0, 64);
    build_tensor(&b, "b", 1, (uint64_t[]){9}, 0, 0);
    build_tensor(&b, "c", 1, (uint64_t[]){8}, 0, 32);
    build_padding(&b, 32), build_zeros(&b, 128), refuse(&b, "tensor c overlaps tensor b");
    build_header(&b, 3, 1, 0), build_tensor(&b, "a", 1, (uint64_t[]){1}, 0, 0);
    refuse(&b, "the file ends before the data of its first tensor, a");
    build_header(&b, 3, 1, 0), build_text(&b, "a"), build_u32(&b, 1), build_u64(&b, 1), build_u32(&b, 0);
    refuse(&b, "tensor a: the file ends inside its description");
    char name[66000];
    memset(name, 'n', sizeof name);
    name[65536] = 0;
    build_header(&b, 3, 1, 0), build_tensor(&b, name, 1, (uint64_t[]){4}, 0, 0), build_padding(&b, 32), build_zeros(&b, 64);
    refuse(&b, "its name has 65536 bytes; the limit is 1024");
    name[64] = 0; /* longer than ggml's field of 64 bytes: fine here */
    build_header(&b, 3, 1, 0), build_tensor(&b, name, 1, (uint64_t[]){4}, 0, 0), build_padding(&b, 32), build_zeros(&b, 64);
    assert_true(try_bytes(b.data, b.size, &e));
    build_free(&b);
}

/* ---- damage ---- */

/* Keys of every kind and tensors of three types. */
static void build_good(builder *b) {
    build_header(b, 3, 3, 6);
    build_arch(b);
    build_key(b, "general.alignment", 4), build_u32(b, 32);
    build_array(b, "tokens", 8, 3), build_text(b, "a"), build_text(b, ""), build_text(b, "\xe2\x96\x81the");
    build_array(b, "flags", 7, 4), build_u32(b, 0x01000100);
    build_key(b, "eps", 6), build_u32(b, 0x3727c5ac);
    build_array(b, "heads", 5, 2), build_u32(b, 4), build_u32(b, 8);
    build_tensor(b, "token_embd.weight", 2, (uint64_t[]){32, 3}, CERA_Q8_0, 0);
    build_tensor(b, "blk.0.attn_norm.weight", 1, (uint64_t[]){8}, CERA_F32, 128);
    build_tensor(b, "output.weight", 2, (uint64_t[]){4, 4}, CERA_F16, 160);
    build_padding(b, 32);
    build_zeros(b, 192);
}

static void cut_at_every_byte(void **state) {
    (void)state;
    builder b = {0};
    build_good(&b);
    cera_error e = {0};
    if (!try_bytes(b.data, b.size, &e)) fail_msg("%s", e.message);
    for (size_t n = 0; n < b.size; n++) {
        e = (cera_error){0};
        if (try_bytes(b.data, n, &e)) fail_msg("the first %zu of %zu bytes were accepted", n, b.size);
    }
    build_free(&b);
}

static void every_byte_changed(void **state) {
    (void)state;
    static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x20};
    builder b = {0};
    build_good(&b);
    for (size_t i = 0; i < b.size - 192; i++)
        for (size_t m = 0; m < sizeof masks; m++) {
            cera_error e = {0};
            b.data[i] ^= masks[m];
            try_bytes(b.data, b.size, &e);
            b.data[i] ^= masks[m];
        }
    build_free(&b);
}

/* 8-byte fields set to values that overflow something, at every place. */
static void every_word_extreme(void **state) {
    (void)state;
    static const uint64_t values[] = {0, UINT64_MAX, 1ull << 63, 1ull << 62, 1ull << 32, UINT64_MAX - 31, 1ull << 61};
    builder b = {0};
    build_good(&b);
    for (size_t i = 0; i + 8 <= b.size - 192; i++)
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            uint8_t saved[8];
            cera_error e = {0};
            memcpy(saved, b.data + i, 8);
            memcpy(b.data + i, &values[k], 8);
            try_bytes(b.data, b.size, &e);
            memcpy(b.data + i, saved, 8);
        }
    build_free(&b);
}

static void random_damage(void **state) {
    (void)state;
    enum { SEED = 20260726 };
    int opened = 0;
    for (uint64_t round = 0; round < 20000; round++) {
        builder b = {0};
        build_good(&b);
        uint32_t r[4];
        for (uint64_t k = 0; k < 1 + round % 4; k++) {
            cera_rng_block(SEED, round, k, r);
            b.data[r[0] % (b.size - 192)] = (uint8_t)r[1];
        }
        cera_error e = {0};
        opened += try_bytes(b.data, b.size, &e);
        build_free(&b);
    }
    printf("note: %d of 20000 damaged files still open (seed %d)\n", opened, SEED);
    assert_in_range(opened, 1, 19999);
}

/* Names whose hashes share their low bits: the reader must give up, not become quadratic. */
static void names_that_collide(void **state) {
    (void)state;
    enum { N = 2000, SLOTS = 4096 };
    builder b = {0};
    char name[32];
    int n = 0;
    build_header(&b, 3, 0, N);
    for (int i = 0; n < N; i++) {
        int length = snprintf(name, sizeof name, "k%d", i);
        if ((cera_hash64(name, (size_t)length, 0) & (SLOTS - 1)) >= 8) continue;
        build_key(&b, name, 0), build_le(&b, 0, 1);
        n++;
    }
    refuse(&b, "more than 512 names share a hash");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(keys),
        cmocka_unit_test(alignments),
        cmocka_unit_test(tensors),
        cmocka_unit_test(tensors_together),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(every_word_extreme),
        cmocka_unit_test(random_damage),
        cmocka_unit_test(names_that_collide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
