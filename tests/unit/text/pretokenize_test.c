/* pretokenize_test.c: the pre-tokenizers split as their regexes say. The oracle is PCRE2 (UTF, UCP) on random Unicode strings;
 * it is loaded at run time, and its tests are skipped where it is absent. Known answers, the subset's errors and linear time
 * need nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/pretokenize.h"
#include "text/unicode.h"

enum { STRINGS = 10000, MAX_PIECES = 4096, SEED = 20261201 };

typedef struct pieces {
    size_t end[MAX_PIECES], n;
    const char *text;
} pieces;

static cera_status collect(void *ctx, const char *piece, size_t size) {
    pieces *p = ctx;
    assert_true(p->n < MAX_PIECES);
    size_t begin = p->n ? p->end[p->n - 1] : 0;
    assert_true(piece == p->text + begin); /* no gap, no overlap */
    assert_true(size > 0);
    p->end[p->n++] = begin + size;
    return CERA_OK;
}

static size_t count_stages(const char *const *stages) {
    size_t n = 0;
    while (stages[n]) n++;
    return n;
}

static cera_pretok *compiled(const char *const *stages) {
    cera_error e = {0};
    cera_pretok *p;
    if (cera_pretok_create(stages, count_stages(stages), &p, &e) != CERA_OK) fail_msg("%s", e.message);
    return p;
}

static cera_pretok *named(const char *name) {
    const cera_pretok_info *info = cera_pretok_find(name);
    assert_non_null(info);
    return compiled(info->stages);
}

/* Pieces joined by '|'. */
static void expect(const char *name, const char *text, const char *wanted) {
    static pieces p;
    static char got[4096];
    cera_pretok *pretok = named(name);
    p.n = 0;
    p.text = text;
    assert_int_equal(cera_pretok_split(pretok, text, strlen(text), collect, &p, NULL), CERA_OK);
    size_t at = 0, begin = 0;
    for (size_t i = 0; i < p.n; i++) {
        if (i) got[at++] = '|';
        memcpy(got + at, text + begin, p.end[i] - begin);
        at += p.end[i] - begin;
        begin = p.end[i];
    }
    got[at] = 0;
    assert_string_equal(got, wanted);
    cera_pretok_destroy(pretok);
}

static void known_splits(void **state) {
    (void)state;
    expect("gpt-2", "Hello, y'all!  I've 1234 cats\n\n x", "Hello|,| y|'|all|!| | I|'ve| 1234| cats|\n\n| x");
    expect("llama-bpe", "Hello, Y'ALL've  1234567\n\n  x", "Hello|,| Y|'ALL|'ve| | |123|456|7|\n\n| | x");
    expect("qwen2", "a 12\t\tb", "a| |1|2|\t|\tb");
    expect("smollm", "a 12  b", "a| |1|2| | b");
    expect("gpt-4o", "HelloWorld's ABCdef", "Hello|World's| ABCdef");
    expect("kimi-k2", "abc\u4e2d\u6587def", "abc|\u4e2d\u6587|def");
    expect("falcon", "a1234 b", "a|123|4| b");
    expect("tiny_aya", "12345 1234a", "12|345| |123|4|a");
    expect("superbpe", "a1234567b", "a|1|234|567|b");
    expect("afmoe", "1234567", "1|234|567");
    expect("deepseek-coder", "if (x):\n    y", "if| (|x|):|\n|   | y");
    expect("default", "\xe6\xad!", "\xe6\xad|!");
    expect("llama-bpe", "'\u017fx", "'\u017f|x"); /* the long s folds to s, as (?i) has it */
}

static void refused(void **state) {
    (void)state;
    static const char *const bad[] = {"(",      "a)", "[a", "\\p{Foo}", "\\bx",     "a*?", "(?<=a)b", "a{2",  "a{3,2}",
                                      "(ab)+c", "*",  "\\", "[[a]]",    "(?P<x>a)", "\\1", "\xff",    "[b-a]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cera_error e = {0};
        cera_pretok *p;
        assert_int_not_equal(cera_pretok_create(&bad[i], 1, &p, &e), CERA_OK);
        assert_null(p);
        assert_non_null(strstr(e.message, "pre-tokenizer regex"));
    }
    char deep[200];
    memset(deep, '(', 100);
    memset(deep + 100, ')', 99);
    deep[199] = 0;
    const char *stage = deep;
    cera_pretok *p;
    assert_int_not_equal(cera_pretok_create(&stage, 1, &p, NULL), CERA_OK);
    assert_null(cera_pretok_find("no-such-pre-tokenizer"));
}

static cera_status ignore(void *ctx, const char *piece, size_t size) {
    (void)piece;
    *(size_t *)ctx += size;
    return CERA_OK;
}

static void backtracking_is_bounded(void **state) {
    (void)state;
    const char *stage = "a*a*a*a*a*a*a*a*b";
    char text[4001];
    memset(text, 'a', 4000);
    text[4000] = 0;
    cera_error e = {0};
    cera_pretok *p;
    size_t seen = 0;
    assert_int_equal(cera_pretok_create(&stage, 1, &p, NULL), CERA_OK);
    cera_status status = cera_pretok_split(p, text, 4000, ignore, &seen, &e);
    assert_true(status == CERA_ERR_LIMIT || (status == CERA_OK && seen == 4000));
    cera_pretok_destroy(p);
}

/* ---- linear time -------------------------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A quarter of a megabyte of one repeated unit, for every name: under half a second each (a quadratic scan would take minutes).
 */
static void linear_time(void **state) {
    (void)state;
    static const char *const units[] = {" ",   "a",  "A",      "\n", "1",  "!",    "\u4e2d", "\u0301",
                                        " \n", "a ", "\u3000", "'",  "aA", "\xff", "1a",     "  a"};
    enum { SIZE = 1 << 18 };
    char *text = malloc(SIZE + 1);
    for (size_t k = 0;; k++) {
        const cera_pretok_info *info = cera_pretok_at(k);
        if (!info) break;
        if (k && memcmp(info->stages, cera_pretok_at(k - 1)->stages, sizeof info->stages) == 0) continue;
        cera_pretok *p = compiled(info->stages);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            size_t n = strlen(units[u]), seen = 0;
            for (size_t i = 0; i < SIZE; i++) text[i] = units[u][i % n];
            text[SIZE - 1] = 'x'; /* the run does not end the text */
            double start = seconds();
            assert_int_equal(cera_pretok_split(p, text, SIZE, ignore, &seen, NULL), CERA_OK);
            assert_int_equal(seen, SIZE);
            double took = seconds() - start;
            if (took > 0.5) fail_msg("%s: 256 KiB of \"%s\" took %.2f s", info->name, units[u], took);
        }
        cera_pretok_destroy(p);
    }
    free(text);
}

/* ---- PCRE2 ---------------------------------------------------------------------------------------------------------- */

enum { PCRE_UTF = 0x00080000, PCRE_UCP = 0x00020000 };

static struct {
    void *(*compile)(const uint8_t *, size_t, uint32_t, int *, size_t *, void *);
    void *(*match_data)(uint32_t, void *);
    int (*match)(const void *, const uint8_t *, size_t, size_t, uint32_t, void *, void *);
    size_t *(*ovector)(void *);
    void (*code_free)(void *);
    void (*match_data_free)(void *);
} pcre;

static bool load_pcre(void) {
    void *h = dlopen("libpcre2-8.so.0", RTLD_NOW);
    if (!h) return false;
    *(void **)&pcre.compile = dlsym(h, "pcre2_compile_8");
    *(void **)&pcre.match_data = dlsym(h, "pcre2_match_data_create_8");
    *(void **)&pcre.match = dlsym(h, "pcre2_match_8");
    *(void **)&pcre.ovector = dlsym(h, "pcre2_get_ovector_pointer_8");
    *(void **)&pcre.code_free = dlsym(h, "pcre2_code_free_8");
    *(void **)&pcre.match_data_free = dlsym(h, "pcre2_match_data_free_8");
    return pcre.compile && pcre.match_data && pcre.match && pcre.ovector && pcre.code_free && pcre.match_data_free;
}

static void *pcre_compile(const char *pattern) {
    int error = 0;
    size_t offset = 0;
    void *code = pcre.compile((const uint8_t *)pattern, strlen(pattern), PCRE_UTF | PCRE_UCP, &error, &offset, NULL);
    if (!code) fail_msg("PCRE2 refuses \"%s\" at %zu (%d)", pattern, offset, error);
    return code;
}

/* Appends text to out with every from replaced. */
static void append_replaced(char *out, const char *text, size_t n, const char *from, const char *to) {
    size_t length = strlen(from);
    for (size_t i = 0; i < n;) {
        bool hit = n - i >= length && memcmp(text + i, from, length) == 0;
        if (hit)
            strcat(out, to);
        else
            strncat(out, text + i, 1);
        i += hit ? length : 1;
    }
}

/* The stage as PCRE2 writes it: [A&&[^B]] is (?:(?![B])[A]); \p{Han} would mean script extensions; \b is spelled out, because
 * PCRE2's \w is not Unicode's. */
static char *for_pcre(const char *stage) {
    if (strcmp(stage, "\\d{1,3}(?=(?:\\d{3})*\\b)") == 0)
        return strdup("\\d{1,3}(?=(?:\\d{3})*(?![\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]))");
    if (strcmp(stage, "\\p{AFMoE_digits}") == 0) return strdup("\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))");
    static const char without_han[] = "&&[^\\p{Han}]]";
    char *out = calloc(1, 4 * strlen(stage) + 64);
    for (const char *at = stage, *end = stage + strlen(stage); at < end;) {
        const char *minus = strstr(at, without_han), *open = minus ? minus : end;
        while (minus && *open != '[') open--;
        append_replaced(out, at, (size_t)(open - at), "\\p{Han}", "\\p{sc:Han}");
        if (!minus) break;
        strcat(out, "(?:(?!\\p{sc:Han})");
        strncat(out, open, (size_t)(minus - open));
        strcat(out, "])");
        at = minus + strlen(without_han);
    }
    return out;
}

typedef struct oracle {
    void *code[8], *data;
    size_t n;
} oracle;

static void oracle_stage(const oracle *o, size_t stage, const char *text, size_t begin, size_t end, pieces *out);

static void oracle_emit(const oracle *o, size_t stage, const char *text, size_t begin, size_t end, pieces *out) {
    if (begin == end) return;
    if (stage + 1 < o->n)
        oracle_stage(o, stage + 1, text, begin, end, out);
    else
        out->end[out->n++] = end;
}

static void oracle_stage(const oracle *o, size_t stage, const char *text, size_t begin, size_t end, pieces *out) {
    size_t gap = begin, at = begin;
    while (at < end) {
        int r = pcre.match(o->code[stage], (const uint8_t *)text + begin, end - begin, at - begin, 0, o->data, NULL);
        if (r < 0) break;
        size_t *v = pcre.ovector(o->data), from = begin + v[0], to = begin + v[1];
        oracle_emit(o, stage, text, gap, from, out);
        oracle_emit(o, stage, text, from, to, out);
        gap = to;
        at = to;
        if (from == to) {
            uint32_t code;
            at += (size_t)cera_utf8_decode(text + at, end - at, &code);
        }
    }
    oracle_emit(o, stage, text, gap, end, out);
}

static uint32_t *assigned;
static size_t n_assigned;

/* Code points that PCRE2 knows, without U+180E, which its \s holds although Unicode took it from White_Space. */
static void list_assigned(void) {
    void *code = pcre_compile("\\p{Cn}"), *data = pcre.match_data(8, NULL);
    assigned = malloc(0x110000 * sizeof *assigned);
    for (uint32_t c = 0; c < 0x110000; c++) {
        char bytes[4];
        int n = cera_utf8_encode(c, bytes);
        if (n == 0 || c == 0x180e || (c >= 0xe000 && c < 0xf8f0) || c >= 0xf0000) continue;
        if (pcre.match(code, (const uint8_t *)bytes, (size_t)n, 0, 0, data, NULL) < 0) assigned[n_assigned++] = c;
    }
    pcre.code_free(code);
    pcre.match_data_free(data);
}

typedef struct dice {
    uint64_t stream, position;
} dice;

static uint32_t roll(dice *d, uint32_t n) { return (uint32_t)(cera_rng_uniform(SEED, d->stream, d->position++) * n); }

/* Text that meets the rules: short runs of what the classes tell apart, and anything at all. */
static size_t random_text(dice *d, char *out) {
    static const char *const parts[] = {"'s",
                                        "'RE",
                                        "'ll",
                                        "'T",
                                        "'",
                                        " ",
                                        "  ",
                                        "   ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "\n\n ",
                                        "\u00a0",
                                        "\u3000",
                                        "\xc2\x85",
                                        "\u2028",
                                        "1",
                                        "23",
                                        "4567",
                                        "\u0664",
                                        "\u00b2",
                                        "\u2160",
                                        "a",
                                        "Bc",
                                        "XYZ",
                                        "word",
                                        "\u00e9",
                                        "\u0301",
                                        "e\u0301",
                                        "\u01c5",
                                        "\u02b0",
                                        "\u4e2d",
                                        "\u6587\u5b57",
                                        "\u3042",
                                        "\u30a2",
                                        "\uac00",
                                        "!",
                                        "?!",
                                        "...",
                                        "$",
                                        "+",
                                        "(",
                                        "/",
                                        "\u2014",
                                        "\u3002",
                                        "\U0001f600",
                                        "\u200d",
                                        "\u017f",
                                        "\u0e01",
                                        "\u0915\u093f",
                                        "IMGIMGABZ",
                                        "<sentinel:1>",
                                        "|",
                                        "~",
                                        "^",
                                        "`",
                                        "_"};
    size_t n = 0;
    for (uint32_t k = roll(d, 24) + 1; k > 0; k--) {
        if (roll(d, 4)) {
            const char *part = parts[roll(d, sizeof parts / sizeof *parts)];
            memcpy(out + n, part, strlen(part));
            n += strlen(part);
        } else {
            n += (size_t)cera_utf8_encode(assigned[roll(d, (uint32_t)n_assigned)], out + n);
        }
    }
    return n;
}

static void show(const char *what, const pieces *p, const char *text) {
    fprintf(stderr, "%s:", what);
    for (size_t i = 0, begin = 0; i < p->n; begin = p->end[i++])
        fprintf(stderr, " <%.*s>", (int)(p->end[i] - begin), text + begin);
    fprintf(stderr, "\n");
}

static void check_against_pcre(const cera_pretok_info *info) {
    static pieces ours, theirs;
    oracle o = {.data = pcre.match_data(32, NULL), .n = count_stages(info->stages)};
    for (size_t i = 0; i < o.n; i++) {
        char *pattern = for_pcre(info->stages[i]);
        o.code[i] = pcre_compile(pattern);
        free(pattern);
    }
    cera_pretok *p = compiled(info->stages);
    for (uint64_t k = 0; k < STRINGS; k++) {
        char text[1024];
        dice d = {k, 0};
        size_t n = random_text(&d, text);
        ours.n = theirs.n = 0;
        ours.text = text;
        assert_int_equal(cera_pretok_split(p, text, n, collect, &ours, NULL), CERA_OK);
        oracle_stage(&o, 0, text, 0, n, &theirs);
        if (ours.n != theirs.n || memcmp(ours.end, theirs.end, ours.n * sizeof *ours.end) != 0) {
            show("ours ", &ours, text);
            show("pcre2", &theirs, text);
            fail_msg("%s: string %llu of seed %d splits differently", info->name, (unsigned long long)k, SEED);
        }
    }
    for (size_t i = 0; i < o.n; i++) pcre.code_free(o.code[i]);
    pcre.match_data_free(o.data);
    cera_pretok_destroy(p);
}

static void equals_pcre2(void **state) {
    (void)state;
    if (!load_pcre()) {
        print_message("libpcre2-8.so.0 is not here\n");
        skip();
    }
    list_assigned();
    for (size_t k = 0;; k++) {
        const cera_pretok_info *info = cera_pretok_at(k);
        if (!info) break;
        if (k && memcmp(info->stages, cera_pretok_at(k - 1)->stages, sizeof info->stages) == 0) continue;
        check_against_pcre(info);
    }
    free(assigned);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_splits), cmocka_unit_test(refused),
                                       cmocka_unit_test(backtracking_is_bounded), cmocka_unit_test(linear_time),
                                       cmocka_unit_test(equals_pcre2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
