#!/usr/bin/env python3
"""The page at / in headless Chromium: both requests run, the verdicts are right, by keyboard alone, in light and dark.

usage: test_page.py BINARY WEIGHTS [--screenshot FILE]      (PYTHONPATH: websocket-client; skipped where there is no Chromium)"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402
from server import Server  # noqa: E402

BINARY = WEIGHTS = SHOT = None
TEXT = "document.getElementById('%s').textContent"


@unittest.skipUnless(browser.find(), "no Chromium")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.s = Server(BINARY, WEIGHTS, "--max-model-len", 512, "--policy", "verify", env={"STEADFAST_DEBUG": "inject=2"})
        cls.url = f"http://127.0.0.1:{cls.s.port}/"

    @classmethod
    def tearDownClass(cls):
        assert cls.s.stop() == 0

    def opened(self, **more):
        b = browser.Browser(**more)
        self.addCleanup(b.close)
        b.go(self.url)
        return b

    def run_both(self, b):
        b.value("document.getElementById('tokens').value = 40; document.getElementById('others').value = 6")
        b.value("document.getElementById('prompt').focus()")
        for _ in range(6):
            b.key("Tab", 9)
        self.assertEqual(b.value("document.activeElement.id"), "run")
        b.value("document.activeElement.click()")
        b.wait("/Done|Failed/.test(document.getElementById('status').textContent)", 120)
        self.assertEqual((b.value(TEXT % "status"), b.errors), ("Done.", []))

    def test_deterministic_is_the_same_and_ordinary_is_judged(self):
        b = self.opened()
        self.run_both(b)
        self.assertEqual(b.value(TEXT % "verdict-1"), "bit for bit the same")
        self.assertRegex(b.value(TEXT % "verdict-0"), "^(bit for bit the same|differs at token [0-9]+: another)")
        self.assertEqual(b.value(TEXT % "a2"), b.value(TEXT % "a3"))
        self.assertGreater(len(b.value(TEXT % "a2")), 40)
        alone, among = (b.value(TEXT % d) for d in ("d2", "d3"))
        self.assertRegex(alone, r"^[1-9]\d* windows, [1-9]\d* rollbacks, digest [0-9a-f]{16}$")
        self.assertEqual(alone[-16:], among[-16:])
        self.assertGreater(b.value("document.querySelectorAll('#w2 i.kept').length"), 1)
        self.assertGreater(b.value("document.querySelectorAll('#w2 i.back').length"), 0)
        if b.value(TEXT % "verdict-0").startswith("differs"):
            self.assertEqual(b.value("document.querySelectorAll('#a1 mark').length"), 1)
        self.assertGreater(b.value("Math.max(...rates)"), 0)  # the live figures saw the tokens
        if SHOT:
            b.screenshot(SHOT)

    def test_every_field_has_a_label_and_the_page_fits_a_phone_in_the_dark(self):
        b = self.opened(width=380, height=800, dark=True)
        self.assertEqual(b.value("[...document.querySelectorAll('input, textarea')].filter(e => !e.labels.length).length"), 0)
        self.assertLessEqual(b.value("document.documentElement.scrollWidth"), b.value("window.innerWidth"))
        self.assertEqual(b.value("getComputedStyle(document.body).backgroundColor"), "rgb(21, 24, 28)")
        with tempfile.TemporaryDirectory() as tmp:
            b.screenshot(tmp + "/dark.png")
            self.assertGreater(os.path.getsize(tmp + "/dark.png"), 5000)

    def test_nothing_but_this_server_is_asked(self):
        b = self.opened()
        names = b.value("performance.getEntriesByType('resource').map(e => e.name)")
        self.assertTrue(all(n.startswith(self.url) for n in names), names)

    def test_an_error_of_the_server_is_shown(self):
        b = self.opened()
        b.value("document.getElementById('tokens').value = 2000; document.getElementById('prompt').value = 'word '.repeat(3000)")
        b.value("document.getElementById('run').click()")
        b.wait("/Failed/.test(document.getElementById('status').textContent)")
        self.assertIn("512", b.value(TEXT % "status"))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    BINARY, WEIGHTS = sys.argv[1:3]
    SHOT = os.path.abspath(sys.argv[4]) if sys.argv[3:4] == ["--screenshot"] else None
    unittest.main(argv=[sys.argv[0], *sys.argv[5 if SHOT else 3 :]])
