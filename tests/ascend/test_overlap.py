"""Communication that overlaps with a product: rows, their fit, and the cut."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest

import ascend
from ascend.reports.overlap import (
    Cut,
    Link,
    MeasuredCollective,
    OverlapPlan,
    fit_link,
    makespan,
    plan_overlap,
    read_collective,
)
from mpgemm.cli import main

#: CANN, HCCL Performance Tester, result description (HCCLpertest_16_0006): sizes and microseconds of an 8-rank all-reduce.
PUBLISHED = (
    (8192, 764.55), (16384, 858.80), (32768, 901.10), (65536, 900.00), (131072, 928.50), (262144, 1573.45), (524288, 1831.25),
    (1048576, 1778.30), (2097152, 1763.30), (4194304, 1801.75), (8388608, 1767.65), (16777216, 1940.90), (33554432, 1714.85),
    (67108864, 2630.20),
)  # fmt: skip
OUTPUT = "\n".join(
    (
        "# mpirun -n 8 ./bin/all_reduce_test -b 8K -e 64M -f 2 -d fp32 -o sum -p 8",
        "the minbytes is 8192, maxbytes is 67108864, iters is 20, warmup_iters is 5",
        "data_size(Bytes): |   aveg_time(us): | alg_bandwidth(GB/s): | check_result:",
        *(f"{size:<18}| {us:10.2f}  | {size / us / 1e3:12.5f}  | success" for size, us in PUBLISHED),
    )
)


def made(latency=30e-6, rate=100e9, sizes=range(16, 27)):
    return [MeasuredCollective(2.0**power, latency + 2.0**power / rate) for power in sizes]


def test_the_testers_output_is_read(tmp_path):
    (tmp_path / "hccl.txt").write_text(OUTPUT, encoding="utf-8")
    rows = read_collective(tmp_path / "hccl.txt")
    assert [(row.bytes, round(1e6 * row.seconds, 2)) for row in rows] == [(size, us) for size, us in PUBLISHED]
    (tmp_path / "rows.csv").write_text("bytes,us\n1024,5\n2048;6.5\n4096 9e0\n", encoding="utf-8")
    assert [round(1e6 * row.seconds, 3) for row in read_collective(tmp_path / "rows.csv")] == [5, 6.5, 9]


def test_the_fit_is_the_least_squares_of_relative_errors():
    """What made the rows is found; of the published rows the numbers of numpy's least squares; none is below 0."""
    link = fit_link(made())
    assert (link.latency, link.rate) == (pytest.approx(30e-6), pytest.approx(100e9)) and link.rms < 1e-12
    rows = [MeasuredCollective(size, 1e-6 * us) for size, us in PUBLISHED]
    design = np.array([[1 / row.seconds, row.bytes / row.seconds] for row in rows])
    (latency, per_byte), (squares,), *_ = np.linalg.lstsq(design, np.ones(len(rows)), rcond=None)
    link = fit_link(rows)
    assert (link.latency, link.rate) == (pytest.approx(latency), pytest.approx(1 / per_byte))
    assert link.rms == pytest.approx(math.sqrt(squares / len(rows)))
    covariance = np.linalg.inv(design.T @ design) * squares / (len(rows) - 2)
    assert link.latency_error == pytest.approx(math.sqrt(covariance[0, 0]))
    assert link.rate_error == pytest.approx(math.sqrt(covariance[1, 1]) / per_byte**2)
    assert "do not follow one latency" in " ".join(link.sentences())
    falling = fit_link([MeasuredCollective(1e3, 2e-5), MeasuredCollective(1e6, 1e-5)])
    assert math.isinf(falling.rate) and "do not determine the rate" in " ".join(falling.sentences())
    steep = fit_link([MeasuredCollective(1e3, 1e-9), MeasuredCollective(1e6, 1e-5)])
    assert steep.latency == 0.0 and "do not determine the latency" in " ".join(steep.sentences())
    with pytest.raises(ValueError, match=r"needs rows of at least two sizes, got 1"):
        fit_link([MeasuredCollective(8.0, 1.0), MeasuredCollective(8.0, 2.0)])


def test_the_time_of_two_machines():
    """Against the definition: each job begins on a machine when it left the one before and the machine is free."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second = rng.random((2, 5))
        ends = [0.0, 0.0]
        for a, b in zip(first, second, strict=True):
            ends[0] += a
            ends[1] = max(ends) + b
        assert makespan(first, second) == pytest.approx(ends[1])
    assert makespan([2, 2, 2], [1, 1, 1]) == 7 and makespan([1, 1, 1], [2, 2, 2]) == 7


@pytest.mark.full
def test_cuts_hide_communication():
    """In one part product and communication follow each other; a cut hides all but a part; latency makes many parts slow."""
    found = plan_overlap(8192, 1024, 4096, "910B2", made(latency=5e-6), most_parts=3, layout="nt")
    one = found.cuts[0]
    assert one.seconds == pytest.approx(one.product + one.communication) and found.size == 8192 * 4096 * 2
    assert one.communication == pytest.approx(5e-6 + found.size / 100e9)
    for cut in found.cuts:
        assert cut.seconds >= max(cut.product, cut.communication) and cut.exposed >= 0
        assert cut.communication == pytest.approx(cut.parts * 5e-6 + found.size / 100e9)
    assert found.best.parts > 1 and f"in {found.best.parts} parts" in found.sentences()[-1]
    late = plan_overlap(2048, 1024, 1024, "910B2", made(latency=1e-2), most_parts=3, layout="nt")
    assert late.best.parts == 1 and "no cut is faster than one part" in late.sentences()[-1]
    gathered = plan_overlap(2048, 1024, 1024, "910B2", made(), "all-gather", 8, most_parts=2, layout="nt")
    assert gathered.size == 2048 * 1024 * 2 / 8
    few = plan_overlap(40, 64, 64, "910B2", made(), layout="nt")
    assert [cut.parts for cut in few.cuts] == [1, 2] and "lie outside the rows'" in " ".join(few.sentences())
    assert plan_overlap(64, 64, 64, "910B2", made(), most_parts=1, operand="fp32").size == 64 * 64 * 4


def test_of_equal_cuts_the_fewest_parts_are_best():
    link = Link(1e-6, 1e9, 0.0, 0.0, 0.0, (1.0, 1e9))
    cuts = tuple(Cut(parts, seconds, 1.0, 1.0) for parts, seconds in ((1, 3.0), (2, 2.0), (3, 2.0)))
    assert OverlapPlan(8, 8, 8, "all-reduce", 1.0, link, cuts).best.parts == 2
    assert all(a.parts < b.parts for a, b in pairwise(cuts))


#: Files that are no rows, and what is said of them.
FILES = (
    (b"", "is empty: expected the output of hccl_test"), ("大小,微秒".encode("gbk"), "readable as GBK: convert it \\(iconv"),
    (b"bytes,us\n", "holds no measurement"), (b"1024,x\n", "line 1: expected bytes and microseconds"),
    (b"1024,0\n", "must be above 0"), (b"1," * 12 + b"1\n", "got 13 columns"), (b"8 | 2.0 | 0.1 | failed\n", "result failed"),
)  # fmt: skip


@pytest.mark.parametrize(("data", "message"), FILES, ids=range(len(FILES)))
def test_files_that_are_no_rows(tmp_path, data, message):
    (tmp_path / "rows.txt").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_collective(tmp_path / "rows.txt")


def test_the_command(tmp_path, capsys):
    path = tmp_path / "hccl.txt"
    path.write_text("65536 35\n1048576 41\n16777216 200\n67108864 700\n", encoding="utf-8")
    asked = ["plan", "1024", "512", "1024", "--chip", "910B2", "--layout", "nt", "--overlap", str(path), "--parts", "3"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["collective"] == "all-reduce" and found["cuts"][0]["parts"] == 1 and len(found["cuts"]) == 3
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "us and 10" in out.replace("\n", " ") and "exposed us" in out
    for words, message in (
        (["--collective", "all-gather"], "an all-gather needs ranks, the number of NPUs: give at least 2"),
        (["--ranks", "8"], "got ranks, which only an all-gather takes"),
        (["--batch", "2"], "--overlap"), (["--tiling"], "--overlap"),
    ):  # fmt: skip
        assert main([*asked, *words]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(ValueError, match="collective must be one of"):
        plan_overlap(64, 64, 64, "910B2", made(), "broadcast")
    with pytest.raises(ValueError, match="ranks must be at least 2"):
        plan_overlap(64, 64, 64, ascend.get_chip("910B2"), made(), "all-gather", 1)
