"""Identification of misbehaving boxes: those that are refused, and zeros that a pool must ask for."""

import numpy as np
import pytest
from boxes import FOUR

import tensorcore_models as tcm
from tensorcore_models import probing
from tensorcore_models.probing.identify.box import as_box
from tensorcore_models.probing.identify.inputs import pool

TWO = {"a_format": "fp16", "c_format": "fp32", "d_format": "fp32", "k": 2, "raw": True}


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a, b, c: np.full(c.shape, 0x3FC00000, np.uint32), "answers are 0x3fc00000"),
        (lambda a, b, c: c.copy(), "answers are c"),
    ],
)
def test_a_box_that_multiplies_nothing_is_said_to_be_one(function, said):
    result = probing.identify(function, **TWO)
    assert result.engine is None and "no product" in result.verdict and said in result.verdict
    assert result.queries < 3000 and result.vectors < 1000


class TestFaults:
    """Boxes that are refused before anybody looks at their arithmetic."""

    unit = FOUR
    formats = {"a_format": "fp16", "c_format": "fp32", "d_format": "fp32", "k": 4}

    def identify(self, function):
        result = probing.identify(function, **self.formats, raw=True)
        assert result.engine is None and result.verdict.startswith("the box cannot be identified")
        return result

    def test_raises(self):
        def picky(a, b, c):
            if (c & 0x7FFFFFFF > 0x7F800000).any():
                raise OverflowError("no NaN, please")
            return self.unit.gemm_bits(a, b, c)

        result = self.identify(picky)
        assert "raises: OverflowError: no NaN, please" in result.fault
        assert result.counterexample.c & 0x7FFFFFFF > 0x7F800000

    def test_ends_the_program(self):
        """Where it is asked for many dot products, and where the culprit among them is looked for."""

        def leaving(a, b, c):
            raise SystemExit(0)

        assert "raises: SystemExit: 0" in self.identify(leaving).fault

    @pytest.mark.parametrize("raw", [True, False])
    def test_one_that_overwrites_its_operands_is_identified(self, raw):
        unit = self.unit.gemm_bits if raw else self.unit.gemm

        def scratching(a, b, c):
            d = unit(a, b, c)
            for x in (a, b, c):
                x[:] = 1
            return d

        result = probing.identify(scratching, **self.formats, raw=raw, vectors=2000)
        assert result.engine is not None and result.specification == self.unit.accumulator

    def test_an_engine_of_a_function_that_overwrites_its_operands_leaves_the_callers_alone(self):
        def scratching(a, b, c):
            a[:] = b[:] = 7
            return np.zeros((len(a), b.shape[1]), np.float32)

        engine = tcm.as_engine(scratching, a_format="fp16", d_format="fp32", k=4)
        a, b = np.ones((2, 8), np.float16), np.ones((8, 3), np.float16)
        engine.gemm(a, b)
        assert (a == 1).all() and (b == 1).all()

    def test_wrong_type(self):
        assert "type: " in self.identify(lambda a, b, c: np.zeros((1, 1))).fault

    def test_wrong_shape(self):
        assert "shape: " in self.identify(lambda a, b, c: self.unit.gemm_bits(a, b, c)[:1, :1].repeat(2, 1)).fault

    def test_not_deterministic(self):
        rng = np.random.default_rng(0)

        def noisy(a, b, c):
            d = self.unit.gemm_bits(a, b, c)
            return d ^ rng.integers(0, 2, d.shape).astype(np.uint32)

        assert "not deterministic" in self.identify(noisy).fault

    def test_depends_on_the_position(self):
        def slanted(a, b, c):
            d = self.unit.gemm_bits(a, b, c)
            d[:, 2:] ^= 1
            return d

        assert "depends on the position" in self.identify(slanted).fault

    def test_other_results_in_matrices(self):
        """Products of matrices end with +0, dot products do not. Takes 2 s: a search, and matrices until one has a -0."""
        unit = tcm.MatrixEngine(tcm.ParametricDotAdd(2, None, output_rounding="rne", zero_sign="ieee"), a_format="fp16")
        box = as_box(unit)

        def matrix(a, b, c, *scales):
            d = unit.gemm_bits(a, b, c)
            return np.where(d == 0x80000000, 0, d).astype(d.dtype)

        box.matrix = matrix
        assert "other results in matrices" in probing.identify(box, vectors=50_000).fault

    def test_a_unit_that_ends_a_gemm_with_a_zero_is_asked_for_its_steps(self):
        """Gaudi 2: the last +0 is the GEMM's, not the step's."""
        row = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
        a, c = np.zeros((1, 8), np.uint16), np.full((1, 1), 0x80000000, np.uint32)
        assert row.gemm_bits(a | 0x8000, a.T, c) == 0 and as_box(row).ask_matrices(a | 0x8000, a.T, c) == 0x80000000


@pytest.mark.parametrize("k", [1, 2, 8, 32])
def test_pools_ask_for_the_sign_of_a_sum_of_zeros(k):
    """All products and c -0 (only then a sum of IEEE additions is), and one product of them +0."""
    interface = as_box(tcm.MatrixEngine(tcm.ParametricDotAdd(k, None), a_format="e5m2", k=k)).interface
    batch = pool(interface, 2600, np.random.default_rng(0))
    zeros = ((batch.a & 0x7F) == 0).all(axis=1) & (batch.b == 0).all(axis=1) & (batch.c == 0x80000000)
    negative = np.count_nonzero(batch.a & 0x80, axis=1)
    assert {k - 1, k} <= set(negative[zeros])
