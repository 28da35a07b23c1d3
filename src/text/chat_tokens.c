/* chat_tokens.c: a rendered prompt to token ids. Control tokens are cut out where the template itself wrote them, whole; the
 * text between them, template's and user's alike, is tokenized as one piece without control tokens, so that borders between the
 * two change no ids and nothing a user writes can become a control token. */
#include <string.h>
#include "base/arena.h"
#include "text/chat.h"
#include "text/vocab_int.h"

typedef struct ids {
    int32_t *items;
    size_t n, capacity;
} ids;

static cera_status push(ids *out, const int32_t *items, size_t n, cera_error *e) {
    if (n > out->capacity - out->n) {
        size_t capacity = 2 * out->capacity + n + 64;
        int32_t *grown = cera_alloc_grow(out->items, out->capacity, capacity, sizeof *grown);
        if (!grown) return cera_fail(e, CERA_ERR_MEMORY, "tokenizer: out of memory");
        out->items = grown;
        out->capacity = capacity;
    }
    if (n) memcpy(out->items + out->n, items, n * sizeof *items);
    out->n += n;
    return CERA_OK;
}

static cera_status push_text(const cera_vocab *v, const char *text, size_t n, bool prefix, ids *out, cera_error *e) {
    int32_t *piece;
    size_t n_piece;
    if (n == 0) return CERA_OK;
    CERA_TRY(cera_vocab_tokenize(v, text, n, prefix ? 0 : CERA_TOKENIZE_NO_SPACE_PREFIX, &piece, &n_piece, e));
    cera_status status = push(out, piece, n_piece, e);
    cera_free(piece);
    return status;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The first control token that lies in the template's own text at or after *at; -1 when there is none. Returns its place in
 * *at. */
static int32_t find_control(const cera_vocab *v, const cera_jinja_text *t, size_t *at, size_t *segment) {
    for (; *segment < t->n_segments; ++*segment) {
        const cera_jinja_segment *s = &t->segments[*segment];
        if (*at < s->start) *at = s->start;
        while (!s->user && *at < s->end) {
            bool may = v->begins_special[(uint8_t)t->text[*at]];
            int32_t id = may ? cera_vocab_match_special(v, t->text + *at, s->end - *at, true) : -1;
            if (id >= 0 && v->types[id] != CERA_TOKEN_USER) return id;
            *at += id >= 0 ? v->text_at[id + 1] - v->text_at[id] : 1; /* user-defined tokens are part of text anyway */
        }
    }
    return -1;
}

static cera_status encode(const cera_vocab *v, const cera_jinja_text *t, ids *out, cera_error *e) {
    bool prefix = true;
    for (size_t done = 0, segment = 0; done < t->size;) {
        size_t at = done;
        int32_t id = find_control(v, t, &at, &segment);
        size_t end = id < 0 ? t->size : at;
        if (id >= 0 && (v->flags[id] & TOKEN_LSTRIP))
            while (end > done && is_space(t->text[end - 1])) end--;
        CERA_TRY(push_text(v, t->text + done, end - done, prefix, out, e));
        if (end > done) prefix = false;
        if (id < 0) break;
        CERA_TRY(push(out, &id, 1, e));
        prefix = !v->prefix_first_only;
        done = at + (v->text_at[id + 1] - v->text_at[id]);
        if (v->flags[id] & TOKEN_RSTRIP)
            while (done < t->size && is_space(t->text[done])) done++;
    }
    return CERA_OK;
}

cera_status cera_chat_tokenize(const cera_vocab *v, const cera_jinja_text *prompt, int32_t **out, size_t *n_ids,
                               cera_error *e) {
    ids all = {0};
    *out = NULL;
    *n_ids = 0;
    cera_status status = encode(v, prompt, &all, e);
    if (status == CERA_OK && cera_vocab_adds_bos(v) && v->bos >= 0 && (all.n == 0 || all.items[0] != v->bos)) {
        status = push(&all, &v->bos, 1, e);
        if (status == CERA_OK) {
            memmove(all.items + 1, all.items, (all.n - 1) * sizeof *all.items);
            all.items[0] = v->bos;
        }
    }
    if (status != CERA_OK) {
        cera_free(all.items);
        return status;
    }
    *out = all.items;
    *n_ids = all.n;
    return CERA_OK;
}
