"""Byte-level families with published vocabularies. Oracle: `tokenizers` with the pattern of the family's tokenizer.json; `tiktoken`
and `mistral-common` must agree where the vocabulary is theirs. Routes: a GGUF file, a tokenizer.json, and that with the pattern
spelt so that it is not the built-in one and goes to PCRE2."""
import base64
import json
import pathlib
import sys

import splits
import texts
from tokenizers import Tokenizer, normalizers

TEKKEN = ("240718", "240911")
FAMILIES = {"gpt2": "gpt-2", "qwen2": "qwen2", "llama3": "llama-bpe", "llama4": "llama4", **{f"tekken-{v}": "tekken" for v in TEKKEN}}


def tekken_file(cache, family):
    return cache / f"python/mistral_common/data/{family.replace('-', '_')}.json"


def ranks(cache, family):
    if family.startswith("tekken"):
        data = json.loads(tekken_file(cache, family).read_text())
        assert data["config"]["pattern"] == splits.PATTERNS["tekken"]
        size = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
        return {base64.b64decode(r["token_bytes"]): i for i, r in enumerate(data["vocab"][:size])}
    name = f"llama_models/{family}/tokenizer.model" if family.startswith("llama") else "dashscope/resources/qwen.tiktoken"
    lines = (line.split() for line in (cache / "vocabularies" / name).read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def merges_of(rank):
    """Every way to put a token together, by rank: what tiktoken's merging comes to."""
    merges = []
    for token, r in rank.items():
        ways = [(rank[token[:i]], rank[token[i:]], token[:i], token[i:]) for i in range(1, len(token))
                if token[:i] in rank and token[i:] in rank]
        merges += [(r, i, left, right) for i, (_, _, left, right) in enumerate(sorted(ways))]
    return [(left, right) for _, _, left, right in sorted(merges)]


def parts_of(cache, family):
    to = splits.alphabet()
    spell = lambda token: "".join(to[b] for b in token)
    rank = ranks(cache, family)
    tokens = [spell(t) for t, _ in sorted(rank.items(), key=lambda x: x[1])]
    return rank, tokens, [(spell(a), spell(b)) for a, b in merges_of(rank)]


def write_gguf(path, pre, tokens, merges):
    import gguf
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(tokens + splits.SPECIALS)
    w.add_token_merges([f"{a} {b}" for a, b in merges])
    w.add_token_types([1] * len(tokens) + [3] * len(splits.SPECIALS))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def through_pcre2(t, folder):
    """The same tokenizer with its pattern in brackets, which is another spelling of it."""
    model = json.loads(t.to_str())
    steps = model["pre_tokenizer"].get("pretokenizers")
    if not steps:
        return None
    steps[0]["pattern"]["Regex"] = f"(?:{steps[0]['pattern']['Regex']})"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(model))
    return folder


def others(cache, family, split, rank):
    """What must agree with `tokenizers` on characters that all libraries know: name -> ids of a text."""
    import tiktoken
    kit = tiktoken.Encoding(family, pat_str=splits.PATTERNS[split], mergeable_ranks=rank, special_tokens={})
    normal = normalizers.NFC().normalize_str if split == "qwen2" else str  # tiktoken leaves that to its caller
    out = {"tiktoken": lambda s: kit.encode_ordinary(normal(s))}
    if split == "tekken":
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
        whole = Tekkenizer.from_file(tekken_file(cache, family))
        out["mistral-common"] = lambda s: [i - whole.num_special_tokens for i in whole.encode(s, bos=False, eos=False)]
    return out


def check(family, program, cache, many, scratch):
    split = family.split("-")[0]
    rank, tokens, merges = parts_of(cache, family)
    t = splits.library(split, tokens, merges)
    write_gguf(scratch / f"{family}.gguf", FAMILIES[family], tokens, merges)
    (scratch / family).mkdir()
    t.save(str(scratch / family / "tokenizer.json"))
    t = Tokenizer.from_file(str(scratch / family / "tokenizer.json"))
    want = texts.library_ids(t, many)
    back = normalizers.NFC().normalize_str if split == "qwen2" else str
    routes = {"GGUF": (scratch / f"{family}.gguf", many, want), "tokenizer.json": (scratch / family, many, want)}
    regex = through_pcre2(t, scratch / f"{family}-pcre2")
    if regex:
        old = [k for k, (s, _) in enumerate(many) if texts.is_old(s)]
        routes["tokenizer.json, PCRE2"] = (regex, [many[k] for k in old], [want[k] for k in old])
    for route, (path, some, ids) in routes.items():
        yield texts.compare(family, route, "tokenizers", texts.Program(program, str(path)), some, ids, back)
    plain = [k for k, (s, special) in enumerate(many) if not special and texts.is_old(s)]
    for name, ids in others(cache, family, split, rank).items():
        bad = sum(ids(many[k][0]) != want[k] for k in plain)
        yield texts.row(family, "tokenizers", name, [many[k][0] for k in plain], [want[k] for k in plain], bad)
