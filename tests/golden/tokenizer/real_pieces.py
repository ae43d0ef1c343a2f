#!/usr/bin/env python3
"""SentencePiece-style tokenizers with the published vocabularies of PyPI's mistral-common, unpacked into a folder, as a
GGUF file (scores) and as tokenizer.json in each of the ways that published files spell it. Oracles: PyPI's
`sentencepiece` for the first, `tokenizers` for the others and for special tokens. The two differ on long runs of spaces, where the order of equally good merges shows: a GGUF file gives
SentencePiece's ids there, tokenizer.json the library's. Needs both, gguf and numpy.

usage: real_pieces.py PACKAGES PROGRAM N   N random texts and 1 MiB of mixed text; PROGRAM is encode_stream"""
import pathlib
import random
import sys
import tempfile

import texts
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

MODELS = ("tokenizer.model.v1", "*.model.v3")
SPACE = "\u2581"


def merges_of(sp):
    vocab = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    merges = []
    for piece, i in vocab.items():
        ways = [(vocab[piece[:k]], vocab[piece[k:]], piece[:k], piece[k:]) for k in range(1, len(piece))
                if piece[:k] in vocab and piece[k:] in vocab]
        merges += [(-sp.get_score(i), n, a, b) for n, (_, _, a, b) in enumerate(sorted(ways))]
    return vocab, [(a, b) for _, _, a, b in sorted(merges)]


def library(sp, vocab, merges, kind):
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if kind == "prepend":
        t.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    else:
        t.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "always" if kind == "words" else kind, kind == "words")
    strip = [] if kind == "never" else [decoders.Strip(" ", 1, 0)]
    t.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    control = [sp.id_to_piece(i) for i in range(sp.get_piece_size()) if sp.is_control(i)]
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in ["<unk>", *control]])
    return t


def write_gguf(path, sp):
    import gguf
    n = range(sp.get_piece_size())
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list([sp.id_to_piece(i) for i in n])
    w.add_token_scores([sp.get_score(i) for i in n])
    w.add_token_types([2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in n])
    w.add_bos_token_id(sp.bos_id())
    w.add_eos_token_id(sp.eos_id())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def check(name, program, path, many, ids, back):
    p = texts.Program(program, path)
    return texts.compare(name, p, many, ids, back) + p.close()


def check_model(path, program, count, folder):
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=str(path))
    vocab, merges = merges_of(sp)
    many = texts.many(random.Random(13), count)
    own = [s for s in ("<s>", "</s>", "[INST]", "[/INST]") if s in vocab]
    many = [(s.replace("<|im_start|>", own[0]).replace("<|im_end|>", own[-1]), special) for s, special in many]
    bad = 0
    write_gguf(f"{folder}/{path.name}.gguf", sp)
    plain = [(s, False) for s, special in many if not special]
    bad += check(path.name + " gguf, sentencepiece", program, f"{folder}/{path.name}.gguf", plain, lambda s, _: sp.encode(s),
                 lambda s: s.replace(SPACE, " "))
    for kind in ("prepend", "first", "words", "never"):
        t = library(sp, vocab, merges, kind)
        scratch = pathlib.Path(folder) / f"{path.name}-{kind}"
        scratch.mkdir()
        t.save(str(scratch / "tokenizer.json"))

        def ids(text, special):
            t.encode_special_tokens = not special
            return t.encode(text, add_special_tokens=False).ids

        bad += check(f"{path.name} {kind}", program, str(scratch), many, ids, None)
        if kind == "prepend":
            same = [(s, special) for s, special in many if ids(s, False) == sp.encode(s)]
            bad += check(f"{path.name} gguf, tokenizers", program, f"{folder}/{path.name}.gguf", same, ids, None)
    return bad


if len(sys.argv) != 4:
    sys.exit(__doc__)
with tempfile.TemporaryDirectory() as scratch_folder:
    found = [sorted(pathlib.Path(sys.argv[1]).glob("**/" + m))[0] for m in MODELS]
    sys.exit(sum(check_model(f, sys.argv[2], int(sys.argv[3]), scratch_folder) for f in found) != 0)
