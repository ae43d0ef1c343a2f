"""What the end-to-end tests share: their arguments, and a server for the tests of a class.

usage of each: test_X.py BINARY WEIGHTS [unittest arguments]"""

import sys
import unittest

from server import Server

if len(sys.argv) < 3:
    sys.exit(__doc__)
BINARY, WEIGHTS = sys.argv[1:3]
SMALL = ("--max-model-len", 512)
PROBE = {"prompt": "The sea is", "max_tokens": 12, "temperature": 0.7, "seed": 42, "is_deterministic": True, "logprobs": 1}
LONG = {"prompt": "The sea is", "max_tokens": 400, "ignore_eos": True}


class Shared(unittest.TestCase):
    """One server for the tests of a class; after each the probe has its digest and all pages are free."""

    flags = SMALL

    @classmethod
    def setUpClass(cls):
        cls.s = Server(BINARY, WEIGHTS, *cls.flags)
        cls.digest = cls.s.complete(**PROBE)["determinism"]["digest"]

    @classmethod
    def tearDownClass(cls):
        code = cls.s.stop()
        assert code == 0, (code, cls.s.log[-5:])

    def tearDown(self):
        self.s.settle()
        self.assertEqual(self.s.metric("kv_cache_usage_perc"), 0)
        self.assertEqual(self.s.ask("GET", "/health")[0], 200)
        self.assertEqual(self.s.complete(**PROBE)["determinism"]["digest"], self.digest)

    def refused(self, status, body, path="/v1/completions", param=None):
        got, answer = self.s.post(path, body)
        self.assertEqual(got, status, answer)
        self.assertEqual(set(answer["error"]) & {"message", "type", "param", "code"}, {"message", "type", "param", "code"})
        if param:
            self.assertEqual(answer["error"]["param"], param)
        return answer["error"]


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
