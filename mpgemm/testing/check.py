"""Is a kernel's result right, where is it wrong, and what explains it: one result, from which messages and JSON are made."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.attribution import attribute
from mpgemm.recovery.methods import list_methods
from mpgemm.testing.case import KernelCase, gemm_tolerance
from mpgemm.testing.diagnosis.failure import Failure, failure_of
from mpgemm.testing.diagnosis.integers import check_integers
from mpgemm.testing.diagnosis.places import picture
from mpgemm.testing.diagnosis.suspects import FEWEST, Diagnosis, diagnose, diagnose_errors
from mpgemm.testing.overflow import right_elements, too_many_unbounded, unbounded_line
from mpgemm.testing.sampled import needed
from mpgemm.testing.spread import spread_of
from tensorcore_models.formats import Format
from tensorcore_models.results import Result

#: Types of the outputs of integer kernels.
INTEGERS = (np.dtype("int32"), np.dtype("int8"), np.dtype("uint8"))


@dataclass(frozen=True, repr=False)
class KernelCheck(Result):
    """Whether a kernel's result is right.

    Attributes
    ----------
    passes : bool
    summary : str
        The first line: what is wrong, or what was allowed.
    wrong, elements : int
        Elements outside of what is allowed, and all.
    details : tuple of str
        What was allowed and the worst element.
    place : str or None
        Where the result is wrong, in words.
    suspects : tuple of str
        What explains the wrong elements, the right ones and the size of the differences; empty where nothing does.
    ruled_out : tuple of str
        Kinds of faults that contradict the elements.
    picture : tuple of str
        The result as text.
    case : KernelCase or None
        What was asked; None for integers.
    outside : ndarray of bool or None
        Elements outside of what is allowed.
    """

    passes: bool
    summary: str
    wrong: int
    elements: int
    details: tuple[str, ...] = ()
    place: str | None = None
    suspects: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    case: KernelCase | None = None
    outside: np.ndarray | None = None

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {
            "passes": self.passes, "message": None if self.passes else str(self), "wrong": self.wrong,
            "elements": self.elements, "place": self.place, "suspects": list(self.suspects), "ruled_out": list(self.ruled_out),
        }  # fmt: skip

    def to_rows(self) -> list[dict]:
        """One record."""
        return [self.to_dict()]

    def __str__(self) -> str:
        lines = [self.summary, *(f"  {text}" for text in self.details)]
        if self.place is not None:
            lines.append(f"  where: {self.place}")
        lines += [f"    {row}" for row in self.picture]
        lines += [f"  looks like {text}" for text in self.suspects]
        if self.ruled_out:
            lines.append(f"  ruled out: {', '.join(self.ruled_out)}")
        return "\n".join(lines)


def check_gemm(
    out, a, b, c=None, *, engine, zero_a=None, zero_b=None, scale_out=None, zero_out=None, **options: Any
) -> KernelCheck:
    """Whether a kernel's result is right; parameters and errors as :func:`assert_gemm_close`, which raises what this finds.

    Returns
    -------
    KernelCheck
    """
    computed = tcm.as_array(out, "out")
    ends = (zero_a, zero_b, scale_out, zero_out)
    if computed.dtype in INTEGERS:
        allowed = {"scale_a", "scale_b"}
        if any(value not in (None, 1) for name, value in options.items() if name not in allowed):
            raise ValueError(
                "integer sums are exact in every order: leave splits, k_order, promote_every, input_rounding, epilogue, "
                "residual and rows out"
            )
        found = check_integers(computed, a, b, c, engine, options.get("scale_a"), options.get("scale_b"), *ends)
        if found is None:
            return KernelCheck(True, "every element is the exact one", 0, computed.size)
        return KernelCheck(
            False, found.summary, int(found.outside.sum()), computed.size, (found.first,), found.place.text, found.suspects,
            (), picture(found.outside, found.place), None, found.outside,
        )  # fmt: skip
    if ends != (None, None, None, None):
        raise ValueError(f"zero points and scale_out go with outputs of int32, int8 or uint8, out is {computed.dtype}")
    fmt = tcm.format_of_dtype(computed.dtype)
    if fmt is None:
        raise TypeError(
            f"out has elements of type {computed.dtype}, expected a floating-point format, int32, int8 or uint8"
        )
    case = gemm_tolerance(engine, a, b, c, out_format=fmt.name, **options)
    shape = (np.shape(a)[0], case.result.shape[1])
    if computed.shape != shape:
        raise ValueError(f"out has shape {computed.shape}, expected {shape} from a and b")
    with np.errstate(all="ignore"):
        return check_case(computed if case.lines is None else computed[case.lines], case)


def check_case(computed: np.ndarray, case: KernelCase) -> KernelCheck:
    """Whether a result, in the case's output format, is right."""
    line, out = case.statistics, computed.astype(np.float64)
    if case.vacuity.vacuous and (line is None or line.power.vacuous):
        text = (
            f"the tolerance is vacuous: a kernel that writes zeros passes (largest bound {case.atol:.4g}). "
            f"Use operands whose product is larger than its rounding errors: fewer values of k, less cancellation.\n{case}"
        )
        return KernelCheck(False, text, 0, out.size, case=case)
    right = right_elements(computed, case)
    if line is not None:
        near = np.abs(out - line.middle) <= line.half
        right &= near | ~np.isfinite(case.bound)
    if not right.all():
        return _failed(out, case, ~right)
    if (few := too_many_unbounded(case)) is not None:
        return KernelCheck(False, few, 0, out.size, case=case)
    spread = spread_of(out, case)
    if spread is None or spread.right:
        return KernelCheck(True, f"every element is right for {case.engine.label}", 0, out.size, case=case)
    summary = f"each element is within the tolerance of {case.engine.label}, but all together are not: {spread}"
    return _explained(
        summary, [], failure_of(out, case, np.isfinite(case.bound) & np.isfinite(out)), None, diagnose_errors
    )


def _failed(out: np.ndarray, case: KernelCase, wrong: np.ndarray) -> KernelCheck:
    line = case.statistics
    kind = "certified" if line is None else "statistical"
    summary = (
        f"{np.count_nonzero(wrong)} of {wrong.size} elements are outside of the {kind} tolerance of {case.engine.label}"
    )
    details = [] if line is None else [f"{line}; {needed(case)}"]
    if case.lines is not None:
        details.append(
            f"{case.lines.size} rows were looked at, evenly spread, from {case.lines[0]} to {case.lines[-1]}"
        )
    if case.scaling is not None:
        details.append(f"scales: {case.scaling.in_words()}")
    if case.epilogue is not None:
        details.append(f"epilogue: {case.epilogue.name}")
    if (text := unbounded_line(case)) is not None:
        details.append(text)
    usual = wrong & np.isfinite(case.bound)
    if not usual.any():
        details += _kinds_differ(out, case, wrong)
        return KernelCheck(False, summary, int(wrong.sum()), wrong.size, tuple(details), case=case, outside=wrong)
    return _explained(summary, [*details, *_worst(out, case, usual)], failure_of(out, case, usual), wrong, diagnose)


def _explained(summary: str, details: list[str], failure: Failure, wrong, ask) -> KernelCheck:
    found: Diagnosis = ask(failure)
    suspects = found.statements
    count = int(np.count_nonzero(failure.wrong))
    if not suspects:
        suspects = ("nothing that is known here",)
        if count < FEWEST:
            suspects = (f"nothing in particular: only {count} of the elements {'is' if count == 1 else 'are'} wrong",)
    shown = () if wrong is None else picture(failure.wrong, failure.place)
    return KernelCheck(
        False, summary, 0 if wrong is None else int(wrong.sum()), failure.out.size, tuple(details), failure.place.text,
        suspects, found.ruled_out, shown, failure.case, wrong,
    )  # fmt: skip


def _worst(out: np.ndarray, case: KernelCase, usual: np.ndarray) -> list[str]:
    exact, bound, line = case.result, case.finite_bound, case.statistics
    if line is not None:
        exact, bound = line.middle, np.minimum(line.half, bound)
    error = np.abs(out - exact)
    excess = np.where(usual, np.where(bound > 0, error / bound, np.inf), -1.0)
    excess = np.where(np.isnan(excess), np.inf, excess)
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(excess)), excess.shape))
    row = i if case.lines is None else int(case.lines[i])
    return [
        f"worst: out[{row}, {j}] = {float(out[i, j])!r}, exact {float(case.result[i, j])!r}: "
        f"difference {out[i, j] - case.result[i, j]:.6g}, bound {bound[i, j]:.6g} ({excess[i, j]:.4g} times)",
        *_cause(case, i, j),
    ]


def _kinds_differ(out: np.ndarray, case: KernelCase, wrong: np.ndarray) -> list[str]:
    """Only elements without a finite bound are wrong: the first of them, and what else there is of its kind."""
    exact = case.result
    i, j = (int(x) for x in np.argwhere(wrong)[0])
    rows, columns = np.array([i]), np.array([j])
    model = case.finished(case.model(rows, case.sums_columns(columns))[0], rows, columns)
    return [
        f"first: out[{i}, {j}] = {float(out[i, j])!r}, exact {float(exact[i, j])!r}, the model {float(model[0, 0])!r}",
        f"of them {np.count_nonzero(wrong & np.isfinite(out))} are finite, "
        f"{np.count_nonzero(wrong & np.isinf(out))} infinite, {np.count_nonzero(wrong & np.isnan(out))} NaN",
        *_saturated(out, case, wrong),
    ]


def _saturated(out: np.ndarray, case: KernelCase, wrong: np.ndarray) -> list[str]:
    """The largest number of the output's format where the exact result is NaN."""
    fmt = tcm.get_format(case.out_format)
    lost = wrong & np.isnan(case.result)
    if not lost.any() or not isinstance(fmt, Format) or not (np.abs(out[lost]) == fmt.max_finite).all():
        return []
    return [f"looks like NaN that is saturated: {fmt.max_finite:g} in the place of NaN"]


def _cause(case: KernelCase, i: int, j: int) -> list[str]:
    """What the engine itself does on this element, stage by stage where that is known."""
    name = case.engine.formats[0].name
    same = name == case.engine.formats[1].name and name in {m.name for m in list_methods()}
    if case.scaling is not None or case.epilogue is not None or not same or name.startswith("e"):
        return []
    c = None if case.c is None else float(case.c[i, j])
    try:
        parts = attribute(name, case.a[i], case.b[:, j], c, engine=case.engine)
    except (ValueError, TypeError) as error:
        return [f"cause: not attributed ({error})"]
    if not math.isfinite(float(parts.total)):
        return []
    stages = ", ".join(f"{stage} {float(part):.3g}" for stage, part in parts.parts.items() if part) or "none"
    return [
        f"cause: the engine's own error here is {float(parts.total):.3g} ({stages}); the rest is not rounding of this engine"
    ]
