"""Bits of registers that nobody wrote move with the others, and a use that counts is a fault; random programs have a twin."""

import re

import numpy as np
import pytest
import scalar_bits as twin

from tensorcore_models import compiled

HEAD = """.version 8.8
.target sm_100a
.visible .entry k(.param .u64 x) .reqntid 32
{ .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<4>; .reg .b64 %x; .reg .b32 %t;
ld.param.u64 %x, [x]; mov.u32 %t, %tid.x; mad.wide.u32 %x, %t, 8, %x; ld.global.b32 %r1, [%x]; ld.global.b32 %r2, [%x+4];
mov.b32 {%h1, %h2}, %r1;
"""
#: In the programs %r9, %h9 and %d7 are never written.


#: Two words of each thread.
WORDS = np.random.default_rng(1).integers(0, 1 << 32, (32, 2), dtype=np.uint32)


def stored(body, value="%r3", kind="b32", words=WORDS, **options):
    """(words given, words after each thread stored a register at last)."""
    x = words.copy()
    given = x.copy()
    compiled.read(f"{HEAD}{body}\nst.global.{kind} [%x], {value}; ret; }}").run([x], **options)
    return given, x


@pytest.mark.parametrize(("body", "half"), [
    ("mov.b64 %d1, {%r1, %r9}; mov.b64 {%r3, _}, %d1;", "mov.b64 {_, %r3}, %d1;"),
    ("mov.b64 %d1, {%r1, %r9}; mov.b64 %d2, %d1; cvt.u32.u64 %r3, %d2;", "shr.u64 %d2, %d2, 32; cvt.u32.u64 %r3, %d2;"),
    ("mov.b64 %d1, {%r9, %r1}; shr.u64 %d2, %d1, 32; cvt.u32.u64 %r3, %d2;", "cvt.u32.u64 %r3, %d1;"),
    ("mov.b64 %d1, {%r1, %r9}; shl.b64 %d2, %d1, 32; mov.b64 {_, %r3}, %d2;", "mov.b64 {_, %r3}, %d1;"),
    ("mov.b32 %r4, {%h1, %h7}; and.b32 %r3, %r4, 0xffff; prmt.b32 %r3, %r3, %r1, 0x7610;", "mov.b32 %r3, %r4;"),
    ("mov.b32 %r4, {%h7, %h2}; prmt.b32 %r3, %r1, %r4, 0x7610;", "prmt.b32 %r3, %r1, %r4, 0x5410;"),
    ("mov.b32 %r4, {%h1, %h7}; bfi.b32 %r3, %r2, %r4, 16, 16; bfi.b32 %r3, %r1, %r3, 0, 32;", "bfi.b32 %r3, %r4, %r1, 0, 17;"),
    ("setp.ge.u32 %p1, %r1, 0; selp.b32 %r3, %r1, %r9, %p1;", "selp.b32 %r3, %r9, %r1, %p1;"),
    ("mov.b64 %d1, {%r9, %r1}; mov.b64 {%r4, %r5}, %d1; lop3.b32 %r3, %r5, %r4, 0, 0xf0;", "lop3.b32 %r3, %r5, %r4, 0, 0xc0;"),
    ("setp.lt.u32 %p1, %r1, 0; and.pred %p2, %p1, %p3; selp.b32 %r3, 7, %r1, %p2;", "selp.b32 %r3, 7, %r1, %p3;"),
    ("mov.b64 %d1, {%r1, %r9}; mov.b64 {%r3, _}, %d1;", "add.u64 %d1, %d1, 0; mov.b64 {%r3, _}, %d1;"),
    ("mov.b32 %r3, %r1;", "mov.b32 %r4, {%h1, %h7}; add.u32 %r3, %r4, %r1;"),
    ("mov.b32 %r3, %r1;", "shl.b32 %r3, %r1, %r9;"),
    ("mov.b32 %r3, %r1;", "setp.ge.u32 %p1, %r1, 0; selp.b32 %r3, %r1, %r1, %p3;"),
])  # fmt: skip
def test_a_written_half_may_be_used_and_the_other_may_not(body, half):
    """The last instruction of the second text reads what nobody wrote; every first text stores the thread's first word."""
    given, x = stored(body)
    if "prmt" not in body:
        assert np.array_equal(x, given)
    with pytest.raises(compiled.KernelFault, match=r"thread \(0, 0, 0\) .*unwritten register"):
        stored(body + half)
    stored(body + half, checks=False)


@pytest.mark.parametrize(("body", "half"), [
    ("mov.b64 %d1, {%r1, %r9}; mov.b64 %d2, {%r2, %r9}; add.rn.f32x2 %d3, %d1, %d2; mov.b64 {%r3, _}, %d3;",
     "mov.b64 {_, %r3}, %d3;"),
    ("cvt.rn.f16x2.f32 %r4, %r9, %r1; mov.b32 {%h3, _}, %r4; mov.b32 %r3, {%h3, %h3};", "mov.b32 %r3, %r4;"),
    ("cvt.rn.f16x2.f32 %r4, %r1, %r9; mov.b32 {_, %h3}, %r4; mov.b32 %r3, {%h3, %h3};", "mov.b32 %r3, %r4;"),
    ("mov.b32 %r4, {%h1, %h7}; add.f16x2 %r5, %r4, %r1; mov.b32 {%h3, _}, %r5; mov.b32 %r3, {%h3, %h3};", "mov.b32 %r3, %r5;"),
    ("mov.b32 %r4, {%h7, %h1}; cvt.rn.satfinite.e4m3x2.f16x2 %h3, %r4; shr.u16 %h3, %h3, 8; cvt.u32.u16 %r3, %h3;",
     "cvt.rn.satfinite.e4m3x2.f16x2 %h3, %r4; cvt.u32.u16 %r3, %h3;"),
    ("mov.b32 %r4, {%h1, %h7}; add.u16x2 %r5, %r4, %r4; mov.b32 {%h3, _}, %r5; mov.b32 %r3, {%h3, %h3};", "mov.b32 %r3, %r5;"),
])  # fmt: skip
def test_pairs_are_computed_with_half_by_half(body, half):
    _, x = stored(body)
    _, without = stored(body, checks=False)
    assert np.array_equal(x, without)
    with pytest.raises(compiled.KernelFault, match="unwritten register"):
        stored(body + half)


@pytest.mark.parametrize("use", [
    "mov.b64 {%r5, _}, %d1; st.global.b64 [%x], %d1;", "st.global.v2.b32 [%x], {%r1, %r9};", "ld.global.b32 %r5, [%d1];",
    "cvt.u32.u64 %r5, %d1; shr.u64 %d2, %d1, 32; cvt.u32.u64 %r6, %d2; setp.eq.u32 %p1, %r6, 0; @%p1 ret;",
    "atom.global.add.u64 %d2, [%x], %d1;", "shfl.sync.idx.b32 %r5, %r1, %r9, 31, -1;",
    "mov.b64 {%r5, %r6}, %d1; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r3, %r4, %r7, %r8}, {%r5, %r6}, {%r5},"
    " {%r5, %r5, %r5, %r5};",
])  # fmt: skip
def test_uses_that_count(use):
    with pytest.raises(compiled.KernelFault, match=r"register %(d1|r9|r6|p1).* (un)?written"):
        stored("mov.b64 %d1, {%r1, %r9};" + use, value="%r1")


def test_a_narrow_store_needs_only_its_bits():
    given, x = stored("mov.b32 %r4, {%h1, %h7};", value="%r4", kind="b16")
    assert np.array_equal(x, given)
    with pytest.raises(compiled.KernelFault, match="unwritten register"):
        stored("mov.b32 %r4, {%h7, %h1};", value="%r4", kind="b16")


def test_halves_move_between_lanes_and_into_some():
    """A shuffle of a half-written register; a write of the other half in some lanes."""
    body = "mov.b32 %r4, {%h1, %h7}; shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; and.b32 %r3, %r5, 0xffff;"
    given, x = stored(body)
    assert np.array_equal(x[:, 0], given[np.arange(32) ^ 1, 0] & 0xFFFF)
    with pytest.raises(compiled.KernelFault, match="unwritten register"):
        stored(body + "mov.b32 %r3, %r5;")
    some = "mov.b32 %r3, {%h1, %h7}; setp.lt.u32 %p1, %t, 5; @%p1 mov.b32 %r3, %r1;"
    with pytest.raises(compiled.KernelFault, match=r"thread \(5, 0, 0\)"):
        stored(some)
    stored(some + "setp.ge.u32 %p1, %t, 5; @%p1 mov.b32 %r3, {%h1, %h2};")


# -- random programs -----------------------------------------------------------------------------------------------------------
STEPS = ("pack", "unpack", "halve", "join", "logic", "lop3", "shift", "prmt", "bfe", "bfi", "cvt", "add")


class Drawn:
    """A program of moves and its twin: registers of the first thread as bits."""

    def __init__(self, rng, words):
        self.rng, self.lines = rng, []
        first, second = ([int(word) >> i & 1 for i in range(32)] for word in words)
        self.bits = {"%r1": first, "%r2": second, "%h1": first[:16], "%h2": first[16:]}
        self.put("%d1", "mov.b64 %d1, {%r9, %r1}", [None] * 32 + first)
        self.put("%r5", "mov.b32 %r5, {%h2, %h7}", first[16:] + [None] * 16)

    def of(self, kind, count=8):
        """(register, its bits) of a kind."""
        name = f"%{kind}{int(self.rng.integers(1, count))}"
        return name, self.bits.get(name, [None] * {"h": 16, "r": 32, "d": 64}[kind])

    def step(self):
        """One instruction."""
        rng = self.rng
        kind = STEPS[rng.integers(len(STEPS))]
        (x, a), (y, b), (z, c) = (self.of("r") for _ in range(3))
        (d, wide), (h, short), (g, other) = self.of("d", 4), self.of("h"), self.of("h")
        target, amount = f"%r{rng.integers(3, 8)}", int(rng.integers(0, 32))
        length = int(rng.integers(1, 33 - amount))
        if kind == "pack":
            self.put(d, f"mov.b64 {d}, {{{x}, {y}}}", a + b)
        elif kind == "unpack":
            low, high = "%r3", "%r4"
            self.put(low, f"mov.b64 {{{low}, {high}}}, {d}", wide[:32])
            self.bits[high] = wide[32:]
        elif kind == "halve":
            self.put("%h3", f"mov.b32 {{%h3, %h4}}, {x}", a[:16])
            self.bits["%h4"] = a[16:]
        elif kind == "join":
            self.put(target, f"mov.b32 {target}, {{{h}, {g}}}", short + other)
        elif kind == "logic":
            name = ("and", "or", "xor")[rng.integers(3)]
            rule = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[name]
            self.put(target, f"{name}.b32 {target}, {x}, {y}", twin.function_of(rule, (a, b)))
        elif kind == "lop3":
            table = int(rng.integers(256))
            bits = twin.function_of(lambda p, q, r: table >> (4 * p + 2 * q + r) & 1, (a, b, c))
            self.put(target, f"lop3.b32 {target}, {x}, {y}, {z}, {table}", bits)
        elif kind == "shift":
            left, signed = bool(rng.integers(2)), bool(rng.integers(2))
            line = f"shl.b64 {d}, {d}" if left else f"shr.{'us'[signed]}64 {d}, {d}"
            bits = twin.shifted(wide, amount if left else -amount, wide[-1] if signed and not left else 0)
            self.put(d, f"{line}, {amount}", bits)
        elif kind == "prmt":
            selector = int(rng.integers(1 << 16))
            self.put(target, f"prmt.b32 {target}, {x}, {y}, {selector}", twin.permuted(a, b, selector))
        elif kind == "bfe":
            signed = bool(rng.integers(2))
            self.put(
                target, f"bfe.{'us'[signed]}32 {target}, {x}, {amount}, {length}", twin.field(a, amount, length, signed)
            )
        elif kind == "bfi":
            self.put(target, f"bfi.b32 {target}, {x}, {y}, {amount}, {length}", twin.inserted(a, b, amount, length))
        elif kind == "cvt":
            signed = bool(rng.integers(2))
            bits = a + [a[-1] if signed else 0] * 32
            self.put(d, f"cvt.{'us'[signed]}64.{'us'[signed]}32 {d}, {x}", bits)
        elif None in a + b:
            self.put(target, f"add.u32 {target}, {x}, {y}", [None] * 32)

    def put(self, name, line, bits):
        self.lines.append(line + ";")
        self.bits[name] = bits


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sweep(14)
def test_random_programs_have_the_twin_s_bits_and_holes(seed):
    """What the twin says was written of a register is stored; one bit more is a fault."""
    rng = np.random.default_rng(seed)
    words = np.tile(WORDS[0], (32, 1))
    drawn = Drawn(rng, WORDS[0])
    for _ in range(25):
        drawn.step()
    for name in [name for name in drawn.bits if re.match(r"%r[3-7]", name)]:
        bits, body = drawn.bits[name], " ".join(drawn.lines)
        written = sum((bit is not None) << i for i, bit in enumerate(bits))
        _, x = stored(f"{body} and.b32 %r3, {name}, {written};", words=words)
        assert int(x[0, 0]) == sum((bit or 0) << i for i, bit in enumerate(bits))
        for place in [i for i, bit in enumerate(bits) if bit is None][:2]:
            with pytest.raises(compiled.KernelFault, match=r"thread \(0, 0, 0\)"):
                stored(f"{body} and.b32 %r3, {name}, {written | 1 << place};", words=words)
