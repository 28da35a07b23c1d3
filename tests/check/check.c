/* check.c: runs the kernel checks (after dav1d's checkasm): every tier that this processor has, every slot, against the C
 * reference. Owns the command line, memory with guard pages, random numbers, timing and the count.
 *
 *   cera_check [--tier T] [--slot S] [--bench S] [--seed N] [--list]
 *   cera_check --dequantize TYPE     rows of 256 elements on stdin to f32 on stdout (tests/golden/dequant_test.py)
 * --slot and --bench take a part of a slot's name ("matmul", "q4_0"). Last line: N passed, N failed, N skipped; exit 1 on a
 * failure. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

static const cera_check_case *const lists[] = {cera_check_matmul_cases, cera_check_acts_cases, cera_check_nn_cases};
enum { N_LISTS = sizeof lists / sizeof lists[0], MAX_MESSAGES = 5 };

static sigjmp_buf fault_exit;
static volatile sig_atomic_t fault_armed;

static void on_fault(int signal) {
    if (fault_armed) siglongjmp(fault_exit, signal);
    _exit(3);
}

void *cera_check_alloc(cera_check *c, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (size + page - 1) / page * page;
    if (c->n_allocs == CERA_CHECK_MAX_ALLOCS) {
        fprintf(stderr, "check: case %s takes too many blocks\n", c->slot);
        exit(3);
    }
    char *base = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + body, page, PROT_NONE)) {
        perror("check: mmap");
        exit(3);
    }
    memset(base, 0xa5, body);
    c->allocs[c->n_allocs].base = base;
    c->allocs[c->n_allocs++].size = body + page;
    return base + body - size;
}

void cera_check_free_all(cera_check *c) {
    while (c->n_allocs > 0) {
        c->n_allocs--;
        munmap(c->allocs[c->n_allocs].base, c->allocs[c->n_allocs].size);
    }
}

void cera_check_fail(cera_check *c, const char *format, ...) {
    if (c->failures++ >= MAX_MESSAGES) return;
    va_list args;
    va_start(args, format);
    printf("  %s/%s: ", c->slot, c->tier);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

uint64_t cera_check_random(cera_check *c) {
    uint64_t z = c->rng += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
int cera_check_int(cera_check *c, int lowest, int highest) {
    uint64_t count = (uint64_t)((int64_t)highest - lowest + 1);
    return (int)(lowest + (int64_t)(cera_check_random(c) % count));
}
float cera_check_float(cera_check *c, float lowest, float highest) {
    return lowest + (highest - lowest) * (float)(cera_check_random(c) >> 40) * 0x1p-24f;
}
float cera_check_normal(cera_check *c) {
    float sum = -6;
    for (int i = 0; i < 12; i++) sum += cera_check_float(c, 0, 1);
    return sum;
}

bool cera_check_same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

/* The thread's own time: what other processes take of this core does not count. */
double cera_check_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cera_check_time(void (*fn)(void *ctx), void *ctx, double seconds) {
    enum { ROUNDS = 9 };
    double times[ROUNDS], start = cera_check_seconds(), once;
    fn(ctx);
    once = cera_check_seconds() - start;
    int repeat = once > 0 ? (int)(seconds / ROUNDS / once) : 1000;
    if (repeat < 1) repeat = 1;
    for (int r = 0; r < ROUNDS; r++) {
        start = cera_check_seconds();
        for (int i = 0; i < repeat; i++) fn(ctx);
        times[r] = (cera_check_seconds() - start) / repeat;
    }
    qsort(times, ROUNDS, sizeof times[0], compare_doubles);
    return times[ROUNDS / 2];
}

typedef struct options {
    const char *tier, *slot, *bench, *dequantize;
    uint64_t seed;
    bool list;
} options;

typedef struct counts {
    int passed, failed, skipped;
} counts;

/* A slot that some weaker tier, or C, serves with the same function needs no second check. */
static bool inherited(const cera_check_case *t, const cera_kernels *tables, const bool *present, int tier) {
    if (!t->function) return false;
    for (int i = 0; i < tier; i++) {
        if (present[i] && t->function(&tables[i], t->slot) == t->function(&tables[tier], t->slot)) return true;
    }
    return false;
}

static void run_case(const cera_check_case *t, cera_check *c, counts *n) {
    fault_armed = 1;
    int signal = sigsetjmp(fault_exit, 1);
    if (signal == 0) {
        t->run(c);
    } else {
        cera_check_fail(c, "signal %d (%s): memory beyond what the slot may touch", signal, strsignal(signal));
    }
    fault_armed = 0;
    cera_check_free_all(c);
    if (c->failures) {
        printf("FAIL %-24s %s (%d failures)\n", t->slot, c->tier, c->failures);
        n->failed++;
    } else {
        n->passed++;
    }
}

static void run_tier(const options *o, const cera_kernels *tables, const bool *present, int tier, counts *n) {
    for (int l = 0; l < N_LISTS; l++) {
        for (const cera_check_case *t = lists[l]; t->slot; t++) {
            cera_check c = {.ref = &tables[CERA_TIER_C], .k = &tables[tier], .slot = t->slot, .rng = o->seed};
            c.tier = cera_cpu_tier_name((cera_cpu_tier)tier);
            const char *wanted = o->bench ? o->bench : o->slot;
            if ((wanted && !strstr(t->slot, wanted)) || inherited(t, tables, present, tier)) continue;
            if (!o->bench) {
                run_case(t, &c, n);
            } else if (t->bench) {
                t->bench(&c);
                cera_check_free_all(&c);
            }
        }
    }
}

static int usage(const char *what) {
    fprintf(stderr, "cera_check: %s\nusage: cera_check [--tier T] [--slot S] [--bench S] [--seed N] [--list]\n", what);
    return 2;
}

static int list_slots(void) {
    for (int l = 0; l < N_LISTS; l++) {
        for (const cera_check_case *t = lists[l]; t->slot; t++) printf("%s\n", t->slot);
    }
    return 0;
}

/* 256 elements are a whole number of blocks of every type. */
static int dequantize_stdin(const char *name) {
    static cera_kernels k;
    static uint8_t row[1024];
    float out[CERA_QK_K];
    cera_dtype t;
    if (!cera_dtype_parse(name, &t) || !cera_dtype_get(t)->computes) return usage("no such type");
    size_t size = (size_t)(CERA_QK_K / cera_dtype_get(t)->block_elements) * (size_t)cera_dtype_get(t)->block_bytes;
    cera_kernels_init(&k, cera_cpu_best_tier());
    while (fread(row, 1, size, stdin) == size) {
        k.dequantize[t](row, CERA_QK_K, out);
        if (fwrite(out, sizeof out, 1, stdout) != 1) return 1;
    }
    return 0;
}

static const char *parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list")) {
            o->list = true;
            continue;
        }
        if (i + 1 == argc) return "a flag is unknown or lacks its value";
        const char *value = argv[i + 1];
        if (!strcmp(argv[i], "--tier"))
            o->tier = value;
        else if (!strcmp(argv[i], "--slot"))
            o->slot = value;
        else if (!strcmp(argv[i], "--bench"))
            o->bench = value;
        else if (!strcmp(argv[i], "--dequantize"))
            o->dequantize = value;
        else if (!strcmp(argv[i], "--seed"))
            o->seed = strtoull(value, NULL, 0);
        else
            return "unknown flag";
        i++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    static cera_kernels tables[CERA_TIER_COUNT];
    bool present[CERA_TIER_COUNT] = {false};
    options o = {.seed = 1};
    counts n = {0, 0, 0};
    cera_cpu_tier only = CERA_TIER_C;
    const char *wrong = parse(argc, argv, &o);
    if (wrong) return usage(wrong);
    if (o.list) return list_slots();
    if (o.dequantize) return dequantize_stdin(o.dequantize);
    if (o.tier && !cera_cpu_tier_parse(o.tier, &only)) return usage("no such tier");
    if (o.tier && !cera_cpu_has_tier(only)) {
        printf("tier %s: this processor lacks it\n0 passed, 0 failed, 1 skipped\n", o.tier);
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    printf("seed %llu\n", (unsigned long long)o.seed);
    for (int t = 0; t < CERA_TIER_COUNT; t++) {
        present[t] = cera_cpu_has_tier((cera_cpu_tier)t);
        if (present[t]) cera_kernels_init(&tables[t], (cera_cpu_tier)t);
    }
    for (int t = 0; t < CERA_TIER_COUNT; t++) {
        counts before = n;
        if (!present[t] || (o.tier && t != (int)only)) continue;
        /* A tier asked for by name is checked whole, with what it inherits. */
        bool none[CERA_TIER_COUNT] = {false};
        run_tier(&o, tables, o.tier ? none : present, t, &n);
        if (!o.bench)
            printf("%-12s %d passed, %d failed\n", cera_cpu_tier_name((cera_cpu_tier)t), n.passed - before.passed,
                   n.failed - before.failed);
    }
    if (!o.bench) printf("%d passed, %d failed, %d skipped\n", n.passed, n.failed, n.skipped);
    return n.failed ? 1 : 0;
}
