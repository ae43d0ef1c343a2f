"""Ids of published vocabularies against other people's tokenizers: see run. A line for each route and oracle; the last column
must be 0. usage: tokenizers_real.py ENCODE_STREAM TEXTS CACHE SMOLLM_GGUF [FAMILY...]"""
import pathlib
import random
import sys
import tempfile

import byte_level
import make
import pieces
import splits
import texts


def smollm(program, gguf, many):
    parts = make.read_parts(gguf)
    t = make.tokenizer(parts)
    known = {b for b, c in splits.alphabet().items() if c in parts[0]}
    want = texts.library_ids(t, many)
    back = lambda s: s if set(s.encode()) <= known else None
    yield texts.compare("smollm", "GGUF", "tokenizers", texts.Program(program, gguf), many, want, back)


def broken_texts(rng, count):
    """Bytes of which Python says where they stop being UTF-8, or None."""
    for _ in range(count):
        data = bytearray(texts.random_text(rng, False).encode()) or bytearray(b"x")
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at:at + rng.randrange(2)] = rng.choice([bytes([rng.randrange(0x80, 0x100)]), b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b""])
        try:
            data.decode()
            yield bytes(data), None
        except UnicodeDecodeError as e:
            yield bytes(data), e.start


def refusals(program, gguf, count):
    p = texts.Program(program, gguf)
    bad = broken = size = 0
    for data, at in broken_texts(random.Random(23), count):
        ids, message = p.ask_bytes(data, False)
        bad += (ids is None) != (at is not None) or (at is not None and not message.endswith(f"not valid UTF-8 at byte {at}"))
        broken += at is not None
        size += len(data)
    return "any", f"{broken} of them not UTF-8", "Python's decoder", count, size, 0, bad + (p.close() != 0)


def main(program, count, cache, gguf, chosen):
    cache = pathlib.Path(cache)
    many = texts.many(random.Random(11), int(count))
    checks = {"smollm": lambda scratch: smollm(program, gguf, many)}
    for module in (byte_level, pieces):
        for family in module.FAMILIES:
            checks[family] = lambda scratch, m=module, f=family: m.check(f, program, cache, many, scratch)
    for family in chosen:
        if family not in checks:
            sys.exit(f"no family '{family}'; there are: {', '.join(checks)}")
    failed = 0
    print("| family | ids of | compared with | texts | bytes | tokens | differ |\n|---|---|---|---|---|---|---|")
    rows = [lambda _: [refusals(program, gguf, int(count))], *(checks[f] for f in chosen or checks)]
    for check in rows:
        with tempfile.TemporaryDirectory() as scratch:
            for row in check(pathlib.Path(scratch)):
                print("|", " | ".join(f"{v:,}" if isinstance(v, int) else v for v in row), "|", flush=True)
                failed += row[-1] != 0
    return failed != 0


sys.exit(main(*sys.argv[1:5], sys.argv[5:]) if len(sys.argv) > 4 else __doc__)
