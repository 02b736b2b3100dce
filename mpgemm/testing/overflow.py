"""What a right kernel may return where a sum, or the rounding to the output's format, may overflow.

There no finite bound is certified. A finite result means that nothing overflowed, so that the bound without overflow holds
for it; a result that is not finite must be of a kind and sign that a right kernel can have: those of the exact result,
those of the model where the kernel adds in the model's order, and for sums in several parts an infinity whose sign the
positive or the negative products can reach, or NaN where both can.
"""

import numpy as np

from mpgemm.testing.case import KernelCase
from tensorcore_models.formats import Format, get_format

#: Share of elements without a finite bound beyond which a test says too little.
UNBOUNDED = 0.1
FINITE, PLUS, MINUS, NAN = range(4)


def kinds(x: np.ndarray) -> np.ndarray:
    """Of each value whether it is finite, an infinity and which, or NaN."""
    x = np.asarray(x).astype(np.float64)
    return np.where(np.isnan(x), NAN, np.where(np.isfinite(x), FINITE, np.where(x > 0, PLUS, MINUS)))


def unbounded(allowed: KernelCase) -> np.ndarray:
    """Elements whose exact result is finite and whose bound is not."""
    return ~np.isfinite(allowed.bound) & np.isfinite(allowed.result)


def unbounded_line(allowed: KernelCase) -> str | None:
    """How many elements have no finite bound, and what is asked of them; None where all have one."""
    count, size = int(np.count_nonzero(unbounded(allowed))), allowed.bound.size
    if not count:
        return None
    return (
        f"{count} of {size} elements have no finite bound, since a sum or the result may overflow: there infinities and NaN "
        "are compared by kind and sign"
    )


def too_many_unbounded(allowed: KernelCase) -> str | None:
    """Why a test shows too little, None where enough elements have a finite bound."""
    if np.count_nonzero(unbounded(allowed)) <= UNBOUNDED * allowed.bound.size:
        return None
    return (
        f"{unbounded_line(allowed)}; where they are more than {UNBOUNDED:.0%} a test shows too little. Use smaller operands, "
        "or a wider output format."
    )


def right_elements(out: np.ndarray, allowed: KernelCase) -> np.ndarray:
    """Which elements, in the kernel's output format, a right kernel can have returned."""
    values = out.astype(np.float64)
    exact = allowed.result
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(allowed.error_of(out))
        right = np.isfinite(values) & (error <= allowed.finite_bound)
    special = ~np.isfinite(allowed.bound)
    if not special.any():
        return right
    rows, columns = np.flatnonzero(special.any(1)), np.flatnonzero(special.any(0))
    part = np.ix_(rows, columns)
    kind = kinds(values[part])
    possible = _possible(allowed, rows, columns)
    fits = np.take_along_axis(possible, kind[None], 0)[0]
    fits &= (kind != FINITE) | right[part]
    fmt = get_format(allowed.out_format)
    if isinstance(fmt, Format) and fmt.bits <= 8:  # kernels saturate these formats
        with np.errstate(invalid="ignore"):
            beyond = np.abs(exact[part]) + allowed.finite_bound[part] >= fmt.max_finite
        beyond |= np.isinf(exact[part])
        fits |= beyond & (values[part] == np.copysign(fmt.max_finite, exact[part]))
    right[part] = np.where(special[part], fits, right[part])
    return right


def _possible(allowed: KernelCase, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """For each kind whether a right kernel can return it, shape (kinds, rows, columns)."""
    part = np.ix_(rows, columns)
    exact, bound = allowed.result[part], allowed.finite_bound[part]
    found = np.zeros((4, *exact.shape), bool)

    def add(kind: np.ndarray, where: np.ndarray | bool = True) -> None:
        for each in range(4):
            found[each] |= (kind == each) & where

    with np.errstate(over="ignore", invalid="ignore"):
        given = np.isfinite(exact)
        add(kinds(allowed.rounded(exact)), ~given)
        for model in allowed.model(rows, allowed.sums_columns(columns)):
            add(kinds(allowed.rounded(allowed.finished(model, rows, columns))))
        if allowed.order.known or allowed.epilogue is not None:
            return found
        plus, minus = _reaches(allowed, rows, columns)
        found[FINITE] |= given
        found[PLUS] |= given & plus
        found[MINUS] |= given & minus
        found[NAN] |= given & plus & minus
        for sign in (-1, 1):  # the result itself, at the far end of its bound
            add(kinds(allowed.rounded(exact + sign * np.where(given, bound, 0.0))), given)
    return found


def _reaches(allowed: KernelCase, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether a partial sum can overflow to plus, and to minus infinity: all products of that sign reach the largest number."""
    a, b = allowed.a[rows], allowed.b[:, columns]
    sums = a @ b
    sizes = np.abs(a) @ np.abs(b)
    if allowed.c is not None:
        c = allowed.c[np.ix_(rows, columns)]
        sums, sizes = sums + c, sizes + np.abs(c)
    bound = allowed.finite_bound[np.ix_(rows, columns)]
    limit = allowed.overflow_from
    return (sizes + sums) / 2 + bound >= limit, (sizes - sums) / 2 + bound >= limit
