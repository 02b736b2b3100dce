"""Computes table 2 of Xue et al. (arXiv:2507.23387v4): bits that methods lose against FP32, claimed and measured."""

from dataclasses import dataclass

import numpy as np

from mpgemm.bounds.method_bounds import word_values
from mpgemm.experiments.cases import generated_cases
from mpgemm.experiments.evaluate import evaluate
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import MethodOnEngine, only_pair, pair_method
from mpgemm.recovery.run import prepare
from mpgemm.reporting.report import Table


@dataclass(frozen=True)
class ClaimedLoss:
    """`ClaimedLoss` is a row of table 2: a method, the engine of the hardware column, and the claimed loss in bits."""

    method: str
    engine: str
    claimed: str


CLAIMS = (
    ClaimedLoss("markidis", "v100", "2"),
    ClaimedLoss("egemm", "t4", "2"),
    ClaimedLoss("egemm:rounding=rz", "t4", "2 (the table says RZ)"),
    ClaimedLoss("ootomo", "a100", "1"),
    ClaimedLoss("ootomo_tf32", "a100", "1"),
    ClaimedLoss("ma", "v100", "1"),
    ClaimedLoss("ma", "t4", "1"),
    ClaimedLoss("ma", "a100", "1"),
    ClaimedLoss("quantensor:passes=2", "t4", "N/A"),
    ClaimedLoss("quantensor:passes=3", "t4", "N/A"),
    ClaimedLoss("quantensor:format=fp16", "t4", "N/A"),
    ClaimedLoss("mixpert", "a100", "3"),
    ClaimedLoss("sgemm_cube", "ascend:cube.m16n16k16.f32.f16.f16.f32", "1-2"),
)
#: Lengths of dot products: one product, for which only splitting and dropped terms count, and a length at which sums count,
#: too.
LOSS_LENGTHS = (1, 256)
LOSS_INPUTS = ("uniform_symmetric", "normal")


def operand_loss(pair: MethodOnEngine, count: int = 1 << 23) -> float:
    """Return the bits that splitting loses: log2 of the largest error over 2^-24, -inf if all words are exact.

    count: number of FP32 numbers in [1, 2), evenly spread; 2^23 are all.
    """
    fractions = (
        np.arange(count) * 0x9E3779B1
    ) & 0x7FFFFF  # an odd factor gives all 2^23 fractions, spread from the start
    x = (1 + fractions * 2.0**-23).astype(np.float32)
    run = prepare(x[:, None], np.ones((1, 1), np.float32), None, pair.row, pair.engine)
    largest = float(np.abs(x - sum(word[:, 0] for word in word_values(run)[0])).max())
    return 24 + float(np.log2(largest)) if largest else -np.inf


def run(context: Context) -> Outcome:
    """Return the bits lost against FP32, by the words of an operand and by products compared with an FP32 chain of FMAs."""
    lengths, size = ((1, 32), 16) if context.quick else (LOSS_LENGTHS, 64)
    pairs = [(claim, only_pair(claim.method, claim.engine)) for claim in CLAIMS]
    methods = [pair_method(pair, label=claim.method, counts=False) for claim, pair in pairs]
    baseline = pair_method(only_pair("fp32", "ieee"), label="FP32 chain", counts=False)
    losses: dict[str, list[float]] = {m.name: [] for m in methods}
    heads = ["operand, worst"]
    for m, (_, pair) in zip(methods, pairs, strict=True):
        losses[m.name].append(operand_loss(pair, 1 << (13 if context.quick else 23)))
    for distribution in LOSS_INPUTS:
        for k in lengths:
            cases = generated_cases(distribution, (size, k, size), context.seeds)
            records = evaluate(cases, [*methods, baseline], context.journal, context.progress, context.executor)
            mean = {
                m.name: _rms([r.errors.normwise for r in records if r.method == m.name]) for m in (*methods, baseline)
            }
            heads.append(f"{distribution} k = {k}")
            for m in methods:
                losses[m.name].append(float(np.log2(mean[m.name] / mean[baseline.name])))
    rows = [
        [claim.method, pair.engine.label, claim.claimed, *losses[m.name]]
        for (claim, pair), m in zip(pairs, methods, strict=True)
    ]
    table = Table(
        "Bits lost against an FP32 chain of fused multiply-adds (error over || |A||B| ||_F)",
        ["method", "unit", "claimed", *heads],
        [[row[0], pair.engine.label.partition(":")[0], *row[2:]] for row, (_, pair) in zip(rows, pairs, strict=True)],
    )
    data = {
        "inputs": heads,
        "rows": [dict(zip(("method", "engine", "claimed", *heads), row, strict=True)) for row in rows],
    }
    return Outcome("xue-table2", [table], data)


def _rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
