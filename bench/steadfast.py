"""What the benches share: running the engine over JSONL, and comparing answers bit by bit."""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def default_binary():
    return os.environ.get("STEADFAST_BINARY", os.path.join(ROOT, "build/bin/steadfast-smollm2-135m-cpu"))


def default_weights():
    return subprocess.run([os.path.join(ROOT, "scripts/weights")], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


def build(folder, targets, jobs):
    subprocess.run(["cmake", "--build", folder, "-j", str(jobs), "--target", *targets], check=True, stdout=subprocess.DEVNULL)


def build_engines(folder, engines, targets, jobs):
    """Engines (MODEL:CONFIG) with kernels that compile fast and run slowly, built in a CMake folder and forgotten again."""
    def configure(names):
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DSF_TEST_ENGINES=" + ";".join(names)], check=True, stdout=subprocess.DEVNULL)

    try:
        configure(engines)
        build(folder, targets, jobs)
    finally:
        configure([])


class RunFailed(Exception):
    pass


def word_ids(text, vocab=30000):
    """Stand-in token ids of a text, one a word: for random weights, which have no tokenizer."""
    return [zlib.crc32(w.encode()) % vocab for w in text.split(" ")]


class Engine:
    """One binary with one set of flags. Each call of run() is one process: start, answer every request, end.
    weights: a path, or the seed of random weights; text prompts are then words turned into ids."""

    def __init__(self, binary, weights, flags=(), env=None):
        self.binary, self.weights, self.flags = binary, weights, list(flags)
        self.random = isinstance(weights, int)
        self.env = dict(os.environ, **(env or {}))
        self.report = {}

    def elsewhere(self, requests):
        """The same requests to other processes: (which, answers)."""
        yield "in another process", self.run(requests)

    def close(self):
        """Nothing is left to end: see bench/served.py, which has the same calls."""

    def run(self, requests, flags=(), deterministic=True, env=None, alone=False):
        """Answers in the order of requests; alone: one request at a time. Raises RunFailed with what the engine said."""
        flags = [*flags, *(["--max-num-seqs", "1"] if alone else [])]
        with tempfile.TemporaryDirectory() as tmp:
            source, target, report = (os.path.join(tmp, n) for n in ("in.jsonl", "out.jsonl", "report.json"))
            with open(source, "w", encoding="utf-8") as f:
                for i, r in enumerate(requests):
                    if self.random and "prompt" in r:
                        r = {**r, "prompt_ids": word_ids(r["prompt"])}
                        del r["prompt"]
                    f.write(json.dumps({"id": str(i), "is_deterministic": deterministic, **r}) + "\n")
            cmd = [self.binary, "run", "--random-weights" if self.random else "--weights", str(self.weights), "--input", source, "--output", target,
                   "--report", report, *self.flags, *flags]
            p = subprocess.run(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**self.env, **(env or {})})
            answers = []
            if os.path.exists(target):
                with open(target, encoding="utf-8") as f:
                    answers = [json.loads(line) for line in f]
            if p.returncode != 0 or len(answers) != len(requests) or any("error" in a for a in answers):
                bad = next((a for a in answers if "error" in a), None)
                raise RunFailed(f"exit {p.returncode}, {len(answers)} of {len(requests)} answers, "
                                f"first error {bad}\n{' '.join(cmd)}\n{p.stderr[-2000:]}")
            with open(report, encoding="utf-8") as f:
                self.report = json.load(f)
            return answers


def bits(x):
    """The fp32 bit pattern of a printed log-probability (9 significant digits give it back exactly)."""
    return None if x is None else struct.unpack("<I", struct.pack("<f", x))[0]


def rows(answer):
    """Every committed row of an answer: (token id, log-probability bits, top log-probability bits by id)."""
    lp = answer.get("logprobs")
    ids = answer["token_ids"]
    if lp is None:
        return [(t,) for t in ids]
    tops = lp.get("top_logprobs") or [None] * len(ids)
    if not len(ids) == len(lp["token_logprobs"]) == len(tops):
        raise ValueError(f"{len(ids)} tokens, {len(lp['token_logprobs'])} log-probabilities, {len(tops)} lists of the likeliest")
    return [(t, bits(l), tuple(sorted((k, bits(v)) for k, v in top.items())) if top else None)
            for t, l, top in zip(ids, lp["token_logprobs"], tops)]


def digest(answer):
    return hashlib.sha256(repr(rows(answer)).encode()).hexdigest()


def differing_rows(a, b):
    """Rows that differ between two answers, a length difference included."""
    x, y = rows(a), rows(b)
    return sum(p != q for p, q in zip(x, y)) + abs(len(x) - len(y))


def table(lines, head, out=sys.stdout):
    cells = [[str(c) for c in head]] + [[str(c) for c in l] for l in lines]
    width = [max(len(r[i]) for r in cells) for i in range(len(head))]
    for n, r in enumerate(cells):
        print("  ".join(c.ljust(w) for c, w in zip(r, width)).rstrip(), file=out)
        if n == 0:
            print("  ".join("-" * w for w in width), file=out)
