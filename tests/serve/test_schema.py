#!/usr/bin/env python3
"""Requests that schemathesis makes from /openapi.json, valid and not: no answer is a fault of the server, each is one that the
description allows, and afterwards the server answers as before.

usage: test_schema.py BINARY WEIGHTS [--examples N] [--seed N]      (PYTHONPATH: schemathesis)"""

import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server import PROBE, Server  # noqa: E402

# Methods that HTTP does not know are evhttp's to refuse, with 501. What a schema cannot say (which roles a template takes, that
# an audited answer has the request's choices) is refused although it fits, so acceptance is not among the checks.
CONFIG = '[phases.coverage]\nunexpected-methods = ["DELETE", "PUT", "PATCH"]\n'


class Keyed(Server):
    def ask(self, method, path, body=None, headers=None, timeout=120):
        return super().ask(method, path, body, {"Authorization": "Bearer key", **(headers or {})}, timeout)


def tested(server, examples, seed):
    with tempfile.TemporaryDirectory() as tmp:
        with open(tmp + "/schemathesis.toml", "w", encoding="utf-8") as f:
            f.write(CONFIG)
        code = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"
        return subprocess.run([sys.executable, "-c", code, "--config-file", tmp + "/schemathesis.toml", "run",
                               f"http://127.0.0.1:{server.port}/openapi.json", "--phases", "coverage,fuzzing", "--no-color", "--seed", str(seed),
                               "--max-examples", str(examples), "--exclude-checks", "positive_data_acceptance", "--warnings", "off", "--request-timeout", "300",
                               "-H", "Authorization: Bearer key"], cwd=tmp).returncode == 0


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("binary")
    a.add_argument("weights")
    a.add_argument("--examples", type=int, default=8, help="of each end point")
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    s = Keyed(o.binary, o.weights, "--max-model-len", 128, "--api-key", "key")
    digest = s.complete(**PROBE)["determinism"]["digest"]
    good = tested(s, o.examples, o.seed)
    s.settle(60)
    checks = {"schema": good, "health": s.ask("GET", "/health")[0] == 200, "pages": s.metric("kv_cache_usage_perc") == 0,
              "probe": s.complete(**PROBE)["determinism"]["digest"] == digest, "end": s.stop() == 0}
    print(checks)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
