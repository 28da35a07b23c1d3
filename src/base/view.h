/* view.h: a borrowed run of bytes, not NUL-terminated. */
#ifndef CERA_BASE_VIEW_H
#define CERA_BASE_VIEW_H

#include <stddef.h>

typedef struct cera_text_view {
    const char *text;
    size_t size;
} cera_text_view;

#endif
