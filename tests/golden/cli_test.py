#!/usr/bin/env python3
"""The command line as its users and other tools rely on it: exit status, what goes to stdout and what to stderr, prompts from flags, files
and stdin, wrong flags, Ctrl-C, closed pipes, files that are no models or shrink while they are mapped. Makes its own model.

usage: cli_test.py --cera PATH"""
import argparse
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

import make_tiny


class Tests:
    def __init__(self, cera, folder):
        self.cera, self.folder = cera, folder
        self.model = os.path.join(folder, "tiny.gguf")
        make_tiny.make(self.model, "q8_0", seed=3)

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as f:
                f.write(content)
        return path

    def run(self, *args, stdin=b"", timeout=60):
        return subprocess.run([self.cera, *map(str, args)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)

    def ok(self, *args, **more):
        r = self.run(*args, **more)
        assert r.returncode == 0, f"cera {' '.join(map(str, args))}: status {r.returncode}: {r.stderr.decode(errors='replace')}"
        return r

    def fails(self, status, message, *args, **more):
        r = self.run(*args, **more)
        err = r.stderr.decode(errors="replace")
        assert r.returncode == status, f"cera {' '.join(map(str, args))}: status {r.returncode}, not {status}: {err}"
        assert re.search(message, err), f"stderr of cera {' '.join(map(str, args))} does not match {message!r}: {err!r}"
        assert r.stdout == b"", f"stdout of a failure holds {r.stdout[:80]!r}"
        return r

    # ---- flags ----

    def test_version_and_help(self):
        assert re.fullmatch(rb"cera \d+\.\d+\.\d+\S*\n", self.ok("--version").stdout)
        out = self.ok("help").stdout.decode()
        commands = re.findall(r"^  (\w+)", out, re.MULTILINE)
        assert {"run", "bench", "logits", "tokenize", "inspect", "cpu"} <= set(commands), out
        for command in commands:
            r = self.ok(command, "--help")
            assert r.stdout.startswith(b"usage: cera " + command.encode()) and r.stderr == b"", command
        self.fails(2, "usage: cera COMMAND", *[])

    def test_wrong_flags_name_the_nearest(self):
        self.fails(2, r"^cera: --temprature: no such flag; did you mean --temperature\?\n$", "run", "--temprature", "1")
        self.fails(2, r"did you mean --top-k\?", "run", "--topk", "1")
        self.fails(2, r"did you mean --threads\?", "bench", "--thread", "1")
        self.fails(2, r"^cera: --zzzzzzzzzz: no such flag; cera run --help lists them\n$", "run", "--zzzzzzzzzz")
        self.fails(2, r"^cera: rnu: no such command; did you mean run\?\n$", "rnu")
        self.fails(2, r"no such command; cera help", "qqqqqqqq")

    def test_wrong_values(self):
        self.fails(2, r'^cera: --threads: "abc" is not a whole number between 0 and 512\n$', "run", "-t", "abc")
        self.fails(2, "--threads", "run", "-t", "1000000")
        self.fails(2, "--threads", "run", "-t", "99999999999999999999")
        self.fails(2, r"-m needs a value \(FILE\)", "run", "-m")
        self.fails(2, "--no-mmap takes no value", "run", "--no-mmap=1")
        self.fails(2, "--temperature", "run", "--temp", "-1")
        self.fails(2, "--temperature", "run", "--temp", "nan")
        self.fails(2, "--top-p", "run", "--top-p", "1.5")
        self.fails(2, "--top-k", "run", "--top-k=-5")
        self.fails(2, "--seed", "run", "--seed", "-1")
        self.fails(2, '"q9_9" is no cache type', "run", "--kv-type-k", "q9_9")
        self.fails(2, "takes flags only", "run", "-m", self.model, "a prompt")
        self.fails(2, "give one of them", "run", "-p", "x", "-f", "y")
        self.fails(1, "tier avx9000 does not run on this processor; these do: .*c", "run", "-m", self.model, "-p", "x", "--tier", "avx9000")

    def test_flags_in_all_spellings(self):
        a = self.ok("run", "-m", self.model, "-p", "abc", "-n", 5, "--temp", 0).stdout
        b = self.ok("run", f"--model={self.model}", "--prompt=abc", "--predict=5", "--temperature=0", "--threads=1").stdout
        assert a == b and a != b""

    # ---- run ----

    def generate(self, *more, stdin=b""):
        return self.ok("run", "-m", self.model, "-n", 40, "--ignore-eos", *more, stdin=stdin)

    def test_prompts_from_everywhere_are_the_same(self):
        want = self.generate("--temp", 0, "-p", "hello there").stdout
        assert self.generate("--temp", 0, stdin=b"hello there").stdout == want
        assert self.generate("--temp", 0, "-f", self.path("prompt.txt", b"hello there")).stdout == want
        assert self.generate("--temp", 0, "-f", "-", stdin=b"hello there").stdout == want
        self.fails(1, "nothing.txt: No such file", "run", "-m", self.model, "-f", self.path("nothing.txt"))

    def test_text_to_stdout_speed_to_stderr(self):
        r = self.generate("-p", "a", "--temp", 1.5)
        r.stdout.decode("utf-8")  # whole characters, whatever bytes the model chose
        assert re.search(rb"prompt: \d+ tokens, [\d.]+ tok/s; generated: 40 tokens, [\d.]+ tok/s; seed \d+; -n reached", r.stderr), r.stderr
        assert b"tok/s" not in r.stdout

    def test_seed_gives_the_same_text(self):
        one = self.generate("-p", "a", "--seed", 5, "--temp", 1).stdout
        assert self.generate("-p", "a", "--seed", 5, "--temp", 1).stdout == one
        assert self.generate("-p", "a", "--seed", 5, "--temp", 1, "-t", 1, "-ub", 1).stdout == one
        assert self.generate("-p", "a", "--seed", 6, "--temp", 1).stdout != one

    def test_context_full_ends_with_its_reason(self):
        r = self.ok("run", "-m", self.model, "-c", 32, "-p", "abcdefgh", "--ignore-eos", "--temp", 0)
        assert b"the context is full" in r.stderr
        self.fails(1, "do not fit: the context holds 8", "run", "-m", self.model, "-c", 8, "-p", "a" * 100)

    def test_context_of_exactly_the_prompt(self):
        n = len(self.ok("tokenize", "-m", self.model, "--bos", stdin=b"abcdefgh").stdout.split())
        r = self.ok("run", "-m", self.model, "-c", n, "-p", "abcdefgh", "--temp", 0)
        assert b"generated: 0 tokens" in r.stderr and r.stdout == b"", r

    def test_bytes_that_are_not_utf8_and_empty_prompts(self):
        self.generate("-f", self.path("bad.txt", b"\xff\xfe\xc0\x80 \xe2\x80"))
        self.generate("-p", "")  # this vocabulary begins a text with BOS

    def test_no_mmap_and_override(self):
        want = self.generate("--temp", 0, "-p", "abc").stdout
        assert self.generate("--temp", 0, "-p", "abc", "--no-mmap").stdout == want
        other = self.generate("--temp", 0, "-p", "abc", "--override-kv", "llama.rope.freq_base=float:10").stdout
        assert other != want
        self.fails(1, "attention.head_count", "run", "-m", self.model, "-p", "x", "--override-kv", "llama.attention.head_count=int:0")

    def test_no_model(self):
        r = self.run("run", "-p", "x", "-n", "1")
        if r.returncode != 0:  # a program with a model of its own runs it
            assert r.returncode == 2 and b"no model given" in r.stderr, r

    # ---- interrupted, closed ----

    def start(self, *args, **more):
        return subprocess.Popen([self.cera, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def test_ctrl_c_keeps_what_there_is(self):
        p = self.start("run", "-m", self.model, "-p", "abc", "--ignore-eos", "--temp", 1, "--override-kv", "llama.context_length=int:1000000")
        first = os.read(p.stdout.fileno(), 1)
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        assert p.returncode == 130, (p.returncode, err)
        (first + out).decode("utf-8")
        assert b"interrupted" in err and len(out) > 0, err

    def test_ctrl_c_during_the_prompt(self):
        p = self.start("run", "-m", self.model, "-f", self.path("long.txt", b"abcdefgh " * 40000), "-c", 2000000, "-t", 1)
        time.sleep(0.7)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        assert p.returncode == 130 and out == b"", (p.returncode, out[:50], err)

    def test_closed_pipe_ends_quietly(self):
        p = self.start("run", "-m", self.model, "-p", "abc", "--ignore-eos", "--override-kv", "llama.context_length=int:1000000")
        os.read(p.stdout.fileno(), 1)
        p.stdout.close()
        p.stdout = None
        err = p.stderr.read()
        assert p.wait(timeout=30) == 1, p.returncode
        assert b"rror" not in err and b"roken" not in err, err

    def test_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            return
        with open("/dev/full", "wb") as full:
            p = subprocess.run([self.cera, "run", "-m", self.model, "-p", "abc", "-n", "5"], stdout=full, stderr=subprocess.PIPE)
        assert p.returncode == 1 and b"stdout: No space left on device" in p.stderr, p
        self.fails(1, "/dev/full: No space", "logits", "-m", self.model, "--token-ids", "1,2", "--raw", "/dev/full")

    # ---- files that are no models ----

    def test_bad_files_are_named(self):
        for name, content in {"empty.gguf": b"", "text.gguf": b"hello", "magic.gguf": b"GGUF", "cut.gguf": open(self.model, "rb").read()[:5000]}.items():
            path = self.path(name, content)
            for command in (["run", "-p", "x", "-m", path], ["inspect", path], ["bench", "-m", path], ["tokenize", "-m", path]):
                r = self.fails(1, re.escape(name), *command)
                assert r.stderr.count(b"\n") == 1, r.stderr
        self.fails(1, "none.gguf: No such file", "run", "-m", self.path("none.gguf"), "-p", "x")

    def test_file_that_shrinks_while_it_is_mapped(self):
        path = self.path("shrinks.gguf", open(self.model, "rb").read())
        p = self.start("run", "-m", path, "-p", "abc", "--ignore-eos", "--override-kv", "llama.context_length=int:1000000")
        os.read(p.stdout.fileno(), 1)
        with open(path, "r+b") as f:
            f.truncate(8192)
        out, err = p.communicate(timeout=30)
        assert p.returncode == 1 and b"shrinks.gguf" in err and b"--no-mmap" in err, (p.returncode, err)

    def test_unknown_architecture_can_be_inspected(self):
        path = self.path("other.gguf", open(self.model, "rb").read().replace(b"\x05\0\0\0\0\0\0\0llama\x09", b"\x05\0\0\0\0\0\0\0xyzzy\x09", 1)
                         .replace(b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama", b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0xyzzy", 1))
        out = self.ok("inspect", path, "--tensors").stdout.decode()
        assert "runs: no" in out and "xyzzy" in out and "blk.0.attn_q.weight" in out, out[:300]
        assert json.loads(self.ok("inspect", path, "--json").stdout)["runs"] is False
        self.fails(1, "xyzzy", "run", "-m", path, "-p", "x")

    # ---- the other commands ----

    def test_tokenize(self):
        ids = self.ok("tokenize", "-m", self.model, stdin="héllo the wörld".encode()).stdout
        assert re.fullmatch(rb"[0-9 ]+\n", ids)
        back = self.ok("tokenize", "-m", self.model, "--decode", stdin=ids).stdout
        assert back == "héllo the wörld".encode(), back
        with_bos = self.ok("tokenize", "-m", self.model, "--bos", "-p", "a").stdout.split()
        assert with_bos[0] == b"1" and self.ok("tokenize", "-m", self.model, "-p", "a").stdout.split() == with_bos[1:]
        assert self.ok("tokenize", "-m", self.model, "--special", "-p", "a</s>").stdout.split()[-1] == b"2"
        assert self.ok("tokenize", "-m", self.model, "-p", "a</s>").stdout.split()[-1] != b"2"
        assert self.ok("tokenize", "-m", self.model, stdin=b"").stdout == b"\n"
        self.fails(2, '"x" is no token id', "tokenize", "-m", self.model, "--decode", stdin=b"1 x 2")
        self.fails(1, "99999", "tokenize", "-m", self.model, "--decode", stdin=b"99999")

    def test_logits(self):
        raw = self.path("logits.f32")
        self.ok("logits", "-m", self.model, "--token-ids", "1,5,7,9", "--all", "--raw", raw)
        data = open(raw, "rb").read()
        assert len(data) == 4 * 512 * 4
        self.ok("logits", "-m", self.model, "--token-ids", "1 5 7 9", "--raw", raw)
        assert open(raw, "rb").read() == data[-512 * 4 :]
        piped = self.ok("logits", "-m", self.model, "--token-ids", "1,5,7,9", "--all", "--raw", "-").stdout
        assert piped == data
        listed = self.ok("logits", "-m", self.model, "--token-ids", "1,5", "--top", "3").stdout.decode().splitlines()
        assert len(listed) == 4 and listed[0] == "token 1: 5", listed
        self.fails(1, "token 512 .*out of range", "logits", "-m", self.model, "--token-ids", "1,512")
        self.fails(2, "is no token id", "logits", "-m", self.model, "--token-ids", "1,-2")
        self.fails(2, "is empty", "logits", "-m", self.model, "--token-ids", ",")
        self.fails(2, "is needed", "logits", "-m", self.model)

    def test_logits_of_cache_types(self):
        model = self.path("f32.gguf")  # of f32 weights: int8 activations would round the small differences up or away
        make_tiny.make(model, "f32", seed=3)

        def of(*flags):
            data = self.ok("logits", "-m", model, "--token-ids", "1,5,7,9,11,13", "--raw", "-", *flags).stdout
            return struct.unpack(f"<{len(data) // 4}f", data)

        exact, half, brain = of(), of("--kv-type-k", "f16", "--kv-type-v", "f16"), of("--kv-type-k", "bf16", "--kv-type-v", "bf16")
        assert exact == of("--kv-type-k", "f32", "--kv-type-v", "f32")
        assert exact != half and half != brain
        norm = sum(x * x for x in exact) ** 0.5
        # The cache is rounded to 11 and 8 bits: half an ulp each for K and V, and a model of two layers that spreads it little.
        for other, bits in ((half, 11), (brain, 8)):
            assert sum((x - y) ** 2 for x, y in zip(exact, other)) ** 0.5 / norm < 8 * 2.0**-bits

    def test_inspect(self):
        out = self.ok("inspect", self.model).stdout.decode()
        assert "runs: yes" in out and "llama.embedding_length" in out and "cache" in out
        j = json.loads(self.ok("inspect", self.model, "--tensors", "--plan", "--json").stdout)
        assert j["keys"]["llama.embedding_length"] == 256 and j["keys"]["general.name"] == "tiny"
        assert j["keys"]["tokenizer.ggml.tokens"] == {"array_of": "string", "n": 512}
        assert any(t["name"] == "blk.1.ffn_down.weight" and t["type"] == "q8_0" and t["shape"] == [512, 256] for t in j["tensors"])
        assert any("ATTEND" in op for op in j["plan"]) and j["context"] == 2048
        self.fails(2, "name a model file", "inspect")
        self.fails(2, "more than one model", "inspect", self.model, self.model)

    def test_bench(self):
        j = json.loads(self.ok("bench", "-m", self.model, "-p", 16, "-n", 4, "-d", 8, "-t", 1, "-r", 3, "--json").stdout)
        for field in ("prompt_tok_s", "generate_tok_s", "load_ms", "first_token_ms", "rss_mib"):
            assert j[field] > 0, field
        assert j["threads"] == 1 and j["runs"] == 3 and j["depth"] == 8 and "tier" in j and "kv_type_k" in j and "prompt_spread" in j
        self.fails(2, "nothing to measure", "bench", "-m", self.model, "-p", 0, "-n", 0)

    def test_bench_runs_each_operation_once_a_step(self):
        command = ["bench", "-m", self.model, "-p", 0, "-n", 3, "-r", 1, "--seqs", 8, "--profile", "--json"]
        j = json.loads(self.ok(*command).stdout)
        assert j["profile"] and all(row["runs"] == 3 for row in j["profile"]), [row["runs"] for row in j["profile"]]
        ops = [row["op"] for row in j["profile"]]
        assert ops.count("ATTEND") == 2 and ops.count("LOGITS") == 1, ops
        assert b"memory bandwidth" in self.ok(*command[:-1]).stdout

    def test_cpu(self):
        j = json.loads(self.ok("cpu", "--json").stdout)
        assert j["tier"] in j["tiers"] and "c" in j["tiers"] and j["threads"] >= 1
        assert j["tier"].encode() in self.ok("cpu").stdout
        for tier in j["tiers"]:
            assert self.generate("--temp", 0, "-p", "abc", "--tier", tier, "--kv-type-k", "f32", "--kv-type-v", "f32").stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(os.path.abspath(args.cera), folder)
        for name in [n for n in dir(tests) if n.startswith("test_") and args.only in n]:
            try:
                getattr(tests, name)()
                passed += 1
                print(f"ok: {name}")
            except (AssertionError, subprocess.TimeoutExpired, ValueError, KeyError) as e:
                failed += 1
                print(f"FAIL: {name}: {str(e)[:600]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
