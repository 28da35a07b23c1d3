/* matmul_float_tmpl.h: F32, F16 and BF16 weights, 32 rows x n columns; included once a tier by a file that defines the 16
 * lanes: lanes, LANES_K (elements of k one multiply_add takes: 16, or 32 for a bf16 dot product), TILE_ROWS, TILE_COLS,
 *   load_weights(t, p), load_acts(t, p): LANES_K elements; lanes_zero(), multiply_add(w, x, acc), tree_sum(acc)
 * Owns the loops; the order of a sum is that of ref/matmul.c: lane l takes k = l mod 16 ascending, then one tree.
 *
 * A tile of TILE_ROWS x TILE_COLS accumulators is kept in registers along K_CHUNK elements, spilled to a buffer in L1 and taken
 * up again, so that the activations of the tile's columns stay in L1 while the rows of the panel pass, whatever k is. */
#include <string.h>
#include "kernels/ref/matmul_ref.h"

#ifndef INLINE
#    define INLINE static inline __attribute__((always_inline))
#endif

enum { K_CHUNK = 1024, ONE_ROWS = 8, N_QUADS = CERA_PANEL_ROWS / TILE_ROWS };

INLINE size_t weight_size(cera_dtype t) { return t == CERA_F32 ? 4 : 2; }
INLINE size_t acts_size(cera_dtype t) { return t == CERA_BF16 ? 2 : 4; }
INLINE const uint8_t *acts_column(cera_dtype t, const cera_acts *x, int column) {
    return t == CERA_BF16 ? (const uint8_t *)(x->bf16 + (size_t)column * (size_t)x->k)
                          : (const uint8_t *)(x->f32 + (size_t)column * x->f32_stride);
}

/* acc[r * cols + c] += w[r][k] * x[c][k], k in [begin, end), a multiple of LANES_K. */
INLINE void tile_steps(cera_dtype t, int rows, int cols, const uint8_t *const *w, const uint8_t *const *x, int begin, int end,
                       lanes *acc) {
    for (int k = begin; k < end; k += LANES_K) {
        lanes weights[ONE_ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) weights[r] = load_weights(t, w[r] + (size_t)k * weight_size(t));
#pragma GCC unroll 8
        for (int c = 0; c < cols; c++) {
            lanes a = load_acts(t, x[c] + (size_t)k * acts_size(t));
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) acc[r * cols + c] = multiply_add(weights[r], a, acc[r * cols + c]);
        }
    }
}

/* The last k mod LANES_K elements, padded with zeros. */
INLINE void tile_tail(cera_dtype t, int rows, int cols, const uint8_t *const *w, const uint8_t *const *x, int k, lanes *acc) {
    int whole = k / LANES_K * LANES_K;
    size_t left = (size_t)(k - whole);
    if (!left) return;
    uint8_t wide_w[ONE_ROWS][4 * LANES_K], wide_x[ONE_ROWS][4 * LANES_K];
    const uint8_t *pw[ONE_ROWS], *px[ONE_ROWS];
    memset(wide_w, 0, sizeof wide_w);
    memset(wide_x, 0, sizeof wide_x);
    for (int r = 0; r < rows; r++) { pw[r] = memcpy(wide_w[r], w[r] + (size_t)whole * weight_size(t), left * weight_size(t)); }
    for (int c = 0; c < cols; c++) { px[c] = memcpy(wide_x[c], x[c] + (size_t)whole * acts_size(t), left * acts_size(t)); }
    tile_steps(t, rows, cols, pw, px, 0, LANES_K, acc);
}

/* All rows of the panel for `cols` columns. row: 32 pointers, those past the last row repeat it. */
INLINE void panel_columns(cera_dtype t, int cols, const uint8_t *const *row, int k, const cera_acts *x, int column,
                          float *tile) {
    lanes spilled[N_QUADS][TILE_ROWS * TILE_COLS];
    const uint8_t *px[TILE_COLS];
    int whole = k / LANES_K * LANES_K;
    for (int c = 0; c < cols; c++) px[c] = acts_column(t, x, column + c);
    for (int i = 0; i < N_QUADS; i++) {
        for (int j = 0; j < TILE_ROWS * cols; j++) spilled[i][j] = lanes_zero();
    }
    for (int begin = 0; begin < whole; begin += K_CHUNK) {
        int end = whole - begin < K_CHUNK ? whole : begin + K_CHUNK;
        for (int i = 0; i < N_QUADS; i++) {
            lanes acc[TILE_ROWS * TILE_COLS];
#pragma GCC unroll 24
            for (int j = 0; j < TILE_ROWS * cols; j++) acc[j] = spilled[i][j];
            tile_steps(t, TILE_ROWS, cols, row + i * TILE_ROWS, px, begin, end, acc);
#pragma GCC unroll 24
            for (int j = 0; j < TILE_ROWS * cols; j++) spilled[i][j] = acc[j];
        }
    }
    for (int i = 0; i < N_QUADS; i++) {
        tile_tail(t, TILE_ROWS, cols, row + i * TILE_ROWS, px, k, spilled[i]);
        for (int c = 0; c < cols; c++) {
            for (int r = 0; r < TILE_ROWS; r++)
                tile[c * CERA_PANEL_ROWS + i * TILE_ROWS + r] = tree_sum(spilled[i][r * cols + c]);
        }
    }
}

/* One column: ONE_ROWS rows at a time; the next ones are prefetched linearly meanwhile. */
INLINE void panel_one(cera_dtype t, const uint8_t *const *row, int k, const cera_acts *x, int column, float *tile) {
    const uint8_t *px = acts_column(t, x, column);
    int whole = k / LANES_K * LANES_K, piece = (int)(256 / weight_size(t));
    for (int i = 0; i < CERA_PANEL_ROWS; i += ONE_ROWS) {
        lanes acc[ONE_ROWS];
        const uint8_t *next = row[i + ONE_ROWS - 1] + (size_t)k * weight_size(t);
#pragma GCC unroll 8
        for (int r = 0; r < ONE_ROWS; r++) acc[r] = lanes_zero();
        for (int begin = 0; begin < whole; begin += piece) {
            int end = whole - begin < piece ? whole : begin + piece;
            for (int line = 0; line < ONE_ROWS * 256; line += 64) __builtin_prefetch(next + line);
            next += ONE_ROWS * 256;
            tile_steps(t, ONE_ROWS, 1, row + i, &px, begin, end, acc);
        }
        tile_tail(t, ONE_ROWS, 1, row + i, &px, k, acc);
        for (int r = 0; r < ONE_ROWS; r++) tile[i + r] = tree_sum(acc[r]);
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
    int c = 0;
    for (; c + TILE_COLS <= n_cols; c += TILE_COLS) panel_columns(t, TILE_COLS, row, k, x, c0 + c, tile + c * CERA_PANEL_ROWS);
    for (; c + 2 <= n_cols; c += 2) panel_columns(t, 2, row, k, x, c0 + c, tile + c * CERA_PANEL_ROWS);
    if (c < n_cols) panel_columns(t, 1, row, k, x, c0 + c, tile + c * CERA_PANEL_ROWS);
}
