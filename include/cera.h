/* cera.h: the public interface of libcera. Everything a program may call is declared here; nothing else is exported.
 *
 * Status. Functions that can fail return cera_status and fill a cera_error (may be NULL) with one line that names the file,
 * key, tensor, field or byte at fault. Results go through out-pointers, placed last before the error, and are written only on
 * CERA_OK unless said otherwise. Arguments are checked: a NULL where an object is needed is CERA_ERR_ARGUMENT.
 *
 * Structs that the caller fills in, or has filled, start with their own size: `cera_engine_options o = {sizeof o};`. All other
 * fields zero means the default, so a program built against an older header keeps working with a newer library.
 *
 * Ownership. open/close for engines, files and tokenizers; create/destroy for sessions and samplers; close and destroy accept
 * NULL. Texts that a getter returns belong to the object and live as long as it does. Memory that a function hands over says so
 * and is released with cera_release.
 *
 * Threads. An engine and a tokenizer may be used from any number of threads; steps of one engine run one after another. A
 * session and a sampler belong to one thread at a time, except cera_session_cancel.
 */
#ifndef CERA_H
#define CERA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#    define CERA_API
#elif defined(__GNUC__)
#    define CERA_API __attribute__((visibility("default")))
#else
#    define CERA_API
#endif

/* ---- status and errors ------------------------------------------------------------------------------------------ */

typedef enum cera_status {
    CERA_OK = 0,
    CERA_ERR_ARGUMENT,    /* the caller passed something that cannot be used */
    CERA_ERR_IO,          /* a file could not be opened or read */
    CERA_ERR_FORMAT,      /* bytes from outside break the rules of their format */
    CERA_ERR_UNSUPPORTED, /* well-formed, but not something this build can do */
    CERA_ERR_NOT_FOUND,   /* a key, tensor or name that is needed is absent */
    CERA_ERR_MEMORY,      /* an allocation failed, or would not fit */
    CERA_ERR_LIMIT,       /* a stated limit was reached (context full, budget spent) */
    CERA_ERR_CANCELLED,   /* cancelled by the caller; state is as before the operation */
    CERA_ERR_NUMERIC      /* the model produced numbers that are not finite */
} cera_status;

enum { CERA_ERROR_TEXT = 1024 };

typedef struct cera_error {
    cera_status code;
    char message[CERA_ERROR_TEXT]; /* one line, no final newline, printable (control bytes escaped) */
} cera_error;

/* ---- the library and the machine ---------------------------------------------------------------------------------- */

CERA_API const char *cera_version(void); /* "0.1.0" */

/* Releases memory that a function of this header handed over. NULL is fine. */
CERA_API void cera_release(void *memory);

typedef struct cera_machine {
    size_t size;
    char cpu[128];         /* the processor's name, "" when the system does not say */
    char features[256];    /* of those that matter here, separated by blanks */
    char tiers[128];       /* the tiers that run on it, slowest first, separated by blanks */
    char best_tier[32];    /* the tier taken by default */
    int32_t threads;       /* threads this process may run at once (affinity, cpuset, cgroup quota) */
    uint64_t memory_bytes; /* memory it may still take; 0: unknown */
} cera_machine;

/* Fills m, whose size the caller has set. */
CERA_API cera_status cera_machine_get(cera_machine *m, cera_error *e);

/* Notes for the user that are no errors (a fallback taken, a doubtful key): one printable line each, silent until fn is set.
 * Set it before other threads use the library; it may be called from any of them. */
typedef enum cera_message_level { CERA_MESSAGE_DEBUG = 0, CERA_MESSAGE_INFO, CERA_MESSAGE_WARN } cera_message_level;
typedef void (*cera_message_fn)(void *ctx, cera_message_level level, const char *text);
CERA_API void cera_set_messages(cera_message_fn fn, void *ctx);

/* The path of the open mapped model file that holds this address, or NULL. Async-signal-safe: a program's SIGBUS handler asks
 * it which file was shortened while it was mapped. */
CERA_API const char *cera_mapped_path_at(const void *address);

/* ---- engine: a model, loaded once and shared ------------------------------------------------------------------------ */

typedef struct cera_engine cera_engine;
typedef struct cera_session cera_session;
typedef struct cera_tokenizer cera_tokenizer;
typedef struct cera_sampler cera_sampler;
typedef struct cera_grammar cera_grammar;
typedef struct cera_grammar_tokens cera_grammar_tokens; /* a vocabulary, indexed for masks */
typedef struct cera_grammar_state cera_grammar_state;   /* a place in a text */

/* Element types of the KV cache. AUTO: bf16 where the tier multiplies bf16, else f16. */
typedef enum cera_kv_dtype { CERA_KV_DTYPE_AUTO = 0, CERA_KV_DTYPE_F32, CERA_KV_DTYPE_F16, CERA_KV_DTYPE_BF16 } cera_kv_dtype;

/* Name to type ("f32", "f16", "bf16", "auto"); false when it is none of them. And back. */
CERA_API bool cera_kv_dtype_parse(const char *name, cera_kv_dtype *out);
CERA_API const char *cera_kv_dtype_name(cera_kv_dtype t);

/* Called while a file is read into memory (no_mmap). Returning false stops the load with CERA_ERR_CANCELLED. */
typedef bool (*cera_progress_fn)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

typedef struct cera_engine_options {
    size_t size;
    int32_t threads;  /* exactly so many; 0: as many as this process may run */
    const char *tier; /* name of a CPU tier of cera_machine.tiers; NULL: the best */
    int32_t context;  /* tokens a session may hold at most; 0: the model's own, or as many as memory holds if that is less */
    cera_kv_dtype kv_k, kv_v;
    int32_t ubatch;               /* rows of a step at most; 0: 512 */
    bool no_mmap;                 /* read the file into memory instead of mapping it */
    bool mlock;                   /* keep the weights from being paged out */
    bool allow_unknown_tokenizer; /* an unknown pre-tokenizer name falls back to the default one instead of failing */
    const char *const *overrides; /* [n_overrides] "key=type:value", type one of int, float, bool, str: replaces metadata */
    size_t n_overrides;
    cera_progress_fn progress;
    void *progress_ctx;
    uint64_t memory_bytes; /* budget for weights and caches; 0: what the machine and the cgroup leave */
} cera_engine_options;

/* Loads a GGUF file (v2 or v3; the first part of a split set opens all). options may be NULL. A model that cannot fit fails
 * with CERA_ERR_MEMORY before anything large is read; the message has the numbers and says what would fit. */
CERA_API cera_status cera_engine_open(const char *path, const cera_engine_options *options, cera_engine **out, cera_error *e);
/* The same from bytes that the caller keeps alive and unchanged until the engine is closed. name is used in messages. */
CERA_API cera_status cera_engine_open_memory(const char *name, const void *data, size_t size_bytes,
                                             const cera_engine_options *options, cera_engine **out, cera_error *e);
/* Sessions hold on to their engine, so it may be closed before them; its memory goes with the last of them. */
CERA_API void cera_engine_close(cera_engine *engine);

typedef struct cera_model_info {
    size_t size;
    const char *path, *arch, *name; /* name: "" when the file has none */
    const char *tier;               /* CPU tier that runs */
    int32_t threads;
    int32_t n_vocab, n_embd, n_layer;
    int32_t n_ctx_train; /* context the model was trained for */
    int32_t n_ctx;       /* tokens a session may hold */
    int32_t ubatch;      /* rows of a step at most */
    bool causal;
    cera_kv_dtype kv_k, kv_v; /* what auto became */
    uint64_t file_bytes;      /* all parts of the file */
    uint64_t weight_bytes;    /* tensors */
    uint64_t kv_bytes_per_1k; /* KV cache of 1,000 tokens of one session, windows not counted */
    uint64_t state_bytes;     /* recurrent state of one session; 0: none */
    uint64_t work_bytes;      /* buffers of a step */
    uint64_t kv_bytes;        /* KV pages in use now, all sessions */
    uint64_t memory_bytes;    /* budget for KV pages and states; 0: no limit known */
} cera_model_info;

/* Fills info, whose size the caller has set. */
CERA_API cera_status cera_engine_info(const cera_engine *engine, cera_model_info *info, cera_error *e);
CERA_API const cera_tokenizer *cera_engine_tokenizer(const cera_engine *engine); /* lives as long as the engine */
/* The file's chat template (tokenizer.chat_template), as long as the engine lives; NULL: it has none. size may be NULL; the
 * text need not end in a NUL. */
CERA_API const char *cera_engine_chat_template(const cera_engine *engine, size_t *size);

/* The plan: one line an operation ("MATMUL blk.0.attn_output.weight q4_0 [2048, 2048] + x"). Writes at most capacity bytes with
 * the final NUL; returns the length of the whole line, or -1 when op is out of range. */
CERA_API int32_t cera_engine_n_ops(const cera_engine *engine);
CERA_API int32_t cera_engine_describe_op(const cera_engine *engine, int32_t op, char *text, size_t capacity);

/* Times of the plan's operations, summed over the steps since profiling was switched on. Not while a step runs. */
typedef struct cera_profile_row {
    size_t size;
    const char *what;   /* operation and first tensor, "MATMUL3 blk.0 q4_0" */
    const char *kernel; /* the kernel that ran */
    const char *op;     /* "MATMUL3" */
    int32_t layer;      /* -1: outside the layers */
    uint64_t runs;
    double seconds, bytes, macs; /* totals: time; bytes of weights and pages read; multiply-accumulates */
} cera_profile_row;

CERA_API void cera_engine_profile(cera_engine *engine, bool on);
CERA_API int32_t cera_engine_n_profile_rows(const cera_engine *engine);
CERA_API cera_status cera_engine_profile_row(const cera_engine *engine, int32_t index, cera_profile_row *out, cera_error *e);

/* ---- tokenizer ------------------------------------------------------------------------------------------------------ */

typedef struct cera_tokenizer_options {
    size_t size;
    bool allow_unknown;           /* as allow_unknown_tokenizer above */
    const char *const *overrides; /* as above */
    size_t n_overrides;
} cera_tokenizer_options;

/* The tokenizer of a GGUF file (one that holds nothing but a vocabulary is enough), of a Hugging Face tokenizer.json, or of a
 * folder with one. options may be NULL. */
CERA_API cera_status cera_tokenizer_open(const char *path, const cera_tokenizer_options *options, cera_tokenizer **out,
                                         cera_error *e);
/* The same from bytes, which may go when it returns. name is used in messages. */
CERA_API cera_status cera_tokenizer_open_memory(const char *name, const void *data, size_t size_bytes,
                                                const cera_tokenizer_options *options, cera_tokenizer **out, cera_error *e);
CERA_API void cera_tokenizer_close(cera_tokenizer *tokenizer); /* not for an engine's own tokenizer */

enum {
    CERA_ENCODE_BOS = 1,      /* add BOS (and EOS, SEP) where the vocabulary says so */
    CERA_ENCODE_SPECIAL = 2,  /* control tokens written in the text become their ids */
    CERA_ENCODE_CONTINUES = 4 /* the text continues earlier text: no space is put before it */
};
enum {
    CERA_DECODE_SPECIAL = 1,  /* control tokens give their text; else nothing */
    CERA_DECODE_CONTINUES = 2 /* the ids continue earlier ones: a leading space that they stand for is kept */
};

/* Ids of size bytes of text into memory that is the caller's (cera_release), NULL when there are none. Bytes that are not UTF-8
 * have a stated result (docs/tokenizer.md). */
CERA_API cera_status cera_tokenizer_encode(const cera_tokenizer *t, const char *text, size_t size, unsigned flags,
                                           int32_t **ids, size_t *n_ids, cera_error *e);
/* The bytes that ids stand for, exactly (they need not be whole characters), into memory that is the caller's, with a final NUL
 * that size does not count. */
CERA_API cera_status cera_tokenizer_decode(const cera_tokenizer *t, const int32_t *ids, size_t n_ids, unsigned flags,
                                           char **text, size_t *size, cera_error *e);
/* Bytes of one token, borrowed; NULL when id is out of range. special: control tokens give their text. */
CERA_API const char *cera_tokenizer_piece(const cera_tokenizer *t, int32_t id, bool special, size_t *size);
CERA_API int32_t cera_tokenizer_size(const cera_tokenizer *t); /* ids are 0 .. size - 1 */
CERA_API int32_t cera_tokenizer_bos(const cera_tokenizer *t);  /* -1: none */
CERA_API int32_t cera_tokenizer_eos(const cera_tokenizer *t);  /* -1: none */
CERA_API bool cera_tokenizer_adds_bos(const cera_tokenizer *t);
CERA_API bool cera_tokenizer_is_eog(const cera_tokenizer *t, int32_t id); /* ends a generation */
/* Id of the token spelled exactly so in the vocabulary, -1: none. */
CERA_API int32_t cera_tokenizer_find(const cera_tokenizer *t, const char *text);

/* ---- sampler -------------------------------------------------------------------------------------------------------- */

/* The chain: logit bias, then the stages of `samplers` in their order, then the draw. A stage at its neutral value does
 * nothing. The draw is a pure function of (logits, history, options, position): it uses the random number f(seed, choice,
 * position), never a count of draws, and is the same on every platform. Ties go to the lowest id. Logits that are not finite
 * never win. Mirostat and adaptive-p carry a number from one token to the next: a call at a position that does not follow the
 * last call's starts anew. */
typedef struct cera_logit_bias {
    int32_t token;
    float bias; /* added to the logit; -infinity: never chosen */
} cera_logit_bias;

typedef struct cera_sampler_options {
    size_t size;
    uint64_t seed;
    uint32_t choice;   /* number of this answer when one prompt gets several */
    float temperature; /* >= 0; 0: the largest logit, exactly */
    int32_t top_k;     /* keep the k largest; 0: off */
    float top_p;       /* keep the fewest whose probabilities reach p, in [0, 1]; 1: off */
    float min_p;       /* keep those at least p times as probable as the best, in [0, 1]; 0: off */
    float
        repeat_penalty; /* > 0; logits of tokens in the window are divided (positive) or multiplied (negative) by it; 1: off */
    float frequency_penalty; /* times the count in the window, taken off the logit; 0: off */
    float presence_penalty;  /* taken off the logit of a token in the window; 0: off */
    int32_t penalty_last_n;  /* tokens of the history, prompt included, in the window; 0: none, -1: all */

    /* Zero: off, or the default that is named. */
    const cera_logit_bias *logit_bias; /* [n_logit_bias], copied */
    size_t n_logit_bias;
    const char *samplers; /* order of the stages, names separated by ";" or ","; those left out do not run. NULL:
                             "penalties;dry;top_n_sigma;top_k;typical_p;top_p;min_p;xtc;temperature" */
    float dry_multiplier; /* DRY: a token that would extend a repetition of m >= allowed tokens loses multiplier * base ^ (m -
                             allowed); 0: off */
    float dry_base;       /* 0: 1.75; below 1: off */
    int32_t dry_allowed_length;  /* 0: 2 */
    int32_t dry_last_n;          /* tokens of the history that are looked at; 0 or -1: all */
    const int32_t *dry_breakers; /* [n_dry_breakers] tokens that end a repetition and are not penalised, copied */
    size_t n_dry_breakers;
    float top_n_sigma; /* keep logits within n standard deviations of the largest; 0: off */
    float typical_p;   /* keep those whose surprise is nearest to the entropy until their probabilities exceed p; 0 or 1: off */
    float xtc_probability;   /* with this probability drop all but the least of those that reach the threshold; 0: off */
    float xtc_threshold;     /* 0: 0.1; above 0.5: off */
    float dynatemp_range;    /* temperature +- range by the entropy of what is left; 0: off */
    float dynatemp_exponent; /* 0: 1 */
    int32_t mirostat;        /* 1 or 2: temperature and mirostat are all that runs after the bias; 0: off */
    float mirostat_tau;      /* surprise that is aimed at, in bits; 0: 5 */
    float mirostat_eta;      /* rate of learning; 0: 0.1 */
    float adaptive_target;   /* adaptive-p: choose tokens whose probability is near this, in (0, 1]; 0: off */
    float adaptive_decay;    /* share of the past in the running mean, at most 0.99; 0: 0.9 */
} cera_sampler_options;

/* Fills the fields after size: what the model's metadata states (general.sampling.*), else seed 0, temperature 0.8, top-k 40,
 * top-p 0.95, min-p 0.05, no penalties over a window of 64. engine may be NULL. */
CERA_API cera_status cera_sampler_defaults(const cera_engine *engine, cera_sampler_options *options, cera_error *e);

/* n_vocab: length of the logits it will see. Options out of range are an error that names field and range. */
CERA_API cera_status cera_sampler_create(const cera_sampler_options *options, int32_t n_vocab, cera_sampler **out,
                                         cera_error *e);
CERA_API void cera_sampler_destroy(cera_sampler *sampler);
/* Chooses a token from logits [n_vocab] f32 (not changed). history: the tokens before position, oldest first; ids outside the
 * vocabulary are passed over. CERA_ERR_NUMERIC when no logit is finite. */
CERA_API cera_status cera_sampler_sample(cera_sampler *sampler, const float *logits, const int32_t *history, size_t n_history,
                                         uint64_t position, int32_t *token, cera_error *e);
/* The same among the tokens whose bit is set: bit id & 31 of word id >> 5, [ceil(n_vocab / 32)]. */
CERA_API cera_status cera_sampler_sample_allowed(cera_sampler *sampler, const float *logits, const uint32_t *allowed,
                                                 const int32_t *history, size_t n_history, uint64_t position, int32_t *token,
                                                 cera_error *e);

typedef struct cera_logprob {
    int32_t token;
    float logprob; /* natural logarithm of the probability, <= 0 */
} cera_logprob;

/* Of the softmax of logits [n_vocab]: the logarithm for token (chosen may be NULL), and the n_top most probable, best first,
 * ties by lowest id (token -1 where fewer are finite). Logits that are not finite have no share. */
CERA_API cera_status cera_logprobs(const float *logits, int32_t n_vocab, int32_t token, float *chosen, cera_logprob *top,
                                   size_t n_top, cera_error *e);

/* ---- session: one sequence of tokens ---------------------------------------------------------------------------------- */

typedef struct cera_session_options {
    size_t size;
    int32_t context; /* tokens at most; 0: the engine's n_ctx, which is also the upper limit */
    int32_t
        ubatch; /* rows of one step at most; 0: the engine's. Never changes a result, only memory and the time to a cancel */
} cera_session_options;

CERA_API cera_status cera_session_create(cera_engine *engine, const cera_session_options *options, cera_session **out,
                                         cera_error *e); /* options may be NULL */
CERA_API void cera_session_destroy(cera_session *session);
/* A second session with the same tokens: the cache is shared until one of them writes. */
CERA_API cera_status cera_session_fork(const cera_session *session, cera_session **out, cera_error *e);

/* Rows of logits [n][n_vocab] f32 of the tokens at history indices first .. first + n - 1, valid during the call. */
typedef void (*cera_logits_fn)(void *ctx, int32_t first, int32_t n, const float *logits);

/* Evaluates n tokens after those that are there, in steps of at most ubatch rows; the logits of the last one are kept
 * (cera_session_logits). on_logits, if given, sees those of every token, in order.
 * Errors: CERA_ERR_LIMIT before anything is evaluated when they do not fit the context; CERA_ERR_CANCELLED and others leave the
 * session as it was before the step that did not finish: steps that had finished stay, cera_session_position tells how far. */
CERA_API cera_status cera_session_append(cera_session *session, const int32_t *tokens, size_t n, cera_error *e);
CERA_API cera_status cera_session_append_with(cera_session *session, const int32_t *tokens, size_t n, cera_logits_fn on_logits,
                                              void *ctx, cera_error *e);

CERA_API int32_t cera_session_position(const cera_session *session); /* tokens evaluated */
CERA_API int32_t cera_session_context(const cera_session *session);  /* tokens it may hold */
/* The history: evaluated tokens, then at most one that cera_session_generate has handed out but not evaluated (the next append
 * or generate does). Borrowed until the next call that changes the session. -1 stands for rows that had no token id. */
CERA_API const int32_t *cera_session_tokens(const cera_session *session, int32_t *n);
/* Logits after the last evaluated token, [n_vocab] f32, borrowed until the next call; NULL when there are none (nothing
 * evaluated yet, after a rewind, a step of cera_engine_step or a step that failed late). */
CERA_API const float *cera_session_logits(const cera_session *session);

/* Forgets all tokens but the first n. It may have to keep fewer: a sliding window may have let go of keys that token n needs,
 * and recurrent state goes back only to the start of the last step or to 0. *kept (may be NULL) says how many are left. */
CERA_API cera_status cera_session_rewind(cera_session *session, int32_t n, int32_t *kept, cera_error *e);
CERA_API void cera_session_reset(cera_session *session); /* rewind to 0 */

/* From any thread or signal handler: the session's running step, or its next one, ends with CERA_ERR_CANCELLED, within one
 * operation of the model. Asked for once, it cancels once. */
CERA_API void cera_session_cancel(cera_session *session);

/* A piece of the answer: size bytes of UTF-8 in whole characters (size may be 0: a token that ended within a character, or
 * that has no text), and the token that brought it; token is -1 in the last call, if there is one, which flushes what was held
 * back. Returning false ends the generation with CERA_FINISH_CALLBACK. */
typedef bool (*cera_text_fn)(void *ctx, const char *text, size_t size, int32_t token);

typedef enum cera_finish {
    CERA_FINISH_NONE = 0,
    CERA_FINISH_EOG,       /* the model ended it; the end-of-generation token is not part of the history */
    CERA_FINISH_LENGTH,    /* max_tokens */
    CERA_FINISH_CONTEXT,   /* the context is full */
    CERA_FINISH_CALLBACK,  /* on_text returned false */
    CERA_FINISH_CANCELLED, /* cera_session_cancel */
    CERA_FINISH_ERROR,
    CERA_FINISH_STOP,   /* a stop string; the tokens that brought it are part of the history */
    CERA_FINISH_GRAMMAR /* the grammar's text is complete and nothing can follow */
} cera_finish;

CERA_API const char *cera_finish_name(cera_finish finish); /* "eog", "length", ... */

/* A token as it is chosen, before its text is handed out. */
typedef struct cera_token_event {
    size_t size;
    int32_t token;
    int32_t position;    /* in the history */
    const float *logits; /* [n_vocab] f32, as the model gave them; valid during the call (cera_logprobs) */
    int32_t n_vocab;
} cera_token_event;

typedef struct cera_generate_options {
    size_t size;
    int64_t max_tokens; /* 0: until the model ends or the context is full */
    bool ignore_eog;    /* end-of-generation tokens are never chosen */
    bool special;       /* control tokens give their text */
    cera_text_fn on_text;
    void *ctx;
    int64_t min_tokens;       /* end-of-generation tokens are not chosen before so many tokens; 0: from the start */
    const char *const *stops; /* [n_stops] texts that end it, matched on the bytes of the tokens across their borders. Nothing
                                 of a stop string is handed out; a beginning that stays one is handed out in the end. */
    size_t n_stops;
    cera_grammar_state *grammar;               /* moves on with the text; only tokens that fit are chosen; NULL: none */
    const cera_grammar_tokens *grammar_tokens; /* of this engine's tokenizer; needed with grammar */
    void (*on_token)(void *ctx, const cera_token_event *event);
} cera_generate_options;

typedef struct cera_generate_result {
    size_t size;
    cera_finish finish;
    int32_t eog_token; /* the token that ended it, -1 */
    int64_t n_tokens;  /* tokens generated, end-of-generation not counted */
    double first_ms;   /* from the call to the first token */
    double total_ms;   /* from the call to its end */
    int32_t stop;      /* CERA_FINISH_STOP: number of the stop string, else -1 */
} cera_generate_result;

/* Generates from the logits that the session holds (append a prompt first): samples, hands out, evaluates. The sampler sees the
 * session's history; the position of a draw is its place in that history.
 * Text is always valid UTF-8: bytes that cannot be part of a character become U+FFFD, one for each broken sequence, and so does
 * a character that is still incomplete at the end. Joining the pieces gives the same text whatever their borders.
 * The result is filled in any case. CERA_ERR_CANCELLED keeps what was generated. */
CERA_API cera_status cera_session_generate(cera_session *session, cera_sampler *sampler, const cera_generate_options *options,
                                           cera_generate_result *result, cera_error *e);

/* ---- steps: the forward path under everything above --------------------------------------------------------------------- */

enum { CERA_ROW_LOGITS = 1, CERA_ROW_HIDDEN = 2 };

/* One row of a step. Zero it, then fill: token -1 when embedding or ticket_row is used, ticket -1 and adapter -1 when not. */
typedef struct cera_batch_row {
    int32_t token;          /* id, or -1 */
    const float *embedding; /* [n_embd] f32 in place of a token, or NULL */
    int64_t ticket;         /* with ticket_row: the token is the arg max of that row of an earlier step; -1: none */
    int32_t ticket_row;
    int32_t position[4]; /* rotary positions, >= 0; only [0] unless the model uses M-RoPE */
    int32_t index;       /* place in the session: its position, then ascending without gaps */
    int32_t visible_end; /* keys [0, visible_end) are seen: index + 1 when causal, larger inside an image */
    int32_t session;     /* index into the batch's sessions */
    int32_t adapter;     /* adapter set; -1: none (no other exists yet) */
    uint32_t want;       /* CERA_ROW_LOGITS, CERA_ROW_HIDDEN: what the callbacks get */
} cera_batch_row;

/* Rows of several sessions in one step; those of one session stand together, in ascending order. */
typedef struct cera_batch {
    size_t size;
    const cera_batch_row *rows;
    int32_t n_rows;
    cera_session *const *sessions; /* all of the engine, each once */
    int32_t n_sessions;
    cera_session *cancel_on; /* cancelling this session cancels the step; NULL: the step cannot be cancelled */
    /* Called during the step on the calling thread, in pieces: rows[n] are row numbers of the batch, ascending. They must not
     * start another step; cera_session_cancel is fine. */
    void (*on_logits)(void *ctx, const int32_t *rows, int32_t n, const float *logits); /* [n][n_vocab] f32 */
    void (*on_hidden)(void *ctx, const int32_t *rows, int32_t n,
                      const float *hidden); /* [n][n_embd] f32, final normalised states */
    void *ctx;
} cera_batch;

/* Runs one step and commits it: the sessions' positions move on when it returns CERA_OK; otherwise every session is as before.
 * A token's logits do not depend on what else is in the batch, on how a prompt was cut into steps, or on the number of threads.
 * A session's kept logits (cera_session_logits) become the last row's if that row wants logits, else none. ticket may be NULL.
 */
CERA_API cera_status cera_engine_step(cera_engine *engine, const cera_batch *batch, int64_t *ticket, cera_error *e);

/* ---- model files: what is in them, whether it can run or not --------------------------------------------------------------
 */

typedef struct cera_model_file cera_model_file;

/* options may be NULL; of them, overrides, no_mmap and progress are used. */
CERA_API cera_status cera_model_file_open(const char *path, const cera_engine_options *options, cera_model_file **out,
                                          cera_error *e);
CERA_API void cera_model_file_close(cera_model_file *file);
CERA_API uint32_t cera_model_file_version(const cera_model_file *file); /* of GGUF */
CERA_API uint64_t cera_model_file_bytes(const cera_model_file *file);   /* all parts */

typedef struct cera_model_key {
    size_t size;
    const char *name;
    const char *type; /* "u32", "string", ...: of the elements when it is an array */
    bool is_array;
    bool is_text; /* elements are strings */
    uint64_t n;   /* elements; 1 for a scalar */
} cera_model_key;

CERA_API size_t cera_model_file_n_keys(const cera_model_file *file);
CERA_API cera_status cera_model_file_key(const cera_model_file *file, size_t index, cera_model_key *out, cera_error *e);
/* Element `element` of key `index`: a string's bytes as they are, anything else as JSON. Writes at most capacity bytes with the
 * final NUL (*size: the whole length). */
CERA_API cera_status cera_model_file_value(const cera_model_file *file, size_t index, uint64_t element, char *text,
                                           size_t capacity, size_t *size, cera_error *e);

typedef struct cera_model_tensor {
    size_t size;
    const char *name;
    const char *type; /* "q4_0" */
    bool computes;    /* the engine can multiply this type */
    int32_t n_dims;
    uint64_t shape[4]; /* GGUF order: elements of a row first; 1 beyond n_dims */
    uint64_t bytes;
} cera_model_tensor;

CERA_API size_t cera_model_file_n_tensors(const cera_model_file *file);
CERA_API cera_status cera_model_file_tensor(const cera_model_file *file, size_t index, cera_model_tensor *out, cera_error *e);
/* Names of the architectures that can run, NULL after the last. */
CERA_API const char *const *cera_architectures(void);

/* ---- grammar: text of a stated form ---------------------------------------------------------------------------------------
 */

/* GBNF (llama.cpp's dialect), JSON Schema (drafts 7 and 2020-12) or a regular expression (ECMA-262 subset, matching anywhere),
 * compiled to an automaton over bytes. docs/structured-output.md lists what each accepts and refuses. */
typedef enum cera_grammar_kind { CERA_GRAMMAR_GBNF = 1, CERA_GRAMMAR_SCHEMA, CERA_GRAMMAR_REGEX } cera_grammar_kind;

typedef struct cera_grammar_options {
    size_t size;
    bool any_order; /* schema: members of an object in any order; else as `properties` lists them, others last */
    bool any_space; /* schema: any white space and any escapes that JSON allows; else the compact form that is generated */
    const cera_tokenizer *tokenizer; /* GBNF: looks up <text> token literals; may be NULL */
    uint64_t memory_bytes;           /* of the automaton, which grows as it is used; 0: 256 MiB */
} cera_grammar_options;

/* options may be NULL. What cannot be enforced is refused: CERA_ERR_UNSUPPORTED, CERA_ERR_FORMAT, CERA_ERR_LIMIT or
 * CERA_ERR_NOT_FOUND with the line (GBNF), byte (regex) or JSON pointer (schema) and the reason. A grammar may be shared by any
 * number of states and threads. */
CERA_API cera_status cera_grammar_compile(cera_grammar_kind kind, const char *text, size_t size,
                                          const cera_grammar_options *options, cera_grammar **out, cera_error *e);
CERA_API void cera_grammar_close(cera_grammar *grammar);          /* states keep what they need */
CERA_API bool cera_grammar_is_empty(const cera_grammar *grammar); /* a schema that no value meets */

/* Built once for a tokenizer (some 100 ms for 128k tokens), shared by all grammars and threads. Copies what it needs. */
CERA_API cera_status cera_grammar_tokens_create(const cera_tokenizer *tokenizer, cera_grammar_tokens **out, cera_error *e);
CERA_API void cera_grammar_tokens_destroy(cera_grammar_tokens *tokens);

/* Lazy constraining: until a trigger comes, every token is allowed. */
typedef struct cera_grammar_trigger {
    size_t size;
    const char *const *texts; /* [n_texts] the constraint starts behind (or with) the first of these in the text */
    size_t n_texts;
    const int32_t *token_ids; /* [n_token_ids] or behind one of these tokens */
    size_t n_token_ids;
    bool includes_text; /* the trigger's text is part of the constrained text */
    bool rearm;         /* when the constrained text is complete, wait for the next trigger */
} cera_grammar_trigger;

/* trigger may be NULL: constrained from the start. */
CERA_API cera_status cera_grammar_state_create(cera_grammar *grammar, const cera_grammar_trigger *trigger,
                                               cera_grammar_state **out, cera_error *e);
CERA_API void cera_grammar_state_destroy(cera_grammar_state *state);
/* A copy, at the same place: a snapshot. And back: to must be of the same grammar and trigger. */
CERA_API cera_status cera_grammar_state_clone(const cera_grammar_state *state, cera_grammar_state **out, cera_error *e);
CERA_API cera_status cera_grammar_state_restore(cera_grammar_state *to, const cera_grammar_state *from, cera_error *e);
CERA_API cera_status cera_grammar_state_reset(cera_grammar_state *state, cera_error *e);

/* Moves on by bytes of text; *accepted (may be NULL) says how many fitted. When not all do, CERA_ERR_ARGUMENT and the state is
 * as before. CERA_ERR_LIMIT: the automaton reached its memory or ambiguity limit. */
CERA_API cera_status cera_grammar_accept_text(cera_grammar_state *state, const char *text, size_t size, size_t *accepted,
                                              cera_error *e);
/* Moves on by a token; an end-of-generation token fits where the text is complete. */
CERA_API cera_status cera_grammar_accept_token(cera_grammar_state *state, const cera_grammar_tokens *tokens, int32_t id,
                                               cera_error *e);
CERA_API bool
cera_grammar_is_complete(const cera_grammar_state *state); /* the text may end here (also while waiting for a trigger) */
CERA_API bool cera_grammar_is_finished(const cera_grammar_state *state); /* complete, and nothing can follow */
CERA_API bool cera_grammar_is_waiting(const cera_grammar_state *state);  /* for a trigger */

/* Bits [ceil(n_tokens / 32)] of the tokens that may follow: bit id & 31 of word id >> 5. A dead end, where no token fits and
 * the text may not end, is CERA_ERR_NOT_FOUND. */
CERA_API cera_status cera_grammar_mask(cera_grammar_state *state, const cera_grammar_tokens *tokens, uint32_t *bits,
                                       cera_error *e);

/* ---- chat templates: messages to a prompt, an answer to content, reasoning and tool calls
 * ---------------------------------------- JSON goes in and comes out as text. Templates are Jinja as Hugging Face uses it; a
 * render sees its context only and has budgets for steps, bytes, nesting and time. A template may be used from any number of
 * threads; a prompt is immutable; an answer belongs to one thread at a time. */

typedef struct cera_template cera_template;
typedef struct cera_prompt cera_prompt; /* a rendered text that knows which of its bytes came from the caller */
typedef struct cera_answer cera_answer; /* what a model writes, taken apart as it streams */

/* The text of a template (a GGUF's tokenizer.chat_template), or one of the built-in ones by name. Errors name the line. */
CERA_API cera_status cera_template_open(const char *text, size_t size, cera_template **out, cera_error *e);
CERA_API cera_status cera_template_open_named(const char *name, cera_template **out, cera_error *e);
CERA_API const char *const *cera_template_names(void); /* NULL after the last */
CERA_API void cera_template_close(cera_template *t);

typedef struct cera_template_info {
    size_t size;
    const char *tool_format; /* how it writes tool calls ("tool_call", "mistral", "harmony", ...), or "none" */
    bool takes_tools;        /* reads the variable tools */
    bool has_thinking;       /* reads enable_thinking */
} cera_template_info;
CERA_API cera_status cera_template_info_get(const cera_template *t, cera_template_info *info, cera_error *e);

/* Renders with exactly this context, a JSON object. now: what strftime_now sees, "2026-07-26T13:05:09"; NULL: local time. */
CERA_API cera_status cera_template_render(const cera_template *t, const char *context, size_t context_size, const char *now,
                                          cera_prompt **out, cera_error *e);

typedef struct cera_chat {
    size_t size;
    const char *messages;  /* a JSON array */
    const char *tools;     /* a JSON array of functions, or NULL */
    const char *documents; /* a JSON array, or NULL */
    const char *variables; /* a JSON object of more template variables, or NULL; they win over the others */
    bool no_generation_prompt;
    int32_t thinking;                                                   /* enable_thinking: 1 on, -1 off, 0 not said */
    const char *bos_token, *eos_token, *reasoning_effort, *date_string; /* NULL: not said */
    const char *now;
} cera_chat;
/* Renders a chat. What the template cannot take is fitted to it: text parts are joined, arguments of earlier calls opened. */
CERA_API cera_status cera_template_chat(const cera_template *t, const cera_chat *chat, cera_prompt **out, cera_error *e);

CERA_API const char *cera_prompt_text(const cera_prompt *p, size_t *size); /* NUL-terminated; size may be NULL */
/* Part `index` of the text: bytes [*start, *end), user: they came from strings of the context. False past the last. */
CERA_API bool cera_prompt_part(const cera_prompt *p, size_t index, size_t *start, size_t *end, bool *user);
/* Token ids, with BOS where the vocabulary says so and the text has none. Control tokens are read in the template's own text
 * only. *ids: cera_release. */
CERA_API cera_status cera_prompt_encode(const cera_prompt *p, const cera_tokenizer *tokenizer, int32_t **ids, size_t *n_ids,
                                        cera_error *e);
CERA_API void cera_prompt_close(cera_prompt *p);

/* Called while an answer is fed; any may be NULL. A call that was announced and turns out malformed is taken back
 * (on_call_malformed), and its text comes as content. Pieces of arguments join to exactly the call's JSON. */
typedef struct cera_answer_events {
    size_t size;
    void *ctx;
    void (*on_content)(void *ctx, const char *text, size_t size);
    void (*on_reasoning)(void *ctx, const char *text, size_t size);
    void (*on_call)(void *ctx, size_t index, const char *name, size_t size);
    void (*on_arguments)(void *ctx, size_t index, const char *text, size_t size);
    void (*on_call_end)(void *ctx, size_t index);
    void (*on_call_malformed)(void *ctx, size_t index);
} cera_answer_events;

/* tools: the JSON array of functions that the prompt was rendered with, or an object that holds it as "tools" (a context), or
 * NULL: then no calls are looked for. prompt: tells whether it leaves a thought open; may be NULL. events may be NULL. How the
 * answer is cut into pieces does not change the result. */
CERA_API cera_status cera_answer_create(const cera_template *t, const char *tools, const cera_prompt *prompt,
                                        const cera_answer_events *events, cera_answer **out, cera_error *e);
CERA_API cera_status cera_answer_feed(cera_answer *a, const char *text, size_t size, cera_error *e);
CERA_API cera_status cera_answer_finish(cera_answer *a, cera_error *e);
/* After finish; texts belong to the answer. */
CERA_API const char *cera_answer_content(const cera_answer *a, size_t *size);
CERA_API const char *cera_answer_reasoning(const cera_answer *a, size_t *size);
CERA_API size_t cera_answer_n_calls(const cera_answer *a);
CERA_API const char *cera_answer_call_name(const cera_answer *a, size_t index, size_t *size);
CERA_API const char *cera_answer_call_arguments(const cera_answer *a, size_t index, size_t *size); /* a JSON object */
CERA_API bool cera_answer_complete(const cera_answer *a); /* false: a malformed call is in the content as text */
CERA_API void cera_answer_destroy(cera_answer *a);

#ifdef __cplusplus
}
#endif
#endif
