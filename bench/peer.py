"""The comparison behind bench/peer: rounds of llama-bench and bench-decode in turn; medians and ratios."""

import json
import statistics
import subprocess
import sys

import steadfast as sf


def llama(bench, weights, threads):
    out = subprocess.run([bench, "-m", weights, "-p", "512", "-n", "64", "-t", threads, "-r", "2", "-o", "json"], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    tests = json.loads(out)
    return (next(t["avg_ts"] for t in tests if t["n_gen"] > 0), next(t["avg_ts"] for t in tests if t["n_prompt"] > 0))


def ours(bench, weights, threads):
    out = subprocess.run([bench, "--weights", weights, "--threads", threads, "--batches", "1", "--repeats", "3", "--json"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def main(llama_bench, bf16, decode, weights, rounds, threads):
    seen = []
    for _ in range(int(rounds)):
        d, p = llama(llama_bench, bf16, threads)
        o = ours(decode, weights, threads)
        one = o["decode"][0]
        seen.append(dict(llama_decode=d, llama_prefill=p, ordinary=one["ordinary"], verify=one["verify"], pin=one["pin"],
                         prefill_ordinary=o["prefill"]["ordinary"], prefill_pinned=o["prefill"]["pinned"]))

    def med(key):
        return statistics.median(s[key] for s in seen)

    def ratio(a, b):
        return f"{statistics.median(s[a] / s[b] for s in seen):.2f}"

    sf.table([
        ("ordinary decode / llama.cpp", f"{med('ordinary'):.1f}", f"{med('llama_decode'):.1f}", ratio("ordinary", "llama_decode"), 0.8),
        ("pinned decode / ordinary", f"{med('pin'):.1f}", f"{med('ordinary'):.1f}", ratio("pin", "ordinary"), 0.8),
        ("verified decode / ordinary", f"{med('verify'):.1f}", f"{med('ordinary'):.1f}", ratio("verify", "ordinary"), "-"),
        ("ordinary prefill / llama.cpp", f"{med('prefill_ordinary'):.0f}", f"{med('llama_prefill'):.0f}",
         ratio("prefill_ordinary", "llama_prefill"), "-"),
        ("pinned prefill / llama.cpp", f"{med('prefill_pinned'):.0f}", f"{med('llama_prefill'):.0f}",
         ratio("prefill_pinned", "llama_prefill"), 0.5),
    ], ("tokens/s, batch 1, BF16", "first", "second", "ratio", "floor"))


if __name__ == "__main__":
    main(*sys.argv[1:])
