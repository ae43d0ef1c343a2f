#!/usr/bin/env python3
"""Prompts through the fast class, whose products a library may serve, beside the pinned class.

usage: fast_prefill.py BINARY [--weights FILE | --seed N] [--without]

Each prompt runs alone, in passes as large as the plan has, so that the library is asked for many row counts. The classes
add in other orders: the log-probabilities of what follows may differ by the rounding of bf16, and no more. --without: the
library is expected not to serve."""

import argparse
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import steadfast as sf

LENGTHS = [129, 130, 200, 256, 257, 300, 384, 500, 512, 513, 640, 700, 1000, 1024, 1025, 1500, 2000, 2048, 2100, 3000, 3970, 4000]
MEAN_MAX, WORST_MAX, COMMON_MIN = 0.03, 0.3, 0.8


def compare(ordinary, pinned):
    """Differences of the log-probabilities that both list, and how many of the pinned ones the other lists too."""
    diffs, wanted = [], 0
    for a, b in zip(ordinary, pinned):
        top, other = (x["logprobs"]["top_logprobs"][0] for x in (b, a))
        wanted += len(top)
        diffs += [abs(v - other[k]) for k, v in top.items() if k in other]
    return diffs, len(diffs) / wanted


def main():
    a = argparse.ArgumentParser()
    a.add_argument("binary")
    a.add_argument("--weights")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--without", action="store_true")
    o = a.parse_args()
    draw = random.Random(7)
    requests = [dict(prompt_ids=[draw.randrange(30000) for _ in range(n)], max_tokens=1, temperature=0, logprobs=20) for n in LENGTHS]
    engine = sf.Engine(o.binary, o.weights or o.seed, ["--max-num-seqs", "1", "--prefill-chunk", "4096"])
    pinned = engine.run(requests)
    of_pinned = engine.report["cuda"]["library_launches"]
    ordinary = engine.run(requests, deterministic=False)
    served = engine.report["cuda"]["library_launches"]
    diffs, common = compare(ordinary, pinned)
    crossed, _ = compare(ordinary[1:], pinned[:-1])
    mean, worst = sum(diffs) / len(diffs), max(diffs)
    control = sum(crossed) / len(crossed) if crossed else float("inf")
    print(f"{len(LENGTHS)} prompts of {LENGTHS[0]} to {LENGTHS[-1]} rows: {served} products by a library, {of_pinned} in pinned passes; "
          f"{100 * common:.0f} % of the likeliest in common, mean |difference| {mean:.5f} (at most {MEAN_MAX}), worst {worst:.4f}; "
          f"beside another prompt's {control:.3f}")
    right = mean <= MEAN_MAX and worst <= WORST_MAX and common >= COMMON_MIN and control > 3 * mean and of_pinned == 0
    return 0 if right and (served == 0) == o.without else 1


if __name__ == "__main__":
    sys.exit(main())
