"""This module gives the order of k in CUTLASS kernels and plain `mma` loops: tiles, split-k, stream-k and sliced-k.

The sources are CUTLASS's documentation and headers at commit 7107b0553:

- media/docs/cpp/efficient_gemm.md: split-k, sliced-k;
- gemm/kernel/params_universal_base.h: length of a slice of GemmUniversal;
- gemm/kernel/gemm.h and gemm_splitk_parallel.h: the older kernels; with semaphores the running sum is read from the output;
- transform/threadblock/predicated_tile_access_iterator.h: the residue tile comes first;
- reduction/kernel/reduce_split_k.h: slices are added forward in the workspace's format.

The caller states how a kernel was built (tile, slices, ranges).
"""

from collections.abc import Sequence

from ..catalogue import default_instruction, get_instruction
from ..engines.instruction import Instruction
from ..integers import integer_arguments
from ..orders.order import Chain, Order
from .recipe import Epilogue, Recipe, Unknown, contiguous, joined

SOURCE = "CUTLASS's documentation and headers"


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size!r}, expected a positive integer")


def _tiles(part: range, tile: int, residue: str) -> list[range]:
    """Return the tiles of a range of k in the order of the main loop."""
    short = len(part) % tile if residue == "first" else 0
    first = [range(part.start, part.start + short)] if short else []
    return [*first, *contiguous(part.start + short, part.stop, tile)]


def _warps(part: range, tile: int, residue: str, slices: int) -> Order:
    """Return the order of a range of k whose tiles are shared by the warps of a threadblock, which are added forward."""
    tiles = _tiles(part, tile, residue)
    if slices == 1:
        short = len(tiles[0])
        rest = range(part.start + short, part.stop)
        return Chain(tuple(piece for piece in (tiles[0], rest) if len(piece)) if short < tile else (part,))
    share = tile // slices
    chains = []
    held = -(-max(map(len, tiles)) // share)
    for warp in range(min(slices, held + 1)):  # warps without k add +0, so one of them is enough
        pieces = (range(t.start + warp * share, min(t.start + (warp + 1) * share, t.stop)) for t in tiles)
        chains.append(Chain(tuple(piece for piece in pieces if len(piece))))
    return joined(chains)


@integer_arguments("k", "tile_k", "split_k", "sliced_k")
def cutlass(
    engine: str | Instruction,
    *,
    k: int,
    format: str = "fp16",
    tile_k: int = 32,
    split_k: int = 1,
    split_mode: str = "parallel",
    grain: int | None = None,
    sliced_k: int = 1,
    stream_k: Sequence[tuple[int, int]] | None = None,
    residue: str = "first",
) -> Recipe:
    """Return the recipe of a CUTLASS kernel, or of a loop over one `mma`.

    Parameters
    ----------
    engine : str or Instruction
        Instruction, or a device, which means its `mma` of `format` with the largest k.
    k : int
        Length of the sum.
    format : str
        Operand format if `engine` is a device.
    tile_k : int
        Values of k in a threadblock's tile, a multiple of the instruction's k times `sliced_k`.
    split_k : int
        Number of slices of k. A slice has k / split_k values, rounded up to whole grains; the last slice has the remaining
        values.
    split_mode : {"parallel", "serial"}
        Joining of slices: "parallel" adds the sums of the slices from the first to the last, in the accumulator's format;
        "serial" keeps a running sum that is rounded to the output format after each slice.
    grain : int, optional
        Number of values of which a slice's length is a multiple. The default is that of GemmUniversal with k contiguous in an
        operand (A by rows or B by columns): 128 bytes if they divide k, else 16 bytes. Give `tile_k` for the older kernels
        (device::Gemm, GemmSplitKParallel).
    sliced_k : int
        Number of warps of a threadblock that share each tile along k.
    stream_k : sequence of (start, stop), optional
        Ranges of k of the threadblocks that share an output tile; their sums are added from the first to the last, in the
        accumulator's format.
    residue : {"first", "last"}
        Position of a partly filled tile of k: first in CUTLASS 2.x, last in kernels that load by TMA (CUTLASS 3.x).

    Raises
    ------
    ValueError
        If sizes are not positive or do not fit each other, or a mode is unknown.
    Unknown
        If operands narrower than a byte are split without a `grain`.
    """
    _positive(k=k, tile_k=tile_k, split_k=split_k, sliced_k=sliced_k, grain=1 if grain is None else grain)
    unit = engine
    if isinstance(unit, str):
        unit = get_instruction(unit) if ":" in unit else default_instruction(unit, format, path="mma")
    if tile_k % (unit.k * sliced_k):
        raise ValueError(
            f"tile_k is {tile_k}, expected a multiple of {unit.k * sliced_k}: k step {unit.k} times sliced_k {sliced_k}"
        )
    for name, value, known in (
        ("split_mode", split_mode, ("parallel", "serial")),
        ("residue", residue, ("first", "last")),
    ):
        if value not in known:
            raise ValueError(f"{name} is {value!r}, expected one of {', '.join(known)}")
    if stream_k is not None:
        if split_k != 1:
            raise ValueError(f"got both stream_k and split_k = {split_k}, which exclude each other: leave one out")
        parts = _stream(k, tile_k, stream_k)
    else:
        grain = (_grain(unit, k) if split_k > 1 else k) if grain is None else grain
        length = -(-k // (split_k * grain)) * grain
        parts = list(contiguous(0, k, length))
    serial = split_mode == "serial" and len(parts) > 1 and stream_k is None
    order = joined((_warps(p, tile_k, residue, sliced_k) for p in parts), carry="output" if serial else None)
    splits = f"stream-k over {len(parts)} ranges" if stream_k is not None else f"split_k {split_k} {split_mode}"
    name = f"CUTLASS, tile k {tile_k}, {splits}, sliced_k {sliced_k}, residue {residue}"
    return Recipe(unit, k, order, Epilogue(scales=not serial), name, SOURCE)


def _grain(unit: Instruction, k: int) -> int:
    """Return how many values of k are in 128 bytes of the narrower operand if they divide k, else in 16 bytes."""
    narrower = min(unit.formats[:2], key=lambda fmt: fmt.container.itemsize)
    if narrower.bits < 8:
        raise Unknown(
            f"slices of {narrower.name} operands are not known", field="grain", advice="Give the grain of the kernel"
        )
    line = 128 // narrower.container.itemsize
    return line if k % line == 0 else 16 // narrower.container.itemsize


def _stream(k: int, tile: int, ranges: Sequence[tuple[int, int]]) -> list[range]:
    """Return the given ranges of k after checking them."""
    parts = [range(int(start), int(stop)) for start, stop in ranges]
    ends = [0, *(part.stop for part in parts)]
    if not parts or [part.start for part in parts] != ends[:-1] or ends[-1] != k or not all(map(len, parts)):
        raise ValueError(f"stream_k ranges {list(ranges)} must follow each other from 0 to k = {k}")
    if any(part.start % tile for part in parts):
        raise ValueError(f"stream_k ranges {list(ranges)} must start on multiples of tile_k {tile}")
    return parts
