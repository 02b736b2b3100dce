"""Attention on exact cores: softmax(scale Q K^T) V in FlashAttention's order of KV tiles, and which stage its error comes from.

The stages of the computation are switched from exact to modelled one after the other, in the order of :data:`STAGES`; the
part of a stage is what its switch changes, so the parts add up to the whole error, element by element. Exact means FP64 with
products that are correctly rounded once.

Modelled, for each tile of keys (FlashAttention 2): S = Q K^T on the engine from zero; the running maximum m; P = 2^(S s - m s)
with s = RN32(scale log2 e) and m s rounded to FP32; P rounded to the operands' format; the accumulator times
2^(m_old s - m s) in FP32 seeds the engine's P V. The running row sum adds P in FP32, in the order of one of :data:`KERNELS`;
the end is the accumulator times the FP32 reciprocal of the row sum, rounded to the operands' format. 2^x and the reciprocal
are those of an architecture's special-function unit where one is named (`functions`), else correctly rounded FP32 values. With
the H100's unit and functions and `kernel` "triton" these are the bits of Triton's kernel there, where a warp holds whole rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.watching import held_product
from mpgemm.exact.product import exact_gemm
from mpgemm.reporting.report import Table
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaled import fused_multiply_add
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.formats.rounding import source_array
from tensorcore_models.libraries.fp32_lanes import butterfly
from tensorcore_models.machine.fp_state import default_fp_state


def _from_the_left(p: np.ndarray) -> np.ndarray:
    """Return the row sums, one value after the other."""
    return np.cumsum(p, 1, dtype=np.float32)[:, -1:]


def _by_quads(p: np.ndarray) -> np.ndarray:
    """Return the row sums of the four threads that hold a row of a matrix instruction's result, two neighbours of each eight
    columns a thread: each adds its values as a balanced tree, and the threads add theirs across distances 2 and 1."""
    groups = 1 << (max(-(-p.shape[1] // 8), 1) - 1).bit_length()
    padded = np.zeros((p.shape[0], 8 * groups), np.float32)
    padded[:, : p.shape[1]] = p
    own = padded.reshape(-1, groups, 4, 2).swapaxes(1, 2).reshape(p.shape[0], 4, 2 * groups)
    while own.shape[-1] > 1:
        own = own[..., ::2] + own[..., 1::2]
    return butterfly(own[..., 0], (2, 1))[:, None]


class AttentionKernel(NamedTuple):
    """What kernels do in different ways with the same tiles."""

    row_sum: Callable[[np.ndarray], np.ndarray]  #: Of a tile of P.
    fused_sum: bool  #: Whether the running sum is rescaled and added to by one multiply-add.
    fused_exponent: bool  #: Whether a score times s, less the maximum's, is rounded once.


#: A plain order of operations, and that of Triton's kernel with masked scores (read in its PTX, recorded on an H100).
KERNELS = {
    "plain": AttentionKernel(_from_the_left, fused_sum=False, fused_exponent=True),
    "triton": AttentionKernel(_by_quads, fused_sum=True, fused_exponent=False),
}
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
        """Return the content as a dict of JSON-compatible values."""
        return {"engine": self.engine, "kv_tile": self.tile, "total": self.total, "stages": self.shares()}


def _relative(difference: np.ndarray, exact: np.ndarray) -> float:
    size = float(np.linalg.norm(exact))
    error = float(np.linalg.norm(difference))
    return 0.0 if error == 0 else error / size if size else float("inf")


@default_fp_state
def attention_errors(
    q,
    k,
    v,
    engine: Engine,
    *,
    tile: int | None = None,
    scale: float | None = None,
    causal: bool = False,
    out_format: str | None = None,
    functions: str | None = None,
    kernel: str = "plain",
) -> AttentionErrors:
    """Attention of one head on an engine, its error split over the stages.

    tile : keys of a tile; all by default.
    scale : 1 / sqrt(d) by default.
    causal : the last query sees all keys, each one before it one key less.
    out_format : the operands' format by default.
    kernel : one of :data:`KERNELS`, which differ in the order of row sums and in how often exponents are rounded.
    functions : architecture or device of NVIDIA whose ex2.approx.ftz.f32 and rcp.approx.ftz.f32 are computed, bit for
    bit; by default both are rounded to nearest.
    """
    values = [source_array(x, name).astype(np.float64) for x, name in ((q, "Q"), (k, "K"), (v, "V"))]
    _check(values, engine)
    keys = values[1].shape[0]
    tile = keys if tile is None else tile
    if tile < 1:
        raise ValueError(f"a tile holds {tile} keys, expected at least 1")
    scale = float(values[0].shape[1]) ** -0.5 if scale is None else scale
    if kernel not in KERNELS:
        raise ValueError(f"unknown attention kernel {kernel!r}; known: {', '.join(KERNELS)}")
    mask = visible(values[0].shape[0], keys, causal)
    out = get_float_format(engine.a_format if out_format is None else out_format)
    program = AttentionProgram(engine, min(tile, keys), scale, out, functions=functions, kernel=KERNELS[kernel])
    levels = [attend(values, program, level, mask) for level in range(len(STAGES) + 1)]
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
            raise ValueError(f"{name} holds values that are not finite: the error of their attention is not defined")
    a, b, c, d = engine.formats
    if a != b or c != d or d.name != "fp32" or engine.scale_format is not None or not isinstance(a, Format):
        raise ValueError(
            f"{engine.label} multiplies {a.name} x {b.name} to {d.name}; attention needs an engine with one "
            f"floating-point format, FP32 sums and no block scales"
        )


def _exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(exact_gemm(a, b).rounded("fp64"))


def _rounded(x: np.ndarray, fmt: Format) -> np.ndarray:
    return np.asarray(tcm.round_to(x, fmt)).astype(np.float64)


@dataclass(frozen=True)
class AttentionProgram:
    """How an attention is computed."""

    engine: Engine
    tile: int  #: Keys of a tile.
    scale: float
    out: Format
    p_scale: float = 1.0  #: What P is multiplied with before it is rounded to the operands' format, a power of two.
    softcap: float | None = None  #: Scaled scores x become softcap tanh(x / softcap).
    sink: float | None = None  #: A score without a key, which counts in the row sum.
    functions: str | None = None  #: Whose special functions are computed; None: rounded to nearest.
    kernel: AttentionKernel = KERNELS["plain"]

    def power(self, x: np.ndarray) -> np.ndarray:
        """2^x of FP32 numbers."""
        if self.functions is None:
            return np.exp2(x.astype(np.float64)).astype(np.float32)
        return tcm.get_function(self.functions, "ex2.approx.ftz.f32").values(x)

    def row_sum(self, sums: np.ndarray, shrink: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the running row sums (queries, 1) with a tile of P, all FP32."""
        added = self.kernel.row_sum(p)
        return fused_multiply_add(sums, shrink, added) if self.kernel.fused_sum else sums * shrink + added

    def reciprocal(self, x: np.ndarray) -> np.ndarray:
        """1 / x of FP32 numbers."""
        return (
            np.float32(1) / x
            if self.functions is None
            else tcm.get_function(self.functions, "rcp.approx.ftz.f32").values(x)
        )


def visible(queries: int, keys: int, causal: bool, window: tuple[int, int] | None = None) -> np.ndarray:
    """Return which keys each query sees: query i stands at key i + keys - queries. window: keys before and behind it, -1 for
    all."""
    place = np.arange(queries)[:, None] + keys - queries
    at, left, right = np.arange(keys)[None], *((-1, -1) if window is None else window)
    right = 0 if causal and right < 0 else min(right, 0) if causal else right
    return (
        (left < 0) | (at >= place - left) if right < 0 else ((left < 0) | (at >= place - left)) & (at <= place + right)
    )


def attend(values, program: AttentionProgram, level: int, mask: np.ndarray) -> np.ndarray:
    """Return the output with the first `level` stages modelled, the others exact; 0 for a query that sees no key.

    Raises OutsideBound if a product on the engine is outside of its certified bound.
    """
    engine, scale = program.engine, program.scale
    fmt = get_float_format(engine.a_format)
    q, k, v = (_rounded(x, fmt) for x in values) if level > 0 else values
    largest = np.full((q.shape[0], 1), -np.inf if program.sink is None else program.sink / scale)
    weight, total = np.full((q.shape[0], 1), float(program.sink is not None)), np.zeros((q.shape[0], v.shape[1]))
    for start in range(0, k.shape[0], program.tile):
        taken = slice(start, start + program.tile)
        scores = held_product(engine, q, k[taken].T).astype(np.float64) if level > 1 else _exact_product(q, k[taken].T)
        if program.softcap is not None:
            scores = program.softcap / scale * np.tanh(scale / program.softcap * scores)
        scores = np.where(np.broadcast_to(mask[:, taken], scores.shape), scores, -np.inf)
        top = np.maximum(largest, scores.max(1, keepdims=True))
        power = program.power if level > 2 else None
        fused = program.kernel.fused_exponent
        p, shrink = _power(scores, top, scale, power, fused), _power(largest, top, scale, power, fused)
        rounded = _rounded(p * program.p_scale, fmt) / program.p_scale if level > 3 else p
        if level > 4:
            seed = (total * program.p_scale).astype(np.float32) * shrink.astype(np.float32)
            total = held_product(engine, rounded * program.p_scale, v[taken], seed).astype(np.float64) / program.p_scale
        else:
            total = total * shrink + _exact_product(rounded, v[taken])
        if level > 5:
            narrow = (x.astype(np.float32) for x in (weight, shrink, p))
            weight = program.row_sum(*narrow).astype(np.float64)
        else:
            weight = weight * shrink + p.sum(1, keepdims=True)
        largest = top
    weight = np.where(weight > 0, weight, 1.0)
    if level > 5:
        result = (total.astype(np.float32) * program.reciprocal(weight.astype(np.float32))).astype(np.float64)
    else:
        result = total / weight
    return _rounded(result, program.out) if level > 6 else result


def _power(scores: np.ndarray, top: np.ndarray, scale: float, power: Callable | None, fused: bool) -> np.ndarray:
    """Return e^(scale (scores - top)), 0 for -infinity; through FP32 powers of two where `power` computes them, of exponents
    that are rounded once (`fused`) or after their product, too."""  # fmt: skip
    seen, top = np.isfinite(scores), np.where(np.isfinite(top), top, 0.0)
    scores = np.where(seen, scores, 0.0)
    with np.errstate(under="ignore", over="ignore"):
        if power is None:
            return np.where(seen, np.exp(scale * (scores - top)), 0.0)
        factor = np.float64(np.float32(scale * math.log2(math.e)))
        shift = (top * factor).astype(np.float32).astype(np.float64)
        scaled = scores * factor  # FP32 values times an FP32 factor are exact in FP64
        scaled = scaled if fused else scaled.astype(np.float32).astype(np.float64)
        found = power((scaled - shift).astype(np.float32))
        return np.where(seen, found.astype(np.float64), 0.0)


def table(found: Sequence[AttentionErrors], shape: str) -> Table:
    """Return errors of several engines and tiles; `shape` is for the title."""
    rows = [[each.engine, each.tile, each.total, *each.shares().values()] for each in found]
    return Table(f"attention, {shape}: ||part||_F / ||exact||_F", ["engine", "keys in a tile", "total", *STAGES], rows)
