#!/usr/bin/env python3
"""Requests as the field sends them: what goes wrong in other servers, and what comes late or not whole.

usage: test_requests.py BINARY WEIGHTS [unittest arguments]      (PYTHONPATH: prometheus_client)"""

import concurrent.futures
import ctypes
import errno
import http.client
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shared import LONG, PROBE, SMALL, Shared, main  # noqa: E402


class Requests(Shared):
    """Rows of the field's cases: what goes wrong in other servers."""

    def test_seeds_are_exact_and_out_of_range_is_refused(self):
        for seed in (-2**63 - 1, 2**63, "7", 1.5):
            self.refused(400, {"prompt": "x", "seed": seed}, param="seed")
        seeds = (-2**63, -1, 0, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1)
        texts = [self.s.complete(prompt="The", max_tokens=8, seed=seed)["choices"][0]["text"] for seed in seeds]
        self.assertEqual(len(set(texts)), len(seeds))

    def test_a_seed_gives_its_text_again_and_seeds_differ(self):
        def text(seed):
            return self.s.complete(prompt="The", max_tokens=10, temperature=1, seed=seed, is_deterministic=True)["choices"][0]["text"]

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            texts = list(pool.map(text, [*range(1, 11)] * 2))
        self.assertEqual(texts[:10], texts[10:])
        self.assertEqual(len(set(texts)), 10)

    def test_the_smallest_temperatures_and_nuclei_take_the_likeliest_token(self):
        ask = {"prompt": "The capital of France is", "max_tokens": 8, "logprobs": 1, "is_deterministic": True, "return_token_ids": True}
        want = self.s.complete(**ask, temperature=0)["choices"][0]
        self.assertGreater(min(max(t.values()) for t in want["logprobs"]["top_logprobs"]), -9999)
        for more in (*({"temperature": 10.0**-k} for k in range(3, 13, 3)), {"temperature": 1, "top_p": 1e-4}):
            self.assertEqual(self.s.complete(**ask, **more)["choices"][0]["token_ids"], want["token_ids"], more)

    def test_a_stop_that_ends_inside_a_token_or_spans_several_is_cut_out_whole(self):
        ask = {"prompt": "One, two, three,", "max_tokens": 24, "temperature": 0, "is_deterministic": True}
        free = self.s.complete(**ask, logprobs=0)["choices"][0]
        tokens, text = free["logprobs"]["tokens"], free["text"]
        long = next(i for i, t in enumerate(tokens) if len(t) > 3 and i > 2)
        at = sum(map(len, tokens[:long]))
        for stop in (text[at - 1:at + 2], text[at - 4:at + len(tokens[long]) + 1]):
            whole = self.s.complete(**ask, stop=stop)["choices"][0]
            self.assertEqual((whole["text"], whole["finish_reason"]), (text[:text.index(stop)], "stop"))
            pieces = [json.loads(e)["choices"][0] for e in self.s.events("/v1/completions", {**ask, "stop": stop})[:-1]]
            self.assertEqual(("".join(p["text"] for p in pieces), pieces[-1]["finish_reason"]), (whole["text"], "stop"))

    def test_max_tokens_has_its_range(self):
        for n in (-1, 2**31, "5", 0):
            self.refused(400, {"prompt": "x", "max_tokens": n}, param="max_tokens")
        self.assertEqual(self.s.complete(prompt="x", max_tokens=1)["usage"]["completion_tokens"], 1)
        echoed = self.s.complete(prompt="The sea", max_tokens=0, echo=True, logprobs=1)
        self.assertEqual((echoed["choices"][0]["text"], echoed["usage"]["completion_tokens"]), ("The sea", 0))

    def test_empty_prompts_are_refused_or_begin_at_bos(self):
        for prompt in ([], [[]]):
            self.refused(400, {"prompt": prompt})
        for prompt in ("", [""]):
            self.assertEqual(self.s.complete(prompt=prompt, max_tokens=1)["usage"]["prompt_tokens"], 1)
        self.refused(400, {"messages": []}, "/v1/chat/completions")

    def test_a_prompt_over_the_context_tells_both_counts_before_the_stream(self):
        for stream in (False, True):
            e = self.refused(400, {"prompt": [5] * 513, "stream": stream})
            self.assertEqual((e["n_prompt_tokens"], e["n_ctx"]), (513, 512))
        self.refused(400, {"prompt": [5] * 512})
        for max_tokens in (9, None):
            a = self.s.complete(prompt=[5] * 511, max_tokens=max_tokens)
            self.assertEqual((a["choices"][0]["finish_reason"], a["usage"]["completion_tokens"]), ("length", 1))
        self.assertEqual(self.s.complete(prompt=[5] * 512, max_tokens=0, echo=True)["usage"]["completion_tokens"], 0)

    def test_without_max_tokens_a_chat_that_cannot_end_goes_on_to_the_context(self):
        _, a = self.s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "one " * 450}], "ignore_eos": True})
        self.assertEqual((a["choices"][0]["finish_reason"], a["usage"]["total_tokens"]), ("length", 512))

    def test_texts_far_too_long_are_refused_before_their_tokens_are_known(self):
        for path, expected in (("/v1/completions", "context of 512"), ("/tokenize", "at most 4096")):
            e = self.refused(400, {"prompt": "word " * 200000}, path, "prompt")
            self.assertIn(expected, e["message"])
            self.assertEqual(e["n_ctx"], 512)
            self.assertGreater(e["n_prompt_tokens"], 4096)
        e = self.refused(400, {"messages": [{"role": "user", "content": "word " * 200000}]}, "/tokenize", "messages")
        self.assertRegex(e["message"], "^messages has at least [0-9]+ tokens, expected at most 4096: ")
        self.assertEqual(self.s.post("/tokenize", {"prompt": [5] * 4096})[1]["count"], 4096)
        e = self.refused(400, {"prompt": [5] * 4097}, "/tokenize", "prompt")
        self.assertTrue(e["message"].startswith("prompt has 4097 tokens, expected at most 4096: "), e)
        self.assertGreater(self.s.post("/tokenize", {"prompt": "word " * 2000})[1]["count"], 1999)
        self.assertEqual(self.s.ask("POST", "/v1/completions", b" " * (5 << 20))[0], 413)

    def test_ids_out_of_the_vocabulary_are_refused_by_field(self):
        for bad in (999999, -1, 49152):
            self.refused(400, {"prompt": [bad]})
            self.refused(400, {"prompt": "x", "stop_token_ids": [bad]}, param="stop_token_ids")
            self.refused(400, {"prompt": "x", "logit_bias": {str(bad): 1}}, param="logit_bias")

    def test_bodies_that_are_no_json_are_refused(self):
        nested = b'{"prompt":' + b"[" * 10000 + b"]" * 10000 + b"}"
        for body in (b"", b"{", b"[1]", b"null", b'{"prompt":"\xc4\xe3\xba\xc3"}', b'{"prompt":"\\ud800"}', nested, b'{"prompt":1,"prompt":2}'):
            status, _, text = self.s.ask("POST", "/v1/completions", body)
            self.assertEqual(status, 400, (body[:30], text))
            self.assertIn("error", json.loads(text))

    def test_characters_are_never_split(self):
        ask = {"prompt": "漢字 " * 6 + "漢字", "max_tokens": 24, "temperature": 0, "ignore_eos": True}  # goes on so, in parts of characters
        whole = self.s.complete(**ask)["choices"][0]["text"]
        pieces = [json.loads(e)["choices"][0]["text"] for e in self.s.events("/v1/completions", ask)[:-1]]
        self.assertEqual("".join(pieces), whole)
        self.assertNotIn("\ufffd", whole)
        self.assertIn("漢", whole)

    def test_streamed_log_probabilities_are_those_of_the_whole(self):
        ask = {"prompt": "The sea", "max_tokens": 9, "logprobs": 2, "echo": True, "seed": 1, "return_token_ids": True}
        whole = self.s.complete(**ask)["choices"][0]
        parts = [json.loads(e)["choices"][0] for e in self.s.events("/v1/completions", ask)[:-1]]
        for key in ("tokens", "token_logprobs", "text_offset", "top_logprobs"):
            self.assertEqual([x for p in parts if p["logprobs"] for x in p["logprobs"][key]], whole["logprobs"][key], key)
        self.assertEqual([i for p in parts for i in p["token_ids"]], whole["token_ids"])

    def leave(self, number):
        """A client that goes away in the queue or soon after, or after its first tokens."""
        with self.open(is_deterministic=number % 2 == 0, seed=number) as c:
            got = b""
            while number % 3 == 2 and b"data: " not in got:
                more = c.recv(4096)
                self.assertTrue(more, got)
                got += more

    def test_a_hundred_clients_that_leave_in_queue_or_decode_change_no_neighbour(self):
        aborted = self.aborted()
        asks = [dict(PROBE, prompt=f"Neighbour {i}:", seed=i, max_tokens=40) for i in range(6)]
        want = [self.s.complete(**a)["determinism"]["digest"] for a in asks]
        with concurrent.futures.ThreadPoolExecutor(25) as pool:
            gone = [pool.submit(self.leave, i) for i in range(50)]
            near = [pool.submit(self.s.complete, **a) for a in asks]
            gone += [pool.submit(self.leave, i) for i in range(50, 100)]
            self.assertEqual([f.result()["determinism"]["digest"] for f in near], want)
            for f in gone:
                f.result()
        self.wait_for("not all are aborted", lambda: self.aborted() - aborted == 100)

    def test_wrong_ids_leave_their_neighbours_alone(self):
        bad = [{"prompt": [999999]}, {"prompt": "x", "stop_token_ids": [49152]}, {"prompt": "x", "logit_bias": {"49152": 1}}, {"prompt": [-1]}] * 4
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            probes = [pool.submit(self.s.complete, **PROBE) for _ in range(4)]
            refused = [pool.submit(self.s.post, "/v1/completions", b) for b in bad]
            self.assertEqual({f.result()["determinism"]["digest"] for f in probes}, {self.digest})
            self.assertEqual({f.result()[0] for f in refused}, {400})

    def test_wrong_lengths_and_large_heads_are_refused_and_others_served(self):
        for head in (b"Content-Length: -5", b"Content-Length: x", b"Content-Length: +2", b"Content-Length: 2, 2", b"Content-Length: 0x2",
                     b"Content-Length: 2\r\nContent-Length: 3", b"Content-Length: 2\r\nTransfer-Encoding: chunked", b"X-Long: " + b"a" * (1 << 20)):
            got = self.s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n{}")
            long = len(head) > 1 << 20  # most of it is never read, and the refusal may be lost with it
            self.assertIn(got[:12], (b"HTTP/1.1 431", b"") if long else (b"HTTP/1.1 400",), (head[:60], got[:200]))
            self.assertEqual(got.count(b"HTTP/1.1 "), 1 if got else 0, got)
        for head in (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (66 << 10), b"GET /" + b"a" * (66 << 10),
                     b"GET /health HTTP/1.1\r\n" + b"X-Many: a\r\n" * 6200):  # all of it is read, so that the answer gets through
            self.is_error(self.s.raw(head), 431, "headers_too_large")
        body = json.dumps({"prompt": "The", "max_tokens": 1, "user": "u" * (200 << 10)}).encode()  # a body is not a head
        got = self.s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        self.assertEqual(got[:12], b"HTTP/1.1 200")
        got = self.s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n{}")
        self.is_error(got, 413, "body_too_large")

    def is_error(self, got, status, code):
        """got, an answer down to the byte, is an error object of that code, with an id that the log has."""
        head, body = got.split(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = dict(x.split(": ", 1) for x in lines[1:])
        self.assertEqual(int(lines[0].split()[1]), status)
        self.assertEqual((headers["Content-Type"], int(headers["Content-Length"])), ("application/json", len(body)))
        error = json.loads(body)["error"]
        self.assertEqual((set(error), error["code"]), ({"message", "type", "param", "code"}, code))
        self.wait_for("no line in the log", lambda: any(f" {headers['X-Request-Id']} {status} {code} " in x for x in self.s.log))

    def test_so_does_what_follows_an_answered_request(self):
        got = self.s.raw(b"GET /live HTTP/1.1\r\nHost: x\r\n\r\nFOO / HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(got.startswith(b"HTTP/1.1 200 OK"), got)
        with socket.create_connection(("127.0.0.1", self.s.port), timeout=20) as c:
            for data in (b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n", b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n"):
                c.sendall(data)
                time.sleep(0.3)  # the answer before is out
            got = b""
            while chunk := c.recv(65536):
                got += chunk
        self.is_error(got[got.index(b"HTTP/1.1 501"):], 501, "unknown_method")

    def test_biases_are_as_many_as_a_pass_has_place_for(self):
        some = {str(i): 1 for i in range(1024)}
        self.assertEqual(len(self.s.complete(prompt=["a"] * 3, max_tokens=1, logit_bias=some)["choices"]), 3)
        self.refused(400, {"prompt": "x", "logit_bias": {**some, "1024": 1}}, param="logit_bias")

    def test_what_is_no_request_gets_an_error_object_too(self):
        for data, status, code in ((b"garbage\r\n\r\n", 400, "bad_request"), (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400, "bad_request"),
                                   (b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", 501, "unknown_method"), (b"CONNECT x:1 HTTP/1.1\r\n\r\n", 501, "unknown_method"),
                                   (b"POST /tokenize HTTP/1.1\r\nExpect: x\r\nContent-Length: 2\r\n\r\n{}", 417, "expectation_failed")):
            self.is_error(self.s.raw(data), status, code)

    def test_a_client_that_expects_100_is_told_to_go_on(self):
        with socket.create_connection(("127.0.0.1", self.s.port), timeout=20) as c:
            c.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n")
            self.assertTrue(c.recv(4096).startswith(b"HTTP/1.1 100 Continue"))
            c.sendall(b'{"prompt":"x"}')
            self.assertTrue(c.recv(4096).startswith(b"HTTP/1.1 200 OK"))

    def test_a_client_that_sent_far_ahead_and_leaves_frees_its_place(self):
        aborted = self.aborted()
        with self.open(stream=False) as c:
            try:
                c.sendall(b"x" * 100000)
            except OSError:  # cut off already
                pass
        self.wait_for("it goes on", lambda: self.aborted() > aborted)

    def test_a_field_of_a_client_makes_no_line_in_the_log(self):
        self.s.complete(prompt="x", max_tokens=1, **{"x\n2026-01-01T00:00:00.000Z cmpl-1 200 ok \x1b[2J": 1})
        self.wait_for("no warning", lambda: any("x 2026-01-01T00:00:00.000Z cmpl-1 200 ok  [2J" in x for x in self.s.log))
        self.assertFalse(any(x.startswith("2026-01-01T00:00:00.000Z") or "\x1b" in x for x in self.s.log))

    def test_pipelined_requests_and_a_client_that_sends_while_it_is_answered(self):
        body = json.dumps({"prompt": "The", "max_tokens": 3}).encode()
        one = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        got = self.s.raw(one * 2 + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 3)

    def test_head_is_answered_without_a_body(self):
        got = self.s.raw(b"HEAD /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head, get, body = got.split(b"\r\n\r\n")
        self.assertIn(b"Content-Length: %d\r\n" % len(body), head + b"\r\n")
        self.assertTrue(get.startswith(b"HTTP/1.1 200 OK"))

    def test_a_stream_over_http_1_0_ends_with_its_connection(self):
        body = b'{"prompt": "The sea is", "max_tokens": 3, "stream": true}'
        got = self.s.raw(b"POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body), 5)
        self.assertNotIn(b"Content-Length", got)
        self.assertNotIn(b"keep-alive", got)
        self.assertTrue(got.endswith(b"data: [DONE]\n\n"))

    def test_unknown_paths_and_methods_are_named(self):
        self.assertEqual(self.s.ask("GET", "/nope")[0], 404)
        status, headers, _ = self.s.ask("GET", "/v1/completions")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        self.assertEqual(self.s.ask("TRACE", "/v1/completions")[0], 405)
        self.assertIn("PUT", json.loads(self.s.ask("PUT", "/v1/completions")[2])["error"]["message"])

    def test_tokens_go_to_text_and_back(self):
        _, a = self.s.post("/tokenize", {"content": "Hello wörld", "add_special": False, "with_pieces": True})
        self.assertEqual("".join(t["piece"] for t in a["tokens"] if isinstance(t["piece"], str))[:5], "Hello")
        _, b = self.s.post("/detokenize", {"tokens": [t["id"] for t in a["tokens"]]})
        self.assertEqual(b["prompt"], "Hello wörld")
        _, c = self.s.post("/tokenize", {"messages": [{"role": "user", "content": "hi"}]})
        self.assertGreater(c["count"], 5)
        self.assertEqual(self.s.post("/tokenize", {"prompt": "", "add_special_tokens": False})[1]["tokens"], [])
        self.assertIn("tokens is a string", self.refused(400, {"tokens": "x"}, "/detokenize", "tokens")["message"])
        self.assertIn("tokens is missing", self.refused(400, {}, "/detokenize", "tokens")["message"])

    def test_a_request_id_comes_back(self):
        self.assertEqual(self.s.ask("GET", "/health", headers={"X-Request-Id": "abc-1"})[1]["X-Request-Id"], "abc-1")
        self.assertNotIn("\t", self.s.ask("GET", "/health", headers={"X-Request-Id": "a\tb"})[1]["X-Request-Id"])

    def test_a_request_has_one_id_in_head_body_and_log(self):
        for more in ({}, {"X-Request-Id": "mine-7"}):
            _, headers, text = self.s.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 1}, headers=more)
            own = json.loads(text)["id"]
            self.assertEqual(headers["X-Request-Id"], more.get("X-Request-Id", own))
            self.wait_for("not in the log", lambda: any(f" {own} 200 ok " in x and (" client-id mine-7" in x) == bool(more) for x in self.s.log))
        for path, body, status in (("/v1/completions", b"{", 400), ("/v1/chat/completions", {"messages": 1}, 400), ("/tokenize", b"{", 400), ("/nope", {}, 404)):
            got, headers, _ = self.s.ask("POST", path, body)
            self.assertEqual(got, status)
            self.wait_for("not in the log", lambda: any(f" {headers['X-Request-Id']} {status} " in x for x in self.s.log))

    def test_metrics_are_read_by_a_prometheus_parser(self):
        from prometheus_client.parser import text_string_to_metric_families

        families = {f.name: f for f in text_string_to_metric_families(self.s.ask("GET", "/metrics")[2].decode())}
        for name in ("num_requests_running", "kv_cache_usage_perc", "prompt_tokens", "generation_tokens", "request_success",
                     "time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds", "rollbacks"):
            self.assertIn("steadfast:" + name, families)
        buckets = [s.value for s in families["steadfast:time_to_first_token_seconds"].samples if s.name.endswith("_bucket")]
        self.assertEqual(buckets, sorted(buckets))
        self.assertGreater(buckets[-1], 0)


    def test_a_small_packet_waits_for_no_acknowledgement(self):
        c = http.client.HTTPConnection("127.0.0.1", self.s.port)
        c.request("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": 1}')
        self.assertEqual(c.getresponse().status, 200)
        ends = [s for s in self.sockets_of(self.s.process.pid) if s.getpeername() == c.sock.getsockname()]
        self.assertEqual([s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for s in ends], [1])
        for s in (*ends, c):
            s.close()

    def sockets_of(self, pid):
        """Connected ones, as ours."""
        libc, pidfd, found = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid), []
        for name in os.listdir(f"/proc/{pid}/fd"):
            fd = libc.syscall(438, pidfd, int(name), 0)  # pidfd_getfd, which Python has no name for
            if fd < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                self.skipTest("another process's sockets are not shown here")
            if fd >= 0 and os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                s = socket.socket(fileno=fd)
                try:
                    s.getpeername()
                    found.append(s)
                except OSError:  # the listener
                    s.close()
            elif fd >= 0:
                os.close(fd)
        os.close(pidfd)
        return found


class Late(Shared):
    """Requests that do not come whole in time."""

    flags = (*SMALL, "--receive-timeout", 1)

    def dribble(self, data):
        """What comes back to a client that sends a byte every 50 ms."""
        with socket.create_connection(("127.0.0.1", self.s.port), timeout=0.05) as c:
            got = b""
            for byte in data:
                try:
                    c.sendall(bytes([byte]))
                    got += c.recv(4096)
                    break
                except TimeoutError:
                    continue
            c.settimeout(20)
            return got + c.recv(4096)

    def test_a_head_or_body_byte_by_byte_ends_with_408_while_others_are_served(self):
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            slow = [pool.submit(self.dribble, head + b"X-Long: " + b"a" * 200),
                    pool.submit(self.dribble, b"G" * 200),
                    pool.submit(self.s.raw, head + b"Content-Length: 100\r\n\r\n{}"),
                    pool.submit(self.s.raw, head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{")]
            served = [pool.submit(self.s.complete, **PROBE) for _ in range(4)]
            self.assertEqual({f.result()["determinism"]["digest"] for f in served}, {self.digest})
            for f in slow:
                self.assertTrue(f.result().startswith(b"HTTP/1.1 408 Request Timeout"), f.result())
                self.assertEqual(json.loads(f.result().split(b"\r\n\r\n")[1])["error"]["code"], "timeout")

    def test_a_connection_that_waits_between_requests_is_not_late(self):
        with socket.create_connection(("127.0.0.1", self.s.port), timeout=20) as c:
            for _ in range(2):
                time.sleep(2.5)
                c.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(c.recv(4096).startswith(b"HTTP/1.1 200 OK"))

    def test_an_answer_may_take_longer_than_its_request(self):
        self.assertEqual(self.s.complete(**{**LONG, "max_tokens": 200})["usage"]["completion_tokens"], 200)


if __name__ == "__main__":
    main()
