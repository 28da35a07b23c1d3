/* dequantize.c: rows of every computing type to f32, bit-equal to the gguf Python package (tests/golden/dequant_test.py): the
 * scale product first, then times q, then plus the min term, each rounded; no fused operations. Used for embeddings and by
 * tests. */
#include "kernels/ref/matmul_ref.h"
#include "kernels/ref/quant_block.h"

static void dequantize_f32(const void *row, int k, float *out) { memcpy(out, row, (size_t)k * 4); }

static void dequantize_16(const void *row, int k, float *out, float (*widen)(uint16_t)) {
    for (int i = 0; i < k; i++) {
        uint16_t h;
        memcpy(&h, (const uint8_t *)row + 2 * (size_t)i, 2);
        out[i] = widen(h);
    }
}
static void dequantize_f16(const void *row, int k, float *out) { dequantize_16(row, k, out, cera_quant_f16); }
static void dequantize_bf16(const void *row, int k, float *out) { dequantize_16(row, k, out, cera_quant_bf16); }

static void dequantize_quant(cera_dtype t, const void *row, int k, float *out) {
    int mins = cera_quant_mins(t);
    for (int b = 0; b < k / 32; b++) {
        cera_quant_block w;
        cera_quant_block_decode(t, row, b, &w);
        for (int i = 0; i < 32; i++) {
            float v = w.d * (float)w.scale[i / 16] * (float)w.q[i];
            out[32 * b + i] = mins ? v + w.min[i / 16] : v;
        }
    }
}

#define DEQUANTIZE(name, type) \
    static void dequantize_##name(const void *row, int k, float *out) { dequantize_quant(type, row, k, out); }
DEQUANTIZE(q4_0, CERA_Q4_0)
DEQUANTIZE(q4_1, CERA_Q4_1)
DEQUANTIZE(q5_0, CERA_Q5_0)
DEQUANTIZE(q5_1, CERA_Q5_1)
DEQUANTIZE(q8_0, CERA_Q8_0)
DEQUANTIZE(q2_k, CERA_Q2_K)
DEQUANTIZE(q3_k, CERA_Q3_K)
DEQUANTIZE(q4_k, CERA_Q4_K)
DEQUANTIZE(q5_k, CERA_Q5_K)
DEQUANTIZE(q6_k, CERA_Q6_K)
DEQUANTIZE(iq4_nl, CERA_IQ4_NL)
DEQUANTIZE(iq4_xs, CERA_IQ4_XS)
DEQUANTIZE(mxfp4, CERA_MXFP4)

void cera_kernels_dequantize_ref(cera_kernels *k) {
    k->dequantize[CERA_F32] = dequantize_f32;
    k->dequantize[CERA_F16] = dequantize_f16;
    k->dequantize[CERA_BF16] = dequantize_bf16;
    k->dequantize[CERA_Q4_0] = dequantize_q4_0;
    k->dequantize[CERA_Q4_1] = dequantize_q4_1;
    k->dequantize[CERA_Q5_0] = dequantize_q5_0;
    k->dequantize[CERA_Q5_1] = dequantize_q5_1;
    k->dequantize[CERA_Q8_0] = dequantize_q8_0;
    k->dequantize[CERA_Q2_K] = dequantize_q2_k;
    k->dequantize[CERA_Q3_K] = dequantize_q3_k;
    k->dequantize[CERA_Q4_K] = dequantize_q4_k;
    k->dequantize[CERA_Q5_K] = dequantize_q5_k;
    k->dequantize[CERA_Q6_K] = dequantize_q6_k;
    k->dequantize[CERA_IQ4_NL] = dequantize_iq4_nl;
    k->dequantize[CERA_IQ4_XS] = dequantize_iq4_xs;
    k->dequantize[CERA_MXFP4] = dequantize_mxfp4;
}
