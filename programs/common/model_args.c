/* model_args.c: see model_args.h. */
#include "common/model_args.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/embedded.h"
#include "common/signals.h"

int cera_report(const cera_error *e) {
    fprintf(stderr, "cera: %s\n", e->message);
    return e->code == CERA_ERR_CANCELLED && cera_interrupted() ? CERA_EXIT_INTERRUPTED : CERA_EXIT_FAILED;
}

cera_arg_table cera_model_args_table(cera_model_args *m) {
    cera_engine_options *o = &m->options;
    o->size = sizeof *o;
    const cera_arg rows[] = {
        {"-m --model", "FILE", "the model, a GGUF file (of a split one: the first part)", CERA_ARG_TEXT, &m->path, 0, 0, NULL},
        {"-t --threads", "N", "threads, exactly; default: as many as this process may use", CERA_ARG_I32, &o->threads, 0, 512,
         NULL},
        {"--tier", "NAME", "CPU tier; cera cpu lists them; default: the best", CERA_ARG_TEXT, (void *)&o->tier, 0, 0, NULL},
        {"-c --ctx", "N", "context in tokens; default: the model's, as far as memory allows", CERA_ARG_I32, &o->context, 0,
         1 << 28, NULL},
        {"-ub --ubatch", "N", "tokens evaluated in one step at most; default 512", CERA_ARG_I32, &o->ubatch, 1, 65536, NULL},
        {"--kv-type-k", "TYPE", "type of cached keys: auto, f32, f16, bf16", CERA_ARG_KV, &o->kv_k, 0, 0, NULL},
        {"--kv-type-v", "TYPE", "type of cached values", CERA_ARG_KV, &o->kv_v, 0, 0, NULL},
        {"--no-mmap", NULL, "read the file into memory instead of mapping it", CERA_ARG_BOOL, &o->no_mmap, 0, 0, NULL},
        {"--mlock", NULL, "keep the weights from being paged out", CERA_ARG_BOOL, &o->mlock, 0, 0, NULL},
        {"--override-kv", "KEY=TYPE:VALUE", "replace metadata (TYPE int, float, bool or str); may be repeated", CERA_ARG_LIST,
         &m->overrides, 0, 0, NULL},
        {"--allow-unknown-tokenizer", NULL, "take the default pre-tokenizer where the file names an unknown one", CERA_ARG_BOOL,
         &o->allow_unknown_tokenizer, 0, 0, NULL},
    };
    memset(m->rows, 0, sizeof m->rows);
    memcpy(m->rows, rows, sizeof rows);
    return (cera_arg_table){m->rows, "model"};
}

/* ---- progress ---- */

/* One line that is written over on a terminal, whole tenths elsewhere. */
static bool show_progress(void *ctx, uint64_t done, uint64_t total) {
    int *shown = ctx;
    const int percent = total > 0 ? (int)(100.0 * (double)done / (double)total) : 100;
    const bool terminal = isatty(STDERR_FILENO);
    if (total >= 64u << 20 && percent >= *shown + (terminal ? 1 : 10)) {
        *shown = percent;
        fprintf(stderr, terminal ? "\rloading %3d %%" : "loading %d %%\n", percent);
        if (terminal && percent >= 100) fputs("\r             \r", stderr);
    }
    return !cera_interrupted();
}

static void show_message(void *ctx, cera_message_level level, const char *text) {
    (void)ctx;
    if (level == CERA_MESSAGE_WARN) fprintf(stderr, "cera: note: %s\n", text);
}

/* ---- opening ---- */

static const char embedded_name[] = "model in the program";

static int no_model(void) {
    fputs("cera: no model given, and none is in this program: name a GGUF file with -m FILE\n"
          "      (`make models` fetches a small one; any GGUF file of a supported architecture will do)\n",
          stderr);
    return CERA_EXIT_USAGE;
}

int cera_model_args_open(cera_model_args *m, cera_engine **out) {
    cera_error e = {0};
    int shown = 0;
    cera_engine_options *o = &m->options;
    cera_set_messages(show_message, NULL);
    o->overrides = m->overrides.items;
    o->n_overrides = m->overrides.n;
    o->progress = show_progress;
    o->progress_ctx = &shown;
    if (!m->path && cera_embedded_model_size == 0) return no_model();
    const cera_status status =
        m->path ? cera_engine_open(m->path, o, out, &e)
                : cera_engine_open_memory(embedded_name, cera_embedded_model, (size_t)cera_embedded_model_size, o, out, &e);
    o->progress_ctx = NULL;
    return status == CERA_OK ? -1 : cera_report(&e);
}

int cera_model_args_open_tokenizer(cera_model_args *m, cera_tokenizer **out) {
    cera_error e = {0};
    const cera_tokenizer_options o = {
        .size = sizeof o,
        .allow_unknown = m->options.allow_unknown_tokenizer,
        .overrides = m->overrides.items,
        .n_overrides = m->overrides.n,
    };
    cera_set_messages(show_message, NULL);
    if (!m->path && cera_embedded_model_size == 0) return no_model();
    const cera_status status =
        m->path ? cera_tokenizer_open(m->path, &o, out, &e)
                : cera_tokenizer_open_memory(embedded_name, cera_embedded_model, (size_t)cera_embedded_model_size, &o, out, &e);
    return status == CERA_OK ? -1 : cera_report(&e);
}
