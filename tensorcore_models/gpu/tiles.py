"""Lists tiles of emulated units that were timed, by unit and target: warps of a block, outputs of a thread."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class UnitTile(NamedTuple):
    """`UnitTile` holds warps of a block and outputs of a thread, down and across; no tile changes a bit."""

    warps: tuple[int, int]
    each: tuple[int, int]

    def __str__(self) -> str:
        return "{} x {} warps, {} x {} outputs".format(*self.warps, *self.each)


#: Tiles that ``mpgemm campaign times`` times: of twelve on an H100 (2026-11-26, kernels whose loops loaded from global memory)
#: the ones that were fastest for a unit, and the usual one.
CANDIDATES = (
    UnitTile((2, 2), (4, 4)), UnitTile((4, 4), (4, 4)), UnitTile((2, 2), (4, 8)), UnitTile((2, 2), (8, 4)),
    UnitTile((1, 1), (4, 4)),
)  # fmt: skip
#: Fastest tile by unit and target, if it is not the mode's own: the value of `fastest_tiles` in a campaign's summary. It is
#: empty, because kernels that copy their operands ahead have not been timed on a GPU yet.
FASTEST: dict[tuple[str, str], UnitTile] = {}


def fastest_tiles(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], UnitTile]:
    """Return the fastest tile by unit and target, in the form of :data:`FASTEST`, of rows that a campaign timed.

    Parameters
    ----------
    rows : iterable of mappings
        Rows with `unit`, `target`, `warps`, `each` and `device_seconds`; other rows are left out.
    """
    best: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        if "warps" in row and "device_seconds" in row:
            before = best.setdefault((row["unit"], row["target"]), row)
            if row["device_seconds"] < before["device_seconds"]:
                best[row["unit"], row["target"]] = row
    return {key: UnitTile(tuple(row["warps"]), tuple(row["each"])) for key, row in best.items()}
