"""Every sentence of commands on random matrices, judged by rational numbers; the judge shares no code with the verdicts.

What a method computes is asked of the package; what is said about it is checked here.
"""

import dataclasses

import numpy as np
import pytest
from judge_comparison import ENGINES, METHODS, ComparisonJudge
from judge_inputs import draw
from judge_verdict import VerdictJudge

import ascend
import mpgemm
from ascend.tile_schedule import TileSchedule
from mpgemm.cli import main

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
    return mpgemm.recovered_gemm(a, b, None, {"3xTF32": "tf32x3"}.get(method, method), engine)


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
    judge = ComparisonJudge(a, b, methods, engines, bits, recovered)
    false = judge.judge(text)
    assert not false, "\n".join([f"{kind} {a.dtype} {a.shape} {b.shape}", *false, text])


class Cube:
    """SGEMM-cube on the modelled Ascend cube."""

    def __call__(self, a, b, **options):
        return ascend.cube_gemm(a, b, **options)

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
