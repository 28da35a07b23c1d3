/* tokenizer_json.c: a vocabulary from a Hugging Face tokenizer.json, and from the tokenizer_config.json beside it the names of
 * the special tokens. Translates its parts (normalizer, pre_tokenizer, model, added_tokens, post_processor) into a description
 * and rules; what they mean is the other files' business. What has no translation is refused by name: a silently different
 * tokenizer is a worse model. */
#include "text/tokenizer_json_int.h"

#include "base/file.h"

enum { MAX_TEMPLATE = 16 }; /* parts of a post-processor's template that are looked at; each costs a pass over the tokens */

/* ---- pieces of JSON --------------------------------------------------------------------------------------------------- */

const cera_json *cera_tokjson_get(const cera_json *object, const char *name) {
    const cera_json *v = object ? cera_json_get(object, name) : NULL;
    return v && v->kind == CERA_JSON_NULL ? NULL : v;
}

bool cera_tokjson_true(const cera_json *object, const char *name, bool fallback) {
    const cera_json *v = cera_tokjson_get(object, name);
    return v ? v->kind == CERA_JSON_TRUE : fallback;
}

cera_text_view cera_tokjson_text(const cera_json *object, const char *name) {
    const cera_json *v = cera_tokjson_get(object, name);
    return v && v->kind == CERA_JSON_STRING ? v->text : (cera_text_view){"", 0};
}

bool cera_tokjson_is(cera_text_view t, const char *text) { return t.size == strlen(text) && memcmp(t.text, text, t.size) == 0; }

cera_status cera_tokjson_refuse(tokjson *r, const char *field, cera_text_view what) {
    return cera_fail(r->e, CERA_ERR_UNSUPPORTED, "tokenizer.json: %s \"%.*s\" is not supported", field,
                     (int)(what.size < 80 ? what.size : 80), what.text);
}

void *cera_tokjson_alloc(tokjson *r, size_t n, size_t size) {
    void *p = cera_arena_alloc(r->arena, n ? n : 1, size);
    if (!p) cera_fail(r->e, CERA_ERR_MEMORY, "tokenizer.json: out of memory");
    return p;
}

/* ---- tokens ----------------------------------------------------------------------------------------------------------- */

/* Ids need not be dense, but a file of ten tokens may not ask for a vocabulary of a billion. */
static cera_status take_id(tokjson *r, const cera_json *v, const char *field, size_t *out) {
    int64_t id;
    if (!v || !cera_json_i64(v, &id) || id < 0 || id >= CERA_VOCAB_MAX_TOKENS ||
        (uint64_t)id >= 2 * (uint64_t)r->n_entries + 65536) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: %s: a token id is missing or out of range", field);
    }
    *out = (size_t)id;
    return CERA_OK;
}

/* Sets a token's text. A later entry of the same id wins: added_tokens repeat those of the vocabulary. */
static void set_token(tokjson *r, size_t id, cera_text_view text, int64_t type) {
    r->tokens[id] = text;
    r->types[id] = type;
    if (id >= r->d.n_tokens) r->d.n_tokens = id + 1;
}

static cera_status read_vocab_object(tokjson *r, const cera_json *vocab) {
    for (uint32_t i = 0; i < vocab->n; i++) {
        size_t id = 0;
        CERA_TRY(take_id(r, &vocab->items[i], "model.vocab", &id));
        set_token(r, id, vocab->keys[i], CERA_TOKEN_NORMAL);
    }
    return CERA_OK;
}

static cera_status read_vocab_list(tokjson *r, const cera_json *vocab) {
    for (uint32_t i = 0; i < vocab->n; i++) {
        const cera_json *row = &vocab->items[i];
        double score;
        if (row->kind != CERA_JSON_ARRAY || row->n != 2 || row->items[0].kind != CERA_JSON_STRING ||
            !cera_json_f64(&row->items[1], &score)) {
            return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: model.vocab: entry %u is not [text, score]", i);
        }
        set_token(r, i, row->items[0].text, CERA_TOKEN_NORMAL);
        r->scores[i] = (float)score;
    }
    return CERA_OK;
}

static cera_status read_added(tokjson *r, const cera_json *added) {
    for (uint32_t i = 0; added && i < added->n; i++) {
        const cera_json *row = &added->items[i], *content = cera_tokjson_get(row, "content");
        size_t id = 0;
        CERA_TRY(take_id(r, cera_tokjson_get(row, "id"), "added_tokens", &id));
        if (!content || content->kind != CERA_JSON_STRING)
            return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: added_tokens: entry %u has no content", i);
        set_token(r, id, content->text, cera_tokjson_true(row, "special", false) ? CERA_TOKEN_CONTROL : CERA_TOKEN_USER);
        r->flags[id] = (uint8_t)((cera_tokjson_true(row, "lstrip", false) ? TOKEN_LSTRIP : 0) |
                                 (cera_tokjson_true(row, "rstrip", false) ? TOKEN_RSTRIP : 0));
    }
    return CERA_OK;
}

static cera_status read_tokens(tokjson *r, const cera_json *root) {
    const cera_json *vocab = cera_tokjson_get(r->model, "vocab"), *added = cera_tokjson_get(root, "added_tokens");
    if (!vocab || (vocab->kind != CERA_JSON_OBJECT && vocab->kind != CERA_JSON_ARRAY)) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: model.vocab is missing");
    }
    if (added && added->kind != CERA_JSON_ARRAY)
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: added_tokens is no array");
    r->n_entries = (size_t)vocab->n + (added ? added->n : 0);
    size_t room = 2 * r->n_entries + 65536;
    r->tokens = cera_tokjson_alloc(r, room, sizeof *r->tokens);
    r->types = cera_tokjson_alloc(r, room, sizeof *r->types);
    r->scores = cera_tokjson_alloc(r, room, sizeof *r->scores);
    r->flags = cera_tokjson_alloc(r, room, 1);
    if (!r->tokens || !r->types || !r->scores || !r->flags) return CERA_ERR_MEMORY;
    for (size_t i = 0; i < room; i++) {
        r->tokens[i] = (cera_text_view){"", 0}; /* ids that the file leaves out */
        r->types[i] = CERA_TOKEN_UNUSED;
    }
    CERA_TRY(vocab->kind == CERA_JSON_OBJECT ? read_vocab_object(r, vocab) : read_vocab_list(r, vocab));
    return read_added(r, added);
}

int64_t cera_tokjson_find(const tokjson *r, cera_text_view text) {
    for (size_t i = 0; text.size && i < r->d.n_tokens; i++) {
        if (r->tokens[i].size == text.size && memcmp(r->tokens[i].text, text.text, text.size) == 0) return (int64_t)i;
    }
    return -1;
}

/* ---- models ----------------------------------------------------------------------------------------------------------- */

static cera_status read_merge(tokjson *r, const cera_json *row, uint32_t i, cera_text_view *out) {
    if (row->kind == CERA_JSON_STRING) {
        *out = row->text;
        return CERA_OK;
    }
    if (row->kind != CERA_JSON_ARRAY || row->n != 2 || row->items[0].kind != CERA_JSON_STRING ||
        row->items[1].kind != CERA_JSON_STRING) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: model.merges: entry %u is no pair of texts", i);
    }
    cera_text_view a = row->items[0].text, b = row->items[1].text;
    char *joined = r->merge_texts + r->merge_at;
    memcpy(joined, a.text, a.size);
    joined[a.size] = ' ';
    memcpy(joined + a.size + 1, b.text, b.size);
    *out = (cera_text_view){joined, a.size + 1 + b.size};
    r->merge_at += out->size;
    return CERA_OK;
}

static cera_status read_merges(tokjson *r) {
    const cera_json *merges = cera_tokjson_get(r->model, "merges");
    if (!merges || merges->kind != CERA_JSON_ARRAY)
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: model.merges is missing");
    size_t total = 1;
    for (uint32_t i = 0; i < merges->n; i++) {
        const cera_json *row = &merges->items[i];
        for (uint32_t k = 0; row->kind == CERA_JSON_ARRAY && k < row->n; k++) total += row->items[k].text.size + 1;
    }
    cera_text_view *out = cera_tokjson_alloc(r, merges->n, sizeof *out);
    r->merge_texts = cera_tokjson_alloc(r, total, 1);
    if (!out || !r->merge_texts) return CERA_ERR_MEMORY;
    for (uint32_t i = 0; i < merges->n; i++) CERA_TRY(read_merge(r, &merges->items[i], i, &out[i]));
    r->d.merges = out;
    r->d.n_merges = merges->n;
    return CERA_OK;
}

/* Tokens "<0x0A>" of a model with byte fallback stand for bytes. */
static void mark_bytes(tokjson *r) {
    for (size_t i = 0; i < r->d.n_tokens; i++) {
        cera_text_view t = r->tokens[i];
        if (t.size == 6 && memcmp(t.text, "<0x", 3) == 0 && t.text[5] == '>' && r->types[i] == CERA_TOKEN_NORMAL)
            r->types[i] = CERA_TOKEN_BYTE;
    }
}

static cera_status read_bpe(tokjson *r) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < 2; i++) {
        if (cera_tokjson_text(r->model, affixes[i]).size)
            return cera_tokjson_refuse(r, affixes[i], cera_tokjson_text(r->model, affixes[i]));
    }
    r->d.model = "gpt2";
    r->d.ignore_merges = cera_tokjson_true(r->model, "ignore_merges", false);
    r->rules.fuse_unk = cera_tokjson_true(r->model, "fuse_unk", false);
    if (cera_tokjson_true(r->model, "byte_fallback", false)) mark_bytes(r);
    return read_merges(r);
}

/* BERT's "##s" continues a word; here a word's start is marked instead, as GGUF files do. */
static cera_status read_wordpiece(tokjson *r) {
    cera_text_view prefix = cera_tokjson_text(r->model, "continuing_subword_prefix");
    if (prefix.size == 0) prefix = (cera_text_view){"##", 2};
    r->d.model = "bert";
    int64_t most = 100;
    const cera_json *limit = cera_tokjson_get(r->model, "max_input_chars_per_word");
    if (limit && (!cera_json_i64(limit, &most) || most < 1 || most > INT32_MAX)) {
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: model.max_input_chars_per_word is out of range");
    }
    r->rules.max_word = (size_t)most;
    for (size_t i = 0; i < r->d.n_tokens; i++) {
        cera_text_view *t = &r->tokens[i];
        if (r->types[i] != CERA_TOKEN_NORMAL || t->size == 0) continue;
        if (t->size > prefix.size && memcmp(t->text, prefix.text, prefix.size) == 0) {
            *t = (cera_text_view){t->text + prefix.size, t->size - prefix.size};
            continue;
        }
        char *marked = cera_tokjson_alloc(r, t->size + 3, 1);
        if (!marked) return CERA_ERR_MEMORY;
        memcpy(marked, "\u2581", 3);
        memcpy(marked + 3, t->text, t->size);
        *t = (cera_text_view){marked, t->size + 3};
    }
    return CERA_OK;
}

static cera_status read_unigram(tokjson *r) {
    const cera_json *unk = cera_tokjson_get(r->model, "unk_id");
    size_t id = 0;
    r->d.model = "t5";
    if (cera_tokjson_true(r->model, "byte_fallback", false)) mark_bytes(r);
    if (!unk) return CERA_OK;
    CERA_TRY(take_id(r, unk, "model.unk_id", &id));
    r->d.unk = (int64_t)id;
    return CERA_OK;
}

static cera_status read_model(tokjson *r) {
    cera_text_view type = cera_tokjson_text(r->model, "type");
    if (type.size == 0 && cera_tokjson_get(r->model, "merges")) type = (cera_text_view){"BPE", 3}; /* files before types */
    CERA_TRY(cera_tokjson_is(type, "BPE")         ? read_bpe(r)
             : cera_tokjson_is(type, "WordPiece") ? read_wordpiece(r)
             : cera_tokjson_is(type, "Unigram")   ? read_unigram(r)
                                                  : cera_tokjson_refuse(r, "model.type", type));
    cera_text_view unk = cera_tokjson_text(r->model, "unk_token");
    if (unk.size && r->d.unk < 0) r->d.unk = cera_tokjson_find(r, unk);
    if (r->d.unk >= 0) r->types[r->d.unk] = CERA_TOKEN_UNKNOWN;
    return CERA_OK;
}

/* ---- special tokens ----------------------------------------------------------------------------------------------------- */

/* A token's name in tokenizer_config.json: a text, or an object with one. */
static cera_text_view named(const cera_json *config, const char *key) {
    const cera_json *v = cera_tokjson_get(config, key);
    if (v && v->kind == CERA_JSON_OBJECT) return cera_tokjson_text(v, "content");
    return cera_tokjson_text(config, key);
}

static void read_config(tokjson *r, const cera_json *config) {
    const struct {
        const char *key;
        int64_t *id;
    } names[] = {{"bos_token", &r->d.bos}, {"eos_token", &r->d.eos}, {"pad_token", &r->d.pad}, {"mask_token", &r->d.mask}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t id = cera_tokjson_find(r, named(config, names[i].key));
        if (id >= 0) *names[i].id = id;
    }
    if (cera_tokjson_get(config, "add_bos_token")) r->d.add_bos = cera_tokjson_true(config, "add_bos_token", false);
    if (cera_tokjson_get(config, "add_eos_token")) r->d.add_eos = cera_tokjson_true(config, "add_eos_token", false);
}

/* One side of a template's text: the token before it is BOS (BERT's [CLS]), the one after it EOS (BERT's [SEP]). */
static void read_template(tokjson *r, const cera_json *single) {
    bool behind = false;
    for (uint32_t i = 0; single && i < single->n && i < MAX_TEMPLATE; i++) {
        const cera_json *special = cera_tokjson_get(&single->items[i], "SpecialToken");
        if (!special) {
            behind = true;
            continue;
        }
        int64_t id = cera_tokjson_find(r, cera_tokjson_text(special, "id"));
        if (id < 0) continue;
        *(behind ? &r->d.eos : &r->d.bos) = id;
        *(behind ? &r->d.add_eos : &r->d.add_bos) = 1;
    }
}

static void read_pair_token(tokjson *r, const cera_json *pair, int64_t *id, int *add) {
    if (!pair || pair->kind != CERA_JSON_ARRAY || pair->n != 2 || pair->items[0].kind != CERA_JSON_STRING) return;
    int64_t found = cera_tokjson_find(r, pair->items[0].text);
    if (found < 0) return;
    *id = found;
    *add = 1;
}

static cera_status read_post_processor(tokjson *r, const cera_json *post, unsigned depth) {
    cera_text_view type = cera_tokjson_text(post, "type");
    if (!post || cera_tokjson_is(type, "ByteLevel")) return CERA_OK;
    if (cera_tokjson_is(type, "Sequence") && depth < 4) {
        const cera_json *list = cera_tokjson_get(post, "processors");
        for (uint32_t i = 0; list && i < list->n; i++) CERA_TRY(read_post_processor(r, &list->items[i], depth + 1));
        return CERA_OK;
    }
    if (cera_tokjson_is(type, "TemplateProcessing")) {
        read_template(r, cera_tokjson_get(post, "single"));
        return CERA_OK;
    }
    if (cera_tokjson_is(type, "BertProcessing") || cera_tokjson_is(type, "RobertaProcessing")) {
        read_pair_token(r, cera_tokjson_get(post, "cls"), &r->d.bos, &r->d.add_bos);
        read_pair_token(r, cera_tokjson_get(post, "sep"), &r->d.eos, &r->d.add_eos);
        return CERA_OK;
    }
    return cera_tokjson_refuse(r, "post_processor", type);
}

/* ---- the whole file ------------------------------------------------------------------------------------------------------ */

static void start(tokjson *r) {
    cera_vocab_desc *d = &r->d;
    d->arch = "";
    d->bos = d->eos = d->eot = d->eom = d->unk = d->sep = d->pad = d->mask = -1;
    d->fim_pre = d->fim_suf = d->fim_mid = d->fim_pad = d->fim_rep = d->fim_sep = -1;
    d->add_bos = d->add_eos = d->add_sep = 0; /* what the file does not add is not added */
    d->add_space_prefix = d->remove_extra_whitespaces = d->ignore_merges = d->escape_whitespaces = 0;
    d->lowercase = d->strip_accents = 0;
}

static cera_status read_file(tokjson *r, const cera_json *root, const cera_json *config, cera_vocab **out) {
    r->model = cera_tokjson_get(root, "model");
    if (!r->model || r->model->kind != CERA_JSON_OBJECT)
        return cera_fail(r->e, CERA_ERR_FORMAT, "tokenizer.json: model is missing");
    start(r);
    CERA_TRY(read_tokens(r, root));
    CERA_TRY(read_model(r));
    CERA_TRY(cera_tokjson_normalizer(r, cera_tokjson_get(root, "normalizer"), 0));
    CERA_TRY(cera_tokjson_pre_tokenizer(r, cera_tokjson_get(root, "pre_tokenizer"), 0));
    CERA_TRY(read_post_processor(r, cera_tokjson_get(root, "post_processor"), 0));
    read_config(r, config);
    r->d.tokens = r->tokens;
    r->d.types = r->types;
    r->d.scores = r->scores;
    r->rules.flags = r->flags;
    r->rules.stages = r->stages;
    r->rules.raw = strcmp(r->d.model, "gpt2") == 0 && !r->byte_level;
    if (strcmp(r->d.model, "t5") == 0) r->d.escape_whitespaces = 1;
    if (strcmp(r->d.model, "bert") == 0) r->d.escape_whitespaces = 1;
    return cera_vocab_create_with(&r->d, &r->rules, out, r->e);
}

static cera_status parse(tokjson *r, const char *name, const char *text, size_t n, const cera_json **out) {
    cera_status status = cera_json_parse(text, n, r->arena, out, r->e);
    if (status != CERA_OK) cera_fail_prefix(r->e, name);
    return status;
}

cera_status cera_vocab_from_tokenizer_json(const char *text, size_t n, const char *config, size_t config_size, cera_vocab **out,
                                           cera_error *e) {
    cera_error local = {0};
    *out = NULL;
    tokjson *r = cera_alloc(1, sizeof *r);
    if (!r) return cera_fail(e, CERA_ERR_MEMORY, "tokenizer.json: out of memory");
    r->e = e ? e : &local;
    const cera_json *root = NULL, *settings = NULL;
    cera_status status = cera_arena_create(0, &r->arena, r->e);
    if (status == CERA_OK) status = parse(r, "tokenizer.json", text, n, &root);
    if (status == CERA_OK && config) status = parse(r, "tokenizer_config.json", config, config_size, &settings);
    if (status == CERA_OK) status = read_file(r, root, settings, out);
    cera_arena_destroy(r->arena);
    cera_free(r);
    return status;
}

static bool ends_in_json(const char *path, size_t n) { return n >= 5 && strcmp(path + n - 5, ".json") == 0; }

/* Opens folder/name (folder of n bytes); absent and not needed: *out is NULL. */
static cera_status open_in(const char *folder, size_t n, const char *name, bool needed, cera_file **out, cera_error *e) {
    cera_buffer path = {0};
    cera_error ignored = {0};
    cera_buffer_add(&path, folder, n);
    cera_buffer_printf(&path, "%s%s", n ? "/" : "", name);
    cera_buffer_add(&path, "", 1);
    cera_status status = path.failed ? cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", name)
                                     : cera_file_open(path.data, 0, NULL, NULL, out, needed ? e : &ignored);
    if (status != CERA_OK) *out = NULL;
    cera_buffer_deinit(&path);
    return needed ? status : CERA_OK;
}

bool cera_vocab_path_is_json(const char *path) {
    cera_file *file = NULL;
    size_t n = strlen(path);
    if (ends_in_json(path, n)) return true;
    open_in(path, n, "tokenizer.json", false, &file, NULL);
    cera_file_close(file);
    return file != NULL;
}

cera_status cera_vocab_from_folder(const char *path, cera_vocab **out, cera_error *e) {
    cera_file *file = NULL, *config = NULL;
    const char *name = "tokenizer.json", *slash = strrchr(path, '/');
    size_t n = strlen(path);
    *out = NULL;
    if (ends_in_json(path, n)) { /* the file itself */
        name = slash ? slash + 1 : path;
        n = slash ? (size_t)(slash - path) : 0;
    }
    CERA_TRY(open_in(path, n, name, true, &file, e));
    cera_status status = open_in(path, n, "tokenizer_config.json", false, &config, e);
    if (status == CERA_OK) {
        const char *settings = config ? (const char *)cera_file_data(config) : NULL;
        status = cera_vocab_from_tokenizer_json((const char *)cera_file_data(file), cera_file_size(file), settings,
                                                config ? cera_file_size(config) : 0, out, e);
        if (status != CERA_OK) cera_fail_prefix(e, path);
    }
    cera_file_close(file);
    cera_file_close(config);
    return status;
}
