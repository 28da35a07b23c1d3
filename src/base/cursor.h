/* cursor.h: reading little-endian numbers from untrusted bytes. A read past the end fails and leaves the cursor where it
 * was; a failed cursor stays failed, so callers may check once at the end of a record. */
#ifndef CERA_BASE_CURSOR_H
#define CERA_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cera_cursor {
    const uint8_t *data; /* borrowed */
    size_t size, at;     /* at <= size always */
    bool failed;
} cera_cursor;

static inline size_t cera_cursor_left(const cera_cursor *c) { return c->size - c->at; }
bool cera_cursor_bytes(cera_cursor *c, size_t n, const uint8_t **out); /* a view of n bytes */
bool cera_cursor_u8(cera_cursor *c, uint8_t *out);
bool cera_cursor_u16(cera_cursor *c, uint16_t *out);
bool cera_cursor_u32(cera_cursor *c, uint32_t *out);
bool cera_cursor_u64(cera_cursor *c, uint64_t *out);

#endif
