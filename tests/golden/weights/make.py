#!/usr/bin/env python3
"""Writes smollm2-135m-q4_1.txt: a few hundred weights of SmolLM2-135M-Instruct.Q4_1.gguf as the packed form must hold them.
usage: make.py PATH_OF_THE_GGUF. Needs: pip install gguf numpy (written with gguf 0.19.0, numpy 2.4.6).

A line: tensor, row, column (row of the Hugging Face order, in which the halves of a rotary pair stand head_dim/2 apart),
and the bits in hexadecimal: bf16, rounded to nearest even, of a matrix; fp32 of a vector.
"""
import os
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

HEAD_DIM = 64
TENSORS = ["token_embd.weight", "output_norm.weight"] + [
    f"blk.{layer}.{name}.weight"
    for layer in (0, 13, 29)
    for name in ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
]
PER_TENSOR = 16


def halves(m):
    """Undoes the permutation of llama.cpp's conversion: rows (head, pair, 2) -> (head, 2, pair)."""
    rows, cols = m.shape
    return m.reshape(rows // HEAD_DIM, HEAD_DIM // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def bf16(x):
    u = int(np.float32(x).view(np.uint32))
    if abs(float(x)) < 2.0**-60:
        return 0
    return (u + 0x7FFF + (u >> 16 & 1)) >> 16 & 0xFFFF


def main():
    reader = GGUFReader(sys.argv[1])
    tensors = {t.name: t for t in reader.tensors}
    here = os.path.dirname(os.path.abspath(__file__))
    step = 0
    with open(os.path.join(here, "smollm2-135m-q4_1.txt"), "w", encoding="ascii") as out:
        for name in TENSORS:
            t = tensors[name]
            values = dequantize(t.data, t.tensor_type)
            if ".attn_q." in name or ".attn_k." in name:
                values = halves(values)
            vector = values.ndim == 1
            values = values.reshape(-1, values.shape[-1])
            for i in range(PER_TENSOR):
                step += 1
                row, col = step * 7919 * 31 % values.shape[0], step * 104729 % values.shape[1]
                if i == 0:
                    row, col = values.shape[0] - 1, values.shape[1] - 1
                v = values[row, col]
                bits = f"{int(np.float32(v).view(np.uint32)):08x}" if vector else f"{bf16(v):04x}"
                out.write(f"{name} {row} {col} {bits}\n")


main()
