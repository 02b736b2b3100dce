"""Sums that are rounded stochastically: keyed as conversions are, the same bits in plain integers and in the kernels."""

import dataclasses

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels, probing, reference
from tensorcore_models.accumulators import ConvertedDotAdd, InterleavedDotAdd
from tensorcore_models.aspects.errors import roundings_to
from tensorcore_models.formats.exact_rounding import stochastic_draw, stochastic_draws
from tensorcore_models.probing import formal
from tensorcore_models.probing.interface import Interface
from tensorcore_models.probing.random_operands import KINDS, operands

UNITS = [
    (tcm.FusedDotAdd(4, 24, output_rounding="sr", seed=7), "fp16", "fp32"),
    (tcm.FusedDotAdd(4, 12, output_rounding="sr", output_fraction_bits=3), "e5m2", "fp16"),
    (tcm.FusedDotAdd(8, 70, output_rounding="sr", seed=2**64 - 1), "bf16", "bf16"),
    (tcm.ParametricDotAdd(4, None, output_rounding="sr", seed=3), "bf16", "fp32"),
    (tcm.ParametricDotAdd(4, 30, output_rounding="sr", c_position="late"), "e4m3fn", "bf16"),
    (tcm.ParametricDotAdd(4, 30, output_rounding="sr", c_position="exact", flush_outputs=True), "fp16", "fp16"),
    (tcm.SequentialFMA("sr", seed=9), "fp16", "fp32"),
    (tcm.SequentialFMA("sr", flush_outputs=True), "bf16", "fp16"),
    (tcm.SequentialFMA("sr", flush_inputs=True, seed=1), "fp32", "fp32"),
    (ConvertedDotAdd(tcm.SequentialFMA("sr", seed=5), "fp32"), "e4m3fn", "fp32"),
]


def engine(spec, fmt, d, k=8):
    return tcm.MatrixEngine(spec, a_format=fmt, c_format=d, d_format=d, k=k)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("spec", "fmt", "d"), UNITS, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_kernels_give_the_bits_of_plain_integers(spec, fmt, d):
    unit = engine(spec, fmt, d)
    assert kernels.kernel_name(unit).startswith("generic")
    rng = np.random.default_rng(0)
    for kind in KINDS:
        a, b, c, *_ = operands(Interface.of(unit, 5, 9), kind, 6, rng)
        wanted = reference.mma_bits(unit, a, b, c)
        assert np.array_equal(kernels.batch_bits(unit, a, b, c), wanted), kind
        assert all(np.array_equal(unit.gemm_bits(*x[:3]), x[3]) for x in zip(a, b, c, wanted, strict=True)), kind


def test_wide_results_are_left_to_plain_integers():
    assert "stochastic rounding to 52" in kernels.kernel_name(engine(tcm.SequentialFMA("sr"), "fp64", "fp64"))


def test_a_sum_is_rounded_as_a_number_is():
    """The first pass has the draws of encode with the same seed; the second has those of elements 2^32 on."""
    x = np.random.default_rng(1).standard_normal((37, 1)).astype(np.float32)
    ones = np.ones((1, 41), np.float32)
    unit = engine(tcm.ParametricDotAdd(1, None, output_rounding="sr", seed=11), "fp32", "bf16", 1)
    bits = unit.gemm_bits(x.view(np.uint32), ones.view(np.uint32))
    assert np.array_equal(bits, tcm.encode(x * ones, "bf16", "sr", seed=11))
    twice = unit.gemm_bits(np.hstack([0 * x, x]).view(np.uint32), np.vstack([ones, ones]).view(np.uint32))
    draws = np.array([stochastic_draw(11, 1 << 32 | i) for i in range(x.size * 41)]).reshape(37, 41)
    code = np.repeat((x * 1.0).view(np.uint32), 41, 1)
    up = (code & 0xFFFF).astype(np.uint64) << np.uint64(16) > draws
    assert np.array_equal(twice, ((code >> 16) + up).astype(np.uint16))


def test_draws_one_by_one_and_as_an_array():
    assert stochastic_draws(2**63 + 5, 50).tolist() == [stochastic_draw(2**63 + 5, i) for i in range(50)]


def test_sums_are_right_in_the_mean():
    """0.1 a thousand times in bf16: to nearest the sum sticks at 32, stochastically it is right in the mean."""
    a, b = np.full((1, 1024), 0.1), np.ones((1024, 400))
    nearest, random = (
        engine(spec, "bf16", "bf16", 1).gemm(a, b, input_rounding="rne").astype(float)
        for spec in (tcm.SequentialFMA(), tcm.SequentialFMA("sr", seed=1))
    )
    exact = 1024 * float(tcm.round_to(0.1, "bf16"))
    assert nearest.max() < 0.5 * exact and abs(random.mean() / exact - 1) < 0.02 and random.std() > 0
    assert np.array_equal(
        random, engine(tcm.SequentialFMA("sr", seed=1), "bf16", "bf16", 1).gemm(a, b, input_rounding="rne")
    )
    assert roundings_to(7, "sr") == (1, 2.0**-6, False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tcm.FusedDotAdd(seed=3), "seed 3 is a key of stochastic rounding"),
        (lambda: tcm.SequentialFMA("sr", seed=-1), r"must lie in \[0, 2\*\*64\)"),
        (lambda: tcm.SequentialFMA("sr", pair_order="odd_first"), "a pass has only one draw"),
        (lambda: tcm.FusedDotAdd(alignment_rounding="sr"), "alignment_rounding cannot be stochastic"),
        (lambda: InterleavedDotAdd(tcm.FusedDotAdd(output_rounding="sr")), "dot is rounded stochastically, but"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_solvers_cannot_be_asked():
    unit, other = (engine(tcm.SequentialFMA(r), "e4m3fn", "fp16", 1) for r in ("sr", "rz"))
    with pytest.raises(formal.Unencodable, match="rounded stochastically"):
        formal.distinguishing_input(unit, other)


@pytest.mark.parametrize(
    "spec",
    [
        tcm.FusedDotAdd(4, 24, output_rounding="sr", seed=77),
        pytest.param(tcm.SequentialFMA("sr", seed=5), marks=pytest.mark.full),
    ],
)
def test_identified_blind_with_its_key(spec):
    """The box tells the key that it was given and nothing else."""
    found = probing.identify(engine(spec, "fp16", "fp32", 4), vectors=3000)
    assert found.specification == spec, str(found)
    nearest = dataclasses.replace(
        spec, **{"rounding" if hasattr(spec, "rounding") else "output_rounding": "rz", "seed": 0}
    )
    assert probing.identify(engine(nearest, "fp16", "fp32", 4), vectors=1000).specification == nearest


@pytest.mark.full
def test_a_callable_tells_its_key():
    spec = tcm.FusedDotAdd(2, 24, output_rounding="sr", seed=77)
    unit = engine(spec, "fp16", "fp32", 4)
    options = {"a_format": "fp16", "d_format": "fp32", "k": 4, "raw": True}
    assert probing.identify(unit.gemm_bits, key=77, vectors=500, **options).specification == spec
    assert "depends on the position" in probing.identify(unit.gemm_bits, vectors=500, **options).fault


@pytest.mark.parametrize("spec", [tcm.FusedDotAdd(4, 24, output_rounding="sr"), tcm.SequentialFMA("sr")])
def test_solvers_refuse_them(spec):
    with pytest.raises(formal.Unencodable, match="rounded stochastically"):
        formal.order_invariance(tcm.MatrixEngine(spec, a_format="fp16"), k=2)
