"""What a stage costs: templates of AscendC's Matmul, unaligned rows of C, pieces of ND rows, scales of INT8 sums, one core."""

import numpy as np
import pytest

import ascend
from ascend.memory import nd_costs
from ascend.planner.estimate import Candidates, estimate
from ascend.request import Request
from ascend.schedule import build_schedule
from ascend.schedule_options import DEQUANTIZES

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
        ({"template": "ibshare"}, "template must be one of norm, mdl, got 'ibshare'"),
        ({"template": "norm", "depth": 4}, "template norm keeps one block in L1"),
        ({"template": "norm", "resident": "a"}, "template norm streams both operands"),
        ({"template": "norm", "buffering": "single"}, "template norm keeps one block in L1"),
        ({"dequantize": True}, "got dequantize with fp16 operands"),
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


def test_rows_that_start_anywhere_load_slower():
    """asc-devkit, AIV ND2NZ, before: 1024 x 1024 x 4095 takes 149.82 us on a 910B1, of which MTE2 is busy 130.77."""
    odd, even, aligned = (
        ascend.simulate(grid(1024, 1024, n, B1, layout="nd", grid=(8, 1, 3), template="mdl"))
        for n in (4095, 4064, 4096)
    )
    assert 1e6 * odd.seconds == pytest.approx(149.82, rel=0.05)
    assert 1e6 * odd.utilization["MTE2"] * odd.seconds == pytest.approx(130.77, rel=0.1)
    assert aligned.seconds < 0.9 * even.seconds < 0.8 * odd.seconds  # 4064 columns start on multiples of 64 bytes


@pytest.mark.parametrize(("layout", "k", "n"), [("nd", 64, 4080), ("nt", 8016, 64)])
def test_parts_of_rows_cost_by_where_rows_start(layout, k, n):
    """B by rows of n or of k elements: multiples of 128 bytes, of 32, of 2; each 32 bytes of a piece cost their own."""
    costs = []
    for more in (0, 16, 1):
        size = (k // 64 * 64 + more, n) if layout == "nt" else (k, n // 64 * 64 + more)
        row = size[0] if layout == "nt" else size[1]
        found = nd_costs(Request(64, *size, B3, terms=1, layout=layout), 256, 256)
        assert (2 * row % 128 == 0, 2 * row % 32 == 0) == [(True, True), (False, True), (False, False)][len(costs)]
        costs.append((float(found.b), float(found.b_memory)))
    whole, sector, anywhere = (np.array(pair) for pair in costs)
    extra = 16 / 512 * np.array([B3.nd_sector_bytes, B3.nd_unaligned_bytes])
    assert np.allclose(anywhere - sector, extra[1] - extra[0]) and extra[1] > extra[0] > 0
    assert (sector - whole >= extra[0] - 1e-9).all()


def test_short_pieces_along_n_on_a_950():
    """INT8 in ND rows: a piece of 256 bytes costs more besides, one of 512 nothing; pieces along k cost nothing either."""
    costs = [
        float(nd_costs(Request(64, 4096, 4096, A5, terms=1, operand="int8", layout=layout), bn, bn).b)
        for layout, bn in (("nd", 256), ("nd", 512), ("nt", 256), ("nt", 192))
    ]
    assert costs == [1 + A5.nd_part_bytes / 256, 1.0, 1.0, 1.0]


# -- launches ---------------------------------------------------------------------------------------------------------


def test_a_launch_grows_with_its_cores_and_is_shorter_in_a_loop():
    times = [
        ascend.simulate(grid(64 * cores, 64, 64, B3, (64, 64, 64), swizzle=ascend.Swizzle(1, 0), warm=warm))
        .phases[0]
        .launch
        for cores, warm in ((1, False), (20, False), (20, True))
    ]
    expected = [
        B3.launch_us + cores * B3.launch_core_us + cold * B3.cold_launch_us
        for cores, cold in ((1, 1), (20, 1), (20, 0))
    ]
    assert np.allclose(times, np.array(expected) * B3.frequency_mhz) and len(set(times)) == 3


def test_a_small_product_takes_few_cores():
    """triton-ascend, issue 293: 256^3 in 4.27 us in a loop, where a launch of all cores and the product would take longer."""
    found = ascend.plan(256, 256, 256, B1, terms=1, layout="nd", warm=True, top=1, error_of=lambda s: 0.0)[0]
    assert found.schedule.used_cores < B1.cores and 1e6 * found.seconds == pytest.approx(4.27, rel=0.2)


# -- scales of INT8 sums ----------------------------------------------------------------------------------------------


def test_dequantization_is_a_stage_of_the_last_tile():
    options = {"operand": "int8", "layout": "nd"}
    plain, scaled = (
        ascend.simulate(grid(128, 2048, 16384, B1, (128, 128, 256), dequantize=x, **options)) for x in ("", "vector")
    )
    stage = scaled.phases[-1]
    assert stage.name == "dequantize" and stage.launch == B1.vector_launch_us * B1.frequency_mhz
    assert scaled.cycles == pytest.approx(plain.cycles + stage.launch + stage.cycles)
    assert stage.cycles > 128 * 256 * 4 / B1.ub_to_ddr_rate
    more = ascend.simulate(grid(512, 2048, 16384, B1, (128, 128, 256), dequantize="vector", **options))
    assert more.phases[-1].cycles == stage.cycles  # other tiles are scaled while the cube goes on
    assert ascend.simulate(scaled.schedule, all_cores=True).phases[-1].cycles == pytest.approx(stage.cycles, rel=0.05)


def test_fixpipe_scales_on_its_way():
    """Columns cost no stage and no vector cores; what a chip has not is refused, what is unknown, too."""
    options = {"operand": "int8", "layout": "nd"}
    plain, scaled = (ascend.simulate(grid(512, 512, 512, B1, dequantize=x, **options)) for x in ("", "fixpipe"))
    assert [p.name for p in scaled.phases] == ["multiply"] and scaled.cycles == plain.cycles
    assert grid(512, 512, 512, B1, dequantize=True, **options).dequantize == "fixpipe"
    for make in (grid, lambda *size, **more: ascend.plan(*size[:4], terms=1, **more)):
        with pytest.raises(ValueError, match="910A has no FIXPIPE, so its vector units scale the sums"):
            make(64, 64, 64, ascend.get_chip("910A"), (16, 32, 16), operand="int8", dequantize="fixpipe")
        with pytest.raises(ValueError, match="dequantize must be one of fixpipe, vector, got 'cube'"):
            make(64, 64, 64, B3, (16, 32, 16), operand="int8", dequantize="cube")


def test_dequantization_changes_no_bit():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (40, 70)).astype(np.float32), rng.integers(-128, 128, (70, 50)).astype(np.float32)
    products = [grid(40, 70, 50, B3, (32, 32, 32), operand="int8", dequantize=x).product(a, b) for x in DEQUANTIZES]
    assert all(np.array_equal(products[0], x) for x in products)


@pytest.mark.parametrize("dequantize", DEQUANTIZES)
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
