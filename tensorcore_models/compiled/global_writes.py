"""Who wrote each place of global memory during a launch, and what orders the accesses of others.

Two threads of a block are ordered as in shared memory, by the clocks of their warps. Between blocks plain accesses are ordered
by nothing but what both do through memory: atomic operations, fences, and volatile, acquiring or releasing accesses. A block
that did one of these after it wrote, and a block that did one since, are taken to be ordered: an assumption that the result
records. Reads before the write of another are not looked for: that would mark every load.
"""

import numpy as np

#: Units of a page: what was never written takes no memory.
_PAGE = 1 << 18


class GlobalWrites:
    """The last writer of each unit of a launch's global memory.

    Parameters
    ----------
    blocks : int
        Blocks of the grid.
    """

    def __init__(self, blocks: int):
        self.unit = 4
        #: Rows of a page: 1 + the warp's number in the grid (0: nobody), its clock, how many exchanges there had been.
        self.pages: dict[int, np.ndarray] = {}
        self.low, self.high = 1 << 62, 0
        self.exchanges, self.exchanged = 0, np.full(blocks, -1)

    def units(self, places: np.ndarray, size: int) -> np.ndarray:
        """Return the units that accesses touch, shape (accesses, units); they become so small that each access is whole
        ones."""
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
        """Return whether accesses may touch what was written."""
        return bool(len(places)) and int(places.min()) < self.high and int(places.max()) + size > self.low

    def last(self, units: np.ndarray, row: int) -> np.ndarray:
        """Return one of a page's rows for units."""
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
        """Blocks did what orders accesses through memory."""
        self.exchanges += 1
        self.exchanged[blocks] = self.exchanges

    def met(self, stamps: np.ndarray, writers: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        """Return whether the blocks that wrote and those that come now exchanged something since."""
        return (self.exchanged[writers] > stamps) & (self.exchanged[blocks] > stamps)

    def write(
        self, units: np.ndarray, places: np.ndarray, size: int, writers: np.ndarray, clocks: np.ndarray
    ) -> np.ndarray:
        """Note who writes; which accesses of this instruction another one writes over."""
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
    """Those of the accesses written over by accesses of the same instruction that wrote something else."""
    order = np.argsort(places, kind="stable")
    same = places[order][1:] == places[order][:-1]
    differ = np.zeros(len(places), bool)
    differ[order[1:]] = same & (words[order][1:] != words[order][:-1]).any(1)
    again = np.isin(places, places[differ])
    return over & again
