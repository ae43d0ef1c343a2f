#!/usr/bin/env python3
"""Writes files.json: small tokenizer.json files of several kinds (vocabularies trained here), and texts with their ids by
PyPI's `tokenizers`. Special tokens are recognised in the texts."""
import json
import pathlib
import random

import texts
from splits import OTHERS, library, small
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SPACE = "\u2581"


def pieces(kind):
    """SentencePiece's kind, as Llama 2 (prepend) and Mistral (first) spell it."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "always", True)
    rng = random.Random(9)
    lines = [" ".join(rng.choice(texts.WORDS + texts.CODE + ["   ", "\u4f60\u597d"]) for _ in range(30)) for _ in range(300)]
    trained.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=330, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    names = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *sorted(model["vocab"], key=model["vocab"].get)]
    vocab = {s: i for i, s in enumerate(names)}
    merges = [tuple(m) for m in model["merges"]]
    for a, b in [(SPACE, SPACE), (SPACE * 2, SPACE * 2)]:
        vocab.setdefault(a + b, len(vocab))
        merges.append((a, b))
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if kind == "prepend":
        t.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    else:
        t.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, kind, kind == "always")
    t.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([AddedToken(s, normalized=False) for s in ("<unk>", "<s>", "</s>")])
    return t


def kinds():
    tokens, merges = small()
    keep = {m[0] + m[1] for m in merges[:150]}
    tokens = [s for s in tokens if len(s) == 1 or s in keep]
    out = {f: library(f, tokens, merges[:150]) for f in ("llama3", "qwen2", *OTHERS)}
    for fuse in (False, True):  # bytes without a token
        few = {s: i for i, s in enumerate(s for s in tokens if s not in "\u00a7\u00a8\u00a9\u00bd\u0110!x")}
        t = library("qwen2", [*few, "<|endoftext|>"], [m for m in merges[:150] if not set("!x\u00a7\u00a8\u00a9\u00bd\u0110") & set("".join(m))])
        model = json.loads(t.to_str())
        model["model"].update(unk_token="<|endoftext|>", fuse_unk=fuse)
        out["fused" if fuse else "unknown"] = Tokenizer.from_str(json.dumps(model))
    out.update({kind: pieces(kind) for kind in ("prepend", "first", "always")})
    for t in out.values():
        t.add_tokens([AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
                      AddedToken("<n>", normalized=True), AddedToken("one", single_word=True, normalized=False),
                      AddedToken("\u1e69", lstrip=True, rstrip=True, single_word=True, normalized=True)])
    return out


def main():
    rng = random.Random(31)
    bits = ["<l>", "<r>", "<n>", "one", "\u1e69", "s\u0323\u0307", " ", "  ", "\n", "\t", "\u3000", "the", " the", "a", "_", "1", "\u00e9", "\u4f60", SPACE,
            "<s>", "</s>", "<|im_start|>", "\u0301", "\U0001f600", "\x00"]
    lines = texts.HARD[:60] + texts.CODE + texts.SCRIPTS + ["".join(rng.choice(bits) for _ in range(rng.randrange(1, 12))) for _ in range(120)]
    out = {}
    for kind, t in kinds().items():
        rows = [[s, t.encode(s, add_special_tokens=False).ids] for s in lines if kind not in OTHERS or texts.is_old(s)]
        out[kind] = {"tokenizer": json.loads(t.to_str()), "rows": rows}
    with open(pathlib.Path(__file__).resolve().parent / "files.json", "w", encoding="utf-8", newline="\n") as f:
        body = ",\n".join(f'"{kind}": {{"tokenizer": {json.dumps(v["tokenizer"], separators=(",", ":"))},\n"rows": [\n'
                          + ",\n".join(json.dumps(r, separators=(",", ":")) for r in v["rows"]) + "\n]}" for kind, v in out.items())
        f.write("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
