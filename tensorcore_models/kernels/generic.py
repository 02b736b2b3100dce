"""This module runs a lowered accumulator on the generic kernel, or on recorded programs or the reference if it is too wide."""

from collections.abc import Callable

import numpy as np

from .. import reference
from .._kernels.generic import generic
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for
from .lowering import Lowered

#: Number of lane operations that take as long as one product of the generic kernel, for `threads_for`.
_OPERATIONS = 64


def _tabled(low: Lowered, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return operands as encodings of the format in which the unit multiplies."""
    return a if low.a_table is None else low.a_table[a], b if low.b_table is None else low.b_table[b]


def converted(low: Lowered, a: np.ndarray, b: np.ndarray) -> tuple[Lowered, np.ndarray, np.ndarray]:
    """Return the accumulator after a unit's conversion of operands and the converted operands, or else the arguments."""
    if low.converted is None or low.convert is None:
        return low, a, b
    return low.converted, low.convert(a, 0), low.convert(b, 1)


def finished_bits(low: Lowered, a, b, c, run: Callable[..., np.ndarray]) -> np.ndarray:
    """Return D = A B + C of a unit that converts c and its results; `run` computes the product between the conversions."""
    every = low.every or a.shape[-1]
    for start in range(0, a.shape[-1], every):
        assert low.converted is not None and low.convert is not None and low.finish is not None
        part = slice(start, start + every)
        c = low.finish(run(low.converted, a[..., part], b[..., part, :], low.convert(c, 2)))
        low = low.continued
    return c


def _unplanned_bits(low: Lowered, a, b, c, scale_a, scale_b) -> np.ndarray:
    """Compute products of an accumulator that the generic kernel lacks, for any leading dimensions."""
    from .recorded import recorded_kernel

    kernel, _ = recorded_kernel(low, a.size * b.shape[-1])
    if kernel is None:
        return reference.mma_bits(low, a, b, c, scale_a, scale_b)
    if a.ndim == 2:
        return kernel.run(a, b, c, scale_a, scale_b)
    scaled = scale_a is not None
    items = range(len(a))
    return np.stack([kernel.run(a[i], b[i], c[i], *((scale_a[i], scale_b[i]) if scaled else ())) for i in items])


def generic_bits(low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """Compute `kernels.matrix_bits` for k > 0 by the generic kernel, or by :func:`_unplanned_bits` without a plan."""
    if low.finish is not None:
        return finished_bits(low, a, b, c, generic_bits)
    low, a, b = converted(low, a, b)
    if low.plan is None:
        return _unplanned_bits(low, a, b, c, scale_a, scale_b)
    if low.operands_alike and 2 * b.shape[1] <= min(a.shape[0], generic.PANEL):  # D^T = B^T A^T + C^T fills the vectors
        scales = () if scale_a is None else (scale_b.T, scale_a.T)
        return np.ascontiguousarray(generic_bits(low, b.T, a.T, c.T, *scales).T)
    out = np.empty((a.shape[0], b.shape[1]), low.d_format.container)
    a, b = _tabled(low, a, b)
    threads = threads_for(_OPERATIONS * a.size * b.shape[1])
    low.plan.run(a, b, c, out, scale_a, scale_b, low.layout(a.shape[1]), isa_level(), threads)
    return out


def generic_batch_bits(low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """Compute `kernels.batch_bits` for k > 0 by the generic kernel, or by :func:`_unplanned_bits` without a plan."""
    if low.finish is not None:
        return finished_bits(low, a, b, c, generic_batch_bits)
    low, a, b = converted(low, a, b)
    if low.plan is None:
        return _unplanned_bits(low, a, b, c, scale_a, scale_b)
    out = np.empty((a.shape[0], a.shape[1], b.shape[2]), low.d_format.container)
    a, b = _tabled(low, a, b)
    low.plan.run_batch(
        a,
        b,
        c,
        out,
        scale_a,
        scale_b,
        low.layout(a.shape[2]),
        isa_level(),
        threads_for(_OPERATIONS * a.size * b.shape[2]),
    )
    return out
