#!/usr/bin/env python3
"""The verb bench: against a server that answers as the test says, and against our own.

usage: test_bench.py BINARY WEIGHTS [unittest arguments]"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake import DONE, HEAD, Fake, authority, event, usage  # noqa: E402
from server import Server  # noqa: E402

BINARY = WEIGHTS = None
SMALL = ("--input-len", 4, "--output-len", 3)


def command(port, *flags):
    return [BINARY, "bench", "--port", str(port), *map(str, flags)]


def environment(more=None):
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("STEADFAST_", "OPENAI_"))}, **(more or {})}


def bench(port, *flags, env=None, small=True, timeout=60):
    """(exit code, stdout, stderr)"""
    p = subprocess.run(command(port, *(SMALL if small else ()), *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(env),
                       timeout=timeout)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def figure(report, label):
    return float(re.search(rf"^{re.escape(label)} +(\S+) *$", report, re.M)[1])


def good(call):
    call.stream(event("a"), event("b"), event("c", "length"), usage(4, 3), DONE)


class AgainstAFake(unittest.TestCase):
    def result(self, port, *flags, code=0, **more):
        """(result file, report, stderr) of a run with details."""
        with tempfile.TemporaryDirectory() as tmp:
            got, out, err = bench(port, "--output", tmp + "/r.json", "--save-detailed", *flags, **more)
            self.assertEqual(got, code, out + err)
            with open(tmp + "/r.json", encoding="utf-8") as f:
                return json.load(f), out, err

    def fails_alike(self, answer, *words, flags=(), n=3):
        """All requests fail for a reason that holds these words; nothing crashes."""
        with Fake(answer) as f:
            r, out, err = self.result(f.port, "--num-prompts", n, *flags, code=1)
        self.assertEqual((r["completed"], r["failed"]), (0, n), err)
        self.assertEqual(figure(out, "Failed requests:"), n)
        for word in words:
            self.assertIn(word, err)
            self.assertIn(word, r["errors"][0])
        self.assertIn(f"{n} of {n} requests failed", err)

    # ---- the figures ----

    def test_times_are_those_of_the_chunks(self):
        def slow(call):
            call.send(HEAD)
            for wait, text in ((0.3, "a"), (0.1, "b"), (0.2, "c")):
                time.sleep(wait)
                call.chunk(event(text))
            time.sleep(0.1)
            call.chunk(usage(7, 5))  # two tokens came in one chunk or had no text
            call.chunk(DONE)
            call.send(b"0\r\n\r\n")

        with Fake(slow) as f:
            r, out, _ = self.result(f.port, "--num-prompts", 2)
        self.assertEqual((r["input_lens"], r["output_lens"], r["generated_texts"]), ([7, 7], [5, 5], ["abc"] * 2))
        self.assertEqual((r["total_input_tokens"], r["total_output_tokens"]), (14, 10))
        for i in range(2):
            ttft, itls, e2el = r["ttfts"][i], r["itls"][i], r["latencies"][i]
            self.assertEqual(len(itls), 2)
            self.assertGreaterEqual(ttft, 0.29)
            self.assertGreaterEqual(e2el, 0.59)  # a client that is held up reads late, never early
            self.assertAlmostEqual(e2el, ttft + sum(itls), places=9)
        tpots = [(r["latencies"][i] - r["ttfts"][i]) / 4 for i in range(2)]
        self.assertAlmostEqual(r["mean_tpot_ms"], 1e3 * sum(tpots) / 2, places=6)
        self.assertAlmostEqual(r["mean_ttft_ms"], 1e3 * sum(r["ttfts"]) / 2, places=6)
        self.assertAlmostEqual(figure(out, "Mean TTFT (ms):"), r["mean_ttft_ms"], places=1)
        self.assertAlmostEqual(r["output_throughput"], 10 / r["duration"], places=6)
        self.assertGreaterEqual(r["duration"], max(r["latencies"]) + 0.09)  # the run ends with the streams, not with their last chunks

    def test_labels_and_keys_are_those_of_vllm(self):
        with Fake(good) as f:
            r, out, _ = self.result(f.port, "--num-prompts", 3, "--max-concurrency", 2, "--request-rate", 1000,
                                    "--metric-percentiles", "50,99.9")
        labels = [line[:40].rstrip() for line in out.splitlines() if not line.startswith(("-", "="))]
        times = [f"{what} {m} (ms):" for m in ("TTFT", "TPOT", "ITL", "E2EL") for what in ("Mean", "Median", "P50", "P99.9")]
        self.assertEqual(labels, ["Successful requests:", "Failed requests:", "Maximum request concurrency:", "Request rate configured (RPS):",
                                  "Benchmark duration (s):", "Total input tokens:", "Total generated tokens:", "Request throughput (req/s):",
                                  "Output token throughput (tok/s):", "Peak output token throughput (tok/s):", "Peak concurrent requests:",
                                  "Total token throughput (tok/s):", *times])
        self.assertEqual([line for line in out.splitlines() if line.startswith(("-", "="))],
                         ["============ Serving Benchmark Result ============", "---------------Time to First Token----------------",
                          "-----Time per Output Token (excl. 1st token)------", "---------------Inter-token Latency----------------",
                          "----------------End-to-end Latency----------------", "=" * 50])
        keys = {"date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness",
                "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
                "request_goodput", "output_throughput", "total_token_throughput", "input_lens", "output_lens", "ttfts", "itls", "latencies",
                "start_times", "generated_texts", "errors", "max_output_tokens_per_s", "max_concurrent_requests"}
        keys |= {f"{what}_{m}_ms" for m in ("ttft", "tpot", "itl", "e2el") for what in ("mean", "median", "std", "p50", "p99.9")}
        self.assertEqual(keys - set(r), set())
        self.assertEqual((r["model_id"], r["num_prompts"], r["max_concurrency"], r["request_rate"]), ("fake", 3, 2, 1000))

    def test_an_answer_in_pieces_is_the_answer_whole(self):
        text = b"\xef\xbb\xbf: ping\r\n\r\n" + event("äö").replace(b"\\u00e4", "ä".encode()) + event("😀") + event("z", "stop") + usage(1, 3) + DONE

        def whole(call):
            call.stream(text)

        def bytewise(call):
            call.stream(*[text[i:i + 1] for i in range(len(text))])

        def close_ends_it(call):
            call.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + text)
            return False

        def counted(call):
            call.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))

        def crlf(call):
            call.stream(text.replace(b"\n", b"\r\n"))

        for answer in (whole, bytewise, close_ends_it, counted, crlf):
            with Fake(answer) as f:
                r, _, _ = self.result(f.port, "--num-prompts", 2)
            self.assertEqual((r["generated_texts"], r["output_lens"]), (["äö😀z"] * 2, [3, 3]), answer.__name__)

    def test_without_usage_chunks_are_counted_and_without_done_a_reason_ends_it(self):
        with Fake(lambda call: call.stream(event("a"), event(""), event("b", "length"))) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 1)
        self.assertEqual((r["output_lens"], r["input_lens"], len(r["itls"][0])), ([3], [4], 2))

    def test_goodput_counts_those_that_keep_every_goal(self):
        def some_are_slow(call):
            call.send(HEAD)
            call.chunk(event("a"))
            time.sleep(0.4 if call.number % 2 else 0)
            call.chunk(event("b", "length"))
            call.chunk(DONE)
            call.send(b"0\r\n\r\n")

        with Fake(some_are_slow) as f:
            for ttft, e2el in ((0, 399), (60000, 60000), (0.000001, 60000)):
                f.bodies.clear()
                goals = f"e2el:{e2el}" + (f",ttft:{ttft}" if ttft else "")
                r, out, _ = self.result(f.port, "--num-prompts", 8, "--goodput", goals, "--percentile-metrics", "e2el,itl")
                good = sum(e * 1e3 <= e2el and (not ttft or t * 1e3 <= ttft) for e, t in zip(r["latencies"], r["ttfts"]))
                self.assertLessEqual(good, 4 if e2el < 400 else 8 if ttft > 1 else 0)
                self.assertAlmostEqual(r["request_goodput"] * r["duration"], good, places=6, msg=goals)
                self.assertAlmostEqual(figure(out, "Request goodput (req/s):"), r["request_goodput"], places=1)
                self.assertEqual(("Mean ITL (ms):" in out, "Mean TTFT (ms):" in out, "mean_tpot_ms" in r), (True, False, False))

    # ---- what is sent ----

    def test_a_request_says_what_the_flags_say(self):
        key = "k" * 8192
        with Fake(good) as f:
            self.result(f.port, "--num-prompts", 2, "--temperature", 0.5, "--top-k", 3, "--api-key", key, "--extra-body", '{"x": [1], "top_k": 4}')
            one = f.bodies[0]
        prompt = one.pop("prompt")
        self.assertEqual(one, {"model": "fake", "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5,
                               "top_k": 4, "x": [1], "ignore_eos": True})
        self.assertTrue(len(prompt) == 4 and all(isinstance(t, int) for t in prompt))
        self.assertEqual((f.headers[0]["authorization"], f.headers[0]["host"]), ("Bearer " + key, f"127.0.0.1:{f.port}"))

    def test_equal_seeds_send_equal_requests(self):
        sent = []
        for seed in (1, 1, 2):
            with Fake(good) as f:
                self.result(f.port, "--num-prompts", 9, "--seed", seed, "--random-range-ratio", 0.5, "--max-concurrency", 1)
                sent.append(f.bodies)
        self.assertEqual(sent[0], sent[1])
        self.assertNotEqual(sent[0], sent[2])

    def test_the_marked_share_is_spread_out(self):
        with Fake(good) as f:
            r, out, _ = self.result(f.port, "--num-prompts", 40, "--deterministic-ratio", 0.25, "--max-concurrency", 1)
            marks = [b["is_deterministic"] for b in f.bodies]
        self.assertEqual((sum(marks), marks), (10, r["is_deterministic"]))
        self.assertTrue(all(sum(marks[i:i + 4]) == 1 for i in range(0, 40, 4)))
        self.assertEqual((figure(out, "Successful, deterministic:"), figure(out, "Successful, ordinary:")), (10, 30))
        marked = [t for t, m in zip(r["ttfts"], marks) if m]
        self.assertAlmostEqual(r["deterministic_mean_ttft_ms"], 1e3 * sum(marked) / 10, places=6)

    def test_no_more_are_in_progress_than_allowed(self):
        three = threading.Barrier(3)

        def together(call):
            if call.number < 3:
                three.wait(30)
            good(call)

        with Fake(together) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 30, "--max-concurrency", 3)
            self.assertEqual((r["completed"], f.most), (30, 3))
            self.assertLessEqual(f.connections, 6)  # used again: three, and those that asked for models and metrics

    def test_arrivals_take_the_time_that_the_rate_says(self):
        with Fake(good) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 20, "--request-rate", 40)
        self.assertGreaterEqual(r["duration"], 0.499)  # 20 / 40 s from the start to the last arrival
        self.assertEqual(r["start_times"], sorted(r["start_times"]))

    def test_warm_ups_are_sent_and_not_counted(self):
        with Fake(good) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 2, "--num-warmups", 3)
            self.assertEqual((len(f.bodies), r["completed"]), (5, 2))

    # ---- copies ----

    def test_copies_have_equal_requests_and_are_spread(self):
        with Fake(good) as f:
            r, out, _ = self.result(f.port, "--num-prompts", 6, "--repeat", 4, "--max-concurrency", 1, "--deterministic-ratio", 1)
            by_prompt = {}
            for i, b in zip(r["prompt_indices"], f.bodies):
                by_prompt.setdefault(i, []).append(b)
        self.assertEqual([len(b) for b in by_prompt.values()], [4] * 6)
        self.assertEqual((r["num_prompts"], r["completed"], r["unique_prompts"]), (24, 24, 6))
        self.assertTrue(all(b == bs[0] for bs in by_prompt.values() for b in bs))
        self.assertEqual(len({bs[0]["seed"] for bs in by_prompt.values()}), 6)
        self.assertNotEqual(r["prompt_indices"], sorted(r["prompt_indices"]))
        self.assertIn("Determinism: 6 of 6 prompts one output each (4 copies, texts compared)", out)

    def test_a_deterministic_prompt_with_two_outputs_is_a_failure(self):
        def fickle(call):
            digest = "%064x" % (call.number == 7)
            call.stream(event("a", "length", determinism={"class": "pinned", "windows_verified": 2, "rollbacks": 1, "tokens_rolled_back": 3,
                                                          "digest": digest}), usage(4, 3), DONE)

        for ratio, code in ((1, 1), (0, 0)):
            with Fake(fickle) as f:
                r, out, err = self.result(f.port, "--num-prompts", 4, "--repeat", 3, "--deterministic-ratio", ratio, code=code)
            self.assertIn("Determinism: 3 of 4 prompts one output each (3 copies, digests compared, up to 2 outputs)", out)
            self.assertEqual("1 of 4 deterministic prompts had more than one output" in err, code == 1)
        with Fake(fickle) as f:  # unmarked, the answers say that they are deterministic
            r, out, err = self.result(f.port, "--num-prompts", 4, "--repeat", 3, code=1)
        self.assertIn("12 rollbacks, 36 tokens rolled back, recompute ratio 2.000", out)
        self.assertEqual(r["determinism"]["deterministic"], {"prompts": 4, "one_output": 3, "most_outputs": 2})

    # ---- servers that misbehave ----

    def test_refusals_are_told_in_the_server_s_words(self):
        def refuse(status, body):
            def answer(call):
                call.send(b"HTTP/1.1 %d No\r\nRetry-After: 1\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            return answer

        self.fails_alike(refuse(429, b'{"error": {"message": "too many", "type": "x"}}'), "HTTP 429: too many")
        self.fails_alike(refuse(400, b'{"error": "bad"}'), "HTTP 400: bad")
        self.fails_alike(refuse(422, b'{"detail": "no such field"}'), "HTTP 422: no such field")
        self.fails_alike(refuse(500, b"<h1>Oops\x1b[2J</h1>" + b"x" * 100000), "HTTP 500: <h1>Oops [2J</h1>xx")
        self.fails_alike(refuse(503, b""), "HTTP 503")
        self.fails_alike(refuse(302, b""), "HTTP 302")
        self.fails_alike(refuse(204, b""), "HTTP 204")

    def test_streams_that_are_none_or_break_are_failures(self):
        def cut(*parts):
            def answer(call):
                call.send(b"".join(parts))
                return False
            return answer

        one = b"%x\r\n%s\r\n" % (len(event("a")), event("a"))
        self.fails_alike(cut(HEAD, one), "closed within the answer")
        self.fails_alike(cut(HEAD, one, b"ffff\r\nda"), "closed within the answer")
        self.fails_alike(cut(HEAD, b"zz\r\n"), "too long, or not HTTP")
        self.fails_alike(cut(b""), "closed without an answer")
        self.fails_alike(cut(b"\x00\xff garbage\r\n\r\n" * 10), "the answer is not HTTP")
        self.fails_alike(cut(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100000), "the answer")
        self.fails_alike(lambda c: c.stream(event("a")), "neither finish_reason nor [DONE]")
        self.fails_alike(lambda c: c.stream(DONE), "without a token")
        self.fails_alike(lambda c: c.stream(b'{"choices": [{"text": "a"}]}'), "no event came")
        self.fails_alike(lambda c: c.stream(b"data: {nonsense\n\n", DONE), "not a JSON object: {nonsense")
        self.fails_alike(lambda c: c.stream(b"data: \x1b[2J\xc2\x9b2J\n\n", DONE), "not a JSON object:  [2J  2J")
        self.fails_alike(lambda c: c.stream(b"data: [1]\n\n", DONE), "not a JSON object: [1]")
        self.fails_alike(lambda c: c.stream(event("a"), b'data: {"error": {"message": "out of pages"}}\n\n', DONE), "out of pages")
        self.fails_alike(lambda c: c.stream(b"data: " + b"[" * 5000 + b"\n\n", DONE), "not a JSON object")

    def test_odd_values_in_an_answer_do_no_harm(self):
        odd = [b'{"choices": 7}', b'{"choices": [null]}', b'{"choices": [{"text": 5, "delta": []}], "usage": [], "determinism": 3}', b"{}",
               b'{"choices": [{"text": "\\u0000x"}], "usage": {"completion_tokens": "9"}, "determinism": {"digest": 1, "rollbacks": "x"}}',
               b'{"choices": [], "usage": {"completion_tokens": 9223372036854775807, "prompt_tokens": -9223372036854775808}, "determinism": '
               b'{"class": "pinned", "digest": "d", "rollbacks": 9223372036854775807, "tokens_rolled_back": -1}}',
               b'{"choices": [], "usage": {"completion_tokens": 1e300}}']
        with Fake(lambda c: c.stream(*[b"data: " + o + b"\n\n" for o in odd], event("!", "stop"), DONE)) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 2, "--repeat", 2)
        self.assertEqual((r["generated_texts"][0], r["completed"], r["output_lens"][0]), ("\0x!", 4, 3))

    def test_an_answer_that_never_comes_is_given_up(self):
        def silent(call):
            call.send(HEAD)
            call.chunk(event("a"))
            f.ended.wait(30)
            return False

        for slow in (silent, lambda call: f.ended.wait(30) and False):
            with Fake(slow) as f:
                r, _, err = self.result(f.port, "--num-prompts", 2, "--timeout", 1, "--model", "m", code=1)
            self.assertEqual((r["failed"], r["errors"]), (2, ["no whole answer within 1 s (--timeout)"] * 2), err)

    def test_a_kept_connection_that_the_server_closes_costs_no_request(self):
        def good_once(call):
            good(call)
            return False  # and closes, though it did not say so

        with Fake(good_once) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 20, "--max-concurrency", 1)
            self.assertEqual((r["completed"], len(f.bodies)), (20, 20))

    def test_garbage_on_a_kept_connection_is_a_failure(self):
        with Fake(lambda c: c.send(b"garbage\r\n\r\n") and False if c.number == 3 else good(c)) as f:
            r, _, err = self.result(f.port, "--num-prompts", 6, "--max-concurrency", 1, code=1)
            self.assertEqual((r["completed"], r["failed"], len(f.bodies)), (5, 1, 6), err)

    def test_one_that_fails_leaves_the_others(self):
        with Fake(lambda c: c.send(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n") if c.number % 3 == 0 else good(c)) as f:
            r, out, err = self.result(f.port, "--num-prompts", 60, code=1)
        self.assertEqual((r["completed"], r["failed"]), (40, 20))
        self.assertEqual((err.count("HTTP 500"), "and 10 more that failed" in err), (10, True))
        self.assertEqual(r["total_output_tokens"], 120)

    # ---- the server as such ----

    def test_a_server_that_is_not_there_is_named(self):
        code, out, err = bench(1, "--num-prompts", 1)
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err, "steadfast: no server on 127.0.0.1 port 1: Connection refused\n")
        code, _, err = bench(1, "--base-url", "http://no.such.host.invalid")
        self.assertEqual((code, "no.such.host.invalid" in err), (1, True), err)

    def test_the_wait_for_a_server_ends_when_it_is_there(self):
        with Fake(good) as f:
            port = f.port
        p = subprocess.Popen(command(port, *SMALL, "--num-prompts", 1, "--ready-check-timeout-sec", 60), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        time.sleep(0.3)
        self.assertIsNone(p.poll())
        try:
            with Fake(good, port=port):
                out, err = p.communicate(timeout=30)
        finally:
            p.kill()
        self.assertEqual((p.returncode, figure(out.decode(), "Successful requests:")), (0, 1), err)

    def test_a_refusal_or_a_silent_server_ends_the_wait_for_it(self):
        asked = []

        def loading(path):
            asked.append(path)
            return (503, b"") if len(asked) < 3 else (404, b'{"error": "no such path"}')

        ready = ("--num-prompts", 1, "--ready-check-timeout-sec")
        with Fake(good, gets=loading) as f:  # the process would be killed for its time long before the wait's end
            self.assertEqual(bench(f.port, *ready, 1000)[::2], (1, "steadfast: /v1/models: HTTP 404: no such path\n"))
            self.assertEqual(len(asked), 3)
        with Fake(good, gets=lambda path: f.ended.wait(90) and None) as f:
            self.assertEqual(bench(f.port, *ready, 2)[::2], (1, "steadfast: /v1/models: no whole answer within 1 s\n"))

    def test_silent_or_odd_counters_do_not_withhold_the_result(self):
        def odd(path):
            return (200, b"steadfast:rollbacks_total NaN\nsteadfast:verify_passes_total 1e308\n" * 2) if path == "/metrics" else None

        with Fake(good, gets=odd) as f:
            self.assertEqual(self.result(f.port, "--num-prompts", 1)[0]["determinism"]["server"]["rollbacks"], 0)
        with Fake(good, gets=lambda path: path == "/metrics" and f.ended.wait(90) and None) as f:
            r, _, _ = self.result(f.port, "--num-prompts", 1, "--timeout", 1)
        self.assertEqual((r["completed"], "server" in r["determinism"]), (1, False))

    def test_a_server_without_models_needs_a_name(self):
        with Fake(good, models=()) as f:
            code, _, err = bench(f.port, "--num-prompts", 1)
            self.assertEqual((code, "--model" in err), (1, True), err)
            self.result(f.port, "--num-prompts", 1, "--model", "m")
            self.assertEqual(f.bodies[0]["model"], "m")

    def test_base_url_with_a_path(self):
        for path in ("", "/", "/v1", "/v1/"):
            with Fake(good) as f:
                self.result(1, "--base-url", f"http://localhost:{f.port}{path}", "--num-prompts", 1)

    def test_https_checks_the_certificate(self):
        with tempfile.TemporaryDirectory() as tmp:
            context, path = authority(tmp)
            with Fake(good, certificate=context) as f:
                url = ("--base-url", f"https://127.0.0.1:{f.port}", "--num-prompts", 8, "--max-concurrency", 4)
                code, _, err = bench(1, *url)
                self.assertEqual((code, "self-signed certificate" in err), (1, True), err)
                self.assertEqual(self.result(1, *url, "--insecure")[0]["completed"], 8)
                self.assertEqual(self.result(1, *url, env={"SSL_CERT_FILE": path})[0]["completed"], 8)
                named = ("--base-url", f"https://localhost:{f.port}", *url[2:])  # the certificate is for 127.0.0.1 alone
                code, _, err = bench(1, *named, env={"SSL_CERT_FILE": path})
                self.assertEqual((code, "hostname mismatch" in err), (1, True), err)

    def test_an_interrupt_ends_it_with_the_report(self):
        def some(call):
            if call.number < 3:
                good(call)
            else:
                f.ended.wait(60)
                return False

        with Fake(some) as f:
            p = subprocess.Popen(command(f.port, *SMALL, "--num-prompts", 10, "--max-concurrency", 4), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment())
            end = time.monotonic() + 30
            while len(f.bodies) < 7 and time.monotonic() < end:
                time.sleep(0.02)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 130, err)
        self.assertEqual([figure(out.decode(), label) for label in ("Successful requests:", "Failed requests:", "Interrupted requests:")], [3, 0, 7])

    # ---- data ----

    def test_prompts_of_a_file(self):
        with tempfile.TemporaryDirectory() as tmp, Fake(good) as f:
            with open(tmp + "/c.jsonl", "w", encoding="utf-8") as c:
                c.write('{"prompt": "one", "output_tokens": 7}\n\n{"prompt": [1, 2]}\n{"messages": [{"role": "user", "content": "x"}]}\n')
            data = ("--dataset-name", "custom", "--dataset-path", tmp + "/c.jsonl", "--max-concurrency", 1)
            code, _, err = bench(f.port, *data, "--num-prompts", 3, small=False)
            self.assertEqual((code, err), (1, f"steadfast: {tmp}/c.jsonl:4: messages need --endpoint /v1/chat/completions\n"))
            self.assertEqual(bench(f.port, *data, "--num-prompts", 2, small=False)[0], 0)
            self.assertEqual([(b["prompt"], b["max_tokens"], "ignore_eos" in b) for b in f.bodies], [("one", 7, False), ([1, 2], 256, False)])

    def test_conversations_become_chats(self):
        talk = [{"conversations": [{"from": "human", "value": f"the question number {i}"}, {"from": "gpt", "value": "a long answer to that"}]} for i in range(5)]
        with tempfile.TemporaryDirectory() as tmp, Fake(good) as f:
            with open(tmp + "/s.json", "w", encoding="utf-8") as s:
                json.dump([*talk, {"conversations": []}, {"id": 1}], s)
            code, _, err = bench(f.port, "--dataset-name", "sharegpt", "--dataset-path", tmp + "/s.json", "--endpoint", "/v1/chat/completions",
                                 "--weights", WEIGHTS, "--num-prompts", 7, small=False)
        self.assertEqual(code, 0, err)
        said = [b["messages"][0]["content"] for b in f.bodies]
        self.assertEqual((len(said), set(said)), (7, {f"the question number {i}" for i in range(5)}))
        self.assertEqual({b["max_completion_tokens"] for b in f.bodies}, {5})

    def test_wrong_flags_are_named(self):
        for flags, word in ((("--endpoint", "/v1/chat"), "--endpoint"), (("--dataset-name", "x"), "--dataset-name"),
                            (("--dataset-name", "custom"), "needs --dataset-path"), (("--dataset-path", "x"), "takes no --dataset-path"),
                            (("--request-rate", "0"), "--request-rate"), (("--request-rate", "nan"), "--request-rate"),
                            (("--request-rate", "1e-20"), "--request-rate"), (("--burstiness", "1e308"), "--burstiness"),
                            (("--burstiness", "1e-9"), "--burstiness"),
                            (("--deterministic-ratio", "1.5"), "0..1"), (("--random-range-ratio", "1"), "--random-range-ratio"),
                            (("--extra-body", "[1]"), "--extra-body"), (("--extra-body", "{"), "--extra-body"),
                            (("--metric-percentiles", "50,x"), "--metric-percentiles"), (("--metric-percentiles", "101"), "--metric-percentiles"),
                            (("--metric-percentiles", "50,"), "--metric-percentiles"), (("--goodput", "itl:5"), "--goodput"),
                            (("--goodput", "ttft:5,"), "--goodput"), (("--goodput", "ttft"), "--goodput"), (("--percentile-metrics", "ttft,"), "--percentile-metrics"),
                            (("--base-url", "ftp://x"), "--base-url"), (("--base-url", "x"), "--base-url"), (("--num-prompts", "0"), "--num-prompts"),
                            (("--num-prompts", "4000000", "--repeat", "4096"), "times --repeat"),
                            (("--endpoint", "/v1/chat/completions"), "--weights"), (("--output", "/no/such/dir/x"), "/no/such/dir/x"),
                            (("--api-key", "a b"), "the key"), (("--api-key", "a\r\nX: y"), "the key"), (("--api-key", "k" * 8193), "the key")):
            code, out, err = bench(1, *flags, small=False)
            self.assertEqual((code, out), (1 if "--output" in flags else 2, ""), err)
            self.assertIn(word, err)


class AgainstOurOwn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.s = Server(BINARY, WEIGHTS, "--max-model-len", 256, "--strict", "--policy", "verify", env={"STEADFAST_DEBUG": "inject=2"})

    @classmethod
    def tearDownClass(cls):
        assert cls.s.stop() == 0, cls.s.log[-5:]

    def test_marked_copies_agree_through_rollbacks(self):
        code, out, err = bench(self.s.port, "--num-prompts", 4, "--repeat", 4, "--deterministic-ratio", 0.5, "--input-len", 12,
                               "--output-len", 12, "--random-range-ratio", 0.5, "--temperature", 0.7, small=False)
        self.assertEqual(code, 0, out + err)
        line = re.search(r"^Determinism: deterministic 2 of 2, ordinary \d of 2 prompts one output each \(4 copies, digests compared[^)]*\), (\d+) rollbacks?, (\d+) tokens? "
                         r"rolled back, recompute ratio (\S+), (\d+) verify passes$", out, re.M)
        self.assertTrue(line, out)
        self.assertGreater(int(line[1]), 0)
        self.assertGreater(float(line[3]), 1)
        self.assertGreater(int(line[4]), 0)
        self.assertEqual((figure(out, "Successful requests:"), figure(out, "Successful, deterministic:")), (16, 8))

    def test_chats_with_random_text(self):
        code, out, err = bench(self.s.port, "--endpoint", "/v1/chat/completions", "--weights", WEIGHTS, "--num-prompts", 2, "--num-warmups", 1,
                               "--deterministic-ratio", 1, *SMALL, "--logprobs", "true")
        self.assertEqual(code, 0, out + err)
        self.assertEqual((figure(out, "Total generated tokens:"), figure(out, "Total input tokens:") > 8), (6, True))
        self.assertIn("Determinism: 2 deterministic answers, ", out)


if __name__ == "__main__":
    BINARY, WEIGHTS = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
