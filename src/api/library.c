/* library.c: what the public interface says about the library and the machine it runs on. */
#include <string.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/options.h"
#include "model/model.h"

#ifndef CERA_VERSION
#    define CERA_VERSION "0.1.0"
#endif

const char *cera_version(void) { return CERA_VERSION; }

void cera_release(void *memory) { cera_free(memory); }

const char *cera_mapped_path_at(const void *address) { return cera_file_at_address(address); }

const char *const *cera_architectures(void) { return cera_model_families(); }

/* ---- messages ---- */

/* The log's callback and the public one differ in the type of the level only. Set before other threads use the library. */
static cera_message_fn message_fn;

static void pass_on(void *ctx, cera_log_level level, const char *text) { message_fn(ctx, (cera_message_level)level, text); }

_Static_assert((int)CERA_MESSAGE_WARN == (int)CERA_LOG_WARN, "levels are the log's");

void cera_set_messages(cera_message_fn fn, void *ctx) {
    message_fn = fn;
    cera_log_set(fn ? pass_on : NULL, ctx);
}

/* ---- machine ---- */

/* Adds a word after a blank, if it fits. */
static void add_word(char *text, size_t capacity, const char *word) {
    const size_t at = strlen(text), n = strlen(word);
    if (at + n + 2 > capacity) return;
    if (at > 0) text[at] = ' ';
    memcpy(text + at + (at > 0), word, n + 1);
}

cera_status cera_machine_get(cera_machine *m, cera_error *e) {
    if (!m) return cera_fail(e, CERA_ERR_ARGUMENT, "cera_machine_get: m must not be NULL");
    cera_machine own = {.size = sizeof own};
    cera_cpu_model(own.cpu, (int)sizeof own.cpu);
    for (uint32_t bit = 1; bit != 0; bit <<= 1)
        if ((cera_cpu_features() & bit) && cera_cpu_feature_name(bit))
            add_word(own.features, sizeof own.features, cera_cpu_feature_name(bit));
    for (int t = 0; t < CERA_TIER_COUNT; t++)
        if (cera_cpu_has_tier((cera_cpu_tier)t)) add_word(own.tiers, sizeof own.tiers, cera_cpu_tier_name((cera_cpu_tier)t));
    add_word(own.best_tier, sizeof own.best_tier, cera_cpu_tier_name(cera_cpu_best_tier()));
    own.threads = cera_cpu_allowed_threads();
    own.memory_bytes = cera_cpu_available_memory();
    return cera_options_give("cera_machine", m, &own, sizeof own, e);
}
