#!/usr/bin/env python3
"""What the scripts around the binary print: their help at once, and each stage as it begins.

usage: test_scripts.py BINARY WEIGHTS [unittest arguments]"""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = WEIGHTS = None  # set from the command line


def script(*args, timeout=300):
    """(exit code, stdout, stderr), none of it a terminal"""
    p = subprocess.run(list(map(str, args)), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=timeout)
    return p.returncode, p.stdout, p.stderr


class Help(unittest.TestCase):
    def test_it_is_there_at_once(self):
        """Nothing is installed, fetched or built for it."""
        for name, says in (("bench/demo", "usage: bench/demo [--copies N]"), ("bench/decode", "usage: bench/decode [--threads N]"),
                           ("tests/run", "usage: tests/run [--quick]")):
            for flag in ("--help", "-h"):
                code, out, err = script(name, flag, timeout=5)
                self.assertEqual((code, err), (0, ""), name)
                self.assertIn(says, out)

    def test_tests_run_names_the_minutes_of_each_stage(self):
        _, out, _ = script("tests/run", "--help")
        minutes = next(x for x in out.splitlines() if x.startswith("minutes"))
        for stage in ("unit", "cli", "determinism", "asan", "tsan", "fuzz"):
            self.assertRegex(minutes, rf"\b{stage} \d")


class Stages(unittest.TestCase):
    def test_tests_run_prints_a_stage_when_it_begins(self):
        _, out, _ = script("tests/run", "format")
        self.assertRegex(out, r"^format \.\.\.\nformat +(pass|FAIL) ")

    def test_the_demo_prints_its_stages_without_a_terminal(self):
        _, out, err = script("python3", "bench/demo.py", BINARY, WEIGHTS, "--copies", 4)
        stages = [x for x in err.splitlines() if x.endswith(" ...")]
        self.assertEqual([x.split()[0] for x in stages], ["loading", "running"] * 2, err)
        self.assertRegex(out, r"tokens/s \(this one run; noisy\) +\d+ +\d+")

    @unittest.skipIf(os.environ.get("BRIEF"), "the procedures run for long")
    def test_the_control_of_the_procedures_is_named_so(self):
        code, out, err = script("bench/determinism", "--quick", "--binary", BINARY, "--weights", WEIGHTS, "P5")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"^P5 +control pass: \d+ of 12 answers differ, \d+ in token ids\n1 passed, 0 failed\n$")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    BINARY, WEIGHTS = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
