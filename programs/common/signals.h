/* signals.h: Ctrl-C cancels the session that runs (or ends the program when none does); a mapped model file that shrinks ends
 * the program with its name; a closed pipe is an error of write, not a signal. */
#ifndef CERA_PROGRAMS_SIGNALS_H
#define CERA_PROGRAMS_SIGNALS_H

#include <stdbool.h>

#include "cera.h"

void cera_signals_install(void);
/* The session that the first Ctrl-C cancels; NULL: Ctrl-C ends the program. A second one ends it in any case. */
void cera_signals_watch(cera_session *session);
bool cera_interrupted(void);
void cera_signals_clear(void); /* the next Ctrl-C is the first again */

#endif
