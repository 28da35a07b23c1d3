/* gguf_get.c: typed access to keys. A value converts when it is exactly representable in what the caller asks for; everything
 * else is an error that names the key, the value and what was expected. Does not own the meaning of any key. */
#include "format/gguf_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/cursor.h"

/* One number of a value, widened without loss. */
typedef struct number {
    enum { UNSIGNED, NEGATIVE, REAL } kind;
    uint64_t u; /* UNSIGNED; also bools */
    int64_t i;  /* NEGATIVE: < 0 */
    double f;   /* REAL */
} number;

static uint64_t read_le(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = n; i > 0; i--) v = v << 8 | p[i - 1];
    return v;
}

static number signed_number(int64_t v) {
    if (v >= 0) return (number){.kind = UNSIGNED, .u = (uint64_t)v};
    return (number){.kind = NEGATIVE, .i = v};
}

static double f32_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static number number_at(const cera_gguf_value *v, uint64_t index) {
    size_t size = cera_gguf_type_size(v->type);
    uint64_t raw = read_le(v->data + (size_t)index * size, size);
    number r = {.kind = UNSIGNED, .u = raw};
    switch (v->type) {
    case CERA_GGUF_I8: return signed_number((int8_t)raw);
    case CERA_GGUF_I16: return signed_number((int16_t)raw);
    case CERA_GGUF_I32: return signed_number((int32_t)raw);
    case CERA_GGUF_I64: return signed_number((int64_t)raw);
    case CERA_GGUF_F32: return (number){.kind = REAL, .f = f32_from_bits((uint32_t)raw)};
    case CERA_GGUF_F64:
        r.kind = REAL;
        memcpy(&r.f, &raw, sizeof r.f);
        return r;
    default: return r;
    }
}

/* "key x" or "key x[3]", and the value as text, for messages. */
typedef struct where {
    char text[CERA_GGUF_MAX_NAME / 2];
} where;

static const char *place(const cera_gguf_value *v, uint64_t index, where *w) {
    if (v->is_array)
        snprintf(w->text, sizeof w->text, "key %.400s[%" PRIu64 "]", v->key, index);
    else
        snprintf(w->text, sizeof w->text, "key %.400s", v->key);
    return w->text;
}

static cera_status fail_number(const cera_gguf_value *v, uint64_t index, number x, const char *expected, cera_error *e) {
    where w;
    place(v, index, &w);
    if (x.kind == REAL) return cera_fail(e, CERA_ERR_FORMAT, "%s is %.9g; %s", w.text, x.f, expected);
    if (x.kind == NEGATIVE) return cera_fail(e, CERA_ERR_FORMAT, "%s is %" PRId64 "; %s", w.text, x.i, expected);
    return cera_fail(e, CERA_ERR_FORMAT, "%s is %" PRIu64 "; %s", w.text, x.u, expected);
}

/* Whole numbers of doubles are exact below 2^64. */
static bool number_u64(number x, uint64_t *out) {
    if (x.kind == NEGATIVE) return false;
    if (x.kind == UNSIGNED) {
        *out = x.u;
        return true;
    }
    if (!(x.f >= 0 && x.f < 0x1p64) || x.f != floor(x.f)) return false;
    *out = (uint64_t)x.f;
    return true;
}

static bool number_i64(number x, int64_t *out) {
    if (x.kind == NEGATIVE) {
        *out = x.i;
        return true;
    }
    if (x.kind == UNSIGNED) {
        if (x.u > INT64_MAX) return false;
        *out = (int64_t)x.u;
        return true;
    }
    if (!(x.f >= -0x1p63 && x.f < 0x1p63) || x.f != floor(x.f)) return false;
    *out = (int64_t)x.f;
    return true;
}

static bool number_f64(number x, double *out) {
    if (x.kind == REAL) {
        *out = x.f;
        return true;
    }
    if (x.kind == NEGATIVE) {
        *out = (double)x.i;
        return *out >= -0x1p63 && (int64_t)*out == x.i;
    }
    *out = (double)x.u;
    return *out < 0x1p64 && (uint64_t)*out == x.u;
}

static bool number_bool(number x, bool *out) {
    uint64_t u;
    if (!number_u64(x, &u) || u > 1) return false;
    *out = u == 1;
    return true;
}

/* The key's value, which must hold numbers: n of them, or (when scalar_too) one. expected: "an integer" and the like. */
static cera_status find_numbers(const cera_gguf *g, const char *key, size_t n, bool scalar_too, const char *expected,
                                const cera_gguf_value **out, cera_error *e) {
    const cera_gguf_value *v = cera_gguf_find(g, key);
    if (!v) return cera_fail(e, CERA_ERR_NOT_FOUND, "key %s is missing", key);
    if (v->type == CERA_GGUF_STRING)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s is %s; it must be %s", key,
                         v->is_array ? "an array of strings" : "a string", expected);
    if (v->n != n && !(scalar_too && v->n == 1)) {
        if (n == 1) return cera_fail(e, CERA_ERR_FORMAT, "key %s has %" PRIu64 " elements; it must be %s", key, v->n, expected);
        return cera_fail(e, CERA_ERR_FORMAT, "key %s has %" PRIu64 " elements; there must be %zu", key, v->n, n);
    }
    *out = v;
    return CERA_OK;
}

cera_status cera_gguf_value_u64(const cera_gguf_value *v, uint64_t i, uint64_t min, uint64_t max, uint64_t *out,
                                cera_error *e) {
    char expected[96];
    if (v->type == CERA_GGUF_STRING) return cera_fail(e, CERA_ERR_FORMAT, "key %s is a string; it must be an integer", v->key);
    number x = number_at(v, i);
    uint64_t u;
    if (!number_u64(x, &u)) return fail_number(v, i, x, "it must be an integer that is not negative", e);
    if (u >= min && u <= max) {
        *out = u;
        return CERA_OK;
    }
    if (max == UINT64_MAX)
        snprintf(expected, sizeof expected, "it must be at least %" PRIu64, min);
    else
        snprintf(expected, sizeof expected, "it must be between %" PRIu64 " and %" PRIu64, min, max);
    return fail_number(v, i, x, expected, e);
}

cera_status cera_gguf_get_u64(const cera_gguf *g, const char *key, uint64_t min, uint64_t max, uint64_t *out, cera_error *e) {
    const cera_gguf_value *v = NULL;
    CERA_TRY(find_numbers(g, key, 1, true, "an integer", &v, e));
    return cera_gguf_value_u64(v, 0, min, max, out, e);
}

cera_status cera_gguf_get_f64(const cera_gguf *g, const char *key, double *out, cera_error *e) {
    const cera_gguf_value *v = NULL;
    double f;
    CERA_TRY(find_numbers(g, key, 1, true, "a number", &v, e));
    number x = number_at(v, 0);
    if (!number_f64(x, &f) || !isfinite(f)) return fail_number(v, 0, x, "it must be a finite number that a double can hold", e);
    *out = f;
    return CERA_OK;
}

cera_status cera_gguf_get_bool(const cera_gguf *g, const char *key, bool *out, cera_error *e) {
    return cera_gguf_get_bool_each(g, key, 1, out, e);
}

cera_status cera_gguf_get_text(const cera_gguf *g, const char *key, cera_text_view *out, cera_error *e) {
    const cera_gguf_value *v = cera_gguf_find(g, key);
    if (!v) return cera_fail(e, CERA_ERR_NOT_FOUND, "key %s is missing", key);
    if (v->type != CERA_GGUF_STRING)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s has type %s%s; it must be a string", key, v->is_array ? "array of " : "",
                         cera_gguf_type_name(v->type));
    if (v->n != 1) return cera_fail(e, CERA_ERR_FORMAT, "key %s has %" PRIu64 " elements; it must be one string", key, v->n);
    *out = (cera_text_view){(const char *)v->data + 8, v->size_bytes - 8};
    return CERA_OK;
}

cera_status cera_gguf_get_u64_each(const cera_gguf *g, const char *key, uint64_t min, uint64_t max, size_t n, uint64_t *out,
                                   cera_error *e) {
    const cera_gguf_value *v = NULL;
    CERA_TRY(find_numbers(g, key, n, true, "an integer", &v, e));
    for (size_t i = 0; i < n; i++) CERA_TRY(cera_gguf_value_u64(v, v->n == 1 ? 0 : i, min, max, &out[i], e));
    return CERA_OK;
}

cera_status cera_gguf_get_bool_each(const cera_gguf *g, const char *key, size_t n, bool *out, cera_error *e) {
    const cera_gguf_value *v = NULL;
    CERA_TRY(find_numbers(g, key, n, true, "a bool", &v, e));
    for (size_t i = 0; i < n; i++) {
        size_t at = v->n == 1 ? 0 : i;
        number x = number_at(v, at);
        if (!number_bool(x, &out[i])) return fail_number(v, at, x, "it must be true or false (1 or 0)", e);
    }
    return CERA_OK;
}

cera_status cera_gguf_get_texts(const cera_gguf *g, const char *key, size_t n, cera_text_view *out, cera_error *e) {
    const cera_gguf_value *v = cera_gguf_find(g, key);
    if (!v) return cera_fail(e, CERA_ERR_NOT_FOUND, "key %s is missing", key);
    if (v->type != CERA_GGUF_STRING || !v->is_array)
        return cera_fail(e, CERA_ERR_FORMAT, "key %s has type %s%s; it must be an array of strings", key,
                         v->is_array ? "array of " : "", cera_gguf_type_name(v->type));
    if (v->n != n) return cera_fail(e, CERA_ERR_FORMAT, "key %s has %" PRIu64 " elements; there must be %zu", key, v->n, n);
    cera_cursor c = {.data = v->data, .size = v->size_bytes};
    for (size_t i = 0; i < n; i++) {
        uint64_t size = 0;
        const uint8_t *text = NULL;
        /* Lengths were checked at open; they can only differ if somebody has written to the mapped file since. */
        if (!cera_cursor_u64(&c, &size) || size > cera_cursor_left(&c) || !cera_cursor_bytes(&c, (size_t)size, &text))
            return cera_fail(e, CERA_ERR_IO, "key %s: the file was changed while it was open", key);
        out[i] = (cera_text_view){(const char *)text, (size_t)size};
    }
    return CERA_OK;
}

cera_status cera_gguf_get_f32s(const cera_gguf *g, const char *key, size_t n, float *out, cera_error *e) {
    const cera_gguf_value *v = NULL;
    CERA_TRY(find_numbers(g, key, n, false, "an array of numbers", &v, e));
    for (size_t i = 0; i < n; i++) {
        number x = number_at(v, i);
        double f;
        if (!number_f64(x, &f) || (double)(float)f != f)
            return fail_number(v, i, x, "it must be a number that an f32 can hold", e);
        out[i] = (float)f;
    }
    return CERA_OK;
}

cera_status cera_gguf_get_i64s(const cera_gguf *g, const char *key, size_t n, int64_t *out, cera_error *e) {
    const cera_gguf_value *v = NULL;
    CERA_TRY(find_numbers(g, key, n, false, "an array of integers", &v, e));
    for (size_t i = 0; i < n; i++) {
        number x = number_at(v, i);
        if (!number_i64(x, &out[i])) return fail_number(v, i, x, "it must be an integer", e);
    }
    return CERA_OK;
}
