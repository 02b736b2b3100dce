"""Equal words and seeds write equal bytes: JSON, CSV, journals and pictures; options are obeyed or refused one by one."""

import json

import pytest

from mpgemm.cli import main

RUNS = (
    "evaluate --distribution normal --shape 6 20 6 --repeats 3 --methods fp32 hf32 sgemm_cube --no-figures --out out",
    "compare --distribution normal --shape 6 20 6 --repeats 3 --methods fp16 ootomo --engines a100 --out out",
    "curve --over k 16 64 --points 2 --repeats 3 --methods fp16@v100 fp32 --shape 4 16 4 --out out",
    "reproduce valpey-table5 --quick --out out",
)


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words.split()[0])
def test_two_runs_write_the_same_bytes(words, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert main(words.split()) == 0
        out = capsys.readouterr().out
        written.append(
            {p.name: p.read_bytes() for p in sorted((tmp_path / name / "out").iterdir())} | {"": out.encode()}
        )
    assert written[0].keys() == written[1].keys() and len(written[0]) > 2
    assert [name for name, data in written[0].items() if data != written[1][name]] == []


def test_one_refusal_does_not_end_the_others(tmp_path, capsys):
    words = ["reproduce", "xue10", "valpey-table5", "--quick", "--out", str(tmp_path), "--no-figures"]
    assert main([*words, "--json"]) == 2
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert list(found["reproductions"]) == ["valpey-table5"] and list(found["refused"]) == ["xue10"]
    assert printed.err == "mpgemm reproduce: --quick has no effect on xue10: leave --quick out\n"
    assert (tmp_path / "valpey-table5.json").exists() and not (tmp_path / "xue10.json").exists()
    assert main(["reproduce", "xue10", "xue6", "--quick", "--repeats", "2"]) == 2
    assert capsys.readouterr().err.count("have no effect on") == 2
