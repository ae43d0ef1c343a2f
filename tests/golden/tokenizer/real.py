#!/usr/bin/env python3
"""Byte-level splits with published vocabularies, which are too large to keep here: those of PyPI's llama-models
(Llama 3), dashscope (Qwen; GPT-2's split is tried with it too) and mistral-common (Tekken), unpacked into one folder.
The oracle is PyPI's `tokenizers`; where the vocabulary is tiktoken's own, `tiktoken` must agree too on text that both
libraries' Unicode versions know. Needs tokenizers, tiktoken, gguf, numpy.

usage: real.py PACKAGES PROGRAM N [FAMILY...]   N random texts and 1 MiB of mixed text; PROGRAM is encode_stream"""
import base64
import json
import pathlib
import random
import sys
import tempfile

import texts
from tokenizers import normalizers
from splits import PATTERNS, SPECIALS, alphabet, library

GGML = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "tekken": "tekken"}


def ranks(packages, family):
    if family == "tekken":
        path, = pathlib.Path(packages).glob("**/tekken_240911.json")
        rows = json.loads(path.read_text())["vocab"][:131072 - 1000]
        return {base64.b64decode(r["token_bytes"]): i for i, r in enumerate(rows)}
    name = "llama3/tokenizer.model" if family == "llama3" else "qwen.tiktoken"
    path = sorted(pathlib.Path(packages).glob("**/" + name))[0]
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def merges_of(rank):
    """Every way to put a token together, by rank: what tiktoken's merging comes to."""
    merges = []
    for token, r in rank.items():
        ways = [(rank[token[:i]], rank[token[i:]], token[:i], token[i:]) for i in range(1, len(token))
                if token[:i] in rank and token[i:] in rank]
        merges += [(r, i, left, right) for i, (_, _, left, right) in enumerate(sorted(ways))]
    return [(left, right) for _, _, left, right in sorted(merges)]


def parts_of(packages, family):
    to = alphabet()
    spell = lambda token: "".join(to[b] for b in token)
    rank = ranks(packages, family)
    tokens = [spell(t) for t, _ in sorted(rank.items(), key=lambda x: x[1])]
    merges = [(spell(a), spell(b)) for a, b in merges_of(rank)]
    return rank, tokens, merges


def write_gguf(path, family, tokens, merges):
    import gguf
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(GGML[family])
    w.add_token_list(tokens + SPECIALS)
    w.add_token_merges([f"{a} {b}" for a, b in merges])
    w.add_token_types([1] * len(tokens) + [3] * len(SPECIALS))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def check_family(packages, program, count, family, folder):
    import tiktoken
    rank, tokens, merges = parts_of(packages, family)
    t = library(family, tokens, merges)
    path = f"{folder}/{family}.gguf"
    write_gguf(path, family, tokens, merges)
    (pathlib.Path(folder) / family).mkdir()
    t.save(f"{folder}/{family}/tokenizer.json")
    kit = tiktoken.Encoding(family, pat_str=PATTERNS[family], mergeable_ranks=rank, special_tokens={})
    unlike = 0

    def ids(text, special):
        nonlocal unlike
        t.encode_special_tokens = not special
        found = t.encode(text, add_special_tokens=False).ids
        if not special and len(text) < 10000:
            unlike += kit.encode_ordinary(text) != found
        return found

    bad = 0
    back = normalizers.NFC().normalize_str if family == "qwen2" else lambda s: s
    for kind in (path, f"{folder}/{family}"):
        p = texts.Program(program, kind)
        bad += texts.compare(pathlib.Path(kind).name, p, texts.many(random.Random(11), count), ids, back) + p.close()
    print(f"{family}: tiktoken differs from tokenizers on {unlike} texts")
    return bad


if len(sys.argv) < 4:
    sys.exit(__doc__)
with tempfile.TemporaryDirectory() as scratch:
    chosen = sys.argv[4:] or list(PATTERNS)
    sys.exit(sum(check_family(*sys.argv[1:3], int(sys.argv[3]), f, scratch) for f in chosen) != 0)
