/* signals.c: see signals.h. Handlers use async-signal-safe calls only. */
#include "common/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Atomic(cera_session *) watched;
static atomic_int interrupts;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    cera_session *s = atomic_load(&watched);
    if (atomic_fetch_add(&interrupts, 1) > 0 || !s) _exit(130);
    cera_session_cancel(s);
}

static void say(const char *text) {
    size_t n = strlen(text);
    while (n > 0) {
        const ssize_t done = write(STDERR_FILENO, text, n);
        if (done <= 0) return;
        text += done;
        n -= (size_t)done;
    }
}

/* The pages of a mapped file that was cut short are gone: there is nothing to go back to. */
static void on_bus_error(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)context;
    const char *path = cera_mapped_path_at(info->si_addr);
    if (!path) { /* not ours: let the default action name it */
        signal(SIGBUS, SIG_DFL);
        return;
    }
    say("cera: ");
    say(path);
    say(": the file was shortened or could not be read while it was mapped; --no-mmap is immune to that\n");
    _exit(1);
}

void cera_signals_install(void) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    sigemptyset(&a.sa_mask);
    a.sa_handler = on_interrupt;
    sigaction(SIGINT, &a, NULL);
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
    a.sa_handler = NULL;
    a.sa_sigaction = on_bus_error;
    a.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &a, NULL);
}

void cera_signals_watch(cera_session *session) { atomic_store(&watched, session); }
bool cera_interrupted(void) { return atomic_load(&interrupts) > 0; }
void cera_signals_clear(void) { atomic_store(&interrupts, 0); }
