/* kv.h: the pages of the KV cache and who holds them. A page is 64 tokens of the layers of one KV group; what is in it is the
 * backend's business. Pages are taken when they are needed, counted, shared between sessions, copied before a shared one is
 * written, and returned when the last holder lets go. A budget bounds all of them together.
 *
 * Any thread may call these for tables of its own; the counts are behind a lock. Nothing here runs during a step. */
#ifndef CERA_ENGINE_KV_H
#define CERA_ENGINE_KV_H

#include <pthread.h>

#include "backend/backend.h"
#include "engine/fit.h"

typedef struct cera_kv {
    cera_program *program;
    const cera_plan *plan;
    uint64_t budget_bytes, used_bytes; /* budget 0: none */
    pthread_mutex_t lock;
    bool ready;
} cera_kv;

typedef struct cera_kv_page {
    cera_page *page;
    int refs;
} cera_kv_page;

/* One session's pages of one group. pages[i] holds tokens 64 i .. 64 i + 63; NULL below `first`, where a window has let go. */
typedef struct cera_kv_table {
    cera_page **pages;    /* what the backend reads */
    cera_kv_page **owned; /* the same pages, counted */
    int n, capacity, first;
} cera_kv_table;

cera_status cera_kv_init(cera_kv *kv, cera_program *program, const cera_plan *plan, uint64_t budget_bytes, cera_error *e);
void cera_kv_deinit(cera_kv *kv);
uint64_t cera_kv_used(cera_kv *kv);
/* Takes bytes from the budget for something that is no page (recurrent state); give them back with give. */
cera_status cera_kv_charge(cera_kv *kv, uint64_t bytes, cera_error *e);
void cera_kv_give(cera_kv *kv, uint64_t bytes);

/* Makes the table ready for tokens [from, end) to be written: a shared page that holds `from` is replaced by a copy of what
 * stands before it, missing pages are taken. On failure the table holds at least what it held, and trim puts it right. */
cera_status cera_kv_table_prepare(cera_kv *kv, int group, cera_kv_table *t, int32_t from, int32_t end, cera_error *e);
/* Lets go of pages that hold none of the first n tokens. */
void cera_kv_table_trim(cera_kv *kv, int group, cera_kv_table *t, int32_t n);
/* Lets go of pages that no token from index n - 64 on can see, in a group with a window. The 64 tokens of slack let a session
 * go back a little (rejected drafts, a regenerated token) without losing its cache. */
void cera_kv_table_slide(cera_kv *kv, int group, cera_kv_table *t, int32_t n);
/* Whether a token at index n finds every key that its window covers. */
bool cera_kv_table_reaches(const cera_kv *kv, int group, const cera_kv_table *t, int32_t n);
/* dst, which must be empty, shares the pages of src. */
cera_status cera_kv_table_share(cera_kv *kv, int group, cera_kv_table *dst, const cera_kv_table *src, cera_error *e);
void cera_kv_table_deinit(cera_kv *kv, int group, cera_kv_table *t);

#endif
