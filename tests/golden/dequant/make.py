#!/usr/bin/env python3
"""Writes dequant.gguf beside this file: for each type a tensor `<type>` of raw blocks and a tensor `<type>.expected`, what
PyPI's gguf makes of it, as F32. Needs: pip install gguf numpy (written with gguf 0.19.0, numpy 2.4.6).

Scales: zero, subnormal, smallest and largest normal halves of both signs, infinities, and random ones; every quant value.
Inputs come from a fixed linear congruential generator, so that the file is the same everywhere.
"""
import os
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFWriter
from gguf.quants import dequantize

ROW = 64  # elements of a row
SCALES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
          0x2E66, 0xB555]


def lcg(n, state=[12345]):
    out = np.empty(n, np.uint8)
    for i in range(n):
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        out[i] = state[0] >> 56
    return out


def finite_half(raw):
    """Random bits to a half that is finite."""
    return int(raw[0]) | (int(raw[1]) & 0x7B) << 8 | (int(raw[1]) & 0x80) << 8


def blocks(halves, quants, n_random):
    """Blocks of `halves` scales and `quants` bytes: first each combination with a listed scale, then random ones."""
    heads = [[s] * halves for s in SCALES]
    if halves == 2:
        heads += [[s, m] for s in (0x0001, 0x7BFF, 0xFBFF, 0x3C00) for m in (0x8001, 0xFBFF, 0x0400, 0xB555)]
    heads += [[finite_half(lcg(2)) for _ in range(halves)] for _ in range(n_random)]
    if len(heads) % 2:
        heads.append(heads[0])
    every = np.arange(256, dtype=np.uint8)
    out = []
    for i, h in enumerate(heads):
        body = np.roll(every, -quants * i)[:quants] if i % 2 == 0 else lcg(quants)
        if h[0] & 0x7C00 == 0x7C00:
            body[5] = 0  # infinity times zero
        out.append(np.concatenate([np.array(h, "<u2").view(np.uint8), body]))
    return np.stack(out).reshape(len(out) * 32 // ROW, -1)


def k_blocks(heads, bodies, before):
    """Blocks of 256: halves as above, `before` says whether they stand before the body (Q4_K, Q5_K) or after it (Q6_K)."""
    out = []
    for i, h in enumerate(heads):
        half, body = np.array(h, "<u2").view(np.uint8), bodies(i)
        out.append(np.concatenate([half, body] if before else [body, half]))
    return np.stack(out)


def k_heads(halves, n_random):
    heads = [[s] * halves for s in SCALES]
    if halves == 2:
        heads += [[s, m] for s in (0x0001, 0x7BFF, 0xFBFF, 0x3C00, 0x7C00) for m in (0x8001, 0xFBFF, 0x0400, 0xFC00)]
    return heads + [[finite_half(lcg(2)) for _ in range(halves)] for _ in range(n_random)]


def k_body(quants):
    """Every byte in turn, then bytes of the generator."""
    every = np.arange(256, dtype=np.uint8)
    return lambda i: np.resize(np.roll(every, -quants * i), quants) if i % 2 == 0 else lcg(quants)


def floats(exponent_bits, mantissa_bits):
    """Both signs, every exponent, mantissas at the ends and in the middle; no NaN."""
    top = 2**exponent_bits - 1
    mantissas = sorted({0, 1, 2**mantissa_bits - 1, 2 ** (mantissa_bits - 1), 2**mantissa_bits // 3})
    v = [s << 15 | e << mantissa_bits | m for s in (0, 1) for e in range(top + 1) for m in mantissas if e < top or m == 0]
    v += [0] * (-len(v) % ROW)
    return np.array(v, "<u2").view(np.uint8).reshape(-1, 2 * ROW)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "dequant.gguf")
    w = GGUFWriter(path, "test")
    raw = {
        "f16": (T.F16, floats(5, 10)),
        "bf16": (T.BF16, floats(8, 7)),
        "q8_0": (T.Q8_0, blocks(1, 32, 24)),
        "q4_0": (T.Q4_0, blocks(1, 16, 24)),
        "q4_1": (T.Q4_1, blocks(2, 16, 24)),
        "q5_0": (T.Q5_0, blocks(1, 20, 24)),
        "q5_1": (T.Q5_1, blocks(2, 20, 24)),
        "q4_k": (T.Q4_K, k_blocks(k_heads(2, 8), k_body(140), True)),
        "q5_k": (T.Q5_K, k_blocks(k_heads(2, 8), k_body(172), True)),
        "q6_k": (T.Q6_K, k_blocks(k_heads(1, 8), k_body(208), False)),
    }
    with np.errstate(all="ignore"):
        for name, (kind, data) in raw.items():
            w.add_tensor(name, data, raw_dtype=kind)
            w.add_tensor(name + ".expected", dequantize(data, kind).astype("<f4"))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


main()
