"""The journal keeps what is finished, whatever cuts a run short."""

import json
import re

import pytest

from mpgemm.cli import main
from mpgemm.experiments.journal import Journal, _check_of, content_key


def test_results_come_back(tmp_path):
    path = tmp_path / "out" / "journal.jsonl"
    first = Journal(path)
    assert not path.exists()
    first.add({"x": 1, "y": [1, 2]}, {"error": 0.1})
    first.add({"x": 2}, {"error": "inf"})
    second = Journal(path)
    assert len(second) == 2
    assert second.get({"y": [1, 2], "x": 1}) == {"error": 0.1}  # the order of keys does not matter
    assert second.get({"x": 2}) == {"error": "inf"}
    assert second.get({"x": 3}) is None


def test_a_line_cut_short_is_dropped_and_measured_again(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.add({"x": 1}, {"v": 1})
    journal.add({"x": 2}, {"v": 2})
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in range(len(lines[0]) + 1, len(whole) - 1, 7):
        path.write_bytes(whole[:cut])
        resumed = Journal(path)
        assert resumed.get({"x": 1}) == {"v": 1}
        assert resumed.get({"x": 2}) is None
        resumed.add({"x": 2}, {"v": 2})
        assert path.read_bytes() == whole


@pytest.mark.parametrize("damage", [b"\xff\xfe\n", b"[]\n", b"{}\n", b"17\n", b"\n"])
def test_damaged_lines_do_not_hide_the_others(tmp_path, damage):
    path = tmp_path / "journal.jsonl"
    Journal(path).add({"x": 1}, {"v": 1})
    path.write_bytes(damage + path.read_bytes())
    assert Journal(path).get({"x": 1}) == {"v": 1}
    assert path.read_bytes().startswith(damage)  # it may be another's line


def test_every_line_is_json_with_its_configuration(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path).add({"x": 1}, {"v": 1})
    entry = json.loads(path.read_text())
    assert len(entry.pop("check")) == 16
    assert entry == {"key": content_key({"x": 1}), "configuration": {"x": 1}, "result": {"v": 1}}


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal()
    journal.add({"x": 1}, {"v": 1})
    assert journal.get({"x": 1}) == {"v": 1}
    assert list(tmp_path.iterdir()) == []


def test_keys_differ_with_any_value():
    configurations = [{"x": 1}, {"x": 2}, {"x": "1"}, {"y": 1}, {"x": 1, "y": None}, {"x": [1]}]
    assert len({content_key(c) for c in configurations}) == len(configurations)
    with pytest.raises(ValueError, match="JSON"):
        content_key({"x": float("nan")})


def test_results_of_other_code_stay_and_are_not_used(tmp_path):
    path = tmp_path / "journal.jsonl"
    old, bare = {"x": 1, "code": "old"}, {"x": 2}  # the second as journals were before results said their code
    Journal(path).add(old, {"v": 1})
    Journal(path).add(bare, {"v": 2})
    before = path.read_text()
    journal = Journal(path, "new")
    assert (len(journal), journal.outdated, journal.dropped) == (0, 2, 0) and path.read_text() == before
    assert journal.get(old) is journal.get(bare) is None
    journal.add({"x": 1, "code": "new"}, {"v": 3})
    again = Journal(path, "new")
    assert (len(again), again.outdated) == (1, 2) and path.read_text().startswith(before)
    assert len(Journal(path, "old")) == 1


def test_an_old_folder_is_measured_anew_and_says_so(tmp_path, capsys):
    """A folder of an older version, whose results lack what this one reports, gives what a new folder gives."""
    command = [
        "evaluate",
        "--methods",
        "fp16",
        "--engine",
        "v100",
        "--distribution",
        "normal",
        "--shape",
        "4",
        "8",
        "4",
    ]
    command += ["--no-figures"]
    assert main([*command, "--out", str(tmp_path / "new")]) == 0
    fresh = (tmp_path / "new" / "journal.jsonl").read_text()
    old = [json.loads(re.sub(r', "rowwise": [^,}]*', "", line)) for line in fresh.splitlines()]
    assert "rowwise" in fresh and "rowwise" not in str(old)
    for entry in old:
        entry["configuration"]["code"] = "0" * 64
        entry["key"], entry["check"] = content_key(entry["configuration"]), _check_of(entry["result"])
    journal = tmp_path / "old" / "journal.jsonl"
    journal.parent.mkdir()
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in old))
    capsys.readouterr()
    assert main([*command, "--out", str(tmp_path / "old")]) == 0
    assert f"{len(old)} results are of another version of the code, left in" in capsys.readouterr().err
    again = journal.read_text().splitlines()[len(old) :]
    assert [line.count("rowwise") for line in again] == [line.count("rowwise") for line in fresh.splitlines()]
    assert [json.loads(line)["key"] for line in again] == [json.loads(line)["key"] for line in fresh.splitlines()]
