#!/usr/bin/env python3
"""What the built binary does to files, descriptors and pipes: nothing is lost, whatever the caller gives it.

usage: test_files.py BINARY WEIGHTS [unittest arguments]"""

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from engine import Binary

B = None  # the binary under test, set from the command line
LINE = b'{"prompt": "x", "max_tokens": 2}\n'


class Scratch(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def path(self, name, content=None):
        path = os.path.join(self.tmp.name, name)
        if content is not None:
            with open(path, "wb") as f:
                f.write(content)
        return path

    def start(self, *args, weights=True, **kw):
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        p = subprocess.Popen([B.path, "run", *(("--weights", B.weights) if weights else ()), *map(str, args)], **kw)
        self.addCleanup(self.reap, p)
        return p

    @staticmethod
    def reap(p):
        if p.poll() is None:
            p.kill()
        p.wait()
        for f in (p.stdin, p.stdout, p.stderr):
            if f:
                f.close()

    def content(self, path):
        with open(path, "rb") as f:
            return f.read()


class SameFile(Scratch):
    """One file under two flags, of which at least one writes."""

    def refused(self, *args, says, keeps=(), weights=True, **kw):
        before = {p: self.content(p) for p in keeps}
        p = self.start(*args, weights=weights, **kw)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 2, err)
        for part in (*says, "are the same file"):
            self.assertIn(part, err.decode())
        for path, text in before.items():
            self.assertEqual(self.content(path), text)

    def test_output_and_input(self):
        f = self.path("in.jsonl", LINE)
        link, hard = self.path("link"), self.path("hard")
        os.symlink(f, link)
        os.link(f, hard)
        for other in (f, link, hard, os.path.join(self.tmp.name, ".", "in.jsonl")):
            self.refused("--input", f, "--output", other, says=(f"--output {other}", f"--input {f}"), keeps=[f])

    def test_output_and_stdin(self):
        f = self.path("in.jsonl", LINE)
        for source in ("-", "/dev/stdin"):
            with open(f, "rb") as stdin:
                self.refused("--input", source, "--output", f, says=(f"--output {f}", "stdin"), keeps=[f], stdin=stdin)

    def test_stdout_and_input(self):
        f = self.path("in.jsonl", LINE)
        with open(f, "ab") as stdout:
            self.refused("--input", f, says=("stdout", f"--input {f}"), keeps=[f], stdout=stdout)

    def test_what_is_read_is_not_the_report(self):
        f, t = self.path("in.jsonl", LINE), self.path("t.jinja", b"{{ messages[0].content }}")
        self.refused("--input", f, "--report", f, says=(f"--report {f}", f"--input {f}"), keeps=[f])
        self.refused("--chat", "x", "--chat-template", t, "--report", t, says=("--report", "--chat-template"), keeps=[t])

    def test_weights(self):
        w, f = self.path("w.gguf", b"GGUF, as far as this goes"), self.path("in.jsonl", LINE)
        self.refused("--weights", w, "--input", f, "--output", w, says=("--output", "--weights"), keeps=[w, f], weights=False)
        self.refused("--weights", w, "--prompt", "x", "--report", w, says=("--report", "--weights"), keeps=[w], weights=False)

    def test_output_and_report(self):
        f, out = self.path("in.jsonl", LINE), self.path("out", b"old\n")
        self.refused("--input", f, "--output", out, "--report", out, says=("--report", "--output"), keeps=[out])

    def test_output_and_report_that_are_not_there_yet(self):
        f, new, link = self.path("in.jsonl", LINE), self.path("new"), self.path("link")
        os.symlink("new", link)
        for a, b in ((new, new), (new, link), (link, new), (os.path.join(self.tmp.name, "..", os.path.basename(self.tmp.name), "new"), new)):
            self.refused("--input", f, "--output", a, "--report", b, says=("--report", "--output"))
            self.assertFalse(os.path.exists(new))

    def test_devices_may_be_shared(self):
        code, _, err = B.run("run", "--weights", B.weights, "--input", "-", "--output", "/dev/null", "--report", "/dev/null", stdin=LINE)
        self.assertEqual(code, 0, err)


class Outputs(Scratch):
    def test_a_file_that_another_process_writes(self):
        f, out = self.path("in.jsonl", LINE), self.path("out", b"another's\n")
        for flags in (("--output", out), ("--output", self.path("new"), "--report", out)):
            with open(out, "ab") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                code, _, err = B.run("run", "--weights", B.weights, "--input", f, *flags)
            self.assertEqual((code, self.content(out)), (1, b"another's\n"), err)
            self.assertIn(f"{out}: another process is writing this file", err)

    def test_a_run_that_answers_nothing_leaves_no_new_file(self):
        f, gone = self.path("in.jsonl", LINE), os.path.join(self.tmp.name, "gone")
        for source, weights in ((gone, B.weights), (self.tmp.name, B.weights), (f, gone)):
            out, report = self.path("out"), self.path("report")
            code, _, err = B.run("run", "--weights", weights, "--input", source, "--output", out)
            self.assertEqual((code, os.path.exists(out)), (1, False), err)
            kept = self.path("kept", b"old\n")
            code, _, err = B.run("run", "--weights", gone, "--input", source, "--output", kept, "--report", report)
            self.assertEqual((code, self.content(kept), os.path.exists(report)), (1, b"old\n", False), err)

    def test_an_empty_input_has_an_empty_output(self):
        out = self.path("out")
        code, _, err = B.run("run", "--weights", B.weights, "--input", self.path("in.jsonl", b""), "--output", out)
        self.assertEqual((code, self.content(out)), (0, b""), err)

    def test_a_report_that_cannot_be_opened_is_told_before_the_run(self):
        code, out, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--report", "/nonexistent/r")
        self.assertEqual((code, out), (1, b""))
        self.assertIn("/nonexistent/r: cannot open", err)

    def test_an_old_longer_file_is_replaced(self):
        out, report = self.path("out", b"x" * 100000), self.path("report", b"y" * 100000)
        code, _, err = B.run("run", "--weights", B.weights, "--input", "-", "--output", out, "--report", report, stdin=LINE)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(json.loads(self.content(out))["token_ids"]), 2)
        self.assertEqual(json.loads(self.content(report))["requests"], 1)

    def test_help_and_version_on_a_full_disk(self):
        for args in (("--help",), ("--version",), ("--completion",), ("run", "--help")):
            with open("/dev/full", "wb") as full:
                code, _, err = B.run(*args, stdout=full)
            self.assertEqual(code, 1, args)
            self.assertIn("stdout: cannot write", err)


class Descriptors(Scratch):
    def test_closed_ones_do_not_end_up_in_the_output(self):
        f = self.path("in.jsonl", LINE + b'{"prompt": "x", "max_tokens": 2, "colour": 1}\n')  # a warning on stderr
        for closed in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)):
            out, report = self.path("out"), self.path("report")
            p = self.start("--input", f, "--output", out, "--report", report, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda fds=closed: [os.close(fd) for fd in fds])
            self.assertEqual(p.wait(60), 0)
            self.assertEqual([len(json.loads(x)["token_ids"]) for x in self.content(out).splitlines()], [2, 2])
            self.assertEqual(json.loads(self.content(report))["requests"], 2)

    def test_closed_stdin_and_stdout_are_still_errors(self):
        p = self.start("--prompt", "x", "--max-tokens", "1", preexec_fn=lambda: os.close(1))
        self.assertIn(b"stdout: cannot write", p.communicate(timeout=60)[1])
        self.assertEqual(p.returncode, 1)
        p = self.start("--input", "-", preexec_fn=lambda: os.close(0))
        self.assertIn(b"stdin: cannot read", p.communicate(timeout=60)[1])
        self.assertEqual(p.returncode, 1)

    def not_blocking(self, *args, **kw):
        """All that comes through a small pipe that does not block and is not read at first."""
        r, w = os.pipe()
        fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
        fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
        p = self.start(*args, stdout=w, **kw)
        os.close(w)
        time.sleep(1.5)
        got = b""
        while chunk := os.read(r, 1 << 16):
            got += chunk
        os.close(r)
        self.assertEqual(p.wait(60), 0, p.stderr.read())
        return got

    def test_a_stdout_that_does_not_block(self):
        f = self.path("in.jsonl", LINE * 30)
        got = self.not_blocking("--input", f)
        self.assertGreater(len(got), 4096)
        self.assertEqual([len(json.loads(x)["token_ids"]) for x in got.splitlines()], [2] * 30)
        got = self.not_blocking("--prompt", "x", "--max-tokens", "200", "--ignore-eos", "--logprobs", "2", "--json")
        self.assertGreater(len(got), 4096)
        self.assertEqual(len(json.loads(got)["token_ids"]), 200)


class Signals(Scratch):
    def stuck(self, number, *args):
        """A run whose reader does not read, ended by one signal; (exit code, seconds, what came, stderr)."""
        r, w = os.pipe()
        fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
        p = self.start(*args, stdout=w)
        os.close(w)
        while p.poll() is None and not struct.unpack("i", fcntl.ioctl(r, termios.FIONREAD, b"\0" * 4))[0]:
            time.sleep(0.05)
        time.sleep(1.5)  # answers come on until the pipe is full
        t0 = time.time()
        p.send_signal(number)
        code = p.wait(20)
        spent = time.time() - t0
        got = b""
        while chunk := os.read(r, 1 << 16):
            got += chunk
        os.close(r)
        return code, spent, got, p.stderr.read().decode()

    def test_one_signal_ends_a_run_whose_reader_is_stuck(self):
        f = self.path("in.jsonl", LINE * 400)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            code, spent, got, err = self.stuck(number, "--input", f)
            self.assertEqual(code, 128 + number, err)
            self.assertLess(spent, 10)
            self.assertRegex(err, r"interrupted; stdout holds \d+ answers?")
            whole = got[:got.rfind(b"\n") + 1].splitlines()
            self.assertIn(f"stdout holds {len(whole)} answer", err)
            self.assertTrue(whole and all(json.loads(x) for x in whole))

    def test_an_ignored_hangup_stays_ignored(self):
        p = self.start("--input", "-", stdin=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        p.stdin.write(LINE)
        p.stdin.flush()
        p.stdout.readline()
        p.send_signal(signal.SIGHUP)
        out, err = p.communicate(LINE, timeout=60)
        self.assertEqual((p.returncode, out.count(b"\n")), (0, 1), err)


class Weights(Scratch):
    def test_a_file_that_is_cut_while_it_is_read_is_named(self):
        copy = self.path("w.gguf")
        shutil.copyfile(B.weights, copy)
        p = self.start("--weights", copy, "--threads", "1", "--prompt", "x", weights=False)
        while p.poll() is None:
            with open(f"/proc/{p.pid}/maps") as maps:
                if copy in maps.read():
                    os.truncate(copy, 4096)
                    break
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 1, err)
        self.assertIn(f"{copy}: cannot read: the file became shorter", err.decode())


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    B = Binary(sys.argv[1], sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
