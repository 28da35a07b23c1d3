/* tokenizer_json_parts.c: the normalizer and the pre_tokenizer of a tokenizer.json as rules of the vocabulary: normal form,
 * spaces, and the stages of the pre-tokenizer. Owns the translation of each type; refuses the others by name. */
#include "text/tokenizer_json_int.h"

enum { MAX_NESTING = 4 };

static bool pattern_is(const cera_json *v, const char *kind, const char *text) {
    return cera_tokjson_is(cera_tokjson_text(cera_tokjson_get(v, "pattern"), kind), text);
}

/* ---- normalizer ---------------------------------------------------------------------------------------------------------- */

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static cera_status read_charsmap(tokjson *r, cera_text_view t) {
    while (t.size && t.text[t.size - 1] == '=') t.size--;
    char *out = cera_tokjson_alloc(r, t.size, 1);
    if (!out) return CERA_ERR_MEMORY;
    size_t n = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < t.size; i++) {
        int value = base64_value(t.text[i]);
        if (value < 0)
            return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: precompiled_charsmap: byte %zu is not base64", i);
        bits = bits << 6 | (uint32_t)value;
        if (i % 4) out[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    r->d.charsmap = (cera_text_view){out, n};
    return CERA_OK;
}

static void read_bert(tokjson *r, const cera_json *v) {
    r->d.lowercase = cera_tokjson_true(v, "lowercase", true);
    r->d.strip_accents = cera_tokjson_true(v, "strip_accents", r->d.lowercase != 0);
}

/* " " to U+2581 is how SentencePiece spells spaces; runs of spaces into one is its removal of extra white space. */
static cera_status read_replace(tokjson *r, const cera_json *v) {
    cera_text_view content = cera_tokjson_text(v, "content");
    bool block = cera_tokjson_is(content, "\u2581");
    if (pattern_is(v, "String", " ") && block) {
        r->d.escape_whitespaces = 1;
        return CERA_OK;
    }
    if (pattern_is(v, "Regex", " {2,}") && (block || cera_tokjson_is(content, " "))) {
        r->d.remove_extra_whitespaces = 1;
        return CERA_OK;
    }
    return cera_tokjson_refuse(r, "normalizer Replace with content", content);
}

cera_status cera_tokjson_normalizer(tokjson *r, const cera_json *v, unsigned depth) {
    cera_text_view type = cera_tokjson_text(v, "type");
    if (!v) return CERA_OK;
    if (cera_tokjson_is(type, "Sequence") && depth < MAX_NESTING) {
        const cera_json *list = cera_tokjson_get(v, "normalizers");
        for (uint32_t i = 0; list && i < list->n; i++) CERA_TRY(cera_tokjson_normalizer(r, &list->items[i], depth + 1));
        return CERA_OK;
    }
    if (cera_tokjson_is(type, "Replace")) return read_replace(r, v);
    if (cera_tokjson_is(type, "Precompiled")) return read_charsmap(r, cera_tokjson_text(v, "precompiled_charsmap"));
    if (cera_tokjson_is(type, "NFC")) {
        r->rules.nfc = true;
    } else if (cera_tokjson_is(type, "Prepend") && cera_tokjson_is(cera_tokjson_text(v, "prepend"), "\u2581")) {
        r->d.add_space_prefix = 1;
    } else if (cera_tokjson_is(type, "BertNormalizer") && cera_tokjson_is(cera_tokjson_text(r->model, "type"), "WordPiece")) {
        read_bert(r, v);
    } else if (cera_tokjson_is(type, "Strip") && cera_tokjson_is(cera_tokjson_text(r->model, "type"), "Unigram")) {
        r->d.remove_extra_whitespaces = 1; /* stands beside the replacement of runs, as SentencePiece does both */
    } else {
        return cera_tokjson_refuse(r, "normalizer", type);
    }
    return CERA_OK;
}

/* ---- pre_tokenizer ------------------------------------------------------------------------------------------------------- */

static cera_status add_stage(tokjson *r, cera_text_view regex) {
    if (r->rules.n_stages == CERA_PRETOK_MAX_STAGES) {
        return cera_fail(r->e, CERA_ERR_UNSUPPORTED, "tokenizer.json: pre_tokenizer has more than %d stages",
                         CERA_PRETOK_MAX_STAGES);
    }
    if (memchr(regex.text, 0, regex.size)) return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: a regex holds a NUL");
    char *copy = cera_arena_text(r->arena, regex.text, regex.size);
    if (!copy) return cera_fail(r->e, CERA_ERR_MEMORY, "tokenizer.json: out of memory");
    r->stages[r->rules.n_stages++] = copy;
    return CERA_OK;
}

static cera_status add_fixed(tokjson *r, const char *regex) { return add_stage(r, (cera_text_view){regex, strlen(regex)}); }

/* A literal text as a regex. */
static cera_status add_literal(tokjson *r, cera_text_view text) {
    char *regex = cera_tokjson_alloc(r, 2 * text.size + 1, 1);
    size_t n = 0;
    if (!regex) return CERA_ERR_MEMORY;
    for (size_t i = 0; i < text.size; i++) {
        if (strchr("\\^$.|?*+()[]{}/-", text.text[i]) && text.text[i]) regex[n++] = '\\';
        regex[n++] = text.text[i];
    }
    return add_stage(r, (cera_text_view){regex, n});
}

/* A regex that keeps its matches and drops the rest (Removed, inverted) matches everything in the files that are written so. */
static cera_status read_split(tokjson *r, const cera_json *v) {
    cera_text_view behavior = cera_tokjson_text(v, "behavior");
    const cera_json *pattern = cera_tokjson_get(v, "pattern");
    cera_text_view regex = cera_tokjson_text(pattern, "Regex"), literal = cera_tokjson_text(pattern, "String");
    bool inverted = cera_tokjson_true(v, "invert", false);
    if (r->d.escape_whitespaces && cera_tokjson_is(literal, " ")) return CERA_OK; /* no space is left to split at */
    if (!cera_tokjson_is(behavior, "Isolated") && !(cera_tokjson_is(behavior, "Removed") && inverted)) {
        return cera_tokjson_refuse(r, "pre_tokenizer Split with behavior", behavior);
    }
    return regex.size ? add_stage(r, regex) : add_literal(r, literal);
}

static cera_status read_byte_level(tokjson *r, const cera_json *v) {
    if (cera_tokjson_true(v, "add_prefix_space", true))
        return cera_tokjson_refuse(r, "pre_tokenizer ByteLevel with", (cera_text_view){"add_prefix_space", 16});
    r->byte_level = true;
    if (!cera_tokjson_true(v, "use_regex", true)) return CERA_OK;
    return add_fixed(r, cera_pretok_find("gpt-2")->stages[0]);
}

/* The older files say add_prefix_space, the newer ones prepend_scheme. */
static cera_status read_metaspace(tokjson *r, const cera_json *v) {
    cera_text_view scheme = cera_tokjson_text(v, "prepend_scheme");
    bool never = cera_tokjson_is(scheme, "never") || !cera_tokjson_true(v, "add_prefix_space", true);
    r->d.escape_whitespaces = 1;
    r->d.add_space_prefix = !never;
    r->rules.prefix_first_only = cera_tokjson_is(scheme, "first");
    r->rules.prefix_unless_space = true;
    bool unigram = cera_tokjson_is(cera_tokjson_text(r->model, "type"), "Unigram");
    if (unigram || !cera_tokjson_true(v, "split", true)) return CERA_OK;
    return add_fixed(r, " [^ ]*|[^ ]+");
}

static cera_status read_punctuation(tokjson *r, const cera_json *v) {
    cera_text_view behavior = cera_tokjson_text(v, "behavior");
    if (cera_tokjson_is(behavior, "Contiguous")) return add_fixed(r, "[\\p{P}$+<=>^`|~]+");
    if (behavior.size == 0 || cera_tokjson_is(behavior, "Isolated")) return add_fixed(r, "[\\p{P}$+<=>^`|~]");
    return cera_tokjson_refuse(r, "pre_tokenizer Punctuation with behavior", behavior);
}

cera_status cera_tokjson_pre_tokenizer(tokjson *r, const cera_json *v, unsigned depth) {
    cera_text_view type = cera_tokjson_text(v, "type");
    cera_text_view model = cera_tokjson_text(r->model, "type");
    if (!v) return CERA_OK;
    if (cera_tokjson_is(type, "Sequence") && depth < MAX_NESTING) {
        const cera_json *list = cera_tokjson_get(v, "pretokenizers");
        for (uint32_t i = 0; list && i < list->n; i++) CERA_TRY(cera_tokjson_pre_tokenizer(r, &list->items[i], depth + 1));
        return CERA_OK;
    }
    if (cera_tokjson_is(type, "Split")) return read_split(r, v);
    if (cera_tokjson_is(type, "ByteLevel")) return read_byte_level(r, v);
    if (cera_tokjson_is(type, "Metaspace")) return read_metaspace(r, v);
    if (cera_tokjson_is(type, "Punctuation")) return read_punctuation(r, v);
    if (cera_tokjson_is(type, "Digits"))
        return add_fixed(r, cera_tokjson_true(v, "individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    if (cera_tokjson_is(type, "BertPreTokenizer") && cera_tokjson_is(model, "WordPiece")) return CERA_OK;
    if (cera_tokjson_is(type, "WhitespaceSplit") && cera_tokjson_is(model, "Unigram")) {
        r->d.remove_extra_whitespaces = 1;
        return CERA_OK;
    }
    return cera_tokjson_refuse(r, "pre_tokenizer", type);
}
