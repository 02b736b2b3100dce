"""Wrong kernels with parameters drawn at random: what they return, what may be said of it, and where they are wrong.

Written from what kernels do (loads, swizzles, loops over k, scales, epilogues), not from what the diagnosis looks for; some are
of no kind that it knows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tensorcore_models as tcm

TYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn}
#: (device, path, operands).
UNITS = (
    ("h100", "wgmma", "fp16"), ("h100", "mma", "fp16"), ("a100", None, "bf16"), ("h100", "wgmma", "e4m3fn"),
    ("b200", "tcgen05", "e4m3fn"), ("mi300x", None, "fp16"), ("b200", "tcgen05", "bf16"),
)  # fmt: skip
KINDS = ("gaussian", "heavy", "relu", "positive", "outliers")


@dataclass
class Call:
    """A right kernel's call."""

    engine: Any
    fmt: str
    a: np.ndarray
    b: np.ndarray
    out: type
    options: dict = field(default_factory=dict)  #: Of the test and of the kernel.
    scales: dict = field(default_factory=dict)
    bias: np.ndarray | None = None
    epilogue: str | None = None

    @property
    def arguments(self) -> dict:
        """Of assert_gemm_close."""
        more = {} if self.epilogue is None else {"epilogue": self.epilogue}
        return {"engine": self.engine, "c": self.bias, **self.options, **self.scales, **more}

    def sums(self) -> np.ndarray:
        """Before the bias, in float64 of FP32 values."""
        return self.engine.gemm(self.a, self.b, **self.options, **self.scales).astype(np.float64)

    def finish(self, sums: np.ndarray) -> np.ndarray:
        """Bias, activation, rounding."""
        x = sums.astype(np.float32)
        x = x if self.bias is None else (x + self.bias).astype(np.float32)
        return activated(x, self.epilogue).astype(self.out)


def activated(x: np.ndarray, name: str | None) -> np.ndarray:
    x = x.astype(np.float32)
    with np.errstate(over="ignore"):
        if name == "relu":
            return np.maximum(x, np.float32(0))
        if name == "silu":
            return (x / (np.float32(1) + np.exp(-x))).astype(np.float32)
        if name == "gelu_tanh":
            inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
            return (np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))).astype(np.float32)
    return x


def draw(kind: str, shape: tuple[int, int], rng: np.random.Generator, weights: bool) -> np.ndarray:
    x = rng.standard_normal(shape)
    if kind == "heavy":
        x = np.clip(rng.standard_t(3, shape), -200, 200)
    if kind == "positive" or (kind == "relu" and not weights):
        x = np.abs(x) if kind == "positive" else np.maximum(x, 0)
    if kind == "outliers" and not weights:
        x[:, rng.integers(0, shape[1], max(shape[1] // 50, 1))] *= 20
    return x


def call(seed: int) -> Call:
    """A right kernel's call of random sizes, formats, data, scales and epilogue."""
    rng = np.random.default_rng([seed, 4501])
    device, path, fmt = UNITS[rng.integers(len(UNITS))]
    m, n = (int(rng.integers(24, 200)) for _ in range(2))
    k = int(rng.choice([128, 256, 384, 512, 768, 1024])) + (int(rng.integers(0, 64)) if rng.random() < 0.4 else 0)
    kind = KINDS[rng.integers(len(KINDS))]
    a, b = draw(kind, (m, k), rng, False).astype(TYPES[fmt]), draw(kind, (k, n), rng, True).astype(TYPES[fmt])
    engine = tcm.default_instruction(device, fmt, path=path)
    out = [np.float32, ml_dtypes.bfloat16, np.float16][rng.integers(3)]
    made = Call(engine, fmt, a, b, np.float32 if kind in ("heavy", "outliers") and out is np.float16 else out)
    if fmt == "e4m3fn":
        rule = rng.integers(4)
        if rule == 1:
            made.scales = {"scale_a": rng.uniform(0.02, 0.5, (m, 1)), "scale_b": rng.uniform(0.5, 3, (1, n))}
        elif rule == 2:
            blocks = -(-k // 128)
            made.scales = {
                "scale_a": rng.uniform(0.02, 0.5, (m, blocks)), "scale_b": rng.uniform(0.5, 3, (blocks, -(-n // 128)))
            }  # fmt: skip
        if rule != 2 and device == "h100":
            made.options = {"promote_every": 128}
    elif rng.random() < 0.2:
        made.options = {"k_order": "split_k:4"}
    if rng.random() < 0.35:
        made.bias = (rng.standard_normal(n) * np.sqrt(k) * (0.3 if not made.scales else 0.1)).astype(np.float32)
    if rng.random() < 0.35 and not made.scales:
        made.epilogue = ["relu", "silu", "gelu_tanh"][rng.integers(3)]
    return made


class Wild(NamedTuple):
    """A wrong result."""

    out: np.ndarray
    says: str  #: Regular expression of what may be said; "" if nothing may be.
    mask: np.ndarray | None  #: Where it is wrong, None where it has no place.


Fault = Callable[[Call, np.random.Generator], Wild | None]


def _region(shape, rng, tile=None) -> np.ndarray:
    """All of the result, a block of rows or columns, or a tile."""
    m, n = shape
    mask = np.zeros(shape, bool)
    size = int(tile or rng.choice([16, 32, 64]))
    kind = rng.integers(4)
    i, j = (int(rng.integers(0, max(x // size, 1))) * size for x in (m, n))
    rows = slice(i, i + size) if kind in (1, 3) else slice(None)
    columns = slice(j, j + size) if kind in (2, 3) else slice(None)
    mask[rows, columns] = True
    return mask


def _with(c: Call, a=None, b=None, **scales) -> np.ndarray:
    return replace(c, a=c.a if a is None else a, b=c.b if b is None else b, scales={**c.scales, **scales}).sums()


def _placed(c: Call, wrong: np.ndarray, mask: np.ndarray, says: str) -> Wild:
    sums = np.where(mask, wrong, c.sums())
    return Wild(c.finish(sums), says, None if mask.all() else mask)


# -- results that are written wrongly ------------------------------------------------------------------------------------
def rows_shifted(c, rng):
    d, (m, n) = c.finish(c.sums()), (len(c.a), c.b.shape[1])
    size, by = int(rng.choice([16, 32])), int(rng.integers(1, 5))
    start = int(rng.integers(0, max(m // size - 1, 1))) * size
    mask = np.zeros((m, n), bool)
    mask[start : start + size] = True
    out = d.copy()
    out[start : start + size] = d[np.minimum(np.arange(start, min(start + size, m)) + by, m - 1)]
    return Wild(out, r"rows? (are shifted|hold other|are repeated)|stale|tiles|result's (row|column)s hold these", mask)


def blocks_of_rows_exchanged(c, rng):
    d, m = c.finish(c.sums()), len(c.a)
    size = int(rng.choice([8, 16, 32]))
    if m < 2 * size:
        return None
    x, y = (int(v) * size for v in rng.choice(m // size, 2, replace=False))
    out, mask = d.copy(), np.zeros(d.shape, bool)
    out[x : x + size], out[y : y + size] = d[y : y + size], d[x : x + size]
    mask[x : x + size] = mask[y : y + size] = True
    return Wild(out, r"exchanged|rows hold other rows|rows are shifted|tiles|result's (row|column)s hold these", mask)


def columns_exchanged(c, rng):
    d, n = c.finish(c.sums()), c.b.shape[1]
    size = int(rng.choice([8, 16, 32]))
    if n < 2 * size:
        return None
    x, y = (int(v) * size for v in rng.choice(n // size, 2, replace=False))
    out, mask = d.copy(), np.zeros(d.shape, bool)
    out[:, x : x + size], out[:, y : y + size] = d[:, y : y + size], d[:, x : x + size]
    mask[:, x : x + size] = mask[:, y : y + size] = True
    return Wild(out, r"exchanged|columns hold other|columns are shifted|tiles|result's (row|column)s hold these", mask)


def _tile(c, rng, sizes=(16, 32)):
    m, n = len(c.a), c.b.shape[1]
    size = int(rng.choice([s for s in sizes if s <= min(m, n)] or [8]))
    i, j = int(rng.integers(0, m // size)) * size, int(rng.integers(0, n // size)) * size
    mask = np.zeros((m, n), bool)
    mask[i : i + size, j : j + size] = True
    return size, i, j, mask


def tile_transposed(c, rng):
    d = c.finish(c.sums())
    size, i, j, mask = _tile(c, rng)
    out = d.copy()
    out[i : i + size, j : j + size] = d[i : i + size, j : j + size].T
    return Wild(out, "transposed", mask)


def tile_of_another(c, rng):
    d = c.finish(c.sums())
    size, i, j, mask = _tile(c, rng)
    k, x = int(rng.integers(0, len(c.a) // size)) * size, int(rng.integers(0, c.b.shape[1] // size)) * size
    if (k, x) == (i, j):
        return None
    out = d.copy()
    out[i : i + size, j : j + size] = d[k : k + size, x : x + size]
    return Wild(
        out, r"tiles? .*hold|rows are shifted|columns are shifted|holds|result's (row|column)s hold these", mask
    )


def tile_unwritten(c, rng):
    d = c.finish(c.sums())
    *_, mask = _tile(c, rng)
    return Wild(np.where(mask, 0, d).astype(c.out), "0 in all wrong elements", mask)


def every_row_of_many_unwritten(c, rng):
    d = c.finish(c.sums())
    period = int(rng.choice([4, 8, 16]))
    mask = np.zeros(d.shape, bool)
    mask[int(rng.integers(period)) :: period] = True
    return Wild(np.where(mask, 0, d).astype(c.out), "0 in all wrong elements", mask)


def lane_pairs_exchanged(c, rng):
    d = c.finish(c.sums())
    g, t = int(rng.integers(8)), int(rng.integers(4))
    m, n = d.shape
    n = n // 2 * 2
    mask = np.zeros(d.shape, bool)
    mask[:, :n] = (np.arange(m) % 8 == g)[:, None] & (np.arange(n) % 8 // 2 == t)
    out = d.copy()
    out[:, :n] = np.where(mask[:, :n], d[:, np.arange(n) ^ 1], d[:, :n])
    return Wild(out, r"columns.*(exchanged|permuted|hold other)|exchanged", mask)


def last_columns_repeated(c, rng):
    d, n = c.finish(c.sums()), c.b.shape[1]
    last = int(rng.integers(2, 9))
    out, mask = d.copy(), np.zeros(d.shape, bool)
    out[:, n - last :] = d[:, n - last - 1 : n - last]
    mask[:, n - last :] = True
    return Wild(out, r"columns are repeated|columns are shifted|columns hold|result's (row|column)s hold these", mask)


def columns_reversed(c, rng):
    d = c.finish(c.sums())
    size, _, j, _ = _tile(c, rng)
    out, mask = d.copy(), np.zeros(d.shape, bool)
    out[:, j : j + size] = d[:, j : j + size][:, ::-1]
    mask[:, j : j + size] = True
    return Wild(out, r"columns are (reversed|permuted)|columns hold", mask)


def stale_accumulator(c, rng):
    sums = c.sums()
    size, i, j, mask = _tile(c, rng)
    k, x = int(rng.integers(0, len(c.a) // size)) * size, int(rng.integers(0, c.b.shape[1] // size)) * size
    if (k, x) == (i, j):
        return None
    wrong = sums.copy()
    wrong[i : i + size, j : j + size] += sums[k : k + size, x : x + size]
    return Wild(c.finish(wrong), "stale accumulator", mask)


# -- along k -------------------------------------------------------------------------------------------------------------
def _zeroed(c, taken):
    a = c.a.copy()
    a[:, taken] = 0
    return _with(c, a=a)


def k_dropped(c, rng):
    length, k = int(rng.choice([8, 16, 32, 64, 128])), c.a.shape[1]
    start = int(rng.integers(0, max(k // length, 1))) * length
    return _placed(c, _zeroed(c, slice(start, start + length)), _region((len(c.a), c.b.shape[1]), rng), "lost")


def k_tail(c, rng):
    k = c.a.shape[1]
    whole = k // int(rng.choice([32, 64, 128])) * 32
    whole = min(whole, k - 1) if whole == k else whole
    return _placed(c, _zeroed(c, slice(max(whole, k - 60), None)), _region((len(c.a), c.b.shape[1]), rng), "lost")


def one_k_lost(c, rng):
    return _placed(c, _zeroed(c, int(rng.integers(c.a.shape[1]))), _region((len(c.a), c.b.shape[1]), rng), "lost")


def every_block_of_many_lost(c, rng):
    block, stride = int(rng.choice([16, 32, 64])), int(rng.choice([2, 4]))
    start = int(rng.integers(stride))
    taken = np.arange(c.a.shape[1]) // block % stride == start
    return _placed(c, _zeroed(c, taken), _region((len(c.a), c.b.shape[1]), rng), "lost")


def split_lost(c, rng):
    parts, k = int(rng.choice([2, 3, 4])), c.a.shape[1]
    part = int(rng.integers(parts))
    each = -(-k // parts)
    return _placed(c, _zeroed(c, slice(part * each, (part + 1) * each)), _region((len(c.a), c.b.shape[1]), rng), "lost")


def k_twice(c, rng):
    length = int(rng.choice([32, 64]))
    start = int(rng.integers(0, c.a.shape[1] // length)) * length
    a = np.zeros_like(c.a)
    a[:, start : start + length] = c.a[:, start : start + length]
    return _placed(c, c.sums() + _with(c, a=a), _region((len(c.a), c.b.shape[1]), rng), "twice")


def _buffer(c, rng, sides):
    length = (
        128
        if c.scales and np.ndim(c.scales["scale_a"]) == 2 and c.scales["scale_a"].shape[1] > 1
        else int(rng.choice([32, 64]))
    )
    count = c.a.shape[1] // length
    if count < 3:
        return None
    to = int(rng.integers(1, count))
    of = to - 1
    here, old = slice(to * length, (to + 1) * length), slice(of * length, (of + 1) * length)
    a, b = c.a.copy(), c.b.copy()
    if "a" in sides:
        a[:, here] = c.a[:, old]
    if "b" in sides:
        b[here] = c.b[old]
    return _with(c, a=a, b=b)


def stale_a(c, rng):
    found = _buffer(c, rng, "a")
    return None if found is None else _placed(c, found, _region((len(c.a), c.b.shape[1]), rng), "stale block")


def stale_both(c, rng):
    if c.scales and c.scales["scale_a"].shape[1] > 1:
        return None
    found = _buffer(c, rng, "ab")
    return (
        None
        if found is None
        else _placed(c, found, _region((len(c.a), c.b.shape[1]), rng), "stale block|repeated block")
    )


def _chunk(c):
    return 16 // c.a.dtype.itemsize


def swizzle_missing(c, rng):
    mask = int(rng.choice([1, 3, 7]))
    m, k = c.a.shape
    k = k // 128 * 128
    a = c.a.copy()
    source = np.arange(k)[None] ^ ((np.arange(m) & mask)[:, None] * _chunk(c))
    a[:, :k] = np.take_along_axis(c.a[:, :k], source, 1)
    return Wild(c.finish(_with(c, a=a)), "permuted", None)


def chunks_exchanged(c, rng):
    k, step = c.a.shape[1], _chunk(c) * int(rng.choice([1, 2]))
    start = int(rng.integers(0, k // 64)) * 64
    a = c.a.copy()
    a[:, start : start + 64] = c.a[:, start : start + 64][:, np.arange(64) ^ step]
    return Wild(c.finish(_with(c, a=a)), "permuted|exchanged blocks", None)  # halves of the 64 are blocks of k, too


def fragment_order(c, rng):
    k = c.b.shape[0] // 16 * 16
    order = (
        np.arange(16).reshape(2, 4, 2).transpose(1, 0, 2).ravel()
        if rng.random() < 0.5
        else np.arange(16).reshape(2, 8).T.ravel()
    )
    b = c.b.copy()
    b[:k] = c.b[:k].reshape(-1, 16, c.b.shape[1])[:, order].reshape(k, -1)
    return Wild(c.finish(_with(c, b=b)), "permuted", None)


def off_by_one(c, rng):
    a = np.zeros_like(c.a)
    a[:, :-1] = c.a[:, 1:]
    return Wild(c.finish(_with(c, a=a)), "permuted", None)


def transposed_operand(c, rng):
    size = min(len(c.b), c.b.shape[1])
    if len(c.b) != c.b.shape[1]:
        b = c.b.copy()
        b[:size, :size] = c.b[:size, :size].T
        return Wild(c.finish(_with(c, b=b)), "", None)
    return Wild(c.finish(_with(c, b=np.ascontiguousarray(c.b.T))), "transposed", None)


# -- scales --------------------------------------------------------------------------------------------------------------
def _scaled(kinds, says):
    def fault(c, rng):
        if not c.scales:
            return None
        name = ["scale_a", "scale_b"][rng.integers(2)]
        old = np.asarray(c.scales[name], np.float64)
        new = kinds(old, name, rng)
        if new is None or np.array_equal(np.float32(new), np.float32(old)):
            return None
        return Wild(c.finish(_with(c, **{name: new})), says, None)

    return fault


def _along(name):
    return 1 if name == "scale_a" else 0


def _next_block(old, name, rng):
    axis = _along(name)
    return None if old.shape[axis] < 2 else np.roll(old, -1, axis)


def _first_block(old, name, rng):
    axis = _along(name)
    return None if old.shape[axis] < 2 else np.broadcast_to(np.take(old, [0], axis), old.shape).copy()


def _tail_block(old, name, rng):
    axis = _along(name)
    if old.shape[axis] < 3:
        return None
    new = old.copy()
    if axis:
        new[:, -1] = old[:, -2]
    else:
        new[-1] = old[-2]
    return new


def _in_bf16(old, name, rng):
    return old.astype(ml_dtypes.bfloat16).astype(np.float64)


def _power_of_two(old, name, rng):
    return 2.0 ** np.ceil(np.log2(old))


def _next_line(old, name, rng):
    axis = 1 - _along(name)
    return None if old.shape[axis] < 4 else np.roll(old, -1, axis)


def one_row_scaled(c, rng):
    row, factor = int(rng.integers(len(c.a))), float(rng.choice([0.25, 0.5, 2, 3.7]))
    sums, mask = c.sums(), np.zeros((len(c.a), c.b.shape[1]), bool)
    sums[row] *= factor
    mask[row] = True
    says = r"scale of row|every result is|stale C|twice|scale_a of row"
    return Wild(c.finish(sums), says, mask)


# -- values --------------------------------------------------------------------------------------------------------------
def output_clipped(c, rng):
    sums = c.sums()
    limit = float(np.quantile(np.abs(sums), rng.uniform(0.7, 0.95)))
    if limit <= 0 or c.bias is not None or c.epilogue is not None:
        return None
    out = c.finish(np.clip(sums, -limit, limit))
    return Wild(out, "clipped", None)


def operand_clipped(c, rng):
    limit = 240.0
    a = (c.a.astype(np.float64) * 60).astype(c.a.dtype)
    if (
        not (np.abs(a.astype(np.float64)) > limit).any()
        or c.epilogue
        or c.out is np.float16
        or not np.isfinite(a.astype(np.float64)).all()
    ):
        return None
    c.a, c.bias = a, None
    clipped = np.clip(a.astype(np.float64), -limit, limit).astype(a.dtype)
    return Wild(c.finish(_with(c, a=clipped)), "clipped", None)


def operands_narrow(c, rng):
    if c.fmt != "fp16":
        return None
    low = [x.astype(ml_dtypes.bfloat16).astype(x.dtype) for x in (c.a, c.b)]
    return Wild(c.finish(_with(c, *low)), "operands were rounded|was rounded", None)


def misread(c, rng):
    if c.fmt != "e4m3fn":
        return None
    a = c.a.view(ml_dtypes.float8_e4m3fnuz).astype(np.float64)
    if not np.isfinite(a).all():
        return None
    return (
        Wild(c.finish(_with(c, a=a.astype(np.float16).astype(c.a.dtype))), "", None)
        if False
        else Wild(c.finish(c.sums() / 2), r"read as|0\.5|wrong scale|every result is", None)
    )


def narrow_accumulator(dtype):
    def fault(c, rng):
        if c.scales or c.epilogue or c.options.get("k_order"):
            return None
        a, b = c.a.astype(np.float64), c.b.astype(np.float64)
        total = np.zeros((len(a), b.shape[1]), dtype)
        step = int(rng.choice([1, 8, 16]))
        with np.errstate(over="ignore", invalid="ignore"):
            for at in range(0, a.shape[1], step):
                total = (total.astype(np.float64) + a[:, at : at + step] @ b[at : at + step]).astype(dtype)
        name = "fp16" if dtype is np.float16 else "bf16"
        return Wild(c.finish(total.astype(np.float64)), f"{name} accumulation|output rounded twice.*{name}", None)

    return fault


def rounded_twice(c, rng):
    if c.out is not np.float32 or c.epilogue:
        return None
    return Wild(c.finish(c.sums()).astype(ml_dtypes.bfloat16).astype(np.float32), "rounded twice", None)


# -- epilogues -----------------------------------------------------------------------------------------------------------
def bias_lost(c, rng):
    if c.bias is None:
        return None
    mask = _region((len(c.a), c.b.shape[1]), rng)
    right, wrong = c.finish(c.sums()), replace(c, bias=None).finish(c.sums())
    return Wild(np.where(mask, wrong, right).astype(c.out), "C is left out", None if mask.all() else mask)


def bias_twice(c, rng):
    return None if c.bias is None else Wild(c.finish(c.sums() + c.bias), "C is added twice", None)


def bias_of_the_next_column(c, rng):
    return (
        None
        if c.bias is None
        else Wild(replace(c, bias=np.roll(c.bias, -1)).finish(c.sums()), "C is that of the column", None)
    )


def activation_lost(c, rng):
    if c.epilogue is None:
        return None
    return Wild(replace(c, epilogue=None).finish(c.sums()), "is left out", None)


def other_activation(c, rng):
    if c.epilogue is None:
        return None
    other = {"relu": "silu", "silu": "gelu_tanh", "gelu_tanh": "silu"}[c.epilogue]
    return Wild(replace(c, epilogue=other).finish(c.sums()), f"epilogue is {other}", None)


def bias_behind_activation(c, rng):
    if c.epilogue is None or c.bias is None:
        return None
    x = activated(c.sums().astype(np.float32), c.epilogue) + c.bias
    return Wild(x.astype(c.out), "C is added after", None)


# -- of no known kind ----------------------------------------------------------------------------------------------------
def noise(c, rng):
    mask = _region((len(c.a), c.b.shape[1]), rng)
    sums = c.sums()
    return _placed(c, sums + rng.standard_normal(sums.shape) * sums.std() * rng.choice([0.05, 0.5]), mask, "")


def factors_at_random(c, rng):
    mask = _region((len(c.a), c.b.shape[1]), rng)
    sums = c.sums()
    return _placed(c, sums * rng.uniform(0.5, 1.5, sums.shape), mask, "")


def sign_lost(c, rng):
    mask = _region((len(c.a), c.b.shape[1]), rng)
    sums = c.sums()
    if (sums >= 0).all() or c.epilogue == "relu":
        return None
    out = c.finish(np.where(mask, np.abs(sums), sums))
    return Wild(out, r"every result is -1|^$", None)


def garbage_tile(c, rng):
    sums = c.sums()
    *_, mask = _tile(c, rng)
    return _placed(c, rng.standard_normal(sums.shape) * 1e3, mask, "")


def shuffled_products(c, rng):
    a = c.a.copy()
    order = rng.permutation(c.a.shape[1])
    return Wild(c.finish(_with(c, a=np.ascontiguousarray(a[:, order]))), "", None)


def single_elements(c, rng):
    d = c.finish(c.sums()).astype(np.float64)
    mask = np.zeros(d.shape, bool)
    mask.ravel()[rng.choice(d.size, 3, replace=False)] = True
    scale = np.abs(d).max() or 1.0
    return Wild(np.where(mask, d + scale, d).astype(c.out), "", mask)


WILD: dict[str, Fault] = {
    f.__name__: f for f in (
        rows_shifted, blocks_of_rows_exchanged, columns_exchanged, tile_transposed, tile_of_another, tile_unwritten,
        every_row_of_many_unwritten, lane_pairs_exchanged, last_columns_repeated, columns_reversed, stale_accumulator,
        k_dropped, k_tail, one_k_lost, every_block_of_many_lost, split_lost, k_twice, stale_a, stale_both, swizzle_missing,
        chunks_exchanged, fragment_order, off_by_one, transposed_operand, one_row_scaled, output_clipped, operand_clipped,
        operands_narrow, misread, rounded_twice, bias_lost, bias_twice, bias_of_the_next_column, activation_lost,
        other_activation, bias_behind_activation, noise, factors_at_random, sign_lost, garbage_tile, shuffled_products,
        single_elements,
    )
} | {
    "scale of the next block": _scaled(_next_block, "block of k behind"),
    "scale of the first block": _scaled(_first_block, "first block|block of k"),
    "scale at the tail": _scaled(_tail_block, "last block|scale of k"),
    "scales in bf16": _scaled(_in_bf16, "to bf16"),
    "scales in powers of two": _scaled(_power_of_two, "to ue8m0"),
    "scales of the next line": _scaled(_next_line, "behind"),
    "scales squared": _scaled(lambda old, name, rng: old * old, "applied twice"),
    "scales left out": _scaled(lambda old, name, rng: np.ones_like(old), "left out"),
    "FP16 accumulation": narrow_accumulator(np.float16),
    "BF16 accumulation": narrow_accumulator(ml_dtypes.bfloat16),
}  # fmt: skip
