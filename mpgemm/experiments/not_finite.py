"""Finds operands that are not finite, and counts the exact results that are therefore infinite or NaN."""

from dataclasses import dataclass

import numpy as np

from mpgemm.experiments.cases import Case


@dataclass(frozen=True)
class NotFinite:
    """`NotFinite` counts the operands' elements and the exact results of one input that are not finite."""

    #: For each operand: name, number of elements that are not finite, row, column and value of the first of them.
    elements: tuple[tuple[str, int, int, int, float], ...]
    #: results, of: number of results that are not finite in exact arithmetic, and number of all results.
    results: int
    of: int

    def __str__(self) -> str:
        found = [
            f"{name} holds {count} element{'s' * (count != 1)} that {'are' if count != 1 else 'is'} not finite, "
            f"{'the first ' if count != 1 else ''}{name}[{i}, {j}] = {value:g}"
            for name, count, i, j, value in self.elements
        ]
        return f"{'; '.join(found)}, so {self.results} of {self.of} exact results are infinite or NaN."


def not_finite(case: Case) -> NotFinite:
    """Return the elements and results of a case that are not finite; raise ValueError if the product has no elements."""
    a, b, c = case.operands()
    m, n = a.shape[0], b.shape[1]
    if 0 in (m, n):
        raise ValueError(
            f"{case.label}: A is {m} x {a.shape[1]} and B is {b.shape[0]} x {n}, so the product is empty; "
            "expected at least one element to compare"
        )
    rows, columns = ~np.isfinite(a).all(axis=1), ~np.isfinite(b).all(axis=0)
    results = rows[:, None] | columns
    if c is not None:
        results = results | ~np.isfinite(c)
    found = []
    for name, x in (("A", a), ("B", b), ("C", c)):
        if x is not None and not np.isfinite(x).all():
            places = np.argwhere(~np.isfinite(x))
            i, j = (int(place) for place in places[0])
            found.append((name, len(places), i, j, float(x[i, j])))
    return NotFinite(tuple(found), int(np.count_nonzero(results)), m * n)
