#!/usr/bin/env python3
"""Tiny checkpoints of every family from directory to answer: import, build, run, and the log-probabilities beside those that
transformers computed in fp32 (tests/golden/make_checkpoints.py).

usage: checkpoints.py BUILD_DIR [--built | --only-build] [--jobs N] [--config YAML] [NAME ...]

BUILD_DIR is a CMake build folder; the engines are built there and forgotten again. With --built they are there already. NAME: folders of tests/golden/checkpoints, all
of them where none is given. --config: the build configuration (default tests/e2e/checkpoint-cpu.yaml)."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import steadfast as sf

CHECKPOINTS = os.path.join(ROOT, "tests/golden/checkpoints")
# mean and largest |difference| of the log-probabilities of the 8 most likely ids of a position; a first choice that leads by
# more than CLEAR is the engine's too
MEAN_MAX, WORST_MAX, CLEAR = 0.06, 0.5, 0.5


def import_model(build, name, folder):
    """The description of a checkpoint, as `import` writes it into an empty folder."""
    path = os.path.join(folder, name + ".yaml")
    subprocess.run([os.path.join(build, "bin/steadfast-gen"), "import", "--from", os.path.join(CHECKPOINTS, name),
                    "--out", path], check=True, stdout=subprocess.DEVNULL)
    return path


def build_engines(build, targets, names, config, jobs):
    with tempfile.TemporaryDirectory() as tmp:
        sf.build(build, ["steadfast-gen"], jobs)
        sf.build_engines(build, [f"{import_model(build, n, tmp)}:{config}" for n in names], targets, jobs)


def compare(binary, folder):
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
        want = json.load(f)
    # in one batch: the prompts share pinned passes
    answers = sf.Engine(binary, folder).run([dict(prompt_ids=p, max_tokens=0, prompt_logprobs=20, is_deterministic=True)
                                             for p in want["prompts"]])
    entries = tops = clear = 0
    total = worst = 0.0
    for answer, positions in zip(answers, want["logprobs"]):
        for got, (ids, logprobs) in zip(answer["prompt_logprobs"][1:], positions):
            for token, lp in zip(ids, logprobs):
                d = abs(got[str(token)]["logprob"] - lp) if str(token) in got else 1.0  # it is not even among our 20
                entries, total, worst = entries + 1, total + d, max(worst, d)
            best = next(int(k) for k, v in got.items() if v["rank"] == 1)
            if logprobs[0] - logprobs[1] > CLEAR:
                clear, tops = clear + 1, tops + (best == ids[0])
    good = entries > 1000 and total / entries <= MEAN_MAX and worst <= WORST_MAX and tops == clear > 0
    print(f"{'ok    ' if good else 'FAILED'} {os.path.basename(folder):16} {entries} log-probabilities: mean |difference| "
          f"{total / entries:.4f}, worst {worst:.3f}; first choice {tops} of {clear}")
    return good


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build")
    a.add_argument("names", nargs="*")
    a.add_argument("--built", action="store_true")
    a.add_argument("--only-build", action="store_true")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--config", default=os.path.join(ROOT, "tests/e2e/checkpoint-cpu.yaml"))
    o = a.parse_intermixed_args()
    names = o.names or sorted(n for n in os.listdir(CHECKPOINTS) if os.path.isdir(os.path.join(CHECKPOINTS, n)))
    began = time.monotonic()
    build, kind = os.path.abspath(o.build), os.path.splitext(os.path.basename(o.config))[0]
    targets = [f"steadfast-{n}-{kind}" for n in names]
    if not o.built:
        build_engines(build, targets, names, os.path.abspath(o.config), o.jobs)
    if o.only_build:
        return 0
    binaries = [os.path.join(build, "bin", t) for t in targets]
    print(f"{len(names)} engines, {time.monotonic() - began:.0f} s to build (at most mean {MEAN_MAX}, worst {WORST_MAX}; "
          f"first choices equal where they lead by {CLEAR})")
    results = [compare(b, os.path.join(CHECKPOINTS, n)) for b, n in zip(binaries, names)]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
