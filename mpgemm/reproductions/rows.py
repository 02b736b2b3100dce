"""Lists the figures and tables that `mpgemm reproduce` computes again; a row's module is imported when it runs."""

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from mpgemm.experiments.outcome import Context, Outcome

XUE, KHATTAK, XIE = "Xue et al.", "Khattak and Mikaitis", "Xie et al."
VALPEY, OOTOMO = "Valpey et al.", "Ootomo and Yokota"
PAPERS = {
    XUE: "SGEMM-cube, arXiv:2507.23387v4",
    KHATTAK: "models of NVIDIA tensor cores",
    XIE: "MMA-Sim, arXiv:2511.10909",
    VALPEY: "an SMT formalization of tensor cores, 2025",
    OOTOMO: "recovering FP32 from tensor cores, IJHPCA 36:4, 2022",
}

_RUN = ("workers", "cluster")
_DRAWN = ("seed", "repeats", *_RUN)
_QUICK = (*_DRAWN, "quick")
_SWEEP = (*_DRAWN, "methods", "engine", "orders", "scale_exponents", "step_orders", "block", "shape", "metric")
_CHIP = ("chip", "calibrated", "changes")


@dataclass(frozen=True)
class Reproduction:
    """`Reproduction` is one figure or table that can be computed again."""

    name: str  #: Name on the command line.
    #: source, part, what: paper (:data:`PAPERS`), its figure or table, and a description of the computation.
    source: str
    part: str
    what: str
    seconds: float  #: CPU time, measured here (`mpgemm reproduce NAME`, one x86-64 machine).
    where: str  #: "module:function" of a function that takes a Context and keywords and returns an Outcome.
    arguments: Mapping[str, object] = field(default_factory=dict)  #: Keywords that the row passes.
    takes: tuple[str, ...] = ()  #: Destinations of the command's options that affect it.
    repeats: int = 1  #: Default number of seeds.

    def run(self, context: Context, **options) -> Outcome:
        """Return the outcome of the computation."""
        module, _, function = self.where.partition(":")
        return getattr(importlib.import_module(f"{__package__}.{module}"), function)(
            context, **self.arguments, **options
        )


def _sweep(name: str, what: str, seconds: float) -> Reproduction:
    return Reproduction(
        f"xue{name}", XUE, f"fig. {name}", what, seconds, "xue_sweeps:figure", {"name": name}, _SWEEP, 5
    )  # fmt: skip


def _corrections(name: str, seconds: float) -> Reproduction:
    what = "the inputs of the figure with Markidis', Ootomo's and SGEMM-cube's corrections, at fewer points"
    return Reproduction(
        f"xue{name}-corrections", XUE, f"fig. {name}", what, seconds, "xue_sweeps:corrections", {"name": name}, _QUICK, 3
    )  # fmt: skip


_ROWS = (
    Reproduction("xue2a", XUE, "fig. 2a", "underflow of the low fp16 word against the exponent: eq. 5 and counts", 1.4,
                 "xue_splits:figure", {"name": "2a"}, _RUN),
    Reproduction("xue2b", XUE, "fig. 2b", "bits that two fp16 words keep against the exponent: eq. 6 and counts", 28,
                 "xue_splits:figure", {"name": "2b"}, _RUN),
    Reproduction("xue6", XUE, "fig. 6", "N_fused and f of every feasible block", 0.9, "ascend_figures:figure_6", takes=_CHIP),
    _sweep("8a", "error against the offset exponent, entries of both signs", 34),
    _sweep("8b", "error against the offset exponent, entries above 0", 34),
    _sweep("9a", "error against m = n", 12),
    _sweep("9b", "error against k", 14),
    _sweep("9c", "error against m = k = n", 23),
    Reproduction("xue10", XUE, "fig. 10", "every block in the roofline, single and double buffers, predicted", 28,
                 "ascend_figures:figure_10", takes=(*_CHIP, "shape")),
    Reproduction("xue11", XUE, "fig. 11", "speed with single and double buffers over square blocks, predicted", 1.8,
                 "ascend_figures:figure_11", takes=(*_CHIP, "shape")),
    Reproduction("xue12", XUE, "fig. 12", "speed against m = n, k and all sizes, predicted", 19,
                 "ascend_figures:figure_12", takes=(*_CHIP, "block")),
    Reproduction("xue-table2", XUE, "table 2", "bits that methods lose against FP32, claimed and measured", 8,
                 "xue_table2:run", takes=_QUICK, repeats=3),
    Reproduction("xue-claims", XUE, "all sections", "claims that are numbers, the paper's and ours, and why they differ", 11,
                 "xue_claims:run", takes=("seed", "repeats")),
    *(_corrections(name, seconds) for name, seconds in (("8a", 14), ("8b", 14), ("9a", 6), ("9b", 15), ("9c", 6))),
    Reproduction("khattak7", KHATTAK, "fig. 7", "multiword products on nine accumulators, n from 10 to a million", 788,
                 "khattak7:run", {"accumulation": "outside"}, _QUICK),
    Reproduction("khattak7-core", KHATTAK, "fig. 7", "multiword products with all products in one chain through the core", 769,
                 "khattak7:run", {"accumulation": "core"}, _QUICK),
    Reproduction("khattak7-effect", KHATTAK, "fig. 7", "why V100 beats B200, with one parameter changed at a time, n = 1e5", 11,
                 "khattak7:run_effect", takes=_QUICK, repeats=3),
    Reproduction("xie2", XIE, "fig. 2", "deviations of CDNA3, which rounds down, and of the same unit rounding to zero", 1.7,
                 "cdna3_bias:run", takes=("seed", "repeats", "quick"), repeats=3),
    Reproduction("rz", OOTOMO, "rounding to zero", "error against k of Markidis' and Ootomo's methods on V100, A100, H100", 22,
                 "rounding_to_zero:run", takes=_QUICK, repeats=3),
    Reproduction("valpey-table4", VALPEY, "table 4", "queries to SMT solvers about four units, with times", 149,
                 "valpey_table4:run", takes=("timeout", "memory", "solver")),
    Reproduction("valpey-table5", VALPEY, "table 5", "an input on which Markidis beats Ootomo, and a search for more", 9,
                 "valpey_table5:run", takes=_QUICK),
)  # fmt: skip
REPRODUCTIONS: dict[str, Reproduction] = {row.name: row for row in _ROWS}


def get_reproduction(name: str) -> Reproduction:
    """Return the row of a name; raise ValueError if there is none."""
    if name not in REPRODUCTIONS:
        near = difflib.get_close_matches(name, REPRODUCTIONS, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; mpgemm reproduce --list shows the known names"
        raise ValueError(f"unknown figure or table {name!r}{hint}")
    return REPRODUCTIONS[name]
