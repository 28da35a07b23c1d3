/* cpu_memory.c: the backend and its threads, KV pages and recurrent states. Layout of a page: layers of the group one after the
 * other, each K of all heads, then V of all heads; the layout of one head is in kernels.h. */
#include <string.h>
#include "backend/cpu/cpu_int.h"

cera_status cera_backend_cpu_create(const cera_cpu_options *o, cera_backend **out, cera_error *e) {
    cera_backend *b = cera_alloc(1, sizeof *b);
    if (!b) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for the CPU backend");
    cera_cpu_tier tier = o->tier < 0 ? cera_cpu_best_tier() : (cera_cpu_tier)o->tier;
    if (tier >= CERA_TIER_COUNT || !cera_cpu_has_tier(tier)) {
        cera_free(b);
        return cera_fail(e, CERA_ERR_UNSUPPORTED, "this processor lacks tier %s",
                         tier < CERA_TIER_COUNT ? cera_cpu_tier_name(tier) : "?");
    }
    cera_kernels_init(&b->k, tier);
    cera_status status = cera_pool_create(o->n_threads > 0 ? o->n_threads : cera_cpu_allowed_threads(), &b->pool, e);
    if (status != CERA_OK) {
        cera_free(b);
        return status;
    }
    *out = b;
    return CERA_OK;
}

void cera_backend_destroy(cera_backend *b) {
    if (!b) return;
    cera_pool_destroy(b->pool);
    cera_free(b);
}

int cera_backend_threads(const cera_backend *b) { return cera_pool_size(b->pool); }
const char *cera_backend_tier(const cera_backend *b) { return cera_cpu_tier_name(b->k.tier); }

uint64_t cera_page_bytes(const cera_program *p, int group) { return p->groups[group].page_bytes; }

cera_page *cera_page_create(cera_program *p, int group) {
    cera_page *page = cera_alloc(1, sizeof *page);
    if (!page) return NULL;
    page->group = group;
    page->memory = cera_alloc(1, p->groups[group].page_bytes);
    if (page->memory) return page;
    cera_free(page);
    return NULL;
}

void cera_page_destroy(cera_page *page) {
    if (!page) return;
    cera_free(page->memory);
    cera_free(page);
}

/* Whole pages are copied: which bytes belong to which token is the layout's business, and what lies behind n_tokens is
 * rewritten before anything sees it. */
void cera_page_copy(const cera_program *p, int group, cera_page *dst, const cera_page *src, int n_tokens) {
    if (n_tokens > 0) memcpy(dst->memory, src->memory, p->groups[group].page_bytes);
}

uint64_t cera_state_bytes(const cera_program *p) {
    return (uint64_t)p->plan->state_layers * (uint64_t)p->plan->state_width * sizeof(float);
}

cera_state *cera_state_create(cera_program *p) {
    if (!cera_state_bytes(p)) return NULL;
    cera_state *s = cera_alloc(1, sizeof *s);
    if (!s) return NULL;
    s->memory = cera_alloc(1, cera_state_bytes(p));
    if (s->memory) return s;
    cera_free(s);
    return NULL;
}

void cera_state_destroy(cera_state *s) {
    if (!s) return;
    cera_free(s->memory);
    cera_free(s);
}

void cera_state_copy(const cera_program *p, cera_state *dst, const cera_state *src) {
    memcpy(dst->memory, src->memory, cera_state_bytes(p));
}
