"""Weights that are narrower in memory than on the cube: bytes, buffers, times, and who cannot widen them."""

import numpy as np
import pytest

import ascend
from ascend.operand_formats import FORMATS
from ascend.pipes.simulate import simulate
from ascend.planner.search import best_schedules
from ascend.request import Request
from ascend.tiling.fields import tiling_fields
from mpgemm.cli import main

WIDENED = [name for name, row in FORMATS.items() if row.weight_bits]
#: Bits of A, and of B in memory and in L1; products that share a scale in both.
PUBLISHED = {"w8a16": (16, 8, 0), "a8w4": (8, 4, 0), "a8w4mx": (8, 4, 32)}
PLACES = [(chip, name) for name in WIDENED for chip in ("910B2", "950") if (chip, name) != ("910B2", "a8w4mx")]


def built(chip, operand, size=(64, 1024, 512), block=(64, 128, 128), **options):
    options = {"layout": "nd", "kernel": "grid", "terms": 1} | options
    return ascend.build_schedule(*size, chip, ascend.Blocking(*block), operand=operand, **options)


def test_the_rows_are_what_is_published():
    assert {
        name: (FORMATS[name].bits, FORMATS[name].weight_bits, FORMATS[name].scale_block) for name in WIDENED
    } == PUBLISHED


@pytest.mark.parametrize(("chip", "operand"), PLACES)
def test_memory_gives_the_weights_once_and_narrow(chip, operand):
    """One tile row: B comes from memory once; L1 takes it in the format of A, from memory again where it passes there."""
    s = built(chip, operand)
    a_bits, b_bits, _ = PUBLISHED[operand]
    moved = simulate(s, all_cores=True).bytes
    narrow, wide = s.k * s.n * b_bits // 8, s.k * s.n * a_bits // 8
    assert moved["B miss"] == pytest.approx(narrow)
    assert moved["B widened" if s.placed_on.widened_to_l1 else "B load"] == wide
    c = 4 * s.m * s.n
    a_once = s.m * s.k * a_bits // 8
    assert s.memory_bytes() == pytest.approx(a_once + narrow + c)


@pytest.mark.parametrize(("chip", "operand"), PLACES)
def test_buffers_hold_both_operands_in_the_format_of_the_cube(chip, operand):
    rng = np.random.default_rng(3)
    bits, _, scale = PUBLISHED[operand]
    for _ in range(4):
        m, n = (int(x) for x in rng.integers(1, 3000, 2))
        k = int(rng.integers(1, 64)) * 64
        plans = ascend.plan(m, k, n, chip, terms=1, operand=operand, layout="nd", rank="analytic", top=3)
        for s in (p.schedule for p in plans):
            f, chip_ = tiling_fields(s), s.placed_on
            base_m, base_n, base_k = f["baseM"], f["baseN"], f["baseK"]
            each = base_k * bits // 8 + (base_k // scale if scale else 0)
            assert each * (f["depthA1"] * base_m + f["depthB1"] * base_n) <= chip_.l1_bytes
            assert (
                2 * base_m * base_k * bits // 8 <= chip_.l0a_bytes
                and 2 * base_k * base_n * bits // 8 <= chip_.l0b_bytes
            )
            assert (
                f["dbL0C"] * base_m * base_n * 4 <= chip_.l0c_bytes
                and base_k % (64 if scale else 16 if bits == 16 else 32) == 0
            )


@pytest.mark.parametrize(("chip", "operand"), PLACES)
def test_closed_forms_follow_the_simulator(chip, operand):
    for shape in ((8, 4096, 4096), (256, 1024, 2048)):
        for s, seconds in best_schedules(
            Request(*shape, ascend.get_chip(chip), terms=1, operand=operand, layout="nd"), 3
        ):
            assert simulate(s).seconds == pytest.approx(seconds, rel=0.2), (shape, s.blocking, s.grid)


def test_half_the_bytes_help_where_memory_bounds_and_vector_units_keep_up():
    """Published: 1 x 4096 x 4096 on 910B2 takes 29.9 us in FP16 and 33.2 in W8A16; on a 950 W8A16 moves 1.2e12 B/s."""

    def us(chip, operand, *size):
        return (
            1e6
            * ascend.plan(
                *size, chip, terms=1, operand=operand, layout="nd", top=1, simulated=4, error_of=lambda s: 0.0
            )[0].seconds
        )

    assert us("910B2", "w8a16", 1, 4096, 4096) > us("910B2", "fp16", 1, 4096, 4096)
    fp16, w8 = (us("950", operand, 4, 8192, 8192) for operand in ("fp16", "w8a16"))
    assert 1.6 < fp16 / w8 < 2.0


def test_who_cannot_widen_says_so(capsys):
    for chip, operand in (("910A", "w8a16"), ("310P3", "a8w4"), ("910B3", "a8w4mx")):
        assert main(["plan", "64", "128", "64", "--chip", chip, "--operand", operand]) == 2
        said = capsys.readouterr().err
        assert operand in said and chip in said
    for target in ("pto", "catlass", "ascendc"):
        assert (
            main(["plan", "64", "128", "64", "--chip", "910B2", "--operand", "w8a16", "--emit", target, "unused"]) == 2
        )
        assert "w8a16" in capsys.readouterr().err
    with pytest.raises(ValueError, match="got w8a16, but a schedule does not hold the scales"):
        built("910B2", "w8a16").product(np.zeros((64, 1024), np.float32), np.zeros((1024, 512), np.float32))
    assert built("950", "a8w4", dequantize="vector").dequantize == "vector"
    with pytest.raises(ValueError, match="a8w4 sums are int32"):
        built("950", "a8w4", merge="atomic", split=2)
