/* matmul_float_tmpl.h: F32, F16 and BF16 weights, 32 rows x n columns; included once a tier by a file that defines the 16
 * lanes: lanes, LANES_K (elements of k one multiply_add takes: 16, or 32 for a bf16 dot product), load_weights(t, p),
 * load_acts(t, p): LANES_K elements; lanes_zero(), lanes_hold(v) (v itself, not to be loaded again), multiply_add(w, x, acc),
 * tree_sum(acc) tree_sum16(acc, step, out): 16 of them, acc[0], acc[step], ..., to out[0..15] ONE_ROWS, TILE_COLS, K_CHUNK (a
 * multiple of LANES_K), and TILES(X): X(columns, rows) for each tile of accumulators that the registers hold, widest first, the
 * last X(1, .) Owns the loops; the order of a sum is that of ref/matmul.c: lane l takes k = l mod 16 ascending, then one tree.
 *
 * A tile of accumulators is kept in registers along K_CHUNK elements, spilled to a buffer in L1 and taken up again, so that the
 * activations of its columns stay in L1 while the rows of the panel pass, whatever k is. (Copying them side by side first,
 * against columns that fall into the same sets of L1, cost 18 % more than it brought: the copy waits for L2, the products do
 * not.) */
#include <string.h>
#include "kernels/ref/matmul_ref.h"

#ifndef INLINE
#    define INLINE static inline __attribute__((always_inline))
#endif

enum { MAX_ROWS = 8, MAX_TILE = 24 };

INLINE size_t weight_size(cera_dtype t) { return t == CERA_F32 ? 4 : 2; }
INLINE size_t acts_size(cera_dtype t) { return t == CERA_BF16 ? 2 : 4; }
INLINE const uint8_t *acts_column(cera_dtype t, const cera_acts *x, int column) {
    return t == CERA_BF16 ? (const uint8_t *)(x->bf16 + (size_t)column * (size_t)x->k)
                          : (const uint8_t *)(x->f32 + (size_t)column * x->f32_stride);
}

INLINE size_t acts_stride(cera_dtype t, const cera_acts *x) { return t == CERA_BF16 ? (size_t)x->k * 2 : x->f32_stride * 4; }

/* acc[r * cols + c] += w[r][k] * x[c][k] for n_steps times LANES_K elements; columns are `stride` bytes apart. next: as many
 * bytes from there on are asked for meanwhile, or NULL. */
INLINE void tile_steps(cera_dtype t, int cols, int rows, const uint8_t *const *w, const uint8_t *x, size_t stride, int n_steps,
                       const uint8_t *next, lanes *acc) {
    const uint8_t *base[(TILE_COLS + 2) / 3];
    for (int i = 0; i < (cols + 2) / 3; i++) base[i] = x + (size_t)(3 * i) * stride;
    for (int i = 0; i < n_steps; i++) {
        lanes weights[MAX_ROWS];
        /* Opaque, or the compiler keeps a pointer a column and spills them: a base serves three by addressing. */
        __asm__ volatile("" : "+r"(stride));
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) weights[r] = load_weights(t, w[r] + (size_t)i * LANES_K * weight_size(t));
        size_t bytes = (size_t)rows * LANES_K * weight_size(t);
        for (size_t line = 0; next && line < bytes; line += 64) __builtin_prefetch(next + (size_t)i * bytes + line);
#pragma GCC unroll 16
        for (int c = 0; c < cols; c++) {
            lanes a = lanes_hold(load_acts(t, base[c / 3] + (size_t)(c % 3) * stride));
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) acc[r * cols + c] = multiply_add(weights[r], a, acc[r * cols + c]);
        }
#pragma GCC unroll 8
        for (int c = 0; c < (cols + 2) / 3; c++) base[c] += LANES_K * acts_size(t);
    }
}

/* The last `left` < LANES_K elements, filled up with zeros. */
INLINE void tail_step(cera_dtype t, int cols, int rows, const uint8_t *const *w, const uint8_t *x, size_t stride, int left,
                      lanes *acc) {
    uint8_t wide_w[MAX_ROWS][4 * LANES_K], wide_x[TILE_COLS][4 * LANES_K];
    const uint8_t *pw[MAX_ROWS];
    memset(wide_w, 0, sizeof wide_w);
    memset(wide_x, 0, sizeof wide_x);
    for (int r = 0; r < rows; r++) pw[r] = memcpy(wide_w[r], w[r], (size_t)left * weight_size(t));
    for (int c = 0; c < cols; c++) memcpy(wide_x[c], x + (size_t)c * stride, (size_t)left * acts_size(t));
    tile_steps(t, cols, rows, pw, wide_x[0], sizeof wide_x[0], 1, NULL, acc);
}

/* `rows` rows from row[0] on over elements [begin, begin + n). */
INLINE void tile_chunk(cera_dtype t, int cols, int rows, const uint8_t *const *row, const uint8_t *x, size_t stride, int begin,
                       int n, const uint8_t *next, lanes *acc) {
    const uint8_t *w[MAX_ROWS], *a = x + (size_t)begin * acts_size(t);
    int whole = n / LANES_K;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) w[i] = row[i] + (size_t)begin * weight_size(t);
    tile_steps(t, cols, rows, w, a, stride, whole, next, acc);
    if (n % LANES_K == 0) return;
    for (int i = 0; i < rows; i++) w[i] += (size_t)whole * LANES_K * weight_size(t);
    tail_step(t, cols, rows, w, a + (size_t)whole * LANES_K * acts_size(t), stride, n % LANES_K, acc);
}

/* All rows of the panel for `cols` columns, `rows` at a time. row: 32 pointers, those past the last row repeat it. next: the
 * following panel, to be prefetched, or NULL. */
INLINE void panel_columns(cera_dtype t, int cols, int rows, const uint8_t *const *row, int k, const cera_acts *x, int column,
                          const uint8_t *next, float *tile) {
    lanes spilled[CERA_PANEL_ROWS * TILE_COLS];
    const uint8_t *px = acts_column(t, x, column);
    for (int begin = 0; begin < k; begin += K_CHUNK) {
        int n = k - begin < K_CHUNK ? k - begin : K_CHUNK;
        for (int r = 0; r < CERA_PANEL_ROWS; r += rows) {
            lanes acc[MAX_TILE];
#pragma GCC unroll 24
            for (int i = 0; i < rows * cols; i++) acc[i] = begin ? spilled[r * cols + i] : lanes_zero();
            tile_chunk(t, cols, rows, row + r, px, acts_stride(t, x), begin, n,
                       next ? next + (size_t)(begin * CERA_PANEL_ROWS + r * n) * weight_size(t) : NULL, acc);
#pragma GCC unroll 24
            for (int i = 0; i < rows * cols; i++) spilled[r * cols + i] = acc[i];
        }
    }
    for (int c = 0; c < cols; c++) {
        for (int r = 0; r < CERA_PANEL_ROWS; r += 16) tree_sum16(spilled + r * cols + c, cols, tile + c * CERA_PANEL_ROWS + r);
    }
}

/* One column: ONE_ROWS rows at a time; the next ones are prefetched linearly meanwhile. */
INLINE void panel_one(cera_dtype t, const uint8_t *const *row, int k, const cera_acts *x, int column, float *tile) {
    const uint8_t *px = acts_column(t, x, column);
    enum { PIECE = 64 };
    for (int r = 0; r < CERA_PANEL_ROWS; r += ONE_ROWS) {
        lanes acc[ONE_ROWS];
        const uint8_t *next = row[r + ONE_ROWS - 1] + (size_t)k * weight_size(t);
#pragma GCC unroll 8
        for (int i = 0; i < ONE_ROWS; i++) acc[i] = lanes_zero();
        for (int begin = 0; begin < k; begin += PIECE) {
            int n = k - begin < PIECE ? k - begin : PIECE;
            for (size_t line = 0; line < ONE_ROWS * PIECE * weight_size(t); line += 64) __builtin_prefetch(next + line);
            next += ONE_ROWS * PIECE * weight_size(t);
            tile_chunk(t, 1, ONE_ROWS, row + r, px, 0, begin, n, NULL, acc);
        }
        for (int i = 0; i < ONE_ROWS; i++) tile[r + i] = tree_sum(acc[i]);
    }
}

INLINE void matmul(cera_dtype t, const uint8_t *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, int n_cols,
                   float *tile) {
    const uint8_t *row[CERA_PANEL_ROWS];
    for (int r = 0; r < CERA_PANEL_ROWS; r++) row[r] = w + (size_t)(r < n_rows ? r : n_rows - 1) * row_bytes;
    if (n_cols == 1) {
        panel_one(t, row, k, x, c0, tile);
        return;
    }
    const uint8_t *next = w + CERA_PANEL_ROWS * row_bytes;
    int c = 0;
#define TILE(cols, rows)                                         \
    if (c == 0 && n_cols >= (cols)) {                            \
        panel_columns(t, cols, rows, row, k, x, c0, next, tile); \
        c += (cols);                                             \
    }                                                            \
    for (; c + (cols) <= n_cols; c += (cols)) panel_columns(t, cols, rows, row, k, x, c0 + c, NULL, tile + c * CERA_PANEL_ROWS);
    TILES(TILE)
#undef TILE
}
