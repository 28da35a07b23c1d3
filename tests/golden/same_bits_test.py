#!/usr/bin/env python3
"""Same bits (docs/DESIGN.md): for each weight type and each CPU tier of this machine, the logits of a token do not depend on chunk size,
threads, or who shares the step. Makes its own models; the comparison is the program same_bits (same_bits.c).

usage: same_bits_test.py --cera PATH --build FOLDER [--shared FOLDER] [--types f32,f16,q4_0,q8_0,q4_k] [--tiers LIST] [--tokens N] [--full]

With --shared, also models of make_model.py on the best tier: windows, recurrent state, experts, MLA.

Default: every tier at 600 tokens (three segments of attention) with some of the chunk sizes, and the best tier at 1500 tokens with all
of them; the C reference, which is slow, with q4_0 at 270 tokens. --full, or CERA_TEST_FULL in the environment: everything at 1500."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import make_tiny

FAMILIES = [("gemma3", "q8_0"), ("gpt-oss", "mxfp4"), ("lfm2", "q4_0"), ("lfm2moe", "f32"), ("granitemoe", "q4_k"), ("deepseek2", "q4_k"),
            ("qwen3", "bf16"), ("cohere2", "q6_k")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--shared")
    parser.add_argument("--types", default="f32,f16,q4_0,q8_0,q4_k")
    parser.add_argument("--tiers")
    parser.add_argument("--tokens", type=int, default=1500)
    parser.add_argument("--full", action="store_true", default="CERA_TEST_FULL" in os.environ)
    args = parser.parse_args()
    program = pathlib.Path(args.build) / "same_bits"
    if not program.is_file():
        sys.exit(f"same_bits_test: {program} is not there")
    machine = json.loads(subprocess.run([args.cera, "cpu", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    tiers = args.tiers.split(",") if args.tiers else machine["tiers"]
    count = {True: 0, False: 0}

    def compare(model, name, tier, tokens, few):
        command = [str(program), model, "--name", name, "--tier", tier, "--tokens", str(tokens)] + (["--few"] if few else [])
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        count[run.returncode == 0] += 1
        for line in run.stdout.decode(errors="replace").splitlines():
            print(f"{tier}: {line}")
        if run.returncode not in (0, 1):
            print(f"{tier}: same_bits/{name}: exit status {run.returncode}")

    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.gguf")
        for kind in args.types.split(","):
            make_tiny.make(model, kind, seed=7)
            for tier in tiers:
                thorough = args.full or tier == machine["tier"]
                if tier != "c" or thorough or kind == "q4_0":
                    compare(model, kind, tier, args.tokens if thorough else 270 if tier == "c" else 600, not thorough)
        for family, kind in FAMILIES if args.shared else ():
            tool = [sys.executable, os.path.join(args.shared, "tools/make_model.py"), model, "--arch", family, "--type", kind]
            subprocess.run(tool, stdout=subprocess.DEVNULL, check=True)
            compare(model, f"{family}-{kind}", machine["tier"], 600, not args.full)
    print(f"{count[True]} passed, {count[False]} failed, 0 skipped")
    return count[False] > 0


if __name__ == "__main__":
    sys.exit(main())
