/* rope.c: rotary tables, and the seed's kernel: head norm, rotation and the write into the KV pages in one pass over a head.
 *
 * Numbers. Angles: position * frequency in double with its rounding error kept (one fma), reduced as nn_math.h says, so that an
 * angle is right to 1e-13 at any position below 2^31; cos and sin times scale are rounded to f32 once.
 * A head: sum of squares as in norm.c, x * factor * weight; a pair (a, b) becomes (fma(a, cos, -(b sin)), fma(b, cos, a sin));
 * queries are multiplied by q_scale last. Keys and values are rounded to the page type once, to nearest even, after they are
 * held to its largest finite number; a NaN value is stored as 0 (its key stays NaN, so whoever sees the key still gets NaN),
 * because a page may hold finite values only: a key that is not seen is multiplied by 0. The tiers give the same bits. */
#include "kernels/nn_int.h"
#include "kernels/ref/nn_ref.h"

/* Angles beyond NN_ANGLE_MAX have no meaning and give NaN. */
static void sin_cos(double p, double low, double *s, double *c) {
    if (!(fabs(p) <= NN_ANGLE_MAX)) {
        *s = *c = (double)NAN;
        return;
    }
    double n = rint(p * NN_2_PI);
    double r = fma(-n, NN_PI2_2, fma(-n, NN_PI2_1, p)) + low, u = r * r;
    double ps = fma(fma(fma(fma(fma(NN_S5, u, NN_S4), u, NN_S3), u, NN_S2), u, NN_S1), u, NN_S0);
    double pc = fma(fma(fma(fma(fma(NN_C5, u, NN_C4), u, NN_C3), u, NN_C2), u, NN_C1), u, NN_C0);
    double sine = fma(r * u, ps, r), cosine = fma(u * u, pc, fma(u, -0.5, 1.0));
    int quadrant = (int)((int64_t)n & 3);
    *s = quadrant & 1 ? cosine : sine;
    *c = quadrant & 1 ? sine : cosine;
    if (quadrant & 2) *s = -*s;
    if (quadrant == 1 || quadrant == 2) *c = -*c;
}

static void rope_table_ref(const double *inv_freq, int n_pairs, double position, double scale, float *cos_out, float *sin_out) {
    for (int i = 0; i < n_pairs; i++) {
        double p = position * inv_freq[i], s, c;
        sin_cos(p, fma(position, inv_freq[i], -p), &s, &c);
        cos_out[i] = (float)(c * scale);
        sin_out[i] = (float)(s * scale);
    }
}

static void norm_head(float *x, const float *w, int d, float eps) {
    float lanes[16] = {0};
    for (int i = 0; i < d; i++) lanes[i % 16] = fmaf(x[i], x[i], lanes[i % 16]);
    float factor = 1.0f / sqrtf(ref_tree16(lanes) / (float)d + eps);
    for (int i = 0; i < d; i++) x[i] = x[i] * factor * w[i];
}

static void rotate_head(float *x, const cera_rope_kv_args *a) {
    int pairs = a->n_rot / 2, neox = a->pairs == CERA_ROPE_NEOX;
    x += a->rot_first;
    for (int i = 0; i < pairs; i++) {
        float *first = neox ? &x[i] : &x[2 * i], *second = neox ? &x[i + pairs] : &x[2 * i + 1];
        float x0 = *first, x1 = *second, c = a->cos[i], s = a->sin[i];
        *first = fmaf(x0, c, -(x1 * s));
        *second = fmaf(x1, c, x0 * s);
    }
}

static void store(cera_kv_type t, void *page, size_t i, float x) {
    float max = t == CERA_KV_F32 ? NN_MAX_F32 : t == CERA_KV_F16 ? NN_MAX_F16 : NN_MAX_BF16;
    x = x > max ? max : x < -max ? -max : x;
    if (t == CERA_KV_F32)
        ((float *)page)[i] = x;
    else
        ((uint16_t *)page)[i] = t == CERA_KV_F16 ? ref_to_f16(x) : ref_to_bf16(x);
}

static void store_key(const cera_rope_kv_args *a, int head, const float *x) {
    int d = a->d_k, j = a->slot;
    char *page = (char *)a->k_page + (size_t)head * CERA_PAGE_TOKENS * d * cera_kv_type_bytes(a->k_type);
    for (int i = 0; i < d; i++) {
        size_t pair = (((size_t)(j / 16) * (d / 2) + i / 2) * 16 + j % 16) * 2 + i % 2;
        size_t single = ((size_t)(j / 16) * d + i) * 16 + j % 16;
        store(a->k_type, page, a->k_type == CERA_KV_F32 ? single : pair, x[i]);
    }
}

static void store_value(const cera_rope_kv_args *a, int head, const float *x) {
    int d = a->d_v, j = a->slot;
    char *page = (char *)a->v_page + (size_t)head * CERA_PAGE_TOKENS * d * cera_kv_type_bytes(a->v_type);
    for (int i = 0; i < d; i++) {
        size_t at = a->v_type == CERA_KV_F32 ? (size_t)j * d + i : ((size_t)(j / 2) * d + i) * 2 + j % 2;
        store(a->v_type, page, at, x[i] != x[i] ? 0.0f : x[i]);
    }
}

static void rope_kv_ref(const cera_rope_kv_args *a) {
    for (int h = 0; a->q && h < a->n_head; h++) {
        float *q = a->q + (size_t)h * a->q_stride;
        if (a->q_norm) norm_head(q, a->q_norm, a->d_k, a->eps);
        if (a->cos) rotate_head(q, a);
        for (int i = 0; i < a->d_k; i++) q[i] *= a->q_scale;
    }
    for (int h = 0; a->k && h < a->n_head_kv; h++) {
        float *k = a->k + (size_t)h * a->k_stride;
        if (a->k_norm) norm_head(k, a->k_norm, a->d_k, a->eps);
        if (a->cos) rotate_head(k, a);
        store_key(a, h, k);
    }
    for (int h = 0; a->k && a->v && h < a->n_head_kv; h++) store_value(a, h, a->v + (size_t)h * a->v_stride);
}

void cera_kernels_rope_ref(cera_kernels *k) {
    k->rope_table = rope_table_ref;
    k->rope_kv = rope_kv_ref;
}
