/* schema_number.c: numbers as text. Bounds are compared on decimal text, exactly and at any length: a bound becomes a trie over
 * its digits. Numbers with an exponent are compared in the form d.ddde+n that programs print; other spellings with an exponent
 * are accepted where nothing is asked of the value, or only that it be an integer. In compact (generating) mode constrained
 * numbers are written without exponents. Does not own: which constraints a schema states. */
#include "sample/schema_int.h"

#include <string.h>

enum { MAX_DIGITS = 400, MAX_PLACES = 20 };

/* ---- decimals
 * ---------------------------------------------------------------------------------------------------------------- */

bool cera_decimal_parse(cera_schema *s, cera_text_view text, cera_decimal *out) {
    char *digits = cera_schema_alloc(s, text.size + 1, 1);
    uint32_t n = 0;
    int64_t point = -1, exponent = 0;
    size_t i = 0;
    if (!digits) return false;
    *out = (cera_decimal){.negative = text.size && text.text[0] == '-', .digits = digits};
    for (i = out->negative; i < text.size && (text.text[i] | 0x20) != 'e'; i++) {
        if (text.text[i] == '.')
            point = n;
        else
            digits[n++] = text.text[i];
    }
    if (point < 0) point = n;
    if (i < text.size) {
        bool minus = ++i < text.size && text.text[i] == '-';
        if (i < text.size && (text.text[i] == '-' || text.text[i] == '+')) i++;
        for (; i < text.size; i++)
            if (exponent < 1000000) exponent = exponent * 10 + (text.text[i] - '0');
        if (minus) exponent = -exponent;
    }
    uint32_t lead = 0;
    while (lead < n && digits[lead] == '0') lead++;
    while (n > lead && digits[n - 1] == '0') n--;
    out->digits = digits + lead;
    out->n = n - lead;
    out->exp = out->n ? point + exponent - lead : 0;
    if (!out->n) out->negative = false;
    return true;
}

static int compare_magnitude(const cera_decimal *x, const cera_decimal *y) {
    if (!x->n || !y->n) return (x->n > 0) - (y->n > 0);
    if (x->exp != y->exp) return x->exp < y->exp ? -1 : 1;
    uint32_t n = x->n < y->n ? x->n : y->n;
    int c = memcmp(x->digits, y->digits, n);
    return c ? (c < 0 ? -1 : 1) : (x->n > y->n) - (x->n < y->n);
}

int cera_decimal_compare(const cera_decimal *x, const cera_decimal *y) {
    if (x->negative != y->negative) return x->negative ? -1 : 1;
    int c = compare_magnitude(x, y);
    return x->negative ? -c : c;
}

bool cera_decimal_is_integer(const cera_decimal *x) { return x->exp >= (int64_t)x->n; }

/* ---- pieces of number text
 * ------------------------------------------------------------------------------------------------------ */

static cera_expr digit(cera_schema *s, int lo, int hi) {
    return lo > hi ? CERA_EXPR_EMPTY : cera_expr_byte_range(s->a, (uint8_t)('0' + lo), (uint8_t)('0' + hi));
}
static cera_expr digits(cera_schema *s, uint32_t n, uint32_t m) { return cera_expr_rep(s->a, digit(s, 0, 9), n, m); }
static cera_expr text(cera_schema *s, const char *t) { return cera_expr_text(s->a, t); }
static cera_expr cat(cera_schema *s, cera_expr x, cera_expr y) { return cera_expr_cat(s->a, x, y); }
static cera_expr either(cera_schema *s, cera_expr x, cera_expr y) { return cera_expr_or2(s->a, x, y); }
static cera_expr maybe(cera_schema *s, cera_expr x) { return either(s, CERA_EXPR_EPS, x); }
static cera_expr zeros(cera_schema *s, uint32_t n) { return cera_expr_rep(s->a, digit(s, 0, 0), n, CERA_REP_INF); }
static cera_expr letter_e(cera_schema *s) {
    return either(s, cera_expr_byte_range(s->a, 'E', 'E'), cera_expr_byte_range(s->a, 'e', 'e'));
}
static cera_expr fraction(cera_schema *s) { return cat(s, text(s, "."), digits(s, 1, CERA_REP_INF)); }
static cera_expr zero_fraction(cera_schema *s) { return cat(s, text(s, "."), zeros(s, 1)); }
/* At least one digit is not zero. */
static cera_expr some_digit(cera_schema *s) { return cat(s, zeros(s, 0), cat(s, digit(s, 1, 9), digits(s, 0, CERA_REP_INF))); }

/* A bound in positional form: whole digits ("0" when below one) and places. */
typedef struct bound {
    char whole[MAX_DIGITS + 1], places[MAX_DIGITS + 1];
    uint32_t n_whole, n_places;
    bool open;
} bound;

static bool bound_of(cera_schema *s, const cera_decimal *d, bool open, bound *b) {
    *b = (bound){.open = open};
    if (d->exp > MAX_DIGITS || d->exp < -MAX_DIGITS / 2 || d->n > MAX_DIGITS / 2) {
        cera_schema_fail(s, CERA_ERR_LIMIT, NULL, NULL, "a bound of a number has more than 200 digits");
        return false;
    }
    if (d->exp <= 0) b->whole[b->n_whole++] = '0';
    for (int64_t i = 0; i < d->exp; i++) b->whole[b->n_whole++] = i < (int64_t)d->n ? d->digits[i] : '0';
    if (d->n)
        for (int64_t i = d->exp; i < 0; i++) b->places[b->n_places++] = '0';
    for (int64_t i = d->exp > 0 ? d->exp : 0; i < (int64_t)d->n; i++) b->places[b->n_places++] = d->digits[i];
    return true;
}

/* What may follow the whole digits of b when they are equal, for numbers at or above (below) it. `tail` follows a whole number
 * that is decided already: an optional fraction, or nothing. */
static cera_expr places_above(cera_schema *s, const bound *b) {
    if (!b->n_places) return b->open ? cat(s, text(s, "."), some_digit(s)) : maybe(s, fraction(s));
    cera_expr x = b->open ? some_digit(s) : digits(s, 0, CERA_REP_INF);
    for (uint32_t i = b->n_places; i-- > 0;) {
        int d = b->places[i] - '0';
        x = either(s, cat(s, digit(s, d + 1, 9), digits(s, 0, CERA_REP_INF)), cat(s, digit(s, d, d), x));
    }
    return cat(s, text(s, "."), x);
}
static cera_expr places_below(cera_schema *s, const bound *b) {
    if (!b->n_places) return b->open ? CERA_EXPR_EMPTY : maybe(s, zero_fraction(s));
    cera_expr x = b->open ? CERA_EXPR_EMPTY : zeros(s, 0);
    for (uint32_t i = b->n_places; i-- > 0;) {
        int d = b->places[i] - '0';
        cera_expr less = cat(s, digit(s, 0, d - 1), digits(s, 0, CERA_REP_INF));
        x = either(s, less, cat(s, digit(s, d, d), x));
        if (i) x = maybe(s, x); /* the digits before this place alone are less */
    }
    return maybe(s, cat(s, text(s, "."), x));
}

/* Whole numbers without leading zeros and of n digits or more. */
static cera_expr longer(cera_schema *s, uint32_t n) { return cat(s, digit(s, 1, 9), digits(s, n - 1, CERA_REP_INF)); }

/* Unsigned text at or above b; `any` may follow whole digits that are above, `equal` those that are equal. */
static cera_expr whole_above(cera_schema *s, const bound *b, cera_expr any, cera_expr equal, bool one_digit) {
    cera_expr x = equal;
    for (uint32_t i = b->n_whole; i-- > 0;) {
        int d = b->whole[i] - '0';
        cera_expr more = cat(s, digit(s, d + 1, 9), cat(s, digits(s, b->n_whole - 1 - i, b->n_whole - 1 - i), any));
        x = either(s, more, cat(s, digit(s, d, d), x));
    }
    return one_digit ? x : either(s, x, cat(s, longer(s, b->n_whole + 1), any));
}
static cera_expr whole_below(cera_schema *s, const bound *b, cera_expr any, cera_expr equal, int lowest) {
    cera_expr x = equal;
    for (uint32_t i = b->n_whole; i-- > 0;) {
        int d = b->whole[i] - '0', first = i == 0 && b->n_whole > 1 ? 1 : i == 0 ? lowest : 0;
        cera_expr less = cat(s, digit(s, first, d - 1), cat(s, digits(s, b->n_whole - 1 - i, b->n_whole - 1 - i), any));
        x = either(s, less, cat(s, digit(s, d, d), x));
    }
    if (b->n_whole < 2) return x;
    cera_expr shorter = either(s, digit(s, 0, 0), cat(s, digit(s, 1, 9), digits(s, 0, b->n_whole - 2)));
    return either(s, x, cat(s, shorter, any));
}

/* ---- exponents
 * -------------------------------------------------------------------------------------------------------------------- */

static cera_expr natural(cera_schema *s, uint64_t n,
                         int above) { /* 0* then a whole number >= n (above 1), <= n (-1), == n (0) */
    bound b = {0};
    char t[24];
    int k = 0;
    do t[k++] = (char)('0' + n % 10), n /= 10;
    while (n);
    while (k) b.whole[b.n_whole++] = t[--k];
    cera_expr x;
    if (above > 0)
        x = whole_above(s, &b, CERA_EXPR_EPS, CERA_EXPR_EPS, false);
    else if (above < 0)
        x = whole_below(s, &b, CERA_EXPR_EPS, CERA_EXPR_EPS, 0);
    else
        x = cera_expr_raw(s->a, b.whole, b.n_whole);
    return cat(s, zeros(s, 0), x);
}

static cera_expr exponent_above(cera_schema *s, int64_t n) {
    cera_expr plus = maybe(s, text(s, "+"));
    if (n > 0) return cat(s, plus, natural(s, (uint64_t)n, 1));
    return either(s, cat(s, plus, digits(s, 1, CERA_REP_INF)), cat(s, text(s, "-"), natural(s, (uint64_t)-n, -1)));
}
static cera_expr exponent_below(cera_schema *s, int64_t n) {
    if (n < 0) return cat(s, text(s, "-"), natural(s, (uint64_t)-n, 1));
    return either(s, cat(s, text(s, "-"), digits(s, 1, CERA_REP_INF)),
                  cat(s, maybe(s, text(s, "+")), natural(s, (uint64_t)n, -1)));
}
static cera_expr exponent_is(cera_schema *s, int64_t n) {
    if (n < 0) return cat(s, text(s, "-"), natural(s, (uint64_t)-n, 0));
    cera_expr x = cat(s, maybe(s, text(s, "+")), natural(s, (uint64_t)n, 0));
    return n ? x : either(s, x, cat(s, text(s, "-"), zeros(s, 1)));
}
static cera_expr exponent_any(cera_schema *s) {
    cera_expr sign = either(s, cera_expr_byte_range(s->a, '+', '+'), cera_expr_byte_range(s->a, '-', '-'));
    return cat(s, maybe(s, sign), digits(s, 1, CERA_REP_INF));
}
static cera_expr with_exponent(cera_schema *s, cera_expr mantissa, cera_expr exponent) {
    return cat(s, mantissa, cat(s, letter_e(s), exponent));
}
static cera_expr mantissa_any(cera_schema *s) { return cat(s, digit(s, 1, 9), maybe(s, fraction(s))); }
static cera_expr zero_exponent(cera_schema *s) {
    return with_exponent(s, cat(s, digit(s, 0, 0), maybe(s, zero_fraction(s))), exponent_any(s));
}

/* The mantissa d.ddd of d as a bound. */
static void mantissa_bound(const cera_decimal *d, bool open, bound *b) {
    *b = (bound){.open = open, .n_whole = 1};
    b->whole[0] = d->digits[0];
    for (uint32_t i = 1; i < d->n; i++) b->places[b->n_places++] = d->digits[i];
}

static cera_expr scientific_above(cera_schema *s, const cera_decimal *d, bool open) {
    if (!d->n) return either(s, with_exponent(s, mantissa_any(s), exponent_any(s)), open ? CERA_EXPR_EMPTY : zero_exponent(s));
    bound b;
    mantissa_bound(d, open, &b);
    cera_expr same = whole_above(s, &b, maybe(s, fraction(s)), places_above(s, &b), true);
    return either(s, with_exponent(s, mantissa_any(s), exponent_above(s, d->exp)),
                  with_exponent(s, same, exponent_is(s, d->exp - 1)));
}
static cera_expr scientific_below(cera_schema *s, const cera_decimal *d, bool open) {
    if (!d->n) return open ? CERA_EXPR_EMPTY : zero_exponent(s);
    bound b;
    mantissa_bound(d, open, &b);
    cera_expr same = whole_below(s, &b, maybe(s, fraction(s)), places_below(s, &b), 1);
    cera_expr x = either(s, with_exponent(s, mantissa_any(s), exponent_below(s, d->exp - 2)),
                         with_exponent(s, same, exponent_is(s, d->exp - 1)));
    return either(s, x, zero_exponent(s));
}

/* ---- magnitudes and whole constraints
 * ----------------------------------------------------------------------------------------------- */

static cera_expr unsigned_any(cera_schema *s) {
    cera_expr plain = cat(s, either(s, digit(s, 0, 0), longer(s, 1)), maybe(s, fraction(s)));
    if (s->compact) return plain;
    return either(s, plain, either(s, with_exponent(s, mantissa_any(s), exponent_any(s)), zero_exponent(s)));
}

static cera_expr above(cera_schema *s, const cera_decimal *d, bool open, bool integer) {
    bound b;
    if (!bound_of(s, d, open, &b)) return CERA_EXPR_EMPTY;
    if (integer && s->compact && !b.n_places && !open) return whole_above(s, &b, CERA_EXPR_EPS, CERA_EXPR_EPS, false);
    cera_expr plain = whole_above(s, &b, maybe(s, fraction(s)), places_above(s, &b), false);
    return s->compact ? plain : either(s, plain, scientific_above(s, d, open));
}
static cera_expr below(cera_schema *s, const cera_decimal *d, bool open, bool integer) {
    bound b;
    if (!bound_of(s, d, open, &b)) return CERA_EXPR_EMPTY;
    if (integer && s->compact && !b.n_places && !open) return whole_below(s, &b, CERA_EXPR_EPS, CERA_EXPR_EPS, 0);
    cera_expr plain = whole_below(s, &b, maybe(s, fraction(s)), places_below(s, &b), 0);
    return s->compact ? plain : either(s, plain, scientific_below(s, d, open));
}

static cera_expr integer_unsigned(cera_schema *s) {
    cera_expr whole = either(s, digit(s, 0, 0), longer(s, 1));
    if (s->compact || s->draft == CERA_DRAFT_4) return whole; /* draft 4: no fraction, no exponent */
    cera_expr x = either(s, cat(s, whole, maybe(s, zero_fraction(s))), zero_exponent(s));
    x = either(s, x, with_exponent(s, whole, cat(s, maybe(s, text(s, "+")), digits(s, 1, CERA_REP_INF))));
    for (uint32_t k = 1; k <= MAX_PLACES; k++) {
        cera_expr mantissa = cat(s, digit(s, 1, 9), cat(s, text(s, "."), digits(s, k, k)));
        x = either(s, x, with_exponent(s, mantissa, exponent_above(s, k)));
    }
    return x;
}

static cera_expr integer_expr(cera_schema *s) {
    if (!s->integer) s->integer = cat(s, maybe(s, text(s, "-")), integer_unsigned(s));
    return s->integer;
}

/* Integers in every spelling, also in compact mode, which writes only one: what is no integer is none in any. */
static cera_expr integer_spellings(cera_schema *s) {
    bool compact = s->compact;
    s->compact = false;
    cera_expr x = cat(s, maybe(s, text(s, "-")), integer_unsigned(s));
    s->compact = compact;
    return x;
}

typedef struct side {
    bool has_lo, lo_open, has_hi, hi_open;
    cera_decimal lo, hi;
} side; /* of magnitudes */

static cera_expr magnitudes(cera_schema *s, const side *r, bool integer) {
    if (!r->has_lo && !r->has_hi) return integer ? integer_unsigned(s) : unsigned_any(s);
    bool trivial = r->has_lo && !r->lo.n && !r->lo_open;
    cera_expr lo = r->has_lo && !trivial ? above(s, &r->lo, r->lo_open, integer) : CERA_EXPR_ANY;
    cera_expr hi = r->has_hi ? below(s, &r->hi, r->hi_open, integer) : CERA_EXPR_ANY;
    cera_expr x = cera_expr_and2(s->a, lo, hi);
    if (x == CERA_EXPR_ANY) return integer ? integer_unsigned(s) : unsigned_any(s);
    return integer ? cera_expr_and2(s->a, x, integer_unsigned(s)) : x;
}

static cera_expr positive_side(cera_schema *s, const cera_num *n) {
    if (n->has_hi && n->hi.negative) return CERA_EXPR_EMPTY;
    side r = {.has_hi = n->has_hi,
              .hi_open = n->hi_open,
              .hi = n->hi,
              .has_lo = n->has_lo && !n->lo.negative,
              .lo = n->lo,
              .lo_open = n->lo_open};
    return magnitudes(s, &r, n->integer > 0);
}
static cera_expr negative_side(cera_schema *s, const cera_num *n) {
    if (n->has_lo && !n->lo.negative && (n->lo.n || n->lo_open)) return CERA_EXPR_EMPTY;
    side r = {.has_hi = n->has_lo,
              .hi_open = n->lo_open,
              .hi = n->lo,
              .has_lo = n->has_hi && (n->hi.negative || !n->hi.n),
              .lo = n->hi,
              .lo_open = n->hi_open};
    r.lo.negative = r.hi.negative = false;
    if (s->compact && n->has_lo && !n->lo.n) return CERA_EXPR_EMPTY; /* -0 need not be written */
    return cat(s, text(s, "-"), magnitudes(s, &r, n->integer > 0));
}

static cera_expr any_number(cera_schema *s) {
    cera_expr whole = cat(s, maybe(s, text(s, "-")), either(s, digit(s, 0, 0), longer(s, 1)));
    return cat(s, whole, cat(s, maybe(s, fraction(s)), maybe(s, cat(s, letter_e(s), exponent_any(s)))));
}

static cera_expr one_number(cera_schema *s, const cera_num *n) {
    if (!n->has_lo && !n->has_hi && !n->n_mults) {
        if (n->integer == 0) return any_number(s);
        if (n->integer > 0) return integer_expr(s);
    }
    cera_expr x = either(s, positive_side(s, n), negative_side(s, n));
    if (n->integer < 0) x = cera_expr_and2(s->a, x, cera_expr_not(s->a, integer_spellings(s)));
    if (n->n_mults) { /* remainders are taken of digits only */
        cera_expr plain = cat(s, maybe(s, text(s, "-")), cat(s, digits(s, 1, CERA_REP_INF), maybe(s, fraction(s))));
        x = cera_expr_and2(s->a, x, plain);
    }
    for (uint32_t i = 0; i < n->n_mults; i++) {
        cera_expr m = cera_expr_multiple(s->a, n->mults[i].divisor, n->mults[i].scale);
        x = cera_expr_and2(s->a, x, n->mults[i].negated ? cera_expr_not(s->a, m) : m);
    }
    return x;
}

cera_expr cera_number_expr(cera_schema *s, const cera_num *list, uint32_t n) {
    cera_expr x = CERA_EXPR_EMPTY;
    for (uint32_t i = 0; i < n && cera_schema_ok(s); i++) x = either(s, x, one_number(s, &list[i]));
    return x;
}
