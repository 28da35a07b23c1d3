/* rng.c: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3):
 * ten rounds of two 32 x 32 multiplications under a Weyl-sequence key. The counter is (position, stream), the key the seed. */
#include "base/rng.h"

void cera_rng_block(uint64_t seed, uint64_t stream, uint64_t position, uint32_t out[4]) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)position, c1 = (uint32_t)(position >> 32), c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t left = (uint64_t)0xd2511f53u * c0, right = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(right >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)right;
        c2 = (uint32_t)(left >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)left;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

double cera_rng_uniform(uint64_t seed, uint64_t stream, uint64_t position) {
    uint32_t block[4];
    cera_rng_block(seed, stream, position, block);
    uint64_t bits = (uint64_t)block[1] << 32 | block[0];
    return (double)(bits >> 11) * 0x1p-53;
}
