"""The engine behind HTTP, asked as steadfast.Engine is: many connections at once, every other request streamed."""

import concurrent.futures
import http.client
import json
import os
import signal
import sys
import threading
import time

import steadfast as sf

sys.path.insert(0, os.path.join(sf.ROOT, "tests/serve"))
from server import Server  # noqa: E402

LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def whole(answer):
    """An answer in one piece, in the form of `run`'s."""
    choice = answer["choices"][0]
    return {**choice, "determinism": answer["determinism"], "usage": answer["usage"]}


def events_of(text):
    blocks = text.decode().split("\n\n")
    if blocks.pop() != "" or blocks[-1] != "data: [DONE]":
        raise sf.RunFailed(f"a stream without an end: ...{text[-200:]!r}")
    return [json.loads(b[6:]) for b in blocks[:-1] if b.startswith("data: ")]


def joined(text):
    """The same from a stream: what has been sent once is all there is to build it from."""
    out = {"text": "", "token_ids": [], "finish_reason": None, "logprobs": None}
    for e in events_of(text):
        if "error" in e:
            raise sf.RunFailed(f"an error in a stream: {e}")
        for choice in e["choices"]:
            if out["finish_reason"]:
                raise sf.RunFailed(f"a stream went on after its end: {e}")
            out["text"] += choice["text"]
            out["token_ids"] += choice["token_ids"]
            out["finish_reason"] = choice["finish_reason"]
            if choice["logprobs"]:
                lp = out["logprobs"] = out["logprobs"] or {k: [] for k in LISTS}
                for k in LISTS:
                    lp[k] += choice["logprobs"][k] or []
        for k in ("prompt_token_ids", "prompt_logprobs"):
            out.update({k: at[k] for at in (e, *e["choices"]) if k in at})
        out.update({k: e[k] for k in ("determinism", "usage") if e.get(k)})
    return out


class Served:
    """A server for each set of flags and environment, kept until another is asked for. Calls of run() alternate: the requests
    alone, and amid ordinary ones until `clients` connections are busy."""

    def __init__(self, binary, weights, flags=(), clients=64):
        self.binary, self.weights, self.flags, self.clients = binary, weights, list(flags), clients
        self.server, self.kept, self.calls, self.streamed, self.report = None, None, 0, 0, {}

    def serve(self, flags, env):
        if self.server and self.kept == (flags, env):
            return
        self.close()
        self.server, self.kept = Server(self.binary, self.weights, *self.flags, *flags, env=env), (flags, env)
        self.local = threading.local()

    def close(self):
        if self.server:
            server, self.server = self.server, None
            if server.stop() != 0:
                raise sf.RunFailed(f"SIGTERM: exit {server.process.returncode}: {server.log[-3:]}")

    def connection(self):
        if not hasattr(self.local, "c"):
            self.local.c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=3600)
        return self.local.c

    def ask(self, body):
        c = self.connection()
        c.request("POST", "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        r = c.getresponse()
        text = r.read()
        if r.status != 200:
            raise sf.RunFailed(f"{r.status}: {text[:300]!r}")
        return joined(text) if body["stream"] else whole(json.loads(text))

    def body(self, number, r, deterministic):
        """Copies of a request differ in whether they are streamed, also from one call to the next."""
        body = {"is_deterministic": deterministic, "stream": (number + self.calls) % 2 == 0, **r, "return_token_ids": True}
        if "prompt_ids" in body:
            body["prompt"] = body.pop("prompt_ids")
        self.streamed += body["stream"]
        return body

    def run(self, requests, flags=(), deterministic=True, env=None, alone=False):
        """As Engine.run; alone: one after another over one connection."""
        self.serve(list(flags), env)
        self.calls += 1
        bodies = [self.body(i, r, deterministic) for i, r in enumerate(requests)]
        others = max(0, self.clients - len(bodies)) if self.calls % 2 == 0 and not alone else 0
        crowd = [dict(prompt=f"{i} and {i + 1} make", max_tokens=2 + i % 5, seed=i, stream=i % 2 == 0, return_token_ids=True) for i in range(others)]
        before = {k: self.server.metric(k) for k in ("rollbacks_total", "verify_passes_total")}
        with concurrent.futures.ThreadPoolExecutor(1 if alone else self.clients) as pool:
            futures = [pool.submit(self.ask, b) for b in bodies]
            others = [pool.submit(self.ask, b) for b in crowd]
            answers = [f.result() for f in futures]
            for f in others:
                f.result()
        self.server.settle()
        grown = {k: int(self.server.metric(k) - v) for k, v in before.items()}
        self.report = {"stats": {"rollbacks": grown["rollbacks_total"], "windows_verified": grown["verify_passes_total"]}}
        if self.server.metric("kv_cache_usage_perc") != 0:
            raise sf.RunFailed("KV pages are missing after the last answer")
        return answers

    def kill(self):
        """SIGKILL while it works."""
        flags = [str(f) for f in ["--max-num-seqs", 8, *self.flags, *self.kept[0]]]
        busy = min(8, *(int(flags[i + 1]) for i, f in enumerate(flags) if f == "--max-num-seqs"))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for _ in range(8):
                pool.submit(self.ask, dict(prompt="The", max_tokens=500, ignore_eos=True, stream=True, is_deterministic=True, return_token_ids=True))
            end = time.monotonic() + 120
            while self.server.metric("num_requests_running") < busy:
                if time.monotonic() > end:
                    self.server.stop(signal.SIGKILL)
                    raise sf.RunFailed(f"fewer than {busy} requests run after two minutes")
                time.sleep(0.01)
            self.server.stop(signal.SIGKILL)
        self.server = None

    def elsewhere(self, requests):
        """The same requests to other processes: (which, answers)."""
        flags, env = self.kept
        self.close()
        yield "after SIGTERM", self.run(requests, flags, env=env)
        self.kill()
        yield "after SIGKILL", self.run(requests, flags, env=env)
        yield "by run", sf.Engine(self.binary, self.weights, self.flags).run(requests, flags, env=env)
