/* exports.c: the public functions that are defined in lower layers (sessions in engine, the sampler in sample), each named
 * once. The library is linked from this layer down, and a linker takes only what somebody names: without this list libcera.so
 * would lack them. */
#include "cera.h"

typedef void (*cera_exported)(void);
extern const cera_exported cera_api_exports[];

#define EXPORT(name) (cera_exported) name

const cera_exported cera_api_exports[] = {
    /* engine.c */
    EXPORT(cera_kv_dtype_parse),
    EXPORT(cera_kv_dtype_name),
    EXPORT(cera_engine_open),
    EXPORT(cera_engine_open_memory),
    EXPORT(cera_engine_close),
    EXPORT(cera_engine_info),
    EXPORT(cera_engine_tokenizer),
    EXPORT(cera_engine_n_ops),
    EXPORT(cera_engine_describe_op),
    EXPORT(cera_engine_profile),
    EXPORT(cera_engine_n_profile_rows),
    EXPORT(cera_engine_profile_row),
    EXPORT(cera_sampler_defaults),
    /* chat_template.c */
    EXPORT(cera_engine_chat_template),
    /* step.c */
    EXPORT(cera_engine_step),
    /* tokenizer.c */
    EXPORT(cera_tokenizer_open),
    EXPORT(cera_tokenizer_open_memory),
    EXPORT(cera_tokenizer_close),
    EXPORT(cera_tokenizer_encode),
    EXPORT(cera_tokenizer_decode),
    EXPORT(cera_tokenizer_piece),
    EXPORT(cera_tokenizer_size),
    EXPORT(cera_tokenizer_bos),
    EXPORT(cera_tokenizer_eos),
    EXPORT(cera_tokenizer_adds_bos),
    EXPORT(cera_tokenizer_is_eog),
    EXPORT(cera_tokenizer_find),
    /* sampler.c */
    EXPORT(cera_sampler_create),
    EXPORT(cera_sampler_destroy),
    EXPORT(cera_sampler_sample),
    EXPORT(cera_sampler_sample_allowed),
    EXPORT(cera_logprobs),
    /* session.c */
    EXPORT(cera_session_create),
    EXPORT(cera_session_destroy),
    EXPORT(cera_session_fork),
    EXPORT(cera_session_append),
    EXPORT(cera_session_append_with),
    EXPORT(cera_session_position),
    EXPORT(cera_session_context),
    EXPORT(cera_session_tokens),
    EXPORT(cera_session_logits),
    EXPORT(cera_session_rewind),
    EXPORT(cera_session_reset),
    EXPORT(cera_session_cancel),
    /* generate.c */
    EXPORT(cera_session_generate),
    EXPORT(cera_finish_name),
};
