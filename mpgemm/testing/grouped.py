"""Tests of grouped products, as in mixtures of experts: rows of A in groups, each multiplied with the B of its expert.

Each group is a case of its own (:class:`mpgemm.testing.case.KernelCase`); what is wrong between groups (another expert's B,
scales or bias, rows at a boundary that belong to the neighbour, rows of A that are read elsewhere) is explained in
:mod:`mpgemm.testing.diagnosis.groups`.
"""

from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm.testing.case import KernelCase
from mpgemm.testing.check import KernelCheck, check_case
from mpgemm.testing.diagnosis.failure import Failure, failure_of
from mpgemm.testing.diagnosis.groups import explain
from mpgemm.testing.diagnosis.places import picture, place_of
from mpgemm.testing.grouped_call import GroupedCall

#: Failing groups that are explained at most, those with most wrong elements.
EXPLAINED = 3


def assert_grouped_close(
    out, a, b, ends, c=None, *, engine, scale_a=None, scale_b=None, residual=None, **options: Any
) -> None:
    """Fail unless the result of a grouped product is within the tolerances of all its groups.

    Parameters
    ----------
    out : array_like, shape (m, n), (m, n / 2) behind swiglu
        The kernel's result; rows behind the last end are not looked at.
    a : array_like, shape (m, k)
        The rows of all groups, one behind the other.
    b : array_like, shape (experts, k, n)
    ends : sequence of int, shape (experts,)
        Where the rows of each expert end, as torch's `offs`: expert e has rows ends[e - 1] to ends[e].
    c : array_like, shapes (experts, n), (m, n), (n,) or (), optional
        What is added: a bias for each expert (where there are as many rows as experts), a matrix, or one bias for all.
    scale_a : optional
        Scales of A, (m, ...) or one number; read for each group (:func:`tensorcore_models.read_scales`).
    scale_b : optional
        Scales of B, (experts, ...) or one number.
    residual : array_like, shape (m, n), optional
    **options
        What :func:`gemm_tolerance` takes for each group: splits, k_order, promote_every, input_rounding, epilogue.

    Raises
    ------
    AssertionError
        If an element is outside, with the experts and rows, and what explains it.
    ValueError, TypeError
        As :func:`assert_gemm_close`; and if the ends do not rise from 0 to m, or are not as many as there are experts.
    """
    __tracebackhide__ = True
    found = check_grouped(
        out, a, b, ends, c, engine=engine, scale_a=scale_a, scale_b=scale_b, residual=residual, **options
    )
    if not found.passes:
        raise AssertionError(str(found))


def check_grouped(
    out, a, b, ends, c=None, *, engine, scale_a=None, scale_b=None, residual=None, **options: Any
) -> KernelCheck:
    """Whether the result of a grouped product is right; parameters and errors as :func:`assert_grouped_close`."""
    if options.get("rows") is not None:
        raise ValueError("rows= goes with one product: leave it out, or check a group with check_gemm")
    computed, a, b = (tcm.as_array(x, name) for x, name in ((out, "out"), (a, "a"), (b, "b")))
    fmt = tcm.format_of_dtype(computed.dtype)
    if fmt is None:
        raise TypeError(f"out has elements of type {computed.dtype}, expected a floating-point format")
    limits = _checked_ends(a, b, ends)
    c, residual = (None if x is None else tcm.as_array(x, name) for x, name in ((c, "c"), (residual, "residual")))
    options = {"engine": engine, "out_format": fmt.name, **options}
    call = GroupedCall(a, b, limits, c, scale_a, scale_b, residual, options)
    if computed.ndim != 2 or len(computed) != len(a):
        raise ValueError(f"out has shape {computed.shape}, expected {len(a)} rows as a has")
    cases = {expert: call.case(call.rows(expert), expert) for expert in range(len(b)) if call.rows(expert).size}
    for case in cases.values():
        if computed.shape[1] != case.result.shape[1]:
            raise ValueError(f"out has shape {computed.shape}, expected {case.result.shape[1]} columns from b")
    with np.errstate(all="ignore"):
        checks = {expert: check_case(computed[call.rows(expert)], case) for expert, case in cases.items()}
        failing = [expert for expert, check in checks.items() if not check.passes]
        if not failing:
            text = f"every element of {len(cases)} groups is right"
            return KernelCheck(True, text, 0, computed[: limits[-1]].size)
        return _together(computed.astype(np.float64), call, cases, checks, failing)


def _checked_ends(a: np.ndarray, b: np.ndarray, ends: Any) -> np.ndarray:
    limits = np.asarray(ends)
    if a.ndim != 2 or b.ndim != 3 or a.shape[1] != b.shape[1]:
        raise ValueError(f"a is {a.shape} and b is {b.shape}, expected (m, k) and (experts, k, n)")
    if limits.dtype.kind not in "iu" or limits.ndim != 1:
        raise TypeError(f"ends is {ends!r}, expected integers: where the rows of each expert end")
    if len(limits) != len(b) or len(b) == 0 or (np.diff(limits, prepend=0) < 0).any() or limits[-1] > len(a):
        raise ValueError(
            f"ends is {limits.tolist()}, expected {len(b)} numbers, one for each expert, that rise from 0 to {len(a)} at most"
        )
    return limits.astype(int)


def _together(out: np.ndarray, call: GroupedCall, cases, checks, failing: list[int]) -> KernelCheck:
    """One result of those of all groups."""
    outside, exact = np.zeros(out.shape, bool), np.zeros(out.shape)
    for expert, case in cases.items():
        exact[call.rows(expert)] = case.result
        if checks[expert].outside is not None:
            outside[call.rows(expert)] = checks[expert].outside
    words = f"expert{'s' if len(failing) > 1 else ''} {', '.join(map(str, failing[:8]))}"
    words += f" and {len(failing) - 8} more" if len(failing) > 8 else ""
    size = out[: call.ends[-1]].size
    worst = sorted(failing, key=lambda expert: -checks[expert].wrong)
    first = checks[worst[0]]
    summary = f"{outside.sum()} of {size} elements are outside of the tolerance of grouped products, in {words}"
    details = (f"expert {worst[0]}, rows {call.starts[worst[0]]} to {call.ends[worst[0]] - 1}: {first.summary}",)
    details += first.details
    if not outside.any():  # errors taken together, or a tolerance that says nothing
        return KernelCheck(False, summary, 0, size, details, None, first.suspects, first.ruled_out)
    said: dict[str, None] = {}
    for expert in worst[:EXPLAINED]:
        found = explain(_failure(out, call, cases[expert], checks[expert], expert), call, expert)
        own = found or tuple(f"expert {expert}: {text}" for text in checks[expert].suspects)
        said |= dict.fromkeys(own)
    place = place_of(outside, exact)
    return KernelCheck(
        False,
        summary,
        int(outside.sum()),
        size,
        details,
        place.text,
        tuple(said),
        first.ruled_out,
        picture(outside, place),
        None,
        outside,
    )


def _failure(out: np.ndarray, call: GroupedCall, case: KernelCase, check: KernelCheck, expert: int) -> Failure:
    outside = np.zeros(case.result.shape, bool) if check.outside is None else check.outside
    return failure_of(out[call.rows(expert)], case, outside & np.isfinite(case.bound))
