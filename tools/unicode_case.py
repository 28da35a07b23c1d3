#!/usr/bin/env python3
"""Writes src/text/jinja_char_tables.h: what Python's str methods know of characters (Unicode as this Python has it).

    tools/unicode_case.py > src/text/jinja_char_tables.h
"""
import sys
import unicodedata

CHARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def char_class(c):
    s = chr(c)
    return (s.isalpha() * 1 | s.isdecimal() * 2 | s.isdigit() * 4 | s.isnumeric() * 8 | (s.isupper() * 16) | (s.islower() * 32)
            | (unicodedata.category(s) == 'Lt') * 64 | s.isprintable() * 128)


def class_ranges():
    last = None
    for c in CHARS:
        k = char_class(c)
        if k != last:
            yield c << 8 | k
            last = k


def simple_ranges(mapping):
    """(first, last, step, delta) runs of characters that move by one delta."""
    items = [(c, mapping(chr(c))) for c in CHARS]
    pairs = [(c, ord(m) - c) for c, m in items if len(m) == 1 and ord(m) != c]
    runs = []
    for c, delta in pairs:
        if runs and runs[-1][3] == delta:
            first, last, step, _ = runs[-1]
            gap = c - last
            if gap in (1, 2) and (step == 0 or step == gap):
                runs[-1] = (first, c, gap, delta)
                continue
        runs.append((c, c, 0, delta))
    return runs


def specials(mapping, kind):
    return [(c, kind, mapping(chr(c))) for c in CHARS if len(mapping(chr(c))) > 1]


def titles():
    """Characters whose title form is not their upper form."""
    return [(c, 't', chr(c).title()) for c in CHARS if chr(c).title() != chr(c).upper()]


def folds():
    """Characters whose casefold is not their lower form."""
    return [(c, 'f', chr(c).casefold()) for c in CHARS if chr(c).casefold() != chr(c).lower()]


def rows(texts, width=120):
    line = '   '
    for t in texts:
        if len(line) + len(t) + 2 > width:
            print(line)
            line = '   '
        line += ' ' + t + ','
    print(line)


print('/* jinja_char_tables.h: what Python %d.%d\'s str methods know of characters, Unicode %s. Made by tools/unicode_case.py; do not edit.\n'
      ' * Included by jinja_char.c only. clang-format is off: the lines are packed. */' % (*sys.version_info[:2], unicodedata.unidata_version))
print('/* clang-format off */')
print('static const uint32_t char_classes[] = { /* first character << 8 | class of it and those after it */')
rows(f'0x{v:x}' for v in class_ranges())
print('};\n')
for name, mapping in (('upper_runs', str.upper), ('lower_runs', str.lower)):
    print(f'static const case_run {name}[] = {{ /* first, last, step (0: one character), delta */')
    rows('{0x%x, 0x%x, %d, %d}' % r for r in simple_ranges(mapping))
    print('};\n')
print('static const case_special case_specials[] = { /* by character: its form in several characters, or a title or folded form of its own */')
rows("{0x%x, '%s', {%s}}" % (c, k, ', '.join(f'0x{ord(x):x}' for x in m))
     for c, k, m in sorted(specials(str.upper, 'u') + specials(str.lower, 'l') + titles() + folds()))
print('};')
print('/* clang-format on */')
