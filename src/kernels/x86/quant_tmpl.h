/* quant_tmpl.h: packed weights of a group of rows to bytes, written in the words of quant_vec512.h or quant_vec256.h (include
 * one first; once a tier). Owns the layouts of every quantized type in registers; does not own the multiplication or the order
 * of sums (matmul_tmpl.h).
 *
 * The form: lanes are rows. A sub-block of 32 elements becomes 8 registers of [VEC_ROWS rows][4 elements 4i..4i+3] bytes, so
 * that one vpdpbusd with a broadcast of four activations adds four products to the sums of all rows. Rows are read straight
 * from the mapped file, 16 bytes at a time, and transposed in registers (on 512 bits 12 inserts and 8 unpacks for 256 bytes).
 * Nothing is read outside the blocks. A *chunk* is up to 8 sub-blocks (one superblock of a K type); a *step* is what one load
 * of raw bytes yields.
 *
 * `t` is a constant in every call and the functions are inlined, so the switches cost nothing. */
#ifndef CERA_KERNELS_X86_QUANT_TMPL_H
#define CERA_KERNELS_X86_QUANT_TMPL_H

#include <stdbool.h>
#include "kernels/kernels.h"

enum { CHUNK_BLOCKS = 8 };

/* Scales of a panel of 32 rows over one chunk. Row of the arrays: the sub-block (d and m of types with one a sub-block) or
 * 2 * sub-block + half. */
typedef struct panel_scales {
    float d[2 * CHUNK_BLOCKS][CERA_PANEL_ROWS];
    float m[2 * CHUNK_BLOCKS][CERA_PANEL_ROWS];
    int32_t fold[CHUNK_BLOCKS][CERA_PANEL_ROWS]; /* FOLD types: the sub-scales of both halves, 16 bits each */
} __attribute__((aligned(64))) panel_scales;

INLINE int block_bytes(cera_dtype t) {
    switch (t) {
    case CERA_Q4_0:
    case CERA_IQ4_NL: return 18;
    case CERA_Q4_1: return 20;
    case CERA_Q5_0: return 22;
    case CERA_Q5_1: return 24;
    case CERA_Q8_0: return 34;
    case CERA_MXFP4: return 17;
    case CERA_Q2_K: return 84;
    case CERA_Q3_K: return 110;
    case CERA_Q4_K: return 144;
    case CERA_Q5_K: return 176;
    case CERA_Q6_K: return 210;
    default: return 136; /* IQ4_XS */
    }
}
INLINE int is_superblock(cera_dtype t) {
    return t == CERA_Q2_K || t == CERA_Q3_K || t == CERA_Q4_K || t == CERA_Q5_K || t == CERA_Q6_K || t == CERA_IQ4_XS;
}
INLINE int chunk_bytes(cera_dtype t) { return is_superblock(t) ? block_bytes(t) : CHUNK_BLOCKS * block_bytes(t); }
INLINE int step_blocks(cera_dtype t) {
    return t == CERA_Q4_K || t == CERA_Q5_K ? 2 : t == CERA_Q2_K || t == CERA_Q3_K || t == CERA_Q6_K ? 4 : 1;
}
/* What the byte exceeds the weight's integer by: it makes the byte unsigned, for vpdpbusd. Without VEC_DPBUSD, vpmaddubsw would
 * saturate above 128, so the wide types stay signed; q3_k and q2_k keep their values apart from the sub-scales. */
INLINE int byte_offset(cera_dtype t) {
    switch (t) {
    case CERA_Q4_0: return 8;
    case CERA_Q5_0: return 16;
    case CERA_Q8_0:
    case CERA_IQ4_NL:
    case CERA_IQ4_XS: return VEC_DPBUSD ? 128 : 0;
    case CERA_MXFP4: return 12;
    case CERA_Q6_K: return 32;
    case CERA_Q3_K: return VEC_DPBUSD ? 124 : 0;
    default: return 0;
    }
}
INLINE int is_signed(cera_dtype t) { return !VEC_DPBUSD && (t == CERA_Q8_0 || t == CERA_IQ4_NL || t == CERA_IQ4_XS); }
INLINE int is_split(cera_dtype t) { return t == CERA_Q6_K; }
INLINE int is_fold(cera_dtype t) { return t == CERA_Q2_K || t == CERA_Q3_K; }
INLINE int n_mins(cera_dtype t) {
    return t == CERA_Q2_K ? 2 : t == CERA_Q4_1 || t == CERA_Q5_1 || t == CERA_Q4_K || t == CERA_Q5_K ? 1 : 0;
}

/* 16 bytes of each row to 4 registers of [VEC_ROWS][4 bytes]. turn: rotated down by that many bytes first (0 or 2). */
INLINE void transpose16(const uint8_t *p, size_t stride, int turn, vec out[4]) {
    vec z[4];
    /* Opaque, or the compiler keeps sixteen row pointers and spills them. */
    __asm__ volatile("" : "+r"(stride));
    for (int i = 0; i < 4; i++) {
        z[i] = v_rows_by_4(p + (size_t)i * stride, stride);
        if (turn == 2) z[i] = v_turn2(z[i]);
    }
    v_transpose(z, out);
}

/* The first 8 of 16 bytes of each row. */
INLINE void transpose8(const uint8_t *p, size_t stride, vec out[2]) {
    vec z[4];
    __asm__ volatile("" : "+r"(stride));
    for (int i = 0; i < 4; i++) z[i] = v_rows_by_4(p + (size_t)i * stride, stride);
    vec t0 = v_lo32(z[0], z[1]), t2 = v_lo32(z[2], z[3]);
    out[0] = v_lo64(t0, t2);
    out[1] = v_hi64(t0, t2);
}

INLINE fvec high_f16(vec v) { return f_low_f16(v_srl32(v, 16)); }
INLINE vec byte_of(vec v, int i) { return v_and(v_srl32(v, 8 * i), v_set32(255)); }
INLINE vec signed_byte_of(vec v, int i) { return v_sra32(v_sll32(v, 24 - 8 * i), 24); }

/* ---- scales of VEC_ROWS rows over one chunk of n_blocks; `s` points to their 16 columns of a panel_scales ---- */

INLINE fvec e8m0_half(vec e) {
    vec small = v_sllv32(v_set32(0x00200000), e);
    vec usual = v_sll32(v_sub32(e, v_set32(1)), 23);
    return f_bits(v_below2(e, small, usual));
}

#if VEC_CHUNK_WORDS
/* A whole chunk of 8 blocks at once. */
INLINE void scales_small8(cera_dtype t, const uint8_t *w, size_t stride, panel_scales *s, int first) {
    if (t == CERA_Q4_1) {
        vec z[8];
        v_chunk_words(w, stride, block_bytes(t), 0, z);
        for (int b = 0; b < 8; b++) {
            f_store(&s->d[b][first], f_low_f16(z[b]));
            f_store(&s->m[b][first], high_f16(z[b]));
        }
        return;
    }
    __m256i h[8];
    v_chunk_halves(w, stride, block_bytes(t), h);
    for (int b = 0; b < 8; b++) {
        if (t == CERA_MXFP4) {
            /* A block of 17 bytes begins in the low or the high half of its word in turn. */
            vec e = v_srl32(_mm512_cvtepu16_epi32(h[b]), b % 2 * 8);
            f_store(&s->d[b][first], e8m0_half(v_and(e, v_set32(255))));
        } else {
            f_store(&s->d[b][first], _mm512_cvtph_ps(h[b]));
        }
    }
}
#endif

INLINE void scales_small(cera_dtype t, const uint8_t *w, size_t stride, int n_blocks, panel_scales *s, int first) {
#if VEC_CHUNK_WORDS
    if (n_blocks == CHUNK_BLOCKS) {
        scales_small8(t, w, stride, s, first);
        return;
    }
#endif
    for (int b = 0; b < n_blocks; b++) {
        const uint8_t *p = w + b * block_bytes(t);
        if (t == CERA_Q4_1) {
            vec z = v_words(p, stride);
            f_store(&s->d[b][first], f_low_f16(z));
            f_store(&s->m[b][first], high_f16(z));
        } else if (t == CERA_MXFP4) {
            vec z = v_halves(p, stride);
            f_store(&s->d[b][first], e8m0_half(v_and(z, v_set32(255))));
        } else {
            f_store(&s->d[b][first], f_halves(p, stride));
        }
    }
}

INLINE void scales_q45_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    vec z[4], sc[2], mn[2], low6 = v_set8(63), low4 = v_set8(15), bits45 = v_set8(48);
    transpose16(w, stride, 0, z);
    fvec d = f_low_f16(z[0]), dmin = f_neg(high_f16(z[0]));
    sc[0] = v_and(z[1], low6);
    mn[0] = v_and(z[2], low6);
    sc[1] = v_or(v_and(z[3], low4), v_and(v_srl32(z[1], 2), bits45));
    mn[1] = v_or(v_and(v_srl32(z[3], 4), low4), v_and(v_srl32(z[2], 2), bits45));
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
        f_store(&s->d[j][first], f_mul(d, f_from(byte_of(sc[j / 4], j % 4))));
        f_store(&s->m[j][first], f_mul(dmin, f_from(byte_of(mn[j / 4], j % 4))));
    }
}

INLINE void scales_q6_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    vec z[4];
    transpose16(w + 192, stride, 0, z);
    fvec d = f_halves(w + 208, stride);
    for (int i = 0; i < 16; i++) { f_store(&s->d[i][first], f_mul(d, f_from(signed_byte_of(z[i / 4], i % 4)))); }
}

/* Byte i of the registers v[4] is sub-scale i of 16. */
INLINE void store_fold(panel_scales *s, int first, const vec v[4]) {
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
        vec low = signed_byte_of(v[j / 2], j % 2 * 2),
            high = v_and(v_sll32(v[j / 2], j % 2 ? 0 : 16), v_set32((int)0xff000000));
        v_store(&s->fold[j][first], v_odd16(low, v_sra32(high, 8)));
    }
}
/* One half's sub-scale in both 16-bit halves. */
INLINE vec fold_of(vec pair, int half) { return half ? v_odd16(v_srl32(pair, 16), pair) : v_odd16(pair, v_sll32(pair, 16)); }

INLINE void scales_q3_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    vec z[4], v[4], low4 = v_set8(15), bits45 = v_set8(48), offset = v_set8(32);
    transpose16(w + 94, stride, 2, z); /* 2 bytes before the scales, so that the load ends with the block; turned to the end */
    fvec d = f_low_f16(z[3]);
    for (int i = 0; i < 4; i++) {
        vec low = i < 2 ? z[i] : v_srl32(z[i - 2], 4);
        vec high = i == 0 ? v_sll32(z[2], 4) : i == 1 ? v_sll32(z[2], 2) : i == 2 ? z[2] : v_srl32(z[2], 2);
        v[i] = v_or(v_and(low, low4), v_and(high, bits45));
        v[i] = v_sub8(v[i], offset);
    }
    store_fold(s, first, v);
    for (int j = 0; j < CHUNK_BLOCKS; j++) f_store(&s->d[j][first], d);
}

INLINE void scales_q2_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    vec z[4], scale[4], both = v_words(w + 80, stride), low4 = v_set8(15);
    transpose16(w, stride, 0, z);
    fvec d = f_low_f16(both), dmin = f_neg(high_f16(both));
    for (int i = 0; i < 4; i++) scale[i] = v_and(z[i], low4);
    store_fold(s, first, scale);
    for (int i = 0; i < 16; i++)
        f_store(&s->m[i][first], f_mul(dmin, f_from(v_and(v_srl32(z[i / 4], i % 4 * 8 + 4), v_set32(15)))));
    for (int j = 0; j < CHUNK_BLOCKS; j++) f_store(&s->d[j][first], d);
}

INLINE void scales_iq4_xs(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    vec z[4], low4 = v_set32(15), high2 = v_set32(48);
    transpose16(w, stride, 0, z);
    fvec d = f_low_f16(z[0]);
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
        vec low = v_and(v_srl32(z[1], 4 * j), low4);
        /* scales_h is the upper half of z[0]: bits 16 + 2j, 17 + 2j to bits 4, 5 */
        vec high = v_and(v_srl32(z[0], 12 + 2 * j), high2);
        vec scale = v_sub32(v_or(low, high), v_set32(32));
        f_store(&s->d[j][first], f_mul(d, f_from(scale)));
    }
}

INLINE void chunk_scales(cera_dtype t, const uint8_t *w, size_t stride, int n_blocks, panel_scales *s, int first) {
    switch (t) {
    case CERA_Q4_K:
    case CERA_Q5_K: scales_q45_k(w, stride, s, first); break;
    case CERA_Q6_K: scales_q6_k(w, stride, s, first); break;
    case CERA_Q3_K: scales_q3_k(w, stride, s, first); break;
    case CERA_Q2_K: scales_q2_k(w, stride, s, first); break;
    case CERA_IQ4_XS: scales_iq4_xs(w, stride, s, first); break;
    case CERA_Q5_0:
    case CERA_Q5_1:
    case CERA_Q8_0: break; /* load_step */
    default: scales_small(t, w, stride, n_blocks, s, first); break;
    }
}

/* ---- raw bytes of one step (24 registers at most), and the bits that a whole chunk shares ---- */

typedef struct raw_step {
    vec v[24];
} raw_step;
typedef struct raw_chunk {
    vec v[8]; /* q5_k: qh; q3_k: hmask; the bits of the step's sub-blocks are lowest */
} raw_chunk;

INLINE void load_chunk(cera_dtype t, const uint8_t *w, size_t stride, raw_chunk *c) {
    int at = t == CERA_Q5_K ? 16 : 0;
    if (t != CERA_Q5_K && t != CERA_Q3_K) return;
    transpose16(w + at, stride, 0, c->v);
    transpose16(w + at + 16, stride, 0, c->v + 4);
}
INLINE void next_step(cera_dtype t, raw_chunk *c) {
    for (int i = 0; (t == CERA_Q5_K || t == CERA_Q3_K) && i < 8; i++) c->v[i] = v_srl32(c->v[i], step_blocks(t));
}

/* w: the chunk; first: the step's first sub-block in it; s, row: where the scales go of the types whose blocks are too large
 * for v_chunk_words: their head is transposed here. */
INLINE void load_step(cera_dtype t, const uint8_t *w, size_t stride, int first, raw_step *r, panel_scales *s, int row) {
    const uint8_t *p = is_superblock(t) ? w : w + first * block_bytes(t);
    vec head[2];
    switch (t) {
    case CERA_Q4_0:
    case CERA_IQ4_NL: transpose16(p + 2, stride, 0, r->v); break;
    case CERA_Q4_1: transpose16(p + 4, stride, 0, r->v); break;
    case CERA_MXFP4: transpose16(p + 1, stride, 0, r->v); break;
    case CERA_IQ4_XS: transpose16(p + 8 + 16 * first, stride, 0, r->v); break;
    case CERA_Q5_0: /* d, qh in 6 bytes */
        transpose16(p + 6, stride, 0, r->v);
        transpose8(p, stride, head);
        f_store(&s->d[first][row], f_low_f16(head[0]));
        r->v[4] = v_odd16(v_srl32(head[0], 16), v_sll32(head[1], 16));
        break;
    case CERA_Q5_1: /* d, m, qh in 8 bytes */
        transpose16(p + 8, stride, 0, r->v);
        transpose8(p, stride, head);
        f_store(&s->d[first][row], f_low_f16(head[0]));
        f_store(&s->m[first][row], high_f16(head[0]));
        r->v[4] = head[1];
        break;
    case CERA_Q8_0:
        transpose8(p, stride, head);
        f_store(&s->d[first][row], f_low_f16(head[0]));
        transpose16(p + 2, stride, 0, r->v);
        transpose16(p + 18, stride, 0, r->v + 4);
        break;
    case CERA_Q6_K:
        p += first / 4 * 64; /* ql, then qh of this half */
        for (int i = 0; i < 4; i++) transpose16(p + 16 * i, stride, 0, r->v + 4 * i);
        p += 128 - first / 4 * 32;
        transpose16(p, stride, 0, r->v + 16);
        transpose16(p + 16, stride, 0, r->v + 20);
        break;
    default: /* 32 bytes */
        p += t == CERA_Q4_K   ? 16 + 16 * first
             : t == CERA_Q5_K ? 48 + 16 * first
             : t == CERA_Q3_K ? 32 + 8 * first
                              : 16 + 8 * first;
        transpose16(p, stride, 0, r->v);
        transpose16(p + 16, stride, 0, r->v + 4);
        break;
    }
}

INLINE vec shifted(vec v, int down) { return down >= 0 ? v_srl32(v, down) : v_sll32(v, -down); }
/* (a & mask_a) | (b & mask_b) */
INLINE vec join(vec a, int mask_a, vec b, int mask_b) { return v_or_and(v_and(a, v_set8(mask_a)), b, v_set8(mask_b)); }

/* The sixteen values, plus byte_offset. */
INLINE vec value_table(cera_dtype t) {
    __m128i iq4 = _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
    __m128i fp4 = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    return v_add8(v_splat128(t == CERA_MXFP4 ? fp4 : iq4), v_set8(byte_offset(t)));
}

/* Elements 4i..4i+3 of the step's sub-block j as bytes; FOLD types before the sub-scale: 0..7 (q3_k), 0..3 (q2_k). */
INLINE vec unpack(cera_dtype t, const raw_step *r, const raw_chunk *c, int j, int i) {
    switch (t) {
    case CERA_Q8_0: return byte_offset(t) ? v_xor(r->v[i], v_set8(0x80)) : r->v[i];
    case CERA_Q4_K: return v_and(shifted(r->v[i], j * 4), v_set8(15));
    case CERA_Q5_K: return join(shifted(r->v[i], j * 4), 15, shifted(c->v[i], j - 4), 16);
    case CERA_Q6_K: return join(shifted(r->v[j % 2 * 8 + i], j / 2 * 4), 15, shifted(r->v[16 + i], 2 * j - 4), 48);
    case CERA_Q3_K: return join(shifted(r->v[i], 2 * j), 3, shifted(c->v[i], j - 2), 4);
    case CERA_Q2_K: return v_and(shifted(r->v[i], 2 * j), v_set8(3));
    default: break;
    }
    vec nibbles = v_and(shifted(r->v[i % 4], i / 4 * 4), v_set8(15));
    if (t == CERA_Q5_0 || t == CERA_Q5_1) return v_or(nibbles, v_fifth_bits(r->v[4], i));
    if (t == CERA_IQ4_NL || t == CERA_IQ4_XS || t == CERA_MXFP4) return v_shuffle8(value_table(t), nibbles);
    return nibbles;
}

/* For one column, where a shift a register costs more than one a sum: the bits where they are, times 2^raised. The sum is then
 * a multiple of 2^raised. (Not for vpmaddubsw, whose sums of pairs would overflow; for q2_k and q3_k it
 * brought nothing.) */
INLINE int raised(cera_dtype t, int j, int half) {
    if (!VEC_DPBUSD) return 0;
    if (t == CERA_Q4_0 || t == CERA_Q4_1) return 4 * half;
    return t == CERA_Q4_K ? 4 * j : 0;
}
INLINE vec unpack_raised(cera_dtype t, const raw_step *r, const raw_chunk *c, int j, int i) {
    int up = raised(t, j, i / 4);
    if (!up) return unpack(t, r, c, j, i);
    return v_and(r->v[t == CERA_Q4_K ? i : i % 4], v_set8(15 << up));
}

/* The byte times its sub-scale (given in both 16-bit halves), q3_k: (v - 4) * scale + 124, which lies in 0..252: the product of
 * the odd byte fills the high byte alone when the low one is cleared first; sums are modulo 256. q2_k: at most 45, no carry. */
INLINE vec fold_scale(cera_dtype t, vec v, vec scale) {
    if (t == CERA_Q2_K) return v_mul16(v, scale);
    vec even = v_set16(0x00ff), bias = v_sub16(v_set16(124), v_sll16(scale, 2));
    vec high = v_mul16(v_andnot(even, v), scale), low = v_mul16(v_and(even, v), scale);
    bias = v_odd8(bias, v_sll16(bias, 8));
    return v_add8(v_or(high, v_and(low, even)), bias);
}

#endif
