"""What the tests of the command line share: running the binary, requests in and answers out."""

import json
import os
import subprocess
import tempfile


class Binary:
    """One binary. Environment variables of its own are cleared, so that the caller's do not leak in."""

    def __init__(self, path, weights):
        self.path, self.weights = os.path.abspath(path), os.path.abspath(weights)

    def run(self, *args, env=None, stdin=None, timeout=300, stdout=subprocess.PIPE):
        """(exit code, stdout bytes, stderr text)"""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("STEADFAST_")}
        p = subprocess.run([self.path, *map(str, args)], input=stdin if stdin is not None else b"", stdout=stdout,
                           stderr=subprocess.PIPE, env={**clean, **(env or {})}, timeout=timeout)
        return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")

    def lines(self, lines, *args, env=None):
        """Runs JSONL; a line is a dict, or bytes taken as they are. (exit code, answers, stderr, report)"""
        with tempfile.TemporaryDirectory() as tmp:
            source, target, report = (os.path.join(tmp, n) for n in ("in.jsonl", "out.jsonl", "report.json"))
            with open(source, "wb") as f:
                for line in lines:
                    f.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
            code, _, err = self.run("run", "--weights", self.weights, "--input", source, "--output", target, "--report",
                                    report, *args, env=env)
            answers = []
            if os.path.exists(target):
                with open(target, encoding="utf-8") as f:
                    answers = [json.loads(x) for x in f]
            with open(report, encoding="utf-8") as f:
                return code, answers, err, json.load(f)
