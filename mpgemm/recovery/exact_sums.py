"""How many products of integers a unit sums without rounding: what integer methods on floating-point words rest on.

A unit that aligns the addends of a step to the largest exponent E keeps multiples of 2^(E - F), and its result keeps P bits.
While every sum stays below 2^t in magnitude, with t the smallest of F + 1, P and whatever other number of bits the unit keeps
on the way, integers have no bit to lose: E is below t, so the last bit kept is a whole one. So 2^t / |largest product| products
may be summed, and then the chain restarts from zero and is added outside as an integer. Units of IEEE operations, and those
that round an exact sum once, keep t = P.

13 fraction bits, those of Hopper's wgmma and of Ada with FP8 operands, leave t = 14: 64 products of words up to 16. Blackwell's
tcgen05 keeps 25, its FP32 result 24: 65536 such products.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from mpgemm.recovery.method import RecoveryMethod
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import IntegerFormat

#: Fields of accumulators that say how many bits are kept behind a leading one.
_FRACTIONS = ("fraction_bits", "dot_fraction_bits", "c_fraction_bits", "sum_fraction_bits", "output_fraction_bits")


def exact_bits(engine: Engine) -> int:
    """t: integer sums below 2^t in magnitude are exact. Of a callable, which says nothing else, the bits of its result.

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
    """Yield bits that an accumulator, and what it is put together from, keeps from the leading one on."""
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
    """Return products up to `largest` that a chain from zero sums exactly: whole k steps where it is more than one, 0 where not
    even one is."""
    count = (1 << exact_bits(engine)) // max(largest, 1)
    return count // engine.k * engine.k if count >= engine.k else count


def padding(row: RecoveryMethod, engine: Engine) -> float:
    """Return products of the unit for each one of the method: above 1 where a step takes more than it sums exactly, the rest
    zeros."""
    if not row.exact:
        return 1.0
    count = exact_products(engine, row.largest_product)
    return max(1.0, engine.k / count)


def exact_sentence(row: RecoveryMethod, engine: Engine) -> str:
    """Return how many products stay exact on an engine, for methods on floating-point words; empty for others."""
    if not row.exact or row.integer:
        return ""
    count = exact_products(engine, row.largest_product)
    text = (
        f"{engine.label} keeps {exact_bits(engine)} bits: {count} products of words of {row.name}, at most "
        f"{row.largest_product} each, stay exact; then the chain restarts"
    )
    return (
        text if count >= engine.k else f"{text}, and {engine.k - count} of the {engine.k} products of a step are zeros"
    )
