/* cpu_test.c: tiers and masks are consistent with each other, quotas and control groups (versions 1 and 2) are read from trees
 * made for the test, and what this machine says is within reason. */
#include "unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cgroup_int.h"
#include "base/cpu.h"

static void tiers_and_names(void **state) {
    (void)state;
    for (int t = 0; t < CERA_TIER_COUNT; t++) {
        cera_cpu_tier parsed = CERA_TIER_COUNT;
        assert_true(cera_cpu_tier_parse(cera_cpu_tier_name((cera_cpu_tier)t), &parsed));
        assert_int_equal(parsed, t);
    }
    cera_cpu_tier unused;
    assert_false(cera_cpu_tier_parse("sse9", &unused));
    assert_string_equal(cera_cpu_tier_name(CERA_TIER_AVX512VNNI), "avx512vnni");
    assert_true((cera_cpu_tier_features(CERA_TIER_AMX) & cera_cpu_tier_features(CERA_TIER_AVX512BF16)) ==
                cera_cpu_tier_features(CERA_TIER_AVX512BF16));
    assert_int_equal(cera_cpu_tier_features(CERA_TIER_AVX512VNNI) & CERA_CPU_AVXVNNI, 0);
    for (uint32_t bit = 0; bit < 32; bit++)
        if (cera_cpu_features_raw() & 1u << bit) assert_string_not_equal(cera_cpu_feature_name(1u << bit), "unknown");
    assert_string_equal(cera_cpu_feature_name(1u << 31), "unknown");
}

static void mask_takes_features_away(void **state) {
    (void)state;
    cera_cpu_tier best = cera_cpu_best_tier();
    assert_true(cera_cpu_has_tier(best) && cera_cpu_has_tier(CERA_TIER_C));
    cera_cpu_set_mask(0);
    assert_int_equal(cera_cpu_best_tier(), CERA_TIER_C);
    assert_int_equal(cera_cpu_features(), 0);
    assert_true(cera_cpu_has_tier(CERA_TIER_C));
    for (int t = 0; t < CERA_TIER_COUNT; t++) {
        cera_cpu_set_mask(cera_cpu_tier_features((cera_cpu_tier)t));
        if ((cera_cpu_features_raw() & cera_cpu_tier_features((cera_cpu_tier)t)) == cera_cpu_tier_features((cera_cpu_tier)t))
            assert_int_equal(cera_cpu_best_tier(), t);
    }
    cera_cpu_set_mask(UINT32_MAX);
    assert_int_equal(cera_cpu_best_tier(), best);
    assert_false(cera_cpu_has_tier((cera_cpu_tier)77));
}

static void quota_texts(void **state) {
    (void)state;
    assert_int_equal(cera_cpu_threads_from(8, NULL), 8);
    assert_int_equal(cera_cpu_threads_from(8, "max 100000\n"), 8);
    assert_int_equal(cera_cpu_threads_from(8, "200000 100000\n"), 2);
    assert_int_equal(cera_cpu_threads_from(8, "200001 100000\n"), 3);
    assert_int_equal(cera_cpu_threads_from(8, "10000 100000"), 1);
    assert_int_equal(cera_cpu_threads_from(2, "900000 100000"), 2);
    assert_int_equal(cera_cpu_threads_from(0, NULL), 1);
    assert_int_equal(cera_cpu_threads_from(-3, "50000 100000"), 1);
    static const char *const broken[] = {"", "x", "0 100000", "100000", "100000 0", "-1 100000", "\n", " 5 1"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) assert_int_equal(cera_cpu_threads_from(4, broken[i]), 4);
    assert_int_equal(cera_cpu_threads_from(4, "99999999999999999999999 100000"), 4);
}

/* ---- trees ---- */

static char root[256];

static int make_root(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/cera-cpu-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void put(const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void nothing_there_is_no_limit(void **state) {
    (void)state;
    assert_int_equal(cera_cgroup_threads(root, 8), 8);
    assert_true(cera_cgroup_memory(root) == UINT64_MAX);
    assert_true(cera_meminfo_available(root) == 0);
}

static void version_2_asks_every_ancestor(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "1000000\n");
    put("/sys/fs/cgroup/outer/inner/memory.current", "700000\n");
    put("/sys/fs/cgroup/outer/inner/memory.stat", "anon 300000\ninactive_file 300000\nactive_file 100000\n");
    put("/sys/fs/cgroup/outer/memory.max", "max\n");
    assert_int_equal(cera_cgroup_threads(root, 8), 3);
    assert_int_equal(cera_cgroup_threads(root, 2), 2);
    assert_int_equal(cera_cgroup_memory(root), 700000);
    put("/sys/fs/cgroup/outer/memory.max", "500000\n");
    put("/sys/fs/cgroup/outer/memory.current", "600000\n");
    assert_int_equal(cera_cgroup_memory(root), 0);
}

static void container_without_its_path_uses_the_mount(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/not/mounted/here\n");
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    assert_int_equal(cera_cgroup_threads(root, 8), 2);
}

static void version_1_hierarchies(void **state) {
    (void)state;
    put("/proc/self/cgroup", "4:memory:/m\n2:cpuset:/\n1:cpu,cpuacct:/c\n");
    put("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "400000\n");
    put("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "2000\n");
    put("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1500\n");
    put("/sys/fs/cgroup/memory/m/memory.stat", "total_inactive_file 200\ntotal_active_file 50\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(cera_cgroup_threads(root, 8), 4);
    assert_int_equal(cera_cgroup_memory(root), 750);
}

static void odd_files_do_no_harm(void **state) {
    (void)state;
    put("/proc/self/cgroup", "nonsense\n::\n0:\n0::\n1:cpu\n2:cpu:relative\n");
    put("/proc/meminfo", "MemTotal: 5 kB\nMemAvailable:   12345 kB\n");
    assert_int_equal(cera_cgroup_threads(root, 8), 8);
    assert_int_equal(cera_meminfo_available(root), 12345 * 1024);
    put("/proc/meminfo", "");
    assert_int_equal(cera_meminfo_available(root), 0);
}

static void this_machine(void **state) {
    (void)state;
    char model[64], small[4];
    cera_cpu_model(model, sizeof model);
    cera_cpu_model(small, sizeof small);
    assert_true(strlen(small) < sizeof small);
    int threads = cera_cpu_allowed_threads();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    printf("note: \"%s\", best tier %s, %d threads, %llu MiB available\n", model, cera_cpu_tier_name(cera_cpu_best_tier()),
           threads, (unsigned long long)(cera_cpu_available_memory() >> 20));
    assert_in_range(threads, 1, online);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_and_names),
        cmocka_unit_test(mask_takes_features_away),
        cmocka_unit_test(quota_texts),
        TREE_TEST(nothing_there_is_no_limit),
        TREE_TEST(version_2_asks_every_ancestor),
        TREE_TEST(container_without_its_path_uses_the_mount),
        TREE_TEST(version_1_hierarchies),
        TREE_TEST(odd_files_do_no_harm),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
