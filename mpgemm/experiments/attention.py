"""Attention on exact cores: softmax(scale Q K^T) V in FlashAttention's order of KV tiles, and which stage its error comes from.

The stages of the computation are switched from exact to modelled one after the other, in the order of :data:`STAGES`; the
part of a stage is what its switch changes, so the parts add up to the whole error, element by element. Exact means FP64 with
products that are correctly rounded once.

Modelled, for each tile of keys (FlashAttention 2): S = Q K^T on the engine from zero; the running maximum m; P = 2^(S s - m s)
with s = RN32(scale log2 e), the exponent formed in FP64 and rounded to FP32; P rounded to the operands' format; the accumulator
times 2^(m_old s - m s) in FP32 seeds the engine's P V. The running row sum adds P in FP32, left to right; the end is the
accumulator times the FP32 reciprocal of the row sum, rounded to the operands' format. 2^x is the correctly rounded FP32
value: a GPU's MUFU.EX2 returns other bits, which are not modelled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.product import exact_gemm
from mpgemm.reporting.report import Table
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.machine.fp_state import default_fp_state

STAGES = ("inputs", "Q K^T", "exponential", "P rounded", "P V", "normalisation", "output")


@dataclass(frozen=True)
class AttentionErrors:
    """The error of one attention, taken apart."""

    engine: str
    tile: int  #: Keys of a tile.
    #: output, exact: float64, shape (queries, dimensions of V).
    output: np.ndarray
    exact: np.ndarray
    parts: dict[str, np.ndarray]  #: Stage: what it adds to the error; they sum to ``output - exact``.

    @property
    def total(self) -> float:
        """||output - exact||_F / ||exact||_F."""
        return _relative(self.output - self.exact, self.exact)

    def shares(self) -> dict[str, float]:
        """Stage: ||part||_F / ||exact||_F. Parts can cancel, so these need not add up to :attr:`total`."""
        return {stage: _relative(part, self.exact) for stage, part in self.parts.items()}

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {"engine": self.engine, "kv_tile": self.tile, "total": self.total, "stages": self.shares()}


def _relative(difference: np.ndarray, exact: np.ndarray) -> float:
    size = float(np.linalg.norm(exact))
    error = float(np.linalg.norm(difference))
    return 0.0 if error == 0 else error / size if size else float("inf")


@default_fp_state
def attention_errors(
    q, k, v, engine: Engine, *, tile: int | None = None, scale: float | None = None
) -> AttentionErrors:
    """Attention of one head on an engine, its error split over the stages; all keys in one tile and scale 1 / sqrt(d)
    by default."""
    values = [tcm.as_array(x, name).astype(np.float64) for x, name in ((q, "Q"), (k, "K"), (v, "V"))]
    _check(values, engine)
    keys = values[1].shape[0]
    tile = keys if tile is None else tile
    if tile < 1:
        raise ValueError(f"a tile holds {tile} keys, expected at least 1")
    scale = float(values[0].shape[1]) ** -0.5 if scale is None else scale
    levels = [_attend(values, engine, min(tile, keys), scale, level) for level in range(len(STAGES) + 1)]
    parts = {stage: after - before for stage, before, after in zip(STAGES, levels, levels[1:], strict=False)}
    return AttentionErrors(engine.label, min(tile, keys), levels[-1], levels[0], parts)


def _check(values: Sequence[np.ndarray], engine: Engine) -> None:
    q, k, v = values
    if any(x.ndim != 2 or 0 in x.shape for x in values) or q.shape[1] != k.shape[1] or k.shape[0] != v.shape[0]:
        raise ValueError(
            f"Q, K and V are {q.shape}, {k.shape} and {v.shape}, expected (queries, d), (keys, d) and (keys, dv), none empty"
        )
    for x, name in zip(values, ("Q", "K", "V"), strict=True):
        if not np.isfinite(x).all():
            raise ValueError(f"{name} holds values that are not finite: their attention has no error to take apart")
    a, b, c, d = engine.formats
    if a != b or c != d or d.name != "fp32" or engine.scale_format is not None or not isinstance(a, Format):
        raise ValueError(
            f"{engine.label} multiplies {a.name} x {b.name} to {d.name}; attention here takes engines with one floating-point "
            "format, FP32 sums and no block scales"
        )


def _exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(exact_gemm(a, b).rounded("fp64"))


def _rounded(x: np.ndarray, fmt: Format) -> np.ndarray:
    return np.asarray(tcm.round_to(x, fmt)).astype(np.float64)


def _attend(values, engine: Engine, tile: int, scale: float, level: int) -> np.ndarray:
    """The output with the first `level` stages modelled, the others exact."""
    fmt = get_float_format(engine.a_format)
    q, k, v = (_rounded(x, fmt) for x in values) if level > 0 else values
    largest = np.full((q.shape[0], 1), -np.inf)
    weight, total = np.zeros((q.shape[0], 1)), np.zeros((q.shape[0], v.shape[1]))
    for start in range(0, k.shape[0], tile):
        keys, value = k[start : start + tile], v[start : start + tile]
        scores = engine.gemm(q, keys.T).astype(np.float64) if level > 1 else _exact_product(q, keys.T)
        top = np.maximum(largest, scores.max(1, keepdims=True))
        p, shrink = _power(scores, top, scale, level > 2), _power(largest, top, scale, level > 2)
        taken = _rounded(p, fmt) if level > 3 else p
        if level > 4:
            seed = (total.astype(np.float32) * shrink.astype(np.float32)).astype(np.float32)
            total = engine.gemm(taken, value, seed).astype(np.float64)
        else:
            total = total * shrink + _exact_product(taken, value)
        if level > 5:
            row = np.cumsum(p.astype(np.float32), 1, dtype=np.float32)[:, -1:]
            weight = (weight.astype(np.float32) * shrink.astype(np.float32) + row).astype(np.float64)
        else:
            weight = weight * shrink + p.sum(1, keepdims=True)
        largest = top
    if level > 5:
        result = (total.astype(np.float32) * (np.float32(1) / weight.astype(np.float32))).astype(np.float64)
    else:
        result = total / weight
    return _rounded(result, fmt) if level > 6 else result


def _power(scores: np.ndarray, top: np.ndarray, scale: float, modelled: bool) -> np.ndarray:
    """e^(scale (scores - top)); modelled: through FP32 powers of two."""
    with np.errstate(under="ignore"):
        if not modelled:
            return np.exp(scale * (scores - top))
        factor = np.float64(np.float32(scale * math.log2(math.e)))
        shift = (top * factor).astype(np.float32).astype(np.float64)
        # FP32 values times an FP32 factor are exact in FP64.
        return (
            np.exp2((scores * factor - shift).astype(np.float32).astype(np.float64))
            .astype(np.float32)
            .astype(np.float64)
        )


def table(found: Sequence[AttentionErrors], shape: str) -> Table:
    """Errors of several engines and tiles; `shape` is for the title."""
    rows = [[each.engine, each.tile, each.total, *each.shares().values()] for each in found]
    return Table(f"attention, {shape}: ||part||_F / ||exact||_F", ["engine", "keys in a tile", "total", *STAGES], rows)
