"""This module holds the checks of `mpgemm selftest`: each counts compared and different dot products."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.machine.instruction_sets import available_isas, set_isa
from tensorcore_models.probing import edges, probe_vectors

#: Encodings of 1 in each format of block scales.
ONE_SCALE = {"ue8m0": 127, "ue4m3": 0x38}
#: Numbers of rows and columns of a product that kernels and twins both compute.
M, N = 2, 5


@dataclass(frozen=True)
class Check:
    """`Check` is the result of one check."""

    name: str
    #: compared, different: numbers of dot products.
    compared: int
    different: int
    first: str = ""  #: first dot product that differs; empty if none does


def distinct_rows() -> list[Instruction]:
    """Return one row of the catalogue for each arithmetic with its formats, alternating between classes of units."""
    rows = {
        (r.accumulator, r.k, r.formats, r.scale_format, r.block_size): r for r in tcm.list_instructions() if r.published
    }
    by_class: dict[type, list[Instruction]] = {}
    for row in rows.values():
        by_class.setdefault(type(row.accumulator), []).append(row)
    turns = max(map(len, by_class.values()))
    return [members[turn] for turn in range(turns) for members in by_class.values() if turn < len(members)]


def _count(name: str, results: Iterator[tuple[str, int, int]]) -> Check:
    compared = different = 0
    first = ""
    for what, count, wrong in results:
        compared, different = compared + count, different + wrong
        first = first or (what if wrong else "")
    return Check(name, compared, different, first)


def hardware_outputs() -> Check:
    """Return the check of the catalogue's instructions against the shipped outputs of real GPUs."""
    return _count("published outputs of real GPUs", _hardware(own=False))


def own_outputs() -> Check:
    """Return the check of the catalogue's Hopper rows against shipped outputs of an H100, recorded by this project."""
    return _count("outputs that this project recorded on an H100", _hardware(own=True))


def _hardware(own: bool) -> Iterator[tuple[str, int, int]]:
    with (files("mpgemm.selftest") / "hardware.npz").open("rb") as stream, np.load(stream) as data:
        for number, facts in enumerate(json.loads(str(data["sets"]))):
            if ("own" in facts) != own:
                continue
            unit = tcm.get_instruction(facts["instruction"])
            a, b, c = (data[f"{x}{number}"].astype(f.container) for x, f in zip("abc", unit.formats[:3], strict=True))
            d = kernels.batch_bits(unit, a[:, None, :], b[:, :, None], c[:, None, None])[:, 0, 0]
            wrong = int(np.count_nonzero(d != data[f"d{number}"]))
            yield f"{unit} on {facts['device']}", len(d), wrong


def derived_vectors() -> Check:
    """Return the check of floating-point instructions against results derived by hand from their published parameters."""
    return _count("results derived by hand from published parameters", _derived())


def _derived() -> Iterator[tuple[str, int, int]]:
    for row in distinct_rows():
        if isinstance(row.formats[3], IntegerFormat):
            continue
        vectors = probe_vectors(row)
        if not vectors:
            continue
        a, b, c, expected = (
            np.array([getattr(v, name) for v in vectors], fmt.container)
            for name, fmt in zip(("a", "b", "c", "expected"), row.formats, strict=True)
        )
        scales: list = [None, None]
        if row.scale_format is not None and row.block_size is not None:
            one, blocks = ONE_SCALE[row.scale_format], row.k // row.block_size
            scales = [np.full((len(a), 1, blocks), one, np.uint8), np.full((len(a), blocks, 1), one, np.uint8)]
        d = kernels.batch_bits(row, a[:, None, :], b[:, :, None], c[:, None, None], *scales)[:, 0, 0]
        yield str(row), len(vectors), int(np.count_nonzero(d != expected))


def twins(seconds: float, seed: int = 0, clock=time.monotonic) -> Check:
    """Return the check of kernels of every instruction set of this CPU against the algorithms in plain integers.

    No new comparison starts after `seconds`.
    """
    return _count("kernels beside their exact twins", _twins(seconds, np.random.default_rng(seed), clock))


#: Time limit in seconds of products at edges; one product of each edge runs in any case.
EDGE_SECONDS = 2.0


def edge_products(seconds: float, seed: int = 0, clock=time.monotonic) -> list[Check]:
    """Return the checks of fast kernels of every instruction set against the generic one, one for each edge of
    `probing.edges`.
    """
    found: dict[str, list[tuple[str, int, int]]] = {edge: [] for edge in edges.EDGES}
    for x in edges.sweep(min(seconds, EDGE_SECONDS), seed, clock):
        found[x.edge].append((x.first, x.compared, x.different))
    return [_count(f"fast kernels at edges: {edge}", iter(results)) for edge, results in found.items()]


def _encodings(rng: np.random.Generator, fmt, shape: tuple[int, int], near: bool) -> np.ndarray:
    """Return random encodings, or floating-point numbers around 1, whose sums cancel and round."""
    bits = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64)
    if near and not isinstance(fmt, IntegerFormat):
        low = fmt.padding_bits + fmt.fraction_bits
        field = ((1 << fmt.exponent_bits) - 1) << low
        reach = min(2, fmt.emax - 1)
        exponents = rng.integers(fmt.bias - reach, fmt.bias + reach + 1, shape, dtype=np.uint64) << np.uint64(low)
        bits = (bits & ~np.uint64(field)) | exponents
    return bits.astype(fmt.container)


def _twins(seconds: float, rng: np.random.Generator, clock) -> Iterator[tuple[str, int, int]]:
    start, rows, turn = clock(), distinct_rows(), 0
    while clock() - start < seconds:
        for row in rows:
            if clock() - start >= seconds:
                return
            yield str(row), M * N, _differences(rng, row, near=turn % 2 == 0)
        turn += 1


def _differences(rng: np.random.Generator, row: Instruction, *, near: bool) -> int:
    shapes = ((M, row.k), (row.k, N), (M, N))
    operands = [_encodings(rng, fmt, shape, near) for fmt, shape in zip(row.formats[:3], shapes, strict=True)]
    scales: list = [None, None]
    if row.scale_format is not None:
        fmt = tcm.get_format(row.scale_format)
        scales = [_encodings(rng, fmt, shape, near) for shape in ((M, row.scale_blocks), (row.scale_blocks, N))]
    expected = reference.mma_bits(row, *operands, *scales)
    wrong = np.zeros(expected.shape, bool)
    try:
        for isa in available_isas():
            set_isa(isa)
            wrong |= kernels.matrix_bits(row, *operands, *scales) != expected
    finally:
        set_isa(None)
    return int(np.count_nonzero(wrong))
