/* matmul_one_avx512vnni.c: q8_0 and one column, on 256 bits: 8 rows abreast. The rows of q8_0 are the longest, and with 16 of
 * them the lines prefetched for the next group push each other out of L1 (75 % of a read loop against 98 %, Zen 5). The same
 * numbers: matmul_tmpl.h. */
#define VEC_DPBUSD 1
#define MATMUL_ONLY_ONE
#include "kernels/x86/quant_vec256.h"
#define TIER avx512vnni
#include "kernels/x86/matmul_tmpl.h"

void cera_matmul_one_q8_0_avx512vnni(const uint8_t *w, size_t row_bytes, int k, const cera_acts *x, int column, float *tile) {
    for (int row = 0; row < CERA_PANEL_ROWS; row += VEC_ROWS)
        one_column(CERA_Q8_0, w + (size_t)row * row_bytes, row_bytes, k, x, column, tile + row);
}
