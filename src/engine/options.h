/* options.h: taking structs that start with their own size from callers built against any version of cera.h. */
#ifndef CERA_ENGINE_OPTIONS_H
#define CERA_ENGINE_OPTIONS_H

#include "base/status.h"

/* Copies a caller's struct into ours, zeroed where the caller's is shorter. A longer one comes from a newer header: it is taken
 * when what we do not know is zero. given NULL: all defaults. what: the struct's name, for the message. */
cera_status cera_options_take(const char *what, const void *given, void *own, size_t own_size, cera_error *e);
/* The other way: fills a caller's struct of its stated size from ours, leaving its size as it is. */
cera_status cera_options_give(const char *what, void *given, const void *own, size_t own_size, cera_error *e);

#endif
