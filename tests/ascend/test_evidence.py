"""What the model rests on: published times, and its calibration to a profile."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import ascend
from ascend.chips.files import chip_text
from ascend.reports.fit import (
    FREE,
    ProfileFit,
    Residual,
    _at_edge,
    _is_worth,
    _Rows,
    _standard_errors,
    _told_apart,
    fit_profile,
)
from ascend.reports.profile import COLUMNS, ProfileRow, read_profile
from ascend.reports.published import FAR_OFF, SOURCES, comparisons, spread
from ascend.schedule import build_schedule, variant
from mpgemm.cli import main

B3 = ascend.get_chip("910B3")


@pytest.fixture(scope="module")
def published():
    return comparisons()


@pytest.mark.full
def test_published_times(published):
    """Rows that nothing was fitted to: within 9 % (rms), busy ratios of all pipes 0.05; what is further off says why."""
    widened = [c for c in published if c.schedule.widens]
    a2, a5 = (spread([c for c in widened if c.measurement.chip == chip]) for chip in ("910B2", "950"))
    assert (a2.rows, a5.rows) == (11, 10) and a2.time < 0.23 and a5.time < 0.12
    predicted = [c for c in published if not c.measurement.fitted and c not in widened]
    assert len(predicted) >= 85 and spread(predicted).time < 0.09 and spread(predicted).busy < 0.05
    aligned = [c for c in predicted if is_aligned(c.measurement)]
    assert len(aligned) >= 35 and spread(aligned).time < 0.09

    assert all(abs(c.error) < FAR_OFF or c.measurement.remark for c in published)
    assert {c.measurement.source for c in published} == set(SOURCES)


def is_aligned(row):
    """FP16 in whole lines, by a kernel that loads several blocks together."""
    template = row.deal.template if row.deal else ""
    return row.operand == "fp16" and row.k % 64 == 0 and row.n % 8 == 0 and template != "norm"


@pytest.mark.full
def test_the_order_of_the_tiles_is_what_a_matmul_that_load_bounds_takes(published):
    """8192^3 on a 910B1, m first as AscendC walks: within 4 % of seven rows; n first 5 % longer and more."""
    rows = [c for c in published if c.measurement.chip == "910B1" and c.measurement.source.startswith("asc")]
    loads = [c for c in rows if c.measurement.name[0] in "5678b"]
    assert len(loads) == 7 and max(abs(c.error) for c in loads) < 0.04
    by_rows = [ascend.simulate(variant(c.schedule, swizzle=ascend.Swizzle(1, 0))).seconds for c in loads]
    assert min(other / ascend.simulate(c.schedule).seconds for other, c in zip(by_rows, loads, strict=True)) > 1.05


@pytest.mark.full
def test_the_model_ranks_published_kernels_as_measured(published):
    by_name = {c.measurement.name: c for c in published}
    for case in ("tile shapes 1", "tile shapes 2", "tile shapes 3"):
        assert by_name[f"{case}, tuned"].predicted < by_name[f"{case}, default"].predicted
    at = {(c.measurement.name, c.measurement.m, c.measurement.k): c for c in published}
    assert at["with swizzle", 2176, 16384].predicted < 0.6 * at["without swizzle", 2176, 16384].predicted


def test_loads_bound_a_large_product_on_a_910b():
    """128 x 128 blocks would need 128 B/cycle a core: the plan takes wider ones, and says that loads bound it."""
    best = ascend.plan(4096, 4096, 4096, "910B2", terms=1, layout="nt", top=1, error_of=lambda s: 0.0)[0]
    assert best.blocking.bm * best.blocking.bn > 128 * 128 and best.timeline.utilization["MTE2"] > 0.9
    narrow = build_schedule(
        4096, 4096, 4096, "910B2", ascend.Blocking(128, 128, 128), terms=1, kernel="grid", layout="nt"
    )
    assert 220 < ascend.simulate(narrow).tflops < 0.9 * best.tflops


def write_profile(path, rows, drop=()):
    columns = [column for column in ("Device_id", *COLUMNS, "Task Type") if column not in drop]
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    "Device_id": 0, "Op Name": row.name, "OP Type": "MatMulV2", "Task Type": "AI_CORE",
                    "Task Duration(us)": 1e6 * row.seconds, "Input Shapes": f'"{row.m},{row.k};{row.k},{row.n}"',
                    "Input Data Types": "FLOAT16;FLOAT16", "Output Shapes": f'"{row.m},{row.n}"',
                }
            )  # fmt: skip
        writer.writerow({"Op Name": "add", "OP Type": "Add", "Task Duration(us)": 3.5})


def made_profile():
    """A made example: what the model itself says with known losses."""
    slow = B3.replace(launch_us=9.0, sync_cycles_per_block=60.0, hbm_bytes_per_second=0.8 * B3.hbm_bytes_per_second)
    rows = []
    for m, k, n in ((1024, 6144, 576), (256, 1024, 512), (64, 64, 16384), (8192, 128, 2048)):
        best = ascend.plan(m, k, n, B3, terms=1, simulated=4, top=4, error_of=lambda s: 0.0)[0].schedule
        rows.append(ProfileRow(f"mm_{m}", m, k, n, "fp16", ascend.simulate(best.timed_by(slow)).seconds))
    return rows


@pytest.mark.full
def test_a_fit_finds_what_made_the_profile(tmp_path):
    rows = made_profile()
    write_profile(tmp_path / "op_summary.csv", rows)
    read = read_profile(tmp_path / "op_summary.csv").rows
    assert [(r.name, r.m, r.k, r.n, r.operand) for r in read] == [(r.name, r.m, r.k, r.n, r.operand) for r in rows]
    fit = fit_profile(B3, read)
    assert fit.spread("nominal") > 0.2 > 0.01 > fit.spread()
    assert fit.parameters["launch_us"] == pytest.approx(9.0, abs=0.3)
    assert fit.parameters["hbm_bytes_per_second"] == pytest.approx(0.8 * 1.6e12, rel=0.02)
    assert fit.chip.provenance["launch_us"].kind == "calibrated"
    assert all(r.calibrated == pytest.approx(r.row.seconds, rel=0.03) for r in fit.residuals)
    one = fit_profile(B3, read[:1])
    assert len(one.parameters) == 1
    assert math.isnan(one.spread("left_out"))  # of one row none can be left out


#: Numbers of the chip that were moved to make rows; those that the rows tell are found again.
MOVED = (
    {"launch_us": 12.0, "l2_read_rate": 70.0}, {"hbm_bytes_per_second": 1.1e12}, {"sync_cycles_per_block": 80.0},
    {"launch_us": 9.0, "mmad_head": 30.0, "l2_read_rate": 95.0},
    {"l1_to_l0a_rate": 81.0, "l1_to_l0b_rate": 53.0, "launch_us": 2.0},
)  # fmt: skip


def of_the_study(m, k, n):
    block = ascend.Blocking(128, 64, 256)
    return build_schedule(m, k, n, B3, block, terms=1, kernel="grid", layout="nd", balanced=False)


@pytest.mark.full  # a fit is a thousand simulations
@pytest.mark.parametrize("moved", MOVED)
def test_a_fit_to_some_shapes_gives_the_times_of_others(moved):
    """Rows of five shapes made with one to three numbers moved: times of other shapes within 5 %, and so on rows left out."""
    true = B3.replace(**moved)
    sizes = ((1024,) * 3, (2048,) * 3, (4096,) * 3, (512, 8192, 512), (3072, 1024, 3072))
    rows = [
        ProfileRow("made", *size, "fp16", ascend.simulate(of_the_study(*size).timed_by(true)).seconds) for size in sizes
    ]
    fit = fit_profile(B3, rows, schedule_of=lambda row: of_the_study(row.m, row.k, row.n))
    assert fit.spread() < 0.01 and fit.spread("left_out") < 0.05
    for size in ((32, 4096, 11008), (2048, 512, 3000), (8192, 8192, 1024)):
        schedule = of_the_study(*size)
        expected = ascend.simulate(schedule.timed_by(true)).seconds
        assert ascend.simulate(schedule.timed_by(fit.chip)).seconds == pytest.approx(expected, rel=0.05)
    told = {
        number for number in fit.parameters if getattr(B3, number) != pytest.approx(fit.parameters[number], rel=0.01)
    }
    # a number that was not moved may stand for one that was where the fit says that the rows do not tell them apart
    stand_ins = {number for free in FREE for number in free.numbers if set(fit.alike.get(free.name, ())) & set(moved)}
    assert told <= set(moved) | stand_ins


@pytest.mark.full
def test_unaligned_rows_of_c_are_told_from_aligned_ones():
    """Two shapes with 2048 and 2038 columns: what the second takes longer is no rate of FIXPIPE."""
    true = B3.replace(fixpipe_unaligned_cycles=40.0)
    sizes = ((2048, 256, 2048), (2048, 256, 2038), (1024, 512, 2046))
    rows = [ProfileRow("made", *s, "fp16", ascend.simulate(of_the_study(*s).timed_by(true)).seconds) for s in sizes]
    fit = fit_profile(B3, rows, schedule_of=lambda row: of_the_study(row.m, row.k, row.n))
    assert fit.parameters == {"fixpipe_unaligned_cycles": pytest.approx(40.0, rel=0.02)} and fit.spread() < 0.002


@pytest.mark.full  # 2 s and more: a fit for each row left out
def test_the_error_on_rows_left_out_is_not_that_of_the_fit():
    """A launch of 20 us made all rows, something else one of them: the fit to all follows it, that to the others does not."""
    sizes = ((512,) * 3, (1024,) * 3, (512, 4096, 512), (512, 512, 1024), (1024, 512, 512))
    true = [ascend.simulate(of_the_study(*s).timed_by(B3.replace(launch_us=20.0))).seconds for s in sizes]
    rows = [
        ProfileRow("made", *s, "fp16", time * factor)
        for s, time, factor in zip(sizes, true, (1.0, 1.0, 1.15, 1.0, 1.0), strict=True)
    ]
    fit = fit_profile(B3, rows, schedule_of=lambda row: of_the_study(row.m, row.k, row.n))
    odd = fit.residuals[2]
    assert odd.left_out == pytest.approx(true[2], rel=0.005) and odd.calibrated > 1.02 * true[2]
    assert fit.spread("left_out") > 1.3 * fit.spread()


def test_parameters_that_move_rows_alike_are_not_told_apart():
    """Launch and the rate of L2 both lengthen one shape; of two shapes each lengthens one more than the other."""
    free = [each for each in FREE if each.name in ("launch_us", "l2_read_rate")]
    for sizes, told in ((((1024,) * 3,) * 3, False), (((256,) * 3, (4096,) * 3), True)):
        schedules = [of_the_study(*size) for size in sizes]
        rows = [ProfileRow("made", *size, "fp16", 1e-4) for size in sizes]
        assert _told_apart(_Rows(B3, rows, schedules), free, np.zeros(2)) == told


def test_what_rows_do_not_tell_stays_and_is_named():
    """Four rows of one shape are one observation of time: one parameter, and why none of the others."""
    row = ProfileRow("made", 1024, 1024, 1024, "fp16", 1.3 * ascend.simulate(of_the_study(1024, 1024, 1024)).seconds)
    fit = fit_profile(B3, [row] * 4, schedule_of=lambda row: of_the_study(row.m, row.k, row.n))
    assert len({"l1_to_l0a_rate", "launch_us", "l2_read_rate", "sync_cycles_per_block"} & set(fit.parameters)) <= 1
    assert len(fit.residuals) == 1 and fit.residuals[0].row.lines == 4  # left out, none is predicted by its twins
    (taken,) = fit.parameters
    assert set(fit.untold.values()) <= {"no row depends on it", f"the rows do not distinguish it from {taken}"}
    assert {"l2_read_rate", "launch_us"} <= {taken, *fit.alike[taken]} and len(fit.untold) >= 6
    for name in fit.untold:
        if name in ascend.Chip.__dataclass_fields__:
            assert getattr(fit.chip, name) == getattr(B3, name)


def made_rows(sizes, true, factors=None):
    times = [ascend.simulate(of_the_study(*s).timed_by(true)).seconds for s in sizes]
    return [
        ProfileRow("made", *s, "fp16", t * f)
        for s, t, f in zip(sizes, times, factors or [1.0] * len(sizes), strict=True)
    ]


def fit_of(rows):
    return fit_profile(B3, rows, schedule_of=lambda row: of_the_study(row.m, row.k, row.n))


def test_one_shape_names_all_that_would_explain_it():
    """A slower L2 makes one shape longer, and so would the launch, the moves to L0 and others: none is explained away."""
    fit = fit_of(made_rows([(1024,) * 3], B3.replace(l2_read_rate=70.0)))
    (taken,) = fit.parameters
    assert {"launch_us", "l2_read_rate", "l0_share"} <= {taken, *fit.alike[taken]}
    assert not fit.recommended and not fit.standard_errors  # nothing was left out


@pytest.mark.full
def test_large_shapes_alone_do_not_claim_the_memory():
    """Loads that miss L2 are slower, by the memory or by each core's path to it; small products that few cores load tell."""
    large = fit_of(made_rows([(4096,) * 3, (8192, 8192, 4096), (6144,) * 3], B3.replace(hbm_bytes_per_second=1e12)))
    (taken,) = large.parameters
    assert {"memory_read_rate", "hbm_bytes_per_second"} <= {taken, *large.alike[taken]}
    sizes = [(128, 4096, 512), (16, 8192, 256), (64, 2048, 1024)]
    few = fit_of(made_rows(sizes, B3.replace(memory_read_rate=40.0)))
    assert few.parameters == {"memory_read_rate": pytest.approx(40.0, rel=0.01)} and not few.alike and few.recommended


@pytest.mark.full
def test_a_fit_that_does_not_help_other_rows_is_not_recommended():
    """Times that scatter for no reason of the chip's: a fit follows some rows, and those left out get worse."""
    sizes = [(512,) * 3, (1024,) * 3, (512, 4096, 512)]
    fit = fit_of(made_rows(sizes, B3, (1.15, 0.9, 1.0)))
    assert fit.recommended == (fit.spread("left_out") < fit.spread("nominal"))
    assert not fit.recommended


def judged(*pairs, at_edge=()):
    """A fit of one parameter with rows of 1 s: (nominal, left out)."""
    row = ProfileRow("made", 8, 8, 8, "fp16", 1.0)
    residuals = [Residual(row, nominal, left_out or 1.0, left_out) for nominal, left_out in pairs]
    return ProfileFit(B3, {"launch_us": 9.0}, residuals, {}, {}, {}, at_edge)


def test_a_gain_that_scatter_can_make_is_not_recommended():
    """Errors of rows left out are halved, or the mean gain is 2 standard errors; a parameter at an end of its range never."""
    sure, unsure = judged((1.5, 1.3), (1.6, 1.35), (1.5, 1.3)), judged((1.5, 1.25), (1.02, 1.1), (1.02, 1.04))
    gains = [math.log(a) ** 2 - math.log(b) ** 2 for a, b in ((1.5, 1.25), (1.02, 1.1), (1.02, 1.04))]
    assert unsure.gain == pytest.approx(np.mean(gains) / (np.std(gains, ddof=1) / 3**0.5))
    assert unsure.gain < 2 < sure.gain and sure.spread("left_out") > sure.spread("nominal") / 2
    assert unsure.spread("left_out") < unsure.spread("nominal") and not unsure.recommended and sure.recommended
    halved = judged((1.1, 1.01), (1.2, 1.01), (2.0, 1.2))
    assert halved.gain < 2 and halved.recommended
    assert not judged((1.5, 1.3), (1.6, 1.35), (1.5, 1.3), at_edge=("launch_us",)).recommended
    assert math.isnan(judged((1.5, None), (1.6, 1.1)).gain) and not judged((1.5, None), (1.6, 1.1)).recommended
    (launch,) = [free for free in FREE if free.name == "launch_us"]
    rows = _Rows(B3, [], [])
    low, high = rows.bounds(launch)
    assert [_at_edge(rows, [launch], [x]) for x in (low, 0.5 * (low + high), high)] == [
        ("launch_us",),
        (),
        ("launch_us",),
    ]


def test_rows_that_a_chip_cannot_plan_are_named(tmp_path, capsys):
    """A product in MXFP8 among others on a 910B3: left out with its reason, by the fit and by the overlay."""
    kinds = "FLOAT8_E4M3FN;FLOAT8_E4M3FN;FLOAT8_E8M0"
    lines = (
        'one,MatMulV3,20.0,"256,512;512,256",FLOAT16;FLOAT16,"256,256"',
        f'mx,QuantBatchMatmulV3,20.0,"256,512;512,256;256",{kinds},"256,256"',
    )
    profile_of(tmp_path / "p.csv", ",".join(COLUMNS), *lines)
    for option in ("--measured", "--calibrate"):
        assert main(["simulate", option, str(tmp_path / "p.csv"), "--chip", "910B3", "--json"]) == 0
        skipped = json.loads(capsys.readouterr().out)["skipped"]
        assert len(skipped) == 1 and skipped[0].startswith("mx: ") and "mxfp8" in skipped[0].lower()


def test_standard_errors_are_the_jackknife_of_fits_without_one_row():
    """Of n fits, each without one row: sqrt((n - 1) / n sum (x - mean)^2); none where fewer than three could be left out."""
    chips = [B3.replace(launch_us=x) for x in (4.0, 5.0, 9.0)]
    assert _standard_errors(["launch_us"], chips) == {"launch_us": pytest.approx((2 / 3 * (4 + 1 + 9)) ** 0.5)}
    assert _standard_errors(["launch_us"], chips[:2]) == _standard_errors(["launch_us"], [*chips, None]) == {}


@pytest.mark.full
def test_scatter_is_not_a_parameter():
    """A launch of 20 us, and times that scatter by 2 %: the launch with its error, and nothing that follows the scatter."""
    rows = made_rows([(1024,) * 3, (512,) * 3, (512, 1024, 512)], B3.replace(launch_us=20.0), (1.02, 0.99, 1.0))
    fit = fit_of(rows)
    assert set(fit.parameters) == {"launch_us"} and fit.recommended
    assert abs(fit.parameters["launch_us"] - 20.0) < 3 * fit.standard_errors["launch_us"] < 3.0
    assert not _is_worth(0.004, 0.012, 4, 1) and _is_worth(0.0002, 0.012, 4, 1) and not _is_worth(0.0, 0.012, 3, 1)


def test_a_chip_is_written_and_read_again(tmp_path):
    changed = B3.replace(launch_us=12.25, l2_read_rate=70.123456789)
    path = tmp_path / "mychip.toml"
    path.write_text(chip_text(changed, "made here"), encoding="utf-8")
    again = ascend.load_chip(path)
    assert again == changed and again.provenance["launch_us"] == changed.provenance["launch_us"]
    for name in ascend.list_chips():
        built_in = ascend.get_chip(name)
        path.write_text(chip_text(built_in, "as built in"), encoding="utf-8")
        assert replace(ascend.load_chip(path), aliases=built_in.aliases) == built_in


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": ("Task Duration(us)", "Input Shapes")}, "no column 'Task Duration\\(us\\)', 'Input Shapes'"),
        ({"rows": []}, "no operator whose type begins with MatMul"),
        ({"rows": [ProfileRow("x", 2, 3, 4, "fp16", -1e-6)]}, "line 2: 'Task Duration\\(us\\)' must be above 0"),
    ],
)
def test_bad_profiles(tmp_path, change, message):
    write_profile(
        tmp_path / "p.csv", change.get("rows", [ProfileRow("x", 2, 3, 4, "fp16", 1e-6)]), change.get("drop", ())
    )
    with pytest.raises(ValueError, match=message):
        read_profile(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("shapes", "outputs", "kinds", "message"),
    [
        ("2,3;3,4", "2,5", "FLOAT16;FLOAT16", "cannot give a product of shape"),
        ("2,3", "2,5", "FLOAT16", "expected two matrices"),
        ("2,3;3,4", "2,4", "COMPLEX64;COMPLEX64", "unknown data type 'COMPLEX64'"),
        ("2,x;3,4", "2,4", "FLOAT16;FLOAT16", "as a shape"),
    ],
)  # fmt: skip
def test_bad_rows(tmp_path, shapes, outputs, kinds, message):
    line = f'x,MatMul,5.0,"{shapes}",{kinds},"{outputs}"'
    (tmp_path / "p.csv").write_text(",".join(COLUMNS) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_profile(tmp_path / "p.csv")


def test_a_file_that_is_no_text_is_one_line(tmp_path):
    (tmp_path / "p.csv").write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="p.csv is not a CSV file in UTF-8"):
        read_profile(tmp_path / "p.csv")


def test_transposed_inputs_are_recognised(tmp_path):
    line = 'x,MatMulV3,5.0,"30,20;40,30",DT_BF16;DT_BF16,"20,40"'
    (tmp_path / "p.csv").write_text(",".join(COLUMNS) + "\n" + line + "\n", encoding="utf-8")
    (row,) = read_profile(tmp_path / "p.csv").rows
    assert (row.m, row.k, row.n, row.operand, row.seconds) == (20, 30, 40, "bf16", pytest.approx(5e-6))


def test_fractals_are_understood_and_other_rows_are_named(tmp_path):
    """A weight in NZ (k = 200 padded to 208, n = 96), and a row of three dimensions."""
    lines = (
        'nz,MatMulV2,5.0,"30,200;6,13,16,16",FLOAT16;FLOAT16,"30,96"', 'x,MatMul,5.0,"2,3,4;4,5",FLOAT16;FLOAT16,"2,5"',
        'y,MatmulAllReduce,5.0,"8,4;4,5",FLOAT16;FLOAT16,"8,5"', 'z,Gelu,5.0,"3,4",FLOAT16,"3,4"',
    )  # fmt: skip
    (tmp_path / "p.csv").write_text("\n".join((",".join(COLUMNS), *lines)) + "\n", encoding="utf-8")
    rows, skipped = read_profile(tmp_path / "p.csv")
    assert [(r.m, r.k, r.n) for r in rows] == [(30, 200, 96)]
    assert len(skipped) == 2 and "line 3: expected two matrices" in skipped[0]
    assert "line 4: operator 'MatmulAllReduce' cannot be timed because it waits" in skipped[1]


def profile_of(path, head, *lines):
    path.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    return read_profile(path)


def test_batches_groups_and_quantised_products_are_read(tmp_path):
    """What a model's profile has: shapes by the rules of each operator, equal groups because the file has only their sum."""
    lines = (
        'bmm,BatchMatMulV2,5.0,"2,4,30,20;2,4,20,40",DT_BF16;DT_BF16,"2,4,30,40",DT_BF16',
        'turned,BatchMatMulV2,5.0,"8,30,20;1,40,20",FLOAT16;FLOAT16,"8,30,40",FLOAT16',
        'experts,GroupedMatmul,5.0,"70,20;4,20,40;;4",FLOAT16;FLOAT16;;INT64,"70,40",FLOAT16',
        'columns,QuantBatchMatmulV3,5.0,"30,64;64,40;40",INT8;INT8;UINT64,"30,40",FLOAT16',
        'rows,QuantBatchMatmulV3,5.0,"30,64;64,40;40;30",INT8;INT8;FLOAT;FLOAT,"30,40",FLOAT16',
        'wide,QuantBatchMatmulV3,5.0,"30,64;64,40;40",INT8;INT8;FLOAT,"30,40",DT_BF16',
        'odd,BatchMatMulV2,5.0,"3,30,20;2,20,40",FLOAT16;FLOAT16,"6,30,40",FLOAT16',
    )
    rows, skipped = profile_of(tmp_path / "p.csv", ",".join((*COLUMNS, "Output Data Types")), *lines)
    assert [(r.m, r.k, r.n, r.operand, r.products) for r in rows[:3]] == [
        (30, 20, 40, "bf16", (30,) * 8), (30, 20, 40, "fp16", (30,) * 8), (70, 20, 40, "fp16", (18, 18, 17, 17)),
    ]  # fmt: skip
    assert [(r.m, r.k, r.n, r.operand, r.dequantize) for r in rows[3:]] == [
        (30, 64, 40, "int8", how) for how in ("fixpipe", "vector", "vector")
    ]
    assert len(skipped) == 1 and "an operand has 3 matrices for 6 products" in skipped[0]


def test_kernel_details_of_torch_npu_are_read(tmp_path):
    head = "Step Id,Device_id,Name,Type,Accelerator Core,Duration(us),Block Dim,Input Shapes,Input Data Types,Output Shapes"
    line = 'aclnnMm_MatMulV3,MatMulV3,AI_CORE,12.5,20,"30,20;20,40",FLOAT16;FLOAT16,"30,40",0.25'
    (row,), _ = profile_of(tmp_path / "kernel_details.csv", head + ",aic_cube_ratio", "1,0," + line)
    assert row == ProfileRow("aclnnMm_MatMulV3", 30, 20, 40, "fp16", pytest.approx(12.5e-6), (("CUBE", 0.25),))


@pytest.mark.full
def test_batches_and_scaled_sums_of_a_profile_are_predicted(tmp_path, capsys):
    """--measured deals groups to cores as a plan does and scales sums; --calibrate fits single products, names the others."""
    lines = (
        'experts,GroupedMatmul,9.0,"256,128;4,128,256",FLOAT16;FLOAT16,"256,256",FLOAT16',
        'scaled,QuantBatchMatmulV3,20.0,"256,512;512,256;256;256",INT8;INT8;FLOAT;FLOAT,"256,256",FLOAT16',
    )
    profile_of(tmp_path / "p.csv", ",".join((*COLUMNS, "Output Data Types")), *lines)
    asked = [str(tmp_path / "p.csv"), "--chip", "910B2", "--layout", "nd", "--json"]
    assert main(["simulate", "--measured", *asked]) == 0
    experts, scaled = json.loads(capsys.readouterr().out)["products"]
    groups = ascend.plan_batch([64] * 4, 128, 256, "910B2", terms=1, layout="nd", error_of=lambda s: 0.0)[0]
    assert experts["predicted"] == pytest.approx(groups.seconds) and experts["pipes"] == {}
    options = {"terms": 1, "layout": "nd", "operand": "int8", "error_of": lambda s: 0.0, "simulated": 4, "top": 1}
    one = ascend.plan(256, 512, 256, "910B2", dequantize="vector", **options)[0]
    assert scaled["predicted"] == pytest.approx(one.seconds, rel=0.02)
    assert main(["simulate", "--calibrate", *asked]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert [r["name"] for r in fitted["residuals"]] == ["scaled"]
    assert "experts: the row holds 4 products" in fitted["skipped"][0]


@pytest.mark.full  # 2 s and more: a fit is a thousand simulations
def test_a_fit_of_published_rows_finds_the_rates_under_load(published):
    """pto-isa's rows with their busy ratios, from the rates of one core alone that a platform file or a blog has."""
    rows = [c for c in published if c.measurement.source == "pto-isa"][:3:2]
    a3 = ascend.get_chip("A3")
    nominal = a3.replace(l2_read_rate=169.0, l1_to_l0a_rate=263.0, l1_to_l0b_rate=173.0, launch_us=5.0, mmad_head=23.0)
    profile = [
        ProfileRow(r.name, r.m, r.k, r.n, "fp16", r.microseconds * 1e-6,
                   tuple(zip(("CUBE", "MTE1", "MTE2", "FIXP"), r.busy, strict=True)))
        for r in (c.measurement for c in rows)
    ]  # fmt: skip
    of_size = {c.measurement.m: c.schedule for c in rows}
    fit = fit_profile(nominal, profile, schedule_of=lambda row: of_size[row.m].timed_by(nominal))
    assert fit.spread() < 0.03 < 0.1 < fit.spread("nominal")
    assert "launch_us" in fit.parameters or "launch_us" in fit.untold
    for name, tolerance in (("l2_read_rate", 0.08), ("l1_to_l0b_rate", 0.05)):
        assert fit.parameters[name] == pytest.approx(getattr(a3, name), rel=tolerance)


def test_the_commands_of_a_profile(tmp_path, capsys):
    """simulate --calibrate writes a chip that --chip reads; --measured sets each pipe beside what was measured."""
    busy = (("CUBE", 0.5), ("MTE2", 0.99))
    rows = [
        ProfileRow(f"mm{i}", *size, "fp16", 2e-5 * (i + 1), busy)
        for i, size in enumerate(((512, 512, 512), (1024, 512, 1024)))
    ]
    profile, chip = tmp_path / "op_summary.csv", tmp_path / "mychip.toml"
    columns = [*COLUMNS, "aic_mac_ratio", "aic_mte2_ratio"]
    lines = [",".join(columns)]
    for r in rows:
        lines.append(
            f'{r.name},MatMulV2,{1e6 * r.seconds},"{r.m},{r.k};{r.k},{r.n}",FLOAT16;FLOAT16,"{r.m},{r.n}",0.5,0.99'
        )
    profile.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fixed = ["--chip", "910B3", "--block", "128,64,128", "--kernel", "grid", "--resident", "none", "--layout", "nt"]
    assert main(["simulate", "--measured", str(profile), *fixed]) == 0
    out = capsys.readouterr().out
    assert "0.99 / " in out and "mm1: MTE2 is busy" in out
    assert main(["simulate", "--calibrate", str(profile), *fixed, "--write-chip", str(chip)]) == 0
    assert "by a fit to all other rows" in capsys.readouterr().out
    assert ascend.load_chip(chip).name == "910B3"
    assert main(["simulate", "512", "512", "512", "--chip", str(chip), "--terms", "1", "--kernel", "grid"]) == 0


def test_one_core_alone_is_one_core(capsys):
    """--grid 1,1,1 where nothing is resident: one core, not all of them."""
    shared = [
        "simulate",
        "512",
        "512",
        "512",
        "--chip",
        "910B1",
        "--terms",
        "1",
        "--kernel",
        "grid",
        "--resident",
        "none",
    ]
    assert main([*shared, "--block", "128,64,128", "--grid", "1,1,1"]) == 0
    assert "1 cores (1)" in capsys.readouterr().out
