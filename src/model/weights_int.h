/* weights_int.h: loading one rule's tensor of one layer (layer 0 for rules that are not of a layer). */
#ifndef CERA_MODEL_WEIGHTS_INT_H
#define CERA_MODEL_WEIGHTS_INT_H

#include "model/model_int.h"

cera_status cera_weights_load(cera_builder *b, const cera_tensor_rule *r, int layer, cera_error *e);

#endif
