"""Wrong kernels that nobody prepared: caught, placed, and named rightly or not at all; right ones pass.

`python tests/testing/test_wild_kernels.py FIRST LAST` prints the counts of docs/kernel_faults.md for these seeds.
"""

import collections
import re
import sys

import numpy as np
import pytest

from mpgemm.testing import check_gemm
from mpgemm.testing.diagnosis.failure import failure_of
from tests.support.wild_kernels import WILD, call

UNKNOWN = "no known fault"
#: Share of the union that the place said and the true one have in common, from which it is placed.
PLACED = 0.8


def judged(name, seed):
    """(outcome, placed or None, what was said) of one wrong kernel; None where there is no such fault for the call."""
    rng = np.random.default_rng([seed, list(WILD).index(name), 77])
    run = call(seed)
    with np.errstate(all="ignore"):
        wild = WILD[name](run, rng)
    if wild is None:
        return None
    right = np.isfinite(wild.out.astype(np.float64)).all()
    found = check_gemm(wild.out, run.a, run.b, **{"c": None, **run.arguments})
    if found.passes or "vacuous" in found.summary or not right:
        return "passes", None, ""
    said = [text for text in found.suspects if not text.startswith(UNKNOWN)]
    if not said:
        outcome = "not named"
    else:
        outcome = "right" if wild.says and all(re.search(wild.says, text) for text in said) else "wrong"
    placed = None
    if wild.mask is not None and found.outside is not None:
        place = failure_of(wild.out.astype(np.float64), found.case, found.outside).place.mask
        changed = wild.mask & (wild.out.astype(np.float64) != run.finish(run.sums()).astype(np.float64))
        silent = wild.mask & ~changed
        common = np.count_nonzero(place & wild.mask & ~silent)
        placed = common >= PLACED * np.count_nonzero((place | wild.mask) & ~silent)
    return outcome, placed, f"{found.place}: {'; '.join(said)}"


def campaign(seeds, names=tuple(WILD), show=False):
    """Counts over every fault and seed."""
    total = collections.Counter()
    for name in names:
        for seed in seeds:
            found = judged(name, 1000 * list(WILD).index(name) + seed)
            if found is None:
                continue
            outcome, placed, said = found
            total["cases"] += 1
            total[outcome] += 1
            total["nameable"] += outcome in ("right", "not named", "wrong") and _nameable(name)
            total["right of nameable"] += outcome == "right" and _nameable(name)
            if placed is not None:
                total["with a place"] += 1
                total["placed"] += placed
            if show and (outcome not in ("right",) or placed is False):
                print(f"{name}, {seed}: {outcome}, placed {placed}: {said}", flush=True)
    return total


OF_NO_KIND = (
    "noise",
    "factors_at_random",
    "sign_lost",
    "garbage_tile",
    "shuffled_products",
    "single_elements",
    "transposed_operand",
)


def _nameable(name):
    return name not in OF_NO_KIND


def false_alarms(seeds):
    """Seeds of right kernels of which something is said."""
    found = []
    for seed in seeds:
        run = call(seed)
        with np.errstate(all="ignore"):
            out = run.finish(run.sums())
        if np.isfinite(out.astype(np.float64)).all():
            check = check_gemm(out, run.a, run.b, **{"c": None, **run.arguments})
            if not check.passes and "vacuous" not in check.summary:
                found.append((seed, str(check)))
    return found


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", ["tile_transposed", "k_dropped", "bias_lost", "noise"])
def test_one_wrong_kernel_of_a_kind(name):
    counts = campaign(range(2), (name,))
    assert counts["wrong"] == 0 and counts["cases"]


def test_right_kernels_pass():
    assert false_alarms(range(5000, 5006)) == []


@pytest.mark.slow
def test_wrong_kernels_are_named_rightly_or_not_at_all_and_placed():
    counts = campaign(range(100, 103))
    assert counts["wrong"] == 0
    assert counts["right of nameable"] >= 0.7 * counts["nameable"] and counts["nameable"] >= 60
    assert counts["placed"] >= 0.9 * counts["with a place"]


@pytest.mark.slow
def test_400_right_kernels_pass():
    assert false_alarms(range(6000, 6400)) == []


if __name__ == "__main__":
    ends = [int(x) for x in sys.argv[1:3]]
    print(dict(campaign(range(*ends), tuple(sys.argv[3:]) or tuple(WILD), show=True)))
