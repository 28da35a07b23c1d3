/* status_test.c: error values and log lines: the first error wins, messages are one printable line, cut texts stay valid. */
#include "unit/cmocka_all.h"

#include <string.h>
#include "base/log.h"
#include "base/status.h"
#include "base/utf8.h"

static void first_error_wins(void **state) {
    (void)state;
    cera_error e = {0};
    assert_int_equal(cera_fail(&e, CERA_ERR_FORMAT, "key %s is %d", "a.b", 7), CERA_ERR_FORMAT);
    assert_int_equal(cera_fail(&e, CERA_ERR_IO, "later"), CERA_ERR_IO);
    assert_int_equal(e.code, CERA_ERR_FORMAT);
    assert_string_equal(e.message, "key a.b is 7");
    assert_int_equal(cera_fail(NULL, CERA_ERR_LIMIT, "nobody listens"), CERA_ERR_LIMIT);
}

static void control_bytes_are_escaped(void **state) {
    (void)state;
    cera_error e = {0};
    cera_fail(&e, CERA_ERR_FORMAT, "%s", "a\nb\x1b[2J\x7f \xff\xc3 \xc3\xa9 \xc2\x9b \xe2\x80\xae");
    assert_string_equal(e.message, "a\\x0Ab\\x1B[2J\\x7F \\xFF\\xC3 \xc3\xa9 \\xC2\\x9B \\xE2\\x80\\xAE");
    assert_true(cera_text_printable("key \xc3\xa9", 6));
    assert_false(cera_text_printable("a\0b", 3));
    assert_false(cera_text_printable("\xc2\x9b", 2));
}

static void long_texts_are_cut(void **state) {
    (void)state;
    char text[4 * CERA_ERROR_TEXT];
    for (size_t shift = 0; shift < 4; shift++) {
        cera_error e = {0};
        memset(text, 'x', shift);
        for (size_t i = shift; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xc3\xa9", 2);
        text[sizeof text - 2] = text[sizeof text - 1] = 0;
        cera_fail(&e, CERA_ERR_FORMAT, "%s", text);
        size_t n = strlen(e.message);
        assert_true(n < CERA_ERROR_TEXT && n > CERA_ERROR_TEXT - 16);
        assert_string_equal(e.message + n - 3, "...");
        assert_true(cera_utf8_valid(e.message, n));
        assert_null(strstr(e.message, "\\x"));
    }
    memset(text, 1, sizeof text - 1);
    cera_error e = {0};
    cera_fail(&e, CERA_ERR_FORMAT, "%s", text);
    assert_true(strlen(e.message) < CERA_ERROR_TEXT);
    assert_string_equal(e.message + strlen(e.message) - 7, "\\x01...");
}

static void prefix_goes_in_front(void **state) {
    (void)state;
    cera_error e = {0};
    cera_fail(&e, CERA_ERR_FORMAT, "key x is 0");
    assert_int_equal(cera_fail_prefix(&e, "bad\nname.gguf"), CERA_ERR_FORMAT);
    assert_string_equal(e.message, "bad\\x0Aname.gguf: key x is 0");
    for (int i = 0; i < 200; i++) cera_fail_prefix(&e, "0123456789abcdef");
    assert_true(strlen(e.message) < CERA_ERROR_TEXT);
    assert_memory_equal(e.message, "0123456789abcdef: 0123456789abcdef: ", 36);
    assert_string_equal(e.message + strlen(e.message) - 3, "...");
}

static void every_status_has_a_text(void **state) {
    (void)state;
    for (int s = CERA_OK; s <= CERA_ERR_NUMERIC; s++)
        assert_string_not_equal(cera_status_text((cera_status)s), "unknown status");
    assert_string_equal(cera_status_text((cera_status)99), "unknown status");
}

static char last_line[CERA_ERROR_TEXT];
static void keep_line(void *ctx, cera_log_level level, const char *text) {
    *(int *)ctx = level;
    strcpy(last_line, text);
}

static void log_lines_reach_the_callback(void **state) {
    (void)state;
    int level = -1;
    cera_log(CERA_LOG_WARN, "nobody listens");
    cera_log_set(keep_line, &level);
    cera_log(CERA_LOG_INFO, "%s is odd", "a\tb");
    cera_log_set(NULL, NULL);
    cera_log(CERA_LOG_WARN, "nobody listens again");
    assert_int_equal(level, CERA_LOG_INFO);
    assert_string_equal(last_line, "a\\x09b is odd");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),        cmocka_unit_test(control_bytes_are_escaped),
        cmocka_unit_test(long_texts_are_cut),      cmocka_unit_test(prefix_goes_in_front),
        cmocka_unit_test(every_status_has_a_text), cmocka_unit_test(log_lines_reach_the_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
