#!/usr/bin/env python3
"""The same bits in every configuration: one set of requests through threads x isa x window x policy, all answers equal to the
first configuration's; then the determinism procedures, quick.

usage: matrix.py BINARY WEIGHTS [--full | --brief]      (--brief: fewer requests, with drafts made to err, and no procedures)"""

import json
import os
import subprocess
import sys

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench")
sys.path.insert(0, BENCH)
import steadfast as sf
from texts import LONG, of_length


def requests(count):
    reqs = [dict(prompt=of_length(4 + 7 * k, k), temperature=(0, 0.7)[k % 2], seed=k, logprobs=3, max_tokens=40 + k,
                 presence_penalty=0.3 * (k % 3), top_p=(1, 0.9)[k % 2]) for k in range(count)]
    return reqs + [dict(prompt=LONG[k], temperature=0.5, seed=k, logprobs=3, max_tokens=24) for k in range(2)]


def configurations(isas, brief):
    yield from (["--threads", str(t)] for t in ((1, 2) if brief else (1, 2, 3)))
    yield from (["--isa", i] for i in isas)
    yield from (["--policy", "verify", "--window", str(w)] for w in ((2, 8) if brief else (2, 5, 8, 32)))
    yield ["--policy", "pin"]
    yield ["--policy", "pin", "--max-num-seqs", "3", "--prefill-chunk", "7"]
    yield ["--policy", "verify", "--verify-wait", "9", "--max-num-batched-tokens", "33", "--threads", "3"]


def main(binary, weights, full=False, brief=False):
    info = json.loads(subprocess.run([binary, "info", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    isas = info["machine"]["isas_usable"]
    if len(isas) < 2:
        print(f"note: this machine runs {isas} only; instruction sets are not compared")
    reqs, want, failed, rows, rollbacks = requests(20 if full else 4 if brief else 10), None, 0, 0, 0
    for flags in configurations(isas, brief):
        e = sf.Engine(binary, weights, flags, {"STEADFAST_DEBUG": "inject=1"} if brief else None)
        got = e.run(reqs)
        rollbacks += e.report["stats"]["rollbacks"]
        differ = sum(sf.differing_rows(a, b) + ((a["text"], a["finish_reason"]) != (b["text"], b["finish_reason"]))
                     for a, b in zip(want or got, got))
        rows += sum(len(a["token_ids"]) for a in got) if want else 0
        want = want or got
        failed += differ > 0
        print(f"{'same' if not differ else 'DIFFERS'}  {' '.join(flags)}" + (f": {differ} rows" if differ else ""))
    print(f"{rows} rows compared, {rollbacks} rollbacks")
    if rows == 0:
        print("no row was compared")
        failed += 1
    if rollbacks == 0:
        print("no rollback happened: the loop was not tried")
        failed += 1
    if brief:
        return 1 if failed else 0
    cmd = [os.path.join(BENCH, "determinism"), "--binary", binary, "--weights", weights] + ([] if full else ["--quick"])
    failed += subprocess.run(cmd).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--full" in sys.argv[3:], "--brief" in sys.argv[3:]))
