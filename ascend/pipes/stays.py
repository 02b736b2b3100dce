"""A core's stays with equal tiles in runs, so that the simulator can skip what repeats."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from ascend.tile_schedule import TileSchedule


class Tiles(NamedTuple):
    """Equal tiles in a row: (rows, columns) and how many."""

    rows: int
    columns: int
    times: int


class Stay(NamedTuple):
    """Sizes of a core's stay: its panel's width (0 without one), its tiles, its slice of k, the cores at work."""

    panel: int
    tiles: tuple[Tiles, ...]
    slice: int
    active: int


def stays_of(schedule: TileSchedule, core: int) -> tuple[Stay, ...]:
    """A core's stays with equal tiles in runs; stays without a panel in the same slice become one."""
    stays = []
    for (panel, k_slice, active), visits in groupby(schedule.visits(core), lambda v: (v.panel, v.slice, v.active)):
        sizes = [(r1 - r0, c1 - c0) for visit in visits for (r0, r1), (c0, c1) in visit.tiles]
        tiles = tuple(Tiles(rows, columns, count) for count, (rows, columns) in runs(sizes))
        stays.append(Stay(panel[1] - panel[0] if panel else 0, tiles, k_slice, active))
    return tuple(stays)


def runs(items: Iterable[tuple]) -> Iterator[tuple[int, tuple]]:
    """(length, item) of each run of equal items."""
    previous: tuple = ()
    count = 0
    for item in items:
        if count and item != previous:
            yield count, previous
            count = 0
        previous, count = item, count + 1
    if count:
        yield count, previous
