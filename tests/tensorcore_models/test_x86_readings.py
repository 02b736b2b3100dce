"""Where Intel's text leaves a choice: both readings of AMX-FP8, and what the rows say of themselves."""

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from tensorcore_models import kernels, reference
from tensorcore_models.probing.interface import Interface
from tensorcore_models.probing.random_operands import KINDS, operands

NAMES = {"tdpbf8ps": ("e5m2", "e5m2"), "tdphf8ps": ("e4m3fn", "e4m3fn"), "tdpbhf8ps": ("e5m2", "e4m3fn")}


def row_of(name):
    return next(row for row in tcm.list_instructions("x86") if row.name.startswith(name))


def drawn(rng, fmt, shape):
    """Encodings of finite numbers, subnormal ones among them."""
    codes = rng.integers(0, 256, shape, dtype=np.uint8)
    return np.where(np.isfinite(tcm.decode(codes, fmt).astype(np.float32)), codes, 0).astype(np.uint8)


def by_numpy(a, b, c):
    """The reading of Bochs in NumPy's float32: pairs of a dword, two lanes, c last; what fp16 has as subnormal is zero."""
    a, b = (np.where(np.abs(x) < 2.0**-14, np.float32(0), x) for x in (a, b))
    lanes = [np.zeros(c.shape, np.float32), np.zeros(c.shape, np.float32)]
    for k in range(0, a.shape[1], 2):
        pair = a[:, k, None] * b[None, k] + a[:, k + 1, None] * b[None, k + 1]
        lanes[k // 2 % 2] = lanes[k // 2 % 2] + pair
    return c + (lanes[0] + lanes[1])


@pytest.mark.parametrize("name", NAMES)
def test_pairs_in_two_lanes(name):
    rng = np.random.default_rng(7)
    row = row_of(name)
    read = row.with_rules(pairs="two_lanes")
    a, b = drawn(rng, row.a_format, (4, 64)), drawn(rng, row.b_format, (64, 4))
    c = rng.standard_normal((4, 4)).astype(np.float32)
    found, chain = (unit.gemm_bits(a, b, c.view(np.uint32)) for unit in (read, row))
    x, y = (tcm.decode(codes, fmt).astype(np.float32) for codes, fmt in ((a, row.a_format), (b, row.b_format)))
    assert np.array_equal(found, by_numpy(x, y, c).view(np.uint32))
    assert (found != chain).any()
    bound = bounds.gemm_bound(read, x, y, c)
    exact = x.astype(float) @ y.astype(float) + c
    assert (np.abs(found.view(np.float32) - exact) <= bound * (1 + 2.0**-40)).all()


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", NAMES)
def test_two_lanes_run_compiled(name):
    """Specials among the operands, too: x86 returns the first NaN."""
    unit, rng = row_of(name).with_rules(pairs="two_lanes"), np.random.default_rng(1)
    assert kernels.kernel_name(unit) == "generic two_lanes-64"
    for kind in KINDS:
        a, b, c, *_ = operands(Interface.of(unit, 3, 5), kind, 3, rng)
        assert np.array_equal(kernels.batch_bits(unit, a, b, c), reference.mma_bits(unit, a, b, c)), kind


def test_on_normal_data_both_readings_have_subnormal_numbers_apart_only():
    """Of e5m2 a subnormal operand is zero in one reading; without them, sums of few bits are exact in both."""
    row = row_of("tdpbf8ps")
    a, b = np.full((1, 64), 0x3C, np.uint8), np.full((64, 1), 0x3C, np.uint8)  # ones
    assert row.gemm_bits(a, b) == row.with_rules(pairs="two_lanes").gemm_bits(a, b)
    a[0, 0] = 1  # 2^-16
    values = [unit.gemm_bits(a, b).view(np.float32)[0, 0] for unit in (row, row.with_rules(pairs="two_lanes"))]
    assert values == [63 + 2.0**-16, 63]


def test_what_the_rows_say():
    assert "withdrawn" in row_of("tmmultf32ps").note and "no silicon" in row_of("tmmultf32ps").note
    note = row_of("tdphf8ps").note
    assert "Intel's text" in note and "Bochs" in note
    with pytest.raises(
        ValueError, match="pairs 'two_lanes' with lanes 2 and terms 32: choose lanes 1 and a multiple of 4"
    ):
        tcm.LanedFMA(pairs="two_lanes")
