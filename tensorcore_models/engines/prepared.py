"""A product of one shape, prepared: for loops over small products of values or encodings that change."""

from typing import Any, Protocol

import numpy as np

from ..integers import checked_integer
from ..kernels.small import SmallProduct


class Preparable(Protocol):
    """The methods that are asked of an :class:`Engine`, which makes prepared products itself."""

    @property
    def label(self) -> str: ...
    def gemm(self, a, b, c=None, *, scale_a=None, scale_b=None) -> Any: ...
    def gemm_bits(self, a, b, c=None, scale_a=None, scale_b=None) -> Any: ...
    def _small_product(self, a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> SmallProduct | None: ...


class PreparedProduct:
    """D = A B + C on one engine for matrices a (m, k) and b (k, n); made by :meth:`Engine.prepared`.

    Bits and errors are those of the engine's :meth:`~Engine.gemm` and :meth:`~Engine.gemm_bits`. Settings that change between
    two calls count (:func:`set_isa`, :func:`tensorcore_models.kernels.set_kernel`, :func:`set_num_threads`); of environment
    variables those do that were set before the first product, or before the setting was given back with None.
    """

    def __init__(self, engine: Preparable, m: int, k: int, n: int):
        self.engine = engine
        self.m, self.k, self.n = (checked_integer(x, name) for x, name in zip((m, k, n), "mkn", strict=True))
        if min(self.m, self.k, self.n) < 0:
            raise ValueError(f"m, k and n are {self.m}, {self.k} and {self.n}, expected none below 0")
        self._small = engine._small_product((self.m, self.k), (self.k, self.n))

    def __repr__(self) -> str:
        return f"{self.engine.label}.prepared({self.m}, {self.k}, {self.n})"

    def __call__(self, a, b, c=None, scale_a=None, scale_b=None) -> np.ndarray:
        """Return d on values, as :meth:`Engine.gemm`, for the shapes that were prepared.

        Arrays in the formats' natural types (float16 for fp16, ...) take the shortest way.
        """
        if self._small is not None and scale_a is None and scale_b is None:
            d = self._small.values(a, b, c)
            if d is not None:
                return d
        self._check(a, b)
        return self.engine.gemm(a, b, c, scale_a=scale_a, scale_b=scale_b)

    def bits(self, a, b, c=None, scale_a=None, scale_b=None) -> np.ndarray:
        """Return d on encodings; arguments and errors as :meth:`Engine.gemm_bits`, and ValueError for matrices of another
        shape."""
        if self._small is not None and scale_a is None and scale_b is None:
            d = self._small.bits(a, b, c)
            if d is not None:
                return d
        self._check(a, b)
        return self.engine.gemm_bits(a, b, c, scale_a, scale_b)

    def _check(self, a, b) -> None:
        expected, found = ((self.m, self.k), (self.k, self.n)), (np.shape(a), np.shape(b))
        if found != expected:
            raise ValueError(
                f"a is {found[0]} and b is {found[1]}, but this product is prepared for {expected[0]} and "
                f"{expected[1]}: prepare a product for each shape"
            )
