"""Finds inputs that tell an instruction from another one with the same operand formats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..engines.instruction import Instruction
from ..formats import IntegerFormat, get_format
from ..formats.rounding import encode
from ..probing.vectors import probe_set

#: Number of random dot products of each magnitude that are tried if the probe vectors show no difference.
RANDOM = 512
#: Ranges of exponents: near that of 1, where sums cancel and round; the largest; the smallest, with subnormal numbers.
MAGNITUDES = ("near one", "large", "small")
#: Encoding of 1 in each format of block scales.
ONE_SCALE = {"ue8m0": 127, "ue4m3": 0x38}
SEED = 20251


@dataclass(frozen=True)
class PairWitness:
    """`PairWitness` is a dot product for which two instructions return different bits, as encodings.

    `a` and `b` are the operands, `c` is the addend, `here` and `there` are the results of both instructions.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    here: int
    there: int


Dots = tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def _derived(row: Instruction, k: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...]:
    """Return the probe vectors of a row, padded to k products."""
    if isinstance(get_format(row.d_format), IntegerFormat):
        return ()
    pad = (0,) * (k - row.k)
    return tuple((vector.a + pad, vector.b + pad, vector.c) for vector in probe_set(row).vectors)


def _stacked(row: Instruction, dots: Sequence) -> Dots:
    a, b, c, _ = (fmt.container for fmt in row.formats)
    return np.array([d[0] for d in dots], a), np.array([d[1] for d in dots], b), np.array([d[2] for d in dots], c)


def _random(row: Instruction, k: int, family: str) -> Dots:
    """Return random dot products of one of the :data:`MAGNITUDES`."""
    rng = np.random.default_rng(SEED)

    def drawn(fmt, shape, *, addend: bool = False):
        if isinstance(fmt, IntegerFormat):
            values = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64)
            if addend and family == "large":  # next to the ends of the range
                values = np.uint64((1 << fmt.bits - 1) - (1 << fmt.bits - 17)) + (values >> np.uint64(16))
            return values.astype(fmt.container)
        low, high = {
            "near one": (fmt.bias - min(4, fmt.emax - 1), fmt.bias + min(4, fmt.emax - 1)),
            "large": (fmt.bias + fmt.emax - 3, fmt.bias + fmt.emax - 1),
            "small": (0, 3),
        }[family]
        signs = rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(fmt.exponent_bits + fmt.fraction_bits)
        exponents = rng.integers(low, high + 1, shape, dtype=np.uint64) << np.uint64(fmt.fraction_bits)
        fractions = rng.integers(0, 1 << fmt.fraction_bits, shape, dtype=np.uint64)
        return ((signs | exponents | fractions) << np.uint64(fmt.padding_bits)).astype(fmt.container)

    a, b, c, _ = row.formats
    return drawn(a, (RANDOM, k)), drawn(b, (RANDOM, k)), drawn(c, RANDOM, addend=True)


def _special(row: Instruction, k: int) -> Dots:
    """Return dot products with an infinity or a NaN as operand or as addend, if the formats have them."""
    a, b, c, _ = row.formats
    one, dots = _encoded(1.0, b), []
    for value in (np.inf, -np.inf, np.nan):
        operand, addend = _encoded(value, a), _encoded(value, c)
        rest = (0,) * (k - 1)
        dots += [((operand, *rest), (one, *rest), 0)] if None not in (operand, one) else []
        dots += [((0, *rest), (0, *rest), addend)] if addend is not None else []
    return _stacked(row, dots)


def _encoded(value: float, fmt) -> int | None:
    if isinstance(fmt, IntegerFormat):
        return None
    try:
        return int(encode(np.array([value]), fmt)[0])
    except ValueError:  # the format has no such value
        return None


def _results(row: Instruction, dots: Dots) -> np.ndarray:
    """Return the result of each dot product."""
    a, b, c = dots
    out = []
    for start in range(0, len(c), 64):
        part = slice(start, start + 64)
        count = len(c[part])
        addends = np.zeros((count, count), c.dtype)
        np.fill_diagonal(addends, c[part])
        scales = []
        if row.scale_format is not None and row.block_size is not None:
            blocks = a.shape[1] // row.block_size
            one = ONE_SCALE[row.scale_format]
            scales = [np.full((count, blocks), one, np.uint8), np.full((blocks, count), one, np.uint8)]
        product = row.gemm_bits(a[part], np.ascontiguousarray(b[part].T), addends, *scales)
        out.append(np.diagonal(product))
    return np.concatenate(out)


def witness(row: Instruction, other: Instruction) -> PairWitness | None:
    """Return a dot product on which two instructions differ, with as few nonzero products as found; None if none was found.

    The probe vectors of both instructions are tried first, then random numbers of each of the :data:`MAGNITUDES`, then
    infinities and NaN. Raises ValueError if the instructions have different formats or the arithmetic of one is not public.
    """
    if row.formats != other.formats or (row.scale_format, row.block_size) != (other.scale_format, other.block_size):
        raise ValueError(
            f"{row} and {other} have different formats, so they have no common input: name two instructions with the same "
            "operand, result and scale formats"
        )
    if not (row.published and other.published):
        raise ValueError(
            f"{row} and {other} cannot be compared, because the arithmetic of {other if row.published else row} is not public: "
            "name another instruction"
        )
    k = max(row.k, other.k)
    for dots in _tried(row, other, k):
        here, there = _results(row, dots), _results(other, dots)
        different = np.flatnonzero(here != there)
        if different.size:
            sizes = np.count_nonzero(dots[0][different], axis=1)
            index = different[int(np.argmin(sizes))]
            a, b, c = (part[index] for part in dots)
            return PairWitness(tuple(map(int, a)), tuple(map(int, b)), int(c), int(here[index]), int(there[index]))
    return None


def _tried(row: Instruction, other: Instruction, k: int) -> Iterator[Dots]:
    derived = list(dict.fromkeys([*_derived(row, k), *_derived(other, k)]))
    if derived:
        yield _stacked(row, derived)
    for family in MAGNITUDES:
        yield _random(row, k, family)
    special = _special(row, k)
    if len(special[2]):
        yield special
