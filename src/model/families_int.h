/* families_int.h: the family files' entries for the registry in families.c. */
#ifndef CERA_MODEL_FAMILIES_INT_H
#define CERA_MODEL_FAMILIES_INT_H

#include "model/model_int.h"

extern const cera_family cera_family_llama;

#endif
