#!/usr/bin/env python3
"""The verbs of the built binary, end to end on real weights.

usage: test_cli.py BINARY WEIGHTS [unittest arguments]"""

import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import tty
import unittest

from engine import Binary

B = None  # the binary under test, set from the command line


def bits(x):
    return struct.pack("<f", x)


class Usage(unittest.TestCase):
    def fails(self, code, says, *args, env=None):
        got, out, err = B.run(*args, env=env)
        self.assertEqual(got, code, err)
        self.assertIn(says, err)
        self.assertTrue(err.startswith("steadfast: "), err)
        self.assertEqual(out, b"")

    def test_unknown_verbs_are_named(self):
        for verb in ("measure", "frobnicate"):
            self.fails(2, f"{verb}: unknown verb", verb)

    def test_no_verb(self):
        self.fails(2, "no verb given")

    def test_unknown_flag(self):
        self.fails(2, "--tmperature: unknown flag", "run", "--tmperature", "1")

    def test_flag_of_another_verb(self):
        self.fails(2, "--input: unknown flag", "info", "--input", "x")

    def test_missing_value(self):
        self.fails(2, "--weights needs a value", "run", "--weights")

    def test_values_are_checked(self):
        w = ("run", "--weights", B.weights, "--prompt", "x")
        for flag, value, says in (("--threads", "0", "1..256"), ("--threads", "two", "--threads is \"two\""),
                                  ("--window", "65", "2..64"), ("--window", "1", "2..64"),
                                  ("--seed", "9223372036854775808", "64-bit integer"), ("--top-p", "0", "(0, 1]"),
                                  ("--temperature", "-1", "temperature"), ("--temperature", "hot", "a number in"),
                                  ("--max-tokens", "2147483648", "--max-tokens is"),
                                  ("--max-tokens", "-1", "--max-tokens is -1, expected an integer of at least 0"), ("--n", "65", "--n is"),
                                  ("--top-p", "1.0000001", "--top-p is 1.0000001, expected a number in (0, 1]"),
                                  ("--min-tokens", "20", "--min-tokens is 20, expected at most --max-tokens (16)"),
                                  ("--threads", " 1", "--threads is \" 1\""), ("--threads", "+1", "--threads is \"+1\""),
                                  ("--seed", "+1", "--seed is \"+1\""), ("--top-k", " 1", "--top-k is \" 1\""),
                                  ("--temperature", " 1", "--temperature is"), ("--temperature", "0x1", "--temperature is"),
                                  ("--max-num-batched-tokens", "1", "--max-num-batched-tokens is \"1\", expected an integer of at least 2"),
                                  ("--prefill-chunk", "513", "--prefill-chunk is 513, expected 1..512"),
                                  ("--kv-pages", "2", "--kv-pages is 2, expected at least 3: the probe of the start-up needs them"),
                                  ("--date", "2024-02-30", "--date is \"2024-02-30\", expected YYYY-MM-DD"),
                                  ("--system", "Be brief.", "--system needs --chat"),
                                  ("--isa", "avx9", "avx9"), ("--policy", "auto", "auto"), ("--policy", "x", "\"x\""),
                                  ("--max-model-len", "100000000", "--max-model-len is 100000000, expected 2..8192"), ("--deterministic=maybe", None, "true or false")):
            self.fails(2, says, *w, *([flag, value] if value is not None else [flag]))

    def test_a_wrong_isa_is_told_before_the_weights_are_read(self):
        for verb in (("run", "--prompt", "x"), ("selftest",), ("info",)):
            self.fails(2, "isa is avx9, expected auto or one of generic avx2", *verb, "--weights", "/nonexistent.gguf",
                       "--isa", "avx9")

    def test_weights_are_asked_for_by_flag(self):
        self.fails(2, "--weights FILE", "run", "--prompt", "x")
        self.fails(2, "--weights FILE", "selftest")
        self.fails(2, "--weights FILE", "tokenize", "--text", "x")

    def test_one_source_is_needed(self):
        self.fails(2, "--prompt, --chat or --input", "run", "--weights", B.weights)
        self.fails(2, "only one of", "run", "--weights", B.weights, "--prompt", "x", "--chat", "y")

    def test_missing_weights_file(self):
        self.fails(1, "/nonexistent.gguf", "run", "--weights", "/nonexistent.gguf", "--prompt", "x")

    def test_directory_as_weights(self):
        self.fails(1, "the directory has neither model.safetensors nor", "run", "--weights", "/", "--prompt", "x")

    def test_the_command_line_wins_over_the_environment(self):
        self.fails(2, "STEADFAST_WINDOW is \"99\"", "run", "--weights", B.weights, "--prompt", "x", env={"STEADFAST_WINDOW": "99"})
        code, out, err = B.run("tokenize", "--text", "a b", env={"STEADFAST_WEIGHTS": B.weights})
        self.assertEqual(code, 0, err)
        code, _, err = B.run("tokenize", "--text", "a b", "--weights", B.weights, env={"STEADFAST_WEIGHTS": "/nonexistent"})
        self.assertEqual(code, 0, err)

    def test_variables_that_no_flag_has_are_warned_of(self):
        for name, near in (("STEADFAST_API_KEYS_FILE", "STEADFAST_API_KEY_FILE"), ("STEADFAST_UNHEARD_OF", None)):
            code, _, err = B.run("info", env={name: "x", "STEADFAST_WINDOW": "8"})
            self.assertEqual(code, 0, err)
            lines = [x for x in err.splitlines() if "STEADFAST_" in x]
            self.assertEqual(len(lines), 1, err)
            self.assertIn(f"warning: {name} is set", lines[0])
            self.assertEqual(f"did you mean {near}?" in lines[0], near is not None)

    def test_debug_variable_is_checked(self):
        self.fails(2, "STEADFAST_DEBUG", "info", env={"STEADFAST_DEBUG": "inject=x"})
        for value in ("magic=1", "inject=64", "inject=-1", "inject=99999999999", "fault=0", "fault=99999999999", "inject=+1",
                      "inject= 1", "inject", "inject=", "inject=1,,fault=2"):
            self.fails(2, "STEADFAST_DEBUG has", "info", env={"STEADFAST_DEBUG": value})

    def test_flags_of_tokenize(self):
        w = ("tokenize", "--weights", B.weights)
        self.fails(2, "--system needs --chat", *w, "--text", "x", "--system", "y")
        self.fails(2, "--date is", *w, "--chat", "x", "--date", "today")
        for ids in ("+1", "[1,2", "[1]2", "1]", "1,,2", "[[1]]", "1x", ",1", "-1"):
            self.fails(2, "--decode has", *w, f"--decode={ids}")

    def test_help_shows_no_limit_that_is_none(self):
        for verb in ("run", "bench", "selftest", "info", "tokenize"):
            _, text, _ = B.run(verb, "--help")
            self.assertNotIn(b"2147483647", text)

    def test_version_and_help(self):
        code, out, _ = B.run("--version")
        self.assertEqual((code, out.startswith(b"steadfast ")), (0, True))
        code, out, _ = B.run("--help")
        self.assertEqual(code, 0)
        for verb in ("serve", "run", "audit", "bench", "selftest", "info", "tokenize"):
            self.assertIn(verb.encode(), out)
            code, text, _ = B.run(verb, "--help")
            self.assertEqual(code, 0)
            self.assertIn(b"--weights FILE", text)

    def test_help_of_a_verb_tells_what_concerns_it(self):
        for verb, debug in (("serve", True), ("run", True), ("selftest", True), ("info", False), ("tokenize", False)):
            self.assertEqual(b"STEADFAST_DEBUG" in B.run(verb, "--help")[1], debug, verb)
        text = B.run("run", "--help")[1].decode()
        self.assertRegex(text, r"--ignore-eos +do not end at the model's eos; default: false\n")
        self.assertIn("default: the value of --deterministic-default", text)

    def test_help_of_the_fields_is_the_table_with_an_example_that_runs(self):
        code, out, err = B.run("run", "--help-fields")
        text = out.decode()
        self.assertEqual((code, err), (0, ""))
        for says in ("  temperature: a number in [0, 100]; default: 1\n      0 takes the likeliest token",
                     "  is_deterministic, or deterministic: true or false", "  id, or custom_id: ", "  messages: an array"):
            self.assertIn(says, text)
        asked, answered = [x for x in text.splitlines() if x.startswith('{"id": "a1"')]
        code, out, err = B.run("run", "--weights", B.weights, "--input", "-", stdin=asked.encode())
        self.assertEqual(code, 0, err)
        shown, got = json.loads(answered.replace("{...}", "{}")), json.loads(out)
        self.assertEqual(set(shown), set(got))
        for key in ("id", "text", "token_ids", "finish_reason"):
            self.assertEqual(shown[key], got[key])

    def test_the_man_page_has_every_flag_of_every_verb(self):
        code, page, _ = B.run("--man")
        self.assertEqual((code, page[:14]), (0, b".TH STEADFAST "))
        for verb in ("serve", "run", "audit", "bench", "selftest", "info", "tokenize"):
            part = page.split(b'.SH "VERB %s"' % verb.encode())[1].split(b".SH")[0].replace(b"\\-", b"-")
            for flag in re.findall(rb"^  (--[a-z-]+)", B.run(verb, "--help")[1], re.M):
                self.assertIn(b".B " + flag, part)
        self.assertFalse(re.search(rb"^\.(?!TH|SH|TP|B|BR|br)", page, re.M))

    def test_completion_is_a_valid_script(self):
        code, out, _ = B.run("--completion")
        self.assertEqual(code, 0)
        check = b"COMP_WORDS=(steadfast run --temp); COMP_CWORD=2; _steadfast; echo \"${COMPREPLY[@]}\"\n"
        p = subprocess.run(["bash"], input=out + check, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((p.stdout.strip(), p.stderr), (b"--temperature", b""))


class Tokenize(unittest.TestCase):
    def tokens(self, *args, stdin=None):
        code, out, err = B.run("tokenize", "--weights", B.weights, *args, stdin=stdin)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_text_there_and_back(self):
        text = "Hello, wörld! 🙂 1234\n  x"
        got = self.tokens("--text", text)
        self.assertEqual(set(got), {"tokens", "count", "max_model_len"})
        self.assertEqual(got["count"], len(got["tokens"]))
        back = self.tokens("--decode", ",".join(map(str, got["tokens"])))
        self.assertEqual(back, {"text": text})

    def test_ids_to_decode_may_be_a_list(self):
        want = self.tokens("--decode", "1,2,3")
        for ids in ("[1,2,3]", "[1, 2, 3]", " [ 1 , 2 , 3 ] ", "1 2 3", " 1,  2\t3 ", "[1 2 3]", "1,2,3,"):
            self.assertEqual(self.tokens("--decode", ids), want, ids)
        self.assertEqual(self.tokens("--decode", "[]"), {"text": ""})

    def test_stdin_equals_text(self):
        self.assertEqual(self.tokens(stdin="a few words".encode()), self.tokens("--text", "a few words"))

    def test_pieces(self):
        got = self.tokens("--text", "a few words", "--pieces")
        self.assertEqual("".join(t["piece"] for t in got["tokens"]), "a few words")

    def test_ids_alone(self):
        code, out, _ = B.run("tokenize", "--weights", B.weights, "--text", "a few words", "--ids")
        self.assertEqual([int(x) for x in out.split()], self.tokens("--text", "a few words")["tokens"])

    def test_a_chat_is_rendered(self):
        got = self.tokens("--chat", "hi")
        text = self.tokens("--decode", ",".join(map(str, got["tokens"])))["text"]
        self.assertIn("<|im_start|>user\nhi<|im_end|>", text)
        self.assertTrue(text.endswith("<|im_start|>assistant\n"))

    def test_special_spelling_in_a_chat_stays_text(self):
        plain = self.tokens("--chat", "<|im_end|>")
        usual = self.tokens("--chat", "x")
        end = self.tokens("--decode", "2")
        self.assertEqual(end["text"], "<|im_end|>")
        self.assertEqual(plain["tokens"].count(2), usual["tokens"].count(2))

    def test_bad_ids_and_bad_utf8(self):
        code, _, err = B.run("tokenize", "--weights", B.weights, "--decode", "1,999999")
        self.assertEqual(code, 2)
        self.assertIn("999999", err)
        code, _, err = B.run("tokenize", "--weights", B.weights, stdin=b"ab\xff")
        self.assertEqual(code, 1)
        self.assertIn("stdin", err)


class Info(unittest.TestCase):
    def test_without_weights(self):
        code, out, err = B.run("info", "--json")
        self.assertEqual(code, 0, err)
        info = json.loads(out)
        self.assertIn("generic", info["machine"]["isas_usable"])
        self.assertTrue(set(info["machine"]["isas_usable"]) <= set(info["machine"]["isas_built"]))
        self.assertNotIn("weights", info)
        for op in info["plan"]["ops"]:
            self.assertTrue(op["pinned"] and op["fast"], op["name"])
            self.assertEqual(op["pinned"][-1]["rows_max"] >= 1, True)

    def test_with_weights(self):
        code, out, err = B.run("info", "--json", "--weights", B.weights)
        self.assertEqual(code, 0, err)
        info = json.loads(out)
        self.assertRegex(info["system_fingerprint"], "^sf-[0-9a-f]{32}$")
        self.assertRegex(info["weights"]["hash"], "^[0-9a-f]{64}$")
        self.assertIsNone(info["deterministic_refused"])

    def test_fingerprint_ignores_threads_and_isa(self):
        seen = set()
        for flags in ((), ("--threads", "1"), ("--isa", "generic")):
            _, out, _ = B.run("info", "--json", "--weights", B.weights, *flags)
            seen.add(json.loads(out)["system_fingerprint"])
        self.assertEqual(len(seen), 1)

    def test_fingerprint_follows_the_weights(self):
        seen = set()
        for seed in (1, 1, 2):
            code, out, err = B.run("info", "--json", "--random-weights", seed)
            self.assertEqual(code, 0, err)
            seen.add(json.loads(out)["system_fingerprint"])
        self.assertEqual(len(seen), 2)

    def test_text(self):
        code, out, _ = B.run("info")
        self.assertEqual(code, 0)
        self.assertLess(len(out.splitlines()), 12)
        self.assertNotIn(b"kernels", out)
        code, more, _ = B.run("info", "--kernels")
        self.assertEqual((code, more.startswith(out)), (0, True))
        self.assertRegex(more.decode(), r"\npinned kernels, with the expected time.*\n.* rows  expected +[0-9.]+ us  ")


class Cuda(unittest.TestCase):
    """The engine for an H200, on a machine without a GPU."""

    def setUp(self):
        if os.path.exists("/dev/nvidia0"):
            self.skipTest("there is a GPU")
        self.b = Binary(os.path.join(os.path.dirname(B.path), "steadfast-smollm2-135m-h200"), B.weights)

    def test_what_needs_no_gpu_works(self):
        code, out, err = self.b.run("info", "--json")
        self.assertEqual(code, 0, err)
        info = json.loads(out)
        self.assertEqual(info["backend"], "cuda")
        long = next(o for o in info["plan"]["ops"] if o["name"] == "attention_long")
        self.assertEqual(len(long["pinned"]), 1)  # none up to 64 rows
        code, out, err = self.b.run("info")
        self.assertEqual(code, 0, err)
        self.assertIn("sm_90a", out.decode())
        code, out, err = self.b.run("tokenize", "--weights", B.weights, "--text", "Hi", "--ids")
        self.assertEqual((code, out), B.run("tokenize", "--weights", B.weights, "--text", "Hi", "--ids")[:2], err)

    def test_what_needs_one_says_so(self):
        for verb in ("run", "selftest", "info"):
            extra = ("--prompt", "x") if verb == "run" else ()
            code, out, err = self.b.run(verb, "--weights", B.weights, *extra)
            self.assertEqual((code, out), (2, b""), err)
            self.assertIn("libcuda.so.1 is not on this machine", err)

    def test_flags_of_the_other_backend_are_refused(self):
        code, _, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--gpu", "1")
        self.assertEqual(code, 2)
        self.assertIn("runs on the CPU", err)
        code, _, err = self.b.run("run", "--weights", B.weights, "--prompt", "x", "--isa", "avx2")
        self.assertEqual(code, 2)
        self.assertIn("runs on a GPU", err)


class RunOne(unittest.TestCase):
    def one(self, *args, env=None):
        code, out, err = B.run("run", "--weights", B.weights, *args, env=env)
        self.assertEqual(code, 0, err)
        return out.decode(), err

    def test_streamed_text_equals_the_answers(self):
        flags = ("--chat", "Name three colours.", "--max-tokens", "24", "--temperature", "0", "--deterministic")
        streamed, err = self.one(*flags)
        whole, _ = self.one(*flags, "--json")
        self.assertEqual(streamed, json.loads(whole)["text"] + "\n")
        self.assertRegex(err, r"24 answer tokens .* tokens/s; \d+ windows? verified, \d+ rollbacks?,.*sf-[0-9a-f]{32}")

    def test_policies_and_injected_errors_give_the_same_bits(self):
        flags = ("--prompt", "The sea is", "--max-tokens", "40", "--temperature", "0.8", "--seed", "5", "--deterministic",
                 "--logprobs", "2", "--json")
        base = json.loads(self.one(*flags)[0])
        rollbacks = 0
        for more, env in ((("--policy", "pin"), None), (("--policy", "verify", "--window", "5"), {"STEADFAST_DEBUG": "inject=2"}),
                          (("--policy", "verify", "--threads", "1", "--isa", "generic"), None)):
            got = json.loads(self.one(*flags, *more, env=env)[0])
            self.assertEqual(got["determinism"]["digest"], base["determinism"]["digest"])
            self.assertEqual(got["logprobs"], base["logprobs"])
            rollbacks += got["determinism"]["rollbacks"]
        self.assertGreater(rollbacks, 0)

    def test_several_choices(self):
        out, _ = self.one("--prompt", "Once", "--n", "3", "--max-tokens", "8", "--json")
        self.assertEqual([c["index"] for c in json.loads(out)["choices"]], [0, 1, 2])

    def test_logprobs_need_somewhere_to_go(self):
        code, _, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--logprobs", "1")
        self.assertEqual(code, 2)
        self.assertIn("--json", err)

    def test_a_prompt_over_the_context_names_both_counts(self):
        code, _, err = B.run("run", "--weights", B.weights, "--prompt", "word " * 400, "--max-model-len", "100")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"has 40\d tokens.*context of 100")

    def test_one_of_a_thing_is_singular(self):
        _, err = self.one("--prompt", "The sea", "--max-tokens", "1", "--temperature", "0")
        self.assertRegex(err, r"^1 request \(0 failed\), \d+ prompt and 1 answer token in ")
        self.assertIn("0 windows verified, 0 rollbacks, 0 tokens rolled back", err)

    def test_an_answer_that_the_context_cuts_is_told(self):
        flags = ("--prompt", "The sea", "--temperature", "0", "--max-model-len", "8", "--ignore-eos")
        _, err = self.one(*flags, "--max-tokens", "100")
        self.assertRegex(err, r"warning: --max-tokens is 100, but the context of 8 leaves \d for the answer\n")
        _, err = self.one(*flags, "--max-tokens", "2")
        self.assertNotIn("warning", err)

    def test_stdout_full(self):
        with open("/dev/full", "wb") as full:
            code, _, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--max-tokens", "4", stdout=full)
        self.assertEqual(code, 1)
        self.assertIn("stdout", err)

    def test_random_weights_need_no_checkpoint(self):
        code, out, err = B.run("run", "--random-weights", "3", "--input", "-", "--deterministic",
                               stdin=b'{"prompt_ids": [5, 6, 7], "max_tokens": 6}\n{"prompt": "text"}\n')
        self.assertEqual(code, 1, err)
        first, second = [json.loads(x) for x in out.splitlines()]
        self.assertEqual(len(first["token_ids"]), 6)
        self.assertIn("no tokenizer", second["error"]["message"])

    def test_a_device_that_lies_is_found_and_refused(self):
        fault = {"STEADFAST_DEBUG": "fault=9"}
        code, _, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--deterministic", env=fault)
        self.assertNotEqual(code, 0)
        self.assertIn("probe", err)
        self.assertIn("log-probability", err)
        code, out, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--max-tokens", "4", env=fault)
        self.assertEqual(code, 0, err)  # ordinary requests are served
        self.assertIn("warning: deterministic requests are refused", err)


class Jsonl(unittest.TestCase):
    def test_order_ids_and_shapes(self):
        reqs = [dict(id=k, prompt="word " * (1 + 5 * (k % 4)), max_tokens=4 + 9 * (k % 3), temperature=0.7, seed=k,
                     logprobs=k % 3, is_deterministic=k % 2 == 0) for k in range(12)]
        code, got, err, report = B.lines(reqs, "--max-num-seqs", "5")
        self.assertEqual(code, 0, err)
        self.assertEqual([a["id"] for a in got], list(range(12)))
        for r, a in zip(reqs, got):
            self.assertLessEqual(len(a["token_ids"]), r["max_tokens"])
            self.assertEqual(a["usage"]["completion_tokens"], len(a["token_ids"]))
            self.assertEqual(len(a["logprobs"]["token_logprobs"]), len(a["token_ids"]))
            self.assertEqual(a["determinism"]["class"], "pinned" if r["is_deterministic"] else "fast")
            self.assertRegex(a["determinism"]["digest"], "^[0-9a-f]{64}$")
            self.assertIn(a["finish_reason"], ("length", "stop"))
        self.assertEqual(report["requests"], 12)
        self.assertEqual(report["output_tokens"], sum(len(a["token_ids"]) for a in got))
        self.assertEqual(report["stats"]["pages_free"], report["stats"]["pages_total"])

    def test_unordered_has_the_same_answers(self):
        reqs = [dict(id=k, prompt_ids=[10 + k], max_tokens=1 + 20 * (k == 0), is_deterministic=True, temperature=0)
                for k in range(4)]
        _, a, _, _ = B.lines(reqs)
        code, b, err, _ = B.lines(reqs, "--ordered=false")
        self.assertEqual(code, 0, err)
        self.assertEqual(b[-1]["id"], 0)  # the longest finishes last
        self.assertEqual({x["id"]: x["determinism"]["digest"] for x in a}, {x["id"]: x["determinism"]["digest"] for x in b})

    def test_bad_lines_do_not_stop_the_rest(self):
        good = dict(prompt="The", max_tokens=3, temperature=0, is_deterministic=True)
        bad = [
            (b"{", "line 2 is not valid JSON, column ", None),
            (b"\xef\xbb\xbf{}", "line 3 begins with a byte order mark", None),
            (b"[1]", "expected a JSON object", None),
            (b'{"prompt": "x", "prompt": "y"}', "duplicate", None),
            (b'{"id": "a", "prompt": "x", "max_tokens": "5"}', 'max_tokens is a string ("5"), expected an integer', "max_tokens"),
            (b'{"prompt": "x", "max_tokens": -1}', "max_tokens is -1, expected an integer of at least 0", "max_tokens"),
            (b'{"prompt": "x", "max_tokens": 2147483648}', "max_tokens", "max_tokens"),
            (b'{"prompt": "x", "max_tokens": 0}', "max_tokens is 0", "max_tokens"),
            (b'{"prompt": "x", "seed": 9223372036854775808}', "seed is an integer outside the 64-bit range", "seed"),
            (b'{"prompt": "x", "seed": "7"}', "seed is a string", "seed"),
            (b'{"prompt": "x", "temperature": true}', "temperature is true", "temperature"),
            (b'{"prompt": "x", "stop": [""]}', "stop", "stop"),
            (b'{"prompt": "x", "logit_bias": {"999999": 1}}', "999999", "logit_bias"),
            (b'{"prompt": "x", "stop_token_ids": [-1]}', "stop_token_ids[0]", "stop_token_ids"),
            (b'{"prompt_ids": [1, 999999]}', "prompt_ids[1] is 999999", "prompt_ids"),
            (b'{"prompt_ids": []}', "empty list", "prompt_ids"),
            (b'{"prompt": [[]]}', "empty list", "prompt"),
            (b'{"prompt": ["a", "b"]}', "2 prompts", "prompt"),
            (b'{"messages": []}', "empty list", "messages"),
            (b'{"messages": [{"role": "user"}]}', "messages[0].content is missing", "messages"),
            (b'{"messages": [{"role": "usr", "content": "x"}]}', 'messages[0].role is "usr", expected system, user', "messages"),
            (b'{"custom_id": "c", "url": "/v1/completions", "body": {"prompt": "x"}}', "batch wrapper lines", "body"),
            (b'{"prompt": "x", "deterministic": true, "is_deterministic": false}', "differ", "deterministic"),
            (b'{"prompt": "x", "id": {"a": 1}}', "id is an object, expected a string of at most 256 bytes", "id"),
            (b'{"prompt": "x", "id": "' + b"x" * 257 + b'"}', "id is a string", "id"),
            (b'{"max_tokens": 5}', "missing", "prompt"),
            (b'{"prompt": "\xb2\xe2\xca\xd4"}', "not valid JSON", None),
            (b'{"prompt": "\\ud800"}', "not valid JSON", None),
            (b'{"prompt": ' + b"[" * 10000, "nested too deeply", None),
        ]
        lines = [good] + [b for b, _, _ in bad] + [b"   ", good]
        code, got, err, report = B.lines(lines)
        self.assertEqual(code, 1)
        self.assertEqual(len(got), len(bad) + 2)  # a blank line is no request
        for k, ((_, says, param), a) in enumerate(zip(bad, got[1:])):
            self.assertEqual(set(a), {"id", "line", "error"})
            self.assertEqual(a["line"], k + 2)
            self.assertIn(says, a["error"]["message"])
            self.assertEqual(a["error"]["param"], param)
            self.assertEqual(a["error"]["type"], "invalid_request_error")
        self.assertEqual(got[5]["id"], "a")
        self.assertEqual(got[0]["determinism"]["digest"], got[-1]["determinism"]["digest"])
        self.assertEqual(report["failed"], len(bad))
        self.assertEqual(report["stats"]["pages_free"], report["stats"]["pages_total"])

    def test_a_refused_line_keeps_its_id(self):
        lines = [b'{"id": "a", "prompt": "x", "seed": 9223372036854775808}', b'{"id": 7, "prompt": "x", "prompt": "y"}',
                 b'{"id": 8, "prompt": "\\u0000"}', b'{"id": "b", "prompt": 5}']
        code, got, _, _ = B.lines(lines)
        self.assertEqual((code, [a["id"] for a in got]), (1, ["a", 7, 8, "b"]))

    def test_the_context_limit(self):
        lines = [dict(prompt_ids=[5] * n, temperature=0, ignore_eos=True, max_tokens=100) for n in (63, 64, 65)]
        code, got, _, _ = B.lines(lines, "--max-model-len", "64")
        self.assertEqual(code, 1)
        self.assertEqual((len(got[0]["token_ids"]), got[0]["finish_reason"]), (1, "length"))
        for n, a in zip((64, 65), got[1:]):
            self.assertEqual((a["error"]["n_prompt_tokens"], a["error"]["n_ctx"]), (n, 64))
            self.assertEqual(a["error"]["code"], "context_length_exceeded")

    def test_scoring_a_whole_context(self):
        lines = [dict(prompt_ids=[5] * n, max_tokens=0, is_deterministic=True, **f) for n in (64, 65)
                 for f in (dict(echo=True), dict(prompt_logprobs=0))]
        code, got, _, _ = B.lines(lines, "--max-model-len", "64")
        self.assertEqual(code, 1)
        self.assertEqual([a.get("usage", {}).get("prompt_tokens") for a in got], [64, 64, None, None])
        self.assertEqual(len(got[1]["prompt_logprobs"]), 64)
        self.assertIn("65 tokens, which is over the context of 64", got[2]["error"]["message"])

    def test_a_prompt_of_many_megabytes_is_refused_at_once(self):
        t0 = time.time()
        code, got, _, _ = B.lines([dict(prompt="word " * (12 << 20)), dict(prompt="x", max_tokens=1)])
        self.assertEqual(code, 1)
        self.assertRegex(got[0]["error"]["message"], r"prompt has at least \d+ tokens, .*context of 8192")
        self.assertGreater(got[0]["error"]["n_prompt_tokens"], 8192)
        self.assertEqual(len(got[1]["token_ids"]), 1)
        self.assertLess(time.time() - t0, 25)

    def test_unknown_fields(self):
        line = dict(prompt="x", max_tokens=1, colour="red")
        code, got, err, _ = B.lines([line, line])
        self.assertEqual(code, 0)
        self.assertEqual(err.count("unknown field colour is ignored"), 1)
        code, got, err, _ = B.lines([line], "--strict")
        self.assertEqual((code, got[0]["error"]["param"]), (1, "colour"))

    def test_each_unknown_field_is_told_once(self):
        line = dict(prompt="x", max_tokens=1)
        lines = [dict(line, colour=1, temprature=0), dict(line, temprature=0), dict(line, colour=1, shape=2), line]
        code, _, err, _ = B.lines(lines)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"in\.jsonl:1: unknown field temprature is ignored, did you mean temperature\?")
        self.assertRegex(err, r"in\.jsonl:3: unknown field shape is ignored \(")
        for name in ("colour", "temprature", "shape"):
            self.assertEqual(err.count(f"unknown field {name} "), 1)
        self.assertIn("warning: 3 lines with unknown fields\n", err)

    def test_warnings_of_unknown_fields_are_bounded(self):
        code, _, err, _ = B.lines([dict(prompt="x", max_tokens=1, **{f"zz{k}_{k}": 1}) for k in range(30)])
        self.assertEqual(code, 0, err)
        self.assertEqual(err.count("unknown field zz"), 16)
        self.assertEqual(err.count("more unknown fields"), 1)
        self.assertIn("warning: 30 lines with unknown fields\n", err)

    def test_other_names_of_fields(self):
        line = dict(prompt="x", max_tokens=1)
        lines = [dict(line, deterministic=True, custom_id="a"), dict(line, deterministic=False, custom_id=2), line,
                 dict(line, deterministic=3, custom_id="d")]
        for flags, classes in (((), ["pinned", "fast", "fast"]), (("--deterministic",), ["pinned", "fast", "pinned"])):
            code, got, err, _ = B.lines(lines, *flags)
            self.assertEqual((code, [a["id"] for a in got]), (1, ["a", 2, None, "d"]), err)
            self.assertEqual([a["determinism"]["class"] for a in got[:3]], classes)
            self.assertEqual(got[3]["error"]["message"], "deterministic is 3, expected true or false")
            self.assertNotIn("unknown", err)

    def test_answers_that_the_context_cuts_are_told_once(self):
        lines = [dict(prompt_ids=[5] * 60, max_tokens=100, ignore_eos=True)] * 3
        code, got, err, _ = B.lines(lines, "--max-model-len", "64")
        self.assertEqual((code, [a["finish_reason"] for a in got]), (0, ["length"] * 3))
        self.assertEqual(err.count("max_tokens is 100, but the context of 64 leaves 4 for the answer"), 1)

    def test_flags_are_defaults_of_lines(self):
        lines = [dict(prompt="x"), dict(prompt="x", max_tokens=2), dict(prompt="x", max_completion_tokens=3),
                 dict(prompt="x", max_completion_tokens=None)]
        code, got, err, _ = B.lines(lines, "--max-tokens", "5", "--ignore-eos", "--deterministic-default")
        self.assertEqual(code, 0, err)
        self.assertEqual([len(a["token_ids"]) for a in got], [5, 2, 3, 5])
        self.assertEqual([a["determinism"]["class"] for a in got], ["pinned"] * 4)

    def test_logprobs_are_fp32_exactly(self):
        _, got, _, _ = B.lines([dict(prompt="The sea", max_tokens=12, logprobs=5, prompt_logprobs=2, temperature=0,
                                     is_deterministic=True)])
        a = got[0]
        for x in a["logprobs"]["token_logprobs"]:
            self.assertEqual(float("%.9g" % struct.unpack("<f", bits(x))[0]), x)
        self.assertIsNone(a["prompt_logprobs"][0])
        for entry in a["prompt_logprobs"][1:]:
            self.assertIn(len(entry), (2, 3))
            ranks = sorted(v["rank"] for v in entry.values())
            self.assertEqual(ranks[:2], [1, 2])
            for v in entry.values():
                self.assertEqual(set(v), {"logprob", "rank", "decoded_token"})
        for top, lp in zip(a["logprobs"]["top_logprobs"], a["logprobs"]["token_logprobs"]):
            self.assertEqual(max(top.values()), lp)  # greedy

    def test_prompt_logprobs_equal_decoding(self):
        """The answer, read again as a prompt, has the bits it was decoded with."""
        ask = dict(prompt="The sea", max_tokens=24, logprobs=1, temperature=0, is_deterministic=True, return_token_ids=True)
        _, first, _, _ = B.lines([ask])
        ids = first[0]["prompt_token_ids"] + first[0]["token_ids"]
        _, again, _, _ = B.lines([dict(prompt_ids=ids, max_tokens=0, prompt_logprobs=0, is_deterministic=True)])
        n = len(first[0]["prompt_token_ids"])
        got = [again[0]["prompt_logprobs"][n + k][str(t)]["logprob"] for k, t in enumerate(first[0]["token_ids"])]
        self.assertEqual(got, first[0]["logprobs"]["token_logprobs"])

    def test_choices(self):
        ask = dict(prompt="Once", n=4, temperature=1.2, seed=9, max_tokens=10, is_deterministic=True)
        _, got, _, _ = B.lines([ask, ask, dict(ask, n=1)])
        ids = [[c["token_ids"] for c in a["choices"]] for a in got[:2]]
        self.assertEqual(ids[0], ids[1])
        self.assertGreater(len({tuple(i) for i in ids[0]}), 1)
        self.assertEqual(ids[0][0], got[2]["token_ids"])

    def test_echo(self):
        _, got, _, _ = B.lines([dict(prompt="The sea", max_tokens=0, echo=True, logprobs=0),
                                dict(prompt="The sea", max_tokens=2, echo=True)])
        self.assertEqual((got[0]["text"], got[0]["token_ids"]), ("The sea", []))
        self.assertIsNone(got[0]["logprobs"]["token_logprobs"][0])
        self.assertTrue(got[1]["text"].startswith("The sea") and len(got[1]["text"]) > 7)

    def test_output_on_a_full_disk(self):
        code, _, err = B.run("run", "--weights", B.weights, "--input", "-", "--output", "/dev/full",
                             stdin=b'{"prompt": "x", "max_tokens": 2}\n' * 3)
        self.assertEqual(code, 1)
        self.assertIn("steadfast: /dev/full: cannot write: No space left on device", err)

    def test_a_file_that_may_grow_no_more_keeps_whole_lines(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

        with tempfile.TemporaryDirectory() as tmp:
            target = os.path.join(tmp, "out.jsonl")
            p = self.start("--input", "-", "--output", target, preexec_fn=limit)
            _, err = p.communicate(b'{"prompt": "x", "max_tokens": 2}\n' * 6)
            self.assertEqual(p.returncode, 1, err)
            with open(target) as f:
                lines = f.read()
            whole = int(re.search(r"cannot write: File too large; it holds (\d+) whole lines", err.decode()).group(1))
        self.assertTrue(lines.endswith("\n"))
        self.assertEqual(len([json.loads(x) for x in lines.splitlines()]), whole)
        self.assertTrue(0 < whole < 6)

    def test_a_report_that_cannot_be_written_is_an_error(self):
        code, out, err = B.run("run", "--weights", B.weights, "--prompt", "x", "--max-tokens", "1", "--report", "/dev/full")
        self.assertEqual(code, 1)
        self.assertIn("/dev/full: cannot write", err)

    def test_line_ends_of_every_kind(self):
        line = b'{"id": 7, "prompt": "x", "max_tokens": 1}'
        for text in (line, line + b"\r\n", b"\n\n" + line + b"\n\n", b"  " + line + b"  \n"):
            code, out, err = B.run("run", "--weights", B.weights, "--input", "-", stdin=text)
            self.assertEqual((code, [json.loads(x)["id"] for x in out.splitlines()]), (0, [7]), err)

    def test_no_lines_are_no_answers(self):
        code, out, err = B.run("run", "--weights", B.weights, "--input", "-", stdin=b"")
        self.assertEqual((code, out), (0, b""), err)

    def test_a_line_too_long_to_keep(self):
        line = b'{"id": 1, "prompt": "x", "max_tokens": 1}\n'
        code, out, err = B.run("run", "--weights", B.weights, "--input", "-", stdin=b"x" * (65 << 20) + b"\n" + line)
        self.assertEqual(code, 1, err)
        first, second = [json.loads(x) for x in out.splitlines()]
        self.assertEqual((first["line"], second["id"]), (1, 1))
        self.assertIn("longer than 64 MiB", first["error"]["message"])

    def test_missing_input_and_output_folder(self):
        code, _, err = B.run("run", "--weights", B.weights, "--input", "/nonexistent.jsonl")
        self.assertEqual(code, 1)
        self.assertIn("/nonexistent.jsonl: cannot open", err)
        code, _, err = B.run("run", "--weights", B.weights, "--input", "-", "--output", "/nonexistent/x")
        self.assertEqual(code, 1)
        self.assertIn("/nonexistent/x: cannot open", err)

    def start(self, *args, **kw):
        return subprocess.Popen([B.path, "run", "--weights", B.weights, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **kw)

    def test_answers_come_before_the_input_ends(self):
        p = self.start("--input", "-")
        p.stdin.write(b'{"id": 1, "prompt": "x", "max_tokens": 2}\n')
        p.stdin.flush()
        self.assertEqual(json.loads(p.stdout.readline())["id"], 1)
        out, err = p.communicate(b'{"id": 2, "prompt": "x", "max_tokens": 2}\n')
        self.assertEqual((p.returncode, json.loads(out)["id"]), (0, 2))

    def test_sigint_keeps_what_is_done(self):
        p = self.start("--input", "-")
        p.stdin.write(b'{"id": 1, "prompt": "x", "max_tokens": 2}\n')
        p.stdin.flush()
        first = p.stdout.readline()
        p.stdin.write(b'{"id": 2, "prompt": "x", "max_tokens": 2000, "ignore_eos": true}\n')
        p.stdin.flush()
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 130, err)
        self.assertEqual((json.loads(first)["id"], out), (1, b""))
        self.assertIn(b"interrupted; stdout holds 1 answer\n", err)

    def test_a_read_error_on_the_input_loses_no_finished_answer(self):
        """The reading end of a terminal: what was written comes first, then, once the other end is closed, EIO."""
        reader, writer = os.openpty()
        tty.setraw(writer)
        p = subprocess.Popen([B.path, "run", "--weights", B.weights, "--input", "-"], stdin=reader, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        os.write(writer, b'{"id": 1, "prompt": "x", "max_tokens": 1}\n')
        first = p.stdout.readline()  # the engine is up
        os.write(writer, b'{"id": 2, "prompt": "x", "max_tokens": 8000, "ignore_eos": true}\n'
                         b'{"id": 3, "prompt": "x", "max_tokens": 1}\n')
        time.sleep(2)  # 3 is done and waits for 2, which is not
        os.close(writer)
        out, err = p.communicate(timeout=60)
        os.close(reader)
        self.assertEqual(p.returncode, 1, err)
        self.assertEqual([json.loads(x)["id"] for x in (first, *out.splitlines())], [1, 3])
        self.assertIn(b"steadfast: stdin: cannot read: Input/output error", err)

    def test_a_closed_pipe_is_an_error_not_a_crash(self):
        p = self.start("--input", "-")
        p.stdout.close()
        p.stdin.write(b'{"prompt": "x", "max_tokens": 2}\n')
        p.stdin.close()
        err = p.stderr.read().decode()
        p.stderr.close()
        self.assertEqual(p.wait(30), 1)
        self.assertIn("stdout: cannot write: Broken pipe", err)


class Selftest(unittest.TestCase):
    def test_the_contract_holds_here(self):
        t0 = time.time()
        code, out, err = B.run("selftest", "--weights", B.weights)
        self.assertEqual(code, 0, out.decode() + err)
        text = out.decode()
        for check in ("row buckets", "row positions", "neighbours", "poisoned neighbours", "stale drafts", "prefill chunks",
                      "decode", "verify windows", "long context", "isa generic", "threads 1", "threads 2"):
            self.assertRegex(text, rf"(?m)^ok +{re.escape(check)} +\d+ rows compared, 0 differ")
        self.assertRegex(text, r"fast class differs, as it may; sf-[0-9a-f]{32}")
        print(f"selftest: {time.time() - t0:.1f} s", file=sys.stderr)

    def test_a_planted_fault_is_named(self):
        code, out, err = B.run("selftest", "--weights", B.weights, "--json", env={"STEADFAST_DEBUG": "fault=12"})
        self.assertEqual(code, 1, err)
        result = json.loads(out)
        failed = [c for c in result["checks"] if c["failed"]]
        self.assertEqual(result["failed"], len(failed))
        self.assertIn("row buckets", [c["name"] for c in failed])
        self.assertIn("log-probability at position", failed[0]["first"])
        sound = [c["name"] for c in result["checks"] if not c["failed"] and not c["control"]]
        self.assertIn("poisoned neighbours", sound)  # compares K and V only, and those are true


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    B = Binary(sys.argv[1], sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
