/* chat_names.c: templates for models whose files have none, by the name of their format. Written here from the formats'
 * descriptions; each gives what the format's own tokenizer configuration gives for plain turns. No tools: those need the
 * model's own template. */
#include <string.h>
#include "text/chat.h"

#define FIRST_SYSTEM                                                                                                          \
    "{%- if messages and messages[0].role == 'system' %}{% set system = messages[0].content %}{% set turns = messages[1:] %}" \
    "{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}"

static const char chatml[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static const char llama2[] = FIRST_SYSTEM
    "{% for m in turns %}{% if m.role == 'user' %}{{ bos_token + '[INST] ' }}"
    "{% if loop.index0 == 0 and system %}{{ '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' }}{% endif %}{{ m.content.strip() + ' "
    "[/INST]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content.strip() + ' ' + eos_token }}"
    "{% else %}{{ raise_exception('llama2 knows the roles system (first), user and assistant') }}{% endif %}{% endfor %}";

static const char llama3[] =
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

static const char llama4[] =
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|header_start|>' + m.role + '<|header_end|>\\n\\n' + m.content | trim + '<|eot|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|header_start|>assistant<|header_end|>\\n\\n' }}{% endif %}";

static const char mistral[] = FIRST_SYSTEM
    "{{ bos_token }}{% for m in turns %}{% if m.role == 'user' %}"
    "{{ '[INST] ' + ((system + '\\n\\n') if system and loop.index0 == 0 else '') + m.content + ' [/INST]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}"
    "{% else %}{{ raise_exception('mistral knows the roles system (first), user and assistant') }}{% endif %}{% endfor %}";

static const char mistral_v7[] =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' }}"
    "{% elif m.role == 'user' %}{{ '[INST]' + m.content + '[/INST]' }}{% else %}{{ m.content + eos_token }}{% endif %}{% "
    "endfor %}";

static const char gemma[] = FIRST_SYSTEM
    "{{ bos_token }}{% for m in turns %}{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}"
    "{% if loop.index0 == 0 and system %}{{ system | trim + '\\n\\n' }}{% endif %}{{ m.content | trim + '<end_of_turn>\\n' "
    "}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

static const char phi3[] = "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
                           "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

static const char phi4[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}";

static const char zephyr[] = "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}{% endfor %}"
                             "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

static const char deepseek2[] =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ 'User: ' + m.content + '\\n\\n' }}"
    "{% elif m.role == 'assistant' %}{{ 'Assistant: ' + m.content + eos_token }}{% else %}{{ m.content + '\\n\\n' }}{% endif "
    "%}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

static const char deepseek3[] = FIRST_SYSTEM
    "{{ bos_token + system }}{% for m in turns %}{% if m.role == 'user' %}{{ '<｜User｜>' + m.content }}"
    "{% elif m.role == 'assistant' %}{{ '<｜Assistant｜>' + m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}";

static const char granite[] = "{% for m in messages %}{{ '<|start_of_role|>' + m.role + '<|end_of_role|>' + m.content + "
                              "'<|end_of_text|>\\n' }}{% endfor %}"
                              "{% if add_generation_prompt %}{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}";

static const char command_r[] =
    "{{ bos_token }}{% for m in messages %}{{ '<|START_OF_TURN_TOKEN|>' + {'system': '<|SYSTEM_TOKEN|>', 'user': "
    "'<|USER_TOKEN|>', "
    "'assistant': '<|CHATBOT_TOKEN|>'}[m.role] + m.content | trim + '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}";

static const char vicuna[] = FIRST_SYSTEM "{{ bos_token }}{% if system %}{{ system + '\\n\\n' }}{% endif %}{% for m in turns %}"
                                          "{% if m.role == 'user' %}{{ 'USER: ' + m.content + '\\n' }}{% else %}{{ 'ASSISTANT: "
                                          "' + m.content + eos_token + '\\n' }}{% endif %}{% endfor %}"
                                          "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}";

static const char alpaca[] =
    FIRST_SYSTEM "{% if system %}{{ system + '\\n\\n' }}{% endif %}{% for m in turns %}{% if m.role == 'user' %}{{ '### "
                 "Instruction:\\n' + m.content + '\\n\\n' }}"
                 "{% else %}{{ '### Response:\\n' + m.content + eos_token + '\\n\\n' }}{% endif %}{% endfor %}"
                 "{% if add_generation_prompt %}{{ '### Response:\\n' }}{% endif %}";

static const char openchat[] =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content + '<|end_of_turn|>' }}"
    "{% else %}{{ 'GPT4 Correct ' + m.role | title + ': ' + m.content + '<|end_of_turn|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'GPT4 Correct Assistant:' }}{% endif %}";

static const char falcon3[] = "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + (eos_token + '\\n' if m.role == "
                              "'assistant' else '\\n') }}{% endfor %}"
                              "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

static const char exaone3[] = "{% for m in messages %}{{ '[|' + m.role + '|]' + m.content | trim + ('\\n' if m.role == 'user' "
                              "else '[|endofturn|]\\n') }}{% endfor %}"
                              "{% if add_generation_prompt %}{{ '[|assistant|]' }}{% endif %}";

static const char glm4[] = "[gMASK]<sop>{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content }}{% endfor %}"
                           "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

static const char rwkv_world[] = "{% for m in messages %}{{ ('User: ' if m.role == 'user' else 'Assistant: ' if m.role == "
                                 "'assistant' else '') + m.content | trim + '\\n\\n' }}{% endfor %}"
                                 "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

static const struct {
    const char *name, *text;
} builtins[] = {{"chatml", chatml},       {"llama2", llama2},         {"llama3", llama3},       {"llama4", llama4},
                {"mistral", mistral},     {"mistral-v7", mistral_v7}, {"gemma", gemma},         {"phi3", phi3},
                {"phi4", phi4},           {"zephyr", zephyr},         {"deepseek2", deepseek2}, {"deepseek", deepseek3},
                {"deepseek3", deepseek3}, {"granite", granite},       {"command-r", command_r}, {"vicuna", vicuna},
                {"alpaca", alpaca},       {"openchat", openchat},     {"falcon3", falcon3},     {"exaone3", exaone3},
                {"glm4", glm4},           {"rwkv-world", rwkv_world}};

enum { N_BUILTINS = sizeof builtins / sizeof builtins[0] };

const char *cera_chat_builtin(const char *name) {
    for (size_t i = 0; i < N_BUILTINS; i++)
        if (!strcmp(builtins[i].name, name)) return builtins[i].text;
    return NULL;
}

const char *const *cera_chat_builtin_names(void) {
    static const char *const names[N_BUILTINS + 1] = {
        "chatml", "llama2",   "llama3",    "llama4",   "mistral",   "mistral-v7", "gemma",     "phi3",
        "phi4",   "zephyr",   "deepseek2", "deepseek", "deepseek3", "granite",    "command-r", "vicuna",
        "alpaca", "openchat", "falcon3",   "exaone3",  "glm4",      "rwkv-world", NULL};
    return names;
}
