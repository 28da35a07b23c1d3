/* cmd_cpu.c: `cera cpu`: what the machine offers and what cera takes of it. */
#include <stdio.h>
#include <string.h>

#include "cera.h"
#include "commands.h"
#include "common/args.h"
#include "common/model_args.h"
#include "common/output.h"

static void print_json(const cera_machine *m) {
    fputs("{\"cpu\": ", stdout);
    cera_output_json_string(stdout, m->cpu, strlen(m->cpu));
    printf(", \"threads\": %d, \"memory_bytes\": %llu, \"tier\": \"%s\", \"tiers\": [", (int)m->threads,
           (unsigned long long)m->memory_bytes, m->best_tier);
    for (const char *at = m->tiers; *at;) {
        const int n = (int)strcspn(at, " ");
        printf("%s\"%.*s\"", at > m->tiers ? ", " : "", n, at);
        at += n + (at[n] == ' ');
    }
    printf("], \"features\": \"%s\"}\n", m->features);
}

int cera_cmd_cpu(int argc, char **argv) {
    bool json = false;
    const cera_arg rows[] = {{"--json", NULL, "one JSON object", CERA_ARG_BOOL, &json, 0, 0, NULL}, {0}};
    const cera_arg_table tables[] = {{rows, "output"}, {0}};
    const cera_command_line line = {
        .command = "cpu",
        .usage = "cera cpu [--json]",
        .summary = "Shows the processor, the tiers that run on it, and the threads and memory this process may use.",
        .tables = tables,
    };
    const int status = cera_args_parse(&line, argc, argv);
    if (status >= 0) return status;
    cera_error e = {0};
    cera_machine m = {.size = sizeof m};
    if (cera_machine_get(&m, &e) != CERA_OK) return cera_report(&e);
    if (json)
        print_json(&m);
    else
        printf("processor  %s\nfeatures   %s\ntiers      %s\ntier       %s\nthreads    %d\nmemory     %.1f GiB available\n",
               m.cpu[0] ? m.cpu : "(not named)", m.features, m.tiers, m.best_tier, (int)m.threads,
               (double)m.memory_bytes / (1u << 30));
    return CERA_EXIT_OK;
}
