/* fit.h: will a model fit, and with how long a context? Answered from the plan and the sizes in the file, before anything large
 * is read or allocated. */
#ifndef CERA_ENGINE_FIT_H
#define CERA_ENGINE_FIT_H

#include "plan/plan.h"

enum { CERA_PAGE_TOKENS = 64 };

typedef struct cera_fit_request {
    const char *path;         /* for messages */
    uint64_t weight_bytes;    /* that still have to come into memory */
    uint64_t available_bytes; /* 0: unknown, everything fits */
    int k_bytes, v_bytes;     /* of a cache element */
    int32_t n_ctx;            /* asked for; 0: the model's own, less if memory holds less */
    int32_t ubatch;
} cera_fit_request;

typedef struct cera_fit {
    int32_t n_ctx;
    uint64_t cache_bytes; /* budget for pages and states; 0: unknown */
} cera_fit;

/* Bytes of pages and state that one session of n tokens takes at most; windowed groups count their window. Saturates. */
uint64_t cera_fit_cache_bytes(const cera_plan *plan, int k_bytes, int v_bytes, int32_t ubatch, int64_t n_tokens);
/* Bytes of 1,000 tokens in every group, windows not counted. */
uint64_t cera_fit_bytes_per_1k(const cera_plan *plan, int k_bytes, int v_bytes);

cera_status cera_fit_context(const cera_plan *plan, const cera_fit_request *r, cera_fit *out, cera_error *e);

#endif
