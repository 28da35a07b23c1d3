#!/usr/bin/env python3
"""stories260K (a trained model of 260,000 weights) against goldens: for each prompt, the logits of the prompt's tokens and the greedy
continuation after them. Logits within 1e-4 (relative to the golden's norm, over all rows, f32 cache), greedy ids exactly, and the ids
that `cera tokenize` gives for the prompt's text.

usage: stories_test.py --cera PATH --shared FOLDER [--tier NAME]"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

VOCAB = 512


def read_ids(path):
    lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    return [int(x) for x in lines["prompt ids"].split()], [int(x) for x in lines["greedy ids"].split()]


def logits(args, model, ids, raw):
    command = [args.cera, "logits", "-m", model, "--token-ids", ",".join(map(str, ids)), "--all", "--raw", raw]
    subprocess.run(command + (["--tier", args.tier] if args.tier else []), check=True)
    return np.fromfile(raw, np.float32).reshape(len(ids), VOCAB)


def check_logits(args, model, prompt, greedy, golden, raw):
    ids = (prompt + greedy)[: golden.shape[0]]
    got = logits(args, model, ids, raw)
    error = float(np.linalg.norm(got.astype(np.float64) - golden) / np.linalg.norm(golden.astype(np.float64)))
    return f"{golden.shape[0]} rows: relative error {error:.2e}", error <= 1e-4


def check_greedy(args, model, prompt, greedy, raw):
    """The arg max after each token of prompt and continuation is the next greedy id."""
    got = logits(args, model, prompt + greedy[:-1], raw)[len(prompt) - 1 :].argmax(1).tolist()
    wrong = [i for i, (a, b) in enumerate(zip(got, greedy)) if a != b]
    return f"{len(greedy)} greedy ids" + (f"; number {wrong[0]} is {got[wrong[0]]}, not {greedy[wrong[0]]}" if wrong else ""), not wrong


def check_run(args, model, prompt, greedy):
    """`cera run` at temperature 0 writes the text of those ids."""
    ids = " ".join(map(str, prompt)).encode()
    text = subprocess.run([args.cera, "tokenize", "-m", model, "--decode"], input=ids, stdout=subprocess.PIPE, check=True).stdout
    back = subprocess.run([args.cera, "tokenize", "-m", model, "--bos"], input=text, stdout=subprocess.PIPE, check=True).stdout
    if [int(x) for x in back.split()] != prompt:
        return f"the prompt {text!r} gives the ids {back.decode().strip()}", False
    command = [args.cera, "run", "-m", model, "--raw", "--temp", "0", "-n", str(len(greedy)), "--kv-type-k", "f32", "--kv-type-v", "f32"]
    out = subprocess.run(command + ["-p", text.decode()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True).stdout
    whole = subprocess.run([args.cera, "tokenize", "-m", model, "--decode"], input=" ".join(map(str, prompt + greedy)).encode(),
                           stdout=subprocess.PIPE, check=True).stdout
    return f"cera run writes {out[:40]!r}...", text + out == whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--shared")
    parser.add_argument("--tier")
    args = parser.parse_args()
    if not args.shared:
        print("SKIP: stories260K of the shared folder is needed")
        return 77
    folder = pathlib.Path(args.shared) / "data/stories260k"
    model = str(folder / "stories260K.gguf")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        raw = os.path.join(temporary, "logits.f32")
        for name in ("once", "robot"):
            prompt, greedy = read_ids(folder / f"{name}.ids.txt")
            golden = np.fromfile(folder / f"{name}.logits.f32", np.float32).reshape(-1, VOCAB)
            checks = [check_logits(args, model, prompt, greedy, golden, raw), check_greedy(args, model, prompt, greedy, raw),
                      check_run(args, model, prompt, greedy)]
            for message, right in checks:
                passed, failed = (passed + 1, failed) if right else (passed, failed + 1)
                print(f"{'ok' if right else 'FAIL'}: stories260K {name}: {message}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
