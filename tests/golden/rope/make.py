"""Writes frequencies.txt: rotary frequencies and attention factors of every kind, for tests/device/test_rope.c.

The formulas are those that Hugging Face's transformers publishes (5.24, modeling_rope_utils.py), written down again with
numpy in extended precision; an independent oracle, not a translation of runtime/device/rope.c. A line is a case:
  name kind head_dim theta factor low high original beta_fast beta_slow attention mscale mscale_all_dim truncate
  -> attention factor, then head_dim / 2 frequencies
numbers as C reads them; 0: not given. numpy 2; run: python3 make.py > frequencies.txt
"""
import numpy as np

L = np.longdouble
PI = L("3.14159265358979323846264338327950288")


def default(dim, theta):
    return L(1) / L(theta) ** (np.arange(0, dim, 2, dtype=L) / L(dim))


def linear(dim, theta, factor):
    return default(dim, theta) / L(factor)


def llama3(dim, theta, factor, low, high, original):
    f = default(dim, theta)
    wave = 2 * PI / f
    smooth = (L(original) / wave - L(low)) / (L(high) - L(low))
    blend = (1 - smooth) * f / L(factor) + smooth * f
    return np.where(wave > L(original) / L(low), f / L(factor), np.where(wave < L(original) / L(high), f, blend))


def yarn(dim, theta, factor, original, fast, slow, truncate):
    def correction(turns):
        return L(dim) * np.log(L(original) / (L(turns) * 2 * PI)) / (2 * np.log(L(theta)))

    low, high = correction(fast), correction(slow)
    if truncate:
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, L(0)), min(high, L(dim - 1))
    if low == high:
        high += L("0.001")
    ramp = np.clip((np.arange(dim // 2, dtype=L) - low) / (high - low), 0, 1)
    f = default(dim, theta)
    return f / L(factor) * ramp + f * (1 - ramp)


def yarn_attention(factor, attention, mscale, mscale_all_dim):
    def get(m):
        return L(1) if factor <= 1 else L("0.1") * L(m) * np.log(L(factor)) + 1

    if attention:
        return L(attention)
    return get(mscale) / get(mscale_all_dim) if mscale and mscale_all_dim else get(1)


def line(name, kind, dim, theta, factor=0, low=0, high=0, original=0, fast=32, slow=1, attention=0, mscale=0, all_dim=0,
         truncate=1):
    if kind == "linear":
        f, scale = linear(dim, theta, factor), 1
    elif kind == "llama3":
        f, scale = llama3(dim, theta, factor, low, high, original), 1
    elif kind == "yarn":
        f, scale = yarn(dim, theta, factor, original, fast, slow, truncate), yarn_attention(factor, attention, mscale, all_dim)
    else:
        f, scale = default(dim, theta), 1
    figures = [theta, factor, low, high, original, fast, slow, attention, mscale, all_dim, truncate]
    numbers = " ".join(repr(float(v)) for v in [scale, *f])
    print(name, kind, dim, *map(repr, figures), numbers)


line("plain", "default", 64, 100000.0)
line("linear", "linear", 128, 10000.0, 4.0)
line("linear-by-1", "linear", 80, 10000.0, 1.0)
line("llama-3.1", "llama3", 128, 500000.0, 8.0, 1.0, 4.0, 8192)
line("llama-3.2-1b", "llama3", 64, 500000.0, 32.0, 1.0, 4.0, 8192)
line("qwen2.5", "yarn", 128, 1000000.0, 4.0, original=32768)
line("qwen3", "yarn", 128, 1000000.0, 2.5, original=32768)
line("llama-2-yarn", "yarn", 128, 10000.0, 16.0, original=4096)
line("attention-factor", "yarn", 64, 10000.0, 4.0, original=2048, attention=1.25)
line("mscale", "yarn", 64, 10000.0, 40.0, original=4096, mscale=0.707, all_dim=1.0)
line("mscale-alone", "yarn", 64, 10000.0, 40.0, original=4096, mscale=0.707)
line("other-betas", "yarn", 96, 50000.0, 8.0, original=1024, fast=24.5, slow=2.0)
line("exact-range", "yarn", 64, 10000.0, 4.0, original=4096, truncate=0)
line("clamped-range", "yarn", 12, 10000.0, 4.0, original=64)
line("one-pair", "yarn", 8, 10000.0, 4.0, original=16, fast=5.0, slow=4.0)
line("factor-1", "yarn", 64, 10000.0, 1.0, original=4096)
