"""Computes attention, softmax(scale Q K^T) V in FlashAttention's order of KV tiles, on a modelled engine and divides its error.

The stages of the computation are switched from exact to modelled one after the other, in the order of :data:`STAGES`. The part
of a stage is the change by its switch, so the parts add up to the whole error, element by element. Exact means FP64 with
products that are correctly rounded once.

The modelled computation (FlashAttention 2) takes these steps for each tile of keys:

* S = Q K^T on the engine, from zero, and the running maximum m;
* P = 2^(S s - m s) with s = RN32(scale log2 e) and m s rounded to FP32; P is rounded to the operands' format;
* the accumulator times 2^(m_old s - m s), in FP32, seeds the engine's product P V;
* the running row sum adds P in FP32, in the order of one of :data:`KERNELS`.

The output is the accumulator times the FP32 reciprocal of the row sum, rounded to the operands' format. 2^x and the reciprocal
are those of the special-function unit of an architecture (`functions`), or correctly rounded FP32 values if none is named. With
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
    """Return the row sums, which add one value after the other."""
    return np.cumsum(p, 1, dtype=np.float32)[:, -1:]


def _by_quads(p: np.ndarray) -> np.ndarray:
    """Return the row sums of the four threads that hold a row of a matrix instruction's result.

    Each thread holds two neighbouring columns of every eight and adds its values as a balanced tree; then the threads add their
    sums across distances 2 and 1.
    """
    groups = 1 << (max(-(-p.shape[1] // 8), 1) - 1).bit_length()
    padded = np.zeros((p.shape[0], 8 * groups), np.float32)
    padded[:, : p.shape[1]] = p
    own = padded.reshape(-1, groups, 4, 2).swapaxes(1, 2).reshape(p.shape[0], 4, 2 * groups)
    while own.shape[-1] > 1:
        own = own[..., ::2] + own[..., 1::2]
    return butterfly(own[..., 0], (2, 1))[:, None]


class AttentionKernel(NamedTuple):
    """`AttentionKernel` says how a kernel sums and rounds where kernels differ."""

    row_sum: Callable[[np.ndarray], np.ndarray]  #: Function that gives the row sums of a tile of P.
    fused_sum: bool  #: Whether one fused multiply-add rescales the running sum and adds the tile's.
    fused_exponent: bool  #: Whether S s - m s is rounded once, without rounding S s first.


#: A plain order of operations, and the order of Triton's kernel with masked scores (read in its PTX, recorded on an H100).
KERNELS = {
    "plain": AttentionKernel(_from_the_left, fused_sum=False, fused_exponent=True),
    "triton": AttentionKernel(_by_quads, fused_sum=True, fused_exponent=False),
}
STAGES = ("inputs", "Q K^T", "exponential", "P rounded", "P V", "normalisation", "output")


@dataclass(frozen=True)
class AttentionErrors:
    """`AttentionErrors` holds the error of one attention, divided by stage."""

    engine: str
    tile: int  #: Number of keys in a tile.
    #: output, exact: results in float64, shape (queries, dimensions of V).
    output: np.ndarray
    exact: np.ndarray
    parts: dict[str, np.ndarray]  #: Part of the error by stage; the parts sum to ``output - exact``.

    @property
    def total(self) -> float:
        """Return ||output - exact||_F / ||exact||_F."""
        return _relative(self.output - self.exact, self.exact)

    def shares(self) -> dict[str, float]:
        """Return ||part||_F / ||exact||_F by stage; parts can cancel, so shares need not add up to :attr:`total`."""
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
    """Return the error of one attention head on an engine, divided by stage.

    Parameters
    ----------
    q, k, v : array_like, shapes (queries, d), (keys, d), (keys, dv)
        The operands.
    engine : Engine
        The engine of the products; one floating-point operand format, FP32 sums, no block scales.
    tile : int, optional
        Number of keys in a tile, by default all.
    scale : float, optional
        Factor of the scores, by default 1 / sqrt(d).
    causal : bool
        Whether a query sees only its own key and earlier keys; the last query sees all keys.
    out_format : str, optional
        Format of the output, by default that of the operands.
    functions : str, optional
        NVIDIA architecture or device whose ex2.approx.ftz.f32 and rcp.approx.ftz.f32 are computed, bit for bit; by default
        both functions are rounded to nearest.
    kernel : str
        A name of :data:`KERNELS`, which differ in the order of row sums and in the roundings of exponents.

    Raises
    ------
    ValueError
        If shapes do not fit, values are not finite, or the engine, the tile or the kernel does not suit.
    """
    values = [source_array(x, name).astype(np.float64) for x, name in ((q, "Q"), (k, "K"), (v, "V"))]
    _check(values, engine)
    keys = values[1].shape[0]
    tile = keys if tile is None else tile
    if tile < 1:
        raise ValueError(f"tile is {tile}, expected at least 1 key")
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
            raise ValueError(f"{name} holds infinities or NaN, expected finite values")
    a, b, c, d = engine.formats
    if a != b or c != d or d.name != "fp32" or engine.scale_format is not None or not isinstance(a, Format):
        raise ValueError(
            f"{engine.label} multiplies {a.name} x {b.name} to {d.name}, expected an engine with one floating-point "
            f"operand format, FP32 sums and no block scales"
        )


def _exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(exact_gemm(a, b).rounded("fp64"))


def _rounded(x: np.ndarray, fmt: Format) -> np.ndarray:
    return np.asarray(tcm.round_to(x, fmt)).astype(np.float64)


@dataclass(frozen=True)
class AttentionProgram:
    """`AttentionProgram` says how an attention is computed."""

    engine: Engine
    tile: int  #: Number of keys in a tile.
    scale: float
    out: Format
    p_scale: float = 1.0  #: Power of two by which P is multiplied before it is rounded to the operands' format.
    softcap: float | None = None  #: Limit of scores: a scaled score x becomes softcap tanh(x / softcap).
    sink: float | None = None  #: A score without a key, which counts in the row sum.
    functions: str | None = None  #: Architecture whose special functions are computed; None rounds them to nearest.
    kernel: AttentionKernel = KERNELS["plain"]

    def power(self, x: np.ndarray) -> np.ndarray:
        """Return 2^x of FP32 numbers."""
        if self.functions is None:
            return np.exp2(x.astype(np.float64)).astype(np.float32)
        return tcm.get_function(self.functions, "ex2.approx.ftz.f32").values(x)

    def row_sum(self, sums: np.ndarray, shrink: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the running row sums, shape (queries, 1), after adding a tile of P, all in FP32."""
        added = self.kernel.row_sum(p)
        return fused_multiply_add(sums, shrink, added) if self.kernel.fused_sum else sums * shrink + added

    def reciprocal(self, x: np.ndarray) -> np.ndarray:
        """Return 1 / x of FP32 numbers."""
        return (
            np.float32(1) / x
            if self.functions is None
            else tcm.get_function(self.functions, "rcp.approx.ftz.f32").values(x)
        )


def visible(queries: int, keys: int, causal: bool, window: tuple[int, int] | None = None) -> np.ndarray:
    """Return the mask of the keys that each query sees; query i is at the place of key i + keys - queries.

    window: numbers of keys before and after the query's place that it sees, -1 for all.
    """
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
    """Return e^(scale (scores - top)), 0 for -infinity.

    power: function that computes FP32 powers of two; None computes in FP64.
    fused: whether exponents are rounded once; otherwise the product is rounded before the difference.
    """
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
    """Return a table of the errors of several engines and tiles; `shape` is part of the title."""
    rows = [[each.engine, each.tile, each.total, *each.shares().values()] for each in found]
    return Table(f"attention, {shape}: ||part||_F / ||exact||_F", ["engine", "keys in a tile", "total", *STAGES], rows)
