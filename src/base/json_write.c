/* json_write.c: a growing text, and JSON written into it. Output is always valid UTF-8, whatever strings hold.
 * Does not own pretty printing: JSON here is for programs. */
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

/* Room for n more bytes and a NUL; false when there is none. */
static bool reserve(cera_buffer *b, size_t n) {
    if (b->failed) return false;
    size_t most = b->limit ? b->limit : SIZE_MAX / 2;
    if (b->size > most || n > most - b->size) {
        b->failed = true;
        return false;
    }
    size_t need = b->size + n + 1, capacity = b->capacity < 128 ? 128 : b->capacity;
    if (need <= b->capacity) return true;
    while (capacity < need) capacity += capacity / 2;
    char *grown = cera_alloc_grow(b->data, b->size, capacity, 1);
    if (!grown) {
        b->failed = true;
        return false;
    }
    b->data = grown;
    b->capacity = capacity;
    return true;
}

void cera_buffer_add(cera_buffer *b, const char *data, size_t n) {
    if (!reserve(b, n)) return;
    if (n > 0) memcpy(b->data + b->size, data, n);
    b->size += n;
    b->data[b->size] = 0;
}

void cera_buffer_add_text(cera_buffer *b, const char *text) { cera_buffer_add(b, text, strlen(text)); }

void cera_buffer_printf(cera_buffer *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) b->failed = true;
    if (n < 0 || !reserve(b, (size_t)n)) return;
    va_start(args, format);
    vsnprintf(b->data + b->size, (size_t)n + 1, format, args);
    va_end(args);
    b->size += (size_t)n;
}

void cera_buffer_deinit(cera_buffer *b) {
    cera_free(b->data);
    *b = (cera_buffer){0};
}

/* Length of the bytes at text that one U+FFFD stands for: a character's beginning that is broken off, else one byte (the
 * substitution of maximal subparts, Unicode 15 section 3.9). */
static size_t broken_length(const char *text, size_t n) {
    for (size_t k = n < 3 ? n : 3; k > 1; k--)
        if (cera_utf8_incomplete_tail(text, k) == k) return k;
    return 1;
}

static void write_escape(cera_buffer *b, uint32_t code) {
    static const char names[] = "btn?fr"; /* of 8, 9, 10, 12, 13 */
    if (code == '"' || code == '\\')
        cera_buffer_printf(b, "\\%c", (char)code);
    else if (code >= 8 && code <= 13 && code != 11)
        cera_buffer_printf(b, "\\%c", names[code - 8]);
    else if (code < 0x10000)
        cera_buffer_printf(b, "\\u%04x", (unsigned)code);
    else
        cera_buffer_printf(b, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)), (unsigned)(0xdc00 + (code & 0x3ff)));
}

void cera_json_write_string(cera_buffer *b, const char *text, size_t n, bool ascii) {
    size_t run = 0, i = 0; /* [run, i) goes out as it is */
    cera_buffer_add(b, "\"", 1);
    while (i < n) {
        uint32_t code = 0;
        int length = cera_utf8_decode(text + i, n - i, &code);
        bool plain = length > 0 && code >= 0x20 && code != '"' && code != '\\' && !(ascii && code > 0x7e);
        size_t used = length > 0 ? (size_t)length : broken_length(text + i, n - i);
        if (!plain) {
            cera_buffer_add(b, text + run, i - run);
            run = i + used;
            if (length > 0 || ascii)
                write_escape(b, length > 0 ? code : 0xfffd);
            else
                cera_buffer_add(b, "\xef\xbf\xbd", 3);
        }
        i += used;
    }
    cera_buffer_add(b, text + run, n - run);
    cera_buffer_add(b, "\"", 1);
}

static void write_value(cera_buffer *b, const cera_json *v, int depth);

static void write_members(cera_buffer *b, const cera_json *v, int depth) {
    bool is_object = v->kind == CERA_JSON_OBJECT;
    cera_buffer_add(b, is_object ? "{" : "[", 1);
    for (uint32_t i = 0; i < v->n && !b->failed; i++) {
        if (i > 0) cera_buffer_add(b, ",", 1);
        if (is_object) {
            cera_json_write_string(b, v->keys[i].text, v->keys[i].size, false);
            cera_buffer_add(b, ":", 1);
        }
        write_value(b, &v->items[i], depth + 1);
    }
    cera_buffer_add(b, is_object ? "}" : "]", 1);
}

/* Recursive, as deep as the parser lets a tree become; a deeper one, which somebody has built by hand, fails. */
static void write_value(cera_buffer *b, const cera_json *v, int depth) {
    if (depth > CERA_JSON_MAX_DEPTH) b->failed = true;
    if (b->failed) return;
    switch (v->kind) {
    case CERA_JSON_NULL: cera_buffer_add(b, "null", 4); break;
    case CERA_JSON_FALSE: cera_buffer_add(b, "false", 5); break;
    case CERA_JSON_TRUE: cera_buffer_add(b, "true", 4); break;
    case CERA_JSON_NUMBER: cera_buffer_add(b, v->text.text, v->text.size); break;
    case CERA_JSON_STRING: cera_json_write_string(b, v->text.text, v->text.size, false); break;
    case CERA_JSON_ARRAY:
    case CERA_JSON_OBJECT: write_members(b, v, depth); break;
    }
}

void cera_json_write(cera_buffer *b, const cera_json *v) { write_value(b, v, 0); }
