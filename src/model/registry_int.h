/* registry_int.h: looking a family up. */
#ifndef CERA_MODEL_REGISTRY_INT_H
#define CERA_MODEL_REGISTRY_INT_H

#include "model/families_int.h"

const cera_family *cera_family_find(const char *arch); /* NULL: unknown */

#endif
