#!/usr/bin/env python3
"""Writes the tiny checkpoints of tests/golden/checkpoints with transformers, and what transformers computes from them.

usage: make_checkpoints.py OUT_DIR      (needs torch and transformers; no GPU)

Each directory holds a Hugging Face checkpoint of two layers (config.json, model.safetensors, generation_config.json, a
byte-level tokenizer.json) and expected.json: prompts of token ids and, for every position, the 8 likeliest next ids with
their log-probabilities, computed in fp32 from the bf16 weights. Positions run past the original context of the scaled kinds
of RoPE. Some config.json are rewritten to the older spellings of the same facts (NAMES in OLD_SPELLING)."""

import json
import os
import sys

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

TOKENS = 320
TOP = 8
LENGTHS = (3, 40, 130)
SCALED = {"linear": {"factor": 4.0},
          "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
          "yarn": {"factor": 4.0, "original_max_position_embeddings": 32}}
OLD_SPELLING = ("llama-linear", "mistral-default", "qwen2-tied", "llama3-untied")


def shape(hidden, mlp, heads, kv, dim, tied, rope="default", theta=10000.0, vocab=TOKENS, **more):
    return dict(hidden_size=hidden, intermediate_size=mlp, num_attention_heads=heads, num_key_value_heads=kv, head_dim=dim,
                tie_word_embeddings=tied, vocab_size=vocab, num_hidden_layers=2, max_position_embeddings=256, rms_norm_eps=1e-5,
                bos_token_id=0, eos_token_id=1,
                rope_parameters={"rope_type": rope, "rope_theta": theta, **SCALED.get(rope, {})}) | more


CHECKPOINTS = {
    "llama-default": (LlamaConfig, shape(128, 208, 2, 2, 64, False)),
    "llama-linear": (LlamaConfig, shape(96, 176, 3, 1, 64, True, "linear")),
    "llama3-untied": (LlamaConfig, shape(96, 208, 4, 1, 64, False, "llama3", 500000.0, eos_token_id=[1, 2])),
    "llama-yarn": (LlamaConfig, shape(96, 160, 6, 2, 64, False, "yarn")),
    "mistral-default": (MistralConfig, shape(128, 176, 4, 1, 64, False, theta=1000000.0, sliding_window=None)),
    "qwen2-tied": (Qwen2Config, shape(96, 208, 7, 1, 64, True, theta=1000000.0, vocab=328)),
    "qwen2-yarn": (Qwen2Config, shape(72, 144, 2, 2, 128, False, "yarn", 1000000.0)),
    "qwen3-tied": (Qwen3Config, shape(104, 176, 4, 1, 128, True, theta=1000000.0, vocab=328)),
    "qwen3-yarn": (Qwen3Config, shape(96, 144, 3, 1, 64, False, "yarn", 1000000.0)),
}


def coarse(t, std, g):
    """Random values of few bits: they compress well, and nothing here needs more."""
    return (torch.randn(t.shape, generator=g) * 2).round().clamp(-6, 6) / 2 * std


def draw(model, seed):
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if name.endswith("norm.weight"):
            v = 1 + coarse(p, 0.125, g)
        elif name.endswith("bias"):
            v = coarse(p, 0.25, g)
        elif "embed_tokens" in name:
            v = coarse(p, 0.5, g)
        else:
            v = coarse(p, 1.5 * p.shape[1] ** -0.5, g)
        p.data.copy_(v.bfloat16().float())


def old_spelling(path):
    with open(path, encoding="utf-8") as f:
        c = json.load(f)
    rope = dict(c.pop("rope_parameters"))
    c["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    c["rope_scaling"] = None if kind == "default" else {"type": kind, **rope}
    c["torch_dtype"] = c.pop("dtype")
    if c.get("use_sliding_window") is False:  # Qwen 2.5 as published: a window that is not in use
        c["sliding_window"] = c["max_position_embeddings"]
        c.pop("layer_types", None)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(c, f, indent=2)
        f.write("\n")


def tokenizer(path):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<s>", "</s>", "<|end|>", *alphabet]
    merges = []
    for i in range(TOKENS - len(names)):
        pair = alphabet[65 + i % 26], alphabet[65 + (i * 7 + i // 26) % 26]
        if pair not in merges:
            merges.append(pair)
    names += ["".join(m) for m in merges]
    names += [f"<|unused{i}|>" for i in range(TOKENS - len(names))]
    t = Tokenizer(models.BPE({n: i for i, n in enumerate(names)}, merges))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.add_special_tokens(["<s>", "</s>", "<|end|>"])
    t.save(path)


def top(logits):
    p, ids = torch.log_softmax(logits.float(), -1).topk(TOP)
    return [[i.tolist(), [float(f"{x:.6f}") for x in v.tolist()]] for i, v in zip(ids, p)]


def make(out, number, name):
    kind, figures = CHECKPOINTS[name]
    config = kind(**figures, dtype="bfloat16", attn_implementation="eager")
    model = transformers.AutoModelForCausalLM.from_config(config, torch_dtype=torch.float32).eval()
    draw(model, number)
    g = torch.Generator().manual_seed(100 + number)
    prompts = [torch.randint(3, TOKENS, (n,), generator=g).tolist() for n in LENGTHS]
    with torch.no_grad():
        expected = [top(model(torch.tensor([p])).logits[0]) for p in prompts]
    where = os.path.join(out, name)
    model.bfloat16().save_pretrained(where)
    tokenizer(os.path.join(where, "tokenizer.json"))
    if name in OLD_SPELLING:
        old_spelling(os.path.join(where, "config.json"))
    with open(os.path.join(where, "expected.json"), "w", encoding="utf-8") as f:
        json.dump({"transformers": transformers.__version__, "torch": torch.__version__, "prompts": prompts, "logprobs": expected}, f,
                  separators=(",", ":"))
        f.write("\n")
    sure = sum(e[1][0] > -0.7 for p in expected for e in p)
    print(name, sum(p.numel() for p in model.parameters()), f"parameters, {sure} of {sum(LENGTHS)} positions with a likely token")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for number, name in enumerate(CHECKPOINTS):
        make(sys.argv[1], number, name)


if __name__ == "__main__":
    main()
