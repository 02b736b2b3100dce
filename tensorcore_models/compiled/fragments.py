"""Converts between matrices and the registers of a warp, by the fragment tables of
:mod:`tensorcore_models.hardware.cuda.layouts`."""

from functools import cache

import numpy as np

from ..hardware.cuda.layouts import Fragment


@cache
def _sources(fragment: Fragment) -> np.ndarray:
    """Return, for each element in the order (block, row, col), the number thread * slots + slot that holds it."""
    _, rows, cols = fragment.shape
    found = np.zeros(int(np.prod(fragment.shape)), np.int64)
    for thread in range(fragment.thread_count):
        for slot in range(fragment.slot_count):
            place = fragment.place(thread, slot)
            found[(place.block * rows + place.row) * cols + place.col] = thread * fragment.slot_count + slot
    return found


@cache
def _targets(fragment: Fragment) -> np.ndarray:
    """Return, for each number thread * slots + slot, the element that it holds."""
    return np.argsort(_sources(fragment))


def matrices(registers: list[np.ndarray], fragment: Fragment) -> np.ndarray:
    """Return matrices of shape (groups, blocks, rows, cols) from registers, each an array over groups of `thread_count` lanes.

    Elements of 4 bits are unpacked into bytes.
    """
    threads = fragment.thread_count
    packed = np.stack([r.reshape(-1, threads) for r in registers], 2)
    slots = unpacked(packed, fragment.bits).reshape(len(packed), threads * fragment.slot_count)
    return slots[:, _sources(fragment)].reshape(-1, *fragment.shape)


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return elements of `bits` bits along the last axis of an array of words, low bits first."""
    if bits == 4:
        raw = np.ascontiguousarray(packed).view(np.uint8)
        return np.stack([raw & 15, raw >> 4], -1).reshape(*raw.shape[:-1], -1)
    return np.ascontiguousarray(packed).view({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits])


def registers_of(values: np.ndarray, fragment: Fragment) -> list[np.ndarray]:
    """Return the registers that hold matrices of shape (groups, blocks, rows, cols): one array over all lanes each."""
    word = np.uint64 if fragment.register_bits == 64 else np.uint32
    slots = values.reshape(len(values), -1)[:, _targets(fragment)]
    slots = slots.reshape(len(values), fragment.thread_count, fragment.slot_count)
    packed = np.ascontiguousarray(slots).view(word)
    return [np.ascontiguousarray(packed[:, :, i]).reshape(-1) for i in range(fragment.registers)]


def element_ids(parts: list, fragment: Fragment, groups: int) -> np.ndarray | None:
    """Return the byte numbers of the elements, shape (groups, blocks, rows, cols, bytes of an element); None if all are 0."""
    if all(part is None for part in parts) or fragment.bits < 8:
        return None
    threads, size = fragment.thread_count, fragment.register_bits // 8
    whole = [np.zeros((groups * threads, size), np.int64) if part is None else part for part in parts]
    packed = np.stack([part.reshape(groups, threads, size) for part in whole], 2)
    slots = packed.reshape(groups, threads * fragment.slot_count, fragment.bits // 8)
    return slots[:, _sources(fragment)].reshape(groups, *fragment.shape, fragment.bits // 8)


def register_ids(ids: np.ndarray, fragment: Fragment) -> list[np.ndarray]:
    """Return the byte numbers of each register, shape (lanes, bytes), from those of the elements: the inverse of
    :func:`element_ids`."""
    groups, size = len(ids), fragment.register_bits // 8
    slots = ids.reshape(groups, -1, fragment.bits // 8)[:, _targets(fragment)]
    packed = slots.reshape(groups, fragment.thread_count, fragment.registers, size)
    return [np.ascontiguousarray(packed[:, :, i]).reshape(-1, size) for i in range(fragment.registers)]
