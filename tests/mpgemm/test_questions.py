"""Questions of others, docs/questions.md and docs/tenstorrent.md: what their Python prints, and the reported numbers."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.cli.common.discovery import command_names, command_parser
from mpgemm.cli.common.parser import RENAMED
from mpgemm.recovery.engines import ieee_engine, plain_engine

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)\n```", re.S)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["questions", "tenstorrent"])
def test_the_page_shows_what_its_python_prints(page):
    namespace = {}
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 2
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        assert printed.getvalue().rstrip() == shown


def test_a_product_on_an_a100_has_rounded_operands():
    """jax 14157: all digits that were reported, by rounding and not by truncation."""
    a = np.array([[1.1111111, 2.2222222], [3.3333333, 4.4444444]], np.float32)
    reported = np.float32([6.175251, 13.585552, 13.585552, 30.876255])
    unit = plain_engine("a100", "tf32")
    assert np.array_equal(unit.gemm(a, a.T, input_rounding="rne").ravel(), reported)
    assert not np.isin(unit.gemm(a, a.T, input_rounding="rz"), reported).any()


def test_integers_that_tf32_lacks():
    """batch_invariant_ops 23: 4,096 wrong of 8,192, and 2049 became 2048."""
    numbers, one = np.arange(8192, dtype=np.float32)[None], np.ones((1, 1), np.float32)
    found = {r: plain_engine("a100", "tf32").gemm(one, numbers, input_rounding=r)[0] for r in ("rne", "rna", "rz")}
    assert {r: int((d != numbers[0]).sum()) for r, d in found.items()} == dict.fromkeys(found, 4096)
    assert [found[r][2049] for r in ("rne", "rna", "rz")] == [2048, 2050, 2048]


@pytest.mark.parametrize("unit", ["a100", "h100", "mi300x", "gaudi2", "x86/amx", "blackhole"])
def test_a_tpu_s_product_is_the_exact_sum_of_bf16_operands(unit):
    """jax 9973: so it says nothing about the sum."""
    x, y = np.array([[0.3744, 0.1656], [0.4707, 0.1663]]), np.array([[0.3946, 0.1186], [0.1569, 0.3145]])
    found = plain_engine(unit, "bf16").gemm(x, y, input_rounding="rne").ravel()
    assert np.array_equal(found, np.float32([0.17405128, 0.09669876, 0.21180916, 0.10805416]))


def test_most_of_a_long_chain_s_error_is_truncation():
    """vllm 47970: ten times FP32's error with the same exact products."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((8, 6144)), rng.standard_normal((6144, 16))
    a, b = (tcm.decode(tcm.encode(x, "bf16", "rne"), "bf16").astype(float) for x in drawn)
    units = plain_engine("h100", "bf16"), ieee_engine("fp32")
    cut, nearest = (np.abs(unit.gemm(a, b).astype(float) - a @ b).mean() for unit in units)
    assert 5 < cut / nearest < 20


def test_an_old_name_of_an_option_works_and_says_the_new_one(tmp_path, capsys):
    words = ["explain", "--engine", "a100", "--a", "0.3744", "0.1656", "--b", "0.3946", "0.1569"]
    results = []
    for old in (["--operands", "bf16"], ["--format", "bf16"], ["--format=bf16"]):
        assert main([*words, *old]) == 0
        results.append(capsys.readouterr())
    assert len({result.out for result in results}) == 1 and not results[0].err
    assert all("mpgemm explain: --format was renamed to --operands" in result.err for result in results[1:])
    pytest.importorskip("matplotlib")
    drawn = ["compare", "--methods", "fp16", "--engines", "a100", "--shape", "4", "16", "4", "--out", str(tmp_path)]
    assert main([*drawn, "--format", "svg"]) == 0
    assert "--format was renamed to --figure-format" in capsys.readouterr().err and list(tmp_path.glob("*.svg"))


def test_no_command_has_two_options_with_one_old_name():
    for command in command_names():
        options = command_parser(command)._option_string_actions
        assert all(sum(new in options for new in names) <= 1 for names in RENAMED.values()), command


def test_the_format_of_operands_is_none_of_figures(capsys):
    """--operands of `explain` and others, beside --figure-format of commands that draw."""
    assert (
        main(
            ["explain", "--engine", "a100", "--operands", "bf16", "--a", "0.3744", "0.1656", "--b", "0.3946", "0.1569"]
        )
        == 0
    )
    assert "= 0.17405128479003906" in capsys.readouterr().out
