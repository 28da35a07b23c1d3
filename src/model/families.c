/* families.c: the registry: general.architecture -> family. To add one, see docs/HOWTO-family.md. */
#include "model/registry_int.h"
#include <string.h>

static const cera_family *const all[] = {
    &cera_family_llama,    &cera_family_qwen2,      &cera_family_qwen3,      &cera_family_qwen2moe,  &cera_family_qwen3moe,
    &cera_family_granite,  &cera_family_granitemoe, &cera_family_gemma,      &cera_family_gemma2,    &cera_family_gemma3,
    &cera_family_lfm2,     &cera_family_lfm2moe,    &cera_family_phi3,       &cera_family_smollm3,   &cera_family_olmo2,
    &cera_family_gpt_oss,  &cera_family_mistral3,   &cera_family_starcoder2, &cera_family_command_r, &cera_family_cohere2,
    &cera_family_deepseek2};
enum { N_FAMILIES = sizeof all / sizeof all[0] };

const cera_family *cera_family_find(const char *arch) {
    for (int i = 0; i < N_FAMILIES; i++)
        if (!strcmp(all[i]->arch, arch)) return all[i];
    return NULL;
}

const char *const *cera_model_families(void) {
    static const char *names[N_FAMILIES + 1];
    for (int i = 0; i < N_FAMILIES; i++) names[i] = all[i]->arch; /* the same values whoever writes them */
    return names;
}
