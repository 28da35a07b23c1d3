/* automaton_mult.c: decimal text whose value is a multiple of divisor / 10^scale: a remainder that each digit updates. It says
 * nothing about the form of a number (leading zeros, a digit before the point): it is intersected with an expression that does.
 * Numbers with an exponent are outside of this language.
 * Node: a divisor, b remainder, n phase (0 before the point, 1 + places after it), m scale. */
#include "sample/automaton_int.h"

enum { SIGN_START = 0x80000000u };

static uint32_t power_mod(uint32_t exponent, uint32_t divisor) {
    uint64_t r = 1 % divisor;
    for (uint32_t i = 0; i < exponent; i++) r = r * 10 % divisor;
    return (uint32_t)r;
}

cera_expr cera_expr_multiple(cera_automaton *a, uint32_t divisor, uint32_t scale) {
    return cera_expr_node(a, (cera_node){.kind = CERA_K_MULT, .a = divisor, .b = 0, .n = 0, .m = scale});
}

bool cera_mult_nullable(const cera_node *n) {
    uint32_t places = n->n ? n->n - 1 : 0;
    if (places > n->m) places = n->m;
    return (uint64_t)n->b * power_mod(n->m - places, n->a) % n->a == 0;
}

cera_expr cera_mult_derive(cera_automaton *a, cera_expr x, uint8_t byte) {
    cera_node n = a->nodes[x];
    cera_node to = {.kind = CERA_K_MULT, .a = n.a, .b = n.b, .n = n.n, .m = n.m};
    if (byte == '-') return x;
    if (byte == '.') {
        to.n = 1;
        return n.n ? CERA_EXPR_EMPTY : cera_expr_node(a, to);
    }
    if (byte < '0' || byte > '9') return CERA_EXPR_EMPTY;
    if (n.n && n.n - 1 >= n.m) return byte == '0' && cera_mult_nullable(&n) ? x : CERA_EXPR_EMPTY;
    to.b = (uint32_t)(((uint64_t)n.b * 10 + (byte - '0')) % n.a);
    if (n.n) to.n = n.n + 1;
    return cera_expr_node(a, to);
}

void cera_mult_bounds(uint64_t out[4]) {
    for (int b = '-'; b <= ':'; b++) out[b >> 6] |= 1ull << (b & 63);
}
