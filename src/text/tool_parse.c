/* tool_parse.c: goes through a model's output as it comes: text, thoughts, where calls begin, white space around markers,
 * events, and the result. What is inside a call is tool_call.c.
 *
 * Every decision is made on bytes that are there, and is put off (TOOL_MORE) while they could still become something else; so
 * how the output was cut into pieces cannot be seen in the result. */
#include <string.h>
#include "base/arena.h"
#include "text/tool_int.h"

/* ---- markers ---------------------------------------------------------------------------------------------------- */

int cera_tool_starts(const cera_tool_parser *p, size_t at, const char *word) {
    size_t size = strlen(word), left = p->text.size - at;
    if (left >= size) return !memcmp(p->text.data + at, word, size);
    return left && memcmp(p->text.data + at, word, left) ? 0 : p->finishing ? 0 : -1;
}

size_t cera_tool_find(const cera_tool_parser *p, size_t from, const char *word) {
    if (from >= p->text.size) return SIZE_MAX;
    const char *at = memmem(p->text.data + from, p->text.size - from, word, strlen(word));
    return at ? (size_t)(at - p->text.data) : SIZE_MAX;
}

typedef struct marker {
    const char *text;
    enum { MARK_CALL, MARK_THINK, MARK_THINK_END, MARK_DROP, MARK_CHANNEL } kind;
} marker;

enum { MAX_MARKERS = 16 };

static size_t markers(const cera_tool_parser *p, marker out[MAX_MARKERS]) {
    const cera_tool_format *f = &p->format;
    size_t n = 0;
    if (f->syntax == CERA_TOOLS_HARMONY) {
        static const char *const words[] = {"<|channel|>", "<|start|>"};
        for (size_t i = 0; i < 2; i++) out[n++] = (marker){words[i], MARK_CHANNEL};
        return n;
    }
    if (f->think_open) out[n++] = (marker){f->think_open, MARK_THINK};
    if (f->think_close) out[n++] = (marker){f->think_close, MARK_THINK_END};
    if (p->has_tools && f->begin) out[n++] = (marker){f->begin, MARK_CALL};
    for (size_t i = 0; i < CERA_TOOL_DROPS && f->drop[i]; i++) out[n++] = (marker){f->drop[i], MARK_DROP};
    return n;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void add_content(cera_tool_parser *p, const char *text, size_t n) {
    if (n == 0) return;
    cera_buffer_add(&p->content, text, n);
    if (p->events.on_content) p->events.on_content(p->events.ctx, text, n);
}

static void add_reasoning(cera_tool_parser *p, const char *text, size_t n) {
    if (n == 0) return;
    cera_buffer_add(&p->reasoning, text, n);
    if (p->events.on_reasoning) p->events.on_reasoning(p->events.ctx, text, n);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Text up to `end`: white space at its end waits until it is known whether a marker follows. */
static void take_text(cera_tool_parser *p, size_t end, void (*add)(cera_tool_parser *p, const char *text, size_t n)) {
    const char *s = p->text.data;
    if (p->skip_space)
        while (p->at < end && is_space(s[p->at])) p->at++;
    if (p->at == end) return;
    p->skip_space = false;
    size_t stop = end;
    while (stop > p->at && is_space(s[stop - 1])) stop--;
    if (stop > p->at) {
        add(p, s + p->space_from, p->space_to - p->space_from);
        add(p, s + p->at, stop - p->at);
        p->space_from = stop;
    } else if (p->space_from == p->space_to) {
        p->space_from = p->at;
    }
    p->space_to = p->at = end;
}

/* A marker of n bytes at p->at: the white space around it goes. */
static void pass_marker(cera_tool_parser *p, size_t n) {
    p->at += n;
    p->space_from = p->space_to = 0;
    p->skip_space = true;
    p->searched = p->at;
}

/* ---- text and thoughts ------------------------------------------------------------------------------------------ */

/* The first marker at or after p->at, and its place; or how much text is certainly none. */
static const marker *next_marker(cera_tool_parser *p, const marker *list, size_t n, size_t *place) {
    const marker *best = NULL;
    size_t from = p->searched > p->at ? p->searched : p->at, size = p->text.size;
    *place = size;
    for (size_t i = 0; i < n; i++) {
        size_t at = cera_tool_find(p, from, list[i].text);
        if (at < *place) {
            best = &list[i];
            *place = at;
        }
    }
    if (best || p->finishing) return best;
    size_t longest = 0;
    for (size_t i = 0; i < n; i++) longest = strlen(list[i].text) > longest ? strlen(list[i].text) : longest;
    size_t tail = size > from + longest ? size - longest : from;
    for (; tail < size; tail++) {
        bool may = false;
        for (size_t i = 0; i < n && !may; i++) may = cera_tool_starts(p, tail, list[i].text) < 0;
        if (may) break;
    }
    *place = tail;
    p->searched = tail;
    return NULL;
}

static void begin_call(cera_tool_parser *p, size_t marker_size) {
    p->call_at = p->at;
    p->at += marker_size;
    p->searched = p->at;
    p->first_call = p->n_calls;
    p->call_syntax = p->format.syntax;
    p->part = PART_BEGIN;
    p->in_list = p->pairs = false;
    p->state = IN_CALL;
}

static cera_tool_step text_step(cera_tool_parser *p) {
    marker list[MAX_MARKERS];
    size_t place, n = markers(p, list);
    const marker *m = next_marker(p, list, n, &place);
    take_text(p, place, add_content);
    if (!m) return TOOL_MORE;
    size_t size = strlen(m->text);
    switch (m->kind) {
    case MARK_CALL: begin_call(p, size); break;
    case MARK_CHANNEL: p->state = IN_HEADER; break;
    case MARK_THINK:
        pass_marker(p, size);
        p->state = IN_REASONING;
        break;
    case MARK_THINK_END: /* the end of a thought that nobody began is dropped at the start only; later it is text */
        if (p->content.size == 0 && p->n_calls == 0)
            pass_marker(p, size);
        else
            p->searched = p->at + 1;
        break;
    default: pass_marker(p, size); break;
    }
    return TOOL_GO_ON;
}

static cera_tool_step reasoning_step(cera_tool_parser *p) {
    marker list[1] = {{p->format.think_close, MARK_THINK_END}};
    size_t place;
    const marker *m = next_marker(p, list, 1, &place);
    take_text(p, place, add_reasoning);
    if (!m) return TOOL_MORE;
    pass_marker(p, strlen(m->text));
    p->state = IN_TEXT;
    return TOOL_GO_ON;
}

/* ---- the start of the output ------------------------------------------------------------------------------------ */

/* RECIPIENT: "name\n" comes first. BARE_JSON: a call is the whole output. */
static cera_tool_step start_step(cera_tool_parser *p) {
    size_t at = cera_tool_skip_space(p->text.data, p->text.size, p->at);
    if (at == p->text.size && !p->finishing) return TOOL_MORE;
    if (p->format.syntax == CERA_TOOLS_RECIPIENT) {
        begin_call(p, 0);
        return TOOL_GO_ON;
    }
    p->state = IN_TEXT;
    if (p->has_tools && at < p->text.size && p->text.data[at] == '{') {
        p->at = at;
        begin_call(p, 0);
    }
    return TOOL_GO_ON;
}

/* ---- harmony ---------------------------------------------------------------------------------------------------- */

static bool header_has(const char *header, size_t n, const char *word) { return memmem(header, n, word, strlen(word)) != NULL; }

/* What stands before <|message|>: [<|start|>assistant][ to=functions.name]<|channel|>name[ to=...][ <|constrain|>json] */
static cera_tool_step header_step(cera_tool_parser *p) {
    size_t end = cera_tool_find(p, p->searched > p->at ? p->searched : p->at, "<|message|>");
    if (end == SIZE_MAX) {
        if (!p->finishing) {
            p->searched = p->text.size > p->at + 10 ? p->text.size - 10 : p->at;
            return TOOL_MORE;
        }
        take_text(p, p->text.size, add_content); /* no message came: plain text */
        return TOOL_MORE;
    }
    const char *header = p->text.data + p->at, *to = memmem(header, end - p->at, "to=", 3);
    size_t n = end - p->at;
    p->call_at = p->at;
    pass_marker(p, n + strlen("<|message|>"));
    p->state = IN_CHANNEL;
    p->channel_is_reasoning = header_has(header, n, "<|channel|>analysis") && !to;
    size_t from = to ? (size_t)(to - header) + 3 : n, stop = from;
    while (stop < n && !is_space(header[stop]) && header[stop] != '<') stop++;
    if (stop - from > 10 && !memcmp(header + from, "functions.", 10)) from += 10;
    if (stop == from || !p->has_tools) return TOOL_GO_ON;
    p->first_call = p->n_calls;
    cera_tool_found *call = cera_tool_new_call(p);
    if (!call) return TOOL_MORE;
    cera_buffer_add(&call->name, p->text.data + p->call_at + from, stop - from);
    cera_tool_announce(p);
    p->scan = (cera_tool_scan){0};
    p->value_at = p->at;
    p->skip_space = false;
    p->part = PART_ARGUMENTS;
    p->call_syntax = CERA_TOOLS_HARMONY;
    p->state = IN_CALL;
    return TOOL_GO_ON;
}

static cera_tool_step channel_step(cera_tool_parser *p) {
    static const marker ends[] = {{"<|end|>", MARK_DROP},
                                  {"<|return|>", MARK_DROP},
                                  {"<|call|>", MARK_DROP},
                                  {"<|start|>", MARK_CHANNEL},
                                  {"<|channel|>", MARK_CHANNEL}};
    size_t place;
    const marker *m = next_marker(p, ends, sizeof ends / sizeof ends[0], &place);
    take_text(p, place, p->channel_is_reasoning ? add_reasoning : add_content);
    if (!m) return TOOL_MORE;
    if (m->kind == MARK_DROP) pass_marker(p, strlen(m->text));
    p->space_from = p->space_to = 0;
    p->state = IN_TEXT;
    return TOOL_GO_ON;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

cera_tool_found *cera_tool_new_call(cera_tool_parser *p) {
    if (p->n_calls == CERA_TOOL_MAX_CALLS) {
        p->failed = true;
        p->status = CERA_ERR_LIMIT;
        return NULL;
    }
    if (p->n_calls == p->cap_calls) {
        size_t capacity = p->cap_calls ? 2 * p->cap_calls : 4;
        cera_tool_found *calls = cera_alloc_grow(p->calls, p->cap_calls, capacity, sizeof *calls);
        if (!calls) {
            p->failed = true;
            p->status = CERA_ERR_MEMORY;
            return NULL;
        }
        p->calls = calls;
        p->cap_calls = capacity;
    }
    p->has_name = p->nested = false;
    p->first_parameter = true;
    cera_tool_found *c = &p->calls[p->n_calls++];
    *c = (cera_tool_found){0};
    return c;
}

void cera_tool_announce(cera_tool_parser *p) {
    cera_tool_found *c = &p->calls[p->n_calls - 1];
    p->has_name = c->announced = true;
    if (p->events.on_call) p->events.on_call(p->events.ctx, p->n_calls - 1, c->name.data ? c->name.data : "", c->name.size);
    if (c->arguments.size && p->events.on_arguments)
        p->events.on_arguments(p->events.ctx, p->n_calls - 1, c->arguments.data, c->arguments.size);
}

void cera_tool_arguments(cera_tool_parser *p, const char *text, size_t n) {
    cera_tool_found *c = &p->calls[p->n_calls - 1];
    if (n == 0) return;
    cera_buffer_add(&c->arguments, text, n);
    if (c->announced && p->events.on_arguments) p->events.on_arguments(p->events.ctx, p->n_calls - 1, text, n);
}

bool cera_tool_end_call(cera_tool_parser *p) {
    cera_tool_found *c = &p->calls[p->n_calls - 1];
    if (!p->has_name || c->name.size == 0) return false;
    if (c->arguments.size == 0) cera_tool_arguments(p, "{}", 2);
    if (!c->arguments.data || !cera_tool_is_json(c->arguments.data, c->arguments.size, true)) return false;
    if (p->events.on_call_end) p->events.on_call_end(p->events.ctx, p->n_calls - 1);
    p->call_at = p->at; /* what breaks after this leaves this call whole */
    p->first_call = p->n_calls;
    return true;
}

static void drop_call(cera_tool_parser *p) {
    cera_tool_found *c = &p->calls[--p->n_calls];
    if (c->announced && p->events.on_call_malformed) p->events.on_call_malformed(p->events.ctx, p->n_calls);
    cera_buffer_deinit(&c->name);
    cera_buffer_deinit(&c->arguments);
}

/* Back to where the broken call began, its marker included: that is text. */
static void call_is_text(cera_tool_parser *p) {
    while (p->n_calls > p->first_call) drop_call(p);
    /* A bare JSON object that is no call is an answer like any other, not a broken call. */
    bool answer = p->call_syntax == CERA_TOOLS_BARE_JSON && !p->has_name;
    p->malformed = p->malformed || !answer;
    p->at = p->call_at;
    p->searched = p->at + 1; /* this marker is not looked at again */
    p->state = IN_TEXT;
}

static cera_tool_step call_step(cera_tool_parser *p) {
    cera_tool_step step = cera_tool_call_step(p);
    if (step == TOOL_BAD || (step == TOOL_MORE && p->finishing && !p->failed)) {
        call_is_text(p);
        return TOOL_GO_ON;
    }
    if (step == TOOL_GO_ON && p->state == IN_TEXT) {
        p->space_from = p->space_to = 0;
        p->skip_space = true;
        p->searched = p->at;
    }
    return step;
}

/* ---- the parser as a whole -------------------------------------------------------------------------------------- */

static cera_status run(cera_tool_parser *p, cera_error *e) {
    for (cera_tool_step step = TOOL_GO_ON; step == TOOL_GO_ON && !p->failed;) {
        switch (p->state) {
        case AT_START: step = start_step(p); break;
        case IN_TEXT: step = text_step(p); break;
        case IN_REASONING: step = reasoning_step(p); break;
        case IN_HEADER: step = header_step(p); break;
        case IN_CHANNEL: step = channel_step(p); break;
        default: step = call_step(p); break;
        }
    }
    bool memory = p->text.failed || p->content.failed || p->reasoning.failed || (p->failed && p->status == CERA_ERR_MEMORY);
    if (memory) return cera_fail(e, CERA_ERR_MEMORY, "tool calls: out of memory");
    return p->failed ? cera_fail(e, p->status, "tool calls: more than %d calls", CERA_TOOL_MAX_CALLS) : CERA_OK;
}

cera_status cera_tool_parser_feed(cera_tool_parser *p, const char *text, size_t n, cera_error *e) {
    if (p->finishing) return cera_fail(e, CERA_ERR_ARGUMENT, "tool calls: the output has been finished");
    if (n > CERA_TOOL_MAX_OUTPUT - p->text.size)
        return cera_fail(e, CERA_ERR_LIMIT, "tool calls: an output of more than %d bytes", CERA_TOOL_MAX_OUTPUT);
    if (n == 0) return CERA_OK;
    cera_buffer_add(&p->text, text, n);
    return run(p, e);
}

cera_status cera_tool_parser_finish(cera_tool_parser *p, cera_error *e) {
    if (p->finishing) return CERA_OK;
    p->finishing = true;
    if (!p->text.data) cera_buffer_add(&p->text, "", 0);
    cera_status status = p->text.size ? run(p, e) : CERA_OK;
    /* white space at the very end belongs to the text */
    if (status == CERA_OK && p->space_to > p->space_from)
        (p->state == IN_REASONING ? add_reasoning : add_content)(p, p->text.data + p->space_from, p->space_to - p->space_from);
    return status;
}

/* True when the prompt ends inside a thought. */
static bool prompt_thinks(const cera_tool_format *f, const char *prompt, size_t n) {
    if (!f->think_open || !prompt) return false;
    size_t open = strlen(f->think_open);
    while (n && is_space(prompt[n - 1])) n--;
    return n >= open && !memcmp(prompt + n - open, f->think_open, open);
}

static bool ends_with(const char *text, size_t n, const char *word) {
    size_t size = strlen(word);
    return text && n >= size && !memcmp(text + n - size, word, size);
}

cera_status cera_tool_parser_create(const cera_tool_format *format, const cera_json *tools, const char *prompt,
                                    size_t prompt_size, const cera_tool_events *events, cera_tool_parser **out, cera_error *e) {
    cera_tool_parser *p = cera_alloc(1, sizeof *p);
    if (!p) return cera_fail(e, CERA_ERR_MEMORY, "tool calls: out of memory");
    p->format = *format;
    p->tools = tools;
    p->has_tools = tools && tools->kind == CERA_JSON_ARRAY && tools->n > 0;
    if (events) p->events = *events;
    p->state = IN_TEXT;
    if (format->syntax == CERA_TOOLS_BARE_JSON ||
        (format->syntax == CERA_TOOLS_RECIPIENT && ends_with(prompt, prompt_size, ">>>")))
        p->state = AT_START;
    if (format->syntax == CERA_TOOLS_HARMONY && ends_with(prompt, prompt_size, "<|start|>assistant")) p->state = IN_HEADER;
    if (prompt_thinks(format, prompt, prompt_size)) {
        p->state = IN_REASONING;
        p->skip_space = true;
    }
    *out = p;
    return CERA_OK;
}

void cera_tool_parser_destroy(cera_tool_parser *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n_calls; i++) {
        cera_buffer_deinit(&p->calls[i].name);
        cera_buffer_deinit(&p->calls[i].arguments);
    }
    cera_free(p->calls);
    cera_buffer_deinit(&p->text);
    cera_buffer_deinit(&p->content);
    cera_buffer_deinit(&p->reasoning);
    cera_free(p);
}

static cera_text_view view(const cera_buffer *b) { return (cera_text_view){b->data ? b->data : "", b->size}; }

cera_text_view cera_tool_parser_content(const cera_tool_parser *p) { return view(&p->content); }
cera_text_view cera_tool_parser_reasoning(const cera_tool_parser *p) { return view(&p->reasoning); }
size_t cera_tool_parser_n_calls(const cera_tool_parser *p) { return p->n_calls; }
bool cera_tool_parser_complete(const cera_tool_parser *p) { return !p->malformed; }

cera_tool_call cera_tool_parser_call(const cera_tool_parser *p, size_t index) {
    cera_text_view name = view(&p->calls[index].name), arguments = view(&p->calls[index].arguments);
    return (cera_tool_call){name.text, name.size, arguments.text, arguments.size};
}
