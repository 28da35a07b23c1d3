#!/usr/bin/env python3
"""fuzz.py: runs every fuzzer of a build for a while, on its saved corpus and on fresh inputs, and holds the parsers' line coverage
against the floors of tests/fuzz/floors.txt.

    tools/fuzz.py --build build/fuzz [--seconds 20] [--jobs 2] [--only NAME] [--keep FOLDER]

Owns the run and the floors; the fuzzers own what is asserted. A fuzzer without a floor and a floor without a fuzzer are failures: a
parser must not fall out of the check unseen. The saved corpus is read, never written: --keep names a folder for new inputs. A crash's
input is left in BUILD/artifacts. Last line: `N passed, N failed, N skipped`, a case each fuzzer and each floor.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read_floors():
    """name -> [(source, percent)]"""
    floors = {}
    for line in (ROOT / "tests/fuzz/floors.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, source, percent = line.split()
            floors.setdefault(name, []).append((source, float(percent)))
    return floors


def read_fuzzers(build):
    programs = {}
    for line in (build / "tests.txt").read_text().splitlines():
        kind, name, path, *_ = line.split()
        if kind == "fuzzer":
            programs[name] = pathlib.Path(path)
    return programs


def fuzz(name, program, args, work):
    """Problem text, or ''; and what libFuzzer did."""
    fresh = args.keep / name if args.keep else work / name
    fresh.mkdir(parents=True, exist_ok=True)
    corpus = ROOT / "tests/fuzz/corpus" / name
    if not corpus.is_dir() or not any(corpus.iterdir()):
        return f"no saved corpus in tests/fuzz/corpus/{name}", ""
    artifacts = args.build / "artifacts"
    artifacts.mkdir(exist_ok=True)
    dictionary = ROOT / f"tests/fuzz/{name}.dict"
    command = [program, f"-max_total_time={args.seconds}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
               f"-artifact_prefix={artifacts}/{name}-", *([f"-dict={dictionary}"] if dictionary.is_file() else []), fresh, corpus]
    env = dict(os.environ, LLVM_PROFILE_FILE=str(work / f"{name}.profraw"))
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=work)
    text = done.stdout.decode(errors="replace")
    runs = re.search(r"number_of_executed_units: (\d+)", text)
    seed = re.search(r"INFO: Seed: (\d+)", text)
    note = f"{runs.group(1) if runs else '?'} runs, seed {seed.group(1) if seed else '?'}, {len(list(fresh.iterdir()))} new inputs"
    if done.returncode != 0:
        return f"failed ({note}):\n" + "\n".join(text.splitlines()[-60:]), note
    if not runs or int(runs.group(1)) < 100:
        return f"hardly ran ({note})", note
    return "", note


def coverage(name, program, work):
    """source -> percent of lines"""
    raw, data = work / f"{name}.profraw", work / f"{name}.profdata"
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", raw, "-o", data], check=True)
    export = subprocess.run(["llvm-cov-14", "export", "-summary-only", f"-instr-profile={data}", program], check=True, stdout=subprocess.PIPE)
    files = json.loads(export.stdout)["data"][0]["files"]
    return {os.path.relpath(f["filename"], ROOT): f["summary"]["lines"]["percent"] for f in files}


def main():
    parser = argparse.ArgumentParser(description="Run the fuzzers and check their coverage floors.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", help="one fuzzer")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for new inputs")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.keep = args.keep.resolve() if args.keep else None
    floors, programs = read_floors(), read_fuzzers(args.build)
    names = [args.only] if args.only else sorted(set(floors) | set(programs))
    passed, problems = 0, []
    work = pathlib.Path(tempfile.mkdtemp(prefix="cera-fuzz-"))
    try:
        runnable = [n for n in names if n in programs]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            results = dict(zip(runnable, pool.map(lambda n: fuzz(n, programs[n], args, work), runnable)))
        for name in names:
            if name not in programs:
                problems.append(f"{name}: has a floor, but tests/fuzz/{name}_fuzz.c is not there")
                continue
            problem, note = results[name]
            print(f"{'FAIL' if problem else 'PASS'} fuzz/{name}: {note}")
            if problem:
                problems.append(f"{name}: {problem}")
                continue
            passed += 1
            if name not in floors:
                problems.append(f"{name}: no floor in tests/fuzz/floors.txt")
                continue
            lines = coverage(name, programs[name], work)
            for source, floor in floors[name]:
                percent = lines.get(source)
                good = percent is not None and percent >= floor
                said = "not compiled in" if percent is None else f"{percent:.1f} % of lines, floor {floor:g}"
                print(f"{'PASS' if good else 'FAIL'} coverage/{name}: {source} {said}")
                passed += good
                if not good:
                    problems.append(f"{name}: {source}: {said}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for problem in problems:
        print(f"fuzz: {problem}")
    print(f"{passed} passed, {len(problems)} failed, 0 skipped")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
