/* options_test.c: structs from older and newer headers. */
#include "unit/cmocka_all.h"

#include <string.h>

#include "engine/options.h"

typedef struct {
    size_t size;
    int32_t a, b;
    int64_t c;
} ours;
typedef struct {
    size_t size;
    int32_t a, b;
} older;
typedef struct {
    size_t size;
    int32_t a, b;
    int64_t c, d;
} newer;

static void test_take(void **state) {
    (void)state;
    ours o;
    const ours same = {sizeof same, 1, 2, 3};
    assert_int_equal(cera_options_take("x", &same, &o, sizeof o, NULL), CERA_OK);
    assert_true(o.a == 1 && o.b == 2 && o.c == 3 && o.size == sizeof o);
    const older old = {sizeof old, 4, 5};
    assert_int_equal(cera_options_take("x", &old, &o, sizeof o, NULL), CERA_OK);
    assert_true(o.a == 4 && o.b == 5 && o.c == 0);
    assert_int_equal(cera_options_take("x", NULL, &o, sizeof o, NULL), CERA_OK);
    assert_true(o.a == 0 && o.b == 0 && o.c == 0 && o.size == sizeof o);
    newer new = {sizeof new, 6, 7, 8, 0};
    assert_int_equal(cera_options_take("x", &new, &o, sizeof o, NULL), CERA_OK);
    assert_int_equal(o.c, 8);
    cera_error e = {0};
    new.d = 1;
    assert_int_equal(cera_options_take("x_options", &new, &o, sizeof o, &e), CERA_ERR_UNSUPPORTED);
    assert_non_null(strstr(e.message, "x_options"));
}

static void test_sizes_that_cannot_be(void **state) {
    (void)state;
    ours o = {0}, given = {0};
    cera_error e = {0};
    assert_int_equal(cera_options_take("x_options", &given, &o, sizeof o, &e), CERA_ERR_ARGUMENT);
    assert_string_equal(e.message, "x_options.size is 0; set it to sizeof(x_options)");
    given.size = (size_t)1 << 40;
    assert_int_equal(cera_options_take("x", &given, &o, sizeof o, NULL), CERA_ERR_ARGUMENT);
    assert_int_equal(cera_options_give("x", &given, &o, sizeof o, NULL), CERA_ERR_ARGUMENT);
}

static void test_give(void **state) {
    (void)state;
    const ours o = {sizeof o, 1, 2, 3};
    ours same = {.size = sizeof same};
    assert_int_equal(cera_options_give("x", &same, &o, sizeof o, NULL), CERA_OK);
    assert_true(same.a == 1 && same.b == 2 && same.c == 3 && same.size == sizeof same);
    struct {
        older o;
        int64_t guard;
    } old = {{.size = sizeof old.o}, 77};
    assert_int_equal(cera_options_give("x", &old.o, &o, sizeof o, NULL), CERA_OK);
    assert_true(old.o.a == 1 && old.o.b == 2 && old.guard == 77 && old.o.size == sizeof old.o);
    newer new = {.size = sizeof new, .d = 99};
    assert_int_equal(cera_options_give("x", &new, &o, sizeof o, NULL), CERA_OK);
    assert_true(new.c == 3 && new.d == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_sizes_that_cannot_be),
        cmocka_unit_test(test_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
