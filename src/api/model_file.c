/* model_file.c: the keys and tensors of a GGUF file for whoever wants to look, whether the engine can run it or not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "engine/options.h"
#include "format/gguf.h"

struct cera_model_file {
    cera_gguf *gguf;
};

cera_status cera_model_file_open(const char *path, const cera_engine_options *options, cera_model_file **out, cera_error *e) {
    if (!path || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_model_file_open: path and out must not be NULL");
    cera_engine_options o;
    CERA_TRY(cera_options_take("cera_engine_options", options, &o, sizeof o, e));
    const cera_gguf_options gguf_options = {
        .file_flags = o.no_mmap ? CERA_FILE_NO_MMAP : 0,
        .progress = o.progress,
        .progress_ctx = o.progress_ctx,
        .overrides = o.overrides,
        .n_overrides = (int)o.n_overrides,
    };
    cera_model_file *f = cera_alloc(1, sizeof *f);
    if (!f) return cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", path);
    const cera_status status = cera_gguf_open(path, &gguf_options, &f->gguf, e);
    if (status != CERA_OK) {
        cera_model_file_close(f);
        return status;
    }
    *out = f;
    return CERA_OK;
}

void cera_model_file_close(cera_model_file *f) {
    if (!f) return;
    cera_gguf_close(f->gguf);
    cera_free(f);
}

uint32_t cera_model_file_version(const cera_model_file *f) { return f ? cera_gguf_version(f->gguf) : 0; }
uint64_t cera_model_file_bytes(const cera_model_file *f) { return f ? cera_gguf_file_bytes(f->gguf) : 0; }
size_t cera_model_file_n_keys(const cera_model_file *f) { return f ? cera_gguf_n_keys(f->gguf) : 0; }
size_t cera_model_file_n_tensors(const cera_model_file *f) { return f ? cera_gguf_n_tensors(f->gguf) : 0; }

/* ---- keys ---- */

static const char *type_name(cera_gguf_type t) {
    static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
    return (unsigned)t < sizeof names / sizeof *names ? names[t] : "?";
}

static int type_bytes(cera_gguf_type t) {
    static const unsigned char bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return (unsigned)t < sizeof bytes ? bytes[t] : 0;
}

static cera_status check_index(const char *what, size_t index, size_t n, cera_error *e) {
    if (index < n) return CERA_OK;
    return cera_fail(e, CERA_ERR_ARGUMENT, "%s %zu does not exist; there are %zu", what, index, n);
}

cera_status cera_model_file_key(const cera_model_file *f, size_t index, cera_model_key *out, cera_error *e) {
    if (!f || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_model_file_key: file and out must not be NULL");
    CERA_TRY(check_index("key", index, cera_gguf_n_keys(f->gguf), e));
    const cera_gguf_value *v = cera_gguf_key(f->gguf, index);
    const cera_model_key own = {
        .size = sizeof own,
        .name = v->key,
        .type = type_name(v->type),
        .is_array = v->is_array,
        .is_text = v->type == CERA_GGUF_STRING,
        .n = v->n,
    };
    return cera_options_give("cera_model_key", out, &own, sizeof own, e);
}

static void give_text(char *text, size_t capacity, size_t *size, const char *from, size_t n) {
    if (size) *size = n;
    if (capacity == 0) return;
    const size_t copied = n < capacity ? n : capacity - 1;
    memcpy(text, from, copied);
    text[copied] = 0;
}

/* Strings stand one after another, each with its length: element i is found by walking. Programs ask in order and for few. */
static bool find_string(const cera_gguf_value *v, uint64_t element, const uint8_t **at, size_t *n) {
    cera_cursor c = {.data = v->data, .size = v->size_bytes};
    for (uint64_t i = 0;; i++) {
        uint64_t length = 0;
        if (!cera_cursor_u64(&c, &length) || length > cera_cursor_left(&c) || !cera_cursor_bytes(&c, (size_t)length, at))
            return false;
        *n = (size_t)length;
        if (i == element) return true;
    }
}

/* A number as JSON; what is not finite is no JSON number and becomes a string. */
static int print_float(char *out, size_t capacity, double v, int digits) {
    return isfinite(v) ? snprintf(out, capacity, "%.*g", digits, v)
                       : snprintf(out, capacity,
                                  isnan(v) ? "\"nan\""
                                  : v > 0  ? "\"inf\""
                                           : "\"-inf\"");
}

static int print_number(char *out, size_t capacity, cera_gguf_type type, const uint8_t *at) {
    uint64_t bits = 0;
    for (int i = type_bytes(type) - 1; i >= 0; i--) bits = bits << 8 | at[i];
    const int unused = 64 - 8 * type_bytes(type);
    const int64_t with_sign = (int64_t)(bits << unused) >> unused;
    float f;
    double d;
    const uint32_t low = (uint32_t)bits;
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &bits, sizeof d);
    switch (type) {
    case CERA_GGUF_I8:
    case CERA_GGUF_I16:
    case CERA_GGUF_I32:
    case CERA_GGUF_I64: return snprintf(out, capacity, "%lld", (long long)with_sign);
    case CERA_GGUF_BOOL: return snprintf(out, capacity, bits ? "true" : "false");
    case CERA_GGUF_F32: return print_float(out, capacity, (double)f, 9);
    case CERA_GGUF_F64: return print_float(out, capacity, d, 17);
    default: return snprintf(out, capacity, "%llu", (unsigned long long)bits);
    }
}

cera_status cera_model_file_value(const cera_model_file *f, size_t index, uint64_t element, char *text, size_t capacity,
                                  size_t *size, cera_error *e) {
    if (!f || (!text && capacity > 0))
        return cera_fail(e, CERA_ERR_ARGUMENT, "cera_model_file_value: file and text must not be NULL");
    CERA_TRY(check_index("key", index, cera_gguf_n_keys(f->gguf), e));
    const cera_gguf_value *v = cera_gguf_key(f->gguf, index);
    if (element >= v->n)
        return cera_fail(e, CERA_ERR_ARGUMENT, "key %s: element %llu does not exist; there are %llu", v->key,
                         (unsigned long long)element, (unsigned long long)v->n);
    if (v->type == CERA_GGUF_STRING) {
        const uint8_t *at = NULL;
        size_t n = 0;
        if (!find_string(v, element, &at, &n)) return cera_fail(e, CERA_ERR_FORMAT, "key %s: its strings end early", v->key);
        give_text(text, capacity, size, (const char *)at, n);
        return CERA_OK;
    }
    char number[40];
    const int n = print_number(number, sizeof number, v->type, v->data + element * (uint64_t)type_bytes(v->type));
    give_text(text, capacity, size, number, (size_t)n);
    return CERA_OK;
}

/* ---- tensors ---- */

cera_status cera_model_file_tensor(const cera_model_file *f, size_t index, cera_model_tensor *out, cera_error *e) {
    if (!f || !out) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_model_file_tensor: file and out must not be NULL");
    CERA_TRY(check_index("tensor", index, cera_gguf_n_tensors(f->gguf), e));
    const cera_gguf_tensor *t = cera_gguf_tensor_at(f->gguf, index);
    const cera_dtype_info *type = cera_dtype_get((uint32_t)t->dtype);
    cera_model_tensor own = {
        .size = sizeof own,
        .name = t->name,
        .type = type->name ? type->name : "?",
        .computes = type->computes,
        .n_dims = t->n_dims,
        .bytes = t->size_bytes,
    };
    memcpy(own.shape, t->shape, sizeof own.shape);
    return cera_options_give("cera_model_tensor", out, &own, sizeof own, e);
}
