"""Five kernels in four formats each, right and with every fault of the table, on data of several kinds."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

import tensorcore_models as tcm

TYPES = {
    "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
PLAIN, SCALED = tuple(TYPES), ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "nvfp4")
#: kernel: its formats.
KERNELS = {
    "per tensor": PLAIN,
    "rows and columns, bias": PLAIN,
    "split-k 4": PLAIN,
    "blocks of 128": PLAIN,
    "unit's blocks": SCALED,
}
FP8 = ("e4m3fn", "e5m2")


def draw(kind: str, shape: tuple[int, int], rng: np.random.Generator, weights: bool) -> np.ndarray:
    """Operands: Gaussian, heavy-tailed (Student's t of 3), positive activations with Gaussian weights, or all positive."""
    if kind == "heavy":
        return np.clip(rng.standard_t(3, shape), -200, 200)
    values = rng.standard_normal(shape)
    return np.abs(values) if kind == "positive" or (kind == "activations" and not weights) else values


@dataclass
class Run:
    """One call of a kernel: operands, scales, and what the test may say of it."""

    kernel: str
    fmt: str
    a: np.ndarray
    b: np.ndarray
    engine: Any
    out: type
    c: np.ndarray | None = None
    scale_a: Any = None
    scale_b: Any = None
    options: dict = field(default_factory=dict)

    @property
    def arguments(self) -> dict:
        """Of assert_gemm_close."""
        return {"engine": self.engine, "c": self.c, "scale_a": self.scale_a, "scale_b": self.scale_b, **self.options}

    def sums(self) -> np.ndarray:
        """FP32 results of the right kernel."""
        if self.scale_a is not None and self.kernel != "unit's blocks":
            return self.engine.gemm(self.a, self.b, self.c, scale_a=self.scale_a, scale_b=self.scale_b, **self.options)
        return self.engine.gemm(self.a, self.b, self.c, scale_a=self.scale_a, scale_b=self.scale_b, **self.options)

    def result(self) -> np.ndarray:
        """What the right kernel returns."""
        return self.sums().astype(self.out)


def make(kernel: str, fmt: str, shape: tuple[int, int, int], kind: str, seed: int) -> Run:
    """A kernel's call on fresh data."""
    rng = np.random.default_rng([seed, list(KERNELS).index(kernel), KERNELS[kernel].index(fmt)])
    m, k, n = shape
    a, b = draw(kind, (m, k), rng, False), draw(kind, (k, n), rng, True)
    if kernel == "unit's blocks":
        x, y = tcm.quantize_blocks(a, fmt, axis=1), tcm.quantize_blocks(b, fmt, axis=0)
        spelled, scale = (
            ("e2m1", "ue4m3" if fmt == "nvfp4" else "ue8m0")
            if "4" in fmt[-5:] and "8" not in fmt
            else (fmt[6:], "ue8m0")
        )
        size = 16 if fmt == "nvfp4" else 32
        rows = [
            r for r in tcm.list_instructions("b200")
            if r.scale_format == scale and r.block_size == size and r.a_format == r.b_format
            and r.a_format == {"e4m3": "e4m3fn"}.get(spelled, spelled)
        ]  # fmt: skip
        return Run(kernel, fmt, x.elements, y.elements, rows[0], np.float32, None, x.scales, y.scales)
    run = Run(kernel, fmt, a.astype(TYPES[fmt]), b.astype(TYPES[fmt]), engine_of(fmt), ml_dtypes.bfloat16)
    if kernel == "per tensor":
        return replace(run, scale_a=float(rng.uniform(0.01, 0.2)), scale_b=float(rng.uniform(1.5, 4)))
    if kernel == "rows and columns, bias":
        scales = rng.uniform(0.02, 0.5, (m, 1)), rng.uniform(0.5, 3, (1, n))
        c = rng.standard_normal((m, n)).astype(np.float32) * np.sqrt(k).astype(np.float32) * np.float32(0.3)
        options = {"promote_every": 128} if fmt in FP8 else {}
        return replace(run, scale_a=scales[0], scale_b=scales[1], c=c, options=options)
    if kernel == "split-k 4":
        return replace(run, out=np.float32, options={"k_order": "split_k:4"})
    blocks = -(-k // 128)
    return replace(
        run, scale_a=rng.uniform(0.02, 0.5, (m, blocks)), scale_b=rng.uniform(0.5, 3, (blocks, -(-n // 128)))
    )


def engine_of(fmt: str):
    """H100's unit of its GEMM kernels."""
    return tcm.default_instruction("h100", fmt, path="wgmma")


# -- faults --------------------------------------------------------------------------------------------------------------
Fault = Callable[[Run, np.random.Generator], np.ndarray | None]


def _block(run: Run, rng: np.random.Generator) -> tuple[int, int]:
    """(start, length) of a block of k, not the first."""
    length = 128 if run.kernel == "blocks of 128" else int(rng.choice([32, 64]))
    count = run.a.shape[1] // length
    return int(rng.integers(1, count)) * length, length


def _without(run: Run, taken: slice) -> Run:
    a = run.a.copy()
    a[:, taken] = 0
    return replace(run, a=a)


def _dropped(run, rng):
    start, length = _block(run, rng)
    return _without(run, slice(start, start + length)).result()


def _doubled(run, rng):
    start, length = _block(run, rng)
    a = np.zeros_like(run.a)
    a[:, start : start + length] = run.a[:, start : start + length]
    return (run.sums() + replace(run, a=a, c=None).sums()).astype(run.out)


def _scale_block(run: Run) -> int | None:
    return {"blocks of 128": 128, "unit's blocks": 16 if run.fmt == "nvfp4" else 32}.get(run.kernel)


def _copied(run: Run, start: int, length: int, both: bool) -> Run:
    """A (and B) of a block taken from the block before, with their scales where these change along k."""
    here, before = slice(start, start + length), slice(start - length, start)
    a, b = run.a.copy(), run.b.copy()
    a[:, here] = run.a[:, before]
    changed: dict[str, Any] = {"a": a}
    size = _scale_block(run)
    if size is not None:
        scale_a, scale_b = np.array(run.scale_a), np.array(run.scale_b)
        to, of = slice(start // size, (start + length) // size), slice((start - length) // size, start // size)
        scale_a[:, to] = run.scale_a[:, of]
        changed["scale_a"] = scale_a
    if both:
        b[here] = run.b[before]
        changed["b"] = b
        if size is not None:
            scale_b[to] = run.scale_b[of]
            changed["scale_b"] = scale_b
    return replace(run, **changed)


def _stale_block(run, rng):
    return _copied(run, *_block(run, rng), True).result()


def _stale_a(run, rng):
    return _copied(run, *_block(run, rng), False).result()


def _tail(run, rng):
    whole = run.a.shape[1] // 64 * 64
    return None if whole == run.a.shape[1] else _without(run, slice(whole, None)).result()


def _factor(rng) -> float:
    return float(rng.choice([0.25, 0.5, 2.0, 4.0]) * rng.uniform(0.9, 1.1))


def _scaled_row(run, rng):
    if run.kernel != "rows and columns, bias" or run.a.shape[0] < 4:
        return None
    scale = np.array(run.scale_a)
    scale[rng.integers(len(scale))] *= _factor(rng)
    return replace(run, scale_a=scale).result()


def _scaled_column(run, rng):
    if run.kernel != "rows and columns, bias":
        return None
    scale = np.array(run.scale_b)
    scale[:, rng.integers(scale.shape[1])] *= _factor(rng)
    return replace(run, scale_b=scale).result()


def _scaled_block(run, rng):
    if run.kernel != "blocks of 128":
        return None
    scale = np.array(run.scale_b)
    scale[rng.integers(scale.shape[0]), rng.integers(scale.shape[1])] *= _factor(rng)
    return replace(run, scale_b=scale).result()


def _next_block(run, rng):
    if run.kernel != "blocks of 128":
        return None
    scale = np.array(run.scale_a)
    scale[:, :-1] = run.scale_a[:, 1:]
    return replace(run, scale_a=scale).result()


def _dequantised(run: Run, power_a: float, power_b: float) -> np.ndarray:
    """The product with the unit's block scales raised to powers, in FP64."""
    size = 16 if run.fmt == "nvfp4" else 32
    fmt = tcm.get_format("ue4m3" if run.fmt == "nvfp4" else "ue8m0")
    k = run.a.shape[1]
    a = run.a.astype(np.float64) * np.repeat(tcm.decode(run.scale_a, fmt) ** power_a, size, 1)[:, :k]
    b = run.b.astype(np.float64) * np.repeat(tcm.decode(run.scale_b, fmt) ** power_b, size, 0)[:k]
    with np.errstate(all="ignore"):
        return (a @ b).astype(run.out)


def _power_of_a(power: float):
    def fault(run, rng):
        if run.scale_a is None:
            return None
        if run.kernel == "unit's blocks":
            return None if (np.asarray(run.scale_a) == 0).any() else _dequantised(run, power, 1.0)
        return replace(run, scale_a=np.asarray(run.scale_a) ** power).result()

    return fault


def _row_twice(run, rng):
    if run.kernel not in ("rows and columns, bias", "blocks of 128") or run.a.shape[0] < 4:
        return None
    scale = np.array(run.scale_a)
    scale[rng.integers(len(scale))] **= 2
    return replace(run, scale_a=scale).result()


def _without_b(run, rng):
    if run.scale_b is None:
        return None
    if run.kernel == "unit's blocks":
        return _dequantised(run, 1.0, 0.0)
    return replace(run, scale_b=np.ones_like(run.scale_b)).result()


def _narrow(dtype):
    def fault(run, rng):
        if run.kernel == "unit's blocks":
            return None
        a, b = run.a.astype(np.float64), run.b.astype(np.float64)
        k = a.shape[1]
        block = 128 if run.kernel == "blocks of 128" else k
        total = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for start in range(0, k, block):
            part = np.zeros(total.shape, dtype)
            for at in range(start, min(start + block, k), 16):
                part = (part.astype(np.float64) + a[:, at : at + 16] @ b[at : at + 16]).astype(dtype)
            total += part.astype(np.float32) * _factors(run, start // 128)
        return (total if run.c is None else total + run.c).astype(run.out)

    return fault


def _factors(run: Run, block: int) -> np.ndarray | np.float32:
    if run.scale_a is None:
        return np.float32(1)
    if run.kernel != "blocks of 128":
        return (np.asarray(run.scale_a, np.float32) * np.asarray(run.scale_b, np.float32)).astype(np.float32)
    columns = np.repeat(run.scale_b[block], 128)[: run.b.shape[1]]
    return (run.scale_a[:, block, None] * columns).astype(np.float32)


def _no_promotion(run, rng):
    return replace(run, options={}).result() if "promote_every" in run.options else None


def _read_as(names):
    def fault(run, rng):
        if run.fmt not in names:
            return None
        a, b = (np.ascontiguousarray(x).view(names[run.fmt]).astype(np.float64) for x in (run.a, run.b))
        k = a.shape[1]
        block = 128 if run.kernel == "blocks of 128" else k
        total = np.zeros((a.shape[0], b.shape[1]))
        with np.errstate(all="ignore"):
            for start in range(0, k, block):
                total += (a[:, start : start + block] @ b[start : start + block]) * _factors(run, start // 128)
            return (total if run.c is None else total + run.c).astype(run.out)

    return fault


MISREAD = {
    "e4m3fn": ml_dtypes.float8_e5m2,
    "e5m2": ml_dtypes.float8_e4m3fn,
    "fp16": ml_dtypes.bfloat16,
    "bf16": np.float16,
}
FNUZ = {"e4m3fn": ml_dtypes.float8_e4m3fnuz, "e5m2": ml_dtypes.float8_e5m2fnuz}
NARROWER = {"fp16": ml_dtypes.float8_e4m3fn, "bf16": ml_dtypes.float8_e5m2, "e4m3fn": ml_dtypes.float8_e5m2}


def _rounded(run, rng):
    if run.fmt not in NARROWER:
        return None
    a, b = (x.astype(NARROWER[run.fmt]).astype(x.dtype) for x in (run.a, run.b))
    if not all(np.isfinite(x.astype(np.float32)).all() for x in (a, b)):
        return None
    return replace(run, a=a, b=b).result()


def _transposed(run, rng):
    d = run.result()
    if min(d.shape) < 32:
        return None
    d[16:32, 16:32] = d[16:32, 16:32].T.copy()
    return d


def _permuted(run, rng):
    d = run.result()
    if min(d.shape) < 32:
        return None
    d[:16], d[16:32] = d[16:32].copy(), d[:16].copy()
    return d


def _stale_sums(run, rng):
    d = run.sums()
    if min(d.shape) < 48:
        return None
    out = d.copy()
    out[32:48, 16:32] += d[16:32, 16:32]
    return out.astype(run.out)


def _stale_c(run, rng):
    return (run.sums() * 2).astype(run.out)


def _bias(times: float):
    def fault(run, rng):
        return None if run.c is None else (run.sums() + np.float32(times) * run.c).astype(run.out)

    return fault


def _unwritten(run, rng):
    d = run.result()
    if d.shape[0] < 32:
        return None
    d[16:32] = 0
    return d


def _saturated(run, rng):
    """The caller's operands have a NaN; the kernel clamps."""
    if run.fmt not in TYPES:
        return None
    run.a[0, 3] = np.nan
    run.out = ml_dtypes.float8_e4m3fn
    run.scale_a = 1e-3 if run.kernel == "per tensor" else run.scale_a
    with np.errstate(all="ignore"):
        values = np.clip(run.sums(), -448, 448)
        d = values.astype(run.out)
    d[0] = 448
    return d


MAKERS: dict[str, Fault] = {
    "dropped block": _dropped, "doubled block": _doubled, "stale block": _stale_block, "stale block of A": _stale_a,
    "missing tail": _tail, "wrong scale of a row": _scaled_row, "wrong scale of a column": _scaled_column,
    "wrong scale of a block": _scaled_block, "scale of the next block": _next_block, "scale applied twice": _power_of_a(2.0),
    "scale of one row applied twice": _row_twice, "scale inverted": _power_of_a(-1.0), "scale left out": _without_b,
    "FP16 accumulation": _narrow(np.float16), "BF16 accumulation": _narrow(ml_dtypes.bfloat16),
    "missing promotion": _no_promotion, "operand format mistaken": _read_as(MISREAD), "FNUZ mistaken": _read_as(FNUZ),
    "operands rounded": _rounded, "transposed tile": _transposed, "permuted tile": _permuted,
    "stale accumulator": _stale_sums, "stale C": _stale_c, "bias added twice": _bias(1.0), "bias left out": _bias(-1.0),
    "tile never written": _unwritten, "saturated instead of NaN": _saturated,
}  # fmt: skip
