"""Chooses tiles, warps and stages of kernels: a table for each target, and a model that counts operations to choose an entry.

Entries differ in rows and columns of a tile, in warps and stages, and none of these changes a bit. A method whose bits depend
on the depth of a tile states it (:attr:`mpgemm.kernels.forms.KernelForm.tile`), so no choice here changes a result.
"""

from dataclasses import asdict, dataclass

from mpgemm.kernels.forms import KernelForm
from tensorcore_models.gpu.targets import KernelTarget

BYTES = {"fp16": 2, "bf16": 2, "tf32": 4}


@dataclass(frozen=True, order=True)
class Configuration:
    """`Configuration` holds the tile, warps and stages with which a kernel runs a product.

    Attributes
    ----------
    rows, columns, depth : int
        Sizes of a tile along m, n and k.
    warps, stages : int
        Number of warps of a thread block, and number of tiles along k that are loaded ahead (Triton's num_stages).
    group : int
        Number of rows of tiles that are computed together, column of tiles by column, so that caches keep B's tiles.
    """

    rows: int
    columns: int
    depth: int
    warps: int = 4
    stages: int = 2
    group: int = 8

    def constants(self) -> dict[str, int]:
        """Return the fields under the names that the kernels use for these constants."""
        return {"BM": self.rows, "BN": self.columns, "BK": self.depth, "GROUP": self.group}

    def to_dict(self) -> dict[str, int]:
        """Return the fields by name."""
        return asdict(self)


#: Placeholder for the entry that takes the least time on the device (:mod:`mpgemm.kernels.tuning`).
TUNED = Configuration(0, 0, 0, 0, 0, 0)
#: (rows, columns, warps) of tiles, the small ones first; four warps take 64 rows with wgmma, 128 rows with tcgen05.
SHAPES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "ampere": ((16, 64, 4), (32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "ada": ((16, 64, 4), (32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "rtx_blackwell": ((16, 64, 4), (32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "hopper": ((16, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "blackwell": ((128, 32, 4), (128, 64, 4), (128, 128, 8)),
    "cdna3": ((32, 64, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8)),
}
#: Depth of tiles along k for methods that do not state it.
OPEN_DEPTH = 32
STAGES = (3, 2, 1)


def accumulators(form: KernelForm) -> int:
    """Return how many FP32 numbers a thread keeps for each element of its tile: one per chain, and one if a chain restarts."""
    return len(form.restarts) + any(form.restarts)


def shared_bytes(form: KernelForm, row: Configuration, target: KernelTarget, split=(False, False)) -> int:
    """Estimate the bytes of shared memory of a block: stages of loads, and words of B (wgmma) or of A and B (tcgen05)."""
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
    """Estimate the registers of a thread: accumulators (with tcgen05 all but one lie in tensor memory), words, addresses."""
    threads = row.warps * target.warp
    kept = 1 if target.unit == "blackwell" else accumulators(form)
    tile = kept * row.rows * row.columns
    words = (row.rows * form.words[0] + row.columns * form.words[1]) * row.depth * BYTES[form.format] // 4
    return 40 + (tile + words) // threads


def fits(form: KernelForm, row: Configuration, target: KernelTarget, split=(False, False)) -> bool:
    """Return whether a configuration fits into shared memory and into 255 registers of a thread (512 on CDNA).

    split: Whether A, and whether B, lie in memory as words, whose loads take other room than those of elements.
    """
    most = 255 if target.backend == "cuda" else 512
    return shared_bytes(form, row, target, split) <= target.shared and registers(form, row, target) <= most


def most_stages(form: KernelForm, target: KernelTarget) -> int:
    """Return the largest number of stages that is free of races.

    For tcgen05, Triton 3.9.0 lets a product of one iteration read its words after the stores of the next iteration have
    overwritten them, if a word has several products and no chain restarts. The gate finds this race; with one stage the kernel
    waits for each product at once.
    """
    repeated = any(len(set(side)) < len(side) for side in zip(*form.products, strict=True))
    return 1 if target.unit == "blackwell" and repeated and not any(form.restarts) else STAGES[0]


def check_stages(form: KernelForm, row: Configuration, target: KernelTarget) -> None:
    """Refuse a number of stages that races, with a ValueError."""
    most = most_stages(form, target)
    if row.stages > most:
        raise ValueError(
            f"got {row.stages} stages, expected {most} for this method on {target.name}, because with more Triton's code may "
            f"overwrite a tile while it is still read: give stages={most}"
        )


def configurations(form: KernelForm, target: KernelTarget, split=(False, False)) -> list[Configuration]:
    """Return the entries that fit, the small tiles first, each with as many stages as fit; `split` is that of :func:`fits`.

    Raises
    ------
    ValueError
        If no entry fits.
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
        raise ValueError(
            f"no tile with {depth} values of k and {len(form.products)} products of words fits into the shared memory and "
            f"registers of {target.name}: take a method with fewer words or a smaller restart_every"
        )
    return found


#: Products that a matrix unit forms while a lane does one operation. An A100's multiprocessor forms 1024 dense fp16 products a
#: cycle beside 64 FP32 lanes, and half as many of TF32 (NVIDIA A100 whitepaper); a ratio of 16 is assumed for all targets.
UNIT = {"fp16": 16.0, "bf16": 16.0, "tf32": 8.0}
#: Operations on an element for each word, counted in the PTX: two conversions, a subtraction, a scaling; for tf32 an addition,
#: a mask, a comparison and a select in place of the conversions.
OPERATIONS = {"fp16": 4, "bf16": 3, "tf32": 6}


@dataclass(frozen=True)
class CountedWork:
    """`CountedWork` is the counted work of one product, in operations of a lane per element of a tile and step of k.

    No number was measured.

    Attributes
    ----------
    tiles, rounds : int
        Number of tiles of the result; how often they fill the device's multiprocessors.
    unit, splitting, loads, additions : float
        Work of the matrix unit and of the lanes for one step of k; unit and lanes run side by side.
    shared_bytes, registers : int
        Estimated shared memory of a block, registers of a thread.
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
    """Return the counted work of a product in a configuration.

    mma.sync takes operands from registers, so warps repeat the splitting of shared elements: each of a tile's two columns of
    warps splits A, and each of its rows of warps splits B.
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
    """Return the entry with the least counted cost; all entries give the same bits."""
    return min(
        configurations(form, target, split), key=lambda row: estimate(form, row, target, m, n, k, batch, split).cost
    )


# -- operands that are split before ------------------------------------------------------------------------------------------
#: Units whose kernels read words by TMA and therefore take descriptors.
DESCRIBED = ("hopper", "blackwell")
#: (rows, columns, warps) of tiles whose words are read by TMA; on an H100 128 x 128 was the fastest of nine, and 4 warps or 256
#: columns spilled registers (docs/kernels_on_gpus.md). The number of stages is the largest that fits, up to this limit.
WORD_SHAPES = {
    "hopper": ((64, 64, 4), (128, 64, 4), (128, 128, 8)),
    "blackwell": ((128, 64, 4), (128, 128, 8)),
}
WORD_DEPTH = {"fp16": 64, "bf16": 64, "tf32": 32}
WORD_STAGES = 4
#: Operations of all lanes of an H100 (132 multiprocessors of 128 lanes, 1.755 GHz) in the time of one byte at 3.35 TB/s.
BYTE = 128 * 132 * 1.755e9 / 3.35e12
#: Operations of a multiprocessor's 128 lanes in the time of one more launch, which is taken as 3 us.
LAUNCH = 128 * 1.755e9 * 3e-6


def word_configurations(form: KernelForm, target: KernelTarget) -> list[Configuration]:
    """Return the entries for words that are read by TMA, the small tiles first. Raises ValueError if no entry fits."""
    depth = form.tile or WORD_DEPTH[form.format]
    found = []
    for rows, columns, warps in WORD_SHAPES[target.unit or ""]:
        size = (rows * form.words[0] + columns * form.words[1]) * depth * BYTES[form.format]
        stages = min(WORD_STAGES, (target.shared - 1024) // size, most_stages(form, target))
        kept = 1 if target.unit == "blackwell" else accumulators(form)
        if stages >= 1 and 40 + kept * rows * columns // (warps * target.warp) <= 255:
            found.append(Configuration(rows, columns, depth, warps, stages))
    if not found:
        raise ValueError(
            f"no tile with {depth} values of k and {' and '.join(map(str, form.words))} words of A and B fits into the shared "
            f"memory and registers of {target.name}: take a method with fewer words"
        )
    return found


def word_configuration(form: KernelForm, target: KernelTarget, m: int, n: int, k: int, batch: int = 1) -> Configuration:
    """Return the entry with the least counted cost for words that are read by TMA, which takes no time of the lanes."""

    def cost(row: Configuration) -> float:
        rounds = -(-batch * -(-m // row.rows) * -(-n // row.columns) // target.multiprocessors)
        words = (row.rows * form.words[0] + row.columns * form.words[1]) * BYTES[form.format]
        unit = row.rows * row.columns * len(form.products) / UNIT[form.format]
        return rounds * max(unit, words * BYTE / 2)  # half of a tile's words are found in L2

    return min(word_configurations(form, target), key=cost)


def split_before(form: KernelForm, target: KernelTarget, m: int, n: int, k: int, batch: int = 1) -> bool:
    """Return whether the counted time is less with the words of both operands in memory than with splitting in the product.

    On targets with TMA, the unit waits for the splitting and the splitting for the unit: on an H100, `ootomo` at 4096^3 took
    more time than both in turn. On other targets both run side by side, as :func:`estimate` counts.
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
