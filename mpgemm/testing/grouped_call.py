"""One call of a grouped kernel: rows of A in groups, experts, and what belongs to each."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mpgemm.testing.case import KernelCase, gemm_tolerance


@dataclass(frozen=True)
class GroupedCall:
    """One call of a grouped kernel.

    Attributes
    ----------
    a, b : ndarray, shapes (m, k) and (experts, k, n)
    ends : ndarray of int, shape (experts,)
        Where the rows of each expert end; they begin where those of the expert before end.
    c, scale_a, scale_b, residual : optional
        As :func:`assert_grouped_close` is given them.
    options : dict
        What all groups share, as of :func:`mpgemm.testing.gemm_tolerance`.
    """

    a: np.ndarray
    b: np.ndarray
    ends: np.ndarray
    c: Any
    scale_a: Any
    scale_b: Any
    residual: Any
    options: dict[str, Any]

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the rows of each expert begin."""
        return np.concatenate([[0], self.ends[:-1]])

    def rows(self, expert: int) -> np.ndarray:
        """The rows of an expert."""
        return np.arange(self.starts[expert], self.ends[expert])

    def case(
        self, rows: np.ndarray, expert: int, *, a_rows=None, scales_of: int | None = None, bias_of: int | None = None
    ) -> KernelCase:
        """The product of some rows with an expert; perhaps with other rows of A, or scales and bias of other experts."""
        read = rows if a_rows is None else a_rows
        return gemm_tolerance(
            a=self.a[read], b=self.b[expert], c=self._bias(rows, expert if bias_of is None else bias_of),
            scale_a=_of_rows(self.scale_a, read, len(self.a)),
            scale_b=_of_expert(self.scale_b, expert if scales_of is None else scales_of, len(self.b)),
            residual=_of_rows(self.residual, rows, len(self.a)), **self.options,
        )  # fmt: skip

    def _bias(self, rows: np.ndarray, expert: int) -> Any:
        """C of some rows: one row for each expert where it has as many rows as there are experts."""
        c = self.c
        if c is None or np.ndim(c) < 2:
            return c
        return c[expert] if len(c) == len(self.b) else _of_rows(c, rows, len(self.a))

    @property
    def biases_differ(self) -> bool:
        """Whether each expert has a bias of its own."""
        return np.ndim(self.c) == 2 and len(self.c) == len(self.b)

    @property
    def scales_differ(self) -> bool:
        """Whether each expert has scales of its own."""
        return np.ndim(_first(self.scale_b)) > 0 and len(_first(self.scale_b)) == len(self.b)


def _first(scale: Any) -> Any:
    """The scales without a factor of the whole tensor beside them."""
    return scale[0] if isinstance(scale, tuple) else scale


def _of_rows(x: Any, rows: np.ndarray, m: int) -> Any:
    """What belongs to some rows: those of an array with as many rows, all of anything else."""
    if isinstance(x, tuple):
        return (_of_rows(x[0], rows, m), *x[1:])
    return x if np.ndim(x) < 2 or len(x) != m else x[rows]


def _of_expert(x: Any, expert: int, experts: int) -> Any:
    """What belongs to an expert: its part of an array that holds one for each."""
    if isinstance(x, tuple):
        return tuple(_of_expert(each, expert, experts) for each in x)
    if np.ndim(x) == 0:
        return x
    if len(x) != experts:
        raise ValueError(f"scale_b holds {len(x)} parts for {experts} experts, expected one for each, or one number")
    return x[expert]
