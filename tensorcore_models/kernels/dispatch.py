"""This module chooses the kernel that runs an accumulator over matrices of encodings.

Three layers give the same bits:

- fast paths for particular accumulators and shapes (:data:`FAST_PATHS`, tried in order);
- the compiled generic kernels (:mod:`tensorcore_models.kernels.lowering`), and for accumulators that they lack, recorded
  programs (:mod:`tensorcore_models.kernels.recorded`);
- the plain-integer reference for accumulators that are too wide for both.

The environment variable ``MPGEMM_KERNEL`` or :func:`set_kernel` selects ``auto`` (default), ``generic`` (no fast paths) or
``reference``. The variable is read at the first product, and again after ``set_kernel(None)``.

:mod:`tensorcore_models.engines.engine` validates arguments before it calls this module.
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
    """`FastKernel` is the interface of a fast kernel: :meth:`of` prepares it for an accumulator, :meth:`run` runs it.

    Operands are aligned arrays of encodings in native byte order, with any strides and positive k. Results are new C-contiguous
    arrays in the container type of ``low.d_format``. The generic kernel computes elements that the lanes cannot compute.
    """

    @classmethod
    def of(cls, low: Lowered) -> "FastKernel | None":
        """Return the kernel for an accumulator with its formats, None if it is not covered; called once for each."""

    def run(self, low: Lowered, a, b, c, scale_a, scale_b) -> np.ndarray:
        """Return D = A B + C for one pair of matrices."""


@dataclass(frozen=True)
class FastPath:
    """`FastPath` is a kernel for some accumulators and shapes that is faster than the generic kernel, with the same bits.

    Parameters
    ----------
    name : str
        Name for messages and benchmarks.
    kernel : str
        Module and name of a :class:`FastKernel`, such as ``"narrow.NarrowKernel"``, imported at its first product.
    smallest : int
        Number of multiply-adds (m n k) below which the generic kernel is faster.
    smallest_batch : int or None
        Number of multiply-adds of a batch of small products below which the generic kernel is faster than
        ``kernel.run_batch``; None if the kernel has no such method.
    largest_item : int
        Number of multiply-adds below which a single product is run as a batch of one.
    promotes : bool
        Whether ``kernel.run`` can add chains outside the unit (:func:`promoted_bits`); ``kernel.promotes(every)`` says for
        which chain lengths.
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


#: Number of multiply-adds below which packing the operands costs more than the generic kernel. It is smaller for chains, which
#: pack less, and for pairwise sums, which are slow in the generic kernel.
_SMALLEST = 1 << 14
_SMALLEST_CHAINS, _SMALLEST_PAIRWISE, _SMALLEST_INTEGER = 1 << 11, 1 << 12, 1 << 13
#: Largest product that is run as a batch of one, because one NaN makes the generic kernel compute the whole product.
_LARGEST_ITEM = 1 << 16
_SMALLEST_BATCH = 1 << 9
_SMALLEST_BATCH_OF_BYTES = 1 << 13
#: Multiply-adds per product from which calling a fast path for each product is faster than the generic kernel for the batch.
_SMALLEST_ALONE = 1 << 16

#: Largest number of products of one slice of k, which bounds the memory that the kernels need for every value of k.
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

#: The layer that runs; None if it is not chosen yet.
_chosen: str | None = None


def _checked(name: str, what: str) -> str:
    if name not in KERNELS:
        raise ValueError(f"{what} is {name!r}, expected one of {', '.join(KERNELS)}")
    return name


def set_kernel(name: str | None) -> None:
    """Choose the layer that runs: "auto", "generic" or "reference"; None resets it to ``MPGEMM_KERNEL`` or "auto".

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
        If ``MPGEMM_KERNEL`` is not the name of a layer.
    """
    global _chosen
    if _chosen is None:
        _chosen = _checked(os.environ.get("MPGEMM_KERNEL") or "auto", "environment variable MPGEMM_KERNEL")
    return _chosen


@kept_for_object
def lowered(engine) -> Lowered:
    """Return the engine's accumulator and formats, prepared for the kernels and cached.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Object with `accumulator`, the four formats, `scale_format` and `block_size`, which must not change.
    """
    return engine if type(engine) is Lowered else lower(engine)


def _fast_path(low: Lowered, size: int) -> tuple[FastPath | None, Any]:
    """Return the first fast path for a product with m n k = `size`, and its kernel."""
    for path in FAST_PATHS:
        if size >= path.smallest and (kernel := _prepared(low, path)) is not None:
            return path, kernel
    return None, None


def _fast_batch(low: Lowered, size: int) -> tuple[FastPath | None, Any]:
    """Return the first fast path for a batch of small products with `size` multiply-adds in total, and its kernel."""
    for path in FAST_PATHS:
        if (
            path.smallest_batch is not None
            and size >= path.smallest_batch
            and (kernel := _prepared(low, path)) is not None
        ):
            return path, kernel
    return None, None


def _kernel_of_one(low: Lowered, size: int) -> tuple[Any, bool]:
    """Return the fast kernel for a single product with m n k = `size`, or None, and whether it runs it as a batch of one."""
    path, kernel = _fast_path(low, size)
    if path is None:
        return _fast_batch(low, size)[1], True
    return kernel, size < path.largest_item


def small_kernel(low: Lowered, size: int) -> Any:
    """Return the batch kernel that runs a single product with m n k = `size`, None if another kernel runs it."""
    kernel, as_batch = _kernel_of_one(low, size)
    return kernel if as_batch else None


def _taken_as_given(low: Lowered, size: int) -> bool:
    """Return whether a fast path takes unconverted operands of a unit that converts its operands first."""
    if low.converted is None or get_kernel() != "auto":
        return False
    return _fast_path(low, size)[0] is not None or _fast_batch(low, size)[0] is not None


def _prepared(low: Lowered, path: FastPath) -> Any:
    """Return the cached kernel of a fast path for an accumulator with its formats, None if it is not covered."""
    if path.name not in low.fast_kernels:
        low.fast_kernels[path.name] = path.of(low)
    return low.fast_kernels[path.name]


def fast_kernels(engine) -> list[tuple[str, Lowered, Any]]:
    """Return every fast path that covers an engine for products of some size: its name, its accumulator and its kernel.

    The accumulator is that of the engine, or the one after the conversion of operands if only that is covered.
    """
    low, found = lowered(engine), []
    for path in FAST_PATHS:
        for taken in (low, low.converted):
            if taken is not None and (kernel := _prepared(taken, path)) is not None:
                found.append((path.name, taken, kernel))
                break
    return found


def kernel_name(engine, m: int = 64, n: int = 64, k: int = 64) -> str:
    """Return the name of the kernel that would run a product of this shape, with the reason if it is the reference.

    Products of bf16 and tf32 whose operands use more than 32 exponents run in lanes of 64 bits, whatever name is returned.
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
        raise TypeError(f"{what} holds {x.dtype}, expected encodings in {container}: use .view({container})")
    return np.require(x, container, ["C_CONTIGUOUS", "ALIGNED"])


def _operands(low: Lowered, a, b, c, scale_a, scale_b) -> tuple:
    """Return the accumulator that runs, and its checked operands, converted if the unit converts its operands first."""
    a = _ready(a, low.a_format.container, "a")
    b = _ready(b, low.b_format.container, "b")
    c = _ready(c, low.c_format.container, "c")
    if low.scale_format is not None:
        if scale_a is None or scale_b is None:
            raise ValueError("scale_a or scale_b is missing: give both for this accumulator with block scales")
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
        Encodings of shapes (m, k), (k, n), (m, n) in the container types of the formats, with any strides. k need not be a
        multiple of `accumulator.terms_per_step`: the last pass adds the remaining products only.
    scale_a, scale_b : ndarray, optional
        Block scales of shapes (m, k/bs) and (k/bs, n) for block size bs.

    Returns
    -------
    ndarray
        Encodings of shape (m, n) in the container type of the output format; with k = 0 the encodings of c.

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
    """Return slices of k that are computed one after another; each starts at an instruction, and at a multiple of `every`.

    The reference takes all of k in one slice, because it keeps no memory per value of k and counts the steps of user-defined
    accumulators. Stochastically rounded sums are not split either, because their draws depend on the number of the step.
    """
    if low.plan is None or get_kernel() == "reference" or low.accumulator.key is not None:
        return [slice(0, k)]
    unit = math.lcm(low.cycle, low.block_size or 1, every)
    length = max(LONGEST_SLICE // unit, 1) * unit
    return [slice(start, min(start + length, k)) for start in range(0, k, length)]


def _scales_of(low: Lowered, part: slice, scale_a, scale_b) -> tuple:
    """Return the block scales of a slice of k that starts with a block."""
    if scale_a is None or low.block_size is None:
        return scale_a, scale_b
    blocks = slice(part.start // low.block_size, -(-part.stop // low.block_size))
    return scale_a[:, blocks], scale_b[blocks]


def slice_bits(low: Lowered, a, b, c, scale_a, scale_b) -> np.ndarray:
    """Compute :func:`matrix_bits` for operands that need no conversion and k of at most :data:`LONGEST_SLICE`."""
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
    """Return total + D_1 + D_2 + ... in FP32, added in this order (RN), where D_i are chains of `every` products from zero.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Accumulator and formats; the result format is fp32.
    a, b : ndarray of unsigned integers
        See :func:`matrix_bits`; k is a multiple of `every`.
    total : ndarray of uint32
        Encodings of the FP32 sums to start from, of shape (m, n).
    scale_a, scale_b : ndarray, optional
        Block scales.
    every : int
        Number of products of one chain, a multiple of the accumulator's step.

    Returns
    -------
    ndarray of uint32 or None
        Encodings of the sums; None if no fast path covers them and the chains are not small, so that the caller must add them.
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
    """Compute :func:`promoted_bits` for a unit that scales its accumulator by 2**exponent before some steps of each chain.

    Parameters
    ----------
    engine, a, b, total, every
        See :func:`promoted_bits`; block scales are not supported.
    steps : collection of int
        Steps of a chain, counted from 0, before which the accumulator's sum is scaled.
    exponent : int
        Negative exponent; times the number of steps it is at least -32, so that sums stay normal numbers or 0.

    Returns
    -------
    ndarray of uint32 or None
        Encodings of the sums; None if the lanes cannot compute all of them (special or far addends, operands with too many
        exponents, other accumulators).
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
    """Compute :func:`promoted_bits` with all chains as one batch, because calls cost more than the work of small products."""
    (m, k), n = a.shape, b.shape[1]
    x = np.ascontiguousarray(a.reshape(m, k // every, every).transpose(1, 0, 2))
    zero = np.zeros((k // every, m, n), total.dtype)
    return add_all(total, batch_bits(engine, x, b.reshape(-1, every, n), zero), get_float_format("fp32"))


def batch_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """Return D = A B + C for a batch of matrices of encodings, shapes (batch, m, k), (batch, k, n), (batch, m, n).

    Arguments are those of :func:`matrix_bits` with a leading dimension. Threads share the batch if its matrices are small.
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
