/* rng.h: random numbers as a pure function of (seed, stream, position): no state, the same on every platform. Philox 4x32-10
 * (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). */
#ifndef CERA_BASE_RNG_H
#define CERA_BASE_RNG_H

#include <stdint.h>

void cera_rng_block(uint64_t seed, uint64_t stream, uint64_t position, uint32_t out[4]);
/* Uniform in [0, 1), 53 bits. */
double cera_rng_uniform(uint64_t seed, uint64_t stream, uint64_t position);

#endif
