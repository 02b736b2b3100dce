"""Grids of cores: every tile once, slices merged as stated, both interpreters, plans of a problem and its transpose."""

import dataclasses
import itertools
import time

import numpy as np
import pytest
from cube_reference import ReferenceArithmetic, cube_gemm_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from pipes_reference import run_phase

import ascend
from ascend.emit.pto import pto_files
from ascend.grid import Grid, Swizzle, balanced_parts, balanced_ranges, pieces
from ascend.pipes.build import build_program
from ascend.pipes.simulate import run_program
from ascend.planner.estimate import estimate
from ascend.planner.search import grid_candidates
from ascend.request import Request
from ascend.schedule import build_schedule, variant
from ascend.slices import atomic_results, atomic_spread, merge_slices
from ascend.term_modes import MODES
from ascend.tiling.fields import is_said_by, tiling_fields
from tensorcore_models.formats import get_float_format

A, B3, P3 = (ascend.get_chip(name) for name in ("910A", "910B3", "310P3"))
BLOCK = ascend.Blocking(64, 64, 64)
#: m, k, n: GEMV both ways, few rows, odd sizes, squares, deep and flat products.
SHAPES = (
    (1, 4096, 4096), (4096, 4096, 1), (32, 4096, 11008), (32, 11008, 4096), (128, 7168, 2048), (1000, 333, 777),
    (4096, 4096, 4096), (5632, 2816, 5632), (64, 64, 16384), (16384, 64, 64), (8192, 128, 8192),
)  # fmt: skip
size = st.integers(1, 500)
grids = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 5))


def same_bits(x, y):
    return x.dtype == y.dtype and np.array_equal(x.view(np.uint32), y.view(np.uint32))


# ---------------------------------------------------------------- dealing


def tiles_of(swizzle, rows, columns):
    return list(zip(*(each.tolist() for each in swizzle.order(rows, columns)), strict=True))


@given(st.integers(1, 9), st.integers(1, 30), st.integers(1, 30), st.integers(0, 1))
def test_a_swizzle_visits_every_tile_once(offset, rows, columns, direction):
    swizzle = Swizzle(offset, direction)
    tiles = tiles_of(swizzle, rows, columns)
    assert sorted(tiles) == list(itertools.product(range(rows), range(columns)))
    along = [tile[1 - direction] for tile in tiles]
    assert all(abs(x - y) <= 1 for x, y in itertools.pairwise(along))  # back and forth, never a jump


def test_swizzle_worked_example():
    """CATLASS's picture for <3, 0>: down three rows, then the next column; the next band comes back."""
    order = tiles_of(Swizzle(3, 0), 5, 3)
    assert order[:4] == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert order[9:13] == [(3, 2), (4, 2), (3, 1), (4, 1)]


@given(st.integers(1, 10**5), st.integers(1, 40).map(lambda x: 16 * x), st.integers(1, 40))
@settings(max_examples=50)
def test_balanced_ranges(length, most, parts):
    for ranges in (balanced_ranges(length, most, 16), balanced_parts(length, parts, 16)):
        sizes = [stop - start for start, stop in ranges]
        assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
        assert ranges[0][0] == 0 and ranges[-1][1] == length
        assert max(sizes) - min(sizes[:-1], default=max(sizes)) <= 16
    assert max(stop - start for start, stop in balanced_ranges(length, most, 16)) <= most
    assert len(balanced_ranges(length, most, 16)) == -(-length // most)


@given(size, size, size, st.sampled_from(["a", "b", "none"]), grids, st.booleans())
@settings(max_examples=80)
def test_every_tile_of_every_slice_is_dealt_once(m, k, n, resident, grid, balanced):
    block = ascend.Blocking(48, 32, 64)
    grid = (grid[0], min(grid[1], -(-k // 32)), grid[2])
    if np.prod(grid) > A.cores:
        return
    s = build_schedule(m, k, n, A, block, kernel="grid", resident=resident, grid=grid, balanced=balanced)
    dealt = [(v.slice, *tile) for core in range(s.cores) for v in s.visits(core) for tile in v.tiles]
    assert sorted(dealt) == sorted(itertools.product(range(len(s.k_slices)), s.row_blocks, s.column_blocks))
    busy = [sum(len(v.tiles) for v in s.visits(core)) for core in range(s.cores)]
    if s.deals_one_by_one:  # its work, too: what is simulated is core 0
        work = [sum((r1 - r0) * (c1 - c0) * np.diff(s.k_slices[v.slice])[0] for v in s.visits(core)
                    for (r0, r1), (c0, c1) in v.tiles) for core in range(s.cores)]  # fmt: skip
        assert work[0] == max(each for each, tiles in zip(work, busy, strict=True) if tiles == busy[0])
    assert busy[0] == max(busy) and sum(b > 0 for b in busy) == s.used_cores
    assert [i for start, stop in s.k_slices for i in range(start, stop)] == list(range(k))
    assert all(start % 32 == 0 for start, _ in s.k_slices)
    if resident == "none":
        assert sum(s.active_cores(wave) for wave in range(s.waves)) == s.tiles
    assert all(v.active == s.active_cores(wave) <= s.cores for wave, v in enumerate(s.visits(0)))


# ---------------------------------------------------------------- CATLASS's ASWT


def adaptive(m, k, n, chip=B3, block=(64, 64, 64), offset=4, **options):
    options = {"terms": 1, "balanced": False} | options
    swizzle = Swizzle(offset, 0, adaptive=True)
    return build_schedule(m, k, n, chip, ascend.Blocking(*block), kernel="grid", swizzle=swizzle, **options)


def test_the_page_of_aswt():
    """05_aswt.md: of 29 tiles on 20 cores the 9 that are left become 18 pieces, halves; of 30 and more none is cut."""
    s = adaptive(29 * 64, 64, 64)
    assert s.used_cores == 20 and [s.active_cores(wave) for wave in range(2)] == [20, 18]
    assert {v.tiles[0][1] for core in range(20) for v in s.visits(core)[1:]} == {(0, 32), (32, 64)}
    assert adaptive(30 * 64, 64, 64).active_cores(1) == 20 and adaptive(31 * 64, 64, 64).active_cores(1) == 11
    assert adaptive(40 * 64, 64, 64).active_cores(1) == 20
    # Fewer tiles than cores: 6 tiles of CATLASS's 567 x 399 x 488 on 32 cores become 24 pieces.
    assert adaptive(567, 399, 488, ascend.get_chip("950"), (256, 64, 256)).used_cores == 24


@pytest.mark.parametrize(
    ("most", "cut"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 2)), (4, (2, 2)), (6, (2, 3)), (10, (3, 3))]
)
def test_a_tile_is_cut_as_square_as_can_be(most, cut):
    assert pieces(256, 256, most) == cut
    assert pieces(1, 256, 4) == (1, 4) and pieces(10, 3, 4) == (2, 2)


@given(st.integers(1, 6), st.integers(1, 30), st.integers(1, 9))
def test_the_last_band_of_an_adaptive_order_takes_the_rest(offset, rows, columns):
    """Bands of so many rows but for the last one, back and forth, written as loops."""
    bands = max(rows // offset, 1)
    edges = [band * offset for band in range(bands)] + [rows]
    expected = [
        (row, column)
        for band in range(bands)
        for column in (range(columns) if band % 2 == 0 else reversed(range(columns)))
        for row in range(edges[band], edges[band + 1])
    ]
    assert tiles_of(Swizzle(offset, 0, adaptive=True), rows, columns) == expected


@given(size, size, size, st.integers(1, 5))
@settings(max_examples=60)
def test_pieces_cover_c_once_and_core_0_has_the_most_work(m, k, n, offset):
    s = adaptive(m, k, n, block=(48, 32, 64), offset=offset)
    covered, work = np.zeros((m, n), int), []
    for core in range(s.cores):
        tiles = [tile for v in s.visits(core) for tile in v.tiles]
        work.append((len(tiles), sum((r1 - r0) * (c1 - c0) for (r0, r1), (c0, c1) in tiles)))
        for (r0, r1), (c0, c1) in tiles:
            covered[r0:r1, c0:c1] += 1
    assert (covered == 1).all() and work[0] == max(work) and sum(tiles > 0 for tiles, _ in work) == s.used_cores
    assert sum(s.active_cores(wave) for wave in range(s.waves)) == sum(tiles for tiles, _ in work)
    assert s.waves == -(-s.tiles // s.cores)


def test_an_adaptive_order_changes_no_bit():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((300, 100), (100, 320)))
    s = adaptive(300, 100, 320, terms=3)
    plain = variant(s, swizzle=Swizzle(4, 0))
    assert (s.active_cores(1), plain.active_cores(1)) == (20, 5)
    assert same_bits(ascend.cube_gemm(a, b, schedule=s), ascend.cube_gemm(a, b, schedule=plain))


def test_what_an_adaptive_order_cannot_do_is_refused():
    with pytest.raises(ValueError, match="but this order assigns tiles one by one"):
        adaptive(300, 500, 400, resident="none", grid=(2, 1, 2))
    with pytest.raises(ValueError, match="with 2 slices of k, but this order cuts tiles of C and not k"):
        adaptive(300, 500, 400, split=2)
    s = adaptive(29 * 64, 64, 64, layout="nt")
    assert not any(is_said_by(s, dialect) for dialect in ("ascendc", "catlass", "pto"))
    with pytest.raises(ValueError, match="computes whole tiles, but the tile order <4, 0> adaptive"):
        pto_files(s)


# ---------------------------------------------------------------- numbers


@given(
    size,
    st.integers(1, 300),
    size,
    st.sampled_from(MODES),
    st.sampled_from([3, 4]),
    st.integers(1, 4),
    st.integers(1, 3),
)
@settings(max_examples=15)
def test_only_slices_groups_and_orders_change_bits(m, k, n, mode, terms, split, n_fused):
    m, n = min(m, 40), min(n, 40)
    rng = np.random.default_rng(m + 1000 * n + k)
    a, b = rng.normal(size=(m, k)).astype("f4"), rng.normal(size=(k, n)).astype("f4")
    small, split = ascend.Blocking(16, 16, 16), min(split, -(-k // 16))
    options = {"terms": terms, "mode": mode, "kernel": "grid", "n_fused": n_fused}
    base = build_schedule(m, k, n, A, small, grid=(1, split, 1), **options)
    product = base.product(a, b)
    for other in (
        build_schedule(m, k, n, A, ascend.Blocking(32, 16, 48), grid=(2, split, 3), resident="b", **options),
        build_schedule(m, k, n, A, ascend.Blocking(48, 16, 16), split=split, **options),
    ):
        assert other.sums == base.sums
        assert same_bits(other.product(a, b), product)


@pytest.mark.parametrize("mode", ["termwise", "termwise_inplace", "elementwise"])
@pytest.mark.parametrize("overflow", ["saturate", "inf"])
def test_slices_twin(mode, overflow):
    """The product on slices of k against the scalar reference, with c, special values among them."""
    rng = np.random.default_rng(4)
    for split, reseed in ((2, False), (3, True)):
        a, b = rng.normal(size=(2, 100)).astype("f4"), rng.normal(size=(100, 3)).astype("f4")
        c = rng.normal(size=(2, 3)).astype("f4")
        a[0, 70], b[95, 1], c[1, 2] = np.inf, 3e38, -np.inf
        s = build_schedule(
            2, 100, 3, A, ascend.Blocking(16, 16, 16), kernel="grid", split=split, mode=mode, n_fused=2, reseed_l0c=reseed
        )  # fmt: skip
        assert s.groups == 2
        expected = cube_gemm_reference(a, b, c, s, order=mode, overflow=overflow)
        got = ascend.cube_gemm(a, b, c, schedule=s, order=mode, overflow=overflow)
        assert np.array_equal(got, expected, equal_nan=True) and not np.array_equal(got, ascend.cube_gemm(a, b, c))


def test_slices_are_products_of_their_own():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(20, 400)).astype("f4"), rng.normal(size=(400, 30)).astype("f4")
    s = build_schedule(20, 400, 30, A, ascend.Blocking(16, 16, 16), kernel="grid", split=4)
    parts = [ascend.cube_gemm(a[:, k0:k1], b[k0:k1]) for k0, k1 in s.k_slices]
    assert same_bits(s.slice_products(a, b), np.stack(parts))
    assert same_bits(ascend.cube_gemm(a, b, schedule=s), ((parts[0] + parts[1]) + parts[2]) + parts[3])
    with pytest.raises(ValueError, match="without split-k"):
        ascend.cube_hgemm(a, b, schedule=variant(s, terms=1), accumulate="fp16")


def test_atomic_results_are_all_orders_and_within_the_bound():
    parts = np.float32([1.0, 2.0**-24, 2.0**-24]).reshape(3, 1, 1)
    assert sorted(set(atomic_results(parts).ravel().tolist())) == [
        1.0,
        1.0 + 2.0**-23,
    ]  # by hand: both small ones first
    rng = np.random.default_rng(6)
    many = (rng.normal(size=(5, 8, 9)) * 2.0 ** rng.integers(-6, 6, (5, 8, 9))).astype("f4")
    found = atomic_results(many)
    naive = {merge_slices(many[list(order)]).tobytes() for order in itertools.permutations(range(5))}
    assert {x.tobytes() for x in found} == naive
    assert merge_slices(many).tobytes() in naive
    spread = found.astype(float).max(axis=0) - found.astype(float).min(axis=0)
    assert spread.max() > 0 and (spread <= atomic_spread(many)).all()
    with pytest.raises(ValueError, match="atomic_spread"):
        atomic_results(np.zeros((8, 1, 1), "f4"))


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("chip", [A, B3], ids=["910A", "910B3"])
def test_the_compiled_simulator_agrees_with_the_reference(chip):
    chip = chip.replace(cores=4, sync_cycles_per_block=5.0)
    cases = [
        ("none", None, {"split": 2}), ("a", (2, 1, 2), {}), ("b", (1, 2, 2), {"n_fused": 1}),
        ("none", None, {"buffering": "single", "swizzle": Swizzle(2, 1)}), ("b", (2, 1, 2), {"mode": "fused", "n_fused": 2}),
        ("none", None, {"mode": "elementwise", "merge": "atomic", "split": 2}),
    ]  # fmt: skip
    for (resident, grid, options), all_cores in itertools.product(cases, (False, True)):
        s = build_schedule(
            100, 80, 70, chip, ascend.Blocking(48, 32, 64), kernel="grid", resident=resident, grid=grid, **options
        )
        program = build_program(s)
        fast = run_program(program, all_cores=all_cores, record=True)
        for phase, got in zip(program.phases, fast.phases, strict=True):
            slow = run_phase(program, phase, all_cores)
            assert got.cycles == pytest.approx(max(end for *_, end in slow), rel=1e-9)
            assert got.events == len(slow)


@given(
    size, size, size, st.sampled_from(["a", "b", "none"]), grids, st.sampled_from(MODES), st.sampled_from([1, 3, 4]),
    st.sampled_from(["single", "double"]), st.sampled_from(["910A", "910B3", "310P3"]), st.sampled_from(["reduce", "atomic"]),
    st.sampled_from([0.0, 17.5]),
)  # fmt: skip
@settings(max_examples=50)
def test_no_grid_deadlocks_and_one_core_has_all_its_operations(
    m, k, n, resident, grid, mode, terms, buffering, chip, merge, sync
):
    chip = ascend.get_chip(chip).replace(sync_cycles_per_block=sync)
    try:
        s = build_schedule(
            m, k, n, chip, ascend.Blocking(48, 32, 64), kernel="grid", resident=resident, grid=grid, mode=mode,
            terms=terms, buffering=buffering, merge=merge,
        )  # fmt: skip
    except ValueError:
        return
    program = build_program(s)
    assert run_program(program).operations == sum(1 for _ in program.operations(0))
    steps = sum(row[2] for row in program.totals.values())
    assert steps == s.cube_steps()
    for used, there in s.buffer_use().values():
        assert used <= there


def test_bytes_of_a_program_follow_the_schedule():
    """Every block of a streamed operand is loaded once for each tile that needs it, whatever L2 serves."""
    s = build_schedule(512, 512, 768, A, BLOCK, kernel="grid", resident="none", terms=1)
    totals = build_program(s).totals
    loaded = {x: sum(totals.get(f"{x} {kind}", (0, 0.0))[1] for kind in ("load", "miss")) for x in "AB"}
    assert loaded["A"] == pytest.approx(2 * 512 * 512 * len(s.column_blocks))
    assert loaded["B"] == pytest.approx(2 * 512 * 768 * len(s.row_blocks))
    kept = build_schedule(512, 512, 768, A, BLOCK, kernel="grid", resident="b", grid=(4, 1, 4), terms=1)
    totals = build_program(kept).totals
    assert sum(totals.get(f"B {kind}", (0, 0.0))[1] for kind in ("load", "miss")) == pytest.approx(2 * 512 * 768 * 4)


def test_atomic_merging_adds_in_memory():
    options = {"kernel": "grid", "split": 4, "terms": 1}
    atomic = build_schedule(64, 4096, 64, A, BLOCK, merge="atomic", **options)
    reduce = build_schedule(64, 4096, 64, A, BLOCK, merge="reduce", **options)
    names = [[phase.name for phase in build_program(s).phases] for s in (atomic, reduce)]
    assert names == [["zero", "multiply"], ["multiply", "merge"]]
    written = [build_program(s).totals["C write"][1] for s in (atomic, reduce)]
    assert written == [2 * 4 * 4 * 64 * 64, 4 * 4 * 64 * 64]
    with pytest.raises(ValueError, match="FIXPIPE adds sums from L0C to C"):
        build_schedule(64, 4096, 64, B3, BLOCK, merge="atomic", kernel="grid", split=4)


def test_nd_operands_need_a_pass_where_mte2_does_not_turn_them():
    """910A: each element of A and B read and written once more; 910B: MTE2 does it; words of several terms are NZ."""
    options = {"kernel": "grid", "layout": "nd"}
    here = build_schedule(512, 512, 768, A, BLOCK, terms=1, **options)
    program = build_program(here)
    assert [phase.name for phase in program.phases] == ["convert", "multiply"]
    assert program.totals["convert read"][1] == program.totals["convert write"][1] == 2 * (512 * 512 + 512 * 768)
    assert ascend.simulate(here).seconds > ascend.simulate(variant(here, layout="nz")).seconds
    for other in (
        build_schedule(512, 512, 768, B3, BLOCK, terms=1, **options),
        build_schedule(512, 512, 768, A, BLOCK, **options),
    ):
        assert "convert" not in [phase.name for phase in build_program(other).phases]
    with pytest.raises(ValueError, match="layout must be one of nz, nd"):
        build_schedule(64, 64, 64, A, BLOCK, layout="rows")
    nz, nd = (ascend.plan(512, 4096, 512, A, terms=1, layout=x, top=1, error_of=lambda s: 0.0)[0] for x in ("nz", "nd"))
    assert nd.seconds > nz.seconds


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": (8, 1, 8)}, "a grid of 8x1x8 has 64 cores, but 910A has 32"),
        ({"grid": (0, 1, 1)}, "at least 1 core along m"),
        ({"split": 5, "grid": (1, 2, 1)}, "divides k differently"),
        ({"split": 9}, "got 9 slices of k, but k = 500 has only 8 blocks of bk = 64"),
        ({"kernel": "paper", "split": 2}, "divides the rows of C among a grid of .* cores, .*: use kernel='grid'"),
        ({"kernel": "fast"}, "kernel must be one of paper, grid, vector"),
        ({"resident": "c"}, "resident must be one of a, b, none"),
        ({"merge": "sum"}, "merge must be one of atomic, reduce"),
        ({"depth": 9}, "depth must lie between 1 and 8"),
        ({"swizzle": Swizzle(1, 0), "cores": 33}, "cores must lie between 1 and the 32"),
        (
            {"swizzle": Swizzle(3, 1), "grid": (2, 1, 2), "resident": "none"},
            "row by row .* or column by column .* not in wider bands",
        ),
    ],
)
def test_impossible_grids(options, message):
    with pytest.raises(ValueError, match=message):
        build_schedule(300, 500, 400, A, BLOCK, **({"kernel": "grid"} | options))


def test_defaults_of_a_grid():
    s = build_schedule(300, 500, 400, A, BLOCK, kernel="grid")
    assert (s.resident, s.swizzle, s.grid, s.balanced) == ("none", Swizzle(3, 1), Grid(), True)
    assert s.depth == 8 and s.groups == 1 and s.chain == 500
    wide = build_schedule(64, 500, 9000, A, BLOCK, kernel="grid", resident="a")
    assert wide.grid == Grid(1, 1, 32)
    assert build_schedule(9000, 500, 64, A, BLOCK, kernel="grid", resident="b").grid == Grid(32, 1, 1)
    assert build_schedule(300, 500, 400, A, BLOCK, kernel="grid", cores=4).used_cores == 4


def test_a_core_walks_its_rectangle_by_rows_or_by_columns():
    """2 x 3 tiles for a core: iterateOrder 1 goes along n first, 0 along m first; another grid begins by rows again."""
    s = build_schedule(256, 64, 384, A, BLOCK, kernel="grid", resident="none", grid=(2, 1, 2), terms=1)
    m_first = variant(s, swizzle=Swizzle(1, 1))
    rows, columns = (0, 64), [(0, 64), (64, 128), (128, 192)]
    assert [v.tiles[0] for v in s.visits(0)][:3] == [(rows, column) for column in columns]
    assert [v.tiles[0] for v in m_first.visits(0)][:3] == [
        (rows, columns[0]),
        ((64, 128), columns[0]),
        (rows, columns[1]),
    ]
    assert [tiling_fields(x)["iterateOrder"] for x in (s, m_first)] == [1, 0]
    assert (s.placement(), m_first.placement()) == ("rectangles", "rectangles by columns")
    assert variant(m_first, grid=(1, 1, 4)).swizzle == s.swizzle == Swizzle(1, 0, False) and m_first.sums == s.sums


def test_closed_forms_know_what_fits_l1():
    """Finite exactly for the candidates that build: with a small L1 both happen."""
    chip = A.replace(l1_bytes=65536)
    request = Request(2000, 2000, 2000, chip, terms=1)
    fits = refused = 0
    for candidates in grid_candidates(request, split=1):
        seconds = estimate(request, candidates).seconds
        for index in range(0, len(seconds), max(len(seconds) // 8, 1)):
            block = ascend.Blocking(*(int(x[index]) for x in (candidates.bm, candidates.bk, candidates.bn)))
            at_m, at_n = int(candidates.at_m[index]), int(candidates.at_n[index])
            grid = (1, 1, 1) if candidates.resident == "none" else (at_m, 1, at_n)
            try:
                build_schedule(
                    2000, 2000, 2000, chip, block, terms=1, kernel="grid", resident=candidates.resident, grid=grid
                )
                built = True
            except ValueError as error:
                built = "overflows L1" not in str(error)
            assert built == np.isfinite(seconds[index]), (candidates.resident, block, grid)
            fits, refused = fits + built, refused + (not built)
    assert fits > 50 and refused > 5


# ---------------------------------------------------------------- plans


@pytest.mark.sweep(3)
@pytest.mark.parametrize("chip", [A, B3, P3], ids=["910A", "910B3", "310P3"])
@pytest.mark.parametrize("shape", SHAPES, ids=["x".join(map(str, shape)) for shape in SHAPES])
def test_a_plan_and_its_transpose_differ_little(chip, shape):
    m, k, n = shape
    here, there = (
        ascend.plan(*sizes, chip, top=1, error_of=lambda s: 0.0)[0].seconds for sizes in ((m, k, n), (n, k, m))
    )
    # FIXPIPE takes 4.45 cycles for a row of C however short: narrow tiles of a tall C drain more slowly.
    assert abs(here / there - 1) <= (0.06 if chip.fixpipe else 0.025)


def test_a_grid_is_not_slower_than_the_papers_kernel():
    """At the published size, where the paper's dealing fits perfectly, and far from it."""
    for shape in ((5632, 2816, 5632), (32, 512, 1100)):
        options = {"top": 1, "error_of": lambda s: 0.0}
        paper = ascend.plan(*shape, A, kernel="paper", simulated=5, **options)[0]
        assert ascend.plan(*shape, A, **options)[0].seconds <= paper.seconds


def test_gemv_is_memory_bound_and_near_the_roof():
    best = ascend.plan(1, 4096, 4096, A, top=1)[0]
    assert best.schedule.kernel == "vector" and best.bound[0] == best.roofline.bound == "memory"
    least = 4 * (4096 * 4096 + 2 * 4096) / A.hbm_bytes_per_second
    assert least < best.seconds < 1.2 * least


def test_warnings_say_why_cores_are_idle():
    best = ascend.plan(16, 64, 16, A, top=1)[0]
    assert best.schedule.used_cores < 32 and "cores are idle" in best.warnings[0]
    assert not ascend.plan(512, 4096, 1024, A, top=1, error_of=lambda s: 0.0)[0].warnings


def test_sizes_are_checked_first():
    start = time.process_time()
    with pytest.raises(ValueError, match="needs 373 GiB"):
        ascend.plan(10**7, 10**4, 1, A)
    assert time.process_time() - start < 0.1


def test_ties_prefer_more_cores_and_even_blocks():
    plans = ascend.plan(4096, 4096, 4096, A, top=10, error_of=lambda s: 0.0)
    best = plans[0]
    assert all(size % 32 == 0 for size in (best.blocking.bm, best.blocking.bk, best.blocking.bn))
    assert best.seconds <= 1.005 * min(p.seconds for p in plans)


# ---------------------------------------------------------------- the vector kernel


@pytest.mark.parametrize(("m", "n"), [(1, 40), (3, 40), (40, 1), (40, 3)])
def test_vector_product_against_exact_sums(m, n):
    """Every product and every sum rounded once, from fractions, in the order that the module states."""
    from fractions import Fraction

    rng = np.random.default_rng(m * 100 + n)
    k = 150
    a, b = rng.normal(size=(m, k)).astype("f4"), rng.normal(size=(k, n)).astype("f4")
    c = rng.normal(size=(m, n)).astype("f4")
    block = ascend.Blocking(16, 16, 64) if n >= m else ascend.Blocking(16, 64, 16)
    s = build_schedule(m, k, n, A, block, terms=1, operand="fp32", kernel="vector", split=2)
    fp32 = ReferenceArithmetic(get_float_format("fp32"), False)

    def chain(products, start):
        total = start
        for p in products:
            total = fp32.sum(total, p)
        return total

    for i, j in ((0, 0), (m - 1, n - 1)):
        total = None
        for number, (k0, k1) in enumerate(s.k_slices):
            products = [fp32.rounded(Fraction(float(a[i, x])) * Fraction(float(b[x, j]))) for x in range(k0, k1)]
            seed = float(c[i, j]) if number == 0 else 0.0
            if s.streamed == "b":
                part = chain(products, seed)
            else:
                lanes = [chain(products[lane::64], 0.0) for lane in range(64)]
                while len(lanes) > 1:
                    half = len(lanes) // 2
                    lanes = [fp32.sum(x, y) for x, y in zip(lanes[:half], lanes[half:], strict=True)]
                part = fp32.sum(seed, lanes[0]) if number == 0 else lanes[0]
            total = part if total is None else fp32.sum(total, part)
        assert s.product(a, b, c)[i, j] == np.float32(total)


def test_vector_kernels_are_refused_where_they_make_no_sense():
    options = {"kernel": "vector", "terms": 1, "operand": "fp32"}
    with pytest.raises(ValueError, match="computes 1 term of fp32 or fp16 operands"):
        build_schedule(1, 64, 64, A, ascend.Blocking(16, 16, 64), kernel="vector")
    with pytest.raises(ValueError, match="overflows UB"):
        build_schedule(1, 64, 9000, A, ascend.Blocking(16, 64, 1024), **options)
    with pytest.raises(ValueError, match="divides only n and k among"):
        build_schedule(1, 64, 9000, A, ascend.Blocking(16, 16, 64), grid=(2, 1, 4), **options)


def test_a_vector_kernel_reads_the_large_operand_once():
    s = build_schedule(
        1, 4096, 3000, A, ascend.Blocking(16, 16, 512), terms=1, operand="fp32", kernel="vector", split=5
    )
    totals = build_program(s).totals
    assert totals["stream load"][1] == 4 * 4096 * 3000 and totals["C write"][1] == 5 * 4 * 3000
    other = dataclasses.replace(s, chip=A.replace(hbm_bytes_per_second=0.6e12))
    assert ascend.simulate(other).seconds > 1.5 * ascend.simulate(s).seconds
