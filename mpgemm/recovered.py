"""Runs a recovery method on a narrow matrix engine, to get products with FP32 (or FP64) accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpgemm.bounds.watching import JudgedProduct, hold, quick_run_bound
from mpgemm.exact.product import exact_gemm
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_count import Count
from mpgemm.recovery.word_run import RangeCounts, WordRun
from tensorcore_models.engines.engine import Engine
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

if TYPE_CHECKING:
    from mpgemm.recovery.integer_run import IntegerRun
    from mpgemm.recovery.own_run import OwnRun


@dataclass(frozen=True, repr=False)
class RecoveryResult(Result):
    """`RecoveryResult` holds the product of a recovery method, its cost, and how many elements left the words' range.

    Attributes
    ----------
    d : numpy.ndarray, shape (m, n)
        The product.
    method : RecoveryMethod
        The method that ran, with the options of the call. If the number of slices or moduli was chosen from the matrices,
        the method has that number; if no number is suitable, the method is the native product.
    engine : str
        Label of the engine.
    passes : int
        Number of engine products of the full size.
    a, b : RangeCounts
        Numbers of elements of A and of B that overflow or underflow the words.
    nonfinite : int
        Number of elements of d that are infinite or NaN.
    count : Count or None
        Reason for the number of slices or moduli; None if the number was not chosen from the matrices.
    """

    d: np.ndarray
    method: RecoveryMethod
    engine: str
    passes: int
    a: RangeCounts
    b: RangeCounts
    nonfinite: int
    count: Count | None = None

    def __str__(self) -> str:
        chosen = "" if self.count is None else f"{self.count}\n"
        return chosen + (
            f"{self.method.name} on {self.engine}: {self.passes} passes; "
            f"overflow {self.a.overflow} of A, {self.b.overflow} of B; "
            f"underflow {self.a.underflow} of A, {self.b.underflow} of B; {self.nonfinite} results not finite"
        )

    def __repr__(self) -> str:
        return f"<RecoveryResult {self.d.shape[0]} x {self.d.shape[1]} {self.d.dtype}: {str(self).splitlines()[-1]}>"

    def to_dict(self) -> dict[str, str | int]:
        """Return all fields except the product itself."""
        counts = {f"{name}_{x}": getattr(getattr(self, x), name) for name in ("overflow", "underflow") for x in "ab"}
        return {
            "method": self.method.name,
            "engine": self.engine,
            "passes": self.passes,
            **counts,
            "nonfinite": self.nonfinite,
            "count": "" if self.count is None else self.count.reason,
        }

    def to_rows(self) -> list[dict]:
        """Return all fields except the product itself."""
        return [self.to_dict()]


@default_fp_state
def recovered_gemm(
    a,
    b,
    c=None,
    method: str | RecoveryMethod = "ootomo",
    engine: Engine | str | None = None,
    *,
    strict: bool = False,
    overflow: str | None = None,
    verify: bool = False,
    **options,
) -> np.ndarray:
    """Return A B (+ C) with the bits that a recovery method gives on the model of a narrow matrix engine.

    Parameters
    ----------
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        Operands in fp64, fp32 or a narrower format, from which the words are split. The values of c must be exact in the
        format in which c is added (fp32, or fp64 for fp64 targets).
    method : str or RecoveryMethod
        A name of :func:`mpgemm.list_methods`.
    engine : Engine, str or None
        The engine that runs the products: an engine object, the name "arch:name" of an instruction, the name of a device such
        as "a100" (its default instruction for the method's words), "ieee", or None for the method's default. On the Ascend
        cube, `sgemm_cube` runs :func:`ascend.cube_gemm`, which rounds after every product; :func:`mpgemm.verdict` also
        evaluates one rounding per step.
    strict : bool
        Whether to raise if an element leaves the range of the words; otherwise the result is computed as hardware would.
    overflow : {"inf", "saturate"}, optional
        Value of a word that overflows: infinity, or the largest number. By default the method's own rule, or if it has none,
        the engine's (saturation on the Ascend 910A, infinity elsewhere).
    verify : bool
        Whether to compute the exact product too, and to raise if an element is outside of its certified bound
        (:mod:`mpgemm.bounds.watching`).
    **options
        Options of the method, which ``print(mpgemm.get_method(name))`` shows.

    Returns
    -------
    numpy.ndarray, shape (m, n)
        The product in the method's result format: float32, float64, or the engine's own result type for a method with one pass.

    Raises
    ------
    ValueError
        If shapes do not fit, the engine does not accept the method's words (the message names engines that do), an option is
        unknown, or c is not representable; with `strict`, if elements leave the words' range; with `verify`, if no bound is
        derived for the method.
    TypeError
        If an argument holds no real numbers.
    OutsideBound
        With `verify`, if an element is outside of its bound; this is a fault of this package, never of the operands.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.float32([[1 / 3, 2 / 3]])
    >>> recovered_gemm(a, a.T, method="ootomo", engine="a100")[0, 0]
    np.float32(0.55555564)
    """
    run = prepare(a, b, c, method, engine, overflow, options)
    if strict:
        _refuse_range(run)
    d = run.product()
    if verify:
        _verify(run, d, {"overflow": overflow, "options": {"method": str(getattr(method, "name", method)), **options}})
    return d


@default_fp_state
def recovered_gemm_report(
    a,
    b,
    c=None,
    method: str | RecoveryMethod = "ootomo",
    engine: Engine | str | None = None,
    *,
    strict: bool = False,
    overflow: str | None = None,
    verify: bool = False,
    **options,
) -> RecoveryResult:
    """Return the result of :func:`recovered_gemm` with the numbers of passes and of elements outside of the words' range.

    Parameters
    ----------
    a, b, c, method, engine, strict, overflow, verify, **options
        See :func:`recovered_gemm`.

    Raises
    ------
    ValueError, TypeError, OutsideBound
        See :func:`recovered_gemm`.
    """
    run = prepare(a, b, c, method, engine, overflow, options)
    if strict:
        _refuse_range(run)
    counts = run.counts()
    d = run.product()
    if verify:
        _verify(run, d, {"overflow": overflow, "options": {"method": str(getattr(method, "name", method)), **options}})
    nonfinite = int(np.count_nonzero(~np.isfinite(d.astype(np.float64))))
    return RecoveryResult(d, run.row, run.engine.label, run.row.passes, *counts, nonfinite, run.count)


def _refuse_range(run: WordRun | IntegerRun | OwnRun) -> None:
    for counts, name, size in zip(run.counts(), "AB", (run.a.size, run.b.size), strict=True):
        if counts.overflow or counts.underflow:
            raise ValueError(
                f"method {run.row.name!r}: of {size} elements of {name}, {counts.overflow} overflow and {counts.underflow} "
                f"underflow {run.word_format.name} words, but strict=True allows none (range: {run.row.range_limits}); scale "
                f"{name}, or pass strict=False to compute as hardware would"
            )


def _verify(run: WordRun | IntegerRun | OwnRun, d: np.ndarray, asked: dict) -> None:
    """Raise OutsideBound if a product is outside of its bound, ValueError if no bound is derived."""
    bound = quick_run_bound(run)
    if bound is None:
        raise ValueError(
            f"got verify, but no bound is derived for {run.row.name} on {run.engine.label}; leave verify out"
        )
    exact = exact_gemm(run.a, run.b, run.c)
    recipe = {"recovered_gemm": run.engine.label, **asked}
    hold(
        JudgedProduct(f"{run.row.name} on {run.engine.label}", recipe, run.a, run.b, run.c), d, exact.error_of(d), bound
    )
