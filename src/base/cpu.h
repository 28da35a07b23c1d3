/* cpu.h: what this processor can do, and how many threads this process may use. The only place that detects anything. */
#ifndef CERA_BASE_CPU_H
#define CERA_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

typedef enum cera_cpu_feature {
    CERA_CPU_AVX2 = 1u << 0,
    CERA_CPU_FMA = 1u << 1,
    CERA_CPU_F16C = 1u << 2,
    CERA_CPU_BMI2 = 1u << 3,
    CERA_CPU_AVXVNNI = 1u << 4,
    CERA_CPU_AVX512F = 1u << 5,
    CERA_CPU_AVX512BW = 1u << 6,
    CERA_CPU_AVX512DQ = 1u << 7,
    CERA_CPU_AVX512VL = 1u << 8,
    CERA_CPU_AVX512VNNI = 1u << 9,
    CERA_CPU_AVX512BF16 = 1u << 10,
    CERA_CPU_AVX512VBMI = 1u << 11,
    CERA_CPU_AMX_INT8 = 1u << 12,
    CERA_CPU_AMX_BF16 = 1u << 13,
    CERA_CPU_NEON = 1u << 16,
    CERA_CPU_DOTPROD = 1u << 17,
    CERA_CPU_I8MM = 1u << 18,
    CERA_CPU_ARM_BF16 = 1u << 19,
    CERA_CPU_ARM_FP16 = 1u << 20
} cera_cpu_feature;

/* A tier is a named bundle of features; each x86 tier holds the ones before it except that avxvnni is not part of avx512. */
typedef enum cera_cpu_tier {
    CERA_TIER_C = 0,
    CERA_TIER_AVX2,       /* AVX2 FMA F16C BMI2 */
    CERA_TIER_AVXVNNI,    /* + AVX-VNNI (256 bit) */
    CERA_TIER_AVX512,     /* AVX2 tier + F BW DQ VL */
    CERA_TIER_AVX512VNNI, /* + VNNI */
    CERA_TIER_AVX512BF16, /* + BF16 */
    CERA_TIER_AMX,        /* + AMX INT8, BF16, and the kernel's permission */
    CERA_TIER_NEON,
    CERA_TIER_DOTPROD,
    CERA_TIER_I8MM,
    CERA_TIER_COUNT
} cera_cpu_tier;

uint32_t cera_cpu_features(void);     /* detected & mask */
uint32_t cera_cpu_features_raw(void); /* detected */
/* Only for programs and tests: features outside the mask are treated as absent from now on. */
void cera_cpu_set_mask(uint32_t mask);
bool cera_cpu_has_tier(cera_cpu_tier t); /* all the tier's features are there (after the mask) */
cera_cpu_tier cera_cpu_best_tier(void);
uint32_t cera_cpu_tier_features(cera_cpu_tier t);
const char *cera_cpu_tier_name(cera_cpu_tier t); /* "avx512vnni" */
bool cera_cpu_tier_parse(const char *name, cera_cpu_tier *out);
const char *cera_cpu_feature_name(uint32_t single_bit);
/* Model name of the processor, or "". Copies at most size - 1 bytes. */
void cera_cpu_model(char *out, int size);

/* Threads this process may run at once: the least of online cores, affinity mask, cpuset and cgroup quota (cpu.max, rounded
 * up), at least 1. */
int cera_cpu_allowed_threads(void);
/* The same from given texts, for tests: affinity = number of cores in the mask, cpu_max = content of cpu.max or NULL. */
int cera_cpu_threads_from(int affinity, const char *cpu_max);
/* Memory this process may still take: the lesser of MemAvailable and what the cgroup leaves; 0 when unknown. */
uint64_t cera_cpu_available_memory(void);

#endif
