#!/usr/bin/env python3
"""`cera grammar` against outside oracles and the public bug cases R01 to R11: regular expressions against Python's re on random patterns and
texts (seeded), the schema `true` against the JSONTestSuite, the cases through the program with their exit status and reason.

usage: grammar_test.py --cera PATH --build FOLDER [--shared FOLDER]"""
import argparse
import ctypes
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from tokenizer_test import Error, load_library

GBNF, SCHEMA, REGEX = 1, 2, 3
SEED = 20260701


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("any_order", ctypes.c_bool), ("any_space", ctypes.c_bool), ("tokenizer", ctypes.c_void_p),
                ("memory_bytes", ctypes.c_uint64)]


class Grammar:
    def __init__(self, library, kind, text):
        self.library, self.handle, error = library, ctypes.c_void_p(), Error()
        options = Options(size=ctypes.sizeof(Options), any_order=True, any_space=True)
        library.cera_grammar_is_complete.restype = ctypes.c_bool
        if library.cera_grammar_compile(kind, text, ctypes.c_size_t(len(text)), ctypes.byref(options), ctypes.byref(self.handle), ctypes.byref(error)):
            raise ValueError(error.message.decode())

    def accepts(self, text):
        state = ctypes.c_void_p()
        self.library.cera_grammar_state_create(self.handle, None, ctypes.byref(state), None)
        status = self.library.cera_grammar_accept_text(state, text, ctypes.c_size_t(len(text)), None, None)
        ok = status == 0 and self.library.cera_grammar_is_complete(state)
        self.library.cera_grammar_state_destroy(state)
        return bool(ok)

    def close(self):
        self.library.cera_grammar_close(self.handle)


# ---- regular expressions against Python's re ---------------------------------------------------------------------------------------


def random_pattern(r, depth=0):
    """Constructs that ECMA and Python read alike."""
    kind = r.randrange(12 if depth < 3 else 6)
    if kind < 3:
        return r.choice("abc")
    if kind == 3:
        return r.choice(["[ab]", "[^a]", "[a-c]", ".", "[^ab\\d]", "\\d", "\\w", "\\W", "\\S"])
    if kind == 4:
        return r.choice(["a", "b"]) + r.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?"])
    if kind == 5:
        return r.choice(["^", "\\Z"]) if r.random() < 0.3 else "1"
    if kind < 9:
        return random_pattern(r, depth + 1) + random_pattern(r, depth + 1)
    if kind == 9:
        return "(?:" + random_pattern(r, depth + 1) + "|" + random_pattern(r, depth + 1) + ")"
    if kind == 10:
        inner = random_pattern(r, depth + 1)
        return inner if "^" in inner or "\\Z" in inner else "(?:" + inner + ")" + r.choice(["*", "+", "?", "{2,3}"])
    return r.choice(["(?=", "(?!"]) + random_pattern(r, depth + 1) + ")" + random_pattern(r, depth + 1) if depth == 0 else "c"


def check_regex(library, n=3000):
    r, failures, refused, compared = random.Random(SEED), [], 0, 0
    for _ in range(n):
        pattern = random_pattern(r)
        try:
            oracle = re.compile(pattern, re.ASCII)
        except re.error:
            continue
        try:
            grammar = Grammar(library, REGEX, pattern.replace("\\Z", "$").encode())
        except ValueError:
            refused += 1
            continue
        for _ in range(12):
            text = "".join(r.choice("abc1 \u00e9") for _ in range(r.randrange(9)))
            compared += 1
            if grammar.accepts(text.encode()) != bool(oracle.search(text)):
                failures.append(f"{pattern} on {text!r}: re says {bool(oracle.search(text))}")
        grammar.close()
    print(f"    {compared} comparisons, {refused} patterns refused")
    if refused > n // 20 or compared < 10000:
        failures.append("too few patterns were compared")
    return failures


# ---- JSON ----------------------------------------------------------------------------------------------------------------------------


def check_json(library, shared):
    grammar, failures, n = Grammar(library, SCHEMA, b"true"), [], 0
    for path in sorted((shared / "data/json/JSONTestSuite/test_parsing").glob("*.json")):
        text = path.read_bytes()
        if path.name[0] == "i" or len(text) > 60000:
            continue
        n += 1
        # RFC 8259 lets a string hold \ud800 alone; this grammar writes characters only.
        lone = re.search(rb"\\u[dD][89a-fA-F]", text) and path.name[0] == "y"
        if not lone and grammar.accepts(text) != (path.name[0] == "y"):
            failures.append(path.name)
    grammar.close()
    print(f"    {n} files")
    return failures + (["too few files"] if n < 200 else [])


# ---- the public bugs ---------------------------------------------------------------------------------------------------------------------


def cases():
    deep = "root ::= " + "(" * 60000 + '"a"' + ")" * 60000
    chain = "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(5000)) + 'r5000 ::= "a"\n'
    lengths = [("R03 maxLength %d" % k, "schema", '{"type":"string","maxLength":%d}' % k, [('"' + "a" * k + '"', 0), ('"' + "a" * (k + 1) + '"', 1)], "")
               for k in (1999, 2000, 2001, 65536)]
    numbers = '{"items":{"type":"number"},"minItems":10,"maxItems":1000}'
    return lengths + [
        ("R01 left recursion", "gbnf", 'root ::= root "a" | "b"', [("b", 3)], "left recursion"),
        ("R01 left recursion, two rules", "gbnf", 'root ::= integer | root "+" root\ninteger ::= [0-9]+', [("1", 3)], "left recursion"),
        ("R02 60,000 parentheses", "gbnf", deep, [("a", 3)], "too deep"),
        ("R02 5,000 rules", "gbnf", chain, [("a", 0), ("b", 1)], ""),
        ("R03 a million", "gbnf", 'root ::= "a"{0,1000000}', [("a" * 1000, 0), ("b", 1)], ""),
        ("R03 a product", "gbnf", 'root ::= (("a"{1000}){1000}){1000}', [("a" * 999, 1)], ""),
        ("R03 an ambiguous product", "gbnf", 'root ::= ((. | ..){0,1000} "x"?){0,1000}', [("a", 3)], "ambiguous"),
        ("R04 no properties", "schema", '{"type":"object","properties":{}}', [("{}", 0), ('{"a":1}', 0), ("[]", 1)], ""),
        ("R05 counted items", "schema", numbers, [("[" + ",".join("1" * 1000) + "]", 0), ("[" + ",".join("1" * 1001) + "]", 1), ("[1]", 1)], ""),
        ("R06 pattern that cannot be compiled", "schema", '{"type":"string","pattern":"(a)\\\\1"}', [('"aa"', 3)], "/pattern"),
        ("R07 shorthands", "schema", '{"type":"string","pattern":"^[\\\\w-]+$"}', [('"a-b"', 0), ('"a b"', 1)], ""),
        ("R08 cycle", "schema", '{"$defs":{"A":{"$ref":"#/$defs/A"}},"$ref":"#/$defs/A"}', [("1", 3)], "refers to itself"),
        ("R08 tree", "schema", '{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}',
         [('{"kids":[{},{"kids":[]}]}', 0), ('{"kids":[1]}', 1)], ""),
        ("R08 missing", "schema", '{"$ref":"#/$defs/none"}', [("1", 3)], "points to nothing"),
        ("R09 patternProperties", "schema", '{"patternProperties":{"^a":{"type":"integer"}},"additionalProperties":false}', [('{"ab":1}', 0), ('{"ab":"x"}', 1), ('{"b":1}', 1)], ""),
        ("R09 unsupported keyword", "schema", '{"properties":{"x":{"unevaluatedProperties":false}}}', [("{}", 3)], "/properties/x/unevaluatedProperties"),
        ("R10 characters", "gbnf", "root ::= [\\U0001F600-\\U0001F64F]+", [("\U0001F600\U0001F601", 0), ("\u00e9", 1)], ""),
        ("R11 additionalProperties", "schema", '{"properties":{"a":{}},"additionalProperties":{"type":"null"}}', [('{"b":null,"a":1}', 0), ('{"b":1}', 1)], ""),
    ]


def check_cases(cera):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        source, text = pathlib.Path(folder) / "source", pathlib.Path(folder) / "text"
        for name, kind, grammar, checks, reason in cases():
            source.write_text(grammar, encoding="utf-8")
            for data, wanted in checks:
                text.write_text(data, encoding="utf-8")
                start = time.monotonic()
                out = subprocess.run([cera, "grammar", f"--{kind}", str(source), "--any-order", "--check", str(text)], capture_output=True, text=True, timeout=60)
                took = time.monotonic() - start
                if out.returncode != wanted or reason not in out.stderr or (wanted and not out.stderr):
                    failures.append(f"{name}: exit {out.returncode}, not {wanted}: {out.stderr.strip()[:150]}")
                if took > 10:
                    failures.append(f"{name}: took {took:.1f} s")
    return failures


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cera", required=True)
    p.add_argument("--build", required=True)
    p.add_argument("--shared")
    args = p.parse_args()
    library, skipped = load_library(args.build), 0
    results = {"bug cases R01 to R11": check_cases(args.cera), "regular expressions against Python's re": check_regex(library)}
    if args.shared:
        results["JSON against the JSONTestSuite"] = check_json(library, pathlib.Path(args.shared))
    else:
        print("SKIP: the JSONTestSuite lies in shared/, which is not here")
        skipped = 1
    for name, failures in results.items():
        print(f"{'FAILED' if failures else 'ok'}: {name}" + "".join(f"\n    {f}" for f in failures[:10]))
    failed = sum(bool(f) for f in results.values())
    print(f"{len(results) - failed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
