"""L2 by reuse distance: the closed forms against a cache that is walked block by block."""

import random
from collections import OrderedDict

import numpy as np
import pytest

import ascend
from ascend.grid import Swizzle
from ascend.memory import concurrent_tiles, hits_of_a_loop, schedule_misses
from ascend.pipes.simulate import simulate
from ascend.schedule import build_schedule

A = ascend.get_chip("910A")
#: Pieces of k in which the walk loads: cores at one step share each piece.
CHUNKS = 8


def walked_misses(schedule):
    """Bytes of A and B that miss, over those loaded, all cores in step, piece of k by piece.

    A walk that turns round meets a cache whose least recently used block leaves; a loop meets one where any block does.
    """
    turns, rng = schedule.deals_one_by_one, random.Random(0)
    s, size = schedule, schedule.operand_bytes
    lengths = [stop - start for start, stop in s.k_slices]
    cache: OrderedDict = OrderedDict()
    used, loaded, missed = 0, {"a": 0, "b": 0}, {"a": 0, "b": 0}

    def touch(key, amount):
        nonlocal used
        hit = key in cache
        if hit:
            cache.move_to_end(key)
        else:
            cache[key] = amount
            used += amount
        while used > s.placed_on.l2_bytes and len(cache) > 1:
            if turns:
                used -= cache.popitem(last=False)[1]
            else:
                used -= cache.pop(rng.choice([other for other in cache if other != key]))
        return hit

    visits = [s.visits(core) for core in range(s.used_cores)]
    steps = max(sum(len(v.tiles) for v in own) for own in visits)
    flat = [[(v, i, tile) for v in own for i, tile in enumerate(v.tiles)] for own in visits]
    for step in range(steps):
        at_work = [own[step] for own in flat if step < len(own)]
        for chunk in range(CHUNKS):
            for visit, place, (rows, columns) in at_work:
                for name, extent in (("a", rows), ("b", columns)):
                    if s.resident == name and place:
                        continue  # the panel is in L1
                    amount = size * (extent[1] - extent[0]) * lengths[visit.slice] / CHUNKS
                    loaded[name] += amount
                    if not touch((name, extent, visit.slice, chunk), amount):
                        missed[name] += amount
        for _, _, (rows, columns) in at_work:
            touch(("c", rows, columns), 4 * (rows[1] - rows[0]) * (columns[1] - columns[0]))
    return missed["a"] / loaded["a"], missed["b"] / loaded["b"]


@pytest.mark.parametrize(
    ("m", "k", "n", "l2", "options"),
    [
        (4096, 1024, 4096, 2**25, {"resident": "none", "swizzle": Swizzle(4, 0)}),  # everything fits
        (4096, 1024, 4096, 2**23, {"resident": "none", "swizzle": Swizzle(4, 0)}),
        (4096, 1024, 4096, 2**23, {"resident": "none", "swizzle": Swizzle(4, 1)}),
        (4096, 4096, 4096, 2**23, {"resident": "none", "swizzle": Swizzle(8, 0)}),
        (4096, 2048, 4096, 9 * 2**20, {"resident": "none", "grid": (2, 1, 4)}),
        (4096, 2048, 4096, 9 * 2**20, {"resident": "none", "grid": (2, 1, 4), "swizzle": Swizzle(1, 1)}),
        (4096, 4096, 2048, 2**24, {"resident": "a", "grid": (16, 1, 2)}),
        (4096, 4096, 2048, 2**23, {"resident": "a", "grid": (8, 1, 4)}),
        (2048, 4096, 4096, 2**22, {"resident": "b", "grid": (4, 1, 8)}),
        (
            2048,
            8192,
            2048,
            24 * 2**20,
            {"resident": "none", "split": 2, "swizzle": Swizzle(4, 0)},
        ),  # one slice after the other
    ],
)
def test_closed_forms_follow_the_walk(m, k, n, l2, options):
    """Within a thirtieth of all loads: the walk has the ends of bands and steps that the forms leave out.

    Loops about as large as L2 differ by up to a tenth: the forms count what is written once in a loop, the walk keeps it.
    """
    chip = A.replace(l2_bytes=l2)
    s = build_schedule(m, k, n, chip, ascend.Blocking(128, 64, 128), kernel="grid", terms=1, **options)
    assert schedule_misses(s) == pytest.approx(walked_misses(s), abs=1 / 30)


def test_limits():
    tile = ascend.Blocking(128, 64, 128)
    s = build_schedule(4096, 512, 4096, A.replace(l2_bytes=2**40), tile, kernel="grid", terms=1)
    assert schedule_misses(s) == pytest.approx((1 / 32, 1 / 32))  # each block once from memory
    nothing = build_schedule(4096, 8192, 4096, A.replace(l2_bytes=1), tile, kernel="grid", resident="a", grid=(8, 1, 4))
    assert schedule_misses(nothing) == pytest.approx((1 / 4, 1 / 8))  # only cores at the same step share
    assert concurrent_tiles(10, 20, 8, 2, 0) == (2, 4) and concurrent_tiles(10, 20, 8, 2, 1) == (4, 2)
    assert concurrent_tiles(1, 20, 8, 3, 0) == (1, 8)


def test_hits_of_a_loop_solve_their_equation():
    """Between the points of the table, 1 % apart, h is linear to 1e-5."""
    h = hits_of_a_loop(x := np.linspace(1.02, 31.0, 1000))
    assert np.abs(h - np.exp(-(1 - h) * x)).max() < 1e-4
    assert hits_of_a_loop(1.0) == 1.0 and hits_of_a_loop(40.0) == 0.0


def test_traffic_and_roofline_are_those_of_the_schedule():
    s = build_schedule(
        4096, 512, 4096, A.replace(l2_bytes=2**40), ascend.Blocking(128, 64, 128), kernel="grid", terms=1
    )
    least = 2 * (2 * 4096 * 512) + 4 * 4096 * 4096
    assert s.memory_bytes() == pytest.approx(least)
    point = s.roofline()
    assert point.operational_intensity == pytest.approx(2 * 4096 * 512 * 4096 / least)
    gemv = build_schedule(1, 4096, 4096, A, ascend.Blocking(16, 16, 512), kernel="vector", terms=1, operand="fp32")
    assert gemv.roofline().bound == "memory" and gemv.roofline().operational_intensity < 0.5
    small = build_schedule(1, 4096, 4096, A, ascend.Blocking(16, 64, 256), kernel="grid")
    assert small.roofline().bound == "memory"  # eq. 9 called it compute bound at 371 FLOP/B


@pytest.mark.parametrize("merge", ("reduce", "atomic"))
@pytest.mark.parametrize(
    ("chip", "options"),
    [
        ("910A", {"kernel": "grid", "terms": 1}),
        ("910B3", {"kernel": "grid", "terms": 1}),
        ("910A", {"kernel": "grid", "terms": 3, "mode": "termwise"}),
        ("910A", {"kernel": "grid", "terms": 3, "mode": "termwise_inplace"}),
        ("910A", {"kernel": "grid", "terms": 3, "mode": "fused"}),
        ("910A", {"kernel": "vector", "terms": 1, "operand": "fp32"}),
    ],
)
def test_bytes_of_c_are_those_that_a_simulation_moves(chip, options, merge):
    found = []
    for split in (1, 4):
        s = build_schedule(16, 2048, 512, chip, ascend.Blocking(16, 64, 64), split=split, merge=merge, **options)
        moved = simulate(s, all_cores=True, include_split=True).bytes
        of_c = sum(moved.get(f"{what} {how}", 0) for what in ("C", "zero", "merge") for how in ("read", "write"))
        found.append((s.memory_bytes(), of_c))
    (one, c_one), (four, c_four) = found
    assert four - one == pytest.approx(c_four - c_one) and c_four > 4 * c_one


def test_smaller_l2_never_moves_less():
    amounts = []
    for power in range(18, 30):
        chip = A.replace(l2_bytes=2**power)
        amounts.append(
            build_schedule(4096, 4096, 4096, chip, ascend.Blocking(128, 64, 256), kernel="grid").memory_bytes()
        )
    assert amounts == sorted(amounts, reverse=True) and amounts[0] > 2 * amounts[-1]
