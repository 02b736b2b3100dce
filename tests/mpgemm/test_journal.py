"""The journal keeps what is finished, whatever cuts a run short."""

import json

import pytest

from mpgemm.experiments.journal import Journal, content_key


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
    assert len(path.read_text().splitlines()) == 1


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
