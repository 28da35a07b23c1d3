/* hparams.c: reads and checks the keys that many families share. Every number that later sizes an array or divides is checked
 * here. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "model/model_int.h"

enum { KEY_BYTES = 256 };

static void full_name(const cera_hparams *h, const char *name, char out[KEY_BYTES]) {
    snprintf(out, KEY_BYTES, "%s.%s", h->arch, name);
}

bool cera_key_has(const cera_hparams *h, const char *name) {
    char key[KEY_BYTES];
    full_name(h, name, key);
    return cera_gguf_find(h->file, key) != NULL;
}

cera_status cera_key_int(const cera_hparams *h, const char *name, int min, int max, int *out, cera_error *e) {
    char key[KEY_BYTES];
    uint64_t v;
    full_name(h, name, key);
    CERA_TRY(cera_gguf_get_u64(h->file, key, (uint64_t)min, (uint64_t)max, &v, e));
    *out = (int)v;
    return CERA_OK;
}

cera_status cera_key_int_or(const cera_hparams *h, const char *name, int min, int max, int fallback, int *out, cera_error *e) {
    *out = fallback;
    return cera_key_has(h, name) ? cera_key_int(h, name, min, max, out, e) : CERA_OK;
}

cera_status cera_key_f64_or(const cera_hparams *h, const char *name, double min, double max, double fallback, double *out,
                            cera_error *e) {
    char key[KEY_BYTES];
    full_name(h, name, key);
    *out = fallback;
    if (!cera_gguf_find(h->file, key)) return CERA_OK;
    CERA_TRY(cera_gguf_get_f64(h->file, key, out, e));
    if (!(*out >= min && *out <= max))
        return cera_fail(e, CERA_ERR_FORMAT, "key %s is %g; it must be between %g and %g", key, *out, min, max);
    return CERA_OK;
}

cera_status cera_key_f32_or(const cera_hparams *h, const char *name, double min, double max, float fallback, float *out,
                            cera_error *e) {
    double v;
    CERA_TRY(cera_key_f64_or(h, name, min, max, fallback, &v, e));
    *out = (float)v;
    return CERA_OK;
}

cera_status cera_key_bool_or(const cera_hparams *h, const char *name, bool fallback, bool *out, cera_error *e) {
    char key[KEY_BYTES];
    full_name(h, name, key);
    *out = fallback;
    return cera_gguf_find(h->file, key) ? cera_gguf_get_bool(h->file, key, out, e) : CERA_OK;
}

/* One value a layer, from an array or a scalar. */
static cera_status each_layer(const cera_hparams *h, const char *name, int min, int max, int *out, cera_error *e) {
    char key[KEY_BYTES];
    uint64_t values[CERA_MAX_LAYERS];
    full_name(h, name, key);
    CERA_TRY(cera_gguf_get_u64_each(h->file, key, (uint64_t)min, (uint64_t)max, (size_t)h->n_layer, values, e));
    for (int i = 0; i < h->n_layer; i++) out[i] = (int)values[i];
    return CERA_OK;
}

static cera_status read_heads(cera_hparams *h, cera_error *e) {
    CERA_TRY(each_layer(h, "attention.head_count", 1, 1024, h->n_head, e));
    memcpy(h->n_head_kv, h->n_head, sizeof h->n_head_kv);
    if (cera_key_has(h, "attention.head_count_kv"))
        CERA_TRY(each_layer(h, "attention.head_count_kv", 0, 1024, h->n_head_kv, e));
    for (int i = 0; i < h->n_layer; i++)
        if (h->n_head_kv[i] && h->n_head[i] % h->n_head_kv[i])
            return cera_fail(e, CERA_ERR_FORMAT,
                             "key %s.attention.head_count_kv: layer %d has %d KV heads, which do not divide its %d heads",
                             h->arch, i, h->n_head_kv[i], h->n_head[i]);
    if (!cera_key_has(h, "attention.key_length") && h->n_embd % h->n_head[0])
        return cera_fail(
            e, CERA_ERR_FORMAT,
            "key %s.attention.head_count is %d, which does not divide the width %d; and there is no attention.key_length",
            h->arch, h->n_head[0], h->n_embd);
    CERA_TRY(cera_key_int_or(h, "attention.key_length", 1, 1024, h->n_embd / h->n_head[0], &h->head_k, e));
    CERA_TRY(cera_key_int_or(h, "attention.value_length", 1, 1024, h->head_k, &h->head_v, e));
    return h->head_k % 2
               ? cera_fail(e, CERA_ERR_FORMAT, "key %s.attention.key_length is %d; it must be even", h->arch, h->head_k)
               : CERA_OK;
}

static cera_status read_scaling(cera_hparams *h, cera_error *e) {
    cera_rope_spec *r = &h->rope;
    char key[KEY_BYTES];
    cera_text_view type = {0};
    full_name(h, "rope.scaling.type", key);
    r->scaling = CERA_SCALING_NONE;
    bool linear_old = cera_key_has(h, "rope.scale_linear");
    if (cera_gguf_find(h->file, key)) {
        CERA_TRY(cera_gguf_get_text(h->file, key, &type, e));
        static const struct {
            const char *name;
            cera_rope_scaling s;
        } names[] = {{"none", CERA_SCALING_NONE},
                     {"linear", CERA_SCALING_LINEAR},
                     {"yarn", CERA_SCALING_YARN},
                     {"longrope", CERA_SCALING_LONGROPE},
                     {"su", CERA_SCALING_LONGROPE}};
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (type.size == strlen(names[i].name) && !memcmp(type.text, names[i].name, type.size))
                r->scaling = names[i].s, known = true;
        if (!known)
            return cera_fail(e, CERA_ERR_UNSUPPORTED, "key %s is \"%.*s\"; none, linear, yarn and longrope are supported", key,
                             (int)type.size, type.text);
    } else if (linear_old || cera_key_has(h, "rope.scaling.factor")) {
        r->scaling = CERA_SCALING_LINEAR;
    }
    CERA_TRY(cera_key_f64_or(h, linear_old ? "rope.scale_linear" : "rope.scaling.factor", 0, 1e6, 1, &r->factor, e));
    if (r->factor == 0) r->factor = 1;
    CERA_TRY(cera_key_int_or(h, "rope.scaling.original_context_length", 1, CERA_MAX_CONTEXT, h->n_ctx_train,
                             &r->original_context, e));
    CERA_TRY(cera_key_f64_or(h, "rope.scaling.attn_factor", 1e-3, 1e3, 1, &r->attn_factor, e));
    CERA_TRY(cera_key_f64_or(h, "rope.scaling.yarn_ext_factor", 0, 1, 1, &r->ext_factor, e));
    CERA_TRY(cera_key_f64_or(h, "rope.scaling.yarn_attn_factor", 1e-3, 1e3, r->attn_factor, &r->attn_factor, e));
    CERA_TRY(cera_key_f64_or(h, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32, &r->beta_fast, e));
    CERA_TRY(cera_key_f64_or(h, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1, &r->beta_slow, e));
    return cera_key_f64_or(h, "rope.scaling.yarn_log_multiplier", 0, 100, 0, &r->log_multiplier, e);
}

static cera_status read_rope(cera_hparams *h, cera_error *e) {
    CERA_TRY(cera_key_f64_or(h, "rope.freq_base", 1, 1e12, 10000, &h->rope.base, e));
    CERA_TRY(cera_key_int_or(h, "rope.dimension_count", 2, CERA_MAX_ROT, h->head_k, &h->rope.n_rot, e));
    if (h->rope.n_rot % 2 || h->rope.n_rot > h->head_k)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s.rope.dimension_count is %d; it must be even and at most the head size %d",
                         h->arch, h->rope.n_rot, h->head_k);
    return read_scaling(h, e);
}

static cera_status read_vocabulary(cera_hparams *h, cera_error *e) {
    const cera_gguf_value *tokens = cera_gguf_find(h->file, "tokenizer.ggml.tokens");
    const cera_gguf_tensor *embedding = cera_gguf_tensor_find(h->file, "token_embd.weight");
    uint64_t n = tokens && tokens->is_array ? tokens->n : 0;
    if (!n) {
        int v;
        CERA_TRY(cera_key_int_or(h, "vocab_size", 1, 1 << 24,
                                 embedding && embedding->shape[1] < (1 << 24) ? (int)embedding->shape[1] : 0, &v, e));
        n = (uint64_t)v;
    }
    if (n < 1 || n > 1 << 24)
        return cera_fail(e, CERA_ERR_FORMAT, "a vocabulary of %llu tokens; it must be between 1 and %d", (unsigned long long)n,
                         1 << 24);
    h->n_vocab = (int)n;
    return CERA_OK;
}

cera_status cera_hparams_common(cera_hparams *h, cera_error *e) {
    h->embedding_scale = h->residual_scale = h->logit_scale = h->expert_scale = 1;
    CERA_TRY(cera_key_int(h, "block_count", 1, CERA_MAX_LAYERS, &h->n_layer, e));
    CERA_TRY(cera_key_int(h, "embedding_length", 1, CERA_MAX_WIDTH, &h->n_embd, e));
    CERA_TRY(cera_key_int(h, "context_length", 1, CERA_MAX_CONTEXT, &h->n_ctx_train, e));
    if (!h->n_ctx) h->n_ctx = h->n_ctx_train;
    if (cera_key_has(h, "feed_forward_length")) CERA_TRY(each_layer(h, "feed_forward_length", 0, CERA_MAX_WIDTH, h->n_ff, e));
    CERA_TRY(read_heads(h, e));
    bool layer_norm = !cera_key_has(h, "attention.layer_norm_rms_epsilon") && cera_key_has(h, "attention.layer_norm_epsilon");
    CERA_TRY(cera_key_f32_or(h, layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 0, 1, 1e-5f,
                             &h->eps, e));
    CERA_TRY(read_rope(h, e));
    h->rope_swa = h->rope;
    return read_vocabulary(h, e);
}

cera_status cera_hparams_experts(cera_hparams *h, cera_error *e) {
    h->expert_gating = 1, h->expert_norm_min = 6.103515625e-5f; /* 2^-14: llama.cpp's floor of the sum of weights */
    CERA_TRY(cera_key_int_or(h, "expert_count", 0, 1024, 0, &h->n_expert, e));
    if (!h->n_expert) return CERA_OK;
    CERA_TRY(cera_key_int(h, "expert_used_count", 1, h->n_expert, &h->n_expert_used, e));
    CERA_TRY(
        cera_key_int_or(h, "expert_feed_forward_length", 1, CERA_MAX_WIDTH, h->n_ff[0] ? h->n_ff[0] : 1, &h->n_ff_expert, e));
    CERA_TRY(cera_key_int_or(h, "expert_shared_feed_forward_length", 0, CERA_MAX_WIDTH, 0, &h->n_ff_shared, e));
    CERA_TRY(cera_key_int_or(h, "leading_dense_block_count", 0, h->n_layer, 0, &h->n_dense_lead, e));
    CERA_TRY(cera_key_int_or(h, "expert_gating_func", 0, 3, 0, &h->expert_gating, e));
    CERA_TRY(cera_key_bool_or(h, "expert_weights_norm", false, &h->expert_normalise, e));
    CERA_TRY(cera_key_f32_or(h, "expert_weights_scale", 0, 1e4, 1, &h->expert_scale, e));
    if (h->expert_scale == 0) h->expert_scale = 1;
    CERA_TRY(cera_key_int_or(h, "expert_group_count", 0, h->n_expert, 0, &h->n_expert_groups, e));
    CERA_TRY(cera_key_int_or(h, "expert_group_used_count", 0, h->n_expert_groups, 0, &h->n_expert_groups_used, e));
    if (h->n_expert_groups > 1 && (h->n_expert % h->n_expert_groups || h->n_expert_groups_used < 1 || h->n_expert_groups > 64))
        return cera_fail(e, CERA_ERR_FORMAT, "key %s.expert_group_count is %d (%d used) for %d experts", h->arch,
                         h->n_expert_groups, h->n_expert_groups_used, h->n_expert);
    return CERA_OK;
}

cera_status cera_hparams_window(cera_hparams *h, int period, cera_error *e) {
    char key[KEY_BYTES];
    CERA_TRY(cera_key_int_or(h, "attention.sliding_window", 0, CERA_MAX_CONTEXT, 0, &h->window, e));
    full_name(h, "attention.sliding_window_pattern", key);
    const cera_gguf_value *pattern = cera_gguf_find(h->file, key);
    if (pattern && pattern->is_array) {
        CERA_TRY(cera_gguf_get_bool_each(h->file, key, (size_t)h->n_layer, h->slides, e));
    } else {
        CERA_TRY(cera_key_int_or(h, "attention.sliding_window_pattern", 0, CERA_MAX_LAYERS, period, &period, e));
        for (int i = 0; i < h->n_layer; i++) h->slides[i] = period == 0 || i % period != period - 1;
    }
    if (h->window >= h->n_ctx_train && h->window >= h->n_ctx) h->window = 0; /* it hides nothing */
    for (int i = 0; i < h->n_layer; i++) h->slides[i] = h->slides[i] && h->window > 0;
    return CERA_OK;
}

bool cera_layer_is_expert(const cera_hparams *h, int layer) { return h->n_expert > 0 && layer >= h->n_dense_lead; }
bool cera_layer_is_dense(const cera_hparams *h, int layer) { return !cera_layer_is_expert(h, layer); }
