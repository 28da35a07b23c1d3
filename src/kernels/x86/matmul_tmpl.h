/* matmul_tmpl.h: 32 rows x n columns of every quantized type, activations int8 in groups of 32; included once a tier by
 * matmul_<tier>.c, which sets the vector words (quant_vec512.h, quant_vec256.h) and TIER. Owns: the loops over columns and
 * sub-blocks. Does not own: the packed layouts (quant_tmpl.h), tiling over threads (backend/cpu).
 *
 * Numbers. The recipe of ref/matmul.c, bit for bit. With vpdpbusd, weights are unsigned bytes, byte_offset over the integer
 * they stand for, and the accumulator starts at -offset * sum(a), so the int32 sum is the recipe's exactly: |sum| <= 32 * 255 *
 * 127 + 32 * 128 * 127 < 2^21, it cannot overflow. With vpmaddubsw, sums in int16 hold as many products as cannot exceed 32767
 * (pairs16), then widen. Then one conversion, one product of scales and one fma (and one or two for the min), as there.
 *
 * Order. Columns innermost: a sub-block of VEC_GROUPS groups of rows stays in registers and the columns stream past it,
 * VEC_WIDE at a time for independent chains; the f32 accumulators are the tile, in L1. One column alone takes one group of rows
 * at a time, accumulators in registers, and meanwhile prefetches the next group's rows linearly, a few lines with each step: a
 * burst would hold up the loads (80 % of a read loop, against 95 %). */
#include "kernels/ref/matmul_ref.h"
#include "kernels/x86/matmul_x86.h"
#include "kernels/x86/quant_tmpl.h"

INLINE vec broadcast4(const void *p) {
    int32_t v;
    memcpy(&v, p, 4);
    return v_set32(v);
}

/* The activations of one sub-block, from the call's first column on, and the sums' start values. */
typedef struct columns {
    const int8_t *q;
    const float *d, *s, *s16;
    const int16_t *sum16;
    const int32_t *start; /* [n], or [n][2] for SPLIT types */
} columns;

#if VEC_DPBUSD
/* sum += the products of registers [i0, i1) of a sub-block and one column. */
INLINE vec dot(cera_dtype t, const vec *u, const int8_t *q, int i0, int i1, const vec *fold, vec sum) {
    (void)t, (void)fold;
    for (int i = i0; i < i1; i++) sum = v_dpbusd4(sum, u[i], q + 4 * i);
    return sum;
}
#else
/* Registers whose products (two a 16-bit lane each) may be added in int16: largest byte * 127 * 2 * n <= 32767. */
INLINE int pairs16(cera_dtype t) {
    switch (t) {
    case CERA_Q4_0:
    case CERA_Q4_1:
    case CERA_Q4_K: return 8; /* 15 */
    case CERA_Q5_0:
    case CERA_Q5_1:
    case CERA_Q5_K:           /* 31 */
    case CERA_MXFP4:          /* 24 */
    case CERA_Q3_K:           /* 7, a sub-scale for each 4 */
    case CERA_Q2_K: return 4; /* 3 */
    case CERA_Q6_K: return 2; /* 63 */
    default: return 1;        /* 128 */
    }
}
INLINE vec dot(cera_dtype t, const vec *u, const int8_t *q, int i0, int i1, const vec *fold, vec sum) {
    for (int i = i0; i < i1; i += pairs16(t)) {
        vec pairs = v_zero();
        for (int p = i; p < i + pairs16(t) && p < i1; p++) {
            vec a = broadcast4(q + 4 * p),
                product = is_signed(t) ? v_maddubs(v_abs8(u[p]), v_sign8(a, u[p])) : v_maddubs(u[p], a);
            pairs = p == i ? product : v_add16(pairs, product);
        }
        sum = v_add32(sum, v_madd16(pairs, is_fold(t) ? fold[i / 4] : v_set16(1)));
    }
    return sum;
}
#endif

/* Where a sum begins: the offset taken back. q3_k without vpdpbusd: its values are 4 over, before the sub-scale of each half.
 */
INLINE vec sum_start(cera_dtype t, const columns *x, int c, int half, const vec *fold) {
    if (!VEC_DPBUSD && t == CERA_Q3_K) {
        vec both = v_madd16(v_odd16(fold[0], fold[1]), broadcast4(x->sum16 + 2 * c));
        return v_sub32(v_zero(), v_sll32(both, 2));
    }
    if (!byte_offset(t)) return v_zero();
    return v_set32(x->start[is_split(t) ? 2 * c + half : c]);
}

/* acc takes one sub-block of one column and group of rows: sums to f32, scales, min terms, in the recipe's order. */
INLINE fvec update(cera_dtype t, const vec *sum, const float (*d)[CERA_PANEL_ROWS], const float (*m)[CERA_PANEL_ROWS], int row,
                   const columns *x, int c, fvec acc) {
    fvec d_a = f_set(x->d[c]);
    for (int h = 0; h < (is_split(t) ? 2 : 1); h++) acc = f_fma(f_mul(f_load(&d[h][row]), d_a), f_from(sum[h]), acc);
    if (n_mins(t) == 1) acc = f_fma(f_load(&m[0][row]), f_set(x->s[c]), acc);
    for (int h = 0; n_mins(t) == 2 && h < 2; h++) acc = f_fma(f_load(&m[h][row]), f_set(x->s16[2 * c + h]), acc);
    return acc;
}

/* n columns (a constant) from c on; u[g] are the bytes of group g; row: the first row of group 0 in the panel. */
INLINE void stream(cera_dtype t, int n, vec u[VEC_GROUPS][8], vec fold[VEC_GROUPS][2], const float (*d)[CERA_PANEL_ROWS],
                   const float (*m)[CERA_PANEL_ROWS], int row, const columns *x, int c, float *tile) {
    vec sum[VEC_WIDE][VEC_GROUPS][2];
    for (int j = 0; j < n; j++) {
        for (int g = 0; g < VEC_GROUPS; g++) {
            for (int h = 0; h < (is_split(t) ? 2 : 1); h++) sum[j][g][h] = sum_start(t, x, c + j, h, fold[g]);
        }
    }
#if VEC_DPBUSD
    for (int i = 0; i < 8; i++) {
        int h = is_split(t) ? i / 4 : 0;
        for (int j = 0; j < n; j++) {
            vec a = broadcast4(x->q + 32 * (c + j) + 4 * i);
            for (int g = 0; g < VEC_GROUPS; g++) sum[j][g][h] = v_dpbusd(sum[j][g][h], u[g][i], a);
        }
    }
#else
    for (int j = 0; j < n; j++) {
        for (int g = 0; g < VEC_GROUPS; g++) {
            sum[j][g][0] = dot(t, u[g], x->q + 32 * (c + j), 0, is_split(t) ? 4 : 8, fold[g], sum[j][g][0]);
            if (is_split(t)) sum[j][g][1] = dot(t, u[g], x->q + 32 * (c + j), 4, 8, fold[g], sum[j][g][1]);
        }
    }
#endif
    for (int j = 0; j < n; j++) {
        for (int g = 0; g < VEC_GROUPS; g++) {
            float *out = tile + (size_t)(c + j) * CERA_PANEL_ROWS + row + VEC_ROWS * g;
            f_store(out, update(t, sum[j][g], d, m, row + VEC_ROWS * g, x, c + j, f_load(out)));
        }
    }
}

INLINE void start_values(cera_dtype t, const cera_acts *x, size_t at, int n_cols, int32_t *start) {
    int offset = -byte_offset(t);
    if (!offset) return;
    if (is_split(t)) {
        const int16_t *sum16 = x->sum16 + 2 * at;
        for (int c = 0; c < 2 * n_cols; c++) start[c] = offset * sum16[c];
    } else {
        const int32_t *sum = x->sum + at;
        for (int c = 0; c < n_cols; c++) start[c] = offset * sum[c];
    }
}

INLINE columns columns_at(const cera_acts *x, size_t at, const int32_t *start) {
    columns c = {x->q + 32 * at, x->d + at, x->s + at, x->s16 + 2 * at, x->sum16 + 2 * at, start};
    return c;
}

/* One sub-block (number j of its step) of VEC_GROUPS groups of rows, all columns. */
INLINE void block_wide(cera_dtype t, const raw_step *raw, const raw_chunk *shared, int j, const panel_scales *s, int block,
                       int row, const columns *x, int n_cols, float *tile) {
    vec u[VEC_GROUPS][8], fold[VEC_GROUPS][2];
    for (int g = 0; g < VEC_GROUPS; g++) {
        for (int h = 0; is_fold(t) && h < 2; h++) fold[g][h] = fold_of(v_load(&s->fold[block][row + VEC_ROWS * g]), h);
        for (int i = 0; i < 8; i++) {
            u[g][i] = unpack(t, &raw[g], &shared[g], j, i);
            if (VEC_DPBUSD && is_fold(t)) u[g][i] = fold_scale(t, u[g][i], fold[g][i / 4]);
        }
    }
    const float(*d)[CERA_PANEL_ROWS] = &s->d[is_split(t) ? 2 * block : block];
    const float(*m)[CERA_PANEL_ROWS] = &s->m[n_mins(t) == 2 ? 2 * block : block];
    int c = 0;
    enum { HALF = VEC_WIDE / 2 };
    if (is_split(t)) {
        for (; c + HALF <= n_cols; c += HALF) stream(t, HALF, u, fold, d, m, row, x, c, tile);
    } else {
        for (; c + VEC_WIDE <= n_cols; c += VEC_WIDE) stream(t, VEC_WIDE, u, fold, d, m, row, x, c, tile);
    }
    for (; c < n_cols; c++) stream(t, 1, u, fold, d, m, row, x, c, tile);
}

/* A chunk of n_blocks sub-blocks, the first being number b of the row; the tile is taken up where it was. next: as many bytes
 * of the following panel are asked for meanwhile. */
INLINE void chunk_wide(cera_dtype t, const uint8_t *w, size_t stride, int b, int n_blocks, const cera_acts *x, int c0,
                       int n_cols, float *tile, const uint8_t *next) {
    enum { PREFETCH_ROWS = VEC_ROWS * VEC_GROUPS };
    panel_scales s;
    int32_t start[2 * CERA_MATMUL_COLUMNS];
    for (int row = 0; row < CERA_PANEL_ROWS; row += VEC_ROWS)
        chunk_scales(t, w + (size_t)row * stride, stride, n_blocks, &s, row);
    for (int row = 0; row < CERA_PANEL_ROWS; row += VEC_ROWS * VEC_GROUPS) {
        raw_chunk shared[VEC_GROUPS];
        raw_step raw[VEC_GROUPS];
        const uint8_t *p = w + (size_t)row * stride;
        for (int g = 0; g < VEC_GROUPS; g++) load_chunk(t, p + (size_t)(g * VEC_ROWS) * stride, stride, &shared[g]);
        for (int first = 0; first < n_blocks; first += step_blocks(t)) {
            for (int g = 0; g < VEC_GROUPS; g++)
                load_step(t, p + (size_t)(g * VEC_ROWS) * stride, stride, first, &raw[g], &s, row + g * VEC_ROWS);
#pragma GCC unroll 4
            for (int j = 0; j < step_blocks(t); j++) {
                size_t at = (size_t)(b + first + j) * (size_t)x->n + (size_t)c0;
                start_values(t, x, at, n_cols, start);
                columns cols = columns_at(x, at, start);
                for (int line = 0; line < PREFETCH_ROWS * chunk_bytes(t) / CHUNK_BLOCKS; line += 64)
                    _mm_prefetch((const char *)next + line, _MM_HINT_T0);
                next += PREFETCH_ROWS * chunk_bytes(t) / CHUNK_BLOCKS;
                block_wide(t, raw, shared, j, &s, first + j, row, &cols, n_cols, tile);
            }
            for (int g = 0; g < VEC_GROUPS; g++) next_step(t, &shared[g]);
        }
    }
}

/* FOLD types with vpdpbusd and one column: multiplying the sums of the halves by their sub-scales is cheaper than the bytes,
 * and the same integer. A half's sum is at most 16 * 7 * 127 + 4 * 16 * 127 < 2^15. */
INLINE vec sum_apart(cera_dtype t, const vec *u, const columns *x, vec pair) {
    vec sum[2];
    for (int h = 0; h < 2; h++) {
        vec start = t == CERA_Q3_K ? v_set32(-4 * x->sum16[h]) : v_zero();
        sum[h] = dot(t, u, x->q, 4 * h, 4 * h + 4, u, start);
    }
    return v_madd16(v_odd16(sum[0], v_sll32(sum[1], 16)), pair);
}

/* One sub-block of one group of rows and the one column. */
INLINE fvec block_one(cera_dtype t, const raw_step *raw, const raw_chunk *shared, int j, const panel_scales *s, int block,
                      const cera_acts *x, size_t at, fvec acc) {
    vec u[8], fold[2], sum[2];
    int32_t start[2];
    start_values(t, x, at, 1, start);
    columns cols = columns_at(x, at, start);
    for (int i = 0; i < 8; i++) u[i] = unpack_raised(t, raw, shared, j, i);
    if (VEC_DPBUSD && is_fold(t)) {
        sum[0] = sum_apart(t, u, &cols, v_load(&s->fold[block][0]));
    } else {
        for (int h = 0; is_fold(t) && h < 2; h++) fold[h] = fold_of(v_load(&s->fold[block][0]), h);
        sum[0] = dot(t, u, cols.q, 0, 4, fold, sum_start(t, &cols, 0, 0, fold));
        sum[1] = dot(t, u, cols.q, 4, 8, fold, is_split(t) ? sum_start(t, &cols, 0, 1, fold) : v_zero());
        if (raised(t, j, 0) == raised(t, j, 1)) {
            if (!is_split(t)) sum[0] = v_sra32(v_add32(sum[0], sum[1]), raised(t, j, 0));
        } else {
            sum[0] = v_add32(sum[0], v_sra32(sum[1], raised(t, j, 1)));
        }
    }
    return update(t, sum, &s->d[is_split(t) ? 2 * block : block], &s->m[n_mins(t) == 2 ? 2 * block : block], 0, &cols, 0, acc);
}

/* VEC_ROWS rows, one column of n (a constant where it is 1: then offsets are, too), all of k; the rows behind them are
 * prefetched (they need not exist). */
INLINE void one_column_of(cera_dtype t, const uint8_t *w, size_t stride, int k, const cera_acts *x, size_t n, int column,
                          float *out) {
    fvec acc = f_zero();
    const uint8_t *next = w + VEC_ROWS * stride;
    for (int b = 0; b < k / 32; b += CHUNK_BLOCKS) {
        panel_scales s;
        raw_chunk shared;
        int n_blocks = k / 32 - b < CHUNK_BLOCKS ? k / 32 - b : CHUNK_BLOCKS;
        chunk_scales(t, w, stride, n_blocks, &s, 0);
        load_chunk(t, w, stride, &shared);
        for (int first = 0; first < n_blocks; first += step_blocks(t)) {
            raw_step raw;
            load_step(t, w, stride, first, &raw, &s, 0);
#pragma GCC unroll 4
            for (int j = 0; j < step_blocks(t); j++) {
                size_t at = (size_t)(b + first + j) * n + (size_t)column;
                for (int line = 0; line < VEC_ROWS * chunk_bytes(t) / CHUNK_BLOCKS; line += 64)
                    _mm_prefetch((const char *)next + line, _MM_HINT_T0);
                next += VEC_ROWS * chunk_bytes(t) / CHUNK_BLOCKS;
                acc = block_one(t, &raw, &shared, j, &s, first + j, x, at, acc);
            }
            next_step(t, &shared);
        }
        w += chunk_bytes(t);
    }
    f_store(out, acc);
}

INLINE void one_column(cera_dtype t, const uint8_t *w, size_t stride, int k, const cera_acts *x, int column, float *out) {
    if (x->n == 1)
        one_column_of(t, w, stride, k, x, 1, 0, out);
    else
        one_column_of(t, w, stride, k, x, (size_t)x->n, column, out);
}

/* The last rows of a matrix: a chunk is copied into 32 rows, so that the loops above need no masks. */
INLINE void stage(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int n_blocks, uint8_t *copy) {
    size_t bytes = is_superblock(t) ? (size_t)block_bytes(t) : (size_t)(n_blocks * block_bytes(t));
    for (int r = 0; r < n_rows; r++) memcpy(copy + r * chunk_bytes(t), w + (size_t)r * row_bytes, bytes);
}

INLINE void matmul(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                   float *tile) {
    if (n_cols == 1 && n_rows == CERA_PANEL_ROWS) {
#ifdef MATMUL_ONE_Q8_0
        if (t == CERA_Q8_0) {
            MATMUL_ONE_Q8_0(w, row_bytes, k, x, c0, tile);
            return;
        }
#endif
        for (int row = 0; row < CERA_PANEL_ROWS; row += VEC_ROWS)
            one_column(t, w + (size_t)row * row_bytes, row_bytes, k, x, c0, tile + row);
        return;
    }
    uint8_t copy[CERA_PANEL_ROWS * 34 * CHUNK_BLOCKS]; /* 34: the largest block, q8_0 */
    bool whole = n_rows == CERA_PANEL_ROWS;
    if (!whole) memset(copy, 0, sizeof copy);
    memset(tile, 0, (size_t)n_cols * CERA_PANEL_ROWS * sizeof *tile);
    for (int c = 0; c < n_cols; c += CERA_MATMUL_COLUMNS) {
        int n = n_cols - c < CERA_MATMUL_COLUMNS ? n_cols - c : CERA_MATMUL_COLUMNS;
        const uint8_t *p = w;
        for (int b = 0; b < k / 32; b += CHUNK_BLOCKS) {
            int n_blocks = k / 32 - b < CHUNK_BLOCKS ? k / 32 - b : CHUNK_BLOCKS;
            if (!whole) stage(t, p, row_bytes, n_rows, n_blocks, copy);
            chunk_wide(t, whole ? p : copy, whole ? row_bytes : (size_t)chunk_bytes(t), b, n_blocks, x, c0 + c, n,
                       tile + (size_t)c * CERA_PANEL_ROWS,
                       w + CERA_PANEL_ROWS * row_bytes + (size_t)(CERA_PANEL_ROWS * (b / CHUNK_BLOCKS) * chunk_bytes(t)));
            p += chunk_bytes(t);
        }
    }
}

#ifndef MATMUL_ONLY_ONE /* the including file wants one_column alone */
#    define MATMUL_(name, type, tier)                                                                                      \
        static void matmul_##name##_##tier(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, \
                                           int n_cols, float *tile) {                                                      \
            matmul(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                    \
        }
#    define MATMUL(name, type, tier) MATMUL_(name, type, tier)
MATMUL(q4_0, CERA_Q4_0, TIER)
MATMUL(q4_1, CERA_Q4_1, TIER)
MATMUL(q5_0, CERA_Q5_0, TIER)
MATMUL(q5_1, CERA_Q5_1, TIER)
MATMUL(q8_0, CERA_Q8_0, TIER)
MATMUL(q2_k, CERA_Q2_K, TIER)
MATMUL(q3_k, CERA_Q3_K, TIER)
MATMUL(q4_k, CERA_Q4_K, TIER)
MATMUL(q5_k, CERA_Q5_K, TIER)
MATMUL(q6_k, CERA_Q6_K, TIER)
MATMUL(iq4_nl, CERA_IQ4_NL, TIER)
MATMUL(iq4_xs, CERA_IQ4_XS, TIER)
MATMUL(mxfp4, CERA_MXFP4, TIER)
#endif
