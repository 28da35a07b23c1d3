/* quant_block.h: one 32-element sub-block of any quantized type in a common form, for the C references (matmul, dequantize) and
 * the check harness. Owns: what the packed bytes mean. Does not own: the order of sums (matmul.c).
 *
 * A weight is (d * scale[half]) * q + min[half], with q and scale small integers and half = element / 16. Types with one scale
 * a sub-block hold it twice. Layouts agree with the gguf Python package (tests/golden/dequant_test.py). */
#ifndef CERA_KERNELS_REF_QUANT_BLOCK_H
#define CERA_KERNELS_REF_QUANT_BLOCK_H

#include <string.h>
#include "format/dtype.h"

typedef struct cera_quant_block {
    int8_t q[32];
    int8_t scale[2];
    float d;
    float min[2]; /* the term itself: negative of dmin * m for the K types */
} cera_quant_block;

/* How a type's integers meet its scales in a matmul; see the recipes in matmul.c. */
typedef enum cera_quant_scheme {
    CERA_QUANT_NONE,
    CERA_QUANT_WHOLE, /* one integer sum and one scale d * scale a sub-block */
    CERA_QUANT_SPLIT, /* two sums of 16, each with its own d * scale (q6_k) */
    CERA_QUANT_FOLD   /* scale[half] * q is an integer too: one sum, scale d (q2_k, q3_k) */
} cera_quant_scheme;

cera_quant_scheme cera_quant_scheme_of(cera_dtype t);
int cera_quant_mins(cera_dtype t); /* min terms a sub-block: 0, 1 or 2 */
/* Sub-block `b` (elements 32 b .. 32 b + 31) of a row of quantized type t. */
void cera_quant_block_decode(cera_dtype t, const void *row, int b, cera_quant_block *out);

/* Bits to f32, exact (denormals, infinities, NaN included). */
static inline float cera_quant_f32(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline float cera_quant_bf16(uint16_t h) { return cera_quant_f32((uint32_t)h << 16); }
static inline float cera_quant_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 1023;
    if (exponent == 31) return cera_quant_f32(sign | 0x7f800000 | fraction << 13);
    if (exponent) return cera_quant_f32(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}
/* Half of 2^(e - 127): MXFP4's values are stored doubled. */
static inline float cera_quant_e8m0_half(uint8_t e) {
    return cera_quant_f32(e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23);
}

extern const int8_t cera_quant_iq4_values[16];
extern const int8_t cera_quant_mxfp4_values[16];

#endif
