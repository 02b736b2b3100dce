"""FP32 sums outside of short chains (promotion): in the lanes, against one chain after the other by the generic kernels."""

import numpy as np
import pytest
from random_encodings import STYLES
from twins import Unit, operands

from tensorcore_models import MatrixEngine, kernels, set_num_threads
from tensorcore_models._kernels.chains import chains
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    InterleavedDotAdd,
    SequentialFMA,
)
from tensorcore_models.formats import get_format
from tensorcore_models.formats.sums import add_rounded
from tensorcore_models.machine.instruction_sets import isa_level

IN_LANES = (
    Unit(FusedDotAdd(4, 23), "fp16", "fp16"),
    Unit(FusedDotAdd(8, 24), "fp16", "fp16"),
    Unit(FusedDotAdd(16, 25), "fp16", "e4m3fn"),
    Unit(FusedDotAdd(32, 13, output_fraction_bits=13), "e5m2", "e4m3fn"),
    Unit(FusedDotAdd(8, 25), "tf32", "tf32"),
    Unit(FusedDotAdd(16, 25, negative_underflow="negative"), "bf16", "bf16"),
    Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
    Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
    Unit(SequentialFMA(), "bf16", "fp16"),
)
ELSEWHERE = (
    Unit(FusedDotAdd(7, 24), "fp16", "fp16"),  # packed as 8: k is not packed in order
    Unit(InterleavedDotAdd(), "e4m3fn", "e5m2"),  # c is late already
    Unit(SequentialFMA(saturate=True), "fp16", "fp16"),  # clamped on the way
)


def one_by_one(unit, a, b, total, every):
    """The definition: every chain from zero by the generic kernel, each result added in binary32."""
    low = kernels.lowered(unit)
    for start in range(0, a.shape[1], every):
        part = kernels.generic_bits(low, a[:, start : start + every], b[start : start + every], np.zeros_like(total))
        total = add_rounded(total, part, get_format("fp32"))
    return total


def engine_of(unit):
    return MatrixEngine(unit.accumulator, a_format=unit.a_format, b_format=unit.b_format)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("unit", IN_LANES + ELSEWHERE, ids=lambda u: str(u)[17:90])
def test_twins(unit, isa):
    rng = np.random.default_rng(3)
    step = unit.accumulator.terms_per_step
    for m, n, steps in ((33, 70, 8), (3, 5, 24), (130, 17, 12), (1, 300, 9)):
        for style in rng.choice(STYLES, 2, replace=False):
            a, b, total = operands(rng, unit, m, steps * step, n, str(style))[:3]
            for every in (step, 3 * step, steps * step, 2 * steps * step):
                got = engine_of(unit).gemm_bits(a, b, total, promote_every=every)
                assert np.array_equal(got, one_by_one(unit, a, b, total, every)), (m, n, steps, str(style), every)


@pytest.mark.parametrize("unit", IN_LANES, ids=lambda u: str(u)[17:90])
def test_the_lanes_do_it(unit):
    if isinstance(unit.accumulator, SequentialFMA) and not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    step = unit.accumulator.terms_per_step
    a, b, total = operands(np.random.default_rng(4), unit, 32, 16 * step, 64, "normal")[:3]
    assert kernels.promoted_bits(engine_of(unit), a, b, total, None, None, 2 * step) is not None


def test_threads_do_not_change_a_bit():
    unit = IN_LANES[2]
    a, b, total = operands(np.random.default_rng(5), unit, 200, 160, 200, "bits")[:3]
    results = []
    for threads in (1, 2, 3):
        set_num_threads(threads)
        results.append(engine_of(unit).gemm_bits(a, b, total, promote_every=32))
    set_num_threads(None)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_sums_outside_may_overflow_cancel_and_start_anywhere():
    """Addends that the lanes do not take: subnormal, tiny, near overflow, infinite, NaN, -0."""
    unit = IN_LANES[0]
    starts = (
        0x00000001,
        0x80000001,
        0x1F000000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC01234,
        0x80000000,
        0,
    )
    total = np.tile(np.array(starts, np.uint32), (16, 8))
    a = np.full((16, 64), 0x7BFF, np.uint16)  # 65504
    a[8:] = 0x0001  # 2^-24: sums near the addends that the lanes leave out
    b = np.repeat(np.where(np.arange(80) % 3 == 0, 0xFBFF, 0x7BFF).astype(np.uint16)[None], 64, axis=0)
    b[:, 20:40] = 0x0001
    b[:, 40:60] = 0
    b[::2, 60:] ^= 0x8000  # every chain cancels
    got = engine_of(unit).gemm_bits(a, b, total, promote_every=4)
    assert np.array_equal(got, one_by_one(unit, a, b, total, 4))
