"""Each group of PTX instructions against Python's integers and fractions, on edge values and drawn ones."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models import compiled
from tensorcore_models.compiled.amdgcn import arithmetic, vector
from tensorcore_models.compiled.ptx.meanings import meaning_of
from tensorcore_models.compiled.ptx.syntax import PTXInstruction, Register
from tensorcore_models.formats.exact_rounding import encode_exact

#: Registers and memory words by bits.
TYPES = {1: "pred", 16: "b16", 32: "b32", 64: "b64"}


def one_instruction(line, result, sources, *operands, **options):
    """Results of one instruction in each thread: `line` names %d, %a, %b, %c; operands are arrays of encodings."""
    count = -(-len(operands[0]) // 32) * 32
    arrays = [np.resize(np.array(x, f"u{bits // 8}"), count) for x, bits in zip(operands, sources, strict=True)]
    out = np.zeros(count, f"u{max(result, 8) // 8}")
    loads = "".join(
        f"ld.param.u64 %q1, [p{i}]; mad.wide.u32 %q2, %t, {bits // 8}, %q1; ld.global.b{bits} %{'abc'[i]}, [%q2];\n"
        for i, bits in enumerate(sources)
    )
    names = "".join(f".reg .b{bits} %{'abc'[i]};" for i, bits in enumerate(sources))
    finish = "selp.u32 %d32, 1, 0, %d; cvt.u16.u32 %dd, %d32;" if result == 1 else ""
    stored, width = ("%dd", 8) if result == 1 else ("%d", result)
    registers = f".reg .{TYPES[result]} %d; .reg .b32 %d32, %i; .reg .b16 %dd; .reg .b64 %q<4>; .reg .b32 %t, %n, %k;"
    text = f""".version 8.6
.target sm_90a
.visible .entry one({", ".join(f".param .u64 p{i}" for i in range(len(arrays)))}, .param .u64 out) .reqntid 32
{{ {registers} {names}
mov.u32 %k, %ctaid.x; mov.u32 %n, %tid.x; mad.lo.s32 %t, %k, 32, %n;
{loads}{line}
{finish}
ld.param.u64 %q1, [out]; mad.wide.u32 %q2, %t, {width // 8}, %q1; st.global.b{width} [%q2], {stored}; ret; }}"""
    compiled.read(text).run([*arrays, out], grid=count // 32, **options)
    return out[: len(operands[0])]


#: Examples are drawn by a seed: Hypothesis takes ten times as long to draw them one by one.
SEEDS = st.integers(0, 1 << 32).map(np.random.default_rng)


def edges(rng, bits, count=64):
    """Encodings near the ends, and any."""
    top = (1 << bits) - 1
    some = [0, 1, 2, 3, 31, 32, 33, 63, 64, top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) + 2, 0x5555, top // 3]
    drawn = rng.integers(0, 1 << 63, count).tolist()
    return [some[x % len(some)] if x >> 8 & 1 else x * 3 % (top + 1) for x in drawn]


def signed(x, bits):
    return x - (1 << bits) if x >> (bits - 1) else x


def pick(kind, x):
    bits = int(kind[1:])
    return signed(x, bits) if kind[0] == "s" else x


def cut(x, y):
    """Quotient toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


INTEGER = {
    "add": lambda x, y, n: x + y,
    "sub": lambda x, y, n: x - y, "mul.lo": lambda x, y, n: x * y, "mul.hi": lambda x, y, n: x * y >> n,
    "min": lambda x, y, n: min(x, y), "max": lambda x, y, n: max(x, y),
    "div": lambda x, y, n: cut(x, y) if y else 0, "rem": lambda x, y, n: x - y * cut(x, y) if y else 0,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", INTEGER)
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_integers(name, kind, rng):
    bits = int(kind[1:])
    a, b = (edges(rng, bits) for _ in "ab")
    if name in ("div", "rem"):
        b = [y or 1 for y in b]
        a = [x if (x, y) != (1 << (bits - 1), (1 << bits) - 1) else 1 for x, y in zip(a, b, strict=True)]
    got = one_instruction(f"{name}.{kind} %d, %a, %b;", bits, (bits, bits), a, b)
    want = [INTEGER[name](pick(kind, x), pick(kind, y), bits) % (1 << bits) for x, y in zip(a, b, strict=True)]
    assert got.tolist() == want


def extracted(x, place, length, kind):
    """bfe as PTX ISA states it."""
    bits = int(kind[1:])
    place, length = place & 255, length & 255
    fill = 0 if kind[0] == "u" or not length else x >> min(place + length - 1, bits - 1) & 1
    return sum((x >> (place + i) & 1 if i < length and place + i < bits else fill) << i for i in range(bits))


def taken(byte, sign):
    """What prmt makes of a byte."""
    return 255 * (byte >> 7) if sign else byte


BITS = {
    "shl.b32": (32, (32, 32), lambda x, y: x << y if y < 32 else 0),
    "shr.u32": (32, (32, 32), lambda x, y: x >> y),
    "shr.s32": (32, (32, 32), lambda x, y: signed(x, 32) >> min(y, 32)),
    "shl.b64": (64, (64, 32), lambda x, y: x << y if y < 64 else 0),
    "shr.s64": (64, (64, 32), lambda x, y: signed(x, 64) >> min(y, 64)),
    "bfe.u32": (32, (32, 32, 32), lambda x, y, z: extracted(x, y, z, "u32")),
    "bfe.s32": (32, (32, 32, 32), lambda x, y, z: extracted(x, y, z, "s32")),
    "bfe.u64": (64, (64, 32, 32), lambda x, y, z: extracted(x, y, z, "u64")),
    "bfe.s64": (64, (64, 32, 32), lambda x, y, z: extracted(x, y, z, "s64")),
    "lop3.b32": (32, (32, 32, 32), lambda x, y, z: (x & y) ^ z, ", 0x6a"),
    "prmt.b32": (32, (32, 32, 32), lambda x, y, z: sum(
        taken((x | y << 32) >> 8 * (z >> 4 * i & 7) & 255, z >> 4 * i & 8) << 8 * i for i in range(4))),
    "shf.l.wrap.b32": (32, (32, 32, 32), lambda x, y, z: (x | y << 32) << (z & 31) >> 32),
    "shf.r.clamp.b32": (32, (32, 32, 32), lambda x, y, z: (x | y << 32) >> min(z, 32)),
    "popc.b64": (32, (64,), lambda x: x.bit_count()),
    "clz.b32": (32, (32,), lambda x: 32 - x.bit_length()),
    "brev.b32": (32, (32,), lambda x: int(f"{x:032b}"[::-1], 2)),
    "mad.wide.s32": (64, (32, 32, 64), lambda x, y, z: signed(x, 32) * signed(y, 32) + z),
    "mul.wide.u32": (64, (32, 32), lambda x, y: x * y),
    "dp4a.s32.u32": (
        32, (32, 32, 32),
        lambda x, y, z: sum(signed(x >> 8 * i & 255, 8) * (y >> 8 * i & 255) for i in range(4)) + z,
    ),
    "add.sat.s32": (32, (32, 32), lambda x, y: min(max(signed(x, 32) + signed(y, 32), -(1 << 31)), (1 << 31) - 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", BITS)
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_bits(name, rng):
    result, sources, function, *more = BITS[name]
    columns = [edges(rng, bits) for bits in sources]
    places = {"bfe": (1, 2), "shl": (1,), "shr": (1,), "shf": (2,)}.get(name[:3], ())
    for place in places:  # mostly inside of the word
        columns[place] = [x % 40 if i % 4 else x for i, x in enumerate(columns[place])]
    line = f"{name} %d, {', '.join('%' + x for x in 'abc'[: len(sources)])}{more[0] if more else ''};"
    got = one_instruction(line, result, sources, *columns)
    assert got.tolist() == [function(*row) % (1 << result) for row in zip(*columns, strict=True)]


# -- floating point ----------------------------------------------------------------------------------------------------------
FORMATS = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}
ROUNDINGS = {"rn": "rne", "rz": "rz", "rm": "rd", "rp": "ru"}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def encodings(rng, kind, count=64):
    """Encodings of all classes; exponents near each other, so that sums round."""
    row = tcm.get_format(FORMATS[kind])
    one = int(encode_exact(Fraction(1), row))
    infinity = row.magnitude_mask - (1 << row.fraction_bits) + 1
    special = [0, 1, 2, 1 << row.fraction_bits, infinity, infinity - 1, infinity | 1, row.magnitude_mask]
    found = []
    for choice, x in zip(rng.integers(0, 8, count).tolist(), rng.integers(0, 1 << 63, count).tolist(), strict=True):
        near = one + x % (6 << row.fraction_bits) - (3 << row.fraction_bits)
        bits = near if choice < 5 else special[x % len(special)] if choice < 7 else x
        found.append((bits & row.magnitude_mask) | (x >> 62) << (row.bits - 1))
    return found


def value(bits, kind):
    return float(tcm.decode(np.array(bits, tcm.get_format(FORMATS[kind]).container), FORMATS[kind]))


def flushed(bits, kind):
    row = tcm.get_format(FORMATS[kind])
    small = (bits & row.magnitude_mask) >> row.fraction_bits == 0
    return bits & 1 << (row.bits - 1) if small else bits


def exact(name, operands, kind, rounding, *, ftz=False, sat=False):
    """The result by fractions; IEEE's rules for infinities and zeros by Python's doubles, in which they are exact."""
    row = tcm.get_format(FORMATS[kind])
    operands = [flushed(x, kind) if ftz else x for x in operands]
    if name == "sub":
        operands[1] ^= 1 << (row.bits - 1)
    x = [value(b, kind) for b in operands]
    if all(math.isfinite(v) for v in x):
        f = [Fraction(v) for v in x]
        total = {
            "add": lambda: f[0] + f[1],
            "sub": lambda: f[0] + f[1],
            "mul": lambda: f[0] * f[1],
            "fma": lambda: f[0] * f[1] + f[2],
        }[name]()
        if total:
            out = int(encode_exact(total, row, rounding))
        else:  # the sign of an exact zero

            def zero(v, w):
                return v if v == w else rounding == "rd"

            signs = [math.copysign(1, v) < 0 for v in x]
            product = signs[0] != signs[1]
            if name == "mul":
                negative = product
            elif name == "fma":
                negative = zero(product, signs[2])
            else:
                negative = zero(*signs)
            out = int(negative) << (row.bits - 1)
    else:

        def times(v, w):
            return math.nan if {0.0, math.inf} == {abs(v), abs(w)} else v * w

        special = {"add": lambda: x[0] + x[1], "sub": lambda: x[0] + x[1], "mul": lambda: times(x[0], x[1])}
        special["fma"] = lambda: times(math.copysign(min(abs(x[0]), math.inf), x[0]), x[1]) + x[2] if not all(
            map(math.isfinite, x[:2])) else x[2]  # fmt: skip
        out = special[name]()
        out = NAN[kind] if math.isnan(out) else int(encode_exact(out, row))
    if ftz:
        out = flushed(out, kind)
    if sat:
        v = value(out, kind)
        return 0 if math.isnan(v) or v <= 0 else min(out, int(encode_exact(Fraction(1), row)))
    return out


_MODES = ((False, False), (True, False), (False, True))
FLOAT = [
    *((name, "f32", r, ftz, sat) for name in ("add", "sub", "mul", "fma") for r in ROUNDINGS for ftz, sat in _MODES),
    *((name, "f64", r, False, False) for name in ("add", "mul", "fma") for r in ROUNDINGS),
    *((name, kind, "rn", False, False) for name in ("add", "sub", "mul", "fma") for kind in ("f16", "bf16")),
]  # fmt: skip


@pytest.mark.sweep(24)
@pytest.mark.parametrize(("name", "kind", "rounding", "ftz", "sat"), FLOAT)
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_floats(name, kind, rounding, ftz, sat, rng):
    bits = tcm.get_format(FORMATS[kind]).bits
    count = 3 if name == "fma" else 2
    columns = [encodings(rng, kind) for _ in range(count)]
    if kind == "f64":  # a NaN result is refused there
        columns = [[x if math.isfinite(value(x, kind)) else 1 for x in column] for column in columns]
    opcode = ".".join([name, rounding, *(["ftz"] if ftz else []), *(["sat"] if sat else []), kind])
    got = one_instruction(f"{opcode} %d, {', '.join('%' + x for x in 'abc'[:count])};", bits, (bits,) * count, *columns)
    want = [exact(name, list(row), kind, ROUNDINGS[rounding], ftz=ftz, sat=sat) for row in zip(*columns, strict=True)]
    assert [hex(x) for x in got.tolist()] == [hex(x) for x in want]


def test_a_nan_of_64_bits_is_refused():
    nan = [0x7FF8000000000001]
    with pytest.raises(compiled.Refused, match=r"line \d+: an f64 result is NaN"):
        one_instruction("add.rn.f64 %d, %a, %b;", 64, (64, 64), nan, nan)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("name", ["min", "max", "min.NaN", "max.NaN"])
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_extremes(name, kind, rng):
    bits = tcm.get_format(FORMATS[kind]).bits
    a, b = (encodings(rng, kind) for _ in "ab")

    def want(x, y):
        v, w = value(x, kind), value(y, kind)
        if math.isnan(v) or math.isnan(w):
            both = math.isnan(v) and math.isnan(w)
            return NAN[kind] if both or name.endswith("NaN") else (y if math.isnan(v) else x)
        key = [(v, math.copysign(1, v), x), (w, math.copysign(1, w), y)]
        return (min if name[:3] == "min" else max)(key)[2]

    got = one_instruction(f"{name}.{kind} %d, %a, %b;", bits, (bits, bits), a, b)
    assert got.tolist() == [want(x, y) for x, y in zip(a, b, strict=True)]


COMPARE = {
    "eq": lambda v, w: v == w, "ne": lambda v, w: v != w and v == v and w == w,
    "lt": lambda v, w: v < w, "geu": lambda v, w: not v < w,
    "neu": lambda v, w: v != w, "equ": lambda v, w: not (v < w or v > w), "num": lambda v, w: v == v and w == w,
    "nan": lambda v, w: v != v or w != w, "gt": lambda v, w: v > w, "leu": lambda v, w: not v > w,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARE)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@settings(max_examples=3, deadline=None)
@given(rng=SEEDS)
def test_comparisons(name, kind, rng):
    bits = tcm.get_format(FORMATS[kind]).bits
    a, b = (encodings(rng, kind) for _ in "ab")
    a[::3] = b[::3]
    got = one_instruction(f"setp.{name}.{kind} %d, %a, %b;", 1, (bits, bits), a, b)
    assert got.tolist() == [COMPARE[name](value(x, kind), value(y, kind)) for x, y in zip(a, b, strict=True)]


# -- conversions -------------------------------------------------------------------------------------------------------------
def to_float(x, fmt, rounding="rne", saturate=None):
    nan = {"fp16": 0x7FFF, "bf16": 0x7FFF, "fp32": 0x7FFFFFFF, "tf32": 0x7FFFFFFF, "e4m3fn": 0x7F, "e5m2": 0x7F}[fmt]
    return nan if math.isnan(x) else int(encode_exact(x, tcm.get_format(fmt), rounding, saturate=saturate))


def to_integer(x, how, low, high):
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return high if x > 0 else low
    whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[how](Fraction(x))
    return min(max(whole, low), high)


CONVERSIONS = {
    "cvt.rn.f16.f32": (16, "f32", lambda x: to_float(x, "fp16")),
    "cvt.rz.f16.f32": (16, "f32", lambda x: to_float(x, "fp16", "rz")),
    "cvt.rn.bf16.f32": (16, "f32", lambda x: to_float(x, "bf16")),
    "cvt.rn.relu.bf16.f32": (16, "f32", lambda x: to_float(0.0 if x < 0 else x, "bf16")),
    "cvt.rna.tf32.f32": (32, "f32", lambda x: to_float(x, "tf32", "rna")),
    "cvt.f32.f16": (32, "f16", lambda x: to_float(x, "fp32")),
    "cvt.f32.bf16": (32, "bf16", lambda x: to_float(x, "fp32")),
    "cvt.rn.f32.f64": (32, "f64", lambda x: to_float(x, "fp32")),
    "cvt.rp.f32.f64": (32, "f64", lambda x: to_float(x, "fp32", "ru")),
    **{f"cvt.{how}.s32.f32": (32, "f32", lambda x, how=how: to_integer(x, how, -(1 << 31), (1 << 31) - 1) % (1 << 32))
       for how in ("rni", "rzi", "rmi", "rpi")},
    "cvt.rzi.u32.f32": (32, "f32", lambda x: to_integer(x, "rzi", 0, (1 << 32) - 1)),
    "cvt.rni.s16.f32": (16, "f32", lambda x: to_integer(x, "rni", -(1 << 15), (1 << 15) - 1) % (1 << 16)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVERSIONS)
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_conversions(name, rng):
    result, kind, function = CONVERSIONS[name]
    bits = tcm.get_format(FORMATS[kind]).bits
    a = encodings(rng, kind)
    got = one_instruction(f"{name} %d, %a;", result, (bits,), a)
    assert [hex(x) for x in got.tolist()] == [hex(function(value(x, kind))) for x in a]


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2"])
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_conversions_to_pairs(fmt, rng):
    a, b = (encodings(rng, "f32") for _ in "ab")
    got = one_instruction(f"cvt.rn.satfinite.{fmt}x2.f32 %d, %a, %b;", 16, (32, 32), a, b)
    name = {"e4m3": "e4m3fn", "e5m2": "e5m2"}[fmt]
    pairs = [[to_float(value(x, "f32"), name, saturate=True) for x in row] for row in zip(a, b, strict=True)]
    assert got.tolist() == [high << 8 | low for high, low in pairs]
    back = one_instruction(f"cvt.rn.f16x2.{fmt}x2 %d, %a;", 32, (16,), got)
    halves = [[to_float(float(tcm.decode(np.uint8(x), name)), "fp16") for x in row] for row in pairs]
    assert back.tolist() == [high << 16 | low for high, low in halves]


@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_conversions_of_64_bit_integers(rng):
    a = edges(rng, 64)
    got = one_instruction("cvt.rz.f32.s64 %d, %a;", 32, (64,), a)
    assert got.tolist() == [int(encode_exact(Fraction(signed(x, 64)), tcm.get_format("fp32"), "rz")) for x in a]


# -- warps -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["bfly", "up", "down", "idx"])
@settings(max_examples=4, deadline=None)
@given(rng=SEEDS, by=st.integers(0, 31), width=st.sampled_from([8, 16, 32]))
def test_shuffles(mode, rng, by, width):
    a = edges(rng, 32, 32)
    packed = (32 - width) << 8 | (0 if mode == "up" else 31)

    def source(lane):
        first = lane & ~(width - 1)
        last = first if mode == "up" else first | (31 & (width - 1))
        there = {"bfly": lane ^ by, "up": lane - by, "down": lane + by, "idx": first | (by & (width - 1))}[mode]
        return there if (there >= last if mode == "up" else there <= last) else lane

    got = one_instruction(f"shfl.sync.{mode}.b32 %d, %a, {by}, {packed}, -1;", 32, (32,), a)
    assert got.tolist() == [a[source(lane)] for lane in range(32)]


@settings(max_examples=4, deadline=None)
@given(rng=SEEDS)
def test_reductions_and_votes(rng):
    a = edges(rng, 32, 32)
    numbers = [signed(x, 32) for x in a]
    for name, want in (
        ("add.s32", sum(numbers)),
        ("min.s32", min(numbers)),
        ("max.u32", max(a)),
        ("xor.b32", np.bitwise_xor.reduce(a)),
    ):
        got = one_instruction(f"redux.sync.{name} %d, %a, -1;", 32, (32,), a)
        assert set(got.tolist()) == {int(want) % (1 << 32)}
    line = ".reg .pred %p; setp.lt.s32 %p, %a, 0; vote.sync.ballot.b32 %d, %p, -1;"
    got = one_instruction(line, 32, (32,), a)
    assert set(got.tolist()) == {sum((x < 0) << i for i, x in enumerate(numbers))}


def reduced(encodings, words):
    """redux.sync of f32 as PTX ISA 9.0 states it, on whole numbers: -0 is below +0, a NaN is left out or decides."""
    if "abs" in words:
        encodings = [x & 0x7FFFFFFF for x in encodings]
    numbers = [x for x in encodings if x & 0x7FFFFFFF <= 0x7F800000]
    if not numbers or "NaN" in words and len(numbers) < len(encodings):
        return 0x7FFFFFFF
    return (max if "max" in words else min)(numbers, key=lambda x: -(x ^ 0x80000000) - 1 if x >> 31 else x)


FLOATING_REDUCTIONS = [f"{name}{of}" for name in ("min", "max") for of in ("", ".abs", ".NaN", ".abs.NaN")]


@pytest.mark.parametrize("words", FLOATING_REDUCTIONS)
def test_reductions_of_numbers(words):
    """Zeros of both signs, NaN of any payload, infinities, subnormal numbers; a mask for each part of a warp."""
    special = [0, 1 << 31, 0x7F800000, 0xFF800000, 1, 0x80000001, 0x7FC00001, 0xFF800001, 0x3F800000, 0xBF800000]
    warps = [
        [0, 1 << 31] * 16, [1 << 31, 0] * 16, [0x7FC12345] * 32, [0xFF800000] * 31 + [0x7F800001], [0x7F800000] * 32,
        (special * 4)[:32], [x for x in special if x & 0x7FFFFFFF <= 0x7F800000] * 4, edges(np.random.default_rng(3), 32, 32),
    ]  # fmt: skip
    a = np.array([x for warp in warps for x in warp[:32]], np.uint32)
    for parts in ([range(32)], [range(5), range(5, 32)], [range(0, 32, 2), range(1, 32, 2)]):
        masks = [sum(1 << lane for lane in part) for part in parts]
        mask = np.array([next(m for m in masks if m >> lane & 1) for lane in range(32)] * len(warps), np.uint32)
        got = one_instruction(f"redux.sync.{words}.f32 %d, %a, %b;", 32, (32, 32), a, mask).reshape(-1, 32)
        for found, warp in zip(got, a.reshape(-1, 32).tolist(), strict=True):
            for part in parts:
                assert set(found[part].tolist()) == {reduced([warp[i] for i in part], words.split("."))}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("redux.sync.max.f32 %d, %a, 0xffff;", "a lane that its mask 0xffff does not name"),
        ("redux.sync.max.s32 %d, %a, %a;", "gives another mask"),
        ("redux.sync.add.f32 %d, %a, -1;", "redux.sync.add.f32"),
        ("redux.sync.max.NaN.abs.f32 %d, %a, -1;", "redux.sync.max.NaN.abs.f32"),
        ("redux.sync.max.abs.s32 %d, %a, -1;", "redux.sync.max.abs.s32"),
        ("redux.sync.max.b32 %d, %a, -1;", "redux.sync.max.b32"),
    ],
)
def test_reductions_that_ptx_does_not_define_are_refused(line, error):
    a = np.full(32, 0xFFFFFFFF, np.uint32)
    a[0] = 0xFFFFFFFD
    with pytest.raises((compiled.KernelFault, compiled.Refused), match=error):
        one_instruction(line, 32, (32,), a)


def test_unknown_approximations_are_refused_unless_asked_for():
    x = np.arange(32, dtype=np.float32)
    with pytest.raises(compiled.Refused, match=r"sin.approx.f32: the bits of its results are not published"):
        one_instruction("sin.approx.f32 %d, %a;", 32, (32,), x.view(np.uint32))
    got = one_instruction("sin.approx.f32 %d, %a;", 32, (32,), x.view(np.uint32), unpublished="nearest")
    assert np.array_equal(got.view(np.float32), np.sin(x.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize(
    "function",
    [f for f in tcm.list_functions("hopper") if "approx" in f.name or "full" in f.name],
    ids=lambda f: f.name,
)
def test_special_functions_run_on_the_unit_s_tables(function):
    """Edge values and drawn ones; FP64 numbers with lower words that have to be ignored."""
    rng, high = np.random.default_rng(5), function.row.operand == "fp64 high"
    bits = 64 if high else 8 * function.operand_dtype.itemsize
    operands = [np.array(edges(rng, bits), f"u{bits // 8}") for _ in function.row.operands]
    line = f"{function.name} %d, {', '.join(['%a', '%b'][: len(operands)])};"
    got = one_instruction(line, bits, (bits,) * len(operands), *operands)
    if high:
        assert np.array_equal(got, function.bits(operands[0] >> np.uint64(32)).astype(np.uint64) << np.uint64(32))
    else:
        assert np.array_equal(got, function.bits(*operands))


def test_a_clamped_conversion_to_64_bits():
    values = np.float32([-2, -0.0, 0.25, 1, 7, np.inf])
    got = one_instruction("cvt.sat.f64.f32 %d, %a;", 64, (32,), values.view(np.uint32))
    assert got.view(np.float64).tolist() == [0, 0, 0.25, 1, 1, 1]


def test_one_meaning_of_two_languages():
    """An operation is one row, whichever machine runs it; the encoding of NaN and the order of operands are told."""
    ptx = {"add.rn.f32": 2, "shl.b32": 2, "prmt.b32": 3, "max.f32": 2}
    found = {}
    for name, count in ptx.items():
        stem, *modifiers = name.split(".")
        operands = tuple(Register(i, 32, f"%r{i}") for i in range(count + 1))
        found[name] = meaning_of(PTXInstruction(stem, tuple(modifiers), operands, None, 1))
    assert replace(found["add.rn.f32"], nan="quiet") == arithmetic.ROWS["v_add_f32"]
    assert replace(found["max.f32"], nan="quiet") == arithmetic.ROWS["v_max_f32"]
    assert found["shl.b32"].operation == vector.ROWS["v_lshlrev_b32"].operation and vector.ROWS["v_lshlrev_b32"].turned
    assert found["prmt.b32"].operation != vector.ROWS["v_perm_b32"].operation  # their selectors differ
