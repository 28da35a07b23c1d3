/* cmd_chat_turns.c: the turns of a conversation, as memory and as JSON. The reader takes what the writer writes, and any other
 * array of objects with texts as "role" and "content". */
#include "cmd_chat.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output.h"

bool cera_chat_turns_add(cera_chat_turns *t, const char *role, const char *text, size_t size) {
    if (t->n == t->capacity) {
        const size_t capacity = t->capacity > 0 ? 2 * t->capacity : 16;
        cera_chat_turn *items = realloc(t->items, capacity * sizeof *items);
        if (!items) return false;
        t->items = items;
        t->capacity = capacity;
    }
    cera_chat_turn turn = {.role = strdup(role), .text = malloc(size + 1), .size = size};
    if (!turn.role || !turn.text) {
        free(turn.role);
        free(turn.text);
        return false;
    }
    if (size > 0) memcpy(turn.text, text, size);
    turn.text[size] = 0;
    t->items[t->n++] = turn;
    return true;
}

void cera_chat_turns_drop(cera_chat_turns *t, size_t n) {
    while (t->n > n) {
        t->n--;
        free(t->items[t->n].role);
        free(t->items[t->n].text);
    }
}

void cera_chat_turns_deinit(cera_chat_turns *t) {
    cera_chat_turns_drop(t, 0);
    free(t->items);
    *t = (cera_chat_turns){0};
}

char *cera_chat_turns_json(const cera_chat_turns *t) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputc('[', out);
    for (size_t i = 0; i < t->n; i++) {
        fputs(i > 0 ? ",\n {\"role\":" : "{\"role\":", out);
        cera_output_json_string(out, t->items[i].role, strlen(t->items[i].role));
        fputs(",\"content\":", out);
        cera_output_json_string(out, t->items[i].text, t->items[i].size);
        fputc('}', out);
    }
    fputc(']', out);
    return fclose(out) == 0 ? text : NULL;
}

/* ---- reading ---- */

static void blanks(const char **at) { *at += strspn(*at, " \t\r\n"); }

static bool take(const char **at, char c) {
    blanks(at);
    if (**at != c) return false;
    ++*at;
    return true;
}

static bool hex4(const char **at, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, ++*at) {
        const char c = **at;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return false;
        *out = *out * 16 + (uint32_t)digit;
    }
    return true;
}

static void put_utf8(FILE *out, uint32_t c) {
    if (c >= 0xD800 && c < 0xE000) c = 0xFFFD; /* half a pair */
    if (c < 0x80) {
        fputc((int)c, out);
    } else if (c < 0x800) {
        fprintf(out, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        fprintf(out, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    } else {
        fprintf(out, "%c%c%c%c", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 63)), (int)(0x80 | (c >> 6 & 63)),
                (int)(0x80 | (c & 63)));
    }
}

static bool escape(const char **at, FILE *out) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    const char e = *(*at)++;
    if (e != 'u') {
        const char *name = e ? strchr(names, e) : NULL;
        if (name) fputc(values[name - names], out);
        return name != NULL;
    }
    if (!hex4(at, &c)) return false;
    if (c >= 0xD800 && c < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        const char *after = *at + 2;
        if (hex4(&after, &low) && low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            *at = after;
        }
    }
    put_utf8(out, c);
    return true;
}

/* A JSON string; heap memory, NULL when there is none. */
static char *string(const char **at, size_t *size) {
    char *text = NULL;
    if (!take(at, '"')) return NULL;
    FILE *out = open_memstream(&text, size);
    bool good = out != NULL;
    while (good && **at != '"') {
        const char c = *(*at)++;
        if ((unsigned char)c < 0x20)
            good = false;
        else if (c == '\\')
            good = escape(at, out);
        else
            fputc(c, out);
    }
    if (out && fclose(out) != 0) good = false;
    if (good) {
        ++*at;
        return text;
    }
    free(text);
    return NULL;
}

static bool member(const char **at, char **role, char **content, size_t *content_size) {
    size_t n;
    char *name = string(at, &n), *value = name && take(at, ':') ? string(at, &n) : NULL;
    const bool is_role = name && strcmp(name, "role") == 0, is_content = name && strcmp(name, "content") == 0;
    if (value && is_content) *content_size = n;
    free(name);
    if (!value) return false;
    char **slot = is_role ? role : is_content ? content : NULL;
    if (!slot) {
        free(value);
        return true;
    }
    free(*slot);
    *slot = value;
    return true;
}

static bool message(const char **at, cera_chat_turns *t) {
    char *role = NULL, *content = NULL;
    size_t size = 0;
    bool good = take(at, '{');
    for (bool more = good && !take(at, '}'); more;) {
        good = member(at, &role, &content, &size);
        more = good && take(at, ',');
        if (good && !more) good = take(at, '}');
    }
    good = good && role && content && cera_chat_turns_add(t, role, content, size);
    free(role);
    free(content);
    return good;
}

bool cera_chat_turns_parse(cera_chat_turns *t, const char *text) {
    cera_chat_turns own = {0};
    bool good = take(&text, '[');
    for (bool more = good && !take(&text, ']'); more;) {
        good = message(&text, &own);
        more = good && take(&text, ',');
        if (good && !more) good = take(&text, ']');
    }
    blanks(&text);
    if (!good || *text != 0) {
        cera_chat_turns_deinit(&own);
        return false;
    }
    cera_chat_turns_deinit(t);
    *t = own;
    return true;
}
