#!/usr/bin/env python3
"""Teacher-forced log-probabilities of the pinned path against the reference answers (an independent fp32 program).

usage: logprobs.py BINARY WEIGHTS GOLDEN.jsonl

A correct bf16 engine measures a mean absolute difference of about 0.03 and the same top choice at about 99 %."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import steadfast as sf

MEAN_MAX, TOP_MIN = 0.05, 0.97


def main(binary, weights, golden):
    with open(golden, encoding="utf-8") as f:
        cases = [json.loads(line) for line in f]
    engine = sf.Engine(binary, weights)
    got = engine.run([dict(prompt_ids=c["prompt_ids"] + c["greedy_ids"], max_tokens=0, prompt_logprobs=1) for c in cases])
    total = tops = 0
    diff = worst = 0.0
    for c, a in zip(cases, got):
        ids = c["prompt_ids"] + c["greedy_ids"]
        for i, want in enumerate(c["logprob"]):
            if i + 1 >= len(ids):
                break
            entry = a["prompt_logprobs"][i + 1]
            d = abs(entry[str(ids[i + 1])]["logprob"] - want)
            best = next(int(k) for k, v in entry.items() if v["rank"] == 1)
            total += 1
            diff += d
            worst = max(worst, d)
            tops += best == c["top5"][i][0][0]
    chats = engine.run([dict(messages=[{"role": "user", "content": c["prompt"]}], max_tokens=1, return_token_ids=True)
                        for c in cases])
    ids_equal = sum(a["prompt_token_ids"] == c["prompt_ids"] for a, c in zip(chats, cases))
    print(f"{total} positions: mean |difference| {diff / total:.4f} (at most {MEAN_MAX}), worst {worst:.3f}, "
          f"same top choice {100 * tops / total:.2f} % (at least {100 * TOP_MIN:.0f})")
    print(f"chat template and tokenizer: {ids_equal} of {len(cases)} prompts have the reference's ids")
    return 0 if total > 1000 and diff / total <= MEAN_MAX and tops / total >= TOP_MIN and ids_equal == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
