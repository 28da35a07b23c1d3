/* regex_class.c: escapes and bracket classes of regular expressions, as sets of code points. Does not own: structure (regex.c).
 */
#include "sample/regex_int.h"

#include <string.h>
#include "base/utf8.h"
#include "text/unicode.h"

void cera_regex_fail(cera_regex_in *in, cera_status s, const char *what) {
    if (in->status) return;
    in->status = cera_fail(in->e, s, "pattern, byte %zu: %s", in->at, what);
}

uint32_t cera_regex_code(cera_regex_in *in) {
    uint32_t code = 0;
    int size = in->at < in->n ? cera_utf8_decode(in->text + in->at, in->n - in->at, &code) : 0;
    if (!size) return cera_regex_fail(in, CERA_ERR_FORMAT, "invalid UTF-8"), in->at = in->n, 0;
    in->at += (size_t)size;
    return code;
}

static void add_digits(cera_class *c) { cera_class_add(c, '0', '9'); }

static void add_word(cera_class *c) {
    cera_class_add(c, 'A', 'Z');
    cera_class_add(c, 'a', 'z');
    cera_class_add(c, '_', '_');
    add_digits(c);
}

/* ECMA-262's WhiteSpace and LineTerminator. */
static void add_space(cera_class *c) {
    static const uint32_t r[][2] = {{9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                                    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) cera_class_add(c, r[i][0], r[i][1]);
}

void cera_regex_add_dot(cera_class *c) {
    cera_class_add(c, 0, 9);
    cera_class_add(c, 11, 12);
    cera_class_add(c, 14, 0x2027);
    cera_class_add(c, 0x202A, 0x10FFFF);
}

static void join(cera_class *to, cera_class *part, bool negated) {
    if (negated) cera_class_negate(part);
    for (uint32_t i = 0; i < part->n; i++) cera_class_add(to, part->r[i][0], part->r[i][1]);
    to->failed = to->failed || part->failed;
    cera_class_deinit(part);
}

static void add_shorthand(cera_class *c, char letter) {
    cera_class part = {0};
    char lower = (char)(letter | 0x20);
    if (lower == 'd')
        add_digits(&part);
    else if (lower == 'w')
        add_word(&part);
    else
        add_space(&part);
    join(c, &part, letter < 'a');
}

typedef struct category {
    const char *name;
    uint32_t cats;
} category;

static uint32_t category_mask(const char *name, size_t n) {
    static const category known[] = {{"L", CERA_CATS_L},
                                     {"Letter", CERA_CATS_L},
                                     {"M", CERA_CATS_M},
                                     {"Mark", CERA_CATS_M},
                                     {"N", CERA_CATS_N},
                                     {"Number", CERA_CATS_N},
                                     {"P", CERA_CATS_P},
                                     {"Punctuation", CERA_CATS_P},
                                     {"punct", CERA_CATS_P},
                                     {"S", CERA_CATS_S},
                                     {"Symbol", CERA_CATS_S},
                                     {"Z", CERA_CATS_Z},
                                     {"Separator", CERA_CATS_Z},
                                     {"C", CERA_CATS_C},
                                     {"Other", CERA_CATS_C},
                                     {"Lu", 1u << CERA_CAT_LU},
                                     {"Uppercase_Letter", 1u << CERA_CAT_LU},
                                     {"Ll", 1u << CERA_CAT_LL},
                                     {"Lowercase_Letter", 1u << CERA_CAT_LL},
                                     {"Lt", 1u << CERA_CAT_LT},
                                     {"Lm", 1u << CERA_CAT_LM},
                                     {"Lo", 1u << CERA_CAT_LO},
                                     {"Mn", 1u << CERA_CAT_MN},
                                     {"Mc", 1u << CERA_CAT_MC},
                                     {"Me", 1u << CERA_CAT_ME},
                                     {"Nd", 1u << CERA_CAT_ND},
                                     {"digit", 1u << CERA_CAT_ND},
                                     {"Decimal_Number", 1u << CERA_CAT_ND},
                                     {"Nl", 1u << CERA_CAT_NL},
                                     {"No", 1u << CERA_CAT_NO},
                                     {"Pc", 1u << CERA_CAT_PC},
                                     {"Pd", 1u << CERA_CAT_PD},
                                     {"Ps", 1u << CERA_CAT_PS},
                                     {"Pe", 1u << CERA_CAT_PE},
                                     {"Pi", 1u << CERA_CAT_PI},
                                     {"Pf", 1u << CERA_CAT_PF},
                                     {"Po", 1u << CERA_CAT_PO},
                                     {"Sm", 1u << CERA_CAT_SM},
                                     {"Sc", 1u << CERA_CAT_SC},
                                     {"Sk", 1u << CERA_CAT_SK},
                                     {"So", 1u << CERA_CAT_SO},
                                     {"Zs", 1u << CERA_CAT_ZS},
                                     {"Zl", 1u << CERA_CAT_ZL},
                                     {"Zp", 1u << CERA_CAT_ZP},
                                     {"Cc", 1u << CERA_CAT_CC},
                                     {"Cf", 1u << CERA_CAT_CF},
                                     {"Co", 1u << CERA_CAT_CO},
                                     {"Cn", 1u << CERA_CAT_CN}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == n && !memcmp(known[i].name, name, n)) return known[i].cats;
    return 0;
}

/* After \p or \P. */
static bool add_property(cera_regex_in *in, cera_class *c, bool negated) {
    const char *start = in->text + in->at + 1;
    const char *end = in->at < in->n && in->text[in->at] == '{' ? memchr(start, '}', in->n - in->at - 1) : NULL;
    if (!end) return cera_regex_fail(in, CERA_ERR_FORMAT, "\\p needs {name}"), false;
    const char *name = start, *equal = memchr(start, '=', (size_t)(end - start));
    if (equal &&
        ((equal - start == 2 && !memcmp(start, "gc", 2)) || (equal - start == 16 && !memcmp(start, "General_Category", 16))))
        name = equal + 1;
    uint32_t cats = category_mask(name, (size_t)(end - name));
    if (!cats) return cera_regex_fail(in, CERA_ERR_UNSUPPORTED, "only general categories are known to \\p"), false;
    in->at = (size_t)(end + 1 - in->text);
    cera_class part = {0};
    for (uint32_t code = 0, from = UINT32_MAX; code <= 0x110000; code++) {
        bool member = code < 0x110000 && (cats >> (cera_unicode_properties(code) & CERA_UNICODE_CATEGORY) & 1);
        if (member && from == UINT32_MAX) from = code;
        if (!member && from != UINT32_MAX) cera_class_add(&part, from, code - 1), from = UINT32_MAX;
    }
    join(c, &part, negated);
    return true;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
    return -1;
}

static bool hex_digits(cera_regex_in *in, int digits, uint32_t *out) {
    uint32_t v = 0;
    for (int i = 0; i < digits; i++) {
        int d = in->at + (size_t)i < in->n ? hex_value(in->text[in->at + (size_t)i]) : -1;
        if (d < 0) return cera_regex_fail(in, CERA_ERR_FORMAT, "hexadecimal digits expected"), false;
        v = v << 4 | (uint32_t)d;
    }
    in->at += (size_t)digits;
    *out = v;
    return true;
}

/* After \u: four digits, a pair of surrogates, or {...}. */
static bool unicode_escape(cera_regex_in *in, uint32_t *out) {
    if (in->at < in->n && in->text[in->at] == '{') {
        uint32_t v = 0;
        size_t digits = 0;
        for (in->at++; in->at < in->n && in->text[in->at] != '}'; in->at++, digits++) {
            int d = hex_value(in->text[in->at]);
            v = v << 4 | (uint32_t)(d < 0 ? 0 : d);
            if (d < 0 || digits > 5 || v > 0x10FFFF)
                return cera_regex_fail(in, CERA_ERR_FORMAT, "no code point in \\u{...}"), false;
        }
        if (in->at == in->n || !digits) return cera_regex_fail(in, CERA_ERR_FORMAT, "\\u{...} is not closed"), false;
        in->at++;
        *out = v;
        return true;
    }
    if (!hex_digits(in, 4, out)) return false;
    uint32_t low;
    size_t back = in->at;
    if (*out < 0xD800 || *out > 0xDBFF || in->n - in->at < 6 || memcmp(in->text + in->at, "\\u", 2)) return true;
    in->at += 2;
    if (!hex_digits(in, 4, &low)) return false;
    if (low >= 0xDC00 && low <= 0xDFFF)
        *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
    else
        in->at = back;
    return true;
}

bool cera_regex_escape(cera_regex_in *in, cera_class *c, bool in_class, uint32_t *single) {
    static const char letters[] = "tnrvf", values[] = "\t\n\r\v\f";
    if (in->at >= in->n) return cera_regex_fail(in, CERA_ERR_FORMAT, "it ends in a backslash"), false;
    char l = in->text[in->at];
    *single = UINT32_MAX;
    if (strchr("dDwWsS", l) && l) return in->at++, add_shorthand(c, l), true;
    if (l == 'p' || l == 'P') return in->at++, add_property(in, c, l == 'P');
    uint32_t code = 0;
    const char *named = l ? strchr(letters, l) : NULL;
    if (named)
        in->at++, code = (uint8_t)values[named - letters];
    else if (l == 'u') {
        in->at++;
        if (!unicode_escape(in, &code)) return false;
    } else if (l == 'x') {
        in->at++;
        if (!hex_digits(in, 2, &code)) return false;
    } else if (l == 'c' && in->at + 1 < in->n &&
               ((in->text[in->at + 1] | 0x20) >= 'a' && (in->text[in->at + 1] | 0x20) <= 'z')) {
        code = (uint32_t)in->text[in->at + 1] & 31;
        in->at += 2;
    } else if (l == '0' && !(in->at + 1 < in->n && in->text[in->at + 1] >= '0' && in->text[in->at + 1] <= '9'))
        in->at++;
    else if (l == 'b' && in_class)
        in->at++, code = 8;
    else if (l == 'b' || l == 'B')
        return cera_regex_fail(in, CERA_ERR_UNSUPPORTED, "word boundaries (\\b) cannot be enforced"), false;
    else if (l >= '0' && l <= '9')
        return cera_regex_fail(in, CERA_ERR_UNSUPPORTED, "back references cannot be enforced"), false;
    else if (((l | 0x20) >= 'a' && (l | 0x20) <= 'z'))
        return cera_regex_fail(in, CERA_ERR_UNSUPPORTED, "unknown escape"), false;
    else
        code = cera_regex_code(in);
    *single = code;
    cera_class_add(c, code, code);
    return !in->status;
}

/* One member of a class: its code point, or UINT32_MAX when it was a class itself. */
static bool class_item(cera_regex_in *in, cera_class *c, uint32_t *code) {
    if (in->at >= in->n) return cera_regex_fail(in, CERA_ERR_FORMAT, "'[' is not closed"), false;
    if (in->text[in->at] == '\\') return in->at++, cera_regex_escape(in, c, true, code);
    *code = cera_regex_code(in);
    cera_class_add(c, *code, *code);
    return !in->status;
}

bool cera_regex_class(cera_regex_in *in, cera_class *c) {
    bool negated = in->at < in->n && in->text[in->at] == '^';
    if (negated) in->at++;
    while (in->at < in->n && in->text[in->at] != ']') {
        uint32_t lo, hi;
        if (!class_item(in, c, &lo)) return false;
        bool dash = in->at + 1 < in->n && in->text[in->at] == '-' && in->text[in->at + 1] != ']';
        if (!dash) continue;
        in->at++;
        if (!class_item(in, c, &hi)) return false;
        if (lo == UINT32_MAX || hi == UINT32_MAX)
            cera_class_add(c, '-', '-'); /* [\w-.]: the dash stands for itself */
        else if (lo > hi)
            return cera_regex_fail(in, CERA_ERR_FORMAT, "range out of order"), false;
        else
            cera_class_add(c, lo, hi);
    }
    if (in->at >= in->n) return cera_regex_fail(in, CERA_ERR_FORMAT, "'[' is not closed"), false;
    in->at++;
    if (negated) cera_class_negate(c);
    return true;
}
