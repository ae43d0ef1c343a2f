#!/usr/bin/env python3
"""The verb audit: answers of `run` are confirmed, others are not, and what is missing is named.

usage: test_audit.py BINARY WEIGHTS [unittest arguments]"""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engine import Binary  # noqa: E402

B = None
ASK = [dict(id=str(i), prompt=f"Chapter {i}:", max_tokens=16, temperature=0.9, seed=i, n=1 + i % 2, logprobs=i % 3,
            is_deterministic=True) for i in range(6)]


class Audit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        code, cls.answers, err, _ = B.lines(ASK)
        assert code == 0, err

    def audit(self, requests, answers):
        """(exit code, verdicts)"""
        with tempfile.TemporaryDirectory() as tmp:
            for name, lines in (("q", requests), ("a", answers)):
                with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
                    f.writelines(json.dumps(x) + "\n" for x in lines or [])
            flags = ["--answers", tmp + "/a"] if answers is not None else []
            code, out, err = B.run("audit", "--weights", B.weights, "--input", tmp + "/q", *flags)
            return code, [json.loads(x) for x in out.splitlines()]

    def test_the_engines_answers_are_confirmed_in_order(self):
        code, verdicts = self.audit(ASK, self.answers)
        self.assertEqual(code, 0)
        self.assertEqual([(v["id"], v["match"], v["digest_match"]) for v in verdicts], [(q["id"], True, True) for q in ASK])

    def test_request_and_answer_may_stand_in_one_line(self):
        code, verdicts = self.audit([{"id": q["id"], "request": q, "answer": a} for q, a in zip(ASK, self.answers)], None)
        self.assertEqual((code, [v["match"] for v in verdicts]), (0, [True] * 6))

    def test_one_other_answer_is_found_and_fails_the_run(self):
        other = json.loads(json.dumps(self.answers))
        other[2]["token_ids"][5] ^= 1
        code, verdicts = self.audit(ASK, other)
        self.assertEqual((code, [v["match"] for v in verdicts]), (1, [i != 2 for i in range(6)]))
        self.assertEqual(verdicts[2]["choices"][0]["mismatch"]["position"], 5)

    def test_a_missing_answer_is_named_by_its_line(self):
        code, verdicts = self.audit(ASK, self.answers[:5])
        self.assertEqual(code, 1)
        self.assertEqual((verdicts[5]["line"], "fewer lines" in verdicts[5]["error"]["message"]), (6, True))

    def test_what_audit_needs_is_told(self):
        self.assertIn("--input", B.run("audit", "--weights", B.weights)[2])
        code, _, err = B.run("audit", "--weights", B.weights, "--input", "/dev/null", "--answers", "/nonexistent")
        self.assertEqual((code, "/nonexistent" in err), (1, True))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    B = Binary(*sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
