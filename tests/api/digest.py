#!/usr/bin/env python3
"""The digest that test_api_answer.c expects, written again from the layout in runtime/api/digest.h."""

import hashlib
import struct


def u32(v):
    return struct.pack("<I", v)


def i32(v):
    return struct.pack("<i", v)


def f32(v):
    return struct.pack("<f", v)


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def token(id, logprob, tops):
    return i32(id) + f32(logprob) + u32(len(tops)) + b"".join(i32(i) + f32(l) for i, l in tops)


b = text("steadfast digest 1") + text("sf-test")
b += u32(3) + i32(256) + i32(ord("h")) + i32(ord("i"))
b += f32(1) + i32(0) + f32(1) + f32(0) + f32(1) + f32(0) + f32(0)
b += struct.pack("<q", -5) + i32(1) + i32(16) + i32(0) + u32(0)
b += u32(1) + text(".") + u32(1) + i32(9) + u32(1) + i32(7) + f32(1.5)
b += u32(1) + u32(1) + u32(2)  # one choice, ended by stop (1), two tokens
b += token(97, -0.5, [(97, -0.5), (258, -1.0)]) + token(258, -3.0, [(97, -0.25), (98, -2.0)])
b += u32(3) + token(104, -4.0, [(120, -0.125)]) + token(105, -0.75, [(105, -0.75)])
print(hashlib.sha256(b).hexdigest())
