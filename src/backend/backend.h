/* backend.h: what the engine asks of a device. compile() turns a plan into a program; pages and state live in the backend's
 * memory; submit() runs one step. One step at a time per program. */
#ifndef CERA_BACKEND_BACKEND_H
#define CERA_BACKEND_BACKEND_H

#include <stdatomic.h>
#include "plan/plan.h"

typedef struct cera_backend cera_backend; /* a device: its threads, its kernels */
typedef struct cera_program cera_program; /* a plan compiled for it */
typedef struct cera_page cera_page;       /* 64 tokens x the layers of one KV group; reference counts are the engine's */
typedef struct cera_state cera_state;     /* recurrent state of one sequence */

/* Values are those of the kernels' cera_kv_type, plus AUTO. */
typedef enum { CERA_CACHE_AUTO = -1, CERA_CACHE_F32, CERA_CACHE_F16, CERA_CACHE_BF16 } cera_cache_type;

typedef struct cera_cpu_options {
    int n_threads; /* 0: cera_cpu_allowed_threads */
    int tier;      /* cera_cpu_tier, or -1 for the best */
} cera_cpu_options;

typedef struct cera_compile_options {
    cera_cache_type k_type, v_type;
    int max_rows;    /* rows of a step at most (>= 1) */
    int max_outputs; /* logits rows handed out in one piece; <= 0: a default that keeps a piece under 8 MiB */
} cera_compile_options;

enum { CERA_WANT_NONE = 0, CERA_WANT_LOGITS = 1, CERA_WANT_HIDDEN = 2 };

/* One row of a step. */
typedef struct cera_row {
    int32_t token;          /* id, or -1 when embedding or ticket_row is used */
    const float *embedding; /* [n_embd], or NULL */
    int64_t ticket;         /* with ticket_row: this row's token is the arg max of that row of an earlier step; -1: none */
    int32_t ticket_row;
    int32_t position[4]; /* rotary positions; [0] unless M-RoPE */
    int32_t index;       /* place in the cache of its sequence */
    int32_t visible_end; /* keys [0, visible_end) are seen (and the window); index + 1 when causal */
    int32_t sequence;    /* index into step->sequences */
    int32_t adapter;     /* adapter set, -1: none */
    uint32_t want;       /* CERA_WANT_* */
} cera_row;

/* Where a sequence's memory is. Rows of one sequence stand in ascending index order in a step, without gaps. */
typedef struct cera_sequence_view {
    cera_page *const *const *pages; /* [n_groups][page index]: page that holds tokens 64*i..; NULL where a window has let go */
    const cera_state *state_in;     /* state before the sequence's first row; NULL: zeros */
    cera_state *state_out; /* state after its last row; differs from state_in (a step that fails leaves state_in as it was) */
} cera_sequence_view;

typedef struct cera_step {
    const cera_row *rows;
    int n_rows;
    const cera_sequence_view *sequences;
    int n_sequences;
    const atomic_int *cancel; /* polled between operations; NULL: never */
    /* Called during the step on the submitting thread, rows ascending: logits of rows that want them, [n][n_vocab], valid in
     * the call. */
    void (*on_logits)(void *ctx, const int32_t *rows, int n, const float *logits);
    void (*on_hidden)(void *ctx, const int32_t *rows, int n, const float *hidden); /* [n][n_embd] final normalised states */
    void *ctx;
} cera_step;

typedef struct cera_op_profile {
    const cera_op *op;
    const char *what; /* "MATMUL3 blk.0 q4_0" */
    const char *kernel;
    uint64_t runs;
    double seconds, bytes, macs; /* totals; bytes of weights and pages read, multiply-accumulates */
} cera_op_profile;

cera_status cera_backend_cpu_create(const cera_cpu_options *o, cera_backend **out, cera_error *e);
void cera_backend_destroy(cera_backend *b);
int cera_backend_threads(const cera_backend *b);
const char *cera_backend_tier(const cera_backend *b);

/* The plan, and the weights it points at, must outlive the program. */
cera_status cera_program_compile(cera_backend *b, const cera_plan *plan, const cera_compile_options *o, cera_program **out,
                                 cera_error *e);
void cera_program_destroy(cera_program *p);
uint64_t cera_program_bytes(const cera_program *p);         /* work memory it holds */
cera_cache_type cera_program_k_type(const cera_program *p); /* what auto became */
cera_cache_type cera_program_v_type(const cera_program *p);

uint64_t cera_page_bytes(const cera_program *p, int group);
cera_page *cera_page_create(cera_program *p, int group); /* zeroed; NULL: out of memory */
void cera_page_destroy(cera_page *page);
void cera_page_copy(const cera_program *p, int group, cera_page *dst, const cera_page *src,
                    int n_tokens);              /* the first n tokens */
cera_state *cera_state_create(cera_program *p); /* zeroed; NULL: out of memory, or the plan has no state */
void cera_state_destroy(cera_state *s);
void cera_state_copy(const cera_program *p, cera_state *dst, const cera_state *src);
uint64_t cera_state_bytes(const cera_program *p);

/* Runs a step. The CPU backend has finished when submit returns; wait gives its result (CERA_ERR_CANCELLED, _NUMERIC, ...).
 * A step that does not end in CERA_OK leaves pages below the rows' indices and every state_in as they were. Nothing allocates.
 */
cera_status cera_program_submit(cera_program *p, const cera_step *step, int64_t *ticket, cera_error *e);
cera_status cera_program_poll(cera_program *p, int64_t ticket, bool *done, cera_error *e);
cera_status cera_program_wait(cera_program *p, int64_t ticket, cera_error *e);

/* Profile: off by default; when on, every operation is timed. */
void cera_program_profile(cera_program *p, bool on);
int cera_program_n_profiles(const cera_program *p);
void cera_program_profile_at(const cera_program *p, int i, cera_op_profile *out);
/* "MATMUL blk.0.attn_output.weight q4_0 [2048, 2048] + x" : one line an operation, for cera inspect --plan. */
int cera_program_describe(const cera_program *p, int op, char *out, int size);

#endif
