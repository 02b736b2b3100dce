"""This module checks integer kernels: int8 and int4 products are exact, so a check compares for equality."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.inputs.sizes import check_shapes
from mpgemm.recovery.engines import ieee_engine
from mpgemm.testing.call import kernel_engine
from mpgemm.testing.case import gemm_tolerance
from mpgemm.testing.diagnosis import FEWEST, diagnose
from mpgemm.testing.diagnosis.failure import NO_FAULT, failure_of
from mpgemm.testing.diagnosis.places import Place, place_of
from mpgemm.testing.epilogues import broadcast
from tensorcore_models.engines.scaling import read_scales

#: Limit below which FP64 holds sums exactly: 53 bits.
EXACT = 2.0**53
#: Largest relative loss by the FP32 steps of a requantisation.
FP32_STEPS = 4 * 2.0**-24


@dataclass(frozen=True)
class Requantised:
    """`Requantised` describes an output of 8 bits: clamp(round(scale_a scale_b / scale_out sum) + zero_out)."""

    factor: np.ndarray  #: float64: scale_a scale_b / scale_out, broadcastable to (m, n)
    zero_out: float
    #: low, high: range of the output.
    low: int
    high: int

    def values(self, sums: np.ndarray) -> np.ndarray:
        """Return the values before rounding and clamping."""
        return sums * self.factor + self.zero_out

    def right(self, out: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return which outputs a kernel can give that rounds to nearest after a few steps in FP32."""
        exact = self.values(sums)
        near = 0.5 + FP32_STEPS * np.abs(exact - self.zero_out) + 2.0**-140
        least, most = (np.clip(x, self.low, self.high) for x in (np.ceil(exact - near), np.floor(exact + near)))
        return (out >= least) & (out <= most)


class IntegerFailure(NamedTuple):
    """`IntegerFailure` describes wrong integer outputs."""

    summary: str
    first: str  #: sentence on the first wrong element
    place: Place
    suspects: tuple[str, ...]
    outside: np.ndarray  #: bool, shape (m, n): elements that no right kernel returns


def check_integers(
    out: np.ndarray, a: Any, b: Any, c: Any, engine: Any, scale_a: Any, scale_b: Any, zero_a: Any, zero_b: Any, scale_out: Any,
    zero_out: Any,
) -> IntegerFailure | None:  # fmt: skip
    """Return the failure of integer outputs, or None if they are right.

    Parameters are those of :func:`mpgemm.testing.assert_gemm_close`.
    """
    left, right = (tcm.as_array(x, name) for x, name in ((a, "a"), (b, "b")))
    unit = kernel_engine(engine, left, right)
    if tcm.get_format(unit.d_format).name != "s32":
        raise TypeError(
            f"out is {out.dtype}, but {unit.label} gives {unit.d_format}: give integer operands, or a floating-point out"
        )
    points = [_zero_points(z, side, x.shape) for z, side, x in ((zero_a, "a", left), (zero_b, "b", right))]
    x, y = (v.astype(np.float64) - z for v, z in zip((left, right), points, strict=True))
    added = None if c is None else broadcast(tcm.as_array(c, "c"), left.shape[0], right.shape[1], "c")
    sums = _sums(x, y, added)
    if out.shape != sums.shape:
        raise ValueError(f"out must have the shape {sums.shape} of the product of a and b, got {out.shape}")
    scaled = (scale_a, scale_b, scale_out) != (None, None, None)
    if out.dtype == np.int32:
        if scaled or zero_out is not None:
            raise ValueError(
                "got scales or zero_out with an int32 out, which holds the sums themselves; expected an 8-bit out: leave "
                "scales and zero_out out"
            )
        wrong, expected, how = out != sums, sums, "exact sums"
    else:
        end = _requantised(out, scale_a, scale_b, scale_out, zero_out, (*left.shape, right.shape[1]))
        wrong, how = ~end.right(out.astype(np.float64), sums), "requantised sums, rounded to nearest"
        expected = end.values(sums)
    if not wrong.any():
        return None
    i, j = (int(v) for v in np.argwhere(wrong)[0])
    if out.dtype == np.int32:
        found = _zero_point_faults(lambda sums: out == sums, left, right, points, added)
        found = found or _sum_faults(out, x, y, added, wrong)
    else:
        found = _end_faults(out, end, left, right, points, added, sums)
    return IntegerFailure(
        f"{np.count_nonzero(wrong)} of {wrong.size} elements are not the {how} of {unit.label}",
        f"first: out[{i}, {j}] = {int(out[i, j])}, expected {expected[i, j]:.10g}",
        place_of(wrong, expected), tuple(found or [NO_FAULT]), wrong,
    )  # fmt: skip


def _zero_points(given: Any, side: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the zero points: one for the tensor, one for each row of A, or one for each column of B."""
    points = np.asarray(0 if given is None else given)
    if points.dtype.kind not in "iu":
        raise TypeError(f"zero_{side} must be integers, got {points.dtype}")
    size = shape[0] if side == "a" else shape[1]
    one_each = (size, 1) if side == "a" else (1, size)
    if points.size != 1 and points.shape not in ((size,), one_each):
        raise ValueError(f"zero_{side} must be one number or have the shape {one_each}, got {points.shape}")
    return points.reshape((1, 1) if points.size == 1 else one_each).astype(np.float64)


def _sums(x: np.ndarray, y: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    """Return the exact sums, which FP64 holds."""
    check_shapes(x, y)
    reach = x.shape[1] * float(np.max(np.abs(x), initial=0.0)) * float(np.max(np.abs(y), initial=0.0))
    if reach >= EXACT:
        raise ValueError(
            f"sums of {x.shape[1]} products may reach {reach:.3g}, beyond the largest integer that is exact here (2^53): use "
            "smaller operands or fewer values of k"
        )
    sums = x @ y if c is None else x @ y + c
    beyond = (sums < -(2.0**31)) | (sums > 2.0**31 - 1)
    if beyond.any():
        i, j = (int(v) for v in np.argwhere(beyond)[0])
        raise ValueError(
            f"{np.count_nonzero(beyond)} of {sums.size} exact sums are beyond int32, the first {int(sums[i, j])} at ({i}, "
            f"{j}), where units wrap, or clamp with .satfinite: use smaller operands or fewer values of k"
        )
    return sums


def _requantised(out: np.ndarray, scale_a: Any, scale_b: Any, scale_out: Any, zero_out: Any, sizes) -> Requantised:
    if scale_out is None:
        raise ValueError(
            f"out is {out.dtype}, a requantised output, but scale_out is missing: give scale_out, and scale_a, scale_b and "
            "zero_out where they are not 1 and 0"
        )
    m, k, n = sizes
    scaling = read_scales(1.0 if scale_a is None else scale_a, 1.0 if scale_b is None else scale_b, m, k, n)
    if scaling is None or scaling.applied != "end":
        raise ValueError(
            f"scale_a and scale_b have the shapes {np.shape(scale_a)} and {np.shape(scale_b)}, expected one factor for each "
            "matrix, or one for each row and column, for a requantised output"
        )
    step, point = np.asarray(scale_out, np.float64), np.asarray(0 if zero_out is None else zero_out)
    if step.size != 1 or not np.isfinite(step).all() or not (step > 0).all():
        raise ValueError(f"scale_out must be one positive number, got {scale_out!r}")
    info = np.iinfo(out.dtype)
    if point.size != 1 or point.dtype.kind not in "iu" or not info.min <= int(point.reshape(())) <= info.max:
        raise ValueError(f"zero_out must be one integer from {info.min} to {info.max}, got {zero_out!r}")
    factor = scaling.a * scaling.b / float(step.reshape(()))
    return Requantised(factor, float(point.reshape(())), int(info.min), int(info.max))


def _zero_point_faults(right: Callable[[np.ndarray], np.ndarray], a, b, points, c) -> list[str]:
    """Yield statements on a zero point that was left out, or added instead of subtracted; `right` marks the fitting outputs."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    found = []
    for times, text in ((0, "is left out"), (-1, "is added instead of subtracted"), (2, "is subtracted twice")):
        for which, name in (((0,), "zero_a"), ((1,), "zero_b"), ((0, 1), "zero_a and zero_b")):
            if any(not points[side].any() for side in which):
                continue
            used = [p * (times if side in which else 1) for side, p in enumerate(points)]
            sums = (a - used[0]) @ (b - used[1])
            if right(sums if c is None else sums + c).all():
                found.append(f"a zero point: {name} {text}")
    return found[:2]


def _sum_faults(out, x, y, c, wrong) -> list[str]:
    """Return the statements on wrong sums: saturated and wrapped sums of 16 bits first, then suspicions on the exact sums."""
    sums = x @ y if c is None else x @ y + c
    for bits in (16, 24):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        if (out == np.clip(sums, low, high)).all():
            return [f"sums that are clamped to {bits} bits"]
        if (out == (sums - low) % 2**bits + low).all():
            return [f"sums that wrap at {bits} bits"]
    failure = failure_of(out.astype(np.float64), gemm_tolerance(ieee_engine("fp64"), x, y, c), wrong)
    found = diagnose(failure).statements
    if not found and np.count_nonzero(wrong) < FEWEST:
        return [f"{NO_FAULT}: only {np.count_nonzero(wrong)} elements differ"]
    return list(found)


def _end_faults(out, end: Requantised, a, b, points, c, sums) -> list[str]:
    """Return the statements on zero points, scales and roundings of a requantisation that explain every output."""
    values = out.astype(np.float64)
    ends = {
        "zero_out is left out": Requantised(end.factor, 0.0, end.low, end.high),
        "zero_out is added twice": Requantised(end.factor, 2 * end.zero_out, end.low, end.high),
        "the scales are applied twice": Requantised(end.factor**2, end.zero_out, end.low, end.high),
        "the scales are inverted": Requantised(1 / end.factor, end.zero_out, end.low, end.high),
    }
    found = [text for text, other in ends.items() if other.right(values, sums).all()]
    found += _zero_point_faults(lambda sums: end.right(values, sums), a, b, points, c)
    if c is not None and end.right(values, sums - c).all():
        found.append("the addend: C is left out")
    exact = end.values(sums)
    modes = {"the output is truncated, not rounded": np.trunc, "the output is rounded down": np.floor}
    found += [text for text, mode in modes.items() if (out == np.clip(mode(exact), end.low, end.high)).mean() > 0.999]
    size = end.high - end.low + 1
    if (out == (np.rint(exact) - end.low) % size + end.low).mean() > 0.999:
        found.append("the output wraps where it should be clamped")
    return found
