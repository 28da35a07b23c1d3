/* nn_avx512.c: nn_tmpl.h for this tier: norms, rope, activations, softmax, conversions and the small slots.
 * Numbers: those of the C references, bit for bit (nn_tmpl.h, nn_math.h). */
#include "kernels/x86/nn_vec_avx512.h"
#include "kernels/nn_tmpl.h"
