"""Locates matrices in shared memory as wgmma and tcgen05 describe them: descriptors, swizzles, the place of each element.

Sources: PTX ISA 9.1, 9.7.16.5.1 ("Shared Memory Matrix Layout", wgmma) and 9.7.17.4 (tcgen05), and CUTLASS's
include/cute/arch/mma_sm90_desc.hpp and mma_sm100_desc.hpp, which state the canonical layouts.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from ..errors import Refused

#: Swizzle fields of descriptors -> width in bytes of the swizzled rows, 0 for no swizzle.
WGMMA_SWIZZLES = {0: 0, 1: 128, 2: 64, 3: 32}
TCGEN05_SWIZZLES = {0: 0, 2: 128, 4: 64, 6: 32}
#: Unit of descriptors' offsets and of swizzling, in bytes.
UNIT = 16


@dataclass(frozen=True)
class TileDescriptor:
    """`TileDescriptor` holds the fields of a matrix descriptor, all in bytes."""

    start: int
    leading: int
    stride: int
    swizzle: int


def wgmma_descriptor(word: int) -> TileDescriptor:
    """Return the fields of wgmma's 64-bit descriptor; refuse a base offset."""
    return _descriptor(word, WGMMA_SWIZZLES[word >> 62 & 3])


def tcgen05_descriptor(word: int) -> TileDescriptor:
    """Return the fields of tcgen05's descriptor; refuse the 128-byte swizzle of 32-byte atoms, and absolute leading offsets."""
    code = word >> 61 & 7
    if code not in TCGEN05_SWIZZLES or word >> 52 & 1:
        raise Refused(
            f"the matrix descriptor {word:#018x}: its swizzle mode {code} or leading offset mode is not modelled"
        )
    return _descriptor(word, TCGEN05_SWIZZLES[code])


def _descriptor(word: int, swizzle: int) -> TileDescriptor:
    if word >> 49 & 7:
        raise Refused(f"the matrix descriptor {word:#018x} has a base offset, which is not modelled")
    field = (1 << 14) - 1
    return TileDescriptor(UNIT * (word & field), UNIT * (word >> 16 & field), UNIT * (word >> 32 & field), swizzle)


@cache
def offsets(rows: int, k: int, size: int, tile: TileDescriptor, transposed: bool) -> np.ndarray:
    """Return the byte offset from the start of each element (row, k) before swizzling, shape (rows, k).

    `rows` counts rows of A or columns of B. A K-major tile has k along the bytes of a row; a transposed (MN-major) tile has m
    or n there.
    """
    row, along = np.arange(rows)[:, None], np.arange(k)[None, :]
    width = tile.swizzle or UNIT
    if not transposed:
        byte = along * size
        if tile.swizzle:  # rows of the swizzle's width, in groups of eight
            return row % 8 * width + row // 8 * tile.stride + byte
        return row % 8 * UNIT + row // 8 * tile.stride + byte % UNIT + byte // UNIT * tile.leading
    byte = row * size
    if tile.swizzle:
        return byte % width + byte // width * tile.leading + along % 8 * width + along // 8 * tile.stride
    return byte % UNIT + byte // UNIT * tile.stride + along % 8 * UNIT + along // 8 * tile.leading


def swizzled(addresses: np.ndarray, width: int) -> np.ndarray:
    """Return addresses with the 16-byte units of each 128-byte line exchanged by a swizzle of the given width."""
    if not width:
        return addresses
    mask = width // UNIT - 1
    return addresses ^ ((addresses >> 7 & mask) << 4)


def tile_addresses(rows: int, k: int, size: int, tile: TileDescriptor, transposed: bool) -> np.ndarray:
    """Return the address in shared memory of each element (row, k)."""
    return swizzled(tile.start + offsets(rows, k, size, _without_start(tile), transposed), tile.swizzle)


def _without_start(tile: TileDescriptor) -> TileDescriptor:
    return TileDescriptor(0, tile.leading, tile.stride, tile.swizzle)


def load_tiles(machine, rows, descriptors, height: int, k: int, size: int, transposed: bool, lanes, kind: str):
    """Return one tile for each block row, shape (tiles, height, k), and the expressions of its bytes or None.

    `descriptors` are :class:`TileDescriptor`; `lanes` holds for each tile the thread that errors and checks name.
    """
    addresses = np.stack([tile_addresses(height, k, size, tile, transposed) for tile in descriptors])
    shape = addresses.shape
    flat_rows = np.repeat(rows, height * k)
    memory = machine.shared.space
    places = machine.shared.places(flat_rows, addresses.reshape(-1), size, write=False)
    if machine.launch.checks:
        machine.checks.watch_read(memory, places, size, np.repeat(lanes, height * k), kind)
    owners = memory.load_ids(places, size)
    if owners is not None:
        owners = owners.reshape(*shape, size) if owners.any() else None
    return memory.load(places, size, 1).reshape(shape), owners


def signed(values: np.ndarray, factor: int) -> np.ndarray:
    """Return encodings with their signs flipped if the factor is -1."""
    return values if factor == 1 else values ^ values.dtype.type(1 << (8 * values.dtype.itemsize - 1))
