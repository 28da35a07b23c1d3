/* quant_vec256.h: the vector words that quant_tmpl.h and matmul_tmpl.h are written in, on 256 bits: lanes are 8 rows. The file
 * that includes it sets VEC_DPBUSD: 1 for AVX-VNNI, 0 for plain AVX2, which multiplies by vpmaddubsw. */
#ifndef CERA_KERNELS_X86_QUANT_VEC256_H
#define CERA_KERNELS_X86_QUANT_VEC256_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define VEC_ROWS 8
#define VEC_GROUPS 1
#define VEC_WIDE 4
#define VEC_CHUNK_WORDS 0
typedef __m256i vec;
typedef __m256 fvec;

INLINE vec v_zero(void) { return _mm256_setzero_si256(); }
INLINE vec v_set8(int b) { return _mm256_set1_epi8((char)b); }
INLINE vec v_set16(int h) { return _mm256_set1_epi16((short)h); }
INLINE vec v_set32(int w) { return _mm256_set1_epi32(w); }
INLINE vec v_splat128(__m128i x) { return _mm256_broadcastsi128_si256(x); }
INLINE vec v_and(vec a, vec b) { return _mm256_and_si256(a, b); }
INLINE vec v_andnot(vec a, vec b) { return _mm256_andnot_si256(a, b); }
INLINE vec v_or_and(vec a, vec b, vec mask) { return _mm256_or_si256(a, _mm256_and_si256(b, mask)); }
INLINE vec v_or(vec a, vec b) { return _mm256_or_si256(a, b); }
INLINE vec v_xor(vec a, vec b) { return _mm256_xor_si256(a, b); }
INLINE vec v_srl32(vec a, int n) { return _mm256_srli_epi32(a, n); }
INLINE vec v_sll32(vec a, int n) { return _mm256_slli_epi32(a, n); }
INLINE vec v_sra32(vec a, int n) { return _mm256_srai_epi32(a, n); }
INLINE vec v_sllv32(vec a, vec n) { return _mm256_sllv_epi32(a, n); }
INLINE vec v_sll16(vec a, int n) { return _mm256_slli_epi16(a, n); }
INLINE vec v_add8(vec a, vec b) { return _mm256_add_epi8(a, b); }
INLINE vec v_sub8(vec a, vec b) { return _mm256_sub_epi8(a, b); }
INLINE vec v_add16(vec a, vec b) { return _mm256_add_epi16(a, b); }
INLINE vec v_sub16(vec a, vec b) { return _mm256_sub_epi16(a, b); }
INLINE vec v_add32(vec a, vec b) { return _mm256_add_epi32(a, b); }
INLINE vec v_sub32(vec a, vec b) { return _mm256_sub_epi32(a, b); }
INLINE vec v_mul16(vec a, vec b) { return _mm256_mullo_epi16(a, b); }
INLINE vec v_shuffle8(vec table, vec index) { return _mm256_shuffle_epi8(table, index); }
INLINE vec v_turn2(vec a) { return _mm256_alignr_epi8(a, a, 2); }
INLINE vec v_odd8(vec even, vec odd) { return _mm256_blendv_epi8(even, odd, _mm256_set1_epi16((short)0xff00)); }
INLINE vec v_odd16(vec even, vec odd) { return _mm256_blend_epi16(even, odd, 0xaa); }
INLINE vec v_below2(vec v, vec yes, vec no) { return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(v_set32(2), v)); }
INLINE vec v_lo32(vec a, vec b) { return _mm256_unpacklo_epi32(a, b); }
INLINE vec v_hi32(vec a, vec b) { return _mm256_unpackhi_epi32(a, b); }
INLINE vec v_lo64(vec a, vec b) { return _mm256_unpacklo_epi64(a, b); }
INLINE vec v_hi64(vec a, vec b) { return _mm256_unpackhi_epi64(a, b); }
INLINE vec v_load(const void *p) { return _mm256_load_si256(p); }
INLINE void v_store(void *p, vec v) { _mm256_store_si256(p, v); }

INLINE fvec f_zero(void) { return _mm256_setzero_ps(); }
INLINE fvec f_set(float x) { return _mm256_set1_ps(x); }
INLINE fvec f_load(const float *p) { return _mm256_load_ps(p); }
INLINE void f_store(float *p, fvec v) { _mm256_store_ps(p, v); }
INLINE fvec f_mul(fvec a, fvec b) { return _mm256_mul_ps(a, b); }
INLINE fvec f_neg(fvec a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
INLINE fvec f_fma(fvec a, fvec b, fvec c) { return _mm256_fmadd_ps(a, b, c); }
INLINE fvec f_from(vec v) { return _mm256_cvtepi32_ps(v); }
INLINE fvec f_bits(vec v) { return _mm256_castsi256_ps(v); }
INLINE fvec f_low_f16(vec v) {
    vec low = v_and(v, v_set32(0xffff));
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}

INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }
INLINE vec v_rows_by_4(const uint8_t *p, size_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(p)), load16(p + 4 * stride), 1);
}
INLINE __m128i words4(const uint8_t *p, size_t stride) {
    int32_t w[4];
    for (size_t i = 0; i < 4; i++) memcpy(&w[i], p + i * stride, 4);
    return _mm_insert_epi32(_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(w[0]), w[1], 1), w[2], 2), w[3], 3);
}
/* 4 x 4 words within each 128 bits. */
INLINE void v_transpose(const vec z[4], vec out[4]) {
    vec t0 = v_lo32(z[0], z[1]), t1 = v_hi32(z[0], z[1]), t2 = v_lo32(z[2], z[3]), t3 = v_hi32(z[2], z[3]);
    out[0] = v_lo64(t0, t2);
    out[1] = v_hi64(t0, t2);
    out[2] = v_lo64(t1, t3);
    out[3] = v_hi64(t1, t3);
}
INLINE vec v_words(const uint8_t *p, size_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(words4(p, stride)), words4(p + 4 * stride, stride), 1);
}
INLINE __m128i halves8(const uint8_t *p, size_t stride) {
    int16_t h[8];
    for (size_t i = 0; i < 8; i++) memcpy(&h[i], p + i * stride, 2);
    return _mm_setr_epi16(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]);
}
INLINE vec v_halves(const uint8_t *p, size_t stride) { return _mm256_cvtepu16_epi32(halves8(p, stride)); }
INLINE fvec f_halves(const uint8_t *p, size_t stride) { return _mm256_cvtph_ps(halves8(p, stride)); }

/* Bits 4i..4i+3 of each row's word, each to bit 4 of its byte. */
INLINE vec v_fifth_bits(vec qh, int i) {
    vec spread = v_splat128(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)), bit = v_set32(0x08040201);
    vec nibble = v_and(v_shuffle8(v_srl32(qh, 4 * i), spread), bit);
    return v_and(_mm256_cmpeq_epi8(nibble, bit), v_set8(16));
}

INLINE vec v_madd16(vec a, vec b) { return _mm256_madd_epi16(a, b); }
#if VEC_DPBUSD
#    if defined(__AVX512VNNI__) && defined(__AVX512VL__)
INLINE vec v_dpbusd(vec sum, vec u, vec a) { return _mm256_dpbusd_epi32(sum, u, a); }
#    else
INLINE vec v_dpbusd(vec sum, vec u, vec a) { return _mm256_dpbusd_avx_epi32(sum, u, a); }
#    endif
INLINE vec v_dpbusd4(vec sum, vec u, const int8_t *a) {
    int32_t four;
    memcpy(&four, a, 4);
    return v_dpbusd(sum, u, v_set32(four));
}
#else
INLINE vec v_maddubs(vec u, vec a) { return _mm256_maddubs_epi16(u, a); }
INLINE vec v_abs8(vec a) { return _mm256_abs_epi8(a); }
INLINE vec v_sign8(vec a, vec sign) { return _mm256_sign_epi8(a, sign); }
#endif

#endif
