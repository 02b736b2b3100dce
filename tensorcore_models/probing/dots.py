"""Runs dot products of chosen exact values on an engine: it encodes a probe's addends and reads the result.

A product v is made of two operands, v = a b, with its exponent shared between them (fasi-numerical-behavior builds products
with b = 1, which 8-bit formats cannot do, because 2^-24 does not exist in e4m3). All probes are free of scale: all addends may
be multiplied by the same power of two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .. import kernels
from ..aspects.values import SCALES, Product, Unreachable, decode_value, encode_value, power, product_bits
from ..engines.engine import Engine
from ..engines.matrix_engine import MatrixEngine
from ..formats import Format, get_float_format


def unit_scales(engine: Engine, length: int) -> tuple[np.ndarray, np.ndarray] | tuple[()]:
    """Return block scales of 1 for a dot product, None if the engine has no block scales."""
    if engine.scale_format is None or engine.block_size is None:
        return ()
    fmt = get_float_format(engine.scale_format)
    one = encode_value(Fraction(1), fmt)
    blocks = -(-length // engine.block_size)
    return np.full((1, blocks), one, fmt.container), np.full((blocks, 1), one, fmt.container)


def dot_codes(engine: Engine, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return encodings of d (batch) of dot products a, b (batch, length) plus c (batch), with unit block scales if the engine
    has any.
    """
    count, length = a.shape
    scales = unit_scales(engine, length)
    if isinstance(engine, MatrixEngine) and not length % engine.k:
        spread = [np.ascontiguousarray(np.broadcast_to(s, (count, *s.shape))) for s in scales]
        low = kernels.lowered(engine)
        return kernels.generic_batch_bits(low, a[:, None, :], b[:, :, None], c[:, None, None], *spread)[:, 0, 0]
    with np.errstate(all="ignore"):  # a user's callable may be numpy, and special values are probed
        rows = [
            engine.gemm_bits(p[None], q[:, None], r.reshape(1, 1), *scales)[0, 0]
            for p, q, r in zip(a, b, c, strict=True)
        ]
    return np.array(rows, engine.formats[3].container)


@dataclass(frozen=True)
class Dots:
    """`Dots` runs dot products of `length` products, a multiple of the engine's k step, on an engine."""

    engine: Engine
    length: int

    @property
    def formats(self) -> tuple[Format, Format, Format, Format]:
        """Return the formats of a, b, c, d."""
        return self.engine.formats

    def run_bits(self, a: Mapping[int, int], b: Mapping[int, int], c: int = 0) -> int:
        """Return the encoding of d for encodings at given positions; all other products are +0."""
        return int(self.run_many([(a, b, c)])[0])

    def run_many(self, cases: Sequence[tuple[Mapping[int, int], Mapping[int, int], int]]) -> np.ndarray:
        """Return encodings of d of several dot products, each given as for :meth:`run_bits`."""
        shape = len(cases), self.length
        x, y = (np.zeros(shape, fmt.container) for fmt in self.formats[:2])
        z = np.array([case[2] for case in cases], self.formats[2].container)
        for row, case in enumerate(cases):
            for array, operands in zip((x, y), case[:2], strict=True):
                array[row, list(operands)] = list(operands.values())
        return dot_codes(self.engine, x, y, z)

    def operands(
        self, products: Mapping[int, Product], c: Fraction, scale: int
    ) -> tuple[dict[int, int], dict[int, int], int]:
        """Return encodings of products and c, all times 2**scale, as :meth:`run_bits` takes them; raise Unreachable if a format
        lacks one.
        """
        a_format, b_format, c_format, _ = self.formats
        known: dict[int, tuple[int, int]] = {}  # by identity: long dot products repeat few numbers
        for product in products.values():
            if id(product) not in known:
                known[id(product)] = product_bits(product, scale, a_format, b_format)
        a, b = ({place: known[id(p)][i] for place, p in products.items()} for i in (0, 1))
        return a, b, encode_value(c * power(scale), c_format)

    def operands_at_any_scale(
        self, products: Mapping[int, Product], c: Fraction, smallest: Fraction | None = None
    ) -> tuple[int, tuple[dict[int, int], dict[int, int], int]]:
        """Return :meth:`operands` and their scale: the one nearest to 1 at which the formats have all addends and d has
        `smallest`.
        """
        last = Unreachable("no scale")
        for scale in SCALES:
            try:
                if smallest is not None:
                    encode_value(smallest * power(scale), self.formats[3])
                return scale, self.operands(products, c, scale)
            except Unreachable as error:
                last = error
        raise last

    def value(self, bits: int, scale: int) -> Fraction | None:
        """Return the value of an encoding of d, divided by 2**scale; None if it is not finite."""
        value = decode_value(bits, self.formats[3])
        return None if value is None else value / power(scale)

    def run(self, products: Mapping[int, Product], c: Fraction | int = 0, scale: int = 0) -> Fraction | None:
        """Return d / 2**scale for products at given positions and c, all times 2**scale; None if d is not finite."""
        return self.value(self.run_bits(*self.operands(products, Fraction(c), scale)), scale)
