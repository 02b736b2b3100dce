"""What the model rests on: published times, and its calibration to a profile."""

import csv

import pytest

import ascend
from ascend.reports.profile import COLUMNS, ProfileRow, fit_profile, read_profile
from ascend.reports.published import FAR_OFF, SOURCES, comparisons, spread
from ascend.schedule import build_schedule

B3 = ascend.get_chip("910B3")


@pytest.fixture(scope="module")
def published():
    return comparisons()


def test_published_times(published):
    """Rows that nothing was fitted to: within 10 % (rms) , busy ratios within 0.05; what is further off says why."""
    predicted = [c for c in published if not c.measurement.fitted]
    assert len(predicted) >= 35 and spread(predicted).time < 0.10 and spread(predicted).busy < 0.05

    assert all(abs(c.error) < FAR_OFF or c.measurement.remark for c in published)
    assert {c.measurement.source for c in published} == set(SOURCES)


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


def test_a_fit_finds_what_made_the_profile(tmp_path):
    rows = made_profile()
    write_profile(tmp_path / "op_summary.csv", rows)
    read = read_profile(tmp_path / "op_summary.csv").rows
    assert [(r.name, r.m, r.k, r.n, r.operand) for r in read] == [(r.name, r.m, r.k, r.n, r.operand) for r in rows]
    fit = fit_profile(B3, read)
    assert fit.spread(False) > 0.2 > 0.01 > fit.spread()
    assert fit.parameters["launch_us"] == pytest.approx(9.0, abs=0.3)
    assert fit.parameters["hbm_bytes_per_second"] == pytest.approx(
        0.8 * 1.6e12, rel=0.08
    )  # the rate of L2 is free, too
    assert fit.chip.provenance["launch_us"].kind == "calibrated"
    assert all(r.calibrated == pytest.approx(r.row.seconds, rel=0.03) for r in fit.residuals)
    one = fit_profile(B3, read[:1])
    assert list(one.parameters) == ["launch_us"]  # one row fixes one parameter


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
        ("2,3;3,4", "2,5", "FLOAT16;FLOAT16", "do not give"), ("2,3", "2,5", "FLOAT16", "expected two matrices"),
        ("2,3;3,4", "2,4", "COMPLEX64;COMPLEX64", "unknown data type 'COMPLEX64'"),
        ("2,x;3,4", "2,4", "FLOAT16;FLOAT16", "is no shape"),
    ],
)  # fmt: skip
def test_bad_rows(tmp_path, shapes, outputs, kinds, message):
    line = f'x,MatMul,5.0,"{shapes}",{kinds},"{outputs}"'
    (tmp_path / "p.csv").write_text(",".join(COLUMNS) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_profile(tmp_path / "p.csv")


def test_a_file_that_is_no_text_is_one_line(tmp_path):
    (tmp_path / "p.csv").write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="p.csv is no CSV file in UTF-8"):
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
        'y,BatchMatMulV2,5.0,"8,3,4;8,4,5",FLOAT16;FLOAT16,"8,3,5"', 'z,Gelu,5.0,"3,4",FLOAT16,"3,4"',
    )  # fmt: skip
    (tmp_path / "p.csv").write_text("\n".join((",".join(COLUMNS), *lines)) + "\n", encoding="utf-8")
    rows, skipped = read_profile(tmp_path / "p.csv")
    assert [(r.m, r.k, r.n) for r in rows] == [(30, 200, 96)]
    assert len(skipped) == 2 and "line 3: expected two matrices" in skipped[0]
    assert "line 4: 'BatchMatMulV2' is no product of two matrices" in skipped[1]


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
    assert fit.spread() < 0.02 < 0.1 < fit.spread(False)
    for name, tolerance in (("l2_read_rate", 0.08), ("l1_to_l0b_rate", 0.05), ("launch_us", 0.2)):
        assert fit.parameters[name] == pytest.approx(getattr(a3, name), rel=tolerance)
