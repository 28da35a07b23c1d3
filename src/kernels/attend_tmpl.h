/* attend_tmpl.h: the products of attention, scores and values, as register tiles; included once a tier, after the header that
 * defines the tier's vector (x86/attend_vec_avx512.h, ...). Softmax and merge are in nn_tmpl.h.
 *
 * Numbers. As ref/attend.c: a chain of fma a score (d ascending) and an output (keys ascending); 16-bit types in pairs, the
 * even elements in one chain and the odd ones in another, added at the end. Even and odd chains lie side by side in the lanes
 * of a register, because that is how the pages hold them: nothing is shuffled before the end. In DOT mode a lane's pair is one
 * instruction and one chain. The shape of a tile decides only which chains run beside each other, never the order within one,
 * so a result depends neither on n_q nor on [first, end).
 *
 * Tiles. nq queries times nb blocks of 16 keys (scores) or nv vectors of outputs (values), ATTEND_ACC accumulators at most:
 * each vector of K or V is loaded once for nq queries, each query's element is broadcast once for the whole tile. */
#include <stdbool.h>
#include <string.h>
#include "kernels/nn_int.h"

/* Accumulators live in registers only where every index is a constant: a tile's shape is a constant of an inlined function and
 * its loops are unrolled. clang does that by itself, and takes a request it cannot meet (in a shape that a tier does not have)
 * for an error. With a sanitizer's checks in every load the unrolled tiles take minutes to compile: then shapes are plain
 * arguments. */
#ifdef __has_feature
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define ATTEND_SANITIZED
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ATTEND_SANITIZED)
#    define INLINE static __attribute__((noinline))
#    define UNROLL
#elif defined(__clang__)
#    define INLINE static inline __attribute__((always_inline))
#    define UNROLL
#else
#    define INLINE static inline __attribute__((always_inline))
#    define UNROLL _Pragma("GCC unroll 32")
#endif

enum {
    PAGE = CERA_PAGE_TOKENS,
    SEGMENT = CERA_SEGMENT_TOKENS,
    BLOCK = CERA_KEY_BLOCK,
    LINE = 64,                /* bytes of one element, or one pair, of 16 keys */
    MAX_LINE = 2 * BLOCK / VF /* vectors that hold a line widened to f32 */
};

/* How a page is multiplied: f32 as it is; 16-bit types widened to f32; DOT: bf16 pairs by the tier's own product. */
typedef enum mode { F32, F16, BF16, DOT } mode;

/* F16 and BF16 have two lanes, the even and the odd chain, a result. */
INLINE int lanes_of(mode m) { return m == F16 || m == BF16 ? 2 : 1; }
INLINE int pairs_of(mode m) { return m == F32 ? 1 : 2; }

/* VF elements of a page (pairs in DOT mode) at p; or the first n of them, the others 0. */
INLINE vf load_page(mode m, const char *p) { return m == F16 ? vf_load_f16(p) : m == BF16 ? vf_load_bf16(p) : vf_load(p); }
INLINE vf load_page_n(mode m, const char *p, int n) {
    return m == F16 ? vf_load_f16_n(p, n) : m == BF16 ? vf_load_bf16_n(p, n) : vf_load_n(p, n);
}
/* The multiplier of a step: one element (a pair in DOT mode) in all lanes, or even and odd alternating. */
INLINE vf spread(mode m, const float *p) { return lanes_of(m) == 2 ? vf_spread_pair(p) : vf_spread(p); }
#ifdef ATTEND_DOT
INLINE vf multiply_add(mode m, vf a, vf b, vf c) { return m == DOT ? vf_dot(a, b, c) : vf_fma(a, b, c); }
#else
INLINE vf multiply_add(mode m, vf a, vf b, vf c) { return (void)m, vf_fma(a, b, c); }
#endif

/* x rounded to bf16: as f32 again (BF16), or packed in pairs (DOT), which then are the "floats" of the tile loops. */
INLINE void round_row(mode m, const float *x, int n, float *out) {
#ifdef ATTEND_DOT
    if (m == DOT) {
        vf_pack_bf16(x, n, out);
        return;
    }
#endif
    (void)m;
    for (int i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        uint32_t r = (u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1);
        r &= 0xffff0000;
        memcpy(out + i, &r, sizeof r);
    }
}

/* Rows of multipliers: the caller's, or rounded copies of them. */
typedef struct rows {
    const float *x;
    size_t stride;
} rows;

INLINE rows make_rows(mode m, const float *x, size_t stride, int nq, int n, float *copy) {
    if (m != BF16 && m != DOT) return (rows){x, stride};
    size_t width = (size_t)(m == DOT ? (n + 1) / 2 : n);
    for (int i = 0; i < nq; i++) round_row(m, x + (size_t)i * stride, n, copy + (size_t)i * width);
    return (rows){copy, width};
}

/* Vector v of step s of the blocks at k; nv vectors are a line. */
INLINE vf key_vector(mode m, const char *const *k, int s, int v) {
    const int nv = BLOCK * lanes_of(m) / VF;
    return load_page(m, k[v / nv] + (size_t)s * LINE + (size_t)(v % nv * (LINE / nv)));
}

INLINE vf multiplier(mode m, const rows *q, int s, int i) {
    return spread(m, q->x + (size_t)i * q->stride + (size_t)(s * lanes_of(m)));
}

/* One step: n vectors of keys times nq multipliers. Whichever there are fewer of are held in registers, the others stream. */
INLINE void scores_step(mode m, int nq, int n, const rows *q, const char *const *k, int s, vf (*acc)[4 * MAX_LINE]) {
    vf held[4 * MAX_LINE];
    if (nq >= n) {
        UNROLL for (int v = 0; v < n; v++) held[v] = key_vector(m, k, s, v);
        UNROLL for (int i = 0; i < nq; i++) {
            const vf y = multiplier(m, q, s, i);
            UNROLL for (int v = 0; v < n; v++) acc[i][v] = multiply_add(m, held[v], y, acc[i][v]);
        }
    } else {
        UNROLL for (int i = 0; i < nq; i++) held[i] = multiplier(m, q, s, i);
        UNROLL for (int v = 0; v < n; v++) {
            const vf x = key_vector(m, k, s, v);
            UNROLL for (int i = 0; i < nq; i++) acc[i][v] = multiply_add(m, x, held[i], acc[i][v]);
        }
    }
}

/* nq queries times nb blocks of 16 keys at k[0..nb), `steps` elements or pairs of them. Writes the first n_blocks of nb.
 * Meanwhile the lines of the next blocks are asked for. */
INLINE void scores_tile(mode m, int nq, int nb, const rows *q, const char *const *k, const char *const *next, int steps,
                        float *out, int n_blocks) {
    const int nv = BLOCK * lanes_of(m) / VF;
    vf acc[ATTEND_NQ][4 * MAX_LINE];
    UNROLL for (int i = 0; i < nq; i++) { UNROLL for (int v = 0; v < nb * nv; v++) acc[i][v] = vf_zero(); }
    for (int s = 0; s < steps; s++) {
        scores_step(m, nq, nb * nv, q, k, s, acc);
        if (next) { UNROLL for (int b = 0; b < nb; b++) vf_prefetch(next[b] + (size_t)s * LINE); }
    }
    UNROLL for (int b = 0; b < nb; b++) {
        if (b == n_blocks) return;
        UNROLL for (int i = 0; i < nq; i++) {
            float *to = out + (size_t)i * SEGMENT + (size_t)b * BLOCK;
            UNROLL for (int v = 0; v < BLOCK / VF; v++) {
                const vf *a = &acc[i][b * nv + v * lanes_of(m)];
                vf_store(to + v * VF, lanes_of(m) == 2 ? vf_pair_sums(a[0], a[1]) : a[0]);
            }
        }
    }
}

/* Where the nb blocks from b on lie; where there are fewer, the last is repeated. */
INLINE void block_group(const char **k, int nb, const void *const *pages, size_t block_bytes, int b, int to) {
    UNROLL for (int j = 0; j < nb; j++) {
        int at = b + j < to ? b + j : to - 1;
        k[j] = (const char *)pages[at / (PAGE / BLOCK)] + (size_t)(at % (PAGE / BLOCK)) * block_bytes;
    }
}

/* Blocks of keys [from, to) for nq queries, nb at a time. fetch: this is the call's first pass over the keys, which may lie in
 * memory far away: the first blocks are asked for at once, later ones while their predecessors are multiplied. */
INLINE void scores_rows(mode m, int nq, rows q, int d, const void *const *pages, int from, int to, float *out, bool fetch) {
    const int fit = ATTEND_ACC / (nq * (BLOCK * lanes_of(m) / VF)),
              nb = fit >= 4   ? 4
                   : fit >= 2 ? 2
                              : 1,
              steps = d / pairs_of(m);
    const size_t block_bytes = (size_t)BLOCK * (size_t)d * (m == F32 ? 4 : 2);
    const char *k[4], *next[4];
    block_group(k, nb, pages, block_bytes, from, to);
    for (int s = 0; fetch && s < steps; s++) { UNROLL for (int b = 0; b < nb; b++) vf_prefetch(k[b] + (size_t)s * LINE); }
    for (int b = from; b < to; b += nb) {
        const bool ahead = fetch && b + nb < to;
        block_group(next, nb, pages, block_bytes, b + nb, to);
        scores_tile(m, nq, nb, &q, k, ahead ? next : NULL, steps, out + (size_t)b * BLOCK, to - b);
        UNROLL for (int j = 0; j < nb; j++) k[j] = next[j];
    }
}

INLINE void scores(mode m, const float *q, size_t stride, int n_q, int d, const void *const *pages, int first, int end,
                   float *out, float *copy) {
    const int from = first / BLOCK, to = (end + BLOCK - 1) / BLOCK, fit = ATTEND_ACC / (BLOCK * lanes_of(m) / VF);
    const int most = fit < ATTEND_NQ ? fit : ATTEND_NQ;
    for (int i = 0; i < n_q; i += most) {
        const int nq = n_q - i < most ? n_q - i : most;
        const rows r = make_rows(m, q + (size_t)i * stride, stride, nq, d, copy);
        float *to_row = out + (size_t)i * SEGMENT;
        if (nq == 1)
            scores_rows(m, 1, r, d, pages, from, to, to_row, i == 0);
        else if (nq == 2)
            scores_rows(m, 2, r, d, pages, from, to, to_row, i == 0);
        else if (nq == 3)
            scores_rows(m, 3, r, d, pages, from, to, to_row, i == 0);
        else if (most >= 4 && nq == 4)
            scores_rows(m, 4, r, d, pages, from, to, to_row, i == 0);
        else if (most >= 5 && nq == 5)
            scores_rows(m, 5, r, d, pages, from, to, to_row, i == 0);
        else if (most >= 6 && nq == 6)
            scores_rows(m, 6, r, d, pages, from, to, to_row, i == 0);
        else if (most >= 7 && nq == 7)
            scores_rows(m, 7, r, d, pages, from, to, to_row, i == 0);
        else if (most >= 8)
            scores_rows(m, 8, r, d, pages, from, to, to_row, i == 0);
    }
}

typedef struct span {
    const void *const *pages;
    int first, end; /* steps: keys, or pairs of keys */
    int d;
} span;

/* nq rows of probabilities times nv vectors of outputs from `at` on; live > 0: one vector of which only `live` elements exist.
 * fetch: while a page is multiplied the same columns of the next one are asked for. */
INLINE void values_tile(mode m, int nq, int nv, int live, rows p, const span *s, int at, float *o, size_t o_stride,
                        bool fetch) {
    const int lanes = lanes_of(m), per_page = PAGE / pairs_of(m);
    const size_t row_bytes = (size_t)s->d * 4;
    vf acc[ATTEND_NQ][4];
    UNROLL for (int i = 0; i < nq; i++) { UNROLL for (int v = 0; v < nv; v++) acc[i][v] = vf_zero(); }
    for (int step = s->first; step < s->end;) {
        const int page = step / per_page, stop = (page + 1) * per_page < s->end ? (page + 1) * per_page : s->end;
        const char *row = (const char *)s->pages[page] + (size_t)(step - page * per_page) * row_bytes + (size_t)at * 4;
        const char *next = fetch && stop < s->end ? (const char *)s->pages[page + 1] + (size_t)at * 4 : NULL;
        for (; step < stop; step++, row += row_bytes) {
            vf x[4];
            UNROLL for (int v = 0; v < nv; v++) x[v] =
                live ? load_page_n(m, row, live) : load_page(m, row + v * (VF * 4 / lanes));
            UNROLL for (int i = 0; i < nq; i++) {
                vf y = spread(m, p.x + (size_t)i * p.stride + (size_t)(step * lanes));
                UNROLL for (int v = 0; v < nv; v++) acc[i][v] = multiply_add(m, x[v], y, acc[i][v]);
            }
            if (!next) continue;
            UNROLL for (int byte = 0; byte < nv * (VF * 4 / lanes); byte += LINE) vf_prefetch(next + byte);
            next += row_bytes;
        }
    }
    UNROLL for (int i = 0; i < nq; i++) {
        float *to = o + (size_t)i * o_stride + at;
        UNROLL for (int v = 0; v < nv; v += lanes) {
            vf sum = lanes == 2 ? vf_pair_sums(acc[i][v], nv > 1 ? acc[i][v + 1] : vf_zero()) : acc[i][v];
            sum = vf_add(sum, vf_zero()); /* -0 becomes 0 */
            if (live)
                vf_store_n(to, sum, live / lanes);
            else
                vf_store(to + v / lanes * VF, sum);
        }
    }
}

/* All outputs of nq rows: tiles of nv vectors, then of the fewest whole ones, then what is left. */
INLINE void values_rows(mode m, int nq, rows p, const span *s, float *o, size_t o_stride, bool fetch) {
    const int lanes = lanes_of(m), width = VF / lanes, nv = ATTEND_ACC / nq >= 4 ? 4 : 2, d = s->d;
    int at = 0;
    for (; at + nv * width <= d; at += nv * width) values_tile(m, nq, nv, 0, p, s, at, o, o_stride, fetch);
    for (; at + VF <= d; at += VF) values_tile(m, nq, lanes, 0, p, s, at, o, o_stride, fetch);
    for (; at < d; at += width) values_tile(m, nq, 1, (d - at < width ? d - at : width) * lanes, p, s, at, o, o_stride, false);
}

INLINE void values(mode m, const float *p, int n_q, int d, const void *const *pages, int first, int end, float *o,
                   size_t o_stride, float *copy) {
    const int pairs = pairs_of(m);
    const span s = {pages, first / pairs, (end + pairs - 1) / pairs, d};
    for (int i = 0; i < n_q; i += ATTEND_NQ) {
        const int nq = n_q - i < ATTEND_NQ ? n_q - i : ATTEND_NQ;
        const rows r = make_rows(m, p + (size_t)i * SEGMENT, SEGMENT, nq, SEGMENT, copy);
        float *to = o + (size_t)i * o_stride;
        if (nq == 1)
            values_rows(m, 1, r, &s, to, o_stride, i == 0);
        else if (nq == 2)
            values_rows(m, 2, r, &s, to, o_stride, i == 0);
        else if (nq == 3)
            values_rows(m, 3, r, &s, to, o_stride, i == 0);
        else if (nq == 4)
            values_rows(m, 4, r, &s, to, o_stride, i == 0);
        else if (nq == 5)
            values_rows(m, 5, r, &s, to, o_stride, i == 0);
        else if (nq == 6)
            values_rows(m, 6, r, &s, to, o_stride, i == 0);
        else if (ATTEND_NQ >= 7 && nq == 7)
            values_rows(m, 7, r, &s, to, o_stride, i == 0);
        else if (ATTEND_NQ >= 8)
            values_rows(m, 8, r, &s, to, o_stride, i == 0);
    }
}

#ifdef ATTEND_DOT

static void ATTEND_TIER(attend_scores_bf16)(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4],
                                            int first, int end, float *out) {
    float copy[ATTEND_NQ * CERA_MAX_HEAD_DIM / 2];
    scores(DOT, q, q_stride, n_q, d_k, k_pages, first, end, out, copy);
}

static void ATTEND_TIER(attend_values_bf16)(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end,
                                            float *o, size_t o_stride) {
    float copy[ATTEND_NQ * SEGMENT / 2];
    values(DOT, p, n_q, d_v, v_pages, first, end, o, o_stride, copy);
}

void ATTEND_TIER(cera_kernels_attend)(cera_kernels *k) {
    k->attend_scores_bf16 = ATTEND_TIER(attend_scores_bf16);
    k->attend_values_bf16 = ATTEND_TIER(attend_values_bf16);
}

#else

static void ATTEND_TIER(attend_scores_f32)(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4],
                                           int first, int end, float *out) {
    scores(F32, q, q_stride, n_q, d_k, k_pages, first, end, out, NULL);
}

static void ATTEND_TIER(attend_scores_f16)(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4],
                                           int first, int end, float *out) {
    scores(F16, q, q_stride, n_q, d_k, k_pages, first, end, out, NULL);
}

static void ATTEND_TIER(attend_scores_bf16)(const float *q, size_t q_stride, int n_q, int d_k, const void *const k_pages[4],
                                            int first, int end, float *out) {
    float copy[ATTEND_NQ * CERA_MAX_HEAD_DIM];
    scores(BF16, q, q_stride, n_q, d_k, k_pages, first, end, out, copy);
}

static void ATTEND_TIER(attend_values_f32)(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end,
                                           float *o, size_t o_stride) {
    values(F32, p, n_q, d_v, v_pages, first, end, o, o_stride, NULL);
}

static void ATTEND_TIER(attend_values_f16)(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end,
                                           float *o, size_t o_stride) {
    values(F16, p, n_q, d_v, v_pages, first, end, o, o_stride, NULL);
}

static void ATTEND_TIER(attend_values_bf16)(const float *p, int n_q, int d_v, const void *const v_pages[4], int first, int end,
                                            float *o, size_t o_stride) {
    float copy[ATTEND_NQ * SEGMENT];
    values(BF16, p, n_q, d_v, v_pages, first, end, o, o_stride, copy);
}

void ATTEND_TIER(cera_kernels_attend)(cera_kernels *k) {
    k->attend_scores_f32 = ATTEND_TIER(attend_scores_f32);
    k->attend_scores_f16 = ATTEND_TIER(attend_scores_f16);
    k->attend_scores_bf16 = ATTEND_TIER(attend_scores_bf16);
    k->attend_values_f32 = ATTEND_TIER(attend_values_f32);
    k->attend_values_f16 = ATTEND_TIER(attend_values_f16);
    k->attend_values_bf16 = ATTEND_TIER(attend_values_bf16);
}

#endif
