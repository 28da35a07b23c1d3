/* cmd_inspect.c: `cera inspect`: keys, tensors, whether the model runs and fits here, and the plan. Looks at files that cannot
 * run, too: then it says why. Values come from outside and are printed escaped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/model_args.h"
#include "common/output.h"

enum {
    MAX_ELEMENTS = 64 /* of an array in JSON; longer ones are given by type and length */,
    SHOWN_ELEMENTS = 6,
    SHOWN_BYTES = 100
};

typedef struct {
    cera_model_args model;
    const char *path;
    bool tensors, plan, json;
    cera_model_file *file;
    cera_engine *engine; /* NULL: it cannot run; why says why not */
    cera_error why;
} inspect_command;

static int parse(inspect_command *c, int argc, char **argv) {
    const cera_arg rows[] = {
        {"--tensors", NULL, "list the tensors", CERA_ARG_BOOL, &c->tensors, 0, 0, NULL},
        {"--plan", NULL, "list the operations of a step", CERA_ARG_BOOL, &c->plan, 0, 0, NULL},
        {"--json", NULL, "one JSON object", CERA_ARG_BOOL, &c->json, 0, 0, NULL},
        {0},
    };
    const cera_arg_table tables[] = {{rows, "output"}, cera_model_args_table(&c->model), {0}};
    const cera_command_line line = {
        .command = "inspect",
        .usage = "cera inspect MODEL [--tensors] [--plan] [--json]",
        .summary = "Shows what a model file holds and whether it fits this machine.",
        .tables = tables,
        .positional = "model",
        .positional_out = &c->path,
    };
    const int status = cera_args_parse(&line, argc, argv);
    if (status >= 0) return status;
    if (c->path && c->model.path) return cera_args_usage_error("model: given twice, with -m and without");
    if (c->path) c->model.path = c->path;
    if (!c->model.path) return cera_args_usage_error("inspect: name a model file");
    return -1;
}

/* ---- values ---- */

/* The whole of one element, heap memory (free). */
static char *value_text(const cera_model_file *f, size_t key, uint64_t element, size_t *size) {
    if (cera_model_file_value(f, key, element, NULL, 0, size, NULL) != CERA_OK) return NULL;
    char *text = malloc(*size + 1);
    if (text && cera_model_file_value(f, key, element, text, *size + 1, size, NULL) == CERA_OK) return text;
    free(text);
    return NULL;
}

static void json_element(const inspect_command *c, size_t key, const cera_model_key *k, uint64_t element) {
    size_t n = 0;
    char *text = value_text(c->file, key, element, &n);
    if (!text)
        fputs("null", stdout);
    else if (k->is_text)
        cera_output_json_string(stdout, text, n);
    else
        fwrite(text, 1, n, stdout);
    free(text);
}

static void json_value(const inspect_command *c, size_t key, const cera_model_key *k) {
    if (!k->is_array) {
        json_element(c, key, k, 0);
        return;
    }
    if (k->n > MAX_ELEMENTS) {
        printf("{\"array_of\": \"%s\", \"n\": %llu}", k->type, (unsigned long long)k->n);
        return;
    }
    putchar('[');
    for (uint64_t i = 0; i < k->n; i++) {
        if (i > 0) fputs(", ", stdout);
        json_element(c, key, k, i);
    }
    putchar(']');
}

static void show_value(const inspect_command *c, size_t key, const cera_model_key *k) {
    const uint64_t shown = k->is_array && k->n > SHOWN_ELEMENTS ? SHOWN_ELEMENTS : k->n;
    if (k->is_array) putchar('[');
    for (uint64_t i = 0; i < shown; i++) {
        size_t n = 0;
        char *text = value_text(c->file, key, i, &n);
        if (i > 0) fputs(", ", stdout);
        cera_output_printable(stdout, text ? text : "", n, SHOWN_BYTES);
        free(text);
    }
    if (k->is_array) fputs(shown < k->n ? ", ...]" : "]", stdout);
    putchar('\n');
}

/* ---- sections ---- */

static void show_keys(const inspect_command *c) {
    for (size_t i = 0; i < cera_model_file_n_keys(c->file); i++) {
        cera_model_key k = {.size = sizeof k};
        if (cera_model_file_key(c->file, i, &k, NULL) != CERA_OK) continue;
        if (k.is_array)
            printf("%-44s %s[%llu]  ", k.name, k.type, (unsigned long long)k.n);
        else
            printf("%-44s %s  ", k.name, k.type);
        show_value(c, i, &k);
    }
}

static void show_tensors(const inspect_command *c) {
    for (size_t i = 0; i < cera_model_file_n_tensors(c->file); i++) {
        cera_model_tensor t = {.size = sizeof t};
        if (cera_model_file_tensor(c->file, i, &t, NULL) != CERA_OK) continue;
        printf("%-44s %-8s [", t.name, t.type);
        for (int d = 0; d < t.n_dims; d++) printf(d > 0 ? ", %llu" : "%llu", (unsigned long long)t.shape[d]);
        printf("]  %.2f MiB%s\n", (double)t.bytes / (1 << 20), t.computes ? "" : "  (cannot be computed with)");
    }
}

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

static void show_fit(const inspect_command *c) {
    if (!c->engine) {
        printf("runs: no: %s\n", c->why.message);
        return;
    }
    cera_model_info m = {.size = sizeof m};
    if (cera_engine_info(c->engine, &m, NULL) != CERA_OK) return;
    printf("runs: yes, on tier %s with %d threads\n", m.tier, (int)m.threads);
    printf("context: %d tokens of the model's %d fit; cache %.1f MiB per 1,000 tokens (k %s, v %s)", (int)m.n_ctx,
           (int)m.n_ctx_train, mib(m.kv_bytes_per_1k), cera_kv_dtype_name(m.kv_k), cera_kv_dtype_name(m.kv_v));
    if (m.memory_bytes > 0) printf(", %.0f MiB are free for it", mib(m.memory_bytes));
    printf("\nmemory: weights %.1f MiB, work %.1f MiB\n", mib(m.weight_bytes), mib(m.work_bytes));
}

/* One operation, whole. Heap memory (free). */
static char *op_text(const cera_engine *engine, int32_t op) {
    const int32_t n = cera_engine_describe_op(engine, op, NULL, 0);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) cera_engine_describe_op(engine, op, text, (size_t)n + 1);
    return text;
}

static void show_plan(const inspect_command *c) {
    for (int32_t i = 0; i < cera_engine_n_ops(c->engine); i++) {
        char *text = op_text(c->engine, i);
        printf("%4d  ", (int)i);
        if (text) cera_output_printable(stdout, text, strlen(text), 1000);
        putchar('\n');
        free(text);
    }
}

static void show(const inspect_command *c) {
    fputs("file: ", stdout);
    cera_output_printable(stdout, c->model.path, strlen(c->model.path), 4096);
    printf("\nGGUF version %u, %zu keys, %zu tensors, %.1f MiB\n", cera_model_file_version(c->file),
           cera_model_file_n_keys(c->file), cera_model_file_n_tensors(c->file), mib(cera_model_file_bytes(c->file)));
    show_fit(c);
    putchar('\n');
    show_keys(c);
    if (c->tensors) {
        putchar('\n');
        show_tensors(c);
    }
    if (c->plan && c->engine) {
        putchar('\n');
        show_plan(c);
    }
}

/* ---- JSON ---- */

static void json_tensors(const inspect_command *c) {
    fputs(", \"tensors\": [", stdout);
    for (size_t i = 0; i < cera_model_file_n_tensors(c->file); i++) {
        cera_model_tensor t = {.size = sizeof t};
        if (cera_model_file_tensor(c->file, i, &t, NULL) != CERA_OK) continue;
        fputs(i > 0 ? ", {\"name\": " : "{\"name\": ", stdout);
        cera_output_json_string(stdout, t.name, strlen(t.name));
        printf(", \"type\": \"%s\", \"shape\": [", t.type);
        for (int d = 0; d < t.n_dims; d++) printf(d > 0 ? ", %llu" : "%llu", (unsigned long long)t.shape[d]);
        printf("], \"bytes\": %llu, \"computes\": %s}", (unsigned long long)t.bytes, t.computes ? "true" : "false");
    }
    putchar(']');
}

static void json_fit(const inspect_command *c) {
    cera_model_info m = {.size = sizeof m};
    if (!c->engine || cera_engine_info(c->engine, &m, NULL) != CERA_OK) {
        fputs(", \"runs\": false, \"reason\": ", stdout);
        cera_output_json_string(stdout, c->why.message, strlen(c->why.message));
        return;
    }
    printf(", \"runs\": true, \"tier\": \"%s\", \"threads\": %d, \"context\": %d, \"context_of_model\": %d", m.tier,
           (int)m.threads, (int)m.n_ctx, (int)m.n_ctx_train);
    printf(", \"kv_bytes_per_1k_tokens\": %llu, \"kv_type_k\": \"%s\", \"kv_type_v\": \"%s\", \"free_bytes\": %llu",
           (unsigned long long)m.kv_bytes_per_1k, cera_kv_dtype_name(m.kv_k), cera_kv_dtype_name(m.kv_v),
           (unsigned long long)m.memory_bytes);
    printf(", \"weight_bytes\": %llu, \"work_bytes\": %llu", (unsigned long long)m.weight_bytes,
           (unsigned long long)m.work_bytes);
}

static void json_plan(const inspect_command *c) {
    fputs(", \"plan\": [", stdout);
    for (int32_t i = 0; i < cera_engine_n_ops(c->engine); i++) {
        char *text = op_text(c->engine, i);
        if (i > 0) fputs(", ", stdout);
        cera_output_json_string(stdout, text ? text : "", text ? strlen(text) : 0);
        free(text);
    }
    putchar(']');
}

static void show_json(const inspect_command *c) {
    fputs("{\"file\": ", stdout);
    cera_output_json_string(stdout, c->model.path, strlen(c->model.path));
    printf(", \"gguf_version\": %u, \"bytes\": %llu, \"keys\": {", cera_model_file_version(c->file),
           (unsigned long long)cera_model_file_bytes(c->file));
    bool first = true;
    for (size_t i = 0; i < cera_model_file_n_keys(c->file); i++) {
        cera_model_key k = {.size = sizeof k};
        if (cera_model_file_key(c->file, i, &k, NULL) != CERA_OK) continue;
        if (!first) fputs(", ", stdout);
        first = false;
        cera_output_json_string(stdout, k.name, strlen(k.name));
        fputs(": ", stdout);
        json_value(c, i, &k);
    }
    putchar('}');
    json_fit(c);
    if (c->tensors) json_tensors(c);
    if (c->plan && c->engine) json_plan(c);
    fputs("}\n", stdout);
}

int cera_cmd_inspect(int argc, char **argv) {
    static inspect_command c;
    const int status = parse(&c, argc, argv);
    if (status >= 0) return status;
    cera_error e = {0};
    c.model.options.overrides = c.model.overrides.items;
    c.model.options.n_overrides = c.model.overrides.n;
    cera_engine_options file_options = c.model.options;
    file_options.no_mmap = false;
    if (cera_model_file_open(c.model.path, &file_options, &c.file, &e) != CERA_OK) return cera_report(&e);
    c.model.options.no_mmap = c.model.options.mlock = false; /* nothing is evaluated */
    if (cera_engine_open(c.model.path, &c.model.options, &c.engine, &c.why) != CERA_OK) c.engine = NULL;
    if (c.json)
        show_json(&c);
    else
        show(&c);
    const bool no_plan = c.plan && !c.engine;
    if (no_plan) cera_report(&c.why);
    cera_engine_close(c.engine);
    cera_model_file_close(c.file);
    return no_plan ? CERA_EXIT_FAILED : CERA_EXIT_OK;
}
