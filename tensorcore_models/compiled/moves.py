"""Moves of whole bytes: where the bytes of an operation's operands are in its result.

Owners are numbers of :mod:`.expressions`, shape (lanes, bytes), 0 for nobody's; values are the bytes themselves. A rule gives
the owners of the result, or None where the operation is more than a move.
"""

import numpy as np


def as_bytes(values, count: int, size: int) -> np.ndarray:
    """Values of operands as bytes, shape (count, size)."""
    values = np.asarray(values)
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(values, (count,))).view(np.uint8).reshape(count, -1)[:, :size]


def numbers(values: np.ndarray) -> np.ndarray:
    """Bytes of 32-bit numbers as these."""
    return np.ascontiguousarray(values).view(np.uint32).reshape(-1)


def resized(owners: np.ndarray, size: int) -> np.ndarray:
    """The low bytes, or more of them with nobody's above."""
    if owners.shape[1] >= size:
        return owners[:, :size]
    return np.pad(owners, ((0, 0), (0, size - owners.shape[1])))


def masked(owners: list, values: list) -> np.ndarray | None:
    """and: bytes that a constant keeps or clears."""
    for own, mask_owner, mask in ((owners[0], owners[1], values[1]), (owners[1], owners[0], values[0])):
        if not mask_owner.any() and np.isin(mask[own != 0], (0, 255)).all():
            return np.where(mask == 255, own, 0)
    return None


def merged(owners: list, values: list) -> np.ndarray | None:
    """or, xor: bytes of which only one operand has any bits."""
    left, right = owners
    if ((left != 0) & ((right != 0) | (values[1] != 0))).any() or ((right != 0) & (values[0] != 0) & (left == 0)).any():
        return None
    return np.where(left != 0, left, right)


def shifted(owners: np.ndarray, places: np.ndarray, size: int, *, left: bool) -> np.ndarray | None:
    """Logical shifts by whole bytes, the same in all lanes."""
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
    """Fields of whole bytes, filled with zeros."""
    same = (start == start[0]).all() and (length == length[0]).all()
    if not same or start[0] % 8 or length[0] % 8:
        return None
    first, count = int(start[0]) // 8, int(length[0]) // 8
    return resized(owners[:, first : first + count], size)
