/* cgroup.c: reads the CPU quota and the memory limit of this process's control group, version 2 (cpu.max, memory.max) and
 * version 1 (cpu.cfs_quota_us, memory.limit_in_bytes). A limit of any ancestor binds too, so every level up to the mount is
 * asked. In a container the path in /proc/self/cgroup may name a group of the host that is not mounted here; then the mount
 * itself is the group. On systems without these files there is no limit. Does not own affinity and cpusets: the kernel folds
 * both into the affinity mask (cpu.c). */
#include "base/cgroup_int.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cpu.h"

enum { PATH_SIZE = 1024, TEXT_SIZE = 8192 };

/* The first TEXT_SIZE - 1 bytes of a file, NUL-terminated. */
static bool read_text(const char *path, char out[TEXT_SIZE]) {
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(out, 1, TEXT_SIZE - 1, f);
    fclose(f);
    out[n] = 0;
    return true;
}

/* The path of this process's group: of the v2 hierarchy when controller is NULL, else of the v1 hierarchy with this controller.
 */
static bool group_path(const char *root, const char *controller, char out[PATH_SIZE]) {
    char name[PATH_SIZE], text[TEXT_SIZE];
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    if (!read_text(name, text)) return false;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        names++;
        bool match = !controller && strncmp(line, "0:", 2) == 0 && !*names;
        char *more = NULL;
        for (char *one = controller ? strtok_r(names, ",", &more) : NULL; one; one = strtok_r(NULL, ",", &more))
            match = match || strcmp(one, controller) == 0;
        if (match) {
            snprintf(out, PATH_SIZE, "%s", path);
            return true;
        }
    }
    return false;
}

/* What is asked at each level of a hierarchy; folder ends without a slash. */
typedef void (*level_fn)(const char *folder, void *ctx);

/* From the group up to the mount point itself, which is always asked last. */
static void each_level(const char *root, const char *mount, const char *controller, level_fn ask, void *ctx) {
    char path[PATH_SIZE], folder[2 * PATH_SIZE];
    if (!group_path(root, controller, path)) return;
    for (;;) {
        size_t n = strlen(path);
        while (n > 0 && path[n - 1] == '/') path[--n] = 0;
        snprintf(folder, sizeof folder, "%s%s%s", root, mount, path);
        ask(folder, ctx);
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = 0;
    }
}

static bool read_level(const char *folder, const char *name, char out[TEXT_SIZE]) {
    char path[3 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_text(path, out);
}

static void ask_cpu_v2(const char *folder, void *ctx) {
    int *allowed = ctx;
    char text[TEXT_SIZE];
    if (read_level(folder, "cpu.max", text)) *allowed = cera_cpu_threads_from(*allowed, text);
}

static void ask_cpu_v1(const char *folder, void *ctx) {
    int *allowed = ctx;
    char quota[TEXT_SIZE], period[TEXT_SIZE], both[64];
    if (!read_level(folder, "cpu.cfs_quota_us", quota) || !read_level(folder, "cpu.cfs_period_us", period)) return;
    snprintf(both, sizeof both, "%.24s %.24s", quota, period); /* a quota of -1 is no number of cpu.max and so no limit */
    *allowed = cera_cpu_threads_from(*allowed, both);
}

int cera_cgroup_threads(const char *root, int allowed) {
    each_level(root, "/sys/fs/cgroup", NULL, ask_cpu_v2, &allowed);
    each_level(root, "/sys/fs/cgroup/cpu", "cpu", ask_cpu_v1, &allowed);
    return allowed < 1 ? 1 : allowed;
}

/* The number after a name at the start of a line, as memory.stat and meminfo write them; 0 when absent. */
static uint64_t stat_value(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == ':')) return strtoull(line + n + 1, NULL, 10);
        if (!*line) break;
    }
    return 0;
}

typedef struct memory_names {
    const char *limit, *current, *cache_a, *cache_b;
} memory_names;

/* Page cache counts as free, as it does in MemAvailable: a model that was mapped and read before is such cache. */
static void ask_memory(const char *folder, const memory_names *names, uint64_t *left) {
    char text[TEXT_SIZE];
    if (!read_level(folder, names->limit, text) || text[0] < '0' || text[0] > '9') return;
    uint64_t limit = strtoull(text, NULL, 10), current = 0, cache = 0;
    if (limit >= UINT64_MAX / 4) return; /* version 1 writes "no limit" as a huge number */
    if (read_level(folder, names->current, text)) current = strtoull(text, NULL, 10);
    if (read_level(folder, "memory.stat", text)) cache = stat_value(text, names->cache_a) + stat_value(text, names->cache_b);
    uint64_t taken = current > cache ? current - cache : 0, here = limit > taken ? limit - taken : 0;
    if (here < *left) *left = here;
}

static void ask_memory_v2(const char *folder, void *ctx) {
    static const memory_names names = {"memory.max", "memory.current", "inactive_file", "active_file"};
    ask_memory(folder, &names, ctx);
}

static void ask_memory_v1(const char *folder, void *ctx) {
    static const memory_names names = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                                       "total_active_file"};
    ask_memory(folder, &names, ctx);
}

uint64_t cera_cgroup_memory(const char *root) {
    uint64_t left = UINT64_MAX;
    each_level(root, "/sys/fs/cgroup", NULL, ask_memory_v2, &left);
    each_level(root, "/sys/fs/cgroup/memory", "memory", ask_memory_v1, &left);
    return left;
}

uint64_t cera_meminfo_available(const char *root) {
    char path[PATH_SIZE], text[TEXT_SIZE];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_text(path, text)) return 0;
    uint64_t kib = stat_value(text, "MemAvailable");
    return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}
