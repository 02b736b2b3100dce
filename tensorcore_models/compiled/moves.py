"""Tracks moves of whole bytes: where the bytes of an operation's operands are in its result.

Owners are the byte numbers of :mod:`.expressions`, shape (lanes, bytes), 0 for a byte that depends on no input; values are the
bytes themselves. A rule gives the owners of the result, or None if the operation is more than a move.
"""

from collections.abc import Callable

import numpy as np

from .isa.meaning import Meaning
from .isa.types import bits_of


def as_bytes(values, count: int, size: int) -> np.ndarray:
    """Return values of operands as bytes, shape (count, size)."""
    values = np.asarray(values)
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(values, (count,))).view(np.uint8).reshape(count, -1)[:, :size]


def numbers(values: np.ndarray) -> np.ndarray:
    """Return values, given as bytes, as 32-bit integers."""
    whole = np.zeros((len(values), 4), np.uint8)
    whole[:, : values.shape[1]] = values[:, :4]
    return whole.view(np.uint32).reshape(-1)


def resized(owners: np.ndarray, size: int) -> np.ndarray:
    """Return the low bytes; bytes added above have the owner 0."""
    if owners.shape[1] >= size:
        return owners[:, :size]
    return np.pad(owners, ((0, 0), (0, size - owners.shape[1])))


def masked(owners: list, values: list) -> np.ndarray | None:
    """Return the owners after an "and": a constant keeps or clears each byte."""
    for own, mask_owner, mask in ((owners[0], owners[1], values[1]), (owners[1], owners[0], values[0])):
        if not mask_owner.any() and np.isin(mask[own != 0], (0, 255)).all():
            return np.where(mask == 255, own, 0)
    return None


def merged(owners: list, values: list) -> np.ndarray | None:
    """Return the owners after an "or" or "xor" of bytes of which only one operand has set bits."""
    left, right = owners
    if ((left != 0) & ((right != 0) | (values[1] != 0))).any() or ((right != 0) & (values[0] != 0) & (left == 0)).any():
        return None
    return np.where(left != 0, left, right)


def shifted(owners: np.ndarray, places: np.ndarray, size: int, *, left: bool) -> np.ndarray | None:
    """Return the owners after a logical shift by whole bytes, the same in all lanes."""
    if (places != places[0]).any() or places[0] % 8:
        return None
    step, out = int(places[0]) // 8, np.zeros_like(owners)
    if step < size:
        if left:
            out[:, step:] = owners[:, : size - step]
        else:
            out[:, : size - step] = owners[:, step:]
    return out


def extracted(owners: np.ndarray, start: np.ndarray, length: np.ndarray, size: int) -> np.ndarray | None:
    """Return the owners of fields of whole bytes, filled with zeros."""
    same = (start == start[0]).all() and (length == length[0]).all()
    if not same or start[0] % 8 or length[0] % 8:
        return None
    first, count = int(start[0]) // 8, int(length[0]) // 8
    return resized(owners[:, first : first + count], size)


# -- rules by operation: (meaning, owners, values as bytes, bytes of the result) -----------------------------------------
def _copied(m: Meaning, owners: list, values: list, size: int):
    return resized(owners[0], size)


def _resized(m: Meaning, owners: list, values: list, size: int):
    extends = bits_of(m.result) > bits_of(m.sources[0])
    return None if m.saturate or extends and m.sources[0][0] == "s" else resized(owners[0], size)


def _selected(m: Meaning, owners: list, values: list, size: int):
    first, second = owners[1::-1] if "second" in m.options else owners[:2]
    return np.where(values[2] != 0, first, second)


def _masked(m: Meaning, owners: list, values: list, size: int):
    return masked(owners[:2], values[:2])


def _merged(m: Meaning, owners: list, values: list, size: int):
    return merged(owners[:2], values[:2])


def _shifted(m: Meaning, owners: list, values: list, size: int):
    if owners[1].any() or m.result[0] == "s":
        return None
    return shifted(owners[0], numbers(values[1]), size, left=m.operation == "shl")


def _shifted_or(m: Meaning, owners: list, values: list, size: int):
    """Return the owners of (x << y) | z."""
    by = numbers(values[1])
    placed = None if owners[1].any() else shifted(owners[0], by, size, left=True)
    if placed is None:
        return None
    word = numbers(values[0]) << by
    return merged([placed, owners[2]], [word.view(np.uint8).reshape(-1, 4), values[2]])


def _masked_or(m: Meaning, owners: list, values: list, size: int):
    """Return the owners of (x & y) | z."""
    kept = masked(owners[:2], values[:2])
    return None if kept is None else merged([kept, owners[2]], [values[0] & values[1], values[2]])


def _merged_three(m: Meaning, owners: list, values: list, size: int):
    first = merged(owners[:2], values[:2])
    return None if first is None else merged([first, owners[2]], [values[0] | values[1], values[2]])


def _permuted(m: Meaning, owners: list, values: list, size: int):
    """Return the owners after prmt: bytes by constant selectors without signs."""
    nibbles = numbers(values[2])[:, None] >> np.arange(0, 16, 4, dtype=np.uint32) & np.uint32(15)
    if owners[2].any() or (nibbles & 8).any():
        return None
    return np.take_along_axis(np.concatenate(owners[:2], 1), nibbles.astype(np.int64), 1)


def _permuted_by_bytes(m: Meaning, owners: list, values: list, size: int):
    """Return the owners after v_perm_b32: bytes of {x, y} by selectors; 12 gives 0."""
    selector = values[2]
    if owners[2].any() or ((selector > 7) & (selector != 12)).any():
        return None
    found = np.take_along_axis(np.concatenate(owners[1::-1], 1), np.minimum(selector, 7).astype(np.int64), 1)
    return np.where(selector == 12, 0, found)


def _field(m: Meaning, owners: list, values: list, size: int):
    if m.result[0] == "s" or "packed" in m.options or owners[1].any() or owners[2].any():
        return None
    return extracted(owners[0], numbers(values[1]), numbers(values[2]), size)


def _funnel(m: Meaning, owners: list, values: list, size: int):
    """Return the owners of the whole bytes of two words that start at a place."""
    by = numbers(values[2]) * np.uint32(8 if "bytes" in m.options else 1) & np.uint32(31)
    if {"left", "clamp"} & {*m.options} or owners[2].any() or (by % 8).any() or (by != by[0]).any():
        return None
    first, pair = int(by[0]) // 8, owners[1::-1] if "high_first" in m.options else owners[:2]
    return np.concatenate(pair, 1)[:, first : first + 4]


def _merged_bits(m: Meaning, owners: list, values: list, size: int):
    """Return the owners of the bits of y where the mask x has ones, of z elsewhere."""
    if owners[0].any() or not np.isin(values[0], (0, 255)).all():
        return None
    return np.where(values[0] == 255, owners[1], owners[2])


def _packed(m: Meaning, owners: list, values: list, size: int):
    return np.concatenate(owners, 1)


def _halves(m: Meaning, owners: list, values: list, size: int):
    return np.concatenate([own[:, 2 * half : 2 * half + 2] for own, half in zip(owners, m.options, strict=True)], 1)


#: Rules of the operations that may move whole bytes.
RULES: dict[str, Callable] = {
    "move": _copied, "resize": _resized, "select": _selected, "and": _masked, "or": _merged, "xor": _merged, "shl": _shifted,
    "shr": _shifted, "shl_or": _shifted_or, "and_or": _masked_or, "or3": _merged_three, "permute": _permuted,
    "permute_bytes": _permuted_by_bytes, "field": _field, "funnel": _funnel, "merge_bits": _merged_bits, "pack": _packed,
    "halves": _halves,
}  # fmt: skip


def moved(m: Meaning, owners: list, values: list, size: int) -> np.ndarray | None:
    """Return the owners of the result of an operation that moves whole bytes; None if it is more than a move."""
    rule = RULES.get(m.operation)
    if rule is None:
        return None
    return rule(m, owners[::-1], values[::-1], size) if m.turned else rule(m, owners, values, size)
