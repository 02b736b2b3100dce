"""A unit that does not exist, of four terms, one guard bit, a late c and rounding to odd, is one method: all else follows."""

from fractions import Fraction

import numpy as np
import pytest
from own_families import GuardedOdd
from random_encodings import encodings

import mpgemm
import tensorcore_models as tcm
from mpgemm.bounds import bounds
from tensorcore_models import kernels, reference
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.orders.trees import tree_of
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal import encoding

UNIT = tcm.MatrixEngine(GuardedOdd(), a_format="e4m3", c_format="fp16", d_format="fp16", k=8)
WIDER = tcm.MatrixEngine(GuardedOdd(), a_format="fp16", c_format="fp16", d_format="fp16", k=8)
SMALL = [
    tcm.MatrixEngine(spec, a_format="e2m1", c_format="e5m2", d_format="e5m2")
    for spec in (GuardedOdd(1), tcm.FusedDotAdd(1, 3))
]


def test_the_kernel_and_the_terms_compute_the_reference():
    rng = np.random.default_rng(1)
    assert kernels.kernel_name(UNIT) == "program (GuardedOdd has no lowering)"
    inputs = encoding.symbolic_inputs(encoding.formats_of(UNIT), 4)
    d = encoding.result(UNIT, inputs, [])
    for style in ("bits", "clustered", "cancelling", "specials"):
        a, b = encodings(rng, UNIT.formats[0], (4, 8), style), encodings(rng, UNIT.formats[1], (8, 3), style)
        c = encodings(rng, UNIT.formats[2], (4, 3), style)
        expected = reference.mma_bits(UNIT, a, b, c)
        np.testing.assert_array_equal(UNIT.gemm_bits(a, b, c), expected, style)
        values = (
            {f"a{k}": int(a[0, k]) for k in range(4)} | {f"b{k}": int(b[k, 0]) for k in range(4)} | {"c": int(c[0, 0])}
        )
        (got,) = t.evaluate([d], values)
        assert got == reference.dot_bits(
            UNIT.accumulator, a[0, :4].tolist(), b[:4, 0].tolist(), values["c"], UNIT.formats
        )


def test_its_tree_and_its_words_say_what_it_does():
    assert tree_of(UNIT.accumulator, 8).outline() == [
        "[0] = 0..3 (F=24)", "[1] = [0] + c (odd)", "[2] = 4..7 (F=24)", "[3] = [1] + [2] (odd)",
    ]  # fmt: skip
    words = words_of_engine(UNIT)
    assert words.title == "The unit adds 4 products and c last and keeps 11 fraction bits of each"
    assert words.steps[:2] == (
        "4 products are shifted to the largest exponent among them. Each shifted number is rounded to 11 fraction bits (toward "
        "zero). They are added exactly, and the sum is rounded to fp16 (to odd).",
        "The previous sum and c are added exactly, and the sum is rounded to fp16 (to odd).",
    )
    assert words.equations == (
        r"d = \mathrm{RO}\left(c + \mathrm{RO}\left(\sum_{i=1}^{4} T_{11}(a_i b_i)\right)\right)",
    )


def test_its_bound_is_derived():
    """By hand: four products cut to 11 bits, and two roundings to odd of 10 bits, one after the other."""
    cut, odd = 4 * 2.0**-11, 2.0**-10
    assert bounds.step_error(WIDER).relative == pytest.approx((1 + cut) * (1 + odd) ** 2 - 1, rel=1e-12)
    tiny = (
        2.0**-24
    )  # the unit of subnormal results; a product with a subnormal operand is aligned to 2^(15 - 14) at most
    expected = (cut * 2.0 ** (15 - 14) * (1 + odd) + tiny) * (1 + odd) + tiny
    assert bounds.step_error(WIDER).absolute == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("style", ["normal", "cancelling", "subnormal"])
def test_its_bound_holds(style):
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((30, 16)), rng.standard_normal((16, 30))
    if style == "cancelling":
        a[:, 1::2], b[1::2] = -a[:, ::2] * (1 + 2.0**-6), b[::2]
    if style == "subnormal":
        a, b = a * 2.0**-14, b * 2.0**-6
    a, b = (tcm.round_to(x, "fp16").astype(np.float64) for x in (a, b))
    error = np.abs(WIDER.gemm(a, b).astype(np.float64) - a @ b)
    assert (error <= bounds.gemm_bound(WIDER, a, b)).all() and error.max() > 0


def test_it_is_explained():
    a, b = np.array([1.0, 2.0, 3.0, 0.5]), np.array([1.0, 1.0, 0.25, 2.0])
    explained = mpgemm.explain("fp16", a, b, engine=WIDER)
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    assert explained.steps[-1].value == float(exact) == 4.75


@pytest.mark.skipif(not formal.available_backends(), reason="needs a solver (extra smt)")
@pytest.mark.unsanitized
def test_a_solver_tells_it_from_a_fused_sum():
    assert formal.distinguishing_input(*SMALL, k=1).status == "witness"
