"""What the end-to-end tests share: their arguments, and a server for the tests of a class.

usage of each: test_X.py BINARY WEIGHTS [unittest arguments]"""

import json
import socket
import sys
import time
import unittest

from server import PATIENCE, PROBE, Server

if len(sys.argv) < 3:
    sys.exit(__doc__)
BINARY, WEIGHTS = sys.argv[1:3]
SMALL = ("--max-model-len", 512)
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

    def open(self, **body):
        """A connection over which a stream has been asked for."""
        data = json.dumps({**LONG, "stream": True, **body}).encode()
        c = socket.create_connection(("127.0.0.1", self.s.port), timeout=60)
        c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))
        return c

    def aborted(self):
        return self.s.metric("request_success_total", 'finished_reason="abort"')

    def wait_for(self, what, true):
        end = time.monotonic() + 60 * PATIENCE
        while not true():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def refused(self, status, body, path="/v1/completions", param=None):
        got, answer = self.s.post(path, body)
        self.assertEqual(got, status, answer)
        self.assertEqual(set(answer["error"]) & {"message", "type", "param", "code"}, {"message", "type", "param", "code"})
        if param:
            self.assertEqual(answer["error"]["param"], param)
        return answer["error"]


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
