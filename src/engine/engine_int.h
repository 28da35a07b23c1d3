/* engine_int.h: what the engine and a session are made of, for the files of this folder. */
#ifndef CERA_ENGINE_ENGINE_INT_H
#define CERA_ENGINE_ENGINE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "engine/kv.h"
#include "model/model.h"
#include "text/vocab.h"

struct cera_tokenizer {
    cera_vocab *vocab;
};

struct cera_engine {
    cera_gguf *gguf;
    cera_model *model;
    const cera_plan *plan;
    cera_backend *backend;
    cera_program *program;
    cera_tokenizer tokenizer;
    cera_kv kv;
    int32_t n_ctx, ubatch;
    atomic_int refs; /* the caller's handle and every session */

    /* Steps run one after another; what follows belongs to the one that holds the lock. */
    pthread_mutex_t step_lock;
    bool has_lock;
    cera_row *rows;            /* [ubatch] */
    cera_sequence_view *views; /* [n_views] */
    int n_views;
};

/* A session: one sequence. n tokens are evaluated; tokens[n_tokens - 1] may be one that was generated and is not (n_tokens - n
 * <= 1). */
struct cera_session {
    cera_engine *engine;
    int32_t n_ctx, ubatch;
    int32_t n;
    int32_t *tokens;
    int32_t n_tokens, capacity;
    cera_kv_table *tables;          /* [n_groups] */
    cera_page *const **page_tables; /* [n_groups]: tables[i].pages, as the backend wants them */
    /* Recurrent state, twice: a step reads one and writes the other. state_at: tokens a state stands after, 0: it holds
     * nothing. */
    cera_state *state[2];
    int32_t state_at[2];
    int current;
    float *logits; /* [n_vocab] after token n, when has_logits */
    bool has_logits;
    atomic_int cancel;
    cera_batch_row *rows;     /* [ubatch] for append */
    int step_slot, step_rows; /* during a step: place in the batch, rows seen */
};

/* engine.c */
void cera_engine_ref(cera_engine *engine);

/* session.c: tokens and state after a step that has succeeded, or not. */
cera_status cera_session_prepare(cera_session *s, int n_rows, cera_error *e);
void cera_session_commit(cera_session *s);
void cera_session_rollback(cera_session *s);

#endif
