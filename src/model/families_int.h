/* families_int.h: the family files' entries for the registry in families.c. */
#ifndef CERA_MODEL_FAMILIES_INT_H
#define CERA_MODEL_FAMILIES_INT_H

#include "model/model_int.h"

extern const cera_family cera_family_llama, cera_family_qwen2, cera_family_qwen3, cera_family_qwen2moe, cera_family_qwen3moe,
    cera_family_granite, cera_family_granitemoe, cera_family_gemma, cera_family_gemma2, cera_family_gemma3, cera_family_lfm2,
    cera_family_lfm2moe, cera_family_phi3, cera_family_smollm3, cera_family_olmo2, cera_family_gpt_oss, cera_family_mistral3,
    cera_family_starcoder2, cera_family_command_r, cera_family_cohere2, cera_family_deepseek2;

#endif
