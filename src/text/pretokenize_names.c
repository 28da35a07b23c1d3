/* pretokenize_names.c: the named pre-tokenizers of GGUF files (tokenizer.ggml.pre) as the regexes of the models' own
 * tokenizer.json, and the rules that llama.cpp ties to a name (llama-vocab.cpp). Where llama.cpp writes an approximation of a
 * regex because its engine lacks \p{Lu} or look-ahead, the original stands here. Owns data only. */
#include "text/pretokenize.h"

#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define OTHERS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define WORDS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 CONTRACTIONS "|" WORDS "|\\p{N}{1,3}" OTHERS SPACES
#define QWEN2 CONTRACTIONS "|" WORDS "|\\p{N}" OTHERS SPACES
#define QWEN35 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES

/* Words by case, as o200k has them: capitals then small letters, so that "HelloWorld" is two pieces. */
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASED(no, tail) \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER no "]*[" LOWER no "]+" tail "|[^\\r\\n\\p{L}\\p{N}]?[" UPPER no "]+[" LOWER no "]*" tail
#define SLASHED "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define O200K CASED("", CONTRACTIONS "?") "|\\p{N}{1,3}" SLASHED SPACES
#define TEKKEN CASED("", "") "|\\p{N}" SLASHED SPACES
#define KIMI "[\\p{Han}]+|" CASED("&&[^\\p{Han}]", CONTRACTIONS "?") "|\\p{N}{1,3}" OTHERS SPACES

#define PUNCTUATED "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define HAN_KANA "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
#define DEEPSEEK3 PUNCTUATED "| ?[\\p{P}\\p{S}]+[\\r\\n]*" SPACES
#define DEEPSEEK_CJK "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
#define DEEPSEEK_CASED                                                                                  \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"        \
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5"   \
    "\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"       \
    "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45"       \
    "\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe"         \
    "\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102" \
    "\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"          \
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"   \
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"       \
    "\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"                 \
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"              \
    "\U0001e900-\U0001e943"
#define POINTS " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

static const cera_pretok_info infos[] = {
    {.name = "default", .stages = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {.name = "llama3", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-bpe", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "falcon3", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "falcon-h1", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "pixtral", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "midm-2.0", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "lfm2", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "jina-v5-nano", .stages = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "smaug-bpe", .stages = {LLAMA3}},
    {.name = "smollm3", .stages = {LLAMA3}},
    {.name = "dbrx", .stages = {LLAMA3}},
    {.name = "glm4", .stages = {LLAMA3}},
    {.name = "chatglm-bpe", .stages = {LLAMA3}},
    {.name = "minicpm5", .stages = {"\\p{N}{1,3}", CONTRACTIONS "|" WORDS "|\\p{N}+" OTHERS SPACES}, .ignore_merges = true},
    {.name = "gpt-2", .stages = {GPT2}},
    {.name = "phi-2", .stages = {GPT2}},
    {.name = "olmo", .stages = {GPT2}},
    {.name = "mpt", .stages = {GPT2}},
    {.name = "jais", .stages = {GPT2}},
    {.name = "trillion", .stages = {GPT2}},
    {.name = "granite-docling", .stages = {GPT2}},
    {.name = "gigachat", .stages = {GPT2}},
    {.name = "jina-es", .stages = {GPT2}},
    {.name = "jina-de", .stages = {GPT2}},
    {.name = "jina-v2-es", .stages = {GPT2}},
    {.name = "jina-v2-de", .stages = {GPT2}},
    {.name = "a.x-4.0", .stages = {GPT2}},
    {.name = "mellum", .stages = {GPT2}},
    {.name = "modern-bert", .stages = {GPT2}},
    {.name = "exaone4", .stages = {GPT2}},
    {.name = "jina-v1-en", .stages = {GPT2}},
    {.name = "jina-v2-code", .stages = {GPT2}},
    {.name = "roberta-bpe", .stages = {GPT2}},
    {.name = "starcoder", .stages = {"\\p{N}", GPT2}},
    {.name = "refact", .stages = {"\\p{N}", GPT2}},
    {.name = "command-r", .stages = {"\\p{N}", GPT2}},
    {.name = "smollm", .stages = {"\\p{N}", GPT2}},
    {.name = "codeshell", .stages = {"\\p{N}", GPT2}},
    {.name = "exaone", .stages = {"\\p{N}", GPT2}},
    {.name = "minerva-7b", .stages = {"\\p{N}", GPT2}},
    {.name = "mellum2", .stages = {"\\p{N}", GPT2}},
    {.name = "falcon", .stages = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.name = "qwen2", .stages = {QWEN2}},
    {.name = "deepseek-r1-qwen", .stages = {QWEN2}},
    {.name = "kormo", .stages = {QWEN2}},
    {.name = "f2llmv2", .stages = {QWEN2}},
    {.name = "stablelm2", .stages = {QWEN2}},
    {.name = "megrez", .stages = {QWEN2}},
    {.name = "hunyuan", .stages = {QWEN2}},
    {.name = "solar-open", .stages = {QWEN2}},
    {.name = "grok-2", .stages = {QWEN2}},
    {.name = "laguna", .stages = {"[^\\n]+|[\\n]+", QWEN2}},
    {.name = "qwen35", .stages = {QWEN35}},
    {.name = "ufakzeka", .stages = {WORDS "|\\p{N}" OTHERS SPACES}},
    {.name = "deepseek-llm",
     .stages = {"[\\r\\n]", "\\s?[" DEEPSEEK_CASED "]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                "\\s+$", DEEPSEEK_CJK, "\\p{N}+"}},
    {.name = "deepseek-coder", .stages = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_CJK, "\\p{N}"}},
    {.name = "deepseek-v3", .stages = {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}},
    {.name = "hunyuan-dense", .stages = {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}},
    {.name = "joyai-llm", .stages = {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}},
    {.name = "hy_v4", .stages = {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}},
    {.name = "spark2_5",
     .stages = {"\\p{N}{1,3}", HAN_KANA, PUNCTUATED "| ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+", "\\p{N}"}},
    {.name = "gpt-4o", .stages = {O200K}},
    {.name = "o200k", .stages = {O200K}},
    {.name = "llama4", .stages = {O200K}},
    {.name = "kanana2", .stages = {O200K}},
    {.name = "talkie", .stages = {O200K}},
    {.name = "minimax-m2", .stages = {O200K}},
    {.name = "granite-embed-multi-97m", .stages = {O200K}, .ignore_merges = true},
    {.name = "tekken", .stages = {TEKKEN}, .ignore_merges = true, .adds_bos = true},
    {.name = "kimi-k2", .stages = {KIMI}},
    {.name = "tiny_aya", .stages = {"\\d{1,3}(?=(?:\\d{3})*\\b)", O200K}},
    {.name = "cohere2moe", .stages = {"\\d{1,3}(?=(?:\\d{3})*\\b)", O200K}},
    {.name = "superbpe", .stages = {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
    {.name = "bailingmoe",
     .stages = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
                "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.name = "bailingmoe2",
     .stages = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
                "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.name = "llada-moe",
     .stages = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
                "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.name = "seed-coder", .stages = {CONTRACTIONS "|" WORDS "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" SPACES}},
    {.name = "exaone-moe",
     .stages = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| "
                             "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.name = "youtu",
     .stages = {"[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-"
                "\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|" HAN_KANA,
                CASED("", CONTRACTIONS "?") "|\\p{N}" SLASHED SPACES},
     .ignore_merges = true},
    {.name = "afmoe",
     .stages = {"\\p{AFMoE_digits}",
                "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-"
                "\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
                DEEPSEEK3}},
    {.name = "jais-2",
     .stages = {CONTRACTIONS "|" WORDS "|\\p{N}{1,3}" OTHERS
                             "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{"
                             "16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"}},
    {.name = "poro-chat", .stages = {POINTS}},
    {.name = "bloom", .stages = {POINTS}},
    {.name = "gpt3-finnish", .stages = {POINTS}},
    {.name = "viking", .stages = {POINTS, "\\p{N}"}},
    {.name = "chameleon",
     .stages = {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]", GPT2},
     .adds_bos = true},
    {.name = "gemma4", .stages = {"[^\\n]+|[\\n]+"}, .adds_bos = true, .raw = true, .escapes_spaces = true},
    {.name = "granite-embed-multi-311m", .stages = {"[^\\n]+|[\\n]+"}, .raw = true, .escapes_spaces = true},
    {.name = "sarvam-moe", .stages = {"[^\\n]+|[\\n]+"}, .raw = true, .escapes_spaces = true},
    {.name = "whitespace", .stages = {"\\S+"}, .raw = true},
};

const cera_pretok_info *cera_pretok_at(size_t index) { return index < sizeof infos / sizeof *infos ? &infos[index] : NULL; }

const cera_pretok_info *cera_pretok_find(const char *name) {
    for (size_t i = 0; i < sizeof infos / sizeof *infos; i++) {
        if (strcmp(infos[i].name, name) == 0) return &infos[i];
    }
    return NULL;
}
