"""Converts arrays of operands to the format in which a unit multiplies; a pass converts its codes one by one."""

import dataclasses
from functools import lru_cache

import numpy as np

from ...formats import Format
from ...formats.rounding import decode, encode


def converts(fmt: Format, via: Format) -> bool:
    """Return whether :func:`convert_array` can convert, and no number of `fmt` overflows other than by rounding."""
    full = full_width(fmt)
    if full.container.itemsize > 2:
        same = ("bits", "exponent_bits", "bias")
        return full.specials == "ieee" and all(getattr(full, name) == getattr(via, name) for name in same)
    inside = full.emax <= via.emax and full.quantum_exponent >= via.quantum_exponent
    return inside and full.fraction_bits <= via.fraction_bits


def full_width(fmt: Format) -> Format:
    """Return the format with its ignored bits as fraction bits."""
    return dataclasses.replace(fmt, fraction_bits=fmt.fraction_bits + fmt.padding_bits, padding_bits=0)


@lru_cache(256)
def _table(fmt: Format, via: Format, flush: bool) -> np.ndarray:
    """Return the converted encoding of each encoding of a format of at most 16 bits."""
    values = decode(np.arange(1 << fmt.bits, dtype=fmt.container), fmt, np.dtype(np.float64))
    table = encode(values, via)
    table[np.isnan(values)] = via.nan_encoding()
    if flush:
        tiny = table & via.exponent_mask == 0
        table[tiny] &= via.sign_bit
    table.setflags(write=False)
    return table


def _flushed(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """Return 16-bit encodings with zeros for subnormal numbers and the quiet NaN for each NaN; faster than a table."""
    word, top = fmt.container.type, fmt.exponent_mask
    kept = codes & np.where(codes & word(top), word(0xFFFF), word(fmt.sign_bit))
    return np.where(codes & word(0x7FFF) > word(top), word(fmt.nan_encoding()), kept)


def convert_array(codes: np.ndarray, fmt: Format, via: Format, flush: bool) -> np.ndarray:
    """Return an array of codes, converted as `arithmetic.converted` converts those of a pass.

    Formats of up to 16 bits are converted by a table. Wider formats have the exponents of `via` (:func:`converts`).
    """
    if fmt == via and not flush and not fmt.padding_bits:
        return codes
    if fmt == via and fmt.container.itemsize == 2 and not fmt.padding_bits:
        return _flushed(codes, fmt)
    if fmt.container.itemsize <= 2:
        return _table(fmt, via, flush)[codes]
    full = full_width(fmt)
    drop = np.uint32(full.fraction_bits - via.fraction_bits)
    magnitude, sign = codes & np.uint32(0x7FFFFFFF), codes & np.uint32(0x80000000)
    special = magnitude > np.uint32(via.exponent_mask)
    if drop:
        odd = magnitude >> drop & np.uint32(1)
        magnitude = magnitude + odd + np.uint32((1 << int(drop) - 1) - 1) >> drop << drop
    if flush:
        magnitude = np.where(magnitude < np.uint32(1 << 23), np.uint32(0), magnitude)
    return np.where(special, np.uint32(via.nan_encoding()), magnitude | sign)
