"""This module rules out faults by the certified bounds of the wrong elements, if the kernel is right in everything else.

A fault with one free number is excluded if no number satisfies all wrong elements. Each statement concerns the fault
alone; two faults at once are not excluded.
"""

import numpy as np

from mpgemm.testing.diagnosis.failure import Failure
from tensorcore_models.formats import Format, get_format

#: Least number of wrong elements for a statement.
FEWEST = 4
#: Factor on a right kernel's bound that certainly covers C added up to twice.
SLACK = 4.0


def contradicted(f: Failure) -> tuple[str, ...]:
    """Return the excluded faults in words; none after an epilogue, or if wrong elements are not finite."""
    fmt = get_format(f.case.out_format)
    at = f.wrong & np.isfinite(f.exact)
    if f.case.epilogue is not None or not isinstance(fmt, Format) or np.count_nonzero(at) < FEWEST:
        return ()
    out, exact, bound = f.out[at], f.exact[at], f.bound[at]
    if not np.isfinite(out).all() or not np.isfinite(bound).all() or (np.abs(out) >= fmt.max_finite).any():
        return ()
    own = fmt.unit_roundoff * np.abs(out) * (1 + 2 * fmt.unit_roundoff) + fmt.min_subnormal
    found = []
    if out.any():
        found.append("elements that were never written (0)")
    if not any(_one_factor(sign * out, exact, bound, fmt.min_subnormal) for sign in (1, -1)):
        found.append("one factor for all wrong results")
    low, high = out - exact - bound - 2 * own, out - exact + bound + 2 * own
    if low.max() > high.min():
        found.append("one offset for all wrong results")
    if f.case.c is not None:
        c, spread = f.case.c[at], SLACK * bound + 2 * own
        for times, text in ((-1, "C left out"), (1, "C added twice"), (-2, "C subtracted")):
            if (np.abs(out - exact - times * c) > spread).any():
                found.append(f"{text} in all wrong elements")
    return tuple(found)


def _one_factor(out: np.ndarray, exact: np.ndarray, bound: np.ndarray, smallest: float) -> bool:
    """Return whether a factor above 0 exists with |out - factor exact| <= factor bound + smallest for all elements."""
    out, size = np.where(exact < 0, -out, out), np.abs(exact)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low = np.where(size + bound > 0, (out - smallest) / (size + bound), np.where(out > smallest, np.inf, 0.0))
        limit = (out + smallest) / (size - bound)
    high = np.where(size > bound, limit, np.inf)
    low = np.maximum(low, np.where(size < bound, limit, 0.0))
    none = (size == bound) & (out + smallest < 0)
    return not none.any() and bool(
        max(low.max(), 0.0) * (1 - 2.0**-40) <= high.min() * (1 + 2.0**-40) and high.min() > 0
    )
