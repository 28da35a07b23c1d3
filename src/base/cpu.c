/* cpu.c: detects features once, keeps the mask, names features and tiers, and counts the threads and the memory that this
 * process may use. Everything else in the program asks here; no other file looks at cpuid, auxv, affinity or control groups
 * (cgroup.c reads those files for this one). */
#include "base/cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cgroup_int.h"

#if defined(__linux__)
#    include <sched.h>
#endif
#if defined(__x86_64__)
#    include <cpuid.h>
#    if defined(__linux__)
#        include <sys/syscall.h>
#    endif
#elif defined(__aarch64__) && defined(__linux__)
#    include <sys/auxv.h>
#endif

typedef struct feature_bit {
    uint32_t feature;
    const char *name;
} feature_bit;

static const feature_bit feature_names[] = {
    {CERA_CPU_AVX2, "avx2"},
    {CERA_CPU_FMA, "fma"},
    {CERA_CPU_F16C, "f16c"},
    {CERA_CPU_BMI2, "bmi2"},
    {CERA_CPU_AVXVNNI, "avxvnni"},
    {CERA_CPU_AVX512F, "avx512f"},
    {CERA_CPU_AVX512BW, "avx512bw"},
    {CERA_CPU_AVX512DQ, "avx512dq"},
    {CERA_CPU_AVX512VL, "avx512vl"},
    {CERA_CPU_AVX512VNNI, "avx512vnni"},
    {CERA_CPU_AVX512BF16, "avx512bf16"},
    {CERA_CPU_AVX512VBMI, "avx512vbmi"},
    {CERA_CPU_AMX_INT8, "amx_int8"},
    {CERA_CPU_AMX_BF16, "amx_bf16"},
    {CERA_CPU_NEON, "neon"},
    {CERA_CPU_DOTPROD, "dotprod"},
    {CERA_CPU_I8MM, "i8mm"},
    {CERA_CPU_ARM_BF16, "bf16"},
    {CERA_CPU_ARM_FP16, "fp16"},
};

#define AVX2_TIER (CERA_CPU_AVX2 | CERA_CPU_FMA | CERA_CPU_F16C | CERA_CPU_BMI2)
#define AVX512_TIER (AVX2_TIER | CERA_CPU_AVX512F | CERA_CPU_AVX512BW | CERA_CPU_AVX512DQ | CERA_CPU_AVX512VL)
#define AVX512VNNI_TIER (AVX512_TIER | CERA_CPU_AVX512VNNI)
#define AVX512BF16_TIER (AVX512VNNI_TIER | CERA_CPU_AVX512BF16)

static const feature_bit tiers[CERA_TIER_COUNT] = {
    [CERA_TIER_C] = {0, "c"},
    [CERA_TIER_AVX2] = {AVX2_TIER, "avx2"},
    [CERA_TIER_AVXVNNI] = {AVX2_TIER | CERA_CPU_AVXVNNI, "avxvnni"},
    [CERA_TIER_AVX512] = {AVX512_TIER, "avx512"},
    [CERA_TIER_AVX512VNNI] = {AVX512VNNI_TIER, "avx512vnni"},
    [CERA_TIER_AVX512BF16] = {AVX512BF16_TIER, "avx512bf16"},
    [CERA_TIER_AMX] = {AVX512BF16_TIER | CERA_CPU_AMX_INT8 | CERA_CPU_AMX_BF16, "amx"},
    [CERA_TIER_NEON] = {CERA_CPU_NEON, "neon"},
    [CERA_TIER_DOTPROD] = {CERA_CPU_NEON | CERA_CPU_DOTPROD, "dotprod"},
    [CERA_TIER_I8MM] = {CERA_CPU_NEON | CERA_CPU_DOTPROD | CERA_CPU_I8MM, "i8mm"},
};

static pthread_once_t detect_once = PTHREAD_ONCE_INIT;
static uint32_t detected; /* written once, under detect_once */
static atomic_uint mask = UINT32_MAX;

#if defined(__x86_64__)

/* Which register files the system saves on a context switch (XCR0). A feature whose registers are not saved must not be used.
 */
static uint64_t saved_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Tiles are 8 KiB of state that Linux gives a process only when it asks, before its threads start (they inherit the answer). */
static bool tiles_permitted(void) {
#    if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#    else
    return false;
#    endif
}

/* Leaf and bit numbers: Intel SDM volume 2A, CPUID; AMD's manual agrees. */
static uint32_t detect(void) {
    enum { XMM_YMM = 0x6, ZMM = 0xe0, TILES = 0x60000 };
    uint32_t a, b, c, d, b7 = 0, c7 = 0, d7 = 0, a71 = 0, found = 0, max7 = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return 0; /* no OSXSAVE: no AVX of any kind */
    uint64_t saved = saved_state();
    if ((saved & XMM_YMM) != XMM_YMM || !(c & 1u << 28)) return 0;
    if (c & 1u << 12) found |= CERA_CPU_FMA;
    if (c & 1u << 29) found |= CERA_CPU_F16C;
    if (__get_cpuid_count(7, 0, &max7, &b7, &c7, &d7) && max7 >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
    if (b7 & 1u << 5) found |= CERA_CPU_AVX2;
    if (b7 & 1u << 8) found |= CERA_CPU_BMI2;
    if (a71 & 1u << 4) found |= CERA_CPU_AVXVNNI;
    if ((saved & ZMM) == ZMM && (b7 & 1u << 16)) {
        found |= CERA_CPU_AVX512F;
        if (b7 & 1u << 17) found |= CERA_CPU_AVX512DQ;
        if (b7 & 1u << 30) found |= CERA_CPU_AVX512BW;
        if (b7 & 1u << 31) found |= CERA_CPU_AVX512VL;
        if (c7 & 1u << 1) found |= CERA_CPU_AVX512VBMI;
        if (c7 & 1u << 11) found |= CERA_CPU_AVX512VNNI;
        if (a71 & 1u << 5) found |= CERA_CPU_AVX512BF16;
    }
    bool tiles = (saved & TILES) == TILES && (d7 & 1u << 24);
    if (tiles && (d7 & (1u << 22 | 1u << 25)) && tiles_permitted()) {
        if (d7 & 1u << 22) found |= CERA_CPU_AMX_BF16;
        if (d7 & 1u << 25) found |= CERA_CPU_AMX_INT8;
    }
    return found;
}

#elif defined(__aarch64__) && defined(__linux__)

/* Bit numbers: Linux, Documentation/arch/arm64/elf_hwcaps.rst and asm/hwcap.h. */
static uint32_t detect(void) {
    unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
    uint32_t found = 0;
    if (caps & 1ul << 1) found |= CERA_CPU_NEON;
    if ((caps & 1ul << 9) && (caps & 1ul << 10)) found |= CERA_CPU_ARM_FP16;
    if (caps & 1ul << 20) found |= CERA_CPU_DOTPROD;
    if (caps2 & 1ul << 13) found |= CERA_CPU_I8MM;
    if (caps2 & 1ul << 14) found |= CERA_CPU_ARM_BF16;
    return found;
}

#else

/* Systems that we cannot ask: what the compiler was told the machine has. */
static uint32_t detect(void) {
    uint32_t found = 0;
#    if defined(__ARM_NEON)
    found |= CERA_CPU_NEON;
#    endif
#    if defined(__ARM_FEATURE_DOTPROD)
    found |= CERA_CPU_DOTPROD;
#    endif
#    if defined(__ARM_FEATURE_MATMUL_INT8)
    found |= CERA_CPU_I8MM;
#    endif
    return found;
}

#endif

static void detect_now(void) { detected = detect(); }

uint32_t cera_cpu_features_raw(void) {
    pthread_once(&detect_once, detect_now);
    return detected;
}

uint32_t cera_cpu_features(void) {
    return cera_cpu_features_raw() & (uint32_t)atomic_load_explicit(&mask, memory_order_relaxed);
}

void cera_cpu_set_mask(uint32_t new_mask) { atomic_store_explicit(&mask, new_mask, memory_order_relaxed); }

uint32_t cera_cpu_tier_features(cera_cpu_tier t) { return (unsigned)t < CERA_TIER_COUNT ? tiers[t].feature : UINT32_MAX; }

bool cera_cpu_has_tier(cera_cpu_tier t) {
    uint32_t need = cera_cpu_tier_features(t);
    return (cera_cpu_features() & need) == need;
}

cera_cpu_tier cera_cpu_best_tier(void) {
    int best = CERA_TIER_COUNT - 1;
    while (best > CERA_TIER_C && !cera_cpu_has_tier((cera_cpu_tier)best)) best--;
    return (cera_cpu_tier)best;
}

const char *cera_cpu_tier_name(cera_cpu_tier t) { return (unsigned)t < CERA_TIER_COUNT ? tiers[t].name : "unknown"; }

bool cera_cpu_tier_parse(const char *name, cera_cpu_tier *out) {
    for (int t = 0; t < CERA_TIER_COUNT; t++) {
        if (strcmp(name, tiers[t].name) != 0) continue;
        *out = (cera_cpu_tier)t;
        return true;
    }
    return false;
}

const char *cera_cpu_feature_name(uint32_t single_bit) {
    for (size_t i = 0; i < sizeof feature_names / sizeof feature_names[0]; i++)
        if (feature_names[i].feature == single_bit) return feature_names[i].name;
    return "unknown";
}

#if defined(__x86_64__)

void cera_cpu_model(char *out, int size) {
    uint32_t words[13] = {0}, a = 0, b, c, d; /* the last word stays 0: the end of the text */
    if (size < 1) return;
    if (__get_cpuid(0x80000000u, &a, &b, &c, &d) && a >= 0x80000004u)
        for (uint32_t i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
    const char *text = (const char *)words;
    while (*text == ' ') text++;
    snprintf(out, (size_t)size, "%s", text);
    for (size_t n = strlen(out); n > 0 && out[n - 1] == ' '; n--) out[n - 1] = 0;
}

#else

/* The first of the lines that kernels use for it. */
void cera_cpu_model(char *out, int size) {
    if (size < 1) return;
    out[0] = 0;
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f) return;
    char line[256];
    while (!out[0] && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        bool model =
            strncmp(line, "model name", 10) == 0 || strncmp(line, "Model", 5) == 0 || strncmp(line, "Hardware", 8) == 0;
        if (!colon || !model) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, (size_t)size, "%s", colon + 1 + (colon[1] == ' '));
    }
    fclose(f);
}

#endif

int cera_cpu_threads_from(int affinity, const char *cpu_max) {
    int allowed = affinity < 1 ? 1 : affinity;
    if (!cpu_max || cpu_max[0] < '0' || cpu_max[0] > '9') return allowed; /* "max 100000" */
    char *rest = NULL;
    unsigned long long quota = strtoull(cpu_max, &rest, 10), period = strtoull(rest, NULL, 10);
    if (quota == 0 || period == 0) return allowed;
    unsigned long long cores = quota / period + (quota % period != 0);
    return cores < (unsigned long long)allowed ? (int)cores : allowed;
}

/* Cores in the affinity mask (the kernel has already intersected it with the cpuset), 0 when it cannot be asked. */
static int affinity_cores(void) {
#if defined(__linux__)
    for (int n = 1024; n <= 1 << 18; n *= 4) { /* the call fails while the set is smaller than the kernel's */
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (!set) return 0;
        size_t bytes = CPU_ALLOC_SIZE((size_t)n);
        int cores = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (cores > 0) return cores;
    }
#endif
    return 0;
}

int cera_cpu_allowed_threads(void) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int cores = affinity_cores();
    if (cores < 1 || (online >= 1 && online < cores)) cores = online < 1 ? 1 : (int)online;
    return cera_cgroup_threads("", cores);
}

uint64_t cera_cpu_available_memory(void) {
    uint64_t system = cera_meminfo_available(""), group = cera_cgroup_memory("");
    if (system == 0) return group == UINT64_MAX ? 0 : group;
    return system < group ? system : group;
}
