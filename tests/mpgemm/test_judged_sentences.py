"""Every sentence of commands on random matrices, judged by rational numbers; the judge shares no code with the verdicts.

What a method computes is asked of the package; what is said about it is checked here.
"""

import dataclasses
import re

import numpy as np
import pytest
from judge_comparison import ENGINES, METHODS, ComparisonJudge
from judge_inputs import draw
from judge_promotion import PromotionJudge
from judge_verdict import VerdictJudge

import ascend
import mpgemm
import tensorcore_models as tcm
from ascend.tile_schedule import TileSchedule
from mpgemm.cli import main
from mpgemm.recovery.engines import ieee_engine, plain_engine

RUNS = [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 200))]


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """What a command prints about two matrices."""
    monkeypatch.setenv("COLUMNS", "100000")
    monkeypatch.chdir(tmp_path)

    def run(command, a, b, *arguments):
        np.save("a.npy", a)
        np.save("b.npy", b)
        assert main([command, "a.npy", "b.npy", *map(str, arguments)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def chosen(rng, names, most):
    return [str(name) for name in rng.choice(list(names), int(rng.integers(1, most + 1)), replace=False)]


def recovered(a, b, method, engine):
    return mpgemm.recovered_gemm(a, b, None, method, engine)


def fp32(a, b):
    """The baseline that everything is judged by."""
    return ieee_engine("fp32").gemm(a, b, promote_every=256)


@pytest.mark.parametrize("seed", RUNS)
def test_compare(seed, said):
    rng = np.random.default_rng(seed)
    kind, a, b = draw(rng)
    methods, engines = (
        ["fp16", *chosen(rng, sorted(METHODS.keys() - {"fp16"}), 3)],
        ["a100", *chosen(rng, sorted(set(ENGINES) - {"a100"}), 4)],
    )
    bits = float(rng.choice([0, 0, 11, 20, 50]))
    text = said(
        "compare", a, b, "--methods", *methods, "--engines", *engines, *(["--bits", bits] if bits else []), "--wide"
    )
    judge = ComparisonJudge(a, b, methods, engines, bits, recovered, fp32)
    false = judge.judge(text)
    assert not false, "\n".join([f"{kind} {a.dtype} {a.shape} {b.shape}", *false, text])


def test_the_judge_notices_a_wrong_number(said):
    """Every number of bits, passes and TFLOP/s of a page, one larger, is a false sentence."""
    a, b = np.random.default_rng(3).standard_normal((2, 5, 5))
    methods, engines = ["fp16", "ootomo", "fp64"], ["a100", "b300"]
    text = said("compare", a, b, "--methods", *methods, "--engines", *engines, "--bits", 50, "--wide")
    judge = ComparisonJudge(a, b, methods, engines, 50, recovered, fp32)
    assert not judge.judge(text)
    end = text.index("\n\n")
    numbers = [
        found for found in re.finditer(r"\d+(?=\.\d bits)|(?<=: )\d+(?= pass)|(?<=at )\d+", text) if found.start() < end
    ]
    assert len(numbers) >= 7
    for number in numbers:
        judge.false = []
        assert judge.judge(f"{text[: number.start()]}{int(number[0]) + 1}{text[number.end() :]}"), number


class Cube:
    """SGEMM-cube on the modelled Ascend cube."""

    def __call__(self, a, b, **options):
        return ascend.cube_gemm(a, b, **options)

    fp32 = staticmethod(fp32)

    def short_chains(self, a, b, setting, step_order):
        order, scale, _ = setting
        whole = TileSchedule.unblocked(m=a.shape[0], k=a.shape[1], n=b.shape[1], mode=order)
        schedule = dataclasses.replace(whole, blocking=dataclasses.replace(whole.blocking, bk=256))
        scale = scale if scale == "auto" else int(scale)
        return ascend.cube_gemm(a, b, order=order, scale_exponent=scale, step_order=step_order, schedule=schedule)


@pytest.mark.parametrize("seed", RUNS)
def test_evaluate(seed, said):
    rng = np.random.default_rng(seed)
    kind, a, b = draw(rng, 400 if seed % 5 == 0 else 48)
    text = said("evaluate", a, b, "--methods", "fp32", "fp32_chain", "sgemm_cube", "sgemm_cube_scaled", "--wide")
    false = VerdictJudge(a, b, Cube()).judge(text)
    assert not false, "\n".join([f"{kind} {a.dtype} {a.shape} {b.shape}", *false, text])


class Unit:
    """A matrix unit that adds its sums up outside, and what it holds of operands."""

    def __init__(self, device, fmt):
        self.engine = plain_engine(device, fmt)

    def __call__(self, a, b, every):
        held = [tcm.round_to(x, fmt).astype(np.float64) for x, fmt in zip((a, b), self.engine.formats[:2], strict=True)]
        return self.engine.gemm(*held, promote_every=every), held


@pytest.mark.sweep(7)
@pytest.mark.parametrize("seed", RUNS)
def test_advise_promotion(seed, said, capsys):
    rng = np.random.default_rng(seed)
    kind, a, b = draw(rng, 300)
    device, fmt = [("h100", "fp8"), ("l40s", "fp8"), ("a100", "fp16"), ("h100", "bf16")][rng.integers(4)]
    wanted = float(rng.choice([0, 1e-5, 1e-3, 0.3])) or None
    given = ["--engine", device, "--operands", fmt, *(["--wanted", wanted] if wanted else [])]
    finite = np.isfinite(a).all() and np.isfinite(b).all()
    largest = max(np.abs(x.astype(np.float64)).max() for x in (a, b))
    too_large = largest >= {"fp16": 65520, "bf16": 2.0**128 * (1 - 2.0**-9)}.get(fmt, np.inf)  # fp8 is scaled first
    if not finite or too_large:
        np.save("a.npy", a)
        np.save("b.npy", b)
        assert main(["advise-promotion", "a.npy", "b.npy", *map(str, given)]) == 2
        told = f", the largest number of {fmt};" if finite else "a or b holds infinities or NaN, expected finite"
        assert told in capsys.readouterr().err
        return
    text = said("advise-promotion", a, b, *given)
    scaled = re.search(r"A was multiplied by 2\^(-?\d+) and B by 2\^(-?\d+)", text)
    judge = PromotionJudge(a, b, tuple(map(int, scaled.groups())) if scaled else (0, 0), Unit(device, fmt))
    false = judge.judge(text, wanted)
    assert not false, "\n".join([f"{kind} {a.dtype} {a.shape} {b.shape}", *false, text])
