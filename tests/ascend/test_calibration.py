"""Calibration and waterfall: what is fitted, to what, and that it adds up."""

import pytest

import ascend
from ascend.pipes.simulate import simulate
from ascend.reports.calibration import ASSUMED_SIZE, PUBLISHED_BLOCK, fit, predict, statements
from ascend.reports.waterfall import CAUSES, sensitivities, sweep, waterfall
from ascend.schedule import build_schedule

A = ascend.get_chip("910A")
FITTED = A.with_calibration()
M, K, N = ASSUMED_SIZE


def test_stored_values_are_what_the_fit_finds():
    found = fit(A)
    assert A.calibrated == {
        "sync_cycles_per_block": pytest.approx(found.sync_cycles_per_block, abs=1e-3),
        "non_overlapped_fraction": pytest.approx(found.non_overlapped_fraction, abs=1e-5),
    }
    assert found.calibrated == (pytest.approx(41.7, abs=1e-4), pytest.approx(65.3, abs=1e-4))


def test_calibrated_figures_are_within_three_percent():
    single, double = predict(FITTED)
    assert single == pytest.approx(41.7, rel=0.03) and double == pytest.approx(65.3, rel=0.03)
    assert double / single == pytest.approx(1.566, rel=0.03)


def test_nominal_figures_are_not_changed_by_calibration():
    assert predict(A) == pytest.approx((42.41, 69.15), abs=0.01)


def test_a_fit_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="no value of sync_cycles_per_block between"):
        fit(A.replace(gm_to_l1_latency=2000))


def test_statements():
    rows = {row.statement: row for row in statements()}
    assert [row.calibrated for row in rows.values()][:2] == pytest.approx([41.7, 65.3], abs=0.01)
    assert [row.used_in_fit for row in rows.values()].count(True) == 3  # two figures and their ratio
    small = next(row for name, row in rows.items() if name.startswith("double buffer, (96"))
    assert small.calibrated < 65.3 and small.nominal < predict(A)[1]
    growing = next(row for name, row in rows.items() if name.startswith("m = n"))
    assert growing.calibrated > 60
    stable = next(row for name, row in rows.items() if "slowest over fastest" in name)
    assert 0.9 < stable.calibrated <= 1


@pytest.mark.parametrize("chip", [A, FITTED], ids=["nominal", "calibrated"])
@pytest.mark.parametrize(
    ("block", "size"), [(PUBLISHED_BLOCK, (M, K, N)), (ascend.Blocking(96, 64, 96), (1000, 3000, 700))]
)
def test_waterfall_adds_up(chip, block, size):
    m, k, n = size
    schedule = build_schedule(m, k, n, chip, block)
    steps = waterfall(schedule)
    assert steps[0].tflops == pytest.approx(87.38, abs=0.01)
    timeline = simulate(build_schedule(m, k, n, chip, block))
    assert steps[-1].tflops == pytest.approx(timeline.tflops, rel=1e-12)
    assert sum(step.cycles for step in steps) == pytest.approx(timeline.cycles, rel=1e-9)
    assert steps[0].tflops - sum(step.lost for step in steps) == pytest.approx(timeline.tflops, rel=1e-9)
    assert all(step.lost >= 0 for step in steps)
    assert [step.fitted for step in steps].count(True) == (2 if chip is FITTED else 0)


def test_edges_come_first():
    """Wave quantisation is computed, not simulated away: 59 row blocks of 96 take 64 turns, 59 columns of 96 too."""
    steps = waterfall(build_schedule(M, K, N, A, ascend.Blocking(96, 64, 96)))
    assert steps[1].tflops == pytest.approx(87.381 * (5632 / (64 * 96)) * (5632 / 5632), rel=2e-3)


def test_every_timed_operation_has_a_cause():
    """With all causes absent only cube steps take time, on either kind of chip and in every mode."""
    for chip in (A, FITTED, ascend.get_chip("910B1")):
        for mode in ("termwise", "termwise_inplace", "elementwise"):
            schedule = build_schedule(700, 300, 400, chip, ascend.Blocking(64, 64, 64), mode=mode)
            step_m, step_k, step_n = schedule.cube_step
            rows = sum(-(-(stop - start) // step_m) for start, stop in (visit.panel for visit in schedule.visits(0)))
            expected = 3 * rows * -(-300 // step_k) * -(-400 // step_n)
            assert waterfall(schedule)[1].cycles + waterfall(schedule)[0].cycles == pytest.approx(expected, rel=1e-9)
    assert {cause.name for cause in CAUSES if cause.fitted} == {
        "synchronisation of each block", "memory time that does not overlap"
    }  # fmt: skip


def test_sensitivities():
    rows = sensitivities(build_schedule(M, K, N, FITTED, PUBLISHED_BLOCK))
    by_name = {row.parameter: row for row in rows}
    assert by_name["hbm_bytes_per_second"].elasticity > 0 > by_name["mmad_head"].elasticity
    assert by_name["sync_cycles_per_block"].kind == "calibrated"
    assert by_name["l1_to_ub_rate"].elasticity == 0  # no operation uses it
    assert [abs(row.elasticity) for row in rows] == sorted((abs(row.elasticity) for row in rows), reverse=True)
    assumed = sensitivities(build_schedule(M, K, N, A, PUBLISHED_BLOCK), ("assumed",))
    assert {row.kind for row in assumed} == {"assumed"}


def test_sweep():
    rows = sweep(build_schedule(M, K, N, A, PUBLISHED_BLOCK), "hbm_bytes_per_second", [0.6e12, 1.2e12, 2.4e12])
    assert [value for value, _ in rows] == [0.6e12, 1.2e12, 2.4e12]
    assert rows[1][1] == simulate(build_schedule(M, K, N, A, PUBLISHED_BLOCK)).tflops
    assert [tflops for _, tflops in rows] == sorted(tflops for _, tflops in rows)


@pytest.mark.parametrize(
    ("chip", "size", "grid", "block", "options"),
    [
        ("310P3", (256, 5120, 13824), (1, 8, 1), (256, 64, 64), {"mode": "fused"}),
        ("310P3", (32, 4096, 11008), (1, 8, 1), (32, 64, 64), {"mode": "fused"}),
        ("910B3", (32, 4096, 11008), (1, 16, 1), (32, 64, 64), {"operand": "fp32", "terms": 1}),
        ("910A", (4096, 4096, 4096), (8, 1, 4), (304, 48, 32), {"mode": "fused"}),
        ("910B3", (512, 2048, 4096), (4, 4, 1), (128, 64, 128), {"terms": 1, "template": "norm"}),
        ("910B3", (512, 2048, 4096), (4, 4, 1), (128, 64, 128), {"terms": 1, "template": "mdl"}),
        (
            "910B3",
            (512, 2048, 4096),
            (4, 4, 1),
            (128, 64, 128),
            {"terms": 1, "operand": "int8", "dequantize": "vector"},
        ),
        ("910B3", (512, 2048, 4096), (4, 4, 1), (128, 64, 128), {"terms": 1, "operand": "w8a16"}),
    ],
)
def test_edges_are_counted_from_tiles_and_memory_is_not_among_them(chip, size, grid, block, options):
    place = ascend.get_chip(chip)
    free = {"hbm_bytes_per_second": 1e18, "memory_read_rate": 1e9, "l2_read_rate": 1e9}
    lifted = place.replace(**free, gm_to_l1_latency=0.0, memory_read_latency=0.0)
    grid = ascend.Grid(*grid)
    schedule = build_schedule(*size, place, ascend.Blocking(*block), kernel="grid", grid=grid, **options)
    most = max(_steps_of_core(schedule, core) for core in range(schedule.cores))
    steps = waterfall(schedule)
    assert steps[1].cycles == pytest.approx(most - steps[0].cycles, abs=1e-6 * most)
    assert (steps[1].cycles == 0) == (chip == "310P3")  # nothing is padded there, and no core idles
    assert sum(step.cycles for step in steps) == pytest.approx(simulate(schedule).cycles, rel=1e-9)
    for step in waterfall(schedule.timed_by(lifted)):
        if "from memory" in step.cause:
            assert step.cycles == pytest.approx(0, abs=2e-3 * steps[0].cycles), step.cause


def _steps_of_core(schedule, core):
    """Return the cube steps of one core's tiles, with their edges rounded up."""
    sizes = schedule.cube_step
    total = 0
    for visit in schedule.visits(core):
        groups = schedule.groups_of(schedule.k_slices[visit.slice])
        depth = sum(-(-(stop - start) // sizes[1]) for group in groups for start, stop in schedule.k_blocks(group))
        for (r0, r1), (c0, c1) in visit.tiles:
            total += depth * -(-(r1 - r0) // sizes[0]) * -(-(c1 - c0) // sizes[2])
    return schedule.terms * total
