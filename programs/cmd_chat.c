/* cmd_chat.c: `cera chat`: a conversation. The session keeps what it has evaluated: each turn renders the whole chat, finds how
 * much of it the session holds already, and evaluates the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd_chat.h"
#include "commands.h"
#include "common/chat_args.h"
#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"
#include "common/sampling_args.h"
#include "common/signals.h"

typedef struct {
    cera_model_args model;
    cera_sampling_args sampling;
    cera_chat_args args;
    cera_arg_list stops;
    int64_t n;
    cera_engine *engine;
    cera_session *session;
    cera_sampler *sampler;
    cera_sampler_options options;
    cera_template *template;
    cera_chat_turns turns;
    char *system; /* NULL: none */
    cera_answer *answer;
    bool colour, dim, written;
    char last;
} chat;

static int parse(chat *c, int argc, char **argv) {
    const cera_arg rows[] = {
        {"-n --predict", "N", "tokens of an answer at most; default: until the model ends it", CERA_ARG_I64, &c->n, 1, 1e15,
         NULL},
        {"--stop", "TEXT", "end an answer before TEXT; may be repeated", CERA_ARG_LIST, &c->stops, 0, 0, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "text"},
                                     cera_chat_args_table(&c->args),
                                     cera_sampling_args_table(&c->sampling),
                                     cera_model_args_table(&c->model),
                                     {0}};
    const cera_command_line line = {
        .command = "chat",
        .usage = "cera chat -m MODEL [--system TEXT] [flags]",
        .summary =
            "Talks with a model: a line is a message, /help lists commands. A line that ends in \\ goes on in the next one;\n"
            "\"\"\" alone on a line begins and ends a message of many lines. Ctrl-C ends an answer and keeps it.",
        .tables = tables,
    };
    return cera_args_parse(&line, argc, argv);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- what the session holds already ---- */

typedef struct {
    const cera_tokenizer *t;
    const int32_t *ids;
    size_t n, at; /* at: first token that is not used up */
    size_t used;  /* bytes of it that are */
} reader;

static const char *piece_of(const reader *r, size_t *size) {
    const char *piece = cera_tokenizer_piece(r->t, r->ids[r->at], false, size);
    if (!piece) *size = 0;
    return piece;
}

/* Whether the session's tokens spell the beginning of the prompt, if not token by token: a model may write a text with other
 * tokens than the tokenizer. Control tokens must be the same. On success *from is the first token of the prompt after them. */
static bool spells_prefix(reader held, reader wanted, size_t *from) {
    while (held.at < held.n && wanted.at < wanted.n) {
        if (held.used == 0 && wanted.used == 0 && held.ids[held.at] == wanted.ids[wanted.at]) {
            held.at++, wanted.at++;
            continue;
        }
        size_t a, b;
        const char *x = piece_of(&held, &a), *y = piece_of(&wanted, &b);
        if (a == 0 || b == 0) return false;
        const size_t left_a = a - held.used, left_b = b - wanted.used, n = left_a < left_b ? left_a : left_b;
        if (memcmp(x + held.used, y + wanted.used, n) != 0) return false;
        held.used += n, wanted.used += n;
        if (held.used == a) held.at++, held.used = 0;
        if (wanted.used == b) wanted.at++, wanted.used = 0;
    }
    *from = wanted.at;
    return held.at == held.n && wanted.used == 0 && wanted.at < wanted.n;
}

/* Brings the session to where ids [*from] on are to be appended. */
static cera_status reuse(chat *c, const int32_t *ids, size_t n, size_t *from, cera_error *e) {
    int32_t n_held = 0, kept = 0;
    const int32_t *held = cera_session_tokens(c->session, &n_held);
    size_t same = 0;
    while (same < n && same < (size_t)n_held && held[same] == ids[same]) same++;
    const cera_tokenizer *t = cera_engine_tokenizer(c->engine);
    const reader a = {t, held, (size_t)n_held, same, 0}, b = {t, ids, n, same, 0};
    if (spells_prefix(a, b, from)) return CERA_OK;
    if (same == n) same--; /* the last token is evaluated again, for its logits */
    const cera_status status = cera_session_rewind(c->session, (int32_t)same, &kept, e);
    *from = (size_t)kept;
    return status;
}

/* ---- an answer ---- */

static void write_styled(chat *c, const char *text, size_t size, bool dim) {
    if (size == 0) return;
    if (c->colour && dim != c->dim) cera_output_write(dim ? "\033[2m" : "\033[0m", 4);
    c->dim = dim;
    c->written = true;
    c->last = text[size - 1];
    cera_output_write(text, size);
}

static void on_content(void *ctx, const char *text, size_t size) { write_styled(ctx, text, size, false); }
static void on_reasoning(void *ctx, const char *text, size_t size) { write_styled(ctx, text, size, true); }

static bool on_text(void *ctx, const char *text, size_t size, int32_t token) {
    chat *c = ctx;
    (void)token;
    return cera_answer_feed(c->answer, text, size, NULL) == CERA_OK && cera_output_write("", 0);
}

static int render(chat *c, cera_prompt **prompt) {
    cera_chat_turns all = {0};
    bool good = !c->system || cera_chat_turns_add(&all, "system", c->system, strlen(c->system));
    for (size_t i = 0; good && i < c->turns.n; i++)
        good = cera_chat_turns_add(&all, c->turns.items[i].role, c->turns.items[i].text, c->turns.items[i].size);
    char *messages = good ? cera_chat_turns_json(&all) : NULL;
    cera_chat_turns_deinit(&all);
    if (!messages) return cera_args_usage_error("out of memory");
    const int status = cera_chat_args_render(&c->args, c->engine, c->template, messages, prompt);
    free(messages);
    return status;
}

static void show_speed(const cera_generate_result *g, size_t n_new, double prompt_s) {
    const double rest_s = (g->total_ms - g->first_ms) / 1e3;
    fprintf(stderr, "[evaluated %zu new tokens, %.0f tok/s; generated %lld", n_new, (double)n_new / prompt_s,
            (long long)g->n_tokens);
    if (g->n_tokens > 1 && rest_s > 0) fprintf(stderr, ", %.1f tok/s", (double)(g->n_tokens - 1) / rest_s);
    fprintf(stderr, "; %s]\n", cera_finish_name(g->finish));
}

/* Evaluates what is new and generates; the answer is kept also when it was interrupted. */
static cera_status speak(chat *c, const int32_t *ids, size_t n, cera_error *e) {
    size_t from = 0;
    cera_status status = reuse(c, ids, n, &from, e);
    const double start = now_s();
    if (status == CERA_OK) status = cera_session_append(c->session, ids + from, n - from, e);
    if (status != CERA_OK) return status;
    const double prompt_s = now_s() - start;
    cera_generate_result g = {.size = sizeof g};
    const cera_generate_options o = {
        .size = sizeof o,
        .max_tokens = c->n,
        .on_text = on_text,
        .ctx = c,
        .stops = c->stops.items,
        .n_stops = c->stops.n,
    };
    c->written = c->dim = false;
    status = cera_session_generate(c->session, c->sampler, &o, &g, e);
    const cera_status finished = cera_answer_finish(c->answer, status == CERA_OK ? e : NULL);
    if (c->colour && c->dim) cera_output_write("\033[0m", 4);
    cera_output_write("\n", !c->written || c->last != '\n');
    show_speed(&g, n - from, prompt_s);
    if (status == CERA_ERR_CANCELLED) status = CERA_OK;
    return status != CERA_OK ? status : finished;
}

static bool answer(chat *c) {
    const cera_answer_events events = {.size = sizeof events, .ctx = c, .on_content = on_content, .on_reasoning = on_reasoning};
    cera_prompt *prompt = NULL;
    cera_error e = {0};
    int32_t *ids = NULL;
    size_t n = 0, size = 0;
    if (render(c, &prompt) >= 0) return false;
    cera_status status = cera_prompt_encode(prompt, cera_engine_tokenizer(c->engine), &ids, &n, &e);
    if (status == CERA_OK) status = cera_answer_create(c->template, NULL, prompt, &events, &c->answer, &e);
    cera_signals_watch(c->session);
    if (status == CERA_OK) status = speak(c, ids, n, &e);
    cera_signals_watch(NULL);
    cera_signals_clear();
    if (status == CERA_OK) {
        const char *text = cera_answer_content(c->answer, &size);
        cera_chat_turns_add(&c->turns, "assistant", text, size);
    } else if (status == CERA_ERR_CANCELLED) {
        fputs("[interrupted before the answer]\n", stderr);
    } else {
        cera_report(&e);
    }
    cera_answer_destroy(c->answer);
    c->answer = NULL;
    cera_release(ids);
    cera_prompt_close(prompt);
    return status == CERA_OK;
}

static void say(chat *c, const char *text) {
    const size_t before = c->turns.n;
    if (!cera_chat_turns_add(&c->turns, "user", text, strlen(text))) return;
    if (!answer(c)) cera_chat_turns_drop(&c->turns, before);
}

/* ---- commands ---- */

static void help(chat *c, const char *rest);

static void clear(chat *c, const char *rest) {
    (void)rest;
    cera_chat_turns_drop(&c->turns, 0);
}

static void set_system(chat *c, const char *rest) {
    free(c->system);
    c->system = *rest ? strdup(rest) : NULL;
}

static void save(chat *c, const char *rest) {
    char *text = cera_chat_turns_json(&c->turns);
    FILE *f = text && *rest ? fopen(rest, "wb") : NULL;
    const bool good = f && fputs(text, f) >= 0 && fputc('\n', f) != EOF;
    if ((f && fclose(f) != 0) || !good) fprintf(stderr, "cera: /save FILE: \"%s\" could not be written\n", rest);
    free(text);
}

static void load(chat *c, const char *rest) {
    char *text = NULL;
    size_t size = 0;
    if (*rest == 0) {
        fputs("cera: /load FILE: name a file\n", stderr);
        return;
    }
    if (cera_input_read(NULL, rest, &text, &size) < 0 && (strlen(text) != size || !cera_chat_turns_parse(&c->turns, text)))
        fprintf(stderr, "cera: %s: no JSON array of messages with role and content\n", rest);
    free(text);
}

static size_t last_user(const chat *c) {
    size_t n = c->turns.n;
    while (n > 0 && strcmp(c->turns.items[n - 1].role, "user") != 0) n--;
    return n; /* turns up to and with the last question */
}

/* The choice makes the draws other ones than before. */
static void regenerate(chat *c, const char *rest) {
    (void)rest;
    cera_sampler *other = NULL;
    if (last_user(c) == 0) return;
    c->sampling.choice++;
    if (cera_sampling_args_create(&c->sampling, c->engine, &c->options, &other) < 0) {
        cera_sampler_destroy(c->sampler);
        c->sampler = other;
    }
    cera_chat_turns_drop(&c->turns, last_user(c));
    answer(c);
}

static void undo(chat *c, const char *rest) {
    (void)rest;
    const size_t n = last_user(c);
    if (n > 0) cera_chat_turns_drop(&c->turns, n - 1);
}

/* "/set temp 0.5": the flag --temp of the sampling table. */
static void set(chat *c, const char *rest) {
    char flag[64] = "--", value[256], command[] = "set";
    cera_sampler *other = NULL;
    if (sscanf(rest, "%61s %255s", flag + 2, value) != 2) {
        fputs("cera: /set NAME VALUE: a sampling flag without its dashes, as in /set temp 0.5\n", stderr);
        return;
    }
    char *argv[] = {command, flag, value};
    const cera_arg_table tables[] = {cera_sampling_args_table(&c->sampling), {0}};
    const cera_command_line line = {.command = "chat", .tables = tables};
    if (cera_args_parse(&line, 3, argv) >= 0 || cera_sampling_args_create(&c->sampling, c->engine, &c->options, &other) >= 0)
        return;
    cera_sampler_destroy(c->sampler);
    c->sampler = other;
}

static const struct {
    const char *name, *what;
    void (*run)(chat *c, const char *rest);
} commands[] = {
    {"/help", "this list", help},
    {"/clear", "forget the conversation, keep the system message", clear},
    {"/system", "[TEXT] set the system message, or drop it", set_system},
    {"/save", "FILE write the conversation as JSON", save},
    {"/load", "FILE read one", load},
    {"/regen", "answer the last message again", regenerate},
    {"/undo", "take the last message and its answer back", undo},
    {"/set", "NAME VALUE change a sampling flag: /set temp 0.5", set},
    {"/exit", "end", NULL},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(chat *c, const char *rest) {
    (void)c, (void)rest;
    for (int i = 0; i < N_COMMANDS; i++) fprintf(stderr, "  %-8s %s\n", commands[i].name, commands[i].what);
}

/* False: /exit. */
static bool run_command(chat *c, const char *line) {
    const size_t n = strcspn(line, " ");
    const char *rest = line + n + strspn(line + n, " ");
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strlen(commands[i].name) != n || memcmp(commands[i].name, line, n) != 0) continue;
        if (commands[i].run) commands[i].run(c, rest);
        return commands[i].run != NULL;
    }
    fprintf(stderr, "cera: %.*s: no such command; /help lists them\n", (int)n, line);
    return true;
}

/* ---- the loop ---- */

/* A message: one line, more after a backslash, or a block between lines of three quotes. NULL at the end. */
static char *read_message(void) {
    char *line = cera_chat_read_line("> "), *text = NULL;
    size_t size = 0;
    if (!line) return NULL;
    const bool block = strcmp(line, "\"\"\"") == 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return line;
    while (line) {
        const size_t n = strlen(line);
        const bool goes_on = !block && n > 0 && line[n - 1] == '\\', first = ftell(out) == 0;
        if (!block) fprintf(out, "%.*s%s", (int)(goes_on ? n - 1 : n), line, goes_on ? "\n" : "");
        free(line);
        if (!block && !goes_on) break;
        line = cera_chat_read_line(". ");
        if (block && line && strcmp(line, "\"\"\"") == 0) break;
        if (block && line) fprintf(out, "%s%s", first ? "" : "\n", line);
    }
    if (block) free(line);
    fclose(out);
    return text;
}

static void talk(chat *c) {
    for (char *line; (line = read_message());) {
        const bool go_on = line[0] != '/' || run_command(c, line);
        if (line[0] != '/' && line[0] != 0) say(c, line);
        free(line);
        if (!go_on || !cera_output_write("", 0)) return;
    }
}

static int start(chat *c) {
    int status = cera_model_args_open(&c->model, &c->engine);
    if (status < 0) status = cera_sampling_args_create(&c->sampling, c->engine, &c->options, &c->sampler);
    if (status < 0) status = cera_chat_args_open(&c->args, c->engine, &c->template);
    if (status >= 0) return status;
    if (!c->template) {
        fputs("cera: the model has no chat template; name one with --chat-template (cera template --list)\n", stderr);
        return CERA_EXIT_FAILED;
    }
    cera_error e = {0};
    c->system = c->args.system ? strdup(c->args.system) : NULL;
    c->colour = isatty(STDOUT_FILENO);
    return cera_session_create(c->engine, NULL, &c->session, &e) == CERA_OK ? -1 : cera_report(&e);
}

int cera_cmd_chat(int argc, char **argv) {
    static chat c; /* large; one a process */
    int status = parse(&c, argc, argv);
    if (status >= 0) return status;
    status = start(&c);
    if (status < 0) {
        if (isatty(STDIN_FILENO)) fputs("/help lists commands, /exit or Ctrl-D ends\n", stderr);
        talk(&c);
        status = CERA_EXIT_OK;
    }
    cera_chat_close_lines();
    cera_chat_turns_deinit(&c.turns);
    free(c.system);
    cera_template_close(c.template);
    cera_session_destroy(c.session);
    cera_sampler_destroy(c.sampler);
    cera_engine_close(c.engine);
    return status;
}
