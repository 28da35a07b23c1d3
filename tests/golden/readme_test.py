#!/usr/bin/env python3
"""The README's ten examples, run as they stand. Each must end with exit status 0 and say something; the ids that example 6 shows must
be those of its text.

usage: readme_test.py --cera PATH [--model PATH]     without the model of `make models` the examples that use it are skipped"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def examples(readme):
    block = re.search(r"## Ten examples.*?```sh\n(.*?)```", readme, re.DOTALL).group(1)
    parts = re.split(r"^# (\d+)\. (.*)$", block, flags=re.MULTILINE)
    return parts[0], [(int(parts[i]), parts[i + 1], parts[i + 2]) for i in range(1, len(parts), 3)]


def check_ids(cera, model, code):
    text = re.search(r'echo -n "(.*?)"', code).group(1)
    ids = re.search(r'echo "([0-9 ]+)"', code).group(1)
    got = subprocess.run([cera, "tokenize", "-m", model], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    back = subprocess.run([cera, "tokenize", "-m", model, "--decode"], input=ids.encode(), stdout=subprocess.PIPE, check=True).stdout
    if got != ids:
        return f"the README shows the ids {ids} for {text!r}; they are {got}"
    if back.decode().rstrip("\n") != text:
        return f"the README's ids decode to {back!r}, not {text!r}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--model")
    args = parser.parse_args()
    head, found = examples((ROOT / "README.md").read_text())
    names = dict(line.split("=", 1) for line in head.split())
    passed = failed = skipped = 0
    if [number for number, _, _ in found] != list(range(1, 11)):
        print(f"the README's examples are numbered {[n for n, _, _ in found]}")
        return 1
    if args.model and names != {"cera": "build/release/cera", "M": f"models/{pathlib.Path(args.model).name}"}:
        print(f"the README's examples start from {names}, not from what `make run` and `make models` leave")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "README.md").write_text((ROOT / "README.md").read_text())
        for number, title, code in found:
            if "$M" in code and not args.model:
                print(f"skip example {number}: {title}: no real model (make models)")
                skipped += 1
                continue
            script = f"set -e\nM='{args.model}'\ncera='{args.cera}'\n{code}"
            done = subprocess.run(["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            made = [p for p in pathlib.Path(folder).iterdir() if p.name != "README.md"]
            problem = ""
            if done.returncode != 0:
                problem = f"exit status {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}"
            elif not done.stdout.strip() and not made:
                problem = "prints nothing and makes no file"
            elif number == 6:
                problem = check_ids(args.cera, args.model, code)
            print(f"{'FAIL' if problem else 'ok'} example {number}: {title} {problem}")
            failed += bool(problem)
            passed += not problem
            for path in made:
                path.unlink()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
