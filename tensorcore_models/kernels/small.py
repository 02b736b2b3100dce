"""This module speeds up small products: it prepares an engine and a shape once, so that a call compares only types and shapes.

The kernel computes a tile of 16 x 8 x 16 in a microsecond, and the checks of a general product take several times as long.
"""

import numpy as np

from ..formats import Format, IntegerFormat
from ..machine.instruction_sets import isa_level
from ..machine.threads import WORTH_THREADS
from .dispatch import LONGEST_SLICE, get_kernel, lowered, slice_bits, small_kernel
from .generic import generic_bits
from .kept import kept_for_object
from .lowering import Lowered
from .narrow import NarrowKernel

#: Largest number of shapes that are cached for one engine.
_SHAPES = 256


class SmallProduct:
    """`SmallProduct` computes D = A B + C on one engine for matrices of one shape, in the currently chosen layer.

    Its methods take numpy arrays of exactly the types and shapes that the kernels take. For other operands they return None,
    and the caller checks and converts them.

    Parameters
    ----------
    low : Lowered
        Accumulator with its formats, which neither converts operands nor has block scales.
    m, k, n : int
        Positive sizes; k is a multiple of the engine's step.
    """

    __slots__ = ("_a", "_b", "_c", "_codes", "_items", "_low", "_m", "_n", "_values", "_zeros")

    def __init__(self, low: Lowered, m: int, k: int, n: int):
        formats = low.a_format, low.b_format, low.c_format, low.d_format
        self._low, self._m, self._n = low, m, n
        self._a, self._b, self._c = (m, k), (k, n), (m, n)
        every_bit = all(f.bits == 8 * f.container.itemsize for f in formats[:3])  # otherwise encodings must be checked
        self._codes = tuple(f.container for f in formats) if every_bit else None
        types = tuple(t for t in map(_value_type, formats) if t is not None)
        self._values = types if len(types) == len(formats) else None
        self._zeros = np.zeros(self._c, formats[2].container)
        kernel = small_kernel(low, m * n * k)
        self._items = kernel.items_of(k) if isinstance(kernel, NarrowKernel) else None

    def bits(self, a, b, c) -> np.ndarray | None:
        """Return encodings of d from encodings of a, b and c; c = None means zeros."""
        fits = self._codes is not None and self._fits(a, b, c, self._codes)
        return self._run(a, b, self._zeros if c is None else c) if fits else None

    def values(self, a, b, c) -> np.ndarray | None:
        """Return values of d from values of a, b and c, all in the natural types of the formats."""
        types = self._values
        if types is None or not self._fits(a, b, c, types):
            return None
        a_codes, b_codes, c_codes = (
            self._low.a_format.container,
            self._low.b_format.container,
            self._low.c_format.container,
        )
        d = self._run(a.view(a_codes), b.view(b_codes), self._zeros if c is None else c.view(c_codes))
        return None if d is None else d.view(types[3])

    def _fits(self, a, b, c, types) -> bool:
        return (
            type(a) is type(b) is np.ndarray
            and a.dtype == types[0]
            and b.dtype == types[1]
            and a.shape == self._a
            and b.shape == self._b
            and (c is None or (type(c) is np.ndarray and c.dtype == types[2] and c.shape == self._c))
        )

    def _run(self, a, b, c) -> np.ndarray | None:
        if self._items is None or get_kernel() != "auto":
            if not (a.flags.aligned and b.flags.aligned and c.flags.aligned):
                return None
            return slice_bits(self._low, a, b, c, None, None)
        d = np.empty(self._c, self._low.d_format.container)
        taken = self._items.one(a, b, c, d, self._m, self._n, isa_level())
        if taken < 0:  # the kernel does not take these strides
            return None
        return d if taken else generic_bits(self._low, a, b, c)


def _value_type(fmt: Format | IntegerFormat) -> np.dtype | None:
    """Return the type whose arrays have the bits of the format's encodings, None if values must be converted."""
    if isinstance(fmt, IntegerFormat):
        return fmt.dtype if fmt.bits == 8 * fmt.container.itemsize else None
    return None if fmt.padding_bits else fmt.dtype


def small_product(engine, a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> SmallProduct | None:
    """Return the cached small product for matrices of these shapes, None if the product is not a small one.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Engine as in :func:`tensorcore_models.kernels.matrix_bits`, with its k step `k`.
    a_shape, b_shape : tuple of int
        Shapes of the operands. A product that is large, empty, scaled, converted or padded in k is not a small product.
    """
    low = lowered(engine)
    try:
        return low.small[a_shape, b_shape]
    except KeyError:
        pass
    if len(low.small) >= _SHAPES:
        low.small.clear()
    low.small[a_shape, b_shape] = found = _made(low, engine.k, a_shape, b_shape)
    return found


@kept_for_object
def tile_product(instruction) -> SmallProduct | None:
    """Return :func:`small_product` for the instruction's own shape, None if its arithmetic is not published."""
    m, k, n = instruction.m, instruction.k, instruction.n
    return small_product(instruction, (m, k), (k, n)) if instruction.published else None


def _made(low: Lowered, step: int, a_shape, b_shape) -> SmallProduct | None:
    if len(a_shape) != 2 or len(b_shape) != 2 or a_shape[1] != b_shape[0]:
        return None
    (m, k), n = a_shape, b_shape[1]
    if low.scale_format is not None or low.converted is not None or k % step:
        return None
    if k > LONGEST_SLICE or not 0 < m * k * n < WORTH_THREADS:
        return None
    return SmallProduct(low, m, k, n)
