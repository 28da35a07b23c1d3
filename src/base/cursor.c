/* cursor.c: bounded little-endian reads. Owns the one comparison that keeps every parser inside its bytes:
 * n is compared with what is left, never added to a position. */
#include "base/cursor.h"

bool cera_cursor_bytes(cera_cursor *c, size_t n, const uint8_t **out) {
    if (c->failed || n > cera_cursor_left(c)) {
        c->failed = true;
        return false;
    }
    *out = c->data + c->at;
    c->at += n;
    return true;
}

bool cera_cursor_u8(cera_cursor *c, uint8_t *out) {
    const uint8_t *p;
    if (!cera_cursor_bytes(c, 1, &p)) return false;
    *out = p[0];
    return true;
}

bool cera_cursor_u16(cera_cursor *c, uint16_t *out) {
    const uint8_t *p;
    if (!cera_cursor_bytes(c, 2, &p)) return false;
    *out = (uint16_t)(p[0] | p[1] << 8);
    return true;
}

bool cera_cursor_u32(cera_cursor *c, uint32_t *out) {
    const uint8_t *p;
    if (!cera_cursor_bytes(c, 4, &p)) return false;
    *out = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return true;
}

bool cera_cursor_u64(cera_cursor *c, uint64_t *out) {
    const uint8_t *p;
    if (!cera_cursor_bytes(c, 8, &p)) return false;
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
    *out = v;
    return true;
}
