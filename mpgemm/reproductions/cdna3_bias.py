"""Computes figure 2 of MMA-Sim: the bias of CDNA3, which rounds c and the dot product down, and of a unit that truncates."""

import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table

#: Instruction of section VI-C.
CDNA3 = tcm.get_instruction("cdna3", "v_mfma_f32_32x32x8_f16")
UNITS = {
    "rounding down (CDNA3)": CDNA3,
    "rounding to zero (hypothetical)": tcm.MatrixEngine(tcm.FusedDotRoundDownAdd(8, add_rounding="rz")),
}
#: Standard deviation of the elements of A and B; that of C is 1.
SCALE = 1000
SIZE, QUICK_SIZE = 256, 64
BINS = 60
#: Number of standard errors from 0 beyond which a mean counts as a bias; 6 in 100,000 normal means are as far.
FAR = 4


def run(context: Context) -> Outcome:
    """Return both units' deviations from the exact result on the paper's inputs, c from N(0, 1), a and b from 1000 N(0, 1)."""
    size = QUICK_SIZE if context.quick else SIZE
    parts = [_deviations(seed, size) for seed in context.seeds]
    found = {name: np.concatenate([part[name] for part in parts]) for name in UNITS}
    rows = [[name, x.size, *_moments(x)] for name, x in found.items()]
    headings = ["unit", "results", "mean", "standard error", "deviation", "share below 0"]
    low, high = np.quantile(np.concatenate(list(found.values())), (0.001, 0.999))
    edges = np.linspace(low, high, BINS + 1)
    centres = ((edges[1:] + edges[:-1]) / 2).tolist()
    curves = [
        Curve(name, centres, (np.histogram(x, edges)[0] / x.size).tolist(), style)
        for (name, x), style in zip(found.items(), ("-", "--"), strict=True)
    ]
    panel = Panel("D - exact", curves, "deviation", "share of the results", log_x=False, log_y=False)
    data = {
        "seeds": list(context.seeds),
        "size": size,
        "rows": [dict(zip(headings, row, strict=True)) for row in rows],
        "bins": {"centres": centres, **{curve.label: list(curve.y) for curve in curves}},
    }
    table = Table(f"Deviation from the exact result, {CDNA3.name}, {size} x 8 x {size}", headings, rows)
    return Outcome("xie2", [table], data, [panel], columns=1, remarks=[_remark(name, x) for name, x in found.items()])


def _deviations(seed: int, size: int) -> dict[str, np.ndarray]:
    """Return D - exact of each unit for one seed."""
    rng = np.random.default_rng(seed)
    a, b = ((SCALE * rng.standard_normal(shape)).astype(np.float16) for shape in ((size, CDNA3.k), (CDNA3.k, size)))
    c = rng.standard_normal((size, size)).astype(np.float32)
    exact = exact_gemm(a, b, c)
    return {name: np.asarray(exact.error_of(unit.gemm(a, b, c)), np.float64).ravel() for name, unit in UNITS.items()}


def _moments(x: np.ndarray) -> tuple[float, float, float, float]:
    """Return the mean, its standard error, the standard deviation, and the share of negative values."""
    deviation = float(x.std(ddof=1))
    return float(x.mean()), deviation / x.size**0.5, deviation, float((x < 0).mean())


def _remark(name: str, x: np.ndarray) -> str:
    mean, error, *_ = _moments(x)
    sure = abs(mean) > FAR * error
    said = f"biased {'below' if mean < 0 else 'above'} 0" if sure else "no bias beyond the spread"
    return f"{name}: mean {mean:.3g}, standard error {error:.2g}: {said}"
