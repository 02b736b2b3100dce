"""Advice on promotion: its numbers, its bounds, its recommendation."""

import json

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.experiments.promotion import WANTED, Interval, PromotionAdvice
from mpgemm.experiments.promotion_seeds import PromotionOverSeeds
from mpgemm.inputs.matrices import generate

PAIR = generate("normal", 8, 512, 8)


def test_the_numbers_are_those_of_the_engine():
    engine = tcm.default_instruction("h100", "e4m3fn", path="wgmma")
    advice = mpgemm.advise_promotion(*PAIR, engine, scale=False)
    assert [i.every for i in advice.intervals] == [32, 64, 128, 256, None]
    a, b = (tcm.round_to(x, "e4m3fn") for x in PAIR)
    exact = np.asarray(mpgemm.exact_gemm(a, b).rounded("fp64"))
    for interval in advice.intervals:
        d = engine.gemm(a, b, promote_every=interval.every).astype(np.float64)
        assert interval.error == pytest.approx(np.linalg.norm(d - exact) / np.linalg.norm(exact), rel=1e-6)
        assert interval.error <= interval.bound
        assert interval.additions == (0 if interval.every is None else 1 / interval.every)
    given = np.asarray(mpgemm.exact_gemm(*PAIR).rounded("fp64"))
    assert advice.operands == pytest.approx(np.linalg.norm(exact - given) / np.linalg.norm(given), rel=1e-6)


def test_the_cheapest_interval_that_suffices():
    pair = generate("uniform_nonnegative", 8, 2048, 8)
    advice = mpgemm.advise_promotion(*pair, "h100")
    errors = {i.every: i.error for i in advice.intervals}
    assert errors[None] > 4 * errors[128]
    between = (errors[128] * errors[256]) ** 0.5
    chosen = mpgemm.advise_promotion(*pair, "h100", wanted=between)
    assert chosen.measured.every == 128 and "every 128 products" in chosen.verdict
    assert mpgemm.advise_promotion(*pair, "h100", wanted=1.0).measured.every is None
    bounds = {i.every: i.bound for i in advice.intervals}
    assert mpgemm.advise_promotion(*pair, "h100", wanted=(bounds[256] * bounds[512]) ** 0.5).certain.every == 256
    assert mpgemm.advise_promotion(*pair, "h100", wanted=1e-9).measured is None


def test_narrow_operands_fill_their_range():
    a, b = (x * np.float32(2.0**-12) for x in PAIR)
    advice = mpgemm.advise_promotion(a, b, "h100")
    plain = mpgemm.advise_promotion(a, b, "h100", scale=False)
    assert min(advice.scaled) > 12 and plain.scaled == (0, 0)
    assert plain.operands > 2 * advice.operands
    assert mpgemm.advise_promotion(a, b, "a100", fmt="half").scaled == (0, 0)


def test_wrong_arguments():
    for arguments, message in (
        ({"wanted": 0}, "wanted is 0"),
        ({"engine": "a100", "fmt": "int8"}, "gives s32"),
        ({"engine": "h100:mma.m16n8k16.f16.f16.f16.f16"}, "gives fp16"),
    ):
        with pytest.raises(ValueError, match=message):
            mpgemm.advise_promotion(*PAIR, **arguments)
    with pytest.raises(ValueError, match="holds infinities or NaN, expected finite values"):
        mpgemm.advise_promotion(np.full((2, 64), np.inf), np.ones((64, 2)))


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["advise-promotion", "--shape", "1", "300", "8", "--wanted", "1e-3"]) == 0
    text = capsys.readouterr().out
    assert "every" in text and "never" in text and max(map(len, text.splitlines())) <= 80
    for name, x in zip("ab", PAIR, strict=True):
        np.save(tmp_path / f"{name}.npy", x)
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert main(["advise-promotion", *files, "--engine", "A100", "--operands", "half", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"].startswith("ampere:mma.m16n8k16") and found["intervals"][0]["every"] == 16
    refused = (
        (["--intervals", "0"], "expected positive integers"),
        (["--wanted", "-1"], "wanted is -1"),
        (["--engine", "q1"], "unknown architecture"),
        (["x.npy"], "matrix file(s), expected two"),
    )
    for arguments, message in refused:
        assert main(["advise-promotion", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


def test_promotion_does_not_matter_where_rounding_the_operands_hides_the_sums():
    """FP8: the operands' rounding is 30 times the error of the sums, so that is the headline and no interval is recommended."""
    advice = mpgemm.advise_promotion(*generate("normal", 8, 2048, 8), "h100")
    never = advice.intervals[-1]
    assert advice.operands > 20 * never.error and never.whole < 1.1 * min(i.whole for i in advice.intervals)
    assert (
        advice.verdict.startswith("Promotion does not matter here: the whole error") and advice.measured.every is None
    )
    summed = mpgemm.advise_promotion(*generate("uniform_nonnegative", 8, 2048, 8), "h100")
    assert summed.matters and summed.verdict.startswith("Add up outside every ")
    wanted = mpgemm.advise_promotion(*generate("normal", 8, 2048, 8), "h100", wanted=1e-4)
    assert "within 0.0001 (the error wanted)" in wanted.verdict


def test_the_whole_error_is_that_of_the_operands_as_given():
    engine = tcm.default_instruction("a100", "fp16")
    advice = mpgemm.advise_promotion(*PAIR, engine)
    exact = np.asarray(mpgemm.exact_gemm(*PAIR).rounded("fp64"))
    for interval in advice.intervals:
        d = engine.gemm(*(tcm.round_to(x, "fp16") for x in PAIR), promote_every=interval.every).astype(np.float64)
        assert interval.whole == pytest.approx(np.linalg.norm(d - exact) / np.linalg.norm(exact), rel=1e-6)


def test_operands_beyond_the_format_are_refused():
    a = PAIR[0].copy()
    a[2, 5] = 1e6
    with pytest.raises(
        ValueError, match=r"1 element of A is beyond 65504, the largest number of fp16; the first is A\[2, 5\] = 1e\+06"
    ):
        mpgemm.advise_promotion(a, PAIR[1], "a100", fmt="half")


# -- several seeds -------------------------------------------------------------------------------------------------------
def drawn(factors, spread, seeds, wanted=1e-3):
    """Advice whose errors are the wanted one times known factors, each seed's off by a factor of its own around 1."""
    found = []
    for off in 2.0 ** (spread * np.linspace(-1, 1, seeds)):
        rows = [
            Interval(every, 0.0, wanted * factor * off, 1.0, wanted * factor * off + 1e-3)
            for every, factor in zip((32, 64, 128, None), factors, strict=True)
        ]
        found.append(PromotionAdvice("e", (8, 8, 8), tuple(rows), wanted, WANTED, None, None, 0.0, 0.0, (0, 0)))
    return found


@pytest.mark.parametrize(
    ("factors", "spread", "seeds", "said"),
    [
        ((0.1, 0.5, 2, 4), 0.1, 8, "Add up outside every 64 products"),
        ((0.1, 0.5, 1.0, 4), 0.3, 8, "Borderline: every 128 products"),
        ((2, 3, 4, 5), 0.1, 4, "No interval surely reaches"),
        ((0.1, 0.1, 0.1, 0.2), 0.1, 3, "Nothing needs to be added up outside"),
        ((0.1, 0.5, 2, 4), 0.1, 2, "2 seeds are too few for an interval, so every seed must agree."),
    ],
)
def test_seeds_decide_together(factors, spread, seeds, said):
    found = PromotionOverSeeds.of(drawn(factors, spread, seeds))
    assert said in str(found), str(found)
    sides = [interval.side for interval in found.intervals]
    assert all((side == 0) == (factor == 1.0) for side, factor in zip(sides, factors, strict=True))
    undecided = [interval for interval in found.intervals if interval.side == 0]
    assert all(interval.seeds_to_decide is None or interval.seeds_to_decide > seeds for interval in undecided)


def test_seeds_of_a_distribution():
    pairs = [generate("uniform_nonnegative", 8, 512, 8, seed) for seed in range(3)]
    each = [mpgemm.advise_promotion(*pair, "h100", wanted=1e-3) for pair in pairs]
    found = PromotionOverSeeds.of(each)
    assert [i.error.median for i in found.intervals] == [
        sorted(a.intervals[n].error for a in each)[1] for n in range(len(each[0].intervals))
    ]
    assert json.loads(json.dumps(found.to_dict()))["seeds"][0]["engine"] == each[0].engine
