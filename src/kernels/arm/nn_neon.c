/* nn_neon.c: nn_tmpl.h for this tier: norms, rope, activations, softmax, conversions and the small slots.
 * Numbers: those of the C references, bit for bit (nn_tmpl.h, nn_math.h). */
#include "kernels/arm/nn_vec_neon.h"
#include "kernels/nn_tmpl.h"
