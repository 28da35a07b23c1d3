/* file_test.c: mapped, read and viewed files; folders, pipes, missing and empty files; progress and cancelling; the table of
 * mapped addresses, and a file that is shortened while it is mapped, seen from a signal handler. */
#include "unit/cmocka_all.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"

static char folder[256], path[512];

static int make_folder(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cera-file-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/data", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static uint8_t byte_at(size_t i) { return (uint8_t)(i * 7 + i / 251); }

static void write_file(size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fputc(byte_at(i), f);
    assert_int_equal(fclose(f), 0);
}

static void contents_are_the_files(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 4095, 4096, 4097, 3000000};
    static const unsigned flags[] = {0, CERA_FILE_NO_MMAP, CERA_FILE_PREFETCH};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        write_file(sizes[s]);
        for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
            cera_file *f;
            cera_error e = {0};
            if (cera_file_open(path, flags[k], NULL, NULL, &f, &e) != CERA_OK) fail_msg("%s", e.message);
            assert_int_equal(cera_file_size(f), sizes[s]);
            assert_string_equal(cera_file_path(f), path);
            assert_int_equal(cera_file_mapped(f), !(flags[k] & CERA_FILE_NO_MMAP));
            for (size_t i = 0; i < sizes[s]; i++)
                if (cera_file_data(f)[i] != byte_at(i)) fail_msg("byte %zu of %zu, flags %u", i, sizes[s], flags[k]);
            cera_file_close(f);
        }
    }
    cera_file_close(NULL);
}

static void an_empty_file_opens(void **state) {
    (void)state;
    write_file(0);
    for (unsigned flags = 0; flags < 2; flags++) {
        cera_file *f;
        assert_int_equal(cera_file_open(path, flags, NULL, NULL, &f, NULL), CERA_OK);
        assert_int_equal(cera_file_size(f), 0);
        assert_non_null(cera_file_data(f));
        cera_file_close(f);
    }
}

static void expect_failure(const char *name, const char *part, cera_status status) {
    cera_file *f = (cera_file *)&f;
    cera_error e = {0};
    assert_int_equal(cera_file_open(name, 0, NULL, NULL, &f, &e), status);
    assert_null(f);
    if (*name) assert_memory_equal(e.message, name, strlen(name));
    if (!strstr(e.message, part)) fail_msg("\"%s\" does not hold \"%s\"", e.message, part);
}

static void what_is_no_file_is_named(void **state) {
    (void)state;
    char name[600];
    expect_failure(path, "No such file", CERA_ERR_IO);
    expect_failure(folder, "folder", CERA_ERR_IO);
    expect_failure("/dev/null", "regular", CERA_ERR_IO);
    expect_failure("", "empty", CERA_ERR_ARGUMENT);
    snprintf(name, sizeof name, "%s/pipe", folder);
    assert_int_equal(mkfifo(name, 0600), 0);
    expect_failure(name, "regular", CERA_ERR_IO); /* and does not wait for a writer */
    unlink(name);
    if (geteuid() != 0) { /* root may read everything */
        write_file(10);
        chmod(path, 0);
        expect_failure(path, "denied", CERA_ERR_IO);
    }
}

typedef struct calls {
    int n;
    uint64_t last, total;
    int stop_at;
} calls;

static bool count_calls(void *ctx, uint64_t done, uint64_t total) {
    calls *c = ctx;
    assert_true(done > c->last && done <= total);
    c->last = done;
    c->total = total;
    return ++c->n != c->stop_at;
}

static void progress_is_told_and_may_cancel(void **state) {
    (void)state;
    write_file(20 << 20);
    cera_file *f;
    calls c = {0};
    assert_int_equal(cera_file_open(path, CERA_FILE_NO_MMAP, count_calls, &c, &f, NULL), CERA_OK);
    assert_true(c.n >= 2 && c.last == 20 << 20 && c.total == c.last);
    cera_file_close(f);
    cera_error e = {0};
    calls stop = {.stop_at = 1};
    assert_int_equal(cera_file_open(path, CERA_FILE_NO_MMAP, count_calls, &stop, &f, &e), CERA_ERR_CANCELLED);
    assert_null(f);
    assert_int_equal(stop.n, 1);
}

static void views_borrow(void **state) {
    (void)state;
    static const char data[] = "bytes";
    cera_file *f;
    assert_int_equal(cera_file_view("request", data, 5, &f, NULL), CERA_OK);
    assert_ptr_equal(cera_file_data(f), data);
    assert_int_equal(cera_file_size(f), 5);
    assert_false(cera_file_mapped(f));
    assert_string_equal(cera_file_path(f), "request");
    assert_null(cera_file_at_address(data));
    cera_file_close(f);
    assert_int_equal(cera_file_view("nothing", NULL, 0, &f, NULL), CERA_OK);
    assert_non_null(cera_file_data(f));
    cera_file_close(f);
}

static void addresses_lead_to_files(void **state) {
    (void)state;
    write_file(10000);
    cera_file *a, *b, *c;
    assert_int_equal(cera_file_open(path, 0, NULL, NULL, &a, NULL), CERA_OK);
    assert_int_equal(cera_file_open(path, 0, NULL, NULL, &b, NULL), CERA_OK);
    assert_int_equal(cera_file_open(path, CERA_FILE_NO_MMAP, NULL, NULL, &c, NULL), CERA_OK);
    const uint8_t *at = cera_file_data(a);
    assert_ptr_equal(cera_file_at_address(at), cera_file_path(a));
    assert_ptr_equal(cera_file_at_address(at + 9999), cera_file_path(a));
    assert_ptr_equal(cera_file_at_address(cera_file_data(b) + 5000), cera_file_path(b));
    assert_null(cera_file_at_address(cera_file_data(c)));
    assert_null(cera_file_at_address(&at));
    assert_null(cera_file_at_address(NULL));
    cera_file_close(a);
    assert_null(cera_file_at_address(at));
    cera_file_close(b);
    cera_file_close(c);
}

/* Slots are given back: far more files than the table holds, one after the other. */
static void slots_are_reused(void **state) {
    (void)state;
    write_file(1);
    for (int i = 0; i < CERA_FILE_MAX_MAPPED + 100; i++) {
        cera_file *f;
        assert_int_equal(cera_file_open(path, 0, NULL, NULL, &f, NULL), CERA_OK);
        cera_file_close(f);
    }
}

static void too_many_mapped_files_are_refused(void **state) {
    (void)state;
    static cera_file *files[CERA_FILE_MAX_MAPPED];
    write_file(1);
    for (int i = 0; i < CERA_FILE_MAX_MAPPED; i++)
        assert_int_equal(cera_file_open(path, 0, NULL, NULL, &files[i], NULL), CERA_OK);
    expect_failure(path, "2048 mapped files", CERA_ERR_LIMIT);
    for (int i = 0; i < CERA_FILE_MAX_MAPPED; i++) cera_file_close(files[i]);
}

static sigjmp_buf back;
static char seen[512];

static void on_bus_error(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)context;
    const char *name = cera_file_at_address(info->si_addr);
    size_t i = 0;
    for (; name && name[i] && i + 1 < sizeof seen; i++) seen[i] = name[i];
    seen[i] = 0;
    siglongjmp(back, 1);
}

static void a_shortened_file_is_named_in_the_handler(void **state) {
    (void)state;
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, old;
    write_file(100000);
    cera_file *f;
    assert_int_equal(cera_file_open(path, 0, NULL, NULL, &f, NULL), CERA_OK);
    assert_int_equal(truncate(path, 10), 0);
    sigaction(SIGBUS, &action, &old);
    if (sigsetjmp(back, 1) == 0) {
        volatile uint8_t value = cera_file_data(f)[90000];
        (void)value;
        fail_msg("the page behind the end could be read");
    }
    sigaction(SIGBUS, &old, NULL);
    assert_string_equal(seen, path);
    cera_file_close(f);
}

/* The file loses bytes between open and read; only the progress callback lets a test in between. */
static bool shorten(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done > 8 << 20 || truncate(path, 9 << 20) == 0;
}

static void shortened_while_being_read(void **state) {
    (void)state;
    write_file(17 << 20);
    cera_file *f;
    cera_error e = {0};
    assert_int_equal(cera_file_open(path, CERA_FILE_NO_MMAP, shorten, NULL, &f, &e), CERA_ERR_IO);
    assert_non_null(strstr(e.message, "when it was opened"));
}

#define FOLDER_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(contents_are_the_files),
        FOLDER_TEST(an_empty_file_opens),
        FOLDER_TEST(what_is_no_file_is_named),
        FOLDER_TEST(progress_is_told_and_may_cancel),
        cmocka_unit_test(views_borrow),
        FOLDER_TEST(addresses_lead_to_files),
        FOLDER_TEST(slots_are_reused),
        FOLDER_TEST(too_many_mapped_files_are_refused),
        FOLDER_TEST(a_shortened_file_is_named_in_the_handler),
        FOLDER_TEST(shortened_while_being_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
