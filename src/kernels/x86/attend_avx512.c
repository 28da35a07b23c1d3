/* attend_avx512.c: attention's scores and values on AVX-512, for all three page types, in f32 products.
 * Numbers and tiles: attend_tmpl.h; equal to ref/attend.c to the bit. */
#include "kernels/x86/attend_vec_avx512.h"

#define ATTEND_TIER(name) name##_avx512
#include "kernels/attend_tmpl.h"
