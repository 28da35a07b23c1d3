/* vocab_special.c: the tokens that are not text. Which ids have a role (from the file, or by their kind's custom), which tokens
 * end an answer, and the trie that finds special tokens in text. The lists of texts are llama.cpp's (llama-vocab.cpp): files
 * name few ids. */
#include "text/vocab_int.h"

/* ---- ids ------------------------------------------------------------------------------------------------------------ */

static cera_status take_id(const cera_vocab *v, int64_t id, const char *key, int32_t fallback, int32_t *out, cera_error *e) {
    if (id < -1 || id >= v->n_tokens) {
        return cera_fail(e, CERA_ERR_FORMAT, "tokenizer.ggml.%s is %lld; the vocabulary has %d tokens", key, (long long)id,
                         v->n_tokens);
    }
    *out = id >= 0 ? (int32_t)id : fallback < v->n_tokens ? fallback : -1;
    return CERA_OK;
}

cera_status cera_vocab_set_ids(cera_vocab *v, const cera_vocab_desc *d, cera_error *e) {
    bool spm = v->kind == VOCAB_SPM, wordpiece = v->kind == VOCAB_WORDPIECE, unigram = v->kind == VOCAB_UNIGRAM;
    CERA_TRY(take_id(v, d->bos, "bos_token_id", spm ? 1 : wordpiece ? 101 : -1, &v->bos, e));
    CERA_TRY(take_id(v, d->eos, "eos_token_id", spm ? 2 : unigram ? 1 : -1, &v->eos, e));
    CERA_TRY(take_id(v, d->eot, "eot_token_id", -1, &v->eot, e));
    CERA_TRY(take_id(v, d->eom, "eom_token_id", -1, &v->eom, e));
    CERA_TRY(take_id(v, d->unk, "unknown_token_id", spm ? 0 : wordpiece ? 100 : unigram ? 2 : -1, &v->unk, e));
    CERA_TRY(take_id(v, d->sep, "seperator_token_id", wordpiece ? 102 : -1, &v->sep, e));
    CERA_TRY(take_id(v, d->pad, "padding_token_id", wordpiece || unigram ? 0 : -1, &v->pad, e));
    CERA_TRY(take_id(v, d->mask, "mask_token_id", wordpiece ? 103 : -1, &v->mask, e));
    const struct {
        int64_t id;
        const char *key;
    } others[] = {{d->fim_pre, "fim_pre_token_id"}, {d->fim_suf, "fim_suf_token_id"}, {d->fim_mid, "fim_mid_token_id"},
                  {d->fim_pad, "fim_pad_token_id"}, {d->fim_rep, "fim_rep_token_id"}, {d->fim_sep, "fim_sep_token_id"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        int32_t unused;
        CERA_TRY(take_id(v, others[i].id, others[i].key, -1, &unused, e));
    }
    for (size_t i = 0; i < d->n_eog; i++) {
        int32_t unused;
        CERA_TRY(take_id(v, d->eog[i], "eog_token_ids", -1, &unused, e));
    }
    return CERA_OK;
}

/* ---- end of generation ---------------------------------------------------------------------------------------------- */

static const char *const end_markers[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>", "<|endoftext|>",
    "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>",
    "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~[",
    /* fill-in-the-middle: the file is over */
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<|file_sep|>"};

/* The ids that matter here, found while the tables do not exist yet: one pass over the texts. */
typedef struct end_ids {
    int32_t end, ret, call, flush, tool_response;
} end_ids;

static bool is_text(cera_text_view t, const char *text) { return t.size == strlen(text) && memcmp(t.text, text, t.size) == 0; }

static bool is_end_marker(cera_text_view t) {
    if (t.size < 4 || t.size > 32) return false;
    for (size_t i = 0; i < sizeof end_markers / sizeof *end_markers; i++) {
        if (is_text(t, end_markers[i])) return true;
    }
    return false;
}

static void note_end(end_ids *ids, int32_t id, cera_text_view t) {
    if (is_text(t, "<|end|>")) ids->end = id;
    if (is_text(t, "<|return|>")) ids->ret = id;
    if (is_text(t, "<|call|>") || is_text(t, "<|calls|>")) ids->call = id;
    if (is_text(t, "<|flush|>")) ids->flush = id;
    if (is_text(t, "<|tool_response>")) ids->tool_response = id;
}

static void mark_end(cera_vocab *v, int32_t id) {
    if (id >= 0) v->flags[id] |= TOKEN_EOG;
}

/* An end marker counts as a control token whatever its type says: files get this wrong, and then a user's text could end an
 * answer.
 * "</s>" is also what HTML calls struck text, so it counts only where it is the eos or is a control token. In the harmony
 * format
 * (<|return|>, <|call|>) and its like <|end|> ends a message, not the answer. */
void cera_vocab_set_eog(cera_vocab *v, const cera_vocab_desc *d) {
    end_ids ids = {-1, -1, -1, -1, -1};
    for (int32_t id = 0; id < v->n_tokens; id++) {
        cera_text_view t = vocab_text(v, (uint32_t)id);
        if (t.size == 0 || !strchr("<[_", t.text[0])) continue;
        if (is_end_marker(t)) {
            v->flags[id] |= TOKEN_EOG;
            if (v->types[id] != CERA_TOKEN_UNKNOWN) v->types[id] = CERA_TOKEN_CONTROL;
            note_end(&ids, id, t);
        } else if (is_text(t, "</s>") && v->types[id] == CERA_TOKEN_CONTROL) {
            v->flags[id] |= TOKEN_EOG;
        }
    }
    if (ids.end >= 0 && ids.call >= 0 && (ids.ret >= 0 || ids.flush >= 0)) v->flags[ids.end] &= (uint8_t)~TOKEN_EOG;
    if (ids.tool_response >= 0) {
        for (int32_t id = 0; id < v->n_tokens; id++) {
            if (is_text(vocab_text(v, (uint32_t)id), "</s>")) v->flags[id] &= (uint8_t)~TOKEN_EOG;
        }
    }
    mark_end(v, v->eos);
    mark_end(v, v->eot);
    mark_end(v, v->eom);
    mark_end(v, (int32_t)d->fim_pad);
    mark_end(v, (int32_t)d->fim_rep);
    mark_end(v, (int32_t)d->fim_sep);
    for (size_t i = 0; i < d->n_eog; i++) mark_end(v, (int32_t)d->eog[i]);
    bool phi3 = d->arch && strcmp(d->arch, "phi3") == 0 && v->kind == VOCAB_SPM;
    for (int32_t id = 0; phi3 && id < v->n_tokens; id++) { /* Phi-3's own special tokens swallow the white space behind them */
        cera_text_view t = vocab_text(v, (uint32_t)id);
        bool special = v->types[id] == CERA_TOKEN_CONTROL || v->types[id] == CERA_TOKEN_USER;
        if (special && !is_text(t, "<s>") && !is_text(t, "<unk>") && !is_text(t, "<|endoftext|>")) v->flags[id] |= TOKEN_RSTRIP;
    }
}

/* ---- special tokens in text ------------------------------------------------------------------------------------------ */

static bool cut_out(const cera_vocab *v, uint32_t id) {
    size_t n = v->text_at[id + 1] - v->text_at[id];
    return n > 0 && n <= VOCAB_MAX_SPECIAL &&
           (v->types[id] == CERA_TOKEN_CONTROL || v->types[id] == CERA_TOKEN_UNKNOWN || v->types[id] == CERA_TOKEN_USER);
}

cera_status cera_vocab_build_special(cera_vocab *v, cera_error *e) {
    size_t total = 0;
    trie_builder *b;
    for (uint32_t id = 0; id < (uint32_t)v->n_tokens; id++) total += cut_out(v, id) ? v->text_at[id + 1] - v->text_at[id] : 0;
    CERA_TRY(cera_trie_begin(total, &b, e));
    for (uint32_t id = 0; id < (uint32_t)v->n_tokens; id++) {
        if (!cut_out(v, id)) continue;
        cera_text_view t = vocab_text(v, id);
        cera_trie_add(b, t, (int32_t)id);
        v->begins_special[(uint8_t)t.text[0]] = true;
        if (v->types[id] == CERA_TOKEN_USER) v->begins_user[(uint8_t)t.text[0]] = true;
    }
    return cera_trie_finish(b, v->arena, &v->trie, e);
}

int32_t cera_vocab_match_special(const cera_vocab *v, const char *text, size_t n, bool special) {
    int32_t found = -1;
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        node = trie_child(v->trie, node, (uint8_t)text[i]);
        if (node == 0) break;
        int32_t id = v->trie[node].id;
        if (id >= 0 && (special || v->types[id] == CERA_TOKEN_USER)) found = id;
    }
    return found;
}
