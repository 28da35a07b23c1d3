/* dtype.h: the tensor types of GGUF: numbers, names, block sizes, and the block structs of the quantized ones.
 * Sizes only; dequantization is kernels/ref. Source of the layouts: the GGUF specification and ggml's block definitions. */
#ifndef CERA_FORMAT_DTYPE_H
#define CERA_FORMAT_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers are GGUF's. */
typedef enum cera_dtype {
    CERA_F32 = 0,
    CERA_F16 = 1,
    CERA_Q4_0 = 2,
    CERA_Q4_1 = 3,
    CERA_Q5_0 = 6,
    CERA_Q5_1 = 7,
    CERA_Q8_0 = 8,
    CERA_Q2_K = 10,
    CERA_Q3_K = 11,
    CERA_Q4_K = 12,
    CERA_Q5_K = 13,
    CERA_Q6_K = 14,
    CERA_IQ4_NL = 20,
    CERA_IQ4_XS = 23,
    CERA_BF16 = 30,
    CERA_MXFP4 = 39,
    CERA_DTYPE_COUNT = 64 /* table size; numbers in between are types we cannot compute with */
} cera_dtype;

typedef struct cera_dtype_info {
    const char *name;   /* "q4_k"; NULL where the number is unknown */
    int block_elements; /* 1 for float types */
    int block_bytes;
    bool computes; /* matmul and dequantization exist */
} cera_dtype_info;

/* Never NULL; unknown numbers give an info whose name is NULL. Types that exist in GGUF but not here (IQ2_XXS, TQ1_0, ...)
 * have a name and sizes and computes = false. */
const cera_dtype_info *cera_dtype_get(uint32_t type);
bool cera_dtype_parse(const char *name, cera_dtype *out);

enum { CERA_QK = 32, CERA_QK_K = 256 };

typedef struct {
    uint16_t d;
    uint8_t qs[16];
} cera_block_q4_0; /* (q-8)*d; low nibbles first half */
typedef struct {
    uint16_t d, m;
    uint8_t qs[16];
} cera_block_q4_1; /* q*d + m */
typedef struct {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
} cera_block_q5_0; /* (q-16)*d */
typedef struct {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
} cera_block_q5_1; /* q*d + m */
typedef struct {
    uint16_t d;
    int8_t qs[32];
} cera_block_q8_0; /* q*d */
typedef struct {
    uint8_t scales[16];
    uint8_t qs[64];
    uint16_t d, dmin;
} cera_block_q2_k;
typedef struct {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint16_t d;
} cera_block_q3_k;
typedef struct {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
} cera_block_q4_k;
typedef struct {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
} cera_block_q5_k;
typedef struct {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
} cera_block_q6_k;
typedef struct {
    uint16_t d;
    uint8_t qs[16];
} cera_block_iq4_nl;
typedef struct {
    uint16_t d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];
} cera_block_iq4_xs;
typedef struct {
    uint8_t e;
    uint8_t qs[16];
} cera_block_mxfp4;

_Static_assert(sizeof(cera_block_q4_0) == 18, "q4_0");
_Static_assert(sizeof(cera_block_q4_1) == 20, "q4_1");
_Static_assert(sizeof(cera_block_q5_0) == 22, "q5_0");
_Static_assert(sizeof(cera_block_q5_1) == 24, "q5_1");
_Static_assert(sizeof(cera_block_q8_0) == 34, "q8_0");
_Static_assert(sizeof(cera_block_q2_k) == 84, "q2_k");
_Static_assert(sizeof(cera_block_q3_k) == 110, "q3_k");
_Static_assert(sizeof(cera_block_q4_k) == 144, "q4_k");
_Static_assert(sizeof(cera_block_q5_k) == 176, "q5_k");
_Static_assert(sizeof(cera_block_q6_k) == 210, "q6_k");
_Static_assert(sizeof(cera_block_iq4_nl) == 18, "iq4_nl");
_Static_assert(sizeof(cera_block_iq4_xs) == 136, "iq4_xs");
_Static_assert(sizeof(cera_block_mxfp4) == 17, "mxfp4");

#endif
