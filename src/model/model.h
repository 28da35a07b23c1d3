/* model.h: from a GGUF file to a plan: metadata -> checked hyperparameters, tensor names -> weights of checked shape, and the
 * family's builder. The registry (families.c) lists the families; each is one file. */
#ifndef CERA_MODEL_MODEL_H
#define CERA_MODEL_MODEL_H

#include "format/gguf.h"
#include "plan/plan.h"

typedef struct cera_model cera_model;

/* g must outlive the model (weights are views into it). n_ctx: the context the caller will use, 0 for the model's own; some
 * families choose their RoPE factors by it. */
cera_status cera_model_load(const cera_gguf *g, int n_ctx, cera_model **out, cera_error *e);
void cera_model_destroy(cera_model *m);

const cera_plan *cera_model_plan(const cera_model *m);
const char *cera_model_arch(const cera_model *m); /* general.architecture */
const char *cera_model_name(const cera_model *m); /* general.name or "" */
uint64_t cera_model_weight_bytes(const cera_model *m);
/* Names of the supported families, NULL after the last. */
const char *const *cera_model_families(void);

#endif
