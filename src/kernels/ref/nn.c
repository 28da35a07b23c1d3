/* nn.c: the small slots (short convolution, scaled addition, arg max) and the hook that fills every slot of this family with
 * its C reference. The larger ones are in convert.c, norm.c, rope.c, attend.c and glu.c beside it.
 *
 * Numbers. shortconv: one fma a tap, taps ascending from 0, one product before (B X) and one after (C y). add_scaled: one fma.
 */
#include "kernels/nn_int.h"
#include "kernels/ref/nn_ref.h"

static void shortconv_ref(const float *bcx, const float *w, int h, int l, const float *state, float *state_out, float *out) {
    for (int c = 0; c < h; c++) {
        float b = bcx[c] * bcx[2 * (size_t)h + c], y = 0.0f;
        for (int j = 0; j < l - 1; j++) {
            float s = state[(size_t)j * h + c];
            y = fmaf(s, w[(size_t)c * l + j], y);
            if (j > 0) state_out[(size_t)(j - 1) * h + c] = s;
        }
        if (l > 1) state_out[(size_t)(l - 2) * h + c] = b;
        out[c] = bcx[(size_t)h + c] * fmaf(b, w[(size_t)c * l + l - 1], y);
    }
}

static void add_scaled_ref(const float *x, float scale, int n, float *y) {
    for (int i = 0; i < n; i++) y[i] = fmaf(x[i], scale, y[i]);
}

/* NaN and +infinity clear *finite; -infinity is how masks forbid a token. Nothing but NaN: index 0. */
static int argmax_ref(const float *x, int n, int *finite) {
    int best = -1;
    *finite = 1;
    for (int i = 0; i < n; i++) {
        if (x[i] != x[i] || x[i] == INFINITY) *finite = 0;
        if (x[i] == x[i] && (best < 0 || x[i] > x[best])) best = i;
    }
    return best < 0 ? 0 : best;
}

void cera_kernels_nn_ref(cera_kernels *k) {
    cera_kernels_convert_ref(k);
    cera_kernels_norm_ref(k);
    cera_kernels_rope_ref(k);
    cera_kernels_attend_ref(k);
    cera_kernels_glu_ref(k);
    k->shortconv = shortconv_ref;
    k->add_scaled = add_scaled_ref;
    k->argmax = argmax_ref;
}
