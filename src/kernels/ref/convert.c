/* convert.c: f32 to bf16 and f16, round to nearest even. Exact: every tier gives these bits, denormals included (vcvtneps2bf16
 * flushes them and is therefore not used for this slot). NaN stays NaN. */
#include "kernels/nn_int.h"
#include "kernels/ref/nn_ref.h"

static void f32_to_bf16_ref(const float *x, int n, uint16_t *out) {
    for (int i = 0; i < n; i++) out[i] = ref_to_bf16(x[i]);
}

static void f32_to_f16_ref(const float *x, int n, uint16_t *out) {
    for (int i = 0; i < n; i++) out[i] = ref_to_f16(x[i]);
}

void cera_kernels_convert_ref(cera_kernels *k) {
    k->f32_to_bf16 = f32_to_bf16_ref;
    k->f32_to_f16 = f32_to_f16_ref;
}
