#!/usr/bin/env python3
"""Dequantization of every type against the gguf Python package, bit for bit, on random and extreme blocks.

usage: dequant_test.py [--cera PATH] [--check PATH] [--shared PATH]
Runs the kernel check program (by default `cera_check` beside the cera binary) in its --dequantize mode. NaN equals NaN; nothing
else is forgiven, the sign of zero included. Exits 77 when the gguf package is absent."""
import argparse
import os
import subprocess
import sys

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"]
# Byte offsets of the f16 scales of a block, set to ordinary numbers in one part of the rows (random bits are often NaN or huge).
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}
ROWS = 600


def rows_of(np, rng, name, block_bytes, row_bytes):
    data = rng.integers(0, 256, (ROWS, row_bytes), dtype=np.uint8)
    for row in range(ROWS // 3):  # the first third: sane scales; the rest: any bits
        blocks = data[row].reshape(-1, block_bytes)
        for at in SCALES.get(name, []):
            scale = rng.normal(0, 0.05, len(blocks)).astype(np.float16)
            blocks[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
    data[-2:] = [[0x00] * row_bytes, [0xff] * row_bytes]
    return data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cera")
    parser.add_argument("--check")
    parser.add_argument("--shared")
    args = parser.parse_args()
    check = args.check or (args.cera and os.path.join(os.path.dirname(os.path.abspath(args.cera)), "cera_check"))
    if not check or not os.path.exists(check):
        print("SKIP: no cera_check program (give --check PATH)")
        return 77
    try:
        import numpy as np
        import gguf
    except ImportError as missing:
        print(f"SKIP: {missing}")
        return 77
    np.seterr(all="ignore")
    rng, failed = np.random.default_rng(1), 0
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        elements, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        data = rows_of(np, rng, name, block_bytes, 256 // elements * block_bytes)
        out = subprocess.run([check, "--dequantize", name.lower()], input=data.tobytes(), stdout=subprocess.PIPE, check=True).stdout
        got = np.frombuffer(out, np.float32)
        want = np.concatenate([gguf.quants.dequantize(row, kind).ravel() for row in data])
        if got.shape != want.shape:
            print(f"FAIL {name}: {got.size} values, {want.size} wanted")
            failed += 1
            continue
        same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
        wrong = np.flatnonzero(~same)
        if len(wrong):
            at = wrong[0]
            print(f"FAIL {name}: {len(wrong)} of {want.size} values; row {at // 256}, element {at % 256}: {got[at]!r}, should be {want[at]!r}")
            failed += 1
        else:
            print(f"ok   {name}: {want.size} values, {int(np.isnan(want).sum())} of them NaN")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
