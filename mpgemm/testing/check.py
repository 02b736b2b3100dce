"""This module checks a kernel's result, finds where it is wrong and what explains it; messages and JSON use one result.

Assertions are checks that raise an error with their findings: :func:`assert_gemm_close` checks a tolerance
(:func:`mpgemm.testing.recipe_bits.assert_bits` a recipe's bits).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.attribution import attribute
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.testing.call import format_of_result
from mpgemm.testing.case import KernelCase, KernelOptions, gemm_tolerance
from mpgemm.testing.diagnosis import FEWEST, Diagnosis, diagnose, diagnose_errors
from mpgemm.testing.diagnosis.failure import NO_FAULT, Failure, failure_of
from mpgemm.testing.diagnosis.places import Place, picture
from mpgemm.testing.integers import check_integers
from mpgemm.testing.possible_results import right_elements, spread_of, too_many_unbounded, unbounded_line
from mpgemm.testing.recovered_case import RecoveredCase, recovered_case
from mpgemm.testing.sampled import needed
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.results import Result

#: Types of the outputs of integer kernels.
INTEGERS = (np.dtype("int32"), np.dtype("int8"), np.dtype("uint8"))
#: Formats that kernels round their results to.
NARROWER = ("bf16", "fp16")
#: Formats of operands whose values files keep in float32, the narrowest first.
OPERANDS = ("e4m3fn", "e5m2", *NARROWER)


@dataclass(frozen=True, repr=False)
class KernelCheck(Result):
    """`KernelCheck` is the verdict on a kernel's result, with an explanation.

    Attributes
    ----------
    passes : bool
        Whether the result is right.
    summary : str
        First line of the report: for a wrong result its error, for a right one the tolerance that it meets.
    wrong : int
        Number of elements outside the tolerance.
    elements : int
        Number of elements that were checked.
    details : tuple of str
        Sentences on the tolerance and the worst element.
    place : str or None
        Place of the wrong elements, as a sentence.
    suspects : tuple of str
        Faults, such as a wrong tile, that explain which elements are wrong, which are right, and how large the errors are.
    ruled_out : tuple of str
        Faults that certified bounds exclude, if the kernel has only one fault.
    tried : tuple of str
        Faults with their parameters that do not explain the result; with other parameters they might.
    fitting : tuple of str
        Faults that explain the result, but may do so by chance because it has few elements.
    picture : tuple of str
        Map of the right and wrong blocks of the result, as text.
    case : KernelCase or None
        Checked call; None if the result must equal exact integers.
    outside : ndarray of bool or None
        Mask of the elements outside the tolerance.
    """

    passes: bool
    summary: str
    wrong: int
    elements: int
    details: tuple[str, ...] = ()
    place: str | None = None
    suspects: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    case: KernelCase | None = None
    outside: np.ndarray | None = None
    fitting: tuple[str, ...] = ()

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {
            "passes": self.passes, "message": None if self.passes else str(self), "wrong": self.wrong,
            "elements": self.elements, "place": self.place, "suspects": list(self.suspects), "ruled_out": list(self.ruled_out),
            "tried": list(self.tried), "fitting": list(self.fitting),
        }  # fmt: skip

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [self.to_dict()]

    def __str__(self) -> str:
        lines = [self.summary, *(f"  {text}" for text in self.details)]
        if self.place is not None:
            lines.append(f"  where: {self.place}")
        lines += [f"    {row}" for row in self.picture]
        lines += [f"  looks like {text}" for text in self.suspects]
        if self.fitting:
            lines.append(f"  fits, but may do so by chance on so few elements: {'; '.join(self.fitting)}")
        if self.suspects and not self.suspects[0].startswith(NO_FAULT):
            others = len(self.ruled_out) + len(self.tried)
            more = f"  {others} other faults do not explain the result: --json, or ruled_out and tried in Python"
            return "\n".join([*lines, more] if others else lines)
        if self.ruled_out:
            lines.append(f"  ruled out by certified bounds, each as the only fault: {'; '.join(self.ruled_out)}")
        if self.tried:
            lines.append(f"  tried, each as the only fault, without explaining the result: {'; '.join(self.tried)}")
        return "\n".join(lines)


def looked_at(elements: int, of: int) -> str:
    """Return the number of checked elements of a statement in words; "" if all elements are checked."""
    return "" if elements == of else f" checked (of {of})"


def right_elements_in_words(elements: int, of: int) -> str:
    """Return the first words on a result that passes: every element is right, or the checked ones are."""
    return (
        "every element is right" if elements == of else f"{elements} of {of} elements were checked, and all are right"
    )


def check_gemm(
    out,
    a,
    b,
    c=None,
    *,
    engine=None,
    method=None,
    zero_a=None,
    zero_b=None,
    scale_out=None,
    zero_out=None,
    **options: Unpack[KernelOptions],
) -> KernelCheck:
    """Return a report on whether a kernel's result is right.

    Parameters and errors are those of :func:`assert_gemm_close`, which raises an error with this report.

    Returns
    -------
    KernelCheck
    """
    computed = tcm.as_array(out, "out")
    ends = (zero_a, zero_b, scale_out, zero_out)
    if engine is None and method is None:
        raise ValueError(
            "got neither an engine nor a method: give the unit, or the recovery method that the kernel computes"
        )
    if computed.dtype in INTEGERS:
        return _integers(computed, a, b, c, engine, ends, {"method": method, **options})
    if ends != (None, None, None, None):
        raise ValueError(
            f"zero points and scale_out need an output of int32, int8 or uint8, got {computed.dtype}: leave zero points and "
            "scale_out out"
        )
    fmt = format_of_result(computed, ", int32, int8 or uint8")
    if method is None:
        case = gemm_tolerance(engine, a, b, c, out_format=fmt.name, **options)
    else:
        case = recovered_case(method, engine, a, b, c, out_format=fmt.name, **options)
    shape = (np.shape(a)[0], case.result.shape[1])
    if computed.shape != shape:
        turned = "; out.T has that shape: does the kernel write C transposed?" if computed.shape == shape[::-1] else ""
        raise ValueError(f"out must have the shape {shape} of the product of a and b, got {computed.shape}{turned}")
    with np.errstate(all="ignore"):
        held = check_case(computed if case.lines is None else computed[case.lines], case, of=computed.size)
    judged = with_narrower_format(
        held, computed, lambda narrow: check_gemm(narrow, a, b, c, engine=engine, method=method, **options)
    )
    if method is not None or any(fmt.name != "fp32" for fmt in case.engine.formats[:2]):
        return judged
    return with_narrower_operands(judged, a, b, lambda x, y: check_gemm(out, x, y, c, engine=engine, **options))


def _integers(computed: np.ndarray, a, b, c, engine, ends: tuple, options: dict) -> KernelCheck:
    """Return the check of an integer result."""
    allowed = {"scale_a", "scale_b"}
    unfit = [name for name, value in options.items() if name not in allowed and value not in (None, 1)]
    if unfit:
        raise ValueError(
            f"got {', '.join(unfit)} with out of type {computed.dtype}, whose integer sums "
            "are exact in every order: leave all options but scale_a and scale_b out"
        )
    found = check_integers(computed, a, b, c, engine, options.get("scale_a"), options.get("scale_b"), *ends)
    if found is None:
        return KernelCheck(True, "every element is exact", 0, computed.size)
    return failed(found.summary, [found.first], found.outside, found.place, Diagnosis(found.suspects))


def with_narrower_operands(
    found: KernelCheck, a, b, again: Callable[[np.ndarray, np.ndarray], KernelCheck]
) -> KernelCheck:
    """Return the check with a remark if a failing FP32 result has operands that all are numbers of a narrower format.

    Parameters
    ----------
    found : KernelCheck
        Check of the result as a product of FP32.
    a, b : array_like
    again : callable
        Function that checks the result for operands in another format; it raises ValueError if the device has no unit for them.
    """
    if found.passes:
        return found
    given = [tcm.as_array(x, name) for x, name in ((a, "a"), (b, "b"))]
    if not all(np.any(x) for x in given):
        return found
    for name in OPERANDS:
        dtype = np.dtype(get_float_format(name).dtype)
        with np.errstate(all="ignore"):
            narrow = [x.astype(dtype) for x in given]
        if not all(np.array_equal(n.astype(x.dtype), x, equal_nan=True) for n, x in zip(narrow, given, strict=True)):
            continue
        try:
            passes = again(*narrow).passes
        except ValueError:  # the device has no unit for this format
            continue
        how = "and in this format out passes" if passes else "but in this format out fails, too"
        text = (
            f"a and b are {given[0].dtype}, but every element is a number of {name}, {how}: say --operands {name}, in Python "
            f"a.astype('{dtype.name}')"
        )
        if passes:
            return replace(found, suspects=(f"a product of narrower operands: {text}",))
        return replace(found, details=(text, *found.details))
    return found


def with_narrower_format(
    found: KernelCheck, out: np.ndarray, again: Callable[[np.ndarray], KernelCheck]
) -> KernelCheck:
    """Return the check with a remark if all elements of a failing result are numbers of a narrower format.

    Parameters
    ----------
    found : KernelCheck
        Check of the result.
    out : ndarray
        Result of the kernel; only float32 and float64 get a remark.
    again : callable
        Function that checks a result in another format.
    """
    if found.passes or out.dtype not in (np.float32, np.float64) or not np.any(out):
        return found
    with np.errstate(all="ignore"):
        narrow = {name: out.astype(get_float_format(name).dtype) for name in NARROWER}
    name = next(
        (name for name, cast in narrow.items() if np.array_equal(cast.astype(out.dtype), out, equal_nan=True)), None
    )
    if name is None:
        return found
    passes = (
        "and in this format the result passes"
        if again(narrow[name]).passes
        else "but in this format the result fails, too"
    )
    text = (
        f"out is {out.dtype}, but every element is a number of {name}, {passes}: say --out-format {name}, in Python "
        f"out.astype('{narrow[name].dtype.name}')"
    )
    return replace(found, details=(text, *found.details))


def check_case(
    computed: np.ndarray, case: KernelCase, start: int = 0, together: bool = True, of: int = 0
) -> KernelCheck:
    """Return the check of a result in the case's output format.

    `start` is the number of its first row in the test's result. `together` says whether all errors are also compared
    with those of right kernels. `of` is the number of elements of the test's result if this is a part, else 0.
    """
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
    seen = looked_at(out.size, of or out.size)
    if not right.all():
        return _failed(out, case, ~right, start, seen)
    if (few := too_many_unbounded(case)) is not None:
        return KernelCheck(False, few, 0, out.size, case=case)
    spread = spread_of(out, case) if together else None
    if spread is None or spread.right:
        text = right_elements_in_words(out.size, of or out.size)
        if spread is not None and isinstance(case, RecoveredCase):
            text = (
                f"{text} (errors {spread.times:.2g} times those of the method; up to {spread.allowed} times is right)"
            )
        return KernelCheck(True, f"{text} for {case.label}", 0, out.size, case=case)
    summary = (
        f"each of the elements{seen} is within the tolerance of {case.label}, but taken together they are not: {spread}"
    )
    return _explained(
        summary, [], failure_of(out, case, np.isfinite(case.bound) & np.isfinite(out)), None, diagnose_errors
    )


def _failed(out: np.ndarray, case: KernelCase, wrong: np.ndarray, start: int, seen: str) -> KernelCheck:
    line = case.statistics
    kind = "certified" if line is None else "statistical"
    count = np.count_nonzero(wrong)
    summary = f"{count} of {wrong.size} elements{seen} are outside of the {kind} tolerance of {case.label}"
    details = [] if line is None else [str(line) if isinstance(case, RecoveredCase) else f"{line}; {needed(case)}"]
    if case.lines is not None:
        details.append(f"{case.lines.size} rows were checked, evenly spread, from {case.lines[0]} to {case.lines[-1]}")
    if case.scaling is not None:
        details.append(f"scales: {case.scaling.in_words()}")
    if case.epilogue is not None:
        details.append(f"epilogue: {case.epilogue.name}")
    if (text := unbounded_line(case)) is not None:
        details.append(text)
    usual = wrong & np.isfinite(case.bound)
    if not usual.any():
        details += _kinds_differ(out, case, wrong, start)
        return KernelCheck(False, summary, int(wrong.sum()), wrong.size, tuple(details), case=case, outside=wrong)
    return _explained(
        summary, [*details, *_worst(out, case, usual, start)], failure_of(out, case, usual), wrong, diagnose
    )


def _explained(summary: str, details: list[str], failure: Failure, wrong, ask) -> KernelCheck:
    found: Diagnosis = ask(failure)
    count = int(np.count_nonzero(failure.wrong))
    if not found.statements and count < FEWEST:
        text = f"{NO_FAULT}: only {count} of the elements {'is' if count == 1 else 'are'} wrong"
        found = replace(found, statements=(text,))
    check = failed(summary, details, failure.wrong, failure.place, found, failure.case)
    if wrong is None:
        return replace(check, wrong=0, picture=(), outside=None)
    if check.picture and count > 2 * wrong.sum():  # this check finds many elements that the tolerance accepts
        what = f"{count} elements have larger errors than right kernels usually have:"
        check = replace(check, picture=(what, *check.picture))
    return replace(check, wrong=int(wrong.sum()), outside=wrong)


def failed(
    summary: str,
    details: Sequence[str],
    wrong: np.ndarray,
    place: Place,
    found: Diagnosis,
    case: KernelCase | None = None,
) -> KernelCheck:
    """Return the result of a check that fails: the error, its place, and its explanation."""
    return KernelCheck(
        False, summary, int(wrong.sum()), wrong.size, (*details, *found.remarks), place.text,
        found.statements or (NO_FAULT,), found.ruled_out, found.tried, picture(wrong, place), case, wrong,
        found.fitting,
    )  # fmt: skip


def _worst(out: np.ndarray, case: KernelCase, usual: np.ndarray, start: int) -> list[str]:
    exact, bound, line = case.result, case.finite_bound, case.statistics
    if line is not None:
        exact, bound = line.middle, np.minimum(line.half, bound)
    error = np.abs(out - exact)
    excess = np.where(usual, np.where(bound > 0, error / bound, np.inf), -1.0)
    excess = np.where(np.isnan(excess), np.inf, excess)
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(excess)), excess.shape))
    row = start + i if case.lines is None else int(case.lines[i])
    return [
        f"worst: out[{row}, {j}] = {float(out[i, j])!r}, exact {float(case.result[i, j])!r}: "
        f"difference {out[i, j] - case.result[i, j]:.6g}, bound {bound[i, j]:.6g} ({excess[i, j]:.4g} times)",
        *_cause(case, i, j),
    ]


def _kinds_differ(out: np.ndarray, case: KernelCase, wrong: np.ndarray, start: int) -> list[str]:
    """Return details if only elements without a finite bound are wrong: the first of them, and counts of each kind."""
    exact = case.result
    i, j = (int(x) for x in np.argwhere(wrong)[0])
    rows, columns = np.array([i]), np.array([j])
    model = case.finished(case.model(rows, case.sums_columns(columns))[0], rows, columns)
    return [
        f"first: out[{start + i}, {j}] = {float(out[i, j])!r}, exact {float(exact[i, j])!r}, the model {float(model[0, 0])!r}",
        f"of them {np.count_nonzero(wrong & np.isfinite(out))} are finite, "
        f"{np.count_nonzero(wrong & np.isinf(out))} infinite, {np.count_nonzero(wrong & np.isnan(out))} NaN",
        *_saturated(out, case, wrong),
    ]


def _saturated(out: np.ndarray, case: KernelCase, wrong: np.ndarray) -> list[str]:
    """Return the statement that NaN is saturated, if the result has the format's largest number where the exact one is NaN."""
    fmt = tcm.get_format(case.out_format)
    lost = wrong & np.isnan(case.result)
    if not lost.any() or not isinstance(fmt, Format) or not (np.abs(out[lost]) == fmt.max_finite).all():
        return []
    return [f"looks like saturated NaN: {fmt.max_finite:g} in place of NaN"]


def _cause(case: KernelCase, i: int, j: int) -> list[str]:
    """Return a sentence on the engine's own errors in this element, stage by stage if they are known."""
    if case.epilogue is not None or case.attributed is None:
        return []
    method, engine = case.attributed
    c = None if case.c is None else float(case.c[i, j])
    try:
        parts = attribute(method, case.a[i], case.b[:, j], c, engine)
    except (ValueError, TypeError) as error:
        return [f"cause: not attributed ({error})"]
    if not math.isfinite(float(parts.total)):
        return []
    stages = ", ".join(f"{stage} {float(part):.3g}" for stage, part in parts.parts.items() if part) or "none"
    return [
        f"cause: the engine's own error here is {float(parts.total):.3g} ({stages}); the rest is not rounding of this engine"
    ]


def assert_gemm_close(
    out,
    a,
    b,
    c=None,
    *,
    engine: Engine | str | None = None,
    method: str | RecoveryMethod | None = None,
    zero_a=None,
    zero_b=None,
    scale_out: float | None = None,
    zero_out: int | None = None,
    **options: Unpack[KernelOptions],
) -> None:
    """Fail unless a kernel's result is within the certified tolerance of the exact product.

    Parameters
    ----------
    out : array_like, shape (m, n), or (m, n / 2) with the epilogue swiglu
        The kernel's result; its type is the output format.
    a, b, c, engine, **options
        See :func:`gemm_tolerance`.
    method : str or RecoveryMethod, optional
        Recovery method that the kernel computes, such as "sgemm_cube" or "sgemm_cube:terms=4"; `engine` is then the unit that
        multiplies the words, by default the method's own. The tolerance is statistical, from right kernels of the method in
        random orders of additions. Of the options only epilogue, residual and rows are allowed.
    zero_a, zero_b : int or array_like of int, optional
        Zero points for integer outputs: one number for the whole matrix, or one for each row of A or column of B. The product
        is (A - zero_a) (B - zero_b).
    scale_out, zero_out : optional
        Scale and zero point of outputs of 8 bits: clamp(round(scale_a scale_b / scale_out * sum) + zero_out).

    Raises
    ------
    AssertionError
        In one of four cases. (1) The error of an element exceeds its bound, or an element is finite where only an infinity or
        NaN is right. The bound is certified; if the certified bound would miss more than half of all dropped blocks of k, a
        statistical bound replaces it (:mod:`mpgemm.testing.sampled`). (2) The errors of all elements together are larger than
        those of right kernels, for example because sums are kept in a narrower format
        (:mod:`mpgemm.testing.possible_results`). (3) A kernel that writes zeros would pass. (4) More than a tenth of the
        elements have no finite bound, because they may overflow. The message gives the worst element, its bound, the place of
        the errors, their explanation and the faults that are ruled out (:class:`KernelCheck`).
    ValueError, TypeError
        See :func:`gemm_tolerance`; also if the result has another shape or no format.
    """
    __tracebackhide__ = True
    integers = {"zero_a": zero_a, "zero_b": zero_b, "scale_out": scale_out, "zero_out": zero_out}
    found = check_gemm(out, a, b, c, engine=engine, method=method, **integers, **options)
    if not found.passes:
        raise AssertionError(str(found))
