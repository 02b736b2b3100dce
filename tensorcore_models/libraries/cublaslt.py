"""This module turns an algorithm configuration of cuBLASLt into a recipe.

The orders were measured by the authors of cublas_match (`facebookexperimental/triton`, bitequiv/cublas_match). On an H100 with
13.1.1 they compared 1,890,189 results, of which 1,886,731 agreed in every byte. On sm_100 99.91 % of 100,692 shapes have an
order, and 99.891 % of the shapes with an order agreed. The tables come from cublas_match (:mod:`.cublaslt_tables`), the
instructions from this package.
"""

from collections.abc import Iterable, Mapping

from ..accumulators import SequentialFMA
from ..catalogue import default_instruction, get_instruction
from ..engines.engine import Engine
from ..engines.matrix_engine import MatrixEngine
from ..formats import operand_format
from ..integers import checked_integer, integer_arguments
from ..orders.order import Chain, Order, Sum
from . import cublaslt_tables as tables
from .cublaslt_tables import PLATFORMS, TARGETS, Platform
from .recipe import Epilogue, Recipe, Unknown, butterfly, contiguous, joined, residue_first, restarted

SOURCE = "order measured by the authors of cublas_match (facebookexperimental/triton, MIT)"
#: Output formats of cuBLASLt's kernels by operand format.
OUTPUTS = {"fp16": ("fp16", "fp32"), "bf16": ("bf16", "fp32"), "e4m3fn": ("fp16", "bf16", "fp32")}
RECORD = "Record the library's choice on this GPU, or compare a recorded result with `mpgemm diff`"


def _unknown(what: str, field: str, known: Iterable = ()) -> Unknown:
    return Unknown(what, field=field, known=known, advice=RECORD)


def platform_of(device: str, version: str) -> Platform:
    """Return the row of a device and a version of cuBLASLt; raises Unknown if they were not measured."""
    target = TARGETS.get(device)
    if target is None:
        raise _unknown(f"cuBLASLt on device {device!r} is not known", "device", TARGETS)
    short = ".".join(str(version).split(".")[:2])
    if (target, short) not in PLATFORMS:
        known = [v for t, v in PLATFORMS if t == target]
        raise _unknown(f"cuBLASLt version {version!r} on {device} ({target}) is not known", "version", known)
    return PLATFORMS[target, short]


def check_config(config: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return a configuration with all fields of :data:`~.cublaslt_tables.FIELDS`; fields that are not set are None.

    Raises TypeError if it is not a mapping of integers, ValueError for unknown fields or a missing ALGO_ID.
    """
    if not isinstance(config, Mapping):
        raise TypeError(
            f"config is {type(config).__name__}, expected a mapping of fields ({', '.join(tables.FIELDS)}) to integers"
        )
    unknown = [name for name in config if name not in tables.FIELDS]
    if unknown:
        raise ValueError(f"config has the field {unknown[0]!r}, expected fields of {', '.join(tables.FIELDS)}")
    if config.get("ALGO_ID") is None:
        raise ValueError(
            "config lacks ALGO_ID, which identifies the kernel: record the configuration with cublasLtMatmulAlgoGetHeuristic"
        )
    given = {
        name: None if value is None else checked_integer(value, f"config field {name}")
        for name, value in config.items()
    }
    return {name: given.get(name) for name in tables.FIELDS}


def _lookup(table: Mapping, key, field: str, value, family: str):
    """Return the row of a table; raises Unknown if the table lacks the key."""
    if key not in table:
        known = sorted(
            {k[1] if isinstance(k, tuple) else k for k in table if not isinstance(k, tuple) or k[0] == key[0]}
        )
        raise _unknown(f"{field} {value} of a {family} kernel is not known", field, known)
    return table[key]


def slice_length(k: int, parts: int, grain: int) -> int:
    """Return the length of a slice of split-K: k over `parts`, rounded up to whole grains."""
    grains = -(-k // grain)
    return -(-grains // parts) * grain


def tail_loss(k: int, split_k: int, tile: int) -> int:
    """Return how many of the last values of k cuBLASLt's nvjet kernels leave out of the sum with split-K.

    This is a known fault of cuBLASLt 12.8 to 13.2; the script cublas_gemm_bug_reproduce.py of cublas_match
    (facebookexperimental/triton) shows it. It occurs if k is not a multiple of the tile, the whole tiles divide evenly into
    the parts, and there are more parts than remaining values of k.

    Parameters
    ----------
    k, split_k, tile : int
        Length of the sum, number of parts (SPLITK_NUM), and values of k in a tile (64 for fp16 and bf16, 128 for fp8).
    """
    tail = k % tile
    return tail if tail and split_k > max(tail, 1) and (k // tile) % split_k == 0 else 0


# Each planner returns the order of k and the k step of the instruction.
def _nvjet(platform: Platform, config, m, k, n, parts) -> tuple[Order, int]:
    stage = config["STAGES_ID"]
    tile = _lookup(tables.NVJET_STAGES, stage, "STAGES_ID", stage, "nvjet")

    def one(piece: range) -> Order:
        return restarted(piece.start, piece.stop, tile) if stage in platform.restarting_stages else Chain((piece,))

    return joined(one(piece) for piece in nvjet_slices(platform, k, parts, tile)), 16


def nvjet_slices(platform: Platform, k: int, parts: int, tile: int) -> tuple[range, ...]:
    """Return the slices of k of nvjet's split-K, in whole tiles and without the last values of k if the library loses them."""
    if parts == 1:
        return (range(k),)
    length = slice_length(k, parts, tile)
    if not tile <= length < k:
        what = f"SPLITK_NUM {parts} with k {k}: a slice of {length} is not inside of k in whole tiles of {tile}"
        raise _unknown(what, "SPLITK_NUM", (f"1 to {-(-k // tile)}",))
    lost = tail_loss(k, parts, tile)
    if lost and platform.loses_tail is None:
        raise _unknown(
            f"SPLITK_NUM {parts} with k {k}: other platforms lose the last {lost} values of k, which was not measured on "
            f"{platform.target} with {platform.version}",
            "SPLITK_NUM",
        )
    return contiguous(0, k - lost, k // tile // parts * tile) if lost else contiguous(0, k, length)


def _cutlass(platform: Platform, config, m, k, n, parts) -> tuple[Order, int]:
    stage, scheme = config["STAGES_ID"], config["REDUCTION_SCHEME"]
    tile, step = _lookup(tables.CUTLASS_STAGES, stage, "STAGES_ID", stage, "cutlass")
    if parts == 1:
        return residue_first(0, k, tile), step
    partials, carry = _lookup(tables.CUTLASS_MERGES, scheme, "REDUCTION_SCHEME", scheme, "cutlass")
    large, small = tables.CUTLASS_GRAINS
    length = slice_length(k, parts, large if k % large == 0 else small)
    if length > k:
        raise _unknown(f"SPLITK_NUM {parts} with k {k}: a slice of {length} is longer than k", "SPLITK_NUM", (1,))
    slices = (residue_first(piece.start, piece.stop, tile) for piece in contiguous(0, k, length))
    return joined(slices, partials=partials, carry=carry), step


def _gemmsn(platform: Platform, config, m, k, n, parts) -> tuple[Order, int]:
    algo, option = config["ALGO_ID"], config["CUSTOM_OPTION"]
    if parts != 1:
        raise _unknown(f"SPLITK_NUM {parts} of ALGO_ID {algo} is not known", "SPLITK_NUM", (1,))
    count, block = _lookup(tables.GEMMSN, (algo, option), "CUSTOM_OPTION", option, f"ALGO_ID {algo}")
    length = -(-k // count)
    pieces = [range(min(i * length, k), min((i + 1) * length, k)) for i in range(count)]
    chunks = [restarted(p.start, p.stop, block or k, begin="zero") if len(p) else Chain(()) for p in pieces]
    return Sum(tuple(chunks), start="zero"), 1


def _strided(start: int, stop: int, step: int) -> Chain:
    piece = range(start, stop, step)
    return Chain((range(start, piece[-1] + 1, step),) if len(piece) else ())


def _lane(start: int, stop: int, lane: int, width: int, lanes: int) -> Chain:
    """Return the values of k that one lane multiplies: `width` consecutive values of each tile from start to stop."""
    tile = width * lanes
    if width == 1:
        return _strided(start + lane, stop, lanes)
    pieces = (range(x, min(x + width, stop)) for x in range(start + lane * width, stop, tile))
    return Chain(tuple(piece for piece in pieces if len(piece)))


def _vector_slice(start: int, stop: int, row: tables.Gemv, whole: int) -> Order:
    """Return the order of one slice of k in a matrix-vector kernel; `whole`, the length of a full slice, sets the width."""
    width = row.width if row.width > 0 else min(-row.width, -(-whole // row.lanes))
    chunk = (row.chunk or -(-(stop - start) // (width * row.lanes))) * width * row.lanes
    chunks = contiguous(start, stop, chunk)
    lanes = [joined(_lane(p.start, p.stop, i, width, row.lanes) for p in chunks) for i in range(row.lanes)]
    return butterfly(lanes) if row.butterfly else joined(lanes)


def _gemv(platform: Platform, config, m, k, n, parts) -> tuple[Order, int]:
    option = config["CUSTOM_OPTION"]
    _check_vector(config, m, n)
    if option in tables.GEMV_SLICES:
        if parts != 1 or m != 1:
            only = "is known for SPLITK_NUM 1 and m 1 only"
            raise _unknown(f"CUSTOM_OPTION {option} of ALGO_ID 13 {only}, got {parts} and m {m}", "CUSTOM_OPTION")
        count, chunk = tables.GEMV_SLICES[option]
        length = -(-k // count)
        slices = [range(min(i * length, k), min((i + 1) * length, k)) for i in range(count)]
        return joined(restarted(p.start, p.stop, chunk) if len(p) else Chain(()) for p in slices), 1
    row = _lookup(platform.gemv, option, "CUSTOM_OPTION", option, "matrix-vector")
    most = platform.processors * 2048 // row.lanes
    if option in tables.GEMV_OCCUPANCY and max(m, n) > most:
        what = f"CUSTOM_OPTION {option} with {max(m, n)} outputs: the number of lanes follows from occupancy"
        raise _unknown(what, "CUSTOM_OPTION", (f"up to {most} outputs",))
    return vector_order(row, k, parts), 1


def vector_order(row: tables.Gemv, k: int, parts: int) -> Order:
    """Return the order of a matrix-vector kernel whose k is split into `parts` slices, which are added left to right."""
    length = -(-k // parts)
    held = -(-k // length)
    starts = [
        min(i * length, k) for i in range(min(parts, held + 1))
    ]  # slices without k add +0, so one of them is enough
    return joined(_vector_slice(x, min(x + length, k), row, length) if x < k else Chain(()) for x in starts)


def _dot(platform: Platform, config, m, k, n, parts) -> tuple[Order, int]:
    _check_vector(config, m, n)
    width = 2 if n == 1 else 1
    tile = 128 * width
    partials = []
    held = -(-k // tile)
    # Blocks without k give +0, so in `reduce_one_block` one further row of 128 blocks has the effect of all of them.
    for block in range(min(parts, (-(-held // 128) + 1) * 128)):
        threads = [
            Sum(tuple(_strided(block * tile + t * width + s, k, parts * tile) for s in range(width)), start="zero")
            for t in range(128)
        ]
        partials.append(butterfly(threads))
    return reduce_one_block(partials), 1


def reduce_one_block(partials: list) -> Order:
    """Return the second pass of ALGO_ID 14: 128 threads are folded to 64 and to 32, then added in groups of four."""
    nothing = Chain(())
    q = [joined(partials[t::128]) if t < len(partials) else nothing for t in range(128)]
    if len(partials) > 128:  # all rows of partials have the same length; missing partials are +0
        rows = -(-len(partials) // 128)
        q = [joined([*partials[t::128], *[nothing] * (rows - len(partials[t::128]))]) for t in range(128)]
    for half in (64, 32):
        q = [Sum((q[t], q[t + half])) for t in range(half)]
    return joined(joined(q[j::4]) for j in range(4))


def _check_vector(config, m: int, n: int) -> None:
    if m != 1 and n != 1:
        what = (
            f"ALGO_ID {config['ALGO_ID']} with m {m} and n {n} is not known: its kernels multiply a matrix by a vector"
        )
        raise _unknown(what, "ALGO_ID", ("m 1", "n 1"))


_PLANNERS = {"nvjet": _nvjet, "cutlass": _cutlass, "gemmsn": _gemmsn, "gemv": _gemv, "dot": _dot}


def _engine(device: str, family: str, fmt: str, step: int) -> Engine:
    """Return the engine that a family of kernels multiplies with."""
    if family == "nvjet":
        return default_instruction(device, fmt, path="wgmma" if TARGETS[device] == "sm_90" else "tcgen05")
    if family == "cutlass":
        return get_instruction(device, f"mma.m16n8k{step}.f32.{'f16.f16' if fmt == 'fp16' else 'bf16.bf16'}.f32")
    return MatrixEngine(SequentialFMA(), a_format=fmt)


@integer_arguments("m", "k", "n")
def cublaslt(
    device: str, version: str, *, m: int, k: int, n: int, format: str, config: Mapping[str, int | None]
) -> Recipe:
    """Return the recipe of one cuBLASLt kernel.

    The recipe's property `lost` lists values of k that the kernel wrongly leaves out of the sum (see :func:`tail_loss`).

    Parameters
    ----------
    device : str
        GPU: "h100", "b200", "gb200", "b300" or "gb300".
    version : str
        Version of cuBLASLt, "13.1" (or "12.8" on sm_100).
    m, k, n : int
        Sizes: A is m by k, B is k by n, row-major as in torch.
    format : str
        Format of A and B: "fp16", "bf16" or "e4m3fn".
    config : mapping
        Configuration of the algorithm as cublasLtMatmulAlgoConfigGetAttribute returns it. ALGO_ID, SPLITK_NUM,
        REDUCTION_SCHEME, CUSTOM_OPTION and STAGES_ID determine the recipe; fields that are not set may be missing or None.

    Raises
    ------
    Unknown
        If the case was not measured; the message names the field, its known values, and what to do.
    TypeError, ValueError
        If a size is below 1, or cuBLASLt does not have a field.
    """
    platform = platform_of(device, version)
    for name, size in (("m", m), ("k", k), ("n", n)):
        if size < 1:
            raise ValueError(f"{name} is {size!r}, expected a positive integer")
    fmt = operand_format(format).name
    if fmt not in OUTPUTS:
        raise _unknown(f"format {fmt} is not known in cuBLASLt kernels", "format", OUTPUTS)
    fields = check_config(config)
    algo = fields["ALGO_ID"]
    family = _lookup(tables.KERNELS, algo, "ALGO_ID", algo, "cuBLASLt")
    if fmt == "e4m3fn" and family != "nvjet":
        known = [a for a, f in tables.KERNELS.items() if f == "nvjet"]
        raise _unknown(f"ALGO_ID {algo} ({family}) with format e4m3fn is not known", "ALGO_ID", known)
    parts = fields["SPLITK_NUM"] or 1
    if parts < 1:
        raise ValueError(f"config field SPLITK_NUM is {parts}, expected at least 1")
    order, step = _PLANNERS[family](platform, fields, m, k, n, parts)
    name = f"cuBLASLt {platform.version} on {device}, {family} (ALGO_ID {algo})"
    epilogue = Epilogue(formats=OUTPUTS[fmt], scales=fmt == "e4m3fn")
    return Recipe(_engine(device, family, fmt, step), k, order, epilogue, name, SOURCE, (m, n))
