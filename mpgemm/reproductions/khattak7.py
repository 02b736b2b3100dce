"""Computes figure 7 of Khattak and Mikaitis: multiword products on the accumulators of nine GPUs, n from 10 to a million.

A is 10 x n and B is n x 10, with elements +-10^u for u uniform in [-10, 10], rounded to FP32. The error is ||C^ - C||_inf
over ||A||_inf ||B||_inf against the exact product (the paper's reference is a binary64 product). The split is the published
one, with equilibration to theta and word j scaled by u^(1-j). The paper's figure shows five NVIDIA accumulators; the AMD
accumulators are in separate data files. A format that a GPU does not have runs on that GPU's fp16 accumulator, a hypothetical
engine (hyp.).
"""

import math
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.published_bounds import multiword_bound
from mpgemm.experiments.cases import generated_cases
from mpgemm.experiments.evaluate import evaluate
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import MethodOnEngine, pair_method
from mpgemm.recovery.engines import hypothetical_engine
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.word_run import WordStore, scaling_target
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.formats import FORMATS

SIZES = tuple(int(n) for n in np.floor(np.logspace(1, 6, 20)))
PANELS = (
    ("e5m2", 1),
    ("e5m2", 4),
    ("e5m2", 6),
    ("fp16", 1),
    ("fp16", 2),
    ("fp16", 3),
    ("bf16", 1),
    ("bf16", 2),
    ("bf16", 3),
)


@dataclass(frozen=True)
class FigureDevice:
    """`FigureDevice` is a curve of the figure, with the device whose accumulators it uses."""

    #: label, device: name in the figure, and the device that it stands for.
    label: str
    device: str
    paths: tuple[tuple[str, str], ...] = ()  #: Path of each format that has instructions of several paths.
    lacks: tuple[str, ...] = ()  #: Formats that run on the fp16 accumulator as hypothetical engines.
    #: Replaced fields of every accumulator as (name, value); an engine with replaced fields is hypothetical, too.
    changes: tuple[tuple[str, object], ...] = ()

    def engine(self, fmt: str) -> MatrixEngine:
        """Return the engine for a word format."""
        path = dict(self.paths).get(fmt)
        if fmt in self.lacks or self.changes:
            model = "fp16" if fmt in self.lacks else fmt
            return hypothetical_engine(self.device, fmt, model=model, path=path, **dict(self.changes))
        if fmt == "e5m2" and self.device == "mi300x":
            fmt = "e5m2fnuz"
        return tcm.default_instruction(self.device, fmt, path=path)

    def name(self, fmt: str) -> str:
        """Return the label of a word format in the legend."""
        return f"{self.label} (hyp.)" if fmt in self.lacks or self.changes else self.label


CURVES = (
    FigureDevice("V100", "v100", lacks=("e5m2", "bf16")),
    FigureDevice("A100", "a100", lacks=("e5m2",)),
    FigureDevice("H100", "h100", paths=(("e5m2", "wgmma"),)),
    FigureDevice("B200", "b200", paths=(("e5m2", "mma"),)),
    FigureDevice("L40S", "l40s"),
    FigureDevice("B200 with RN", "b200", paths=(("e5m2", "tcgen05"),), changes=(("output_rounding", "rne"),)),
    FigureDevice("MI100", "mi100", lacks=("e5m2",)),
    FigureDevice("MI250", "mi250", lacks=("e5m2",)),
    FigureDevice("MI300X", "mi300x"),
)

#: Accumulation of products of different words; "core" is the published code's, which chains all products in one accumulator.
ACCUMULATION = "outside"


def methods_of(fmt: str, words: int, accumulation: str = ACCUMULATION):
    """Return one experiment method for each curve of a panel."""
    row, store = get_method("multiword", format=fmt, words=words, accumulation=accumulation), WordStore()
    name = f"multiword:format={fmt},words={words},accumulation={accumulation}"
    return [
        pair_method(MethodOnEngine(name, row, d.engine(fmt)), label=d.name(fmt), counts=False, store=store)
        for d in CURVES
    ]


def run(context: Context, accumulation: str = ACCUMULATION) -> Outcome:
    """Return all panels; ``context.quick`` stops at n = 1000."""
    sizes = tuple(n for n in SIZES if n <= 1300) if context.quick else SIZES
    panels: list[Panel] = []
    tables: list[Table] = []
    data: dict = {"sizes": sizes, "seeds": list(context.seeds), "accumulation": accumulation, "panels": []}
    cases = [case for n in sizes for case in generated_cases("decades", (10, n, 10), context.seeds)]
    methods = {panel: methods_of(*panel, accumulation) for panel in PANELS}
    flat = list({m.name: m for members in methods.values() for m in members}.values())
    records = evaluate(cases, flat, context.journal, context.progress, context.executor)
    errors: dict[tuple[str, int], list[float]] = {}
    for record in records:
        errors.setdefault((record.method, record.errors.k), []).append(record.errors.relative_inf)
    for fmt, words in PANELS:
        members = methods[fmt, words]
        curves = {m.label: [float(np.mean(errors[m.name, n])) for n in sizes] for m in members}
        bound = [_bound(fmt, words, n) for n in sizes]
        title = f"{words} word{'s' if words > 1 else ''} of {fmt}"
        panels.append(_panel(title, sizes, curves, bound))
        rows = [[n, *(curve[i] for curve in curves.values()), bound[i]] for i, n in enumerate(sizes)]
        tables.append(Table(title, ["n", *curves, "bound"], rows))
        engines = {m.label: m.name.partition("@")[2] for m in members}
        data["panels"].append({"format": fmt, "words": words, "curves": curves, "bound": bound, "engines": engines})
    name = "khattak7" if accumulation == ACCUMULATION else f"khattak7-{accumulation}"
    return Outcome(name, tables, data, panels, 3, _remarks(data))


def _bound(fmt: str, words: int, n: int) -> float:
    word, result = FORMATS[fmt], FORMATS["fp32"]
    return multiword_bound(n, words, word, result, scaling_target(word, result, n))


def _panel(title, sizes, curves, bound) -> Panel:
    lines = [Curve(label, sizes, values, "--" if "(hyp.)" in label else "-") for label, values in curves.items()]
    top = max(max(values) for values in curves.values())
    shown = [value if value < 1e4 * top else math.inf for value in bound]  # the bound soon exceeds the figure's range
    lines.append(Curve("bound", sizes, shown, ":"))
    return Panel(title, lines, "n", "error")


def _remarks(data) -> list[str]:
    """Return sentences on V100 and B200 at the largest n, and on B200 with rounding to nearest."""
    remarks = []
    n = data["sizes"][-1]
    for panel in data["panels"]:
        if panel["format"] == "fp16" and panel["words"] > 1:
            last = {label.replace(" (hyp.)", ""): values[-1] for label, values in panel["curves"].items()}
            remarks.append(
                f"{panel['words']} words of fp16, n = {n}: V100 {last['V100']:.2e}, B200 {last['B200']:.2e} "
                f"({last['B200'] / last['V100']:.0f} times), B200 with RN {last['B200 with RN']:.2e}"
            )
    return remarks


# -- the V100-better-than-B200 effect ------------------------------------------------------------------------------------
def rounding_variants() -> list[tuple[str, MatrixEngine]]:
    """Return accumulators between those of V100 and B200, with one parameter changed at a time."""
    v100, b200 = tcm.default_instruction("v100", "fp16"), tcm.default_instruction("b200", "fp16")
    return [
        ("V100: N = 4, F = 23, RZ", v100),
        ("N = 4, F = 25, RZ", hypothetical_engine("v100", "fp16", fraction_bits=25)),
        ("N = 16, F = 23, RZ", hypothetical_engine("b200", "fp16", fraction_bits=23)),
        ("N = 16, F = 24, RZ", hypothetical_engine("b200", "fp16", fraction_bits=24)),
        ("B200: N = 16, F = 25, RZ", b200),
        ("N = 4, F = 25, RN", hypothetical_engine("v100", "fp16", fraction_bits=25, output_rounding="rne")),
        ("N = 16, F = 23, RN", hypothetical_engine("b200", "fp16", fraction_bits=23, output_rounding="rne")),
        ("N = 16, F = 25, RN", hypothetical_engine("b200", "fp16", output_rounding="rne")),
    ]


def run_effect(context: Context) -> Outcome:
    """Return errors of two fp16 words on accumulators between V100's and B200's, to find why V100 is more accurate."""
    n = 10_000 if context.quick else 100_000
    row = get_method("multiword", format="fp16", words=2)
    methods = [
        pair_method(MethodOnEngine("multiword:format=fp16,words=2", row, engine), label=label, counts=False)
        for label, engine in rounding_variants()
    ]
    cases = generated_cases("decades", (10, n, 10), context.seeds)
    records = evaluate(cases, methods, context.journal, context.progress, context.executor)
    errors = {m.label: [r.errors.relative_inf for r in records if r.method == m.name] for m in methods}
    rows = [[label, float(np.mean(values)), min(values), max(values)] for label, values in errors.items()]
    table = Table(
        f"Two words of fp16, n = {n}, {len(context.seeds)} seeds",
        ["accumulator", "mean error", "least", "largest"],
        rows,
    )
    return Outcome("khattak7-effect", [table], {"n": n, "seeds": list(context.seeds), "errors": errors})
