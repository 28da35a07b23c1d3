/* stop.c: see stop.h. One Knuth-Morris-Pratt automaton a string: a byte costs a constant number of steps for each, whatever the
 * strings are. */
#include "engine/stop.h"

#include <string.h>

/* ---- the automaton of one string ---- */

static void fill_borders(cera_stop_pattern *p) {
    size_t k = 0;
    for (size_t i = 1; i < p->size; i++) {
        while (k > 0 && p->text[i] != p->text[k]) k = p->border[k - 1];
        if (p->text[i] == p->text[k]) k++;
        p->border[i] = k;
    }
}

/* True when the string is complete with this byte. */
static bool advance(cera_stop_pattern *p, char byte) {
    while (p->matched > 0 && p->text[p->matched] != byte) p->matched = p->border[p->matched - 1];
    if (p->text[p->matched] == byte) p->matched++;
    return p->matched == p->size;
}

/* ---- the stream ---- */

cera_status cera_stop_init(cera_stop *s, const char *const *texts, size_t n, cera_error *e) {
    *s = (cera_stop){.hit = -1};
    if (n == 0) return CERA_OK;
    if (!texts) return cera_fail(e, CERA_ERR_ARGUMENT, "stop strings: the list is NULL");
    s->patterns = cera_alloc(n, sizeof *s->patterns);
    if (!s->patterns) return cera_fail(e, CERA_ERR_MEMORY, "stop strings: out of memory");
    for (size_t i = 0; i < n; i++) {
        cera_stop_pattern *p = &s->patterns[i];
        p->text = texts[i];
        p->size = texts[i] ? strlen(texts[i]) : 0;
        if (p->size == 0) return cera_fail(e, CERA_ERR_ARGUMENT, "stop strings: number %zu is empty", i + 1);
        p->border = cera_alloc(p->size, sizeof *p->border);
        s->n = i + 1;
        if (!p->border) return cera_fail(e, CERA_ERR_MEMORY, "stop strings: out of memory");
        fill_borders(p);
    }
    return CERA_OK;
}

void cera_stop_deinit(cera_stop *s) {
    for (size_t i = 0; i < s->n; i++) cera_free(s->patterns[i].border);
    cera_free(s->patterns);
    cera_buffer_deinit(&s->buffer);
    *s = (cera_stop){.hit = -1};
}

/* One byte into every automaton; the longest string that it completes, or -1. */
static int feed(cera_stop *s, char byte) {
    int hit = -1;
    for (size_t i = 0; i < s->n; i++)
        if (advance(&s->patterns[i], byte) && (hit < 0 || s->patterns[i].size > s->patterns[hit].size)) hit = (int)i;
    return hit;
}

static size_t longest_start(const cera_stop *s) {
    size_t held = 0;
    for (size_t i = 0; i < s->n; i++) held = s->patterns[i].matched > held ? s->patterns[i].matched : held;
    return held;
}

/* Keeps what was held at the buffer's start and puts the new bytes behind it. */
static cera_status refill(cera_stop *s, const char *bytes, size_t n, cera_error *e) {
    if (s->held > 0) memmove(s->buffer.data, s->buffer.data + s->buffer.size - s->held, s->held);
    s->buffer.size = s->held;
    cera_buffer_add(&s->buffer, bytes, n);
    return s->buffer.failed ? cera_fail(e, CERA_ERR_MEMORY, "stop strings: out of memory") : CERA_OK;
}

cera_status cera_stop_push(cera_stop *s, const char *bytes, size_t n, bool last, const char **text, size_t *size, bool *stopped,
                           cera_error *e) {
    *text = bytes;
    *size = n;
    *stopped = s->hit >= 0;
    if (*stopped) *size = 0;
    if (*stopped || s->n == 0) return CERA_OK;
    const size_t before = s->held;
    CERA_TRY(refill(s, bytes, n, e));
    *text = s->buffer.data;
    for (size_t i = 0; i < n && s->hit < 0; i++) {
        s->hit = feed(s, bytes[i]);
        if (s->hit < 0) continue;
        *size = before + i + 1 - s->patterns[s->hit].size;
        s->held = 0;
        *stopped = true;
        return CERA_OK;
    }
    s->held = last ? 0 : longest_start(s);
    *size = s->buffer.size - s->held;
    return CERA_OK;
}
