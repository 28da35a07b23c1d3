/* check_peak.c: what this core can do at most, measured in the same process as the kernels: multiply-accumulates a second of
 * each tier's instruction, and bytes a second of a plain read loop. */
#include <string.h>
#include "check.h"

#if defined(__x86_64__)
#    include <immintrin.h>

enum { CHAINS = 12, ROUNDS = 2000000 };
static volatile int sink;

#    define PEAK(name, features, type, zero, op, fold)                               \
        __attribute__((target(features))) static void name(void) {                   \
            type c[CHAINS], x = zero, y = zero;                                      \
            int first;                                                               \
            for (int i = 0; i < CHAINS; i++) c[i] = zero;                            \
            for (int r = 0; r < ROUNDS; r++) {                                       \
                _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) c[i] = op; \
                __asm__ volatile("" : "+v"(x), "+v"(y));                             \
            }                                                                        \
            for (int i = 1; i < CHAINS; i++) c[0] = fold(c[0], c[i]);                \
            memcpy(&first, &c[0], sizeof first);                                     \
            sink = first;                                                            \
        }
PEAK(vnni512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), _mm512_dpbusd_epi32(c[i], x, y), _mm512_add_epi32)
PEAK(vnni256, "avx2,avxvnni", __m256i, _mm256_setzero_si256(), _mm256_dpbusd_avx_epi32(c[i], x, y), _mm256_add_epi32)
PEAK(maddubs, "avx2", __m256i, _mm256_setzero_si256(), _mm256_add_epi32(c[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), y)),
     _mm256_add_epi32)
PEAK(fma512, "avx512f", __m512, _mm512_setzero_ps(), _mm512_fmadd_ps(x, y, c[i]), _mm512_add_ps)
PEAK(fma256, "avx2,fma", __m256, _mm256_setzero_ps(), _mm256_fmadd_ps(x, y, c[i]), _mm256_add_ps)
PEAK(bf16_512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
     _mm512_dpbf16_ps(c[i], (__m512bh)_mm512_castps_si512(x), (__m512bh)_mm512_castps_si512(y)), _mm512_add_ps)

static double best(void (*f)(void), double macs) {
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        double s = cera_check_seconds();
        f();
        s = cera_check_seconds() - s;
        if (s < least) least = s;
    }
    return macs * CHAINS * ROUNDS / least;
}

double cera_check_peak_int8(cera_cpu_tier t) {
    if (t >= CERA_TIER_AVX512VNNI && t < CERA_TIER_NEON) return best(vnni512, 64);
    if (t == CERA_TIER_AVXVNNI) return best(vnni256, 32);
    return t == CERA_TIER_C ? 0 : best(maddubs, 32);
}
double cera_check_peak_f32(cera_cpu_tier t) {
    return t == CERA_TIER_C ? 0 : t >= CERA_TIER_AVX512 ? best(fma512, 16) : best(fma256, 8);
}
double cera_check_peak_bf16(cera_cpu_tier t) { return t >= CERA_TIER_AVX512BF16 ? best(bf16_512, 32) : cera_check_peak_f32(t); }
#else
double cera_check_peak_int8(cera_cpu_tier t) { return (void)t, 0; }
double cera_check_peak_f32(cera_cpu_tier t) { return (void)t, 0; }
double cera_check_peak_bf16(cera_cpu_tier t) { return (void)t, 0; }
#endif

typedef struct span {
    const uint64_t *data;
    size_t n;
} span;
static volatile uint64_t read_sink;

static void read_once(void *ctx) {
    const span *s = ctx;
    uint64_t sum[16] = {0};
    for (size_t i = 0; i + 16 <= s->n; i += 16) {
        __builtin_prefetch(s->data + i + 1024);
        __builtin_prefetch(s->data + i + 1032);
        for (int l = 0; l < 16; l++) sum[l] += s->data[i + (size_t)l];
    }
    for (int l = 1; l < 16; l++) sum[0] += sum[l];
    read_sink = sum[0];
}

double cera_check_read_speed(const void *data, size_t size) {
    span s = {(const uint64_t *)(((uintptr_t)data + 7) & ~(uintptr_t)7), size / 8 - 1};
    return (double)size / cera_check_time(read_once, &s, 0.2);
}
