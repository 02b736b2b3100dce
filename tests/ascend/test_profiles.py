"""Profiles of msprof, torch_npu and msopprof: files that are something else, operators' shapes, and the overlay."""

import json
from pathlib import Path

import pytest

import ascend
from ascend.pipes.simulate import simulate
from ascend.reports.overlay import Overlay, PipeTimes, overlay, overlays, whole
from ascend.reports.pipe_utilization import read_pipe_utilization
from ascend.reports.profile import ProfileRow, read_profile, together
from ascend.reports.profile_table import read_table
from ascend.schedule import build_schedule
from mpgemm.cli import main

HEAD = (
    "Op Name,OP Type,Task Type,Task Duration(us),HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types"
)


def profile(path, *lines, head=HEAD):
    path.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    return read_profile(path)


def line(kind, inputs, types, formats, output, *, task="AI_CORE", hf32="NO", output_type="FLOAT16"):
    return f'op,{kind},{task},10.0,{hf32},"""{inputs}""",{types},{formats},"""{output}""",{output_type}'


#: Operators with the shapes, types and formats that public profiles have, and what they are.
LINES = {
    "rows": (("MatMulV3", "20,30;30,40", "FLOAT16;FLOAT16", "ND;ND", "20,40"), (20, 30, 40, "fp16", (), "", "nd")),
    "B turned": (("MatMulV2", "20,30;40,30", "DT_BF16;DT_BF16", "ND;ND", "20,40"), (20, 30, 40, "bf16", (), "", "nt")),
    "weights in NZ, turned": (
        ("MatMulV2", "2048,4352;272,72,16,16;1152", "FLOAT16;FLOAT16;FLOAT16", "ND;FRACTAL_NZ;ND", "2048,1152"),
        (2048, 4352, 1152, "fp16", (), "", "nz"),
    ),
    "weights in NZ": (
        ("MatMulV2", "1,2816;2048,176,16,16", "FLOAT16;FLOAT16", "ND;FRACTAL_NZ", "1,32768"),
        (1, 2816, 32768, "fp16", (), "", "nz"),
    ),
    "rows of a sequence": (
        ("MatMulV3", "4,16,64;64,32", "FLOAT16;FLOAT16", "ND;ND", "4,16,32"), (64, 64, 32, "fp16", (), "", "nd"),
    ),
    "quantised": (
        ("QuantBatchMatmulV3", "1,2304;1210,144,16,32;38720;38720", "INT8;INT8;UINT64;INT32", "ND;FRACTAL_NZ;ND;ND", "1,38720"),
        (1, 2304, 38720, "int8", (), "fixpipe", "nz"),
    ),
    "quantised by rows": (
        ("QuantBatchMatmulV3", "42,64;64,96;96;42", "INT8;INT8;FLOAT;FLOAT", "ND;ND;ND;ND", "42,96"),
        (42, 64, 96, "int8", (), "vector", "nd"),
    ),
    "quantised batch": (
        ("QuantBatchMatmulV3", "8,128,64;8,64,96;96", "INT8;INT8;UINT64", "ND;ND;ND", "8,128,96"),
        (128, 64, 96, "int8", (128,) * 8, "fixpipe", "nd"),
    ),
    "weights of 8 bits": (
        ("WeightQuantBatchMatmulV2", "20,32;2,2,16,32;48", "FLOAT16;INT8;FLOAT16", "ND;FRACTAL_NZ;ND", "20,48"),
        (20, 32, 48, "w8a16", (), "", "nz"),
    ),
    "groups with weights of 4 bits": (
        ("GroupedMatmulV4", "90,64;2,64,96", "INT8;INT4", "ND;ND", "90,96"), (90, 64, 96, "a8w4", (45, 45), "", "nd"),
    ),
    "batch": (
        ("BatchMatMulV2", "2,4,30,20;2,4,40,20", "FLOAT;FLOAT", "ND;ND", "2,4,30,40"),
        (30, 20, 40, "fp32", (30,) * 8, "", "nt"),
    ),
    "groups": (
        ("GroupedMatmul", "384,2048;16,2048,7168;;16,7168;;;;16;384", "DT_INT8;DT_INT8;;DT_BF16;;;;DT_INT64;DT_FLOAT",
         "ND;FRACTAL_NZ;;ND;;;;ND;ND", "384,7168"),
        (384, 2048, 7168, "int8", (24,) * 16, "vector", "nz"),
    ),
    "groups listed": (
        ("GroupedMatmul", "7,20;9,20;20,40;20,40", "FLOAT16;FLOAT16;FLOAT16;FLOAT16", "ND;ND;ND;ND", "7,40;9,40"),
        (16, 20, 40, "fp16", (7, 9), "", "nd"),
    ),
    "one weight for each group": (
        ("GroupedMatmulV4", "5,20;20,40;20,40;2", "FLOAT16;FLOAT16;FLOAT16;INT64", "ND;ND;ND;ND", "5,40"),
        (5, 20, 40, "fp16", (3, 2), "", "nd"),
    ),
    "MX": (
        ("QuantBatchMatmulV3", "64,128;128,32;4,32", "FLOAT8_E4M3FN;FLOAT8_E4M3FN;FLOAT8_E8M0", "ND;ND;ND", "64,32"),
        (64, 128, 32, "mxfp8", (), "", "nd"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES)
def test_an_operators_line_is_read(tmp_path, case):
    words, expected = LINES[case]
    (row,), skipped = profile(tmp_path / "op_summary.csv", line(*words))
    assert (row.m, row.k, row.n, row.operand, row.products, row.dequantize, row.layout) == expected and not skipped


def test_what_a_line_does_not_say_is_said(tmp_path):
    lines = (
        line("MatMulV3", "20,64;64,64", "FLOAT16;FLOAT16", "ND;ND", "20,64"),
        line("MatMulV3", "30,20;30,40", "FLOAT16;FLOAT16", "ND;ND", "20,40", task="MIX_AIC"),
        line("MatMulV3", "20,30;30,40", "FLOAT;FLOAT", "ND;ND", "20,40", hf32="YES"),
    )
    square, turned, hf32 = profile(tmp_path / "p.csv", *lines).rows
    assert square.layout == "" and "B is stored K x N or N x K" in square.remarks[0]
    assert "A is stored K x M" in turned.remarks[0] and "MIX_AIC" in turned.remarks[1]
    assert hf32.operand == "hf32" and not hf32.remarks


#: Lines of products that are left out, and the reason that is given.
LEFT_OUT = (
    (line("MatmulAllReduce", "20,30;30,40", "FLOAT16;FLOAT16", "ND;ND", "20,40"), "waits for other chips"),
    (line("WeightQuantBatchMatmulV2", "20,30;30,40", "FLOAT16;INT4", "ND;ND", "20,40"), "A is FLOAT16 and B is INT4"),
    (line("MatMulV3", "20,30;30,40", "FLOAT16;INT8", "ND;ND", "20,40"), "A is FLOAT16 and B is INT8"),
    (line("MatMulV3", "20,30;30,40", "INT4;INT4", "ND;ND", "20,40"), "unknown data type 'INT4'"),
    (line("MatMulV3", "20,0;0,40", "FLOAT16;FLOAT16", "ND;ND", "20,40"), "a size below 1"),
    (line("MatMulV3", ";;", "FLOAT16;FLOAT16", "ND;ND", "20,40"), "expected two matrices"),
    (line("GroupedMatmul", "7,20;9,20;20,40;20,50", "FLOAT16;FLOAT16", "ND;ND", "7,40;9,50"), "equal k and equal n"),
    ("op,MatMulV3,AI_CORE,10.0,NO,20,30;30,40,FLOAT16;FLOAT16,ND;ND,20,40,FLOAT16", "shapes that contain commas "
    "need quotes"),
    (line("MatMulV3", "20,30;30,40", "FLOAT16;FLOAT16", "ND;ND", "20,40").replace("10.0", "N/A"), "above 0, got 'N/A'"),
)  # fmt: skip


@pytest.mark.parametrize(("wrong", "reason"), LEFT_OUT, ids=[reason for _, reason in LEFT_OUT])
def test_a_line_that_is_not_read_is_named(tmp_path, wrong, reason):
    rows, skipped = profile(tmp_path / "p.csv", line(*LINES["rows"][0]), wrong, 'g,Gelu,AI_CORE,3.0,NO,"2,3",,,"2,3",')
    assert len(rows) == 1 and len(skipped) == 1 and reason in skipped[0] and "p.csv, line 3" in skipped[0]


#: Bytes of files that are no profile, and what is said of them.
FILES = (
    (b"", "is empty: expected op_summary"),
    (b"\xef\xbb\xbf\n", "is empty"),
    (HEAD.encode(), "no rows"),
    ("算子,类型\n矩阵乘,1\n".encode("gbk"), "readable as GBK: convert it \\(iconv -f GBK -t UTF-8"),
    (HEAD.encode("utf-16"), "readable as UTF-16: convert it \\(iconv"),
    (bytes(range(256)), "not a CSV file in UTF-8"),
    (b"OP Type,Core Type,Count,Total Time(us)\nMatMulV3,AI_CORE,8,8000\n", "no column 'Op Name', 'Task Duration"),
    (f"{HEAD}\nop,N/A,AI_CORE,10.0,NO,N/A,N/A,N/A,N/A,N/A\n".encode(), "--task-time=l0 leaves it"),
    (f'{HEAD}\ng,Gelu,AI_CORE,3.0,NO,"2,3",,,"2,3",\n'.encode(), "operator whose type begins with MatMul.* the file has Gelu"),
)  # fmt: skip


@pytest.mark.parametrize(("data", "message"), FILES, ids=range(len(FILES)))
def test_a_file_that_is_something_else_is_one_sentence(tmp_path, data, message):
    (tmp_path / "p.csv").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_profile(tmp_path / "p.csv")


def test_a_byte_order_mark_and_a_comma_at_the_end_are_no_columns(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbf" + f"{HEAD},\n{line(*LINES['rows'][0])},\n".encode())
    assert read_profile(tmp_path / "p.csv").rows[0].m == 20
    assert read_table(tmp_path / "p.csv", "a profile").columns[0] == "Op Name"


def test_busy_times_are_shares_of_the_task(tmp_path):
    """Times as they are; a ratio is one of the cores' time, of which the launch is no part; both generations' columns."""
    words = line(*LINES["rows"][0])
    head = ",aicore_time(us),aic_mac_time(us),aic_mac_ratio,aic_mte2_ratio,aiv_time(us),aiv_vec_ratio"
    (row,), _ = profile(tmp_path / "new.csv", words + ",8.0,4.0,0.5,0.75,2.0,0.5", head=HEAD + head)
    assert dict(row.busy) == {"CUBE": pytest.approx(0.4), "MTE2": pytest.approx(0.6), "VECTOR": pytest.approx(0.1)}
    old = ",aicore_time(us),vec_ratio,mac_ratio,mte3_ratio"
    (row,), _ = profile(tmp_path / "old.csv", words + ",8.0,N/A,0.5,0.25", head=HEAD + old)
    assert dict(row.busy) == {"CUBE": pytest.approx(0.4), "MTE3": pytest.approx(0.2)}
    (row,), _ = profile(tmp_path / "odd.csv", words + ",90.0,0.1", head=HEAD + ",aic_mac_time(us),aic_mte1_ratio")
    assert dict(row.busy) == {"MTE1": pytest.approx(0.1)} and "CUBE busy for longer than the task" in row.remarks[0]


def test_lines_of_one_product_are_put_together():
    rows = [
        ProfileRow("a", 8, 8, 8, "fp16", time, (("CUBE", share), *more))
        for time, share, more in ((3.0, 0.2, ()), (9.0, 0.4, (("MTE2", 1.0),)), (4.0, 0.6, ()))
    ]
    one, other = together([rows[0], ProfileRow("b", 8, 8, 8, "bf16", 1.0), *rows[1:]])
    assert (one.seconds, one.lines, one.busy) == (4.0, 3, (("CUBE", pytest.approx(0.4)),)) and other.lines == 1


def of_the_profile(m=1024, k=1024, n=1024):
    return build_schedule(m, k, n, "910B2", ascend.Blocking(128, 64, 256), terms=1, kernel="grid", layout="nd")


def test_the_pipe_that_was_moved_is_the_one_that_is_off():
    """Rows made by the simulator with one rate slower: the overlay names that pipe, and nothing where nothing was moved."""
    s = of_the_profile()
    chip = s.placed_on
    for moved, pipe in (({"l2_read_rate": 45.0}, "MTE2"), ({"fixpipe_row_cycles": 40.0}, "FIXP"), ({}, None)):
        made = simulate(s.timed_by(chip.replace(**moved)))
        busy = tuple((name, made.counters[name]) for name in ("CUBE", "MTE1", "MTE2", "FIXP"))
        found = overlay(ProfileRow("made", s.m, s.k, s.n, "fp16", made.seconds, busy), simulate(s))
        assert ([p.pipe for p in found.off][:1] or [None]) == [pipe]
        assert (f"{pipe} is busy" in " ".join(found.sentences())) == (pipe is not None)
        cube = next(p for p in found.pipes if p.pipe == "CUBE")
        assert cube.measured == pytest.approx(cube.predicted, rel=1e-9)


def test_the_profile_of_the_page_is_read():
    """The made profile that docs/ascend.md draws: each operator's kind, the lines of one product together."""
    rows, skipped = read_profile(Path(__file__).parents[2] / "docs" / "ascend_profile.csv")
    assert not skipped and [(row.m, row.layout, row.lines, len(row.products)) for row in together(rows)] == [
        (2048, "", 2, 0), (4096, "nd", 1, 0), (8192, "nz", 1, 0), (512, "nd", 1, 8),
    ]  # fmt: skip


def test_what_is_not_modelled_is_no_prediction():
    """Scalar work without a template, and a batch, of which the time alone is predicted."""
    s = of_the_profile()
    found = overlay(ProfileRow("op", s.m, s.k, s.n, "fp16", 1e-4, (("SCALAR", 0.5),)), simulate(s))
    scalar = next(p for p in found.pipes if p.pipe == "SCALAR")
    assert scalar.predicted is None and scalar.more == 0.0 and not found.off
    rows = [ProfileRow("batch", 8, 8, 8, "fp16", 1e-4, (), (8, 8)), ProfileRow("no", 8, 8, 8, "mxfp8", 1e-4)]

    def refused(row):
        raise ValueError("910B2 has no MXFP8")

    timed, skipped = overlays(rows, refused, lambda row: 5e-5)
    assert (
        [each.predicted for each in timed] == [5e-5] and timed[0].pipes == () and "no: 910B2 has no MXFP8" in skipped[0]
    )


def test_the_whole_profile_weighs_products_by_their_lines():
    rows = [ProfileRow(name, 8, 8, 8, "fp16", 1.0, lines=count) for name, count in (("a", 9), ("b", 1))]
    found = [
        Overlay(rows[0], 0.8, (PipeTimes("MTE2", 0.9, 0.7),)), Overlay(rows[1], 2.0, (PipeTimes("CUBE", 0.5, 1.5),)),
    ]  # fmt: skip
    first, second = whole(found)
    assert first.startswith("10 line(s), 2 different product(s)") and "(-8%)" in first
    assert "MTE2 differs most" in second and "1.8e+06 us longer" in second


PIPES = (
    "block_id,sub_block_id,aic_time(us),aiv_time(us),aiv_vec_ratio,aic_cube_time(us),aic_mte2_ratio,",
    "0,cube0,70.0,NA,NA,30.0,0.8,", "0,vector0,NA,20.0,0.5,NA,NA,", "1,cube0,90.0,NA,NA,50.0,0.9,",
)  # fmt: skip


def test_pipe_utilization_is_read_core_by_core(tmp_path):
    (tmp_path / "PipeUtilization.csv").write_text("\n".join(PIPES), encoding="utf-8")
    row = read_pipe_utilization(tmp_path / "PipeUtilization.csv", (8, 16, 32), "fp16", "nt")
    assert row.seconds == pytest.approx(90e-6) and "no OpBasicInfo.csv" in row.remarks[0] and "uneven" in row.remarks[1]
    basic = "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,"
    (tmp_path / "OpBasicInfo.csv").write_text(f"{basic}\ngemm,mix,100.0,2,4,1,1,900,1800,\n", encoding="utf-8")
    row = read_pipe_utilization(tmp_path / "PipeUtilization.csv", (8, 16, 32), "fp16", "nt")
    assert (row.name, row.seconds, row.layout) == ("gemm", pytest.approx(100e-6), "nt")
    assert dict(row.busy) == {"CUBE": pytest.approx(0.4), "MTE2": pytest.approx(0.685), "VECTOR": pytest.approx(0.1)}
    assert "900 of 1800 MHz, so times are longer by 100%" in row.remarks[0]
    (tmp_path / "PipeUtilization.csv").write_text("\n".join((PIPES[0], PIPES[2])), encoding="utf-8")
    with pytest.raises(ValueError, match="no cube ran"):
        read_pipe_utilization(tmp_path / "PipeUtilization.csv", (8, 16, 32), "fp16", "nt")
    (tmp_path / "PipeUtilization.csv").write_text("block_id,x\n0,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no column 'aic_time\(us\)' among 2 columns \(block_id, x\)"):
        read_pipe_utilization(tmp_path / "PipeUtilization.csv", (8, 16, 32), "fp16", "nt")


def test_the_command_draws_a_profile_and_refuses_what_it_says_itself(tmp_path, capsys):
    path, picture = tmp_path / "op_summary.csv", tmp_path / "overlay.png"
    words = line("MatMulV3", "256,512;512,256", "FLOAT16;FLOAT16", "ND;ND", "256,256")
    profile(path, *[f"{words},0.5,0.9"] * 3, head=HEAD + ",aic_mac_ratio,aic_mte2_ratio")
    asked = ["simulate", "--measured", str(path), "--chip", "910B2"]
    assert main([*asked, "--overlay", str(picture), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (product,) = found["products"]
    assert (
        product["lines"] == 3
        and product["layout"] == "nd"
        and product["pipes"]["MTE2"]["measured"] == pytest.approx(9e-6)
    )
    assert picture.read_bytes().startswith(b"\x89PNG") and str(tmp_path / "overlay.csv") in found["written"]
    nz = main([*asked, "--layout", "nz", "--json"])
    assert nz == 0 and json.loads(capsys.readouterr().out)["products"][0]["predicted"] != product["predicted"]
    (tmp_path / "PipeUtilization.csv").write_text("\n".join(PIPES), encoding="utf-8")
    pipes = ["simulate", "--measured", str(tmp_path / "PipeUtilization.csv"), "--chip", "910B2"]
    for words, message in (
        ([*asked, "8", "8", "8"], "states sizes and operands: leave out M K N"),
        ([*asked, "--operand", "fp16"], "leave out --operand"),
        (pipes, "states no sizes"),
        (["simulate", "--calibrate", str(tmp_path / "PipeUtilization.csv")], "a fit needs several"),
        (["simulate", "--overlay", "x.png"], "--overlay goes with --measured"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err
    assert main([*pipes, "1024", "1024", "1024", "--layout", "nt"]) == 0
    assert "MTE2 is busy" in capsys.readouterr().out
