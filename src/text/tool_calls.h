/* tool_calls.h: a model's output to content, reasoning and tool calls, as it streams. The syntax of calls and of thoughts is
 * found from the chat template's text (never from the architecture). Feeding byte by byte gives the same result as feeding all
 * at once.
 *
 * Values are typed by the tool's schema where the syntax itself does not say (XML-like parameters). A call that breaks its
 * syntax becomes content, as the model wrote it, and the result says so: no text is lost. */
#ifndef CERA_TEXT_TOOL_CALLS_H
#define CERA_TEXT_TOOL_CALLS_H

#include "base/json.h"
#include "base/status.h"

typedef enum cera_tool_syntax {
    CERA_TOOLS_NONE,
    CERA_TOOLS_JSON,      /* {"name": ..., "arguments": ...}, or a list of them, between markers */
    CERA_TOOLS_TAGGED,    /* <tool_call>: JSON, <function=...> parameters or <arg_key> pairs, told by what follows */
    CERA_TOOLS_NAMED,     /* marker, name, marker, JSON arguments */
    CERA_TOOLS_INVOKE,    /* <invoke name="..."><parameter name="...">value</parameter></invoke> */
    CERA_TOOLS_PYTHONIC,  /* [name(key=value, ...), ...] */
    CERA_TOOLS_BRACES,    /* call:name{key:value}, strings between marks of their own */
    CERA_TOOLS_HARMONY,   /* <|channel|>commentary to=functions.name<|message|>arguments */
    CERA_TOOLS_RECIPIENT, /* >>>name, a line feed, JSON arguments; "all" is content */
    CERA_TOOLS_BARE_JSON  /* the whole output is one {"name": ..., "parameters": ...} */
} cera_tool_syntax;

enum { CERA_TOOL_DROPS = 6 };

typedef struct cera_tool_format {
    cera_tool_syntax syntax;
    const char *name;                     /* "hermes", "qwen3-coder", "mistral", ...: for messages */
    const char *begin, *end;              /* of a call, or of a list of calls; end NULL: none */
    const char *name_end;                 /* NAMED: what follows the name */
    const char *quote;                    /* BRACES: mark around strings */
    const char *prefix;                   /* INVOKE: what stands before the words invoke and parameter */
    const char *think_open, *think_close; /* NULL: no reasoning is marked */
    const char *drop[CERA_TOOL_DROPS];    /* markers around calls or the answer that say nothing themselves */
    bool name_is_key;                     /* JSON: {"name": arguments} */
    bool pairs;                           /* TAGGED: name, then <arg_key> and <arg_value> */
    bool inline_values;                   /* TAGGED: parameters' values have no line of their own */
} cera_tool_format;

/* From the template's text. Every pointer is to constant text. */
void cera_tool_format_find(const char *template_text, size_t n, cera_tool_format *out);

/* What happens while text comes in; any callback may be NULL. Pieces of content, reasoning and arguments are as long as is
 * certain. A call that was announced and turns out malformed is taken back: on_call_malformed, then its text comes as content.
 */
typedef struct cera_tool_events {
    void *ctx;
    void (*on_content)(void *ctx, const char *text, size_t n);
    void (*on_reasoning)(void *ctx, const char *text, size_t n);
    void (*on_call)(void *ctx, size_t index, const char *name, size_t n);
    void (*on_arguments)(void *ctx, size_t index, const char *text, size_t n);
    void (*on_call_end)(void *ctx, size_t index);
    void (*on_call_malformed)(void *ctx, size_t index);
} cera_tool_events;

typedef struct cera_tool_call {
    const char *name; /* NUL-terminated */
    size_t name_size;
    const char *arguments; /* a JSON object, NUL-terminated */
    size_t arguments_size;
} cera_tool_call;

enum { CERA_TOOL_MAX_OUTPUT = 64 << 20, CERA_TOOL_MAX_CALLS = 4096, CERA_TOOL_MAX_VALUE_DEPTH = 64 };

typedef struct cera_tool_parser cera_tool_parser;

/* tools: the OpenAI list of functions, borrowed; NULL or empty: calls are not looked for. prompt: the rendered prompt, to tell
 * whether it leaves a thought open; may be NULL. events may be NULL. */
cera_status cera_tool_parser_create(const cera_tool_format *format, const cera_json *tools, const char *prompt,
                                    size_t prompt_size, const cera_tool_events *events, cera_tool_parser **out, cera_error *e);
void cera_tool_parser_destroy(cera_tool_parser *p);
cera_status cera_tool_parser_feed(cera_tool_parser *p, const char *text, size_t n, cera_error *e);
cera_status cera_tool_parser_finish(cera_tool_parser *p, cera_error *e);

/* After finish. Texts belong to the parser. */
cera_text_view cera_tool_parser_content(const cera_tool_parser *p);
cera_text_view cera_tool_parser_reasoning(const cera_tool_parser *p);
size_t cera_tool_parser_n_calls(const cera_tool_parser *p);
cera_tool_call cera_tool_parser_call(const cera_tool_parser *p, size_t index);
/* False when a call was malformed and is in the content as text. */
bool cera_tool_parser_complete(const cera_tool_parser *p);

#endif
