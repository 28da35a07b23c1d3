/* main.c: the program `cera`: finds the subcommand and runs it. What a command does is in its cmd_<name>.c. */
#include <stdio.h>
#include <string.h>

#include "cera.h"
#include "commands.h"
#include "common/args.h"
#include "common/output.h"
#include "common/signals.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", cera_cmd_run, "generate text from a prompt"},
    {"chat", cera_cmd_chat, "talk with a model, turn by turn"},
    {"bench", cera_cmd_bench, "measure speed and memory"},
    {"logits", cera_cmd_logits, "the model's raw output for given tokens"},
    {"tokenize", cera_cmd_tokenize, "text to token ids and back"},
    {"inspect", cera_cmd_inspect, "what a model file holds, whether it fits, its plan"},
    {"template", cera_cmd_template, "render a chat template, take an answer apart"},
    {"grammar", cera_cmd_grammar, "check texts against a grammar, a JSON Schema or a regular expression"},
    {"cpu", cera_cmd_cpu, "what this machine offers"},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *out) {
    fputs("usage: cera COMMAND [flags]\n\n", out);
    for (int i = 0; i < N_COMMANDS; i++) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\ncera COMMAND --help lists a command's flags; cera --version prints the version.\n", out);
    return out == stdout ? CERA_EXIT_OK : CERA_EXIT_USAGE;
}

static int no_such_command(const char *name) {
    const char *names[N_COMMANDS + 2] = {"help"};
    for (int i = 0; i < N_COMMANDS; i++) names[i + 1] = commands[i].name;
    const char *nearest = cera_args_nearest(name, names);
    if (nearest) return cera_args_usage_error("%s: no such command; did you mean %s?", name, nearest);
    return cera_args_usage_error("%s: no such command; cera help lists them", name);
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) return help(stderr);
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("cera %s\n", cera_version());
        return CERA_EXIT_OK;
    }
    char help_flag[] = "--help";
    const bool asks_help = strcmp(name, "help") == 0;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (asks_help && argc < 3)) return help(stdout);
    if (asks_help) name = argv[2];
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) {
            if (!asks_help) return commands[i].run(argc - 1, argv + 1);
            char *help_argv[] = {argv[2], help_flag, NULL};
            return commands[i].run(2, help_argv);
        }
    return no_such_command(name);
}

int main(int argc, char **argv) {
    cera_signals_install();
    return cera_output_end(dispatch(argc, argv));
}
