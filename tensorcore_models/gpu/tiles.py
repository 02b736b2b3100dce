"""Tiles of emulated units by unit and target, where they were timed: warps of a block, outputs of a thread."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class UnitTile(NamedTuple):
    """Warps of a block and outputs of a thread, down and across; no tile changes a bit."""

    warps: tuple[int, int]
    each: tuple[int, int]

    def __str__(self) -> str:
        return "{} x {} warps, {} x {} outputs".format(*self.warps, *self.each)


#: Tiles that ``mpgemm campaign times`` times: of twelve on an H100 (2026-11-26, kernels whose loops loaded from global memory)
#: those that were the fastest of a unit, and the usual one.
CANDIDATES = (
    UnitTile((2, 2), (4, 4)), UnitTile((4, 4), (4, 4)), UnitTile((2, 2), (4, 8)), UnitTile((2, 2), (8, 4)),
    UnitTile((1, 1), (4, 4)),
)  # fmt: skip
#: The fastest tile by unit and target, where it is another one than its mode's: what `fastest_tiles` in a campaign's summary
#: says. Kernels that copy their operands ahead have not been timed on a GPU yet, so there are none.
FASTEST: dict[tuple[str, str], UnitTile] = {}


def fastest_tiles(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], UnitTile]:
    """Return the fastest tile by unit and target, as :data:`FASTEST` has it, of rows that a campaign timed.

    Parameters
    ----------
    rows : iterable of mappings
        With `unit`, `target`, `warps`, `each` and `device_seconds`; others are left out.
    """
    best: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        if "warps" in row and "device_seconds" in row:
            before = best.setdefault((row["unit"], row["target"]), row)
            if row["device_seconds"] < before["device_seconds"]:
                best[row["unit"], row["target"]] = row
    return {key: UnitTile(tuple(row["warps"]), tuple(row["each"])) for key, row in best.items()}
