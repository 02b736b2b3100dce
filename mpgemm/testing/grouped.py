"""This module tests grouped products, as in mixtures of experts: rows of A in groups, each with its expert's B.

Each group is a case of its own (:class:`mpgemm.testing.case.KernelCase`), with its own diagnosis. Faults between groups
(another expert's B, scales or bias, rows that belong to the neighbour, rows of A that are read elsewhere) are explained
by the product of the same rows in another group.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.kernel_bound import used_operands
from mpgemm.bounds.populations import evenly
from mpgemm.bounds.sizes import multiply
from mpgemm.testing.call import format_of_result, sampled_rows
from mpgemm.testing.case import KernelCase, check_options, kernel_case
from mpgemm.testing.check import (
    KernelCheck,
    check_case,
    failed,
    looked_at,
    right_elements_in_words,
    with_narrower_format,
)
from mpgemm.testing.diagnosis import Diagnosis
from mpgemm.testing.diagnosis.failure import Failure, Finding, failure_of
from mpgemm.testing.diagnosis.places import TILES, place_of
from tensorcore_models.engines.engine import Engine

#: Largest number of explained failing groups, those with most wrong elements first.
EXPLAINED = 3


#: Number of groups whose errors are taken together if only some rows are checked: each costs as much as its bound, and sums
#: are narrow in all groups or in none.
TOGETHER = 3
#: Numbers of wrong and of right rows of a group on which suspicions are tried.
ROWS = 8


@dataclass(frozen=True)
class GroupedCall:
    """`GroupedCall` is a call of a grouped kernel.

    Attributes
    ----------
    a, b : ndarray, shapes (m, k) and (experts, k, n)
    ends : ndarray of int, shape (experts,)
        End of each expert's rows; they begin at the previous expert's end.
    c, scale_a, scale_b, residual : optional
        Addend, scales and residual, see :func:`assert_grouped_close`.
    options : dict
        Options of all groups, those of :func:`mpgemm.testing.gemm_tolerance`.
    """

    a: np.ndarray
    b: np.ndarray
    ends: np.ndarray
    c: Any
    scale_a: Any
    scale_b: Any
    residual: Any
    options: dict[str, Any]
    lines: np.ndarray | None = None  #: checked rows, None for all

    @cached_property
    def starts(self) -> np.ndarray:
        """Return the start of each expert's rows."""
        return np.concatenate([[0], self.ends[:-1]])

    def rows(self, expert: int) -> np.ndarray:
        """Return the checked rows of an expert."""
        first, last = self.starts[expert], self.ends[expert]
        if self.lines is None:
            return np.arange(first, last)
        return self.lines[(self.lines >= first) & (self.lines < last)]

    def case(
        self, rows: np.ndarray, expert: int, *, a_rows=None, scales_of: int | None = None, bias_of: int | None = None
    ) -> KernelCase:
        """Return the product of some rows with an expert, perhaps with other rows of A, or scales and bias of other experts."""
        read = rows if a_rows is None else a_rows
        return kernel_case(
            a=self.a[read], b=self.b[expert], c=self._bias(rows, expert if bias_of is None else bias_of),
            scale_a=_of_rows(self.scale_a, read, len(self.a)),
            scale_b=_of_expert(self.scale_b, expert if scales_of is None else scales_of, len(self.b)),
            residual=_of_rows(self.residual, rows, len(self.a)), **self.options,
        )  # fmt: skip

    def _bias(self, rows: np.ndarray, expert: int) -> Any:
        """Return C of some rows; if C has as many rows as there are experts, each is an expert's bias."""
        c = self.c
        if c is None or np.ndim(c) < 2:
            return c
        return c[expert] if len(c) == len(self.b) else _of_rows(c, rows, len(self.a))

    @property
    def biases_differ(self) -> bool:
        """Return whether each expert has its own bias."""
        return np.ndim(self.c) == 2 and len(self.c) == len(self.b)

    @property
    def scales_differ(self) -> bool:
        """Return whether each expert has its own scales."""
        return np.ndim(_first(self.scale_b)) > 0 and len(_first(self.scale_b)) == len(self.b)


def _first(scale: Any) -> Any:
    """Return the scales without the factor of the whole tensor beside them."""
    return scale[0] if isinstance(scale, tuple) else scale


def _of_rows(x: Any, rows: np.ndarray, m: int) -> Any:
    """Return the entries of some rows if an array has one for each row, else the whole array."""
    if isinstance(x, tuple):
        return (_of_rows(x[0], rows, m), *x[1:])
    return x if np.ndim(x) < 2 or len(x) != m else x[rows]


def _of_expert(x: Any, expert: int, experts: int) -> Any:
    """Return the entry of an expert if an array has one for each expert, else the whole array."""
    if isinstance(x, tuple):
        return tuple(_of_expert(each, expert, experts) for each in x)
    if np.ndim(x) == 0:
        return x
    if len(x) != experts:
        raise ValueError(
            f"scale_b must have one entry for each of {experts} experts, or be one number, got {len(x)} entries"
        )
    return x[expert]


def assert_grouped_close(out, a, b, ends, c=None, *, engine: Engine | str, **options: Any) -> None:
    """Fail unless the result of a grouped product is within the tolerances of all its groups.

    Parameters
    ----------
    out : array_like, shape (m, n), or (m, n / 2) with the epilogue swiglu
        The kernel's result; rows after the last end are not checked.
    a : array_like, shape (m, k)
        Rows of all groups, one group after the other.
    b : array_like, shape (experts, k, n)
        Matrix of each group (expert).
    ends : sequence of int, shape (experts,)
        Row at which each expert ends, as in torch's `offs`: expert e has rows ends[e - 1] to ends[e].
    c : array_like, shapes (experts, n), (m, n), (n,) or (), optional
        Addend: one bias for each expert (experts, n), a matrix (m, n), or one bias for all experts.
    **options
        Options of :func:`gemm_tolerance`, which hold for every group. Arrays are those of all groups together: `residual` has
        the shape (m, n), `scale_a` (m, ...) or is one number, `scale_b` (experts, ...) or is one number. `rows` is the number
        of evenly spread rows to check.

    Raises
    ------
    AssertionError
        If the error of an element exceeds its tolerance; the message gives the experts, the rows and an explanation.
    ValueError, TypeError
        See :func:`assert_gemm_close`; also if the ends do not rise from 0 to m, or their number is not that of the experts.
    """
    __tracebackhide__ = True
    found = check_grouped(out, a, b, ends, c, engine=engine, **options)
    if not found.passes:
        raise AssertionError(str(found))


def check_grouped(
    out, a, b, ends, c=None, *, engine, scale_a=None, scale_b=None, residual=None, **options: Any
) -> KernelCheck:
    """Return a report on whether the result of a grouped product is right.

    Parameters and errors are those of :func:`assert_grouped_close`.
    """
    check_options(options, ("out_format",))
    rows = options.pop("rows", None)
    computed, a, b = (tcm.as_array(x, name) for x, name in ((out, "out"), (a, "a"), (b, "b")))
    fmt = format_of_result(computed)
    limits = _checked_ends(a, b, ends)
    c, residual = (None if x is None else tcm.as_array(x, name) for x, name in ((c, "c"), (residual, "residual")))
    options = {"engine": engine, "out_format": fmt.name, **options}
    call = GroupedCall(a, b, limits, c, scale_a, scale_b, residual, options, sampled_rows(int(limits[-1]), rows))
    if computed.ndim != 2 or len(computed) != len(a):
        raise ValueError(f"out must have {len(a)} rows as a has, got the shape {computed.shape}")
    experts = [expert for expert in range(len(b)) if call.rows(expert).size]
    together = {experts[at] for at in evenly(len(experts), TOGETHER)}
    checks: dict[int, KernelCheck] = {}
    exact = np.zeros(computed.shape)
    with np.errstate(all="ignore"):
        for expert in experts:  # one after the other, because a case holds its operands in FP64
            taken = call.rows(expert)
            case = call.case(taken, expert)
            if computed.shape[1] != case.result.shape[1]:
                raise ValueError(
                    f"out must have {case.result.shape[1]} columns as b has, got the shape {computed.shape}"
                )
            found = check_case(computed[taken], case, int(taken[0]), call.lines is None or expert in together)
            exact[taken] = case.result
            checks[expert] = replace(found, case=None)
        failing = [expert for expert in experts if not checks[expert].passes]
        size = sum(checks[expert].elements for expert in experts)
        if not failing:
            filled = sum(int(x) > 0 for x in np.diff(limits, prepend=0))
            groups = f"{len(experts)} groups" if len(experts) == filled else f"{len(experts)} of {filled} groups"
            text = right_elements_in_words(size, int(limits[-1]) * computed.shape[1])
            return KernelCheck(True, f"{text} in {groups}", 0, size)
        found = _together(computed.astype(np.float64), exact, call, checks, failing)
    return with_narrower_format(
        found, computed,
        lambda narrow: check_grouped(
            narrow, a, b, ends, c, scale_a=scale_a, scale_b=scale_b, residual=residual,
            **{**options, "out_format": format_of_result(narrow).name, "rows": rows},
        ),
    )  # fmt: skip


def _checked_ends(a: np.ndarray, b: np.ndarray, ends: Any) -> np.ndarray:
    limits = np.asarray(ends)
    if a.ndim != 2 or b.ndim != 3 or a.shape[1] != b.shape[1]:
        raise ValueError(f"a and b must have the shapes (m, k) and (experts, k, n), got {a.shape} and {b.shape}")
    if limits.dtype.kind not in "iu" or limits.ndim != 1:
        raise TypeError(f"ends must be integers, the row at which each expert ends, got {ends!r}")
    if len(limits) != len(b) or len(b) == 0 or (np.diff(limits, prepend=0) < 0).any() or limits[-1] > len(a):
        raise ValueError(
            f"ends must be {len(b)} ascending numbers, one for each expert, from 0 to at most {len(a)}, got {limits.tolist()}"
        )
    return limits.astype(int)


def _together(out: np.ndarray, exact: np.ndarray, call: GroupedCall, checks, failing: list[int]) -> KernelCheck:
    """Return one result from those of all groups."""
    outside = np.zeros(out.shape, bool)
    for expert, check in checks.items():
        if check.outside is not None:
            outside[call.rows(expert)] = check.outside
    words = f"expert{'s' if len(failing) > 1 else ''} {', '.join(map(str, failing[:8]))}"
    words += f" and {len(failing) - 8} more" if len(failing) > 8 else ""
    size = sum(check.elements for check in checks.values())
    seen = looked_at(size, out[: call.ends[-1]].size)
    worst = sorted(failing, key=lambda expert: -checks[expert].wrong)
    first, taken = checks[worst[0]], call.rows(worst[0])
    summary = f"{outside.sum()} of {size} elements{seen} are outside of the tolerance of grouped products, in {words}"
    details = (f"expert {worst[0]}, rows {taken[0]} to {taken[-1]}: {first.summary}",)
    details += first.details
    if not outside.any():  # errors taken together, or a vacuous tolerance
        return KernelCheck(False, summary, 0, size, details, None, first.suspects, first.ruled_out, first.tried)
    said: dict[str, None] = {}
    for expert in worst[:EXPLAINED]:
        case = call.case(call.rows(expert), expert)
        own = explain(_failure(out, call, case, checks[expert], expert), call, expert)
        said |= dict.fromkeys(own or tuple(f"expert {expert}: {text}" for text in checks[expert].suspects))
    found = failed(
        summary,
        details,
        outside,
        place_of(outside, exact, _numbers(call)),
        Diagnosis(tuple(said), first.ruled_out, first.tried),
    )
    return replace(found, elements=size)


def _numbers(call: GroupedCall) -> np.ndarray | None:
    """Return the rows' numbers if only some are checked, so that no periods of them are named."""
    return None if call.lines is None else np.arange(len(call.a))


def _failure(out: np.ndarray, call: GroupedCall, case: KernelCase, check: KernelCheck, expert: int) -> Failure:
    outside = np.zeros(case.result.shape, bool) if check.outside is None else check.outside
    return failure_of(out[call.rows(expert)], case, outside & np.isfinite(case.bound))


def explain(f: Failure, call: GroupedCall, expert: int) -> tuple[str, ...]:
    """Return the best explanations of an expert's wrong rows; none if no other expert or row is involved."""
    if not f.rows.size or not f.wrong.any():
        return ()
    f = _of_some_rows(f)
    good = [finding for finding in _findings(f, call, expert) if finding.good]
    best = min((finding.fit for finding in good), default=math.inf)
    return tuple(dict.fromkeys(finding.text for finding in good if finding.fit <= 1.1 * best))


def _of_some_rows(f: Failure) -> Failure:
    """Return the failure with a few rows, wrong and right ones, because every suspicion is a product of its own."""
    wrong = f.wrong[f.rows, f.columns]
    kept = np.zeros(f.rows.shape, bool)
    for taken in (wrong, ~wrong):
        lines = np.unique(f.rows[taken])
        kept |= taken & np.isin(f.rows, lines[evenly(lines.size, ROWS)])
    return replace(f, rows=f.rows[kept], columns=f.columns[kept])


def _findings(f: Failure, call: GroupedCall, expert: int) -> Iterator[Finding]:
    group = call.rows(expert)
    lines, at = np.unique(f.rows, return_inverse=True)
    columns, across = np.unique(f.columns, return_inverse=True)
    wrong, rows = f.wrong[f.rows, f.columns], group[lines]
    tried = math.log(4 * len(call.b) + 8)
    where, are, have, read_a = _rows_in_words(group[np.flatnonzero(f.wrong.any(1))], group)

    def finding(text: str, chosen: int = expert, **swapped) -> Finding:
        values = _values(call.case(rows, chosen, **swapped), np.arange(len(rows)), columns)[at, across]
        return f.finding(np.where(wrong, values, f.true), text, 2.0, tried)

    for other in range(len(call.b)):
        if other == expert:
            continue
        text = f"{where} {are} multiplied with expert {other} in place of expert {expert}"
        text += _boundary(f, call, expert, other)
        yield finding(text, other)
        if call.scales_differ:
            yield finding(f"{where} {have} the scales of expert {other} in place of those of {expert}", scales_of=other)
            yield finding(f"{where} {have} B of expert {other} with the scales of {expert}", other, scales_of=expert)
        if call.biases_differ:
            yield finding(f"{where} {have} the bias of expert {other} in place of that of {expert}", bias_of=other)
    start = int(call.starts[expert])
    sizes = np.diff(call.ends, prepend=0)[:expert]
    steps: dict[int, str] = {}
    for tile in TILES:  # of two explanations that move a group equally, take the smaller offset
        step = int(np.sum(-(-sizes // tile) * tile)) - start
        steps.setdefault(step, f"at an offset padded to a multiple of {tile}, {step} rows ahead")
    for step, how in (
        *steps.items(),
        (1, "one row ahead"),
        (-1, "one row behind"),
        (-start, "from row 0 on: the offset of the group is lost"),
    ):
        read = rows + step
        if step and (read >= 0).all() and (read < len(call.a)).all():
            yield finding(f"{where} {read_a} A {how}", a_rows=read)


def _values(case: KernelCase, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return some elements of a right result, in FP64."""
    part = case.part(rows, case.sums_columns(columns))
    used = used_operands(case.engine, part.a, part.b, part.scaling)
    sums = multiply(used.a, used.b)
    return case.finished(sums if part.c is None else sums + part.c, rows, columns)


def _rows_in_words(rows: np.ndarray, group: np.ndarray) -> tuple[str, str, str, str]:
    """Return the wrong rows of a group in words, numbered in the whole result, and their verbs."""
    if rows.size == 1:
        return f"row {rows[0]}", "is", "has", "reads"
    text = f"{rows.size} rows from {rows[0]} to {rows[-1]}"
    if rows.size == group.size:
        text = f"all rows of the group, {group[0]} to {group[-1]},"
    elif rows[-1] - rows[0] + 1 == rows.size:
        text = f"rows {rows[0]} to {rows[-1]}"
    return text, "are", "have", "read"


def _boundary(f: Failure, call: GroupedCall, expert: int, other: int) -> str:
    """Return the boundary that the kernel uses, in words, from wrong rows at the end of a group next to the other one."""
    group = call.rows(expert)
    wrong = group[np.flatnonzero(f.wrong.any(1))]
    if wrong.size == group.size or wrong[-1] - wrong[0] + 1 != wrong.size:
        return ""
    filled = [e for e in range(len(call.b)) if call.rows(e).size]
    place = filled.index(expert)
    if wrong[0] == group[0] and place and filled[place - 1] == other:
        cut = int(wrong[-1]) + 1
    elif wrong[-1] == group[-1] and place + 1 < len(filled) and filled[place + 1] == other:
        cut = int(wrong[0])
    else:
        return ""
    tile = max((t for t in TILES if cut % t == 0), default=0)
    return f": the kernel takes the boundary to be at row {cut}{f', a multiple of {tile}' if tile else ''}"
