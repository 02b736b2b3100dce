"""Computes the error of Markidis' and Ootomo's methods against k on three tensor cores, which round to zero inside.

Ootomo and Yokota (IJHPCA 36:4) name this rounding as the reason why errors grow like k, and add outside of the core instead.
"""

import numpy as np

from mpgemm.experiments.cases import generated_cases
from mpgemm.experiments.evaluate import evaluate, summarise
from mpgemm.experiments.methods import build_methods
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import labelled_methods
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table

DEVICES = ("v100", "a100", "h100")
METHODS = (
    ("markidis:rounding=rne", "Markidis"),
    ("ootomo", "Ootomo, each k step outside"),
    ("ootomo_inside", "Ootomo, all inside"),
)


def run(context: Context) -> Outcome:
    """Return the errors of Markidis' and Ootomo's methods against k, with sums inside and outside of the core."""
    points = (16, 128, 1024) if context.quick else (16, 64, 256, 1024, 4096, 16384, 65536)
    rows = [(method, device, f"{label}, {device.upper()}") for method, label in METHODS for device in DEVICES]
    panels: list[Panel] = []
    tables: list[Table] = []
    data: dict = {"k": points, "seeds": list(context.seeds), "curves": {}}
    methods = [*labelled_methods(rows), *build_methods(["fp32_numpy"])]
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
    return Outcome("rz", tables, data, panels, 1, _remarks(data))


def _remarks(data) -> list[str]:
    first, last = data["k"][0], data["k"][-1]
    remarks = []
    for distribution, curves in data["curves"].items():
        for label, values in curves.items():
            slope = np.log(values[-1] / values[0]) / np.log(last / first) if values[0] and values[-1] else float("nan")
            remarks.append(f"{distribution}, {label}: error grows like k^{slope:.2f} from k = {first} to {last}")
    return remarks
