#!/usr/bin/env python3
"""Writes a llama-shaped GGUF model of a few MB with random weights, for tests that need a file and have no other: two layers, width
256, a SentencePiece vocabulary with a token for every byte. The weights mean nothing. Standard library only.

usage: make_tiny.py OUT.gguf [--type f32|f16|q4_0|q8_0|q4_k] [--seed N] [--context N] [--key KEY=u32:VALUE | KEY=text:VALUE]...

Quantized matrices are made of random blocks: random codes, and scales that give weights of the size that training would. Norms and
the embedding of f32 files are f32."""
import argparse
import array
import math
import random
import struct

EMBD, LAYERS, HEADS, KV_HEADS, HEAD, FF, VOCAB = 256, 2, 4, 2, 64, 512, 512
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144)}  # id, elements, bytes
U32, I32, F32, BOOL, TEXT, ARRAY = 4, 5, 6, 7, 8, 9


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(b)) + b


def key(name, kind, value):
    pack = {U32: lambda v: struct.pack("<I", v), F32: lambda v: struct.pack("<f", v), BOOL: lambda v: struct.pack("<B", v), TEXT: text}
    return text(name) + struct.pack("<I", kind) + pack[kind](value)


def array_key(name, kind, values):
    body = b"".join(text(v) for v in values) if kind == TEXT else struct.pack(f"<{len(values)}{'f' if kind == F32 else 'i'}", *values)
    return text(name) + struct.pack("<IIQ", ARRAY, kind, len(values)) + body


def vocabulary():
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581"] + [chr(c) for c in range(97, 123)]
    words = ["the", "and", "of", "to", "in", "is", "it", "on", "at", "or"]
    tokens += ["\u2581" + w for w in words] + ["\u2581" + c for c in "abcdefghijklmnopqrstuvwxyz"]
    tokens += [f"w{i}" for i in range(len(tokens), VOCAB)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCAB - 259)
    return tokens, [-float(i) for i in range(VOCAB)], kinds


def floats(rng, n, scale, base=0.0):
    """n values, uniform around base, with the standard deviation scale."""
    raw = array.array("h")
    raw.frombytes(rng.randbytes(2 * n))
    step = scale * math.sqrt(3) / 32768
    return [base + step * v for v in raw]


def half(v):
    return struct.pack("<e", v)


def blocks(rng, kind, n, scale):
    """n elements of a type, standard deviation about scale."""
    if kind == "f32":
        return struct.pack(f"<{n}f", *floats(rng, n, scale))
    if kind == "f16":
        return struct.pack(f"<{n}e", *floats(rng, n, scale))
    out = []
    for _ in range(n // TYPES[kind][1]):
        wobble = rng.uniform(0.5, 1.5)
        if kind == "q4_0":  # codes 0..15 less 8: deviation 4.6
            out.append(half(scale / 4.6 * wobble) + rng.randbytes(16))
        elif kind == "q8_0":  # -128 is a code that quantizers do not make
            codes = bytes(b if b != 128 else 0 for b in rng.randbytes(32))
            out.append(half(scale / 74 * wobble) + codes)
        else:  # q4_k: d * sc * q - dmin * m, sc and m 6 bits each around 32, q 0..15: d * 32 * 4.6 is the deviation, m centres it
            d = scale / 150 * wobble
            out.append(half(d) + half(d * 7.5) + rng.randbytes(12) + rng.randbytes(128))
    return b"".join(out)


def tensors():
    """(name, shape, is a norm)"""
    yield "token_embd.weight", (EMBD, VOCAB), False
    yield "output_norm.weight", (EMBD,), True
    yield "output.weight", (EMBD, VOCAB), False
    for i in range(LAYERS):
        yield f"blk.{i}.attn_norm.weight", (EMBD,), True
        yield f"blk.{i}.attn_q.weight", (EMBD, HEADS * HEAD), False
        yield f"blk.{i}.attn_k.weight", (EMBD, KV_HEADS * HEAD), False
        yield f"blk.{i}.attn_v.weight", (EMBD, KV_HEADS * HEAD), False
        yield f"blk.{i}.attn_output.weight", (HEADS * HEAD, EMBD), False
        yield f"blk.{i}.ffn_norm.weight", (EMBD,), True
        yield f"blk.{i}.ffn_gate.weight", (EMBD, FF), False
        yield f"blk.{i}.ffn_up.weight", (EMBD, FF), False
        yield f"blk.{i}.ffn_down.weight", (FF, EMBD), False


def make(path, kind="f32", seed=1, context=2048, keys=()):
    rng = random.Random(seed)
    tokens, scores, kinds = vocabulary()
    meta = [
        key("general.architecture", TEXT, "llama"),
        key("general.name", TEXT, "tiny"),
        key("llama.block_count", U32, LAYERS),
        key("llama.context_length", U32, context),
        key("llama.embedding_length", U32, EMBD),
        key("llama.feed_forward_length", U32, FF),
        key("llama.attention.head_count", U32, HEADS),
        key("llama.attention.head_count_kv", U32, KV_HEADS),
        key("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        key("llama.rope.dimension_count", U32, HEAD),
        key("tokenizer.ggml.model", TEXT, "llama"),
        array_key("tokenizer.ggml.tokens", TEXT, tokens),
        array_key("tokenizer.ggml.scores", F32, scores),
        array_key("tokenizer.ggml.token_type", I32, kinds),
        key("tokenizer.ggml.bos_token_id", U32, 1),
        key("tokenizer.ggml.eos_token_id", U32, 2),
        key("tokenizer.ggml.unknown_token_id", U32, 0),
    ]
    for name, kind_and_value in keys:
        k, value = kind_and_value.split(":", 1)
        meta.append(key(name, U32, int(value)) if k == "u32" else key(name, TEXT, value))
    infos, data, offset = [], [], 0
    for name, shape, is_norm in tensors():
        n = math.prod(shape)
        t = "f32" if is_norm else kind
        body = struct.pack(f"<{n}f", *floats(rng, n, 0.1, 1.0)) if is_norm else blocks(rng, t, n, 1.0 / math.sqrt(shape[0]))
        infos.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", TYPES[t][0], offset))
        body += bytes(-len(body) % 32)
        offset += len(body)
        data.append(body)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(meta)) + b"".join(meta) + b"".join(infos)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + b"".join(data))


if __name__ == "__main__":
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out")
    a.add_argument("--type", choices=TYPES, default="f32")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--context", type=int, default=2048)
    a.add_argument("--key", action="append", default=[])
    o = a.parse_args()
    make(o.out, o.type, o.seed, o.context, [k.split("=", 1) for k in o.key])
