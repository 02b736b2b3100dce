"""Computes functions of integers and bits on arrays; signed operands are signed integers, all others unsigned."""

from collections.abc import Callable

import numpy as np

from ..errors import KernelFault
from .meaning import Meaning
from .types import array_type, bits_of


def _wide(x: np.ndarray) -> np.ndarray:
    """Return the number as an integer of twice the bits."""
    return x.astype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")


def high_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the upper half of a product."""
    bits = 8 * x.dtype.itemsize
    if bits < 64:
        return (_wide(x) * _wide(y) >> bits).astype(x.dtype)
    x, y = np.broadcast_arrays(x, y)
    exact = [int(a) * int(b) >> 64 & (1 << 64) - 1 for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    return np.array(exact, np.uint64).reshape(x.shape).view(x.dtype)


def _rest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of a division whose quotient is truncated toward zero."""
    if np.any(y == 0):
        raise KernelFault("divides an integer by zero, whose result PTX leaves open")
    return np.fmod(x, y)


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    left = _rest(x, y)
    with np.errstate(over="ignore"):
        return (x - left) // y


def leading_zeros(x: np.ndarray) -> np.ndarray:
    """Return the number of zeros above the highest set bit."""
    spread, bits = np.array(x), 8 * x.dtype.itemsize
    for step in (1, 2, 4, 8, 16, 32):
        if step < bits:
            spread = spread | spread >> x.dtype.type(step)
    return np.uint32(bits) - np.bitwise_count(spread).astype(np.uint32)


def _highest(m: Meaning) -> Callable:
    """Return the place of the highest bit that differs from the sign, or its distance from the top; all ones if there is no
    such bit."""

    def run(x):
        bits = 8 * x.dtype.itemsize
        if x.dtype.kind == "i":
            x = np.where(x < 0, ~x, x).view(f"u{x.dtype.itemsize}")
        distance = leading_zeros(x)
        found = distance if "distance" in m.options else np.uint32(bits - 1) - distance
        return np.where(x == 0, np.uint32(0xFFFFFFFF), found)

    return run


def _lowest(m: Meaning) -> Callable:
    """Return the place of the lowest bit that is 1 (or 0, as the option says), all ones if there is no such bit."""

    def run(x):
        x = x if m.options[0] else ~x
        lowest = x & (~x + x.dtype.type(1))
        place = np.bitwise_count(lowest - x.dtype.type(1)).astype(np.uint32)
        return np.where(x == 0, np.uint32(0xFFFFFFFF), place)

    return run


def reversed_bits(x: np.ndarray) -> np.ndarray:
    """Return all bits in reverse order."""
    kind = x.dtype
    raw = np.ascontiguousarray(np.atleast_1d(x)).view(np.uint8).reshape(-1, kind.itemsize)
    turned = np.packbits(np.unpackbits(raw, axis=1, bitorder="little")[:, ::-1], axis=1, bitorder="little")
    return np.ascontiguousarray(turned).view(kind).reshape(np.shape(x))


def shifted(x: np.ndarray, by, *, left: bool) -> np.ndarray:
    """Return x shifted by a number of places that may exceed its width: then all bits leave (or become the sign)."""
    bits = 8 * x.dtype.itemsize
    over = by >= bits
    step = np.where(over, 0, by).astype(x.dtype)
    if left:
        return np.where(over, x.dtype.type(0), x << step)
    gone = np.where(x < 0, x.dtype.type(-1), x.dtype.type(0)) if x.dtype.kind == "i" else x.dtype.type(0)
    return np.where(over, gone, x >> step)


def _shift(m: Meaning) -> Callable:
    """Return the function of a left or right shift; with the option "masked", only the low bits of the distance count."""
    left = m.operation == "shl"
    if "masked" not in m.options:
        return lambda x, by: shifted(x, by, left=left)
    function = np.left_shift if left else np.right_shift
    return lambda x, by: function(x, (by & by.dtype.type(8 * x.dtype.itemsize - 1)).astype(x.dtype))


def field_extracted(x: np.ndarray, place, length) -> np.ndarray:
    """Return `length` bits of x that start at `place` (8 bits of each count), sign-extended for signed types (PTX ISA 9.1,
    9.7.1.19)."""
    bits, signed = 8 * x.dtype.itemsize, x.dtype.kind == "i"
    place, length = np.uint32(place) & np.uint32(255), np.uint32(length) & np.uint32(255)
    # Shifted to the top and back: the top bit is that of the field, or of x where the field goes beyond it.
    top = np.minimum(place + length, np.uint32(bits))
    raised = shifted(x, np.uint32(bits) - top, left=True)
    width = np.maximum(top.astype(np.int64) - place, 0)
    if signed:
        out = shifted(raised, np.uint32(np.minimum(bits - width, bits - 1)), left=False)
        beyond = shifted(x, np.broadcast_to(np.uint32(bits - 1), np.shape(x)), left=False)
        out = np.where(width == 0, beyond, out)
    else:
        out = shifted(raised, np.uint32(bits - width), left=False)
    return np.where(length == 0, x.dtype.type(0), out)


def _field(m: Meaning) -> Callable:
    """Return a field whose place and length are operands, of 5 bits with the option "masked", or in one word ("packed")."""
    if "packed" in m.options:
        low = np.uint32(bits_of(m.result) - 1)
        return lambda x, where: field_extracted(x, where & low, where >> np.uint32(16) & np.uint32(127))
    if "masked" in m.options:
        return lambda x, place, length: field_extracted(x, place & np.uint32(31), length & np.uint32(31))
    return field_extracted


def field_inserted(x: np.ndarray, y: np.ndarray, place, length) -> np.ndarray:
    """Return y with the low `length` bits of x inserted at `place`."""
    bits = 8 * y.dtype.itemsize
    place, length = np.uint32(place) & np.uint32(255), np.minimum(np.uint32(length) & np.uint32(255), bits)
    ones = np.broadcast_to(y.dtype.type((1 << bits) - 1), np.shape(length))
    mask = shifted(shifted(ones, np.uint32(bits) - length, left=False), place, left=True)
    return (y & ~mask) | (shifted(x, place, left=True) & mask)


def permuted(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Return prmt in its default mode: each nibble selects a byte of {y, x}, its bit 3 the byte's sign (PTX ISA 9.1,
    9.7.9.7)."""
    both = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)
    out = np.zeros(np.shape(both), np.uint32)
    for place in range(4):
        nibble = selector >> np.uint32(4 * place) & np.uint32(15)
        byte = (both >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(255)
        sign = np.where(byte & np.uint32(128) != 0, np.uint32(255), np.uint32(0))
        out = out | np.where(nibble & np.uint32(8) != 0, sign, byte) << np.uint32(8 * place)
    return out


def permuted_by_bytes(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Return v_perm_b32: each selector byte takes a byte of {x, y} (0 to 7), a sign (8 to 11), 0 (12), or 255 (above)."""
    both = y.astype(np.uint64) | x.astype(np.uint64) << np.uint64(32)
    out = np.zeros(np.shape(both | selector), np.uint32)
    for place in range(4):
        code = selector >> np.uint32(8 * place) & np.uint32(255)
        byte = both >> (np.minimum(code, np.uint32(7)) * np.uint32(8)).astype(np.uint64)
        signs = both >> ((np.clip(code, 8, 11) - 8) * 16 + 15).astype(np.uint64) & np.uint64(1)
        value = np.where(code < 8, byte & np.uint64(255), np.where(code < 12, signs * np.uint64(255), np.uint64(255)))
        out = out | np.where(code == 12, np.uint64(0), value).astype(np.uint32) << np.uint32(8 * place)
    return out


def _truth_table(m: Meaning) -> Callable:
    """Return any function of three bits; bit 4x + 2y + z of the table is its value."""

    def run(x, y, z):
        out = np.zeros(np.broadcast(x, y, z).shape, np.uint32)
        for case in range(8):
            if m.options[0] >> case & 1:
                out |= (x if case & 4 else ~x) & (y if case & 2 else ~y) & (z if case & 1 else ~z)
        return out

    return run


def _funnel(m: Meaning) -> Callable:
    """Return 32 bits of {y, x} ("high_first": {x, y}) shifted by bits or "bytes".

    The distance is taken modulo, or clamped ("clamp").
    """
    unit = np.uint32(8 if "bytes" in m.options else 1)
    clamp, left, high_first = (word in m.options for word in ("clamp", "left", "high_first"))

    def run(x, y, by):
        x, y = (y, x) if high_first else (x, y)
        step = np.minimum(by, np.uint32(32)) if clamp else by * unit & np.uint32(31)
        both, step = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32), step.astype(np.uint64)
        return ((both << step) >> np.uint64(32) if left else both >> step).astype(np.uint32)

    return run


def _dot4(m: Meaning) -> Callable:
    """Return the sum of four products of bytes, signed or not, and an addend."""

    def run(a, b, c):
        parts = [np.ascontiguousarray(x).view(f"{kind}1").reshape(*np.shape(x), 4).astype(np.int64)
                 for x, kind in zip(np.broadcast_arrays(a, b), m.options, strict=True)]  # fmt: skip
        return ((parts[0] * parts[1]).sum(-1) + c.astype(np.int64)).astype(np.uint32)

    return run


def _low24(x: np.ndarray) -> np.ndarray:
    """Return the low 24 bits, sign-extended for signed numbers."""
    return x << x.dtype.type(8) >> x.dtype.type(8)


def _halves(m: Meaning) -> Callable:
    """Return one half of each of two words, as the options say."""
    first, second = (np.uint32(16 * half) for half in m.options)
    low = np.uint32(0xFFFF)
    return lambda x, y: x >> first & low | (y >> second & low) << np.uint32(16)


def _packed(m: Meaning) -> Callable:
    """Return numbers packed side by side, the first one in the low bits."""
    wide, width = array_type(m.result).type, bits_of(m.sources[0])

    def run(*parts):
        out = wide(0)
        for place, value in enumerate(parts):
            out = out | np.asarray(value).astype(wide) << wide(place * width)
        return out

    return run


def _ones(m: Meaning) -> Callable:
    """Return a run of ones, as many as the first operand says, shifted by the second."""
    wide, low = array_type(m.result).type, np.uint32(bits_of(m.result) - 1)
    return lambda count, by: ((wide(1) << (count & low).astype(wide)) - wide(1)) << (by & low).astype(wide)


def _bit(m: Meaning) -> Callable:
    """Return a word with one bit set to 0 or 1."""
    value = m.options[0]

    def run(x, by):
        bit = x.dtype.type(1) << (by & np.uint32(8 * x.dtype.itemsize - 1)).astype(x.dtype)
        return x | bit if value else x & ~bit

    return run


def _bit_is(m: Meaning) -> Callable:
    low = np.uint32(bits_of(m.sources[0]) - 1)
    return lambda x, n: (x >> (n & low).astype(x.dtype) & x.dtype.type(1)) == m.options[0]


def _minimum(*values):
    return values[0] if len(values) == 1 else np.minimum(values[0], _minimum(*values[1:]))


def _maximum(*values):
    return values[0] if len(values) == 1 else np.maximum(values[0], _maximum(*values[1:]))


def _resized(m: Meaning) -> Callable:
    """Return the number truncated or extended to another width, or clamped to its range."""
    kind = array_type(m.result)
    if not m.saturate:
        return lambda x: np.asarray(x).astype(kind)
    ends = [[int(info.min), int(info.max)] for info in map(np.iinfo, (kind, array_type(m.sources[0])))]
    low, high = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    return lambda x: np.clip(x, low, high).astype(kind)


def _selected(m: Meaning) -> Callable:
    """Return the first operand if the third holds, else the second (the other way round with the option "second")."""
    if "second" in m.options:
        return lambda x, y, held: np.where(held, y, x)
    return lambda x, y, held: np.where(held, x, y)


def _shifted_sum(m: Meaning) -> Callable:
    """Return x shifted by a constant of the options, or by the low bits of an operand (5, or 3 for wide numbers), plus z."""
    if m.options:
        return lambda x, y: (x << x.dtype.type(m.options[0])) + y
    low = np.uint32(31 if bits_of(m.result) == 32 else 7)
    return lambda x, by, z: (x << (by & low).astype(x.dtype)) + z


_FIVE = np.uint32(31)
#: Functions of arrays, by operation.
PLAIN: dict[str, Callable] = {
    "move": np.asarray, "add": np.add, "sub": np.subtract, "neg": np.negative, "abs": np.abs, "min": _minimum, "max": _maximum,
    "mul": np.multiply, "mul_high": high_product, "mul_wide": lambda x, y: _wide(x) * _wide(y),
    "mad": lambda x, y, z: x * y + z, "mad_high": lambda x, y, z: high_product(x, y) + z,
    "mad_wide": lambda x, y, z: _wide(x) * _wide(y) + z,
    "mul_24": lambda x, y: _low24(x) * _low24(y), "mul_high_24": lambda x, y: high_product(_low24(x), _low24(y)),
    "mad_24": lambda x, y, z: _low24(x) * _low24(y) + z,
    "div": _quotient, "rem": _rest,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "andn": lambda x, y: x & ~y, "orn": lambda x, y: x | ~y, "nand": lambda x, y: ~(x & y), "nor": lambda x, y: ~(x | y),
    "xnor": lambda x, y: ~(x ^ y), "cnot": lambda x: (x == 0).astype(x.dtype),
    "merge_bits": lambda x, y, z: (x & y) | (~x & z), "insert_field": field_inserted,
    "permute": permuted, "permute_bytes": permuted_by_bytes, "reverse": reversed_bits,
    "popc": lambda x: np.bitwise_count(x).astype(np.uint32), "popc_zeros": lambda x: np.bitwise_count(~x).astype(np.uint32),
    "popc_add": lambda x, y: np.bitwise_count(x).astype(np.uint32) + y, "clz": leading_zeros,
    "sad": lambda x, y, z: np.maximum(x, y) - np.minimum(x, y) + z,
    "absdiff": lambda x, y: np.abs(_wide(x) - _wide(y)).astype(x.dtype),
    "add3": lambda x, y, z: x + y + z, "add_carry": lambda x, y, c: x + y + c, "sub_borrow": lambda x, y, c: x - y - c,
    "sub_turned_borrow": lambda x, y, c: y - x - c,
    "xor_add": lambda x, y, z: (x ^ y) + z, "or3": lambda x, y, z: x | y | z, "and_or": lambda x, y, z: (x & y) | z,
    "add_shl": lambda x, y, z: (x + y) << (z & _FIVE), "shl_or": lambda x, y, z: (x << (y & _FIVE)) | z,
    "exchange": lambda x, y: np.asarray(y), "compare_swap": lambda x, y, z: np.where(x == y, z, x),
    "increment": lambda x, y: np.where(x >= y, x.dtype.type(0), x + x.dtype.type(1)),
    "decrement": lambda x, y: np.where((x == 0) | (x > y), y, x - x.dtype.type(1)),
    "med3": lambda x, y, z: np.maximum(np.minimum(x, y), np.minimum(np.maximum(x, y), z)),
}  # fmt: skip
#: Factories of such functions, for operations that have options or several types.
MADE: dict[str, Callable[[Meaning], Callable]] = {
    "shl": _shift, "shr": _shift, "highest": _highest, "lowest": _lowest, "field": _field, "table": _truth_table,
    "funnel": _funnel, "dot4": _dot4, "halves": _halves, "pack": _packed, "ones": _ones,
    "set_bit": _bit, "bit_is": _bit_is, "resize": _resized, "select": _selected, "shl_add": _shifted_sum,
}  # fmt: skip
