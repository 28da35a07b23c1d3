/* glu.c: activations, gated activations, softmax of a row, sigmoid, soft cap.
 *
 * Numbers. Element by element with the recipes of nn_math.h; softmax subtracts the maximum (NaN elements do not take part in
 * the maximum, but make the sum and so the whole row NaN), sums in 16 lanes and the fixed tree, and divides. The tiers give the
 * same bits. */
#include "kernels/nn_int.h"
#include "kernels/ref/nn_ref.h"

static void activate_ref(cera_activation act, const float *x, int n, float *out) {
    for (int i = 0; i < n; i++) out[i] = ref_activate(act, x[i]);
}

static void glu_ref(cera_activation act, const float *gate, const float *up, int n, float *out) {
    for (int i = 0; i < n; i++) {
        float u = up[i];
        if (act == CERA_ACT_SWIGLU_OAI) {
            u = u > NN_OAI_LIMIT ? NN_OAI_LIMIT : u < -NN_OAI_LIMIT ? -NN_OAI_LIMIT : u;
            u += 1.0f;
        }
        out[i] = ref_activate(act, gate[i]) * u;
    }
}

static void softmax_ref(float *x, int n) {
    float max = -INFINITY, lanes[16] = {0};
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++) {
        x[i] = ref_exp(x[i] - max);
        lanes[i % 16] += x[i];
    }
    float sum = ref_tree16(lanes);
    for (int i = 0; i < n; i++) x[i] /= sum;
}

static void sigmoid_ref(float *x, int n) {
    for (int i = 0; i < n; i++) x[i] = ref_sigmoid(x[i]);
}

static void softcap_ref(float *x, int n, float c) {
    for (int i = 0; i < n; i++) x[i] = c * ref_tanh(x[i] / c);
}

void cera_kernels_glu_ref(cera_kernels *k) {
    k->activate = activate_ref;
    k->glu = glu_ref;
    k->softmax = softmax_ref;
    k->sigmoid = sigmoid_ref;
    k->softcap = softcap_ref;
}
