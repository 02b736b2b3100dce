"""A family of one's own, in one class that states its pass once: all else is made from that, with nothing registered elsewhere.

How identify looks for it is the one thing more that it says. The made-up unit aligns its addends to even exponents only, as a
shifter would that moves by two places at a time.
Its kernel for a GPU is tested in `tests/gpu/test_units_programs.py`.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from own_families import EvenShift, Nothing
from random_encodings import encodings

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from tensorcore_models import kernels, probing, reference
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.orders.trees import tree_of
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal import encoding

SMALL = (EvenShift(1, 2), tcm.FusedDotAdd(1, 2))
UNIT = tcm.MatrixEngine(EvenShift(), a_format="e5m2")


def test_words_and_tree():
    words = words_of_engine(UNIT)
    assert (
        words.title == "The unit adds 4 products and c and keeps 20 fraction bits of each"
        and "plus at most 1" in words.steps[0]
    )
    assert words.equations == (r"d = \mathrm{RZ}\left(T_{20}(c) + \sum_{i=1}^{4} T_{20}(a_i b_i)\right)",)
    assert tree_of(UNIT.accumulator, 8).outline() == ["[0] = 0..3 + c (F=20)", "[1] = [0] + 4..7 (F=20)"]


def test_it_runs_and_its_bound_holds():
    assert kernels.kernel_name(UNIT) == "program (EvenShift has no lowering)"
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((6, 12)), rng.standard_normal((12, 5))
    a, b = (tcm.round_to(x, "e5m2").astype(np.float64) for x in (a, b))
    unit = tcm.MatrixEngine(EvenShift(4, 8), a_format="e5m2")
    error = np.abs(unit.gemm(a, b) - a @ b)  # the exact sum of few products of 3 bits is a binary64 number
    bound = bounds.gemm_bound(unit, a, b)
    cut = 2 * 5 * 2.0**-8  # an even exponent is at most one above the largest
    assert bounds.step_error(unit).relative == pytest.approx(cut + 2.0**-23 * (1 + cut), rel=1e-12)
    assert (error <= bound).all() and error.max() > 0 and bound.max() < 2


@pytest.mark.full
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
    assert spec.words("fp32").title == "No words are derived for the algorithm of the class Nothing"
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


@dataclass(frozen=True)
class Asking(Nothing):
    """Asks a value what it is, which terms have no answer to."""

    def pass_bits(self, p):
        return 1 if p.a[0] == 0 else 0


def test_solvers_are_not_asked_about_a_pass_that_asks_its_values():
    engine = tcm.MatrixEngine(Asking(4), a_format="fp16")
    with pytest.raises(formal.Unencodable, match=r"Asking .* compared by Python's ==.*override pass_term"):
        formal.order_invariance(engine, k=2)
