#!/usr/bin/env python3
"""The splits of published tokenizers as their tokenizer.json files give them. Run, it writes splits.json: a small
vocabulary, trained here, and texts with their ids by each split. Needs PyPI's tokenizers."""
import json
import pathlib
import random

import texts
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SHORT = ENDS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
OTHER = r"| ?[^\s\p{L}\p{N}]+[\r\n"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": SHORT + "{1,3}" + OTHER + "]*" + TAIL,
    "qwen2": SHORT + OTHER + "]*" + TAIL,
    "tekken": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}" + OTHER + "/]*" + TAIL,
    "llama4": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDS}?|\p{{N}}{{1,3}}" + OTHER + "/]*" + TAIL,
}
WHOLE_WORDS = ("llama3", "tekken", "llama4")
# Patterns that the engine gives to PCRE2: one of published files (marks belong to words), and one that leaves gaps.
OTHERS = {
    "marks": ENDS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL,
    "gaps": r"\p{Lu}\p{Ll}+(?=\s|$)|(?<=[^\d])\d{1,2}|[\p{Han}\p{Arabic}]+",
}
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<file_sep>"]


def alphabet():
    """GPT-2's bytes_to_unicode."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in keep]
    return {**{b: chr(b) for b in keep}, **{b: chr(0x100 + i) for i, b in enumerate(rest)}}


def library(family, tokens, merges):
    t = Tokenizer(models.BPE({s: i for i, s in enumerate(tokens)}, merges, fuse_unk=False, ignore_merges=family in WHOLE_WORDS))
    if family == "qwen2":
        t.normalizer = normalizers.NFC()
    t.decoder = decoders.ByteLevel()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if family != "gpt2":
        t.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex({**PATTERNS, **OTHERS}[family]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in SPECIALS])
    return t


def small():
    """Tokens and merges. Some tokens lose the merges that make them: only a whole word can be such a one."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERNS["llama3"]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    rng = random.Random(5)
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=list(alphabet().values()), show_progress=False)
    t.train_from_iterator([texts.random_text(rng, False) for _ in range(1500)], trainer)
    model = json.loads(t.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [tuple(m) for i, m in enumerate(model["merges"]) if i < 200 or i % 10]


def main():
    tokens, merges = small()
    rng = random.Random(20260308)
    lines = texts.HARD + texts.CODE + texts.SCRIPTS + [a + b for a in (" ", "\n", "1", "x", "'", "X") for b in texts.SCRIPTS]
    lines += ["'\u017f", "'\u017ft", "'LL", "'Ve", "x'RE", "a'\n", "12345678", "1234 5678", "a/\n/\r/b", "don't DON'T x'Re\u4e2d'll 'SX's", "it\u0301's", "1's !'s", "A'\u017fa", "!/ /", "  \n  \n  x", "\r\n \r x"]
    lines += ["HelloWorld", "helloWORLD", "\u4e2dAAA", "AAA\u4e2dB", "\u01c5a", "A\u0301b", " \u0301\u0301A", "\u0301AB", "aB\u02b0C", "\n\u0301a", "e\u0323\u0301", "\u00e9\u0323", "\u1100\u1161\u11a8", "\u0958"]
    lines += [texts.random_text(rng, False) for _ in range(80)]
    kits = {family: library(family, tokens, merges) for family in PATTERNS}
    nfc = normalizers.NFC().normalize_str
    rows = [{"text": s, **({"nfc": nfc(s)} if nfc(s) != s else {}), **{f: t.encode(s, add_special_tokens=False).ids for f, t in kits.items()}}
            for s in lines]
    with open(pathlib.Path(__file__).resolve().parent / "splits.json", "w", encoding="utf-8", newline="\n") as f:
        f.write('{"tokens": ' + json.dumps(tokens) + ',\n"merges": ' + json.dumps([f"{a} {b}" for a, b in merges]) + ',\n"rows": [\n')
        f.write(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}\n")


if __name__ == "__main__":
    main()
