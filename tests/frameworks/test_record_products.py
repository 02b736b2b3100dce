"""Recording products: what is written on a CPU, where no kernel is listed, and what a recording of a GPU would be read for."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from mpgemm.traces.record_products import main, record, requests
from tensorcore_models import libraries
from tensorcore_models.libraries.recorded_products import digest, load_rows, operands


def test_rows_are_written_as_they_come(tmp_path):
    out = tmp_path / "products.jsonl"
    rows = list(requests([(17, 16, 32)]))
    seen = []

    def watched():
        for row in rows:
            seen.append(len(out.read_text().splitlines()))
            yield row

    assert record(watched(), out, "cpu") == len(rows) == 42
    assert seen == list(range(42))
    found = load_rows(out)
    assert [row["op"] for row in found] == [row["op"] for row in rows]
    for row in found:
        if row["op"] == "int_mm":
            a, b, _ = operands(row)
            assert digest(a.astype(np.int32) @ b.astype(np.int32)) == row["sha256"]
        if row.get("operands") in ("fp32", "fp64") and "failed" not in row:
            a, b, _ = operands(row)
            first = np.frombuffer(bytes.fromhex(row["first"]), a.dtype)
            assert np.allclose(first, (a @ b)[0], rtol=1e-4)
    with pytest.raises(ValueError, match="exists already"):
        record(rows, out, "cpu")
    with pytest.raises(libraries.Unknown, match="'cpu'"):
        libraries.from_profile(found[0])


def test_every_kind_of_product_is_asked_for():
    kinds = {row["op"] for row in requests([(128, 128, 128)])}
    assert kinds == {"mm", "int_mm", "scaled_mm", "rowwise", "block 1x128 128x128"}
    with pytest.raises(ValueError, match="'fp4' is not recorded"):
        list(requests([(1, 1, 1)], ["fp4"]))


def test_the_command(tmp_path, capsys):
    out = tmp_path / "p.jsonl"
    assert main(["--out", str(out), "--sizes", "2x16x16", "--formats", "fp64", "--device", "cpu"]) == 0
    assert [row["layout"] for row in map(json.loads, out.read_text().splitlines())] == ["nn", "nt", "tn"]
    assert main(["--out", str(out), "--device", "cpu"]) == 2
    assert main(["--out", str(tmp_path / "q.jsonl"), "--sizes", "2x2", "--device", "cpu"]) == 2
    assert "expected MxNxK" in capsys.readouterr().err
