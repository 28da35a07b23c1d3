/* tool_format.c: which syntax of tool calls and thoughts a chat template speaks, told by the markers in its text. Owns the
 * table of known formats; to add one, add a row (and, for a new syntax, a parser in tool_call.c). */
#include <string.h>
#include "text/tool_calls.h"

typedef struct row {
    const char *needs[3]; /* all of them are in the template's text */
    const char *lacks;    /* and this is not */
    cera_tool_format format;
} row;

#define DEEPSEEK_DROPS \
    { "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>" }
#define DSML_DROPS \
    { "<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>" }

/* The first row that fits is taken: special ones first. */
static const row rows[] = {
    {{"<|channel|>", "<|message|>"}, NULL, {.syntax = CERA_TOOLS_HARMONY, .name = "harmony"}},
    {{"DSML"},
     NULL,
     {.syntax = CERA_TOOLS_INVOKE,
      .name = "deepseek-dsml",
      .begin = "<｜DSML｜invoke name=\"",
      .end = "</｜DSML｜invoke>",
      .prefix = "｜DSML｜",
      .drop = DSML_DROPS}},
    {{"<minimax:tool_call>"},
     NULL,
     {.syntax = CERA_TOOLS_INVOKE,
      .name = "minimax",
      .begin = "<invoke name=\"",
      .end = "</invoke>",
      .prefix = "",
      .drop = {"<minimax:tool_call>", "</minimax:tool_call>"}}},
    {{"<|tool_call>", "call:"},
     NULL,
     {.syntax = CERA_TOOLS_BRACES, .name = "gemma4", .begin = "<|tool_call>", .end = "<tool_call|>", .quote = "<|\"|>"}},
    {{"<start_function_call>"},
     NULL,
     {.syntax = CERA_TOOLS_BRACES,
      .name = "functiongemma",
      .begin = "<start_function_call>",
      .end = "<end_function_call>",
      .quote = "<escape>"}},
    {{"<|tool_call_start|>"},
     NULL,
     {.syntax = CERA_TOOLS_PYTHONIC, .name = "lfm2", .begin = "<|tool_call_start|>", .end = "<|tool_call_end|>"}},
    {{"<|tool_list_start|>"},
     NULL,
     {.syntax = CERA_TOOLS_PYTHONIC, .name = "lfm2", .begin = "<|tool_call_start|>", .end = "<|tool_call_end|>"}},
    {{"List of tools: ["},
     "<tool_call>",
     {.syntax = CERA_TOOLS_PYTHONIC, .name = "lfm2", .begin = "<|tool_call_start|>", .end = "<|tool_call_end|>"}},
    {{"<|tool_calls_section_begin|>"},
     NULL,
     {.syntax = CERA_TOOLS_NAMED,
      .name = "kimi",
      .begin = "<|tool_call_begin|>",
      .end = "<|tool_call_end|>",
      .name_end = "<|tool_call_argument_begin|>",
      .drop = {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}}},
    {{"<｜tool▁calls▁begin｜>", "```json"},
     NULL,
     {.syntax = CERA_TOOLS_NAMED,
      .name = "deepseek-r1",
      .begin = "<｜tool▁call▁begin｜>",
      .end = "<｜tool▁call▁end｜>",
      .name_end = "\n```json\n",
      .drop = DEEPSEEK_DROPS}},
    {{"<｜tool▁calls▁begin｜>"},
     NULL,
     {.syntax = CERA_TOOLS_NAMED,
      .name = "deepseek-v3.1",
      .begin = "<｜tool▁call▁begin｜>",
      .end = "<｜tool▁call▁end｜>",
      .name_end = "<｜tool▁sep｜>",
      .drop = DEEPSEEK_DROPS}},
    {{"<seed:tool_call>"},
     NULL,
     {.syntax = CERA_TOOLS_TAGGED,
      .name = "seed",
      .begin = "<seed:tool_call>",
      .end = "</seed:tool_call>",
      .inline_values = true}},
    {{"<tool_calls>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON,
      .name = "apriel",
      .begin = "<tool_calls>",
      .end = "</tool_calls>",
      .drop = {"[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", "<|end|>"}}},
    {{"<TOOLCALL>"}, NULL, {.syntax = CERA_TOOLS_JSON, .name = "nemotron", .begin = "<TOOLCALL>", .end = "</TOOLCALL>"}},
    {{"<tool_call>"}, NULL, {.syntax = CERA_TOOLS_TAGGED, .name = "tool_call", .begin = "<tool_call>", .end = "</tool_call>"}},
    {{"[TOOL_CALLS]", "[ARGS]"},
     NULL,
     {.syntax = CERA_TOOLS_NAMED, .name = "mistral", .begin = "[TOOL_CALLS]", .name_end = "[ARGS]"}},
    {{"[TOOL_CALLS]"}, NULL, {.syntax = CERA_TOOLS_JSON, .name = "mistral-nemo", .begin = "[TOOL_CALLS]"}},
    {{"<|START_ACTION|>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON,
      .name = "command-r7b",
      .begin = "<|START_ACTION|>",
      .end = "<|END_ACTION|>",
      .drop = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"}}},
    {{"<|tools_prefix|>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON,
      .name = "apertus",
      .begin = "<|tools_prefix|>",
      .end = "<|tools_suffix|>",
      .name_is_key = true}},
    {{"<|function_call|>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON, .name = "gigachat3.1", .begin = "<|function_call|>", .drop = {"<|message_sep|>"}}},
    {{"function call<|role_sep|>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON, .name = "gigachat3", .begin = "function call<|role_sep|>", .drop = {"<|message_sep|>"}}},
    {{"function call", "<|role_sep|>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON, .name = "gigachat3", .begin = "function call<|role_sep|>", .drop = {"<|message_sep|>"}}},
    {{"<|tool_call|>"},
     NULL,
     {.syntax = CERA_TOOLS_JSON,
      .name = "granite",
      .begin = "<|tool_call|>",
      .end = "<|/tool_call|>",
      .drop = {"<response>", "</response>"}}},
    {{"functools"}, NULL, {.syntax = CERA_TOOLS_JSON, .name = "firefunction", .begin = "functools"}},
    {{">>>"}, NULL, {.syntax = CERA_TOOLS_RECIPIENT, .name = "functionary-v3.2", .begin = ">>>", .name_end = "\n"}},
    {{"<function="},
     NULL,
     {.syntax = CERA_TOOLS_NAMED, .name = "functionary-v3.1", .begin = "<function=", .end = "</function>", .name_end = ">"}},
    {{"Action:", "```json"}, NULL, {.syntax = CERA_TOOLS_JSON, .name = "command-r", .begin = "Action: ```json", .end = "```"}},
    {{"<|python_tag|>"}, NULL, {.syntax = CERA_TOOLS_BARE_JSON, .name = "llama3", .begin = "<|python_tag|>"}},
    {{"\"parameters\"", "Respond in the format"},
     NULL,
     {.syntax = CERA_TOOLS_BARE_JSON, .name = "llama3", .begin = "<|python_tag|>"}},
};

static const struct {
    const char *needs, *open, *close;
} thoughts[] = {
    {"<|START_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},
    {"[THINK]", "[THINK]", "[/THINK]"},
    {"<seed:think>", "<seed:think>", "</seed:think>"},
    {"<|inner_prefix|>", "<|inner_prefix|>", "<|inner_suffix|>"},
    {"<|channel>", "<|channel>thought", "<channel|>"},
    {"Here are my reasoning steps:", "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
    {"<think>", "<think>", "</think>"},
    {"</think>", "<think>", "</think>"},
};

static bool holds(const char *text, size_t n, const char *word) { return memmem(text, n, word, strlen(word)) != NULL; }

static bool fits(const row *r, const char *text, size_t n) {
    for (size_t i = 0; i < sizeof r->needs / sizeof r->needs[0]; i++)
        if (r->needs[i] && !holds(text, n, r->needs[i])) return false;
    return !r->lacks || !holds(text, n, r->lacks);
}

void cera_tool_format_find(const char *text, size_t n, cera_tool_format *out) {
    *out = (cera_tool_format){.syntax = CERA_TOOLS_NONE, .name = "none"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!fits(&rows[i], text, n)) continue;
        *out = rows[i].format;
        break;
    }
    out->pairs = out->syntax == CERA_TOOLS_TAGGED && holds(text, n, "<arg_key>");
    if (out->syntax == CERA_TOOLS_HARMONY) return; /* has its own channel for thoughts */
    for (size_t i = 0; i < sizeof thoughts / sizeof thoughts[0]; i++) {
        if (!holds(text, n, thoughts[i].needs)) continue;
        out->think_open = thoughts[i].open;
        out->think_close = thoughts[i].close;
        break;
    }
}
