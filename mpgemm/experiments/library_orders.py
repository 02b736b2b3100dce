"""Lists orders of k in which an H100's libraries were recorded to sum, for products whose kernel is unknown.

The rules are those of :mod:`tensorcore_models.libraries.profile_tables`; all values of the tile, the number of slices and the
lanes, which a profile would state, are tried.
"""

from collections.abc import Iterator

from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.libraries.compare import summary
from tensorcore_models.libraries.cublaslt import slice_length, vector_order
from tensorcore_models.libraries.cublaslt_tables import GEMV_SM90, Gemv
from tensorcore_models.libraries.profile_tables import MORE_OPTIONS
from tensorcore_models.libraries.recipe import contiguous, joined, residue_first
from tensorcore_models.libraries.scaled_mm import pairwise
from tensorcore_models.orders.order import Chain, Order

#: Tiles of k of CUTLASS's kernels, and of kernels whose slices take tiles in turn.
TILES, DEALT = (16, 32, 64, 128), {"fp32": 8, "fp64": 32}
#: Numbers of slices: every small number, and those of deep splits (multiples of 12, and the H100's 132 multiprocessors).
ASKED = (*range(1, 25), 32, 33, 36, 48, 60, 64, 96, 128, 132)
#: Numbers of slices that take tiles in turn.
IN_TURN = range(2, 33)


def library_orders(engine: MatrixEngine, shape: tuple[int, int, int]) -> Iterator[tuple[str, Order, str]]:
    """Yield (description, order, summary) of every order once, without the one chain from 0 to k.

    engine: unit with FP32 or FP64 results.
    shape: shape (m, k, n) of the product.
    """
    m, k, n = shape
    seen: set[Order] = {Chain((range(k),))}
    for how, order in (*_sliced(engine, k), *_dealt(engine, k), *_lanes(engine, m, k, n)):
        if order not in seen:
            seen.add(order)
            yield how, order, summary(order, str(engine.d_format))


def _sliced(engine: MatrixEngine, k: int) -> Iterator[tuple[str, Order]]:
    """Yield orders of slices of multiples of 128 or 16 bytes, residue of k first if the unit takes several products at once."""
    size = engine.formats[0].container.itemsize
    whole_lines = (128 // size,) if k % (128 // size) == 0 else ()
    for tile in TILES if engine.k > 1 else (engine.k,):
        if tile % engine.k:
            continue
        for grain in (*whole_lines, 16 // size):
            for asked in ASKED:
                parts = contiguous(0, k, slice_length(k, asked, grain))
                slices = [_slice(p, tile, engine.k) for p in parts]
                residue = f", tiles of {tile}, the residue first" if any(len(s.pieces) > 1 for s in slices) else ""
                yield (
                    (f"{len(parts)} slices of {len(parts[0])} k" if len(parts) > 1 else "one chain") + residue,
                    joined(slices),
                )


def _slice(part: range, tile: int, step: int) -> Chain:
    """Return a slice with its residue first, as one piece if this changes no step of the unit."""
    chain = residue_first(part.start, part.stop, tile)
    return chain if len(chain.pieces[0]) % step else Chain((part,))


def _dealt(engine: MatrixEngine, k: int) -> Iterator[tuple[str, Order]]:
    """Yield orders with tiles dealt in turn to slices, which are joined in order or pairwise."""
    tile = DEALT.get(engine.formats[0].name)
    if tile is None or tile % engine.k:
        return
    tiles = contiguous(0, k, tile)
    for count in IN_TURN:
        if count < len(tiles):
            slices: list[Order] = [Chain(tiles[s::count]) for s in range(count)]
            yield f"tiles of {tile} k dealt in turn to {count} slices", joined(slices)
            yield f"tiles of {tile} k dealt in turn to {count} slices, joined pairwise", pairwise(slices)


def _lanes(engine: MatrixEngine, m: int, k: int, n: int) -> Iterator[tuple[str, Order]]:
    """Yield orders with the lanes of matrix-vector kernels."""
    if 1 not in (m, n) or engine.k > 1:
        return
    wide = max(1, engine.formats[0].container.itemsize // 4)
    for row in dict.fromkeys((*MORE_OPTIONS.values(), *GEMV_SM90.values())):
        width = row.width // wide if row.width < 0 else row.width
        held = min(abs(width), -(-k // row.lanes))  # neighbours that a lane takes at once
        how = f"{row.lanes} lanes of {held} k" + (f" in chunks of {row.chunk}" if row.chunk else "")
        order = vector_order(Gemv(width, row.lanes, row.chunk, row.butterfly), k, 1)
        yield how + (", joined as a butterfly" if row.butterfly else ", joined left to right"), order
