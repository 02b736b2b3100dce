"""Compares every fast kernel with the generic kernel on operands at the edges where fast kernels change their way of computing.

Fast kernels decide by exponents (whether operands fit in a window, where sums may wrap, underflow or overflow), by zeros and
special values, by the addend's size, and by where rows, columns and products end. :mod:`.edge_operands` draws such products,
and :func:`sweep` compares them on every instruction set. A product is determined by its edge, a seed and a turn, so that a
product that :func:`sweep` names can be drawn again.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import reference
from ..catalogue import list_instructions
from ..formats import get_float_format
from ..formats.sums import add_rounded
from ..kernels.common import generic_promoted
from ..kernels.dispatch import fast_kernels
from ..kernels.generic import generic_batch_bits, generic_bits
from ..kernels.lowering import Lowered
from ..machine.instruction_sets import available_isas, set_isa
from .edge_operands import EDGES, draw
from .random_operands import DrawnOperands

#: Number of products at each edge between the first one of a seed and that of the next (tests/tensorcore_models/test_edges.py).
_TURNS = 75


@dataclass(frozen=True, eq=False)
class Subject:
    """`Subject` is a fast kernel with a unit that it runs."""

    path: str
    unit: str
    low: Lowered
    kernel: Any

    @property
    def windowed(self) -> bool:
        """Return whether operands are shifted into the range of the lanes."""
        return bool(getattr(getattr(self.kernel, "task", None), "windowed", False))


class EdgeResult(NamedTuple):
    """`EdgeResult` is the comparison of one product: where kernels differ."""

    edge: str
    compared: int
    different: int
    first: str


@cache
def subjects() -> tuple[Subject, ...]:
    """Return one unit of the catalogue for each arithmetic, formats and fast kernel; units of different kernels alternate."""
    found: dict[str, dict[tuple, Subject]] = {}
    for row in list_instructions():
        for path, low, kernel in fast_kernels(row):
            key = (low.accumulator, low.a_format, low.b_format, low.c_format, low.d_format, low.scale_format)
            found.setdefault(path, {}).setdefault(key, Subject(path, str(row), low, kernel))
    return _in_turn([list(units.values()) for units in found.values()])


def _in_turn(lists: list[list[Subject]]) -> tuple[Subject, ...]:
    """Return the members of several lists in turns, one of each list; short lists start again."""
    longest = max(map(len, lists))
    return tuple(members[turn % len(members)] for turn in range(longest) for members in lists)


@cache
def _subjects_at(edge: str) -> tuple[Subject, ...]:
    """Return the units for which an edge is drawn."""
    if edge == "windows":
        return tuple(x for x in dict.fromkeys(subjects()) if x.windowed)
    return tuple(x for x in subjects() if _reaches_ends(x.low)) if edge == "range" else subjects()


def _reaches_ends(low: Lowered) -> bool:
    """Return whether products reach the result's smallest numbers."""
    if low.floating is None:
        return False
    a, b, _, d = low.floating
    return a.quantum_exponent + b.quantum_exponent <= d.emin


# -- comparison ---------------------------------------------------------------------------------------------------------------
#: One way to run a kernel: its name, its result, and the expected result.
Way = tuple[str, Callable[[], np.ndarray | None], np.ndarray]


def _ways(rng, subject: Subject, p: DrawnOperands, edge: str, turn: int) -> Iterator[Way]:
    """Yield a product as such; some turns also yield it in a batch, in chains added outside, and with scaled sums."""
    low, kernel, (m, k), n = subject.low, subject.kernel, p.a.shape, p.b.shape[1]
    yield "a product", lambda: kernel.run(low, *p), generic_bits(low, *p)
    if hasattr(kernel, "run_batch") and rng.random() < 0.4:
        others = [draw(rng, low, edge, turn + 1, (m, n, k)) for _ in range(int(rng.integers(0, 3)))]
        batch = [None if x[0] is None else np.stack(x) for x in zip(p, *others, strict=True)]
        yield f"a batch of {1 + len(others)}", lambda: kernel.run_batch(low, *batch), generic_batch_bits(low, *batch)
    every = low.accumulator.terms_per_step * int(rng.integers(1, 4))
    fp32 = low.c_format.name == low.d_format.name == "fp32"
    if fp32 and rng.random() < 0.4 and k >= every and hasattr(kernel, "promotes") and kernel.promotes(every):
        p = _shorter(p, k // every * every, low.block_size)
        if low.block_size is None or every % low.block_size == 0:
            expected = generic_promoted(low, *p, every)
            yield f"chains of {every}", lambda: kernel.run(low, *p, every=every), expected
        if hasattr(kernel, "run_scaled") and p.a.shape[1] <= 12 * every:
            places = int(rng.integers(1, 1 << every // low.accumulator.terms_per_step))
            exponent = -int(rng.integers(1, 32 // places.bit_count() + 1))
            expected = _scaled(low, p, every, places, exponent)
            yield (
                f"chains of {every}, scaled",
                lambda: kernel.run_scaled(p.a, p.b, p.c, every, places, exponent),
                expected,
            )


def _shorter(p: DrawnOperands, k: int, block: int | None) -> DrawnOperands:
    """Return a product without the terms beyond the first `k`."""
    blocks = slice(None) if block is None else slice(-(-k // block))
    scales = (None, None) if p.scale_a is None or p.scale_b is None else (p.scale_a[:, blocks], p.scale_b[blocks])
    return DrawnOperands(p.a[:, :k], p.b[:k], p.c, *scales)


def _scaled(low: Lowered, p: DrawnOperands, every: int, places: int, exponent: int) -> np.ndarray:
    """Return the result of `kernels.scaled_bits`, computed step by step by the generic kernel."""
    step, total = low.accumulator.terms_per_step, p.c
    for start in range(0, p.a.shape[1], every):
        d = np.zeros(total.shape, np.uint32)
        for place, at in enumerate(range(start, start + every, step)):
            if places >> place & 1:
                d = (d.view(np.float32) * np.float32(2.0**exponent)).view(np.uint32)
            d = generic_bits(low, p.a[:, at : at + step], p.b[at : at + step], d)
        total = add_rounded(total, d, get_float_format("fp32"))
    return total


def _place(seed: int, turn: int) -> int:
    """Return the number of a product among those of its edge over all seeds, which selects units and shifts of windows."""
    return _TURNS * seed + turn // len(EDGES)


def subject_at(edge: str, seed: int, turn: int) -> Subject:
    """Return the kernel and unit that :func:`sweep` takes for an edge of :data:`EDGES` at a seed and a turn, both 0 or more."""
    members = _subjects_at(edge)
    return members[_place(seed, turn) % len(members)]


def product(low: Lowered, edge: str, seed: int, turn: int) -> tuple[np.random.Generator, DrawnOperands]:
    """Return the product that :func:`differences` compares, and its generator, which draws the ways to run it."""
    rng = np.random.default_rng((seed, turn))
    return rng, draw(rng, low, edge, _place(seed, turn))


def differences(subject: Subject, edge: str, seed: int, turn: int, against_reference: bool = False) -> EdgeResult:
    """Return the comparison of one product on every instruction set with the generic kernel.

    Parameters
    ----------
    subject : Subject
        Kernel and unit.
    edge : str
        One of :data:`EDGES`.
    seed, turn : int
        Numbers from which the product is drawn.
    against_reference : bool
        Whether two elements of the generic kernel are also compared with the plain-integer reference, unless k is long.
    """
    rng, p = product(subject.low, edge, seed, turn)
    compared = different = 0
    first = ""

    def count(got: np.ndarray, expected: np.ndarray, where: str) -> None:
        nonlocal compared, different, first
        compared += expected.size
        wrong = np.argwhere(got != expected)
        different += len(wrong)
        if len(wrong) and not first:
            shape = "{} x {} x {}".format(*p.a.shape, p.b.shape[1])
            place = ", ".join(map(str, wrong[0]))
            first = f"{subject.unit}: {subject.path}, {where}, {shape}, element ({place}), seed {seed}, turn {turn}"

    for way, run, expected in _ways(rng, subject, p, edge, turn):
        for isa in available_isas():
            set_isa(isa)
            try:
                got = run()
            finally:
                set_isa(None)
            if got is not None:
                count(got, expected, f"{way} on {isa}")
    if against_reference and p.a.shape[1] <= 64:
        part = DrawnOperands(
            p.a[:1],
            p.b[:, :2],
            p.c[:1, :2],
            None if p.scale_a is None else p.scale_a[:1],
            None if p.scale_b is None else p.scale_b[:, :2],
        )
        count(generic_bits(subject.low, *part), reference.mma_bits(subject.low, *part), "the generic kernel")
    return EdgeResult(edge, compared, different, first)


def sweep(seconds: float = 0, seed: int = 0, clock=time.monotonic, rounds: int = 1) -> Iterator[EdgeResult]:
    """Yield the comparisons of products at each edge in turn: `rounds` of each, and more until `seconds` are over.

    Between two results, the choice of kernel and instruction set is the caller's.
    """
    start, turn = clock(), 0
    while turn < rounds * len(EDGES) or clock() - start < seconds:
        edge = EDGES[turn % len(EDGES)]
        yield differences(subject_at(edge, seed, turn), edge, seed, turn, against_reference=turn % 10 == 0)
        turn += 1
