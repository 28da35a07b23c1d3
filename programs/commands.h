/* commands.h: the subcommands of the program. Each takes its own argv (argv[0] is its name) and returns an exit status. */
#ifndef CERA_PROGRAMS_COMMANDS_H
#define CERA_PROGRAMS_COMMANDS_H

int cera_cmd_run(int argc, char **argv);
int cera_cmd_chat(int argc, char **argv);
int cera_cmd_logits(int argc, char **argv);
int cera_cmd_tokenize(int argc, char **argv);
int cera_cmd_inspect(int argc, char **argv);
int cera_cmd_bench(int argc, char **argv);
int cera_cmd_template(int argc, char **argv);
int cera_cmd_grammar(int argc, char **argv);
int cera_cmd_cpu(int argc, char **argv);

#endif
