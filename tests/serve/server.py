"""A server under test: started on a free port, asked over HTTP, stopped and its exit code told."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

PATIENCE = float(os.environ.get("PATIENCE", 1))  # times each limit on waiting: where sanitizers make all of it slow
PROBE = {"prompt": "The sea is", "max_tokens": 12, "temperature": 0.7, "seed": 42, "is_deterministic": True, "logprobs": 1}


class Server:
    """weights: a path, or the seed of random weights."""

    def __init__(self, binary, weights, *flags, env=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("STEADFAST_")}
        self.process = subprocess.Popen([binary, "serve", "--random-weights" if isinstance(weights, int) else "--weights", str(weights),
                                         "--port", "0", *map(str, flags)],
                                        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**clean, **(env or {})})
        self.log, self.port, self.https = [], None, False
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        if not self.ready.wait(120 * PATIENCE) or self.port is None:
            self.process.kill()
            raise RuntimeError("no server: " + "".join(self.log[-5:]))

    def read_log(self):
        for line in self.process.stderr:
            line = line.decode("utf-8", "replace")
            self.log.append(line)
            at = re.search(r"serving .* on (https?)://.*:(\d+)", line)
            if at:
                self.https, self.port = at[1] == "https", int(at[2])
                self.ready.set()
        self.ready.set()

    def ask(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body bytes)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * PATIENCE)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            c.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        finally:
            c.close()

    def post(self, path, body, **more):
        """(status, JSON)"""
        status, _, text = self.ask("POST", path, body, **more)
        return status, json.loads(text)

    def complete(self, **body):
        status, answer = self.post("/v1/completions", body)
        if status != 200:
            raise RuntimeError(f"{status}: {answer}")
        return answer

    def events(self, path, body):
        """The data of a stream's events, [DONE] included."""
        return self.stream(path, body)[1]

    def stream(self, path, body):
        """(status, the data of the events; none where it is no stream)"""
        status, _, text = self.ask("POST", path, {**body, "stream": True})
        return status, [e[6:] for e in text.decode().split("\n\n") if e.startswith("data: ")]

    def raw(self, data, timeout=20):
        """Sends bytes as they are; what comes back until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(data)
            got = b""
            try:
                while chunk := s.recv(65536):
                    got += chunk
            except TimeoutError:
                pass
            return got

    def metric(self, name, label=""):
        """The sum over the label sets that hold label."""
        status, _, text = self.ask("GET", "/metrics")
        found = re.findall(rf"^steadfast:{name}\{{[^}}]*{label}[^}}]*\}} (\S+)$", text.decode(), re.M)
        if status != 200 or not found:
            raise RuntimeError(f"no metric {name} {label}: {status}")
        return sum(map(float, found))

    def settle(self, seconds=20):
        """Waits until nothing runs or waits."""
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            if self.metric("num_requests_running") + self.metric("num_requests_waiting") == 0:
                return
            time.sleep(0.05)
        raise RuntimeError("requests still run")

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])

    def stop(self, number=signal.SIGTERM, timeout=60):
        """Exit code."""
        self.process.send_signal(number)
        try:
            code = self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.reader.join(10)
        self.process.stderr.close()
        return code
