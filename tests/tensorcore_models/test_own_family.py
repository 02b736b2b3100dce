"""A family of one's own, in one class: words, a tree, a bound, kernels, identify and solvers with nothing registered elsewhere.

The made-up unit aligns its addends to even exponents only, as a shifter would that moves by two places at a time.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from random_encodings import encodings

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from tensorcore_models import kernels, probing, reference
from tensorcore_models.accumulators import Accumulator, AlignedSum
from tensorcore_models.aspects import errors, search
from tensorcore_models.aspects.search import Field, Search, divisors
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.explanations.descriptions import Words
from tensorcore_models.orders.trees import tree_of
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal import encoding


@dataclass(frozen=True)
class EvenShift(AlignedSum):
    """Products and c are aligned to the largest exponent, rounded up to an even number, and cut to `fraction_bits` below it."""

    terms: int = 4
    fraction_bits: int = 20

    left_out: ClassVar = {"kernels": "made up for a test", "probe vectors": "made up for a test"}

    @property
    def terms_per_step(self) -> int:
        return self.terms

    def pass_bits(self, p):
        z, fmt = p.arithmetic, p.formats[3]
        numbers = [*(z.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)), p.addend]

        def finite():
            addends = z.taking_part(numbers)
            if not addends:
                return 0
            largest = z.largest_exponent(addends)
            even = largest + (largest & 1)
            cut = [z.cut(x, even, self.fraction_bits, "rz") for x in addends]
            return z.finish(*z.summed(cut, even, self.fraction_bits), fmt, self, "rz")

        return z.unless_special(numbers, finite, fmt, self)

    def words(self, d):
        step = (
            f"{self.terms} products and c are aligned to an even exponent, cut to {self.fraction_bits} bits and added."
        )
        return Words(
            f"Sum of {self.terms} products at even exponents", (step,), r"d = \sum_i T(a_i b_i)", "aligns evenly"
        )

    def add_step(self, ks, c, to):
        return to.add([c, *ks], f"F={self.fraction_bits}", "aligned to an even exponent")

    def step_error(self, unit, facts):
        cut = 2 * (self.terms + 1) * 2.0**-self.fraction_bits  # an even exponent is at most one above the largest
        relative, absolute, text = errors.output_error(self, unit.formats[3], 1, "rz")
        floor = errors.alignment_floor(self, unit, facts.floor)
        return errors.StepError(
            errors.compounded(cut, relative), cut * 2.0**floor + absolute, self.terms, (f"cut: {cut:.3g}", text)
        )

    @classmethod
    def searches(cls):
        fields = (Field(("terms",), divisors), Field(("fraction_bits",), lambda i, s: range(8, 25)), *search.COMMON)
        starts = search.unscaled(lambda i: [cls(terms, bits) for terms in divisors(i) for bits in (12, 20)])
        return (Search("sums at even exponents", fields, starts, ("terms",), rank=1),)

    def pass_term(self, p):
        return self.pass_bits(p)


@dataclass(frozen=True)
class Nothing(Accumulator):
    """States nothing but its integers."""

    terms: int = 4

    @property
    def terms_per_step(self) -> int:
        return self.terms

    def pass_bits(self, p):
        return 0


SMALL = (EvenShift(1, 2), tcm.FusedDotAdd(1, 2))
UNIT = tcm.MatrixEngine(EvenShift(), a_format="e5m2")


def test_words_and_tree():
    assert words_of_engine(UNIT).title == "Sum of 4 products at even exponents"
    assert tree_of(UNIT.accumulator, 8).outline() == ["[0] = 0..3 + c (F=20)", "[1] = [0] + 4..7 (F=20)"]


def test_it_runs_and_its_bound_holds():
    assert kernels.kernel_name(UNIT) == "program (EvenShift has no lowering)"
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((6, 12)), rng.standard_normal((12, 5))
    a, b = (tcm.round_to(x, "e5m2").astype(np.float64) for x in (a, b))
    unit = tcm.MatrixEngine(EvenShift(4, 8), a_format="e5m2")
    error = np.abs(unit.gemm(a, b) - a @ b)  # the exact sum of few products of 3 bits is a binary64 number
    bound = bounds.gemm_bound(unit, a, b)
    assert (error <= bound).all() and error.max() > 0 and bound.max() < 2


def test_it_is_identified():
    """3 s: the search runs the class's plain Python."""
    unit = tcm.MatrixEngine(EvenShift(2, 14), a_format="e4m3fn", k=2)
    found = probing.identify(unit, vectors=0, families=(EvenShift,))
    assert found.family == "sums at even exponents" and found.engine.accumulator == unit.accumulator
    # Without the class a box is never taken for it, and nobody else's search has changed.
    assert EvenShift not in tcm.accumulators.FAMILIES


def test_its_terms_are_its_integers():
    rng, formats = np.random.default_rng(2), encoding.formats_of(UNIT)
    inputs = encoding.symbolic_inputs(formats, 4)
    d, compared = encoding.result(UNIT, inputs, []), 0
    for style in ("bits", "clustered", "cancelling", "specials") * 4:
        a, b = (encodings(rng, formats.a, (4,), style) for _ in range(2))
        c = int(encodings(rng, formats.c, (1,), style)[0])
        values = {f"{name}{i}": int(x) for name, row in (("a", a), ("b", b)) for i, x in enumerate(row)} | {"c": c}
        (got,) = t.evaluate([d], values)
        assert got == reference.dot_bits(EvenShift(), a.tolist(), b.tolist(), c, UNIT.formats), (style, values)
        compared += 1
    assert compared == 16


@pytest.mark.skipif(not formal.available_backends(), reason="needs a solver (extra smt)")
@pytest.mark.unsanitized
def test_a_solver_tells_it_from_a_fused_sum():
    """Comment on time: one query of one product and c, the smallest that shows an odd largest exponent."""
    unit, fused = (tcm.MatrixEngine(spec, a_format="e2m1", c_format="e5m2", d_format="e5m2") for spec in SMALL)
    verdict = formal.distinguishing_input(unit, fused, k=1)
    assert verdict.status == "witness"


def test_it_is_probed_without_vectors():
    row = tcm.list_instructions("hopper")[0]
    row = type(row)(EvenShift(), **{f: getattr(row, f) for f in ("arch", "name", "m", "n", "source", "evidence")}, k=4)
    assert probing.probe_set(row).vectors == ()


def test_a_class_with_other_integers_inherits_no_claim():
    """What is true of FusedDotAdd would be said, bounded, searched and run for a class that computes something else."""
    with pytest.raises(
        TypeError, match=r"Sparse overrides pass_bits of FusedSum and inherits its words, .*plan_fields"
    ):

        class Sparse(tcm.FusedDotAdd):
            def pass_bits(self, p):
                return 0


def test_a_class_of_integers_alone_runs():
    spec = Nothing(4)
    assert spec.words("fp32").title == "An algorithm of one's own, Nothing"
    assert (
        tree_of(spec, 4) is None
        and spec.form().algorithm is None
        and spec.searches() == ()
        and spec.parametric() is None
    )
    engine = tcm.MatrixEngine(spec, a_format="fp16")
    assert kernels.kernel_name(engine, 512, 512, 512) == "program (Nothing has no lowering)"
    assert not engine.gemm(np.ones((2, 4)), np.ones((4, 2))).any()
    with pytest.raises(ValueError, match="no bound is derived for Nothing"):
        bounds.gemm_bound(engine, np.ones((2, 4)), np.ones((4, 2)))
    with pytest.raises(formal.Unencodable, match="override pass_term"):
        formal.order_invariance(engine, k=2)
