#!/usr/bin/env python3
"""Writes the seed of fuzz_safetensors: a file with a tensor of each dtype that is read, one without elements, one of no
dimensions, and metadata."""
import json
import os
import struct


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz_safetensors")
    os.makedirs(here, exist_ok=True)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, size in (("a", "F32", [2, 3], 24), ("b", "F16", [4], 8), ("c.weight", "BF16", [1, 2], 4),
                                     ("none", "F16", [3, 0], 0), ("scalar", "F32", [], 4)):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(here, "types.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(range(at)))


main()
