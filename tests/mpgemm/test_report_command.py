"""`mpgemm report`: tables and pictures of other commands on one page."""

import json
import re

import pytest

from mpgemm.cli import main


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "errors.csv").write_text('method,error\nfp16,1e-4\n"a|b",2e-7\nc,3\n')
    (folder / "errors.png").write_bytes(b"png")
    (folder / "histogram.png").write_bytes(b"png")
    return folder


def test_page_holds_tables_and_pictures(results, tmp_path):
    page = tmp_path / "pages" / "page.md"
    page.parent.mkdir()
    assert main(["report", str(results), "--output", str(page), "--title", "Mine", "--rows", "2"]) == 0
    text = page.read_text()
    assert text.startswith("# Mine\n\n## run\n\n### errors\n\n| method | error |\n| --- | --- |\n| fp16 | 1.00e-04 |\n")
    assert "\n| a\\|b | 2.00e-07 |\n" in text
    assert "1 more rows in errors.csv." in text
    assert "![errors](../run/errors.png)" in text and "### histogram\n\n![histogram](../run/histogram.png)" in text
    assert text.count("### errors") == 1


def test_json(results, capsys):
    assert main(["report", str(results), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folders"][0]["files"] == ["errors.csv", "errors.png", "histogram.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nowhere"], "no such folder"), (["."], "no tables"), ([".", "--rows", "0"], "at least 1")],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_page_of_a_real_run(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["evaluate", "--distribution", "uniform_symmetric", "--shape", "8", "16", "8", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| " in capsys.readouterr().out


def test_titles_and_cells_are_shown_as_they_are(tmp_path, capsys):
    """No HTML, no emphasis and no link of a title or a cell takes effect in Markdown."""
    folder = tmp_path / "r <b>"
    folder.mkdir()
    (folder / "x.csv").write_text("name,<i>value</i>\n<script>alert(1)</script>,2\n*a* [b](c),3\n")
    (folder / "y z.png").write_bytes(b"png")
    assert main(["report", str(folder), "--title", "<img src=x>|*t*"]) == 0
    text = capsys.readouterr().out
    assert not re.search(r"<[a-z/]", text)
    assert text.startswith("# &lt;img src=x&gt;\\|\\*t\\*\n\n## r &lt;b&gt;\n")
    assert "| &lt;script&gt;alert(1)&lt;/script&gt; | 2 |" in text and "| \\*a\\* \\[b\\](c) | 3 |" in text
    assert "y%20z.png)" in text


def test_the_page_of_a_comparison_has_its_sentences_and_caveats(tmp_path, capsys):
    out = tmp_path / "out"
    words = "compare --methods bf16x9 fp16 --engines a100 h100 --distribution normal --shape 6 32 6 --no-figures --out"
    assert main([*words.split(), str(out)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    said = [
        line
        for line in lines
        if "cheapest that reaches" in line
        or line.startswith(("FP32, chains", "This package chose the order of", "Rate of"))
    ]
    assert main(["report", str(out)]) == 0
    page = capsys.readouterr().out
    assert len(said) >= 4 and all(line.replace("[", "\\[") in page for line in said)
    assert (
        "*Which method is cheap and accurate enough for normal(mean=0, deviation=1) 6x32x6 on a100 and h100?*" in page
    )
