#!/usr/bin/env python3
"""Random templates through `cera template` and through Python's jinja2, set up as Hugging Face does: the same text, or an error
in both. Prints the seed; --seed and --cases choose others.

    jinja_test.py --cera build/cera [--cases 2500] [--seed 1]
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

try:
    import jinja2
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print('SKIP: no jinja2')
    sys.exit(77)

NOW = datetime.datetime(2026, 7, 26, 13, 5, 9)


class Generation(jinja2.ext.Extension):
    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method('_run'), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    env.filters['tojson'] = tojson
    env.globals['raise_exception'] = raise_exception
    env.globals['strftime_now'] = NOW.strftime
    return env


CONTEXT = {
    's': 'Hello, World', 't': '  spaced\tout \n', 'u': 'Zürich ΣΑΣ straße 🦙 ǆ é', 'e': '', 'm': 'a-b_c d', 'num': '42', 'fl': '-3.75e2',
    'i': 7, 'j': -3, 'z': 0, 'f': 2.5, 'g': -0.1, 'big': 123456789, 'yes': True, 'no': False, 'nil': None,
    'l': [3, 1, 2], 'w': ['beta', 'Alpha', 'gamma', 'alpha'], 'n': [[1, 2], [3, 4]], 'mixed': [1, 'a', None, 2.0, True], 'el': [],
    'd': {'b': 1, 'a': 'x', 'C': [1, 2]}, 'ed': {}, 'deep': {'x': {'y': ['p', {'q': "it's"}]}, 'items': 5},
    'messages': [{'role': 'user', 'content': 'Hi <b>'}, {'role': 'assistant', 'content': None, 'tool_calls': [{'name': 'f', 'arguments': {'k': 'v"', 'n': 1}}]},
                 {'role': 'user', 'content': 'line\r\nbreak\n\nend '}],
}
STRINGS = ['s', 't', 'u', 'e', 'm', 'num', 'fl', "'lit'", '"a\\nb\\t\\u00e9"', "''", "'%s-%s'", "'{}|{}'", "'a,b,,c'", "messages[0]['role']", "messages[0].content"]
NUMBERS = ['i', 'j', 'z', 'f', 'g', 'big', '1', '0', '2.5', '1e3', '0x1f', '1_000', 'yes', 'no', '3.0', '-2']
LISTS = ['l', 'w', 'n', 'mixed', 'el', 'messages', '[1, 2, 3]', "['x', 'y']", "(1, 'z')", '()', '(1,)', 'range(4)', 'range(5, 0, -2)', 'd.items()', 'd.keys()', "s.split('o')", 'd.values()']
DICTS = ['d', 'ed', 'deep', 'deep.x', "{'k': 1, 2: 'two'}", '{}', 'messages[0]', "dict(a=1, b='c')", "{'z': 1, 'y': {'n': [none, true]}}"]
OTHERS = ['nil', 'missing', 'd.missing', "d['nope']", 'l[9]', 'none', 'true', 'false', 'range', 'namespace']
STR_FILTERS = ['upper', 'lower', 'title', 'capitalize', 'trim', "trim('Hd')", 'length', 'string', 'safe', 'escape', 'e', 'wordcount', "replace('o', '0')", "replace('l', '', 1)",
               "replace('', '-')", 'indent', 'indent(2, true)', "indent('> ', blank=true)", 'center(20)', 'truncate(5)', "truncate(6, true, '..', 0)", 'striptags', 'urlencode',
               'int', 'int(-1)', 'float', 'list', 'first', 'last', 'reverse', 'tojson', 'tojson(ensure_ascii=true)', "default('D')", "default('D', true)", "join('-')", 'forceescape', 'int(0, 16)', 'nosuch']
NUM_FILTERS = ['abs', 'round', 'round(1)', "round(1, 'floor')", "round(method='ceil')", 'int', 'float', 'string', 'tojson', 'filesizeformat', "default(3)", 'pprint']
LIST_FILTERS = ['length', 'count', 'first', 'last', 'list', 'reverse', 'reverse | list', 'sort', 'sort(reverse=true)', 'sort(case_sensitive=true)', 'unique | list', 'join', "join(', ')", 'sum', 'min', 'max',
                'batch(2) | list', "batch(2, 'x') | list", 'slice(2) | list', 'slice(3, 0) | list', "map('upper') | list", "map('string') | join('+')", "map(attribute='role') | list", "map(attribute='x', default=1) | list",
                "select('odd') | list", "reject('string') | list", 'select | list', "selectattr('role', 'equalto', 'user') | list", "rejectattr('content') | list", "selectattr('content', 'none') | map(attribute='role') | join",
                'tojson', 'tojson(indent=2)', "tojson(separators=(',', ':'))", 'string', 'map("nosuch") | list', "groupby('role') | list", "sort(attribute='role')", 'items']
DICT_FILTERS = ['length', 'list', 'items | list', 'dictsort', "dictsort(by='value')", 'dictsort(reverse=true)', 'tojson', 'tojson(indent=4)', 'tojson(sort_keys=true)', "tojson(indent='\\t')", 'string', "first", "join(',')", 'xmlattr', 'urlencode', 'last', "attr('items')", "sum"]
STR_METHODS = ['upper()', 'lower()', 'strip()', "strip('H d')", 'lstrip()', 'rstrip()', "split()", "split(',')", "split('o', 1)", "rsplit(none, 1)", "rsplit('l', 1)", 'splitlines()', 'splitlines(true)', "startswith('H')", "endswith(('d', 'x'))",
               "find('o')", "rfind('o')", "index('l')", "count('l')", "count('')", "replace('l', 'L')", "replace('l', 'L', 1)", 'title()', 'capitalize()', 'swapcase()', 'isalpha()', 'isdigit()', 'isspace()', 'islower()', 'isupper()',
               'isalnum()', 'istitle()', 'isnumeric()', 'isdecimal()', "join(['a', 'b'])", "join(w)", "partition('o')", "rpartition('o')", "removeprefix('He')", "removesuffix('ld')", 'zfill(15)', "ljust(14, '.')", 'rjust(14)', "center(15, '*')",
               "format(1, 'x')", "format(i, name=s)", 'expandtabs(4)', 'casefold()', 'isascii()', 'isidentifier()', 'nosuch()', '__class__', '_x', "startswith('W', 7)", "find('l', -3)"]
LIST_METHODS = ['index(1)', 'count(1)', 'append(1)', 'copy()', 'pop()', '__len__']
DICT_METHODS = ["get('a')", "get('zz')", "get('zz', 5)", 'items()', 'keys()', 'values()', "update({})", "pop('a')", 'a', "b", "['a']", 'copy()', 'x.y[1].q']
TESTS = ['defined', 'undefined', 'none', 'string', 'number', 'integer', 'float', 'boolean', 'true', 'false', 'mapping', 'iterable', 'sequence', 'callable', 'even', 'odd', 'divisibleby 2', 'divisibleby(3)', "eq 1", "equalto('x')", 'lower',
         'upper', 'in [1, 2]', 'sameas none', 'gt 1', 'ne 0', "in 'abc'", 'not defined', 'not none', 'not string', 'escaped', 'nosuch', 'lt(5)', '>= 2' if False else 'ge 2']
COMPARE = ['==', '!=', '<', '<=', '>', '>=', 'in', 'not in']
SLICES = ['[0]', '[-1]', '[1:]', '[:2]', '[::-1]', '[1:3]', '[::2]', '[-2:]', '[5:1:-2]', '[i]', "['a']", '[:-1]', '[100:]', '[none:2]', '[-1:0:-1]']
PERCENT = ["'%s' % {0}", "'%d' % {0}", "'%5.2f|' % {0}", "'%-8s|' % {0}", "'%s %s' % ({0}, {1})", "'%05d' % {0}", "'%x' % {0}", "'%r' % {0}", "'%+d' % {0}", "'%e' % {0}", "'%g' % {0}", "'%(a)s' % d", "'%%' % ()", "'%c' % {0}"]
FORMATS = ["'{{}}'.format({0})", "'{{:>8}}|'.format({0})", "'{{:.2f}}'.format({0})", "'{{0}} {{1}} {{0}}'.format({0}, {1})", "'{{x!r}}'.format(x={0})", "'{{:05d}}'.format({0})", "'{{:,}}'.format({0})", "'{{:^9}}|'.format({0})", "'{{:*<7}}'.format({0})",
           "'{{:x}}'.format({0})", "'{{:e}}'.format({0})", "'{{:+}}'.format({0})", "'{{0[a]}}'.format(d)", "'{{:%}}'.format({0})", "'{{:g}}'.format({0})", "'{{:b}}'.format({0})", "'{{:{{}}}}'.format({0}, 6)"]
TEXTS = ['text', ' ', '\n', '  \n', '\n\n', 'a b', '{', '}', '%', '#', '\t', 'é', ' - ', '<|x|>', '\n    ', "'", '"']


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.depth = 0

    def pick(self, items):
        return self.rng.choice(items)

    def of(self, kind, deep):
        r = self.rng.random()
        atoms = {'str': STRINGS, 'num': NUMBERS, 'list': LISTS, 'dict': DICTS}.get(kind)
        if kind == 'any':
            kind = self.pick(['str', 'str', 'num', 'list', 'dict', 'other', 'var'])
            if kind == 'other':
                return self.pick(OTHERS)
            if kind == 'var':
                return self.pick(['x', 'y', 'k', 'v', 'ns.a', 'ns.b', 'loop.index', 'loop.last', 'loop', 'fn', 'varargs', 'kwargs', 'caller'])
            return self.of(kind, deep)
        if deep <= 0 or r < 0.5:
            return self.pick(atoms)
        a = self.of(kind, deep - 1)
        if kind == 'str':
            return self.pick([lambda: f'({a} | {self.pick(STR_FILTERS)})', lambda: f'{a}.{self.pick(STR_METHODS)}', lambda: f'({a} ~ {self.expr(deep - 1)})', lambda: f'({a} + {self.of("str", deep - 1)})',
                              lambda: f'({a} * {self.pick(["2", "0", "-1", "3"])})', lambda: f'{a}{self.pick(SLICES)}', lambda: '(' + self.pick(PERCENT).format(self.expr(deep - 1), self.of('num', 0)) + ')',
                              lambda: self.pick(FORMATS).format(self.expr(deep - 1), self.of('str', 0)), lambda: f"strftime_now('{self.pick(['%d %b %Y', '%Y-%m-%d', '%-d %B', '%A %j %U', '%H:%M:%S %p %I', '%y %e %%'])}')"])()
        if kind == 'num':
            return self.pick([lambda: f'({a} {self.pick(["+", "-", "*", "/", "//", "%", "**"])} {self.of("num", deep - 1)})', lambda: f'({a} | {self.pick(NUM_FILTERS)})', lambda: f'-{a}' if a[0] != '-' else a, lambda: f'({self.of("str", 0)} | length)', lambda: f'+{a}'])()
        if kind == 'list':
            return self.pick([lambda: f'({a} | {self.pick(LIST_FILTERS)})', lambda: f'{a}{self.pick(SLICES)}', lambda: f'({a} + {self.of("list", deep - 1)})', lambda: f'{a}.{self.pick(LIST_METHODS)}', lambda: f'[{self.expr(deep - 1)}, {self.expr(deep - 1)}]', lambda: f'({a} * 2)'])()
        return self.pick([lambda: f'({a} | {self.pick(DICT_FILTERS)})', lambda: f'{a}.{self.pick(DICT_METHODS)}' if True else a, lambda: f"{{'k': {self.expr(deep - 1)}, {self.of('num', 0)}: {self.expr(deep - 1)}}}", lambda: f'{a}[{self.of("str", 0)}]'])()

    def expr(self, deep):
        r = self.rng.random()
        a = lambda: self.of('any', deep - 1)
        if deep <= 0 or r < 0.55:
            return self.of('any', deep)
        if r < 0.65:
            return f'({a()} {self.pick(COMPARE)} {a()})'
        if r < 0.72:
            return f'({a()} is {self.pick(TESTS)})'
        if r < 0.79:
            return f'({a()} {self.pick(["and", "or"])} {a()})'
        if r < 0.83:
            return f'(not {a()})'
        if r < 0.88:
            return f'({a()} if {a()} else {a()})' if self.rng.random() < 0.8 else f'({a()} if {a()})'
        if r < 0.92:
            return f'({a()} | {self.pick(STR_FILTERS + LIST_FILTERS + DICT_FILTERS + NUM_FILTERS)})'
        if r < 0.95:
            return f'fn({a()}{self.pick(["", ", " + a(), ", q=" + a(), ", zz=1", ", *[1, 2]"])})'
        return f'{self.of("num", 0)} {self.pick(["<", "<=", "=="])} {self.of("num", 0)} {self.pick(["<", "!=", ">"])} {self.of("num", 0)}'

    def tag(self, text):
        return '{%' + self.pick(['', '', '', '-', '+']) + ' ' + text + ' ' + self.pick(['', '', '', '-', '+' if False else '']) + '%}'

    def print(self):
        e = self.expr(2)
        return '{{' + self.pick(['', '', '-']) + ' ' + e + ' ' + self.pick(['', '', '-']) + '}}'

    def body(self, deep, loop=False):
        return ''.join(self.statement(deep - 1, loop) for _ in range(self.rng.randint(1, 3)))

    def statement(self, deep, loop=False):
        r = self.rng.random()
        if deep <= 0 or r < 0.25:
            return self.pick(TEXTS)
        if r < 0.5:
            return self.print()
        t = self.tag
        if r < 0.62:
            middle = t('elif ' + self.expr(1)) + self.body(deep - 1, loop) if self.rng.random() < 0.2 else ''
            middle += t('else') + self.body(deep - 1, loop) if self.rng.random() < 0.5 else ''
            return t('if ' + self.expr(2)) + self.body(deep - 1, loop) + middle + t('endif')
        if r < 0.74:
            target, over = self.pick([('x', self.of('list', 1)), ('x', self.of('list', 0)), ('k, v', self.pick(['d.items()', 'd | items', 'd | dictsort', 'n', 'deep.items()', self.of('list', 0)])), ('x', self.of('any', 1)), ('x', 'u')])
            test = ' if ' + self.pick(['x', 'x is string', 'x != 2', 'x is odd', 'loop', 'not x', 'ns.a']) if self.rng.random() < 0.2 else ''
            rest = t('else') + self.body(deep - 1) if self.rng.random() < 0.25 else ''
            return t(f'for {target} in {over}{test}') + self.body(deep - 1, True) + rest + t('endfor')
        if r < 0.82:
            return t(self.pick([f'set x = {self.expr(2)}', f'set y = {self.expr(1)}', f'set ns.a = {self.expr(2)}', f'set ns.b = ns.b ~ {self.expr(1)}', f'set x, y = {self.expr(1)}', f'set x, y = 1, {self.expr(1)}']))
        if r < 0.85:
            name = self.pick(['x', 'y', 'ns.a'])
            return t(f'set {name}' + self.pick(['', ' | upper', ' | trim | length'])) + self.body(deep - 1) + t('endset')
        if r < 0.88:
            return t(f'macro fn({self.pick(["", "p", "p, q=2", "p, q=p", "x=1"])})') + self.pick(['', '{{ p }}', '{{ varargs }}', '{{ kwargs }}', '{{ q }}', '{{ caller() }}']) + self.body(deep - 1) + t('endmacro')
        if r < 0.9:
            return t('call' + self.pick(['', '(x)']) + ' fn(' + self.expr(1) + ')') + self.body(deep - 1) + t('endcall')
        if r < 0.92:
            return t(f'with x = {self.expr(1)}, k = x') + self.body(deep - 1, loop) + t('endwith')
        if r < 0.94:
            return t('filter ' + self.pick(['upper', 'trim', "replace('a', 'b') | title", 'indent(2)'])) + self.body(deep - 1) + t('endfilter')
        if r < 0.96:
            return t('generation') + self.body(deep - 1) + t('endgeneration')
        if r < 0.97:
            return '{#' + self.pick(['', '-']) + ' note ' + self.pick(['', '-']) + '#}'
        if r < 0.98:
            return t('raw') + '{{ x }}{% if %}' + self.pick(['', '\n']) + t('endraw')
        if loop:
            return t('if ' + self.pick(['x == 2', 'loop.index > 1', self.expr(1)])) + t(self.pick(['break', 'continue'])) + t('endif')
        return self.pick(TEXTS)

    def template(self, small):
        if small:  # one expression: most of them are no error, and each is compared
            return self.print() if self.rng.random() < 0.8 else '{% set x = 3 %}{% set ns = namespace(a=1, b=2) %}' + self.statement(3)
        head = self.pick(['', "{% set ns = namespace(a=1, b='') %}", "{% set ns = namespace() %}\n", "{%- macro fn(p, q='dflt') -%}{{ p }}/{{ q }}{%- endmacro -%}"])
        return head + ''.join(self.statement(4) for _ in range(self.rng.randint(1, 5)))


UNCOMPARED = ('<built-in method', '<bound method', 'function safe_range', 'function%20safe_range', '<function', 'object at 0x', '<class ', 'generator object', '<Macro', '<LoopContext', 'Cycler')


# Where cera differs on purpose: integers have 64 bits, there are no complex numbers, and an unknown filter in a branch that jinja2's
# constant folding removes is still an error.
STATED = ('limited to 64 bits', 'complex numbers', 'No filter named', 'No test named')


def expected(env, text):
    """('text', ...), ('error', ...) or None where the answer is not to be compared (addresses, other limits than ours)."""
    def too_slow(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(2)
    try:
        out = env.from_string(text).render(**json.loads(json.dumps(CONTEXT)))
        out.encode()
    except (TimeoutError, RecursionError, MemoryError, UnicodeEncodeError, AssertionError):
        return None
    except Exception as e:
        message = f'{type(e).__name__}: {e}'
        return None if 'integer string conversion' in message else ('error', message)
    finally:
        signal.alarm(0)
    return None if any(x.lower() in out.lower() for x in UNCOMPARED) else ('text', out)


def main():
    args = argparse.ArgumentParser()
    args.add_argument('--cera', required=True)
    args.add_argument('--shared')
    args.add_argument('--cases', type=int, default=2500)
    args.add_argument('--seed', type=int, default=1)
    args.add_argument('--show', type=int, default=10)
    a = args.parse_args()
    env, rows = environment(), []
    for i in range(a.cases):
        text = Maker(random.Random(a.seed * 1000003 + i)).template(i % 2)
        want = expected(env, text)
        if want:
            rows.append((i, text, want))
    with tempfile.TemporaryDirectory() as folder:
        context = os.path.join(folder, 'context.json')
        with open(context, 'w', encoding='utf-8') as f:
            json.dump(CONTEXT, f)

        def one(row):
            path = os.path.join(folder, str(row[0]))
            with open(path, 'w', encoding='utf-8', newline='') as f:
                f.write(row[1])
            run = subprocess.run([a.cera, 'template', '--file', path, '--context', context, '--now', NOW.isoformat()], capture_output=True, timeout=20)
            os.unlink(path)
            if run.returncode == 0:
                return {'text': run.stdout.decode()}
            return {'error': run.stderr.decode()} if run.returncode == 1 else {'died': run.returncode}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            got = list(pool.map(one, rows))
    bad = errors = limits = 0
    for (i, text, (kind, value)), g in zip(rows, got):
        errors += kind == 'error'
        if kind in g and (kind == 'error' or g['text'] == value):
            continue
        if any(x in g.get('error', '') for x in STATED):
            limits += 1
            continue
        bad += 1
        if bad <= a.show:
            print(f'--- case {i}\n{text}\n  jinja2 {kind}: {value!r}\n  cera   {g!r}')
    print(f'jinja: seed {a.seed}: {len(rows)} templates compared ({errors} are errors in jinja2), {bad} differ, {limits} differ as stated')
    return bad > 0


sys.exit(main())
