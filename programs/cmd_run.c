/* cmd_run.c: `cera run`: a prompt in, text out as it is generated. With a chat template (the model's own, or one that is named)
 * the prompt is a user's message; without one, or with --raw, it goes to the model as it stands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "common/chat_args.h"
#include "common/input.h"
#include "common/model_args.h"
#include "common/output.h"
#include "common/sampling_args.h"
#include "common/signals.h"
#include "common/structure_args.h"

enum { MAX_LOGPROBS = 100 };

typedef struct {
    cera_model_args model;
    cera_sampling_args sampling;
    cera_chat_args chat;
    cera_structure_args structure;
    const char *prompt, *file, *output;
    int64_t n, min_tokens;
    int32_t n_logprobs;
    cera_arg_list stops;
    bool raw, special, ignore_eos, json, logprobs;
    FILE *text, *tokens; /* with --output json: what has been generated so far */
    char *text_data, *tokens_data;
    size_t text_size, tokens_size;
    cera_engine *engine;
    cera_session *session;
    cera_sampler *sampler;
    cera_template *template; /* NULL: raw */
    cera_sampler_options sampler_options;
    int32_t *ids; /* of the prompt */
    size_t n_ids;
    double prompt_s;
    char last; /* byte written */
    bool written;
    int64_t n_written; /* entries of tokens */
} run_command;

static int parse(run_command *r, int argc, char **argv) {
    const cera_arg rows[] = {
        {"-p --prompt", "TEXT", "the prompt; default: stdin", CERA_ARG_TEXT, (void *)&r->prompt, 0, 0, NULL},
        {"-f --file", "FILE", "read the prompt from a file", CERA_ARG_TEXT, (void *)&r->file, 0, 0, NULL},
        {"-n --predict", "N", "tokens to generate at most; default: until the model ends or the context is full", CERA_ARG_I64,
         &r->n, 1, 1e15, NULL},
        {"--raw", NULL, "the prompt as it stands, no chat template (so it is anyway when the model has none)", CERA_ARG_BOOL,
         &r->raw, 0, 0, NULL},
        {"--special", NULL, "show control tokens; in a raw prompt they also become their ids", CERA_ARG_BOOL, &r->special, 0, 0,
         NULL},
        {"--min-tokens", "N", "the model may not end its text before N tokens", CERA_ARG_I64, &r->min_tokens, 0, 1e15, NULL},
        {"--stop", "TEXT", "end before TEXT; may be repeated", CERA_ARG_LIST, &r->stops, 0, 0, NULL},
        {"--logprobs", "N", "log-probabilities of each token and of the N most probable (in the JSON, else on stderr)",
         CERA_ARG_I32, &r->n_logprobs, 0, MAX_LOGPROBS, &r->logprobs},
        {"--output", "FORM", "text (as it comes, the default) or json (one object at the end)", CERA_ARG_TEXT,
         (void *)&r->output, 0, 0, NULL},
        {"--ignore-eos", NULL, "the model never ends its text", CERA_ARG_BOOL, &r->ignore_eos, 0, 0, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "text"},
                                     cera_chat_args_table(&r->chat),
                                     cera_structure_args_table(&r->structure),
                                     cera_sampling_args_table(&r->sampling),
                                     cera_model_args_table(&r->model),
                                     {0}};
    const cera_command_line line = {
        .command = "run",
        .usage = "cera run -m MODEL (-p TEXT | -f FILE | < FILE) [-n N] [flags]",
        .summary = "Answers the prompt when there is a chat template, else continues its text. Text goes to stdout, speed and\n"
                   "errors to stderr.",
        .tables = tables,
    };
    const int status = cera_args_parse(&line, argc, argv);
    if (status < 0 && r->prompt && r->file) return cera_args_usage_error("-p and -f: give one of them");
    if (status < 0 && r->output && strcmp(r->output, "json") != 0 && strcmp(r->output, "text") != 0)
        return cera_args_usage_error("--output: \"%s\" is neither text nor json", r->output);
    r->json = r->output && strcmp(r->output, "json") == 0;
    if (status < 0 && r->raw && (r->chat.system || r->chat.source))
        return cera_args_usage_error("--raw: no template runs, so --system and --chat-template mean nothing");
    return status;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the prompt ---- */

static int encode_raw(run_command *r, const char *text, size_t size) {
    cera_error e = {0};
    const cera_tokenizer *t = cera_engine_tokenizer(r->engine);
    const unsigned flags = CERA_ENCODE_BOS | (r->special ? CERA_ENCODE_SPECIAL : 0);
    if (cera_tokenizer_encode(t, text, size, flags, &r->ids, &r->n_ids, &e) != CERA_OK) return cera_report(&e);
    if (r->n_ids > 0) return -1;
    fputs("cera: the prompt is empty, and the model's vocabulary has no token that begins a text\n", stderr);
    return CERA_EXIT_FAILED;
}

static void write_message(FILE *out, const char *role, const char *text, size_t size) {
    fprintf(out, "{\"role\":\"%s\",\"content\":", role);
    cera_output_json_string(out, text, size);
    fputc('}', out);
}

static int encode_chat(run_command *r, const char *text, size_t size) {
    char *messages = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&messages, &n);
    if (!out) return cera_args_usage_error("out of memory");
    if (!r->prompt && size > 0 && text[size - 1] == '\n') size--; /* the line's end, not the message's */
    fputc('[', out);
    if (r->chat.system) {
        write_message(out, "system", r->chat.system, strlen(r->chat.system));
        fputc(',', out);
    }
    write_message(out, "user", text, size);
    fputc(']', out);
    fclose(out);
    cera_prompt *prompt = NULL;
    int status = cera_chat_args_render(&r->chat, r->engine, r->template, messages, &prompt);
    free(messages);
    cera_error e = {0};
    if (status < 0 && cera_prompt_encode(prompt, cera_engine_tokenizer(r->engine), &r->ids, &r->n_ids, &e) != CERA_OK)
        status = cera_report(&e);
    cera_prompt_close(prompt);
    return status;
}

static int open_template(run_command *r) {
    if (r->raw) return -1;
    const int status = cera_chat_args_open(&r->chat, r->engine, &r->template);
    if (status >= 0 || r->template || !r->chat.system) return status;
    fputs("cera: --system: the model has no chat template; name one with --chat-template\n", stderr);
    return CERA_EXIT_FAILED;
}

static int encode(run_command *r) {
    if (!r->prompt && !r->file && isatty(STDIN_FILENO))
        fputs("cera: reading the prompt from the terminal; end it with Ctrl-D\n", stderr);
    char *text;
    size_t size;
    int status = cera_input_read(r->prompt, r->file, &text, &size);
    if (status >= 0) return status;
    status = r->template ? encode_chat(r, text, size) : encode_raw(r, text, size);
    free(text);
    return status;
}

/* ---- the answer ---- */

static bool on_text(void *ctx, const char *text, size_t size, int32_t token) {
    run_command *r = ctx;
    (void)token;
    if (size == 0) return true;
    r->last = text[size - 1];
    r->written = true;
    if (r->json) return fwrite(text, 1, size, r->text) == size;
    return cera_output_write(text, size);
}

static void write_piece(FILE *out, const run_command *r, int32_t token) {
    size_t n = 0;
    const char *piece = cera_tokenizer_piece(cera_engine_tokenizer(r->engine), token, true, &n);
    cera_output_json_string(out, piece ? piece : "", piece ? n : 0);
}

/* One token's entry: {"id":1,"text":"a","logprob":-0.1,"top":[{"id":..,"text":..,"logprob":..}]}. */
static void on_token(void *ctx, const cera_token_event *event) {
    run_command *r = ctx;
    FILE *out = r->json ? r->tokens : stderr;
    cera_logprob top[MAX_LOGPROBS];
    const size_t n = r->n_logprobs < event->n_vocab ? (size_t)r->n_logprobs : (size_t)event->n_vocab;
    float chosen = 0.0f;
    fprintf(out, "%s{\"id\":%d,\"text\":", r->json && r->n_written++ > 0 ? "," : "", (int)event->token);
    write_piece(out, r, event->token);
    if (r->logprobs && cera_logprobs(event->logits, event->n_vocab, event->token, &chosen, top, n, NULL) == CERA_OK) {
        fprintf(out, ",\"logprob\":%.6g,\"top\":[", (double)chosen);
        for (size_t i = 0; i < n && top[i].token >= 0; i++) {
            fprintf(out, "%s{\"id\":%d,\"text\":", i > 0 ? "," : "", (int)top[i].token);
            write_piece(out, r, top[i].token);
            fprintf(out, ",\"logprob\":%.6g}", (double)top[i].logprob);
        }
        fputc(']', out);
    }
    fputs(r->json ? "}" : "}\n", out);
}

static bool open_streams(run_command *r) {
    if (!r->json) return true;
    r->text = open_memstream(&r->text_data, &r->text_size);
    r->tokens = open_memstream(&r->tokens_data, &r->tokens_size);
    return r->text && r->tokens;
}

/* The one object of --output json. */
static void write_json(run_command *r, const cera_generate_result *g) {
    fflush(r->text);
    fflush(r->tokens);
    fputs("{\"text\":", stdout);
    cera_output_json_string(stdout, r->text_data, r->text_size);
    printf(",\"finish\":\"%s\"", cera_finish_name(g->finish));
    if (g->stop >= 0) {
        fputs(",\"stop\":", stdout);
        cera_output_json_string(stdout, r->stops.items[g->stop], strlen(r->stops.items[g->stop]));
    }
    printf(",\"tokens\":[%.*s],\"n_tokens\":%lld,\"n_prompt\":%zu,\"prompt_tokens\":[", (int)r->tokens_size, r->tokens_data,
           (long long)g->n_tokens, r->n_ids);
    for (size_t i = 0; i < r->n_ids; i++) printf("%s%d", i > 0 ? "," : "", (int)r->ids[i]);
    printf("],\"seed\":%llu,\"timings\":{\"prompt_ms\":%.3f,\"first_token_ms\":%.3f,\"generate_ms\":%.3f}}\n",
           (unsigned long long)r->sampler_options.seed, r->prompt_s * 1e3, r->prompt_s * 1e3 + g->first_ms, g->total_ms);
}

static void show_speed(const run_command *r, const cera_generate_result *g) {
    const double rest_s = (g->total_ms - g->first_ms) / 1e3;
    fprintf(stderr, "prompt: %zu tokens, %.1f tok/s; generated: %lld tokens", r->n_ids, (double)r->n_ids / r->prompt_s,
            (long long)g->n_tokens);
    if (g->n_tokens > 1 && rest_s > 0) fprintf(stderr, ", %.1f tok/s", (double)(g->n_tokens - 1) / rest_s);
    if (r->sampler_options.temperature > 0.0f) fprintf(stderr, "; seed %llu", (unsigned long long)r->sampler_options.seed);
    static const char *const why[] = {
        "",      "the model ended it", "-n reached",          "the context is full", "stdout closed", "interrupted",
        "error", "a stop string",      "the form is complete"};
    fprintf(stderr, "; %s\n", why[g->finish]);
}

static int generate(run_command *r) {
    cera_error e = {0};
    const double start = now_s();
    cera_status status = cera_session_append(r->session, r->ids, r->n_ids, &e);
    r->prompt_s = now_s() - start;
    if (status != CERA_OK) return cera_report(&e);
    cera_generate_result result = {.size = sizeof result};
    const cera_generate_options o = {
        .size = sizeof o,
        .max_tokens = r->n,
        .ignore_eog = r->ignore_eos,
        .special = r->special,
        .on_text = on_text,
        .ctx = r,
        .min_tokens = r->min_tokens,
        .stops = r->stops.items,
        .n_stops = r->stops.n,
        .grammar = r->structure.state,
        .grammar_tokens = r->structure.tokens,
        .on_token = r->json || r->logprobs ? on_token : NULL,
    };
    if (!open_streams(r)) return cera_args_usage_error("out of memory");
    status = cera_session_generate(r->session, r->sampler, &o, &result, &e);
    if (r->json) write_json(r, &result);
    if (!r->json && isatty(STDOUT_FILENO) && r->written && r->last != '\n') cera_output_write("\n", 1);
    show_speed(r, &result);
    if (status == CERA_ERR_CANCELLED) return CERA_EXIT_INTERRUPTED;
    return status == CERA_OK ? CERA_EXIT_OK : cera_report(&e);
}

static int run(run_command *r) {
    int status = cera_model_args_open(&r->model, &r->engine);
    if (status < 0) status = cera_sampling_args_create(&r->sampling, r->engine, &r->sampler_options, &r->sampler);
    if (status < 0) status = open_template(r);
    if (status < 0) status = cera_structure_args_open(&r->structure, r->engine);
    if (status < 0) status = encode(r);
    if (status >= 0) return status;
    cera_error e = {0};
    if (cera_session_create(r->engine, NULL, &r->session, &e) != CERA_OK) return cera_report(&e);
    cera_signals_watch(r->session);
    status = generate(r);
    cera_signals_watch(NULL);
    return status;
}

int cera_cmd_run(int argc, char **argv) {
    static run_command r; /* large; one a process */
    int status = parse(&r, argc, argv);
    if (status >= 0) return status;
    status = run(&r);
    cera_release(r.ids);
    cera_session_destroy(r.session);
    cera_structure_args_close(&r.structure);
    if (r.text) fclose(r.text);
    if (r.tokens) fclose(r.tokens);
    free(r.text_data);
    free(r.tokens_data);
    cera_sampler_destroy(r.sampler);
    cera_template_close(r.template);
    cera_engine_close(r.engine);
    return status;
}
