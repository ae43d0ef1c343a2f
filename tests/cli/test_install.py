#!/usr/bin/env python3
"""What `cmake --install` puts where: the engine, a unit that starts it, a completion that works, the man page.

usage: test_install.py BINARY WEIGHTS [unittest arguments]      (skipped where the build of BINARY installs no engine)"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = None  # set from the command line


def output(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build, cls.name = os.path.dirname(os.path.dirname(BINARY)), os.path.basename(BINARY)
        tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(tmp.cleanup)
        cls.prefix = tmp.name + "/usr"
        p = output("cmake", "--install", build, "--prefix", cls.prefix)
        assert p.returncode == 0, p.stdout
        if not os.path.exists(cls.prefix + "/bin/" + cls.name):
            raise unittest.SkipTest(f"{build} does not install {cls.name}")

    def test_the_unit_starts_an_engine_that_is_there(self):
        path = self.prefix + "/lib/systemd/system/steadfast.service"
        with open(path, encoding="utf-8") as f:
            program, verb = next(line for line in f if line.startswith("ExecStart="))[len("ExecStart="):].split()
        self.assertTrue(os.path.isabs(program) and os.access(program, os.X_OK), program)
        self.assertEqual((verb, output(program, verb, "--help").returncode), ("serve", 0))
        if shutil.which("systemd-analyze"):
            self.assertNotIn("steadfast.service", output("systemd-analyze", "verify", "--man=no", path).stdout)

    def complete(self, *words):
        """What bash offers for the last word."""
        file = f"{self.prefix}/share/bash-completion/completions/{self.name}"
        script = 'source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); complete -p "$1" && _steadfast && echo "${COMPREPLY[@]}"'
        lines = output("bash", "-c", script, "bash", file, *words).stdout.splitlines()
        self.assertEqual((len(lines), lines[0].split()[:3]), (2, ["complete", "-F", "_steadfast"]), lines)
        return lines[1].split()

    def test_bash_completes_verbs_and_flags_of_the_engine(self):
        self.assertEqual(self.complete(self.name, "se"), ["serve", "selftest"])
        self.assertEqual(self.complete(self.name, "audit", "--ans"), ["--answers"])

    def test_bash_itself_is_left_alone(self):
        file = f"{self.prefix}/share/bash-completion/completions/{self.name}"
        self.assertNotIn(" bash", output("bash", "-c", f'source "{file}"; complete -p').stdout)

    def test_the_man_page_is_there(self):
        with open(self.prefix + "/share/man/man1/steadfast.1", encoding="utf-8") as f:
            self.assertTrue(f.read().startswith(".TH STEADFAST 1"))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    BINARY = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
