/* plan.c: names of the plan's operations. The plan itself is data: see plan.h. */
#include "plan/plan.h"

const char *cera_op_name(cera_op_kind k) {
    static const char *const names[CERA_OP_COUNT] = {"EMBED", "NORM",      "MATMUL", "GLU",     "ROPE_KV", "ATTEND",
                                                     "HEADS", "SHORTCONV", "ROUTE",  "EXPERTS", "GATE",    "LOGITS"};
    return (unsigned)k < CERA_OP_COUNT ? names[k] : "?";
}
