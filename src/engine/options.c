/* options.c: structs with their own size. The size is the first member of every one of them (cera.h). */
#include "engine/options.h"

#include <string.h>

enum { MAX_SIZE = 4096 }; /* of a struct that a newer header may bring */

static cera_status read_size(const char *what, const void *given, size_t *size, cera_error *e) {
    memcpy(size, given, sizeof *size);
    if (*size >= sizeof(size_t) && *size <= MAX_SIZE) return CERA_OK;
    return cera_fail(e, CERA_ERR_ARGUMENT, "%s.size is %zu; set it to sizeof(%s)", what, *size, what);
}

cera_status cera_options_take(const char *what, const void *given, void *own, size_t own_size, cera_error *e) {
    memset(own, 0, own_size);
    size_t size = own_size;
    if (given) {
        CERA_TRY(read_size(what, given, &size, e));
        const unsigned char *bytes = given;
        for (size_t i = own_size; i < size; i++)
            if (bytes[i] != 0)
                return cera_fail(e, CERA_ERR_UNSUPPORTED, "%s: byte %zu is set; this library knows %zu bytes of it", what, i,
                                 own_size);
        memcpy(own, given, size < own_size ? size : own_size);
    }
    memcpy(own, &own_size, sizeof own_size);
    return CERA_OK;
}

cera_status cera_options_give(const char *what, void *given, const void *own, size_t own_size, cera_error *e) {
    size_t size;
    CERA_TRY(read_size(what, given, &size, e));
    if (size > own_size) memset((unsigned char *)given + own_size, 0, size - own_size);
    memcpy((unsigned char *)given + sizeof size, (const unsigned char *)own + sizeof size,
           (size < own_size ? size : own_size) - sizeof size);
    return CERA_OK;
}
