"""`mpgemm models --url` and `--picture`: from an instruction to its page and its order."""

import pytest

from mpgemm.cli import main
from mpgemm.reporting import site

NAME = "h100:mma.m16n8k16.f32.f16.f16.f32"
PAGE = "atlas/hopper/mma.m16n8k16.f32.f16.f16.f32.html"


@pytest.fixture(autouse=True)
def no_site(monkeypatch, tmp_path):
    monkeypatch.delenv(site.VARIABLE, raising=False)
    monkeypatch.setattr(site, "_published", lambda: "")
    monkeypatch.setattr(site, "_BUILT", tmp_path / "site")
    return tmp_path / "site"


def test_address_of_a_published_site(monkeypatch, capsys):
    monkeypatch.setenv(site.VARIABLE, "https://example.org/mpgemm/")
    assert main(["models", NAME, "--url"]) == 0
    assert capsys.readouterr().out == f"https://example.org/mpgemm/{PAGE}#playground\n"


def test_address_of_a_site_that_was_built_here(no_site, capsys):
    assert main(["models", NAME, "--url"]) == 2
    error = capsys.readouterr().err
    assert "make docs" in error and site.VARIABLE in error and error.count("\n") == 1
    no_site.mkdir()
    (no_site / "index.html").write_text("")
    assert main(["models", NAME, "--url"]) == 0
    assert capsys.readouterr().out == f"{(no_site / PAGE).as_uri()}#playground\n"


def test_picture(tmp_path, capsys):
    target = tmp_path / "order.svg"
    assert main(["models", NAME, "--picture", str(target)]) == 0
    assert target.read_text().startswith("<svg") and "wrote" in capsys.readouterr().out
    assert main(["models", "tpu:mxu.m128n128k128.f32.bf16.bf16.f32", "--picture", str(target)]) == 2
    assert "no public arithmetic" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--url"], ["h100", "--url"], ["h100", "--picture", "x.svg"]])
def test_they_are_for_one_instruction(arguments, capsys):
    assert main(["models", *arguments]) == 2
    assert "arch:name" in capsys.readouterr().err
