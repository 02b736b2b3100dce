"""Chooses the kernel that runs an accumulator over matrices of encodings.

Three layers, all with the same bits: fast paths for particular accumulators and shapes (:data:`FAST_PATHS`, tried in order),
the compiled generic kernels for every accumulator (:mod:`tensorcore_models.kernels.lowering` says what they hold) and Programs
for those that they do not (:mod:`tensorcore_models.kernels.recorded`), and the plain-integer reference for what is wider than
both. Environment variable ``MPGEMM_KERNEL`` or :func:`set_kernel`:
``auto`` (default), ``generic`` (no fast paths) or ``reference``. The variable is read at the first product, and again after
``set_kernel(None)``.

Arguments are validated by :mod:`tensorcore_models.engines.engine` before they come here.
"""

import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from .. import reference
from ..formats.names import get_float_format
from ..formats.sums import add_all
from ..machine.threads import WORTH_THREADS, run_shared, threads_for
from .generic import converted, finished_bits, generic_batch_bits, generic_bits
from .kept import kept_for_object
from .lowering import Lowered, lower
from .narrow import NarrowKernel

KERNELS: tuple[str, ...] = ("auto", "generic", "reference")


class FastKernel(Protocol):
    """The interface of a fast kernel: :meth:`of` prepares it for an accumulator with its formats, :meth:`run` runs it.

    Operands are arrays of encodings, aligned and native, any strides, k positive; results are new C-contiguous arrays in the
    container type of ``low.d_format``. Elements that the lanes cannot compute go to the generic kernel.
    """

    @classmethod
    def of(cls, low: Lowered) -> "FastKernel | None":
        """Return the kernel for an accumulator with its formats, None if it is not covered. Asked once for each."""

    def run(self, low: Lowered, a, b, c, scale_a, scale_b) -> np.ndarray:
        """Return D = A B + C for one pair of matrices."""


@dataclass(frozen=True)
class FastPath:
    """A kernel for some accumulators and shapes that is faster than the generic one and gives the same bits.

    Parameters
    ----------
    name : str
        Name for messages and benchmarks.
    kernel : str
        A :class:`FastKernel` and its module, as ``"narrow.NarrowKernel"``: read when a product comes to it.
    smallest : int
        Multiply-adds (m n k) below which the generic kernel is faster.
    smallest_batch : int or None
        The same for a whole batch of small products, which ``kernel.run_batch`` takes; None: it has no such method.
    largest_item : int
        Multiply-adds below which a single product is run as a batch of one.
    promotes : bool
        Whether ``kernel.run`` takes the number of products after which it adds up outside (:func:`promoted_bits`), and
        ``kernel.promotes(every)`` says whether it can.
    """

    name: str
    kernel: str
    smallest: int = 0
    smallest_batch: int | None = None
    largest_item: int = 0
    promotes: bool = False

    def of(self, low: Lowered) -> Any:
        """Return the kernel for an accumulator with its formats, None if it is not covered."""
        module, _, name = self.kernel.rpartition(".")
        return getattr(import_module(f".{module}", __package__), name).of(low)


#: Multiply-adds below which laying out the operands costs more than the generic kernel; chains have less to lay out, and
#: pairwise sums cost the generic kernel more.
_SMALLEST = 1 << 14
_SMALLEST_CHAINS, _SMALLEST_PAIRWISE, _SMALLEST_INTEGER = 1 << 11, 1 << 12, 1 << 13
#: Above it a product whose NaN needs the generic kernel costs too much where that takes all of it.
_LARGEST_ITEM = 1 << 16
_SMALLEST_BATCH = 1 << 9
_SMALLEST_BATCH_OF_BYTES = 1 << 13
#: Multiply-adds of each product of a batch from which a call of a fast path for each is faster than the generic kernel for all.
_SMALLEST_ALONE = 1 << 16

#: Products of one slice of k, at most: what the kernels prepare for every value of k stays small, however long k is.
LONGEST_SLICE = 1 << 17

#: Fast paths in the order in which they are tried.
FAST_PATHS: tuple[FastPath, ...] = (
    FastPath("lanes of 32 bits", "narrow.NarrowKernel", _SMALLEST, _SMALLEST_BATCH, _LARGEST_ITEM, promotes=True),
    FastPath("lanes of 64 bits", "wide.WideKernel", _SMALLEST, promotes=True),
    FastPath("chains of multiply-adds", "chains.ChainsKernel", _SMALLEST_CHAINS, promotes=True),
    FastPath("pairwise sums", "pairwise.PairwiseKernel", _SMALLEST_PAIRWISE),
    FastPath("exact sums of few products", "pairwise.ExactSumKernel", _SMALLEST),
    FastPath("lanes of group sums", "groups.GroupsKernel", _SMALLEST, _SMALLEST_BATCH_OF_BYTES),
    FastPath("integer lanes", "integer.IntegerKernel", _SMALLEST_INTEGER, _SMALLEST_BATCH_OF_BYTES),
)

#: The layer that runs; None: not looked for yet.
_chosen: str | None = None


def _checked(name: str, what: str) -> str:
    if name not in KERNELS:
        raise ValueError(f"{what} is one of {', '.join(KERNELS)}, got {name!r}")
    return name


def set_kernel(name: str | None) -> None:
    """Choose the layer that runs: "auto", "generic" or "reference"; None reads ``MPGEMM_KERNEL`` again (else "auto").

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    global _chosen
    _chosen = None if name is None else _checked(name, "the kernel")


def get_kernel() -> str:
    """Return the layer that is chosen.

    Raises
    ------
    ValueError
        If ``MPGEMM_KERNEL`` names none.
    """
    global _chosen
    if _chosen is None:
        _chosen = _checked(os.environ.get("MPGEMM_KERNEL") or "auto", "environment variable MPGEMM_KERNEL")
    return _chosen


@kept_for_object
def lowered(engine) -> Lowered:
    """Return the engine's accumulator and formats, made ready for the kernels; kept from call to call.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Anything with `accumulator`, the four formats, `scale_format` and `block_size`; it must not change.
    """
    return engine if type(engine) is Lowered else lower(engine)


def _fast_path(low: Lowered, size: int) -> tuple[FastPath | None, Any]:
    """Return the first fast path for a product of m n k = `size`, with its kernel."""
    for path in FAST_PATHS:
        if size >= path.smallest and (kernel := _prepared(low, path)) is not None:
            return path, kernel
    return None, None


def _fast_batch(low: Lowered, size: int) -> tuple[FastPath | None, Any]:
    """Return the first fast path for a batch of small products, m n k = `size` in all, with its kernel."""
    for path in FAST_PATHS:
        if (
            path.smallest_batch is not None
            and size >= path.smallest_batch
            and (kernel := _prepared(low, path)) is not None
        ):
            return path, kernel
    return None, None


def _kernel_of_one(low: Lowered, size: int) -> tuple[Any, bool]:
    """Return the fast kernel that takes a single product of m n k = `size`, or None; whether it does as a batch of one."""
    path, kernel = _fast_path(low, size)
    if path is None:
        return _fast_batch(low, size)[1], True
    return kernel, size < path.largest_item


def small_kernel(low: Lowered, size: int) -> Any:
    """Return the kernel of batches that takes a single product of m n k = `size`; None: another one does."""
    kernel, as_batch = _kernel_of_one(low, size)
    return kernel if as_batch else None


def _taken_as_given(low: Lowered, size: int) -> bool:
    """Return whether a fast path takes the operands of a unit that converts them as they are given."""
    if low.converted is None or get_kernel() != "auto":
        return False
    return _fast_path(low, size)[0] is not None or _fast_batch(low, size)[0] is not None


def _prepared(low: Lowered, path: FastPath) -> Any:
    """Return the kernel of a fast path for this accumulator with its formats, None if it is not covered; kept with it."""
    if path.name not in low.fast_kernels:
        low.fast_kernels[path.name] = path.of(low)
    return low.fast_kernels[path.name]


def fast_kernels(engine) -> list[tuple[str, Lowered, Any]]:
    """Return every fast path that covers an engine, whatever the size of a product: its name, what it runs, and its kernel.

    What it runs is the engine's arithmetic, or what follows the conversion of the operands where only that is covered.
    """
    low, found = lowered(engine), []
    for path in FAST_PATHS:
        for taken in (low, low.converted):
            if taken is not None and (kernel := _prepared(taken, path)) is not None:
                found.append((path.name, taken, kernel))
                break
    return found


def kernel_name(engine, m: int = 64, n: int = 64, k: int = 64) -> str:
    """Return the name of the kernel that would run a product of this shape, with the reason where that is the reference.

    Products of bf16 and tf32 whose operands use more than 32 exponents run in lanes of 64 bits, whatever is named.
    """
    low = lowered(engine)
    if low.converted is not None and not _taken_as_given(low, m * n * k):
        low = low.converted
    chosen = get_kernel()
    path = None
    if chosen == "auto":
        path = _fast_path(low, m * n * k)[0] or _fast_batch(low, m * n * k)[0]
    if path is not None:
        return path.name
    if chosen == "reference" or low.plan is not None:
        return "reference" if chosen == "reference" else f"generic {low.kernel}"
    from .recorded import recorded_kernel

    recorded, reason = recorded_kernel(low, m * n * k)
    return f"reference ({low.reason}; {reason})" if recorded is None else f"program ({low.reason})"


def _ready(x: np.ndarray, container: np.dtype, what: str) -> np.ndarray:
    """Return `x` aligned and in native byte order."""
    if x.dtype == container and x.flags.aligned:
        return x
    if x.dtype.newbyteorder("=") != container:
        raise TypeError(f"{what} holds {x.dtype}, expected encodings in {container}")
    return np.require(x, container, ["C_CONTIGUOUS", "ALIGNED"])


def _operands(low: Lowered, a, b, c, scale_a, scale_b) -> tuple:
    """Return the accumulator that runs, and its checked operands, converted where the unit does that first."""
    a = _ready(a, low.a_format.container, "a")
    b = _ready(b, low.b_format.container, "b")
    c = _ready(c, low.c_format.container, "c")
    if low.scale_format is not None:
        if scale_a is None or scale_b is None:
            raise ValueError("this accumulator takes block scales: scale_a and scale_b are missing")
        scale_a = _ready(scale_a, low.scale_format.container, "scale_a")
        scale_b = _ready(scale_b, low.scale_format.container, "scale_b")
    if low.finish is None and get_kernel() != "reference" and not _taken_as_given(low, a.size * b.shape[-1]):
        low, a, b = converted(low, a, b)
    return low, a, b, c, scale_a, scale_b


def matrix_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """Return D = A B + C for one pair of matrices of encodings, chained over k.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Accumulator and formats.
    a, b, c : ndarray of unsigned integers
        Shapes (m, k), (k, n), (m, n) in the container types of the formats, any strides; a last pass over fewer products
        than `accumulator.terms_per_step` is made of those only.
    scale_a, scale_b : ndarray, optional
        Block scales, shapes (m, k/bs) and (k/bs, n).

    Returns
    -------
    ndarray
        Shape (m, n), the container type of the output format. With k = 0 no instruction runs: the encodings of c.

    Raises
    ------
    TypeError
        If an array's type is not the container of its format.
    ValueError
        If shapes do not fit, or scales are missing.
    """
    low = lowered(engine)
    low, a, b, c, scale_a, scale_b = _operands(low, a, b, c, scale_a, scale_b)
    if a.shape[1] == 0:
        return c.astype(low.d_format.container)
    if low.finish is not None and get_kernel() != "reference":
        return finished_bits(low, a, b, c, matrix_bits)
    if a.shape[1] <= LONGEST_SLICE:
        return slice_bits(low, a, b, c, scale_a, scale_b)
    for part in _slices(low, a.shape[1]):
        c = slice_bits(low, a[:, part], b[part], c, *_scales_of(low, part, scale_a, scale_b))
        low = low.continued
    return c


def _slices(low: Lowered, k: int, every: int = 1) -> list[slice]:
    """Return slices of k that are computed one after the other: each starts where an instruction does, at a multiple of
    `every`.

    The reference takes all of k: it keeps nothing for each value of k, and counts the steps of an accumulator of the user's. So
    do sums that are rounded stochastically, whose draws are those of the steps.
    """
    if low.plan is None or get_kernel() == "reference" or low.accumulator.key is not None:
        return [slice(0, k)]
    unit = math.lcm(low.cycle, low.block_size or 1, every)
    length = max(LONGEST_SLICE // unit, 1) * unit
    return [slice(start, min(start + length, k)) for start in range(0, k, length)]


def _scales_of(low: Lowered, part: slice, scale_a, scale_b) -> tuple:
    """Block scales of a slice of k that starts where a block does."""
    if scale_a is None or low.block_size is None:
        return scale_a, scale_b
    blocks = slice(part.start // low.block_size, -(-part.stop // low.block_size))
    return scale_a[:, blocks], scale_b[blocks]


def slice_bits(low: Lowered, a, b, c, scale_a, scale_b) -> np.ndarray:
    """Compute :func:`matrix_bits` of operands that need no conversion, for k of at most :data:`LONGEST_SLICE`."""
    (m, k), n = a.shape, b.shape[1]
    chosen = get_kernel()
    if chosen == "auto":
        size = m * n * k
        kernel, as_batch = _kernel_of_one(low, size)
        if kernel is not None and not as_batch:
            return kernel.run(low, a, b, c, scale_a, scale_b)
        if kernel is not None and size > 0:
            scales = (None, None) if scale_a is None else (scale_a[None], scale_b[None])
            return kernel.run_batch(low, a[None], b[None], c[None], *scales)[0]
    if chosen == "reference":
        return reference.mma_bits(low, a, b, c, scale_a, scale_b)
    return generic_bits(low, a, b, c, scale_a, scale_b)


def promoted_bits(engine, a, b, total, scale_a, scale_b, every: int) -> np.ndarray | None:
    """Return FP32 sum outside of the chains of every `every` products, each from zero: total + D_1 + D_2 + ..., in this order,
    RN.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Accumulator and formats; the result format is fp32.
    a, b : ndarray of unsigned integers
        See :func:`matrix_bits`; k is a multiple of `every`.
    total : ndarray of uint32
        Encodings of the FP32 sums to start from, shape (m, n).
    scale_a, scale_b : ndarray, optional
        Block scales.
    every : int
        Products of one chain, a multiple of the accumulator's step.

    Returns
    -------
    ndarray of uint32 or None
        None where no fast path does this and the chains are not small: the caller adds them up itself.
    """
    low = lowered(engine)
    if get_kernel() != "auto" or a.shape[1] == 0:
        return None
    size = a.size * b.shape[1]
    path, kernel = _fast_path(low if _taken_as_given(low, size) else low.converted or low, size)
    if path is None or not path.promotes or not kernel.promotes(every):
        small = a.shape[0] * b.shape[1] * every < WORTH_THREADS and low.plan is not None and scale_a is None
        return _promoted_batch(engine, a, b, total, every) if small else None
    low, a, b, total, scale_a, scale_b = _operands(low, a, b, total, scale_a, scale_b)
    for part in _slices(low, a.shape[1], every):
        total = kernel.run(low, a[:, part], b[part], total, *_scales_of(low, part, scale_a, scale_b), every)
    return total


def scaled_bits(engine, a, b, total, every: int, steps: Collection[int], exponent: int) -> np.ndarray | None:
    """Compute :func:`promoted_bits` where the unit scales its accumulator by 2**exponent before some steps of each chain.

    Parameters
    ----------
    engine, a, b, total, every
        The same as :func:`promoted_bits`, without block scales.
    steps : collection of int
        The steps of the accumulator in a chain, counted from 0, before which its sum is multiplied.
    exponent : int
        Negative; over all steps of a chain down to -32, so that sums stay normal numbers or 0.

    Returns
    -------
    ndarray of uint32 or None
        None where the lanes do not take all of it: special or far addends, operands of too many exponents, other accumulators.
    """
    low = lowered(engine)
    if get_kernel() != "auto" or a.shape[1] == 0 or not -32 <= exponent * len(steps) < 0 or max(steps) >= 31:
        return None
    _, kernel = _fast_path(low, a.size * b.shape[1])
    if not isinstance(kernel, NarrowKernel) or kernel.task.output or not kernel.promotes(every):
        return None
    if low.c_format != low.d_format:
        return None
    places = sum(1 << step for step in steps)
    for part in _slices(low, a.shape[1], every):
        total = kernel.run_scaled(a[:, part], b[part], total, every, places, exponent)
        if total is None:
            return None
    return total


def _promoted_batch(engine, a, b, total, every: int) -> np.ndarray:
    """Compute :func:`promoted_bits` with all chains as one batch: calls for small products cost more than their work."""
    (m, k), n = a.shape, b.shape[1]
    x = np.ascontiguousarray(a.reshape(m, k // every, every).transpose(1, 0, 2))
    zero = np.zeros((k // every, m, n), total.dtype)
    return add_all(total, batch_bits(engine, x, b.reshape(-1, every, n), zero), get_float_format("fp32"))


def batch_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """Return D = A B + C for a batch of matrices of encodings: shapes (batch, m, k), (batch, k, n), (batch, m, n).

    The same as :func:`matrix_bits`, with a leading dimension; threads share the batch where its matrices are small.
    """
    low = lowered(engine)
    low, a, b, c, scale_a, scale_b = _operands(low, a, b, c, scale_a, scale_b)
    (count, m, k), n = a.shape, b.shape[2]
    if k == 0:
        return c.astype(low.d_format.container)
    if low.finish is not None and get_kernel() != "reference":
        return finished_bits(low, a, b, c, batch_bits)
    chosen, small = get_kernel(), m * n * k < WORTH_THREADS
    if small and chosen == "auto":
        _, kernel = _fast_batch(low, count * m * n * k)
        if kernel is not None:
            return kernel.run_batch(low, a, b, c, scale_a, scale_b)
    alone = chosen == "auto" and m * n * k >= _SMALLEST_ALONE and _fast_path(low, m * n * k)[0] is not None
    if small and not alone and chosen != "reference" and low.plan is not None:
        return generic_batch_bits(low, a, b, c, scale_a, scale_b)
    out = np.empty((count, m, n), low.d_format.container)

    def run(items: range) -> None:
        for i in items:
            scales = (None, None) if scale_a is None else (scale_a[i], scale_b[i])
            out[i] = matrix_bits(low, a[i], b[i], c[i], *scales)

    run_shared(run, count, threads_for(count * m * n * k) if small else 1)
    return out
