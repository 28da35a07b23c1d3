/* tool_int.h: shared by the files of the tool-call parser. */
#ifndef CERA_TEXT_TOOL_INT_H
#define CERA_TEXT_TOOL_INT_H

#include "text/tool_calls.h"

/* How a step of the parser ended. */
typedef enum cera_tool_step { TOOL_GO_ON, TOOL_MORE, TOOL_BAD } cera_tool_step;

/* Finds where a JSON value ends, byte by byte; does not check it further. */
typedef struct cera_tool_scan {
    uint32_t depth;
    bool started, in_string, escaped, scalar, done;
    char quote;
} cera_tool_scan;

/* Goes over text[*at .. n); stops behind the value's last byte (done) or at n. A number or word ends at what cannot be part of
 * it. */
void cera_tool_scan_json(cera_tool_scan *s, const char *text, size_t n, size_t *at);

/* The same for what stands between brackets in Python: text[*at] is the opening one at the start. */
void cera_tool_scan_python(cera_tool_scan *s, const char *text, size_t n, size_t *at);

/* ---- values (tool_value.c): appended to a buffer as JSON ---- */

/* Schema of a parameter, or NULL. */
const cera_json *cera_tool_schema(const cera_json *tools, const char *name, size_t n);    /* of all parameters of a tool */
const cera_json *cera_tool_property(const cera_json *schema, const char *name, size_t n); /* of one of them */
const cera_text_view *cera_tool_property_name(const cera_json *schema, uint32_t index);   /* in the schema's order, or NULL */
bool cera_tool_is_known(const cera_json *tools, const char *name, size_t n);
/* Plain text by schema: text where the schema says so, else JSON or Python's notation, else text. */
void cera_tool_add_value(cera_buffer *b, const char *text, size_t n, const cera_json *schema);
/* A Python literal at text[*at]; false when it is none. */
bool cera_tool_add_python(cera_buffer *b, const char *text, size_t n, size_t *at, int depth);
/* A value of the BRACES syntax; quote marks its strings. schema may be NULL. */
bool cera_tool_add_braces(cera_buffer *b, const char *text, size_t n, size_t *at, const char *quote, const cera_json *schema,
                          int depth);
bool cera_tool_is_json(const char *text, size_t n, bool object_only);
size_t cera_tool_skip_space(const char *text, size_t n, size_t at);

/* ---- the parser's state (tool_parse.c, tool_call.c) ---- */

typedef enum cera_tool_state { IN_TEXT, IN_REASONING, IN_CALL, IN_HEADER, IN_CHANNEL, AT_START } cera_tool_state;

/* Inside a call: what comes next. */
typedef enum cera_tool_part {
    PART_BEGIN,
    PART_ITEM,      /* JSON: an object; PYTHONIC: name( */
    PART_KEY,       /* JSON: of a call's object */
    PART_VALUE,     /* JSON: of another key than the arguments'; a whole value is waited for */
    PART_ARGUMENTS, /* JSON arguments are streamed; PYTHONIC: the end of the brackets is waited for */
    PART_NAME,
    PART_PARAMETER, /* XML-like */
    PART_END
} cera_tool_part;

typedef struct cera_tool_found {
    cera_buffer name, arguments;
    bool announced;
} cera_tool_found;

struct cera_tool_parser {
    cera_tool_format format;
    const cera_json *tools;
    bool has_tools;
    cera_tool_events events;
    cera_buffer text; /* all that came in */
    size_t at;        /* what is dealt with */
    size_t searched;  /* no end marker begins before this */
    bool finishing, failed;
    cera_tool_state state;
    /* text */
    cera_buffer content, reasoning;
    size_t space_from, space_to; /* white space that waits for what follows */
    bool skip_space;             /* after a marker */
    bool malformed;
    /* a call */
    size_t call_at;    /* its marker begins here */
    size_t first_call; /* calls of this marker begin with this index */
    cera_tool_part part;
    bool in_list, nested, has_name, first_parameter;
    cera_tool_scan scan;
    size_t value_at, key_at, key_end;
    cera_tool_syntax call_syntax;
    bool pairs; /* TAGGED: <arg_key> pairs */
    bool channel_is_reasoning;
    cera_tool_found *calls;
    size_t n_calls, cap_calls;
    cera_status status;
};

cera_tool_step cera_tool_call_step(cera_tool_parser *p); /* in a call */
cera_tool_found *cera_tool_new_call(cera_tool_parser *p);
void cera_tool_announce(cera_tool_parser *p);
void cera_tool_arguments(cera_tool_parser *p, const char *text, size_t n);
bool cera_tool_end_call(cera_tool_parser *p); /* false: arguments are no JSON object */
/* The text that is not dealt with yet. */
static inline const char *cera_tool_rest(const cera_tool_parser *p) { return p->text.data + p->at; }
static inline size_t cera_tool_left(const cera_tool_parser *p) { return p->text.size - p->at; }
/* 1 the text at `at` begins with word, 0 it does not, -1 it may when more comes. */
int cera_tool_starts(const cera_tool_parser *p, size_t at, const char *word);
/* First place of word at or after from, or SIZE_MAX. */
size_t cera_tool_find(const cera_tool_parser *p, size_t from, const char *word);

#endif
