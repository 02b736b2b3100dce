"""This module prepares a product of one shape, for loops over many small products of changing values or encodings."""

from typing import Any, Protocol

import numpy as np

from ..integers import checked_integer
from ..kernels.small import SmallProduct


class Preparable(Protocol):
    """`Preparable` lists the methods of :class:`Engine` that a prepared product calls."""

    @property
    def label(self) -> str: ...
    def gemm(self, a, b, c=None, *, scale_a=None, scale_b=None) -> Any: ...
    def gemm_bits(self, a, b, c=None, scale_a=None, scale_b=None) -> Any: ...
    def _small_product(self, a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> SmallProduct | None: ...


class PreparedProduct:
    """`PreparedProduct` computes D = A B + C on one engine for matrices of one shape; :meth:`Engine.prepared` makes it.

    a is (m, k) and b is (k, n). Bits and errors are those of the engine's :meth:`~Engine.gemm` and :meth:`~Engine.gemm_bits`.
    Settings may change between two calls (:func:`set_isa`, :func:`tensorcore_models.kernels.set_kernel`,
    :func:`set_num_threads`). Environment variables are read before the first product, and when a setting is reset to None.
    """

    def __init__(self, engine: Preparable, m: int, k: int, n: int):
        self.engine = engine
        self.m, self.k, self.n = (checked_integer(x, name) for x, name in zip((m, k, n), "mkn", strict=True))
        if min(self.m, self.k, self.n) < 0:
            raise ValueError(f"m, k and n are {self.m}, {self.k} and {self.n}, expected sizes of at least 0")
        self._small = engine._small_product((self.m, self.k), (self.k, self.n))

    def __repr__(self) -> str:
        return f"{self.engine.label}.prepared({self.m}, {self.k}, {self.n})"

    def __call__(self, a, b, c=None, scale_a=None, scale_b=None) -> np.ndarray:
        """Return d for values of the prepared shapes, as :meth:`Engine.gemm` does.

        Arrays in the numpy or ml_dtypes types of the formats (float16 for fp16, ...) are the fastest.
        """
        if self._small is not None and scale_a is None and scale_b is None:
            d = self._small.values(a, b, c)
            if d is not None:
                return d
        self._check(a, b)
        return self.engine.gemm(a, b, c, scale_a=scale_a, scale_b=scale_b)

    def bits(self, a, b, c=None, scale_a=None, scale_b=None) -> np.ndarray:
        """Return d for encodings of the prepared shapes, as :meth:`Engine.gemm_bits` does; ValueError for other shapes."""
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
                f"a is {found[0]} and b is {found[1]}, but this product was prepared for {expected[0]} and "
                f"{expected[1]}: prepare a product for each shape"
            )
