#!/usr/bin/env python3
"""Malformed model files through the program: each gets one line on stderr that names the file and the rule, exit status 1, no
signal, in under a second of processor time and without more memory than a good file needs.

usage: malformed_test.py --cera PATH [--shared PATH]

Inputs: the files of SHARED/tools/make_malformed.py (the ids are those of SHARED/bug-cases.md; skipped without SHARED), stories260K
cut short at 40 places, and files made here, which also hold the type table against the gguf Python package where it is installed.
A file that breaks a rule of GGUF must fail both `inspect` and `run`; one that is good GGUF and a bad model must fail `run`, and
`inspect` may show it with the reason.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

from gguf_write import ARR, F32, I32, STR, U8, U32, build, key

SEED = 5
CPU_LIMIT_S = 1.0
WALL_LIMIT_S = 30  # only a hang; the machine may be busy
MEMORY_SLACK_KIB = 8 << 10
# Files of make_malformed.py that break no rule of the format. What their models lack is the model's and the vocabulary's affair.
GOOD_GGUF = ("G18", "G19", "G20", "G21", "G22", "G23", "G30-", "G31", "G32", "G34", "S0")
GOOD_MODEL = ("S00",)
# An id out of range may be an error or no id, a huge context may be clamped: stated by those layers, only harm is refused here.
EITHER = ("G23-", "G23b", "G31e")
# Load, and fail when they are used: the first step of S01 names the token, a chat template of G34 its line.
FAILS_LATER = ("S01", "G34")


class Checker:
    def __init__(self, cera, folder):
        self.cera, self.folder, self.passed, self.failed, self.base_kib = cera, folder, 0, 0, None

    def execute(self, path, command):
        arguments = [self.cera, "inspect", path] if command == "inspect" else [self.cera, "run", "-m", path, "-p", "x", "-n", "1"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            try:
                process.wait(timeout=WALL_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return None, b"", b"", 0
            out.seek(0), err.seek(0)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return process.returncode, out.read(), err.read(), seconds

    def problem(self, path, command, allowed):
        status, out, err, seconds = self.execute(path, command)
        if status is None:
            return f"did not end within {WALL_LIMIT_S} s"
        if status < 0:
            return f"ended by signal {-status}"
        if status not in allowed:
            return f"exit status {status}, {' or '.join(map(str, sorted(allowed)))} wanted: {err[:300]!r}"
        if seconds > CPU_LIMIT_S:
            return f"took {seconds:.2f} s of processor time"
        return self.message_problem(path, err) if status == 1 else None

    @staticmethod
    def message_problem(path, err):
        lines = err.decode(errors="replace").splitlines()
        if len(lines) != 1:
            return f"{len(lines)} lines on stderr, 1 wanted: {err[:500]!r}"
        if any(ord(c) < 32 or 127 <= ord(c) < 160 or c == "\ufffd" for c in lines[0]):
            return f"control characters or bad UTF-8 in {lines[0]!r}"
        name = pathlib.Path(path).name
        if name.startswith(FAILS_LATER):
            return None
        if name not in lines[0]:
            return f"the message does not name {name}: {lines[0]}"
        if len(lines[0].split(name, 1)[1]) < 10:
            return f"the message names no rule: {lines[0]}"
        return None

    def check(self, name, path, inspect, run):
        """inspect, run: sets of allowed exit statuses."""
        for command, allowed in (("inspect", inspect), ("run", run)):
            problem = self.problem(str(path), command, allowed)
            self.passed, self.failed = self.passed + (not problem), self.failed + bool(problem)
            if problem:
                print(f"FAIL {name}: cera {command}: {problem}", flush=True)

    def check_bytes(self, name, data, inspect, run):
        path = self.folder / f"{name}.gguf"
        path.write_bytes(data)
        self.check(name, path, inspect, run)
        path.unlink()


def peak_kib(cera, path):
    """Peak memory of one good run, in a process of its own so that children's maximum is not mixed up."""
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,"
              " stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [sys.executable, "-c", script, cera, "inspect", str(path)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def shared_files(checker, shared):
    stories = shared / "data/stories260k/stories260K.gguf"
    folder = checker.folder / "malformed"
    subprocess.run([sys.executable, shared / "tools/make_malformed.py", folder, stories], check=True, stdout=subprocess.DEVNULL)
    files = sorted(folder.glob("*.gguf"))
    for path in files:
        good_gguf = path.name.startswith(GOOD_GGUF)
        run = {0} if path.name.startswith(GOOD_MODEL) else {0, 1} if path.name.startswith(EITHER) else {1}
        checker.check(path.stem, path, ({0} if run == {0} else {0, 1}) if good_gguf else {1}, run)
    print(f"{len(files)} files of make_malformed.py")
    base = peak_kib(checker.cera, folder / "S00-rebuilt-control.gguf")
    for path in files:
        used = peak_kib(checker.cera, path) if not path.name.startswith(GOOD_GGUF) else 0
        if used > base + MEMORY_SLACK_KIB:
            print(f"FAIL {path.stem}: cera inspect took {used} KiB; the good file takes {base}")
            checker.failed += 1
    checker.passed += 1


def cut_files(checker, shared):
    data = (shared / "data/stories260k/stories260K.gguf").read_bytes()
    rng = random.Random(SEED)
    for n in sorted(rng.randrange(len(data)) for _ in range(40)):
        checker.check_bytes(f"cut-at-{n}", data[:n], {1}, {1})


def arch(**more):
    return [key("general.architecture", STR, "llama"), *(key(name, kind, v) for name, (kind, v) in more.items())]


def own_files(checker):
    """A few of each kind, so that a machine without SHARED tries the program's way of failing, too."""
    bad = {
        "empty": b"",
        "not-gguf": b"hello, this is no model",
        "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "big-endian": b"GGUF" + (3).to_bytes(4, "big") + bytes(16),
        "huge-count": b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 16,
        "escape-in-key": build([key(b"\x1b]0;owned\x07", U8, 1)], []),
        "duplicate-key": build(arch() + arch(), []),
        "nested-array": build([key("a", ARR, (ARR, [(U8, [1])]))], []),
        "odd-alignment": build([key("general.alignment", U32, 33)], []),
        "unknown-type": build(arch(), [("blk.0.attn_q.weight", [32], 99, 0)], bytes(64)),
        "part-2": build([*arch(), key("split.no", U32, 1), key("split.count", U32, 2)], []),
        "overlap": build(arch(), [("a", [16], 0, 0), ("b", [16], 0, 32)], bytes(128)),
        "beyond-the-end": build(arch(), [("a", [17], 0, 0)], bytes(64)),
    }
    for name, data in bad.items():
        checker.check_bytes(name, data, {1}, {1})
    bad_models = {
        "no-architecture": build([key("general.name", STR, "x")], []),
        "unknown-architecture": build([key("general.architecture", STR, "no-such-family")], []),
        "no-hyperparameters": build(arch(), [("token_embd.weight", [4, 4], 0, 0)], bytes(64)),
        "bad-vocabulary": build([*arch(), key("tokenizer.ggml.tokens", ARR, (I32, [1, 2]))], []),
        "nan-epsilon": build(arch(**{"llama.attention.layer_norm_rms_epsilon": (F32, float("nan"))}), []),
    }
    for name, data in bad_models.items():
        checker.check_bytes(name, data, {0, 1}, {1})


def odd_paths(checker):
    """What is no file at all."""
    pipe = checker.folder / "pipe.gguf"
    os.mkfifo(pipe)
    folder = checker.folder / "folder.gguf"
    folder.mkdir()
    for path in (pipe, folder, checker.folder / "missing.gguf"):
        checker.check(path.stem, path, {1}, {1})


def type_table(checker):
    """`cera inspect` must give every type that the gguf package knows its name and size."""
    try:
        from gguf import GGML_QUANT_SIZES
    except ImportError as missing:
        print(f"note: {missing}; the type table was not compared")
        return
    sizes = {int(kind): (kind.name.lower(), *size) for kind, size in GGML_QUANT_SIZES.items()}
    sizes[9] = ("q8_1", 32, 36)  # the package counts two f32 in its header; ggml's block has two f16
    tensors, data = [], b""
    for number, (name, elements, block_bytes) in sizes.items():
        tensors.append((name, [elements * 3, 2], number, len(data)))
        data += bytes(block_bytes * 6)
        data += bytes(-len(data) % 32)
    path = checker.folder / "types.gguf"
    path.write_bytes(build(arch(), tensors, data))
    done = subprocess.run([checker.cera, "inspect", path, "--tensors", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    got = {t["name"]: t for t in json.loads(done.stdout)["tensors"]} if done.returncode == 0 else {}
    for name, _, block_bytes in sizes.values():
        right = name in got and got[name]["type"].lower() == name and got[name]["bytes"] == 6 * block_bytes
        checker.passed, checker.failed = checker.passed + right, checker.failed + (not right)
        if not right:
            print(f"FAIL type {name}: {got.get(name)}; {6 * block_bytes} bytes wanted {done.stderr[:200]!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--shared", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(args.cera, pathlib.Path(folder))
        own_files(checker)
        odd_paths(checker)
        type_table(checker)
        skipped = 0
        if args.shared and (args.shared / "tools/make_malformed.py").is_file():
            shared_files(checker, args.shared)
            cut_files(checker, args.shared)
        else:
            print("SKIP: make_malformed.py and stories260K are in --shared, which is absent")
            skipped = 1
    print(f"{checker.passed} passed, {checker.failed} failed, {skipped} skipped")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
