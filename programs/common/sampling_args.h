/* sampling_args.h: the flags of the sampler. What is not given comes from the model's metadata, else from the defaults
 * (cera.h). */
#ifndef CERA_PROGRAMS_SAMPLING_ARGS_H
#define CERA_PROGRAMS_SAMPLING_ARGS_H

#include "cera.h"
#include "common/args.h"

enum { CERA_SAMPLING_ARGS_ROWS = 32, CERA_SAMPLING_ARGS_BIASES = 256 };

typedef struct cera_sampling_args {
    cera_sampler_options flags; /* values of the flags that were given */
    bool given[CERA_SAMPLING_ARGS_ROWS];
    uint32_t choice;        /* cera_sampler_options.choice */
    cera_arg_list biases;   /* "ID+VALUE" or "ID-VALUE" */
    cera_arg_list breakers; /* texts */
    cera_arg rows[CERA_SAMPLING_ARGS_ROWS];
} cera_sampling_args;

cera_arg_table cera_sampling_args_table(cera_sampling_args *s);
/* Creates the sampler; *used are the options it has, with a seed drawn from the clock when none was given. -1, or an exit
 * status. */
int cera_sampling_args_create(const cera_sampling_args *s, const cera_engine *engine, cera_sampler_options *used,
                              cera_sampler **out);

#endif
