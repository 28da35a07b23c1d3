/* cpu_int.h: the CPU backend's own structures. A program is the plan with every value given a buffer, every operation the
 * kernels it will call, and every worker its scratch. Nothing here is seen outside backend/cpu. */
#ifndef CERA_BACKEND_CPU_INT_H
#define CERA_BACKEND_CPU_INT_H

#include "backend/backend.h"
#include "base/arena.h"
#include "base/pool.h"
#include "kernels/kernels.h"

struct cera_backend {
    cera_pool *pool;
    cera_kernels k;
};

/* A value's memory. f32 rows are kept when somebody reads them as such; each encoding that a matmul wants is written by the
 * operation that makes the value, so that one input feeding several matrices is encoded once. */
typedef struct cera_cpu_value {
    int width;
    bool want_f32;
    bool want[CERA_ENC_COUNT];      /* CERA_ENC_F32 stands for want_f32 */
    int f32_buffer;                 /* index into the program's buffers, -1: none */
    int enc_buffer[CERA_ENC_COUNT]; /* the same for Q8 and BF16 */
    float *f32;                     /* [rows][width] */
    cera_acts acts[CERA_ENC_COUNT]; /* laid out for the rows of the step in progress */
} cera_cpu_value;

typedef struct cera_cpu_buffer {
    size_t size;
    uint8_t *memory;
    int free_after; /* while compiling: operation after which it may be used again, -1: free now */
} cera_cpu_buffer;

/* Per worker; nothing in it outlives a task. */
typedef struct cera_cpu_scratch {
    float *tile[2]; /* [CERA_MATMUL_COLUMNS][32] */
    float *row;     /* [widest value] */
    float *scores;  /* [CERA_ATTEND_MAX_Q][256] */
    float *q;       /* [CERA_ATTEND_MAX_Q][widest d_k] */
    float *o;       /* [2][CERA_ATTEND_MAX_Q][widest d_v] */
} cera_cpu_scratch;

struct cera_page {
    int group;
    uint8_t *memory;
};

struct cera_state {
    float *memory; /* [state_layers][state_width] */
};

/* Where a layer's heads lie in a page of its group: K of all heads, then V of all heads, layer after layer. */
typedef struct cera_cpu_group {
    size_t k_head_bytes, v_head_bytes, layer_bytes, page_bytes;
} cera_cpu_group;

typedef struct cera_cpu_op {
    const cera_op *op;
    void (*run)(struct cera_program *p, struct cera_cpu_op *op);
    cera_matmul_fn fn[3]; /* of w[0..2] */
    const float *vec[6];  /* f32 copies or views of vector weights: w0, w1, w2, bias0, bias1, bias2 */
    uint64_t runs;
    double seconds, bytes, macs; /* totals while profiling; run() adds bytes and macs */
} cera_cpu_op;

/* One contiguous run of rows of a sequence in the step. */
typedef struct cera_cpu_run {
    int first, n, sequence;
} cera_cpu_run;

struct cera_program {
    cera_backend *backend;
    const cera_plan *plan;
    cera_arena *arena;
    cera_kv_type k_type, v_type;
    int max_rows, max_outputs;
    int widest, widest_k, widest_v, most_heads;
    cera_cpu_group *groups;
    cera_cpu_value *values;
    cera_cpu_buffer *buffers;
    int n_buffers;
    cera_cpu_op *ops;
    cera_cpu_scratch *scratch; /* [threads] */
    float *cos_sin;            /* [n_ropes][max_rows][2][most pairs] */
    int most_pairs;
    float *partials; /* attention: [wave slots][heads][d_v + 2] */
    size_t partial_slots;
    float *zeros;       /* [widest d_v]: the value of an attention sink */
    cera_cpu_run *runs; /* [max_rows] */
    int n_runs;
    /* logits and experts */
    int32_t *output_rows; /* [max_rows] */
    void *output_memory;
    float *logits;            /* [max_outputs][n_vocab] */
    struct cera_cpu_moe *moe; /* NULL: no experts in the plan */
    const cera_step *step;    /* the one in progress */
    int n_rows;
    int64_t ticket;
    bool profiling;
    uint64_t work_bytes;
};

/* ---- helpers of cpu_step.c -------------------------------------------------------------------------------------- */

static inline const cera_kernels *cera_cpu_k(const cera_program *p) { return &p->backend->k; }
/* Runs the tasks on the pool, or in place when there is only one. */
void cera_cpu_parallel(cera_program *p, int n_tasks, cera_pool_fn fn, void *ctx);
/* Stores n <= any elements of one row from `first` (a multiple of 32 when the value is encoded) in every form that is wanted.
 */
void cera_cpu_emit(cera_program *p, cera_cpu_value *v, int row, int first, int n, const float *data);
/* Encodes all rows of a value whose f32 rows are complete (for operations that do not emit). */
void cera_cpu_encode_rows(cera_program *p, cera_cpu_value *v);
static inline float *cera_cpu_row(const cera_cpu_value *v, int row) { return v->f32 + (size_t)row * (size_t)v->width; }

/* ---- the operations, one file a kind or a few ------------------------------------------------------------------- */

void cera_cpu_run_embed(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_norm(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_matmul(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_glu(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_rope_kv(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_attend(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_heads(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_shortconv(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_gate(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_route(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_experts(cera_program *p, cera_cpu_op *op);
void cera_cpu_run_logits(cera_program *p, cera_cpu_op *op);

/* Fills cos_sin for the step's positions. */
void cera_cpu_rope_tables(cera_program *p);
/* Memory that expert operations share; called once by compile. */
cera_status cera_cpu_moe_prepare(cera_program *p, cera_error *e);
/* tile[c][0..n) = act(tile + bias) in place, for all columns. */
void cera_cpu_tile_bias(float *tile, int n_cols, int n, const float *bias);

#endif
