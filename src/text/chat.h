/* chat.h: chat templates: a Jinja template with what Hugging Face passes to it, templates by name for models that have none,
 * and the rendered prompt as token ids. Tool calls in the answer are tool_calls.h. */
#ifndef CERA_TEXT_CHAT_H
#define CERA_TEXT_CHAT_H

#include "text/jinja.h"
#include "text/tool_calls.h"
#include "text/vocab.h"

typedef struct cera_chat_template cera_chat_template;

/* Compiles the text of a template and finds out what it can do (by rendering small chats with it). Immutable afterwards: any
 * number of threads may use one. */
cera_status cera_chat_template_create(const char *text, size_t n, cera_chat_template **out, cera_error *e);
void cera_chat_template_destroy(cera_chat_template *t); /* NULL is fine */

/* The text of a built-in template, or NULL; and the names, NULL after the last. */
const char *cera_chat_builtin(const char *name);
const char *const *cera_chat_builtin_names(void);

/* How the template writes calls and thoughts. Borrowed. */
const cera_tool_format *cera_chat_template_format(const cera_chat_template *t);
bool cera_chat_template_takes_parts(const cera_chat_template *t); /* content may be a list of typed parts */
bool cera_chat_template_takes_tools(const cera_chat_template *t);
bool cera_chat_template_has_thinking(const cera_chat_template *t); /* reads enable_thinking */

/* JSON values are borrowed and may be NULL where the template need not see them. */
typedef struct cera_chat_request {
    const cera_json *messages;  /* an array; content is a text, null, or a list of parts */
    const cera_json *tools;     /* an array of OpenAI functions */
    const cera_json *documents; /* an array */
    const cera_json *variables; /* an object: any others; they win over all of the above */
    bool add_generation_prompt;
    int enable_thinking;                                                /* 1, 0, or -1: not said */
    const char *bos_token, *eos_token, *reasoning_effort, *date_string; /* NULL: not said */
    const struct tm *now;
} cera_chat_request;

/* Renders. Arguments of earlier tool calls that are JSON in a text are given as objects, unless the template wants the text;
 * text parts are joined where the template knows only texts. */
cera_status cera_chat_render(const cera_chat_template *t, const cera_chat_request *request, cera_jinja_text *out,
                             cera_error *e);

/* Renders with exactly this context (an object), nothing added or changed. */
cera_status cera_chat_render_context(const cera_chat_template *t, const cera_json *context, const struct tm *now,
                                     cera_jinja_text *out, cera_error *e);

/* Ids of a rendered prompt. Control tokens are read in the template's own text only; everything else is tokenized as one text,
 * so that ids are those of the whole. BOS is added where the vocabulary says so and the prompt does not begin with it. *ids:
 * cera_free. */
cera_status cera_chat_tokenize(const cera_vocab *v, const cera_jinja_text *prompt, int32_t **ids, size_t *n_ids, cera_error *e);

#endif
