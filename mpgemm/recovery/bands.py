"""Runs bands of products, between which the unit scales its accumulator down (BF16x9 of CUTLASS), fast and with the same bits.

A unit that aligns addends to the largest exponent computes the same significands at every scale, except near both ends of the
range. So bands whose words carry 2^(j s), with the accumulator scaled by 2^-s before each band, give the bits of one plain
chain over words without their scales (:func:`unscaled_words`), which is one call of the engine. Where that does not apply,
:func:`band_steps` computes many k steps at a time, with one batch of the engine's kernel for every band. Operands with few
different exponents need neither, because kernels scale their sums themselves (:func:`tensorcore_models.kernels.scaled_bits`).
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tensorcore_models import kernels
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.families.base import SumAlgorithm
from tensorcore_models.formats import Format

#: Products of each band, smallest band first, as indices of words of A and of B.
Bands = Sequence[Sequence[tuple[int, int]]]
Words = Sequence[np.ndarray]

#: Exponents of the smallest positive number and of the largest number of FP32.
_SMALLEST, _LARGEST = -149, 127


def unscaled_words(engine: Engine, words_a: Words, words_b: Words, bands: Bands, scale: int) -> tuple | None:
    """Return (words of A, words of B) without their scales, None if a chain over them may give other bits than the bands.

    The bits are equal if all of these hold:

    * no nonzero product is below the alignment floor, or so small that its last aligned bit is below FP32's smallest number;
    * no sum can overflow;
    * words without their scales stay normal numbers.

    Zero products take no part in an alignment, and an accumulator to which only zeros are added keeps its value.

    words_a, words_b: encodings of words; word j carries 2^(j scale).
    bands: products of words in each band.
    scale: the word scale exponent s.
    """
    accumulator = getattr(engine, "accumulator", None)
    form = None if accumulator is None else accumulator.form()
    if form is None or form.algorithm is not SumAlgorithm.FUSED or {fmt.name for fmt in engine.formats[2:]} != {"fp32"}:
        return None
    spec = form.spec
    if (spec.zero_operand, spec.zero_c) != ("skip", "skip") or spec.exponent_floor is None:
        return None
    of_a, of_b = (_lowered(words, fmt, scale) for words, fmt in zip((words_a, words_b), engine.formats, strict=False))
    if of_a is None or of_b is None:
        return None
    (lowered_a, low_a, high_a), (lowered_b, low_b, high_b) = of_a, of_b
    # a product of significands is below 4; three bits cover it, the accumulator and the rounding up of the logarithm
    growth = 3 + math.ceil(math.log2(engine.k * sum(map(len, bands))))
    if low_a + low_b < max(spec.exponent_floor, spec.fraction_bits + _SMALLEST) or high_a + high_b + growth > _LARGEST:
        return None
    return lowered_a, lowered_b


def _lowered(words: Words, fmt: Format, scale: int) -> tuple[list[np.ndarray], int, int] | None:
    """Return words times 2^(-j scale), their smallest exponent, and the largest exponent before scaling; None if inexact."""
    container, top = fmt.container.type, (1 << fmt.exponent_bits) - 1
    one, sign = container(1), container(1 << (fmt.bits - 1))
    lowered, low, high = [], _LARGEST, 2 * _SMALLEST
    for j, word in enumerate(words):
        magnitudes = word & ~sign
        largest = int(magnitudes.max(initial=0)) >> fmt.fraction_bits
        down = np.minimum(magnitudes, one)  # in place from here, because new pages cost as much as the arithmetic
        magnitudes -= one  # 0 wraps around to the largest value
        smallest = int(magnitudes.min(initial=sign)) + 1 >> fmt.fraction_bits
        if largest:
            low, high = min(low, smallest - j * scale - fmt.bias), max(high, largest - fmt.bias)
        if largest == top or smallest <= j * scale:
            return None
        down *= container(j * scale << fmt.fraction_bits)
        lowered.append(np.subtract(word, down, out=down) if j else word)
    return lowered, low, high


def band_steps(
    engine: MatrixEngine, words_a: Words, words_b: Words, bands: Bands, scale: int, steps: int
) -> Iterator[np.ndarray]:
    """Yield the unit's sums after the last band of each k step, as encodings (m, n); `steps` k steps are computed at a time."""
    (m, k), n, step = words_a[0].shape, words_b[0].shape[1], engine.k
    c_format = engine.formats[2]
    for start in range(0, k, steps * step):
        ks, count = slice(start, start + steps * step), -(-min(k - start, steps * step) // step)
        a = [_stepped(word[:, ks], 1, count * step).reshape(m, count, step).transpose(1, 0, 2) for word in words_a]
        b = [_stepped(word[ks], 0, count * step).reshape(count, step, n) for word in words_b]
        bits = np.zeros((count, m, n), c_format.container)
        for number, band in enumerate(bands):
            bits = engine.scaled_input(bits, scale if number else 0)
            for i, j in band:
                bits = kernels.batch_bits(engine, np.ascontiguousarray(a[i]), b[j], bits)
        yield from bits


def _stepped(word: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Return a word padded with zeros along the axis of k."""
    pad = [(0, 0), (0, 0)]
    pad[axis] = (0, length - word.shape[axis])
    return np.pad(word, pad)
