"""An accumulator of one's own: a class with its reference runs at once, without any compiled code for it."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import Accumulator
from tensorcore_models.formats.exact_rounding import encode_exact


@dataclass(frozen=True)
class LargestOnly(Accumulator):
    """A made-up unit: of each `terms` products only the largest magnitude counts; it is added to c and rounded to nearest."""

    terms: int = 4

    @property
    def terms_per_step(self) -> int:
        return self.terms

    def pass_bits(self, p: reference.Pass) -> int:
        products = [x * y for x, y in zip(map(value, p.x), map(value, p.y), strict=True)]
        total = value(p.formats[2].decode_exact(p.c)) + max(products, key=abs)
        return encode_exact(total, p.formats[3])


def value(x) -> Fraction:
    magnitude = Fraction(x.significand) * Fraction(2) ** x.exponent
    return -magnitude if x.negative else magnitude


def test_it_runs_at_once():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 12)).astype(np.float16), rng.standard_normal((12, 3)).astype(np.float16)
    engine = tcm.MatrixEngine(LargestOnly(4), a_format="fp16", d_format="fp32")
    assert kernels.kernel_name(engine).startswith("reference (LargestOnly has no lowering; ")
    expected = np.zeros((5, 3), np.float32)
    for start in range(0, 12, 4):
        largest = largest_products(a[:, start : start + 4], b[start : start + 4])
        expected = (expected.astype(np.float64) + largest).astype(
            np.float32
        )  # 24 + 22 bits: the sum is exact in binary64
    assert np.array_equal(engine.gemm(a, b), expected)
    c = np.ones((5, 3), np.float32)
    assert np.array_equal(engine.gemm(a[:, :4], b[:4], c), (1 + largest_products(a[:, :4], b[:4])).astype(np.float32))


def largest_products(a, b):
    products = a[:, :, None].astype(np.float64) * b[None].astype(np.float64)
    return np.take_along_axis(products, np.abs(products).argmax(axis=1, keepdims=True), 1)[:, 0]


def test_a_class_without_an_algorithm_says_so():
    engine = tcm.MatrixEngine(Accumulator(), a_format="fp16", d_format="fp32", k=4)
    with pytest.raises(NotImplementedError, match="Accumulator states no algorithm: override pass_bits"):
        engine.gemm(np.ones((1, 4)), np.ones((4, 1)))
