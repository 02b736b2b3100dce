"""Computes FP32 products on this CPU's matrix unit (Intel AMX) from bf16 or int8 words.

Each method of :data:`METHODS` gives the same bits as :func:`mpgemm.recovered_gemm` with the arguments in that table, which runs
on the model of the unit's instruction. numpy computes the product where words cannot hold the operands, where the shape is too
small to be faster on the unit, or where the machine has no unit; :func:`sgemm_report` says which path ran and why. docs/amx.md
has accuracy and speed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm._kernels import amx_sgemm as kernel
from mpgemm.recovery.integer_run import IntegerRun
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.run import check_operands
from tensorcore_models.cpu_units.units import setting, status
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import checked_threads, get_num_threads, threads_here
from tensorcore_models.machine.workspace import workspace
from tensorcore_models.results import Result

#: Products of k after which the tiles restart from zero and are added to the result.
RESTART = 256
#: Products of k that are packed at a time.
_DEPTH = 8 * RESTART
#: "auto" leaves a product to numpy where m, n or k is smaller. For m and n, a prototype was faster than OpenBLAS from this
#: size on; for k, this is one block (docs/amx.md).
SMALLEST = 256

_BF16 = "x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"
_INT8 = "x86:tdpbssd.m16n16k64.s32.s8.s8.s32"
_BLOCKS = {"engine": _BF16, "order": "term", "restart_every": RESTART}

#: Arguments of :func:`mpgemm.recovered_gemm` that give the same bits as each method.
METHODS: dict[str, dict[str, Any]] = {
    "bf16x6": {"method": "bf16x6", **_BLOCKS},
    "bf16x9": {"method": "bf16x9", **_BLOCKS},
    "int8": {"method": "ozaki_int8", "engine": _INT8},
}
#: Method that "auto" takes.
USUAL = "bf16x6"

#: Bits of the largest finite bf16 number in float32; a larger number may have an infinite word.
_BF16_LARGEST = 0x7F7F0000
_FP32_INFINITY = 0x7F800000
#: The unit flushes no word of a number of at least this magnitude, and at most the last bits of a product of two (docs/amx.md).
_SMALLEST_MAGNITUDE = 2.0**-102
#: Limit of the sum of the magnitudes of all products and c.
_LARGEST_SUM = 2.0**127


@dataclass(frozen=True, repr=False)
class SgemmResult(Result):
    """`SgemmResult` holds a product and says how it was computed.

    Attributes
    ----------
    d : numpy.ndarray of float32, shape (m, n)
        The product.
    path : str
        The method of :data:`METHODS` that ran, or "numpy".
    unit : str
        "AMX", "AMX (emulated)", or "" on the path "numpy".
    reason : str
        Reason why this path ran.
    """

    d: np.ndarray = field(repr=False)
    path: str
    unit: str
    reason: str

    @property
    def model(self) -> Mapping[str, Any]:
        """Return the arguments of :func:`mpgemm.recovered_gemm` that give the same bits, {} on the path "numpy"."""
        return METHODS.get(self.path, {})

    def to_rows(self) -> list[dict]:
        """Return all fields except the product itself."""
        return [{"path": self.path, "unit": self.unit, "reason": self.reason}]

    def __str__(self) -> str:
        return f"{self.path}{' on ' + self.unit if self.unit else ''}: {self.reason}"


@default_fp_state
def sgemm(a, b, c=None, *, method: str = "auto", threads: int | None = None) -> np.ndarray:
    """Return A B (+ C) in FP32, from the matrix unit if this CPU has one that can multiply the operands, else from numpy.

    Parameters
    ----------
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        Operands in float32 or a narrower type, or in float64 if every value is a float32 number.
    method : {"auto", "bf16x6", "bf16x9", "int8"}
        "auto" runs bf16x6 if it is expected to be faster than numpy, else numpy. The named methods (:data:`METHODS`) run for
        every shape.
    threads : int, optional
        Number of threads of the unit's own loops, 1 to 1024, by default :func:`tensorcore_models.get_num_threads`. The number
        does not affect the bits.

    Raises
    ------
    ValueError
        If shapes do not fit, a method is unknown, values are not float32 numbers, or `threads` is out of range.
    TypeError
        If an argument holds no real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.eye(3, dtype=np.float32)
    >>> sgemm(a, a, threads=1).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return sgemm_report(a, b, c, method=method, threads=threads).d


@default_fp_state
def sgemm_report(a, b, c=None, *, method: str = "auto", threads: int | None = None) -> SgemmResult:
    """Return the result of :func:`sgemm` with the path that ran and the reason for it.

    Parameters
    ----------
    a, b, c, method, threads
        See :func:`sgemm`.

    Raises
    ------
    ValueError, TypeError
        See :func:`sgemm`.
    """
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method is {method!r}, expected 'auto' or one of {', '.join(METHODS)}")
    threads = get_num_threads() if threads is None else threads_here(checked_threads(threads))
    a, b, c = check_operands(a, b, c)
    a, b = _float32(a, "a"), _float32(b, "b")
    c = None if c is None else _float32(c, "c")
    chosen = USUAL if method == "auto" else method
    small = min(a.shape[0], b.shape[1], a.shape[1]) < SMALLEST
    reason = f"m, n and k are not all at least {SMALLEST}" if method == "auto" and small else unit_missing(chosen)
    if not reason:
        emulated = setting() == "emulated"
        run = _on_slices if chosen == "int8" else _on_words
        d, reason = run(a, b, c, METHODS[chosen], emulated, threads)
        if d is not None:
            why = (
                "this method was asked for"
                if method != "auto"
                else "this CPU has the unit and it can take the operands"
            )
            return SgemmResult(d, chosen, "AMX (emulated)" if emulated else "AMX", why)
    return SgemmResult(_by_numpy(a, b, c), "numpy", "", reason)


def unit_missing(method: str) -> str:
    """Return the reason why the unit of a method of :data:`METHODS` cannot be used here, "" if it can."""
    if setting() == "emulated":
        return ""
    missing = status(tcm.get_instruction(METHODS[method]["engine"]))
    return f"no AMX unit: {missing}" if missing else ""


def _float32(x: np.ndarray, name: str) -> np.ndarray:
    """Return the values of `x` as a C-contiguous float32 array."""
    if x.dtype == np.float32:
        return np.ascontiguousarray(x)
    with np.errstate(over="ignore", under="ignore"):
        narrow = x.astype(np.float32)
    lost = (narrow != x) & ~np.isnan(x)
    if lost.any():
        raise ValueError(
            f"{name}: {int(lost.sum())} of {x.size} values are not float32 numbers; round them first with .astype(np.float32)"
        )
    return np.ascontiguousarray(narrow)


def _by_numpy(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        d = np.matmul(a, b)
        return d if c is None else np.add(d, c, out=d)


# -- words of bf16 -------------------------------------------------------------------------------------------------------
def _on_words(a, b, c, model: Mapping, emulated: bool, threads: int) -> tuple[np.ndarray | None, str]:
    """Return the product, or None and the reason why words cannot hold the operands."""
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, n, k):
        return None, "there is nothing to multiply"
    largest_c = 0.0 if c is None else float(np.max(np.abs(c), initial=0.0, where=np.isfinite(c)))

    def refused(largest_a: int, smallest_a: int, largest_b: int, smallest_b: int) -> str | None:
        largest, smallest = max(largest_a, largest_b), (_magnitude(smallest_a), _magnitude(smallest_b))
        if largest >= _FP32_INFINITY:
            return "a or b holds infinities or NaN"
        if largest > _BF16_LARGEST:
            return "a or b holds numbers beyond bf16's largest"
        if _magnitude(largest_a) * _magnitude(largest_b) * k + largest_c >= _LARGEST_SUM:
            return "sums may overflow"
        if min(*smallest, smallest[0] * smallest[1]) < _SMALLEST_MAGNITUDE:
            return "a or b holds numbers so small that their words or products would be flushed"
        return None

    d = np.empty((m, n), np.float32) if c is None else c.copy()
    depth = min(_DEPTH, -(-k // RESTART) * RESTART)
    products = get_method(model["method"]).products
    size = kernel.workspace_bytes(m, n, min(k, depth), get_method(model["method"]).words, False)
    task = {"restart": RESTART, "depth": depth, "first": c is None, "emulated": emulated}
    reason = kernel.multiply_words(a, b, d, workspace(size), products, task, refused, isa_level(), threads)
    return (d, "") if reason is None else (None, reason)


def _magnitude(bits: int) -> float:
    """Return the magnitude of the float32 number with these bits, infinity for 2^32, which stands for "no number"."""
    return math.inf if bits >= _FP32_INFINITY else float(np.uint32(bits).view(np.float32))


# -- slices of int8 ------------------------------------------------------------------------------------------------------
class _UnitRun(IntegerRun):
    """`_UnitRun` multiplies integer slices on the unit; words and joins are those of `IntegerRun`."""

    emulated: bool
    threads: int

    def _products_of_slices(self, planes, words, chains, largest):
        (m, k), n = self.a.shape, self.b.shape[1]
        pairs = [(i, j, level) for level, chain in enumerate(chains) for i, j in chain]
        size = kernel.workspace_bytes(m, n, k, len(planes[0]), True)
        d = np.empty((len(chains), m, n), np.int32)
        kernel.multiply_slices(*planes, d, workspace(size), pairs, self.emulated, self.threads)
        return list(d)


def _on_slices(a, b, c, model: Mapping, emulated: bool, threads: int) -> tuple[np.ndarray | None, str]:
    """Return the product, or None and the reason why slices cannot give it."""
    if 0 in (*a.shape, b.shape[1]):
        return None, "there is nothing to multiply"
    run = _UnitRun(get_method(model["method"]), tcm.get_instruction(model["engine"]), a, b, c)
    run.emulated, run.threads = emulated, threads
    if not (run.rows.finite.all() and run.columns.finite.all()):
        return None, "a or b holds infinities or NaN"
    if not run.exact_levels:
        return None, "k is too long for exact int32 sums of a level"
    return run.product(), ""
