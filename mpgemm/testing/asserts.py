"""Assertions for tests of matrix kernels: within a certified tolerance, or equal to a recipe bit for bit."""

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.attribution import attribute
from mpgemm.frameworks.multiplier import recipe_values
from mpgemm.recovery.methods import list_methods
from mpgemm.testing.case import KernelTolerance, gemm_tolerance, kernel_engine
from mpgemm.testing.diagnosis.failure import failure_of
from mpgemm.testing.diagnosis.integers import assert_integers
from mpgemm.testing.diagnosis.suspects import FEWEST, suspicions, suspicions_of_all
from mpgemm.testing.kernel_line import needed
from mpgemm.testing.overflow import right_elements, too_many_unbounded, unbounded_line
from mpgemm.testing.spread import spread_of
from tensorcore_models import libraries
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.engines.order import Chain, KOrder
from tensorcore_models.formats import Format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.libraries.compare import candidates

#: Types of the outputs of integer kernels.
INTEGERS = (np.dtype("int32"), np.dtype("int8"), np.dtype("uint8"))
#: Rows and columns on which other orders are tried.
TRIED = 8


def assert_gemm_close(
    out,
    a,
    b,
    c=None,
    *,
    engine: Engine | str,
    splits: int = 1,
    k_order: KOrder | None = None,
    promote_every: int | tuple[int, int] | None = None,
    scale_a=None,
    scale_b=None,
    input_rounding: str | None = None,
    zero_a=None,
    zero_b=None,
    scale_out: float | None = None,
    zero_out: int | None = None,
) -> None:
    """Fail unless a kernel's result is within the certified tolerance of the exact product.

    Parameters
    ----------
    out : array_like, shape (m, n)
        The kernel's result; its type is the output format.
    a, b, c, engine, splits, k_order, promote_every, scale_a, scale_b, input_rounding
        As for :func:`gemm_tolerance`.
    zero_a, zero_b : int or array_like of int, optional
        For integer outputs: zero points, one for the matrix, for each row of A or for each column of B;
        (A - zero_a) (B - zero_b) is meant.
    scale_out, zero_out : optional
        For outputs of 8 bits: clamp(round(scale_a scale_b / scale_out sum) + zero_out) is meant.

    Raises
    ------
    AssertionError
        If an element is outside (where the certified tolerance sees fewer than half of the dropped blocks of k: of the
        statistical one, :mod:`mpgemm.testing.kernel_line`): the worst element, its bound, the engine's own part
        of its error, and what kind of bug would look like this. Also if errors of all elements together are larger than right
        kernels have (:mod:`mpgemm.testing.spread`), as narrower sums make them. Where the exact result or the
        model's is infinite or NaN, the result must be of that kind and sign. Also if the tolerance is vacuous (a kernel that
        writes zeros would pass), and if more than a tenth of the elements have no finite bound, since they may overflow.
    ValueError, TypeError
        As :func:`gemm_tolerance`; and if the result has another shape or no format.
    """
    __tracebackhide__ = True
    computed = tcm.as_array(out, "out")
    ends = (zero_a, zero_b, scale_out, zero_out)
    if computed.dtype in INTEGERS:
        if (splits, k_order, promote_every, input_rounding) != (1, None, None, None):
            raise ValueError(
                "integer sums are exact in every order: leave splits, k_order, promote_every and input_rounding out"
            )
        assert_integers(computed, a, b, c, engine, scale_a, scale_b, *ends)
        return
    if ends != (None, None, None, None):
        raise ValueError(f"zero points and scale_out go with outputs of int32, int8 or uint8, out is {computed.dtype}")
    fmt = tcm.format_of_dtype(computed.dtype)
    if fmt is None:
        raise TypeError(
            f"out has elements of type {computed.dtype}, expected a floating-point format, int32, int8 or uint8"
        )
    allowed = gemm_tolerance(
        engine, a, b, c, out_format=fmt.name, splits=splits, k_order=k_order, promote_every=promote_every, scale_a=scale_a,
        scale_b=scale_b, input_rounding=input_rounding,
    )  # fmt: skip
    if computed.shape != allowed.bound.shape:
        raise ValueError(f"out has shape {computed.shape}, expected {allowed.bound.shape} from a and b")
    message = _wrong(computed, allowed)
    if message is not None:
        raise AssertionError(message)


def _wrong(computed: np.ndarray, allowed: KernelTolerance) -> str | None:
    """Why a result fails; None where it is right."""
    line, out = allowed.statistics, computed.astype(np.float64)
    if allowed.vacuity.vacuous and (line is None or line.power.vacuous):
        return (
            f"the tolerance is vacuous: a kernel that writes zeros passes (largest bound {allowed.atol:.4g}). "
            f"Use operands whose product is larger than its rounding errors: fewer values of k, less cancellation.\n{allowed}"
        )
    right = right_elements(computed, allowed)
    if line is not None:
        with np.errstate(invalid="ignore"):
            near = np.abs(out - line.middle) <= line.half
        right &= near | ~np.isfinite(allowed.bound)
    if not right.all():
        return _message(out, allowed, ~right)
    if (text := too_many_unbounded(allowed)) is not None:
        return text
    spread = spread_of(out, allowed)
    if spread is None or spread.right:
        return None
    first = f"each element is within the tolerance of {allowed.engine.label}, but all together are not: {spread}"
    found = suspicions_of_all(failure_of(out, allowed, np.isfinite(allowed.bound) & np.isfinite(out)))
    return "\n".join([first, *(f"  looks like {text}" for text in found)])


def _message(out: np.ndarray, allowed: KernelTolerance, wrong: np.ndarray) -> str:
    exact, bound = allowed.values, allowed.finite_bound
    line = allowed.statistics
    if line is not None:
        exact, bound = line.middle, np.minimum(line.half, bound)
    kind = "certified" if line is None else "statistical"
    lines = [
        f"{np.count_nonzero(wrong)} of {wrong.size} elements are outside of the {kind} tolerance of {allowed.engine.label}"
    ]
    if line is not None:
        lines.append(f"  {line}; {needed(allowed)}")
    if allowed.scaling is not None:
        lines.append(f"  scales: {allowed.scaling.in_words()}")
    if (text := unbounded_line(allowed)) is not None:
        lines.append(f"  {text}")
    usual = wrong & np.isfinite(allowed.bound)
    if not usual.any():
        return "\n".join([*lines, *_kinds_differ(out, allowed, wrong)])
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(out - exact)
        excess = np.where(usual, np.where(bound > 0, error / bound, np.inf), -1.0)
    excess = np.where(np.isnan(excess), np.inf, excess)
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(excess)), excess.shape))
    lines += [
        f"  worst: out[{i}, {j}] = {float(out[i, j])!r}, exact {float(allowed.values[i, j])!r}: "
        f"difference {out[i, j] - allowed.values[i, j]:.6g}, bound {bound[i, j]:.6g} ({excess[i, j]:.4g} times)",
        *_cause(allowed, i, j),
    ]
    failure = failure_of(out, allowed, usual)
    found = suspicions(failure)
    lines += [f"  looks like {text}" for text in found]
    if not found and failure.rows.size < FEWEST:
        lines.append(f"  looks like nothing in particular: only {failure.rows.size} of the elements fail")
    elif not found:
        lines.append(
            "  looks like none of: lost or doubled terms, wrong scale, transposed or exchanged blocks, rounded operands, "
            "narrow sums. Does the kernel chain k in more parts (splits=)?"
        )
    return "\n".join(lines)


def _kinds_differ(out: np.ndarray, allowed: KernelTolerance, wrong: np.ndarray) -> list[str]:
    """Only elements without a finite bound are wrong: the first of them, and what else there is of its kind."""
    exact = allowed.values
    i, j = (int(x) for x in np.argwhere(wrong)[0])
    model = float(allowed.model(np.array([i]), np.array([j]))[0][0, 0])
    return [
        f"  first: out[{i}, {j}] = {float(out[i, j])!r}, exact {float(exact[i, j])!r}, the model {model!r}",
        f"  of them {np.count_nonzero(wrong & np.isfinite(out))} are finite, "
        f"{np.count_nonzero(wrong & np.isinf(out))} infinite, {np.count_nonzero(wrong & np.isnan(out))} NaN",
        *_saturated(out, allowed, wrong),
    ]


def _saturated(out: np.ndarray, allowed: KernelTolerance, wrong: np.ndarray) -> list[str]:
    """The largest number of the output's format where the exact result is NaN."""
    fmt = tcm.get_format(allowed.out_format)
    lost = wrong & np.isnan(allowed.values)
    if not lost.any() or not isinstance(fmt, Format) or not (np.abs(out[lost]) == fmt.max_finite).all():
        return []
    return [f"  looks like NaN that is saturated: {fmt.max_finite:g} in the place of NaN"]


def _cause(allowed: KernelTolerance, i: int, j: int) -> list[str]:
    """What the engine itself does on this element, stage by stage where that is known."""
    row, column = allowed.a[i], allowed.b[:, j]
    c = None if allowed.c is None else float(allowed.c[i, j])
    name = allowed.engine.formats[0].name
    same = name == allowed.engine.formats[1].name and name in {m.name for m in list_methods()}
    if allowed.scaling is not None or not same or name.startswith("e"):
        return ["  cause: not attributed for this engine's formats"]
    try:
        parts = attribute(name, row, column, c, engine=allowed.engine)
    except (ValueError, TypeError) as error:
        return [f"  cause: not attributed ({error})"]
    stages = ", ".join(f"{stage} {float(part):.3g}" for stage, part in parts.parts.items() if part) or "none"
    return [
        f"  cause: the engine's own error here is {float(parts.total):.3g} ({stages}); the rest is not rounding of this engine"
    ]


def assert_bits(
    out,
    a,
    b,
    *,
    recipe: libraries.Recipe | Engine | str,
    scale: float = 1.0,
    input_rounding: str | None = None,
) -> None:
    """Fail unless a kernel's result has exactly the bits of a recipe.

    Parameters
    ----------
    out : array_like, shape (m, n)
        The kernel's result; its type is the output format.
    a, b : array_like, shapes (m, k) and (k, n)
    recipe : Recipe, Engine or str
        A library's recipe; or an engine, "arch:name" or a device for one chain over k and one rounding.
    scale : float
        One FP32 factor, as for :meth:`tensorcore_models.libraries.Recipe.gemm_bits`.
    input_rounding : str, optional
        As for :meth:`tensorcore_models.Instruction.gemm`.

    Raises
    ------
    AssertionError
        If bits differ: how many, the first element, and other orders of k that would explain them.
    ValueError, TypeError
        If shapes or types do not fit.
    """
    __tracebackhide__ = True
    computed, left, right = (tcm.as_array(x, name) for x, name in ((out, "out"), (a, "a"), (b, "b")))
    fmt = tcm.format_of_dtype(computed.dtype)
    if fmt is None:
        raise TypeError(f"out has elements of type {computed.dtype}: no floating-point format")
    if not isinstance(recipe, libraries.Recipe):
        unit = kernel_engine(recipe, left, right)
        recipe = libraries.Recipe(
            unit, left.shape[1], Chain((range(left.shape[1]),)), name=f"one chain on {unit.label}"
        )
    expected = operand_bits(
        recipe_values(recipe, left, right, fmt.name, input_rounding, scale=scale), fmt, None, "expected"
    )
    got = operand_bits(computed, fmt, None, "out")
    if got.shape != expected.shape:
        raise ValueError(f"out has shape {got.shape}, expected {expected.shape} from a and b")
    wrong = got != expected
    if not wrong.any():
        return
    i, j = (int(x) for x in np.argwhere(wrong)[0])
    digits = -(-fmt.bits // 4)
    wanted = tcm.decode(expected[i : i + 1, j], fmt)[0]
    lines = [
        f"{np.count_nonzero(wrong)} of {wrong.size} elements have other bits than {recipe.name}",
        f"  first: out[{i}, {j}] = {float(computed[i, j])!r} (0x{int(got[i, j]):0{digits}x}), expected {float(wanted)!r} "
        f"(0x{int(expected[i, j]):0{digits}x})",
    ]
    if isinstance(recipe.engine, Instruction) and scale == 1:
        lines.append(f"  {_other_orders(recipe, computed, left, right, wrong, fmt.name, input_rounding)}")
    raise AssertionError("\n".join(lines))


def _other_orders(recipe, out, a, b, wrong, out_format: str, rounding: str | None) -> str:
    """Orders of k on the same architecture that give a part of the result with most wrong elements."""
    rows = np.argsort(-wrong.sum(1), kind="stable")[:TRIED]
    columns = np.argsort(-wrong[rows].sum(0), kind="stable")[:TRIED]
    part = np.ascontiguousarray(out[np.ix_(rows, columns)])
    same = []
    for other in candidates(recipe.engine.arch, recipe.k, recipe.engine.a_format):
        values = recipe_values(other, a[rows], b[:, columns], out_format, rounding)
        if values.tobytes() == part.tobytes():
            same.append(f"{other.name} on {other.engine.label}")
    if not same:
        return f"none of the other orders tried on {recipe.engine.arch} (one chain, split-k) gives these bits either"
    more = f" and {len(same) - 3} more" if len(same) > 3 else ""
    return f"these bits are those of {', or of '.join(same[:3])}{more} ({len(rows)} x {len(columns)} elements compared)"
