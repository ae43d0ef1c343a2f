#!/usr/bin/env python3
"""Writes a GGUF of random bf16 weights, to time loading with: the values repeat every 32 MiB.

usage: make_gguf.py OUT [--vocab N --hidden N --layers N --heads N --kv-heads N --head-dim N --mlp N --theta X] [--tied]

The defaults are the shape of models/llama-3.1-8b.yaml; the tokenizer is a byte-level stand-in (tests/gpu/load-8b.yaml)."""

import argparse
import random
import struct

BF16, F32 = 30, 0
STRING, ARRAY, U32, F32_VALUE, BOOL, I32 = 8, 9, 4, 6, 7, 5
ALIGN = 32


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def entry(key, kind, value):
    if kind == STRING:
        body = text(value)
    elif kind == ARRAY:
        item, values = value
        body = struct.pack("<IQ", item, len(values)) + b"".join(text(v) if item == STRING else struct.pack("<i", v) for v in values)
    else:
        body = struct.pack({U32: "<I", F32_VALUE: "<f", BOOL: "<?"}[kind], value)
    return text(key) + struct.pack("<I", kind) + body


def byte_tokens():
    """GPT-2's printable stand-ins of the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(extra)) for b in range(256)]


def metadata(o):
    tokens = ["<pad>", "<|im_start|>", "<|im_end|>", *byte_tokens()]
    tokens += [f"<unused{i}>" for i in range(len(tokens), o.vocab)]
    special = [3 if t.startswith("<") and len(t) > 1 else 1 for t in tokens]
    return [("general.architecture", STRING, "llama"), ("llama.context_length", U32, o.context),
            ("llama.embedding_length", U32, o.hidden), ("llama.block_count", U32, o.layers),
            ("llama.feed_forward_length", U32, o.mlp), ("llama.attention.head_count", U32, o.heads),
            ("llama.attention.head_count_kv", U32, o.kv_heads), ("llama.rope.dimension_count", U32, o.head_dim),
            ("llama.attention.layer_norm_rms_epsilon", F32_VALUE, 1e-5), ("llama.rope.freq_base", F32_VALUE, o.theta),
            ("llama.vocab_size", U32, o.vocab), ("tokenizer.ggml.model", STRING, "gpt2"),
            ("tokenizer.ggml.pre", STRING, "smollm"), ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
            ("tokenizer.ggml.token_type", ARRAY, (I32, special)), ("tokenizer.ggml.merges", ARRAY, (STRING, [])),
            ("tokenizer.ggml.bos_token_id", U32, 1), ("tokenizer.ggml.eos_token_id", U32, 2),
            ("tokenizer.ggml.add_bos_token", BOOL, False)]


def tensors(o):
    q, kv = o.heads * o.head_dim, o.kv_heads * o.head_dim
    yield "token_embd.weight", o.vocab, o.hidden
    for i in range(o.layers):
        p = f"blk.{i}."
        yield p + "attn_norm.weight", 0, o.hidden
        yield p + "attn_q.weight", q, o.hidden
        yield p + "attn_k.weight", kv, o.hidden
        yield p + "attn_v.weight", kv, o.hidden
        yield p + "attn_output.weight", o.hidden, q
        yield p + "ffn_norm.weight", 0, o.hidden
        yield p + "ffn_gate.weight", o.mlp, o.hidden
        yield p + "ffn_up.weight", o.mlp, o.hidden
        yield p + "ffn_down.weight", o.hidden, o.mlp
    yield "output_norm.weight", 0, o.hidden
    if not o.tied:
        yield "output.weight", o.vocab, o.hidden


def write(o):
    rng = random.Random(1)
    # exponents under 1: bits 0x3c00 .. 0x3dff with random signs
    block = bytearray(rng.randbytes(32 << 20))
    block[1::2] = bytes((b & 0x80) | 0x3c | (b & 1) for b in block[1::2])
    ones = struct.pack("<f", 1.0)
    infos, at = [], 0
    for name, rows, cols in tensors(o):
        size = rows * cols * 2 if rows else cols * 4
        infos.append((name, rows, cols, at, size))
        at = (at + size + ALIGN - 1) // ALIGN * ALIGN
    kv = metadata(o)
    with open(o.out, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(kv)) + b"".join(entry(*e) for e in kv))
        for name, rows, cols, offset, _ in infos:
            dims = [cols, rows] if rows else [cols]
            f.write(text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
                    + struct.pack("<IQ", BF16 if rows else F32, offset))
        f.write(b"\0" * (-f.tell() % ALIGN))
        for _, rows, cols, _, size in infos:
            left = size
            while rows and left > 0:
                f.write(memoryview(block)[:min(left, len(block))])
                left -= len(block)
            if not rows:
                f.write(ones * cols)
            f.write(b"\0" * (-size % ALIGN))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out")
    for name, value in (("vocab", 128256), ("hidden", 4096), ("layers", 32), ("heads", 32), ("kv-heads", 8),
                        ("head-dim", 128), ("mlp", 14336), ("context", 8192)):
        a.add_argument("--" + name, type=int, default=value)
    a.add_argument("--theta", type=float, default=500000)
    a.add_argument("--tied", action="store_true")
    write(a.parse_args())


if __name__ == "__main__":
    main()
