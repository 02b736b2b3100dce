"""Counts how many products of integers a unit sums without rounding, which integer methods on floating-point words rely on.

A unit that aligns the addends of a step to the largest exponent E keeps multiples of 2^(E - F), and its result keeps P bits.
Let t be the smallest of F + 1, P and the other numbers of bits that the unit keeps in intermediate sums. While every sum stays
below 2^t in magnitude, integers are exact: E is below t, so the last kept bit has a weight of at most 1. So
2^t / |largest product| products may be summed; then the chain restarts from zero and is added outside as an integer. Units of
IEEE operations, and units that round an exact sum once, have t = P.

Hopper's wgmma, and Ada with FP8 operands, keep 13 fraction bits, so t = 14: 64 products of words up to 16 are exact.
Blackwell's tcgen05 keeps 25 fraction bits and its FP32 result 24 bits, so 65536 such products are exact.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from mpgemm.recovery.method import RecoveryMethod
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import IntegerFormat

#: Fields of accumulators that hold a number of kept bits after the leading one.
_FRACTIONS = ("fraction_bits", "dot_fraction_bits", "c_fraction_bits", "sum_fraction_bits", "output_fraction_bits")


def exact_bits(engine: Engine) -> int:
    """Return t such that integer sums below 2^t in magnitude are exact; for a callable, the bits of its result.

    >>> import tensorcore_models as tcm
    >>> exact_bits(tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3"))
    14
    >>> exact_bits(tcm.get_instruction("blackwell:tcgen05.mma.m64n8k32.f32.e4m3.e4m3"))
    24
    """
    formats = engine.formats[2:]
    if any(isinstance(fmt, IntegerFormat) for fmt in formats):
        return min(fmt.bits for fmt in formats) - 1
    return min(*(fmt.precision for fmt in formats), *_kept(getattr(engine, "accumulator", None)))


def _kept(spec: Any) -> Iterator[int]:
    """Yield the numbers of bits that an accumulator and its parts keep, with the leading bit."""
    yield 64
    if not dataclasses.is_dataclass(spec):
        return
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if field.name in _FRACTIONS and value is not None:
            yield value + 1
        elif dataclasses.is_dataclass(value):
            yield from _kept(value)


def exact_products(engine: Engine, largest: int) -> int:
    """Return the number of products up to `largest` that a chain from zero sums exactly, in whole k steps if one step fits."""
    count = (1 << exact_bits(engine)) // max(largest, 1)
    return count // engine.k * engine.k if count >= engine.k else count


def padding(row: RecoveryMethod, engine: Engine) -> float:
    """Return the unit's products for each product of the method, above 1 if a step must be filled with zeros to stay exact."""
    if not row.exact:
        return 1.0
    count = exact_products(engine, row.largest_product)
    return max(1.0, engine.k / count)


def exact_sentence(row: RecoveryMethod, engine: Engine) -> str:
    """Return a sentence on the number of exact products on an engine, "" unless integers are floating-point words."""
    if not row.exact or row.integer:
        return ""
    count = exact_products(engine, row.largest_product)
    text = (
        f"{engine.label} keeps {exact_bits(engine)} bits, so {count} products of words of {row.name}, at most "
        f"{row.largest_product} each, are exact; then the chain restarts"
    )
    return (
        text if count >= engine.k else f"{text}, and {engine.k - count} of the {engine.k} products of a step are zeros"
    )
