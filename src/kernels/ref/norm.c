/* norm.c: RMS norm and layer norm of a row.
 *
 * Numbers. Sums run in 16 lanes (element i in lane i mod 16, ascending, one fma each) and end in the tree of nn_ref.h. The mean
 * is the sum divided by n; the factor is 1 / sqrt(mean + eps) with two correctly rounded operations; then one product with the
 * factor and one product, or fma with what is added, for the weight. Layer norm subtracts the mean first and sums squares of
 * the differences (two passes), which cannot cancel. The tiers give the same bits. */
#include "kernels/nn_int.h"
#include "kernels/ref/nn_ref.h"

static void rms_norm_ref(const float *x, const float *w, int n, float eps, const float *residual, float *y) {
    float lanes[16] = {0};
    for (int i = 0; i < n; i++) lanes[i % 16] = fmaf(x[i], x[i], lanes[i % 16]);
    float factor = 1.0f / sqrtf(ref_tree16(lanes) / (float)n + eps);
    for (int i = 0; i < n; i++) {
        float v = x[i] * factor;
        if (w && residual)
            y[i] = fmaf(v, w[i], residual[i]);
        else if (w)
            y[i] = v * w[i];
        else
            y[i] = residual ? v + residual[i] : v;
    }
}

static void layer_norm_ref(const float *x, const float *w, const float *b, int n, float eps, const float *residual, float *y) {
    float lanes[16] = {0}, squares[16] = {0};
    for (int i = 0; i < n; i++) lanes[i % 16] += x[i];
    float mean = ref_tree16(lanes) / (float)n;
    for (int i = 0; i < n; i++) squares[i % 16] = fmaf(x[i] - mean, x[i] - mean, squares[i % 16]);
    float factor = 1.0f / sqrtf(ref_tree16(squares) / (float)n + eps);
    for (int i = 0; i < n; i++) {
        float v = (x[i] - mean) * factor;
        v = fmaf(v, w ? w[i] : 1.0f, b ? b[i] : 0.0f);
        y[i] = residual ? v + residual[i] : v;
    }
}

void cera_kernels_norm_ref(cera_kernels *k) {
    k->rms_norm = rms_norm_ref;
    k->layer_norm = layer_norm_ref;
}
