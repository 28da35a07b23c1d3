/* fit.c: the memory a model and its cache need, against what is there. Numbers come from the plan alone; the budget it hands on
 * is kept by kv.c. Messages give sizes in binary units and say what would fit. */
#include "engine/fit.h"

#include <stdio.h>

enum { LEAST_CONTEXT = 256 /* a model whose cache cannot hold so many tokens is not worth loading */ };

static uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
static uint64_t multiply(uint64_t a, uint64_t b) { return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

/* Bytes of one token in one group. A V that is part of K counts too: the CPU backend keeps it in V's own layout. */
static uint64_t token_bytes(const cera_kv_group *g, int k_bytes, int v_bytes) {
    const uint64_t k = multiply((uint64_t)g->d_k, (uint64_t)k_bytes), v = multiply((uint64_t)g->d_v, (uint64_t)v_bytes);
    return multiply(multiply((uint64_t)g->n_layers, (uint64_t)g->n_head_kv), add(k, v));
}

uint64_t cera_fit_cache_bytes(const cera_plan *plan, int k_bytes, int v_bytes, int32_t ubatch, int64_t n_tokens) {
    uint64_t total = multiply(2 * sizeof(float), multiply((uint64_t)plan->state_layers, (uint64_t)plan->state_width));
    for (int i = 0; i < plan->n_groups; i++) {
        const cera_kv_group *g = &plan->groups[i];
        int64_t n = n_tokens;
        /* A window holds its keys, the rows of a step before older pages go, and two pages of slack (kv.c). */
        if (g->window > 0 && n > (int64_t)g->window + ubatch + 2 * CERA_PAGE_TOKENS)
            n = (int64_t)g->window + ubatch + 2 * CERA_PAGE_TOKENS;
        const uint64_t pages = (uint64_t)((n + CERA_PAGE_TOKENS - 1) / CERA_PAGE_TOKENS);
        total = add(total, multiply(pages, multiply(CERA_PAGE_TOKENS, token_bytes(g, k_bytes, v_bytes))));
    }
    return total;
}

uint64_t cera_fit_bytes_per_1k(const cera_plan *plan, int k_bytes, int v_bytes) {
    uint64_t total = 0;
    for (int i = 0; i < plan->n_groups; i++)
        total = add(total, multiply(1000, token_bytes(&plan->groups[i], k_bytes, v_bytes)));
    return total;
}

/* Buffers of a step, roughly, before a backend has said what it takes: eight of the widest values. */
static uint64_t work_bytes(const cera_plan *plan, int32_t ubatch) {
    int widest = plan->n_embd;
    for (int i = 0; i < plan->n_values; i++) widest = plan->value_width[i] > widest ? plan->value_width[i] : widest;
    return multiply(8 * sizeof(float), multiply((uint64_t)widest, (uint64_t)ubatch));
}

/* The longest context of at most n_max tokens whose cache fits. */
static int32_t longest(const cera_plan *plan, const cera_fit_request *r, uint64_t budget, int32_t n_max) {
    int32_t low = 0, high = n_max;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (cera_fit_cache_bytes(plan, r->k_bytes, r->v_bytes, r->ubatch, middle) <= budget)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

typedef struct {
    char text[24];
} size_text;

static size_text size_of(uint64_t bytes) {
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    int u = 0;
    while (v >= 1024.0 && u < 6) v /= 1024.0, u++;
    size_text t;
    snprintf(t.text, sizeof t.text, u == 0 ? "%.0f %s" : "%.1f %s", v, unit[u]);
    return t;
}

static cera_status too_large(const cera_plan *plan, const cera_fit_request *r, uint64_t work, int32_t wanted, int32_t fits,
                             cera_error *e) {
    char advice[96];
    if (fits >= LEAST_CONTEXT)
        snprintf(advice, sizeof advice, "a context of %d tokens would fit", (int)fits);
    else {
        const uint64_t rest = add(work, cera_fit_cache_bytes(plan, r->k_bytes, r->v_bytes, r->ubatch, LEAST_CONTEXT));
        const uint64_t left = r->available_bytes > rest ? r->available_bytes - rest : 0;
        snprintf(advice, sizeof advice, "a file with at most %s of weights would fit", size_of(left).text);
    }
    return cera_fail(
        e, CERA_ERR_MEMORY,
        "%s: does not fit: %s of weights, %s of work memory and %s of cache for %d tokens (%s per 1,000); %s are available; %s",
        r->path, size_of(r->weight_bytes).text, size_of(work).text,
        size_of(cera_fit_cache_bytes(plan, r->k_bytes, r->v_bytes, r->ubatch, wanted)).text, (int)wanted,
        size_of(cera_fit_bytes_per_1k(plan, r->k_bytes, r->v_bytes)).text, size_of(r->available_bytes).text, advice);
}

cera_status cera_fit_context(const cera_plan *plan, const cera_fit_request *r, cera_fit *out, cera_error *e) {
    const int32_t wanted = r->n_ctx > 0 ? r->n_ctx : plan->n_ctx_train;
    if (r->available_bytes == 0) {
        *out = (cera_fit){.n_ctx = wanted};
        return CERA_OK;
    }
    const uint64_t work = work_bytes(plan, r->ubatch), fixed = add(r->weight_bytes, work);
    const uint64_t budget = r->available_bytes > fixed ? r->available_bytes - fixed : 0;
    const int32_t fits = longest(plan, r, budget, wanted);
    const int32_t least = r->n_ctx > 0 || wanted < LEAST_CONTEXT ? wanted : LEAST_CONTEXT;
    if (budget == 0 || fits < least) return too_large(plan, r, work, r->n_ctx > 0 ? wanted : least, fits, e);
    *out = (cera_fit){.n_ctx = fits, .cache_bytes = budget};
    return CERA_OK;
}
