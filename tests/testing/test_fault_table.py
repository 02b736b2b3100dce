"""The table of kernel faults: each is made on five kernels in four formats, must be caught, and called by its name.

`python tests/testing/test_fault_table.py` prints the table of docs/kernel_faults.md.
"""

import collections
import itertools
import re
import sys

import numpy as np
import pytest

from mpgemm.testing import assert_gemm_close
from tests.support.faulty_kernels import KERNELS, MAKERS, make
from tests.support.kernel_faults import KERNEL_FAULTS, get_fault

SHAPES = {
    "gaussian": (64, 1064, 160),
    "heavy": (48, 808, 96),
    "activations": (64, 552, 136),
    "positive": (1, 1064, 256),
}
#: Seeds of the table in the docs, each with other kinds of data.
SEEDS = 1
CASES = [(kernel, fmt) for kernel, formats in KERNELS.items() for fmt in formats]


def said(run, out):
    """What the check says first: None where it passes."""
    try:
        assert_gemm_close(out, run.a, run.b, **run.arguments)
    except AssertionError as error:
        found = [line.split("looks like ")[1] for line in str(error).splitlines() if "looks like" in line]
        return found[0] if found else str(error).splitlines()[0]
    return None


def tried(name, kernel, fmt, kind, seed):
    """(there is such a fault here, what is said of it)."""
    run = make(kernel, fmt, SHAPES[kind], kind, seed)
    with np.errstate(all="ignore"):
        out = MAKERS[name](run, np.random.default_rng([seed, 99]))
    return (False, None) if out is None else (True, said(run, out))


def test_every_fault_has_a_maker():
    assert [fault.name for fault in KERNEL_FAULTS] == list(MAKERS)


@pytest.mark.parametrize(("kernel", "fmt"), CASES[::3])
def test_right_kernels_pass(kernel, fmt):
    for kind in ("gaussian", "positive"):
        run = make(kernel, fmt, (24, 296, 40), kind, 5)
        assert said(run, run.result()) is None


@pytest.mark.sweep(4)
@pytest.mark.parametrize("index", range(0, len(MAKERS), 2))
def test_a_fault_is_named(index):
    name = list(MAKERS)[index]
    kind = "heavy" if index % 4 else "gaussian"
    for kernel, fmt in CASES[index % 3 :: 3]:
        _, text = tried(name, kernel, fmt, kind, 1)
        if text is not None:
            assert re.search(get_fault(name).says, text), (kernel, fmt)
            return
    pytest.fail("the fault passes everywhere")


#: Cases that were called another fault's name: what is said of them now.
MISNAMED = {
    (
        "stale block of A",
        "per tensor",
        "e5m2",
        "positive",
    ): "no known fault",  # 17 elements of 256 tell too little
    ("missing promotion", "rows and columns, bias", "e4m3fn", "activations"): "no promotion to FP32",
    ("scale left out", "per tensor", "fp16", "gaussian"): "scale_b was left out",
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("case", MISNAMED)
def test_what_the_size_of_errors_alone_suggests_is_not_said(case):
    assert MISNAMED[case] in tried(*case, 0)[1]


def table(seeds=1, kinds=None, names=tuple(MAKERS)):
    """({fault: Counter of cases, caught, named}, what was said wrongly); without kinds each case has the next kind of data."""
    found, wrong = collections.defaultdict(collections.Counter), collections.Counter()
    turns = itertools.cycle(SHAPES)
    for name, (kernel, fmt), seed in itertools.product(names, CASES, range(seeds)):
        for kind in (next(turns),) if kinds is None else kinds:
            count(name, kernel, fmt, kind, seed, found, wrong)
    return found, wrong


def count(name, kernel, fmt, kind, seed, found, wrong):
    """Count one case."""
    there, text = tried(name, kernel, fmt, kind, seed)
    if there:
        found[name]["cases"] += 1
        found[name]["caught"] += text is not None
        named = text is not None and not text.startswith("no known fault")
        right = named and bool(re.search(get_fault(name).says, text))
        found[name]["named"] += right
        if not right:
            wrong[name, kernel, fmt, kind, (text or "passes")[:100]] += 1


def false_alarms(seeds=3, kinds=tuple(SHAPES)):
    """Right kernels, and how many of them something was said of."""
    alarms = collections.Counter()
    for (kernel, fmt), kind, seed in itertools.product(CASES, kinds, range(seeds)):
        run = make(kernel, fmt, SHAPES[kind], kind, seed + 50)
        alarms["right kernels"] += 1
        alarms["something said"] += said(run, run.result()) is not None
    return alarms


@pytest.mark.slow
def test_the_table():
    found, wrong = table(SEEDS)
    cases, caught, named = (sum(counts[key] for counts in found.values()) for key in ("cases", "caught", "named"))
    assert caught >= 0.95 * cases, wrong.most_common(30)
    assert named >= 0.8 * caught, wrong.most_common(30)
    assert not false_alarms()["something said"]


if __name__ == "__main__":
    total = collections.Counter()
    for fault in MAKERS:
        numbers, mistaken = table(kinds=sys.argv[1:] or None, seeds=SEEDS, names=(fault,))
        row, counts = get_fault(fault), numbers[fault]
        total += counts
        print(
            f"| {fault} | {row.made} | {row.recognised} | {counts['cases']} | {counts['caught']} | {counts['named']} |",
            flush=True,
        )
        for case, times in sorted(mistaken.items()):
            print(times, *case, file=sys.stderr, flush=True)
    print(dict(total), dict(false_alarms()))
