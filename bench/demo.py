"""The demonstration behind bench/demo: one prompt, alone and 64 times in mixed batches.

usage: demo.py BINARY WEIGHTS [--copies N]"""

import argparse
import random
import sys

import steadfast as sf
from texts import LONG, of_length

PROMPT = [{"role": "user", "content": "Explain why the sky is blue, then why sunsets are red."}]


def crowd(copies):
    """The copies, shuffled among other people's requests of very different lengths."""
    ask = dict(messages=PROMPT, temperature=0, logprobs=0, max_tokens=64)
    rnd = random.Random(1)
    others = [dict(prompt=of_length(rnd.randint(5, 120), k), temperature=0.8, seed=k, max_tokens=rnd.randint(8, 80))
              for k in range(copies // 4)]
    others += [dict(prompt=LONG[k], temperature=0.8, seed=k, max_tokens=32) for k in range(3)]
    reqs = [("copy", ask)] * copies + [("other", o) for o in others]
    rnd.shuffle(reqs)
    return ask, reqs


def stage(text):
    print(text, file=sys.stderr, flush=True)


def measure(engine, ask, reqs, deterministic, how):
    stage(f"loading the weights and asking the prompt alone, {how} ...")
    alone = engine.run([ask], deterministic=deterministic)[0]
    stage(f"running {len(reqs)} requests in mixed batches, {how} ...")
    got = engine.run([r for _, r in reqs], deterministic=deterministic)
    copies = [a for (kind, _), a in zip(reqs, got) if kind == "copy"]
    return dict(copies=len(copies),
                same=sum(sf.digest(a) == sf.digest(alone) for a in copies),
                bits=len({sf.digest(a) for a in copies + [alone]}),
                texts=len({a["text"] for a in copies + [alone]}),
                stats=engine.report["stats"], rate=engine.report["output_tokens"] / engine.report["seconds"],
                text=alone["text"])


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("binary")
    ap.add_argument("weights")
    ap.add_argument("--copies", type=int, default=64)
    args = ap.parse_args()
    engine = sf.Engine(args.binary, args.weights, ["--policy", "verify"])  # the loop itself is shown
    ask, reqs = crowd(args.copies)
    ordinary = measure(engine, ask, reqs, False, "on the ordinary path")
    steady = measure(engine, ask, reqs, True, "deterministically")
    print(f"\nprompt   {PROMPT[0]['content']}")
    print(f"answer   {steady['text'][:160].strip()} ...\n")
    st = steady["stats"]
    sf.table([
        ("copies of the prompt in mixed batches", ordinary["copies"], steady["copies"]),
        ("copies with the bits of the prompt alone", ordinary["same"], steady["same"]),
        ("different answers, by bits", ordinary["bits"], steady["bits"]),
        ("different answers, by text", ordinary["texts"], steady["texts"]),
        ("windows verified", "-", st["windows_verified"]),
        ("rollbacks", "-", st["rollbacks"]),
        ("tokens rolled back", "-", st["tokens_rolled_back"]),
        ("tokens/s (this one run; noisy)", f"{ordinary['rate']:.0f}", f"{steady['rate']:.0f}"),
    ], ("", "ordinary", "deterministic"))
    ok = steady["same"] == steady["copies"] and st["rollbacks"] > 0
    return 0 if ok else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except sf.RunFailed as e:
        sys.exit(f"bench/demo: {e}")
