/* cmd_chat_line.c: lines for `cera chat`: libedit on a terminal, getline elsewhere. */
#include "cmd_chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef CERA_HAVE_LIBEDIT
#    include <histedit.h>

static EditLine *editor;
static History *lines;
static const char *current_prompt;

static char *prompt_of(EditLine *e) {
    (void)e;
    return (char *)current_prompt;
}

static bool open_editor(void) {
    HistEvent event;
    if (editor) return true;
    editor = el_init("cera", stdin, stdout, stderr);
    lines = history_init();
    if (!editor || !lines) return false;
    history(lines, &event, H_SETSIZE, 1000);
    el_set(editor, EL_PROMPT, prompt_of);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, lines);
    el_set(editor, EL_SIGNAL, 1); /* the terminal's mode is put back before our handler ends the program */
    return true;
}
#endif

static char *read_plain(const char *prompt) {
    char *line = NULL;
    size_t capacity = 0;
    if (isatty(STDIN_FILENO)) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    const ssize_t n = getline(&line, &capacity, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n > 0 && line[n - 1] == '\n') line[n - 1] = 0;
    return line;
}

char *cera_chat_read_line(const char *prompt) {
#ifdef CERA_HAVE_LIBEDIT
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && open_editor()) {
        int n = 0;
        HistEvent event;
        current_prompt = prompt;
        const char *line = el_gets(editor, &n);
        if (!line || n <= 0) return NULL;
        if (n > 1) history(lines, &event, H_ENTER, line);
        char *copy = strndup(line, (size_t)n);
        if (copy && n > 0 && copy[n - 1] == '\n') copy[n - 1] = 0;
        return copy;
    }
#endif
    return read_plain(prompt);
}

void cera_chat_close_lines(void) {
#ifdef CERA_HAVE_LIBEDIT
    if (editor) el_end(editor);
    if (lines) history_end(lines);
#endif
}
