/* kv.c: page counts, page tables, the budget. See kv.h. */
#include "engine/kv.h"

#include <limits.h>
#include <string.h>

#include "base/arena.h"

/* ---- the budget ---- */

cera_status cera_kv_init(cera_kv *kv, cera_program *program, const cera_plan *plan, uint64_t budget_bytes, cera_error *e) {
    *kv = (cera_kv){.program = program, .plan = plan, .budget_bytes = budget_bytes};
    if (pthread_mutex_init(&kv->lock, NULL) != 0) return cera_fail(e, CERA_ERR_MEMORY, "cannot create a lock");
    kv->ready = true;
    return CERA_OK;
}

void cera_kv_deinit(cera_kv *kv) {
    if (kv->ready) pthread_mutex_destroy(&kv->lock);
    kv->ready = false;
}

uint64_t cera_kv_used(cera_kv *kv) {
    pthread_mutex_lock(&kv->lock);
    const uint64_t used = kv->used_bytes;
    pthread_mutex_unlock(&kv->lock);
    return used;
}

cera_status cera_kv_charge(cera_kv *kv, uint64_t bytes, cera_error *e) {
    pthread_mutex_lock(&kv->lock);
    const uint64_t used = kv->used_bytes;
    const bool fits = kv->budget_bytes == 0 || (bytes <= kv->budget_bytes && used <= kv->budget_bytes - bytes);
    if (fits) kv->used_bytes += bytes;
    pthread_mutex_unlock(&kv->lock);
    if (fits) return CERA_OK;
    return cera_fail(e, CERA_ERR_MEMORY, "KV cache: %llu bytes more are needed; %llu of %llu are in use",
                     (unsigned long long)bytes, (unsigned long long)used, (unsigned long long)kv->budget_bytes);
}

void cera_kv_give(cera_kv *kv, uint64_t bytes) {
    pthread_mutex_lock(&kv->lock);
    kv->used_bytes -= bytes;
    pthread_mutex_unlock(&kv->lock);
}

/* ---- pages ---- */

static cera_kv_page *page_take(cera_kv *kv, int group, cera_error *e) {
    const uint64_t bytes = cera_page_bytes(kv->program, group);
    if (cera_kv_charge(kv, bytes, e) != CERA_OK) return NULL;
    cera_kv_page *p = cera_alloc(1, sizeof *p);
    if (p) p->page = cera_page_create(kv->program, group);
    if (p && p->page) {
        p->refs = 1;
        return p;
    }
    cera_free(p);
    cera_kv_give(kv, bytes);
    cera_fail(e, CERA_ERR_MEMORY, "KV cache: out of memory for a page of %llu bytes", (unsigned long long)bytes);
    return NULL;
}

static void page_unref(cera_kv *kv, int group, cera_kv_page *p) {
    if (!p) return;
    pthread_mutex_lock(&kv->lock);
    const bool last = --p->refs == 0;
    if (last) kv->used_bytes -= cera_page_bytes(kv->program, group);
    pthread_mutex_unlock(&kv->lock);
    if (!last) return;
    cera_page_destroy(p->page);
    cera_free(p);
}

static bool page_shared(cera_kv *kv, const cera_kv_page *p) {
    pthread_mutex_lock(&kv->lock);
    const bool shared = p->refs > 1;
    pthread_mutex_unlock(&kv->lock);
    return shared;
}

/* ---- tables ---- */

static cera_status table_grow(cera_kv_table *t, int n, cera_error *e) {
    if (n <= t->capacity) return CERA_OK;
    const size_t old = (size_t)t->capacity, capacity = (size_t)n + old / 2 + 8;
    cera_page **pages = capacity > INT_MAX ? NULL : cera_alloc_grow(t->pages, old, capacity, sizeof *pages);
    if (pages) t->pages = pages;
    cera_kv_page **owned = pages ? cera_alloc_grow(t->owned, old, capacity, sizeof *owned) : NULL;
    if (!owned) return cera_fail(e, CERA_ERR_MEMORY, "KV cache: out of memory for a table of %d pages", n);
    t->owned = owned;
    t->capacity = (int)capacity;
    return CERA_OK;
}

static void set_page(cera_kv_table *t, int i, cera_kv_page *p) {
    t->owned[i] = p;
    t->pages[i] = p ? p->page : NULL;
}

/* Before token `from` is written, its page must be this session's alone. */
static cera_status make_own(cera_kv *kv, int group, cera_kv_table *t, int32_t from, cera_error *e) {
    const int i = from / CERA_PAGE_TOKENS, kept = from % CERA_PAGE_TOKENS;
    if (i >= t->n || !t->owned[i] || !page_shared(kv, t->owned[i])) return CERA_OK;
    cera_kv_page *copy = page_take(kv, group, e);
    if (!copy) return CERA_ERR_MEMORY;
    if (kept > 0) cera_page_copy(kv->program, group, copy->page, t->pages[i], kept);
    page_unref(kv, group, t->owned[i]);
    set_page(t, i, copy);
    return CERA_OK;
}

cera_status cera_kv_table_prepare(cera_kv *kv, int group, cera_kv_table *t, int32_t from, int32_t end, cera_error *e) {
    const int n = (int)(((int64_t)end + CERA_PAGE_TOKENS - 1) / CERA_PAGE_TOKENS);
    CERA_TRY(table_grow(t, n, e));
    CERA_TRY(make_own(kv, group, t, from, e));
    while (t->n < n) {
        cera_kv_page *p = page_take(kv, group, e);
        if (!p) return CERA_ERR_MEMORY;
        set_page(t, t->n++, p);
    }
    return CERA_OK;
}

void cera_kv_table_trim(cera_kv *kv, int group, cera_kv_table *t, int32_t n) {
    const int keep = (int)(((int64_t)n + CERA_PAGE_TOKENS - 1) / CERA_PAGE_TOKENS);
    while (t->n > keep) {
        t->n--;
        page_unref(kv, group, t->owned[t->n]);
        set_page(t, t->n, NULL);
    }
    if (t->first > t->n) t->first = t->n;
}

/* The smallest index that a token at index n sees. */
static int32_t oldest_key(const cera_kv_group *g, int32_t n) {
    return g->window > 0 && n - g->window + 1 > 0 ? n - g->window + 1 : 0;
}

void cera_kv_table_slide(cera_kv *kv, int group, cera_kv_table *t, int32_t n) {
    const cera_kv_group *g = &kv->plan->groups[group];
    if (g->window <= 0 || n < CERA_PAGE_TOKENS) return;
    const int first = oldest_key(g, n - CERA_PAGE_TOKENS) / CERA_PAGE_TOKENS;
    for (; t->first < first && t->first < t->n; t->first++) {
        page_unref(kv, group, t->owned[t->first]);
        set_page(t, t->first, NULL);
    }
}

bool cera_kv_table_reaches(const cera_kv *kv, int group, const cera_kv_table *t, int32_t n) {
    return n == 0 || (int64_t)t->first * CERA_PAGE_TOKENS <= oldest_key(&kv->plan->groups[group], n);
}

cera_status cera_kv_table_share(cera_kv *kv, int group, cera_kv_table *dst, const cera_kv_table *src, cera_error *e) {
    (void)group;
    CERA_TRY(table_grow(dst, src->n, e));
    pthread_mutex_lock(&kv->lock);
    for (int i = 0; i < src->n; i++) {
        if (src->owned[i]) src->owned[i]->refs++;
        set_page(dst, i, src->owned[i]);
    }
    pthread_mutex_unlock(&kv->lock);
    dst->n = src->n;
    dst->first = src->first;
    return CERA_OK;
}

void cera_kv_table_deinit(cera_kv *kv, int group, cera_kv_table *t) {
    cera_kv_table_trim(kv, group, t, 0);
    cera_free(t->pages);
    cera_free(t->owned);
    *t = (cera_kv_table){0};
}
