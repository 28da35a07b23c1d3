/* number.c: reads decimal numbers. Owns the grammar check and the independence from locales: strtod reads "1.5" as 1 in a
 * process that has set a German locale, so the decimal point is given to strtod_l with the C locale.
 * Does not own integers of other bases or thousands separators: nothing here needs them. */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"

#if defined(__APPLE__)
#    include <xlocale.h>
#endif

/* What the grammar found: integer and fraction digits, and the exponent. */
typedef struct decimal {
    bool negative;
    size_t n_int, n_fraction; /* digits before and after the point */
    const char *integer, *fraction;
    int64_t exponent; /* as written, saturated at +-10^18 */
} decimal;

static size_t digits(const char *text, size_t n) {
    size_t i = 0;
    while (i < n && text[i] >= '0' && text[i] <= '9') i++;
    return i;
}

static bool scan_exponent(const char *text, size_t n, int64_t *out) {
    bool negative = n > 0 && text[0] == '-';
    size_t start = n > 0 && (text[0] == '-' || text[0] == '+');
    if (start == n || digits(text + start, n - start) != n - start) return false;
    int64_t v = 0;
    for (size_t i = start; i < n; i++) v = v < 100000000000000000 ? 10 * v + (text[i] - '0') : 1000000000000000000;
    *out = negative ? -v : v;
    return true;
}

static bool scan(const char *text, size_t n, decimal *d) {
    *d = (decimal){0};
    size_t i = 0;
    if (i < n && text[i] == '-') {
        d->negative = true;
        i++;
    }
    d->integer = text + i;
    d->n_int = digits(text + i, n - i);
    if (d->n_int == 0 || (d->n_int > 1 && text[i] == '0')) return false;
    i += d->n_int;
    d->fraction = text + i;
    if (i < n && text[i] == '.') {
        d->fraction = text + ++i;
        d->n_fraction = digits(text + i, n - i);
        if (d->n_fraction == 0) return false;
        i += d->n_fraction;
    }
    if (i == n) return true;
    return (text[i] == 'e' || text[i] == 'E') && scan_exponent(text + i + 1, n - i - 1, &d->exponent);
}

bool cera_number_valid(const char *text, size_t n) {
    decimal d;
    return scan(text, n, &d);
}

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* made once, never freed */
static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

bool cera_number_f64(const char *text, size_t n, double *out) {
    decimal d;
    char small[64];
    if (!scan(text, n, &d)) return false;
    pthread_once(&locale_once, make_locale);
    if (!c_locale) return false;
    char *copy = n < sizeof small ? small : cera_alloc(n + 1, 1); /* strtod wants a NUL */
    if (!copy) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    double v = strtod_l(copy, NULL, c_locale);
    if (copy != small) cera_free(copy);
    if (!isfinite(v)) return false;
    *out = v;
    return true;
}

/* Digit i of integer and fraction written one after the other. */
static int digit_at(const decimal *d, size_t i) { return (i < d->n_int ? d->integer[i] : d->fraction[i - d->n_int]) - '0'; }

bool cera_number_i64(const char *text, size_t n, int64_t *out) {
    decimal d;
    if (!scan(text, n, &d)) return false;
    int64_t point = (int64_t)d.n_int + d.exponent; /* digits before the point once the exponent is applied */
    size_t total = d.n_int + d.n_fraction;
    uint64_t v = 0;
    for (size_t i = 0; i < total; i++) {
        int digit = digit_at(&d, i);
        if ((int64_t)i >= point) {
            if (digit != 0) return false; /* a fraction is left */
            continue;
        }
        if (v > (UINT64_MAX - (uint64_t)digit) / 10) return false;
        v = 10 * v + (uint64_t)digit;
    }
    for (int64_t i = (int64_t)total; i < point && v != 0; i++) {
        if (v > UINT64_MAX / 10) return false;
        v *= 10;
    }
    if (v > (uint64_t)INT64_MAX + d.negative) return false;
    *out = d.negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* The digits that count: [first, end) of integer and fraction without zeros at either side; the value is 0.d d d * 10^point. */
typedef struct significant {
    size_t first, end;
    int64_t point;
} significant;

static significant trim(const decimal *d) {
    significant s = {0, d->n_int + d->n_fraction, (int64_t)d->n_int + d->exponent};
    while (s.end > s.first && digit_at(d, s.end - 1) == 0) s.end--;
    while (s.first < s.end && digit_at(d, s.first) == 0) {
        s.first++;
        s.point--;
    }
    return s;
}

bool cera_number_equal(const char *a, size_t n_a, const char *b, size_t n_b) {
    decimal x, y;
    if (!scan(a, n_a, &x) || !scan(b, n_b, &y)) return false;
    significant s = trim(&x), t = trim(&y);
    if (s.first == s.end || t.first == t.end) return s.first == s.end && t.first == t.end; /* zeros, of either sign */
    if (x.negative != y.negative || s.point != t.point || s.end - s.first != t.end - t.first) return false;
    for (size_t i = 0; i < s.end - s.first; i++)
        if (digit_at(&x, s.first + i) != digit_at(&y, t.first + i)) return false;
    return true;
}
