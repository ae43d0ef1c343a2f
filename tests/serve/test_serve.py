#!/usr/bin/env python3
"""The server over HTTP, on real weights, with the official client where that speaks for users.

usage: test_serve.py BINARY WEIGHTS [unittest arguments]      (PYTHONPATH: openai)"""

import concurrent.futures
import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shared import BINARY, LONG, PATIENCE, PROBE, SMALL, Server, Shared, WEIGHTS, main  # noqa: E402


class Client(Shared):
    """The official client, unchanged."""

    def setUp(self):
        import openai

        self.openai = openai
        self.c = openai.OpenAI(base_url=f"http://127.0.0.1:{self.s.port}/v1", api_key="none", max_retries=0)
        self.model = self.c.models.list().data[0].id

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def test_the_model_is_listed_with_what_bench_clients_read(self):
        card = self.s.ask("GET", "/v1/models")[2]
        one = json.loads(card)["data"][0]
        self.assertEqual((one["root"], one["max_model_len"]), (one["id"], 512))
        self.assertEqual(self.c.models.retrieve(self.model).id, self.model)

    def test_a_completion_has_text_usage_and_log_probabilities(self):
        a = self.c.completions.create(model=self.model, prompt="The sea is", max_tokens=5, temperature=0, logprobs=2)
        self.assertEqual((a.usage.prompt_tokens, a.usage.completion_tokens), (3, 5))
        self.assertEqual(a.choices[0].finish_reason, "length")
        self.assertEqual("".join(a.choices[0].logprobs.tokens), a.choices[0].text)
        self.assertEqual(len(a.choices[0].logprobs.top_logprobs), 5)

    def test_a_chat_has_a_message_and_log_probabilities_with_bytes(self):
        a = self.c.chat.completions.create(model=self.model, messages=[{"role": "user", "content": "Say hi"}], max_tokens=6,
                                           logprobs=True, top_logprobs=3, temperature=0)
        content = a.choices[0].logprobs.content
        self.assertEqual(a.choices[0].message.role, "assistant")
        self.assertEqual(bytes(b for t in content for b in t.bytes).decode(), a.choices[0].message.content)
        self.assertEqual({len(t.top_logprobs) for t in content}, {3})

    def test_a_stream_concatenates_to_the_whole_answer_and_ends_with_the_usage(self):
        ask = {"model": self.model, "messages": [{"role": "user", "content": "Tell me of the sea 🌊"}], "max_tokens": 40, "seed": 7}
        whole = self.c.chat.completions.create(**ask).choices[0].message.content
        chunks = list(self.c.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), whole)
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 40))
        self.assertEqual([c.choices[0].finish_reason for c in chunks[-3:-1]], [None, "length"])

    def test_a_stream_tells_what_verifying_has_cost_so_far(self):
        ask = {"prompt": "Tell me of the sea", "max_tokens": 40, "seed": 7, "is_deterministic": True, "stream_options": {"include_determinism": True}}
        told = [json.loads(e)["determinism"] for e in self.s.events("/v1/completions", ask)[:-1]]
        self.assertEqual({d["class"] for d in told}, {"pinned"})
        for key in ("windows_verified", "rollbacks", "tokens_rolled_back"):
            self.assertEqual([d[key] for d in told], sorted(d[key] for d in told))
        self.assertEqual(["digest" in d for d in told], [False] * (len(told) - 1) + [True])

    def test_choices_are_distinct_and_the_first_is_that_of_one(self):
        ask = {"model": self.model, "prompt": "Once upon", "max_tokens": 8, "temperature": 1.2, "seed": 5,
               "extra_body": {"is_deterministic": True}}
        eight = [c.text for c in self.c.completions.create(**ask, n=8).choices]
        self.assertEqual(len(set(eight)), 8)
        self.assertEqual(eight, [c.text for c in self.c.completions.create(**ask, n=8).choices])
        self.assertEqual(eight[0], self.c.completions.create(**ask).choices[0].text)

    def test_a_stop_string_ends_the_text_before_it_streamed_or_not(self):
        free = self.c.completions.create(model=self.model, prompt="One, two, three,", max_tokens=30, temperature=0).choices[0].text
        stop = free[10:14]
        ask = {"model": self.model, "prompt": "One, two, three,", "max_tokens": 30, "temperature": 0, "stop": [stop]}
        a = self.c.completions.create(**ask).choices[0]
        self.assertEqual((a.text, a.finish_reason), (free[:free.index(stop)], "stop"))
        pieces = list(self.c.completions.create(**ask, stream=True))
        self.assertEqual("".join(p.choices[0].text for p in pieces), a.text)

    def test_several_prompts_answer_in_order(self):
        a = self.c.completions.create(model=self.model, prompt=["The sea", "A cat"], n=2, max_tokens=3, extra_body={"echo": True})
        self.assertEqual([c.index for c in a.choices], [0, 1, 2, 3])
        self.assertEqual([c.text[:5] for c in a.choices], ["The s", "The s", "A cat", "A cat"])

    def test_errors_have_the_clients_types(self):
        with self.assertRaises(self.openai.NotFoundError):
            self.c.completions.create(model="nope", prompt="x")
        with self.assertRaises(self.openai.BadRequestError):
            self.c.completions.create(model=self.model, prompt="x", temperature=-1)

    def test_a_client_that_leaves_its_stream_frees_it(self):
        stream = self.c.completions.create(model=self.model, **{k: LONG[k] for k in ("prompt", "max_tokens")}, stream=True)
        next(iter(stream))
        stream.close()


class Determinism(Shared):
    def test_an_answer_is_the_same_alone_and_in_a_crowd_and_as_run_gives_it(self):
        ask = [dict(PROBE, prompt=f"Chapter {i}: the", seed=i, max_tokens=16) for i in range(12)]
        alone = [self.s.complete(**a)["determinism"]["digest"] for a in ask]
        noise = [{**LONG, "max_tokens": 60, "seed": i} for i in range(12)]
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            futures = [pool.submit(self.s.complete, **b) for pair in zip(ask, noise) for b in pair]
            crowd = [f.result()["determinism"]["digest"] for f in futures][::2]
        self.assertEqual(alone, crowd)
        with tempfile.TemporaryDirectory() as tmp:
            source, target = tmp + "/in", tmp + "/out"
            with open(source, "w", encoding="utf-8") as f:
                f.writelines(json.dumps(a) + "\n" for a in ask)
            subprocess.run([BINARY, "run", "--weights", WEIGHTS, "--input", source, "--output", target, *map(str, SMALL)], check=True,
                           stderr=subprocess.DEVNULL)
            with open(target, encoding="utf-8") as f:
                self.assertEqual(alone, [json.loads(line)["determinism"]["digest"] for line in f])


class Audits(Shared):
    ASK = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0.8, "seed": 9, "n": 2, "logprobs": 2, "frequency_penalty": 0.3,
           "return_token_ids": True, "is_deterministic": True}

    def audit(self, request, answer):
        status, a = self.s.post("/v1/audit", {"request": request, "answer": answer})
        self.assertEqual(status, 200, a)
        return a

    def test_the_servers_own_answer_is_confirmed_with_its_digest(self):
        answer = self.s.complete(**self.ASK)
        a = self.audit(self.ASK, answer)
        self.assertEqual((a["match"], a["fingerprint_match"], a["digest_match"]), (True, True, True), a)
        self.assertEqual(a["digest"], answer["determinism"]["digest"])
        self.assertEqual([c["tokens"] for c in a["choices"]], [40, 40])

    def test_a_chat_answer_is_confirmed(self):
        ask = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 30, "logprobs": True, "top_logprobs": 2, "return_token_ids": True,
               "is_deterministic": True, "seed": 4}
        _, answer = self.s.post("/v1/chat/completions", ask)
        self.assertTrue(self.audit(ask, answer)["match"])

    def test_a_changed_token_or_bit_is_found_where_it_is(self):
        answer = self.s.complete(**self.ASK)
        for at in (0, 1, 17, 39):
            other = json.loads(json.dumps(answer))
            other["choices"][1]["token_ids"][at] ^= 1
            a = self.audit(self.ASK, other)
            self.assertEqual((a["match"], a["choices"][0]["match"], a["choices"][1]["mismatch"]["position"]), (False, True, at))
            self.assertEqual(a["choices"][1]["mismatch"]["replay"]["token_id"], answer["choices"][1]["token_ids"][at])
            other = json.loads(json.dumps(answer))
            other["choices"][0]["logprobs"]["token_logprobs"][at] *= 1 + 2**-22
            a = self.audit(self.ASK, other)
            self.assertEqual((a["choices"][0]["mismatch"]["position"], a["choices"][0]["mismatch"]["what"]), (at, "logprob"))

    def test_an_answer_cut_drawn_out_or_of_another_request_is_not_confirmed(self):
        answer = self.s.complete(**self.ASK)
        for change in (lambda c: c["token_ids"].pop(), lambda c: c["token_ids"].append(5), lambda c: c.update(finish_reason="stop")):
            other = json.loads(json.dumps(answer))
            change(other["choices"][0])
            self.assertEqual([c["match"] for c in self.audit(self.ASK, other)["choices"]], [False, True])
        self.assertFalse(self.audit({**self.ASK, "seed": 10}, answer)["match"])

    def mismatch(self, request, answer, change):
        """(position, what) of the first mismatch that an audit of the changed answer finds."""
        other = json.loads(json.dumps(answer))
        change(other, other["choices"][0])
        other.pop("determinism")
        a = self.audit(request, other)
        self.assertFalse(a["match"])
        self.assertIsNone(a["digest_match"])
        found = next(c for c in a["choices"] if not c["match"])["mismatch"]
        return found["position"], found["what"]

    def test_a_changed_text_is_found_without_a_digest(self):
        ask = {**self.ASK, "echo": True, "prompt_logprobs": 1, "max_tokens": 10}
        answer = self.s.complete(**ask)
        self.assertTrue(self.audit(ask, answer)["match"])
        n = answer["usage"]["prompt_tokens"]
        changes = [((10, "text"), lambda a, c: c.update(text=c["text"] + ".")), ((10, "text"), lambda a, c: c.update(text=c["text"][:-1])),
                   ((10, "text"), lambda a, c: c.update(text=c["text"][len("Once"):])),
                   ((3, "top_logprobs"), lambda a, c: c["logprobs"]["top_logprobs"].__setitem__(n + 3, {"No doubt": -0.1})),
                   ((3 - n, "top_logprobs"), lambda a, c: c["logprobs"]["top_logprobs"].__setitem__(3, None)),
                   ((0, "token"), lambda a, c: c["logprobs"]["tokens"].__setitem__(n, "x")),
                   ((9, "logprob"), lambda a, c: c["logprobs"]["token_logprobs"].pop()),
                   ((10, "logprob"), lambda a, c: c["logprobs"]["token_logprobs"].append(-1.5)),
                   ((2, "prompt_logprobs"), lambda a, c: c["prompt_logprobs"].__setitem__(2, None)),
                   ((n - 1, "prompt_logprobs"), lambda a, c: c["prompt_logprobs"].pop())]
        for found, change in changes:
            self.assertEqual(self.mismatch(ask, answer, change), found)

    def test_a_changed_chat_is_found_without_a_digest(self):
        ask = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "logprobs": True, "top_logprobs": 2, "return_token_ids": True,
               "prompt_logprobs": 0, "is_deterministic": True, "n": 2}
        _, answer = self.s.post("/v1/chat/completions", ask)
        self.assertTrue(self.audit(ask, answer)["match"])
        end = len(answer["choices"][0]["token_ids"])
        changes = [((end, "text"), lambda a, c: c["message"].update(content=c["message"]["content"] + " Berlin.")),
                   ((2, "top_logprobs"), lambda a, c: c["logprobs"]["content"][2]["top_logprobs"].pop()),
                   ((1, "bytes"), lambda a, c: c["logprobs"]["content"][1]["bytes"].append(46)),
                   ((end - 1, "logprob"), lambda a, c: c["logprobs"]["content"].pop()),
                   ((1, "prompt_logprobs"), lambda a, c: a["prompt_logprobs"].__setitem__(1, {}))]
        for found, change in changes:
            self.assertEqual(self.mismatch(ask, answer, change), found)

    def test_each_prompt_of_a_list_has_its_digest_compared(self):
        ask = {**self.ASK, "prompt": ["One", "Two"], "max_tokens": 6}
        answer = self.s.complete(**ask)
        a = self.audit(ask, answer)
        self.assertEqual((a["match"], a["digest_match"], a["digest"]), (True, [True] * 2, [d["digest"] for d in answer["determinism"]]))
        answer["determinism"][1]["digest"] = "0" * 64
        a = self.audit(ask, answer)
        self.assertEqual((a["match"], a["digest_match"]), (False, [True, False]))
        answer["determinism"].pop()
        self.assertEqual(self.audit(ask, answer)["digest_match"], [True, None])

    def test_without_a_seed_ordinary_answers_differ_and_the_reported_one_replays_them(self):
        ask = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 1, "return_token_ids": True}
        answers = [self.s.complete(**ask) for _ in range(4)]
        self.assertEqual(len({tuple(a["choices"][0]["token_ids"]) for a in answers}), 4)
        for a in answers:
            replay = self.s.complete(**ask, seed=a["determinism"]["seed"])
            self.assertEqual(replay["choices"][0]["token_ids"], a["choices"][0]["token_ids"])
        self.assertTrue(self.audit(ask, self.s.complete(**ask, is_deterministic=True, seed=-5))["match"])
        fixed = [self.s.complete(**ask, is_deterministic=True) for _ in range(2)]
        self.assertEqual([a["determinism"]["seed"] for a in fixed], [0, 0])
        self.assertEqual(fixed[0]["determinism"]["digest"], fixed[1]["determinism"]["digest"])
        fixed[0]["determinism"]["seed"] = 1
        self.assertEqual(self.audit({**ask, "seed": 0}, fixed[0])["choices"][0]["mismatch"]["what"], "seed")

    def test_an_ordinary_answer_is_audited_as_if_it_were_deterministic(self):
        ask = {**self.ASK, "is_deterministic": False}
        pinned, fast = self.s.complete(**self.ASK), self.s.complete(**ask)
        a = self.audit(ask, pinned)
        self.assertEqual((a["match"], a["digest"]), (True, pinned["determinism"]["digest"]))
        a, same = self.audit(ask, fast), fast["determinism"]["digest"] == pinned["determinism"]["digest"]
        self.assertEqual((a["fingerprint_match"], a["match"], a["digest_match"]), (True, same, same))

    def test_what_cannot_be_audited_is_named(self):
        answer = self.s.complete(**{k: v for k, v in self.ASK.items() if k != "return_token_ids"})
        self.assertIn("return_token_ids", self.refused(400, {"request": self.ASK, "answer": answer}, "/v1/audit")["message"])
        self.refused(400, {"request": self.ASK}, "/v1/audit", param="answer")
        self.refused(400, {"request": 1, "answer": {}}, "/v1/audit", param="request")
        ids = {"choices": [{"token_ids": [999999]}, {"token_ids": ["x"]}]}
        self.refused(400, {"request": self.ASK, "answer": ids}, "/v1/audit")
        self.refused(400, {"request": {**self.ASK, "n": 1}, "answer": {"token_ids": [999999]}}, "/v1/audit")


class Slow(Shared):
    flags = (*SMALL, "--prefill-chunk", 16)

    def test_a_client_that_leaves_in_the_middle_of_its_prompt_is_aborted_there(self):
        before, aborted = self.s.metric("prompt_tokens_total"), self.aborted()
        with self.open(prompt=[7] + [5] * 490, max_tokens=9, is_deterministic=True):
            self.wait_for("no row of the prompt", lambda: self.s.metric("prompt_tokens_total") > before)
        self.wait_for("it goes on", lambda: self.aborted() > aborted)
        self.assertLess(self.s.metric("prompt_tokens_total") - before, 491)

    def test_every_choice_of_a_streamed_echo_has_the_log_probabilities_of_the_whole(self):
        ask = {"prompt": "The sea " * 13, "n": 3, "max_tokens": 0, "echo": True, "logprobs": 1}
        whole = self.s.complete(**ask)["choices"]
        parts = [c for e in self.s.events("/v1/completions", ask)[:-1] for c in json.loads(e)["choices"]]
        self.assertEqual(sorted(c["index"] for c in parts), [0, 1, 2])
        for c in parts:
            self.assertIn(len(c["logprobs"]["token_logprobs"]), range(17, 33))  # two passes
            self.assertEqual(c["logprobs"], whole[c["index"]]["logprobs"])

def unread(server, **body):
    """A connection over which a stream has been asked for, with room for little of it."""
    data = json.dumps({**LONG, "stream": True, "n": 8, **body}).encode()
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.connect(("127.0.0.1", server.port))
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))
    c.settimeout(20 * PATIENCE)
    return c


def generated(server, tokens):
    """Waits until so many have been."""
    end = time.monotonic() + 60 * PATIENCE
    while server.metric("generation_tokens_total") < tokens:
        if time.monotonic() > end:
            raise RuntimeError("they do not come")
        time.sleep(0.01)


class Unread(Shared):
    flags = (*SMALL, "--served-model-name", "m" * 120000)  # long events: soon none can be sent

    def test_a_client_that_does_not_read_holds_up_nobody(self):
        before = self.s.metric("generation_tokens_total")
        rss = self.s.rss_kb()
        with unread(self.s, max_tokens=8, logprobs=1) as c:
            generated(self.s, before + 8)
            self.assertEqual(self.s.complete(prompt="The", max_tokens=3)["usage"]["completion_tokens"], 3)
            generated(self.s, before + 64 + 3)
            self.assertLess(self.s.rss_kb() - rss, 64 << 10)
            got = b""
            while not got.endswith(b"0\r\n\r\n"):
                got += c.recv(1 << 20)
        events = [json.loads(x[6:]) for x in got.decode().split("\n") if x.startswith("data: {")]
        self.assertLess(len(events), 64)  # what was stalled came in fewer events than tokens
        self.assertEqual(sum(len(e["choices"][0]["logprobs"]["tokens"]) for e in events if e["choices"][0]["logprobs"]), 64)


class Limits(Shared):
    flags = (*SMALL, "--max-num-seqs", 1, "--max-queue", 1, "--api-key", "one", "--api-key", "two", "--allowed-origin", "https://a.example",
             "--log-format", "json")

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write(" three \t\r\n  \n")
            keys.flush()
            cls.s = Server(BINARY, WEIGHTS, *cls.flags, "--api-key-file", keys.name)
        ask = cls.s.ask
        cls.s.ask = lambda m, p, b=None, headers=None, **k: ask(m, p, b, {"Authorization": "Bearer two", **(headers or {})}, **k)
        cls.digest = cls.s.complete(**PROBE)["determinism"]["digest"]

    def test_a_full_queue_says_when_to_come_again(self):
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: self.s.ask("POST", "/v1/completions", {**LONG, "max_tokens": 100}), range(12)))
        full = [h for status, h, _ in answers if status == 429]
        self.assertTrue(full and all(h["Retry-After"] == "1" for h in full))
        self.assertEqual({status for status, _, _ in answers}, {200, 429})

    def test_more_prompts_than_may_wait_are_refused_for_good(self):
        e = self.refused(400, {"prompt": ["a", "b"], "max_tokens": 1}, param="prompt")
        self.assertRegex(e["message"], "2 prompts, expected at most 1")

    def test_keys_are_asked_for_but_not_for_health(self):
        for key in ("", "Bearer", "Bearer on", "Bearer one2", "Basic one"):
            status, headers, _ = self.s.ask("GET", "/v1/models", headers={"Authorization": key})
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertEqual(self.s.ask("GET", "/health", headers={"Authorization": key})[0], 200)
        for key in ("bearer one", "Bearer three"):
            self.assertEqual(self.s.ask("GET", "/v1/models", headers={"Authorization": key})[0], 200)

    def test_pages_of_the_allowed_origin_may_ask(self):
        status, headers, _ = self.s.ask("OPTIONS", "/v1/completions", headers={"Origin": "https://a.example"})
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, "https://a.example"))
        self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])

    def test_the_log_is_json_without_prompts(self):
        self.s.complete(prompt="A secret of mine", max_tokens=2)
        lines = [json.loads(x) for x in self.s.log if x.startswith("{")]
        self.assertEqual([x["outcome"] for x in lines if "outcome" in x][-1], "ok")
        self.assertFalse(any("secret" in x for x in self.s.log))

    def test_requests_that_are_no_call_are_logged_too(self):
        asked = (("GET", "/v1/models", None, "Bearer nobody", 401, "invalid_api_key"), ("GET", "/nope", None, None, 404, "not_found"),
                 ("POST", "/tokenize", {"prompt": "x"}, None, 200, "ok"), ("POST", "/detokenize", {"tokens": [5]}, None, 200, "ok"))
        for method, path, body, key, status, outcome in asked:
            got, headers, _ = self.s.ask(method, path, body, headers={"Authorization": key} if key else None)
            self.assertEqual(got, status)
            mine = [x for x in map(json.loads, self.lines_of(headers["X-Request-Id"]))]
            self.assertEqual([(x["method"], x["path"], x["status"], x["outcome"]) for x in mine], [(method, path, status, outcome)])
        self.assertFalse(any('"/health"' in x or '"/metrics"' in x for x in self.s.log))

    def lines_of(self, number):
        self.wait_for("no line in the log", lambda: any(number in x for x in self.s.log))
        return [x for x in self.s.log if number in x]


class Ends(unittest.TestCase):
    def test_sigterm_lets_requests_end_and_refuses_new_ones(self):
        s = Server(BINARY, WEIGHTS, *SMALL)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(s.complete, **{**LONG, "max_tokens": 60})
            while s.metric("num_requests_running") == 0:
                time.sleep(0.01)
            s.process.send_signal(signal.SIGTERM)
            while s.ask("GET", "/health")[0] == 200:
                time.sleep(0.01)
            self.assertEqual(s.ask("POST", "/v1/completions", LONG)[0], 503)
            self.assertEqual(running.result()["usage"]["completion_tokens"], 60)
        self.assertEqual(s.process.wait(30 * PATIENCE), 0)

    def test_what_does_not_end_in_time_is_told_so(self):
        s = Server(BINARY, WEIGHTS, *SMALL, "--shutdown-timeout", 0)
        stream = threading.Thread(target=lambda: setattr(s, "events_got", s.events("/v1/completions", LONG)))
        stream.start()
        while s.metric("num_requests_running") == 0:
            time.sleep(0.01)
        self.assertEqual(s.stop(), 0)
        stream.join(20 * PATIENCE)
        self.assertEqual(s.events_got[-1], "[DONE]")
        self.assertEqual(json.loads(s.events_got[-2])["error"]["code"], "shutdown")

    def test_idle_connections_do_not_disturb_the_end(self):
        s = Server(BINARY, WEIGHTS, *SMALL)
        with socket.create_connection(("127.0.0.1", s.port)) as used, socket.create_connection(("127.0.0.1", s.port)):
            used.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertTrue(used.recv(4096).startswith(b"HTTP/1.1 200 OK"))
            self.assertEqual(s.stop(), 0)

    def test_a_client_that_reads_its_error_late_does_not_keep_the_server_from_ending(self):
        s = Server(BINARY, WEIGHTS, *SMALL, "--shutdown-timeout", 0, "--served-model-name", "m" * 60000)  # long events: soon none can be sent
        self.addCleanup(s.process.kill)
        with unread(s) as c:
            time.sleep(2)
            s.process.send_signal(signal.SIGTERM)
            while not any(" 503 shutdown " in line for line in s.log):
                time.sleep(0.01)
            got = b""
            while not got.endswith(b"0\r\n\r\n") and (chunk := c.recv(1 << 20)):
                got = (got + chunk)[-400:]
            self.assertIn(b'"code":"shutdown"', got)
            self.assertEqual(s.process.wait(20 * PATIENCE), 0)

    def test_a_client_that_reads_nothing_does_not_keep_the_server_past_its_time(self):
        s = Server(BINARY, WEIGHTS, *SMALL, "--shutdown-timeout", 0, "--served-model-name", "m" * 120000)
        self.addCleanup(s.process.kill)
        with unread(s, max_tokens=8):
            generated(s, 64)  # nothing is left to cancel but the sending
            s.settle()
            self.assertFalse(any(" 200 ok stream " in line for line in s.log))
            self.assertEqual(s.stop(timeout=20), 0)
        self.assertTrue(any(" 503 shutdown stream " in line for line in s.log), s.log[-3:])

    def test_without_free_descriptors_new_connections_wait_and_the_log_stays_short(self):
        s = Server(BINARY, WEIGHTS, *SMALL)
        self.addCleanup(s.process.kill)
        resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (24, 24))
        waiting = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(40)]
        time.sleep(1)
        for c in waiting:
            c.close()
        self.assertEqual(s.ask("GET", "/health")[0], 200)
        self.assertIn(sum("Too many open files" in line for line in s.log), range(1, 9))
        self.assertEqual(s.stop(), 0)

    def test_a_port_that_is_taken_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as held:
            port = held.getsockname()[1]
            p = subprocess.run([BINARY, "serve", "--weights", WEIGHTS, "--port", str(port)], stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(p.returncode, 1)
        self.assertIn(str(port), p.stderr)

    def test_https_with_the_given_certificate(self):
        with tempfile.TemporaryDirectory() as tmp:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp + "/k", "-out", tmp + "/c", "-days", "1",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
            s = Server(BINARY, WEIGHTS, *SMALL, "--ssl-certfile", tmp + "/c", "--ssl-keyfile", tmp + "/k", "--receive-timeout", 1)
            context = ssl.create_default_context(cafile=tmp + "/c")
            with socket.create_connection(("127.0.0.1", s.port)) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as c:
                c.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(c.recv(100).startswith(b"HTTP/1.1 200 OK"))
            with socket.create_connection(("127.0.0.1", s.port), timeout=20) as silent, socket.create_connection(("127.0.0.1", s.port), timeout=20) as half:
                half.sendall(b"\x16\x03\x01\x02\x00\x01")  # the head of a hello that never comes
                self.assertEqual((silent.recv(100), half.recv(100)), (b"", b""))
            with socket.create_connection(("127.0.0.1", s.port)) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as c:
                c.sendall(b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n")
                got = b""
                while chunk := c.recv(65536):
                    got += chunk
                self.assertEqual((got[:12], got.count(b"HTTP/1.1"), got.count(b"unknown_method")), (b"HTTP/1.1 501", 1, 1))
            with socket.create_connection(("127.0.0.1", s.port)) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as c:
                time.sleep(2.5)  # idle after its handshake: not late
                c.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(c.recv(100).startswith(b"HTTP/1.1 200 OK"))
            self.assertEqual(s.stop(), 0)

    def test_wrong_flags_are_named(self):
        for flags, word in ((["--ssl-certfile", "x"], "--ssl-keyfile"), (["--port", "70000"], "0..65535"), (["--api-key-file", "/dev/null"], "no key"),
                            (["--log-format", "xml"], "--log-format")):
            p = subprocess.run([BINARY, "serve", "--weights", WEIGHTS, *flags], stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(word, p.stderr)


if __name__ == "__main__":
    main()
