/* automaton_char.c: sets of characters, and the small acyclic automata that read one character of a set as bytes: raw UTF-8
 * and, in the JSON modes, backslash escapes (\n, \u00e9, surrogate pairs). A string constraint on characters thereby becomes
 * one on the JSON text, and since decoding is a function, intersection and complement of such constraints stay exact. Does not
 * own: what the sets mean (regex, gbnf). */
#include "sample/automaton_int.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 0x10FFFF, SURROGATE_LO = 0xD800, SURROGATE_HI = 0xDFFF, DEAD = 0xFFFFFFFF, WHOLE = 0 };

void cera_class_deinit(cera_class *c) {
    cera_free(c->r);
    *c = (cera_class){0};
}

void cera_class_add(cera_class *c, uint32_t lo, uint32_t hi) {
    if (hi > MAX_CODE) hi = MAX_CODE;
    if (lo > hi) return;
    if (c->n == c->capacity) {
        uint32_t n = c->capacity ? c->capacity * 2 : 8;
        uint32_t(*r)[2] = cera_alloc_grow(c->r, c->n, n, sizeof *r);
        if (!r) {
            c->failed = true;
            return;
        }
        c->r = r;
        c->capacity = n;
    }
    c->r[c->n][0] = lo;
    c->r[c->n++][1] = hi;
}

static int by_start(const void *x, const void *y) {
    uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
    return p < q ? -1 : p > q;
}

void cera_class_normalize(cera_class *c) {
    if (!c->n) return;
    qsort(c->r, c->n, sizeof *c->r, by_start);
    uint32_t kept = 0;
    for (uint32_t i = 1; i < c->n; i++) {
        if (c->r[i][0] <= c->r[kept][1] + 1) {
            if (c->r[i][1] > c->r[kept][1]) c->r[kept][1] = c->r[i][1];
        } else {
            kept++;
            c->r[kept][0] = c->r[i][0];
            c->r[kept][1] = c->r[i][1];
        }
    }
    c->n = kept + 1;
}

void cera_class_negate(cera_class *c) {
    cera_class_normalize(c);
    cera_class out = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->r[i][0] > next) cera_class_add(&out, next, c->r[i][0] - 1);
        next = c->r[i][1] + 1;
    }
    if (next <= MAX_CODE) cera_class_add(&out, next, MAX_CODE);
    out.failed = out.failed || c->failed;
    cera_class_deinit(c);
    *c = out;
}

/* 0: no character of lo..hi is in c, 1: some, 2: all. */
static int cover(const cera_class *c, uint32_t lo, uint32_t hi) {
    uint32_t first = 0, last = c->n;
    while (first < last) { /* the first range that ends at or after lo */
        uint32_t mid = (first + last) / 2;
        if (c->r[mid][1] < lo)
            first = mid + 1;
        else
            last = mid;
    }
    if (first == c->n || c->r[first][0] > hi) return 0;
    return c->r[first][0] <= lo && c->r[first][1] >= hi ? 2 : 1;
}

typedef struct builder {
    cera_automaton *a;
    const cera_class *c; /* what may be written */
} builder;

static uint32_t node_of(cera_automaton *a, const cera_crange *r, uint32_t n) {
    if (n == 0 || a->failed) return DEAD;
    for (uint32_t i = a->n_cnodes; i-- > 1;) { /* few nodes, and an equal one is mostly recent */
        const cera_cnode *c = &a->cnodes[i];
        if (c->n != n) continue;
        uint32_t k = 0;
        while (k < n && a->cranges[c->first + k].lo == r[k].lo && a->cranges[c->first + k].hi == r[k].hi &&
               a->cranges[c->first + k].target == r[k].target)
            k++;
        if (k == n) return i;
        if (a->n_cnodes - i > 400) break; /* sharing only saves memory: a missed twin is harmless */
    }
    if (!cera_automaton_grow(a, (void **)&a->cnodes, a->n_cnodes, 2, &a->cap_cnodes, sizeof *a->cnodes) ||
        !cera_automaton_grow(a, (void **)&a->cranges, a->n_cranges, n, &a->cap_cranges, sizeof *a->cranges))
        return DEAD;
    if (a->n_cnodes == 0) a->n_cnodes = 1; /* number 0 means WHOLE */
    memcpy(a->cranges + a->n_cranges, r, n * sizeof *r);
    a->cnodes[a->n_cnodes] = (cera_cnode){.first = a->n_cranges, .n = n, .card = UINT32_MAX};
    a->n_cranges += n;
    return a->n_cnodes++;
}

static void put(cera_crange *r, uint32_t *n, uint32_t lo, uint32_t hi, uint32_t target) {
    if (target == DEAD) return;
    if (*n && r[*n - 1].target == target && r[*n - 1].hi + 1u == lo)
        r[*n - 1].hi = (uint8_t)hi;
    else
        r[(*n)++] = (cera_crange){(uint8_t)lo, (uint8_t)hi, target};
}

/* `levels` continuation bytes of any value. */
static uint32_t full_tail(cera_automaton *a, int levels) {
    uint32_t to = levels == 1 ? WHOLE : full_tail(a, levels - 1);
    return node_of(a, &(cera_crange){0x80, 0xBF, to}, 1);
}

/* The node for `levels` continuation bytes of the codes lo .. lo + 64^levels - 1, of which those below min are overlong. */
static uint32_t tail(builder *b, uint32_t lo, int levels, uint32_t min) {
    uint32_t span = 1u << (6 * (levels - 1)), n = 0;
    cera_crange r[64];
    int all = cover(b->c, lo > min ? lo : min, lo + span * 64 - 1);
    if (all == 0) return DEAD;
    if (all == 2 && lo >= min) return full_tail(b->a, levels);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t from = lo + i * span, to = from + span - 1;
        if (to < min) continue;
        int k = cover(b->c, from, to);
        if (k == 0) continue;
        put(r, &n, 0x80 + i, 0x80 + i, levels == 1 ? WHOLE : tail(b, from, levels - 1, min));
    }
    return node_of(b->a, r, n);
}

static bool raw_allowed(const cera_automaton *a, uint32_t code) {
    return a->escapes == CERA_ESC_NONE || (code >= 0x20 && code != '"' && code != '\\');
}

static void add_raw(builder *b, cera_crange *r, uint32_t *n) {
    for (uint32_t i = 0; i < 0x80; i++)
        if (raw_allowed(b->a, i) && cover(b->c, i, i)) put(r, n, i, i, WHOLE);
    if (b->c->n == 0 || b->c->r[b->c->n - 1][1] < 0x80) return;
    for (uint32_t i = 0xC2; i < 0xE0; i++) put(r, n, i, i, tail(b, (i & 31) << 6, 1, 0x80));
    for (uint32_t i = 0xE0; i < 0xF0; i++) put(r, n, i, i, tail(b, (i & 15) << 12, 2, 0x800));
    for (uint32_t i = 0xF0; i < 0xF5; i++) put(r, n, i, i, tail(b, (i & 7) << 18, 3, 0x10000));
}

/* Both cases of hexadecimal digit d. */
static void put_hex(cera_crange *r, uint32_t *n, uint32_t d, uint32_t target) {
    if (d < 10)
        put(r, n, '0' + d, '0' + d, target);
    else
        put(r, n, 'A' + d - 10, 'A' + d - 10, target);
}
static void put_lower(cera_crange *r, uint32_t *n, const uint32_t target[16]) {
    for (uint32_t d = 10; d < 16; d++) put(r, n, 'a' + d - 10, 'a' + d - 10, target[d]);
}

/* Any hexadecimal digit, then `to`. */
static uint32_t any_hex(cera_automaton *a, uint32_t to) {
    return node_of(a, (cera_crange[]){{'0', '9', to}, {'A', 'F', to}, {'a', 'f', to}}, 3);
}

/* `digits` more hexadecimal digits of the codes from lo on. */
static uint32_t hex(builder *b, uint32_t lo, int digits) {
    uint32_t span = 1u << (4 * (digits - 1)), n = 0, target[16];
    cera_crange r[32];
    int all = cover(b->c, lo, lo + span * 16 - 1);
    if (all == 0) return DEAD;
    if (all == 2) {
        uint32_t to = WHOLE;
        for (int i = 0; i < digits; i++) to = any_hex(b->a, to);
        return to;
    }
    for (uint32_t d = 0; d < 16; d++) {
        uint32_t from = lo + d * span;
        target[d] = cover(b->c, from, from + span - 1) == 0 ? DEAD : digits == 1 ? WHOLE : hex(b, from, digits - 1);
    }
    for (uint32_t d = 0; d < 16; d++) put_hex(r, &n, d, target[d]);
    put_lower(r, &n, target);
    return node_of(b->a, r, n);
}

static uint32_t one(builder *b, uint8_t byte, uint32_t target) {
    return target == DEAD ? DEAD : node_of(b->a, &(cera_crange){byte, byte, target}, 1);
}

/* Low surrogate \uDCxx..\uDFxx of the 1024 codes from lo on: its second digit chooses 256 codes. */
static uint32_t low_surrogate(builder *b, uint32_t lo) {
    uint32_t n = 0, target[16];
    cera_crange r[32];
    for (uint32_t d = 0; d < 16; d++) target[d] = d >= 12 ? hex(b, lo + (d - 12) * 256, 2) : DEAD;
    for (uint32_t d = 0; d < 16; d++) put_hex(r, &n, d, target[d]);
    put_lower(r, &n, target);
    uint32_t second = node_of(b->a, r, n);
    if (second == DEAD) return DEAD;
    uint32_t first = node_of(b->a, (cera_crange[]){{'D', 'D', second}, {'d', 'd', second}}, 2);
    return one(b, '\\', one(b, 'u', first));
}

/* `digits` more digits of a high surrogate, the last of which chooses 1024 codes; lo is the first code that they lead to. */
static uint32_t high_surrogate(builder *b, uint32_t lo, int digits) {
    uint32_t span = 1024u << (4 * digits), n = 0, target[16];
    cera_crange r[32];
    int all = cover(b->c, lo, lo + span - 1);
    if (all == 0) return DEAD;
    if (digits == 0) return low_surrogate(b, lo);
    if (all == 2) {
        uint32_t to = low_surrogate(b, lo);
        for (int i = 0; i < digits; i++) to = any_hex(b->a, to);
        return to;
    }
    for (uint32_t d = 0; d < 16; d++) target[d] = high_surrogate(b, lo + d * (span / 16), digits - 1);
    for (uint32_t d = 0; d < 16; d++) put_hex(r, &n, d, target[d]);
    put_lower(r, &n, target);
    return node_of(b->a, r, n);
}

/* What follows \uD: 0..7 are plain codes, 8..B high surrogates. */
static uint32_t after_d(builder *b) {
    uint32_t n = 0, target[16];
    cera_crange r[32];
    for (uint32_t d = 0; d < 16; d++) {
        if (d < 8)
            target[d] = hex(b, 0xD000 + d * 256, 2);
        else
            target[d] = d < 12 ? high_surrogate(b, 0x10000 + ((d - 8) << 18), 2) : DEAD;
    }
    for (uint32_t d = 0; d < 16; d++) put_hex(r, &n, d, target[d]);
    put_lower(r, &n, target);
    return node_of(b->a, r, n);
}

static uint32_t u_escape(builder *b) {
    uint32_t n = 0, target[16];
    cera_crange r[32];
    for (uint32_t d = 0; d < 16; d++) {
        if (d == 13)
            target[d] = cover(b->c, 0xD000, MAX_CODE) ? after_d(b) : DEAD;
        else
            target[d] = hex(b, d << 12, 3);
    }
    for (uint32_t d = 0; d < 16; d++) put_hex(r, &n, d, target[d]);
    put_lower(r, &n, target);
    return node_of(b->a, r, n);
}

/* What may stand after a backslash for the characters of b->c. */
static uint32_t escape(builder *b) {
    static const char letters[] = "\"/\\bfnrt", codes[] = "\"/\\\b\f\n\r\t"; /* ascending letters */
    uint32_t n = 0;
    cera_crange r[16];
    for (int i = 0; i < 8; i++)
        if (cover(b->c, (uint8_t)codes[i], (uint8_t)codes[i])) put(r, &n, (uint8_t)letters[i], (uint8_t)letters[i], WHOLE);
    put(r, &n, 'u', 'u', u_escape(b));
    return node_of(b->a, r, n);
}

static bool class_copy(cera_class *to, const cera_class *from, uint32_t lo, uint32_t hi) {
    for (uint32_t i = 0; i < from->n; i++) {
        uint32_t x = from->r[i][0] > lo ? from->r[i][0] : lo, y = from->r[i][1] < hi ? from->r[i][1] : hi;
        if (x <= y) cera_class_add(to, x, y);
    }
    return !to->failed;
}

/* Tokens are sorted into slices by their characters, so that a state that allows all of a slice takes its bitmap whole:
 * lower-case letters; letters and digits; those with _ and -; letters, digits and the blank; letters, digits and all above
 * ASCII but space characters; these and the blank; and all that JSON strings hold unescaped, but C1 controls and line
 * separators. A token belongs to the first that holds it. */
#define ALNUM \
    {'0', '9'}, {'A', 'Z'}, { 'a', 'z' }
#define ABOVE                                                                                                 \
    {0xA1, 0x167F}, {0x1681, 0x1FFF}, {0x200B, 0x2027}, {0x202A, 0x202E}, {0x2030, 0x205E}, {0x2060, 0x2FFF}, \
        {0x3001, 0xD7FF}, {0xE000, 0xFEFE}, {                                                                 \
        0xFF00, MAX_CODE                                                                                      \
    }
const uint32_t (*cera_slice_ranges(int slice, uint32_t *n))[2] {
    static const uint32_t lower[][2] = {{'a', 'z'}};
    static const uint32_t alnum[][2] = {ALNUM}, word[][2] = {{'-', '-'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const uint32_t blank[][2] = {{' ', ' '}, ALNUM};
    static const uint32_t text[][2] = {ALNUM, ABOVE}, texts[][2] = {{' ', ' '}, ALNUM, ABOVE};
    static const uint32_t plain[][2] = {{0x20, 0x21},   {0x23, 0x5B},     {0x5D, 0x7E},
                                        {0xA0, 0x2027}, {0x202A, 0xD7FF}, {0xE000, MAX_CODE}};
    static const uint32_t(*const all[CERA_N_SLICES])[2] = {lower, alnum, word, blank, text, texts, plain};
    static const uint32_t sizes[CERA_N_SLICES] = {1, 3, 5, 4, 12, 13, 6};
    *n = sizes[slice];
    return all[slice];
}

static void class_attributes(cera_automaton *a, uint32_t node, const cera_class *c, bool any) {
    cera_cnode *out = &a->cnodes[node];
    uint64_t card = 0;
    for (uint32_t i = 0; i < c->n; i++) card += c->r[i][1] - c->r[i][0] + 1;
    out->card = (uint32_t)card;
    out->is_any = any;
    out->slices = 0;
    for (int s = 0; s < CERA_N_SLICES; s++) {
        uint32_t n;
        const uint32_t(*r)[2] = cera_slice_ranges(s, &n);
        bool all = true;
        for (uint32_t i = 0; i < n && all; i++) all = cover(c, r[i][0], r[i][1]) == 2;
        if (all) out->slices |= (uint8_t)(1 << s);
    }
}

/* A slice's characters as UTF-8; 0 when the automaton failed. */
uint32_t cera_slice_node(cera_automaton *a, int slice) {
    cera_class c = {0};
    uint32_t n, count = 0;
    cera_crange ranges[256];
    if (a->slice_nodes[slice]) return a->slice_nodes[slice];
    const uint32_t(*r)[2] = cera_slice_ranges(slice, &n);
    for (uint32_t i = 0; i < n; i++) cera_class_add(&c, r[i][0], r[i][1]);
    builder b = {.a = a, .c = &c};
    if (c.failed)
        cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory");
    else
        add_raw(&b, ranges, &count);
    uint32_t node = node_of(a, ranges, count);
    cera_class_deinit(&c);
    return node == DEAD ? 0 : (a->slice_nodes[slice] = node);
}

static bool class_is_any(const cera_class *c) {
    return c->n == 2 && c->r[0][0] == 0 && c->r[0][1] == SURROGATE_LO - 1 && c->r[1][0] == SURROGATE_HI + 1 &&
           c->r[1][1] == MAX_CODE;
}

/* The characters that may be written as escapes: the same rule for every set, or intersection and complement would not be those
 * of the decoded strings. */
static bool escapable(const cera_automaton *a, cera_class *to, const cera_class *from) {
    if (a->escapes == CERA_ESC_NONE) return true;
    if (a->escapes == CERA_ESC_ALL) return class_copy(to, from, 0, MAX_CODE);
    return class_copy(to, from, 0, 0x1F) && class_copy(to, from, '"', '"') && class_copy(to, from, '\\', '\\');
}

cera_expr cera_expr_class(cera_automaton *a, cera_class *c) {
    cera_class raw = {0}, esc = {0};
    cera_crange r[256];
    uint32_t n = 0, node = DEAD;
    cera_class_normalize(c);
    if (!class_copy(&raw, c, 0, SURROGATE_LO - 1) || !class_copy(&raw, c, SURROGATE_HI + 1, MAX_CODE) || c->failed) goto fail;
    bool any = class_is_any(&raw);
    if (!escapable(a, &esc, &raw)) goto fail;
    cera_class_normalize(&esc);
    builder b = {.a = a, .c = &raw};
    add_raw(&b, r, &n);
    if (esc.n) {
        b.c = &esc;
        uint32_t e = escape(&b), at = 0;
        while (at < n && r[at].hi < '\\') at++; /* ranges stay ascending */
        if (e != DEAD) {
            memmove(r + at + 1, r + at, (n - at) * sizeof *r);
            r[at] = (cera_crange){'\\', '\\', e};
            n++;
        }
    }
    node = node_of(a, r, n);
    if (node != DEAD) class_attributes(a, node, &raw, any);
    cera_class_deinit(&raw);
    cera_class_deinit(&esc);
    return node == DEAD ? CERA_EXPR_EMPTY : cera_expr_node(a, (cera_node){.kind = CERA_K_CHAR, .a = node});
fail:
    cera_automaton_fail(a, CERA_ERR_MEMORY, "out of memory");
    cera_class_deinit(&raw);
    cera_class_deinit(&esc);
    return CERA_EXPR_EMPTY;
}

cera_expr cera_expr_any_char(cera_automaton *a) {
    if (a->any_char_cache) return a->any_char_cache;
    cera_class c = {0};
    cera_class_add(&c, 0, MAX_CODE);
    a->any_char_cache = cera_expr_class(a, &c);
    cera_class_deinit(&c);
    return a->any_char_cache;
}

cera_expr cera_expr_byte_range(cera_automaton *a, uint8_t lo, uint8_t hi) {
    uint32_t node = node_of(a, &(cera_crange){lo, hi, WHOLE}, 1);
    if (node == DEAD) return CERA_EXPR_EMPTY;
    a->cnodes[node].card = hi - lo + 1u;
    return cera_expr_node(a, (cera_node){.kind = CERA_K_CHAR, .a = node});
}

cera_expr cera_expr_escape_of(cera_automaton *a, uint32_t code) {
    cera_class c = {0};
    cera_class_add(&c, code, code);
    builder b = {.a = a, .c = &c};
    uint32_t node = c.failed ? DEAD : escape(&b);
    cera_class_deinit(&c);
    return node == DEAD ? CERA_EXPR_EMPTY : cera_expr_node(a, (cera_node){.kind = CERA_K_CHAR, .a = node});
}
