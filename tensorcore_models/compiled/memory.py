"""Models the memory of a launch as flat bytes: global memory with the caller's arrays, and spaces with a row for each block.

Beside the bytes stand planes of the same geometry, made only when they are needed: which bytes have been written (checks), and
the number of each byte (expressions, :mod:`.expressions`). Addresses are checked before every access: nothing outside of the
arrays is read or written, whatever a program computes.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from .errors import KernelFault
from .global_writes import GlobalWrites

#: Unsigned types, by bytes.
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
#: First address of global memory, and the least distance between allocations.
GLOBAL_BASE = 1 << 40
GUARD = 4096
_ONES = {size: word(int.from_bytes(b"\1" * size, "little")) for size, word in WORDS.items()}


class Plane:
    """`Plane` is an array of bytes with vector access: `count` words of `width` bytes at flat places that are multiples of
    their size."""

    def __init__(self, size: int):
        self.data = np.zeros(-(-size // 64) * 64, np.uint8)
        self._views: dict[tuple[int, int], np.ndarray] = {}

    def view(self, width: int, count: int) -> np.ndarray:
        """Return all accesses of this form, one a row."""
        key = width, count
        if key not in self._views:
            whole = self.data[: len(self.data) // (width * count) * (width * count)]
            self._views[key] = whole.view(WORDS[width]).reshape(-1, count)
        return self._views[key]

    def load(self, places: np.ndarray, width: int, count: int) -> np.ndarray:
        """Return words at flat places that are multiples of the access's size, shape (places, count)."""
        return self.view(width, count)[places // (width * count)]

    def store(self, places: np.ndarray, words: np.ndarray) -> None:
        """Write words, shape (places, count), to flat places that are multiples of the access's size."""
        width, count = words.dtype.itemsize, words.shape[1]
        self.view(width, count)[places // (width * count)] = words

    def load_anywhere(self, places: np.ndarray, width: int, count: int) -> np.ndarray:
        """Return words at flat places of any alignment, shape (places, count)."""
        if not (places % (width * count)).any():
            return self.load(places, width, count)
        return self.data[places[:, None] + np.arange(width * count)].view(WORDS[width])

    def store_anywhere(self, places: np.ndarray, words: np.ndarray) -> None:
        """Write words, shape (places, count), to flat places of any alignment."""
        size = words.dtype.itemsize * words.shape[1]
        if not (places % size).any():
            self.store(places, words)
            return
        raw = np.ascontiguousarray(words).view(np.uint8).reshape(len(places), size)
        for place in range(size):  # bytes one after the other
            self.store(places + place, raw[:, place : place + 1])


#: Mark in the plane of written bytes: the byte was stored, but some of its bits were never written.
_FORGOTTEN = 2


class Space(Plane):
    """`Space` is a memory space whose flat places are known to lie inside.

    Parameters
    ----------
    size : int
        Number of bytes.
    checks : bool
        Whether reads of unwritten bytes are checked.
    traced : bool
        Whether expressions are carried.
    """

    def __init__(self, size: int, *, checks: bool = False, traced: bool = False):
        super().__init__(size)
        self.written = Plane(size) if checks else None
        self.ids = np.zeros(len(self.data), np.int64) if traced else None

    def store(self, places: np.ndarray, words: np.ndarray) -> None:
        super().store(places, words)
        if self.written is not None:
            width, count = words.dtype.itemsize, words.shape[1]
            self.written.view(width, count)[places // (width * count)] = _ONES[width]

    def forget(self, places: np.ndarray, holes: np.ndarray) -> None:
        """Note which bytes of stored 32-bit words have bits that nobody wrote."""
        if self.written is not None:
            for byte in range(4):
                lost = holes >> np.uint32(8 * byte) & np.uint32(255) != 0
                self.written.data[places[lost] + byte] = _FORGOTTEN

    def holes(self, places: np.ndarray) -> np.ndarray:
        """Return the bits of stored 32-bit words that nobody wrote; words that were not stored have no such bits."""
        found = np.zeros(len(places), np.uint32)
        if self.written is not None:
            for byte in range(4):
                lost = self.written.data[places + byte] == _FORGOTTEN
                found |= np.where(lost, np.uint32(255 << 8 * byte), np.uint32(0))
        return found

    def missing(self, places: np.ndarray, size: int) -> bool:
        """Return whether a byte of these accesses was never stored."""
        return self.written is not None and bool((self.written.data[places[:, None] + np.arange(size)] == 0).any())

    def unwritten(self, places: np.ndarray, size: int) -> np.ndarray:
        """Return a mask of the accesses of `size` bytes that read a byte that nobody wrote."""
        if self.written is None:
            return np.zeros(len(places), bool)
        if (places % size).any():
            return (self.written.data[places[:, None] + np.arange(size)] == 0).any(1)
        if size in WORDS:
            return self.written.load(places, size, 1)[:, 0] != _ONES[size]
        return (self.written.load(places, 8, size // 8) != _ONES[8]).any(1)

    def load_ids(self, places: np.ndarray, size: int) -> np.ndarray | None:
        """Return the byte numbers at flat places, shape (places, size); None without expressions."""
        return None if self.ids is None else self.ids[places[:, None] + np.arange(size)]

    def store_ids(self, places: np.ndarray, ids: np.ndarray | None, size: int) -> None:
        """Note the byte numbers that were written; None stands for zeros."""
        if self.ids is not None:
            self.ids[places[:, None] + np.arange(size)] = 0 if ids is None else ids


class GlobalMemory:
    """`GlobalMemory` holds the caller's arrays, one after the other with gaps between them.

    Parameters
    ----------
    arrays : sequence of ndarray
        Contiguous arrays; :meth:`copy_back` writes what the program stored into them.
    names : sequence of str
        Names of the arrays in messages.
    traced : bool
        Whether expressions are carried.
    own : int
        Number of arrays at the end that belong to the launch and not to the caller.
    """

    def __init__(self, arrays: Sequence[np.ndarray], names: Sequence[str], *, traced: bool = False, own: int = 0):
        self.arrays, self.names, self.given = list(arrays), list(names), len(arrays) - own
        self.starts, self.stops, at = [], [], 0
        for array in self.arrays:
            self.starts.append(at)
            self.stops.append(at + array.nbytes)
            at += -(-array.nbytes // GUARD) * GUARD + GUARD
        self.space = Space(max(at, 64), traced=traced)
        self.stored = [False] * len(self.arrays)
        self.left_out: tuple[str, ...] = ()  # names of the addresses that the caller did not give
        self.writes: GlobalWrites | None = None  # made by the first store that is checked
        for array, start, stop in zip(self.arrays, self.starts, self.stops, strict=True):
            self.space.data[start:stop] = array.reshape(-1).view(np.uint8)

    def address(self, number: int) -> int:
        """Return the address of the array with a given number."""
        return GLOBAL_BASE + self.starts[number]

    def address_of(self, array: np.ndarray) -> int:
        """Return the address of an array."""
        return self.address(next(i for i, own in enumerate(self.arrays) if own is array))

    def places(self, addresses: np.ndarray, size: int, *, write: bool, alignment: int | None = None) -> np.ndarray:
        """Return flat places of accesses of `size` bytes, which are multiples of `alignment` (by default, of their size).

        Raises
        ------
        KernelFault
            For the first address that is misaligned or not inside of one array; its `index` is the number of the access.
        """
        if not len(addresses):
            return addresses.astype(np.int64)
        flat = addresses.astype(np.int64) - GLOBAL_BASE
        low, high = int(flat.min()), int(flat.max())
        owner = bisect_right(self.starts, low) - 1
        if owner < 0 or high + size > self.stops[owner]:
            owners = np.searchsorted(self.starts, flat, "right") - 1
            stops = np.array([*self.stops, -1])[owners]
            wrong = (owners < 0) | (flat + size > stops)
            if wrong.any():
                self._fail(int(wrong.argmax()), int(flat[wrong.argmax()]), size, write)
            touched = np.unique(owners).tolist()
        else:
            touched = [owner]
        if write:
            for number in touched:
                self.stored[number] = True
        return aligned(flat, alignment or size)

    def _fail(self, index: int, place: int, size: int, write: bool) -> None:
        deed = "writes" if write else "reads"
        owner = bisect_right(self.starts, place) - 1
        if owner < 0 or place >= self.stops[owner] + GUARD:
            address = place + GLOBAL_BASE
            left_out = self._left_out() if 0 <= address < GUARD else ""
            where = f"address {address:#x}, in none of the arguments{left_out}"
        else:
            where = f"bytes {place - self.starts[owner]} and on of {self.names[owner]}, which has {self.arrays[owner].nbytes}"
        raise KernelFault(f"{deed} {size} bytes of global memory at {where}", index=index)

    def _left_out(self) -> str:
        """Return a hint if an address is near 0: an argument may be missing."""
        if not self.left_out:
            return "; an argument that is left out is 0"
        one = len(self.left_out) == 1
        names = ", ".join(self.left_out)
        return f"; {names} {'was' if one else 'were'} left out and {'is' if one else 'are'} 0: scratch memory? Pass an array"

    def copy_back(self) -> None:
        """Write the program's stores into the caller's arrays.

        Raises
        ------
        ValueError
            If the program wrote to a read-only array.
        """
        for number, array in enumerate(self.arrays):
            if self.stored[number]:
                if not array.flags.writeable:
                    raise ValueError(f"the program writes to {self.names[number]}, a read-only array: pass a copy")
                array.reshape(-1).view(np.uint8)[:] = self.space.data[self.starts[number] : self.stops[number]]


class BlockMemory:
    """`BlockMemory` is a space of which each block (or lane) has `size` bytes of its own, addressed from `base` on."""

    def __init__(self, name: str, rows: int, size: int, base: int, *, checks: bool, traced: bool):
        self.name, self.size, self.base = name, size, base
        self.stride = -(-size // 256) * 256 or 256
        self.space = Space(rows * self.stride, checks=checks, traced=traced)

    def places(
        self, rows: np.ndarray, addresses: np.ndarray, size: int, *, write: bool, alignment: int | None = None
    ) -> np.ndarray:
        """Return flat places of accesses of `size` bytes; raise KernelFault as :meth:`GlobalMemory.places`."""
        offsets = addresses.astype(np.int64) - self.base
        if len(offsets) and (int(offsets.min()) < 0 or int(offsets.max()) + size > self.size):
            wrong = (offsets < 0) | (offsets + size > self.size)
            index = int(wrong.argmax())
            deed = "writes" if write else "reads"
            raise KernelFault(
                f"{deed} {size} bytes at {int(offsets[index])} of {self.name} memory, which has {self.size}",
                index=index,
            )
        return rows * self.stride + aligned(offsets, alignment or size)


def aligned(places: np.ndarray, size: int) -> np.ndarray:
    """Return the places; raise KernelFault if they are not multiples of `size`."""
    if len(places) and size > 1 and (places % size).any():
        index = int((places % size != 0).argmax())
        raise KernelFault(f"accesses {size} bytes at {int(places[index])}, which is no multiple of {size}", index=index)
    return places
