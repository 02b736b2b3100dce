"""Moves dot products to other magnitudes: multiplies their products and c by powers of two."""

import numpy as np

from ...formats import Format
from ..interface import DotBatch, Interface
from .inputs import pool, products


def scaled_pool(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return a pool of inputs of all kinds, two thirds of them moved to a random magnitude."""
    batch = pool(interface, size, rng)
    return batch if interface.integer else scaled(interface, batch, _shifts(interface, batch, rng))


def _shifts(interface: Interface, batch: DotBatch, rng: np.random.Generator) -> np.ndarray:
    """Return the power of two for each input: 0 for a third, else a move to any magnitude or to an end of the result's
    range."""
    _, _, c, d = interface.formats
    low, high = products(interface)
    goals = [
        rng.integers(min(low, c.quantum_exponent), max(high, c.emax) + 1, batch.size),
        d.quantum_exponent + rng.integers(-4, d.fraction_bits + 6, batch.size),
        d.emin + rng.integers(-3, 4, batch.size),
        d.emax + rng.integers(-3, 2, batch.size),
    ]
    goal = np.choose(rng.choice([0, 0, 0, 1, 2, 3], batch.size), goals)
    shift = goal - _top(interface, batch)
    return np.where(rng.integers(0, 3, batch.size) == 0, 0, shift)


def exponents(values: np.ndarray, fmt: Format) -> np.ndarray:
    """Return the exponents of encodings; zeros and subnormal numbers have that of the smallest normal number."""
    return np.maximum((magnitudes(values, fmt) >> (fmt.fraction_bits + fmt.padding_bits)) - fmt.bias, fmt.emin)


def magnitudes(values: np.ndarray, fmt: Format) -> np.ndarray:
    """Return the encodings without their sign bits."""
    return (values & fmt.container.type(fmt.magnitude_mask | ((1 << fmt.padding_bits) - 1))).astype(np.int64)


def signed(magnitudes: np.ndarray, signs: np.ndarray, fmt: Format) -> np.ndarray:
    """Return encodings from magnitudes, clipped to finite ones, and the sign bits of other encodings."""
    finite = np.clip(magnitudes, 0, fmt.max_bits).astype(fmt.container)
    return finite | (signs & fmt.container.type(fmt.sign_bit))


def _top(interface: Interface, batch: DotBatch) -> np.ndarray:
    """Return the largest exponent among the addends of each dot product."""
    a, b, c, _ = interface.formats
    multiplied = np.where(
        (batch.a != 0) & (batch.b != 0), exponents(batch.a, a) + exponents(batch.b, b), a.emin + b.emin
    )
    if batch.scales is not None and interface.block_size is not None:
        one, other = (exponents(scale, interface.scale_format) for scale in batch.scales)
        multiplied += np.repeat(one + other, interface.block_size, axis=1)[:, : interface.k]
    alone = np.where(batch.c != 0, exponents(batch.c, c), c.emin)
    return np.maximum(multiplied.max(axis=1), alone)


def _shifted(values: np.ndarray, fmt: Format, by: np.ndarray) -> np.ndarray:
    """Return normal numbers times powers of two, clipped to the range of normal numbers; other encodings are unchanged."""
    step = fmt.fraction_bits + fmt.padding_bits
    magnitude = magnitudes(values, fmt)
    exponent = magnitude >> step
    lowest = fmt.emin + fmt.bias
    moved = np.clip(exponent + by, lowest, fmt.emax + fmt.bias)
    special = (exponent < lowest) | (magnitude > fmt.max_bits)
    return np.where(special, values, signed(magnitude + ((moved - exponent) << step), values, fmt))


def _shared(one: np.ndarray, other: np.ndarray, formats: tuple, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two factors multiplied by powers of two, together by 2^`shift` as far as their formats reach."""
    first, second = formats
    present = exponents(one, first)
    room = np.clip(shift // 2, first.emin - present.min(axis=1), first.emax - present.max(axis=1))
    rest = shift - room
    return _shifted(one, first, room[:, None]), _shifted(other, second, rest[:, None])


def scaled(interface: Interface, batch: DotBatch, shift: np.ndarray) -> DotBatch:
    """Return dot products with products and c multiplied by 2^`shift` (size,), in the block scales if there are any."""
    c = _shifted(batch.c, interface.formats[2], shift)
    if batch.scales is not None:
        scales = _shared(*batch.scales, (interface.scale_format, interface.scale_format), shift)
        return DotBatch(batch.a, batch.b, c, *scales)
    return DotBatch(*_shared(batch.a, batch.b, interface.formats[:2], shift), c)
