/* roof.c: see roof.h. */
#include "common/roof.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUFFER_MIB = 512, PASSES = 4, MAX_THREADS = 512, LANES = 32 };

typedef struct {
    const uint64_t *data;
    size_t n; /* a multiple of LANES */
    uint64_t sum;
    pthread_t thread;
} reader;

/* Independent lanes, so that the loop waits for memory and for nothing else. */
static void *read_all(void *ctx) {
    reader *r = ctx;
    uint64_t lane[LANES] = {0};
    for (size_t i = 0; i < r->n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] ^= r->data[i + (size_t)l];
    r->sum = 0;
    for (int l = 0; l < LANES; l++) r->sum ^= lane[l];
    return NULL;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double one_pass(reader *readers, int n) {
    const double start = now_s();
    int started = 1;
    for (; started < n; started++)
        if (pthread_create(&readers[started].thread, NULL, read_all, &readers[started]) != 0) break;
    read_all(&readers[0]);
    for (int i = 1; i < started; i++) pthread_join(readers[i].thread, NULL);
    return started == n ? now_s() - start : 0.0;
}

double cera_roof_read_bandwidth(int n_threads) {
    const int n = n_threads < 1 ? 1 : n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
    const size_t bytes = (size_t)BUFFER_MIB << 20, part = bytes / sizeof(uint64_t) / (size_t)n / LANES * LANES;
    uint64_t *data = malloc(bytes);
    reader *readers = calloc((size_t)n, sizeof *readers);
    double best = 0.0;
    volatile uint64_t sink = 0; /* keeps the sums, and so the loads, alive */
    if (data && readers) {
        memset(data, 1, bytes);
        for (int i = 0; i < n; i++) readers[i] = (reader){.data = data + (size_t)i * part, .n = part};
        for (int p = 0; p < PASSES; p++) {
            const double s = one_pass(readers, n);
            if (s > 0.0 && (best == 0.0 || s < best)) best = s;
            for (int i = 0; i < n; i++) sink ^= readers[i].sum;
        }
    }
    (void)sink;
    free(readers);
    free(data);
    return best > 0.0 ? (double)(part * (size_t)n * sizeof(uint64_t)) / best : 0.0;
}
