/* text_stream_test.c: what comes out is valid UTF-8 and the same for every way to cut what goes in. The table's right column is
 * Python's bytes.decode("utf-8", "replace"), which follows the same rule. */
#include "unit/cmocka_all.h"

#include <string.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "engine/text_stream.h"

static const struct {
    const char *in;
    size_t n;
    const char *out;
} table[] = {
    {"plain", 5, "plain"},
    {"h\xC3\xA9llo", 6, "h\xC3\xA9llo"},
    {"\xE2\x82", 2, "\xEF\xBF\xBD"},
    {"\xE2\x82\xAC", 3, "\xE2\x82\xAC"},
    {"\xFF\xFE", 2, "\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xE2\x28\xA1", 3, "\xEF\xBF\xBD\x28\xEF\xBF\xBD"},
    {"a\xF0\x9F\x98", 4, "a\xEF\xBF\xBD"},
    {"\xF0\x9F\x98\x80"
     "b",
     5,
     "\xF0\x9F\x98\x80"
     "b"},
    {"\xC0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xF4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xF0\x82\x82\xAC", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xE2\x82\xE2\x82\xAC", 5, "\xEF\xBF\xBD\xE2\x82\xAC"},
    {"\xF0\x9F\xF0\x9F\x98\x80\xF0", 7, "\xEF\xBF\xBD\xF0\x9F\x98\x80\xEF\xBF\xBD"},
    {"\x80\x80x\xC3", 4, "\xEF\xBF\xBD\xEF\xBF\xBDx\xEF\xBF\xBD"},
    {"\xC3\xC3\xA9", 3, "\xEF\xBF\xBD\xC3\xA9"},
    {"\xF1\x80\x80\x41", 4, "\xEF\xBF\xBD\x41"},
    {"\xE0\x80\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"", 0, ""},
};

static cera_text_stream stream;
static char joined[4096];
static size_t n_joined;

static void push(const char *bytes, size_t n, bool last) {
    const char *text = NULL;
    size_t size = 0;
    assert_int_equal(cera_text_stream_push(&stream, bytes, n, last, &text, &size, NULL), CERA_OK);
    assert_true(size == 0 || cera_utf8_valid(text, size));
    assert_true(n_joined + size <= sizeof joined);
    if (size > 0) memcpy(joined + n_joined, text, size);
    n_joined += size;
}

static void begin(void) {
    cera_text_stream_deinit(&stream);
    n_joined = 0;
}

/* Every way to cut up to 7 bytes: bit i of the mask is a cut after byte i. */
static void test_every_cut(void **state) {
    (void)state;
    for (size_t row = 0; row < sizeof table / sizeof *table; row++)
        for (unsigned mask = 0; mask < 1u << table[row].n; mask++)
            for (int flush = 0; flush < 2; flush++) {
                begin();
                size_t from = 0;
                for (size_t i = 0; i < table[row].n; i++)
                    if (mask >> i & 1) {
                        push(table[row].in + from, i + 1 - from, false);
                        from = i + 1;
                    }
                if (flush) push(table[row].in + from, table[row].n - from, false);
                push(table[row].in + (flush ? table[row].n : from), flush ? 0 : table[row].n - from, true);
                if (n_joined != strlen(table[row].out) || memcmp(joined, table[row].out, n_joined) != 0)
                    fail_msg("row %zu, cuts %x, flush %d: %zu bytes", row, mask, flush, n_joined);
            }
    begin();
}

/* Random bytes, mostly parts of characters, cut at random: the same text as in one piece. */
static void test_random_cuts(void **state) {
    (void)state;
    static const unsigned char alphabet[] = {'a',  0x80, 0xBF, 0xC3, 0xA9, 0xE2, 0x82, 0xAC,
                                             0xED, 0xA0, 0xF0, 0x9F, 0x98, 0xF4, 0x90, 0xFF};
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        char bytes[64], whole[512];
        for (int i = 0; i < 64; i++) bytes[i] = (char)alphabet[(int)(16 * cera_rng_uniform(seed, 0, (uint64_t)i))];
        begin();
        push(bytes, 64, true);
        const size_t n_whole = n_joined;
        memcpy(whole, joined, n_whole);
        begin();
        for (size_t at = 0, cut = 0; at < 64; cut++) {
            size_t n = 1 + (size_t)(6 * cera_rng_uniform(seed, 1, cut));
            if (n > 64 - at) n = 64 - at;
            push(bytes + at, n, false);
            at += n;
        }
        push("", 0, true);
        if (n_joined != n_whole || memcmp(joined, whole, n_whole) != 0) fail_msg("seed %llu", (unsigned long long)seed);
    }
    begin();
}

/* Nothing waits that does not have to: a character goes out with its last byte, at most three bytes are held. */
static void test_nothing_waits_longer_than_needed(void **state) {
    (void)state;
    begin();
    push("\xF0\x9F\x98", 3, false);
    assert_int_equal(n_joined, 0);
    push("\x80", 1, false);
    assert_int_equal(n_joined, 4);
    push("x\xE2", 2, false);
    assert_int_equal(n_joined, 5);
    push("y", 1, false);
    assert_int_equal(n_joined, 9);
    begin();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_random_cuts),
        cmocka_unit_test(test_nothing_waits_longer_than_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
