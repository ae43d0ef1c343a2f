#!/usr/bin/env python3
"""The log-probabilities of a Llama 3.1 shape with random weights, beside transformers' on the same weights.

usage: torch_llama.py BINARY [--seed N] [--layers N]

BINARY is steadfast-llama-3.1-8b-2l-h200. The weights are drawn here as runtime/model/weights_random.c says (Philox keyed
by seed, counted by column pair, packed row, slot and layer), rounded to bf16, and run by transformers in fp32."""

import argparse
import json
import subprocess
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

DEV = "cuda"
VOCAB, HIDDEN, HEADS, KV, DIM, MLP = 128256, 4096, 32, 8, 128, 14336
CENTRE, UNIT = 262140, 1.0 / 75674.45447441296
MEAN_MAX, TOP_MIN = 0.05, 0.97
MASK = 0xFFFFFFFF
# slots in the plan's order; per layer those of a block
EMBED, ATTN_NORM, QKV, O, MLP_NORM, GATE_UP, DOWN, FINAL_NORM, HEAD = range(9)


def philox(c0, c1, c2, c3, seed):
    """Philox4x32-10 on int64 tensors that hold 32-bit words."""
    k0, k1 = seed & MASK, seed >> 32
    for _ in range(10):
        h0, l0 = mul(0xD2511F53, c0)
        h1, l1 = mul(0xCD9E8D57, c2)
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def mul(a, c):
    """High and low words of a 32 x 32 bit product, without 64-bit overflow."""
    lo, hi = a * (c & 0xFFFF), a * (c >> 16)
    low = lo + ((hi & 0xFFFF) << 16)
    return (hi >> 16) + (low >> 32), low & MASK


def draw(seed, slot, layer, rows, cols, mean, scale):
    """fp32 [rows, cols] in the order of packed rows."""
    out = torch.empty(rows, cols, device=DEV)
    step = max(1, (1 << 24) // cols)
    pair = torch.arange((cols + 1) // 2, device=DEV, dtype=torch.int64)
    for r in range(0, rows, step):
        row = torch.arange(r, min(rows, r + step), device=DEV, dtype=torch.int64)[:, None]
        zero = torch.zeros(row.shape[0], pair.shape[0], device=DEV, dtype=torch.int64)
        w = philox(zero + pair, zero + row, zero + slot, zero + layer, seed)
        sums = [(a & 0xFFFF) + (a >> 16) + (b & 0xFFFF) + (b >> 16) for a, b in ((w[0], w[1]), (w[2], w[3]))]
        both = torch.stack(sums, 2).reshape(row.shape[0], -1)[:, :cols]
        out[r:r + row.shape[0]] = mean + scale * (2 * both - CENTRE).float()
    return out


def matrix(seed, slot, layer, n, k, std=None):
    scale = torch.tensor(UNIT / k**0.5 if std is None else std * UNIT, dtype=torch.float64).float().item()
    return draw(seed, slot, layer, n, k, 0.0, scale).bfloat16().float()


def norm(seed, slot, layer):
    return draw(seed, slot, layer, 1, HIDDEN, 1.0, torch.tensor(0.1 * UNIT).item())[0]


def gate_up(seed, layer):
    """Packed rows alternate in blocks of 16: gate, up."""
    w = matrix(seed, GATE_UP, layer, 2 * MLP, HIDDEN).view(-1, 2, 16, HIDDEN)
    return w[:, 0].reshape(MLP, HIDDEN), w[:, 1].reshape(MLP, HIDDEN)


def model(seed, layers):
    cfg = LlamaConfig(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=MLP, num_hidden_layers=layers,
                      num_attention_heads=HEADS, num_key_value_heads=KV, rms_norm_eps=1e-5, rope_theta=500000.0,
                      max_position_embeddings=131072, tie_word_embeddings=False, attn_implementation="eager",
                      rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})
    with torch.device("meta"):
        m = LlamaForCausalLM(cfg)
    m = m.to_empty(device=DEV).float()
    state = {"model.embed_tokens.weight": matrix(seed, EMBED, 0, VOCAB, HIDDEN, 1.0),
             "model.norm.weight": norm(seed, FINAL_NORM, 0), "lm_head.weight": matrix(seed, HEAD, 0, VOCAB, HIDDEN)}
    for i in range(layers):
        p = f"model.layers.{i}."
        q, k, v = matrix(seed, QKV, i, (HEADS + 2 * KV) * DIM, HIDDEN).split([HEADS * DIM, KV * DIM, KV * DIM])
        gate, up = gate_up(seed, i)
        state |= {p + "input_layernorm.weight": norm(seed, ATTN_NORM, i), p + "self_attn.q_proj.weight": q,
                  p + "self_attn.k_proj.weight": k, p + "self_attn.v_proj.weight": v,
                  p + "self_attn.o_proj.weight": matrix(seed, O, i, HIDDEN, HIDDEN),
                  p + "post_attention_layernorm.weight": norm(seed, MLP_NORM, i), p + "mlp.gate_proj.weight": gate,
                  p + "mlp.up_proj.weight": up, p + "mlp.down_proj.weight": matrix(seed, DOWN, i, HIDDEN, MLP)}
    m.load_state_dict(state, strict=True)
    rope = type(m.model.rotary_emb)(config=cfg, device=DEV)  # its buffers are computed, not loaded
    m.model.rotary_emb = rope
    return m.eval()


def engine(binary, seed, prompts):
    with tempfile.TemporaryDirectory() as tmp:
        source, target = tmp + "/in.jsonl", tmp + "/out.jsonl"
        with open(source, "w", encoding="utf-8") as f:
            for i, ids in enumerate(prompts):
                f.write(json.dumps({"id": str(i), "prompt_ids": ids, "max_tokens": 0, "prompt_logprobs": 1,
                                    "is_deterministic": True}) + "\n")
        subprocess.run([binary, "run", "--random-weights", str(seed), "--input", source, "--output", target], check=True)
        with open(target, encoding="utf-8") as f:
            return [json.loads(line)["prompt_logprobs"] for line in f]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("binary")
    a.add_argument("--seed", type=int, default=5)
    a.add_argument("--layers", type=int, default=2)
    o = a.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    g = torch.Generator().manual_seed(1)
    prompts = [torch.randint(0, 128000, (n,), generator=g).tolist() for n in (5, 64, 333, 1200)]
    got = engine(o.binary, o.seed, prompts)
    m = model(o.seed, o.layers)
    total = tops = 0
    diff = worst = 0.0
    for ids, entries in zip(prompts, got):
        with torch.no_grad():
            want = torch.log_softmax(m(torch.tensor([ids], device=DEV)).logits[0].float(), -1)
        for i in range(len(ids) - 1):
            e = entries[i + 1]
            d = abs(e[str(ids[i + 1])]["logprob"] - want[i, ids[i + 1]].item())
            best = next(int(k) for k, v in e.items() if v["rank"] == 1)
            total, diff, worst = total + 1, diff + d, max(worst, d)
            tops += best == int(want[i].argmax())
    ok = diff / total <= MEAN_MAX and tops / total >= TOP_MIN
    print(f"{total} positions: mean |difference| {diff / total:.4f} (at most {MEAN_MAX}), worst {worst:.3f}, same top choice "
          f"{100 * tops / total:.2f} % (at least {100 * TOP_MIN:.0f}): {'ok' if ok else 'FAILED'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
