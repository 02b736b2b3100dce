"""tools/smt_table4.py: a query that comes to no end is a cell of its row, not the end of the table."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "smt_table4.py"


def test_a_time_out_keeps_its_row_and_the_rows_after_it(monkeypatch, capsys):
    pytest.importorskip("bitwuzla")
    if not TOOL.exists():
        pytest.skip("tools/ is part of a checkout only")
    from tensorcore_models.probing.formal import published

    def no_end(*args, **options):
        raise TimeoutError("3 carry bits: timeout after 1.0 s")

    spec = importlib.util.spec_from_file_location("smt_table4", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(published, "carry_bits_needed", no_end)
    monkeypatch.setattr(tool, "QUERIES", [query for query in published.QUERIES if query.name.startswith("Carry Bits")])
    monkeypatch.setattr(sys, "argv", ["smt_table4.py"])
    assert tool.main() == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 4 and all(row.count("timeout, ") == 4 for row in rows)
