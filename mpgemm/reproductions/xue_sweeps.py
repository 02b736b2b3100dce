"""Computes figures 8 and 9 of Xue et al. (arXiv:2507.23387v4): relative error against offset exponent and matrix size.

The paper gives k = 64 * 44 for fig. 9a, five seeds and s_b in {0, 6, 12}. It does not give the size of fig. 8, the fixed sizes
and ranges of fig. 9b and 9c, or the range of offset exponents; this project chose them, and results state them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments.cases import Case, generated_cases
from mpgemm.experiments.evaluate import Summary, evaluate, summarise
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.methods import CubeOptions, ScaleExponent, build_methods
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import labelled_methods
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class SweepFigure:
    """`SweepFigure` describes one figure of the paper as a sweep."""

    name: str  #: Number of the figure in the paper.
    #: title, x_label: title and x axis label of our figure.
    title: str
    x_label: str
    distribution: str  #: A row of :data:`mpgemm.inputs.matrices.DISTRIBUTIONS`.
    points: tuple[int, ...]  #: Values on the x axis.
    shape: Shape  #: Shape (m, k, n), with -1 for the value on the x axis.
    sweeps_exponent: bool = False  #: Whether x is the offset exponent; otherwise the offset exponent is 0.

    def shape_at(self, x: int, shape: Shape | None = None) -> Shape:
        """Return (m, k, n) at a point of the x axis; `shape` replaces the sizes that the axis does not sweep."""
        swept = tuple(size == -1 for size in self.shape)
        base = self.shape if shape is None else shape
        m, k, n = (x if s else size for s, size in zip(swept, base, strict=True))
        return m, k, n


_SIZES, _EXPONENTS = (16, 32, 64, 128, 256, 512), tuple(range(-20, 18))
SWEEP_FIGURES: dict[str, SweepFigure] = {
    row.name: row
    for row in (
        SweepFigure(
            "8a", "uniform in [-2^e, 2^e]", "offset exponent e", "uniform_symmetric", _EXPONENTS, (256,) * 3, True
        ),
        SweepFigure(
            "8b", "uniform in [0, 2^e]", "offset exponent e", "uniform_nonnegative", _EXPONENTS, (256,) * 3, True
        ),
        SweepFigure("9a", "uniform in [-1, 1]", "m = n", "uniform_symmetric", _SIZES, (-1, 64 * 44, -1)),
        SweepFigure(
            "9b", "uniform in [-1, 1]", "k", "uniform_symmetric", (16, 64, 256, 1024, 4096, 16384), (128, -1, 128)
        ),
        SweepFigure("9c", "uniform in [-1, 1]", "m = k = n", "uniform_symmetric", (*_SIZES, 1024), (-1, -1, -1)),
    )
}

#: Methods in the paper's figs. 8 and 9 (names of :func:`mpgemm.experiments.methods.build_methods`).
SWEEP_METHODS = ("fp16", "fp32_numpy", "sgemm_cube")
SWEEP_OPTIONS = CubeOptions(scale_exponents=(0, 6, 12))


@dataclass(frozen=True)
class SweepResult:
    """`SweepResult` holds a :class:`~mpgemm.experiments.evaluate.Summary` for each point and method of a sweep."""

    figure: str
    distribution: str
    seeds: tuple[int, ...]
    shapes: tuple[Shape, ...]
    points: tuple[int, ...]
    summaries: tuple[tuple[Summary, ...], ...]

    def curve(self, method: str, metric: str = "relative_frobenius") -> list[float]:
        """Return the metric of one method over the points; raise ValueError if the method was not measured."""
        values = [getattr(s, metric) for members in self.summaries for s in members if s.method == method]
        if not values:
            raise ValueError(f"method {method!r} was not measured; measured: {', '.join(self.methods)}")
        return values

    @property
    def methods(self) -> dict[str, str]:
        """Return the labels of the measured methods by name."""
        return {s.method: s.full_label for s in self.summaries[0]} if self.summaries else {}

    to_dict = asdict

    def outcome(self, stem: str, metric: str = "relative_frobenius") -> Outcome:
        """Return the sweep as a table and a figure of one of :data:`mpgemm.exact.errors.RELATIVE_METRICS`.

        stem: stem of the files' names.
        """
        figure = SWEEP_FIGURES[self.figure]
        values = {label: self.curve(method, metric) for method, label in self.methods.items()}
        sizes = ["x".join(map(str, shape)) for shape in self.shapes]
        fixed = [
            f", {letter} = {size}"
            for letter, size, own in zip("mkn", self.shapes[0], figure.shape, strict=True)
            if own != -1 and not figure.sweeps_exponent
        ]
        seeds = f"{len(self.seeds)} seed{'s' * (len(self.seeds) > 1)}"
        title = f"Figure {self.figure}: {figure.title}{''.join(fixed)}, {seeds}"
        rows = [
            [x, size, *(curve[i] for curve in values.values())]
            for i, (x, size) in enumerate(zip(self.points, sizes, strict=True))
        ]
        table = Table(f"{title}, mean {RELATIVE_METRICS[metric]}", [figure.x_label, "m x k x n", *values], rows)
        if figure.sweeps_exponent:
            title += f", m x k x n = {sizes[0]}"
        lines = [Curve(label, self.points, curve, _line_style(label)) for label, curve in values.items()]
        panel = Panel(title, lines, figure.x_label, RELATIVE_METRICS[metric], log_x=not figure.sweeps_exponent)
        return Outcome(stem, [table], {"figure": self.to_dict()}, [panel], 1)


def _line_style(label: str) -> str:
    """Return a line style that distinguishes methods whose curves coincide."""
    styles = {"elementwise": "--", "H100": "--", "FP16": ":", "FP32": ":", "A100": "-."}
    return next((style for word, style in styles.items() if word in label), "-")


def run_sweep(
    name: str,
    methods: Sequence[GemmMethod],
    context: Context,
    shape: Shape | None = None,
    points: Sequence[int] | None = None,
) -> SweepResult:
    """Return the measurements of one of :data:`SWEEP_FIGURES` over the context's seeds.

    shape, points: values that replace those of the figure.
    """
    if name not in SWEEP_FIGURES:
        raise ValueError(f"unknown figure {name!r}; known: {', '.join(SWEEP_FIGURES)}")
    figure = SWEEP_FIGURES[name]
    points = figure.points if points is None else tuple(points)
    shapes = tuple(figure.shape_at(x, shape) for x in points)
    cases: list[Case] = []
    for x, sizes in zip(points, shapes, strict=True):
        exponent = {"exponent": x if figure.sweeps_exponent else 0}
        cases += generated_cases(figure.distribution, sizes, context.seeds, exponent)
    summaries = summarise(evaluate(cases, methods, context.journal, context.progress, context.executor))
    width = len(methods)
    grouped = tuple(tuple(summaries[i : i + width]) for i in range(0, len(summaries), width))
    return SweepResult(name, figure.distribution, tuple(context.seeds), shapes, points, grouped)


def figure(
    context: Context,
    name: str,
    *,
    methods: Sequence[str] = SWEEP_METHODS,
    engine: Sequence[str] = (),
    orders: Sequence[str] = SWEEP_OPTIONS.orders,
    scale_exponents: Sequence[ScaleExponent] = SWEEP_OPTIONS.scale_exponents,
    step_orders: Sequence[str] = SWEEP_OPTIONS.step_orders,
    block: tuple[int, int, int] | None = None,
    shape: Shape | None = None,
    metric: str = "relative_frobenius",
) -> Outcome:
    """Return one figure of the paper: SGEMM-cube, native FP16 and FP32, or the methods and options in the keywords."""
    options = CubeOptions(tuple(orders), tuple(scale_exponents), tuple(step_orders), block)
    compared = build_methods([*methods, *(f"engine:{name}" for name in engine)], options)
    return run_sweep(name, compared, context, shape).outcome(f"xue{name}", metric)


#: Methods and engines for figs. 8 and 9: SGEMM-cube on the Ascend cube as in the paper, all methods on two tensor cores.
CORRECTIONS = (
    ("sgemm_cube", None, "SGEMM-cube, Ascend cube"),
    ("sgemm_cube", "a100", "SGEMM-cube, A100"),
    ("sgemm_cube", "h100", "SGEMM-cube, H100"),
    ("markidis", "a100", "Markidis (RZ), A100"),
    ("markidis", "h100", "Markidis (RZ), H100"),
    ("markidis:rounding=rne", "a100", "Markidis (RN), A100"),
    ("ootomo", "a100", "Ootomo, A100"),
    ("ootomo", "h100", "Ootomo, H100"),
)
#: Points on the x axis, fewer than in :data:`SWEEP_FIGURES`.
CORRECTION_POINTS = {
    "8a": (-20, -16, -14, -13, -12, -10, -8, -6, -4, -2, 0, 4, 8, 12, 15, 16),
    "8b": (-20, -16, -14, -13, -12, -10, -8, -6, -4, -2, 0, 4, 8, 12, 15, 16),
    "9a": (16, 32, 64, 128, 256),
    "9b": (16, 64, 256, 1024, 4096, 16384),
    "9c": (16, 32, 64, 128, 256, 512),
}


def corrections(context: Context, name: str) -> Outcome:
    """Return one figure of Xue et al. with Markidis', Ootomo's and SGEMM-cube's methods, and NumPy's FP32 SGEMM."""
    points, base = CORRECTION_POINTS[name], None
    if context.quick:
        points, base = points[:4] if name[0] == "9" else points[::4], (16, 64, 16)
    methods = [*labelled_methods(CORRECTIONS), *build_methods(["fp32_numpy"])]
    return run_sweep(name, methods, context, base, points).outcome(f"xue{name}-corrections")
