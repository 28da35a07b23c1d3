/* families.c: the registry: general.architecture -> family. To add one, see docs/HOWTO-family.md. */
#include "model/registry_int.h"
#include <string.h>

/* X(family, its general.architecture) */
#define FAMILIES(X)             \
    X(llama, "llama")           \
    X(qwen2, "qwen2")           \
    X(qwen3, "qwen3")           \
    X(qwen2moe, "qwen2moe")     \
    X(qwen3moe, "qwen3moe")     \
    X(granite, "granite")       \
    X(granitemoe, "granitemoe") \
    X(gemma, "gemma")           \
    X(gemma2, "gemma2")         \
    X(gemma3, "gemma3")         \
    X(lfm2, "lfm2")             \
    X(lfm2moe, "lfm2moe")       \
    X(phi3, "phi3")             \
    X(smollm3, "smollm3")       \
    X(olmo2, "olmo2")           \
    X(gpt_oss, "gpt-oss")       \
    X(mistral3, "mistral3")     \
    X(starcoder2, "starcoder2") \
    X(command_r, "command-r")   \
    X(cohere2, "cohere2")       \
    X(deepseek2, "deepseek2")

#define ENTRY(family, arch) &cera_family_##family,
#define NAME(family, arch) arch,

static const cera_family *const all[] = {FAMILIES(ENTRY)};
static const char *const names[] = {FAMILIES(NAME) NULL};
enum { N_FAMILIES = sizeof all / sizeof all[0] };

const cera_family *cera_family_find(const char *arch) {
    for (int i = 0; i < N_FAMILIES; i++)
        if (!strcmp(names[i], arch)) return all[i];
    return NULL;
}

const char *const *cera_model_families(void) { return names; }
