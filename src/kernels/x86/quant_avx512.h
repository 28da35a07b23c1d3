/* quant_avx512.h: packed weights of 16 rows to unsigned bytes, for the AVX-512 matmuls. Owns the layouts of every quantized
 * type in registers; does not own the multiplication or the order of sums (matmul_avx512vnni.c).
 *
 * The form: lanes are rows. A sub-block of 32 elements of 16 rows becomes 8 registers u[i] of [16 rows][4 elements 4i..4i+3]
 * bytes, so that one vpdpbusd with a broadcast of four activations adds four products to the sums of 16 rows. Rows are read
 * straight from the mapped file, 16 bytes at a time, and transposed in registers (12 inserts and 8 unpacks for 256 bytes).
 * Nothing is read outside the blocks. A *chunk* is up to 8 sub-blocks (one superblock of a K type); a *step* is what one load
 * of raw bytes yields.
 *
 * `t` is a constant in every call and the functions are inlined, so the switches cost nothing. */
#ifndef CERA_KERNELS_X86_QUANT_AVX512_H
#define CERA_KERNELS_X86_QUANT_AVX512_H

#include <immintrin.h>
#include <string.h>
#include "kernels/kernels.h"

#define INLINE static inline __attribute__((always_inline))

enum { CHUNK_BLOCKS = 8, GROUP_ROWS = 16 };

/* Scales of a panel of 32 rows over one chunk. Row of the arrays: the sub-block (d and m of types with one a sub-block) or
 * 2 * sub-block + half. */
typedef struct panel_scales {
    float d[2 * CHUNK_BLOCKS][CERA_PANEL_ROWS];
    float m[2 * CHUNK_BLOCKS][CERA_PANEL_ROWS];
    int32_t fold[2 * CHUNK_BLOCKS][CERA_PANEL_ROWS]; /* FOLD types: the integer sub-scale, in both 16-bit halves */
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
/* What the unsigned byte exceeds the weight's integer by. */
INLINE int byte_offset(cera_dtype t) {
    switch (t) {
    case CERA_Q4_0: return 8;
    case CERA_Q5_0: return 16;
    case CERA_Q8_0:
    case CERA_IQ4_NL:
    case CERA_IQ4_XS: return 128;
    case CERA_MXFP4: return 12;
    case CERA_Q6_K: return 32;
    case CERA_Q3_K: return 124;
    default: return 0;
    }
}
INLINE int is_split(cera_dtype t) { return t == CERA_Q6_K; }
INLINE int is_fold(cera_dtype t) { return t == CERA_Q2_K || t == CERA_Q3_K; }
INLINE int n_mins(cera_dtype t) {
    return t == CERA_Q2_K ? 2 : t == CERA_Q4_1 || t == CERA_Q5_1 || t == CERA_Q4_K || t == CERA_Q5_K ? 1 : 0;
}

INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }
INLINE __m512i splat8(int b) { return _mm512_set1_epi8((char)b); }

/* 16 bytes of each of 16 rows to 4 registers of [16 rows][4 bytes]. `turn`: bytes by which each 16 are rotated down first. */
INLINE void transpose16(const uint8_t *p, size_t stride, int turn, __m512i out[4]) {
    __m512i z[4], t0, t1, t2, t3;
    for (int i = 0; i < 4; i++) {
        const uint8_t *row = p + (size_t)i * stride;
        z[i] = _mm512_castsi128_si512(load16(row));
        z[i] = _mm512_inserti32x4(z[i], load16(row + 4 * stride), 1);
        z[i] = _mm512_inserti32x4(z[i], load16(row + 8 * stride), 2);
        z[i] = _mm512_inserti32x4(z[i], load16(row + 12 * stride), 3);
        if (turn == 2) z[i] = _mm512_alignr_epi8(z[i], z[i], 2);
    }
    t0 = _mm512_unpacklo_epi32(z[0], z[1]);
    t1 = _mm512_unpackhi_epi32(z[0], z[1]);
    t2 = _mm512_unpacklo_epi32(z[2], z[3]);
    t3 = _mm512_unpackhi_epi32(z[2], z[3]);
    out[0] = _mm512_unpacklo_epi64(t0, t2);
    out[1] = _mm512_unpackhi_epi64(t0, t2);
    out[2] = _mm512_unpacklo_epi64(t1, t3);
    out[3] = _mm512_unpackhi_epi64(t1, t3);
}

/* One 32-bit word of each of 16 rows. */
INLINE __m128i words4(const uint8_t *p, size_t stride) {
    int32_t w[4];
    for (size_t i = 0; i < 4; i++) memcpy(&w[i], p + i * stride, 4);
    return _mm_insert_epi32(_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(w[0]), w[1], 1), w[2], 2), w[3], 3);
}
INLINE __m512i words16(const uint8_t *p, size_t stride) {
    __m512i z = _mm512_castsi128_si512(words4(p, stride));
    z = _mm512_inserti32x4(z, words4(p + 4 * stride, stride), 1);
    z = _mm512_inserti32x4(z, words4(p + 8 * stride, stride), 2);
    return _mm512_inserti32x4(z, words4(p + 12 * stride, stride), 3);
}
/* One 16-bit word of each of 16 rows. */
INLINE __m128i halves8(const uint8_t *p, size_t stride) {
    int16_t h[8];
    for (size_t i = 0; i < 8; i++) memcpy(&h[i], p + i * stride, 2);
    __m128i z = _mm_cvtsi32_si128((uint16_t)h[0]);
    z = _mm_insert_epi16(z, h[1], 1);
    z = _mm_insert_epi16(z, h[2], 2);
    z = _mm_insert_epi16(z, h[3], 3);
    z = _mm_insert_epi16(z, h[4], 4);
    z = _mm_insert_epi16(z, h[5], 5);
    z = _mm_insert_epi16(z, h[6], 6);
    return _mm_insert_epi16(z, h[7], 7);
}
INLINE __m256i halves16(const uint8_t *p, size_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(halves8(p, stride)), halves8(p + 8 * stride, stride), 1);
}
/* The low or high 16 bits of 32-bit lanes, as f16, to f32. */
INLINE __m512 low_f16(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE __m512 high_f16(__m512i v) { return low_f16(_mm512_srli_epi32(v, 16)); }
INLINE __m512i byte_of(__m512i v, int i) {
    return _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)(8 * i)), _mm512_set1_epi32(255));
}
INLINE __m512i signed_byte_of(__m512i v, int i) { return _mm512_srai_epi32(_mm512_slli_epi32(v, (unsigned)(24 - 8 * i)), 24); }

/* ---- scales of 16 rows over one chunk of n_blocks; `s` points to their 16 columns of a panel_scales ---- */

INLINE __m512 e8m0_half(__m512i e) {
    __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __m512i usual = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(usual, _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), small));
}

INLINE void scales_small(cera_dtype t, const uint8_t *w, size_t stride, int n_blocks, panel_scales *s, int first) {
    for (int b = 0; b < n_blocks; b++) {
        const uint8_t *p = w + b * block_bytes(t);
        if (t == CERA_Q4_1 || t == CERA_Q5_1) {
            __m512i z = words16(p, stride);
            _mm512_store_ps(&s->d[b][first], low_f16(z));
            _mm512_store_ps(&s->m[b][first], high_f16(z));
        } else if (t == CERA_MXFP4) {
            __m512i z = _mm512_cvtepu16_epi32(halves16(p, stride));
            _mm512_store_ps(&s->d[b][first], e8m0_half(_mm512_and_si512(z, _mm512_set1_epi32(255))));
        } else {
            _mm512_store_ps(&s->d[b][first], _mm512_cvtph_ps(halves16(p, stride)));
        }
    }
}

INLINE void scales_q45_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    __m512i z[4], sc[2], mn[2], low6 = splat8(63), low4 = splat8(15), bits45 = splat8(48);
    transpose16(w, stride, 0, z);
    __m512 d = low_f16(z[0]), dmin = _mm512_sub_ps(_mm512_set1_ps(-0.0f), high_f16(z[0]));
    sc[0] = _mm512_and_si512(z[1], low6);
    mn[0] = _mm512_and_si512(z[2], low6);
    sc[1] = _mm512_or_si512(_mm512_and_si512(z[3], low4), _mm512_and_si512(_mm512_srli_epi32(z[1], 2), bits45));
    mn[1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(z[3], 4), low4),
                            _mm512_and_si512(_mm512_srli_epi32(z[2], 2), bits45));
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
        _mm512_store_ps(&s->d[j][first], _mm512_mul_ps(d, _mm512_cvtepi32_ps(byte_of(sc[j / 4], j % 4))));
        _mm512_store_ps(&s->m[j][first], _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(byte_of(mn[j / 4], j % 4))));
    }
}

INLINE void scales_q6_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    __m512i z[4];
    transpose16(w + 192, stride, 0, z);
    __m512 d = _mm512_cvtph_ps(halves16(w + 208, stride));
    for (int i = 0; i < 16; i++) {
        _mm512_store_ps(&s->d[i][first], _mm512_mul_ps(d, _mm512_cvtepi32_ps(signed_byte_of(z[i / 4], i % 4))));
    }
}

INLINE void store_fold(panel_scales *s, int i, int first, __m512i scale) {
    __m512i both = _mm512_mask_mov_epi16(scale, 0xaaaaaaaa, _mm512_slli_epi32(scale, 16));
    _mm512_store_si512(&s->fold[i][first], both);
}

INLINE void scales_q3_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    __m512i z[4], v[4], low4 = splat8(15), bits45 = splat8(48), offset = splat8(32);
    transpose16(w + 94, stride, 2, z); /* 2 bytes before the scales, so that the load ends with the block; turned to the end */
    __m512 d = low_f16(z[3]);
    for (int i = 0; i < 4; i++) {
        __m512i low = i < 2 ? z[i] : _mm512_srli_epi32(z[i - 2], 4);
        __m512i high = i == 0   ? _mm512_slli_epi32(z[2], 4)
                       : i == 1 ? _mm512_slli_epi32(z[2], 2)
                       : i == 2 ? z[2]
                                : _mm512_srli_epi32(z[2], 2);
        v[i] = _mm512_or_si512(_mm512_and_si512(low, low4), _mm512_and_si512(high, bits45));
        v[i] = _mm512_sub_epi8(v[i], offset);
    }
    for (int i = 0; i < 16; i++) store_fold(s, i, first, signed_byte_of(v[i / 4], i % 4));
    for (int j = 0; j < CHUNK_BLOCKS; j++) _mm512_store_ps(&s->d[j][first], d);
}

INLINE void scales_q2_k(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    __m512i z[4], both = words16(w + 80, stride), low4 = _mm512_set1_epi32(15);
    transpose16(w, stride, 0, z);
    __m512 d = low_f16(both), dmin = _mm512_sub_ps(_mm512_set1_ps(-0.0f), high_f16(both));
    for (int i = 0; i < 16; i++) {
        __m512i b = byte_of(z[i / 4], i % 4);
        store_fold(s, i, first, _mm512_and_si512(b, low4));
        _mm512_store_ps(&s->m[i][first], _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(_mm512_srli_epi32(b, 4))));
    }
    for (int j = 0; j < CHUNK_BLOCKS; j++) _mm512_store_ps(&s->d[j][first], d);
}

INLINE void scales_iq4_xs(const uint8_t *w, size_t stride, panel_scales *s, int first) {
    __m512i z[4], low4 = _mm512_set1_epi32(15), high2 = _mm512_set1_epi32(48);
    transpose16(w, stride, 0, z);
    __m512 d = low_f16(z[0]);
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
        __m512i low = _mm512_and_si512(_mm512_srli_epi32(z[1], (unsigned)(4 * j)), low4);
        /* scales_h is the upper half of z[0]: bits 16 + 2j, 17 + 2j to bits 4, 5 */
        __m512i high = _mm512_and_si512(_mm512_srli_epi32(z[0], (unsigned)(12 + 2 * j)), high2);
        __m512i scale = _mm512_sub_epi32(_mm512_or_si512(low, high), _mm512_set1_epi32(32));
        _mm512_store_ps(&s->d[j][first], _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale)));
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
    default: scales_small(t, w, stride, n_blocks, s, first); break;
    }
}

/* ---- raw bytes of one step (24 registers at most), and the bits that a whole chunk shares ---- */

typedef struct raw_step {
    __m512i v[24];
} raw_step;
typedef struct raw_chunk {
    __m512i v[8]; /* q5_k: qh; q3_k: hmask */
} raw_chunk;

INLINE void load_chunk(cera_dtype t, const uint8_t *w, size_t stride, raw_chunk *c) {
    int at = t == CERA_Q5_K ? 16 : 0;
    if (t != CERA_Q5_K && t != CERA_Q3_K) return;
    transpose16(w + at, stride, 0, c->v);
    transpose16(w + at + 16, stride, 0, c->v + 4);
}

/* w: the chunk; first: the step's first sub-block in it. */
INLINE void load_step(cera_dtype t, const uint8_t *w, size_t stride, int first, raw_step *r) {
    const uint8_t *p = is_superblock(t) ? w : w + first * block_bytes(t);
    switch (t) {
    case CERA_Q4_0:
    case CERA_IQ4_NL: transpose16(p + 2, stride, 0, r->v); break;
    case CERA_Q4_1: transpose16(p + 4, stride, 0, r->v); break;
    case CERA_MXFP4: transpose16(p + 1, stride, 0, r->v); break;
    case CERA_IQ4_XS: transpose16(p + 8 + 16 * first, stride, 0, r->v); break;
    case CERA_Q5_0:
        transpose16(p + 6, stride, 0, r->v);
        r->v[4] = words16(p + 2, stride);
        break;
    case CERA_Q5_1:
        transpose16(p + 8, stride, 0, r->v);
        r->v[4] = words16(p + 4, stride);
        break;
    case CERA_Q6_K:
        p += first / 4 * 64; /* ql, then qh of this half */
        for (int i = 0; i < 4; i++) transpose16(p + 16 * i, stride, 0, r->v + 4 * i);
        p += 128 - first / 4 * 32;
        transpose16(p, stride, 0, r->v + 16);
        transpose16(p + 16, stride, 0, r->v + 20);
        break;
    default: /* 32 bytes */
        p += t == CERA_Q8_0   ? 2
             : t == CERA_Q4_K ? 16 + 16 * first
             : t == CERA_Q5_K ? 48 + 16 * first
             : t == CERA_Q3_K ? 32 + 8 * first
                              : 16 + 8 * first;
        transpose16(p, stride, 0, r->v);
        transpose16(p + 16, stride, 0, r->v + 4);
        break;
    }
}

INLINE __m512i shifted(__m512i v, int down) {
    return down >= 0 ? _mm512_srli_epi32(v, (unsigned)down) : _mm512_slli_epi32(v, (unsigned)-down);
}
/* (a & mask_a) | (b & mask_b) */
INLINE __m512i join(__m512i a, int mask_a, __m512i b, int mask_b) {
    return _mm512_or_si512(_mm512_and_si512(a, splat8(mask_a)), _mm512_and_si512(b, splat8(mask_b)));
}

INLINE __m512i value_table(cera_dtype t) {
    __m128i iq4 = _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141, (char)153, (char)166, (char)181,
                                (char)197, (char)217, (char)241);
    __m128i fp4 = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm512_broadcast_i32x4(t == CERA_MXFP4 ? fp4 : iq4);
}

/* Four bits of each row's qh, elements 4i..4i+3, each to bit 4 of its byte: vpermd takes the low four bits as the index. */
INLINE __m512i fifth_bits(__m512i qh, int i) {
    __m512i table =
        _mm512_setr_epi32(0x00000000, 0x00000010, 0x00001000, 0x00001010, 0x00100000, 0x00100010, 0x00101000, 0x00101010,
                          0x10000000, 0x10000010, 0x10001000, 0x10001010, 0x10100000, 0x10100010, 0x10101000, 0x10101010);
    return _mm512_permutexvar_epi32(_mm512_srli_epi32(qh, (unsigned)(4 * i)), table);
}

/* Elements 4i..4i+3 of sub-block j (in the chunk) as bytes; FOLD types before the sub-scale: 0..7 (q3_k), 0..3 (q2_k). */
INLINE __m512i unpack(cera_dtype t, const raw_step *r, const raw_chunk *c, int j, int i) {
    int q = j % 4;
    switch (t) {
    case CERA_Q8_0: return _mm512_xor_si512(r->v[i], splat8(0x80));
    case CERA_Q4_K: return _mm512_and_si512(shifted(r->v[i], j % 2 * 4), splat8(15));
    case CERA_Q5_K: return join(shifted(r->v[i], j % 2 * 4), 15, shifted(c->v[i], j - 4), 16);
    case CERA_Q6_K: return join(shifted(r->v[q % 2 * 8 + i], q / 2 * 4), 15, shifted(r->v[16 + i], 2 * q - 4), 48);
    case CERA_Q3_K: return join(shifted(r->v[i], 2 * q), 3, shifted(c->v[i], j - 2), 4);
    case CERA_Q2_K: return _mm512_and_si512(shifted(r->v[i], 2 * q), splat8(3));
    default: break;
    }
    __m512i nibbles = _mm512_and_si512(shifted(r->v[i % 4], i / 4 * 4), splat8(15));
    if (t == CERA_Q5_0 || t == CERA_Q5_1) return _mm512_or_si512(nibbles, fifth_bits(r->v[4], i));
    if (t == CERA_IQ4_NL || t == CERA_IQ4_XS || t == CERA_MXFP4) return _mm512_shuffle_epi8(value_table(t), nibbles);
    return nibbles;
}

/* The byte times its sub-scale (given in both 16-bit halves), q3_k: (v - 4) * scale + 124, which lies in 0..252: the product of
 * the odd byte fills the high byte alone when the low one is cleared first; sums are modulo 256. q2_k: at most 45, no carry. */
INLINE __m512i fold_scale(cera_dtype t, __m512i v, __m512i scale) {
    if (t == CERA_Q2_K) return _mm512_mullo_epi16(v, scale);
    __m512i even = _mm512_set1_epi16(0x00ff), bias = _mm512_sub_epi16(_mm512_set1_epi16(124), _mm512_slli_epi16(scale, 2));
    __m512i high = _mm512_mullo_epi16(_mm512_andnot_si512(even, v), scale),
            low = _mm512_mullo_epi16(_mm512_and_si512(even, v), scale);
    bias = _mm512_mask_mov_epi8(bias, 0xaaaaaaaaaaaaaaaa, _mm512_slli_epi16(bias, 8));
    return _mm512_add_epi8(_mm512_or_si512(high, _mm512_and_si512(low, even)), bias);
}

#endif
