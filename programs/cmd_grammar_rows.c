/* cmd_grammar_rows.c: files of schemas with tests, a JSON object a line: verdicts, or times. The lines are cut by a scanner
 * that knows where JSON values begin and end; schemas and instances go on as the text they are. Owns no judgement: the
 * library's is printed. */
#include "cmd_grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/input.h"
#include "common/output.h"

typedef struct {
    const char *text;
    size_t size;
} span;

static const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
    return p;
}

static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\') p++;
    return p < end ? p + 1 : end;
}

/* Behind the value at p: up to the comma or bracket that ends it. */
static const char *skip_value(const char *p, const char *end) {
    int depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if (depth == 0 && (*p == ',' || *p == ']' || *p == '}')) break;
        if (*p == '[' || *p == '{') depth++;
        if (*p == ']' || *p == '}') depth--;
        p++;
    }
    return p;
}

static span trimmed(const char *from, const char *to) {
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) to--;
    return (span){from, (size_t)(to - from)};
}

/* Member `name` of the object in s. */
static bool member(span s, const char *name, span *out) {
    const char *p = skip_space(s.text, s.text + s.size), *end = s.text + s.size;
    if (p == end || *p != '{') return false;
    for (p++; p < end;) {
        p = skip_space(p, end);
        if (p == end || *p != '"') return false;
        const char *key = p + 1;
        p = skip_string(p, end);
        const size_t size = (size_t)(p - 1 - key);
        p = skip_space(p, end);
        if (p == end || *p != ':') return false;
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        if (size == strlen(name) && !memcmp(key, name, size)) return *out = trimmed(value, p), true;
        if (p < end) p++;
    }
    return false;
}

/* The next element of an array; *at starts at 0. */
static bool element(span s, size_t *at, span *out) {
    const char *end = s.text + s.size, *p = s.text + *at;
    if (*at == 0 && (s.size == 0 || *p != '[')) return false;
    p = skip_space(p + 1, end);
    if (p >= end || *p == ']') return false;
    const char *next = skip_value(p, end);
    *out = trimmed(p, next);
    *at = (size_t)(next - s.text);
    return true;
}

/* ---- verdicts
 * -------------------------------------------------------------------------------------------------------------------- */

static void print_reason(const char *text) {
    for (; *text; text++) putchar(*text == '\t' || *text == '\n' ? ' ' : *text);
    putchar('\n');
}

static void print_verdict(span name, size_t index, cera_grammar *grammar, span data, const cera_error *compile) {
    cera_error e = {0};
    cera_grammar_state *state = NULL;
    const char *verdict = "refused";
    if (grammar) {
        cera_status s = cera_grammar_state_create(grammar, NULL, &state, &e);
        if (s == CERA_OK) s = cera_grammar_accept_text(state, data.text, data.size, NULL, &e);
        if (s == CERA_OK && cera_grammar_is_complete(state))
            verdict = "accepted";
        else if (s == CERA_OK || s == CERA_ERR_ARGUMENT)
            verdict = "rejected";
        if (s == CERA_OK && *verdict == 'r') snprintf(e.message, sizeof e.message, "grammar: the text ends too early");
    }
    if (name.size > 1 && *name.text == '"') name = (span){name.text + 1, name.size - 2};
    printf("%.*s\t%zu\t%s\t", (int)name.size, name.text, index, verdict);
    print_reason(grammar ? e.message : compile->message);
    cera_grammar_state_destroy(state);
}

static bool verdict_line(const cera_grammar_rows *r, span line) {
    span name = {"", 0}, schema, tests, test, data;
    size_t at = 0, index = 0;
    if (!member(line, "schema", &schema) || !member(line, "tests", &tests)) return false;
    member(line, "name", &name);
    const cera_grammar_options options = {.size = sizeof options, .any_order = r->any_order, .any_space = true};
    cera_error e = {0};
    cera_grammar *grammar = NULL;
    cera_grammar_compile(CERA_GRAMMAR_SCHEMA, schema.text, schema.size, &options, &grammar, &e);
    for (; element(tests, &at, &test); index++)
        if (member(test, "data", &data)) print_verdict(name, index, grammar, data, &e);
    cera_grammar_close(grammar);
    return true;
}

/* ---- times
 * ------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    double *at;
    size_t n, capacity;
} samples;

typedef struct {
    const cera_grammar_rows *r;
    cera_grammar_tokens *tokens;
    uint32_t *bits;
    samples compile, first, mask, mask_cpu;
    size_t refused, accepted, rejected;
} bench;

static double now_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void add(samples *s, double value) {
    if (s->n == s->capacity) {
        const size_t n = s->capacity ? s->capacity * 2 : 4096;
        double *p = realloc(s->at, n * sizeof *p);
        if (!p) return;
        s->at = p;
        s->capacity = n;
    }
    s->at[s->n++] = value;
}

static int ascending(const void *x, const void *y) {
    const double p = *(const double *)x, q = *(const double *)y;
    return p < q ? -1 : p > q;
}

static void print_samples(const char *name, samples *s, const char *end) {
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += s->at[i];
    if (s->n) qsort(s->at, s->n, sizeof *s->at, ascending);
    printf("\"%s\": {\"n\": %zu, \"mean\": %.2f, \"p50\": %.2f, \"p99\": %.2f, \"max\": %.2f}%s", name, s->n,
           s->n ? sum / (double)s->n : 0, s->n ? s->at[s->n / 2] : 0, s->n ? s->at[s->n * 99 / 100] : 0,
           s->n ? s->at[s->n - 1] : 0, end);
    free(s->at);
}

/* One instance, token by token: a mask before each. Stops where the instance leaves the schema. */
static void bench_text(bench *b, cera_grammar *grammar, span data) {
    cera_error e = {0};
    cera_grammar_state *state;
    int32_t *ids = NULL;
    size_t n = 0, i = 0;
    if (cera_tokenizer_encode(b->r->tokenizer, data.text, data.size, 0, &ids, &n, &e) != CERA_OK) return;
    if (cera_grammar_state_create(grammar, NULL, &state, &e) == CERA_OK) {
        for (; i < n; i++) {
            const double wall = now_us(CLOCK_MONOTONIC), cpu = now_us(CLOCK_THREAD_CPUTIME_ID);
            const cera_status s = cera_grammar_mask(state, b->tokens, b->bits, &e);
            add(&b->mask_cpu, now_us(CLOCK_THREAD_CPUTIME_ID) - cpu);
            add(&b->mask, now_us(CLOCK_MONOTONIC) - wall);
            if (s != CERA_OK || !(b->bits[ids[i] >> 5] >> (ids[i] & 31) & 1) ||
                cera_grammar_accept_token(state, b->tokens, ids[i], &e) != CERA_OK)
                break;
        }
        if (i == n && cera_grammar_is_complete(state))
            b->accepted++;
        else
            b->rejected++;
        cera_grammar_state_destroy(state);
    }
    cera_release(ids);
}

static bool bench_line(bench *b, span line) {
    span schema, tests, test, data;
    size_t at = 0;
    if (!member(line, "schema", &schema) || !member(line, "tests", &tests)) return false;
    const cera_grammar_options options = {.size = sizeof options, .any_order = b->r->any_order};
    cera_error e = {0};
    cera_grammar *grammar = NULL;
    cera_grammar_state *state = NULL;
    const double start = now_us(CLOCK_MONOTONIC);
    cera_grammar_compile(CERA_GRAMMAR_SCHEMA, schema.text, schema.size, &options, &grammar, &e);
    const double compiled = now_us(CLOCK_MONOTONIC);
    if (!grammar) return b->refused++, true;
    if (cera_grammar_state_create(grammar, NULL, &state, &e) == CERA_OK) cera_grammar_mask(state, b->tokens, b->bits, &e);
    add(&b->first, now_us(CLOCK_MONOTONIC) - start);
    add(&b->compile, compiled - start);
    cera_grammar_state_destroy(state);
    while (element(tests, &at, &test))
        if (member(test, "data", &data)) bench_text(b, grammar, data);
    cera_grammar_close(grammar);
    return true;
}

static void print_bench(bench *b) {
    printf("{\"tokens\": %d, \"schemas\": %zu, \"refused\": %zu, \"instances_accepted\": %zu, \"instances_rejected\": %zu, ",
           (int)cera_tokenizer_size(b->r->tokenizer), b->first.n + b->refused, b->refused, b->accepted, b->rejected);
    print_samples("compile_us", &b->compile, ", ");
    print_samples("first_mask_us", &b->first, ", ");
    print_samples("mask_us", &b->mask, ", ");
    print_samples("mask_cpu_us", &b->mask_cpu, "}\n");
}

/* ---- lines
 * ---------------------------------------------------------------------------------------------------------------------------
 */

static int each_line(const cera_grammar_rows *r, bench *b, const char *text, size_t size) {
    size_t number = 1;
    for (const char *p = text, *end = text + size; p < end; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        const span line = trimmed(skip_space(p, stop), stop);
        p = stop + 1;
        if (!line.size) continue;
        if (b ? bench_line(b, line) : verdict_line(r, line)) continue;
        fprintf(stderr, "cera: %s: line %zu is no object with schema and tests\n", r->rows, number);
        return 1;
    }
    return 0;
}

int cera_grammar_run_rows(const cera_grammar_rows *r) {
    char *text;
    size_t size;
    bench b = {.r = r};
    cera_error e = {0};
    int status = cera_input_read(NULL, r->rows, &text, &size);
    if (status >= 0) return status;
    if (r->bench) {
        b.bits = calloc((size_t)cera_tokenizer_size(r->tokenizer) / 32 + 1, sizeof *b.bits);
        if (!b.bits || cera_grammar_tokens_create(r->tokenizer, &b.tokens, &e) != CERA_OK) {
            fprintf(stderr, "cera: %s\n", b.bits ? e.message : "out of memory");
            status = 1;
        }
    }
    if (status < 0) status = each_line(r, r->bench ? &b : NULL, text, size);
    if (r->bench && status == 0) print_bench(&b);
    free(text);
    free(b.bits);
    cera_grammar_tokens_destroy(b.tokens);
    return status;
}
