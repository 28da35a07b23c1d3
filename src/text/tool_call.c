/* tool_call.c: the inside of a tool call, syntax by syntax. Each function takes one step: it looks at what has come in, moves
 * p->at over what it has understood, and says whether to go on, to wait for more, or that this is no call (TOOL_BAD; the caller
 * turns it into text). Text, thoughts and events are tool_parse.c. */
#include <string.h>
#include "text/tool_int.h"

enum { MAX_NAME = 512 };

static size_t here(cera_tool_parser *p) { return cera_tool_skip_space(p->text.data, p->text.size, p->at); }

/* Skips white space; false when nothing has come after it yet. */
static bool next_char(cera_tool_parser *p, char *c) {
    p->at = here(p);
    if (p->at == p->text.size) return false;
    *c = p->text.data[p->at];
    return true;
}

static cera_tool_step leave(cera_tool_parser *p) {
    p->state = IN_TEXT;
    return TOOL_GO_ON;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Names the newest call with bytes [from, to) of the text, trimmed. False: that is no name. */
static bool set_name(cera_tool_parser *p, size_t from, size_t to) {
    const char *s = p->text.data;
    while (from < to && (is_space(s[from]) || s[from] == '"')) from++;
    while (to > from && (is_space(s[to - 1]) || s[to - 1] == '"')) to--;
    if (from == to || to - from > MAX_NAME) return false;
    for (size_t i = from; i < to; i++)
        if ((unsigned char)s[i] < 0x20 || strchr("<>{}()\"", s[i])) return false;
    cera_buffer_add(&p->calls[p->n_calls - 1].name, s + from, to - from);
    return true;
}

/* ---- the end of a call ------------------------------------------------------------------------------------------ */

/* After a whole call: its end marker, another one inside the same markers, or none. */
static cera_tool_step end_step(cera_tool_parser *p, const char *again, cera_tool_part again_part) {
    const char *end = p->format.end;
    if (!end && !again) return leave(p);
    size_t at = here(p);
    if (at == p->text.size) return p->finishing ? leave(p) : TOOL_MORE;
    int is_end = end ? cera_tool_starts(p, at, end) : 0, is_again = again ? cera_tool_starts(p, at, again) : 0;
    if (is_end == 1) {
        p->at = at + strlen(end);
        return leave(p);
    }
    if (is_again == 1) {
        p->at = at;
        p->part = again_part;
        return TOOL_GO_ON;
    }
    return is_end < 0 || is_again < 0 ? TOOL_MORE : leave(p);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static bool key_is(const cera_tool_parser *p, const char *name) {
    size_t n = strlen(name);
    return p->key_end - p->key_at == n && !memcmp(p->text.data + p->key_at, name, n);
}

static bool key_among(const cera_tool_parser *p, const char *const *names) {
    for (; *names; names++)
        if (key_is(p, *names)) return true;
    return false;
}

static bool is_name_key(const cera_tool_parser *p) {
    static const char *const names[] = {"name", "tool_name", "function_name", NULL};
    return key_among(p, names);
}

static bool is_arguments_key(const cera_tool_parser *p) {
    static const char *const names[] = {"arguments", "parameters", "args", "input", NULL};
    return key_among(p, names);
}

/* Announces the call once its name is known; a bare object is a call only when it names a tool. */
static bool name_known(cera_tool_parser *p) {
    const cera_buffer *name = &p->calls[p->n_calls - 1].name;
    if (name->size == 0 || p->calls[p->n_calls - 1].announced) return false; /* no name, or a second one */
    if (p->call_syntax == CERA_TOOLS_BARE_JSON && !cera_tool_is_known(p->tools, name->data, name->size)) return false;
    cera_tool_announce(p);
    return true;
}

/* "key" : and the first byte of its value; all of it must be there. */
static cera_tool_step json_key(cera_tool_parser *p) {
    cera_tool_scan scan = {0};
    size_t at = p->at, n = p->text.size;
    cera_tool_scan_json(&scan, p->text.data, n, &at);
    if (!scan.done) return TOOL_MORE;
    p->key_at = p->at + 1;
    p->key_end = at - 1;
    at = cera_tool_skip_space(p->text.data, n, at);
    if (at == n) return TOOL_MORE;
    if (p->text.data[at] != ':') return TOOL_BAD;
    at = cera_tool_skip_space(p->text.data, n, at + 1);
    if (at == n) return TOOL_MORE;
    char c = p->text.data[at];
    bool is_arguments = is_arguments_key(p) || p->format.name_is_key;
    if (p->format.name_is_key && (!set_name(p, p->key_at, p->key_end) || !name_known(p))) return TOOL_BAD;
    p->scan = (cera_tool_scan){0};
    p->value_at = p->searched = p->at = at;
    if (key_is(p, "function") && c == '{' && !p->nested) { /* OpenAI's own form: the call is one level down */
        p->nested = true;
        p->at++;
        return TOOL_GO_ON;
    }
    p->part = is_arguments && c == '{' ? PART_ARGUMENTS : PART_VALUE;
    return TOOL_GO_ON;
}

/* A JSON string's text, unescaped, into b. */
static bool unescape(const char *text, size_t n, cera_buffer *b) {
    cera_arena *arena = NULL;
    const cera_json *v = NULL;
    if (cera_arena_create(0, &arena, NULL) != CERA_OK) return false;
    bool ok = cera_json_parse(text, n, arena, &v, NULL) == CERA_OK && v->kind == CERA_JSON_STRING;
    if (ok) cera_buffer_add(b, v->text.text, v->text.size);
    cera_arena_destroy(arena);
    return ok;
}

/* A whole value of another key than the arguments'. */
static cera_tool_step json_value(cera_tool_parser *p) {
    cera_tool_scan_json(&p->scan, p->text.data, p->text.size, &p->searched);
    if (!p->scan.done) return TOOL_MORE;
    const char *value = p->text.data + p->value_at;
    size_t n = p->searched - p->value_at;
    p->at = p->searched;
    p->part = PART_KEY;
    bool is_text = *value == '"', names = is_name_key(p) || (key_is(p, "function") && is_text);
    if (names && !p->has_name) {
        cera_buffer name = {0};
        bool ok = is_text && unescape(value, n, &name) && name.size > 0 && name.size <= MAX_NAME;
        if (ok) cera_buffer_add(&p->calls[p->n_calls - 1].name, name.data, name.size);
        cera_buffer_deinit(&name);
        return ok && name_known(p) ? TOOL_GO_ON : TOOL_BAD;
    }
    if (!is_arguments_key(p) && !p->format.name_is_key) return TOOL_GO_ON;
    if (n == 4 && !memcmp(value, "null", 4)) return cera_tool_arguments(p, "{}", 2), TOOL_GO_ON;
    cera_buffer inner = {0};
    bool ok = is_text && unescape(value, n, &inner); /* arguments as a text that holds JSON */
    if (ok) cera_tool_arguments(p, inner.data, inner.size);
    cera_buffer_deinit(&inner);
    return ok ? TOOL_GO_ON : TOOL_BAD;
}

static cera_tool_step stream_arguments(cera_tool_parser *p, cera_tool_part then) {
    size_t from = p->at;
    cera_tool_scan_json(&p->scan, p->text.data, p->text.size, &p->at);
    cera_tool_arguments(p, p->text.data + from, p->at - from);
    if (!p->scan.done) return TOOL_MORE;
    p->part = then;
    return TOOL_GO_ON;
}

static cera_tool_step json_item(cera_tool_parser *p) {
    char c;
    if (!next_char(p, &c)) return TOOL_MORE;
    if (c == '{') {
        p->at++;
        p->part = PART_KEY;
        return cera_tool_new_call(p) ? TOOL_GO_ON : TOOL_MORE;
    }
    if (p->in_list && (c == ',' || c == ']')) {
        p->at++;
        if (c == ']') p->part = PART_END;
        if (c == ']') p->call_at = p->at;
        return TOOL_GO_ON;
    }
    return TOOL_BAD;
}

static cera_tool_step json_step(cera_tool_parser *p) {
    char c;
    switch (p->part) {
    case PART_BEGIN:
        if (!next_char(p, &c)) return TOOL_MORE;
        if (c != '[' && c != '{') return TOOL_BAD;
        p->in_list = c == '[';
        p->at += p->in_list;
        p->part = PART_ITEM;
        return TOOL_GO_ON;
    case PART_ITEM: return json_item(p);
    case PART_KEY:
        if (!next_char(p, &c)) return TOOL_MORE;
        if (c == '"') return json_key(p);
        if (c != ',' && c != '}') return TOOL_BAD;
        p->at++;
        if (c == ',') return TOOL_GO_ON;
        if (p->nested) return p->nested = false, TOOL_GO_ON;
        p->part = p->in_list ? PART_ITEM : PART_END;
        return cera_tool_end_call(p) ? TOOL_GO_ON : TOOL_BAD;
    case PART_VALUE: return json_value(p);
    case PART_ARGUMENTS: return stream_arguments(p, PART_KEY);
    default: return end_step(p, p->format.end ? "{" : NULL, PART_ITEM);
    }
}

/* ---- a bare object, or what follows <|python_tag|> ---------------------------------------------------------------- */

static cera_tool_step python_call(cera_tool_parser *p, size_t name_at, size_t bracket_at);

/* <|python_tag|> with code: name.call(key=value), or code for the interpreter. The whole output is waited for. */
static cera_tool_step tagged_code(cera_tool_parser *p) {
    static const char call_word[] = ".call(";
    if (!p->finishing) return TOOL_MORE;
    size_t at = here(p), call = cera_tool_find(p, at, call_word);
    if (call != SIZE_MAX && cera_tool_is_known(p->tools, p->text.data + at, call - at)) {
        size_t bracket = call + sizeof call_word - 2;
        p->scan = (cera_tool_scan){0};
        p->searched = bracket;
        cera_tool_scan_python(&p->scan, p->text.data, p->text.size, &p->searched);
        if (!p->scan.done || !cera_tool_new_call(p) || !set_name(p, at, call)) return TOOL_BAD;
        cera_tool_announce(p);
        if (python_call(p, at, bracket) == TOOL_BAD) return TOOL_BAD;
        return leave(p);
    }
    if (at == p->text.size || !cera_tool_new_call(p)) return TOOL_BAD;
    cera_buffer arguments = {0};
    cera_buffer_add_text(&p->calls[p->n_calls - 1].name, "python");
    cera_buffer_add_text(&arguments, "{\"code\": ");
    cera_json_write_string(&arguments, p->text.data + at, p->text.size - at, false);
    cera_buffer_add_text(&arguments, "}");
    cera_tool_announce(p);
    cera_tool_arguments(p, arguments.data, arguments.size);
    cera_buffer_deinit(&arguments);
    p->at = p->text.size;
    return cera_tool_end_call(p) ? leave(p) : TOOL_BAD;
}

static cera_tool_step bare_step(cera_tool_parser *p) {
    char c;
    if (p->part == PART_BEGIN) {
        bool tagged = p->at > p->call_at;
        if (!next_char(p, &c)) return TOOL_MORE;
        if (c != '{') return tagged ? tagged_code(p) : TOOL_BAD;
    }
    if (p->part != PART_END) return json_step(p);
    size_t at = here(p); /* several calls stand one after the other, with a semicolon or without */
    if (at == p->text.size) return p->finishing ? leave(p) : TOOL_MORE;
    c = p->text.data[at];
    if (c == ';') p->at = at + 1;
    if (c == '{') p->part = PART_ITEM;
    return c == ';' || c == '{' ? TOOL_GO_ON : leave(p);
}

/* ---- a name, then JSON ------------------------------------------------------------------------------------------ */

static bool begins(const char *text, size_t n, const char *word) {
    return n >= strlen(word) && !memcmp(text, word, strlen(word));
}

/* What templates write around a name: "functions.name:0", "function<sep>name", "name[CALL_ID]id". */
static bool set_decorated_name(cera_tool_parser *p, size_t from, size_t to) {
    static const char *const before[] = {"functions.", "function<｜tool▁sep｜>"};
    static const char after[] = "[CALL_ID]";
    from = cera_tool_skip_space(p->text.data, to, from);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        if (begins(p->text.data + from, to - from, before[i])) from += strlen(before[i]);
    const char *id = memmem(p->text.data + from, to - from, after, sizeof after - 1);
    if (id) to = (size_t)(id - p->text.data);
    if (!strcmp(p->format.name, "kimi")) {
        size_t colon = to;
        while (colon > from && p->text.data[colon - 1] >= '0' && p->text.data[colon - 1] <= '9') colon--;
        if (colon > from && colon < to && p->text.data[colon - 1] == ':') to = colon - 1;
    }
    return set_name(p, from, to);
}

static cera_tool_step named_name(cera_tool_parser *p) {
    size_t end = cera_tool_find(p, p->at, p->format.name_end), brace = SIZE_MAX, size = strlen(p->format.name_end);
    if (!p->format.end) { /* mistral: a list as its older models write it, or arguments right after the name */
        char c;
        if (!next_char(p, &c)) return TOOL_MORE;
        if (c == '[' && cera_tool_starts(p, p->at, p->format.name_end) == 0) {
            p->call_syntax = CERA_TOOLS_JSON;
            p->part = PART_BEGIN;
            return TOOL_GO_ON;
        }
        brace = cera_tool_find(p, p->at, "{");
    }
    if (brace < end) {
        end = brace;
        size = 0;
    }
    if (end == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    if (!cera_tool_new_call(p)) return TOOL_MORE;
    if (!set_decorated_name(p, p->at, end)) return TOOL_BAD;
    cera_tool_announce(p);
    p->at = end + size;
    p->part = PART_VALUE;
    return TOOL_GO_ON;
}

static cera_tool_step named_step(cera_tool_parser *p) {
    static const char fence[] = "```";
    char c;
    int is_fence;
    switch (p->part) {
    case PART_BEGIN:
    case PART_NAME: return named_name(p);
    case PART_VALUE:
        if (!next_char(p, &c)) return TOOL_MORE;
        p->scan = (cera_tool_scan){0};
        p->part = PART_ARGUMENTS;
        return c == '{' ? TOOL_GO_ON : TOOL_BAD;
    case PART_ARGUMENTS: {
        cera_tool_step step = stream_arguments(p, PART_END);
        return step == TOOL_GO_ON && !cera_tool_end_call(p) ? TOOL_BAD : step;
    }
    default:
        is_fence = begins(p->format.name_end, strlen(p->format.name_end), "\n```") ? cera_tool_starts(p, here(p), fence) : 0;
        if (is_fence < 0 || (is_fence == 0 && here(p) == p->text.size && !p->finishing && p->format.end)) return TOOL_MORE;
        if (is_fence > 0) {
            p->at = here(p) + sizeof fence - 1;
            return TOOL_GO_ON;
        }
        return end_step(p, NULL, PART_END);
    }
}

/* ---- parameters between tags ------------------------------------------------------------------------------------ */

/* The newest call's arguments get "key": before a value, and what separates it. */
static void add_key(cera_tool_parser *p, cera_buffer *b, const char *key, size_t n) {
    cera_buffer_add_text(b, p->first_parameter ? "" : ", ");
    cera_json_write_string(b, key, n, false);
    cera_buffer_add_text(b, ": ");
    p->first_parameter = false;
}

static const cera_json *property(const cera_tool_parser *p, const char *key, size_t n) {
    const cera_buffer *name = &p->calls[p->n_calls - 1].name;
    return cera_tool_property(cera_tool_schema(p->tools, name->data, name->size), key, n);
}

static void add_parameter(cera_tool_parser *p, const char *key, size_t key_size, const char *value, size_t n, bool is_text) {
    cera_buffer b = {0};
    add_key(p, &b, key, key_size);
    if (is_text)
        cera_json_write_string(&b, value, n, false);
    else
        cera_tool_add_value(&b, value, n, property(p, key, key_size));
    cera_tool_arguments(p, b.data, b.size);
    cera_buffer_deinit(&b);
}

static bool open_call(cera_tool_parser *p, size_t name_from, size_t name_to) {
    if (!cera_tool_new_call(p) || !set_name(p, name_from, name_to)) return false;
    cera_tool_announce(p);
    cera_tool_arguments(p, "{", 1);
    p->part = PART_PARAMETER;
    return true;
}

static bool close_call(cera_tool_parser *p) {
    cera_tool_arguments(p, "}", 1);
    p->part = PART_END;
    return cera_tool_end_call(p);
}

/* Where a value that ends with `close` ends: the first one that is followed by something which may stand there, for a value may
 * hold the closing tag's text itself. SIZE_MAX: not known yet. */
static size_t value_end(cera_tool_parser *p, size_t from, const char *close, const char *const followers[3]) {
    size_t start = p->searched > from ? p->searched : from;
    for (;;) {
        size_t end = cera_tool_find(p, start, close);
        if (end == SIZE_MAX) {
            size_t keep = strlen(close);
            p->searched = p->text.size > start + keep ? p->text.size - keep : start;
            return SIZE_MAX;
        }
        p->searched = start = end;
        size_t after = cera_tool_skip_space(p->text.data, p->text.size, end + strlen(close));
        bool may = after == p->text.size && !p->finishing;
        for (int i = 0; i < 3; i++) {
            int is = followers[i] ? cera_tool_starts(p, after, followers[i]) : 0;
            if (is == 1) return end;
            may = may || is < 0;
        }
        if (may) return SIZE_MAX;
        if (p->finishing && after == p->text.size) return end;
        start = end + 1;
    }
}

/* Which of the words begins here: its index, -1 when none does, -2 when more must come. */
static int word_here(cera_tool_parser *p, const char *const words[3]) {
    bool may = false;
    p->at = here(p);
    if (p->at == p->text.size) return -2;
    for (int i = 0; i < 3; i++) {
        int is = words[i] ? cera_tool_starts(p, p->at, words[i]) : 0;
        if (is == 1) return i;
        may = may || is < 0;
    }
    return may ? -2 : -1;
}

static cera_tool_step function_parameter(cera_tool_parser *p) {
    const char *const words[3] = {"<parameter=", "</function>", p->format.end};
    int word = word_here(p, words);
    if (word < 0) return word == -2 ? TOOL_MORE : TOOL_BAD;
    if (word > 0) {
        p->at += word == 1 ? strlen(words[1]) : 0;
        return close_call(p) ? TOOL_GO_ON : TOOL_BAD;
    }
    size_t key = p->at + strlen(words[0]), key_end = cera_tool_find(p, key, ">");
    if (key_end == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    size_t from = key_end + 1, to = value_end(p, from, "</parameter>", words);
    if (to == SIZE_MAX) return TOOL_MORE;
    p->at = to + strlen("</parameter>");
    const char *s = p->text.data;
    if (!p->format.inline_values && to - from >= 2 && s[from] == '\n' && s[to - 1] == '\n') {
        from++;
        to--;
    } else if (!p->format.inline_values && to - from == 1 && s[from] == '\n') {
        from++;
    }
    add_parameter(p, s + key, key_end - key, s + from, to - from, false);
    return TOOL_GO_ON;
}

static cera_tool_step pair_parameter(cera_tool_parser *p) {
    const char *const words[3] = {"<arg_key>", p->format.end, NULL};
    static const char key_close[] = "</arg_key>", value_open[] = "<arg_value>", value_close[] = "</arg_value>";
    int word = word_here(p, words);
    if (word < 0) return word == -2 ? TOOL_MORE : TOOL_BAD;
    if (word == 1) return close_call(p) ? TOOL_GO_ON : TOOL_BAD;
    size_t key = p->at + strlen(words[0]), key_end = cera_tool_find(p, key, key_close);
    if (key_end == SIZE_MAX) return TOOL_MORE;
    size_t open = cera_tool_skip_space(p->text.data, p->text.size, key_end + sizeof key_close - 1);
    int is_open = open == p->text.size ? -1 : cera_tool_starts(p, open, value_open);
    if (is_open != 1) return is_open < 0 ? TOOL_MORE : TOOL_BAD;
    size_t from = open + sizeof value_open - 1, to = value_end(p, from, value_close, words);
    if (to == SIZE_MAX) return TOOL_MORE;
    p->at = to + sizeof value_close - 1;
    add_parameter(p, p->text.data + key, key_end - key, p->text.data + from, to - from, false);
    return TOOL_GO_ON;
}

static cera_tool_step pair_name(cera_tool_parser *p) {
    size_t key = cera_tool_find(p, p->at, "<arg_key>"), end = cera_tool_find(p, p->at, p->format.end);
    size_t to = key < end ? key : end;
    if (to == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    if (!open_call(p, p->at, to)) return TOOL_BAD;
    p->at = p->searched = to;
    return TOOL_GO_ON;
}

static cera_tool_step function_name(cera_tool_parser *p) {
    static const char open[] = "<function=";
    size_t from = p->at + sizeof open - 1, to = cera_tool_find(p, from, ">");
    if (to == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    if (!open_call(p, from, to)) return TOOL_BAD;
    p->at = p->searched = to + 1;
    return TOOL_GO_ON;
}

static cera_tool_step tagged_begin(cera_tool_parser *p) {
    char c;
    if (!next_char(p, &c)) return TOOL_MORE;
    if (c == '{' || c == '[') {
        p->call_syntax = CERA_TOOLS_JSON;
        return TOOL_GO_ON;
    }
    int is_function = cera_tool_starts(p, p->at, "<function=");
    if (is_function < 0) return TOOL_MORE;
    p->pairs = !is_function && p->format.pairs;
    p->part = PART_NAME;
    return is_function || (p->pairs && c != '<') ? TOOL_GO_ON : TOOL_BAD;
}

static cera_tool_step tagged_step(cera_tool_parser *p) {
    switch (p->part) {
    case PART_BEGIN: return tagged_begin(p);
    case PART_NAME: return p->pairs ? pair_name(p) : function_name(p);
    case PART_PARAMETER: return p->pairs ? pair_parameter(p) : function_parameter(p);
    default: return end_step(p, p->pairs ? NULL : "<function=", PART_NAME);
    }
}

/* ---- invoke ----------------------------------------------------------------------------------------------------- */

typedef struct invoke_words {
    char parameter[48], parameter_close[48], invoke_close[48];
} invoke_words;

static void make_words(const cera_tool_parser *p, invoke_words *w) {
    cera_buffer b = {0};
    const char *prefix = p->format.prefix;
    char *const out[3] = {w->parameter, w->parameter_close, w->invoke_close};
    const char *const parts[3][2] = {{"<", "parameter name=\""}, {"</", "parameter>"}, {"</", "invoke>"}};
    for (int i = 0; i < 3; i++) {
        b.size = 0;
        cera_buffer_add_text(&b, parts[i][0]);
        cera_buffer_add_text(&b, prefix);
        cera_buffer_add_text(&b, parts[i][1]);
        size_t n = b.failed || b.size >= sizeof w->parameter ? 0 : b.size;
        if (n) memcpy(out[i], b.data, n);
        out[i][n] = 0;
    }
    cera_buffer_deinit(&b);
}

static cera_tool_step invoke_parameter(cera_tool_parser *p, const invoke_words *w) {
    const char *const words[3] = {w->parameter, w->invoke_close, NULL};
    int word = word_here(p, words);
    if (word < 0) return word == -2 ? TOOL_MORE : TOOL_BAD;
    if (word == 1) {
        p->at += strlen(words[1]);
        return close_call(p) ? TOOL_GO_ON : TOOL_BAD;
    }
    size_t key = p->at + strlen(words[0]), key_end = cera_tool_find(p, key, "\"");
    size_t tag_end = key_end == SIZE_MAX ? SIZE_MAX : cera_tool_find(p, key_end, ">");
    if (tag_end == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    static const char text_mark[] = "string=\"true\"";
    bool is_text = memmem(p->text.data + key_end, tag_end - key_end, text_mark, sizeof text_mark - 1) != NULL;
    size_t from = tag_end + 1, to = value_end(p, from, w->parameter_close, words);
    if (to == SIZE_MAX) return TOOL_MORE;
    p->at = to + strlen(w->parameter_close);
    add_parameter(p, p->text.data + key, key_end - key, p->text.data + from, to - from, is_text);
    return TOOL_GO_ON;
}

static cera_tool_step invoke_step(cera_tool_parser *p) {
    invoke_words w;
    make_words(p, &w);
    if (p->part == PART_PARAMETER) return invoke_parameter(p, &w);
    if (p->part == PART_END) return leave(p);
    size_t to = cera_tool_find(p, p->at, "\""), tag_end = to == SIZE_MAX ? SIZE_MAX : cera_tool_find(p, to, ">");
    if (tag_end == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    if (!open_call(p, p->at, to)) return TOOL_BAD;
    p->at = p->searched = tag_end + 1;
    return TOOL_GO_ON;
}

/* ---- Python's calls --------------------------------------------------------------------------------------------- */

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
           (unsigned char)c >= 0x80;
}

/* key=value or value, into b. False: neither. */
static bool python_argument(cera_tool_parser *p, cera_buffer *b, size_t *at, size_t end, uint32_t index) {
    const char *s = p->text.data;
    const cera_buffer *name = &p->calls[p->n_calls - 1].name;
    size_t key_end = *at;
    while (key_end < end && is_name_char(s[key_end])) key_end++;
    size_t equals = cera_tool_skip_space(s, end, key_end);
    if (key_end > *at && equals < end && s[equals] == '=') {
        add_key(p, b, s + *at, key_end - *at);
        *at = cera_tool_skip_space(s, end, equals + 1);
    } else { /* by place, as the schema orders its properties */
        const cera_text_view *property_name =
            cera_tool_property_name(cera_tool_schema(p->tools, name->data, name->size), index);
        if (!property_name) return false;
        add_key(p, b, property_name->text, property_name->size);
    }
    return cera_tool_add_python(b, s, end, at, 0);
}

/* The arguments between the bracket and p->searched, for the newest call, which has its name. */
static cera_tool_step python_call(cera_tool_parser *p, size_t name_at, size_t bracket_at) {
    size_t at = bracket_at + 1, end = p->searched - 1;
    cera_buffer b = {0};
    bool ok = true;
    (void)name_at;
    cera_buffer_add_text(&b, "{");
    for (uint32_t i = 0; ok; i++) {
        at = cera_tool_skip_space(p->text.data, end, at);
        if (at >= end) break;
        ok = python_argument(p, &b, &at, end, i);
        at = cera_tool_skip_space(p->text.data, end, at);
        if (ok && at < end) ok = p->text.data[at++] == ',';
    }
    cera_buffer_add_text(&b, "}");
    if (ok) cera_tool_arguments(p, b.data, b.size);
    cera_buffer_deinit(&b);
    p->at = p->searched;
    return ok && cera_tool_end_call(p) ? TOOL_GO_ON : TOOL_BAD;
}

static cera_tool_step python_item(cera_tool_parser *p) {
    char c;
    if (!next_char(p, &c)) return TOOL_MORE;
    if (p->in_list && (c == ',' || c == ']')) {
        p->at++;
        if (c == ']') p->part = PART_END;
        if (c == ']') p->call_at = p->at;
        return TOOL_GO_ON;
    }
    size_t end = p->at;
    while (end < p->text.size && is_name_char(p->text.data[end])) end++;
    if (end == p->text.size) return end - p->at > MAX_NAME ? TOOL_BAD : TOOL_MORE;
    if (end == p->at || p->text.data[end] != '(') return TOOL_BAD;
    p->key_at = p->at;
    p->key_end = p->searched = end;
    p->scan = (cera_tool_scan){0};
    p->part = PART_ARGUMENTS;
    return TOOL_GO_ON;
}

static cera_tool_step pythonic_step(cera_tool_parser *p) {
    char c;
    switch (p->part) {
    case PART_BEGIN:
        if (!next_char(p, &c)) return TOOL_MORE;
        if (c == '{') { /* some write JSON between the same markers */
            p->call_syntax = CERA_TOOLS_JSON;
            return TOOL_GO_ON;
        }
        p->in_list = c == '[';
        p->at += p->in_list;
        p->part = PART_ITEM;
        return TOOL_GO_ON;
    case PART_ITEM: return python_item(p);
    case PART_ARGUMENTS:
        cera_tool_scan_python(&p->scan, p->text.data, p->text.size, &p->searched);
        if (!p->scan.done) return TOOL_MORE;
        if (!cera_tool_new_call(p)) return TOOL_MORE;
        if (!set_name(p, p->key_at, p->key_end)) return TOOL_BAD;
        cera_tool_announce(p);
        p->part = p->in_list ? PART_ITEM : PART_END;
        return python_call(p, p->key_at, p->key_end);
    default: return end_step(p, NULL, PART_END);
    }
}

/* ---- braces ----------------------------------------------------------------------------------------------------- */

static size_t count_marks(const cera_tool_parser *p, size_t from, size_t to, const char *mark) {
    size_t n = 0;
    for (size_t at = from; (at = cera_tool_find(p, at, mark)) < to; at += strlen(mark)) n++;
    return n;
}

/* call:name{...} up to the end marker that stands outside of strings. */
static cera_tool_step braces_step(cera_tool_parser *p) {
    static const char word[] = "call:";
    if (p->part == PART_END) return leave(p);
    size_t from = p->at, end = cera_tool_find(p, p->searched > from ? p->searched : from, p->format.end),
           keep = strlen(p->format.end);
    while (end != SIZE_MAX && count_marks(p, from, end, p->format.quote) % 2) end = cera_tool_find(p, end + 1, p->format.end);
    if (end == SIZE_MAX) {
        if (cera_tool_find(p, p->searched, p->format.end) == SIZE_MAX && p->text.size > keep + from)
            p->searched = p->text.size - keep;
        return TOOL_MORE;
    }
    size_t at = here(p), brace = cera_tool_find(p, at, "{");
    if (!begins(p->text.data + at, end - at, word) || brace >= end) return TOOL_BAD;
    if (!cera_tool_new_call(p)) return TOOL_MORE;
    if (!set_name(p, at + sizeof word - 1, brace)) return TOOL_BAD;
    const cera_buffer *name = &p->calls[p->n_calls - 1].name;
    cera_buffer b = {0};
    const cera_json *schema = cera_tool_schema(p->tools, name->data, name->size);
    bool ok = cera_tool_add_braces(&b, p->text.data, end, &brace, p->format.quote, schema, 0) &&
              cera_tool_skip_space(p->text.data, end, brace) == end;
    if (ok) cera_tool_announce(p);
    if (ok) cera_tool_arguments(p, b.data, b.size);
    cera_buffer_deinit(&b);
    p->at = end + keep;
    p->part = PART_END;
    return ok && cera_tool_end_call(p) ? TOOL_GO_ON : TOOL_BAD;
}

/* ---- recipients and channels ------------------------------------------------------------------------------------ */

static cera_tool_step recipient_step(cera_tool_parser *p) {
    if (p->part == PART_BEGIN) {
        size_t end = cera_tool_find(p, p->at, "\n");
        if (end == SIZE_MAX) return cera_tool_left(p) > MAX_NAME ? TOOL_BAD : TOOL_MORE;
        if (end - p->at == 3 && begins(p->text.data + p->at, 3, "all")) {
            p->at = end + 1;
            return leave(p);
        }
        if (!p->has_tools) return TOOL_BAD;
        if (!cera_tool_new_call(p)) return TOOL_MORE;
        if (!set_name(p, p->at, end)) return TOOL_BAD;
        cera_tool_announce(p);
        p->at = end + 1;
        p->part = PART_VALUE;
        return TOOL_GO_ON;
    }
    return named_step(p);
}

static cera_tool_step harmony_step(cera_tool_parser *p) {
    static const char *const ends[3] = {"<|call|>", "<|end|>", "<|return|>"};
    if (p->part != PART_END) {
        char c;
        if (!p->scan.started && !next_char(p, &c)) return TOOL_MORE;
        if (!p->scan.started && c != '{') return TOOL_BAD;
        cera_tool_step step = stream_arguments(p, PART_END);
        return step == TOOL_GO_ON && !cera_tool_end_call(p) ? TOOL_BAD : step;
    }
    int word = word_here(p, ends);
    if (word == -2 && !p->finishing) return TOOL_MORE;
    if (word >= 0) p->at += strlen(ends[word]);
    return leave(p);
}

cera_tool_step cera_tool_call_step(cera_tool_parser *p) {
    switch (p->call_syntax) {
    case CERA_TOOLS_JSON: return json_step(p);
    case CERA_TOOLS_BARE_JSON: return bare_step(p);
    case CERA_TOOLS_TAGGED: return tagged_step(p);
    case CERA_TOOLS_NAMED: return named_step(p);
    case CERA_TOOLS_INVOKE: return invoke_step(p);
    case CERA_TOOLS_PYTHONIC: return pythonic_step(p);
    case CERA_TOOLS_BRACES: return braces_step(p);
    case CERA_TOOLS_HARMONY: return harmony_step(p);
    case CERA_TOOLS_RECIPIENT: return recipient_step(p);
    default: return TOOL_BAD;
    }
}
