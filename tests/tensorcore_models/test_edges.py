"""Every fast kernel at the edges of what it decides by (`probing.edges`), and the generator itself."""

import dataclasses
import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import kernels
from tensorcore_models._kernels.narrow import narrow
from tensorcore_models.kernels.common import Source, generic_promoted
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.probing import edge_operands, edges

HEADERS = Path(tcm.__file__).parent / "_kernels"
#: Products at each edge and for each seed: about 2.5 s on a machine with nothing else to do.
ROUNDS = 75
SEEDS = 28


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_fast_kernels_at_their_edges(seed):  # 10 s in all: the standing judge of every kernel with lanes
    found = list(edges.sweep(seed=seed, rounds=ROUNDS))
    assert Counter(x.edge for x in found) == dict.fromkeys(edges.EDGES, ROUNDS)
    assert not [x.first for x in found if x.different]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_fast_kernels_at_their_edges_for_long(seed):
    assert not [x.first for x in edges.sweep(60, seed) if x.different]


def test_every_path_is_a_subject():
    assert {x.path for x in edges.subjects()} == {path.name for path in kernels.FAST_PATHS}


def test_every_subject_has_its_turn():
    """At every edge that it is drawn for, in one of the seeds."""
    turns = list(itertools.product(range(SEEDS), range(ROUNDS)))
    for edge in edges.EDGES:
        seen = {edges.subject_at(edge, seed, which * len(edges.EDGES)) for seed, which in turns}
        assert seen == set(edges._subjects_at(edge))


def test_windows_have_every_shift():
    """Half of the sweep's products fit in a window, with nearly all shifts of A beside a zero, and the largest of products."""
    seen, both = set(), Counter()
    for seed, which in itertools.product(range(SEEDS), range(ROUNDS)):
        turn = which * len(edges.EDGES)
        subject = edges.subject_at("windows", seed, turn)
        _, p = edges.product(subject.low, "windows", seed, turn)
        kernel = subject.kernel
        sources = Source.of_a(p.a, vars(kernel.a_operand)), Source.of_b(p.b, vars(kernel.b_operand))
        found = narrow.shifts(*sources, isa_level(), 1)
        if found is not None:
            both[sum(found)] += 1
            if not (p.a & subject.low.a_format.magnitude_mask).all():
                seen.add(found[0])
    assert both.total() > 1000 and both[narrow.SHIFT] > 50 and both[-narrow.SHIFT] > 50
    assert len(seen) > 200 and min(seen) < -105 and max(seen) > 105


def test_every_block_size_has_products_around_it():
    text = (HEADERS / "common" / "block_sizes.h").read_text()
    rows = re.findall(r"#define MPG_(\w+)_(ROWS|DEPTH|BYTES)_SIZES (.+?)(?: /\*.*)?$", text, re.MULTILINE)
    assert len(rows) == 7
    for _, what, sizes in rows:
        wanted = {int(size) // (4 if what == "BYTES" else 1) for size in sizes.split(",")}
        assert wanted <= set(edge_operands.SIZES if what != "DEPTH" else edge_operands.LENGTHS)


class Wrong:
    """A kernel whose last element is wrong in products of more than 20 rows."""

    def __init__(self, kernel):
        self.kernel = kernel

    def run(self, *args):
        d = self.kernel.run(*args)
        if len(d) > 20:
            d.flat[-1] ^= 1
        return d


def test_a_wrong_kernel_is_found():
    (subject,) = [x for x in edges.subjects() if x.unit == "volta:mma.m8n8k4.f32.f16.f16.f32"][:1]
    wrong = dataclasses.replace(subject, kernel=Wrong(subject.kernel))
    found = [edges.differences(wrong, "tails", 0, turn) for turn in range(30)]
    assert any(x.different for x in found) and not all(x.different for x in found)
    (first,) = [x.first for x in found if x.different][:1]
    assert re.fullmatch(r"volta:\S+: lanes of 32 bits, a product on \w+, .*, element \(.*\), seed 0, turn \d+", first)


def test_sums_outside_keep_subnormal_numbers(isa):
    """Gaudi 2 takes a subnormal c as zero, but a sum outside of the unit is no c of it."""
    unit = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
    low = kernels.lowered(unit)
    kernel = next(kernel for path, _, kernel in kernels.fast_kernels(unit) if path == "lanes of 64 bits")
    a, b, total = np.zeros((3, 8), np.uint16), np.zeros((8, 5), np.uint16), np.full((3, 5), 0x80000001, np.uint32)
    assert np.array_equal(kernel.run(low, a, b, total, every=8), total)


def test_sums_outside_of_zeros_keep_their_sign(isa):
    """Zeros of Gaudi 2 have the sign of the products: minus zero outside stays so with zeros of that sign, not with others."""
    unit = tcm.get_instruction("gaudi2", "mme.k8.f32.bf16.bf16.f32")
    low = kernels.lowered(unit)
    kernel = next(kernel for path, _, kernel in kernels.fast_kernels(unit) if path == "lanes of 64 bits")
    a, b = np.zeros((2, 32), np.uint16), np.full((32, 3), 0x8000, np.uint16)
    a[1, 16:] = 0x8000
    total = np.full((2, 3), 0x80000000, np.uint32)
    expected = generic_promoted(low, a, b, total, None, None, 16)
    assert set(expected.flat) == {0, 0x80000000}
    assert np.array_equal(kernel.run(low, a, b, total, every=16), expected)
