/* rope.c: frequencies of rotary positions, in double.
 * RoPE: Su et al. 2021, "RoFormer", 3.2.2: frequency of pair i is base^(-2i / n_rot).
 * Linear scaling divides positions by the factor; divisors (Llama 3, Phi-3's long and short factors) divide each frequency.
 * YaRN: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", 3.2-3.4: pairs that turn often
 * keep their frequency, slow ones are interpolated, with a ramp between; cos and sin are multiplied by 0.1 ln(factor) + 1. The
 * ramp's borders are rounded and clamped as llama.cpp does, whose files say beta_fast and beta_slow. */
#include <math.h>
#include "model/model_int.h"

static const double pi = 3.14159265358979323846;

/* Pair whose wavelength makes `turns` turns in the original context. */
static double pair_of_turns(const cera_rope_spec *s, double turns) {
    return s->n_rot * log(s->original_context / (turns * 2 * pi)) / (2 * log(s->base));
}

static double mscale(double factor, double by) { return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1; }

void cera_rope_compute(const cera_rope_spec *s, double *inv_freq, double *scale) {
    bool yarn = s->scaling == CERA_SCALING_YARN;
    double stretch = s->scaling == CERA_SCALING_LINEAR || yarn ? s->factor : 1;
    double low = 0, high = 0;
    if (yarn) {
        low = floor(pair_of_turns(s, s->beta_fast));
        high = ceil(pair_of_turns(s, s->beta_slow));
        if (low < 0) low = 0;
        if (high > s->n_rot - 1) high = s->n_rot - 1;
    }
    for (int i = 0; i < s->n_rot / 2; i++) {
        double f = pow(s->base, -2.0 * i / s->n_rot);
        if (s->divisors) f /= s->divisors[i];
        double slow = f / stretch;
        if (yarn) {
            double width = high - low < 0.001 ? 0.001 : high - low, ramp = (i - low) / width;
            double keep = (1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp)) * s->ext_factor;
            slow = slow * (1 - keep) + f * keep;
        }
        inv_freq[i] = slow;
    }
    *scale = s->attn_factor;
    if (yarn && s->ext_factor != 0) {
        if (s->log_multiplier != 0)
            *scale *= mscale(s->factor, 1) / mscale(s->factor, s->log_multiplier);
        else
            *scale *= mscale(s->factor, 1);
    }
}
