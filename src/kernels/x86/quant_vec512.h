/* quant_vec512.h: the vector words that quant_tmpl.h and matmul_tmpl.h are written in, on 512 bits: lanes are 16 rows. */
#ifndef CERA_KERNELS_X86_QUANT_VEC512_H
#define CERA_KERNELS_X86_QUANT_VEC512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define VEC_ROWS 16
#define VEC_GROUPS 2 /* groups of VEC_ROWS rows whose weights fit the registers at once */
#define VEC_WIDE 4   /* columns at once */
typedef __m512i vec;
typedef __m512 fvec;

INLINE vec v_zero(void) { return _mm512_setzero_si512(); }
INLINE vec v_set8(int b) { return _mm512_set1_epi8((char)b); }
INLINE vec v_set16(int h) { return _mm512_set1_epi16((short)h); }
INLINE vec v_set32(int w) { return _mm512_set1_epi32(w); }
INLINE vec v_splat128(__m128i x) { return _mm512_broadcast_i32x4(x); }
INLINE vec v_and(vec a, vec b) { return _mm512_and_si512(a, b); }
INLINE vec v_andnot(vec a, vec b) { return _mm512_andnot_si512(a, b); }
INLINE vec v_or_and(vec a, vec b, vec mask) { return _mm512_ternarylogic_epi32(a, b, mask, 0xf8); } /* a | (b & mask) */
INLINE vec v_or(vec a, vec b) { return _mm512_or_si512(a, b); }
INLINE vec v_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }
INLINE vec v_srl32(vec a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
INLINE vec v_sll32(vec a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
INLINE vec v_sra32(vec a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
INLINE vec v_sllv32(vec a, vec n) { return _mm512_sllv_epi32(a, n); }
INLINE vec v_sll16(vec a, int n) { return _mm512_slli_epi16(a, (unsigned)n); }
INLINE vec v_add8(vec a, vec b) { return _mm512_add_epi8(a, b); }
INLINE vec v_sub8(vec a, vec b) { return _mm512_sub_epi8(a, b); }
INLINE vec v_sub16(vec a, vec b) { return _mm512_sub_epi16(a, b); }
INLINE vec v_add32(vec a, vec b) { return _mm512_add_epi32(a, b); }
INLINE vec v_sub32(vec a, vec b) { return _mm512_sub_epi32(a, b); }
INLINE vec v_mul16(vec a, vec b) { return _mm512_mullo_epi16(a, b); }
INLINE vec v_shuffle8(vec table, vec index) { return _mm512_shuffle_epi8(table, index); }
INLINE vec v_turn2(vec a) { return _mm512_alignr_epi8(a, a, 2); } /* each 16 bytes rotated down by 2 */
INLINE vec v_odd8(vec even, vec odd) { return _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaa, odd); }
INLINE vec v_odd16(vec even, vec odd) { return _mm512_mask_mov_epi16(even, 0xaaaaaaaa, odd); }
INLINE vec v_below2(vec v, vec yes, vec no) { return _mm512_mask_mov_epi32(no, _mm512_cmplt_epu32_mask(v, v_set32(2)), yes); }
INLINE vec v_lo32(vec a, vec b) { return _mm512_unpacklo_epi32(a, b); }
INLINE vec v_hi32(vec a, vec b) { return _mm512_unpackhi_epi32(a, b); }
INLINE vec v_lo64(vec a, vec b) { return _mm512_unpacklo_epi64(a, b); }
INLINE vec v_hi64(vec a, vec b) { return _mm512_unpackhi_epi64(a, b); }
INLINE vec v_load(const void *p) { return _mm512_load_si512(p); }
INLINE void v_store(void *p, vec v) { _mm512_store_si512(p, v); }

INLINE fvec f_zero(void) { return _mm512_setzero_ps(); }
INLINE fvec f_set(float x) { return _mm512_set1_ps(x); }
INLINE fvec f_load(const float *p) { return _mm512_load_ps(p); }
INLINE void f_store(float *p, fvec v) { _mm512_store_ps(p, v); }
INLINE fvec f_mul(fvec a, fvec b) { return _mm512_mul_ps(a, b); }
INLINE fvec f_neg(fvec a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
INLINE fvec f_fma(fvec a, fvec b, fvec c) { return _mm512_fmadd_ps(a, b, c); }
INLINE fvec f_from(vec v) { return _mm512_cvtepi32_ps(v); }
INLINE fvec f_bits(vec v) { return _mm512_castsi512_ps(v); }
/* The low 16 bits of 32-bit lanes, as f16, to f32. */
INLINE fvec f_low_f16(vec v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }

INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }
/* 16 bytes of rows 0, 4, 8, 12 from p on. */
INLINE vec v_rows_by_4(const uint8_t *p, size_t stride) {
    size_t by4 = 4 * stride, by12 = 12 * stride;
    vec z = _mm512_castsi128_si512(load16(p));
    z = _mm512_inserti32x4(z, load16(p + by4), 1);
    z = _mm512_inserti32x4(z, load16(p + 2 * by4), 2);
    return _mm512_inserti32x4(z, load16(p + by12), 3);
}
INLINE __m128i words4(const uint8_t *p, size_t stride) {
    int32_t w[4];
    for (size_t i = 0; i < 4; i++) memcpy(&w[i], p + i * stride, 4);
    return _mm_insert_epi32(_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(w[0]), w[1], 1), w[2], 2), w[3], 3);
}
/* 4 x 4 words within each 128 bits: 16 bytes of rows i, 4 + i, 8 + i, 12 + i in z[i] to [rows][4 bytes] in out. */
INLINE void v_transpose(const vec z[4], vec out[4]) {
    vec t0 = v_lo32(z[0], z[1]), t1 = v_hi32(z[0], z[1]), t2 = v_lo32(z[2], z[3]), t3 = v_hi32(z[2], z[3]);
    out[0] = v_lo64(t0, t2);
    out[1] = v_hi64(t0, t2);
    out[2] = v_lo64(t1, t3);
    out[3] = v_hi64(t1, t3);
}
/* One 32-bit word of each row. */
INLINE vec v_words(const uint8_t *p, size_t stride) {
    vec z = _mm512_castsi128_si512(words4(p, stride));
    z = _mm512_inserti32x4(z, words4(p + 4 * stride, stride), 1);
    z = _mm512_inserti32x4(z, words4(p + 8 * stride, stride), 2);
    return _mm512_inserti32x4(z, words4(p + 12 * stride, stride), 3);
}
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
/* One 16-bit word of each row: zero-extended, or as f16 to f32. */
INLINE vec v_halves(const uint8_t *p, size_t stride) { return _mm512_cvtepu16_epi32(halves16(p, stride)); }
INLINE fvec f_halves(const uint8_t *p, size_t stride) { return _mm512_cvtph_ps(halves16(p, stride)); }

/* One 16-bit or 32-bit word of each of 8 blocks of `size` <= 20 bytes, for all rows: the words of block j are at w + j * size.
 * Per row two loads of 64 bytes within the 8 blocks, each permuted into the row's place; then a transposition. Inserting the
 * words one by one costs 70 instructions a block, this about 10. (Larger blocks would need four loads a row, which lost.) */
enum { PIECE_WORDS = 4 }; /* words that one load serves */
/* Where the load that holds word j of the blocks begins. */
INLINE int piece_begin(int size, int j) { return j / PIECE_WORDS * PIECE_WORDS * size; }
/* Word j's place in its load, in 16-bit words. */
INLINE short piece_index(int size, int at, int j) { return (short)((j * size + at - piece_begin(size, j)) >> 1); }
INLINE vec v_rows_permuted(const uint8_t *w, size_t stride, int size, int first, int last, int words_each, vec index) {
    vec z = v_zero();
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; lane++) {
        const uint8_t *row = w + (size_t)(4 * lane) * stride;
#pragma GCC unroll 4
        for (int j = first; j < last; j += PIECE_WORDS) {
            __mmask32 mask = (__mmask32)(((1u << PIECE_WORDS * words_each) - 1) << (8 * lane + (j - first) * words_each));
            z = _mm512_mask_permutexvar_epi16(z, mask, index, _mm512_loadu_si512(row + piece_begin(size, j)));
        }
    }
    return z;
}
/* out[j]: halves of block j, rows 0..15. */
INLINE void v_chunk_halves(const uint8_t *w, size_t stride, int size, __m256i out[8]) {
    vec z[4], pairs[4], order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    vec index = v_splat128(_mm_setr_epi16(piece_index(size, 0, 0), piece_index(size, 0, 1), piece_index(size, 0, 2),
                                          piece_index(size, 0, 3), piece_index(size, 0, 4), piece_index(size, 0, 5),
                                          piece_index(size, 0, 6), piece_index(size, 0, 7)));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) z[i] = v_rows_permuted(w + (size_t)i * stride, stride, size, 0, 8, 1, index);
    vec lo01 = _mm512_unpacklo_epi16(z[0], z[1]), hi01 = _mm512_unpackhi_epi16(z[0], z[1]);
    vec lo23 = _mm512_unpacklo_epi16(z[2], z[3]), hi23 = _mm512_unpackhi_epi16(z[2], z[3]);
    pairs[0] = v_lo32(lo01, lo23);
    pairs[1] = v_hi32(lo01, lo23);
    pairs[2] = v_lo32(hi01, hi23);
    pairs[3] = v_hi32(hi01, hi23);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        vec both = _mm512_permutexvar_epi64(order, pairs[j]);
        out[2 * j] = _mm512_castsi512_si256(both);
        out[2 * j + 1] = _mm512_extracti64x4_epi64(both, 1);
    }
}
/* out[j]: the 32-bit word at byte `at` (even) of block j, rows 0..15. */
INLINE void v_chunk_words(const uint8_t *w, size_t stride, int size, int at, vec out[8]) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        short a = piece_index(size, at, 4 * half), b = piece_index(size, at, 4 * half + 1),
              c = piece_index(size, at, 4 * half + 2), d = piece_index(size, at, 4 * half + 3);
        vec z[4],
            index = v_splat128(_mm_setr_epi16(a, (short)(a + 1), b, (short)(b + 1), c, (short)(c + 1), d, (short)(d + 1)));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            z[i] = v_rows_permuted(w + (size_t)i * stride, stride, size, 4 * half, 4 * half + 4, 2, index);
        v_transpose(z, out + 4 * half);
    }
}

/* Bits 4i..4i+3 of each row's word, each to bit 4 of its byte: vpermd takes the low four bits as the index. */
INLINE vec v_fifth_bits(vec qh, int i) {
    vec table =
        _mm512_setr_epi32(0x00000000, 0x00000010, 0x00001000, 0x00001010, 0x00100000, 0x00100010, 0x00101000, 0x00101010,
                          0x10000000, 0x10000010, 0x10001000, 0x10001010, 0x10100000, 0x10100010, 0x10101000, 0x10101010);
    return _mm512_permutexvar_epi32(v_srl32(qh, 4 * i), table);
}

#define VEC_DPBUSD 1
#define VEC_CHUNK_WORDS 1 /* has v_chunk_halves and v_chunk_words */
INLINE vec v_dpbusd(vec sum, vec u, vec a) { return _mm512_dpbusd_epi32(sum, u, a); }
/* The activations' four bytes straight from memory: one instruction, where compilers load and broadcast first. */
INLINE vec v_dpbusd4(vec sum, vec u, const int8_t *a) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(u), "m"(*(const struct four { int8_t b[4]; } *)a));
    return sum;
}
INLINE vec v_madd16(vec a, vec b) { return _mm512_madd_epi16(a, b); }

#endif
