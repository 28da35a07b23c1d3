/* matmul_float_neon.c: F32, F16 and BF16 weights on NEON (the loops: matmul_float_tmpl.h).
 *
 * Numbers. As ref/matmul.c: the 16 lanes are four registers, one fma an element; F16 and BF16 are widened exactly. Bit-equal to
 * C. Cost. A tile of 2 rows x 2 columns: 16 registers of accumulators, 16 fma for 16 loads. */
#include <arm_neon.h>
#include "kernels/arm/matmul_arm.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES_K 16
#define TILE_COLS 2
#define TILES(X) X(2, 2) X(1, 4)
#define K_CHUNK 1024
#define ONE_ROWS 4
typedef struct lanes {
    float32x4_t v[4];
} lanes;

INLINE lanes lanes_hold(lanes v) { return v; }
INLINE lanes lanes_zero(void) {
    float32x4_t z = vdupq_n_f32(0);
    return (lanes){{z, z, z, z}};
}
INLINE float32x4_t load4(cera_dtype t, const uint8_t *p) {
    if (t == CERA_F32) return vreinterpretq_f32_u8(vld1q_u8(p));
    if (t == CERA_F16) return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}
INLINE lanes load_weights(cera_dtype t, const uint8_t *p) {
    size_t step = t == CERA_F32 ? 16 : 8;
    return (lanes){{load4(t, p), load4(t, p + step), load4(t, p + 2 * step), load4(t, p + 3 * step)}};
}
INLINE lanes load_acts(cera_dtype t, const uint8_t *p) { return load_weights(t == CERA_BF16 ? t : CERA_F32, p); }
INLINE lanes multiply_add(lanes w, lanes x, lanes acc) {
    for (int i = 0; i < 4; i++) acc.v[i] = vfmaq_f32(acc.v[i], w.v[i], x.v[i]);
    return acc;
}
INLINE float tree_sum(lanes a) {
    float32x4_t v = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    float32x2_t half = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}
INLINE void tree_sum16(const lanes *acc, int step, float *out) {
    for (int i = 0; i < 16; i++) out[i] = tree_sum(acc[i * step]);
}

#include "kernels/matmul_float_tmpl.h"

#define MATMUL(name, type)                                                                                           \
    static void matmul_##name##_neon(const void *w, size_t row_bytes, int n_rows, int k, const cera_acts *x, int c0, \
                                     int n_cols, float *tile) {                                                      \
        matmul(type, w, row_bytes, n_rows, k, x, c0, n_cols, tile);                                                  \
    }
MATMUL(f32, CERA_F32)
MATMUL(f16, CERA_F16)
MATMUL(bf16, CERA_BF16)

void cera_kernels_matmul_float_neon(cera_kernels *k) {
    CERA_MATMUL_SET(k, CERA_F32, f32, neon);
    CERA_MATMUL_SET(k, CERA_F16, f16, neon);
    CERA_MATMUL_SET(k, CERA_BF16, bf16, neon);
}
