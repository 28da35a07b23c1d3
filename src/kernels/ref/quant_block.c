/* quant_block.c: the packed bytes of every quantized type, decoded one 32-element sub-block at a time. Plain and slow on
 * purpose: the kernels of every tier are checked against it, and it is checked against the gguf Python package.
 *
 * Sources: ggml's block definitions (format/dtype.h) and the OCP Microscaling specification v1.0 for MXFP4. */
#include "kernels/ref/quant_block.h"

const int8_t cera_quant_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const int8_t cera_quant_mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

cera_quant_scheme cera_quant_scheme_of(cera_dtype t) {
    switch (t) {
    case CERA_Q4_0:
    case CERA_Q4_1:
    case CERA_Q5_0:
    case CERA_Q5_1:
    case CERA_Q8_0:
    case CERA_Q4_K:
    case CERA_Q5_K:
    case CERA_IQ4_NL:
    case CERA_IQ4_XS:
    case CERA_MXFP4: return CERA_QUANT_WHOLE;
    case CERA_Q6_K: return CERA_QUANT_SPLIT;
    case CERA_Q2_K:
    case CERA_Q3_K: return CERA_QUANT_FOLD;
    default: return CERA_QUANT_NONE;
    }
}

int cera_quant_mins(cera_dtype t) {
    switch (t) {
    case CERA_Q4_1:
    case CERA_Q5_1:
    case CERA_Q4_K:
    case CERA_Q5_K: return 1;
    case CERA_Q2_K: return 2;
    default: return 0;
    }
}

static uint16_t load_u16(const void *p) {
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

/* 16 bytes hold 32 nibbles: low ones first. */
static void nibbles_halves(const uint8_t *qs, int8_t *q) {
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t)(qs[i] & 15);
        q[i + 16] = (int8_t)(qs[i] >> 4);
    }
}

static void add_bit4(const uint8_t *qh, int8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = (int8_t)(q[i] | ((qh[i / 8] >> (i % 8)) & 1) << 4);
}

static void add_offset(int8_t *q, int offset) {
    for (int i = 0; i < 32; i++) q[i] = (int8_t)(q[i] + offset);
}

static void look_up(const int8_t values[16], int8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = values[q[i]];
}

static void set_min(cera_quant_block *o, float m) { o->min[0] = o->min[1] = m; }
static void set_scale(cera_quant_block *o, int s) { o->scale[0] = o->scale[1] = (int8_t)s; }

/* Types whose block is the sub-block. */
static void decode_small(cera_dtype t, const uint8_t *p, cera_quant_block *o) {
    set_scale(o, 1);
    o->d = t == CERA_MXFP4 ? cera_quant_e8m0_half(p[0]) : cera_quant_f16(load_u16(p));
    switch (t) {
    case CERA_Q4_0:
        nibbles_halves(p + 2, o->q);
        add_offset(o->q, -8);
        break;
    case CERA_Q4_1:
        nibbles_halves(p + 4, o->q);
        set_min(o, cera_quant_f16(load_u16(p + 2)));
        break;
    case CERA_Q5_0:
        nibbles_halves(p + 6, o->q);
        add_bit4(p + 2, o->q);
        add_offset(o->q, -16);
        break;
    case CERA_Q5_1:
        nibbles_halves(p + 8, o->q);
        add_bit4(p + 4, o->q);
        set_min(o, cera_quant_f16(load_u16(p + 2)));
        break;
    case CERA_Q8_0: memcpy(o->q, p + 2, 32); break;
    case CERA_IQ4_NL:
        nibbles_halves(p + 2, o->q);
        look_up(cera_quant_iq4_values, o->q);
        break;
    default: /* MXFP4 */
        nibbles_halves(p + 1, o->q);
        look_up(cera_quant_mxfp4_values, o->q);
        break;
    }
}

/* The eight 6-bit (scale, min) pairs of q4_k and q5_k. */
static void k4_scale_min(const uint8_t *s, int j, int *scale, int *min) {
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *min = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
    }
}

/* q4_k and q5_k: sub-blocks 2i and 2i+1 are the low and high nibbles of the same 32 bytes; q5_k's fifth bits are bit j of qh.
 */
static void decode_q45_k(const uint8_t *p, int j, const uint8_t *qh, const uint8_t *qs, cera_quant_block *o) {
    int scale, min;
    k4_scale_min(p + 4, j, &scale, &min);
    o->d = cera_quant_f16(load_u16(p));
    set_scale(o, scale);
    set_min(o, -(cera_quant_f16(load_u16(p + 2)) * (float)min));
    for (int i = 0; i < 32; i++) {
        int high = qh ? (qh[i] >> j & 1) << 4 : 0;
        o->q[i] = (int8_t)((qs[j / 2 * 32 + i] >> (j & 1) * 4 & 15) | high);
    }
}

static void decode_q6_k(const cera_block_q6_k *x, int j, cera_quant_block *o) {
    const uint8_t *ql = x->ql + j / 4 * 64 + (j & 1) * 32, *qh = x->qh + j / 4 * 32;
    o->d = cera_quant_f16(x->d);
    o->scale[0] = x->scales[2 * j];
    o->scale[1] = x->scales[2 * j + 1];
    for (int i = 0; i < 32; i++) {
        int low = ql[i] >> (j % 4 / 2) * 4 & 15, high = qh[i] >> j % 4 * 2 & 3;
        o->q[i] = (int8_t)((low | high << 4) - 32);
    }
}

static int q3_k_scale(const uint8_t *s, int i) {
    int low = s[i % 8] >> (i / 8) * 4 & 15, high = s[8 + i % 4] >> (i / 4) * 2 & 3;
    return (low | high << 4) - 32;
}

static void decode_q3_k(const cera_block_q3_k *x, int j, cera_quant_block *o) {
    o->d = cera_quant_f16(x->d);
    o->scale[0] = (int8_t)q3_k_scale(x->scales, 2 * j);
    o->scale[1] = (int8_t)q3_k_scale(x->scales, 2 * j + 1);
    for (int i = 0; i < 32; i++) {
        int low = x->qs[j / 4 * 32 + i] >> j % 4 * 2 & 3, high = x->hmask[i] >> j & 1;
        o->q[i] = (int8_t)(low + 4 * high - 4);
    }
}

static void decode_q2_k(const cera_block_q2_k *x, int j, cera_quant_block *o) {
    o->d = cera_quant_f16(x->d);
    for (int h = 0; h < 2; h++) {
        o->scale[h] = (int8_t)(x->scales[2 * j + h] & 15);
        o->min[h] = -(cera_quant_f16(x->dmin) * (float)(x->scales[2 * j + h] >> 4));
    }
    for (int i = 0; i < 32; i++) o->q[i] = (int8_t)(x->qs[j / 4 * 32 + i] >> j % 4 * 2 & 3);
}

static void decode_iq4_xs(const cera_block_iq4_xs *x, int j, cera_quant_block *o) {
    int low = x->scales_l[j / 2] >> (j & 1) * 4 & 15, high = x->scales_h >> 2 * j & 3;
    o->d = cera_quant_f16(x->d);
    set_scale(o, (low | high << 4) - 32);
    nibbles_halves(x->qs + 16 * j, o->q);
    look_up(cera_quant_iq4_values, o->q);
}

void cera_quant_block_decode(cera_dtype t, const void *row, int b, cera_quant_block *o) {
    const cera_dtype_info *info = cera_dtype_get(t);
    int per_block = info->block_elements / 32, j = b % per_block;
    const uint8_t *p = (const uint8_t *)row + (size_t)(b / per_block) * (size_t)info->block_bytes;
    /* Blocks lie unaligned in a mapped file: the structs are filled by a copy. */
    union {
        cera_block_q6_k q6_k;
        cera_block_q3_k q3_k;
        cera_block_q2_k q2_k;
        cera_block_iq4_xs iq4_xs;
    } x;
    set_min(o, 0);
    if (per_block == 1) {
        decode_small(t, p, o);
        return;
    }
    memcpy(&x, p, sizeof x < (size_t)info->block_bytes ? sizeof x : (size_t)info->block_bytes);
    switch (t) {
    case CERA_Q4_K: decode_q45_k(p, j, NULL, p + 16, o); break;
    case CERA_Q5_K: decode_q45_k(p, j, p + 16, p + 48, o); break;
    case CERA_Q6_K: decode_q6_k(&x.q6_k, j, o); break;
    case CERA_Q3_K: decode_q3_k(&x.q3_k, j, o); break;
    case CERA_Q2_K: decode_q2_k(&x.q2_k, j, o); break;
    default: decode_iq4_xs(&x.iq4_xs, j, o); break;
    }
}
