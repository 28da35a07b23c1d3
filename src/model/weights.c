/* weights.c: finds the tensors a family's rules name, checks type and shape once, and fills the builder's slots with weights.
 */
#include <stdio.h>
#include <string.h>
#include "model/weights_int.h"

static const char *const stems[CERA_SLOT_COUNT] = {
#define SLOT(name, stem) [CERA_SLOT_##name] = stem,
#include "model/slots.def"
#undef SLOT
};

typedef struct dim_info {
    const char *words; /* for messages */
} dim_info;

static const dim_info dims[CERA_DIM_COUNT] = {[ONE] = {"1"},
                                              [N_EMBD] = {"n_embd"},
                                              [N_VOCAB] = {"n_vocab"},
                                              [Q_WIDTH] = {"n_head * head_dim"},
                                              [K_WIDTH] = {"n_head_kv * head_dim"},
                                              [V_WIDTH] = {"n_head_kv * value size"},
                                              [QKV_WIDTH] = {"(n_head + n_head_kv) * head_dim + n_head_kv * value size"},
                                              [O_WIDTH] = {"n_head * value size"},
                                              [HEAD_K] = {"head_dim"},
                                              [N_HEAD] = {"n_head"},
                                              [N_HEAD_KV] = {"n_head_kv"},
                                              [N_FF] = {"n_ff"},
                                              [TWO_FF] = {"2 * n_ff"},
                                              [N_ROT_HALF] = {"rotated size / 2"},
                                              [N_EXPERT] = {"n_expert"},
                                              [FF_EXPERT] = {"n_ff of an expert"},
                                              [FF_SHARED] = {"n_ff of the shared expert"},
                                              [CONV_L] = {"taps"},
                                              [CONV_WIDTH] = {"3 * n_embd"},
                                              [Q_RANK] = {"q rank"},
                                              [KV_RANK] = {"kv rank"},
                                              [KV_A_WIDTH] = {"kv rank + rotated size"},
                                              [Q_MLA_WIDTH] = {"n_head * key size"},
                                              [NOPE] = {"key size without rotation"},
                                              [HEAD_V_MLA] = {"value size"},
                                              [O_MLA_WIDTH] = {"n_head * value size"}};

static int64_t dim_size(const cera_hparams *h, int layer, cera_dim d) {
    int64_t heads = h->n_head[layer], kv = h->n_head_kv[layer];
    switch (d) {
    case ONE: return 1;
    case N_EMBD: return h->n_embd;
    case N_VOCAB: return h->n_vocab;
    case Q_WIDTH: return heads * h->head_k;
    case K_WIDTH: return kv * h->head_k;
    case V_WIDTH: return kv * h->head_v;
    case QKV_WIDTH: return (heads + kv) * h->head_k + kv * h->head_v;
    case O_WIDTH: return heads * h->head_v;
    case HEAD_K: return h->head_k;
    case N_HEAD: return heads;
    case N_HEAD_KV: return kv;
    case N_FF: return h->n_ff[layer];
    case TWO_FF: return 2 * (int64_t)h->n_ff[layer];
    case N_ROT_HALF: return h->rope.n_rot / 2;
    case N_EXPERT: return h->n_expert;
    case FF_EXPERT: return h->n_ff_expert;
    case FF_SHARED: return h->n_ff_shared;
    case CONV_L: return h->conv_l;
    case CONV_WIDTH: return 3 * (int64_t)h->n_embd;
    case Q_RANK: return h->q_rank;
    case KV_RANK: return h->kv_rank;
    case KV_A_WIDTH: return h->kv_rank + h->rope.n_rot;
    case Q_MLA_WIDTH: return heads * h->head_k_mla;
    case NOPE: return h->head_k_mla - h->rope.n_rot;
    case HEAD_V_MLA: return h->head_v_mla;
    case O_MLA_WIDTH: return heads * h->head_v_mla;
    default: return 0;
    }
}

static void tensor_name(const cera_tensor_rule *r, int layer, char *out, size_t size) {
    const char *kind = r->bias ? "bias" : "weight";
    if (r->layer)
        snprintf(out, size, "blk.%d.%s.%s", layer, stems[r->slot], kind);
    else
        snprintf(out, size, "%s.%s", stems[r->slot], kind);
}

static void shape_text(const uint64_t *shape, int n, char *out, size_t size) {
    size_t used = 0;
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
}

static cera_status check_shape(const cera_hparams *h, const cera_tensor_rule *r, int layer, const cera_gguf_tensor *t,
                               cera_error *e) {
    uint64_t want[4] = {1, 1, 1, 1};
    int n = 0;
    char words[256] = "";
    for (; n < 4 && r->shape[n] != END; n++) {
        want[n] = (uint64_t)dim_size(h, layer, r->shape[n]);
        size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", n ? " x " : "", dims[r->shape[n]].words);
    }
    if (!memcmp(want, t->shape, sizeof want)) return CERA_OK;
    char has[96], needs[96];
    shape_text(t->shape, t->n_dims, has, sizeof has);
    shape_text(want, n, needs, sizeof needs);
    return cera_fail(e, CERA_ERR_FORMAT, "tensor %s has shape [%s]; %s needs [%s] (%s)", t->name, has, h->arch, needs, words);
}

cera_status cera_weights_load(cera_builder *b, const cera_tensor_rule *r, int layer, cera_error *e) {
    char name[128];
    tensor_name(r, layer, name, sizeof name);
    const cera_gguf_tensor *t = cera_gguf_tensor_find(b->h->file, name);
    if (!t && r->need == OPTIONAL) return CERA_OK;
    if (!t) return cera_fail(e, CERA_ERR_NOT_FOUND, "tensor %s is missing; %s needs it", name, b->h->arch);
    const cera_dtype_info *type = cera_dtype_get((uint32_t)t->dtype);
    if (!type->computes)
        return cera_fail(e, CERA_ERR_UNSUPPORTED, "tensor %s is of type %s, which is not supported", name,
                         type->name ? type->name : "?");
    if (r->bias && type->block_elements > 1) /* a slice of it need not begin with a block (rows_of) */
        return cera_fail(e, CERA_ERR_UNSUPPORTED, "tensor %s is of type %s; a bias must be f32, f16 or bf16", name, type->name);
    CERA_TRY(check_shape(b->h, r, layer, t, e));
    cera_plan *p = b->plan;
    if (p->n_weights >= b->max_weights) return cera_fail(e, CERA_ERR_LIMIT, "more than %d weights", b->max_weights);
    cera_weight *w = &p->weights[p->n_weights];
    w->name = t->name;
    w->dtype = t->dtype;
    w->k = (int64_t)t->shape[0], w->n = (int64_t)t->shape[1], w->count = (int64_t)t->shape[2];
    w->data = t->data;
    w->row_bytes = (uint64_t)w->k / (uint64_t)type->block_elements * (uint64_t)type->block_bytes;
    w->matrix_bytes = w->row_bytes * (uint64_t)w->n;
    cera_wb *slot = &b->slots[r->slot][r->layer ? layer : CERA_MAX_LAYERS];
    *(r->bias ? &slot->bias : &slot->w) = p->n_weights++;
    return CERA_OK;
}
