"""Texts of many kinds for the tokenizers' oracles, and how a program is asked for ids."""
import random
import struct
import subprocess
import unicodedata

WORDS = ("the of and to in a is that for it as was with be by on not he his but at are this have from or had an they "
         "which one you were her all she there would their we him been has when who will more no if out so said what "
         "up its about into than them can only other new some could time these two may then do first any my now such "
         "like our over man me even most made after also did many before must through back years where much your way "
         "I'm don't they've we'll he'd it's 'tis rock'n'roll O'Neil's CAN'T Can'T").split()
CODE = ["def f(x):\n    return x ** 2  # square\n", "for (int i = 0; i < n; i++) {\n\ta[i] += b[i]*c;\n}\n", "SELECT * FROM t WHERE id=42;\n",
        "<div class=\"a\">\n  <p>Hello</p>\n</div>", "{\"k\": [1, 2.5e-3, null, true]}", "#include <stdio.h>\r\n\r\nint main(void)\r\n",
        "x = {'a': 1,\n     'b': 2}\n\n\n", "https://example.org/a?b=c&d=%20#e", "C:\\Users\\x\\y.txt", "a\t\tb\t c"]
SCRIPTS = ["\u4f60\u597d\uff0c\u4e16\u754c\uff01\u8fd9\u662f\u4e00\u4e2a\u6d4b\u8bd5\u3002", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u30fc\u3067\u3059", "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0661\u0662\u0663",
           "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0967\u0968\u0969", "\u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd \u0be7", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e51\u0e52", "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439, \u043c\u0438\u0440!",
           "\u0393\u03b5\u03b9\u03b1 \u03c3\u03bf\u03c5", "\u05e9\u05dc\u05d5\u05dd", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0", "\u1ea0a\u0302\u0301 e\u0301\u0328 \u1e69", "\u00bd \u00b2 \u2167 \u2460 \u3280 \u0bf0",
           "\U0001f600\U0001f44d\U0001f3fd\U0001f1e8\U0001f1ed \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\u2764\ufe0f\u200d\U0001f525", "\ufeffbom", "a\u200bb\u00adc\u2060d", "\U0001d400\U0001d7d8\U00010400",
           "\U00011de0\U00016ff4\U00010d40", "\u2028\u2029\u0085\u00a0\u3000\u1680\u205f", "\u0600\u06dd", "\U000e0001\U000e007f", "\ue000\U0010ffff\ufffe"]
SPECIALS = ["<|im_start|>user\nhi<|im_end|>\n", "<|im_start|><|im_start|>", "<|im_end", "<<|im_end|>>", "<|im_<|im_end|>start|>", "<repo_name><reponame>",
            " <|endoftext|> 1<|endoftext|>2", "  <|im_end|>", "a  <|im_end|>  b", "<empty_output>\n\n<file_sep>"]
HARD = ["", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\r\n\r\n", "\t \t", " a", "  a", "\n\na", "\n a", " \na", "a ", "a  ", "1", " 1", "  1", "   1", "12", "1 2", "1  2",
        "a1b", "1a", " 1 a", "\n1", "\n\n1", " \u0661", "  \u0661", "\u00a0a", "\u00a0\u00a0a", " \u00a0a", "\u00a01", "'", "''", "'s", "'S", "'ss", "'l", "'ll", "'lll", "x's", "x 's", " 's", "  's",
        "'re'", "'ve've", "'d1", "'1", "!'s", "\u2019s", "...", " ...", "  ...", "!a", "a!", "! a", "a.b", "$1,000.00", "_a_", "a_b", "-1", "\u00e9", " \u00e9", "e\u0301", "\u0301", " \u0301", "a\u0301 b",
        "\x00", "\x00\x00a", "\x01\x02\x03\x04\x05\x06\x13\x14\x16\x1d\x1f\x7f", "a\x04b", "th\x04e", "\x1c \x1d", "\u0080\u0085\u009f", "\U00040000\U00080000\U000c0000"]


def random_text(rng, special):
    def point():
        kind = rng.random()
        if kind < 0.3:
            return chr(rng.choice([9, 10, 13, 32, 32, 32, 39, 39, 115, 116, 100, 108, 49, 33, 97, 0xa0]))
        if kind < 0.5:
            return chr(rng.randrange(0x80))
        if kind < 0.7:
            return chr(rng.randrange(0x80, 0x3400))
        while True:
            c = rng.randrange(0x110000)
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    def part():
        kind = rng.randrange(9)
        if kind < 3:
            return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 9)))
        if kind == 3:
            return rng.choice(CODE)
        if kind == 4:
            return rng.choice(SCRIPTS)
        if kind == 5:
            return rng.choice(HARD)
        if kind == 6 and special:
            return rng.choice(SPECIALS)
        if kind == 7:
            return rng.choice([" ", "\n", "a", "1", "ab", "\U0001f600", "=", "-", "\t", "\u3000"]) * rng.randrange(1, 40)
        return "".join(point() for _ in range(rng.randrange(1, 30)))

    return "".join(part() for _ in range(rng.randrange(1, 6)))


def is_old(text):
    """Whether every library's Unicode version knows the characters, as this Python's does (3.11: Unicode 14). U+180E was
    white space once, and to PCRE2 still is."""
    return all(unicodedata.category(c) != "Cn" and c != "\u180e" for c in text)


def mixed_text(rng, special, bytes_at_least):
    parts, size = [], 0
    while size < bytes_at_least:
        parts.append(random_text(rng, special))
        size += len(parts[-1].encode())
    return "".join(parts)


def many(rng, count):
    """Random texts, every second of them characters from all of Unicode alone; some with special tokens; and 1 MiB of mixed
    text, once more with special tokens, and once more as far as it is_old: (text, special)."""
    def any_text():
        points = (rng.choice((0x80, 0x800, 0x3400, 0x110000)) for _ in range(rng.randrange(1, 40)))
        return "".join(chr(c) for c in map(rng.randrange, points) if not 0xD800 <= c < 0xE000)

    texts = [(random_text(rng, True) if k % 2 else any_text(), rng.random() < 0.5) for k in range(count)]
    big = mixed_text(rng, True, 1 << 20)
    old = "".join(c for c in big if is_old(c))
    return texts + [(big, False), (big, True), (old, False)]


class Program:
    """encode_stream (tests/model/encode_stream.c) on a checkpoint."""

    def __init__(self, program, path):
        self.child = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, form):
        return struct.unpack(form, self.child.stdout.read(struct.calcsize(form)))

    def ask_bytes(self, data, special):
        """Ids and what they decode to; None and a message where the text is refused."""
        self.child.stdin.write(struct.pack("<IB", len(data), special) + data)
        self.child.stdin.flush()
        n, = self.read("<I")
        ids = None if n == 0xFFFFFFFF else list(self.read(f"<{n}i"))
        n, = self.read("<I")
        return ids, self.child.stdout.read(n).decode()

    def ask(self, text, special):
        return self.ask_bytes(text.encode(), special)

    def close(self):
        self.child.stdin.close()
        return self.child.wait()


def library_ids(t, many):
    """What the library makes of (text, special) pairs."""
    out = []
    for text, special in many:
        t.encode_special_tokens = not special
        out.append(t.encode(text, add_special_tokens=False).ids)
    return out


def row(family, route, oracle, texts, ids, bad):
    """Family, route, oracle, and how many texts, bytes, tokens, differences."""
    return family, route, oracle, len(texts), sum(len(t.encode()) for t in texts), sum(map(len, ids)), bad


def compare(family, route, oracle, program, many, want, back):
    """want: the oracle's ids of each text. back(text): what must come back of it; None: it need not. A row, as above."""
    bad = 0
    for (text, special), ids in zip(many, want):
        got, again = program.ask(text, special)
        whole = back(text) if back else None
        if got == ids and whole in (None, again):
            continue
        bad += 1
        if bad <= 5 and got is not None:
            at = next((i for i, (a, b) in enumerate(zip(got, ids)) if a != b), min(len(got), len(ids)))
            print("differs:", family, route, ascii(text[:200]), special, len(got), len(ids), "at", at, got[at:at + 8], ids[at:at + 8],
                  got == ids)
    return row(family, route, oracle, [t for t, _ in many], want, bad + (program.close() != 0))
