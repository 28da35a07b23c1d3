/* acts.c: where the parts of encoded activations lie (cera_acts), which encoding a weight type takes, and copying of columns.
 * The values are written by the encode slots. */
#include <string.h>
#include "kernels/kernels.h"

enum { PART_ALIGN = 64 };

cera_encoding cera_kernels_encoding(cera_dtype weight) {
    if (weight == CERA_BF16) return CERA_ENC_BF16;
    return weight == CERA_F16 || weight == CERA_F32 ? CERA_ENC_F32 : CERA_ENC_Q8;
}

static void *take(char *memory, size_t *at, size_t size) {
    void *part = memory ? memory + *at : NULL;
    *at += (size + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    return part;
}

size_t cera_acts_layout(cera_encoding enc, int k, int n, void *memory, cera_acts *out) {
    size_t at = 0, groups = (size_t)(k / 32) * (size_t)n, elements = (size_t)k * (size_t)n;
    cera_acts a = {.k = k, .n = n};
    if (enc == CERA_ENC_Q8) {
        a.q = take(memory, &at, groups * 32);
        a.d = take(memory, &at, groups * sizeof *a.d);
        a.s = take(memory, &at, groups * sizeof *a.s);
        a.sum = take(memory, &at, groups * sizeof *a.sum);
        a.sum16 = take(memory, &at, groups * 2 * sizeof *a.sum16);
        a.s16 = take(memory, &at, groups * 2 * sizeof *a.s16);
    } else if (enc == CERA_ENC_BF16) {
        a.bf16 = take(memory, &at, elements * sizeof *a.bf16);
    } else {
        a.f32 = take(memory, &at, elements * sizeof *a.f32);
        a.f32_stride = (size_t)k;
    }
    if (out) *out = a;
    return at;
}

cera_acts cera_acts_from(cera_encoding enc, const cera_acts *a, int first) {
    cera_acts v = *a;
    size_t block = (size_t)first / 32 * (size_t)a->n;
    if (enc == CERA_ENC_Q8) {
        v.q += block * 32, v.d += block, v.s += block, v.sum += block, v.sum16 += block * 2, v.s16 += block * 2;
    } else if (enc == CERA_ENC_BF16) {
        v.bf16 += first;
    } else {
        v.f32 += first;
    }
    return v;
}

static void gather_q8(const cera_acts *src, const int32_t *columns, int n, cera_acts *dst) {
    for (int b = 0; b < src->k / 32; b++) {
        for (int i = 0; i < n; i++) {
            size_t from = (size_t)b * (size_t)src->n + (size_t)columns[i], to = (size_t)b * (size_t)dst->n + (size_t)i;
            memcpy(dst->q + to * 32, src->q + from * 32, 32);
            dst->d[to] = src->d[from];
            dst->s[to] = src->s[from];
            dst->sum[to] = src->sum[from];
            memcpy(dst->sum16 + to * 2, src->sum16 + from * 2, 2 * sizeof *dst->sum16);
            memcpy(dst->s16 + to * 2, src->s16 + from * 2, 2 * sizeof *dst->s16);
        }
    }
}

void cera_acts_gather(cera_encoding enc, const cera_acts *src, const int32_t *columns, int n, cera_acts *dst) {
    size_t k = (size_t)src->k;
    if (enc == CERA_ENC_Q8) {
        gather_q8(src, columns, n, dst);
        return;
    }
    for (int i = 0; i < n; i++) {
        size_t from = (size_t)columns[i], to = (size_t)i;
        if (enc == CERA_ENC_BF16) {
            memcpy(dst->bf16 + to * k, src->bf16 + from * k, k * sizeof *dst->bf16);
        } else {
            memcpy((float *)dst->f32 + to * dst->f32_stride, src->f32 + from * src->f32_stride, k * sizeof *dst->f32);
        }
    }
}
