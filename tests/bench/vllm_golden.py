#!/usr/bin/env python3
"""What vLLM's benchmark makes of recorded streams: its own functions, under a clock that the records set.

usage: vllm_golden.py VLLM_SOURCES VERSION >vllm.json     (the unpacked source distribution; needs numpy)"""

import ast
import asyncio
import dataclasses
import importlib.util
import json
import random
import sys
import types
import typing

import numpy

PERCENTILES = [25.0, 50.0, 90.0, 99.0, 99.9]
DURATION = 7.75


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


CLOCK = Clock()


class Any(types.ModuleType):
    """A module whose every name is something that can be called."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Any(name)

    def __call__(self, *_, **__):
        return self

    def __or__(self, _):  # in annotations
        return self


def load(path):
    """vLLM's request functions; what they import is not needed here."""
    for name in ("aiohttp", "regex", "tqdm", "tqdm.asyncio"):
        sys.modules[name] = Any(name)
    spec = importlib.util.spec_from_file_location("requests_of_vllm", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.time = CLOCK
    return module


def load_metrics(path):
    """calculate_metrics and what it needs of serve.py, without its other imports."""
    wanted = {"BenchmarkMetrics", "calculate_metrics", "MILLISECONDS_TO_SECONDS_CONVERSION"}
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    tree.body = [n for n in tree.body if getattr(n, "name", None) in wanted or
                 (isinstance(n, ast.Assign) and getattr(n.targets[0], "id", None) in wanted)]
    names = {"np": numpy, "dataclass": dataclasses.dataclass, "TERM_PLOTLIB_AVAILABLE": False, "warnings": __import__("warnings"),
             "print": lambda *_, **__: None, "__name__": "metrics_of_vllm", "Optional": typing.Optional, "Any": typing.Any}
    for name in ("SampleRequest", "RequestFuncOutput", "TokenizerLike", "PreTrainedTokenizerBase"):
        names[name] = object
    exec(compile(tree, path, "exec"), names)  # noqa: S102
    return names["calculate_metrics"]


class Session:
    """Answers with recorded bytes, the clock set to when they came."""

    def __init__(self, request):
        self.request = request

    def post(self, **_):
        request = self.request

        class Content:
            async def iter_any(self):
                for at, text in request["reads"]:
                    CLOCK.now = at
                    yield text.encode()

        class Response:
            status, content = 200, Content()

            async def __aenter__(self):
                return self

            async def __aexit__(self, *_):
                return False

        return Response()


def event(draw, chat, text, finish=None, role=False):
    delta = {"role": "assistant", "content": text} if role else {"content": text}
    choice = {"index": 0, "delta": delta} if chat else {"index": 0, "text": text}
    return "data: " + json.dumps({"id": f"c{draw.random()}", "choices": [{**choice, "finish_reason": finish}]}) + "\n\n"


def recorded(draw, chat, n, extra):
    """A stream of n chunks: some reads hold several events, some a part of one; usage counts `extra` tokens more than chunks."""
    start = at = draw.uniform(100, 104)
    events = ([event(draw, chat, draw.choice(["", "A"]), role=True)] if chat else []) + \
             [event(draw, chat, draw.choice(["a", " b", "", "äö", "line\n"]), "length" if i == n - 1 and not chat else None) for i in range(n)]
    if chat:  # an end without a token
        events.append("data: " + json.dumps({"id": "e", "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}) + "\n\n")
    chunks = len(events)
    used = {"prompt_tokens": draw.randrange(1, 900), "completion_tokens": chunks + extra}
    events += ["data: " + json.dumps({"id": "u", "choices": [], "usage": used}) + "\n\n", "data: [DONE]\n\n"]
    if draw.random() < 0.5:
        events.insert(0, ": ping\n\n")
    reads = []
    while events:
        take = draw.choice([1, 1, 1, 2, 3])
        text, events = "".join(events[:take]), events[take:]
        at += draw.expovariate(8)
        cut = text.find('"id"') + 2 if draw.random() < 0.3 else -1
        if cut > 2:
            reads += [[at, text[:cut]]]
            at += draw.expovariate(30)
            text = text[cut:]
        reads.append([at, text])
    return {"chat": chat, "start": start, "prompt_len": used["prompt_tokens"], "reads": reads}


def main():
    sources, version = sys.argv[1:3]
    requests = load(sources + "/vllm/benchmarks/lib/endpoint_request_func.py")
    calculate = load_metrics(sources + "/vllm/benchmarks/serve.py")
    draw = random.Random(11)
    records = [recorded(draw, i % 2 == 1, n, extra) for i, (n, extra) in enumerate(
        [(1, 0), (1, 0), (2, 0), (2, 3), (5, 0), (9, 1), (20, 0), (40, 7), (13, 0), (3, 0), (30, 2)])]
    outputs, inputs = [], []
    for r in records:
        ask = requests.async_request_openai_chat_completions if r["chat"] else requests.async_request_openai_completions
        CLOCK.now = r["start"]
        given = requests.RequestFuncInput(prompt="x", api_url="http://x/v1/chat/completions" if r["chat"] else "http://x/v1/completions",
                                          prompt_len=r["prompt_len"], output_len=1, model="m")
        outputs.append(asyncio.run(ask(given, Session(r))))
        assert outputs[-1].success, outputs[-1].error
        outputs[-1].start_time = r["start"]
        inputs.append(types.SimpleNamespace(prompt_len=r["prompt_len"]))
    metrics, _ = calculate(inputs, outputs, DURATION, None, PERCENTILES, {})
    figures = {"completed": metrics.completed, "total_input_tokens": metrics.total_input, "total_output_tokens": metrics.total_output,
               "request_throughput": metrics.request_throughput, "output_throughput": metrics.output_throughput,
               "total_token_throughput": metrics.total_token_throughput, "max_output_tokens_per_s": metrics.max_output_tokens_per_s}
    for m in ("ttft", "tpot", "itl", "e2el"):
        figures[m] = {"mean": float(getattr(metrics, f"mean_{m}_ms")), "median": float(getattr(metrics, f"median_{m}_ms")),
                      "std": float(getattr(metrics, f"std_{m}_ms")), "percentiles": [float(v) for _, v in getattr(metrics, f"percentiles_{m}_ms")]}
    for r, o in zip(records, outputs):
        del r["prompt_len"]
        r["expect"] = {"ttft": o.ttft, "itl": o.itl, "latency": o.latency, "output_tokens": o.output_tokens, "input_tokens": o.prompt_len,
                       "text": o.generated_text}
    print(json.dumps({"vllm": version, "duration": DURATION, "percentiles": PERCENTILES, "figures": figures, "requests": records}, indent=1,
                     ensure_ascii=False))


main()
