"""Recovery methods side by side: figs. 8 and 9 of Xue et al. with three methods, growth with k, and table 2."""

from dataclasses import dataclass

import numpy as np

from mpgemm.bounds.method_bounds import word_values
from mpgemm.experiments import sweeps
from mpgemm.experiments.cases import generated_cases
from mpgemm.experiments.evaluate import evaluate, summarise
from mpgemm.experiments.methods import build_methods
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import Pair, pair_method, resolve_pairs
from mpgemm.recovery.run import prepare
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table

#: Methods and engines of figs. 8 and 9: SGEMM-cube on the Ascend cube as in the paper, the others on two tensor cores.
SWEEP_PAIRS = (
    ("sgemm_cube", None, "SGEMM-cube, Ascend cube"),
    ("sgemm_cube", "a100", "SGEMM-cube, A100"),
    ("sgemm_cube", "h100", "SGEMM-cube, H100"),
    ("markidis", "a100", "Markidis (RZ), A100"),
    ("markidis", "h100", "Markidis (RZ), H100"),
    ("markidis:rounding=rne", "a100", "Markidis (RN), A100"),
    ("ootomo", "a100", "Ootomo, A100"),
    ("ootomo", "h100", "Ootomo, H100"),
)
#: Points and sizes: those of :data:`mpgemm.experiments.sweeps.SWEEP_FIGURES`, thinned out.
SWEEP_POINTS = {
    "8a": (-20, -16, -14, -13, -12, -10, -8, -6, -4, -2, 0, 4, 8, 12, 15, 16),
    "8b": (-20, -16, -14, -13, -12, -10, -8, -6, -4, -2, 0, 4, 8, 12, 15, 16),
    "9a": (16, 32, 64, 128, 256),
    "9b": (16, 64, 256, 1024, 4096, 16384),
    "9c": (16, 32, 64, 128, 256, 512),
}


def run_sweep(context: Context, name: str) -> Outcome:
    """One figure of Xue et al. with Markidis, Ootomo and SGEMM-cube side by side, FP32 SGEMM of NumPy as the baseline."""
    points, base = SWEEP_POINTS[name], None
    if context.quick:
        points, base = points[:4] if name[0] == "9" else points[::4], (16, 64, 16)
    methods = [*_pair_methods(SWEEP_PAIRS), *build_methods(["fp32"])]
    sweep = sweeps.run_sweep(
        name, methods, context.seeds, base, points, context.journal, context.progress, context.executor
    )
    return sweep.outcome(f"xue{name}")


def _pair_methods(rows):
    methods = []
    for method, engine, label in rows:
        (pair,), _ = resolve_pairs([method], [engine])
        methods.append(pair_method(pair, label=label, counts=False))
    return methods


# -- growth with k -------------------------------------------------------------------------------------------------------
RZ_DEVICES = ("v100", "a100", "h100")
RZ_METHODS = (
    ("markidis:rounding=rne", "Markidis"),
    ("ootomo", "Ootomo, each k step outside"),
    ("ootomo_inside", "Ootomo, all inside"),
)


def run_growth(context: Context) -> Outcome:
    """Error of Markidis' and Ootomo's methods against k: rounding to zero in the core, and what outside sums repair."""
    points = (16, 128, 1024) if context.quick else (16, 64, 256, 1024, 4096, 16384, 65536)
    rows = [(method, device, f"{label}, {device.upper()}") for method, label in RZ_METHODS for device in RZ_DEVICES]
    panels: list[Panel] = []
    tables: list[Table] = []
    data: dict = {"k": points, "seeds": list(context.seeds), "curves": {}}
    methods = [*_pair_methods(rows), *build_methods(["fp32"])]
    for distribution in ("uniform_nonnegative", "uniform_symmetric"):
        cases = [case for k in points for case in generated_cases(distribution, (16, k, 16), context.seeds)]
        summaries = summarise(evaluate(cases, methods, context.journal, context.progress, context.executor))
        curves = {m.label: [s.normwise for s in summaries if s.method == m.name] for m in methods}
        title = f"{distribution}, 16 x k x 16"
        tables.append(
            Table(
                f"{title}: error over || |A||B| ||_F",
                ["k", *curves],
                [[k, *(c[i] for c in curves.values())] for i, k in enumerate(points)],
            )
        )
        lines = [Curve(label, points, values, ":" if "NumPy" in label else "-") for label, values in curves.items()]
        panels.append(Panel(title, lines, "k", "normwise error"))
        data["curves"][distribution] = curves
    return Outcome("rz_accumulation", tables, data, panels, 1, _growth_remarks(data))


def _growth_remarks(data) -> list[str]:
    first, last = data["k"][0], data["k"][-1]
    remarks = []
    for distribution, curves in data["curves"].items():
        for label, values in curves.items():
            slope = np.log(values[-1] / values[0]) / np.log(last / first) if values[0] and values[-1] else float("nan")
            remarks.append(f"{distribution}, {label}: error grows like k^{slope:.2f} from k = {first} to {last}")
    return remarks


# -- table 2 -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Claim:
    """A row of table 2: bits lost against FP32, and the engine of its hardware column."""

    method: str
    engine: str
    claimed: str


CLAIMS = (
    Claim("markidis", "v100", "2"),
    Claim("egemm", "t4", "2"),
    Claim("egemm:rounding=rz", "t4", "2 (the table says RZ)"),
    Claim("ootomo", "a100", "1"),
    Claim("ootomo_tf32", "a100", "1"),
    Claim("ma", "v100", "1"),
    Claim("ma", "t4", "1"),
    Claim("ma", "a100", "1"),
    Claim("quantensor:passes=2", "t4", "N/A"),
    Claim("quantensor:passes=3", "t4", "N/A"),
    Claim("quantensor:format=fp16", "t4", "N/A"),
    Claim("mixpert", "a100", "3"),
    Claim("sgemm_cube", "ascend:cube.m16n16k16.f32.f16.f16.f32", "1-2"),
)
#: One product, so that only splitting and dropped terms show; and dot products long enough for the sums to matter.
LOSS_LENGTHS = (1, 256)
LOSS_INPUTS = ("uniform_symmetric", "normal")


def operand_loss(pair: Pair, count: int = 1 << 23) -> float:
    """Bits that the words lose of an operand: log2 of the largest error over 2^-24, half an ulp of FP32, for `count` FP32
    numbers spread over [1, 2) (2^23 are all of them); -inf where nothing is lost."""
    fractions = (np.arange(count) * 0x9E3779B1) & 0x7FFFFF  # an odd factor: all 2^23 fractions, any part of them spread
    x = (1 + fractions * 2.0**-23).astype(np.float32)
    run = prepare(x[:, None], np.ones((1, 1), np.float32), None, pair.row, pair.engine)
    largest = float(np.abs(x - sum(word[:, 0] for word in word_values(run)[0])).max())
    return 24 + float(np.log2(largest)) if largest else -np.inf


def run_table2(context: Context) -> Outcome:
    """Bits lost against FP32: by the words of an operand, and log2 of the error over that of an FP32 chain of FMAs."""
    lengths, size = ((1, 32), 16) if context.quick else (LOSS_LENGTHS, 64)
    pairs = [(claim, _only_pair(claim.method, claim.engine)) for claim in CLAIMS]
    methods = [pair_method(pair, label=claim.method, counts=False) for claim, pair in pairs]
    baseline = pair_method(_only_pair("fp32", "ieee"), label="FP32 chain", counts=False)
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
        ["method", "engine", "claimed", *heads],
        rows,
    )
    data = {
        "inputs": heads,
        "rows": [dict(zip(("method", "engine", "claimed", *heads), row, strict=True)) for row in rows],
    }
    return Outcome("xue2", [table], data)


def _only_pair(method: str, engine: str | None) -> Pair:
    (pair,), _ = resolve_pairs([method], [engine])
    return pair


def _rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
