/* pretokenize.h: splits text into the pieces ("pre-tokens") that byte-level BPE merges within. A pre-tokenizer is a list of
 * stages, each a regular expression: its matches and the gaps between them become pieces, which the next stage splits further;
 * look-ahead sees no further than the piece. Owns the table of named pre-tokenizers (GGUF's tokenizer.ggml.pre) and the regex
 * subset they are written in; knows nothing of vocabularies. A compiled pre-tokenizer is immutable: any thread.
 *
 * The subset: literals, classes with \s \d \p{..} \P{..} and && [^..], groups, (?i:..), ? * + {m,n} with possessive +, (?=..)
 * (?!..), $ (end of the piece), alternation. First match wins, greedy, as in Perl. What is outside is refused with its
 * position. A group that repeats more than once must end its alternative: it is never re-entered. */
#ifndef CERA_TEXT_PRETOKENIZE_H
#define CERA_TEXT_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include "base/status.h"

enum { CERA_PRETOK_MAX_STAGES = 12, CERA_PRETOK_MAX_PATTERN = 8192 };

typedef struct cera_pretok cera_pretok;

/* What a name stands for, with the rules that come with it. */
typedef struct cera_pretok_info {
    const char *name;
    const char *stages[7]; /* regexes in order, NULL-terminated */
    bool ignore_merges;    /* a piece that is a token becomes that token without merging */
    bool adds_bos;         /* the default when the file does not say */
    bool raw;              /* tokens are spelled in UTF-8 with U+2581 for the space, not in GPT-2's byte alphabet */
    bool escapes_spaces;   /* raw: spaces become U+2581 */
} cera_pretok_info;

const cera_pretok_info *cera_pretok_find(const char *name); /* NULL: unknown */
const cera_pretok_info *cera_pretok_at(size_t index);       /* NULL past the end */

cera_status cera_pretok_create(const char *const *stages, size_t n_stages, cera_pretok **out, cera_error *e);
void cera_pretok_destroy(cera_pretok *p);

/* Called for each piece, in order; the pieces cover the text without gaps. Another status than CERA_OK stops and is returned.
 */
typedef cera_status (*cera_pretok_fn)(void *ctx, const char *piece, size_t size);

/* Invalid UTF-8: each byte that begins no valid character counts as one unassigned character. Time is linear in n for the named
 * pre-tokenizers; a regex from a file that backtracks too much gives CERA_ERR_LIMIT. */
cera_status cera_pretok_split(const cera_pretok *p, const char *text, size_t n, cera_pretok_fn fn, void *ctx, cera_error *e);

#endif
