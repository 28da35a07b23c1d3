"""gguf_write: builds small GGUF files for tests, byte by byte, right or wrong as the test wants. Checks nothing.

    data = build([key("general.architecture", STR, "llama")], [("a", [32, 2], 2, 0)], bytes(36))
"""
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
FORMATS = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q", I64: "<q", F64: "<d"}


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        element, items = v
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, item) for item in items)
    return struct.pack(FORMATS[kind], v)


def key(name, kind, v):
    return text(name) + struct.pack("<I", kind) + value(kind, v)


def build(keys, tensors, data=b"", version=3, alignment=32):
    """keys: results of key(); tensors: (name, dimensions, type number, offset); data: what follows the padding."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys)
    for name, dims, kind, offset in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, offset)
    return out + bytes(-len(out) % alignment) + data if tensors else out
