/* engine.c: a model loaded once: file, model, vocabulary, backend, compiled program, page pool. Opening, closing, what it is.
 * Steps are step.c, sessions session.c. */
#include <string.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "base/log.h"
#include "engine/engine_int.h"
#include "engine/options.h"
#include "engine/vocab_gguf.h"

enum { DEFAULT_UBATCH = 512, MAX_UBATCH = 65536, MAX_CONTEXT = 1 << 28 };

/* ---- options ---- */

const char *cera_kv_dtype_name(cera_kv_dtype t) {
    static const char *const names[] = {"auto", "f32", "f16", "bf16"};
    return (unsigned)t < 4 ? names[t] : "?";
}

bool cera_kv_dtype_parse(const char *name, cera_kv_dtype *out) {
    for (int t = CERA_KV_DTYPE_AUTO; name && out && t <= CERA_KV_DTYPE_BF16; t++)
        if (strcmp(name, cera_kv_dtype_name((cera_kv_dtype)t)) == 0) {
            *out = (cera_kv_dtype)t;
            return true;
        }
    return false;
}

static cera_cache_type to_cache_type(cera_kv_dtype t) { return (cera_cache_type)((int)t - 1); }
static cera_kv_dtype from_cache_type(cera_cache_type t) { return (cera_kv_dtype)((int)t + 1); }
static int dtype_bytes(cera_kv_dtype t) { return t == CERA_KV_DTYPE_F32 ? 4 : 2; }

static cera_status check_range(const char *field, int64_t value, int64_t max, cera_error *e) {
    if (value >= 0 && value <= max) return CERA_OK;
    return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_options.%s is %lld; it must be between 0 and %lld", field,
                     (long long)value, (long long)max);
}

static cera_status take_options(const cera_engine_options *given, cera_engine_options *o, cera_error *e) {
    CERA_TRY(cera_options_take("cera_engine_options", given, o, sizeof *o, e));
    CERA_TRY(check_range("threads", o->threads, 512, e));
    CERA_TRY(check_range("context", o->context, MAX_CONTEXT, e));
    CERA_TRY(check_range("ubatch", o->ubatch, MAX_UBATCH, e));
    CERA_TRY(check_range("kv_k", (int64_t)o->kv_k, CERA_KV_DTYPE_BF16, e));
    CERA_TRY(check_range("kv_v", (int64_t)o->kv_v, CERA_KV_DTYPE_BF16, e));
    CERA_TRY(check_range("n_overrides", (int64_t)(o->n_overrides > INT32_MAX ? -1 : (int64_t)o->n_overrides), 65536, e));
    if (o->n_overrides > 0 && !o->overrides)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_options.overrides is NULL and n_overrides is %zu", o->n_overrides);
    if (o->ubatch == 0) o->ubatch = DEFAULT_UBATCH;
    return CERA_OK;
}

/* Tier by name, refused with the list of those that run here. -1: the best. */
static cera_status choose_tier(const char *name, int *tier, cera_error *e) {
    *tier = -1;
    if (!name) return CERA_OK;
    cera_cpu_tier t;
    if (cera_cpu_tier_parse(name, &t) && cera_cpu_has_tier(t)) {
        *tier = (int)t;
        return CERA_OK;
    }
    char have[128] = "";
    size_t at = 0;
    for (int i = 0; i < CERA_TIER_COUNT; i++) {
        const char *tier_name = cera_cpu_tier_name((cera_cpu_tier)i);
        const size_t n = strlen(tier_name);
        if (!cera_cpu_has_tier((cera_cpu_tier)i) || at + n + 2 > sizeof have) continue;
        if (at > 0) have[at++] = ' ';
        memcpy(have + at, tier_name, n + 1);
        at += n;
    }
    return cera_fail(e, CERA_ERR_UNSUPPORTED, "tier %s does not run on this processor; these do: %s", name, have);
}

/* ---- opening ---- */

typedef struct {
    const char *path; /* or name */
    const void *data; /* NULL: a file */
    size_t size_bytes;
    const cera_engine_options *options;
} source;

static cera_status open_gguf(cera_engine *g, const source *s, unsigned file_flags, cera_error *e) {
    const cera_engine_options *o = s->options;
    cera_gguf_options options = {.file_flags = file_flags, .overrides = o->overrides, .n_overrides = (int)o->n_overrides};
    if (file_flags & CERA_FILE_NO_MMAP) {
        options.progress = o->progress;
        options.progress_ctx = o->progress_ctx;
    }
    if (s->data) return cera_gguf_open_memory(s->path, s->data, s->size_bytes, &options, &g->gguf, e);
    return cera_gguf_open(s->path, &options, &g->gguf, e);
}

static cera_status load_model(cera_engine *g, const source *s, unsigned file_flags, cera_error *e) {
    CERA_TRY(open_gguf(g, s, file_flags, e));
    CERA_TRY(cera_model_load(g->gguf, s->options->context, &g->model, e));
    g->plan = cera_model_plan(g->model);
    return CERA_OK;
}

static void unload_model(cera_engine *g) {
    cera_model_destroy(g->model);
    cera_gguf_close(g->gguf);
    g->model = NULL;
    g->gguf = NULL;
    g->plan = NULL;
}

static cera_status fit(cera_engine *g, const source *s, uint64_t *cache_bytes, cera_error *e) {
    const cera_engine_options *o = s->options;
    const cera_fit_request request = {
        .path = s->path,
        .weight_bytes = s->data ? 0 : cera_model_weight_bytes(g->model),
        .available_bytes = o->memory_bytes > 0 ? o->memory_bytes : cera_cpu_available_memory(),
        .k_bytes = dtype_bytes(o->kv_k),
        .v_bytes = dtype_bytes(o->kv_v),
        .n_ctx = o->context,
        .ubatch = o->ubatch,
    };
    cera_fit result;
    CERA_TRY(cera_fit_context(g->plan, &request, &result, e));
    if (o->context == 0 && result.n_ctx < g->plan->n_ctx_train)
        cera_log(CERA_LOG_WARN, "%s: the model's context of %d tokens does not fit in memory; using %d", s->path,
                 g->plan->n_ctx_train, (int)result.n_ctx);
    g->n_ctx = result.n_ctx;
    *cache_bytes = result.cache_bytes;
    return CERA_OK;
}

static cera_status compile(cera_engine *g, const cera_engine_options *o, uint64_t cache_bytes, cera_error *e) {
    cera_cpu_options cpu = {.n_threads = o->threads};
    CERA_TRY(choose_tier(o->tier, &cpu.tier, e));
    CERA_TRY(cera_backend_cpu_create(&cpu, &g->backend, e));
    const cera_compile_options options = {
        .k_type = to_cache_type(o->kv_k), .v_type = to_cache_type(o->kv_v), .max_rows = o->ubatch};
    CERA_TRY(cera_program_compile(g->backend, g->plan, &options, &g->program, e));
    g->ubatch = o->ubatch;
    g->rows = cera_alloc((size_t)g->ubatch, sizeof *g->rows);
    if (!g->rows) return cera_fail(e, CERA_ERR_MEMORY, "out of memory for %d rows of a step", (int)g->ubatch);
    CERA_TRY(cera_kv_init(&g->kv, g->program, g->plan, cache_bytes, e));
    if (pthread_mutex_init(&g->step_lock, NULL) != 0) return cera_fail(e, CERA_ERR_MEMORY, "cannot create a lock");
    g->has_lock = true;
    return CERA_OK;
}

/* The file is mapped first, which reads nothing large, so that a model that cannot fit is refused before it is read. */
static cera_status open_all(cera_engine *g, const source *s, cera_error *e) {
    const cera_engine_options *o = s->options;
    const unsigned flags = (o->no_mmap ? (unsigned)CERA_FILE_NO_MMAP : 0) | (o->mlock ? (unsigned)CERA_FILE_MLOCK : 0);
    uint64_t cache_bytes = 0;
    CERA_TRY(load_model(g, s, 0, e));
    CERA_TRY(fit(g, s, &cache_bytes, e));
    const cera_status status = cera_vocab_from_gguf(g->gguf, o->allow_unknown_tokenizer, &g->tokenizer.vocab, e);
    if (status != CERA_OK) {
        cera_fail_prefix(e, s->path);
        return status;
    }
    if (flags != 0 && !s->data) {
        unload_model(g);
        CERA_TRY(load_model(g, s, flags, e));
    }
    return compile(g, o, cache_bytes, e);
}

static void destroy(cera_engine *g) {
    cera_kv_deinit(&g->kv);
    cera_program_destroy(g->program);
    cera_backend_destroy(g->backend);
    cera_vocab_destroy(g->tokenizer.vocab);
    unload_model(g);
    if (g->has_lock) pthread_mutex_destroy(&g->step_lock);
    cera_free(g->rows);
    cera_free(g->views);
    cera_free(g);
}

static cera_status open_source(source *s, const cera_engine_options *options, cera_engine **out, cera_error *e) {
    cera_engine_options o;
    CERA_TRY(take_options(options, &o, e));
    s->options = &o;
    cera_engine *g = cera_alloc(1, sizeof *g);
    if (!g) return cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", s->path);
    atomic_init(&g->refs, 1);
    const cera_status status = open_all(g, s, e);
    if (status != CERA_OK) {
        destroy(g);
        return status;
    }
    *out = g;
    return CERA_OK;
}

cera_status cera_engine_open(const char *path, const cera_engine_options *options, cera_engine **out, cera_error *e) {
    if (!path || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_open: path and out must not be NULL");
    source s = {.path = path};
    return open_source(&s, options, out, e);
}

cera_status cera_engine_open_memory(const char *name, const void *data, size_t size_bytes, const cera_engine_options *options,
                                    cera_engine **out, cera_error *e) {
    if (!name || !data || !out)
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_open_memory: name, data and out must not be NULL");
    source s = {.path = name, .data = data, .size_bytes = size_bytes};
    return open_source(&s, options, out, e);
}

void cera_engine_ref(cera_engine *g) { atomic_fetch_add(&g->refs, 1); }

void cera_engine_close(cera_engine *g) {
    if (g && atomic_fetch_sub(&g->refs, 1) == 1) destroy(g);
}

/* ---- what it is ---- */

cera_status cera_engine_info(const cera_engine *g, cera_model_info *info, cera_error *e) {
    if (!g || !info) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_info: engine and info must not be NULL");
    const cera_kv_dtype k = from_cache_type(cera_program_k_type(g->program)),
                        v = from_cache_type(cera_program_v_type(g->program));
    const cera_model_info own = {
        .size = sizeof own,
        .path = cera_gguf_path(g->gguf),
        .arch = cera_model_arch(g->model),
        .name = cera_model_name(g->model),
        .tier = cera_backend_tier(g->backend),
        .threads = cera_backend_threads(g->backend),
        .n_vocab = g->plan->n_vocab,
        .n_embd = g->plan->n_embd,
        .n_layer = g->plan->n_layer,
        .n_ctx_train = g->plan->n_ctx_train,
        .n_ctx = g->n_ctx,
        .ubatch = g->ubatch,
        .causal = g->plan->causal,
        .kv_k = k,
        .kv_v = v,
        .file_bytes = cera_gguf_file_bytes(g->gguf),
        .weight_bytes = cera_model_weight_bytes(g->model),
        .kv_bytes_per_1k = cera_fit_bytes_per_1k(g->plan, dtype_bytes(k), dtype_bytes(v)),
        .state_bytes = cera_state_bytes(g->program),
        .work_bytes = cera_program_bytes(g->program),
        .kv_bytes = cera_kv_used((cera_kv *)&g->kv),
        .memory_bytes = g->kv.budget_bytes,
    };
    return cera_options_give("cera_model_info", info, &own, sizeof own, e);
}

const cera_tokenizer *cera_engine_tokenizer(const cera_engine *g) { return g ? &g->tokenizer : NULL; }

int32_t cera_engine_n_ops(const cera_engine *g) { return g ? g->plan->n_ops : 0; }

int32_t cera_engine_describe_op(const cera_engine *g, int32_t op, char *text, size_t capacity) {
    if (!g || op < 0 || op >= g->plan->n_ops || (!text && capacity > 0)) return -1;
    char none[1];
    return cera_program_describe(g->program, op, text ? text : none, text ? (int)(capacity < 65536 ? capacity : 65536) : 0);
}

void cera_engine_profile(cera_engine *g, bool on) {
    if (!g) return;
    pthread_mutex_lock(&g->step_lock);
    cera_program_profile(g->program, on);
    pthread_mutex_unlock(&g->step_lock);
}

int32_t cera_engine_n_profile_rows(const cera_engine *g) { return g ? cera_program_n_profiles(g->program) : 0; }

cera_status cera_engine_profile_row(const cera_engine *g, int32_t index, cera_profile_row *out, cera_error *e) {
    if (!g || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_engine_profile_row: engine and out must not be NULL");
    if (index < 0 || index >= cera_program_n_profiles(g->program))
        return cera_fail(e, CERA_ERR_ARGUMENT, "profile row %d does not exist; there are %d", (int)index,
                         cera_program_n_profiles(g->program));
    cera_op_profile p;
    cera_program_profile_at(g->program, index, &p);
    const cera_profile_row own = {
        .size = sizeof own,
        .what = p.what,
        .kernel = p.kernel,
        .op = cera_op_name(p.op->kind),
        .layer = p.op->layer,
        .runs = p.runs,
        .seconds = p.seconds,
        .bytes = p.bytes,
        .macs = p.macs,
    };
    return cera_options_give("cera_profile_row", out, &own, sizeof own, e);
}

/* ---- sampling that the file recommends ---- */

static cera_status take_f32(const cera_gguf *g, const char *key, float *out, cera_error *e) {
    double v;
    if (!cera_gguf_find(g, key)) return CERA_OK;
    CERA_TRY(cera_gguf_get_f64(g, key, &v, e));
    *out = (float)v;
    return CERA_OK;
}

static cera_status take_i32(const cera_gguf *g, const char *key, int32_t *out, cera_error *e) {
    double v;
    if (!cera_gguf_find(g, key)) return CERA_OK;
    CERA_TRY(cera_gguf_get_f64(g, key, &v, e));
    if (!(v >= -1.0 && v <= (double)INT32_MAX))
        return cera_fail(e, CERA_ERR_FORMAT, "key %s is %g; it must be between -1 and 2^31 - 1", key, v);
    *out = (int32_t)v;
    return CERA_OK;
}

static cera_status from_metadata(const cera_gguf *g, cera_sampler_options *o, cera_error *e) {
    CERA_TRY(take_f32(g, "general.sampling.temp", &o->temperature, e));
    CERA_TRY(take_i32(g, "general.sampling.top_k", &o->top_k, e));
    CERA_TRY(take_f32(g, "general.sampling.top_p", &o->top_p, e));
    CERA_TRY(take_f32(g, "general.sampling.min_p", &o->min_p, e));
    CERA_TRY(take_f32(g, "general.sampling.penalty_repeat", &o->repeat_penalty, e));
    CERA_TRY(take_i32(g, "general.sampling.penalty_last_n", &o->penalty_last_n, e));
    if (o->top_k < 0) o->top_k = 0;
    return CERA_OK;
}

cera_status cera_sampler_defaults(const cera_engine *g, cera_sampler_options *options, cera_error *e) {
    if (!options) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_sampler_defaults: options must not be NULL");
    cera_sampler_options own = {.size = sizeof own,
                                .temperature = 0.8f,
                                .top_k = 40,
                                .top_p = 0.95f,
                                .min_p = 0.05f,
                                .repeat_penalty = 1.0f,
                                .penalty_last_n = 64};
    if (g) CERA_TRY(from_metadata(g->gguf, &own, e));
    return cera_options_give("cera_sampler_options", options, &own, sizeof own, e);
}
