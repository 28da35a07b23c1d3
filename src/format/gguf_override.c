/* gguf_override.c: "key=type:value" from the command line, put among the keys of an opened file before anything reads them.
 * Does not own which keys make sense; keys that describe the file's own layout cannot be overridden. */
#include "format/gguf_int.h"

#include <string.h>
#include "base/number.h"
#include "base/utf8.h"

static const char usage[] = "key=type:value, type one of int, float, bool, str";

static bool describes_layout(const char *key) {
    return strcmp(key, "general.alignment") == 0 || strncmp(key, "split.", 6) == 0;
}

static void store_le(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Fills v from the text after "type:". bytes: storage of the value, 8 + strlen(text) + 1 long. */
static bool parse_typed(const char *type, size_t n_type, const char *text, uint8_t *bytes, cera_gguf_value *v) {
    size_t n = strlen(text);
    v->size_bytes = 8;
    if (n_type == 3 && memcmp(type, "int", 3) == 0) {
        int64_t i;
        if (!cera_number_i64(text, n, &i)) return false;
        v->type = CERA_GGUF_I64;
        store_le(bytes, (uint64_t)i);
        return true;
    }
    if (n_type == 5 && memcmp(type, "float", 5) == 0) {
        double f;
        uint64_t raw;
        if (!cera_number_f64(text, n, &f)) return false;
        memcpy(&raw, &f, sizeof raw);
        v->type = CERA_GGUF_F64;
        store_le(bytes, raw);
        return true;
    }
    if (n_type == 4 && memcmp(type, "bool", 4) == 0) {
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) return false;
        v->type = CERA_GGUF_BOOL;
        v->size_bytes = 1;
        bytes[0] = text[0] == 't';
        return true;
    }
    if (n_type != 3 || memcmp(type, "str", 3) != 0) return false;
    v->type = CERA_GGUF_STRING;
    v->size_bytes = 8 + n;
    store_le(bytes, n);
    memcpy(bytes + 8, text, n);
    return true;
}

static cera_status override_one(cera_gguf_part *part, cera_arena *arena, const char *text, cera_error *e) {
    const char *equals = strchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    size_t n_key = equals ? (size_t)(equals - text) : 0;
    if (!colon || n_key == 0 || n_key > CERA_GGUF_MAX_NAME || !cera_utf8_valid(text, n_key))
        return cera_fail(e, CERA_ERR_ARGUMENT, "override \"%s\" is not of the form %s", text, usage);
    cera_gguf_value v = {.key = cera_arena_text(arena, text, n_key), .n = 1};
    uint8_t *bytes = cera_arena_alloc(arena, 8 + strlen(colon), 1);
    if (!v.key || !bytes) return cera_fail(e, CERA_ERR_MEMORY, "no memory for an override");
    v.data = bytes;
    if (describes_layout(v.key))
        return cera_fail(e, CERA_ERR_ARGUMENT, "override of %s: it describes the file's layout", v.key);
    if (!parse_typed(equals + 1, (size_t)(colon - equals - 1), colon + 1, bytes, &v))
        return cera_fail(e, CERA_ERR_ARGUMENT, "override \"%s\": no such type, or no value of it; the form is %s", text, usage);
    size_t at = cera_name_table_find(&part->key_table, v.key);
    if (at != SIZE_MAX) {
        part->keys[at] = v;
        return CERA_OK;
    }
    part->keys[part->n_keys] = v; /* parse kept room for one key an override */
    if (cera_name_table_insert(&part->key_table, part->n_keys) != CERA_NAME_NEW)
        return cera_fail(e, CERA_ERR_LIMIT, "override of %s: too many names share a hash", v.key);
    part->n_keys++;
    return CERA_OK;
}

cera_status cera_gguf_part_override(cera_gguf_part *part, cera_arena *arena, const char *const *overrides, int n,
                                    cera_error *e) {
    for (int i = 0; i < n; i++) CERA_TRY(override_one(part, arena, overrides[i], e));
    return CERA_OK;
}
