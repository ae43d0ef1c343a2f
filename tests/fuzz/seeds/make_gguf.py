#!/usr/bin/env python3
"""Writes the seeds of fuzz_gguf: small files with a key of each type and a tensor of each readable type.
Needs: pip install gguf numpy."""
import os

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFWriter

KINDS = {T.F32: 4 * 32, T.F16: 2 * 32, T.BF16: 2 * 32, T.Q8_0: 34, T.Q4_0: 18, T.Q4_1: 20, T.Q5_0: 22, T.Q5_1: 24,
         T.Q4_K: 144, T.Q5_K: 176, T.Q6_K: 210}


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz_gguf")
    os.makedirs(here, exist_ok=True)
    w = GGUFWriter(os.path.join(here, "types.gguf"), "llama")
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64", "bool"):
        getattr(w, "add_" + name)("k." + name, 1)
    w.add_array("k.strings", ["a", "bc"])
    w.add_array("k.ints", [1, -2, 3])
    for kind, size in KINDS.items():
        w.add_tensor(kind.name, np.arange(2 * size, dtype=np.uint8).reshape(2, size), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


main()
