/* pretokenize.c: runs compiled stages over text. Owns the meaning of the regex subset; pretokenize_compile.c owns its syntax
 * and pretokenize_names.c the named ones.
 *
 * Linear time. A piece is consumed as soon as it matches, so work is lost only where a long run is scanned and then given back:
 * "\s*[\r\n]+" over a thousand spaces without a newline. Each unbounded run therefore remembers where it failed last: what
 * follows it failed at every place in [from, to], and that answer does not depend on where the run began, so a later start
 * inside the same run fails at once. For regexes from a file a count of steps bounds what this does not cover. */
#include "text/pretokenize.h"

#include <stdint.h>
#include <string.h>
#include "base/arena.h"
#include "base/utf8.h"
#include "text/pretokenize_int.h"
#include "text/unicode.h"

enum { STEPS_PER_BYTE = 2000, STEPS_FREE = 1000000 };

typedef struct memo {
    const char *from, *to; /* a start anywhere in here fails */
} memo;

typedef struct matcher {
    const pretok_stage *s;
    const char *begin, *end; /* the piece */
    memo *memos;
    uint64_t steps; /* left */
} matcher;

bool cera_pretok_has(const pretok_stage *s, unsigned k, uint32_t code, uint8_t properties) {
    const pretok_class *c = &s->classes[k];
    bool in = (c->categories >> (properties & CERA_UNICODE_CATEGORY) & 1) != 0 || (c->han && (properties & CERA_UNICODE_HAN));
    if (!in && code <= c->range_max) {
        for (uint32_t i = 0; i < c->n_ranges && !in; i++)
            in = code >= s->ranges[c->range + i][0] && code <= s->ranges[c->range + i][1];
    }
    if (in == c->negated) return false;
    return c->minus < 0 || !cera_pretok_has(s, (unsigned)c->minus, code, properties);
}

/* Length of the character at p; a byte that begins none counts as an unassigned character of one byte. */
static int decode(const char *p, const char *end, uint32_t *code, uint8_t *properties) {
    int length = cera_utf8_decode(p, (size_t)(end - p), code);
    *properties = CERA_CAT_CN;
    if (length == 0) {
        *code = UINT32_MAX;
        return 1;
    }
    *properties = cera_unicode_properties(*code);
    return length;
}

/* Length of the character at p when class k has it, else 0. p < end. */
static inline int member(const pretok_stage *s, unsigned k, const char *p, const char *end) {
    uint8_t c = (uint8_t)*p, properties;
    if (c < 128) return (int)(s->ascii[c] >> k & 1);
    uint32_t code;
    int length = decode(p, end, &code, &properties);
    return cera_pretok_has(s, k, code, properties) ? length : 0;
}

/* The character before p, of a text that starts at begin: how many bytes it has. UTF-8 is self-synchronizing: when a valid
 * character ends at p, reading forwards met it too. */
static size_t length_before(const char *begin, const char *p) {
    uint32_t code;
    if ((uint8_t)p[-1] < 128) return 1;
    for (size_t n = 2; n <= 4 && (size_t)(p - begin) >= n; n++) {
        if (((uint8_t)p[-(ptrdiff_t)n] & 0xc0) == 0x80) continue;
        return cera_utf8_decode(p - n, n, &code) == (int)n ? n : 1;
    }
    return 1;
}

static const char *match(matcher *m, unsigned index, const char *p);

/* A group repeated as often as it matches, never re-entered. */
static const char *match_loop(matcher *m, const pretok_node *n, const char *p) {
    size_t count = 0;
    while (n->max == PRETOK_MANY || count < n->max) {
        const char *q = match(m, n->body, p);
        if (!q) break;
        count++;
        if (q == p) return p; /* an empty round satisfies any number of rounds */
        p = q;
    }
    return count >= n->min ? p : NULL;
}

/* A run of one class: as long as it gets, then shorter until what follows matches. Returns where the whole match ends; sets
 * *again when the caller should go on at n->next from there instead. */
static const char *match_run(matcher *m, const pretok_node *n, const char *p, bool *again) {
    const pretok_stage *s = m->s;
    const char *q = p, *end = m->end;
    bool unbounded = n->max == PRETOK_MANY;
    memo *seen = unbounded ? &m->memos[n->memo] : NULL;
    if (seen && p >= seen->from && p < seen->to) return NULL;
    uint64_t bit = (uint64_t)1 << n->cls;
    size_t count = 0;
    *again = true;
    while (q < end && (unbounded || count < n->max)) {
        uint8_t c = (uint8_t)*q;
        int length = c < 128 ? (int)((s->ascii[c] & bit) != 0) : member(s, n->cls, q, end);
        if (length == 0) break;
        q += length;
        count++;
    }
    if (count < n->min) return NULL;
    size_t used = (size_t)(q - p) + 1;
    m->steps = m->steps > used ? m->steps - used : 0;
    if (count == n->min || n->possessive || s->nodes[n->next].op == PRETOK_ACCEPT) return q;
    *again = false;
    const char *longest = q;
    for (;;) {
        const char *r = match(m, n->next, q);
        if (r || m->steps == 0) return r;
        if (count == n->min) break;
        q -= length_before(p, q);
        count--;
        m->steps--;
    }
    if (seen) *seen = (memo){p, longest};
    return NULL;
}

/* Where the match of node index at p ends, NULL when there is none. */
static const char *match(matcher *m, unsigned index, const char *p) {
    const pretok_stage *s = m->s;
    for (;;) {
        const pretok_node *n = &s->nodes[index];
        bool again = true;
        if (m->steps == 0) return NULL;
        switch ((pretok_op)n->op) {
        case PRETOK_ACCEPT: return p;
        case PRETOK_RUN:
            p = match_run(m, n, p, &again);
            if (!p || !again) return p;
            break;
        case PRETOK_ALT:
            for (unsigned i = 0; i < n->n_alts; i++) {
                const char *r = match(m, s->alts[n->body + i], p);
                if (r) return r;
                m->steps -= m->steps > 0;
            }
            return NULL;
        case PRETOK_LOOP:
            p = match_loop(m, n, p);
            if (!p) return NULL;
            break;
        case PRETOK_LOOK:
            if ((match(m, n->body, p) != NULL) == n->negative) return NULL;
            break;
        case PRETOK_END:
            if (p != m->end) return NULL;
            break;
        }
        index = n->next;
    }
}

/* The end of the match that begins at p, NULL when none does. Empty matches do not split, so they count as none. */
static const char *match_at(matcher *m, const char *p) {
    const pretok_stage *s = m->s;
    uint8_t c = (uint8_t)*p, properties = 0;
    uint32_t code, which;
    if (c < 128) {
        which = s->first_ascii[c];
    } else {
        decode(p, m->end, &code, &properties);
        which = s->first_category[properties & CERA_UNICODE_CATEGORY];
    }
    for (; which; which &= which - 1) {
        const char *r = match(m, s->top[__builtin_ctz(which)], p);
        if (r) return r > p ? r : NULL;
    }
    return NULL;
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

typedef struct splitter {
    const cera_pretok *p;
    cera_pretok_fn fn;
    void *ctx;
    uint64_t steps;
} splitter;

static cera_status run_stage(splitter *x, size_t stage, const char *begin, const char *end);

/* [from, to) is a piece of this stage: goes to the next stage, or out. */
static cera_status emit(splitter *x, size_t stage, const char *from, const char *to) {
    if (from == to) return CERA_OK;
    if (stage + 1 < x->p->n_stages) return run_stage(x, stage + 1, from, to);
    return x->fn(x->ctx, from, (size_t)(to - from));
}

static cera_status run_regex(splitter *x, size_t stage, const char *begin, const char *end) {
    memo memos[PRETOK_MAX_NODES];
    matcher m = {&x->p->stages[stage], begin, end, memos, x->steps};
    memset(memos, 0, m.s->n_memos * sizeof *memos);
    const char *gap = begin, *p = begin;
    while (p < end) {
        const char *r = match_at(&m, p);
        x->steps = m.steps;
        if (m.steps == 0) return CERA_ERR_LIMIT;
        if (!r) {
            uint32_t code;
            uint8_t properties;
            p += (uint8_t)*p < 128 ? 1 : decode(p, end, &code, &properties);
            continue;
        }
        CERA_TRY(emit(x, stage, gap, p));
        CERA_TRY(emit(x, stage, p, r));
        m.steps = x->steps;
        gap = p = r;
    }
    return emit(x, stage, gap, end);
}

/* Decodes at p < end: is it of one of the categories? */
static bool of_categories(const char *p, const char *end, uint32_t categories, int *length) {
    uint32_t code;
    uint8_t properties;
    *length = decode(p, end, &code, &properties);
    return categories >> (properties & CERA_UNICODE_CATEGORY) & 1;
}

/* Cuts n characters at p in groups of three from the right. */
static cera_status emit_threes(splitter *x, size_t stage, const char *p, const char *end, size_t n, const char **gap) {
    while (n > 0) {
        size_t group = n % 3 ? n % 3 : 3;
        const char *q = p;
        for (size_t i = 0; i < group; i++) {
            int length;
            of_categories(q, end, 0, &length);
            q += length;
        }
        CERA_TRY(emit(x, stage, p, q));
        p = *gap = q;
        n -= group;
    }
    return CERA_OK;
}

/* The digit rules. Words of Unicode (letters, marks, digits, connectors) on both sides make a place no word boundary. */
static cera_status run_digits(splitter *x, size_t stage, const char *begin, const char *end) {
    pretok_kind kind = x->p->stages[stage].kind;
    const uint32_t word = CERA_CATS_L | CERA_CATS_M | 1u << CERA_CAT_ND | 1u << CERA_CAT_NL | 1u << CERA_CAT_PC;
    const uint32_t digits = kind == PRETOK_NUMBERS_RIGHT ? CERA_CATS_N : 1u << CERA_CAT_ND;
    const char *gap = begin, *p = begin;
    while (p < end) {
        int length;
        if (!of_categories(p, end, digits, &length)) {
            p += length;
            continue;
        }
        const char *start = p;
        size_t n = 0;
        while (p < end && of_categories(p, end, digits, &length)) {
            p += length;
            n++;
        }
        if (kind == PRETOK_DIGITS_BOUNDARY && p < end && of_categories(p, end, word, &length))
            continue; /* no boundary behind it */
        if (kind ==
            PRETOK_DIGITS_SPLIT) { /* cuts only: what comes before joins the first digits, what follows the last three */
            for (; n % 3; n--) {
                of_categories(start, end, 0, &length);
                start += length;
            }
            if (n == 0) continue;
            n -= 3;
        }
        CERA_TRY(emit(x, stage, gap, start));
        gap = start;
        CERA_TRY(emit_threes(x, stage, start, end, n, &gap));
    }
    return emit(x, stage, gap, end);
}

static cera_status run_stage(splitter *x, size_t stage, const char *begin, const char *end) {
    return x->p->stages[stage].kind == PRETOK_REGEX ? run_regex(x, stage, begin, end) : run_digits(x, stage, begin, end);
}

cera_status cera_pretok_split(const cera_pretok *p, const char *text, size_t n, cera_pretok_fn fn, void *ctx, cera_error *e) {
    if (n == 0) return CERA_OK;
    uint64_t steps = n > (UINT64_MAX - STEPS_FREE) / STEPS_PER_BYTE ? UINT64_MAX : (uint64_t)n * STEPS_PER_BYTE + STEPS_FREE;
    splitter x = {p, fn, ctx, steps};
    cera_status status = p->n_stages ? run_stage(&x, 0, text, text + n) : fn(ctx, text, n);
    if (status == CERA_ERR_LIMIT && x.steps == 0) {
        return cera_fail(e, CERA_ERR_LIMIT, "pre-tokenizer regex: more than %d steps a byte; it backtracks too much",
                         STEPS_PER_BYTE);
    }
    return status;
}

cera_status cera_pretok_create(const char *const *stages, size_t n_stages, cera_pretok **out, cera_error *e) {
    *out = NULL;
    if (n_stages > CERA_PRETOK_MAX_STAGES) {
        return cera_fail(e, CERA_ERR_UNSUPPORTED, "pre-tokenizer: %zu stages; at most %d are supported", n_stages,
                         CERA_PRETOK_MAX_STAGES);
    }
    cera_pretok *p = cera_alloc(1, sizeof *p + n_stages * sizeof *p->stages);
    if (!p) return cera_fail(e, CERA_ERR_MEMORY, "pre-tokenizer: out of memory");
    p->n_stages = n_stages;
    for (size_t i = 0; i < n_stages; i++) {
        cera_status status = cera_pretok_compile(stages[i], &p->stages[i], e);
        if (status != CERA_OK) {
            cera_pretok_destroy(p);
            return status;
        }
    }
    *out = p;
    return CERA_OK;
}

void cera_pretok_destroy(cera_pretok *p) { cera_free(p); }
