"""Blocks: eqs. 8 and 12 of the SGEMM-cube paper and their published figures."""

import numpy as np
import pytest

import ascend
from ascend.blocking import feasible_sizes, optimal_bm, rejections

pytestmark = pytest.mark.smoke

A = ascend.get_chip("910A")


@pytest.mark.parametrize(("b", "expected"), [(96, 83), (128, 62), (160, 49), (176, 44), (192, 40)])
def test_n_fused_of_square_blocks(b, expected):
    assert ascend.Blocking(b, 64, b).n_fused(A) == expected


def test_published_block():
    """Section 6.3: (bm, bk, bn, N_fused) = (176, 64, 176, 44); 44.545 before the floor."""
    block = ascend.Blocking(176, 64, 176)
    assert pytest.approx(44.545, abs=5e-4) == (2**19 - 2 * 64 * 176) / (176 * 64)
    assert block.fusion_efficiency(A) == 44 * 176 * 64 / 2**19 == 0.9453125
    assert block.n_fused(A, buffering="single") == (2**19 - 64 * 176) // (176 * 64) == 45
    assert block.n_fused(A, words=2) == (2**19 - 4 * 64 * 176) // (2 * 176 * 64) == 21


def test_feasible_space():
    blocks = ascend.feasible_blocks(A)
    assert len(blocks) == 2329
    assert blocks == sorted(blocks)
    f = [b.fusion_efficiency(A) for b in blocks]
    assert (round(min(f), 4), round(max(f), 4)) == (0.9185, 0.9990)  # the paper: 0.92 <= f
    optima = [optimal_bm(A, x) for x in (min(f), max(f))]
    assert [round(x, 1) for x in optima] == [86.7, 90.5]  # the paper: 86 < b_m,opt < 90


def test_optimal_bm_minimises_eq_9():
    f = 0.95
    best = optimal_bm(A, f)

    def moved(bm):
        return 1 / (A.cores * bm) + 2 * bm / (f * 2**19)

    assert moved(best) < min(moved(best * 0.999), moved(best * 1.001))


@pytest.mark.parametrize("name", ["910A", "910B1", "310P3"])
@pytest.mark.parametrize("options", [{}, {"buffering": "single"}, {"words": 2}, {"operand": "fp32"}])
def test_the_space_is_what_eq_12_says(name, options):
    """Against a scan of the plain inequalities."""
    chip = ascend.get_chip(name)
    size = 4 if options.get("operand") == "fp32" else 2
    words, count = options.get("words", 1), 1 if options.get("buffering") == "single" else 2
    l0a, l0b = chip.l0a_bytes // 2 // size, chip.l0b_bytes // 2 // size
    expected = [
        (bm, bk, bn)
        for bm in range(16, 1040, 16)
        for bk in range(16, 1040, 16)
        if bm * bk <= l0a
        for bn in range(16, 1040, 16)
        if bk * bn <= l0b
        and 6 * bm * bn <= chip.ub_bytes
        and 4 * bm * bn <= chip.l0c_bytes
        and words * size * (bm * bk + count * bk * bn) <= chip.l1_bytes
    ]
    assert list(map(tuple, feasible_sizes(chip, **options).tolist())) == expected
    for sizes in expected[:: max(len(expected) // 50, 1)]:
        assert ascend.Blocking(*sizes).is_feasible(chip, **options)
        assert ascend.Blocking(*sizes).n_fused(chip, **options) >= 1


def test_each_constraint_is_named_with_bytes():
    broken = {r.constraint.split(" capacity")[0]: r for r in ascend.Blocking(304, 112, 304).rejections(A)}
    assert set(broken) == {"L0A", "L0B", "L0C", "UB"}
    assert (broken["L0A"].needed, broken["L0A"].limit) == (304 * 112 * 2, 32768)
    assert (broken["UB"].needed, broken["UB"].limit) == (304 * 304 * 6, 253952)
    small = A.replace(l1_bytes=65536)
    (only,) = ascend.Blocking(128, 128, 128).rejections(small)
    assert (only.needed, only.limit) == (2 * (128 * 128 + 2 * 128 * 128), 65536)
    assert str(only) == "L1 capacity (one A block and the B buffers): 98304 bytes needed, 65536 available"


def test_the_frontier_is_rejected_and_one_step_smaller_is_not():
    feasible = set(map(tuple, feasible_sizes(A).tolist()))
    rows = rejections(A)
    assert len(rows) == len({row[:3] for row in rows}) == 966
    for row in rows:
        sizes = row[:3]
        assert row.reasons and sizes not in feasible
        smaller = [sizes[:i] + (sizes[i] - 16,) + sizes[i + 1 :] for i in range(3)]
        assert any(s in feasible for s in smaller)


@pytest.mark.parametrize("size", [0, -16, 8, 17, 100])
def test_unaligned_blocks(size):
    with pytest.raises(ValueError, match="must be a positive multiple of 16"):
        ascend.Blocking(16, size, 16)
    (reason,) = ascend.candidate_rejections(16, size, 16, A)
    assert reason.constraint == "bk alignment"


def test_sizes_that_are_no_numbers():
    for bad in (True, 16.0, "16", None):
        with pytest.raises(TypeError, match="bm must be an integer"):
            ascend.Blocking(bad, 16, 16)
    assert ascend.Blocking(np.int64(32), 16, 16).bm == 32
    with pytest.raises(ValueError, match="'single' or 'double'"):
        ascend.Blocking(16, 16, 16).n_fused(A, buffering="triple")
