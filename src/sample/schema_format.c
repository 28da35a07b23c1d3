/* schema_format.c: the formats of JSON Schema as regular expressions over the content of a string. Names that no draft defines
 * are annotations. Owns the list; docs/structured-output.md repeats it. */
#include "sample/schema_int.h"

#include <string.h>
#include "sample/regex_int.h"

#define DAY_31 "(0[1-9]|[12][0-9]|3[01])"
#define DAY_30 "(0[1-9]|[12][0-9]|30)"
#define DAY_28 "(0[1-9]|1[0-9]|2[0-8])"
/* Years that 4 divides but 100 does not, or 400. */
#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE "([0-9]{4}-((0[13578]|1[02])-" DAY_31 "|(0[469]|11)-" DAY_30 "|02-" DAY_28 ")|" LEAP "-02-29)"
#define CLOCK "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?"
#define ZONE "([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4 OCTET "(\\." OCTET "){3}"
#define H16 "[0-9a-fA-F]{1,4}"
#define LS32 "(" H16 ":" H16 "|" IPV4 ")"
#define IPV6                                                                                                            \
    "((" H16 ":){6}" LS32 "|::(" H16 ":){5}" LS32 "|(" H16 ")?::(" H16 ":){4}" LS32 "|((" H16 ":){0,1}" H16 ")?::(" H16 \
    ":){3}" LS32 "|((" H16 ":){0,2}" H16 ")?::(" H16 ":){2}" LS32 "|((" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|((" H16 \
    ":){0,4}" H16 ")?::" LS32 "|((" H16 ":){0,5}" H16 ")?::" H16 "|((" H16 ":){0,6}" H16 ")?::)"
#define LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define HOST "(?=.{1,253}$)" LABEL "(\\." LABEL ")*"
#define ATEXT "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]"
#define PCT "%[0-9a-fA-F]{2}"
#define UNRESERVED "a-zA-Z0-9._~\\-"
#define SUBDELIMS "!$&'()*+,;="
#define PCHAR "([" UNRESERVED SUBDELIMS ":@]|" PCT ")"
#define AUTHORITY                                                                                    \
    "(([" UNRESERVED SUBDELIMS ":]|" PCT ")*@)?(\\[(" IPV6 "|v[0-9a-fA-F]+\\.[" UNRESERVED SUBDELIMS \
    ":]+)\\]|([" UNRESERVED SUBDELIMS "]|" PCT ")*)(:[0-9]*)?"
#define SUFFIX "(\\?(" PCHAR "|[/?])*)?(#(" PCHAR "|[/?])*)?"
#define URI \
    "[a-zA-Z][a-zA-Z0-9+.-]*:(//" AUTHORITY "(/" PCHAR "*)*|/(" PCHAR "+(/" PCHAR "*)*)?|" PCHAR "+(/" PCHAR "*)*|)" SUFFIX
#define RELATIVE                                                                                                        \
    "(//" AUTHORITY "(/" PCHAR "*)*|/(" PCHAR "+(/" PCHAR "*)*)?|([" UNRESERVED SUBDELIMS "@]|" PCT ")+(/" PCHAR "*)*|" \
    ")" SUFFIX
#define DURATION                                                                                                               \
    "P([0-9]+W|(?=.)([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)?(T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|" \
    "[0-9]+S))?)"
#define POINTER "(/([^/~]|~[01])*)*"

typedef struct format {
    const char *name, *pattern;
} format; /* pattern NULL: asserted by some draft, but no regular language here */

static const format formats[] = {
    {"date", DATE},
    {"time", CLOCK ZONE},
    {"date-time", DATE "[tT]" CLOCK ZONE},
    {"duration", DURATION},
    {"email", "(" ATEXT "+(\\." ATEXT "+)*|\"([^\"\\\\\\x00-\\x1f]|\\\\.)*\")@(" LABEL "(\\." LABEL ")*|\\[" IPV4
              "\\]|\\[IPv6:" IPV6 "\\])"},
    {"hostname", HOST},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"uri", URI},
    {"uri-reference", "(" URI "|" RELATIVE ")"},
    {"json-pointer", POINTER},
    {"relative-json-pointer", "(0|[1-9][0-9]*)(#|" POINTER ")"},
    {"idn-email", NULL},
    {"idn-hostname", NULL},
    {"iri", NULL},
    {"iri-reference", NULL},
    {"uri-template", NULL},
    {"regex", NULL},
};

cera_expr cera_schema_format(cera_schema *s, cera_text_view name, bool *known, bool *supported) {
    cera_expr x = CERA_EXPR_EMPTY;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const format *f = &formats[i];
        if (strlen(f->name) != name.size || memcmp(f->name, name.text, name.size)) continue;
        *known = true;
        *supported = f->pattern != NULL;
        cera_error e = {0};
        if (f->pattern && cera_regex_compile(s->a, f->pattern, strlen(f->pattern), true, &x, &e) != CERA_OK)
            cera_schema_fail(s, e.code, NULL, "format", e.message);
    }
    return x;
}
