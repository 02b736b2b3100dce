"""Wormhole's fidelity phases: which bits they take (tt-isa-documentation, SrcASrcB.md), and their sum."""

from fractions import Fraction

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import FidelityPhase
from tensorcore_models.probing.random_operands import KINDS, operands

ROWS = tcm.list_instructions("wormhole")
#: 1.1111111 in binary and its parts: seven and one bits of A (SrcB), five and three of B (SrcA); of tf32 four more, five more.
ONES = {
    "bf16": (0x3FFF, (Fraction(127, 64), Fraction(1, 128)), (Fraction(31, 16), Fraction(7, 128))),
    "tf32": (0x3FFFE000, (Fraction(127, 64), Fraction(15, 1024)), (Fraction(31, 16), Fraction(31, 512))),
}


@pytest.fixture
def kernel():
    yield kernels.set_kernel
    kernels.set_kernel(None)


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("fmt", ONES)
def test_the_bits_of_a_phase(fmt, phase):
    code, of_a, of_b = ONES[fmt]
    row = tcm.get_instruction("wormhole", f"mvmul.m8n16k16.f32.{fmt}.{fmt}.f32.phase{phase}")
    operand = row.formats[0]
    expected = of_a[phase >> 1] * of_b[phase & 1]
    a, b = np.zeros((8, 16), operand.container), np.zeros((16, 16), operand.container)
    a[0, 3], b[3, 5] = code, code | operand.sign_bit
    d = row.gemm_bits(a, b).view(np.float32)
    assert Fraction(float(d[0, 5])) == -expected
    assert np.count_nonzero(d) == 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_arrays_and_numbers_agree(row, kernel):
    """Subnormal numbers, infinities and NaN among them."""
    spec, fmt = row.accumulator, row.formats[0]
    drawn = np.random.default_rng(3).integers(0, 1 << fmt.bits, 2000, dtype=np.uint64).astype(fmt.container)
    codes = np.concatenate([drawn, drawn & fmt.container.type(~fmt.exponent_mask & (1 << fmt.bits) - 1)])
    for side in (0, 1):
        assert spec.taken_array(codes, fmt, side).tolist() == [spec.taken(int(x), fmt, side) for x in codes]
    for kind in KINDS:
        a, b, c = (x[0] for x in operands(row, kind, 1, np.random.default_rng(len(kind)))[:3])
        wanted = reference.mma_bits(row, a[:2], b[:, :3], c[:2, :3])
        for layer in ("auto", "generic"):
            kernel(layer)
            assert np.array_equal(kernels.matrix_bits(row, a[:2], b[:, :3], c[:2, :3]), wanted), (kind, layer)


def test_four_phases_are_the_whole_product_of_bf16():
    """Of integers below 256, which have eight bits: every sum is exact."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(-255, 256, (8, 32)).astype(float), rng.integers(-255, 256, (32, 16)).astype(float)
    d = np.zeros((8, 16), np.uint32)
    for row in ROWS[:4]:
        d = row.gemm_bits(tcm.encode(a, "bf16"), tcm.encode(b, "bf16"), d)
    assert np.array_equal(d.view(np.float32), a @ b)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_error_of_a_phase_is_within_its_bound(row):
    rng = np.random.default_rng(4)
    a, b = (tcm.encode(rng.standard_normal(shape), row.a_format, "rne") for shape in ((4, 48), (48, 4)))
    x, y = (tcm.decode(codes, row.a_format).astype(float) for codes in (a, b))
    error = np.abs(
        row.gemm_bits(a, b).view(np.float32) - x @ y
    )  # exact to 2^-40 beside parts of 2^-5 that are left out
    assert (error <= bounds.gemm_bound(row, x, y) * (1 + 2.0**-40)).all() and error.max() > 2.0**-9


def test_operands_that_it_does_not_take():
    with pytest.raises(ValueError, match="phase 4 must be 0 to 3"):
        FidelityPhase(4)
    with pytest.raises(ValueError, match="takes bf16, fp16 or tf32 operands, a_format is e4m3fn"):
        tcm.MatrixEngine(FidelityPhase(), a_format="e4m3fn")
