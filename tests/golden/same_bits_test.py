#!/usr/bin/env python3
"""Same bits (docs/DESIGN.md): for each weight type and each CPU tier of this machine, the logits of a token do not depend on chunk size,
threads, or who shares the step. Makes its own models; the comparison is the program same_bits (same_bits.c).

usage: same_bits_test.py --cera PATH --build FOLDER [--types f32,f16,q4_0,q8_0,q4_k] [--tiers LIST] [--tokens N] [--full]

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera", required=True)
    parser.add_argument("--build", required=True)
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
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.types.split(","):
            model = os.path.join(folder, f"{kind}.gguf")
            make_tiny.make(model, kind, seed=7)
            for tier in tiers:
                thorough = args.full or tier == machine["tier"]
                if tier == "c" and not thorough and kind != "q4_0":
                    continue
                tokens = args.tokens if thorough else 270 if tier == "c" else 600
                command = [str(program), model, "--name", kind, "--tier", tier, "--tokens", str(tokens)]
                run = subprocess.run(command + ([] if thorough else ["--few"]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                passed, failed = (passed + 1, failed) if run.returncode == 0 else (passed, failed + 1)
                for line in run.stdout.decode(errors="replace").splitlines():
                    print(f"{tier}: {line}")
                if run.returncode not in (0, 1):
                    print(f"{tier}: same_bits/{kind}: exit status {run.returncode}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
