"""The comparison behind bench/tokenize. Seconds are of each process's CPU, so that others on the machine count little."""

import json
import pathlib
import pydoc_data.topics
import struct
import subprocess
import sys
import tempfile
import time

import byte_level
import make
import pieces
import splits

MB = 1000000
UNITS = {"spaces": " ", "letters": "a", "digits": "1", "newlines": "\n", "emoji": "\U0001f600", "joined emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
         "combining marks": "\u0301", "Han": "\u4f60"}


def english():
    """Prose that every Python carries: the language's reference, in texts of about 2 KB and as one."""
    whole = "\n\n".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))
    texts, text = [], ""
    for paragraph in whole.split("\n\n"):
        text += paragraph + "\n\n"
        if len(text) > 2000:
            texts.append(text)
            text = ""
    return [*texts, text], [whole]


def ours(program, tokenizer, texts, rounds):
    with tempfile.NamedTemporaryFile() as f:
        for data in map(str.encode, texts):
            f.write(struct.pack("<I", len(data)) + data)
        f.flush()
        out = subprocess.run([program, tokenizer, f.name, str(rounds)], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)


def library(t, texts, rounds):
    """Without offsets, which we do not compute either."""
    best, tokens = 1e30, 0
    for _ in range(rounds):
        began = time.process_time()
        tokens = sum(len(e.ids) for text in texts for e in t.encode_batch_fast([text], add_special_tokens=False))
        best = min(best, time.process_time() - began)
    return {"tokens": tokens, "seconds": best}


def kinds(cache, smollm, scratch):
    """name -> (what bench-tokenize opens, the library's tokenizer)"""
    yield "smollm", smollm, make.tokenizer(make.read_parts(smollm))
    for family in ("gpt2", "qwen2", "llama3", "llama4", "tekken-240911"):
        split = family.split("-")[0]
        _, tokens, merges = byte_level.parts_of(cache, family)
        t = splits.library(split, tokens, merges)
        byte_level.write_gguf(scratch / f"{family}.gguf", byte_level.FAMILIES[family], tokens, merges)
        yield family, str(scratch / f"{family}.gguf"), t
        if family == "llama3":
            yield "llama3, PCRE2", str(byte_level.through_pcre2(t, scratch / "regex")), t
    import sentencepiece
    for version in ("sentencepiece-v1", "sentencepiece-v3"):
        sp = sentencepiece.SentencePieceProcessor(model_file=str(cache / "python/mistral_common/data" / pieces.FAMILIES[version]))
        pieces.write_gguf(scratch / f"{version}.gguf", sp)
        yield version, str(scratch / f"{version}.gguf"), pieces.library(sp, *pieces.merges_of(sp), "prepend")


def speed(program, path, t, texts, rounds):
    size = sum(len(x.encode()) for x in texts) / MB
    a, b = ours(program, path, texts, rounds), library(t, texts, max(1, rounds // 2))
    return {"mb_s": size / a["seconds"], "library_mb_s": size / b["seconds"], "ratio": b["seconds"] / a["seconds"],
            "same_tokens": a["tokens"] == b["tokens"]}


def growth(program, path, rounds):
    out = {}
    for name, unit in UNITS.items():
        one, two = (ours(program, path, [unit * (n * MB // len(unit.encode()))], rounds)["seconds"] for n in (1, 2))
        out[name] = {"ms_of_1_mb": one * 1e3, "ratio_of_2_mb": two / one}
    return out


def main(program, rounds, cache, smollm, where=None):
    rounds = int(rounds)
    texts, whole = english()
    result = {"texts": len(texts), "bytes": len(whole[0].encode()), "families": {}}
    print(f"English: {len(whole[0].encode()):,} bytes as one text and as {len(texts)}; MB/s, the library's, the ratio; slowest unit and its ratio of 2 MB to 1 MB")
    with tempfile.TemporaryDirectory() as scratch:
        for name, path, t in kinds(pathlib.Path(cache), smollm, pathlib.Path(scratch)):
            one, many = speed(program, path, t, whole, rounds), speed(program, path, t, texts, rounds)
            grows = growth(program, path, 3)
            result["families"][name] = {"one_text": one, "texts_of_2_kb": many, "growth": grows}
            worst = max(grows, key=lambda u: grows[u]["ratio_of_2_mb"])
            slow = max(grows, key=lambda u: grows[u]["ms_of_1_mb"])
            print(f"{name:18} one {one['mb_s']:5.1f} {one['library_mb_s']:5.1f} {one['ratio']:5.2f}   many {many['mb_s']:5.1f} {many['library_mb_s']:5.1f}"
                  f" {many['ratio']:5.2f}   slowest {slow} {grows[slow]['ms_of_1_mb']:.0f} ms, most growth {worst} {grows[worst]['ratio_of_2_mb']:.2f}"
                  f"{'' if one['same_tokens'] and many['same_tokens'] else '   OTHER TOKENS'}", flush=True)
    if where:
        pathlib.Path(where).write_text(json.dumps(result, indent=1) + "\n")


main(*sys.argv[1:])
