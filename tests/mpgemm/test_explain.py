"""Why two engines differ, numbers in any notation, and long dot products folded."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.cli.explain import _number
from mpgemm.explanations.dots import MOST, explain
from mpgemm.explanations.two_engines import side_by_side
from mpgemm.inputs.matrices import generate

HOPPER = tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32")
ONES = np.ones(16, np.float32)


def changed(**rules):
    """Hopper's unit with other rules."""
    accumulator = dataclasses.replace(HOPPER.accumulator, **rules)
    return tcm.MatrixEngine(accumulator, a_format="fp16", k=16)


@pytest.mark.parametrize(
    ("rules", "a"),
    [
        ({"fraction_bits": 24}, [1] + 8 * [2.0**-25] + 7 * [0.0]),
        ({"terms": 8}, [1] + 7 * [2.0**-24] + [-1] + 7 * [2.0**-24]),
        ({"output_rounding": "rne"}, [1, 2.0**-23 - 2.0**-25] + 14 * [0.0]),
        ({"output_fraction_bits": 13}, [1, 2.0**-14] + 14 * [0.0]),
        ({"exponent_floor": 10}, [1, 2.0**-20] + 14 * [0.0]),
    ],
)
def test_the_one_rule_that_differs_is_named(rules, a):
    (name,) = rules
    # Bystanders: rules that differ, too, and change nothing here.
    other = changed(**rules, negative_underflow="negative")
    b = ONES.copy()
    if name in ("fraction_bits", "terms", "output_rounding"):  # 2^-25 is no fp16 number, but a product
        a, b = np.array(a, np.float32), ONES.copy()
        small = (np.abs(a) < 2.0**-14) & (a != 0)
        a[small], b[small] = a[small] * 2.0**12, 2.0**-12
    found = side_by_side("fp16", np.float32(a), b, engines=(HOPPER, other))
    assert found.results[0] != found.results[1]
    assert found.rules == (name,), found
    assert "this alone explains it" in found.why


def test_rules_that_only_explain_together():
    one, other = changed(fraction_bits=24, terms=8), HOPPER
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        a, b = rng.standard_normal((2, 16)).astype(np.float16).astype(np.float32)
        found = side_by_side("fp16", a, b, engines=(one, other))
        if found.first is not None:
            seen.add(found.rules)
            assert ("only together" in found.why) == (len(found.rules) > 1)
    assert {("terms",), ("fraction_bits", "terms")} <= {tuple(sorted(x)) for x in seen}


@pytest.mark.sweep(10)
@pytest.mark.parametrize(
    "engines", list(itertools.combinations(("v100", "a100", "h100", "mi300x", "mi100", "ieee"), 2))
)
@pytest.mark.parametrize("method", ["fp16", "ootomo", "markidis", "sgemm_cube:accumulation=elementwise"])
def test_rows_are_the_sums_of_both_and_the_results_are_theirs(engines, method):
    a, b = (x.ravel() for x in generate("normal", 1, 70, 1))
    found = side_by_side(method, a, b, engines=engines)
    for engine, result in zip(engines, found.results, strict=True):
        assert result == mpgemm.recovered_gemm(a[None], b[:, None], method=method, engine=engine)[0, 0]
    if found.first is not None:
        assert all(row.alike for row in found.rows[: found.first]) and not found.rows[found.first].alike
        assert found.rules and found.why.endswith(".")
    if method == "fp16":
        for engine, which in zip(engines, ("first", "second"), strict=True):
            for row in found.rows:
                part = mpgemm.recovered_gemm(a[None, : row.stop], b[: row.stop, None], method=method, engine=engine)
                assert getattr(row, which) == part[0, 0]


@pytest.mark.parametrize("c", [None, 0.25])
def test_a_chain_that_starts_from_c(c):
    a, b = (x.ravel() for x in generate("normal", 1, 48, 1, 3))
    for engines in (("ieee", "h100"), ("ieee", "mi300x")):
        found = side_by_side("fp16", a, b, c, engines=engines)
        assert found.first is not None and found.rules == ("algorithm",), found


def test_engines_of_one_arithmetic_agree():
    a, b = (x.ravel() for x in generate("normal", 1, 200, 1))
    found = side_by_side("fp16", a, b, engines=("h100", "b200"))
    assert found.first is None and "the same bits" in found.why and len(found.shown()) <= 4


def test_integers_cannot_differ():
    with pytest.raises(ValueError, match="no result can differ"):
        side_by_side("ozaki_int8", [1.0], [1.0], engines=("a100", "h100"))
    with pytest.raises(ValueError, match="got 1 engines, expected two"):
        side_by_side("fp16", [1.0], [1.0], engines=("a100",))
    with pytest.raises(ValueError, match="beyond the range of fp16 words; scale a or b"):
        side_by_side("fp16", [1e6], [1.0], engines=("a100", "h100"))


def test_long_dot_products_are_folded_to_what_matters():
    a, b = (x.ravel() for x in generate("normal", 1, 1000, 1))
    a[333], b[333] = 100.0, 50.0
    explanation = explain("fp16", a, b, engine="a100")
    text = explanation.folded()
    assert len(text.splitlines()) < 120 < len(str(explanation).splitlines())
    assert "a[333] = 100.0" in text and "[result]" in text and "steps with smaller weights" in text
    core = [step for step in explanation.steps if step.stage == "core" and step.weight is not None]
    worst = sorted(core, key=lambda step: -step.weight)[:MOST]
    assert worst[0].weight > 0 and all(str(step) in text for step in worst)
    short = explain("fp16", a[:4], b[:4], engine="a100")
    assert short.folded() == str(short)


@pytest.mark.parametrize(
    ("text", "value"),
    [("-1e-3", -1e-3), ("1/3", 1 / 3), ("-1/4", -0.25), ("2^-12", 2.0**-12), ("-2**3", -8.0), ("0x1.8p-4", 0.09375),
     (".5", 0.5), ("x", None), ("1/0", None), ("", None), ("2^", None), ("2^9999", None)],
)  # fmt: skip
def test_numbers_in_any_notation(text, value):
    assert _number(text) == (None if value is None else np.float32(value))


def test_the_command_for_two_engines(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "72")
    assert main(["explain", "--engine", "A100", "H100", "--distribution", "normal", "--k", "500"]) == 0
    text = capsys.readouterr().out
    assert "first that differs" in text and "explain" in text and max(map(len, text.splitlines())) <= 72
    assert (
        main(
            [
                "explain",
                "--engine",
                "h100/wgmma",
                "rtx4060",
                "--operands",
                "fp8",
                "--a",
                "-1e-3",
                "1",
                "--b",
                "1",
                "2^-9",
            ]
        )
        == 0
    )
    capsys.readouterr()
    a, b = generate("normal", 3, 90, 4)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = ["--files", str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert main(["explain", "--engine", "v100", "h100:HMMA.16816.F32", *files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["first"] is not None and found["results"][0] != found["results"][1]
    assert main(["explain", "ootomo", "--engine", "a100", *files, "--element", "2", "3"]) == 0
    assert "steps with smaller weights" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--distribution", "normal", "--k", "-5"], "must be at least 0"),
        (["--seed", "0"], "--seed goes with --distribution"),
        (["--element", "0", "0"], "--element goes with --files or --distribution"),
        (["--all", "--json"], "--all goes without --json"),
        (["--k", "5"], "goes with --distribution"),
        (["--engine", "a100", "h100", "v100"], "two to compare"),
        (["--a", "1e", "--b", "1"], "got '1e', expected a number"),
        (["ootomo", "--operands", "fp16"], "--operands goes without METHOD"),
        (["--engine", "a100", "h100", "--attribution-only"], "takes one engine"),
        (["--engine", "a100", "h100", "--operands", "fp8"], "engines that run it"),
        (["--operands", "fp4"], "cannot be explained"),
        (["--engine", "a100", "h1"], "unknown architecture"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1
