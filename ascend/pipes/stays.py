"""A core's stays with equal tiles in runs, so that the simulator can skip what repeats."""

from collections.abc import Iterable, Iterator
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
    stays: list[Stay] = []
    for visit in schedule.visits(core):
        sizes = [(r1 - r0, c1 - c0) for (r0, r1), (c0, c1) in visit.tiles]
        tiles = tuple(Tiles(size[0], size[1], count) for count, size in runs(sizes))
        panel = visit.panel[1] - visit.panel[0] if visit.panel else 0
        before = stays[-1] if stays else None
        if before and not visit.panel and (before.slice, before.active) == (visit.slice, visit.active):
            head, end = before.tiles[:-1], before.tiles[-1]
            if tiles[0][:2] == end[:2]:
                tiles = (end._replace(times=end.times + 1),)
                stays[-1] = before._replace(tiles=(*head, *tiles))
            else:
                stays[-1] = before._replace(tiles=(*before.tiles, *tiles))
        else:
            stays.append(Stay(panel, tiles, visit.slice, visit.active))
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
