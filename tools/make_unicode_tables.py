#!/usr/bin/env python3
"""Writes src/text/unicode_tables.c from the Unicode Character Database.

    tools/make_unicode_tables.py [--ucd /usr/share/unicode] [--out src/text/unicode_tables.c]

Debian's package unicode-data installs the database. The generated file is committed: a build needs no Python.
Owns the layout that src/text/unicode.c reads; run it again when Unicode moves on, and run the tests.
"""
import argparse
import os
import re

CATEGORIES = 'Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs'.split()
WHITE_SPACE, HAN = 32, 64
BLOCK = 128


def rows(path):
    with open(path, encoding='utf-8') as f:
        for line in f:
            line = line.split('#')[0].strip()
            if line:
                yield [x.strip() for x in line.split(';')]


def span(text):
    first, _, last = text.partition('..')
    return int(first, 16), int(last or first, 16)


def read(ucd):
    props, lower, decomp, ccc = [0] * 0x110000, {}, {}, {}
    first = None
    for r in rows(os.path.join(ucd, 'UnicodeData.txt')):
        code, name = int(r[0], 16), r[1]
        if name.endswith(', First>'):
            first = code
            continue
        for c in range(first if name.endswith(', Last>') else code, code + 1):
            props[c] = CATEGORIES.index(r[2])
        if r[3] != '0':
            ccc[code] = int(r[3])
        if r[5] and not r[5].startswith('<'):
            decomp[code] = [int(x, 16) for x in r[5].split()]
        if r[13]:
            lower[code] = int(r[13], 16)
    for r in rows(os.path.join(ucd, 'PropList.txt')):
        if r[1] == 'White_Space':
            a, b = span(r[0])
            for c in range(a, b + 1):
                props[c] |= WHITE_SPACE
    for r in rows(os.path.join(ucd, 'Scripts.txt')):
        if r[1] == 'Han':
            a, b = span(r[0])
            for c in range(a, b + 1):
                props[c] |= HAN
    excluded = set()
    for r in rows(os.path.join(ucd, 'DerivedNormalizationProps.txt')):
        if r[1] == 'Full_Composition_Exclusion':
            a, b = span(r[0])
            excluded.update(range(a, b + 1))
    return props, lower, decomp, ccc, excluded


def numbers(values, width=20):
    lines, values = [], [str(v) for v in values]
    for i in range(0, len(values), width):
        lines.append('    ' + ', '.join(values[i:i + width]) + ',')
    return '\n'.join(lines)


def array(kind, name, values, width=20):
    return f'const {kind} {name}[{len(values)}] = {{\n{numbers(values, width)}\n}};\n\n'


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--ucd', default='/usr/share/unicode')
    p.add_argument('--out', default=os.path.join(os.path.dirname(__file__), '..', 'src', 'text', 'unicode_tables.c'))
    o = p.parse_args()
    props, lower, decomp, ccc, excluded = read(o.ucd)
    with open(os.path.join(o.ucd, 'PropList.txt'), encoding='utf-8') as f:
        version = re.search(r'PropList-([0-9.]+[0-9])', f.readline()).group(1)

    blocks, index = {}, []
    for start in range(0, 0x110000, BLOCK):
        index.append(blocks.setdefault(tuple(props[start:start + BLOCK]), len(blocks)))
    flat = [v for block in blocks for v in block]

    # Full canonical decompositions, in order; combining marks are sorted by the reader, which sees the neighbours too.
    def full(c):
        return [y for x in decomp[c] for y in full(x)] if c in decomp else [c]
    codes, offsets, text = [], [], []
    for c in sorted(decomp):
        codes.append(c)
        offsets.append(len(text))
        text += full(c)
    offsets.append(len(text))
    pairs = sorted((d[0], d[1], c) for c, d in decomp.items() if len(d) == 2 and c not in excluded)

    runs = []  # combining classes as runs of equal class
    for c in sorted(ccc):
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == ccc[c]:
            runs[-1][1] = c
        else:
            runs.append([c, c, ccc[c]])

    with open(o.out, 'w', encoding='utf-8') as f:
        f.write(f'/* unicode_tables.c: properties of characters, Unicode {version}. Written by tools/make_unicode_tables.py from the\n'
                ' * Unicode Character Database; do not edit. Read only through unicode.h. The layout is described in unicode_int.h.\n'
                ' * clang-format off: the tables are for machines. */\n'
                '#include "text/unicode_int.h"\n\n/* clang-format off */\n')
        f.write(f'const char cera_unicode_version[] = "{version}";\n\n')
        f.write(array('uint16_t', 'cera_unicode_block', index))
        f.write(array('uint8_t', 'cera_unicode_props', flat, 32))
        f.write(array('uint32_t', 'cera_unicode_lower_from', sorted(lower), 12))
        f.write(array('uint32_t', 'cera_unicode_lower_to', [lower[c] for c in sorted(lower)], 12))
        f.write(f'const size_t cera_unicode_n_lower = {len(lower)};\n\n')
        f.write(array('uint32_t', 'cera_unicode_decomp_from', codes, 12))
        f.write(array('uint16_t', 'cera_unicode_decomp_at', offsets))
        f.write(array('uint32_t', 'cera_unicode_decomp_to', text, 12))
        f.write(f'const size_t cera_unicode_n_decomp = {len(codes)};\n\n')
        f.write(f'const uint32_t cera_unicode_compose[{len(pairs)}][3] = {{\n' + ''.join('    {%d, %d, %d},\n' % x for x in pairs) + '};\n\n')
        f.write(f'const size_t cera_unicode_n_compose = {len(pairs)};\n\n')
        f.write(f'const uint32_t cera_unicode_ccc[{len(runs)}][3] = {{\n' + ''.join('    {%d, %d, %d},\n' % tuple(x) for x in runs) + '};\n\n')
        f.write(f'const size_t cera_unicode_n_ccc = {len(runs)};\n')
    print(f'{o.out}: Unicode {version}, {len(blocks)} blocks of {BLOCK}, {os.path.getsize(o.out)} bytes')


if __name__ == '__main__':
    main()
