/* template.c: the functions of cera.h's section on chat templates: JSON texts in and out around text/chat.h and
 * text/tool_calls.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/options.h"
#include "engine/tokenizer.h"
#include "text/chat.h"

struct cera_template {
    cera_chat_template *chat;
};

struct cera_prompt {
    cera_jinja_text text;
};

struct cera_answer {
    cera_arena *arena; /* the tools */
    cera_tool_parser *parser;
};

static cera_status wrong(cera_error *e, const char *function) {
    return cera_fail(e, CERA_ERR_ARGUMENT, "%s: an argument is NULL", function);
}

/* ---- templates -------------------------------------------------------------------------------------------------- */

cera_status cera_template_open(const char *text, size_t size, cera_template **out, cera_error *e) {
    if (!text || !out) return wrong(e, "cera_template_open");
    cera_template *t = cera_alloc(1, sizeof *t);
    if (!t) return cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
    const cera_status status = cera_chat_template_create(text, size, &t->chat, e);
    if (status != CERA_OK) {
        cera_free(t);
        return status;
    }
    *out = t;
    return CERA_OK;
}

cera_status cera_template_open_named(const char *name, cera_template **out, cera_error *e) {
    if (!name || !out) return wrong(e, "cera_template_open_named");
    const char *text = cera_chat_builtin(name);
    if (text) return cera_template_open(text, strlen(text), out, e);
    cera_buffer names = {0};
    for (const char *const *n = cera_chat_builtin_names(); *n; n++)
        cera_buffer_printf(&names, "%s%s", names.size ? ", " : "", *n);
    const cera_status status =
        cera_fail(e, CERA_ERR_NOT_FOUND, "%s: no such chat template; there are %s", name, names.data ? names.data : "none");
    cera_buffer_deinit(&names);
    return status;
}

const char *const *cera_template_names(void) { return cera_chat_builtin_names(); }

void cera_template_close(cera_template *t) {
    if (!t) return;
    cera_chat_template_destroy(t->chat);
    cera_free(t);
}

cera_status cera_template_info_get(const cera_template *t, cera_template_info *info, cera_error *e) {
    if (!t || !info) return wrong(e, "cera_template_info_get");
    const cera_template_info own = {.size = sizeof own,
                                    .tool_format = cera_chat_template_format(t->chat)->name,
                                    .takes_tools = cera_chat_template_takes_tools(t->chat),
                                    .has_thinking = cera_chat_template_has_thinking(t->chat)};
    return cera_options_give("cera_template_info", info, &own, sizeof own, e);
}

/* ---- prompts ---------------------------------------------------------------------------------------------------- */

static bool days_of_month(int year, int month, int day) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

/* "2026-07-26T13:05:09" (a blank may stand for the T). */
static cera_status parse_now(const char *text, struct tm *out, cera_error *e) {
    int year, month, day, hour, minute, second, used = 0;
    const int n = sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second, &used);
    const bool ok = n == 6 && text[used] == 0 && year >= 1 && month >= 1 && month <= 12 && hour >= 0 && hour < 24 &&
                    minute >= 0 && minute < 60 && second >= 0 && second < 60 && days_of_month(year, month, day);
    if (!ok) return cera_fail(e, CERA_ERR_ARGUMENT, "%s is no time like 2026-07-26T13:05:09", text);
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int past = year - 1, yday = before[month - 1] + day - 1 + (leap && month > 2);
    *out = (struct tm){.tm_year = year - 1900,
                       .tm_mon = month - 1,
                       .tm_mday = day,
                       .tm_hour = hour,
                       .tm_min = minute,
                       .tm_sec = second,
                       .tm_yday = yday,
                       .tm_wday = (past * 365 + past / 4 - past / 100 + past / 400 + yday + 1) % 7};
    return CERA_OK;
}

static cera_status new_prompt(cera_prompt **out, cera_error *e) {
    *out = cera_alloc(1, sizeof **out);
    return *out ? CERA_OK : cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
}

/* Hands the prompt over, or releases it after a failure. */
static cera_status give_prompt(cera_prompt *p, cera_status status, cera_prompt **out) {
    if (status == CERA_OK)
        *out = p;
    else
        cera_prompt_close(p);
    return status;
}

static cera_status parse_json(const char *what, const char *text, size_t size, cera_arena *arena, const cera_json **out,
                              cera_error *e) {
    const cera_status status = cera_json_parse(text, size, arena, out, e);
    return status == CERA_OK ? CERA_OK : cera_fail_prefix(e, what);
}

cera_status cera_template_render(const cera_template *t, const char *context, size_t context_size, const char *now,
                                 cera_prompt **out, cera_error *e) {
    cera_arena *arena = NULL;
    cera_prompt *p = NULL;
    const cera_json *values;
    struct tm time;
    if (!t || !context || !out) return wrong(e, "cera_template_render");
    if (now) CERA_TRY(parse_now(now, &time, e));
    CERA_TRY(cera_arena_create(0, &arena, e));
    cera_status status = parse_json("context", context, context_size, arena, &values, e);
    if (status == CERA_OK) status = new_prompt(&p, e);
    if (status == CERA_OK) status = cera_chat_render_context(t->chat, values, now ? &time : NULL, &p->text, e);
    cera_arena_destroy(arena);
    return give_prompt(p, status, out);
}

static cera_status parse_optional(const char *what, const char *text, cera_json_kind kind, cera_arena *arena,
                                  const cera_json **out, cera_error *e) {
    *out = NULL;
    if (!text) return CERA_OK;
    CERA_TRY(parse_json(what, text, strlen(text), arena, out, e));
    if ((*out)->kind == CERA_JSON_NULL) *out = NULL;
    if (!*out || (*out)->kind == kind) return CERA_OK;
    return cera_fail(e, CERA_ERR_FORMAT, "%s: must be a JSON %s", what, kind == CERA_JSON_ARRAY ? "array" : "object");
}

static cera_status fill_request(const cera_chat *chat, cera_arena *arena, struct tm *time, cera_chat_request *q,
                                cera_error *e) {
    *q = (cera_chat_request){.add_generation_prompt = !chat->no_generation_prompt,
                             .enable_thinking = chat->thinking > 0   ? 1
                                                : chat->thinking < 0 ? 0
                                                                     : -1,
                             .bos_token = chat->bos_token,
                             .eos_token = chat->eos_token,
                             .reasoning_effort = chat->reasoning_effort,
                             .date_string = chat->date_string};
    if (chat->now) {
        CERA_TRY(parse_now(chat->now, time, e));
        q->now = time;
    }
    CERA_TRY(parse_optional("messages", chat->messages, CERA_JSON_ARRAY, arena, &q->messages, e));
    CERA_TRY(parse_optional("tools", chat->tools, CERA_JSON_ARRAY, arena, &q->tools, e));
    CERA_TRY(parse_optional("documents", chat->documents, CERA_JSON_ARRAY, arena, &q->documents, e));
    return parse_optional("variables", chat->variables, CERA_JSON_OBJECT, arena, &q->variables, e);
}

cera_status cera_template_chat(const cera_template *t, const cera_chat *chat, cera_prompt **out, cera_error *e) {
    cera_chat own;
    cera_chat_request request;
    cera_arena *arena = NULL;
    cera_prompt *p = NULL;
    struct tm time;
    if (!t || !chat || !out) return wrong(e, "cera_template_chat");
    CERA_TRY(cera_options_take("cera_chat", chat, &own, sizeof own, e));
    CERA_TRY(cera_arena_create(0, &arena, e));
    cera_status status = fill_request(&own, arena, &time, &request, e);
    if (status == CERA_OK) status = new_prompt(&p, e);
    if (status == CERA_OK) status = cera_chat_render(t->chat, &request, &p->text, e);
    cera_arena_destroy(arena);
    return give_prompt(p, status, out);
}

const char *cera_prompt_text(const cera_prompt *p, size_t *size) {
    if (size) *size = p ? p->text.size : 0;
    return p ? p->text.text : "";
}

bool cera_prompt_part(const cera_prompt *p, size_t index, size_t *start, size_t *end, bool *user) {
    if (!p || index >= p->text.n_segments) return false;
    const cera_jinja_segment *s = &p->text.segments[index];
    if (start) *start = s->start;
    if (end) *end = s->end;
    if (user) *user = s->user;
    return true;
}

cera_status cera_prompt_encode(const cera_prompt *p, const cera_tokenizer *tokenizer, int32_t **ids, size_t *n_ids,
                               cera_error *e) {
    if (!p || !tokenizer || !ids || !n_ids) return wrong(e, "cera_prompt_encode");
    return cera_chat_tokenize(cera_tokenizer_vocab(tokenizer), &p->text, ids, n_ids, e);
}

void cera_prompt_close(cera_prompt *p) {
    if (!p) return;
    cera_jinja_text_deinit(&p->text);
    cera_free(p);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* An array of functions, or an object that holds one as "tools". */
static cera_status parse_tools(const char *text, cera_arena *arena, const cera_json **out, cera_error *e) {
    *out = NULL;
    if (!text) return CERA_OK;
    CERA_TRY(parse_json("tools", text, strlen(text), arena, out, e));
    if ((*out)->kind == CERA_JSON_OBJECT) *out = cera_json_get(*out, "tools");
    if (*out && (*out)->kind == CERA_JSON_NULL) *out = NULL;
    return !*out || (*out)->kind == CERA_JSON_ARRAY ? CERA_OK : cera_fail(e, CERA_ERR_FORMAT, "tools: must be a JSON array");
}

static cera_status create_parser(cera_answer *a, const cera_template *t, const char *tools, const cera_prompt *prompt,
                                 const cera_answer_events *events, cera_error *e) {
    cera_answer_events own = {.size = sizeof own};
    const cera_json *list;
    if (events) CERA_TRY(cera_options_take("cera_answer_events", events, &own, sizeof own, e));
    const cera_tool_events inner = {own.ctx,          own.on_content,  own.on_reasoning,     own.on_call,
                                    own.on_arguments, own.on_call_end, own.on_call_malformed};
    CERA_TRY(cera_arena_create(0, &a->arena, e));
    CERA_TRY(parse_tools(tools, a->arena, &list, e));
    return cera_tool_parser_create(cera_chat_template_format(t->chat), list, prompt ? prompt->text.text : NULL,
                                   prompt ? prompt->text.size : 0, &inner, &a->parser, e);
}

cera_status cera_answer_create(const cera_template *t, const char *tools, const cera_prompt *prompt,
                               const cera_answer_events *events, cera_answer **out, cera_error *e) {
    if (!t || !out) return wrong(e, "cera_answer_create");
    cera_answer *a = cera_alloc(1, sizeof *a);
    if (!a) return cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
    const cera_status status = create_parser(a, t, tools, prompt, events, e);
    if (status == CERA_OK)
        *out = a;
    else
        cera_answer_destroy(a);
    return status;
}

cera_status cera_answer_feed(cera_answer *a, const char *text, size_t size, cera_error *e) {
    if (!a || (!text && size > 0)) return wrong(e, "cera_answer_feed");
    return cera_tool_parser_feed(a->parser, text, size, e);
}

cera_status cera_answer_finish(cera_answer *a, cera_error *e) {
    return a ? cera_tool_parser_finish(a->parser, e) : wrong(e, "cera_answer_finish");
}

static const char *give_text(cera_text_view text, size_t *size) {
    if (size) *size = text.size;
    return text.text;
}

const char *cera_answer_content(const cera_answer *a, size_t *size) {
    return give_text(cera_tool_parser_content(a->parser), size);
}

const char *cera_answer_reasoning(const cera_answer *a, size_t *size) {
    return give_text(cera_tool_parser_reasoning(a->parser), size);
}

size_t cera_answer_n_calls(const cera_answer *a) { return cera_tool_parser_n_calls(a->parser); }

const char *cera_answer_call_name(const cera_answer *a, size_t index, size_t *size) {
    if (index >= cera_answer_n_calls(a)) return give_text((cera_text_view){"", 0}, size);
    const cera_tool_call c = cera_tool_parser_call(a->parser, index);
    return give_text((cera_text_view){c.name, c.name_size}, size);
}

const char *cera_answer_call_arguments(const cera_answer *a, size_t index, size_t *size) {
    if (index >= cera_answer_n_calls(a)) return give_text((cera_text_view){"{}", 2}, size);
    const cera_tool_call c = cera_tool_parser_call(a->parser, index);
    return give_text((cera_text_view){c.arguments, c.arguments_size}, size);
}

bool cera_answer_complete(const cera_answer *a) { return cera_tool_parser_complete(a->parser); }

void cera_answer_destroy(cera_answer *a) {
    if (!a) return;
    cera_tool_parser_destroy(a->parser);
    cera_arena_destroy(a->arena);
    cera_free(a);
}
