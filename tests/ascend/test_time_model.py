"""What a stage costs: templates of AscendC's Matmul, unaligned rows of C, pieces of ND rows, scales of INT8 sums, one core."""

import numpy as np
import pytest

import ascend
from ascend.memory import nd_costs
from ascend.planner.estimate import Candidates, estimate
from ascend.request import Request
from ascend.schedule import build_schedule

B1, B3, A5 = (ascend.get_chip(name) for name in ("910B1", "910B3", "950"))


def grid(m, k, n, chip, block=(128, 64, 256), **options):
    return build_schedule(
        m,
        k,
        n,
        chip,
        ascend.Blocking(*block),
        kernel="grid",
        **{"terms": 1, "layout": "nt", "balanced": False} | options,
    )


def microseconds(schedule):
    return 1e6 * ascend.simulate(schedule).seconds


# -- AscendC's templates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "block", "published"), [(B1, (128, 64, 256), 249467.08), (A5, (256, 64, 256), 130560.475)]
)
def test_one_core_alone(chip, block, published):
    """asc-devkit, 8192^3 on one core: 249 ms on 910B1, 131 ms on 950PR."""
    assert microseconds(grid(8192, 8192, 8192, chip, block, template="norm", cores=1)) == pytest.approx(
        published, rel=0.03
    )


def test_norm_loads_when_both_blocks_have_been_moved():
    """Of a block MTE2 and MTE1 take turns: loads, their latency, both moves, and so again; the cube works meanwhile."""
    chip = B3.replace(memory_read_latency=B3.gm_to_l1_latency, norm_scalar_cycles=0)
    blocks = [
        ascend.simulate(grid(128, 64 * count, 256, chip, template="norm", warm=True), steady_state=False).cycles
        for count in (16, 20)  # whole lines of k
    ]
    load = (128 + 256) * chip.nd_least_bytes / chip.l2_read_rate + chip.gm_to_l1_latency
    moves = 4 + 128 * 128 / chip.l1_to_l0a_rate + 256 * 128 / chip.l1_to_l0b_rate
    assert blocks[1] - blocks[0] == pytest.approx(4 * (load + moves))


@pytest.mark.parametrize(("chip", "mac_us"), [(B1, 141699.459), (A5, 198351.65)])
def test_norm_starts_the_cube_anew_in_each_block(chip, mac_us):
    """The head of case 1 (128 x 64 x 256, 256 x 64 x 256) gives aic_mac_time of asc-devkit's case 0, in blocks of 64."""
    timeline = ascend.simulate(grid(8192, 8192, 8192, chip, (64, 64, 64), template="norm", cores=1))
    assert 1e6 * timeline.utilization["CUBE"] * timeline.seconds == pytest.approx(mac_us, rel=0.02)


@pytest.mark.parametrize(("chip", "block", "fixpipe"), [(B1, (128, 64, 256), 0.077), (A5, (256, 64, 256), 0.084)])
def test_msprof_counts_what_fixpipe_waits_with_the_unit_flag(chip, block, fixpipe):
    """asc-devkit's case 8; without the flag the counters are the busy ratios."""
    size = (4096, 8192, 8192)
    shape = {"grid": ascend.Grid(4, 1, 6), "swizzle": ascend.Swizzle(1, 1, False), "resident": "none"}
    plain, flagged = (ascend.simulate(grid(*size, chip, block, unit_flag=flag, **shape)) for flag in (False, True))
    assert plain.counters == plain.utilization
    assert flagged.counters["FIXP"] == pytest.approx(fixpipe, abs=0.012)
    assert {**flagged.counters, "FIXP": 0} == {**flagged.utilization, "FIXP": 0}
    # A tile of fewer blocks than the scalar unit issues ahead: FIXPIPE waits all the time that the cubes take.
    short = ascend.simulate(grid(4096, 256, 8192, chip, block, unit_flag=True, **shape))
    assert short.counters["FIXP"] == pytest.approx(
        min(1.0, short.utilization["FIXP"] + short.phases[0].cycles / short.cycles)
    )


def test_scalar_work_bounds_small_blocks():
    """16 x 16 x 16 blocks: the cube waits for the scalar unit; larger ones do not."""
    s = grid(16, 4096, 16, B3, (16, 16, 16), template="mdl")
    timeline = ascend.simulate(s)
    assert timeline.cycles > 256 * B3.mdl_scalar_cycles and timeline.utilization["SCALAR"] > 0.8
    assert timeline.stalls[0].reason in ("nothing to do (multiply)", "the scalar unit to issue the block")
    assert any(r.pipe == "CUBE" and r.reason == "the scalar unit to issue the block" for r in timeline.stalls)
    large = grid(4096, 4096, 4096, B3, template="mdl")
    assert microseconds(large) == pytest.approx(microseconds(grid(4096, 4096, 4096, B3)), rel=1e-3)


def test_a_plan_for_ascendc_is_timed_with_its_template():
    p = ascend.plan(512, 512, 512, B3, terms=1, target="ascendc", top=1, error_of=lambda s: 0.0)[0]
    assert p.schedule.template == "mdl" and p.timeline.utilization["SCALAR"] > 0
    assert ascend.plan(512, 512, 512, B3, terms=1, top=1, error_of=lambda s: 0.0)[0].schedule.template == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"chip": "910A", "template": "mdl"}, "AscendC's Matmul .* does not exist for 910A"),
        ({"template": "ibshare"}, "template is one of norm, mdl, got 'ibshare'"),
        ({"template": "norm", "depth": 4}, "template norm keeps one block in L1"),
        ({"template": "norm", "resident": "a"}, "template norm streams both operands"),
        ({"template": "norm", "buffering": "single"}, "template norm keeps one block in L1"),
        ({"dequantize": True}, "dequantize scales the sums of int8 operands, got fp16"),
    ],
)
def test_what_has_no_meaning_is_refused(options, why):
    with pytest.raises(ValueError, match=why):
        grid(512, 512, 512, **{"chip": B3} | options)


# -- rows of C --------------------------------------------------------------------------------------------------------


def test_rows_of_c_that_do_not_start_aligned():
    """CATLASS, example 46: 2048 x 256 x 2038 takes 19.09 us, 2048 columns 11.97; every fourth of its rows is aligned."""
    aligned, ragged = (
        ascend.simulate(grid(2048, 256, n, A5, (256, 64, 256), depth=4, swizzle=ascend.Swizzle(1, 0)))
        for n in (2048, 2038)
    )
    assert 1e6 * (ragged.seconds - aligned.seconds) == pytest.approx(19.09 - 11.97, rel=0.2)
    busy = [t.utilization["FIXP"] * t.cycles for t in (aligned, ragged)]
    assert busy[1] - busy[0] == pytest.approx(512 * 0.75 * A5.fixpipe_unaligned_cycles, rel=0.01)


@pytest.mark.parametrize(("n", "share"), [(2048, 0), (8, 0), (2044, 0.5), (2038, 0.75), (1557, 0.875), (1, 0.875)])
def test_share_of_unaligned_rows(n, share):
    starts = [4 * n * row % 32 != 0 for row in range(64)]
    assert sum(starts) / 64 == share
    assert grid(64, 64, n, A5, (64, 64, 64)).fixpipe_row_extra == share * A5.fixpipe_unaligned_cycles
    assert grid(64, 64, n, B3, (64, 64, 64)).fixpipe_row_extra == 0  # not measured there


# -- pieces of ND rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "load_k", "bn", "k", "n", "bytes_of_b"),
    [
        ("nz", 64, 256, 8192, 8192, (512, 512)),
        ("nt", 256, 256, 8192, 8192, (512, 512 + 170)),  # whole lines
        ("nt", 64, 256, 8192, 8192, (256, 128 + 170 / 4)),  # a quarter of a line: the next loads have the rest
        ("nt", 256, 256, 8000, 8192, (512 + 550, 512 + 550 + 170)),  # the end of a line and the beginning of the next
        ("nd", 64, 256, 8192, 8192, (512, 512 + 170)),
        ("nd", 64, 128, 8192, 8192, (256 + 550, 512 + 170)),  # half a line, of which the other half is another core's
        ("nd", 64, 320, 8192, 6144, (640 + 550, 640 + 550 + 170)),
    ],
)
def test_pieces_of_rows(layout, load_k, bn, k, n, bytes_of_b):
    found = nd_costs(Request(1024, k, n, B3, terms=1, layout=layout), load_k, bn)
    piece = 2 * (load_k if layout == "nt" else bn)
    expected = (1.0, 1.0) if layout == "nz" else tuple(x / piece for x in bytes_of_b)
    assert (float(found.b), float(found.b_memory)) == pytest.approx(expected)


def test_costs_of_pieces_are_the_same_one_by_one_and_as_arrays():
    r = Request(1024, 4000, 1000, B3, terms=1, layout="nd")
    widths = np.array([16, 32, 64, 128, 256, 320, 512])
    whole = nd_costs(r, widths, widths)
    for at, width in enumerate(widths.tolist()):
        one = nd_costs(r, width, width)
        assert [float(np.asarray(x)) for x in one] == [np.broadcast_to(x, widths.shape)[at] for x in whole]


# -- scales of INT8 sums ----------------------------------------------------------------------------------------------


def test_dequantization_is_a_stage_of_the_last_tile():
    options = {"operand": "int8", "layout": "nd"}
    plain, scaled = (
        ascend.simulate(grid(128, 2048, 16384, B1, (128, 128, 256), dequantize=x, **options)) for x in (False, True)
    )
    stage = scaled.phases[-1]
    assert stage.name == "dequantize" and stage.launch == B1.vector_launch_us * B1.frequency_mhz
    assert scaled.cycles == pytest.approx(plain.cycles + stage.launch + stage.cycles)
    assert stage.cycles > 128 * 256 * 4 / B1.ub_to_ddr_rate
    more = ascend.simulate(grid(512, 2048, 16384, B1, (128, 128, 256), dequantize=True, **options))
    assert more.phases[-1].cycles == stage.cycles  # other tiles are scaled while the cube goes on
    assert ascend.simulate(scaled.schedule, all_cores=True).phases[-1].cycles == pytest.approx(stage.cycles, rel=0.05)


def test_dequantization_changes_no_bit():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (40, 70)).astype(np.float32), rng.integers(-128, 128, (70, 50)).astype(np.float32)
    products = [grid(40, 70, 50, B3, (32, 32, 32), operand="int8", dequantize=x).product(a, b) for x in (False, True)]
    assert np.array_equal(*products)


@pytest.mark.parametrize("dequantize", [False, True])
def test_closed_forms_follow_the_stage(dequantize):
    one = np.ones(1)
    c = Candidates(128 * one, 128 * one, 256 * one, 4 * one, one, 6 * one, one < 0, "none")
    r = Request(2048, 2048, 6144, B1, terms=1, operand="int8", layout="nt", dequantize=dequantize)
    s = grid(2048, 2048, 6144, B1, (128, 128, 256), operand="int8", grid=(4, 1, 6), dequantize=dequantize)
    assert estimate(r, c).seconds[0] == pytest.approx(ascend.simulate(s).seconds, rel=0.1)


def test_scales_of_mx_operands_pass_mte1():
    s = grid(2048, 2048, 2048, A5, (128, 128, 256), operand="mxfp8")
    more = A5.replace(l1_to_l0_scale_rate=A5.l1_to_l0_scale_rate / 2)
    busy = [t.utilization["MTE1"] * t.cycles for t in (ascend.simulate(s), ascend.simulate(s.timed_by(more)))]
    blocks = s.waves * 2048 / 128
    assert busy[1] - busy[0] == pytest.approx(blocks * (128 + 256) * 128 / 32 / A5.l1_to_l0_scale_rate, rel=1e-6)
