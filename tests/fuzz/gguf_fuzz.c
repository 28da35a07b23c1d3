/* gguf_fuzz.c: fuzzes the GGUF reader. Whatever bytes come in: no crash, no read outside them; what opens is consistent (every
 * key and tensor is found under its name, every view lies inside the input) and survives every getter and an override. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "format/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void require(bool condition) {
    if (!condition) abort();
}

static void read_strings(const cera_gguf *g, const cera_gguf_value *v) {
    cera_text_view *texts = calloc(v->n ? v->n : 1, sizeof *texts);
    if (!texts) return;
    cera_status status =
        v->is_array ? cera_gguf_get_texts(g, v->key, v->n, texts, NULL) : cera_gguf_get_text(g, v->key, texts, NULL);
    require(status == CERA_OK);
    for (uint64_t i = 0; i < v->n; i++) sink += cera_hash64(texts[i].text, texts[i].size, 0);
    free(texts);
}

static void read_numbers(const cera_gguf *g, const cera_gguf_value *v) {
    size_t n = (size_t)v->n;
    void *out = calloc(n ? n : 1, 8);
    if (!out) return;
    cera_error e = {0};
    cera_gguf_get_u64_each(g, v->key, 1, 1000, n, out, &e);
    cera_gguf_get_bool_each(g, v->key, n, out, NULL);
    cera_gguf_get_f32s(g, v->key, n, out, &e);
    cera_gguf_get_i64s(g, v->key, n, out, NULL);
    free(out);
}

static void read_key(const cera_gguf *g, const cera_gguf_value *v) {
    uint64_t u;
    double f;
    bool b;
    cera_text_view text;
    cera_error e = {0};
    require(cera_gguf_find(g, v->key) == v);
    sink += cera_hash64(v->data, v->size_bytes, 0);
    if (v->type == CERA_GGUF_STRING)
        read_strings(g, v);
    else
        read_numbers(g, v);
    cera_gguf_get_u64(g, v->key, 0, UINT64_MAX, &u, &e);
    cera_gguf_get_f64(g, v->key, &f, NULL);
    cera_gguf_get_bool(g, v->key, &b, NULL);
    cera_gguf_get_text(g, v->key, &text, NULL);
}

static void read_tensor(const cera_gguf *g, const cera_gguf_tensor *t, const uint8_t *data, size_t size) {
    require(cera_gguf_tensor_find(g, t->name) == t);
    require(t->n_dims >= 1 && t->n_dims <= 4 && cera_dtype_get(t->dtype)->name);
    require(t->data >= data && t->size_bytes <= size && (size_t)(t->data - data) <= size - t->size_bytes);
    sink += cera_hash64(t->data, t->size_bytes, 0);
}

static void walk(const cera_gguf *g, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < cera_gguf_n_keys(g); i++) read_key(g, cera_gguf_key(g, i));
    for (size_t i = 0; i < cera_gguf_n_tensors(g); i++) read_tensor(g, cera_gguf_tensor_at(g, i), data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cera_gguf *g;
    cera_error e = {0};
    if (cera_gguf_open_memory("fuzz.gguf", data, size, NULL, &g, &e) != CERA_OK) {
        require(e.code != CERA_OK && strncmp(e.message, "fuzz.gguf: ", 11) == 0);
        return 0;
    }
    walk(g, data, size);
    cera_gguf_close(g);
    static const char *const overrides[] = {"llama.block_count=int:7", "general.name=str:x"};
    cera_gguf_options o = {.overrides = overrides, .n_overrides = 2};
    uint64_t n;
    if (cera_gguf_open_memory("fuzz.gguf", data, size, &o, &g, NULL) == CERA_OK) {
        require(cera_gguf_get_u64(g, "llama.block_count", 7, 7, &n, NULL) == CERA_OK);
        walk(g, data, size);
        cera_gguf_close(g);
    }
    return 0;
}
