"""The error taken apart: parts sum exactly to the whole and stand where the error is made; every step is shown."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from mpgemm import attribute, explain, ieee_engine, list_methods, recovered_gemm
from mpgemm.bounds.attribution import PARTS, WIDE, encode_fraction, floor_log2, ulp_at
from mpgemm.bounds.error_parts import CAUSES, SplitOperand, error_parts, full_bits, overflow_threshold
from mpgemm.exact.product import exact_gemm
from mpgemm.explanations.example import VALPEY_A, VALPEY_B, VALPEY_C
from mpgemm.recovery.run import prepare
from mpgemm.reproductions.valpey_table5 import MARKIDIS, OOTOMO

ENGINES = ("v100", "a100", "h100", "mi250", "mi300x", "l40s", "t4")


def vectors(seed, k, spread=3):
    rng = np.random.default_rng(seed)
    return tuple(
        np.ldexp(rng.uniform(-1, 1, k), rng.integers(-spread, spread + 1, k)).astype(np.float32) for _ in range(2)
    )


@settings(max_examples=60, derandomize=True)
@given(
    st.sampled_from([row.name for row in list_methods()]),
    st.sampled_from((None, *ENGINES)),
    st.integers(0, 2**32 - 1),
    st.integers(0, 40),
    st.booleans(),
)
def test_parts_sum_exactly_to_the_error(method, engine, seed, k, with_c):
    a, b = vectors(seed, k)
    c = np.float32(1.2345) if with_c else None
    try:
        found = attribute(method, a, b, c, engine)
    except ValueError as error:
        assert engine is not None and "needs" in str(error)
        return
    exact = sum(
        (Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)),
        Fraction(float(c) if with_c else 0),
    )
    computed = recovered_gemm(a[None], b[:, None], None if c is None else c.reshape(1, 1), method, engine)[0, 0]
    assert found.exact == exact and found.computed == Fraction(float(computed))
    assert tuple(found.parts) == PARTS
    assert sum(found.parts.values()) == found.total == found.computed - exact


def only(found, *stages):
    return all(part == 0 for stage, part in found.parts.items() if stage not in stages)


def test_each_part_stands_where_the_error_is_made():
    thirds = np.float32([1 / 3, 2 / 3, 1 / 7])
    split = attribute("fp16", thirds[:1], np.float32([1.0]), None, "h100")
    assert split.parts["split"] != 0 and only(split, "split")
    # 2^0 and 2^-24 on V100: F = 23 cuts the small product off at the alignment; F = 24 keeps it and RZ cuts it after.
    small = np.float32([1, 2.0**-12]), np.float32([1, 2.0**-12])
    assert attribute("fp16", *small, None, "v100").parts["alignment"] == -(Fraction(2) ** -24)
    assert attribute("fp16", *small, None, "a100").parts["core rounding"] == -(Fraction(2) ** -24)
    assert attribute("fp32", *small, None, "ieee").parts["core rounding"] == -(Fraction(2) ** -24)
    outside = attribute("ootomo", np.float32([1.0]), np.float32([1.0]), np.float32(2.0**-24), "h100")
    assert outside.parts["outside"] == -(Fraction(2) ** -24) and only(outside, "outside")
    low = np.float32([1 + 2.0**-11 + 2.0**-20])
    dropped = attribute("ma", low, low, None, ieee_engine("fp16", "fp64"))
    rest = Fraction(float(low[0])) - Fraction(float(np.float16(low[0])))
    assert dropped.parts["dropped term"] == -rest * rest and only(dropped, "dropped term")


def test_valpey_walk_through():
    """The steps of section 6: 1 - 2^-24 kept unnormalised, 15 of 15.32 units, and 2^-24 lost outside."""
    markidis = explain(MARKIDIS, VALPEY_A, VALPEY_B, VALPEY_C, "v100")
    text = str(markidis)
    assert "aligned to exponent -1, kept to multiples of 2^-24: product 0 16777200; product 1 15 (rz of 15.3235" in text
    assert "0x3f800001" in text and only(markidis.attribution, "alignment")
    ootomo = explain(OOTOMO, VALPEY_A, VALPEY_B, VALPEY_C, "v100").attribution
    assert ootomo.parts["core rounding"] == ootomo.parts["outside"] == -(Fraction(2) ** -24)


@pytest.mark.parametrize("row", list_methods(), ids=lambda row: row.name)
@pytest.mark.parametrize("c", (None, np.float32(0.75)))
def test_the_last_step_is_the_result(row, c):
    a, b = vectors(3, 5)
    explanation = explain(row.name, a, b, c)
    expected = recovered_gemm(a[None], b[:, None], None if c is None else c.reshape(1, 1), row.name)[0, 0]
    assert explanation.steps[-1].stage == "result" and explanation.steps[-1].value == float(expected)
    json.dumps(explanation.to_dict(), allow_nan=False)
    words = [step for step in explanation.steps if step.stage == "split" and "word 0" in step.text]
    assert len(words) >= 10 and str(explanation).startswith(row.name)


def test_steps_of_the_core_are_those_of_the_whole_chain():
    """The last value noted by the chain of a core-only method is the result itself, in both orders."""
    a, b = vectors(4, 40)
    for order in ("step", "term"):
        explanation = explain("markidis", a, b, np.float32(2.0), "a100", order=order)
        core = [step for step in explanation.steps if step.stage == "core" and step.value is not None]
        assert core[-1].value == explanation.steps[-1].value
        assert len(core) == 4 * 3


@pytest.mark.full
@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    st.sampled_from(("sgemm_cube", "markidis", "ootomo", "bf16x3", "multiword:words=3,dynamic_scaling=False", "fp16")),
    st.integers(0, 2**32 - 1),
)
def test_one_dot_product_and_a_whole_one_have_the_same_causes(method, seed):
    """Elements from 2^-30 up to beyond fp16's largest number: every cause is there, and none is of two kinds."""
    rng = np.random.default_rng(seed)
    a, b = (np.ldexp(rng.uniform(-1, 1, s), rng.integers(-30, 18, s)).astype(np.float32) for s in ((3, 7), (7, 2)))
    run = prepare(a, b, None, method, "a100", "saturate", {})
    operands = []
    for x, encodings in zip((a, b), run.words(), strict=True):
        words = [np.ldexp(tcm.decode(w, run.word_format), -j * run.scale) for j, w in enumerate(encodings)]
        beyond = np.abs(x) >= overflow_threshold(run.word_format)
        bits = full_bits(run.word_format, run.row.words, run.row.rounding)
        operands.append(SplitOperand(x.astype(np.float64), words, beyond, bits))
    error = np.asarray(exact_gemm(a, b).error_of(run.product()))
    whole = error_parts(*operands, run.row.products, error)
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b)
    for i, j in itertools.product(range(3), range(2)):
        one = attribute(method, a[i], b[:, j], None, "a100", overflow="saturate")
        assert tuple(one.causes) == CAUSES == tuple(whole) and sum(one.causes.values()) == one.total
        for cause in CAUSES:
            assert abs(float(one.causes[cause]) - whole[cause][i, j]) <= 2**-48 * sizes[i, j]
        parts = {name: abs(part) for name, part in one.causes.items()}
        assert not one.cause or parts[one.cause] == max(parts.values())


def test_the_words_say_what_they_hold():
    """`full_bits` is what splits of numbers in range keep at least, and some of them no more."""
    x = (1 + np.arange(1, 1 << 23, 37) * 2.0**-23).astype(np.float32)
    rows = [("fp16", 2, "rne", 12), ("fp16", 2, "rz", 12), ("bf16", 2, "rne", 0), ("fp16", 1, "rne", 0)]
    for fmt, words, rounding, scale in rows:
        kept = tcm.bits_kept(x, tcm.split(x, fmt, words, scale, rounding), scale)
        assert kept.min() >= full_bits(tcm.get_format(fmt), words, rounding) > kept.min() - 1


def test_callables_have_core_rounding_only():
    def f(a, b, c):
        return (a.astype(np.float32) @ b.astype(np.float32) + c).astype(np.float32)

    engine = tcm.as_engine(f, a_format="fp16", d_format="fp32", k=4)
    found = attribute("egemm", *vectors(5, 9), None, engine)
    assert found.parts["alignment"] == 0 and sum(found.parts.values()) == found.total


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.float32([1, np.inf]), np.float32([1, 1]), "a holds infinities or NaN, expected finite values"),
        (np.float32([1e6, 1]), np.float32([1, 1]), "gives (inf|nan), expected a finite result"),
        (np.float32([1, 2]), np.float32([1]), "two vectors"),
        (np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), "two vectors"),
    ],
)
def test_what_has_no_parts(a, b, message):
    with pytest.raises(ValueError, match=message):
        attribute("ootomo", a, b)


@given(st.integers(-(2**49) + 1, 2**49 - 1), st.integers(-300, 300))
def test_wide_format_is_exact(significand, exponent):
    x = Fraction(significand) * Fraction(2) ** exponent
    kind, negative, magnitude, quantum = WIDE.decode_exact(encode_fraction(x, WIDE))
    assert kind == "finite" and (-1) ** negative * magnitude * Fraction(2) ** quantum == x


def test_ulp_and_logarithm():
    fp32 = tcm.get_format("fp32")
    assert ulp_at(Fraction(1), fp32) == Fraction(2) ** -23 == ulp_at(Fraction(15, 8), fp32)
    assert ulp_at(Fraction(0), fp32) == ulp_at(Fraction(2) ** -140, fp32) == Fraction(2) ** -149
    assert [floor_log2(Fraction(x)) for x in ("1", "3/2", "2", "1/3", "-5")] == [0, 0, 1, -2, 2]
