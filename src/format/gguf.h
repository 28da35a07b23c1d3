/* gguf.h: reads GGUF v2 and v3 (little endian), one file or a split set opened from its first part. Every count, length and
 * offset is checked against the bytes that are there before anything is allocated; validation is O(keys + tensors).
 * An opened gguf borrows from its mapped files: views stay valid until cera_gguf_close. Immutable after open: any thread. */
#ifndef CERA_FORMAT_GGUF_H
#define CERA_FORMAT_GGUF_H

#include "base/file.h"
#include "base/status.h"
#include "base/view.h"
#include "format/dtype.h"

enum {
    CERA_GGUF_MAX_KEYS = 65536,
    CERA_GGUF_MAX_TENSORS = 262144,
    CERA_GGUF_MAX_NAME = 1024, /* bytes of a key or tensor name */
    CERA_GGUF_MAX_DIMS = 4,
    CERA_GGUF_MAX_SPLITS = 1024
};

typedef enum cera_gguf_type {
    CERA_GGUF_U8,
    CERA_GGUF_I8,
    CERA_GGUF_U16,
    CERA_GGUF_I16,
    CERA_GGUF_U32,
    CERA_GGUF_I32,
    CERA_GGUF_F32,
    CERA_GGUF_BOOL,
    CERA_GGUF_STRING,
    CERA_GGUF_ARRAY,
    CERA_GGUF_U64,
    CERA_GGUF_I64,
    CERA_GGUF_F64
} cera_gguf_type;

typedef struct cera_gguf_value {
    const char *key;     /* NUL-terminated, printable */
    cera_gguf_type type; /* of the elements when is_array */
    bool is_array;
    uint64_t n;          /* elements; 1 for scalars */
    const uint8_t *data; /* packed little-endian elements; for strings: (u64 length, bytes) repeated */
    size_t size_bytes;
} cera_gguf_value;

typedef struct cera_gguf_tensor {
    const char *name;
    cera_dtype dtype; /* may be a type that does not compute (cera_dtype_get(dtype)->computes) */
    int n_dims;
    uint64_t shape[4];   /* fastest first, 1 beyond n_dims */
    const uint8_t *data; /* shape[0] / block_elements * block_bytes bytes a row, rows contiguous */
    uint64_t size_bytes;
} cera_gguf_tensor;

typedef struct cera_gguf cera_gguf;

typedef struct cera_gguf_options {
    unsigned file_flags;         /* CERA_FILE_* */
    cera_file_progress progress; /* may be NULL */
    void *progress_ctx;
    const char *const *overrides; /* "key=type:value", type one of int, float, bool, str; applied before anything reads keys */
    int n_overrides;
} cera_gguf_options;

/* Messages of the two open functions begin with the path (of the part at fault); those of the getters begin with "key": who
 * knows which file it is about adds it once, by cera_fail_prefix(e, cera_gguf_path(g)). */
cera_status cera_gguf_open(const char *path, const cera_gguf_options *options, cera_gguf **out,
                           cera_error *e); /* options may be NULL */
/* data is borrowed until close. Kernels want it aligned to 64 bytes; reading keys does not. */
cera_status cera_gguf_open_memory(const char *name, const void *data, size_t size_bytes, const cera_gguf_options *options,
                                  cera_gguf **out, cera_error *e);
void cera_gguf_close(cera_gguf *g);

const char *cera_gguf_path(const cera_gguf *g);
uint32_t cera_gguf_version(const cera_gguf *g);
uint64_t cera_gguf_file_bytes(const cera_gguf *g); /* all parts */
size_t cera_gguf_n_keys(const cera_gguf *g);
const cera_gguf_value *cera_gguf_key(const cera_gguf *g, size_t index);
const cera_gguf_value *cera_gguf_find(const cera_gguf *g, const char *key); /* NULL when absent */
size_t cera_gguf_n_tensors(const cera_gguf *g);
const cera_gguf_tensor *cera_gguf_tensor_at(const cera_gguf *g, size_t index);
const cera_gguf_tensor *cera_gguf_tensor_find(const cera_gguf *g, const char *name); /* NULL when absent */

/* Typed getters. Absent: CERA_ERR_NOT_FOUND and out untouched (and the error filled, naming the key). Any integer width, f32,
 * f64 and bool convert when the value is exactly representable; otherwise CERA_ERR_FORMAT naming key, value and what was
 * expected. A one-element array counts as a scalar. */
cera_status cera_gguf_get_u64(const cera_gguf *g, const char *key, uint64_t min, uint64_t max, uint64_t *out, cera_error *e);
cera_status cera_gguf_get_f64(const cera_gguf *g, const char *key, double *out, cera_error *e); /* finite only */
cera_status cera_gguf_get_bool(const cera_gguf *g, const char *key, bool *out, cera_error *e);
cera_status cera_gguf_get_text(const cera_gguf *g, const char *key, cera_text_view *out, cera_error *e);
/* A value per layer: an array of exactly n, or a scalar repeated n times. */
cera_status cera_gguf_get_u64_each(const cera_gguf *g, const char *key, uint64_t min, uint64_t max, size_t n, uint64_t *out,
                                   cera_error *e);
cera_status cera_gguf_get_bool_each(const cera_gguf *g, const char *key, size_t n, bool *out, cera_error *e);
/* Arrays. out must hold value->n elements. */
cera_status cera_gguf_get_texts(const cera_gguf *g, const char *key, size_t n, cera_text_view *out, cera_error *e);
cera_status cera_gguf_get_f32s(const cera_gguf *g, const char *key, size_t n, float *out, cera_error *e);
cera_status cera_gguf_get_i64s(const cera_gguf *g, const char *key, size_t n, int64_t *out, cera_error *e);

#endif
