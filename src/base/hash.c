/* hash.c: XXH64 after its published specification (Collet, "xxHash fast digest algorithm", 2016), and a mixer of two words.
 * Both are part of cache keys on disk and must never change; tests/unit/base/hash_test.c holds values of the reference tool.
 * Not keyed: a table over names from outside must bound its probes (format/name_table.c does). */
#include "base/hash.h"

static const uint64_t P1 = 0x9e3779b185ebca87u, P2 = 0xc2b2ae3d27d4eb4fu, P3 = 0x165667b19e3779f9u, P4 = 0x85ebca77c2b2ae63u,
                      P5 = 0x27d4eb2f165667c5u;

static uint64_t rotl(uint64_t v, int by) { return v << by | v >> (64 - by); }

/* Written byte by byte for any alignment and byte order; compilers make one load of it. */
static uint32_t le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint64_t le64(const uint8_t *p) { return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32; }

static uint64_t lane(uint64_t acc, uint64_t word) { return rotl(acc + word * P2, 31) * P1; }
static uint64_t merge(uint64_t h, uint64_t acc) { return (h ^ lane(0, acc)) * P1 + P4; }

static uint64_t avalanche(uint64_t h) {
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

/* The first n / 32 * 32 bytes, in four lanes. */
static uint64_t stripes(const uint8_t *p, size_t n, uint64_t seed) {
    uint64_t a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1;
    for (; n >= 32; n -= 32, p += 32) {
        a = lane(a, le64(p));
        b = lane(b, le64(p + 8));
        c = lane(c, le64(p + 16));
        d = lane(d, le64(p + 24));
    }
    uint64_t h = rotl(a, 1) + rotl(b, 7) + rotl(c, 12) + rotl(d, 18);
    return merge(merge(merge(merge(h, a), b), c), d);
}

uint64_t cera_hash64(const void *data, size_t n, uint64_t seed) {
    const uint8_t *p = data;
    uint64_t h = n >= 32 ? stripes(p, n, seed) : seed + P5;
    h += n;
    if (n >= 32) p += n / 32 * 32;
    size_t left = n % 32;
    for (; left >= 8; left -= 8, p += 8) h = rotl(h ^ lane(0, le64(p)), 27) * P1 + P4;
    if (left >= 4) {
        h = rotl(h ^ le32(p) * P1, 23) * P2 + P3;
        p += 4;
        left -= 4;
    }
    for (; left > 0; left--, p++) h = rotl(h ^ *p * P5, 11) * P1;
    return avalanche(h);
}

uint64_t cera_hash_mix(uint64_t a, uint64_t b) { return avalanche(rotl(a * P1 + P3, 31) ^ lane(P5, b)); }
