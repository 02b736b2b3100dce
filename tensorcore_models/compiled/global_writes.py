"""Records who wrote each place of global memory during a launch, and which accesses of others are ordered after it.

Two threads of a block are ordered as in shared memory, by the clocks of their warps. Accesses of different blocks are ordered
only by exchanges through memory: atomic operations, fences, and volatile, acquiring or releasing accesses. If a block exchanged
after its write and another block exchanged since, they are taken as ordered, which the result records as an assumption. A read
before another block's write is not looked for, because every load would have to be recorded.
"""

import numpy as np

#: Units of a page; a page that was never written takes no memory.
_PAGE = 1 << 18


class GlobalWrites:
    """`GlobalWrites` holds the last writer of each unit of a launch's global memory.

    Parameters
    ----------
    blocks : int
        Number of blocks of the grid.
    """

    def __init__(self, blocks: int):
        self.unit = 4
        #: Rows of a page: 1 + the warp's number in the grid (0: nobody), its clock, and the number of exchanges before.
        self.pages: dict[int, np.ndarray] = {}
        self.low, self.high = 1 << 62, 0
        self.exchanges, self.exchanged = 0, np.full(blocks, -1)

    def units(self, places: np.ndarray, size: int) -> np.ndarray:
        """Return the units that accesses touch, shape (accesses, units).

        Units shrink until each access consists of whole ones.
        """
        odd = int(np.bitwise_or.reduce(places, initial=size)) | self.unit
        step = odd & -odd
        if step < self.unit:
            parts = self.unit // step
            wide = {number: np.repeat(page, parts, axis=1) for number, page in self.pages.items()}
            self.pages = {
                number * parts + i: page[:, i * _PAGE : (i + 1) * _PAGE]
                for number, page in wide.items()
                for i in range(parts)
            }
            self.unit = step
        return places[:, None] // self.unit + np.arange(size // self.unit)

    def touches(self, places: np.ndarray, size: int) -> bool:
        """Return whether accesses may touch written units."""
        return bool(len(places)) and int(places.min()) < self.high and int(places.max()) + size > self.low

    def last(self, units: np.ndarray, row: int) -> np.ndarray:
        """Return one row of the pages (writer, clock or exchanges) at units."""
        pages = units // _PAGE
        if (number := int(pages.flat[0])) in self.pages and (pages == number).all():
            return self.pages[number][row, units % _PAGE]
        found = np.zeros(units.shape, np.int32)
        for number in np.unique(pages).tolist():
            if number in self.pages:
                here = pages == number
                found[here] = self.pages[number][row, units[here] % _PAGE]
        return found

    def exchange(self, blocks: np.ndarray) -> None:
        """Note that blocks exchanged through memory (atomic operation, fence, strong access)."""
        self.exchanges += 1
        self.exchanged[blocks] = self.exchanges

    def met(self, stamps: np.ndarray, writers: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        """Return whether the writing block and the accessing block have both exchanged since the write."""
        return (self.exchanged[writers] > stamps) & (self.exchanged[blocks] > stamps)

    def write(
        self, units: np.ndarray, places: np.ndarray, size: int, writers: np.ndarray, clocks: np.ndarray
    ) -> np.ndarray:
        """Note the writers of units; return the accesses that another access of this instruction overwrites."""
        self.low, self.high = min(self.low, int(places.min())), max(self.high, int(places.max()) + size)
        pages = units // _PAGE
        rows = [np.broadcast_to(x[:, None], units.shape) for x in (writers, clocks)]
        first = int(pages.flat[0])
        whole = (pages == first).all()
        for number in [first] if whole else np.unique(pages).tolist():
            if number not in self.pages:
                self.pages[number] = np.zeros((3, _PAGE), np.int32)
            page, here = self.pages[number], slice(None) if whole else pages == number
            where = units[here] % _PAGE
            page[0, where], page[1, where], page[2, where] = rows[0][here], rows[1][here], self.exchanges
        return (self.last(units, 0) != rows[0]).any(1)


def written_over(places: np.ndarray, words: np.ndarray, over: np.ndarray) -> np.ndarray:
    """Return the accesses that were overwritten with another value by accesses of the same instruction."""
    order = np.argsort(places, kind="stable")
    same = places[order][1:] == places[order][:-1]
    differ = np.zeros(len(places), bool)
    differ[order[1:]] = same & (words[order][1:] != words[order][:-1]).any(1)
    again = np.isin(places, places[differ])
    return over & again
