/* embedded.h: the model in the box: a whole GGUF file in the program's read-only data, put there by the build (CMake's
 * CERA_EMBED_MODEL). A program without one has size 0. 64-byte aligned; never freed. */
#ifndef CERA_COMMON_EMBEDDED_H
#define CERA_COMMON_EMBEDDED_H

#include <stdint.h>

extern const unsigned char cera_embedded_model[]; /* [cera_embedded_model_size] bytes */
extern const uint64_t cera_embedded_model_size;

#endif
