#!/usr/bin/env python3
"""The JSON Schema Test Suite (shared/data/json/JSON-Schema-Test-Suite) through `cera grammar`, format.json aside: at least 75 % of draft 7 and
60 % of draft 2020-12 right, the rest refused, none wrong. All tests go through --rows; every 40th also through --schema --any-order --check.

usage: schema_suite_test.py --cera PATH --shared FOLDER"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

BARS = {"draft7": 0.75, "draft2020-12": 0.60}


def groups(folder):
    for path in sorted(folder.glob("*.json")):
        if path.name != "format.json":
            for group in json.loads(path.read_text(encoding="utf-8")):
                yield path.name, group


def verdicts(cera, rows, work):
    lines = work / "rows.jsonl"
    lines.write_text("".join(json.dumps({"name": str(i), "schema": g["schema"], "tests": g["tests"]}) + "\n" for i, (_, g) in enumerate(rows)))
    out = subprocess.run([cera, "grammar", "--rows", str(lines)], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"cera grammar --rows: exit {out.returncode}: {out.stderr[:300]}")
    for line in out.stdout.splitlines():
        name, index, verdict, reason = line.split("\t", 3)
        yield int(name), int(index), verdict, reason


def through_check(cera, schema, data, work):
    (work / "schema.json").write_text(json.dumps(schema))
    (work / "data.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    command = [cera, "grammar", "--schema", str(work / "schema.json"), "--any-order", "--check", str(work / "data.json")]
    code = subprocess.run(command, capture_output=True).returncode
    return {0: "accepted", 1: "rejected", 3: "refused"}.get(code, f"exit {code}")


def run_draft(cera, folder, bar, work):
    rows = list(groups(folder))
    counts, failures, refused, seen = collections.Counter(), [], collections.Counter(), 0
    for group, index, verdict, reason in verdicts(cera, rows, work):
        name, test = rows[group][0], rows[group][1]["tests"][index]
        what = f"{name}: {rows[group][1]['description']}: {test['description']}"
        result = "refused" if verdict == "refused" else "right" if (verdict == "accepted") == test["valid"] else "wrong"
        counts[result] += 1
        if result == "wrong":
            failures.append(f"{what}: {verdict} ({reason})")
        if result == "refused":
            refused[name] += 1
        if seen % 40 == 0:
            again = through_check(cera, rows[group][1]["schema"], test["data"], work)
            if again != verdict:
                failures.append(f"{what}: --rows says {verdict}, --check {again}")
        seen += 1
    expected = sum(len(g["tests"]) for _, g in rows)
    if seen != expected:
        failures.append(f"{seen} verdicts for {expected} tests")
    share = counts["right"] / expected
    print(f"{folder.name}: {counts['right']} of {expected} right ({share:.1%}), {counts['refused']} refused, {counts['wrong']} wrong")
    print("    refused by file: " + ", ".join(f"{k} {v}" for k, v in sorted(refused.items())))
    if share < bar:
        failures.append(f"{share:.1%} right; the bar is {bar:.0%}")
    return failures


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cera", required=True)
    p.add_argument("--shared")
    args = p.parse_args()
    suite = pathlib.Path(args.shared or "/nonexistent") / "data/json/JSON-Schema-Test-Suite/tests"
    if not suite.is_dir():
        print("SKIP: the suite lies in shared/, which is not here")
        sys.exit(77)
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for draft, bar in BARS.items():
            failures = run_draft(args.cera, suite / draft, bar, pathlib.Path(work))
            print(f"{'FAILED' if failures else 'ok'}: {draft}" + "".join(f"\n    {f}" for f in failures[:10]))
            failed += bool(failures)
    print(f"{len(BARS) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
