"""The tile schedule: it covers the product once, fits the buffers, and counts exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend
from ascend.pipes.build import build_program
from ascend.schedule import build_schedule, variant
from ascend.term_modes import MODES, TERMS

A = ascend.get_chip("910A")
B3 = ascend.get_chip("910B3")
BLOCK = ascend.Blocking(64, 64, 64)
size = st.integers(1, 700)
sixteens = st.integers(1, 12).map(lambda x: 16 * x)


@given(size, size, size, sixteens, st.integers(1, 5).map(lambda x: 16 * x), sixteens, st.integers(1, 6))
@settings(max_examples=30)
def test_ranges_cover_each_index_once(m, n, k, bm, bk, bn, n_fused):
    s = build_schedule(m, k, n, A, ascend.Blocking(bm, bk, bn), n_fused=n_fused)
    for ranges, length, step in (
        (s.row_blocks, m, bm),
        (s.column_blocks, n, bn),
        (s.k_groups, k, bk * n_fused),
        (sum((s.k_blocks(g) for g in s.k_groups), ()), k, bk),
    ):
        assert [i for start, stop in ranges for i in range(start, stop)] == list(range(length))
        assert all(stop - start == step for start, stop in ranges[:-1])
    by_core = [tuple(visit.panel for visit in s.visits(core)) for core in range(s.cores)]
    assert sorted(sum(by_core, ())) == list(s.row_blocks)
    assert max(map(len, by_core)) == s.waves == len(by_core[0])
    assert sum(s.active_cores(wave) for wave in range(s.waves)) == len(s.row_blocks)


@given(size, size, size, sixteens, st.integers(1, 5).map(lambda x: 16 * x), sixteens, st.sampled_from([1, 3, 4]))
@settings(max_examples=30)
def test_cube_steps(m, n, k, bm, bk, bn, terms):
    s = build_schedule(m, k, n, A, ascend.Blocking(bm, bk, bn), terms=terms)
    steps = sum(
        -(-(r1 - r0) // 16) * -(-(c1 - c0) // 16) * -(-(k1 - k0) // 16)
        for r0, r1 in s.row_blocks
        for c0, c1 in s.column_blocks
        for g in s.k_groups
        for k0, k1 in s.k_blocks(g)
    )
    assert s.cube_steps() == terms * steps
    totals = build_program(s).totals
    assert sum(row[2] for row in totals.values()) == terms * steps


@pytest.mark.parametrize("chip", [A, B3], ids=["910A", "910B3"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("buffering", ["single", "double"])
def test_no_feasible_block_ever_exceeds_a_buffer(chip, mode, buffering):
    """Every block of eq. 12 either fits by the bytes or is refused with the buffer's name."""
    built = refused = 0
    for block in ascend.feasible_blocks(chip, buffering)[::16]:
        try:
            s = build_schedule(3000, 9000, 3000, chip, block, mode=mode, buffering=buffering)
        except ValueError as error:
            assert "overflows L" in str(error) or "overflows UB" in str(error)
            refused += 1
            continue
        built += 1
        use = s.buffer_use()
        assert set(use) >= {"L1", "L0A", "L0B", "L0C"}
        assert all(0 < used <= there for used, there in use.values()), (block, use)
    assert built > 40
    assert refused == 0 or mode == "fused"


def test_l1_is_filled_as_far_as_it_goes():
    s = build_schedule(5632, 2816, 5632, A, ascend.Blocking(176, 64, 176))
    used, there = s.buffer_use()["L1"]
    assert used == 2 * (44 * 176 * 64 + 2 * 64 * 176)
    assert there - used < 2 * 176 * 64


@pytest.mark.parametrize(
    ("block", "options", "message"),
    [
        (
            (192, 64, 192),
            {"mode": "fused"},
            r"\(192, 64, 192\) \(fused, double buffers\) overflows L0C of 910A: 442368 bytes",
        ),
        ((528, 64, 16), {}, r"overflows L0A of 910A: 135168 bytes needed, 65536 available"),
        ((16, 64, 528), {}, r"overflows L0B of 910A: 135168 bytes needed, 65536 available"),
        ((176, 64, 176), {"n_fused": 45}, r"overflows L1 of 910A: 1058816 bytes needed, 1048576 available"),
        ((1024, 256, 1024), {}, r"overflows L1 of 910A: 1572864 bytes needed, 1048576 available"),
        ((272, 16, 272), {}, r"overflows L0C of 910A: 295936 bytes needed, 262144 available"),
    ],
)
def test_overflow_names_buffer_bytes_and_limit(block, options, message):
    with pytest.raises(ValueError, match=message):
        build_schedule(5632, 5632, 5632, A, ascend.Blocking(*block), **options)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 1, 1), {}, "m must lie between 1 and"),
        ((1, -5, 1), {}, "k must lie between 1 and 2147483647, got -5"),
        ((1, 1, 2**31), {}, "n must lie between"),
        ((1, 1, 1), {"terms": 2}, "terms must be 1"),
        ((1, 1, 1), {"mode": "fast"}, "mode must be one of"),
        ((1, 1, 1), {"operand": "int4"}, "operand must be"),
        ((1, 1, 1), {"operand": "fp32"}, "only fp16 operands are split"),
        ((1, 1, 1), {"operand": "fp32", "terms": 1}, "multiplies fp16, int8, got fp32"),
        ((1, 1, 1), {"n_fused": 0}, "n_fused must be at least 1"),
        ((1, 1, 1), {"buffering": "none"}, "buffering must be one of single, double, got 'none'"),
    ],
)
def test_bad_requests(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        build_schedule(*arguments, A, ascend.Blocking(64, 64, 64), **options)


@pytest.mark.parametrize("arguments", [(64, 64, 64, BLOCK, A), (64, 64, BLOCK, 64, A), (64, 64, 64, A, (64, 64, 64))])
def test_swapped_arguments_are_refused(arguments):
    with pytest.raises(
        TypeError, match=r"build_schedule\(m, k, n, chip, blocking\)|n must be an integer, got Blocking"
    ):
        build_schedule(*arguments)


def test_variants_are_checked_again():
    s = build_schedule(500, 600, 700, A, BLOCK, terms=4, mode="elementwise", buffering="single", n_fused=2)
    assert variant(s) == s
    other = variant(s, blocking=ascend.Blocking(32, 32, 32))
    assert other.n_fused == other.blocking.n_fused(A, "single", 2)
    assert (other.mode, other.terms, other.buffering) == ("elementwise", 4, "single")
    with pytest.raises(ValueError, match="overflows L0A"):
        variant(s, blocking=ascend.Blocking(528, 64, 16))


def test_a_schedule_in_both_interpreters():
    """One object gives the product's bits and its time; its length of a chain is what both use."""
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((70, 300), (300, 50)))
    s = build_schedule(70, 300, 50, A, ascend.Blocking(32, 32, 32), n_fused=2)
    assert s.chain == 64 and len(s.k_groups) == 5
    timeline = ascend.simulate(s)
    assert timeline.schedule is s
    groups = [ascend.cube_gemm(a[:, k0:k1], b[k0:k1], low_low=False) for k0, k1 in s.k_groups]
    assert not np.array_equal(ascend.cube_gemm(a, b, schedule=s), ascend.cube_gemm(a, b))
    assert np.allclose(sum(groups), ascend.cube_gemm(a, b, schedule=s), rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="TileSchedule"):
        ascend.simulate(ascend.Blocking(32, 32, 32))


def test_reseeding_needs_a_way_into_l0c():
    with pytest.raises(ValueError, match="no path from UB into L0C"):
        build_schedule(64, 64, 64, B3, ascend.Blocking(64, 64, 64), reseed_l0c=True)


def test_terms_and_passes():
    def of(mode, terms=3):
        return build_schedule(64, 64, 64, A, ascend.Blocking(64, 64, 64), terms=terms, mode=mode)

    assert of("termwise").passes == (("lh",), ("hl",), ("hh",))  # the sum of the small ones waits for the last pass
    assert of("termwise_inplace").passes == (("hh",), ("lh",), ("hl",))
    assert of("fused").passes == (TERMS[:3],) and of("fused").accumulators == 3
    assert of("elementwise", 4).passes == (TERMS,) and of("elementwise", 4).accumulators == 1
    assert of("fused", 1).words == 1 and of("fused").words == 2


@pytest.mark.parametrize("terms", [1, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_c_traffic_of_each_mode(terms, groups):
    """C-sized reads and writes for one C block: the closed forms that the modes promise."""

    def count(mode):
        s = build_schedule(64, 128 * groups, 64, A, ascend.Blocking(64, 64, 64), terms=terms, mode=mode, n_fused=2)
        assert len(s.k_groups) == groups
        reads = sum(s.c_reads(p, g) for p in range(len(s.passes)) for g in range(groups))
        return reads, len(s.passes) * sum(s.c_writes(g) for g in range(groups))

    assert count("termwise") == count("termwise_inplace") == (terms * groups - 1, terms * groups)
    assert count("fused") == (terms * (groups - 1), terms * (groups - 1) + 1)
    assert count("elementwise") == (groups - 1, groups)


def test_unblocked():
    s = ascend.TileSchedule.unblocked(m=5, k=1000, n=7)
    assert (s.row_blocks, s.column_blocks, s.k_groups) == (((0, 5),), ((0, 7),), ((0, 1000),))
    assert s.buffer_use() == {} and s.cube_step == (16, 16, 16)
    empty = ascend.TileSchedule.unblocked(m=5, k=0, n=7)
    assert empty.k_groups == ()
    with pytest.raises(ValueError, match="no chip"):
        build_program(s)
    with pytest.raises(ValueError, match="m must lie between 0"):
        ascend.TileSchedule.unblocked(m=-1, k=1, n=1)
