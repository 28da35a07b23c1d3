/* hash.h: 64-bit hashes that are part of file formats and cache keys: the same on every platform, never changed. Not
 * cryptographic. */
#ifndef CERA_BASE_HASH_H
#define CERA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t cera_hash64(const void *data, size_t n, uint64_t seed); /* unaligned input is fine */
uint64_t cera_hash_mix(uint64_t a, uint64_t b);                  /* order matters */

#endif
