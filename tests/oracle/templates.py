"""Chat templates by jinja2, as transformers sets it up, and by ours. usage: templates.py RENDER_CHAT PATH...
PATH: *.jinja files, tokenizer_config.json files, llama.cpp's test-chat-template.cpp, or folders with such. A line for each template; of those of the families that
models/ has, none may differ or be refused."""
import ast
import json
import pathlib
import re
import struct
import subprocess
import sys

import chats

FAMILIES = ("llama-2", "llama-3", "llama-4", "mistral", "mixtral", "qwen", "smollm", "tinyllama", "zephyr")
UNSUPPORTED = 4  # sf_code


class Program:
    def __init__(self, program):
        self.child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **question):
        data = json.dumps(question).encode()
        self.child.stdin.write(struct.pack("<I", len(data)) + data)
        self.child.stdin.flush()
        code, n = struct.unpack("<II", self.child.stdout.read(8))
        return code, self.child.stdout.read(n).decode()


def templates(path):
    if path.is_dir():
        for inner in sorted(path.rglob("*")):
            if inner.suffix in (".jinja", ".cpp") or inner.name == "tokenizer_config.json":
                yield from templates(inner)
    elif path.suffix == ".cpp":  # llama.cpp's test of older templates, which holds them as texts
        found = re.findall(r'/\* \.name= \*/ "(.*)",\n\s*/\* \.template_str=? \*/ (?:U8C\()?(".*")\)?,$', path.read_text(encoding="utf-8"), re.M)
        yield from ((name, ast.literal_eval(text)) for name, text in found)
    elif path.suffix == ".jinja":
        yield path.stem, path.read_text(encoding="utf-8")
    else:
        found = json.loads(path.read_text(encoding="utf-8")).get("chat_template", [])
        for item in found if isinstance(found, list) else [{"name": "", "template": found}]:
            yield f"{path.parent.name} {item['name']}".strip(), item["template"]


def requests():
    """Conversations with tools, documents and neither."""
    think = [chats.msg("user", "2+2?"), chats.msg("assistant", "<think>\nsum\n</think>\n\n4", reasoning_content="sum"),
             chats.msg("user", "and 3+3?"), chats.msg("assistant", "6"), chats.msg("user", "why?")]
    text_call = [{**chats.CALL[0], "function": {**chats.CALL[0]["function"], "arguments": json.dumps(chats.CALL[0]["function"]["arguments"])}}]
    more = {"think": think, "text_arguments": [chats.msg("user", "w"), chats.msg("assistant", None, tool_calls=text_call),
                                              chats.msg("tool", "1", tool_call_id="abcdefghi"), chats.msg("user", "ok")]}
    papers = [{"title": "T\u00e4", "text": "body <x>", "doc_id": 1}, {"title": "U", "text": "", "doc_id": 2}]
    for messages in {**chats.CHATS, **more}.values():
        for tools in chats.TOOLS.values():
            for prompt in (False, True):
                yield {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": prompt}
        yield {"messages": messages, "tools": None, "documents": papers, "add_generation_prompt": True}


def check(program, source):
    """How many requests jinja2 renders, how many of all come out otherwise, how many are refused; and an example."""
    rendered = differ = refused = 0
    example = ""
    for request in requests():
        want = chats.render(source, **request)
        code, got = program.ask(template=source, date=chats.DATE, bos="<s>", eos="</s>", **request)
        rendered += "out" in want
        if code == UNSUPPORTED and "out" in want:
            refused += 1
            example = example or got
        elif (got if code == 0 else None) != want.get("out"):
            differ += 1
            example = example or f"{want} {got}"
    return rendered, differ, refused, example


def main(program, paths):
    count = len(list(requests()))
    program = Program(program)
    failed = 0
    print(f"| template | family here | rendered of {count} | differ | refused | |\n|---|---|---|---|---|---|")
    for path in paths:
        for name, source in templates(pathlib.Path(path)):
            ours = any(f in name.lower() for f in FAMILIES)
            rendered, differ, refused, example = check(program, source)
            failed += ours and (differ or refused) > 0
            print(f"| {name} | {'yes' if ours else ''} | {rendered} | {differ} | {refused} | {example[:150]} |", flush=True)
    return failed != 0


sys.exit(main(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else __doc__)
