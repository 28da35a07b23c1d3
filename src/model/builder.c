/* builder.c: the words of a family's build function. Each appends one operation to the plan. Room for operations and values is
 * worked out before (model.c); running out is our own bug and ends in a status, not in a crash. */
#include <math.h>
#include <string.h>
#include "model/model_int.h"

static cera_op *add_op(cera_builder *b, cera_op_kind kind) {
    static cera_op spare; /* written when there is no room, so that callers need no checks */
    cera_plan *p = b->plan;
    if (p->n_ops >= b->max_ops) b->status = CERA_ERR_LIMIT;
    cera_op *op = b->status == CERA_OK ? &p->ops[p->n_ops++] : &spare;
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->layer = b->layer == CERA_MAX_LAYERS ? -1 : b->layer;
    for (int i = 0; i < 3; i++) op->in[i] = op->out[i] = op->w[i] = op->bias[i] = CERA_NO_REF;
    return op;
}

static cera_ref add_value(cera_builder *b, cera_op *op, int64_t width) {
    cera_plan *p = b->plan;
    if (p->n_values >= b->max_values || width < 1 || width > INT32_MAX / 4) b->status = CERA_ERR_LIMIT;
    if (b->status != CERA_OK) return 0;
    p->value_width[p->n_values] = (int)width;
    op->out[op->n_out++] = p->n_values;
    return p->n_values++;
}

static int width_of(const cera_builder *b, cera_ref x) { return b->plan->value_width[x]; }
static int64_t rows_in(const cera_builder *b, cera_wb w) { return w.w >= 0 ? b->plan->weights[w.w].n : 0; }

static void use(cera_op *op, int at, cera_wb w) {
    op->w[at] = w.w;
    op->bias[at] = w.bias;
}

void at_layer(cera_builder *b, int layer) { b->layer = layer; }

cera_wb rows_of(cera_builder *b, cera_wb w, int first, int n) {
    cera_plan *p = b->plan;
    cera_wb out = NO_W;
    if (p->n_weights + 2 > b->max_weights) b->status = CERA_ERR_LIMIT;
    if (b->status != CERA_OK) return out;
    cera_weight *part = &p->weights[p->n_weights];
    *part = p->weights[w.w];
    part->data += (uint64_t)first * part->row_bytes;
    part->n = n;
    part->matrix_bytes = part->row_bytes * (uint64_t)n;
    out.w = p->n_weights++;
    if (w.bias >= 0) {
        const cera_dtype_info *type = cera_dtype_get((uint32_t)p->weights[w.bias].dtype);
        cera_weight *bias = &p->weights[p->n_weights];
        *bias = p->weights[w.bias];
        bias->data += (uint64_t)(first / type->block_elements) * (uint64_t)type->block_bytes;
        bias->k = n;
        out.bias = p->n_weights++;
    }
    return out;
}

cera_ref embed(cera_builder *b, cera_wb w) {
    cera_op *op = add_op(b, CERA_OP_EMBED);
    op->w[0] = w.w;
    op->p.embed.scale = b->h->embedding_scale;
    return add_value(b, op, b->h->n_embd);
}

static cera_ref add_norm(cera_builder *b, cera_norm_kind kind, cera_ref x, cera_wb w, cera_ref residual) {
    cera_op *op = add_op(b, CERA_OP_NORM);
    op->in[0] = x;
    op->in[1] = residual;
    op->w[0] = w.w;
    op->w[1] = w.bias;
    op->p.norm.kind = kind;
    op->p.norm.eps = b->h->eps;
    op->p.norm.groups = 1;
    return add_value(b, op, width_of(b, x));
}

cera_ref norm_heads(cera_builder *b, cera_norm_kind kind, cera_ref x, cera_wb w, int n_head) {
    cera_ref y = add_norm(b, kind, x, w, CERA_NO_REF);
    if (b->status == CERA_OK) b->plan->ops[b->plan->n_ops - 1].p.norm.groups = n_head;
    return y;
}

cera_ref norm_first(cera_builder *b, cera_ref x, cera_wb w, int n) {
    cera_ref y = add_norm(b, CERA_NORM_RMS, x, w, CERA_NO_REF);
    if (b->status == CERA_OK) b->plan->ops[b->plan->n_ops - 1].p.norm.n = n;
    return y;
}

cera_ref norm(cera_builder *b, cera_ref x, cera_wb w) { return add_norm(b, CERA_NORM_RMS, x, w, CERA_NO_REF); }
cera_ref norm_add(cera_builder *b, cera_ref x, cera_wb w, cera_ref residual) {
    return add_norm(b, CERA_NORM_RMS, x, w, residual);
}
cera_ref layer_norm(cera_builder *b, cera_ref x, cera_wb w) { return add_norm(b, CERA_NORM_LAYER, x, w, CERA_NO_REF); }

static cera_op *add_matmul(cera_builder *b, cera_ref x, cera_wb w) {
    cera_op *op = add_op(b, CERA_OP_MATMUL);
    op->in[0] = x;
    use(op, 0, w);
    op->p.matmul.scale = 1;
    op->p.matmul.act = CERA_GLU_NONE;
    return op;
}

cera_ref matmul_act(cera_builder *b, cera_ref x, cera_wb w, cera_glu_kind act) {
    cera_op *op = add_matmul(b, x, w);
    op->p.matmul.act = act;
    return add_value(b, op, rows_in(b, w));
}

cera_ref matmul(cera_builder *b, cera_ref x, cera_wb w) { return matmul_act(b, x, w, CERA_GLU_NONE); }

cera_qkv matmul3(cera_builder *b, cera_ref x, cera_wb wq, cera_wb wk, cera_wb wv) {
    cera_op *op = add_matmul(b, x, wq);
    cera_qkv a;
    a.q = add_value(b, op, rows_in(b, wq));
    use(op, 1, wk);
    a.k = add_value(b, op, rows_in(b, wk));
    a.v = CERA_NO_REF;
    if (wv.w >= 0) {
        use(op, 2, wv);
        a.v = add_value(b, op, rows_in(b, wv));
    }
    return a;
}

cera_ref matmul_add(cera_builder *b, cera_ref a, cera_wb w, cera_ref residual) {
    cera_op *op = add_matmul(b, a, w);
    op->in[1] = residual;
    op->p.matmul.scale = b->h->residual_scale;
    return add_value(b, op, rows_in(b, w));
}

cera_ref matmul_gated_add(cera_builder *b, cera_ref a, cera_wb w, cera_ref gate_value, cera_ref residual) {
    cera_op *op = add_matmul(b, a, w);
    op->in[1] = residual;
    op->in[2] = gate_value;
    return add_value(b, op, rows_in(b, w));
}

cera_ref glu(cera_builder *b, cera_ref x, cera_wb gate_w, cera_wb up, cera_glu_kind act) {
    cera_op *op = add_op(b, CERA_OP_GLU);
    op->in[0] = x;
    use(op, 0, gate_w);
    use(op, 1, up);
    op->p.glu.act = act;
    return add_value(b, op, rows_in(b, up));
}

cera_ref gate(cera_builder *b, cera_ref x, cera_wb w) {
    cera_op *op = add_op(b, CERA_OP_GATE);
    op->in[0] = x;
    op->w[0] = w.w;
    return add_value(b, op, 1);
}

/* The group of layers whose pages have this form; made when there is none. */
static int kv_group(cera_builder *b, int n_head_kv, int d_k, int d_v, bool v_is_k, int window) {
    cera_plan *p = b->plan;
    for (int i = 0; i < p->n_groups; i++) {
        const cera_kv_group *g = &p->groups[i];
        if (g->n_head_kv == n_head_kv && g->d_k == d_k && g->d_v == d_v && g->v_is_k == v_is_k && g->window == window) return i;
    }
    if (p->n_groups >= b->max_groups) {
        b->status = CERA_ERR_LIMIT;
        return 0;
    }
    p->groups[p->n_groups] =
        (cera_kv_group){.n_head_kv = n_head_kv, .d_k = d_k, .d_v = d_v, .v_is_k = v_is_k, .window = window};
    return p->n_groups++;
}

static int layer_window(const cera_builder *b) { return b->h->slides[b->layer] ? b->h->window : 0; }

static cera_qkv add_rope_kv(cera_builder *b, cera_qkv a, cera_wb q_norm, cera_wb k_norm, int rope, int group, int n_head) {
    cera_op *op = add_op(b, CERA_OP_ROPE_KV);
    op->in[0] = a.q, op->in[1] = a.k, op->in[2] = a.v;
    op->w[0] = q_norm.w, op->w[1] = k_norm.w;
    op->p.rope_kv.group = group;
    op->p.rope_kv.group_layer = b->plan->groups[group].n_layers++;
    op->p.rope_kv.n_head = n_head;
    op->p.rope_kv.rope = rope;
    op->p.rope_kv.eps = b->h->eps;
    op->p.rope_kv.temp_scale = b->h->temp_scale;
    op->p.rope_kv.temp_floor = b->h->temp_floor;
    a.q = add_value(b, op, width_of(b, a.q));
    return a;
}

static cera_ref add_attend(cera_builder *b, cera_qkv a, cera_wb sinks, int group, int n_head, float scale) {
    cera_op *op = add_op(b, CERA_OP_ATTEND);
    const cera_kv_group *g = &b->plan->groups[group];
    op->in[0] = a.q;
    op->w[0] = sinks.w;
    op->p.attend.group = group;
    op->p.attend.group_layer = g->n_layers - 1;
    op->p.attend.n_head = n_head;
    op->p.attend.scale = scale;
    op->p.attend.softcap = b->h->attn_softcap;
    return add_value(b, op, (int64_t)n_head * g->d_v);
}

static int layer_group(cera_builder *b) {
    const cera_hparams *h = b->h;
    return kv_group(b, h->n_head_kv[b->layer], h->head_k, h->head_v, false, layer_window(b));
}

cera_qkv rope_kv(cera_builder *b, cera_qkv a, cera_wb q_norm, cera_wb k_norm, int rope) {
    return add_rope_kv(b, a, q_norm, k_norm, rope, layer_group(b), b->h->n_head[b->layer]);
}

cera_ref attend(cera_builder *b, cera_qkv a, cera_wb sinks) {
    const cera_hparams *h = b->h;
    float scale = h->attention_scale != 0 ? h->attention_scale : 1 / sqrtf((float)h->head_k);
    return add_attend(b, a, sinks, layer_group(b), h->n_head[b->layer], scale);
}

cera_ref attend_latent(cera_builder *b, cera_qkv a, int d_k, int d_v, int rope, float scale) {
    int n_head = b->h->n_head[b->layer], group = kv_group(b, 1, d_k, d_v, true, layer_window(b));
    a = add_rope_kv(b, a, NO_W, NO_W, rope, group, n_head);
    return add_attend(b, a, NO_W, group, n_head, scale);
}

cera_ref heads(cera_builder *b, cera_ref x, cera_wb w, int n_head, int in_stride, int out_stride, bool pass_rest) {
    cera_op *op = add_op(b, CERA_OP_HEADS);
    op->in[0] = x;
    use(op, 0, w);
    op->p.heads.n_head = n_head;
    op->p.heads.in_stride = in_stride;
    op->p.heads.out_stride = out_stride;
    op->p.heads.pass_rest = pass_rest;
    return add_value(b, op, (int64_t)n_head * out_stride);
}

cera_ref shortconv(cera_builder *b, cera_ref x, cera_wb w) {
    cera_op *op = add_op(b, CERA_OP_SHORTCONV);
    op->in[0] = x;
    op->w[0] = w.w;
    op->p.shortconv.l = b->h->conv_l;
    op->p.shortconv.state_layer = b->plan->state_layers++;
    b->plan->state_width = (b->h->conv_l - 1) * b->h->n_embd;
    return add_value(b, op, b->h->n_embd);
}

cera_ref experts(cera_builder *b, cera_ref x, cera_glu_kind act, cera_ref residual) {
    const cera_hparams *h = b->h;
    cera_op *route = add_op(b, CERA_OP_ROUTE);
    route->in[0] = x;
    use(route, 0, W(ffn_gate_inp));
    route->w[1] = W(exp_probs_b).bias;
    route->p.route.n_experts = h->n_expert;
    route->p.route.n_used = h->n_expert_used;
    route->p.route.n_groups = h->n_expert_groups;
    route->p.route.n_groups_used = h->n_expert_groups_used;
    route->p.route.gating = h->expert_gating;
    route->p.route.normalise = h->expert_normalise;
    route->p.route.scale = h->expert_scale;
    route->p.route.norm_min = h->expert_norm_min;
    cera_ref routes = add_value(b, route, 2 * (int64_t)h->n_expert_used);
    cera_op *op = add_op(b, CERA_OP_EXPERTS);
    op->in[0] = x, op->in[1] = routes, op->in[2] = residual;
    use(op, 0, W(ffn_gate_exps));
    use(op, 1, W(ffn_up_exps));
    use(op, 2, W(ffn_down_exps));
    op->p.experts.n_used = h->n_expert_used;
    op->p.experts.act = act;
    op->p.experts.scale = h->residual_scale;
    return add_value(b, op, h->n_embd);
}

void logits(cera_builder *b, cera_ref x, cera_wb w) {
    b->layer = CERA_MAX_LAYERS;
    cera_op *op = add_op(b, CERA_OP_LOGITS);
    op->in[0] = x;
    use(op, 0, w);
    op->p.logits.scale = b->h->logit_scale;
    op->p.logits.softcap = b->h->final_softcap;
}

cera_wb output_or_embedding(const cera_builder *b) {
    cera_wb w = G(output);
    if (w.w < 0) w = (cera_wb){G(token_embd).w, CERA_NO_REF};
    return w;
}
