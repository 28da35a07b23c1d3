/* tiny_model.h: GGUF models small enough to be made in memory by a test: random f32 weights, two to six layers, a SentencePiece
 * vocabulary with a token for every byte. Kinds: llama (full attention), gemma3 (sliding windows beside full layers), lfm2
 * (short convolutions with recurrent state beside attention). */
#ifndef CERA_TESTS_TINY_MODEL_H
#define CERA_TESTS_TINY_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { TINY_LLAMA, TINY_GEMMA3, TINY_LFM2 } tiny_kind;

enum {
    TINY_EMBD = 64,
    TINY_HEADS = 4,
    TINY_KV = 2,
    TINY_HEAD = 16,
    TINY_FF = 96,
    TINY_VOCAB = 320,
    TINY_CONTEXT = 2048,
    TINY_WINDOW = 48,
    TINY_BOS = 1,
    TINY_EOS = 2,
    TINY_BYTE0 = 3 /* token of byte 0 */
};

typedef struct tiny_model {
    uint8_t *data;
    size_t size, capacity;
    uint64_t n_keys, n_tensors;
    struct {
        char name[64];
        uint64_t shape[2];
        int n_dims;
        float scale, base;
    } tensors[128];
} tiny_model;

static inline void tiny_bytes(tiny_model *m, const void *data, size_t n) {
    if (m->size + n > m->capacity) {
        m->capacity = 2 * (m->size + n);
        m->data = realloc(m->data, m->capacity);
        if (!m->data) exit(99);
    }
    memcpy(m->data + m->size, data, n);
    m->size += n;
}

static inline void tiny_u32(tiny_model *m, uint32_t v) { tiny_bytes(m, &v, 4); }
static inline void tiny_u64(tiny_model *m, uint64_t v) { tiny_bytes(m, &v, 8); }
static inline void tiny_text(tiny_model *m, const char *s) {
    tiny_u64(m, strlen(s));
    tiny_bytes(m, s, strlen(s));
}

/* Types are GGUF's numbers: 4 u32, 5 i32, 6 f32, 7 bool, 8 string, 9 array. */
static inline void tiny_key(tiny_model *m, const char *key, uint32_t type) {
    tiny_text(m, key);
    tiny_u32(m, type);
    m->n_keys++;
}
static inline void tiny_key_u32(tiny_model *m, const char *key, uint32_t v) { tiny_key(m, key, 4), tiny_u32(m, v); }
static inline void tiny_key_f32(tiny_model *m, const char *key, float v) { tiny_key(m, key, 6), tiny_bytes(m, &v, 4); }
static inline void tiny_key_bool(tiny_model *m, const char *key, uint8_t v) { tiny_key(m, key, 7), tiny_bytes(m, &v, 1); }
static inline void tiny_key_text(tiny_model *m, const char *key, const char *v) { tiny_key(m, key, 8), tiny_text(m, v); }
static inline void tiny_key_array(tiny_model *m, const char *key, uint32_t type, uint64_t n) {
    tiny_key(m, key, 9);
    tiny_u32(m, type);
    tiny_u64(m, n);
}

static inline void tiny_arch_u32(tiny_model *m, const char *arch, const char *name, uint32_t v) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", arch, name);
    tiny_key_u32(m, key, v);
}

static inline void tiny_token(char out[16], int id) {
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    if (id < 3)
        strcpy(out, first[id]);
    else if (id < 259)
        snprintf(out, 16, "<0x%02X>", id - 3);
    else if (id == 259)
        strcpy(out, "\xE2\x96\x81"); /* U+2581, the space */
    else
        snprintf(out, 16, "w%d", id);
}

static inline void tiny_vocabulary(tiny_model *m) {
    tiny_key_text(m, "tokenizer.ggml.model", "llama");
    tiny_key_array(m, "tokenizer.ggml.tokens", 8, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) {
        char token[16];
        tiny_token(token, i);
        tiny_text(m, token);
    }
    tiny_key_array(m, "tokenizer.ggml.scores", 6, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) {
        const float score = -(float)i;
        tiny_bytes(m, &score, 4);
    }
    tiny_key_array(m, "tokenizer.ggml.token_type", 5, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) tiny_u32(m, i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1);
    tiny_key_u32(m, "tokenizer.ggml.bos_token_id", TINY_BOS);
    tiny_key_u32(m, "tokenizer.ggml.eos_token_id", TINY_EOS);
    tiny_key_u32(m, "tokenizer.ggml.unknown_token_id", 0);
    tiny_key_bool(m, "tokenizer.ggml.add_bos_token", 1);
}

/* rows 0: a vector. base: what the random part is added to (norms are around 1). */
static inline void tiny_tensor(tiny_model *m, const char *name, uint64_t k, uint64_t rows, float scale, float base) {
    snprintf(m->tensors[m->n_tensors].name, 64, "%s", name);
    m->tensors[m->n_tensors].shape[0] = k;
    m->tensors[m->n_tensors].shape[1] = rows;
    m->tensors[m->n_tensors].n_dims = rows ? 2 : 1;
    m->tensors[m->n_tensors].scale = scale;
    m->tensors[m->n_tensors].base = base;
    m->n_tensors++;
}

static inline void tiny_matrix(tiny_model *m, int layer, const char *stem, uint64_t k, uint64_t rows) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, stem);
    tiny_tensor(m, name, k, rows, 2.0f / sqrtf((float)k), 0.0f);
}

static inline void tiny_norm(tiny_model *m, int layer, const char *stem, uint64_t k) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, stem);
    tiny_tensor(m, name, k, 0, 0.2f, 1.0f);
}

static inline void tiny_layer(tiny_model *m, tiny_kind kind, int layer, bool attention) {
    tiny_norm(m, layer, "attn_norm", TINY_EMBD);
    if (attention) {
        tiny_matrix(m, layer, "attn_q", TINY_EMBD, TINY_HEADS * TINY_HEAD);
        tiny_matrix(m, layer, "attn_k", TINY_EMBD, TINY_KV * TINY_HEAD);
        tiny_matrix(m, layer, "attn_v", TINY_EMBD, TINY_KV * TINY_HEAD);
        tiny_matrix(m, layer, "attn_output", TINY_HEADS * TINY_HEAD, TINY_EMBD);
        if (kind != TINY_LLAMA) tiny_norm(m, layer, "attn_q_norm", TINY_HEAD), tiny_norm(m, layer, "attn_k_norm", TINY_HEAD);
    } else {
        tiny_matrix(m, layer, "shortconv.in_proj", TINY_EMBD, 3 * TINY_EMBD);
        tiny_matrix(m, layer, "shortconv.conv", 3, TINY_EMBD);
        tiny_matrix(m, layer, "shortconv.out_proj", TINY_EMBD, TINY_EMBD);
    }
    if (kind == TINY_GEMMA3)
        tiny_norm(m, layer, "post_attention_norm", TINY_EMBD), tiny_norm(m, layer, "post_ffw_norm", TINY_EMBD);
    tiny_norm(m, layer, "ffn_norm", TINY_EMBD);
    tiny_matrix(m, layer, "ffn_gate", TINY_EMBD, TINY_FF);
    tiny_matrix(m, layer, "ffn_up", TINY_EMBD, TINY_FF);
    tiny_matrix(m, layer, "ffn_down", TINY_FF, TINY_EMBD);
}

static inline float tiny_random(uint64_t *state) { /* in [-1, 1): splitmix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (float)((z ^ (z >> 31)) >> 40) / 8388608.0f - 1.0f;
}

static inline void tiny_keys(tiny_model *m, tiny_kind kind, int n_layers) {
    static const char *const archs[] = {"llama", "gemma3", "lfm2"};
    const char *arch = archs[kind];
    char key[64];
    tiny_key_text(m, "general.architecture", arch);
    tiny_key_text(m, "general.name", "tiny");
    tiny_arch_u32(m, arch, "block_count", (uint32_t)n_layers);
    tiny_arch_u32(m, arch, "context_length", TINY_CONTEXT);
    tiny_arch_u32(m, arch, "embedding_length", TINY_EMBD);
    tiny_arch_u32(m, arch, "feed_forward_length", TINY_FF);
    tiny_arch_u32(m, arch, "attention.head_count", TINY_HEADS);
    snprintf(key, sizeof key, "%s.attention.head_count_kv", arch);
    if (kind == TINY_LFM2) {
        tiny_key_array(m, key, 5, (uint64_t)n_layers);
        for (int i = 0; i < n_layers; i++) tiny_u32(m, i % 2 ? TINY_KV : 0);
        tiny_arch_u32(m, arch, "shortconv.l_cache", 3);
    } else
        tiny_key_u32(m, key, TINY_KV);
    tiny_arch_u32(m, arch, "attention.key_length", TINY_HEAD);
    tiny_arch_u32(m, arch, "attention.value_length", TINY_HEAD);
    if (kind == TINY_GEMMA3) tiny_arch_u32(m, arch, "attention.sliding_window", TINY_WINDOW);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    tiny_key_f32(m, key, 1e-5f);
    snprintf(key, sizeof key, "%s.rope.freq_base", arch);
    tiny_key_f32(m, key, 10000.0f);
}

/* The whole file; free(model.data). poison: a tensor whose weights are NaN, or NULL. */
static inline tiny_model tiny_make(tiny_kind kind, uint64_t seed, const char *poison) {
    tiny_model keys = {0}, m = {0};
    const int n_layers = kind == TINY_GEMMA3 ? 6 : 2;
    tiny_keys(&keys, kind, n_layers);
    tiny_vocabulary(&keys);
    tiny_tensor(&m, "token_embd.weight", TINY_EMBD, TINY_VOCAB, 1.0f, 0.0f);
    tiny_tensor(&m, kind == TINY_LFM2 ? "token_embd_norm.weight" : "output_norm.weight", TINY_EMBD, 0, 0.2f, 1.0f);
    tiny_tensor(&m, "output.weight", TINY_EMBD, TINY_VOCAB, 0.5f, 0.0f);
    for (int i = 0; i < n_layers; i++) tiny_layer(&m, kind, i, kind != TINY_LFM2 || i % 2);

    tiny_bytes(&m, "GGUF", 4);
    tiny_u32(&m, 3);
    tiny_u64(&m, m.n_tensors);
    tiny_u64(&m, keys.n_keys);
    tiny_bytes(&m, keys.data, keys.size);
    free(keys.data);
    uint64_t offset = 0;
    for (uint64_t i = 0; i < m.n_tensors; i++) {
        tiny_text(&m, m.tensors[i].name);
        tiny_u32(&m, (uint32_t)m.tensors[i].n_dims);
        for (int d = 0; d < m.tensors[i].n_dims; d++) tiny_u64(&m, m.tensors[i].shape[d]);
        tiny_u32(&m, 0); /* f32 */
        tiny_u64(&m, offset);
        const uint64_t n = m.tensors[i].shape[0] * (m.tensors[i].n_dims > 1 ? m.tensors[i].shape[1] : 1);
        offset += (4 * n + 31) / 32 * 32;
    }
    while (m.size % 32) tiny_bytes(&m, "", 1);
    uint64_t state = seed;
    for (uint64_t i = 0; i < m.n_tensors; i++) {
        const uint64_t n = m.tensors[i].shape[0] * (m.tensors[i].n_dims > 1 ? m.tensors[i].shape[1] : 1);
        for (uint64_t j = 0; j < n; j++) {
            float v = m.tensors[i].base + m.tensors[i].scale * tiny_random(&state);
            if (poison && strcmp(poison, m.tensors[i].name) == 0) v = NAN;
            tiny_bytes(&m, &v, 4);
        }
        while (m.size % 32) tiny_bytes(&m, "", 1);
    }
    return m;
}

#endif
