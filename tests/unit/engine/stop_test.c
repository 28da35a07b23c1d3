/* stop_test.c: stop strings against a reference that looks at the whole text: the first byte at which any string is complete,
 * the longest there, everything before it. Every cut into pieces must give the same, and no push may let out a byte too many.
 */
#include "unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "engine/stop.h"

/* Length of the text that should come out; *hit: which string ended it, -1. */
static size_t reference(const char *text, size_t n, const char *const *stops, size_t n_stops, int *hit) {
    *hit = -1;
    for (size_t end = 1; end <= n; end++) {
        for (size_t i = 0; i < n_stops; i++) {
            const size_t size = strlen(stops[i]);
            if (size > end || memcmp(text + end - size, stops[i], size) != 0) continue;
            if (*hit < 0 || size > strlen(stops[*hit])) *hit = (int)i;
        }
        if (*hit >= 0) return end - strlen(stops[*hit]);
    }
    return n;
}

typedef struct {
    char text[512];
    size_t size;
} heard;

static void push(cera_stop *s, const char *bytes, size_t n, bool last, heard *h, bool *stopped) {
    const char *out;
    size_t size;
    assert_int_equal(cera_stop_push(s, bytes, n, last, &out, &size, stopped, NULL), CERA_OK);
    if (size > 0) memcpy(h->text + h->size, out, size);
    h->size += size;
}

/* cuts: bit i set: a border before byte i. */
static void check(const char *text, const char *const *stops, size_t n_stops, uint64_t cuts) {
    const size_t n = strlen(text);
    int hit;
    const size_t want = reference(text, n, stops, n_stops, &hit);
    cera_stop s;
    cera_error e = {0};
    if (cera_stop_init(&s, stops, n_stops, &e) != CERA_OK) fail_msg("%s", e.message);
    heard h = {0};
    bool stopped = false;
    for (size_t from = 0; from < n;) {
        size_t end = from + 1;
        while (end < n && !(cuts >> (end % 64) & 1)) end++;
        push(&s, text + from, end - from, false, &h, &stopped);
        assert_true(h.size <= want); /* at no time */
        from = end;
    }
    push(&s, "", 0, true, &h, &stopped);
    if (h.size != want || memcmp(h.text, text, want) != 0) fail_msg("\"%s\": \"%.*s\" came out", text, (int)h.size, h.text);
    assert_int_equal(stopped, hit >= 0);
    assert_int_equal(s.hit, hit);
    cera_stop_deinit(&s);
}

static void check_all_cuts(const char *text, const char *const *stops, size_t n_stops) {
    const size_t n = strlen(text);
    assert_true(n <= 12);
    for (uint64_t cuts = 0; cuts < (uint64_t)1 << n; cuts++) check(text, stops, n_stops, cuts);
}

static void test_examples(void **state) {
    (void)state;
    const char *opq[] = {"O P Q"}, *user[] = {"\nUser:"}, *two[] = {"\nUser:", "###"};
    const char *alphabet = "A B C D E F G H I J K L M N O P Q R S";
    for (uint64_t c = 0; c < 200; c++) check(alphabet, opq, 1, c * 0x9E3779B97F4A7C15u);
    check_all_cuts("hi\nUser: x", user, 1);
    check_all_cuts("hi\nUser", user, 1);  /* starts, never ends */
    check_all_cuts("\n\nUser:", user, 1); /* a false start within the start */
    check_all_cuts("a\nUs###b", two, 2);
    check_all_cuts("", user, 1);
}

static void test_strings_inside_each_other(void **state) {
    (void)state;
    const char *inner[] = {"abcd", "bc"}, *outer[] = {"c", "abc"}, *repeated[] = {"aab"}, *self[] = {"abab", "aba"};
    check_all_cuts("xabcdx", inner, 2); /* "bc" is complete first: "xa" comes out */
    check_all_cuts("xabcx", outer, 2);  /* both at the same byte: nothing of the longer one */
    check_all_cuts("aaaaab", repeated, 1);
    check_all_cuts("aaaaaa", repeated, 1);
    check_all_cuts("xababab", self, 2);
}

static void test_bytes_within_characters(void **state) {
    (void)state;
    const char *stops[] = {"\xF0\x9F\x98\x80", "\xC3\xA9"}; /* an emoji that comes as single bytes, and e acute */
    check_all_cuts("a\xF0\x9F\x98\x80z", stops, 2);
    check_all_cuts("a\xF0\x9F\x98\x81z", stops, 2); /* its neighbour: a false start of three bytes */
    check_all_cuts("\xC3\xA8\xC3\xA9", stops, 2);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t c = 0; c < 4000; c++) {
        char text[64], strings[3][8];
        const char *stops[3] = {strings[0], strings[1], strings[2]};
        uint32_t r[4];
        for (int i = 0; i < 63; i++) {
            cera_rng_block(1, c, (uint64_t)i, r);
            text[i] = (char)('a' + r[0] % 2);
        }
        text[63] = 0;
        for (int k = 0; k < 3; k++) {
            cera_rng_block(2, c, (uint64_t)k, r);
            const int n = 1 + (int)(r[0] % 7);
            for (int i = 0; i < n; i++) strings[k][i] = (char)('a' + (r[1] >> i & 1));
            strings[k][n] = 0;
        }
        cera_rng_block(3, c, 0, r);
        check(text, stops, 1 + r[2] % 3, (uint64_t)r[0] << 32 | r[1]);
    }
}

static void test_after_the_end_and_refusals(void **state) {
    (void)state;
    const char *stops[] = {"x"}, *empty[] = {"a", ""};
    cera_stop s;
    cera_stop_init(&s, stops, 1, NULL);
    heard h = {0};
    bool stopped = false;
    push(&s, "abxcd", 5, false, &h, &stopped);
    assert_true(stopped);
    push(&s, "more", 4, false, &h, &stopped);
    push(&s, "", 0, true, &h, &stopped);
    assert_true(stopped && h.size == 2);
    cera_stop_deinit(&s);
    cera_error e = {0};
    assert_int_equal(cera_stop_init(&s, empty, 2, &e), CERA_ERR_ARGUMENT);
    assert_non_null(strstr(e.message, "number 2 is empty"));
    cera_stop_deinit(&s);
    assert_int_equal(cera_stop_init(&s, NULL, 0, NULL), CERA_OK); /* none: everything passes */
    h.size = 0;
    push(&s, "xyz", 3, false, &h, &stopped);
    assert_true(!stopped && h.size == 3);
    cera_stop_deinit(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_strings_inside_each_other),
        cmocka_unit_test(test_bytes_within_characters),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_after_the_end_and_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
