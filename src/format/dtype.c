/* dtype.c: the table of tensor types. Sizes are those of ggml's type table and of the Python gguf package
 * (GGML_QUANT_SIZES); tests/unit/format/dtype_test.c compares computing types with the block structs.
 * Numbers that ggml has retired (4, 5, 31..33, 36..38) are unknown here as there. */
#include "format/dtype.h"

#include <strings.h>

static const cera_dtype_info infos[CERA_DTYPE_COUNT] = {
    [CERA_F32] = {"f32", 1, 4, true},
    [CERA_F16] = {"f16", 1, 2, true},
    [CERA_Q4_0] = {"q4_0", 32, 18, true},
    [CERA_Q4_1] = {"q4_1", 32, 20, true},
    [CERA_Q5_0] = {"q5_0", 32, 22, true},
    [CERA_Q5_1] = {"q5_1", 32, 24, true},
    [CERA_Q8_0] = {"q8_0", 32, 34, true},
    [9] = {"q8_1", 32, 36, false},
    [CERA_Q2_K] = {"q2_k", 256, 84, true},
    [CERA_Q3_K] = {"q3_k", 256, 110, true},
    [CERA_Q4_K] = {"q4_k", 256, 144, true},
    [CERA_Q5_K] = {"q5_k", 256, 176, true},
    [CERA_Q6_K] = {"q6_k", 256, 210, true},
    [15] = {"q8_k", 256, 292, false},
    [16] = {"iq2_xxs", 256, 66, false},
    [17] = {"iq2_xs", 256, 74, false},
    [18] = {"iq3_xxs", 256, 98, false},
    [19] = {"iq1_s", 256, 50, false},
    [CERA_IQ4_NL] = {"iq4_nl", 32, 18, true},
    [21] = {"iq3_s", 256, 110, false},
    [22] = {"iq2_s", 256, 82, false},
    [CERA_IQ4_XS] = {"iq4_xs", 256, 136, true},
    [24] = {"i8", 1, 1, false},
    [25] = {"i16", 1, 2, false},
    [26] = {"i32", 1, 4, false},
    [27] = {"i64", 1, 8, false},
    [28] = {"f64", 1, 8, false},
    [29] = {"iq1_m", 256, 56, false},
    [CERA_BF16] = {"bf16", 1, 2, true},
    [34] = {"tq1_0", 256, 54, false},
    [35] = {"tq2_0", 256, 66, false},
    [CERA_MXFP4] = {"mxfp4", 32, 17, true},
    [40] = {"nvfp4", 64, 36, false},
    [41] = {"q1_0", 128, 18, false},
};

const cera_dtype_info *cera_dtype_get(uint32_t type) {
    static const cera_dtype_info unknown = {0};
    return type < CERA_DTYPE_COUNT ? &infos[type] : &unknown;
}

bool cera_dtype_parse(const char *name, cera_dtype *out) {
    for (int i = 0; i < CERA_DTYPE_COUNT; i++) {
        if (!infos[i].name || strcasecmp(name, infos[i].name) != 0) continue;
        *out = (cera_dtype)i;
        return true;
    }
    return false;
}
