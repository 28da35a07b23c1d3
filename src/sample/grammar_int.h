/* grammar_int.h: the insides of grammars and states, for grammar.c, grammar_trigger.c and tests. */
#ifndef CERA_SAMPLE_GRAMMAR_INT_H
#define CERA_SAMPLE_GRAMMAR_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/arena.h"
#include "sample/gbnf_int.h"
#include "sample/mask_int.h"

struct cera_schema;

struct cera_grammar {
    cera_automaton a;
    cera_masker masker;
    cera_configs start;
    uint32_t start_rule;
    cera_expr root; /* regex */
    cera_gbnf gbnf;
    struct cera_schema *schema;
    cera_arena *json;     /* the schema's tree */
    pthread_mutex_t lock; /* around the automaton and the masker */
    atomic_int refs;
};

enum { CERA_TRIGGER_MAX = 256 }; /* bytes of a trigger's text */

typedef struct cera_trigger { /* a copy of the caller's, shared by clones */
    char **texts;
    size_t *sizes, n_texts, longest;
    int32_t *ids;
    size_t n_ids;
    bool includes_text, rearm;
    atomic_int refs;
} cera_trigger;

struct cera_grammar_state {
    struct cera_grammar *grammar;
    cera_trigger *trigger; /* NULL: none */
    cera_configs at, next; /* next is scratch */
    bool waiting, ended;
    uint64_t n_bytes;
    size_t n_tail; /* while waiting: the last bytes of the text, in which a trigger may have begun */
    char tail[CERA_TRIGGER_MAX];
};

cera_status cera_trigger_create(const cera_grammar_trigger *from, cera_trigger **out, cera_error *e);
cera_trigger *cera_trigger_ref(cera_trigger *t);
void cera_trigger_unref(cera_trigger *t);
bool cera_trigger_has_token(const cera_trigger *t, int32_t id);
/* Reads text until a trigger is complete (then the state waits no more, and s->tail[*begin ..] is what the constraint starts
 * with) or the text ends. Returns how many bytes were read. */
size_t cera_trigger_scan(struct cera_grammar_state *s, const char *text, size_t n, size_t *begin);

#endif
