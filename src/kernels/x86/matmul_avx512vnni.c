/* matmul_avx512vnni.c: 32 rows x n columns of every quantized type, activations int8 in groups of 32 (AVX-512 VNNI).
 * Owns: the loops over columns and sub-blocks. Does not own: the packed layouts (quant_avx512.h), tiling over threads
 * (backend/cpu).
 *
 * Numbers. The recipe of ref/matmul.c, bit for bit. Weights are unsigned bytes, an offset over the integer it stands for; the
 * accumulator starts at -offset * sum(a), so the int32 sum is the recipe's exactly: |sum| <= 32 * 255 * 127 + 32 * 128 * 127 <
 * 2^21; vpdpbusd cannot saturate. Then one conversion, one product of scales and one fma (and one or two for the min), as
 * there.
 *
 * Order. Columns innermost: a sub-block of 32 rows stays in 16 registers and the columns stream past it, four at a time for 8
 * independent chains; the f32 accumulators are the tile, in L1. (With K innermost and accumulators in registers: 59 % of peak.)
 * One column alone takes 16 rows at a time, accumulators in registers, and meanwhile prefetches the next 16 rows linearly.
 *
 * Cost. 16 rows x 32 elements x 1 column: 8 vpdpbusd + mul + fma on the same two pipes, 80 % of the int8 peak at best; a min
 * term makes it 8 + 3 (73 %), two sub-blocks of 16 or two min terms 8 + 4 (67 %). */
#include "kernels/ref/matmul_ref.h"
#include "kernels/x86/matmul_x86.h"
#include "kernels/x86/quant_avx512.h"

enum { WIDE = 4 };

INLINE __m512i broadcast4(const int8_t *q) {
    int32_t v;
    memcpy(&v, q, 4);
    return _mm512_set1_epi32(v);
}

/* The columns of one sub-block: pointers to the first, and the sums' start values. */
typedef struct columns {
    const int8_t *q;
    const float *d, *s, *s16;
    const int32_t *start; /* [n][2]: one a half (SPLIT), else the first of two, of the whole */
} columns;

/* n (1, 2 or 4, constant) columns from c on: u[g][i] are the bytes of 2 x 16 rows, d and m rows of a panel_scales. */
INLINE void stream(cera_dtype t, int n, __m512i u[2][8], const float (*d)[CERA_PANEL_ROWS], const float (*m)[CERA_PANEL_ROWS],
                   const columns *x, int c, float *tile) {
    __m512i sum[2][WIDE][2];
    int halves = is_split(t) ? 2 : 1;
    for (int j = 0; j < n; j++) {
        for (int h = 0; h < halves; h++) {
            sum[h][j][0] = sum[h][j][1] =
                byte_offset(t) ? _mm512_set1_epi32(x->start[halves * (c + j) + h]) : _mm512_setzero_si512();
        }
    }
    for (int i = 0; i < 8; i++) {
        int h = halves == 2 ? i / 4 : 0;
        for (int j = 0; j < n; j++) {
            __m512i a = broadcast4(x->q + 32 * (c + j) + 4 * i);
            sum[h][j][0] = _mm512_dpbusd_epi32(sum[h][j][0], u[0][i], a);
            sum[h][j][1] = _mm512_dpbusd_epi32(sum[h][j][1], u[1][i], a);
        }
    }
    for (int j = 0; j < n; j++) {
        for (int g = 0; g < 2; g++) {
            float *out = tile + (size_t)(c + j) * CERA_PANEL_ROWS + 16 * g;
            __m512 acc = _mm512_load_ps(out), d_a = _mm512_set1_ps(x->d[c + j]);
            for (int h = 0; h < halves; h++)
                acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(&d[h][16 * g]), d_a), _mm512_cvtepi32_ps(sum[h][j][g]), acc);
            if (n_mins(t) == 1) acc = _mm512_fmadd_ps(_mm512_load_ps(&m[0][16 * g]), _mm512_set1_ps(x->s[c + j]), acc);
            for (int h = 0; n_mins(t) == 2 && h < 2; h++)
                acc = _mm512_fmadd_ps(_mm512_load_ps(&m[h][16 * g]), _mm512_set1_ps(x->s16[2 * (c + j) + h]), acc);
            _mm512_store_ps(out, acc);
        }
    }
}

INLINE void start_values(cera_dtype t, const cera_acts *x, size_t at, int n_cols, int32_t *start) {
    int offset = -byte_offset(t);
    if (!offset) return;
    for (int c = 0; c < n_cols; c++) {
        if (is_split(t)) {
            start[2 * c] = offset * x->sum16[2 * (at + (size_t)c)];
            start[2 * c + 1] = offset * x->sum16[2 * (at + (size_t)c) + 1];
        } else {
            start[c] = offset * x->sum[at + (size_t)c];
        }
    }
}

/* A chunk of n_blocks sub-blocks, the first being number b of the row; the tile takes up where it was. */
INLINE void chunk_wide(cera_dtype t, const uint8_t *w, size_t stride, int b, int n_blocks, const cera_acts *x, int c0,
                       int n_cols, float *tile) {
    panel_scales s;
    raw_chunk shared[2];
    int32_t start[2 * CERA_MATMUL_COLUMNS];
    int per = is_split(t) || n_mins(t) == 2 || is_fold(t) ? 2 : 1;
    for (int g = 0; g < 2; g++) {
        chunk_scales(t, w + (size_t)(16 * g) * stride, stride, n_blocks, &s, 16 * g);
        load_chunk(t, w + (size_t)(16 * g) * stride, stride, &shared[g]);
    }
    for (int first = 0; first < n_blocks; first += step_blocks(t)) {
        raw_step raw[2];
        for (int g = 0; g < 2; g++) load_step(t, w + (size_t)(16 * g) * stride, stride, first, &raw[g]);
#pragma GCC unroll 4
        for (int jj = 0; jj < step_blocks(t); jj++) {
            int j = first + jj;
            __m512i u[2][8];
            for (int g = 0; g < 2; g++) {
                for (int i = 0; i < 8; i++) {
                    u[g][i] = unpack(t, &raw[g], &shared[g], j, i);
                    if (is_fold(t)) u[g][i] = fold_scale(t, u[g][i], _mm512_load_si512(&s.fold[2 * j + i / 4][16 * g]));
                }
            }
            size_t at = (size_t)(b + j) * (size_t)x->n + (size_t)c0;
            columns cols = {x->q + 32 * at, x->d + at, x->s + at, x->s16 + 2 * at, start};
            start_values(t, x, at, n_cols, start);
            const float(*d)[CERA_PANEL_ROWS] = &s.d[is_split(t) ? 2 * j : j],
                  (*m)[CERA_PANEL_ROWS] = &s.m[n_mins(t) == 2 ? 2 * j : j];
            int c = 0, step = is_split(t) ? 2 : WIDE;
            for (; c + step <= n_cols; c += step) stream(t, step, u, d, m, &cols, c, tile);
            for (; c < n_cols; c++) stream(t, 1, u, d, m, &cols, c, tile);
        }
    }
    (void)per;
}

/* 16 rows, one column, all of k. w_next: where the next 16 rows begin (prefetched; need not exist). */
INLINE void one_column(cera_dtype t, const uint8_t *w, size_t stride, int k, const cera_acts *x, int column, float *out) {
    __m512 acc = _mm512_setzero_ps();
    const uint8_t *next = w + 16 * stride;
    for (int b = 0; b < k / 32; b += CHUNK_BLOCKS) {
        panel_scales s;
        raw_chunk shared;
        int n_blocks = k / 32 - b < CHUNK_BLOCKS ? k / 32 - b : CHUNK_BLOCKS, halves = is_split(t) ? 2 : 1;
        for (int line = 0; line < 16 * chunk_bytes(t); line += 64) _mm_prefetch((const char *)next + line, _MM_HINT_T0);
        next += 16 * chunk_bytes(t);
        chunk_scales(t, w, stride, n_blocks, &s, 0);
        load_chunk(t, w, stride, &shared);
        for (int first = 0; first < n_blocks; first += step_blocks(t)) {
            raw_step raw;
            load_step(t, w, stride, first, &raw);
#pragma GCC unroll 4
            for (int jj = 0; jj < step_blocks(t); jj++) {
                int j = first + jj;
                size_t at = (size_t)(b + j) * (size_t)x->n + (size_t)column;
                __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
                __m512 d_a = _mm512_set1_ps(x->d[at]);
                for (int h = 0; h < 2; h++) {
                    if (byte_offset(t) && (halves == 2 || h == 0))
                        sum[h] = _mm512_set1_epi32(-byte_offset(t) * (halves == 2 ? x->sum16[2 * at + (size_t)h] : x->sum[at]));
                }
                for (int i = 0; i < 8; i++) {
                    __m512i u = unpack(t, &raw, &shared, j, i);
                    if (is_fold(t)) u = fold_scale(t, u, _mm512_load_si512(&s.fold[2 * j + i / 4][0]));
                    sum[i / 4] = _mm512_dpbusd_epi32(sum[i / 4], u, broadcast4(x->q + 32 * at + 4 * i));
                }
                if (halves == 1) sum[0] = _mm512_add_epi32(sum[0], sum[1]);
                for (int h = 0; h < halves; h++)
                    acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(s.d[halves * j + h]), d_a), _mm512_cvtepi32_ps(sum[h]),
                                          acc);
                if (n_mins(t) == 1) acc = _mm512_fmadd_ps(_mm512_load_ps(s.m[j]), _mm512_set1_ps(x->s[at]), acc);
                for (int h = 0; n_mins(t) == 2 && h < 2; h++)
                    acc = _mm512_fmadd_ps(_mm512_load_ps(s.m[2 * j + h]), _mm512_set1_ps(x->s16[2 * at + (size_t)h]), acc);
            }
        }
        w += chunk_bytes(t);
    }
    _mm512_store_ps(out, acc);
}

/* The last rows of a matrix: the chunk is copied into 32 rows, so that the loops above need no masks. */
INLINE const uint8_t *stage(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int n_blocks, uint8_t *copy) {
    size_t bytes = is_superblock(t) ? (size_t)block_bytes(t) : (size_t)(n_blocks * block_bytes(t));
    for (int r = 0; r < n_rows; r++) memcpy(copy + r * chunk_bytes(t), w + (size_t)r * row_bytes, bytes);
    return copy;
}

INLINE void matmul(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                   float *tile) {
    if (n_cols == 1 && n_rows == CERA_PANEL_ROWS) {
        one_column(t, w, row_bytes, k, x, c0, tile);
        one_column(t, w + 16 * row_bytes, row_bytes, k, x, c0, tile + 16);
        return;
    }
    uint8_t copy[CERA_PANEL_ROWS * 34 * CHUNK_BLOCKS];
    if (n_rows < CERA_PANEL_ROWS) memset(copy, 0, sizeof copy);
    memset(tile, 0, (size_t)n_cols * CERA_PANEL_ROWS * sizeof *tile);
    for (int c = 0; c < n_cols; c += CERA_MATMUL_COLUMNS) {
        int n = n_cols - c < CERA_MATMUL_COLUMNS ? n_cols - c : CERA_MATMUL_COLUMNS;
        const uint8_t *p = w;
        for (int b = 0; b < k / 32; b += CHUNK_BLOCKS) {
            int n_blocks = k / 32 - b < CHUNK_BLOCKS ? k / 32 - b : CHUNK_BLOCKS;
            float *out = tile + (size_t)c * CERA_PANEL_ROWS;
            if (n_rows == CERA_PANEL_ROWS)
                chunk_wide(t, p, row_bytes, b, n_blocks, x, c0 + c, n, out);
            else
                chunk_wide(t, stage(t, p, row_bytes, n_rows, n_blocks, copy), (size_t)chunk_bytes(t), b, n_blocks, x, c0 + c, n,
                           out);
            p += chunk_bytes(t);
        }
    }
}

#define MATMUL(name, type)                                                                                                 \
    static void matmul_##name##_avx512vnni(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, \
                                           int n_cols, float *tile) {                                                      \
        matmul(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                        \
    }
MATMUL(q4_0, CERA_Q4_0)
MATMUL(q4_1, CERA_Q4_1)
MATMUL(q5_0, CERA_Q5_0)
MATMUL(q5_1, CERA_Q5_1)
MATMUL(q8_0, CERA_Q8_0)
MATMUL(q2_k, CERA_Q2_K)
MATMUL(q3_k, CERA_Q3_K)
MATMUL(q4_k, CERA_Q4_K)
MATMUL(q5_k, CERA_Q5_K)
MATMUL(q6_k, CERA_Q6_K)
MATMUL(iq4_nl, CERA_IQ4_NL)
MATMUL(iq4_xs, CERA_IQ4_XS)
MATMUL(mxfp4, CERA_MXFP4)

void cera_kernels_matmul_avx512vnni(cera_kernels *k) { CERA_MATMUL_SET_QUANTIZED(k, avx512vnni); }
