/* tokenizer_test.c: vocabularies made here, small enough to know the ids by heart. Merging is compared with the plain
 * definition (join the best pair, start over) on random vocabularies; the cases T01 to T08 of the bug list, special tokens, ids
 * out of range. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/vocab.h"
#include "unit/cmocka_all.h"

enum { SEED = 20261202, MAX_TOKENS = 600, MAX_TEXT = 64 };

/* A vocabulary in the making. */
typedef struct maker {
    cera_vocab_desc d;
    cera_text_view tokens[MAX_TOKENS], merges[MAX_TOKENS];
    int64_t types[MAX_TOKENS];
    float scores[MAX_TOKENS];
    char text[2 * MAX_TOKENS][MAX_TEXT];
    size_t n_text;
} maker;

static maker m;

static cera_text_view keep(const char *text) {
    assert_true(strlen(text) < MAX_TEXT && m.n_text < 2 * MAX_TOKENS);
    char *copy = m.text[m.n_text++];
    strcpy(copy, text);
    return (cera_text_view){copy, strlen(copy)};
}

static void begin(const char *model, const char *pre) {
    memset(&m, 0, sizeof m);
    m.d = (cera_vocab_desc){
        .model = model, .pre = pre, .arch = "", .tokens = m.tokens, .scores = m.scores, .types = m.types, .merges = m.merges};
    m.d.bos = m.d.eos = m.d.eot = m.d.eom = m.d.unk = m.d.sep = m.d.pad = m.d.mask = -1;
    m.d.fim_pre = m.d.fim_suf = m.d.fim_mid = m.d.fim_pad = m.d.fim_rep = m.d.fim_sep = -1;
    m.d.add_bos = m.d.add_eos = m.d.add_sep = m.d.add_space_prefix = -1;
    m.d.remove_extra_whitespaces = m.d.ignore_merges = m.d.escape_whitespaces = m.d.lowercase = m.d.strip_accents = -1;
}

static int32_t add(const char *text, int type, float score) {
    size_t id = m.d.n_tokens++;
    assert_true(id < MAX_TOKENS);
    m.tokens[id] = keep(text);
    m.types[id] = type;
    m.scores[id] = score;
    return (int32_t)id;
}

static void merge(const char *pair) { m.merges[m.d.n_merges++] = keep(pair); }

static cera_vocab *made(void) {
    cera_error e = {0};
    cera_vocab *v;
    if (cera_vocab_create(&m.d, &v, &e) != CERA_OK) fail_msg("%s", e.message);
    return v;
}

/* The 256 bytes of GPT-2's alphabet: token id = byte. */
static void add_bytes(void) {
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        char text[8] = {0};
        cera_utf8_encode(prints ? byte : next++, text);
        add(text, CERA_TOKEN_NORMAL, 0);
    }
}

static void add_byte_tokens(void) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        add(text, CERA_TOKEN_BYTE, 0);
    }
}

static void expect_ids(const cera_vocab *v, const char *text, size_t n, unsigned flags, const int32_t *wanted,
                       size_t n_wanted) {
    int32_t *ids;
    size_t n_ids;
    cera_error e = {0};
    if (cera_vocab_tokenize(v, text, n, flags, &ids, &n_ids, &e) != CERA_OK) fail_msg("%s", e.message);
    bool same = n_ids == n_wanted && (n_ids == 0 || memcmp(ids, wanted, n_ids * sizeof *ids) == 0);
    if (!same) {
        fprintf(stderr, "\"%.*s\" gave", (int)n, text);
        for (size_t i = 0; i < n_ids; i++) fprintf(stderr, " %d", ids[i]);
        fprintf(stderr, "\n");
    }
    assert_true(same);
    assert_true((ids == NULL) == (n_ids == 0));
    cera_free(ids);
}
#define EXPECT(v, text, flags, ...)                                          \
    expect_ids(v, text, strlen(text), flags, (const int32_t[]){__VA_ARGS__}, \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void expect_back(const cera_vocab *v, const char *text, size_t n) {
    int32_t *ids;
    size_t n_ids, size;
    char *back;
    assert_int_equal(cera_vocab_tokenize(v, text, n, 0, &ids, &n_ids, NULL), CERA_OK);
    assert_int_equal(cera_vocab_detokenize(v, ids, n_ids, false, true, &back, &size, NULL), CERA_OK);
    assert_int_equal(size, n);
    assert_memory_equal(back, text, n);
    assert_int_equal(back[size], 0);
    cera_free(ids);
    cera_free(back);
}

static void expect_refused(const char *part) {
    cera_vocab *v;
    cera_error e = {0};
    assert_int_not_equal(cera_vocab_create(&m.d, &v, &e), CERA_OK);
    assert_null(v);
    if (!strstr(e.message, part)) fail_msg("\"%s\" does not name %s", e.message, part);
}

/* ---- byte-level BPE --------------------------------------------------------------------------------------------------- */

enum { TH = 256, THE, SPACE_THE, HE, E6AD, BOS, END, TOOL };

static void make_bpe(const char *pre) {
    begin("gpt2", pre);
    add_bytes();
    assert_int_equal(add("th", 1, 0), TH);
    add("the", 1, 0);
    add("\u0120the", 1, 0);
    add("he", 1, 0);
    add("\u00e6\u0143", 1, 0); /* the bytes E6 AD */
    add("<|bos|>", CERA_TOKEN_CONTROL, 0);
    add("<|im_end|>", CERA_TOKEN_CONTROL, 0);
    add("<tool>", CERA_TOKEN_USER, 0);
    merge("t h");
    merge("th e");
    merge("\u0120 the");
    merge("h e");
    merge("\u00e6 \u0143");
    merge("t h");   /* the first rank counts */
    merge("xyz q"); /* of parts that are no tokens: no harm */
}

static void byte_level(void **state) {
    (void)state;
    make_bpe("gpt-2");
    m.d.bos = BOS;
    cera_vocab *v = made();
    EXPECT(v, "the the he", 0, THE, SPACE_THE, ' ', HE);
    EXPECT(v, "xthe", CERA_TOKENIZE_BOS, 'x', THE); /* byte-level BPE adds no BOS unless the file says so */
    EXPECT(v, "\xe6\xad", 0, E6AD);                 /* T01: half a character is its bytes, merged as bytes are */
    EXPECT(v, "\xff\xc0\x80", 0, 0xff, 0xc0, 0x80);
    expect_ids(v, "", 0, 0, NULL, 0);
    expect_ids(v, "a\0b", 3, 0, (const int32_t[]){'a', 0, 'b'}, 3);
    assert_int_equal(cera_vocab_find(v, "\u0120the", 5), SPACE_THE);
    assert_int_equal(cera_vocab_find(v, "<|im_end|>", 10), END);
    assert_int_equal(cera_vocab_find(v, " the", 4), -1);
    assert_int_equal(cera_vocab_find(v, "xyz", 3), -1);
    assert_int_equal(cera_vocab_size(v), TOOL + 1);
    cera_text_view bytes = cera_vocab_token_bytes(v, SPACE_THE, false);
    assert_int_equal(bytes.size, 4);
    assert_memory_equal(bytes.text, " the", 4);
    assert_int_equal(cera_vocab_token_bytes(v, END, false).size, 0);
    assert_int_equal(cera_vocab_token_bytes(v, END, true).size, 10);
    assert_int_equal(cera_vocab_token_bytes(v, -1, true).size, 0);
    assert_int_equal(cera_vocab_token_bytes(v, 1 << 20, true).size, 0);
    cera_vocab_destroy(v);
}

static void merges_or_whole_words(void **state) {
    (void)state;
    make_bpe("gpt-2");
    add("hex", 1, 0); /* no merges lead to it */
    int32_t hex = (int32_t)m.d.n_tokens - 1;
    cera_vocab *v = made();
    EXPECT(v, "hex", 0, HE, 'x');
    cera_vocab_destroy(v);
    m.d.pre = "llama-bpe"; /* ignores merges where the piece is a token, and adds BOS */
    m.d.bos = BOS;
    v = made();
    EXPECT(v, "hex", CERA_TOKENIZE_BOS, BOS, hex);
    EXPECT(v, "hexx", 0, HE, 'x', 'x');
    cera_vocab_destroy(v);
    m.d.add_bos = 0;
    m.d.ignore_merges = 0;
    v = made();
    EXPECT(v, "hex", CERA_TOKENIZE_BOS, HE, 'x');
    cera_vocab_destroy(v);
}

static void special_tokens(void **state) {
    (void)state;
    make_bpe("gpt-2");
    m.d.eos = END;
    add("<|im_end|>x", CERA_TOKEN_CONTROL, 0);
    int32_t longer = (int32_t)m.d.n_tokens - 1;
    cera_vocab *v = made();
    /* T07: control tokens in a text are text, unless asked; user-defined ones are tokens always. */
    EXPECT(v, "<|im_end|>", 0, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>');
    EXPECT(v, "a<tool>the", 0, 'a', TOOL, THE);
    EXPECT(v, "<|im_end|><|bos|>the<tool>", CERA_TOKENIZE_SPECIAL, END, BOS, THE, TOOL);
    EXPECT(v, "<|im_end|>xx", CERA_TOKENIZE_SPECIAL, longer, 'x'); /* the longest */
    EXPECT(v, "<|im_end|", CERA_TOKENIZE_SPECIAL, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|');
    expect_back(v, "<|im_end|><tool>", 16);
    char *text;
    size_t n;
    const int32_t ids[] = {END, THE};
    assert_int_equal(cera_vocab_detokenize(v, ids, 2, false, true, &text, &n, NULL), CERA_OK);
    assert_string_equal(text, "the");
    cera_free(text);
    assert_int_equal(cera_vocab_detokenize(v, ids, 2, true, true, &text, &n, NULL), CERA_OK);
    assert_string_equal(text, "<|im_end|>the");
    cera_free(text);
    const int32_t bad[] = {-1};
    assert_int_equal(cera_vocab_detokenize(v, bad, 1, true, true, &text, &n, NULL), CERA_ERR_ARGUMENT);
    assert_null(text);
    cera_vocab_destroy(v);
}

static void end_of_generation(void **state) {
    (void)state;
    make_bpe("gpt-2");
    int32_t normal = add("<|eot_id|>", CERA_TOKEN_NORMAL, 0); /* mistyped by the file: counts, and is a control token */
    int32_t struck = add("</s>", CERA_TOKEN_USER, 0);         /* HTML's, where it is not the eos */
    int32_t end = add("<|end|>", CERA_TOKEN_CONTROL, 0);
    const int64_t more[] = {TH};
    m.d.eos = BOS;
    m.d.eog = more;
    m.d.n_eog = 1;
    cera_vocab *v = made();
    assert_true(cera_vocab_is_eog(v, BOS) && cera_vocab_is_eog(v, END) && cera_vocab_is_eog(v, normal) &&
                cera_vocab_is_eog(v, TH) && cera_vocab_is_eog(v, end));
    assert_false(cera_vocab_is_eog(v, struck) || cera_vocab_is_eog(v, THE) || cera_vocab_is_eog(v, -1) ||
                 cera_vocab_is_eog(v, 1 << 20));
    assert_int_equal(cera_vocab_token_type(v, normal), CERA_TOKEN_CONTROL);
    cera_vocab_destroy(v);
    add("<|return|>", CERA_TOKEN_CONTROL, 0);
    add("<|call|>", CERA_TOKEN_CONTROL, 0); /* harmony: <|end|> ends a message only */
    v = made();
    assert_false(cera_vocab_is_eog(v, end));
    assert_true(cera_vocab_is_eog(v, end + 1) && cera_vocab_is_eog(v, end + 2));
    cera_vocab_destroy(v);
}

static void missing_bytes(void **state) {
    (void)state;
    begin("gpt2", "gpt-2"); /* T08: a character that is not in the vocabulary */
    add("a", 1, 0);
    add("", 1, 0); /* an empty token is never met */
    add("a", 1, 0);
    cera_vocab *v = made();
    EXPECT(v, "aa", 0, 0, 0);
    int32_t *ids;
    size_t n;
    cera_error e = {0};
    assert_int_equal(cera_vocab_tokenize(v, "ab", 2, 0, &ids, &n, &e), CERA_ERR_UNSUPPORTED);
    assert_non_null(strstr(e.message, "0x62"));
    assert_null(ids);
    cera_vocab_destroy(v);
    m.d.unk = 1;
    v = made();
    EXPECT(v, "ab", 0, 0, 1);
    cera_vocab_destroy(v);
}

/* ---- SentencePiece ------------------------------------------------------------------------------------------------------ */

static void sentence_piece(void **state) {
    (void)state;
    begin("llama", NULL);
    add("<unk>", CERA_TOKEN_UNKNOWN, 0);
    add("<s>", CERA_TOKEN_CONTROL, 0);
    add("</s>", CERA_TOKEN_CONTROL, 0);
    add_byte_tokens(); /* 3 .. 258 */
    int32_t space = add("\u2581", 1, -10), a = add("a", 1, -11), b = add("b", 1, -12), ab = add("ab", 1, -2),
            space_a = add("\u2581a", 1, -1), end1 = add("</", 1, -3), end2 = add("s>", 1, -4),
            user = add("<h1>", CERA_TOKEN_USER, 0);
    cera_vocab *v = made();
    assert_int_equal(cera_vocab_bos(v), 1);
    assert_int_equal(cera_vocab_eos(v), 2);
    EXPECT(v, "ab", CERA_TOKENIZE_BOS, 1, space_a, b); /* best score first, and the space prefix */
    EXPECT(v, "ab", CERA_TOKENIZE_NO_SPACE_PREFIX, ab);
    EXPECT(v, " ab", CERA_TOKENIZE_NO_SPACE_PREFIX, space_a, b);
    EXPECT(v, "\u00e9", 0, space, 3 + 0xc3, 3 + 0xa9); /* bytes where a character is no token */
    EXPECT(v, "\xe6\xad", 0, space, 3 + 0xe6, 3 + 0xad);
    EXPECT(v, "a<h1>a", 0, space_a, user, space_a);               /* a prefix behind a token, as in llama.cpp */
    EXPECT(v, "\u2581a", CERA_TOKENIZE_NO_SPACE_PREFIX, space_a); /* U+2581 in the text is a space */
    /* T07: merging never makes a control token. */
    EXPECT(v, "</s>", CERA_TOKENIZE_NO_SPACE_PREFIX, end1, end2);
    EXPECT(v, "</s>", CERA_TOKENIZE_SPECIAL, 2);
    (void)a;
    expect_back(v, "ab ab  \xff\n", 9);
    expect_back(v, "  ab", 4);
    cera_vocab_destroy(v);
    m.d.add_space_prefix = 0;
    v = made();
    EXPECT(v, "ab", 0, ab);
    expect_back(v, " ab", 3);
    cera_vocab_destroy(v);
}

/* ---- against the plain definition ------------------------------------------------------------------------------------------
 */

static uint32_t roll(uint64_t stream, uint64_t *position, uint32_t n) {
    return (uint32_t)(cera_rng_uniform(SEED, stream, (*position)++) * n);
}

/* Joins the pair of the lowest rank (the leftmost among equals) until none is left; parts are texts. ranks: the token's rank,
 * -1: none. */
static size_t plain_merge(char parts[][MAX_TEXT], size_t n, bool by_pair) {
    for (;;) {
        size_t best = n, best_rank = SIZE_MAX;
        for (size_t i = 0; i + 1 < n; i++) {
            char joined[2 * MAX_TEXT];
            snprintf(joined, sizeof joined, by_pair ? "%.63s %.63s" : "%.63s%.63s", parts[i], parts[i + 1]);
            size_t count = by_pair ? m.d.n_merges : m.d.n_tokens;
            for (size_t k = 0; k < count; k++) {
                cera_text_view t = by_pair ? m.merges[k] : m.tokens[k];
                if (strlen(joined) != t.size || memcmp(joined, t.text, t.size) != 0) continue;
                size_t rank = by_pair ? k : (size_t)(-m.scores[k]);
                if (rank < best_rank) best = i, best_rank = rank;
                break;
            }
        }
        if (best == n) return n;
        size_t size = strlen(parts[best]);
        memcpy(parts[best] + size, parts[best + 1], strlen(parts[best + 1]) + 1);
        for (size_t i = best + 1; i + 1 < n; i++) strcpy(parts[i], parts[i + 1]);
        n--;
    }
}

static void compare_with_plain(const cera_vocab *v, uint64_t stream, uint64_t *position, bool by_pair) {
    static char parts[300][MAX_TEXT];
    char text[300];
    size_t n = roll(stream, position, 6) ? roll(stream, position, 40) + 1 : roll(stream, position, 250) + 1;
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)('a' + roll(stream, position, 3));
        parts[i][0] = text[i];
        parts[i][1] = 0;
    }
    int32_t wanted[300];
    size_t n_wanted = plain_merge(parts, n, by_pair);
    for (size_t i = 0; i < n_wanted; i++) {
        wanted[i] = cera_vocab_find(v, parts[i], strlen(parts[i]));
        assert_true(wanted[i] >= 0);
    }
    expect_ids(v, text, n, 0, wanted, n_wanted);
}

static void merging_is_the_definition(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        uint64_t position = 0;
        bool by_pair = k % 2;
        begin(by_pair ? "gpt2" : "llama", "gpt-2");
        m.d.add_space_prefix = 0;
        for (char c = 'a'; c <= 'c'; c++) add((char[]){c, 0}, 1, -1000);
        for (int i = 0; i < 30; i++) { /* tokens grow out of tokens; scores repeat, so that ties are met */
            char joined[2 * MAX_TEXT], pair[2 * MAX_TEXT + 2];
            const char *left = m.tokens[roll(k, &position, (uint32_t)m.d.n_tokens)].text,
                       *right = m.tokens[roll(k, &position, (uint32_t)m.d.n_tokens)].text;
            if (strlen(left) + strlen(right) > 14) continue;
            snprintf(joined, sizeof joined, "%s%s", left, right);
            snprintf(pair, sizeof pair, "%s %s", left, right);
            bool known = false;
            for (size_t t = 0; t < m.d.n_tokens; t++) known |= strcmp(m.tokens[t].text, joined) == 0;
            if (!known) add(joined, 1, -(float)(1 + roll(k, &position, 20)));
            if (by_pair) merge(pair);
        }
        cera_vocab *v = made();
        for (int i = 0; i < 30; i++) compare_with_plain(v, k, &position, by_pair);
        cera_vocab_destroy(v);
    }
}

static void random_bytes_come_back(void **state) {
    (void)state;
    make_bpe("qwen2");
    cera_vocab *bpe = made();
    begin("llama", NULL);
    add("<unk>", CERA_TOKEN_UNKNOWN, 0);
    add("<s>", CERA_TOKEN_CONTROL, 0);
    add("</s>", CERA_TOKEN_CONTROL, 0);
    add_byte_tokens();
    add("\u2581", 1, -5);
    add("\u2581\u2581", 1, -4);
    add("\u00e9", 1, -6);
    cera_vocab *spm = made();
    for (uint64_t k = 0; k < 2000; k++) {
        char text[200];
        uint64_t position = 0;
        size_t n = roll(k, &position, 200);
        for (size_t i = 0; i < n; i++) {
            uint32_t byte = roll(k, &position, 256);
            text[i] = roll(k, &position, 3) ? "the \xc3\xa9\n'1"[byte % 9] : (char)byte;
        }
        expect_back(bpe, text, n);
        expect_back(spm, text, n);
    }
    cera_vocab_destroy(bpe);
    cera_vocab_destroy(spm);
}

/* ---- linear time (T02 to T05)
 * ------------------------------------------------------------------------------------------------ */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void repeat_unit(const cera_vocab *v, const char *unit, size_t size, char *text) {
    size_t n = strlen(unit), n_ids;
    int32_t *ids;
    for (size_t i = 0; i < size; i++) text[i] = unit[i % n];
    double start = seconds();
    assert_int_equal(cera_vocab_tokenize(v, text, size, CERA_TOKENIZE_SPECIAL, &ids, &n_ids, NULL), CERA_OK);
    double took = seconds() - start;
    if (took > 1.5) fail_msg("%zu bytes of \"%s\" took %.2f s", size, unit, took);
    cera_free(ids);
}

static void linear_time(void **state) {
    (void)state;
    static const char *const units[] = {"A", "\u4e2d", "\n", " ", "_", "e\u0301", "<|im_end|", "ab ", "the"};
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    make_bpe("qwen2");
    for (int n = 1; n <= 16; n *= 2) { /* merges for long runs, so that a whole megabyte is joined again and again */
        char run[40] = {0}, pair[90];
        memset(run, 'A', (size_t)(2 * n));
        snprintf(pair, sizeof pair, "%.*s %.*s", n, run, n, run);
        merge(pair);
        add(run, 1, 0);
    }
    cera_vocab *v = made();
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) repeat_unit(v, units[i], SIZE, text);
    cera_vocab_destroy(v);
    begin("llama", NULL);
    add("<unk>", CERA_TOKEN_UNKNOWN, 0);
    add("<s>", CERA_TOKEN_CONTROL, 0);
    add("</s>", CERA_TOKEN_CONTROL, 0);
    add_byte_tokens();
    for (int n = 1; n <= 32; n *= 2) {
        char run[40] = {0};
        memset(run, 'A', (size_t)n);
        add(run, 1, (float)-n);
    }
    v = made();
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) repeat_unit(v, units[i], SIZE, text);
    cera_vocab_destroy(v);
    free(text);
}

/* ---- unigram and WordPiece
 * ---------------------------------------------------------------------------------------------------- */

static void unigram(void **state) {
    (void)state;
    begin("t5", NULL);
    add("<pad>", CERA_TOKEN_CONTROL, 0);
    add("</s>", CERA_TOKEN_CONTROL, 0);
    add("<unk>", CERA_TOKEN_UNKNOWN, 0);
    int32_t space = add("\u2581", 1, -4), a = add("a", 1, -3), b = add("b", 1, -3), ab = add("ab", 1, -5),
            space_a = add("\u2581a", 1, -4), abab = add("abab", 1, -11);
    cera_vocab *v = made();
    EXPECT(v, "ab", CERA_TOKENIZE_BOS, space_a, b, 1); /* -7 beats -9; EOS at the end */
    EXPECT(v, "bab", 0, space, b, ab);                 /* -5 beats -6 */
    EXPECT(v, "babab", 0, space, b, ab, ab);           /* -10 beats -11 */
    EXPECT(v, "xyb", 0, space, 2, b);                  /* unknown neighbours are one */
    (void)a, (void)abab;
    cera_vocab_destroy(v);
    m.d.remove_extra_whitespaces = 1;
    v = made();
    EXPECT(v, "  ab   b ", 0, space_a, b, space, b);
    cera_vocab_destroy(v);
}

/* A normalisation map of two rules: "A" is "a", "\t" is " ". Its layout is Darts-clone's double array. */
static void normalisation_map(void **state) {
    (void)state;
    static uint32_t units[0x400];
    static char map[4 + sizeof units + 8];
    memset(units, 0, sizeof units);
    const uint32_t root = 0x100, base = 0x200;
    units[0] = root << 10;
    const struct {
        uint8_t byte;
        uint32_t offset;
    } rules[] = {{'A', 0}, {'\t', 2}};
    for (size_t i = 0; i < 2; i++) {
        uint32_t node = root ^ rules[i].byte;
        units[node] = base << 10 | 1u << 8 | rules[i].byte;
        units[node ^ base] = 1u << 31 | rules[i].offset;
    }
    uint32_t size = sizeof units;
    for (int i = 0; i < 4; i++) map[i] = (char)(size >> 8 * i);
    for (size_t i = 0; i < sizeof units; i++) map[4 + i] = (char)(units[i / 4] >> 8 * (i % 4));
    memcpy(map + 4 + sizeof units, "a\0 ", 4);
    begin("t5", NULL);
    add("<unk>", CERA_TOKEN_UNKNOWN, 0);
    int32_t space = add("\u2581", 1, -4), a = add("a", 1, -3);
    m.d.unk = 0;
    m.d.charsmap = (cera_text_view){map, 4 + sizeof units + 4};
    cera_vocab *v = made();
    EXPECT(v, "Aa\tA", 0, space, a, a, space, a);
    cera_vocab_destroy(v);
    m.d.charsmap.size = 3;
    expect_refused("precompiled_charsmap");
    m.d.charsmap.size = 4 + sizeof units;
    expect_refused("precompiled_charsmap");
    map[0] = 1;
    m.d.charsmap.size = 4 + sizeof units + 4;
    expect_refused("precompiled_charsmap");
}

static void word_piece(void **state) {
    (void)state;
    begin("bert", NULL);
    for (int i = 0; i < 110; i++)
        add(i == 100   ? "[UNK]"
            : i == 101 ? "[CLS]"
            : i == 102 ? "[SEP]"
                       : (char[]){'#', (char)i, 0},
            i == 100 ? CERA_TOKEN_UNKNOWN : CERA_TOKEN_CONTROL, 0);
    int32_t word = add("\u2581cafe", 1, 0), s = add("s", 1, 0), bang = add("\u2581!", 1, 0), han = add("\u2581\u4e2d", 1, 0);
    cera_vocab *v = made();
    EXPECT(v, "Caf\u00e9s! \u4e2d\u4e2d x", CERA_TOKENIZE_BOS, 101, word, s, bang, han, han, 100, 102);
    EXPECT(v, "cafe\u0301\u00a0cafe\x01s", 0, word, word, s);
    cera_vocab_destroy(v);
    m.d.lowercase = 0;
    v = made();
    EXPECT(v, "Cafe cafe", 0, 100, word);
    cera_vocab_destroy(v);
}

/* ---- refusals
 * ---------------------------------------------------------------------------------------------------------------- */

static void refusals(void **state) {
    (void)state;
    make_bpe("gpt-2");
    m.d.bos = TOOL + 1;
    expect_refused("bos_token_id");
    m.d.bos = -1;
    m.d.eos = 0xffffffffll;
    expect_refused("eos_token_id");
    m.d.eos = -2;
    expect_refused("eos_token_id");
    m.d.eos = -1;
    m.types[3] = 7;
    expect_refused("token_type");
    m.types[3] = 1;
    m.scores[3] = 0.0f / 0.0f;
    expect_refused("scores");
    m.scores[3] = 0;
    m.d.pre = "no-such-pre";
    expect_refused("no-such-pre");
    m.d.allow_unknown_pre = true;
    cera_vocab_destroy(made());
    m.d.model = "rwkv";
    expect_refused("rwkv");
    m.d.model = "gpt2";
    merge("nospace");
    expect_refused("merges");
    m.d.n_tokens = 0;
    expect_refused("tokens");
}

/* G23c: one token, no ids; the defaults of the kind (1 and 2) lie outside. */
static void one_token(void **state) {
    (void)state;
    static const char *const models[] = {"llama", "gpt2", "bert", "t5"};
    for (size_t i = 0; i < 4; i++) {
        begin(models[i], NULL);
        add("<unk>", CERA_TOKEN_UNKNOWN, 0);
        cera_vocab *v = made();
        assert_int_equal(cera_vocab_bos(v), -1);
        assert_int_equal(cera_vocab_eos(v), -1);
        assert_false(cera_vocab_adds_bos(v));
        int32_t *ids;
        size_t n;
        cera_status status =
            cera_vocab_tokenize(v, "hello world", 11, CERA_TOKENIZE_BOS | CERA_TOKENIZE_SPECIAL, &ids, &n, NULL);
        assert_true(status == CERA_OK || status == CERA_ERR_UNSUPPORTED);
        for (size_t k = 0; k < n; k++) assert_int_equal(ids[k], 0);
        cera_free(ids);
        cera_vocab_destroy(v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(byte_level),
                                       cmocka_unit_test(merges_or_whole_words),
                                       cmocka_unit_test(special_tokens),
                                       cmocka_unit_test(end_of_generation),
                                       cmocka_unit_test(missing_bytes),
                                       cmocka_unit_test(sentence_piece),
                                       cmocka_unit_test(merging_is_the_definition),
                                       cmocka_unit_test(random_bytes_come_back),
                                       cmocka_unit_test(linear_time),
                                       cmocka_unit_test(unigram),
                                       cmocka_unit_test(normalisation_map),
                                       cmocka_unit_test(word_piece),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(one_token)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
