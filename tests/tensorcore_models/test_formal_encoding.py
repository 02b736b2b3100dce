"""The bit-vector encoding computes what the integer reference computes. No solver is needed: terms can be evaluated."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_encodings import STYLES, encodings

import tensorcore_models as tcm
from tensorcore_models.accumulators import Accumulator, ConvertedDotAdd
from tensorcore_models.arithmetic import operations
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.formats.exact_rounding import ROUNDINGS, shift_right_rounded
from tensorcore_models.probing.formal import Unencodable, encoding
from tensorcore_models.reference import dot_bits


def _engines():
    """One instruction of each accumulator with its formats."""
    found = {}
    for ins in tcm.list_instructions():
        found.setdefault((ins.accumulator, ins.a_format, ins.b_format, ins.c_format, ins.d_format), ins)
    kinds: dict[str, list] = {}
    for ins in found.values():
        kinds.setdefault(type(ins.accumulator).__name__, []).append(ins)
    return kinds


KINDS = _engines()
ENCODED = ("FusedDotAdd", "InterleavedDotAdd", "FusedDotRoundDownAdd", "GroupFusedDotRoundDownAdd", "GroupDotFusedSum",
           "ParametricDotAdd", "GroupPairwiseSum", "PairRoundOddSum", "LanedFMA", "ScaledDotAdd", "WidenedDotAdd")  # fmt: skip
#: Products that are enough where each is an IEEE operation of its own, which is a long term.
FEW = {"GroupPairwiseSum": 4, "LanedFMA": 4}


def check(engine, k: int, rng: np.random.Generator, rounds: int) -> int:
    """Compare term and reference on random encodings; how many were compared (conditions may not hold)."""
    formats = encoding.formats_of(engine)
    inputs = encoding.symbolic_inputs(formats, k)
    conditions: list = []
    d = encoding.result(engine, inputs, conditions)
    compared = 0
    for i in range(rounds):
        style = STYLES[i % len(STYLES)]
        columns = {"a": formats.a, "b": formats.b, "c": formats.c}
        drawn = {name: encodings(rng, fmt, (1 if name == "c" else k,), style) for name, fmt in columns.items()}
        values = {f"{name}{j}": int(x) for name in "ab" for j, x in enumerate(drawn[name])}
        values["c"] = int(drawn["c"][0])
        scales = {}
        if inputs.scale_a:
            blocks = len(inputs.scale_a)
            codes = {side: [int(x) for x in encodings(rng, formats.scale, (blocks,), "bits")] for side in ("sa", "sb")}
            values |= {f"{side}{j}": x for side, row in codes.items() for j, x in enumerate(row)}
            scales = {
                "scale_a": codes["sa"],
                "scale_b": codes["sb"],
                "scale_format": formats.scale,
                "block_size": formats.block_size,
            }
        got, *held = t.evaluate([d, *conditions], values)
        if not all(held):
            continue
        compared += 1
        a, b = ([int(x) for x in drawn[name]] for name in "ab")
        expected = dot_bits(engine.accumulator, a, b, values["c"], engine.formats, **scales)
        assert got == expected, (engine.accumulator, style, a, b, values["c"], hex(got), hex(expected))
    return compared


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", ENCODED)
def test_catalogue(kind):
    rng = np.random.default_rng(1)
    for ins in KINDS[kind][:: max(1, len(KINDS[kind]) // 3)][:3]:
        assert check(ins, min(ins.k, FEW.get(kind, ins.k)), rng, 16) == 16


@pytest.mark.slow
def test_whole_catalogue():
    rng = np.random.default_rng(2)
    for kind in ENCODED:
        for ins in KINDS[kind]:
            check(ins, ins.k, rng, 200)


def random_engine(rng: np.random.Generator):
    def pick(*choices):
        return choices[rng.integers(len(choices))]

    spec = tcm.ParametricDotAdd(
        terms=pick(1, 2, 3, 5, 8),
        fraction_bits=pick(3, 13, 24, 30),
        alignment_rounding=pick("rz", "rz", "rne", "rna", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno"),
        normalised_products=pick(False, True),
        c_position=pick("early", "late"),
        alignment=pick("global", "pairwise", "odd_even"),
        integer_bits=pick(None, 2, 5),
        output_rounding=pick("rz", "rne", "rna", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno"),
        output_fraction_bits=pick(None, 5, 13),
        late_rounding=pick("rne", "rd"),
        product_overflow_exponent=pick(None, 5, 128),
        flush_inputs=pick(False, True),
        flush_outputs=pick(False, True),
        flushed=pick("aligned", "as_zero"),
        zero_operand=pick("skip", "minus126", "format_minimum"),
        zero_c=pick("skip", "minus126", "format_minimum"),
        subnormal_c=pick("raw", "normalised"),
        negative_underflow=pick("positive", "negative"),
        exponent_floor=pick(None, -20, 3),
        nan=pick("all_ones", "quiet"),
        tf32_nan=pick("truncated", "kept"),
    )
    changes = [{}, {"fraction_bits": None}, {"sticky": True, "alignment_rounding": "rz"}]
    if spec.alignment == "global":
        changes.append({"normalise_each_add": True})
    change = dict(pick(*changes))
    if "fraction_bits" in change:
        change["integer_bits"] = None
    spec = tcm.ParametricDotAdd(**{**vars(spec), **change})
    a, b = pick(("fp16", "fp16"), ("bf16", "tf32"), ("e4m3fn", "e5m2"), ("e4m3fnuz", "e5m2fnuz"), ("e2m1", "e3m2"))
    c, d = pick(("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "bf16"), ("fp16", "fp32"), ("e5m2fnuz", "e5m2fnuz"))
    return tcm.MatrixEngine(spec, a_format=a, b_format=b, c_format=c, d_format=d)


@pytest.mark.full
def test_random_parametric_units():
    rng = np.random.default_rng(3)
    compared = 0
    for _ in range(15):
        engine = random_engine(rng)
        compared += check(engine, engine.accumulator.terms * int(rng.integers(1, 3)), rng, 16)
    assert compared > 150


@pytest.mark.slow
def test_many_random_parametric_units():
    rng = np.random.default_rng(4)
    for _ in range(3000):
        engine = random_engine(rng)
        check(engine, engine.accumulator.terms * int(rng.integers(1, 3)), rng, 24)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("rounding", [mode for mode in ROUNDINGS if mode != "sr"])
def test_chains_of_fma(rounding):
    for formats in (("fp16", "fp32"), ("fp32", "fp32"), ("bf16", "bf16")):
        spec = tcm.SequentialFMA(rounding=rounding)
        engine = tcm.MatrixEngine(
            spec, a_format=formats[0], b_format=formats[0], c_format=formats[1], d_format=formats[1]
        )
        assert check(engine, 3, np.random.default_rng(5), 80) == 80


@pytest.mark.parametrize(
    "rules",
    [
        {"flush_inputs": True, "flush_outputs": True},
        {"saturate": True},
        {"nan": "x86"},
        {"nan": "dmma"},
        {"flush_outputs": True, "rounding": "rd"},
    ],
    ids=str,
)
def test_multiply_adds_that_flush_saturate_or_keep_payloads(rules):
    """Terms refused them while the rules stood in plain integers only."""
    for a_format, c_format in (("bf16", "fp32"), ("fp16", "fp16")):
        engine = tcm.MatrixEngine(tcm.SequentialFMA(**rules), a_format=a_format, c_format=c_format, d_format=c_format)
        assert check(engine, 2, np.random.default_rng(6), 40) == 40


def test_what_has_no_encoding_says_so():
    with pytest.raises(Unencodable, match="integer formats"):
        encoding.formats_of(KINDS["IntegerDotAdd"][0])
    with pytest.raises(Unencodable, match="no accumulator"):
        encoding.formats_of(tcm.as_engine(lambda a, b, c: c, a_format="fp16", b_format="fp16", d_format="fp32", k=4))
    with pytest.raises(ValueError, match="1 to 4096 products, got k = 0"):
        encoding.symbolic_inputs(encoding.formats_of(tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp16")), 0)


def test_equal_specifications_are_one_term():
    fda = tcm.FusedDotAdd(terms=8, fraction_bits=24)
    engines = [tcm.MatrixEngine(spec, a_format="bf16") for spec in (fda, tcm.as_parametric(fda))]
    inputs = encoding.symbolic_inputs(encoding.formats_of(engines[0]), 8)
    assert encoding.result(engines[0], inputs, []) is encoding.result(engines[1], inputs, [])


def test_constant_inputs_fold():
    engine = tcm.MatrixEngine(tcm.FusedDotAdd(terms=4, fraction_bits=23))
    a = tuple(t.constant(x, 16) for x in (0x3C00, 0x4000, 0, 0))
    d = encoding.result(engine, encoding.Inputs(a, a, t.constant(0x3F800000, 32)), [])
    assert d.value == 0x40C00000  # 1 + 1 + 4


# -- integers of known range -------------------------------------------------------------------------------------------------
RANGE = st.tuples(st.integers(-300, 300), st.integers(-300, 300)).map(sorted)


@st.composite
def numbers(draw, name, natural=False):
    low, high = draw(RANGE)
    if natural:
        low, high = abs(low), abs(low) + high - low
    value = draw(st.integers(low, high))
    return z.ranged(t.variable(name, z.width_of(low, high)), low, high), value, {name: value}


def value_of(x: z.Int, values) -> int:
    (code,) = t.evaluate([x.term], values)
    found = t.signed(code, x.width)
    assert x.low <= found <= x.high
    assert x.width == z.width_of(x.low, x.high)
    return found


@given(numbers("x"), numbers("y"))
def test_arithmetic(first, second):
    (x, i, left), (y, j, right) = first, second
    values = left | right
    assert value_of(z.plus(x, y), values) == i + j
    assert value_of(z.minus(x, y), values) == i - j
    assert value_of(z.larger(x, y), values) == max(i, j)
    assert value_of(z.smaller(x, y), values) == min(i, j)
    assert value_of(z.magnitude(x), values) == abs(i)
    assert t.evaluate([z.less(x, y), z.same(x, y)], values) == [i < j, i == j]


@given(
    numbers("x", natural=True),
    st.integers(0, 14),
    st.integers(0, 14),
    st.sampled_from([mode for mode in ROUNDINGS if mode != "sr"]),
    st.booleans(),
)
def test_shifts(number, least, more, rounding, negative):
    x, i, values = number
    amount = z.ranged(t.variable("amount", z.width_of(least, least + more)), least, least + more)
    sign = t.variable("negative", t.BOOL)
    for by in {least, least + more // 2, least + more}:
        known = values | {"amount": by, "negative": int(negative)}
        assert value_of(z.shifted_right(x, amount, rounding, sign), known) == shift_right_rounded(
            i, by, rounding, negative
        )
        assert value_of(z.shifted_left(x, amount), known) == i << by
    bits, places = z.normalised(x)
    (code,) = t.evaluate([bits], values)
    assert code == (i << value_of(places, values) if i else 0)
    assert i == 0 or code >> (bits.width - 1) == 1


@pytest.mark.parametrize(
    "name",
    [
        "gaudi2:mme.k8.f32.bf16.bf16.f32", "gaudi2:mme.k4.f32.tf32.tf32.f32", "gaudi2:mme.k2.f32.f32.f32.f32",
        "gaudi2:mme.k16.f32.e5m2.e5m2.f32", "gaudi3:mme.k8.f32.e4m3.e5m2.f32", "gaudi3:mme.k2.f32.f16.f16.f32",
        "gaudi3:mme.k1.f32.f32.f32.f32", "riscv:vfwbdot.k8.f32.bf16.bf16.f32",
    ],
)  # fmt: skip
def test_converted_operands_parts_and_an_exact_c(name):
    row = tcm.get_instruction(name)
    assert check(row, row.k, np.random.default_rng(2), 24) == 24


def test_bit_vectors_have_every_operation():
    asked = set(re.findall(r"_interpreter\([^)]*\)\.(\w+)", Path(operations.__file__).read_text()))
    assert len(asked) > 8 and asked <= set(vars(z))


def test_a_chain_of_multiply_adds_is_in_the_order_of_its_pairs():
    """Terms took the products in the order of k, whatever `pair_order` says."""
    engine = tcm.MatrixEngine(tcm.SequentialFMA(pair_order="odd_first"), a_format="fp16", c_format="fp32", k=2)
    inputs = encoding.symbolic_inputs(encoding.formats_of(engine), 2)
    a, b = ([int(x) for x in tcm.encode(np.array(row), "fp16")] for row in ([2.0**-12, 2.0**-12], [2.0**-12, 2.0**-11]))
    one = int(tcm.encode(np.array(1.0), "fp32"))
    values = {"a0": a[0], "b0": b[0], "a1": a[1], "b1": b[1], "c": one}
    (found,) = t.evaluate([encoding.result(engine, inputs, [])], values)
    assert found == dot_bits(engine.accumulator, a, b, one, engine.formats) == one + 2  # k = 0 first gives one + 1


@dataclass(frozen=True)
class WithoutTerms(tcm.FusedDotAdd):
    """A sum of which solvers cannot be asked."""

    left_out: ClassVar = {"terms": "made up for a test"}

    def pass_term(self, p):
        return Accumulator.pass_term(self, p)


def test_converted_operands_of_a_sum_without_terms_have_none():
    spec = ConvertedDotAdd(WithoutTerms(4), "fp32")
    engine = tcm.MatrixEngine(spec, a_format="fp16", c_format="fp32", k=4)
    with pytest.raises(Unencodable, match="WithoutTerms has no encoding"):
        encoding.result(engine, encoding.symbolic_inputs(encoding.formats_of(engine), 4), [])
