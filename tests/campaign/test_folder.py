"""A campaign's folder: whose it is, rows as they come, what is damaged, what is tried again."""

import json

import numpy as np
import pytest

from mpgemm.campaign.folder import Rows, claim, keep_arrays, kept_arrays, shares
from mpgemm.campaign.tasks import carry_out

FACTS = {"gpu": "A", "driver": "1", "torch": "2.11"}


def test_a_folder_is_of_one_device_and_one_version(tmp_path):
    claim(tmp_path, FACTS)
    claim(tmp_path, FACTS)
    with pytest.raises(ValueError, match="another device or version \\(gpu 'A' there, 'B' here\\)"):
        claim(tmp_path, {**FACTS, "gpu": "B"})
    with pytest.raises(ValueError, match="torch '2.11' there, '2.12' here"):
        claim(tmp_path, {**FACTS, "torch": "2.12"})
    with pytest.raises(ValueError, match="driver '1' there, None here"):
        claim(tmp_path, {"gpu": "A", "torch": "2.11"})


def test_rows_of_no_known_device_are_refused(tmp_path):
    Rows(tmp_path, "units").add({"x": 1})
    with pytest.raises(ValueError, match="so their device is not known"):
        claim(tmp_path, FACTS)


def test_rows_are_written_as_they_come_and_a_run_goes_on(tmp_path):
    calls = []

    def task(number):
        def run():
            calls.append(number)
            if number == 2 and calls.count(2) == 1:
                raise OverflowError("2^63")
            if number == 3 and calls.count(3) == 1:
                raise KeyboardInterrupt
            return {"found": np.int64(number).item()}

        return {"number": number, "shape": (number, 1)}, run

    tasks = [task(number) for number in range(5)]
    with pytest.raises(KeyboardInterrupt):
        carry_out(tasks, Rows(tmp_path, "p"), float("inf"))
    held = json.loads((tmp_path / "p" / "rows-0.json").read_text())["rows"]
    assert [row.get("failed") for row in held] == [None, None, "OverflowError: 2^63"]
    rows = Rows(tmp_path, "p")
    assert carry_out(tasks, rows, float("inf")) == (0, 0)
    assert calls == [0, 1, 2, 3, 2, 3, 4]  # what failed and what was cut off is done again, nothing else
    assert sorted(row["number"] for row in rows.rows) == [0, 1, 2, 3, 4] and all(
        "failed" not in row for row in rows.rows
    )


def test_what_has_no_time_is_counted(tmp_path):
    ticks = iter(range(100))
    tasks = [({"number": number}, dict) for number in range(6)]
    assert carry_out(tasks, Rows(tmp_path, "p"), 5, clock=lambda: next(ticks)) == (0, 4)
    [(rows, left)] = shares(tmp_path, "p")
    assert len(rows) == 2 and left == 4


@pytest.mark.parametrize("text", ['{"rows": [1', "[]", '{"rows": 3}', '{"rows": ["x"]}', ""])
def test_damaged_rows_are_named(tmp_path, text):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "rows-3.json").write_text(text)
    for read in (lambda: Rows(tmp_path, "p", 3), lambda: list(shares(tmp_path, "p"))):
        with pytest.raises(ValueError, match=r"rows-3\.json .*remove the file and run again"):
            read()


def test_damaged_arrays_are_named(tmp_path):
    keep_arrays(tmp_path, "p", "a/b", {"a/b": np.arange(9)})
    assert kept_arrays(tmp_path, "p")["a/b"].tolist() == list(range(9))
    path = tmp_path / "p" / "arrays" / "a" / "b.npz"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"b\.npz is damaged"):
        kept_arrays(tmp_path, "p")
