/* check.h: what the kernel checks share. Each file check_<topic>.c defines one list of cases; check.c runs every case for every
 * tier that this processor has, against the C reference. Owns no knowledge of any kernel.
 *
 * To add checks: write cases, put the list's name into check.c. A case reports through cera_check_fail and takes its memory
 * from cera_check_alloc, so that one byte past the end is a fault; the fault names the case. */
#ifndef CERA_CHECK_H
#define CERA_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/kernels.h"

enum { CERA_CHECK_MAX_ALLOCS = 64 };

typedef struct cera_check {
    const cera_kernels *ref; /* the C table */
    const cera_kernels *k;   /* the tier under test */
    const char *tier;        /* its name */
    const char *slot;
    uint64_t rng; /* state of cera_check_random */
    int failures; /* of this case */
    int n_allocs;
    struct {
        void *base;
        size_t size;
    } allocs[CERA_CHECK_MAX_ALLOCS];
} cera_check;

typedef struct cera_check_case {
    const char *slot;
    /* The function in the slot, so that a tier which inherits it is not checked twice; NULL: the case always runs. */
    void (*(*function)(const cera_kernels *k, const char *slot))(void);
    void (*run)(cera_check *c);
    void (*bench)(cera_check *c); /* or NULL; prints its own lines */
} cera_check_case;

extern const cera_check_case cera_check_matmul_cases[]; /* check_matmul.c; each list ends with slot NULL */
extern const cera_check_case cera_check_acts_cases[];   /* check_acts.c */
extern const cera_check_case cera_check_nn_cases[];     /* check_nn.c */

/* `size` bytes that end where an inaccessible page begins (so the start is aligned as size is, at most to the page). Filled
 * with 0xa5. Freed by cera_check_free_all, which check.c calls after each case; call it in long loops. Never NULL. */
void *cera_check_alloc(cera_check *c, size_t size);
void cera_check_free_all(cera_check *c);

void cera_check_fail(cera_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* splitmix64 and what is drawn from it. */
uint64_t cera_check_random(cera_check *c);
int cera_check_int(cera_check *c, int lowest, int highest);
float cera_check_float(cera_check *c, float lowest, float highest);
float cera_check_normal(cera_check *c); /* mean 0, variance about 1 */

/* Equal bits, or both NaN. */
bool cera_check_same(float a, float b);

double cera_check_seconds(void);
/* Runs fn(ctx) for about `seconds` in rounds; returns the median time of one call, in seconds. */
double cera_check_time(void (*fn)(void *ctx), void *ctx, double seconds);

/* Peak multiply-accumulates a second of one core, measured now (check_peak.c); 0 where this tier has none. */
double cera_check_peak_int8(cera_cpu_tier tier);
double cera_check_peak_f32(cera_cpu_tier tier);
double cera_check_peak_bf16(cera_cpu_tier tier);
/* Bytes a second of a plain read loop over a buffer of `size` bytes. */
double cera_check_read_speed(const void *data, size_t size);

#endif
