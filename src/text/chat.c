/* chat.c: the context that a chat template gets, what a template can do, and fitting a request to it. Owns which strings of a
 * context may form control tokens; the templates by name are chat_names.c. */
#include <string.h>
#include "base/arena.h"
#include "text/chat.h"

struct cera_chat_template {
    cera_jinja *jinja;
    cera_tool_format format;
    bool takes_parts, takes_tools, has_thinking;
};

static bool among(cera_text_view text, const char *const *names) {
    for (; *names; names++)
        if (strlen(*names) == text.size && !memcmp(*names, text.text, text.size)) return true;
    return false;
}

/* Token texts come from the model's own file; a role is safe when it is one of the known words, for templates build control
 * tokens around it ('<|' + role + '|>'). All else is the user's. */
static bool trusted(void *ctx, cera_text_view top, cera_text_view key, cera_text_view text) {
    static const char *const tokens[] = {"bos_token", "eos_token", "pad_token",  "unk_token",
                                         "sep_token", "cls_token", "mask_token", NULL};
    static const char *const role[] = {"role", NULL}, *const messages[] = {"messages", NULL};
    static const char *const roles[] = {"system",        "user",        "assistant", "tool",    "developer",
                                        "function",      "observation", "documents", "ipython", "model",
                                        "tool_response", "context",     NULL};
    (void)ctx;
    if (key.size == 0) return among(top, tokens);
    return among(top, messages) && among(key, role) && among(text, roles);
}

cera_status cera_chat_render_context(const cera_chat_template *t, const cera_json *context, const struct tm *now,
                                     cera_jinja_text *out, cera_error *e) {
    const cera_jinja_options options = {.now = now, .trust = trusted};
    return cera_jinja_render(t->jinja, context, &options, out, e);
}

/* ---- building JSON ---------------------------------------------------------------------------------------------- */

static cera_text_view view(const char *text) { return (cera_text_view){text, strlen(text)}; }

static cera_json text_value(const char *text) { return (cera_json){.kind = CERA_JSON_STRING, .text = view(text)}; }

static cera_json bool_value(bool yes) { return (cera_json){.kind = yes ? CERA_JSON_TRUE : CERA_JSON_FALSE}; }

enum { MAX_MEMBERS = 16 };

typedef struct members {
    cera_text_view keys[MAX_MEMBERS];
    cera_json values[MAX_MEMBERS];
    uint32_t n;
} members;

static void add(members *m, const char *key, cera_json value) {
    m->keys[m->n] = view(key);
    m->values[m->n++] = value;
}

/* The request's members, then its variables, which win (a later member of the same name does). */
static cera_status build_context(const cera_chat_request *q, const cera_json *messages, cera_arena *arena, cera_json *out,
                                 cera_error *e) {
    members m = {.n = 0};
    add(&m, "messages", *messages);
    add(&m, "add_generation_prompt", bool_value(q->add_generation_prompt));
    add(&m, "bos_token", text_value(q->bos_token ? q->bos_token : ""));
    add(&m, "eos_token", text_value(q->eos_token ? q->eos_token : ""));
    add(&m, "tools",
        q->tools && q->tools->n ? *q->tools : (cera_json){.kind = CERA_JSON_NULL}); /* as transformers: null, not absent */
    add(&m, "documents", q->documents && q->documents->n ? *q->documents : (cera_json){.kind = CERA_JSON_NULL});
    if (q->enable_thinking >= 0) {
        add(&m, "enable_thinking", bool_value(q->enable_thinking > 0));
        add(&m, "thinking", bool_value(q->enable_thinking > 0)); /* the name that Granite and DeepSeek read */
    }
    if (q->reasoning_effort) add(&m, "reasoning_effort", text_value(q->reasoning_effort));
    if (q->date_string) add(&m, "date_string", text_value(q->date_string));
    uint32_t more = q->variables && q->variables->kind == CERA_JSON_OBJECT ? q->variables->n : 0;
    cera_text_view *keys = cera_arena_alloc(arena, (size_t)m.n + more, sizeof *keys);
    cera_json *values = cera_arena_alloc(arena, (size_t)m.n + more, sizeof *values);
    if (!keys || !values) return cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
    memcpy(keys, m.keys, m.n * sizeof *keys);
    memcpy(values, m.values, m.n * sizeof *values);
    if (more) {
        memcpy(keys + m.n, q->variables->keys, more * sizeof *keys);
        memcpy(values + m.n, q->variables->items, more * sizeof *values);
    }
    *out = (cera_json){.kind = CERA_JSON_OBJECT, .n = m.n + more, .items = values, .keys = keys};
    return CERA_OK;
}

/* ---- fitting messages to a template ------------------------------------------------------------------------------ */

typedef struct fit {
    cera_arena *arena;
    bool join_parts, open_arguments;
} fit;

/* A copy of an object whose member `name` has another value; NULL when out of memory. */
static const cera_json *with_member(cera_arena *arena, const cera_json *object, const char *name, const cera_json *value) {
    cera_json *items = cera_arena_alloc(arena, object->n, sizeof *items), *copy = cera_arena_alloc(arena, 1, sizeof *copy);
    if (!items || !copy) return NULL;
    memcpy(items, object->items, object->n * sizeof *items);
    for (uint32_t i = 0; i < object->n; i++)
        if (object->keys[i].size == strlen(name) && !memcmp(object->keys[i].text, name, object->keys[i].size))
            items[i] = *value;
    *copy = *object;
    copy->items = items;
    return copy;
}

/* Text parts joined to one text; anything else stays as it is. */
static const cera_json *join_parts(fit *f, const cera_json *message) {
    const cera_json *content = cera_json_get(message, "content");
    if (!content || content->kind != CERA_JSON_ARRAY) return message;
    size_t size = 0, at = 0;
    for (uint32_t i = 0; i < content->n; i++) {
        const cera_json *text = cera_json_get(&content->items[i], "text");
        if (!text || text->kind != CERA_JSON_STRING) return message;
        size += text->text.size;
    }
    char *joined = cera_arena_alloc(f->arena, size + 1, 1);
    if (!joined) return NULL;
    for (uint32_t i = 0; i < content->n; i++) {
        cera_text_view text = cera_json_get(&content->items[i], "text")->text;
        memcpy(joined + at, text.text, text.size);
        at += text.size;
    }
    cera_json value = {.kind = CERA_JSON_STRING, .text = {joined, size}};
    return with_member(f->arena, message, "content", &value);
}

/* A tool call whose arguments are a text that holds a JSON object gets the object. */
static const cera_json *open_arguments(fit *f, const cera_json *call) {
    const cera_json *function = cera_json_get(call, "function"), *holder = function ? function : call;
    const cera_json *arguments = cera_json_get(holder, "arguments"), *object;
    if (!arguments || arguments->kind != CERA_JSON_STRING) return call;
    if (cera_json_parse(arguments->text.text, arguments->text.size, f->arena, &object, NULL) != CERA_OK ||
        object->kind != CERA_JSON_OBJECT)
        return call;
    const cera_json *opened = with_member(f->arena, holder, "arguments", object);
    return !opened || !function ? opened : with_member(f->arena, call, "function", opened);
}

static const cera_json *fit_calls(fit *f, const cera_json *message) {
    const cera_json *calls = cera_json_get(message, "tool_calls");
    if (!calls || calls->kind != CERA_JSON_ARRAY || calls->n == 0) return message;
    cera_json *items = cera_arena_alloc(f->arena, calls->n, sizeof *items), list = *calls;
    if (!items) return NULL;
    for (uint32_t i = 0; i < calls->n; i++) {
        const cera_json *call = open_arguments(f, &calls->items[i]);
        if (!call) return NULL;
        items[i] = *call;
    }
    list.items = items;
    return with_member(f->arena, message, "tool_calls", &list);
}

static cera_status fit_messages(fit *f, const cera_json *messages, cera_json *out, cera_error *e) {
    *out = *messages;
    cera_json *items = cera_arena_alloc(f->arena, messages->n, sizeof *items);
    if (!items) return cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
    for (uint32_t i = 0; i < messages->n; i++) {
        const cera_json *message = &messages->items[i];
        if (f->join_parts) message = join_parts(f, message);
        if (message && f->open_arguments) message = fit_calls(f, message);
        if (!message) return cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
        items[i] = *message;
    }
    out->items = items;
    return CERA_OK;
}

static bool any_calls(const cera_json *messages) {
    for (uint32_t i = 0; i < messages->n; i++)
        if (cera_json_get(&messages->items[i], "tool_calls")) return true;
    return false;
}

static cera_status render_fitted(const cera_chat_template *t, const cera_chat_request *q, bool with_objects,
                                 cera_jinja_text *out, cera_error *e) {
    fit f = {.join_parts = !t->takes_parts, .open_arguments = with_objects};
    cera_json messages, context;
    CERA_TRY(cera_arena_create(0, &f.arena, e));
    cera_status status = fit_messages(&f, q->messages, &messages, e);
    if (status == CERA_OK) status = build_context(q, &messages, f.arena, &context, e);
    if (status == CERA_OK) status = cera_chat_render_context(t, &context, q->now, out, e);
    cera_arena_destroy(f.arena);
    return status;
}

cera_status cera_chat_render(const cera_chat_template *t, const cera_chat_request *q, cera_jinja_text *out, cera_error *e) {
    *out = (cera_jinja_text){0};
    if (!q->messages || q->messages->kind != CERA_JSON_ARRAY)
        return cera_fail(e, CERA_ERR_ARGUMENT, "chat template: messages must be a JSON array");
    for (uint32_t i = 0; i < q->messages->n; i++)
        if (q->messages->items[i].kind != CERA_JSON_OBJECT)
            return cera_fail(e, CERA_ERR_ARGUMENT, "chat template: messages[%u] is no JSON object", i);
    if (q->variables && q->variables->kind != CERA_JSON_OBJECT)
        return cera_fail(e, CERA_ERR_ARGUMENT, "chat template: variables must be a JSON object");
    if (!any_calls(q->messages)) return render_fitted(t, q, false, out, e);
    cera_error first = {0};
    if (render_fitted(t, q, true, out, &first) == CERA_OK) return CERA_OK;
    cera_status status = render_fitted(t, q, false, out, NULL); /* the template may want the text that the caller gave */
    return status == CERA_OK ? CERA_OK : cera_fail(e, first.code, "%s", first.message);
}

/* ---- what a template can do -------------------------------------------------------------------------------------- */

/* Renders one user message whose content is a part; a template that knows parts writes the text and nothing else of it. */
static bool probe_parts(const cera_chat_template *t) {
    static const char chat[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"cera-probe-5417\"}]}],"
        "\"add_generation_prompt\":true,\"bos_token\":\"\",\"eos_token\":\"\"}";
    cera_arena *arena = NULL;
    const cera_json *context;
    cera_jinja_text text = {0};
    if (cera_arena_create(0, &arena, NULL) != CERA_OK) return false;
    bool ok = cera_json_parse(chat, sizeof chat - 1, arena, &context, NULL) == CERA_OK &&
              cera_chat_render_context(t, context, NULL, &text, NULL) == CERA_OK;
    const char *needle = ok ? strstr(text.text, "cera-probe-5417") : NULL;
    ok = needle && !strstr(text.text, "'type'") && !strstr(text.text, "\"type\"");
    cera_jinja_text_deinit(&text);
    cera_arena_destroy(arena);
    return ok;
}

cera_status cera_chat_template_create(const char *text, size_t n, cera_chat_template **out, cera_error *e) {
    *out = NULL;
    cera_chat_template *t = cera_alloc(1, sizeof *t);
    if (!t) return cera_fail(e, CERA_ERR_MEMORY, "chat template: out of memory");
    cera_status status = cera_jinja_compile(text, n, &t->jinja, e);
    if (status != CERA_OK) {
        cera_free(t);
        return status;
    }
    cera_tool_format_find(text, n, &t->format);
    t->takes_tools = cera_jinja_uses_name(t->jinja, "tools");
    t->has_thinking = cera_jinja_uses_name(t->jinja, "enable_thinking") || cera_jinja_uses_name(t->jinja, "thinking");
    t->takes_parts = probe_parts(t);
    *out = t;
    return CERA_OK;
}

void cera_chat_template_destroy(cera_chat_template *t) {
    if (!t) return;
    cera_jinja_destroy(t->jinja);
    cera_free(t);
}

const cera_tool_format *cera_chat_template_format(const cera_chat_template *t) { return &t->format; }
bool cera_chat_template_takes_parts(const cera_chat_template *t) { return t->takes_parts; }
bool cera_chat_template_takes_tools(const cera_chat_template *t) { return t->takes_tools; }
bool cera_chat_template_has_thinking(const cera_chat_template *t) { return t->has_thinking; }
