"""SentencePiece-style families with Mistral's published vocabularies: as a GGUF file (scores) against `sentencepiece` and
`mistral-common`, and as tokenizer.json in each of the ways that published files spell it, against `tokenizers`. The libraries
differ on long runs of spaces, where the order of equally good merges shows: a GGUF file gives SentencePiece's ids there,
tokenizer.json the other library's."""
import re

import texts
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

SPACE = "\u2581"
FAMILIES = {"sentencepiece-v1": "tokenizer.model.v1", "sentencepiece-v2": "mistral_instruct_tokenizer_240216.model.v2",
            "sentencepiece-v3": "mistral_instruct_tokenizer_240323.model.v3", "sentencepiece-v7": "mistral_instruct_tokenizer_241114.model.v7"}


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


def own_specials(many, vocab):
    own = [s for s in ("<s>", "</s>", "[INST]", "[/INST]") if s in vocab]
    return [(s.replace("<|im_start|>", own[0]).replace("<|im_end|>", own[-1]), special) for s, special in many]


def by_stretches(sp):
    """text -> ids: control tokens where they are spelt, and what stands between them one stretch after another."""
    control = {sp.id_to_piece(i): i for i in range(sp.get_piece_size()) if sp.is_control(i)}
    cut = re.compile("(" + "|".join(map(re.escape, sorted(control, key=len, reverse=True))) + ")")

    def ids(text):
        return [i for part in cut.split(text) for i in ([control[part]] if part in control else sp.encode(part))]

    return ids


def check(family, program, cache, many, scratch):
    import sentencepiece
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
    file = cache / "python/mistral_common/data" / FAMILIES[family]
    sp = sentencepiece.SentencePieceProcessor(model_file=str(file))
    vocab, merges = merges_of(sp)
    many = own_specials(many, vocab)
    gguf = str(scratch / f"{family}.gguf")
    write_gguf(gguf, sp)
    special_ids = by_stretches(sp)
    want = [special_ids(s) if special else sp.encode(s) for s, special in many]
    shown = lambda s: s.replace(SPACE, " ")
    yield texts.compare(family, "GGUF", "sentencepiece", texts.Program(program, gguf), many, want, None)
    plain = [(s, False) for s, special in many if not special]
    want = [sp.encode(s) for s, _ in plain]
    yield texts.compare(family, "GGUF, decoded", "the text", texts.Program(program, gguf), plain, want, shown)
    whole = SentencePieceTokenizer(file)
    bad = sum(whole.encode(s, bos=False, eos=False) != ids for (s, _), ids in zip(plain, want))
    yield texts.row(family, "sentencepiece", "mistral-common", [s for s, _ in plain], want, bad)
    for kind in ("prepend", "first", "words", "never"):
        t = library(sp, vocab, merges, kind)
        folder = scratch / f"{family}-{kind}"
        folder.mkdir()
        t.save(str(folder / "tokenizer.json"))
        want = texts.library_ids(t, many)
        yield texts.compare(family, f"tokenizer.json, {kind}", "tokenizers", texts.Program(program, str(folder)), many, want, None)
