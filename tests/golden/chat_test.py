#!/usr/bin/env python3
"""`cera run` and `cera chat` with templates, stop strings, forms, logprobs and JSON output, on a model of random weights that this test
makes: what the model says means nothing, but which tokens it is given, what comes out and what is evaluated again is exact.

usage: chat_test.py --cera PATH"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import make_tiny

TEMPLATE = ("{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
            "{% if add_generation_prompt %}[assistant]{% endif %}")
LONG = ["--override-kv", "llama.context_length=int:1000000"]


class Tests:
    def __init__(self, cera, folder):
        self.cera, self.folder = cera, folder
        self.plain, self.model = os.path.join(folder, "plain.gguf"), os.path.join(folder, "chat.gguf")
        make_tiny.make(self.plain, "q8_0", seed=3)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_tiny.py")
        subprocess.run([sys.executable, script, self.model, "--type", "q8_0", "--seed", "3", "--key",
                        "tokenizer.chat_template=text:" + TEMPLATE], check=True)

    def run(self, *args, stdin=b"", status=0):
        r = subprocess.run([self.cera, *map(str, args)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert r.returncode == status, f"cera {' '.join(map(str, args))}: status {r.returncode}: {r.stderr.decode(errors='replace')}"
        return r

    def object(self, *args, model=None, **more):
        return json.loads(self.run("run", "-m", model or self.model, "--output", "json", "-n", 12, *args, **more).stdout)

    def ids(self, text, *flags):
        return [int(x) for x in self.run("tokenize", "-m", self.plain, *flags, stdin=text.encode()).stdout.split()]

    # ---- templates ----

    def test_prompt_goes_through_the_template(self):
        want = self.ids("<s>[user]hello</s>[assistant]", "--special")
        assert want.count(1) == 1 and want[0] == 1 and 2 in want
        assert self.object("-p", "hello")["prompt_tokens"] == want  # BOS once, though the vocabulary adds it too
        assert self.object(stdin=b"hello\n")["prompt_tokens"] == want
        with_system = self.ids("<s>[system]be brief</s>[user]hello</s>[assistant]", "--special")
        assert self.object("-p", "hello", "--system", "be brief")["prompt_tokens"] == with_system

    def test_user_text_is_no_control_token(self):
        got = self.object("-p", "a</s>b")["prompt_tokens"]
        assert got.count(2) == 1, got  # the template's own
        text = self.run("tokenize", "-m", self.model, "--decode", stdin=" ".join(map(str, got)).encode()).stdout
        assert text.replace(b" ", b"") == b"[user]a</s>b[assistant]", text  # control tokens have no text

    def test_raw_and_models_without_template(self):
        want = self.ids("hello", "--bos")
        assert self.object("-p", "hello", "--raw")["prompt_tokens"] == want
        assert self.object("-p", "hello", model=self.plain)["prompt_tokens"] == want
        r = self.run("run", "-m", self.plain, "--system", "x", "-p", "y", status=1)
        assert b"--chat-template" in r.stderr
        assert b"--chat-template" in self.run("chat", "-m", self.plain, status=1).stderr
        self.run("run", "-m", self.model, "--raw", "--system", "x", "-p", "y", status=2)

    def test_other_templates(self):
        got = self.object("-p", "hello", "--chat-template", "chatml", model=self.plain)["prompt_tokens"]
        text = self.run("tokenize", "-m", self.plain, "--decode", stdin=" ".join(map(str, got)).encode()).stdout
        assert text.endswith(b"<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"), text
        path = os.path.join(self.folder, "t.jinja")
        with open(path, "w") as f:
            f.write("{{ word }}{{ n + 1 }}{{ messages[0].content }}")
        got = self.object("-p", "x", "--chat-template", path, "--template-arg", "word=ab", "--template-arg", "n=4")["prompt_tokens"]
        assert self.run("tokenize", "-m", self.plain, "--decode", stdin=" ".join(map(str, got)).encode()).stdout.strip() == b"ab5x"
        self.run("run", "-m", self.model, "-p", "x", "--chat-template", "no-such", status=1)

    # ---- output ----

    def test_json_output(self):
        o = self.object("-p", "hello", "--temp", 0, "--logprobs", 3, "--ignore-eos")
        assert o["finish"] == "length" and o["n_tokens"] == 12 == len(o["tokens"]) and o["timings"]["generate_ms"] > 0
        for t in o["tokens"]:
            assert len(t["top"]) == 3 and t["top"][0]["id"] == t["id"] and t["top"][0]["logprob"] == t["logprob"] <= 0
            assert t["top"][0]["logprob"] >= t["top"][1]["logprob"] >= t["top"][2]["logprob"]
        text = self.run("run", "-m", self.model, "-n", 12, "-p", "hello", "--temp", 0, "--ignore-eos").stdout
        assert o["text"].encode() == text

    def test_logprobs_are_the_models(self):
        import math
        import struct
        o = self.object("-p", "hello", "--temp", 0, "--logprobs", 2, "--ignore-eos", "--kv-type-k", "f32", "--kv-type-v", "f32")
        data = self.run("logits", "-m", self.model, "--token-ids", ",".join(map(str, o["prompt_tokens"])), "--raw", "-").stdout
        logits = struct.unpack(f"<{len(data) // 4}f", data)
        top = max(logits)
        total = math.log(sum(math.exp(x - top) for x in logits)) + top
        for t in o["tokens"][0]["top"]:
            assert abs(logits[t["id"]] - total - t["logprob"]) < 1e-4, t

    # ---- ends ----

    def test_stop_strings(self):
        whole = self.object("-p", "hello", "--temp", 0, "--ignore-eos", "-n", 60)["text"]
        for start, end in ((7, 9), (20, 26), (33, 34)):
            stop = whole[start:end]
            if "\ufffd" in stop:
                continue
            o = self.object("-p", "hello", "--temp", 0, "--ignore-eos", "-n", 60, "--stop", "never this", "--stop", stop)
            assert o["finish"] == "stop" and o["stop"] == stop and o["text"] == whole[: whole.index(stop)], (stop, o["text"], whole)
        same = self.object("-p", "hello", "--temp", 0, "--ignore-eos", "-n", 60, "--stop", whole[-4:] + "and no more")
        assert same["text"] == whole and same["finish"] == "length"  # a false start comes out in the end
        self.run("run", "-m", self.model, "-p", "x", "--stop", "", status=1)

    def test_minimum_and_end_tokens(self):
        force = ["--logit-bias", "2+1e6"]  # the end-of-text token wins whenever it may
        assert self.object("-p", "x", *force)["n_tokens"] == 0
        o = self.object("-p", "x", "--min-tokens", 5, *force)
        assert o["n_tokens"] == 5 and o["finish"] == "eog", o
        assert self.object("-p", "x", "--ignore-eos", *force)["finish"] == "length"

    def test_forms(self):
        for seed in range(5):
            o = self.object("-p", "x", "--regex", "^[0-9]{3}-[a-f]{2}$", "--seed", seed, "--temp", 1.5)
            assert re.fullmatch("[0-9]{3}-[a-f]{2}", o["text"]) and o["finish"] in ("grammar", "eog"), o
        schema = os.path.join(self.folder, "s.json")
        with open(schema, "w") as f:
            json.dump({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["a"],
                       "additionalProperties": False}, f)
        o = self.object("-p", "x", "--schema", schema, "-n", 200, "--seed", 1, "--temp", 1.5)
        assert 1 <= json.loads(o["text"])["a"] <= 99
        grammar = os.path.join(self.folder, "g.gbnf")
        with open(grammar, "w") as f:
            f.write('root ::= ("yes" | "no") "!"')
        assert self.object("-p", "x", "--grammar", grammar, "--temp", 1.5)["text"] in ("yes!", "no!")
        self.run("run", "-m", self.model, "-p", "x", "--json", "--regex", "a", status=2)
        self.run("run", "-m", self.model, "-p", "x", "--regex", "(", status=1)

    def test_sampling_flags(self):
        for flags in (["--samplers", "top_k;temperature"], ["--mirostat", 1], ["--mirostat", 2, "--mirostat-ent", 3], ["--typical", 0.5],
                      ["--top-n-sigma", 1], ["--xtc-probability", 0.5], ["--dry-multiplier", 0.8], ["--dynatemp-range", 0.5],
                      ["--adaptive-target", 0.3]):
            a, b = (self.object("-p", "x", "--seed", 5, "--ignore-eos", *flags)["text"] for _ in range(2))
            assert a == b, flags
        r = self.run("run", "-m", self.model, "-p", "x", "--samplers", "top_k;tmp", status=1)
        assert b'"tmp"' in r.stderr
        self.run("run", "-m", self.model, "-p", "x", "--logit-bias", "x", status=2)
        banned = self.object("-p", "x", "--temp", 0, "--ignore-eos")["tokens"][0]["id"]
        o = self.object("-p", "x", "--temp", 0, "--ignore-eos", "--logit-bias", f"{banned}-inf")
        assert all(t["id"] != banned for t in o["tokens"])

    # ---- chat ----

    def chat(self, lines, *args):
        r = self.run("chat", "-m", self.model, "-n", 8, "--temp", 0, "--logit-bias", "2-inf", *args, stdin="\n".join(lines).encode())
        return r, [int(n) for n in re.findall(rb"evaluated (\d+) new tokens", r.stderr)]

    def test_second_turn_evaluates_only_what_is_new(self):
        first = len(self.ids("<s>[user]one</s>[assistant]", "--special"))
        letter, byte = self.ids("a")[-1], 3 + ord("a")  # the tokenizer never writes an a as a byte: the texts must match, not the ids
        assert letter != byte
        for token in (letter, byte):
            _, new = self.chat(["one", "two", "six"], "--logit-bias", f"{token}+1e6")
            assert new[0] == first, new
            # </s>[user]two</s>[assistant] is what follows the answer.
            after = len(self.ids("<s>a</s>[user]two</s>[assistant]", "--special")) - len(self.ids("<s>a", "--special"))
            assert new[1:] == [after, after], (token, new, after)

    def test_undo_regen_clear(self):
        _, new = self.chat(["one", "/undo", "one", "/regen", "/clear", "one"])
        assert new[0] > 5 and new[1:] == [1, 1, 1], new  # all of the prompt is there, but for the logits of its last token

    def test_save_and_load(self):
        path = os.path.join(self.folder, "saved.json")
        self.chat(['one "quoted" \u00e9', "/save " + path])
        with open(path) as f:
            saved = json.load(f)
        assert [m["role"] for m in saved] == ["user", "assistant"] and saved[0]["content"] == 'one "quoted" \u00e9'
        again = os.path.join(self.folder, "again.json")
        self.chat(["/load " + path, "/save " + again])
        with open(again) as f:
            assert json.load(f) == saved
        with open(path, "w") as f:
            f.write('[{"role":"user"}]')
        r, _ = self.chat(["/load " + path, "/save " + again])
        assert b"no JSON array of messages" in r.stderr
        with open(again) as f:
            assert json.load(f) == []

    def test_many_lines_and_commands(self):
        path = os.path.join(self.folder, "lines.json")
        r, _ = self.chat(["a\\", "b", '"""', "c", "", "d", '"""', "/bogus", "/help", "/set top-k 5", "/set nonsense 5", "/save " + path, "/exit", "e"])
        with open(path) as f:
            assert [m["content"] for m in json.load(f) if m["role"] == "user"] == ["a\nb", "c\n\nd"]
        assert b"/bogus: no such command" in r.stderr and b"--nonsense: no such flag" in r.stderr and b"/regen" in r.stderr

    def test_system_message(self):
        _, without = self.chat(["one"])
        _, new = self.chat(["one"], "--system", "abc")
        assert new[0] == without[0] + len(self.ids("[system]abc</s>", "--special")) - len(self.ids("", "--special")), (new, without)

    def test_ctrl_c_keeps_the_answer(self):
        path = os.path.join(self.folder, "cut.json")
        p = subprocess.Popen([self.cera, "chat", "-m", self.model, "--logit-bias", "2-inf", *LONG], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdin.write(b"one\n")
        p.stdin.flush()
        os.read(p.stdout.fileno(), 1)
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(f"/save {path}\n/exit\n".encode(), timeout=60)
        assert p.returncode == 0 and b"cancelled" in err, (p.returncode, err)
        with open(path) as f:
            saved = json.load(f)
        assert [m["role"] for m in saved] == ["user", "assistant"] and len(saved[1]["content"]) > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--shared")
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
