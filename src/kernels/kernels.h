/* kernels.h: the leaf math of one core, as a table of slots. No threads, no allocation, no globals: a caller owns its table
 * (cera_kernels_init) and passes scratch in. kernels.def lists the slots; this file states what each must do. Every slot has a
 * plain C version in ref/ that states the numbers; a tier's version must equal it bit for bit where "exact" is said.
 *
 * Same bits. The result of a column (token) must not depend on which other columns are in the call, nor on their number. */
#ifndef CERA_KERNELS_KERNELS_H
#define CERA_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include "base/cpu.h"
#include "format/dtype.h"

enum {
    CERA_PANEL_ROWS = 32,      /* weight rows of one matmul call */
    CERA_PAGE_TOKENS = 64,     /* tokens of one KV page */
    CERA_SEGMENT_TOKENS = 256, /* keys of one attention segment (4 pages), aligned to cache index 0 */
    CERA_KEY_BLOCK = 16,       /* keys interleaved in the K layout of a page */
    CERA_MAX_HEAD_DIM = 1024,
    CERA_ATTEND_MAX_Q = 64 /* queries of one attend_* call */
};

/* How a matmul wants its input. A weight type has exactly one: quantized types CERA_ENC_Q8, BF16 CERA_ENC_BF16, F16 and F32
 * CERA_ENC_F32 (the f32 rows as they are). */
typedef enum cera_encoding { CERA_ENC_F32, CERA_ENC_BF16, CERA_ENC_Q8, CERA_ENC_COUNT } cera_encoding;
cera_encoding cera_kernels_encoding(cera_dtype weight);

/* The encoded input of a matmul: n columns (tokens) of k elements. Only the arrays of the encoding in use are set. */
typedef struct cera_acts {
    int k, n;
    int8_t *q;        /* q8: [k/32][n][32], round-half-even(x * (127/amax)), amax over the 32; |q| <= 127 */
    float *d;         /* q8: [k/32][n] amax/127 */
    float *s;         /* q8: [k/32][n] d * (float)sum(q) */
    int32_t *sum;     /* q8: [k/32][n] sum(q) */
    int16_t *sum16;   /* q8: [k/32][n][2] sums of the two halves of 16 */
    float *s16;       /* q8: [k/32][n][2] d * (float)sum16 */
    uint16_t *bf16;   /* bf16: [n][k] */
    const float *f32; /* f32: [n][f32_stride] */
    size_t f32_stride;
} cera_acts;

/* Bytes of one block for k x n acts in this encoding and the struct over it (64-byte aligned parts); memory NULL: size only. */
size_t cera_acts_layout(cera_encoding enc, int k, int n, void *memory, cera_acts *out);
/* The same acts seen from element `first` on (a multiple of 32), so that a column can be encoded a few blocks at a time. */
cera_acts cera_acts_from(cera_encoding enc, const cera_acts *a, int first);
/* dst column i = src column columns[i] (expert grouping); same k and encoding, dst->n >= n. */
void cera_acts_gather(cera_encoding enc, const cera_acts *src, const int32_t *columns, int n, cera_acts *dst);

/* tile[c][r] = sum over k of w[r][k] * x[k][c0 + c] for r < n_rows <= 32, c < n_cols; tile is [n_cols][32] f32, 64-byte
 * aligned; rows of the tile from n_rows on may be overwritten with anything. w: first row, rows row_bytes apart, mapped file
 * memory (no alignment, no reading past row n_rows - 1). Order of the sum: see ref/matmul.c ("Same bits" in docs/DESIGN.md).
 * Exact for the quantized types on every tier. n_cols is 1..any; callers use at most CERA_MATMUL_COLUMNS at a time so that the
 * tile stays in L1. */
typedef void (*cera_matmul_fn)(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                               float *tile);
enum { CERA_MATMUL_COLUMNS = 128 };

/* out[k] f32 = the row's values, bit-equal to the gguf package. */
typedef void (*cera_dequantize_fn)(const void *row, int k, float *out);

typedef enum cera_rope_pairs { CERA_ROPE_INTERLEAVED, CERA_ROPE_NEOX } cera_rope_pairs; /* (2i, 2i+1) or (i, i + n_rot/2) */

/* Types of KV pages. */
typedef enum cera_kv_type { CERA_KV_F32, CERA_KV_F16, CERA_KV_BF16, CERA_KV_TYPE_COUNT } cera_kv_type;
static inline size_t cera_kv_type_bytes(cera_kv_type t) { return t == CERA_KV_F32 ? 4 : 2; }

/* One page of one layer and KV head holds 64 keys of d_k and 64 values of d_v:
 *   K, 16-bit types: [key/16][d/2][key%16][2]     element i of key j: ((j/16 * d/2 + i/2) * 16 + j%16) * 2 + i%2
 *   K, f32:          [key/16][d][key%16]
 *   V, 16-bit types: [key/2][d][2]                element i of key j: (j/2 * d + i) * 2 + j%2
 *   V, f32:          [key][d]
 * so that scores need no horizontal sums and values no transposition. d_k is even (16-bit). Pages are zeroed when they are
 * made: every element always holds a finite number. */

/* One token: q and k heads are normalised (optional), rotated (optional); k and v are rounded to the page type and stored. */
typedef struct cera_rope_kv_args {
    float *q;       /* [n_head] rows q_stride floats apart, rewritten in place; NULL for none */
    float *k;       /* [n_head_kv] rows k_stride apart; may be overwritten with the rotated heads. NULL: nothing is stored */
    const float *v; /* [n_head_kv] rows v_stride apart; NULL: no V is stored (a view of K) */
    size_t q_stride, k_stride, v_stride;
    int n_head, n_head_kv, d_k, d_v;
    const float *q_norm, *k_norm; /* [d_k] RMS norm weights, or NULL */
    float eps;
    const float *cos, *sin; /* [n_rot/2] of this token's position (slot rope_table), or NULL for no rotation */
    int n_rot;              /* elements that are rotated, even, <= d_k: [rot_first, rot_first + n_rot) */
    int rot_first;
    cera_rope_pairs pairs;
    float q_scale; /* multiplies q last; 1 for none */
    cera_kv_type k_type, v_type;
    void *k_page, *v_page; /* this layer's part of the page, KV head 0; heads are 64 * d * type bytes apart */
    int slot;              /* key index in the page, 0..63 */
} cera_rope_kv_args;

typedef enum cera_activation {
    CERA_ACT_SILU,
    CERA_ACT_GELU,
    /* tanh form */ CERA_ACT_GELU_ERF,
    CERA_ACT_RELU_SQ,
    CERA_ACT_SWIGLU_OAI,
    CERA_ACT_COUNT
} cera_activation;

typedef struct cera_kernels {
    cera_cpu_tier tier;
    /* Filled per type; NULL where the type does not compute. */
    cera_matmul_fn matmul[CERA_DTYPE_COUNT];
    const char *matmul_name[CERA_DTYPE_COUNT];
    cera_dequantize_fn dequantize[CERA_DTYPE_COUNT];
#define SLOT(ret, name, args) ret(*name) args;
#include "kernels/kernels.def"
#undef SLOT
} cera_kernels;

/* Fills the table for a tier: the C references first, then every tier that this one includes. The processor must have it. */
void cera_kernels_init(cera_kernels *k, cera_cpu_tier tier);
/* Name of the function in a slot, for profiles: "matmul_q4_0_avx512vnni". */
const char *cera_kernels_matmul_name(const cera_kernels *k, cera_dtype t);

#endif
