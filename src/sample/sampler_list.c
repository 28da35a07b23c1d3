/* sampler_list.c: operations on the list of candidates that stages are made of: maximum, the k largest, a threshold, softmax
 * weights, the draw. No stage, no option is known here.
 *
 * Cost. A vocabulary has 32k to 262k entries and every token pays for it, so nothing sorts or exponentiates all of them unless
 * the caller asks for all. Selection: one vectorised pass for the maximum of each block of 64; the k-th largest of those maxima
 * is a lower bound of the k-th largest logit, because k blocks hold a logit that is at least as large; only blocks that reach
 * the bound are looked into, and only what reaches it is sorted. */
#include "sample/sampler.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"

/* ---- exp and log ---- */

/* Cephes' expf (S. Moshier): x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so that n ln 2 is exact, a polynomial in r,
 * and 2^n put into the exponent. Rounding by adding 1.5 * 2^23 keeps the loop free of branches and calls. */
static inline __attribute__((always_inline)) float exp_in_range(float x) {
    const float n = (x * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

float cera_sampler_exp(float x) { return x < -87.0f ? 0.0f : exp_in_range(x); }

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1)/(m + 1), |s| < 0.172.
 */
double cera_sampler_log(double x) {
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2.0;
        e--;
    }
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double sum = 0.0;
    for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
    return e * 0.69314718055994531 + 2.0 * s * sum;
}

/* x = n ln 2 + r with |r| <= ln 2 / 2; the series of e^r to r^17 / 17!, below half a unit in the last place. */
double cera_sampler_exp_f64(double x) {
    if (x > 700.0) x = 700.0;
    if (x < -700.0) return 0.0;
    const double n = floor(x * 1.4426950408889634 + 0.5),
                 r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double sum = 1.0;
    for (int k = 17; k >= 1; k--) sum = 1.0 + sum * r / k;
    return ldexp(sum, (int)n);
}

/* ---- maximum and selection ---- */

/* In 16 lanes and a fixed tree, so that the compiler may vectorise without reordering anything. n >= 1. */
static inline __attribute__((always_inline)) float maximum_body(const float *a, int n) {
    float lane[16];
    for (int l = 0; l < 16; l++) lane[l] = a[0];
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++) lane[l] = a[i + l] > lane[l] ? a[i + l] : lane[l];
    for (; i < n; i++) lane[0] = a[i] > lane[0] ? a[i] : lane[0];
    for (int w = 8; w > 0; w /= 2)
        for (int l = 0; l < w; l++) lane[l] = lane[l + w] > lane[l] ? lane[l + w] : lane[l];
    return lane[0];
}

/* Maxima of blocks of 64; returns the number of blocks. */
static inline __attribute__((always_inline)) int maxima_body(const float *restrict logit, int n, float *restrict out) {
    int b = 0, i = 0;
    for (; i + CERA_SAMPLER_BLOCK <= n; i += CERA_SAMPLER_BLOCK) out[b++] = maximum_body(logit + i, CERA_SAMPLER_BLOCK);
    if (i < n) out[b++] = maximum_body(logit + i, n - i);
    return b;
}

/* Whatever is not finite becomes -infinity, which has no weight. The comparison is false for NaN. */
static inline __attribute__((always_inline)) float take_body(float *restrict out, const float *restrict logits, int n) {
    for (int i = 0; i < n; i++) out[i] = fabsf(logits[i]) <= 3.402823466e38f ? logits[i] : -INFINITY;
    return maximum_body(out, n);
}

/* Loops over a whole vocabulary are compiled for wider registers too: the same operations in the same lanes, so the same bits,
 * in a quarter of the time. */
#if defined(__x86_64__)
#    define WIDE __attribute__((target("avx2")))
WIDE static float maximum_wide(const float *a, int n) { return maximum_body(a, n); }
WIDE static int maxima_wide(const float *logit, int n, float *out) { return maxima_body(logit, n, out); }
WIDE static float take_wide(float *out, const float *logits, int n) { return take_body(out, logits, n); }
static bool is_wide(void) { return cera_cpu_features() & CERA_CPU_AVX2; }
#else
#    define WIDE
#    define maximum_wide maximum_body
#    define maxima_wide maxima_body
#    define take_wide take_body
static bool is_wide(void) { return false; }
#endif

static float maximum(const float *a, int n) { return is_wide() ? maximum_wide(a, n) : maximum_body(a, n); }
static int block_maxima(const float *logit, int n, float *out) {
    return is_wide() ? maxima_wide(logit, n, out) : maxima_body(logit, n, out);
}

float cera_sampler_take_logits(float *out, const float *logits, int n) {
    return is_wide() ? take_wide(out, logits, n) : take_body(out, logits, n);
}

float cera_sampler_max(const cera_candidates *c) {
    if (c->n == 0) return -INFINITY;
    return c->sorted ? c->logit[0] : maximum(c->logit, c->n);
}

/* The k-th largest of a[n] (k from 1), by Hoare's quickselect with the middle as pivot; a is left reordered. Inputs that are
 * bad for the pivot cost time only: n is a 64th of a vocabulary. */
static float kth_largest(float *a, int n, int k) {
    int low = 0, high = n - 1;
    while (low < high) {
        const float pivot = a[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (a[i] > pivot) i++;
            while (a[j] < pivot) j--;
            if (i > j) break;
            const float t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            break;
    }
    return a[k - 1];
}

static inline int32_t id_at(const cera_candidates *c, int i) { return c->identity ? i : c->id[i]; }

static inline bool before(float la, int32_t ia, float lb, int32_t ib) { return la > lb || (la == lb && ia < ib); }

/* Heap sort: no recursion, no bad case. The root is what comes last, so that the result stands best first. */
static void sift_down(float *logit, int32_t *id, int n, int at) {
    for (int child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && before(logit[child], id[child], logit[child + 1], id[child + 1])) child++;
        if (!before(logit[at], id[at], logit[child], id[child])) return;
        const float l = logit[at];
        const int32_t d = id[at];
        logit[at] = logit[child], id[at] = id[child];
        logit[child] = l, id[child] = d;
        at = child;
    }
}

void cera_sampler_sort(float *logit, int32_t *id, int n) {
    for (int i = n / 2 - 1; i >= 0; i--) sift_down(logit, id, n, i);
    for (int last = n - 1; last > 0; last--) {
        const float l = logit[0];
        const int32_t d = id[0];
        logit[0] = logit[last], id[0] = id[last];
        logit[last] = l, id[last] = d;
        sift_down(logit, id, last, 0);
    }
}

/* Copies the candidates whose logit is >= threshold into pick_logit and pick_id, in order. Blocks below it are skipped. */
static int pick_from(cera_sampler *s, const cera_candidates *c, int n_blocks, float threshold) {
    int n = 0;
    for (int b = 0; b < n_blocks; b++) {
        if (s->block_max[b] < threshold) continue;
        const int from = b * CERA_SAMPLER_BLOCK, left = c->n - from;
        const int end = from + (left < CERA_SAMPLER_BLOCK ? left : CERA_SAMPLER_BLOCK);
        for (int i = from; i < end; i++) {
            if (c->logit[i] < threshold) continue;
            s->pick_logit[n] = c->logit[i];
            s->pick_id[n++] = id_at(c, i);
        }
    }
    return n;
}

void cera_sampler_take(cera_sampler *s, cera_candidates *c, int n) {
    memcpy(c->logit, s->pick_logit, (size_t)n * sizeof *c->logit);
    memcpy(c->id, s->pick_id, (size_t)n * sizeof *c->id);
    c->n = n;
    c->identity = false;
}

/* A bound that at least k logits reach, and not many more. From the maxima of blocks while there are more than k of them, else
 * the k-th largest itself, from a copy. */
static float bound_of_largest(cera_sampler *s, const cera_candidates *c, int n_blocks, int k) {
    if (k >= c->n) return -INFINITY;
    if (k < n_blocks) {
        float *scratch = s->block_max + n_blocks;
        memcpy(scratch, s->block_max, (size_t)n_blocks * sizeof *scratch);
        return kth_largest(scratch, n_blocks, k);
    }
    memcpy(s->weight, c->logit, (size_t)c->n * sizeof *s->weight);
    return kth_largest(s->weight, c->n, k);
}

int cera_sampler_pick_largest(cera_sampler *s, const cera_candidates *c, int k) {
    const int n_blocks = block_maxima(c->logit, c->n, s->block_max);
    const int n = pick_from(s, c, n_blocks, bound_of_largest(s, c, n_blocks, k));
    cera_sampler_sort(s->pick_logit, s->pick_id, n);
    return n;
}

void cera_sampler_keep_largest(cera_sampler *s, cera_candidates *c, int k) {
    if (c->sorted) {
        c->n = k < c->n ? k : c->n;
        return;
    }
    const int n = cera_sampler_pick_largest(s, c, k);
    cera_sampler_take(s, c, n < k ? n : k);
    c->sorted = true;
}

void cera_sampler_keep_from(cera_sampler *s, cera_candidates *c, float threshold) {
    if (c->sorted) {
        int n = 0;
        while (n < c->n && c->logit[n] >= threshold) n++;
        c->n = n;
        return;
    }
    const int n_blocks = block_maxima(c->logit, c->n, s->block_max);
    cera_sampler_take(s, c, pick_from(s, c, n_blocks, threshold));
}

/* ---- softmax and draw ---- */

/* f32 inside a block of 64 (16 lanes and a fixed tree), f64 across blocks: vectorised, and the error of the sum stays at a few
 * 1e-7 of it, as that of one exp. */
static inline __attribute__((always_inline)) float block_weights(const float *logit, int n, float max, float *weight) {
    float lane[16] = {0};
    /* Three loops: with the tests for -87 inside the exp, compilers make branches and leave the loop scalar. */
    for (int i = 0; i < n; i++) weight[i] = logit[i] - max < -87.0f ? -87.0f : logit[i] - max;
    for (int i = 0; i < n; i++) weight[i] = exp_in_range(weight[i]);
    for (int i = 0; i < n; i++) weight[i] = weight[i] < 1.65e-38f ? 0.0f : weight[i]; /* e^-87 */
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++) lane[l] += weight[i + l];
    for (int l = 0; i < n; i++, l++) lane[l] += weight[i];
    for (int w = 8; w > 0; w /= 2)
        for (int l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

/* weight[i], and of each block the sum into part[]; returns the sum of all. */
static inline __attribute__((always_inline)) double weights_body(const float *restrict logit, int n, float max,
                                                                 float *restrict weight, float *restrict part) {
    double sum = 0.0;
    for (int i = 0, b = 0; i < n; i += CERA_SAMPLER_BLOCK, b++) {
        const int size = n - i < CERA_SAMPLER_BLOCK ? n - i : CERA_SAMPLER_BLOCK;
        const float s = size == CERA_SAMPLER_BLOCK ? block_weights(logit + i, CERA_SAMPLER_BLOCK, max, weight + i)
                                                   : block_weights(logit + i, size, max, weight + i);
        if (part) part[b] = s;
        sum += (double)s;
    }
    return sum;
}

WIDE static double weights_wide(const float *logit, int n, float max, float *weight, float *part) {
    return weights_body(logit, n, max, weight, part);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double weights_widest(const float *logit, int n, float max, float *weight,
                                                                float *part) {
    return weights_body(logit, n, max, weight, part);
}
#endif

static double weights_of(const cera_candidates *c, float max, float *weight, float *part) {
#if defined(__x86_64__)
    if (cera_cpu_features() & CERA_CPU_AVX512F) return weights_widest(c->logit, c->n, max, weight, part);
#endif
    return is_wide() ? weights_wide(c->logit, c->n, max, weight, part) : weights_body(c->logit, c->n, max, weight, part);
}

double cera_sampler_weights(const cera_candidates *c, float max, float *weight) { return weights_of(c, max, weight, NULL); }

int cera_sampler_draw(cera_sampler *s, const cera_candidates *c, double u) {
    const float max = cera_sampler_max(c);
    float *part = s->block_max;
    const int n_parts = (c->n + CERA_SAMPLER_BLOCK - 1) / CERA_SAMPLER_BLOCK;
    const double target = u * weights_of(c, max, s->weight, part);
    double before = 0.0;
    int best = 0; /* rounding may leave the target just above the last sum: the last candidate with any weight then wins */
    for (int p = 0; p < n_parts; p++) {
        if (part[p] <= 0.0f) continue;
        const double after = before + (double)part[p];
        const int end = (p + 1) * CERA_SAMPLER_BLOCK;
        for (int i = p * CERA_SAMPLER_BLOCK; (after > target || p == n_parts - 1) && i < end && i < c->n; i++) {
            if (s->weight[i] <= 0.0f) continue;
            best = i;
            before += (double)s->weight[i];
            if (before > target) return best;
        }
        if (after > target) return best;
        for (int i = p * CERA_SAMPLER_BLOCK; i < end && i < c->n; i++) best = s->weight[i] > 0.0f ? i : best;
        before = after;
    }
    return best;
}

/* ---- the fewest that reach a sum ---- */

/* The last candidate of a selection: every larger logit is in it, and the first `ties` of those that equal it. */
typedef struct {
    float logit;
    int ties;
} cut;

/* Narrows logit[n] and weight[n], of which the smallest are not needed, to the candidate that makes the sum reach the target:
 * halves the range of logits, and keeps the half with the border. Their order is kept, so ties stay in the order of the list.
 */
static cut find_cut(float *logit, float *weight, int n, double target) {
    double above = 0.0;
    while (n > 1) {
        float low = logit[0], high = low;
        for (int i = 1; i < n; i++) {
            low = logit[i] < low ? logit[i] : low;
            high = logit[i] > high ? logit[i] : high;
        }
        if (low == high) break;
        float middle = low + (high - low) * 0.5f;
        if (!(middle > low)) middle = high; /* neighbours in f32 */
        double upper = 0.0;
        for (int i = 0; i < n; i++) upper += logit[i] >= middle ? (double)weight[i] : 0.0;
        const bool in_upper = above + upper >= target;
        if (!in_upper) above += upper;
        int kept = 0;
        for (int i = 0; i < n; i++) {
            const float l = logit[i], w = weight[i];
            logit[kept] = l;
            weight[kept] = w;
            kept += (l >= middle) == in_upper;
        }
        n = kept;
    }
    int ties = 1;
    for (above += (double)weight[0]; ties < n && above < target; ties++) above += (double)weight[ties];
    return (cut){logit[0], ties};
}

/* Whether any of 16 logits reaches the threshold. */
static bool any_from(const float *logit, float threshold) {
    int32_t any = 0;
    for (int i = 0; i < 16; i++) any |= logit[i] >= threshold;
    return any != 0;
}

static int pick_range(cera_sampler *s, const cera_candidates *c, int from, int end, float threshold, int n) {
    for (int i = from; i < end; i++) {
        if (c->logit[i] < threshold) continue;
        s->pick_logit[n] = c->logit[i];
        s->pick_weight[n] = s->weight[i];
        s->pick_id[n++] = id_at(c, i);
    }
    return n;
}

/* The candidates from the threshold on, with their weights, into pick_*; returns how many, *sum their weight. */
static int pick_weighted(cera_sampler *s, const cera_candidates *c, int n_blocks, float threshold, double *sum) {
    int n = 0;
    for (int b = 0; b < n_blocks; b++) {
        if (s->block_max[b] < threshold) continue;
        const int end = (b + 1) * CERA_SAMPLER_BLOCK < c->n ? (b + 1) * CERA_SAMPLER_BLOCK : c->n;
        int i = b * CERA_SAMPLER_BLOCK;
        for (; i + 16 <= end; i += 16)
            if (any_from(c->logit + i, threshold)) n = pick_range(s, c, i, i + 16, threshold, n);
        n = pick_range(s, c, i, end, threshold, n);
    }
    *sum = 0.0;
    for (int i = 0; i < n; i++) *sum += (double)s->pick_weight[i];
    return n;
}

/* Picks down to 4, 8, 16 ... below the maximum until the picks reach the target: most distributions are steep, and nearly all
 * is looked at once. */
void cera_sampler_keep_reaching(cera_sampler *s, cera_candidates *c, float p) {
    const int n_blocks = block_maxima(c->logit, c->n, s->block_max);
    const float max = maximum(s->block_max, n_blocks);
    const double target = (double)p * cera_sampler_weights(c, max, s->weight);
    int n = 0;
    double sum = 0.0;
    for (float depth = 4.0f; depth < 200.0f && (n == 0 || sum < target); depth *= 2.0f)
        n = pick_weighted(s, c, n_blocks, max - depth, &sum);
    memcpy(c->logit, s->pick_logit, (size_t)n * sizeof *c->logit); /* scratch: the list comes back from the picks */
    memcpy(s->weight, s->pick_weight, (size_t)n * sizeof *s->weight);
    const cut border = find_cut(c->logit, s->weight, n, target < sum ? target : sum);
    int kept = 0, ties = 0;
    for (int i = 0; i < n; i++) {
        const float l = s->pick_logit[i];
        if (l < border.logit || (l == border.logit && ties++ >= border.ties)) continue;
        c->logit[kept] = l;
        c->id[kept++] = s->pick_id[i];
    }
    c->n = kept;
    c->identity = false;
}

void cera_sampler_keep_marked(cera_candidates *c, const float *keep) {
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        if (keep[i] < 0.0f) continue;
        const int32_t id = id_at(c, i);
        c->logit[n] = c->logit[i];
        c->id[n++] = id;
    }
    c->n = n;
    c->identity = false;
}
