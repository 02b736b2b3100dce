"""Tiles, warps and stages of kernels: a table by target, and which entry a shape takes by a counted model.

Entries differ in the rows and columns of a tile, in warps and stages: none of these changes a bit. The products of k in a tile
are the method's where it states them (:attr:`mpgemm.kernels.forms.KernelForm.tile`), so no choice here changes a result.
"""

from dataclasses import asdict, dataclass

from mpgemm.kernels.forms import KernelForm
from tensorcore_models.gpu.targets import KernelTarget

BYTES = {"fp16": 2, "bf16": 2, "tf32": 4}


@dataclass(frozen=True, order=True)
class Configuration:
    """`Configuration` holds how a product is dealt to a device.

    Attributes
    ----------
    rows, columns, depth : int
        Of a tile: m, n, k.
    warps, stages : int
        Of a block; tiles of k under way.
    group : int
        Rows of tiles that are worked on side by side.
    """

    rows: int
    columns: int
    depth: int
    warps: int = 4
    stages: int = 2
    group: int = 8

    def constants(self) -> dict[str, int]:
        """As the kernel names them."""
        return {"BM": self.rows, "BN": self.columns, "BK": self.depth, "GROUP": self.group}

    def to_dict(self) -> dict[str, int]:
        """Return the fields by name."""
        return asdict(self)


#: Stands for the entry that takes the least time on the device (:mod:`mpgemm.kernels.tuning`).
TUNED = Configuration(0, 0, 0, 0, 0, 0)
#: (rows, columns, warps) of tiles, small ones first; wgmma takes 64 rows for each four warps, tcgen05 128.
SHAPES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "ampere": ((16, 64, 4), (32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "ada": ((16, 64, 4), (32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "rtx_blackwell": ((16, 64, 4), (32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "hopper": ((16, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "blackwell": ((128, 32, 4), (128, 64, 4), (128, 128, 8)),
    "cdna3": ((32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
}
#: Tiles of k where the method leaves them open.
OPEN_DEPTH = 32
STAGES = (3, 2, 1)


def accumulators(form: KernelForm) -> int:
    """Return numbers in FP32 that a thread keeps for each element of its tile: chains, and the part of a chain that
    restarts."""
    return len(form.restarts) + any(form.restarts)


def shared_bytes(form: KernelForm, row: Configuration, target: KernelTarget, split=(False, False)) -> int:
    """Return bytes of shared memory, estimated: stages of loads, and on wgmma and tcgen05 the words of B, or of both."""
    size = BYTES[form.format]
    loads = [
        extent * row.depth * (count * size if ready else 4)
        for extent, count, ready in zip((row.rows, row.columns), form.words, split, strict=True)
    ]
    words = [
        extent * row.depth * count * size for extent, count in zip((row.rows, row.columns), form.words, strict=True)
    ]
    staged = sum(loads) * max(1, row.stages - 1)
    if target.unit == "blackwell":
        return staged + sum(words)
    return staged + (words[1] if target.unit == "hopper" else 0)


def registers(form: KernelForm, row: Configuration, target: KernelTarget) -> int:
    """Return registers of a thread, estimated: accumulators (in tensor memory on tcgen05 but for one), a tile's words,
    addresses."""
    threads = row.warps * target.warp
    kept = 1 if target.unit == "blackwell" else accumulators(form)
    tile = kept * row.rows * row.columns
    words = (row.rows * form.words[0] + row.columns * form.words[1]) * row.depth * BYTES[form.format] // 4
    return 40 + (tile + words) // threads


def fits(form: KernelForm, row: Configuration, target: KernelTarget, split=(False, False)) -> bool:
    """Return whether a configuration keeps within shared memory and 255 registers of a thread (512 on CDNA); split: which
    operands are words in memory, whose loads take more or less room than those of elements."""
    most = 255 if target.backend == "cuda" else 512
    return shared_bytes(form, row, target, split) <= target.shared and registers(form, row, target) <= most


def most_stages(form: KernelForm, target: KernelTarget) -> int:
    """Return tiles of k that may be under way.

    On tcgen05 Triton 3.9.0 waits for a pipelined product in the iteration after it, behind the stores that overwrite its words
    where a word has several products and no chain restarts: a race, which the gate finds. One stage waits at once.
    """
    repeated = any(len(set(side)) < len(side) for side in zip(*form.products, strict=True))
    return 1 if target.unit == "blackwell" and repeated and not any(form.restarts) else STAGES[0]


def check_stages(form: KernelForm, row: Configuration, target: KernelTarget) -> None:
    """Refuse tiles under way that race; ValueError."""
    most = most_stages(form, target)
    if row.stages > most:
        raise ValueError(
            f"{row.stages} stages on {target.name}: in what Triton compiles, words of a tile are overwritten while products of "
            f"the tile before may still read them; this method takes {most} stage there"
        )


def configurations(form: KernelForm, target: KernelTarget, split=(False, False)) -> list[Configuration]:
    """Return the entries that a form fits, small tiles first, each with as many stages as fit; split as for :func:`fits`.

    Raises
    ------
    ValueError
        If none fits.
    """
    shapes = SHAPES.get(target.unit or "", SHAPES["cdna3"])
    depth = form.tile or OPEN_DEPTH
    found = []
    for rows, columns, warps in shapes:
        for stages in STAGES:
            if stages > most_stages(form, target):
                continue
            row = Configuration(rows, columns, depth, warps, stages)
            if fits(form, row, target, split):
                found.append(row)
                break
    if not found:
        raise ValueError(f"no tile of {depth} k with {len(form.products)} products fits {target.name}")
    return found


#: Products that a matrix unit forms in the time of one operation of a lane: A100 has 1024 dense fp16 products a cycle and
#: multiprocessor beside 64 FP32 lanes, TF32 half of that (NVIDIA A100 whitepaper); a ratio of 16 is taken for all targets.
UNIT = {"fp16": 16.0, "bf16": 16.0, "tf32": 8.0}
#: Operations on an element for each word, counted in the PTX: conversion there and back, subtraction, scaling; for tf32 an
#: addition, a mask, a comparison and a select instead of the conversions.
OPERATIONS = {"fp16": 4, "bf16": 3, "tf32": 6}


@dataclass(frozen=True)
class CountedWork:
    """The work of one product by count, in operations of a lane for each element-step of a tile; nothing here was measured.

    Attributes
    ----------
    tiles, rounds : int
        Of the result; how often the device's multiprocessors are filled.
    unit, splitting, loads, additions : float
        Share of a tile's time in the matrix unit, and the work of the lanes for one step of k: both run side by side.
    shared_bytes, registers : int
        Estimated for a block and a thread.
    cost : float
        Rounds x steps x the longer of unit and lanes.
    """

    tiles: int
    rounds: int
    unit: float
    splitting: float
    loads: float
    additions: float
    shared_bytes: int
    registers: int
    cost: float


def estimate(
    form: KernelForm,
    row: Configuration,
    target: KernelTarget,
    m: int,
    n: int,
    k: int,
    batch: int = 1,
    split=(False, False),
) -> CountedWork:
    """Return counted work of a product in a configuration.

    Where mma.sync takes operands from registers, warps split what they share with others once more: a tile's A for each of its
    two columns of warps, B for each of its rows of warps.
    """
    tiles = batch * -(-m // row.rows) * -(-n // row.columns)
    unit = row.rows * row.columns * row.depth * len(form.products) / UNIT[form.format]
    repeated = 2 if target.unit not in ("hopper", "blackwell") else 1
    extents = list(zip((row.rows, row.columns), form.words, split, strict=True))
    splitting = sum(
        0 if ready else extent * row.depth * count * OPERATIONS[form.format] * repeated
        for extent, count, ready in extents
    )
    loads = sum(extent * row.depth * (count if ready else 1) for extent, count, ready in extents)
    additions = row.rows * row.columns * sum(form.restarts)
    shared = shared_bytes(form, row, target, split)
    resident = max(1, min(2048 // (row.warps * target.warp), target.shared // max(1, shared)))
    rounds = -(-tiles // target.multiprocessors)
    lanes = splitting + loads + additions
    total = rounds * -(-k // row.depth) * (max(unit, lanes) + 0.5 * min(unit, lanes) / min(resident, rounds))
    return CountedWork(
        tiles, rounds, unit, splitting, loads, additions, shared, registers(form, row, target), float(total)
    )


def choose(
    form: KernelForm, target: KernelTarget, m: int, n: int, k: int, batch: int = 1, split=(False, False)
) -> Configuration:
    """Return the entry that costs the least by the counted model; all entries give the same bits."""
    return min(
        configurations(form, target, split), key=lambda row: estimate(form, row, target, m, n, k, batch, split).cost
    )


# -- operands that are split before ------------------------------------------------------------------------------------------
#: Units whose products read words by TMA: their kernels take descriptors.
DESCRIBED = ("hopper", "blackwell")
#: (rows, columns, warps) of tiles whose words come by TMA; on an H100 128 x 128 was the fastest of nine, and 4 warps or 256
#: columns spilled (docs/kernels_on_gpus.md). Stages: as many as fit, these at most.
WORD_SHAPES = {
    "hopper": ((64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "blackwell": ((128, 64, 4), (128, 128, 8)),
}
WORD_DEPTH = {"fp16": 64, "bf16": 64, "tf32": 32}
WORD_STAGES = 4
#: Operations of all lanes of an H100 (132 multiprocessors of 128, 1.755 GHz) in the time of one byte of memory, at 3.35 TB/s.
BYTE = 128 * 132 * 1.755e9 / 3.35e12
#: Operations of a multiprocessor's 128 lanes in the time of one more launch, for which 3 us are counted.
LAUNCH = 128 * 1.755e9 * 3e-6


def word_configurations(form: KernelForm, target: KernelTarget) -> list[Configuration]:
    """Return the entries for words that come by TMA, small tiles first; ValueError if none fits."""
    depth = form.tile or WORD_DEPTH[form.format]
    found = []
    for rows, columns, warps in WORD_SHAPES[target.unit or ""]:
        size = (rows * form.words[0] + columns * form.words[1]) * depth * BYTES[form.format]
        stages = min(WORD_STAGES, (target.shared - 1024) // size, most_stages(form, target))
        kept = 1 if target.unit == "blackwell" else accumulators(form)
        if stages >= 1 and 40 + kept * rows * columns // (warps * target.warp) <= 255:
            found.append(Configuration(rows, columns, depth, warps, stages))
    if not found:
        raise ValueError(f"no tile of {depth} k with words {form.words} in shared memory fits {target.name}")
    return found


def word_configuration(form: KernelForm, target: KernelTarget, m: int, n: int, k: int, batch: int = 1) -> Configuration:
    """Return the entry for words that come by TMA which costs the least by the counted model: TMA leaves the lanes alone."""

    def cost(row: Configuration) -> float:
        rounds = -(-batch * -(-m // row.rows) * -(-n // row.columns) // target.multiprocessors)
        words = (row.rows * form.words[0] + row.columns * form.words[1]) * BYTES[form.format]
        unit = row.rows * row.columns * len(form.products) / UNIT[form.format]
        return rounds * max(unit, words * BYTE / 2)  # half of a tile's words come from L2

    return min(word_configurations(form, target), key=cost)


def split_before(form: KernelForm, target: KernelTarget, m: int, n: int, k: int, batch: int = 1) -> bool:
    """Return whether by count it takes less time to write the words of both operands to memory first than to split in the
    product.

    Where words come by TMA the unit waits for splitting and the splitting for the unit: on an H100 `ootomo` at 4096^3 took
    more than the time of both in turn. Elsewhere both run side by side, as :func:`estimate` counts them.
    """
    moved = sum(
        extent * (4 + 2 * words * BYTES[form.format])
        for extent, words in zip((m, n), form.words, strict=True)
    )  # fmt: skip
    writing = LAUNCH + batch * k * moved * BYTE / target.multiprocessors
    in_turn = target.unit in DESCRIBED

    def cost(split: bool) -> float:
        both = split, split
        rows = word_configurations(form, target) if split and in_turn else configurations(form, target, both)
        found = []
        for row in rows:
            work = estimate(form, row, target, m, n, k, batch, both)
            steps = work.rounds * -(-k // row.depth)
            lanes = work.additions + (0 if split else work.splitting + work.loads)
            found.append(steps * (work.unit + lanes) if in_turn else work.cost)
        return min(found)

    return cost(True) + writing < cost(False)
