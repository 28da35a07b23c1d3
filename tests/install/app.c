/* app.c: a stranger's program: the smallest use of the installed libcera, which the install test builds in four ways. */
#include <cera.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    cera_machine machine;
    cera_error error;
    memset(&machine, 0, sizeof machine);
    memset(&error, 0, sizeof error);
    machine.size = sizeof machine;
    if (cera_machine_get(&machine, &error) != CERA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    cera_engine *engine = NULL;
    if (cera_engine_open("no-such-file.gguf", NULL, &engine, &error) == CERA_OK ||
        !strstr(error.message, "no-such-file.gguf")) {
        fprintf(stderr, "opening a file that is not there: '%s'\n", error.message);
        return 1;
    }
    printf("cera %s, %d threads, tier %s\n", cera_version(), (int)machine.threads, machine.best_tier);
    return machine.threads < 1;
}
